"""Which memories the threads of one process embed at this moment, for stores that leave this to the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import islice
from typing import TypeAlias

from nacre.interfaces import NOTHING_CLAIMED, Claimed
from nacre.runtime import forks
from nacre.types.search import Filter

Pending: TypeAlias = Callable[[Filter | None, int, str | None], list[tuple[str, str]]]
PendingTokens: TypeAlias = Callable[[Filter | None, int], list[tuple[str, str]]]


class Claims:
    """`alone` lets one process at a time claim anything: it gives whether this one may, until its block ends."""

    def __init__(
        self,
        pending: Pending,
        pending_tokens: PendingTokens,
        alone: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(True),
    ) -> None:
        self._pending = pending
        self._pending_tokens = pending_tokens
        self._alone = alone
        self._process: ExitStack | None = None  # what lets this process claim
        self.after_fork()
        forks.renew_in_child(self)

    @contextmanager
    def claimed(self, limit: int, *, tokens: bool, further: str | None = None) -> Iterator[Claimed]:
        """As in `nacre.interfaces.Store`."""
        with self._lock:
            found = self._free(limit, tokens, further) if self._may_claim() else NOTHING_CLAIMED
            ids = {*found.without_vectors, *found.without_tokens, *found.without_further}
            self._taken |= ids
            self._users += 1
        try:
            yield found
        finally:
            with self._lock:
                self._taken -= ids
                self._users -= 1
                if not self._users and self._process is not None:
                    self._process.close()
                    self._process = None

    def _may_claim(self) -> bool:
        if self._process is None:
            with ExitStack() as stack:
                if not stack.enter_context(self._alone()):
                    return False
                self._process = stack.pop_all()
        return True

    def _free(self, limit: int, tokens: bool, further: str | None) -> Claimed:
        looked_at = limit + len(self._taken)

        def free(listed: list[tuple[str, str]], most: int) -> dict[str, str]:
            return dict(islice((each for each in listed if each[0] not in self._taken), most))

        new = free(self._pending(None, looked_at, None), limit)
        left = limit - len(new)
        lacking = free(self._pending_tokens(None, looked_at), left) if tokens and left else {}
        left -= len(lacking)
        others = free(self._pending(None, looked_at, further), left) if further is not None and left else {}
        return Claimed(new, lacking, others)

    def after_fork(self) -> None:
        if self._process is not None:  # it is the parent's
            forks.leak(self._process)
        self._process = None
        self._lock = threading.Lock()
        self._taken: set[str] = set()
        self._users = 0
