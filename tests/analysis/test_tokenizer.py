"""The tokeniser: the tokens of a text, and that the words of a text always find it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre.analysis import tokenizer
from nacre.types.memory import Span, Tokens

INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"

# Any text at all, and texts dense with what the tokeniser treats specially.
TRICKY = st.text(
    alphabet=st.sampled_from(
        list("aZ09 _-./:@#+&\\~'’\"*()\t\n")
        + list("éßİΐﬁ½…¨猫日本語ガ한국สวัिन्दُّم")
        + list("\u0301\u200b\u200d\ufe0f😀★\x00\x1f")
    ),
    max_size=40,
)
TEXTS = st.one_of(st.text(max_size=60), TRICKY)


# (text, words, forms, asked)
CHUNKS: list[tuple[str, str, str, str]] = [
    # plain words and English stems
    ("cat", "cat", "", "cat"),
    ("Cat", "cat", "", "cat"),
    ("CAT", "cat", "", "cat"),
    ("x", "x", "", "x"),
    ("X", "x", "", "x"),
    ("running", "running", "run", "run"),
    ("deployment", "deployment", "deploy", "deploy"),
    ("databases", "databases", "databas", "databas"),
    # identifiers: parts in order, the whole as a form
    ("getUserId", "get user id", "getuserid", "get user id getuserid"),
    ("HTTPServer", "http server", "httpserver", "http server httpserver"),
    ("iPad", "i pad", "ipad", "i pad ipad"),
    ("snake_case_name", "snake case name", "snake_case_name", "snake case name snake_case_name"),
    ("__init__", "init", "__init__", "init __init__"),
    ("kebab-case", "kebab case", "kebab-case", "kebab case kebab-case"),
    ("src/app/main.py:42", "src app main py 42", "src/app/main.py:42", "src app main py 42 src/app/main.py:42"),
    ("v1.2.3", "v1 2 3", "1 v1.2.3", "v1 2 3 v1.2.3"),
    ("3.14", "3 14", "3.14", "3 14 3.14"),
    ("2024-01-31", "2024 01 31", "2024-01-31", "2024 01 31 2024-01-31"),
    ("C++", "c", "c++", "c c++"),
    ("C#", "c", "c#", "c c#"),
    ("#1234", "1234", "#1234", "1234 #1234"),
    ("#tag", "tag", "", "tag"),
    (".NET", "net", ".net", "net .net"),
    ("node.js", "node js", "node.js", "node js node.js"),
    ("user@example.com", "user example com", "exampl user@example.com", "user exampl com user@example.com"),
    ("E0502", "e0502", "0502", "e0502"),
    ("gpt4", "gpt4", "gpt 4", "gpt4"),
    ("AT&T", "at t", "at&t", "at t at&t"),
    ("TCP/IP", "tcp ip", "tcp/ip", "tcp ip tcp/ip"),
    # punctuation around words goes away
    ("(hello),", "hello", "", "hello"),
    ("hello...", "hello", "", "hello"),
    ("--flag", "flag", "", "flag"),
    ("@user", "user", "", "user"),
    ("50%", "50", "", "50"),
    ("1,000", "1 000", "", "1 000"),
    ('say"hi"', "say hi", "", "say hi"),
    ("one—two", "one two", "", "one two"),
    # apostrophes
    ("don't", "dont", "", "dont"),
    ("don’t", "dont", "", "dont"),
    ("user's", "user", "", "user"),
    ("user’s", "user", "", "user"),
    ("users'", "users", "user", "user"),
    ("'quoted'", "quoted", "quot", "quot"),
    # scripts written without spaces: overlapping pairs, single characters as forms
    ("日本語", "日本 本語", "日 本 語", "日本 本語"),
    ("猫", "猫", "", "猫"),
    ("カメラ", "カメ メラ", "カ メ ラ", "カメ メラ"),
    ("ｶﾞ", "ガ", "", "ガ"),
    ("用GPT4写", "用 gpt4 写", "gpt 4", "用 gpt4 写"),
    ("안녕하세요", "안녕 녕하 하세 세요", "안 녕 하 세 요", "안녕 녕하 하세 세요"),
    ("ไทย", "ไท ทย", "ไ ท ย", "ไท ทย"),
    # scripts with spaces: vowel signs belong to their word
    ("हिन्दी", "हिन्दी", "हिन्द", "हिन्द"),
    ("की", "की", "", "की"),
    ("नमस्ते", "नमस्ते", "नमस्त", "नमस्त"),
    ("தமிழ்", "தமிழ்", "", "தமிழ்"),
    ("مرحبا", "مرحبا", "مرحب", "مرحب"),
    ("مُحَمَّد", "محمد", "مُحَمَّد", "محمد مُحَمَّد"),
    ("Привет", "привет", "", "привет"),
    ("Ελλάδα", "ελλαδα", "ελλαδ ελλάδα", "ελλαδ ελλάδα"),
    # diacritics: folded for everybody, kept for those who type them
    ("café", "cafe", "café", "cafe café"),
    ("cafe\u0301", "cafe", "café", "cafe café"),
    ("Ärger", "arger", "ärger", "arger ärger"),
    ("Straße", "strasse", "strass", "strass"),
    # compatibility forms
    ("ﬁle", "file", "", "file"),
    ("ｆｕｌｌ", "full", "", "full"),
    ("①", "1", "", "1"),
    # nothing to look for
    ("", "", "", ""),
    ("...", "", "", ""),
    ("&&", "", "", ""),
    ("😀", "", "", ""),
    ("👩‍👩‍👧", "", "", ""),
    ("★→∞", "", "", ""),
    # characters nobody sees
    ("zero\u200bwidth", "zerowidth", "", "zerowidth"),
    ("soft\u00adhyphen", "softhyphen", "", "softhyphen"),
    ("\ufeffstart", "start", "", "start"),
    ("\u200b", "", "", ""),
]


@pytest.mark.parametrize(("text", "its_words", "its_forms", "looked_for"), CHUNKS)
def test_a_chunk_becomes_these_tokens(text: str, its_words: str, its_forms: str, looked_for: str) -> None:
    assert tokenizer.tokenise(text)[:2] == (tuple(its_words.split()), tuple(its_forms.split()))
    assert tokenizer.query_tokens(text) == tuple(looked_for.split())


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("We are running late", "run"),
        ("We run late", "running"),
        ("call getUserName()", "getusername"),
        ("call getUserName()", "getUserName"),
        ("call getUserName()", "username user"),
        ("the iphone", "iPhone"),
        ("the iPhone", "iphone"),
        ("a YouTube link", "youtube"),
        ("a youtube link", "YouTube"),
        ("a café", "cafe"),
        ("a cafe", "café"),
        ("a cafe\u0301", "café"),
        ("written in C++", "c++"),
        ("written in C++", "C"),
        ("see #1234.", "1234"),
        ("see #1234.", "#1234"),
        ("in src/app/main.py:42", "main.py"),
        ("mail user@example.com now", "user@example.com"),
        ("日本語を書く", "日本"),
        ("日本語を書く", "語"),
        ("用GPT4写", "gpt"),
        ("用GPT4写", "GPT4"),
        ("STRASSE", "straße"),
        ("مُحَمَّد", "محمد"),
        ("the service2 host", "service2"),
        # Letters and digits apart are forms, so the word without its number finds them, stemmed or not.
        ("ask python3 for it", "python"),
        ("ask service2 for it", "service"),
        ("parseHTTPResponse2", "response"),
    ],
)
def test_a_question_finds_the_text(text: str, question: str) -> None:
    tokens = tokenizer.tokenise(text)
    assert {*tokens.words, *tokens.forms} & set(tokenizer.query_tokens(question))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("C and Rust", "++"),
        ("हिन्दी", "हि"),  # half a word is another word
        ("नमस्ते", "नमस"),
        ("cart", "car"),
        ("日本", "本日"),
    ],
)
def test_a_question_does_not_find_the_text(text: str, question: str) -> None:
    tokens = tokenizer.tokenise(text)
    assert not {*tokens.words, *tokens.forms} & set(tokenizer.query_tokens(question))


def test_a_word_that_only_the_spelling_with_diacritics_tells_apart_is_asked_for_twice() -> None:
    assert tokenizer.query_tokens("résumé") == ("resum", "résumé")


def test_asked_gives_each_token_once_in_order() -> None:
    assert tokenizer.query_tokens("run b runs a running") == ("run", "b", "a")


def test_a_long_token_is_cut() -> None:
    assert tokenizer.tokenise("a" * 100).words == ("a" * tokenizer.TOKEN_CHARS_MAX,)
    assert tokenizer.query_tokens("a" * 100) == ("a" * tokenizer.TOKEN_CHARS_MAX,)


def test_a_long_identifier_has_no_whole_form() -> None:
    tokens = tokenizer.tokenise("_".join(["part"] * 20))
    assert tokens == Tokens(("part",) * 20, (), 20)


@pytest.mark.parametrize("separator", [" ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\u3000", "\x1c", "\x85"])
def test_any_white_space_separates(separator: str) -> None:
    assert tokenizer.tokenise(f"one{separator}two").words == ("one", "two")


@given(TEXTS)
@example("ΐ" * 70)
@example("\u0958" * 70)
@example("ﷺ")
@example("\ud800x")
def test_tokens_are_fit_for_the_index(text: str) -> None:
    """The index splits tokens at white space and quotes them with `"`, so neither may be inside one."""
    tokens = tokenizer.tokenise(text)
    for token in (*tokens.words, *tokens.forms, *tokenizer.query_tokens(text)):
        assert token
        assert token.split() == [token]
        assert '"' not in token
        assert not any(ord(char) < 33 or ord(char) == 127 for char in token)
        assert not any("\ud800" <= char <= "\udfff" for char in token)
        assert not any("A" <= char <= "Z" for char in token)  # the index folds these
        assert len(token) <= tokenizer.TOKEN_CHARS_MAX


@given(TEXTS)
def test_tokens_do_not_depend_on_the_cache(text: str) -> None:
    assert tokenizer.tokenise(text) == tokenizer.tokenise(text)
    for raw in text.split():
        assert tokenizer.analyse(raw) == tokenizer._analyse(raw)


def test_a_chunk_that_is_met_again_and_again_is_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others come between: what was met lately outlives a full cache, and the cache stays bounded."""
    monkeypatch.setattr(tokenizer, "_CACHED_CHUNKS_MAX", 4)
    monkeypatch.setattr(tokenizer, "_cache", tokenizer._ChunkCache())
    monkeypatch.setattr(tokenizer, "_older_cache", tokenizer._ChunkCache())
    analysed: list[str] = []
    analyse = tokenizer._analyse

    def counted(raw: str) -> tokenizer._Analysis:
        analysed.append(raw)
        return analyse(raw)

    monkeypatch.setattr(tokenizer, "_analyse", counted)
    for number in range(20):
        assert tokenizer.analyse("Kept,").words == ("kept",)
        assert tokenizer.analyse(f"new{number}").words == (f"new{number}",)
    assert analysed == ["Kept", *(f"new{number}" for number in range(20))]
    assert len(tokenizer._cache) + len(tokenizer._older_cache) <= 10


@given(TEXTS, TEXTS)
def test_texts_side_by_side_give_their_tokens_side_by_side(left: str, right: str) -> None:
    both = tokenizer.tokenise(f"{left} {right}")
    assert both.words == tokenizer.tokenise(left).words + tokenizer.tokenise(right).words
    assert both.forms == tokenizer.tokenise(left).forms + tokenizer.tokenise(right).forms


@given(TEXTS)
@example("'s")
@example("the boss's.")
@example("the boss's: no")
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    tokens = tokenizer.tokenise(text)
    assert set(tokenizer.query_tokens(text)) <= {*tokens.words, *tokens.forms}


@given(st.from_regex(r"[A-Za-z]{1,20}", fullmatch=True), st.sampled_from([str.lower, str.upper, str.capitalize]))
@example("iPhone", str.lower)
def test_an_identifier_is_found_in_any_case(identifier: str, other_case: Callable[[str], str]) -> None:
    tokens = tokenizer.tokenise(identifier)
    assert {*tokens.words, *tokens.forms} & set(tokenizer.query_tokens(other_case(identifier)))


@given(TEXTS)
@example("'s")
def test_a_text_with_words_can_be_asked_for(text: str) -> None:
    assert bool(tokenizer.query_tokens(text)) == bool(tokenizer.tokenise(text).words)


@given(TEXTS)
def test_located_spans_are_in_order_and_inside(text: str) -> None:
    end = 0
    for span, chunk in tokenizer.chunks_with_spans(text):
        assert end <= span.start <= span.end <= len(text)
        assert span.start < span.end or not (chunk.words or chunk.forms)
        assert not any(char.isspace() for char in text[span.start : span.end])
        end = span.end


@given(TEXTS)
@example("'s")
@example("the boss's.")
@settings(max_examples=200)
def test_located_knows_the_tokens_of_the_text(text: str) -> None:
    """Over normal text without invisible characters: `located` has to work on the text as it stands."""
    normal = unicodedata.normalize("NFKC", text).translate(dict.fromkeys(map(ord, INVISIBLE)))
    normal = unicodedata.normalize("NFKC", normal)
    located = {token for _, chunk in tokenizer.chunks_with_spans(normal) for token in (*chunk.words, *chunk.forms)}
    tokens = tokenizer.tokenise(normal)
    assert located == {*tokens.words, *tokens.forms}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Say hello, world!", ["Say", "hello", "world"]),
        ("the user's file.", ["the", "user's", "file"]),
        ("in src/app/main.py:42.", ["in", "src/app/main.py:42"]),
        ("C++ and #12", ["C++", "and", "#12"]),
        ("黒い猫", ["黒", "い", "猫"]),
        ("用GPT4写", ["用", "GPT4", "写"]),
        ("cafe\u0301 bar", ["cafe\u0301", "bar"]),
        ("(नमस्ते)", ["नमस्ते"]),
        ("zero\u200bwidth space", ["zero\u200bwidth", "space"]),
        ("soft\u00adhyphen", ["soft\u00adhyphen"]),
        ("😀 ok", ["ok"]),
    ],
)
def test_located_points_at_the_words(text: str, places: list[str]) -> None:
    assert [
        text[span.start : span.end] for span, chunk in tokenizer.chunks_with_spans(text) if chunk.words or chunk.forms
    ] == places


@pytest.mark.parametrize(
    ("text", "part", "word"),
    [
        ("an umbrella, please", "brel", "umbrella"),
        ("an umbrella, please", "umbrella", "umbrella"),
        ("snake_case", "nak", "snake"),
        ("die Wärmeplus-Nummer", "plus", "Wärmeplus"),
        ("cafe\u0301s here", "caf", "cafe\u0301s"),
        ("東京タワー", "京", "京"),
        ("naïve東京", "ï", "naïve"),
        ("tea", "tea", "tea"),
        ("wait ... what", "...", "..."),
    ],
)
def test_a_part_belongs_to_this_word(text: str, part: str, word: str) -> None:
    start, end = tokenizer.word_around(text, Span(text.index(part), text.index(part) + len(part)))
    assert text[start:end] == word


def test_the_word_around_a_part_is_bounded() -> None:
    start, end = tokenizer.word_around("x" * 1_000, Span(500, 502))
    assert end - start == 2 + 2 * tokenizer.TOKEN_CHARS_MAX
