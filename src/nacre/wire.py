"""The one codec: JSON to values and back, and errors to exit codes. Every door uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, tzinfo
from typing import Any

from nacre.errors import (
    Conflict,
    EmbedderError,
    InvalidInput,
    NacreError,
    NotFound,
    StoreError,
)
from nacre.query import times
from nacre.types import (
    DidYouMean,
    Event,
    Facets,
    Hit,
    Json,
    Memory,
    NewMemory,
    Reason,
    Remembered,
    SearchResult,
    Stats,
    Timeline,
    TimelineEntry,
)

# The first class that fits an error decides. 0 is success, 1 an unexpected error, 130 an interruption.
EXIT_CODES: tuple[tuple[type[NacreError], int], ...] = (
    (InvalidInput, 2),
    (NotFound, 2),
    (Conflict, 2),
    (StoreError, 3),
    (EmbedderError, 3),
)


def exit_code(error: NacreError) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def error(value: NacreError) -> dict[str, Json]:
    body: dict[str, Json] = {"type": type(value).__name__, "message": str(value)}
    if isinstance(value, InvalidInput):
        body["field"] = value.field
    return {"error": body}


def dumps(value: Json, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


# ---------------------------------------------------------------- out


def moment(value: datetime) -> str:
    """ISO 8601 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def memory(value: Memory) -> dict[str, Json]:
    return {
        "id": value.id,
        "space": value.space,
        "kind": value.kind,
        "namespace": value.namespace,
        "text": value.text,
        "summary": value.summary,
        "tags": list(value.tags),
        "source": value.source,
        "session": value.session,
        "position": value.position,
        "metadata": dict(value.metadata),
        "importance": value.importance,
        "created": moment(value.created),
        "updated": moment(value.updated),
        "deleted": None if value.deleted is None else moment(value.deleted),
    }


def remembered(value: Remembered) -> dict[str, Json]:
    return {"id": value.id, "duplicate": value.duplicate}


def search_result(value: SearchResult) -> dict[str, Json]:
    return {
        "hits": [hit(each) for each in value.hits],
        "notes": list(value.notes),
        "did_you_mean": None if value.did_you_mean is None else did_you_mean(value.did_you_mean),
    }


def did_you_mean(value: DidYouMean) -> dict[str, Json]:
    return {"query": value.query, "words": {word: list(best) for word, best in value.words.items()}}


def facets(value: Facets) -> dict[str, Json]:
    return _counts(value) | {"notes": list(value.notes)}


def hit(value: Hit) -> dict[str, Json]:
    """A hit without its full text: that is what `get` is for."""
    found = value.memory
    return {
        "id": found.id,
        "score": value.score,
        "match_type": value.match_type,
        "bm25": value.bm25,
        "bm25_rank": value.bm25_rank,
        "cosine": value.cosine,
        "similarity": value.similarity,
        "cosine_rank": value.cosine_rank,
        "snippet": {
            "text": value.snippet.text,
            "start": value.snippet.start,
            "highlights": [list(span) for span in value.snippet.highlights],
        },
        "space": found.space,
        "kind": found.kind,
        "namespace": found.namespace,
        "tags": list(found.tags),
        "source": found.source,
        "session": found.session,
        "position": found.position,
        "created": moment(found.created),
        "reasons": [reason(each) for each in value.reasons],
    }


def reason(value: Reason) -> dict[str, Json]:
    return {
        "signal": value.signal,
        "effect": value.effect,
        "value": value.value,
        "numbers": dict(value.numbers),
    }


def timeline(value: Timeline) -> dict[str, Json]:
    return {"entries": [timeline_entry(each) for each in value.entries], "next": value.next}


def timeline_entry(value: TimelineEntry) -> dict[str, Json]:
    return {
        "id": value.id,
        "created": moment(value.created),
        "space": value.space,
        "kind": value.kind,
        "namespace": value.namespace,
        "tags": list(value.tags),
        "session": value.session,
        "position": value.position,
        "summary": value.summary,
    }


def event(value: Event) -> dict[str, Json]:
    return {
        "seq": value.seq,
        "at": moment(value.at),
        "action": value.action,
        "memory_id": value.memory_id,
        "before": dict(value.before),
    }


def stats(value: Stats) -> dict[str, Json]:
    return _counts(value)


def _counts(value: Stats | Facets) -> dict[str, Json]:
    counts: dict[str, Json] = {}
    for each in fields(value):
        found = getattr(value, each.name)
        counts[each.name] = dict(found) if isinstance(found, Mapping) else found
    return counts


# ---------------------------------------------------------------- in


def new_memory(data: object) -> NewMemory:
    """A memory from a JSON object with the fields of NewMemory."""
    if not isinstance(data, dict):
        raise InvalidInput("memory", f"must be a JSON object, not {type(data).__name__}")
    allowed = {each.name for each in fields(NewMemory)}
    unknown = sorted(str(key) for key in data.keys() - allowed)
    if unknown:
        raise InvalidInput(unknown[0], f"is not a field of a memory; allowed: {', '.join(sorted(allowed))}")
    if "text" not in data:
        raise InvalidInput("text", "is missing; give the text to remember")
    values: dict[str, Any] = dict(data)
    if values.get("created") is not None:
        values["created"] = parse_moment("created", values["created"])
    return NewMemory(**values)


def new_memory_line(line: str, number: int) -> NewMemory:
    """A memory from one line of a JSON Lines file."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"line {number}", f"is not JSON ({problem})") from None
    try:
        return new_memory(data)
    except InvalidInput as problem:
        raise InvalidInput(f"line {number}: {problem.field}", problem.problem) from None


def parse_moment(field: str, text: object) -> datetime:
    """A time from ISO 8601. Whether a time zone is needed is checked with the other fields."""
    try:
        if isinstance(text, str):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidInput(field, f"{text!r} is not a time; write it like 2026-03-01 or 2026-03-01T12:30:00Z")


def parse_time(field: str, text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """When the time that a person typed begins: 7d, yesterday, last week, March 2026, or ISO 8601."""
    period = times.read(text, now, zone)
    if period is None or period.start is None:
        raise InvalidInput(
            field, f"{text!r} is not a time; write it like 7d, yesterday, 'last week', 2026-03-01 or 2026-03-01T12:30"
        )
    return period.start
