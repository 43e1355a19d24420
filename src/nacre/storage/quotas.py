"""Is a write within the quotas, and how many bytes count? The same on every store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from nacre.errors import QuotaExceeded
from nacre.types.facts import Fact
from nacre.types.memory import Entry, Json, Memory
from nacre.types.quotas import Quotas, Usage

WINDOW = timedelta(minutes=1)  # it begins with the first write of a session


def check_usage(quotas: Quotas, before: Mapping[str, Usage], after: Mapping[str, Usage]) -> None:
    """Raises QuotaExceeded for a space that holds more than before, and too much."""
    for space, now in after.items():
        was = before.get(space, Usage())
        named = (
            ("memories", quotas.memories_max, was.memories, now.memories),
            ("bytes", quotas.bytes_max, was.bytes, now.bytes),
        )
        for unit, most, held, holds in named:
            if most and holds > most and holds > held:
                raise QuotaExceeded(
                    f"quota_{unit}",
                    most,
                    held,
                    f"space {space!r} may hold {most:,} {unit} and has {held:,}; this write adds {holds - held:,}. "
                    f"Nothing was written. Purge memories (forgotten ones count until then), or raise quota_{unit}",
                )


def check_rate(quotas: Quotas, session: str, written: int, new: int, since: datetime, now: datetime) -> None:
    """Raises QuotaExceeded for a session that writes too much in a minute."""
    most = quotas.session_writes_max
    if written + new > most:
        wait = max(1, round((since + WINDOW - now).total_seconds()))
        hint = f"wait {wait} s" if new <= most else "write fewer at once"
        raise QuotaExceeded(
            "quota_session_writes",
            most,
            written,
            f"session {session!r} may write {most:,} memories a minute and has written {written:,}; this write adds "
            f"{new:,}. Nothing was written. {hint[0].upper()}{hint[1:]}, or raise quota_session_writes",
        )


def named_quotas(quotas: Quotas) -> dict[str, int]:
    """The quotas that are set, by the names of their settings."""
    named = {
        "quota_memories": quotas.memories_max,
        "quota_bytes": quotas.bytes_max,
        "quota_session_writes": quotas.session_writes_max,
    }
    return {name: most for name, most in named.items() if most}


def writes_by_session(entries: Iterable[Entry]) -> dict[tuple[str, str], int]:
    """How many of these memories each session of a space writes; those without session and origin are not counted."""
    counts: dict[tuple[str, str], int] = {}
    for entry in entries:
        session = entry.memory.session or entry.memory.origin
        if session is not None:
            key = entry.memory.space, session
            counts[key] = counts.get(key, 0) + 1
    return counts


def memory_bytes(memory: Memory) -> int:
    labels = (_json(list(memory.tags)) if memory.tags else "", _json(dict(memory.metadata)) if memory.metadata else "")
    return sum(len(each.encode()) for each in (memory.text, memory.summary or "", memory.source or "", *labels))


def fact_bytes(fact: Fact) -> int:
    """Extracted facts repeat the text, so they do not count."""
    if fact.origin != "given":
        return 0
    return sum(len(each.encode()) for each in (fact.subject, fact.predicate, fact.object, fact.quote or ""))


def replaced_bytes(before: Mapping[str, Json]) -> int:
    return len(_json(dict(before)).encode()) if before else 0


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
