"""Fields of a recipe as text: one parser for every place where people write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nacre.errors import InvalidInput
from nacre.types.recipe import WEIGHTS, Recipe, adjusted, parse_weight, recipe_of, weights_of


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("alpha", "0.5", 0.5),
        ("k", " 30 ", 30),
        ("fusion", "rank", "rank"),
        ("namespace_weights", "decisions:1.5,config:0.8", {"decisions": 1.5, "config": 0.8}),
        ("namespace_weights", " decisions : 1.5 , ", {"decisions": 1.5}),
        ("namespace_weights", "team:ops:2", {"team:ops": 2.0}),
        ("namespace_weights", "", {}),
        ("namespace_weights", '{"a,b": 0.5}', {"a,b": 0.5}),
        ("intents", '{"how-to": {"patterns": 1.1}}', {"how-to": {"patterns": 1.1}}),
    ],
)
def test_a_field_is_read_from_text(name: str, text: str, value: Any) -> None:
    assert parse_weight(name, text) == value


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_default_is_read_back_as_it_is_written(name: str) -> None:
    value = weights_of(Recipe())[name]
    if name == "intents":
        value = {each: dict(weights) for each, weights in value.items()}
    text = value if isinstance(value, str) else json.dumps(value)
    assert adjusted(Recipe(), **{name: parse_weight(name, text)}) == Recipe()


def test_a_recipe_is_made_of_its_fields() -> None:
    given = {"alpha": 0.5, "k": "30", "fusion": "rank", "namespace_weights": "decisions:1.5", "bm25_b": 0.4}
    expected = adjusted(Recipe(), alpha=0.5, k=30, fusion="rank", namespace_weights={"decisions": 1.5}, bm25_b=0.4)
    assert recipe_of(given) == expected
    assert recipe_of({}) == Recipe()


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        (["alpha"], "recipe", 'must map fields to values, like {"recency_weight": 0.5}, not list'),
        ({"aplha": 1}, "recipe.aplha", "did you mean `alpha`?"),
        ({7: 1}, "recipe.7", "is unknown; allowed"),
        ({"alpha": "0,5"}, "recipe", "must be FIELD=VALUE"),
    ],
)
def test_a_recipe_is_not_made_of_anything_else(given: Any, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        recipe_of(given)
    assert caught.value.field == field
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("name", "text", "field", "problem"),
    [
        ("salt", "1", "recipe.salt", "is unknown; allowed: fusion, k, alpha"),
        ("recency", "1", "recipe.recency", "is unknown; did you mean `recency_weight`? allowed: fusion, k, alpha"),
        ("Rerank-Pool", "1", "recipe.Rerank-Pool", "did you mean `rerank_pool`?"),
        ("x" * 100_000, "1", f"recipe.{'x' * 60}", "is unknown; allowed: fusion"),
        ("alpha", "0,5", "recipe", "'alpha=0,5' must be FIELD=VALUE, for example recency_weight=0.5"),
        ("alpha", "", "recipe", "must be FIELD=VALUE"),
        ("namespace_weights", "decisions", "recipe.namespace_weights", "write it like decisions:1.5,config:0.8"),
        ("namespace_weights", "decisions:much", "recipe.namespace_weights", "write it like"),
    ],
)
def test_what_is_no_value_is_refused(name: str, text: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_weight(name, text)
    assert caught.value.field == field
    assert problem in caught.value.problem
