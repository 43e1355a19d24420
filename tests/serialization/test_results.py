"""Every result of a verb survives JSON, whatever its fields are."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.engine.explain import Why
from nacre.query.lenses import Lens
from nacre.serialization import arguments, encode, results
from nacre.types.facts import Belief, Fact
from nacre.types.memory import Memory, Span, Update
from nacre.types.search import Filter, Hit, SearchResult
from nacre.types.views import Fetched
from same_values import same
from strategies import filters

texts = st.text(st.characters(codec="utf-8"), max_size=6)
whole = st.integers(-(2**62), 2**62)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.replace(fold=0)
)
json_values = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def _facts() -> st.SearchStrategy[Fact]:
    return values(Fact)


def _hits() -> st.SearchStrategy[Hit]:
    return st.builds(
        lambda hit, stored: dataclasses.replace(hit, facts=tuple(each.fact for each in hit.beliefs or ()) or stored),
        _by_fields(Hit),
        st.lists(_facts(), max_size=2).map(tuple),
    )


def _fetched() -> st.SearchStrategy[Fetched]:
    """Entities, neighbours and updates are of memories that were found."""

    def of(memories: list[Memory], missing: list[str], draw: Callable[[Any], Any]) -> Fetched:
        ids = [each.id for each in memories]
        several = (
            st.sets(st.sampled_from(ids)).map(lambda some: [each for each in ids if each in some])
            if ids
            else st.just([])
        )
        hints = typing.get_type_hints(Fetched)
        kept = {
            name: {each: draw(values(typing.get_args(hints[name])[1])) for each in draw(several)}
            for name in ("entities", "neighbours")
        }
        newer = [Update(each, "older", draw(texts)) for each in draw(several)]
        return Fetched(tuple(memories), tuple(missing), updates=tuple(newer), **kept)

    @st.composite
    def drawn(draw: st.DrawFn) -> Fetched:
        memories = draw(st.lists(values(Memory), max_size=3, unique_by=lambda each: each.id))
        return of(memories, draw(st.lists(texts, max_size=2)), draw)

    return drawn()


def _lenses() -> st.SearchStrategy[Lens]:
    """As they are stored: with tuples."""

    def with_tuples(each: Filter) -> Filter:
        values = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
        tuples: dict[str, Any] = {name: tuple(each) for name, each in values.items() if isinstance(each, list)}
        return dataclasses.replace(each, **tuples)

    where = filters().map(with_tuples)
    names = st.sampled_from(["tickets", "a b"])
    return st.builds(Lens, name=names, description=texts, where=where, limit=st.integers(1, 9))


_SPECIAL: Mapping[Any, Callable[[], st.SearchStrategy[Any]]] = {
    datetime: lambda: moments,
    timedelta: lambda: st.timedeltas(),
    str: lambda: texts,
    int: lambda: whole,
    float: lambda: st.floats(allow_nan=False),
    bool: st.booleans,
    Path: lambda: st.sampled_from([Path("/tmp/a.db"), Path("b/c.db")]),
    Span: lambda: st.builds(Span, st.integers(0, 9), st.integers(0, 9)),
    Hit: _hits,
    Fetched: _fetched,
    Lens: _lenses,
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, by the types of its fields."""
    if hint in _SPECIAL:
        return _SPECIAL[hint]()
    if isinstance(hint, ForwardRef):  # Json refers to itself
        return json_values
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return st.one_of([st.none() if each is NoneType else values(each) for each in inner])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple and inner[-1:] == (...,):
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if origin is list:
        return st.lists(values(inner[0]), max_size=2)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if origin is not None:  # another sequence
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    return _by_fields(hint)


def _by_fields(of: Any) -> st.SearchStrategy[Any]:
    names = [each.name for each in dataclasses.fields(of)] if dataclasses.is_dataclass(of) else list(of._fields)
    hints = typing.get_type_hints(of, None, {"Path": Path})
    return st.deferred(lambda: st.builds(of, **{name: values(hints[name]) for name in names}))


def encoder(of: Any) -> Callable[[Any], Any]:
    whole_hits: Mapping[Any, Callable[[Any], Any]] = {
        SearchResult: partial(encode.search_result, texts=True),
        Why: partial(encode.why, texts=True),
    }
    return whole_hits.get(of, results.encoder(of))


@pytest.mark.parametrize("of", results.ENCODERS, ids=lambda each: each.__name__)
@settings(max_examples=60)
@given(data=st.data())
def test_a_result_comes_back(of: Any, data: st.DataObject) -> None:
    value = data.draw(values(of))
    same(value, results.decoder(of)(json.loads(encode.dumps(encoder(of)(value), indent=None))))


def test_every_verb_gives_what_has_an_encoder() -> None:
    """All else is JSON by itself."""
    plain = {NoneType, bool, int, str}
    for name, verb in arguments.public_verbs().items():
        hint = typing.get_type_hints(verb)["return"]
        while typing.get_origin(hint) is not None and name != "export":
            hint = typing.get_args(hint)[-1]
        assert hint in {*results.ENCODERS, *plain} or name == "export", name


def test_a_newer_server_may_say_more() -> None:
    belief = Belief(_example(), 0.5)
    told = {**json.loads(encode.dumps(encode.belief(belief))), "colour": "red"}
    same(results.decoder(Belief)(told), belief)


def _example() -> Fact:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Fact(
        id="f", memory_id="m", space="s", subject="a", predicate="b", object="c", type="kv", confidence=1.0,
        decay_rate=0.0, reinforced=at, touched=at, valid_from=at, valid_to=None, superseded_by=None, quote=None,
        relation=False, single=False, origin="given",
    )  # fmt: skip
