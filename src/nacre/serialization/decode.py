"""JSON as values: search, timeline and context requests, and memories with their facts and entities.

A field that is missing or null keeps the default of its dataclass. An unknown field is an error that lists the
allowed ones.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from nacre.errors import InvalidInput
from nacre.query import dates
from nacre.types.facts import NewEntity, NewFact
from nacre.types.memory import NewMemory
from nacre.types.recipe import Recipe, recipe_of
from nacre.types.search import Filter, SearchRequest
from nacre.types.views import ContextRequest, TimelineRequest

LINE_BYTES_MAX = 32 * 2**20  # of JSON Lines; the longest text takes less than half of it, even with all of it escaped

Reader = Callable[[str, object], Any]


def fields(data: Mapping[str, Any], readers: Mapping[str, Reader], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the fields that are present, each with its reader."""
    for name in data:
        if name not in readers:
            raise unknown_field(name, tuple(readers))
    for name in required:
        if data.get(name) is None:
            raise InvalidInput(name, "is missing")
    return {name: readers[name](name, value) for name, value in data.items() if value is not None}


_SYNONYMS: Mapping[str, tuple[str, ...]] = {  # of fields, as other programs call them
    "limit": ("max_results", "num_results", "top_k", "topk", "k", "n", "count", "size", "max", "page_size"),
    "query": ("q", "question", "text", "search", "prompt", "input", "topic", "task"),
    "budget_tokens": ("max_tokens", "tokens", "token_budget", "budget", "token_limit"),
    "text": ("content", "memory", "body", "value", "message", "note", "fact"),
    "ids": ("id", "memory_id", "memory_ids"),
    "id": ("ids", "memory_id", "memory"),
    "min_score": ("threshold", "score_threshold", "min_relevance", "similarity_threshold"),
    "start": ("since", "from", "after", "start_date", "start_time"),
    "end": ("until", "to", "before", "end_date", "end_time"),
    "cursor": ("next", "page", "offset", "page_token"),
    "tags": ("labels", "topics", "tag"),
    "kind": ("type", "category"),
    "key": ("external_id", "custom_id", "uid", "slug"),
    "expires": ("ttl", "expiry", "expires_at", "expiration_date", "expires_in"),
    "kinds": ("kind", "type", "types"),
    "namespace": ("collection", "folder"),
    "namespaces": ("namespace", "collections"),
    "happened": ("date", "time", "timestamp", "when", "occurred"),
    "supersedes": ("replaces", "updates", "supersede"),
    "neighbours": ("neighbors", "context", "around", "surrounding"),
    "repeat": ("include_delivered", "include_given", "again"),
    "session": ("session_id", "conversation_id", "thread_id"),
}


_DURATION = re.compile(r"(?P<number>\d{1,6}) ?(?P<unit>s|m|h|d|w|mo|y)")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "mo": timedelta(days=30),
    "y": timedelta(days=365),
}

_TIMES = frozenset({"start", "end", *_SYNONYMS["start"], *_SYNONYMS["end"], "date_from", "date_to", "time_range"})


def unknown_field(name: str, allowed: Sequence[str], within: str = "") -> InvalidInput:
    """The error for a field that does not exist, with the one that was probably meant. `within` names its object."""
    import difflib  # only where something is wrong

    said = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name).casefold()
    meant = [each for each in allowed if said == each or said in _SYNONYMS.get(each, ())]
    meant += difflib.get_close_matches(said, allowed, 1)
    hint = f"; did you mean `{meant[0]}`?" if meant else ";"
    if not meant and "query" in allowed and said in _TIMES:
        hint = "; write since:7d or until:2026-03 in the query;"
    return InvalidInput(f"{within}{name}", f"is unknown{hint} allowed: {', '.join(allowed) or 'none'}")


def as_given(_: str, value: object) -> object:
    """Accept any value; the engine validates it."""
    return value


def text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, not {type(value).__name__}")
    return value


def texts(field: str, value: object) -> tuple[str, ...]:
    """A list of texts. A single text counts as a list of one, since models often write it that way."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise InvalidInput(field, f"must be a list of texts, not {type(value).__name__}")
    return tuple(text(f"{field}[{at}]", each) for at, each in enumerate(value))


def moment(field: str, value: object) -> datetime:
    """The start of a time as people write it (7d, yesterday) or in ISO 8601."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text like 7d, yesterday or 2026-03-01, not {type(value).__name__}")
    return parse_time(field, value, datetime.now(UTC))


def recipe(_: str, value: object) -> Recipe:
    return recipe_of(value)


_FILTERS: Mapping[str, tuple[str, Reader]] = {
    "namespaces": ("namespaces", texts),
    "kinds": ("kinds", texts),
    "tags": ("tags_all", texts),
    "sessions": ("sessions", texts),
    "fact_types": ("fact_types", texts),
    "languages": ("languages", texts),
    "importance_min": ("importance_min", as_given),
    "importance_max": ("importance_max", as_given),
}
_SEARCH_FILTERS = ("namespaces", "kinds", "tags", "fact_types", "languages", "importance_min", "importance_max")


def _request_fields(
    data: Mapping[str, Any], readers: Mapping[str, Reader], filters: tuple[str, ...], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Read the fields of a request. Those that filter are combined into `where`."""
    given = fields(data, {**readers, **{name: _FILTERS[name][1] for name in filters}}, required)
    where = {_FILTERS[name][0]: given.pop(name) for name in filters if name in given}
    return {**given, "where": Filter(**where)}


def search_request(data: Mapping[str, Any]) -> SearchRequest:
    readers: dict[str, Reader] = {
        "query": text,
        "limit": as_given,
        "mode": text,
        "min_score": as_given,
        "lens": text,
        "as_of": moment,
        "omit_delivered": as_given,
        "include_facts": as_given,
        "match": text,
        "min_similarity": as_given,
        "merge_relations": as_given,
        "rerank": as_given,
        "session": text,
        "recipe": recipe,
    }
    return SearchRequest(**_request_fields(data, readers, _SEARCH_FILTERS, ("query",)))


def timeline_request(data: Mapping[str, Any]) -> TimelineRequest:
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
    return TimelineRequest(**_request_fields(data, readers, (*_SEARCH_FILTERS, "sessions")))


def context_request(data: Mapping[str, Any]) -> ContextRequest:
    readers: dict[str, Reader] = {
        "query": text,
        "budget_tokens": as_given,
        "min_score": as_given,
        "session": text,
        "repeat": as_given,
        "as_of": moment,
        "rerank": as_given,
        "recipe": recipe,
    }
    return ContextRequest(**_request_fields(data, readers, _SEARCH_FILTERS, ("query",)))


# ---------------------------------------------------------------- memories


def new_memory(data: object) -> NewMemory:
    """A memory from a JSON object with the fields of NewMemory."""
    if not isinstance(data, dict):
        raise InvalidInput("memory", f"must be a JSON object, not {type(data).__name__}")
    allowed = [each.name for each in dataclasses.fields(NewMemory)]
    for name in data:
        if name not in allowed:
            raise unknown_field(str(name), allowed)
    if "text" not in data:
        raise InvalidInput("text", "is missing; give the text to remember")
    values: dict[str, Any] = dict(data)
    for name in ("created", "happened"):
        if values.get(name) is not None:
            values[name] = parse_iso_time(name, values[name])
    if values.get("expires") is not None:
        values["expires"] = expiry("expires", values["expires"])
    if isinstance(values.get("facts"), list):
        values["facts"] = [new_fact(f"facts[{at}]", each) for at, each in enumerate(values["facts"])]
    if isinstance(values.get("entities"), list):
        values["entities"] = [
            new_entity(f"entities[{at}]", each) if isinstance(each, dict) else each
            for at, each in enumerate(values["entities"])
        ]
    return NewMemory(**values)


def new_fact(field: str, data: object) -> NewFact:
    """A fact from a JSON object with the fields of NewFact."""
    values = _object_fields(field, data, NewFact, ("subject", "predicate", "object"))
    for name in ("valid_from", "valid_to"):
        if values.get(name) is not None:
            values[name] = parse_iso_time(f"{field}.{name}", values[name])
    return NewFact(**values)


def new_entity(field: str, data: object) -> NewEntity:
    """An entity from a JSON object with the fields of NewEntity."""
    return NewEntity(**_object_fields(field, data, NewEntity, ("name",)))


def _object_fields(
    field: str, data: object, kind: type[NewFact | NewEntity], required: tuple[str, ...]
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidInput(field, f"must be a JSON object, not {type(data).__name__}")
    allowed = [each.name for each in dataclasses.fields(kind)]
    for name in data:
        if name not in allowed:
            raise unknown_field(str(name), allowed, f"{field}.")
    for name in required:
        if name not in data:
            raise InvalidInput(f"{field}.{name}", "is missing")
    return dict(data)


def json_line(line: str | bytes) -> object:
    """The value of one line of a JSON Lines file. The error names no field: it is about the whole line."""
    if len(line) > LINE_BYTES_MAX:
        raise InvalidInput("", f"has more than {LINE_BYTES_MAX:,} bytes; split it")
    try:
        return json.loads(line)
    except json.JSONDecodeError as problem:
        raise InvalidInput("", f"is not JSON ({problem.msg} at character {problem.pos + 1})") from None
    except (ValueError, RecursionError) as problem:
        raise InvalidInput("", f"is not JSON ({problem})") from None


def new_memory_line(line: str, number: int) -> NewMemory:
    """A memory from one line of a JSON Lines file. The error names the line."""
    try:
        return new_memory(json_line(line))
    except InvalidInput as problem:
        place = f"line {number}: {problem.field}" if problem.field else f"line {number}"
        raise InvalidInput(place, problem.problem) from None


def parse_iso_time(field: str, text: object) -> datetime:
    """A time in ISO 8601. The engine checks whether it has a time zone."""
    try:
        if isinstance(text, str):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidInput(field, f"{text!r} is not a time; write it like 2026-03-01 or 2026-03-01T12:30:00Z")


def expiry(field: str, text: object) -> datetime | timedelta:
    """A time to come in ISO 8601, or how long from now: 90s, 30m, 12h, 7d, 2w, 6mo or 1y."""
    if isinstance(text, str):
        length = _DURATION.fullmatch(text.strip())
        if length:
            return int(length["number"]) * _UNITS[length["unit"]]
        try:
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.astimezone()
        except (ValueError, OverflowError):
            pass
    raise InvalidInput(
        field, f"{text!r} is not a time to come; write it like 30d, 12h, 2w, 2027-03-01 or 2027-03-01T12:30"
    )


def parse_time(field: str, text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The start of a time as people write it: 7d, yesterday, last week, March 2026, or ISO 8601."""
    period = dates.parse_period(text, now, zone)
    if period is None or period.start is None:
        raise InvalidInput(
            field, f"{text!r} is not a time; write it like 7d, yesterday, 'last week', 2026-03-01 or 2026-03-01T12:30"
        )
    return period.start
