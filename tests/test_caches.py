"""Vector snapshots and graphs are caches: whatever happens to them, the answers stay right.

Thresholds are lowered so that small stores use the same machinery as large ones. What is right is
computed here by comparing a question with every live memory.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.stores.sqlite import SqliteStore
from nacre.stores.sqlite import vectors as sqlite_vectors
from nacre.types import Span
from nacre.vectors import cosines, pack, unpack

SPACE = "default"
EVERYTHING = nacre.Recipe(semantic_floor=-1, recency_weight=0, usage_weight=0, intent_weight=0)
FEW_CANDIDATES = replace(EVERYTHING, pool=1)  # then twice the limit is the pool
FLOWERS = ("rose", "tulip", "daisy", "lily", "orchid")
Vectors = npt.NDArray[np.float32]

pytestmark = pytest.mark.usefixtures("uncached")  # or else a search would not come to the caches meant here


class Prescribed:
    """An embedder that knows a vector for every text it will ever see."""

    def __init__(self, vectors: dict[str, Vectors], pieces_max: int = 1_000) -> None:
        self._vectors = vectors
        self._pieces_max = pieces_max

    @property
    def fingerprint(self) -> str:
        return "prescribed"

    @property
    def pieces_max(self) -> int:
        return self._pieces_max

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        return Hashing().weigh(text)

    def known(self, text: str) -> float:
        return 1.0 if text else 0.0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        return self._vectors[text]


def vector_index(engine: nacre.Nacre) -> sqlite_vectors.VectorIndex:
    store = engine._store
    assert isinstance(store, SqliteStore)
    return store._vectors


def state_of(engine: nacre.Nacre, space: str = SPACE) -> sqlite_vectors.SpaceVectors:
    return vector_index(engine)._states[space]


def cache_folder(path: Path) -> Path:
    return path.with_name(path.name + "-cache")


def cache_files(path: Path, suffix: str = "") -> list[Path]:
    return sorted(cache_folder(path).glob(f"*{suffix}"))


def live_memories(engine: nacre.Nacre) -> list[nacre.Memory]:
    listed = [engine.timeline(limit=1000)]
    while listed[-1].next is not None:
        listed.append(engine.timeline(limit=1000, cursor=listed[-1].next))
    return list(engine.get([entry.id for page in listed for entry in page.entries]))


class Comparison:
    """The right answers, by comparing each question with every live memory of one passage."""

    def __init__(
        self,
        engine: nacre.Nacre,
        embedder: Hashing | Prescribed,
        keep: Callable[[nacre.Memory], bool] = lambda _: True,
    ) -> None:
        memories = [memory for memory in live_memories(engine) if keep(memory)]
        vectors = embedder.embed_passages([memory.text for memory in memories])
        self._embedder = embedder
        self._ids = [memory.id for memory in memories]
        self._stored = unpack([pack(vector) for vector in vectors])

    def nearest(self, query: str, limit: int | None = None) -> list[str]:
        scores = cosines(self._stored, self._embedder.embed_query(query)).tolist()
        ranked = sorted(zip(scores, self._ids, strict=True), key=lambda each: (-each[0], each[1]))
        return [memory_id for _, memory_id in ranked[:limit]]


def nearest(engine: nacre.Nacre, embedder: Hashing | Prescribed, query: str, limit: int) -> list[str]:
    return Comparison(engine, embedder).nearest(query, limit)


def found(engine: nacre.Nacre, query: str, limit: int = 10, **options: Any) -> list[str]:
    options = {"recipe": EVERYTHING, **options}
    return [hit.id for hit in engine.search(query, mode="semantic", limit=limit, **options).hits]


def check(engine: nacre.Nacre, queries: Sequence[str] = FLOWERS, limit: int = 10) -> None:
    """Every question gets the right answer."""
    right = Comparison(engine, Hashing())
    for query in queries:
        assert found(engine, query, limit) == right.nearest(query, limit), query


def all_answers(engine: nacre.Nacre, queries: Sequence[str] = FLOWERS) -> list[Any]:
    """Hits with scores, reasons and snippets, in all modes."""
    wheres = [nacre.Filter(), nacre.Filter(kinds=["even"]), nacre.Filter(tags_none=["t1"])]
    return [
        engine.search(query, mode=mode, where=where, limit=limit).hits
        for query in queries
        for mode in ("keyword", "semantic", "hybrid")
        for where in wheres
        for limit in (3, 50)
    ]


def flower_texts(count: int, first: int = 0) -> list[nacre.NewMemory]:
    return [
        nacre.NewMemory(
            text=f"{FLOWERS[number % 5]} {FLOWERS[number // 5 % 5]} number {number}",
            kind="even" if number % 2 == 0 else "odd",
            tags=[f"t{number % 3}"],
        )
        for number in range(first, first + count)
    ]


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Snapshots from 10 passages on; a tail of up to 12."""
    monkeypatch.setattr(sqlite_vectors, "SNAPSHOT_PASSAGES_MIN", 10)
    monkeypatch.setattr(sqlite_vectors, "TAIL_PASSAGES_MAX", 12)
    return monkeypatch


class Loads(list[int]):
    """How many passages were read from rows, call by call."""


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    counted = Loads()
    load = sqlite_vectors._load

    def counting(*arguments: Any) -> Any:
        block = load(*arguments)
        counted.append(len(block))
        return block

    monkeypatch.setattr(sqlite_vectors, "_load", counting)
    return counted


@pytest.fixture
def filled(path: Path, low: pytest.MonkeyPatch) -> Iterator[nacre.Nacre]:
    """Fifty memories, and a snapshot of them."""
    assert low is not None
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        assert len(cache_files(path, ".vectors")) == 1
        yield engine


def reopened(path: Path, *, log: bool = False) -> nacre.Nacre:
    """Without the log, in which every search would leave a trace that moves later scores."""
    return nacre.open(path, embedder=Hashing(), log=log)


# ---------------------------------------------------------------- snapshots


@pytest.mark.usefixtures("filled")
def test_a_snapshot_spares_a_second_process_the_rows(path: Path, loads: Loads) -> None:
    with reopened(path) as second:
        check(second)
        assert loads == []
        assert isinstance(state_of(second).block.matrix.base, np.ndarray)
        second.remember("rose number new")
        check(second)
        assert loads == [1]  # only what came since


@pytest.mark.usefixtures("low")
def test_small_spaces_have_no_snapshot(path: Path) -> None:
    with reopened(path) as engine:
        engine.remember_many(flower_texts(9))
        check(engine)
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
    check(filled)
    other.update(ids[1], kind="renamed")  # its vectors stay
    assert found(filled, "rose", where=nacre.Filter(kinds=["renamed"])) == [ids[1]]
    check(filled)
    other.forget([ids[2], added])
    assert not {ids[2], added} & set(found(filled, "lily", 1000))
    check(filled)
    other.restore(ids[2])
    check(filled)
    other.purge([ids[3], added])
    check(filled)
    other.update(ids[0], text="tulip changed again")  # from the tail into the tail
    check(filled)
    check(other)
    if elsewhere:
        other.close()


def test_all_gone_and_back_again(filled: nacre.Nacre) -> None:
    """A block without a living passage, then a tail without a block."""
    ids = [memory.id for memory in live_memories(filled)]
    for memory_id in ids[:8]:
        filled.forget(memory_id)
        check(filled, FLOWERS[:1])
    filled.forget(ids)
    assert found(filled, "rose") == []
    filled.restore(ids[:3])
    check(filled, limit=3)
    filled.purge(ids)
    assert found(filled, "rose") == []
    filled.remember("rose once more")
    assert len(found(filled, "rose")) == 1


def test_a_first_search_before_the_first_memory(memory: nacre.Nacre) -> None:
    """The block stays empty, and everything stands in the tail."""
    memory.remember("somewhere else", space="other")
    assert found(memory, "rose") == []
    first = memory.remember("rose").id
    assert found(memory, "rose") == [first]
    memory.forget(first)
    assert found(memory, "rose") == []


def test_a_filter_that_nothing_passes(memory: nacre.Nacre) -> None:
    """With everything in the block, in the tail, and in both."""
    nothing = nacre.Filter(kinds=["unknown"])
    memory.remember("somewhere else", space="other")
    assert found(memory, "rose", where=nothing) == []
    first = memory.remember("rose").id
    assert found(memory, "rose", where=nothing) == []  # the block is empty
    memory.rebuild()
    assert found(memory, "rose", where=nothing) == []  # the tail is empty
    memory.remember("tulip")
    assert found(memory, "rose", where=nothing) == []
    assert found(memory, "-rose tulip", 1) != [first]
    assert found(memory, "such AND phrase") == []


def test_the_only_memory_forgotten_after_a_search(memory: nacre.Nacre) -> None:
    first, second = (memory.remember(text).id for text in ("rose", "tulip"))
    assert found(memory, "rose") == [first, second]
    memory.forget(first)
    assert found(memory, "rose") == [second]
    memory.forget(second)
    assert found(memory, "rose") == []
    memory.restore([first])
    assert found(memory, "rose") == [first]


def test_a_change_that_leaves_no_tail(memory: nacre.Nacre) -> None:
    """An event without new vectors, such as a memory kept without an embedder, changes nothing."""
    first = memory.remember("rose").id
    assert found(memory, "rose") == [first]
    nacre.Nacre(memory._store, None).remember("tulip without a vector")
    assert found(memory, "rose") == [first]


def test_a_long_tail_becomes_a_new_block(path: Path, filled: nacre.Nacre) -> None:
    before = cache_files(path, ".vectors")
    filled.remember_many(flower_texts(30, first=50))
    check(filled)
    after = cache_files(path, ".vectors")
    assert len(after) == 1  # the older file is dropped
    assert after != before
    assert (len(state_of(filled).block), len(state_of(filled).tail)) == (80, 0)


def test_a_tail_that_grows_one_by_one(filled: nacre.Nacre) -> None:
    for new in flower_texts(30, first=50):
        filled.remember(new)
        check(filled, FLOWERS[:2])
        assert len(state_of(filled).tail) <= 20  # a quarter of the block, at least twelve


def test_reembedding_with_another_model(path: Path, filled: nacre.Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of two models never meet, in files or in memory."""
    with nacre.open(path, embedder=Hashing(32), switch_model=True) as other:
        list(other.reembed())
        for query in FLOWERS:
            assert found(other, query) == nearest(other, Hashing(32), query, 10)
    monkeypatch.setattr(sqlite_vectors, "SNAPSHOT_PASSAGES_MIN", 10_000)
    list(filled.reembed())  # back again: the snapshot of the model before last is of no use
    check(filled)
    with reopened(path) as again:
        check(again)


# ---------------------------------------------------------------- files that do not fit


def damage_header(file: Path) -> None:
    file.write_bytes(b"\xff" * 4096 + file.read_bytes()[4096:])


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")


def randomise(file: Path) -> None:
    file.write_bytes(np.random.default_rng(3).bytes(5_000))


def empty(file: Path) -> None:
    file.write_bytes(b"")


def wrong_format(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"format": 1', b'"format": 9', 1))


def not_an_object(file: Path) -> None:
    file.write_bytes(b'["count", 3]'.ljust(4096) + file.read_bytes()[4096:])


def future(file: Path) -> None:
    """Named after an event that never was, as after restoring an older backup."""
    file.rename(file.with_name(f"{file.name.partition('-')[0]}-999999.vectors"))


@pytest.mark.parametrize(
    "spoil", [damage_header, truncate, lengthen, randomise, empty, wrong_format, not_an_object, future]
)
def test_a_spoiled_snapshot_is_dropped(path: Path, filled: nacre.Nacre, spoil: Callable[[Path], None]) -> None:
    filled.close()
    (file,) = cache_files(path, ".vectors")
    spoil(file)
    with reopened(path) as engine:
        check(engine)
        (fresh,) = cache_files(path, ".vectors")  # made anew
    with reopened(path) as engine:
        check(engine)
        assert cache_files(path, ".vectors") == [fresh]


def test_a_snapshot_of_another_store_is_dropped(path: Path, filled: nacre.Nacre, tmp_path: Path) -> None:
    """The same space, number of events and texts in another order: only the store tells them apart."""
    filled.close()
    other = tmp_path / "other.db"
    with nacre.open(other, embedder=Hashing()) as engine:
        engine.remember_many(reversed(flower_texts(50)))
        check(engine)
    shutil.copytree(cache_folder(other), cache_folder(path), dirs_exist_ok=True)
    with reopened(path) as engine:
        check(engine)


def test_a_snapshot_of_a_diverged_history_is_dropped(path: Path, filled: nacre.Nacre, tmp_path: Path) -> None:
    """A store restored from a backup has other events under the same numbers."""
    filled.close()
    backup = tmp_path / "backup"
    shutil.copyfile(path, backup)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=50))
        check(engine)  # writes a snapshot as of event 80
    shutil.copyfile(backup, path)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=200))
        check(engine)
        check(engine, [f"rose number {number}" for number in range(200, 230)], limit=3)
    with reopened(path) as engine:
        check(engine)


def test_a_store_restored_to_before_its_snapshot(path: Path, filled: nacre.Nacre, tmp_path: Path) -> None:
    filled.close()
    backup = tmp_path / "backup"
    shutil.copyfile(path, backup)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
    shutil.copyfile(backup, path)
    with reopened(path) as engine:
        check(engine, limit=60)


@pytest.mark.parametrize("when", ["open", "closed"])
def test_deleting_the_cache_folder_changes_nothing(path: Path, filled: nacre.Nacre, when: str) -> None:
    before = all_answers(filled)
    if when == "closed":
        filled.close()
    shutil.rmtree(cache_folder(path))
    with reopened(path) as engine:
        assert all_answers(engine) == before
    if when == "open":
        assert all_answers(filled) == before
        filled.remember_many(flower_texts(30, first=50))
        check(filled)


@pytest.mark.usefixtures("low")
def test_a_cache_folder_that_cannot_be_made(path: Path) -> None:
    """Without a place for files everything still works."""
    cache_folder(path).write_text("in the way")
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        engine.rebuild()
        check(engine)
        engine.purge(live_memories(engine)[0].id)
        check(engine)


def test_rebuild_changes_no_answer(filled: nacre.Nacre) -> None:
    ids = [memory.id for memory in live_memories(filled)]
    filled.forget(ids[:3])
    filled.update(ids[4], text="lily lily lily")
    filled.purge(ids[5])
    before = all_answers(filled)
    filled.rebuild()
    assert all_answers(filled) == before
    filled.rebuild()
    assert all_answers(filled) == before


def test_many_spaces_push_each_other_out(path: Path, low: pytest.MonkeyPatch) -> None:
    low.setattr(sqlite_vectors, "SPACES_CACHED_MAX", 2)
    with reopened(path) as engine:
        for space in "abcd":
            engine.remember_many(nacre.NewMemory(text=each.text, space=space) for each in flower_texts(12))
        for _ in range(2):
            for space in "abcd":
                hits = engine.search("rose", mode="semantic", where=nacre.Filter(spaces=[space])).hits
                assert {hit.memory.space for hit in hits} == {space}
            assert len(vector_index(engine)._states) == 2
        together = engine.search("rose", mode="semantic", where=nacre.Filter(spaces=list("abcd")), limit=8).hits
        assert sorted(hit.memory.space for hit in together) == sorted("abcd" * 2)


@pytest.mark.usefixtures("low")
def test_a_long_memory_does_not_crowd_out_others(path: Path) -> None:
    """Five hundred passages of one memory fit the question better than any other memory does."""
    angles = {f"short {number}": 0.2 + number / 100 for number in range(30)}
    vectors = {text: np.array([np.cos(angle), np.sin(angle)], np.float32) for text, angle in angles.items()}
    long_text = " ".join(f"word{number}" for number in range(5_000))

    class Sliced(Prescribed):
        def embed_query(self, text: str) -> Vectors:
            return vectors.get(text, np.array([1, 0], np.float32))

    with nacre.open(path, embedder=Sliced({}, pieces_max=12)) as engine:
        long_id = engine.remember(long_text).id
        short_ids = [engine.remember(text).id for text in vectors]
        assert engine.stats().passages > 500
        for limit in (1, 5, 20):
            assert found(engine, "question", limit, recipe=FEW_CANDIDATES) == [long_id, *short_ids][:limit]
            where = nacre.Filter(created_from=engine.get(long_id)[0].created)
            assert found(engine, "question", limit, recipe=FEW_CANDIDATES, where=where) == [long_id, *short_ids][:limit]


# ---------------------------------------------------------------- the graph

MEMORIES = 3_000
QUERIES = tuple(f"query {number}" for number in range(40))


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


@pytest.fixture(scope="module")
def large_store(clustered: Prescribed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once; every test works on a copy."""
    path = tmp_path_factory.mktemp("large") / "memories.db"
    with nacre.open(path, embedder=clustered) as engine:
        engine.remember_many(
            nacre.NewMemory(
                text=f"memory {number}",
                kind="rare" if number % 30 == 0 else "common",
                namespace="half" if number % 2 else "general",
            )
            for number in range(MEMORIES)
        )
    return path


@pytest.fixture
def graph_path(path: Path, large_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sqlite_vectors, "HNSW_PASSAGES_MIN", 1_000)
    monkeypatch.setattr(sqlite_vectors, "SNAPSHOT_PASSAGES_MIN", 500)
    monkeypatch.setattr(sqlite_vectors, "TAIL_PASSAGES_MAX", 1_000)
    shutil.copyfile(large_store, path)
    return path


@pytest.fixture
def graphed(graph_path: Path, clustered: Prescribed) -> Iterator[nacre.Nacre]:
    """An open store whose graph is built."""
    with nacre.open(graph_path, embedder=clustered) as engine:
        engine.rebuild()
        assert state_of(engine).graph is not None
        yield engine


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


def test_the_graph_finds_what_a_full_comparison_finds(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    assert recall(graphed, clustered) >= 0.95


def test_scores_by_graph_and_by_scan_are_the_same(graphed: nacre.Nacre) -> None:
    by_graph = {
        hit.id: hit.cosine for hit in graphed.search("query 3", mode="semantic", limit=20, recipe=EVERYTHING).hits
    }
    vector_index(graphed)._states[SPACE] = replace(state_of(graphed), graph=None)
    by_scan = {
        hit.id: hit.cosine for hit in graphed.search("query 3", mode="semantic", limit=20, recipe=EVERYTHING).hits
    }
    shared = by_graph.keys() & by_scan.keys()
    assert len(shared) >= 19
    assert {each: by_graph[each] for each in shared} == {each: by_scan[each] for each in shared}


@pytest.mark.usefixtures("graphed")
def test_the_graph_file_serves_a_second_process(graph_path: Path, clustered: Prescribed) -> None:
    assert len(cache_files(graph_path, ".hnsw")) == 1
    with nacre.open(graph_path, embedder=clustered) as second:
        assert recall(second, clustered, QUERIES[:10]) >= 0.95
        assert state_of(second).graph is not None
        assert vector_index(second)._builder is None  # nothing had to be built


@pytest.mark.parametrize("spoil", [truncate, randomise, empty])
def test_a_spoiled_graph_is_built_anew(
    graphed: nacre.Nacre, graph_path: Path, clustered: Prescribed, spoil: Callable[[Path], None]
) -> None:
    graphed.close()
    (file,) = cache_files(graph_path, ".hnsw")
    spoil(file)
    with nacre.open(graph_path, embedder=clustered) as engine:
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95
        wait_for_graph(engine)
        assert recall(engine, clustered, QUERIES[:5]) >= 0.95


def test_what_is_gone_or_changed_never_surfaces(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    near = nearest(graphed, clustered, "query 0", 40)
    graphed.forget(near[:10])
    graphed.purge(near[10:20])  # drops state and files; the graph is built again in the background
    wait_for_graph(graphed)
    graphed.forget(near[20:25])
    for number, memory_id in enumerate(near[25:35]):
        graphed.update(memory_id, text=f"opposite {number}")
    graphed.restore(near[:2])
    assert state_of(graphed).graph is not None
    got = found(graphed, "query 0", 50)
    assert not set(got) & set(near[2:35])
    assert set(near[:2]) <= set(got)
    assert recall(graphed, clustered, ["query 0", "query 1"]) >= 0.9


def test_the_tail_is_searched(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    added = [graphed.remember(f"beside {number}").id for number in range(15)]
    changed = nearest(graphed, clustered, "query 9", 1)[0]
    graphed.update(changed, text="beside 99")
    assert set(found(graphed, "query 0", 16)) == {*added, changed}
    assert state_of(graphed).graph is not None
    assert len(state_of(graphed).tail) == 16
    assert recall(graphed, clustered, QUERIES[:10]) >= 0.95


def test_a_full_tail_does_not_hide_the_block(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    """The nearest hundred and fifty are forgotten and the tail is far away: the next nearest are in the block."""
    graphed.forget(nearest(graphed, clustered, "query 0", 150))
    graphed.remember_many(f"opposite {number}" for number in range(60))
    assert state_of_after_search(graphed).graph is not None
    assert recall(graphed, clustered, ["query 0"]) >= 0.9


@pytest.mark.parametrize("kind", ["rare", "common"])
def test_filters_over_the_graph(graphed: nacre.Nacre, clustered: Prescribed, kind: str) -> None:
    """A hundred of three thousand pass, or nearly all: enough are found either way."""
    where = nacre.Filter(kinds=[kind])
    assert recall(graphed, clustered, QUERIES[:10], lambda memory: memory.kind == kind, where=where) >= 0.95


def test_a_filter_that_hardly_anything_passes(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    chosen = [memory for memory in live_memories(graphed) if memory.kind == "rare"][:4]
    for memory in chosen:
        graphed.update(memory.id, tags=["chosen"])
    where = nacre.Filter(tags_any=["chosen"])
    assert recall(graphed, clustered, QUERIES[:5], lambda memory: "chosen" in memory.tags, where=where) == 1
    assert found(graphed, "query 0", where=nacre.Filter(kinds=["unknown"])) == []


def test_a_filtered_tail_does_not_hide_the_block(graphed: nacre.Nacre, clustered: Prescribed) -> None:
    """Many in the tail pass the filter, but those in the block that pass are nearer."""
    graphed.remember_many(nacre.NewMemory(text=f"opposite {number}", kind="rare") for number in range(60))
    assert state_of_after_search(graphed).graph is not None
    where = nacre.Filter(kinds=["rare"])
    assert recall(graphed, clustered, QUERIES[:5], lambda memory: memory.kind == "rare", where=where) >= 0.95


def test_a_long_memory_in_the_graph(graph_path: Path, clustered: Prescribed) -> None:
    """Its many passages take the graph's first places; others are found all the same."""

    class Sliced(Prescribed):
        def embed_query(self, text: str) -> Vectors:
            known = clustered._vectors.get(text)
            return clustered._vectors["query 0"] if known is None else known

    with nacre.open(graph_path, embedder=Sliced({}, pieces_max=12)) as engine:
        right = nearest(engine, clustered, "query 0", 9)
        long_id = engine.remember(" ".join(f"word{number}" for number in range(5_000))).id
        engine.rebuild()
        assert state_of(engine).graph is not None
        assert len(state_of(engine).block) >= MEMORIES + 400
        assert found(engine, "query 0", recipe=FEW_CANDIDATES) == [long_id, *right]


# ---------------------------------------------------------------- building the graph aside


def wait_for_graph(engine: nacre.Nacre, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while state_of_after_search(engine).graph is None:
        assert time.monotonic() < deadline, "the graph was never built"
        time.sleep(0.02)


def state_of_after_search(engine: nacre.Nacre) -> sqlite_vectors.SpaceVectors:
    found(engine, "query 0", 1)
    return state_of(engine)


class SlowGraph:
    """A graph that takes in vectors only when it is allowed to."""

    def __init__(self, graph: Any, allowed: threading.Event, begun: threading.Event) -> None:
        self._graph = graph
        self._allowed = allowed
        self._begun = begun

    def add(self, *arguments: Any) -> None:
        self._begun.set()
        assert self._allowed.wait(30)
        self._graph.add(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def __len__(self) -> int:
        return len(self._graph)


class Gate:
    def __init__(self) -> None:
        self.allowed = threading.Event()
        self.begun = threading.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Holds every build back until it is opened."""
    held = Gate()
    new_graph = sqlite_vectors._new_graph
    monkeypatch.setattr(
        sqlite_vectors, "_new_graph", lambda dimensions: SlowGraph(new_graph(dimensions), held.allowed, held.begun)
    )
    monkeypatch.setattr(sqlite_vectors, "_GRAPH_SLICE", 500)
    yield held
    held.allowed.set()


def test_a_background_build_is_attached_when_done(graph_path: Path, clustered: Prescribed, gate: Gate) -> None:
    """Until then searches compare everything, and see what is written meanwhile."""
    with nacre.open(graph_path, embedder=clustered) as engine:
        assert state_of_after_search(engine).graph is None
        assert gate.begun.wait(10)
        added = engine.remember("beside 1").id
        assert found(engine, "query 0", 1) == [added]
        assert recall(engine, clustered, QUERIES[:3]) == 1
        gate.allowed.set()
        wait_for_graph(engine)
        assert found(engine, "query 0", 1) == [added]
        assert recall(engine, clustered, QUERIES[:3]) >= 0.95
        assert len(cache_files(graph_path, ".hnsw")) == 1
    assert [thread.name for thread in threading.enumerate() if thread.name == "nacre-hnsw"] == []


def test_closing_during_a_build_neither_hangs_nor_crashes(graph_path: Path, clustered: Prescribed, gate: Gate) -> None:
    engine = nacre.open(graph_path, embedder=clustered)
    found(engine, "query 0")
    assert gate.begun.wait(10)
    threading.Timer(0.1, gate.allowed.set).start()
    began = time.monotonic()
    engine.close()
    assert time.monotonic() - began < 10
    assert [thread.name for thread in threading.enumerate() if thread.name == "nacre-hnsw"] == []
    assert cache_files(graph_path, ".hnsw") == []  # given up after the slice it was at
    assert cache_files(graph_path, ".tmp") == []
    with nacre.open(graph_path, embedder=clustered) as again:
        wait_for_graph(again)
        assert recall(again, clustered, QUERIES[:3]) >= 0.95


def test_a_purge_during_a_build_leaves_no_vectors_behind(graph_path: Path, clustered: Prescribed, gate: Gate) -> None:
    """The graph being built still holds the purged vectors; it must not reach the disk or a search."""
    with nacre.open(graph_path, embedder=clustered) as engine:
        memory_id = nearest(engine, clustered, "query 0", 1)[0]
        assert found(engine, "query 0", 1) == [memory_id]
        assert gate.begun.wait(10)
        builder = vector_index(engine)._builder
        assert builder is not None
        engine.purge(memory_id)
        gate.allowed.set()
        builder.join(30)
        assert cache_files(graph_path) == []
        assert memory_id not in found(engine, "query 0", 50)


# ---------------------------------------------------------------- purged for good

MARKER = "Zxqvjwk"  # stands nowhere else; its token is the same in lower case, and its own stem


def traces(path: Path) -> list[str]:
    """Files beside and with the store in which the purged text still stands."""
    files = [*path.parent.glob(f"{path.name}*"), *cache_files(path)]
    return [file.name for file in files if file.is_file() and MARKER.lower().encode() in file.read_bytes().lower()]


def remembered_and_purged(engine: nacre.Nacre) -> None:
    engine.purge(engine.remember(f"the secret {MARKER}").id)


def updated_and_purged(engine: nacre.Nacre) -> None:
    """The history of its updates held the text."""
    memory_id = engine.remember(f"the secret {MARKER}").id
    engine.update(memory_id, text="nothing to see")
    engine.purge(memory_id)


def updated_twice_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember("nothing to see").id
    engine.update(memory_id, text=f"the secret {MARKER} number one", metadata={"key": f"about {MARKER}"})
    engine.update(memory_id, text=f"the secret {MARKER} number two", summary=f"a {MARKER}", tags=[MARKER])
    engine.purge(memory_id)


def forgotten_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(f"the secret {MARKER}").id
    engine.forget(memory_id)
    engine.purge(memory_id)


def forgotten_restored_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(f"the secret {MARKER}").id
    engine.forget(memory_id)
    engine.restore(memory_id)
    engine.purge(memory_id)


def every_field_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(
        f"the secret {MARKER}",
        summary=f"about {MARKER}",
        tags=[MARKER, f"tag {MARKER}"],
        source=f"https://{MARKER}.example",
        session=f"session {MARKER}",
        position=1,
        metadata={MARKER: MARKER},
        kind=MARKER,
        namespace=MARKER,
    ).id
    engine.purge(memory_id)


def long_text_purged(engine: nacre.Nacre) -> None:
    """Pages of its own, and several passages."""
    engine.purge(engine.remember(" ".join(f"{MARKER}{number} text" for number in range(2_000))).id)


def many_purged(engine: nacre.Nacre) -> None:
    receipts = engine.remember_many(f"secret {MARKER} number {number}" for number in range(200))
    engine.update(receipts[0].id, text=f"changed {MARKER}")
    engine.purge([receipt.id for receipt in receipts])


def rebuilt_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(f"the secret {MARKER}").id
    engine.rebuild()
    engine.purge(memory_id)


def rewritten_and_purged(engine: nacre.Nacre) -> None:
    """Full-text segments that held the word were merged into others since."""
    memory_id = engine.remember(f"the secret {MARKER}").id
    for number in range(40):
        engine.remember(f"meanwhile number {number}")
    engine.update(memory_id, text="nothing to see")
    for number in range(40):
        engine.remember(f"later number {number}")
    engine.purge(memory_id)


def searched_and_purged(engine: nacre.Nacre) -> None:
    """What was asked quotes what was found."""
    memory_id = engine.remember(f"the secret {MARKER}").id
    assert engine.search(f"secret {MARKER}", session=MARKER).hits[0].id == memory_id
    engine.get(memory_id)
    engine.purge(memory_id)


def facts_purged(engine: nacre.Nacre) -> None:
    """What it says, given and read from its text."""
    about = nacre.NewFact(
        subject=MARKER, predicate=f"has {MARKER}", object=f"two {MARKER}", relation=True, quote=MARKER
    )
    memory_id = engine.remember(f"{MARKER} lives in {MARKER}ville.", facts=[about]).id
    assert len(engine.facts()) == 2
    engine.add_facts(memory_id, [replace(about, object=f"three {MARKER}")])
    engine.update(memory_id, text=f"{MARKER} lives in {MARKER}stadt.")
    engine.purge(memory_id)


def entities_purged(engine: nacre.Nacre) -> None:
    known = [nacre.NewEntity(name=MARKER, aliases=[f"old {MARKER}"], type=f"a {MARKER}")]
    engine.purge(engine.remember("nothing to see", entities=known).id)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(
    "history",
    [
        remembered_and_purged,
        updated_and_purged,
        updated_twice_and_purged,
        forgotten_and_purged,
        forgotten_restored_and_purged,
        every_field_purged,
        long_text_purged,
        many_purged,
        rebuilt_and_purged,
        rewritten_and_purged,
        searched_and_purged,
        facts_purged,
        entities_purged,
    ],
)
def test_a_purged_text_is_nowhere_in_the_files(path: Path, history: Callable[[nacre.Nacre], None]) -> None:
    with reopened(path, log=True) as engine:
        engine.remember_many(flower_texts(50))
        found(engine, "rose")
        history(engine)
        assert traces(path) == []
        check(engine, FLOWERS[:2])
    assert traces(path) == []
    with reopened(path) as engine:
        assert engine.search(MARKER, mode="keyword").hits == ()
    assert traces(path) == []


@pytest.mark.usefixtures("low")
def test_a_purge_drops_the_files_of_its_space_only(path: Path) -> None:
    with reopened(path) as engine:
        for space in ("a", "b"):
            engine.remember_many(nacre.NewMemory(text=each.text, space=space) for each in flower_texts(20))
            engine.search("rose", where=nacre.Filter(spaces=[space]))
        first, second = cache_files(path, ".vectors")
        assert first != second
        purged = engine.timeline(where=nacre.Filter(spaces=["a"]), limit=1).entries[0].id
        engine.purge(purged)
        assert len(cache_files(path)) == 1
        assert len(engine.search("rose", mode="semantic", where=nacre.Filter(spaces=["b"]), limit=50).hits) > 0
        assert len(cache_files(path)) == 1


def test_a_purge_by_a_process_that_never_searched(path: Path, filled: nacre.Nacre) -> None:
    """It drops the files that others wrote."""
    purged = live_memories(filled)[0].id
    filled.close()
    with reopened(path) as engine:
        engine.purge(purged)
        assert cache_files(path) == []
        assert purged not in found(engine, "rose", 1000)
