"""Memories of mem0: the JSON that its `get_all` returns, or the file history.db that it keeps beside its vectors.

Both are known from its documents and its public code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nacre.analysis.turns import said
from nacre.importers.conversations import beginning, fitting, items, key, mapping, moment, plain, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.json_records import json_array
from nacre.importers.json_values import json_values
from nacre.importers.sqlite_files import SQLITE_START, has_table, rows_of
from nacre.types.facts import NewFact
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_MEMORY = re.compile(r'"memory"\s*:\s*"')
_OTHERS = re.compile(r'"(?:hash|user_id|agent_id|run_id|app_id|created_at|score)"\s*:')
_LISTS = ("results", "memories")
_OWNERS = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role")
_HISTORY = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id", "role")


def recognises(path: Path, head: bytes) -> bool:
    if has_table(path, head, "history", "memory_id", "old_memory", "new_memory", "event"):
        return True
    text = beginning(head)
    return text.lstrip()[:1] in ("[", "{") and bool(_MEMORY.search(text)) and bool(_OTHERS.search(text))


def read(source: Source) -> Iterator[NewMemory | Refused]:
    with source.open() as file:
        is_history = file.peek(len(SQLITE_START)).startswith(SQLITE_START)
    if is_history:
        yield from _history(source)
        return
    now = datetime.now(UTC)
    for record in json_values(source, *_LISTS):
        if isinstance(record, Refused):
            yield record
        else:
            yield from _memory(record.where, mapping(record.value), now)
    yield from _relations(source)


def _memory(where: str, record: Mapping[str, Any], now: datetime) -> Iterator[NewMemory | Refused]:
    text, name = said(word(record.get("memory"))), word(record.get("id"))
    if not text or not name:
        yield Refused(where, "is not a memory: it needs texts as `memory` and as `id`")
        return
    expires = moment(record.get("expiration_date"))
    if expires is not None and expires <= now:
        return  # mem0 does not find it any more, either
    metadata = plain(record.get("metadata"))
    owners = {owner: plain(record[owner]) for owner in _OWNERS if record.get(owner) is not None}
    tags = dict.fromkeys(
        fitting(word(each), LIMITS.name_chars_max) for each in items(record.get("categories")) if word(each)
    )
    yield NewMemory(
        text=text,
        tags=tuple(tags)[: LIMITS.tags_max],
        source="mem0",
        metadata={**(metadata if isinstance(metadata, dict) else {}), **owners},
        created=moment(record.get("created_at")),
        expires=expires,
        key=key("mem0", name),
    )


def _relations(source: Source) -> Iterator[NewMemory | Refused]:
    """The graph of a file that has one, beside its memories."""
    for record in json_array(source, "relations") if _has_relations(source) else ():
        if isinstance(record, Refused):
            yield record
            continue
        relation = mapping(record.value)
        subject = _name(relation.get("source"))
        predicate = _name(relation.get("relationship") or relation.get("relation"))
        target = _name(relation.get("target") or relation.get("destination"))
        if not (subject and predicate and target):
            yield Refused(record.where, "is not a relation: it needs texts as `source`, `relationship` and `target`")
            continue
        text = f"{subject} {predicate} {target}"
        fact = NewFact(
            subject=subject, predicate=predicate, object=target, type="relationship", relation=True, quote=text
        )
        yield NewMemory(
            text=text,
            kind="fact",
            source="mem0",
            facts=(fact,),
            entities=(subject, target),
            extract=False,
            key=key("mem0", "relation", subject, predicate, target),
        )


def _has_relations(source: Source) -> bool:
    """Whether an object has a member with the relations, which stands at its end."""
    with source.open() as file:
        if not beginning(file.peek(100)[:100]).lstrip().startswith("{"):
            return False
        file.seek(0)
        rest = b""
        while piece := file.read(1 << 20):
            if b'"relations"' in rest + piece:
                return True
            rest = piece[-20:]
    return False


def _name(value: object) -> str:
    """A name of mem0's graph, which writes `lives_in` for "lives in"."""
    return fitting(" ".join(said(word(value)).replace("_", " ").split()), LIMITS.name_chars_max)


def _history(source: Source) -> Iterator[NewMemory | Refused]:
    """Each memory as the last of its changes left it."""
    latest = "rowid IN (SELECT max(rowid) FROM history GROUP BY memory_id)"
    for number, row in enumerate(rows_of(source.path, "history", _HISTORY, latest), 1):
        if isinstance(row, Refused):
            yield row
        elif row["event"] != "DELETE" and not row["is_deleted"]:
            text, name = said(word(row["new_memory"])), word(row["memory_id"])
            if not text or not name:
                yield Refused(f"history, memory {number:,}", "has no text or no id")
                continue
            who: dict[str, Json] = {
                owner: plain(row[owner]) for owner in ("actor_id", "role") if row[owner] is not None
            }
            yield NewMemory(
                text=text,
                source="mem0",
                metadata=who,
                created=moment(row["created_at"]) or moment(row["updated_at"]),
                key=key("mem0", name),
            )


MEM0 = Importer("mem0", "memories of mem0, with their owners and relations", recognises, read)
