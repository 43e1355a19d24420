from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import opened
from nacre import Recipe
from nacre.embedders import minilm
from nacre.embedders.minilm import FOLDER, MODEL_SHA256, TOKENS_FOLDER, TOKENS_SHA256, MiniLM
from nacre.errors import EmbedderUnavailable
from nacre.interfaces import Embedder, TokenEmbedder
from nacre.ranking.late_interaction import unpack
from nacre.runtime import equal_lengths
from nacre.storage.reference import MemoryStore
from nacre.types.memory import Span
from nacre.types.recipe import adjusted

pytestmark = pytest.mark.slow

EMBEDDER = MiniLM()
PORT: Embedder = EMBEDDER  # checked by mypy
TOKENS_PORT: TokenEmbedder = EMBEDDER  # likewise
TOKEN_BYTES = EMBEDDER.token_format.token_bytes
TEXTS = [
    "How do I reset my password?",
    "If you cannot log in, open the account page and ask for a new secret by mail.",
    "The cat sleeps on the warm roof.",
    "中文 and English, naïve café",
    "",
    "x",
    "Deployment failed because the database was full. " * 3,
    "word " * 1000,
    "half a pair \ud800 and a smile 😀",
]


def test_unit_vectors_in_the_order_given() -> None:
    vectors = EMBEDDER.embed_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.array_equal(vector, EMBEDDER.embed_query(text)), text


words = st.sampled_from(
    ["the", "cat", "database", "deployed", "on", "中文", "naïve", "!", "42", "electroencephalography"]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(words, max_size=30).map(" ".join), min_size=1, max_size=12), st.integers(1, 3))
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str], threads: int) -> None:
    together = MiniLM(threads)
    together._model = EMBEDDER._model
    vectors = together.embed_passages(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(vector, EMBEDDER.embed_query(text))


def test_a_vector_does_not_depend_on_how_many_share_its_batch() -> None:
    """The product of matrices is computed in tiles; none may add up in another order for another height."""
    generator = np.random.default_rng(1)
    for length in (2, 3, 7, 8, 13, 16, 17, 31, 33, 64, 100):
        pieces = generator.integers(1000, 30000, (9, length)).tolist()
        alone = np.concatenate([EMBEDDER._model.run([each], ["embedding"])[0] for each in pieces])
        for size in range(2, 10):
            assert np.array_equal(EMBEDDER._model.run(pieces[:size], ["embedding"])[0], alone[:size]), (length, size)


def test_many_texts_pass_through_small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"number {number} {'again ' * (number % 7)}" for number in range(100)]
    whole = EMBEDDER.embed_passages(texts)
    monkeypatch.setattr(equal_lengths, "WINDOW_TEXTS", 7)
    assert np.array_equal(EMBEDDER.embed_passages(texts), whole)


def test_no_texts() -> None:
    assert EMBEDDER.embed_passages([]).shape == (0, 384)


@pytest.mark.parametrize(
    ("question", "answer", "distractors"),
    [
        (
            "How do I change my login credentials?",
            "Open account settings to pick a new password.",
            ["The build failed on the login page test.", "How do I change a flat tire?"],
        ),
        (
            "Do we have any pets?",
            "Our tabby kitten was adopted last spring.",
            ["We have three meetings today.", "Bob repaired his bicycle."],
        ),
        (
            "why is the site slow",
            "Latency rose after the cache was removed.",
            ["The museum site opens at nine.", "He walks slowly because of an injury."],
        ),
    ],
)
def test_meaning_beats_shared_words(question: str, answer: str, distractors: list[str]) -> None:
    cosines = EMBEDDER.embed_passages([answer, *distractors]) @ EMBEDDER.embed_query(question)
    assert cosines.argmax() == 0, cosines


def test_cosines_are_those_of_the_official_weights() -> None:
    first, second, third = EMBEDDER.embed_passages(
        ["A man is eating food.", "A man is eating a piece of bread.", "A cheetah is running behind its prey."]
    )
    assert [first @ second, first @ third, second @ third] == pytest.approx([0.7553, 0.1419, 0.0622], abs=0.003)


def test_a_text_beyond_the_limit_counts_by_its_beginning() -> None:
    beginning = "hello " * EMBEDDER.pieces_max
    assert np.array_equal(EMBEDDER.embed_query(beginning + "goodbye"), EMBEDDER.embed_query(beginning))
    assert sum(pieces for _, pieces in EMBEDDER.weigh(beginning)) == EMBEDDER.pieces_max


def test_the_fingerprint_of_the_vectors_is_that_of_older_stores() -> None:
    """The side network was added to the file and left every vector as it was, so no store has to be embedded again."""
    assert EMBEDDER.fingerprint == "all-MiniLM-L6-v2/int8-block/256/mean/l2/d9ef11b3d433"


def test_the_fingerprint_of_the_token_vectors_is_that_of_the_files() -> None:
    texts, queries = (
        hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest() for folder in (FOLDER, TOKENS_FOLDER)
    )
    assert (texts, queries) == (MODEL_SHA256, TOKENS_SHA256)
    assert EMBEDDER.token_fingerprint == f"nacre-tokens-v1/64x4/{texts[:8]}-{queries[:8]}"


@pytest.mark.parametrize(("folder", "sha256"), [(FOLDER, MODEL_SHA256), (TOKENS_FOLDER, TOKENS_SHA256)])
def test_the_page_of_a_model_names_its_file(folder: Path, sha256: str) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert sha256 in page
    assert f"{(folder / 'model.onnx').stat().st_size:,}" in page


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from nacre.embedders.minilm import MiniLM; m = MiniLM(); m.fingerprint, m.pieces_max; "
        "m.weigh('some text'); sys.exit(bool({'numpy', 'onnxruntime'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_runtime_keeps_no_record_of_its_use(tmp_path: Path) -> None:
    """ONNX Runtime's telemetry queues its reports in the user's cache folder; none may appear."""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    code = "from nacre.embedders.minilm import MiniLM; MiniLM().embed_passages(['one', 'two'])"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []


def test_first_use_by_many_threads_at_once() -> None:
    fresh = MiniLM()
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(fresh.embed_query, ["same text"] * 16))
        matrices = list(threads.map(fresh.embed_passages, [TEXTS[:4]] * 4))
    assert all(np.array_equal(vector, vectors[0]) for vector in vectors)
    assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "vocab.txt", tmp_path)
    embedder = MiniLM(folder=tmp_path)
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is missing; reinstall it with .*pip install"):
        embedder.embed_query("a")
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is missing"):
        embedder.embed_passages(["a"])


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1", b"cut short"])
def test_a_damaged_model_is_named_and_nothing_is_printed(
    content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(FOLDER / "vocab.txt", tmp_path)
    whole = (FOLDER / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(whole[: len(whole) // 2] if content == b"cut short" else content)
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is damaged .*; reinstall"):
        MiniLM(folder=tmp_path).embed_query("a")
    assert capfd.readouterr() == ("", "")


def test_a_missing_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"vocab\.txt cannot be read .*; reinstall"):
        MiniLM(folder=tmp_path).weigh("a")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderUnavailable, match="install them with `pip install numpy onnxruntime`"):
        MiniLM().embed_query("a")


# ---------------------------------------------------------------- token vectors


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(words, max_size=30).map(" ".join), min_size=1, max_size=12), st.integers(1, 3))
def test_token_vectors_do_not_depend_on_their_neighbours(texts: list[str], threads: int) -> None:
    together = MiniLM(threads)
    together._model = EMBEDDER._model
    vectors, packed = together.embed_with_tokens(texts)
    assert np.array_equal(vectors, EMBEDDER.embed_passages(texts))
    for text, of_text in zip(texts, packed, strict=True):
        (alone,) = EMBEDDER.embed_with_tokens([text])[1]
        assert of_text == alone, text
        assert len(of_text) == len(EMBEDDER.token_spans(text)) * TOKEN_BYTES


def test_token_vectors_do_not_depend_on_how_many_share_their_batch() -> None:
    generator = np.random.default_rng(2)
    outputs = ["embedding", "tokens"]
    for length in (2, 3, 7, 8, 13, 16, 17, 31, 33, 64, 100):
        pieces = generator.integers(1000, 30000, (9, length)).tolist()
        vectors, tokens = (
            np.concatenate(each) for each in zip(*(EMBEDDER._model.run([row], outputs) for row in pieces), strict=True)
        )
        for size in range(2, 10):
            found, of_pieces = EMBEDDER._model.run(pieces[:size], outputs)
            assert np.array_equal(found, vectors[:size]), (length, size)
            assert np.array_equal(of_pieces, tokens[:size]), (length, size)


def test_the_pass_for_token_vectors_gives_the_same_vectors() -> None:
    vectors, packed = EMBEDDER.embed_with_tokens(TEXTS)
    assert np.array_equal(vectors, EMBEDDER.embed_passages(TEXTS))
    assert [len(each) for each in packed] == [len(EMBEDDER.token_spans(text)) * TOKEN_BYTES for text in TEXTS]
    for each in packed:
        assert np.allclose(np.linalg.norm(unpack(each, EMBEDDER.token_format), axis=1), 1, atol=0.1)


def test_many_texts_with_tokens_pass_through_small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"number {number} {'again ' * (number % 7)}" for number in range(40)]
    vectors, packed = EMBEDDER.embed_with_tokens(texts)
    monkeypatch.setattr(equal_lengths, "WINDOW_TEXTS", 7)
    again, packed_again = EMBEDDER.embed_with_tokens(texts)
    assert np.array_equal(again, vectors)
    assert packed_again == packed


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 1),  # the one that stands for the whole text
        (" \n\t ", 1),
        ("x", 2),
        ("é", 2),
        ("!", 1),
        ("?! -- ...", 1),
        ("the of and", 1),
        ("The cat sat on the mat.", 4),  # cat, sat, mat
        ("sneezed", 1 + 2),  # ##nee ##zed; the piece "s" is also the function word of a possessive
        ("word " * 253, 1 + 253),
        ("word " * 254, 1 + 254),
        ("word " * 255, 1 + 254),  # beyond the limit
        ("word " * 1_000, 1 + 254),
        ("the " * 200 + "word " * 100, 1 + 54),
    ],
)
def test_what_is_kept_of_a_text(text: str, tokens: int) -> None:
    _, (packed,) = EMBEDDER.embed_with_tokens([text])
    assert len(packed) == tokens * TOKEN_BYTES
    spans = EMBEDDER.token_spans(text)
    assert len(spans) == tokens
    assert spans[0] == Span(0, 0)


def test_no_texts_have_no_token_vectors() -> None:
    vectors, packed = EMBEDDER.embed_with_tokens([])
    assert (vectors.shape, packed) == ((0, 384), [])


def test_the_spans_of_tokens_are_their_words() -> None:
    text = "The naïve café owner,\tMarie-Claire, electroencephalographed 中文!"
    assert [text[start:end] for start, end in EMBEDDER.token_spans(text)[1:]] == [
        "naïve", "café", "owner", "Marie", "Claire", *["electroencephalographed"] * 6, "中", "文",
    ]  # fmt: skip


def test_a_query_has_a_vector_and_a_weight_for_every_piece() -> None:
    text = "Which nuts make Ada's neighbour sneeze?"
    words, vectors, weights = EMBEDDER.query_tokens(text)
    assert vectors.shape == (len(words), EMBEDDER.token_format.dimensions)
    assert vectors.dtype == np.float32
    assert weights.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    assert words[0] == words[-1] == Span(0, 0)  # the pieces that mark the beginning and the end
    assert list(dict.fromkeys(text[start:end] for start, end in words[1:-1])) == [
        "Which", "nuts", "make", "Ada", "'", "s", "neighbour", "sneeze", "?",
    ]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(words, max_size=60).map(" ".join))
def test_any_query_has_weights_that_sum_to_one(text: str) -> None:
    found = EMBEDDER.query_tokens(text)
    assert len(found.words) == len(found.weights) == len(found.vectors) <= minilm.QUERY_PIECES + 2
    assert found.weights.sum() == pytest.approx(1, abs=1e-5)
    assert all(text[start:end] in (*text.split(), "中", "文") for start, end in found.words[1:-1])


def test_words_of_the_same_meaning_meet() -> None:
    """Of "puppy", "bicycle" and "quarterly", the word "dog" is most like "puppy"."""
    query = EMBEDDER.query_tokens("Who has a dog?")
    text = "The puppy lay beside the bicycle during the quarterly meeting"
    _, (packed,) = EMBEDDER.embed_with_tokens([text])
    asked = [at for at, each in enumerate(query.words) if "Who has a dog?"[each.start : each.end] == "dog"]
    similar = unpack(packed, EMBEDDER.token_format)[1:] @ query.vectors[asked[0]]
    start, end = EMBEDDER.token_spans(text)[1:][int(similar.argmax())]
    assert text[start:end] == "puppy"


@pytest.mark.parametrize("damage", ["missing", "empty", "cut short"])
def test_without_the_model_of_queries_the_answer_is_that_without_maxsim(damage: str, tmp_path: Path) -> None:
    whole = (TOKENS_FOLDER / "model.onnx").read_bytes()
    if damage != "missing":
        (tmp_path / "model.onnx").write_bytes(whole[: len(whole) // 2] if damage == "cut short" else b"")
    broken = MiniLM(tokens_folder=tmp_path)
    broken._model = EMBEDDER._model
    notes = ("Our tabby kitten was adopted last spring.", "We have three meetings today.", "Bob repaired his bicycle.")
    question = "Do we have any pets?"
    with opened(MemoryStore(), *notes, embedder=broken) as memory:
        expected = memory.search(question, recipe=adjusted(Recipe(), maxsim_weight=0.0))
        result = memory.search(question)
    with opened(MemoryStore(), *notes, embedder=EMBEDDER) as memory:
        whole_result = memory.search(question)
    assert result.hits == expected.hits
    assert all(reason.signal != "maxsim" for hit in result.hits for reason in hit.reasons)
    (note,) = result.notes
    assert note.startswith("late interaction failed: ranked without it (the model file ")
    assert f"model.onnx is {'missing' if damage == 'missing' else 'damaged'}" in note
    assert "reinstall it with `pip install --force-reinstall nacre-memory`, or search without reranking" in note
    assert expected.notes == whole_result.notes == ()
    assert any(reason.signal == "maxsim" for hit in whole_result.hits for reason in hit.reasons)
