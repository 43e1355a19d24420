"""JSON of any size, depth and numbers comes back from metadata as it went in."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.integrations import exact
from nacre.types.memory import Json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()) | st.sampled_from('<>/"\\\x00\ud800')),
    lambda several: st.lists(several, max_size=4) | st.dictionaries(st.text(max_size=5), several, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def kept() -> Iterator[nacre.Nacre]:
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "kept.db", embedder=None) as memory:
        yield memory


def stored(memory: nacre.Nacre, metadata: dict[str, Json], numbers: Iterator[int] = count()) -> Any:  # noqa: B008
    """What metadata is once it was written and read."""
    (back,) = memory.get(memory.remember("a value", key=f"key {next(numbers)}", metadata=metadata).id)
    return back.metadata


def same(value: object) -> str:
    """Told apart: 1 and 1.0, 0.0 and -0.0, and the order of keys."""
    return json.dumps(value)


@pytest.mark.slow
@settings(max_examples=150)
@given(value=VALUES)
def test_any_json_comes_back(kept: nacre.Nacre, value: Any) -> None:
    assert same(exact.unpacked("x", stored(kept, exact.packed(kept, "x", value)))) == same(value)
    pieces = [stored(kept, each) for each in exact.in_pieces(kept, "x", value)]
    assert len(pieces) == 1
    assert same(exact.joined("x", pieces)) == same(value)


@pytest.mark.parametrize(
    "value",
    [
        {"output": "ä<>\"'\\" * 30_000},
        [float("inf"), float("-inf"), 2**64, -0.0, 1e-320],
        {"a": {"b": ["\x00", "\ud800", ""]}},
        json.loads("[" * 60 + "]" * 60),
        ["<private-key>" * 10_000, ""],
    ],
    ids=["large", "numbers", "characters", "deep", "almost a tag"],
)
def test_what_metadata_cannot_have_comes_back(kept: nacre.Nacre, value: Any) -> None:
    pieces = [stored(kept, each) for each in exact.in_pieces(kept, "x", value)]
    assert same(exact.joined("x", pieces)) == same(value)


def test_a_missing_piece_is_an_error(kept: nacre.Nacre) -> None:
    pieces = exact.in_pieces(kept, "x", "long " * 20_000)
    assert len(pieces) > 2
    with pytest.raises(KeyError):
        exact.joined("x", pieces[:-1])
    with pytest.raises(KeyError):
        exact.unpacked("y", {})


def test_what_is_private_is_in_no_piece(kept: nacre.Nacre) -> None:
    value = {"said": ["before <private>the code is 4711</private> after", "x" * 60_000]}
    pieces = exact.in_pieces(kept, "x", value)
    assert len(pieces) > 1
    assert "4711" not in json.dumps(pieces)
    assert exact.joined("x", pieces) == {"said": ["before after", "x" * 60_000]}


def test_secrets_in_pieces_are_redacted_as_elsewhere(tmp_path: Path) -> None:
    with nacre.open(tmp_path / "a.db", embedder=None, secrets="redact") as memory:
        value = {"password": "hunter2-and-more-9", "rest": "x" * 60_000}
        pieces = [stored(memory, each) for each in exact.in_pieces(memory, "x", value)]
        back = exact.joined("x", pieces)
    assert back == {"password": "[redacted: password]", "rest": "x" * 60_000}


@pytest.mark.parametrize("policy", ["redact", "refuse"])
def test_texts_that_make_a_secret_side_by_side_stay(tmp_path: Path, policy: Any) -> None:
    value = ["x" * 60_000, "my password", ": hunter2-and-more-9", "AKIA", "Z" * 30_000]
    with nacre.open(tmp_path / "a.db", embedder=None, secrets=policy) as memory:
        pieces = [stored(memory, each) for each in exact.in_pieces(memory, "x", {"password: ": value, "n": 2**70})]
        assert exact.joined("x", pieces) == {"password: ": value, "n": 2**70}
        with pytest.raises(nacre.InvalidInput, match="secret") if policy == "refuse" else nullcontext():
            pieces = exact.in_pieces(memory, "x", {"card": 4111111111111111, "rest": "x" * 60_000})
            assert "4111" not in json.dumps(pieces)


def test_a_cut_makes_no_secret(tmp_path: Path) -> None:
    """A number that is too long for a card is one where its end is cut off."""
    value = "4111111111111111" * 10_000
    with nacre.open(tmp_path / "a.db", embedder=None, secrets="redact") as memory:
        assert memory.screen(value).text == value
        pieces = [stored(memory, each) for each in exact.in_pieces(memory, "x", value)]
        assert exact.joined("x", pieces) == value
        assert exact.read("".join(exact.cut(memory, json.dumps(value), 17))) == value


@pytest.mark.parametrize("value", [{"a": object()}, {"a": {1, 2}}, b"bytes"])
def test_what_is_no_json_is_refused(kept: nacre.Nacre, value: Any) -> None:
    with pytest.raises(nacre.InvalidInput, match="item: is not JSON"):
        exact.in_pieces(kept, "item", value)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": [1, (2,)]}, r"meta\.a\[1\]: is a tuple"),
        ({1: 2}, "meta: has the key 1"),
        ({"a": b""}, r"meta\.a: is a bytes"),
    ],
)
def test_what_json_would_change_is_refused(value: Any, field: str) -> None:
    with pytest.raises(nacre.InvalidInput, match=field):
        exact.check("meta", value)
    exact.check("meta", {"a": [1, 1.5, True, None, "", {}]})


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [20, 30, 200])
def test_what_is_deep_comes_back(kept: nacre.Nacre, levels: int) -> None:
    exact.check("x", nested(levels))
    (piece,) = exact.in_pieces(kept, "x", nested(levels))
    assert exact.joined("x", [stored(kept, piece)]) == nested(levels)


def test_what_is_too_deep_is_refused(kept: nacre.Nacre) -> None:
    for refused in (
        lambda value: exact.check("item", value),
        lambda value: exact.packed(kept, "item", value),
        lambda value: exact.in_pieces(kept, "item", value),
    ):
        with pytest.raises(nacre.InvalidInput, match=r"item.*: is nested too deep"):
            refused(nested(50_000))


@pytest.mark.parametrize("levels", range(400, 1_100, 100))
def test_there_is_no_depth_between(kept: nacre.Nacre, levels: int) -> None:
    """Where one step can follow a value, and the next one cannot."""
    try:
        (piece,) = exact.in_pieces(kept, "x", nested(levels))
    except nacre.InvalidInput as error:
        assert "is nested too deep" in str(error)  # noqa: PT017
    else:
        assert exact.joined("x", [stored(kept, piece)]) == nested(levels)
