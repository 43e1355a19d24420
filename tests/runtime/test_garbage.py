"""The garbage collector is off while any call needs it off, and as before when none does."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from nacre.runtime.garbage import collection_paused


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_nested_pauses_end_with_the_outer_one() -> None:
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_pauses_that_overlap_do_not_end_each_other() -> None:
    first, second = collection_paused(), collection_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()  # the second still runs
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_an_error_ends_its_pause() -> None:
    with pytest.raises(ValueError, match="inside"), collection_paused():
        raise ValueError("inside")
    assert gc.isenabled()


def test_many_threads_leave_the_collector_on() -> None:
    seen = []

    def work() -> None:
        for _ in range(200):
            with collection_paused():
                seen.append(gc.isenabled())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(seen)
    assert gc.isenabled()
