"""How long does a search take, from the question to the hits, with the models that ship?

    python -m benchmarks.latency [--data ../shared/eval] [--sizes 10000,100000] [--questions 200] [--busy]

Every question is new, so that no cache has its vectors, scores or result. Each way of reranking gets questions of its
own in turn. The memories are real sentences; their vectors and token vectors are random, because that changes no time.
--busy keeps every core busy with other work meanwhile.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import nacre
from benchmarks.common import report
from benchmarks.common.given_vectors import GivenVectors
from benchmarks.common.paths import EVAL
from benchmarks.common.sentences import questions, sentences
from benchmarks.common.speed_nacre import FILE, NacreFilling
from benchmarks.rivals.base import Rows
from nacre.embedders.minilm import TOKEN_FORMAT, MiniLM
from nacre.types.recipe import Recipe, adjusted
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, Span

BATCH = 2_000
TOKENS_A_WORD = 0.7  # function words and punctuation have none
WAYS: dict[str, nacre.SearchRequest] = {
    "not reranked": nacre.SearchRequest(query="", rerank=False),
    "MaxSim alone": nacre.SearchRequest(query="", recipe=adjusted(Recipe(), rerank_weight=0)),
    "fast (the default)": nacre.SearchRequest(query=""),
    "fast, no time limit": nacre.SearchRequest(query="", recipe=adjusted(Recipe(), rerank_ms=0)),
    "full": nacre.SearchRequest(query="", rerank="full"),
}


class GivenTokens(GivenVectors):
    """Given vectors, and random token vectors."""

    token_format: TokenFormat = TOKEN_FORMAT

    def __init__(self) -> None:
        super().__init__()
        self._model = MiniLM()
        self.token_fingerprint = self._model.token_fingerprint
        self._random = np.random.default_rng(1)

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        tokens = [max(1, int(TOKENS_A_WORD * len(text.split()))) for text in texts]
        return self.embed_passages(texts), [self._random.bytes(each * TOKEN_FORMAT.token_bytes) for each in tokens]

    def query_tokens(self, text: str) -> QueryTokens:
        return self._model.query_tokens(text)

    def token_spans(self, text: str) -> list[Span]:
        return self._model.token_spans(text)


class Filling(NacreFilling):
    embedder = GivenTokens


def main() -> None:
    parser = report.parser(__doc__, "latency")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sizes", default="10000,100000", help="memories (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=200, help="of each way (default: %(default)s)")
    parser.add_argument("--busy", action="store_true", help="keep every core busy with other work")
    options = parser.parse_args()
    asked = questions(options.data, len(WAYS) * options.questions)
    rows: list[dict[str, object]] = [{"memories": 0, "way": "embedding alone"} | embedding(asked[: options.questions])]
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), sentences(options.data, size))
            rows += measured(Path(folder), size, asked, busy=options.busy)
    report.write(options.name, {"Milliseconds of a search, with the embedding of the question": rows})


def fill(folder: Path, texts: Sequence[str]) -> None:
    filling, generator = Filling(folder), np.random.default_rng(2)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        vectors = generator.standard_normal((len(batch), 384), np.float32)
        filling.add(Rows(start, batch, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)))
    filling.index()
    filling.close()


def measured(folder: Path, size: int, asked: Sequence[str], *, busy: bool) -> list[dict[str, object]]:
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    with nacre.open(folder / FILE, log=False) as memory, other_work(busy):
        for request in WAYS.values():  # models are loaded, pages are in memory
            memory.search(replace(request, query="what was it that nobody asked about so far?"))
        for number, question in enumerate(asked):
            way = list(WAYS)[number % len(WAYS)]
            start = time.perf_counter()
            memory.search(replace(WAYS[way], query=question))
            taken[way].append(1000 * (time.perf_counter() - start))
    return [{"memories": size, "way": way} | figures(each) for way, each in taken.items()]


def embedding(asked: Sequence[str]) -> dict[str, object]:
    model, taken = MiniLM(), []
    model.embed_query("warm")
    for question in asked:
        start = time.perf_counter()
        model.embed_query(question)
        taken.append(1000 * (time.perf_counter() - start))
    return figures(taken)


def figures(taken: Sequence[float]) -> dict[str, object]:
    ordered = sorted(taken)
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[int(0.95 * len(ordered))], 1)}


@contextmanager
def other_work(busy: bool) -> Iterator[None]:
    workers = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(multiprocessing.cpu_count() * busy)]
    for each in workers:
        each.start()
    try:
        yield
    finally:
        for each in workers:
            each.terminate()


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
