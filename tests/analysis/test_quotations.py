"""Which queries quote a text that is purged. In doubt they do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.analysis.quotations import RUN_WORDS, Quotations, significant_tokens

DOOR = "The spare key of the house in Mill Lane hangs behind the boiler, ask Mara."
KEY = "Staging uses the key sk-Live_9aZ81x, and root@db.example.org has the password hunter2-Winter"
CARD = "The company card is 4111 1111 1111 1111, valid until 12/28"
CHINESE = "我们决定使用数据库来保存记忆"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (DOOR, DOOR),
        (DOOR, DOOR.upper()),
        (DOOR, "does the key hang BEHIND the boiler, ask Mara?"),
        (DOOR, "is it true: hangs behind the boiler"),
        (DOOR, "'the house in Mill' Lane"),
        (CARD, "charge 4111 1111 1111 1111"),
        (CHINESE, "为什么使用数据库?"),
        ("green tea", "where is the green tea?"),
        ("tea", "is there Tea?"),
    ],
)
def test_a_run_of_words_quotes(text: str, query: str) -> None:
    assert Quotations([text]).quoted_in(query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (DOOR, ""),
        (DOOR, "where is the spare key?"),
        (DOOR, "boiler in Mill Lane"),
        (DOOR, "who is Mara and what hangs in the house"),
        (KEY, "which key does staging use?"),
        ("what is the name of it", "tell me what is the other name of it"),
        ("It is in the car of the others", "what is in the bag that is in the house"),
        ("green tea", "green or black tea"),
        (CHINESE, "数据在哪里"),
        ("", "anything"),
        ("...", "..."),
    ],
)
def test_words_that_others_have_do_not(text: str, query: str) -> None:
    assert not Quotations([text]).quoted_in(query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (DOOR, "who is Mara?"),
        (DOOR, "boilers"),
        (KEY, "what is sk-Live_9aZ81x for?"),
        (KEY, "who is (root@db.example.org)?"),
        (KEY, "login with password=hunter2-Winter"),
        (KEY, "hunter2"),
        (CHINESE, "数据在哪里"),
    ],
)
def test_a_word_that_no_memory_has_any_more_quotes(text: str, query: str) -> None:
    assert Quotations([text], significant_tokens([text])).quoted_in(query)
    assert not Quotations([text], significant_tokens([text])).quoted_in("what is the other one of it?")


def test_function_words_tell_nothing() -> None:
    assert significant_tokens(["The key is in the house", "of it"]) == {"key", "hous"}


def test_one_of_several_is_enough() -> None:
    quotations = Quotations([DOOR, "green tea"])
    assert quotations.quoted_in("a cup of green tea")
    assert quotations.quoted_in("it hangs behind the boiler")
    assert not quotations.quoted_in("a cup of tea")
    assert not Quotations([]).quoted_in(DOOR)


NAMES = ["boiler", "lane", "mara", "key", "house", "rust", "staging", "lamp", "winter"]


@given(st.lists(st.sampled_from(NAMES), min_size=RUN_WORDS), st.data(), st.text(max_size=10), st.text(max_size=10))
def test_any_run_of_four_words_is_a_quotation(text: list[str], data: st.DataObject, before: str, after: str) -> None:
    at = data.draw(st.integers(0, len(text) - RUN_WORDS))
    run = " ".join(text[at : at + RUN_WORDS])
    assert Quotations([" ".join(text)]).quoted_in(f"{before} {run} {after}")


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_will_do(text: str, query: str) -> None:
    quotations = Quotations([text], significant_tokens([text]))
    assert quotations.quoted_in(query) in (True, False)
    assert not quotations.quoted_in("")
