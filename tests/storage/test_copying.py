"""A copy of a store has all that its source has, whatever was done before, meanwhile and since."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from further_models import Bilingual
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import Conflict, InvalidInput, NacreError, StoreCorrupt, StoreUnavailable
from nacre.intake import copying
from nacre.interfaces import Store
from nacre.query.lenses import Lens
from nacre.storage import checksums, merging
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import SqliteStore
from nacre.types.copying import Checksums, Copied, CopyRecord
from nacre.types.facts import NewFact
from nacre.types.memory import Progress
from nacre.types.recall_log import ReceiptFilter
from nacre.types.search import Filter
from nacre.types.transfer import ExportRequest
from postgres_server import MISSING, Schemas, fresh_schemas, needs_postgres
from store_checks import check_derived_tables, check_integrity, check_token_vectors, check_words_of_relations

START = datetime(2026, 6, 15, 12, tzinfo=UTC)
SPACES = ("default", "other")
TEXTS = (
    "tea at four in the old garden", "tea at four in the old garden!", "Alice lives in Berlin", "Alice lives in Paris",
    "port: 8080", "Correction: the port is 9090 instead of 8080", "coffee " * 200,
)  # fmt: skip
KEYS = (None, None, "a", "b")
QUERIES = ("tea garden", "where does Alice live", "port", "coffee -tea", "old")
NAMES = ("Alice", "Al", "Berlin", "Bob")
FACTS = (
    NewFact(subject="Alice", predicate="lives in", object="Rome", relation=True, single=True),
    NewFact(subject="Al", predicate="port", object="1", confidence=0.5),
)
KINDS = ["sqlite", "reference", *([] if MISSING else ["postgres"])]


class Source:
    """A store that is written to, with a clock of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = START
        numbers = count()
        self.engines = {space: self._engine(space, numbers) for space in SPACES}
        self.ids: list[str] = []

    def _engine(self, space: str, numbers: Iterator[int]) -> Nacre:
        return Nacre(
            self.store,
            Hashing(),
            further=Bilingual(),
            space=space,
            clock=lambda: self.now,
            timer=lambda: 0.0,
            make_ids=lambda _, wanted: [f"m{next(numbers):03}" for _ in range(wanted)],
            zone=UTC,
        )

    def flush(self) -> None:
        for each in self.engines.values():
            each._log.flush()

    def close(self) -> None:
        for each in self.engines.values():
            each.close()


def new_store(kind: str, folder: Path, schemas: Schemas | None) -> Store:
    if kind == "sqlite":
        return SqliteStore(folder / f"{len(list(folder.iterdir()))}.db")
    if kind == "reference":
        return MemoryStore()
    from nacre.storage.postgres import PostgresStore

    assert schemas is not None
    return PostgresStore(schemas.dsn, schemas.new())


@contextmanager
def stores(*kinds: str) -> Iterator[list[Store]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        schemas = stack.enter_context(fresh_schemas()) if "postgres" in kinds else None
        made: list[Store] = []
        for kind in kinds:
            made.append(new_store(kind, Path(folder), schemas))
            stack.callback(made[-1].close)
        yield made
        for store in made:
            store.close()
            if isinstance(store, SqliteStore):
                check_derived_tables(store._path)
                check_words_of_relations(store._path)
                check_token_vectors(store._path)
                check_integrity(store._path)


def copied(source: Source, target: Store) -> Copied:
    source.flush()
    return copying.copy(source.store, target, ("source", "target"), source.now, lambda _: None)


# ---------------------------------------------------------------- what must be equal


def everything(source: Source, store: Store) -> dict[str, Any]:
    """All that the verbs of a store say of it. Facts of forgotten memories supersede nothing, so their end is open."""
    ids = source.ids
    memories = store.get(ids)
    facts = {
        each.id: each if memories[each.memory_id].deleted is None else replace(each, valid_to=None, superseded_by=None)
        for several in store.facts_of(ids).values()
        for each in several
    }
    of_merging = (merging.DISPLACED, merging.REINSTATED, merging.IMPORTED, merging.MERGED, "expired")
    return {
        "memories": memories,
        "history": {
            each: [
                (event.at, event.action, event.before)
                for event in store.history(each)
                if event.action not in of_merging
            ]
            for each in ids
        },
        "facts": facts,
        "entities": store.entities(SPACES, None, 1_000),
        "links": {each: [one.name for one in several] for each, several in store.entities_of(ids).items()},
        "similar": store.similar(ids),
        "updates": store.updates(ids),
        "signals": store.signals(ids),
        "vectors": {each: None if (found := store.vectors(each)) is None else found.tobytes() for each in memories},
        "models": (store.model(), store.token_model()),
        "without tokens": store.pending_tokens(None, 1_000),
        "pending": store.pending(None, 1_000),
        "lenses": {space: store.lenses(space) for space in SPACES},
        "receipts": store.receipts(ReceiptFilter(spaces=SPACES, limit=10_000)),
        "tokens": {each.id: store.token(each.id) for each in store.tokens()},
    }


def answers(source: Source, store: Store) -> list[Any]:
    """What searches find, with scores and reasons. These searches are not logged."""
    found: list[Any] = []
    engine = Nacre(
        store, Hashing(), clock=lambda: source.now, timer=lambda: 0.0, zone=UTC, log=False, closes_store=False
    )
    for query in QUERIES:
        for mode in ("keyword", "semantic", "hybrid"):
            result = engine.search(query, where=Filter(spaces=SPACES), mode=mode, limit=20)
            found.append([(hit.id, hit.score, hit.relevance, hit.reasons) for hit in result.hits])
    engine.close()
    return found


def assert_equal(source: Source, target: Store) -> None:
    source.flush()
    first, second = everything(source, source.store), everything(source, target)
    for name in first:
        assert first[name] == second[name], name
    assert answers(source, source.store) == answers(source, target)


# ---------------------------------------------------------------- operations


class Operation(NamedTuple):
    name: str
    number: int
    text: str
    key: str | None
    seconds: int

    @property
    def space(self) -> str:
        return SPACES[self.number % 3 == 0]


def chosen(source: Source, each: Operation) -> str:
    return source.ids[each.number % len(source.ids)] if source.ids else "nothing"


def remember(source: Source, each: Operation, **more: Any) -> None:
    done = source.engines[each.space].remember(
        each.text, key=each.key, tags=[f"t{each.number % 3}"], session="s", metadata={"n": each.number}, **more
    )
    source.ids = sorted({*source.ids, done.id})


def drop_fact(source: Source, each: Operation) -> None:
    facts = sorted(fact.id for several in source.store.facts_of(source.ids).values() for fact in several)
    source.engines["default"].drop_facts(facts[each.number % len(facts)] if facts else "nothing")


def mark(source: Source, each: Operation) -> None:
    source.flush()
    outcome = ("opened", "used", "wrong")[each.number % 3]
    source.engines[each.space].mark(chosen(source, each), outcome)  # type: ignore[arg-type]


def drop_token(source: Source, each: Operation) -> None:
    tokens = source.store.tokens()
    source.engines["default"].revoke_token(tokens[each.number % len(tokens)].id if tokens else "nothing")


def fresh_vectors(source: Source, _: Operation) -> None:
    """Another model, with which all memories are embedded again."""
    source.store.switch_model("another")
    source.store.switch_model(Hashing().fingerprint)
    list(source.engines["default"].reembed())


OPERATIONS: dict[str, Callable[[Source, Operation], Any]] = {
    "remember": remember,
    "update": lambda source, each: source.engines[each.space].update(chosen(source, each), text=each.text),
    "rename": lambda source, each: source.engines[each.space].update(chosen(source, each), key=each.key),
    "tag": lambda source, each: source.engines[each.space].update(chosen(source, each), tags=["x"], importance=1),
    "forget": lambda source, each: source.engines[each.space].forget(chosen(source, each)),
    "restore": lambda source, each: source.engines[each.space].restore(chosen(source, each)),
    "purge": lambda source, each: source.engines[each.space].purge(chosen(source, each)),
    "separate": lambda source, each: source.engines[each.space].separate(chosen(source, each)),
    "expire": lambda source, each: remember(source, each, expires=timedelta(seconds=1 + each.seconds)),
    "supersede": lambda source, each: remember(source, each, supersedes=chosen(source, each)),
    "unlink": lambda source, each: source.engines[each.space].unlink((source.ids or [""])[-1], chosen(source, each)),
    "facts": lambda source, each: source.engines[each.space].add_facts(chosen(source, each), [FACTS[each.number % 2]]),
    "drop fact": drop_fact,
    "reinforce": lambda source, each: source.engines[each.space].reinforce(chosen(source, each), "explicit"),
    "entity": lambda source, each: source.engines[each.space].add_entity(
        NAMES[each.number % 4],
        kind=(None, "person")[each.number % 2],
        aliases=[NAMES[each.seconds % 4]],
        memory_ids=[chosen(source, each)] if each.number % 2 else [],
    ),
    "drop entity": lambda source, each: source.engines[each.space].drop_entity(NAMES[each.number % 4]),
    "lens": lambda source, each: source.engines[each.space].save_lens(Lens(name="mine", limit=1 + each.number % 3)),
    "drop lens": lambda source, each: source.engines[each.space].drop_lens("mine"),
    "search": lambda source, each: source.engines[each.space].search(QUERIES[each.number % 5], session="s"),
    "mark": mark,
    "clear log": lambda source, each: source.engines[each.space].clear_log() if each.number % 4 == 0 else None,
    "token": lambda source, each: source.engines[each.space].create_token("a server", role="write"),
    "drop token": drop_token,
    "embed": fresh_vectors,
}


def do(source: Source, each: Operation) -> None:
    """An operation that is refused does nothing."""
    source.now += timedelta(seconds=each.seconds)
    try:
        OPERATIONS[each.name](source, each)
    except NacreError:
        return


operations = st.builds(
    Operation,
    name=st.sampled_from(["remember", "remember", "remember", "update", "search", "copy", *OPERATIONS]),
    number=st.integers(0, 20),
    text=st.sampled_from(TEXTS),
    key=st.sampled_from(KEYS),
    seconds=st.sampled_from([0, 1, 1, 5]),
)
_BOUNDED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.slow
@given(st.lists(operations, min_size=3, max_size=30), st.sampled_from(KINDS), st.sampled_from(KINDS))
@_BOUNDED
def test_any_history_is_copied_at_once_and_step_by_step(history: list[Operation], kind: str, other: str) -> None:
    with stores(kind, other, "sqlite") as (store, target, back), closing(Source(store)) as source:
        for each in history:
            if each.name == "copy":
                copied(source, target)
            else:
                do(source, each)
        assert copied(source, target).verified
        assert_equal(source, target)
        again = copied(source, target)
        assert (again.added, again.updated) == (0, 0)
        copying.copy(target, back, ("target", "back"), source.now, lambda _: None)
        assert_equal(source, back)


# ---------------------------------------------------------------- what is refused, and what is not


def opened(path: Path | str, **options: Any) -> Nacre:
    return nacre.open(path, embedder=Hashing(), **options)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other.db"


def test_a_target_with_memories_of_its_own_is_refused_or_keeps_them(path: Path, other: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea at four")
        memory.create_token("mine")
    with opened(other) as memory:
        coffee = memory.remember("coffee at five").id
    with pytest.raises(Conflict, match="of its own"):
        nacre.copy_store(path, other)
    done = nacre.copy_store(path, other, merge=True)
    assert (done.added, done.verified, dict(done.counts)) == (1, False, {})
    with opened(other) as memory:
        assert {each.text for each in memory.search("four five", mode="keyword").hits} == {
            "tea at four",
            "coffee at five",
        }
        assert memory.tokens() == []
        assert [each.action for each in memory.history(coffee)] == ["remembered"]


def test_a_target_that_others_have_written_to_is_refused(path: Path, other: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea at four")
    nacre.copy_store(path, other)
    with opened(other) as memory:
        memory.search("tea")
    assert nacre.copy_store(path, other).verified  # to search is no writing, and leaves no trace in the log
    with opened(other) as memory:
        assert memory.receipts() == []
        memory.remember("coffee")
    with pytest.raises(Conflict, match="others have written"):
        nacre.copy_store(path, other)


def test_a_store_is_not_copied_onto_itself(path: Path, other: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea at four")
    other.write_bytes(path.read_bytes())
    for target in (path, other):
        with pytest.raises(InvalidInput, match="itself, or a copy of its file"):
            nacre.copy_store(path, target)


def test_a_source_that_was_restored_to_an_older_state_is_refused(path: Path, other: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea at four")
    older = path.read_bytes()
    with opened(path) as memory:
        memory.remember("coffee at five")
    nacre.copy_store(path, other)
    path.write_bytes(older)
    with pytest.raises(Conflict, match="older than what was copied"):
        nacre.copy_store(path, other)


def test_a_missing_source_is_named_and_not_created(path: Path, other: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        nacre.copy_store(path, other)
    assert not path.exists()
    assert not other.exists()


def test_what_differs_in_the_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with stores("reference", "reference") as (store, target), closing(Source(store)) as source:
        do(source, Operation("remember", 1, "tea", None, 0))
        honest = target.copying().checksums
        into = type(target.copying())

        def damaged(_: Any) -> Checksums:
            found = honest()
            return Checksums(found.counts, {**found.sums, "passages": found.sums["passages"] + 1})

        monkeypatch.setattr(into, "checksums", damaged)
        with pytest.raises(StoreCorrupt, match=r"passages \(1 and 1\) differ"):
            copied(source, target)
        monkeypatch.undo()
        assert copied(source, target).verified


def test_every_sort_of_record_counts() -> None:
    """A record of each sort that is changed in any way changes the checksum of its sort."""
    with stores("reference") as (store,), closing(Source(store)) as source:
        for number, name in enumerate(OPERATIONS):
            for _ in range(1 + (name == "remember") * 3):
                do(source, Operation(name, number, TEXTS[number % 4], None, 1))
        for text in TEXTS[:2]:
            do(source, Operation("remember", 1, text, None, 1))
        do(source, Operation("supersede", 2, TEXTS[2], None, 1))
        for name in ("lens", "entity", "facts", "token", "search", "mark"):
            do(source, Operation(name, 1, "", None, 1))
        source.flush()
        every: list[CopyRecord] = list(store.copying().records(ExportRequest(START, vectors=True)))
        whole = checksums.of(every)
        assert every[-1] == whole
        assert {sort for sort, number in whole.counts.items() if not number} == set()
        for at, record in enumerate(every[1:-1], 1):
            less = checksums.of([*every[:at], *every[at + 1 : -1]])
            assert (less == whole) is (type(record).__name__ == "LogBegins"), record


def test_changes_while_a_store_is_copied_come_with_the_next_copy(path: Path, other: Path) -> None:
    with opened(path) as memory:
        for number in range(50):
            memory.remember(f"memory number {number}")
        added: list[str] = []

        def meanwhile(_: Progress) -> None:
            if not added:
                added.append(memory.remember("written meanwhile").id)

        assert nacre.copy_store(path, other, progress=meanwhile).added == 50
        assert nacre.copy_store(path, other).added == 1


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_that_the_source_has_lost_are_dropped(kind: str) -> None:
    """A forgotten memory is not embedded again when the model is changed there and back."""
    with stores("reference", kind) as (store, target), closing(Source(store)) as source:
        for text in TEXTS[:3]:
            do(source, Operation("remember", 1, text, None, 1))
        do(source, Operation("forget", 1, "", None, 1))
        copied(source, target)
        do(source, Operation("embed", 1, "", None, 1))
        assert copied(source, target).counts["passages"] == 2
        assert_equal(source, target)


@pytest.mark.parametrize("kind", KINDS)
def test_token_vectors_that_were_added_later_are_copied(kind: str) -> None:
    with stores("sqlite", kind) as (store, target):
        before = Nacre(store, Hashing(), token_vectors=False, closes_store=False)
        before.remember("tea at four")
        before.close()
        with closing(Source(store)) as source:
            assert copied(source, target).counts["token_vectors"] == 0
            list(source.engines["default"].reembed())
            assert copied(source, target).counts["token_vectors"] == 1


@needs_postgres
def test_a_user_who_sees_some_spaces_cannot_copy(other: Path) -> None:
    with fresh_schemas() as schemas:
        schema = schemas.new()
        with opened(schemas.dsn, schema=schema) as memory:
            memory.remember("tea at four")
        role = f"{schema}_reader"
        schemas.execute(f"CREATE ROLE {role} LOGIN")
        try:
            schemas.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {role}')
            schemas.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {role}')
            with pytest.raises(StoreUnavailable, match="bound to spaces"):
                nacre.copy_store(schemas.dsn.replace("postgres@", f"{role}@"), other, schema=schema)
        finally:
            schemas.execute(f"DROP OWNED BY {role}")
            schemas.execute(f"DROP ROLE {role}")


# ---------------------------------------------------------------- killed

_COPY = """
import sys, nacre
source, target, schema, at = sys.argv[1:]
done = 0
def shown(progress):
    global done
    done = progress.done
    if done >= int(at):
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
from nacre.intake import copying
copying._BATCH_RECORDS = 20
nacre.copy_store(source, target, target_schema=schema, progress=shown)
"""


@pytest.mark.slow
@needs_postgres
@pytest.mark.parametrize("to", ["file", "database"])
def test_a_copy_that_was_killed_goes_on(path: Path, other: Path, to: str) -> None:
    with opened(path) as memory:
        for number in range(120):
            memory.remember(f"memory {number}: Alice likes the number {number}", session=f"s{number % 5}")
        memory.search("number 7")
        memory.forget(memory.search("number 9").hits[0].id)
    with fresh_schemas() as schemas:
        schema = schemas.new() if to == "database" else "nacre"
        target = schemas.dsn if to == "database" else str(other)
        for at in (10, 45, 119, 120):
            command = [sys.executable, "-c", _COPY, str(path), target, schema, str(at)]
            assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
        done = nacre.copy_store(path, target, target_schema=schema)
        assert done.verified
        assert done.added < 120  # the last one found what the first ones had stored
        again = nacre.copy_store(path, target, target_schema=schema)
        assert (again.added, again.updated) == (0, 0)
