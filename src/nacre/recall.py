"""How memories are found: by a question, by a memory like them, and how all matches are spread."""

from __future__ import annotations

import logging
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from nacre import checks
from nacre.checks import Limits
from nacre.errors import EmbedderMismatch, NotFound
from nacre.ports import Embedder, Store
from nacre.query import spelling
from nacre.query.lexemes import shown
from nacre.query.parse import parse
from nacre.query.tree import Question, Term
from nacre.ranking import boost, fuse
from nacre.ranking.bm25 import idf
from nacre.text import snippets, words
from nacre.threads import Threads
from nacre.types import (
    DidYouMean,
    Facets,
    Filter,
    Frequencies,
    Hit,
    Match,
    MatchType,
    Memory,
    Mode,
    Ranked,
    Recipe,
    RelatedRequest,
    SearchRequest,
    SearchResult,
    Tally,
)

if TYPE_CHECKING:
    from nacre.types import FloatVector

QUERY_VECTORS_CACHED = 256
_CORRECTED_WORDS_MAX = 5  # unknown words of one query that suggestions are looked for
_RELATED_TERMS_MAX = 24  # most telling words of a memory that its relatives are looked for with

_log = logging.getLogger("nacre")


class Recall:
    """Finds memories in a store. Holds nothing but a cache of query vectors."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        space: str,
        limits: Limits,
        clock: Callable[[], datetime],
        zone: tzinfo | None,
        threads: Threads,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._space = space
        self._limits = limits
        self._clock = clock
        self._zone = zone
        self._threads = threads
        self._query_vectors: OrderedDict[str, FloatVector] = OrderedDict()
        self._lock = threading.Lock()

    # ---- the three ways of finding

    def search(self, asked: SearchRequest) -> SearchResult:
        request = checks.search(asked, self._space, self._limits)
        question = self._understand(request.query)
        notes = list(question.notes)
        where = _aimed(question, asked.where, request.where)
        if not where.spaces:
            return SearchResult((), (*notes, _not_allowed(question)))
        request = replace(request, where=where, recipe=_for_mode(request.recipe, request.mode))
        if request.recipe.alpha == 0 and question.meaning.strip() and not (question.terms or question.listing):
            notes.append("the query has no words to search for; emoji and symbols are found by meaning only")
        ranked = self._ranked(request, question, notes)
        frequencies = self._frequencies(question, where)
        meant = self._did_you_mean(question, where, frequencies) if request.recipe.alpha < 1 else None
        if not ranked:
            question, ranked = self._otherwise(request, question, meant, notes)
            frequencies = self._frequencies(question, where)
        hits = self._hits(ranked[: request.limit], question, frequencies)
        return SearchResult(hits, tuple(dict.fromkeys(notes)), meant)

    def _otherwise(
        self, request: SearchRequest, question: Question, meant: DidYouMean | None, notes: list[str]
    ) -> tuple[Question, list[Ranked]]:
        """Nothing was found as typed: quoted words one by one, then the likeliest spelling, then both."""
        apart = "no memory has the quoted words side by side; they were searched one by one"
        tries = [(request.query, True, [apart])]
        if meant is not None:
            instead = f"nothing was found as typed; these are the results for: {shown(meant.query)}"
            tries += [(meant.query, False, [instead]), (meant.query, True, [instead, apart])]
        for text, relaxed, said in tries:
            if relaxed and not question.quoted:
                continue
            other = self._understand(text, relaxed=relaxed)
            ranked = self._ranked(request, other, notes)
            if ranked:
                notes += said
                return other, ranked
        return question, []

    def related(self, asked: RelatedRequest) -> SearchResult:
        known = self._store.get([asked.memory_id]).get(asked.memory_id)
        if known is None or known.deleted is not None:
            raise NotFound((asked.memory_id,))
        request = checks.related(asked, known.space, self._limits)
        notes: list[str] = []
        pool = _pool(request) + 1  # itself is among them
        question = self._telling(known, request.where)
        alpha = request.recipe.alpha
        lexical = self._store.lexical(question, request.where, request.recipe, pool) if alpha < 1 else []
        semantic = self._near(known, request, pool, notes) if alpha > 0 else []
        ranked = fuse.fuse(
            [match for match in lexical if match.id != known.id],
            [match for match in semantic if match.id != known.id],
            request.recipe,
        )
        memories = self._store.get([each.id for each in ranked])
        ranked = [each for each in ranked if each.id in memories]
        if known.session is not None:
            members = {each for each, memory in memories.items() if memory.session == known.session}
            ranked = boost.same_session(ranked, members, request.recipe.session_weight)
        ranked = fuse.in_order(ranked)
        frequencies = self._frequencies(question, request.where)
        return SearchResult(self._hits(ranked[: request.limit], question, frequencies), tuple(notes))

    def facets(self, query: str, where: Filter) -> Facets:
        request = checks.search(SearchRequest(query=query, where=where), self._space, self._limits)
        question = self._understand(request.query)
        aimed = _aimed(question, where, request.where)
        notes = question.notes if aimed.spaces else (*question.notes, _not_allowed(question))
        tally = Tally(total=0, kinds={}, namespaces={}, tags={}, sources={}, created={})
        if aimed.spaces and (question.terms or question.listing):
            tally = self._store.tally(question, aimed)
        months: dict[str, int] = {}
        for moment, memories in sorted(tally.created.items()):
            month = _month(moment, self._zone)
            months[month] = months.get(month, 0) + memories
        return Facets(
            total=tally.total,
            kinds=_most_frequent(tally.kinds),
            namespaces=_most_frequent(tally.namespaces),
            tags=_most_frequent(tally.tags),
            sources=_most_frequent(tally.sources),
            months=months,
            notes=notes,
        )

    # ---- what was asked

    def _understand(self, query: str, *, relaxed: bool = False) -> Question:
        text = query.encode("utf-8", "replace").decode()  # lone surrogates cannot be stored, so never match
        most = self._limits.query_chars_max
        # A single character may stand for eighteen when it is normalised: those count.
        most = min(most, most * most // max(1, len(unicodedata.normalize("NFKC", text[:most]))))
        question = parse(text[:most], self._clock(), self._zone, relaxed=relaxed)
        notes = list(question.notes)
        if len(text) > most:
            notes.append(f"the query has {len(text):,} characters; the first {most:,} were used")
        if not question.terms and not question.meaning.strip() and not question.listing:
            notes.append("the query asks for nothing: give some words")
        return replace(question, notes=tuple(notes))

    def _frequencies(self, question: Question, where: Filter) -> Frequencies:
        """Of all words that are asked for, and of those that may be misspelled."""
        spelled = (token for word, _ in question.spelled for token in _known_as(word))
        return self._store.frequencies(
            list(dict.fromkeys([*(term.text for term in question.terms), *spelled])), where.spaces
        )

    def _did_you_mean(self, question: Question, where: Filter, known: Frequencies) -> DidYouMean | None:
        """Known words in place of those that no memory has."""
        if not known.memories:
            return None
        unknown = [each for each in question.spelled if known.having.keys().isdisjoint(_known_as(each[0]))]
        meant = {
            word: best
            for word, _ in unknown[:_CORRECTED_WORDS_MAX]
            if (best := spelling.best(word, self._store.spellings(word, where.spaces)))
        }
        if not meant:
            return None
        text = question.text
        places = [(place, meant[word][0]) for word, several in unknown if word in meant for place in several]
        for place, instead in sorted(places, reverse=True):  # from the end, so that the other places stay
            text = text[: place.start] + instead + text[place.end :]
        return DidYouMean(text, meant)

    def _telling(self, known: Memory, where: Filter) -> Question:
        """A question made of the words that tell a memory from others."""
        tokens = [token for token in words.asked(known.text) if not words.is_common(token)]
        having = self._store.frequencies(tokens, where.spaces).having
        rare = sorted(tokens, key=lambda token: (having.get(token, 0), token))
        return Question(tuple(Term(token) for token in rare[:_RELATED_TERMS_MAX]), None, "")

    # ---- candidates

    def _ranked(self, request: SearchRequest, question: Question, notes: list[str]) -> list[Ranked]:
        recipe = request.recipe
        lexical, semantic = self._candidates(request, question, notes)
        listed = self._listed(request, question)
        ranked = fuse.fuse(lexical, semantic, recipe, listed)
        created = self._store.created([each.id for each in ranked])
        ranked = [each for each in ranked if each.id in created]  # forgotten since the channels looked
        ranked = boost.temporal(ranked, created, question.periods, recipe.temporal_weight)
        return fuse.in_order(boost.recency(ranked, created, self._clock(), recipe.recency_weight))

    def _candidates(
        self, request: SearchRequest, question: Question, notes: list[str]
    ) -> tuple[list[Match], list[Match]]:
        """Both channels side by side: words in a thread, meaning in this one. Weight 0: not asked."""
        pool = _pool(request)

        def find_words() -> list[Match]:
            return self._store.lexical(question, request.where, request.recipe, pool)

        if request.recipe.alpha == 0:
            return find_words(), []
        if request.recipe.alpha == 1:
            return [], self._by_meaning(request, question, pool, notes)
        lexical = self._threads.start(find_words)
        try:
            semantic = self._by_meaning(request, question, pool, notes)
        finally:
            found = lexical.result()
        return found, semantic

    def _listed(self, request: SearchRequest, question: Question) -> list[str]:
        """Where conditions alone are enough: what meets them, the newest first."""
        if not question.listing:
            return []
        return [memory.id for memory in self._store.by_time(request.where, _pool(request), must=question.must)]

    def _by_meaning(self, request: SearchRequest, question: Question, pool: int, notes: list[str]) -> list[Match]:
        instead = "no results by meaning" if request.recipe.alpha == 1 else "keyword results only"
        if not question.meaning.strip():
            return []
        if self._embedder is None:
            notes.append(f"no embedder is configured: {instead}")
            return []
        try:
            vector = self._query_vector(self._embedder, question.meaning)
        except Exception as error:  # whatever the model's runtime raises, the words still answer
            _log.warning("the embedder failed (%s): %s", error, instead)
            notes.append(f"the embedder failed: {instead} ({error})")
            return []
        try:
            matches = self._store.semantic(vector, self._embedder.fingerprint, question, request.where, pool)
        except EmbedderMismatch as error:  # another process has changed the model
            notes.append(f"{error}; until then {instead}")
            return []
        pending = self._store.pending_count(request.where)
        if pending:
            notes.append(f"{pending} memories have no vectors yet: run `nacre reembed`")
        return _above_floor(matches, request.recipe)

    def _near(self, known: Memory, request: RelatedRequest, pool: int, notes: list[str]) -> list[Match]:
        """Memories whose vectors are near those of a memory: no embedder is needed for that."""
        model, vectors = self._store.model(), self._store.vectors(known.id)
        if model is None or vectors is None:
            notes.append("the memory has no vectors: only memories that share its words were looked for")
            return []
        middle = vectors.mean(axis=0)
        try:
            matches = self._store.semantic(middle, model, Question((), None, ""), request.where, pool)
        except EmbedderMismatch as error:  # another process has changed the model just now
            notes.append(str(error))
            return []
        return _above_floor(matches, request.recipe)

    def _query_vector(self, embedder: Embedder, text: str) -> FloatVector:
        with self._lock:
            if text in self._query_vectors:
                self._query_vectors.move_to_end(text)
                return self._query_vectors[text]
        vector = embedder.embed_query(text)
        with self._lock:
            self._query_vectors[text] = vector
            while len(self._query_vectors) > QUERY_VECTORS_CACHED:
                self._query_vectors.popitem(last=False)
        return vector

    # ---- answers

    def _hits(self, ranked: Sequence[Ranked], question: Question, frequencies: Frequencies) -> tuple[Hit, ...]:
        memories = self._store.get([each.id for each in ranked])
        weights = _weights(question.terms, frequencies)
        return tuple(_hit(each, memories[each.id], weights) for each in ranked if each.id in memories)


def _for_mode(recipe: Recipe, mode: Mode) -> Recipe:
    """A mode is a weight: keyword is alpha 0, semantic is alpha 1."""
    match mode:
        case "keyword":
            return replace(recipe, alpha=0)
        case "semantic":
            return replace(recipe, alpha=1)
        case "hybrid":
            return recipe


def _pool(request: SearchRequest | RelatedRequest) -> int:
    return max(request.recipe.pool, 2 * request.limit)


def _above_floor(matches: Sequence[Match], recipe: Recipe) -> list[Match]:
    return [match for match in matches if match.score >= recipe.semantic_floor]


def _aimed(question: Question, asked: Filter, checked: Filter) -> Filter:
    """The filter with the spaces the query names, but none beyond those the caller named."""
    if not question.spaces:
        return checked
    named = set(asked.spaces)
    return replace(checked, spaces=tuple(space for space in question.spaces if not named or space in named))


def _not_allowed(question: Question) -> str:
    return f"space:{shown(','.join(question.spaces))} is not among the spaces this search may see"


def _known_as(word: str) -> tuple[str, ...]:
    """The tokens any of which shows that a word is known."""
    return word, *words.asked(word)


def _weights(terms: Sequence[Term], frequencies: Frequencies) -> dict[Term, float]:
    """How much each term that occurs tells. How often a prefix occurs is not known: it tells as much as the best."""
    having = frequencies.having
    known = {
        term: 0.0 if term.common else idf(frequencies.memories, having[term.text])
        for term in terms
        if term.text in having and not term.prefix
    }
    most = max(known.values(), default=1.0)
    return {term: known.get(term, most) for term in terms if term in known or term.prefix}


def _month(moment: datetime, zone: tzinfo | None) -> str:
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # the first and the last day there are
        local = moment
    return f"{local.year:04}-{local.month:02}"


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _hit(ranked: Ranked, memory: Memory, weights: Mapping[Term, float]) -> Hit:
    lexical, semantic = ranked.lexical, ranked.semantic
    return Hit(
        memory=memory,
        score=ranked.score,
        match_type=_match_type(ranked),
        bm25=lexical.score if lexical else None,
        bm25_rank=lexical.rank if lexical else None,
        cosine=semantic.score if semantic else None,
        similarity=(semantic.score + 1) / 2 if semantic else None,
        cosine_rank=semantic.rank if semantic else None,
        snippet=snippets.snippet(memory.text, weights, semantic.span if semantic else None),
        reasons=ranked.reasons,
    )


def _match_type(ranked: Ranked) -> MatchType:
    match ranked.lexical, ranked.semantic:
        case None, None:
            return "filter"
        case _, None:
            return "bm25"
        case None, _:
            return "semantic"
    return "hybrid"
