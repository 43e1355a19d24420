"""Which of the memories found are superseded, and by which memory?

A memory is superseded by one that updates it, or by those that state the current values of its facts, if it says
little else or the query asks for just these facts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import datetime

from nacre.analysis import tokenizer
from nacre.facts.confidence import is_current
from nacre.interfaces import Store
from nacre.types.facts import Fact
from nacre.types.memory import Memory
from nacre.types.search import Signals, Successor

STEPS_MAX = 20  # updates that are followed from one memory to the newest
_SAID_SHARE = 0.5  # of a text that its facts are quoted from: then it says little else


class SuccessorFinder:
    """Follows updates and superseded facts to the memories that hold now."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(
        self,
        signals: Mapping[str, Signals],
        now: datetime,
        asked: Set[str],
        texts: Callable[[Collection[str]], Mapping[str, Memory]],
    ) -> dict[str, Successor]:
        """By id of a superseded memory, what supersedes it as far as was known at `now`.

        `asked` are the significant words of the query. `texts` gives memories by id.
        """
        next_of = _updates(signals, now) | self._by_facts(signals, now, asked, texts)
        if not next_of:
            return {}
        known = set(signals)
        for _ in range(STEPS_MAX):
            new = {each.id for each in next_of.values()} - known
            if not new:
                break
            known |= new
            further = self._store.signals(list(new))
            next_of |= {each: to for each, to in _updates(further, now).items() if each not in next_of}
        found = {each: _last(each, next_of) for each in next_of if each in signals}
        return {each: to for each, to in found.items() if to.id not in next_of}  # not where two update each other

    def current(self, past: Sequence[Fact], now: datetime) -> dict[str, Fact]:
        """By id, for each superseded fact the current one that replaces it, as far as was known then."""
        latest = {fact.id: fact for fact in past if _is_past(fact, now)}
        followed: dict[str, Fact] = {}
        for _ in range(STEPS_MAX):
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

    def _by_facts(
        self,
        signals: Mapping[str, Signals],
        now: datetime,
        asked: Set[str],
        texts: Callable[[Collection[str]], Mapping[str, Memory]],
    ) -> dict[str, Successor]:
        past = {
            each: [fact for fact in known.facts if _is_past(fact, now)]
            for each, known in signals.items()
            if known.facts
        }
        past = {each: facts for each, facts in past.items() if facts}
        if not past:
            return {}
        current = self.current([fact for facts in past.values() for fact in facts], now)
        memories = texts(past.keys())
        found: dict[str, Successor] = {}
        for each, facts in past.items():
            replaced = [fact for fact in facts if fact.id in current and current[fact.id].memory_id != each]
            if replaced and each in memories:
                about = [fact for fact in replaced if is_about(fact, asked)]
                if says_little_else(memories[each], signals[each].facts, facts) or about:
                    latest = max((current[fact.id] for fact in about or replaced), key=lambda fact: fact.valid_from)
                    found[each] = Successor(latest.memory_id, latest.valid_from)
        return found

    def _known_then(self, ids: Sequence[str], now: datetime) -> dict[str, Fact]:
        """Facts that had begun, and that memories of that time stated."""
        facts = [each for each in self._store.facts_by_id(ids) if each.valid_from <= now] if ids else []
        memories = self._store.get([each.memory_id for each in facts])
        return {each.id: each for each in facts if memories[each.memory_id].created <= now}


def says_little_else(memory: Memory, facts: Sequence[Fact], past: Sequence[Fact]) -> bool:
    """Whether a memory has nothing left to say once these facts hold no longer."""
    if len(past) < len(facts):
        return False
    quoted = sum(map(len, {fact.quote or fact.object for fact in past}))  # one sentence may state several
    return memory.kind == "fact" or quoted >= _SAID_SHARE * len(memory.text)


def _is_past(fact: Fact, now: datetime) -> bool:
    return fact.superseded_by is not None and fact.valid_to is not None and fact.valid_to <= now


def is_about(fact: Fact, asked: Set[str]) -> bool:
    """Whether a query names the predicate of a fact, and its subject where that has a name."""
    predicate = _significant(fact.predicate)
    subject = _significant(fact.subject)
    return bool(predicate & asked) and (not subject or bool(subject & asked))


def _significant(text: str) -> set[str]:
    return {token for token in tokenizer.query_tokens(text) if not tokenizer.is_common(token)}


def _updates(signals: Mapping[str, Signals], now: datetime) -> dict[str, Successor]:
    found = {
        each: next((to for to in known.successors if to.since <= now), None)
        for each, known in signals.items()
        if known.successors
    }
    return {each: to for each, to in found.items() if to is not None}


def _last(memory_id: str, next_of: Mapping[str, Successor]) -> Successor:
    """The end of a chain of updates. Two that update each other are not followed any further."""
    seen = {memory_id}
    to = next_of[memory_id]
    while to.id in next_of and to.id not in seen:
        seen.add(to.id)
        to = next_of[to.id]
    return to
