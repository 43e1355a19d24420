"""Lists of texts, bytes or numbers as arrays in PostgreSQL's binary format.

psycopg calls a function for each element. A write sends thousands, and spent a sixth of its processor time on that.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from psycopg.abc import Buffer
from psycopg.types.array import ListBinaryDumper

_HEADER = struct.Struct(">iiIii")  # dimensions, whether there are nulls, type of the elements, their number, the first
_TEXT = 25  # the type of text, for strings whose type psycopg leaves open
_SIZE = struct.Struct(">i")
_NUMBERS = {size: np.dtype([("size", ">i4"), ("value", f">i{size}")]) for size in (2, 4, 8)}
_BYTES = {"int2": 2, "int4": 4, "int8": 8}


class ListDumper(ListBinaryDumper):
    """The same bytes as those of psycopg. It is asked for what is no plain list."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        kinds = set(map(type, obj))
        if len(kinds) == 1 and self.sub_dumper is not None:
            (kind,) = kinds
            header = _HEADER.pack(1, 0, self.sub_dumper.oid or _TEXT, len(obj), 1)
            if kind is str:
                return header + _joined([each.encode() for each in obj])
            if kind is bytes:
                return header + _joined(obj)
            known = self._tx.adapters.types.get(self.sub_dumper.oid) if kind is int else None
            if known is not None and known.name in _BYTES:
                return header + _numbers(obj, _BYTES[known.name])
        return super().dump(obj)


def _joined(values: Sequence[bytes]) -> bytes:
    parts: list[bytes] = [b""] * (2 * len(values))
    parts[::2] = map(_SIZE.pack, map(len, values))
    parts[1::2] = values
    return b"".join(parts)


def _numbers(values: Sequence[int], size: int) -> bytes:
    array = np.empty(len(values), _NUMBERS[size])
    array["size"], array["value"] = size, values
    return array.tobytes()
