"""No call ends in a traceback: a wrong value in any parameter of any verb is an error of Nacre that names it.

Verbs and parameters are found by inspection. A new verb fails here until `CALLS` says how it is called.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

import nacre
from nacre import InvalidInput, Lens, Nacre, NacreError, NewFact, NewMemory
from nacre.embedders.hashing import Hashing
from nacre.errors import ServerError
from nacre.serialization.routes import NOT_SERVED
from nacre.types.facts import FactQuery, NewEntity
from nacre.types.recipe import Recipe, Tuning
from nacre.types.search import Filter, RelatedRequest, SearchRequest
from nacre.types.views import ContextRequest, TimelineRequest
from servers import serving

NESTED: list[Any] = []
for _ in range(100_000):  # deeper than any recursion goes
    NESTED = [NESTED]
WRONG: tuple[Any, ...] = (
    None,
    5,
    5.5,
    True,
    float("nan"),
    10**5_000,
    "",
    "half \ud800",
    b"raw",
    [],
    [5],
    [None],
    {},
    {5: 6},
    object(),
    NESTED,
)

FACT = NewFact(subject="tea", predicate="served at", object="four")
CALLS: dict[str, dict[str, Any]] = {  # the arguments that each verb needs; "ID" and "OTHER" stand for memories
    "remember": {"text": "new"},
    "remember_many": {"items": ["new"]},
    "remember_batches": {"items": ["new"]},
    "update": {"memory_id": "ID", "summary": "new"},
    "forget": {"ids": "ID"},
    "restore": {"ids": "ID"},
    "purge": {"ids": "ID"},
    "search": {"query": "tea"},
    "why": {"query": "tea", "memory_id": "ID"},
    "why_not": {"query": "tea", "memory_id": "ID"},
    "related": {"memory_id": "ID"},
    "facets": {},
    "context": {"query": "tea"},
    "count_tokens": {"text": "tea"},
    "timeline": {},
    "get": {"ids": "ID"},
    "every": {},
    "history": {"memory_id": "ID"},
    "similar": {"memory_id": "ID"},
    "separate": {"memory_id": "ID"},
    "stats": {},
    "state_fact": {"fact": FACT},
    "add_facts": {"memory_id": "ID", "facts": [FACT]},
    "drop_facts": {"ids": "ID"},
    "facts": {},
    "reinforce": {"ids": "ID"},
    "stale": {},
    "conflicts": {},
    "unlink": {"newer": "ID", "older": "OTHER"},
    "add_entity": {"name": "Anna"},
    "drop_entity": {"name": "Anna"},
    "entities": {},
    "entity_counts": {},
    "related_entities": {"name": "Anna"},
    "receipts": {},
    "clear_log": {},
    "mark": {"ids": "ID", "outcome": "used"},
    "save_lens": {"lens": Lens(name="mine")},
    "drop_lens": {"name": "mine"},
    "lens": {"name": "mine"},
    "lenses": {},
    "reembed": {},
    "audit": {},
    "screen": {"text": "tea"},
    "changes": {},
    "create_token": {},
    "tokens": {},
    "revoke_token": {"token_id": "ID"},
    "authenticate": {"secret": "nacre_1_2"},
    "within": {"space": "default"},
    "backup": {"to": "no such folder/backup"},
    "export": {},
    "load": {"records": []},
    "check": {},
    "rebuild": {},
    "close": {},
}
NAMED_OTHERWISE = {"items": "text"}


class Parameter(NamedTuple):
    name: str
    hint: Any

    def takes(self, value: object) -> bool:
        return fits(value, self.hint)


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """All that a function takes, also the options that a TypedDict lists."""
    hints = get_type_hints(function)
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            (options,) = get_args(hints[name])
            assert is_typeddict(options)
            yield from (Parameter(*option) for option in get_type_hints(options).items())
        elif name != "self":
            yield Parameter(name, hints[name])


def fits(value: object, hint: Any) -> bool:
    """Whether a type checker would take it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is Literal:
        return any(value is each or (isinstance(each, str) and value == each) for each in inner)
    if getattr(hint, "_is_protocol", False):  # a model of the caller's own; no sample is one
        return False
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin in (tuple, Sequence, Iterable):  # a text is a sequence, but none is meant
        listed = isinstance(value, list | dict if origin is Iterable else list)
        return listed and all(fits(each, inner[0]) for each in list(value))  # type: ignore[call-overload]
    if origin is Mapping or origin is dict:
        return isinstance(value, dict) and all(fits(each, inner[0]) for each in value)
    if origin is not None:
        return isinstance(value, origin)
    return isinstance(value, type(None) if hint is None else hint)


def doubtful(value: object) -> bool:
    """Of the right type, and still no good: whether that is an error depends on the parameter."""
    return value != value or value in ("", "half \ud800") or (isinstance(value, int) and value > 10**18)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nacre]:
    """With the memory of this id as "ID", and another as "OTHER"."""
    with nacre.open(tmp_path_factory.mktemp("calls") / "memories.db", embedder=Hashing()) as opened:
        opened.remember_many(["Anna serves tea at four", "coffee at noon"])
        opened.add_entity("Anna")
        opened.save_lens(Lens(name="mine"))
        yield opened


def stored(memory: Nacre) -> object:
    return replace(memory.stats(), size_bytes=0, index_bytes=0), memory.entities(), memory.facts()


def error_of(call: Callable[[], object]) -> NacreError | None:
    """What a call says is wrong; any other error than Nacre's own fails the test."""
    try:
        answer = call()
        if isinstance(answer, Iterator):
            list(answer)
    except NacreError as error:
        return error
    return None


def check(call: Callable[[Any], object], parameter: Parameter, *fields_named: str) -> None:
    """Call it with every wrong value."""
    for value in WRONG:
        fits = parameter.takes(value)
        if fits and not doubtful(value):
            continue
        error = error_of(lambda: call(value))  # noqa: B023
        if error is not None:
            assert len(str(error)) < 1_000
        if not fits:
            assert isinstance(error, InvalidInput), (parameter, error)
            assert error.field.startswith(fields_named), (parameter, error)


def test_every_verb_is_in_the_table() -> None:
    found = [name for name, _ in inspect.getmembers(Nacre, inspect.isfunction) if not name.startswith("_")]
    assert sorted(CALLS) == found


@pytest.mark.parametrize("verb", [each for each in CALLS if each != "close"])
def test_wrong_values_are_errors_that_name_the_parameter(
    memory: Nacre, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path "" is the folder that this runs in
    ids = dict(zip(("OTHER", "ID"), (each.id for each in memory.timeline().entries), strict=True))
    given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in CALLS[verb].items()}
    before = stored(memory)
    for each in parameters(getattr(Nacre, verb)):
        named = ("items", "text") if each.name == "items" else (each.name,)
        check(lambda value: getattr(memory, verb)(**{**given, each.name: value}), each, *named)  # noqa: B023
    assert stored(memory) == before


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.RemoteNacre]:
    with serving(tmp_path_factory.mktemp("served") / "memories.db") as server, nacre.connect(server.url) as connected:
        connected.remember_many(["Anna serves tea at four", "coffee at noon"])
        yield connected


@pytest.mark.slow
@pytest.mark.parametrize("verb", [each for each in CALLS if each not in NOT_SERVED])
def test_wrong_values_are_errors_of_a_client_too(remote: nacre.RemoteNacre, verb: str) -> None:
    """It reads some values more kindly than an engine: JSON has no dates, and a server takes one text as a list."""
    ids = dict(zip(("OTHER", "ID"), (each.id for each in remote.timeline().entries), strict=False))
    given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in CALLS[verb].items()}
    for each in parameters(getattr(Nacre, verb)):
        for value in (*WRONG, timedelta.max):
            error = error_of(lambda: getattr(remote, verb)(**{**given, each.name: value}))  # noqa: B023
            assert not isinstance(error, ServerError), (each, error)
            if value is NESTED or isinstance(value, bytes) or type(value) is object:
                assert isinstance(error, InvalidInput), each
                assert error.field.startswith((each.name, "text", "records")), (each, error)


VALUES: dict[type, tuple[dict[str, Any], str, Callable[[Nacre, Any], object]]] = {
    # what it needs, what comes before the name of a field in an error, and a call that takes it
    NewMemory: ({"text": "new", "session": "s"}, "", lambda memory, value: memory.remember(value)),
    NewFact: (
        {"subject": "tea", "predicate": "at", "object": "four"},
        "",
        lambda memory, value: memory.state_fact(value),
    ),
    NewEntity: ({"name": "Bo"}, "entities.", lambda memory, value: memory.remember("new", entities=[value])),
    Filter: ({}, "where.", lambda memory, value: memory.search("tea", where=value)),
    Recipe: ({}, "recipe.", lambda memory, value: memory.search("tea", recipe=value)),
    Tuning: ({}, "recipe.", lambda memory, value: memory.search("tea", recipe=Recipe(tuning=value))),
    Lens: ({"name": "other"}, "", lambda memory, value: memory.save_lens(value)),
    SearchRequest: ({"query": "tea"}, "", lambda memory, value: memory.search(value)),
    ContextRequest: ({"query": "tea"}, "", lambda memory, value: memory.context(value)),
    RelatedRequest: ({}, "", lambda memory, value: memory.related(value)),
    TimelineRequest: ({}, "", lambda memory, value: memory.timeline(value)),
    FactQuery: ({}, "", lambda memory, value: memory.facts(value)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_wrong_values_are_errors_that_name_the_field(memory: Nacre, kind: type) -> None:
    given, within, call = VALUES[kind]
    if kind is RelatedRequest:
        given = {"memory_id": memory.timeline().entries[0].id}
    before = stored(memory)
    for each in parameters(kind):
        if each.name != "built_in":  # of a lens: it is set, not read
            check(
                lambda value: call(memory, kind(**{**given, each.name: value})),  # noqa: B023
                each,
                f"{within}{each.name}",
                each.name,
            )
    assert stored(memory) == before


def test_a_store_is_not_opened_with_wrong_values(tmp_path: Path) -> None:
    def opened(**arguments: Any) -> None:
        with nacre.open(**{"path": tmp_path / "memories.db", "embedder": "hashing", **arguments}):
            pass

    for each in parameters(nacre.open):
        check(lambda value: opened(**{each.name: value}), each, each.name)  # noqa: B023
