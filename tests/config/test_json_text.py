"""JSON that is edited as text: what was asked for changes, and no comment and no other value is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.config import json_text

GAPS = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", ' /* {," */ ', ' // "}],\n', "\n// a\n", "/* b\n */\n  "])
NAMES = st.text('ab"\\/é,}]', max_size=3)
LEAVES = st.none() | st.booleans() | st.integers() | st.text('a"\\/*{}[],:\n', max_size=5)


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """A text of the value, with spaces and comments wherever they may be."""
    if not isinstance(value, dict | list):
        return json.dumps(value)
    inside = ""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    last = len(value) - 1
    for number, (name, each) in enumerate(items):
        label = f"{json.dumps(name)}{draw(GAPS)}:{draw(GAPS)}" if isinstance(value, dict) else ""
        comma = "," if number < last or draw(st.booleans()) else ""
        inside += f"{draw(GAPS)}{label}{draw(texts(each))}{draw(GAPS)}{comma}"
    inside += draw(GAPS)
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    value = draw(OBJECTS | st.fixed_dictionaries({"s": OBJECTS}, optional={"a": VALUES}))
    return draw(GAPS) + draw(texts(value)) + draw(GAPS), value


def comments(text: str) -> int:
    """Those of the gaps above, which no string has in this form."""
    return sum(text.count(each) for each in ('/* {," */', '// "}],', "// a", "/* b"))


NEW = {"command": "/x", "args": ["a", "b"]}


@pytest.mark.slow
@settings(max_examples=1000)
@given(documents())
def test_what_is_put_in_is_there_and_nothing_is_lost(document: tuple[str, dict[str, Any]]) -> None:
    text, value = document
    assert json_text.read(text) == value
    servers = value.get("s")
    inner = servers if isinstance(servers, dict) else None
    if "s" in value and inner is None:
        return
    added = json_text.put(text, ("s", "new"), NEW)
    assert json_text.read(added) == value | {"s": (inner or {}) | {"new": NEW}}
    assert comments(added) == comments(text)
    again = json_text.put(added, ("s", "new", "command"), "/y")
    assert json_text.read(again)["s"]["new"] == NEW | {"command": "/y"}
    left = json_text.remove(added, ("s", "new"))
    assert json_text.read(left) == value | {"s": inner or {}}
    assert comments(left) == comments(text)


@pytest.mark.slow
@settings(max_examples=100)
@given(documents(), st.data())
def test_any_member_can_be_removed(document: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    text, value = document
    if not value:
        return
    name = data.draw(st.sampled_from(sorted(value)))
    assert json_text.read(json_text.remove(text, (name,))) == {each: value[each] for each in value if each != name}


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(VALUES, max_size=3), st.data())
def test_lists_grow_and_shrink(values: list[Any], data: st.DataObject) -> None:
    text = data.draw(texts({"l": values}))
    added = json_text.append(text, ("l",), NEW)
    assert json_text.read(added) == {"l": [*values, NEW]}
    assert comments(added) == comments(text)
    number = data.draw(st.integers(0, len(values)))
    rest = [*values, NEW]
    del rest[number]
    assert json_text.read(json_text.remove(added, ("l", number))) == {"l": rest}


def test_a_missing_list_is_made() -> None:
    assert json_text.append("", ("a", "b"), 1) == '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}\n'
    assert json_text.append('{"c": 1}', ("a", "b"), 1) == '{"c": 1, "a": {"b": [1]}}'
