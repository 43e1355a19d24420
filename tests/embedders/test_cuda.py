"""Embedding on a GPU: only on request, with an error that says what to do if there is none.

ONNX Runtime is replaced by a stand-in that computes on the CPU and claims to have a GPU.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.embedders.minilm import BATCH_PIECES_CUDA, MiniLM
from nacre.errors import EmbedderUnavailable
from nacre.runtime import native_packages, onnx_models

TEXTS = ["tea", "a longer text about tea", "green tea", "coffee", "tea"]


class Runtime:
    """Looks like onnxruntime with these providers; sessions get `given` of them."""

    def __init__(self, available: list[str], given: list[str] | None = None) -> None:
        self._real = native_packages.onnxruntime()
        self._available = available
        self._given = given
        self.asked: list[list[str]] = []
        self.runs: list[tuple[int, ...]] = []
        self.SessionOptions = self._real.SessionOptions
        self.GraphOptimizationLevel = self._real.GraphOptimizationLevel

    def disable_telemetry_events(self) -> None: ...

    def get_available_providers(self) -> list[str]:
        return self._available

    def InferenceSession(self, model: str, options: Any, providers: list[str]) -> Any:  # noqa: N802
        self.asked.append(providers)
        real = self._real.InferenceSession(model, options, providers=[onnx_models.CPU])

        def run(names: Any, inputs: dict[str, Any]) -> Any:
            self.runs.append(inputs["input_ids"].shape)
            return real.run(names, inputs)

        return SimpleNamespace(run=run, get_providers=lambda: self._given or providers)


def pretend(monkeypatch: pytest.MonkeyPatch, available: list[str], given: list[str] | None = None) -> Runtime:
    runtime = Runtime(available, given)
    monkeypatch.setattr(native_packages, "onnxruntime", lambda: runtime)
    return runtime


def test_the_gpu_computes_what_the_processor_does_in_large_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = MiniLM().embed_passages(TEXTS)
    runtime = pretend(monkeypatch, [onnx_models.CUDA, onnx_models.CPU])
    model = MiniLM(threads=8, cuda=True)
    assert np.array_equal(model.embed_passages(TEXTS), expected)
    assert runtime.asked == [[onnx_models.CUDA]]
    assert sum(texts for texts, _ in runtime.runs) == len(TEXTS)
    assert len({pieces for _, pieces in runtime.runs}) == len(runtime.runs)  # texts of equal length go together
    assert all(texts * pieces <= BATCH_PIECES_CUDA for texts, pieces in runtime.runs)
    assert model.fingerprint == MiniLM().fingerprint


def test_nobody_gets_a_gpu_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pretend(monkeypatch, [onnx_models.CUDA, onnx_models.CPU])
    MiniLM().embed_query("tea")
    assert runtime.asked == [[onnx_models.CPU]]


def test_without_onnxruntime_for_cuda_opening_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, [onnx_models.CPU])
    with pytest.raises(EmbedderUnavailable, match=r"pip install onnxruntime-gpu`, or set embedder to minilm"):
        nacre.open(path, embedder="minilm-cuda")
    assert not path.exists()


def test_without_onnxruntime_at_all_opening_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("no onnxruntime")

    monkeypatch.setattr(native_packages, "onnxruntime", missing)
    with pytest.raises(EmbedderUnavailable, match="needs ONNX Runtime for CUDA"):
        nacre.open(path, embedder="minilm-cuda")


def test_a_gpu_that_cannot_be_used_is_no_silent_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, [onnx_models.CUDA, onnx_models.CPU], given=[onnx_models.CPU])
    with pytest.raises(EmbedderUnavailable, match="found no usable GPU"):
        MiniLM(cuda=True).embed_query("tea")


def test_vectors_of_gpu_and_processor_go_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nacre.open(path, embedder="minilm") as memory:
        memory.remember("we drink green tea")
    pretend(monkeypatch, [onnx_models.CUDA, onnx_models.CPU])
    with nacre.open(path, embedder="minilm-cuda") as memory:
        memory.remember("the database listens on port 5432")
        hits = memory.search("a hot drink", mode="semantic", rerank=False).hits
    assert hits[0].text == "we drink green tea"
