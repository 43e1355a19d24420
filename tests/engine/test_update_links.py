"""Updates between memories: found when they are written, given by the caller, undone, and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engines import NOW, make_engines
from nacre import Nacre, NewMemory, NotFound
from nacre.errors import StoreFull
from nacre.types.memory import Update
from stores import ALL_STORES

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "Chamber choir rehearses Wednesdays 19:30 in the parish hall."
NEW = "The chamber choir rehearses in room 2.14 instead of the parish hall."
Make = Callable[..., Nacre]


@pytest.fixture(params=ALL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:
        yield partial(made, extract=True)


def on(day: int, text: str, **fields: Any) -> NewMemory:
    return NewMemory(text=text, created=START + timedelta(days=day), **fields)


def links(memory: Nacre, memory_id: str) -> list[tuple[str, ...]]:
    return [tuple(each) for each in memory.get(memory_id).updates]


LINKED = [("m1", "m0", "instead of")]


def test_a_text_with_a_cue_updates_what_it_is_about(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW))
    assert links(memory, "m0") == links(memory, "m1") == LINKED


def test_without_a_cue_nothing_is_linked(make: Make) -> None:
    memory = make(on(1, OLD), on(9, "The chamber choir rehearses in room 2.14, near the parish hall."))
    assert links(memory, "m0") == []


def test_the_order_of_writing_does_not_matter(make: Make) -> None:
    assert links(make(on(9, NEW), on(1, OLD)), "m0") == [("m0", "m1", "instead of")]
    memory = make()
    memory.remember_many([on(9, NEW), on(1, OLD)])
    assert links(memory, "m0") == [("m0", "m1", "instead of")]
    memory = make(on(9, OLD), on(1, NEW))
    assert links(memory, "m0") == []


def test_what_happened_counts_before_what_was_written(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW, happened=START))
    assert links(memory, "m0") == []
    memory.update("m1", happened=START + timedelta(days=20))
    assert links(memory, "m0") == LINKED


def test_spaces_do_not_update_each_other(make: Make) -> None:
    memory = make(on(1, OLD, space="other"), on(9, NEW))
    assert links(memory, "m0") == []


def test_a_changed_text_is_judged_anew_and_given_links_stay(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW), on(2, "Tickets are sold by Ada."))
    memory.remember(on(20, "Bob sells them.", supersedes="m2"))
    memory.update("m3", text="Bob and Eve sell them.")
    assert links(memory, "m2") == [("m3", "m2", "")]
    memory.update("m1", text="The chamber choir has a new conductor.")
    assert links(memory, "m0") == []
    memory.update("m1", text=NEW)
    assert links(memory, "m0") == LINKED
    memory.update("m0", text="Chamber choir rehearses on Wednesdays at 19:30 in the parish hall, side door.")
    assert links(memory, "m0") == LINKED
    memory.update("m0", text="Tea is in the kitchen.")
    assert links(memory, "m0") == []


def test_a_disk_that_is_full_when_links_are_written_does_not_undo_the_write(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The text is stored by then. An error would say that nothing was written."""
    memory = make(on(1, OLD), on(2, "The orchard is watered on Mondays."))

    def full(*_: object) -> None:
        raise StoreFull("store: no room left")

    for verb in ("link_updates", "unlink_updates"):
        monkeypatch.setattr(memory._store, verb, full)
    added = memory.remember(on(9, NEW)).id
    assert memory.update("m1", text="The orchard is watered on Tuesdays now, not on Mondays.").id == "m1"
    assert [each.text for each in memory.get([added, "m1"])] == [
        NEW,
        "The orchard is watered on Tuesdays now, not on Mondays.",
    ]
    assert caplog.text.count("stored, but not linked") == 2


def test_what_is_embedded_later_is_linked_then(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW), defer_embeddings=True)
    assert links(memory, "m0") == []
    list(memory.reembed())
    assert links(memory, "m0") == LINKED


def test_recognition_can_be_switched_off(make: Make) -> None:
    assert links(make(on(1, OLD), on(9, NEW, extract=False)), "m0") == []
    memory = make(on(1, OLD), on(9, NEW), extract=False)
    assert (links(memory, "m0"), memory.conflicts()) == ([], [])
    memory.remember("Elsewhere.", supersedes="m0")
    assert links(memory, "m0") == [("m2", "m0", "")]


def test_without_an_embedder_nothing_is_found(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW), embedder=None)
    assert links(memory, "m0") == []


def test_a_link_can_be_undone(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW))
    assert memory.unlink("m1", "m0")
    assert links(memory, "m0") == []
    assert not memory.unlink("m1", "m0")
    with pytest.raises(NotFound):
        memory.unlink("m1", "x")


def test_a_forgotten_memory_updates_nothing(make: Make) -> None:
    memory = make(on(1, OLD), on(9, NEW))
    memory.forget("m1")
    assert links(memory, "m0") == []
    memory.restore("m1")
    assert links(memory, "m0") == LINKED


# ---------------------------------------------------------------- given by the caller


def test_what_a_memory_supersedes_can_be_given(make: Make) -> None:
    memory = make("Ada sells tickets.", "Tickets cost 5.", NewMemory(text="Bob does.", supersedes=("m0", "m1")))
    assert links(memory, "m2") == [("m2", "m0", ""), ("m2", "m1", "")]
    memory.remember("Eve does.")
    assert memory.remember("Eve does.", supersedes="m2").duplicate
    assert links(memory, "m3") == [("m3", "m2", "")]


@pytest.mark.parametrize("space", ["default", "other"])
def test_it_has_to_be_a_live_memory_of_the_same_space(make: Make, space: str) -> None:
    memory = make("Ada sells tickets.", NewMemory(text="Bob.", space="other"))
    memory.forget("m0")
    with pytest.raises(NotFound) as caught:
        memory.remember("Eve does.", space=space, supersedes=["m0", "m1", "x"])
    assert caught.value.ids == (("m0", "m1", "x") if space == "default" else ("m0", "x"))
    assert not memory.search("Eve").hits


# ---------------------------------------------------------------- what is undecided


def test_what_may_be_an_update_is_listed_with_both_texts(make: Make) -> None:
    old = "The cellar of the handball club: cups, nets and twelve old jerseys; Ines has the key, ask her before Friday."
    new = "Handball: Ines bought fresh jerseys at the market instead, ask Tom."
    memory = make(on(1, old), on(9, new))
    assert links(memory, "m0") == []
    (found,) = memory.conflicts()
    assert (found.subject, found.predicate, found.beliefs) == ("Handball Ines jerseys ask", "instead", ())
    assert [tuple(each) for each in found.memories] == [
        ("m0", old, START + timedelta(days=1)),
        ("m1", new, START + timedelta(days=9)),
    ]
    memory.remember(new, supersedes="m0")
    assert memory.conflicts() == []
    memory.unlink("m1", "m0")
    assert memory.conflicts() == [found]
    cups = memory.remember("Cups are blue.", supersedes="m0").id
    assert memory.get("m0").updates == (Update(cups, "m0"),)
    assert NOW > START
