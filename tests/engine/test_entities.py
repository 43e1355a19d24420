"""Entities, the memories about them, and the relations between them, with scores worked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isclose
from pathlib import Path
from typing import Any, get_args

import pytest

import nacre
from engines import NOW, numbered_ids, opened
from nacre import Entity, Filter, Hit, InvalidInput, NewEntity, NewFact, NewMemory, NotFound, Recipe, RelatedEntity
from nacre.analysis.names import fold, is_pronoun, predicate_words, relation_words
from nacre.cli.render import search_lines
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.ranking import scoring
from nacre.serialization import encode
from nacre.storage.sqlite import SqliteStore
from nacre.types.recipe import Fusion, adjusted
from nacre.types.search import Mode, SearchOptions

WORDS_ONLY = Recipe(fusion="rank", alpha=0, recency_weight=0, usage_weight=0, confidence_weight=0, fresh_weight=0)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.fixture
def memory(path: Path) -> Iterator[Nacre]:
    """An engine that never moves in time, whose ids are in the order they were made, and that reads no texts."""
    with opened(SqliteStore(path), log=True, make_ids=numbered_ids("x", 5)) as engine:
        yield engine


def relate(memory: Nacre, subject: str, predicate: str, object_: str, text: str | None = None, **fields: Any) -> str:
    """A memory that says how two entities are related."""
    fact = NewFact(subject=subject, predicate=predicate, object=object_, relation=True, type="relationship")
    return memory.remember(text or f"{subject} {predicate} {object_}", facts=[fact], **fields).id


def names(memory: Nacre, **options: Any) -> list[str]:
    return [entity.name for entity in memory.entities(**options)]


def factor(hit: Hit, signal: str) -> float:
    return next((reason.value for reason in hit.reasons if reason.signal == signal), 1.0)


def found(memory: Nacre, query: str, **options: Any) -> list[str]:
    return [hit.id for hit in memory.search(query, **options).hits]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ada Lovelace", "ADA  lovelace ", True),
        ("Ａｄａ", "ada", True),  # full-width letters
        ("Straße", "STRASSE", True),
        ("Ada", "Adá", False),
        ("C", "C++", False),
    ],
)
def test_when_names_are_the_same(one: str, other: str, same: bool) -> None:
    assert (fold(one) == fold(other)) == same


@pytest.mark.parametrize("predicate", ["works at", "worksAt", "works_at", "works-at", "WORKS AT", " works  at "])
def test_a_predicate_has_words(predicate: str) -> None:
    assert predicate_words(predicate) == "works at"
    assert relation_words("Ada", predicate, "Acme") >= {"ada", "works", "work", "at", "acme"}


def test_an_entity_has_one_canonical_name(memory: Nacre) -> None:
    assert memory.add_entity("Ada Lovelace") == Entity(name="Ada Lovelace", space="default", type=None, aliases=())
    kept = memory.add_entity("ADA lovelace", kind="person", aliases=["Countess", "Ada", "ada"])
    assert kept == Entity(name="Ada Lovelace", space="default", type="person", aliases=("Ada", "Countess"))
    assert memory.add_entity("countess") == kept  # an alias is no new entity, and no new name for it
    assert memory.add_entity("ada", kind="author").type == "author"
    assert memory.add_entity("ada").type == "author"
    renamed = memory.add_entity("Lady Lovelace", aliases=["Ada"])  # new, but known by an alias: now the canonical one
    assert (renamed.name, renamed.aliases) == ("Lady Lovelace", ("Ada", "Ada Lovelace", "Countess"))
    assert memory.entities() == [renamed]
    assert [memory.entities([name]) for name in ("COUNTESS", "Ada Lovelace", "x")] == [[renamed], [renamed], []]


def test_entities_that_share_a_name_become_one(memory: Nacre) -> None:
    first = memory.remember("one", entities=["Ada"]).id
    second = memory.remember("two", entities=[NewEntity(name="Countess", type="person")]).id
    third = memory.remember("three", entities=["Bob"]).id
    assert names(memory) == ["Ada", "Bob", "Countess"]
    merged = memory.add_entity("Ada", aliases=["countess"])
    assert (merged.name, merged.aliases) == ("Ada", ("Countess",))
    assert names(memory) == ["Ada", "Bob"]
    for name in ("Ada", "Countess"):
        assert sorted(found(memory, f"entity:{name}")) == [first, second]
    assert found(memory, "entity:Bob") == [third]


def test_one_batch_may_name_merge_and_name_again(memory: Nacre) -> None:
    new = [
        NewMemory(text="one", entities=["Ada"]),
        NewMemory(text="two", entities=["Countess"]),
        NewMemory(text="three", entities=[NewEntity(name="Ada", aliases=["Countess"])]),
        NewMemory(text="four", entities=["Countess"]),
    ]
    ids = [each.id for each in memory.remember_many(new)]
    assert [(each.name, each.aliases) for each in memory.entities()] == [("Ada", ("Countess",))]
    assert sorted(found(memory, "entity:ada")) == ids


def test_pronouns_are_no_entities(memory: Nacre) -> None:
    assert all(map(is_pronoun, ["I", "we", "She", "THEY", "this"]))
    assert not any(map(is_pronoun, ["Ada", "Ian", "It Girl"]))
    relate(memory, "I", "works at", "Acme")
    relate(memory, "Ada", "knows", "them")
    assert names(memory) == ["Acme", "Ada"]


def test_a_dropped_entity_leaves_memories_and_facts(memory: Nacre) -> None:
    kept = relate(memory, "Ada", "works at", "Acme", "a note")
    memory.add_entity("Ada", aliases=["Countess"])
    memory.drop_entity("COUNTESS")
    assert names(memory) == ["Acme"]
    assert found(memory, "entity:Ada") == []
    assert [belief.fact.subject for belief in memory.facts()] == ["Ada"]
    assert memory.get(kept)[0].text == "a note"
    with pytest.raises(NotFound, match="entity 'Ada'"):
        memory.drop_entity("Ada")


@pytest.mark.parametrize(
    ("entity", "field"),
    [
        ("", "entities.name"),
        ("x" * 201, "entities.name"),
        (NewEntity(name="Ada", type=""), "entities.type"),
        (NewEntity(name="Ada", aliases=["ok", " "]), "entities.aliases"),
        (NewEntity(name="Ada", aliases="Countess"), "entities.aliases"),
        (5, "entities"),
    ],
)
def test_a_bad_entity_is_refused_and_nothing_is_written(memory: Nacre, entity: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        memory.remember("a note", entities=["Bob", entity])
    assert caught.value.field == field
    assert (memory.entities(), memory.stats().memories) == ([], 0)


def test_entities_are_those_of_a_space(memory: Nacre) -> None:
    here = memory.remember("one", entities=["Ada"]).id
    there = memory.remember("two", space="work", entities=[NewEntity(name="ada", type="server")]).id
    assert [(each.name, each.space, each.type) for each in memory.entities(spaces=["default", "work"])] == [
        ("Ada", "default", None),
        ("ada", "work", "server"),
    ]
    assert names(memory) == ["Ada"]
    assert names(memory, spaces=["default", "work"], limit=1) == ["Ada"]
    with pytest.raises(NotFound):
        memory.add_entity("Eve", memory_ids=[there])  # a memory of another space
    assert names(memory) == ["Ada"]
    memory.add_entity("Ada", aliases=["Countess"], space="work")
    assert found(memory, "entity:Countess") == []
    assert found(memory, "entity:Countess", where=Filter(spaces=["work"])) == [there]
    assert sorted(found(memory, "entity:Ada", where=Filter(spaces=["default", "work"]))) == [here, there]
    memory.drop_entity("ada", space="work")
    assert names(memory, spaces=["work", "default"]) == ["Ada"]


def test_a_text_is_no_list_of_names(memory: Nacre) -> None:
    memory.add_entity("A")
    with pytest.raises(InvalidInput):
        memory.entities("Ada")


# ---------------------------------------------------------------- memories about them


def test_memories_are_linked_by_facts_by_callers_and_by_their_text(path: Path) -> None:
    with Nacre(SqliteStore(path), Hashing(), clock=lambda: NOW) as memory:
        stated = relate(memory, "Ada", "works at", "Acme", "first note")
        given = memory.remember("second note", entities=["ADA"]).id
        read = memory.remember("Ada works at Initech.").id
        later = memory.remember("third note").id
        memory.remember("fourth note, on Bob", entities=["Bob"])
        memory.add_entity("Ada", memory_ids=[later])
        assert set(found(memory, "entity:ada")) == {stated, given, read, later}
        assert set(found(memory, "entity:Initech")) == {read}
        memory.remember("Status: done\nBudget: 5 EUR")  # a key of a list names no entity
        assert names(memory) == ["Acme", "Ada", "Bob", "Initech"]


def test_an_entity_filter_knows_aliases_and_can_be_negated(memory: Nacre) -> None:
    linked = memory.remember("a note on engines", entities=["Ada Lovelace"]).id
    named = memory.remember("the Countess wrote of engines").id  # her name stands in it, no link
    other = memory.remember("a note on engines by Bob", entities=["Bob"]).id
    assert found(memory, 'entity:"ada lovelace"') == [linked]
    memory.add_entity("Ada Lovelace", aliases=["Countess"])
    for query in ('engines entity:"Ada Lovelace"', "engines entity:countess", "entity:COUNTESS"):
        assert set(found(memory, query)) == {linked, named}
    for query in ("engines -entity:countess", 'engines NOT entity:"Ada Lovelace"'):
        assert found(memory, query) == [other]
    assert set(found(memory, "engines entity:countess,Bob")) == {linked, named, other}
    assert found(memory, "engines entity:nobody") == []


def test_a_changed_text_is_about_others(path: Path) -> None:
    with Nacre(SqliteStore(path), Hashing(), clock=lambda: NOW) as memory:
        changed = memory.remember("Zed lives in Oslo.", entities=["Winter"]).id
        memory.update(changed, text="Kim lives in Oslo.")
        linked = {name: found(memory, f"entity:{name}") for name in ("Zed", "Kim", "Oslo", "Winter")}
        assert linked == {"Zed": [], "Kim": [changed], "Oslo": [changed], "Winter": [changed]}


def test_a_forgotten_memory_is_about_nothing_until_it_is_restored(memory: Nacre) -> None:
    gone = relate(memory, "Ada", "works at", "Acme", "a note")
    memory.forget(gone)
    assert found(memory, "entity:Ada") == []
    assert memory.search("Ada Acme").relations == ()
    assert memory.related_entities("Ada") == []
    memory.restore(gone)
    assert found(memory, "entity:Ada") == [gone]
    assert [each.fact.object for each in memory.search("Ada Acme").relations] == ["Acme"]
    memory.purge(gone)
    assert memory.search("Ada Acme").relations == ()


# ---------------------------------------------------------------- boosts


def test_memories_about_boosted_entities_count_a_fifth_more(memory: Nacre) -> None:
    plain = memory.remember("engine engine notes").id
    about = memory.remember("engine notes of some length", entities=["Ada Lovelace"]).id
    named = memory.remember("engine notes, which the Countess wrote, of some length").id
    memory.add_entity("Ada Lovelace", aliases=["Countess"])
    usual = {hit.id: hit for hit in memory.search("engine").hits}
    for asked in (["ada lovelace"], ["COUNTESS"], ["Countess", "Ada Lovelace"]):  # several names count once
        result = memory.search("engine", boost_entities=asked)
        assert result.notes == ()
        for hit in result.hits:
            expected = 1.0 if hit.id == plain else 1.2
            assert isclose(factor(hit, "entity"), expected)
            assert isclose(hit.score, usual[hit.id].score * expected)
    ranks = Recipe(fusion="rank")
    assert found(memory, "engine", mode="keyword", recipe=ranks)[0] == plain
    boosted = found(memory, "engine", mode="keyword", recipe=ranks, boost_entities=["countess"])
    assert boosted[-1] == plain  # 1.2/63 > 1/61
    off = memory.search("engine", boost_entities=["countess"], recipe=Recipe(entity_weight=0)).hits
    assert [factor(hit, "entity") for hit in off] == [1.0, 1.0, 1.0]
    assert {about, named, plain} == set(usual)


def test_an_unknown_entity_is_noted_and_the_others_are_boosted(memory: Nacre) -> None:
    about = memory.remember("engine notes", entities=["Ada"]).id
    result = memory.search("engine", boost_entities=["Zed", "Ada", "Yan"])
    assert "no entity is called Zed, Yan; see `nacre entity list`" in result.notes
    assert [(hit.id, factor(hit, "entity")) for hit in result.hits] == [(about, 1.2)]


# ---------------------------------------------------------------- relations

LN_1_6 = 0.4700036  # ln(1 + (3 - 2 + .5) / (2 + .5)): two of three relations have the word
LN_2_67 = 0.9808293  # ln(1 + (3 - 1 + .5) / (1 + .5)): one of three


@pytest.fixture
def three(memory: Nacre) -> dict[str, str]:
    """Memories by what they relate; their texts share no word with that."""
    return {
        "ada acme": relate(memory, "Ada", "worksAt", "Acme", "minutes of monday", tags=["team"], created=ago(30)),
        "bob acme": relate(memory, "Bob", "works_at", "Acme", "minutes of tuesday", created=ago(20)),
        "ada bob": relate(memory, "Ada", "mentors", "Bob", "minutes of friday", kind="episode", created=ago(10)),
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Ada Acme", [("Ada", "Acme", 2 * LN_1_6), ("Ada", "Bob", LN_1_6), ("Bob", "Acme", LN_1_6)]),  # the newer first
        ("who works at acme?", [("Bob", "Acme", 2 * LN_1_6), ("Ada", "Acme", 2 * LN_1_6)]),
        ("working", [("Bob", "Acme", LN_1_6), ("Ada", "Acme", LN_1_6)]),  # works, worksAt, works_at
        ("mentors", [("Ada", "Bob", LN_2_67)]),
        ("Ada mentors", [("Ada", "Bob", LN_2_67 + LN_1_6), ("Ada", "Acme", LN_1_6)]),
        ("monday", []),  # a word of the text only
        ("who", []),
    ],
)
def test_relations_are_a_list_of_their_own(
    memory: Nacre, three: dict[str, str], query: str, expected: list[tuple[str, str, float]]
) -> None:
    relations = memory.search(query).relations
    assert [(each.fact.subject, each.fact.object) for each in relations] == [each[:2] for each in expected]
    assert [round(each.score, 6) for each in relations] == [round(each[2], 6) for each in expected]
    assert [each.rank for each in relations] == [*range(1, len(expected) + 1)]
    assert {each.fact.memory_id for each in relations} <= set(three.values())


def test_facts_that_are_no_relations_are_not_listed(memory: Nacre) -> None:
    memory.remember("a note", facts=[NewFact(subject="Ada", predicate="likes", object="tea")])
    assert memory.search("Ada tea").relations == ()


def test_filters_hold_for_relations_too(memory: Nacre, three: dict[str, str]) -> None:
    def related(query: str, **options: Any) -> list[str]:
        relations = memory.search(query, **options).relations
        return sorted(next(name for name, id_ in three.items() if id_ == each.fact.memory_id) for each in relations)

    assert related("Ada Acme", where=Filter(kinds=["episode"])) == ["ada bob"]
    assert related("Ada Acme tag:team") == ["ada acme"]
    assert related("Ada Acme -tag:team") == ["ada bob", "bob acme"]
    assert related("Ada Acme", where=Filter(spaces=["work"])) == []
    assert related("Ada Acme", as_of=ago(15)) == ["ada acme", "bob acme"]
    assert related("Ada Acme", where=Filter(created_from=ago(15))) == ["ada bob"]
    relate(memory, "Ada", "works at", "Initech", "minutes of today")  # she works at one place
    assert related("acme") == ["bob acme"]
    assert related("acme", as_of=ago(1)) == ["ada acme", "bob acme"]


def test_at_most_ten_relations_are_shown(memory: Nacre) -> None:
    for number in range(12):
        relate(memory, "Ada", "knows", f"Person{number}", f"note {number}")
    assert [each.rank for each in memory.search("Ada").relations] == [*range(1, 11)]


def test_relations_merged_into_the_hits(memory: Nacre, three: dict[str, str]) -> None:
    """By words only. Relations: ada acme 1, ada bob 2, bob acme 3; the share of a rank is .8 · 1 / (60 + rank).

    "invoices" has the word acme: 1/61 = .0163934. ada acme: .8/61 = .0131148; ada bob: .8/62 = .0129032.
    bob acme: .8/63 = .0126984.
    """
    invoices = memory.remember("acme invoices").id
    usual = memory.search("Ada Acme", recipe=WORDS_ONLY)
    assert [hit.id for hit in usual.hits] == [invoices]
    merged = memory.search("Ada Acme", recipe=WORDS_ONLY, merge_relations=True)
    assert [(hit.id, hit.match_type, round(hit.score, 7)) for hit in merged.hits] == [
        (invoices, "bm25", 0.0163934),
        (three["ada acme"], "relation", 0.0131148),
        (three["ada bob"], "relation", 0.0129032),
        (three["bob acme"], "relation", 0.0126984),
    ]
    assert merged.relations == usual.relations
    reason = merged.hits[1].reasons[0]
    assert (reason.signal, reason.effect) == ("relation", "add")
    assert reason.numbers["weight"] == 0.8
    assert isclose(reason.numbers["bm25"], 2 * LN_1_6, rel_tol=1e-6)


def test_a_relation_adds_to_what_the_words_gave(memory: Nacre) -> None:
    """1/61 for the words and .8/61 for the relation: .0295082; the second relation of a memory adds nothing."""
    both = relate(memory, "Ada", "works at", "Acme", "acme pays ada")
    memory.add_facts(both, [NewFact(subject="Bob", predicate="owns", object="Acme", relation=True)])
    (hit,) = memory.search("Ada Acme", recipe=WORDS_ONLY, merge_relations=True).hits
    assert (hit.match_type, round(hit.score, 7)) == ("bm25", 0.0295082)
    assert [reason.signal for reason in hit.reasons if reason.effect == "add"] == ["lexical", "relation"]


@pytest.mark.parametrize(
    ("recipe", "share"),
    [
        ({}, 0.0131148),  # .8 / 61, whatever the weights of the channels
        ({"alpha": 0.3}, 0.0131148),
        ({"relation_weight": 1.0, "k": 0}, 1.0),
        ({"relation_weight": 0.5}, 0.0081967),  # .5 / 61
        # It has both words once, and no memory has any: .8 · 1² · 1, and .001 · .8 · 60 / 61 for its rank. That is
        # all of what the words are worth, over half of what a memory could have that repeats them: 1 / (.5 · 1.9).
        ({"fusion": "height"}, 0.8007869),
        ({"fusion": "height", "relation_weight": 0.5}, 0.5004918),
        # .8 · 2 · ln(1 + (1 - 0 + .5) / (0 + .5))
        ({"fusion": "boost"}, 2.2180710),
    ],
)
def test_the_share_of_a_relation(memory: Nacre, recipe: dict[str, Any], share: float) -> None:
    relate(memory, "Ada", "mentors", "Zed", "qqq")
    hits = memory.search(
        "Ada mentors",
        recipe=adjusted(
            Recipe(),
            **{"fusion": "rank", "alpha": 0.5, "recency_weight": 0, "usage_weight": 0, "semantic_floor": 0.9, **recipe},
        ),
        merge_relations=True,
    ).hits
    assert [round(hit.score, 7) for hit in hits] == [pytest.approx(share * factor(hits[0], "confidence"), abs=2e-7)]


WORLD = {
    "minutes": "Minutes of the Tuesday meeting: budgets, hiring plans and the new office",
    "evening": "Ada likes the sun in the evening",
    "anvils": "Acme sells anvils and rocket skates",
    "home": "We work from home on Fridays",
}


def fill_world(memory: Nacre) -> dict[str, str]:
    ids = {name: memory.remember(text, extract=False).id for name, text in WORLD.items()}
    memory.add_facts(ids["minutes"], [NewFact(subject="Ada", predicate="works at", object="Acme", relation=True)])
    memory.add_facts(
        ids["anvils"], [NewFact(subject="Acme", predicate="competes with", object="Initech", relation=True)]
    )
    return ids


@pytest.mark.parametrize("how", get_args(Fusion))
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_relation_that_answers_best_is_the_first_hit(memory: Nacre, mode: Mode, how: Fusion) -> None:
    """Its memory has no word of the question. The relation has both of them, and no text has more than one."""
    ids = fill_world(memory)
    options: SearchOptions = {"mode": mode, "recipe": Recipe(fusion=how), "collapse": False}
    plain = memory.search("Where does Ada work?", **options)
    assert plain.hits[0].id in (ids["evening"], ids["home"])
    assert all(hit.match_type != "relation" and hit.relation is None for hit in plain.hits)
    merged = memory.search("Where does Ada work?", **options | {"merge_relations": True})
    found = next(hit for hit in merged.hits if hit.id == ids["minutes"])
    assert found.relation is not None
    assert (found.match_type, found.snippet.text) == ("relation", "Ada works at Acme")
    assert [found.snippet.text[span.start : span.end] for span in found.snippet.highlights] == ["Ada", "works"]
    assert (found.relation.memory_id, found.memory.text) == (ids["minutes"], WORLD["minutes"])
    assert isclose(found.score, scoring.score(found.reasons))
    # Ranks do not tell how much better it is: .8 / (60 + 1) is less than the share of the fifteenth text.
    assert merged.hits[0] == found or how == "rank"
    others = [hit.id for hit in merged.hits if hit.id != ids["minutes"]]
    assert others == [hit.id for hit in plain.hits if hit.id != ids["minutes"]]
    assert [hit.relation for hit in merged.hits if hit.id != ids["minutes"]] == [None] * len(others)


def test_a_text_that_has_as_much_keeps_its_lead_over_a_relation(memory: Nacre) -> None:
    """A relation is worth .8 of a text with the same words."""
    fill_world(memory)
    text = memory.remember("Ada had to work").id
    for how in get_args(Fusion):
        options: SearchOptions = {"mode": "keyword", "recipe": Recipe(fusion=how), "merge_relations": True}
        first, *others = memory.search("Where does Ada work?", **options).hits
        assert (first.id, first.match_type) == (text, "bm25")
        assert others[0].match_type == "relation" or how == "rank"


def test_a_relation_that_has_little_of_the_question_wins_nothing(memory: Nacre) -> None:
    ids = fill_world(memory)
    query = "Which anvils and rocket skates does Acme sell?"
    merged = memory.search(query, merge_relations=True, recipe=Recipe(usage_weight=0))
    assert merged.hits[0].id == ids["anvils"]
    assert (merged.hits[0].relation, merged.hits[0].snippet.text) == (None, WORLD["anvils"])


def test_every_door_shows_the_relation(memory: Nacre) -> None:
    ids = fill_world(memory)
    result = memory.search("Where does Ada work?", merge_relations=True)
    encoded: Any = encode.search_result(result)
    assert encoded["hits"][0]["relation"]["object"] == "Acme"
    brief: Any = encode.brief(result)
    assert (brief["hits"][0]["id"], brief["hits"][0]["snippet"]) == (ids["minutes"], "Ada works at Acme")
    assert brief["hits"][0]["why"].startswith("relation 1")
    lines = ["".join(text for text, _ in line) for line in search_lines(result, why=True)]
    assert lines[0].endswith("[Ada] [works] at Acme")
    assert "  relation" in lines[1]
    assert lines[2].strip().startswith("relation: BM25 1.39, rank 1 → 0.8 × 1.00² × ")


def test_a_word_that_only_the_relation_has_is_highlighted(memory: Nacre) -> None:
    minutes = memory.remember("Minutes of the Tuesday meeting", extract=False).id
    memory.add_facts(minutes, [NewFact(subject="Grace", predicate="reports to", object="Ada", relation=True)])
    (hit,) = memory.search("who does Grace report to?", mode="keyword", merge_relations=True).hits
    assert [hit.snippet.text[span.start : span.end] for span in hit.snippet.highlights] == ["Grace", "reports"]


def test_a_relation_that_is_a_hit_is_not_shown_again(memory: Nacre) -> None:
    minutes = memory.remember("Minutes of the Tuesday meeting", extract=False).id
    pairs = [("Grace", "reports to", "Ada"), ("Ada", "works at", "Acme")]
    memory.add_facts(minutes, [NewFact(subject=s, predicate=p, object=o, relation=True) for s, p, o in pairs])
    result = memory.search("does Grace report to Ada?", mode="keyword", merge_relations=True)
    assert [hit.snippet.text for hit in result.hits] == ["Grace reports to Ada"]
    assert [each.fact.statement for each in result.relations] == ["Grace reports to Ada", "Ada works at Acme"]
    brief: Any = encode.brief(result)
    assert brief["relations"] == ["Ada works at Acme"]
    lines = ["".join(text for text, _ in line) for line in search_lines(result, why=False)]
    assert [each.strip().split("  ")[0] for each in lines[-2:]] == ["relations", "Ada · works at · Acme"]


@pytest.mark.slow
def test_a_relation_is_first_with_the_models_that_ship(path: Path) -> None:
    with nacre.open(path, clock=lambda: NOW) as engine:
        ids = fill_world(engine)
        plain = engine.search("Where does Ada work?")
        assert plain.hits[0].id in (ids["evening"], ids["home"])
        first = engine.search("Where does Ada work?", merge_relations=True).hits[0]
        assert (first.id, first.match_type, first.snippet.text) == (ids["minutes"], "relation", "Ada works at Acme")
        assert (first.relevance or 0) > (plain.hits[0].relevance or 0)


# ---------------------------------------------------------------- how entities are related


def chain(memory: Nacre) -> None:
    """Ada – Acme – Paris – France, and back from France to Ada."""
    relate(memory, "Ada", "works at", "Acme", created=ago(40))
    relate(memory, "Acme", "is located in", "Paris", created=ago(30))
    relate(memory, "Paris", "belongs to", "France", created=ago(20))
    relate(memory, "Bob", "knows", "Zoe")


def ways(related: list[RelatedEntity]) -> list[tuple[str, int, list[str]]]:
    return [
        (each.name, each.distance, [f"{fact.subject}-{fact.object}" for fact in each.path]) for each in related
    ]  # fmt: skip


def test_entities_some_relations_away(memory: Nacre) -> None:
    chain(memory)
    acme = ("Acme", 1, ["Ada-Acme"])
    paris = ("Paris", 2, ["Ada-Acme", "Acme-Paris"])
    france = ("France", 3, ["Ada-Acme", "Acme-Paris", "Paris-France"])
    assert ways(memory.related_entities("ada")) == [acme]
    assert ways(memory.related_entities("Ada", 2)) == [acme, paris]
    assert ways(memory.related_entities("Ada", 3)) == [acme, paris, france]
    assert ways(memory.related_entities("Paris", 1)) == [  # in both directions, by name
        ("Acme", 1, ["Acme-Paris"]),
        ("France", 1, ["Paris-France"]),
    ]
    assert ways(memory.related_entities("Zoe", 3)) == [("Bob", 1, ["Bob-Zoe"])]


def test_a_circle_of_relations_ends(memory: Nacre) -> None:
    chain(memory)
    relate(memory, "France", "knows", "Ada")
    relate(memory, "Ada", "knows", "Ada")
    assert ways(memory.related_entities("Ada", 3)) == [
        ("Acme", 1, ["Ada-Acme"]),
        ("France", 1, ["France-Ada"]),
        ("Paris", 2, ["France-Ada", "Paris-France"]),  # the newer of two ways of the same length
    ]


def test_relations_are_followed_under_every_name(memory: Nacre) -> None:
    relate(memory, "Ada", "works at", "Acme Inc")
    relate(memory, "ACME", "is located in", "Paris")
    relate(memory, "Paris", "knows", "the countess")
    memory.add_entity("Acme", aliases=["Acme Inc"])
    memory.add_entity("Ada", aliases=["The Countess"])
    expected = [("ACME", 1, ["Ada-Acme Inc"]), ("Paris", 1, ["Paris-the countess"])]
    assert ways(memory.related_entities("The Countess", 3)) == ways(memory.related_entities("Ada", 3)) == expected


def test_related_as_of_another_time(memory: Nacre) -> None:
    relate(memory, "Ada", "works at", "Acme", created=ago(40))
    relate(memory, "Ada", "works at", "Initech", created=ago(10))
    assert [each.name for each in memory.related_entities("Ada")] == ["Initech"]
    assert [each.name for each in memory.related_entities("Ada", as_of=ago(11))] == ["Acme"]
    assert memory.related_entities("Ada", as_of=ago(41)) == []


@pytest.mark.parametrize("depth", [0, 4, -1, True, 1.0, "2", None])
def test_a_bad_depth_is_refused(memory: Nacre, depth: Any) -> None:
    memory.add_entity("Ada")
    with pytest.raises(InvalidInput) as caught:
        memory.related_entities("Ada", depth)
    assert caught.value.field == "depth"


def test_an_unknown_entity_is_related_to_nothing(memory: Nacre) -> None:
    memory.add_entity("Ada")
    assert memory.related_entities("Ada", 3) == []
    for name, spaces in (("Zed", []), ("", []), ("Ada", ["work"])):
        with pytest.raises(NotFound, match="entity"):
            memory.related_entities(name, spaces=spaces)


# ---------------------------------------------------------------- spaces


def test_no_space_sees_what_another_knows(memory: Nacre) -> None:
    for space, where in (("default", "Paris"), ("work", "Rome"), ("work", "Oslo")):
        relate(memory, "Ada", "lives in", where, space=space, created=ago(100))
    assert [belief.fact.object for belief in memory.facts(history=True)] == ["Paris"]
    assert memory.facts()[0].fact.valid_to is None  # nothing of another space takes its place
    assert memory.conflicts() == []
    assert names(memory) == ["Ada", "Paris"]
    assert [belief.fact.object for belief in memory.stale()] == ["Paris"]
    assert [each.name for each in memory.related_entities("Ada")] == ["Paris"]
    alone = memory.search("where Ada lives").relations
    assert [(each.fact.object, round(each.score, 7)) for each in alone] == [("Paris", 0.5753641)]  # 2 · ln(1 + .5/1.5)
    both = ["default", "work"]
    assert sorted(belief.fact.object for belief in memory.facts(spaces=both)) == ["Oslo", "Paris", "Rome"]
    assert [len(each.beliefs) for each in memory.conflicts(both)] == [2]  # never across spaces
    assert len(memory.stale(both)) == 3
    assert {each.name for each in memory.related_entities("Ada", spaces=["work"])} == {"Rome", "Oslo"}
    found = memory.search("where Ada lives", where=Filter(spaces=both)).relations
    assert sorted(each.fact.object for each in found) == ["Oslo", "Paris", "Rome"]
