"""What changed since a number: for those who keep a view of a store up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest

from engines import NOW, make_engines
from nacre import AccessDenied, Change, InvalidInput, Lens, Nacre, NewFact, Outdated
from nacre.types.transfer import Header
from stores import ALL_STORES, Opening

Make: TypeAlias = Callable[..., Nacre]


@pytest.fixture(params=ALL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:
        yield made


def told(changes: tuple[Change, ...]) -> list[str]:
    return [f"{each.kind} {each.action} {each.name}" for each in changes]


def after(memory: Nacre, call: Callable[[], object]) -> list[str]:
    """What a call changes."""
    before = memory.changes()
    call()
    return told(memory.changes(before.seq).changes)


def test_without_a_number_there_is_only_the_number_to_go_on_from(make: Make) -> None:
    memory = make("one", "two")
    page = memory.changes()
    assert (page.changes, page.more) == ((), False)
    assert memory.changes(page.seq) == page
    assert told(memory.changes(0).changes) == ["memory remembered m0", "memory remembered m1"]


def test_every_verb_that_changes_something_is_seen(make: Make) -> None:
    now = [NOW]
    memory = make("Anna likes tea", "Anna likes coffee", clock=lambda: now[0])
    fact = NewFact(subject="Anna", predicate="likes", object="tea")
    assert after(memory, lambda: memory.update("m0", summary="tea")) == ["memory updated m0"]
    assert after(memory, lambda: memory.forget("m0")) == ["memory forgotten m0"]
    assert after(memory, lambda: memory.restore("m0")) == ["memory restored m0"]
    assert after(memory, lambda: memory.add_facts("m0", [fact])) == ["memory facts added m0"]
    (belief,) = memory.facts()
    now[0] += timedelta(days=30)
    assert after(memory, lambda: memory.reinforce(belief.fact.id)) == [f"fact changed {belief.fact.id}"]
    dropped = [f"fact dropped {belief.fact.id}", "memory facts dropped m0"]
    assert after(memory, lambda: memory.drop_facts(belief.fact.id)) == dropped
    assert after(memory, lambda: memory.add_entity("Anna  BELL")) == ["entity changed anna bell"]
    assert after(memory, lambda: memory.drop_entity("anna bell")) == ["entity dropped anna bell"]
    assert after(memory, lambda: memory.save_lens(Lens(name="ops"))) == ["lens changed ops"]
    assert after(memory, lambda: memory.drop_lens("ops")) == ["lens dropped ops"]
    assert after(memory, lambda: memory.remember("Anna likes cake", supersedes="m0")) == ["memory remembered m3"]
    assert after(memory, lambda: memory.unlink("m3", "m0")) == ["update dropped m3 m0"]
    assert after(memory, lambda: memory.purge("m0")) == ["memory purged m0"]
    long = " ".join(f"word{number}" for number in range(60))
    memory.remember_many([long, f"{long}!"])
    assert after(memory, lambda: memory.separate("m4")) == ["memory separated m4"]


def test_what_expires_is_seen(make: Make) -> None:
    now = [NOW]
    memory = make(clock=lambda: now[0])
    memory.remember("soon over", expires=timedelta(minutes=1))
    now[0] += timedelta(hours=1)
    assert after(memory, lambda: memory.search("over")) == ["memory expired m0"]


def test_what_changes_nothing_is_not_seen(open_one: Opening) -> None:
    with open_one(embedder="hashing", extract=False) as memory:
        first = memory.remember("Anna likes tea").id
        before = memory.changes()
        assert memory.search("tea", session="s").hits
        memory.context("tea", session="s")
        memory.get(first, session="s")
        memory.mark(first, "used")
        memory.remember("Anna likes tea")
        memory.create_token()
        assert memory.changes(before.seq) == before


def test_a_page_goes_on_where_the_one_before_ended(make: Make) -> None:
    memory = make(*(f"number {number}" for number in range(5)))
    memory.save_lens(Lens(name="last"))
    first = memory.changes(0, limit=4)
    assert first.more
    assert first.seq == first.changes[-1].seq
    rest = memory.changes(first.seq, limit=4)
    assert not rest.more
    assert told((*first.changes, *rest.changes)) == [
        *(f"memory remembered m{each}" for each in range(5)),
        "lens changed last",
    ]
    assert not memory.changes(first.seq, limit=2).more  # as many as there are


def test_only_the_last_change_of_a_lens_is_listed(make: Make) -> None:
    memory = make()
    for limit in (1, 2, 3):
        memory.save_lens(Lens(name="ops", limit=limit))
    memory.remember("tea")
    assert told(memory.changes(0).changes) == ["lens changed ops", "memory remembered m0"]


def test_other_spaces_are_seen_only_by_name(make: Make) -> None:
    memory = make("here")
    before = memory.changes().seq
    memory.remember("there", space="elsewhere")
    page = memory.changes(before)
    assert page.changes == ()
    assert page.seq == before + 1  # nobody looks at what others changed again
    named = memory.changes(before, spaces=["elsewhere"]).changes
    assert [(each.name, each.space) for each in named] == [("m1", "elsewhere")]
    confined = memory.within("elsewhere")
    assert told(confined.changes(0).changes) == ["memory remembered m1"]
    with pytest.raises(AccessDenied):
        confined.changes(0, spaces=["default"])
    confined.close()


def test_a_number_of_another_store_is_refused(make: Make) -> None:
    memory = make("one")
    with pytest.raises(InvalidInput, match=r"since: is 2, and the last change is 1: this is another store"):
        memory.changes(2)
    for wrong in (-1, 2**63, True):
        with pytest.raises(InvalidInput, match="since: "):
            memory.changes(wrong)


def test_the_number_of_an_export_is_one(make: Make) -> None:
    memory = make("one")
    header = next(iter(memory.export()))
    memory.remember("two")
    assert isinstance(header, Header)
    assert told(memory.changes(header.seq).changes) == ["memory remembered m1"]


def test_what_is_loaded_is_seen(make: Make) -> None:
    one, other = make("one", "two"), make("three")
    one.save_lens(Lens(name="ops"))
    list(other.load(one.export()))
    seen = told(other.changes(1).changes)
    assert "lens changed ops" in seen
    one.purge("m1")
    before = other.changes().seq
    list(other.load(one.export()))
    assert "memory purged m1" in told(other.changes(before).changes)


# ---------------------------------------------------------------- updates of a known version


def test_an_update_of_a_version_that_is_not_the_latest_is_refused(make: Make) -> None:
    memory = make("one")
    known = memory.get("m0")[0].updated
    first = memory.update("m0", unchanged_since=known, text="first")
    with pytest.raises(Outdated, match=r"id: memory m0 has changed: .*; read it again, and update that version"):
        memory.update("m0", unchanged_since=known, text="second")
    assert memory.get("m0")[0].text == "first"
    assert memory.update("m0", unchanged_since=first.updated, text="second").text == "second"
    assert [each.action for each in memory.history("m0")] == ["remembered", "updated", "updated"]


def test_an_update_with_equal_values_changes_nothing(make: Make) -> None:
    """So one that is repeated, because its answer was lost, is made once. JSON's true is not 1."""
    memory = make("one")
    changed = memory.update("m0", tags=["red"], metadata={"n": 1})
    before = memory._store.sequence()
    assert memory.update("m0", tags=["red"], metadata={"n": 1}) == changed
    assert memory._store.sequence() == before
    assert memory.update("m0", metadata={"n": True}).updated > changed.updated
    assert len(memory.history("m0")) == 3


@pytest.mark.parametrize("changed", [True, False])
def test_a_change_between_reading_and_writing_is_noticed(
    make: Make, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    """Another process writes in between. Without `unchanged_since`, the update is made on top of that."""
    memory = make("one")
    known = memory.get("m0")[0].updated
    store = memory._store
    replace = store.replace

    def interrupted(*arguments: object) -> None:
        monkeypatch.setattr(store, "replace", replace)
        memory.update("m0", tags=["other"])
        replace(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "replace", interrupted)
    if changed:
        with pytest.raises(Outdated):
            memory.update("m0", unchanged_since=known, text="mine")
        assert memory.get("m0")[0].text == "one"
    else:
        assert memory.update("m0", text="mine").tags == ("other",)
