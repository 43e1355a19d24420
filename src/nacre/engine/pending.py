"""Embeds what was remembered without vectors, beside any number of others that do the same.

A batch is claimed, embedded and written, and then no claim of it is left. While it is written, the next one is claimed
and embedded. Nothing else depends on claims: if one ends early, what was embedded twice is stored once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from nacre.engine.embedding import further_passages_of, passages_of
from nacre.engine.parts import Parts
from nacre.engine.updates import UpdateService
from nacre.errors import (
    EmbedderFailed,
    EmbedderMismatch,
    EmbedderUnavailable,
    InvalidInput,
    NacreError,
    StoreBusy,
    StoreUnavailable,
)
from nacre.interfaces import Claimed, Embedder
from nacre.types.memory import Passages, Progress

if TYPE_CHECKING:
    from concurrent.futures import Future

BATCH: Final = 64  # small, so that several workers share what is little, too
BATCH_MAX: Final = 512
POLL_S: Final = 1.0  # after which it is seen whether something has changed
RETRY_MAX_S: Final = 30.0  # between attempts while the store or the endpoint is away
_RECOUNT_S = 5.0
_log = logging.getLogger("nacre")


@dataclass(slots=True)
class _Batch:
    """Memories that are claimed until `claim` is closed, with what was computed for them."""

    claim: ExitStack
    claimed: Claimed
    embedded: dict[str, Passages]
    further: dict[str, Passages]


class PendingEmbedder:
    """One of any number of workers."""

    def __init__(self, parts: Parts, updates: UpdateService) -> None:
        self._parts = parts
        self._store = parts.store
        self._updates = updates

    @property
    def embedder(self) -> Embedder:
        if self._parts.embedder is None:
            raise EmbedderUnavailable("embedder: none is configured; set embedder to minilm or hashing")
        return self._parts.embedder

    def run(
        self,
        *,
        batch: int = BATCH,
        once: bool = False,
        stop: threading.Event | None = None,
        failed: Callable[[NacreError], None] = lambda _: None,
    ) -> Iterator[Progress]:
        """Embed what is pending, and then what becomes pending. Yields how much is done, and of how much.

        It ends when `stop` is set, after the batch that is being embedded; with `once`, when nothing is pending. While
        others have claimed all that is, it waits: they may be killed. Once it has begun, a store or endpoint that
        is away is asked again, and `failed` is told; with `once`, the error is raised.
        """
        if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= BATCH_MAX:
            raise InvalidInput("batch", f"is {batch!r}; a whole number from 1 to {BATCH_MAX} is allowed")
        assert self.embedder is not None  # or else an error now
        return self._run(batch, once, stop or threading.Event(), failed)

    def _run(
        self, batch: int, once: bool, stop: threading.Event, failed: Callable[[NacreError], None]
    ) -> Iterator[Progress]:
        if self._parts.further is not None:
            self._store.add_model(self._parts.further.fingerprint)
        done, counted, seen = 0, monotonic(), None
        total, pause = self._count(), POLL_S
        yield Progress(0, total)
        while not stop.is_set():
            try:
                sequence = self._store.sequence()  # before the look, so that nothing is missed
                if sequence != seen:
                    for written in self._batches(batch, stop):
                        done += written
                        if monotonic() - counted > _RECOUNT_S:
                            counted, total = monotonic(), done + self._count()
                        total = max(total, done)
                        yield Progress(done, total)
                    waiting = 0 if stop.is_set() else self._count()
                    if once and not waiting:
                        return
                    seen = None if waiting else sequence
                pause = POLL_S
            except (StoreUnavailable, StoreBusy, EmbedderFailed) as error:
                if once or (seen is None and not done):
                    raise
                failed(error)
                pause, seen = min(2 * pause, RETRY_MAX_S), None
            stop.wait(pause)

    def _count(self) -> int:
        """How many memories lack vectors or token vectors, and how many those of a further model, claimed ones
        included."""
        count = self._store.pending_count(None)
        if self._parts.token_embedder is not None:
            count += self._store.pending_tokens_count(None)
        if self._parts.further is not None:
            count += self._store.pending_count(None, self._parts.further.fingerprint)
        return count

    def _batches(self, limit: int, stop: threading.Event) -> Iterator[int]:
        """How much was written of each batch, until nothing is left to be claimed."""
        writing: tuple[_Batch, Future[int]] | None = None
        try:
            while True:
                new = None if stop.is_set() else self._embedded(limit)
                try:
                    written = None if writing is None else _written(*writing)
                except BaseException:
                    if new is not None:
                        new.claim.close()
                    raise
                finally:
                    writing = None
                if new is not None:
                    writing = new, self._parts.threads.start(self._write, new)
                if written is not None:
                    yield written
                elif new is None:
                    return
        finally:
            if writing is not None:
                writing[1].exception()
                writing[0].claim.close()

    def _embedded(self, limit: int) -> _Batch | None:
        tokens, further = self._parts.token_embedder, self._parts.further
        with ExitStack() as stack:
            claim: AbstractContextManager[Claimed] = self._store.claimed(
                limit, tokens=tokens is not None, further=None if further is None else further.fingerprint
            )
            claimed = stack.enter_context(claim)
            texts = claimed.without_vectors | claimed.without_tokens
            if not texts and not claimed.without_further:
                return None
            embedded = passages_of(self.embedder, tokens, texts) if texts else {}
            others = {} if further is None else further_passages_of(further, claimed.without_further)
            return _Batch(stack.pop_all(), claimed, embedded, others)

    def _write(self, batch: _Batch) -> int:
        tokens = self._parts.token_embedder
        token_model = None if tokens is None else tokens.token_fingerprint
        texts = batch.claimed.without_vectors | batch.claimed.without_tokens
        count = 0
        if batch.further and self._parts.further is not None:
            model = self._parts.further.fingerprint
            count += self._store.embed(batch.further, batch.claimed.without_further, model)
        if not texts:
            return count
        count += self._store.embed(batch.embedded, texts, self.embedder.fingerprint, token_model)
        if token_model is not None and self._store.token_model() != token_model:
            raise EmbedderMismatch(
                f"embedder: another process has changed the token vectors from {token_model} to those of "
                f"{self._store.token_model()} meanwhile; run `nacre reembed` in one process at a time"
            )
        # A memory that had vectors was compared with older ones before.
        new: Set[str] = batch.claimed.without_vectors.keys()
        self._updates.link_ids([each for each in new if self._updates.may_update(texts[each])])
        return count


def _written(batch: _Batch, writing: Future[int]) -> int:
    with batch.claim:
        return writing.result()
