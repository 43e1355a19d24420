"""What a segment says of filters and conditions is what the rows say: SQL is the truth, for every field and kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from nacre.embedders.hashing import Hashing
from nacre.query.ast import (
    AllOf,
    AnyOf,
    Condition,
    During,
    Linked,
    Near,
    Only,
    Phrase,
    Pinned,
    Term,
    Without,
    filter_matches,
)
from nacre.query.parser import parse
from nacre.storage.sqlite import SqliteStore
from nacre.storage.sqlite.filters import LIVE, Clause, search_clause
from nacre.storage.sqlite.index.filter_mask import FilterMask
from nacre.storage.sqlite.index.segment import Hashes, Segment, hashed
from nacre.storage.sqlite.index.segment_builder import of_rows
from nacre.storage.sqlite.rows import WORD_COLUMNS, tokens
from nacre.types.facts import FactType, NewFact
from nacre.types.search import Filter, Period
from strategies import (
    KEY_PREFIXES,
    KEYS,
    LANGUAGES,
    MOMENTS,
    SCALARS,
    SOURCES,
    SPACES,
    START,
    TAGS,
    ZONE,
    filters,
    new_memories,
    queries,
    varied_memories,
)

PARTS = ("facts", "tags", "source", "session", "summary", "metadata")


class Filled:
    """A store, and a segment of all live memories of each of its spaces."""

    def __init__(self, path: Path, memories: list[nacre.NewMemory]) -> None:
        with nacre.open(path, embedder=Hashing(64), log=False) as engine:
            written = engine.remember_many(memories)
            for number, each in enumerate(written[::3]):  # more types than the texts have
                kind = get_args(FactType)[number % len(get_args(FactType))]
                engine.add_facts(each.id, [NewFact(subject="Alice", predicate="has", object="it", type=kind)])
            engine.forget([each.id for each in written[::11]])
            engine.restore([each.id for each in written[::22]])
        self.store = SqliteStore(path)
        self.segments: dict[str, Segment] = {}
        with self.store._connections.reading() as db:
            every = [row for (row,) in db.execute("SELECT row FROM memories")]
            for space in SPACES:
                self.segments[space] = of_rows(db, space, every, Hashes())

    def agrees(self, must: Condition | None, where: Filter) -> int:
        """How many match: as many, and the same ones, by segments and by SQL."""
        count = 0
        with self.store._connections.reading() as db:
            mask = FilterMask(db, where, must)
            for space, segment in self.segments.items():
                clause = LIVE & Clause("m.space = ?", (space,)) & search_clause(where, must)
                sql = f"SELECT m.row FROM memories AS m WHERE {clause.sql} ORDER BY m.row"
                right = [row for (row,) in db.execute(sql, clause.parameters)]
                assert segment.rows[mask.of(segment, space)].tolist() == right, (space, must, where)
                count += len(right)
        return count


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    made = Filled(tmp_path_factory.mktemp("masks") / "memories.db", varied_memories())
    yield made
    made.store.close()


def where(**named: Any) -> Filter:
    return Filter(**{"spaces": SPACES, **named})


def somewhere(given: Filter) -> Filter:
    """The engine always names spaces."""
    return given if given.spaces else replace(given, spaces=SPACES)


# ---------------------------------------------------------------- every field

EXAMPLES: dict[str, list[Any]] = {
    "spaces": [[space] for space in SPACES] + [list(SPACES), ["nowhere"], ["nowhere", "other"]],
    "kinds": [["fact"], ["fact", "episode"], ["unknown"], ["unknown", "note"]],
    "namespaces": [["general"], ["general", "decisions"], ["unknown"]],
    "tags_any": [[tag] for tag in TAGS] + [["red", "Red"], ["unknown", "100%"], ["unknown"]],
    "tags_all": [[tag] for tag in TAGS] + [["red", "Red"], ["red", "unknown"], list(TAGS[:3])],
    "tags_none": [[tag] for tag in TAGS] + [["red", "Red"], ["unknown"]],
    "sources": [[source] for source in SOURCES]
    + [["docs/*"], ["*deploy*", "chat"], ["ch?t"], ["docs/[x]*"], ["?"], ["*"], ["unknown"], ["docs/[xy] staging.md"]],
    "sessions": [["s1"], ["s0", "s2"], ["unknown"]],
    "created_from": [*MOMENTS, START + timedelta(hours=50), START + timedelta(hours=51, microseconds=1)],
    "created_until": [*MOMENTS, START + timedelta(hours=50), START + timedelta(hours=51, microseconds=1)],
    "metadata": [{key: value} for key in KEYS for value in SCALARS]
    + [{"listed": None}, {"listed": ""}, {"kept": "{}"}, {"unknown": None}, {KEYS[0]: True, KEYS[1]: 1}],
    "has": [[part] for part in PARTS] + [["tags", "summary"], list(PARTS)],
    "fact_types": [[each] for each in get_args(FactType)] + [["kv", "location"], list(get_args(FactType))],
    "key_prefixes": [[each] for each in KEY_PREFIXES] + [["docs/", "k"], ["unknown", "k"]],
    "languages": [[each] for each in (*LANGUAGES, "en")] + [["de", "fr"], ["xx"], ["xx", "de"]],
    "importance_min": [0, 0.3, 1 / 3, 0.5, 1],
    "importance_max": [0, 0.3, 1 / 3, 0.5, 1],
}


def test_there_is_an_example_for_every_field_of_a_filter() -> None:
    assert EXAMPLES.keys() == {field.name for field in fields(Filter)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_field_of_a_filter(filled: Filled, name: str) -> None:
    """Each has examples that some memories pass and some do not, or nothing would be said by it."""
    passing = {filled.agrees(None, where(**{name: value})) for value in EXAMPLES[name]}
    assert passing & set(range(1, filled.agrees(None, where())))
    assert len(passing) > 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_sql_matches_what_the_reference_matches(filled: Filled, name: str) -> None:
    """The mask is compared with SQL, and SQL with the plain meaning of a filter, at the bounds of every example."""
    with filled.store._connections.reading() as db:
        ids = [memory_id for (memory_id,) in db.execute("SELECT id FROM memories WHERE deleted_us IS NULL")]
        facts = filled.store.facts_of(ids)
        memories = [replace(each, facts=facts.get(each.id, ())) for each in filled.store.get(ids).values()]
        for value in EXAMPLES[name]:
            given = where(**{name: value})
            clause = LIVE & search_clause(given, None)
            found = db.execute(f"SELECT m.id FROM memories AS m WHERE {clause.sql}", clause.parameters)
            expected = {each.id for each in memories if filter_matches(given, each)}
            assert {memory_id for (memory_id,) in found} == expected, given


CONDITIONS: list[Condition] = [
    Term("deploy"),
    Term("unknown"),
    Term("dep", prefix=True),
    Term("s", prefix=True),
    Phrase(("number", "17")),
    Phrase(("run", "num"), prefix=True),
    Phrase(("summary", "of")),
    Near((Phrase(("number",)), Phrase(("deploy",))), 1),
    Near((Phrase(("number",)), Phrase(("deploy",))), 0),
    Linked("alice"),
    Linked("nobody"),
    Only(Filter(tags_any=["red"])),
    Only(Filter(spaces=["other"])),
    Only(Filter(spaces=["ещё"], sources=["docs/*"])),
    Only(Filter(sources=["docs/*"], kinds=["note"])),
    Only(Filter(has=["facts"])),
    During(Period(START + timedelta(hours=50), START + timedelta(hours=60))),
    During(Period(None, START + timedelta(hours=50))),
    During(Period(START + timedelta(hours=50), None)),
    Pinned(),
    AnyOf((Term("deploy"), Phrase(("number", "3")), Only(Filter(tags_all=["red", "Red"])))),
    AllOf((Term("deploy"), Only(Filter(kinds=["note"])))),
    AllOf((Term("staging"), AnyOf((Term("run"), Linked("alice"))))),
    Without(None, Term("deploy")),
    Without(None, Only(Filter(sources=["docs/*"]))),  # a missing source is not like any
    Without(None, Only(Filter(sources=["chat"]))),
    Without(None, Only(Filter(sessions=["s1"]))),
    Without(None, Only(Filter(metadata={"a": 1}))),
    Without(None, Only(Filter(created_from=START + timedelta(hours=50)))),
    Without(Term("deploy"), AnyOf((Only(Filter(tags_none=["red"])), Linked("alice")))),
    Without(Without(None, Term("run")), Without(None, Term("deploy"))),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=repr)
def test_every_kind_of_condition(filled: Filled, condition: Condition) -> None:
    filled.agrees(condition, where())
    filled.agrees(condition, where(spaces=["other"], tags_none=["deploy"]))
    filled.agrees(Without(None, condition), where())


def test_the_conditions_of_these_tests_hold_for_some(filled: Filled) -> None:
    everything = filled.agrees(None, where())
    nothing = [condition for condition in CONDITIONS if filled.agrees(condition, where()) in (0, everything)]
    assert nothing == [Term("unknown"), Linked("nobody")]


# ---------------------------------------------------------------- all together

BOUNDED = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(BOUNDED, max_examples=150)
@given(query=queries, filtered=filters())
def test_any_query_and_filter(filled: Filled, query: str, filtered: Filter) -> None:
    filled.agrees(parse(query, START, ZONE).must, somewhere(filtered))


@contextmanager
def filled_with(path: Path, memories: list[nacre.NewMemory]) -> Iterator[Filled]:
    made = Filled(path, memories)
    try:
        yield made
    finally:
        made.store.close()


@pytest.mark.slow
@settings(BOUNDED, max_examples=25)
@given(
    memories=st.lists(new_memories().map(lambda new: replace(new, facts=[])), max_size=12),
    filtered=st.lists(filters(), min_size=5, max_size=5),
    query=queries,
)
def test_any_memories(
    tmp_path_factory: pytest.TempPathFactory, memories: list[nacre.NewMemory], filtered: list[Filter], query: str
) -> None:
    with filled_with(tmp_path_factory.mktemp("any") / "memories.db", memories) as made:
        for each in filtered:
            made.agrees(parse(query, START, ZONE).must, somewhere(each))


def test_big_and_odd_numbers_of_metadata(tmp_path: Path) -> None:
    """JSON has one sort of number, and what is not a 64-bit integer is a double."""
    odd = [
        2**63 - 1,
        -(2**63),
        2**53,
        2**53 + 1,
        float(2**53),
        1e15,
        1e16,
        1e22,
        1e300,
        5e-324,
        0.1,
        0.30000000000000004,
    ]
    memories = [nacre.NewMemory(text=f"number {at}", metadata={"a": value}) for at, value in enumerate(odd)]
    with filled_with(tmp_path / "memories.db", memories) as made:
        for value in odd:
            assert made.agrees(None, where(metadata={"a": value})) >= 0
            assert made.agrees(None, where(metadata={"a": str(value)})) == 0


# ---------------------------------------------------------------- words


def test_a_segment_says_of_every_word_who_has_it(filled: Filled) -> None:
    with filled.store._connections.reading() as db:
        for space, segment in filled.segments.items():
            check_words(db, space, segment)


def check_words(db: apsw.Connection, space: str, segment: Segment) -> None:
    sql = (
        f"SELECT m.row, m.created_us, {WORD_COLUMNS} FROM memories AS m JOIN tokens AS t ON t.row = m.row "
        "WHERE m.space = ? AND m.deleted_us IS NULL ORDER BY m.row"
    )
    stored = [(row, created, tokens(columns)) for row, created, *columns in db.execute(sql, (space,))]
    assert segment.rows.tolist() == [row for row, _, _ in stored]
    assert segment.created.tolist() == [created for _, created, _ in stored]
    assert segment.lengths.tolist() == [each.length for _, _, each in stored]
    every = sorted(
        {token for *_, (words, forms, _, *labels) in stored for part in (words, forms, *labels) for token in part}
    )
    assert len(every) > 30
    places = segment.places(np.array([hashed(token) for token in every], np.uint64)).tolist()
    for token, place in zip(every, places, strict=True):
        (held,) = segment.postings(np.array([place]))
        got = dict(zip(segment.docs[held].tolist(), segment.counts[held].tolist(), strict=True))
        right = {}
        all_labelled = []
        for doc, (_, _, (words, forms, _, *labels)) in enumerate(stored):
            count = words.count(token) + forms.count(token)
            labelled = [(doc, field, label.count(token)) for field, label in enumerate(labels) if token in label]
            if count or labelled:
                right[doc] = count
            all_labelled += labelled
        assert got == right
        (own,) = segment.labelled(np.array([place]))
        columns = (segment.label_docs[own], segment.label_fields[own], segment.label_counts[own])
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == all_labelled
        assert segment.most[place] == (0 if all_labelled else max(right.values()))
