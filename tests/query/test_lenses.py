"""Lenses: validation, selection, application to a request, and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import assert_linear, assert_takes_less
from nacre.errors import InvalidInput
from nacre.query import lenses
from nacre.query.ast import filter_matches
from nacre.query.lenses import BUILT_IN, Lens
from nacre.types.facts import FactType
from nacre.types.memory import Memory
from nacre.types.recipe import WEIGHTS, Recipe
from nacre.types.search import Filter, Mode, Part, SearchRequest
from nacre.validation import LIMITS, Limits

DAY = datetime(2026, 3, 1, tzinfo=UTC)
ASKED = SearchRequest(query="why does the build fail?")
USUAL = SearchRequest(query="")


# ---------------------------------------------------------------- the lenses that come with it


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_lens_is_a_good_one_that_changes_something(name: str) -> None:
    lens = BUILT_IN[name]
    assert (lens.name, lens.built_in, lens.questions, lens.folders) == (name, True, (), ())
    assert lens.description
    with pytest.raises(InvalidInput, match="is taken"):
        lenses.validate(lens, LIMITS)
    mine = lenses.validate(replace(lens, name="mine"), LIMITS)
    assert mine == replace(lens, name="mine", built_in=False)
    request, also, possible = lenses.apply(lens, ASKED)
    assert request != ASKED
    assert (also, possible) == (Filter(), True)
    assert lenses.from_json(json.loads(json.dumps(lenses.to_json(lens)))) == lens


def test_built_in_lenses_filter_only_where_the_name_promises_it() -> None:
    assert {name: lens.where for name, lens in BUILT_IN.items() if lens.where != Filter()} == {
        "decisions": Filter(namespaces=("decisions",)),
        "facts": Filter(has=("facts",)),
    }


def test_debugging_prefers_what_helps_whatever_the_question_sounds_like() -> None:
    recipe = lenses.apply(BUILT_IN["debugging"], ASKED).request.recipe
    assert recipe.recency_weight > Recipe().recency_weight
    assert recipe.namespace_weights == {"blockers": 1.15, "learnings": 1.1, "testing": 1.05}  # as people read them


# ---------------------------------------------------------------- what is allowed

WINGS: dict[str, Any] = {"has": ("wings",)}
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("empty name", {"name": ""}, "name", "letters, digits, - and _"),
    ("two words", {"name": "my lens"}, "name", "letters, digits, - and _"),
    ("path", {"name": "a/b"}, "name", "letters, digits, - and _"),
    ("option", {"name": "-a"}, "name", "letters, digits, - and _"),
    ("number as name", {"name": 7}, "name", "letters, digits, - and _"),
    ("long name", {"name": "x" * 201}, "name", "at most 200"),
    ("none", {"name": "None"}, "name", "is taken"),
    ("built-in", {"name": "Decisions"}, "name", "is taken"),
    ("long description", {"description": "x" * 10_001}, "description", "at most 10,000"),
    ("surrogate in description", {"description": "\ud800"}, "description", "valid Unicode"),
    ("spaces", {"where": Filter(spaces=("work",))}, "where.spaces", "cannot add spaces"),
    ("string as kinds", {"where": Filter(kinds="note")}, "where.kinds", "must be a list"),
    ("unknown part", {"where": Filter(**WINGS)}, "where.has", "allowed: facts"),
    ("naive time", {"where": Filter(created_from=DAY.replace(tzinfo=None))}, "where.created_from", "no time zone"),
    ("no filter", {"where": {}}, "where", "must be a Filter"),
    ("unknown mode", {"mode": "psychic"}, "mode", "keyword, semantic, hybrid"),
    ("limit 0", {"limit": 0}, "limit", "from 1 to 1,000"),
    ("huge limit", {"limit": 1_001}, "limit", "from 1 to 1,000"),
    ("bool as limit", {"limit": True}, "limit", "from 1 to 1,000"),
    ("min_score above 1", {"min_score": 1.1}, "min_score", "from 0 to 1"),
    ("token_budget 0", {"token_budget": 0}, "token_budget", "whole number"),
    ("string as entities", {"boost_entities": "Ada"}, "boost_entities", "list"),
    ("blank entity", {"boost_entities": (" ",)}, "boost_entities", "blank"),
    ("list as recipe", {"recipe": ["alpha"]}, "recipe", "must map fields to values"),
    ("unknown recipe field", {"recipe": {"salt": 1}}, "recipe.salt", "allowed: fusion, k, alpha"),
    (
        "an unknown recipe field among others",
        {"recipe": {"k": 9, "salt": 1, "oil": 2}},
        "recipe.salt",
        "is unknown; allowed: f",
    ),
    ("alpha above 1", {"recipe": {"alpha": 1.5}}, "recipe.alpha", "from 0 to 1"),
    ("list as namespace weights", {"recipe": {"namespace_weights": ["x"]}}, "recipe.namespace_weights", "a mapping"),
    ("fraction as k", {"recipe": {"k": 1.5}}, "recipe.k", "whole number"),
    ("string as questions", {"questions": "abc"}, "questions", "must be a list of texts"),
    ("too many questions", {"questions": tuple(map(str, range(101)))}, "questions", "at most 100"),
    ("long question", {"questions": ("x" * 201,)}, "questions", "1 to 200"),
    ("blank question", {"questions": ("ok", " \n")}, "questions", "is blank"),
    ("empty intent", {"questions": ("intent: ",)}, "questions", "intent:NAME"),
    ("number as question", {"questions": (1,)}, "questions", "must be a text"),
    ("wild question", {"questions": ("*a" * 9,)}, "questions", "8 wildcards at most"),
    ("wide wild question", {"questions": ("＊a" * 9,)}, "questions", "8 wildcards at most"),
    ("too many folders", {"folders": tuple(map(str, range(101)))}, "folders", "at most 100"),
    ("NUL in folder", {"folders": ("a\x00b",)}, "folders", "valid Unicode"),
    ("wild folder", {"folders": ("?" * 9,)}, "folders", "8 wildcards at most"),
]


@pytest.mark.parametrize(("values", "field", "says"), [each[1:] for each in BAD], ids=[each[0] for each in BAD])
def test_a_bad_lens_is_refused(values: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lenses.validate(Lens(**{"name": "mine", **values}), LIMITS)
    assert caught.value.field == field
    assert says in str(caught.value)


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_recipe_field_is_checked(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lenses.validate(Lens(name="mine", recipe={name: "much"}), LIMITS)
    assert caught.value.field.startswith(f"recipe.{name}")


def test_a_checked_lens_is_tidy() -> None:
    noon = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    given: Any = {"boost_entities": ["Ada", "Ada"], "questions": ["a", "b", "a"], "folders": [], "built_in": True}
    lens = lenses.validate(Lens(name="größe_2-b", where=Filter(kinds=["note"], created_from=noon), **given), LIMITS)
    assert lens == Lens(
        name="größe_2-b",
        where=Filter(kinds=("note",), created_from=DAY.replace(hour=12)),
        boost_entities=("Ada",),
        questions=("a", "b"),
    )
    assert lens.where.created_from is not None
    assert lens.where.created_from.tzinfo is UTC
    assert lenses.validate(lens, LIMITS) == lens


def test_an_alias_of_a_mode_is_kept_as_the_mode() -> None:
    assert lenses.validate(Lens(name="x", mode="text"), LIMITS).mode == "keyword"
    assert lenses.validate(Lens(name="x", mode="vector"), LIMITS).mode == "semantic"
    assert lenses.validate(Lens(name="x"), LIMITS).mode is None


def test_the_limits_that_are_given_count() -> None:
    with pytest.raises(InvalidInput, match="at most 5"):
        lenses.validate(Lens(name="sixsix"), Limits(name_chars_max=5))


def test_question_marks_are_no_wildcards_of_a_phrase() -> None:
    assert lenses.validate(Lens(name="mine", questions=("what????????????",)), LIMITS).questions


# ---------------------------------------------------------------- which lens

QUESTIONS = [
    ("deploy", "how do I Deploy this?", True),
    ("deploy", "redeploy it", False),
    ("deploy", "deployment", False),
    ("deploy", "auto-deploy", True),
    ("deploy", "deploy_all", False),
    ("deploy", "redeploy, then deploy", True),
    ("stack trace", "a STACK\n trace", True),
    ("stack trace", "stack, trace", False),
    ("how do I deploy?", "how do i deploy to staging", True),
    ("c++", "is c++20 out", True),
    ("c++", "is c out", False),
    (".py", "what does main.py do", True),
    ("???", "what???", True),
    ("?", "what", False),
    ("straße", "welche STRASSE", True),
    ("cafe\u0301", "the Café", True),
    ("*traceback*", "here is a Traceback (most recent call last)", True),
    ("*traceback*", "here is a track back", False),
    ("＊traceback＊", "here is a Ｔｒａｃｅｂａｃｋ", True),
    ("fix *", "Fix the build", True),
    ("fix *", "please fix the build", False),
    ("*[error]*", "an [ERROR] here", True),
    ("*[error]*", "an e here", False),
    ("*v?.1*", "since v2.1 it fails", True),
    ("*错误*", "这个错误怎么办", True),
    ("intent:troubleshoot", "anything", True),
    ("Intent: Troubleshoot", "anything", True),
    ("intent:how-to", "how-to", False),
    ("*", "", True),
]


@pytest.mark.parametrize(("trigger", "question", "selects"), QUESTIONS)
def test_a_question_selects_a_lens(trigger: str, question: str, selects: bool) -> None:
    lens = lenses.validate(Lens(name="mine", questions=("never this", trigger)), LIMITS)
    assert lenses.select([lens], question, "troubleshoot", None) == (lens if selects else None)


FOLDERS = [
    ("*/payments*", "/home/me/payments-api/src", True),
    ("*/payments*", "C:\\Work\\Payments", True),
    ("*\\payments*", "/home/me/payments", True),
    ("*/payments*", "/home/me/repayments", False),
    ("*/payments/*", "/home/me/payments", True),
    ("*/payments/", "/home/me/payments", True),
    ("/home/me/pay", "/home/me/pay/", True),
    ("/home/me/pay", "/home/me/pay/src", False),
    ("*/v?", "/home/v2", True),
    ("*/[a]", "/home/a", False),
    ("*/[a]", "/home/[a]", True),
    ("*/cafe\u0301", "/home/café", True),
    ("*", "", True),
    ("*", None, False),
]


@pytest.mark.parametrize(("pattern", "folder", "selects"), FOLDERS)
def test_a_folder_selects_a_lens(pattern: str, folder: str | None, selects: bool) -> None:
    lens = lenses.validate(Lens(name="mine", folders=(pattern,)), LIMITS)
    assert lenses.select([lens], "anything", "general", folder) == (lens if selects else None)


def test_the_more_special_lens_wins_then_the_first_by_name() -> None:
    asked = Lens(name="a", questions=("build",))
    here = Lens(name="b", folders=("*/app",))
    both = Lens(name="c", questions=("build",), folders=("*/app",))
    later = replace(both, name="d")
    everything = [later, both, here, asked, *BUILT_IN.values(), Lens(name="0")]

    def chosen(question: str, folder: str | None) -> Lens | None:
        return lenses.select(everything, question, "general", folder)

    assert chosen("the build", "/x/app") == both
    assert chosen("the rest", "/x/app") == here
    assert chosen("the build", "/x/other") == asked
    assert chosen("the build", None) == asked
    assert chosen("the rest", None) is None
    assert lenses.select([], "the build", "general", None) is None


def test_no_pattern_is_slow() -> None:
    patterns = ("*a" * 8, "*" + "?" * 7 + "b", "a" * 199)
    lens = lenses.validate(Lens(name="mine", questions=patterns, folders=patterns), LIMITS)

    def select(chars: int) -> None:
        assert lenses.select([lens], "a" * (chars - 1) + "c", "general", "a" * chars + "c") is None

    assert_linear(select, int, 10_000)
    whole = "a" * 10_000
    assert_takes_less(2, lambda question: lenses.select([lens], question, "general", "/"), whole, whole * 100)


# ---------------------------------------------------------------- what a lens changes

FULL = Lens(
    name="full",
    where=Filter(namespaces=("apis", "config"), tags_all=("x",), created_from=DAY, metadata={"env": "prod"}),
    boost_entities=("Ada", "Bob"),
    recipe={"alpha": 0.7, "k": 10},
    mode="semantic",
    limit=7,
    min_score=0.4,
    token_budget=900,
)


def test_a_request_that_wishes_nothing_takes_all_of_the_lens() -> None:
    assert lenses.apply(FULL, ASKED) == (
        replace(
            ASKED,
            where=FULL.where,
            boost_entities=("Ada", "Bob"),
            recipe=Recipe(alpha=0.7, k=10),
            mode="semantic",
            limit=7,
            min_score=0.4,
            token_budget=900,
        ),
        Filter(),
        True,
    )


def test_an_empty_lens_changes_nothing() -> None:
    assert lenses.apply(Lens(name="empty"), ASKED) == (ASKED, Filter(), True)


def test_what_the_caller_wishes_wins() -> None:
    asked = replace(
        ASKED,
        mode="keyword",
        limit=3,
        min_score=0.1,
        token_budget=50,
        recipe=Recipe(k=20),
        boost_entities=["Cy", "Bob"],
        lens="full",
        session="s",
    )
    seen = lenses.apply(FULL, asked).request
    assert seen == replace(asked, recipe=Recipe(k=20, alpha=0.7), where=FULL.where, boost_entities=("Cy", "Bob", "Ada"))


def test_a_weight_of_meaning_keeps_the_mode_of_a_lens_away() -> None:
    asked = replace(ASKED, recipe=Recipe(alpha=0.8))
    assert lenses.apply(BUILT_IN["exact"], asked).request == asked


def test_a_recipe_field_that_is_not_known_any_more_is_left_alone() -> None:
    assert lenses.apply(Lens(name="old", recipe={"salt": 1}), ASKED).request == ASKED


def joined(own: Filter, further: Filter) -> tuple[Filter, Filter, bool]:
    request, also, possible = lenses.apply(Lens(name="mine", where=further), replace(ASKED, where=own))
    return request.where, also, possible


LATER = DAY + timedelta(days=1)
JOINED: list[tuple[str, Filter, Filter, Filter]] = [
    ("lists", Filter(kinds=["a", "b", "c"]), Filter(kinds=("c", "b", "d")), Filter(kinds=("b", "c"))),
    ("other lists", Filter(kinds=("a",)), Filter(sessions=("s",)), Filter(kinds=("a",), sessions=("s",))),
    ("tags", Filter(tags_all=("a",)), Filter(tags_all=("b", "a")), Filter(tags_all=("a", "b"))),
    ("tags that are not", Filter(tags_none=("a",)), Filter(tags_none=("b",)), Filter(tags_none=("a", "b"))),
    ("parts", Filter(has=("tags",)), Filter(has=("facts",)), Filter(has=("tags", "facts"))),
    ("fact types", Filter(fact_types=("kv",)), Filter(kinds=("a",)), Filter(kinds=("a",), fact_types=("kv",))),
    ("starts", Filter(created_from=DAY), Filter(created_from=LATER), Filter(created_from=LATER)),
    ("ends", Filter(created_until=DAY), Filter(created_until=LATER), Filter(created_until=DAY)),
    ("least", Filter(importance_min=0.3), Filter(importance_min=0.5), Filter(importance_min=0.5)),
    ("most", Filter(importance_max=0.3), Filter(importance_max=0), Filter(importance_max=0)),
    ("most of 0", Filter(importance_max=0), Filter(importance_max=0.3), Filter(importance_max=0)),
    ("metadata", Filter(metadata={"a": 1}), Filter(metadata={"a": 1.0, "b": 2}), Filter(metadata={"a": 1, "b": 2})),
    ("same tags", Filter(tags_any=("a", "b")), Filter(tags_any=("a", "b")), Filter(tags_any=("a", "b"))),
    ("spaces", Filter(spaces=("mine",)), Filter(spaces=("yours",)), Filter(spaces=("mine",))),
    ("no spaces", Filter(), Filter(spaces=("yours",)), Filter()),
]


@pytest.mark.parametrize(("own", "further", "both"), [each[1:] for each in JOINED], ids=[each[0] for each in JOINED])
def test_filters_are_joined(own: Filter, further: Filter, both: Filter) -> None:
    assert joined(own, further) == (both, Filter(), True)


@pytest.mark.parametrize(
    ("own", "further"),
    [
        (Filter(tags_any=("a", "b")), Filter(tags_any=("b", "c"))),
        (Filter(fact_types=("kv", "state")), Filter(fact_types=("kv", "config"))),
        (Filter(sources=("docs/*",)), Filter(sources=("*.md",))),
    ],
)
def test_what_one_filter_cannot_say_is_given_apart(own: Filter, further: Filter) -> None:
    assert joined(own, further) == (own, further, True)


@pytest.mark.parametrize(
    ("own", "further"),
    [
        (Filter(kinds=("a",)), Filter(kinds=("b",))),
        (Filter(namespaces=("a",)), Filter(namespaces=("b",))),
        (Filter(sessions=("a",)), Filter(sessions=("b",))),
        (Filter(metadata={"a": 1}), Filter(metadata={"a": True})),
        (Filter(metadata={"a": None}), Filter(metadata={"a": 0})),
        (Filter(created_until=DAY), Filter(created_from=DAY)),
        (Filter(tags_all=("a",)), Filter(tags_none=("a",))),
        (Filter(importance_min=0.7), Filter(importance_max=0.6)),
    ],
)
def test_filters_that_exclude_each_other_match_nothing(own: Filter, further: Filter) -> None:
    assert joined(own, further)[2] is False
    assert joined(further, own)[2] is False


# ---------------------------------------------------------------- properties

few = st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
days = st.none() | st.integers(0, 3).map(lambda number: DAY + timedelta(days=number))
scalars = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, "a"])
FILTERS = st.builds(
    Filter,
    kinds=few,
    namespaces=few,
    sessions=few,
    tags_any=few,
    tags_all=few,
    tags_none=few,
    sources=st.lists(st.sampled_from(["a*", "*b", "ab", "?b"]), max_size=2, unique=True).map(tuple),
    created_from=days,
    created_until=days,
    metadata=st.dictionaries(st.sampled_from("xy"), scalars, max_size=2),
    has=st.lists(st.sampled_from(get_args(Part)), max_size=2, unique=True).map(tuple),
    fact_types=st.lists(st.sampled_from(get_args(FactType)), max_size=2, unique=True).map(tuple),
    importance_min=st.sampled_from([None, None, 0, 0.5, 1]),
    importance_max=st.sampled_from([None, None, 0, 0.5, 1]),
)
one = st.sampled_from("abc")
MEMORIES = st.builds(
    Memory,
    id=st.just("1"),
    space=st.just("default"),
    kind=one | st.just("fact"),
    namespace=one,
    text=st.just("text"),
    summary=st.none() | one,
    tags=few,
    source=st.none() | st.sampled_from(["ab", "aab", "cb", "ac"]),
    session=st.none() | one,
    position=st.none(),
    metadata=st.dictionaries(st.sampled_from("xy"), scalars, max_size=2),
    importance=st.sampled_from([0, 0.5, 1]),
    created=days.map(lambda day: day or DAY),
    updated=st.just(DAY),
)
# Without what the other fields ask for, a random memory would hardly ever pass.
NAMES = st.lists(st.sampled_from([each.name for each in fields(Filter)]), min_size=1, max_size=2)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(FILTERS, FILTERS, NAMES, st.lists(MEMORIES, min_size=3, max_size=8))
def test_both_filters_hold_and_nothing_else(
    own: Filter, further: Filter, names: list[str], memories: list[Memory]
) -> None:
    own, further = (Filter(**{name: getattr(each, name) for name in names}) for each in (own, further))
    where, also, possible = joined(own, further)
    for memory in memories:
        expected = filter_matches(own, memory) and filter_matches(further, memory)
        assert (filter_matches(where, memory) and filter_matches(also, memory)) == expected
        assert possible or not expected


texts = st.text(st.characters(codec="utf-8"), max_size=20)
many = st.lists(texts, max_size=3).map(tuple)
moments = st.none() | st.datetimes(timezones=st.just(UTC))
numbers = st.floats(0, 1)
LENSES = st.builds(
    Lens,
    name=texts,
    description=texts,
    where=st.builds(
        Filter,
        kinds=many,
        tags_any=many,
        created_from=moments,
        created_until=moments,
        metadata=st.dictionaries(texts, st.none() | st.booleans() | st.integers() | numbers | texts, max_size=3),
        has=st.lists(st.sampled_from(get_args(Part)), max_size=3).map(tuple),
        importance_min=st.none() | numbers,
    ),
    boost_entities=many,
    recipe=st.dictionaries(st.sampled_from(WEIGHTS), numbers | st.integers(0, 9)),
    mode=st.none() | st.sampled_from(get_args(Mode)),
    limit=st.none() | st.integers(1, 1_000),
    min_score=st.none() | numbers,
    token_budget=st.none() | st.integers(1, 9_999),
    questions=many,
    folders=many,
    built_in=st.booleans(),
)


@pytest.mark.slow
@given(LENSES)
def test_a_lens_survives_json(lens: Lens) -> None:
    written = lenses.to_json(lens)
    assert lenses.from_json(json.loads(json.dumps(written))) == lens
    assert not any(value is None or value in ((), [], {}, "") for name, value in written.items() if name != "name")


REQUESTS = st.builds(
    SearchRequest,
    query=texts,
    mode=st.sampled_from(get_args(Mode)),
    limit=st.sampled_from([20, 1, 7]),
    where=FILTERS,
    recipe=st.builds(Recipe, alpha=st.sampled_from([0.5, 0.1, 1.0]), k=st.sampled_from([60, 5])),
    boost_entities=many,
    min_score=st.sampled_from([0.0, 0.9]),
    token_budget=st.sampled_from([None, 77]),
    collapse=st.booleans(),
    session=st.none() | texts,
)


def wishes(of: Any, usual: Any) -> Mapping[str, object]:
    """The fields of a value that are not as usual."""
    everything = {each.name: getattr(of, each.name) for each in fields(of)}
    return {name: value for name, value in everything.items() if value != getattr(usual, name)}


@pytest.mark.slow
@given(LENSES, REQUESTS)
def test_explicit_wishes_survive(lens: Lens, request: SearchRequest) -> None:
    seen = lenses.apply(lens, request).request
    explicit = {
        name: value
        for name, value in wishes(request, USUAL).items()
        if name not in ("where", "recipe", "boost_entities")
    }
    assert wishes(seen, USUAL).items() >= explicit.items()
    recipe_wishes = wishes(request.recipe, Recipe())
    assert {name: getattr(seen.recipe, name) for name in recipe_wishes} == recipe_wishes
    boosted = tuple(dict.fromkeys(request.boost_entities))
    assert tuple(seen.boost_entities)[: len(boosted)] == boosted
    assert set(seen.boost_entities) == {*request.boost_entities, *lens.boost_entities}
    assert seen.where.spaces == request.where.spaces


# ---------------------------------------------------------------- JSON


def test_a_lens_as_json() -> None:
    lens = replace(FULL, questions=("intent:how-to", "*deploy*"), description="All of it")
    assert lenses.to_json(lens) == {
        "name": "full",
        "description": "All of it",
        "where": {
            "namespaces": ["apis", "config"],
            "tags_all": ["x"],
            "created_from": "2026-03-01T00:00:00Z",
            "metadata": {"env": "prod"},
        },
        "boost_entities": ["Ada", "Bob"],
        "recipe": {"alpha": 0.7, "k": 10},
        "mode": "semantic",
        "limit": 7,
        "min_score": 0.4,
        "token_budget": 900,
        "questions": ["intent:how-to", "*deploy*"],
    }
    assert lenses.to_json(Lens(name="empty", where=Filter(kinds=[]))) == {"name": "empty"}


BAD_JSON: list[tuple[str, object, str, str]] = [
    ("list", [], "lens", "must be a JSON object, not list"),
    ("no name", {"limit": 3}, "name", "is missing"),
    ("unknown key", {"name": "a", "colour": 1}, "colour", "is unknown; allowed: name, description"),
    ("unknown keys", {"name": "a", "colour": 1, "size": 2}, "colour, size", "are unknown"),
    ("unknown filter", {"name": "a", "where": {"tag": "x"}}, "where.tag", "is unknown; allowed: spaces, kinds"),
    ("list as filter", {"name": "a", "where": []}, "where", "must be a JSON object"),
    ("no time", {"name": "a", "where": {"created_from": "soon"}}, "where.created_from", "2026-03-01T12:30:00Z"),
    ("number as time", {"name": "a", "where": {"created_until": 20260301}}, "where.created_until", "not a time"),
]


@pytest.mark.parametrize(("data", "field", "says"), [each[1:] for each in BAD_JSON], ids=[each[0] for each in BAD_JSON])
def test_bad_json_is_refused(data: object, field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lenses.from_json(data)
    assert caught.value.field == field
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"name": "a", "questions": "abc"}, "questions"),
        ({"name": "a", "recipe": []}, "recipe"),
        ({"name": "a", "description": None}, "description"),
        ({"name": "a", "where": {"kinds": "note"}}, "where.kinds"),
        ({"name": "a", "where": {"created_from": "2026-03-01"}}, "where.created_from"),
    ],
)
def test_a_wrong_type_in_json_is_seen_by_the_checks(data: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lenses.validate(lenses.from_json(data), LIMITS)
    assert caught.value.field == field
