"""What did a change replace, and which changes are refused? The same on every store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from nacre.errors import Conflict
from nacre.ids import content_hash
from nacre.types.facts import Fact
from nacre.types.memory import Changes, Identity, Json, Memory

_TEXTS = ("text", "summary")
_LABELS = ("tags", "source", "metadata")


def replaced(old: Memory, new: Memory) -> dict[str, Json]:
    """The fields an update changed, with what they were. Compared as JSON, where true is not 1."""
    before: dict[str, Json] = {}
    for name in Changes.__annotations__:
        was, becomes = getattr(old, name), getattr(new, name)
        was, becomes = plain(was), plain(becomes)
        if json.dumps(was) != json.dumps(becomes):
            before[name] = was
    return before


def identity(memory: Memory) -> Identity:
    """What makes a memory the same as another one of its space."""
    return memory.space, memory.key or content_hash(memory.text)


def check_unexpired(memory: Memory, at: datetime) -> None:
    """Raise Conflict for a memory that is to be restored and has expired by then."""
    if memory.expires is not None and memory.expires <= at:
        when = memory.expires.isoformat(timespec="seconds")
        raise Conflict(f"id: memory {memory.id} expired at {when} and cannot be restored; remember it anew")


def taken(memory: Memory, other: str) -> Conflict:
    """The error for a memory whose key or, without one, whose text another live memory has."""
    if memory.key is None:
        return Conflict(f"text: memory {other} has this text already, as {memory.id} would; forget it first")
    return Conflict(f"key: memory {other} has the key {memory.key!r} already, as {memory.id} would; forget it first")


def texts_ever(memory: Memory, replaced_before: Iterable[Mapping[str, Json]]) -> list[str]:
    """The texts and summaries that a memory has and had, by what each of its updates replaced."""
    return _ever(_TEXTS, memory, replaced_before)


def labels_ever(memory: Memory, replaced_before: Iterable[Mapping[str, Json]]) -> list[str]:
    """The tags, sources and metadata that a memory has and had."""
    return _ever(_LABELS, memory, replaced_before)


def stated(fact: Fact) -> str:
    """The words of a fact."""
    return f"{fact.subject} {fact.predicate} {fact.object} {fact.quote or ''}"


def _ever(names: Iterable[str], memory: Memory, replaced_before: Iterable[Mapping[str, Json]]) -> list[str]:
    versions = [{name: plain(getattr(memory, name)) for name in names}, *replaced_before]
    return [each for version in versions for name in names for each in _strings(version.get(name))]


def _strings(value: Json) -> Iterator[str]:
    """All strings in a JSON value, keys included."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _strings(each)
        case dict():
            for key, each in value.items():
                yield key
                yield from _strings(each)


def plain(value: Any) -> Json:
    """A field of a memory as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
    plain: Json = value
    return plain
