"""Asks a store whose cache files are damaged, one case after another. A process of its own runs it: it may crash.

    python damaged_caches.py STORE CASES

prints a line of JSON for each case: what was damaged, and whether all answers were right.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nacre
from index_files import cache_files, cache_folder, reopened
from nacre.storage.sqlite import store as sqlite_store
from nacre.storage.sqlite import vector_search
from nacre.storage.sqlite.index import space_index

MEMORIES = 300
QUESTIONS = (("rose lily", "keyword"), ("tulip number 7", "semantic"), ("orchid daisy", "hybrid"))


def small_thresholds() -> None:
    """Files and graphs already for few memories, and questions that use them."""
    space_index.SAVED_MEMORIES_MIN = 10
    space_index.GRAPH_PASSAGES_MIN = 100
    sqlite_store.INDEXED_MEMORIES_MIN = 0
    vector_search.SCANNED_MAX = 10


def answers(engine: nacre.Nacre) -> list[Any]:
    return [
        [(hit.id, hit.bm25, hit.cosine) for hit in engine.search(query, mode=mode, limit=5).hits]  # type: ignore[arg-type]
        for query, mode in QUESTIONS
    ]


# ---------------------------------------------------------------- damage


def flip(written: bytearray, at: int, chance: random.Random) -> bytearray:
    written[at] ^= 1 << chance.randrange(8)
    return written


def in_header(written: bytearray, chance: random.Random) -> bytearray:
    return flip(written, chance.randrange(min(400, len(written))), chance)


def in_content(written: bytearray, chance: random.Random) -> bytearray:
    return flip(written, chance.randrange(len(written)), chance)


def in_checksum(written: bytearray, chance: random.Random) -> bytearray:
    header_end = 4096 if written[:1] == b"{" else len(written)
    return flip(written, header_end - 1 - chance.randrange(8), chance)


def many(written: bytearray, chance: random.Random) -> bytearray:
    for _ in range(50):
        flip(written, chance.randrange(len(written)), chance)
    return written


def zeros(written: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(written))
    size = len(written[at : at + 4096])
    written[at : at + size] = bytes(size)
    return written


def cut(written: bytearray, chance: random.Random) -> bytearray:
    return written[: chance.randrange(len(written))]


def empty(_: bytearray, __: random.Random) -> bytearray:
    return bytearray()


def noise(written: bytearray, chance: random.Random) -> bytearray:
    return bytearray(chance.randbytes(len(written)))


DAMAGES: tuple[Callable[[bytearray, random.Random], bytearray], ...] = (
    in_content, in_header, in_checksum, many, zeros, cut, empty, noise, in_content,
)  # fmt: skip


def damage(path: Path, number: int) -> str:
    """Damage one cache file; every ninth gets the content of another."""
    chance = random.Random(number)
    files = [*cache_files(path, ".segment"), *cache_files(path, ".hnsw") * 2]
    file = files[number % len(files)]
    if number % 9 == 8:
        others = [each for each in files if each != file]
        shutil.copyfile(chance.choice(others), file)
        return f"{file.suffix}: another file"
    spoil = DAMAGES[number % len(DAMAGES)]
    file.write_bytes(spoil(bytearray(file.read_bytes()), chance))
    return f"{file.suffix}: {spoil.__name__}"


def main(path: Path, cases: int) -> None:
    small_thresholds()
    sound = path.with_name("sound-caches")
    shutil.copytree(cache_folder(path), sound)
    right = json.loads(path.with_name("right.json").read_text())
    for number in range(cases):
        shutil.rmtree(cache_folder(path))
        shutil.copytree(sound, cache_folder(path))
        what = damage(path, number)
        with reopened(path) as engine:
            once, again = answers(engine), answers(engine)
        equal = json.loads(json.dumps([once, again])) == [right, right]
        sys.stdout.write(json.dumps({"number": number, "what": what, "right": equal}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(Path(sys.argv[1]), int(sys.argv[2]))
