"""Does a question with a time ask about the past, and has its time a border?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.query.tense import asks_about_past, is_vague, words_to_search
from nacre.query.time_questions import understand

NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    "question",
    [
        "who was away on Friday?",
        "what did we do this week",
        "what did I eat today?",
        # these need no verb
        "notes of last week",
        "invoices from June 2025",
        "summarise last week",  # a request that looks back
        "yesterday",
        # nor do these have a period
        "what changed after the migration",
        "the first meeting on Friday",
        "where did Ada use to live?",
        "was war am Freitag",
        "was haben wir am Freitag besprochen",
        "qu'avons-nous décidé vendredi",
        "qué pasó el viernes",
        "今天发生了什么",
    ],
)
def test_this_asks_about_the_past(question: str) -> None:
    time = understand(question, NOW, UTC)
    assert time is not None
    assert asks_about_past(question, time)


@pytest.mark.parametrize(
    "question",
    [
        "who is away on Friday?",
        "what is on this week",
        "meetings today",
        "book a table for Friday",
        "plan the trip in May",
        "wer kommt am Freitag",
        "qui vient vendredi",
        "quién viene el viernes",
        "今天有什么",
    ],
)
def test_this_may_lie_ahead(question: str) -> None:
    time = understand(question, NOW, UTC)
    assert time is not None
    assert time.mentions
    assert not asks_about_past(question, time)


@pytest.mark.parametrize(
    ("question", "vague"),
    [
        ("what did we do recently", True),
        ("what have we done lately", True),
        ("what did Ada say the other day", True),
        ("was haben wir neulich besprochen", True),
        ("what happened last week", False),
        ("what did Bob say yesterday and recently", False),  # one border is enough
    ],
)
def test_a_time_without_a_border_is_vague(question: str, vague: bool) -> None:
    time = understand(question, NOW, UTC)
    assert time is not None
    assert is_vague(question, time) == vague


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("what did Ada do last week", "what did Ada do"),
        ("what did Ada do yesterday", "what did Ada do"),
        ("what did Ada do on Friday", "what did Ada do on Friday"),  # texts say so
        ("what did Ada do in June", "what did Ada do in June"),
        ("what did Ada do 3 days ago", "what did Ada do 3 days ago"),
        ("what did Ada do last June and last week", "what did Ada do last June and"),
        ("what did Ada do before the move", "what did Ada do before the move"),
    ],
)
def test_words_that_move_with_the_clock_are_not_searched_for(question: str, words: str) -> None:
    time = understand(question, NOW, UTC)
    assert time is not None
    assert " ".join(words_to_search(question, time).split()) == words


SAID = "who what did was is on this last week Friday today May before after first the move am Freitag vendredi 今天 了"
WORDS = st.sampled_from(SAID.split())


@given(st.one_of(st.text(max_size=100), st.lists(WORDS, max_size=9).map(" ".join)))
def test_any_question_has_an_answer(question: str) -> None:
    time = understand(question, NOW, UTC)
    if time is not None:
        assert asks_about_past(question, time) in (True, False)
        assert is_vague(question, time) in (True, False)
        assert len(words_to_search(question, time)) == len(question)
