"""What do checksums cost? Of pages: searches and writes with and without them. Of caches: how fast each hash is.

    python -m benchmarks.checksums [--memories 100000] [--questions 600] [--embedder hashing|minilm]

Two stores of the same sentences differ in page checksums alone. They are asked and written to in turn in one process,
so that both see the same load, and the processor time of the calling thread is counted.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median

import nacre
from benchmarks.common import report
from benchmarks.common.paths import EVAL
from benchmarks.common.sentences import questions, sentences

HASHED_BYTES = 64 << 20
BATCH = 1_000


def main() -> None:
    parser = report.parser(__doc__, "checksums")
    parser.add_argument("--memories", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--questions", type=int, default=600, help="(default: %(default)s)")
    parser.add_argument("--embedder", choices=["hashing", "minilm"], default="hashing", help="(default: %(default)s)")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    options = parser.parse_args()
    texts = sentences(options.data, options.memories + options.questions)
    asked = questions(options.data, options.questions)
    folder = Path(tempfile.mkdtemp())
    try:
        tables = {
            "Page checksums": pages(folder, texts, asked, options.memories, options.embedder),
            "Hashes for caches": hashes(),
        }
    finally:
        shutil.rmtree(folder)
    report.write(options.name, tables, [f"{options.memories:,} memories, embedder {options.embedder}."])


def pages(
    folder: Path, texts: Sequence[str], asked: Sequence[str], memories: int, embedder: str
) -> list[dict[str, object]]:
    stores = []
    for name, wanted in (("plain.db", False), ("checksums.db", True)):
        store = nacre.open(folder / name, embedder=embedder, log=False, page_checksums=wanted)
        for start in range(0, memories, BATCH):
            store.remember_many(texts[start : min(start + BATCH, memories)])
        store.rebuild()
        stores.append(store)
    rows: list[dict[str, object]] = []
    for what, inputs, call in (
        ("search, keyword", asked, lambda store, text: store.search(text, mode="keyword")),
        ("search, hybrid", asked, lambda store, text: store.search(text)),
        ("remember one", texts[memories:], lambda store, text: store.remember(text)),
    ):
        plain, checked = in_turn(stores, inputs, call)
        rows.append(
            {
                "": what,
                "without, ms": f"{mean(plain) * 1e3:.2f}",
                "with, ms": f"{mean(checked) * 1e3:.2f}",
                "mean": f"{mean(checked) / mean(plain) - 1:+.1%}",
                "median of pairs": f"{median(b / a for a, b in zip(plain, checked, strict=True)) - 1:+.1%}",
            }
        )
    for store in stores:
        store.close()
    return rows


def in_turn(
    stores: Sequence[nacre.Nacre], inputs: Sequence[str], call: Callable[[nacre.Nacre, str], object]
) -> list[list[float]]:
    """Seconds by store and input. Each store is the first every other time."""
    taken: list[list[float]] = [[] for _ in stores]
    for number, text in enumerate(inputs):
        order = range(len(stores)) if number % 2 else range(len(stores) - 1, -1, -1)
        for each in order:
            begun = time.thread_time()
            call(stores[each], text)
            taken[each].append(time.thread_time() - begun)
    return taken


def hashes() -> list[dict[str, object]]:
    content = bytes(range(256)) * (HASHED_BYTES // 256)
    rows: list[dict[str, object]] = []
    for name, call in (
        ("crc32", zlib.crc32),
        ("adler32", zlib.adler32),
        ("sha256", hashlib.sha256),
        ("blake2b", hashlib.blake2b),
    ):
        best = min(_seconds(call, content) for _ in range(3))
        rows.append({"hash": name, "GB/s": f"{len(content) / best / 1e9:.1f}"})
    return rows


def _seconds(call: Callable[[bytes], object], content: bytes) -> float:
    begun = time.thread_time()
    call(content)
    return time.thread_time() - begun


if __name__ == "__main__":
    main()
