"""The channels: which memories have the words of a query, and which are near its meaning?"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from nacre.analysis import tokenizer
from nacre.analysis.wording import counted
from nacre.engine.plan import SearchPlan
from nacre.errors import EmbedderMismatch
from nacre.interfaces import Embedder, FurtherEmbedder, Store, TimePage
from nacre.query.ast import Only, ParsedQuery, Phrase, Term, both, either
from nacre.query.identifiers import Identifier
from nacre.ranking.fusion import Further
from nacre.ranking.scoring import best_first
from nacre.runtime import native_packages
from nacre.runtime.threads import AheadCache, Threads
from nacre.types.memory import Memory
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Match
from nacre.types.stats import Frequencies

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

QUERY_VECTORS_CACHED = 256
# From this many memories on, both channels take so long that a thread for one of them pays. Below, two threads that
# share Python's lock only hinder each other.
PARALLEL_MEMORIES_MIN = 250_000
_NAMING_MAX = 10  # memories looked up by an identifier that no channel found

_log = logging.getLogger("nacre")


class Semantic(NamedTuple):
    """What the semantic channel found. `matches` is None where there was no vector to compare."""

    matches: list[Match] | None
    notes: tuple[str, ...] = ()
    pending: bool = False  # whether some of the memories that the search may see have no vectors yet
    further: Further | None = None  # what the further model found of memories in other languages, beside the own model


class CandidateFinder:
    """Asks the channels for candidates. Keeps recent query vectors."""

    def __init__(
        self, store: Store, embedder: Embedder | None, threads: Threads, further: FurtherEmbedder | None = None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._further = further
        self._threads = threads
        self._query_vectors: AheadCache[_Key, FloatVector] = AheadCache(threads, QUERY_VECTORS_CACHED)

    def preload(self, plan: SearchPlan) -> None:
        """Let the query be embedded while words are looked up. `semantic` reports what goes wrong."""
        embedder = self._asked(plan)
        if embedder is not None and plan.is_hybrid and plan.query.meaning.strip():
            with suppress(ImportError):
                native_packages.numpy()  # before the thread may import it, too
            self._query_vectors.start(_key(embedder, plan.query.meaning), partial(_embedded, embedder))

    def _asked(self, plan: SearchPlan) -> Embedder | None:
        """The model that answers a query: the store's own, or a further one that knows its language."""
        return self._further if plan.further else self._embedder

    def wait_for_vector(self, embedder: Embedder, text: str) -> None:
        """Until a query that is being embedded has its vector."""
        self._query_vectors.wait(_key(embedder, text))

    def find(self, plan: SearchPlan, frequencies: Frequencies) -> tuple[list[Match] | None, Semantic]:
        """Both channels; None for one whose weight is 0. What a further look finds comes in, too, however many others
        match better."""
        lexical, semantic = self._both(plan, frequencies)
        for condition in plan.further_looks:
            narrow = replace(plan, query=replace(plan.query, must=both(plan.query.must, condition)))
            found, near = self._both(narrow, frequencies)
            lexical = _joined(lexical, found)
            semantic = semantic._replace(
                matches=_joined(semantic.matches, near.matches), further=_joined_further(semantic.further, near.further)
            )
        return lexical, semantic

    def _both(self, plan: SearchPlan, frequencies: Frequencies) -> tuple[list[Match] | None, Semantic]:
        if plan.recipe.alpha == 0:
            return self.keyword(plan, frequencies), Semantic(None)
        if plan.recipe.alpha == 1:
            return None, self.semantic(plan, plan.pool)
        if frequencies.memories < PARALLEL_MEMORIES_MIN:
            return self.keyword(plan, frequencies), self.semantic(plan, plan.pool)
        keyword = self._threads.start(self.keyword, plan, frequencies)
        try:
            semantic = self.semantic(plan, plan.pool)
        finally:
            matches = keyword.result()
        return matches, semantic

    def keyword(self, plan: SearchPlan, frequencies: Frequencies, limit: int | None = None) -> list[Match]:
        return self._store.lexical(plan.query, frequencies, plan.where, plan.recipe, limit or plan.pool)

    def semantic(self, plan: SearchPlan, limit: int) -> Semantic:
        """The nearest memories above the floor."""
        instead = "no results by meaning" if plan.recipe.alpha == 1 else "keyword results only"
        text, embedder = plan.query.meaning, self._asked(plan)
        if not text.strip():
            return Semantic(None)
        if embedder is None:
            return Semantic(None, (f"no embedder is configured: {instead}",))
        try:
            vector = self.query_vector(embedder, text)
        except Exception as error:  # whatever the model's runtime raises, keyword search still answers
            _log.warning("the embedder failed (%s): %s", error, instead)
            return Semantic(None, (f"the embedder failed: {instead} ({error})",))
        try:
            matches = self._store.semantic(
                vector, embedder.fingerprint, plan.query, plan.where, limit, plan.recipe.passages_weight
            )
        except EmbedderMismatch as error:  # another process has changed the model
            return Semantic(None, (f"{error}; until then {instead}",))
        pending = self._store.pending_count(plan.where, self._model(plan))
        kind = "multilingual vectors" if plan.further else "vectors"
        notes = (
            (f"{counted(pending, 'memory has', 'memories have')} no {kind} yet: run `nacre reembed`",)
            if pending
            else ()
        )
        return Semantic(_above_floor(matches, plan.recipe), notes, pending > 0, self._foreign(plan, limit))

    def _foreign(self, plan: SearchPlan, limit: int) -> Further | None:
        """For a question that the own model answers: what the further model says of memories in other languages.

        It is asked for the nearest of all: what is in English may be nearer, and then nothing else stands out.
        """
        embedder = self._further
        if not plan.foreign or embedder is None:
            return None
        try:
            vector = self.query_vector(embedder, plan.query.meaning)
            matches = self._store.semantic(
                vector, embedder.fingerprint, plan.query, plan.where, limit, plan.recipe.passages_weight
            )
        except Exception as error:  # whatever the model's runtime raises, the own model still answers
            _log.warning("the multilingual model failed (%s): memories in other languages are found by words", error)
            return None
        near = [match.id for match in _above_floor(matches, plan.recipe)]
        ids = self._store.matching(near, Only(Filter(languages=plan.foreign))) if near else set()
        return Further(matches, embedder.vocabulary_coverage(plan.query.meaning), ids) if ids else None

    def _model(self, plan: SearchPlan) -> str | None:
        """The further model that answers a query; None: it is the store's own."""
        return self._further.fingerprint if plan.further and self._further is not None else None

    def unembedded(self, plan: SearchPlan, lexical: Sequence[Match] | None, semantic: Semantic) -> Set[str]:
        """Those of what words found that meaning could not find, because they have no vectors yet."""
        if not lexical or not semantic.pending:
            return frozenset()
        return self._store.without_vectors([match.id for match in lexical], self._model(plan))

    def cosines(self, plan: SearchPlan, memory_ids: Sequence[str]) -> dict[str, float] | str:
        """The cosines of memories that no semantic search has compared, those with vectors; or why there are none."""
        text, embedder, model = plan.query.meaning, self._asked(plan), self._model(plan)
        if not text.strip():
            return "the query has nothing to compare by meaning"
        if embedder is None:
            return "no embedder is configured"
        if model is None and self._store.model() not in (None, embedder.fingerprint):
            return "the vectors are of another model"
        try:
            vector = self.query_vector(embedder, text)
        except Exception as error:  # whatever the model's runtime raises
            return f"the embedder failed ({error})"
        from nacre.storage.vectors import cosines

        stored = ((each, self._store.vectors(each, model)) for each in memory_ids)
        return {each: float(cosines(vectors, vector).max()) for each, vectors in stored if vectors is not None}

    def naming(self, plan: SearchPlan, identifiers: Sequence[Identifier]) -> list[str]:
        """Memories with the words of what the query names exactly, side by side, whatever the mode."""
        rows = [tokenizer.tokenise(each.text).words for each in identifiers if each.exactness != "name"]
        phrases = tuple(Phrase(row) for row in rows if row and not any(map(tokenizer.is_unigram, row)))
        if not phrases:
            return []
        must = both(plan.query.must, either(phrases))
        terms = tuple(dict.fromkeys(Term(word) for phrase in phrases for word in phrase.words))
        having = self._store.frequencies([term.text for term in terms], plan.where.spaces)
        question = ParsedQuery(terms, must, "")
        return [match.id for match in self._store.lexical(question, having, plan.where, plan.recipe, _NAMING_MAX)]

    def listed(self, plan: SearchPlan) -> list[str]:
        """For a query of conditions alone: what matches them, newest first."""
        if not plan.query.listing:
            return []
        return [memory.id for memory in self._store.by_time(plan.where, TimePage(plan.pool), must=plan.query.must)]

    def vocabulary_coverage(self, plan: SearchPlan) -> float:
        """The share of the query that the embedder's vocabulary knows."""
        embedder = self._asked(plan)
        if embedder is None or not plan.is_hybrid or not plan.query.meaning.strip():
            return 1.0
        return embedder.vocabulary_coverage(plan.query.meaning)

    def query_vector(self, embedder: Embedder, text: str) -> FloatVector:
        """The vector of a query. Raises what the embedder raises."""
        return self._query_vectors.result(_key(embedder, text), partial(_embedded, embedder))

    def near(self, memory: Memory, where: Filter, recipe: Recipe, limit: int) -> Semantic:
        """Memories whose vectors are near those of a stored one. That needs no embedder."""
        model, vectors = self._store.model(), self._store.vectors(memory.id)
        if model is None or vectors is None:
            return Semantic([], ("the memory has no vectors: only memories that share its words were looked for",))
        try:
            matches = self._store.semantic(
                vectors.mean(axis=0), model, ParsedQuery((), None, ""), where, limit, recipe.passages_weight
            )
        except EmbedderMismatch as error:  # another process has changed the model just now
            return Semantic([], (str(error),))
        return Semantic(_above_floor(matches, recipe))


_Key: TypeAlias = tuple[str, str]  # the fingerprint of a model, and a text


def _key(embedder: Embedder, text: str) -> _Key:
    return embedder.fingerprint, text


def _embedded(embedder: Embedder, key: _Key) -> FloatVector:
    from nacre.storage.vectors import checked  # numpy is imported only where there are vectors

    vector: FloatVector = checked([embedder.embed_query(key[1])], 1)[0]
    return vector


def _joined(one: list[Match] | None, other: list[Match] | None) -> list[Match] | None:
    return None if one is None else best_first({match.id: match for match in (*one, *(other or ()))}.values())


def _joined_further(one: Further | None, other: Further | None) -> Further | None:
    if one is None or other is None:
        return one or other
    ids = {*(one.ids or ()), *(other.ids or ())}
    return one._replace(matches=_joined(list(one.matches), list(other.matches)) or (), ids=ids)


def _above_floor(matches: list[Match], recipe: Recipe) -> list[Match]:
    return [match for match in matches if match.cosine >= recipe.semantic_floor]
