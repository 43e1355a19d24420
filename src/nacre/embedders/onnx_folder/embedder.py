"""A model in a folder of its own, run locally by ONNX Runtime. Nothing is downloaded.

A text's vector depends on the text alone: only texts of equal length share a batch, so there is no padding, and a graph
that quantises its inputs as it runs, by the largest number of a batch, gets one text at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nacre.embedders.onnx_folder import files
from nacre.embedders.onnx_folder.pooling import normalised, pooled
from nacre.embedders.onnx_folder.vocabulary import Encoded, Vocabulary
from nacre.errors import EmbedderFailed
from nacre.runtime import equal_lengths, forks, onnx_models

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector, Span

BATCH_PIECES: Final = 256  # small batches stay in the processor's cache
SPECIAL_PIECES: Final = 2  # around the text
_STATES: Final = ("token_embeddings", "last_hidden_state")  # the outputs that are pooled, by their usual names
_QUANTISES: Final = "DynamicQuantize"  # operators that do begin with it
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_INSTALL: Final = "install it with `pip install 'nacre-memory[embedders]'`"


class OnnxFolder:
    """A model that is loaded when it is first needed. Raises InvalidInput at once for a folder that is none."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self._files = files.read(folder)
        self._threads = threads or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._vocabulary: Vocabulary | None = None
        self._graph: _Graph | None = None
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        return self._files.fingerprint

    @property
    def pieces_max(self) -> int:
        # A prompt has at most as many pieces as characters.
        return max(1, self._files.pieces_max - SPECIAL_PIECES - len(self._files.passage_prompt))

    @property
    def dimensions(self) -> int:
        """As the graph says, or as it answers."""
        graph = self._loaded()
        if graph.dimensions is None:
            graph.dimensions = len(self._alone("", ""))
        return graph.dimensions

    def weigh(self, text: str) -> list[tuple[Span, int]]:
        return self._words().weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._words().coverage(text)

    def embed_query(self, text: str) -> FloatVector:
        return self._alone(text, self._files.query_prompt)

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        import numpy as np

        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), np.float32)
        vocabulary, graph = self._words(), self._loaded()
        runs = equal_lengths.runs(
            texts,
            lambda text: self._encoded(vocabulary, text),
            self._run,
            threads=self._threads,
            batch_pieces=1 if graph.quantises else BATCH_PIECES,
            length=lambda encoded: len(encoded.ids),
        )
        for rows, _, found in runs:
            vectors[rows] = found
        return vectors

    def _encoded(self, vocabulary: Vocabulary, text: str) -> Encoded:
        return vocabulary.encode(text, self._files.passage_prompt, skips_prompt=not self._files.includes_prompt)

    def _alone(self, text: str, prompt: str) -> FloatVector:
        encoded = self._words().encode(text, prompt, skips_prompt=not self._files.includes_prompt)
        vector: FloatVector = self._run([encoded])[0]
        return vector

    def _run(self, rows: Sequence[Encoded]) -> FloatMatrix:
        """The vectors of texts of equal length."""
        import numpy as np

        graph = self._loaded()
        try:
            with forks.at_work():
                found = graph.run(rows)
            vectors = np.asarray(found, np.float32)
            if self._files.pooling:
                vectors = pooled(vectors, self._files.pooling, rows[0].prompt)
            for weight, bias, activation in graph.dense:
                vectors = vectors @ weight.T + bias
                vectors = np.tanh(vectors) if activation == "Tanh" else vectors
        except Exception as error:  # ONNX Runtime raises its own classes
            raise EmbedderFailed(f"embedder: {self._files.graph} cannot be run ({error})") from error
        return normalised(vectors)

    # ---- loading

    def _words(self) -> Vocabulary:
        if self._vocabulary is None:
            with forks.at_work(), self._lock:
                if self._vocabulary is None:
                    self._vocabulary = self._new_vocabulary()
        return self._vocabulary

    def _new_vocabulary(self) -> Vocabulary:
        its = self._files
        try:
            return Vocabulary(its.tokenizer, lower_case=its.lower_case, pieces_max=its.pieces_max)
        except ImportError as error:
            raise EmbedderFailed(f"embedder: onnx:{its.folder} needs the package tokenizers; {_INSTALL}") from error
        except Exception as error:  # tokenizers raises Exception itself
            raise EmbedderFailed(
                f"embedder: {its.tokenizer} cannot be read ({error}); take it from the model's page again"
            ) from error

    def _loaded(self) -> _Graph:
        if self._graph is None:
            with forks.at_work(), self._lock:
                if self._graph is None:
                    self._graph = _Graph(self._files)
        return self._graph


class _Graph:
    """A loaded graph: what it is given, and which of its outputs is taken."""

    def __init__(self, its: files.ModelFiles) -> None:
        self._session = onnx_models.load_foreign(its.graph)
        self.quantises = files.mentions(its.graph, _QUANTISES)
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        unknown = sorted(self._inputs.keys() - set(_INPUTS))
        if unknown or "input_ids" not in self._inputs:
            asked = f"asks for the input {unknown[0]}" if unknown else "has no input input_ids"
            raise EmbedderFailed(f"embedder: {its.graph} {asked}; {', '.join(_INPUTS)} are given")
        self._output = _output(its, {each.name: each.shape for each in self._session.get_outputs()})
        self.dense = [_layer(each) for each in its.dense]
        self.dimensions = self._said_dimensions(its)

    def run(self, rows: Sequence[Encoded]) -> Any:
        import numpy as np

        ids = np.array([each.ids for each in rows], np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([each.types for each in rows], np.int64),
            "position_ids": np.broadcast_to(np.arange(ids.shape[1]), ids.shape),
        }
        feeds = {
            name: given[name].astype(np.int32 if kind == "tensor(int32)" else np.int64)
            for name, kind in self._inputs.items()
        }
        return self._session.run([self._output], feeds)[0]

    def _said_dimensions(self, its: files.ModelFiles) -> int | None:
        """None: the graph does not say."""
        if self.dense:
            return len(self.dense[-1][0])
        last = {each.name: each.shape for each in self._session.get_outputs()}[self._output][-1]
        return last * max(1, len(its.pooling)) if isinstance(last, int) else None


def _output(its: files.ModelFiles, shapes: dict[str, list[Any]]) -> str:
    """The name of the output that vectors are made of."""
    if not its.pooling and files.VECTOR_OUTPUT in shapes:
        return files.VECTOR_OUTPUT
    by_piece = [name for name, shape in shapes.items() if len(shape) == 3]
    for name in (*_STATES, *by_piece):
        if its.pooling and name in by_piece:
            return name
    needed = "a vector for each word piece" if its.pooling else files.VECTOR_OUTPUT
    raise EmbedderFailed(
        f"embedder: {its.graph} has no output with {needed}, only {', '.join(shapes)}; export it for feature extraction"
    )


def _layer(dense: files.Dense) -> tuple[FloatMatrix, FloatVector | float, str]:
    try:
        arrays = files.linear(dense)
        return arrays["linear.weight"], arrays.get("linear.bias", 0.0), dense.activation
    except (OSError, ValueError, LookupError) as error:
        raise EmbedderFailed(f"embedder: {dense.weights} has no layer that can be read ({error!r})") from error
