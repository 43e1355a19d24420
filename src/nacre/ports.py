"""What the engine asks of a store and of an embedder. Every method is mandatory, batch-first and synchronous.

A server store can honour every method: nothing here knows files, rows or SQL. All methods
may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from nacre.query.tree import Condition, Question
from nacre.types import (
    Entry,
    Event,
    Filter,
    Frequencies,
    Match,
    Memory,
    Passages,
    Recipe,
    Remembered,
    Span,
    Stats,
    Tally,
)

if TYPE_CHECKING:
    from nacre.types import FloatMatrix, FloatVector


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

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """One row for each text, in order. Bounded memory whatever the input size."""

    def embed_query(self, text: str) -> FloatVector: ...


class Store(Protocol):
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

    def created(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Creation times of live memories; others are missing from the answer."""

    def duplicates(self, keys: Sequence[tuple[str, bytes]]) -> dict[tuple[str, bytes], str]:
        """Ids of live memories by (space, content hash)."""

    def lexical(self, question: Question, where: Filter, recipe: Recipe, limit: int) -> list[Match]:
        """The best live memories by BM25 over the question's terms, best first, ties by id."""

    def semantic(self, vector: FloatVector, model: str, question: Question, where: Filter, limit: int) -> list[Match]:
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

    def tally(self, question: Question, where: Filter) -> Tally:
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
