"""Numbers for Prometheus: how long verbs and stages of searches take, and what is left to be done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from nacre.engine.engine import Nacre
from nacre.http_api.answers import Answer
from nacre.http_api.options import NUMBERS_FOLDER

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The numbers of one server process."""

    def __init__(self, root: Nacre) -> None:
        folder = os.environ.get(NUMBERS_FOLDER)  # prometheus_client reads it, too
        registry = CollectorRegistry()
        self._requests = Counter(
            "nacre_http_requests", "Requests by path and status.", ["method", "path", "status"], registry=registry
        )
        self._request_seconds = Histogram(
            "nacre_http_request_seconds",
            "From the request to its answer.",
            ["path"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._verb_seconds = Histogram(
            "nacre_verb_seconds", "Time in a verb of the engine.", ["verb"], registry=registry, buckets=_SECONDS
        )
        self._stage_seconds = Histogram(
            "nacre_search_stage_seconds", "Time in a stage of a search.", ["stage"], registry=registry, buckets=_SECONDS
        )
        if folder is not None:  # what this process has is in the folder, too
            registry = CollectorRegistry()
            MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        registry.register(_OfStore(root))
        self._registry = registry

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        self._requests.labels(method, path, str(status)).inc()
        self._request_seconds.labels(path).observe(seconds)

    def verb(self, name: str, seconds: float) -> None:
        self._verb_seconds.labels(name).observe(seconds)

    def stage(self, name: str, seconds: float) -> None:
        self._stage_seconds.labels(name).observe(seconds)

    def answer(self) -> Answer:
        """The numbers as text. It reads the store, so call it in a thread."""
        encoder, kind = choose_encoder("text/plain")
        return Answer(200, encoder(self._registry), kind)


class _OfStore:
    """What the store says when it is asked."""

    def __init__(self, root: Nacre) -> None:
        self._root = root

    def collect(self) -> Iterator[Any]:
        stats = self._root.stats()
        memories = GaugeMetricFamily("nacre_memories", "Live memories by space.", labels=["space"])
        for space, count in stats.spaces.items():
            memories.add_metric([space], count)
        yield memories
        waiting = GaugeMetricFamily(
            "nacre_pending_further", "Live memories to embed by a further model.", labels=["model"]
        )
        for model, count in stats.further_models.items():
            waiting.add_metric([model], count)
        yield waiting
        for name, help_text, value in (
            ("nacre_forgotten_memories", "Forgotten memories.", stats.forgotten),
            ("nacre_passages", "Passages with vectors.", stats.passages),
            ("nacre_pending_embeddings", "Live memories without vectors.", stats.pending),
            ("nacre_pending_token_vectors", "Live memories without token vectors.", stats.pending_tokens),
            ("nacre_store_bytes", "Size of the store's file.", stats.size_bytes),
            ("nacre_index_bytes", "Size of the index files beside it.", stats.index_bytes),
        ):
            yield GaugeMetricFamily(name, help_text, value=value)
