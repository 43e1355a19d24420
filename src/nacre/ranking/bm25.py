"""BM25, exactly: one formula that every store scores with."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from nacre.query.ast import Term
from nacre.types.recipe import Recipe
from nacre.types.stats import Frequencies

COMMON_SHARE = 0.5  # of the documents that a common word counts as standing in, at the least


def idf(documents: int, with_term: float, *, common: bool = False) -> float:
    """How much a term tells: rare ones much, frequent ones little, never less than nothing.

    Few notes say "did" or "where", but questions do: words like these must not decide because they are rare here.
    """
    if common:
        with_term = max(with_term, COMMON_SHARE * documents)
    return log(1 + (documents - with_term + 0.5) / (with_term + 0.5))


def weights(terms: Sequence[Term], frequencies: Frequencies) -> dict[Term, float]:
    """How much each term that occurs tells. How often a prefix occurs is not known: it tells as much as the best."""
    having = frequencies.having
    known = {
        term: 0.0 if term.common else idf(frequencies.memories, having[term.text])
        for term in terms
        if term.text in having and not term.prefix
    }
    most = max(known.values(), default=1.0)
    return {term: known.get(term, most) for term in terms if term in known or term.prefix}


def bm25(counts: Sequence[float], idfs: Sequence[float], length: int, mean_length: float, recipe: Recipe) -> float:
    """The score of one text: `counts[i]` occurrences of a term that tells `idfs[i]`.

    A text of ten words is not verbose beside one of five, but one of a thousand is beside one of five hundred:
    so every length is padded by a few words before it is compared with the mean.
    """
    k1, b, padding = recipe.tuning.bm25_k1, recipe.tuning.bm25_b, recipe.tuning.bm25_padding
    padded_mean = mean_length + padding
    damping = k1 * (1 - b + b * (length + padding) / padded_mean) if padded_mean else k1
    score = 0.0  # not `sum`, which rounds otherwise in newer versions of Python than an array does
    for count, idf in zip(counts, idfs, strict=True):
        if count:
            score += idf * count * (k1 + 1) / (count + damping)
    return score
