"""Writing many memories at once: what is counted, shared or skipped for speed gives what one by one gives."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import apsw
import pytest

import nacre
from nacre import NewMemory
from nacre.errors import InvalidInput
from nacre.storage.sqlite import vocabulary
from nacre.types.memory import Identity
from store_checks import check_derived_tables, check_integrity


def many(count: int) -> list[NewMemory]:
    """Texts of two spaces that share words, with labels and without, and one word in every column of a text."""
    return [
        NewMemory(
            text=f"The deployment of server{number} was a shared success, naïve or not: {number % 7} tries",
            space="here" if number % 3 else "there",
            summary="shared summary | of it" if number % 5 == 0 else None,
            tags=["shared", f"t{number % 4}"] if number % 4 else [],
            source="docs/shared/main.py" if number % 6 == 0 else None,
        )
        for number in range(count)
    ]


def dumped(path: Path) -> list[object]:
    """What was written, but for ids and times."""
    tables = {
        "memories": "row, space, kind, namespace, text, summary, tags, source, session, position, metadata, "
        "importance, typeof(importance), deleted_us, content_hash, embedded, happened_us",
        "tokens": "*",
        "vocabulary": "*",
        "corpus": "*",
        "tags": "*",
        "sketches": "*",
        "similar": "*",
        "events": "seq, action, space, row, before",
        "facts": "fact, row, space, subject, predicate, object, single",
    }
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return [
            db.execute(f"SELECT {columns} FROM {table} ORDER BY 1, 2").fetchall() for table, columns in tables.items()
        ]
    finally:
        db.close()


@pytest.mark.slow
def test_many_at_once_are_written_as_one_by_one(tmp_path: Path) -> None:
    items = [
        *many(700),
        *(NewMemory(text=text) for text in ("port: 8080", "Ada lives in London.", "…", "Ada lives in Rome.")),
    ]
    at_once, one_by_one = tmp_path / "once.db", tmp_path / "one.db"
    with nacre.open(at_once, embedder="none") as memory:
        memory.remember_many(items)
    with nacre.open(one_by_one, embedder="none") as memory:
        for item in items:
            memory.remember(item)
    assert dumped(at_once) == dumped(one_by_one)
    for path in (at_once, one_by_one):
        check_derived_tables(path)
        check_integrity(path)


@pytest.mark.slow
def test_counts_of_many_follow_forgetting_restoring_and_purging(path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        ids = [receipt.id for receipt in memory.remember_many(many(3 * vocabulary.BATCH_MIN))]
        memory.forget(ids[::2])
        check_derived_tables(path)
        memory.restore(ids[::2])  # enough of one space to be counted by SQLite
        check_derived_tables(path)
        memory.purge(ids[:10])
        memory.rebuild()
    check_derived_tables(path)


def test_values_that_are_equal_but_not_the_same_are_kept_apart(memory: nacre.Nacre) -> None:
    """Columns that all memories share are given once; what is shared must not depend on 1 == True == 1.0."""
    values = (1, True, 1.0, "1", None)
    receipts = memory.remember_many(
        NewMemory(text=f"text {n}", metadata={"a": value}) for n, value in enumerate(values)
    )
    kept = [memory.get(receipt.id)[0].metadata["a"] for receipt in receipts]
    assert [(type(value), value) for value in kept] == [(type(value), value) for value in values]


def test_texts_that_are_there_already_leave_no_gaps_in_what_is_written(path: Path) -> None:
    """Rows are counted up without a gap only where no text is refused. Another process may write it meanwhile."""
    with nacre.open(path, embedder="none") as memory, nacre.open(path, embedder="none") as other:
        store = memory._store
        look = store.identified
        known: list[str] = []

        def late(identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
            if known:
                return look(identities, now)
            known.append(other.remember("the second of three texts").id)  # after the look, before the write
            return {}

        with pytest.MonkeyPatch.context() as racing:
            racing.setattr(store, "identified", late)
            receipts = memory.remember_many(
                ["the first of three texts", "the second of three texts", "a third one, too"]
            )
        assert [receipt.duplicate for receipt in receipts] == [False, True, False]
        assert receipts[1].id == known[0]
        for receipt in receipts:
            assert [hit.id for hit in memory.search(memory.get(receipt.id)[0].text, limit=1).hits] == [receipt.id]
        assert memory.stats().memories == 3
    check_derived_tables(path)
    check_integrity(path)


def test_what_was_read_before_the_input_failed_is_stored_and_acknowledged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_MEMORIES", 10)

    def items() -> Iterator[str]:
        yield from (f"text {number}" for number in range(25))
        raise InvalidInput("line 26", "is not JSON")

    acknowledged: list[str] = []

    def consume(memory: nacre.Nacre) -> None:
        for receipts in memory.remember_batches(items()):
            acknowledged.extend(receipt.id for receipt in receipts)

    with nacre.open(path, embedder="none") as memory:
        with pytest.raises(InvalidInput, match="line 26"):
            consume(memory)
        assert len(acknowledged) == 20
        assert [found.text for found in memory.get(acknowledged)] == [f"text {number}" for number in range(20)]
        assert memory.stats().memories == 20


def test_who_stops_reading_receipts_stops_the_writing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_MEMORIES", 10)
    with nacre.open(path, embedder="none") as memory:
        batches = memory.remember_batches(f"text {number}" for number in range(100))
        assert len(next(batches)) == 10
        batches.close()  # type: ignore[attr-defined]
        assert memory.stats().memories == 10


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_afterwards_as_before(memory: nacre.Nacre, collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        memory.remember_many(f"text {number}" for number in range(20))
        with pytest.raises(InvalidInput):
            memory.remember_many(["fine", ""])
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()
