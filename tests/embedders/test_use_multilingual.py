"""The multilingual model: true to the original, one space for sixteen languages, and found where it is installed."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilingual_model import FOLDER
from nacre.embedders import use_multilingual
from nacre.embedders.use_multilingual import (
    LANGUAGES,
    MODEL_SHA256,
    PIECES_MAX,
    PIECES_SHA256,
    QUESTIONS_SHA256,
    TEXT_PIECES_MAX,
    UseMultilingual,
)
from nacre.errors import EmbedderUnavailable
from nacre.interfaces import Embedder

pytestmark = pytest.mark.slow

EMBEDDER = UseMultilingual()
PORT: Embedder = EMBEDDER  # checked by mypy
CARD = Path(__file__).parents[2] / "models" / use_multilingual.DISTRIBUTION / "README.md"
REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "use_multilingual.json").read_text("utf-8"))
TEXTS = [
    *(entry["text"] for entry in REFERENCE),
    "",
    "x",
    " \n",
    "Deployment failed because the database was full. " * 3,
    "word " * 1000,
    "中" * 1000,
    "half a pair \ud800 and a smile 😀",
]


def original(entry: dict[str, str]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    integers = np.frombuffer(base64.b64decode(entry["vector"]), np.int8).astype(np.float32)
    return (integers / np.linalg.norm(integers)).astype(np.float32)


# ---------------------------------------------------------------- true to the original


def test_vectors_are_those_of_the_original() -> None:
    """Of the 8-bit graph that `tools/build_use_multilingual.py` reads, which rounds what it computes to 8 bits, too."""
    vectors = EMBEDDER.embed_passages([entry["text"] for entry in REFERENCE])
    cosines = np.array([vector @ original(entry) for vector, entry in zip(vectors, REFERENCE, strict=True)])
    assert len(cosines) == 32
    assert cosines.min() > 0.96
    assert cosines.mean() > 0.98


def test_a_text_is_nearest_to_its_translations() -> None:
    """Two statements in sixteen languages: any two of one subject are nearer than any two of different ones."""
    vectors = EMBEDDER.embed_passages([entry["text"] for entry in REFERENCE])
    subjects = np.array([entry["about"] for entry in REFERENCE])
    cosines = vectors @ vectors.T
    same = subjects[:, None] == subjects
    assert cosines[same].min() > cosines[~same].max() + 0.1
    assert np.median(cosines[same]) > 0.6


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wie viel teurer ist die Wohnung geworden?", "The landlord raised the rent by eight percent in March."),
        ("¿Qué no puede comer María?", "Maria is allergic to peanuts and shellfish."),
        ("Когда вылетает самолёт в Токио?", "The flight to Tokyo leaves at 7:40 from terminal two."),
        ("密码是怎么保存的？", "Passwords are hashed with argon2 before they are stored."),
        ("犬の名前は何ですか？", "The office dog is called Biscuit and loves tennis balls."),
        ("أي قاعدة بيانات اخترنا؟", "We picked PostgreSQL because its JSON support is excellent."),
        ("การประชุมประจำสัปดาห์อยู่ที่ไหน", "The team meets every Monday at nine in the blue conference room."),
    ],
)
def test_a_question_in_one_language_finds_an_answer_in_another(question: str, answer: str) -> None:
    notes = [
        "The landlord raised the rent by eight percent in March.",
        "Maria is allergic to peanuts and shellfish.",
        "The flight to Tokyo leaves at 7:40 from terminal two.",
        "Passwords are hashed with argon2 before they are stored.",
        "The office dog is called Biscuit and loves tennis balls.",
        "We picked PostgreSQL because its JSON support is excellent.",
        "The team meets every Monday at nine in the blue conference room.",
        "Grandmother's apple cake needs cinnamon, butter and four eggs.",
        "Tom broke his leg while skiing in Austria.",
    ]
    cosines = EMBEDDER.embed_passages(notes) @ EMBEDDER.embed_query(question)
    assert notes[int(cosines.argmax())] == answer, cosines


def test_languages() -> None:
    """The texts of the reference are in all of them; Chinese is there in both scripts."""
    assert {entry["language"].removesuffix("-Hant") for entry in REFERENCE} == LANGUAGES
    assert len({entry["language"] for entry in REFERENCE}) == 16


# ---------------------------------------------------------------- the interface


def test_vectors_have_length_one() -> None:
    for vectors in (EMBEDDER.embed_passages(TEXTS), np.stack([EMBEDDER.embed_query(text) for text in TEXTS])):
        assert vectors.shape == (len(TEXTS), 512)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_what_questions_have_in_common_is_taken_out_of_a_question() -> None:
    direction = np.fromfile(FOLDER / "questions.bin", "<f4")
    assert np.isclose(np.linalg.norm(direction), 1, atol=1e-6)
    for text in TEXTS:
        (passage,) = EMBEDDER.embed_passages([text])
        along = passage @ direction
        question = EMBEDDER.embed_query(text)
        assert abs(question @ direction) < 1e-5
        assert np.allclose(question * np.sqrt(1 - along**2) + along * direction, passage, atol=1e-5)


@pytest.mark.parametrize("question", ["Wer leitet das Backend?", "¿Quién dirige el backend?", "谁负责后端开发?"])
def test_notes_that_ask_come_further_from_a_question(question: str) -> None:
    """More than twice as far as those that tell, whatever the question is about."""
    asking, telling = (
        EMBEDDER.embed_passages(notes)
        for notes in (
            [
                "And the cost of polling?",
                "How many jobs per day?",
                "Shall I call him?",
                "What if two tablets check in?",
            ],
            ["Mara leads the backend team.", "Priya has a severe peanut allergy.", "The old server was switched off."],
        )
    )
    (before,), after = EMBEDDER.embed_passages([question]), EMBEDDER.embed_query(question)
    assert (asking @ (before - after)).mean() > 2 * (telling @ (before - after)).mean() > 0


words = st.sampled_from(["the", "Katze", "база", "في", "中文", "お金", "ไทย", "naïve", "!", "42", "नमस्ते", "😀"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(words, max_size=30).map(" ".join), min_size=1, max_size=12), st.integers(1, 3))
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str], threads: int) -> None:
    together = UseMultilingual(threads)
    together._model = EMBEDDER._model
    vectors = together.embed_passages(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(vector, EMBEDDER.embed_passages([text])[0])


def test_a_vector_does_not_depend_on_how_many_share_its_batch() -> None:
    """Sums over pieces and products of matrices must add up in the same order for every height."""
    generator = np.random.default_rng(1)
    for length in (2, 3, 4, 7, 8, 13, 16, 17, 31, 33, 64, 100, 258):
        pieces = generator.integers(3, 128_000, (9, length)).tolist()
        alone = np.concatenate([EMBEDDER._run([each]) for each in pieces])
        for size in range(2, 10):
            assert np.array_equal(EMBEDDER._run(pieces[:size]), alone[:size]), (length, size)


def test_no_texts() -> None:
    assert EMBEDDER.embed_passages([]).shape == (0, 512)


def test_a_text_beyond_the_limit_counts_by_its_beginning() -> None:
    beginning = "hello " * TEXT_PIECES_MAX
    assert np.array_equal(EMBEDDER.embed_query(beginning + "goodbye"), EMBEDDER.embed_query(beginning))
    assert EMBEDDER.pieces_max == PIECES_MAX < TEXT_PIECES_MAX
    assert sum(pieces for _, pieces in EMBEDDER.weigh("word " * PIECES_MAX)) == PIECES_MAX


def test_first_use_by_many_threads_at_once() -> None:
    fresh = UseMultilingual()
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(fresh.embed_query, ["derselbe Text"] * 16))
        matrices = list(threads.map(fresh.embed_passages, [TEXTS[:4]] * 4))
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)
    assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)


# ---------------------------------------------------------------- files


def test_the_fingerprint_is_that_of_the_files() -> None:
    hashes = [
        hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "pieces.bin", "questions.bin")
    ]
    assert hashes == [MODEL_SHA256, PIECES_SHA256, QUESTIONS_SHA256]
    assert EMBEDDER.fingerprint == f"use-multilingual-3/512/{MODEL_SHA256[:12]}/{PIECES_SHA256[:12]}"


@pytest.mark.skipif(not CARD.exists(), reason="an archive of the sources has no models/")
def test_the_card_of_the_model_names_its_files() -> None:
    card = CARD.read_text(encoding="utf-8")
    for name, sha256 in (
        ("model.onnx", MODEL_SHA256),
        ("pieces.bin", PIECES_SHA256),
        ("questions.bin", QUESTIONS_SHA256),
    ):
        assert f"| `{name}` | {(FOLDER / name).stat().st_size:,} | `{sha256}` |" in card


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from nacre.embedders.use_multilingual import UseMultilingual; m = UseMultilingual(); "
        "m.fingerprint, m.pieces_max; m.weigh('ein Text'); m.vocabulary_coverage('ein Text'); "
        "sys.exit(bool({'numpy', 'onnxruntime', 'nacre_multilingual'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_multilingual, "PACKAGE", "nacre_multilingual_that_is_not_installed")
    assert use_multilingual.installed() is None
    with pytest.raises(EmbedderUnavailable, match=r"pip install 'nacre-memory\[multilingual\]'.*, or search by words"):
        UseMultilingual()


@pytest.mark.parametrize("damage", ["missing", "empty", "cut short"])
def test_a_damaged_model_is_named(damage: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("pieces.bin", "questions.bin"):
        shutil.copy(FOLDER / name, tmp_path)
    whole = (FOLDER / "model.onnx").read_bytes()
    if damage != "missing":
        (tmp_path / "model.onnx").write_bytes(whole[: len(whole) // 2] if damage == "cut short" else b"")
    said = "is missing" if damage == "missing" else r"is damaged \(.*\)"
    expected = rf"model\.onnx {said}; reinstall it with `pip install --force-reinstall nacre-memory-multilingual`, or"
    with pytest.raises(EmbedderUnavailable, match=expected):
        UseMultilingual(folder=tmp_path).embed_query("a")
    with pytest.raises(EmbedderUnavailable, match=expected):
        UseMultilingual(folder=tmp_path).embed_passages(["a"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_damaged_pieces_are_named(damage: str, tmp_path: Path) -> None:
    if damage == "empty":
        (tmp_path / "pieces.bin").touch()
    with pytest.raises(EmbedderUnavailable, match=r"pieces\.bin cannot be read .*; reinstall it with .*-multilingual`"):
        UseMultilingual(folder=tmp_path).weigh("a")
