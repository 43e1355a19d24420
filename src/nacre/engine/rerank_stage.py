"""Scores the best candidates with the cross-encoder, each together with its neighbours in the session."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from itertools import takewhile
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
READ_USUALLY = 3  # texts that are asked whether they answer, however clear the order is and however early it is settled
READ_MIN = 2  # texts that are scored though time is up

_log = logging.getLogger("nacre")
_ALONE = Neighbours((), ())

T = TypeVar("T")


class Selection(NamedTuple):
    """The candidates worth reranking, best first; none where it is off or impossible."""

    best: list[Ranked]
    coverage: float = 1.0  # the share of the query that the reranker's vocabulary knows
    clear: bool = False  # the order is clear: ask only whether they answer
    left_out: Set[str] = frozenset()  # that stand too far behind
    notes: tuple[str, ...] = ()


class Reranked(NamedTuple):
    """The ranking with the reranker's shares. `leads` is empty where nothing was reranked."""

    ranked: list[Ranked]
    leads: Mapping[str, float]  # by id, how far above the lowest score
    answers: Mapping[str, float]  # by id, the log-odds that the text answers; empty where the reranker cannot say
    unread: Set[str] = frozenset()  # those that there was no time for
    notes: tuple[str, ...] = ()


class TimeLimit:
    """Allows one text after the other until time is up, but `READ_MIN` in any case.

    The time begins with the first text: loading the model is not part of it. `seconds` may be infinite.
    """

    def __init__(self, seconds: float, timer: Callable[[], float]) -> None:
        self.allowed = 0  # texts
        self._seconds = seconds
        self._timer = timer
        self._end: float | None = None

    def goes_on(self) -> bool:
        now = self._timer()
        if self._end is None:
            self._end = now + self._seconds
        if self.allowed >= READ_MIN and now >= self._end:
            return False
        self.allowed += 1
        return True


class Race(NamedTuple):
    """The texts of a fast reranking, which are read until no further one can come among the first places."""

    sums: Sequence[float]  # before reranking, best first
    share: float  # what one point of a score adds
    score_max: float  # that a text can have
    places: int

    def texts_needed(self, scores: Sequence[float]) -> int:
        """How many are to be read, as far as the scores of the first tell: all, unless the first places are settled."""
        for read in range(min(READ_USUALLY, len(self.sums)), len(scores) + 1):
            if rerank.settled(self.sums, scores[:read], self.share, self.score_max, self.places):
                return read
        return len(self.sums)


class RerankStage:
    """Asks the reranker. Keeps recent scores. `timer` gives seconds."""

    def __init__(self, reranker: Reranker | None, timer: Callable[[], float]) -> None:
        self._reranker = reranker
        self._timer = timer
        self._preloaded = False
        self._scores: LruCache[tuple[str, RerankText], RerankScore] = LruCache(SCORES_CACHED)

    def preload(self, plan: SearchPlan) -> None:
        """Let the model load, once, while the candidates are searched. `rerank` reports what goes wrong."""
        preload = getattr(self._reranker, "preload", None)
        if preload is not None and not self._preloaded and _wanted(plan) and not plan.further:
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
        recipe, fast = plan.recipe, plan.request.rerank == "fast"
        best = ranked[: recipe.rerank_few if fast else recipe.rerank_pool]
        if fast and any(reason.signal == "maxsim" for reason in ranked[0].reasons):
            # Once compared token by token, what is far behind hardly comes first.
            read = max(READ_USUALLY, rerank.close_to_first(best, recipe.tuning.compared_share))
            return Selection(list(best[:read]), coverage, left_out={each.id for each in best[read:]})
        clear = rerank.is_clear(ranked, recipe.tuning.clear_share)
        return Selection(list(best[:READ_USUALLY] if clear else best), coverage, clear)

    def rerank(
        self, plan: SearchPlan, ranked: Sequence[Ranked], texts: Mapping[str, RerankText], selection: Selection
    ) -> Reranked:
        """Add each scored text's share, unless the order is clear. A reranker that fails leaves the order as it is,
        with a note. `texts` are given best first."""
        reranker, query = self._reranker, plan.query.meaning
        assert reranker is not None
        if not texts:  # purged since the channels looked
            return Reranked(list(ranked), {}, {})
        prose = [rerank.prose_share(text.text) for text in texts.values()]
        understood = selection.coverage * sum(prose) / len(prose)
        race = self._race(plan, ranked, texts, selection, understood)
        said, notes = _attempt(lambda: self._score(reranker, query, texts, self._time_limit(plan), race))
        if not said:
            return Reranked(list(ranked), {}, {}, notes=notes)
        leading = [one.score for one in rerank.leading(texts, said).values()]
        # Another thread may have read on before the places were settled. It must not count: equal searches are equal.
        needed = list(texts)[: race.texts_needed(leading) if race else None]
        answers = {each: value for each in needed if each in said and (value := said[each].answers) is not None}
        unread = set(needed) - said.keys()
        if selection.clear:
            return Reranked(list(ranked), {}, answers, unread)
        scores = dict(zip(needed, leading, strict=False))
        out = selection.left_out | (texts.keys() - set(needed))
        reranked = rerank.reranked(
            ranked, scores, plan.recipe.rerank_weight, understood, set(needed) - scores.keys(), out
        )
        return Reranked(reranked, rerank.leads(reranked), answers, unread)

    def _race(
        self,
        plan: SearchPlan,
        ranked: Sequence[Ranked],
        texts: Mapping[str, RerankText],
        selection: Selection,
        coverage: float,
    ) -> Race | None:
        """None if all texts are to be read, or if the reranker does not know how high its scores can be."""
        places, score_max = plan.recipe.tuning.settled_places, getattr(self._reranker, "score_max", None)
        if plan.request.rerank != "fast" or selection.clear or not places or score_max is None:
            return None
        sums = [each.score for each in ranked if each.id in texts]
        behind = [each.score for each in ranked if each.id in selection.left_out]
        share = rerank.share_of_a_point([*sums, *behind], plan.recipe.rerank_weight, coverage)
        return Race(sums, share, score_max, places)

    def _time_limit(self, plan: SearchPlan) -> TimeLimit | None:
        """None for a full reranking, which reads everything."""
        if plan.request.rerank != "fast":
            return None
        milliseconds = plan.recipe.rerank_ms or math.inf
        return TimeLimit(milliseconds / 1000, self._timer)

    def _score(
        self,
        reranker: Reranker,
        query: str,
        texts: Mapping[str, RerankText],
        limit: TimeLimit | None,
        race: Race | None,
    ) -> dict[str, RerankScore]:
        """Scores by id, of as many as there is time and need for. Only texts without a cached score are given to the
        model."""
        cached = {text: self._scores.get((query, text)) for text in texts.values()}
        scores = {text: score for text, score in cached.items() if score is not None}
        new = [text for text, score in cached.items() if score is None]

        def is_over(found: Sequence[RerankScore]) -> bool:
            if race is None:
                return False
            known = scores | dict(zip(new, found, strict=False))
            leading = [known[text].score for text in takewhile(known.__contains__, texts.values())]
            return race.texts_needed(leading) <= len(leading)

        if new and not is_over(()):
            found = _new_scores(reranker, query, new, limit, is_over)
            scores |= found
            for text, score in found.items():
                self._scores.put((query, text), score)
        return {each: scores[text] for each, text in texts.items() if text in scores}


def rerank_texts(
    best: Sequence[Ranked],
    memories: Mapping[str, Memory],
    stated: Mapping[str, str],
    neighbours: Mapping[str, Neighbours],
    terms: highlight.HighlightTerms,
) -> dict[str, RerankText]:
    """What the reranker gets of each memory: its text, or the best window of it, and the turns next to it.

    Long texts cost more time, so fewer of them are scored. Neighbours that are not among `memories` are left out.
    `stated` are the relations by which some were found; they stand before their texts.
    """

    def text_of(memory_id: str) -> str:
        text = memories[memory_id].text
        return f"{stated[memory_id]}. {text}" if memory_id in stated else text

    def beginning(ids: Sequence[str]) -> str:
        return "".join(text_of(each)[:WHOLE_CHARS] for each in ids if each in memories)

    texts: dict[str, RerankText] = {}
    chars = 0
    for each in best:
        if each.id not in memories:  # purged since the channels looked
            continue
        near = neighbours.get(each.id, _ALONE)
        window = _window(text_of(each.id), terms, each.semantic.span if each.semantic else None)
        chars += len(window)
        if chars > RERANKED_CHARS:
            break
        texts[each.id] = RerankText(window, beginning(near.before[-1:]), beginning(near.after[:1]))
    return texts


def _new_scores(
    reranker: Reranker,
    query: str,
    texts: Sequence[RerankText],
    limit: TimeLimit | None,
    is_over: Callable[[Sequence[RerankScore]], bool],
) -> dict[RerankText, RerankScore]:
    """What the model says of these texts, or of the first of them. A reranker that cannot stop early gets them all."""
    scores_while = getattr(reranker, "scores_while", None)
    if limit is None or scores_while is None:
        return dict(zip(texts, reranker.scores(query, texts), strict=True))
    found = scores_while(query, texts, lambda scores: not is_over(scores) and limit.goes_on())
    return dict(zip(texts[: limit.allowed], found, strict=True))


def _wanted(plan: SearchPlan) -> bool:
    return bool(plan.request.rerank) and plan.recipe.rerank_weight > 0 and plan.is_hybrid


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
