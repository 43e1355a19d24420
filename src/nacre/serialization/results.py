"""The results of the engine's verbs from JSON: the inverse of `encode`, by the types of the values.

A field that is missing has its default, and one that is unknown is ignored: a server may be newer.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias

from nacre.engine.explain import Why, WhyNot
from nacre.query import lenses
from nacre.query.lenses import Lens
from nacre.serialization import encode, transfer
from nacre.types.access_tokens import AccessToken, NewAccessToken
from nacre.types.backups import BackupResult
from nacre.types.changes import Change, ChangePage
from nacre.types.facts import Belief, Disagreement, Entity, Fact, RelatedEntity
from nacre.types.health import Health
from nacre.types.memory import Event, Forgotten, Json, Memory, Progress, Purged, Remembered, Span, Update
from nacre.types.recall_log import Receipt
from nacre.types.search import Hit, SearchResult
from nacre.types.secrets import MemoryWithSecrets, Screened
from nacre.types.stats import Facets, Stats
from nacre.types.transfer import LoadCounts
from nacre.types.views import Context, Fetched, Timeline, TimelineEntry

Read: TypeAlias = Callable[[Any], Any]

ENCODERS: Mapping[type, Callable[[Any], Json]] = {
    BackupResult: encode.backup_result,
    Belief: encode.belief,
    Change: encode.change,
    ChangePage: encode.change_page,
    Context: encode.context,
    Disagreement: encode.disagreement,
    Entity: encode.entity,
    Event: encode.event,
    Facets: encode.facets,
    Fact: encode.fact,
    Fetched: encode.fetched,
    Forgotten: encode.forgotten,
    Health: encode.health,
    Lens: lenses.to_json,
    LoadCounts: transfer.load_counts,
    Memory: encode.memory,
    MemoryWithSecrets: encode.memory_with_secrets,
    NewAccessToken: encode.new_access_token,
    Progress: encode.progress,
    Purged: encode.purged,
    Receipt: encode.receipt,
    RelatedEntity: encode.related_entity,
    Remembered: encode.remembered,
    Screened: encode.screened,
    SearchResult: encode.search_result,
    Stats: encode.stats,
    Timeline: encode.timeline,
    AccessToken: encode.access_token,
    Why: encode.why,
    WhyNot: encode.why_not,
}


def encoder(hint: Any) -> Callable[[Any], Json]:
    """How a result of this type is written: a value by its type, a list by the type of its items."""
    if hint in ENCODERS:
        return ENCODERS[hint]
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is list and inner[0] in ENCODERS:
        one = ENCODERS[inner[0]]
        return lambda values: [one(each) for each in values]
    return lambda value: value


@cache
def decoder(hint: Any) -> Read:
    """How a result of this type is read."""
    if hint in _READERS:
        return _READERS[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        several = [each for each in inner if each is not NoneType]
        read = decoder(several[0]) if len(several) == 1 else _as_it_is
        return lambda value: None if value is None else read(value)
    if hint is datetime:
        return _moment
    if hint is Path:
        return Path
    if hint is float:
        return float
    if origin in (list, tuple) and inner[-1:] in ((...,), inner):
        make, read_one = origin, decoder(inner[0])
        return lambda values: make(read_one(each) for each in values)
    if origin is tuple:
        readers = [decoder(each) for each in inner]
        return lambda values: tuple(read(each) for read, each in zip(readers, values, strict=True))
    if origin in (dict, Mapping) or hint is Mapping:
        read_value = decoder(inner[1])
        return lambda values: {key: read_value(each) for key, each in values.items()}
    if origin is Literal or not isinstance(hint, type):
        return _as_it_is
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        return _fields_reader(hint)
    return _as_it_is


def _fields_reader(of: type) -> Read:
    if of is Span:
        return lambda value: Span(*value)
    readers: dict[str, Read] | None = None

    def read(value: Mapping[str, Any]) -> Any:
        nonlocal readers
        if readers is None:  # not before it is needed: types refer to each other
            hints = hints_of(of)
            readers = {name: decoder(hints[name]) for name in _names(of)}
        return of(**{name: each(value[name]) for name, each in readers.items() if name in value})

    return read


def _names(of: type) -> list[str]:
    if dataclasses.is_dataclass(of):
        return [each.name for each in dataclasses.fields(of)]
    return list(of._fields)  # type: ignore[attr-defined]  # a named tuple


def hints_of(of: type) -> dict[str, Any]:
    """The types of the fields of a value, also of those whose types are imported late."""
    return typing.get_type_hints(of, localns={"Path": Path})


def _as_it_is(value: Any) -> Any:
    return value


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


# ---------------------------------------------------------------- what is not field by field


def _fact(value: Mapping[str, Any]) -> Fact:
    """Two fields are only written where they differ from others."""
    read = _fields_reader(Fact)
    return typing.cast("Fact", read({"touched": value["reinforced"], "ends": value["valid_to"], **value}))


def _belief(value: Mapping[str, Any]) -> Belief:
    return Belief(_fact(value), value["effective"])


def _beliefs(values: list[Mapping[str, Any]]) -> tuple[Belief, ...]:
    return tuple(map(_belief, values))


def _disagreement(value: Mapping[str, Any]) -> Disagreement:
    return typing.cast("Disagreement", _read_disagreement({**value, "beliefs": value["facts"]}))


def _forgotten(value: Mapping[str, Any]) -> Forgotten:
    return Forgotten(tuple(value["forgotten"]), tuple(value.get("missing", ())))


def _purged(value: Mapping[str, Any]) -> Purged:
    return Purged(tuple(value["purged"]), value["pending"])


def _hit(value: Mapping[str, Any]) -> Hit:
    """A hit that was written with its whole memory."""
    beliefs = {"beliefs": value["facts"], "facts": value["all_facts"]} if "all_facts" in value else {"beliefs": None}
    return typing.cast("Hit", _read_hit({**value, **beliefs}))


def _fetched(value: Mapping[str, Any]) -> Fetched:
    read_entity, read_entry = decoder(Entity), decoder(TimelineEntry)
    found = value["memories"]
    return Fetched(
        tuple(decoder(Memory)(each) for each in found),
        tuple(value["missing"]),
        {each["id"]: tuple(map(read_entity, each["entities"])) for each in found if "entities" in each},
        {each["id"]: tuple(map(read_entry, each["neighbours"])) for each in found if "neighbours" in each},
        decoder(tuple[Update, ...])(value.get("links", ())),
    )


_read_hit = _fields_reader(Hit)
_read_disagreement = _fields_reader(Disagreement)
_READERS: dict[Any, Read] = {
    Belief: _belief,
    Disagreement: _disagreement,
    Fact: _fact,
    Fetched: _fetched,
    Forgotten: _forgotten,
    Hit: _hit,
    Lens: lenses.from_json,
    Purged: _purged,
}
