"""What does a JSON object ask for? Requests of doors that speak JSON, as values. The one codec's way in.

A field that is missing or null keeps the default of its dataclass; an unknown one is named, with those allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from nacre import wire
from nacre.errors import InvalidInput
from nacre.types import Filter, SearchRequest
from nacre.views import ContextRequest, TimelineRequest

Reader = Callable[[str, object], Any]


def fields(data: Mapping[str, Any], readers: Mapping[str, Reader], needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields that were given, read."""
    unknown = sorted(data.keys() - readers.keys())
    if unknown:
        raise InvalidInput(unknown[0], f"is unknown; allowed: {', '.join(readers)}")
    for name in needed:
        if data.get(name) is None:
            raise InvalidInput(name, "is missing")
    return {name: readers[name](name, value) for name, value in data.items() if value is not None}


def as_given(_: str, value: object) -> object:
    """What the engine's own checks look at."""
    return value


def text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, not {type(value).__name__}")
    return value


def texts(field: str, value: object) -> tuple[str, ...]:
    """A list of texts, or one text for a list of one: models often write it so."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(field, f"must be a list of texts, not {type(value).__name__}")
    return tuple(value)


def moment(field: str, value: object) -> datetime:
    """When a time begins that is written as people say it, or in ISO 8601."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text like 7d, yesterday or 2026-03-01, not {type(value).__name__}")
    return wire.parse_time(field, value, datetime.now(UTC))


_FILTERS: Mapping[str, tuple[str, Reader]] = {
    "namespaces": ("namespaces", texts),
    "kinds": ("kinds", texts),
    "tags": ("tags_all", texts),
    "sessions": ("sessions", texts),
}


def _filtered(
    data: Mapping[str, Any], readers: Mapping[str, Reader], filters: tuple[str, ...], needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields of a request, those that filter put together as its `where`."""
    given = fields(data, {**readers, **{name: _FILTERS[name][1] for name in filters}}, needed)
    where = {_FILTERS[name][0]: given.pop(name) for name in filters if name in given}
    return {**given, "where": Filter(**where)}


def search(data: Mapping[str, Any]) -> SearchRequest:
    readers: dict[str, Reader] = {
        "query": text,
        "limit": as_given,
        "mode": text,
        "min_score": as_given,
        "lens": text,
        "as_of": moment,
        "omit_told": as_given,
        "session": text,
    }
    return SearchRequest(**_filtered(data, readers, ("namespaces", "kinds", "tags"), ("query",)))


def timeline(data: Mapping[str, Any]) -> TimelineRequest:
    readers: dict[str, Reader] = {
        "start": moment,
        "end": moment,
        "around": text,
        "span": as_given,
        "limit": as_given,
        "oldest_first": as_given,
        "cursor": text,
        "histogram": text,
    }
    return TimelineRequest(**_filtered(data, readers, ("namespaces", "kinds", "tags", "sessions")))


def context(data: Mapping[str, Any]) -> ContextRequest:
    readers: dict[str, Reader] = {
        "query": text,
        "budget_tokens": as_given,
        "min_score": as_given,
        "session": text,
        "repeat": as_given,
        "as_of": moment,
    }
    return ContextRequest(**_filtered(data, readers, ("namespaces", "kinds", "tags"), ("query",)))
