"""The exceptions that Nacre raises.

    NacreError
    ├── InvalidInput             a value from the caller is not allowed (also a ValueError)
    │   └── AccessDenied         a confined engine was asked for another space, or for what is about all
    ├── NotFound                 no memory, fact, entity, lens or token has this id or name (also a LookupError)
    ├── Conflict                 the change contradicts what is stored (e.g. a restored twin)
    │   └── Outdated             the memory has changed since the version that the caller names
    ├── StoreError               the store failed
    │   ├── StoreUnavailable     path missing, unreadable or unwritable
    │   │   ├── MaybeStored      the connection was lost while a write was ended: it is stored wholly, or not at all
    │   │   └── SpaceMoved       the node does not answer for the space, another one does
    │   ├── StoreBusy            another process held the lock longer than the time-out
    │   ├── StoreFull            the disk is full; nothing was written
    │   │   └── QuotaExceeded    a space holds, or a session writes, as much as it may; nothing was written
    │   ├── StoreCorrupt         not a database, or a damaged one
    │   ├── StoreTooNew          written by a newer version of Nacre
    │   └── WrongKey             the key does not open the store, or there is none, or none is needed
    ├── EmbedderError            a model cannot be used
    │   ├── EmbedderUnavailable  a package or model file is missing or broken
    │   ├── EmbedderFailed       a model or endpoint of the user's own does not answer as it must; nothing was stored
    │   └── EmbedderMismatch     the store's vectors come from another model: run `nacre reembed`
    └── ServerError              a server refuses a request, or has no answer
        ├── ServerUnavailable    it cannot be reached, takes too long, or broke off its answer
        ├── ServerMismatch       it is of another version, or is no server of Nacre
        └── Unauthorized         the token is missing, unknown, expired or revoked

`serialization/encode.py` maps each class to an exit code. Messages are shown to people and agents unchanged, so each
says what was wrong, what is allowed and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SHOWN_CHARS_MAX = 200  # of an id or a name in a message


class NacreError(Exception):
    """The base class of Nacre's exceptions."""


class InvalidInput(NacreError, ValueError):
    """A value from the caller is not allowed. `field` names it; `problem` says what is wrong and what is allowed.

    `errors` lists the single problems of an input of many parts, for programs.
    """

    def __init__(self, field: str, problem: str, errors: Sequence[Mapping[str, str | int | None]] = ()) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
        self.errors = errors


class AccessDenied(InvalidInput):
    """A confined engine was asked for a space that it may not see, or for what is about all spaces."""


class NotFound(NacreError, LookupError):
    """No memory (or fact, entity, token) has one of these ids or names."""

    def __init__(
        self, ids: tuple[str, ...], hint: str = "check it with `nacre timeline`", what: str = "memory"
    ) -> None:
        named = ", ".join(
            repr(each if len(each) <= _SHOWN_CHARS_MAX else f"{each[:_SHOWN_CHARS_MAX]}…") for each in ids
        )
        super().__init__(f"id: no {what} {named}; {hint}")
        self.ids = ids


class Conflict(NacreError):
    """The change contradicts what is stored."""


class Outdated(Conflict):
    """The memory has changed since the version that the caller names. Nothing was written."""


class StoreError(NacreError):
    """The store failed."""


class StoreUnavailable(StoreError):
    """The path is missing, unreadable or unwritable."""


class MaybeStored(StoreUnavailable):
    """The connection was lost while a write was ended: it is stored wholly, or not at all."""


class SpaceMoved(StoreUnavailable):
    """The node does not answer for these spaces. Nothing was read or written."""

    def __init__(self, message: str, spaces: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.spaces = spaces


class StoreBusy(StoreError):
    """Another process held the lock longer than the time-out."""


class StoreFull(StoreError):
    """The disk is full. The write was rolled back."""


class QuotaExceeded(StoreFull):
    """A space holds, or a session writes, as much as it may. The write was rolled back.

    `quota` is the setting, `limit` its value, and `used` how much there was before.
    """

    def __init__(self, quota: str, limit: int, used: int, message: str) -> None:
        super().__init__(f"{quota}: {message}")
        self.quota = quota
        self.limit = limit
        self.used = used


class StoreCorrupt(StoreError):
    """The file is not a database, or a damaged one. `ids` are the damaged memories, where it is known which."""

    def __init__(self, message: str, ids: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ids = ids


class StoreTooNew(StoreError):
    """The file was written by a newer version of Nacre."""


class WrongKey(StoreError):
    """The key does not open the store; or it is encrypted and no key was given, or it is not and one was."""


class EmbedderError(NacreError):
    """A model cannot be used."""


class EmbedderUnavailable(EmbedderError):
    """A package or model file is missing or broken."""


class EmbedderFailed(EmbedderError):
    """A model or endpoint that the settings name does not answer, or answers wrongly.

    Unlike with the shipped model, texts are not stored without vectors: their owner chose this model, and learns at
    once that it is away.
    """


class EmbedderMismatch(EmbedderError):
    """The store's vectors come from another model."""


class ServerError(NacreError):
    """A server refuses a request, or has no answer."""


class ServerUnavailable(ServerError):
    """The server cannot be reached, takes too long, or broke off its answer."""


class ServerMismatch(ServerError):
    """The server is of a version that this one does not understand, or it is no server of Nacre."""


class Unauthorized(ServerError):
    """The server needs a token, or the token is unknown, expired or revoked."""
