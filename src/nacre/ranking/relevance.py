"""How likely a person would call a memory an answer to the question: one scale for all queries, stores and modes.

A score orders one result and says nothing beyond it. A relevance does: it is a logistic regression on what the
channels saw of a memory, and on how far the memory stands out from the other matches. Both are needed: a cosine of
.6 is an answer where the next memory has .4, and a coincidence where fifty memories have .6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

from nacre.query.ast import Term, occurs, significant_terms
from nacre.ranking.bm25 import term_idf
from nacre.types.memory import Tokens
from nacre.types.recipe import Recipe
from nacre.types.search import Found, Match
from nacre.types.stats import Frequencies

CROWD = 10  # the place whose cosine stands for "memories that any such question finds"
UNRELATED = 0.3  # a cosine that texts about different things have: memories below it do not count as others


class Words(NamedTuple):
    """What the words of the question show of one memory."""

    coverage: float  # its BM25 over that of a memory with all significant terms: 0 where it has none of them
    lead: float  # less the coverage of the best other memory: below 0 for all but the first


class Meaning(NamedTuple):
    """What the vectors show of one memory."""

    cosine: float  # of a memory that was not found by meaning, the most that it can have
    lead: float  # less the cosine of the best other memory: below 0 for all but the first
    above_crowd: float  # less the cosine of the tenth match


class Evidence(NamedTuple):
    """What is known of one hit. None: that channel was not asked."""

    words: Words | None
    meaning: Meaning | None


@dataclass(frozen=True, slots=True)
class Weights:
    """Log-odds: where they start, and what one unit of each kind of evidence adds. None is negative but the start."""

    start: float
    coverage: float = 0.0
    words_behind: float = 0.0  # of a lead below 0
    words_ahead: float = 0.0  # of a lead above 0
    cosine: float = 0.0
    meaning_behind: float = 0.0
    meaning_ahead: float = 0.0
    above_crowd: float = 0.0


# Fitted on SQuAD 1.1 (CC BY-SA 4.0, Rajpurkar et al.) and QMSum (MIT, Zhong et al.), with the vectors of
# all-MiniLM-L6-v2, by `python -m benchmarks.relevance --fit`.
BY_WORDS = Weights(start=-3.05, coverage=3.68, words_behind=6.19, words_ahead=11.45)
BY_MEANING = Weights(start=-3.34, cosine=1.94, meaning_behind=9.18, meaning_ahead=13.92, above_crowd=5.56)
BY_BOTH = Weights(
    start=-3.74,
    coverage=1.92,
    words_behind=3.83,
    words_ahead=9.25,
    cosine=2.26,
    meaning_behind=2.00,
    meaning_ahead=10.72,
    above_crowd=3.66,
)
# Log-odds of a lead of one on the reranker's scale, or of a longer one. Chosen on labelled sets, because the reranker
# has learned from the others.
RERANK_LEAD = 1.0


def relevance(evidence: Evidence) -> float:
    """The probability that a memory answers the question.

    Without words and without meaning a question is nothing but conditions, and those the memory meets.
    """
    words, meaning = evidence.words, evidence.meaning
    if words is not None and meaning is not None:
        return _logistic(BY_BOTH.start + _of_words(words, BY_BOTH) + _of_meaning(meaning, BY_BOTH))
    if words is not None:
        return _logistic(BY_WORDS.start + _of_words(words, BY_WORDS))
    if meaning is not None:
        return _logistic(BY_MEANING.start + _of_meaning(meaning, BY_MEANING))
    return 1.0


class Reading(NamedTuple):
    """What the reranker and the later stages show of one memory."""

    answers: float  # the reranker's log-odds that the text answers, by as much as it knows the words of the query
    share: float  # of the best score
    lacks: bool = False  # it lacks an identifier that the query names
    has_named: bool = False  # it has every identifier that the query names
    in_time: bool = False  # the query names a time, and the search has looked there
    is_request: bool = False  # a request is not answered by a memory, but some bear on it
    stands: bool = False  # a preference or instruction, in a request


@dataclass(frozen=True, slots=True)
class ReadingWeights:
    """Log-odds: where they start, and what each kind of evidence adds or takes away."""

    start: float = -0.8
    answers: float = 0.55
    below_best: float = 1.0  # of what is missing to the best score
    lacks: float = 2.0
    has_named: float = 1.5
    in_time: float = 0.5
    is_request: float = 1.5
    stands: float = 1.5


# Chosen on the worlds of benchmarks/scenarios that are for choosing.
BY_READING = ReadingWeights()
_ANSWERS_MAX = 4.0  # the reranker is never surer than this
ANSWERS_FROM = 0.07  # the relevance of the best hit, where the reranker has read it, below which nothing answers
UNREAD_FROM = 0.05  # the same where it has not


def by_reading(reading: Reading, weights: ReadingWeights = BY_READING) -> float:
    """The probability that a memory answers, where the reranker has read it. It does not depend on the store's size."""
    log_odds = weights.start + weights.answers * max(-_ANSWERS_MAX, min(_ANSWERS_MAX, reading.answers))
    log_odds -= weights.below_best * (1 - reading.share)
    log_odds -= weights.lacks * reading.lacks
    log_odds += weights.has_named * reading.has_named + weights.in_time * reading.in_time
    log_odds += weights.is_request * reading.is_request + weights.stands * reading.stands
    return _logistic(log_odds)


def unread(likely: float) -> float:
    """The relevance of a memory in a language that the models do not know, where they doubt too much."""
    return _logistic(0.5 * log(likely / (1 - likely)) + 0.5) if 0 < likely < 1 else likely


def with_lead(likely: float, lead: float) -> float:
    """Raise the relevance of a memory that leads all others on the reranker's scale.

    A query that nothing here answers seldom has a leader. Those behind it lose nothing: several may answer.
    """
    if lead <= 0 or not 0 < likely < 1:
        return likely
    return _logistic(log(likely / (1 - likely)) + RERANK_LEAD * min(lead, 1.0))


def leads(scores: Mapping[str, float]) -> dict[str, float]:
    """By how much each score is above the best other one. There is nothing to lead where there is one alone."""
    best_two = sorted(scores.values(), reverse=True)[:2]
    if len(best_two) < 2:
        return dict.fromkeys(scores, 0.0)
    best, second = best_two
    return {each: score - (second if score == best else best) for each, score in scores.items()}


def _of_words(words: Words, weights: Weights) -> float:
    behind, ahead = min(words.lead, 0.0), max(words.lead, 0.0)
    return weights.coverage * words.coverage + weights.words_behind * behind + weights.words_ahead * ahead


def _of_meaning(meaning: Meaning, weights: Weights) -> float:
    behind, ahead = min(meaning.lead, 0.0), max(meaning.lead, 0.0)
    return (
        weights.cosine * meaning.cosine
        + weights.meaning_behind * behind
        + weights.meaning_ahead * ahead
        + weights.above_crowd * meaning.above_crowd
    )


def _logistic(log_odds: float) -> float:
    if log_odds < 0:  # exp of a large number overflows, of a small one it is 0
        odds = exp(log_odds)
        return odds / (1 + odds)
    return 1 / (1 + exp(-log_odds))


# ---------------------------------------------------------------- from matches to evidence


class Others(NamedTuple):
    """What a question found, by which each of its hits is measured. None: that channel was not asked."""

    ideal: float  # what BM25 comes near to where a memory repeats every significant term
    words: tuple[float, float] | None  # the two best coverages
    meaning: tuple[float, float] | None  # the two best cosines
    crowd: float  # the tenth cosine
    least: float  # what a memory that was not found by meaning has at the most


def others(
    terms: Sequence[Term],
    memories: int,
    having: Mapping[str, int],
    lexical: Sequence[Match] | None,
    semantic: Sequence[Match] | None,
    recipe: Recipe,
    pool: int,
) -> Others:
    """Of a question's terms, how many memories there are and have each token, and both channels' matches, best first.

    `pool` is how many matches a channel gives at the most.
    """
    best_bm25 = ideal(terms, memories, having, recipe)
    cosines = [match.score for match in semantic or ()]
    words = meaning = None
    if lexical is not None and terms:
        words = _best_two([_coverage(match.score, best_bm25) for match in lexical[:2]], 0.0)
    if semantic is not None:
        meaning = _best_two([max(cosine, UNRELATED) for cosine in cosines[:2]], UNRELATED)
    return Others(
        ideal=best_bm25,
        words=words,
        meaning=meaning,
        crowd=max(cosines[CROWD - 1], UNRELATED) if len(cosines) >= CROWD else UNRELATED,
        least=cosines[-1] if len(cosines) >= pool else min([*cosines[-1:], UNRELATED]),
    )


def ideal(terms: Sequence[Term], memories: int, having: Mapping[str, int], recipe: Recipe) -> float:
    """Σ idf · (k1 + 1) over the significant terms.

    A word that no memory has counts as the rarest there is: a query with such words is hardly answered here.
    """
    idfs = (term_idf(term, memories, having.get(term.text, 0)) for term in _counted(terms, having))
    return (recipe.tuning.bm25_k1 + 1) * sum(idfs)


def _counted(terms: Sequence[Term], having: Mapping[str, int]) -> list[Term]:
    """The significant terms; of a word in several forms or parts, the lesser one only where a memory has it."""
    return [term for term in significant_terms(terms) if term.share >= 0.5 or term.text in having]


def words_once(tokens: Tokens, terms: Sequence[Term], frequencies: Frequencies) -> float:
    """BM25 of a memory of mean length that has the significant terms that these tokens have, each once: Σ idf."""
    memories, having, *_ = frequencies
    standing = [term for term in _counted(terms, having) if occurs(term, tokens)]
    return sum(term_idf(term, memories, having.get(term.text, 0)) for term in standing)


def evidence(lexical: Found | None, semantic: Found | None, among: Others, unembedded: bool = False) -> Evidence:
    """Of one hit. Not found by words it has none of them; not found by meaning it has the least cosine at the most,
    unless it has no vectors yet: then its words alone are known."""
    words = meaning = None
    if among.words is not None:
        coverage = _coverage(lexical.score, among.ideal) if lexical else 0.0
        words = Words(coverage, coverage - _rival(lexical, among.words))
    if among.meaning is not None and not unembedded:
        cosine = semantic.score if semantic else among.least
        meaning = Meaning(cosine, cosine - _rival(semantic, among.meaning), cosine - among.crowd)
    return Evidence(words, meaning)


def _coverage(bm25: float, ideal_bm25: float) -> float:
    """At most 1: common words add to a score but not to its ideal."""
    return min(1.0, bm25 / ideal_bm25) if ideal_bm25 > 0 else 0.0


def _best_two(scores: Sequence[float], least: float) -> tuple[float, float]:
    best, second, *_ = (*scores, least, least)
    return best, second


def _rival(found: Found | None, best_two: tuple[float, float]) -> float:
    """The best of the others: the second for the first, the first for all else."""
    return best_two[1] if found is not None and found.rank == 1 else best_two[0]
