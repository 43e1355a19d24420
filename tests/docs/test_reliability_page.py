"""docs/reliability.md: each promise has a test that exists, and no fault of the campaign is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.faults import FAULTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table that begins with this heading."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-:|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None, heading
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table[1].splitlines()]


TEST = r"`([\w/]+\.py)::(test_\w+)`"
NAMED = re.findall(TEST, TEXT)
PROMISES = {name: rows(text, "promise") for name, text in SECTIONS.items() if "\n| promise |" in text}


def test_every_subject_is_here() -> None:
    assert len(PROMISES) == 14
    assert list(SECTIONS)[len(PROMISES) :] == ["What is not promised", "Measured", "What others promise"]


@pytest.mark.parametrize("subject", PROMISES)
def test_each_promise_is_a_sentence_with_its_tests(subject: str) -> None:
    for promise, tests in PROMISES[subject]:
        assert promise.endswith("."), promise
        assert all(re.fullmatch(TEST, each) for each in tests.split(", ")), promise


def test_every_test_that_is_named_exists() -> None:
    assert len(NAMED) > 100
    for file, test in NAMED:
        code = (ROOT / "tests" / file).read_text("utf-8")
        assert re.search(rf"^(?:async )?def {test}\(", code, re.MULTILINE), f"{file}::{test} does not exist"


def test_every_fault_of_the_campaign_is_named() -> None:
    assert [fault for fault, *_ in rows(SECTIONS["Measured"], "fault")] == list(FAULTS)


def test_the_security_page_is_short() -> None:
    assert len((ROOT / "SECURITY.md").read_text("utf-8").splitlines()) < 90
