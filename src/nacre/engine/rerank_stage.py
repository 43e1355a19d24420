"""The best of a search are read again together with the question, each with what stands next to it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nacre.analysis import highlight
from nacre.interfaces import Reranker, RerankText, Store
from nacre.query.ast import ParsedQuery, matches_everything, scope_condition
from nacre.ranking import bm25, neighbours, rerank
from nacre.runtime.threads import Threads
from nacre.types.memory import Span
from nacre.types.search import Ranked, SearchRequest
from nacre.types.stats import Frequencies
from nacre.types.views import Neighbours

WHOLE_CHARS = 600  # of a text that is read as it is
WINDOW_CHARS = 400  # of a longer one
READ_CHARS = 6_000  # of all texts together: 30 short ones, or 15 long ones
SCORES_CACHED = 4_096

_log = logging.getLogger("nacre")

T = TypeVar("T")


class RerankStage:
    """Reads again. Holds nothing but a cache of scores."""

    def __init__(self, store: Store, reranker: Reranker | None, threads: Threads) -> None:
        self._store = store
        self._reranker = reranker
        self._threads = threads
        self._expected = False
        self._scores: OrderedDict[tuple[str, RerankText], float] = OrderedDict()
        self._lock = threading.Lock()

    def expect(self, request: SearchRequest) -> None:
        """Begin to load a reranker that takes a while, once, beside a search whose best it may have to read. What goes
        wrong is said when they are read."""
        load = getattr(self._reranker, "load", None)
        if load is not None and not self._expected and _wanted(request):
            self._expected = True
            self._threads.start(load)

    def reranked(
        self,
        request: SearchRequest,
        question: ParsedQuery,
        ranked: list[Ranked],
        frequencies: Frequencies,
        notes: list[str],
    ) -> list[Ranked]:
        """With what reading the best again tells, where both words and meaning were asked for; the list itself where
        nothing was read. They are given best first; `frequencies` are those of the question's words."""
        recipe, reranker = request.recipe, self._reranker
        if reranker is None or not _wanted(request) or not question.meaning.strip() or rerank.clear(ranked):
            return ranked
        known = _tried(lambda: reranker.vocabulary_coverage(question.meaning), notes)
        if known is None or not rerank.readable(known):
            return ranked
        words = highlight.Wanted(bm25.weights(question.terms, frequencies))
        texts = self._texts(request, question, ranked[: recipe.rerank_pool], words)
        scores = _tried(lambda: self._read(reranker, question.meaning, texts), notes)
        if scores is None:
            return ranked
        plain = [rerank.plain(texts[each].text) for each in scores]
        return rerank.reranked(ranked, scores, recipe.rerank_weight, known * sum(plain) / max(len(plain), 1))

    def _texts(
        self, request: SearchRequest, question: ParsedQuery, best: Sequence[Ranked], words: highlight.Wanted
    ) -> dict[str, RerankText]:
        """What is read of each, with what stands next to it as far as the search may see that. Long texts cost more
        time, so fewer of them are read."""
        ids = [each.id for each in best]
        beside = self._store.neighbours(ids, 1, 1)
        new = seen = neighbours.hearing(beside).difference(ids)
        if new and not matches_everything(request.where, question.must):
            seen = self._store.matching(list(new), scope_condition(request.where, question.must))
        memories = self._store.get([*ids, *seen])

        def beginning(neighbours: Sequence[str]) -> str:
            return "".join(memories[each].text[:WHOLE_CHARS] for each in neighbours if each in memories)

        texts: dict[str, RerankText] = {}
        chars = 0
        for each in best:
            if each.id not in memories:  # purged since the channels looked
                continue
            near = beside.get(each.id, Neighbours((), ()))
            span = each.semantic.span if each.semantic else None
            window = _window(memories[each.id].text, words, span)
            chars += len(window)
            if chars > READ_CHARS:
                break
            texts[each.id] = RerankText(window, beginning(near.before), beginning(near.after))
        return texts

    def _read(self, reranker: Reranker, question: str, texts: Mapping[str, RerankText]) -> dict[str, float]:
        """The scores of these. What was read before is not read again."""
        with self._lock:
            known = {text: self._scores[question, text] for text in texts.values() if (question, text) in self._scores}
        new = list(dict.fromkeys(text for text in texts.values() if text not in known))
        if new:
            known |= zip(new, reranker.scores(question, new), strict=True)
        with self._lock:
            for text in known:
                self._scores[question, text] = known[text]
                self._scores.move_to_end((question, text))
            while len(self._scores) > SCORES_CACHED:
                self._scores.popitem(last=False)
        return {each: known[text] for each, text in texts.items()}


def _wanted(request: SearchRequest) -> bool:
    """Whether both words and meaning are asked for, and reading again."""
    return request.rerank and request.recipe.rerank_weight > 0 and request.recipe.alpha not in (0, 1)


def _tried(call: Callable[[], T], notes: list[str]) -> T | None:
    """What the reranker says. Whatever its runtime raises, the order there is still answers."""
    try:
        return call()
    except Exception as error:
        _log.warning("the reranker failed (%s): ranked without reading again", error)
        notes.append(f"the reranker failed: ranked without reading again ({error})")
        return None


def _window(text: str, words: highlight.Wanted, passage: Span | None) -> str:
    """The part of a text that has the words of the question, or is near its meaning."""
    return text if len(text) <= WHOLE_CHARS else highlight.snippet(text, words, passage, WINDOW_CHARS).text
