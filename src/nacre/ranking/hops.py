"""A second look: what the first hits name and the question does not, such as a person, a project or a ticket.

"Who do I call about the boiler?" finds "the boiler is under the Wärmeplus contract"; only that text leads to the memory
with Wärmeplus's number. The names must be rare: a name that many memories have leads nowhere in particular.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from nacre.analysis import stopwords, tokenizer
from nacre.query.identifiers import codes, fold
from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason

ASKED_MIN = 3  # words of a query: a shorter one asks for just these words
FROM = 2  # the first hits, whose names are followed
NAMES_MAX = 8
RARE_MIN = 4  # memories that a rare name may have in a small store
RARE_SHARE = 0.01  # of the memories, in a large one
FOUND_MAX = 10  # memories that a second look brings in
_BEHIND = 0.95  # share of a hit's score that what it leads to has at the most
_CHARS_MAX = 1_000  # of a text whose names are followed: a longer one names much that the query is not about
_SPEAKER = re.compile(r"\A[^\W\d_][^:\n]{0,30}:\s")  # who says it is not what is said
_CAPITALISED = re.compile(r"(?<![\w'’.-])[^\W\d_a-zß-öø-ÿ][\w'’-]+")


class Name(NamedTuple):
    """A name or identifier in a text, and the tokens by which it is looked up."""

    text: str
    tokens: tuple[str, ...]

    def stands_in(self, text: str) -> bool:
        """With its capitals, so that a name at the beginning of a sentence is told from a word."""
        # Most texts do not have it, and compiling a pattern for each name would take longer than all else here.
        return self.text in text and re.search(rf"(?<!\w){re.escape(self.text)}(?!\w)", text) is not None


def names_in(text: str, asked: Set[str]) -> list[Name]:
    """Capitalised words and identifiers of a text that are not among the tokens asked for, each once, in order.

    None of a long text.
    """
    if len(text) > _CHARS_MAX:
        return []
    read = _SPEAKER.sub("", text)
    words = [re.sub(r"['’]s?$", "", each.group()) for each in _CAPITALISED.finditer(read)]
    found: dict[str, Name] = {}
    for each in [*(each.text for each in codes(read)), *words]:
        tokens = tuple(tokenizer.query_tokens(each))
        if len(each) > 2 and tokens and fold(each) not in stopwords.WORDS and asked.isdisjoint(tokens):
            found.setdefault(fold(each), Name(each, tokens))
    return list(found.values())


def rare(names: Sequence[Name], having: Mapping[str, int], memories: int) -> list[Name]:
    """Those that a few other memories have, the rarest first."""
    most = max(RARE_MIN, int(RARE_SHARE * memories))
    counted = [(min(having.get(token, 0) for token in each.tokens), each) for each in names]
    return [each for count, each in sorted(counted, key=lambda pair: pair[0]) if 2 <= count <= most][:NAMES_MAX]


def followed(ranked: Sequence[Ranked], found: Iterable[tuple[str, str, float]], weight: float) -> list[Ranked]:
    """Add a share to each memory that was found by a name: a part of the score of the hit that has the name.

    `found` has the memory, the name, and the score of that hit. Memories that no channel found come in by it. A memory
    does not come before the hit that led to it, unless it stood there already.
    """
    best: dict[str, float] = {}
    names: dict[str, set[str]] = {}
    for memory_id, name, score in found:
        best[memory_id] = max(best.get(memory_id, 0.0), score)
        names.setdefault(memory_id, set()).add(name)
    if not best:
        return list(ranked)
    scores = {each.id: each.score for each in ranked}
    reasons = {
        each: Reason("hop", "add", share, {"names": float(len(names[each]))})
        for each, score in best.items()
        if (share := min(weight * score, _BEHIND * score - scores.get(each, 0.0))) > 0 or each not in scores
    }
    raised = [scoring.with_share(each, reasons[each.id]) if each.id in reasons else each for each in ranked]
    alone = [
        Ranked(each, reason.value, (reason,), None, None) for each, reason in reasons.items() if each not in scores
    ]
    return scoring.best_first(raised + alone)
