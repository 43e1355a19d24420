"""Arguments as models send them: what is read otherwise than given, what is said about it, and what stays as it was."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.errors import InvalidInput
from nacre.mcp_server import graph_tools
from nacre.mcp_server.arguments import read
from nacre.mcp_server.json_schema import array, boolean, closed, enum, fields_of, integer, number, obj, of, string
from nacre.mcp_server.tool import Answer, Tool
from nacre.mcp_server.tools import chosen
from nacre.serialization import decode
from nacre.types.memory import NewMemory
from nacre.types.search import SearchRequest
from nacre.types.views import ContextRequest, TimelineRequest
from nacre.validation import LIMITS

TOOL = Tool(
    name="tool",
    title="Tool",
    description="",
    effect="reads",
    answer=lambda _: Answer({}),
    request=SearchRequest,
    input=closed(
        {
            "query": string(),
            "many": integer(),
            "share": number(),
            "sure": boolean(),
            "ids": array(),
            "names": array(),
            "mode": enum("hybrid", "keyword"),
            "where": obj({"many": integer()}),
            "items": array(obj({"text": string(), "many": integer()})),
        },
        ("query",),
    ),
)

# fmt: off
READ: list[tuple[str, Any, Any]] = [
    ("many", "5", 5), ("many", " -7 ", -7), ("many", 5.0, 5), ("many", "5.0", 5), ("many", "1e3", 1000),
    ("share", "0.7", 0.7), ("share", "1", 1), ("share", ".5", 0.5),
    ("sure", "true", True), ("sure", "False", False), ("sure", "YES", True), ("sure", "no", False), ("sure", 1, True),
    ("sure", 0, False), ("sure", "on", True), ("sure", "0", False),
    ("ids", "a,b", ["a", "b"]), ("ids", " a , b ,", ["a", "b"]), ("ids", '["a","b"]', ["a", "b"]),
    ("ids", '["a", 5]', ["a", "5"]), ("ids", [5, "b"], ["5", "b"]), ("ids", "[]", []),
    ("names", '["Smith, John"]', ["Smith, John"]),
    ("mode", "Hybrid", "hybrid"), ("mode", " KEYWORD", "keyword"),
    ("query", 5, "5"), ("query", 0.5, "0.5"), ("query", ["tea"], "tea"),
    ("where", '{"a": 1}', {"a": 1}), ("where", '{"many": "5"}', {"many": 5}),
    ("items", '[{"text": "x"}]', [{"text": "x"}]), ("items", {"text": "x"}, [{"text": "x"}]),
    ("ids", "a b", ["a", "b"]), ("ids", "a, b c ", ["a", "b", "c"]),
    ("items", '{"text": "x"}', [{"text": "x"}]), ("items", [{"text": 5, "many": "2"}], [{"text": "5", "many": 2}]),
    ("importance_min", "0.7", 0.7), ("fact_types", "kv,state", ["kv", "state"]),  # filters, which it does not name
    ("include_facts", "true", True),  # the schema does not name it, the request does
    ("limit", "5", 5), ("boost_entities", '["Ada"]', ["Ada"]), ("recipe", '{"fusion": "rank"}', {"fusion": "rank"}),
]
KEPT: list[tuple[str, Any]] = [
    ("many", 5), ("many", 5.5), ("many", "5.5x"), ("many", "many"), ("many", True), ("many", [5]), ("many", "nan"),
    ("many", "1" * 5000), ("share", "inf"), ("share", 0.7), ("share", "half"), ("share", True), ("sure", True),
    ("sure", "perhaps"), ("sure", 2), ("ids", ["a", "b"]), ("ids", []), ("ids", {"a": 1}), ("ids", 5),
    ("ids", [["a", "b"]]), ("ids", ["a,b"]), ("mode", "fast"), ("mode", "hybrid"), ("query", "5"), ("query", "null"),
    ("query", ""), ("query", ["a", "b"]), ("query", True), ("query", {"a": 1}), ("where", "x"), ("where", "[1]"),
    ("where", {"many": 5}), ("items", "x"), ("items", [5]), ("unknown", "5"), ("rerank", "perhaps"),
]
# fmt: on


@pytest.mark.parametrize(("name", "value", "expected"), READ)
def test_what_can_be_read_in_one_way_is_read(name: str, value: Any, expected: Any) -> None:
    found = read(TOOL, {name: value})
    assert found.arguments == {name: expected}
    assert type(found.arguments[name]) is type(expected)
    same = expected == [value]
    assert len(found.notes) == (0 if same else 1)
    assert same or found.notes[0].startswith(f"{name}: ")


@pytest.mark.parametrize(("name", "value"), KEPT)
def test_what_cannot_be_read_stays_as_it_was_given(name: str, value: Any) -> None:
    found = read(TOOL, {name: value})
    expected = [value] if name == "ids" and value == "" else value
    assert (found.arguments, found.notes) == ({name: expected}, ())


@pytest.mark.parametrize("value", ["a", "Smith, John", "[not JSON", "{", "a b"])
def test_a_single_text_is_a_list_of_one_without_a_note(value: str) -> None:
    assert read(TOOL, {"names": value}) == ({"names": [value]}, ())


@pytest.mark.parametrize("value", ["", "null", "None", " "])
@pytest.mark.parametrize("name", ["many", "share", "sure", "ids", "mode", "where", "items", "lens"])
def test_nothing_as_a_text_is_not_given(name: str, value: str) -> None:
    found = read(TOOL, {"query": "x", name: value})
    assert found == ({"query": "x"}, (f"{name}: {json.dumps(value)} was read as not given",))


def test_objects_in_lists_have_the_fields_of_the_request() -> None:
    (many,) = (each for each in chosen("more") if each.name == "remember_many")
    given = [{"text": "x", "tags": "a,b", "importance": "0.7", "pinned": "true"}, {"text": "y", "facts": []}]
    found = read(many, {"memories": given})
    expected = [{"text": "x", "tags": ["a", "b"], "importance": 0.7, "pinned": True}, {"text": "y", "facts": []}]
    assert found.arguments == {"memories": expected}
    assert len(found.notes) == 1


def test_null_is_passed_on_and_means_not_given() -> None:
    assert read(TOOL, {"query": "x", "many": None}) == ({"query": "x", "many": None}, ())
    assert decode.fields({"many": None}, {"many": decode.as_given}) == {}


def test_notes_are_short() -> None:
    found = read(TOOL, {"ids": ",".join(["1m59szpcx8czexx7"] * 100), "many": "5", "query": "x"})
    assert found.notes == (
        'ids: "1m59szpcx8czexx7,1m59sz… was read as ["1m59szpcx8czexx7", "1m…',
        'many: "5" was read as 5',
    )


def test_a_note_does_not_say_that_a_value_was_read_as_itself() -> None:
    found = read(TOOL, {"items": [{"text": "a long text, and a number behind it", "many": "2"}]})
    assert found.notes == ('items: [{"text": "a long text, … was read as its schema says',)


def test_strict_tools_take_arguments_as_they_are() -> None:
    assert all(each.strict for each in graph_tools.TOOLS)
    names = {"names": "a,b"}
    (opening,) = (each for each in graph_tools.TOOLS if each.name == "open_nodes")
    assert read(opening, names) == (names, ())


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["5", "a,b", "[1]", "null", "true"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
NAMES = [*TOOL.input["properties"], "limit", "lens", "bogus"]  # type: ignore[misc]


@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=4))
def test_whatever_is_given_is_read_once(given: dict[str, Any]) -> None:
    """Never an exception; what was read is read again as it is; every difference is noted."""
    found = read(TOOL, given)
    assert found.arguments.keys() <= given.keys()
    assert repr(read(TOOL, found.arguments).arguments) == repr(found.arguments)
    noted = {each.partition(":")[0] for each in found.notes}
    for name, value in given.items():
        if name not in noted and name in found.arguments:
            assert repr(found.arguments[name]) in (repr(value), repr([value]))


# ---------------------------------------------------------------- unknown arguments


@pytest.mark.parametrize(
    ("name", "allowed", "meant"),
    [
        ("max_results", ("query", "limit"), "limit"),
        ("top_k", ("query", "limit"), "limit"),
        ("k", ("query", "limit"), "limit"),
        ("maxResults", ("query", "limit"), "limit"),
        ("q", ("query", "limit"), "query"),
        ("question", ("query", "limit"), "query"),
        ("text", ("query", "limit"), "query"),
        ("content", ("text", "tags"), "text"),
        ("max_tokens", ("query", "budget_tokens"), "budget_tokens"),
        ("budgetTokens", ("query", "budget_tokens"), "budget_tokens"),
        ("id", ("ids", "entities"), "ids"),
        ("ids", ("id", "text"), "id"),
        ("quary", ("query", "limit"), "query"),
        ("Limit", ("query", "limit"), "limit"),
        ("namespace", ("namespaces", "tags"), "namespaces"),
        ("min-score", ("min_score", "limit"), "min_score"),
        ("since", ("start", "end"), "start"),
        ("bogus", ("query", "limit"), None),
        ("", ("query",), None),
    ],
)
def test_an_unknown_argument_is_named_with_the_one_that_was_meant(
    name: str, allowed: tuple[str, ...], meant: str | None
) -> None:
    hint = "" if meant is None else f" did you mean `{meant}`?"
    expected = f"{name}: is unknown;{hint} allowed: {', '.join(allowed)}"
    assert str(decode.unknown_field(name, allowed)) == expected
    with pytest.raises(InvalidInput) as caught:
        decode.fields({name: 1}, dict.fromkeys(allowed, decode.as_given))
    assert str(caught.value) == expected


# ---------------------------------------------------------------- what is listed

EVERY = (*chosen("all"), *chosen("chatgpt"))


@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: tool.name)
def test_schemas_are_closed_and_titled(tool: Tool) -> None:
    assert tool.input["additionalProperties"] is False
    assert tool.title
    assert tool.text_only <= (tool.output is None)
    for name, schema in cast("dict[str, Any]", tool.input["properties"]).items():
        if "default" in schema:
            assert read(tool, {name: schema["default"]}).notes == (), name
            assert schema["default"] in schema.get("enum", [schema["default"]]), name
            assert schema.get("minimum", schema["default"]) <= schema["default"], name


def test_bounds_and_defaults_are_those_of_the_requests() -> None:
    listed: dict[str, Any] = {each.name: each.input["properties"] for each in EVERY}
    search, timeline, context = listed["search_memories"], listed["timeline"], listed["context"]
    assert search["limit"] == {
        "type": "integer", "default": SearchRequest(query="").limit, "minimum": 1, "maximum": LIMITS.results_max,
    }  # fmt: skip
    modes = {"type": "string", "enum": ["keyword", "semantic", "hybrid"], "default": SearchRequest(query="").mode}
    assert search["mode"] == listed["why"]["mode"] == modes
    assert timeline["limit"]["default"] == TimelineRequest().limit
    assert (timeline["span"]["default"], timeline["span"]["minimum"]) == (TimelineRequest().span, 0)
    assert context["budget_tokens"] == {
        "type": "integer", "default": ContextRequest(query="").budget_tokens, "minimum": 0,
    }  # fmt: skip
    assert "default" not in context["min_score"]
    assert listed["remember"]["importance"] == {
        "type": "number", "default": NewMemory(text="").importance, "minimum": 0, "maximum": 1,
    }  # fmt: skip
    assert (listed["related_entities"]["depth"]["minimum"], listed["related_entities"]["depth"]["maximum"]) == (1, 3)
    assert listed["get_memories"]["neighbours"]["maximum"] == LIMITS.neighbours_max


def test_fields_of_a_dataclass() -> None:
    fields = fields_of(NewMemory)
    assert fields["text"] == {"type": "string"}
    assert fields["namespace"] == {"type": "string", "default": "general"}
    assert fields["tags"] == fields["supersedes"] == {"type": "array", "items": {"type": "string"}}
    assert fields["metadata"] == {"type": "object"}
    assert fields["created"] == {"type": "string"}
    assert "facts" not in fields
    assert fields_of(SearchRequest)["mode"]["enum"] == ["keyword", "semantic", "hybrid", "text", "vector"]
    assert of(TimelineRequest, "histogram", "of all") == {
        "type": "string", "enum": ["day", "week", "month"], "description": "of all",
    }  # fmt: skip
