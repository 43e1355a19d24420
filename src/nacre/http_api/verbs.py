"""Calls the verb that a request names: its arguments from the request, its result as JSON."""

from __future__ import annotations

import hashlib
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from nacre.engine.engine import Nacre
from nacre.engine.explain import Why
from nacre.errors import InvalidInput
from nacre.http_api.answers import Answer, json_answer
from nacre.http_api.requests import Request, check_flag
from nacre.serialization import arguments, decode, encode, results
from nacre.serialization.arguments import Parameter
from nacre.serialization.routes import PREFIX, ROUTES, Route
from nacre.types.memory import Json, Memory
from nacre.types.search import SearchResult

WHOLE: Final = "texts"  # in the URL: each hit with its whole memory
KEEP_GOING: Final = "keep_going"  # in the URL: bad lines are reported, and the others are carried out
FLAGS: Mapping[str, str] = {
    WHOLE: "Whether each hit has its whole memory.",
    KEEP_GOING: "Whether a bad line is reported as a line of the answer, and the others are carried out.",
}
UNCHANGED_SINCE: Final = "unchanged_since"  # the argument of `update` that the header If-Match stands for
_ETAG: Final = re.compile(r'(?:W/)?"([^";]*)(?:;[0-9a-f]*)?"')


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with all that a request needs of it."""

    route: Route
    call: Callable[..., Any]
    known: Mapping[str, Parameter]
    flags: tuple[str, ...]
    result: Any  # the type; of a stream that of its items
    write: Callable[[Any], Json]
    write_whole: Callable[[Any], Json]


class Match(NamedTuple):
    """The verb that a method and a path name, and the arguments in the path."""

    verb: Verb
    in_path: dict[str, str]


@cache
def verbs() -> Mapping[str, Verb]:
    """All verbs that have a route, by name."""
    functions = arguments.public_verbs()
    return {name: _verb(route, functions[name]) for name, route in ROUTES.items()}


def _verb(route: Route, function: Callable[..., Any]) -> Verb:
    result = typing.get_type_hints(function)["return"]
    if typing.get_origin(result) is Iterator:
        (result,) = typing.get_args(result)
    write = results.encoder(result)
    whole = {
        SearchResult: partial(encode.search_result, texts=True),
        Why: partial(encode.why, texts=True),
    }.get(result, write)
    known = {each.name: each for each in arguments.parameters_of(function) if each.name != route.lines_in}
    flags = ((WHOLE,) if whole is not write else ()) + ((KEEP_GOING,) if route.lines_in else ())
    return Verb(route, function, known, flags, result, write, whole)


# ---------------------------------------------------------------- which verb


@cache
def _paths() -> tuple[dict[tuple[str, str], Verb], list[tuple[str, re.Pattern[str], Verb]]]:
    """Verbs by method and path, and those whose path has arguments."""
    plain: dict[tuple[str, str], Verb] = {}
    patterns: list[tuple[str, re.Pattern[str], Verb]] = []
    for verb in verbs().values():
        route = verb.route
        for method in (route.method, *(("POST",) if route.posts else ())):
            if route.in_path:
                pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(PREFIX + route.path))
                patterns.append((method, re.compile(pattern), verb))
            else:
                plain[method, PREFIX + route.path] = verb
    return plain, patterns


def matching(method: str, path: str) -> Match | None:
    plain, patterns = _paths()
    if has_own_route(path):
        verb = plain.get((method, path))
        return None if verb is None else Match(verb, {})
    for needed, pattern, verb in patterns:
        found = pattern.fullmatch(path) if needed == method else None
        if found is not None:
            return Match(verb, {name: unquote(text) for name, text in found.groupdict().items()})
    return None


def has_own_route(path: str) -> bool:
    """Whether a path has words where others have an argument: /memories/batch is no memory."""
    return any(known == path for _, known in _paths()[0])


def methods(path: str) -> tuple[str, ...]:
    """The methods that a path knows."""
    return tuple(each for each in ("GET", "POST", "PUT", "PATCH", "DELETE") if matching(each, path))


# ---------------------------------------------------------------- its arguments


def arguments_of(found: Match, request: Request, body: bytes) -> dict[str, Any]:
    """The arguments of a call. Raises InvalidInput for what is unknown, missing or twice."""
    verb, route = found.verb, found.verb.route
    pairs = [(name, text) for name, text in request.pairs if name not in verb.flags]
    if request.method in ("GET", "DELETE") or route.lines_in is not None:
        if body:
            raise InvalidInput("body", f"is not read with {request.method}; give the arguments in the URL")
        given = arguments.read_query(pairs, verb.known)
    elif pairs:
        raise InvalidInput(
            pairs[0][0], f"belongs into the body, a JSON object, as the path is sent by {request.method}"
        )
    else:
        given = _object(body)
    for name, text in found.in_path.items():
        if name in given:
            raise InvalidInput(name, "is in the path already; leave it out")
        given[name] = text
    read = arguments.read(given, verb.known, keep_null=request.method == "PATCH")
    version = request.headers.get("if-match", "*").strip()
    if route.verb == "update" and version != "*":
        read[UNCHANGED_SINCE] = _version(version)
    return read


def number(name: str, text: str) -> int:
    """A number in a header."""
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise InvalidInput(name, f"is {text[:40]!r}; give the number of a change")
    return int(text)


def _version(text: str) -> datetime:
    """The time that an ETag is. It is weak where a proxy has compressed the answer."""
    found = _ETAG.fullmatch(text)
    try:
        at = None if found is None else datetime.fromisoformat(found[1])
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidInput("If-Match", f"{text[:80]!r} is no version of a memory; give the ETag of one answer, or *")
    return at


def _object(body: bytes) -> dict[str, Json]:
    if not body:
        return {}
    try:
        value = decode.json_line(body)
    except InvalidInput as problem:
        raise InvalidInput("body", problem.problem) from None
    if not isinstance(value, dict):
        raise InvalidInput("body", f"must be a JSON object, not {type(value).__name__}; give arguments by name")
    return value


# ---------------------------------------------------------------- its answer


def answer(found: Match, memory: Nacre, request: Request, given: dict[str, Any]) -> Answer:
    """Call the verb and write its result."""
    verb = found.verb
    result = verb.call(memory, **given)
    if result is None:
        return Answer(204)
    write = verb.write_whole if request.flag(WHOLE) else verb.write
    headers = {"etag": etag(result)} if isinstance(result, Memory) else {}
    return json_answer(write(result), headers=headers)


def one_memory(memory: Nacre, request: Request, memory_id: str) -> Answer:
    """One memory in full, with its version."""
    known = {name: each for name, each in verbs()["get"].known.items() if name in ("entities", "neighbours", "session")}
    given = arguments.read(arguments.read_query(request.pairs, known), known)
    fetched = memory.get([memory_id], **given)
    (written,) = typing.cast("list[Json]", encode.fetched(fetched)["memories"])
    found = json_answer(written)
    version = etag(fetched.memories[0], found.body)
    if request.has(version):
        return Answer(304, headers={"etag": version})
    return replace(found, headers={"etag": version})


def etag(memory: Memory, body: bytes | None = None) -> str:
    """The version of a memory: each change makes it later. With `body`, that of all that is told of it.

    What a memory is linked to, and what stands beside it, changes without the memory.
    """
    digest = "" if body is None else f";{hashlib.sha256(body).hexdigest()[:16]}"
    return f'"{encode.moment(memory.updated)}{digest}"'


def check_flags(verb: Verb, request: Request) -> None:
    """Raise InvalidInput where a flag is wrong, or of other verbs: it would be ignored."""
    for name in FLAGS:
        several = [text for each, text in request.pairs if each == name]
        if several and name not in verb.flags:
            raise InvalidInput(name, "says nothing here; leave it out")
        if several:
            check_flag(name, several)
