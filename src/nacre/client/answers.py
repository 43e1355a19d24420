"""What an answer over HTTP says: the result of the verb, or the error that the library would raise."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import nacre
from nacre.client.requests import Refuse
from nacre.client.uploads import Part
from nacre.engine.engine import Nacre
from nacre.errors import NacreError, NotFound, ServerError, ServerMismatch, ServerUnavailable
from nacre.serialization import errors, results, transfer
from nacre.serialization.routes import VERSION_HEADER
from nacre.types.memory import Remembered

_AWAY: Final = (502, 503, 504)  # what a proxy says for a server that it does not reach


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of an answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]


def result(verb: str, head: Head, body: bytes, url: str) -> Any:
    """The result of a verb. Raises what the server says is wrong."""
    check(head, body, url)
    if head.status == 204:
        return None
    read = results.decoder(_hint(verb))
    return _understood(lambda: read(json.loads(body)), head, url)


def remembered(part: Part, head: Head, body: bytes, url: str) -> Iterator[list[Remembered]]:
    """The batches that an answer to a part of many items tells of. What was refused is reported."""
    try:
        check(head, body, url)
    except NacreError as error:
        raise part.numbered(error) from None
    if part.refused is None:
        yield result("remember_many", head, body, url)
        return
    lines = Lines()
    yield from items("remember_batches", lines.of(body), part.refuse, head, url)
    lines.check_end(url)


def check(head: Head, body: bytes, url: str) -> None:
    """Raise the error that an answer tells, or that it is of no server that this version understands."""
    theirs = head.headers.get(VERSION_HEADER.lower())
    if theirs is None:
        if head.status in _AWAY:
            raise ServerUnavailable(unavailable(url, f"a proxy before it says {head.status}"))
        raise ServerMismatch(_no_server(head, url))
    if _series(theirs) != _series(nacre.__version__):
        raise ServerMismatch(
            f"server: {url} has version {theirs} of Nacre, which this client of version {nacre.__version__} does not "
            "understand; install the same version on both sides"
        )
    if head.status < 300:
        return
    told = errors.error(_json(body))
    if isinstance(told, NotFound) and not told.ids:  # it is the path that is not found
        raise ServerMismatch(f"server: {url} has no such verb ({told}); check the URL, and the version of the server")
    raise told if told is not None else ServerError(f"server: {url} answered with status {head.status}")


def unavailable(url: str, reason: str) -> str:
    return f"server: {url} cannot be reached ({reason}); start it with `nacre serve`, or check the URL"


def broken_off(url: str, reason: str) -> ServerUnavailable:
    return ServerUnavailable(f"server: {url} broke off its answer ({reason}); call again")


def _no_server(head: Head, url: str) -> str:
    place = head.headers.get("location")
    said = f"it sends to {place}" if place else f"it answered {head.headers.get('content-type', 'nothing')}"
    remedy = "connect to that URL" if place else "check the URL"
    mine = nacre.__version__
    return f"server: {url} is no server of Nacre {mine} (status {head.status}, no version; {said}); {remedy}"


def _series(version: str) -> tuple[str, ...]:
    """Versions with the same first number understand each other, before 1.0 those with the same second one, too."""
    first, *others = version.split(".")
    return (first, *others[:1]) if first == "0" else (first,)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _understood(read: Callable[[], Any], head: Head, url: str) -> Any:
    """What is read from an answer. Raises ServerMismatch for JSON of another shape."""
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        theirs = head.headers.get(VERSION_HEADER.lower())
        raise ServerMismatch(
            f"server: the answer of {url}, version {theirs}, cannot be read by version {nacre.__version__} "
            f"({type(error).__name__}: {str(error)[:100]}); install the same version on both sides"
        ) from error


@cache
def _hint(verb: str) -> Any:
    """The type of a verb's result; of a stream that of its items."""
    hint = typing.get_type_hints(getattr(Nacre, verb))["return"]
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Iterator else hint


# ---------------------------------------------------------------- streams


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that says what is wrong with an item."""

    number: int
    error: NacreError


class Lines:
    """Lines from chunks of bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this chunk."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [each for each in whole if each.strip()]

    def check_end(self, url: str) -> None:
        if self._rest.strip():
            raise broken_off(url, "in the middle of a line")


def line_of(verb: str, line: bytes, head: Head, url: str) -> Any:
    """One line of a stream: an item, or one that was refused. Raises the error that ended it."""
    value = _understood(lambda: json.loads(line), head, url)
    if isinstance(value, dict) and "error" in value and value.keys() <= {"error", "refused"}:
        told: NacreError = errors.error(value) or ServerError(f"server: {url} ended the answer with an error")
        if "refused" in value:
            return Refused(value["refused"], told)
        raise told
    read = transfer.read_line if verb == "export" else None
    return _understood(lambda: read(line) if read else results.decoder(_hint(verb))(value), head, url)


def items(verb: str, lines: list[bytes], refused: Refuse | None, head: Head, url: str) -> Iterator[Any]:
    """The items of a stream. What was refused is reported."""
    for line in lines:
        item = line_of(verb, line, head, url)
        if not isinstance(item, Refused):
            yield item
        elif refused is not None:
            refused(item.number, item.error)
