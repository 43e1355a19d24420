"""The verbs of the clients: none is missing, and each has the signature, the types and the words of the engine's."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import datetime
from typing import Any, assert_type, get_origin, get_type_hints

import pytest

import nacre
from nacre.serialization import arguments
from nacre.serialization.routes import NOT_SERVED, ROUTES

VERBS = arguments.public_verbs()


def public(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


def test_no_verb_is_missing_and_none_is_made_up() -> None:
    assert set(VERBS) == set(ROUTES)
    assert public(nacre.RemoteNacre) == {*VERBS, *NOT_SERVED.keys() - {"authenticate"}}
    assert public(nacre.AsyncNacre) == {*VERBS, "aclose", "within"}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_that_of_the_engine(name: str) -> None:
    streams = get_origin(get_type_hints(VERBS[name])["return"]) is Iterator
    for client in (nacre.RemoteNacre, nacre.AsyncNacre):
        own: Callable[..., Any] = getattr(client, name)
        assert inspect.signature(own) == inspect.signature(VERBS[name])
        assert inspect.unwrap(own) is VERBS[name]
        assert own.__doc__ == VERBS[name].__doc__
        assert own.__name__ == name
    assert inspect.iscoroutinefunction(getattr(nacre.AsyncNacre, name)) != streams
    assert streams == ROUTES[name].lines_out


@pytest.mark.parametrize("client", [nacre.RemoteNacre, nacre.AsyncNacre])
def test_within_takes_what_the_engine_takes(client: Any) -> None:
    own, engines = inspect.signature(client.within), inspect.signature(nacre.Nacre.within)
    assert own.parameters == engines.parameters


def _types(memory: nacre.RemoteNacre) -> None:
    """Never called: mypy checks what these calls give, and that wrong ones are errors."""
    assert_type(memory.search("tea", limit=3), nacre.SearchResult)
    assert_type(memory.remember("tea", tags=["hot"]), nacre.Remembered)
    assert_type(memory.remember_batches(["tea"]), Iterator[list[nacre.Remembered]])
    assert_type(memory.every("tag:hot"), Iterator[nacre.Memory])
    assert_type(memory.update("m1", text="coffee", unchanged_since=datetime.now()), nacre.Memory)  # noqa: DTZ005
    assert_type(memory.get("m1", entities=True), nacre.Fetched)
    assert_type(memory.entity_counts(), dict[str, int])
    assert_type(memory.restore("m1"), None)
    assert_type(memory.within("home"), nacre.RemoteNacre)
    memory.search(3)  # type: ignore[arg-type]
    memory.search("tea", limt=3)  # type: ignore[call-arg]
    memory.remember("tea", colour="green")  # type: ignore[call-arg]


async def _async_types(memory: nacre.AsyncNacre) -> None:
    assert_type(await memory.search("tea", limit=3), nacre.SearchResult)
    assert_type(await memory.remember("tea", tags=["hot"]), nacre.Remembered)
    assert_type(memory.remember_batches(["tea"]), AsyncGenerator[list[nacre.Remembered], None])
    assert_type([each async for each in memory.every()], list[nacre.Memory])
    assert_type(await memory.timeline(limit=2), nacre.Timeline)
    assert_type(memory.within("home"), nacre.AsyncNacre)
    await memory.search(3)  # type: ignore[arg-type]
    await memory.search("tea", limt=3)  # type: ignore[call-arg]
