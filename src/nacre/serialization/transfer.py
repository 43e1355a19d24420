"""Records of an export as JSON Lines, and back. The first line is the header; docs/export.md describes each field.

Times are ISO 8601 in UTC with microseconds, vectors base64 of little-endian half precision floats.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, cast, get_args

from nacre.analysis.language import language_of
from nacre.errors import InvalidInput
from nacre.serialization import decode, encode
from nacre.types.facts import Fact, FactType, Origin
from nacre.types.memory import Json, Memory, Span
from nacre.types.transfer import (
    FORMAT,
    FORMAT_VERSION,
    Dropped,
    DroppedKind,
    EntityRecord,
    EventRecord,
    FactRecord,
    Header,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
)

_EVENT_CHARS_MAX = (
    1_000_000  # of what updates replaced in the line of a memory; more events follow in lines of their own
)
_REMEDY = "export it again"
HEADER_BYTES_MAX = 65_536


def is_export(head: bytes) -> bool:
    """Whether a file that begins like this is an export of Nacre."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("format") == FORMAT


def load_counts(value: LoadCounts) -> dict[str, Json]:
    return {each.name: getattr(value, each.name) for each in fields(LoadCounts)}


# ---------------------------------------------------------------- writing


def lines(records: Iterable[Record]) -> Iterator[str]:
    """Each record as one line, or more where a memory has a long history."""
    for record in records:
        if isinstance(record, MemoryRecord):
            kept, rest = _short_history(record)
            yield _line("memory", memory_record(kept))
            yield from (_line("event", _event(each)) for each in rest)
        else:
            yield _line(*_encoded(record))


def _line(kind: str, body: Mapping[str, Json]) -> str:
    named: dict[str, Json] = {"format": FORMAT} if kind == "header" else {"record": kind}
    return encode.dumps({**named, **body}, indent=None) + "\n"


def _short_history(record: MemoryRecord) -> tuple[MemoryRecord, tuple[EventRecord, ...]]:
    chars = 0
    for at, event in enumerate(record.events):
        chars += len(str(event.before))
        if chars > _EVENT_CHARS_MAX:
            return MemoryRecord(record.memory, record.events[:at], record.passages), record.events[at:]
    return record, ()


def _encoded(record: Record) -> tuple[str, dict[str, Json]]:
    match record:
        case Header():
            return "header", _header(record)
        case FactRecord():
            return "fact", fact_record(record)
        case EntityRecord():
            return "entity", {
                "space": record.space,
                "name": record.name,
                "type": record.type,
                "kept": record.kept,
                "aliases": list(record.aliases),
                "memory_ids": list(record.memory_ids),
                "changed": _maybe_time(record.changed),
            }
        case UpdateRecord():
            return "update", {
                "newer": record.newer,
                "older": record.older,
                "cue": record.cue,
                "changed": _maybe_time(record.changed),
            }
        case SimilarRecord():
            return "similar", {
                "one": record.one,
                "other": record.other,
                "texts": list(record.texts),
                "apart": record.apart,
            }
        case LensRecord():
            return "lens", {
                "space": record.space,
                "name": record.name,
                "body": json.loads(record.body),
                "changed": _maybe_time(record.changed),
            }
        case Dropped():
            return "dropped", {
                "kind": record.kind,
                "space": record.space,
                "name": record.name,
                "changed": _time(record.changed),
            }
        case EventRecord():
            return "event", _event(record)
        case MemoryRecord():
            return "memory", memory_record(record)


def _header(value: Header) -> dict[str, Json]:
    body = {each.name: getattr(value, each.name) for each in fields(Header)}
    return {**body, "at": _time(value.at), "further_models": list(value.further_models)}


def memory_record(record: MemoryRecord) -> dict[str, Json]:
    memory = record.memory
    body: dict[str, Json] = {
        "id": memory.id,
        "key": memory.key,
        "space": memory.space,
        "kind": memory.kind,
        "namespace": memory.namespace,
        "text": memory.text,
        "summary": memory.summary,
        "tags": list(memory.tags),
        "source": memory.source,
        "session": memory.session,
        "position": memory.position,
        "metadata": dict(memory.metadata),
        "importance": memory.importance,
        "created": _time(memory.created),
        "updated": _time(memory.updated),
        "deleted": _maybe_time(memory.deleted),
        "happened": _maybe_time(memory.happened),
        "expires": _maybe_time(memory.expires),
        "pinned": memory.pinned,
        "origin": memory.origin,
        "language": memory.language,
        "events": [_event(each) for each in record.events],
    }
    if record.passages is not None:
        body["passages"] = _passages(record.passages)
    if record.further:
        body["further"] = {model: _passages(each) for model, each in record.further.items()}
    return body


def _passages(passages: StoredPassages) -> dict[str, Json]:
    return {
        "spans": [[span.start, span.end] for span in passages.spans],
        "vectors": [b64encode(each).decode() for each in passages.vectors],
        "tokens": None if passages.tokens is None else [b64encode(each).decode() for each in passages.tokens],
    }


def fact_record(record: FactRecord) -> dict[str, Json]:
    fact = record.fact
    return {
        "id": fact.id,
        "memory_id": fact.memory_id,
        "space": fact.space,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "type": fact.type,
        "confidence": fact.confidence,
        "decay_rate": fact.decay_rate,
        "reinforced": _time(fact.reinforced),
        "touched": _time(fact.touched),
        "valid_from": _time(fact.valid_from),
        "valid_to": _maybe_time(fact.valid_to),
        "ends": _maybe_time(fact.ends),
        "superseded_by": fact.superseded_by,
        "quote": fact.quote,
        "relation": fact.relation,
        "single": fact.single,
        "origin": fact.origin,
        "text": record.text,
    }


def _event(event: EventRecord) -> dict[str, Json]:
    return {
        "uid": event.uid,
        "at": _time(event.at),
        "action": event.action,
        "memory_id": event.memory_id,
        "space": event.space,
        "before": dict(event.before),
    }


def _time(value: datetime) -> str:
    return encode.moment(value)


def _maybe_time(value: datetime | None) -> str | None:
    return None if value is None else _time(value)


# ---------------------------------------------------------------- reading


def read_header(line: bytes | str) -> Header:
    """The first line. Raises InvalidInput for another format, or a newer version of this one."""
    data = _Fields(decode.json_line(line), "header")
    if data.values.get("format") != FORMAT:
        raise InvalidInput("file", "is no export of Nacre; the first line has no format nacre-export")
    version = data.whole("version")
    if version > FORMAT_VERSION:
        raise InvalidInput(
            "file", f"has version {version} of the format, this Nacre knows {FORMAT_VERSION}; upgrade it"
        )
    return Header(
        store=data.text("store"),
        at=data.time("at"),
        seq=data.whole("seq"),
        since=data.whole("since"),
        where=data.text("where"),
        vectors=data.flag("vectors"),
        model=data.maybe_text("model"),
        token_model=data.maybe_text("token_model"),
        further_models=data.texts("further_models") if "further_models" in data.values else (),
        memories=data.whole("memories"),
        version=version,
    )


def read_line(line: bytes | str) -> Record:
    """A line, also the first."""
    value = decode.json_line(line)
    return read_header(line) if isinstance(value, dict) and "format" in value else _record(value)


def read_record(line: bytes | str) -> Record:
    """Any other line. Raises InvalidInput that names the field."""
    return _record(decode.json_line(line))


def _record(value: object) -> Record:
    kind = value.get("record") if isinstance(value, dict) else None
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None or not _is_storable(value):
        raise InvalidInput("record", f"must be one of {', '.join(_READERS)}; {_REMEDY}")
    return reader(_Fields(value, str(kind)))


def _is_storable(value: object) -> bool:
    """Whether it has no half of a character: JSON can escape one, and no text may have it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidInput("record", f"has text that is no valid Unicode; {_REMEDY}") from None
    return True


class _Fields:
    """The fields of a JSON object, each read as what it must be."""

    def __init__(self, value: object, within: str) -> None:
        if not isinstance(value, dict):
            raise InvalidInput(within, f"must be an object; {_REMEDY}")
        self.values: dict[str, Any] = value
        self._within = within

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def maybe_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
            raise self._wrong(name, "a whole number")
        return value

    def maybe_whole(self, name: str) -> int | None:
        return None if self.values.get(name) is None else self.whole(name)

    def number(self, name: str) -> float:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
            raise self._wrong(name, "a number")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def time(self, name: str) -> datetime:
        try:
            moment = datetime.fromisoformat(self.text(name))
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise self._wrong(name, "a time with its time zone, such as 2026-03-01T12:00:00Z")

    def maybe_time(self, name: str) -> datetime | None:
        return None if self.values.get(name) is None else self.time(name)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(name, "a list of texts")
        return tuple(value)

    def object(self, name: str) -> dict[str, Json]:
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def several(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise self._wrong(name, f"one of {', '.join(allowed)}")
        return value

    def blobs(self, name: str) -> tuple[bytes, ...]:
        try:
            return tuple(b64decode(each, validate=True) for each in self.texts(name))
        except ValueError:
            raise self._wrong(name, "a list of base64") from None

    def _wrong(self, name: str, expected: str) -> InvalidInput:
        return InvalidInput(f"{self._within}.{name}", f"must be {expected}; {_REMEDY}")


def _read_memory(data: _Fields) -> MemoryRecord:
    passages = None
    if data.values.get("passages") is not None:
        passages = _read_passages(_Fields(data.values["passages"], "memory.passages"))
    further = data.object("further") if "further" in data.values else {}
    return MemoryRecord(
        Memory(
            id=data.text("id"),
            key=data.maybe_text("key"),
            space=data.text("space"),
            kind=data.text("kind"),
            namespace=data.text("namespace"),
            text=data.text("text"),
            summary=data.maybe_text("summary"),
            tags=data.texts("tags"),
            source=data.maybe_text("source"),
            session=data.maybe_text("session"),
            position=data.maybe_whole("position"),
            metadata=data.object("metadata"),
            importance=data.number("importance"),
            created=data.time("created"),
            updated=data.time("updated"),
            deleted=data.maybe_time("deleted"),
            happened=data.maybe_time("happened"),
            expires=data.maybe_time("expires"),
            pinned=data.flag("pinned"),
            origin=data.maybe_text("origin"),
            # Exports of older versions have none.
            language=data.maybe_text("language") if "language" in data.values else language_of(data.text("text")),
        ),
        tuple(_read_event(_Fields(each, "memory.events")) for each in data.several("events")),
        passages,
        {model: _read_further(_Fields(each, "memory.further")) for model, each in further.items()},
    )


def _read_further(data: _Fields) -> StoredPassages:
    """None at all: the model does not know the language."""
    return _read_passages(data) if data.several("spans") else StoredPassages((), ())


def _read_passages(data: _Fields) -> StoredPassages:
    spans = data.several("spans")
    if not all(isinstance(each, list) and len(each) == 2 and all(type(at) is int for at in each) for each in spans):
        raise InvalidInput("memory.passages.spans", f"must be a list of pairs of numbers; {_REMEDY}")
    vectors = data.blobs("vectors")
    if len(vectors) != len(spans) or not vectors or any(not each or len(each) % 2 for each in vectors):
        raise InvalidInput("memory.passages.vectors", f"must be one vector for each span; {_REMEDY}")
    tokens = None if data.values.get("tokens") is None else data.blobs("tokens")
    return StoredPassages(tuple(Span(start, end) for start, end in spans), vectors, tokens)


def _read_event(data: _Fields) -> EventRecord:
    return EventRecord(
        uid=data.text("uid"),
        at=data.time("at"),
        action=data.text("action"),
        memory_id=data.text("memory_id"),
        space=data.text("space"),
        before=data.object("before"),
    )


def _read_fact(data: _Fields) -> FactRecord:
    return FactRecord(
        Fact(
            id=data.text("id"),
            memory_id=data.text("memory_id"),
            space=data.text("space"),
            subject=data.text("subject"),
            predicate=data.text("predicate"),
            object=data.text("object"),
            type=cast("FactType", data.choice("type", get_args(FactType))),
            confidence=data.number("confidence"),
            decay_rate=data.number("decay_rate"),
            reinforced=data.time("reinforced"),
            touched=data.time("touched"),
            valid_from=data.time("valid_from"),
            valid_to=data.maybe_time("valid_to"),
            ends=data.maybe_time("ends"),
            superseded_by=data.maybe_text("superseded_by"),
            quote=data.maybe_text("quote"),
            relation=data.flag("relation"),
            single=data.flag("single"),
            origin=cast("Origin", data.choice("origin", get_args(Origin))),
        ),
        data.maybe_text("text"),
    )


def _read_entity(data: _Fields) -> EntityRecord:
    return EntityRecord(
        space=data.text("space"),
        name=data.text("name"),
        type=data.maybe_text("type"),
        kept=data.flag("kept"),
        aliases=data.texts("aliases"),
        memory_ids=data.texts("memory_ids"),
        changed=data.maybe_time("changed"),
    )


def _read_update(data: _Fields) -> UpdateRecord:
    return UpdateRecord(data.text("newer"), data.text("older"), data.text("cue"), data.maybe_time("changed"))


def _read_similar(data: _Fields) -> SimilarRecord:
    texts = data.texts("texts")
    if len(texts) != 2:
        raise InvalidInput("similar.texts", f"must be two hashes; {_REMEDY}")
    return SimilarRecord(data.text("one"), data.text("other"), (texts[0], texts[1]), data.flag("apart"))


def _read_lens(data: _Fields) -> LensRecord:
    body = json.dumps(data.object("body"), ensure_ascii=False)
    return LensRecord(data.text("space"), data.text("name"), body, data.maybe_time("changed"))


def _read_dropped(data: _Fields) -> Dropped:
    kind = cast("DroppedKind", data.choice("kind", get_args(DroppedKind)))
    return Dropped(kind, data.text("space"), data.text("name"), data.time("changed"))


_READERS: dict[str, Callable[[_Fields], Record]] = {
    "memory": _read_memory,
    "fact": _read_fact,
    "entity": _read_entity,
    "update": _read_update,
    "similar": _read_similar,
    "lens": _read_lens,
    "dropped": _read_dropped,
    "event": _read_event,
}
