"""Who sends a request, and what may it do?

On loopback the one user of the machine needs no token, unless the server was started with `--require-token`. A page of
another site in that user's browser is kept out by the headers Host and Origin, which scripts cannot set.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nacre.access import Access
from nacre.engine.engine import Nacre
from nacre.errors import AccessDenied, InvalidInput
from nacre.http_api.answers import Refusal
from nacre.http_api.limits import FAILED_SIGN_INS_MAX
from nacre.serialization import decode
from nacre.serialization.routes import SPACES_HEADER
from nacre.types.access_tokens import ROLES, AccessToken, Role

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ADDRESSES_KEPT = 10_000
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Caller:
    """`id` is that of the token; the user of the machine has none. `spaces=None` is all of them."""

    id: str
    role: Role
    spaces: tuple[str, ...] | None

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def token(self) -> str | None:
        return None if self.id == LOCAL.id else self.id

    def narrowed(self, header: str | None) -> Caller:
        """The caller, who sees no other spaces than a request says."""
        if header is None:
            return self
        try:
            named = decode.texts(SPACES_HEADER, decode.json_line(header))
        except InvalidInput as problem:
            raise InvalidInput(SPACES_HEADER, f'{problem.problem}; write it like ["one", "two"]') from None
        if not named:
            raise InvalidInput(SPACES_HEADER, "names no space; leave it out, or name one")
        if self.spaces is not None:
            Access(self.spaces[0], self.spaces).allowed(SPACES_HEADER, named)
        return replace(self, spaces=named)

    def check(self, role: Role, *, everything: bool = False) -> None:
        """Raise Refusal unless the caller has this role, and with `everything` for all spaces."""
        if not self.may(role):
            raise Refusal(403, "Forbidden", f"needs a token of the role {role!r}; this one has {self.role!r}")
        if everything and self.spaces is not None:
            raise Refusal(403, "Forbidden", "needs a token for all spaces; this one is for some")

    def space(self, named: str | None, usual: str) -> str:
        """The space that a request works in: what it names, or the server's if it may be seen, or the first one."""
        if named is None:
            return usual if self.spaces is None or usual in self.spaces else self.spaces[0]
        if self.spaces is not None and named not in self.spaces:
            raise AccessDenied("space", f"{named!r} is not one of this token's spaces; see GET /v1/session")
        return named


LOCAL: Final = Caller("local", "admin", None)


class Callers:
    """Tells callers by their requests. The methods that take a token read the store, so call them in a thread."""

    def __init__(
        self,
        root: Nacre,
        *,
        token_needed: bool,
        hosts: frozenset[str],
        requests_per_minute: int = 0,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hosts` are the names that the server is known by; empty: any, because a token is needed."""
        self._root = root
        self.token_needed = token_needed
        self._hosts = hosts
        self._failed = Allowance(FAILED_SIGN_INS_MAX, timer)
        self._requests = Allowance(requests_per_minute, timer) if requests_per_minute else None

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise Refusal for a request to another host name, or from a page of another site."""
        host = headers.get("host", "")
        if self._hosts and _host_name(host) not in self._hosts:
            raise Refusal(
                403, "Forbidden", f"host {host!r} is not this server's; start it with --allowed-host to add it"
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "Forbidden", f"pages of {origin!r} may not use this server")

    def check_site(self, headers: Mapping[str, str]) -> None:
        """Raise Refusal for what a page of another site loads without an Origin, such as a picture."""
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "Forbidden", "pages of other sites may not use this server")

    def needs_store(self, headers: Mapping[str, str]) -> bool:
        """Whether `of` reads the store, and so belongs into a thread."""
        return "authorization" in headers

    def of(self, headers: Mapping[str, str], address: str) -> Caller:
        """The caller of a request. Raises Refusal without a valid token where one is needed."""
        given = headers.get("authorization")
        caller = LOCAL if given is None and not self.token_needed else self._with_token(given, address)
        if self._requests is not None and (wait := self._requests.spend(caller.id)):
            raise _too_many("requests", wait)
        return caller

    def recheck(self, caller: Caller, headers: Mapping[str, str]) -> None:
        """Raise Refusal if the token of a long request is not valid any more."""
        if caller.token is not None and self._token(headers.get("authorization")) is None:
            raise _refused(given=True)  # it was valid, so it is no guess that counts

    def _token(self, given: str | None) -> AccessToken | None:
        scheme, _, secret = (given or "").partition(" ")
        return self._root.authenticate(secret.strip()) if scheme.lower() == "bearer" and secret.strip() else None

    def _with_token(self, given: str | None, address: str) -> Caller:
        if given is not None and (wait := self._failed.wait(address)):
            raise _too_many("failed sign-ins", wait)
        token = self._token(given)
        if token is None:
            if given is not None:
                self._failed.spend(address)
            raise _refused(given=given is not None)
        return Caller(token.id, token.role, token.spaces)


class Allowance:
    """So many events a minute for each name, as a bucket that fills again evenly."""

    def __init__(self, per_minute: int, timer: Callable[[], float]) -> None:
        self._most = float(per_minute)
        self._timer = timer
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and since when
        self._lock = threading.Lock()

    def wait(self, name: str) -> float:
        """Seconds until the next event is allowed; 0: now."""
        with self._lock:
            return self._wait(self._now(name))

    def spend(self, name: str) -> float:
        """Count an event, unless it has to wait. Returns the seconds that it has to."""
        with self._lock:
            left = self._now(name)
            wait = self._wait(left)
            if not wait:
                self._left[name] = (left - 1, self._timer())
                self._left.move_to_end(name)
                if len(self._left) > _ADDRESSES_KEPT:
                    self._left.popitem(last=False)
            return wait

    def _now(self, name: str) -> float:
        left, since = self._left.get(name, (self._most, 0.0))
        return min(self._most, left + (self._timer() - since) * self._most / _MINUTE_S)

    def _wait(self, left: float) -> float:
        return 0.0 if left >= 1 else (1 - left) * _MINUTE_S / self._most


def _refused(*, given: bool) -> Refusal:
    said = "give a token, as Authorization: Bearer TOKEN; `nacre token create` makes one"
    wrong = ""
    if given:
        said = "the token is unknown, expired or revoked; `nacre token list` shows those that are valid"
        wrong = ', error="invalid_token"'
    return Refusal(401, "Unauthorized", said, {"www-authenticate": f'Bearer realm="nacre"{wrong}'})


def _too_many(what: str, wait: float) -> Refusal:
    seconds = str(max(1, math.ceil(wait)))
    return Refusal(429, "TooManyRequests", f"too many {what}; wait {seconds} s", {"retry-after": seconds})


def _host_name(host: str) -> str:
    """The name or address in a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
