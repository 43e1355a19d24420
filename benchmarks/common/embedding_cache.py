"""A cache of vectors and token vectors, so that only the first run of a benchmark waits for the model.

One SQLite file per model under `.cache/`. Several processes may fill it at once, and an interrupted run loses only its
last batch. Passages are cached in half precision, which is what a store keeps, and questions in full precision, so a
search returns the same with and without the cache.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from benchmarks.common.paths import CACHE
from nacre.interfaces import TokenEmbedder
from nacre.types.memory import Span
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


BATCH = 256  # texts between two commits
WAIT_S = 120  # for another process to write

Kind: TypeAlias = Literal["passages", "queries"]
KEPT: dict[Kind, np.dtype[np.float16] | np.dtype[np.float32]] = {
    "passages": np.dtype("<f2"),
    "queries": np.dtype("<f4"),
}


class CachedEmbedder:
    """Computes only the vectors that are not in the cache."""

    def __init__(self, embedder: TokenEmbedder, folder: Path = CACHE, threads: int = 1) -> None:
        self._embedder = embedder
        self._threads = threads
        self._lock = threading.Lock()
        self._queries: dict[str, FloatVector] = {}  # in memory, so that no search waits for the file
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", embedder.fingerprint)
        self._file = sqlite3.connect(folder / f"vectors-{name}.db", timeout=WAIT_S, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._tokens = re.sub(r"\W+", "_", embedder.token_fingerprint)
        query = f"CREATE TABLE IF NOT EXISTS {self._tokens} (text_sha1 BLOB PRIMARY KEY, vectors BLOB NOT NULL)"
        self._file.execute(query)
        for kind in KEPT:
            self._file.execute(f"CREATE TABLE IF NOT EXISTS {kind} (text_sha1 BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def pieces_max(self) -> int:
        return self._embedder.pieces_max

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        return self._embedder.weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._embedder.vocabulary_coverage(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        found = self._found("passages", texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            found |= self._keep("passages", batch, self._embedder.embed_passages(batch))
        return np.stack([found[text] for text in texts])

    @property
    def token_fingerprint(self) -> str:
        return self._embedder.token_fingerprint

    @property
    def token_format(self) -> TokenFormat:
        return self._embedder.token_format

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        tokens = self._found_tokens(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in tokens]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors, packed = self._embedder.embed_with_tokens(batch)
            self._keep("passages", batch, vectors)
            rows = [(_key(text), each) for text, each in zip(batch, packed, strict=True)]
            with self._lock, self._file:
                self._file.executemany(f"INSERT OR IGNORE INTO {self._tokens} VALUES (?, ?)", rows)
            tokens |= zip(batch, packed, strict=True)
        return self.embed_passages(texts), [tokens[text] for text in texts]

    def query_tokens(self, text: str) -> QueryTokens:
        return self._embedder.query_tokens(text)

    def token_spans(self, text: str) -> list[Span]:
        return self._embedder.token_spans(text)

    def embed_query(self, text: str) -> FloatVector:
        if text not in self._queries:
            self.load_queries([text])
        return self._queries[text]

    def load_queries(self, texts: Sequence[str]) -> None:
        """Load or compute the vectors of these questions, so that no search waits for the model."""
        self._queries |= self._found("queries", texts)
        missing = [text for text in dict.fromkeys(texts) if text not in self._queries]
        with ThreadPoolExecutor(self._threads) as workers:
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                vectors = np.stack(list(workers.map(self._embedder.embed_query, batch)))
                self._queries |= self._keep("queries", batch, vectors)

    def close(self) -> None:
        self._file.close()

    def _found(self, kind: Kind, texts: Sequence[str]) -> dict[str, FloatVector]:
        found: dict[str, FloatVector] = {}
        with self._lock:
            for text in texts:
                query = f"SELECT vector FROM {kind} WHERE text_sha1 = ?"
                row = self._file.execute(query, [_key(text)]).fetchone()
                if row is not None:
                    found[text] = np.frombuffer(row[0], KEPT[kind]).astype(np.float32)
        return found

    def _found_tokens(self, texts: Sequence[str]) -> dict[str, bytes]:
        query = f"SELECT vectors FROM {self._tokens} WHERE text_sha1 = ?"
        with self._lock:
            rows = {text: self._file.execute(query, [_key(text)]).fetchone() for text in texts}
        return {text: bytes(row[0]) for text, row in rows.items() if row is not None}

    def _keep(self, kind: Kind, texts: Sequence[str], vectors: FloatMatrix) -> dict[str, FloatVector]:
        """Store vectors, and return them as a later run will find them: rounded."""
        kept = vectors.astype(KEPT[kind])
        rows = [(_key(text), vector.tobytes()) for text, vector in zip(texts, kept, strict=True)]
        with self._lock, self._file:
            self._file.executemany(f"INSERT OR IGNORE INTO {kind} VALUES (?, ?)", rows)
        return dict(zip(texts, kept.astype(np.float32), strict=True))


def _key(text: str) -> bytes:
    return hashlib.sha1(text.encode("utf-8", "surrogatepass")).digest()
