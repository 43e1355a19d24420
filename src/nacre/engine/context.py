"""Contexts: what is known of a question, as it holds now, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from nacre import validation
from nacre.analysis import quoting
from nacre.engine.calendar import local_date
from nacre.engine.hits import plain_hit
from nacre.engine.parts import Parts
from nacre.engine.plan import SearchPlan
from nacre.engine.recall_log import RecallLog
from nacre.engine.searcher import Searcher
from nacre.engine.successors import is_about, says_little_else
from nacre.errors import EmbedderError, InvalidInput
from nacre.facts.confidence import is_current
from nacre.ranking import token_budget
from nacre.types.facts import Fact
from nacre.types.memory import Span
from nacre.types.recall_log import Delivery
from nacre.types.recipe import adjusted
from nacre.types.search import Hit, SearchRequest, SearchResult
from nacre.types.views import Context, ContextOutcome, ContextRequest, LeftOut, Quoted

if TYPE_CHECKING:  # no other verb needs it
    from nacre.ranking.context_packing import Candidate, Packed

HITS_MAX = 50  # of the search that a context is made of
SHARE = 0.45  # of the best score: what has less is beside the question
PINNED_MAX = 5  # the newest
FACTS_MAX = 3  # that a context may begin with
DELIVERED_NAMED = (3, 1, 0)  # ids in the line that says what was delivered before: as many as there is room for
DELIVERED_SHARE = 0.15  # of the budget, for that line
LONG_CHARS = 600  # a text longer than this is quoted in part, and its facts may be elsewhere in it


@dataclass(frozen=True, slots=True)
class _Choice:
    """A memory that may be quoted."""

    hit: Hit
    score: float  # as a share of the best
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
        self._searcher = searcher
        self._log = log

    def build(self, asked: ContextRequest) -> Context:
        request = validation.context(asked, self._parts.access, self._parts.limits)
        search = SearchRequest(
            query=request.query,
            limit=min(HITS_MAX, self._parts.limits.results_max),
            where=asked.where,
            # What is quoted depends on more than the first hit.
            recipe=adjusted(validation.recipe(request.recipe, self._parts.limits), settled_places=0),
            session=request.session,
            folder=request.folder,
            min_score=0.0 if request.min_score is None else request.min_score,
            as_of=request.as_of,
            rerank=request.rerank,
            origin=request.origin,
        )
        done, result, delivered = self._searcher.search(search)
        plan = self._searcher.plan(search)
        found = self._choices(result, request, plan)
        if found.known and request.min_score is None:
            self._add_pinned(found, plan)
        opened = {} if request.repeat or delivered is None else delivered
        for memory_id in [each for each in found.known if opened.get(each)]:
            del found.known[memory_id]
            found.left_out.append(LeftOut(memory_id, "delivered"))
        facts = self._facts(result, found, plan) if request.min_score is None else []
        packed = self._packed(found, facts, request)
        quoted = tuple(
            Quoted(each.id, found.known[each.id].hit.relevance or 0.0, each.excerpt, found.known[each.id].instead_of)
            for each in packed.items
        )
        stated = dict.fromkeys(fact.memory_id for fact in facts) if packed.facts else {}
        best = max((each.relevance for each in quoted), default=0.0)
        quoted += tuple(Quoted(each, best, excerpt=True) for each in stated if each not in {one.id for one in quoted})
        now = self._parts.clock()
        deliveries = [
            Delivery(each.id, rank, each.relevance, opened=None if each.excerpt else now)
            for rank, each in enumerate(quoted, 1)
        ]
        receipt = self._log.log(done, result.lens, deliveries, repeat=request.repeat)
        left_out = (*(LeftOut(each, "budget") for each in packed.left_out), *found.left_out)
        outcome = _outcome(quoted, left_out)
        text, tokens = self._said(request, packed, outcome, left_out)
        return Context(text, tokens, quoted, left_out, result.notes, receipt, outcome)

    def _choices(self, result: SearchResult, request: ContextRequest, plan: SearchPlan) -> _Choices:
        """The hits that bear on the question. Of what was superseded, only its successor is among them."""
        found, hits = _Choices(), result.hits
        best = max((hit.score for hit in hits), default=0.0) or 1.0
        if request.min_score is None:
            if not result.answerable:
                return found
            hits = tuple(hit for hit in hits if hit.score >= SHARE * best)
        past = [fact for hit in hits for fact in hit.facts if fact.superseded_by]
        current = self._searcher.successors.current(past, plan.now) if past else {}
        # Of a memory that the search may not find, only that something newer exists is known.
        matching = self._searcher.matching(plan, list({fact.memory_id for fact in current.values()}))
        older: dict[str, list[str]] = {}
        for hit in hits:
            since = [current[fact.id] for fact in hit.facts if fact.id in current]
            elsewhere = tuple(fact for fact in since if fact.memory_id != hit.id and fact.memory_id in matching)
            if hit.superseded_by is not None and not _says_more(hit, current, elsewhere):
                older.setdefault(hit.superseded_by.id, []).append(hit.id)
                found.left_out.append(LeftOut(hit.id, "superseded"))
            else:
                found.known[hit.id] = _Choice(hit, hit.score / best, (), elsewhere)
        for successor, several in older.items():
            if successor in found.known:
                found.known[successor] = replace(found.known[successor], instead_of=tuple(several))
        return found

    def _add_pinned(self, found: _Choices, plan: SearchPlan) -> None:
        """Pinned memories come after what answers, as far as there is room."""
        known = {*found.known, *(each.id for each in found.left_out)}
        for memory in self._searcher.pinned(plan, PINNED_MAX):
            if memory.id not in known:
                found.known[memory.id] = _Choice(plain_hit(memory), SHARE)

    def _facts(self, result: SearchResult, found: _Choices, plan: SearchPlan) -> list[Fact]:
        """Current facts that state what is asked, of memories that are not quoted or too long to be quoted whole."""
        asked, now = plan.significant_words, plan.now
        listed = [each.fact for each in result.relations] + [fact for hit in result.hits for fact in hit.facts]
        stating = [
            fact
            for fact in dict.fromkeys(listed)
            if is_current(fact, now)
            and is_about(fact, asked)
            and (fact.memory_id not in found.known or len(found.known[fact.memory_id].hit.text) > LONG_CHARS)
        ]
        left = {each.id for each in found.left_out}
        return [fact for fact in stating if fact.memory_id not in left][:FACTS_MAX] if found.known else []

    def _packed(self, found: _Choices, facts: Sequence[Fact], request: ContextRequest) -> Packed:
        """What fits into the budget. If something was delivered before, the last line says so, if it fits as well."""
        from nacre.ranking.context_packing import pack

        count = self._counter(request)
        candidates = [self._candidate(each) for each in found.known.values()]
        lines = [quoting.fact_line(fact.statement, fact.memory_id, self._date(fact.valid_from)) for fact in facts]
        delivered = [each.id for each in found.left_out if each.why == "delivered"]
        if candidates and delivered:
            for named in DELIVERED_NAMED:
                last = quoting.delivered_line(delivered, named)
                tokens = count(f"\n{last}")
                if tokens > request.budget_tokens * DELIVERED_SHARE:
                    continue
                packed = pack(candidates, request.budget_tokens - tokens, count, lines)
                text = f"{packed.text}\n{last}"
                whole = count(text)
                if packed.items and whole <= request.budget_tokens:
                    return replace(packed, text=text, tokens=whole)
        return pack(candidates, request.budget_tokens, count, lines)

    def _said(
        self, request: ContextRequest, packed: Packed, outcome: ContextOutcome, left_out: Sequence[LeftOut]
    ) -> tuple[str, int]:
        """The text, or where nothing is quoted one line that says why, if that fits."""
        if outcome == "answered":
            return packed.text, packed.tokens
        count = self._counter(request)
        for line in quoting.empty_lines(outcome, [each.id for each in left_out if each.why == outcome]):
            tokens = count(line)
            if tokens <= request.budget_tokens:
                return line, tokens
        return packed.text, packed.tokens

    def _candidate(self, known: _Choice) -> Candidate:
        from nacre.ranking.context_packing import Candidate

        hit, memory = known.hit, known.hit.memory
        start = hit.snippet.start
        return Candidate(
            id=memory.id,
            date=self._date(memory.moment),
            text=memory.text,
            relevance=known.score,  # the order is the ranking's; relevance only decides whether anything answers
            span=Span(start, start + len(hit.snippet.text)),
            focus=tuple(Span(start + at.start, start + at.end) for at in hit.snippet.highlights),
            notes=tuple(
                f"now: {fact.statement} ({fact.memory_id}, {self._date(fact.valid_from)})" for fact in known.now
            ),
        )

    def _date(self, moment: datetime) -> str:
        return local_date(moment, self._parts.zone).isoformat()

    def tokens(self, text: str) -> int:
        """Word pieces, or a token for each four bytes where that is more: in a script that the model does not know,
        a whole line is one piece."""
        validation.any_text("text", text)
        return max(self._pieces(text), token_budget.tokens(text))

    def _pieces(self, text: str) -> int:
        """0 where there is no model, or one that cannot be used: what is known is given all the same."""
        embedder = self._parts.embedder
        try:
            return 0 if embedder is None else sum(pieces for _, pieces in embedder.weigh(text))
        except EmbedderError:
            return 0

    def _counter(self, request: ContextRequest) -> Callable[[str], int]:
        return self.tokens if request.count is None else _checked_counter(request.count)


def _checked_counter(count: Callable[[str], int]) -> Callable[[str], int]:
    """A caller's counter. Budgets are compared with what it gives."""

    def checked(text: str) -> int:
        number = count(text)
        if not isinstance(number, int | float) or number != number:  # NaN fits no budget
            raise InvalidInput("count", f"gives {validation.shown(number)} for a text; a number is needed")
        return number

    return checked


def _says_more(hit: Hit, current: Mapping[str, Fact], elsewhere: Sequence[Fact]) -> bool:
    """Whether a memory is superseded in some of its facts only. Then it is quoted, with what holds now."""
    by_facts = hit.superseded_by is not None and hit.superseded_by.id in {fact.memory_id for fact in elsewhere}
    past = [fact for fact in hit.facts if fact.id in current]
    return by_facts and not says_little_else(hit.memory, hit.facts, past)


def _outcome(quoted: Sequence[Quoted], left_out: Sequence[LeftOut]) -> ContextOutcome:
    """Why a context is empty: no room is the first thing to change, then what was given before."""
    if quoted:
        return "answered"
    reasons = {each.why for each in left_out}
    return "budget" if "budget" in reasons else "delivered" if "delivered" in reasons else "nothing"
