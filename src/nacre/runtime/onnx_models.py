"""Loads ONNX models when they are first used: those that ship with Nacre, with their vocabularies, and others.

Every failure raises EmbedderUnavailable with what to install or reinstall, and the fallback that works without the
model. One of a model of the user's own is EmbedderFailed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.errors import EmbedderFailed, EmbedderUnavailable
from nacre.runtime import forks, native_packages

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nacre.analysis.wordpiece import WordPiece

EMBEDDER = Path(__file__).parents[1] / "embedders" / "minilm_l6_v2"
TOKENS = Path(__file__).parents[1] / "embedders" / "nacre_tokens_v1"
RERANKER = Path(__file__).parents[1] / "rerankers" / "nacre_rerank_v3"
MODEL, VOCABULARY = "model.onnx", "vocab.txt"  # in these folders
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"  # ONNX Runtime's execution providers
LOADING = "nacre-model"  # the name of the threads that preload models
PACKAGE = "nacre-memory"


class OnnxSession:
    """A model that is loaded on first use. Safe to share between threads.

    `purpose` and `fallback` complete error messages: what needs the model, and what to do without it. `package` is the
    distribution that the file belongs to.
    """

    def __init__(self, model: Path, *, purpose: str, fallback: str, package: str = PACKAGE, cuda: bool = False) -> None:
        if cuda:
            check_cuda()
        self._model = model
        self._purpose = purpose
        self._fallback = fallback
        self._package = package
        self._cuda = cuda
        self._lock = threading.Lock()
        self._session: Any = None
        self._forked = False  # with a session on a GPU
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        """A session without threads of its own goes on in a child; what a GPU holds does not."""
        self._lock = threading.Lock()
        if self._cuda and self._session is not None:
            self._session = None
            self._forked = True

    def session(self) -> Any:
        if self._session is None:
            with forks.at_work(), self._lock:
                if self._forked:
                    raise EmbedderUnavailable(
                        "embedder: minilm-cuda does not work in a forked process; "
                        'start processes with multiprocessing.get_context("spawn")'
                    )
                if self._session is None:
                    self._session = load_session(
                        self._model,
                        purpose=self._purpose,
                        fallback=self._fallback,
                        package=self._package,
                        cuda=self._cuda,
                    )
        return self._session

    def preload(self) -> None:
        """Start to load the model in the background. Whoever needs it first waits for it."""
        if self._session is None and not self._cuda:
            load_ahead([self._model])

    def outputs(self, inputs: Mapping[str, npt.NDArray[np.int32]], names: Sequence[str] | None = None) -> Any:
        session = self.session()
        with forks.at_work():
            return session.run(names, inputs)


class OnnxModel(OnnxSession):
    """A model that reads word pieces, with their vocabulary, each loaded on first use."""

    def __init__(self, model: Path, vocabulary: Path, *, purpose: str, fallback: str, cuda: bool = False) -> None:
        super().__init__(model, purpose=purpose, fallback=fallback, cuda=cuda)
        self._vocabulary = vocabulary
        self._word_pieces: WordPiece | None = None

    def word_pieces(self) -> WordPiece:
        if self._word_pieces is None:
            with forks.at_work(), self._lock:
                if self._word_pieces is None:
                    self._word_pieces = load_word_pieces(self._vocabulary, fallback=self._fallback)
        return self._word_pieces

    def run(self, rows: Sequence[Sequence[int]], outputs: Sequence[str] | None = None) -> Any:
        """The model's outputs for rows of word pieces. All rows have the same length, so there is no padding."""
        self.session()  # reports a missing package before numpy is imported
        import numpy as np

        ids = np.array(rows, np.int32)
        return self.outputs({"input_ids": ids, "attention_mask": np.ones_like(ids)}, outputs)


def reinstall(package: str) -> str:
    return f"reinstall it with `pip install --force-reinstall {package}`"


def load_word_pieces(vocabulary: Path, *, fallback: str) -> WordPiece:
    try:
        return _read_vocabulary(vocabulary)
    except (OSError, ValueError, KeyError) as error:
        raise EmbedderUnavailable(
            f"the vocabulary {vocabulary} cannot be read ({error}); {reinstall(PACKAGE)}, or {fallback}"
        ) from error


@cache  # models that share a vocabulary share its word pieces
def _read_vocabulary(vocabulary: Path) -> WordPiece:
    from nacre.analysis.wordpiece import WordPiece

    return WordPiece(vocabulary)


def load_session(model: Path, *, purpose: str, fallback: str, package: str = PACKAGE, cuda: bool = False) -> Any:
    """A silent ONNX Runtime session that runs on one thread, or on a GPU. A preloaded model is used once."""
    if cuda:
        check_cuda()
    preloading = None if cuda else _preloading.pop(model, None)
    if preloading is not None:
        preloading.join()
        if preloading.session is not None:
            return preloading.session
    try:
        native_packages.onnxruntime()
    except ImportError as error:
        raise EmbedderUnavailable(
            f"{purpose} needs the packages numpy and onnxruntime ({error}); "
            f"install them with `pip install numpy onnxruntime`, or {fallback}"
        ) from error
    if not model.is_file():
        raise EmbedderUnavailable(f"the model file {model} is missing; {reinstall(package)}, or {fallback}")
    try:
        session = _new_session(model, [CUDA] if cuda else [CPU])
    except Exception as error:  # ONNX Runtime raises its own classes, which have no common base
        raise EmbedderUnavailable(
            f"the model file {model} is damaged ({error}); {reinstall(package)}, or {fallback}"
        ) from error
    if cuda and CUDA not in session.get_providers():  # ONNX Runtime falls back to the CPU without an error
        raise EmbedderUnavailable(
            "embedder: minilm-cuda found no usable GPU; check the driver and the CUDA libraries, "
            "or set embedder to minilm"
        )
    return session


def load_foreign(model: Path) -> Any:
    """The same for a graph of the user's own, on the processor. It is optimised as a whole."""
    try:
        return _new_session(model, [CPU], ours=False)
    except ImportError as error:
        raise EmbedderUnavailable(
            f"{model} needs the packages numpy and onnxruntime ({error}); "
            "install them with `pip install numpy onnxruntime`, or search by keyword"
        ) from error
    except Exception as error:  # ONNX Runtime raises its own classes, which have no common base
        raise EmbedderFailed(f"embedder: the graph {model} cannot be loaded ({error}); export it again") from error


def check_cuda() -> None:
    """Raise EmbedderUnavailable if ONNX Runtime has no CUDA support."""
    try:
        available = native_packages.onnxruntime().get_available_providers()
    except ImportError:
        available = []
    if CUDA not in available:
        raise EmbedderUnavailable(
            "embedder: minilm-cuda needs ONNX Runtime for CUDA; replace the CPU package with "
            "`pip uninstall --yes onnxruntime` and `pip install onnxruntime-gpu`, or set embedder to minilm"
        )


def load_ahead(models: Sequence[Path]) -> None:
    """Start to load models in the background, one thread each: ONNX Runtime loads without holding Python's lock.

    `load_session` waits for a model that is still loading. It tries again where preloading failed, and reports the
    error.
    """
    try:
        native_packages.onnxruntime()
    except ImportError:
        return
    for model in models:
        if model not in _preloading:
            _preloading[model] = _Preloading(model)
            _preloading[model].start()


class _Preloading(threading.Thread):
    def __init__(self, model: Path) -> None:
        super().__init__(name=LOADING)
        self._model = model
        self.session: Any = None  # None after a failure

    def run(self) -> None:
        try:
            with forks.at_work():
                self.session = _new_session(self._model, [CPU])
        except Exception:  # `load_session` tries again, and reports the error
            return


_preloading: dict[Path, _Preloading] = {}


def _new_session(model: Path, providers: Sequence[str], *, ours: bool = True) -> Any:
    onnxruntime = native_packages.onnxruntime()
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised; nothing is printed to stderr
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if ours:  # the graphs are already fused; what is left is the conversion of stored weights to floats, once
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # Stored weights are converted to floats. To compute with them as they are would move vectors.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(str(model), options, providers=list(providers))
