"""What becomes of a stored memory when its key or its text is remembered again? Values in, values out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from nacre.analysis.language import language_of
from nacre.types.memory import DEFAULT_IMPORTANCE, DEFAULT_KIND, DEFAULT_NAMESPACE, Json, Memory
from nacre.validation import Limits

T = TypeVar("T")


def replaced_by_key(stored: Memory, given: Memory) -> Memory:
    """The memory of a key becomes what is given now. It stays the same memory, created when it was."""
    return replace(given, id=stored.id, created=stored.created, updated=stored.changed_at(given.updated))


def merged_with_text(stored: Memory, given: Memory, limits: Limits) -> tuple[Memory, tuple[str, ...]]:
    """A known text gains what is new of it, and what would be too much is left out with a note.

    Tags and metadata are joined, where the later value counts. A later session takes it over. What is missing or has
    its default is filled in, and it expires when the later of both does.
    """
    notes: list[str] = []
    tags = tuple(dict.fromkeys((*stored.tags, *given.tags)))
    if len(tags) > limits.tags_max:
        notes.append(f"tags: new ones were left out, because {limits.tags_max} are allowed")
        tags = stored.tags
    metadata: Mapping[str, Json] = {**stored.metadata, **given.metadata}
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > limits.metadata_bytes_max:
        notes.append(f"metadata: new values were left out, because {limits.metadata_bytes_max:,} bytes are allowed")
        metadata = stored.metadata
    later = given.session is not None and (stored.session is None or given.created > stored.created)
    told = given if later else stored
    merged = replace(
        stored,
        tags=tags,
        metadata=metadata,
        session=told.session,
        position=told.position,
        kind=_unless(stored.kind, DEFAULT_KIND, given.kind),
        namespace=_unless(stored.namespace, DEFAULT_NAMESPACE, given.namespace),
        importance=_unless(stored.importance, DEFAULT_IMPORTANCE, given.importance),
        summary=_unless(stored.summary, None, given.summary),
        source=_unless(stored.source, None, given.source),
        happened=_unless(stored.happened, None, given.happened),
        pinned=stored.pinned or given.pinned,
        expires=_later(stored.expires, given.expires),
        language=_unless(stored.language, language_of(stored.text), given.language),
        updated=stored.changed_at(given.updated),
    )
    return merged, tuple(notes)


def _unless(stored: T, default: T, given: T) -> T:
    return given if stored == default else stored


def _later(stored: datetime | None, given: datetime | None) -> datetime | None:
    """The later time; None is never."""
    return None if stored is None or given is None else max(stored, given)
