"""How long does a purge take, by the number of memories, and how much of the file does it overwrite?

    python -m benchmarks.purge [--sizes 1000,100000]

A store is filled with texts of random words, a tenth of which no other text has, and searched once, so that its caches
exist. Then one memory is purged three times. The first purge overwrites all unused bytes that filling the store has
left; later ones only those of changes since: before the third, a hundred memories are added. `VACUUM`, which would
remove them as well, is measured beside it.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw

import nacre
from benchmarks.common import report
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite import scrub

DIMENSIONS = 384
WORDS = 20  # of a text
KNOWN_WORDS = 20_000


def main() -> None:
    parser = report.parser(__doc__, "purge")
    parser.add_argument("--sizes", default="1000,100000", help="memories (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(Path(folder) / "purge.db", size))
    report.write(options.name, {"A purge of one memory, seconds": rows})


def measured(path: Path, size: int) -> dict[str, object]:
    texts = made_texts(random.Random(1))
    with nacre.open(path, embedder=Hashing(DIMENSIONS), log=False) as engine:
        for _ in engine.remember_batches(next(texts) for _ in range(size)):
            pass
        engine.rebuild()
        engine.search("anything")
        ids = [engine.remember(next(texts)).id for _ in range(3)]
        with closing(apsw.Connection(str(path))) as db:
            db.execute("PRAGMA wal_checkpoint (TRUNCATE)")
        scan, unclean, pages = looked_at(path)
        first = timed(lambda: engine.purge(ids[0]))
        second = timed(lambda: engine.purge(ids[1]))
        engine.remember_many(next(texts) for _ in range(100))
        third = timed(lambda: engine.purge(ids[2]))
    with closing(apsw.Connection(str(path))) as db:
        vacuum = timed(lambda: db.execute("VACUUM; PRAGMA wal_checkpoint (TRUNCATE)"))
    return {
        "memories": size,
        "file, MB": path.stat().st_size >> 20,
        "pages with unused bytes, %": round(100 * unclean / pages),
        "looking for them": scan,
        "first purge": first,
        "second": second,
        "after 100 more": third,
        "VACUUM alone": vacuum,
    }


def looked_at(path: Path) -> tuple[float, int, int]:
    """Seconds, how many pages have unused bytes, and how many pages there are."""
    start = time.perf_counter()
    with scrub.opened(str(path)) as file:
        size = scrub.page_bytes(file)
        assert size is not None
        found = [bool(scrub.unused(page, number)) for number, page in scrub.pages(file, size)]
    return round(time.perf_counter() - start, 3), sum(found), len(found)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 3)


def made_texts(chance: random.Random) -> Iterator[str]:
    known = [made_word(chance) for _ in range(KNOWN_WORDS)]
    while True:
        words = [*chance.choices(known, k=WORDS - 2), made_word(chance), made_word(chance)]
        chance.shuffle(words)
        yield " ".join(words)


def made_word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9)))


if __name__ == "__main__":
    main()
