"""Contexts: what is known of a question, in its newest version, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from nacre import validation
from nacre.engine.calendar import local_date
from nacre.engine.parts import Parts
from nacre.engine.recall_log import RecallLog
from nacre.engine.searcher import Searcher
from nacre.facts.confidence import is_current
from nacre.ranking import token_budget
from nacre.types.facts import Fact
from nacre.types.memory import Memory, Span
from nacre.types.recall_log import Delivery
from nacre.types.search import Hit, SearchRequest
from nacre.types.views import Context, ContextRequest, LeftOut, Quoted

if TYPE_CHECKING:  # no other verb needs it
    from nacre.ranking.context_packing import Candidate

HITS_MAX = 50  # of the search that a context is made of
SUCCESSORS_MAX = 20  # values that a fact may have had since
_SAID_SHARE = 0.5  # of a text that its facts are quoted from: then it says little else


@dataclass(frozen=True, slots=True)
class _Choice:
    """A memory that may be quoted."""

    memory: Memory
    relevance: float
    score: float  # as a share of the best
    hit: Hit | None = None  # None: it replaces others
    instead_of: tuple[str, ...] = ()
    now: tuple[Fact, ...] = ()  # current facts in place of some that the text states


@dataclass(slots=True)
class _Choices:
    known: dict[str, _Choice] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)


class ContextBuilder:
    """Packs the best memories for a question into a budget of tokens."""

    def __init__(self, parts: Parts, searcher: Searcher, log: RecallLog) -> None:
        self._parts = parts
        self._store = parts.store
        self._searcher = searcher
        self._log = log

    def build(self, asked: ContextRequest) -> Context:
        request = validation.context(asked, self._parts.access, self._parts.limits)
        search = SearchRequest(
            query=request.query,
            limit=min(HITS_MAX, self._parts.limits.results_max),
            where=asked.where,
            session=request.session,
            folder=request.folder,
            min_score=request.min_score,
            as_of=request.as_of,
        )
        done, result, delivered = self._searcher.search(search)
        found = self._newest(result.hits, search)
        opened = {} if request.repeat or delivered is None else delivered
        for memory_id in [each for each in found.known if opened.get(each)]:
            del found.known[memory_id]
            found.left_out.append(LeftOut(memory_id, "delivered"))
        from nacre.ranking.context_packing import pack

        packed = pack(
            [self._candidate(each) for each in found.known.values()], request.budget_tokens, self._counter(request)
        )
        quoted = tuple(
            Quoted(each.id, found.known[each.id].relevance, each.excerpt, found.known[each.id].instead_of)
            for each in packed.items
        )
        now = self._parts.clock()
        deliveries = [
            Delivery(each.id, rank, each.relevance, opened=None if each.excerpt else now)
            for rank, each in enumerate(quoted, 1)
        ]
        receipt = self._log.log(done, result.lens, deliveries)
        without_room = tuple(LeftOut(each, "budget") for each in packed.left_out)
        return Context(packed.text, packed.tokens, quoted, without_room + tuple(found.left_out), result.notes, receipt)

    def _newest(self, hits: Sequence[Hit], search: SearchRequest) -> _Choices:
        """The memories found; one that states only superseded facts is replaced by those that state the current ones.

        A memory that the search may not find replaces nothing: only that something newer exists is known.
        """
        now = search.as_of or self._parts.clock()
        since = self._since([fact for hit in hits for fact in hit.facts if fact.superseded_by], now)
        newer = self._store.get(list({fact.memory_id for fact in since.values()}))
        matching = self._searcher.matching(search, list(newer))
        best = max((hit.score for hit in hits), default=0.0) or 1.0
        found = _Choices()
        for hit in hits:
            past = [fact for fact in hit.facts if fact.id in since]
            successors = [since[fact.id] for fact in past if since[fact.id].memory_id in matching]
            relevance, score = hit.relevance or 0.0, hit.score / best
            if not past or not _says_little_else(hit, past):
                self._add(found, _Choice(hit.memory, relevance, score, hit, now=tuple(successors)))
                continue
            found.left_out.append(LeftOut(hit.id, "superseded"))
            for memory_id in dict.fromkeys(fact.memory_id for fact in successors):
                self._add(found, _Choice(newer[memory_id], relevance, score, None, (hit.id,)))
        return found

    @staticmethod
    def _add(found: _Choices, new: _Choice) -> None:
        """Add a memory, or merge it with what is known of it: the higher relevance, and all that it replaces."""
        old = found.known.get(new.memory.id)
        if old is not None:
            new = _Choice(
                old.memory,
                max(old.relevance, new.relevance),
                max(old.score, new.score),
                old.hit or new.hit,
                (*old.instead_of, *new.instead_of),
                old.now or new.now,
            )
        found.known[new.memory.id] = new

    def _since(self, past: Sequence[Fact], now: datetime) -> dict[str, Fact]:
        """By id, for each superseded fact the current one that replaces it, as far as was known then."""
        latest = {fact.id: fact for fact in past if fact.valid_to is not None and fact.valid_to <= now}
        followed: dict[str, Fact] = {}
        for _ in range(SUCCESSORS_MAX):
            named = {each.superseded_by for each in latest.values() if each.superseded_by is not None}
            followed |= self._known_then([each for each in named if each not in followed], now)
            following = {each: followed.get(fact.superseded_by or "", fact) for each, fact in latest.items()}
            if following == latest:
                break
            latest = following
        return {
            each: fact
            for each, fact in latest.items()
            if fact.id != each and (is_current(fact, now) or (fact.superseded_by or fact.id) not in followed)
        }

    def _known_then(self, ids: Sequence[str], now: datetime) -> dict[str, Fact]:
        """Facts that had begun, and that memories of that time stated."""
        facts = [each for each in self._store.facts_by_id(ids) if each.valid_from <= now] if ids else []
        memories = self._store.get([each.memory_id for each in facts])
        return {each.id: each for each in facts if memories[each.memory_id].created <= now}

    def _candidate(self, known: _Choice) -> Candidate:
        from nacre.ranking.context_packing import Candidate

        hit, memory = known.hit, known.memory
        return Candidate(
            id=memory.id,
            date=self._date(memory.happened or memory.created),
            text=memory.text,
            relevance=known.score,  # the order is the ranking's; relevance only decides what is in it
            span=None if hit is None else Span(hit.snippet.start, hit.snippet.start + len(hit.snippet.text)),
            focus=()
            if hit is None
            else tuple(Span(hit.snippet.start + at.start, hit.snippet.start + at.end) for at in hit.snippet.highlights),
            notes=tuple(
                f"now: {fact.subject} {fact.predicate} {fact.object} ({fact.memory_id}, {self._date(fact.valid_from)})"
                for fact in known.now
            ),
        )

    def _date(self, moment: datetime) -> str:
        return local_date(moment, self._parts.zone).isoformat()

    def _counter(self, request: ContextRequest) -> Callable[[str], int]:
        """Word pieces, or a token for each four bytes where that is more: in a script that the model does not know,
        a whole line is one piece."""
        embedder = self._parts.embedder
        if request.count is not None:
            return request.count
        if embedder is None:
            return token_budget.tokens
        return lambda text: max(sum(pieces for _, pieces in embedder.weigh(text)), token_budget.tokens(text))


def _says_little_else(hit: Hit, past: Sequence[Fact]) -> bool:
    """Whether a memory has nothing left to say once these facts hold no longer."""
    if len(past) < len(hit.facts):
        return False
    quoted = sum(map(len, {fact.quote or fact.object for fact in past}))  # one sentence may state several
    return hit.memory.kind == "fact" or quoted >= _SAID_SHARE * len(hit.memory.text)
