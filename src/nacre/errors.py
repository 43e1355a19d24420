"""Every error Nacre raises on purpose, in one tree.

    NacreError
    ├── InvalidInput             a value the caller gave is not allowed (also a ValueError)
    ├── NotFound                 nothing has this id or name (also a LookupError)
    ├── Conflict                 the change contradicts what is stored (e.g. a restored twin)
    ├── StoreError               the store could not do its work
    │   ├── StoreUnavailable     path missing, unreadable or unwritable
    │   ├── StoreBusy            another process kept the lock longer than the time-out
    │   ├── StoreFull            the disk (or a quota) is full; nothing was written
    │   ├── StoreCorrupt         not a database, or a damaged one
    │   └── StoreTooNew          written by a newer version of Nacre
    └── EmbedderError            meaning is not available
        ├── EmbedderUnavailable  a package or model file is missing or broken
        └── EmbedderMismatch     the store's vectors come from another model: run `nacre reembed`

`wire.py` maps each class to an exit code. Messages say what was wrong, what is allowed
and what to do, because they are shown to people and agents as they are.
"""

from __future__ import annotations


class NacreError(Exception):
    """Base of all errors raised on purpose."""


class InvalidInput(NacreError, ValueError):
    """A value the caller gave is not allowed. `field` names it; `problem` says what is wrong and allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


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
    """The store could not do its work."""


class StoreUnavailable(StoreError):
    """The path is missing, unreadable or unwritable."""


class StoreBusy(StoreError):
    """Another process kept the lock longer than the time-out."""


class StoreFull(StoreError):
    """No room on the disk; the write was undone."""


class StoreCorrupt(StoreError):
    """The file is not a database, or a damaged one."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of Nacre."""


class EmbedderError(NacreError):
    """Meaning is not available."""


class EmbedderUnavailable(EmbedderError):
    """A package or model file is missing or broken."""


class EmbedderMismatch(EmbedderError):
    """The store's vectors come from another model."""
