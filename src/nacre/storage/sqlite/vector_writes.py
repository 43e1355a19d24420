"""Writes vectors of a store in a file: those of its own model, and of further ones. Each method is a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from nacre.storage.sqlite import further_vectors, rows, token_vectors
from nacre.storage.sqlite.connection import Connections
from nacre.storage.sqlite.writes import (
    adopt_model,
    bump_revision,
    log_events,
    missing_vectors,
    write_passages,
)
from nacre.types.memory import Passages

if TYPE_CHECKING:  # numpy is imported with the first vector, not with the store
    from nacre.storage.sqlite.index.space_index import Index


class VectorWrites:
    """Implements the methods of `nacre.interfaces.Store` that write vectors alone, for the store that has this file."""

    _path: Path
    _connections: Connections
    _writing: Callable[[], AbstractContextManager[apsw.Connection]]
    _give_up_index: Callable[[Exception, Sequence[str]], None]

    @property
    def _ready_index(self) -> Index:
        raise NotImplementedError

    def embed(
        self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str, token_model: str | None = None
    ) -> int:
        with self._writing() as db:
            number = further_vectors.number_of(db, model)
            if number is not None:
                return self._embed_further(db, number, passages, texts)
            adopt_model(db, model, self._path)
            keeps = token_vectors.adopt_model(db, token_model, passages.values())
            found = missing_vectors(db, texts)
            written = []
            added = 0
            for memory_id, (row, space, spans) in found.items():
                each = passages[memory_id]
                has_tokens = keeps and each.tokens is not None
                if spans is None or (has_tokens and spans != each.spans):  # texts were cut in another way before
                    db.execute("DELETE FROM passages WHERE row = ?", (row,))
                    write_passages(db, [(row, each)])
                    db.execute("UPDATE memories SET embedded = 1 WHERE row = ?", (row,))
                    written.append((row, space, memory_id, None))
                elif has_tokens:
                    added += 1
                if has_tokens:
                    token_vectors.rewrite(db, row, each)
            log_events(db, "embedded", written)
            if added:
                bump_revision(db)
        return len(written) + added

    def _embed_further(
        self, db: apsw.Connection, number: int, passages: Mapping[str, Passages], texts: Mapping[str, str]
    ) -> int:
        done = further_vectors.embed(db, number, passages, texts)
        sql = "SELECT row, space, id, NULL FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        log_events(
            db, "embedded", rows.fetch(db, sql, (rows.to_json([each for each in done if passages[each].spans]),))
        )
        if any(not passages[each].spans for each in done):
            bump_revision(db)
        return len(done)

    def add_model(self, model: str) -> None:
        with self._writing() as db:
            if further_vectors.add(db, model):
                bump_revision(db)

    def drop_model(self, model: str) -> None:
        with self._writing() as db:
            dropped = further_vectors.drop(db, model)
            if dropped:
                bump_revision(db)
        if dropped:
            with self._connections.reading() as db:
                self._ready_index.drop([space for (space,) in db.execute("SELECT DISTINCT space FROM memories")])

    def switch_model(self, model: str) -> None:
        from nacre.storage.sqlite.index.space_index import MODEL_SWITCHED

        with self._writing() as db:
            if rows.meta(db, "model") != model:
                db.execute("DELETE FROM passages")
                db.execute("UPDATE memories SET embedded = 0 WHERE embedded = 1")
                rows.set_meta(db, "model", model)
                token_vectors.drop_all(db, None)
                log_events(db, MODEL_SWITCHED, [(0, "", "", None)])

    def switch_token_model(self, model: str) -> None:
        with self._writing() as db:
            if rows.meta(db, "token_model") != model:
                token_vectors.drop_all(db, model)
                bump_revision(db)
