"""Google's Universal Sentence Encoder, multilingual, version 3: one space of meaning for sixteen languages.

A question in one language finds what was written in another. The model is a distribution of its own,
nacre-memory-multilingual, which the extra `multilingual` installs; it is found wherever it is installed.

A text's vector depends on the text alone, to the last bit: as with MiniLM, only texts of equal length share a batch,
and each run of the model uses one thread.

The model tells texts that ask from texts that tell, whatever they are about: to every question a note that asks
something itself is near. So what all questions have in common is taken out of a question. Vectors of passages are those
of the model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailable
from nacre.runtime import equal_lengths, forks, onnx_models

if TYPE_CHECKING:
    from nacre.analysis.sentencepiece import SentencePiece
    from nacre.types.memory import FloatMatrix, FloatVector, Span

PACKAGE, DISTRIBUTION = "nacre_multilingual", "nacre-memory-multilingual"
MODEL, PIECES, QUESTIONS = "model.onnx", "pieces.bin", "questions.bin"  # in the folder of the package
MODEL_SHA256 = "22f1b1c86dc36671f6e3b7687118ce46ee84c3eb586165d98bfdd618ea3d98d0"
PIECES_SHA256 = "4ae6ba3f781ae714a55b9fcf4affba590c5d55c30350b34a565f5c4581e5a8d0"
QUESTIONS_SHA256 = "fbe6f725dd891d830e87de7d330f97dda71a48d2ae0ff13ca220c60d52c82863"
DIMENSIONS = 512
# Chinese in both scripts.
LANGUAGES = frozenset(["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"])
PIECES_MAX = 32  # of a passage: about 120 characters, which were found best
TEXT_PIECES_MAX = 256  # what is read of a question, or of a passage that is longer than it should be
BATCH_PIECES = 256
FALLBACK = "search by words"


def installed() -> Path | None:
    """The folder of the model, if the extra `multilingual` is installed. Imports and reads nothing."""
    found = find_spec(PACKAGE)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


class UseMultilingual:
    """The embedder of sixteen languages. The model is loaded when it is first needed."""

    def __init__(self, threads: int | None = None, folder: Path | None = None) -> None:
        folder = folder or installed()
        if folder is None:
            raise EmbedderUnavailable(
                "the multilingual model is missing; "
                f"install it with `pip install 'nacre-memory[multilingual]'`, or {FALLBACK}"
            )
        self._pieces = folder / PIECES
        self._questions = folder / QUESTIONS
        self._model = onnx_models.OnnxSession(
            folder / MODEL, purpose="search across languages", fallback=FALLBACK, package=DISTRIBUTION
        )
        self._threads = threads or os.cpu_count() or 1

    @property
    def fingerprint(self) -> str:
        return f"use-multilingual-3/{DIMENSIONS}/{MODEL_SHA256[:12]}/{PIECES_SHA256[:12]}"

    @property
    def languages(self) -> frozenset[str]:
        return LANGUAGES

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return self._tokenizer().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._tokenizer().vocabulary_coverage(text)

    def preload(self) -> None:
        """Start to load the model in the background. Whoever needs it first waits for it."""
        self._model.preload()

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self._run([self._tokenizer().encode(text, TEXT_PIECES_MAX)])[0]
        import numpy as np

        common = _load_questions(self._questions)
        vector = vector - (vector @ common) * common
        vector /= np.linalg.norm(vector)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        tokenizer = self._tokenizer()
        self._model.session()  # before the threads start, so that they do not wait for each other
        import numpy as np

        vectors: FloatMatrix = np.empty((len(texts), DIMENSIONS), np.float32)
        runs = equal_lengths.runs(
            texts,
            lambda text: tokenizer.encode(text, TEXT_PIECES_MAX),
            self._run,
            threads=self._threads,
            batch_pieces=BATCH_PIECES,
        )
        for rows, _, found in runs:
            vectors[rows] = found
        return vectors

    def _run(self, rows: Sequence[Sequence[int]]) -> FloatMatrix:
        self._model.session()  # reports a missing package before numpy is imported
        import numpy as np

        vectors: FloatMatrix = self._model.outputs({"input_ids": np.array(rows, np.int32)})[0]
        return vectors

    def _tokenizer(self) -> SentencePiece:
        with forks.at_work():
            return _load_pieces(self._pieces)


@cache
def _load_questions(path: Path) -> FloatVector:
    """What questions have in common: a direction of length 1."""
    import numpy as np

    try:
        direction: FloatVector = np.fromfile(path, "<f4").astype(np.float32)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(direction) != DIMENSIONS:
        raise _unreadable(path, f"{len(direction)} numbers instead of {DIMENSIONS}")
    return direction


def _unreadable(path: Path, error: object) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"the file {path} cannot be read ({error}); {onnx_models.reinstall(DISTRIBUTION)}, or {FALLBACK}"
    )


@cache
def _load_pieces(path: Path) -> SentencePiece:
    from nacre.analysis.sentencepiece import SentencePiece

    try:
        return SentencePiece(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
