"""Bad input, through the library: a clear error that names the field and what is allowed, and nothing is written."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nacre
from nacre import (
    Conflict,
    EmbedderMismatch,
    EmbedderUnavailable,
    Filter,
    InvalidInput,
    Limits,
    Nacre,
    NewMemory,
    NotFound,
    Progress,
    Recipe,
    StoreUnavailable,
)
from nacre.embedders.hashing import Hashing
from nacre.types.facts import NewFact
from nacre.types.memory import Json, Span
from nacre.types.recipe import adjusted
from nacre.types.search import MODE_ALIASES, Mode, ModeAlias

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
SURROGATE = "bad \ud800 text"
NOWHERE = "0000000000000000"
MODES: list[Mode] = ["keyword", "semantic", "hybrid"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nacre]:
    """One store for all tests that write nothing, which is what they check, but two texts; searches are not logged."""
    with nacre.open(tmp_path_factory.mktemp("shared") / "memories.db", embedder=Hashing(), log=False) as opened:
        opened.remember_many(["a good one", "apple pie"])
        yield opened


@contextmanager
def refused(memory: Nacre, field: str, *says: str) -> Iterator[None]:
    """InvalidInput that names the field and says these things, with nothing written."""
    before = memory.stats()
    with pytest.raises(InvalidInput) as caught:
        yield
    assert caught.value.field == field
    for each in says:
        assert each in str(caught.value)
    assert str(caught.value).startswith(f"{field}: ")
    assert isinstance(caught.value, ValueError)
    assert memory.stats() == before


@contextmanager
def unchanged(memory: Nacre, kind: type[Exception], *says: str) -> Iterator[None]:
    """An error of this kind that says these things, with nothing written."""
    before = memory.stats()
    with pytest.raises(kind) as caught:
        yield
    for each in says:
        assert each in str(caught.value)
    assert memory.stats() == before


# ---------------------------------------------------------------- new memories

BAD_MEMORIES: list[tuple[str, dict[str, Any], str, str]] = [
    ("empty text", {"text": ""}, "text", "1 to 1,000,000 characters"),
    ("blank text", {"text": " \n\t\u3000"}, "text", "is blank"),
    ("long text", {"text": "x" * 1_000_001}, "text", "at most 1,000,000"),
    ("NUL", {"text": "a\x00b"}, "text", "NUL"),
    ("lone surrogate", {"text": SURROGATE}, "text", "lone surrogate"),
    ("number as text", {"text": 42}, "text", "must be a text, not int"),
    ("bytes as text", {"text": b"raw"}, "text", "must be a text, not bytes"),
    ("None as text", {"text": None}, "text", "must be a text, not NoneType"),
    ("blank space", {"space": " "}, "space", "1 to 200"),
    ("surrogate in space", {"space": SURROGATE}, "space", "lone surrogate"),
    ("long space", {"space": "x" * 201}, "space", "at most 200"),
    ("empty kind", {"kind": ""}, "kind", "1 to 200"),
    ("number as kind", {"kind": 5}, "kind", "must be a text"),
    ("word as pinned", {"pinned": "yes"}, "pinned", "must be true or false"),
    ("empty origin", {"origin": ""}, "origin", "1 to 200"),
    ("surrogate in kind", {"kind": SURROGATE}, "kind", "lone surrogate"),
    ("NUL in namespace", {"namespace": "a\x00"}, "namespace", "NUL"),
    ("surrogate in namespace", {"namespace": SURROGATE}, "namespace", "lone surrogate"),
    ("blank summary", {"summary": ""}, "summary", "1 to 10,000"),
    ("long summary", {"summary": "x" * 10_001}, "summary", "at most 10,000"),
    ("surrogate in summary", {"summary": SURROGATE}, "summary", "lone surrogate"),
    ("long source", {"source": "x" * 2_001}, "source", "at most 2,000"),
    ("surrogate in source", {"source": SURROGATE}, "source", "lone surrogate"),
    ("surrogate in session", {"session": SURROGATE}, "session", "lone surrogate"),
    ("number as session", {"session": 7}, "session", "must be a text"),
    ("string as tags", {"tags": "abc"}, "tags", "must be a list of texts"),
    ("None as tags", {"tags": None}, "tags", "must be a list of texts"),
    ("number in tags", {"tags": [1]}, "tags", "must be a text, not int"),
    ("blank tag", {"tags": ["ok", ""]}, "tags", "is blank"),
    ("surrogate in tags", {"tags": [SURROGATE]}, "tags", "lone surrogate"),
    ("too many tags", {"tags": [f"t{number}" for number in range(101)]}, "tags", "at most 100"),
    ("position without session", {"position": 3}, "position", "needs a session"),
    ("bool as position", {"session": "s", "position": True}, "position", "whole number"),
    ("fraction as position", {"session": "s", "position": 1.5}, "position", "whole number"),
    ("huge position", {"session": "s", "position": 2**63}, "position", "9,223,372,036,854,775,807"),
    ("importance above 1", {"importance": 1.1}, "importance", "from 0 to 1"),
    ("importance below 0", {"importance": -0.1}, "importance", "from 0 to 1"),
    ("importance nan", {"importance": float("nan")}, "importance", "from 0 to 1"),
    ("importance bool", {"importance": True}, "importance", "from 0 to 1"),
    ("importance text", {"importance": "high"}, "importance", "from 0 to 1"),
    ("naive time", {"created": NAIVE}, "created", "no time zone"),
    ("time as text", {"created": "2026-01-01"}, "created", "must be a datetime, not str"),
    (
        "time before year 1",
        {"created": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))},
        "created",
        "years 1 to 9999",
    ),
    ("list as metadata", {"metadata": ["a"]}, "metadata", "must be a mapping, not list"),
    ("object in metadata", {"metadata": {"a": object()}}, "metadata", "plain JSON"),
    ("set in metadata", {"metadata": {"a": {1, 2}}}, "metadata", "plain JSON"),
    ("datetime in metadata", {"metadata": {"a": datetime.now(UTC)}}, "metadata", "plain JSON"),
    ("nan in metadata", {"metadata": {"a": float("nan")}}, "metadata", "plain JSON"),
    ("infinity in metadata", {"metadata": {"a": [float("inf")]}}, "metadata", "plain JSON"),
    ("huge int in metadata", {"metadata": {"a": 2**63}}, "metadata", "64 bits"),
    ("huge int deep in metadata", {"metadata": {"a": [{"b": -(2**63) - 1}]}}, "metadata", "64 bits"),
    ("gigantic int in metadata", {"metadata": {"a": 10**5000}}, "metadata", "metadata"),
    ("number as metadata key", {"metadata": {1: "a"}}, "metadata", "must be valid Unicode text"),
    ("number as inner metadata key", {"metadata": {"a": {1: "b"}}}, "metadata", "must be valid Unicode text"),
    ("surrogate in metadata", {"metadata": {"a": SURROGATE}}, "metadata", "metadata"),
    ("surrogate in metadata key", {"metadata": {SURROGATE: 1}}, "metadata", "must be valid Unicode text"),
    ("NUL in metadata", {"metadata": {"a": "x\x00y"}}, "metadata", "NUL"),
    ("large metadata", {"metadata": {"a": "x" * 65_536}}, "metadata", "at most 65,536"),
]


def _nested(depth: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(depth):
        nested = {"a": nested}
    return nested


@pytest.mark.parametrize(
    ("fields", "field", "allowed"), [each[1:] for each in BAD_MEMORIES], ids=[each[0] for each in BAD_MEMORIES]
)
def test_a_bad_field_is_refused(shared: Nacre, fields: dict[str, Any], field: str, allowed: str) -> None:
    kept = shared.remember("a good one").id
    with refused(shared, field, allowed):
        shared.remember(**{"text": "some text", **fields})
    if field not in ("space", "created"):
        with refused(shared, field, allowed):
            shared.update(kept, **fields)
    assert shared.get(kept)[0].text == "a good one"


@pytest.mark.parametrize("depth", [500, 900, 5_000, 100_000])
def test_metadata_nested_too_deep_is_refused(shared: Nacre, depth: int) -> None:
    with refused(shared, "metadata"):
        shared.remember("text", metadata=_nested(depth))


def test_metadata_that_contains_itself_is_refused(shared: Nacre) -> None:
    knot: dict[str, Any] = {}
    knot["a"] = knot
    with refused(shared, "metadata"):
        shared.remember("text", metadata=knot)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"a": None, "b": True, "c": 1.5, "d": [1, {"e": "f"}], "g": -(2**63), "h": 2**63 - 1},
        {"a": "x" * (65_536 - len('{"a": ""}'))},
        {"": ""},
        {"a": "a backslash: \\u0000 is text, not a NUL"},
        {"a.b[0]$": "'\"`;--"},
    ],
    ids=["empty", "all kinds", "just fits", "empty key", "backslash", "odd key"],
)
def test_metadata_that_is_plain_json_comes_back(memory: Nacre, metadata: dict[str, Json]) -> None:
    kept = memory.remember("text", metadata=metadata).id
    assert memory.get(kept)[0].metadata == metadata


def test_metadata_is_a_copy(memory: Nacre) -> None:
    mine: dict[str, Json] = {"a": [1]}
    kept = memory.remember("text", metadata=mine).id
    mine["a"] = "changed"
    assert memory.get(kept)[0].metadata == {"a": [1]}


def test_everything_at_its_limit_is_allowed(memory: Nacre) -> None:
    kept = memory.remember(
        "x" * 1_000_000,
        space="s" * 200,
        kind="k" * 200,
        namespace="n" * 200,
        summary="y" * 10_000,
        source="z" * 2_000,
        session="q" * 200,
        position=2**63 - 1,
        tags=[f"{number:0200}" for number in range(100)],
        importance=1,
        created=datetime(1, 1, 1, tzinfo=UTC),
    ).id
    (stored,) = memory.get(kept)
    assert (len(stored.text), len(stored.tags), stored.position) == (1_000_000, 100, 2**63 - 1)
    assert stored.created == datetime(1, 1, 1, tzinfo=UTC)


def test_limits_can_be_set(path: Path) -> None:
    with nacre.open(path, embedder="none", limits=Limits(text_chars_max=5)) as memory:
        memory.remember("12345")
        with refused(memory, "text", "has 6 characters", "at most 5"):
            memory.remember("123456")


def test_an_unknown_field_is_refused(shared: Nacre) -> None:
    with unchanged(shared, TypeError, "colour"):
        shared.remember("text", colour="red")  # type: ignore[call-arg]


# ---------------------------------------------------------------- many at once


@pytest.mark.parametrize("bad", ["", None, 5, NewMemory(text="ok", kind="")], ids=["blank", "None", "number", "kind"])
def test_a_bad_item_is_named_and_its_batch_is_not_written(shared: Nacre, bad: Any) -> None:
    with unchanged(shared, InvalidInput, "(item 3 of the input)"):
        shared.remember_many(["one", "two", bad, "four"])


def test_bad_items_cost_no_other_where_they_are_asked_for(memory: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers count all items, over batches; a batch of nothing good is no error."""
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 3)
    items: list[Any] = ["one", "", 5, "", NewMemory(text="ok", kind=""), None, "two", NewMemory(text="x", tags="y")]
    items += [NewMemory(text="three", supersedes=["nobody"]), "four", "one"]
    bad: list[tuple[int, nacre.NacreError]] = []
    batches = list(memory.remember_batches(items, refused=lambda number, error: bad.append((number, error))))
    assert [[each.duplicate for each in batch] for batch in batches] == [[False], [], [False], [False, True]]
    assert [(number, getattr(error, "field", "id")) for number, error in bad] == [
        (2, "text"), (3, "text"), (4, "text"), (5, "kind"), (6, "text"), (8, "tags"), (9, "id"),
    ]  # fmt: skip
    assert sorted(each.text for each in memory.every()) == ["four", "one", "two"]


@pytest.mark.slow
def test_batches_before_a_bad_item_are_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_MEMORIES", 2_000)
    with nacre.open(path, embedder="none") as memory:
        items = [f"text {number}" for number in range(5_000)] + [""]
        stored: list[nacre.Remembered] = []

        def consume() -> None:
            for receipts in memory.remember_batches(items):
                stored.extend(receipts)

        with pytest.raises(InvalidInput, match=r"item 5001 of the input"):
            consume()
        assert len(stored) == 4_000
        assert memory.stats().memories == len(stored)


def test_one_text_is_not_a_list_of_letters(shared: Nacre) -> None:
    with unchanged(shared, InvalidInput):
        shared.remember_many("letters")


def test_equal_texts_become_one_memory_that_has_the_tags_of_all(memory: Nacre) -> None:
    first, second = memory.remember_many([NewMemory(text="same", tags=["a"]), NewMemory(text="same", tags=["b"])])
    assert first.id == second.id
    assert (first.duplicate, second.duplicate) == (False, True)
    assert second.changed == ("tags",)
    assert memory.get(first.id)[0].tags == ("a", "b")


# ---------------------------------------------------------------- searching

BAD_OPTIONS: list[tuple[str, dict[str, Any], str, str]] = [
    ("unknown mode", {"mode": "fuzzy"}, "mode", "allowed: keyword, semantic, hybrid"),
    ("no mode", {"mode": None}, "mode", "hybrid, also text for keyword and vector for semantic"),
    ("a list as mode", {"mode": ["text"]}, "mode", "allowed: keyword, semantic, hybrid"),
    ("limit 0", {"limit": 0}, "limit", "from 1 to 1,000"),
    ("negative limit", {"limit": -1}, "limit", "from 1 to 1,000"),
    ("huge limit", {"limit": 1_001}, "limit", "from 1 to 1,000"),
    ("bool limit", {"limit": True}, "limit", "whole number"),
    ("float limit", {"limit": 5.0}, "limit", "whole number"),
    ("text limit", {"limit": "5"}, "limit", "whole number"),
    ("alpha above 1", {"recipe": Recipe(alpha=1.01)}, "recipe.alpha", "from 0 to 1"),
    ("alpha below 0", {"recipe": Recipe(alpha=-0.01)}, "recipe.alpha", "from 0 to 1"),
    ("alpha nan", {"recipe": Recipe(alpha=float("nan"))}, "recipe.alpha", "from 0 to 1"),
    ("alpha bool", {"recipe": Recipe(alpha=True)}, "recipe.alpha", "from 0 to 1"),
    ("negative k", {"recipe": Recipe(k=-1)}, "recipe.k", "from 0 to"),
    ("pool 0", {"recipe": Recipe(pool=0)}, "recipe.pool", "from 1 to 10,000"),
    ("floor above 1", {"recipe": Recipe(semantic_floor=2)}, "recipe.semantic_floor", "from -1 to 1"),
    ("recency above 1", {"recipe": Recipe(recency_weight=2)}, "recipe.recency_weight", "from 0 to 1"),
    ("b above 1", {"recipe": adjusted(Recipe(), bm25_b=2)}, "recipe.bm25_b", "from 0 to 1"),
    ("k1 infinite", {"recipe": adjusted(Recipe(), bm25_k1=float("inf"))}, "recipe.bm25_k1", "from 0 to 100"),
    ("rerank weight above 1", {"recipe": Recipe(rerank_weight=1.1)}, "recipe.rerank_weight", "from 0 to 1"),
    ("rerank pool 1", {"recipe": Recipe(rerank_pool=1)}, "recipe.rerank_pool", "from 2 to 100"),
    ("rerank pool 101", {"recipe": Recipe(rerank_pool=101)}, "recipe.rerank_pool", "from 2 to 100"),
    ("rerank few 1", {"recipe": Recipe(rerank_few=1)}, "recipe.rerank_few", "from 2 to 100"),
    ("rerank few 101", {"recipe": Recipe(rerank_few=101)}, "recipe.rerank_few", "from 2 to 100"),
    ("rerank ms below 0", {"recipe": Recipe(rerank_ms=-1)}, "recipe.rerank_ms", "from 0 to 60,000"),
    ("half a rerank ms", {"recipe": adjusted(Recipe(), rerank_ms=0.5)}, "recipe.rerank_ms", "whole number"),
    ("clear share above 1", {"recipe": adjusted(Recipe(), clear_share=1.1)}, "recipe.clear_share", "from 0 to 1"),
    ("rerank no", {"rerank": "no"}, "rerank", "'no' is unknown; allowed: fast, full, or false to skip reranking"),
    ("rerank None", {"rerank": None}, "rerank", "None is unknown; allowed: fast, full, or false"),
    ("rerank 1", {"rerank": 1}, "rerank", "1 is unknown"),
    ("rerank as a list", {"rerank": ["fast"]}, "rerank", "['fast'] is unknown"),
    ("no recipe", {"recipe": {"alpha": 0.5}}, "recipe", "Recipe"),
]


@pytest.mark.parametrize(("alias", "mode"), MODE_ALIASES.items())
def test_an_alias_of_a_mode_answers_and_is_logged_as_the_mode(memory: Nacre, alias: ModeAlias, mode: Mode) -> None:
    memory.remember("an apple pie")
    assert memory.search("apple", mode=alias) == memory.search("apple", mode=mode)
    assert [each.mode for each in memory.receipts()] == [mode, mode]


BAD_FILTERS: list[tuple[str, Any, str, str]] = [
    ("no filter", {"spaces": ["a"]}, "where", "Filter"),
    ("string as spaces", Filter(spaces="ab"), "where.spaces", "must be a list of texts"),
    ("string as kinds", Filter(kinds="note"), "where.kinds", "must be a list of texts"),
    ("string as tags", Filter(tags_any="ab"), "where.tags_any", "must be a list of texts"),
    ("None as tags", Filter(tags_all=None), "where.tags_all", "must be a list of texts"),  # type: ignore[arg-type]
    ("number in tags", Filter(tags_none=[1]), "where.tags_none", "must be a text"),  # type: ignore[list-item]
    ("blank space", Filter(spaces=[""]), "where.spaces", "is blank"),
    ("surrogate in sources", Filter(sources=[SURROGATE]), "where.sources", "lone surrogate"),
    ("surrogate in sessions", Filter(sessions=[SURROGATE]), "where.sessions", "lone surrogate"),
    ("too many values", Filter(kinds=[f"k{number}" for number in range(1001)]), "where.kinds", "at most 1000"),
    ("unknown fact type", Filter(fact_types=["taste"]), "where.fact_types", "allowed: identity, preference"),  # type: ignore[list-item]
    ("string as fact types", Filter(fact_types="kv"), "where.fact_types", "must be a list of texts"),  # type: ignore[arg-type]
    ("naive from", Filter(created_from=NAIVE), "where.created_from", "no time zone"),
    ("naive until", Filter(created_until=NAIVE), "where.created_until", "no time zone"),
    ("text as time", Filter(created_from="today"), "where.created_from", "must be a datetime"),  # type: ignore[arg-type]
    ("list as metadata", Filter(metadata=["a"]), "where.metadata", "must be a mapping"),  # type: ignore[arg-type]
    ("nested metadata", Filter(metadata={"a": {"b": 1}}), "where.metadata['a']", "text, number"),  # type: ignore[dict-item]
    ("list in metadata", Filter(metadata={"a": [1]}), "where.metadata['a']", "text, number"),  # type: ignore[dict-item]
    ("nan in metadata", Filter(metadata={"a": float("nan")}), "where.metadata['a']", "finite"),
    ("huge int in metadata", Filter(metadata={"a": 2**63}), "where.metadata['a']", "64 bits"),
    ("surrogate in metadata", Filter(metadata={"a": SURROGATE}), "where.metadata['a']", "lone surrogate"),
    ("importance above 1", Filter(importance_min=1.5), "where.importance_min", "from 0 to 1"),
    ("text as importance", Filter(importance_max="high"), "where.importance_max", "from 0 to 1"),  # type: ignore[arg-type]
    ("bounds swapped", Filter(importance_min=0.7, importance_max=0.3), "where.importance_max", "swap the two"),
    ("number as metadata key", Filter(metadata={1: "a"}), "where.metadata", "Unicode"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(
    ("options", "field", "allowed"), [each[1:] for each in BAD_OPTIONS], ids=[each[0] for each in BAD_OPTIONS]
)
def test_a_bad_search_option_is_refused(shared: Nacre, options: dict[str, Any], field: str, allowed: str) -> None:
    with refused(shared, field, allowed):
        shared.search("words", **options)


@pytest.mark.parametrize(
    ("where", "field", "allowed"), [each[1:] for each in BAD_FILTERS], ids=[each[0] for each in BAD_FILTERS]
)
def test_a_bad_filter_is_refused(shared: Nacre, where: Filter, field: str, allowed: str) -> None:
    with refused(shared, field, allowed):
        shared.search("words", where=where)
    with refused(shared, field, allowed):
        shared.timeline(where=where)


@pytest.mark.parametrize("query", [None, 5, b"raw", ["words"]])
def test_a_query_that_is_no_text_is_refused(shared: Nacre, query: Any) -> None:
    with refused(shared, "query", "must be a text"):
        shared.search(query)


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, 2.0])
def test_a_bad_timeline_limit_is_refused(shared: Nacre, limit: Any) -> None:
    with refused(shared, "limit", "from 1 to 1,000"):
        shared.timeline(limit=limit)


@pytest.mark.parametrize("cursor", [NOWHERE, "", SURROGATE, "\x00", 5, ["x"]])
def test_an_unknown_cursor_is_refused(shared: Nacre, cursor: Any) -> None:
    with refused(shared, "cursor", "give the `next` of the page before"):
        shared.timeline(cursor=cursor)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", "   ", "\n\t", '""', "()"])
def test_a_query_that_asks_for_nothing_is_given_so(shared: Nacre, query: str, mode: Mode) -> None:
    shared.remember("apple pie")
    result = shared.search(query, mode=mode)
    if query != "()":  # without operators, parentheses are punctuation with a meaning of their own
        assert result.hits == ()
        assert "the query asks for nothing: give some words" in result.notes


_WORDS = [f"w{number}" for number in range(1_500)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query",
    [
        "apple \ud800",
        "apple\udfff",
        "apple\x00",
        "\x00",
        "apple " * 166_667,
        "x" * 1_000_000,
        "(" * 10_000,
        '"' * 10_000,
        "apple " + " ".join(f"-{word}" for word in _WORDS),
        "apple NOT " + " NOT ".join(_WORDS),
        " AND ".join(_WORDS),
        " OR ".join(_WORDS) + ' OR "apple pie"',
        " AND ".join(f'"{word}"' for word in _WORDS[:1000]),
        "(apple AND pie OR " * 45 + "apple" + ")" * 45,
        "(apple NOT (w1 OR " * 24 + "pie" + "))" * 24,
        '"' + " ".join(_WORDS) + '"',
        "apple AND " * 900 + "apple",
    ],
    ids=[
        "surrogate", "surrogate inside", "NUL", "only NUL", "million words", "million letters", "parens", "quotes",
        "exclusions", "NOTs", "ANDs", "ORs", "phrases", "nested groups", "nested exclusions", "long phrase", "same AND",
    ],
)  # fmt: skip
def test_any_query_is_answered(shared: Nacre, query: str, mode: Mode) -> None:
    """Whatever is typed or pasted, a search has an answer."""
    kept = shared.remember("apple pie").id
    result = shared.search(query, mode=mode)
    assert [hit.id for hit in result.hits] in ([], [kept])
    if len(query) > 10_000:
        assert f"the query has {len(query):,} characters; the first 10,000 were used" in result.notes


def test_a_query_with_a_lone_surrogate_finds_its_other_words(shared: Nacre) -> None:
    shared.remember("apple pie")
    for query in ("apple \ud800", "apple\udfff", "apple\x00"):
        assert len(shared.search(query, mode="keyword").hits) == 1


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("verb", ["get", "forget", "restore", "purge"])
@pytest.mark.parametrize("unknown", [NOWHERE, "", "\x00", SURROGATE, "'; DROP TABLE memories; --"])
def test_an_unknown_id_is_not_found(shared: Nacre, verb: str, unknown: str) -> None:
    kept = shared.remember("a good one").id
    with unchanged(shared, NotFound, "no memory", "nacre timeline"):
        getattr(shared, verb)(unknown)
    with unchanged(shared, NotFound, "no memory"):  # one bad id among good ones: nothing is done
        getattr(shared, verb)([kept, unknown])
    assert shared.get(kept)[0].deleted is None


def test_an_unknown_id_is_not_updated(shared: Nacre) -> None:
    with unchanged(shared, NotFound, NOWHERE):
        shared.update(NOWHERE, text="new")


def test_not_found_is_a_lookup_error_that_knows_the_ids(shared: Nacre) -> None:
    with pytest.raises(LookupError) as caught:
        shared.get(["x", "y"])
    assert isinstance(caught.value, NotFound)
    assert caught.value.ids == ("x", "y")


@pytest.mark.parametrize("ids", [None, 5, {"a": 1}, [1], [None]])
def test_ids_that_are_no_texts_are_refused(shared: Nacre, ids: Any) -> None:
    for verb in (shared.get, shared.forget, shared.restore, shared.purge):
        with refused(shared, "ids"):
            verb(ids)


def test_too_many_ids_are_refused(shared: Nacre) -> None:
    with refused(shared, "ids", "at most 10000"):
        shared.get([str(number) for number in range(10_001)])


@pytest.mark.parametrize("unknown", [NOWHERE, SURROGATE, "\x00"])
def test_an_unknown_id_has_no_history(shared: Nacre, unknown: str) -> None:
    with pytest.raises(NotFound):
        shared.history(unknown)


# ---------------------------------------------------------------- changing


@pytest.mark.parametrize("name", ["colour", "id", "space", "created", "updated", "deleted"])
def test_an_unknown_field_cannot_be_changed(shared: Nacre, name: str) -> None:
    kept = shared.remember("a good one").id
    with refused(shared, name, "allowed: expires, happened, importance, key, kind, language, metadata"):
        shared.update(kept, **{name: "x"})  # type: ignore[arg-type]


def test_an_update_of_nothing_is_refused(shared: Nacre) -> None:
    kept = shared.remember("a good one").id
    with refused(shared, "changes", "give at least one of expires, happened, importance"):
        shared.update(kept)


def test_a_session_with_a_position_cannot_be_taken_away(memory: Nacre) -> None:
    kept = memory.remember("text", session="s", position=1).id
    with refused(memory, "position", "needs a session"):
        memory.update(kept, session=None)
    assert memory.update(kept, session=None, position=None).session is None


def test_a_forgotten_memory_cannot_be_changed(memory: Nacre) -> None:
    kept = memory.remember("text").id
    memory.forget(kept)
    with unchanged(memory, Conflict, kept, "restore it first"):
        memory.update(kept, text="other")


def test_a_memory_whose_text_was_remembered_again_cannot_be_restored(memory: Nacre) -> None:
    first = memory.remember("text").id
    other = memory.remember("other").id
    memory.forget([first, other])
    twin = memory.remember("text").id
    with unchanged(memory, Conflict, twin, first, "forget it first"):
        memory.restore([other, first])  # all or nothing
    assert memory.get(other)[0].deleted is not None


def test_a_text_cannot_become_that_of_another_memory(memory: Nacre) -> None:
    first = memory.remember("first").id
    second = memory.remember("second").id
    with unchanged(memory, Conflict, first, "has this text already"):
        memory.update(second, text="first")
    assert memory.get(second)[0].text == "second"


def test_a_text_may_become_that_of_a_forgotten_memory(memory: Nacre) -> None:
    first = memory.remember("first").id
    second = memory.remember("second").id
    memory.forget(first)
    assert memory.update(second, text="first").text == "first"


def test_forgetting_twice_changes_nothing(memory: Nacre) -> None:
    kept = memory.remember("text").id
    memory.forget(kept)
    before = memory.stats()
    memory.forget(kept)
    assert memory.stats() == before


# ---------------------------------------------------------------- opening and closing


VERBS: list[Callable[[Nacre], object]] = [
    lambda memory: memory.remember("text"),
    lambda memory: memory.update("x", text="y"),
    lambda memory: memory.search("text", mode="keyword"),
    lambda memory: memory.search("text", mode="semantic"),
    lambda memory: memory.search("text"),
    lambda memory: memory.get("x"),
    lambda memory: memory.timeline(),
    lambda memory: memory.history("x"),
    lambda memory: memory.why("text", "x"),
    lambda memory: memory.related("x"),
    lambda memory: memory.facets("text"),
    lambda memory: memory.add_facts("x", [NewFact(subject="a", predicate="b", object="c")]),
    lambda memory: memory.drop_facts("x"),
    lambda memory: memory.facts(),
    lambda memory: memory.reinforce("x"),
    lambda memory: memory.stale(),
    lambda memory: memory.conflicts(),
    lambda memory: memory.add_entity("x"),
    lambda memory: memory.drop_entity("x"),
    lambda memory: memory.entities(),
    lambda memory: memory.related_entities("x"),
    lambda memory: memory.similar("x"),
    lambda memory: memory.separate("x"),
    lambda memory: memory.receipts(),
    lambda memory: memory.clear_log(),
    lambda memory: memory.mark("x", "used"),
    lambda memory: memory.lenses(),
    lambda memory: memory.drop_lens("x"),
    lambda memory: memory.forget("x"),
    lambda memory: memory.restore("x"),
    lambda memory: memory.purge("x"),
    lambda memory: memory.stats(),
    lambda memory: memory.rebuild(),
    lambda memory: list(memory.reembed()),
]


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_store_says_so(memory: Nacre, verb: Callable[[Nacre], object]) -> None:
    memory.remember("text")
    memory.close()
    with pytest.raises(StoreUnavailable, match="is closed; open it again"):
        verb(memory)
    memory.close()  # twice does no harm


def test_an_unknown_embedder_is_refused_before_a_file_is_made(path: Path) -> None:
    with pytest.raises(InvalidInput, match="allowed: minilm, minilm-cuda, hashing, none") as caught:
        nacre.open(path, embedder="gpt")
    assert caught.value.field == "embedder"
    assert not path.exists()


@pytest.mark.parametrize("space", ["", " ", SURROGATE, "x" * 201, None])
def test_a_bad_space_is_refused(path: Path, space: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        nacre.open(path, embedder="none", space=space)
    assert caught.value.field == "space"
    assert not path.exists()


@pytest.mark.parametrize(("name", "value"), [("busy_timeout_ms", -5), ("threads", -1)])
def test_a_negative_number_is_refused(path: Path, name: str, value: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        nacre.open(path, embedder="none", **{name: value})  # type: ignore[arg-type]
    assert caught.value.field == name
    assert not path.exists()


def test_a_path_that_cannot_be_is_unavailable(tmp_path: Path) -> None:
    for bad in (tmp_path, tmp_path / "no" / "such" / "folder.db"):
        with pytest.raises(StoreUnavailable):
            nacre.open(bad, embedder="none")


@pytest.mark.parametrize("name", ["a\x00b.db", "a\ud800b.db"])
def test_a_path_that_no_file_can_have_is_unavailable(tmp_path: Path, name: str) -> None:
    with pytest.raises(nacre.NacreError):
        nacre.open(f"{tmp_path}/{name}", embedder="none")


# ---------------------------------------------------------------- embedders that fail


class Moody(Hashing):
    """Counts the texts it embeds, and fails when told to."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.embedded: Counter[str] = Counter()
        self.fails = False

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        self._check()
        return super().weigh(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        self._check()
        self.embedded.update(texts)
        return super().embed_passages(texts)

    def embed_query(self, text: str) -> FloatVector:
        self._check()
        return super().embed_passages([text])[0]  # type: ignore[no-any-return]

    def _check(self) -> None:
        if self.fails:
            raise RuntimeError("the model is in a mood")


def test_an_embedder_that_fails_on_a_query_leaves_the_words(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        kept = memory.remember("apple pie").id
        moody.fails = True
        with caplog.at_level(logging.WARNING, "nacre"):
            hybrid = memory.search("apple")
        assert [hit.id for hit in hybrid.hits] == [kept]
        assert hybrid.hits[0].match_type == "bm25"
        assert hybrid.notes == ("the embedder failed: keyword results only (the model is in a mood)",)
        assert "the model is in a mood" in caplog.text
        semantic = memory.search("apple", mode="semantic")
        assert semantic.hits == ()
        assert semantic.notes == ("the embedder failed: no results by meaning (the model is in a mood)",)
        assert memory.search("apple", mode="keyword").notes == ()
        moody.fails = False
        assert memory.search("apple").hits[0].match_type == "hybrid"


def test_an_embedder_that_fails_on_a_text_loses_nothing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        moody.fails = True
        with caplog.at_level(logging.WARNING, "nacre"):
            kept = memory.remember("apple pie").id
            memory.remember("long " * 500)
        assert "nacre reembed" in caplog.text
        assert (memory.stats().memories, memory.stats().pending, memory.stats().passages) == (2, 2, 0)
        assert [hit.id for hit in memory.search("apple", mode="keyword").hits] == [kept]
        moody.fails = False
        waiting = memory.search("apple")
        assert waiting.notes == ("2 memories have no vectors yet: run `nacre reembed`",)
        assert list(memory.reembed())[-1] == Progress(2, 2)
        assert memory.stats().pending == 0
        assert memory.search("apple").hits[0].match_type == "hybrid"


def test_an_embedder_that_fails_on_a_change_loses_nothing(path: Path) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        kept = memory.remember("apple pie").id
        moody.fails = True
        memory.update(kept, text="cherry cake")
        assert (memory.stats().pending, memory.stats().passages) == (1, 0)
        moody.fails = False
        assert memory.search("apple pie", mode="semantic").hits == ()  # the old vector is gone
        assert list(memory.reembed())[-1] == Progress(1, 1)
        assert memory.search("cherry cake", mode="semantic").hits[0].id == kept


def test_reembedding_with_an_embedder_that_fails_loses_nothing(path: Path) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        moody.fails = True
        memory.remember("apple pie")
        with pytest.raises((RuntimeError, nacre.EmbedderError), match="in a mood"):
            list(memory.reembed())
        assert (memory.stats().memories, memory.stats().pending) == (1, 1)
        moody.fails = False
        assert list(memory.reembed())[-1] == Progress(1, 1)


def test_without_an_embedder_words_are_found_and_notes_say_so(path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        kept = memory.remember("apple pie").id
        hybrid = memory.search("apple")
        assert [hit.id for hit in hybrid.hits] == [kept]
        assert hybrid.notes == ("no embedder is configured: keyword results only",)
        semantic = memory.search("apple", mode="semantic")
        assert semantic.hits == ()
        assert semantic.notes == ("no embedder is configured: no results by meaning",)
        assert memory.search("apple", mode="keyword").notes == ()
        with unchanged(memory, EmbedderUnavailable, "embedder", "minilm"):
            list(memory.reembed())
        assert memory.stats().model is None


def test_a_space_that_was_searched_while_it_was_empty_can_be_filled(memory: Nacre) -> None:
    memory.remember("apple pie", space="another")  # so that the store has a model
    assert memory.search("apple").hits == ()
    kept = memory.remember("apple pie").id
    assert [hit.id for hit in memory.search("apple", mode="semantic").hits] == [kept]


# ---------------------------------------------------------------- another model


def test_a_store_of_another_model_is_not_opened(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(64)) as memory:
        memory.remember("apple pie")
    with pytest.raises(EmbedderMismatch, match="nacre reembed") as caught:
        nacre.open(path, embedder=Hashing(32))
    assert "hashing/1/64" in str(caught.value)
    assert "hashing/1/32" in str(caught.value)
    with nacre.open(path, embedder="none") as memory:  # words need no model
        assert len(memory.search("apple").hits) == 1


def test_reembedding_gives_every_memory_a_vector_of_the_new_model(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(64)) as memory:
        memory.remember_many([f"apple number {number}" for number in range(5)])
        forgotten = memory.remember("forgotten").id
        memory.forget(forgotten)
    moody = Moody(32)
    with nacre.open(path, embedder=moody, switch_model=True, log=False) as memory:
        assert list(memory.reembed()) == [Progress(0, 5), Progress(5, 5)]
        assert memory.stats().model == "hashing/1/32"
        assert memory.stats().pending == 0
        assert len(memory.search("apple number", mode="semantic").hits) == 5
        embedded, before = sum(moody.embedded.values()), memory.stats()
        assert list(memory.reembed()) == [Progress(0, 0)]  # once more does nothing
        assert sum(moody.embedded.values()) == embedded
        assert memory.stats() == before
    with nacre.open(path, embedder=Hashing(32)) as memory:
        assert memory.search("apple").notes == ()


def test_a_memory_restored_after_the_model_was_switched_gets_its_vector(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(64)) as memory:
        kept = memory.remember("apple pie").id
        memory.forget(kept)
    with nacre.open(path, embedder=Hashing(32), switch_model=True) as memory:
        list(memory.reembed())
        memory.restore(kept)
        assert memory.stats().pending == 1
        list(memory.reembed())
        assert memory.search("apple pie", mode="semantic").hits[0].id == kept


def test_reembedding_goes_on_where_it_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.engine.writer.BATCH_EMBEDDED", 32)
    with nacre.open(path, embedder=Hashing(64)) as memory:
        memory.remember_many([f"apple number {number}" for number in range(150)])
    moody = Moody(32)
    with nacre.open(path, embedder=moody, switch_model=True) as memory:
        work = memory.reembed()
        assert next(work) == Progress(0, 150)
        done = next(work).done
        assert 0 < done < 150
        del work  # the next batch is on its way already
    with nacre.open(path, embedder=moody) as memory:  # the store's model is the new one already
        waiting = memory.stats().pending
        assert waiting == 150 - done - 32
        halfway = memory.search("apple", mode="semantic")
        assert f"{waiting} memories have no vectors yet: run `nacre reembed`" in halfway.notes
        assert list(memory.reembed())[-1] == Progress(waiting, waiting)
        assert memory.stats().pending == 0
    assert set(moody.embedded.values()) == {1}


@pytest.mark.parametrize("dimensions", [32, 64], ids=["other size", "same size"])
@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_vectors_of_two_models_are_never_compared(path: Path, mode: Mode, dimensions: int) -> None:
    """Another process may switch the model while this one has the store open."""

    class Other(Hashing):
        @property
        def fingerprint(self) -> str:
            return "another model"

    with nacre.open(path, embedder=Hashing(64), log=False) as memory:
        kept = memory.remember("apple pie").id
        with nacre.open(path, embedder=Other(dimensions), switch_model=True, log=False) as another:
            _mismatch_is_told(another, mode, kept)  # not re-embedded yet
            list(another.reembed())
            assert another.search("apple", mode=mode).notes == ()
        _mismatch_is_told(memory, mode, kept)
        with unchanged(memory, EmbedderMismatch, "nacre reembed"):
            memory.remember("cherry cake")


def _mismatch_is_told(memory: Nacre, mode: Mode, kept: str) -> None:
    """Either the error that names the way out, or keyword results with a note that does."""
    try:
        result = memory.search("apple", mode=mode)
    except EmbedderMismatch as error:
        assert "nacre reembed" in str(error)  # noqa: PT017
        return
    assert [hit.id for hit in result.hits] == ([] if mode == "semantic" else [kept])
    assert all(hit.match_type == "bm25" for hit in result.hits)
    assert any("nacre reembed" in note for note in result.notes)


# ---------------------------------------------------------------- no text is embedded twice


def test_an_unchanged_text_is_never_embedded_again(path: Path) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        kept = memory.remember("apple pie").id
        assert memory.remember("apple pie") == (kept, True, (), (), ())
        assert [each.id for each in memory.remember_many(["apple pie", "cherry", "apple pie", "cherry"])].count(
            kept
        ) == 2
        memory.update(kept, tags=["fruit"], importance=0.9, metadata={"a": 1}, summary="pie", kind="fact")
        memory.update(kept, text="apple pie", source="book")
        memory.forget(kept)
        memory.restore(kept)
        list(memory.reembed())
        memory.rebuild()
        memory.search("apple")
        assert moody.embedded == {"apple pie": 1, "cherry": 1}
        memory.update(kept, text="plum cake")
        assert moody.embedded == {"apple pie": 1, "cherry": 1, "plum cake": 1}
    with nacre.open(path, embedder=moody) as memory:
        memory.remember_many(["plum cake", "cherry"])
        assert sum(moody.embedded.values()) == 3


def test_a_refused_text_is_not_embedded(path: Path) -> None:
    moody = Moody()
    with nacre.open(path, embedder=moody) as memory:
        with pytest.raises(InvalidInput):
            memory.remember_many(["good", ""])
        assert not moody.embedded
