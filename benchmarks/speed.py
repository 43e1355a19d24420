"""How fast Nacre remembers and searches, beside plain FTS5 in the same run.

    python -m benchmarks.speed --data ../shared/eval [--sizes 10000,100000]

Each figure is the best of three passes, because other work on the machine only ever slows a pass down.
Texts are sentences of the English sets, vectors are the shipped model's (computed once, kept under
benchmarks/.cache). Queries are the sets' natural questions, common words included. Times exclude the
embedding of the query, which is shown apart.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import apsw
import numpy as np

import nacre
from benchmarks import report
from benchmarks.corpus import Prepared, questions, sentences, vectors_of
from nacre.embedders.minilm import MiniLM
from nacre.stores.sqlite import vectors as sqlite_vectors
from nacre.types import Mode
from nacre.vectors import cosines

if TYPE_CHECKING:
    from nacre.types import FloatMatrix

QUERIES = 200
UNCACHED = nacre.Limits(results_cached=0)  # each question is asked several times
PASSES = 3
EMBEDDED_TEXTS = 1_000
IMPORTS = (10_000, 50_000, 100_000)  # memories; caches fill, then nothing grows

Row = dict[str, object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--sizes", default="10000,100000")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    texts = sentences(arguments.data, max(sizes))
    asked = questions(arguments.data, QUERIES)
    vectors = vectors_of([*texts, *asked])
    rows = [*embedding(texts, asked), *peak_memory(texts)]
    for size in sizes:
        rows += measured_at(size, texts[:size], asked, vectors[:size], vectors[len(texts) :])
    report.write("speed", rows)


def measured_at(
    size: int, texts: Sequence[str], asked: Sequence[str], vectors: FloatMatrix, query_vectors: FloatMatrix
) -> list[Row]:
    prepared = Prepared([*texts, *asked], np.concatenate([vectors, query_vectors]))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        seconds = min(imported(Path(folder) / f"plain{number}.db", texts) for number in range(PASSES))
        rows.append(row(size, "remember, no embeddings", f"{size / seconds:,.0f} a second"))
        with nacre.open(path, embedder=prepared, limits=UNCACHED) as memory:
            seconds = timed(lambda: memory.remember_many(texts))
            rows.append(row(size, "remember, vectors at hand", f"{size / seconds:,.0f} a second"))
            bytes_a_memory = memory.stats().size_bytes / size
            rows.append(row(size, "file", f"{bytes_a_memory:,.0f} bytes a memory"))
        with nacre.open(path, embedder=prepared, limits=UNCACHED) as memory:
            rows.append(
                row(size, "first hybrid search of a store", milliseconds([timed(lambda: ask(memory, asked[0]))]))
            )
        with nacre.open(path, embedder=prepared, limits=UNCACHED) as memory:
            rows.append(
                row(size, "first hybrid search of a process", milliseconds([timed(lambda: ask(memory, asked[0]))]))
            )
            rows += [
                row(size, f"search, {mode}", milliseconds(latencies(memory, asked, mode))) for mode in get_args(Mode)
            ]
        rows += plain_fts5(size, texts, asked)
        if size >= 100_000:
            rows += hnsw(size, path, prepared, asked, vectors, query_vectors)
    return rows


def imported(path: Path, texts: Sequence[str]) -> float:
    with nacre.open(path, embedder="none") as memory:
        return timed(lambda: [None for _ in memory.remember_batches(texts)])


def latencies(memory: nacre.Nacre, asked: Sequence[str], mode: Mode) -> list[float]:
    """Of the pass with the lowest median."""
    passes = [[timed(lambda: ask(memory, query, mode)) for query in asked] for _ in range(PASSES)]  # noqa: B023
    return min(passes, key=statistics.median)


def ask(memory: nacre.Nacre, query: str, mode: Mode = "hybrid") -> object:
    return memory.search(query, mode=mode, limit=20)


def embedding(texts: Sequence[str], asked: Sequence[str]) -> list[Row]:
    """The bare embedder, and remembering with it, in turns on the same texts."""
    model = MiniLM()
    model.embed_query("warm up")
    queries = [timed(lambda: model.embed_query(query)) for query in asked]  # noqa: B023
    sample = list(texts[:EMBEDDED_TEXTS])
    bare, remembering = [], []
    for _ in range(PASSES):
        bare.append(timed(lambda: model.embed_passages(sample)))
        with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "x.db", embedder=model) as memory:
            remembering.append(timed(lambda: memory.remember_many(sample)))
    ratio = min(bare) / min(remembering)
    return [
        row(1, "embed a question", milliseconds(queries)),
        row(EMBEDDED_TEXTS, "bare embedder", f"{EMBEDDED_TEXTS / min(bare):,.0f} texts a second"),
        row(
            EMBEDDED_TEXTS,
            "remember, embedding included",
            f"{EMBEDDED_TEXTS / min(remembering):,.0f} texts a second, {ratio:.0%} of the bare embedder",
        ),
    ]


def peak_memory(texts: Sequence[str]) -> list[Row]:
    """Peak memory of importing more and more, each in a process of its own."""
    script = (
        "import sys, nacre\n"
        "count = int(sys.argv[2])\n"
        "texts = (f'{i} ' + sys.argv[3 + i % (len(sys.argv) - 3)] for i in range(count))\n"
        "with nacre.open(sys.argv[1], embedder='hashing') as memory:\n"
        "    for _ in memory.remember_batches(texts): pass\n"
        "status = open('/proc/self/status').read()\n"  # ru_maxrss would count the parent's memory, too
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024)\n"
    )
    rows = []
    for count in IMPORTS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = [sys.executable, "-c", script, f"{folder}/x.db", str(count), *texts[:500]]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        rows.append(row(count, "peak memory of an import", f"{done.stdout.strip()} MB"))
    return rows


def plain_fts5(size: int, texts: Sequence[str], asked: Sequence[str]) -> list[Row]:
    """The usual way: FTS5 with porter stemming, any of the words, its own bm25."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = 'porter unicode61')")
    with db:
        db.executemany("INSERT INTO t VALUES (?)", ((text,) for text in texts))

    def search(query: str) -> None:
        words = " OR ".join(f'"{word}"' for word in "".join(c if c.isalnum() else " " for c in query).split())
        db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 20", (words,)).fetchall()

    passes = [[timed(lambda: search(query)) for query in asked[:50]] for _ in range(PASSES)]  # noqa: B023
    best = min(passes, key=statistics.median)
    return [row(size, "rival: FTS5 alone, in memory, keyword", milliseconds(best))]


def hnsw(
    size: int, path: Path, prepared: Prepared, asked: Sequence[str], vectors: FloatMatrix, query_vectors: FloatMatrix
) -> list[Row]:
    """The same store with the graph in place of the scan."""
    sqlite_vectors.HNSW_PASSAGES_MIN = size
    with nacre.open(path, embedder=prepared, limits=UNCACHED) as memory:
        seconds = timed(memory.rebuild)
        by_graph = latencies(memory, asked, "semantic")
        recalls = []
        stored = vectors.astype(np.float16).astype(np.float32)
        for query, vector in zip(asked, query_vectors, strict=True):
            exact = np.argsort(-cosines(stored, vector), kind="stable")[:10]
            best = {prepared.text(int(at)) for at in exact}
            found = memory.search(query, mode="semantic", limit=10, recipe=nacre.Recipe(semantic_floor=-1)).hits
            recalls.append(len(best & {hit.text for hit in found}) / 10)
    return [
        row(size, "rebuild, HNSW graph included", f"{seconds:.0f} s"),
        row(size, "search, semantic, by HNSW", milliseconds(by_graph)),
        row(size, "HNSW recall@10 against exact", f"{statistics.mean(recalls):.3f}"),
    ]


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def milliseconds(taken: Sequence[float]) -> str:
    ordered = sorted(1000 * each for each in taken)
    if len(ordered) == 1:
        return f"{ordered[0]:.1f} ms"
    return f"p50 {statistics.median(ordered):.2f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.2f} ms"


def row(size: int, what: str, value: str) -> Row:
    return {"memories": f"{size:,}", "what": what, "measured": value}


if __name__ == "__main__":
    main()
