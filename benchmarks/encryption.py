"""What does encryption cost: when remembering, when searching, and at the start of a process?

    python -m benchmarks.encryption [--sizes 10000]

A plain store with apsw is compared with an encrypted one with apsw-sqlite3mc, which `make test` installs in .mc. Each
fills a store and searches it in another process, several times in turn, and the best round counts. Times are of the
processor, which other work on the machine hardly changes; waiting for the disk is the same for both. Vectors are hashed
words: embedding would take most of the time.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, get_args

import nacre
from benchmarks.common import report
from benchmarks.common.paths import BENCHMARKS, EVAL
from benchmarks.common.sentences import questions, sentences
from nacre.embedders.hashing import Hashing
from nacre.types.search import Mode

P = ParamSpec("P")
SIZES = "10000"
ROUNDS = 3
SINGLE = 200  # memories that are remembered one by one
SEARCHES = 100
KEY = "1f" * 32
UNCACHED = nacre.Limits(results_cached=0)
PACKAGE = BENCHMARKS.parent / ".mc"
VARIANTS = ("plain", "encrypted")


def main() -> None:
    parser = report.parser(__doc__, "encryption")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="memories (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    parser.add_argument("--step", nargs=3, metavar=("VARIANT", "STEP", "FOLDER"), help="one process of a measurement")
    options = parser.parse_args()
    if options.step:
        variant, step, folder = options.step
        run = fill if step == "fill" else search
        print(json.dumps(run(Path(folder) / "memories.db", None if variant == "plain" else KEY)))
        return
    sizes = map(int, options.sizes.split(","))
    report.write(options.name, {f"{size:,} memories": measured(options.data, size, options.rounds) for size in sizes})


def measured(data: Path, memories: int, rounds: int) -> list[dict[str, object]]:
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    texts, asked = sentences(data, memories + SINGLE), questions(data, SEARCHES)
    for _ in range(rounds):
        for variant in VARIANTS:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "texts.json").write_text(json.dumps([texts, asked]))
                found[variant].append(step(variant, "fill", folder) | step(variant, "search", folder))
    plain, encrypted = ({name: min(each[name] for each in every) for name in every[0]} for every in found.values())
    return [
        {
            "": name,
            "plain": round(plain[name], 2),
            "encrypted": round(encrypted[name], 2),
            "ratio": round(encrypted[name] / plain[name], 2),
        }
        for name in plain
    ]


def step(variant: str, name: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)} if variant == "encrypted" else dict(os.environ)
    command = [sys.executable, "-m", "benchmarks.encryption", "--step", variant, name, folder]
    ran = subprocess.run(command, env=environment, cwd=BENCHMARKS.parent, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(ran.stdout)
    return answer


def fill(path: Path, key: str | None) -> dict[str, float]:
    texts, _ = json.loads(path.with_name("texts.json").read_text())
    with nacre.open(path, embedder=Hashing(), key=key, extract=False) as memory:
        many = used(memory.remember_many, texts[:-SINGLE])
        single = statistics.median(used(memory.remember, text) for text in texts[-SINGLE:])
    return {
        "remember many, ms for 1,000": 1000 * many / (len(texts) - SINGLE),
        "remember one, ms": single,
        "size, MB": path.stat().st_size / 1e6,
    }


def search(path: Path, key: str | None) -> dict[str, float]:
    _, asked = json.loads(path.with_name("texts.json").read_text())
    start = time.process_time()
    memory = nacre.open(path, embedder=Hashing(), key=key, limits=UNCACHED, log=False)
    taken = {"open, ms": 1000 * (time.process_time() - start)}
    with memory:
        taken["first hybrid search of a process, ms"] = used(memory.search, asked[0])
        for mode in get_args(Mode):
            each = [used(memory.search, query, mode=mode) for query in asked]
            taken[f"{mode} search, ms"] = statistics.median(each)
    return taken


def used(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> float:
    """Processor time of a call, in milliseconds."""
    start = time.process_time()
    call(*args, **kwargs)
    return 1000 * (time.process_time() - start)


if __name__ == "__main__":
    main()
