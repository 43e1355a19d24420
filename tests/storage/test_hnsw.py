"""The graph of a large space finds what a full comparison finds, and is a cache like any other.

Thresholds are lowered so that three thousand memories have a graph, and few enough are compared one by one.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nacre
from further_models import Bilingual
from index_files import (
    EVERYTHING,
    FEW_CANDIDATES,
    SPACE,
    Comparison,
    Gate,
    Prescribed,
    Vectors,
    age,
    background_threads,
    cache_files,
    cache_folder,
    empty,
    found,
    index_of,
    lengthen,
    live_memories,
    low_thresholds,
    nearest,
    randomise,
    reopened,
    settled,
    space_of,
    truncate,
)
from nacre.storage.sqlite import vector_search as sqlite_semantic
from nacre.storage.sqlite.index import hnsw as sqlite_graph
from nacre.storage.sqlite.index import space_index as sqlite_index
from nacre.storage.sqlite.index.segment import MAIN
from nacre.types.memory import Span
from nacre.types.recipe import adjusted
from servers import wait_until

MEMORIES = 3_000
BEHIND_MAX = 300
QUERIES = tuple(f"query {number}" for number in range(40))

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncached")]


def unit(vectors: npt.NDArray[np.float64]) -> Vectors:
    scaled: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled


@pytest.fixture(scope="module")
def clustered() -> Prescribed:
    """Vectors in sixty clusters, as meanings come: memories, questions near them, and some for later."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(60, 32))
    known: dict[str, Vectors] = {}
    for prefix, count, spread in (("memory", MEMORIES, 0.5), ("query", len(QUERIES), 0.5), ("later", 500, 0.5)):
        near = centres[random.integers(60, size=count)] + spread * random.normal(size=(count, 32))
        known |= {f"{prefix} {number}": vector for number, vector in enumerate(unit(near))}
    for number in range(500):  # nothing is further from a question than its opposite
        known[f"opposite {number}"] = unit(-known["query 0"][None] + 0.05 * random.normal(size=(1, 32)))[0]
        known[f"beside {number}"] = unit(known["query 0"][None] + 0.05 * random.normal(size=(1, 32)))[0]
    return Prescribed(known)


def lower(monkeypatch: pytest.MonkeyPatch) -> None:
    low_thresholds(monkeypatch, SAVED_MEMORIES_MIN=200, GRAPH_PASSAGES_MIN=1_000, GRAPH_BEHIND_MAX=BEHIND_MAX)
    monkeypatch.setattr(sqlite_semantic, "SCANNED_MAX", 50)


@pytest.fixture(scope="module")
def large_store(clustered: Prescribed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once, with its caches; every test works on a copy."""
    path = tmp_path_factory.mktemp("large") / "memories.db"
    with pytest.MonkeyPatch.context() as patched, opened(path, clustered) as engine:
        lower(patched)
        engine.remember_many(
            nacre.NewMemory(
                text=f"memory {number}",
                kind="rare" if number % 30 == 0 else "common",
                namespace="half" if number % 2 else "general",
            )
            for number in range(MEMORIES)
        )
        engine.rebuild()
        settled(engine)
    assert len(cache_files(path, ".hnsw")) == 1
    return path


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    lower(monkeypatch)
    return monkeypatch


@pytest.fixture
def graph_path(path: Path, large_store: Path, low: pytest.MonkeyPatch) -> Path:
    """A store without caches."""
    assert low is not None
    shutil.copyfile(large_store, path)
    return path


class SeveralPassages(Prescribed):
    """One passage for each paragraph."""

    def __init__(self, known: Prescribed) -> None:
        super().__init__(known._vectors, pieces_max=1)

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        return [(Span(*each.span()), 1) for each in re.finditer(r"[^\n]+", text)]


def opened(path: Path, embedder: Prescribed) -> nacre.Nacre:
    return nacre.open(path, embedder=embedder, log=False)


@pytest.fixture
def graphed(graph_path: Path, large_store: Path, clustered: Prescribed) -> Iterator[nacre.Nacre]:
    """An open store whose graph is built."""
    shutil.copytree(cache_folder(large_store), cache_folder(graph_path))
    with opened(graph_path, clustered) as engine:
        graph = graph_after_search(engine)
        assert graph is not None
        assert len(graph) == MEMORIES
        yield engine


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many were asked of the graph, search by search."""
    counted: list[int] = []
    usual = sqlite_graph.Graph.nearest

    def counting(self: sqlite_graph.Graph, vector: Any, count: int) -> Any:
        counted.append(count)
        return usual(self, vector, count)

    monkeypatch.setattr(sqlite_graph.Graph, "nearest", counting)
    return counted


def recall(
    engine: nacre.Nacre,
    embedder: Prescribed,
    queries: Sequence[str] = QUERIES,
    keep: Callable[[nacre.Memory], bool] = lambda _: True,
    **options: Any,
) -> float:
    """The share of the right ten that was found. The order of what was found is always right."""
    shares = []
    comparison = Comparison(engine, embedder, keep)
    for query in queries:
        got = found(engine, query, recipe=FEW_CANDIDATES, **options)
        right = comparison.nearest(query)
        assert len(got) == min(10, len(right))
        assert got == sorted(got, key=right.index)
        shares.append(len(set(got) & set(right[:10])) / max(1, len(right[:10])))
    return float(np.mean(shares))


def check_recall_and_growth(engine: nacre.Nacre, right: Prescribed, passages: int, queries: Sequence[str]) -> None:
    """Recall is good before and after the background work, which brings the graph to this size."""
    assert recall(engine, right, queries) >= 0.95
    settled(engine)
    graph = space_of(engine).graphs.get(MAIN)
    assert graph is not None
    assert len(graph) == passages
    assert recall(engine, right, queries) >= 0.95


def graph_after_search(engine: nacre.Nacre) -> sqlite_graph.Graph | None:
    found(engine, "query 0", 1)
    return space_of(engine).graphs.get(MAIN)


# ---------------------------------------------------------------- finding


def test_the_graph_finds_what_a_full_comparison_finds(
    graphed: nacre.Nacre, clustered: Prescribed, asked: list[int]
) -> None:
    assert recall(graphed, clustered) >= 0.95
    assert len(asked) == len(QUERIES)


def test_scores_by_graph_and_by_scan_are_the_same(
    graphed: nacre.Nacre, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cosines() -> dict[str, float | None]:
        hits = graphed.search("query 3", mode="semantic", limit=20, recipe=EVERYTHING).hits
        return {hit.id: hit.cosine for hit in hits}

    by_graph = cosines()
    assert len(asked) == 1
    monkeypatch.setattr(sqlite_semantic, "SCANNED_MAX", 10_000)
    by_scan = cosines()
    assert len(asked) == 1
    shared = by_graph.keys() & by_scan.keys()
    assert len(shared) >= 19
    assert {each: by_graph[each] for each in shared} == {each: by_scan[each] for each in shared}


def test_the_graph_finds_the_best_though_long_memories_are_nearer(
    clustered: Prescribed, low: pytest.MonkeyPatch, path: Path, asked: list[int]
) -> None:
    """Four of five memories have three passages, which take most places among the nearest and keep few of them."""
    assert low is not None
    several = SeveralPassages(clustered)
    with opened(path, several) as engine:
        engine.remember_many(
            "\n\n".join(f"memory {number + each}" for each in range(1 if number % 13 == 12 else 3))
            for number in range(MEMORIES)
            if number % 13 in (0, 3, 6, 9, 12) and number + 3 <= MEMORIES
        )
        engine.rebuild()
        settled(engine)
        assert len(asked) == 0
        orders = set()
        for weight in (0.0, 0.6):
            recipe, shares = adjusted(EVERYTHING, passages_weight=weight, pool=10), []
            for query in QUERIES:
                got = found(engine, query, recipe=recipe)
                low.setattr(sqlite_semantic, "SCANNED_MAX", 10_000)
                right = found(engine, query, recipe=adjusted(recipe, pool=20))
                low.setattr(sqlite_semantic, "SCANNED_MAX", 50)
                shares.append(len(set(got) & set(right)) / 10)
                assert got == [each for each in found(engine, query, 50, recipe=recipe) if each in got]
                orders.add((query, tuple(right)))
            assert asked
            assert np.mean(shares) >= 0.95, weight
        assert len(orders) > 1.5 * len(QUERIES), "the weight changes the order"
        assert max(asked) <= sqlite_semantic.WIDER_MAX * 200


def test_what_is_gone_or_changed_never_surfaces(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    near = nearest(graphed, clustered, "query 0", 40)
    graphed.forget(near[:10])
    graphed.purge(near[10:20])  # drops the graph; it is built again in the background
    found(graphed, "query 0", 1)
    settled(graphed)
    graphed.forget(near[20:25])
    for number, memory_id in enumerate(near[25:35]):
        graphed.update(memory_id, text=f"opposite {number}")
    graphed.restore(near[:2])
    assert graph_after_search(graphed) is not None
    got = found(graphed, "query 0", 50)
    assert not set(got) & set(near[2:35])
    assert set(near[:2]) <= set(got)
    assert recall(graphed, clustered, ["query 0", "query 1"]) >= 0.9


def test_what_was_forgotten_when_the_graph_was_built_comes_back(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    """Its passages are older than the graph, and yet not in it."""
    near = nearest(graphed, clustered, "query 0", 10)
    graphed.forget(near)
    graphed.rebuild()
    settled(graphed)
    assert not set(near) & set(found(graphed, "query 0", recipe=FEW_CANDIDATES))
    graphed.restore(near)
    assert graph_after_search(graphed) is not None
    assert found(graphed, "query 0", recipe=FEW_CANDIDATES) == near


def test_what_is_newer_than_the_graph_is_searched(
    graphed: nacre.Nacre, clustered: Prescribed, asked: list[int]
) -> None:
    before = space_of(graphed).graphs.get(MAIN)
    added = [graphed.remember(f"beside {number}").id for number in range(15)]
    changed = nearest(graphed, clustered, "query 9", 1)[0]
    graphed.update(changed, text="beside 99")
    assert set(found(graphed, "query 0", 16)) == {*added, changed}
    assert asked != []
    assert space_of(graphed).graphs.get(MAIN) is before
    graphed.update(added[3], kind="other")
    graphed.forget(added[4])
    passing = found(graphed, "query 0", 16, where=nacre.Filter(kinds=["note", "common", "rare"]))
    assert {*added, changed} & set(passing) == {*added[:3], *added[5:], changed}
    assert recall(graphed, clustered, QUERIES[:10]) >= 0.95


def test_what_is_new_and_far_does_not_hide_what_is_near(
    graphed: nacre.Nacre, clustered: Prescribed, asked: list[int]
) -> None:
    """The nearest hundred and fifty are forgotten and what is new is far away: the next nearest are in the graph."""
    graphed.forget(nearest(graphed, clustered, "query 0", 150))
    graphed.remember_many(f"opposite {number}" for number in range(60))
    assert recall(graphed, clustered, ["query 0"]) >= 0.9
    assert asked != []


@pytest.mark.parametrize(
    ("kind", "namespace", "by_graph"), [("rare", None, False), ("common", None, True), (None, "half", True)]
)
def test_filters_over_the_graph(
    graphed: nacre.Nacre,
    clustered: Prescribed,
    asked: list[int],
    kind: str | None,
    namespace: str | None,
    by_graph: bool,
) -> None:
    """A hundred of three thousand pass, or nearly all, or half: enough are found in every case."""
    where = nacre.Filter(kinds=[kind] if kind else [], namespaces=[namespace] if namespace else [])

    def keep(memory: nacre.Memory) -> bool:
        return memory.kind == kind or memory.namespace == namespace

    assert recall(graphed, clustered, QUERIES[:10], keep, where=where) >= 0.95
    assert bool(asked) == by_graph


def test_a_filter_that_hardly_anything_passes(graphed: nacre.Nacre, clustered: Prescribed, asked: list[int]) -> None:
    chosen = [memory for memory in live_memories(graphed) if memory.kind == "rare"][:4]
    for memory in chosen:
        graphed.update(memory.id, tags=["chosen"])
    where = nacre.Filter(tags_any=["chosen"])
    assert recall(graphed, clustered, QUERIES[:5], lambda memory: "chosen" in memory.tags, where=where) == 1
    assert found(graphed, "query 0", where=nacre.Filter(kinds=["unknown"])) == []
    assert asked == []


@pytest.mark.parametrize("far", [0, 60])
def test_the_near_ones_do_not_pass(graphed: nacre.Nacre, clustered: Prescribed, asked: list[int], far: int) -> None:
    """Most of all pass, but none of the nearest: the graph is asked for more, also where enough far ones are new."""
    for memory_id in nearest(graphed, clustered, "query 0", 250):
        graphed.update(memory_id, namespace="refused")
    graphed.remember_many(f"opposite {number}" for number in range(far))
    where = nacre.Filter(namespaces=["general", "half"])
    assert recall(graphed, clustered, ["query 0"], lambda memory: memory.namespace != "refused", where=where) >= 0.9
    assert len(asked) > 1


def test_a_long_memory_in_the_graph(graph_path: Path, clustered: Prescribed) -> None:
    """Its many passages take the graph's first places; others are found all the same."""

    class Sliced(Prescribed):
        def embed_query(self, text: str) -> Vectors:
            known = clustered._vectors.get(text)
            return clustered._vectors["query 0"] if known is None else known

    with opened(graph_path, Sliced({}, pieces_max=12)) as engine:
        right = nearest(engine, clustered, "query 0", 9)
        long_id = engine.remember(" ".join(f"word{number}" for number in range(5_000))).id
        engine.rebuild()
        graph = space_of(engine).graphs.get(MAIN)
        assert graph is not None
        assert len(graph) >= MEMORIES + 400
        assert found(engine, "query 0", recipe=FEW_CANDIDATES) == [long_id, *right]


# ---------------------------------------------------------------- files


@pytest.mark.usefixtures("graphed")
def test_the_graph_file_serves_a_second_process(
    graph_path: Path, clustered: Prescribed, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("nothing has to be built")

    monkeypatch.setattr(sqlite_graph, "grown", refused)
    assert len(cache_files(graph_path, ".hnsw")) == 1
    with opened(graph_path, clustered) as second:
        assert recall(second, clustered, QUERIES[:10]) >= 0.95
        assert len(asked) == 10
        assert background_threads() == []


def named_after_no_event(file: Path) -> None:
    name, _, newest = file.stem.rpartition("-")
    age(file.rename(file.with_name(f"{name.rpartition('-')[0]}-999999-{newest}.hnsw")))


def named_after_nothing(file: Path) -> None:
    file.rename(file.with_name(f"{file.name.partition('-')[0]}-x-y.hnsw"))


def of_other_dimensions(file: Path) -> None:
    index = sqlite_graph._new(8, nacre.Hnsw())
    index.add(np.arange(10, dtype=np.uint64), np.ones((10, 8), np.int8))
    index.save(str(file))
    sqlite_graph.seal(file, file.name)


def without_vectors(file: Path) -> None:
    sqlite_graph._new(32, nacre.Hnsw()).save(str(file))
    sqlite_graph.seal(file, file.name)


@pytest.mark.parametrize(
    "spoil",
    [
        truncate,
        randomise,
        empty,
        lengthen,
        named_after_no_event,
        named_after_nothing,
        of_other_dimensions,
        without_vectors,
    ],
)
def test_a_spoiled_graph_does_no_harm(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed, spoil: Callable[[Path], None]
) -> None:
    graphed.close()
    (file,) = cache_files(graph_path, ".hnsw")
    spoil(file)
    for _ in range(2):
        with opened(graph_path, clustered) as engine:
            check_recall_and_growth(engine, clustered, MEMORIES, QUERIES[:5])
        assert len(cache_files(graph_path, ".hnsw")) == 1


@pytest.mark.parametrize("other", ["format", "store", "history", "model"])
def test_a_graph_of_another_kind_is_built_anew(
    graphed: nacre.Nacre,
    graph_path: Path,
    clustered: Prescribed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: str,
) -> None:
    """It is as large and has the same keys, but other vectors: only its name tells."""
    graphed.close()
    (file,) = cache_files(graph_path, ".hnsw")
    turned = Prescribed({text: -vector for text, vector in clustered._vectors.items()})
    turned._vectors["text"] = turned._vectors[QUERIES[0]]  # by which `reembed` tries a model
    match other:
        case "format":
            monkeypatch.setattr(sqlite_graph, "FORMAT", sqlite_graph.FORMAT + 1)
        case "store":
            path = tmp_path / "other.db"
            with opened(path, turned) as engine:
                engine.remember_many(f"memory {number}" for number in range(MEMORIES))
                engine.rebuild()
            for each in cache_files(path):
                shutil.copyfile(each, cache_folder(graph_path) / each.name)
        case "history":
            backup, files = tmp_path / "backup", tmp_path / "files"
            shutil.copyfile(graph_path, backup)
            shutil.copytree(cache_folder(graph_path), files)
            with opened(graph_path, turned) as engine:
                engine.remember_many(f"later {number}" for number in range(400))
                found(engine, "query 0")
                settled(engine)
            (diverged,) = cache_files(graph_path, ".hnsw")
            shutil.copyfile(diverged, files / diverged.name)
            shutil.rmtree(cache_folder(graph_path))
            shutil.copytree(files, cache_folder(graph_path))
            file.unlink()
            shutil.copyfile(backup, graph_path)
            with opened(graph_path, clustered) as engine:
                engine.remember_many(f"later {number}" for number in range(400))
        case "model":
            monkeypatch.setattr(Prescribed, "fingerprint", property(lambda _: "turned"))
            with nacre.open(graph_path, embedder=turned, switch_model=True, log=False) as engine:
                list(engine.reembed())
            clustered = turned
    with opened(graph_path, clustered) as engine:
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95
        settled(engine)
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95
    with opened(graph_path, clustered) as engine:
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95
        assert len(cache_files(graph_path, ".hnsw")) == 1
        if other == "history":
            for text in (f"later {number}" for number in range(0, 400, 50)):
                assert engine.get(found(engine, text, 1))[0].text == text
        assert file.exists() == (other == "store")  # there it was made again, under the same name


def test_a_folder_deleted_while_open_is_made_anew(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed
) -> None:
    shutil.rmtree(cache_folder(graph_path))
    assert recall(graphed, clustered, QUERIES[:3]) >= 0.95
    graphed.remember_many(f"later {number}" for number in range(BEHIND_MAX + 1))
    check_recall_and_growth(graphed, clustered, MEMORIES + BEHIND_MAX + 1, QUERIES[:3])  # it has grown


@pytest.mark.parametrize("after", ["_saved", "is_sound"])
def test_a_graph_removed_by_another_process_costs_nothing_else(
    after: str,
    graphed: nacre.Nacre,
    graph_path: Path,
    clustered: Prescribed,
    low: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It vanishes once it was saved, or between its check and its loading. The files of segments stay."""
    done = getattr(sqlite_graph, after)

    def then_removed(*arguments: Any) -> Any:
        result = done(*arguments)
        for file in cache_files(graph_path, ".hnsw"):
            file.unlink()
        return result

    low.setattr(sqlite_graph, after, then_removed)
    graphed.remember_many(f"later {number}" for number in range(BEHIND_MAX + 1))
    check_recall_and_growth(graphed, clustered, MEMORIES + BEHIND_MAX + 1, QUERIES[:3])
    assert cache_files(graph_path, ".segment") != []
    assert "could not be brought up to date" not in caplog.text


def test_a_folder_that_cannot_be_written(
    graph_path: Path, clustered: Prescribed, asked: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    cache_folder(graph_path).write_text("in the way")
    with opened(graph_path, clustered) as engine:
        found(engine, "query 0")
        settled(engine)
        assert "the vector graph could not be written" in caplog.text
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95
        assert len(asked) == 5
        engine.remember_many(f"beside {number}" for number in range(BEHIND_MAX + 1))
        found(engine, "query 0")
        settled(engine)
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95


# ---------------------------------------------------------------- growing


def test_the_graph_grows_by_what_is_new(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    additional = sqlite_graph._additional

    def counting(*arguments: Any) -> Any:
        for keys, *others in additional(*arguments):
            added.append(len(keys))
            yield (keys, *others)

    monkeypatch.setattr(sqlite_graph, "_additional", counting)
    before = cache_files(graph_path, ".hnsw")
    graphed.remember_many(f"later {number}" for number in range(BEHIND_MAX))
    found(graphed, "query 0")
    settled(graphed)
    assert added == []  # so few are compared one by one
    graphed.remember(f"later {BEHIND_MAX}")
    found(graphed, "query 0")
    settled(graphed)
    assert added == [BEHIND_MAX + 1]
    graph = space_of(graphed).graphs.get(MAIN)
    assert graph is not None
    assert len(graph) == MEMORIES + BEHIND_MAX + 1
    assert recall(graphed, clustered, QUERIES[:10]) >= 0.95
    assert len(cache_files(graph_path, ".hnsw")) == 1
    assert cache_files(graph_path, ".hnsw") != before


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "semantic"])
def test_a_missing_graph_is_built_whoever_searches_first(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed, mode: Any
) -> None:
    """A process was killed before the graph was there, and nobody writes any more."""
    # Fails for "keyword" as long as `Index.ready` opens a space without asking the background for its graph.
    graphed.close()
    for file in cache_files(graph_path, ".hnsw"):
        file.unlink()
    with opened(graph_path, clustered) as engine:
        engine.search("memory 7" if mode == "keyword" else "query 0", mode=mode)
        found(engine, "query 0")
        settled(engine)
        assert space_of(engine).graphs.get(MAIN) is not None


def test_a_new_graph_leaves_out_what_is_gone(graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed) -> None:
    """It stands in a segment still, but is not alive there."""
    near = nearest(graphed, clustered, "query 0", 10)
    graphed.forget(near)
    shutil.rmtree(cache_folder(graph_path))
    index_of(graphed)._spaces.put(SPACE, replace(space_of(graphed), graphs={}))
    found(graphed, "query 0")
    settled(graphed)
    graph = space_of(graphed).graphs.get(MAIN)
    assert graph is not None
    assert len(graph) == MEMORIES - 10
    assert space_of(graphed).passages() == MEMORIES


def test_a_graph_does_not_grow_for_what_is_gone(
    graphed: nacre.Nacre, clustered: Prescribed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new was forgotten before the background came to it: there is nothing to add, and nothing to wait for."""
    with monkeypatch.context() as asleep:
        asleep.setattr(index_of(graphed)._worker, "wake", lambda: None)
        written = graphed.remember_many(f"later {number}" for number in range(BEHIND_MAX + 1))
        found(graphed, "query 0")
        graphed.forget([receipt.id for receipt in written])
        found(graphed, "query 0")
    graphed.update(live_memories(graphed)[0].id, kind="renamed")  # no new passage, but the background is asked
    assert recall(graphed, clustered, QUERIES[:3]) >= 0.95
    settled(graphed)
    assert recall(graphed, clustered, QUERIES[:3]) >= 0.95


def test_a_graph_that_another_process_replaced_still_grows(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed
) -> None:
    """The file it was opened from is gone."""
    with opened(graph_path, clustered) as other:
        other.remember_many(f"later {number}" for number in range(BEHIND_MAX + 1))
        found(other, "query 0")
        settled(other)
    check_recall_and_growth(graphed, clustered, MEMORIES + BEHIND_MAX + 1, QUERIES[:5])
    assert len(cache_files(graph_path, ".hnsw")) == 1


@pytest.fixture
def slices(low: pytest.MonkeyPatch) -> None:
    low.setattr(sqlite_graph, "_SLICE", 500)


@pytest.fixture
def growing(low: pytest.MonkeyPatch, slices: None) -> Iterator[Gate]:
    """A graph takes in vectors only when it is allowed to."""
    assert slices is None
    usual = sqlite_graph._new
    with Gate(lambda index, *given, **named: index.add(*given, **named)) as gate:

        class Held:
            def __init__(self, index: Any) -> None:
                self._index = index

            def add(self, *given: Any, **named: Any) -> None:
                gate(self._index, *given, **named)

            def __getattr__(self, name: str) -> Any:
                return getattr(self._index, name)

            def __len__(self) -> int:
                return len(self._index)

        low.setattr(sqlite_graph, "_new", lambda *given: Held(usual(*given)))
        yield gate


def test_a_graph_whose_file_a_rebuild_drops_is_built_again(
    graph_path: Path, clustered: Prescribed, low: pytest.MonkeyPatch
) -> None:
    usual = sqlite_graph.grown
    with Gate(lambda grown: grown) as gate, opened(graph_path, clustered) as engine:
        low.setattr(sqlite_graph, "grown", lambda *given: gate(usual(*given)))
        assert graph_after_search(engine) is None
        assert gate.begun.wait(60)
        assert len(cache_files(graph_path, ".hnsw")) == 1
        rebuilding = threading.Thread(target=engine.rebuild)
        rebuilding.start()
        wait_until(lambda: not cache_files(graph_path, ".hnsw"))
        gate.opened.set()
        rebuilding.join()
        graph = space_of(engine).graphs[MAIN]
        assert cache_files(graph_path, ".hnsw") == [graph.path]


def test_searches_and_writes_go_on_while_the_graph_is_built(
    graph_path: Path, clustered: Prescribed, growing: Gate
) -> None:
    """Until it is there searches compare everything, and see what is written meanwhile."""
    with opened(graph_path, clustered) as engine:
        assert graph_after_search(engine) is None
        assert growing.begun.wait(60)
        near = nearest(engine, clustered, "query 1", 3)
        added = engine.remember("beside 1").id
        assert found(engine, "query 0", 1) == [added]
        engine.forget(near[0])
        engine.update(near[1], text="opposite 1")
        assert recall(engine, clustered, QUERIES[:3]) == 1
        growing.opened.set()
        settled(engine)
        assert space_of(engine).graphs.get(MAIN) is not None
        assert found(engine, "query 0", 1) == [added]
        assert not set(near[:2]) & set(found(engine, "query 1", 20))
        engine.restore(near[0])
        assert found(engine, "query 1", 1) == [near[0]]
        assert recall(engine, clustered, QUERIES[:3]) >= 0.95
        assert len(cache_files(graph_path, ".hnsw")) == 1
    assert background_threads() == []


def test_closing_during_a_build_neither_hangs_nor_crashes(
    graph_path: Path, clustered: Prescribed, growing: Gate
) -> None:
    engine = opened(graph_path, clustered)
    found(engine, "query 0")
    assert growing.begun.wait(60)
    threading.Timer(0.1, growing.opened.set).start()
    engine.close()
    assert background_threads() == []
    (file,) = cache_files(graph_path, ".hnsw")  # given up after the slice it was at, which is kept
    assert file.stem.endswith("-500")
    assert cache_files(graph_path, ".tmp") == []
    with opened(graph_path, clustered) as again:
        check_recall_and_growth(again, clustered, MEMORIES, QUERIES[:3])


@pytest.mark.usefixtures("slices")
def test_a_build_that_was_interrupted_goes_on(
    graph_path: Path, clustered: Prescribed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was saved on the way is not built again."""
    additional = sqlite_graph._additional

    def broken(*arguments: Any) -> Any:
        for number, each in enumerate(additional(*arguments)):
            if number == 3:
                raise MemoryError("no more")
            yield each

    with opened(graph_path, clustered) as engine, monkeypatch.context() as broken_off:
        broken_off.setattr(sqlite_graph, "_additional", broken)
        found(engine, "query 0")
        settled(engine)
        assert recall(engine, clustered, QUERIES[:3]) == 1
    assert [file.stem.rpartition("-")[2] for file in cache_files(graph_path, ".hnsw")] == ["1000"]
    first: list[int] = []

    def noting(*arguments: Any) -> Any:
        for keys, *others in additional(*arguments):
            first.append(int(keys[0]))
            yield (keys, *others)

    monkeypatch.setattr(sqlite_graph, "_additional", noting)
    with opened(graph_path, clustered) as engine:
        found(engine, "query 0")
        settled(engine)
        assert first[0] == 1_001
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95


@pytest.mark.parametrize("again", [False, True], ids=["the first build", "while it grows"])
def test_a_purge_during_a_build_leaves_no_vectors_behind(
    graph_path: Path, clustered: Prescribed, growing: Gate, again: bool
) -> None:
    """The graph being built still holds the purged vectors; it must not reach the disk or a search."""
    with opened(graph_path, clustered) as engine:
        if again:
            growing.opened.set()
            found(engine, "query 0")
            settled(engine)
            growing.opened.clear()
            growing.begun.clear()
            engine.remember_many(f"later {number}" for number in range(BEHIND_MAX + 1))
        memory_id = nearest(engine, clustered, "query 0", 1)[0]
        assert found(engine, "query 0", 1) == [memory_id]
        assert growing.begun.wait(60)
        held = set(cache_files(graph_path, ".hnsw"))
        engine.purge(memory_id)
        purged_key = int(engine.stats().passages) + 1
        assert not held & set(cache_files(graph_path, ".hnsw"))
        growing.opened.set()
        settled(engine)
        found(engine, "query 0")
        settled(engine)
        graph = space_of(engine).graphs.get(MAIN)
        assert graph is not None
        assert len(graph) == engine.stats().passages == purged_key - 1
        assert memory_id not in found(engine, "query 0", 50)
    for file in cache_files(graph_path, ".hnsw"):
        index = sqlite_graph._new(32, nacre.Hnsw())
        index.load(str(file))
        assert len(index) == purged_key - 1


def test_a_graph_made_of_segments_that_lag_behind_knows_what_it_lacks(
    graph_path: Path, clustered: Prescribed, low: pytest.MonkeyPatch
) -> None:
    """A memory that was changed has the newest passage of all, and stands in the segment of its first event."""
    low.setattr(sqlite_index, "BITE_EVENTS", 1_000)
    with opened(graph_path, clustered) as engine:
        changed = nearest(engine, clustered, "query 7", 1)[0]
        engine.update(changed, text="beside 7")
        found(engine, "query 0")
        settled(engine)
        assert space_of(engine).graphs.get(MAIN) is not None
        assert found(engine, "query 0", 1) == [changed]
        assert recall(engine, clustered, QUERIES) >= 0.95


def test_without_its_graph_a_space_answers_as_before(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    index_of(graphed)._spaces.put(SPACE, replace(space_of(graphed), graphs={}))
    assert recall(graphed, clustered, QUERIES[:5]) == 1


# ---------------------------------------------------------------- parameters


def _with(path: Path, embedder: Prescribed, **parameters: int) -> nacre.Nacre:
    return nacre.open(path, embedder=embedder, log=False, hnsw=nacre.Hnsw(**parameters))


@pytest.mark.parametrize("parameters", [{"connectivity": 8}, {"expansion_add": 64}])
def test_a_graph_is_built_again_with_other_parameters(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed, parameters: dict[str, int]
) -> None:
    (usual,) = cache_files(graph_path, ".hnsw")
    graphed.close()
    with _with(graph_path, clustered, **parameters) as engine:
        graph = graph_after_search(engine)
        settled(engine)
        graph = graph_after_search(engine)
        assert graph is not None
        assert len(graph) == MEMORIES
        assert graph.index.connectivity == parameters.get("connectivity", 16)
        (built,) = cache_files(graph_path, ".hnsw")
        assert built.name != usual.name
    with _with(graph_path, clustered, **parameters) as engine:
        graph_after_search(engine)
        assert cache_files(graph_path, ".hnsw") == [built]


def test_a_graph_is_kept_where_only_the_search_looks_further(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed
) -> None:
    files = cache_files(graph_path, ".hnsw")
    graphed.close()
    with _with(graph_path, clustered, expansion_search=512) as engine:
        graph = graph_after_search(engine)
        assert graph is not None
        assert graph.index.expansion_search == 512
        assert cache_files(graph_path, ".hnsw") == files


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        (nacre.Hnsw(connectivity=3), "hnsw.connectivity"),
        (nacre.Hnsw(connectivity=129), "hnsw.connectivity"),
        (nacre.Hnsw(expansion_add=0), "hnsw.expansion_add"),
        (nacre.Hnsw(expansion_search=5_000), "hnsw.expansion_search"),
        ({"connectivity": 16}, "hnsw"),
    ],
)
def test_parameters_are_checked_before_a_file_is_created(path: Path, parameters: Any, field: str) -> None:
    with pytest.raises(nacre.InvalidInput) as caught:
        nacre.open(path, hnsw=parameters)
    assert caught.value.field == field
    assert not path.exists()


# ---------------------------------------------------------------- a further model


def test_a_further_model_has_a_graph_of_its_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    low_thresholds(monkeypatch, SAVED_MEMORIES_MIN=50, GRAPH_PASSAGES_MIN=100, GRAPH_BEHIND_MAX=50)
    monkeypatch.setattr(sqlite_semantic, "SCANNED_MAX", 20)
    further = Bilingual()
    notes = [f"note {number} about the key of cellar {number % 17}" for number in range(200)]

    def asked(engine: nacre.Nacre) -> list[str]:
        return [hit.id for hit in engine.search("Wo liegt der Schlüssel für Keller 5?", mode="semantic").hits]

    with reopened(path, further=further) as engine:
        engine.remember_many(notes)
        compared = asked(engine)
        engine.rebuild()
        settled(engine)
        graphs = space_of(engine).graphs
        assert sorted(map(len, graphs.values())) == [200, 200]
        assert len(cache_files(path, ".hnsw")) == len(cache_files(path, ".hnsw1")) == 1
        assert len(set(asked(engine)) & set(compared)) >= 9
    with reopened(path, further=further) as engine:
        engine.remember("another note about the key of cellar 5")
        assert len(set(asked(engine)) & set(compared)) >= 8
        assert len(space_of(engine).graphs) == 2
    assert {each.level for each in nacre.check_store(path).findings if each.check in ("vectors", "caches")} == {"fine"}
