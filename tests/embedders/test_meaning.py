"""The real model: semantic search finds paraphrases, and keyword search finds exact terms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

import nacre
from nacre.types.recipe import adjusted
from nacre.types.search import Mode

pytestmark = pytest.mark.slow

ANSWERS = {
    "allergy": "Maria is allergic to peanuts and shellfish.",
    "database": "We picked PostgreSQL because its JSON support is excellent.",
    "meeting": "The team meets every Monday at nine in the blue conference room.",
    "dog": "The office dog is called Biscuit and loves tennis balls.",
    "release": "Releases go out on Thursdays after the integration tests pass.",
    "customer": "Our biggest customer is a hospital chain in Norway.",
    "flight": "The flight to Tokyo leaves at 7:40 from terminal two.",
    "checkout": "Customers complained that the checkout page loads slowly on phones.",
    "cake": "Grandmother's apple cake needs cinnamon, butter and four eggs.",
    "rent": "The landlord raised the rent by eight percent in March.",
    "password": "Passwords are hashed with argon2 before they are stored.",
    "accident": "Tom broke his leg while skiing in Austria.",
}

# None of them shares a word with its answer, nor with any other memory.
QUESTIONS = [
    ("What can she not eat?", "allergy"),
    ("dessert recipe", "cake"),
    ("housing costs went up", "rent"),
    ("protecting login credentials", "password"),
    ("mobile site performance problem", "checkout"),
    ("someone got injured during vacation", "accident"),
    ("which relational storage engine did you choose?", "database"),
]

TICKETS = [
    "Ticket NAC-1847: the export hangs when the disk is nearly full.",
    "Ticket NAC-1874: the login page rejects correct passwords after midnight.",
    "Ticket NAC-1478: invoices show the wrong currency for Swiss customers.",
    "Ticket NAC-8174: search results vanish when two windows are open.",
]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    """Twelve memories about different things."""
    with nacre.open(tmp_path_factory.mktemp("office") / "memories.db") as memory:
        memory.remember_many(ANSWERS.values())
        yield memory


@pytest.mark.parametrize(("question", "about"), QUESTIONS)
def test_a_question_without_a_word_of_its_answer_is_answered(office: nacre.Nacre, question: str, about: str) -> None:
    assert office.search(question, mode="keyword").hits == ()
    for mode in ("semantic", "hybrid"):
        result = office.search(question, mode=mode)
        assert result.hits[0].text == ANSWERS[about]
        assert result.hits[0].match_type == "semantic"
        assert result.notes == ()


@pytest.mark.parametrize(
    ("question", "about"), [("name of our pet", "dog"), ("trip to Japan", "flight"), ("healthcare client", "customer")]
)
def test_a_question_is_answered_by_meaning(office: nacre.Nacre, question: str, about: str) -> None:
    assert office.search(question, mode="semantic").hits[0].text == ANSWERS[about]
    assert office.search(question).hits[0].text == ANSWERS[about]


def test_what_nothing_is_about_is_not_found(office: nacre.Nacre) -> None:
    """The floor keeps out what is merely the least far away."""
    assert office.search("quantum chromodynamics lattice", mode="semantic").hits == ()


def test_words_find_an_identifier_that_meaning_blurs(path: Path) -> None:
    with nacre.open(path) as memory:
        memory.remember_many(TICKETS)
        by_meaning_alone = memory.search("NAC-1478", mode="semantic", recipe=nacre.Recipe(exact_weight=0))
        assert by_meaning_alone.hits[0].text != TICKETS[2]
        for mode in get_args(Mode):  # what has it exactly comes first
            assert memory.search("NAC-1478", mode=mode).hits[0].text == TICKETS[2]
        assert [hit.text for hit in memory.search("1478", mode="keyword").hits] == [TICKETS[2]]


def _paragraph(number: int) -> str:
    return (
        f"Section {number} of the minutes covers the budget for office supplies. "
        "Printer paper, pens and staplers were ordered in the usual quantities. "
        "The treasurer reported that spending stayed within the plan for this quarter. "
        "Nobody raised an objection, and the committee moved on to the following item. "
    ) * 2


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_a_long_text_is_found_by_its_last_paragraph(path: Path, mode: Mode) -> None:
    last = (
        "Afterwards a volcano erupted on the island, and every inhabitant fled by boat. "
        "Molten rock ran down to the harbour and burned the fishing village. "
        "Ash rained for nine days, so that ships had to carry the families to the mainland. "
        "The mountain had been silent for three hundred years before it exploded."
    )
    text = "\n\n".join([*map(_paragraph, range(1, 9)), last])
    with nacre.open(path) as memory:
        long = memory.remember(text).id
        memory.remember_many(ANSWERS.values())
        assert memory.stats().passages > len(ANSWERS) + 2
        hit = memory.search("lava catastrophe: people evacuate across water", mode=mode).hits[0]
        assert hit.id == long
        assert hit.bm25 is None
        # Shown is the passage that matched, which is the last one, not the beginning of the text.
        assert hit.snippet.start > len(text) // 2
        assert text[hit.snippet.start :].startswith(hit.snippet.text)
        assert hit.snippet.highlights == ()
        assert "volcano" in memory.search("volcano", mode=mode).hits[0].snippet.text


def test_a_text_is_nearest_to_itself(office: nacre.Nacre) -> None:
    for text in ANSWERS.values():
        hit = office.search(text.replace("'s", ""), mode="semantic").hits[0]
        assert hit.text == text
        assert hit.cosine is not None
        assert hit.cosine > 0.9


def test_a_long_text_does_not_come_before_a_short_answer_by_its_number_of_passages(tmp_path: Path) -> None:
    """The rambling text talks about trips, cars and meals for pages, and one of its passages comes near the question.

    Without the weight it is the nearest; with it, the note that says what is asked goes first.
    """
    rambling = " ".join(
        f"{day} we talked about {what} for a while, then someone told a story about {other}, and nobody remembered the "
        f"end of it, so we went on about {what} and what it costs these days, and where one could go in {month}."
        for day, what, other, month in product(
            ("On Monday", "Later", "The day after"),
            ("the car and its repair shop", "dinner in the old town", "a trip to the sea", "trains that are late"),
            ("a garage in Lyon", "a dog that ran away"),
            ("spring", "autumn"),
        )
    )
    answer = "Dropped the Volvo off at the garage, they want 900 for the brakes."
    question = "how much does the repair of the car cost?"
    with nacre.open(tmp_path / "memories.db", log=False) as memory:
        memory.remember_many([rambling, answer, *ANSWERS.values()])
        plain = adjusted(nacre.Recipe(), passages_weight=0.0)
        first = [memory.search(question, mode="semantic", recipe=each).hits for each in (plain, nacre.Recipe())]
    assert [hits[0].text == rambling for hits in first] == [True, False]
    assert first[1][0].text == answer
    (long,) = (hit for hit in first[1] if hit.text == rambling)
    assert long.cosine == first[0][0].cosine, "a hit shows the cosine, whatever is taken off"
