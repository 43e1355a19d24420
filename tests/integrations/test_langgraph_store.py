"""LangGraph's store: what its `BaseStore` documents, and what is kept of it as memories."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import nacre
from nacre.errors import InvalidInput
from nacre.integrations import langgraph
from nacre.integrations.langgraph import NacreStore


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[NacreStore]:
    with NacreStore(tmp_path / "agent.db", embedder="hashing", clock=clock) as store:
        yield store


def found(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


# ---------------------------------------------------------------- put, get, delete


def test_an_item_is_kept_under_its_namespace_and_key(store: NacreStore, clock: Clock) -> None:
    put = clock.now
    store.put(("users", "ada"), "prefs", {"theme": "dark", "sizes": [1, 2.5, None, True]})
    item = store.get(("users", "ada"), "prefs")
    assert item is not None
    assert (item.namespace, item.key) == (("users", "ada"), "prefs")
    assert item.value == {"theme": "dark", "sizes": [1, 2.5, None, True]}
    assert item.created_at == item.updated_at == put
    assert store.get(("users", "ada"), "other") is None
    assert store.get(("users",), "prefs") is None
    assert store.get(("users", "ada", "prefs"), "prefs") is None


def test_putting_again_replaces_the_value_and_keeps_the_creation(store: NacreStore, clock: Clock) -> None:
    store.put(("users",), "ada", {"likes": "tea", "age": 36})
    created = clock.now
    clock.passes(5)
    store.put(("users",), "ada", {"likes": "coffee"})
    item = store.get(("users",), "ada")
    assert item is not None
    assert item.value == {"likes": "coffee"}
    assert (item.created_at, item.updated_at) == (created, clock.now)
    (memory,) = store.memory.every()
    assert [event.action for event in store.memory.history(memory.id)] == ["remembered", "updated"]


def test_equal_values_under_different_keys_are_different_items(store: NacreStore) -> None:
    for name in ("a", "b"):
        store.put((name,), "k", {"text": "the same"})
        store.put((name,), "l", {"text": "the same"})
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None
    assert [store.get(("a",), "l"), store.get(("b",), "k")].count(None) == 0
    assert len(store.search((), query="the same")) == 3


def test_deleting_what_is_not_there_does_nothing_and_what_was_deleted_begins_anew(
    store: NacreStore, clock: Clock
) -> None:
    store.delete(("users",), "nobody")
    store.put(("users",), "ada", {"n": 1})
    store.delete(("users",), "ada")
    clock.passes(1)
    store.put(("users",), "ada", {"n": 2})
    item = store.get(("users",), "ada")
    assert item is not None
    assert (item.value, item.created_at) == ({"n": 2}, clock.now)


NAMES = st.text(min_size=1, max_size=12).filter(lambda name: "." not in name and "\0" not in name)
KEYS = st.one_of(
    st.text(st.characters(), max_size=40), st.sampled_from(["", "/", "%2F", "a/b", "a%2Fb", "\0", "\ud800"])
)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(st.characters(), max_size=20)
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=60)
@example(items={(("\x85",), ""): {}, ((" ",), " "): {}})
@given(
    items=st.dictionaries(
        st.tuples(st.lists(NAMES, min_size=1, max_size=3).map(tuple).filter(lambda ns: ns[0] != "langgraph"), KEYS),
        st.dictionaries(st.text(st.characters(), max_size=8), VALUES, max_size=4),
        max_size=6,
    ),
)
def test_any_items_are_read_as_they_were_put(
    items: dict[tuple[tuple[str, ...], str], dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with NacreStore(tmp_path_factory.mktemp("any") / "agent.db", embedder=None, secrets="off") as store:
        store.batch([PutOp(namespace, key, value, index=False) for (namespace, key), value in items.items()])
        read = {(item.namespace, item.key): item.value for item in store.search((), limit=100)}
        assert read == items
        for (namespace, key), value in items.items():
            item = store.get(namespace, key)
            assert item is not None
            assert item.value == value
            below = {each for each in items if each[0][: len(namespace)] == namespace}
            assert {(each.namespace, each.key) for each in store.search(namespace, limit=100)} == below
        assert store.list_namespaces() == sorted({namespace for namespace, _ in items})


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": [value]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"": ""},
        deep(60),
        {"langgraph": {"ttl": 5}},
        {"n": 2**80},
        {"low": -math.inf},
        {"lone": "\ud800", "nul": "\0"},
        {"\ud800": 1},
        {"text": "x" * 70_000},
        {"several": ["word " * 20] * 1_000},
        {"quotes": '"' * 40_000},
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_metadata_cannot_hold_is_kept_exactly_too(store: NacreStore, value: dict[str, Any]) -> None:
    for index in (None, False):
        store.put(("docs",), "one", value, index=index)
        item = store.get(("docs",), "one")
        assert item is not None
        assert item.value == value


def live_keys(store: NacreStore) -> list[str]:
    return [memory.key or "" for memory in store.memory.every()]


def test_a_large_value_is_found_by_its_fields_alone_and_leaves_nothing_behind(tmp_path: Path, clock: Clock) -> None:
    with NacreStore(tmp_path / "a.db", embedder=None, index={"fields": ["title"]}, clock=clock) as store:
        values = [{"title": "harbour", "body": f"tides {number} " * 20_000} for number in range(3)]
        for value in values:
            store.put(("docs",), "large", value, ttl=10)
            item = store.get(("docs",), "large")
            assert item is not None
            assert item.value == value
        pieces = [key for key in live_keys(store) if key.startswith("langgraph-pieces/")]
        assert len(pieces) == -(-len(json.dumps(values[2])) // 30_000)
        assert found(store.search(("docs",), query="harbour")) == ["large"]
        assert found(store.search((), filter={"title": "harbour", "body": {"$gt": "tides 1"}})) == ["large"]
        assert store.search((), query="tides") == store.search((), query="piece of langgraph") == []
        assert store.list_namespaces() == [("docs",)]

        clock.passes(9)
        assert found(store.search(("docs",))) == ["large"]  # and its time begins anew
        clock.passes(9)
        item = store.get(("docs",), "large")
        assert item is not None
        assert item.value == values[2]
        store.put(("docs",), "large", {"title": "small"})
        assert live_keys(store) == ["langgraph/docs/large"]
        store.put(("docs",), "large", values[0])
        store.delete(("docs",), "large")
        assert live_keys(store) == []


def test_a_value_that_was_imported_as_a_text_is_read(store: NacreStore) -> None:
    value = {"body": "x" * 100_000}
    metadata: dict[str, Any] = {"langgraph": {"json": True}}
    store.memory.remember(json.dumps(value), key="langgraph/docs/large", metadata=metadata, extract=False)
    item = store.get(("docs",), "large")
    assert item is not None
    assert item.value == value
    assert found(store.search(("docs",), filter=value)) == ["large"]


@pytest.mark.slow
def test_a_large_value_is_never_read_in_part(tmp_path: Path) -> None:
    values = [{"n": number, "body": [str(number)] * 30_000} for number in range(4)]
    with NacreStore(tmp_path / "a.db", embedder=None) as store, NacreStore(tmp_path / "a.db", embedder=None) as other:
        store.put(("docs",), "large", values[0], index=False)
        done = threading.Event()
        wrong: list[object] = []

        def read() -> None:
            while not done.is_set():
                item = other.get(("docs",), "large")
                listed = next(iter(other.search(("docs",))), None)
                wrong.extend(each for each in (item, listed) if each is None or each.value not in values)

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(12):
            store.put(("docs",), "large", values[number % 4], index=False)
        done.set()
        reader.join()
        assert wrong == []


def test_numbers_keep_their_type(store: NacreStore) -> None:
    store.put(("docs",), "one", {"whole": 1, "real": 1.0, "nan": math.nan})
    item = store.get(("docs",), "one")
    assert item is not None
    assert (type(item.value["whole"]), type(item.value["real"])) == (int, float)
    assert math.isnan(item.value["nan"])


def test_a_long_key_is_kept_and_a_long_namespace_refused(store: NacreStore) -> None:
    keys = ["long " * 200 + end for end in ("a", "b", "/c")]
    for key in keys:
        store.put(("docs",), key, {"key": key}, ttl=5)
    assert [item.value["key"] for key in keys if (item := store.get(("docs",), key))] == keys
    assert sorted(found(store.search(("docs",)))) == sorted(keys)
    store.delete(("docs",), keys[0])
    assert store.get(("docs",), keys[0]) is None
    assert store.list_namespaces() == [("docs",)]
    with pytest.raises(InvalidInput, match="namespace: has 600 characters; at most 4"):
        store.put(("n" * 600,), "k", {"a": 1})


@pytest.mark.parametrize("value", [{"at": datetime.now(UTC)}, {"set": {1}}])
def test_what_is_not_json_is_refused_before_anything_is_written(store: NacreStore, value: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="value: is not JSON"):
        store.batch([PutOp(("docs",), "good", {"a": 1}), PutOp(("docs",), "bad", value)])
    assert store.search(()) == []


def test_namespaces_are_checked_as_documented(store: NacreStore) -> None:
    for namespace in ((), ("a.b",), ("a", ""), ("langgraph", "a")):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})


# ---------------------------------------------------------------- batches


def test_reads_of_a_batch_see_what_was_there_before_it(store: NacreStore) -> None:
    store.put(("docs",), "old", {"n": 1})
    results = store.batch(
        [
            PutOp(("docs",), "new", {"n": 2}),
            GetOp(("docs",), "new"),
            PutOp(("docs",), "old", None),
            GetOp(("docs",), "old"),
            SearchOp(("docs",)),
            ListNamespacesOp(),
            GetOp(("docs",), "old"),
        ]
    )
    put, new, deleted, old, items, namespaces, again = results
    assert (put, new, deleted) == (None, None, None)
    assert old is not None
    assert old == again
    assert [item.key for item in items] == ["old"]  # type: ignore[union-attr]
    assert namespaces == [("docs",)]
    assert found(store.search(("docs",))) == ["new"]


def test_of_several_writes_to_one_item_the_last_counts(store: NacreStore) -> None:
    store.batch([PutOp(("docs",), "one", {"n": number}) for number in range(5)])
    store.batch([PutOp(("docs",), "two", {"n": 1}), PutOp(("docs",), "two", None), PutOp(("docs",), "three", None)])
    store.batch([PutOp(("docs",), "one", None), PutOp(("docs",), "one", {"n": 9})])
    assert [(item.key, item.value) for item in store.search(("docs",))] == [("one", {"n": 9})]


def test_a_batch_may_be_large(store: NacreStore) -> None:
    store.batch([PutOp(("docs",), str(number), {"n": number}, index=False) for number in range(2_500)])
    items = store.batch([GetOp(("docs",), str(number)) for number in range(2_500)])
    assert [item.value["n"] for item in items] == list(range(2_500))  # type: ignore[union-attr]
    store.batch([PutOp(("docs",), str(number), None) for number in range(2_499)])
    assert found(store.search(())) == ["2499"]


def test_an_unknown_operation_is_refused(store: NacreStore) -> None:
    with pytest.raises(InvalidInput, match="str, which is no operation"):
        store.batch(["get"])  # type: ignore[list-item]


FEW_NAMES = st.sampled_from([("a",), ("a", "b"), ("ab",), ("a", "b", "c"), ("b",)])
FEW_KEYS = st.sampled_from(["k", "l", "b", ""])
FEW_VALUES = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 2.5, "red", ["red"], {"z": 1}]), max_size=2)
LISTINGS = st.builds(
    ListNamespacesOp,
    match_conditions=st.none()
    | st.tuples(
        st.builds(
            MatchCondition,
            st.sampled_from(["prefix", "suffix"]),
            st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).map(tuple),
        )
    ),
    max_depth=st.none() | st.integers(1, 3),
    limit=st.integers(1, 4),
    offset=st.integers(0, 2),
)
FEW_FILTERS = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, "red", {"z": 1}, {"$ne": 1}]), max_size=1)
BATCHES = st.one_of(
    st.lists(
        st.tuples(FEW_NAMES, FEW_KEYS, st.none() | FEW_VALUES).map(lambda put: PutOp(*put))
        | st.tuples(FEW_NAMES, FEW_KEYS).map(lambda get: GetOp(*get))
        | st.tuples(st.just(()) | FEW_NAMES, st.none() | FEW_FILTERS).map(lambda search: SearchOp(*search, limit=100)),
        max_size=6,
    ),
    st.lists(LISTINGS, min_size=1, max_size=2),  # by themselves: their store also lists what was only asked for
)


def told(results: list[Any]) -> list[Any]:
    """Results without times, with found items in one order."""
    said: list[Any] = []
    for result in results:
        if isinstance(result, Item):
            said.append((result.namespace, result.key, result.value))
        elif isinstance(result, list) and result and isinstance(result[0], Item):
            said.append(sorted((item.namespace, item.key, repr(item.value)) for item in result))
        else:
            said.append(result)
    return said


@pytest.mark.slow
@settings(max_examples=60)
@given(batches=st.lists(BATCHES, max_size=6))
def test_batches_do_what_they_do_in_the_store_of_langgraph(
    batches: list[list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = InMemoryStore()
    with NacreStore(tmp_path_factory.mktemp("same") / "agent.db", embedder=None) as ours:
        for batch in batches:
            for emptied in [namespace for namespace, items in theirs._data.items() if not items]:
                del theirs._data[emptied]
            assert told(ours.batch(batch)) == told(theirs.batch(batch))


# ---------------------------------------------------------------- search


def test_a_namespace_prefix_is_compared_by_whole_names(store: NacreStore) -> None:
    for namespace in (("a",), ("a", "b"), ("ab",), ("A",), ("a", "b", "c"), ("a*",), ("a/b",)):
        store.put(namespace, "k", {"ns": list(namespace)})
    assert {item.namespace for item in store.search(("a",))} == {("a",), ("a", "b"), ("a", "b", "c")}
    assert {item.namespace for item in store.search(("a", "b"), query="a b c")} == {("a", "b"), ("a", "b", "c")}
    assert len(store.search(())) == 7


def test_without_a_query_the_latest_come_first(store: NacreStore, clock: Clock) -> None:
    for number in range(6):
        store.put(("docs",), str(number), {"n": number})
        clock.passes(1)
    store.put(("docs",), "2", {"n": 22})
    assert found(store.search(("docs",), limit=3)) == ["2", "5", "4"]
    assert found(store.search(("docs",), limit=3, offset=3)) == ["3", "1", "0"]
    assert store.search(("docs",), limit=3, offset=6) == []
    assert all(item.score is None for item in store.search(("docs",)))


def test_a_query_orders_all_items_and_pages_follow_each_other(store: NacreStore) -> None:
    texts = ["a red apple", "a red car", "a green apple", "the blue sea"]
    for number, text in enumerate(texts):
        store.put(("docs",), str(number), {"text": text})
    all_ = store.search(("docs",), query="red apple")
    assert len(all_) == 4
    assert all_[0].key == "0"
    assert all(item.score is not None and 0 <= item.score <= 1 for item in all_)
    pages = [store.search(("docs",), query="red apple", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [item.key for page in pages for item in page] == found(all_)
    assert store.search(("docs",), query="red apple", limit=0) == []
    assert len(store.search(("docs",), query="   ")) == 4


def test_equal_items_are_all_found(store: NacreStore) -> None:
    for number in range(5):
        store.put(("docs",), str(number), {"text": "the very same words"})
    assert len(store.search(("docs",), query="the very same words")) == 5


def test_fields_say_what_an_item_is_found_by(tmp_path: Path) -> None:
    index: Any = {"fields": ["title", "parts[*].text"], "dims": 384}
    with NacreStore(tmp_path / "a.db", index=index, embedder=None) as store:
        value = {"title": "Harbour rules", "parts": [{"text": "moor here"}, {"text": "no anchors"}], "note": "secret"}
        store.put(("docs",), "a", value)
        store.put(("docs",), "b", value, index=["note"])
        store.put(("docs",), "c", {"note": "no field of it is there"})
        assert found(store.search(("docs",), query="harbour anchors")) == ["a"]
        assert found(store.search(("docs",), query="secret")) == ["b"]
        assert len(store.search(("docs",))) == 3


def test_what_is_not_indexed_is_kept_and_found_by_no_query(store: NacreStore) -> None:
    store.put(("docs",), "hidden", {"text": "a red apple"}, index=False)
    store.put(("docs",), "shown", {"text": "a red apple"})
    assert found(store.search(("docs",), query="red apple hidden docs")) == ["shown"]
    assert store.get(("docs",), "hidden") is not None
    assert set(found(store.search(("docs",)))) == {"hidden", "shown"}
    store.put(("docs",), "hidden", {"text": "a red apple"})
    assert set(found(store.search(("docs",), query="red apple"))) == {"hidden", "shown"}


# ---------------------------------------------------------------- filters

ITEMS: dict[str, dict[str, Any]] = {
    "a": {"color": "red", "score": 4.5, "tags": ["x", "y"], "in": {"deep": {"n": 1}, "at": "2026-01-05"}, "on": True},
    "b": {"color": "green", "score": 4, "tags": ["x"], "in": {"deep": {"n": 2}, "at": "2026-02-05"}, "on": False},
    "c": {"color": "red", "score": "4", "tags": [], "on": 1},
    "d": {"color": None},
}


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({}, "abcd"),
        ({"color": "red"}, "ac"),
        ({"color": {"$eq": "red"}}, "ac"),
        ({"color": {"$ne": "red"}}, "bd"),
        ({"color": None}, "d"),
        ({"score": 4.0}, "b"),
        ({"score": {"$gt": 4}}, "a"),
        ({"score": {"$gte": 4}}, "ab"),
        ({"score": {"$lt": 4.5}}, "b"),
        ({"score": {"$lte": 4.5, "$ne": 4.5}}, "b"),
        ({"score": {"$gt": "3"}}, "c"),
        ({"score": {"$gt": 4}, "color": "green"}, ""),
        ({"on": True}, "a"),
        ({"on": 1}, "c"),
        ({"tags": ["x", "y"]}, "a"),
        ({"tags": ("x",)}, "b"),
        ({"tags": {"$ne": []}}, "abd"),
        ({"in": {"deep": {"n": 1}}}, "a"),
        ({"in": {"deep": {"n": {"$gte": 1}}}}, "ab"),
        ({"in": {"at": {"$lt": "2026-02"}}}, "a"),
        ({"in": {"$eq": {"deep": {"n": 2}, "at": "2026-02-05"}}}, "b"),
        ({"missing": {"$ne": 1}}, "abcd"),
        ({"missing": {"$gt": 1}}, ""),
        ({"score": {"$gt": -math.inf}}, "ab"),
        ({"score": math.nan}, ""),
    ],
)
def test_filters_compare_as_json_does(store: NacreStore, wanted: dict[str, Any], keys: str) -> None:
    for key, value in ITEMS.items():
        store.put(("docs",), key, value)
    assert "".join(sorted(found(store.search(("docs",), filter=wanted)))) == keys
    assert "".join(sorted(found(store.search(("docs",), filter=wanted, query="red green color")))) == keys


def test_an_unknown_operator_is_an_error_even_in_an_empty_store(store: NacreStore) -> None:
    with pytest.raises(InvalidInput, match=r"\$in; allowed: \$eq"):
        store.search((), filter={"a": {"b": {"$in": [1]}}})


@pytest.mark.slow
def test_a_filter_comes_before_the_cut(store: NacreStore) -> None:
    """The items that match are the worst answers, and more items than a search gives are better."""
    many = [PutOp(("docs",), f"near{number}", {"text": f"red apple {number}"}) for number in range(1_300)]
    few = [
        PutOp(("docs",), f"far{number}", {"text": f"a boat in the harbour {number}", "kept": number})
        for number in range(8)
    ]
    store.batch([*many, *few])
    everything = store.search(("docs",), query="red apple", filter={"kept": {"$gte": 2}}, limit=20)
    assert sorted(found(everything)) == [f"far{number}" for number in range(2, 8)]
    page = store.search(("docs",), query="red apple", filter={"kept": {"$gte": 2}}, limit=2, offset=2)
    assert found(page) == found(everything)[2:4]


# ---------------------------------------------------------------- namespaces

NAMESPACES = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, NAMESPACES),
        ({"prefix": ("a", "b")}, NAMESPACES[:4]),
        ({"suffix": ("f",)}, NAMESPACES[3:]),
        ({"prefix": ("a",), "suffix": ("f",)}, NAMESPACES[3:5]),
        ({"prefix": ("a", "*", "f")}, NAMESPACES[3:5]),
        ({"suffix": ("*", "f")}, NAMESPACES[3:]),
        ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
        ({"max_depth": 1}, [("a",), ("b",)]),
        ({"limit": 2, "offset": 1}, NAMESPACES[1:3]),
        ({"prefix": ("a", "b", "c", "x")}, []),
        ({"prefix": ("nowhere",)}, []),
    ],
)
def test_namespaces_are_listed(store: NacreStore, options: dict[str, Any], expected: list[tuple[str, ...]]) -> None:
    for namespace in NAMESPACES:
        store.put(namespace, "k", {"n": 1})
        store.put(namespace, "l", {"n": 1})
    assert store.list_namespaces(**options) == expected


def test_an_emptied_namespace_is_gone_and_an_unknown_match_refused(store: NacreStore) -> None:
    store.put(("a",), "k", {})
    store.delete(("a",), "k")
    assert store.list_namespaces() == []
    condition = MatchCondition("middle", ("a",))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="middle"):
        store.batch([ListNamespacesOp(match_conditions=(condition,))])


# ---------------------------------------------------------------- time to live


def ttl_store(path: Path, clock: Clock, **config: Any) -> NacreStore:
    return NacreStore(path, embedder="hashing", clock=clock, ttl=config)  # type: ignore[arg-type]


def test_an_item_is_gone_once_its_time_is_over(store: NacreStore, clock: Clock) -> None:
    assert store.supports_ttl
    store.put(("docs",), "short", {"text": "red"}, ttl=10)
    store.put(("docs",), "long", {"text": "red"})
    clock.passes(9.99)
    assert store.get(("docs",), "short", refresh_ttl=False) is not None
    clock.passes(0.02)
    assert store.get(("docs",), "short") is None
    assert found(store.search(("docs",))) == found(store.search(("docs",), query="red")) == ["long"]
    store.put(("docs",), "short", {"text": "blue"})
    item = store.get(("docs",), "short")
    assert item is not None
    assert item.created_at == clock.now


def test_reading_begins_the_time_anew(tmp_path: Path, clock: Clock) -> None:
    with ttl_store(tmp_path / "a.db", clock, default_ttl=10) as store:
        store.put(("docs",), "a", {"text": "red"})
        put = clock.now
        for read in (
            lambda: store.get(("docs",), "a"),
            lambda: store.search(("docs",)),
            lambda: store.search(("docs",), query="red"),
        ):
            clock.passes(9)
            assert read()
        item = store.get(("docs",), "a", refresh_ttl=False)
        assert item is not None
        assert (item.created_at, item.updated_at) == (put, put)
        clock.passes(9)
        assert store.get(("docs",), "a", refresh_ttl=False) is not None
        clock.passes(2)
        assert store.get(("docs",), "a") is None


def test_a_store_may_not_refresh_on_reading_and_a_put_may_differ_from_the_default(tmp_path: Path, clock: Clock) -> None:
    with ttl_store(tmp_path / "a.db", clock, default_ttl=10, refresh_on_read=False) as store:
        store.put(("docs",), "default", {})
        store.put(("docs",), "never", {}, ttl=None)
        store.put(("docs",), "longer", {}, ttl=20)
        clock.passes(6)
        assert len(store.search(("docs",))) == 3
        clock.passes(6)
        assert store.get(("docs",), "longer", refresh_ttl=True) is not None
        assert set(found(store.search(("docs",)))) == {"never", "longer"}
        clock.passes(15)
        assert set(found(store.search(("docs",)))) == {"never", "longer"}
        clock.passes(10)
        assert found(store.search(("docs",))) == ["never"]


def test_many_reads_write_little(store: NacreStore, clock: Clock) -> None:
    store.put(("docs",), "a", {}, ttl=60)
    for _ in range(100):
        clock.passes(0.1)
        store.get(("docs",), "a")
    (memory,) = store.memory.every()
    assert len(store.memory.history(memory.id)) < 20


@pytest.mark.parametrize("ttl", [0, -1, 1e300, math.nan])
def test_a_time_to_live_must_lead_to_a_time_to_come(store: NacreStore, ttl: float) -> None:
    with pytest.raises(InvalidInput, match="ttl"):
        store.put(("docs",), "a", {}, ttl=ttl)


# ---------------------------------------------------------------- several threads and loops


def test_the_asynchronous_methods_do_the_same(store: NacreStore) -> None:
    async def use(name: str) -> None:
        await asyncio.gather(*(store.aput(("docs", name), str(number), {"n": number}) for number in range(20)))
        items = await asyncio.gather(*(store.aget(("docs", name), str(number)) for number in range(20)))
        assert [item.value["n"] for item in items if item] == list(range(20))
        assert len(await store.asearch(("docs", name), query="n 7", limit=50)) == 20
        assert ("docs", name) in await store.alist_namespaces(prefix=("docs",))
        await store.adelete(("docs", name), "7")
        assert await store.aget(("docs", name), "7") is None

    threads = [threading.Thread(target=lambda name=name: asyncio.run(use(name))) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(("docs",), limit=100)) == 38


@pytest.mark.slow
def test_threads_that_write_one_item_leave_one_of_its_values(store: NacreStore) -> None:
    errors: list[BaseException] = []

    def write(start: int) -> None:
        try:
            for number in range(start, start + 15):
                store.put(("docs",), "one", {"n": number}, ttl=60)
                store.get(("docs",), "one")
                if number % 5 == 0:
                    store.delete(("docs",), "one")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store.put(("docs",), "one", {"n": -1})
    assert [item.value for item in store.search(("docs",))] == [{"n": -1}]


class State(TypedDict):
    user: str
    said: str
    known: list[str]


@pytest.mark.slow
def test_runs_of_an_asynchronous_graph_share_the_store_and_keep_users_apart(store: NacreStore) -> None:
    async def recall(state: State, *, store: BaseStore) -> dict[str, list[str]]:
        items = await store.asearch((state["user"], "said"), query=state["said"], limit=50)
        return {"known": [item.value["text"] for item in items]}

    async def remember(state: State, *, store: BaseStore) -> None:
        await store.aput((state["user"], "said"), state["said"], {"text": state["said"]})

    graph = StateGraph(State)
    graph.add_sequence([("recall", recall), ("remember", remember)])
    graph.add_edge(START, "recall")
    agent = graph.compile(store=store)

    def asked(said: str) -> list[State]:
        return [
            {"user": user, "said": f"{user} says {said} {number}", "known": []} for user in "ab" for number in range(10)
        ]

    asyncio.run(agent.abatch(asked("first")))
    answers = asyncio.run(agent.abatch(asked("second")))
    for answer in answers:
        of_user = {f"{answer['user']} says first {number}" for number in range(10)}
        assert of_user <= set(answer["known"])
        assert all(text.startswith(answer["user"]) for text in answer["known"])
    assert len(store.search((), limit=100)) == 40


# ---------------------------------------------------------------- as memories


def test_items_are_memories_like_others(tmp_path: Path) -> None:
    with nacre.open(tmp_path / "agent.db", embedder="hashing") as memory:
        memory.remember("A note of another door")
        with NacreStore(memory) as store:
            store.put(("users", "ada"), "food", {"likes": "red apples", "since": 2024})
            store.put(("users", "ada"), "blob", {"data": "..."}, index=False)
            assert len(store.search(())) == 2
        (hit,) = memory.search("apples", mode="keyword").hits
        assert hit.text == "likes: red apples\nsince: 2024"
        assert hit.memory.metadata == {"likes": "red apples", "since": 2024}
        assert (hit.memory.key, hit.memory.namespace) == ("langgraph/users/ada/food", "users/ada")
        assert [each.text for each in memory.every(nacre.Filter(tags_any=("unindexed",)))] == ["users/ada/blob"]
    with NacreStore(tmp_path / "agent.db", embedder="hashing") as store:
        assert len(store.search(("users",))) == 2


def test_an_open_engine_takes_no_options(store: NacreStore) -> None:
    with pytest.raises(TypeError, match="embedder"):
        NacreStore(store.memory, embedder="hashing")


def test_embeddings_of_the_caller_are_used(tmp_path: Path) -> None:
    asked: list[str] = []

    def letters(texts: Any) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0 + text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    index: Any = {"dims": 26, "embed": letters, "fields": ["text"]}
    with NacreStore(tmp_path / "a.db", index=index, mode="semantic") as store:
        store.put(("docs",), "night", {"text": "silent night"})
        store.put(("docs",), "jazz", {"text": "jazz quiz buzz"})
        assert found(store.search(("docs",), query="listen"))[0] == "night"
    assert {"silent night", "listen"} <= set(asked)
    with pytest.raises(nacre.EmbedderMismatch):
        NacreStore(tmp_path / "a.db")


def test_asynchronous_embeddings_are_refused(tmp_path: Path) -> None:
    async def embed(texts: Any) -> list[list[float]]:
        return [[1.0] for _ in texts]

    with pytest.raises(InvalidInput, match=r"index\.embed: is asynchronous"):
        NacreStore(tmp_path / "a.db", index={"dims": 1, "embed": embed})


# ---------------------------------------------------------------- private parts and secrets


def test_private_parts_and_secrets_leave_json_whole(tmp_path: Path) -> None:
    value: dict[str, Any] = {
        "langgraph": "a value that is kept as JSON",
        "note": "open <private>closed</private> end",
        "password": "hunter2-Xk39vQz81",
        "n": 1,
    }
    with NacreStore(tmp_path / "a.db", embedder=None, secrets="redact") as store:
        store.put(("docs",), "a", value)
        item = store.get(("docs",), "a")
        assert item is not None
        assert set(item.value) == set(value)
        assert item.value["n"] == 1
        assert "closed" not in json.dumps(item.value)
        assert "hunter2" not in json.dumps(item.value)


def test_a_large_value_with_private_parts_and_secrets_stays_json(tmp_path: Path) -> None:
    value = {
        "notes": ["open <private>closed</private> end " * 4_000],
        "password": "hunter2-Xk39vQz81",
        "tag": "<private>",
    }
    with NacreStore(tmp_path / "a.db", embedder=None, secrets="redact") as store:
        store.put(("docs",), "a", value, index=False)
        item = store.get(("docs",), "a")
        assert item is not None
        assert item.value["notes"][0].startswith("open end open end")
        assert "closed" not in item.value["notes"][0]
        assert "hunter2" not in json.dumps([dict(memory.metadata) for memory in store.memory.every()])
    with NacreStore(tmp_path / "b.db", embedder=None, secrets="refuse") as store:
        with pytest.raises(InvalidInput, match="secret"):
            store.put(("docs",), "a", value, index=False)
        assert live_keys(store) == []


def test_the_module_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'nacre-memory\[langgraph\]'"):
        importlib.reload(langgraph)
