"""Rankings by hand: memories with a score, and factors that act on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose

from hypothesis import strategies as st

from nacre.ranking import scoring
from nacre.types.search import Ranked, Reason


def summed(memory_id: str, share: float, *factors: float) -> Ranked:
    """A memory with one share and some factors."""
    reasons = (Reason("lexical", "add", share, {}), *(Reason("usage", "multiply", each, {}) for each in factors))
    return Ranked(memory_id, scoring.score(reasons), reasons, None, None)


def rounded(ranked: Sequence[Ranked]) -> Mapping[str, float]:
    """Scores by id, in the order given."""
    return {each.id: round(each.score, 6) for each in ranked}


def is_sum_of_reasons(ranked: Ranked) -> bool:
    return isclose(ranked.score, scoring.score(ranked.reasons), rel_tol=1e-9)


IDS = "abcdefgh"
# Any ranking, best first, with factors as boosts give them.
RANKINGS = st.lists(
    st.tuples(st.floats(0.001, 10), st.lists(st.floats(0.5, 1.5), max_size=3)), min_size=1, max_size=len(IDS)
).map(
    lambda each: scoring.best_first(
        summed(name, share, *factors) for name, (share, factors) in zip(IDS, each, strict=False)
    )
)
