"""Engines that adapters own, and verbs that are waited for off the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import nacre
from nacre.integrations.owner import Owner, in_thread

pytestmark = pytest.mark.anyio


def test_a_path_is_closed_and_an_engine_is_not(path: Path) -> None:
    with Owner(path, embedder=None) as owner:
        owner.memory.remember("a note")
        with Owner(owner.memory) as borrowed:
            assert borrowed.memory is owner.memory
        assert owner.memory.facets().total == 1
    owner.close()  # again
    with pytest.raises(nacre.StoreError):
        owner.memory.facets()


async def test_a_verb_runs_beside_the_event_loop() -> None:
    assert await in_thread(lambda given, *, named: (given, named), 1, named=2) == (1, 2)
    assert await in_thread(threading.current_thread) is not threading.current_thread()
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(int, "no number")


@pytest.mark.parametrize("fails", [False, True])
async def test_who_is_cancelled_goes_on_once_the_verb_is_done(fails: bool) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def verb() -> None:
        begun.set()
        may_end.wait(30)
        ended.set()
        if fails:
            raise ValueError("nobody sees it")

    waiting = asyncio.ensure_future(in_thread(verb))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(2):  # also twice
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert not waiting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
