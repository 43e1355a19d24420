"""A store in PostgreSQL that may be one of several nodes: what the others and the router ask of it besides a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime

from nacre.storage.postgres import counters, lifecycle, placements, purging, recall_log, receipt_parts, rows
from nacre.storage.postgres.connection import Connections, run, value
from nacre.storage.postgres.purging import Quoted
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.store import PostgresStore
from nacre.types.nodes import Member, Placed
from nacre.types.recall_log import Mark, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.search import Filter
from nacre.types.transfer import ExportRequest, Record


class PostgresNode(PostgresStore):
    """Implements `nacre.storage.nodes.node.Node`. What is about all memories leaves out spaces that are not here."""

    _store_id: str | None = None

    @property
    def connections(self) -> Connections:
        """For what copies a space from one node to another."""
        return self._connections

    def store_id(self) -> str:
        if self._store_id is None:
            self._store_id = self._read(rows.meta, "store_id") or ""
        return self._store_id

    def answers(self) -> None:
        """Raise StoreUnavailable if the server is away."""
        self._read(value, "SELECT 1")

    # ---- the nodes, and what they keep together

    def members(self) -> tuple[Member, ...]:
        return self._read(placements.members)

    def is_empty(self) -> bool:
        return self._read(placements.is_empty)

    def join(self, every: Sequence[Member], above: int) -> None:
        self._connections.write_alone(placements.join, every, above)

    def last_number(self) -> int:
        return self._read(placements.last_number)

    def adopt_models(self, model: str | None, token_model: str | None) -> tuple[str | None, str | None]:
        return self._write(_adopt_models, model, token_model)

    def follow_model(self, model: str) -> None:
        if self.model() != model:
            self._connections.write_alone(lifecycle.switch_model, model, logged=False)

    def last_change(self) -> int:
        return self._read(counters.last, "events")

    def advance_changes(self, to: int) -> None:
        self._write(counters.advance, to)

    def advance_rows(self, to: int) -> None:
        self._write(placements.advance_sequence, "memory_rows", to)

    # ---- which spaces are here

    def placements(self, spaces: Sequence[str]) -> dict[str, Placed]:
        return self._read(placements.placements, spaces)

    def in_state(self, state: str) -> tuple[str, ...]:
        return self._read(placements.in_state, state)

    def check_here(self, spaces: Sequence[str]) -> None:
        self._read(placements.check_here, spaces, self._location)

    def settle(self, spaces: Sequence[str]) -> None:
        self._write(placements.settle, spaces)

    def promote(self, space: str, source: str) -> None:
        self._write(placements.promote, space, source)

    def directory(self, spaces: Sequence[str]) -> dict[str, str]:
        return self._read(placements.directory, spaces)

    def assign(self, chosen: Sequence[tuple[str, str]]) -> dict[str, str]:
        return self._write(placements.assign, chosen)

    def reassign(self, space: str, store_id: str) -> None:
        self._write(placements.reassign, space, store_id)

    def spaces_of(self, ids: Sequence[str]) -> dict[str, str]:
        return self._read(placements.spaces_of, ids)

    def spaces_of_facts(self, ids: Sequence[str]) -> dict[str, str]:
        return self._read(placements.spaces_of_facts, ids)

    # ---- snapshots that several threads take turns with

    def snapshot(self) -> AbstractContextManager[object]:
        return self._connections.snapshot()

    def within(self, snapshot: object) -> AbstractContextManager[None]:
        """Let the calling thread read in a snapshot that another one has opened."""
        assert isinstance(snapshot, Db)
        return self._connections.view(lambda: nullcontext(snapshot))

    def holding(self, spaces: Sequence[str]) -> AbstractContextManager[None]:
        return self._connections.writing_to(spaces)

    def confirming(self, confirm: Callable[[], None]) -> AbstractContextManager[None]:
        return self._connections.confirming(confirm)

    # ---- what is about all memories

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        if request.where is None and self._read(placements.any_hidden):
            request = replace(request, where=Filter(spaces=self.in_state("here")))
        return super().dump(request)

    # ---- the recall log: receipts of other nodes' spaces are here as far as they delivered memories of this one

    def record_parts(
        self, receipts: Sequence[Receipt], parts: Collection[str], retention: Retention, now: datetime
    ) -> None:
        self._connections.write_soon(receipt_parts.record, receipts, retention, now, parts)

    def check_mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None,
        origin: str | None,
    ) -> None:
        self._read(receipt_parts.check_mark, receipt_id, Mark(tuple(memory_ids), outcome, at, session, origin))

    def receipts_named(self, ids: Sequence[str], which: ReceiptFilter, unwritten: Unwritten) -> list[Receipt]:
        return self._read(recall_log.listed, which, unwritten, ids)

    def receipts_before(
        self, place: tuple[datetime, str] | None, which: ReceiptFilter, unwritten: Unwritten
    ) -> list[Receipt]:
        return self._read(recall_log.listed, which, unwritten, None, place)

    def receipt_place(self, receipt_id: str) -> tuple[str, datetime] | None:
        return self._read(receipt_parts.place_of, receipt_id)

    def delivered_at(
        self, sessions: Sequence[tuple[str, str]], limit: int, unwritten: Unwritten, after: int
    ) -> Mapping[tuple[str, str], Sequence[tuple[str, datetime]]]:
        return self._read(recall_log.delivered_at, sessions, limit, unwritten, after)

    def delivered_within_at(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten
    ) -> Mapping[str, tuple[bool, datetime]]:
        return self._read(recall_log.delivered_within_at, spaces, session, period, limit, unwritten)

    def clear_parts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> None:
        if self._connections.write(_clear_parts, spaces, session, before):
            purging.vacuum(self._connections)

    # ---- purges

    def quoted(self, ids: Sequence[str]) -> Quoted:
        return self._read(purging.quoted, ids)

    def words_of_others(self, words: Set[str], doubtful: Set[str], ids: Sequence[str]) -> set[str]:
        return self._read(purging.words_of_others, words, doubtful, ids)

    def purge_knowing(self, ids: Sequence[str], at: datetime, known: Set[str]) -> str | None:
        self._write(purging.purge, ids, at, known)
        return purging.vacuum(self._connections)

    def purge_elsewhere(
        self, receipts: Sequence[str], texts: Sequence[str], gone: Set[str], at: datetime, *, answers: bool
    ) -> None:
        self._write(purging.purge_elsewhere, receipts, texts, gone, at, answers=answers)


def _adopt_models(db: Db, model: str | None, token_model: str | None) -> tuple[str | None, str | None]:
    for name, given in (("model", model), ("token_model", token_model)):
        if given is not None:
            run(db, "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", (name, given))
            if rows.meta(db, name) != given:
                break
    return rows.meta(db, "model"), rows.meta(db, "token_model")


def _clear_parts(db: Db, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
    return recall_log.clear(db, spaces, session, before, parts=True)
