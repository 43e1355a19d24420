"""Layer 3, memories in full: what is missing, what they are about, and what stands around them in their session."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from command_line import Cli
from nacre import Entity, Fetched, Filter, InvalidInput, Memory, Nacre, NewEntity, NewFact, NewMemory, NotFound
from nacre.serialization import encode
from nacre.storage.sqlite import neighbours

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def turn(text: str, position: int | None = None, session: str | None = "s", **fields: Any) -> NewMemory:
    return NewMemory(text=text, session=session, position=position, **{"created": NOON, **fields})


def remembered(memory: Nacre, *items: str | NewMemory) -> list[str]:
    return [each.id for each in memory.remember_many(items)]


def around(memory: Nacre, memory_id: str, many: int) -> list[str]:
    return [entry.summary for entry in memory.get(memory_id, neighbours=many).neighbours[memory_id]]


# ---------------------------------------------------------------- the memories


def test_what_is_fetched_is_the_sequence_of_its_memories(memory: Nacre) -> None:
    first, second = remembered(memory, "one", "two")
    fetched = memory.get([second, first])
    two, one = fetched
    assert isinstance(fetched, Fetched)
    assert (two.text, one.text) == ("two", "one")
    assert (fetched[0], fetched[-1], fetched[:1], len(fetched)) == (two, one, (two,), 2)
    assert fetched.memories == (two, one)
    assert one in fetched
    assert memory.get([first, first]).memories == (one,)
    assert not memory.get([])


def test_all_that_are_missing_are_named(memory: Nacre) -> None:
    (there,) = remembered(memory, "there")
    with pytest.raises(NotFound) as caught:
        memory.get(["x", there, "y"])
    assert caught.value.ids == ("x", "y")
    fetched = memory.get(["x", there, "y"], missing_ok=True)
    assert [each.id for each in fetched] == [there]
    assert fetched.missing == ("x", "y")
    assert memory.get("x", missing_ok=True).memories == ()
    assert memory.get(there, missing_ok=True).missing == ()


def test_forgotten_ones_and_facts_come_along(memory: Nacre) -> None:
    (kept,) = remembered(memory, NewMemory(text="x", facts=[NewFact(subject="a", predicate="b", object="c")]))
    memory.forget(kept)
    (found,) = memory.get(kept, missing_ok=True)
    assert found.deleted is not None
    assert [each.object for each in found.facts] == ["c"]


def test_nothing_more_is_given_than_was_asked_for(memory: Nacre) -> None:
    ids = remembered(memory, turn("one", 1, entities=["Ada"]), turn("two", 2))
    fetched = memory.get(ids)
    assert (fetched.entities, fetched.neighbours) == ({}, {})
    assert encode.fetched(fetched) == {"memories": [encode.memory(each) for each in fetched], "missing": []}


def test_only_what_was_found_is_marked_as_opened(memory: Nacre) -> None:
    first, second = remembered(memory, turn("apple pie", 1), turn("apple cake", 2))
    memory.search("apple")
    memory.get([first, "nobody"], missing_ok=True, neighbours=1, entities=True)
    (receipt,) = memory.receipts()
    opened = {each.memory_id: each.opened is not None for each in receipt.deliveries}
    assert opened == {first: True, second: False}
    with pytest.raises(NotFound):
        memory.get([second, "nobody"])
    assert not any(each.opened for each in memory.receipts()[0].deliveries if each.memory_id == second)


def test_for_who_is_confined_foreign_ids_are_missing(path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        foreign = memory.remember("theirs", space="theirs", session="s").id
        own = memory.remember("mine", space="mine", session="s").id
        memory.search("theirs", where=Filter(spaces=["theirs"]))
    with nacre.open(path, embedder="none", space="mine", confined=True) as memory:
        with pytest.raises(NotFound) as caught:
            memory.get([foreign, own, "nobody"])
        assert caught.value.ids == (foreign, "nobody")
        fetched = memory.get([foreign, own, "nobody"], missing_ok=True, neighbours=5)
        assert ([each.id for each in fetched], fetched.missing) == ([own], (foreign, "nobody"))
        assert fetched.neighbours == {own: ()}
    with nacre.open(path, embedder="none") as memory:
        (receipt,) = memory.receipts(spaces=["theirs"])
        assert [each.opened for each in receipt.deliveries] == [None]


# ---------------------------------------------------------------- what they are about


def test_a_memory_is_about_what_it_is_linked_with_and_what_its_facts_name(memory: Nacre) -> None:
    linked, stated, plain, other = remembered(
        memory,
        NewMemory(text="a", entities=[NewEntity(name="Grace", type="person", aliases=["Amazing"]), "Atlas"]),
        NewMemory(
            text="b",
            facts=[
                NewFact(subject="amazing", predicate="works at", object="Acme", relation=True),
                NewFact(subject="Acme", predicate="founded in", object="1999"),
            ],
        ),
        NewMemory(text="c"),
        NewMemory(text="d", space="other", entities=["Grace"]),
    )
    memory.add_entity("1999")
    entities = memory.get([other, plain, stated, linked], entities=True).entities
    grace = Entity(name="Grace", space="default", type="person", aliases=("Amazing",))
    assert list(entities) == [other, plain, stated, linked]
    assert entities[linked] == (Entity(name="Atlas", space="default", type=None, aliases=()), grace)
    assert entities[stated] == (Entity(name="Acme", space="default", type=None, aliases=()), grace)
    assert entities[plain] == ()
    assert [(each.name, each.space) for each in entities[other]] == [("Grace", "other")]


def test_what_a_forgotten_memory_is_about_is_known(memory: Nacre) -> None:
    (kept,) = remembered(memory, NewMemory(text="a", entities=["Ada"]))
    memory.forget(kept)
    assert [each.name for each in memory.get(kept, entities=True).entities[kept]] == ["Ada"]
    memory.restore(kept)
    memory.drop_entity("Ada")
    assert memory.get(kept, entities=True).entities == {kept: ()}


# ---------------------------------------------------------------- what stands around them


def test_neighbours_are_the_nearest_in_the_session_in_order(memory: Nacre) -> None:
    ids = remembered(memory, *(turn(f"turn {number}", number) for number in (3, 1, 5, 2, 4)))
    assert around(memory, ids[0], 1) == ["turn 2", "turn 4"]
    assert around(memory, ids[0], 50) == ["turn 1", "turn 2", "turn 4", "turn 5"]
    assert around(memory, ids[1], 2) == ["turn 2", "turn 3"]
    assert around(memory, ids[2], 2) == ["turn 3", "turn 4"]


def test_memories_without_a_position_come_last_by_time(memory: Nacre) -> None:
    late, early, placed, first = remembered(
        memory,
        turn("late", created=NOON + HOUR),
        turn("early", created=NOON - HOUR),
        turn("placed", 2**63 - 1, created=NOON + 5 * HOUR),
        turn("first", -(2**63), created=NOON + 9 * HOUR),
    )
    assert around(memory, placed, 1) == ["first", "early"]
    assert around(memory, early, 1) == ["placed", "late"]
    assert around(memory, late, 5) == ["first", "placed", "early"]
    assert around(memory, first, 2) == ["placed", "early"]


def test_of_equal_positions_time_decides_and_then_the_id(memory: Nacre) -> None:
    ids = remembered(
        memory,
        turn("b", 1),
        turn("c", 1),
        turn("a", 1, created=NOON - HOUR),
        turn("d", 1, created=NOON + HOUR),
    )
    assert around(memory, ids[1], 3) == ["a", "b", "d"]
    assert around(memory, ids[0], 1) == ["a", "c"]


def test_other_sessions_other_spaces_and_forgotten_ones_are_left_out(memory: Nacre) -> None:
    one, gone, _, _, alone, _ = remembered(
        memory,
        turn("one", 1),
        turn("gone", 2),
        turn("three", 3),
        turn("elsewhere", 2, session="t"),
        turn("of no session", session=None),
        turn("theirs", 2, space="other"),
    )
    memory.forget(gone)
    assert around(memory, one, 5) == ["three"]
    assert around(memory, gone, 5) == ["one", "three"]  # what was forgotten stood between them
    assert around(memory, alone, 5) == []
    memory.restore(gone)
    assert around(memory, one, 1) == ["gone"]
    memory.update(gone, session="t")
    assert around(memory, one, 1) == ["three"]


def place(memory: Memory) -> tuple[float, datetime, str]:
    return float("inf") if memory.position is None else memory.position, memory.created, memory.id


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 1, 2]), st.integers(0, 2), st.booleans()),
        min_size=1,
        max_size=15,
    ),
    st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_neighbours_are_a_part_of_the_sorted_session(turns: Sequence[tuple[str, Any, int, bool]], many: int) -> None:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "m.db", embedder="none") as memory:
        items = [
            turn(f"turn {number}", position, session, created=NOON + hour * HOUR)
            for number, (session, position, hour, _) in enumerate(turns)
        ]
        ids = remembered(memory, *items)
        memory.forget([each for each, (*_, forgotten) in zip(ids, turns, strict=True) if forgotten])
        fetched = memory.get(ids, neighbours=many)
        for one in fetched:
            session = [each for each in fetched if each.session == one.session and each.deleted is None]
            earlier = [each.id for each in sorted(session, key=place) if place(each) < place(one)]
            later = [each.id for each in sorted(session, key=place) if place(each) > place(one)]
            expected = [*earlier[-many:], *later[:many]]
            assert [entry.id for entry in fetched.neighbours[one.id]] == expected


def test_neighbours_are_read_from_the_index_alone(memory: Nacre, path: Path) -> None:
    """All columns of the index bound what is read, so that it costs the same in a session of any length."""
    memory.remember("a text")
    db = apsw.Connection(str(path))
    plan = [
        str(detail)
        for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {neighbours.NEIGHBOURS}", ("[]", 1, 1, True)).fetchall()
    ]
    db.close()
    found = [each.partition("memories_in_session ")[2] for each in plan if each.startswith("SEARCH o USING COVERING")]
    bounds = ["position=? AND (created_us,id)<(?,?)", "(position,created_us,id)<(?,?,?)"]
    bounds += ["(position,created_us,id)>(?,?,?)", "position=? AND (created_us,id)>(?,?)"]
    assert found == [f"(space=? AND session=? AND {each})" for each in bounds]


# ---------------------------------------------------------------- bad input, JSON, the command line


@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"neighbours": -1}, "neighbours", "is -1; a whole number from 0 to 50 is allowed"),
        ({"neighbours": 51}, "neighbours", "from 0 to 50"),
        ({"neighbours": True}, "neighbours", "from 0 to 50"),
        ({"entities": "yes"}, "entities", "must be true or false"),
        ({"missing_ok": 1}, "missing_ok", "must be true or false"),
    ],
)
def test_what_is_not_allowed_is_named(memory: Nacre, options: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        memory.get("nobody", **options)
    assert caught.value.field == field
    assert says in caught.value.problem


def test_what_was_asked_for_stands_with_each_memory_in_json(memory: Nacre) -> None:
    one, two = remembered(memory, turn("one", 1, entities=["Ada"]), turn("two", 2))
    fetched = memory.get([two, "nobody", one], entities=True, neighbours=1, missing_ok=True)
    encoded = json.loads(encode.dumps(encode.fetched(fetched)))
    assert encoded["missing"] == ["nobody"]
    assert [each["id"] for each in encoded["memories"]] == [two, one]
    ada: dict[str, Any] = {"name": "Ada", "space": "default", "type": None, "aliases": []}
    assert [each["entities"] for each in encoded["memories"]] == [[], [ada]]
    ((after_one,), (before_two,)) = [each["neighbours"] for each in encoded["memories"]]
    assert (after_one["id"], after_one["position"], before_two["id"]) == (one, 1, two)
    assert before_two == json.loads(encode.dumps(encode.timeline_entry(fetched.neighbours[one][0])))


def test_the_command_shows_what_was_found_and_complains_of_the_rest(cli: Cli, path: Path) -> None:
    with nacre.open(path, embedder="none") as memory:
        one, two, three = remembered(memory, turn("one", 1, entities=["Ada", "Bob"]), turn("two", 2), turn("three"))
    begin = ["get", "--embedder", "none"]
    shown = cli(*begin, one, "nobody", "--entities", "--neighbours", "5")
    assert shown.code == 2
    assert shown.err == "error: id: no memory 'nobody'; check it with `nacre timeline`\n"
    lines = shown.out.splitlines()
    assert lines[0].startswith(one)
    assert "session: s at 1" in lines[1]
    assert lines[2:4] == ["one", "   entities: Ada, Bob"]
    assert [line.split() for line in lines[4:6]] == [
        [two, *lines[4].split()[1:3], "at", "2", "two"],
        [three, *lines[5].split()[1:3], "three"],
    ]
    shown = cli(*begin, three)
    assert shown.code == 0
    assert "session: s\n" in shown.out
    shown = cli(*begin, "nobody", one, "--json")
    assert shown.code == 2
    assert [each["id"] for each in shown.json["memories"]] == [one]
    assert shown.json["missing"] == ["nobody"]
    assert json.loads(shown.err)["error"]["type"] == "NotFound"
