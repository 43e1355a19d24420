"""One store on three nodes: equal answers, moves while others write, stale processes, and nodes that are away.

Three databases of one server are three nodes; where a node is killed, it is a server of its own.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import nacre
from nacre.analysis.names import fold
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import EmbedderMismatch, InvalidInput, NacreError, QuotaExceeded, SpaceMoved, StoreUnavailable
from nacre.storage.nodes import NodesStore
from nacre.storage.nodes.placement import ranked
from nacre.storage.postgres import PostgresNode, space_copy
from nacre.storage.reference import MemoryStore
from nacre.types.facts import FactQuery, NewFact
from nacre.types.nodes import Member
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.types.recall_log import ReceiptFilter
from nacre.types.search import Filter, Mode
from nacre.types.transfer import ExportRequest, Header
from postgres_server import Databases, PostgresServer, fresh_databases, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]

SPACES = tuple(f"s{number}" for number in range(6))
EVERYWHERE = Filter(spaces=SPACES)
START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def databases() -> Iterator[Databases]:
    with fresh_databases() as made:
        yield made


@pytest.fixture
def three(databases: Databases) -> list[str]:
    return databases.new(3)


def opened(addresses: Sequence[str] | str, **options: Any) -> Nacre:
    return nacre.open(addresses, embedder=Hashing(), reranker=None, **options)


def store_of(memory: Nacre) -> NodesStore:
    store = memory._store
    assert isinstance(store, NodesStore)
    return store


def filled(memory: Nacre, each: int = 4) -> dict[str, list[str]]:
    """Some memories in each space, by space."""
    return {
        space: [
            memory.remember(f"the heron {space} number {number} stands in river {number}", space=space).id
            for number in range(each)
        ]
        for space in SPACES
    }


def node_numbers(addresses: Sequence[str]) -> dict[str, int]:
    """By address, the number of a node."""
    return {each.address: each.number for each in nacre.node_status(addresses)}


def owner_of(memory: Nacre, space: str) -> str:
    """The id of the store that has a space."""
    ((owner, _),) = store_of(memory).placement.of([space]).items()
    return owner.store_id


def another_node(memory: Nacre, space: str) -> int:
    return next(each.number for each in store_of(memory).placement.members if each.store_id != owner_of(memory, space))


# ---------------------------------------------------------------- equal answers


class Numbering:
    def __init__(self) -> None:
        self._given = 0

    def __call__(self, _now: datetime, count: int) -> list[str]:
        first = self._given
        self._given += count
        return [f"id-{number:05}" for number in range(first, self._given)]


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


WORDS = (
    "heron",
    "kestrel",
    "river",
    "mountain",
    "berlin",
    "paris",
    "alice",
    "bob",
    "deploys",
    "tea",
    "coffee",
    "budget",
)


class Both:
    """The same calls to three nodes and to the reference store."""

    def __init__(self, addresses: Sequence[str], seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = Clock()
        self.addresses = addresses
        nodes = [(each, partial(PostgresNode, each)) for each in addresses]
        self.engines = [
            Nacre(store, Hashing(), clock=self.clock, make_ids=Numbering(), zone=UTC, log=True)
            for store in (NodesStore(nodes), MemoryStore())
        ]
        self.ids: list[str] = []

    def same(self, call: Callable[[Nacre], Any]) -> Any:
        one, other = (self._outcome(call, each) for each in self.engines)
        assert one == other
        return one

    def _outcome(self, call: Callable[[Nacre], Any], engine: Nacre) -> Any:
        try:
            return call(engine)
        except NacreError as error:
            return type(error)
        finally:
            engine._log.flush()

    def text(self) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(2, 7)))

    def chosen(self, count: int = 1) -> list[str]:
        return [self.random.choice([*self.ids, "never"]) for _ in range(count)]

    def step(self) -> None:
        self.clock.now += timedelta(minutes=self.random.randint(0, 90))
        self.random.choice(
            [self.remember] * 4 + [self.search] * 3 + [self.change, self.forget, self.restore, self.purge]
            + [self.say, self.know, self.mark, self.context, self.expiring, self.lens, self.clear]
        )()  # fmt: skip

    def remember(self) -> None:
        spaces = self.random.sample(SPACES, 3)
        items = [
            nacre.NewMemory(
                text=self.text(),
                space=space,
                tags=self.random.sample(WORDS, 2),
                session=self.random.choice(["one", "two", None]),
                importance=self.random.random(),
            )
            for space in spaces
            for _ in range(2)
        ]
        done = self.same(lambda memory: [each.id for each in memory.remember_many(items)])
        self.ids += done

    def expiring(self) -> None:
        text, space = self.text(), self.random.choice(SPACES)
        ends = self.clock.now + timedelta(hours=2)
        done = self.same(lambda memory: memory.remember(text, space=space, expires=ends).id)
        self.ids.append(done)

    def search(self) -> None:
        query, spaces = self.text(), self.random.sample(SPACES, self.random.randint(1, 6))
        modes: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")
        mode, limit = self.random.choice(modes), self.random.choice([1, 5, 50])
        session = self.random.choice(["one", "two", None])
        where = Filter(spaces=tuple(spaces))

        def found(engine: Nacre) -> Any:
            result = engine.search(query, where=where, mode=mode, limit=limit, session=session)
            return [(hit.id, hit.score, hit.reasons) for hit in result.hits], result.notes

        self.same(found)
        self.same(lambda memory: memory.facets(query, where=where))

    def context(self) -> None:
        query, where = self.text(), Filter(spaces=tuple(self.random.sample(SPACES, 4)))
        self.same(lambda memory: memory.context(query, where=where, session="one").text)

    def change(self) -> None:
        (chosen,), text = self.chosen(), self.text()
        self.same(lambda memory: memory.update(chosen, text=text).text)

    def forget(self) -> None:
        ids = self.chosen(2)
        self.same(lambda memory: memory.forget(ids))

    def restore(self) -> None:
        ids = self.chosen(1)
        self.same(lambda memory: memory.restore(ids))

    def purge(self) -> None:
        ids = self.chosen(2)
        done = self.same(lambda memory: bool(memory.purge(ids)))
        if not isinstance(done, type):
            self.ids = [each for each in self.ids if each not in ids]

    def say(self) -> None:
        (chosen,) = self.chosen()
        city = self.random.choice(["Berlin", "Paris", "Rome"])
        fact = NewFact(subject="Alice", predicate="lives_in", object=city, relation=True, single=True)
        self.same(lambda memory: len(memory.add_facts(chosen, [fact])))

    def know(self) -> None:
        space = self.random.choice(SPACES)
        self.same(lambda memory: memory.add_entity("Alice", aliases=["Al"], space=space).name)

    def mark(self) -> None:
        ids = self.chosen(2)
        self.same(lambda memory: memory.mark(ids, "used"))

    def lens(self) -> None:
        space, body = self.random.choice(SPACES), f'{{"recipe": {{"alpha": {self.random.random():.3f}}}}}'
        for each in self.engines:
            each._store.put_lens(space, "usual", body)

    def clear(self) -> None:
        if self.random.random() < 0.2:
            space = self.random.choice(SPACES)
            self.same(lambda memory: memory.clear_log(spaces=[space]))

    def compare(self) -> None:
        """All that can be read without a question."""
        stores = [each._store for each in self.engines]
        ids = [*self.ids, "never"]
        readings: list[Callable[[Any], Any]] = [
            lambda store: store.get(ids),
            lambda store: store.signals(ids),
            lambda store: store.neighbours(ids, 2, 2),
            lambda store: store.facts_of(ids),
            lambda store: store.facts(FactQuery(spaces=SPACES, as_of=self.clock.now, history=True, limit=500)),
            lambda store: store.entities(SPACES, None, 100),
            lambda store: store.entity_counts(SPACES),
            lambda store: store.entities_of(ids),
            lambda store: store.updates(ids),
            lambda store: store.similar(ids),
            lambda store: {each: store.lenses(each) for each in SPACES},
            lambda store: store.relations_of([fold("Alice")], SPACES, self.clock.now, 100),
            lambda store: store.frequencies(WORDS, SPACES, ["ber"]),
            lambda store: sorted(store.spellings("herom", SPACES)),
            lambda store: sorted(store.pending(None, 100)),
            lambda store: {each: [event.action for event in store.history(each)] for each in ids},
            lambda store: sorted(
                (change.kind, change.action, change.name, change.space)
                for change in store.changes(SPACES, 0, 10_000).changes
            ),
            lambda store: [replace(each, id="") for each in store.receipts(ReceiptFilter(spaces=SPACES, limit=100))],
            lambda store: [
                [replace(one, id="") for one in store.receipts(ReceiptFilter(spaces=SPACES, memory_id=each))]
                for each in ids[-5:]
            ],
            lambda store: store.delivered([(space, "one") for space in SPACES], 100),
            lambda store: list(store.delivered_within(SPACES, "one", (START, self.clock.now), 100)),
            lambda store: replace(store.stats(), schema_version=0, size_bytes=0, index_bytes=0),
        ]
        for read in readings:
            one, other = map(read, stores)
            assert one == other

    def close(self) -> None:
        for each in self.engines:
            each.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_nodes_answer_as_one_store_does(seed: int, three: list[str]) -> None:
    both = Both(three, seed)
    with closing(both):
        for number in range(60):
            both.step()
            if number % 20 == 19:
                both.compare()
            if number % 25 == 24:
                space = both.random.choice(SPACES)
                if store_of(both.engines[0]).placement.of([space]):
                    nacre.move_space(three, space, another_node(both.engines[0], space))
        both.compare()


def test_an_export_is_one_and_can_be_taken_in_by_any_store(three: list[str], databases: Databases) -> None:
    with opened(three) as memory:
        ids = filled(memory)
        memory.forget(ids["s2"][0])
        nacre.move_space(three, "s1", another_node(memory, "s1"))
        exported = list(memory._store.dump(ExportRequest(START, vectors=True)))
    others: list[Any] = [
        MemoryStore(),
        NodesStore([(each, partial(PostgresNode, each)) for each in databases.new(2)]),
    ]
    for other in others:
        mark, header = other.load_mark(), exported[0]
        assert isinstance(header, Header)
        for start in range(1, len(exported), 7):
            other.load(exported[start : start + 7], mark, header.model, header.token_model)
        again = list(other.dump(ExportRequest(START, vectors=True)))
        assert sorted(map(repr, again[1:])) == sorted(map(repr, exported[1:]))
        other.close()


def test_who_follows_the_changes_misses_none_and_sees_none_twice(three: list[str]) -> None:
    seen: list[str] = []
    with opened(three) as memory:
        number = memory.changes(spaces=SPACES).seq
        chooser, written = random.Random(5), []
        for _ in range(120):
            written.append(memory.remember(f"heron {chooser.random()}", space=chooser.choice(SPACES)).id)
            if chooser.random() < 0.3:
                page = memory.changes(number, spaces=SPACES, limit=chooser.choice([1, 3, 100]))
                seen += [each.name for each in page.changes if each.action == "remembered"]
                number = page.seq
            if chooser.random() < 0.05:
                space = chooser.choice(SPACES)
                if store_of(memory).placement.of([space]):
                    nacre.move_space(three, space, chooser.randrange(3))
        while (page := memory.changes(number, spaces=SPACES, limit=50)).seq > number:
            seen += [each.name for each in page.changes if each.action == "remembered"]
            number = page.seq
    assert sorted(seen) == sorted(written)


def test_what_is_refused_changes_nothing_on_any_node(three: list[str]) -> None:
    """Also a first write to a node that has no model yet, and no space."""
    members = [Member(number, "", "") for number in range(3)]
    space = next(each for each in SPACES if ranked(each, members)[0].number)
    for quotas in (Quotas(bytes_max=5), NO_QUOTAS):
        nodes = [(each, partial(PostgresNode, each, quotas=quotas)) for each in three]
        with closing(Nacre(NodesStore(nodes), Hashing())) as memory:
            store, before = store_of(memory), memory._store.sequence()
            if quotas != NO_QUOTAS:
                with pytest.raises(QuotaExceeded):
                    memory.remember("the heron stands in the river", space=space)
                assert (store.model(), store.token_model(), store.stats().events) == (None, None, 0)
            else:
                store.switch_model("another model")
                before = store.sequence()
                with pytest.raises(EmbedderMismatch):
                    memory.remember("the heron stands in the river", space=space)
                assert (store.model(), store.token_model()) == ("another model", None)
            assert store.sequence() == before


def test_of_two_first_writers_with_two_models_one_writes(three: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other finds out before its write is committed, and has written nothing."""
    one, other = (NodesStore([(each, partial(PostgresNode, each)) for each in three]) for _ in range(2))
    members = one.placement.members
    here, there = (next(each for each in SPACES if ranked(each, members)[0].number == number) for number in (1, 2))
    node = one.placement.connected(members[1].store_id).node()
    with closing(Nacre(one, Hashing())) as memory, closing(Nacre(other, Hashing(32))) as quicker:
        add = node.add

        def add_later(*given: Any) -> Any:
            quicker.remember("the kestrel hovers", space=there)
            return add(*given)

        monkeypatch.setattr(node, "add", add_later)
        with pytest.raises(EmbedderMismatch):
            memory.remember("the heron stands in the river", space=here)
        assert one.model() == Hashing(32).fingerprint
        assert (node.model(), node.stats().memories) == (None, 0)


# ---------------------------------------------------------------- which nodes


def test_the_order_of_the_nodes_does_not_matter(three: list[str]) -> None:
    with opened(three) as memory:
        ids = filled(memory, 1)
    with opened(three[::-1]) as memory:
        assert len(memory.get([each for several in ids.values() for each in several]).memories) == len(SPACES)


def test_a_list_that_is_wrong_is_refused(three: list[str], databases: Databases) -> None:
    opened(three).close()
    (fourth,) = databases.new(1)
    with pytest.raises(InvalidInput, match="names 2 of 3 nodes"):
        opened(three[:2])
    with pytest.raises(InvalidInput, match="is one of several nodes"):
        opened(three[0])
    with pytest.raises(InvalidInput, match="are one node"):
        opened([*three, f"{three[0]}?application_name=again"])
    with pytest.raises(InvalidInput, match="is no node of this store"):
        opened([*three, fourth])
    alone = opened(fourth)
    alone.remember("the heron")
    alone.close()
    with pytest.raises(InvalidInput, match="has memories; open it alone"):
        opened([fourth, *databases.new(1)])


def test_a_store_alone_refuses_spaces_of_other_nodes_from_the_moment_it_is_one(databases: Databases) -> None:
    first, second = databases.new(2)
    with opened(first, space="old") as alone:
        alone.remember("the heron stands in the river")
        members = nacre.add_node(first, second)
        assert [each.number for each in members] == [0, 1]
        alone.remember("what was here stays here")
        with pytest.raises(SpaceMoved, match="name all nodes"):
            alone.remember("this space may belong to another node", space="new")
    with opened([first, second], space="old") as memory:
        assert len(memory.search("heron river").hits) == 1
        filled(memory, 1)
        assert {each.spaces for each in nacre.node_status([first, second])} != {0}
    with pytest.raises(InvalidInput, match="is a node of this store already"):
        nacre.add_node([first, second], first)


def test_a_node_that_is_added_moves_nothing_and_takes_its_share_of_new_spaces(
    three: list[str], databases: Databases
) -> None:
    (fourth,) = databases.new(1)
    with opened(three) as memory:
        filled(memory, 1)
        before = {space: owner_of(memory, space) for space in SPACES}
        nacre.add_node(three, fourth)
        memory.remember("a process that does not know the new node goes on", space="s0")
    with opened([*three, fourth]) as memory:
        assert {space: owner_of(memory, space) for space in SPACES} == before
        for number in range(30):
            memory.remember("the kestrel", space=f"new{number}")
        new = store_of(memory).placement.members[-1]
        assert any(owner_of(memory, f"new{number}") == new.store_id for number in range(30))


def test_a_process_that_was_killed_while_it_added_a_node_is_completed_by_the_next(
    three: list[str], databases: Databases
) -> None:
    (fourth,) = databases.new(1)
    with opened(three) as memory:
        members = tuple(store_of(memory).placement.members)
        home = store_of(memory).placement.home.node()
    with closing(PostgresNode(fourth)) as new, closing(PostgresNode(home.location)) as first:
        first.join((*members, Member(3, new.store_id(), fourth)), 0)
        with pytest.raises(InvalidInput, match="names 3 of 4 nodes"):
            opened(three)
        opened([*three, fourth]).close()
        assert len(new.members()) == 4


def test_new_spaces_are_spread_by_their_names_and_stay_when_a_node_is_added() -> None:
    members = [Member(number, f"store-{number}", "") for number in range(4)]
    spaces = [f"space {number}" for number in range(1_000)]
    three_of = {space: ranked(space, members[:3])[0] for space in spaces}
    four_of = {space: ranked(space, members)[0] for space in spaces}
    for member in members[:3]:
        assert 250 < sum(each == member for each in three_of.values()) < 420
    assert all(four_of[space] in (three_of[space], members[3]) for space in spaces)


# ---------------------------------------------------------------- moves


def test_a_space_is_copied_with_everything_it_has(three: list[str]) -> None:
    with opened(three, space="s0") as memory:
        ids = filled(memory)["s0"]
        memory.update(ids[0], text="the heron has left")
        memory.forget(ids[1])
        memory.add_facts(ids[2], [NewFact(subject="Alice", predicate="lives_in", object="Berlin", relation=True)])
        memory.add_entity("Alice", aliases=["Al"], memory_ids=[ids[2]])
        memory.search("heron river", where=EVERYWHERE, session="one")
        memory._log.flush()
        memory.mark(ids[2], "used")
    with opened(three, space="s0", log=False) as memory:
        seen = [_all_of(memory, ids)]
        for to in (0, 1, 2, 0):
            nacre.move_space(three, "s0", to)
            seen.append(_all_of(memory, ids))
            with opened(three, space="s0", log=False) as later:
                seen.append(_all_of(later, ids))
        assert all(each == seen[0] for each in seen)
        assert [each.arriving for each in nacre.node_status(three)] == [()] * 3


def _all_of(memory: Nacre, ids: Sequence[str]) -> Any:
    store = memory._store
    exported = list(store.dump(ExportRequest(START, where=Filter(spaces=("s0",)), vectors=True)))[1:]
    return (
        sorted(map(repr, exported)),
        store.signals(ids),
        store.receipts(ReceiptFilter(spaces=SPACES, session="one")),
        store.frequencies(["heron", "river"], SPACES, ["her"]),
        {space: (store.stats().stored_memories[space], store.stats().stored_bytes[space]) for space in SPACES},
        [hit.id for hit in memory.search("heron river", where=EVERYWHERE, limit=50).hits],
        [event.seq for each in ids for event in store.history(each)],
    )


def test_every_table_of_a_space_is_copied(three: list[str], databases: Databases) -> None:
    opened(three).close()
    database = three[0].rpartition("/")[2]
    found = databases.execute(
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'space' "
        "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'nacre' AND c.relkind = 'r'",
        database,
    )
    apart = {"receipts", "deliveries", "space_usage", "placements", "directory"}
    assert {str(name) for (name,) in found} == {*space_copy.TABLES, *apart}


def test_nothing_is_lost_or_missed_while_a_space_moves(three: list[str]) -> None:
    with opened(three) as memory:
        filled(memory, 10)
    stop = threading.Event()
    written: list[str] = []
    wrong: list[Any] = []

    def write(number: int) -> None:
        with opened(three) as writer:
            place = 0
            while not stop.is_set():
                try:
                    written.append(
                        writer.remember(f"writer {number} says {place}", space="s0", key=f"{number}-{place}").id
                    )
                except NacreError as error:
                    wrong.append(error)
                place += 1

    def read() -> None:
        with opened(three) as reader:
            while not stop.is_set():
                hits = reader.search("heron river number", where=Filter(spaces=("s0", "s1")), limit=30).hits
                herons = [each.id for each in hits if "heron" in each.text]
                if len(herons) != 20 or len(set(herons)) != 20:
                    wrong.append(herons)
                time.sleep(0.02)

    threads = [threading.Thread(target=write, args=(1,)), threading.Thread(target=write, args=(2,))]
    threads.append(threading.Thread(target=read))
    for each in threads:
        each.start()
    try:
        for to in (0, 1, 2, 1):
            nacre.move_space(three, "s0", to)
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert not wrong
    with opened(three) as memory:
        assert len(set(written)) == len(written)
        assert len(memory.get(written).memories) == len(written)
        assert memory.stats().spaces["s0"] == 10 + len(written)


_MOVER = """
import sys, nacre
nacre.move_space(sys.argv[3:], sys.argv[1], int(sys.argv[2]))
"""


def test_a_move_that_is_killed_at_any_moment_goes_on_when_it_is_repeated(three: list[str]) -> None:
    chooser = random.Random(11)
    with opened(three) as memory:
        ids = [memory.remember(f"the heron number {number}", space="s0").id for number in range(150)]
        for round_ in range(6):
            to = another_node(memory, "s0")
            mover = subprocess.Popen([sys.executable, "-c", _MOVER, "s0", str(to), *three])
            time.sleep(0.3 + 1.5 * chooser.random())
            mover.send_signal(signal.SIGKILL)
            mover.wait()
            ids.append(memory.remember(f"written after the kill {round_}", space="s0").id)
            assert len(memory.get(ids).memories) == len(ids)
            if round_ % 2:  # the next round may go to another node, or back
                nacre.move_space(three, "s0", to)
            found = memory.search("heron", where=Filter(spaces=("s0",)), mode="keyword", limit=200).hits
            assert len({each.id for each in found}) == len(found) == 150
        nacre.move_space(three, "s0", to)
        assert memory.stats().spaces == {"s0": len(ids)}
        assert memory.stats().stored_memories == {"s0": len(ids)}


def test_a_process_with_an_old_map_asks_again(three: list[str]) -> None:
    with opened(three, space="s0") as one, opened(three, space="s0", log=False) as other:
        first = one.remember("the heron stands in the river").id
        assert other.get(first).memories
        before = owner_of(other, "s0")
        nacre.move_space(three, "s0", another_node(one, "s0"))
        assert store_of(other).placement._known["s0"] == before
        with pytest.raises(SpaceMoved):
            store_of(other).placement.connected(before).node().put_lens("s0", "usual", "{}")
        second = other.remember("the kestrel hovers").id
        assert store_of(other).placement._known["s0"] != before
        assert {each.id for each in one.search("heron kestrel").hits} == {first, second}


# ---------------------------------------------------------------- nodes that are away


def test_what_needs_no_node_that_is_away_goes_on() -> None:
    servers = [PostgresServer(durable=True) for _ in range(3)]
    try:
        addresses = [each.dsn for each in servers]
        with opened(addresses, busy_timeout_ms=500) as memory:
            filled(memory, 2)
            home = store_of(memory).placement.home.address
            away = next(each for each in servers if each.dsn != home)
            placement = store_of(memory).placement
            gone = {
                each for node, spaces in placement.of(SPACES).items() if node.address == away.dsn for each in spaces
            }
            here = [each for each in SPACES if each not in gone]
            away.kill()
            _check_without(memory, sorted(gone), here, away.port)
            with opened(addresses, busy_timeout_ms=500) as later:  # a process that begins meanwhile
                _check_without(later, sorted(gone), here, away.port)
            away.start()
            assert waited_for(lambda: _works(memory))
            assert memory.stats().memories == 2 * len(SPACES) + 2 * len(here)
    finally:
        for each in servers:
            each.remove()


def _check_without(memory: Nacre, gone: Sequence[str], here: Sequence[str], port: int) -> None:
    for space in here:
        memory.remember(f"written while a node is away {random.random()}", space=space)
    assert memory.search("heron", where=Filter(spaces=tuple(here))).hits
    assert memory.tokens() == []
    for space in gone:
        with pytest.raises(StoreUnavailable, match=str(port)):
            memory.remember("this has to wait", space=space)
        with pytest.raises(StoreUnavailable, match=str(port)):
            memory.search("heron", where=Filter(spaces=(*here, space)))


def _works(memory: Nacre) -> bool:
    try:
        memory.stats()
    except StoreUnavailable:
        return False
    return True


def test_the_status_names_a_node_that_is_away() -> None:
    server, other = PostgresServer(durable=True), PostgresServer(durable=True)
    try:
        opened([server.dsn, other.dsn]).close()
        other.kill()
        problems = {each.address: each.problem for each in nacre.node_status([server.dsn, other.dsn])}
        assert not problems[server.dsn]
        assert str(other.port) in problems[other.dsn]
    finally:
        server.remove()
        other.remove()
