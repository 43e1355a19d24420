from __future__ import annotations

import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from nacre.analysis.wordpiece import CACHED_RUNS_MAX, WordPiece
from nacre.embedders.minilm import FOLDER

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


@pytest.mark.slow
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


@pytest.mark.slow
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


# ---------------------------------------------------------------- how much is known


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Where is the spare key?", 1),
        ("electroencephalographically", 1),  # in parts
        ("Wo ist der Schlüssel für das Lager?", 1),  # without accents, in parts
        ("Straße", 1),  # "st", "##raße": no ASCII, and still a part of a word
        ("Łódź", 1),  # the town is a piece
        ("¿Dónde está la llave del almacén?", 27 / 28),  # all but "¿", a single sign
        ("Привет мир", 0),  # п, ##р, ##и, …
        ("Смирнов", 2 / 7),  # "##ов" is an ending that it has
        ("أين مفتاح المستودع؟", 0),
        ("창고 열쇠 어디", 0),  # taken apart into jamo: some are letters, some unknown
        ("กุญแจอยู่ที่ไหน", 0),
        ("钥匙在哪里", 0),
        ("カタカナ", 0),
        ("key ключ", 3 / 7),
        ("where is 钥匙", 7 / 9),
        ("ключ?", 1 / 5),
        ("key 😀", 3 / 4),
        ("“key”", 3 / 5),
        ("zero\u200bwidth", 9 / 10),
        ("a" * 100, 1),
        ("a" * 101, 0),  # too long for a word: unknown, with all its letters
        ("a" * 101 + " key", 3 / 104),
        (f"{'key-' * 30}ключ", 120 / 124),  # a long run is known by its parts
        ("≠", 1),  # "=" and a stroke: one character is never more than one
        ("[UNK]", 0),
        ("", 0),
        (" \n", 0),
        ("\u200b", 0),
    ],
)
@pytest.mark.parametrize("names", [True, False])
def test_how_much_of_a_text_is_known(text: str, share: float, names: bool) -> None:
    assert OURS.vocabulary_coverage(text, names=names) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("ERR_2270", 0),
        ("BOOKING_TIMEOUT_MS", 0),
        ("v1.2", 0),
        ("p53", 0),
        ("KES-241", 1),  # letters and digits apart are words
        ("the 1990s", 1),
        ("on the 3rd at 5pm", 1),
        ("2026-01-05", 1),
        ("outbox.go", 1),
        ("_", 1),
        ("is ERR_2270 fixed?", 8 / 16),
        ("(get_user)", 0),  # with all that stands about it
    ],
)
def test_made_up_names_are_known_only_where_they_are_asked_for(text: str, share: float) -> None:
    assert OURS.vocabulary_coverage(text, names=True) == 1
    assert OURS.vocabulary_coverage(text, names=False) == pytest.approx(share)


def test_a_character_that_is_taken_apart_counts_once(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[UNK]\n[CLS]\n[SEP]\nᄒ\n##ᅡᆫ", encoding="utf-8")
    assert unicodedata.normalize("NFD", "한") == "ᄒ" + "ᅡᆫ"
    assert WordPiece(vocabulary).vocabulary_coverage("한 글", names=True) == 1 / 2


@given(texts)
def test_what_is_known_is_a_share(text: str) -> None:
    without = OURS.vocabulary_coverage(text, names=False)
    assert 0 <= without <= OURS.vocabulary_coverage(text, names=True) <= 1


@given(st.lists(st.sampled_from(["where", "is", "the", "key?", "Lager", "7:40"]), min_size=1, max_size=9))
def test_plain_words_are_known_and_letters_of_other_scripts_make_it_less(words: list[str]) -> None:
    text = " ".join(words)
    assert OURS.vocabulary_coverage(text, names=False) == 1
    assert OURS.vocabulary_coverage(f"{text} ключ", names=False) == pytest.approx(1 - 4 / len("".join(words) + "ключ"))
