"""docs/query.md says what is so: every table on it is read, and every example run by library and command line.

A table that is not understood fails, so nothing on the page can go unchecked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from command_line import Cli
from nacre.config import factory
from nacre.engine.engine import Nacre
from nacre.interfaces import Embedder, Store
from nacre.query import dates, filters, lexer
from nacre.query.dates.english import ENGLISH
from nacre.query.dates.grammar import Form, phrases
from nacre.query.parser import PHRASE_WORDS_MAX, TERMS_MAX
from nacre.serialization import encode
from nacre.storage.sqlite import SqliteStore
from nacre.types.facts import NewFact
from nacre.types.memory import NewMemory
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, MatchWords, Part, Period, SearchResult
from nacre.validation import LIMITS, WILDCARDS_MAX, Limits

PAGE = Path(__file__).parents[2] / "docs" / "query.md"
NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)
NOW_ON_THE_PAGE = "It is Wednesday, 2026-03-11, 15:30, and the time zone is UTC."

# ---------------------------------------------------------------- reading the page


class Row(NamedTuple):
    line: int
    cells: Mapping[str, str]  # by the heads of their columns


class Example(NamedTuple):
    """`did_you_mean` and `notes` are as empty as they are on the page: then there must be none."""

    line: int
    query: str
    finds: tuple[str, ...]
    notes: tuple[str, ...] = ()
    did_you_mean: str | None = None
    spaces: tuple[str, ...] = ()
    match: MatchWords = "any"


class Sample(NamedTuple):
    name: str
    memory: NewMemory


class Time(NamedTuple):
    line: int
    text: str
    period: Period


@dataclass(frozen=True)
class Page:
    samples: Sequence[Sample]
    examples: Sequence[Example]
    times: Sequence[Time]
    filters: Sequence[str]  # keys as the page explains them
    limits: Mapping[str, str]


def read_page(text: str) -> Page:
    samples: list[Sample] = []
    examples: list[Example] = []
    when: list[Time] = []
    explained: list[str] = []
    limits: dict[str, str] = {}
    for row in _rows(text):
        cells = row.cells
        match frozenset(cells):
            case heads if heads == {"name", "text", "created", "fields"}:
                samples.append(Sample(cells["name"], _memory(cells)))
            case heads if {"query", "finds"} <= heads <= {"query", "finds", "note", "did you mean", "spaces"}:
                examples.append(_example(row, _code(cells["query"])))
            case heads if heads == {"all words", "finds", "note"}:
                examples.append(_example(row, _code(cells["all words"]))._replace(match="all"))
            case heads if heads == {"time", "begins", "ends", "finds"}:
                said = _code(cells["time"])
                when.append(Time(row.line, said, Period(_moment(cells["begins"]), _moment(cells["ends"]))))
                examples.append(_example(row, f'on:"{said}"'))
            case heads if heads == {"filter", "meaning"}:
                explained += [_code(key).removesuffix(":") for key in cells["filter"].split(", ")]
            case heads if heads == {"limit", "most"}:
                limits[cells["limit"]] = cells["most"]
            case heads:
                raise ValueError(f"line {row.line}: a table with {sorted(heads)} is not understood")
    unknown = {name for example in examples for name in example.finds} - {sample.name for sample in samples}
    if unknown:
        raise ValueError(f"no sample memory is called {sorted(unknown)}")
    return Page(samples, examples, when, explained, limits)


def _rows(text: str) -> Iterator[Row]:
    heads: list[str] | None = None
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if fenced or not line.lstrip().startswith("|"):
            if heads is not None and line.strip():
                raise ValueError(f"line {number}: a table ends with an empty line")
            heads = None
        elif not (line.startswith("| ") and line.endswith(" |")) and not _is_rule(line):
            raise ValueError(f"line {number}: a row is `| cell | cell |`")
        elif heads is None:
            heads = _cells(line)
        elif len(cells := _cells(line)) != len(heads):
            raise ValueError(f"line {number}: has {len(cells)} cells under {len(heads)} heads")
        elif not _is_rule(line):
            yield Row(number, dict(zip(heads, cells, strict=True)))


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"\|(?:-+\|)+", line) is not None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line[1:-1].split("|")]


def _code(cell: str) -> str:
    if not (len(cell) > 2 and cell[0] == cell[-1] == "`" and cell.count("`") == 2):
        raise ValueError(f"{cell!r} must be one text between backticks")
    return cell[1:-1]


def _example(row: Row, query: str) -> Example:
    cells = row.cells
    return Example(
        line=row.line,
        query=query,
        finds=() if cells["finds"] == "nothing" else tuple(cells["finds"].split(", ")),
        notes=tuple(map(_code, cells["note"].split("<br>"))) if cells.get("note") else (),
        did_you_mean=_code(cells["did you mean"]) if cells.get("did you mean") else None,
        spaces=tuple(cells["spaces"].split(", ")) if cells.get("spaces") else (),
    )


def _memory(cells: Mapping[str, str]) -> NewMemory:
    given: dict[str, Any] = dict(each.split(": ", 1) for each in cells["fields"].split("; ") if each)
    if "tags" in given:
        given["tags"] = tuple(given["tags"].split(", "))
    if "fact" in given:
        subject, predicate, object_, kind = given.pop("fact").split(" · ")
        given["facts"] = [NewFact(subject=subject, predicate=predicate, object=object_, type=kind)]
    if "importance" in given:
        given["importance"] = float(given["importance"])
    if "metadata" in given:
        key, value = given["metadata"].split("=")
        given["metadata"] = {key: json.loads(value)}
    return NewMemory(text=cells["text"], created=_moment(cells["created"]), **given)


def _moment(cell: str) -> datetime | None:
    return datetime.fromisoformat(cell).replace(tzinfo=UTC) if cell else None


TEXT = PAGE.read_text("utf-8")
READ = read_page(TEXT)

# ---------------------------------------------------------------- running it


def _engine(store: Store, embedder: Embedder | None, *, space: str = "default", limits: Limits = LIMITS) -> Nacre:
    """Without the recall log: an example is not to move the scores of the next."""
    numbers = iter(range(100))

    def numbered(_: datetime, count: int) -> list[str]:
        return [f"{next(numbers):02}" for _ in range(count)]

    return Nacre(store, embedder, space=space, limits=limits, zone=UTC, log=False, clock=lambda: NOW, make_ids=numbered)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the memories of the page; each has its place in their table as its id."""
    path = tmp_path_factory.mktemp("page") / "memories.db"
    with _engine(SqliteStore(path), None) as memory:
        memory.remember_many([sample.memory for sample in READ.samples])
    return path


@pytest.fixture(scope="module")
def library(filled: Path) -> Iterator[Nacre]:
    with _engine(SqliteStore(filled), None) as memory:
        yield memory


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch, filled: Path) -> Cli:
    """The command line on that store, in the zone and at the moment of the page."""
    monkeypatch.setenv("NACRE_STORE", str(filled))
    monkeypatch.setenv("NACRE_EMBEDDER", "none")

    def opened(
        store: Store, embedder: Embedder | None, *, space: str, limits: Limits, zone: None, **_usual: object
    ) -> Nacre:
        assert zone is None  # the system's, which nobody knows
        return _engine(store, embedder, space=space, limits=limits)

    monkeypatch.setattr(factory, "Nacre", opened)
    return cli


def _named(result: SearchResult) -> tuple[str, ...]:
    return tuple(READ.samples[int(hit.id)].name for hit in result.hits)


EXAMPLES = [pytest.param(each, id=f"line {each.line}: {each.query}") for each in READ.examples]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_so(example: Example, library: Nacre, cli: Cli) -> None:
    result = library.search(
        example.query, mode="keyword", limit=20, where=Filter(spaces=example.spaces), match=example.match
    )
    assert _named(result) == example.finds
    assert result.notes == example.notes
    assert (result.did_you_mean and result.did_you_mean.query) == example.did_you_mean
    listed = [hit.memory.created for hit in result.hits if hit.match_type == "filter"]
    assert listed == sorted(listed, reverse=True)
    spaces = [option for space in example.spaces for option in ("--in-space", space)]
    words = ["--all-words"] if example.match == "all" else []
    answer = cli("search", "--json", "--mode", "keyword", "--limit", "20", *spaces, *words, "--", example.query)
    assert answer.code == 0
    assert answer.json == json.loads(encode.dumps(encode.search_result(result)))


@pytest.mark.parametrize("time", [pytest.param(each, id=each.text) for each in READ.times])
def test_a_time_is_this_one(time: Time) -> None:
    assert dates.parse_period(time.text, NOW, UTC) == time.period
    assert dates.parse_period(time.text.replace(" ", "-"), NOW, UTC) == time.period
    created = [sample.memory.created for sample in READ.samples if sample.memory.space is None]
    inside = [
        each
        for each in created
        if each is not None
        and (time.period.start is None or each >= time.period.start)
        and (time.period.end is None or each < time.period.end)
    ]
    (example,) = (each for each in READ.examples if each.line == time.line)
    assert len(example.finds) == len(inside)


# ---------------------------------------------------------------- what the page has to have


def test_the_moment_is_on_the_page() -> None:
    assert NOW_ON_THE_PAGE in " ".join(TEXT.split())


def test_there_is_an_example_of_every_operator() -> None:
    found = [each for example in READ.examples for each in lexer.lex(lexer.normalise(example.query), filters.KEYS)[0]]
    roles = {"word", "loose", "prefix", "phrase", "field", "near", "(", ")", "AND", "OR", "NOT"}
    assert {each.role for each in found} == roles
    assert {each.role for each in found if each.minus} == {"word", "prefix", "phrase", "field", "near"}
    assert any(each.role == "NOT" and each.text == "-" for each in found)  # before a group
    assert {each.distance for each in found if each.role == "near"} > {0, lexer.NEAR_DEFAULT}
    assert {part.role for each in found for part in each.operands} == {"word", "prefix", "phrase"}


def test_there_is_an_example_of_every_filter() -> None:
    found = [
        each
        for example in READ.examples
        for each in lexer.lex(lexer.normalise(example.query), filters.KEYS)[0]
        if each.key
    ]
    assert {each.key for each in found} == filters.KEYS
    assert set(READ.filters) == filters.KEYS
    assert {part for each in found if each.key == "has" for part in each.text.split(",")} >= set(get_args(Part))
    assert any("," in each.text for each in found)
    assert any('"' in each.text for each in found)
    assert any("*" in each.text and "?" in each.text for each in found if each.key == "source")


@pytest.mark.parametrize(
    "form", {id(each): each for some in ENGLISH.forms.values() for each in some}.values(), ids=lambda form: form.pattern
)
def test_there_is_an_example_of_every_form_of_time(form: Form) -> None:
    assert any(
        single.form is form
        for time in READ.times
        for phrase in phrases(time.text, 0, ENGLISH)
        if phrase.end == len(time.text)
        for single in (phrase.first, phrase.second)
        if single
    )


def test_the_numbers_are_those_of_the_code() -> None:
    expected = {
        "characters of a query": LIMITS.query_chars_max,
        "words and operators that are read": lexer.LEXEMES_MAX,
        "words that are looked up": TERMS_MAX,
        "parentheses inside each other": lexer.DEPTH_MAX,
        "words of all phrases together": PHRASE_WORDS_MAX,
        "words between, in NEAR": lexer.NEAR_MAX,
        "words and phrases of one NEAR": lexer.NEAR_OPERANDS_MAX,
        "NEAR groups": lexer.NEARS_MAX,
        "values of one filter": filters.VALUES_MAX,
        "wildcards of one source": WILDCARDS_MAX,
    }
    assert READ.limits == {name: f"{most:,}" for name, most in expected.items()}
    assert f"`recipe.temporal_weight`, {Recipe().temporal_weight:g} unless" in TEXT


def test_the_grammar_has_every_key() -> None:
    rule = re.search(r"^key +=([^;]*);", TEXT, re.MULTILINE)
    assert rule is not None
    assert set(re.findall(r'"([\w-]+)"', rule[1])) == filters.KEYS


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("| question | finds |\n|---|---|\n| `a` | nothing |", "not understood"),
        ("| query | finds | else |\n|---|---|---|\n| `a` | nothing | |", "not understood"),
        ("| query | finds |\n|---|---|\n| `a` | nobody |", "no sample memory"),
        ("| query | finds |\n|---|---|\n| `a` | |", "no sample memory"),
        ("| query | finds |\n|---|---|\n| a | nothing |", "between backticks"),
        ("| query | finds |\n|---|---|\n| `a` or `b` | nothing |", "between backticks"),
        ("| query | finds |\n|---|---|\n| `a | b` | nothing |", "3 cells under 2 heads"),
        ("| query | finds |\n|---|---|\n| `a` | nothing", "a row is"),
        ("| query | finds |\n|---|---|\n`a` is a query", "ends with an empty line"),
        ("| time | begins | ends | finds |\n|---|---|---|---|\n| `7d` | soon | | nothing |", "isoformat"),
    ],
)
def test_a_row_that_is_not_understood_fails(page: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_page(page)
