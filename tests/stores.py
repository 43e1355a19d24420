"""Stores of every kind for tests: in files, in memory, and in schemas of the shared PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st

import nacre
import store_checks
from nacre.interfaces import Store
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import SqliteStore
from nacre.types.location import SCHEMA
from postgres_server import MISSING, ReusedSchemas, needs_postgres, reused_schemas

_NODES = 3  # that a store of this kind has
_POSTGRES = pytest.param("postgres", marks=needs_postgres)
REAL_STORES = ("sqlite", _POSTGRES)  # which keep what they are given
LOCAL_STORES = ("sqlite", "reference")  # for what an engine does with any store
ALL_STORES = ("sqlite", "reference", _POSTGRES)
# For tests by Hypothesis. A server takes several times as long for an example.
REAL_KINDS = st.sampled_from([*["sqlite"] * 4, *([] if MISSING else ["postgres"])])

Place: TypeAlias = Path | str | tuple[str, ...] | None  # a file, a schema, those of several nodes, or nowhere
Select: TypeAlias = Callable[[str], list[tuple[Any, ...]]]  # runs a statement in a schema
Opening: TypeAlias = Callable[..., nacre.Nacre]


class Stores:
    """Opens stores of one kind, each at a place of its own. Leaving the block closes those that are open."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._folder = folder
        self._places = 0
        self._opened: list[Store] = []
        self._stack = ExitStack()
        self._schemas: ReusedSchemas | None = None

    def __enter__(self) -> Stores:
        if self.kind in ("postgres", "nodes"):
            self._schemas = self._stack.enter_context(reused_schemas())
        return self

    def __exit__(self, *_: object) -> None:
        for store in self._opened:
            store.close()
        self._stack.close()

    def place(self, *, new: bool = False) -> Place:
        """Where there is nothing yet: `new`, not even the tables of a schema."""
        if self.kind == "reference":
            return None
        if self._schemas is not None:
            several = tuple(self._schemas.new(new=new) for _ in range(_NODES if self.kind == "nodes" else 1))
            return several if len(several) > 1 else several[0]
        self._places += 1
        return self._folder / ("memories.db" if self._places == 1 else f"memories-{self._places}.db")

    def open(self, place: Place = None, **options: Any) -> Store:
        """A store at a place, or at a new one. The reference store is always new."""
        place = self.place() if place is None else place
        if isinstance(place, Path):
            opened: Store = SqliteStore(place, **options)
        elif place is None:
            opened = MemoryStore(**options)
        elif isinstance(place, tuple):
            opened = self._nodes(place, options)
        else:
            from nacre.storage.postgres import PostgresStore

            assert self._schemas is not None
            opened = PostgresStore(self._schemas.dsn, place, **options)
        self._opened.append(opened)
        return opened

    def _nodes(self, place: tuple[str, ...], options: dict[str, Any]) -> Store:
        from nacre.storage.nodes import NodesStore
        from nacre.storage.postgres import PostgresNode

        assert self._schemas is not None
        dsn = self._schemas.dsn
        return NodesStore([(each, partial(PostgresNode, dsn, each, **options)) for each in place])

    def named(self, place: Place) -> tuple[str, str]:
        """The name of a store and its schema, as `nacre.open` takes them. A file has no schema: the usual is given."""
        assert place is not None
        return (str(place), SCHEMA) if self._schemas is None else (self._schemas.dsn, str(place))

    def shown(self, place: Place) -> list[str]:
        """How messages name a store at a place."""
        assert place is not None
        if self._schemas is None:
            return [str(place)]
        several = (str(place),) if not isinstance(place, tuple) else place
        return ["the nodes", *(f"{self._schemas.dsn} (schema {each})" for each in several)]

    def opener(self, place: Place = None) -> Opening:
        """`nacre.open` of a place, or of a new one: each call opens the same store."""
        name, schema = self.named(self.place() if place is None else place)
        return partial(nacre.open, name, schema=schema)

    def check_vectors(self, place: Place) -> None:
        """Memories have the vectors that their rows say."""
        if isinstance(place, Path):
            store_checks.check_token_vectors(place)
        elif place is not None:
            import postgres_checks

            self._check_schemas(place, postgres_checks.check_passages)

    def commits(self, place: Place) -> bytes:
        """Another after every commit of any connection, and sometimes else; empty if that cannot be told."""
        if isinstance(place, Path):
            return store_checks.commits(place)
        if self._schemas is None:
            return b""
        with self._schemas.reading("public") as select:  # of the whole server
            return str(select("SELECT pg_current_wal_insert_lsn()")[0][0]).encode()

    def check(self, place: Place) -> None:
        """What is derived equals a recount."""
        if isinstance(place, Path):
            store_checks.check_derived_tables(place)
            store_checks.check_words_of_relations(place)
        elif place is not None:
            import postgres_checks

            self._check_schemas(place, postgres_checks.check_derived_tables)

    def _check_schemas(self, place: str | tuple[str, ...], check: Callable[[Select], None]) -> None:
        assert self._schemas is not None
        for each in (place,) if isinstance(place, str) else place:
            with self._schemas.reading(each) as select:
                check(select)
