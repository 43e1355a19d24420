"""Snippets: the best window, exact highlights, and no cut inside a word or grapheme."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.highlight import SNIPPET_CHARS, SUMMARY_CHARS, HighlightTerms, snippet, summary
from nacre.query.ast import Term
from nacre.query.parser import parse
from nacre.types.memory import Span
from nacre.types.search import Snippet


def shown(text: str, query: str, passage: Span | None = None, chars: int = SNIPPET_CHARS) -> Snippet:
    parsed = parse(query, datetime(2026, 3, 1, tzinfo=UTC), UTC)
    return snippet(text, HighlightTerms.of_query(parsed, dict.fromkeys(parsed.terms, 1.0)), passage, chars)


def highlighted(found: Snippet) -> list[str]:
    return [found.text[span.start : span.end] for span in found.highlights]


def filler(chars: int) -> str:
    """Words of nine letters and a space each, none of which is asked for."""
    return ("wordwords " * (chars // 10 + 1))[:chars]


# ---------------------------------------------------------------- highlights


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("We chose PostgreSQL, finally.", "postgresql", ["PostgreSQL"]),
        ("We are running; they ran.", "run", ["running"]),
        ("He runs and runs.", "running", ["runs", "runs"]),
        ("Call getUserName() now", "user", ["getUserName"]),
        ("Call getUserName() now", "getUserName", ["getUserName"]),
        ("the user's file", "user", ["user's"]),
        ("In (brackets), see #1234.", "1234 brackets", ["brackets", "#1234"]),
        ("see src/app/main.py:42.", "main.py:42", ["src/app/main.py:42"]),
        ("C++ but not C", "C++", ["C++", "C"]),  # the words of an identifier are looked for, too
        ("deploys, deployment and redeploy", "deploy*", ["deploys", "deployment"]),
        ("a café, a cafe", "cafe", ["café", "cafe"]),
        ("a cafe\u0301 here", "café", ["cafe\u0301"]),
        ("日本語を書く", "日本", ["日本"]),
        ("日本語を書く", "日本語", ["日本語"]),  # pairs that touch are one
        ("日本語を書く", "語", ["語"]),
        ("本日本", "日本", ["日本"]),
        ("我用GPT4写信", "GPT4", ["GPT4"]),
        ("我用GPT4写信", "写信", ["写信"]),
        ("नमस्ते दुनिया", "दुनिया", ["दुनिया"]),
        ("zero\u200bwidth here", "zerowidth", ["zero\u200bwidth"]),
        ("nothing of it", "absent", []),
        ("", "absent", []),
        ("a -b c", "c -b", ["c"]),  # what is excluded is not highlighted
        ('the "exact phrase" here', '"exact phrase"', ["exact", "phrase"]),
        # function words are not highlighted
        ("The gateway is on the port of the day", "what is the port of the gateway?", ["gateway", "port"]),
        ("It is what it is", "what is the port?", []),  # though the text has nothing else of the query
        ("Call getUserName() to get it", "get the user name", ["getUserName"]),
        ("der Schlüssel liegt in der Schublade", "wo ist der Schlüssel?", ["Schlüssel"]),
        ("la clé est dans le tiroir", "où est la clé dans le garage", ["clé"]),
        ("la llave está en el cajón", "dónde está la llave", ["llave"]),
        ("He is on a diet in La Paz", "how is he in La Paz", ["La", "Paz"]),  # an English question has no such words
        # but in phrases, where these stand, and where nothing else is asked for
        ("to be, or not to be, is the question", "to be or not to be", ["to", "be", "or", "not", "to", "be"]),
        ("The Who played, and the crowd cheered the who", '"the who"', ["The", "Who", "the", "the", "who"]),
        ("the port, then the gateway of the day", 'gateway "the port"', ["the", "port", "gateway"]),
        ("the port, then the gateway of the day", '"the port" -gateway', ["the", "port"]),
        ("the day, and then the port", 'day "the port"', ["day", "the", "port"]),
        ("port of the day: the best", '"of the day" port', ["port", "of", "the", "day"]),
        ("of that, the day", '"of the day" port', ["day"]),
        ("Store the running costs of it", '"the running costs"', ["the", "running", "costs"]),  # terms are stems
        ("Sie ist die Beste und der Rest", '"die Beste" und wer', ["die", "Beste"]),
        ("where is it", "where", ["where"]),
        ("wo ist es", "wo ist", ["wo", "ist"]),
    ],
)
def test_highlights_point_at_the_matched_words(text: str, query: str, expected: list[str]) -> None:
    assert highlighted(shown(text, query)) == expected


@pytest.mark.parametrize("text", ["", "short", "x" * SNIPPET_CHARS, "  spaces stay  "])
def test_a_short_text_is_shown_whole(text: str) -> None:
    assert shown(text, "short") == Snippet(text, (Span(0, 5),) if text == "short" else (), 0)


# ---------------------------------------------------------------- the window


def test_the_window_stands_around_the_match() -> None:
    text = f"{filler(1000)}needle {filler(1000)}"
    found = shown(text, "needle")
    assert highlighted(found) == ["needle"]
    assert 900 < found.start < 1000


def test_the_window_with_the_most_different_words_wins() -> None:
    text = f"{filler(300)}alpha alpha alpha {filler(500)}alpha beta {filler(500)}"
    found = shown(text, "alpha beta")
    assert highlighted(found) == ["alpha", "beta"]


def test_a_rarer_word_wins() -> None:
    text = f"common {filler(500)}common {filler(500)}rare {filler(500)}common {filler(300)}"
    assert highlighted(shown(text, "common rare")) == ["rare"]


def test_the_earliest_of_equal_windows_wins() -> None:
    text = f"{filler(500)}needle {filler(500)}needle {filler(500)}"
    assert shown(text, "needle").start < 500


@pytest.mark.parametrize("apart", [10, 100, 150, 180, 200, 220])
def test_words_that_fit_into_one_window_are_shown_together(apart: int) -> None:
    text = f"{filler(400)}alpha {filler(apart)} beta {filler(400)}"
    assert highlighted(shown(text, "alpha beta")) == ["alpha", "beta"]


def test_words_together_are_preferred_to_words_apart() -> None:
    text = f"{filler(400)}alpha {filler(220)} beta {filler(400)}alpha beta {filler(400)}"
    assert highlighted(shown(text, "alpha beta")) == ["alpha", "beta"]


def test_a_match_at_the_very_end_is_shown() -> None:
    text = f"{filler(1000)}needle"
    found = shown(text, "needle")
    assert found.text.endswith("needle")
    assert highlighted(found) == ["needle"]


def test_a_match_at_the_very_beginning_is_shown() -> None:
    found = shown(f"needle {filler(1000)}", "needle")
    assert found.start == 0
    assert highlighted(found) == ["needle"]


def test_without_a_word_the_passage_that_matched_is_shown() -> None:
    text = f"{filler(1000)}Here it begins. {filler(1000)}"
    found = shown(text, "absent", Span(1000, 1500))
    assert "Here it begins." in found.text
    assert found.start <= 1000
    assert found.highlights == ()


def test_without_anything_the_beginning_is_shown() -> None:
    assert shown(filler(1000), "absent").start == 0


def test_words_win_over_the_passage() -> None:
    text = f"needle {filler(2000)}"
    assert highlighted(shown(text, "needle", Span(1500, 2000))) == ["needle"]


# ---------------------------------------------------------------- nothing is cut in two


@pytest.mark.parametrize("at", range(300, 330))
def test_words_are_not_cut(at: int) -> None:
    before = ("some words of many lengths, for example international and a " * 6)[:at]
    text = f"{before} needle {'and so forth it goes ' * 30}"
    found = shown(text, "needle")
    assert set(found.text.split()) <= set(text.split())


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301",  # with a combining accent
        "e\u0301\u0323\u0302",  # with several
        "👩\u200d👩\u200d👧",  # a family, joined
        "❤\ufe0f",  # a variation selector
        "1\ufe0f\u20e3",  # a keycap
        "कि",  # a vowel sign
        "👍🏽",  # a skin tone
        "🇩🇪",  # a flag: two letters
    ],
    ids=["accent", "accents", "family", "selector", "keycap", "vowel sign", "skin tone", "flag"],
)
def test_characters_are_not_cut(character: str) -> None:
    """A text without any space, so that only borders between characters are left."""
    text = character * 400
    for chars in range(SNIPPET_CHARS, SNIPPET_CHARS + 12):
        found = shown(text, "absent", Span(100 * len(character), len(text)), chars)
        assert 0 < found.start < len(text) - len(found.text)
        assert found.start % len(character) == 0
        assert len(found.text) % len(character) == 0


# ---------------------------------------------------------------- summaries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("  on\none   line\t", "on one line"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 100 + "…"),
        ("word " * 30, "word " * 19 + "word…"),
        ("a " + "b" * 200, "a " + "b" * 98 + "…"),  # there is no border near
        ("\n" * 1000 + "far below", "far below"),
        ("first" + " " * 1000 + "second", "first second"),
    ],
)
def test_a_summary(text: str, expected: str) -> None:
    assert summary(text) == expected


@given(st.text(max_size=500))
def test_a_summary_is_one_short_line(text: str) -> None:
    line = summary(text)
    assert len(line) <= SUMMARY_CHARS + 1
    assert "\n" not in line
    assert line.endswith("…") or line == " ".join(text.split())
    assert bool(line) == bool(text.strip())


# ---------------------------------------------------------------- whatever the text

PIECES = [
    "alpha",
    "beta",
    " ",
    " ",
    "  ",
    "\n",
    "日本",
    "用GPT4写",
    "e\u0301",
    "👩\u200d👧",
    "❤\ufe0f",
    "\u200b",
    "’s",
    "#1",
]
TEXTS = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(PIECES), max_size=80).map("".join))
TERMS = st.lists(
    st.builds(Term, st.sampled_from(["alpha", "beta", "al", "日本", "用", "gpt4", "e", "1"]), st.booleans()), max_size=4
)


@given(TEXTS, TERMS, st.integers(40, 120), st.data())
def test_a_snippet_is_a_part_of_the_text(text: str, terms: list[Term], chars: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    passage = data.draw(st.none() | st.just(Span(start, len(text))))
    found = snippet(text, HighlightTerms(dict.fromkeys(terms, 1.0)), passage, chars)
    assert found.text == text[found.start : found.start + len(found.text)]
    assert found.text or not text
    assert len(found.text) <= chars
    end = 0
    for highlight in found.highlights:
        assert end <= highlight.start < highlight.end <= len(found.text)
        end = highlight.end


@given(TEXTS, st.sampled_from(["alpha", "日本"]), st.integers(60, 120))
def test_a_word_that_is_there_is_highlighted(text: str, word: str, chars: int) -> None:
    """Unless it stands in a run of more than a window."""
    spaced = f"{text} {word} {text}"
    found = snippet(spaced, HighlightTerms({Term(word): 1.0}), None, chars)
    assert any(word in each for each in highlighted(found))
