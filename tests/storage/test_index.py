"""Segments and their files are caches: whatever happens to them, the answers stay right.

Thresholds are lowered so that small stores use the same machinery as large ones. Files that do not fit have their own
tests (test_cache_files.py), and so have the graph (test_graph_index.py) and purged texts (test_purge.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from index_files import (
    FEW_CANDIDATES,
    FLOWERS,
    QUESTIONS,
    SPACE,
    Gate,
    Prescribed,
    Vectors,
    background_threads,
    by_words,
    cache_files,
    check,
    flower_texts,
    found,
    index_of,
    live_memories,
    nearest,
    reopened,
    settled,
    sizes,
    space_of,
)
from nacre.embedders.hashing import Hashing
from nacre.runtime.background import Worker
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite.index import segment_builder
from nacre.storage.sqlite.index import space_index as sqlite_index

# Uncached, or else a search would not come to the caches meant here.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncached")]


def add_and_search(engine: nacre.Nacre, count: int, first: int) -> None:
    engine.remember_many(flower_texts(count, first))
    check(engine, QUESTIONS[:1])
    settled(engine)


# ---------------------------------------------------------------- segments


@pytest.mark.usefixtures("filled")
def test_a_file_spares_a_second_process_the_rows(path: Path, loads: list[int]) -> None:
    with reopened(path) as second:
        check(second)
        assert loads == []
        assert space_of(second).parts[0].saved
        assert not space_of(second).parts[0].segment.matrix.flags.owndata  # it is mapped
        second.remember("rose number new")
        check(second)
        assert loads == [1]  # only what came since


@pytest.mark.usefixtures("low")
def test_small_spaces_have_no_file(path: Path) -> None:
    with reopened(path) as engine:
        engine.remember_many(flower_texts(9))
        check(engine)
        settled(engine)
        assert cache_files(path) == []


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same connection", "another connection"])
def test_every_change_is_caught_up(path: Path, filled: nacre.Nacre, elsewhere: bool) -> None:
    """What one wrote the other finds, and nothing that is gone."""
    other = reopened(path) if elsewhere else filled
    check(other)
    ids = [memory.id for memory in live_memories(filled)]

    added = other.remember("lily lily lily").id
    assert found(filled, "lily lily lily", 1) == [added]
    check(filled)
    other.update(ids[0], text="orchid orchid changed")
    assert found(filled, "orchid orchid changed", 1) == [ids[0]]
    assert [each for each, _ in by_words(filled, "changed")] == [ids[0]]
    check(filled)
    other.update(ids[1], kind="renamed")  # its vectors stay
    assert found(filled, "rose", where=nacre.Filter(kinds=["renamed"])) == [ids[1]]
    check(filled)
    other.forget([ids[2], added])
    assert not {ids[2], added} & set(found(filled, "lily", 1000))
    check(filled, limit=100)
    other.restore(ids[2])
    check(filled, limit=100)
    other.purge([ids[3], added])
    check(filled, limit=100)
    other.update(ids[0], text="tulip changed again")  # from a fresh segment into a fresher one
    check(filled)
    check(other)
    if elsewhere:
        other.close()


def test_all_gone_and_back_again(filled: nacre.Nacre) -> None:
    """A segment without a living memory, then one more without a file."""
    ids = [memory.id for memory in live_memories(filled)]
    for memory_id in ids[:8]:
        filled.forget(memory_id)
        check(filled, QUESTIONS[:1])
    filled.forget(ids)
    assert found(filled, "rose") == []
    assert by_words(filled, "rose") == []
    filled.restore(ids[:3])
    check(filled, limit=3)
    filled.purge(ids)
    assert found(filled, "rose") == []
    filled.remember("rose once more")
    assert len(found(filled, "rose")) == 1
    assert len(by_words(filled, "rose")) == 1


@pytest.mark.usefixtures("low")
def test_a_first_search_before_the_first_memory(memory: nacre.Nacre) -> None:
    memory.remember("somewhere else", space="other")
    assert found(memory, "rose") == []
    first = memory.remember("rose").id
    assert found(memory, "rose") == [first]
    memory.forget(first)
    assert found(memory, "rose") == []


@pytest.mark.usefixtures("low")
def test_a_filter_that_nothing_passes(memory: nacre.Nacre) -> None:
    """With no segment, one, and several."""
    nothing = nacre.Filter(kinds=["unknown"])
    memory.remember("somewhere else", space="other")
    assert found(memory, "rose", where=nothing) == []
    first = memory.remember("rose").id
    assert found(memory, "rose", where=nothing) == []
    memory.rebuild()
    assert found(memory, "rose", where=nothing) == []
    memory.remember("tulip")
    assert found(memory, "rose", where=nothing) == []
    assert by_words(memory, "rose", where=nothing) == []
    assert found(memory, "-rose tulip", 1) != [first]
    assert found(memory, "such AND phrase") == []


@pytest.mark.usefixtures("low")
def test_the_only_memory_forgotten_after_a_search(memory: nacre.Nacre) -> None:
    first, second = (memory.remember(text).id for text in ("rose", "tulip"))
    assert found(memory, "rose") == [first, second]
    memory.forget(first)
    assert found(memory, "rose") == [second]
    memory.forget(second)
    assert found(memory, "rose") == []
    memory.restore([first])
    assert found(memory, "rose") == [first]


@pytest.mark.usefixtures("low")
def test_memories_without_vectors_are_found_by_words(memory: nacre.Nacre) -> None:
    """Beside others that have some, and a segment in which none has one."""
    first = memory.remember("rose").id
    assert found(memory, "rose") == [first]
    plain = nacre.Nacre(memory._store, None)
    bare = [plain.remember(f"tulip {number} without a vector").id for number in range(12)]
    assert found(memory, "rose") == [first]
    assert {each for each, _ in by_words(memory, "tulip", 20)} == set(bare)
    memory.rebuild()
    assert found(memory, "rose") == [first]
    list(memory.reembed())
    assert found(memory, "tulip 3 without a vector", 1) == [bare[3]]


# ---------------------------------------------------------------- merging


def test_segments_are_merged_as_they_gather(path: Path, filled: nacre.Nacre) -> None:
    """Each is more than four times as large as all that follow it together."""
    before = cache_files(path, ".segment")
    add_and_search(filled, 11, first=50)
    assert sizes(filled) == [50, 11]
    add_and_search(filled, 30, first=61)
    assert sizes(filled) == [91]
    (after,) = cache_files(path)  # the older files are dropped
    assert after not in before
    assert space_of(filled).parts[0].saved
    check(filled)
    with reopened(path) as engine:
        check(engine)
        assert sizes(engine) == [91]


def test_who_searches_has_fewer_segments_than_who_imports(
    path: Path, filled: nacre.Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_index, "_SEARCHED_RATIO", 16)
    filled.remember_many(flower_texts(11, first=50))
    index_of(filled).catch_up_in_background(["default"])
    settled(filled)
    assert sizes(filled) == [50, 11]
    filled.close()
    with reopened(path) as engine:
        check(engine)
        settled(engine)
        assert sizes(engine) == [61]
        check(engine)


def test_a_store_that_grows_one_by_one_has_few_segments(filled: nacre.Nacre) -> None:
    for new in flower_texts(40, first=50):
        filled.remember(new)
        check(filled, QUESTIONS[:1])
        settled(filled)
        assert len(sizes(filled)) <= 4
    check(filled)


def test_files_of_one_space_follow_each_other_however_others_grow(
    path: Path, filled: nacre.Nacre, loads: list[int]
) -> None:
    """A search after a write to another space moves the number of the last event on, and nothing else."""
    filled.remember("elsewhere", space="other")
    check(filled, QUESTIONS[:1])
    filled.remember_many(flower_texts(12, first=50))
    check(filled, QUESTIONS[:1])
    settled(filled)
    assert sum(sizes(filled)) == 62
    filled.close()
    loads.clear()
    with reopened(path) as engine:
        check(engine)
        assert loads == []


@pytest.mark.parametrize("bite", [1, 7, 50, 200])
def test_catching_up_in_bites(path: Path, low: pytest.MonkeyPatch, bite: int) -> None:
    """Memories that were changed while they waited stand in one segment only."""
    low.setattr(sqlite_index, "BITE_EVENTS", bite)
    with reopened(path) as engine:
        ids = [receipt.id for receipt in engine.remember_many(flower_texts(60))]
        engine.update(ids[3], text="orchid orchid changed")
        engine.forget(ids[10:20])
        engine.restore(ids[12:15])
        engine.purge(ids[30:33])
        check(engine, limit=100)
        settled(engine)
        check(engine, limit=100)
    with reopened(path) as engine:
        check(engine, limit=100)


def test_a_large_import_is_indexed_meanwhile(path: Path, low: pytest.MonkeyPatch, loads: list[int]) -> None:
    low.setattr(sqlite_store, "UNINDEXED_MEMORIES_MAX", 30)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(40))
        engine.remember_many(flower_texts(40, first=40))
        settled(engine)
        assert loads != []
        read = sum(loads)
        assert read >= 40
        check(engine)
        assert sum(loads) == 80  # each was read once
        assert cache_files(path, ".segment") != []


@pytest.mark.parametrize("asleep", [False, True])
def test_an_import_without_vectors_is_indexed_meanwhile(
    path: Path, low: pytest.MonkeyPatch, loads: list[int], asleep: bool
) -> None:
    """Also where the search comes before the background."""
    low.setattr(sqlite_store, "UNINDEXED_MEMORIES_MAX", 30)
    if asleep:
        low.setattr(Worker, "wake", lambda _: None)
    roses = sum("rose" in each.text for each in flower_texts(80))
    with nacre.open(path, embedder="none", log=False) as engine:
        engine.remember_many(flower_texts(40))
        engine.remember_many(flower_texts(40, first=40))
        assert len(by_words(engine, "rose", 100)) == roses
    loads.clear()
    with nacre.open(path, embedder="none", log=False) as engine:
        assert len(by_words(engine, "rose", 100)) == roses
        assert loads == []


def test_many_spaces_push_each_other_out(path: Path, low: pytest.MonkeyPatch) -> None:
    low.setattr(sqlite_index, "SPACES_CACHED_MAX", 2)
    with reopened(path) as engine:
        for space in "abcd":
            engine.remember_many(nacre.NewMemory(text=each.text, space=space) for each in flower_texts(12))
        for _ in range(2):
            for space in "abcd":
                hits = engine.search("rose", mode="semantic", where=nacre.Filter(spaces=[space])).hits
                assert {hit.memory.space for hit in hits} == {space}
            assert len(index_of(engine)._spaces) == 2
        for mode in ("semantic", "keyword"):
            together = engine.search("rose", mode=mode, where=nacre.Filter(spaces=list("abcd")), limit=40).hits
            assert {hit.memory.space for hit in together} == set("abcd")


@pytest.mark.usefixtures("low")
def test_a_long_memory_does_not_crowd_out_others(path: Path) -> None:
    """Five hundred passages of one memory fit the question better than any other memory does."""
    angles = {f"short {number}": 0.2 + number / 100 for number in range(30)}
    vectors = {text: np.array([np.cos(angle), np.sin(angle)], np.float32) for text, angle in angles.items()}
    long_text = " ".join(f"word{number}" for number in range(5_000))

    recipe = replace(FEW_CANDIDATES, passages_weight=0.0)  # by its best passage alone, the long one is first

    class Sliced(Prescribed):
        def embed_query(self, text: str) -> Vectors:
            return vectors.get(text, np.array([1, 0], np.float32))

    with nacre.open(path, embedder=Sliced({}, pieces_max=12)) as engine:
        long_id = engine.remember(long_text).id
        short_ids = [engine.remember(text).id for text in vectors]
        assert engine.stats().passages > 500
        for limit in (1, 5, 20):
            assert found(engine, "question", limit, recipe=recipe) == [long_id, *short_ids][:limit]
            where = nacre.Filter(created_from=engine.get(long_id)[0].created)
            assert found(engine, "question", limit, recipe=recipe, where=where) == [long_id, *short_ids][:limit]


def test_reembedding_with_another_model(path: Path, filled: nacre.Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of two models never meet, in files or in memory."""
    with nacre.open(path, embedder=Hashing(32), switch_model=True) as other:
        list(other.reembed())
        for query in FLOWERS:
            assert found(other, query) == nearest(other, Hashing(32), query, 10)
        settled(other)
        assert len(cache_files(path, ".segment")) == 1  # that of the first model is gone
    monkeypatch.setattr(sqlite_index, "SAVED_MEMORIES_MIN", 10_000)
    list(filled.reembed())  # back again: the file of the model before last is of no use
    check(filled)
    with reopened(path) as again:
        check(again)


def test_a_model_switched_after_a_search_by_words(path: Path, filled: nacre.Nacre) -> None:
    """That search has opened the file, with vectors of other dimensions."""
    filled.close()
    with nacre.open(path, embedder=Hashing(32), switch_model=True, log=False) as other:
        assert len(by_words(other, "rose", 100)) > 10
        list(other.reembed())
        for query in QUESTIONS:
            assert found(other, query) == nearest(other, Hashing(32), query, 10)
        assert {part.segment.matrix.shape[1] for part in space_of(other).parts} == {32}


def test_the_nearest_of_many_that_are_nearly_as_near(path: Path) -> None:
    """Eight bits cannot tell them apart: all that may be nearest are compared again."""
    random = np.random.default_rng(3)
    centre, *others = random.normal(size=(301, 32))
    turned = [other - centre * (other @ centre) / (centre @ centre) for other in others]
    vectors = {
        f"memory {number}": (centre + 1e-3 * number / 300 * centre + 0.5 * turn / np.linalg.norm(turn)).astype(
            np.float32
        )
        for number, turn in enumerate(turned)
    }
    embedder = Prescribed({**vectors, "question": centre.astype(np.float32)})
    with nacre.open(path, embedder=embedder, log=False) as engine:
        engine.remember_many(vectors)
        assert found(engine, "question", 1, recipe=FEW_CANDIDATES) == nearest(engine, embedder, "question", 1)
        assert found(engine, "question", 5, recipe=FEW_CANDIDATES) == nearest(engine, embedder, "question", 5)


def test_a_model_that_is_switched_to_and_back(path: Path, filled: nacre.Nacre) -> None:
    """The file of the first model fits again by its stamp, but its passages are no more."""
    filled.close()
    with nacre.open(path, embedder=Hashing(32), switch_model=True) as other:
        assert next(iter(other.reembed())) is not None  # switched, and then given up
    with nacre.open(path, embedder=Hashing(), switch_model=True) as engine:
        list(engine.reembed())
        check(engine)
        settled(engine)
    with reopened(path) as engine:
        check(engine)


# ---------------------------------------------------------------- in the background


@pytest.fixture
def merging(low: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Merging in the background stands still until it is let go on."""
    with Gate(segment_builder.merge) as gate:
        low.setattr(sqlite_index, "merge", gate)
        yield gate


def test_searches_and_writes_go_on_while_segments_are_merged(path: Path, merging: Gate) -> None:
    """And nothing of what is written, changed, forgotten, restored or purged meanwhile is lost or comes back."""
    with reopened(path) as engine:
        ids = [receipt.id for receipt in engine.remember_many(flower_texts(50))]
        check(engine)
        settled(engine)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        assert merging.begun.wait(60)
        engine.remember_many(flower_texts(3, first=100))
        check(engine, limit=100)
        engine.update(ids[0], text="orchid orchid changed")
        check(engine, limit=100)
        engine.forget(ids[5:9])
        check(engine, limit=100)
        engine.restore(ids[6])
        check(engine, limit=100)
        merging.opened.set()
        settled(engine)
        assert sizes(engine)[0] >= 80
        check(engine, limit=100)
    with reopened(path) as engine:
        check(engine, limit=100)


def test_a_purge_while_segments_are_merged(path: Path, merging: Gate, caplog: pytest.LogCaptureFixture) -> None:
    with reopened(path) as engine:
        ids = [receipt.id for receipt in engine.remember_many(flower_texts(50))]
        check(engine)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        assert merging.begun.wait(60)
        engine.purge(ids[3])
        check(engine, limit=100)
        merging.opened.set()
        settled(engine)
        check(engine, limit=100)
        assert all(memory_id != ids[3] for memory_id in found(engine, "lily", 1000))
        assert caplog.records == []  # nothing went wrong that nobody saw
    with reopened(path) as engine:
        check(engine, limit=100)


def test_closing_while_segments_are_merged(path: Path, merging: Gate) -> None:
    engine = reopened(path)
    engine.remember_many(flower_texts(50))
    check(engine)
    engine.remember_many(flower_texts(30, first=50))
    check(engine)
    assert merging.begun.wait(60)
    before = cache_files(path, ".segment")
    index_of(engine)._closing.set()  # as close() does, which then waits
    merging.opened.set()
    engine.close()
    assert background_threads() == []
    assert cache_files(path) == before  # it was given up
    with reopened(path) as again:
        check(again)
        settled(again)
        check(again)


def test_a_space_is_rebuilt_while_its_segments_are_merged(path: Path, merging: Gate) -> None:
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        assert merging.begun.wait(60)
        index_of(engine).drop([SPACE])
        check(engine, limit=100)
        merging.opened.set()
        settled(engine)
        check(engine, limit=100)
    with reopened(path) as engine:
        check(engine, limit=100)


def test_a_failure_in_the_background_is_given_and_does_no_harm(
    path: Path, low: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("out of order")

    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        settled(engine)
        low.setattr(index_of(engine), "_tidy_space", failing)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        settled(engine)
        assert "the index of a space could not be brought up to date (out of order)" in caplog.text
        check(engine)
