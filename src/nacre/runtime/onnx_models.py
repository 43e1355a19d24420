"""How are the files of a model that ships with Nacre read? Each failure says what to do, and what to do `instead`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.errors import EmbedderUnavailable
from nacre.runtime import native_packages

if TYPE_CHECKING:
    from nacre.analysis.wordpiece import WordPiece

EMBEDDER = Path(__file__).parents[1] / "embedders" / "minilm_l6_v2"
RERANKER = Path(__file__).parents[1] / "rerankers" / "nacre_rerank_v1"
MODEL, VOCABULARY = "model.onnx", "vocab.txt"  # in these folders
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"  # what ONNX Runtime computes on
LOADING = "nacre-model"  # the name of a thread that loads one
REINSTALL = "reinstall it with `pip install --force-reinstall nacre-memory`"


def word_pieces(vocabulary: Path, *, instead: str) -> WordPiece:
    try:
        return _read(vocabulary)
    except (OSError, ValueError, KeyError) as error:
        raise EmbedderUnavailable(
            f"the vocabulary {vocabulary} cannot be read ({error}); {REINSTALL}, or {instead}"
        ) from error


@cache  # models that share a vocabulary share its word pieces
def _read(vocabulary: Path) -> WordPiece:
    from nacre.analysis.wordpiece import WordPiece

    return WordPiece(vocabulary)


def session(model: Path, *, purpose: str, instead: str, cuda: bool = False) -> Any:
    """An ONNX Runtime session that works on one thread, or on a GPU, and says nothing."""
    if cuda:
        check_cuda()
    ahead = None if cuda else _ahead.pop(model, None)
    if ahead is not None:
        ahead.join()
        if ahead.session is not None:
            return ahead.session
    try:
        native_packages.onnxruntime()
    except ImportError as error:
        raise EmbedderUnavailable(
            f"{purpose} needs the packages numpy and onnxruntime ({error}); "
            f"install them with `pip install numpy onnxruntime`, or {instead}"
        ) from error
    if not model.is_file():
        raise EmbedderUnavailable(f"the model file {model} is missing; {REINSTALL}, or {instead}")
    try:
        loaded = _loaded(model, [CUDA] if cuda else [CPU])
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        raise EmbedderUnavailable(f"the model file {model} is damaged ({error}); {REINSTALL}, or {instead}") from error
    if cuda and CUDA not in loaded.get_providers():  # it falls back to the processor, and says nothing
        raise EmbedderUnavailable(
            "embedder: minilm-cuda found no GPU that it can use; check its driver and the CUDA libraries, "
            "or set embedder to minilm"
        )
    return loaded


def check_cuda() -> None:
    """Whoever asks for a GPU is told at once what is missing."""
    try:
        available = native_packages.onnxruntime().get_available_providers()
    except ImportError:
        available = []
    if CUDA not in available:
        raise EmbedderUnavailable(
            "embedder: minilm-cuda needs ONNX Runtime for CUDA; install it in place of the usual one with "
            "`pip uninstall --yes onnxruntime` and `pip install onnxruntime-gpu`, or set embedder to minilm"
        )


def load_ahead(models: Sequence[Path]) -> None:
    """Begin to load models that will be asked for, each in a thread: ONNX Runtime works beside Python. Whoever asks for
    one waits for it; what goes wrong is said then."""
    try:
        native_packages.onnxruntime()
    except ImportError:
        return
    for model in models:
        _ahead[model] = _Loading(model)
        _ahead[model].start()


class _Loading(threading.Thread):
    def __init__(self, model: Path) -> None:
        super().__init__(name=LOADING)
        self._model = model
        self.session: Any = None  # stays so where it cannot be loaded

    def run(self) -> None:
        try:
            self.session = _loaded(self._model, [CPU])
        except Exception:  # who asks for it tries again, and tells
            return


_ahead: dict[Path, _Loading] = {}


def _loaded(model: Path, providers: Sequence[str]) -> Any:
    onnxruntime = native_packages.onnxruntime()
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors come as exceptions; nothing may reach stderr besides
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graphs are fused by hand; what is left to do is to convert stored weights to floats, once.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(str(model), options, providers=list(providers))
