"""Memories under keys of their callers, and texts that are said again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.interfaces import Store
from nacre.types.facts import NewEntity, NewFact
from nacre.types.memory import NewMemory, Remembered
from nacre.types.search import Filter, Mode
from nacre.types.secrets import SecretPolicy
from nacre.validation import LIMITS
from stores import Opening

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
LIKES = NewFact(subject="Ada", predicate="likes", object="tea")
KNOWS = NewFact(subject="Ada", predicate="knows", object="Grace", relation=True)


@pytest.fixture
def memory(any_store: Store) -> Iterator[nacre.Nacre]:
    with nacre.Nacre(any_store, Hashing()) as opened:
        yield opened


def texts(found: nacre.SearchResult) -> list[str]:
    return [hit.text for hit in found.hits]


# ---------------------------------------------------------------- keys


def test_remembering_a_key_again_replaces_what_is_there(memory: nacre.Nacre) -> None:
    first = memory.remember(
        "The kettle is green", key="kettle", tags=["kitchen"], metadata={"a": 1}, created=MARCH, session="s", position=3
    )
    again = memory.remember("The kettle is blue", key="kettle", tags=["tea"])
    assert (again.id, again.duplicate) == (first.id, True)
    assert sorted(again.changed) == ["metadata", "position", "session", "tags", "text"]
    (kept,) = memory.get(keys="kettle")
    assert (kept.id, kept.text, kept.tags, kept.metadata) == (first.id, "The kettle is blue", ("tea",), {})
    assert (kept.created, kept.session, kept.position) == (MARCH, None, None)
    assert texts(memory.search("kettle", mode="keyword")) == ["The kettle is blue"]
    assert texts(memory.search("green", mode="keyword")) == []
    actions = [(each.action, each.before.get("text")) for each in memory.history(first.id)]
    assert actions == [("remembered", None), ("updated", "The kettle is green")]


def test_what_is_the_same_is_not_written(memory: nacre.Nacre) -> None:
    new = NewMemory(text="Tea at five", key="tea", tags=["a"], facts=[LIKES], entities=["Ada"], happened=MARCH)
    first = memory.remember(new)
    before = memory._store.sequence()
    assert memory.remember(new) == Remembered(first.id, duplicate=True)
    assert memory._store.sequence() == before


def test_equal_texts_under_different_keys_are_two_memories(memory: nacre.Nacre) -> None:
    one, two, none = (memory.remember("Tea at five", key=key).id for key in ("a", "b", None))
    assert len({one, two}) == 2
    assert none == one  # a text without a key is the oldest that has it
    assert [each.id for each in memory.get(keys=["b", "a"])] == [two, one]
    memory.forget(keys=["a"])
    assert memory.remember("Tea at five").id == two


def test_a_text_without_a_key_stays_beside_one_with_a_key(memory: nacre.Nacre) -> None:
    plain = memory.remember("Tea at five").id
    keyed = memory.remember("Tea at five", key="a").id
    assert plain != keyed
    assert memory.remember("Tea at five").id == plain


def test_a_key_is_that_of_its_space(memory: nacre.Nacre) -> None:
    here, there = memory.remember("Here", key="k").id, memory.remember("There", key="k", space="other").id
    assert [each.id for each in memory.get(keys="k")] == [here]
    assert [each.id for each in memory.get(keys="k", space="other")] == [there]
    memory.forget(keys="k", space="other")
    assert [each.id for each in memory.get(keys="k")] == [here]


def test_missing_keys_are_named(memory: nacre.Nacre) -> None:
    kept = memory.remember("Tea", key="tea").id
    for call in (memory.get, memory.forget, memory.purge):
        with pytest.raises(NotFound, match="no memory with the key 'coffee'"):
            call(keys=["tea", "coffee"])
    found = memory.get(["never"], keys=["tea", "coffee"], missing_ok=True)
    assert ([each.id for each in found], found.missing) == ([kept], ("never", "coffee"))
    assert memory.forget(keys=["coffee", "tea"], missing_ok=True) == ((kept,), ("coffee",))
    with pytest.raises(NotFound):
        memory.get(keys="tea")  # a forgotten memory has no key


def test_a_forgotten_key_is_remembered_as_another_memory(memory: nacre.Nacre) -> None:
    first = memory.remember("Tea", key="tea").id
    memory.forget(first)
    second = memory.remember("Coffee", key="tea")
    assert (second.id != first, second.duplicate) == (True, False)
    with pytest.raises(Conflict, match=f"memory {second.id} has the key 'tea'"):
        memory.restore(first)


def test_a_key_can_be_changed_and_taken_away(memory: nacre.Nacre) -> None:
    one, two = memory.remember("Tea", key="a").id, memory.remember("Coffee", key="b").id
    with pytest.raises(Conflict, match=f"memory {two} has the key 'b'"):
        memory.update(one, key="b")
    assert memory.update(one, key="c").key == "c"
    assert [each.id for each in memory.get(keys="c")] == [one]
    memory.update(one, key=None)
    assert memory.remember("Tea").id == one
    assert [event.before.get("key") for event in memory.history(one)] == [None, "a", "c"]


@pytest.mark.parametrize("key", ["", "  ", "k" * 513, "a\0b", "half \ud800", 3])
def test_a_key_that_cannot_be_one(memory: nacre.Nacre, key: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.remember("Tea", key=key)  # type: ignore[arg-type]
    assert refused.value.field == "key"
    assert memory.stats().memories == 0


@pytest.mark.parametrize("policy", ["refuse", "redact"])
def test_a_key_with_a_secret_is_refused(tmp_path: Path, policy: SecretPolicy) -> None:
    with nacre.open(tmp_path / "m.db", embedder=None, secrets=policy) as memory:
        for key in ("<private>x</private>", "https://ada:correct-horse-battery@example.com/x"):
            with pytest.raises(InvalidInput, match=r"^key: has a"):
                memory.remember("Tea", key=key)


def test_a_batch_with_the_same_key_ends_with_the_last(memory: nacre.Nacre) -> None:
    receipts = memory.remember_many(NewMemory(text=text, key="k") for text in ("one", "two", "three", "three"))
    assert len({each.id for each in receipts}) == 1
    assert [each.changed for each in receipts] == [(), ("text",), ("text",), ()]
    assert memory.get(receipts[0].id)[0].text == "three"
    assert [each.before.get("text") for each in memory.history(receipts[0].id)] == [None, "one", "two"]
    assert texts(memory.search("three two one", mode="semantic", limit=5)) == ["three"]


def test_many_batches_with_the_same_keys(tmp_path: Path) -> None:
    """A batch is prepared while the one before it, with the same keys, is still being written."""
    with nacre.open(tmp_path / "m.db", embedder=Hashing()) as memory:
        items = (NewMemory(text=f"turn {number} of {number % 700}", key=f"k{number % 700}") for number in range(2_100))
        receipts = memory.remember_many(items)
        assert memory.stats().memories == 700
        assert memory.stats().pending == 0
        assert {each.text for each in memory.every()} == {f"turn {n} of {n % 700}" for n in range(1_400, 2_100)}
        assert sum(each.changed == ("text",) for each in receipts) == 1_400
        assert [hit.text for hit in memory.search("turn 2099 of 699", limit=1).hits] == ["turn 2099 of 699"]


def test_facts_and_entities_follow_the_text_of_a_key(memory: nacre.Nacre) -> None:
    kept = memory.remember("Ada likes tea", key="k", facts=[LIKES], entities=[NewEntity(name="Ada")], extract=False).id
    own = NewFact(subject="Ada", predicate="lives in", object="London")
    memory.add_facts(kept, [own])
    again = memory.remember("Ada likes tea", key="k", facts=[LIKES, KNOWS], entities=["Ada", "Acme"], extract=False)
    assert again.changed == ("facts", "entities")
    assert {each.fact.object for each in memory.facts(memory_id=kept)} == {"tea", "London", "Grace"}
    assert {each.name for each in memory.get(kept, entities=True).entities[kept]} == {"Ada", "Grace", "Acme"}
    changed = memory.remember("Ada knows Grace", key="k", facts=[KNOWS], extract=False)
    assert changed.changed == ("text", "facts")
    assert {each.fact.object for each in memory.facts(memory_id=kept)} == {"Grace"}


@pytest.mark.parametrize(
    ("prefixes", "found"),
    [(["docs/"], {"a", "b"}), (["docs/b", "notes"], {"b", "c"}), (["DOCS/"], set()), (["docs/%"], set())],
)
def test_the_keys_of_a_filter_begin_so(memory: nacre.Nacre, prefixes: list[str], found: set[str]) -> None:
    memory.remember_many(
        [
            NewMemory(text="a", key="docs/a.md"),
            NewMemory(text="b", key="docs/b.md"),
            NewMemory(text="c", key="notes"),
            NewMemory(text="docs/"),
        ]
    )
    assert {each.text for each in memory.every(Filter(key_prefixes=prefixes))} == found


@pytest.mark.slow
def test_a_filter_may_have_as_many_keys_and_patterns_as_are_allowed(memory: nacre.Nacre) -> None:
    memory.remember_many([NewMemory(text=f"tide {at}", key=f"docs/{at}/", source=f"file {at}") for at in range(5)])
    most = LIMITS.filter_values_max
    for where in (
        Filter(key_prefixes=[f"docs/{at}/" for at in range(1, most + 1)]),
        Filter(sources=[f"*ile {at}" for at in range(1, most + 1)]),
    ):
        wanted = {f"tide {at}" for at in range(1, 5)}
        assert {each.text for each in memory.every(where)} == wanted
        assert {entry.summary for entry in memory.timeline(where=where).entries} == wanted
        assert memory.facets(where=where).total == 4
        for mode in get_args(Mode):
            assert set(texts(memory.search("tide", mode=mode, where=where))) == wanted


# ---------------------------------------------------------------- a known text without a key


def test_a_known_text_gains_what_is_new(memory: nacre.Nacre) -> None:
    first = memory.remember("Deploy on Fridays", tags=["ops"], metadata={"a": 1, "b": 1}, session="s", position=1)
    again = memory.remember(
        "Deploy on Fridays",
        tags=["ops", "rule"],
        metadata={"b": 2, "c": None},
        session="t",
        position=7,
        summary="Fridays",
        kind="instruction",
        namespace="config",
        pinned=True,
        importance=0.9,
        source="wiki",
        happened=MARCH,
        facts=[LIKES],
    )
    assert (again.id, again.duplicate) == (first.id, True)
    assert set(again.changed) == {
        "tags", "metadata", "session", "position", "summary", "kind", "namespace", "pinned", "importance", "source",
        "happened", "facts",
    }  # fmt: skip
    (kept,) = memory.get(first.id)
    assert (kept.tags, kept.metadata) == (("ops", "rule"), {"a": 1, "b": 2, "c": None})
    assert (kept.session, kept.position, kept.kind, kept.importance) == ("t", 7, "instruction", 0.9)
    updated = next(each for each in memory.history(first.id) if each.action == "updated")
    assert updated.before["metadata"] == {"a": 1, "b": 1}
    assert updated.before["session"] == "s"
    assert texts(memory.search("rule", mode="keyword")) == ["Deploy on Fridays"]  # a tag that it has now


def test_a_known_text_keeps_what_is_not_said_again(memory: nacre.Nacre) -> None:
    given = NewMemory(
        text="Deploy on Fridays", kind="instruction", namespace="config", summary="Fridays", source="wiki",
        tags=["ops"], session="s", position=1, metadata={"a": 1}, importance=0.9, pinned=True, happened=MARCH,
    )  # fmt: skip
    first = memory.remember(given)
    assert memory.remember("Deploy on Fridays") == Remembered(first.id, duplicate=True)
    older = memory.remember("Deploy on Fridays", session="earlier", position=9, created=MARCH)
    assert older.changed == ()  # its session is not the later one


def test_what_would_be_too_much_is_left_out_with_a_note(memory: nacre.Nacre) -> None:
    memory.remember("Tea", tags=[f"t{number}" for number in range(100)], metadata={"a": "x" * 60_000})
    again = memory.remember("Tea", tags=["new"], metadata={"b": "y" * 60_000}, source="wiki")
    assert again.changed == ("source",)
    assert [note.split(":")[0] for note in again.notes] == ["tags", "metadata"]


# ---------------------------------------------------------------- expiry is said again


def test_the_later_expiry_counts(memory: nacre.Nacre) -> None:
    day = timedelta(days=1)
    kept = memory.remember("Tea", expires=2 * day).id
    first = memory.get(kept)[0].expires
    assert memory.remember("Tea", expires=day).changed == ()
    assert memory.get(kept)[0].expires == first
    assert memory.remember("Tea", expires=3 * day).changed == ("expires",)
    assert memory.remember("Tea").changed == ("expires",)  # it is wanted for good now
    assert memory.get(kept)[0].expires is None


def test_a_text_that_its_key_replaces_in_the_same_batch(memory: nacre.Nacre) -> None:
    known = memory.remember("port 1", key="port").id
    """As if they had been remembered one by one: after that the text is another memory."""
    said = [NewMemory(text="port 2", key="port"), NewMemory(text="port 1", tags=["x"]), NewMemory(text="port 1")]
    by_key, by_text, again = memory.remember_many(said)
    assert (by_key.id, by_key.changed) == (known, ("text",))
    assert (by_text.duplicate, again) == (False, Remembered(by_text.id, duplicate=True))
    assert [(each.text, each.tags) for each in memory.get([known, by_text.id])] == [("port 2", ()), ("port 1", ("x",))]
    assert {hit.text for hit in memory.search("port", mode="keyword").hits} == {"port 1", "port 2"}


def test_a_text_that_another_one_forgets_while_it_is_said_again(open_one: Opening) -> None:
    """It was acknowledged as known, so it must be there afterwards."""
    with open_one(embedder=Hashing()) as memory, open_one() as other:
        known = memory.remember("Tea at five").id
        store = memory._store
        look = store.identified
        looked: list[object] = []

        def late(*arguments: Any) -> Any:
            found = look(*arguments)
            if not looked:
                other.forget(known)  # after the look, before the write
            looked.append(found)
            return found

        with pytest.MonkeyPatch.context() as racing:
            racing.setattr(store, "identified", late)
            receipt = memory.remember("Tea at five", tags=["x"])
        assert (receipt.id != known, receipt.duplicate) == (True, False)
        assert [hit.id for hit in memory.search("tea").hits] == [receipt.id]


def test_a_fact_that_cannot_be_is_refused_before_anything_is_written(memory: nacre.Nacre) -> None:
    memory.remember("Ada likes tea", key="k")
    before = memory._store.sequence()
    over = NewFact(subject="Ada", predicate="likes", object="tea", valid_to=MARCH)
    for text, key in (("Ada likes coffee", "k"), ("Ada likes tea", None), ("something else", None)):
        refused: list[int] = []
        items = [NewMemory(text=text, key=key, facts=[over], created=MARCH + timedelta(days=1))]
        with pytest.raises(InvalidInput, match="valid_to"):
            memory.remember_many(items)
        assert list(memory.remember_batches(items, refused=lambda number, _, to=refused: to.append(number))) == [[]]  # type: ignore[misc]
        assert refused == [1]
    assert memory._store.sequence() == before
