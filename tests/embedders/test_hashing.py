from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.embedders.hashing import Hashing
from nacre.interfaces import Embedder, TokenEmbedder
from nacre.ranking.late_interaction import unpack
from nacre.types.memory import Span

EMBEDDER = Hashing()
PORT: Embedder = EMBEDDER  # checked by mypy
TOKENS: TokenEmbedder = EMBEDDER


def test_values_are_the_same_on_every_machine() -> None:
    vector = EMBEDDER.embed_query("Hello, hello world")
    largest = np.argsort(-np.abs(vector), kind="stable")[:3]
    assert [(int(place), round(float(vector[place]), 4)) for place in largest] == [
        (67, -0.5963),
        (128, 0.2981),
        (141, 0.2981),
    ]


def test_shared_words_and_shared_parts_of_words_bring_texts_near() -> None:
    query = EMBEDDER.embed_query("deploying the database")
    same, parts, other = EMBEDDER.embed_passages(["The DATABASE, deploying.", "deployed databases", "my cat sleeps"])
    assert query @ same > query @ parts > query @ other


def test_a_text_without_words_has_a_vector() -> None:
    assert EMBEDDER.embed_query("") @ EMBEDDER.embed_query(" … ") == 1


def test_no_texts() -> None:
    assert EMBEDDER.embed_passages([]).shape == (0, 256)


def test_dimensions_and_fingerprint() -> None:
    assert Hashing(64).embed_query("one").shape == (64,)
    assert {Hashing(64).fingerprint, Hashing().fingerprint} == {"hashing/1/64", "hashing/1/256"}


@given(st.lists(st.text(), max_size=5))
def test_unit_vectors_that_depend_on_their_text_alone(texts: list[str]) -> None:
    together = EMBEDDER.embed_passages(texts)
    assert together.dtype == np.float32
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(vector, EMBEDDER.embed_query(text))
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-6


@given(st.text())
def test_units_cover_everything_but_whitespace(text: str) -> None:
    units = EMBEDDER.weigh(text)
    assert "".join(text[span.start : span.end] for span, _ in units) == "".join(text.split())
    assert all(span.end - span.start <= 64 and pieces == 1 for span, pieces in units)


def test_a_long_run_is_cut() -> None:
    assert [tuple(span) for span, _ in EMBEDDER.weigh(f"a {'b' * 100}")] == [(0, 1), (2, 66), (66, 102)]


# ---------------------------------------------------------------- token vectors


def test_a_word_has_the_same_token_vector_in_a_query_and_in_a_text() -> None:
    _, (packed,) = EMBEDDER.embed_with_tokens(["The harbour of Lisbon, and its HARBOUR!"])
    text = unpack(packed, EMBEDDER.token_format)
    query = EMBEDDER.query_tokens("a harbour?")
    assert [query.words, len(text)] == [(Span(2, 9),), 3]  # function words and punctuation are dropped
    assert text @ query.vectors[0] == pytest.approx([1, text[1] @ text[0], 1], abs=1e-5)
    assert abs(text[1] @ text[0]) < 0.5
    assert np.linalg.norm(text, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)


@given(texts=st.lists(st.text(max_size=40), max_size=5))
def test_tokens_beside_unchanged_vectors(texts: list[str]) -> None:
    vectors, packed = TOKENS.embed_with_tokens(texts)
    assert vectors.tobytes() == EMBEDDER.embed_passages(texts).tobytes()
    assert [unpack(each, TOKENS.token_format).shape for each in packed] == [
        (len(TOKENS.token_spans(text)), 64) for text in texts
    ]
    for text in texts:
        query = TOKENS.query_tokens(text)
        assert len(query.words) == len(query.vectors) == len(query.weights)
        assert not len(query.words) or query.weights.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["", "…", "!?; --", "the and of"])
def test_a_text_without_kept_words_has_no_token_vectors(text: str) -> None:
    assert EMBEDDER.embed_with_tokens([text])[1] == [b""]
    assert EMBEDDER.query_tokens(text).vectors.shape == (0, 64)
