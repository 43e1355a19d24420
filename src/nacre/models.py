"""How are the files of a model that ships with Nacre read? Each failure says what to do, and what to do `instead`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from nacre import natives
from nacre.errors import EmbedderUnavailable
from nacre.text.wordpiece import WordPiece

REINSTALL = "reinstall it with `pip install --force-reinstall nacre`"

_read = cache(WordPiece)  # models that share a vocabulary share its word pieces


def word_pieces(vocabulary: Path, *, instead: str) -> WordPiece:
    try:
        return _read(vocabulary)
    except (OSError, ValueError, KeyError) as error:
        raise EmbedderUnavailable(
            f"the vocabulary {vocabulary} cannot be read ({error}); {REINSTALL}, or {instead}"
        ) from error


def session(model: Path, *, purpose: str, instead: str) -> Any:
    """An ONNX Runtime session that works on one thread and says nothing."""
    try:
        onnxruntime = natives.onnxruntime()
    except ImportError as error:
        raise EmbedderUnavailable(
            f"{purpose} needs the packages numpy and onnxruntime ({error}); "
            f"install them with `pip install numpy onnxruntime`, or {instead}"
        ) from error
    if not model.is_file():
        raise EmbedderUnavailable(f"the model file {model} is missing; {REINSTALL}, or {instead}")
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors come as exceptions; nothing may reach stderr besides
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graphs are fused by hand; what is left to do is to convert stored weights to floats, once.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        raise EmbedderUnavailable(f"the model file {model} is damaged ({error}); {REINSTALL}, or {instead}") from error
