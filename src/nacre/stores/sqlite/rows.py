"""Memories as rows and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw

from nacre.types import BREAK, Entry, Memory, Tokens

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

COLUMNS = (
    "m.id, m.space, m.kind, m.namespace, m.text, m.summary, m.tags, m.source, m.session, m.position, "
    "m.metadata, m.importance, m.created_us, m.updated_us, m.deleted_us, m.happened_us"
)
WORD_COLUMNS = "t.words, t.forms, t.length, t.summary, t.tags, t.source"


def fetch(db: apsw.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query. STRICT tables make sure of the types that apsw cannot know."""
    return db.execute(sql, parameters).fetchall()


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def maybe_microseconds(value: datetime | None) -> int | None:
    return None if value is None else microseconds(value)


def maybe_moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def json_columns(count: int) -> str:
    """The columns of a row that is given as a JSON array."""
    return ", ".join(f"value ->> {at}" for at in range(count))


def memory(row: Iterable[Any]) -> Memory:
    """A memory from a row of COLUMNS."""
    (
        memory_id, space, kind, namespace, text, summary, tags, source, session, position,
        metadata, importance, created_us, updated_us, deleted_us, happened_us,
    ) = row  # fmt: skip
    return Memory(
        id=memory_id,
        space=space,
        kind=kind,
        namespace=namespace,
        text=text,
        summary=summary,
        tags=() if tags == "[]" else tuple(json.loads(tags)),
        source=source,
        session=session,
        position=position,
        metadata={} if metadata == "{}" else json.loads(metadata),
        importance=importance,
        created=moment(created_us),
        updated=moment(updated_us),
        deleted=maybe_moment(deleted_us),
        happened=maybe_moment(happened_us),
    )


def values(entry: Entry) -> tuple[Any, ...]:
    """What is written of a memory: COLUMNS, then content_hash in hex and embedded. All of it fits into JSON."""
    memory = entry.memory
    return (
        memory.id,
        memory.space,
        memory.kind,
        memory.namespace,
        memory.text,
        memory.summary,
        to_json(memory.tags) if memory.tags else "[]",
        memory.source,
        memory.session,
        memory.position,
        to_json(memory.metadata) if memory.metadata else "{}",
        memory.importance,
        microseconds(memory.created),
        microseconds(memory.updated),
        maybe_microseconds(memory.deleted),
        maybe_microseconds(memory.happened),
        entry.content_hash.hex(),
        int(entry.passages is not None),
    )


def tokens(row: Iterable[Any]) -> Tokens:
    """Tokens from a row of WORD_COLUMNS."""
    words, forms, length, *labels = row
    return Tokens(tuple(words.split()), tuple(forms.split()), length, *(tuple(label.split()) for label in labels))


def token_values(row: int, space: str, tokens: Tokens) -> tuple[Any, ...]:
    """What is written of tokens, in the order of the table."""
    words, forms, length, *labels = tokens
    return row, space_token(space), " ".join(words), " ".join(forms), *map(" ".join, labels), length


def space_token(space: str) -> str:
    """The name of a space as one token for FTS5. No word has a bar, so no query can ask for it."""
    return f"{BREAK}{space.encode().hex()}"


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
