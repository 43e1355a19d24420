"""What is loaded before it is needed: which models a command line begins to load, and what becomes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nacre
from nacre.cli import preload
from nacre.embedders.hashing import Hashing
from nacre.embedders.minilm import MiniLM
from nacre.errors import EmbedderUnavailable
from nacre.interfaces import RerankText
from nacre.rerankers.nacre_rerank import NacreRerank
from nacre.runtime import native_packages, onnx_models

pytestmark = pytest.mark.slow

EMBEDDER, TOKENS, RERANKER = ALL = [
    folder / onnx_models.MODEL for folder in (onnx_models.EMBEDDER, onnx_models.TOKENS, onnx_models.RERANKER)
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"NACRE_CONFIG": str(tmp_path / "config.toml")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["search", "blue", "whales"], ALL),
        (["--store", "x.db", "search", "whales", "--json"], ALL),
        (["context", "whales"], ALL),
        (["why-not", "ID", "whales"], ALL),
        (["search", "whales", "--no-rerank"], [EMBEDDER]),
        (["search", "whales", "--rerank", "full"], ALL),
        (["remember", "a whale"], [EMBEDDER]),
        (["search", "whales", "--mode", "keyword"], []),
        (["search", "whales", "--mode=keyword"], []),
        (["recall", "whales", "--mode", "text"], []),
        (["recall", "whales", "--mode", "vector"], ALL),
        (["search", "keyword", "text"], ALL),
        (["search", "--help"], []),
        (["search", "whales", "--embedder", "hashing"], []),
        (["--embedder=none", "search", "whales"], []),
        (["--embedder", "none", "search", "whales", "--embedder=minilm"], ALL),
        (["search", "whales", "--embedder", "onnx:models/x"], [TOKENS, RERANKER]),
        (["search", "whales", "--no-rerank", "--embedder", "onnx:models/x"], []),
        (["remember", "a whale", "--embedder", "http://127.0.0.1:1/v1#m"], [EMBEDDER]),
        (["mcp", "--space", "me"], ALL),
        (["hook", "context"], ALL),
        (["timeline"], []),
        (["stats"], []),
        ([], []),
    ],
)
def test_models_that_a_command_will_need(
    arguments: list[str], expected: list[Path], environment: dict[str, str]
) -> None:
    assert preload.models(arguments, environment) == expected


@pytest.mark.parametrize(
    ("file", "variable", "needed"),
    [
        ("", "", True),
        ('embedder = "none"', "", False),
        ('embedder = "none"', "minilm", True),
        ('embedder = "minilm"', "hashing", False),
        ("not = TOML = at all", "", False),  # the command tells
    ],
)
def test_the_embedder_is_the_one_that_is_set(
    file: str, variable: str, needed: bool, environment: dict[str, str]
) -> None:
    Path(environment["NACRE_CONFIG"]).write_text(file, "utf-8")
    assert bool(preload.models(["search", "whales"], {**environment, "NACRE_EMBEDDER": variable})) == needed


@pytest.mark.parametrize(
    ("file", "variable", "expected"),
    [
        ("token_vectors = false", "", [EMBEDDER, RERANKER]),
        ("token_vectors = false", "on", ALL),
        ("", "off", [EMBEDDER, RERANKER]),
        ("", "perhaps", []),  # the command tells
    ],
)
def test_token_vectors_that_are_off_need_no_encoder_of_queries(
    file: str, variable: str, expected: list[Path], environment: dict[str, str]
) -> None:
    Path(environment["NACRE_CONFIG"]).write_text(file, "utf-8")
    assert preload.models(["search", "whales"], {**environment, "NACRE_TOKEN_VECTORS": variable}) == expected


# ---------------------------------------------------------------- loading


class Loads:
    """Stands in for ONNX Runtime."""

    def __init__(self, *, fails: int = 0) -> None:
        self.loaded: list[Path] = []
        self._fails = fails

    def __call__(self, model: Path, providers: object) -> object:
        assert providers == [onnx_models.CPU]
        self.loaded.append(model)
        if len(self.loaded) <= self._fails:
            raise ValueError("torn in two")
        return f"session {len(self.loaded)}"


def session_of(model: Path) -> object:
    return onnx_models.load_session(model, purpose="reading", fallback="guess")


def test_a_model_that_was_loaded_ahead_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads()
    monkeypatch.setattr(onnx_models, "_new_session", loads)
    onnx_models.load_ahead([EMBEDDER])
    assert session_of(EMBEDDER) == "session 1"
    assert session_of(EMBEDDER) == "session 2"
    assert loads.loaded == [EMBEDDER, EMBEDDER]


def test_what_went_wrong_ahead_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_models, "_new_session", Loads(fails=1))
    onnx_models.load_ahead([EMBEDDER])
    assert session_of(EMBEDDER) == "session 2"


def test_what_goes_wrong_is_said_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_models, "_new_session", Loads(fails=2))
    onnx_models.load_ahead([EMBEDDER])
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is damaged \(torn in two\); reinstall.*, or guess"):
        session_of(EMBEDDER)


def test_without_onnxruntime_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> object:
        raise ImportError("No module named 'onnxruntime'")

    monkeypatch.setattr(native_packages, "onnxruntime", missing)
    onnx_models.load_ahead(ALL)
    with pytest.raises(EmbedderUnavailable, match="reading needs the packages numpy and onnxruntime"):
        session_of(EMBEDDER)


def test_models_loaded_ahead_answer_as_those_loaded_when_needed() -> None:
    """To the last bit."""
    text, read = "why is the sea salty?", RerankText("Rivers carry salt into the sea.", "", "")

    def answers() -> tuple[object, ...]:
        model = MiniLM()
        query = model.query_tokens(text)
        return (
            model.embed_query(text).tobytes(),
            query.vectors.tobytes(),
            query.weights.tobytes(),
            NacreRerank().scores(text, [read]),
        )

    expected = answers()
    onnx_models.load_ahead(ALL)
    assert answers() == expected


# ---------------------------------------------------------------- the end of a process


def nacre_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nacre", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_command_that_has_ended_has_said_and_logged_everything(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember_many([f"whale number {number} " + "sings and " * 50 for number in range(1_000)])
    store = ["--store", str(path), "--embedder", "hashing"]
    listed = nacre_command("timeline", "--limit", "1000", *store)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert sum("whale number" in line for line in listed.stdout.splitlines()) == 1_000
    found = nacre_command("search", "whale number 7", *store)
    assert found.returncode == 0
    with nacre.open(path, embedder=Hashing()) as memory:
        assert [each.query for each in memory.receipts()] == ["whale number 7"]
    missing = nacre_command("get", "nothing", *store)
    assert missing.returncode == 2
    assert "nothing" in missing.stderr
