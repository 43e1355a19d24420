"""Lenses: named presets of filters, boosts and recipe overrides that a search looks through.

A lens only ever narrows what a search may see, and what the caller asks for wins over it. It is named by
the caller, or selects itself by the question or by the folder the asker works in.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from nacre import validation
from nacre.access import Access
from nacre.errors import InvalidInput
from nacre.query.ast import has_wildcards
from nacre.query.lexer import preview
from nacre.types.intents import NAMESPACE_WEIGHTS, IntentName
from nacre.types.memory import Json
from nacre.types.recipe import CLASSIC, WEIGHTS, Recipe, adjusted, weights_of
from nacre.types.search import Filter, Mode, SearchRequest
from nacre.validation import WILDCARDS_MAX, Limits

NONE = "none"  # what a request says to look through no lens at all
TRIGGERS_MAX = 100  # questions, and folders, of one lens
_QUESTION_CHARS_MAX = 10_000  # that are looked at: what is longer is a pasted text
_INTENT = "intent:"
_SENTENCE_ENDS = "?!. "
_REQUEST_FIELDS = ("mode", "limit", "min_score", "token_budget")  # fields that a request has by the same name

# How two filters become one. A memory has one kind, so it is in both lists; it has many tags, so `tags_any`
# of two filters is more than one list can say. What is not named here is never joined.
_SINGLE_VALUED = ("kinds", "namespaces", "sessions")
_CONJUNCTIVE = ("tags_all", "tags_none", "has")
_TIMES: Mapping[str, Callable[[datetime, datetime], datetime]] = {"created_from": max, "created_until": min}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """A preset of a search. What is None or empty leaves the search as it is.

    `recipe` holds fields of Recipe by name. `questions` are words or phrases that a question has, patterns with
    `*` that all of it is like (`?` is then any one character), or `intent:` and the name of what it is after.
    `folders` are patterns with `*` and `?`, and / or \\ between folders. A lens that has both needs both.
    """

    name: str
    description: str = ""
    where: Filter = field(default_factory=Filter)  # its spaces are empty: a lens never widens
    boost_entities: tuple[str, ...] = ()
    recipe: Mapping[str, Json] = field(default_factory=dict)
    mode: Mode | None = None
    limit: int | None = None
    min_score: float | None = None
    token_budget: int | None = None
    questions: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    built_in: bool = False


class AppliedLens(NamedTuple):
    """A request seen through a lens.

    `also` must hold besides `request.where`: it has what one filter cannot say of two; `Filter()` demands
    nothing. `possible` is False where the filters exclude each other, so that nothing can match.
    """

    request: SearchRequest
    also: Filter
    possible: bool


def _recipe_changes(recipe: Recipe) -> dict[str, Json]:
    usual = weights_of(Recipe())
    return {name: value for name, value in weights_of(recipe).items() if value != usual[name]}


def _built_in() -> dict[str, Lens]:
    # Whatever a question sounds like, who debugs is troubleshooting, and said so.
    stronger = {namespace: 1 + 10 * (weight - 1) for namespace, weight in NAMESPACE_WEIGHTS["troubleshoot"].items()}
    weights: dict[str, Json] = {name: {**stronger} for name in get_args(IntentName)}
    lenses = (
        Lens(
            name="debugging",
            description="Blockers, learnings, tests and what is new first; words such as error codes count more",
            recipe={"alpha": 0.6, "recency_weight": 0.4, "intents": weights},
        ),
        Lens(name="decisions", description="Only what was decided", where=Filter(namespaces=("decisions",))),
        Lens(name="recent", description="What is new counts up to twice as much", recipe={"recency_weight": 1.0}),
        Lens(name="exact", description="Only memories with words of the question", mode="keyword"),
        Lens(name="broad", description="More, and less alike", recipe={"semantic_floor": -1.0, "pool": 200}, limit=50),
        Lens(name="brief", description="The best few, in a few words", limit=5, min_score=0.15, token_budget=500),
        Lens(
            name="classic",
            description="Plain rank fusion with k = 60, and no other signal",
            recipe=_recipe_changes(CLASSIC),
        ),
        Lens(name="facts", description="Only memories with facts", where=Filter(has=("facts",))),
    )
    return {lens.name: replace(lens, built_in=True) for lens in lenses}


BUILT_IN: Mapping[str, Lens] = MappingProxyType(_built_in())


# ---------------------------------------------------------------- checks


def validate(lens: Lens, limits: Limits) -> Lens:
    """A lens that a user defines: every field checked as in a request, sequences as tuples, times in UTC."""
    if not isinstance(lens, Lens):
        raise InvalidInput("lens", f"must be a Lens, not {type(lens).__name__}")
    _check_name(lens.name, limits)
    description, most = lens.description, limits.summary_chars_max
    if not isinstance(description, str) or len(description) > most or not validation.storable(description):
        raise InvalidInput("description", f"must be a text of valid Unicode with at most {most:,} characters")
    wishes: dict[str, Any] = {name: getattr(lens, name) for name in _REQUEST_FIELDS if getattr(lens, name) is not None}
    wishes |= {"where": lens.where, "recipe": _recipe(lens.recipe), "boost_entities": lens.boost_entities}
    request = validation.search(SearchRequest(query="", **wishes), Access(), limits)
    if lens.where.spaces:
        raise InvalidInput("where.spaces", "must be empty: a lens never widens what a search may see")
    return replace(
        lens,
        where=replace(request.where, spaces=()),
        boost_entities=tuple(request.boost_entities),
        recipe=dict(lens.recipe),
        questions=_triggers("questions", lens.questions, limits),
        folders=_triggers("folders", lens.folders, limits),
        built_in=False,
    )


def _check_name(name: object, limits: Limits) -> None:
    most = limits.name_chars_max
    plain = isinstance(name, str) and all(char == "-" or _in_word(char) for char in name)
    # With a dash in front it would be an option of a command.
    if not isinstance(name, str) or not plain or not 0 < len(name) <= most or name.startswith("-"):
        allowed = f"one word of letters, digits, - and _ is allowed, with at most {most} characters"
        raise InvalidInput("name", f"{preview(str(name))!r} is not a name; {allowed}")
    if name.casefold() == NONE or name.casefold() in BUILT_IN:
        raise InvalidInput("name", f"{name!r} is taken; choose another than {', '.join((NONE, *BUILT_IN))}")


def _recipe(overrides: object) -> Recipe:
    if not isinstance(overrides, Mapping):
        raise InvalidInput("recipe", f"must be a mapping of recipe fields to values, not {type(overrides).__name__}")
    _refuse_unknown("recipe.", overrides, WEIGHTS)
    return adjusted(Recipe(), **overrides)


def _triggers(name: str, values: object, limits: Limits) -> tuple[str, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidInput(name, f"must be a list of texts, not {type(values).__name__}")
    if len(values) > TRIGGERS_MAX:
        raise InvalidInput(name, f"has {len(values)} values; at most {TRIGGERS_MAX} are allowed")
    for each in values:
        if not isinstance(each, str) or len(each) > limits.name_chars_max or not validation.storable(each):
            raise InvalidInput(name, f"each must be a text of 1 to {limits.name_chars_max} characters of valid Unicode")
        if not each.strip() or not each.casefold().removeprefix(_INTENT).strip():
            raise InvalidInput(name, f"{each!r} is blank; give words, a pattern like *traceback* or intent:NAME")
        if _is_pattern(name, each) and validation.too_many_wildcards(each):
            raise InvalidInput(name, f"a pattern may have {WILDCARDS_MAX} wildcards at most")
    return tuple(dict.fromkeys(values))


def _is_pattern(name: str, text: str) -> bool:
    """A question mark alone makes no pattern of what a question has: it ends it."""
    return has_wildcards(text) if name == "folders" else "*" in text


# ---------------------------------------------------------------- which lens


def select(lenses: Sequence[Lens], question: str, intent: str, folder: str | None) -> Lens | None:
    """The lens that selects itself: by question and folder before folder, before question, before any question; then
    by name."""
    asked = _folded(question[:_QUESTION_CHARS_MAX])
    place = None if folder is None else _folded_folder(folder)
    found: list[tuple[tuple[bool, bool, bool, str], Lens]] = []
    for lens in lenses:
        here = place is not None and any(_folder_matches(each, place) for each in lens.folders)
        if (lens.folders and not here) or not (lens.folders or lens.questions):
            continue
        if not lens.questions or any(_trigger_matches(each, asked, intent) for each in lens.questions):
            found.append(((not here, not lens.questions, set(lens.questions) == {"*"}, lens.name), lens))
    return min(found, key=lambda each: each[0])[1] if found else None


def _trigger_matches(trigger: str, asked: str, intent: str) -> bool:
    wanted = _folded(trigger)
    if wanted.startswith(_INTENT):
        return wanted.removeprefix(_INTENT).strip() == intent.casefold()
    if _is_pattern("questions", wanted):
        return _glob(wanted).match(asked) is not None
    return _has_words(asked, wanted.rstrip(_SENTENCE_ENDS) or wanted)


def _has_words(text: str, words: str) -> bool:
    """Whether the words stand in a text, and no letter or digit goes on where they begin or end with one."""
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
    return char == "_" or unicodedata.category(char)[0] in "LMN"  # marks are parts of letters in many scripts


def _folder_matches(pattern: str, place: str) -> bool:
    glob = _glob(_folded_folder(pattern))
    return glob.match(place) is not None or glob.match(f"{place}/") is not None  # */payments/* is about itself, too


def _folded(text: str) -> str:
    """As texts are compared: case, white space and the way accents are written make no difference."""
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


def _folded_folder(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold()).replace("\\", "/").rstrip("/")


@lru_cache(maxsize=4_096)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` is any run of characters, `?` any one; nothing else is special. fnmatch's stars never backtrack."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


# ---------------------------------------------------------------- a request through a lens


def apply(lens: Lens, request: SearchRequest) -> AppliedLens:
    """The request with the lens's values where it has its defaults, and with both filters."""
    usual = SearchRequest(query="")
    wishes = {name: getattr(lens, name) for name in _REQUEST_FIELDS}
    changes = _fill_defaults(
        {name: getattr(request, name) for name in wishes}, {name: getattr(usual, name) for name in wishes}, wishes
    )
    if request.recipe.alpha != usual.recipe.alpha:
        changes.pop("mode", None)  # a mode is a weight of meaning, and the caller gave one
    overrides = _fill_defaults(weights_of(request.recipe), weights_of(usual.recipe), lens.recipe)
    where, also = _intersect(request.where, lens.where)
    changes |= {
        "where": where,
        "recipe": adjusted(request.recipe, **overrides),
        "boost_entities": tuple(dict.fromkeys((*request.boost_entities, *lens.boost_entities))),
    }
    return AppliedLens(replace(request, **changes), also, _is_satisfiable(where, also))


def _fill_defaults(values: Mapping[str, Any], usual: Mapping[str, Any], wishes: Mapping[str, Any]) -> dict[str, Any]:
    """The wishes for values that are at their default. A wish that only a newer version knows is left alone."""
    wanted = {name: wish for name, wish in wishes.items() if wish is not None and name in values}
    return {name: wish for name, wish in wanted.items() if values[name] == usual[name]}


def _intersect(own: Filter, further: Filter) -> tuple[Filter, Filter]:
    """Two filters that together allow what both of these allow; the second has what the first cannot say."""
    joined: dict[str, Any] = {}
    also: dict[str, Any] = {}
    for each in fields(Filter):
        ours, theirs = getattr(own, each.name), getattr(further, each.name)
        if each.name == "spaces" or not theirs:
            continue
        both = _intersect_field(each.name, ours, theirs) if ours else theirs
        (joined if both else also)[each.name] = both or theirs
    return replace(own, **joined), Filter(**also)


def _intersect_field(name: str, ours: Any, theirs: Any) -> Any:
    """What is allowed by both values of a filter's field; None where one value cannot say it."""
    if name in _CONJUNCTIVE:
        return tuple(dict.fromkeys((*ours, *theirs)))
    if name in _SINGLE_VALUED:
        return tuple(each for each in ours if each in theirs)
    if name in _TIMES:
        return _TIMES[name](ours, theirs)
    if name == "metadata":
        agree = all(_same(ours[key], theirs[key]) for key in ours.keys() & theirs.keys())
        return {**ours, **theirs} if agree else None
    return ours if ours == theirs else None


def _same(one: Json, other: Json) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)  # in JSON, true is not 1


def _is_satisfiable(where: Filter, also: Filter) -> bool:
    start, end = where.created_from, where.created_until
    return (
        not any(getattr(also, name) for name in (*_SINGLE_VALUED, "metadata"))
        and (start is None or end is None or start < end)
        and set(where.tags_all).isdisjoint(where.tags_none)
    )


# ---------------------------------------------------------------- JSON


def to_json(lens: Lens) -> dict[str, Json]:
    """The fields that are not as usual."""
    return {"name": lens.name, **_non_default_fields(lens, Lens(name=lens.name))}


def from_json(data: object) -> Lens:
    """A lens from a JSON object with the fields of Lens; `checked` says whether its values are allowed."""
    values = _fields_of("", Lens, data)
    if "name" not in values:
        raise InvalidInput("name", "is missing; give the lens a name")
    if "where" in values:
        filtered = _fields_of("where.", Filter, values["where"])
        moments = {name: _moment(f"where.{name}", filtered[name]) for name in _TIMES if filtered.get(name) is not None}
        values["where"] = Filter(**filtered | moments)
    return Lens(**values)


def _non_default_fields(value: Lens | Filter, usual: Lens | Filter) -> dict[str, Json]:
    pairs = {each.name: (_plain(getattr(value, each.name)), getattr(usual, each.name)) for each in fields(value)}
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
    assert value is None or isinstance(value, str | int | float | bool), "only what is `checked` is written"
    return value


def _fields_of(prefix: str, kind: type[Lens | Filter], data: object) -> dict[str, Any]:
    """What a JSON object says of a value's fields, lists as tuples."""
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
