"""Compares the best candidates with the query token by token, each together with its neighbours in the session."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from nacre.analysis import tokenizer
from nacre.analysis.chunking import split_passages
from nacre.analysis.wording import counted
from nacre.engine.candidates import CandidateFinder
from nacre.engine.plan import SearchPlan
from nacre.errors import StoreError
from nacre.interfaces import Store, TokenEmbedder
from nacre.ranking import late_interaction
from nacre.runtime import native_packages
from nacre.runtime.threads import AheadCache, Threads
from nacre.types.memory import Memory, Span
from nacre.types.search import Match, MatchedWord, Ranked
from nacre.types.tokens import QueryTokens

PASSAGES_COMPARED = 4  # of a long text, those nearest to the query
QUERY_TOKENS_CACHED = 256
_STATED = -1  # the place of a relation, which is no passage of the text

_log = logging.getLogger("nacre")


class Selection(NamedTuple):
    """Those to compare, best first; none where the stage is off or impossible."""

    ids: Sequence[str] = ()
    coverage: float = 1.0  # the share of the query that the encoder's vocabulary knows
    notes: tuple[str, ...] = ()


class Compared(NamedTuple):
    """The ranking with the shares of MaxSim, best first."""

    ranked: Sequence[Ranked]
    notes: tuple[str, ...] = ()


class LateInteractionStage:
    """Asks the query encoder and the store for token vectors. Keeps those of recent queries."""

    def __init__(self, store: Store, embedder: TokenEmbedder | None, finder: CandidateFinder, threads: Threads) -> None:
        self._store = store
        self._embedder = embedder
        self._finder = finder
        self._queries: AheadCache[str, QueryTokens] = AheadCache(threads, QUERY_TOKENS_CACHED)

    def preload(self, plan: SearchPlan) -> None:
        """Let the query be encoded while the candidates are fused. `compare` reports what goes wrong."""
        if self._embedder is not None and not plan.further and self._coverage(plan, self._embedder) is not None:
            native_packages.numpy()  # before the thread may import it, too
            self._queries.start(plan.query.meaning, partial(self._encoded, self._embedder))

    def select(self, plan: SearchPlan, ranked: Sequence[Ranked], semantic: Sequence[Match] | None) -> Selection:
        """Choose what to compare. `ranked` is given best first; `semantic` is None where the query has no vector."""
        if self._embedder is None or semantic is None or not ranked or not _wanted(plan):
            return Selection()
        notes = self._lacking(plan, self._embedder)
        coverage = self._coverage(plan, self._embedder)
        if coverage is None:
            return Selection(notes=notes)
        return Selection([each.id for each in ranked[: plan.recipe.maxsim_pool]], coverage, notes)

    def compare(
        self,
        plan: SearchPlan,
        ranked: Sequence[Ranked],
        selection: Selection,
        beside: Mapping[str, Sequence[str]],
        stated: Mapping[str, str],
        foreign: Set[str] = frozenset(),
    ) -> Compared:
        """Add the share of each that was selected. If the encoder fails, the order stays, with a note.

        `beside` has the turns next to each of them that may be seen, `stated` the relation by which one was found.
        `foreign` are in languages that the encoder does not know: they get what those around them have.
        """
        embedder = self._embedder
        near = {each: beside[each] for each in selection.ids}
        assert embedder is not None
        ids = list(dict.fromkeys([*near, *(each for several in near.values() for each in several)]))
        try:
            query = self._query(embedder, plan.query.meaning)
            packed = self._packed(embedder, plan, ids, stated)
        except StoreError:  # a damaged store is no failure of the model
            raise
        except Exception as error:  # whatever the model's runtime raises, the search still answers
            _log.warning("late interaction failed (%s): ranked without it", error)
            return Compared(ranked, (f"late interaction failed: ranked without it ({error})",))
        if not len(query.weights):
            return Compared(ranked)
        texts = {each: [blob for _, blob in passages] for each, passages in packed.items() if each not in foreign}
        scores = late_interaction.maxsim(query, texts, near, embedder.token_format)
        weight = late_interaction.weight_among(near, plan.recipe)
        return Compared(late_interaction.blended(ranked, scores, len(near), weight, selection.coverage))

    def matched_words(
        self, plan: SearchPlan, memories: Mapping[str, Memory], stated: Mapping[str, str]
    ) -> tuple[MatchedWord, ...]:
        """For each word of the query, the word that it met: of the first memory, or of the turns next to it, which are
        the others."""
        embedder = self._embedder
        assert embedder is not None
        query = self._query(embedder, plan.query.meaning)
        ids = list(memories)
        packed = self._packed(embedder, plan, ids, stated)
        blobs = [[blob for _, blob in packed.get(each, ())] for each in ids]
        met = late_interaction.matched_tokens(query, blobs, embedder.token_format)
        found: dict[Span, MatchedWord] = {}
        for place, match in zip(query.words, met, strict=True):
            if match is None or not any(map(str.isalnum, plan.query.meaning[place.start : place.end])):
                continue
            asked, other = tokenizer.word_around(plan.query.meaning, place), ids[match.text]
            if asked in found and found[asked].similarity >= match.similarity:  # of a word in pieces, its best piece
                continue
            passage = packed[other][match.passage][0]
            text = _passage(embedder, memories[other].text, passage) if passage != _STATED else stated[other]
            span = embedder.token_spans(text)[match.token]
            if span.start == span.end:  # the token that stands for the whole text
                continue
            start, end = tokenizer.word_around(text, span)
            word = plan.query.meaning[asked.start : asked.end]
            found[asked] = MatchedWord(word, text[start:end], match.similarity, other)
        return tuple(found[each] for each in sorted(found))

    def _packed(
        self, embedder: TokenEmbedder, plan: SearchPlan, ids: Sequence[str], stated: Mapping[str, str]
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        """By id, (place, packed tokens) of passages. The relation by which a memory was found counts as one more."""
        vector = self._finder.query_vector(embedder, plan.query.meaning)
        packed = self._store.token_vectors(ids, embedder.token_fingerprint, vector, PASSAGES_COMPARED)
        found = [each for each in ids if each in stated]
        if found:
            _, statements = embedder.embed_with_tokens([stated[each] for each in found])
            for each, statement in zip(found, statements, strict=True):
                packed[each] = (*packed.get(each, ()), (_STATED, statement))
        return packed

    def _coverage(self, plan: SearchPlan, embedder: TokenEmbedder) -> float | None:
        """The share of the query that the encoder knows, or None where nothing is to be compared."""
        if not _wanted(plan) or self._store.token_model() != embedder.token_fingerprint:
            return None
        try:
            coverage = embedder.vocabulary_coverage(plan.query.meaning)
        except Exception:  # the vocabulary is missing or damaged; the semantic channel says so
            return None
        return coverage if late_interaction.can_judge(coverage) else None

    def _query(self, embedder: TokenEmbedder, text: str) -> QueryTokens:
        return self._queries.result(text, partial(self._encoded, embedder))

    def _encoded(self, embedder: TokenEmbedder, text: str) -> QueryTokens:
        """The query's token vectors, after its vector: that is needed first, and two models at once slow each other."""
        self._finder.wait_for_vector(embedder, text)
        return embedder.query_tokens(text)

    def _lacking(self, plan: SearchPlan, embedder: TokenEmbedder) -> tuple[str, ...]:
        """A note on memories that have no token vectors of this model."""
        if self._store.token_model() not in (None, embedder.token_fingerprint):
            return ("the token vectors are of another model and are not used: run `nacre reembed`",)
        lacking = self._store.pending_tokens_count(plan.where)
        if not lacking:
            return ()
        return (f"{counted(lacking, 'memory has', 'memories have')} no token vectors yet: run `nacre reembed`",)


def _wanted(plan: SearchPlan) -> bool:
    if not plan.request.rerank or not plan.recipe.maxsim_weight or not plan.is_hybrid:
        return False
    # Where nothing but conditions is asked for, or the fusion is "boost", words decide.
    return not plan.query.listing and bool(plan.query.meaning.strip()) and plan.recipe.fusion != "boost"


def _passage(embedder: TokenEmbedder, text: str, place: int) -> str:
    start, end = split_passages(text, embedder.weigh(text), embedder.pieces_max)[place]
    return text[start:end]
