"""all-MiniLM-L6-v2, run locally by ONNX Runtime. Nothing is downloaded.

The pass that makes the vector of a text also makes token vectors, by a small side network in the same file. A query's
token vectors come from an encoder of their own, nacre-tokens, because a question does not look like its answer.

A text's vector depends on the text alone, to the last bit. Only texts of equal length share a batch, so there is no
padding, and each run of the model uses one thread; several runs work in parallel. On a GPU (`cuda`), large batches
run one after another, and the last bits may differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.ranking.late_interaction import pack
from nacre.runtime import equal_lengths, onnx_models
from nacre.types.memory import Span
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    from nacre.analysis.wordpiece import WordPiece
    from nacre.types.memory import FloatMatrix, FloatVector

FOLDER, TOKENS_FOLDER = onnx_models.EMBEDDER, onnx_models.TOKENS
MODEL_SHA256 = "b10ecc3dc418e85178db71cce0ddd1571340a15c3f8b89c306128c57ea457cd9"
TOKENS_SHA256 = "c62da217a5effc2d6ae9c1873f83f4fb1d7431eed2ca34403bc72aec690a9fe2"
# The file that the vectors of older stores come from. The side network was added to it and changes no vector.
SENTENCES_SHA256 = "d9ef11b3d433baa06499f2fa2b726cfaec98f946786cd35a1e8186b5de0a92b9"
TOKEN_FORMAT = TokenFormat(dimensions=64, bits=4)
DIMENSIONS = 384
SPECIAL_PIECES = 2  # [CLS] and [SEP] around the text
PIECES_MAX = 256 - SPECIAL_PIECES
BATCH_PIECES = 128  # small batches stay in the processor's cache
BATCH_PIECES_CUDA = 65_536  # large ones keep a GPU busy
QUERY_PIECES = 40  # that get token vectors, as in training
# As in training/token_data.py: pieces of a text that get no token vector, besides punctuation. Dropping them nearly
# halves what is stored.
_FUNCTION_WORDS = (
    "a an the of to in and or is are was were be been being am do does did it its that this these those with as for "
    "on at by from but so if than then there s"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_NOWHERE = Span(0, 0)  # of the pieces that mark the beginning and the end


class MiniLM:
    """The embedder that ships with Nacre. The model is loaded when it is first needed."""

    def __init__(
        self,
        threads: int | None = None,
        folder: Path = FOLDER,
        tokens_folder: Path = TOKENS_FOLDER,
        *,
        cuda: bool = False,
    ) -> None:
        self._model = onnx_models.OnnxModel(
            folder / onnx_models.MODEL,
            folder / onnx_models.VOCABULARY,
            purpose="semantic search",
            fallback="search by keyword",
            cuda=cuda,
        )
        self._query_tokens = onnx_models.OnnxModel(
            tokens_folder / onnx_models.MODEL,
            folder / onnx_models.VOCABULARY,
            purpose="late interaction",
            fallback="search without reranking",
        )
        self._kept: dict[int, bool] = {}  # by piece, whether it gets a token vector
        self._batch_pieces = BATCH_PIECES_CUDA if cuda else BATCH_PIECES
        self._threads = 1 if cuda else threads or os.cpu_count() or 1

    @property
    def fingerprint(self) -> str:
        return f"all-MiniLM-L6-v2/int8-block/256/mean/l2/{SENTENCES_SHA256[:12]}"

    @property
    def token_fingerprint(self) -> str:
        form = f"{TOKEN_FORMAT.dimensions}x{TOKEN_FORMAT.bits}"
        return f"nacre-tokens-v1/{form}/{MODEL_SHA256[:8]}-{TOKENS_SHA256[:8]}"

    @property
    def token_format(self) -> TokenFormat:
        return TOKEN_FORMAT

    @property
    def pieces_max(self) -> int:
        return PIECES_MAX

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return self._model.word_pieces().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._model.word_pieces().vocabulary_coverage(text, names=False)

    def embed_query(self, text: str) -> FloatVector:
        encoded = self._model.word_pieces().encode(text, PIECES_MAX)
        vector: FloatVector = self._model.run([encoded], ["embedding"])[0][0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        vectors: FloatMatrix = np.empty((len(texts), DIMENSIONS), np.float32)
        for rows, _, (found,) in self._runs(texts, ["embedding"]):
            vectors[rows] = found
        return vectors

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        import numpy as np

        pieces = self._model.word_pieces()
        vectors: FloatMatrix = np.empty((len(texts), DIMENSIONS), np.float32)
        packed = [b""] * len(texts)
        for rows, encoded, (found, tokens) in self._runs(texts, ["embedding", "tokens"]):
            vectors[rows] = found
            every = np.frombuffer(pack(tokens.reshape(-1, TOKEN_FORMAT.dimensions), TOKEN_FORMAT), np.uint8)
            by_text = every.reshape(len(rows), -1, TOKEN_FORMAT.token_bytes)
            for row, ids, of_text in zip(rows, encoded, by_text, strict=True):
                packed[row] = of_text[self._kept_places(pieces, ids)].tobytes()
        return vectors, packed

    def query_tokens(self, text: str) -> QueryTokens:
        pieces = self._query_tokens.word_pieces()
        encoded = pieces.encode(text, QUERY_PIECES)
        (vectors,), (weights,) = self._query_tokens.run([encoded], ["vectors", "weights"])
        return QueryTokens((_NOWHERE, *pieces.first_spans(text, QUERY_PIECES), _NOWHERE), vectors, weights)

    def token_spans(self, text: str) -> list[Span]:
        pieces = self._model.word_pieces()
        spans = [_NOWHERE, *pieces.first_spans(text, PIECES_MAX), _NOWHERE]
        return [spans[place] for place in self._kept_places(pieces, pieces.encode(text, PIECES_MAX))]

    def _kept_places(self, pieces: WordPiece, encoded: Sequence[int]) -> list[int]:
        """The places of the pieces that get a token vector. The first stands for the whole text and always does."""
        kept = self._kept
        for number in encoded:
            if number not in kept:
                piece = pieces.piece(number)
                is_word = any(map(str.isalnum, piece.removeprefix("##")))
                kept[number] = is_word and piece not in FUNCTION_WORDS
        last = len(encoded) - 1
        return [place for place, number in enumerate(encoded) if kept[number] and place != last]

    def _runs(
        self, texts: Sequence[str], outputs: Sequence[str]
    ) -> Iterator[tuple[list[int], list[list[int]], list[FloatMatrix]]]:
        """Numbers of texts that have the same number of pieces, their pieces, and the outputs of the model for them."""
        pieces = self._model.word_pieces()
        if len(texts) == 1:
            alone = [pieces.encode(texts[0], PIECES_MAX)]
            yield [0], alone, self._model.run(alone, outputs)
            return
        self._model.session()  # before the threads start, so that they do not wait for each other
        yield from equal_lengths.runs(
            texts,
            lambda text: pieces.encode(text, PIECES_MAX),
            lambda rows: self._model.run(rows, outputs),
            threads=self._threads,
            batch_pieces=self._batch_pieces,
        )
