"""all-MiniLM-L6-v2, run locally by ONNX Runtime. Nothing is downloaded.

A text's vector depends on the text alone, to the last bit. Only texts of equal length share a batch, so there is no
padding, and each run of the model uses one thread; several runs work in parallel. On a GPU (`cuda`), large batches
run one after another, and the last bits may differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.runtime import onnx_models
from nacre.types.memory import Span

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

FOLDER = onnx_models.EMBEDDER
MODEL_SHA256 = "d9ef11b3d433baa06499f2fa2b726cfaec98f946786cd35a1e8186b5de0a92b9"
DIMENSIONS = 384
SPECIAL_PIECES = 2  # [CLS] and [SEP] around the text
PIECES_MAX = 256 - SPECIAL_PIECES
BATCH_PIECES = 128  # small batches stay in the processor's cache
BATCH_PIECES_CUDA = 65_536  # large ones keep a GPU busy
WINDOW_TEXTS = 1024  # texts that are encoded at once and sorted by length


class MiniLM:
    """The embedder that ships with Nacre. The model is loaded when it is first needed."""

    def __init__(self, threads: int | None = None, folder: Path = FOLDER, *, cuda: bool = False) -> None:
        self._model = onnx_models.OnnxModel(
            folder / onnx_models.MODEL,
            folder / onnx_models.VOCABULARY,
            purpose="semantic search",
            fallback="search by keyword",
            cuda=cuda,
        )
        self._batch_pieces = BATCH_PIECES_CUDA if cuda else BATCH_PIECES
        self._threads = 1 if cuda else threads or os.cpu_count() or 1

    @property
    def fingerprint(self) -> str:
        return f"all-MiniLM-L6-v2/int8-block/256/mean/l2/{MODEL_SHA256[:12]}"

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return self._model.word_pieces().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._model.word_pieces().vocabulary_coverage(text, names=False)

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self._run([self._model.word_pieces().encode(text, PIECES_MAX)])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        pieces = self._model.word_pieces()
        if len(texts) == 1:
            return self._run([pieces.encode(texts[0], PIECES_MAX)])
        self._model.session()  # before the threads start, so that they do not wait for each other
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
        """The vectors of texts that have the same number of pieces."""
        vectors: FloatMatrix = self._model.run(encoded)[0]
        return vectors


def _batches(encoded: Sequence[Sequence[int]], batch_pieces: int = BATCH_PIECES) -> Iterator[list[int]]:
    """Batches of row numbers of texts of equal length. The longest come first, so that the last to finish are short."""
    by_length = sorted(range(len(encoded)), key=lambda row: len(encoded[row]), reverse=True)
    for length, rows in groupby(by_length, key=lambda row: len(encoded[row])):
        same = list(rows)
        size = max(batch_pieces // length, 1)
        for start in range(0, len(same), size):
            yield same[start : start + size]
