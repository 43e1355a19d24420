"""A judged set of our own, with the real model: what it found once among the first five it must go on finding.

Floors lie two questions below what was measured, so that a near tie may fall the other way and a worse ranking may
not. Raise them when a ranking gets better. The data is explained in its README.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

import nacre
from nacre import CLASSIC, NewMemory, Recipe
from nacre.embedders.minilm import MiniLM
from nacre.evaluation import metrics
from nacre.evaluation.questions import JudgedQuestion, Questions, from_file
from nacre.serialization import decode
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.recipe import adjusted
from nacre.types.search import SearchOptions

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data" / "judged"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)  # a Monday, the day after the last memory
K = 5
ALL = "all"
CATEGORIES = ("words", "meaning", "conversation", "time", "code", "languages", "long")
QUESTIONS_MIN = 8  # of a category


@dataclass(frozen=True, slots=True)
class Way:
    """A way to search, and the least recall@5 that it must reach, over all questions and by category."""

    options: SearchOptions
    floor: float
    floors: Mapping[str, float] = field(default_factory=dict)


WAYS: Mapping[str, Way] = {
    "keyword": Way({"mode": "keyword"}, 0.55),
    "semantic": Way({"mode": "semantic"}, 0.73),
    "hybrid": Way(
        {},
        0.87,
        {
            "words": 0.83,
            "meaning": 0.76,
            "conversation": 0.71,
            "time": 0.66,
            "code": 0.69,
            "languages": 0.82,
            "long": 0.69,
        },
    ),
    "fused": Way(  # hybrid, and nothing is read again
        {"rerank": False},
        0.85,
        {
            "words": 0.83,
            "meaning": 0.76,
            "conversation": 0.64,
            "time": 0.58,
            "code": 0.76,
            "languages": 0.82,
            "long": 0.69,
        },
    ),
    "classic": Way({"recipe": CLASSIC}, 0.67),
}

# Each is the fused ranking with one thing out of order, and the category that suffers most.
BROKEN: Mapping[str, tuple[Recipe, str]] = {
    "without echo": (adjusted(Recipe(), echo_next=0, echo_far=0, echo_back=0), "conversation"),
    "without time": (Recipe(temporal_weight=0), "time"),
    "by words alone": (Recipe(alpha=0), "meaning"),
    "by meaning alone": (Recipe(alpha=1), "conversation"),
    "by rank": (Recipe(fusion="rank"), "meaning"),
}


# Nothing in the memories answers these, though some share a word with them.
UNANSWERED = (
    "What is the capital of Mongolia?",
    "How do I bake sourdough bread?",
    "Who won the football world cup in 1998?",
    "What is Henrik's shoe size?",
    "When does the swimming pool open?",
    "How do penguins sleep?",
    "What colour is the king's hat?",
    "Which visa do I need for Japan?",
    "Does the printer support duplex?",
    "Who painted the ceiling in the chapel?",
    "How tall is the Eiffel Tower?",
    "what's the wifi password of the hotel",
)


class Asked(NamedTuple):
    """What one question got. `places` are those of its answers, from 1; None is not on the first page."""

    category: str
    query: str
    recall: float
    places: tuple[int | None, ...]


# ---------------------------------------------------------------- asking


def memories() -> list[NewMemory]:
    lines = (DATA / "memories.jsonl").read_text("utf-8").splitlines()
    return [decode.new_memory_line(line, number) for number, line in enumerate(lines, 1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    path = tmp_path_factory.mktemp("judged") / "memories.db"
    with nacre.open(path, log=False, time_zone=UTC) as memory:
        memory.remember_many(memories())
        yield memory


@pytest.fixture(scope="module")
def questions(store: nacre.Nacre) -> dict[str, Questions]:
    """By category, which is the name of the file."""
    return {
        path.stem: from_file(store, DEFAULT_SPACE, path.read_bytes().splitlines())
        for path in sorted((DATA / "questions").glob("*.jsonl"))
    }


@pytest.fixture(scope="module")
def measured(store: nacre.Nacre, questions: Mapping[str, Questions]) -> dict[str, list[Asked]]:
    return {name: ask(store, questions, way.options) for name, way in WAYS.items()}


def ask(store: nacre.Nacre, questions: Mapping[str, Questions], options: SearchOptions) -> list[Asked]:
    """Every question, asked in one way."""
    then: SearchOptions = {**options, "as_of": NOW}
    return [
        outcome(category, judged, [hit.id for hit in store.search(judged.query, **then).hits])
        for category, several in questions.items()
        for judged in several.judged
    ]


def outcome(category: str, judged: JudgedQuestion, ranking: Sequence[str]) -> Asked:
    answers = [answer for (answer,) in judged.answers]
    places = tuple(ranking.index(each) + 1 if each in ranking else None for each in answers)
    return Asked(category, judged.query, metrics.recall(ranking, dict.fromkeys(answers, 1), K), places)


# ---------------------------------------------------------------- telling


def recalls(asked: Sequence[Asked]) -> dict[str, float]:
    """Mean recall@5 of each category, and of all questions."""
    by_category = {name: fmean(each.recall for each in asked if each.category == name) for name in CATEGORIES}
    return by_category | {ALL: fmean(each.recall for each in asked)}


def shortfalls(asked: Sequence[Asked], way: Way) -> list[str]:
    """Where fewer answers are found than must be."""
    reached = recalls(asked)
    return [
        f"{name}: {reached[name]:.3f} is below {floor}"
        for name, floor in {ALL: way.floor, **way.floors}.items()
        if reached[name] < floor
    ]


def delivered(measured: Mapping[str, Sequence[Asked]], name: str) -> str:
    """What was measured as a table, and which questions this way loses."""
    table = {way: recalls(asked) for way, asked in measured.items()}
    rows = [f"{row:14}" + "".join(f"{table[way][row]:>10.3f}" for way in table) for row in (*CATEGORIES, ALL)]
    lost = [
        f"{each.category:14}{each.query}  (answers at {', '.join(str(place or '–') for place in each.places)})"
        for each in measured[name]
        if each.recall < 1
    ]
    head = f"recall@{K}".ljust(14) + "".join(f"{way:>10}" for way in table)
    return "\n".join(["", head, *rows, "", f"{name} loses:", *lost])


# ---------------------------------------------------------------- the floors


@pytest.mark.parametrize("name", WAYS)
def test_what_was_found_is_still_found(measured: dict[str, list[Asked]], name: str) -> None:
    short = shortfalls(measured[name], WAYS[name])
    assert not short, "\n".join([*short, delivered(measured, name)])


def test_both_channels_find_what_either_finds(measured: dict[str, list[Asked]]) -> None:
    hybrid, *single = (recalls(measured[name])[ALL] for name in ("hybrid", "keyword", "semantic"))
    assert hybrid >= max(single) - 0.01, delivered(measured, "hybrid")


@pytest.mark.parametrize("name", BROKEN)
def test_the_floors_notice_a_broken_ranking(
    store: nacre.Nacre, questions: dict[str, Questions], measured: dict[str, list[Asked]], name: str
) -> None:
    """If this fails, the floors of fused lie too low by now: raise them to two questions below what it reaches."""
    recipe, suffers = BROKEN[name]
    asked = ask(store, questions, {"recipe": recipe, "rerank": False})
    short = [each.partition(":")[0] for each in shortfalls(asked, WAYS["fused"])]
    assert suffers in short, delivered({**measured, "broken": asked}, "broken")


def test_what_words_answer_in_another_script_stands_first(questions: dict[str, Questions], store: nacre.Nacre) -> None:
    """The model has letters of Russian and Arabic, and hardly a word: what it takes for near must not come before."""
    model = MiniLM()
    judged = tuple(each for each in questions["languages"].judged if model.vocabulary_coverage(each.query) < 0.5)
    foreign = {"languages": replace(questions["languages"], judged=judged)}
    by_words, hybrid = (ask(store, foreign, {"mode": mode}) for mode in ("keyword", "hybrid"))
    first = [each.query for each in by_words if each.places == (1,)]
    assert len(first) >= 8
    assert [each.query for each in hybrid if each.places == (1,) and each.query in first] == first


def likeliest(store: nacre.Nacre, query: str, *, answers: Set[str] | None = None, rerank: bool) -> float:
    """The highest relevance of a hit, or of those that answer."""
    hits = store.search(query, as_of=NOW, rerank=rerank).hits
    return max((hit.relevance or 0.0 for hit in hits if answers is None or hit.id in answers), default=0.0)


def test_reranking_finds_no_answer_where_there_is_none(store: nacre.Nacre) -> None:
    fused, hybrid = ([likeliest(store, each, rerank=rerank) for each in UNANSWERED] for rerank in (False, True))
    raised = [after - before for before, after in zip(fused, hybrid, strict=True)]
    assert fmean(raised) < 0.02  # one near miss may seem likelier once it is read, but not all of them
    assert fmean(hybrid) < 0.2
    answered = [each for each in UNANSWERED if store.search(each, as_of=NOW).answerable]
    assert len(answered) <= len(UNANSWERED) // 2


def test_reranking_makes_answers_likelier(store: nacre.Nacre, questions: dict[str, Questions]) -> None:
    judged = [each for several in questions.values() for each in several.judged]
    answers = [{answer for (answer,) in each.answers} for each in judged]
    fused, hybrid = (
        fmean(
            likeliest(store, each.query, answers=those, rerank=rerank)
            for each, those in zip(judged, answers, strict=True)
        )
        for rerank in (False, True)
    )
    assert hybrid > fused + 0.02


# ---------------------------------------------------------------- the data


def test_memories_are_of_many_kinds() -> None:
    texts = [each.text for each in memories()]
    assert len(texts) == len(set(texts)) > 150
    assert sum(len(text) > 1_000 for text in texts) >= 8
    assert sum("```" in text for text in texts) >= 15
    assert sum(not text.isascii() for text in texts) >= 30


def test_memories_were_there_when_the_questions_are_asked() -> None:
    assert all(each.created is not None and each.created < NOW for each in memories())


def test_conversations_have_no_gaps() -> None:
    turns: dict[str, list[int | None]] = {}
    for each in memories():
        if each.session is not None:
            turns.setdefault(each.session, []).append(each.position)
    assert len(turns) >= 3
    assert all(10 <= len(positions) <= 15 for positions in turns.values())
    assert all(positions == list(range(len(positions))) for positions in turns.values())


def test_each_category_has_enough_questions(questions: dict[str, Questions]) -> None:
    assert questions.keys() == set(CATEGORIES)
    assert min(len(each.judged) for each in questions.values()) >= QUESTIONS_MIN
    assert all(way.floors.keys() <= set(CATEGORIES) for way in WAYS.values())


def test_no_question_is_asked_twice(questions: dict[str, Questions]) -> None:
    queries = [judged.query for each in questions.values() for judged in each.judged]
    assert len(queries) == len({query.casefold() for query in queries})


def test_every_answer_is_one_memory(store: nacre.Nacre, questions: dict[str, Questions]) -> None:
    """A text that several have would make a question easier than it looks, and a near-duplicate could hide it."""
    for each in questions.values():
        assert each.unanswered == ()
        for judged in each.judged:
            assert 1 <= len(judged.answers) <= 3
            assert all(len(answer) == 1 for answer in judged.answers), judged.query
            assert not any(store.similar(answer) for (answer,) in judged.answers), judged.query


def test_every_line_of_a_file_is_an_answer(questions: dict[str, Questions]) -> None:
    """A question whose text nobody has any more would silently be left out, or lose one of its answers."""
    lines = sum(len(path.read_bytes().splitlines()) for path in (DATA / "questions").glob("*.jsonl"))
    assert lines == sum(len(judged.answers) for each in questions.values() for judged in each.judged)
