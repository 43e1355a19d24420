"""What the engine asks of a store, an embedder and a reranker. Every method is mandatory, batch-first and synchronous.

A server store can honour every method: nothing here knows files, rows or SQL. All methods
may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nacre.query.ast import Condition, ParsedQuery, Term
from nacre.types.facts import Entity, Fact, FactQuery, NewEntity
from nacre.types.memory import Entry, Event, Memory, Passages, Remembered, Span
from nacre.types.recall_log import Outcome, Receipt, ReceiptFilter
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, Signals
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.views import Neighbours

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


class Embedder(Protocol):
    """Turns texts into vectors of meaning, L2-normalised. A vector depends on its text alone."""

    @property
    def fingerprint(self) -> str:
        """Names the model and everything that changes its vectors. Known without loading the model."""

    @property
    def pieces_max(self) -> int:
        """How many word pieces of a text one vector can take in."""

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        """The text's indivisible units in order, each with its number of word pieces."""

    def vocabulary_coverage(self, text: str) -> float:
        """How much of a text the model has words for, from 0 to 1. Known without loading the model."""

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """One row for each text, in order. Bounded memory whatever the input size."""

    def embed_query(self, text: str) -> FloatVector: ...


class RerankText(NamedTuple):
    """A text with what stands next to it in its session; both are empty where nothing does."""

    text: str
    before: str = ""
    after: str = ""


class Reranker(Protocol):
    """Reads a question and a text together. A score depends on these two, and what stands next to the text, alone."""

    @property
    def fingerprint(self) -> str:
        """Names the model and everything that changes its scores. Known without loading the model."""

    def vocabulary_coverage(self, question: str) -> float:
        """How much of a question the model has words for, from 0 to 1. Known without loading the model."""

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[float]:
        """How well each text answers, in order: the higher, the better. On a scale of the model's own."""


class FactStore(Protocol):
    """Keeps what memories say: facts, entities, relations; and which memories say nearly the same."""

    def add_facts(self, facts: Sequence[Fact], at: datetime) -> None:
        """Keep facts with their memories. Raises NotFound for a memory that is not live."""

    def drop_facts(self, ids: Sequence[str], at: datetime) -> None:
        """Delete facts; what they had superseded holds again. Raises NotFound."""

    def update_confidence(self, facts: Sequence[Fact]) -> None:
        """Write confidence, last reinforcement and its time of facts that are there."""

    def facts(self, query: FactQuery) -> list[Fact]:
        """Facts of live memories, those that began to hold last first. `query.as_of` is set."""

    def facts_by_id(self, ids: Sequence[str]) -> list[Fact]:
        """Of live and forgotten memories; unknown ids are missing from the answer."""

    def facts_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        """By memory, live or forgotten, in the order they were written; a memory without any is missing."""

    def conflicting_facts(self, spaces: Sequence[str], at: datetime) -> list[list[Fact]]:
        """Groups of facts that hold at once though only one of each can."""

    def relations(
        self, terms: Sequence[Term], spaces: Sequence[str], at: datetime, limit: int
    ) -> list[tuple[Fact, float]]:
        """Relations that hold then and have one of the telling terms, by BM25, best first; of equals the newest."""

    def relations_of(self, names: Sequence[str], spaces: Sequence[str], at: datetime, limit: int) -> list[Fact]:
        """Relations that hold then, from or to one of these names, the newest first."""

    def put_entity(self, space: str, entity: NewEntity, memory_ids: Sequence[str]) -> None:
        """Add an entity, or a type and aliases to a known one, and link memories. Entities that share a name
        become one. Raises NotFound for a memory that is not live in this space."""

    def drop_entity(self, space: str, name: str) -> bool:
        """Delete an entity with its names and links; False where there is none."""

    def entities(self, spaces: Sequence[str], names: Sequence[str] | None, limit: int) -> list[Entity]:
        """Entities that have one of these names or aliases, or all, by space and name."""

    def entities_of(self, memory_ids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
        """By memory, live or forgotten, the entities it is about, by a link or by a fact of it, by name; a memory
        without any is missing."""

    def similar(self, memory_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """By memory, the live ones that were linked as nearly the same; a memory without any is missing."""

    def separate(self, memory_id: str) -> int:
        """Take a memory's links away for good; gives how many."""


class LogStore(Protocol):
    """Keeps the recall log, and the lenses."""

    def record(self, receipts: Sequence[Receipt], keep_from: datetime) -> None:
        """Write receipts, and drop those that are older than `keep_from`."""

    def mark(
        self,
        receipt_id: str | None,
        memory_ids: Sequence[str],
        outcome: Outcome,
        at: datetime,
        session: str | None = None,
    ) -> list[str]:
        """Say what became of delivered memories; gives those that were not marked so before.

        Without a receipt's id, the latest that delivered each within a day is meant, to this session where one is
        named. Raises NotFound for an unknown memory, InvalidInput where no such receipt delivered it.
        """

    def receipts(self, which: ReceiptFilter) -> list[Receipt]:
        """The newest first."""

    def delivered(self, sessions: Sequence[tuple[str, str]], limit: int) -> dict[tuple[str, str], dict[str, bool]]:
        """By (space, session), the ids of live memories that its searches delivered as they are now, the latest first,
        at most so many, each with whether it was opened. A session without any is missing."""

    def put_lens(self, space: str, name: str, body: str) -> None: ...

    def drop_lens(self, space: str, name: str) -> bool: ...

    def lenses(self, space: str) -> dict[str, str]:
        """Bodies by name."""


class Store(FactStore, LogStore, Protocol):
    """Keeps memories and finds candidates, channel by channel. It never mixes signals.

    Each writing method is one transaction: after it returns, nothing of it is lost and every
    later read of any process sees it; if it raises, nothing of it was written.
    """

    # ---- writing

    def add(self, entries: Sequence[Entry], model: str | None) -> list[Remembered]:
        """Store new memories. One whose space and text equal a live memory's is not stored again.

        `model` is the fingerprint of the entries' vectors. A store without vectors adopts it;
        a store with another model's raises EmbedderMismatch.
        """

    def replace(self, entry: Entry, previous: Memory, model: str | None) -> None:
        """Write a changed memory over `previous` and log what it replaced.

        Passages of None keep the stored ones when the text is unchanged. Raises Conflict when the
        stored memory is no longer `previous`, or another live memory has the new text.
        """

    def forget(self, ids: Sequence[str], at: datetime) -> None:
        """Soft-delete. Forgetting a forgotten memory changes nothing. Raises NotFound."""

    def restore(self, ids: Sequence[str], at: datetime) -> None:
        """Undo forget. Raises NotFound, and Conflict when a live memory has the same text."""

    def purge(self, ids: Sequence[str], at: datetime) -> None:
        """Delete for good, with texts in the log and every cache. Raises NotFound."""

    def embed(self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str) -> int:
        """Set the vectors of these memories, unless their text has changed; gives how many were set."""

    def switch_model(self, model: str) -> None:
        """From now on only this model's vectors count; all others are pending."""

    # ---- reading

    def model(self) -> str | None:
        """Fingerprint of the model the store's vectors come from."""

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Memories by id, forgotten ones too; unknown ids are missing from the answer."""

    def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
        """What may move the rank of these; memories that are not live are missing from the answer."""

    def neighbours(self, memory_ids: Sequence[str], before: int, after: int) -> dict[str, Neighbours]:
        """By memory, live or forgotten, the live ones next to it in its session and space, the nearest so many.

        A session is ordered by (position, created, id), missing positions last. A memory without any is missing.
        """

    def matching(self, ids: Sequence[str], condition: Condition) -> set[str]:
        """Those of these live memories that meet a condition."""

    def view(self) -> AbstractContextManager[None]:
        """What the calling thread reads within may be of one moment: what is written meanwhile need not be seen."""

    def sequence(self) -> tuple[int, int]:
        """Changes with every write that may change an answer."""

    def duplicates(self, keys: Sequence[tuple[str, bytes]]) -> dict[tuple[str, bytes], str]:
        """Ids of live memories by (space, content hash)."""

    def lexical(
        self, question: ParsedQuery, frequencies: Frequencies, where: Filter, recipe: Recipe, limit: int
    ) -> list[Match]:
        """The best live memories by BM25 over the question's terms, best first, ties by id.

        `frequencies` are those of the terms, as counted a moment ago in these spaces; prefixes are not counted there.
        """

    def semantic(
        self, vector: FloatVector, model: str, question: ParsedQuery, where: Filter, limit: int
    ) -> list[Match]:
        """The live memories with the best passages by cosine, best first, ties by id.

        `model` is the fingerprint of the vector; a store with another model's raises EmbedderMismatch.
        """

    def by_time(
        self,
        where: Filter,
        limit: int,
        *,
        must: Condition | None = None,
        oldest_first: bool = False,
        forgotten: bool = False,
        after: tuple[datetime, str] | None = None,
    ) -> list[Memory]:
        """Memories ordered by (created, id), beginning after that place.

        `must` is for live memories: what forgotten ones say is not indexed.
        """

    def facet_counts(self, question: ParsedQuery, where: Filter) -> FacetCounts:
        """Counts of all live memories that meet the question's conditions, and have one of its telling terms
        unless it is a listing."""

    def frequencies(self, tokens: Sequence[str], spaces: Sequence[str]) -> Frequencies:
        """In how many live memories of these spaces each token occurs."""

    def spellings(self, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
        """The words in texts of these spaces that are `spelling.alike`, with how many live memories have each token."""

    def vectors(self, memory_id: str) -> FloatMatrix | None:
        """The vectors of a memory's passages, or None when it has none of the store's model."""

    def pending(self, where: Filter | None, limit: int) -> list[tuple[str, str]]:
        """(id, text) of live memories without vectors of the store's model."""

    def pending_count(self, where: Filter | None) -> int: ...

    def history(self, memory_id: str) -> list[Event]:
        """The log of one memory, oldest first."""

    def stats(self) -> Stats: ...

    # ---- upkeep

    def rebuild(self) -> None:
        """Throw every index and cache away and make it anew from the rows."""

    def close(self) -> None: ...
