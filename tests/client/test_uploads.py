"""Any number of items as requests of bounded size: each batch is told when it is stored, and errors name their item."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import compress, islice
from typing import Any

import pytest

import nacre
from faulty_servers import faulty, passed_on
from nacre import InvalidInput, NacreError, NewMemory
from nacre.client import uploads
from nacre.engine.engine import Nacre
from nacre.types.transfer import MemoryRecord
from servers import ThreadServer

pytest_plugins = "client_fixtures"
pytestmark = pytest.mark.usefixtures("hurried")

BATCH = 512


def sizes(items: Any) -> list[tuple[int, int]]:
    """The bytes of each request, and how many items were before it."""
    return [
        (len(each.request.body or b""), each.before) for each in uploads.parts(Nacre.remember_batches, (items,), {})
    ]


def test_requests_have_a_bounded_size() -> None:
    assert sizes([]) == []
    assert [before for _, before in sizes(f"text {number}" for number in range(1_100))] == [0, 512, 1_024]
    long = sizes("x" * 2**20 for _ in range(10))
    assert [before for _, before in long] == [0, 4, 8]
    assert max(size for size, _ in long) < 5 * 2**20


def test_a_request_is_made_when_the_one_before_is_answered(
    server: ThreadServer, remote: nacre.RemoteNacre, space: str
) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield f"text {taken}"

    with faulty(passed_on(server.port)) as between, nacre.connect(between.url, space=space) as memory:
        batches = memory.remember_batches(endless())
        assert taken == 0
        for number in (1, 2):
            assert len(next(batches)) == BATCH
            assert taken == number * BATCH
            assert len(between.requests) == number
            assert len(list(remote.every())) == taken  # what is told is stored
        batches.close()  # type: ignore[attr-defined]


def item_errors(memory: Any, items: list[Any]) -> tuple[list[tuple[int, str]], int]:
    """What is refused, by the number of the item, and how many are stored."""
    refused: list[tuple[int, str]] = []
    stored = memory.remember_batches(items, refused=lambda number, error: refused.append((number, str(error))))
    written = sum(map(len, stored))
    return sorted(refused), written


BAD: dict[int, Any] = {  # by the number of the item
    1: " ",
    2: " ",
    512: "",
    513: "",
    514: " ",
    700: NewMemory(text="x", importance=7),
    701: NewMemory(text="x", metadata={"x": 2**70}),
    1_025: 5,
    1_400: b"raw",
    1_401: NewMemory(text="half \ud800"),
    1_402: NewMemory(text="x", expires=timedelta.max),
    1_536: object(),
}
OTHER_WORDS = (701, 1_025, 1_400, 1_536)  # they have no JSON, or are of another type


@pytest.mark.slow
def test_errors_name_the_item_as_an_engine_does(remote: nacre.RemoteNacre, memory: Nacre) -> None:
    good: list[Any] = [f"text {number}" for number in range(3 * BATCH)]
    for number, bad in BAD.items():
        told: list[InvalidInput] = []
        for each in (remote, memory):
            with pytest.raises(InvalidInput) as raised:
                each.remember_many([*good[: number - 1], bad, *good[number:]])
            told.append(raised.value)
        if number not in OTHER_WORDS:
            assert (str(told[0]), told[0].field) == (str(told[1]), told[1].field)
        if number > 1:
            assert str(told[0]).endswith(f"(item {number} of the input)") or f"items[{number - 1}]" in told[0].field
        before = (number - 1) // BATCH * BATCH
        assert len(list(remote.every())) == len(list(memory.every())) >= before
    items = [BAD.get(number, text) for number, text in enumerate(good, 1)]
    by_server, stored = item_errors(remote, items)
    by_engine, stored_here = item_errors(memory, items)
    assert [number for number, _ in by_server] == [number for number, _ in by_engine] == [*BAD]
    alike = [number not in OTHER_WORDS for number in BAD]
    assert [*compress(by_server, alike)] == [*compress(by_engine, alike)]
    assert stored == stored_here == len(good) - len(BAD)


def test_what_is_no_list_is_refused_at_once(remote: nacre.RemoteNacre, memory: Nacre) -> None:
    for wrong in ("one text", None, 5, NewMemory(text="one")):
        for each in (remote, memory):
            with pytest.raises(InvalidInput) as raised:
                list(each.remember_batches(wrong))  # type: ignore[arg-type]
            assert raised.value.field == "items"
    with pytest.raises(InvalidInput, match="refused: must be a function"):
        remote.remember_batches(["x"], refused=5)  # type: ignore[arg-type]
    assert remote.remember_many([]) == []


def test_an_export_is_taken_in_as_it_comes(remote: nacre.RemoteNacre, server: ThreadServer) -> None:
    """From one server to another without a list between them, and what is bad in it is told by its number."""
    remote.remember_many(f"text {number}" for number in range(BATCH + 10))
    with nacre.connect(server.url) as all_spaces, nacre.connect(server.url) as other:
        counts = list(other.load(all_spaces.export()))
        assert counts[-1].added == 0
        assert counts[-1].unchanged >= BATCH + 10
        records = list(islice(all_spaces.export(), 4))
        assert isinstance(records[2], MemoryRecord)
        refused: list[tuple[int, NacreError]] = []
        loaded = list(other.load([*records, records[0], records[1]], refused=lambda *each: refused.append(each)))
        assert loaded[-1].unchanged >= 3
        assert [number for number, _ in refused] == [5]
        with pytest.raises(InvalidInput):
            list(other.load(records[1:]))
        with pytest.raises(InvalidInput, match="records: must be those of an export, not str"):
            list(other.load(["text"]))  # type: ignore[list-item]


def test_an_export_goes_on_where_another_ended(remote: nacre.RemoteNacre, memory: Nacre) -> None:
    for each in (remote, memory):
        each.remember("old")
        before = each.changes().seq
        done = each.remember("new")
        for since in (before, each.get(done.id).memories[0].updated):
            found = [record for record in each.export(since=since) if isinstance(record, MemoryRecord)]
            assert "new" in [record.memory.text for record in found]
            assert "old" not in [record.memory.text for record in found]
        with pytest.raises(InvalidInput, match="since"):
            list(each.export(since=-1))
