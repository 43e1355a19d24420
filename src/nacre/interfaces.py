"""The interfaces of a store, an embedder and a reranker. Every method is mandatory, synchronous, and takes batches.

Nothing here assumes files, rows or SQL, so a server can implement a store, too. All methods may be called from several
threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from nacre.query.ast import Condition, ParsedQuery, Term
from nacre.types.access_tokens import AccessToken
from nacre.types.backups import BackupRequest, BackupResult
from nacre.types.changes import ChangePage
from nacre.types.copying import Checksums, CopyMark, CopyRecord
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.health import Finding
from nacre.types.kept_answers import Claim, KeptAnswer
from nacre.types.memory import (
    Entry,
    Event,
    Identity,
    Memory,
    Passages,
    Progress,
    Remembered,
    Replacement,
    Span,
    Update,
)
from nacre.types.recall_log import NOTHING_UNWRITTEN, Outcome, Period, Receipt, ReceiptFilter, Retention, Unwritten
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.tokens import QueryTokens, TokenFormat
from nacre.types.transfer import ExportRequest, LoadCounts, Record
from nacre.types.views import Neighbours

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


class Embedder(Protocol):
    """Turns texts into L2-normalised vectors. A vector depends on its text alone."""

    @property
    def fingerprint(self) -> str:
        """Identifies the model and everything that changes its vectors. Available without loading the model."""

    @property
    def pieces_max(self) -> int:
        """The number of word pieces that one vector can represent."""

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        """The indivisible units of a text, in order, each with its number of word pieces."""

    def vocabulary_coverage(self, text: str) -> float:
        """The share of a text that the model has words for, from 0 to 1. Available without loading the model."""

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """One row for each text, in order. The memory it needs does not grow with the number of texts."""

    def embed_query(self, text: str) -> FloatVector: ...


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder whose one pass also yields token vectors: a small L2-normalised vector for each kept word piece."""

    @property
    def token_fingerprint(self) -> str:
        """Identifies everything that changes token vectors. Available without loading the model."""

    @property
    def token_format(self) -> TokenFormat: ...

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        """The vectors of `embed_passages`, to the bit, and the packed token vectors of each text, in order."""

    def query_tokens(self, text: str) -> QueryTokens: ...

    def token_spans(self, text: str) -> list[Span]:
        """Where each kept token of a passage stands in its text, in the order of the packed vectors."""


class FurtherEmbedder(Embedder, Protocol):
    """An embedder that stands beside the store's own, for the languages that it knows."""

    @property
    def languages(self) -> frozenset[str]:
        """ISO 639-1 codes. Available without loading the model."""


class RerankText(NamedTuple):
    """A text with its neighbours in its session. A missing neighbour is empty."""

    text: str
    before: str = ""
    after: str = ""


class RerankScore(NamedTuple):
    """What a reranker says of one text."""

    score: float  # higher is better; only comparable between the texts of one question
    answers: float | None = None  # the log-odds that the text answers, comparable between questions; None: unknown


class Reranker(Protocol):
    """Scores texts against a question. A score depends on the question, the text and its neighbours alone."""

    @property
    def fingerprint(self) -> str:
        """Identifies the model and everything that changes its scores. Available without loading the model."""

    def vocabulary_coverage(self, question: str) -> float:
        """The share of a question that the model has words for, from 0 to 1. Available without loading the model."""

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[RerankScore]:
        """How well each text answers the question, in order."""


class AnytimeReranker(Reranker, Protocol):
    """A reranker that can stop early. One without `scores_while` is given all texts of a search at once.

    It may also have `score_max: float`, which none of its scores exceeds. A search then stops reading as soon as no
    further text can come among the first.
    """

    def scores_while(
        self, question: str, texts: Sequence[RerankText], goes_on: Callable[[Sequence[RerankScore]], bool]
    ) -> list[RerankScore]:
        """The scores of the first texts, in order.

        `goes_on` is called once before each text, never by two threads at once, with the scores of the first texts as
        far as they are known. The first False ends the scoring; texts that were begun are finished.
        """


class Claimed(NamedTuple):
    """Memories that the caller embeds, and nobody else meanwhile: texts by id."""

    without_vectors: dict[str, str]
    without_tokens: dict[str, str]  # they have vectors, and lack token vectors only
    without_further: dict[str, str]  # the further model that was asked for has yet to embed them


NOTHING_CLAIMED = Claimed({}, {}, {})


class TimePage(NamedTuple):
    """A page of a listing by (created, id). It begins after the place `after`, if there is one."""

    limit: int
    oldest_first: bool = False
    after: tuple[datetime, str] | None = None


class FactStore(Protocol):
    """Stores facts, relations and entities of memories, and near-duplicates."""

    def add_facts(self, facts: Sequence[Fact], at: datetime) -> None:
        """Add facts to their memories. Raises NotFound for a memory that is not live."""

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        """Delete facts. Facts that they superseded become current again. Raises NotFound."""

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        """Write `confidence`, `reinforced` and `touched` of these facts. Unknown facts are skipped."""

    def facts(self, query: FactQuery) -> list[Fact]:
        """Facts of live memories, ordered by `valid_from`, the latest first. `query.as_of` is set."""

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        """Facts of live and forgotten memories. Unknown ids are missing from the result."""

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        """Facts by memory, live or forgotten, in the order they were written. A memory without facts is missing."""

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        """Groups of facts that are all current at that time, though they contradict each other."""

    def relations(
        self,
        terms: Sequence[Term],
        spaces: Sequence[str],
        at: datetime,
        limit: int,
        frequencies: Frequencies | None = None,
    ) -> list[tuple[Fact, float]]:
        """Relations that are current at that time and have one of the significant terms, with their scores by BM25.

        The best come first; of equals, the newest. `frequencies` are those of `relation_frequencies`, if relations of
        other nodes count, too.
        """

    def relation_frequencies(self, words: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        """How many relations these spaces have, those of forgotten memories included, and how many have each word."""

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        """Relations that are current at that time, from or to one of these names, the newest first."""

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        """Add an entity, or add a type and aliases to an existing one, and link memories with it.

        Entities that share a name are merged. Raises NotFound for a memory that is not live in this space.
        """

    def drop_entity(self, space: str, name: str) -> bool:
        """Delete an entity with its names and links. Returns False if there is none."""

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        """Entities that have one of these names or aliases, or all entities, ordered by space and name."""

    def entity_counts(self, spaces: Sequence[str]) -> dict[str, int]:
        """By name of an entity, how many live memories are linked with it or name it in a fact.

        The most frequent first, equal ones by name. A name that several spaces have is counted once for all.
        """

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        """By memory, live or forgotten, the entities that it is linked with or that its facts name, ordered by name.

        A memory without entities is missing.
        """

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """By memory, its live near-duplicates. A memory without any is missing."""

    def link_updates(self, new: Sequence[Update]) -> None:
        """Record that memories update older ones. A link that exists, or between unknown memories, is skipped."""

    def unlink_updates(self, pairs: Sequence[Update]) -> int:
        """Delete links, by their memories. Returns how many there were."""

    def updates(self, memory_ids: Sequence[str]) -> list[Update]:
        """All links from or to these memories, between live ones, ordered by id."""

    def separate(self, memory_id: str) -> int:
        """Stop treating a memory as a near-duplicate of others, for good. Returns how many others there were."""


class LogStore(Protocol):
    """Stores the recall log and the lenses."""

    def record(self, receipts: Sequence[Receipt], retention: Retention, now: datetime) -> None:
        """Write receipts, and delete those that are not to be kept any more."""

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
        origin: str | None = None,
    ) -> list[str]:
        """Mark delivered memories with an outcome. Returns those that did not have this mark before.

        Without `receipt_id`, the latest receipt of the day before `at` that delivered the memory is marked; with
        `session` or `origin`, only receipts of that session or of that connection count. Raises NotFound for an
        unknown memory, InvalidInput if no such receipt delivered it.
        """

    def receipts(self, which: ReceiptFilter, unwritten: Unwritten = NOTHING_UNWRITTEN) -> list[Receipt]:
        """Receipts, the newest first, as if what is unwritten had been recorded."""

    def clear_receipts(self, spaces: Sequence[str], session: str | None, before: datetime | None) -> int:
        """Delete receipts of these spaces, of one session or from before a time where given. Returns how many.

        Nothing of their queries stays in the file. The usage of memories stays.
        """

    def last_receipt(self) -> int:
        """The number of the receipt that was written last; 0 if there is none. Later ones have higher numbers."""

    def delivered(
        self,
        sessions: Sequence[tuple[str, str]],
        limit: int,
        unwritten: Unwritten = NOTHING_UNWRITTEN,
        *,
        after: int = 0,
    ) -> dict[tuple[str, str], list[str]]:
        """By (space, session or connection), the live memories that were delivered to it and have not changed since.

        Only receipts that were written `after` the one of this number count. At most `limit` ids each, the latest
        delivery first. A session without any is missing.
        """

    def delivered_within(
        self, spaces: Sequence[str], session: str, period: Period, limit: int, unwritten: Unwritten = NOTHING_UNWRITTEN
    ) -> dict[str, bool]:
        """The live memories that searches of these spaces delivered to a session in a period, unchanged since.

        The beginning of the period is not part of it, the end is. Deliveries before the session's last `repeat` do not
        count. At most `limit` ids, the latest delivery first, each with whether it was opened.
        """

    def put_lens(self, space: str, name: str, body: str) -> None: ...

    def drop_lens(self, space: str, name: str) -> bool: ...

    def lenses(self, space: str) -> dict[str, str]:
        """The bodies of the lenses of a space, by name."""


class ServerStore(Protocol):
    """Stores what a server keeps, access tokens and answers, and says what changed to those that follow it.

    Tokens and answers are in backups, and in no export.
    """

    def changes(self, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
        """Changes of these spaces after a number, the oldest first.

        Without a page after it, the number to go on from is that of the store's last change, of any space. `since=None`
        asks for this number alone.
        """

    def add_token(self, token: AccessToken, secret_hash: bytes) -> None: ...

    def tokens(self) -> list[AccessToken]:
        """All tokens, the newest first, expired ones included."""

    def token(self, token_id: str) -> tuple[AccessToken, bytes] | None:
        """A token and the hash of its secret."""

    def drop_token(self, token_id: str) -> bool:
        """Delete a token. Returns False if there is none."""

    def claim_answer(self, key: str, request: bytes, now: datetime) -> Claim:
        """Claim a request, unless it was carried out or is being carried out. `request` is a hash of all of it.

        A claim that was neither answered nor dropped can be claimed anew after CLAIM_LASTS. Answers older than KEPT
        are deleted.
        """

    def keep_answer(self, ticket: str, answer: KeptAnswer, now: datetime) -> None:
        """Keep the answer to a claimed request, unless another has claimed it since.

        If memories were purged since the claim, an answer that quotes is not kept, only that there was one.
        """

    def drop_claim(self, ticket: str) -> None:
        """Give up a claim: the request has changed nothing, so that it may be sent again."""


class StoreCopying(Protocol):
    """A store as the source or the target of a copy of all of it."""

    def records(self, request: ExportRequest) -> Iterator[CopyRecord]:
        """The records of an export, then the recall log, usage and access tokens, and then the checksums of all that
        the store has, whatever is asked for. All of it as of one moment, in constant memory."""

    def take(
        self, records: Sequence[CopyRecord], mark: CopyMark, model: str | None, token_model: str | None
    ) -> LoadCounts:
        """Take in some records in one transaction, either of an export or of the log, with how far the copy has come.

        Export records are taken as by `load`, but near-duplicates are those of the source alone.
        """

    def checksums(self) -> Checksums: ...

    def mark(self, source: str) -> CopyMark | None:
        """How far a copy from the store of this id has come; None: nothing was copied from it."""

    def changed_since(self, number: int) -> bool:
        """Whether anything was written about memories after the change of this number, but that they have expired."""


class Store(FactStore, LogStore, ServerStore, Protocol):
    """Stores memories and finds candidates. Each channel is a method of its own; the engine fuses their results.

    A store has a model of its own, and any number of further ones, each with vectors of its own. A method that takes
    the fingerprint of a model works on its vectors; None is the store's own. Near-duplicates and updates are found by
    that one alone.

    Each writing method is one transaction. After it returns, its changes are durable, and every later read of any
    process sees them. If it raises, nothing was written.
    """

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None, token_model: str | None = None) -> list[Remembered]:
        """Store new memories, after those that have expired by then were forgotten.

        A memory with the key of a live memory of its space is not stored; nor is one without a key whose text a live
        memory of its space has, or an earlier one of these without a key.

        `model` is the fingerprint of the entries' vectors. A store without vectors adopts it; a store with vectors of
        another model raises EmbedderMismatch. `token_model` is that of their token vectors. A store without token
        vectors adopts it; a store with those of another model, or without a model given, leaves the new ones out, and
        a store without a further model those of that.
        """

    def replace(self, changes: Sequence[Replacement], model: str | None, token_model: str | None = None) -> None:
        """Replace memories by changed ones, in this order, and log the old values.

        If a text is unchanged, passages of None keep the stored ones with their token vectors, and those of further
        models that are not given stay. Raises Conflict if a
        stored memory is no longer the `previous` one, or if another live memory has the new key or, without a key,
        the new text and no key. What has expired by then is forgotten before.
        """

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        """Soft-delete memories. Forgetting a forgotten memory has no effect. Raises NotFound."""

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        """Undo `forget`.

        Raises NotFound, and Conflict if a memory has expired, or if a live one has its key or, without one, its text.
        """

    def expire(self, now: datetime, limit: int) -> bool:
        """Forget memories that have expired, at most `limit`, unless that would have to wait for another write.

        They count as deleted since they expired. Returns whether none is left.
        """

    def purge(self, ids: Sequence[str], at: datetime) -> str | None:
        """Delete memories for good, with their texts in the event log and in every cache. Raises NotFound.

        Returns why bytes of them may still be in the store's files; None: none are. The next writer removes them.
        """

    def embed(
        self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str, token_model: str | None = None
    ) -> int:
        """Set the vectors and token vectors of these memories where missing, unless their text has changed.

        `model` may be a further one. Returns how many memories got some.
        """

    def add_model(self, model: str) -> None:
        """Keep vectors of a further model, if that is new. All memories become pending for it."""

    def drop_model(self, model: str) -> None:
        """Delete the vectors of a further model. One that is unknown has none."""

    def switch_model(self, model: str) -> None:
        """Drop the vectors of other models, and their token vectors. Memories without vectors become pending."""

    def switch_token_model(self, model: str) -> None:
        """Drop the token vectors of other models."""

    # ---- reading

    def model(self) -> str | None:
        """The fingerprint of the model that the store's vectors come from."""

    def further_models(self) -> tuple[str, ...]:
        """The fingerprints of the further models that the store has vectors of, or waits for."""

    def token_model(self) -> str | None:
        """The fingerprint of the model that the store's token vectors come from."""

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Memories by id, forgotten ones included. Unknown ids are missing from the result."""

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        """Signals that may change the rank of memories. Memories that are not live are missing from the result."""

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        """By memory, live or forgotten, the live memories next to it in its session and space.

        At most `before` and `after` of them, in the order of the session: (position, created, id), missing positions
        last. With `turns`, only turns of a conversation count: memories with a position, and episodes. A memory
        without neighbours is missing.
        """

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        """The ids of those of these memories that are live and match a condition."""

    def view(self, *, latest: bool = False) -> AbstractContextManager[None]:
        """A snapshot for the calling thread: its reads within the block need not see later writes.

        `latest`: it has all that is written by now, so no replica gives it.
        """

    def sequence(self) -> tuple[int, int, int]:
        """A value that changes with every write that may change a search result, and if the store is replaced."""

    def next_expiry(self) -> datetime | None:
        """When the next live memory expires, which may be over; None: none does."""

    def identified(self, identities: Sequence[Identity], now: datetime) -> dict[Identity, str]:
        """The ids of the memories that these identities name and that are live at that time.

        A text without a key names the memory that has it and no key, or else the oldest one that has it under a key.
        """

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        """The best live memories by BM25 over the question's terms, best first, ties by id.

        `frequencies` are those of the terms, counted a moment ago: in these spaces, and in those of other nodes if the
        search asks others, too. They alone decide what a term weighs and which text is long.
        """

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        """The live memories with the best passages by cosine, best first, ties by id.

        A score is the cosine, less `gain_by_chance(passages, passages_weight)` of `ranking.passage_count`. `model` is
        the fingerprint of the vector's model, the store's own or a further one. Raises EmbedderMismatch if it is
        neither, and the store has vectors.
        """

    def by_time(
        self, where: Filter, page: TimePage, *, must: Condition | None = None, forgotten: bool = False
    ) -> list[Memory]:
        """Memories in the order of their creation.

        `must` works for live memories only: the texts of forgotten ones are not indexed.
        """

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        """Counts of all live memories that match the filter and the question's conditions.

        Unless the question is a listing, a memory must also have one of its significant terms.
        """

    def has_language(self, spaces: Sequence[str], languages: Sequence[str]) -> bool:
        """Whether a live memory of these spaces is in one of these languages, none of which is English."""

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str] = ()) -> Frequencies:
        """The number of live memories of these spaces, of those that have each token, and their length together."""

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        """Words of these spaces that `word` may be a misspelling of, each with its number of live memories."""

    def vectors(self, memory_id: str, model: str | None = None) -> FloatMatrix | None:
        """The vectors of a memory's passages, or None if it has none of the model."""

    def without_vectors(self, ids: Sequence[str], model: str | None = None) -> set[str]:
        """Those of these live memories that the model has yet to embed."""

    def pending(self, where: Filter | None, limit: int, model: str | None = None) -> list[tuple[str, str]]:
        """(id, text) of live memories that the model has yet to embed."""

    def pending_count(self, where: Filter | None, model: str | None = None) -> int: ...

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        """By live memory, (place, packed token vectors) of the passages nearest to `vector`, in the order of the text.

        At most `passages_max` of each memory, by cosine; of equals, the earlier. Only the first TOKEN_PASSAGES_MAX
        passages of a memory have token vectors. Memories without token vectors of `model` are missing.
        """

    def pending_tokens(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        """(id, text) of live memories that have vectors, but no token vectors of the store's token model."""

    def pending_tokens_count(self, where: Filter | None) -> int: ...

    def claimed(self, limit: int, *, tokens: bool, further: str | None = None) -> AbstractContextManager[Claimed]:
        """Claim memories that are pending and that nobody has claimed, until the block ends or the process does.

        At most `limit`, those without vectors first; with `tokens`, then those that lack token vectors; then those that
        are pending for the `further` model. None where others have claimed all. Other calls neither wait for a claim
        nor need one.
        """

    def history(self, memory_id: str) -> list[Event]:
        """The events of one memory, the oldest first."""

    def stats(self) -> Stats: ...

    # ---- maintenance

    def check(self, now: datetime, *, fix: bool) -> list[Finding]:
        """What every check of the store finds. With `fix`, what can be made from the memories is made anew."""

    def backup(self, request: BackupRequest, progress: Callable[[Progress], None]) -> BackupResult:
        """Write the whole store as it is at one moment, while others go on writing.

        Raises StoreUnavailable if there is nothing to copy.
        """

    def dump(self, request: ExportRequest) -> Iterator[Record]:
        """All records that are asked for, as of one moment, the header first, in constant memory."""

    def load_mark(self) -> int:
        """A number that `load` takes: new texts are compared with those that are there now for near-duplicates."""

    def load(
        self, records: Sequence[Record], mark: int, model: str | None = None, token_model: str | None = None
    ) -> LoadCounts:
        """Take in some records of an export in one transaction, in their order.

        Of two versions of a memory the later wins, and the other becomes an event. Of several live memories with one
        key or text, the latest stays. `model` and `token_model` are those of the records' vectors; vectors of other
        models than the store's and its further ones are left out. Loading the same again changes nothing.
        """

    def copying(self) -> StoreCopying: ...

    def rebuild(self) -> None:
        """Delete every index and cache, and build them again from the stored memories."""

    def close(self) -> None: ...
