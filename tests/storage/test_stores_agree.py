"""The SQLite store, the PostgreSQL store and the plain reference store give the same answers, whatever is done to them.

A Hypothesis machine drives two engines, of a real store and of the reference, with the same clock, ids and embedder
through every verb and compares all they say. Alphabets are small on purpose: texts, tags and filters have to collide.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import store_checks
from nacre.analysis import tokenizer
from nacre.embedders.hashing import Hashing
from nacre.engine.embedding import further_passages_of
from nacre.engine.engine import Nacre
from nacre.errors import NacreError, QuotaExceeded
from nacre.interfaces import Store, TimePage
from nacre.query.ast import (
    AllOf,
    AnyOf,
    Condition,
    During,
    Linked,
    Near,
    Only,
    ParsedQuery,
    Phrase,
    Term,
    Unexpired,
    Without,
)
from nacre.query.parser import parse
from nacre.ranking.passage_count import gain_by_chance
from nacre.serialization import transfer
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import near_duplicates as sqlite_similar
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite.index import space_index as sqlite_index
from nacre.types.access_tokens import ROLES, Role
from nacre.types.facts import Fact, FactQuery, NewEntity, NewFact
from nacre.types.kept_answers import KeptAnswer
from nacre.types.memory import NewMemory, Purged
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.types.recall_log import (
    NOTHING_UNWRITTEN,
    Delivery,
    Mark,
    Receipt,
    ReceiptFilter,
    Retention,
    Unwritten,
)
from nacre.types.recipe import Recipe, adjusted
from nacre.types.search import Filter, Mode, Period, SearchResult
from nacre.types.stats import Stats
from nacre.types.transfer import ExportRequest
from nacre.validation import findable
from postgres_server import needs_postgres
from stores import REAL_KINDS, REAL_STORES, Stores
from strategies import (
    CALLERS_KEYS,
    MOMENTS,
    OBJECTS,
    PEOPLE,
    SESSIONS,
    SPACES,
    START,
    WELL_KNOWN,
    WORDS,
    ZONE,
    asked_words,
    changes,
    fact_queries,
    filters,
    new_facts,
    new_memories,
    queries,
    recipes,
    some,
    texts,
    views,
    wishes,
)

# ---------------------------------------------------------------- the pair of engines


class Outcome(NamedTuple):
    """What a call gave: an answer, or the class of the error it raised."""

    answer: Any
    error: type[NacreError] | None


def attempt(call: Callable[[Nacre], Any], engine: Nacre) -> Outcome:
    try:
        return Outcome(call(engine), None)
    except NacreError as error:
        return Outcome(None, type(error))


@dataclass
class Clock:
    now: datetime = START

    def __call__(self) -> datetime:
        return self.now


class Numbering:
    """Ids in the order they are asked for; their own for each store, but the same."""

    def __init__(self) -> None:
        self._given = 0

    def __call__(self, _now: datetime, count: int) -> list[str]:
        first = self._given
        self._given += count
        return [f"id-{number:04}" for number in range(first, self._given)]


class Pair:
    """A real store and the reference, each with an engine that embeds and one that does not."""

    def __init__(self, stores: Stores, quotas: Quotas = NO_QUOTAS) -> None:
        self.clock = Clock()
        self._quotas = quotas
        self._stores = stores
        self.place = stores.place()
        self._numbering = Numbering()
        self._reference_store = MemoryStore(quotas)
        self._reference_numbering = Numbering()
        self.reference = self._engines(self._reference_store, self._reference_numbering)
        self._open()

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._real_store.close()

    def check(self) -> None:
        """What the real store derives equals a recount."""
        self._stores.check(self.place)

    def state(self) -> tuple[bytes, datetime] | None:
        """Another whenever anything was written or time passed; None if that cannot be told."""
        commits = self._stores.commits(self.place)
        return (commits, self.clock.now) if commits else None

    def same(self, call: Callable[[Nacre], Any], embedding: bool = True) -> Outcome:
        """Make a call on both stores; what came of it must be the same, and what is refused changes nothing.

        The reference always looks anew, so that what the other found a moment ago must still be right.
        """
        self.reference[embedding]._searcher._results.clear()
        for store in (self._real_store, self._reference_store):  # what is over is no change by the call
            assert store.expire(self.clock.now, 1_000)
        before = self.sequences()
        real, expected = attempt(call, self.real[embedding]), attempt(call, self.reference[embedding])
        found = self._without_place(real)
        assert found == expected, list(differences(found, expected))[:3]
        if real.error is not None:
            assert self.sequences() == before
        return real

    def sequences(self) -> list[tuple[int, int, int]]:
        """By which each store tells that an answer may have changed."""
        return [self._real_store.sequence(), self._reference_store.sequence()]

    def look_anew(self) -> None:
        """A search that delivers a memory may move it a little, but does not end what was found a moment ago."""
        for engine in self.real.values():
            engine._searcher._results.clear()

    def _without_place(self, outcome: Outcome) -> Outcome:
        """Only a store that is somewhere can name its place in a note, and say what of it others have to free."""

        def plain(answer: Any) -> Any:
            if isinstance(answer, Purged) and not isinstance(self.place, Path):
                return answer._replace(pending=None)
            if isinstance(answer, SearchResult):
                return replace(answer, notes=tuple(self._places.sub("", note) for note in answer.notes))
            return [plain(each) for each in answer] if type(answer) is list else answer

        return Outcome(plain(outcome.answer), outcome.error)

    def move(self, *, crosswise: bool) -> None:
        """Go on with new stores that have taken in what the old ones export; `crosswise`, each what the other does."""
        exported = [list(_exported(store)) for store in (self._real_store, self._reference_store)]
        self.close()
        self.place = self._stores.place()
        self._reference_store = MemoryStore(self._quotas)
        self.reference = self._engines(self._reference_store, self._reference_numbering)
        self._open()
        ordered = exported[::-1] if crosswise else exported
        for store, lines in zip((self._real_store, self._reference_store), ordered, strict=True):
            header, mark = transfer.read_header(lines[0]), store.load_mark()
            for model in header.further_models:
                store.add_model(model)
            for start in range(1, len(lines), _BATCH):
                batch = [transfer.read_record(line) for line in lines[start : start + _BATCH]]
                store.load(batch, mark, header.model, header.token_model)
            again = list(_exported(store))[1:]
            assert sorted(again) == sorted(lines[1:])
            assert not store.load([*map(transfer.read_record, again)], mark, header.model, header.token_model).events

    def _open(self) -> None:
        self._real_store = self._stores.open(self.place, quotas=self._quotas)
        self.real = self._engines(self._real_store, self._numbering)
        self._places = re.compile("|".join(re.escape(f" of {each}") for each in self._stores.shown(self.place)))

    def _engines(self, store: Store, numbering: Numbering) -> dict[bool, Nacre]:
        return {
            embedding: Nacre(
                store,
                FewPieces(64) if embedding else None,
                further=Further(16),
                clock=self.clock,
                make_ids=numbering,
                zone=ZONE,
                log=False,
            )
            for embedding in (False, True)
        }


@contextmanager
def opened_pair(kind: str, quotas: Quotas = NO_QUOTAS) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory() as folder, Stores(kind, Path(folder)) as stores:
        pair = Pair(stores, quotas)
        yield pair
        pair.close()
        pair.check()


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two answers differ: they are too long to be read as a whole."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{place}[{key!r}]")
    elif type(one) is type(other) and isinstance(one, tuple | list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{at}]")
    elif one != other:
        yield f"{place}: {one} is not {other}"


_BATCH = 7  # records of one transaction


def _exported(store: Store) -> Iterator[str]:
    return transfer.lines(store.dump(ExportRequest(START, vectors=True)))


class FewPieces(Hashing):
    """Texts of more than a few words have several passages."""

    @property
    def pieces_max(self) -> int:
        return 6


class Further(FewPieces):
    """A further model, which does not know what has a letter `q`."""

    languages = frozenset({"de", "en"})

    def vocabulary_coverage(self, text: str) -> float:
        return 0.0 if "q" in text else 1.0


FURTHER, OTHER_FURTHER = Further(16).fingerprint, Further(8).fingerprint


def without_vectors_yet(engine: Nacre, where: Filter, *, one_count: bool) -> tuple[Any, ...]:
    """The first of them, all, and how many.

    `one_count`: they are in the order of writing. Nodes count apart, and only memories of one space are in order.
    """
    pending = engine._store.pending
    ordered = [where] if one_count else [replace(where, spaces=(each,)) for each in where.spaces]
    first, every = [pending(each, 3) for each in ordered], sorted(pending(where, 1_000))
    some_of_them = pending(where, 3)
    assert set(some_of_them) <= set(every)
    return first, len(some_of_them), every, engine._store.pending_count(where)


def comparable(stats: Stats) -> Stats:
    return replace(stats, schema_version=0, size_bytes=0, index_bytes=0)


def happened(engine: Nacre, memory_id: str) -> list[tuple[str, Any]]:
    """The history without times and numbers: those are the store's own."""
    return [(event.action, to_plain(event.before)) for event in engine.history(memory_id)]


def to_plain(value: object) -> str:
    """JSON text tells true from 1 and 1 from 1.0, which Python's == does not."""
    return json.dumps(value, sort_keys=True)


def everything(engine: Nacre, ids: list[str]) -> tuple[Any, ...]:
    """All that can be read without asking a question."""
    found = {each: attempt(lambda nacre, wanted=each: nacre.get(wanted)[0], engine) for each in ids}  # type: ignore[misc]
    kept = {each: outcome.answer for each, outcome in found.items()}
    types = {each: to_plain(memory.metadata) for each, memory in kept.items() if memory is not None}
    return found, types, comparable(engine.stats()), {each: happened(engine, each) for each in ids}


ASKED = parse("alice lives in Berlin, works at acme and uses vim", START, ZONE).terms


def knowledge(engine: Nacre, ids: list[str]) -> tuple[Any, ...]:
    """All that the store knows of what memories say, of who they are about, and of which say the same."""
    store = engine._store
    facts = store.facts_of([*ids, "never"])
    named = [each.id for several in facts.values() for each in several]
    listed = [store.facts(FactQuery(spaces=SPACES, as_of=moment)) for moment in MOMENTS]
    listed += [
        store.facts(replace(query, spaces=SPACES, as_of=START))
        for query in (
            FactQuery(history=True, limit=1_000),
            FactQuery(subject="al"),
            FactQuery(object="BERLIN", relations=True),
            FactQuery(predicate="lives_in", history=True, limit=2),
        )
    ]
    conflicting = [
        sorted(store.conflicting_facts(SPACES, moment), key=lambda group: group[0].id) for moment in MOMENTS[::2]
    ]
    entities = [store.entities(SPACES, None, 100), store.entities(SPACES[:2], ["ALICE", "bob", "nobody"], 100)]
    found = [store.relations(ASKED, spaces, START, limit) for spaces in (SPACES, SPACES[:1]) for limit in (2, 100)]
    neighbours = [
        store.relations_of(["Alice", "paris"], SPACES, moment, limit) for moment, limit in ((START, 100), (START, 1))
    ]
    about = {name: store.matching([*ids, "never"], Linked(name)) for name in ("alice", "al", "bob", "acme", "berlin")}
    alike = store.similar([*ids, "never"])
    entities_of = store.entities_of([*ids, "never"])
    by_id = sorted(store.facts_by_id([*named, "never"]), key=lambda fact: fact.id)
    links = store.updates([*ids, "never"]), [store.updates([each]) for each in ids]
    return facts, by_id, listed, conflicting, entities, found, neighbours, about, alike, entities_of, links


def side_by_side(engine: Nacre, ids: Sequence[str]) -> list[Any]:
    """Who stands next to whom in a session, by different widths."""
    return [
        engine._store.neighbours([*ids, "never"], before, after, turns=turns)
        for before, after in ((1, 1), (0, 2), (3, 0), (50, 50))
        for turns in (False, True)
    ]


EVERYTHING_KEPT = Retention(days=36_500, bytes_max=10**9)
END = START + timedelta(days=1_000)


def delivered_to_sessions(engine: Nacre, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Any]:
    """What each session was told, in order; of all at once, and of the latest few."""
    asked = [*((space, session) for space in SPACES[:2] for session in SESSIONS), ("nowhere", "never")]
    recent = [
        list(
            engine._store.delivered_within(spaces, session, (START - timedelta(hours=2), end), 1_000, unwritten).items()
        )
        for end in (START + timedelta(hours=1), END)
        for spaces in (SPACES[:1], SPACES[:2])
        for session in SESSIONS
    ]
    return [recent, *(engine._store.delivered(asked, limit, unwritten) for limit in (2, 1_000))]


class Held:
    """What a caller holds of one store: how far it has seen the changes, secrets of tokens, tickets of requests."""

    def __init__(self) -> None:
        self.seq: int | None = None
        self.secrets: list[str] = []
        self.tickets: list[str] = []


def followed(engine: Nacre, held: Held, limit: int, *, one_count: bool = True) -> list[tuple[str, ...]]:
    """What changed since the last look, page by page, without times and numbers: those are the store's own.

    `one_count`: changes are numbered one by one. Nodes count apart, and only changes of one space are in order.
    """
    seen: list[tuple[str, ...]] = []
    while True:
        page = engine.changes(held.seq, spaces=SPACES, limit=limit)
        numbers = [each.seq for each in page.changes]
        assert numbers == sorted(set(numbers) if one_count else numbers)
        assert all(held.seq is not None and held.seq < each <= page.seq for each in numbers)
        if page.more:
            assert len(numbers) == limit if one_count else held.seq is not None and held.seq < page.seq
        seen += [(each.kind, each.action, each.name, each.space) for each in page.changes]
        held.seq = page.seq
        if not page.more:
            return seen if one_count else sorted(seen, key=lambda each: each[3])


def pages(engine: Nacre, **options: Any) -> list[Any]:
    """Every page of a timeline, following the cursors."""
    listed = [engine.timeline(**options)]
    while (cursor := listed[-1].next) is not None:
        listed.append(engine.timeline(**{**options, "cursor": cursor}))
    return listed


# ---------------------------------------------------------------- every way of asking

MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")


def found_in_each_mode(engine: Nacre, query: str, where: Filter, recipe: Recipe, limit: int) -> list[SearchResult]:
    return [engine.search(query, mode=mode, where=where, recipe=recipe, limit=limit) for mode in MODES]


def read_by_condition(engine: Nacre, question: ParsedQuery, where: Filter) -> tuple[Any, ...]:
    """What the store itself says of a question: counts, and the memories that meet its conditions, by time."""
    store = engine._store
    tally = store.facet_counts(question, where)
    counted = [dict(each) for each in (tally.kinds, tally.namespaces, tally.tags, tally.sources, tally.created)]
    listed = [
        store.by_time(where, TimePage(2), must=question.must),
        store.by_time(where, TimePage(100, oldest_first=True), must=question.must),
        store.by_time(where, TimePage(100, after=(START, "id-0003")), must=question.must),
    ]
    return tally.total, counted, listed


def known_words(engine: Nacre, asked: Sequence[str], spaces: Sequence[str]) -> tuple[Any, ...]:
    """Numbers of memories by token, and the spellings that each word may be meant for."""
    words = map(findable, asked)
    tokens = [token for word in words for token in (word.lower(), *tokenizer.query_tokens(word))]
    frequencies = engine._store.frequencies(tokens, spaces)
    spelled = {word: sorted(engine._store.spellings(word, spaces)) for word in tokens if word.isalpha()}
    return frequencies.memories, dict(frequencies.having), spelled


def vectors(engine: Nacre, ids: Sequence[str]) -> dict[str, Any]:
    found = {each: engine._store.vectors(each) for each in ids}
    return {each: None if matrix is None else matrix.tolist() for each, matrix in found.items()}


def further_vectors(engine: Nacre, ids: Sequence[str]) -> tuple[Any, ...]:
    """What further models have made of memories, and what they have yet to do."""
    store, where = engine._store, Filter(spaces=SPACES[:1])
    found: list[Any] = []
    for model in (FURTHER, OTHER_FURTHER):
        matrices = {each: store.vectors(each, model) for each in ids} if model in store.further_models() else {}
        found += [
            {each: None if matrix is None else matrix.tolist() for each, matrix in matrices.items()},
            store.without_vectors(ids, model),
            [(sorted(store.pending(each, 100, model)), store.pending_count(each, model)) for each in (None, where)],
        ]
    found += [store.has_language(SPACES[:1], languages) for languages in (("de",), ("ru", "fr", "zh"), ())]
    return store.further_models(), found


def near_by(engine: Nacre, model: str, question: ParsedQuery, where: Filter, limit: int) -> tuple[Any, ...]:
    """The memories that are nearest by a further model."""
    asked = Further(16 if model == FURTHER else 8).embed_query("tea for alice")
    return tuple(engine._store.semantic(asked, model, question, where, limit, weight) for weight in (0.0, 0.05))


def token_vectors(engine: Nacre, ids: Sequence[str]) -> tuple[Any, ...]:
    """What late interaction reads, of both models that the machine knows, and which memories lack it."""
    store = engine._store
    query = Hashing(64).embed_query("tea for alice")
    found = [
        store.token_vectors(ids, model, query, passages_max)
        for model in (Hashing().token_fingerprint, OTHER_TOKENS)
        for passages_max in (1, 4)
    ]
    where = Filter(spaces=SPACES[:1])
    lacking = [(sorted(store.pending_tokens(each, 100)), store.pending_tokens_count(each)) for each in (None, where)]
    return store.token_model(), found, lacking


OTHER_TOKENS = "other tokens"
NO_QUESTION = ParsedQuery((), None, "")
CONDITIONED = [parse(query, START, ZONE) for query in ('"alice"', "kind:note", "-tea")]

# ---------------------------------------------------------------- the machine


class Machine(RuleBasedStateMachine):
    kind = "sqlite"
    pair: Pair

    @initialize(items=st.lists(new_memories(), max_size=10), knowing=st.booleans(), low=st.booleans())
    def begin(self, items: list[NewMemory], knowing: bool, low: bool) -> None:
        self._stack = ExitStack()
        self.low = low
        self.change_constants(self._stack.enter_context(pytest.MonkeyPatch.context()))
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self.pair = Pair(self._stack.enter_context(Stores(self.kind, Path(folder))))
        self.ids: list[str] = []
        self.facts: list[Fact] = []
        self.searches = 0
        self.last_read: tuple[Any, list[tuple[int, int, int]]] | None = None
        self.checked: tuple[bytes, datetime] | None = None
        self.cursors: list[str] = []
        self.held = Held(), Held()
        self.further_model(FURTHER, dropped=False)
        self.remember_many([*items, *(WELL_KNOWN if knowing else ())], embedding=True, bad=False)

    def change_constants(self, patch: pytest.MonkeyPatch) -> None:
        sharing = sqlite_similar._SHARING.replace(f"LIMIT {sqlite_similar._SHARING_MAX}", "LIMIT 1000")
        patch.setattr(sqlite_similar, "_COMPARED_MAX", 1_000)  # the reference compares with all
        patch.setattr(sqlite_similar, "_SHARING", sharing)

    def teardown(self) -> None:
        if hasattr(self, "_stack"):
            with self._stack:
                if hasattr(self, "pair"):
                    self.pair.close()
                    self.check_at_end()

    def check_at_end(self) -> None:
        assert isinstance(self.pair.place, Path)
        store_checks.check_integrity(self.pair.place)

    def chosen(self, numbers: list[int]) -> list[str]:
        """Ids by number, counted round. Some are purged by now, and one never was."""
        every = [*self.ids, "never"]
        return [every[number % len(every)] for number in numbers]

    numbers = st.lists(st.integers(0, 100), min_size=1, max_size=3)

    # ---- writing

    @rule(item=st.one_of(texts, new_memories()), embedding=st.booleans())
    def remember(self, item: str | NewMemory, embedding: bool) -> None:
        outcome = self.pair.same(lambda nacre: nacre.remember(item), embedding)
        self._note_ids([outcome.answer] if outcome.answer else [])

    @rule(items=st.lists(new_memories(), max_size=6), embedding=st.booleans(), bad=st.booleans())
    def remember_many(self, items: list[NewMemory], embedding: bool, bad: bool) -> None:
        batch = [*items, NewMemory(text="  ")] if bad else items
        outcome = self.pair.same(lambda nacre: nacre.remember_many(batch), embedding)
        assert outcome.error is not None or not bad
        self._note_ids(outcome.answer or [])

    @rule(text=texts, space=st.sampled_from([None, None, *SPACES]), numbers=numbers)
    def supersede(self, text: str, space: str | None, numbers: list[int]) -> None:
        outcome = self.pair.same(lambda nacre: nacre.remember(text, space=space, supersedes=self.chosen(numbers)))
        self._note_ids([outcome.answer] if outcome.answer else [])

    @rule(newer=st.integers(0, 100), older=st.integers(0, 100))
    def unlink(self, newer: int, older: int) -> None:
        self.pair.same(lambda nacre: nacre.unlink(*self.chosen([newer, older])))

    def _note_ids(self, receipts: list[Any]) -> None:
        self.ids += [receipt.id for receipt in receipts if not receipt.duplicate]

    @rule(number=st.integers(0, 100), change=changes, embedding=st.booleans())
    def update(self, number: int, change: dict[str, Any], embedding: bool) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.update(memory_id, **change), embedding)

    @rule(numbers=numbers, unknown=st.booleans())
    def forget(self, numbers: list[int], unknown: bool) -> None:
        ids = [*self.chosen(numbers), *(["nobody"] if unknown else [])]
        self.pair.same(lambda nacre: nacre.forget(ids, missing_ok=unknown))

    @rule(keys=some(CALLERS_KEYS), space=st.sampled_from([None, *SPACES]), missing_ok=st.booleans(), gone=st.booleans())
    def by_key(self, keys: tuple[str, ...], space: str | None, missing_ok: bool, gone: bool) -> None:
        self.pair.same(lambda nacre: nacre.get(keys=keys, space=space, missing_ok=missing_ok))
        if gone:
            self.pair.same(lambda nacre: nacre.forget(keys=keys, space=space, missing_ok=missing_ok))

    @rule(where=st.one_of(filters(), queries), forgotten=st.booleans())
    def every(self, where: Filter | str, forgotten: bool) -> None:
        self.pair.same(lambda nacre: list(nacre.every(where, forgotten=forgotten)))

    @rule(numbers=numbers)
    def restore(self, numbers: list[int]) -> None:
        self.pair.same(lambda nacre: nacre.restore(self.chosen(numbers)))

    @rule(numbers=numbers)
    def purge(self, numbers: list[int]) -> None:
        self.pair.same(lambda nacre: nacre.purge(self.chosen(numbers)))

    # ---- writing what memories say

    @rule(number=st.integers(0, 100), facts=st.lists(new_facts, max_size=3))
    def add_facts(self, number: int, facts: list[NewFact]) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.add_facts(memory_id, facts))

    @rule(numbers=numbers)
    def drop_facts(self, numbers: list[int]) -> None:
        every = [*(fact.id for fact in self.facts), "never"]
        self.pair.same(lambda nacre: nacre.drop_facts([every[number % len(every)] for number in numbers]))

    @precondition(lambda self: self.facts)
    @rule(numbers=numbers, confidence=st.sampled_from([0.0, 0.3, 2 / 3, 1.0]), moment=st.sampled_from(MOMENTS))
    def update_confidence(self, numbers: list[int], confidence: float, moment: datetime) -> None:
        chosen = [self.facts[number % len(self.facts)] for number in numbers]
        changed = [replace(fact, confidence=confidence, reinforced=moment, touched=START) for fact in chosen]
        self.pair.same(lambda nacre: nacre._store.update_confidence([*changed, replace(changed[0], id="never")]))

    @rule(numbers=numbers, how=st.sampled_from(["explicit", "import", "reference", "recall", "never"]))
    def reinforce(self, numbers: list[int], how: Any) -> None:
        every = [*(fact.id for fact in self.facts), *self.ids]
        named = [every[number % len(every)] for number in numbers if every]
        self.pair.same(lambda nacre: nacre.reinforce(named, how))

    @rule(
        name=st.sampled_from(PEOPLE),
        kind=st.sampled_from([None, "person"]),
        aliases=some(PEOPLE),
        numbers=st.one_of(st.just([]), numbers),
        space=st.sampled_from([None, None, *SPACES]),
    )
    def add_entity(
        self, name: str, kind: str | None, aliases: tuple[str, ...], numbers: list[int], space: str | None
    ) -> None:
        linked = self.chosen(numbers)
        self.pair.same(lambda nacre: nacre.add_entity(name, kind=kind, aliases=aliases, memory_ids=linked, space=space))

    @rule(name=st.sampled_from([*PEOPLE, "nobody"]), space=st.sampled_from([None, None, *SPACES]))
    def drop_entity(self, name: str, space: str | None) -> None:
        self.pair.same(lambda nacre: nacre.drop_entity(name, space))

    @rule(number=st.integers(0, 100))
    def separate(self, number: int) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.separate(memory_id))

    @rule(
        numbers=numbers,
        space=st.sampled_from(SPACES[:2]),
        session=st.sampled_from([None, *SESSIONS]),
        whole=st.booleans(),
    )
    def deliver(self, numbers: list[int], space: str, session: str | None, whole: bool) -> None:
        """Which memories a search delivered is written without haste, and changes no sequence."""
        self.searches += 1
        now = self.pair.clock.now
        opened = now if whole else None
        delivered = tuple(Delivery(each, rank, 0.01, opened) for rank, each in enumerate(self.chosen(numbers), 1))
        log = Receipt(f"r{self.searches}", now, space, session, "asked", "hybrid", None, delivered)
        self.pair.same(lambda nacre: nacre._store.record([log], EVERYTHING_KEPT, START))
        self.pair.look_anew()

    @precondition(lambda self: self.searches)
    @rule(numbers=numbers, outcome=st.sampled_from(["opened", "used", "wrong"]))
    def mark(self, numbers: list[int], outcome: Any) -> None:
        self.pair.same(lambda nacre: nacre.mark(self.chosen(numbers), outcome))

    @precondition(lambda self: self.searches)
    @rule(number=st.integers(0, 100), outcome=st.sampled_from(["opened", "used"]), session=st.sampled_from(SESSIONS))
    def mark_for_a_session(self, number: int, outcome: Any, session: str) -> None:
        at = self.pair.clock.now
        self.pair.same(lambda nacre: nacre._store.mark(None, self.chosen([number]), outcome, at, session))

    @rule()
    def reembed(self) -> None:
        self.pair.same(lambda nacre: list(nacre.reembed()))

    @rule(dimensions=st.sampled_from([32, 64]))
    def switch_model(self, dimensions: int) -> None:
        """Interrupted before the first vector: everything is pending, and writes with the old model are refused."""
        model = Hashing(dimensions).fingerprint
        self.pair.same(lambda nacre: nacre._store.switch_model(model))

    @rule(model=st.sampled_from([FURTHER, OTHER_FURTHER]), dropped=st.booleans())
    def further_model(self, model: str, dropped: bool) -> None:
        def change(nacre: Nacre) -> None:
            if dropped:
                nacre._store.drop_model(model)
            if model == FURTHER or not dropped:  # or an engine would add its own, by a call that is refused, too
                nacre._store.add_model(model)

        self.pair.same(change)

    @rule(numbers=numbers, model=st.sampled_from([FURTHER, OTHER_FURTHER]), other=st.booleans())
    def embed_further(self, numbers: list[int], model: str, other: bool) -> None:
        """Of memories that may be gone, have vectors, or have another text by now."""
        embedder = Further(16 if model == FURTHER else 8)

        def embed(nacre: Nacre) -> int | None:
            if model not in nacre._store.further_models():
                return None
            found = nacre._store.get(self.chosen(numbers))
            texts = {each: f"{memory.text} then" if other else memory.text for each, memory in found.items()}
            return nacre._store.embed(further_passages_of(embedder, texts), texts, model)

        self.pair.same(embed)

    @rule(question=st.sampled_from([NO_QUESTION, *CONDITIONED]), where=filters(), limit=st.integers(1, 20))
    def search_by_further_model(self, question: ParsedQuery, where: Filter, limit: int) -> None:
        filled = where if where.spaces else replace(where, spaces=SPACES)
        for model in (FURTHER, OTHER_FURTHER):
            self.pair.same(lambda nacre, model=model: near_by(nacre, model, question, filled, limit))  # type: ignore[misc]

    @rule(model=st.sampled_from([Hashing().token_fingerprint, OTHER_TOKENS]))
    def switch_token_model(self, model: str) -> None:
        """Until the next reembed, memories are written without token vectors if the model is another."""
        self.pair.same(lambda nacre: nacre._store.switch_token_model(model))

    @rule()
    def rebuild(self) -> None:
        self.pair.same(lambda nacre: nacre.rebuild())

    @rule()
    def reopen(self) -> None:
        self.pair.reopen()

    @rule(crosswise=st.booleans())
    def move(self, crosswise: bool) -> None:
        """What is exported and taken in is all that the store had, but for the recall log."""
        before = self._read()
        self.pair.move(crosswise=crosswise)
        found = list(differences(before, self._read()))
        assert not found, found[:3]
        self.last_read, self.searches = None, 0
        self.held = Held(), Held()  # nothing of it is exported

    # ---- what a server keeps, and what changed

    def held_of(self, nacre: Nacre) -> Held:
        return self.held[isinstance(nacre._store, MemoryStore)]

    @rule(limit=st.sampled_from([1, 2, 1_000]))
    def follow(self, limit: int) -> None:
        one_count = self.kind != "nodes"
        self.pair.same(lambda nacre: followed(nacre, self.held_of(nacre), limit, one_count=one_count))

    @rule(
        role=st.sampled_from([*ROLES, "boss"]),
        spaces=st.one_of(st.none(), some(SPACES)),
        days=st.sampled_from([None, 0, 1, 30]),
    )
    def create_token(self, role: Role, spaces: tuple[str, ...] | None, days: int | None) -> None:
        def create(nacre: Nacre) -> Any:
            made = nacre.create_token(role=role, spaces=spaces, expires=None if days is None else timedelta(days=days))
            self.held_of(nacre).secrets.append(made.secret)
            return made.token

        self.pair.same(create)

    @rule(number=st.integers(0, 100), revoked=st.booleans())
    def use_tokens(self, number: int, revoked: bool) -> None:
        listed = self.pair.same(lambda nacre: nacre.tokens()).answer
        self.pair.same(lambda nacre: [nacre.authenticate(each) for each in self.held_of(nacre).secrets])
        named = [*(each.id for each in listed), "never"]
        if revoked:
            self.pair.same(lambda nacre: nacre.revoke_token(named[number % len(named)]))

    @rule(key=st.sampled_from("ab"), request=st.sampled_from([b"one", b"other"]))
    def claim_answer(self, key: str, request: bytes) -> None:
        def claim(nacre: Nacre) -> Any:
            said = nacre._store.claim_answer(key, request, self.pair.clock.now)
            self.held_of(nacre).tickets += [said.ticket] if said.ticket else []
            return said._replace(ticket="")

        self.pair.same(claim)

    @rule(number=st.integers(0, 100), quotes=st.booleans(), dropped=st.booleans())
    def end_request(self, number: int, quotes: bool, dropped: bool) -> None:
        answer = KeptAnswer(201, (("etag", '"1"'),), b"\x00{}", quotes)

        def end(nacre: Nacre) -> None:
            every = [*self.held_of(nacre).tickets, "never"]
            if dropped:
                nacre._store.drop_claim(every[number % len(every)])
            else:
                nacre._store.keep_answer(every[number % len(every)], answer, self.pair.clock.now)

        self.pair.same(end)

    @rule(hours=st.sampled_from([1, 23, 24, 1000]))
    def wait(self, hours: int) -> None:
        self.pair.clock.now += timedelta(hours=hours)
        self.last_read = None  # what expires meanwhile is no change by anybody

    # ---- reading

    @precondition(lambda self: self.ids)
    @rule(query=queries, where=filters(), recipe=recipes, limit=st.sampled_from([1, 2, 20]), embedding=st.booleans())
    def search(self, query: str, where: Filter, recipe: Recipe, limit: int, embedding: bool) -> None:
        self.pair.same(lambda nacre: found_in_each_mode(nacre, query, where, recipe, limit), embedding)

    @precondition(lambda self: self.ids)
    @rule(query=queries)
    def search_plainly(self, query: str) -> None:
        self.pair.same(lambda nacre: found_in_each_mode(nacre, query, Filter(), Recipe(), 20))

    @precondition(lambda self: self.ids)
    @rule(query=queries, wish=wishes, recipe=recipes, limit=st.sampled_from([1, 3, 20]), embedding=st.booleans())
    def search_with_wishes(self, query: str, wish: dict[str, Any], recipe: Recipe, limit: int, embedding: bool) -> None:
        self.pair.same(lambda nacre: nacre.search(query, recipe=recipe, limit=limit, **wish), embedding)

    @rule(query=queries, number=st.integers(0, 100), wish=wishes)
    def why(self, query: str, number: int, wish: dict[str, Any]) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.why(query, memory_id, limit=2, **wish))

    @rule(query=fact_queries)
    def look_facts_up(self, query: FactQuery) -> None:
        self.pair.same(lambda nacre: nacre.facts(query))

    @rule(name=st.sampled_from(PEOPLE), depth=st.integers(1, 3), moment=st.sampled_from([None, *MOMENTS]))
    def look_around(self, name: str, depth: int, moment: datetime | None) -> None:
        self.pair.same(lambda nacre: nacre.related_entities(name, depth, spaces=SPACES, as_of=moment))
        self.pair.same(lambda nacre: nacre.stale(SPACES))
        self.pair.same(lambda nacre: sorted(nacre.conflicts(SPACES), key=lambda each: each.memories))

    @rule(query=queries, where=filters())
    def facets(self, query: str, where: Filter) -> None:
        self.pair.same(lambda nacre: nacre.facets(query, where))
        question = parse(query, self.pair.clock.now, ZONE)
        filled = where if where.spaces else replace(where, spaces=SPACES)
        self.pair.same(lambda nacre: read_by_condition(nacre, question, filled))

    @rule(number=st.integers(0, 100), where=filters(), recipe=recipes, limit=st.sampled_from([1, 3, 20]))
    def related(self, number: int, where: Filter, recipe: Recipe, limit: int) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.related(memory_id, where=where, recipe=recipe, limit=limit))

    @rule(asked=st.lists(asked_words, max_size=5), spaces=some((*SPACES, "nowhere")))
    def look_words_up(self, asked: list[str], spaces: tuple[str, ...]) -> None:
        self.pair.same(lambda nacre: known_words(nacre, asked, spaces))

    @rule(where=filters(), limit=st.sampled_from([1, 2, 50]), oldest_first=st.booleans(), forgotten=st.booleans())
    def timeline(self, where: Filter, limit: int, oldest_first: bool, forgotten: bool) -> None:
        listed = self.pair.same(
            lambda nacre: pages(nacre, where=where, limit=limit, oldest_first=oldest_first, forgotten=forgotten)
        ).answer
        self.cursors += [page.next for page in listed[:2] if page.next is not None]

    @rule(number=st.integers(0, 100), oldest_first=st.booleans())
    def timeline_after_a_while(self, number: int, oldest_first: bool) -> None:
        """A cursor is used later: the memory it points at may be changed, forgotten or purged by now."""
        every = [*self.cursors, "never"]
        cursor = every[number % len(every)]
        self.pair.same(lambda nacre: nacre.timeline(cursor=cursor, oldest_first=oldest_first))

    @rule(number=st.integers(0, 100), where=filters(), wish=views)
    def timeline_around(self, number: int, where: Filter, wish: dict[str, Any]) -> None:
        (memory_id,) = self.chosen([number])
        self.pair.same(lambda nacre: nacre.timeline(around=memory_id, where=where, **wish))
        self.pair.same(lambda nacre: nacre.timeline(where=where, **wish))

    @rule(numbers=numbers, entities=st.booleans(), neighbours=st.integers(0, 3), missing_ok=st.booleans())
    def get(self, numbers: list[int], entities: bool, neighbours: int, missing_ok: bool) -> None:
        ids = self.chosen(numbers)
        self.pair.same(lambda nacre: nacre.get(ids, entities=entities, neighbours=neighbours, missing_ok=missing_ok))

    @rule(where=filters())
    def pending(self, where: Filter) -> None:
        filled = where if where.spaces else replace(where, spaces=SPACES)
        one_count = self.kind != "nodes"
        self.pair.same(lambda nacre: without_vectors_yet(nacre, filled, one_count=one_count))

    # ---- always

    @invariant()
    def same_memories(self) -> None:
        """Read after each step that has written something: a search leaves nothing to compare."""
        if hasattr(self, "pair") and (self.checked is None or self.checked != self.pair.state()):
            read = self.pair.same(self._read_all).answer
            self.pair.same(self._used_and_delivered)
            self.facts = [fact for several in read[0][0].values() for fact in several]
            self._every_change_is_noticed(read)
            self.check_in_step()
            self.checked = self.pair.state()

    def check_in_step(self) -> None:
        self.pair.check()

    def _read_all(self, nacre: Nacre) -> tuple[Any, ...]:
        with nacre._store.view():
            return (
                knowledge(nacre, self.ids),
                everything(nacre, self.ids),
                vectors(nacre, [*self.ids, "never"]),
                token_vectors(nacre, [*self.ids, "never"]),
                further_vectors(nacre, [*self.ids, "never"]),
            )

    def _used_and_delivered(self, nacre: Nacre) -> tuple[Any, ...]:
        with nacre._store.view():
            signals = nacre._store.signals([*self.ids, "never"])
            return signals, side_by_side(nacre, self.ids), delivered_to_sessions(nacre)

    def _read(self) -> Any:
        """Also what searches find. Numbers of events differ: those that are about no memory are not exported."""
        known, (found, types, stats, histories), *rest = self.pair.same(self._read_all).answer
        unused = adjusted(Recipe(), usage_weight=0)  # usage is not exported
        searches = [
            [(result.hits, result.relations) for result in answer]
            for query in ("alice lives in Berlin", "we met Bob on Monday", "deploy staging")
            if (
                answer := self.pair.same(
                    lambda nacre, query=query: found_in_each_mode(nacre, query, Filter(), unused, 20)  # type: ignore[misc]
                ).answer
            )
        ]
        return known, found, types, replace(stats, events=0), histories, rest, searches

    def _every_change_is_noticed(self, read: Any) -> None:
        """Whoever keeps an answer sees by the sequence that it may be another by now."""
        sequences = self.pair.sequences()
        if self.last_read is not None and read != self.last_read[0]:
            for before, after in zip(self.last_read[1], sequences, strict=True):
                assert before != after
        self.last_read = read, sequences


class MachineWithSnapshots(Machine):
    """The same with thresholds so low that searches meet files, merged segments and fresh ones in turn."""

    LOW: Mapping[str, int] = {"SAVED_MEMORIES_MIN": 2, "BITE_EVENTS": 3, "SPACES_CACHED_MAX": 2}

    def change_constants(self, patch: pytest.MonkeyPatch) -> None:
        super().change_constants(patch)
        patch.setattr(sqlite_store, "INDEXED_MEMORIES_MIN", 0)
        for name, value in self.LOW.items():
            patch.setattr(sqlite_index, name, value)


class PostgresMachine(Machine):
    """The same on PostgreSQL, half of the time with limits so low that searches leave out what they can."""

    kind = "postgres"

    def change_constants(self, patch: pytest.MonkeyPatch) -> None:
        from nacre.storage.postgres import keyword_search, near_duplicates, postings

        for name in ("_COMPARED_MAX", "_SHARING_MAX"):
            patch.setattr(near_duplicates, name, 1_000)
        if self.low:
            patch.setattr(postings, "TAIL_BYTES_MAX", 2 * postings.POSTING.itemsize)
            for name, value in (("LISTED_MAX", 2), ("FEW", 2), ("LOOKED_UP", 1), ("_CHUNK", 1)):
                patch.setattr(keyword_search, name, value)

    def check_in_step(self) -> None:
        """At the end of an example: to read all tables takes longer than most steps."""

    def check_at_end(self) -> None:
        self.pair.check()


class NodesMachine(PostgresMachine):
    """The same on three nodes, which are schemas of one server."""

    kind = "nodes"


_BOUNDED = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
Machine.TestCase.settings = _BOUNDED
MachineWithSnapshots.TestCase.settings = _BOUNDED
PostgresMachine.TestCase.settings = settings(_BOUNDED, max_examples=6)
# It is not made smaller when it fails: a step on three nodes takes too long for that.
NodesMachine.TestCase.settings = settings(
    _BOUNDED, max_examples=2, stateful_step_count=30, phases=[Phase.explicit, Phase.generate]
)
TestStoresAgree = pytest.mark.slow(Machine.TestCase)
TestStoresAgreeWithSnapshots = pytest.mark.slow(MachineWithSnapshots.TestCase)
TestStoresAgreeOnNodes = needs_postgres(pytest.mark.slow(NodesMachine.TestCase))
TestStoresAgreeOnPostgres = needs_postgres(pytest.mark.slow(PostgresMachine.TestCase))


@pytest.mark.parametrize("kind", [*REAL_STORES, pytest.param("nodes", marks=needs_postgres)])
def test_the_machine_sees_every_commit(kind: str, tmp_path: Path) -> None:
    """It compares both stores again whenever one says that something was written."""
    with Stores(kind, tmp_path) as stores:
        place = stores.place()
        engine = Nacre(stores.open(place), Hashing(), log=False)
        beside = Nacre(stores.open(place), None, log=False)
        known = engine.remember("coffee").id
        seen = [stores.commits(place)]
        for write in (
            lambda: engine.remember("tea"),
            lambda: beside.remember("milk"),
            lambda: engine.update(known, tags=["black"]),
            lambda: beside.create_token(role="read"),
            lambda: engine.forget(known),
            lambda: engine.rebuild(),
        ):
            write()
            seen.append(stores.commits(place))
            engine.search("tea")
            beside.stats()
            assert kind != "sqlite" or seen[-1] == stores.commits(place)  # a server also writes by itself
        assert len(set(seen)) == 7


# ---------------------------------------------------------------- any question, any condition

questions = st.tuples(queries, st.one_of(st.just(Filter()), filters()), recipes, st.sampled_from([1, 20]))


@pytest.mark.slow
@given(REAL_KINDS, st.lists(new_memories(), max_size=8), st.lists(questions, min_size=5, max_size=10), st.booleans())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_question_has_the_same_answers(
    kind: str, items: list[NewMemory], asked: list[tuple[str, Filter, Recipe, int]], embedding: bool
) -> None:
    """The same calls as in the machine, on a store that was filled at once: failures become small here."""
    with opened_pair(kind) as pair:
        pair.same(lambda nacre: nacre.remember_many(items), embedding)
        for call in (call for each in asked for call in calls(*each)):
            pair.same(call, embedding)


def calls(query: str, where: Filter, recipe: Recipe, limit: int) -> list[Callable[[Nacre], Any]]:
    filled = where if where.spaces else replace(where, spaces=SPACES)
    question = parse(query, START, ZONE)
    return [
        lambda nacre: found_in_each_mode(nacre, query, where, recipe, limit),
        lambda nacre: nacre.facets(query, where),
        lambda nacre: nacre.related("id-0000", where=where, recipe=recipe, limit=limit),
        lambda nacre: read_by_condition(nacre, question, filled),
        lambda nacre: known_words(nacre, query.split(), filled.spaces),
    ]


TOKENS = sorted({token for word in WORDS for token in tokenizer.vocabulary(tokenizer.tokenise(word))})
runs = st.builds(Phrase, st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).map(tuple), st.booleans())
small_filters = st.sampled_from(
    [
        Filter(tags_any=("red", "deploy")),
        Filter(tags_none=("red",)),
        Filter(kinds=("fact",)),
        Filter(sources=("docs/*", "chat")),
        Filter(sessions=("s1",)),
        Filter(key_prefixes=("docs/", "k")),
        Filter(languages=("de",)),
        Filter(has=("source", "tags")),
        Filter(created_from=START),
        Filter(importance_min=0.5),
        Filter(importance_max=1 / 3),
    ]
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Term, st.sampled_from(TOKENS), st.booleans()),
        runs,
        st.builds(Near, st.lists(runs, min_size=2, max_size=3).map(tuple), st.integers(0, 3)),
        st.builds(Only, small_filters),
        st.builds(Unexpired, st.sampled_from([*MOMENTS, START + timedelta(hours=1), END])),
        st.builds(Linked, st.sampled_from(["alice", "al", "bob", "acme", "it"])),
        st.builds(During, st.builds(Period, st.sampled_from([None, *MOMENTS]), st.sampled_from([None, *MOMENTS]))),
    ),
    lambda part: st.one_of(
        st.builds(AnyOf, st.lists(part, min_size=1, max_size=3).map(tuple)),
        st.builds(AllOf, st.lists(part, min_size=1, max_size=3).map(tuple)),
        st.builds(Without, st.one_of(st.none(), part), part),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(REAL_KINDS, st.lists(new_memories(), min_size=1, max_size=8), st.lists(conditions, min_size=10, max_size=20))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_condition_holds_for_the_same_memories(
    kind: str, items: list[NewMemory], demanded: list[Condition]
) -> None:
    """Also those that no query is read as, such as a condition inside an exclusion inside a condition."""
    with opened_pair(kind) as pair:
        pair.same(lambda nacre: nacre.remember_many(items), embedding=False)
        for must in demanded:
            question = ParsedQuery((), must, "")
            pair.same(lambda nacre, question=question: read_by_condition(nacre, question, Filter(spaces=SPACES)))  # type: ignore[misc]


@st.composite
def turns(draw: st.DrawFn) -> NewMemory:
    """Of few sessions, with places and times that collide; the text alone is unique."""
    session = draw(st.sampled_from([None, "s1", "s1", "s2"]))
    return NewMemory(
        text=f"turn {draw(st.uuids())}",
        space=draw(st.sampled_from(["default", "default", "other"])),
        session=session,
        position=None if session is None else draw(st.sampled_from([None, -(2**63), -1, 0, 1, 1, 2, 2**63 - 1])),
        created=draw(st.sampled_from(MOMENTS[:3])),
        entities=draw(some(PEOPLE)),
        facts=[
            NewFact(subject=subject, predicate="knows", object=known, relation=relation)
            for subject, known, relation in draw(
                st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(OBJECTS), st.booleans()), max_size=2)
            )
        ],
    )


@pytest.mark.slow
@given(REAL_KINDS, st.lists(turns(), min_size=1, max_size=25), st.lists(st.integers(0, 24), max_size=8))
@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_session_has_the_same_order(kind: str, items: list[NewMemory], forgotten: list[int]) -> None:
    """Long sessions, which the machine seldom makes."""
    with opened_pair(kind) as pair:
        ids = [each.id for each in pair.same(lambda nacre: nacre.remember_many(items), embedding=False).answer]
        pair.same(lambda nacre: nacre.forget([ids[number % len(ids)] for number in forgotten]))
        pair.same(lambda nacre: side_by_side(nacre, ids))
        pair.same(lambda nacre: nacre._store.entities_of([*ids, "never"]))
        pair.same(lambda nacre: nacre.get(ids, entities=True, neighbours=2))


told_memories = st.lists(
    st.builds(
        Delivery,
        st.sampled_from([f"id-{number:04}" for number in range(8)]),
        st.integers(1, 4),
        st.just(0.01),
        st.sampled_from([None, None, START]),
    ),
    max_size=5,
).map(tuple)
told_receipts = st.lists(
    st.builds(
        lambda hours, space, session, delivered, origin, repeat: Receipt(
            "", START + timedelta(hours=hours), space, session, "asked", "hybrid", None, delivered, origin, repeat
        ),
        st.integers(-3, 3),
        st.sampled_from(SPACES[:2]),
        st.sampled_from([None, *SESSIONS]),
        told_memories,
        st.sampled_from([None, *SESSIONS]),
        st.sampled_from([False, False, True]),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(
    REAL_KINDS,
    told_receipts,
    st.lists(st.integers(0, 7), max_size=3),
    st.lists(st.integers(0, 7), max_size=2),
    st.booleans(),
)
@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_session_was_given_the_same(
    kind: str,
    receipts: list[Receipt],
    forgotten: list[int],
    purged: list[int],
    restored: bool,
) -> None:
    """Many receipts of few sessions, several at one moment, before and after some memories are gone."""
    with opened_pair(kind) as pair:
        items = [NewMemory(text=f"text {number}", space=SPACES[number % 2]) for number in range(8)]
        ids = [each.id for each in pair.same(lambda nacre: nacre.remember_many(items), embedding=False).answer]
        log = [replace(each, id=f"r{number}") for number, each in enumerate(receipts)]
        pair.same(lambda nacre: nacre._store.record(log, EVERYTHING_KEPT, START))
        pair.same(delivered_to_sessions)
        pair.same(lambda nacre: nacre.forget([ids[number] for number in forgotten]))
        delivered = pair.same(delivered_to_sessions).answer[-1]
        hidden = {ids[number] for number in forgotten}
        assert hidden.isdisjoint(memory_id for several in delivered.values() for memory_id in several)
        if restored:
            pair.same(lambda nacre: nacre.restore([ids[number] for number in forgotten]))
        pair.same(lambda nacre: nacre.purge([ids[number] for number in purged]))
        pair.same(delivered_to_sessions)


# ---------------------------------------------------------------- quotas


def exceeded(call: Callable[[Nacre], Any]) -> Callable[[Nacre], Any]:
    """The call, which gives what a quota says in place of raising it: messages are compared, too."""

    def caught(engine: Nacre) -> Any:
        try:
            return call(engine)
        except QuotaExceeded as error:
            return str(error), error.quota, error.limit, error.used

    return caught


def quota_step(step: str, chosen: str, items: list[NewMemory], number: int) -> Callable[[Nacre], Any]:
    fact = NewFact(subject="Ada", predicate="likes", object="tea" * 9)
    match step:
        case "add":
            return lambda nacre: nacre.remember_many(items)
        case "update":
            return lambda nacre: nacre.update(chosen, summary="s" * 7 * number or None)
        case "fact":
            return lambda nacre: nacre.add_facts(chosen, [fact])[0].object
        case "forget":
            return lambda nacre: nacre.forget(chosen)
        case "restore":
            return lambda nacre: nacre.restore(chosen)
    return lambda nacre: nacre.purge(chosen)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    REAL_KINDS,
    st.builds(
        Quotas,
        memories_max=st.sampled_from([0, 1, 3]),
        bytes_max=st.sampled_from([0, 40, 200]),
        session_writes_max=st.sampled_from([0, 1, 2]),
    ),
    st.lists(
        st.tuples(st.sampled_from(["add", "update", "fact", "forget", "restore", "purge", "wait"]), st.integers(0, 9)),
        max_size=14,
    ),
    st.lists(new_memories(), min_size=3, max_size=8),
)
def test_any_writes_meet_the_same_quotas(
    kind: str, quotas: Quotas, steps: list[tuple[str, int]], items: list[NewMemory]
) -> None:
    with opened_pair(kind, quotas) as pair:
        ids: list[str] = ["id-0000"]
        for step, number in steps:
            chosen, several = ids[number % len(ids)], items[number % len(items) :][:3]
            if step == "wait":
                pair.clock.now += timedelta(seconds=25)
                continue
            said = pair.same(exceeded(quota_step(step, chosen, several, number)), embedding=number % 2 == 0)
            if step == "add" and said.error is None and isinstance(said.answer, list):
                ids += [receipt.id for receipt in said.answer]
            stats = pair.same(lambda nacre: comparable(nacre.stats())).answer
            assert not quotas.memories_max or all(
                held <= quotas.memories_max for held in stats.stored_memories.values()
            )
            assert not quotas.bytes_max or all(held <= quotas.bytes_max for held in stats.stored_bytes.values())


def logged(engine: Nacre, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Any]:
    """Every page of the log, also of one session or memory."""
    ids = [each.id for each in engine.every()]
    wanted: list[dict[str, Any]] = [{}, {"session": SESSIONS[0]}, *({"memory_id": each} for each in ids[:2])]
    found = []
    for which in wanted:
        for spaces in (SPACES[:1], SPACES[:2]):
            before: str | None = None
            while True:
                page = ReceiptFilter(spaces=spaces, limit=4, before=before, **which)
                listed = engine._store.receipts(page, unwritten)
                found.append(listed)
                if not listed:
                    break
                before = listed[-1].id
    return found


told_marks = st.lists(
    st.builds(
        lambda hours, ids, outcome, session, origin: Mark(
            tuple(f"id-{each:04}" for each in ids), outcome, START + timedelta(hours=hours), session, origin
        ),
        st.integers(-3, 30),
        st.lists(st.integers(0, 9), min_size=1, max_size=3),
        st.sampled_from(["opened", "opened", "used", "wrong"]),
        st.sampled_from([None, *SESSIONS]),
        st.sampled_from([None, None, *SESSIONS]),
    ),
    max_size=4,
)


@pytest.mark.slow
@given(REAL_KINDS, told_receipts, told_marks, st.integers(0, 12), st.integers(0, 2))
@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_unwritten_counts_as_if_it_were_written(
    kind: str, receipts: list[Receipt], marks: list[Mark], written: int, again: int
) -> None:
    """Some of it may be written by now."""
    with opened_pair(kind) as pair:
        items = [NewMemory(text=f"text {number}", space=SPACES[number % 2]) for number in range(8)]
        pair.same(lambda nacre: nacre.remember_many(items), embedding=False)
        log = [replace(each, id=f"r{number}") for number, each in enumerate(receipts)]
        pair.same(lambda nacre: nacre._store.record(log[:written], EVERYTHING_KEPT, START))
        unwritten = Unwritten(tuple(log[max(0, written - again) :]), tuple(marks))
        given = pair.same(lambda nacre: delivered_to_sessions(nacre, unwritten)).answer
        listed = pair.same(lambda nacre: logged(nacre, unwritten)).answer
        pair.same(lambda nacre: nacre._store.record(log[written:], EVERYTHING_KEPT, START))
        for mark in marks:
            for each in mark.memory_ids:
                how = None, [each], mark.outcome, mark.at, mark.session, mark.origin
                pair.same(partial(lambda how, nacre: nacre._store.mark(*how), how))
        assert pair.same(delivered_to_sessions).answer == given
        assert pair.same(logged).answer == listed


# ---------------------------------------------------------------- single cases that a machine rarely meets


@pytest.fixture(params=REAL_STORES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with opened_pair(request.param) as opened:
        yield opened


def test_equal_texts_in_one_batch_become_one_memory(pair: Pair) -> None:
    """As if they had been remembered one by one."""
    first, second = NewMemory(text="tea", tags=["first"]), NewMemory(text="tea", tags=["second"])
    receipts = pair.same(lambda nacre: nacre.remember_many([first, second])).answer
    assert [receipt.duplicate for receipt in receipts] == [False, True]
    assert pair.same(lambda nacre: nacre.get(receipts[0].id)[0].tags).answer == ("first", "second")


def test_what_a_session_was_given_by_hand(pair: Pair) -> None:
    """The latest first; equal times by id; opened once is opened; of the latest few, the latest."""
    pair.same(lambda nacre: nacre.remember_many(["one", "two", "three", NewMemory(text="four", space="other")]))
    one, two, three, four = (f"id-{number:04}" for number in range(4))

    def receipt(name: str, hours: int, space: str, session: str | None, *delivered: Delivery) -> Receipt:
        return Receipt(name, START + timedelta(hours=hours), space, session, "asked", "hybrid", None, delivered)

    log = [
        receipt("r1", 0, "default", "s1", Delivery(one, 1, 0.5, opened=START), Delivery(two, 2, 0.4)),
        replace(
            receipt(
                "r2", 1, "default", "s1", Delivery(three, 1, 0.5), Delivery(four, 2, 0.5), Delivery("never", 3, 0.1)
            ),
            origin="wire",
        ),
        receipt("r3", 1, "default", "s1", Delivery(two, 1, 0.5)),
        receipt("r4", 2, "default", "s2", Delivery(one, 1, 0.5)),
        receipt("r5", 3, "other", "s1", Delivery(four, 1, 0.5)),
        receipt("r6", 4, "default", None, Delivery(two, 1, 0.5, opened=START)),
    ]
    pair.same(lambda nacre: nacre._store.record(log, EVERYTHING_KEPT, START))

    def delivered(*asked: tuple[str, str], limit: int = 9) -> Any:
        return pair.same(lambda nacre: nacre._store.delivered(asked, limit)).answer

    def since(hours: float, spaces: tuple[str, ...] = ("default",), session: str = "s1", limit: int = 9) -> Any:
        moment = START + timedelta(hours=hours)
        return list(
            pair.same(
                lambda nacre: list(nacre._store.delivered_within(spaces, session, (moment, END), limit).items())
            ).answer
        )

    first = ("default", "s1")
    assert delivered(first) == {first: [two, three, four, one]}
    assert delivered(first, limit=2) == {first: [two, three]}
    everyone = (("other", "s1"), ("default", "s2"), ("default", "never"), ("default", "s2"))
    assert delivered(*everyone) == {("other", "s1"): [four], ("default", "s2"): [one]}
    assert delivered(("default", "wire")) == {("default", "wire"): [three, four]}  # a connection
    assert delivered() == {}
    every = [(two, False), (three, False), (four, False), (one, True)]
    assert since(-1) == every
    assert since(-1, limit=2) == every[:2]
    assert since(0) == every[:3]  # a time is exclusive
    assert since(1) == []
    assert since(-1, ("other", "default")) == [(four, False), (two, False), (three, False), (one, True)]
    assert since(-1, session="wire") == []  # a connection is no session
    assert since(-1, ("other",), "s2") == []
    pair.same(lambda nacre: nacre._store.mark(None, [three], "opened", START + timedelta(hours=5), "s1"))
    pair.same(lambda nacre: nacre._store.mark(None, [three], "used", START + timedelta(hours=5), "s2"))
    pair.same(lambda nacre: nacre.forget([two]))
    assert delivered(first) == {first: [three, four, one]}
    assert since(-1) == [(three, True), (four, False), (one, True)]
    repeated = replace(receipt("r7", 1, "default", "s1", Delivery(one, 1, 0.5)), repeat=True)
    pair.same(lambda nacre: nacre._store.record([repeated], EVERYTHING_KEPT, START))
    assert since(-1) == [(one, False)]  # r3 has the same time, but was written before
    assert since(-1, ("other", "default")) == [(four, False), (one, False)]  # r5 is later
    assert since(-1, ("other",)) == [(four, False)]
    assert delivered(first) == {first: [one, three, four]}
    late = receipt("r8", 0, "default", "s1", Delivery(three, 1, 0.5))  # of a process that wrote it late
    later = receipt("r9", 1, "default", "s1", Delivery(three, 1, 0.5))
    pair.same(lambda nacre: nacre._store.record([late], EVERYTHING_KEPT, START))
    assert since(-1) == [(one, False)]
    pair.same(lambda nacre: nacre._store.record([later], EVERYTHING_KEPT, START))
    assert since(-1) == [(one, False), (three, False)]
    pair.same(lambda nacre: nacre.purge([one]))  # and with it what was told beside it
    assert delivered(first, ("default", "s2")) == {first: [three, four]}
    assert since(-1) == [(three, False)]  # the repeat still counts


LIVES_IN = NewFact(subject="Alice", predicate="lives in", object="Berlin")


def who_is_about(engine: Nacre) -> tuple[Any, ...]:
    names = ("alice", "al", "berlin", "bob")
    linked = [engine._store.matching(["id-0000", "id-0001", "id-0002"], Linked(name)) for name in names]
    return engine.entities(), list(engine.entity_counts().items()), linked


@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
@pytest.mark.parametrize(
    ("items", "names"),
    [
        ([NewMemory(text="x", entities=["alice"]), NewMemory(text="Alice lives in Berlin")], ["Berlin", "alice"]),
        (
            [
                NewMemory(text="x", entities=["Al"]),
                NewMemory(text="y", entities=["Bob"]),
                NewMemory(text="z", entities=[NewEntity(name="Alice", aliases=["Al", "Bob"]), "Bob"]),
            ],
            ["Alice"],
        ),
        (
            [
                NewMemory(text="x", facts=[LIVES_IN]),
                NewMemory(text="y", entities=[NewEntity(name="Al", aliases=["Alice"])]),
            ],
            ["Al"],
        ),
    ],
    ids=["spelled twice", "merged", "renamed"],
)
def test_entities_of_several_memories(pair: Pair, items: list[NewMemory], names: list[str], together: bool) -> None:
    """It makes no difference whether memories come in one batch."""
    for batch in [items] if together else [[item] for item in items]:
        pair.same(lambda nacre, batch=batch: nacre.remember_many(batch))  # type: ignore[misc]
    assert [entity.name for entity in pair.same(lambda nacre: nacre.entities()).answer] == names
    pair.same(who_is_about)


@pytest.mark.parametrize(
    "call",
    [
        lambda nacre: nacre.update("id-0000", text="another text"),
        lambda nacre: nacre.drop_facts("id-0001"),
        lambda nacre: nacre.add_facts("id-0000", [replace(LIVES_IN, object="Paris")]),
        lambda nacre: nacre.add_entity("Alice"),
        lambda nacre: nacre.add_entity("Al", aliases=["ALICE"]),
        lambda nacre: (nacre.forget("id-0000"), nacre.restore("id-0000")),
        lambda nacre: nacre.remember("a new one", facts=[LIVES_IN]),
    ],
    ids=["update", "drop a fact", "add a fact", "add it", "add an alias", "forget and restore", "remember"],
)
def test_an_entity_that_was_dropped(pair: Pair, call: Callable[[Nacre], Any]) -> None:
    """Whether it comes back, and who is about it then, though facts still name it."""
    pair.same(lambda nacre: nacre.remember("x", facts=[LIVES_IN, replace(LIVES_IN, predicate="works in")]))
    pair.same(lambda nacre: nacre.drop_entity("Alice"))
    pair.same(who_is_about)
    pair.same(call)
    pair.same(who_is_about)


def test_aliases_that_come_later_settle_what_was_said(pair: Pair) -> None:
    """Two people turn out to be one, and then not: only one of them can live somewhere."""
    old = NewMemory(text="x", created=MOMENTS[0], facts=[LIVES_IN])
    new = NewMemory(text="y", created=MOMENTS[1], facts=[replace(LIVES_IN, subject="Al", object="Paris")])
    pair.same(lambda nacre: nacre.remember_many([old, new]))

    def superseded(nacre: Nacre) -> list[bool]:
        return [fact.superseded_by is not None for fact in nacre._store.facts_by_id(["id-0002", "id-0003"])]

    assert pair.same(superseded).answer == [False, False]
    one = NewEntity(name="Alice", aliases=["Al"])
    pair.same(lambda nacre: nacre.remember("z", entities=[one]))
    assert pair.same(superseded).answer == [True, False]
    doubt = [replace(fact, confidence=0.01) for fact in pair.same(lambda n: n._store.facts_by_id(["id-0003"])).answer]
    pair.same(lambda nacre: nacre._store.update_confidence(doubt))
    assert pair.same(superseded).answer == [False, False]
    assert len(pair.same(lambda nacre: nacre.conflicts()).answer[0].beliefs) == 2
    pair.same(lambda nacre: nacre.drop_entity("Al"))
    assert pair.same(lambda nacre: nacre.conflicts()).answer == []


def test_filters_as_large_as_allowed(pair: Pair) -> None:
    many = [f"name {number}" for number in range(1000)]
    pair.same(lambda nacre: nacre.remember("tea", tags=many[:100], kind=many[3], source=many[4], session=many[5]))
    wide = Filter(
        spaces=["default", *many[1:]],
        kinds=many,
        namespaces=["general", *many[1:]],
        tags_any=many,
        sources=many,
        sessions=many,
    )
    for mode in ("keyword", "semantic", "hybrid"):
        found = pair.same(lambda nacre, mode=mode: nacre.search("tea", mode=mode, where=wide))  # type: ignore[misc]
        assert len(found.answer.hits) == 1
    assert len(pair.same(lambda nacre: nacre.timeline(where=wide)).answer.entries) == 1


@pytest.mark.parametrize(
    "where",
    [
        Filter(tags_all=[f"tag {number}" for number in range(1000)]),
        Filter(metadata={f"key {number}": number for number in range(1000)}),
    ],
    ids=["tags_all", "metadata"],
)
def test_many_values_that_must_all_hold(pair: Pair, where: Filter) -> None:
    tags = [f"tag {number}" for number in range(100)]
    pair.same(lambda nacre: nacre.remember("tea", tags=tags, metadata=dict(where.metadata)))
    outcome = pair.same(lambda nacre: nacre.search("tea", where=where))
    assert outcome.error is None
    assert len(outcome.answer.hits) == bool(where.metadata)
    assert pair.same(lambda nacre: nacre.timeline(where=where)).error is None


@pytest.mark.parametrize(
    "query",
    [
        "tea " + "-x " * 1500,
        "tea" + " NOT x" * 1500,
        " AND ".join(["tea"] * 1500),
        " OR ".join(["tea", *(f"w{number}" for number in range(1000))]),
        " AND ".join(["(tea -x)"] * 800),
        " OR ".join(["(tea -x)"] * 800),
        "tea" + " AND tea NOT x" * 600,
        "tea" + " AND tea OR tea NOT x" * 400,
        '"' + "tea " * 2000 + '"',
        "_".join(["tea"] * 2000),
        "(" * 3000 + "tea AND x" + ")" * 3000,
        "tea " * 2000,
        "tea" + " -tag:x" * 1200,
        "tea OR " + " OR ".join(f"tag:t{number}" for number in range(1000)),
        "tag:x" + " AND tag:y" * 900,
        "tea -tag:" + ",".join(f"t{number}" for number in range(2000)),
        "tea OR source:" + ",".join(["t*?*"] * 2000),
        "tea " + "NEAR(tea x) " * 800,
        "NEAR(" + "tea x " * 1600 + ", 9)",
        "entity:" + ",".join(f'"tea t{number}"' for number in range(800)),
    ],
    ids=[
        "minus",
        "not",
        "and",
        "or",
        "and-groups",
        "or-groups",
        "and-not",
        "and-or-not",
        "phrase",
        "identifier",
        "parentheses",
        "words",
        "without-tags",
        "or-tags",
        "and-tags",
        "values",
        "patterns",
        "nears",
        "near",
        "entities",
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "semantic"])
def test_questions_as_long_as_allowed(pair: Pair, query: str, mode: Any) -> None:
    """However long and nested, a question is answered: a person or agent may paste anything."""
    pair.same(lambda nacre: nacre.remember_many(["tea", "tea x", "coffee"]))
    assert pair.same(lambda nacre: nacre.search(query, mode=mode)).error is None


@pytest.mark.parametrize("memory_id", ["\ud800", "\x00", "", "'", '"', "nö"])
def test_ids_that_no_memory_can_have(pair: Pair, memory_id: str) -> None:
    pair.same(lambda nacre: nacre.remember("tea"))
    for call in (
        lambda nacre: nacre.get(memory_id),
        lambda nacre: nacre.history(memory_id),
        lambda nacre: nacre.forget(memory_id),
        lambda nacre: nacre.purge([memory_id]),
        lambda nacre: nacre.update(memory_id, text="x"),
        lambda nacre: nacre.timeline(cursor=memory_id),
    ):
        pair.same(call)


@pytest.mark.slow
def test_numbers_in_metadata_are_found_to_the_last_digit(pair: Pair) -> None:
    """SQLite reads decimal numbers by itself; it must read every double as Python does."""
    numbers: list[float] = [0.1 + 0.2, 1 / 3, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308]
    numbers += [float.fromhex(f"0x1.{(number * 0x9E3779B97F4A7) % 2**52:013x}p{number - 150}") for number in range(300)]
    pair.same(lambda nacre: nacre.remember_many(NewMemory(text=f"{x!r}", metadata={"x": x}) for x in numbers))
    for number in numbers:
        found = pair.same(
            lambda nacre, number=number: nacre.timeline(where=Filter(metadata={"x": number})).entries  # type: ignore[misc]
        )
        assert len(found.answer) == 1, number


def test_what_an_update_replaced_tells_true_from_one(pair: Pair) -> None:
    """JSON's true, 1 and 1.0 are three values, so changing one to another is a change."""
    receipt = pair.same(lambda nacre: nacre.remember("tea", metadata={"n": 1})).answer
    pair.same(lambda nacre: nacre.update(receipt.id, metadata={"n": True}))
    for engine in (pair.real[True], pair.reference[True]):
        assert to_plain(engine.get(receipt.id)[0].metadata) == '{"n": true}'
        assert happened(engine, receipt.id)[-1] == ("updated", '{"metadata": {"n": 1}}')


def test_equal_scores_are_cut_by_id_at_every_limit(pair: Pair) -> None:
    """Forty memories with the same words and vectors: whichever channel and limit, the first ids win."""
    spaces = [NewMemory(text="green tea", space=f"space {number}") for number in range(40)]
    pair.same(lambda nacre: nacre.remember_many(spaces))
    where = Filter(spaces=[each.space or "" for each in spaces])
    for limit in (1, 7, 40):
        for mode in ("keyword", "semantic", "hybrid"):
            found = pair.same(
                lambda nacre, mode=mode, limit=limit: nacre.search(  # type: ignore[misc]
                    "green tea", mode=mode, where=where, limit=limit, recipe=Recipe(pool=1)
                )
            )
            assert [hit.id for hit in found.answer.hits] == [f"id-{number:04}" for number in range(limit)]


def test_prefix_frequency_counts_words_and_forms(pair: Pair) -> None:
    """A prefix weighs as much on both stores although one counts by range in its vocabulary."""
    pair.same(lambda nacre: nacre.remember_many(["deploy", "deploying now", "deployed deployment", "天気 天", "de"]))
    for query in ("dep*", "deploy*", "天*", "d* now"):
        pair.same(lambda nacre, query=query: nacre.search(query, mode="keyword"))  # type: ignore[misc]


def test_terms_are_quoted_for_fts(pair: Pair) -> None:
    """Whatever FTS5 takes for syntax is only a token here."""
    assert Term('"') != Term("'")
    strange = [
        'c++ "NEAR" {words} : x',
        "a^b + c*",
        "NEAR(a b)",
        "words: tea",
        "forms:tea",
        "x' OR '1'='1",
        "a\\b ~c &d #e",
    ]
    pair.same(lambda nacre: nacre.remember_many(strange))
    for query in [*strange, *(word for text in strange for word in text.split())]:
        for mode in ("keyword", "hybrid"):
            pair.same(lambda nacre, query=query, mode=mode: nacre.search(query, mode=mode))  # type: ignore[misc]


@pytest.mark.slow
def test_words_that_match_more_than_is_scored(pair: Pair) -> None:
    """Only so many candidates of FTS5 are scored by our own formula; the best must be among them.

    Of postings in PostgreSQL, those are left out that cannot be among the best, and no other.
    """
    random = Random(3)
    common_to_rare = [f"word{number}" for number in range(300)]
    odds = [1 / (number + 1) for number in range(300)]

    def some_words(*lengths: int) -> str:
        return " ".join(random.choices(common_to_rare, odds, k=random.choice(lengths)))

    several = [
        NewMemory(text=f"{some_words(3, 8, 20, 60)} number{number}", space=random.choice(SPACES[:2]))
        for number in range(1_500)
    ]
    for engine in (pair.real[False], pair.reference[False]):
        engine.remember_many(several)
    shared = []
    for _ in range(30):
        query = some_words(1, 2, 4, 8)
        real, right = (
            {hit.id: hit.bm25 for hit in engine.search(query, mode="keyword").hits}
            for engine in (pair.real[False], pair.reference[False])
        )
        assert len(real) == len(right)
        both = real.keys() & right.keys()
        assert [real[each] for each in both] == [right[each] for each in both]
        shared.append(len(both) / max(1, len(right)))
    assert sum(shared) / len(shared) >= (0.98 if isinstance(pair.place, Path) else 1)


@pytest.mark.slow
def test_a_thousand_spaces_at_once(pair: Pair) -> None:
    """FTS5 is asked for each of them, in a search and for every spelling; one more space must not be seen."""
    several = [NewMemory(text="green teapot", space=f"space {number}") for number in range(1_000)]
    pair.same(lambda nacre: nacre.remember_many([*several, NewMemory(text="green teapto", space="hidden")]))
    where = Filter(spaces=[each.space or "" for each in several])
    found = pair.same(lambda nacre: nacre.search("teapto", where=where, mode="keyword", limit=3)).answer
    assert [hit.memory.space for hit in found.hits] == ["space 0", "space 1", "space 2"]
    assert found.did_you_mean.words == {"teapto": ("teapot",)}
    assert pair.same(lambda nacre: nacre.facets("teapot", where)).answer.total == 1_000


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("NEAR(alpha beta, 0)", ["alpha beta", "beta alpha"]),
        ("NEAR(alpha beta, 1)", ["alpha beta", "alpha one beta", "beta alpha"]),
        ("NEAR(alpha beta)", ["alpha beta", "alpha one beta", "alpha one two beta", "beta alpha"]),
        ('NEAR("alpha one" beta, 0)', ["alpha one beta"]),
        ("NEAR(al* be*, 1)", ["alpha beta", "alpha one beta", "beta alpha"]),
        ("NEAR(alpha beta, 1) -one", ["alpha beta", "beta alpha"]),
        ("NEAR(label words, 0)", ["labelled"]),  # in the summary
        ("NEAR(words first, 9)", []),  # not from the summary into a tag
        ('"first tag"', ["labelled"]),
        ('"tag second"', []),  # one tag ends, another begins
        ('"label words"', ["labelled"]),
        ('"docs guide"', ["labelled"]),  # in the source
        ("entity:words,two", ["alpha one two beta", "labelled"]),
    ],
)
def test_words_side_by_side_in_texts_and_labels(pair: Pair, query: str, found: list[str]) -> None:
    labelled = NewMemory(text="labelled", summary="label words", tags=["first tag", "second tag"], source="docs/guide")
    texts = ["alpha beta", "beta alpha", "alpha one beta", "alpha one two beta"]
    pair.same(lambda nacre: nacre.remember_many([*texts, labelled]))
    question = parse(query, START, ZONE)
    listed = pair.same(
        lambda nacre: nacre._store.by_time(Filter(spaces=["default"]), TimePage(10), must=question.must)
    ).answer
    assert sorted(memory.text for memory in listed) == found
    assert pair.same(lambda nacre: nacre.facets(query)).answer.total == len(found)


@pytest.mark.parametrize("alone", [True, False])
def test_counts_are_of_the_spaces_asked_for(pair: Pair, alone: bool) -> None:
    """The index takes another path when there are other spaces, with the same numbers."""
    pair.same(lambda nacre: nacre.remember_many(["green tea", "black tea"]))
    if not alone:
        pair.same(lambda nacre: nacre.remember_many(NewMemory(text=f"tea {n}", space="other") for n in range(50)))
    (first, second) = pair.same(lambda nacre: nacre.search("green tea", mode="keyword")).answer.hits
    assert (first.text, second.text) == ("green tea", "black tea")
    # idf(green) = ln(1 + 1.5 / 1.5) = ln 2, idf(tea) = ln(1 + .5 / 2.5) = ln 1.2; both texts have the mean length.
    assert [round(hit.bm25, 6) for hit in (first, second)] == [0.875469, 0.182322]
    frequencies = pair.same(lambda nacre: nacre._store.frequencies(["tea", "green", "milk"], ["default"])).answer
    assert (frequencies.memories, dict(frequencies.having)) == (2, {"tea": 2, "green": 1})


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tea -source:chat", ["tea", "tea from docs"]),
        ("tea NOT source:ch*", ["tea", "tea from docs"]),
        ("-session:s1", ["tea", "tea from docs"]),
        ("-source:docs/*,chat", ["tea"]),
        ("-(source:chat)", ["tea", "tea from docs"]),
        ("tea AND NOT (source:chat OR session:s2)", ["tea", "tea from docs"]),
        ("(tea -source:chat) OR session:s1", ["tea", "tea from chat", "tea from docs"]),
        ("-has:source", ["tea"]),
        ("source:chat", ["tea from chat"]),
    ],
)
def test_excluding_a_source_leaves_memories_without_one(pair: Pair, query: str, found: list[str]) -> None:
    """In SQL a missing value is neither like nor unlike another; here it is unlike."""
    chat = NewMemory(text="tea from chat", source="chat", session="s1")
    docs = NewMemory(text="tea from docs", source="docs/tea.md")
    pair.same(lambda nacre: nacre.remember_many(["tea", chat, docs]))
    result = pair.same(lambda nacre: nacre.search(query, mode="keyword")).answer
    assert sorted(hit.text for hit in result.hits) == found
    assert pair.same(lambda nacre: nacre.facets(query)).answer.total == len(found)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("docs/[x]*", ["docs/[x] a"]),  # a bracket is only a bracket
        ("docs/?x*", ["docs/[x] a", "docs/^x"]),
        ("docs/*x*", ["docs/[x] a", "docs/^x", "docs/x"]),
        ("docs/[^x]", []),
        ("*", ["docs/[x] a", "docs/^x", "docs/x", "two\nlines"]),
        ("two?lines", ["two\nlines"]),
        ("DOCS/x", []),
        ("docs/", []),
        ("docs/x", ["docs/x"]),
    ],
)
def test_patterns_of_sources(pair: Pair, pattern: str, found: list[str]) -> None:
    sources = ["docs/[x] a", "docs/^x", "docs/x", "two\nlines", None]
    pair.same(lambda nacre: nacre.remember_many(NewMemory(text=f"tea {source}", source=source) for source in sources))
    listed = pair.same(
        lambda nacre: nacre._store.by_time(Filter(spaces=["default"], sources=[pattern]), TimePage(10))
    ).answer
    assert sorted(memory.source for memory in listed) == found
    result = pair.same(lambda nacre: nacre.search(f'source:"{pattern}"', mode="keyword")).answer
    assert sorted(hit.memory.source for hit in result.hits) == found


def test_long_texts_are_ordered_alike_whatever_their_number_of_passages_weighs(pair: Pair) -> None:
    """Up to forty passages: the cosine stays what it is, and each weight has its own order."""
    words = ["tea", "milk", "sugar", "honey", "lemon", "ginger", "mint", "cup", "pot", "kettle"]
    texts = [
        " ".join(words[(number * 7 + at * at) % 10] for at in range(1 + number * number // 4)) for number in range(30)
    ]
    pair.same(lambda nacre: nacre.remember_many(dict.fromkeys(texts)))
    orders = set()
    for weight in (0.0, 0.04, 0.3):
        recipe = adjusted(Recipe(), passages_weight=weight, semantic_floor=-1)
        found = [
            pair.same(
                lambda nacre, query=query, recipe=recipe: nacre.search(  # type: ignore[misc]
                    query, mode="semantic", limit=12, recipe=recipe
                )
            ).answer.hits
            for query in ("honey in the tea", "a kettle")
        ]
        orders.add(tuple(hit.id for hits in found for hit in hits))
        for hit in (hit for hits in found for hit in hits):
            (reason,) = (each for each in hit.reasons if each.signal == "semantic")
            assert reason.numbers["cosine"] == hit.cosine
            passages = len(pair.reference[True]._store.vectors(hit.id))  # type: ignore[arg-type]
            assert reason.numbers.get("less", 0.0) == pytest.approx(gain_by_chance(passages, weight))
    assert len(orders) == 3
