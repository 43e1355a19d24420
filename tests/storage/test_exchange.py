"""Stores that exchange their changes by files become equal, whatever was done to them and whatever their clocks say."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.engine.engine import Nacre
from nacre.errors import NacreError, QuotaExceeded
from nacre.interfaces import Store
from nacre.query.lenses import Lens
from nacre.serialization import transfer
from nacre.storage import changes
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import SqliteStore
from nacre.types.facts import NewFact
from nacre.types.memory import Memory
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    ExportRequest,
    FactRecord,
    Header,
    LensRecord,
    MemoryRecord,
    Record,
    SimilarRecord,
    UpdateRecord,
)
from postgres_server import MISSING, Schemas, fresh_schemas, needs_postgres
from store_checks import check_derived_tables, check_integrity, check_words_of_relations

START = datetime(2026, 6, 15, 12, tzinfo=UTC)
TEXTS = ("tea at four", "coffee", "Alice lives in Berlin", "Alice lives in Paris", "port: 8080", "port: 9090")
KEYS = (None, None, "a", "b")
NAMES = ("Alice", "alice", "Al", "Berlin", "Bob")
FACTS = (
    NewFact(subject="Alice", predicate="lives in", object="Rome", relation=True, single=True),
    NewFact(subject="Al", predicate="port", object="1", confidence=0.5),
)


class Site:
    """A machine with a store of its own, whose clock differs from others'."""

    def __init__(self, name: str, store: Store, ahead: timedelta) -> None:
        self.name = name
        self.store = store
        self.now = START + ahead
        numbers = count()
        self.engine = Nacre(
            store,
            None,
            clock=lambda: self.now,
            make_ids=lambda _, wanted: [f"{name}{next(numbers):03}" for _ in range(wanted)],
            zone=UTC,
            log=False,
        )
        self.ids: list[str] = []
        self.sent: dict[str, int] = {}  # by receiver, up to which number

    def export(self, since: int = 0) -> list[str]:
        return list(transfer.lines(self.engine.export(since=since)))

    def take(self, lines: Sequence[str]) -> None:
        for _ in self.engine.load(map(transfer.read_line, lines)):
            pass
        self.ids = sorted({*self.ids, *(each.memory.id for each in records(self, MemoryRecord))})


def records(site: Site, kind: type[Any]) -> list[Any]:
    return [each for each in site.store.dump(ExportRequest(START)) if isinstance(each, kind)]


def send(one: Site, other: Site) -> None:
    lines = one.export(one.sent.get(other.name, 0))
    header = transfer.read_line(lines[0])
    assert isinstance(header, Header)
    one.sent[other.name] = header.seq
    other.take(lines)


def new_store(kind: str, path: Path, schemas: Schemas | None, quotas: Quotas = NO_QUOTAS) -> Store:
    if kind == "sqlite":
        return SqliteStore(path, quotas=quotas)
    if kind == "reference":
        return MemoryStore(quotas)
    from nacre.storage.postgres import PostgresStore

    assert schemas is not None
    return PostgresStore(schemas.dsn, schemas.new(), quotas=quotas)


@contextmanager
def sites(*kinds: str, ahead: Sequence[int] = (0, 0, 0)) -> Iterator[list[Site]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        schemas = stack.enter_context(fresh_schemas()) if "postgres" in kinds else None
        made: list[Site] = []
        for at, kind in enumerate(kinds):
            store = new_store(kind, Path(folder) / f"{at}.db", schemas)
            stack.callback(store.close)  # also where a test fails, or Hypothesis ends it
            made.append(Site("xyz"[at] if at < 3 else f"w{at}", store, timedelta(seconds=ahead[at % 3])))
        yield made
        for site in made:
            site.store.close()
            if isinstance(site.store, SqliteStore):
                path = site.store._path
                check_derived_tables(path)
                check_words_of_relations(path)
                check_integrity(path)


# ---------------------------------------------------------------- what must be equal


def state(site: Site) -> dict[str, Any]:
    """All that stores agree on. Near-duplicates are looked for by each store itself."""
    every = list(site.store.dump(ExportRequest(START)))
    memories = site.store.get([each.memory.id for each in every if isinstance(each, MemoryRecord)])
    found: dict[str, Any] = {
        "memories": memories,
        "facts": {
            each.fact.id: each.fact
            if memories[each.fact.memory_id].deleted is None
            else replace(each.fact, valid_to=None, superseded_by=None)
            for each in every
            if isinstance(each, FactRecord)
        },
        "entities": {
            (each.space, each.name): (each.type, each.kept, each.aliases, each.memory_ids)
            for each in every
            if isinstance(each, EntityRecord)
        },
        "updates": {(each.newer, each.older): each.cue for each in every if isinstance(each, UpdateRecord)},
        "lenses": {(each.space, each.name): each.body for each in every if isinstance(each, LensRecord)},
        "dropped": {(each.kind, each.space, each.name) for each in every if isinstance(each, Dropped)},
        "purged": {each.memory_id for each in every if isinstance(each, EventRecord) and each.action == "purged"},
    }
    return found


def assert_equal(one: Site, other: Site) -> None:
    first, second = state(one), state(other)
    for name in first:
        assert first[name] == second[name], name


def texts_ever(site: Site) -> set[str]:
    """All texts that memories have or had."""
    found = set()
    for each in records(site, MemoryRecord):
        found.add(each.memory.text)
        found |= {event.before["text"] for event in each.events if "text" in event.before}
    return found


def assert_one_of_each_identity(site: Site) -> None:
    live = [each for each in state(site)["memories"].values() if each.deleted is None]
    assert len({changes.identity(each) for each in live}) == len(live)


# ---------------------------------------------------------------- operations


class Operation(NamedTuple):
    site: int
    name: str
    number: int
    text: str
    key: str | None
    seconds: int


OPERATIONS: dict[str, Callable[[Site, Operation], Any]] = {
    "remember": lambda site, each: site.ids.append(
        site.engine.remember(each.text, key=each.key, tags=[f"t{each.number % 3}"]).id
    ),
    "update": lambda site, each: site.engine.update(chosen(site, each), text=each.text),
    "rename": lambda site, each: site.engine.update(chosen(site, each), key=each.key),
    "tag": lambda site, each: site.engine.update(chosen(site, each), tags=[f"t{each.number % 3}", "tagged"]),
    "forget": lambda site, each: site.engine.forget(chosen(site, each)),
    "restore": lambda site, each: site.engine.restore(chosen(site, each)),
    "purge": lambda site, each: site.engine.purge(chosen(site, each)),
    "state": lambda site, each: site.engine.add_facts(chosen(site, each), [FACTS[each.number % 2]]),
    "drop fact": lambda site, each: site.engine.drop_facts(fact_id(site, each)),
    "reinforce": lambda site, each: site.engine.reinforce(chosen(site, each), "explicit"),
    "entity": lambda site, each: site.engine.add_entity(
        NAMES[each.number % 5],
        kind=(None, "person", "place")[each.number % 3],
        aliases=[NAMES[each.seconds % 5]],
        memory_ids=[chosen(site, each)] if each.number % 2 else [],
    ),
    "drop entity": lambda site, each: site.engine.drop_entity(NAMES[each.number % 5]),
    "supersede": lambda site, each: site.ids.append(
        site.engine.remember(f"{each.text} no longer", supersedes=chosen(site, each)).id
    ),
    "link": lambda site, each: site.engine.remember(each.text, supersedes=chosen(site, each)),
    "unlink": lambda site, each: site.engine.unlink((site.ids or ["nothing"])[-1], chosen(site, each)),
    "lens": lambda site, each: site.engine.save_lens(Lens(name="mine", limit=1 + each.number % 3)),
    "drop lens": lambda site, _: site.engine.drop_lens("mine"),
}


def chosen(site: Site, each: Operation) -> str:
    return site.ids[each.number % len(site.ids)] if site.ids else "nothing"


def fact_id(site: Site, each: Operation) -> str:
    facts = sorted(record.fact.id for record in records(site, FactRecord))
    return facts[each.number % len(facts)] if facts else "nothing"


def do(every: Sequence[Site], each: Operation, known: dict[str, set[str]]) -> None:
    """An operation that is refused does nothing."""
    site = every[each.site % len(every)]
    site.now += timedelta(seconds=each.seconds)
    try:
        OPERATIONS[each.name](site, each)
    except NacreError:
        return
    for record in records(site, MemoryRecord):
        known.setdefault(record.memory.id, set()).add(record.memory.text)


operations = st.builds(
    Operation,
    site=st.integers(0, 2),
    name=st.sampled_from(["remember", "remember", "update", "send", "send", *OPERATIONS]),
    number=st.integers(0, 20),
    text=st.sampled_from(TEXTS),
    key=st.sampled_from(KEYS),
    seconds=st.sampled_from([0, 1, 1, 5]),
)
histories = st.lists(operations, min_size=3, max_size=30)
clocks = st.tuples(*[st.sampled_from([0, 0, -3, 7])] * 3)
_BOUNDED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


# ---------------------------------------------------------------- any history

KINDS = [("sqlite", "reference"), ("reference", "sqlite"), ("sqlite", "sqlite")]
if not MISSING:
    KINDS += [("postgres", "reference"), ("sqlite", "postgres"), ("postgres", "postgres")]


@pytest.mark.slow
@given(histories, clocks, st.sampled_from(KINDS))
@_BOUNDED
def test_two_machines_that_exchange_changes_become_equal(
    history: list[Operation], ahead: tuple[int, int, int], kinds: tuple[str, str]
) -> None:
    known: dict[str, set[str]] = {}
    with sites(*kinds, ahead=ahead) as both:
        for each in history:
            if each.name == "send":
                send(both[each.site % 2], both[1 - each.site % 2])
            else:
                do(both, each, known)
        send(*both)
        send(*both[::-1])
        assert_equal(*both)
        purged = state(both[0])["purged"]
        texts = {text for memory_id, several in known.items() if memory_id not in purged for text in several}
        for site in both:
            assert_one_of_each_identity(site)
            assert texts <= texts_ever(site)
        before = [state(site) for site in both]
        for _ in range(2):
            send(*both)
            send(*both[::-1])
        assert [state(site) for site in both] == before


@pytest.mark.slow
@given(histories, clocks, st.randoms(use_true_random=False), st.sampled_from(sorted({kind for kind, _ in KINDS})))
@_BOUNDED
def test_the_order_of_files_of_different_machines_does_not_matter(
    history: list[Operation], ahead: tuple[int, int, int], random: Any, kind: str
) -> None:
    """Files of one machine come in their order."""
    with sites("reference", "reference", "reference", kind, "reference", ahead=ahead) as (*three, first, second):
        files: dict[str, list[list[str]]] = {site.name: [] for site in three}
        for each in [*history, *(Operation(at, "send", 0, "", None, 0) for at in range(3))]:
            site = three[each.site % 3]
            if each.name == "send":
                lines = site.export(site.sent.get("all", 0))
                header = transfer.read_line(lines[0])
                assert isinstance(header, Header)
                site.sent["all"] = header.seq
                files[site.name].append(lines)
                if each.number % 2:
                    three[(each.site + 1) % 3].take(lines)
            else:
                do(three, each, {})
        for target in (first, second):
            queues = [list(several) for several in files.values()]
            while any(queues):
                queue = random.choice([each for each in queues if each])
                target.take(queue.pop(0))
        assert_equal(first, second)


# ---------------------------------------------------------------- cases by hand

ONE_OF_EACH = ["sqlite", "reference", pytest.param("postgres", marks=needs_postgres)]


@pytest.fixture(params=ONE_OF_EACH)
def pair(request: pytest.FixtureRequest) -> Iterator[list[Site]]:
    with sites(request.param, request.param) as both:
        yield both


def exchange(pair: list[Site]) -> None:
    send(*pair)
    send(*pair[::-1])
    assert_equal(*pair)


def remembered(site: Site, text: str, **fields: Any) -> str:
    memory_id = site.engine.remember(text, **fields).id
    site.ids.append(memory_id)
    return memory_id


def get(site: Site, memory_id: str) -> Memory:
    return site.engine.get(memory_id).memories[0]


def actions(site: Site, memory_id: str) -> list[str]:
    return [each.action for each in site.engine.history(memory_id)]


def test_of_two_changes_the_later_wins_and_the_other_is_in_the_history(pair: list[Site]) -> None:
    one, other = pair
    tea = remembered(one, "tea")
    exchange(pair)
    one.now += timedelta(seconds=1)
    one.engine.update(tea, text="green tea")
    other.now += timedelta(seconds=2)
    other.engine.update(tea, text="black tea")
    exchange(pair)
    for site in pair:
        assert get(site, tea).text == "black tea"
        (merged,) = [each for each in site.engine.history(tea) if each.action == "merged"]
        assert merged.before["text"] == "green tea"
        assert [hit.id for hit in site.engine.search("black", mode="keyword").hits] == [tea]
        assert not site.engine.search("green", mode="keyword").hits


def test_a_change_that_the_other_has_not_seen_is_no_conflict(pair: list[Site]) -> None:
    one, other = pair
    tea = remembered(one, "tea")
    exchange(pair)
    for text in ("green tea", "white tea"):
        one.now += timedelta(seconds=1)
        one.engine.update(tea, text=text)
    exchange(pair)
    assert get(other, tea).text == "white tea"
    assert actions(other, tea) == ["remembered", "updated", "updated"]


def test_forgetting_loses_to_a_later_change_and_beats_an_earlier_one(pair: list[Site]) -> None:
    one, other = pair
    early, late = remembered(one, "early"), remembered(one, "late")
    exchange(pair)
    other.now += timedelta(seconds=1)
    other.engine.update(early, tags=["x"])
    one.now += timedelta(seconds=2)
    one.engine.forget([early, late])
    other.now += timedelta(seconds=2)
    other.engine.update(late, tags=["x"])
    exchange(pair)
    assert [get(one, each).deleted is None for each in (early, late)] == [False, True]


def test_a_purge_travels_and_leaves_nothing(pair: list[Site]) -> None:
    one, other = pair
    secret = remembered(one, "the zebra password")
    exchange(pair)
    other.now += timedelta(seconds=9)
    other.engine.update(secret, tags=["later"])
    one.engine.purge(secret)
    old = other.export()
    exchange(pair)
    assert other.store.get([secret]) == {}
    for site in pair:
        site.take(old)  # a file from before brings nothing back
        assert site.store.get([secret]) == {}
        assert "zebra" not in "".join(site.export())
        if isinstance(site.store, SqliteStore):
            assert b"zebra" not in site.store._path.read_bytes()


def test_one_key_has_one_live_memory_and_no_text_is_lost(pair: list[Site]) -> None:
    one, other = pair
    first = remembered(one, "port 1", key="port")
    other.now += timedelta(seconds=1)
    second = remembered(other, "port 2", key="port")
    exchange(pair)
    for site in pair:
        assert site.engine.get(keys=["port"]).memories[0].id == second
        assert get(site, first).deleted == get(site, second).updated
        assert get(site, first).text == "port 1"
        assert "displaced" in actions(site, first)
    one.now += timedelta(seconds=5)
    one.engine.update(second, key="other port")  # here: what was displaced stays forgotten
    exchange(pair)
    assert get(one, first).deleted is not None


def test_one_text_has_one_live_memory(pair: list[Site]) -> None:
    one, other = pair
    first = remembered(one, "tea at four")
    other.now += timedelta(seconds=1)
    second = remembered(other, "tea at four")
    exchange(pair)
    for site in pair:
        assert [hit.id for hit in site.engine.search("tea", mode="keyword").hits] == [second]
        assert get(site, first).deleted is not None


def test_facts_that_were_dropped_stay_dropped_and_confidence_is_the_latest(pair: list[Site]) -> None:
    one, other = pair
    memory_id = remembered(one, "about Alice", extract=False)
    kept, dropped = one.engine.add_facts(memory_id, FACTS)
    exchange(pair)
    old = other.export()
    other.now += timedelta(days=3)
    other.engine.reinforce(kept.id, "explicit")
    one.engine.drop_facts(dropped.id)
    exchange(pair)
    one.take(old)
    assert [each.id for each in one.store.facts_of([memory_id])[memory_id]] == [kept.id]
    (after,) = one.store.facts_by_id([kept.id])
    assert after.touched == other.now


def test_an_export_since_a_number_has_only_what_changed(pair: list[Site]) -> None:
    one, _ = pair
    tea, coffee = remembered(one, "tea"), remembered(one, "coffee")
    (fact,) = one.engine.add_facts(coffee, FACTS[:1])
    one.engine.add_entity("Carol")
    one.engine.save_lens(Lens(name="mine"))

    def seq() -> int:
        header = transfer.read_line(one.export()[0])
        assert isinstance(header, Header)
        return header.seq

    def changed(since: int) -> list[str]:
        return [type(transfer.read_line(each)).__name__ for each in one.export(since)[1:]]

    number = seq()
    assert changed(number) == []
    one.engine.update(tea, tags=["x"])
    assert changed(number) == ["MemoryRecord"]
    number = seq()
    one.engine.reinforce(fact.id, "explicit")
    assert changed(number) == []  # nothing to reinforce
    one.now += timedelta(days=9)
    one.engine.reinforce(fact.id, "explicit")
    assert changed(number) == ["FactRecord"]
    number = seq()
    one.engine.add_entity("Carol", kind="person")
    assert changed(number) == ["EntityRecord"]
    number = seq()
    one.engine.drop_entity("Carol")
    assert changed(number) == ["Dropped"]
    number = seq()
    one.engine.save_lens(Lens(name="mine", limit=3))
    assert changed(number) == ["LensRecord"]
    number = seq()
    one.engine.purge(tea)
    assert set(changed(number)) == {"EventRecord"}
    number = seq()
    one.store.link_updates([])
    assert changed(number) == []


def test_a_filter_exports_what_belongs_to_the_chosen_memories_alone(pair: list[Site]) -> None:
    from nacre.types.search import Filter

    one, other = pair
    chosen_one = remembered(one, "Alice lives in Berlin", tags=["x"])
    remembered(one, "Bob lives in Rome", tags=["y"])
    one.engine.add_entity("Carol")
    one.engine.save_lens(Lens(name="mine"))
    lines = list(transfer.lines(one.engine.export(Filter(tags_all=["x"]))))
    assert "Bob" not in "".join(lines)
    assert "Carol" not in "".join(lines)
    other.take(lines)
    assert [each.memory.id for each in records(other, MemoryRecord)] == [chosen_one]
    assert {each.name for each in records(other, EntityRecord)} == {"Alice", "Berlin"}


def test_a_confined_engine_exports_its_space_and_takes_in_no_other(pair: list[Site]) -> None:
    one, other = pair
    remembered(one, "mine")
    remembered(one, "theirs", space="other")
    confined = Nacre(one.store, None, space="other", confined=True, log=False)
    assert [each.memory.text for each in confined.export() if isinstance(each, MemoryRecord)] == ["theirs"]
    target = Nacre(other.store, None, space="other", confined=True, log=False)
    *_, done = target.load(one.engine.export())
    assert (done.added, done.left_out) == (1, 1)
    assert [each.memory.text for each in records(other, MemoryRecord)] == ["theirs"]


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_an_import_beyond_a_quota_leaves_nothing(kind: str, tmp_path: Path) -> None:
    with sites("reference") as (one,), ExitStack() as stack:
        one.engine.remember_many(["tea", "coffee", "milk"])
        schemas = stack.enter_context(fresh_schemas()) if kind == "postgres" else None
        store = new_store(kind, tmp_path / "a.db", schemas, Quotas(memories_max=2))
        target = Nacre(store, None, log=False)
        with pytest.raises(QuotaExceeded):
            list(target.load(one.engine.export()))
        assert target.stats().memories == target.stats().events == 0
        store.close()


def test_secrets_are_handled_as_in_every_write(pair: list[Site]) -> None:
    one, other = pair
    memory_id = remembered(one, "plain", metadata={"password": "hunter2hunter2"})
    one.engine.update(memory_id, text="my password: hunter2hunter2")
    one.engine.update(memory_id, text="plain again <private>whispered</private> or so")
    target = Nacre(other.store, None, secrets="redact", log=False)
    *_, done = target.load(one.engine.export())
    assert done.screened == 1
    assert "hunter2" not in "".join(other.export())
    refusing = Nacre(MemoryStore(), None, secrets="refuse", log=False)
    refused: list[int] = []
    *_, done = refusing.load(one.engine.export(), refused=lambda number, _: refused.append(number))
    assert (done.added, refused[:1]) == (0, [2])


def test_near_duplicates_are_looked_for_among_what_was_there(pair: list[Site]) -> None:
    one, other = pair
    first = remembered(one, "we met Bob on Monday in the old town")
    second = remembered(other, "We met Bob on Monday in the old town!")
    send(*pair)
    assert other.store.similar([second]) == {second: (first,)}
    other.engine.separate(second)
    send(*pair[::-1])
    assert one.store.similar([first]) == {}
    assert all(each.apart for each in records(one, SimilarRecord))


def test_what_is_no_export_is_refused(pair: list[Site]) -> None:
    one, _ = pair
    with pytest.raises(NacreError, match="do not begin with a Header"):
        list(one.engine.load([]))
    some: list[Record] = [Header(store="x", at=START, seq=0), Header(store="x", at=START, seq=0)]
    with pytest.raises(NacreError, match="second header"):
        list(one.engine.load(some))


def test_new_memory_in_the_same_moment() -> None:
    """Times that are equal are decided by what the memories are, on every machine alike."""
    with sites("sqlite", "reference") as pair:
        one, other = pair
        tea = remembered(one, "tea")
        exchange(pair)
        one.engine.update(tea, tags=["a"])
        other.engine.update(tea, tags=["b"])
        exchange(pair)
        remembered(one, "x", key="k")
        remembered(other, "y", key="k")
        exchange(pair)
