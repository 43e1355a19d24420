"""The parser: no query is an error."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nacre.analysis import tokenizer
from nacre.query import parser as parsing
from nacre.query.ast import (
    AllOf,
    AnyOf,
    Condition,
    Near,
    ParsedQuery,
    Phrase,
    Term,
    Without,
    condition_matches,
    term_counts,
)
from nacre.query.filters import KEYS
from nacre.query.parser import TERMS_MAX
from nacre.types.memory import Memory, Tokens
from nacre.types.recipe import Recipe

QUOTE_NOTE = 'an unbalanced " was ignored'
PARENS_NOTE = "unbalanced or too deeply nested parentheses were ignored"
Operand = str | Condition
NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)
MEMORY = Memory(
    id="m", space="default", kind="note", namespace="general", text="a", summary=None, tags=(), source=None,
    session=None, position=None, metadata={}, importance=0.5, created=NOW, updated=NOW,
)  # fmt: skip


def parse(query: str) -> ParsedQuery:
    return parsing.parse(query, NOW, UTC)


def word_note(operator: str) -> str:
    return f"{operator} has nothing to join and was read as a word"


def key_note(key: str) -> str:
    return f"{key}: is not a filter and was read as a word; filters are {', '.join(sorted(KEYS))}"


def star_note(word: str) -> str:
    return f"* finds word beginnings only at the end of a single word; {word} was read as words"


def symbol_note(symbol: str) -> str:
    return f"{symbol} has nothing to act on and was read as a word"


def _condition(part: Operand) -> Condition:
    """`run` and `run*` are terms, `two words` is a phrase."""
    if not isinstance(part, str):
        return part
    if " " in part:
        return Phrase(tuple(part.split()))
    return Term(part.rstrip("*"), prefix=part.endswith("*"))


def phrase(text: str) -> Phrase:
    return Phrase(tuple(text.split()))


def any_of(*parts: Operand) -> AnyOf:
    return AnyOf(tuple(map(_condition, parts)))


def all_of(*parts: Operand) -> AllOf:
    return AllOf(tuple(map(_condition, parts)))


def without(unwanted: Operand, wanted: Operand | None = None) -> Without:
    return Without(None if wanted is None else _condition(wanted), _condition(unwanted))


# (query, terms, must, meaning, notes); a meaning of None is the query itself
QUERIES: list[tuple[str, str, Condition | None, str | None, list[str]]] = [
    # plain words and questions rank; punctuation is nothing
    ("", "", None, "", []),
    ("   \t\n", "", None, "", []),
    ("deployment process", "deploy process", None, None, []),
    ("Which database do we use?", "which databas do we use", None, None, []),
    ("What's the user's e-mail?", "what the user e mail e-mail", None, None, []),
    ("How do I fix: error E0502 (borrow)?", "how do i fix error e0502 borrow", None, None, []),
    ("it's done; isn't it?!", "it done isnt", None, None, []),
    ("a a b a", "a b", None, None, []),
    ("getUserId", "get user id getuserid", None, None, []),
    ("café", "cafe café", None, None, []),
    ("猫", "猫", None, None, []),
    ("日本語", "日本 本語", None, None, []),
    ("💡", "", None, None, []),
    ("and or not", "and or not", None, None, []),
    ("The And", "the and", None, None, []),
    # operators
    ("deploy AND staging", "deploy stage", all_of("deploy", "stage"), "deploy staging", []),
    ("a\tAND\nb", "a b", all_of("a", "b"), "a b", []),
    ("a AND b AND c", "a b c", all_of("a", "b", "c"), "a b c", []),
    ("blue OR green", "blue green", None, "blue green", []),
    ("a OR b OR c", "a b c", None, "a b c", []),
    ("deploy NOT staging", "deploy", without("stage"), "deploy", []),
    ("a AND NOT b", "a", without("b"), "a", []),
    ("a NOT b c", "a c", without("b"), "a c", []),
    ("a NOT NOT b", "a", without("b"), "a", []),
    ("NOT a", "", without("a"), "", []),
    ("a OR NOT b", "a", any_of("a", without("b")), "a", []),
    ("a b AND c", "a b c", all_of(any_of("a", "b"), "c"), "a b c", []),
    ("a AND b OR c", "a b c", any_of(all_of("a", "b"), "c"), "a b c", []),
    ("a OR b AND c", "a b c", any_of("a", all_of("b", "c")), "a b c", []),
    ("C++ AND rust", "c c++ rust", all_of("c++", "rust"), "C++ rust", []),
    ("snake_case AND x", "snake case snake_case x", all_of("snake case", "x"), "snake_case x", []),
    # exclusions
    ("deploy -staging", "deploy", without("stage"), "deploy", []),
    ("-a", "", without("a"), "", []),
    ("running -running", "run", without("run"), "running", []),
    ("-run*", "", without("run*"), "", []),
    ('-"x y"', "", without("x y"), "", []),
    ('a -"x y"', "a", without("x y"), "a", []),
    ("foo-bar", "foo bar foo-bar", None, None, []),
    ("a - b", "a b", None, None, []),
    ("a -- b", "a b", None, None, []),
    ("--verbose flag", "verbos flag", None, None, []),
    ("a OR -b", "a", any_of("a", without("b")), "a", []),
    # phrases
    ('"exact phrase"', "exact phrase", phrase("exact phrase"), "exact phrase", []),
    ('"running shoes"', "run shoe", phrase("running shoes"), "running shoes", []),
    ('a "x y" b', "a b x y", phrase("x y"), "a x y b", []),
    ('"x" "y"', "x y", all_of(phrase("x"), phrase("y")), "x y", []),
    ('"a b" OR c', "a b c", any_of("a b", "c"), "a b c", []),
    ('c OR "a b"', "c a b", any_of("c", "a b"), "c a b", []),
    ('"a AND b"', "a and b", phrase("a and b"), "a AND b", []),
    ('("a b")', "a b", phrase("a b"), "a b", []),
    ('"getUserId"', "get user id getuserid", phrase("get user id"), "getUserId", []),
    # prefixes
    ("deploy*", "deploy*", None, "deploy", []),
    ("Running*", "running*", None, "Running", []),
    ("run* AND b", "run* b", all_of("run*", "b"), "run b", []),
    ("a**", "a*", None, "a", []),
    # grouping
    ("(a OR b) AND c", "a b c", all_of(any_of("a", "b"), "c"), "a b c", []),
    ("(a b) AND c", "a b c", all_of(any_of("a", "b"), "c"), "a b c", []),
    ("((a OR b))", "a b", None, "a b", []),
    ("a (b OR c)", "a b c", any_of("b", "c"), "a b c", []),
    ("a (b)", "a b", None, None, []),
    (
        "(a OR (b AND (c OR d))) NOT e",
        "a b c d",
        without("e", any_of("a", all_of("b", any_of("c", "d")))),
        "a b c d",
        [],
    ),
    ("(-a) AND b", "b", all_of(without("a"), "b"), "b", []),
    # what FTS5 would take for syntax is words
    ("NEAR(a b)", "a b", Near((phrase("a"), phrase("b")), 10), "a b", []),
    ("NEAR(a b, 5)", "a b", Near((phrase("a"), phrase("b")), 5), "a b", []),
    ("col:word", "col word col:word", None, None, [key_note("col")]),
    ("words:foo", "word foo words:foo", None, None, [key_note("words")]),
    ("^word", "word", None, None, []),
    ("a + b", "a b", None, None, []),
    ("{a b}: c", "a b c", None, None, []),
    ("a*b", "a b", None, None, [star_note("a*b")]),
    ("*", "", None, None, [symbol_note("*")]),
    ("**", "", None, None, [symbol_note("**")]),
    ("-", "", None, None, []),
    ("'", "", None, None, []),
    (";", "", None, None, []),
    ("--", "", None, None, []),
    ("/*", "", None, None, []),
    ("*/", "", None, None, []),
    ("'; DROP TABLE memories; --", "drop tabl memori", None, None, []),
    ("x\x00y", "x y", None, None, []),
    # quotes without a partner
    ('"', "", None, None, [QUOTE_NOTE]),
    ('""', "", None, "", []),
    ('"unbalanced phrase', "unbalanc phrase", None, None, [QUOTE_NOTE]),
    ('a "b c" d"', "a d b c", phrase("b c"), "a b c d", [QUOTE_NOTE]),
    # operators with nothing to join
    ("a AND", "a and", None, None, [word_note("AND")]),
    ("and AND", "and", None, None, [word_note("AND")]),
    ("AND a", "and a", None, None, [word_note("AND")]),
    ("a OR", "a or", None, None, [word_note("OR")]),
    ("OR a", "or a", None, None, [word_note("OR")]),
    ("a NOT", "a not", None, None, [word_note("NOT")]),
    ("() AND a", "a", None, "a", []),
    ("a AND ()", "a", None, "a", []),
    ("a OR ()", "a", None, "a", []),
    ("a AND (b OR)", "a b or", all_of("a", "b"), "a b or", [word_note("OR")]),
    ("a AND AND b", "a and b", all_of("a", "b"), "a and b", [word_note("AND")]),
    # parts without words neither demand nor exclude
    ("a AND 💡", "a", None, "a 💡", []),
    ("a NOT 💡", "a", None, "a", []),
    # in a text all in capitals, operators are words
    ("AND", "and", None, None, [word_note("AND")]),
    ("NOT", "not", None, None, [word_note("NOT")]),
    ("DELETE THE NOT FILES", "delet the not file", None, None, []),
    ("API OR SQL", "api or sql", None, None, []),
    # parentheses without a partner
    ("(a", "a", None, None, []),
    ("a)", "a", None, None, []),
    ("(a AND b", "a b", all_of("a", "b"), "a b", [PARENS_NOTE]),
    ("a AND b)", "a b", all_of("a", "b"), "a b", [PARENS_NOTE]),
    (")a OR b(", "a b", None, "a b", [PARENS_NOTE]),
]


def _flat(condition: Condition | None) -> Condition | None:
    """The same condition with nested AllOf and AnyOf of one kind joined: how deep they nest says nothing."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            kind = type(condition)
            flat: list[Condition] = []
            for part in map(_flat, parts):
                assert part is not None
                flat += part.parts if isinstance(part, kind) else [part]
            return kind(tuple(flat))
        case Without(wanted, unwanted):
            refused = _flat(unwanted)
            assert refused is not None
            return Without(_flat(wanted), refused)
    return condition


@pytest.mark.parametrize(("query", "terms", "must", "meaning", "notes"), QUERIES, ids=[each[0] for each in QUERIES])
def test_a_query_asks_this(
    query: str, terms: str, must: Condition | None, meaning: str | None, notes: list[str]
) -> None:
    question = parse(query)
    assert " ".join(term.text + "*" * term.prefix for term in question.terms) == terms
    assert _flat(question.must) == _flat(must)
    assert question.meaning == (query.strip() if meaning is None else meaning)
    assert list(question.notes) == notes


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("deploy NOT staging production", "deploy to production", True),
        ("a NOT b NOT c", "a", True),
        ("a NOT b NOT c", "a b", False),
        ("a NOT b NOT c", "a c", False),
        ('"blue green" OR red', "red", True),
        ('"blue green" OR red', "green blue", False),
        ('"blue green" OR red', "a blue green one", True),
        ('"user name"', "call getUserName()", True),
        ("getUserName AND x", "x get_user_name", True),
        ("getUserName AND x", "x name of the user", False),
        ("C++ AND x", "C x", False),
        ("deploys AND x", "deploying x", True),
        ("run* AND x", "running x", True),
        ("run* AND x", "rerun x", False),
        # A quoted part of a run without spaces is in the run.
        ('"本語"', "日本語", True),
        ('"猫"', "黒い猫が好き", True),
        ('"用GPT4写"', "我用GPT4写信", True),
        ("GPT4写 AND x", "x 我用GPT4写信", True),
        ("語* AND x", "x 日本語", True),
    ],
)
def test_a_query_holds_for_a_text(query: str, text: str, found: bool) -> None:
    must = parse(query).must
    assert must is not None
    assert condition_matches(must, tokenizer.tokenise(text), MEMORY) == found


# ---------------------------------------------------------------- size


def test_deeply_nested_parentheses_are_dropped() -> None:
    question = parse("(" * 10_000 + "a AND b" + ")" * 10_000)
    assert _flat(question.must) == all_of("a", "b")
    assert list(question.notes) == [PARENS_NOTE]


def test_parentheses_nested_within_reason_are_honoured() -> None:
    question = parse("(a AND (b OR " * 4 + "c" + "))" * 4)
    assert question.notes == ()
    assert question.must is not None
    assert condition_matches(question.must, tokenizer.tokenise("a b"), MEMORY)
    assert condition_matches(question.must, tokenizer.tokenise("a c"), MEMORY)
    assert not condition_matches(question.must, tokenizer.tokenise("b c"), MEMORY)


@pytest.mark.parametrize(
    "many", ["(", ")", '"', '""', "-", "*", "()", ") (", "(a OR ", "AND ", "a AND ", "a NOT ", "NOT "]
)
def test_a_longest_query_of_anything_is_read(many: str) -> None:
    """As long as the engine lets a query be."""
    assert len(parse(f"{many * (9_990 // len(many))} b OR c").terms) <= TERMS_MAX


def test_only_so_many_terms_are_looked_up() -> None:
    question = parse(" ".join(f"w{number}" for number in range(400)))
    assert [term.text for term in question.terms] == [f"w{number}" for number in range(TERMS_MAX)]
    assert list(question.notes) == [f"only the first {TERMS_MAX} of 400 words were looked up"]


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
def test_what_is_left_out_of_a_long_query_is_given(operator: str) -> None:
    """And nothing is made up: where the rest is cut off, an operator without it is not a word."""
    question = parse(f" {operator} ".join(f"w{number}" for number in range(5_000)))
    assert any("only the first" in note for note in question.notes)
    assert not any("read as a word" in note for note in question.notes)
    assert Term(operator.lower()) not in question.terms


@pytest.mark.parametrize(
    "query",
    [
        "a " + " ".join(f"-w{number}" for number in range(1500)),
        " AND ".join(f"w{number}" for number in range(1500)),
        "a NOT " + " NOT ".join(f"w{number}" for number in range(1500)),
    ],
    ids=["-", "AND", "NOT"],
)
def test_a_long_chain_of_conditions_can_be_evaluated(query: str) -> None:
    must = parse(query).must
    assert must is not None
    condition_matches(must, tokenizer.tokenise("a"), MEMORY)


# ---------------------------------------------------------------- any text

PIECES = [
    "a",
    "b",
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    '"',
    '"a b"',
    "-",
    "-a",
    '-"b a"',
    "a*",
    "*",
    "C++",
    "猫",
    "💡",
    "\x00",
    " ",
]
QUERY_TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join))


@given(QUERY_TEXTS)
@example('"' * 7)
@example("\ud800 AND a")
def test_any_text_can_be_read(query: str) -> None:
    question = parse(query)
    assert len(question.terms) <= TERMS_MAX
    assert len(set(question.terms)) == len(question.terms)
    assert parse(query) == question
    if question.must is not None:
        condition_matches(question.must, tokenizer.tokenise("a b"), MEMORY)


@given(st.lists(st.sampled_from(["deploy", "staging", "is", "what", "C++", "猫", "a.b"]), min_size=1, max_size=8))
def test_plain_words_demand_nothing(chosen: list[str]) -> None:
    question = parse(" ".join(chosen))
    assert question.must is None
    assert question.meaning == " ".join(chosen)
    assert question.notes == ()


@given(QUERY_TEXTS)
def test_whatever_scores_is_wanted(query: str) -> None:
    """A term to score with is not one that only stands in an exclusion."""
    for term in parse(query).terms:
        assert term.text
        assert not any(char.isspace() for char in term.text)


# ---------------------------------------------------------------- conditions, against the plainest evaluator

WORDS = ["a", "b", "ab", "c"]
TERMS = st.builds(Term, st.sampled_from([*WORDS, "f"]), st.booleans())
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda each: Phrase(tuple(each)))
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(TERMS, PHRASES),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: AllOf(tuple(parts))),
        st.builds(Without, st.none() | inner, inner),
    ),
    max_leaves=8,
)
TOKENS = st.builds(
    Tokens,
    st.lists(st.sampled_from(WORDS), max_size=6).map(tuple),
    st.lists(st.sampled_from(["a", "f"]), max_size=2).map(tuple),
    *[st.just(each) for each in (0, (), (), ())],
)


def _naively(condition: Condition, tokens: Tokens) -> bool:
    """Written another way than `holds`: over a line of words between bars."""
    line = "|" + "|".join(tokens.words) + "|"
    if isinstance(condition, Term):
        if condition.prefix:
            return f"|{condition.text}" in line
        return f"|{condition.text}|" in f"{line}|{'|'.join(tokens.forms)}|"
    if isinstance(condition, Phrase):
        return f"|{'|'.join(condition.words)}|" in line
    if isinstance(condition, AnyOf):
        return not all(not _naively(part, tokens) for part in condition.parts)
    if isinstance(condition, AllOf):
        return not any(not _naively(part, tokens) for part in condition.parts)
    assert isinstance(condition, Without)
    if _naively(condition.unwanted, tokens):
        return False
    return condition.wanted is None or _naively(condition.wanted, tokens)


@pytest.mark.slow
@given(CONDITIONS, TOKENS)
@settings(max_examples=300)
def test_a_condition_holds_where_the_plainest_evaluator_says(condition: Condition, tokens: Tokens) -> None:
    assert condition_matches(condition, tokens, MEMORY) == _naively(condition, tokens)


@pytest.mark.parametrize(
    ("term", "times"),
    [(Term("run"), 3), (Term("running"), 1), (Term("run", prefix=True), 3), (Term("ru"), 0), (Term("runner"), 1)],
)
def test_how_often_a_term_occurs(term: Term, times: int) -> None:
    """Forms count for whole terms (`run` as a word, and twice as the stem of another), not for prefixes."""
    tokens = Tokens(words=("run", "running", "runner"), forms=("run", "run"), length=3)
    assert term_counts((term,), tokens, Recipe()) == [times]
