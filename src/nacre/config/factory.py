"""The only place that joins a store, an embedder, a reranker and an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from nacre import validation
from nacre.engine.engine import Nacre
from nacre.engine.recall_log import LOG_DAYS
from nacre.errors import EmbedderMismatch, InvalidInput
from nacre.interfaces import Embedder, Reranker
from nacre.storage.sqlite import BUSY_TIMEOUT_MS, SqliteStore
from nacre.types.facts import FactType
from nacre.types.memory import DEFAULT_SPACE
from nacre.validation import LIMITS, Limits

EmbedderName: TypeAlias = Literal["minilm", "minilm-cuda", "hashing", "none"]


def open_store(
    path: str | os.PathLike[str],
    *,
    space: str = DEFAULT_SPACE,
    confined: bool = False,
    embedder: EmbedderName | Embedder | None = "minilm",
    reranker: Literal["auto"] | Reranker | None = "auto",
    threads: int = 0,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    limits: Limits = LIMITS,
    create: bool = True,
    switch_model: bool = False,
    time_zone: tzinfo | None = None,
    extract: bool = True,
    defer_embeddings: bool = False,
    decay_rates: Mapping[FactType, float] | None = None,
    log: bool = True,
    log_days: int = LOG_DAYS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Nacre:
    """Open a store. If there is no file it is made, or with `create=False` StoreUnavailable is raised.

    With `confined=True` memories of other spaces are as if they were not there, even for who knows their ids.
    `embedder` is a name, or an object with the methods of `nacre.interfaces.Embedder`; `reranker` is one with those
    of `nacre.interfaces.Reranker`, or "auto": Nacre's own beside the embedder "minilm", otherwise none. `threads=0`
    means one for each core. `switch_model=True` opens a store whose vectors come from another model, in order to
    call `reembed` on it. `time_zone` is the user's, for words like "yesterday"; None means the system's.
    `extract` reads facts from texts. `defer_embeddings=True` remembers without vectors, which `reembed` adds later:
    until then what is new is found by words, and searches say how many wait. `decay_rates` changes how fast types of
    facts fade, `log` keeps the recall log for `log_days`. `clock` gives the current time, for tests and replays.
    """
    validation.opening(space, threads, busy_timeout_ms, limits, log_days)  # before a file is made for nothing
    rates = validation.decay_rates(decay_rates or {})
    chosen = embedder_named(embedder, threads) if isinstance(embedder, str) else embedder
    reads_again = reranker_beside(embedder, threads) if reranker == "auto" else reranker
    if isinstance(reads_again, str):
        raise InvalidInput("reranker", f"{reads_again!r} is unknown; allowed: auto, None, or a reranker of your own")
    store = SqliteStore(Path(path), busy_timeout_ms, create)
    try:
        model = store.model()
        if chosen is not None and model not in (None, chosen.fingerprint) and not switch_model:
            raise EmbedderMismatch(
                f"embedder: the vectors of {path} come from {model}, not from {chosen.fingerprint}; "
                "run `nacre reembed` to compute them anew, or open it with the model it was written with"
            )
        return Nacre(
            store,
            chosen,
            reranker=reads_again,
            space=space,
            confined=confined,
            limits=limits,
            zone=time_zone,
            extract=extract,
            defer_embeddings=defer_embeddings,
            decay_rates=rates,
            log=log,
            log_days=log_days,
            clock=clock,
        )
    except BaseException:
        store.close()
        raise


def embedder_named(name: str, threads: int) -> Embedder | None:
    """The embedder of that name. Its model is loaded when it is first needed."""
    match name:
        case "minilm" | "minilm-cuda":  # the same model, whose vectors go together, on processors or on a GPU
            from nacre.embedders.minilm import MiniLM

            return MiniLM(threads=threads or None, cuda=name == "minilm-cuda")
        case "hashing":
            from nacre.embedders.hashing import Hashing

            return Hashing()
        case "none":
            return None
    raise InvalidInput("embedder", f"{name!r} is unknown; allowed: {', '.join(get_args(EmbedderName))}")


def reranker_beside(embedder: str | Embedder | None, threads: int) -> Reranker | None:
    """Nacre's own, where the embedder is. Its model is loaded when it is first needed."""
    if embedder not in ("minilm", "minilm-cuda"):
        return None
    from nacre.rerankers.nacre_rerank import NacreRerank

    return NacreRerank(threads=threads or None)
