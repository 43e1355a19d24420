"""What every service of an engine works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from time import monotonic
from typing import NamedTuple

from nacre import validation
from nacre.access import Access
from nacre.engine.screening import Screening
from nacre.errors import Conflict, NotFound
from nacre.interfaces import Embedder, FurtherEmbedder, Store, TokenEmbedder
from nacre.query.ast import Condition, Unexpired
from nacre.runtime.threads import Threads
from nacre.types.memory import Memory
from nacre.types.secrets import DEFAULT_SECRET_POLICY
from nacre.validation import Limits

_EXPIRED_AT_ONCE = 1_000  # memories that a verb that reads forgets at the most, so that it does not take long


class ByKey(NamedTuple):
    """The ids of memories that were named by their keys, and the keys that no live memory has."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """The store and the models of an engine, what it may access, and its clock."""

    store: Store
    embedder: Embedder | None
    access: Access
    limits: Limits
    zone: tzinfo | None  # the user's time zone; None: the machine's
    clock: Callable[[], datetime]
    make_ids: Callable[[datetime, int], list[str]]
    threads: Threads
    token_embedder: TokenEmbedder | None = None  # the same embedder; None: it has no token vectors, or none are wanted
    further: FurtherEmbedder | None = None  # beside the embedder, for other languages than English
    namespace_weights: Mapping[str, float] = field(default_factory=dict)  # of searches that bring none of their own
    timer: Callable[[], float] = monotonic  # in seconds, for time limits
    screening: Screening = field(default_factory=lambda: Screening(DEFAULT_SECRET_POLICY))  # of all that is stored
    observe: Callable[[str, float], None] | None = None  # is told how many seconds each stage of a search took

    # ---- memories by id, as far as access allows

    def ids(self, ids: str | Sequence[str]) -> tuple[str, ...]:
        """Validated ids. To a confined engine, memories of other spaces are unknown: it raises NotFound."""
        named = validation.ids([ids] if isinstance(ids, str) else ids, self.limits)
        if self.access.confined:
            visible = self.visible(named)
            missing = tuple(each for each in named if each not in visible)
            if missing:
                raise NotFound(missing)
        return named

    def id(self, memory_id: str) -> str:
        """The validated id of one memory."""
        return self.ids(validation.looked_up("memory_id", memory_id))[0]

    def visible(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Those of these memories that exist and may be read."""
        now = self.clock()
        return {each: memory.seen_at(now) for each, memory in self.store.get(ids).items() if self.access.sees(memory)}

    def by_key(self, keys: str | Sequence[str], space: str | None, *, missing_ok: bool = False) -> ByKey:
        """The live memories of these keys, in a space or else the engine's own. Raises NotFound unless `missing_ok`."""
        named = validation.keys([keys] if isinstance(keys, str) else keys, self.limits)
        within = validation.space(space, self.access, self.limits)
        ids = self.store.identified([(within, each) for each in named], self.clock()) if named else {}
        missing = tuple(each for each in named if (within, each) not in ids)
        if missing and not missing_ok:
            raise NotFound(missing, what="memory with the key")
        return ByKey(tuple(ids[within, each] for each in named if (within, each) in ids), missing)

    def unexpired(self) -> Condition | None:
        """Forget what has expired, without waiting for others. What cannot be forgotten now is kept out by a condition.

        Every verb that finds memories calls this first.
        """
        expires = self.store.next_expiry()
        if expires is None:
            return None
        now = self.clock()
        return None if expires > now or self.store.expire(now, _EXPIRED_AT_ONCE) else Unexpired(now)

    def live(self, memory_id: str) -> Memory:
        """A memory that is not forgotten."""
        checked = self.id(memory_id)
        memory = self.visible([checked]).get(checked)
        if memory is None:
            raise NotFound((checked,))
        if memory.deleted is not None and memory.deleted == memory.expires:
            raise Conflict(f"id: memory {checked} has expired; remember it anew")
        if memory.deleted is not None:
            raise Conflict(f"id: memory {checked} is forgotten; restore it first")
        return memory
