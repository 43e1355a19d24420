"""The channels: which memories have the words of a question, and which are near its meaning?"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from nacre.errors import EmbedderMismatch
from nacre.interfaces import Embedder, Store
from nacre.query.ast import ParsedQuery
from nacre.runtime.threads import Threads
from nacre.types.memory import Memory
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match, RelatedRequest, SearchRequest
from nacre.types.stats import Frequencies

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

QUERY_VECTORS_CACHED = 256
# A channel with so little work is not worth a thread: two that share Python's lock hinder each other. By the clock:
# to ask for a thread's time on the processor can itself take a millisecond where the processor is shared.
BRIEF_S = 0.002

_log = logging.getLogger("nacre")


class CandidateFinder:
    """Finds candidates. Holds nothing but a cache of query vectors, and how long the last search took."""

    def __init__(self, store: Store, embedder: Embedder | None, threads: Threads) -> None:
        self._store = store
        self._embedder = embedder
        self._threads = threads
        self._query_vectors: OrderedDict[str, FloatVector] = OrderedDict()
        self._shorter_s = math.inf  # the work of the shorter channel of the last search: what a thread would save
        self._lock = threading.Lock()

    def candidates(
        self, request: SearchRequest, question: ParsedQuery, frequencies: Frequencies, notes: list[str]
    ) -> tuple[list[Match] | None, list[Match] | None]:
        """Both channels side by side, words in a thread and meaning in this one, unless that saves nothing. None: not
        asked, by a weight of 0, or for want of a vector."""
        many = pool(request)

        def find_words() -> tuple[list[Match], float]:
            start = perf_counter()
            found = self._store.lexical(question, frequencies, request.where, request.recipe, many)
            return found, perf_counter() - start

        if request.recipe.alpha == 0:
            return find_words()[0], None
        if request.recipe.alpha == 1:
            return None, self.by_meaning(request, question, many, notes)
        beside = self._threads.start(find_words) if self._shorter_s > BRIEF_S else None
        start = perf_counter()
        try:
            semantic = self.by_meaning(request, question, many, notes)
        finally:
            meaning_s = perf_counter() - start
            lexical, words_s = find_words() if beside is None else beside.result()
        self._shorter_s = min(words_s, meaning_s)
        return lexical, semantic

    def vocabulary_coverage(self, request: SearchRequest, question: ParsedQuery) -> float:
        """How much of a question the embedder understands."""
        if self._embedder is None or request.recipe.alpha in (0, 1) or not question.meaning.strip():
            return 1.0
        return self._embedder.vocabulary_coverage(question.meaning)

    def listed(self, request: SearchRequest, question: ParsedQuery) -> list[str]:
        """Where conditions alone are enough: what meets them, the newest first."""
        if not question.listing:
            return []
        return [memory.id for memory in self._store.by_time(request.where, pool(request), must=question.must)]

    def by_meaning(
        self, request: SearchRequest, question: ParsedQuery, many: int, notes: list[str]
    ) -> list[Match] | None:
        """The nearest above the floor. None: the question has no vector to compare."""
        instead = "no results by meaning" if request.recipe.alpha == 1 else "keyword results only"
        if not question.meaning.strip():
            return None
        if self._embedder is None:
            notes.append(f"no embedder is configured: {instead}")
            return None
        try:
            vector = self._query_vector(self._embedder, question.meaning)
        except Exception as error:  # whatever the model's runtime raises, the words still answer
            _log.warning("the embedder failed (%s): %s", error, instead)
            notes.append(f"the embedder failed: {instead} ({error})")
            return None
        try:
            matches = self._store.semantic(vector, self._embedder.fingerprint, question, request.where, many)
        except EmbedderMismatch as error:  # another process has changed the model
            notes.append(f"{error}; until then {instead}")
            return None
        pending = self._store.pending_count(request.where)
        if pending:
            notes.append(f"{pending} memories have no vectors yet: run `nacre reembed`")
        return _above_floor(matches, request.recipe)

    def near(self, known: Memory, where: Filter, recipe: Recipe, many: int, notes: list[str]) -> list[Match]:
        """Memories whose vectors are near those of a memory: no embedder is needed for that."""
        model, vectors = self._store.model(), self._store.vectors(known.id)
        if model is None or vectors is None:
            notes.append("the memory has no vectors: only memories that share its words were looked for")
            return []
        middle = vectors.mean(axis=0)
        try:
            matches = self._store.semantic(middle, model, ParsedQuery((), None, ""), where, many)
        except EmbedderMismatch as error:  # another process has changed the model just now
            notes.append(str(error))
            return []
        return _above_floor(matches, recipe)

    def _query_vector(self, embedder: Embedder, text: str) -> FloatVector:
        with self._lock:
            if text in self._query_vectors:
                self._query_vectors.move_to_end(text)
                return self._query_vectors[text]
        vector = embedder.embed_query(text)
        with self._lock:
            self._query_vectors[text] = vector
            while len(self._query_vectors) > QUERY_VECTORS_CACHED:
                self._query_vectors.popitem(last=False)
        return vector


def pool(request: SearchRequest | RelatedRequest) -> int:
    """How many candidates a channel gives."""
    return max(request.recipe.pool, 2 * request.limit)


def _above_floor(matches: Sequence[Match], recipe: Recipe) -> list[Match]:
    return [match for match in matches if match.score >= recipe.semantic_floor]
