"""How long does it take to read token vectors from rows, by the number of memories?

    python -m benchmarks.token_rows [--sizes 100000,1000000]

Tables of the store's schema are filled with random bytes: the tokens of one short passage a memory. Each search reads
those of READ memories, as late interaction does for a hundred candidates and the turns next to them.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

import apsw
import numpy as np

from benchmarks.common import report
from nacre.embedders.minilm import TOKEN_FORMAT
from nacre.storage.sqlite import token_vectors
from nacre.types.tokens import TOKEN_PASSAGES_MAX

READ = 250
SEARCHES = 200
TOKENS = (8, 40)  # of a memory, at least and at most
BATCH = 20_000
TABLES = (
    "CREATE TABLE memories (row INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, token_passages INT, deleted_us INT)",
    "CREATE TABLE passages (row INT, passage INTEGER PRIMARY KEY, vector BLOB)",
    "CREATE TABLE token_vectors (key INTEGER PRIMARY KEY, vectors BLOB NOT NULL) STRICT",
)


def main() -> None:
    parser = report.parser(__doc__, "token-rows")
    parser.add_argument("--sizes", default="100000,1000000", help="memories (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(Path(folder) / "rows.db", size))
    report.write(options.name, {f"Reading the token vectors of {READ} memories, ms": rows})


def measured(path: Path, size: int) -> dict[str, object]:
    chance, taken = random.Random(1), []
    with apsw.Connection(str(path)) as db:
        fill(db, size, chance)
        vector = np.zeros(384, np.float32)
        for number in range(SEARCHES + 10):  # the first ones bring pages into memory
            ids = [memory_id(each) for each in chance.sample(range(size), READ)]
            start = time.perf_counter()
            token_vectors.nearest(db, ids, vector, 4)
            if number >= 10:
                taken.append(1000 * (time.perf_counter() - start))
    taken.sort()
    return {
        "memories": size,
        "file, MB": path.stat().st_size >> 20,
        "p50": round(taken[len(taken) // 2], 2),
        "p95": round(taken[int(0.95 * len(taken))], 2),
    }


def fill(db: apsw.Connection, size: int, chance: random.Random) -> None:
    noise = os.urandom(1 << 20)

    def tokens() -> bytes:
        start = chance.randrange(1 << 19)
        return noise[start : start + chance.randint(*TOKENS) * TOKEN_FORMAT.token_bytes]

    for table in TABLES:
        db.execute(table)
    for start in range(0, size, BATCH):
        batch = range(start, min(size, start + BATCH))
        texts = ((each + 1, memory_id(each), "a short text, as memories are. " * 4) for each in batch)
        db.executemany("INSERT INTO memories VALUES (?, ?, ?, 1, NULL)", texts)
        rows = (((each + 1) * TOKEN_PASSAGES_MAX, tokens()) for each in batch)
        db.executemany("INSERT INTO token_vectors VALUES (?, ?)", rows)


def memory_id(number: int) -> str:
    return f"m{number:015}"


if __name__ == "__main__":
    main()
