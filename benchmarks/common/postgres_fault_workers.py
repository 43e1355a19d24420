"""What the clients of `benchmarks.postgres_faults` do, and what must be true of a store afterwards.

A client says what it is about to do and what the store will have then, and once that is acknowledged, that it is done.
So it is known at any moment what must be there, and which operations may or may not have happened: those of clients
that were killed meanwhile, and those of which an error said that they may not be stored.

Each memory has a tag, the first word of every text that it gets. So its versions are known, and its copies, if any.
"""

from __future__ import annotations

import faulthandler
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias

import nacre
from benchmarks.common.fault_workers import MODES, WORDS
from benchmarks.common.paths import BENCHMARKS
from nacre.embedders.hashing import Hashing
from nacre.errors import NacreError, NotFound
from nacre.types.memory import NewMemory

sys.path.append(str(BENCHMARKS.parent / "tests"))

from postgres_checks import check_derived_tables

SPACES = ("own", "shared", "shared")  # of a client, and of all
OPERATIONS = ("remember", "remember", "remember", "put", "put", "update", "forget", "restore", "purge", "facts")
BATCH_MAX = 6
LOOKED_FOR = 6  # of the memories that must be there, how many are also searched for; and of those that must not
REPEATED = 0.5  # of the writes whose fate is unknown, which share is repeated until it is acknowledged
REPEATS_MAX = 20
BUSY_TIMEOUT_MS = 10_000
# What an error says of a write whose fate is unknown.
UNKNOWN = ("it may not be stored", "a part of what was given is stored")


class State(NamedTuple):
    """What is stored of one memory."""

    status: Literal["live", "forgotten"]
    text: str
    facts: tuple[str, ...] = ()  # their subjects, sorted
    older: str = ""  # the tag of what it supersedes
    events: int | None = 1  # None: it is not known how many


States: TypeAlias = Mapping[str, State | None]  # by tag; None: nothing
Said: TypeAlias = tuple[Any, ...]


class Verdict(NamedTuple):
    """What became of one round, or of several together."""

    rounds: int = 0
    acknowledged: int = 0  # operations
    unknown: int = 0  # operations under way at a kill, or that may be stored as an error says
    stored: int = 0  # of these
    refused: int = 0  # operations that an error of Nacre refused
    lost: int = 0  # memories that are not as they were acknowledged
    doubled: int = 0  # memories that are there twice, or with events or facts too many
    ghosts: int = 0  # that nobody wrote, or that are there or found though they are gone
    half: int = 0  # operations of which a part is there; stores whose tables disagree
    wrong: int = 0  # searches that do not find what is there
    hangs: int = 0
    crashes: int = 0  # clients that raised something that is no error of Nacre

    def __add__(self, other: Verdict) -> Verdict:  # type: ignore[override]
        return Verdict(*map(sum, zip(self, other, strict=True)))

    @property
    def bad(self) -> int:
        return self.lost + self.doubled + self.ghosts + self.half + self.wrong + self.hangs + self.crashes


class Unknown(NamedTuple):
    """An operation that may or may not have happened."""

    before: States
    after: States


@dataclass
class Expected:
    """What must be in a store."""

    states: dict[str, State | None] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)

    def judge(self, found: Mapping[str, Sequence[State]]) -> Verdict:
        """Compare with what is found. Operations whose fate is unknown happened as a whole, or not at all.

        What became of these is expected from now on.
        """
        verdict = Verdict()
        in_doubt = {tag for each in self.unknown for tag in each.after}
        for tag, several in found.items():
            verdict += Verdict(
                doubled=int(len(several) > 1), ghosts=int(tag not in self.states | dict.fromkeys(in_doubt))
            )
        for tag, expected in self.states.items():
            if tag not in in_doubt:
                verdict += _judged(tag, expected, found.get(tag, ()))
        for each in self.unknown:
            happened = all(_same(after, found.get(tag, ())) for tag, after in each.after.items())
            did_not = all(_same(before, found.get(tag, ())) for tag, before in each.before.items())
            if not (happened or did_not):
                _tell("half", f"{each.before} -> {each.after}: {[found.get(tag) for tag in each.after]}")
            verdict += Verdict(unknown=1, stored=int(happened), half=int(not (happened or did_not)))
            self.states |= {tag: found[tag][0] if found.get(tag) else None for tag in each.after}
        self.unknown.clear()
        return verdict

    def live(self) -> list[str]:
        """Texts that must be found."""
        return [each.text for each in self.states.values() if each and each.status == "live"]

    def gone(self) -> list[str]:
        """Tags that no search may find."""
        return [tag for tag, each in self.states.items() if not each or each.status != "live"]


def _same(expected: State | None, found: Sequence[State]) -> bool:
    if expected is None or not found:
        return expected is None and not found
    return found[0] == (expected if expected.events is not None else expected._replace(events=found[0].events))


def _judged(tag: str, expected: State | None, found: Sequence[State]) -> Verdict:
    if _same(expected, found):
        return Verdict()
    _tell("differs", f"{tag}: {expected} expected, {found} found")
    if expected is None:
        return Verdict(ghosts=1)
    if not found or found[0]._replace(events=expected.events, facts=expected.facts) != expected:
        return Verdict(lost=1)
    more = len(found[0].facts) > len(expected.facts) or (found[0].events or 0) > (expected.events or 0)
    return Verdict(doubled=int(more), lost=int(not more))


def _tell(kind: str, what: str) -> None:
    print(f"  {kind}: {what[:2_000]}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- clients that write


@dataclass(frozen=True)
class Store:
    """Where the store of a round is."""

    dsn: str
    schema: str
    busy_timeout_ms: int = BUSY_TIMEOUT_MS

    def open(self, **options: Any) -> nacre.Nacre:
        return nacre.open(
            self.dsn, schema=self.schema, embedder=Hashing(), busy_timeout_ms=self.busy_timeout_ms, **options
        )


def work(store: Store, name: str, seed: int, stop: Connection, connection: Connection) -> None:
    """Write, change and delete until told to stop, saying so. Ends with ("end",) or ("crash", what was raised)."""
    faulthandler.enable()
    try:
        with store.open() as memory:
            client = Client(memory, name, Random(seed), connection.send)
            while not stop.poll():
                client.step()
        connection.send(("end",))
    except BaseException:
        connection.send(("crash", traceback.format_exc()))


class Client:
    """Does one operation after the other, on memories of its own."""

    def __init__(self, memory: nacre.Nacre, name: str, chance: Random, say: Callable[[Said], None]) -> None:
        self._memory = memory
        self._name = name
        self._chance = chance
        self._say = say
        self._states: dict[str, State | None] = {}  # of memories whose fate is known
        self._ids: dict[str, str] = {}
        self._spaces: dict[str, str] = {}
        self._keyed: set[str] = set()
        self._superseded: set[str] = set()
        self._numbers = 0

    def step(self) -> None:
        """One operation, and sometimes a search for what is there."""
        after, call = self._drawn(self._chance.choice(OPERATIONS))
        before = {tag: self._states.get(tag) for tag in after}
        self._say(("begin", Unknown(before, after)))
        try:
            call()
        except NacreError as error:
            if not any(text in str(error) for text in UNKNOWN):
                self._say(("refused", str(error)))
                return
            self._say(("unknown", str(error)))
            if self._chance.random() >= REPEATED or not self._repeated(call):
                for tag in after:
                    self._states.pop(tag, None)
                return
            after = {tag: each and each._replace(events=None) for tag, each in after.items()}
        self._say(("done", after))
        self._states |= after
        if self._chance.random() < 0.2:
            self._look()

    def _repeated(self, call: Callable[[], object]) -> bool:
        """Repeat what may have happened. That it has, is no error."""
        for _ in range(REPEATS_MAX):
            try:
                call()
                return True
            except NotFound:  # it was purged the first time
                return True
            except NacreError as error:
                self._say(("again", str(error)))
        return False

    def _look(self) -> None:
        live = self._of("live")
        if not live:
            return
        tag = self._chance.choice(live)
        text = self._states[tag].text  # type: ignore[union-attr]
        mode = self._chance.choice(MODES)
        try:
            hits = self._memory.search(text, mode=mode, where=nacre.Filter(spaces=(self._spaces[tag],))).hits
        except NacreError as error:
            self._say(("again", str(error)))
            return
        if all(hit.text != text for hit in hits):
            self._say(("wrong", f"{mode}: {text[:60]}"))

    # ---- what is drawn

    def _of(self, status: str) -> list[str]:
        return [tag for tag, each in self._states.items() if each and each.status == status]

    def _drawn(self, name: str) -> tuple[States, Callable[[], object]]:
        """What the store has after an operation, and the operation."""
        live, forgotten = self._of("live"), self._of("forgotten")
        plain = [each for each in live if each not in self._keyed]
        match name:
            case "put" if self._keyed.intersection(live):
                tag = self._chance.choice(sorted(self._keyed.intersection(live)))
                state = self._after(tag, text=self._text(tag))
                return {tag: state}, partial(self._remember, [(tag, self._put(tag, state.text))])
            case "put":
                tag = self._tag()
                self._keyed.add(tag)
                text = self._text(tag)
                return {tag: State("live", text)}, partial(self._remember, [(tag, self._put(tag, text))])
            case "update" if plain:
                tag = self._chance.choice(plain)
                state = self._after(tag, text=self._text(tag))
                return {tag: state}, lambda: self._memory.update(self._ids[tag], text=state.text)
            case "facts" if plain:
                return self._with_fact(self._chance.choice(plain))
            case "forget" if live:
                tag = self._chance.choice(live)
                return {tag: self._after(tag, status="forgotten")}, lambda: self._memory.forget(self._ids[tag])
            case "restore" if forgotten:
                tag = self._chance.choice(forgotten)
                return {tag: self._after(tag, status="live")}, lambda: self._memory.restore(self._ids[tag])
            case "purge" if unlinked := [each for each in live + forgotten if each not in self._superseded]:
                tag = self._chance.choice(unlinked)
                return {tag: None}, lambda: self._memory.purge(self._ids[tag])
        return self._new(plain)

    def _new(self, plain: Sequence[str]) -> tuple[States, Callable[[], object]]:
        """Several new memories. The first one may have facts, or supersede another one."""
        states, items = {}, []
        space = self._space()
        for place in range(self._chance.randint(1, BATCH_MAX)):
            tag = self._tag(space)
            state = State("live", self._text(tag))
            new = NewMemory(text=state.text, space=space, tags=[self._name])
            inside = [each for each in plain if self._spaces[each] == space]
            if not place and self._chance.random() < 0.3:
                subject = f"f{self._numbers}{tag}"
                new = replace(new, facts=[nacre.NewFact(subject=subject, predicate="moors at", object="the harbour")])
                state = state._replace(facts=(subject,))
            elif not place and inside and self._chance.random() < 0.3:
                older = self._chance.choice(inside)
                self._superseded.add(older)
                new = replace(new, supersedes=self._ids[older])
                state = state._replace(older=older)
            states[tag] = state
            items.append((tag, new))
        return states, partial(self._remember, items)

    def _with_fact(self, tag: str) -> tuple[States, Callable[[], object]]:
        self._numbers += 1
        state = self._states[tag]
        assert state is not None
        subject = f"f{self._numbers}{tag}"
        # As text of a memory that is known, so that it may be repeated: `add_facts` would state the fact twice.
        new = NewMemory(
            text=state.text,
            space=self._spaces[tag],
            facts=[nacre.NewFact(subject=subject, predicate="is near", object="the bridge")],
        )
        return {tag: self._after(tag, facts=tuple(sorted((*state.facts, subject))))}, partial(
            self._remember, [(tag, new)]
        )

    def _after(self, tag: str, **changes: Any) -> State:
        state = self._states[tag]
        assert state is not None
        return state._replace(**changes, events=None if state.events is None else state.events + 1)

    def _remember(self, items: Sequence[tuple[str, NewMemory]]) -> None:
        receipts = self._memory.remember_many([new for _, new in items])
        self._ids |= {tag: receipt.id for (tag, _), receipt in zip(items, receipts, strict=True)}

    def _put(self, tag: str, text: str) -> NewMemory:
        return NewMemory(text=text, space=self._spaces[tag], key=f"key of {tag}")

    def _space(self) -> str:
        space = self._chance.choice(SPACES)
        return self._name if space == "own" else space

    def _tag(self, space: str | None = None) -> str:
        self._numbers += 1
        tag = f"{self._name}x{self._numbers}"
        self._spaces[tag] = space or self._space()
        return tag

    def _text(self, tag: str) -> str:
        self._numbers += 1
        return f"{tag} version{self._numbers} {' '.join(self._chance.choices(WORDS, k=self._chance.randint(3, 25)))}"


# ---------------------------------------------------------------- what is there afterwards


_FOUND = """
SELECT m.text, m.deleted_us IS NULL,
  (SELECT coalesce(array_agg(f.subject ORDER BY f.subject COLLATE "C"), '{}') FROM facts AS f
   WHERE f.space = m.space AND f.row = m.row AND f.origin = 'given'),
  (SELECT coalesce(min(split_part(o.text, ' ', 1)), '') FROM updates AS u
   JOIN memories AS o ON o.space = u.space AND o.row = u.older
   WHERE u.space = m.space AND u.newer = m.row AND u.cue = ''),
  (SELECT count(*) FROM events AS e WHERE e.memory_id = m.id)
FROM memories AS m
"""
_GHOSTS = (
    "SELECT count(*) FROM events AS e WHERE e.before IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = e.memory_id)"
)
_DOUBLED = "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY seq HAVING count(*) > 1) AS several"


def inspect(store: Store, expected: Expected, chance: Random) -> Verdict:
    """Compare a store with what must be in it: rows, derived tables, and what searches find."""
    import psycopg

    found: defaultdict[str, list[State]] = defaultdict(list)
    with psycopg.connect(store.dsn) as db:
        db.execute("SELECT set_config('search_path', %s || ', public', false)", (store.schema,))

        def select(sql: str) -> list[tuple[Any, ...]]:
            return db.execute(sql).fetchall()

        for text, is_live, subjects, older, events in select(_FOUND):
            found[text.split()[0]].append(
                State("live" if is_live else "forgotten", text, tuple(subjects), older, events)
            )
        verdict = expected.judge(found)
        verdict += Verdict(ghosts=select(_GHOSTS)[0][0], doubled=select(_DOUBLED)[0][0])
        try:
            check_derived_tables(select)
        except AssertionError as error:
            _tell("half", traceback.format_exc() + str(error))
            verdict += Verdict(half=1)
        spaces = [space for (space,) in select("SELECT DISTINCT space FROM memories")] or ["shared"]
    return verdict + _searched(store, expected, spaces, chance)


def _searched(store: Store, expected: Expected, spaces: Sequence[str], chance: Random) -> Verdict:
    verdict = Verdict()
    live, gone = sorted(expected.live()), sorted(expected.gone())
    with store.open(log=False) as memory:
        everywhere = nacre.Filter(spaces=tuple(spaces))
        for text in chance.sample(live, min(LOOKED_FOR, len(live))):
            hits = memory.search(text, mode=chance.choice(MODES), where=everywhere).hits
            if all(hit.text != text for hit in hits):  # what supersedes it may stand before it
                _tell("wrong", f"{text[:60]} is not found, but {[hit.text[:40] for hit in hits[:2]]}")
                verdict += Verdict(wrong=1)
        for tag in chance.sample(gone, min(LOOKED_FOR, len(gone))):
            if any(hit.text.split()[0] == tag for hit in memory.search(tag, mode="keyword", where=everywhere).hits):
                _tell("ghost", tag)
                verdict += Verdict(ghosts=1)
    return verdict
