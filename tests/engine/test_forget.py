"""Forgetting several memories where some ids are unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nacre
from engines import make_engines
from nacre import Filter, Forgotten, Nacre, NotFound
from stores import ALL_STORES


def live(memory: Nacre) -> list[str]:
    return [each.id for each in memory.every(Filter())]


@pytest.mark.parametrize("kind", ALL_STORES)
def test_the_others_are_forgotten_if_that_is_asked_for(kind: str, tmp_path: Path) -> None:
    with make_engines(kind, tmp_path) as make:
        memory = make("one", "two", "three")
        with pytest.raises(NotFound) as caught:
            memory.forget(["m0", "nobody", "m1"])
        assert caught.value.ids == ("nobody",)
        assert live(memory) == ["m0", "m1", "m2"]
        done = memory.forget(["m0", "nobody", "m1", "nothing", "m0"], missing_ok=True)
        assert done == Forgotten(("m0", "m1"), ("nobody", "nothing"))
        assert live(memory) == ["m2"]
        assert memory.forget(["m0"], missing_ok=True) == Forgotten(("m0",))  # once more changes nothing
        assert memory.forget("nobody", missing_ok=True) == Forgotten((), ("nobody",))
        assert memory.forget([]) == memory.forget([], missing_ok=True) == Forgotten(())
        assert memory.forget("m2") == Forgotten(("m2",))
        assert [each.action for each in memory.history("m0")] == ["remembered", "forgotten"]


@pytest.mark.parametrize("kind", ALL_STORES)
def test_what_is_purged_meanwhile_is_missing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process purges a memory between the check of the ids and the write."""
    with make_engines(kind, tmp_path) as make:
        memory = make("one", "two")
        store: Any = memory._store
        forget = store.forget

        def purging(ids: Any, at: Any) -> None:
            monkeypatch.setattr(store, "forget", forget)
            memory.purge("m0")
            forget(ids, at)

        monkeypatch.setattr(store, "forget", purging)
        assert memory.forget(["m0", "m1"], missing_ok=True) == Forgotten(("m1",), ("m0",))
        assert live(memory) == []


def test_to_a_confined_engine_memories_of_others_are_missing(path: Path) -> None:
    with nacre.open(path, space="theirs", embedder="none") as memory:
        foreign = memory.remember("theirs").id
    with nacre.open(path, space="ours", confined=True, embedder="none") as memory:
        own = memory.remember("ours").id
        assert memory.forget([own, foreign, "nobody"], missing_ok=True) == Forgotten((own,), (foreign, "nobody"))
    with nacre.open(path, space="theirs", embedder="none") as memory:
        assert live(memory) == [foreign]
