"""The arguments of the engine's verbs as JSON, in both directions, by the types in the verbs' signatures.

A request value such as SearchRequest stands for its fields: `search(SearchRequest(query="x", limit=3))` and
`search("x", limit=3)` are `{"query": "x", "limit": 3}`. Arguments that are functions have no JSON.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Unpack

from nacre import validation
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.query import lenses
from nacre.query.lenses import Lens
from nacre.serialization import decode, encode
from nacre.serialization.routes import NOT_SERVED
from nacre.types.facts import FactQuery, NewEntity, NewFact
from nacre.types.memory import Json, NewMemory
from nacre.types.recipe import USUAL_RECIPE, Recipe, recipe_of, weights_of
from nacre.types.search import Filter, RelatedRequest, SearchRequest
from nacre.types.views import ContextRequest, TimelineRequest

Kind: TypeAlias = Literal["boolean", "number", "text", "texts", "object"]

_USUAL_WEIGHTS = weights_of(USUAL_RECIPE)
_NUMBER_END = 2**63  # whole numbers are kept in 64 bits
_REQUESTS = (SearchRequest, RelatedRequest, TimelineRequest, ContextRequest, FactQuery, NewMemory)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument that has JSON: its type, whether it must be given, and how it is read."""

    name: str
    hint: Any
    required: bool
    default: Any
    read: Callable[[str, Any], Any]
    kind: Kind  # how it is written in the query of a URL


def members(hint: Any) -> tuple[Any, ...]:
    """The types of a union but None, or the type itself."""
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return tuple(each for inner in typing.get_args(hint) for each in members(inner) if each is not NoneType)
    return (hint,)


def parameters(verb: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a verb that have JSON, with the options of `**options` among them."""
    hints = typing.get_type_hints(verb)
    found: list[Parameter] = []
    for each in list(inspect.signature(verb).parameters.values())[1:]:
        hint = hints[each.name]
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            (options,) = typing.get_args(hint)
            assert typing.get_origin(hint) is Unpack
            found += [_parameter(name, inner, None) for name, inner in typing.get_type_hints(options).items()]
        elif inner := _own(hint):
            found.append(_parameter(each.name, inner, each.default))
    return tuple(each for each in found if not _is_function(each.hint))


def _own(hint: Any) -> Any:
    """The type without the requests whose fields are given instead; None if nothing is left."""
    left = tuple(each for each in members(hint) if each not in _REQUESTS)
    optional = NoneType in typing.get_args(hint)
    return typing.Union[(*left, *((NoneType,) if optional else ()))] if left else None


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    required = default is inspect.Parameter.empty
    read, kind = _reader(hint)
    return Parameter(name, hint, required, None if required else default, read, kind)


def _is_function(hint: Any) -> bool:
    return any(typing.get_origin(each) is Callable for each in members(hint))


# ---------------------------------------------------------------- reading


def read(given: object, known: Mapping[str, Parameter], *, keep_null: bool = False) -> dict[str, Any]:
    """The arguments in a JSON object. One that is null counts as not given, unless that says something."""
    if not isinstance(given, dict):
        raise InvalidInput("body", f"must be a JSON object, not {type(given).__name__}; give arguments by name")
    for name in given:
        if name not in known:
            raise decode.unknown_field(name, tuple(known))
    for name, each in known.items():
        if each.required and given.get(name) is None:
            raise InvalidInput(name, "is missing")
    return {
        name: None if value is None else known[name].read(name, value)
        for name, value in given.items()
        if value is not None or keep_null
    }


def read_query(pairs: Iterable[tuple[str, str]], known: Mapping[str, Parameter]) -> dict[str, Json]:
    """The JSON object that the query of a URL stands for: a list repeats its name, an object is JSON."""
    given: dict[str, Json] = {}
    for name, text in pairs:
        kind = known[name].kind if name in known else "text"
        if kind == "texts":
            several = given.setdefault(name, [])
            assert isinstance(several, list)
            if text:  # `name=` is an empty list, which is not the same as none
                several.append(text)
        elif name in given:
            raise InvalidInput(name, "is given twice, and is no list; give it once")
        else:
            given[name] = _from_text(kind, name, text)
    return given


def _from_text(kind: Kind, name: str, text: str) -> Json:
    if kind == "boolean":
        return {"true": True, "1": True, "": True, "false": False, "0": False}.get(text.lower(), text)
    if kind == "number":
        for number in (int, float):
            try:
                return number(text)
            except ValueError:  # the verb says what it should be
                pass
        return text
    if kind == "object" and text.lstrip()[:1] in ("{", "["):
        try:
            value: Json = decode.json_line(text)  # type: ignore[assignment]
        except InvalidInput as problem:
            raise InvalidInput(name, problem.problem) from None
        return value
    return text


def _reader(hint: Any) -> tuple[Callable[[str, Any], Any], Kind]:
    """How a value of this type is read. What a verb checks anyway is handed over as it is."""
    inner = members(hint)
    if timedelta in inner:
        return decode.expiry, "text"
    if datetime in inner:
        return (_number_or_moment, "number") if int in inner else (moment, "text")
    for kind, reader in _OBJECTS.items():
        if kind in inner:
            return (partial(_text_or, reader) if str in inner else reader), "object"
    for each in inner:
        if typing.get_origin(each) in _LISTS:
            return _list_reader(typing.get_args(each))
    if bool in inner:
        return decode.as_given, "boolean"
    if int in inner or float in inner:
        return decode.as_given, "number"
    return decode.as_given, "object" if any(typing.get_origin(each) is Mapping for each in inner) else "text"


def _list_reader(of: tuple[Any, ...]) -> tuple[Callable[[str, Any], Any], Kind]:
    (item, *_) = of
    several = members(item)
    if NewMemory in several:
        return partial(_each, read_one=_new_memory), "object"
    if NewFact in several:
        return partial(_each, read_one=decode.new_fact), "object"
    if NewEntity in several:
        return partial(_each, read_one=_new_entity), "object"
    return decode.texts, "texts"


def moment(field: str, value: object) -> datetime:
    """A time in ISO 8601, exactly, or the start of a time as people write it (7d, yesterday)."""
    if isinstance(value, str) and "T" in value:
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            at = None
        if at is not None and at.tzinfo is not None:
            return at.astimezone(UTC)
    return decode.moment(field, value)


def _number_or_moment(field: str, value: object) -> object:
    return moment(field, value) if isinstance(value, str) else value


def _text_or(read_one: Callable[[str, Any], Any], field: str, value: object) -> object:
    """What may be said in a text, too, such as a query that chooses memories."""
    return value if isinstance(value, str) else read_one(field, value)


def _where(field: str, value: object) -> Filter:
    return lenses.filter_from_json(field, value)


def _recipe(_: str, value: object) -> Recipe:
    return recipe_of(value)


def _lens(_: str, value: object) -> Lens:
    return lenses.from_json(value)


def _each(field: str, value: object, read_one: Callable[[str, object], Any]) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(field, f"must be a list, not {type(value).__name__}")
    return [read_one(f"{field}[{at}]", each) for at, each in enumerate(value)]


def _new_memory(field: str, value: object) -> str | NewMemory:
    if isinstance(value, str):
        return value
    try:
        return decode.new_memory(value)
    except InvalidInput as problem:
        raise InvalidInput(f"{field}.{problem.field}", problem.problem) from None


def _new_entity(field: str, value: object) -> object:
    return decode.new_entity(field, value) if isinstance(value, dict) else value


_LISTS = (Sequence, Iterable, list, tuple)
_OBJECTS: Mapping[Any, Callable[[str, Any], Any]] = {
    Filter: _where,
    Recipe: _recipe,
    Lens: _lens,
    NewFact: decode.new_fact,
}


# ---------------------------------------------------------------- writing


def written(verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, as JSON. Raises TypeError where the verb itself would."""
    bound = inspect.signature(verb).bind(None, *args, **named)
    given: dict[str, Any] = {}
    options: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        if isinstance(value, _REQUESTS):
            requests = _differing(value)
        elif bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            options = value
        else:
            given[name] = value
    named_options = {**requests, **options}
    known = {each.name for each in parameters_of(verb)}
    functions = [name for name, value in (*given.items(), *named_options.items()) if callable(value)]
    if functions:
        raise InvalidInput(functions[0], "is a function, which a server cannot call; leave it out")
    for name, value in (*given.items(), *options.items()):
        if name not in known and value is not None:  # of a function or a request, None is the same as leaving it out
            _check_known(verb, name, value)
    everything = {name: value for name, value in (*given.items(), *named_options.items()) if name in known}
    return {name: plain(name, value) for name, value in everything.items()}


def _check_known(verb: Callable[..., Any], name: str, value: object) -> None:
    """Raise TypeError for an option that the verb has not, and InvalidInput for one that no server can be given."""
    hints = _hints(verb)
    if name not in hints:
        raise TypeError(f"{verb.__name__}() got an unexpected keyword argument {name!r}")
    kinds = " or ".join("function" if _is_function(each) else each.__name__ for each in members(hints[name]))
    raise InvalidInput(name, f"must be a {kinds}, not {type(value).__name__}")


def _hints(verb: Callable[..., Any]) -> dict[str, Any]:
    """The types of all that a verb takes, with its options and its functions."""
    hints = typing.get_type_hints(verb)
    options = [each for each in hints.values() if typing.get_origin(each) is Unpack]
    for each in options:
        hints |= typing.get_type_hints(*typing.get_args(each))
    return hints


def _differing(value: Any) -> dict[str, Any]:
    """The fields of a request that differ from their defaults."""
    return {
        each.name: getattr(value, each.name)
        for each in dataclasses.fields(value)
        if getattr(value, each.name) != _default(each)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def plain(name: str, value: Any) -> Json:
    """A value as JSON. Raises InvalidInput for what has none: the server says what else is wrong."""
    try:
        return _plain(name, value)
    except RecursionError:
        raise InvalidInput(name, "is nested too deep, or holds itself") from None


def _plain(name: str, value: Any) -> Json:
    if isinstance(value, int) and not -_NUMBER_END <= value < _NUMBER_END:
        raise InvalidInput(name, "is a number that is too large; whole numbers of 64 bits are allowed")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return encode.moment(validation.moment(name, value))
    if isinstance(value, timedelta):
        try:
            return encode.moment(datetime.now(UTC) + value)
        except OverflowError:
            raise InvalidInput(name, "is out of range; years 1 to 9999 are allowed") from None
    if isinstance(value, Lens):
        return lenses.to_json(value)
    if isinstance(value, Recipe):
        value = {each: weight for each, weight in weights_of(value).items() if weight != _USUAL_WEIGHTS[each]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each: _plain(f"{name}.{each}", inner) for each, inner in _differing(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{name}.{key}", each) for key, each in value.items()}
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(f"{name}[{at}]", each) for at, each in enumerate(value)]
    raise InvalidInput(name, f"is a {type(value).__name__}, which has no JSON; give a text, number, list or object")


_parameters: dict[Callable[..., Any], tuple[Parameter, ...]] = {}


def parameters_of(verb: Callable[..., Any]) -> tuple[Parameter, ...]:
    """`parameters`, kept: signatures do not change."""
    if verb not in _parameters:
        _parameters[verb] = parameters(verb)
    return _parameters[verb]


def public_verbs() -> dict[str, Callable[..., Any]]:
    """Every public verb of the engine by name, but for those that no server can offer."""
    return {
        name: verb
        for name, verb in inspect.getmembers(Nacre, inspect.isfunction)
        if not name.startswith("_") and name not in NOT_SERVED
    }
