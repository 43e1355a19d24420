"""A search before it runs: validated, seen through its lens, and parsed, once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

from nacre import validation
from nacre.analysis.language import is_english, language_of_question
from nacre.engine.embedding import knows
from nacre.engine.parts import Parts
from nacre.engine.query_resolver import QueryResolver
from nacre.query import identifiers, intent, lenses
from nacre.query.ast import Condition, During, Only, ParsedQuery, both, either
from nacre.query.identifiers import Identifier
from nacre.query.lenses import Lens
from nacre.query.lexer import preview
from nacre.query.requests import is_request
from nacre.query.tense import is_vague
from nacre.types.intents import Intent
from nacre.types.memory import STANDING_KINDS
from nacre.types.recipe import USUAL_RECIPE, Recipe
from nacre.types.search import Filter, Mode, ModeAlias, Period, RelatedRequest, SearchRequest

_MOMENT = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)
# These do not identify a result: the lens is applied already, `where` and `recipe` are compared by their text.
_NOT_IN_KEY = {"session", "origin", "folder", "lens", "where", "recipe"}
_IN_KEY = tuple(each.name for each in fields(SearchRequest) if each.name not in _NOT_IN_KEY)


@dataclass(frozen=True, slots=True)
class ValidRequest:
    """A validated request, not yet parsed; after `through_lens`, as its lens changes it."""

    request: SearchRequest
    choices: Sequence[str]  # spaces that the query may choose from; none: all
    lens: str | None = None
    lens_condition: Condition | None = None  # what the lens and the time demand and the filter cannot say
    satisfiable: bool = True  # False: the filters exclude those of the lens
    omitted: frozenset[str] = frozenset()  # delivered to the session before, and not wanted again

    def key(self) -> Hashable:
        """Equal for requests with equal results, as long as nothing is written. Filters and recipes have no hash."""
        request = self.request
        return (
            *(getattr(request, name) for name in _IN_KEY),
            repr(request.where),
            "" if request.recipe == USUAL_RECIPE else repr(request.recipe),
            tuple(self.choices),
            repr(self.lens_condition),
            self.lens,
            self.satisfiable,
            self.omitted,
        )


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search will do. The stages of the pipeline read it and change nothing in it."""

    request: SearchRequest  # `where` has the spaces that are searched, `recipe` the weights of the mode
    query: ParsedQuery  # `must` has the names of entities and the lens's condition
    now: datetime
    lens: str | None = None
    lens_condition: Condition | None = None
    satisfiable: bool = True
    omitted: frozenset[str] = frozenset()
    intent: Intent | None = None
    identifiers: tuple[Identifier, ...] = ()  # what the query names exactly
    periods: tuple[Period, ...] = ()  # that it names; what lies inside one of them comes first
    vaguely: bool = False  # the periods have no clear border: "recently", or after an event
    language: str | None = None  # that it is in, if that is clear
    further: bool = False  # a further model answers it in place of the store's own, which does not know its language
    foreign: tuple[str, ...] = ()  # languages in which the further model finds memories beside the store's own model
    is_request: bool = False  # it asks for something to be done, so standing preferences and instructions count
    notes: tuple[str, ...] = ()

    @property
    def further_looks(self) -> tuple[Condition, ...]:
        """What the channels are asked for once more, because the best of all memories may have none of it."""
        standing = Only(Filter(kinds=STANDING_KINDS)) if self.is_request else None
        within = either(tuple(map(During, self.periods))) if self.periods else None
        return tuple(each for each in (within, standing) if each is not None)

    @property
    def recipe(self) -> Recipe:
        return self.request.recipe

    @property
    def where(self) -> Filter:
        return self.request.where

    @property
    def significant_words(self) -> set[str]:
        """The tokens that it asks for, without those that any text may have."""
        return {term.text for term in self.query.terms if not term.common}

    @property
    def pool(self) -> int:
        return pool_size(self.request)

    @property
    def asks_past(self) -> bool:
        """Whether the query asks for a former state: then what was superseded may be the answer."""
        time = self.query.time
        if time is None:
            return False
        over = any(each.end is not None and each.end <= self.now for each in self.query.periods)
        return time.asks_past or time.order == "first" or over

    @property
    def is_hybrid(self) -> bool:
        """Whether both words and meaning count. Echo and reranking act only then."""
        return 0 < self.recipe.alpha < 1


class Planner:
    """Makes plans. Keeps the lenses of its space until something is written."""

    def __init__(self, parts: Parts, resolver: QueryResolver) -> None:
        self._parts = parts
        self._resolver = resolver
        self._lenses: tuple[tuple[int, int, int] | None, dict[str, Lens]] = (None, {})

    def validate(self, asked: SearchRequest) -> ValidRequest:
        """Raises InvalidInput. This is the only validation of a search."""
        request = validation.search(asked, self._parts.access, self._parts.limits)
        return ValidRequest(
            request, self._parts.access.choices(asked.where.spaces), lens_condition=self._parts.unexpired()
        )

    def through_lens(
        self, valid: ValidRequest, sequence: tuple[int, int, int], delivered: Set[str] = frozenset()
    ) -> ValidRequest:
        """The request as its lens changes it. `sequence` is the store's; `delivered` is what the session was given."""
        request = valid.request
        lens = self._lens(request, sequence)
        if lens is not None:
            applied = lenses.apply(lens, request)
            condition = valid.lens_condition
            if applied.also != Filter():
                condition = both(condition, Only(applied.also))
            valid = ValidRequest(applied.request, valid.choices, lens.name, condition, applied.possible)
        return self._without_delivered(self._weighed(valid), delivered)

    def plan(self, valid: ValidRequest) -> SearchPlan:
        """Parse the query and aim it at the spaces it may search."""
        request = valid.request
        now = request.as_of or self._parts.clock()
        every = request.match == "all"
        spaces = request.where.spaces
        query = self._resolver.parse(request.query, now, spaces, every=every)
        if query.time is not None and not request.recipe.temporal_weight:  # then times are words like any other
            query = replace(
                self._resolver.parse(request.query, now, spaces, timeless=True, every=every), time=query.time
            )
        where = _aimed(query, valid.choices, request.where)
        if request.as_of is not None and request.as_of < _LAST:
            until = request.as_of + _MOMENT
            where = replace(where, created_until=min(until, where.created_until or until))
        recipe = _for_mode(request.recipe, request.mode)
        further = bool(recipe.alpha) and self._is_for_further_model(query.meaning)
        foreign = self._foreign(query.meaning, where) if recipe.alpha and not further else ()
        notes = list(query.notes)
        if not where.spaces:
            notes.append(f"space:{preview(','.join(query.spaces))} is not among the spaces this search may see")
        elif recipe.alpha == 0 and query.meaning.strip() and not (query.terms or query.listing):
            notes.append("the query has no words to search for; emoji and symbols are found by meaning only")
        return SearchPlan(
            request=replace(request, where=where, recipe=recipe),
            query=self._resolver.resolve(query, where.spaces, valid.lens_condition) if where.spaces else query,
            now=now,
            lens=valid.lens,
            lens_condition=valid.lens_condition,
            satisfiable=valid.satisfiable,
            omitted=valid.omitted,
            intent=intent.detect(query.meaning) if recipe.intent_weight and where.spaces else None,
            periods=query.periods if recipe.temporal_weight else (),
            vaguely=query.time is not None and is_vague(query.text, query.time),
            language=language_of_question(query.meaning) if further else None,
            further=further,
            foreign=foreign,
            is_request=bool(recipe.standing_weight) and is_request(query.meaning),
            identifiers=identifiers.find(query.meaning) if recipe.exact_weight and where.spaces else (),
            notes=tuple(notes),
        )

    def reworded(
        self, plan: SearchPlan, text: str, *, split_phrases: bool = False, timeless: bool = False
    ) -> SearchPlan:
        """The same plan for another query; with `split_phrases`, quoted words are searched one by one; with
        `timeless`, times are words."""
        query = self._resolver.parse(
            text,
            plan.now,
            plan.where.spaces,
            split_phrases=split_phrases,
            timeless=timeless,
            every=plan.request.match == "all",
        )
        return replace(
            plan,
            query=self._resolver.resolve(query, plan.where.spaces, plan.lens_condition),
            identifiers=identifiers.find(query.meaning) if plan.recipe.exact_weight else (),
        )

    def _is_for_further_model(self, text: str) -> bool:
        """Whether a query is in a language that the further model knows, and that the store's own does not."""
        further = self._parts.further
        if further is None or not text.strip() or is_english(text):
            return False
        return knows(further, text) and further.fingerprint in self._parts.store.further_models()

    def _foreign(self, text: str, where: Filter) -> tuple[str, ...]:
        """The languages that the further model adds to an English question, where memories are in any of them."""
        further = self._parts.further
        if further is None or not where.spaces or not text.strip():
            return ()
        others = tuple(sorted(further.languages - {"en"}))
        there = self._parts.store.has_language(where.spaces, others)
        return others if there and knows(further, text) else ()

    # ---- lenses

    def _weighed(self, valid: ValidRequest) -> ValidRequest:
        """With the engine's weights of namespaces, unless the caller or the lens has given others."""
        usual, recipe = self._parts.namespace_weights, valid.request.recipe
        if not usual or recipe.namespace_weights:
            return valid
        return replace(valid, request=replace(valid.request, recipe=replace(recipe, namespace_weights=usual)))

    def _without_delivered(self, valid: ValidRequest, delivered: Set[str]) -> ValidRequest:
        """The pool grows by what is omitted, because nothing may be left out after the cut."""
        if not (valid.request.omit_delivered and delivered):
            return valid
        recipe = valid.request.recipe
        wide = replace(recipe, pool=min(recipe.pool + len(delivered), self._parts.limits.pool_max))
        return replace(valid, request=replace(valid.request, recipe=wide), omitted=frozenset(delivered))

    def _lens(self, request: SearchRequest, sequence: tuple[int, int, int]) -> Lens | None:
        """The lens that is named, or one that selects itself by the query or the folder."""
        if request.lens == lenses.NONE:
            return None
        if request.lens is not None and request.lens in lenses.BUILT_IN:
            return lenses.BUILT_IN[request.lens]
        own = self._own_lenses(sequence)
        if request.lens is None:
            if not own:
                return None
            return lenses.select(list(own.values()), request.query, intent.detect(request.query).name, request.folder)
        if request.lens not in own:
            raise lenses.unknown(request.lens, (lenses.NONE, *lenses.BUILT_IN, *own))
        return own[request.lens]

    def _own_lenses(self, sequence: tuple[int, int, int]) -> dict[str, Lens]:
        as_of, own = self._lenses
        if as_of != sequence:
            bodies = self._parts.store.lenses(self._parts.access.space)
            own = {name: lenses.from_json(json.loads(body)) for name, body in bodies.items()}
            self._lenses = sequence, own
        return own


def pool_size(request: SearchRequest | RelatedRequest) -> int:
    """Candidates of each channel."""
    return max(request.recipe.pool, 2 * request.limit)


def _aimed(query: ParsedQuery, choices: Sequence[str], where: Filter) -> Filter:
    """The filter with the spaces that the query names, as far as it may choose them."""
    if not query.spaces:
        return where
    return replace(where, spaces=tuple(space for space in query.spaces if not choices or space in choices))


def _for_mode(recipe: Recipe, mode: Mode | ModeAlias) -> Recipe:
    """A mode is a weight: keyword is alpha 0, semantic is alpha 1."""
    match mode:
        case "keyword":
            return replace(recipe, alpha=0)
        case "semantic":
            return replace(recipe, alpha=1)
        case _:
            return recipe
