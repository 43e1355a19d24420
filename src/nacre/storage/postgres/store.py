"""The store in PostgreSQL.

Each method is one transaction, carried out by a function of the module that owns the tables. Such a function gets a
connection, locks the spaces that it writes to (`connection.hold`) before it does anything else, and may be called again
if the server undid it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from nacre.errors import InvalidInput, StoreBusy, StoreUnavailable
from nacre.interfaces import StoreCopying, TimePage
from nacre.query.ast import Condition, ParsedQuery, Term
from nacre.storage.postgres import (
    access_tokens,
    change_log,
    claims,
    counters,
    entities,
    facts,
    further_vectors,
    kept_answers,
    lenses,
    lifecycle,
    listing,
    near_duplicates,
    purging,
    rebuilding,
    recall_log,
    rows,
    token_vectors,
    unanswered,
    updates,
    vocabulary,
    writes,
)
from nacre.storage.postgres.connection import BUSY_TIMEOUT_MS, Connections
from nacre.storage.postgres.facets import facet_counts
from nacre.storage.postgres.filters import Clause
from nacre.storage.postgres.keyword_search import lexical
from nacre.storage.postgres.neighbours import neighbours
from nacre.storage.postgres.posting_lists import KeptLists
from nacre.storage.postgres.replicas import Replicas
from nacre.storage.postgres.signals import signals
from nacre.storage.postgres.store_stats import store_stats
from nacre.storage.postgres.vector_graph import GraphBuilder
from nacre.types.access_tokens import AccessToken
from nacre.types.backups import BackupRequest, BackupResult
from nacre.types.changes import ChangePage
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.health import Finding
from nacre.types.kept_answers import Claim, KeptAnswer
from nacre.types.location import CONNECTIONS_MAX, SCHEMA, STALENESS_S
from nacre.types.memory import (
    Entry,
    Event,
    Identity,
    Memory,
    Passages,
    Progress,
    Remembered,
    Replacement,
    Update,
)
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.types.recall_log import NOTHING_UNWRITTEN, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.transfer import ExportRequest, LoadCounts, Record
from nacre.types.views import Neighbours

if TYPE_CHECKING:  # numpy is imported with the first search, not with the store
    from nacre.types.memory import FloatMatrix, FloatVector


class PostgresStore:
    """Implements `nacre.interfaces.Store`. Safe to share between threads; any number of processes may share it."""

    def __init__(
        self,
        dsn: str,
        schema_name: str = SCHEMA,
        *,
        create: bool = True,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
        connections_max: int = CONNECTIONS_MAX,
        quotas: Quotas = NO_QUOTAS,
        spaces: Sequence[str] | None = None,
        replicas: Sequence[str] = (),
        staleness_s: float = STALENESS_S,
    ) -> None:
        """Open a store, or create it.

        Args:
            spaces: Where row-level security checks the user, the store shows and changes these spaces alone.
            replicas: The addresses of further servers, which answer searches while they are no further behind than
                `staleness_s` and have all that this process has written.
        """
        self._quotas = quotas
        bound = None if spaces is None else tuple(spaces)
        self._replicas = None
        if replicas:
            self._replicas = Replicas(
                replicas, schema_name, connections_max=connections_max, spaces=bound, staleness_s=staleness_s
            )
        self._connections = Connections(
            dsn,
            schema_name,
            create=create,
            busy_timeout_ms=busy_timeout_ms,
            connections_max=connections_max,
            spaces=bound,
            note_written=None if self._replicas is None else self._replicas.note_written,
        )
        self._read = self._connections.read
        self._write = self._connections.write
        self._location = self._connections.location
        self.claimed = claims.Claims(self._connections).claimed
        self._graph = GraphBuilder(self._connections)
        self._kept_lists = KeptLists()
        try:
            if not self.read_only:
                rebuilding.retokenise_if_older(self._connections)
            if self._replicas is not None:
                self._replicas.open(self._connections)
        except BaseException:
            self.close()
            raise

    @property
    def location(self) -> str:
        """The address without its password."""
        return self._location

    @property
    def read_only(self) -> bool:
        """Whether it is a replica, or the user may only read."""
        return self._connections.read_only

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None, token_model: str | None = None) -> list[Remembered]:
        added = self._connections.write_once(
            lambda db: lifecycle.add(db, entries, model, token_model, self._quotas, self._location),
            lambda db: unanswered.added(db, entries),
        )
        self._graph.wrote(sum(len(each.passages.spans) for each in entries if each.passages is not None))
        self._graph.wrote(sum(len(one.spans) for each in entries for one in each.further.values()))
        return added

    def replace(self, changes: Sequence[Replacement], model: str | None, token_model: str | None = None) -> None:
        self._connections.write_once(
            lambda db: lifecycle.replace(db, changes, model, token_model, self._quotas, self._location),
            lambda db: unanswered.replaced(db, changes),
        )

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        self._write(lifecycle.forget, ids, at)

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        self._write(lifecycle.restore, ids, at)

    def expire(self, now: datetime, limit: int) -> bool:
        try:
            return self._connections.write_if_free(lifecycle.expire, now, limit)
        except (StoreBusy, StoreUnavailable):  # others write, or nobody may
            return False

    def purge(self, ids: Sequence[str], at: datetime) -> str | None:
        self._write(purging.purge, ids, at)
        return purging.vacuum(self._connections)

    def embed(
        self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str, token_model: str | None = None
    ) -> int:
        embedded = self._write(lifecycle.embed, passages, texts, model, token_model, self._location)
        self._graph.wrote(sum(len(each.spans) for each in passages.values()))
        return embedded

    def add_model(self, model: str) -> None:
        if model not in self.further_models():
            self._connections.write_alone(further_vectors.add, model)

    def drop_model(self, model: str) -> None:
        if model in self.further_models():
            self._connections.write_alone(further_vectors.drop, model)

    def switch_model(self, model: str) -> None:
        if self.model() != model:
            self._connections.write_alone(lifecycle.switch_model, model)

    def switch_token_model(self, model: str) -> None:
        if self.token_model() != model:
            self._connections.write_alone(lifecycle.switch_token_model, model)

    # ---- reading

    def model(self) -> str | None:
        return self._read(rows.meta, "model")

    def further_models(self) -> tuple[str, ...]:
        return self._read(further_vectors.models)

    def token_model(self) -> str | None:
        return self._read(rows.meta, "token_model")

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        return self._read(listing.get, ids)

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        return self._read(signals, ids)

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        return self._read(neighbours, memory_ids, before, after, turns)

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        return self._read(listing.matching, ids, condition)

    def view(self, *, latest: bool = False) -> AbstractContextManager[None]:
        if latest or self._replicas is None:
            return self._connections.view()
        return self._connections.view(partial(self._replicas.snapshot, self._connections))

    def sequence(self) -> tuple[int, int, int]:
        return self._read(counters.sequence)

    def next_expiry(self) -> datetime | None:
        return self._read(lifecycle.next_expiry)

    def identified(self, identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
        return self._read(writes.identified, identities, now)

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        return self._read(lexical, question, frequencies, where, recipe, limit, self._kept_lists)

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        from nacre.storage.postgres.vector_search import semantic

        return self._read(
            semantic, vector, model, question, where, limit, passages_weight, self._location, self._graph.needed
        )

    def by_time(
        self, where: Filter, page: TimePage, *, must: Condition | None = None, forgotten: bool = False
    ) -> list[Memory]:
        return self._read(listing.by_time, where, page, must, forgotten)

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        return self._read(facet_counts, question, where)

    def has_language(self, spaces: Sequence[str], languages: Sequence[str]) -> bool:
        return self._read(further_vectors.has_language, spaces, languages)

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str] = ()) -> Frequencies:
        return self._read(vocabulary.frequencies, tokens, spaces, prefixes)

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        return self._read(vocabulary.spellings, word, spaces)

    def vectors(self, memory_id: str, model: str | None = None) -> FloatMatrix | None:
        return self._read(listing.vectors, memory_id, model)

    def without_vectors(self, ids: Sequence[str], model: str | None = None) -> set[str]:
        return self._read(listing.without_vectors, ids, model)

    def pending(self, where: Filter | None, limit: int, model: str | None = None) -> list[tuple[str, str]]:
        return self._read(listing.pending, where, limit, model)

    def pending_count(self, where: Filter | None, model: str | None = None) -> int:
        return self._read(listing.pending_count, where, model)

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        return self._read(token_vectors.nearest, ids, model, vector, passages_max)

    def pending_tokens(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        return self._read(listing.having, Clause(listing.PENDING_TOKENS, ()), where, limit)

    def pending_tokens_count(self, where: Filter | None) -> int:
        return self._read(listing.count_having, Clause(listing.PENDING_TOKENS, ()), where)

    def history(self, memory_id: str) -> list[Event]:
        return self._read(listing.history, memory_id)

    def stats(self) -> Stats:
        return self._read(store_stats, self._quotas)

    # ---- facts and entities

    def add_facts(self, new: Sequence[Fact], at: datetime) -> None:
        self._connections.write_once(
            lambda db: facts.add(db, new, at, self._quotas), lambda db: unanswered.added_facts(db, new)
        )

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        self._write(facts.drop, ids, at)

    def update_confidence(self, changed: Sequence[Fact]) -> None:
        self._write(facts.update_confidence, changed)

    def facts(self, query: FactQuery) -> list[Fact]:
        return self._read(facts.listed, query)

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        return self._read(facts.by_ids, ids)

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        return self._read(facts.by_memory, memory_ids)

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        return self._read(facts.conflicting, spaces, at)

    def relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        return self._read(facts.search_relations, terms, spaces, at, limit, frequencies)

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        return self._read(facts.relation_frequencies, words, spaces)

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        return self._read(facts.relations_of, names, spaces, at, limit)

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        self._write(facts.put_entity, space, entity, memory_ids)

    def drop_entity(self, space: str, name: str) -> bool:
        return self._write(facts.drop_entity, space, name)

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        return self._read(entities.listed, spaces, names, limit)

    def entity_counts(self, spaces: Sequence[str]) -> dict[str, int]:
        return self._read(entities.counted, spaces)

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        return self._read(entities.by_memory, memory_ids)

    # ---- near-duplicates and updates

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return self._read(near_duplicates.by_memory, memory_ids)

    def link_updates(self, new: Sequence[Update]) -> None:
        self._write(updates.link_later, new)

    def unlink_updates(self, pairs: Sequence[Update]) -> int:
        return self._write(updates.unlink, pairs)

    def updates(self, memory_ids: Sequence[str]) -> list[Update]:
        return self._read(updates.of_memories, memory_ids)

    def separate(self, memory_id: str) -> int:
        return self._write(near_duplicates.separate, memory_id)

    # ---- the recall log

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        self._connections.write_soon(recall_log.record, receipts, retention, now)

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        return self._write(recall_log.mark, receipt_id, memory_ids, outcome, at, session, origin)

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
        return self._read(recall_log.listed, which, unwritten)

    def clear_receipts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        cleared = self._write(recall_log.clear, spaces, session, before)
        if cleared:
            purging.vacuum(self._connections)
        return cleared

    def last_receipt(self) -> int:
        return self._read(recall_log.last)

    def delivered(
        self,
        sessions: Sequence[tuple[str, str]],
        limit: int,
        unwritten: Unwritten = NOTHING_UNWRITTEN,
        *,
        after: int = 0,
    ) -> dict[tuple[str, str], list[str]]:
        return self._read(recall_log.delivered, sessions, limit, unwritten, after)

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten = NOTHING_UNWRITTEN
    ) -> dict[str, bool]:
        return self._read(recall_log.delivered_within, spaces, session, period, limit, unwritten)

    # ---- lenses

    def put_lens(self, space: str, name: str, body: str) -> None:
        self._write(lenses.put, space, name, body)

    def drop_lens(self, space: str, name: str) -> bool:
        return self._write(lenses.drop, space, name)

    def lenses(self, space: str) -> dict[str, str]:
        return self._read(lenses.listed, space)

    # ---- what a server keeps, and what changed

    def changes(self, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
        return self._read(change_log.page, spaces, since, limit)

    def add_token(self, token: AccessToken, secret_hash: bytes) -> None:
        self._write(access_tokens.add, token, secret_hash)

    def tokens(self) -> list[AccessToken]:
        return self._read(access_tokens.listed)

    def token(self, token_id: str) -> tuple[AccessToken, bytes] | None:
        return self._read(access_tokens.with_hash, token_id)

    def drop_token(self, token_id: str) -> bool:
        return self._write(access_tokens.drop, token_id)

    def claim_answer(self, key: str, request: bytes, now: datetime) -> Claim:
        return self._connections.write_soon(kept_answers.claim, key, request, now)

    def keep_answer(self, ticket: str, answer: KeptAnswer, now: datetime) -> None:
        self._write(kept_answers.keep, ticket, answer, now)

    def drop_claim(self, ticket: str) -> None:
        self._connections.write_soon(kept_answers.drop, ticket)

    # ---- upkeep

    def check(self, now: datetime, *, fix: bool) -> list[Finding]:
        from nacre.storage.postgres import checkup

        found = checkup.diagnose(self._connections, now, fix=fix)
        return found if self._replicas is None else [*found, *self._replicas.check(self._connections)]

    def backup(self, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:  # noqa: ARG002
        raise InvalidInput(
            "store",
            f"{self._location} is backed up by PostgreSQL's own tools, such as pg_dump or pg_basebackup; "
            "an export writes its memories to a file",
        )

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        from nacre.storage.postgres import export

        return export.dump(self._connections, request)

    def load_mark(self) -> int:
        return self._read(listing.last_row)

    def load(
        self, records: Sequence[Record], mark: int, model: str | None = None, token_model: str | None = None
    ) -> LoadCounts:
        from nacre.storage.postgres import load

        counts = self._write(load.load, records, mark, model, token_model, self._quotas)
        self._graph.wrote(len(records))
        return counts

    def copying(self) -> StoreCopying:
        from nacre.storage.postgres.copying import PostgresCopying

        return PostgresCopying(self._connections)

    def rebuild(self) -> None:
        rebuilding.rebuild(self._connections)
        self._graph.build(anew=True)

    def build_vector_index(self) -> None:
        """Build the index of vectors now, if there are so many that one is needed, and wait until it is there."""
        self._graph.build()

    def close(self) -> None:
        self._graph.close()
        self._connections.close()
        if self._replicas is not None:
            self._replicas.close()
