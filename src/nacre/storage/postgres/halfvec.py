"""Vectors of 16-bit numbers as pgvector has them: the bits that storage/vectors.py packs, in another byte order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from nacre.storage.postgres.schema import Db
from nacre.storage.vectors import STORED

_HEADER = struct.Struct(">HH")  # dimensions, unused
_SENT = np.dtype(">f2")


class HalfVector(NamedTuple):
    """A packed vector, to be sent as a `halfvec`."""

    packed: bytes


class Types(NamedTuple):
    """The numbers that a database gave to the type."""

    oid: int
    array_oid: int


def type_of(db: Db) -> Types:
    info = TypeInfo.fetch(db, "halfvec") or _fetch_anywhere(db)
    return Types(info.oid, info.array_oid)


def _fetch_anywhere(db: Db) -> TypeInfo:
    """Where the schema of the extension is not in the path of the connection."""
    found = db.execute(
        "SELECT t.oid, t.typarray FROM pg_type AS t JOIN pg_extension AS e ON e.extnamespace = t.typnamespace "
        "WHERE e.extname = 'vector' AND t.typname = 'halfvec'"
    ).fetchone()
    assert found is not None  # `schema.prepare` has found it
    return TypeInfo("halfvec", *found)


def register(db: Db, types: Types) -> None:
    """Let a connection send vectors."""
    TypeInfo("halfvec", *types).register(db)

    class _Sent(_HalfVectorDumper):
        oid = types.oid

    db.adapters.register_dumper(HalfVector, _Sent)


class _HalfVectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: HalfVector) -> bytes:
        packed = obj.packed
        return _HEADER.pack(len(packed) // STORED.itemsize, 0) + np.frombuffer(packed, STORED).astype(_SENT).tobytes()


def received(sent: bytes) -> bytes:
    """The packed vector in what the server sends."""
    return np.frombuffer(sent, _SENT, offset=_HEADER.size).astype(STORED).tobytes()


def all_received(several: Sequence[bytes]) -> list[bytes]:
    return [received(each) for each in several]
