"""Scores the best candidates with the cross-encoder, each together with its neighbours in the session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from nacre.analysis import highlight
from nacre.engine.plan import SearchPlan
from nacre.interfaces import Reranker, RerankScore, RerankText
from nacre.ranking import rerank
from nacre.runtime.lru import LruCache
from nacre.types.memory import Memory, Span
from nacre.types.search import Ranked
from nacre.types.views import Neighbours

WHOLE_CHARS = 600  # a text up to this long is scored as it is
WINDOW_CHARS = 400  # of a longer text, its best window
RERANKED_CHARS = 6_000  # of all texts together: 30 short ones, or 15 long ones
SCORES_CACHED = 4_096
CLEAR_POOL = 3  # where the order is clear, how many are only asked whether they answer

_log = logging.getLogger("nacre")
_ALONE = Neighbours((), ())

T = TypeVar("T")


class Selection(NamedTuple):
    """The candidates worth reranking, best first; none where it is off or impossible."""

    best: list[Ranked]
    coverage: float = 1.0  # the share of the query that the reranker's vocabulary knows
    clear: bool = False  # the order is clear: ask only whether they answer
    notes: tuple[str, ...] = ()


class Reranked(NamedTuple):
    """The ranking with the reranker's shares. `leads` is empty where nothing was reranked."""

    ranked: list[Ranked]
    leads: Mapping[str, float]  # by id, how far above the lowest score
    answers: Mapping[str, float]  # by id, the log-odds that the text answers; empty where the reranker cannot say
    notes: tuple[str, ...] = ()


class RerankStage:
    """Asks the reranker. Keeps recent scores."""

    def __init__(self, reranker: Reranker | None) -> None:
        self._reranker = reranker
        self._preloaded = False
        self._scores: LruCache[tuple[str, RerankText], RerankScore] = LruCache(SCORES_CACHED)

    def preload(self, plan: SearchPlan) -> None:
        """Let the model load, once, while the candidates are searched. `rerank` reports what goes wrong."""
        preload = getattr(self._reranker, "preload", None)
        if preload is not None and not self._preloaded and _wanted(plan):
            self._preloaded = True
            with suppress(Exception):
                preload()

    def select(self, plan: SearchPlan, ranked: Sequence[Ranked]) -> Selection:
        """Choose what to rerank. `ranked` is given best first."""
        reranker, query = self._reranker, plan.query.meaning
        if reranker is None or not _wanted(plan) or not query.strip() or not ranked:
            return Selection([])
        coverage, notes = _attempt(lambda: reranker.vocabulary_coverage(query))
        if coverage is None or not rerank.can_judge(coverage):
            return Selection([], notes=notes)
        clear, pool = rerank.is_clear(ranked), plan.recipe.rerank_pool
        return Selection(list(ranked[: min(CLEAR_POOL, pool) if clear else pool]), coverage, clear)

    def rerank(
        self, plan: SearchPlan, ranked: Sequence[Ranked], texts: Mapping[str, RerankText], selection: Selection
    ) -> Reranked:
        """Add each scored text's share, unless the order is clear. A reranker that fails leaves the order as it is,
        with a note."""
        reranker, query = self._reranker, plan.query.meaning
        assert reranker is not None
        said, notes = _attempt(lambda: self._score(reranker, query, texts))
        if not said:
            return Reranked(list(ranked), {}, {}, notes)
        answers = {each: one.answers for each, one in said.items() if one.answers is not None}
        if selection.clear:
            return Reranked(list(ranked), {}, answers)
        scores = {each: one.score for each, one in said.items()}
        prose = [rerank.prose_share(texts[each].text) for each in scores]
        understood = selection.coverage * sum(prose) / len(prose)
        reranked = rerank.reranked(ranked, scores, plan.recipe.rerank_weight, understood)
        return Reranked(reranked, rerank.leads(reranked), answers)

    def _score(self, reranker: Reranker, query: str, texts: Mapping[str, RerankText]) -> dict[str, RerankScore]:
        """Scores by id. Only texts without a cached score are given to the model."""
        cached = {text: self._scores.get((query, text)) for text in texts.values()}
        new = [text for text, score in cached.items() if score is None]
        scores = {text: score for text, score in cached.items() if score is not None}
        if new:
            scores |= zip(new, reranker.scores(query, new), strict=True)
        for text in new:
            self._scores.put((query, text), scores[text])
        return {each: scores[text] for each, text in texts.items()}


def rerank_texts(
    best: Sequence[Ranked],
    memories: Mapping[str, Memory],
    neighbours: Mapping[str, Neighbours],
    terms: highlight.HighlightTerms,
) -> dict[str, RerankText]:
    """What the reranker gets of each memory: its text, or the best window of it, and the turns next to it.

    Long texts cost more time, so fewer of them are scored. Neighbours that are not among `memories` are left out.
    """

    def beginning(ids: Sequence[str]) -> str:
        return "".join(memories[each].text[:WHOLE_CHARS] for each in ids if each in memories)

    texts: dict[str, RerankText] = {}
    chars = 0
    for each in best:
        if each.id not in memories:  # purged since the channels looked
            continue
        near = neighbours.get(each.id, _ALONE)
        window = _window(memories[each.id].text, terms, each.semantic.span if each.semantic else None)
        chars += len(window)
        if chars > RERANKED_CHARS:
            break
        texts[each.id] = RerankText(window, beginning(near.before[-1:]), beginning(near.after[:1]))
    return texts


def _wanted(plan: SearchPlan) -> bool:
    return plan.request.rerank and plan.recipe.rerank_weight > 0 and plan.is_hybrid


def _attempt(call: Callable[[], T]) -> tuple[T | None, tuple[str, ...]]:
    """What the reranker answers, or None and a note: whatever its runtime raises, the search still answers."""
    try:
        return call(), ()
    except Exception as error:
        _log.warning("the reranker failed (%s): ranked without it", error)
        return None, (f"the reranker failed: ranked without it ({error})",)


def _window(text: str, terms: highlight.HighlightTerms, passage: Span | None) -> str:
    """The part of a text that has the words of the query, or is near its meaning."""
    return text if len(text) <= WHOLE_CHARS else highlight.snippet(text, terms, passage, WINDOW_CHARS).text
