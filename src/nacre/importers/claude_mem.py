"""The database of claude-mem: what it observed, its summaries of sessions, what the user asked, and standing rules.

Its tables are known from its public code. Columns that an older version lacks are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from nacre.analysis.turns import said, said_to_agent
from nacre.importers.conversations import fitting, key, moment, plain, word
from nacre.importers.importer import Importer, Refused, Source
from nacre.importers.sqlite_files import SQLITE_ERRORS, SqliteFile, has_table, opened
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_SOURCE = "claude-mem"
_AGENT = ("memory_session_id", "sdk_session_id")  # the session of claude-mem's own agent, as it is called now and was
_CLIENT = ("content_session_id", "claude_session_id")  # the session of the client that it watches
_COMMON = ("id", "project", "created_at", "created_at_epoch")
_FILES = ("files_read", "files_modified", "files_edited")
_SAID_IN_SUMMARIES = {
    "request": "Request",
    "investigated": "Investigated",
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
_TABLES: Mapping[str, tuple[str, ...]] = {
    "observations": (*_COMMON, *_AGENT, *_FILES, "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
    "session_summaries": (*_COMMON, *_AGENT, *_FILES, *_SAID_IN_SUMMARIES),
    "user_prompts": (*_COMMON, *_CLIENT, "prompt_number", "prompt_text"),
    "directives": (*_COMMON, "content", "status"),
}

Sessions: TypeAlias = Callable[[Mapping[str, Any]], tuple[str, str]]


def recognises(path: Path, head: bytes) -> bool:
    return any(has_table(path, head, table, *_COMMON) for table in ("observations", "session_summaries"))


def read(source: Source) -> Iterator[NewMemory | Refused]:
    try:
        with opened(source.path) as file:
            session = _session_of(file)
            for table, columns in _TABLES.items():
                for row in file.rows(table, columns):
                    if isinstance(row, Refused):
                        yield row
                        continue
                    memory = _READERS[table](row, session)
                    if memory is not None:
                        yield memory
    except SQLITE_ERRORS as problem:
        yield Refused("file", f"cannot be read as an SQLite file ({problem})")


def _session_of(file: SqliteFile) -> Sessions:
    """For a row: the session of claude-mem's own agent, and the one of the client that it watched."""

    @lru_cache(maxsize=100)
    def client(agent: str) -> str:
        pairs = zip(_CLIENT, _AGENT, strict=True)
        found = (word(file.look_up("sdk_sessions", wanted, by, agent)) for wanted, by in pairs)
        return next(filter(None, found), agent)

    def of(row: Mapping[str, Any]) -> tuple[str, str]:
        agent = next(filter(None, (word(row.get(name)) for name in _AGENT)), "")
        return agent, client(agent) if agent else ""

    return of


def _observation(row: Mapping[str, Any], sessions: Sessions) -> NewMemory | None:
    title = _line(row["title"])
    paragraphs = [said(word(row[name])) for name in ("subtitle", "narrative", "text")]
    facts = [f"- {each}" for each in map(_line, _listed(row["facts"])) if each]
    text = "\n".join(each for each in (title, *paragraphs, *facts) if each)
    return _kept(row, sessions, "observation", text, title, (row["type"], *_listed(row["concepts"])))


def _summary(row: Mapping[str, Any], sessions: Sessions) -> NewMemory | None:
    said_there = {label: said(word(row[name])) for name, label in _SAID_IN_SUMMARIES.items()}
    text = "\n".join(f"{label}: {each}" for label, each in said_there.items() if each)
    return _kept(row, sessions, "summary", text, _line(row["request"]), ())


def _kept(
    row: Mapping[str, Any], sessions: Sessions, kind: str, text: str, title: str, tags: tuple[object, ...]
) -> NewMemory | None:
    if not text:
        return None
    agent, client = sessions(row)
    metadata: dict[str, Json] = {name: files for name in _FILES if (files := plain(_listed(row[name])))}
    project = said(word(row["project"]))
    names = (fitting(_line(each), LIMITS.name_chars_max) for each in tags)
    return NewMemory(
        text=text,
        kind=kind,
        summary=title[: LIMITS.summary_chars_max] or None,
        tags=tuple(dict.fromkeys(name for name in names if name))[: LIMITS.tags_max],
        source=_SOURCE,
        session=fitting(client, LIMITS.name_chars_max) if client else None,
        created=_when(row),
        metadata={**metadata, "project": project} if project else metadata,
        key=key(_SOURCE, kind, agent, str(row["id"])),
    )


def _prompt(row: Mapping[str, Any], _: Sessions) -> NewMemory | None:
    text = said_to_agent(word(row["prompt_text"]))
    session = next(filter(None, (word(row[name]) for name in _CLIENT)), "")
    if not text or not session:
        return None
    number = row["prompt_number"]
    return NewMemory(
        text=text,
        kind="episode",
        source=_SOURCE,
        session=fitting(session, LIMITS.name_chars_max),
        position=number if isinstance(number, int) else None,
        created=_when(row),
        metadata={"role": "user"},
        key=key(_SOURCE, "prompt", session, str(row["id"])),
        extract=False,
    )


def _directive(row: Mapping[str, Any], _: Sessions) -> NewMemory | None:
    text, project = said(word(row["content"])), said(word(row["project"]))
    if not text or row["status"] != "active":
        return None
    return NewMemory(
        text=text,
        kind="instruction",
        source=_SOURCE,
        created=_when(row),
        metadata={"project": project} if project else {},
        key=key(_SOURCE, "directive", str(row["id"])),
    )


_READERS: Mapping[str, Callable[[Mapping[str, Any], Sessions], NewMemory | None]] = {
    "observations": _observation,
    "session_summaries": _summary,
    "user_prompts": _prompt,
    "directives": _directive,
}


def _when(row: Mapping[str, Any]) -> Any:
    return moment(row["created_at_epoch"]) or moment(row["created_at"])


def _line(value: object) -> str:
    return " ".join(said(word(value)).split())


def _listed(value: object) -> list[Any]:
    """What a column has as a JSON array, or as one text."""
    if not isinstance(value, str) or not value.strip():
        return []
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return [value]
    return found if isinstance(found, list) else []


def where(home: Path, _: Mapping[str, str]) -> Path:
    return home / ".claude-mem" / "claude-mem.db"


CLAUDE_MEM = Importer(
    "claude-mem", "the database of claude-mem: observations, summaries of sessions and prompts", recognises, read, where
)
