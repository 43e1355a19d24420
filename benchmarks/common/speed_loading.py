"""Nacre's stores as engines of `benchmarks.postgres`: filled in bulk, as a copy of another store is, and then searched.

`Store.load` takes memories with their vectors, a thousand in a transaction. What an engine does before it remembers
(facts, updates, secrets) is left out. A store in a file is in the folder. The folder of one in PostgreSQL names its
database, on the server of `durable_server`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg

import nacre
from benchmarks.common import durable_server, speed_nacre
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.speed_nacre import UNCACHED, NacreEngine, NacreOpened
from benchmarks.rivals.base import Filling, Rows, tags_of
from nacre.embedders.minilm import MiniLM
from nacre.ids import new_ids
from nacre.interfaces import Store
from nacre.storage.postgres import PostgresStore
from nacre.storage.sqlite import SqliteStore
from nacre.storage.vectors import pack
from nacre.types.memory import DEFAULT_NAMESPACE, DEFAULT_SPACE, Memory, Span
from nacre.types.transfer import MemoryRecord, StoredPassages

BATCH = 1_000


def database(folder: Path) -> str:
    return folder.parent.name


def address(folder: Path) -> str:
    return durable_server.address_of(database(folder))


def opened(name: str, folder: Path, embedder: GivenVectors) -> nacre.Nacre:
    """An engine on the store of one of these engines."""
    if name == FileEngine.name:
        return speed_nacre.opened(folder, embedder)
    return nacre.open(address(folder), embedder=embedder, reranker=None, limits=UNCACHED)


class _Loading(Filling):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._model = MiniLM().fingerprint
        self._mark = store.load_mark()
        store.switch_model(self._model)

    def add(self, rows: Rows) -> None:
        for start in range(0, len(rows.texts), BATCH):
            end = start + BATCH
            some = Rows(rows.first + start, rows.texts[start:end], rows.vectors[start:end])
            self._store.load(_records(some), self._mark, self._model)

    def close(self) -> None:
        self._store.close()


class _FileLoading(_Loading):
    def __init__(self, folder: Path) -> None:
        self._file = SqliteStore(folder / speed_nacre.FILE)
        super().__init__(self._file)

    def index(self) -> None:
        with self._file._connections.reading() as db:  # a process that searches does this in the background
            self._file._ready_index.build(db, DEFAULT_SPACE)


class _ServerLoading(_Loading):
    def __init__(self, folder: Path) -> None:
        self._address = address(folder)
        self._server = PostgresStore(self._address)
        super().__init__(self._server)

    def index(self) -> None:
        """What a process that writes and the server's autovacuum do by themselves, within minutes."""
        self._server.build_vector_index()
        with psycopg.connect(self._address, autocommit=True) as db:
            db.execute("VACUUM (ANALYZE)")
            db.execute("CHECKPOINT")


class FileEngine(NacreEngine):
    name = "nacre-loaded"
    configuration = "a file; default recipe without reranking, tags as tags"

    def fill(self, folder: Path) -> Filling:
        return _FileLoading(folder)

    def refill(self, folder: Path) -> Filling:
        return _FileLoading(folder)


class ServerOpened(NacreOpened):
    def __init__(self, folder: Path) -> None:
        self.embedder = GivenVectors()
        self.memory = opened(ServerEngine.name, folder, self.embedder)


class ServerEngine(NacreEngine):
    name = "nacre-postgres"
    configuration = "PostgreSQL; the same"

    def fill(self, folder: Path) -> Filling:
        durable_server.create(database(folder))
        return _ServerLoading(folder)

    def refill(self, folder: Path) -> Filling:
        return _ServerLoading(folder)

    def open(self, folder: Path) -> ServerOpened:
        return ServerOpened(folder)


def _records(rows: Rows) -> list[MemoryRecord]:
    now = datetime.now(UTC)
    return [
        MemoryRecord(
            Memory(
                id=memory_id, space=DEFAULT_SPACE, kind="note", namespace=DEFAULT_NAMESPACE, text=text, summary=None,
                tags=tuple(tags_of(number)), source=None, session=None, position=None, metadata={}, importance=0.5,
                created=now, updated=now,
            ),
            passages=StoredPassages((Span(0, len(text)),), (pack(vector),)),
        )
        for memory_id, number, text, vector in zip(
            new_ids(now, len(rows.texts)), range(rows.first, rows.first + len(rows.texts)), rows.texts, rows.vectors,
            strict=True,
        )
    ]  # fmt: skip


ENGINES = {each.name: each for each in (FileEngine, ServerEngine)}
