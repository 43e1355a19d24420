"""The counts of a whole store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import apsw

from nacre.storage.quotas import named_quotas
from nacre.storage.sqlite import encryption, further_vectors, rows, schema, space_usage, token_vectors
from nacre.types.quotas import Quotas
from nacre.types.stats import Stats

# What an import tells the index alone.
_FOR_THE_INDEX = "SELECT count(*) FROM events WHERE memory_id = '' AND row > 0"


def store_stats(db: apsw.Connection, path: Path, quotas: Quotas) -> Stats:
    """Of the store in this file, inside a transaction that the caller holds."""
    wal = path.with_name(path.name + "-wal")

    def number(sql: str) -> int:
        return int(db.execute(sql).get)

    def by(column: str) -> dict[str, int]:
        sql = f"SELECT {column}, count(*) FROM memories WHERE deleted_us IS NULL GROUP BY 1 ORDER BY 1"
        return {str(name): int(memories) for name, memories in rows.fetch(db, sql)}

    held = space_usage.of_spaces(db)
    return Stats(
        memories=number("SELECT count(*) FROM memories WHERE deleted_us IS NULL"),
        forgotten=number("SELECT count(*) FROM memories WHERE deleted_us IS NOT NULL"),
        passages=number("SELECT count(*) FROM passages"),
        pending=number("SELECT count(*) FROM memories WHERE embedded = 0 AND deleted_us IS NULL"),
        pending_tokens=number(f"SELECT count(*) FROM memories AS m WHERE {token_vectors.PENDING}"),
        token_bytes=number("SELECT ifnull(sum(length(vectors)), 0) FROM token_vectors"),
        events=number(f"SELECT count(*) - ({_FOR_THE_INDEX}) FROM events"),
        spaces=by("space"),
        kinds=by("kind"),
        namespaces=by("namespace"),
        model=rows.meta(db, "model"),
        token_model=rows.meta(db, "token_model"),
        further_models={each: further_vectors.pending_count(db, each) for each in further_vectors.models(db)},
        stored_memories={space: each.memories for space, each in held.items()},
        stored_bytes={space: each.bytes for space, each in held.items()},
        quotas=named_quotas(quotas),
        schema_version=schema.VERSION,
        size_bytes=_size((path, wal)),
        index_bytes=_size(encryption.cache_folder(path).glob("*")),
    )


def _size(files: Iterable[Path]) -> int:
    size = 0
    for each in files:
        with suppress(FileNotFoundError):  # a cache may be replaced, and the log be folded in, at any time
            size += each.stat().st_size
    return size
