"""Which server is called, and how. Also the space that requests work in, and those they may see."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from nacre import validation
from nacre.access import Access
from nacre.errors import InvalidInput
from nacre.serialization.routes import LOG_HEADER, SPACE_HEADER, SPACES_HEADER
from nacre.validation import LIMITS

TOKEN_VARIABLE = "NACRE_TOKEN"  # noqa: S105 - a name, not a token
_RETRIES_MAX = 10


@dataclass(frozen=True, slots=True)
class Server:
    """A server of Nacre. `timeout_s` is how long a call may take, with all its attempts."""

    url: str
    token: str = field(repr=False)
    timeout_s: float
    retries: int

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True)
class Place:
    """The space that a request works in, and those that it may see. None leaves it to the server and the token."""

    space: str | None = None
    spaces: tuple[str, ...] | None = None
    log: bool = True  # whether it enters the recall log

    def headers(self) -> dict[str, str]:
        named = {} if self.space is None else {SPACE_HEADER: self.space}
        seen = {} if self.spaces is None else {SPACES_HEADER: json.dumps(self.spaces)}
        return {**named, **seen, **({} if self.log else {LOG_HEADER: "false"})}

    def within(self, space: str, confined: bool | Sequence[str], *, log: bool = True) -> Place:
        """Another place. One that is confined can only be narrowed, as with `Nacre.within`."""
        other = validation.access(space, confined, LIMITS)
        if self.space is not None and self.spaces is not None:
            own = Access(self.space, self.spaces)
            if other.spaces is None:
                own.check_unconfined("confined", "false allows")
            own.allowed("confined", other.spaces or ())
        return Place(_named(other.space), other.spaces, validation.yes_or_no("log", log) and self.log)


def server_of(url: str, token: str | None, timeout_s: float, retries: int) -> Server:
    """The server at a URL. Raises InvalidInput for what cannot be one, and never shows a token."""
    validation.whole("retries", retries, 0, _RETRIES_MAX)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < float("inf"):
        raise InvalidInput("timeout_s", f"is {validation.shown(timeout_s)}; seconds above 0 are allowed")
    return Server(_url(url), _token(token), float(timeout_s), retries)


def place_of(space: str | None) -> Place:
    return Place(None if space is None else _named(validation.space_name(space, LIMITS)))


def _named(space: str) -> str:
    if re.search(r"^[ \t]|[ \t]$|[\n\r\f\v]", space):
        raise InvalidInput("space", f"{validation.shown(space)} has blanks that a header cannot have; use another name")
    return space


def _url(url: str) -> str:
    said = validation.any_text("url", url)
    try:
        parts = urlsplit(said)
        port = parts.port  # a ValueError if it is no number
        (parts.hostname or "").encode("idna")  # a UnicodeError, which is one, too, if a part is empty or too long
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or re.search(r"[\s\\]", said):
        raise InvalidInput(
            "url", f"{validation.shown(said)} is no URL of a server; write it like http://127.0.0.1:8642"
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url", "has a user or a password, which a server of Nacre does not know; give a token")
    if parts.query or parts.fragment:
        raise InvalidInput("url", "has a query or a fragment; leave out what begins with ? or #")
    return said.rstrip("/")


def _token(token: str | None) -> str:
    given = os.environ.get(TOKEN_VARIABLE, "") if token is None else validation.any_text("token", token)
    if re.search(r"[^\x21-\x7e]", given):
        raise InvalidInput("token", "has characters that no token has; copy it again, without spaces or line breaks")
    return given
