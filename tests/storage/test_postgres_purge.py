"""What is purged is gone from every table of a store in PostgreSQL, and from every row and key in its files.

PostgreSQL does not overwrite the space that it frees. So pages are read as the server reads them: an item that no
pointer leads to is free space. After `VACUUM FULL`, which the purge names, no byte is left in any file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import nacre
from nacre.embedders.hashing import Hashing
from postgres_server import Schemas, fresh_schemas, needs_postgres, shared_server
from purged_bytes import RandomStore, Remains

pytestmark = [pytest.mark.slow, needs_postgres]

PAGE = 8_192
NORMAL = 1  # an item that is in use
KEEPING = ("memories_by_tag", "memories_by_metadata")  # indexes (GIN) from which PostgreSQL never removes a key
BOUND = "bound between pages"  # of a B-tree: a key that divides two of its pages stays when its rows are gone
SPECIAL = 16  # bytes at the end of a page of a B-tree


class Server:
    """A store, and what the server has of it."""

    def __init__(self, schemas: Schemas) -> None:
        self.dsn = schemas.dsn
        self.schema = schemas.new()
        self._folder = shared_server().data

    def open(self, **options: Any) -> nacre.Nacre:
        return nacre.open(self.dsn, schema=self.schema, embedder=Hashing(), **options)

    def columns(self) -> Iterator[tuple[str, bytes]]:
        """Every value of every table, as the server sends it."""
        with psycopg.connect(self.dsn) as db:
            for name in self._relations("r"):
                copying = sql.SQL("COPY {}.{} TO STDOUT (FORMAT BINARY)").format(
                    *map(sql.Identifier, (self.schema, name))
                )
                with db.cursor() as cursor, cursor.copy(copying) as several:
                    yield name, b"".join(bytes(each) for each in several)

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Every row and key that a pointer leads to, in tables, indexes and what is stored beside them."""
        for name, written in self.files():
            for start in range(0, len(written), PAGE):
                page = written[start : start + PAGE]
                end = int.from_bytes(page[12:14], "little")
                bounds = _bounds(page)
                for number, at in enumerate(range(24, end, 4)):
                    pointer = int.from_bytes(page[at : at + 4], "little")
                    offset, flags, length = pointer & 0x7FFF, pointer >> 15 & 3, pointer >> 17
                    if flags == NORMAL:
                        yield BOUND if number < bounds else name, page[offset : offset + length]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """The files as they are after a checkpoint."""
        read = (
            "SELECT c.relname, pg_relation_filepath(c.oid) FROM pg_class AS c WHERE c.relfilenode <> 0 AND ("
            "c.relnamespace = %(schema)s::regnamespace OR c.oid IN ("
            "SELECT unnest(ARRAY[t.reltoastrelid, i.indexrelid]) FROM pg_class AS t "
            "LEFT JOIN pg_index AS i ON i.indrelid = t.reltoastrelid WHERE t.relnamespace = %(schema)s::regnamespace))"
        )
        with psycopg.connect(self.dsn, autocommit=True) as db:
            db.execute("CHECKPOINT")
            for name, path in db.execute(read, {"schema": self.schema}):
                yield name, Path(self._folder, path).read_bytes()

    def vacuum_full(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as db:
            for name in self._relations("r"):
                db.execute(sql.SQL("VACUUM FULL {}.{}").format(*map(sql.Identifier, (self.schema, name))))

    def _relations(self, kind: str) -> list[str]:
        read = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = %s ORDER BY relname"
        with psycopg.connect(self.dsn) as db:
            return [name for (name,) in db.execute(read, (self.schema, kind))]


@pytest.fixture
def server() -> Iterator[Server]:
    with fresh_schemas() as schemas:
        yield Server(schemas)


def _bounds(page: bytes) -> int:
    """How many items of a page, from its first on, are bounds: all above the leaves, and the high key of a leaf."""
    if int.from_bytes(page[16:18], "little") != PAGE - SPECIAL:
        return 0  # no page of a B-tree
    following, level = (int.from_bytes(page[at : at + 4], "little") for at in (PAGE - 12, PAGE - 8))
    return PAGE if level else int(following != 0)


def some(left: Remains) -> Remains:
    return replace(left, words=set(sorted(left.words)[:40]))


@pytest.mark.parametrize("seed", range(3))
def test_no_byte_is_left_in_a_random_store(server: Server, seed: int) -> None:
    with server.open() as engine:
        store = RandomStore(engine, seed)
        store.remember(25)
        known = store.remains[store.one_of()]
        assert some(known).found_among(server.columns()) != []
        assert some(known).found_among(server.items()) != []
        for _ in range(8):
            store.change()
        for number in (3, 2):
            engine._log.flush()
            left = store.purge(number)
            assert left.found_among(server.columns()) == []
            kept = ((name, item) for name, item in server.items() if name not in (*KEEPING, BOUND))
            assert some(left).found_among(kept) == []
            store.remember(5)
            store.change()
    server.vacuum_full()
    assert left.found_among(server.files()) == []
