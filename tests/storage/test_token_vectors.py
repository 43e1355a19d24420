"""Token vectors in the stores: which passages are given, what a change of the text or of the model does to them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.errors import StoreError
from nacre.ids import content_hash
from nacre.interfaces import Store
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import SqliteStore
from nacre.types.memory import Entry, Memory, Passages, Replacement, Span, Tokens
from nacre.types.search import Filter
from nacre.types.tokens import TOKEN_PASSAGES_MAX
from stores import ALL_STORES, REAL_KINDS, Stores

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
MODEL, TOKENS, OTHER = "letters/1", "tokens/1", "tokens/2"
EAST = np.array([1, 0], np.float32)


@pytest.fixture(params=ALL_STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Stores(request.param, tmp_path) as stores:
        place = stores.place()
        yield stores.open(place)
        stores.check_vectors(place)


def passages(angles: Sequence[float], *, tokens: bool = True, mark: str = "") -> Passages:
    """One passage for each angle to EAST, in degrees; its token vectors say its place."""
    radians = np.radians(np.asarray(angles, np.float32))
    vectors = np.stack([np.cos(radians), np.sin(radians)], axis=1)
    blobs = tuple(f"{mark}{place}".encode() for place in range(len(angles))) if tokens else None
    return Passages(tuple(Span(place, place + 1) for place in range(len(angles))), vectors, blobs)


def entry(memory_id: str, embedded: Passages | None, text: str | None = None) -> Entry:
    text = memory_id if text is None else text
    memory = Memory(
        id=memory_id, space="default", kind="note", namespace="general", text=text, summary=None, tags=(),
        source=None, session=None, position=None, metadata={}, importance=0.5, created=NOW, updated=NOW,
    )  # fmt: skip
    return Entry(memory, content_hash(text), Tokens((text,), (), 1), embedded)


def read(store: Store, *ids: str, model: str = TOKENS, most: int = 100) -> dict[str, Any]:
    return store.token_vectors(ids, model, EAST, most)


def test_the_nearest_passages_are_given_in_the_order_of_the_text(store: Store) -> None:
    store.add([entry("a", passages([80, 10, 60, 10, 0])), entry("b", passages([90]))], MODEL, TOKENS)
    assert read(store, "a", "b", "never", "a", most=2) == {"a": ((1, b"1"), (4, b"4")), "b": ((0, b"0"),)}
    assert read(store, "a", most=3) == {"a": ((1, b"1"), (3, b"3"), (4, b"4"))}
    assert [place for place, _ in read(store, "a")["a"]] == [0, 1, 2, 3, 4]
    assert read(store, "a", model=OTHER) == {}
    assert read(store) == {}


def test_a_long_text_has_token_vectors_of_its_first_passages(store: Store) -> None:
    store.add([entry("long", passages([90.0] * 70 + [0.0]))], MODEL, TOKENS)
    assert [place for place, _ in read(store, "long")["long"]] == list(range(TOKEN_PASSAGES_MAX))
    assert read(store, "long", most=2) == {"long": ((0, b"0"), (1, b"1"))}  # the nearest one has none
    assert store.stats().token_bytes == sum(len(str(place)) for place in range(TOKEN_PASSAGES_MAX))
    assert store.stats().passages == 71


def test_a_passage_without_kept_tokens(store: Store) -> None:
    store.add([entry("dots", replace(passages([0]), tokens=(b"",)))], MODEL, TOKENS)
    assert read(store, "dots") == {"dots": ((0, b""),)}
    assert store.pending_tokens_count(None) == 0


def test_forgotten_memories_keep_theirs_and_purged_ones_do_not(store: Store) -> None:
    store.add([entry("a", passages([0, 1])), entry("b", passages([0]))], MODEL, TOKENS)
    store.forget(["a"], NOW)
    assert read(store, "a", "b").keys() == {"b"}
    assert store.stats().token_bytes == 3
    store.restore(["a"], NOW)
    assert read(store, "a", most=1) == {"a": ((0, b"0"),)}
    assert len(read(store, "a")["a"]) == 2
    store.purge(["a"], NOW)
    assert read(store, "a", "b").keys() == {"b"}
    assert store.stats().token_bytes == 1


def test_replacing_a_memory(store: Store) -> None:
    first = entry("a", passages([0]))
    store.add([first], MODEL, TOKENS)
    importance = replace(first, memory=replace(first.memory, importance=1.0), passages=None)
    store.replace([Replacement(importance, first.memory)], MODEL, TOKENS)
    assert read(store, "a") == {"a": ((0, b"0"),)}  # the text is unchanged
    changed = entry("a", passages([0, 1], mark="x"), "other text")
    store.replace([Replacement(changed, importance.memory)], MODEL, TOKENS)
    assert read(store, "a") == {"a": ((0, b"x0"), (1, b"x1"))}
    plain = entry("a", passages([0], tokens=False), "third text")
    store.replace([Replacement(plain, changed.memory)], MODEL)
    assert (read(store, "a"), store.pending_tokens(None, 9)) == ({}, [("a", "third text")])
    store.replace([Replacement(entry("a", None, "fourth text"), plain.memory)], MODEL, TOKENS)
    assert (store.pending_tokens_count(None), store.pending_count(None), store.stats().token_bytes) == (0, 1, 0)


def test_the_first_token_vectors_decide_on_their_model(store: Store) -> None:
    store.add([entry("plain", passages([0], tokens=False)), entry("later", None)], MODEL, TOKENS)
    assert store.token_model() is None
    store.add([entry("unnamed", passages([0]))], MODEL)
    assert (store.token_model(), read(store, "unnamed")) == (None, {})
    store.add([entry("a", passages([0]))], MODEL, TOKENS)
    store.add([entry("b", passages([0]))], MODEL, OTHER)  # no error
    assert store.token_model() == TOKENS
    assert read(store, "plain", "later", "unnamed", "a", "b").keys() == {"a"}
    assert [each for each, _ in store.pending_tokens(None, 9)] == ["plain", "unnamed", "b"]
    assert [each for each, _ in store.pending_tokens(None, 2)] == ["plain", "unnamed"]
    assert [store.pending_tokens_count(where) for where in (None, Filter(spaces=["else"]))] == [3, 0]
    store.switch_token_model(OTHER)
    assert (read(store, "a"), read(store, "a", model=OTHER), store.stats().token_bytes) == ({}, {}, 0)
    assert store.pending_tokens_count(None) == 4
    assert store.stats().token_model == OTHER


def test_embedding_adds_what_is_missing_and_nothing_else(store: Store) -> None:
    complete, plain, later = passages([0], mark="old"), passages([5], tokens=False), passages([0], mark="new")
    store.add([entry("a", complete), entry("b", plain), entry("c", None)], MODEL, TOKENS)
    before, revision = store.history("b"), store.sequence()
    texts = {each: each for each in "abc"}
    assert store.embed(dict.fromkeys("abc", later), texts, MODEL, TOKENS) == 2
    assert read(store, *"abc") == {"a": ((0, b"old0"),), "b": ((0, b"new0"),), "c": ((0, b"new0"),)}
    kept = store.vectors("b")
    assert kept is not None
    assert kept[0] == pytest.approx([np.cos(np.radians(5)), np.sin(np.radians(5))], abs=1e-3)  # and not that of 0°
    assert store.history("b") == before
    assert store.sequence() != revision
    assert store.embed(dict.fromkeys("abc", later), texts, MODEL, TOKENS) == 0


def test_embedding_leaves_out_what_does_not_fit(store: Store) -> None:
    store.add([entry("a", passages([0])), entry("b", passages([0], tokens=False)), entry("c", None)], MODEL, TOKENS)
    later = passages([0], mark="new")
    assert store.embed({"b": later}, {"b": "another text"}, MODEL, TOKENS) == 0
    assert store.embed({"b": later, "c": later}, {"b": "b", "c": "c"}, MODEL, OTHER) == 1  # the vectors of c
    assert read(store, *"abc").keys() == {"a"}
    assert [each for each, _ in store.pending_tokens(None, 9)] == ["b", "c"]


def test_passages_that_were_cut_in_another_way_are_written_again(store: Store) -> None:
    store.add([entry("a", passages([0, 0, 90], tokens=False))], MODEL)
    assert store.embed({"a": passages([90, 0])}, {"a": "a"}, MODEL, TOKENS) == 1
    vectors = store.vectors("a")
    assert vectors is not None
    assert len(vectors) == 2
    assert read(store, "a", most=1) == {"a": ((1, b"1"),)}


def test_another_model_of_vectors_ends_the_token_vectors(store: Store) -> None:
    """Its passages may be others."""
    store.add([entry("a", passages([0]))], MODEL, TOKENS)
    store.switch_model("letters/2")
    assert (store.token_model(), store.stats().token_bytes, store.pending_tokens_count(None)) == (None, 0, 0)
    assert store.embed({"a": passages([0])}, {"a": "a"}, "letters/2", OTHER) == 1
    assert read(store, "a", model=OTHER) == {"a": ((0, b"0"),)}


def test_a_write_that_fails_leaves_no_token_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "memories.db")

    def full(*_: object) -> None:
        raise apsw.FullError("disk full")

    monkeypatch.setattr("nacre.storage.sqlite.store.log_events", full)  # the last step of a write
    with pytest.raises(StoreError, match="no room left"):
        store.add([entry("a", passages([0]))], MODEL, TOKENS)
    assert (store.token_model(), store.stats().token_bytes, store.stats().memories) == (None, 0, 0)
    store.close()


ANGLES = st.lists(st.lists(st.sampled_from([0, 15, 30, 60, 90, 180]), min_size=1, max_size=70), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(kind=REAL_KINDS, memories=ANGLES, most=st.sampled_from([1, 2, 3, 5, 64, 100]), forgotten=st.booleans())
def test_stores_give_the_same(kind: str, memories: list[list[int]], most: int, forgotten: bool) -> None:
    entries = [entry(f"m{number}", passages(angles)) for number, angles in enumerate(memories)]
    with tempfile.TemporaryDirectory() as folder, Stores(kind, Path(folder)) as stores:
        found = []
        for each in (stores.open(), MemoryStore()):
            each.add(entries, MODEL, TOKENS)
            if forgotten:  # passages have other keys when they come back
                each.forget(["m0"], NOW)
                each.restore(["m0"], NOW)
            found.append(read(each, *(one.memory.id for one in entries), most=most))
            each.close()
    assert found[0] == found[1]
