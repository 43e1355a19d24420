"""Lenses: named presets of filters, boosts and recipe overrides for a search.

The filter of a lens can only narrow a search, and values that the caller sets win over those of the lens. The caller
names a lens, or one is selected by the question or by the working folder.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from nacre import validation
from nacre.access import Access
from nacre.analysis.names import fold
from nacre.errors import InvalidInput
from nacre.query.ast import has_wildcards
from nacre.query.lexer import preview
from nacre.types.intents import NAMESPACE_WEIGHTS
from nacre.types.memory import Json
from nacre.types.recipe import CLASSIC, Recipe, adjusted, check_known, weights_of
from nacre.types.search import Filter, Mode, ModeAlias, RerankMode, SearchRequest
from nacre.validation import WILDCARDS_MAX, Limits

NONE = "none"  # the name with which a request disables lenses
TRIGGERS_MAX = 100  # questions, and folders, of one lens
_QUESTION_CHARS_MAX = 10_000  # that triggers are matched with; a longer question is a pasted text
_INTENT = "intent:"
_SENTENCE_ENDS = "?!. "
# Fields that SearchRequest has by the same name.
_REQUEST_FIELDS = ("mode", "limit", "min_score", "token_budget", "rerank")

# How two filters are intersected, by field. A memory has one kind, so the lists are intersected. It has many tags, so
# two `tags_any` cannot be one list. Fields that are not listed here are never merged.
_SINGLE_VALUED = ("kinds", "namespaces", "sessions", "languages")
_CONJUNCTIVE = ("tags_all", "tags_none", "has")
_TIMES: Mapping[str, Callable[[datetime, datetime], datetime]] = {"created_from": max, "created_until": min}
_NUMBERS: Mapping[str, Callable[[float, float], float]] = {"importance_min": max, "importance_max": min}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """A preset of a search. Fields that are None or empty do not change the search.

    `recipe` holds fields of Recipe by name. `questions` select the lens: each is a word or phrase in the question, a
    pattern with `*` that matches the whole question (`?` then matches one character), or `intent:` and the name of an
    intent. `folders` select it by the folder: patterns with `*` and `?`, and / or \\ between folders. A lens with
    both needs a match of each.
    """

    name: str
    description: str = ""
    where: Filter = field(default_factory=Filter)  # without spaces: a lens never widens a search
    boost_entities: tuple[str, ...] = ()
    recipe: Mapping[str, Json] = field(default_factory=dict)
    mode: Mode | ModeAlias | None = None
    limit: int | None = None
    min_score: float | None = None
    token_budget: int | None = None
    rerank: RerankMode | bool | None = None
    questions: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    built_in: bool = False


class AppliedLens(NamedTuple):
    """A request with a lens applied.

    A memory must match `also` in addition to `request.where`: it has the conditions that cannot be merged into one
    filter. `possible` is False if the filters contradict each other, so that nothing can match.
    """

    request: SearchRequest
    also: Filter
    possible: bool


def _recipe_changes(recipe: Recipe) -> dict[str, Json]:
    """The weights in which a recipe differs from the default recipe."""
    default = weights_of(Recipe())
    return {name: value for name, value in weights_of(recipe).items() if value != default[name]}


def _built_in() -> dict[str, Lens]:
    # The caller named the lens, so its namespaces count for every question, also for one without a detected intent.
    stronger: dict[str, Json] = {
        namespace: round(1 + 10 * (weight - 1), 3) for namespace, weight in NAMESPACE_WEIGHTS["troubleshoot"].items()
    }
    lenses = (
        Lens(
            name="debugging",
            description="Blockers, learnings, tests and recent memories first; keywords such as error codes count more",
            recipe={"alpha": 0.6, "recency_weight": 0.4, "namespace_weights": stronger},
        ),
        Lens(
            name="decisions",
            description="Only memories in the namespace decisions",
            where=Filter(namespaces=("decisions",)),
        ),
        Lens(name="recent", description="Recent memories count up to twice as much", recipe={"recency_weight": 1.0}),
        Lens(name="exact", description="Only memories with words of the query", mode="keyword"),
        Lens(
            name="broad",
            description="More results, including weaker matches",
            recipe={"semantic_floor": -1.0, "pool": 200},
            limit=50,
        ),
        Lens(
            name="brief",
            description="The best few results within 500 tokens",
            limit=5,
            min_score=0.15,
            token_budget=500,
        ),
        Lens(
            name="classic",
            description="Plain rank fusion with k = 60, without other signals",
            recipe=_recipe_changes(CLASSIC),
        ),
        Lens(name="facts", description="Only memories with facts", where=Filter(has=("facts",))),
    )
    return {lens.name: replace(lens, built_in=True) for lens in lenses}


BUILT_IN: Mapping[str, Lens] = MappingProxyType(_built_in())


# ---------------------------------------------------------------- validation


def validate(lens: Lens, limits: Limits) -> Lens:
    """A user's lens with every field validated as in a request, sequences as tuples, and times in UTC."""
    if not isinstance(lens, Lens):
        raise InvalidInput("lens", f"must be a Lens, not {type(lens).__name__}")
    _check_name(lens.name, limits)
    description, most = lens.description, limits.summary_chars_max
    if not isinstance(description, str) or len(description) > most or not validation.storable(description):
        raise InvalidInput("description", f"must be a text of valid Unicode with at most {most:,} characters")
    values: dict[str, Any] = {name: getattr(lens, name) for name in _REQUEST_FIELDS if getattr(lens, name) is not None}
    values |= {"where": lens.where, "recipe": _recipe(lens.recipe), "boost_entities": lens.boost_entities}
    request = validation.search(SearchRequest(query="", **values), Access(), limits)
    if lens.where.spaces:
        raise InvalidInput("where.spaces", "must be empty: a lens cannot add spaces to a search")
    return replace(
        lens,
        where=replace(request.where, spaces=()),
        mode=None if lens.mode is None else request.mode,
        rerank=None if lens.rerank is None else request.rerank,
        boost_entities=tuple(request.boost_entities),
        recipe=dict(lens.recipe),
        questions=_triggers("questions", lens.questions, limits),
        folders=_triggers("folders", lens.folders, limits),
        built_in=False,
    )


def unknown(name: str, allowed: Iterable[str]) -> InvalidInput:
    """The error for a name that no lens has."""
    return InvalidInput("lens", f"{preview(name)!r} is unknown; allowed: {', '.join(allowed)}")


def _check_name(name: object, limits: Limits) -> None:
    most = limits.name_chars_max
    plain = isinstance(name, str) and all(char == "-" or _in_word(char) for char in name)
    # With a leading dash, the command line would read it as an option.
    if not isinstance(name, str) or not plain or not 0 < len(name) <= most or name.startswith("-"):
        allowed = f"one word of letters, digits, - and _ is allowed, with at most {most} characters"
        raise InvalidInput("name", f"{validation.shown(name)} is not a name; {allowed}")
    if name.casefold() == NONE or name.casefold() in BUILT_IN:
        raise InvalidInput("name", f"{name!r} is taken; choose another than {', '.join((NONE, *BUILT_IN))}")


def _recipe(overrides: object) -> Recipe:
    if not isinstance(overrides, Mapping):
        raise InvalidInput(
            "recipe", f'must map fields to values, like {{"recency_weight": 0.5}}, not {type(overrides).__name__}'
        )
    check_known(overrides)
    return adjusted(Recipe(), **overrides)


def _triggers(name: str, values: object, limits: Limits) -> tuple[str, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidInput(name, f"must be a list of texts, not {type(values).__name__}")
    if len(values) > TRIGGERS_MAX:
        raise InvalidInput(name, f"has {len(values)} values; at most {TRIGGERS_MAX} are allowed")
    for each in values:
        if not isinstance(each, str) or len(each) > limits.name_chars_max or not validation.storable(each):
            raise InvalidInput(name, f"each must be a text of 1 to {limits.name_chars_max} characters of valid Unicode")
        compared = fold(each)
        if not compared.removeprefix(_INTENT).strip():
            raise InvalidInput(name, f"{each!r} is blank; give words, a pattern like *traceback* or intent:NAME")
        pattern = each if name == "folders" else compared
        if _is_pattern(name, pattern) and validation.too_many_wildcards(pattern):
            raise InvalidInput(name, f"a pattern may have {WILDCARDS_MAX} wildcards at most")
    return tuple(dict.fromkeys(values))


def _is_pattern(name: str, text: str) -> bool:
    """Whether a trigger is a pattern. For questions, `?` alone does not make one: it ends a question."""
    return has_wildcards(text) if name == "folders" else "*" in text


# ---------------------------------------------------------------- selection


def select(lenses: Sequence[Lens], question: str, intent: str, folder: str | None) -> Lens | None:
    """The lens that the question and the folder select, or None.

    A match of both question and folder wins over one of the folder, which wins over one of the question, which wins
    over a lens for every question; among equals, the first by name.
    """
    folded = fold(question[:_QUESTION_CHARS_MAX])
    path = None if folder is None else _folded_folder(folder)
    found: list[tuple[tuple[bool, bool, bool, str], Lens]] = []
    for lens in lenses:
        here = path is not None and any(_folder_matches(each, path) for each in lens.folders)
        if (lens.folders and not here) or not (lens.folders or lens.questions):
            continue
        if not lens.questions or any(_trigger_matches(each, folded, intent) for each in lens.questions):
            found.append(((not here, not lens.questions, set(lens.questions) == {"*"}, lens.name), lens))
    return min(found, key=lambda each: each[0])[1] if found else None


def _trigger_matches(trigger: str, question: str, intent: str) -> bool:
    wanted = fold(trigger)
    if wanted.startswith(_INTENT):
        return wanted.removeprefix(_INTENT).strip() == intent.casefold()
    if _is_pattern("questions", wanted):
        return _glob(wanted).match(question) is not None
    return _has_words(question, wanted.rstrip(_SENTENCE_ENDS) or wanted)


def _has_words(text: str, words: str) -> bool:
    """Whether a text has these words as whole words."""
    at = text.find(words) if words else -1
    while at >= 0:
        end = at + len(words)
        begins = at == 0 or not (_in_word(words[0]) and _in_word(text[at - 1]))
        ends = end == len(text) or not (_in_word(words[-1]) and _in_word(text[end]))
        if begins and ends:
            return True
        at = text.find(words, at + 1)
    return False


def _in_word(char: str) -> bool:
    return char == "_" or unicodedata.category(char)[0] in "LMN"  # in many scripts, marks are parts of letters


def _folder_matches(pattern: str, folder: str) -> bool:
    glob = _glob(_folded_folder(pattern))
    return (
        glob.match(folder) is not None or glob.match(f"{folder}/") is not None
    )  # */payments/* matches payments itself


def _folded_folder(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold()).replace("\\", "/").rstrip("/")


@lru_cache(maxsize=4_096)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` matches any characters, `?` exactly one; no other character is special. fnmatch's stars never backtrack."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


# ---------------------------------------------------------------- application


def apply(lens: Lens, request: SearchRequest) -> AppliedLens:
    """The request with the lens's values for fields that have their defaults, and with both filters."""
    default = SearchRequest(query="")
    changes = _fill_defaults(_request_fields(request), _request_fields(default), _request_fields(lens))
    if request.recipe.alpha != default.recipe.alpha:
        changes.pop("mode", None)  # the mode sets alpha, which the caller has set
    overrides = _fill_defaults(weights_of(request.recipe), weights_of(default.recipe), lens.recipe)
    where, also = _intersect(request.where, lens.where)
    changes |= {
        "where": where,
        "recipe": adjusted(request.recipe, **overrides),
        "boost_entities": tuple(dict.fromkeys((*request.boost_entities, *lens.boost_entities))),
    }
    return AppliedLens(replace(request, **changes), also, _is_satisfiable(where, also))


def _request_fields(value: SearchRequest | Lens) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _REQUEST_FIELDS}


def _fill_defaults(values: Mapping[str, Any], default: Mapping[str, Any], lens: Mapping[str, Any]) -> dict[str, Any]:
    """The lens's values for fields that have their defaults. Fields that this version does not know are ignored."""
    known = {name: value for name, value in lens.items() if value is not None and name in values}
    return {name: value for name, value in known.items() if values[name] == default[name]}


def _intersect(own: Filter, further: Filter) -> tuple[Filter, Filter]:
    """Two filters that together match what both of these match. The second has the conditions that cannot be merged."""
    joined: dict[str, Any] = {}
    also: dict[str, Any] = {}
    for each in fields(Filter):
        ours, theirs = getattr(own, each.name), getattr(further, each.name)
        if each.name == "spaces" or _is_empty(theirs):
            continue
        both = theirs if _is_empty(ours) else _intersect_field(each.name, ours, theirs)
        (also if _is_empty(both) else joined)[each.name] = theirs if _is_empty(both) else both
    return replace(own, **joined), Filter(**also)


def _is_empty(value: Any) -> bool:
    """Whether a field does not restrict. A bound of 0 does."""
    return value is None or value == () or value == [] or value == {}


def _intersect_field(name: str, ours: Any, theirs: Any) -> Any:
    """The value of a filter's field that matches what both values match; None if there is no such value."""
    if name in _CONJUNCTIVE:
        return tuple(dict.fromkeys((*ours, *theirs)))
    if name in _SINGLE_VALUED:
        return tuple(each for each in ours if each in theirs)
    if name in _TIMES:
        return _TIMES[name](ours, theirs)
    if name in _NUMBERS:
        return _NUMBERS[name](ours, theirs)
    if name == "metadata":
        agree = all(_same(ours[key], theirs[key]) for key in ours.keys() & theirs.keys())
        return {**ours, **theirs} if agree else None
    return ours if ours == theirs else None


def _same(one: Json, other: Json) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)  # in JSON, true is not 1


def _is_satisfiable(where: Filter, also: Filter) -> bool:
    start, end = where.created_from, where.created_until
    least, most = where.importance_min, where.importance_max
    return (
        not any(getattr(also, name) for name in (*_SINGLE_VALUED, "metadata"))
        and (start is None or end is None or start < end)
        and (least is None or most is None or least <= most)
        and set(where.tags_all).isdisjoint(where.tags_none)
    )


# ---------------------------------------------------------------- JSON


def to_json(lens: Lens) -> dict[str, Json]:
    """The name and the fields that differ from their defaults."""
    return {"name": lens.name, **_non_default_fields(lens, Lens(name=lens.name))}


def from_json(data: object) -> Lens:
    """A lens from a JSON object with the fields of Lens. Its values are checked by `validate`."""
    values = _fields_of("", Lens, data)
    if "name" not in values:
        raise InvalidInput("name", "is missing; give the lens a name")
    if "where" in values:
        values["where"] = filter_from_json("where", values["where"])
    return Lens(**values)


def filter_from_json(field: str, data: object) -> Filter:
    """A filter from a JSON object with the fields of Filter. Its values are checked where it is used."""
    values = _fields_of(f"{field}.", Filter, data)
    moments = {name: _moment(f"{field}.{name}", values[name]) for name in _TIMES if values.get(name) is not None}
    return Filter(**values | moments)


def _non_default_fields(value: Lens | Filter, default: Lens | Filter) -> dict[str, Json]:
    pairs = {each.name: (_plain(getattr(value, each.name)), getattr(default, each.name)) for each in fields(value)}
    return {name: plain for name, (plain, default) in pairs.items() if plain != _plain(default)}


def _plain(value: Any) -> Json:
    if isinstance(value, Filter):
        return _non_default_fields(value, Filter())
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    assert value is None or isinstance(value, str | int | float | bool), "only validated lenses are written"
    return value


def _fields_of(prefix: str, kind: type[Lens | Filter], data: object) -> dict[str, Any]:
    """The fields of a value from a JSON object, with lists as tuples."""
    if not isinstance(data, Mapping):
        raise InvalidInput(prefix.rstrip(".") or "lens", f"must be a JSON object, not {type(data).__name__}")
    _refuse_unknown(prefix, data, [each.name for each in fields(kind)])
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _refuse_unknown(prefix: str, data: Mapping[Any, object], allowed: Sequence[str]) -> None:
    unknown = [key for key in data if key not in allowed]
    if unknown:
        named = ", ".join(f"{prefix}{preview(str(key))}" for key in unknown)
        raise InvalidInput(named, f"{'is' if len(unknown) == 1 else 'are'} unknown; allowed: {', '.join(allowed)}")


def _moment(name: str, text: object) -> datetime:
    try:
        return datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        raise InvalidInput(name, f"{text!r} is not a time; write it like 2026-03-01T12:30:00Z") from None
