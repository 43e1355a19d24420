"""The recipes in CONTRIBUTING.md are short, and the files they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## (Add a \w+)\n\n(.*?)\n(?=\n## )", TEXT, re.DOTALL | re.MULTILINE))


def test_the_recipes_are_here() -> None:
    assert list(RECIPES) == ["Add a signal", "Add a filter", "Add a language", "Add a verb", "Add a store"]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_is_short_and_its_files_exist(recipe: str) -> None:
    assert len(recipe.splitlines()) < 15
    named = re.findall(r"`([\w/]+\.(?:py|md))`", recipe)
    assert len(named) >= 5
    for each in named:
        below = ROOT if each.startswith(("tests/", "docs/")) else ROOT / "src" / "nacre"
        assert (below / each).is_file(), each
