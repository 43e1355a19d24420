"""A store that does not exist yet: empty, and nothing can be written to it."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from nacre.errors import StoreUnavailable
from nacre.storage.reference.store import MemoryStore
from nacre.types.stats import Stats


class MissingStore(MemoryStore):
    """Implements `nacre.interfaces.Store`. What changes a memory by its id fails by itself: there is none."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def stats(self) -> Stats:
        return replace(super().stats(), schema_version=0)

    def add(self, *_: object, **__: object) -> NoReturn:
        raise StoreUnavailable(f"store: {self._name} does not exist; open it with create=True to make it")

    put_entity = add
    put_lens = add
    add_token = add
    claim_answer = add

    def backup(self, *_: object, **__: object) -> NoReturn:
        raise StoreUnavailable(f"store: {self._name} does not exist, so there is nothing to back up; check the name")
