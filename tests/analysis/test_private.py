"""What stands between <private> and </private>, however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.private import has_private, without_private


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>x</private> b", "a b"),
        ("a<private>x</private>b", "ab"),
        ("<private>x</private>", ""),
        ("a <PRIVATE>x</Private> b", "a b"),
        ('a <private reason="x > y">x</private> b', "a b"),
        ("a <private\nkind='k'>x</private\n> b", "a b"),
        ("a < private >x< / private > b", "a b"),
        ("a <private>x", "a"),
        ("a <private", "a"),
        ("a <private x y", "a"),
        ("x</private> b", "b"),
        ("a <private>x <private>y</private> z</private> b", "a b"),
        ("a <private>x</private> b <private>y</private> c", "a b c"),
        ("a <private>x</private> b</private> c", "c"),
        ("a <private>x <private>y</private> z", "a"),
        ("a <private/> b", "a b"),
        ("line\n<private>\nx\n</private>\nmore", "line\n\nmore"),
        ("a <private-key>x</private-key> b", "a <private-key>x</private-key> b"),
        ("a <privateer> b", "a <privateer> b"),
        ("public < private and more", "public < private and more"),
        ("a private matter", "a private matter"),
    ],
)
def test_what_is_kept(text: str, kept: str) -> None:
    assert without_private(text) == kept


TAGS = ["<private>", "</private>", "<PRIVATE a=1>", "</ private >", "<private/>", "<private"]


@given(st.lists(st.sampled_from(TAGS) | st.sampled_from(["open ", "words "]), max_size=12), st.integers(0, 12))
def test_what_is_inside_a_tag_is_never_kept(parts: list[str], at: int) -> None:
    """SECRET is put inside a pair of tags of its own, among any others."""
    whole = "".join((*parts[:at], "<private>SECRET</private>", *parts[at:]))
    kept = without_private(whole)
    assert "SECRET" not in kept
    assert not has_private(kept)
    assert without_private(kept) == kept
