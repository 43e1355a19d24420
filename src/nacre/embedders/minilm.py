"""all-MiniLM-L6-v2, computed on this machine by ONNX Runtime. Nothing is downloaded.

A text's vector depends on its text alone, to the last bit: only texts of equal length share a batch, so no
padding enters the sums, and each run of the model uses one thread. Several runs work side by side instead. On a GPU
(`cuda`), which computes the last bits in its own way, all of it is one large run after the other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.runtime import onnx_models
from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.analysis.wordpiece import WordPiece
    from nacre.types.memory import FloatMatrix, FloatVector

FOLDER = onnx_models.EMBEDDER
MODEL_SHA256 = "d9ef11b3d433baa06499f2fa2b726cfaec98f946786cd35a1e8186b5de0a92b9"
DIMENSIONS = 384
SPECIAL_PIECES = 2  # one before and one after the text's own
PIECES_MAX = 256 - SPECIAL_PIECES
BATCH_PIECES = 128  # small batches stay in the processor's cache
BATCH_PIECES_CUDA = 65_536  # large ones keep a GPU busy
WINDOW_TEXTS = 1024  # so many texts are held as pieces at once, and sorted by length

INSTEAD = "search by keyword"


class MiniLM:
    """The embedder that ships with Nacre. The model is loaded when it is first needed."""

    def __init__(self, threads: int | None = None, folder: Path = FOLDER, *, cuda: bool = False) -> None:
        if cuda:
            onnx_models.check_cuda()
        self._cuda = cuda
        self._batch_pieces = BATCH_PIECES_CUDA if cuda else BATCH_PIECES
        self._threads = 1 if cuda else threads or os.cpu_count() or 1
        self._folder = folder
        self._lock = threading.Lock()
        self._pieces: WordPiece | None = None
        self._session: Any = None

    @property
    def fingerprint(self) -> str:
        return f"all-MiniLM-L6-v2/int8-block/256/mean/l2/{MODEL_SHA256[:12]}"

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return self._word_pieces().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._word_pieces().vocabulary_coverage(text, names=False)

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self._run([self._word_pieces().encode(text, PIECES_MAX)])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        pieces = self._word_pieces()
        if len(texts) == 1:
            return self._run([pieces.encode(texts[0], PIECES_MAX)])
        self._loaded()
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        vectors: FloatMatrix = np.empty((len(texts), DIMENSIONS), np.float32)
        with ThreadPoolExecutor(self._threads) as workers:
            for start in range(0, len(texts), WINDOW_TEXTS):
                encoded = [pieces.encode(text, PIECES_MAX) for text in texts[start : start + WINDOW_TEXTS]]
                batches = list(_batches(encoded, self._batch_pieces))
                runs = workers.map(self._run, ([encoded[row] for row in batch] for batch in batches))
                for batch, found in zip(batches, runs, strict=True):
                    vectors[[start + row for row in batch]] = found
        return vectors

    def _run(self, encoded: Sequence[Sequence[int]]) -> FloatMatrix:
        """Vectors of texts that have equally many pieces."""
        session = self._loaded()
        import numpy as np

        ids = np.array(encoded, np.int32)
        found: FloatMatrix = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
        return found

    def _word_pieces(self) -> WordPiece:
        if self._pieces is None:
            with self._lock:
                if self._pieces is None:
                    self._pieces = onnx_models.word_pieces(self._folder / onnx_models.VOCABULARY, instead=INSTEAD)
        return self._pieces

    def _loaded(self) -> Any:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = onnx_models.session(
                        self._folder / onnx_models.MODEL, purpose="semantic search", instead=INSTEAD, cuda=self._cuda
                    )
        return self._session


def _batches(encoded: Sequence[Sequence[int]], batch_pieces: int = BATCH_PIECES) -> Iterator[list[int]]:
    """Numbers of texts of equal length, longest first, so that the last batches to finish are short ones."""
    by_length = sorted(range(len(encoded)), key=lambda row: len(encoded[row]), reverse=True)
    for length, rows in groupby(by_length, key=lambda row: len(encoded[row])):
        same = list(rows)
        size = max(batch_pieces // length, 1)
        for start in range(0, len(same), size):
            yield same[start : start + size]
