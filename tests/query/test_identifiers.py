"""What a question names exactly, and which texts have just that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from growth import Repeated, assert_linear
from nacre.query.identifiers import IDENTIFIERS_MAX, READ_CHARS_MAX, Exactness, Identifier, find, fold
from nacre.types.memory import Span

# ---------------------------------------------------------------- what is found

CODES = [
    ("what is OPS-1482 about?", "OPS-1482"),
    ("is OPS 1482 done", "OPS 1482"),
    ("see #4711", "4711"),
    ("where is /etc/nginx/nginx.conf.", "/etc/nginx/nginx.conf"),
    ("open src/app/main.py please", "src/app/main.py"),
    (r"in C:\Users\ada\x.txt", r"C:\Users\ada\x.txt"),
    ("what is in ~/notes", "~/notes"),
    ("main.py does what", "main.py"),
    ("python 3.11.4 or newer", "3.11.4"),
    ("the v2 of it", "v2"),
    ("error E0382 in the build", "E0382"),
    ("ERR_2270", "ERR_2270"),
    ("write to ada@example.org.", "ada@example.org"),
    ("what is at https://example.org/a?b=1.", "https://example.org/a?b=1"),
    ("what does getUserName do", "getUserName"),
    ("who uses std::vector here", "std::vector"),
    ("run it with --no-verify", "--no-verify"),
    ("who has 3c:22:fb:01:9a:77", "3c:22:fb:01:9a:77"),
    ("host 192.168.0.1", "192.168.0.1"),
    ("port 8080", "8080"),
    ("commit 3f2a9bc", "3f2a9bc"),
    ("us-east-1 costs", "us-east-1"),
]
QUOTES = [
    ('the "blue folder" rule', "blue folder"),
    ("the “blue folder” rule", "blue folder"),
    ("wo ist die „graue Mappe“", "graue Mappe"),
    ("où est «le dossier bleu»", "le dossier bleu"),
    ("who runs `make lint`", "make lint"),
    ("it's Ada's 'own words' here", "own words"),
]
NAMES = [
    ("who is Ada Lovelace", "Ada Lovelace"),
    ("Ada Lovelace's number", "Ada Lovelace"),
    ("the plan of Acme Foods Ltd for May", "Acme Foods Ltd"),
    ("wo wohnt Jörg Müller", "Jörg Müller"),
]


@pytest.mark.parametrize(
    ("question", "text", "exactness"),
    [(*each, kind) for kind, rows in (("code", CODES), ("quote", QUOTES), ("name", NAMES)) for each in rows],
)
def test_a_question_names_this(question: str, text: str, exactness: Exactness) -> None:
    (found,) = find(question)
    assert (found.text, found.exactness) == (text, exactness)
    assert text in question[found.span.start : found.span.end] or exactness == "code"


@pytest.mark.parametrize(
    "question",
    [
        "",
        "where did we leave the ladder?",
        "and/or, he/she, 24/7",
        "in 2025, on 2025-03-01 at 10:30",
        "on 3rd May, in Q3",
        "10ms, 5x and 20%",
        "the U.S., e.g. this",
        "IBM and NASA",
        "McDonald and MacArthur",
        "Mr Bean and Dr. Who",
        "Does Ada know",
        "room 12",
        "nacre-rerank",
        "x" * 300 + "1",  # nobody names that
    ],
)
def test_a_question_names_nothing(question: str) -> None:
    assert find(question) == ()


def test_they_come_in_order_and_each_once() -> None:
    found = find('DB_PORT and DB_HOST of "the relay", db_port, Ada Lovelace')
    assert [each.text for each in found] == ["DB_PORT", "DB_HOST", "the relay", "Ada Lovelace"]
    assert [each.exactness for each in found] == ["code", "code", "quote", "name"]


def test_a_quote_hides_what_is_in_it() -> None:
    assert [each.text for each in find('the rule "see OPS-1482 first"')] == ["see OPS-1482 first"]


def test_a_question_names_so_many_at_most() -> None:
    found = find(" ".join(f"OPS-{number}" for number in range(100, 150)))
    assert [each.text for each in found] == [f"OPS-{number}" for number in range(100, 100 + IDENTIFIERS_MAX)]


# ---------------------------------------------------------------- where it stands

STANDS = [
    ("OPS-1482", "see ops-1482.", True),
    ("OPS-1482", "OPS 1482 is done", True),
    ("OPS-1482", "branch ops_1482_fix", False),  # part of something longer
    ("OPS-1482", "OPS1482", True),
    ("OPS-1482", "OPS-1428", False),
    ("OPS-1482", "OPS-14820", False),
    ("OPS-1482", "DEVOPS-1482", False),
    ("OPS 1482", "OPS-1482", True),
    ("1482", "OPS-1482", True),
    ("1482", "1,482", False),
    ("1482", "14.1482", False),
    ("v2", "v2.1", False),
    ("v2", "v2.", True),
    ("3.11.4", "13.11.4", False),
    ("3.11.4", "3.11.40", False),
    ("3.11.4", "3.11.4.1", False),
    ("3.11.4", "python-3.11.4", True),
    ("3.11", "3.11.4", False),
    ("get_user", "get_users", False),
    ("get_user", "get-user", True),
    ("getUserName", "calls GETUSERNAME()", True),
    ("us-east", "us-east-1", False),
    ("/etc/nginx.conf", "in /etc/nginx.conf:", True),
    ("/etc/nginx.conf", "/etc/nginx_conf", False),
    ("ada@example.org", "<Ada@Example.org>", True),
    ("ada@example.org", "jada@example.org", False),
    ("--no-verify", "git commit --no-verify", True),
    ("--no-verify", "--no-verify-ssl", False),
    ("Café-7", "CAFE-7", True),
]


@pytest.mark.parametrize(("code", "text", "stands"), STANDS)
def test_a_code_stands_in_a_text(code: str, text: str, stands: bool) -> None:
    assert Identifier(code, "code", Span(0, 1)).stands_in(fold(text)) == stands


@pytest.mark.parametrize(
    ("quote", "text", "stands"),
    [
        ("blue folder", "The Blue  Folder is gone", True),
        ("blue folder", "the blue\nfolder", True),
        ("blue folder", "the blue-folder", False),
        ("blue folder", "blue folders", False),
        ("blue folder", "folder, blue", False),
        ("Müller", "MULLER", True),
    ],
)
def test_a_quote_or_a_name_stands_in_a_text(quote: str, text: str, stands: bool) -> None:
    for exactness in ("quote", "name"):
        assert Identifier(quote, exactness, Span(0, 1)).stands_in(fold(text)) == stands


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Ada", "ada"), ("Čapek", "capek"), ("STRASSE", "strasse"), ("Straße", "strasse"), ("ＯＰＳ", "ops"), ("", "")],
)
def test_folding(text: str, folded: str) -> None:
    assert fold(text) == folded == fold(fold(text))


# ---------------------------------------------------------------- any text

PIECES = st.sampled_from([*'aZ9é猫 ._-/\\@#:"“„«`\n', "OPS-1", "Ada ", "v1.2", "a@b.c", "--x", "://", "'s", "'"])


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
@example("A's B's")
@example("“”")
def test_what_is_found_stands_in_the_question(question: str) -> None:
    found = find(question)
    assert len(found) <= IDENTIFIERS_MAX
    assert list(found) == sorted(found, key=lambda each: each.span)
    assert len({fold(each.text) for each in found}) == len(found)
    for each in found:
        assert each.text in question
        assert 0 <= each.span.start < each.span.end <= len(question)
        each.stands_in(fold(question))  # whatever it is, it makes a pattern


@given(
    st.lists(st.sampled_from(["OPS-1482", "v2.1", "ERR_7", "getUser", "the", "Ada", "Bob", "12.", "x?"]), max_size=9)
)
def test_what_is_found_stands_in_a_text_that_is_the_question(words: list[str]) -> None:
    question = " ".join(words)
    assert all(each.stands_in(fold(question)) for each in find(question))


@pytest.mark.parametrize("piece", ["a@", "a.", "a/", "a+", "Aa ", "ab1 ", '"', "'", "„", "`a", "--a", "1.", "OPS "])
@pytest.mark.parametrize("size", [READ_CHARS_MAX, 8 * READ_CHARS_MAX])
def test_time_is_linear(piece: str, size: int) -> None:
    """Also in what is not read: whether a question may name anything is asked of the whole."""
    assert_linear(find, Repeated(piece), size)
