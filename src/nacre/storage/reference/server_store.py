"""What a server keeps in the reference store: access tokens and answers. And what changed, for those that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, cast

from nacre.interfaces import StoreCopying
from nacre.storage.reference.change_log import ChangeLog, LoggedEvent
from nacre.types.access_tokens import AccessToken
from nacre.types.changes import Change, ChangePage
from nacre.types.copying import CopyMark
from nacre.types.kept_answers import CLAIM_LASTS, KEPT, Claim, KeptAnswer

if TYPE_CHECKING:
    from nacre.storage.reference.store import MemoryStore


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that is being carried out or, `answered`, was. `purged`: memories were purged since it was claimed."""

    request: bytes
    ticket: str
    at: datetime
    answered: bool = False
    purged: bool = False
    answer: KeptAnswer | None = None


class ServerTables:
    """Implements `nacre.interfaces.ServerStore` for the store that has these events and changes."""

    _lock: AbstractContextManager[bool]
    _events: list[LoggedEvent]
    _changes: ChangeLog

    def __init__(self) -> None:
        self._access_tokens: dict[str, tuple[AccessToken, bytes]] = {}
        self._requests: dict[str, _Request] = {}  # by key
        self._tickets = count()
        self._copied: dict[str, CopyMark] = {}  # by the id of the store that was copied

    # ---- copies of all of it

    def copying(self) -> StoreCopying:
        from nacre.storage.reference.copying import ReferenceCopying

        return ReferenceCopying(cast("MemoryStore", self))

    # ---- what changed

    def changes(self, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
        with self._lock:
            last = self._changes.last
            events = [
                Change(each.seq, each.at, "memory", each.action, each.memory_id, each.space) for each in self._events
            ]
            found = sorted((*events, *self._changes.listed()), key=lambda each: each.seq)
        if since is None:
            return ChangePage((), last)
        seen = [each for each in found if each.seq > since and each.space in spaces and each.name]
        more = len(seen) > limit
        return ChangePage(tuple(seen[:limit]), seen[limit - 1].seq if more else last, more)

    # ---- access tokens

    def add_token(self, token: AccessToken, secret_hash: bytes) -> None:
        with self._lock:
            self._access_tokens[token.id] = token, secret_hash

    def tokens(self) -> list[AccessToken]:
        with self._lock:
            every = [token for token, _ in self._access_tokens.values()]
        return sorted(every, key=lambda each: (each.created, each.id), reverse=True)

    def token(self, token_id: str) -> tuple[AccessToken, bytes] | None:
        return self._access_tokens.get(token_id)

    def drop_token(self, token_id: str) -> bool:
        with self._lock:
            return self._access_tokens.pop(token_id, None) is not None

    # ---- kept answers

    def claim_answer(self, key: str, request: bytes, now: datetime) -> Claim:
        with self._lock:
            self._requests = {name: each for name, each in self._requests.items() if each.at > now - KEPT}
            known = self._requests.get(key)
            if known is not None and known.request != request:
                return Claim("different")
            if known is not None and known.answered:
                return Claim("answered", answer=known.answer)
            if known is not None and known.at > now - CLAIM_LASTS:
                return Claim("running")
            ticket = str(next(self._tickets))
            self._requests[key] = _Request(request, ticket, now)
            return Claim("claimed", ticket)

    def keep_answer(self, ticket: str, answer: KeptAnswer, now: datetime) -> None:
        with self._lock:
            for key, each in self._claimed(ticket):
                kept = None if each.purged and answer.quotes else answer
                self._requests[key] = replace(each, at=now, answered=True, answer=kept)

    def drop_claim(self, ticket: str) -> None:
        with self._lock:
            for key, _ in self._claimed(ticket):
                del self._requests[key]

    def _claimed(self, ticket: str) -> list[tuple[str, _Request]]:
        return [(key, each) for key, each in self._requests.items() if each.ticket == ticket and not each.answered]

    def _purge_answers(self) -> None:
        """Delete all answers that may quote memories, and those that are being made now as soon as they are there."""
        for key, each in self._requests.items():
            if not each.answered or (each.answer is not None and each.answer.quotes):
                self._requests[key] = replace(each, purged=True, answer=None)
