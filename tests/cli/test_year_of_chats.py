"""A year of conversations with ChatGPT, imported with one command and asked about, with the real models."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import nacre
from chat_exports import chatgpt_conversation

pytestmark = pytest.mark.slow

START = datetime(2025, 1, 6, 18, tzinfo=UTC)
WEEKS = 52
Talk = list[tuple[str, str]]


class Chat(NamedTuple):
    """A conversation that is asked about later, in other words."""

    title: str
    week: int
    talk: Talk
    question: str


def chat(title: str, week: int, question: str, *said: str) -> Chat:
    return Chat(title, week, [(("user", "assistant")[at % 2], each) for at, each in enumerate(said)], question)


ASKED = (
    chat(
        "Sourdough too dense",
        3,
        "why was my bread heavy?",
        "My sourdough loaf came out dense and gummy inside. What went wrong?",
        "That is usually underproofing. How long was the bulk rise, and how warm is the kitchen?",
        "Four hours at 18 degrees.",
        "Too short for a cool kitchen. Let it rise seven hours, until it has grown by half.",
    ),
    chat(
        "Quitting the gym contract",
        8,
        "cancel my fitness membership",
        "My gym in Leipzig wants three months' notice. I moved to another city. Can I leave earlier?",
        "A move alone no longer gives a right to leave early. Ask for a transfer, or find somebody to take over.",
        "They accepted the transfer to the branch at the station.",
        "Good. Ask for a written confirmation with the date.",
    ),
    chat(
        "Flaky integration test",
        13,
        "a test that fails only sometimes in CI",
        "test_checkout passes on my laptop and fails one time in ten on the build server.",
        "It reads the clock twice. Around midnight both calls are on different days.",
        "Freezing the time fixed it.",
        "Then pass the clock in as an argument, so that no test has to freeze it.",
    ),
    chat(
        "Name for the puppy",
        17,
        "what did we want to call the dog?",
        "We get a brown female puppy next week. She should have a short name.",
        "Some ideas: Kuma, Nala, Hazel, Mocha, Bea.",
        "Hazel it is. The children love it.",
        "Hazel suits a brown dog well. Congratulations!",
    ),
    chat(
        "Lisbon in four days",
        22,
        "which pastry shop in Portugal was recommended?",
        "Plan four days in Lisbon with a six-year-old.",
        "Day one: Alfama and tram 28. Day two: Belém, with pastéis de nata at Manteigaria. Day three: the aquarium.",
        "Where do we get a beach on day four?",
        "Take the train to Cascais, it leaves from Cais do Sodré every twenty minutes.",
    ),
    chat(
        "Knee pain after running",
        29,
        "exercises for the injured joint",
        "The outside of my knee hurts after five kilometres.",
        "That sounds like an irritated iliotibial band. Rest a week, then do clamshells and side planks.",
        "How many?",
        "Three sets of fifteen on each side, every second day.",
    ),
    chat(
        "Letter to the landlord",
        35,
        "mold in the flat and paying less rent",
        "There is mold in the bedroom although we air it. How do I tell the landlord?",
        "Describe it with photos, set a deadline of two weeks, and announce that you reduce the rent by ten percent.",
        "He sent a painter.",
        "Insist on the cause: a painter hides it, a thermal bridge stays.",
    ),
    chat(
        "Postgres index not used",
        41,
        "slow query on the orders table",
        "SELECT * FROM orders WHERE lower(email) = 'x' scans the whole table although email has an index.",
        "The index is on email, the condition on lower(email). Create an index on the expression.",
        "From 900 ms to 2 ms!",
        "You can also store addresses in lower case and keep the plain index.",
    ),
    chat(
        "Present for grandmother",
        47,
        "gift idea for an old lady's birthday",
        "My grandmother turns ninety, has everything and hears badly.",
        "Record the family telling stories and have them printed as a book with large type.",
        "She would love photos of the old farm in it.",
        "Ask her brother in Bergen, he kept the albums.",
    ),
)

SUBJECTS = (
    "a cover letter",
    "a haiku about rain",
    "the Krebs cycle",
    "French past tense",
    "a vegetarian lasagne",
    "CSS grid",
    "a packing list",
    "compound interest",
    "the French Revolution",
    "a birthday toast",
    "regular expressions",
    "chess openings",
    "a bicycle chain",
    "houseplants",
    "a spreadsheet formula",
    "the offside rule",
    "photosynthesis",
    "a workout for beginners",
    "meditation",
    "a bedtime story",
    "git rebase",
    "wine and cheese",
    "a budget for students",
    "the northern lights",
    "an email to a teacher",
    "Roman emperors",
    "a quiz for children",
    "black holes",
    "knitting a scarf",
    "a guitar chord",
)
OPENINGS = ("Help me with {}.", "Explain {} to me simply.", "I need {} by tomorrow.", "What should I know about {}?")
ANSWERS = (
    "Happy to help with {}. Let us begin with the most important point and go on from there.",
    "Here is a short overview of {}: first the idea, then an example, then what people often get wrong.",
    "For {} it is best to start small. Tell me what you have tried so far.",
)
FOLLOW = ("Can you make it shorter?", "Give me another example.", "And in simpler words?", "Thanks, that helps.")
REPLIES = ("Of course. Here is a shorter version of {}.", "Another way to look at {} is to compare it with daily life.")


def a_year() -> list[dict[str, Any]]:
    """About three conversations a week; those that are asked about are among them."""
    draw = random.Random(7)
    found = [
        chatgpt_conversation(f"asked-{number}", each.title, each.talk, START + timedelta(weeks=each.week))
        for number, each in enumerate(ASKED)
    ]
    for number in range(3 * WEEKS):
        subject = draw.choice(SUBJECTS)
        talk: Talk = []
        for turn in range(draw.randint(1, 3)):
            asked, answered = (OPENINGS, ANSWERS) if not turn else (FOLLOW, REPLIES)
            talk += [("user", draw.choice(asked).format(subject)), ("assistant", draw.choice(answered).format(subject))]
        start = START + timedelta(weeks=number / 3, minutes=draw.randint(0, 3_000))
        found.append(chatgpt_conversation(f"other-{number}", subject.capitalize(), talk, start))
    draw.shuffle(found)
    return found


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export as it is downloaded."""
    archive = tmp_path_factory.mktemp("downloads") / "chatgpt-export.zip"
    talks = a_year()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("chat.html", "<html></html>")
        out.writestr("user.json", "{}")
        for number, start in enumerate(range(0, len(talks), 100)):
            out.writestr(f"conversations-{number:03}.json", json.dumps(talks[start : start + 100]))
    return archive


class Ran(NamedTuple):
    out: str
    err: str


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "memories.db"


def run(store: Path, *arguments: str) -> Ran:
    """The program, as a user runs it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NACRE_")}
    environment |= {"NACRE_STORE": str(store), "NACRE_CONFIG": str(store.with_name("config.toml"))}
    done = subprocess.run(
        [sys.executable, "-m", "nacre", *arguments], capture_output=True, env=environment, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return Ran(done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def imported(year: Path, store: Path) -> Iterator[nacre.Nacre]:
    turns = sum(len(each["mapping"]) - 1 for each in a_year())
    shown = run(store, "import", str(year), "--dry-run").out.splitlines()
    assert shown[0] == f"would import {turns} memories from chatgpt"
    assert shown[1] == f"from 2025-01-06 to 2026-01-05, {len(ASKED) + 3 * WEEKS} sessions"
    assert not store.exists()
    assert run(store, "import", str(year)).out == f"imported {turns} memories from chatgpt\n"
    assert run(store, "import", str(year)).out == f"imported 0 memories from chatgpt ({turns} already stored)\n"
    with nacre.open(store, create=False) as memory:
        yield memory


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_a_question_finds_its_conversation(imported: nacre.Nacre, number: int) -> None:
    """Of 165, among the first three turns, though it is asked in other words."""
    found = imported.search(ASKED[number].question, limit=3).hits
    assert f"asked-{number}" in [each.memory.session for each in found]


def test_most_questions_find_it_first(imported: nacre.Nacre) -> None:
    first = [imported.search(each.question, limit=1).hits[0].memory.session for each in ASKED]
    assert sum(session == f"asked-{number}" for number, session in enumerate(first)) >= len(ASKED) - 2


def test_the_command_line_finds_it(imported: nacre.Nacre, store: Path) -> None:
    hits = json.loads(run(store, "search", "what is our dog called? kind:episode", "--json").out)["hits"]
    assert hits[0]["session"] == "asked-3"
    assert imported.stats().memories > 500
