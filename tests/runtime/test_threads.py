"""Results that are computed in a thread ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from nacre import StoreUnavailable
from nacre.runtime.threads import AheadCache, Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads()
    yield made
    made.close()


def test_a_result_is_computed_once_and_ahead_of_its_use(threads: Threads) -> None:
    cache: AheadCache[str, str] = AheadCache(threads, 2)
    begun, go_on = threading.Event(), threading.Event()
    computed: list[str] = []

    def shouted(text: str) -> str:
        computed.append(text)
        begun.set()
        assert go_on.wait(60)
        return text.upper()

    cache.start("one", shouted)
    assert begun.wait(60)  # though nobody has asked for it yet
    go_on.set()
    assert cache.result("one", shouted) == cache.result("one", shouted) == "ONE"
    cache.start("one", shouted)
    assert computed == ["one"]
    cache.result("two", shouted)
    cache.result("three", shouted)
    cache.result("one", shouted)  # two others have taken its place
    assert computed == ["one", "two", "three", "one"]


def test_a_failure_is_reported_where_the_result_is_used_and_then_forgotten(threads: Threads) -> None:
    cache: AheadCache[str, str] = AheadCache(threads, 2)
    failures = [ValueError("damaged")]

    def fails_once(text: str) -> str:
        if failures:
            raise failures.pop()
        return text

    cache.start("one", fails_once)
    with pytest.raises(ValueError, match="damaged"):
        cache.result("one", fails_once)
    assert cache.result("one", fails_once) == "one"


def test_nothing_is_started_after_closing(threads: Threads) -> None:
    cache: AheadCache[str, str] = AheadCache(threads, 2)
    cache.result("one", str.upper)
    threads.close()
    cache.start("two", str.upper)
    with pytest.raises(StoreUnavailable):
        cache.result("two", str.upper)
    assert cache.result("one", str.upper) == "ONE"
