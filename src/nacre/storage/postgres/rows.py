"""Memories as rows and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from nacre.errors import StoreCorrupt
from nacre.ids import content_hash
from nacre.storage.postgres.connection import run, value
from nacre.storage.postgres.schema import Db
from nacre.types.memory import Entry, Identity, Json, Memory, Passages, Tokens
from nacre.types.tokens import TOKEN_PASSAGES_MAX

Key: TypeAlias = tuple[str, int]  # the space and the row of a memory

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

COLUMNS = (
    "m.id, m.space, m.kind, m.namespace, m.text, m.summary, m.tags, m.source, m.session, m.position, "
    "m.metadata, m.importance, m.created_us, m.updated_us, m.deleted_us, m.happened_us, m.pinned, m.origin, "
    "m.key, m.expires_us, m.language"
)
READ_COLUMNS = f"{COLUMNS}, m.content_hash"
WORD_COLUMNS = "t.words, t.forms, t.length, t.summary, t.tags, t.source"
# What is written of a memory besides its keys, in the order of `written`.
WRITTEN_COLUMNS = f"{COLUMNS.replace('m.', '')}, metadata_pairs, content_hash, identity, embedded, token_passages"
WRITTEN_TYPES = (
    *("text", "text", "text", "text", "text", "text", "text[]", "text", "text", "int8", "text", "float8", "int8"),
    *("int8", "int8", "int8", "bool", "text", "text", "int8", "text", "text[]", "bytea", "bytea", "bool", "int2"),
)
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    return _EPOCH + timedelta(0, 0, us)


def maybe_microseconds(value: datetime | None) -> int | None:
    return None if value is None else microseconds(value)


def maybe_moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def memory(row: Iterable[Any]) -> Memory:
    """A memory from a row of READ_COLUMNS. Raises StoreCorrupt if its text is not the one that was written."""
    (
        memory_id, space, kind, namespace, text, summary, tags, source, session, position,
        metadata, importance, created_us, updated_us, deleted_us, happened_us, pinned, origin,
        key, expires_us, language, written_hash,
    ) = row  # fmt: skip
    if content_hash(text) != written_hash:
        raise StoreCorrupt(
            f"store: memory {memory_id} is damaged: its text does not match its checksum; restore the last backup",
            (memory_id,),
        )
    return Memory(
        id=memory_id,
        space=space,
        kind=kind,
        namespace=namespace,
        text=text,
        summary=summary,
        tags=tuple(tags),
        source=source,
        session=session,
        position=position,
        metadata={} if metadata == "{}" else json.loads(metadata),
        importance=importance,
        created=moment(created_us),
        updated=moment(updated_us),
        deleted=maybe_moment(deleted_us),
        happened=maybe_moment(happened_us),
        pinned=pinned,
        origin=origin,
        key=key,
        expires=maybe_moment(expires_us),
        language=language,
    )


def written(entry: Entry) -> tuple[Any, ...]:
    """The values of WRITTEN_COLUMNS."""
    each = entry.memory
    return (
        *(each.id, each.space, each.kind, each.namespace, each.text, each.summary, list(each.tags), each.source),
        *(each.session, each.position, to_json(each.metadata) if each.metadata else "{}", float(each.importance)),
        *(microseconds(each.created), microseconds(each.updated), maybe_microseconds(each.deleted)),
        *(maybe_microseconds(each.happened), each.pinned, each.origin, each.key, maybe_microseconds(each.expires)),
        *(each.language, pairs(each.metadata), entry.content_hash, identity_hash(entry.identity)),
        *(entry.passages is not None, token_passages(entry.passages)),
    )


def identity_hash(identity: Identity) -> bytes:
    """What is compared of an identity: the hash of a text as it is, or that of a key, which no text has."""
    _, each = identity
    return each if isinstance(each, bytes) else hashlib.sha256(b"key\x00" + each.encode()).digest()


def pairs(metadata: Mapping[str, Json]) -> list[str]:
    """Each scalar with its key as one text. Texts are equal where JSON values are: 1 and 1.0, but not 1 and true."""
    return [pair(key, each) for key, each in metadata.items() if not isinstance(each, list | dict)]


def pair(key: str, scalar: Json) -> str:
    if isinstance(scalar, float) and scalar.is_integer():
        scalar = int(scalar)
    return to_json([key, scalar])


def token_passages(passages: Passages | None) -> int | None:
    """How many passages get token vectors; None: the memory has none."""
    return None if passages is None or passages.tokens is None else min(len(passages.tokens), TOKEN_PASSAGES_MAX)


def token_columns(tokens: Tokens) -> tuple[str, str, str, str, str, int]:
    """Words, forms, labels and length as they are stored."""
    words, forms, length, *labels = tokens
    summary, tags, source = map(spaced, labels)
    return spaced(words), spaced(forms), summary, tags, source, length


def spaced(tokens: Sequence[str]) -> str:
    """Tokens with a space before and after each, so that ` a b ` is found in it where they are side by side."""
    return f" {' '.join(tokens)} " if tokens else ""


def tokens(row: Iterable[Any]) -> Tokens:
    """Tokens from a row of WORD_COLUMNS."""
    words, forms, length, *labels = row
    return Tokens(tuple(words.split()), tuple(forms.split()), length, *(tuple(label.split()) for label in labels))


def columns_of(keys: Iterable[Key]) -> tuple[list[str], list[int]]:
    """The spaces and the rows, to be joined as `unnest(%s::text[], %s::bigint[])`."""
    listed = list(keys)
    return [space for space, _ in listed], [row for _, row in listed]


def meta(db: Db, key: str) -> str | None:
    found: str | None = value(db, "SELECT value FROM meta WHERE key = %s", (key,))
    return found


def set_meta(db: Db, key: str, text: str) -> None:
    run(db, "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, text))
