"""The best of a search are read again together with the question, each with what stands next to it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nacre.ports import Placed, Reranker, Store
from nacre.query.tree import Question, Term, restricted
from nacre.ranking import echo, rerank
from nacre.text import snippets
from nacre.types import Ranked, SearchRequest, Span
from nacre.views import Beside

WHOLE_CHARS = 600  # of a text that is read as it is
WINDOW_CHARS = 400  # of a longer one
READ_CHARS = 6_000  # of all texts together: 30 short ones, or 15 long ones
SCORES_CACHED = 4_096

_log = logging.getLogger("nacre")

T = TypeVar("T")


class Reranking:
    """Reads again. Holds nothing but a cache of scores."""

    def __init__(self, store: Store, reranker: Reranker | None) -> None:
        self._store = store
        self._reranker = reranker
        self._scores: OrderedDict[tuple[str, Placed], float] = OrderedDict()
        self._lock = threading.Lock()

    def reranked(
        self,
        request: SearchRequest,
        question: Question,
        ranked: Sequence[Ranked],
        weights: Mapping[Term, float],
        notes: list[str],
    ) -> list[Ranked]:
        """With what reading the best again tells, where both words and meaning were asked for. They are given best
        first; `weights` say how much each term of the question tells."""
        recipe, reranker = request.recipe, self._reranker
        wanted = request.rerank and recipe.rerank_weight > 0 and recipe.alpha not in (0, 1)
        if reranker is None or not wanted or not question.meaning.strip() or rerank.clear(ranked):
            return list(ranked)
        known = _tried(lambda: reranker.known(question.meaning), notes)
        if known is None or not rerank.readable(known):
            return list(ranked)
        texts = self._texts(request, question, ranked[: recipe.rerank_pool], weights)
        scores = _tried(lambda: self._read(reranker, question.meaning, texts), notes)
        if scores is None:
            return list(ranked)
        plain = [rerank.plain(texts[each].text) for each in scores]
        return rerank.reranked(ranked, scores, recipe.rerank_weight, known * sum(plain) / max(len(plain), 1))

    def _texts(
        self, request: SearchRequest, question: Question, best: Sequence[Ranked], weights: Mapping[Term, float]
    ) -> dict[str, Placed]:
        """What is read of each, with what stands next to it as far as the search may see that. Long texts cost more
        time, so fewer of them are read."""
        ids = [each.id for each in best]
        beside = self._store.beside(ids, 1, 1)
        new = echo.hearing(beside).difference(ids)
        seen = self._store.meeting(list(new), restricted(request.where, question.must)) if new else set()
        memories = self._store.get([*ids, *seen])

        def beginning(neighbours: Sequence[str]) -> str:
            return "".join(memories[each].text[:WHOLE_CHARS] for each in neighbours if each in memories)

        texts: dict[str, Placed] = {}
        chars = 0
        for each in best:
            if each.id not in memories:  # purged since the channels looked
                continue
            near = beside.get(each.id, Beside((), ()))
            span = each.semantic.span if each.semantic else None
            window = _window(memories[each.id].text, weights, span)
            chars += len(window)
            if chars > READ_CHARS:
                break
            texts[each.id] = Placed(window, beginning(near.before), beginning(near.after))
        return texts

    def _read(self, reranker: Reranker, question: str, texts: Mapping[str, Placed]) -> dict[str, float]:
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


def _tried(call: Callable[[], T], notes: list[str]) -> T | None:
    """What the reranker says. Whatever its runtime raises, the order there is still answers."""
    try:
        return call()
    except Exception as error:
        _log.warning("the reranker failed (%s): ranked without reading again", error)
        notes.append(f"the reranker failed: ranked without reading again ({error})")
        return None


def _window(text: str, weights: Mapping[Term, float], passage: Span | None) -> str:
    """The part of a text that has the words of the question, or is near its meaning."""
    return text if len(text) <= WHOLE_CHARS else snippets.snippet(text, weights, passage, WINDOW_CHARS).text
