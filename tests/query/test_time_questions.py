"""What a question says about time: tables by hand in six languages, and properties for any text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.query.time_questions import understand
from nacre.types.times import TimeQuestion

NOW = datetime(2026, 6, 17, 15, 30, 45, tzinfo=UTC)  # a Wednesday


def ask(text: str) -> TimeQuestion:
    found = understand(text, NOW, UTC)
    assert found is not None
    return found


LISTING = [
    ("what happened in June", "what happened"),
    ("what did we discuss yesterday", "what did we discuss"),
    ("notes from last week", "notes"),
    ("What did I work on this week?", "What did I work?"),
    ("last week", ""),
    ("what's new since yesterday", "what's new"),
    ("anything from the other day?", "anything?"),
    ("what did we talk about between March and May", "what did we talk about"),
    ("was war gestern los", "was war los"),
    ("was haben wir letzte Woche besprochen?", "was haben wir besprochen?"),
    ("que s'est-il passé hier", "que s'est-il passé"),
    ("de quoi avons-nous parlé la semaine dernière", "de quoi avons-nous parlé"),
    ("qué pasó ayer", "qué pasó"),
    ("de qué hablamos la semana pasada", "de qué hablamos"),
    ("上周发生了什么事情", "发生了什么事情"),
    ("我们昨天讨论了什么", "我们 讨论了什么"),
    ("6月に何があった", "に何があった"),
    ("昨日は何を話した?", "は何を話した?"),
]


@pytest.mark.parametrize(("text", "rest"), LISTING)
def test_little_but_the_period_is_left(text: str, rest: str) -> None:
    found = ask(text)
    assert found.listing
    assert found.rest == rest
    assert found.mentions
    assert (found.order, found.anchor) == (None, None)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("what did the team decide in Q1 about hiring", "what did the team decide about hiring"),
        ("which restaurant did Ana like last summer?", "which restaurant did Ana like?"),
        ("welche Bugs hat Ana gestern behoben", "welche Bugs hat Ana behoben"),
        ("qui a réparé le serveur hier", "qui a réparé le serveur"),
        ("上周谁修好了服务器", "谁修好了服务器"),
        ("In March 2026, who led the team?", "who led the team?"),
    ],
)
def test_more_than_the_period_is_asked_for(text: str, rest: str) -> None:
    found = ask(text)
    assert not found.listing
    assert found.rest == rest


ORDER = [
    ("when did we first meet Ana", "first", "when did we meet Ana"),
    ("What was the first restaurant we tried?", "first", "What was the restaurant we tried?"),
    ("the first time we deployed", "first", "the we deployed"),
    ("the earliest note about redis", "first", "the note about redis"),
    ("originally planned budget", "first", "planned budget"),
    ("Who did Caroline first tell?", "first", "Who did Caroline tell?"),
    ("When did Ana last deploy to production?", "last", "When did Ana deploy to production?"),
    ("the latest deploy", "last", "the deploy"),
    ("our most recent decision about auth", "last", "our decision about auth"),
    ("who did I last speak with", "last", "who did I speak with"),
    ("last meeting with Ana", "last", "meeting with Ana"),
    ("last 3 commits", "last", "3 commits"),
    ("the newest laptop", "last", "the laptop"),
    ("what is the current status of the migration", "last", "what is the status of the migration"),
    ("wann haben wir zuletzt deployt", "last", "wann haben wir deployt"),
    ("das erste Treffen mit Ana", "first", "das Treffen mit Ana"),
    ("letzte Besprechung mit Ana", "last", "Besprechung mit Ana"),
    ("die neueste Version", "last", "die Version"),
    ("la dernière fois que nous avons vu Marie", "last", "que nous avons vu Marie"),
    ("notre première réunion", "first", "notre réunion"),
    ("la primera vez que nos vimos", "first", "que nos vimos"),
    ("la última reunión con Ana", "last", "la reunión con Ana"),
    ("第一次见面", "first", "见面"),
    ("上次开会说了什么", "last", "开会说了什么"),
    ("最新的版本", "last", "的版本"),
    ("初めて会った", "first", "会った"),
    ("前回の会議", "last", "の会議"),
]


@pytest.mark.parametrize(("text", "order", "rest"), ORDER)
def test_order(text: str, order: str, rest: str) -> None:
    found = ask(text)
    assert found.order == order
    assert found.rest == rest


@pytest.mark.parametrize(
    "text",
    [
        *("what is my first name", "first aid kit", "What's Bob's last name?", "at last we can go", "as a last resort"),
        *("the first column of the table", "the last row", "first of all, what is nacre", "how long does it last"),
        *("which column comes first", "the last three digits", "a first-class function", "it may last an hour"),
        *("erste Hilfe", "die letzte Zeile", "la première ligne", "la última columna", "put the first line last"),
    ],
)
def test_no_order(text: str) -> None:
    found = understand(text, NOW, UTC)
    assert found is None or found.order is None


def test_a_period_is_no_order() -> None:
    for text in ("what did we do last week", "the last 3 days", "letzten Sommer", "la semaine dernière", "上周"):
        assert ask(text).order is None


ANCHORS = [
    ("What did we use before the migration?", "before", "the migration"),
    ("Before the migration, what did we use?", "before", "the migration"),
    ("before the migration what did we use", "before", "the migration"),
    ("what changed after we moved to Berlin", "after", "we moved to Berlin"),
    ("who joined since Lisbon", "since", "Lisbon"),
    ("Which city did I visit right before Lisbon?", "before", "Lisbon"),
    ("prior to the launch, who owned it", "before", "the launch"),
    ("What did Caroline do after the workshop on 4 May?", "after", "the workshop"),
    ("who was my manager before Ana", "before", "Ana"),
    ("Was haben wir vor dem Umzug nach Berlin benutzt?", "before", "dem Umzug nach Berlin"),
    ("Was geschah, nachdem wir umgezogen sind?", "after", "wir umgezogen sind"),
    ("Was hat sich seit der Messe geändert?", "since", "der Messe"),
    ("qu'est-ce qui a changé après la migration ?", "after", "la migration"),
    ("depuis notre déménagement, qui a appelé", "since", "notre déménagement"),
    ("qué cambió después de la migración", "after", "la migración"),
    ("quién llegó antes de la boda?", "before", "la boda"),
    ("¿Qué cambió después del ataque?", "after", "ataque"),
    ("在法国人到来之前住着什么人", "before", "法国人到来"),
    ("搬家之后我们用什么", "after", "搬家"),
    ("移行の前は何を使っていた?", "before", "移行"),
]


@pytest.mark.parametrize(("text", "relation", "event"), ANCHORS)
def test_anchor(text: str, relation: str, event: str) -> None:
    found = ask(text)
    assert found.anchor is not None
    assert (found.anchor.relation, found.anchor.text) == (relation, event)
    assert text[found.anchor.span.start : found.anchor.span.end] == event
    assert event in found.rest
    assert found.asks_past == (relation == "before")
    assert not found.listing


@pytest.mark.parametrize(
    "text",
    [
        *("who looks after the dog", "who was Ana named after?", "what should I run before deploying", "after all"),
        *(
            "Since you know Python, what is a mixin",
            "what does CI run after a merge",
            "one after another",
            "day after day",
        ),
        *("before 2019", "after lunch", "since March", "the year after", "what did I do before that", "vor dem Haus"),
        *("nach Berlin", "vor drei Tagen", "il y a trois jours", "我以前住在哪里", "seit drei Tagen", "desde marzo"),
        *("Which aired first, Life After People or Lost?", "python close socket before opening", "很久之前是什么"),
        *(
            "after what event did it decline",
            "desde la línea de 2 yardas",
            "法華経の後半部",
            "ムスリムの前で何と言った",
        ),
        *("推翻了以前的什么理论", "Vor der Küste welches Kontinents liegen die Inseln?"),
    ],
)
def test_no_anchor(text: str) -> None:
    found = understand(text, NOW, UTC)
    assert found is None or found.anchor is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "when did we meet",
            "How long ago did we switch?",
            "since when do we use redis",
            "what year was it",
            "we met when?",
        ),
        *(
            "wann haben wir uns getroffen",
            "seit wann",
            "quand avons-nous déménagé",
            "depuis quand",
            "cuándo nos mudamos",
        ),
        *("什么时候搬家的", "いつ引っ越した？", "What date is the wedding?"),
    ],
)
def test_asks_when(text: str) -> None:
    assert ask(text).asks_when


@pytest.mark.parametrize(
    "text",
    [
        *("What did Ana used to drink?", "where did I live before?", "what was my old address", "my previous employer"),
        *(
            "formerly known as",
            "who previously owned it",
            "originally planned",
            "what was the port prior?",
            "back then",
        ),
        *(
            "wo habe ich früher gewohnt",
            "ehemaliger Chef",
            "où habitions-nous avant",
            "auparavant",
            "dónde vivía antes",
        ),
        *("mi antiguo jefe", "我以前住在哪里", "以前はどこに住んでいた", "meine alte Adresse", "他曾经是谁"),
    ],
)
def test_asks_for_the_past(text: str) -> None:
    assert ask(text).asks_past


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "?",
            "how do we deploy?",
            "which tool is used to build docs",
            "get used to it",
            "what is my address",
        ),
        *(
            "how old is Ana",
            "the scale used to measure it",
            "the anterior membrane",
            "城の名前は？",
            "the old man and the sea",
            "früher als geplant",
            "quand même",
            "who is Ana",
            "哪里",
            "どこ",
        ),
        *("what may I do", "the second option", "Port 8080", "a while ago", "next week", "due by Friday"),
    ],
)
def test_nothing_about_time(text: str) -> None:
    assert understand(text, NOW, UTC) is None


WORDS = sorted({word for text, *_ in (*LISTING, *ORDER, *ANCHORS) for word in text.split()})
TEXTS = st.one_of(
    st.text(),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=12).map(" ".join),
    st.lists(st.sampled_from([text for text, *_ in (*LISTING, *ORDER, *ANCHORS)]), max_size=3).map(" ".join),
)


@pytest.mark.slow
@given(TEXTS)
def test_any_text(text: str) -> None:
    found = understand(text, NOW, UTC)
    if found is None:
        return
    for mention in found.mentions:
        assert 0 <= mention.span.start < mention.span.end <= len(text)
    kept = "".join(found.rest.split())
    removed = sum(len("".join(text[each.span.start : each.span.end].split())) for each in found.mentions)
    assert len(kept) <= len("".join(text.split())) - removed
    if found.anchor:
        assert text[found.anchor.span.start : found.anchor.span.end] == found.anchor.text
    assert understand(text, NOW, UTC) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["after ", "a-", "A ", "vor dem A ", "first ", "before a, ", "之前", " " * 99 + "x", "since "]
)
def test_long_texts(piece: str) -> None:
    understand((piece * 100_000)[:100_000], NOW, UTC)
