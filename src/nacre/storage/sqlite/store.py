"""The store in one SQLite file.

Each writing method is one transaction, which writes rows, tokens, FTS, vectors and events together. The methods here
open the transaction and call the modules that own the tables.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from nacre.analysis import tokenizer
from nacre.errors import StoreBusy, StoreError, StoreUnavailable
from nacre.interfaces import StoreCopying, TimePage
from nacre.query.ast import Condition, ParsedQuery, Term
from nacre.runtime import forks, native_packages
from nacre.storage.sqlite import (
    access_tokens,
    change_log,
    embedding_lock,
    entities,
    facts,
    further_vectors,
    kept_answers,
    lifecycle,
    near_duplicates,
    recall_log,
    rows,
    scrub,
    space_usage,
    token_vectors,
    updates,
)
from nacre.storage.sqlite.connection import BUSY_TIMEOUT_MS, Connections, is_database_error, transaction
from nacre.storage.sqlite.facets import facet_counts
from nacre.storage.sqlite.facts import write_entries
from nacre.storage.sqlite.filters import (
    EVERYTHING,
    FORGOTTEN,
    LIVE,
    Clause,
    condition_clause,
    filter_clause,
    search_clause,
)
from nacre.storage.sqlite.keyword_search import lexical
from nacre.storage.sqlite.neighbours import neighbours
from nacre.storage.sqlite.retokenising import retokenise
from nacre.storage.sqlite.signals import signals
from nacre.storage.sqlite.store_stats import store_stats
from nacre.storage.sqlite.vector_writes import VectorWrites
from nacre.storage.sqlite.vocabulary import frequencies, spellings, update_counts
from nacre.storage.sqlite.writes import (
    adopt_model,
    bump_revision,
    identified,
    insert,
    live_rows,
    log_events,
    model_mismatch,
    write_passages,
    write_tokens,
)
from nacre.types.access_tokens import AccessToken
from nacre.types.backups import BackupRequest, BackupResult
from nacre.types.changes import ChangePage
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.health import Finding
from nacre.types.hnsw import USUAL_HNSW, Hnsw
from nacre.types.kept_answers import Claim, KeptAnswer
from nacre.types.key import Key
from nacre.types.memory import (
    Entry,
    Event,
    Identity,
    Memory,
    Progress,
    Remembered,
    Replacement,
    Update,
)
from nacre.types.quotas import NO_QUOTAS, Quotas, Usage
from nacre.types.recall_log import NOTHING_UNWRITTEN, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.transfer import ExportRequest, LoadCounts, MemoryRecord, Record
from nacre.types.views import Neighbours

if TYPE_CHECKING:  # numpy is imported with the first vector, not with the store
    from nacre.storage.sqlite.index.space_index import Index
    from nacre.types.memory import FloatMatrix, FloatVector

_log = logging.getLogger("nacre")
PENDING = Clause("m.embedded = 0 AND m.deleted_us IS NULL", ())
UNINDEXED_MEMORIES_MAX = 65_536  # written by this process; beyond, they are indexed in the background
LEFT_MEMORIES_MAX = 4_096  # left unindexed at close: the next process indexes these in a tenth of a second
SEARCHES_WITHOUT_INDEX = 3  # keyword searches of a smaller store; after that many, the import of numpy pays off
INDEXED_MEMORIES_MIN = 50_000  # below, FTS5 answers a keyword search about as fast as numpy is imported


class SqliteStore(VectorWrites):
    """Implements `nacre.interfaces.Store`. Safe to share between threads; processes may share the file."""

    def __init__(
        self,
        path: Path,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        create: bool = True,
        hnsw: Hnsw = USUAL_HNSW,
        key: Key | None = None,
        quotas: Quotas = NO_QUOTAS,
        page_checksums: bool = True,
    ) -> None:
        self._path = path
        self._quotas = quotas
        self._key = key
        self._cached = key is None  # index files would reveal words and vectors
        self._hnsw = hnsw
        self._index: Index | None = None
        self._index_generation = 0  # of the file that it was made from
        self._index_lock = threading.Lock()
        self._keyword_searches = 0
        self._unindexed: Counter[str] = Counter()  # by space: memories that this process wrote and has not indexed
        self._connections = Connections(path, busy_timeout_ms, create, self._prepare, key, page_checksums)
        self._scrub_wait_s = min(scrub.WAIT_S, busy_timeout_ms / 1000)
        self.claimed = embedding_lock.claims(path, self.pending, self.pending_tokens).claimed
        forks.renew_in_child(self)

    @property
    def read_only(self) -> bool:
        """Whether the file, or the folder that it is in, cannot be written."""
        return self._connections.read_only

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None, token_model: str | None = None) -> list[Remembered]:
        self._index_in_background(entries)
        now = max(entry.memory.updated for entry in entries)
        with self._writing() as db:
            lifecycle.expire(db, now)
            if any(entry.passages is not None for entry in entries):
                adopt_model(db, model, self._path)
            if not token_vectors.adopt_model(db, token_model, (entry.passages for entry in entries)):
                entries = token_vectors.left_out(entries)
            held = self._held(db, (entry.memory.space for entry in entries))
            written = insert(db, entries)
            tokenised = [(row, entry.memory.space, entry.tokens) for row, entry in written]
            write_tokens(db, tokenised)
            update_counts(db, tokenised, 1)
            write_passages(db, ((row, entry.passages) for row, entry in written))
            token_vectors.write(db, ((row, entry.passages) for row, entry in written))
            further_vectors.write(db, ((row, entry.further) for row, entry in written))
            write_entries(db, written)
            updates.link(db, [update for _, entry in written for update in entry.updates])
            new = [entry.memory.id for _, entry in written]
            log_events(db, "remembered", [(row, entry.memory.space, entry.memory.id, None) for row, entry in written])
            space_usage.check(db, self._quotas, held)
            if self._quotas.session_writes_max:
                space_usage.count_writes(db, self._quotas, (entry for _, entry in written))
            if len(new) == len(entries):
                return [Remembered(memory_id, duplicate=False) for memory_id in new]
            added = set(new)
            existing = identified(db, (entry.identity for entry in entries), now)
            return [
                Remembered(entry.memory.id, duplicate=False)
                if entry.memory.id in added
                else Remembered(existing[entry.identity], duplicate=True)
                for entry in entries
            ]

    def replace(self, changes: Sequence[Replacement], model: str | None, token_model: str | None = None) -> None:
        with self._writing() as db:
            lifecycle.expire(db, max(each.entry.memory.updated for each in changes))
            held = self._held(db, (each.entry.memory.space for each in changes))
            for each in changes:
                lifecycle.replace(db, each, model, token_model, self._path)
            space_usage.check(db, self._quotas, held)

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        with self._writing() as db:
            lifecycle.forget(db, ids, at)

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        with self._writing() as db:
            lifecycle.restore(db, ids, at)

    def expire(self, now: datetime, limit: int) -> bool:
        try:
            with self._writing(durable=False, wait=False) as db:
                lifecycle.expire(db, now, limit)
                expires = rows.maybe_moment(db.execute(lifecycle.NEXT_EXPIRY).get)
        except (StoreBusy, StoreUnavailable):  # others write, or nobody may
            return False
        return expires is None or expires > now

    def purge(self, ids: Sequence[str], at: datetime) -> str | None:
        with self._connections.writing() as db:
            scrub.request(db)
            found = lifecycle.purge(db, ids, at)
            log_events(db, "purged", ((row, memory.space, memory.id, None) for row, memory in found), at)
        return self._scrub(self._scrub_wait_s)

    # ---- reading

    def model(self) -> str | None:
        with self._connections.reading() as db:
            return rows.meta(db, "model")

    def further_models(self) -> tuple[str, ...]:
        with self._connections.reading() as db:
            return further_vectors.models(db)

    def token_model(self) -> str | None:
        with self._connections.reading() as db:
            return rows.meta(db, "token_model")

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        sql = f"SELECT {rows.READ_COLUMNS} FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))"
        with self._connections.reading() as db:
            found = map(rows.memory, db.execute(sql, (json.dumps(list(ids)),)))
            return {memory.id: memory for memory in found}

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        with self._connections.reading() as db:
            return signals(db, ids)

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        with self._connections.reading() as db:
            return neighbours(db, memory_ids, before, after, turns)

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        clause = LIVE & condition_clause(condition, few=True)
        # CROSS JOIN makes SQLite look up the ids, rather than scan the whole space.
        sql = f"SELECT m.id FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value WHERE {clause.sql}"
        with self._connections.reading() as db:
            return {memory_id for (memory_id,) in rows.fetch(db, sql, (json.dumps(list(ids)), *clause.parameters))}

    def view(self, *, latest: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        return self._connections.view()

    def sequence(self) -> tuple[int, int, int]:
        sql = "SELECT ifnull(max(seq), 0), ifnull((SELECT value FROM meta WHERE key = 'revision'), 0) FROM events"
        with self._connections.reading() as db:
            events, revision = rows.fetch(db, sql)[0]
            return events, int(revision), self._connections.generation

    def next_expiry(self) -> datetime | None:
        with self._connections.reading() as db:
            return rows.maybe_moment(db.execute(lifecycle.NEXT_EXPIRY).get)

    def identified(self, identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
        with self._connections.reading() as db:
            return identified(db, identities, now)

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        with self._connections.reading() as db:
            try:
                return lexical(db, question, frequencies, where, recipe, limit, self._indexed)
            except Exception as error:
                self._give_up_index(error, where.spaces)
            return lexical(db, question, frequencies, where, recipe, limit, lambda _: None)

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        with self._connections.reading() as db:
            stored = rows.meta(db, "model")
            number = None if stored == model else further_vectors.number_of(db, model)
            if number is None and stored != model:
                if stored is None:
                    return []
                raise model_mismatch(stored, model, self._path)
            from nacre.storage.sqlite.vector_search import VectorQuery, semantic, semantic_by_rows

            query = VectorQuery(vector, number, limit, passages_weight)
            try:
                return semantic(db, self._ready_index, query, question, where)
            except Exception as error:
                self._give_up_index(error, where.spaces)
            return semantic_by_rows(db, query, question, where)

    def by_time(
        self, where: Filter, page: TimePage, *, must: Condition | None = None, forgotten: bool = False
    ) -> list[Memory]:
        clause = search_clause(where, must) & (FORGOTTEN if forgotten else LIVE)
        direction, beyond = ("ASC", ">") if page.oldest_first else ("DESC", "<")
        if page.after is not None:
            created, memory_id = page.after
            clause &= Clause(f"(m.created_us, m.id) {beyond} (?, ?)", (rows.microseconds(created), memory_id))
        sql = (
            f"SELECT {rows.READ_COLUMNS} FROM memories AS m WHERE {clause.sql} "
            f"ORDER BY m.created_us {direction}, m.id {direction} LIMIT ?"
        )
        with self._connections.reading() as db:
            return [rows.memory(row) for row in db.execute(sql, (*clause.parameters, page.limit))]

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        with self._connections.reading() as db:
            return facet_counts(db, question, where)

    def has_language(self, spaces: Sequence[str], languages: Sequence[str]) -> bool:
        with self._connections.reading() as db:
            return bool(
                db.execute(
                    further_vectors.IN_LANGUAGES, (rows.to_json(list(spaces)), rows.to_json(list(languages)))
                ).get
            )

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str] = ()) -> Frequencies:
        with self._connections.reading() as db:
            return frequencies(db, tokens, spaces, prefixes)

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        with self._connections.reading() as db:
            return spellings(db, word, spaces)

    def vectors(self, memory_id: str, model: str | None = None) -> FloatMatrix | None:
        from nacre.storage.vectors import unpack

        with self._connections.reading() as db:
            number = None if model is None else further_vectors.number_of(db, model)
            if number is None:
                sql = (
                    "SELECT p.vector FROM passages AS p JOIN memories AS m ON m.row = p.row "
                    "WHERE m.id = ? AND m.embedded = 1 ORDER BY p.passage"
                )
                found = rows.fetch(db, sql, (memory_id,))
            else:
                sql = (
                    "SELECT p.vector FROM further_passages AS p JOIN memories AS m ON m.row = p.row "
                    "WHERE m.id = ? AND p.model = ? ORDER BY p.passage"
                )
                found = rows.fetch(db, sql, (memory_id, number))
        return unpack([blob for (blob,) in found]) if found else None

    def without_vectors(self, ids: Sequence[str], model: str | None = None) -> set[str]:
        with self._connections.reading() as db:
            pending = PENDING if model is None else further_vectors.pending_clause(db, model) & LIVE
            sql = f"SELECT m.id FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value WHERE {pending.sql}"
            return {memory_id for (memory_id,) in rows.fetch(db, sql, (rows.to_json(list(ids)), *pending.parameters))}

    def pending(self, where: Filter | None, limit: int, model: str | None = None) -> list[tuple[str, str]]:
        with self._connections.reading() as db:
            pending = PENDING if model is None else further_vectors.pending_clause(db, model) & LIVE
            return self._having(db, pending, where, limit)

    def pending_count(self, where: Filter | None, model: str | None = None) -> int:
        with self._connections.reading() as db:
            if model is not None:
                clause = EVERYTHING if where is None else filter_clause(where, few=True)
                return further_vectors.pending_count(db, model, clause)
            return self._count_having(db, PENDING, "memories_pending", where)

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        with self._connections.reading() as db:
            if rows.meta(db, "token_model") != model:
                return {}
            return token_vectors.nearest(db, ids, vector, passages_max)

    def pending_tokens(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        with self._connections.reading() as db:
            return self._having(db, Clause(token_vectors.PENDING, ()), where, limit)

    def pending_tokens_count(self, where: Filter | None) -> int:
        with self._connections.reading() as db:
            return self._count_having(db, Clause(token_vectors.PENDING, ()), "memories_pending_tokens", where)

    @staticmethod
    def _having(db: apsw.Connection, condition: Clause, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        """(id, text) of the first memories that match a condition and the filter."""
        clause = condition & (EVERYTHING if where is None else filter_clause(where))
        sql = f"SELECT m.id, m.text FROM memories AS m WHERE {clause.sql} ORDER BY m.row LIMIT ?"
        return [(memory_id, text) for memory_id, text in rows.fetch(db, sql, (*clause.parameters, limit))]

    @staticmethod
    def _count_having(db: apsw.Connection, condition: Clause, index: str, where: Filter | None) -> int:
        """How many memories match a condition and the filter: usually none, and the partial index has them."""
        clause = condition & (EVERYTHING if where is None else filter_clause(where, few=True))
        sql = f"SELECT count(*) FROM memories AS m INDEXED BY {index} WHERE {clause.sql}"
        return int(db.execute(sql, clause.parameters).get)

    def history(self, memory_id: str) -> list[Event]:
        sql = "SELECT seq, at_us, action, memory_id, before FROM events WHERE memory_id = ? ORDER BY seq"
        with self._connections.reading() as db:
            return [
                Event(seq, rows.moment(at_us), action, named, json.loads(before) if before else {})
                for seq, at_us, action, named, before in db.execute(sql, (memory_id,))
            ]

    def stats(self) -> Stats:
        with self._connections.reading() as db:
            return store_stats(db, self._path, self._quotas)

    # ---- facts and entities

    def add_facts(self, new: Sequence[Fact], at: datetime) -> None:
        with self._writing() as db:
            held = self._held(db, (each.space for each in new))
            facts.add(db, new, at)
            space_usage.check(db, self._quotas, held)

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        with self._writing() as db:
            facts.drop(db, ids, at)

    def update_confidence(self, changed: Sequence[Fact]) -> None:
        with self._writing() as db:
            facts.update_confidence(db, changed)
            bump_revision(db)

    def facts(self, query: FactQuery) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.listed(db, query)

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.by_ids(db, ids)

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        with self._connections.reading() as db:
            return facts.by_memory(db, memory_ids)

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        with self._connections.reading() as db:
            return facts.conflicting(db, spaces, at)

    def relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        with self._connections.reading() as db:
            return facts.search_relations(db, terms, spaces, at, limit, frequencies)

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        with self._connections.reading() as db:
            return facts.relation_frequencies(db, words, spaces)

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        with self._connections.reading() as db:
            return facts.relations_of(db, names, spaces, at, limit)

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        with self._writing() as db:
            facts.put_entity(db, space, entity, memory_ids)
            bump_revision(db)

    def drop_entity(self, space: str, name: str) -> bool:
        with self._writing() as db:
            dropped = facts.drop_entity(db, space, name)
            if dropped:
                bump_revision(db)
            return dropped

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        with self._connections.reading() as db:
            return entities.listed(db, spaces, names, limit)

    def entity_counts(self, spaces: Sequence[str]) -> dict[str, int]:
        with self._connections.reading() as db:
            return entities.counted(db, spaces)

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        with self._connections.reading() as db:
            return entities.by_memory(db, memory_ids)

    # ---- near-duplicates

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._connections.reading() as db:
            return near_duplicates.by_memory(db, memory_ids)

    def link_updates(self, new: Sequence[Update]) -> None:
        with self._writing() as db:
            bump_revision(db)
            updates.link_later(db, new)

    def unlink_updates(self, pairs: Sequence[Update]) -> int:
        with self._writing() as db:
            bump_revision(db)
            return updates.unlink(db, pairs)

    def updates(self, memory_ids: Sequence[str]) -> list[Update]:
        with self._connections.reading() as db:
            return updates.of_memories(db, memory_ids)

    def separate(self, memory_id: str) -> int:
        with self._writing() as db:
            bump_revision(db)
            return near_duplicates.separate(db, live_rows(db, [memory_id])[memory_id])

    # ---- the recall log

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        with self._writing(durable=False) as db:
            recall_log.record(db, receipts)
            recall_log.prune(db, retention, now)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        with self._writing() as db:
            marked = recall_log.mark(db, receipt_id, memory_ids, outcome, at, session, origin)
            if marked:
                bump_revision(db)
            return marked

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
        with self._connections.reading() as db:
            return recall_log.listed(db, which, unwritten)

    def clear_receipts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        with self._connections.writing() as db:
            cleared = recall_log.clear(db, spaces, session, before)
            if cleared:
                scrub.request(db)
        if cleared:
            self._scrub(self._scrub_wait_s)
        return cleared

    def last_receipt(self) -> int:
        with self._connections.reading() as db:
            return recall_log.last(db)

    def delivered(
        self,
        sessions: Sequence[tuple[str, str]],
        limit: int,
        unwritten: Unwritten = NOTHING_UNWRITTEN,
        *,
        after: int = 0,
    ) -> dict[tuple[str, str], list[str]]:
        with self._connections.reading() as db:
            return recall_log.delivered(db, sessions, limit, unwritten, after)

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten = NOTHING_UNWRITTEN
    ) -> dict[str, bool]:
        with self._connections.reading() as db:
            return recall_log.delivered_within(db, spaces, session, period, limit, unwritten)

    # ---- lenses

    def put_lens(self, space: str, name: str, body: str) -> None:
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO lenses VALUES (?, ?, ?)", (space, name, body))
            change_log.note(db, "lens", space, [name])
            bump_revision(db)

    def drop_lens(self, space: str, name: str) -> bool:
        with self._writing() as db:
            db.execute("DELETE FROM lenses WHERE space = ? AND name = ?", (space, name))
            dropped = db.changes() > 0
            if dropped:
                change_log.note(db, "lens", space, [name], gone=True)
            bump_revision(db)
            return dropped

    def lenses(self, space: str) -> dict[str, str]:
        with self._connections.reading() as db:
            return dict(rows.fetch(db, "SELECT name, body FROM lenses WHERE space = ? ORDER BY name", (space,)))

    # ---- what a server keeps, and what changed

    def changes(self, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
        with self._connections.reading() as db:
            return change_log.page(db, spaces, since, limit)

    def add_token(self, token: AccessToken, secret_hash: bytes) -> None:
        with self._writing() as db:
            access_tokens.add(db, token, secret_hash)

    def tokens(self) -> list[AccessToken]:
        with self._connections.reading() as db:
            return access_tokens.listed(db)

    def token(self, token_id: str) -> tuple[AccessToken, bytes] | None:
        with self._connections.reading() as db:
            return access_tokens.with_hash(db, token_id)

    def drop_token(self, token_id: str) -> bool:
        with self._writing() as db:
            return access_tokens.drop(db, token_id)

    def claim_answer(self, key: str, request: bytes, now: datetime) -> Claim:
        with self._writing(durable=False) as db:  # without a later write there is nothing to repeat
            return kept_answers.claim(db, key, request, now)

    def keep_answer(self, ticket: str, answer: KeptAnswer, now: datetime) -> None:
        with self._writing() as db:
            kept_answers.keep(db, ticket, answer, now)

    def drop_claim(self, ticket: str) -> None:
        with self._writing(durable=False) as db:
            kept_answers.drop(db, ticket)

    # ---- upkeep

    def check(self, now: datetime, *, fix: bool) -> list[Finding]:
        from nacre.storage.sqlite import doctor

        return doctor.diagnose(self._path, self._key, now, fix=fix)

    def backup(self, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:
        from nacre.storage.sqlite.backup import snapshot

        return snapshot.backup(self._connections, request, progress)

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        from nacre.storage.sqlite import export

        return export.dump(self._connections, request)

    def load_mark(self) -> int:
        with self._connections.reading() as db:
            return int(db.execute("SELECT coalesce(max(row), 0) FROM memories").get)

    def load(
        self, records: Sequence[Record], mark: int, model: str | None = None, token_model: str | None = None
    ) -> LoadCounts:
        from nacre.storage.sqlite import load

        with self._writing() as db:
            held = self._held(db, (each.memory.space for each in records if isinstance(each, MemoryRecord)))
            counts = load.load(db, records, mark, model, token_model)
            space_usage.check(db, self._quotas, held)
        self._unindexed.update(each.memory.space for each in records if isinstance(each, MemoryRecord))
        return counts

    def copying(self) -> StoreCopying:
        from nacre.storage.sqlite.copying import SqliteCopying

        return SqliteCopying(self._connections, self._writing)

    def rebuild(self) -> None:
        self._connections.add_checksums()
        with self._writing() as db:
            retokenise(db)
            space_usage.recount(db)
        with self._connections.reading() as db:
            spaces = [space for (space,) in db.execute("SELECT DISTINCT space FROM memories")]
            self._ready_index.drop(spaces)
            for space in spaces:
                self._ready_index.build(db, space)

    def close(self) -> None:
        try:
            self._index_remaining()
        except StoreUnavailable:  # closed already
            pass
        except StoreError as error:
            _log.warning("the latest memories are not indexed yet (%s); the next search indexes them", error)
        if self._index is not None and forks.usable():
            self._index.close()
        self._connections.close()

    def after_fork(self) -> None:
        if self._index is not None:  # its locks and its thread are the parent's, and a graph may be half built
            forks.leak(self._index)
        self._index = None
        self._index_lock = threading.Lock()
        self._unindexed = Counter()

    # ---- inside

    def _prepare(self, db: apsw.Connection, read_only: bool) -> None:
        """Called for each file that is opened: also for one that has taken the place of another."""
        if rows.meta(db, "words_version") == str(tokenizer.VERSION):
            return
        if read_only:
            raise StoreUnavailable(
                f"store: {self._path} is read-only and was tokenised by another version of Nacre; "
                "open it once where it can be written"
            )
        with transaction(db):
            retokenise(db)

    def _held(self, db: apsw.Connection, spaces: Iterable[str]) -> dict[str, Usage]:
        """What the spaces of a write hold before it; nothing where no quota is set."""
        if not (self._quotas.memories_max or self._quotas.bytes_max):
            return {}
        named = dict.fromkeys(spaces)
        return dict.fromkeys(named, Usage()) | space_usage.of_spaces(db, named)

    @property
    def _ready_index(self) -> Index:
        """The index of the file that this thread reads. Created on first use, because it imports numpy."""
        generation = self._connections.generation
        with self._index_lock:
            if self._index is not None and self._index_generation < generation:  # of a file that was replaced
                self._index.abandon()
                self._index = None
            if self._index is None:
                native_packages.numpy()
                from nacre.storage.sqlite.index.space_index import Index

                store_id = self._connections.store_id
                self._index = Index(self._path, store_id, self._connections, self._hnsw, saved=self._cached)
                self._index_generation = generation
            if self._index_generation > generation:
                raise StoreUnavailable(f"store: {self._path} was replaced while it was searched; try again")
            return self._index

    def _index_in_background(self, entries: Sequence[Entry]) -> None:
        """Index earlier entries while these are written, so that no search waits for it after a large import."""
        self._unindexed.update(entry.memory.space for entry in entries)
        if self._unindexed.total() > UNINDEXED_MEMORIES_MAX:
            names = list(self._unindexed)
            self._unindexed.clear()
            self._ready_index.catch_up_in_background(names)

    @contextmanager
    def _writing(self, *, durable: bool = True, wait: bool = True) -> Iterator[apsw.Connection]:
        """A write transaction. If a scrub is pending, by whichever process, it is tried again afterwards."""
        with self._connections.writing(durable=durable, wait=wait) as db:
            yield db
            pending = rows.meta(db, scrub.MARK) is not None
        if pending:
            self._scrub(scrub.NEXT_WAIT_S)

    def _scrub(self, wait_s: float) -> str | None:
        """Remove what was purged from the caches and the bytes of the file. Returns why that is not done yet.

        It raises nothing: the deletion is committed.
        """
        try:
            with self._connections.reading(latest=True) as db:
                names = scrub.spaces(db)
                if names:
                    self._ready_index.purge(db, names)
            with self._connections.exclusive() as db:
                return None if scrub.scrub(db, wait_s) else "others were reading or writing"
        except Exception as error:
            _log.warning("bytes of purged memories are left in the files (%s); the next write tries again", error)
            return str(error)

    def _index_remaining(self) -> None:
        """Finish the index after an import, or every process that searches next would have to."""
        for name, written in self._unindexed.items():
            if written >= LEFT_MEMORIES_MAX:
                with self._connections.reading() as db:
                    self._ready_index.caught_up(db, name)

    def _indexed(self, memories: int) -> Index | None:
        """The index if a keyword search gains by it. Its first use costs the import of numpy."""
        self._keyword_searches += 1
        pays_off = memories >= INDEXED_MEMORIES_MIN or self._keyword_searches > SEARCHES_WITHOUT_INDEX
        return self._ready_index if self._index is not None or pays_off else None

    def _give_up_index(self, error: Exception, spaces: Sequence[str]) -> None:
        """After an error in the index: drop its files, and build it again. An error of the database is raised again."""
        if self._index is None or is_database_error(error):
            raise error
        _log.warning("the index failed (%s: %s); the rows answer, and it is built again", type(error).__name__, error)
        self._index.drop(spaces)
        self._index.catch_up_in_background(spaces)
