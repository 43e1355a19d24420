"""Our pieces are those of Google's library, which reads the same pieces, scores and table of normal forms."""

from __future__ import annotations

import json
import shutil
import struct
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilingual_model import FOLDER
from nacre.analysis import sentencepiece
from nacre.analysis.sentencepiece import CACHED_RUNS_MAX, HEADER, MAGIC, SentencePiece

PIECES = FOLDER / "pieces.bin"
REFERENCE = Path(__file__).parents[1] / "data" / "use_multilingual.json"
ALL = 1_000_000  # pieces

OURS = SentencePiece(PIECES)

NASTY = [
    "",
    " ",
    " \t\n ",
    "Hello, World!",
    "snake_case CamelCase kebab-case foo.bar() x=1;y+=2 #tag @name 50% $9.99 a/b\\c ~`^|<>",
    "don't can’t “quoted” — dash… «guillemets»",
    "naïve café Ünïcödé ÅNGSTRÖM Đà Nẵng Straße ẞ İstanbul ıI ǅ ﬁ ŁÓDŹ",
    "e\u0301 e\u0301\u0327 q\u0307\u0323 \u0301alone \u0344 ≠ ≮ ; \u1fef",
    "ΟΔΥΣΣΕΥΣ Σ ΑΣ σς",
    "中文字符 mixed中文mixed 你好,世界。 カタカナ ｶﾞ が がぎ 한국어 텍스트 \u1100\u1161\u11a8 𠀀𪜀 豈",
    "ภาษาไทย กำ हिन्दी العَرَبِيَّة ﷺ עִבְרִית русский язы́к ελληνικά",
    "emoji 😀😀 👩‍👩‍👧‍👦 ☂️ 🇩🇪 ™ © ½ ² ① Ⅳ ㎏ ㌀",
    "\x00a\x00b \ufffd \u200b zero\u200bwidth soft\xadhyphen \ufeff \u202eright \ue000 \U0010fffd",
    "tab\tnewline\r\nform\x0cfeed\x0bvertical\x85next\x1cseparator\xa0nbsp\u2028line\u3000wide\u1680ogham",
    "\u2581a\u2581b ▁▁ _ ¨ ´ ｡ ~ ～ 〜",
    "<s> </s> <unk>",
    "a" * 500,
    "é" * 200,
    "e\u0301" * 200,
    "https://example.com/a/very/long/path?with=query&and=more&of=that#fragment-with-dashes_and_underscores" * 3,
    "word " * 500,
    "!" * 300,
    "中" * 300,
    "ไ" * 300,
    "\U0001f9ff \u1e9f\U00011a3f A\ua7cbB\U00010d50 \U00010781\u32ff",  # newer than the table
]

# Long runs, marks, scripts and what becomes a space side by side are where cutting goes wrong.
SHARP = [
    "a", "Zz", "é", "e\u0301", "\u0301", "\u0327", "中", "한", "ガ", "ｶ", "ﾞ", "\u1100", "\u1161", "\u11a8", "≠", ".",
    "-", " ", "\n", "\u200b", "\x85", "\xa0", "\u3000", "\ufeff", "ing", "ไทย", "ำ", "х", "ий", "ال", "ة", "ﷺ", "😀",
    "¨", "3.14", "##", "½", "ﬁ", "नम", "\U00010781", "\x00",
]  # fmt: skip
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(SHARP), max_size=40).map("".join)


def pieces_of_the_file() -> tuple[list[str], list[float], bytes]:
    """The pieces are spelled by the way from the root of the trie to where they end."""
    content = PIECES.read_bytes()
    magic, alphabet, slots, pieces, _, _ = HEADER.unpack_from(content)
    assert magic == MAGIC
    at = HEADER.size
    chars = content[at : at + alphabet].decode()
    at += alphabet
    base, parent, numbers = (struct.unpack_from(f"<{slots}i", content, at + 4 * slots * each) for each in range(3))
    at += 12 * slots
    scores = struct.unpack_from(f"<{pieces}f", content, at)
    found = [""] * pieces
    for end, number in enumerate(numbers):
        slot, text = end, ""
        while number and slot:
            text = chars[slot - base[parent[slot]] - 1] + text
            slot = parent[slot]
        if number:
            found[number] = text
    return found, list(scores), content[at + 4 * pieces :]


def message(*fields: tuple[int, bytes | int | float]) -> bytes:
    """A protobuf message."""

    def varint(number: int) -> bytes:
        low, high = number & 0x7F, number >> 7
        return bytes([low | 0x80]) + varint(high) if high else bytes([low])

    def field(number: int, value: bytes | int | float) -> bytes:
        match value:
            case bytes():
                return varint(number << 3 | 2) + varint(len(value)) + value
            case int():
                return varint(number << 3) + varint(value)
        return varint(number << 3 | 5) + struct.pack("<f", value)

    return b"".join(field(*each) for each in fields)


def google() -> Any:
    """The library with a model of these pieces. It is not told of pieces that no text has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its bindings, on import
        from sentencepiece import SentencePieceProcessor
    texts, scores, table = pieces_of_the_file()
    unknown, control, unused = 2, 3, 5
    kinds = {0: ("<unk>", unknown), 1: ("<s>", control), 2: ("</s>", control)}
    parts = []
    for number, (text, score) in enumerate(zip(texts, scores, strict=True)):
        text, kind = (text, 1) if text else kinds.get(number, (f"<unused {number}>", unused))
        parts.append((1, message((1, text.encode()), (2, score), (3, kind))))
    units = HEADER.unpack_from(PIECES.read_bytes())[4]
    normal_forms = (2, struct.pack("<I", 4 * units) + table)
    model = message(
        *parts, (2, message((3, 1), (40, 0), (41, 1), (42, 2))), (3, message((1, b"nmt_nfkc"), normal_forms))
    )
    return SentencePieceProcessor(model_proto=model)


GOOGLE = google()


SCORES = pieces_of_the_file()[1]


def reference(text: str) -> list[int]:
    return [1, *GOOGLE.encode(text), 2]


def agree(text: str) -> bool:
    """Equal pieces, or pieces of the same text with equal scores: which of these are taken is a matter of rounding."""
    ours, theirs = OURS.encode(text, ALL), reference(text)
    return ours == theirs or (
        GOOGLE.decode(ours) == GOOGLE.decode(theirs)
        and sum(SCORES[piece] for piece in ours) == pytest.approx(sum(SCORES[piece] for piece in theirs), rel=1e-5)
    )


NOTED: list[tuple[str, list[int]]] = [
    (entry["text"], entry["pieces"]) for entry in json.loads(REFERENCE.read_text("utf-8"))
]


@pytest.mark.parametrize("text", NASTY)
def test_pieces_are_those_of_the_library(text: str) -> None:
    assert agree(text)
    if len(set(text)) > 2:  # without ties
        assert OURS.encode(text, ALL) == reference(text)


@given(texts)
def test_pieces_of_any_text_are_those_of_the_library(text: str) -> None:
    assert agree(text)


@pytest.mark.parametrize(("text", "pieces"), NOTED)
def test_pieces_are_those_that_the_original_file_gives(text: str, pieces: list[int]) -> None:
    """Noted by `tools/build_use_multilingual.py --reference`."""
    assert OURS.encode(text, ALL) == pieces


def test_every_piece_is_found_by_its_text() -> None:
    texts, _, _ = pieces_of_the_file()
    assert sum(map(bool, texts)) == 128_000 - 6  # without marks, the unknown, and three that no text has
    assert len(set(texts)) == 128_000 - 6 + 1
    for text in ("▁the", "▁der", "因为", "です", "▁в", "ที่", "▁في"):
        assert text in texts


def test_lone_surrogates_are_spaces() -> None:
    assert OURS.encode("half a pair \ud800 and\udfff more", ALL) == OURS.encode("half a pair and more", ALL)


def test_only_the_first_pieces_are_given() -> None:
    whole = OURS.encode("one two three four", ALL)
    assert len(whole) == 6
    assert OURS.encode("one two three four", 3) == [*whole[:4], 2]
    assert OURS.encode("one two three four", 4) == whole
    assert OURS.encode("électroencéphalographie " * 3, 2) == [*OURS.encode("électroencéphalographie", ALL)[:3], 2]


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CACHED_RUNS_MAX > 100
    monkeypatch.setattr(sentencepiece, "CACHED_RUNS_MAX", 3)
    fresh = SentencePiece(PIECES)
    words = "one two three four five six one two"
    assert fresh.encode(words, ALL) == reference(words)
    assert len(fresh._cache) <= 3
    fresh.encode("a" * 1000, ALL)
    assert all(len(run) <= 64 for run in fresh._cache)


# ---------------------------------------------------------------- units


@pytest.mark.parametrize("text", NASTY)
def test_units_cover_a_text_in_order(text: str) -> None:
    units = OURS.weigh(text)
    assert all(pieces >= 1 and start < end for (start, end), pieces in units)
    assert all(first.end <= second.start for (first, _), (second, _) in pairwise(units))
    covered = "".join(text[start:end] for (start, end), _ in units)
    assert covered == "".join(sentencepiece.RUN.findall(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The office dog", ["The", "office", "dog"]),
        ("Обеденный перерыв", ["Обеденный", "перерыв"]),
        ("房东三月份把房租涨了百分之八。明天我们在办公室开会。", None),
        ("เจ้าของบ้านขึ้นค่าเช่าแปดเปอร์เซ็นต์ในเดือนมีนาคม", None),
        ("ｆｕｌｌｗｉｄｔｈ　ｔｅｘｔ　ｗｉｔｈｏｕｔ　ｓｐａｃｅｓ", None),
    ],
)
def test_words_are_units_and_long_sentences_without_spaces_are_cut(text: str, expected: list[str] | None) -> None:
    units = OURS.weigh(text)
    parts = [text[start:end] for (start, end), _ in units]
    assert expected is None or parts == expected
    assert max(pieces for _, pieces in units) <= sentencepiece.UNIT_PIECES_MAX
    together = len(OURS.encode(text, ALL)) - 2
    assert together <= sum(pieces for _, pieces in units) <= together + 6


# ---------------------------------------------------------------- coverage


def test_texts_of_its_languages_are_covered() -> None:
    for text, _ in NOTED:
        assert OURS.vocabulary_coverage(text) > 0.8, text


@pytest.mark.parametrize(
    ("text", "at_most"),
    [
        ("मकान मालिक ने मार्च में किराया आठ प्रतिशत बढ़ा दिया।", 0.1),  # Hindi
        ("בעל הבית העלה את שכר הדירה בשמונה אחוזים במרץ.", 0.1),  # Hebrew
        ("Ο ιδιοκτήτης αύξησε το ενοίκιο κατά οκτώ τοις εκατό.", 0.3),  # Greek
        ("مالک مکان نے مارچ میں کرایہ آٹھ فیصد بڑھا دیا۔", 0.5),  # Urdu
        ("Chủ nhà đã tăng tiền thuê tám phần trăm vào tháng Ba.", 0.7),  # Vietnamese
        ("Власник підвищив орендну плату на вісім відсотків у березні.", 0.8),  # Ukrainian
    ],
)
def test_texts_of_other_languages_are_not(text: str, at_most: float) -> None:
    assert OURS.vocabulary_coverage(text) < at_most


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), (" \n", 0), ("308 ?!", 0), ("😀", 0), ("I", 1), ("Wo ist das?", 1), ("好", 1), ("नमस्ते hello", 5 / 9)],
)
def test_coverage_counts_letters(text: str, expected: float) -> None:
    assert OURS.vocabulary_coverage(text) == pytest.approx(expected)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("damage", ["empty", "header", "cut short", "longer", "another"])
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "pieces.bin"
    shutil.copy(PIECES, path)
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "header": content[:10],
            "cut short": content[:-1],
            "longer": content + b"\0",
            "another": b"x" + content[1:],
        }[damage]
    )
    with pytest.raises(ValueError, match="cut short"):
        SentencePiece(path)
