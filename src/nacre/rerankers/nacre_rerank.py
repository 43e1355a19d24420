"""nacre-rerank, Nacre's own cross-encoder, computed on this machine by ONNX Runtime. Nothing is downloaded.

It reads a question and a text together and says how well the text answers. A score depends on these two alone, to
the last bit: each pair is a run of its own on one thread, without padding. Several runs work side by side.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.interfaces import RerankText
from nacre.runtime import onnx_models

if TYPE_CHECKING:
    from nacre.analysis.wordpiece import WordPiece

FOLDER = onnx_models.RERANKER
VOCABULARY = onnx_models.EMBEDDER / onnx_models.VOCABULARY  # it was begun from that model
MODEL_SHA256 = "c40c1347a2331eed17ce6d4fec0c179f678c23b4ddac819ab82fdc5dd0d51413"

# As in training/examples.py: what the model reads must look like what it learned from.
FIRST, BREAK = 101, 102  # [CLS], [SEP]
TEXT_BEGINS, TEXT_ENDS = 2, 3  # [unused1], [unused2]: the text to judge stands between them, its neighbours outside
PIECES_MAX = 192  # of all together
QUESTION_PIECES = 40
TEXT_PIECES = 96  # of a text between neighbours; one that stands alone may fill what is left
NEIGHBOUR_PIECES = 12  # the beginning of each; twice as many found no more and took a quarter longer

INSTEAD = "search without reranking"


class NacreRerank:
    """The reranker that ships with Nacre. The model is loaded when it is first needed."""

    def __init__(self, threads: int | None = None, folder: Path = FOLDER) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._folder = folder
        self._lock = threading.Lock()
        self._pieces: WordPiece | None = None
        self._session: Any = None

    @property
    def fingerprint(self) -> str:
        return f"nacre-rerank-v1/{PIECES_MAX}/{MODEL_SHA256[:12]}"

    def load(self) -> None:
        """Load the model beside other work, before it is needed."""
        self._loaded()

    def vocabulary_coverage(self, question: str) -> float:
        # Names that someone made up are compared letter by letter, which needs no learning.
        return self._word_pieces().vocabulary_coverage(question, names=True)

    def scores(self, question: str, texts: Sequence[RerankText]) -> list[float]:
        if not texts:
            return []
        pieces = self._word_pieces()
        asked = pieces.first_pieces(question, QUESTION_PIECES)
        pairs = [_paired(pieces, asked, text) for text in texts]
        self._loaded()
        side_by_side = min(self._threads, len(pairs))
        if side_by_side == 1:
            return [self._run(pair) for pair in pairs]
        from concurrent.futures import ThreadPoolExecutor

        # The longest first, so that the last runs to finish are short ones.
        order = sorted(range(len(pairs)), key=lambda row: len(pairs[row]), reverse=True)
        found = [0.0] * len(pairs)
        with ThreadPoolExecutor(side_by_side) as workers:
            for row, score in zip(order, workers.map(self._run, (pairs[row] for row in order)), strict=True):
                found[row] = score
        return found

    def _run(self, pair: Sequence[int]) -> float:
        session = self._loaded()
        import numpy as np

        ids = np.array([pair], np.int32)
        (found,) = session.run(["score"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        return float(found[0])

    def _word_pieces(self) -> WordPiece:
        if self._pieces is None:
            with self._lock:
                if self._pieces is None:
                    self._pieces = onnx_models.word_pieces(VOCABULARY, instead=INSTEAD)
        return self._pieces

    def _loaded(self) -> Any:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = onnx_models.session(
                        self._folder / onnx_models.MODEL, purpose="reranking", instead=INSTEAD
                    )
        return self._session


def _paired(pieces: WordPiece, asked: Sequence[int], placed: RerankText) -> list[int]:
    """Question and text as the model reads them. What is too long is cut at its end."""
    before = pieces.first_pieces(placed.before, NEIGHBOUR_PIECES)
    after = pieces.first_pieces(placed.after, NEIGHBOUR_PIECES)
    if before or after:
        text = pieces.first_pieces(placed.text, TEXT_PIECES)
        return [FIRST, *asked, BREAK, *before, TEXT_BEGINS, *text, TEXT_ENDS, *after, BREAK]
    text = pieces.first_pieces(placed.text, PIECES_MAX - len(asked) - 3)
    return [FIRST, *asked, BREAK, *text, BREAK]
