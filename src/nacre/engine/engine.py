"""`Nacre`: every verb of the product, in one place. Services behind it do the work.

The engine joins a store, an embedder and a reranker, and holds no memories itself. Doors call these verbs and nothing
else. All verbs may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import chain
from os import PathLike
from time import monotonic
from typing import Literal, Self, Unpack

from nacre import validation
from nacre.engine.access_tokens import AccessTokenService
from nacre.engine.answers import AnswerService
from nacre.engine.backups import BackupService
from nacre.engine.changes import ChangeService
from nacre.engine.context import ContextBuilder
from nacre.engine.embedding import PassageEmbedder
from nacre.engine.entities import EntityService
from nacre.engine.explain import Explainer, Why, WhyNot
from nacre.engine.facts import FactService
from nacre.engine.lenses import LensService
from nacre.engine.parts import Parts
from nacre.engine.pending import PendingEmbedder
from nacre.engine.reader import Reader
from nacre.engine.recall_log import DELIVERED_MINUTES, LOG_DAYS, LOG_MEGABYTES, RecallLog
from nacre.engine.repeats import RepeatFinder
from nacre.engine.rewriter import Rewriter
from nacre.engine.screening import Screening
from nacre.engine.searcher import Searcher
from nacre.engine.timeline import TimelineService
from nacre.engine.updates import UpdateService
from nacre.engine.writer import Writer
from nacre.errors import NacreError
from nacre.ids import new_ids
from nacre.interfaces import Embedder, FurtherEmbedder, Reranker, Store, TokenEmbedder
from nacre.query.lenses import Lens
from nacre.runtime.threads import Threads
from nacre.types.access_tokens import AccessToken, NewAccessToken, Role
from nacre.types.backups import BackupResult
from nacre.types.changes import ChangePage
from nacre.types.facts import (
    Belief,
    Disagreement,
    Entity,
    Fact,
    FactOptions,
    FactQuery,
    FactType,
    NewFact,
    Reinforcement,
    RelatedEntity,
)
from nacre.types.health import Health
from nacre.types.memory import (
    DEFAULT_SPACE,
    Changes,
    Event,
    Forgotten,
    Memory,
    NewMemory,
    NewMemoryFields,
    Progress,
    Purged,
    Remembered,
)
from nacre.types.recall_log import Outcome, Receipt, Retention
from nacre.types.search import Filter, RelatedOptions, RelatedRequest, SearchOptions, SearchRequest, SearchResult
from nacre.types.secrets import DEFAULT_SECRET_POLICY, MemoryWithSecrets, Screened, SecretPolicy
from nacre.types.stats import Facets, Stats
from nacre.types.transfer import LoadCounts, Record
from nacre.types.views import (
    Context,
    ContextOptions,
    ContextRequest,
    Fetched,
    Timeline,
    TimelineOptions,
    TimelineRequest,
)
from nacre.validation import LIMITS, Limits

_NO_EFFECT = "`omit_delivered` has no effect without a session and a recall log"


def system_clock() -> datetime:
    return datetime.now(UTC)


class Nacre:
    """A memory for an agent. Made by `nacre.open`; close it, or use it as a context manager."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        further: FurtherEmbedder | None = None,
        reranker: Reranker | None = None,
        space: str = DEFAULT_SPACE,
        confined: bool | Sequence[str] = False,
        limits: Limits = LIMITS,
        zone: tzinfo | None = None,
        extract: bool = True,
        defer_embeddings: bool = False,
        token_vectors: bool = True,
        decay_rates: Mapping[FactType, float] | None = None,
        log: bool = True,
        log_days: int = LOG_DAYS,
        log_megabytes: int = LOG_MEGABYTES,
        delivered_minutes: int = DELIVERED_MINUTES,
        namespace_weights: Mapping[str, float] | None = None,
        secrets: SecretPolicy = DEFAULT_SECRET_POLICY,
        clock: Callable[[], datetime] = system_clock,
        timer: Callable[[], float] = monotonic,
        make_ids: Callable[[datetime, int], list[str]] = new_ids,
        notes: Sequence[str] = (),
        observe: Callable[[str, float], None] | None = None,
        closes_store: bool = True,
    ) -> None:
        self._elsewhere = partial(
            Nacre,
            store,
            embedder,
            further=further,
            reranker=reranker,
            limits=limits,
            zone=zone,
            extract=extract,
            defer_embeddings=defer_embeddings,
            token_vectors=token_vectors,
            decay_rates=decay_rates,
            log=log,
            log_days=log_days,
            log_megabytes=log_megabytes,
            delivered_minutes=delivered_minutes,
            namespace_weights=namespace_weights,
            secrets=secrets,
            clock=clock,
            timer=timer,
            make_ids=make_ids,
            notes=notes,
            closes_store=False,
        )
        access = validation.access(space, confined, limits)
        weights = validation.namespace_weights("namespace_weights", namespace_weights or {}, limits)
        token_embedder = embedder if token_vectors and isinstance(embedder, TokenEmbedder) else None
        parts = Parts(
            store,
            embedder,
            access,
            limits,
            zone,
            clock,
            make_ids,
            Threads(),
            token_embedder,
            further=None if embedder is None else further,
            namespace_weights=weights,
            timer=timer,
            screening=Screening(validation.secret_policy("secrets", secrets)),
            observe=observe,
        )
        self._parts = parts
        self._store = store
        self._closes_store = closes_store
        self.notes = tuple(notes)  # on the store itself; every search, context and count has them
        self._facts = FactService(parts, validation.decay_rates(decay_rates or {}))
        self._entities = EntityService(parts)
        self._log = RecallLog(
            parts,
            self._facts,
            enabled=log,
            retention=Retention(log_days, log_megabytes * 1_000_000),
            delivered_minutes=delivered_minutes,
        )
        self._lenses = LensService(parts)
        self._backups = BackupService(parts)
        self.answers = AnswerService(parts)  # of a server, which are no memories
        self._changes = ChangeService(parts)
        self._tokens = AccessTokenService(parts)
        self._timeline = TimelineService(parts)
        self._searcher = Searcher(parts, reranker, self._log)
        self._reader = Reader(parts, self._log, self._searcher)
        self._explainer = Explainer(store, self._searcher, limits, parts.zone)
        self._contexts = ContextBuilder(parts, self._searcher, self._log)
        self._updates = UpdateService(parts, finds=extract)
        self._repeats = RepeatFinder(parts, self._log)
        embedding = PassageEmbedder(parts, defer=defer_embeddings)
        self._rewriter = Rewriter(parts, self._facts, self._updates, embedding, extracts=extract)
        self.pending = PendingEmbedder(parts, self._updates)  # what a worker embeds
        self._writer = Writer(
            parts,
            self._facts,
            self._updates,
            self._log,
            self._repeats,
            embedding,
            self._rewriter,
            self.pending,
            extracts=extract,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and close the store. Closing again does nothing."""
        self._log.close()
        self._parts.threads.close()
        if self._closes_store:
            self._store.close()

    def within(
        self,
        space: str,
        *,
        confined: bool | Sequence[str] = True,
        log: bool = True,
        observe: Callable[[str, float], None] | None = None,
    ) -> Nacre:
        """An engine on the same store and models that works in another space. Close it before this one.

        `confined` is as in `nacre.open`. A confined engine can only narrow what it may see. With `log=False` its
        searches do not enter the recall log. `observe` is called with the name of each stage of a search, and its
        seconds; with `cached` where the result of an equal search a moment ago is given.
        """
        if observe is not None:
            validation.function("observe", observe)
        other = validation.access(space, confined, self._parts.limits)
        if self._parts.access.confined:
            if other.spaces is None:
                self._parts.access.check_unconfined("confined", "false allows")
            self._parts.access.allowed("confined", other.spaces or ())
        elsewhere = partial(self._elsewhere, space=space, confined=confined, observe=observe)
        return elsewhere() if validation.yes_or_no("log", log) else elsewhere(log=False)

    # ---- writing

    def remember(self, text: str | NewMemory, **fields: Unpack[NewMemoryFields]) -> Remembered:
        """Remember one text. The same text in the same space is remembered once, and gains what is new of it.

        With a `key`, the memory that has this key in its space becomes what is given now; its history keeps what it
        was. Equal texts under different keys are different memories.
        """
        new = replace(text, **fields) if isinstance(text, NewMemory) else NewMemory(text=text, **fields)
        return self.remember_many([new])[0]

    def remember_many(self, items: Iterable[str | NewMemory]) -> list[Remembered]:
        """Remember many texts. Returns a `Remembered` for each, in their order."""
        return list(chain.from_iterable(self.remember_batches(items)))

    def remember_batches(
        self, items: Iterable[str | NewMemory], *, refused: Callable[[int, NacreError], None] | None = None
    ) -> Iterator[list[Remembered]]:
        """Remember any number of texts in constant memory. Each batch that is consumed is stored.

        A bad item raises InvalidInput: the batches before it are stored, its own is not. With `refused`, all others
        are stored instead, and it is called with the number of each bad item, from 1, and what is wrong with it.
        """
        return self._writer.remember(items, refused)

    def update(self, memory_id: str, *, unchanged_since: datetime | None = None, **changes: Unpack[Changes]) -> Memory:
        """Change the named fields of a live memory. Its history keeps what they were; equal values change nothing.

        `unchanged_since` is the `updated` of the version that the caller knows. If the memory has changed since, it
        raises Outdated and changes nothing.
        """
        return self._rewriter.update(memory_id, changes, unchanged_since)

    def forget(
        self,
        ids: str | Sequence[str] = (),
        *,
        keys: str | Sequence[str] = (),
        space: str | None = None,
        missing_ok: bool = False,
    ) -> Forgotten:
        """Hide memories, by their ids or the keys that they have in a space. They can be restored.

        Raises NotFound for missing ones and hides nothing, unless `missing_ok`: then the others are hidden.
        """
        return self._writer.forget(ids, keys, space, missing_ok)

    def restore(self, ids: str | Sequence[str]) -> None:
        """Bring forgotten memories back."""
        self._writer.restore(ids)

    def purge(
        self, ids: str | Sequence[str] = (), *, keys: str | Sequence[str] = (), space: str | None = None
    ) -> Purged:
        """Delete memories for good, by their ids or the keys that they have in a space. This cannot be undone."""
        return self._writer.purge(ids, keys, space)

    def screen(self, text: str, name: str = "") -> Screened:
        """A text as it would be stored: without private parts, and with secrets as the policy says.

        `name` is that of what the text is the value of, such as "password". Raises InvalidInput if it is refused.
        """
        return self._parts.screening.text(validation.any_text("text", text), validation.any_text("name", name))

    def audit(self, where: Filter | None = None) -> Iterator[MemoryWithSecrets]:
        """The stored memories that have secrets, the oldest first, then forgotten ones, in constant memory.

        Facts and earlier values are looked at, too. Nothing in the result is a secret itself.
        """
        return self._reader.audit(Filter() if where is None else where)

    # ---- export and import

    def export(
        self, where: Filter | None = None, *, since: int | datetime | None = None, vectors: bool = False
    ) -> Iterator[Record]:
        """All that the store has, but for the recall log, as records: a `Header` first. Memory stays constant.

        `where` chooses memories and what belongs to them. `since` leaves out what has not changed after that number,
        the `seq` of an earlier header, or since that time. Close the iterator if you do not take all of it.
        """
        from nacre.engine.transfer import TransferService  # few programs export or load, and each start would pay

        return TransferService(self._parts).export(where, since, vectors)

    def load(
        self, records: Iterable[Record], *, refused: Callable[[int, NacreError], None] | None = None
    ) -> Iterator[LoadCounts]:
        """Take in the records of an export. Each batch that is consumed is one transaction; loading again adds nothing.

        Of two versions of a memory the later wins. A bad record raises InvalidInput; with `refused`, all others are
        taken in instead, and it is called with the number of each bad record, from 1, and what is wrong with it.
        """
        from nacre.engine.transfer import TransferService

        return TransferService(self._parts).load(records, refused)

    def changes(self, since: int | None = None, *, spaces: Sequence[str] = (), limit: int = 1_000) -> ChangePage:
        """What changed after a number, the oldest first: the `seq` of an earlier page, or of an export's header.

        Without a number there are no changes, only the number to go on from. Searches change nothing.
        """
        return self._changes.since(since, spaces, limit)

    # ---- finding

    def search(self, query: str | SearchRequest, **options: Unpack[SearchOptions]) -> SearchResult:
        """The memories that answer a query, best first, each with its reasons."""
        request, result, delivered = self._searcher.search(_search_request(query, options))
        if delivered is None and request.omit_delivered:
            result = replace(result, notes=(*result.notes, _NO_EFFECT))
        elif delivered:
            result = replace(result, hits=tuple(replace(hit, delivered=hit.id in delivered) for hit in result.hits))
        if self.notes:
            result = replace(result, notes=(*self.notes, *result.notes))
        return self._log.log_search(request, result)

    def why(self, query: str | SearchRequest, memory_id: str, **options: Unpack[SearchOptions]) -> Why:
        """A memory's place in a search with every reason, or the stage that left it out."""
        checked = self._parts.id(memory_id)
        return self._explainer.why(self._searcher.trace(_search_request(query, options)), checked)

    def why_not(self, query: str | SearchRequest, memory_id: str, **options: Unpack[SearchOptions]) -> WhyNot:
        """The stage at which a search left a memory out, and what would bring it in."""
        return self.why(query, memory_id, **options).left_out

    def related(self, memory_id: str | RelatedRequest, **options: Unpack[RelatedOptions]) -> SearchResult:
        """The memories most like a known one, by meaning and by the rare words they share."""
        asked = memory_id if isinstance(memory_id, RelatedRequest) else RelatedRequest(memory_id=memory_id)
        return self._searcher.related(replace(asked, **options))

    def facets(self, query: str = "", where: Filter | None = None) -> Facets:
        """All memories, or all that match a query, counted by kind, namespace, tag, source and month."""
        counted = self._searcher.facets(query, Filter() if where is None else where)
        return replace(counted, notes=(*self.notes, *counted.notes)) if self.notes else counted

    def context(
        self, query: str | ContextRequest, budget_tokens: int | None = None, **options: Unpack[ContextOptions]
    ) -> Context:
        """What is known of a question, in a text of at most `budget_tokens`, each memory quoted as data."""
        asked = query if isinstance(query, ContextRequest) else ContextRequest(query=query)
        tokens = asked.budget_tokens if budget_tokens is None else budget_tokens
        packed = self._contexts.build(replace(asked, budget_tokens=tokens, **options))
        return replace(packed, notes=(*self.notes, *packed.notes)) if self.notes else packed

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, as `context` counts them."""
        return self._contexts.tokens(text)

    # ---- reading

    def timeline(
        self,
        start: TimelineRequest | datetime | None = None,
        end: datetime | None = None,
        **options: Unpack[TimelineOptions],
    ) -> Timeline:
        """A page of summaries by creation time, newest first unless asked otherwise, or those around a memory."""
        asked = start if isinstance(start, TimelineRequest) else TimelineRequest(start=start)
        return self._timeline.timeline(replace(asked, end=asked.end if end is None else end, **options))

    def get(
        self,
        ids: str | Sequence[str] = (),
        *,
        keys: str | Sequence[str] = (),
        space: str | None = None,
        entities: bool = False,
        neighbours: int = 0,
        missing_ok: bool = False,
        session: str | None = None,
    ) -> Fetched:
        """Memories in full, in the order asked for, by their ids, also forgotten ones, or by the keys of a space.

        `entities` adds what each is about, `neighbours` that many memories before and after each in its session.
        Raises NotFound for missing ones, unless `missing_ok`. `session` is the caller's, for the recall log.
        """
        return self._reader.get(ids, keys, space, entities, neighbours, missing_ok, session)

    def every(self, where: Filter | str | None = None, *, forgotten: bool = False) -> Iterator[Memory]:
        """All live memories that match a filter, or all forgotten ones, in full, oldest first, in constant memory.

        A text is a query without words to search for, such as "tag:draft until:2025".
        """
        return self._reader.every(Filter() if where is None else where, forgotten)

    def history(self, memory_id: str) -> list[Event]:
        """What happened to a memory, oldest first, with what each update replaced."""
        return self._reader.history(memory_id)

    def similar(self, memory_id: str) -> list[Memory]:
        """The near-duplicates of a memory, which search shows as one hit."""
        return self._reader.similar(memory_id)

    def separate(self, memory_id: str) -> int:
        """Show a memory on its own from now on. Returns from how many it was separated."""
        return self._reader.separate(memory_id)

    def stats(self) -> Stats:
        """Counts of the whole store."""
        return self._reader.stats()

    # ---- facts

    def state_fact(self, fact: NewFact, memory_id: str | None = None, origin: str | None = None) -> Belief:
        """Keep a fact with a memory, or with a new one that says it. Returns it with its confidence."""
        fact = validation.fact(fact, self._parts.limits)
        if memory_id is None:
            (kept,), notes = self._parts.screening.facts([fact])
            text = f"{kept.subject} {kept.predicate} {kept.object}"
            new = NewMemory(text=text, kind="fact", origin=origin, extract=False, facts=[kept])
            receipt = self.remember(new)
            memory_id = receipt.id
            if not receipt.duplicate:
                (stored, effective), *_ = self.facts(memory_id=memory_id, history=True)
                return Belief(replace(stored, notes=notes), effective)
        (stated,) = self.add_facts(memory_id, [fact])
        most = self._parts.limits.ids_max
        several = self.facts(memory_id=memory_id, spaces=[stated.space], history=True, limit=most)
        effective = next(each.effective for each in several if each.fact.id == stated.id)
        return Belief(stated, effective)

    def add_facts(self, memory_id: str, facts: Sequence[NewFact]) -> list[Fact]:
        """Keep facts with a live memory. Returns them after supersession."""
        return self._facts.add(memory_id, facts)

    def drop_facts(self, ids: str | Sequence[str]) -> None:
        """Delete facts. What they had superseded is current again; the memories stay."""
        self._facts.drop(ids)

    def facts(self, query: FactQuery | None = None, **options: Unpack[FactOptions]) -> list[Belief]:
        """Current facts, now or as of another time, newest first, each with its confidence then."""
        asked = FactQuery() if query is None else validation.instance("query", query, FactQuery)
        return self._facts.find(replace(asked, **options))

    def reinforce(self, ids: str | Sequence[str], how: Reinforcement = "explicit") -> int:
        """Restore some of the confidence that facts have lost, by their ids or their memories'. Returns how many."""
        return self._facts.reinforce(ids, how)

    def stale(self, spaces: Sequence[str] = ()) -> list[Belief]:
        """Current facts whose confidence has been below one half for thirty days, the longest first."""
        return self._facts.stale(spaces)

    def conflicts(self, spaces: Sequence[str] = ()) -> list[Disagreement]:
        """Facts that are current at once though only one of them can be true, and memories that may be updates.

        Memories are compared as far as the latest have words of a change and share a subject with an older one.
        """
        return [*self._facts.conflicts(spaces), *self._updates.undecided(spaces)]

    def unlink(self, newer: str, older: str) -> bool:
        """Undo that a memory updates another, so that both count as current. Returns whether it did."""
        return self._updates.unlink(newer, older)

    # ---- entities

    def add_entity(
        self,
        name: str,
        *,
        kind: str | None = None,
        aliases: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        space: str | None = None,
    ) -> Entity:
        """Add an entity, or names to a known one, and link memories. Entities that share a name become one."""
        return self._entities.add(name, kind, aliases, memory_ids, space)

    def drop_entity(self, name: str, space: str | None = None) -> None:
        """Delete an entity with its names and links. Memories and facts stay."""
        self._entities.drop(name, space)

    def entities(
        self, names: Sequence[str] | None = None, *, spaces: Sequence[str] = (), limit: int = 1_000
    ) -> list[Entity]:
        """All entities by name, or those that have one of these names or aliases."""
        return self._entities.find(names, spaces, limit)

    def entity_counts(self, *, spaces: Sequence[str] = ()) -> dict[str, int]:
        """How many live memories are about each entity, by name, the most frequent first."""
        return self._entities.counts(spaces)

    def related_entities(
        self, name: str, depth: int = 1, *, spaces: Sequence[str] = (), as_of: datetime | None = None
    ) -> list[RelatedEntity]:
        """The entities that relations lead to from one, nearest first, each with the path to it."""
        return self._entities.related(name, depth, spaces, as_of)

    # ---- the recall log, and lenses

    def receipts(
        self,
        *,
        spaces: Sequence[str] = (),
        session: str | None = None,
        memory_id: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Receipt]:
        """What searches delivered, newest first. `before` is the id of the last receipt of the page before."""
        return self._log.receipts(spaces, session, memory_id, limit, before)

    def clear_log(
        self, *, before: datetime | None = None, session: str | None = None, spaces: Sequence[str] = ()
    ) -> int:
        """Delete logged searches: all of this space, or those before a time, of a session, of other spaces.

        Returns how many were deleted. What was learned from them stays.
        """
        cleared = self._log.clear(spaces, session, before)
        self._repeats.forget()
        return cleared

    def mark(self, ids: str | Sequence[str], outcome: Outcome, receipt: str | None = None) -> list[str]:
        """Say that delivered memories were opened, used or wrong. Returns those that were not marked so before.

        Without a receipt's id, the latest search that delivered each within a day is meant.
        """
        return self._log.mark(ids, outcome, receipt)

    def save_lens(self, lens: Lens) -> Lens:
        """Save a lens in this space, replacing one of the same name."""
        return self._lenses.save(lens)

    def drop_lens(self, name: str) -> None:
        """Delete a lens of this space."""
        self._lenses.drop(name)

    def lens(self, name: str) -> Lens:
        """The lens of this name."""
        return self._lenses.get(name)

    def lenses(self) -> list[Lens]:
        """The built-in lenses, then those of this space, by name."""
        return self._lenses.all()

    # ---- access tokens

    def create_token(
        self,
        name: str = "",
        *,
        role: Role = "read",
        spaces: Sequence[str] | None = None,
        expires: datetime | timedelta | None = None,
    ) -> NewAccessToken:
        """Make a token for a server. Its secret is shown only now: the store keeps a hash of it.

        "write" may do what "read" may, "admin" everything. `spaces=None` allows all spaces, an empty list this one.
        After `expires`, a time or a duration from now, it is not valid any more.
        """
        return self._tokens.create(name, role, spaces, expires)

    def tokens(self) -> list[AccessToken]:
        """All tokens that were not revoked, expired ones included, the newest first."""
        return self._tokens.all()

    def revoke_token(self, token_id: str) -> None:
        """Delete a token, so that it is not valid any more."""
        self._tokens.revoke(token_id)

    def authenticate(self, secret: str) -> AccessToken | None:
        """The token that has this secret; None if it is unknown, expired or revoked."""
        return self._tokens.of_secret(secret)

    # ---- upkeep

    def reembed(self) -> Iterator[Progress]:
        """Embed every memory that has no vectors of this engine's model. Consume it to run it.

        An interrupted run goes on where it stopped; searches find each batch as it is written.
        """
        return self._writer.reembed()

    def backup(
        self,
        to: str | PathLike[str],
        *,
        since: Literal["last"] | None = None,
        keep: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> BackupResult:
        """Copy the whole store as it is at one moment to a new file, or to a folder under a name of its own.

        Others go on reading and writing. `since="last"` writes only what changed since the last backup in the folder.
        `keep` removes older backups of this store there: "7d4w12m" keeps one of each of 7 days, 4 weeks, 12 months.
        """
        return self._backups.backup(to, since, keep, progress)

    def check(self, *, fix: bool = False) -> Health:
        """Check the whole store: its file, texts, vectors, indexes and caches, and what is left to be done.

        `fix` repairs what can be made from the memories. `nacre.check_store` also checks a store that is too damaged
        to be opened.
        """
        self._parts.access.check_unconfined("check", "looks at")
        return Health(tuple(self._store.check(self._parts.clock(), fix=validation.yes_or_no("fix", fix))))

    def rebuild(self) -> None:
        """Delete every index and cache and make it anew from the rows."""
        self._store.rebuild()


def _search_request(query: str | SearchRequest, options: SearchOptions) -> SearchRequest:
    return replace(query, **options) if isinstance(query, SearchRequest) else SearchRequest(query=query, **options)
