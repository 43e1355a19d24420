"""Reads from a store whose file has flipped bits, one case after another. A process of its own runs it: it may crash.

    python damaged_database.py STORE FIRST CASES [BITS]

prints a line of JSON for each case: by verb, whether the answer was `same`, `damaged` (an error says so) or `WRONG`.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import StoreCorrupt

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def opened(path: Path) -> nacre.Nacre:
    return nacre.open(path, embedder=Hashing(), log=False, clock=lambda: NOW, time_zone=UTC)


def fill(path: Path) -> None:
    """A store with everything that a store can hold, in a few hundred pages."""
    with nacre.open(path, embedder=Hashing(), clock=lambda: NOW, time_zone=UTC) as engine:
        receipts = engine.remember_many(
            nacre.NewMemory(
                text=f"Ada Lovelace keeps tea number {number} in drawer {number % 7}. "
                + "It is green. " * (number % 30),
                summary=f"tea {number}",
                tags=[f"t{number % 5}"],
                metadata={"n": number},
                session=f"s{number // 20}",
                position=number % 20,
                facts=[nacre.NewFact(subject="Ada", predicate="likes", object=f"tea {number}")]
                if number % 9 == 0
                else [],
            )
            for number in range(240)
        )
        engine.update(receipts[3].id, text="the tea of old is gone")
        engine.forget(receipts[5].id)
        engine.search("green tea", limit=3)


def verbs(engine: nacre.Nacre) -> dict[str, Callable[[], object]]:
    return {
        "keyword": lambda: engine.search("tea drawer 3", mode="keyword", limit=20).hits,
        "semantic": lambda: engine.search("green tea", mode="semantic", limit=20).hits,
        "hybrid": lambda: engine.search("what does Ada keep in drawer 4", limit=20).hits,
        "filtered": lambda: engine.search("tea", where=nacre.Filter(tags_any=["t2"], metadata={"n": 7})).hits,
        "timeline": lambda: engine.timeline(limit=500).entries,
        "every": lambda: list(engine.every()),
        "get": lambda: [engine.get(entry.id) for entry in engine.timeline(limit=20).entries],
        "history": lambda: [engine.history(entry.id) for entry in engine.timeline(limit=5).entries],
        "context": lambda: engine.context("green tea in drawer 5", 300).text,
        "facts": lambda: engine.facts(),
        "entities": lambda: engine.entities(),
        "facets": lambda: engine.facets("tea"),
        "receipts": lambda: engine.receipts(),
        "stats": lambda: engine.stats(),
    }


def answers(path: Path) -> dict[str, str]:
    """By verb, the answer, or `damaged`. What is not an error of Nacre that speaks of damage ends the process."""
    try:
        engine = opened(path)
    except StoreCorrupt:
        return {"open": "damaged"}
    found = {}
    with engine:
        for name, verb in verbs(engine).items():
            try:
                found[name] = repr(verb())
            except StoreCorrupt as error:
                found[name] = "damaged" if "damaged" in str(error) else str(error)
    return found


def outcomes(found: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    return {
        name: "damaged" if answer == "damaged" else "same" if answer == right[name] else "WRONG"
        for name, answer in found.items()
    }


def main(path: Path, first: int, cases: int, bits: int) -> None:
    right = answers(path)
    assert "damaged" not in right.values()
    sound = path.read_bytes()
    for number in range(first, first + cases):
        folder = path.parent / "case"
        folder.mkdir()
        chance = random.Random(number)
        written = bytearray(sound)
        for _ in range(bits):
            written[chance.randrange(len(written))] ^= 1 << chance.randrange(8)
        damaged = folder / path.name
        damaged.write_bytes(written)
        sys.stdout.write(json.dumps({"number": number, **outcomes(answers(damaged), right)}) + "\n")
        sys.stdout.flush()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
