"""ARCHITECTURE.md and docs/decisions: what they name exists, and nothing is left out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from layers import LAYERS
from nacre.engine.pipeline import STAGES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nacre"
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
DECISIONS = ROOT / "docs" / "decisions"


def section(heading: str) -> str:
    """The text under a heading, up to the next one of the same level."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) <= 180


def test_every_test_that_is_named_exists() -> None:
    table = rows(section("Invariants"))
    assert len(table) > 35
    for invariant, tests in table:
        named = re.findall(r"`([^`]+)`", tests)
        assert named, invariant
        assert ", ".join(f"`{each}`" for each in named) == tests
        for each in named:
            assert (ROOT / "tests" / each).is_file(), f"{each} does not exist"


def test_the_layers_are_those_that_are_checked() -> None:
    (block,) = re.findall(r"```\n(.*?)```", section("Layers"), re.DOTALL)
    drawn = {}
    for line in block.splitlines():
        layer, names = re.split(r"\s{2,}", line)[:2]
        drawn[layer] = {name.strip() for name in names.split("·")}
    assert list(drawn) == list(LAYERS)
    for layer, names in LAYERS.items():
        there = {each for each in names if (SOURCE / each).is_dir() or (SOURCE / f"{each}.py").is_file()}
        assert there <= drawn[layer], layer
        assert drawn[layer] <= set(names), layer


def test_a_search_passes_the_stages_of_the_pipeline() -> None:
    (_, block, _) = re.findall(r"```\n(.*?)```", section("Flows"), re.DOTALL)
    assert tuple(line[2:].split()[0] for line in block.splitlines() if line.startswith("  ")) == STAGES


def test_every_room_is_named_and_every_file_in_it_exists() -> None:
    table = rows(section("Rooms"))
    rooms = {room.strip("/") for cell, *_ in table for room in re.findall(r"`([^`]+)`", cell)}
    there = {path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert {room.split("/")[0] for room in rooms} == there - {"__init__.py", "__main__.py"}
    for cell, _, first in table:
        folders = [SOURCE / room for room in re.findall(r"`([^`]+)`", cell)]
        for name in re.findall(r"`([\w/]+\.py)`", first):
            assert any(path.name == name or (path / name).is_file() for path in folders), f"{cell}: {name}"


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {re.split(r"[<>=!~\[ ]", each)[0] for each in project["dependencies"]} | {"mcp"}
    explained = {name for cell, _ in rows(section("Dependencies")) for name in cell.split(" (")[0].split(", ")}
    assert required <= explained


PAGES = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_context_choice_and_price(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"^#+ .*", text, re.MULTILINE)[1:] == ["## Context", "## Choice", "## Price"]
    assert len(text.splitlines()) <= 40


def test_every_decision_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", index)) == [page.name for page in PAGES]
