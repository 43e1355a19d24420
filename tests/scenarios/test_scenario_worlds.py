"""Loading worlds: what is checked, and how a mistake is named. And asking a small one."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common.labelled_sets import half
from benchmarks.scenarios import worlds
from benchmarks.scenarios.asking import Beginnings, ask, superseded_ids
from benchmarks.scenarios.worlds import BadWorld, Question, load
from nacre.analysis.quoting import HEADER, fence
from nacre.config.factory import Models
from nacre.embedders.hashing import Hashing

NOW = datetime(2026, 3, 14, 10, tzinfo=UTC)
WORLDS_ALL_MIN = 150


def world(number: int = 0) -> dict[str, Any]:
    return {
        "name": f"world-{number}",
        "now": "2026-03-14T10:00:00Z",
        "base": None,
        "memories": [
            {"id": each, "text": f"note {each} about topic {each * 3}", "created": f"2026-01-{day:02}T09:30:00Z"}
            for day, each in enumerate("abcdefgh", 1)
        ],
        "questions": [{"ask": "topic aaa", "answers": ["a"], "stale": ["b"]}, {"ask": "topic zzz", "answers": []}],
    }


OLD = [each | {"created": "2024-01-01T00:00:00Z"} for each in world()["memories"]]


def written(folder: Path, first: Any, base: Any = None) -> Path:
    """A folder with one class, whose first world is given."""
    several = [first, *map(world, range(1, worlds.WORLDS_MIN))]
    (folder / "updates.json").write_text(json.dumps(several), "utf-8")
    (folder / "bases").mkdir()
    (folder / "bases" / "team.json").write_text(json.dumps(base or []), "utf-8")
    return folder


def test_a_world_is_loaded_in_the_order_of_time(tmp_path: Path) -> None:
    first = world()
    first["memories"][0] |= {"created": "2026-02-01T09:30:00Z", "session": "s", "position": 0, "source": "a.yaml"}
    first["questions"][0] |= {"answers": ["a", "c"], "any": True, "fine": ["d"]}
    loaded = load(written(tmp_path, first), ["updates"])
    assert len(loaded) == worlds.WORLDS_MIN
    assert (loaded[0].name, loaded[0].class_name, loaded[0].now) == ("world-0", "updates", NOW)
    assert [each.label for each in loaded[0].memories] == list("bcdefgha")
    assert (loaded[0].memories[-1].session, loaded[0].memories[-1].source) == ("s", "a.yaml")
    assert loaded[0].questions == (
        Question("topic aaa", ("a", "c"), ("b",), ("d",), True),
        Question("topic zzz", ()),
    )


def test_the_memories_of_a_base_are_written_among_the_others(tmp_path: Path) -> None:
    base = [{"text": "x", "created": "2026-03-14T09:59:59Z"}, {"text": "y", "created": "2026-01-02T08:00:00Z"}]
    (loaded, *_) = load(written(tmp_path, world() | {"base": "team"}, base), ["updates"])
    assert [each.label for each in loaded.memories] == ["a", "team:1", *"bcdefgh", "team:0"]
    assert loaded.common == 0


def test_worlds_that_begin_alike_are_filled_from_one_store(tmp_path: Path) -> None:
    """And get what they get when each is filled from the start."""
    base = [
        {"text": f"topic {each * 3} of old", "created": f"2025-0{month}-02T08:00:00Z"}
        for month, each in enumerate("abc", 1)
    ]
    base.append({"text": "topic bbb of late", "created": "2026-01-02T08:00:00Z"})
    several = load(written(tmp_path, world() | {"base": "team"}, base), ["updates"])
    first = several[0]
    assert [each.label for each in first.memories[: first.common]] == ["team:0", "team:1", "team:2"]
    models = Models(Hashing(), None)
    beginnings = Beginnings(tmp_path)
    alone, filled, copied = (
        ask(first, models),
        ask(first, models, beginnings=beginnings),
        ask(first, models, beginnings=beginnings),
    )
    assert alone == filled == copied
    assert len(list(tmp_path.glob("*.db"))) == 1
    assert ask(several[1], models, beginnings=beginnings) == ask(several[1], models)


def memory(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda each: each["memories"][2].update(fields)


def question(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda each: each["questions"][0].update(fields)


def field(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda each: each.update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (field(name="World 0"), "updates.json, world World 0, name: is not kebab-case"),
        (field(name="world-1"), "updates.json, world world-1, name: updates.json has this name, too"),
        (field(name=""), "updates.json, world 0.name: '' is not a text"),
        (field(now="2026-03-14"), "updates.json, world world-0.now: '2026-03-14' has no time zone; add Z"),
        (field(now="soon"), "updates.json, world world-0.now: 'soon' is not a time in ISO 8601"),
        (field(base="city"), "updates.json, world world-0, base: 'city' is unknown; there are: team"),
        (field(memories=[]), "updates.json, world world-0, memories: has 0; allowed: 8 to 40"),
        (field(memories=None), "updates.json, world world-0, memories: is not a list"),
        (field(questions=[]), "updates.json, world world-0, questions: has 0; allowed: 1 to 4"),
        (field(extra=1), "updates.json, world 0.extra: is unknown; allowed: base, memories, name, now, questions"),
        (memory(id="a"), "updates.json, world world-0, memories, id: 'a' is there twice"),
        (memory(text=" "), "updates.json, world world-0, memories[2].text: ' ' is not a text"),
        (memory(text="note a about topic aaa"), "memories, text: 'note a about topic aaa' is there twice"),
        (memory(text="shared"), "updates.json, world world-0, memories, text: 'shared' is there twice"),
        (
            memory(created="2026-03-14T10:00:00Z"),
            "updates.json, world world-0, memory c.created: 2026-03-14T10:00:00+00:00 is not before `now`",
        ),
        (
            field(now="2025-01-01T00:00:00Z", memories=OLD),
            "memory team:0.created: 2025-01-01T00:00:00+00:00 is not before",
        ),
        (memory(position=1), "updates.json, world world-0, memories[2].position: needs a session"),
        (memory(session="s", position="1"), "memories[2].position: '1' is not a number from 0"),
        (memory(happened="2026-01-01"), "updates.json, world world-0, memories[2].happened: is unknown"),
        (question(answers=["q"]), "world-0, questions[0].answers: no memory of the world has the id 'q'"),
        (question(stale=["a"]), "world-0, questions[0], answers, stale and fine: 'a' is there twice"),
        (question(answers=[]), "world-0, questions[0].stale: needs an answer that it must stand below"),
        (question(any=True), "world-0, questions[0].any: needs two answers or more"),
        (question(any="yes"), "world-0, questions[0].any: 'yes' is not true or false"),
        (question(ask=None), "world-0, questions[0].ask: None is not a text"),
        (lambda each: each["questions"][0].pop("answers"), "world-0, questions[0].answers: is missing"),
    ],
)
def test_a_mistake_is_named_with_file_world_and_field(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    first = world() | {"base": "team"}
    change(first)
    with pytest.raises(BadWorld) as raised:
        load(written(tmp_path, first, [{"text": "shared", "created": "2025-01-01T00:00:00Z"}]), ["updates"])
    assert message in str(raised.value)


def test_a_class_needs_its_file_and_enough_worlds(tmp_path: Path) -> None:
    with pytest.raises(BadWorld, match=r"time\.json: cannot be read"):
        load(tmp_path, ["time"])
    (tmp_path / "time.json").write_text("[", "utf-8")
    with pytest.raises(BadWorld, match=r"time\.json: is not JSON"):
        load(tmp_path, ["time"])
    (tmp_path / "time.json").write_text(json.dumps([world()]), "utf-8")
    with pytest.raises(BadWorld, match=r"time\.json: has 1 worlds; at least 10 are needed"):
        load(tmp_path, ["time"])


# ---------------------------------------------------------------- asking


def test_a_world_is_asked_at_its_own_time(tmp_path: Path) -> None:
    first = world()
    first["memories"][0]["text"] = "The boiler was repaired by Mona"
    first["memories"][7] |= {"text": "Lunch with Piet at the harbour", "created": "2026-03-13T12:00:00Z"}
    first["questions"] = [
        {"ask": "Who repaired the boiler?", "answers": ["a"]},
        {"ask": "lunch yesterday", "answers": ["h"]},
    ]
    (loaded, *_) = load(written(tmp_path, first), ["updates"])
    boiler, lunch = ask(loaded, Models(Hashing(), None))
    assert (boiler.world, boiler.class_name, boiler.question) == ("world-0", "updates", loaded.questions[0])
    assert boiler.hits[0].label == "a"
    assert "lexical" in boiler.hits[0].reasons
    assert boiler.context.quoted[0] == "a"
    assert not boiler.context.nothing_answers
    assert 0 < boiler.context.tokens <= 300
    assert lunch.hits[0].label == "h"
    assert "temporal" in lunch.hits[0].reasons  # yesterday is the day before the world's `now`


def test_only_notes_and_tags_say_that_a_memory_is_superseded() -> None:
    text = "\n".join(
        [
            HEADER,
            fence("The port is 80", "m1", "2026-01-01", notes=["now: port is 81 (m9, 2026-02-01)"]),
            fence("The draft was superseded\n[now: forgotten]", "m2", "2026-01-01"),
            fence("Any", "m3", "2026-01-01", excerpt=True, notes=["seen", "superseded by m9 since 2026-02-01"]),
            '<memory id="m4" date="2026-01-01" superseded="m9">\nAny\n</memory>',
            fence("[now: mine]", "m5", "2026-01-01", notes=["seen"]),
        ]
    )
    assert superseded_ids(text) == {"m1", "m3", "m4"}


# ---------------------------------------------------------------- the worlds that are shipped


def test_the_worlds_are_sound_and_enough() -> None:
    shipped = load()
    assert {each.class_name for each in shipped} == set(worlds.CLASSES)
    assert len(shipped) >= WORLDS_ALL_MIN
    for class_name in worlds.CLASSES:
        halves = {half(each.name) for each in shipped if each.class_name == class_name}
        assert halves == {"choose", "report"}, class_name


def test_some_worlds_lie_on_a_base_and_many_have_a_question_that_nothing_answers() -> None:
    shipped = load()
    on_a_base = [each for each in shipped if len(each.memories) > worlds.MEMORIES_MAX]
    near_miss = [each for each in shipped if not all(question.answerable for question in each.questions)]
    assert len(on_a_base) >= len(shipped) / 10
    assert len(near_miss) >= len(shipped) / 3
