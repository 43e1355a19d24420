"""Extraction finds facts where a text states them, and nowhere else: examples, a table of notes, and properties."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.analysis.fact_extraction import CHARS_READ_MAX, FACTS_MAX, PART_CHARS_MAX, QUOTE_CHARS_MAX, extract
from nacre.analysis.tokenizer import chunks
from nacre.types.facts import NewFact


def brief(facts: list[NewFact]) -> list[str]:
    """Each fact on one line; a star for a relation."""
    return [f"{each.type}{'*' * each.relation}: {each.subject} | {each.predicate} | {each.object}" for each in facts]


SENTENCES = [
    # who and what someone or something is
    ("Ada is a data engineer.", "identity: Ada | is | a data engineer"),
    (
        "Ada Lovelace is the author of the first program.",
        "identity: Ada Lovelace | is | the author of the first program",
    ),
    ("My name is Ada.", "identity: I | name | Ada"),
    ("I'm a nurse.", "identity: I | is | a nurse"),
    ("I’m a nurse.", "identity: I | is | a nurse"),
    ("I am Swedish.", "identity: I | is | Swedish"),
    ("The user's name is Ada.", "identity: user | name | Ada"),
    ("My wife is Anna.", "relationship*: I | wife | Anna"),
    ("Ada's manager is Bob Stone.", "relationship*: Ada | manager | Bob Stone"),
    ("My favorite color is blue.", "preference: I | favorite color | blue"),
    ("nacre-api is a REST service.", "identity: nacre-api | is | a REST service"),
    ("The database is PostgreSQL.", "config: database | is | PostgreSQL"),
    ("The API port is 8080.", "config: API port | is | 8080"),
    ("I'm allergic to peanuts.", "identity: I | is allergic to | peanuts"),
    ("Ada is responsible for billing.", "identity: Ada | is responsible for | billing"),
    # roles of things, which one person has at a time
    ("Lena leads the platform team.", "relationship*: platform team | lead | Lena"),
    ("Omar now leads the platform team.", "relationship*: platform team | lead | Omar"),
    ("Omar owns the billing service.", "relationship*: billing service | owner | Omar"),
    ("The lead of the platform team is Lena.", "relationship*: platform team | lead | Lena"),
    ("The new lead of the platform team is Lena Holm.", "relationship*: platform team | lead | Lena Holm"),
    ("The platform team's lead is Lena.", "relationship*: platform team | lead | Lena"),
    ("The port of the API is 8080.", "config: API | port | 8080"),
    ("The price of the ticket is 12 euros.", "kv: ticket | price | 12 euros"),
    ("The end of the year is near.", ""),
    ("Ada owns a house.", "relationship: Ada | owns | a house"),
    # states
    ("The staging server is down.", "state: staging server | is | down"),
    ("The staging server is down since Monday.", "state: staging server | is | down"),
    ("legacy_auth is deprecated.", "state: legacy_auth | is | deprecated"),
    ("The tests are failing again.", "state: tests | is | failing"),
    # what is used and liked
    ("Nacre uses SQLite.", "relationship*: Nacre | uses | SQLite"),
    ("We use Redis for caching.", "relationship*: We | uses | Redis"),
    ("Bob uses a standing desk at home.", "relationship: Bob | uses | a standing desk"),
    ("I'm using Neovim.", "relationship*: I | uses | Neovim"),
    ("The billing service depends on Redis.", "relationship*: billing service | depends on | Redis"),
    ("I prefer dark mode.", "preference: I | prefers | dark mode"),
    ("User prefers short answers.", "preference: User | prefers | short answers"),
    ("The user prefers tabs over spaces.", "preference: user | prefers | tabs over spaces"),
    ("Ada likes hiking and camping.", "preference: Ada | likes | hiking and camping"),
    ("I really love Italian food.", "preference: I | loves | Italian food"),
    ("Bob hates long meetings.", "preference: Bob | hates | long meetings"),
    ("I like to read.", "preference: I | likes | to read"),
    # work, places, people
    ("Ada works on Nacre.", "relationship*: Ada | works on | Nacre"),
    ("I work at Acme Corp.", "relationship*: I | works at | Acme Corp"),
    ("Bob works for the Max Planck Institute.", "relationship*: Bob | works for | Max Planck Institute"),
    ("Ada is working on the parser.", "relationship: Ada | works on | the parser"),
    ("I live in Berlin now.", "location*: I | lives in | Berlin"),
    ("Ada is based in New York.", "location*: Ada | lives in | New York"),
    ("Ada moved to St. Louis.", "location*: Ada | lives in | St. Louis"),
    ("Ada lives in Berlin with two dogs.", "location*: Ada | lives in | Berlin"),
    ("Ada is married to Bob.", "relationship*: Ada | is married to | Bob"),
    ("The parser is written in Rust.", "relationship*: parser | is written in | Rust"),
    # decisions
    ("We decided to use SQLite for storage.", "decision: We | decided | to use SQLite for storage"),
    ("Ada decided not to move.", "decision: Ada | decided | not to move"),
    # dates
    ("The release is on 2026-03-01.", "temporal: release | is on | 2026-03-01"),
    ("The report is due by 3 May 2026.", "temporal: report | is due by | 3 May 2026"),
    ("Ada's birthday is 3 May.", "temporal: Ada | birthday | 3 May"),
    ("My birthday is on May 3rd.", "temporal: I | birthday | May 3rd"),
    ("Ada was born on 10 December 1815.", "temporal: Ada | was born on | 10 December 1815"),
    # speakers, first words, bullets
    ("Caroline: I moved to Berlin.", "location*: Caroline | lives in | Berlin"),
    ("Caroline: Yeah, I love painting!", "preference: Caroline | loves | painting"),
    ("user: I prefer dark mode.", "preference: user | prefers | dark mode"),
    ("Note: the staging server is down.", "state: staging server | is | down"),
    ("Remember that I prefer dark mode.", "preference: I | prefers | dark mode"),
    ("- Ada works at Acme.", "relationship*: Ada | works at | Acme"),
    ("Hello there. Ada works at\nAcme. It was raining.", ""),
    ("Ada is a data\nengineer.", "identity: Ada | is | a data engineer"),
]

STRUCTURED = [
    ("port: 8080", None, ["config: port | is | 8080"]),
    ("port: 8080", "staging", ["config: staging | port | 8080"]),
    ("# Staging server\n\nPort: 8080\n", None, ["config: Staging server | Port | 8080"]),
    ("# Notes\nPort: 8080\n", "staging", ["config: staging | Port | 8080"]),
    ("Favorite color: blue", None, ["kv: Favorite color | is | blue"]),
    ("deadline: 2026-03-01", "Apollo", ["temporal: Apollo | deadline | 2026-03-01"]),
    ("Decision: use SQLite for storage", "Nacre", ["decision: Nacre | Decision | use SQLite for storage"]),
    (
        "## Apollo\n- **Owner:** Ana\n- **Mood**: calm\n- `db_host`: db.local\n- API_URL: https://x.y/z\n",
        None,
        [
            "kv: Apollo | Owner | Ana",
            "kv: Apollo | Mood | calm",
            "config: Apollo | db_host | db.local",
            "config: Apollo | API_URL | https://x.y/z",
        ],
    ),
    ("Flour: 200 g\nSugar: a little\n", "Cake", ["kv: Cake | Flour | 200 g", "kv: Cake | Sugar | a little"]),
    (
        "server:\n  port: 8080  # the default\n  host: localhost\nregion: eu-1\n",
        "Apollo",
        ["config: server | port | 8080", "config: server | host | localhost", "config: Apollo | region | eu-1"],
    ),
    (
        '---\ntitle: "Apollo"\nstatus: active\ntags: [web, api]\nowners:\n  - Ana\n  - Bob\ndue: 2026-03-01\n---\nHi.',
        "other",
        [
            "kv: Apollo | status | active",
            "kv: Apollo | tags | web",
            "kv: Apollo | tags | api",
            "kv: Apollo | owners | Ana",
            "kv: Apollo | owners | Bob",
            "temporal: Apollo | due | 2026-03-01",
        ],
    ),
    ("---\nstatus: active\n---\n", None, ["kv: status | is | active"]),
    ("---\nJust a line between rules.\n---\n", "x", []),
    ("---\nstatus: active\n", "x", ["kv: x | status | active"]),
    (
        "| Setting | Value |\n|---|---|\n| port | 8080 |\n| mode | fast |\n",
        "Apollo",
        ["config: Apollo | port | 8080", "kv: Apollo | mode | fast"],
    ),
    (
        "| Name | Role | City |\n|:--|---|--:|\n| Ada | engineer | Berlin |\n| Bob | - | Rome |\n",
        None,
        ["kv: Ada | Role | engineer", "kv: Ada | City | Berlin", "kv: Bob | City | Rome"],
    ),
    ("| # | Task |\n|---|---|\n| 1 | sweep |\n", None, []),
    ("a | b\nc | d\n", None, []),
    ("```\nport: 8080\n```\nAda uses Vim.", None, ["relationship*: Ada | uses | Vim"]),
]

NOTHING = [
    # questions, doubts, denials, the past, other people's words, orders
    *("Does Ada use Vim?", "Ada is a data engineer?", "Is Ada a nurse?", "If Ada uses Vim, we win."),
    *("Ada might be a nurse.", "Ada uses Vim, I think.", "Maybe Ada lives in Berlin.", "We should use Redis."),
    *(
        "Ada is planning to move to Berlin.",
        "I would love a coffee.",
        "I'd love a coffee.",
        "Unless Bob uses Vim, fine.",
    ),
    *("Ada does not use Vim.", "Ada is not a nurse.", "Ada never uses Vim.", "Ada no longer lives in Berlin."),
    *("Ada isn't a nurse.", "I don't like olives.", "Ada used to live in Berlin.", "Ada lived in Berlin."),
    *(
        "Ada was a nurse.",
        "Bob said Ada uses Vim.",
        '"Ada uses Vim," he wrote.',
        "> Ada uses Vim.",
        "Use Redis for caching.",
    ),
    *("- [ ] Ada uses Vim.", "The server was down.", "Bob told me the staging server is down."),
    *(
        "CONCLUSION Ada is a nurse.",
        "Ada is a widely used, open tool.",
        "Risk depends on dose- and age-related things.",
    ),
    # nobody in particular, nothing in particular
    *(
        "It is a nice day.",
        "This is a test.",
        "There is a problem.",
        "He works at Acme.",
        "They use Redis.",
        "Life is good.",
    ),
    *("Programming is an awesome skill.", "The problem is a missing comma.", "That is a great idea.", "I love it!"),
    *("I love your painting.", "I like that.", "I'm so happy.", "I'm a big fan of pottery.", "My kids are so excited."),
    *("My goal is to help people.", "I'm ready.", "I hate this.", "What I love is pizza.", "My dog is cute."),
    *(
        "The meeting moved to Friday.",
        "The meeting is on Friday.",
        "The service moved to Berlin.",
        "We moved to GitHub.",
    ),
    *(
        "Everyone likes pizza.",
        "Someone uses Vim.",
        "Thanks, Ada is great!",
        "Today is a holiday.",
        "Crohn's disease is a burden.",
    ),
    # colons that are no `key: value`
    *("Caroline: I love it, so calming!", "Ana: Hi there\nBob: Sure", "Ana: Vim\nBob: I see.", "Caroline: Vim"),
    *("Note: we should not deploy on Fridays.", "There is one problem: the disk.", "Warning: hot", "TODO: write tests"),
    *("Example: port", "Q: why\nA: because", "See https://example.com/a:b for more.", "Meet at 12:30", "12:30: lunch"),
    *(
        "if x: y",
        "else: pass",
        "lambda x: x + 1",
        'def f(a: int) -> str:\n    """Doc."""\n    key: int = 3',
        "std::vector: fast",
    ),
    *(
        '{"port": 8080}',
        '{\n  "port": 8080\n}',
        "Traceback (most recent call last):\n  File\nValueError: bad",
        "ERROR: failed",
    ),
    *("2026-03-01 12:00:00 INFO server: started", "[INFO] server: started", "Status: \U0001f600", "\U0001f600: smile"),
    *("KeyError: port", "from os import path\nport: 8080", "The plan for today: rest", "Mood: great!", "port:8080"),
    # nothing of the sort
    *(
        "",
        " ",
        "\n\n",
        "# Title",
        "---",
        "---\n---\n",
        "|",
        ":",
        ": :",
        "a:",
        "- ",
        "is",
        "I",
        "I'm",
        "Ada is",
        "uses Vim",
    ),
]

NOTES = [
    ("Project Apollo uses FastAPI and the staging server is down.", 1),
    ("Deploys run every night at two.", 0),
    ("Fixed the flaky test by waiting for the port.", 0),
    ("User's timezone is Europe/Berlin.", 1),
    ("The user is a backend developer.", 1),
    ("Apollo runs on Kubernetes. Hermes runs on bare metal.", 2),
    ("db_port: 5432", 1),
    ("Ana works at Acme and lives in Rome.", 1),
    ("I prefer pytest over unittest. I hate mocks.", 2),
    ("Ran the migration, took ten minutes, all fine.", 0),
    ("Reviewed the design: it looks solid to me.", 0),
    ("auth-service depends on Redis.", 1),
    ("We decided to drop Python 3.9.", 1),
    ("Bug: the parser crashes on empty input.", 0),
    ("Bob reports to Ana.", 1),
    ("The old API is deprecated in favour of GraphQL.", 1),
    ("Meeting notes\n\nOwner: Ana\nDeadline: 2026-04-01\n", 2),
    ("Remember to call Bob tomorrow.", 0),
    ("The build is broken.", 1),
    ("Could you check whether the build is broken?", 0),
    ("My phone is 555-0100.", 1),
    ("My editor is Helix.", 1),
    ("Our database is PostgreSQL.", 1),
    ("The cache was cleared and things got better.", 0),
    ("The main branch is frozen until Monday, says Bob.", 0),
    ("Talked to Carol about pricing; she is unsure.", 0),
    ("Carol is from Portugal.", 1),
    ("Carol enjoys rock climbing.", 1),
    ("Carol would rather use Vim.", 0),
    ("Docs are hosted on GitHub.", 1),
    ("The docs site is hosted on Netlify.", 1),
    ("config.yaml is deprecated.", 1),
    ("Seems like Redis is the bottleneck.", 0),
    ("Redis is the bottleneck.", 1),
    ("API_KEY: stored in the vault", 1),
    ("See also: the other document", 0),
    ("Step 1: install it", 0),
    ("Total: 42", 1),
    ("Dear Bob: thanks for the fish", 0),
    ("Nate: Great\nJoanna: Thanks", 0),
]


def test_enough_examples() -> None:
    assert len(NOTES) + len(SENTENCES) >= 60
    assert len(set(NOTHING)) >= 80


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentences(text: str, expected: str) -> None:
    facts = extract(text)
    assert brief(facts) == ([expected] if expected else [])
    assert all(each.confidence == 0.9 and each.single is not False for each in facts)


@pytest.mark.parametrize(("text", "title", "expected"), STRUCTURED)
def test_structured(text: str, title: str | None, expected: list[str]) -> None:
    facts = extract(text, title)
    assert brief(facts) == expected
    assert all(each.confidence == 1.0 or each.single is None for each in facts)


@pytest.mark.parametrize("text", NOTHING)
def test_nothing(text: str) -> None:
    assert brief(extract(text)) == []


@pytest.mark.parametrize(("text", "number"), NOTES)
def test_notes(text: str, number: int) -> None:
    assert len(extract(text)) == number, brief(extract(text))


def test_a_newer_value_takes_the_place_only_of_one_known_subject() -> None:
    assert [each.single for each in extract("port: 8080")] == [False]
    assert [each.single for each in extract("port: 8080", "staging")] == [True]


def test_several_values_at_once_do_not_take_each_others_place() -> None:
    facts = extract("port: 8080\nhost: a\nport: 8081\n", "staging")
    assert [(each.predicate, each.single) for each in facts] == [("port", False), ("host", True), ("port", False)]


def test_the_same_fact_comes_once() -> None:
    assert len(extract("Ada uses Vim. ADA uses Vim. Ada uses Vim!")) == 1


def test_a_quote_is_the_sentence_or_the_line() -> None:
    text = "Hello.  Ada works at Acme.\n\n# Apollo\n  - port: 8080\n"
    assert [each.quote for each in extract(text)] == ["Ada works at Acme.", "port: 8080"]


def test_the_order_is_that_of_the_text() -> None:
    text = "---\nstatus: open\n---\nAda uses Vim.\n\n| Name | Role |\n|---|---|\n| Bob | cook |\n\nport: 1\n"
    assert [each.object for each in extract(text)] == ["open", "Vim", "cook", "1"]


def test_no_more_than_so_many() -> None:
    text = "\n".join(f"key_{number}: {number}" for number in range(500))
    assert len(extract(text, "x")) == FACTS_MAX
    rows = "\n".join(f"| row{letter} | {letter} | {letter} |" for letter in "abcdefghijklmnopqrstuvwxyz")
    assert len(extract(f"| Name | One | Two |\n|---|---|---|\n{rows}")) == 30


def test_the_end_of_a_long_text_is_not_read() -> None:
    assert extract("x " * (CHARS_READ_MAX // 2) + "\nAda uses Vim.") == []


PIECES = [
    "a: ",
    "is is is ",
    "| | |",
    "---\n",
    "|---|\n",
    "a: b\n",
    "I love ",
    "Ada is a ",
    ". ",
    "..",
    '."',
    "((",
    "A.",
    "`",
]
MORE = [
    "-",
    "|-",
    "# a\n",
    " ",
    "\n",
    "'s ",
    "and ",
    "Ada uses ",
    "a_b.",
    "1.",
    "_",
    "a.b",
    "\ud800",
    "é",
    "*",
    "- ",
    "key:\n",
    "x@",
    "a" * 50 + ": ",
    "--- \n" + "a: [",
    "|a|b|\n|-|-|\n",
    "key: " + "-a" * 60,
]
BEGINNINGS = ["", "---\n", "Ada is ", "key: "]
WHOLE = [
    Repeated("a", start="Ada is "),
    Repeated("a", start="def "),
    Repeated("_", start="Ada is ", end="§"),
    Repeated("1", end=":"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "texts", [*([Repeated(piece, each) for each in BEGINNINGS] for piece in [*PIECES, *MORE]), WHOLE]
)
def test_time_is_linear(texts: Sequence[Repeated]) -> None:
    """Up to the longest text that is read."""

    def read(text: str) -> object:
        chunks.cache_clear()  # it keeps the last text
        return extract(text, "x")

    for make in texts:
        assert_linear(read, make, CHARS_READ_MAX)
        assert len(extract(make(CHARS_READ_MAX), "x")) <= FACTS_MAX


WORDS = sorted(
    {word for text, _ in SENTENCES for word in text.split()} | {"\n", "|", "---\n", "```", "key:", "- ", "#"}
)
TEXTS = st.one_of(
    st.text(),
    st.text(st.characters()),
    st.text("aA:|-#`*'\".,!? \n()[]", max_size=60),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=20).map(" ".join),
    st.lists(st.sampled_from([text for text, _, _ in STRUCTURED] + NOTHING), max_size=4).map("\n".join),
)


@given(TEXTS, st.none() | st.text(max_size=20))
def test_any_text(text: str, title: str | None) -> None:
    facts = extract(text, title)
    assert facts == extract(text, title)
    assert len(facts) <= FACTS_MAX
    assert len({(each.subject, each.predicate, each.object) for each in facts}) == len(facts)
    for each in facts:
        assert each.quote
        assert each.quote in text
        assert len(each.quote) <= QUOTE_CHARS_MAX
        for part in (each.subject, each.predicate, each.object):
            assert part.strip() == part
            assert 0 < len(part) <= PART_CHARS_MAX


# ---------------------------------------------------------------- settings of files

# A text, its source, and its facts.
SETTINGS = [
    ("timeout = 30", "app.toml", ["config: app.toml | timeout | 30"]),
    ("timeout: 45  # raised", "app.toml", ["config: app.toml | timeout | 45"]),
    ("timeout: 45 // raised", "app.toml", ["config: app.toml | timeout | 45"]),
    ("url: https://x.y/z#a", "v.yaml", ["config: v.yaml | url | https://x.y/z#a"]),
    ("PORT=8080", "prod.env", ["config: prod.env | PORT | 8080"]),
    ("export PORT=8080", "deploy/.env.prod", ["config: deploy/.env.prod | PORT | 8080"]),
    ("prod.env: WORKERS=12", "x/prod.env", ["config: x/prod.env | WORKERS | 12"]),
    ("prod.env: WORKERS=12", None, ["config: prod.env | WORKERS | 12"]),
    ("POOL_SIZE=18 (20 is too much)", ".env", ["config: .env | POOL_SIZE | 18"]),
    ("# both\nA_MAX=5\n\nB_MS=400", "c.env", ["config: c.env | A_MAX | 5", "config: c.env | B_MS | 400"]),
    (
        "[server]\nport = 80\n[db]\nport = 5432 # pg",
        "x.toml",
        ["config: x.toml server | port | 80", "config: x.toml db | port | 5432"],
    ),
    ("server:\n  port: 80", "v.yaml", ["config: v.yaml server | port | 80"]),
    ("mode: strict", "v.yaml", ["kv: v.yaml | mode | strict"]),
    ("| Key | Value |\n|---|---|\n| port | 80 |", "v.toml", ["config: v.toml | port | 80"]),
    ("# Ada\n\nrole: cook\nage: 40", "people.md", ["kv: Ada | role | cook", "kv: Ada | age | 40"]),
    ("port: 80", "notes.md", ["config: notes.md | port | 80"]),
    ("Status: open", "notes.md", ["kv: Status | is | open"]),
    ("port: 80", "a chat with Ada", ["config: port | is | 80"]),
    ("PORT=8080", None, ["config: PORT | is | 8080"]),
    ("tags = [a, b]", "x.toml", []),
    ("x = f(3)", "x.toml", []),
    ("total = 3", "a.py", []),
    ("p = 0.01", None, []),
    ("numpy==1.26.4 everywhere", "requirements.txt", []),
    ("Set PORT=8080 and restart.", "prod.env", []),
]


@pytest.mark.parametrize(("text", "source", "expected"), SETTINGS)
def test_settings_belong_to_their_file(text: str, source: str | None, expected: list[str]) -> None:
    assert brief(extract(text, None, source)) == expected


def test_a_setting_of_a_file_has_one_value() -> None:
    assert [each.single for each in extract("PORT=8080", None, "prod.env")] == [True]
    assert [each.single for each in extract("PORT=8080")] == [False]
