"""Front matter: what is read of it, what stays in the text, and that no text is ever lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre.access import Access
from nacre.analysis.front_matter import Document, read
from nacre.types.memory import NewMemory
from nacre.validation import LIMITS, memory

BODY = "# Kilns\n\nThe kiln is hot.\n"


def fields(block: str, fence: str = "---") -> Document:
    found = read(f"{fence}\n{block}\n{fence}\n\n{BODY}")
    assert found.text == BODY
    return found


def test_a_note_as_people_write_it() -> None:
    found = fields(
        "# about ovens\ntitle: \"Kilns: a guide\"\ndate: 2026-03-01T10:30:00Z\ntags:\n  - ovens\n  - 'hot things'\n"
        'draft: false\nrating: 4.5\nauthor: Ada  # the potter\naliases: [oven, "kiln, large"]\nempty:\n'
    )
    assert found.title == "Kilns: a guide"
    assert found.tags == ("ovens", "hot things")
    assert found.created == datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    assert found.metadata == {
        "title": "Kilns: a guide",
        "draft": False,
        "rating": 4.5,
        "author": "Ada",
        "aliases": ["oven", "kiln, large"],
    }


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("x: plain words", "plain words"),
        ("x: a: b", "a: b"),
        ("x: 12", 12),
        ("x: -0.5", -0.5),
        ("x: 007", "007"),
        ("x: 1e3", 1000.0),
        ("x: 1_000", "1_000"),
        ("x: 1.2.3", "1.2.3"),
        ("x: 99999999999999999999", "99999999999999999999"),
        ("x: 1e999", "1e999"),
        ("x: ²", "²"),
        ("x: True", True),
        ("x: yes", "yes"),
        ("x: ''", ""),
        ("x: 'it''s' # a comment", "it's"),
        (r'x: "tab\tand \u00e9" # comment', "tab\tand é"),
        ("x: C#", "C#"),
        ("x: https://example.org/#top", "https://example.org/#top"),
        ("x: []", []),
        ("x: [1, two, 'three, four', \"5\", ]", [1, "two", "three, four", "5"]),
        ("x: [it's, a'b]", ["it's", "a'b"]),
        ('x:\n- 1\n- b c\n- "- d"', [1, "b c", "- d"]),
        ("x:\n  # first\n  - a\n\n  - b # second", ["a", "b"]),
    ],
)
def test_a_value(block: str, value: Any) -> None:
    found = fields(block).metadata["x"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("block", ["x:", "x: ~", "x: null", "x: # nothing"])
def test_nothing_is_no_value(block: str) -> None:
    assert fields(f"{block}\ny: 1").metadata == {"y": 1}


@pytest.mark.parametrize(
    ("block", "tags"),
    [
        ("tags: [a, b]", ("a", "b")),
        ("tags: a, b,,#c", ("a", "b", "c")),
        ("tag: one tag", ("one tag",)),
        ("Keywords:\n- a\n- 7\n- a", ("a", "7")),
        ("tags: [a]\nkeywords: [b, a]", ("a", "b")),
        ("tags: ['#a', ~, '']", ("a",)),
    ],
)
def test_tags(block: str, tags: tuple[str, ...]) -> None:
    found = fields(f"{block}\ny: 1")
    assert (found.tags, found.metadata) == (tags, {"y": 1})


@pytest.mark.parametrize(
    ("block", "created", "metadata"),
    [
        ("date: 2026-03-01 10:30:00 +02:00", datetime(2026, 3, 1, 8, 30, tzinfo=UTC), {}),
        ("published: '2026-03-01T00:00:00Z'", datetime(2026, 3, 1, tzinfo=UTC), {}),
        ("date: 2026-03-01\ncreated: 2026-02-01T00:00:00Z", datetime(2026, 2, 1, tzinfo=UTC), {"date": "2026-03-01"}),
        ("date: last spring", None, {"date": "last spring"}),
        ("date: soon\npublished: 2026-02-01T00:00:00Z", datetime(2026, 2, 1, tzinfo=UTC), {"date": "soon"}),
        ("date: 2026", None, {"date": 2026}),
        ("date: 2026-02-30", None, {"date": "2026-02-30"}),
        ("updated: 2026-02-03", None, {"updated": "2026-02-03"}),
    ],
)
def test_dates(block: str, created: datetime | None, metadata: dict[str, Any]) -> None:
    found = fields(block)
    assert (found.created, found.metadata) == (created, metadata)


def test_a_date_without_a_time_zone_is_local() -> None:
    assert fields("date: 2026-03-01").created == datetime(2026, 3, 1).astimezone(UTC)


def test_toml() -> None:
    found = fields(
        'title = "Kilns"\ntags = ["a", "b"]\ndate = 2026-03-01T10:00:00Z\nbig = 99999999999999999999\n'
        "odd = nan\nat = 10:30:00\n[params]\ndeep = {x = 1}\n",
        "+++",
    )
    assert (found.title, found.tags, found.created) == ("Kilns", ("a", "b"), datetime(2026, 3, 1, 10, tzinfo=UTC))
    assert found.metadata == {
        "title": "Kilns", "big": "99999999999999999999", "odd": "nan", "at": "10:30:00", "params": {"deep": {"x": 1}},
    }  # fmt: skip


def test_lines_may_end_as_elsewhere_and_the_block_as_yaml_says() -> None:
    found = read("\ufeff---\r\ntitle: Kilns\r\n...\r\n\r\nThe kiln\r\n")
    assert (found.title, found.text) == ("Kilns", "The kiln\r\n")


@pytest.mark.parametrize(
    "unread",
    [
        "author:\n  name: Ada\n  age: 36",
        "text: |\n  two\n  lines",
        "text: >-\n  folded",
        "text: begins here\n  and goes on",
        "people:\n  - name: Ada\n  - name: Bo",
        "x: {a: 1}",
        "x: [a, [b]]",
        "x: [a,\n  b]",
        "x: &anchor y",
        "x: 'open",
        'x: "\\x"',
        'x: "\\ud800"',
        'x: "\\u0000"',
        "title: a second one",
    ],
)
def test_what_cannot_be_read_stays_in_the_text(unread: str) -> None:
    found = read(f"---\ntitle: Kilns\n{unread}\ntags: [a]\n---\n{BODY}")
    assert (found.title, found.tags) == ("Kilns", ("a",))
    assert found.text == f"---\n{unread}\n---\n{BODY}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\ntitle: x\n",
        "---\ntitle: x\n---\n",
        "---\ntitle: x\n---\n \n",
        "---\n---\nText",
        "----\ntitle: x\n----\nText",
        "Text\n---\ntitle: x\n---\n",
        "---\n\nA ruler, and then: prose.\n\n---\nmore",
        "---\ntitle: x\nprose\n---\nmore",
        "---\n# only a comment\n---\nmore",
        "---\nx: {a: 1}\n---\nmore",
        "+++\ntitle = \n+++\nmore",
        f"+++\nx = {'[' * 30}{']' * 30}\n+++\nmore",
        '+++\nx = "\\u0000"\n+++\nmore',
        f"---\ntitle: x\nlong: {'x' * 20_000}\n---\nmore",
    ],
)
def test_what_has_no_front_matter_is_left_as_it_is(text: str) -> None:
    assert read(text) == Document(text)


PIECES = st.sampled_from(
    ["---", "+++", "...", "title: x", "tags: [a, 'b']", "tags:", "- a", "  - 'b", "date: 2026-03-1", "x: |", "  y", "#",
     "x = 1", 'x = "', "x: [", "x: ']", "[[t]]", "", " ", "prose", "a: b: c", 'q: "\\', "\r", "é: 1", "-", "\x00: \x00"]
)  # fmt: skip
LINES = st.lists(PIECES | st.text(max_size=12), max_size=14)


@given(LINES, LINES, st.sampled_from(["---", "+++"]))
@example(["title: x"], ["body"], "---")
@settings(max_examples=300)
def test_no_file_is_a_problem_and_no_text_is_lost(block: list[str], rest: list[str], fence: str) -> None:
    """All that follows the block is in the text, and what was read of it can be stored."""
    text = "\n".join([fence, *block, fence, "The body", *rest])
    found = read(text)
    assert found.text.endswith("\n".join(["The body", *rest]))
    if found.text != text:  # what stays of the block are lines of it, in their order
        kept = iter(text.split("\n"))
        assert all(line in kept for line in found.text.split("\n") if line not in ("---", ""))
        checked = NewMemory(text="t", tags=found.tags, metadata=found.metadata, created=found.created)
        if all(len(tag) <= LIMITS.name_chars_max for tag in found.tags):
            memory(checked, Access(), datetime.now(UTC), LIMITS)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert read(text).text == text or text.removeprefix("\ufeff").startswith(("---", "+++"))


def test_a_long_block_takes_no_time() -> None:
    for line in (
        "x: ['" + "a'" * 7_000,
        "x: " + "[" * 15_000,
        "'" * 15_000 + ": x",
        "- " * 7_000,
        "x: " + " #" * 7_000,
    ):
        read(f"---\ntitle: y\n{line}\n---\n{BODY}")
