"""What a memory gains by the number of its passages alone.

A memory's score is that of its best passage. The best of many is high by chance: of two memories about other things,
the one with more passages comes nearer to a question. What the best of n is expected to gain by chance is therefore
taken off the score, before memories of different lengths are compared.
"""

from __future__ import annotations

from functools import lru_cache

from nacre.types.memory import Span
from nacre.types.search import Match

_BLOM = 0.375  # Blom (1958): the best of n lies at the quantile (n - .375) / (n + .25)
_TUKEY = 0.135  # Tukey's lambda: (p^.135 - (1 - p)^.135) / .1975 is the quantile p of a normal distribution
_TUKEY_SCALE = 0.1975


@lru_cache(maxsize=4_096)
def expected_best(passages: int) -> float:
    """The expected maximum of so many draws from a standard normal distribution, to about 0.03.

    0 for one passage, 0.59 for two, 1.05 for four, 1.43 for eight.
    """
    if passages <= 1:
        return 0.0
    quantile = (passages - _BLOM) / (passages + 1 - 2 * _BLOM)
    return float((quantile**_TUKEY - (1 - quantile) ** _TUKEY) / _TUKEY_SCALE)


def gain_by_chance(passages: int, spread: float) -> float:
    """How far the best of so many passages lies above one of them by chance.

    `spread` is the standard deviation of the scores of one memory's passages, on the scale of these scores.
    """
    return spread * expected_best(passages)


def semantic_match(memory_id: str, cosine: float, span: Span, passages: int, passages_weight: float) -> Match:
    """A memory whose best passage has this cosine, scored by what of it is not chance.

    With a weight of .04 a memory of four passages and a cosine of .6 scores .6 - .04 · 1.047 = .558, as much as one of
    a single passage with a cosine of .558.
    """
    less = gain_by_chance(passages, passages_weight)
    return Match(memory_id, cosine - less, span, cosine) if less else Match(memory_id, cosine, span)
