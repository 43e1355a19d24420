"""Token vectors in few bits: by hand, and how far packing moves them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.ranking.late_interaction import pack, unpack
from nacre.types.tokens import TokenFormat

FORMATS = [TokenFormat(64, 4), TokenFormat(48, 4), TokenFormat(2, 4), TokenFormat(64, 8), TokenFormat(6, 8)]


def test_four_bits_by_hand() -> None:
    """With 4 dimensions, 16 levels are 0.2 apart from -1.5 to 1.5. A byte has the first dimension in its low half and
    the third in its high half, the next one the second and the fourth."""
    matrix = np.array([[-1.5, 1.5, 0.1, -0.1], [0.0, 0.12, 9.0, -9.0]], np.float32)
    packed = pack(matrix, TokenFormat(4, 4))
    assert packed[:2] == bytes([0x80, 0x7F])
    assert packed[2:] == bytes([0xF8, 0x08])  # what is beyond gets the last level
    expected = [-1.5, 1.5, 0.1, -0.1]
    assert unpack(packed, TokenFormat(4, 4))[0] == pytest.approx(expected, abs=1e-6)


def test_eight_bits_by_hand() -> None:
    packed = pack(np.array([[1, -1, 0.5, 0]], np.float32), TokenFormat(4, 8))
    assert packed == bytes([127, 129, 64, 0])
    assert unpack(packed, TokenFormat(4, 8))[0] == pytest.approx([1, -1, 64 / 127, 0], abs=1e-6)


@pytest.mark.parametrize("form", FORMATS)
def test_no_tokens(form: TokenFormat) -> None:
    assert pack(np.zeros((0, form.dimensions), np.float32), form) == b""
    assert unpack(b"", form).shape == (0, form.dimensions)


@given(seed=st.integers(0, 2**32 - 1), tokens=st.integers(1, 40), form=st.sampled_from(FORMATS))
def test_a_vector_comes_back_almost_as_it_was(seed: int, tokens: int, form: TokenFormat) -> None:
    vectors = np.random.default_rng(seed).normal(size=(tokens, form.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    packed = pack(vectors, form)
    assert len(packed) == tokens * form.token_bytes
    back = unpack(packed, form)
    assert back.dtype == np.float32
    most = 3 / np.sqrt(form.dimensions) if form.bits == 4 else 1.0
    step = most / 15 if form.bits == 4 else 0.5 / 127
    assert np.abs(back - vectors.clip(-most, most)).max() <= step + 1e-6
    assert pack(back, form) == packed  # packing again changes nothing
    assert b"".join(pack(each[None], form) for each in vectors) == packed  # each token on its own
