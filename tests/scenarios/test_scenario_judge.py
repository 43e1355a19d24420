"""The judge of the scenarios, on examples whose figures are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest

from benchmarks.scenarios import judge, report
from benchmarks.scenarios.judge import Asked, ContextGiven, Shown
from benchmarks.scenarios.worlds import Question, World, WorldMemory


def question(answers: str = "a", stale: str = "", fine: str = "", *, either: bool = False) -> Question:
    """Each letter is a label."""
    return Question("?", tuple(answers), tuple(stale), tuple(fine), either)


def asked(
    about: Question,
    hits: str = "",
    quoted: str = "",
    superseded: str = "",
    relevance: Sequence[float] = (),
    world: str = "one",
    class_name: str = "updates",
) -> Asked:
    shown = [Shown(label, 0.5, "") for label in hits]
    shown = (
        [each._replace(relevance=value) for each, value in zip(shown, relevance, strict=True)] if relevance else shown
    )
    context = ContextGiven(tuple(quoted), frozenset(superseded), 10 * len(quoted), not quoted)
    return Asked(world, class_name, about, tuple(shown), context)


@pytest.mark.parametrize(
    ("answers", "either", "hits", "recall_3", "recall_5", "rank"),
    [
        ("a", False, "axyz", 1, 1, 1),
        ("a", False, "xyza", 0, 1, 1 / 4),
        ("a", False, "xyzuva", 0, 0, 1 / 6),
        ("a", False, "", 0, 0, 0),
        ("ab", False, "xayb", 1 / 2, 1, 1 / 2),
        ("abc", False, "cxa", 2 / 3, 2 / 3, 1),
        ("ab", True, "xayb", 1, 1, 1 / 2),
        ("ab", True, "xyzb", 0, 1, 1 / 4),
        ("ab", True, "xyz", 0, 0, 0),
    ],
)
def test_recall_and_rank(answers: str, either: bool, hits: str, recall_3: float, recall_5: float, rank: float) -> None:
    one = asked(question(answers, either=either), hits)
    assert judge.recall(one, 3) == pytest.approx(recall_3)
    assert judge.recall(one, 5) == pytest.approx(recall_5)
    assert judge.reciprocal_rank(one) == pytest.approx(rank)


@pytest.mark.parametrize(
    ("answers", "stale", "either", "hits", "won"),
    [
        ("a", "s", False, "as", [True]),
        ("a", "s", False, "sa", [False]),
        ("a", "s", False, "xa", [True]),  # a stale one that is not shown is below
        ("a", "s", False, "xs", [False]),  # an answer that is not shown has lost
        ("a", "s", False, "x", [False]),
        ("a", "st", False, "sat", [False, True]),
        ("ab", "s", False, "asb", [True, False]),
        ("ab", "s", True, "asb", [True]),  # only the first answer is needed
        ("ab", "s", True, "sab", [False]),
        ("ab", "st", True, "sbta", [False, True]),
        ("a", "", False, "a", []),
    ],
)
def test_pairs(answers: str, stale: str, either: bool, hits: str, won: list[bool]) -> None:
    assert judge.pairs(asked(question(answers, stale, either=either), hits)) == won


@pytest.mark.parametrize(
    ("about", "quoted", "recall", "precision"),
    [
        (question("a"), "a", 1, 1),
        (question("a"), "axyz", 1, 1 / 4),
        (question("a", fine="f"), "fx", 0, 1 / 2),
        (question("a", stale="s"), "as", 1, 1 / 2),
        (question("ab"), "ax", 1 / 2, 1 / 2),
        (question("ab", either=True), "b", 1, 1),
        (question("a"), "", 0, 0),  # silence does not raise precision
    ],
)
def test_contexts(about: Question, quoted: str, recall: float, precision: float) -> None:
    one = asked(about, quoted=quoted)
    assert judge.context_recall(one) == pytest.approx(recall)
    assert judge.context_precision(one) == pytest.approx(precision)


def test_a_stale_memory_may_be_quoted_if_the_context_says_so() -> None:
    about = question("a", stale="st")
    assert judge.quotes_stale(asked(about, quoted="as"))
    assert not judge.quotes_stale(asked(about, quoted="as", superseded="s"))
    assert judge.quotes_stale(asked(about, quoted="ast", superseded="s"))
    assert not judge.quotes_stale(asked(about, quoted="ax"))


@pytest.mark.parametrize(
    ("higher", "lower", "area"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1),
        ([0.1], [0.9], 0),
        ([0.5], [0.5], 1 / 2),
        ([0.9, 0.5, 0.1], [0.5, 0.2], (2 + 1.5 + 0) / 6),
        ([], [0.5], None),
        ([0.5], [], None),
    ],
)
def test_area_under_the_curve(higher: list[float], lower: list[float], area: float | None) -> None:
    assert judge.auc(higher, lower) == (None if area is None else pytest.approx(area))


def test_scores_are_means_over_the_questions_they_apply_to() -> None:
    found = judge.scores(
        [
            asked(question("a", "st"), "sat", quoted="as", relevance=[0.2, 0.6, 0.1]),  # R 1, rank 1/2, pairs 1 of 2
            asked(question("b", "u"), "xyzb", relevance=[0.1, 0.1, 0.1, 0.1]),  # R@3 0, rank 1/4, pair won, empty
            asked(question(""), "xy", quoted="xy", relevance=[0.3, 0.2]),
            asked(question(""), "x", relevance=[0.1]),
        ]
    )
    assert asdict(found) == pytest.approx(
        {
            "questions": 4,
            "recall_3": 1 / 2,
            "recall_5": 1,
            "mrr": 3 / 8,
            "pairs": 2 / 3,
            "context_recall": 1 / 2,
            "context_precision": 1 / 4,
            "context_tokens": 10,
            "stale_in_context": 1 / 2,
            "abstention": 1 / 2,
            "lost": 1 / 2,
            "auc": (1 + 1 + 0 + 0.5) / 4,  # .6 and .1 against .3 and .1
        }
    )


def test_what_is_not_there_has_no_figure() -> None:
    assert judge.scores([asked(question(""), "x")]).recall_3 is None
    found = judge.scores([asked(question("a"), "a")])
    assert (found.pairs, found.stale_in_context, found.abstention, found.auc) == (None, None, None, None)


@pytest.mark.parametrize(
    ("one", "wrong"),
    [
        (asked(question("a"), "a", quoted="a"), []),
        (asked(question("a"), "xyza", quoted="a"), ["recall"]),
        (asked(question("a", "s"), "sa", quoted="a"), ["pairs"]),
        (asked(question("a", "s"), "as", quoted="as"), ["stale"]),
        (asked(question("a"), "a", quoted="xyz"), ["context", "noise"]),
        (asked(question("a"), "a"), ["context", "lost"]),
        (asked(question("a"), "a", quoted="axy"), ["noise"]),
        (asked(question(""), "x", quoted="x"), ["answered"]),
        (asked(question(""), "x"), []),
    ],
)
def test_failures(one: Asked, wrong: list[str]) -> None:
    assert judge.failures(one) == wrong
    assert set(wrong) <= set(judge.FAILURES)


# ---------------------------------------------------------------- the report


def test_figures_are_by_half_and_class_and_the_halves_are_all() -> None:
    names = [f"world-{number}" for number in range(20)]
    several = [
        asked(question("a"), "a", quoted="a", world=name, class_name="time" if number % 3 else "words")
        for number, name in enumerate(names)
    ]
    halves = report.figures(several, "all")["halves"]
    assert list(halves["all"]) == ["time", "words", "all"]
    assert halves["all"]["all"]["worlds"] == 20
    assert 0 < halves["report"]["all"]["worlds"] < 20
    assert halves["report"]["all"]["worlds"] + halves["choose"]["all"]["worlds"] == 20
    assert list(report.figures(several, "report")["halves"]) == ["report"]
    rows = report.tables({"halves": halves})["All worlds"]
    assert rows[-1] == {
        "class": "all",
        "worlds": "20",
        "questions": "20",
        "R@3": "1.000",
        "R@5": "1.000",
        "MRR": "1.000",
        "pairs": "–",
        "context recall": "1.000",
        "precision": "1.000",
        "tokens": "10",
        "stale in context": "–",
        "abstention": "–",
        "lost": "0.000",
        "AUC": "–",
    }


def test_a_failed_question_shows_what_was_expected_and_what_came() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    memories = tuple(WorldMemory(label, f"text of {label}", now) for label in "asx")
    about = replace(question("a", "s"), ask="Which port?")
    world = World("one", "updates", now, memories, (about,))
    one = asked(about, "sxa", quoted="sx")
    (paragraph,) = report.failed([one, asked(about, "as", quoted="a")], [world], ["pairs", "stale"])
    lines = paragraph.splitlines()
    assert lines[:4] == [
        "updates/one  [pairs, stale]",
        "  ask: Which port?",
        "  answer a: text of a",
        "  stale  s: text of s",
    ]
    assert lines[4] == "  1. ! 0.50 s: text of s"
    assert lines[-1] == "  context: !s -x (20 tokens)"
    assert list(report.failed([one], [world], ["lost"])) == []
