"""The exceptions that Nacre raises.

    NacreError
    ├── InvalidInput             a value from the caller is not allowed (also a ValueError)
    │   └── PartlyRefused        some lines or files of an input are not allowed; all others were stored
    ├── NotFound                 no memory, fact, entity or lens has this id or name (also a LookupError)
    ├── Conflict                 the change contradicts what is stored (e.g. a restored twin)
    ├── StoreError               the store failed
    │   ├── StoreUnavailable     path missing, unreadable or unwritable
    │   ├── StoreBusy            another process held the lock longer than the time-out
    │   ├── StoreFull            the disk (or a quota) is full; nothing was written
    │   ├── StoreCorrupt         not a database, or a damaged one
    │   └── StoreTooNew          written by a newer version of Nacre
    └── EmbedderError            a model cannot be used
        ├── EmbedderUnavailable  a package or model file is missing or broken
        └── EmbedderMismatch     the store's vectors come from another model: run `nacre reembed`

`serialization/encode.py` maps each class to an exit code. Messages are shown to people and agents unchanged, so each
says what was wrong, what is allowed and what to do.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class NacreError(Exception):
    """The base class of Nacre's exceptions."""


class InvalidInput(NacreError, ValueError):
    """A value from the caller is not allowed. `field` names it; `problem` says what is wrong and what is allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Refusal(NamedTuple):
    """A line or file that was not stored. `field` is None if it could not be read at all."""

    place: int | str  # the number of the line, or the path
    field: str | None
    problem: str


class PartlyRefused(InvalidInput):
    """Some lines or files of an input were not stored; all others were."""

    def __init__(self, problem: str, what: Literal["line", "file"], refusals: tuple[Refusal, ...]) -> None:
        super().__init__("file", problem)
        self.what = what
        self.refusals = refusals


class NotFound(NacreError, LookupError):
    """No memory (or fact, entity, lens) has one of these ids or names."""

    def __init__(
        self, ids: tuple[str, ...], hint: str = "check it with `nacre timeline`", what: str = "memory"
    ) -> None:
        named = ", ".join(repr(each) for each in ids)
        super().__init__(f"id: no {what} {named}; {hint}")
        self.ids = ids


class Conflict(NacreError):
    """The change contradicts what is stored."""


class StoreError(NacreError):
    """The store failed."""


class StoreUnavailable(StoreError):
    """The path is missing, unreadable or unwritable."""


class StoreBusy(StoreError):
    """Another process held the lock longer than the time-out."""


class StoreFull(StoreError):
    """The disk is full. The write was rolled back."""


class StoreCorrupt(StoreError):
    """The file is not a database, or a damaged one."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of Nacre."""


class EmbedderError(NacreError):
    """A model cannot be used."""


class EmbedderUnavailable(EmbedderError):
    """A package or model file is missing or broken."""


class EmbedderMismatch(EmbedderError):
    """The store's vectors come from another model."""
