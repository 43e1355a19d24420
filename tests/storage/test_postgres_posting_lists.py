"""Lists of postings that a process keeps: each block is sent once, and what is found is what the server has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.embedders.hashing import Hashing
from nacre.storage.postgres import PostgresStore, posting_lists, postings
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.posting_lists import KeptLists
from nacre.storage.postgres.postings import Array, Places, sorted_unique
from postgres_server import Schemas, fresh_schemas, needs_postgres

pytestmark = needs_postgres

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as fresh:
        yield fresh


@pytest.fixture(autouse=True)
def small_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fourth posting of a term ends a block."""
    monkeypatch.setattr(postings, "TAIL_BYTES_MAX", 3 * postings.POSTING.itemsize)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The terms of which blocks are asked for, by statement."""
    asked: list[tuple[str, ...]] = []

    def counting(db: Any, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        asked.append(tuple(parameters[1]))
        return fetch(db, statement, parameters)

    monkeypatch.setattr(posting_lists, "fetch", counting)
    return asked


def opened(schemas: Schemas, schema: str) -> nacre.Nacre:
    limits = nacre.Limits(results_cached=0)
    return nacre.open(schemas.dsn, schema=schema, embedder=Hashing(), reranker=None, limits=limits)


def store_of(memory: nacre.Nacre) -> PostgresStore:
    store = memory._store
    assert isinstance(store, PostgresStore)
    return store


def found(memory: nacre.Nacre, query: str) -> dict[str, float]:
    """Scores by text."""
    hits = memory.search(query, mode="keyword", limit=50).hits
    return {hit.text: hit.score for hit in hits}


def written(memory: nacre.Nacre, numbers: range) -> list[str]:
    return [memory.remember(f"heron {number} near a lake").id for number in numbers]


sorted_docs = st.lists(st.integers(0, 60_000), max_size=60).map(lambda docs: np.array(sorted(set(docs)), np.int64))


@given(sorted_docs, sorted_docs, st.sampled_from([1, 10, 1_000_000]))
def test_docs_are_found_in_others_whatever_their_number_and_distance(docs: Array, few: Array, spread: int) -> None:
    """By a table, by a search in them, and by a search in what is wanted."""
    many = sorted_unique(np.concatenate([few, np.arange(0, 30_000, 7)]))
    for known, wanted in ((docs, few), (docs, many), (many, docs)):
        known, wanted = known * spread, wanted * spread
        place, here = Places(known).of(wanted)
        assert known[place].tolist() == wanted[here].tolist() == np.intersect1d(known, wanted).tolist()
        assert sorted_unique(np.concatenate([known, wanted])).tolist() == np.union1d(known, wanted).tolist()


def test_each_block_is_sent_once(schemas: Schemas, sent: list[tuple[str, ...]]) -> None:
    with opened(schemas, schemas.new()) as memory:
        written(memory, range(10))
        assert len(found(memory, "heron")) == 10
        assert sent == [("heron",)]
        assert len(found(memory, "heron")) == 10
        written(memory, range(10, 11))  # fits into the tail
        assert len(found(memory, "heron")) == 11
        assert sent == [("heron",)]
        written(memory, range(11, 16))
        assert len(found(memory, "heron lake")) == 16
        assert sent[1:] == [("heron", "lake")]


def test_what_another_process_writes_and_purges_is_seen(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as one, opened(schemas, schema) as other:
        ids = written(other, range(9))
        assert len(found(one, "heron")) == 9
        written(other, range(9, 20))
        assert found(one, "heron") == found(other, "heron")
        assert len(found(one, "heron")) == 20
        other.purge(ids)
        other.update(other.remember("no bird").id, text="heron at last")
        assert found(one, "heron") == found(other, "heron")
        assert len(found(one, "heron")) == 12
        other.rebuild()
        assert len(found(one, "heron lake")) == 12
        for each in other.search("heron", mode="keyword", limit=50).hits:
            other.forget(each.id)  # the last of them takes all postings of the term away
        assert found(one, "heron") == {}
        written(other, range(5))
        assert len(found(one, "heron")) == 5


def test_a_snapshot_is_older_than_what_is_kept(schemas: Schemas) -> None:
    """What others have read since adds nothing to what it sees, and nothing counts twice."""
    schema = schemas.new()
    with opened(schemas, schema) as memory, opened(schemas, schema) as other:
        written(memory, range(6))
        before = found(memory, "heron")
        with store_of(memory).view():
            assert found(memory, "heron") == before
            written(other, range(6, 14))
            with opened(schemas, schema) as third:
                store_of(third)._kept_lists = store_of(memory)._kept_lists  # as another thread of the process has it
                assert len(found(third, "heron")) == 14
            assert found(memory, "heron") == before
        assert len(found(memory, "heron")) == 14


def test_no_more_is_kept_than_may_be(schemas: Schemas, sent: list[tuple[str, ...]]) -> None:
    with opened(schemas, schemas.new()) as memory:
        written(memory, range(12))
        everything = found(memory, "heron lake")
        for limit, asked in ((0, 2), (12 * 24, 2), (1 << 20, 1)):
            store_of(memory)._kept_lists = KeptLists(limit)
            sent.clear()
            assert found(memory, "heron lake") == found(memory, "heron lake") == everything
            assert len(sent) == asked


def test_labels_count_as_on_every_store(schemas: Schemas, tmp_path: Any) -> None:
    """Also where only some blocks have postings of labels."""
    with opened(schemas, schemas.new()) as memory, nacre.open(tmp_path / "m.db", embedder=Hashing()) as file:
        for store in (memory, file):
            for number in range(5):
                store.remember(f"heron {number}", key=str(number))
        assert found(memory, "heron lake") == pytest.approx(found(file, "heron lake"))
        for store in (memory, file):
            for number in range(5, 12):
                store.remember(
                    f"bird {number}", tags=["heron"], summary="lake" if number % 2 else None, key=str(number)
                )
        assert found(memory, "heron lake") == pytest.approx(found(file, "heron lake"))
        assert len(found(memory, "heron lake")) == 12


def test_lists_of_another_server_are_not_used(schemas: Schemas, sent: list[tuple[str, ...]]) -> None:
    """After a restoration docs may be given again: the tables are others, and the lists are read anew."""
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        written(memory, range(8))
        assert len(found(memory, "heron")) == 8
        schemas.execute("CREATE TABLE kept AS SELECT * FROM postings", schema)
        schemas.execute("TRUNCATE postings", schema)
        schemas.execute("INSERT INTO postings SELECT * FROM kept", schema)
        schemas.execute("DROP TABLE kept", schema)
        assert len(found(memory, "heron")) == 8
        assert sent == [("heron",)] * 2
