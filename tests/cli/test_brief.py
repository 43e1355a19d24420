"""What agents get: hits in a few words each, contexts, and the same through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from command_line import Cli
from nacre import Belief, DidYouMean, Fact, Filter, Hit, Memory, Nacre, NewFact, Reason, SearchResult, Successor
from nacre.analysis.highlight import HighlightTerms, shorten, snippet
from nacre.analysis.quoting import HEADER
from nacre.cli import render
from nacre.embedders.hashing import Hashing
from nacre.ranking.scoring import briefly
from nacre.serialization import encode
from nacre.types.facts import Entity
from nacre.types.memory import Forgotten, Json, Span, Update
from nacre.types.search import Snippet
from nacre.types.views import Context, Fetched, LeftOut, Quoted, Timeline, TimelineEntry

MARCH = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)

# ---------------------------------------------------------------- a hit in a few words

LEXICAL = Reason("lexical", "add", 0.00806, {"bm25": 6.12, "rank": 2, "weight": 0.5, "k": 60})
SEMANTIC = Reason("semantic", "add", 0.00813, {"cosine": 0.624, "rank": 12, "weight": 0.5, "k": 60})


def a_hit(text: str, shown: Snippet | None = None, **fields: Any) -> Hit:
    memory = Memory(
        id="m1", space="default", kind="note", namespace="general", text=text, summary=None, tags=(), source=None,
        session=None, position=None, metadata={}, importance=0.5, created=MARCH, updated=MARCH,
        happened=fields.pop("happened", None),
    )  # fmt: skip
    values: dict[str, Any] = {
        "memory": memory, "score": 0.0178912, "match_type": "hybrid", "bm25": 6.12, "bm25_rank": 2, "cosine": 0.624,
        "similarity": 0.812, "cosine_rank": 12, "snippet": shown or snippet(text, HighlightTerms({}), None),
        "reasons": (LEXICAL, SEMANTIC), "relevance": 0.98765, **fields,
    }  # fmt: skip
    return Hit(**values)


def brief_hit(hit: Hit) -> dict[str, Any]:
    encoded: Any = encode.brief(SearchResult((hit,)))
    only: dict[str, Any] = encoded["hits"][0]
    return only


def _facts(*stated: tuple[str, float, str | None]) -> tuple[Belief, ...]:
    usual: dict[str, Any] = {
        "memory_id": "m1", "space": "default", "subject": "Ada", "predicate": "lives in", "type": "location",
        "confidence": 1.0, "decay_rate": 0.03, "reinforced": MARCH, "touched": MARCH, "valid_from": MARCH,
        "valid_to": None, "quote": None, "relation": False, "single": True, "origin": "given",
    }  # fmt: skip
    return tuple(
        Belief(Fact(**usual, id=f"f{at}", object=name, superseded_by=by), effective)
        for at, (name, effective, by) in enumerate(stated)
    )


def test_facts_are_shown_where_they_are_asked_for() -> None:
    beliefs = _facts(("Rome\n2", 0.1, "f1"), ("Oslo", 0.8349, None))
    hit = a_hit("tea", facts=tuple(each.fact for each in beliefs), effective_confidence=0.46745)
    with_facts = replace(hit, beliefs=beliefs)
    assert not {"facts", "effective_confidence"} & brief_hit(hit).keys()
    assert brief_hit(with_facts)["facts"] == ["Ada lives in Rome 2 (0.10, superseded)", "Ada lives in Oslo (0.83)"]
    assert brief_hit(with_facts)["effective_confidence"] == 0.47
    assert not {"facts", "effective_confidence"} & brief_hit(replace(hit, beliefs=())).keys()
    full = encode.hit(hit), encode.hit(with_facts)
    assert [each["effective_confidence"] for each in full] == [0.46745, 0.46745]
    assert full[0]["facts"] == [encode.fact(each.fact) for each in beliefs]
    assert full[1]["facts"] == [encode.belief(each) for each in beliefs]
    assert encode.hit(replace(hit, beliefs=()))["facts"] == []

    def lines(shown: Hit, *, brief: bool) -> list[str]:
        render_lines = render.brief_lines if brief else render.search_lines
        return ["".join(text for text, _ in line) for line in render_lines(SearchResult((shown,)))]

    assert len(lines(hit, brief=False)) == 2
    assert lines(with_facts, brief=False)[2:] == [
        "        fact: Ada · lives in · Rome 2  location  confidence 0.10  superseded",
        "        fact: Ada · lives in · Oslo  location  confidence 0.83",
    ]
    assert len(lines(hit, brief=True)) == 1
    assert lines(with_facts, brief=True)[1:] == [
        "   Ada lives in Rome 2 (0.10, superseded)",
        "   Ada lives in Oslo (0.83)",
    ]


def test_a_hit_by_hand() -> None:
    assert encode.brief(SearchResult((a_hit("tea\n  is   hot"),))) == {
        "hits": [
            {
                "id": "m1",
                "date": "2026-03-01",
                "relevance": 0.99,
                "score": 0.0179,
                "snippet": "tea is hot",
                "why": "words 2, meaning 12",
            }
        ]
    }


def test_only_what_there_is_to_say_is_said() -> None:
    assert encode.brief(SearchResult(())) == {"hits": []}
    delivered = brief_hit(a_hit("tea", delivered=True))
    assert delivered["delivered"] is True
    assert "delivered" not in brief_hit(a_hit("tea"))
    said = SearchResult((), notes=("a note",), did_you_mean=DidYouMean("tea pot", {"pto": ("pot",)}), receipt="r1")
    assert encode.brief(said) == {"hits": [], "notes": ["a note"], "did_you_mean": "tea pot"}


def test_hits_that_do_not_answer_say_so() -> None:
    unlikely = SearchResult((a_hit("tea"),), answerable=False)
    line = "none of these is likely to answer the question"
    assert encode.brief(unlikely)["answerable"] is False
    assert "answerable" not in encode.brief(SearchResult((a_hit("tea"),)))
    for lines in (render.search_lines, render.brief_lines):
        assert [text for each in lines(unlikely) for text, _ in each][-1] == line
        assert line not in [text for each in lines(SearchResult((a_hit("tea"),))) for text, _ in each]
        assert line not in [text for each in lines(SearchResult((), answerable=False)) for text, _ in each]


def test_what_was_superseded_says_by_what() -> None:
    stepped = Reason("superseded", "multiply", 0.9, {})
    hit = a_hit("tea", reasons=(LEXICAL, stepped), superseded_by=Successor("m2", MARCH))
    assert brief_hit(hit)["superseded_by"] == {"id": "m2", "since": "2026-03-01"}
    assert brief_hit(hit)["why"] == "words 2"
    assert encode.hit(hit)["superseded_by"] == {"id": "m2", "since": "2026-03-01T12:00:00Z"}
    assert encode.hit(a_hit("tea"))["superseded_by"] is None
    assert "superseded_by" not in brief_hit(a_hit("tea"))


def test_importance_is_shown_where_it_is_not_the_usual() -> None:
    """Briefly, only where it is high."""
    usual = a_hit("tea")
    little = a_hit("tea", memory=replace(usual.memory, importance=0.6))
    assert "importance" not in brief_hit(little)
    assert any("importance 0.6" in text for line in render.search_lines(SearchResult((little,))) for text, _ in line)
    important = a_hit("tea", memory=replace(usual.memory, importance=0.9))
    assert brief_hit(important)["importance"] == encode.hit(important)["importance"] == 0.9
    assert "importance" not in brief_hit(usual)
    assert encode.hit(usual)["importance"] == 0.5
    for lines in (render.search_lines, render.brief_lines):
        said = ["".join(text for text, _ in line) for line in lines(SearchResult((important, usual)))]
        assert [each.count("importance 0.9") for each in said if "m1" in each] == [1, 0]


def test_numbers_are_short() -> None:
    assert brief_hit(a_hit("tea", score=0.000123456, relevance=0.004))["score"] == 0.000123
    assert brief_hit(a_hit("tea", score=12.3456))["score"] == 12.3
    assert brief_hit(a_hit("tea", score=0.0))["score"] == 0.0
    assert brief_hit(a_hit("tea", relevance=0.004))["relevance"] == 0.0
    assert brief_hit(a_hit("tea", relevance=0.995001))["relevance"] == 1.0
    assert brief_hit(a_hit("tea", relevance=None))["relevance"] is None


def test_the_date_is_when_it_happened() -> None:
    assert brief_hit(a_hit("tea", happened=MARCH - 400 * DAY))["date"] == "2025-01-25"
    assert brief_hit(a_hit("tea", happened=datetime(1, 1, 1, tzinfo=UTC)))["date"] == "0001-01-01"


WORDY = " ".join(f"word{number:03d}" for number in range(100))  # 7 letters and a space each


def test_a_snippet_says_where_it_is_cut() -> None:
    begin = brief_hit(a_hit(WORDY))["snippet"]
    assert begin == f"{WORDY[:95]}…"
    middle = snippet(WORDY, HighlightTerms({}), Span(400, 500))
    cut = brief_hit(a_hit(WORDY, middle))["snippet"]
    assert (cut[0], cut[-1]) == ("…", "…")
    assert cut.strip("…") in WORDY
    end = Snippet(WORDY[-39:], (), len(WORDY) - 39)
    assert brief_hit(a_hit(WORDY, end))["snippet"] == f"…{WORDY[-39:]}"
    assert brief_hit(a_hit(WORDY[:95]))["snippet"] == WORDY[:95]


def test_blanks_are_not_missed() -> None:
    text = f"\n\n{WORDY[:95]}\n\n\n\n\n\n\n\n\n"
    assert brief_hit(a_hit(text))["snippet"] == WORDY[:95]


def test_no_more_than_three_relations(tmp_path: Path) -> None:
    with nacre.open(tmp_path / "memories.db", embedder="none") as memory:
        for number in range(5):
            known = NewFact(subject="Ada", predicate="knows", object=f"Bob{number}", relation=True)
            memory.remember(f"note {number}", facts=[known], extract=False)
        result = memory.search("whom Ada knows")
        assert len(result.relations) == 5
        shown = encode.brief(result)["relations"]
        assert shown == [f"Ada knows {each.fact.object}" for each in result.relations[:3]]


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ((LEXICAL,), "words 2"),
        ((LEXICAL, SEMANTIC, Reason("recency", "multiply", 1.1, {"days": 0})), "words 2, meaning 12, recency +10%"),
        ((LEXICAL, Reason("confidence", "multiply", 0.82, {"effective": 0.1})), "words 2, confidence -18%"),
        ((LEXICAL, Reason("recency", "multiply", 1.019, {"days": 4})), "words 2"),
        ((LEXICAL, Reason("usage", "multiply", 0.981, {})), "words 2"),
        (
            (Reason("filter", "add", 0.01, {"rank": 3}), Reason("temporal", "add", 0.01, {"weight": 1})),
            "filter 3, time",
        ),
        ((LEXICAL, Reason("superseded", "multiply", 0.9, {})), "words 2, superseded"),
        ((Reason("successor", "add", 0.01, {}),), "successor"),
        ((Reason("relation", "add", 0.01, {"rank": 1, "bm25": 1.0}),), "relation 1"),
        ((), ""),
    ],
)
def test_reasons_in_a_few_words(reasons: tuple[Reason, ...], said: str) -> None:
    assert briefly(reasons) == said


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": None, "b": "", "c": [], "d": {}, "e": 0, "f": False}, {"c": [], "d": {}, "e": 0, "f": False}),
        ({"a": {"b": {"c": None}}, "d": {"e": [], "f": 1, "g": 0.0}}, {"a": {}, "d": {"f": 1, "g": 0.0}}),
        ({"a": [{"b": None}, {"c": 1}, None, ""]}, {"a": [{}, {"c": 1}, None, ""]}),
        ({}, {}),
    ],
)
def test_what_says_nothing_is_left_out_of_objects(value: dict[str, Json], kept: dict[str, Json]) -> None:
    assert encode.without_empty(value) == kept


def test_a_context_in_json() -> None:
    packed = Context(
        "text", 7, (Quoted("m1", 0.5, True, ("m0",)), Quoted("m2", 0.25, False)), (LeftOut("m0", "superseded"),),
        ("a note",), "r1",
    )  # fmt: skip
    assert encode.context(packed) == {
        "text": "text",
        "tokens": 7,
        "quoted": [
            {"id": "m1", "relevance": 0.5, "excerpt": True, "instead_of": ["m0"]},
            {"id": "m2", "relevance": 0.25, "excerpt": False, "instead_of": []},
        ],
        "outcome": "answered",
        "left_out": [{"id": "m0", "why": "superseded"}],
        "notes": ["a note"],
        "receipt": "r1",
    }


# ---------------------------------------------------------------- a shorter snippet


@st.composite
def long_snippets(draw: st.DrawFn) -> Snippet:
    words = draw(
        st.lists(
            st.sampled_from(["tea", "is", "naïve", "cafe\u0301", "公园", "👩‍👧", "x" * 70, "🇩🇪🇫🇷", "a", "kettle"]),
            min_size=1,
            max_size=40,
        )
    )
    text, spans = "", []
    for word in words:
        start = len(text)
        text += word
        if draw(st.integers(0, 4)) == 0:
            spans.append(Span(start, len(text)))
        text += draw(st.sampled_from([" ", " ", "\n", "  "]))
    return Snippet(text, tuple(spans), draw(st.sampled_from([0, 1, 500])))


@pytest.mark.slow
@given(long_snippets(), st.integers(1, 200))
def test_a_shorter_snippet_is_a_part_of_the_longer(long: Snippet, chars: int) -> None:
    short = shorten(long, chars)
    at = short.start - long.start
    assert long.text[at : at + len(short.text)] == short.text
    places = [Span(at + span.start, at + span.end) for span in short.highlights]
    assert all(at <= place.start < place.end <= at + len(short.text) for place in places)
    assert [place for place in long.highlights if place in places] == places
    longest = max((len(word) for word in long.text.split()), default=0)
    assert len(short.text) <= max(chars, longest)
    if long.highlights:
        assert places
    if len(long.text) <= chars:
        assert short == long
    assert shorten(short, chars) == short or len(short.text) > chars


@pytest.mark.slow
@given(long_snippets(), st.integers(90, 200))
def test_a_shorter_snippet_has_whole_words(long: Snippet, chars: int) -> None:
    """Only very long ones may be cut."""
    short = shorten(long, chars)
    assert {word for word in short.text.split() if "xx" not in word} <= set(long.text.split())


def test_a_shorter_snippet_has_the_most_of_the_words_asked_for() -> None:
    text = "tea " + "filler " * 20 + "kettle and tea " + "filler " * 20
    at = text.index("kettle")
    long = Snippet(text, (Span(0, 3), Span(at, at + 6), Span(at + 11, at + 14)), 100)
    short = shorten(long, 40)
    assert [short.text[span.start : span.end] for span in short.highlights] == ["kettle", "tea"]
    assert short.start == 100 + text.index(short.text)


# ---------------------------------------------------------------- through the command line


@pytest.fixture
def filled(path: Path) -> list[str]:
    """Ids of what is in the store, by another door."""
    with nacre.open(path, embedder=Hashing()) as memory:
        return [
            memory.remember(text, created=MARCH + number * DAY, tags=["house"] if number else []).id
            for number, text in enumerate(
                ["Ada lives in London", "Ada lives in Paris", f"The kettle of Ada {'is old and blue ' * 50}"]
            )
        ]


def unlogged(path: Path, asked: Callable[[Nacre], Any]) -> Any:
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        return asked(memory)


def test_a_brief_search_is_what_agents_get(cli: Cli, filled: list[str], path: Path) -> None:
    expected: Any = encode.brief(unlogged(path, lambda memory: memory.search("old kettle")))
    answer = cli("search", "old kettle", "--brief", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == expected
    assert "receipt" not in json.loads(answer.out)
    first = expected["hits"][0]
    assert first["id"] == filled[2]
    lines = cli("search", "old kettle", "--brief").out.splitlines()
    assert first["relevance"] == 1
    assert lines[0] == f"{first['id']}  2026-03-03  >99%  {first['snippet']}"
    assert len(lines) == len(expected["hits"])
    explained = cli("search", "old kettle", "--brief", "--why").out.splitlines()
    assert explained[0] == f"{lines[0]}  ({first['why']}; score {first['score']:g})"


def test_a_brief_search_that_finds_nothing(cli: Cli, filled: list[str]) -> None:
    assert filled
    assert json.loads(cli("search", "zebra", "--brief", "--json").out)["hits"] == []
    assert cli("search", "zebra", "--brief").out.startswith("nothing found")


def test_a_brief_search_says_what_may_be_meant(cli: Cli, filled: list[str]) -> None:
    assert filled
    assert json.loads(cli("search", "kettel", "--brief", "--json").out)["did_you_mean"] == "kettle"
    assert "did you mean: kettle Ada" in cli("search", "kettel Ada", "--brief").out


def test_what_was_given_is_left_out_on_request(cli: Cli, filled: list[str]) -> None:
    def found(*more: str) -> list[tuple[str, bool]]:
        hits = json.loads(cli("search", "kettle", "--json", "--asked-in", "s", "--mode", "keyword", *more).out)["hits"]
        return [(hit["id"], hit["delivered"]) for hit in hits]

    assert found() == [(filled[2], False)]
    assert found() == [(filled[2], True)]
    answer = cli("search", "kettle", "--json", "--asked-in", "s", "--mode", "keyword", "--omit-delivered")
    assert json.loads(answer.out)["hits"] == []
    assert "1 that this session was given before are left out" in json.loads(answer.out)["notes"]
    unknown = cli("search", "kettle", "--omit-delivered")
    assert unknown.code == 0
    assert "note: `omit_delivered` has no effect without a session" in unknown.out


def test_a_context_is_its_text_alone(cli: Cli, filled: list[str], path: Path) -> None:
    expected = unlogged(path, lambda memory: memory.context("where does Ada live?", min_score=0.0))
    assert [each.id for each in expected.quoted][:1] == [filled[1]]
    answer = cli("context", "where does Ada live?", "--min-score", "0")
    assert (answer.code, answer.out, answer.err) == (0, f"{expected.text}\n", "")
    assert answer.out.startswith(HEADER)


def test_a_context_in_json_is_that_of_the_library(cli: Cli, filled: list[str], path: Path) -> None:
    assert filled
    options = ("--budget", "150", "--min-score", "0", "--tag", "house", "--json")
    answer = json.loads(cli("context", "where", "does", "Ada", "live?", *options).out)
    where = Filter(tags_all=["house"])
    expected = unlogged(path, lambda memory: memory.context("where does Ada live?", 150, min_score=0.0, where=where))
    receipt = answer.pop("receipt")
    assert answer == {name: value for name, value in encode.context(expected).items() if name != "receipt"}
    with nacre.open(path, embedder="none") as memory:
        assert memory.receipts()[0].id == receipt


def test_a_session_is_given_nothing_twice(cli: Cli, filled: list[str]) -> None:
    def given(*more: str) -> Any:
        return json.loads(cli("context", "Ada London", "--min-score", "0", "--json", *more).out)

    first = given("--asked-in", "s")
    assert filled[1] in [each["id"] for each in first["quoted"]]
    again = given("--asked-in", "s")
    assert {"id": filled[1], "why": "delivered"} in again["left_out"]
    assert filled[1] not in [each["id"] for each in again["quoted"]]
    assert given("--asked-in", "s", "--repeat")["text"] == first["text"]
    assert given("--asked-in", "t")["text"] == first["text"]


def test_a_context_as_of_another_time(cli: Cli, filled: list[str]) -> None:
    answer = cli("context", "Ada lives", "--as-of", "2026-03-02T00:00:00Z", "--min-score", "0", "--json")
    assert [each["id"] for each in json.loads(answer.out)["quoted"]] == [filled[0]]


def test_a_context_of_nothing_says_so(cli: Cli, filled: list[str]) -> None:
    assert filled
    answer = cli("context", "zebra", "-house")
    assert (answer.code, answer.out) == (
        0,
        "Nothing is known about this: no memory answers it. A search shows the nearest ones.\n",
    )
    assert cli("context", "zebra", "-house", "--json").json["outcome"] == "nothing"
    tiny = cli("context", "zebra", "-house", "--budget", "0")
    assert (tiny.code, tiny.out, tiny.err) == (0, "", f"note: {answer.out}")
    assert cli("context", "zebra", "-house", "--budget", "0", "--json").err == ""


def test_a_context_prints_its_notes_beside_the_text(cli: Cli) -> None:
    cli("remember", "green tea is in the cupboard", "--embedder", "none")
    answer = cli("context", "green tea", "--min-score", "0")
    assert answer.out.startswith(HEADER)
    assert answer.err == "note: 1 memory has no vectors yet: run `nacre reembed`\n"


def test_a_context_says_what_is_given_already_and_what_does_not_fit(cli: Cli) -> None:
    tea = cli("remember", "green tea is in the cupboard", "--json").json["id"]
    asked = ("context", "green tea", "--min-score", "0")
    assert tea in cli(*asked, "--asked-in", "s").out
    assert cli(*asked, "--asked-in", "s").out == (
        f"Already given to this session: {tea}. Ask with repeat to get it again, or get it by id.\n"
    )
    assert cli(*asked, "--asked-in", "s", "--json").json["outcome"] == "delivered"
    small = ("--budget", "30")
    assert cli(*asked, *small).out == (
        f"The budget is too small for any memory that was found: {tea}. Ask with more tokens.\n"
    )
    assert cli(*asked, *small, "--json").json["outcome"] == "budget"
    tiny = cli(*asked, "--budget", "3")
    assert (tiny.out, tiny.err) == (
        "",
        f"note: The budget is too small for any memory that was found: {tea}. Ask with more tokens.\n",
    )
    tiny = cli(*asked, "--asked-in", "s", "--budget", "3")
    assert (tiny.out, tiny.err) == (
        "",
        f"note: Already given to this session: {tea}. Ask with repeat to get it again, or get it by id.\n",
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--budget", "-1"), "budget_tokens: is -1"),
        (("--min-score", "2"), "min_score: is 2.0"),
        (("--as-of", "whenever"), "as_of: 'whenever' is not a time"),
        (("--asked-in", ""), "session: is blank"),
    ],
)
def test_a_bad_wish_is_named(cli: Cli, filled: list[str], options: tuple[str, ...], says: str) -> None:
    assert filled
    answer = cli("context", "tea", *options)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err


def test_facets_without_a_query_count_everything(cli: Cli, filled: list[str]) -> None:
    counted = json.loads(cli("facets", "--json").out)
    assert (counted["total"], counted["tags"], counted["notes"]) == (3, {"house": 2}, [])
    assert json.loads(cli("facets", "--tag", "house", "--json").out)["total"] == 2
    assert cli("facets").out.startswith("3 memories")
    assert len(filled) == 3


def test_a_space_of_a_folder(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: list[str], path: Path
) -> None:
    """Whatever folder of a project a command is called in, it works in one space, and another project in another."""
    assert filled
    for project in ("one", "two"):
        (tmp_path / project / ".git").mkdir(parents=True)
        (tmp_path / project / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one" / "src")
    assert cli("remember", "tea of project one", "--space", "folder:.").code == 0
    monkeypatch.setenv("NACRE_SPACE", "folder:deep")
    assert "project one" in cli("search", "tea", "--mode", "keyword").out.replace("[", "").replace("]", "")
    monkeypatch.chdir(tmp_path / "two")
    monkeypatch.setenv("NACRE_SPACE", "folder:.")
    assert json.loads(cli("search", "tea", "--json").out)["hits"] == []
    shown = json.loads(cli("config", "--json").out)["space"]
    assert shown["value"].startswith("two-")
    assert shown["source"] == "environment NACRE_SPACE"
    with nacre.open(path, embedder="none") as memory:
        assert sorted(memory.stats().spaces)[1].startswith("one-")
    blank = cli("stats", "--space", "folder:")
    assert (blank.code, "--space: must be a text that is not blank" in blank.err) == (2, True)


# ---------------------------------------------------------------- what was superseded, on the command line


def test_a_superseded_memory_says_by_what_at_the_command_line(cli: Cli) -> None:
    port = cli("remember", "the gateway listens on port 8080", "--created", "2026-03-01T12:00:00Z", "--json").json["id"]
    new = cli(
        "remember", "the gateway listens on port 9090",
        "--created", "2026-03-05T12:00:00Z", "--supersedes", port, "--json",
    ).json["id"]  # fmt: skip
    found = cli("search", "gateway port", "--json").json["hits"]
    assert [each["id"] for each in found] == [new, port]
    assert [each["superseded_by"] for each in found] == [None, {"id": new, "since": "2026-03-05T12:00:00Z"}]
    assert found[1]["relevance"] < found[0]["relevance"]
    lines = cli("search", "gateway port").out.splitlines()
    assert [line.strip() for line in lines if "superseded" in line] == [f"superseded by {new} since 2026-03-05"]
    brief = cli("search", "gateway port", "--brief").out.splitlines()
    assert (f"  superseded by {new} since 2026-03-05  " in brief[0], brief[1].startswith(port)) == (False, True)
    assert f"  superseded by {new} since 2026-03-05  " in brief[1]
    assert "superseded" not in cli("search", "what was the gateway port before?").out


def test_why_says_what_a_superseded_memory_is_below(cli: Cli) -> None:
    port = cli("remember", "the gateway listens on port 8080", "--created", "2026-03-01T12:00:00Z", "--json").json["id"]
    new = cli("remember", "the gateway listens on port 9090", "--supersedes", port, "--tag", "new", "--json").json["id"]
    since = cli("get", new, "--json").json["memories"][0]["created"]
    below = f"below, because {new} superseded it on {datetime.fromisoformat(since).astimezone().date()}"
    explained = cli("why", port, "gateway port", "--json").json
    assert (explained["rank"], explained["below"]) == (2, below)
    assert cli("why", port, "gateway port").out.splitlines()[-1].strip() == below
    assert cli("why", new, "gateway port", "--json").json["below"] is None
    # Where the search may not find the newer one, the older stands where it would stand anyway.
    alone = cli("why", port, "gateway port -tag:new", "--json").json
    assert (alone["rank"], alone["below"], alone["hit"]["superseded_by"]["id"]) == (1, None, new)


# ---------------------------------------------------------------- the timeline and memories in full

NOVEMBER = datetime(2026, 11, 16, 22, 30, tzinfo=UTC)


def entry(number: int, summary: str, at: datetime = NOVEMBER, **fields: Any) -> TimelineEntry:
    usual: dict[str, Any] = {"space": "s", "kind": "note", "namespace": "general", "tags": ("a",), "session": None}
    return TimelineEntry(id=f"m{number}", created=at, summary=summary, position=None, **usual | fields)


def test_a_timeline_is_listed_by_month_and_day() -> None:
    """Worked by hand: the days are those of the zone, and only what sets a memory apart is marked."""
    entries = (
        entry(1, "Tea at four"),
        entry(2, "Call me Max", kind="preference", pinned=True),
        entry(3, "The party", happened=datetime(2026, 11, 1, 12, tzinfo=UTC), kind="episode"),
        entry(4, "Today's walk", happened=NOVEMBER),
        entry(5, "two\nlines", datetime(2026, 10, 31, 23, 30, tzinfo=UTC), anchor=True),
        entry(6, "An old one", datetime(2026, 10, 31, 9, tzinfo=UTC)),
    )
    page = Timeline(entries, "next page", {"2026-11": 4, "2026-10": 2})
    assert encode.brief_timeline(page, UTC) == {
        "entries": {
            "2026-11": [
                "16 m1 Tea at four",
                "16 m2 [pinned, preference] Call me Max",
                "16 m3 [2026-11-01] The party",
                "16 m4 Today's walk",
            ],
            "2026-10": ["31 m5 two lines", "31 m6 An old one"],
        },
        "next": "next page",
        "histogram": {"2026-11": 4, "2026-10": 2},
        "anchor": "m5",
    }
    east = encode.brief_timeline(page, timezone(timedelta(hours=2)))["entries"]
    assert east == {
        "2026-11": [
            "17 m1 Tea at four",
            "17 m2 [pinned, preference] Call me Max",
            "17 m3 [2026-11-01] The party",
            "17 m4 Today's walk",
            "1 m5 two lines",
        ],
        "2026-10": ["31 m6 An old one"],
    }
    assert encode.brief_timeline(Timeline((), None), UTC) == {"entries": {}}


def test_a_timeline_of_many_months_is_listed_by_year() -> None:
    months = [(2026 - at // 12, 12 - at % 12) for at in range(13)]
    entries = [
        entry(at, "Tea at four", datetime(year, month, 3, tzinfo=UTC)) for at, (year, month) in enumerate(months)
    ]
    year = cast("dict[str, list[str]]", encode.brief_timeline(Timeline(tuple(entries[:12]), None), UTC)["entries"])
    assert [*year] == [f"2026-{month:02}" for month in range(12, 0, -1)]
    assert encode.brief_timeline(Timeline(tuple(entries), None), UTC)["entries"] == {
        "2026": [f"{month:02}-03 m{12 - month} Tea at four" for month in range(12, 0, -1)],
        "2025": ["12-03 m12 Tea at four"],
    }


def test_a_mark_leaves_room_for_what_happened() -> None:
    """In a script without spaces, the one after the mark is not a place to cut."""
    long = "金曜日の夜にデータベースを新しいサーバーへ移行することに決めました。"
    page = Timeline(tuple(entry(at, long, pinned=True) for at in range(50)), None)
    lines = cast("dict[str, list[str]]", encode.brief_timeline(page, UTC)["entries"])["2026-11"]
    assert {line.split(" ", 2)[2] for line in lines} == {"[pinned] 金曜日の夜にデータベース…"}


@pytest.mark.parametrize(
    ("chars", "line"),
    [(60, "[pinned] word word word word word word word…"), (40, "[pinned] word word word word…"), (24, "word…")],
)
def test_a_page_is_cut_until_it_costs_little(chars: int, line: str) -> None:
    """A counter that lets a line of a full page have so many characters. Without its summary it has 9 and the marks."""
    page = Timeline(tuple(entry(at, "word " * 20, pinned=True) for at in range(10, 60)), None)
    found = encode.brief_timeline(page, UTC, lambda text: len(text) * 1_450 // (50 * chars))
    lines = cast("dict[str, list[str]]", found["entries"])["2026-11"]
    assert lines == [f"16 m{at} {line}" for at in range(10, 60)]
    assert len(encode.dumps(found, indent=None)) <= 50 * (chars + 1)


@pytest.mark.parametrize("text", ["word " * 100, "长" * 300, "неделя " * 60, "x" * 500])
@pytest.mark.parametrize(("many", "room"), [(1, 240), (7, 240), (25, 72), (50, 36), (200, 36)])
def test_lines_are_shorter_where_there_are_many(text: str, many: int, room: int) -> None:
    page = Timeline(tuple(entry(number, text) for number in range(many)), None)
    lines = cast("dict[str, list[str]]", encode.brief_timeline(page, UTC)["entries"])["2026-11"]
    assert len(lines) == many
    for line in lines:
        _, _, said = line.split(" ", 2)
        assert said.endswith("…")
        assert text.startswith(said[:-1])
        assert room // 2 < len(said[:-1].encode()) <= room


def test_memories_in_full_without_what_is_usual() -> None:
    fact = Fact(
        id="f1", memory_id="m1", space="s", subject="Ada", predicate="lives in", object="Rome", type="location",
        confidence=0.876, decay_rate=0.1, reinforced=NOVEMBER, touched=NOVEMBER, valid_from=NOVEMBER, valid_to=None,
        superseded_by=None, quote="lives in Rome", relation=False, single=True, origin="extracted",
    )  # fmt: skip
    past = replace(fact, id="f0", object="Oslo", valid_to=NOVEMBER + timedelta(days=1), superseded_by="f1")
    usual: dict[str, Any] = {"space": "s", "kind": "note", "namespace": "general", "tags": (), "metadata": {}}
    usual |= {"summary": None, "source": None, "session": None, "position": None, "importance": 0.5}
    plain = Memory(id="m0", text="Tea at four", created=NOVEMBER, updated=NOVEMBER, **usual)
    rich = Memory(
        id="m1", text="Ada lives in Rome", created=NOVEMBER.replace(microsecond=5), pinned=True, origin="o",
        updated=NOVEMBER + timedelta(hours=1), deleted=NOVEMBER + timedelta(hours=2), happened=NOVEMBER,
        facts=(past, fact), **usual | {"tags": ("home",), "importance": 0.9, "metadata": {"a": None}, "position": 0,
        "session": "talk"},
    )  # fmt: skip
    found = Fetched(
        (plain, rich), ("nobody",), {"m0": (), "m1": (Entity(name="Ada", space="s", type=None, aliases=("A",)),)},
        {"m0": (), "m1": (entry(7, "before"), entry(8, "after"))}, (Update("m1", "m0"),),
    )  # fmt: skip
    assert encode.brief_fetched(found, UTC) == {
        "memories": [
            {"id": "m0", "text": "Tea at four", "kind": "note", "namespace": "general",
             "created": "2026-11-16T22:30:00Z", "updated_by": ["m1"]},
            {"id": "m1", "text": "Ada lives in Rome", "kind": "note", "namespace": "general", "tags": ["home"],
             "session": "talk", "position": 0, "metadata": {"a": None}, "created": "2026-11-16T22:30:00Z",
             "happened": "2026-11-16T22:30:00Z", "updated": "2026-11-16T23:30:00Z", "deleted": "2026-11-17T00:30:00Z",
             "importance": 0.9, "pinned": True,
             "facts": [
                 {"id": "f0", "states": "Ada lives in Oslo", "confidence": 0.88, "since": "2026-11-16",
                  "until": "2026-11-17", "superseded_by": "f1"},
                 {"id": "f1", "states": "Ada lives in Rome", "confidence": 0.88, "since": "2026-11-16"},
             ],
             "updates": ["m0"], "entities": ["Ada"],
             "neighbours": {"2026-11": ["16 m7 before", "16 m8 after"]}},
        ],
        "missing": ["nobody"],
    }  # fmt: skip
    assert encode.brief_fetched(Fetched(())) == {"memories": []}


def test_what_was_forgotten() -> None:
    assert encode.forgotten(Forgotten(("a", "b"), ("c",))) == {"forgotten": ["a", "b"], "missing": ["c"]}
    assert encode.forgotten(Forgotten(())) == {"forgotten": []}
