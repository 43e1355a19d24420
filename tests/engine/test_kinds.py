"""The kind of a memory is given, or recognised where it is not; and what is pinned, and by whom it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nacre
from command_line import Cli
from nacre import Nacre, NewMemory
from nacre.serialization import decode, encode

ALLERGY, ORDER, EVENT = "I'm allergic to nuts.", "Never push to main.", "The deploy failed at noon."


def kind_of(memory: Nacre, text: str, **fields: Any) -> str:
    return memory.get(memory.remember(text, **fields).id)[0].kind


@pytest.mark.parametrize(("text", "kind"), [(ALLERGY, "preference"), (ORDER, "instruction"), (EVENT, "note")])
def test_a_kind_that_is_not_given_is_recognised(memory: Nacre, text: str, kind: str) -> None:
    assert kind_of(memory, text) == kind


@pytest.mark.parametrize("kind", ["note", "episode", "instruction"])
def test_a_kind_that_is_given_is_kept(memory: Nacre, kind: str) -> None:
    assert kind_of(memory, ALLERGY, kind=kind) == kind


def test_plain_texts_and_memories_are_alike(memory: Nacre) -> None:
    items: list[str | NewMemory] = [ALLERGY, NewMemory(text=ORDER), EVENT, NewMemory(text="Call me Max.", kind="note")]
    ids = [each.id for each in memory.remember_many(items)]
    assert [each.kind for each in memory.get(ids)] == ["preference", "instruction", "note", "note"]


def test_recognition_is_switched_off_with_extraction(path: Path, memory: Nacre) -> None:
    assert kind_of(memory, ALLERGY, extract=False) == "note"
    with nacre.open(path, embedder=None, extract=False) as plain:
        assert kind_of(plain, ORDER) == "note"
        assert kind_of(plain, "Reply in German.", extract=True) == "instruction"


def test_a_kind_is_corrected(memory: Nacre) -> None:
    one = memory.remember(ALLERGY).id
    assert memory.update(one, kind="note").kind == "note"
    assert memory.update(one, tags=["health"]).kind == "note"
    assert memory.update(one, text=ORDER).kind == "note"
    assert memory.update(one, kind=None).kind == "instruction"


def test_the_kind_is_a_filter(memory: Nacre) -> None:
    one = memory.remember(ALLERGY).id
    memory.remember(EVENT)
    assert [hit.id for hit in memory.search("kind:preference").hits] == [one]


def test_what_is_pinned_is_shown_everywhere(memory: Nacre) -> None:
    one = memory.remember(ALLERGY, pinned=True, origin="a walk").id
    (found,) = memory.get(one)
    assert (found.pinned, found.origin, found.session) == (True, "a walk", None)
    assert encode.memory(found)["pinned"] is True
    assert encode.memory(found)["origin"] == "a walk"
    assert [entry.pinned for entry in memory.timeline().entries] == [True]
    assert memory.search("allergic", mode="keyword").hits[0].memory.pinned
    changed = memory.update(one, pinned=False)
    assert (changed.pinned, changed.origin) == (False, "a walk")
    assert memory.history(one)[-1].before["pinned"] is True


def test_a_memory_comes_back_from_json_as_it_was(memory: Nacre) -> None:
    one = memory.remember(ALLERGY, kind="note", pinned=True, origin="a walk", session="s", position=2).id
    written = encode.memory(memory.get(one)[0])
    stored = ("id", "updated", "deleted", "facts")  # what a new memory has not
    again = decode.new_memory_line(json.dumps({name: each for name, each in written.items() if name not in stored}), 1)
    assert (again.kind, again.pinned, again.origin, again.position) == ("note", True, "a walk", 2)
    assert decode.new_memory({"text": ALLERGY, "kind": None}).kind is None


def test_the_command_line_pins(cli: Cli) -> None:
    one = cli("remember", ALLERGY, "--pinned", "--origin", "a walk", "--json").json["id"]
    (found,) = cli("get", one, "--json").json["memories"]
    assert (found["pinned"], found["origin"], found["kind"]) == (True, "a walk", "preference")
    shown = cli("get", one).out
    assert "  preference general  pinned" in shown
    assert "origin: a walk" in shown
    assert cli("update", one, "--kind", "note", "--json").json["pinned"] is True
    assert cli("update", one, "--no-pinned", "--json").json["pinned"] is False
    assert cli("timeline", "--json").json["entries"][0]["pinned"] is False
