"""What memories say, who they are about, what was delivered and how it was used: in PostgreSQL as in the reference.

Engines with the same clock and ids do the same at random, and all that their stores know is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from nacre.engine.engine import Nacre
from nacre.errors import NacreError
from nacre.interfaces import Store
from nacre.query.parser import parse
from nacre.storage.postgres import PostgresStore
from nacre.storage.reference import MemoryStore
from nacre.types.facts import Fact, FactQuery, NewEntity, NewFact
from nacre.types.memory import NewMemory, Update
from nacre.types.recall_log import Delivery, Mark, Outcome, Receipt, ReceiptFilter, Retention, Unwritten
from postgres_server import fresh_schemas, needs_postgres
from strategies import MOMENTS, OBJECTS, PEOPLE, PREDICATES, SAYINGS, SESSIONS, SPACES, START, ZONE

pytestmark = [pytest.mark.slow, needs_postgres]

KEPT = Retention(days=36_500, bytes_max=10**9)
FEW = Retention(days=1, bytes_max=3_000)
NAMES = (*PEOPLE, "Al ice", "=1", "%", "ÄÖ")
ASKED = parse("alice lives in Berlin, works at acme and uses vim", START, ZONE).terms
OUTCOMES: tuple[Outcome, ...] = ("opened", "used", "wrong")
FACT_TYPES = ("kv", "location", "relationship", "preference", "state")


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


class Numbering:
    def __init__(self) -> None:
        self._given = 0

    def __call__(self, _now: datetime, count: int) -> list[str]:
        first = self._given
        self._given += count
        return [f"id-{number:04}" for number in range(first, self._given)]


@pytest.fixture
def stores() -> Iterator[tuple[PostgresStore, MemoryStore]]:
    with fresh_schemas() as schemas:
        store = PostgresStore(schemas.dsn, schemas.new())
        try:
            yield store, MemoryStore()
        finally:
            store.close()


class Pair:
    """Both stores, each with an engine, and what was done to them."""

    def __init__(self, stores: tuple[Store, ...], draw: Random) -> None:
        self.clock = Clock()
        self.draw = draw
        self.engines = [
            Nacre(store, None, clock=self.clock, make_ids=Numbering(), zone=ZONE, log=False) for store in stores
        ]
        self.ids: list[str] = []
        self.facts: list[Fact] = []
        self.receipts = 0

    def same(self, call: Callable[[Nacre], Any]) -> Any:
        """What both say: an answer, or the class of an error. What is refused changes nothing."""
        before = [engine._store.sequence() for engine in self.engines]
        first, second = (attempt(call, engine) for engine in self.engines)
        assert first == second
        if isinstance(first, type):
            assert before == [engine._store.sequence() for engine in self.engines]
        return first

    # ---- what is drawn

    def memory_ids(self) -> list[str]:
        return self.draw.choices([*self.ids, "never"], k=self.draw.randint(1, 3))

    def fact_ids(self) -> list[str]:
        every = [each.id for each in self.facts]
        return self.draw.choices([*every, "never"] if self.draw.random() < 0.1 else every or ["never"], k=2)

    def some(self, options: tuple[str, ...]) -> list[str]:
        return self.draw.sample(options, self.draw.randint(0, 2))

    def new_fact(self) -> NewFact:
        choice = self.draw.choice
        return NewFact(
            subject=choice(NAMES),
            predicate=choice(PREDICATES),
            object=choice(OBJECTS),
            type=choice(FACT_TYPES),  # type: ignore[arg-type]
            confidence=choice([1, 1.0, 0.6, 1 / 3, 0.05, 0]),
            decay_rate=choice([None, None, 0, 0.5]),
            valid_from=choice([None, None, *MOMENTS[:4]]),
            valid_to=choice([None, None, None, *MOMENTS[3:]]),
            quote=choice([None, 'as it "says", \\N {}']),
            relation=choice([True, False]),
            single=choice([None, None, True, False]),
        )

    def new_entity(self) -> NewEntity:
        kind = self.draw.choice([None, "person"])
        return NewEntity(name=self.draw.choice(NAMES), type=kind, aliases=self.some(NAMES))

    def new_memory(self) -> NewMemory:
        choice = self.draw.choice
        return NewMemory(
            text=f"{choice(SAYINGS)} {choice(['', '', self.draw.randint(0, 99)])}",
            space=choice(SPACES),
            created=choice([None, None, *MOMENTS]),
            happened=choice([None, None, *MOMENTS]),
            facts=[self.new_fact() for _ in range(choice([0, 0, 1, 3]))],
            entities=[self.new_entity() for _ in range(choice([0, 0, 1, 2]))],
            expires=choice([None, None, None, None, timedelta(hours=23)]),
            extract=choice([None, True, False]),
        )

    def new_receipt(self) -> Receipt:
        choice = self.draw.choice
        self.receipts += 1
        deliveries = [
            Delivery(each, choice([1, 2, 2, 3]), choice([0, 0.5]), opened=choice([None, None, START]))
            for each in self.draw.choices([*self.ids, "never"], k=self.draw.randint(0, 4))
        ]
        return Receipt(
            f"r{choice([self.receipts, self.receipts, self.receipts - 1])}",
            self.clock.now - timedelta(hours=choice([0, 0, 1, 30])),
            choice(SPACES[:2]),
            choice([None, *SESSIONS]),
            choice([SAYINGS[0], "who is ✓ 天", "nul \x00 here"]),
            "hybrid",
            choice([None, "a lens"]),
            tuple(deliveries),
            origin=choice([None, None, *SESSIONS]),
            repeat=choice([False, False, False, True]),
        )

    def new_mark(self) -> Mark:
        at = self.clock.now + timedelta(hours=self.draw.choice([-25, 0, 0, 1]))
        names = self.draw.choice([None, *SESSIONS]), self.draw.choice([None, None, *SESSIONS])
        return Mark(tuple(self.memory_ids()), self.draw.choice(OUTCOMES), at, *names)

    def unwritten(self) -> Unwritten:
        receipts = [self.new_receipt() for _ in range(self.draw.randint(0, 3))]
        return Unwritten(tuple(receipts), tuple(self.new_mark() for _ in range(self.draw.randint(0, 2))))

    # ---- what is done

    def step(self) -> None:
        weighted = {
            self.remember: 4, self.add_facts: 3, self.drop_facts: 1, self.update_confidence: 1, self.put_entity: 3,
            self.drop_entity: 1, self.forget: 2, self.restore: 2, self.purge: 1, self.update: 2, self.link: 2,
            self.unlink: 1, self.separate: 1, self.record: 3, self.mark: 2, self.clear: 1, self.lens: 1, self.wait: 1,
        }  # fmt: skip
        self.draw.choices(list(weighted), list(weighted.values()))[0]()

    def remember(self) -> None:
        items = [self.new_memory() for _ in range(self.draw.randint(1, 4))]
        said = self.same(lambda nacre: nacre.remember_many(items))
        self.ids += [each.id for each in said if not each.duplicate] if isinstance(said, list) else []

    def add_facts(self) -> None:
        (memory_id, *_), new = self.memory_ids(), [self.new_fact() for _ in range(self.draw.randint(1, 3))]
        self.same(lambda nacre: nacre.add_facts(memory_id, new))

    def drop_facts(self) -> None:
        ids = self.fact_ids()
        self.same(lambda nacre: nacre.drop_facts(ids))

    def update_confidence(self) -> None:
        if self.facts:
            chosen = self.draw.choices(self.facts, k=3)
            changed = [
                replace(each, confidence=self.draw.choice([0, 0.3, 1.0]), reinforced=self.draw.choice(MOMENTS))
                for each in chosen
            ]
            unknown = replace(changed[0], id="never")
            self.same(lambda nacre: nacre._store.update_confidence([*changed, unknown]))

    def put_entity(self) -> None:
        space, new, ids = self.draw.choice(SPACES), self.new_entity(), self.memory_ids()
        linked = ids if self.draw.random() < 0.7 else []
        self.same(lambda nacre: nacre._store.put_entity(space, new, linked))

    def drop_entity(self) -> None:
        space, name = self.draw.choice(SPACES), self.draw.choice(NAMES)
        self.same(lambda nacre: nacre._store.drop_entity(space, name))

    def forget(self) -> None:
        ids = self.memory_ids()
        self.same(lambda nacre: nacre.forget(ids))

    def restore(self) -> None:
        ids = self.memory_ids()
        self.same(lambda nacre: nacre.restore(ids))

    def purge(self) -> None:
        ids = self.memory_ids()[:1]
        if not self.same(lambda nacre: nacre.get(ids, missing_ok=True)):
            return
        for engine in self.engines:
            engine._store.purge(ids, self.clock.now)  # it says what may stay on the disk

    def update(self) -> None:
        (memory_id, *_), text = self.memory_ids(), f"{self.draw.choice(SAYINGS)} {self.draw.randint(0, 9)}"
        self.same(lambda nacre: nacre.update(memory_id, text=text))

    def pairs(self) -> list[Update]:
        ids = [*self.ids, "never"]
        return [
            Update(self.draw.choice(ids), self.draw.choice(ids), self.draw.choice(["", "cue"]))
            for _ in range(self.draw.randint(1, 6))
        ]

    def link(self) -> None:
        new = self.pairs()
        self.same(lambda nacre: nacre._store.link_updates(new))

    def unlink(self) -> None:
        every = self.same(lambda nacre: nacre._store.updates(self.ids))
        chosen = [*self.draw.choices(every, k=2), *self.pairs()] if every else self.pairs()
        self.same(lambda nacre: nacre._store.unlink_updates(chosen))

    def separate(self) -> None:
        (memory_id, *_) = self.memory_ids()
        self.same(lambda nacre: nacre._store.separate(memory_id))

    def record(self) -> None:
        new = [self.new_receipt() for _ in range(self.draw.randint(0, 4))]
        retention = self.draw.choice([KEPT, KEPT, FEW])
        self.same(lambda nacre: nacre._store.record(new, retention, self.clock.now))

    def mark(self) -> None:
        each = self.new_mark()
        receipt = self.draw.choice([None, None, f"r{self.draw.randint(0, self.receipts + 1)}"])
        how = each.outcome, each.at, each.session, each.origin
        self.same(lambda nacre: nacre._store.mark(receipt, each.memory_ids, *how))

    def clear(self) -> None:
        spaces, session = self.draw.sample(SPACES[:2], 1), self.draw.choice([None, *SESSIONS])
        before = self.draw.choice([None, self.clock.now])
        if self.draw.random() < 0.3:
            self.same(lambda nacre: nacre._store.clear_receipts(spaces, session, before))

    def lens(self) -> None:
        space, name = self.draw.choice(SPACES), self.draw.choice(["one", "Two", "ÄÖ"])
        if self.draw.random() < 0.7:
            body = f'{{"limit": {self.draw.randint(0, 9)}}}'
            self.same(lambda nacre: nacre._store.put_lens(space, name, body))
        else:
            self.same(lambda nacre: nacre._store.drop_lens(space, name))

    def wait(self) -> None:
        self.clock.now += timedelta(hours=self.draw.choice([1, 23, 100]))
        for engine in self.engines:
            engine._store.expire(self.clock.now, 1_000)


def attempt(call: Callable[[Nacre], Any], engine: Nacre) -> Any:
    try:
        return call(engine)
    except NacreError as error:
        return type(error)


# ---------------------------------------------------------------- what is read


def known_facts(nacre: Nacre, ids: list[str], now: datetime) -> list[Any]:
    store = nacre._store
    facts = store.facts_of([*ids, "never"])
    queries = (
        FactQuery(history=True, limit=1_000),
        FactQuery(subject="al", limit=3),
        FactQuery(subject="=1"),
        FactQuery(object="BERLIN", relations=True),
        FactQuery(object="al", history=True, type="kv"),
        FactQuery(predicate="lives_in", history=True, limit=2),
        FactQuery(memory_id=ids[0] if ids else None, history=True),
        FactQuery(min_confidence=0.2, limit=4),
    )
    moments = (now, MOMENTS[1], MOMENTS[-1])
    return [
        facts,
        store.facts_by_id([each.id for several in facts.values() for each in several]),
        [store.facts(replace(each, spaces=SPACES, as_of=now)) for each in queries],
        [store.facts(FactQuery(spaces=SPACES[:2], as_of=moment)) for moment in moments],
        [store.conflicting_facts(SPACES, moment) for moment in moments],
        [store.relations(ASKED, spaces, now, limit) for spaces in (SPACES, SPACES[:1]) for limit in (2, 100)],
        [store.relations_of(["Alice", "paris"], SPACES, now, limit) for limit in (1, 100)],
    ]


def known_entities(nacre: Nacre, ids: list[str]) -> list[Any]:
    store = nacre._store
    return [
        store.entities(SPACES, None, 100),
        store.entities(SPACES[:2], ["ALICE", "bob", "nobody"], 2),
        list(store.entity_counts(SPACES).items()),
        list(store.entity_counts(SPACES[:1]).items()),
        store.entities_of([*ids, "never"]),
    ]


def known_log(nacre: Nacre, ids: list[str], unwritten: Unwritten, now: datetime) -> list[Any]:
    store = nacre._store
    asked = [*((space, session) for space in SPACES[:2] for session in SESSIONS), ("nowhere", "never")]
    receipts = []
    for which in ({}, {"session": SESSIONS[0]}, {"memory_id": ids[-1] if ids else "never"}):
        before: str | None = None
        for spaces in (SPACES[:1], SPACES[:2]):
            receipts.append(page_of(store, ReceiptFilter(spaces=spaces, limit=3, before=before, **which), unwritten))
            before = receipts[-1][-1].id if isinstance(receipts[-1], list) and receipts[-1] else None
    last = store.last_receipt()
    return [
        receipts,
        bool(last),
        [store.delivered(asked, limit, unwritten) for limit in (2, 1_000)],
        store.delivered(asked, 9, after=last - 1),
        [
            list(store.delivered_within(spaces, session, (now - timedelta(hours=2), now), 3, unwritten).items())
            for spaces in (SPACES[:1], SPACES[:2])
            for session in SESSIONS
        ],
    ]


def page_of(store: Store, which: ReceiptFilter, unwritten: Unwritten) -> Any:
    try:
        return store.receipts(which, unwritten)
    except NacreError as error:
        return type(error)


def known_signals(nacre: Nacre, ids: list[str]) -> list[Any]:
    store = nacre._store
    return [
        store.signals([*ids, "never"]),
        store.similar([*ids, "never"]),
        store.updates([*ids, "never"]),
        [store.updates([each]) for each in ids[:3]],
        [list(store.lenses(space).items()) for space in SPACES],
    ]


def changed(nacre: Nacre) -> set[tuple[str, ...]]:
    """The last change of everything; events are compared elsewhere."""
    found = nacre._store.changes(SPACES, 0, 100_000).changes
    return {(each.kind, each.action, each.name, each.space) for each in found}


@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_is_the_same_whatever_was_done(seed: int, stores: tuple[PostgresStore, MemoryStore]) -> None:
    draw = Random(seed)
    pair = Pair(stores, draw)
    pair.remember()
    for _ in range(12):
        for _ in range(5):
            pair.step()
        now, unwritten = pair.clock.now, pair.unwritten()
        facts = pair.same(lambda nacre: known_facts(nacre, pair.ids, now))  # noqa: B023
        pair.facts = [each for several in facts[0].values() for each in several]
        pair.same(lambda nacre: known_entities(nacre, pair.ids))
        pair.same(lambda nacre: known_log(nacre, pair.ids, unwritten, now))  # noqa: B023
        pair.same(lambda nacre: known_signals(nacre, pair.ids))
        pair.same(changed)
