"""A process that fills the store of one engine and prints how long that took, as lines of JSON.

python -m benchmarks.common.speed_fill ENGINE FOLDER --data ../shared/train --size 10000 [--index-only]

The time for preparing texts and vectors is not included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import nacre
from benchmarks.common.population import QUESTIONS, REAL_MAX, Population, population
from benchmarks.common.timing import timed
from benchmarks.rivals import speed_engine
from benchmarks.rivals.base import Engine, Rows

UNEMBEDDED_MAX = 100_000  # larger populations repeat sentences, which makes imports slower than real texts do


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--real", type=int, default=REAL_MAX)
    parser.add_argument(
        "--index-only", action="store_true", help="build only the indexes of a store that was filled before"
    )
    options = parser.parse_args()
    engine = speed_engine(options.engine)
    if options.index_only:
        tell(**indexed(engine, options.folder))
        return
    people = population(options.data, QUESTIONS, options.real)
    _ = people.question_vectors  # loads all vectors
    tell(ready=True)
    tell(**filled(engine, options.folder, rows_of(people, options.size)))
    if options.engine == "nacre" and options.size <= UNEMBEDDED_MAX:
        tell(without_embeddings_s=unembedded(rows_of(people, options.size)))


def tell(**figures: object) -> None:
    print(json.dumps(figures), flush=True)


def rows_of(people: Population, size: int) -> Iterator[Rows]:
    first = 0
    for texts, vectors in people.memories(size):
        yield Rows(first, texts, vectors)
        first += len(texts)


def filled(engine: Engine, folder: Path, parts: Iterator[Rows]) -> dict[str, object]:
    store = engine.fill(folder)
    ingest_s, stored, text_bytes, vector_bytes = 0.0, 0, 0, 0
    for rows in parts:
        ingest_s += timed(store.add, rows)
        stored += len(rows.texts)
        text_bytes += sum(len(text.encode()) for text in rows.texts)
        vector_bytes += rows.vectors.nbytes
        tell(stored=stored, ingest_s=round(ingest_s, 4))
    index_s = timed(store.index)
    index_s += timed(store.close)  # what is still in memory goes to disk
    return {"index_s": round(index_s, 4), "text_bytes": text_bytes, "vector_bytes": vector_bytes}


def indexed(engine: Engine, folder: Path) -> dict[str, object]:
    store = engine.refill(folder)
    index_s = timed(store.index)
    return {"index_s": round(index_s + timed(store.close), 3)}


def unembedded(parts: Iterator[Rows]) -> float:
    """The time Nacre takes to remember everything as one stream without vectors."""
    from benchmarks.common.speed_nacre import memories_of

    held = list(parts)
    memories = chain.from_iterable(map(memories_of, held))
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "x.db", embedder="none") as memory:
        return round(timed(deque, memory.remember_batches(memories), 0), 3)


if __name__ == "__main__":
    main()
