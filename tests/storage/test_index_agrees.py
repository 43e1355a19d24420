"""With caches, without them, and with any mixture of files and fresh segments: the same hits, to the last bit.

Without: every word is looked for by FTS5 and scored by the rows. From files: one merged segment, mapped. Mixed: files
of some months ago, and all that has happened since in segments in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nacre
from index_files import (
    NOW,
    cache_files,
    cache_folder,
    check_equal_segments,
    index_of,
    low_thresholds,
    reopened,
    settled,
    space_of,
)
from nacre.storage.sqlite import SqliteStore
from nacre.storage.sqlite import keyword_search as sqlite_lexical
from nacre.storage.sqlite.index import segment, segment_builder
from nacre.storage.sqlite.index import space_index as sqlite_index
from nacre.types.recipe import adjusted
from nacre.types.search import Filter
from strategies import KINDS, SPACES, START, TAGS, filters, queries, recipes, varied_memories

pytestmark = pytest.mark.slow

LONG = " ".join(f"Chapter {number} tells of the deploy to staging and of {number} herons." for number in range(200))
QUERIES = (
    "deploy",
    "the",
    "what did the deploy to staging say about herons?",
    "deploy staging kubernetes running",
    "deploying OR run",
    "deploy AND staging",
    "deploy NOT staging",
    "deploy -run",
    '"number 17"',
    '"deploy to staging"',
    '"deploy to" herons',
    "NEAR(deploy number, 1)",
    "NEAR(herons deploy)",
    "dep*",
    "sta* AND number",
    "(deploy OR run) AND (staging OR café)",
    "tag:red deploy",
    "tag:red,deploy",
    "-tag:red deploy",
    "kind:fact number",
    "kind:note,fact -kind:note run",
    "has:summary deploy",
    "has:metadata,session number",
    "source:docs/* deploy",
    'source:"docs/[x]*"',
    "source:ch?t OR tag:red",
    "session:s1 number",
    "entity:alice",
    "since:2024-05-03 until:2024-05-06 number",
    "снова привет",
    "今天天气",
    "naïve café",
    "snake_case snakeCase",
    "main.py:42 ERR-404",
    "nothing of the kind",
    "deplyo stagnig",
    "updated",
    "",
)
FILTERS = (
    Filter(),
    Filter(spaces=["default", "other"]),
    Filter(kinds=["fact"]),
    Filter(namespaces=["decisions"], tags_none=["red"]),
    Filter(tags_any=["red", "deploy"]),
    Filter(tags_all=["red", "Red"]),
    Filter(sources=["docs/*"]),
    Filter(sessions=["s1", "s2"]),
    Filter(created_from=START + timedelta(hours=40), created_until=START + timedelta(hours=150)),
    Filter(metadata={"a": True}),
    Filter(metadata={"b": 1}),
    Filter(has=["summary"]),
    Filter(has=["facts"]),
    Filter(fact_types=["kv", "location"]),
    Filter(importance_min=1 / 3, importance_max=0.9),
    Filter(importance_max=0),
    Filter(key_prefixes=["docs/a", "k"]),
    Filter(languages=["de", "fr"]),
    Filter(kinds=["unknown"]),
)


def write_first(engine: nacre.Nacre) -> list[str]:
    ids = [receipt.id for receipt in engine.remember_many(varied_memories())]
    ids.append(engine.remember(LONG, tags=["long"], summary="a long one about herons").id)
    engine.forget(ids[10:16])
    engine.update(ids[20], text="deploy deploy updated", tags=["red", "Red"])
    return ids


def write_later(engine: nacre.Nacre, ids: list[str]) -> Iterator[None]:
    """Small changes, after each of which somebody searches."""
    changed = [replace(each, text=f"{each.text} again") for each in varied_memories()[::7]]
    engine.remember_many(changed[:20])
    yield
    engine.restore(ids[10:13])
    yield
    for at in range(30, 45):
        engine.update(ids[at], text=f"run updated staging {at}", summary="updated" if at % 2 else None)
    yield
    engine.update(ids[50], kind="fact", source="docs/deploy/main.py", metadata={"a": True, "b": 1})
    engine.forget(ids[60:70])
    yield
    engine.remember_many(changed[20:])
    engine.purge(ids[70:73])
    yield
    engine.update(ids[-1], tags=["long", "red"])  # too little for a file
    yield


class Opened:
    """The same store three times, each with caches of its own making."""

    def __init__(self, plain: nacre.Nacre, merged: nacre.Nacre, mixed: nacre.Nacre) -> None:
        self.plain = plain
        self.merged = merged
        self.mixed = mixed

    def agree(self, query: str, **options: Any) -> int:
        """How many hits all of them give."""
        options = {"as_of": NOW, **options}
        with (
            patch.object(SqliteStore, "_indexed", lambda *_: None),
            patch.object(sqlite_lexical, "CANDIDATES_MIN", 100_000),
        ):
            right = self.plain.search(query, **options)
        for engine in (self.merged, self.mixed):
            found = engine.search(query, **options)
            assert found.hits == right.hits, (query, options)
            assert found.notes == right.notes
        return len(right.hits)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("agree")
    mixed, merged, plain = (folder / f"{name}.db" for name in ("mixed", "merged", "plain"))
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        patched.setattr("nacre.engine.searcher.RESULT_LIFETIME", timedelta(0))
        low_thresholds(patched, BITE_EVENTS=40)
        with reopened(mixed) as engine:
            ids = write_first(engine)
            engine.search("deploy")
            settled(engine)
        with reopened(mixed) as engine:
            patched.setattr(index_of(engine)._worker, "wake", lambda: None)  # or all would be merged by now
            for _ in write_later(engine, ids):
                for space in SPACES:
                    engine.search("deploy", where=Filter(spaces=[space]))
        for path in (merged, plain):
            shutil.copyfile(mixed, path)
        with reopened(merged) as engine:
            engine.rebuild()
        low_thresholds(patched, SAVED_MEMORIES_MIN=10_000)  # what is not in files yet stays in memory
        engines = Opened(*(stack.enter_context(reopened(path)) for path in (plain, merged, mixed)))
        patched.setattr(index_of(engines.mixed)._worker, "wake", lambda: None)  # so that it stays mixed
        yield engines


def test_the_three_are_what_they_should_be(opened: Opened) -> None:
    opened.agree("deploy", where=Filter(spaces=SPACES))
    (part,) = (part for part in space_of(opened.merged).parts if len(part.segment))
    assert part.saved
    assert part.alive is None
    mixed = space_of(opened.mixed).parts
    assert len(mixed) >= 2
    assert mixed[0].saved
    assert mixed[0].alive is not None  # some of it has been changed since
    assert not mixed[-1].saved


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_questions_of_every_kind(opened: Opened, mode: Any) -> None:
    found = [opened.agree(query, mode=mode, limit=limit) for query in QUERIES for limit in (10, 300)]
    assert sum(map(bool, found)) > len(QUERIES)


@pytest.mark.parametrize("where", FILTERS, ids=repr)
def test_filters_of_every_kind(opened: Opened, where: Filter) -> None:
    for query in QUERIES[::4]:
        opened.agree(query, where=where)
    for mode in ("keyword", "semantic"):
        opened.agree("the deploy to staging", mode=mode, where=where, limit=100)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    query=queries,
    where=filters(),
    recipe=recipes.map(lambda recipe: adjusted(recipe, relation_weight=1)),
    mode=st.sampled_from(["keyword", "semantic", "hybrid"]),
    limit=st.sampled_from([1, 3, 10, 50]),
)
def test_any_question(opened: Opened, query: str, where: Filter, recipe: nacre.Recipe, mode: Any, limit: int) -> None:
    opened.agree(query, where=where, recipe=recipe, mode=mode, limit=limit)


def test_these_tests_would_see_a_difference(opened: Opened) -> None:
    """One memory that is missing from a segment is missed."""
    (memory,) = opened.plain.search("chapter herons", limit=1).hits
    assert opened.agree("chapter herons")  # which loads the segments
    space = space_of(opened.merged)
    dead = tuple(part.without(part.segment.rows[-5:]) for part in space.parts)
    index_of(opened.merged)._spaces.put("default", replace(space, parts=dead))
    try:
        with pytest.raises(AssertionError):
            test_questions_of_every_kind(opened, "hybrid")
    finally:
        index_of(opened.merged)._spaces.put("default", space)
    assert memory.memory.tags


def test_alphabets_are_used() -> None:
    assert set(KINDS) <= {each.kind for each in varied_memories()}
    assert set(TAGS) == {tag for each in varied_memories() for tag in each.tags}
    assert {field.name for field in fields(Filter)} == {
        field.name for each in FILTERS for field in fields(Filter) if getattr(each, field.name)
    }


@pytest.mark.usefixtures("uncached")
def test_every_order_of_merging_gives_the_same_segment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the history was cut into bites, what is left in the end is the same to the last byte."""
    low_thresholds(monkeypatch)
    with reopened(path) as engine:
        ids = write_first(engine)
        list(write_later(engine, ids))
    made = []
    for bite in (1, 3, 17, 100, 1_000):
        monkeypatch.setattr(sqlite_index, "BITE_EVENTS", bite)
        monkeypatch.setattr(segment_builder, "_MERGED_POSTINGS", bite * 10)
        shutil.rmtree(cache_folder(path), ignore_errors=True)
        with reopened(path) as engine:
            engine.search("deploy")
            settled(engine)
            parts = [part for part in space_of(engine).parts if len(part.segment)]
            assert [part.saved for part in parts] == [True]
            assert len(cache_files(path, ".segment")) == 1
            arrays = {name: getattr(parts[0].segment, name) for name in segment.NAMES}
            made.append(segment.Segment(**arrays | {"superseded": np.empty(0, np.int64)}))  # nothing comes before it
    for other in made[1:]:
        check_equal_segments(made[0], other)
