"""Items of a LangGraph store: rows of its table as JSON, items as JSON, or the file of a SqliteStore.

The tables are known from LangGraph's public code. Each item becomes the memory that `nacre.integrations.langgraph`
would make of it, so that a store on the same file has it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.analysis.private import without_private
from nacre.importers.conversations import beginning, moment, plain
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_values import json_values
from nacre.importers.sqlite_files import SQLITE_START, has_table, rows_of
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_ROOT = "langgraph"  # the first part of every key, and the name in metadata of what is not part of a value
_ESCAPED = re.compile("[%/\x00-\x1f\x7f\ud800-\udfff]")
_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes")
_PARTS = (
    re.compile(r'"(?:prefix"\s*:\s*"|namespace"\s*:\s*\[)'),
    re.compile(r'"key"\s*:\s*"'),
    re.compile(r'"value"\s*:'),
)


def recognises(path: Path, head: bytes) -> bool:
    if has_table(path, head, "store", "prefix", "key", "value"):
        return True
    text = beginning(head)
    return text.lstrip()[:1] in ("[", "{") and all(part.search(text) for part in _PARTS)


def read(source: Source) -> Iterator[NewMemory | Refused]:
    with source.open() as file:
        is_table = file.peek(len(SQLITE_START)).startswith(SQLITE_START)
    now = datetime.now(UTC)
    if is_table:
        for number, row in enumerate(rows_of(source.path, "store", _COLUMNS), 1):
            yield from [row] if isinstance(row, Refused) else _item(f"store, row {number:,}", row, now)
        return
    for record in json_values(source, "items", "store"):
        if isinstance(record, Refused):
            yield record
        elif isinstance(record.value, dict):
            yield from _item(record.where, record.value, now)
        else:
            yield Refused(record.where, "is not an object")


def _item(where: str, row: Mapping[str, Any], now: datetime) -> Iterator[NewMemory | Refused]:
    names, value = _namespace(row), _value(row.get("value"))
    name = row.get("key")
    if names is None or not isinstance(name, str) or value is None:
        yield Refused(
            where, "is not an item: it needs a `prefix` or `namespace`, a text as `key` and an object as `value`"
        )
        return
    expires = moment(row.get("expires_at"))
    if expires is not None and expires <= now:
        return  # the store does not find it any more, either
    created, updated = moment(row.get("created_at")), moment(row.get("updated_at"))
    own: dict[str, Json] = {}
    if expires is not None and isinstance(row.get("ttl_minutes"), int | float):
        own["ttl"] = plain(row["ttl_minutes"])
    if updated is not None:
        own["updated"] = updated.isoformat()
    full = _joined(_ROOT, *names, name)
    if len(full) > LIMITS.key_chars_max:
        own["key"] = json.dumps(name)
        full = f"{_joined(_ROOT, *names, '')}%hash-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"
    if len(full) > LIMITS.key_chars_max:
        yield Refused(where, f"has a namespace of {len(_joined(*names)):,} characters, which is too long for a key")
        return
    try:
        lines = "\n".join(_readable(value)).encode("utf-8", "replace").decode().replace("\0", " ")
        text, metadata = _kept(value, lines, own)
    except RecursionError:
        yield Refused(where, "has a value that is nested too deep")
        return
    yield NewMemory(
        text=text if text.strip() else full.removeprefix(f"{_ROOT}/"),
        namespace=_joined(*names)[: LIMITS.name_chars_max].strip() or "general",
        metadata=metadata,
        created=created,
        expires=expires,
        key=full,
    )


def _namespace(row: Mapping[str, Any]) -> list[str] | None:
    """The names of the namespace. The table joins them by dots, which no name may have."""
    names = row.get("namespace", row.get("prefix"))
    if isinstance(names, str):
        return names.split(".")
    return names if isinstance(names, list) and names and all(isinstance(each, str) for each in names) else None


def _value(value: object) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _kept(value: dict[str, Any], text: str, own: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """The text and the metadata of a memory, from which the store reads the value exactly."""
    exact = plain(value)
    if exact == value and isinstance(exact, dict) and _ROOT not in value:
        metadata = {**exact, _ROOT: own} if own else exact
        if _fits(metadata):
            return text, metadata
    written = json.dumps(_public(value)).replace("<", "\\u003c")  # no tag, of which a part would be taken out
    metadata = {_ROOT: {**own, "json": written}}
    return (text, metadata) if _fits(metadata) else (written, {_ROOT: {**own, "json": True}})


def _public(value: object) -> object:
    """A value without the private parts of its texts."""
    if isinstance(value, dict):
        return {without_private(name): _public(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_public(each) for each in value]
    return without_private(value) if isinstance(value, str) else value


def _fits(metadata: Mapping[str, Json]) -> bool:
    return len(json.dumps(metadata, ensure_ascii=False).encode()) <= LIMITS.metadata_bytes_max


def _readable(value: object, name: str = "") -> list[str]:
    """A value as lines, each with the name of what it is."""
    if isinstance(value, dict):
        return [line for inner, each in value.items() for line in _readable(each, inner)]
    if isinstance(value, list):
        return [line for each in value for line in _readable(each, name)]
    said = value if isinstance(value, str) else json.dumps(value)
    return [f"{name}: {said}" if name else said]


def _joined(*names: str) -> str:
    """A key made of names, as the store makes it: what separates names is escaped in them."""
    return "/".join(_ESCAPED.sub(_escape, name) for name in names)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code:02X}" if code < 0x100 else f"%u{code:04X}"


LANGGRAPH = Importer("langgraph", "items of a LangGraph store, with their namespaces and keys", recognises, read)
