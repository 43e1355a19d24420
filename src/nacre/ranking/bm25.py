"""BM25: the one formula that every store scores with, for single numbers and numpy arrays alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from nacre.query.ast import Term
from nacre.types.recipe import Recipe
from nacre.types.stats import Frequencies

if TYPE_CHECKING:  # keyword search never needs numpy
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.floating[Any]]

COMMON_SHARE = 0.5  # of the documents: a common word counts as occurring in at least this share

# Added to numbers that may be 0, so that 0 occurrences are never divided by 0. It changes no sum with a larger number.
_TINY = 1e-20


def idf(documents: int, with_term: float, *, common: bool = False) -> float:
    """Inverse document frequency: high for rare terms, low for frequent ones, never negative.

    `common` words like "did" or "where" are rare in notes but frequent in questions. They count as frequent.
    """
    if common:
        with_term = max(with_term, COMMON_SHARE * documents)
    return log(1 + (documents - with_term + 0.5) / (with_term + 0.5))


def term_idf(term: Term, documents: int, with_term: float) -> float:
    """What a term of a query weighs. Forms of one word share its weight."""
    return term.share * idf(documents, with_term, common=term.common)


def weights(terms: Sequence[Term], frequencies: Frequencies) -> dict[Term, float]:
    """The idf of each term that occurs. The frequency of a prefix is unknown: it weighs as much as the rarest term."""
    having = frequencies.having
    known = {
        term: 0.0 if term.common else term_idf(term, frequencies.memories, having[term.text])
        for term in terms
        if term.text in having and not term.prefix
    }
    most = max(known.values(), default=1.0)
    return {term: known.get(term, most) for term in terms if term in known or term.prefix}


@overload
def length_damping(length: float, mean_length: float, recipe: Recipe) -> float: ...
@overload
def length_damping(length: Array, mean_length: float, recipe: Recipe) -> Array: ...
def length_damping(length: float | Array, mean_length: float, recipe: Recipe) -> float | Array:
    """The part of BM25's denominator that depends on the length of a text: occurrences count less in longer texts.

    A text of ten words is not verbose beside one of five, but one of a thousand is beside one of five hundred. So a
    few words are added to every length before it is compared with the mean.
    """
    tuning = recipe.tuning
    k1, b, padding = tuning.bm25_k1, tuning.bm25_b, tuning.bm25_padding
    padded_mean = mean_length + padding
    if not padded_mean:  # no text has a word
        return length * 0.0 + (k1 or _TINY)
    return (k1 or _TINY) * (1 - b + _TINY + b * (length + padding) / padded_mean)


@overload
def term_score(idf: float, count: float, damping: float, k1: float) -> float: ...
@overload
def term_score(idf: float | Array, count: Array, damping: Array, k1: float) -> Array: ...
def term_score(idf: float | Array, count: float | Array, damping: float | Array, k1: float) -> float | Array:
    """What `count` occurrences of a term add to the score of a text with this `length_damping`."""
    return idf * count * (k1 + 1) / (count + damping)


def bm25(counts: Sequence[float], idfs: Sequence[float], length: int, mean_length: float, recipe: Recipe) -> float:
    """The score of one text: `counts[i]` occurrences of a term with `idfs[i]`."""
    k1, damping = recipe.tuning.bm25_k1, length_damping(length, mean_length, recipe)
    score = 0.0  # not `sum`: since Python 3.12 it rounds differently from the additions of an array
    for count, weight in zip(counts, idfs, strict=True):
        if count:
            score += term_score(weight, count, damping, k1)
    return score
