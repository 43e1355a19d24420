"""Whether two values are the same in every field, also in those that `==` leaves out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def same(one: Any, other: Any) -> None:
    """Raise AssertionError that names the first place where they differ."""
    found = list(_differences(one, other, type(one).__name__))
    assert not found, found[0]


def _differences(one: Any, other: Any, place: str) -> list[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):  # of which class is no promise
        keys = [] if list(one) == list(other) else [f"{place}: {list(one)} != {list(other)}"]
        return keys + [
            each for key in one if key in other for each in _differences(one[key], other[key], f"{place}[{key!r}]")
        ]
    if type(one) is not type(other):
        return [f"{place}: {one!r} is a {type(one).__name__}, {other!r} a {type(other).__name__}"]
    if dataclasses.is_dataclass(one):
        named = [each.name for each in dataclasses.fields(one)]
        return [
            each for name in named for each in _differences(getattr(one, name), getattr(other, name), f"{place}.{name}")
        ]
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [f"{place}: {len(one)} items, {len(other)} items"]
        pairs = enumerate(zip(one, other, strict=True))
        return [each for at, (a, b) in pairs for each in _differences(a, b, f"{place}[{at}]")]
    if isinstance(one, datetime) and one.utcoffset() != other.utcoffset():
        return [f"{place}: {one!r} != {other!r}"]
    if repr(one) != repr(other) and one != other:  # NaN equals nothing
        return [f"{place}: {one!r} != {other!r}"]
    return [] if repr(one) == repr(other) else [f"{place}: {one!r} != {other!r}"]
