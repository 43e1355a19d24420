"""Memories as rows and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any

import apsw

from nacre.errors import StoreCorrupt
from nacre.ids import content_hash
from nacre.types.memory import BREAK, Entry, Memory, Passages, Tokens
from nacre.types.tokens import TOKEN_PASSAGES_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

COLUMNS = (
    "m.id, m.space, m.kind, m.namespace, m.text, m.summary, m.tags, m.source, m.session, m.position, "
    "m.metadata, m.importance, m.created_us, m.updated_us, m.deleted_us, m.happened_us, m.pinned, m.origin, "
    "m.key, m.expires_us, m.language"
)
RESTORE = "restore the last backup with `nacre restore BACKUP --force`"  # what to do with a damaged store
READ_COLUMNS = f"{COLUMNS}, m.content_hash"
WORD_COLUMNS = "t.words, t.forms, t.length, t.summary, t.tags, t.source"
# Texts are tokenised already: FTS5 only splits them at white space.
_SYMBOLS = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum())
TOKENIZE = f"ascii tokenchars '{_SYMBOLS.replace(chr(39), chr(39) * 2)}'".replace('"', '""')


def fetch(db: apsw.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query. STRICT tables guarantee the types that apsw cannot know."""
    return db.execute(sql, parameters).fetchall()


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    return _EPOCH + timedelta(0, 0, us)


def maybe_microseconds(value: datetime | None) -> int | None:
    return None if value is None else microseconds(value)


def maybe_moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def json_columns(count: int) -> str:
    """SQL for the columns of a row that is a JSON array."""
    return ", ".join(f"value ->> {at}" for at in range(count))


def memory(row: Iterable[Any]) -> Memory:
    """A memory from a row of READ_COLUMNS. Raises StoreCorrupt if its text is not the one that was written."""
    (
        memory_id, space, kind, namespace, text, summary, tags, source, session, position,
        metadata, importance, created_us, updated_us, deleted_us, happened_us, pinned, origin,
        key, expires_us, language, written_hash,
    ) = row  # fmt: skip
    if content_hash(text) != written_hash:
        raise StoreCorrupt(
            f"store: memory {memory_id} is damaged: its text does not match its checksum; {RESTORE}",
            (memory_id,),
        )
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
        pinned=bool(pinned),
        origin=origin,
        key=key,
        expires=maybe_moment(expires_us),
        language=language,
    )


def memory_columns(entries: Sequence[Entry]) -> list[Sequence[Any]]:
    """The columns that are written for memories, as JSON values.

    They are COLUMNS, then content_hash in hex, embedded and token_passages.
    """
    memories = [entry.memory for entry in entries]
    read = [(list(map(field, memories)), convert) for field, convert in _FIELDS]
    return [
        *(_converted(column, convert) if convert else column for column, convert in read),
        [entry.content_hash.hex() for entry in entries],
        [int(entry.passages is not None) for entry in entries],
        [token_passages(entry.passages) for entry in entries],
    ]


def token_passages(passages: Passages | None) -> int | None:
    """How many passages get token vectors; None: the memory has none."""
    return None if passages is None or passages.tokens is None else min(len(passages.tokens), TOKEN_PASSAGES_MAX)


def token_columns(written: Sequence[tuple[int, str, Tokens]]) -> list[Sequence[Any]]:
    """The columns that are written for tokens, in the order of the table."""
    numbers, spaces, tokens = zip(*written, strict=True)
    words, forms, lengths, *labels = zip(*tokens, strict=True)
    return [
        numbers,
        _converted(spaces, space_token),
        list(map(" ".join, words)),
        list(map(" ".join, forms)),
        *(_converted(label, " ".join) for label in labels),
        lengths,
    ]


def json_source(columns: Sequence[Sequence[Any]]) -> tuple[list[str], tuple[Any, ...]]:
    """Rows, given by column, as a JSON parameter: the expressions to select `FROM json_each(?)`, and all parameters.

    A value that all rows share becomes a parameter of its own: SQLite parses the JSON of a row once per column.
    """
    selected: list[str] = []
    shared: list[Any] = []
    varying: list[Sequence[Any]] = []
    for column in columns:
        if _is_shared(column):
            selected.append("?")
            shared.append(column[0])
        else:
            selected.append(f"value ->> {len(varying)}")
            varying.append(column)
    listed = list(zip(*varying, strict=True)) if varying else [()] * len(columns[0])
    return selected, (*shared, to_json(listed))


def _is_shared(column: Sequence[Any]) -> bool:
    return column.count(column[0]) == len(column)


def _converted(column: Sequence[Any], convert: Callable[[Any], Any]) -> Sequence[Any]:
    """Each value converted. A value that all rows share is converted once."""
    return [convert(column[0])] * len(column) if _is_shared(column) else list(map(convert, column))


def tokens(row: Iterable[Any]) -> Tokens:
    """Tokens from a row of WORD_COLUMNS."""
    words, forms, length, *labels = row
    return Tokens(tuple(words.split()), tuple(forms.split()), length, *(tuple(label.split()) for label in labels))


@lru_cache(maxsize=1_024)
def space_token(space: str) -> str:
    """The name of a space as one token for FTS5. No word contains a bar, so no query can match it."""
    return f"{BREAK}{space.encode().hex()}"


to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _tags(tags: tuple[str, ...]) -> str:
    return to_json(tags) if tags else "[]"


def _metadata(memory: Memory) -> str:
    return to_json(memory.metadata) if memory.metadata else "{}"


# How the fields of a memory are read and converted for writing, in the order of COLUMNS. Metadata become JSON when they
# are read: shared values are found by equality, and in Python true equals 1.
_READ: dict[str, Callable[[Memory], Any]] = {"metadata": _metadata}
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "tags": _tags,
    "created": microseconds,
    "updated": microseconds,
    "deleted": maybe_microseconds,
    "happened": maybe_microseconds,
    "expires": maybe_microseconds,
    "pinned": int,
}
_NAMES = [column.removeprefix("m.").removesuffix("_us") for column in COLUMNS.split(", ")]
_FIELDS = [(_READ.get(name) or attrgetter(name), _CONVERT.get(name)) for name in _NAMES]


def meta(db: apsw.Connection, key: str) -> str | None:
    value: str | None = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def set_meta(db: apsw.Connection, key: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
