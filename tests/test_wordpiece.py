from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from nacre.embedders.minilm import FOLDER
from nacre.text.wordpiece import CACHED_RUNS_MAX, WordPiece

PIECES_MAX = 254
VOCABULARY = FOLDER / "vocab.txt"

OURS = WordPiece(VOCABULARY)
REFERENCE = BertWordPieceTokenizer(
    vocab={piece: number for number, piece in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}
)

NASTY = [
    "",
    " ",
    "Hello, World!",
    "unaffable electroencephalographically",
    "snake_case CamelCase kebab-case foo.bar() x=1;y+=2 #tag @name 50% $9.99 a/b\\c ~`^|<>",
    "don't can’t “quoted” — dash… «guillemets»",
    "naïve café Ünïcödé ÅNGSTRÖM Đà Nẵng Straße ẞ İstanbul ıI ǅ ﬁ ŁÓDŹ",
    "e\u0301 e\u0301\u0327 \u0301alone \u0344 ≠ ≮ ; \u1fef",
    "ΟΔΥΣΣΕΥΣ Σ ΑΣ σς",
    "中文字符 mixed中文mixed 你好,世界。 カタカナ ガ がぎ 한국어 텍스트 𠀀𪜀 豈",
    "ภาษาไทย हिन्दी العَرَبِيَّة עִבְרִית русский язы́к ελληνικά",
    "emoji 😀😀 👩‍👩‍👧‍👦 ☂️ 🇩🇪 ™ © ½ ² ①",
    "\x00a\x00b \ufffd \u200b zero\u200bwidth soft\xadhyphen \ufeff \u202eright \ue000 \U0010fffd",
    "tab\tnewline\r\nform\x0cfeed\x0bvertical\x85next\x1cseparator\xa0nbsp\u2028line\u3000wide\u1680ogham",
    "[CLS] x[SEP]y [MASK][MASK] [PAD][UNK] [sep] [ SEP ] [[SEP]] [unused1] ##ing",
    "a" * 100,
    "a" * 101,
    "é" * 100,
    "é" * 101,
    "e\u0301" * 100,
    "a" * 99 + "!" + "b" * 101,
    "https://example.com/a/very/long/path?with=query&and=more&of=that#fragment-with-dashes_and_underscores" * 3,
    "word " * 500,
    "!" * 500,
    "中" * 500,
    "\u1abf\u2e43\u0a76 newer than the reference: \U0001f9ff \u1e9f\U00011a3f",
    "A\ua7cbB\U00010d50",
]

# Long runs, marks, CJK and special pieces side by side are where cutting goes wrong.
SHARP = [
    "a",
    "Zz",
    "é",
    "e\u0301",
    "\u0301",
    "中",
    "한",
    "ガ",
    "Σ",
    "≠",
    ".",
    "-",
    " ",
    "\n",
    "\u200b",
    "\x85",
    "[SEP]",
    "[",
]
SHARP += ["]", "SEP", "ing", "x" * 40, "é" * 70, "한" * 30, "ไ" * 25, "😀", "\u1abf", "3.14", "##"]
texts = st.text() | st.lists(st.sampled_from(SHARP), max_size=40).map("".join)


def reference(text: str) -> list[int]:
    pieces: list[int] = REFERENCE.encode(text, add_special_tokens=False).ids
    return pieces


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_equals_the_reference(text: str) -> None:
    assert OURS.encode(text, PIECES_MAX) == [101, *reference(text)[:PIECES_MAX], 102]


def test_equals_the_reference_for_every_character() -> None:
    """In blocks, each character between letters, so that nothing is lost to another."""
    characters = [chr(code) for code in range(0x30000) if unicodedata.category(chr(code)) != "Cs"]
    for start in range(0, len(characters), 64):
        text = " ".join(f"a{character}b" for character in characters[start : start + 64])
        assert OURS.encode(text, 1000) == [101, *reference(text), 102], hex(start)


@given(texts)
def test_equals_the_reference_for_any_text(text: str) -> None:
    assert OURS.encode(text, PIECES_MAX) == [101, *reference(text)[:PIECES_MAX], 102]


@given(texts, st.integers(0, 12))
def test_truncates_to_the_pieces_asked_for(text: str, pieces_max: int) -> None:
    assert OURS.encode(text, pieces_max) == [101, *reference(text)[:pieces_max], 102]


def test_half_a_surrogate_pair_is_dropped() -> None:
    assert OURS.encode("a\ud800b", PIECES_MAX) == OURS.encode("ab", PIECES_MAX)


def test_reads_only_the_beginning_of_a_long_text() -> None:
    fresh = WordPiece(VOCABULARY)
    text = " ".join(f"w{number}" for number in range(200_000))
    assert len(fresh.encode(text, PIECES_MAX)) == PIECES_MAX + 2
    assert len(fresh._cache) <= PIECES_MAX


def test_the_cache_is_bounded() -> None:
    fresh = WordPiece(VOCABULARY)
    for number in range(CACHED_RUNS_MAX + 10):
        fresh.encode(str(number), PIECES_MAX)
    assert len(fresh._cache) <= CACHED_RUNS_MAX


@given(texts, st.data())
def test_a_slice_never_costs_more_than_its_units(text: str, data: st.DataObject) -> None:
    units = OURS.weigh(text)
    if units:
        first = data.draw(st.integers(0, len(units) - 1))
        last = data.draw(st.integers(first, len(units) - 1))
        slice_of_text = text[units[first][0].start : units[last][0].end]
        assert sum(pieces for _, pieces in units[first : last + 1]) >= len(reference(slice_of_text))


@given(texts)
def test_units_cover_everything_but_whitespace_in_order(text: str) -> None:
    units = OURS.weigh(text)
    assert all(before.end <= after.start for (before, _), (after, _) in pairwise(units))
    covered = {place for span, _ in units for place in range(span.start, span.end)}
    assert all(text[place].isspace() for place in range(len(text)) if place not in covered)
    assert all(span.start < span.end and 1 <= pieces <= 64 for span, pieces in units)


def test_units_of_plain_words_are_exact() -> None:
    text = "Unaffable cats, 中文 ok"
    assert [(text[span.start : span.end], pieces) for span, pieces in OURS.weigh(text)] == [
        ("Unaffable", 3),
        ("cats,", 2),
        ("中", 1),
        ("文", 1),
        ("ok", 1),
    ]


def test_long_runs_are_cut_at_punctuation_and_long_words_anywhere() -> None:
    text = f"{'ab/' * 30}{'z' * 300}"
    units = [text[span.start : span.end] for span, _ in OURS.weigh(text)]
    assert units[:4] == ["ab", "/", "ab", "/"]
    assert max(map(len, units)) <= 100
