"""Why a memory was found, or at which stage it was lost: and that the remedy that is named brings it in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from engines import NOW, numbered_ids, opened
from nacre import Filter, Lens, NewFact, NotFound, Recipe, WhyNot
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.engine.explain import Stage
from nacre.storage.sqlite import SqliteStore

STAGES = {
    "found", "deleted", "space", "filter", "condition", "confidence", "duplicate", "delivered", "dissimilar",
    "irrelevant", "limit", "budget", "pool", "floor", "no match",
}  # fmt: skip


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.fixture
def memory(path: Path) -> Iterator[Nacre]:
    with opened(SqliteStore(path), log=True, make_ids=numbered_ids("x", 5)) as engine:
        yield engine


def shown(memory: Nacre, query: str, memory_id: str, **options: Any) -> bool:
    return memory_id in [hit.id for hit in memory.search(query, **options).hits]


def lost(memory: Nacre, query: str, memory_id: str, **options: Any) -> WhyNot:
    """Where it was lost; a search agrees that it was."""
    found = memory.why_not(query, memory_id, **options)
    assert shown(memory, query, memory_id, **options) == (found.stage == "found")
    assert found == memory.why(query, memory_id, **options).left_out
    return found


def number(text: str) -> float:
    """The number that a remedy names."""
    found = re.search(r"-?\d+(?:\.\d+)?", text)
    assert found is not None, text
    return float(found[0])


def test_every_stage_is_tested_here() -> None:
    assert set(get_args(Stage)) == STAGES


# ---------------------------------------------------------------- why


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "keyword"},
        {"mode": "semantic"},
        {"boost_entities": ["Ada"], "merge_relations": True},
        {"collapse": False, "min_score": 0.01},
        {"as_of": ago(2)},
        {"lens": "recent", "recipe": Recipe(alpha=0.3, confidence_weight=1)},
    ],
)
def test_why_gives_the_same_reasons_as_the_search(memory: Nacre, path: Path, options: dict[str, Any]) -> None:
    fact = NewFact(subject="Ada", predicate="deploys", object="Gateway", relation=True, confidence=0.6)
    memory.remember("how to deploy the gateway", namespace="patterns", created=ago(3))
    memory.remember("how to really deploy the gateway", created=ago(5))
    memory.remember("deploy the gateway with a token of Ada", facts=[fact], created=ago(9))
    used = memory.remember("the gateway was deployed to staging last month", created=ago(30)).id
    memory.remember("a note on something else", facts=[replace(fact, object="Portal")], created=ago(4))
    memory.search("gateway")
    memory.mark(used, "used")
    query = "how do I deploy the gateway"
    with Nacre(SqliteStore(path), Hashing(), clock=lambda: NOW, log=False) as reader:  # its searches leave no trace
        result = reader.search(query, **options)
        assert len(result.hits) >= 3
        for place, hit in enumerate(result.hits, 1):
            why = reader.why(query, hit.id, **options)
            assert (why.memory_id, why.rank, why.hit) == (hit.id, place, hit)
            assert (why.left_out.stage, why.left_out.explanation) == ("found", f"it is number {place}")
            for other in hit.similar:  # not shown, but ranked
                hidden = reader.why(query, other, **options)
                alone = reader.why(query, other, **{**options, "collapse": False})
                assert hidden.hit == alone.hit is not None
                assert (hidden.rank, alone.left_out.stage) == (None, "found")


def test_an_explanation_delivers_nothing(memory: Nacre) -> None:
    found = memory.remember("alpha").id
    memory.why("alpha", found)
    memory.why_not("alpha", found)
    assert memory.receipts() == []


def test_what_is_beyond_the_limit_has_the_same_reasons(memory: Nacre) -> None:
    for text in ("alpha beta", "alpha gamma delta", "alpha and many other words of little use"):
        memory.remember(text)
    everything = memory.search("alpha beta").hits
    assert len(everything) == 3
    for place, hit in enumerate(everything, 1):
        why = memory.why("alpha beta", hit.id, limit=1)
        assert (why.rank, why.hit) == (place, hit)
        assert why.left_out.stage == ("found" if place == 1 else "limit")


def test_there_is_no_reason_for_what_was_never_there(memory: Nacre) -> None:
    for ask in (memory.why, memory.why_not):
        with pytest.raises(NotFound):
            ask("alpha", "nothing")


def test_why_of_what_was_not_ranked(memory: Nacre) -> None:
    other = memory.remember("beta").id
    why = memory.why("alpha", other, mode="keyword")
    assert (why.rank, why.hit, why.left_out.stage) == (None, None, "no match")


# ---------------------------------------------------------------- why not: what may not be found


def test_given_before(memory: Nacre) -> None:
    known = memory.remember("alpha").id
    memory.search("alpha", session="s")
    for _ in range(2):  # asking why tells nothing
        found = memory.why_not("alpha", known, session="s", omit_delivered=True)
        assert (found.stage, found.remedy) == ("delivered", "search without omit_delivered")
    assert lost(memory, "alpha", known, session="s").stage == "found"
    assert memory.why_not("alpha", known, session="other", omit_delivered=True).stage == "found"


def test_forgotten(memory: Nacre) -> None:
    gone = memory.remember("alpha beta").id
    memory.forget(gone)
    found = lost(memory, "alpha", gone)
    assert (found.stage, found.remedy) == ("deleted", f"restore {gone}")
    memory.restore(gone)
    assert lost(memory, "alpha", gone).stage == "found"


def test_in_another_space(memory: Nacre) -> None:
    there = memory.remember("alpha beta", space="work").id
    found = lost(memory, "alpha", there)
    assert (found.stage, found.explanation) == ("space", "it is in space work; the search sees default")
    assert lost(memory, "alpha", there, where=Filter(spaces=["work"])).stage == "found"
    assert lost(memory, "alpha space:work", there).stage == "found"
    assert lost(memory, "alpha space:work", there, where=Filter(spaces=["default"])).stage == "space"


FILTERS: list[dict[str, Any]] = [
    {"kinds": ["fact"]},
    {"namespaces": ["ops"]},
    {"tags_any": ["b", "c"]},
    {"tags_all": ["a", "b"]},
    {"tags_none": ["a"]},
    {"sources": ["docs/*"]},
    {"sessions": ["s2"]},
    {"created_from": ago(4)},
    {"created_until": ago(6)},
    {"metadata": {"team": "blue"}},
    {"has": ["summary"]},
    {"has": ["facts"]},
    {"fact_types": ["preference"]},
    {"importance_min": 0.6},
    {"importance_max": 0},
    {"key_prefixes": ["docs/"]},
    {"languages": ["de"]},
]


@pytest.mark.parametrize("where", FILTERS, ids=lambda where: "-".join(map(str, where)))
def test_refused_by_a_filter(memory: Nacre, where: dict[str, Any]) -> None:
    refused = memory.remember(
        "alpha beta", tags=["a"], source="src/x.py", session="s1", metadata={"team": "red"}, created=ago(5)
    ).id
    found = lost(memory, "alpha", refused, where=Filter(**where))
    (name,) = where
    assert (found.stage, found.explanation) == ("filter", f"the filter {name} refuses it")
    assert found.remedy == f"search without {name}"
    assert lost(memory, "alpha", refused, where=Filter(kinds=["note"])).stage == "found"
    both = lost(memory, "alpha", refused, where=Filter(**{"kinds": ["fact"], "tags_none": ["a"], **where}))
    assert set(both.remedy.removeprefix("search without ").split(", ")) == {"kinds", "tags_none", name}
    assert lost(memory, "alpha", refused).stage == "found"


def test_refused_as_of_a_time(memory: Nacre) -> None:
    later = memory.remember("alpha beta", created=ago(5)).id
    found = lost(memory, "alpha", later, as_of=ago(6))
    assert (found.stage, found.remedy) == ("filter", "search without as_of")
    assert lost(memory, "alpha", later, as_of=ago(5)).stage == "found"
    own = lost(memory, "alpha", later, as_of=NOW, where=Filter(created_until=ago(10)))
    assert (own.stage, own.remedy) == ("filter", "search without created_until")


def test_refused_by_the_filter_of_a_lens(memory: Nacre) -> None:
    refused = memory.remember("alpha beta", namespace="ops").id
    memory.save_lens(Lens(name="apps", where=Filter(namespaces=("app",)), questions=("alpha",)))
    assert lost(memory, "alpha", refused).stage == "filter"
    assert lost(memory, "alpha", refused, lens="none").stage == "found"
    assert lost(memory, "alpha", refused, lens="apps", where=Filter(namespaces=("ops",))).stage in (
        "filter",
        "condition",
    )


@pytest.mark.parametrize(
    "query",
    ['alpha "beta gamma"', "alpha NOT beta", "alpha -beta", "alpha AND delta", "alpha tag:x", "alpha -kind:note",
     "alpha since:2d", "alpha entity:Ada", "NEAR(alpha gamma, 1)"],
)  # fmt: skip
def test_refused_by_a_condition(memory: Nacre, query: str) -> None:
    refused = memory.remember("alpha beta delicious things gamma", created=ago(5)).id
    memory.remember("alpha delta", kind="fact", tags=["x"], entities=["Ada"])
    memory.remember("alpha of beta gamma", entities=["Ada"])
    memory.remember("alpha gamma")
    assert lost(memory, query, refused).stage == "condition"
    assert lost(memory, "alpha", refused).stage == "found"


def test_refused_by_a_condition_of_a_lens(memory: Nacre) -> None:
    """Two lists of which a memory needs one tag each: the second is a condition."""
    refused = memory.remember("alpha", tags=["a"]).id
    memory.remember("alpha too", tags=["a", "b"])
    memory.save_lens(Lens(name="only", where=Filter(tags_any=("b",))))
    options: dict[str, Any] = {"where": Filter(tags_any=["a"]), "lens": "only"}
    assert lost(memory, "alpha", refused, **options).stage == "condition"
    assert lost(memory, "alpha", refused, where=Filter(tags_any=["a"]), lens="none").stage == "found"


# ---------------------------------------------------------------- why not: what was taken out


@pytest.mark.parametrize("sure", [0.05, 0.056, 0.099, 0.004])
def test_believed_too_little(memory: Nacre, sure: float) -> None:
    fact = NewFact(subject="Ada", predicate="likes", object="tea", confidence=sure, decay_rate=0)
    doubted = memory.remember("alpha beta", facts=[fact]).id
    found = lost(memory, "alpha", doubted)
    assert found.stage == "confidence"
    least = number(found.remedy)
    assert lost(memory, "alpha", doubted, recipe=Recipe(min_confidence=least)).stage == "found"
    memory.add_facts(doubted, [replace(fact, object="jam", confidence=1.0)])  # a surer one: the mean is above .1
    assert lost(memory, "alpha", doubted).stage == "found"


def test_shown_under_another(memory: Nacre) -> None:
    first = memory.remember("The deploy script is in the tools folder of our repo").id
    second = memory.remember("The deploy script is really in the tools folder of our repo").id
    (hit,) = memory.search("deploy script tools").hits
    (hidden,) = hit.similar
    assert {hit.id, hidden} == {first, second}
    found = lost(memory, "deploy script tools", hidden)
    assert found.stage == "duplicate"
    assert hit.id in found.explanation
    assert lost(memory, "deploy script tools", hidden, collapse=False).stage == "found"
    memory.separate(hidden)
    assert lost(memory, "deploy script tools", hidden).stage == "found"


def test_irrelevant(memory: Nacre) -> None:
    far = memory.remember("beta testers like long walks and many other things, alpha among them").id
    memory.remember("alpha beta")
    (relevance,) = [hit.relevance for hit in memory.search("alpha").hits if hit.id == far]
    assert relevance is not None
    assert relevance < 1
    found = lost(memory, "alpha", far, min_score=1.0)
    assert found.stage == "irrelevant"
    assert f"{relevance:.2f}" in found.explanation
    assert lost(memory, "alpha", far, min_score=number(found.remedy)).stage == "found"
    why = memory.why("alpha", far, min_score=1.0)
    assert why.hit is not None
    assert why.hit.relevance == relevance


def test_not_similar_enough(memory: Nacre) -> None:
    far = memory.remember("beta testers like long walks and many other things, alpha among them").id
    memory.remember("alpha")
    found = lost(memory, "alpha", far, min_similarity=0.9)
    assert found.stage == "dissimilar"
    assert re.fullmatch(r"its cosine is 0\.\d{3}, below 0\.9", found.explanation)
    assert lost(memory, "alpha", far, min_similarity=number(found.remedy)).stage == "found"


def test_beyond_the_limit(memory: Nacre) -> None:
    ids = [memory.remember(f"alpha {word}").id for word in ("one", "two", "three", "four")]
    last = memory.search("alpha", mode="keyword").hits[-1].id
    assert last in ids
    found = lost(memory, "alpha", last, limit=2, mode="keyword")
    assert (found.stage, found.explanation) == ("limit", "it is number 4, and only 2 are shown")
    assert lost(memory, "alpha", last, limit=int(number(found.remedy)), mode="keyword").stage == "found"
    assert lost(memory, "alpha", last, limit=int(number(found.remedy)) - 1, mode="keyword").stage == "limit"


def test_beyond_the_budget(memory: Nacre) -> None:
    """Each costs 12 tokens and those of its text, 3 at the most."""
    for word in ("one", "two", "three"):
        memory.remember(f"alpha {word}")
    second = memory.search("alpha", mode="keyword").hits[1].id
    assert lost(memory, "alpha", second, mode="keyword", token_budget=20).stage == "budget"
    assert lost(memory, "alpha", second, mode="keyword", token_budget=30).stage == "found"
    assert lost(memory, "alpha", second, mode="keyword").stage == "found"


# ---------------------------------------------------------------- why not: what no channel gave


def followed(memory: Nacre, query: str, memory_id: str, **options: Any) -> list[str]:
    """The stages on the way in, when each remedy of the pool and the limit is taken."""
    recipe: Recipe = options.pop("recipe")
    stages: list[str] = []
    while len(stages) < 5:
        found = lost(memory, query, memory_id, recipe=recipe, **options)
        stages.append(found.stage)
        match found.stage:
            case "pool":
                recipe = replace(recipe, pool=int(number(found.remedy)))
            case "limit":
                options["limit"] = int(number(found.remedy))
            case "floor":
                recipe = replace(recipe, semantic_floor=number(found.remedy.partition("semantic_floor")[2]))
            case _:
                break
    return stages


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_too_far_down_to_be_looked_at(memory: Nacre, mode: Any) -> None:
    texts = [f"alpha beta {'gamma ' * many}".strip() for many in range(6)]
    for text in texts:
        memory.remember(text)
    far = memory.search("alpha beta", mode=mode, collapse=False).hits[-1]
    options: dict[str, Any] = {"mode": mode, "limit": 1, "collapse": False, "recipe": Recipe(pool=2)}
    found = lost(memory, "alpha beta", far.id, **options)
    assert found.stage == "pool"
    assert "the first 2 are looked at" in found.explanation
    assert followed(memory, "alpha beta", far.id, **options) == ["pool", "limit", "found"]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
@pytest.mark.parametrize("text", ["zebras graze near an albatross", "an entirely different kind of matter", "qqq"])
def test_too_far_in_meaning(memory: Nacre, mode: Any, text: str) -> None:
    far = memory.remember(text).id
    memory.remember("alpha")
    found = lost(memory, "alpha", far, mode=mode)
    assert found.stage == "floor"
    assert followed(memory, "alpha", far, mode=mode, recipe=Recipe()) == ["floor", "found"]
    words = lost(memory, text, far, mode=mode)  # the other remedy: ask with its words
    assert words.stage == "found"


def test_no_word_in_common(memory: Nacre) -> None:
    other = memory.remember("beta gamma").id
    found = lost(memory, "alpha", other, mode="keyword")
    assert (found.stage, found.remedy) == ("no match", "ask with words that it has, or search by meaning, too")
    assert lost(memory, "beta", other, mode="keyword").stage == "found"
    assert lost(memory, "alpha", other, recipe=Recipe(semantic_floor=-1)).stage == "found"


def test_no_vector_to_compare(path: Path) -> None:
    with Nacre(SqliteStore(path), None, clock=lambda: NOW) as memory:
        other = memory.remember("beta gamma").id
        assert lost(memory, "alpha", other).stage == "no match"
        assert lost(memory, "gamma", other).stage == "found"
        assert lost(memory, "the of", other).stage == "no match"
