"""A store that is filled, changed and purged at random, and a search of its files for the bytes of what was purged."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np

import nacre
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite import SqliteStore, rows
from nacre.storage.sqlite.index.segment import hashed
from nacre.storage.vectors import pack

_CHUNK_BYTES = 64  # of a vector: a part of one is found, too
_TOKENS_MAX = 5  # words of a memory whose token vectors are looked for
_SHARED_WORDS = ("the", "garden", "boiler", "ticket", "meeting", "invoice", "kettle", "because", "window")


@dataclass
class Remains:
    """What a memory may leave: words that only it has, and hashes and vectors, as bytes."""

    words: set[str] = field(default_factory=set)
    blobs: set[bytes] = field(default_factory=set)

    def __or__(self, other: Remains) -> Remains:
        return Remains(self.words | other.words, self.blobs | other.blobs)

    def found_in(self, path: Path) -> list[str]:
        """Where in the folder of a store something of this is left."""
        hashes = {hashed(word).to_bytes(8, "little") for word in sorted(self.words)[:_TOKENS_MAX]}
        return Remains(self.words, self.blobs | hashes).found_among(_files(path))

    def found_among(self, several: Iterable[tuple[str, bytes]]) -> list[str]:
        """Where among bytes, given by name, something of this is left."""
        _, tokens = Hashing().embed_with_tokens(sorted(self.words)[:_TOKENS_MAX])
        blobs = {*self.blobs, *tokens}
        found = []
        for name, written in several:
            folded = written.lower()
            found += [f"{name}: {word}" for word in sorted(self.words) if word.encode() in folded]
            found += [f"{name}: {blob.hex()}" for blob in blobs if blob in written]
        return found


class RandomStore:
    """Every memory has words of its own, of which it keeps a list, by its id."""

    def __init__(self, engine: nacre.Nacre, seed: int) -> None:
        self.engine = engine
        self.remains: dict[str, Remains] = {}
        self._random = random.Random(seed)
        self._used: set[str] = set()
        self.pending: str | None = None  # why the last purge was not finished

    def remember(self, number: int = 1) -> None:
        batch, words = zip(*(self._new() for _ in range(number)), strict=True)
        for receipt, own in zip(self.engine.remember_many(batch), words, strict=True):
            self.remains[receipt.id] = Remains(own)
            self._look_at(receipt.id)

    def change(self) -> None:
        """Update, forget or restore a memory, or search for one."""
        memory_id = self._random.choice(list(self.remains))
        changed = self._random.choice(["text", "text", "labels", "forget", "search"])
        own: set[str] = set()
        if changed == "forget":
            self.engine.forget(memory_id)
            if self._random.random() < 0.5:
                self.engine.restore(memory_id)
        elif changed == "search":
            asked = " ".join(self._random.sample(sorted(self.remains[memory_id].words), 2))
            self.engine.search(f"where is {asked}", mode=self._random.choice(["keyword", "hybrid"]))
        elif self.engine.get(memory_id)[0].deleted is None:
            if changed == "text":
                self.engine.update(memory_id, text=self._text(own, self._random.choice([3, 12, 40, 400])))
            else:
                self.engine.update(
                    memory_id, summary=self._text(own, 5), tags=[self._word(own)], source=self._word(own)
                )
        self.remains[memory_id].words |= own
        self._look_at(memory_id)

    def purge(self, number: int) -> Remains:
        ids = self._random.sample(sorted(self.remains), number)
        self.pending = self.engine.purge(ids).pending
        gone = reduce(or_, (self.remains.pop(each) for each in ids))
        kept = reduce(or_, self.remains.values(), Remains())
        return Remains(gone.words, gone.blobs - kept.blobs)  # the vectors of some are alike

    def one_of(self) -> str:
        return self._random.choice(sorted(self.remains))

    # ---- inside

    def _new(self) -> tuple[nacre.NewMemory, set[str]]:
        own: set[str] = set()
        some = self._random.random
        facts = [nacre.NewFact(subject=self._word(own), predicate="owns", object=self._word(own), relation=True)]
        new = nacre.NewMemory(
            text=self._text(own, self._random.choice([2, 6, 12, 12, 30, 60, 300])),
            summary=self._text(own, 4) if some() < 0.3 else None,
            tags=[self._word(own), "common"] if some() < 0.5 else [],
            source=f"https://{self._word(own)}.example" if some() < 0.3 else None,
            metadata={self._word(own): [self._word(own)]} if some() < 0.3 else {},
            facts=facts if some() < 0.2 else [],
            entities=[nacre.NewEntity(name=self._word(own), aliases=[self._word(own)])] if some() < 0.1 else [],
        )
        return new, own

    def _text(self, own: set[str], length: int) -> str:
        return " ".join(
            self._word(own) if self._random.random() < 0.6 or not at else self._random.choice(_SHARED_WORDS)
            for at in range(length)
        )

    def _word(self, own: set[str]) -> str:
        """A word that no other memory has, and that is its own stem."""
        while True:
            word = "".join(self._random.choices("bcdfghjkmnpqrtvwxz", k=9))
            if word not in self._used:
                self._used.add(word)
                own.add(word)
                return word

    def _look_at(self, memory_id: str) -> None:
        """Note what is stored of a memory now: its hashes and vectors."""
        store: Any = self.engine._store
        in_file = isinstance(store, SqliteStore)
        content_hash, vectors, sketches = (_of_file if in_file else _of_server)(store, memory_id)
        blobs = self.remains[memory_id].blobs
        blobs.add(content_hash)
        large = [hash_ for hash_ in sketches if abs(hash_) >= 1 << 47]
        blobs.update(hash_.to_bytes(8, "big", signed=True) for hash_ in large)
        if not in_file:  # a server has them in its own order, and sends them in the other
            blobs.update(hash_.to_bytes(8, "little", signed=True) for hash_ in large)
            vectors += [np.frombuffer(vector, "<u2").astype(">u2").tobytes() for vector in vectors]
        for vector in vectors:
            chunks = [vector[at : at + _CHUNK_BYTES] for at in range(0, len(vector), _CHUNK_BYTES)]
            blobs.add(min(chunks, key=lambda each: each.count(0)))


def _of_file(store: Any, memory_id: str) -> tuple[bytes, list[bytes], list[int]]:
    """The hash of the text of a memory, its vectors, and the hashes of its sketch."""
    with store._connections.reading() as db:
        row, content_hash = rows.fetch(db, "SELECT row, content_hash FROM memories WHERE id = ?", (memory_id,))[0]
        vectors = [
            vector
            for table in ("passages", "further_passages")
            for (vector,) in rows.fetch(db, f"SELECT vector FROM {table} WHERE row = ?", (row,))
        ]
        sketches = [hash_ for (hash_,) in rows.fetch(db, "SELECT hash FROM sketches WHERE row = ?", (row,))]
    return content_hash, vectors, sketches


def _of_server(store: Any, memory_id: str) -> tuple[bytes, list[bytes], list[int]]:
    """The same of a store in PostgreSQL."""
    with store._connections.snapshot() as db:
        read = "SELECT content_hash, space, row FROM memories WHERE id = %s"
        content_hash, *key = db.execute(read, (memory_id,), binary=True).fetchone()
        found = db.execute("SELECT hash FROM sketches WHERE space = %s AND row = %s", key).fetchall()
    matrix = store.vectors(memory_id)
    return content_hash, [] if matrix is None else [pack(each) for each in matrix], [hash_ for (hash_,) in found]


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.parent.rglob("*")):
        with suppress(FileNotFoundError):  # replaced meanwhile
            if file.is_file():
                yield file.name, file.read_bytes()
