"""Finding: what is read into a question, what is offered instead, and every number of the answer by hand.

Everything here is asked of both stores: the one in a file and the plain reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import isclose, log
from pathlib import Path
from typing import Any, Protocol, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import NOW, make_engines
from nacre.analysis.highlight import HighlightTerms, snippet
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.query.parser import parse
from nacre.ranking import scoring
from nacre.storage.sqlite import SqliteStore
from nacre.types.facts import NewFact
from nacre.types.memory import NewMemory, Span
from nacre.types.recipe import Recipe, adjusted
from nacre.types.search import Filter, Hit, Mode, Reason, SearchOptions, SearchResult
from stores import LOCAL_STORES

DAY = timedelta(days=1)
PLAIN = Recipe(recency_weight=0)
WORDS_ALONE = Recipe(alpha=0, recency_weight=0)
RANKS = Recipe(fusion="rank", alpha=0.5, recency_weight=0)  # places instead of heights, as in sums with a pencil
RANKS_OF_WORDS = replace(RANKS, alpha=0)
MODES: tuple[Mode, ...] = get_args(Mode)


class Make(Protocol):
    """Makes an engine on a store that already holds some memories, whose ids are m0, m1, … in their order."""

    def __call__(self, *items: str | NewMemory, embedding: bool = False, zone: tzinfo = UTC) -> Nacre: ...


@pytest.fixture(params=LOCAL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    with make_engines(request.param, tmp_path) as made:

        def engine(*items: str | NewMemory, embedding: bool = False, zone: tzinfo = UTC) -> Nacre:
            embedder = Hashing() if embedding else None
            return made(*items, embedder=embedder, zone=zone, extract=True)

        yield engine


def ids(result: SearchResult) -> list[str]:
    return [hit.id for hit in result.hits]


def texts(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def scores(result: SearchResult) -> list[float | None]:
    return [None if hit.bm25 is None else round(hit.bm25, 6) for hit in result.hits]


def highlighted(hit: Hit) -> list[str]:
    return [hit.snippet.text[span.start : span.end] for span in hit.snippet.highlights]


def keyword(engine: Nacre, query: str, where: Filter | None = None) -> SearchResult:
    return engine.search(query, mode="keyword", where=where or Filter())


# ---------------------------------------------------------------- did you mean

DEPLOYS = ("deploy to staging", "green tea", NewMemory(text="a cluster", tags=["kubernetes"], summary="orchestration"))


def test_another_spelling_is_offered_but_not_applied_where_something_was_found(make: Make) -> None:
    memory = make(*DEPLOYS)
    result = keyword(memory, "staging deplyo")
    assert ids(result) == ["m0"]
    known = keyword(memory, "staging").hits
    (half,), (whole,) = result.hits, known
    assert (half.memory, half.snippet, half.bm25) == (whole.memory, whole.snippet, whole.bm25)
    assert half.score <= whole.score
    assert half.relevance is not None
    assert whole.relevance is not None
    assert half.relevance <= whole.relevance  # half of the question is not answered
    assert result.notes == ()
    assert result.did_you_mean is not None
    assert result.did_you_mean.query == "staging deploy"
    assert dict(result.did_you_mean.words) == {"deplyo": ("deploy",)}


def test_another_spelling_is_applied_where_nothing_was_found(make: Make) -> None:
    memory = make(*DEPLOYS)
    result = keyword(memory, "deplyo")
    assert result.hits == keyword(memory, "deploy").hits
    assert ids(result) == ["m0"]
    assert highlighted(result.hits[0]) == ["deploy"]
    assert result.notes == ("nothing was found as typed; these are the results for: deploy",)
    assert result.did_you_mean is not None
    assert result.did_you_mean.query == "deploy"


def test_what_was_found_by_meaning_is_found(make: Make) -> None:
    """Letters in common are near vectors here: nothing has to be corrected, but it is offered."""
    memory = make(*DEPLOYS, embedding=True)
    result = memory.search("deplyo", recipe=Recipe(semantic_floor=0.05))
    assert result.hits
    assert {hit.match_type for hit in result.hits} == {"semantic"}
    assert result.notes == ()
    assert result.did_you_mean is not None
    assert result.did_you_mean.query == "deploy"


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("Deplyo", "deploy"),
        ("DEPLYO, please", "deploy, please"),
        ("deplyo stagnig", "deploy staging"),
        ("deplyo deplyo", "deploy deploy"),
        ("(deplyo)", "(deploy)"),
        ("deplyo AND stagnig", "deploy AND staging"),
        ("deplyo kind:note", "deploy kind:note"),
        ("deplyo-stagnig", "deploy-staging"),
        ("undeplyo deplyo", "undeplyo deploy"),  # only whole words are replaced
    ],
)
def test_the_rest_of_the_query_stays(make: Make, query: str, meant: str) -> None:
    memory = make(*DEPLOYS)
    result = keyword(memory, query)
    assert result.did_you_mean is not None
    assert result.did_you_mean.query == meant
    assert ids(result) == ["m0"]
    assert result.notes == (f"nothing was found as typed; these are the results for: {meant}",)


def test_quoted_words_are_corrected_where_nothing_was_found_one_by_one(make: Make) -> None:
    result = keyword(make(*DEPLOYS), '"grene teaa"')
    assert ids(result) == ["m1"]
    assert result.notes == ('nothing was found as typed; these are the results for: "green tea"',)


@pytest.mark.parametrize(
    "query",
    [
        "deploy",
        "deploys",
        "deploying the deployed deployment",  # the same stem
        "Staging?",
        "kubernetes",  # in a tag
        "orchestration",  # in a summary
        "orchestrating",
        "tea -deplyo",
        "tea NOT deplyo",
        'tea -"deplyo to"',
        "tea tag:deplyo",
        "tea OR tag:deplyo",
        "tea deplyo*",
        "tea tae",  # a syllable
        "tea deplyo42",  # a name, not a word
        "tea xylophone",  # nothing is like it
        "tea kubernetse",  # only a tag has what is like it
        "",
        "…",
    ],
)
def test_nothing_is_offered_for(make: Make, query: str) -> None:
    assert keyword(make(*DEPLOYS), query).did_you_mean is None


def test_words_that_only_forgotten_memories_have_are_not_offered(make: Make) -> None:
    memory = make("deploy now", "deploy later", "green tea")
    memory.forget("m0")
    assert keyword(memory, "deplyo").did_you_mean is not None
    memory.forget("m1")
    result = keyword(memory, "deplyo tea")
    assert result.did_you_mean is None
    assert ids(result) == ["m2"]


def test_at_most_five_words_are_looked_for(make: Make) -> None:
    memory = make("garden kettle window carpet ladder mirror")
    result = keyword(memory, "gardne ketlte widnow crapet laddre mirorr")
    assert result.did_you_mean is not None
    assert result.did_you_mean.query == "garden kettle window carpet ladder mirorr"


def test_the_nearest_and_commonest_are_offered_in_order(make: Make) -> None:
    """All are one edit away. "stage" is also the stem of "stages" and "staged", so six memories have it."""
    memory = make("stages", "stages here", "stage", "staged one", "staged two", "staged three", "stager")
    result = keyword(memory, "stagex")
    assert result.did_you_mean is not None
    assert dict(result.did_you_mean.words) == {"stagex": ("stage", "staged", "stages")}


@pytest.mark.parametrize("mode", MODES)
def test_a_word_of_another_space_is_never_offered(make: Make, mode: Mode) -> None:
    """That a word exists in a space that was not asked for would be a leak."""
    memory = make("green tea", NewMemory(text="deploy to production", space="secret"), embedding=True)
    for query, where in (
        ("deplyo", Filter()),
        ("deplyo", Filter(spaces=["default"])),
        ("deplyo", Filter(spaces=["nowhere"])),
        ("deplyo space:default", Filter()),
        ("deplyo space:secret", Filter(spaces=["default"])),
        ('"deplyo tea"', Filter(spaces=["default"])),
    ):
        result = memory.search(query, mode=mode, where=where)
        assert result.did_you_mean is None, query
        assert all(hit.memory.space == "default" for hit in result.hits)
    for query, where in (("deplyo", Filter(spaces=["secret"])), ("deplyo space:secret", Filter())):
        offered = memory.search(query, mode=mode, where=where).did_you_mean
        if mode == "semantic":  # no word is looked up, so none is missing
            assert offered is None
        else:
            assert offered is not None
            assert dict(offered.words) == {"deplyo": ("deploy",)}


# ---------------------------------------------------------------- quotes

RELAXED = "no memory has the quoted words side by side; they were searched one by one"


@pytest.mark.parametrize(
    ("query", "found", "notes"),
    [
        ('"deploy the"', ["m0"], ()),
        ('"staging deploy"', ["m0", "m1"], (RELAXED,)),
        ('"staging deploy" green', ["m0", "m1", "m2"], (RELAXED,)),
        ('"deploy the" green', ["m0"], ()),  # a phrase that is there is a condition
        ('"staging deploy" -later', ["m0"], (RELAXED,)),  # what is excluded stays excluded
        ('"staging deploy" kind:note', ["m0", "m1"], (RELAXED,)),
        ('"staging deploy" kind:fact', [], ()),
        ('green -"tea cup"', ["m2"], ()),
        ('"alpha beta"', [], ()),
        # In a sentence, quotation marks only quote.
        ('why did we call it "staging deploy" here', ["m0", "m1"], ()),
        ('what was "staging deploy"?', ["m0", "m1"], ()),
    ],
)
def test_quoted_words(make: Make, query: str, found: list[str], notes: tuple[str, ...]) -> None:
    memory = make("deploy the app to staging", "deploy later", "green tea", "a black cup")
    result = keyword(memory, query)
    assert sorted(ids(result)) == found
    assert result.notes == notes


def test_quoted_words_searched_one_by_one_score_like_words(make: Make) -> None:
    memory = make("deploy the app to staging", "deploy later", "green tea")
    assert keyword(memory, '"staging deploy"').hits == keyword(memory, "staging deploy").hits


# ---------------------------------------------------------------- related

RARE_AND_COMMON = ("zebra noon", "noon bell", "noon sun", "zebra stripes", "noon tea")


def test_a_rare_word_in_common_counts_more_than_a_common_one(make: Make) -> None:
    """Five texts of two words. zebra is in 2: ln(1 + 3.5/2.5) = .875469; noon is in 4: ln(1 + 1.5/4.5) = .287682.

    With the mean length everywhere the damping is k1 = 1.2, so 1 × 2.2 / (1 + 1.2) = 1 of the idf.
    """
    memory = make(*RARE_AND_COMMON)
    assert ids(memory.related("m0")) == ["m3", "m1", "m2", "m4"]
    result = memory.related("m0", recipe=RANKS_OF_WORDS)
    assert ids(result) == ["m3", "m1", "m2", "m4"]
    assert scores(result) == [0.875469, 0.287682, 0.287682, 0.287682]
    assert [hit.score for hit in result.hits] == [1 / 61, 1 / 62, 1 / 63, 1 / 64]
    assert [highlighted(hit) for hit in result.hits] == [["zebra"], ["noon"], ["noon"], ["noon"]]


def test_only_words_are_compared_where_there_are_no_vectors(make: Make) -> None:
    result = make(*RARE_AND_COMMON).related("m0")
    assert ids(result) == ["m3", "m1", "m2", "m4"]
    assert {hit.match_type for hit in result.hits} == {"bm25"}
    assert result.notes == ("the memory has no vectors: only memories that share its words were looked for",)


def test_memories_with_near_vectors_are_related(make: Make) -> None:
    """Of 4 + 10 equal shares (a word counts twice, so four in the square) eight trigrams are the same."""
    memory = make("kettlework", "kettleworm", "tea", embedding=True)
    cosine = 8 / 14
    assert ids(memory.related("m0")) == ["m1"]
    result = memory.related("m0", recipe=RANKS)
    assert ids(result) == ["m1"]
    (hit,) = result.hits
    assert hit.match_type == "semantic"
    assert hit.cosine is not None
    assert isclose(hit.cosine, cosine, abs_tol=2e-3)  # stored with sixteen bits
    assert hit.score == 0.5 / 61
    assert result.notes == ()
    assert ids(memory.related("m0", recipe=Recipe(semantic_floor=0.95))) == []


def test_vectors_are_compared_without_an_embedder(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    with Nacre(SqliteStore(path), Hashing()) as memory:
        known = memory.remember("kettlework").id
        other = memory.remember("kettleworm").id
    with Nacre(SqliteStore(path), None) as memory:
        assert ids(memory.related(known)) == [other]


def test_both_channels_add_up(make: Make) -> None:
    memory = make("green tea garden", "green tea house", "blue car", embedding=True)
    assert ids(memory.related("m0"))[0] == "m1"
    (hit,) = memory.related("m0", recipe=replace(RANKS, semantic_floor=0.3)).hits
    assert (hit.id, hit.match_type) == ("m1", "hybrid")
    assert hit.score == 0.5 / 61 + 0.5 / 61


def test_memories_of_the_same_session_come_a_little_higher(make: Make) -> None:
    """m1 and m2 share one word each, as rare: 1/61 and 1/62. Of the same session, m2 gets 1/62 × 1.1 = .0177419."""
    memory = make(
        NewMemory(text="zebra noon", session="s1"),
        NewMemory(text="zebra sun", session="s2"),
        NewMemory(text="zebra bell", session="s1"),
        "zebra tea",
    )
    assert ids(memory.related("m0")) == ["m2", "m1", "m3"]
    result = memory.related("m0", recipe=RANKS_OF_WORDS)
    assert ids(result) == ["m2", "m1", "m3"]
    assert [round(hit.score, 7) for hit in result.hits] == [0.0177419, 0.0163934, 0.0158730]
    assert result.hits[0].reasons[1:] == (Reason("session", "multiply", 1.1, {"weight": 0.1}),)
    assert [len(hit.reasons) for hit in result.hits] == [2, 1, 1]
    for weight, order in ((0, ["m1", "m2", "m3"]), (1, ["m2", "m1", "m3"])):
        found = memory.related("m0", recipe=adjusted(RANKS_OF_WORDS, session_weight=weight))
        assert ids(found) == order
        assert next(hit.score for hit in found.hits if hit.id == "m2") == 1 / 62 * (1 + weight)


def test_without_a_session_nothing_is_of_the_same(make: Make) -> None:
    memory = make("zebra noon", "zebra sun", NewMemory(text="zebra bell", session="s1"))
    assert {len(hit.reasons) for hit in memory.related("m0", recipe=WORDS_ALONE).hits} == {1}


def test_a_memory_that_is_not_there_has_no_relatives(make: Make) -> None:
    memory = make("zebra noon", "zebra sun", "zebra bell")
    memory.forget("m1")
    memory.purge("m2")
    for unknown in ("m1", "m2", "m3", "never", ""):
        with pytest.raises(NotFound):
            memory.related(unknown)
    assert ids(memory.related("m0")) == []
    memory.restore("m1")
    assert ids(memory.related("m1")) == ["m0"]


def test_relatives_are_of_the_same_space_unless_others_are_named(make: Make) -> None:
    memory = make(
        "zebra noon",
        "zebra sun",
        NewMemory(text="zebra bell", space="other"),
        NewMemory(text="zebra tea", space="other"),
        embedding=True,
    )
    assert ids(memory.related("m0", recipe=PLAIN)) == ["m1"]
    assert ids(memory.related("m2", recipe=PLAIN)) == ["m3"]  # the space of the memory, not the engine's
    assert sorted(ids(memory.related("m0", where=Filter(spaces=["other"])))) == ["m2", "m3"]
    assert sorted(ids(memory.related("m0", where=Filter(spaces=["other", "default"])))) == ["m1", "m2", "m3"]
    assert ids(memory.related("m0", where=Filter(spaces=["nowhere"]))) == []


def test_relatives_are_limited_and_filtered(make: Make) -> None:
    several = [NewMemory(text=f"zebra {name}", tags=[name]) for name in ("noon", "sun", "bell", "tea")]
    memory = make(*several, embedding=True)
    assert len(memory.related("m0").hits) == 3
    assert len(memory.related("m0", limit=2).hits) == 2
    assert memory.related("m0", limit=1).hits == memory.related("m0").hits[:1]
    assert ids(memory.related("m0", where=Filter(tags_any=["bell"]))) == ["m2"]
    assert sorted(ids(memory.related("m0", where=Filter(tags_none=["bell"])))) == ["m1", "m3"]
    for limit in (0, 1001):
        with pytest.raises(InvalidInput, match="limit"):
            memory.related("m0", limit=limit)


# ---------------------------------------------------------------- facets


@pytest.fixture
def tagged(make: Make) -> Nacre:
    memory = make(
        NewMemory(text="green tea", tags=["hot", "drink"], source="chat", kind="fact", created=NOW),
        NewMemory(text="black tea", tags=["hot"], source="docs/a.md", created=NOW - 31 * DAY),
        NewMemory(text="iced tea", tags=["drink"], source="chat", namespace="summer", created=NOW - 31 * DAY),
        NewMemory(text="the kettle", tags=["hot"], created=datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        NewMemory(text="tea leaves", tags=["dry"], source="chat"),
        NewMemory(text="tea elsewhere", tags=["hot", "far"], space="other"),
    )
    memory.forget("m4")
    return memory


def test_facets_are_exact_counts(tagged: Nacre) -> None:
    facets = tagged.facets("tea")
    assert facets.total == 3
    assert list(facets.kinds.items()) == [("note", 2), ("fact", 1)]
    assert list(facets.namespaces.items()) == [("general", 2), ("summer", 1)]
    assert list(facets.tags.items()) == [("drink", 2), ("hot", 2)]  # equally often: by name
    assert list(facets.sources.items()) == [("chat", 2), ("docs/a.md", 1)]
    assert list(facets.months.items()) == [("2026-05", 2), ("2026-06", 1)]
    assert facets.notes == ()


@pytest.mark.parametrize(
    ("query", "where", "total"),
    [
        ("tea", Filter(tags_any=["hot"]), 2),
        ("tea", Filter(tags_all=["hot", "drink"]), 1),
        ("tea", Filter(kinds=["note"], sources=["docs/*"]), 1),
        ("tea", Filter(created_from=NOW), 1),
        ("tea", Filter(spaces=["other"]), 1),
        ("tea", Filter(spaces=["other", "default"]), 4),
        ("tea", Filter(spaces=["nowhere"]), 0),
        ("tea kettle", Filter(), 4),
        ("tag:hot", Filter(), 3),
        ("tag:hot tea", Filter(), 2),
        ("tag:hot OR tea", Filter(), 4),
        ("-tag:hot", Filter(), 1),
        ("tea -tag:hot", Filter(), 1),
        ("tag:hot,drink -kind:fact", Filter(), 3),
        ("tea space:other", Filter(), 1),
        ("tag:hot", Filter(tags_none=["drink"]), 2),
        ('"green tea"', Filter(), 1),
        ("kett*", Filter(), 1),
        ("the tea", Filter(), 3),  # the kettle shares only "the"
        ("the", Filter(), 1),
        ("nothing", Filter(), 0),
        ("on:1969-12-31", Filter(), 1),
    ],
)
def test_facets_count_what_a_search_finds(tagged: Nacre, query: str, where: Filter, total: int) -> None:
    facets = tagged.facets(query, where)
    assert facets.total == total
    found = tagged.search(query, mode="keyword", where=where, limit=100).hits
    assert len(found) == total
    for counts in (facets.kinds, facets.namespaces, facets.months):
        assert sum(counts.values()) == total
    assert dict(facets.tags) == {
        tag: sum(tag in hit.memory.tags for hit in found) for hit in found for tag in hit.memory.tags
    }


@pytest.mark.parametrize(
    ("zone", "months"),
    [
        # Midnight of 1 February is 18:15 in UTC, and 03:30.
        (timezone(timedelta(hours=5, minutes=45)), {"2026-01": 1, "2026-02": 4}),
        (timezone(-timedelta(hours=3, minutes=30)), {"2026-01": 4, "2026-02": 1}),
        (UTC, {"2026-01": 3, "2026-02": 2}),
        (timezone(timedelta(hours=14)), {"2026-02": 5}),
    ],
)
def test_months_are_those_of_the_users_time_zone(make: Make, zone: tzinfo, months: dict[str, int]) -> None:
    moments = (
        datetime(2026, 1, 31, 18, 14, 59, 999_999, tzinfo=UTC),
        datetime(2026, 1, 31, 18, 15, tzinfo=UTC),
        datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 2, 1, 3, 29, 59, 999_999, tzinfo=UTC),
        datetime(2026, 2, 1, 3, 30, tzinfo=UTC),
    )
    memory = make(*(NewMemory(text=f"tea {at}", created=at) for at in moments), zone=zone)
    found = memory.facets("tea")
    assert list(found.months.items()) == list(months.items())
    # The filters of a query mean the same months.
    assert {month: memory.facets(f"on:{month}").total for month in months} == months


def test_months_are_in_order(make: Make) -> None:
    years = (2026, 1969, 2001, 1970, 1000)
    memory = make(*(NewMemory(text=f"tea {year}", created=datetime(year, 5, 1, tzinfo=UTC)) for year in years))
    assert list(memory.facets("tea").months) == ["1000-05", "1969-05", "1970-05", "2001-05", "2026-05"]


# ---------------------------------------------------------------- spaces

DENIED = "is not among the spaces this search may see"


@pytest.mark.parametrize(
    ("named", "query", "found", "denied"),
    [
        ([], "tea", ["home"], False),
        ([], "tea space:work", ["work"], False),
        ([], "tea space:work,secret", ["secret", "work"], False),
        ([], "space:secret", ["secret"], False),
        ([], "tea -space:default", [], False),
        (["work"], "tea", ["work"], False),
        (["work"], "tea space:work", ["work"], False),
        (["work"], "tea space:secret", [], True),
        (["work"], "tea space:default", [], True),  # not even the engine's own
        (["work"], "space:secret", [], True),
        (["work"], "tea OR space:secret", [], True),
        (["work"], "(tea AND space:secret) OR space:secret", [], True),
        (["work"], "-kind:fact space:secret", [], True),
        (["work"], "tea -space:secret", ["work"], False),
        (["work"], "tea NOT space:work", [], False),
        (["work", "default"], "tea space:secret,work", ["work"], False),
        (["work", "default"], "tea space:secret OR tea space:work", ["work"], False),
        (["work", "default"], "space:default OR space:secret", ["home"], False),
        (["work", "default"], "space:default,work", ["home", "work"], False),
        (["work", "default"], "tea -space:work", ["home"], False),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_query_cannot_name_spaces_beyond_those_of_the_caller(
    make: Make, named: list[str], query: str, found: list[str], denied: bool, mode: Mode
) -> None:
    spaces = {"home": "default", "work": "work", "secret": "secret"}
    several = [NewMemory(text=f"tea at {name}", space=space) for name, space in spaces.items()]
    memory = make(*several, embedding=True)
    result = memory.search(query, mode=mode, where=Filter(spaces=named))
    assert sorted(text.removeprefix("tea at ") for text in texts(result)) == found
    facets = memory.facets(query, Filter(spaces=named))
    assert facets.total == len(found)
    for notes in (result.notes, facets.notes):
        assert any(note.endswith(DENIED) for note in notes) == denied


# ---------------------------------------------------------------- filters alone


@pytest.mark.parametrize("mode", MODES)
def test_filters_alone_list_the_newest_first(make: Make, mode: Mode) -> None:
    """The nth by time gets 1 / (60 + n) × (1 + .1 / (1 + days)): here days are 1, 3 and 9."""
    several = [NewMemory(text=f"tea {days}", tags=["hot"], created=NOW - days * DAY) for days in (9, 1, 3)]
    memory = make(*several, NewMemory(text="tea 0", tags=["cold"]), embedding=True)
    for query in ("tag:hot", "-tag:cold", "tag:hot -tag:cold has:tags"):
        result = memory.search(query, mode=mode)
        assert texts(result) == ["tea 1", "tea 3", "tea 9"]
        for hit, rank, days in zip(result.hits, (1, 2, 3), (1, 3, 9), strict=True):
            share, recency = hit.reasons
            assert share == Reason("filter", "add", 1 / (60 + rank), {"rank": rank, "weight": 1, "k": 60})
            assert recency == Reason("recency", "multiply", 1 + 0.1 / (1 + days), {"days": days, "weight": 0.1})
            assert hit.score == share.value * recency.value
            assert hit.match_type == "filter"
            assert (hit.bm25, hit.cosine, hit.bm25_rank, hit.cosine_rank) == (None, None, None, None)
            assert hit.snippet.highlights == ()
        assert result.notes == ()


def test_a_listing_is_cut_at_the_limit(make: Make) -> None:
    several = [NewMemory(text=f"tea {days}", tags=["hot"], created=NOW - days * DAY) for days in range(30)]
    memory = make(*several)
    assert texts(memory.search("tag:hot", limit=3)) == ["tea 0", "tea 1", "tea 2"]
    assert len(memory.search("tag:hot", limit=30, recipe=Recipe(pool=1)).hits) == 30


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tea OR tag:hot", [("m1", "bm25", 1 / 61), ("m2", "bm25", 1 / 62), ("m3", "filter", 1 / 63)]),
        ("tea tag:hot", [("m2", "bm25", 1 / 61)]),  # a word and a filter: both
        ("tag:hot", [("m3", "filter", 1 / 61), ("m2", "filter", 1 / 62)]),
        ("nothing tag:hot", []),
        ("nothing OR tag:hot", [("m3", "filter", 1 / 61), ("m2", "filter", 1 / 62)]),
    ],
)
def test_words_come_before_what_only_meets_a_condition(
    make: Make, query: str, found: list[tuple[str, str, float]]
) -> None:
    memory = make(
        NewMemory(text="coffee", created=NOW - 4 * DAY),
        NewMemory(text="tea", created=NOW - 3 * DAY),
        NewMemory(text="tea leaves", tags=["hot"], created=NOW - 2 * DAY),
        NewMemory(text="a kettle", tags=["hot"], created=NOW - DAY),
    )
    result = memory.search(query, recipe=RANKS_OF_WORDS)
    assert [(hit.id, hit.match_type, hit.score) for hit in result.hits] == found
    by_height = memory.search(query, recipe=WORDS_ALONE)
    assert [(hit.id, hit.match_type) for hit in by_height.hits] == [each[:2] for each in found]


# ---------------------------------------------------------------- times


def about_tea(make: Make) -> Nacre:
    return make(
        NewMemory(text="tea one", created=NOW - 10 * DAY),
        NewMemory(text="tea two", created=NOW - DAY),
        NewMemory(text="tea six", created=datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC)),
    )


@pytest.mark.parametrize(
    ("query", "close"),
    [
        ("tea", {}),
        ("what tea did we have yesterday?", {"m1": 1}),
        ("tea in March 2026", {"m2": 1}),
        ("tea last month", {"m0": 0.5}),  # of the fifth of June: a little beside May
        ("tea since May", {"m0": 1, "m1": 1}),
        ("tea before April 2026", {"m2": 1}),
        ("tea tomorrow", {}),
        ("tea since:2d", {}),  # a filter restricts already
        ("tea -yesterday", {}),
    ],
)
def test_memories_of_the_time_a_question_names_come_higher(make: Make, query: str, close: dict[str, float]) -> None:
    """By .7 of the best score, shown in the reasons; others are found as before."""
    memory = about_tea(make)
    recipe = replace(WORDS_ALONE, fresh_weight=0)
    usual = {hit.id for hit in memory.search(query, recipe=replace(recipe, temporal_weight=0)).hits}
    result = memory.search(query, recipe=recipe)
    assert {hit.id for hit in result.hits} == usual
    assert usual == ({"m1"} if "since:" in query else {"m0", "m1", "m2"})
    by_words = {hit.id: sum(each.value for each in hit.reasons if each.signal == "lexical") for hit in result.hits}
    for hit in result.hits:
        temporal = [reason for reason in hit.reasons if reason.signal == "temporal"]
        share = 0.7 * max(by_words.values()) * close.get(hit.id, 0)
        assert [reason.numbers for reason in temporal] == ([{"closeness": close[hit.id]}] if share else [])
        assert isclose(hit.score, by_words[hit.id] + share, rel_tol=1e-12)


def test_the_time_a_question_names_can_decide(make: Make) -> None:
    """By words they are alike: 1/61, 1/62, 1/63 in the order of ids. 1/62 + .7/61 = .0276044 is the first."""
    memory = about_tea(make)
    assert ids(memory.search("tea", recipe=WORDS_ALONE)) == ["m0", "m1", "m2"]
    assert ids(memory.search("tea yesterday", recipe=WORDS_ALONE)) == ["m1", "m0", "m2"]
    result = memory.search("tea yesterday", recipe=RANKS_OF_WORDS)
    assert ids(result) == ["m1", "m0", "m2"]
    assert [round(hit.score, 7) for hit in result.hits] == [0.0276044, 0.0163934, 0.0158730]
    switched_off = Recipe(alpha=0, recency_weight=0, temporal_weight=0)
    assert ids(memory.search("tea yesterday", recipe=switched_off)) == ["m0", "m1", "m2"]


def test_without_a_weight_a_time_is_words(make: Make) -> None:
    memory = make("the retro of March", "tea in the garden")
    for query in ("retro in March 2026", "what happened in March?"):
        off = memory.search(query, recipe=replace(WORDS_ALONE, temporal_weight=0))
        assert ids(off) == ["m0"]
        assert all(reason.signal == "lexical" for hit in off.hits for reason in hit.reasons)


def test_yesterday_is_that_of_the_user(make: Make) -> None:
    """It is Monday noon in UTC, and Tuesday in a zone that is fourteen hours ahead."""
    monday = NewMemory(text="tea", created=datetime(2026, 6, 15, 1, tzinfo=UTC))
    for hours, close in ((14, 1), (0, 0.5)):
        memory = make(monday, zone=timezone(timedelta(hours=hours)))
        (hit,) = memory.search("tea yesterday", recipe=WORDS_ALONE).hits
        assert hit.reasons[-1].numbers == {"closeness": close}


# ---------------------------------------------------------------- reasons

ASKED = (
    "tea",
    "tag:hot",
    "tea OR tag:hot",
    "tea yesterday",
    "tea tag:hot today",
    '"tea leaves"',
    "-kind:fact",
    "the tea",
)
LINES = {"lexical": "words: ", "semantic": "meaning: ", "filter": "filter: "} | {
    "temporal": "time: ", "session": "session: ", "recency": "recency: ", "echo": "echo: ", "maxsim": "maxsim: ",
}  # fmt: skip


def test_every_reason_describes_itself_and_all_make_the_score(make: Make) -> None:
    memory = make(
        NewMemory(text="green tea", session="s1", position=1, created=NOW - DAY),
        NewMemory(text="tea leaves", session="s1", position=2, tags=["hot"]),
        NewMemory(text="a kettle", tags=["hot"], created=NOW - 9 * DAY),
        NewMemory(text="black tea", kind="fact"),
        embedding=True,
    )
    results = [memory.search(query, mode=mode) for query in ASKED for mode in MODES]
    results += [memory.related(each) for each in ("m0", "m1", "m2", "m3")]
    hits = [hit for result in results for hit in result.hits]
    seen = set()
    for hit in hits:
        assert hit.score == scoring.score(hit.reasons)
        assert hit.score > 0
        for reason in hit.reasons:
            line = scoring.describe(reason)
            assert line.startswith(LINES[reason.signal])
            seen.add(reason.signal)
    assert seen == LINES.keys()


# ---------------------------------------------------------------- labels

CLASSIC = adjusted(
    Recipe(), bm25_k1=1.2, bm25_b=0.75, bm25_padding=0, summary_weight=1, tags_weight=1, source_weight=0.5
)
LABELLED = (
    NewMemory(text="red car", tags=["fish", "boat"]),
    "red fish",
    NewMemory(text="blue bird", summary="Fish soup.", source="fish.md"),
    "green tea",
)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        # fish is in 3 of 4 memories: ln(1 + 1.5/3.5) = ln 1.428571 = .356675. All texts have the mean length, so
        # damping is 1.2 and a count of n gives n × 2.2 / (n + 1.2): 1 for n = 1.
        # m2 has it in its summary and its source: n = 1 + .5, 1.5 × 2.2 / 2.7 = 1.222222, × .356675 = .435936.
        (CLASSIC, [("m2", 0.435936), ("m0", 0.356675), ("m1", 0.356675)]),
        # n = 1, and .5 × 2.2 / 1.7 = .647059, × .356675 = .230790.
        (adjusted(CLASSIC, summary_weight=0), [("m0", 0.356675), ("m1", 0.356675), ("m2", 0.230790)]),
        (adjusted(CLASSIC, source_weight=0), [("m0", 0.356675), ("m1", 0.356675), ("m2", 0.356675)]),
        # n = 2.5 + .5: 3 × 2.2 / 4.2 = 1.571429, × .356675 = .560489.
        (adjusted(CLASSIC, summary_weight=2.5), [("m2", 0.560489), ("m0", 0.356675), ("m1", 0.356675)]),
        # A weight of nothing: found all the same, but it adds nothing.
        # n = 2 for m2: 2 × 2.2 / 3.2 = 1.375, × .356675 = .490428.
        (adjusted(CLASSIC, tags_weight=0, source_weight=1), [("m2", 0.490428), ("m1", 0.356675), ("m0", 0.0)]),
        (
            adjusted(CLASSIC, tags_weight=0, summary_weight=0, source_weight=0),
            [("m1", 0.356675), ("m0", 0.0), ("m2", 0.0)],
        ),
        # n = 100: 100 × 2.2 / 101.2 = 2.173913, × .356675 = .775380: k1 bounds what any number of occurrences gives.
        (adjusted(CLASSIC, tags_weight=100), [("m0", 0.775380), ("m2", 0.435936), ("m1", 0.356675)]),
    ],
)
def test_words_in_labels_count_with_their_weight(make: Make, recipe: Recipe, expected: list[tuple[str, float]]) -> None:
    result = make(*LABELLED).search("fish", mode="keyword", recipe=recipe)
    found = sorted(((hit.id, hit.bm25 or 0.0) for hit in result.hits), key=lambda each: (-each[1], each[0]))
    assert [(each, round(score, 6)) for each, score in found] == expected
    assert [hit.bm25_rank for hit in sorted(result.hits, key=lambda hit: (-(hit.bm25 or 0), hit.id))] == [1, 2, 3]


def test_labels_do_not_make_a_text_longer(make: Make) -> None:
    """A text's length is that of its words alone, so labels cost it nothing."""
    plain = make("red fish", "green tea")
    labelled = make(NewMemory(text="red fish", tags=["a", "b", "c"], summary="many more words"), "green tea")
    assert scores(keyword(plain, "red")) == scores(keyword(labelled, "red")) == [0.693147]  # ln(1 + 1.5/1.5)


# ---------------------------------------------------------------- words that any text may have


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("the database", ["m0", "m2"]),
        ("where did the database go?", ["m0", "m2"]),
        ("to be or not to be", ["m1", "m3"]),  # nothing but such words: then they count
        ("the", ["m0", "m1"]),
        ("question the", ["m1"]),
        ("or", ["m1"]),
        ("database OR the", ["m0", "m2"]),
        ('"the database"', ["m0"]),  # in a phrase every word counts
        ("the AND database", ["m0"]),
    ],
)
def test_function_words(make: Make, query: str, found: list[str]) -> None:
    memory = make(
        "the database is slow",
        "To be, or not to be, that is the question",
        "database backups run nightly",
        "be quick",
    )
    assert sorted(ids(keyword(memory, query))) == found


def test_a_function_word_tells_as_if_half_of_the_texts_had_it(make: Make) -> None:
    """m0 has both words: ln 2.666667 for database, in 1 of 3, and ln(1 + 2/2) for "the", in 1 but counted as 1.5.

    All texts have two words, so each adds its whole idf: .980829 + .693147 = 1.673976.
    """
    memory = make("the database", "green tea", "black tea")
    assert scores(keyword(memory, "the database")) == [1.673976]
    assert isclose(log(8 / 3) + log(2), 1.673976, abs_tol=1e-6)
    assert scores(keyword(memory, "the")) == [0.693147]


def test_words_that_tell_little_are_highlighted_only_where_nothing_else_is(make: Make) -> None:
    memory = make("the database of the year", *(f"the tea number {number}" for number in range(30)))
    (hit,) = keyword(memory, "the database").hits
    assert highlighted(hit) == ["database"]
    assert {each for hit in keyword(memory, "the").hits for each in highlighted(hit)} == {"the"}
    (hit,) = keyword(memory, '"of the"').hits
    assert "the" in hit.snippet.text
    assert highlighted(hit) == ["the", "of", "the"]  # there is nothing else: all of them


# ---------------------------------------------------------------- snippets

LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß"
LENGTHS = st.one_of(st.integers(1, 10), st.integers(50, 59))
LONG_WORDS = st.lists(
    st.builds(lambda letter, length: letter * length, st.sampled_from(LETTERS), LENGTHS), min_size=10, max_size=40
)
PARTS = [
    "a",
    "é",
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "🇫🇷",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "ñ\u0323\u0301",
    "字",
    "नि",
    "x",
]


@pytest.mark.slow
@given(LONG_WORDS, st.data(), st.integers(60, 200))
@settings(max_examples=200, deadline=None)
def test_a_word_is_never_cut(several: list[str], data: st.DataObject, chars: int) -> None:
    text = data.draw(st.sampled_from([" ", "\n", "  "])).join(several)
    asked = data.draw(st.lists(st.sampled_from(several), max_size=3))
    terms = parse(" ".join(asked), NOW, UTC).terms
    begins = [at for at in range(len(text)) if at == 0 or text[at - 1].isspace()]
    start = data.draw(st.sampled_from(begins))
    passage = data.draw(st.sampled_from([None, Span(start, len(text))]))
    shown = snippet(text, HighlightTerms(dict.fromkeys(terms, 1.0)), passage, chars)
    end = shown.start + len(shown.text)
    assert text[shown.start : end] == shown.text
    assert shown.start == 0 or text[shown.start - 1].isspace()
    assert end == len(text) or text[end].isspace()


@pytest.mark.slow
@given(st.lists(st.sampled_from(PARTS), min_size=50, max_size=100), st.data(), st.integers(1, 50))
@settings(max_examples=200, deadline=None)
def test_a_character_is_never_cut(parts: list[str], data: st.DataObject, chars: int) -> None:
    """One endless word of characters that are each made of several: cut anywhere, but between them."""
    text = "".join(parts)
    borders = [0]
    for part in parts:
        borders.append(borders[-1] + len(part))
    passage = Span(data.draw(st.sampled_from(borders)), len(text))
    shown = snippet(text, HighlightTerms({}), passage, chars)
    assert shown.start in borders
    assert shown.start + len(shown.text) in borders


# ---------------------------------------------------------------- what once went wrong


@pytest.mark.parametrize("many", [2, 60])
def test_nothing_is_left_of_what_was_found_by_meaning(make: Make, many: int) -> None:
    doubted = [NewFact(subject="tea", predicate="is", object="cold", confidence=0.05)]
    memory = make(*(NewMemory(text=f"tea {number}", facts=doubted) for number in range(many)), embedding=True)
    for mode in MODES:
        assert memory.search("tea", mode=mode, limit=1, recipe=Recipe(pool=1)).hits == ()
        assert memory.search("tea", mode=mode).hits == ()


@pytest.mark.parametrize(
    ("words", "start", "chars", "shown"),
    [
        (["a" * 13, "b" * 9, "c" * 51], 24, 60, "c" * 51),  # no room for the word and for what stands before it
        (["a" * 9, "b" * 50, "c"], 10, 30, "b" * 30),  # no room for the word at all
    ],
)
def test_a_passage_that_begins_with_a_long_word_is_shown(words: list[str], start: int, chars: int, shown: str) -> None:
    text = " ".join(words)
    assert snippet(text, HighlightTerms({}), Span(start, len(text)), chars).text == shown


def test_a_tiny_weight_of_a_label(make: Make) -> None:
    memory = make(NewMemory(text="tea", tags=["tea"]))
    assert memory.search("tea", mode="keyword", recipe=adjusted(Recipe(), tags_weight=1e-5)).hits


@pytest.mark.parametrize("query", ["tea" + " OR (tea -tag:x)" * 100, " ".join(f"tag:t{n}" for n in range(250))])
def test_facets_of_a_long_question(make: Make, query: str) -> None:
    memory = make("tea")
    assert memory.facets(query).total == len(keyword(memory, query).hits)


def test_months_at_the_beginning_of_time(make: Make) -> None:
    memory = make(
        NewMemory(text="tea", created=datetime(1, 1, 1, tzinfo=UTC)),
        NewMemory(text="more tea", created=datetime(999, 5, 1, 12, tzinfo=UTC)),
        zone=timezone(-timedelta(hours=3)),
    )
    assert memory.facets("tea").months == {"0001-01": 1, "0999-05": 1}


def test_function_words_do_not_answer_for_an_unknown_word(make: Make) -> None:
    memory = make("the cat")
    for query in ("zzz* the", "the xylophone"):
        assert keyword(memory, query).hits == ()
        assert memory.facets(query).total == 0


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("dèplyo", "deploy"),
        ("getDeplyoNow", None),
        ("deplyo -tag:deplyo", "deploy -tag:deplyo"),
        ('deplyo -"deplyo x"', 'deploy -"deplyo x"'),
        ("deplyo NOT deplyo", "deploy NOT deplyo"),
        ("deplyo \ud800", "deploy ?"),
        ('"deplyo proces"', '"deploy process"'),
    ],
)
def test_what_is_corrected_and_what_is_not(make: Make, query: str, meant: str | None) -> None:
    offered = keyword(make("deploy the process"), query).did_you_mean
    assert (offered and offered.query) == meant


def test_a_corrected_phrase_is_searched_word_by_word_in_the_end(make: Make) -> None:
    result = keyword(make("deploy the process"), '"deplyo proces"')
    assert len(result.hits) == 1
    assert list(result.notes) == [
        'nothing was found as typed; these are the results for: "deploy process"',
        "no memory has the quoted words side by side; they were searched one by one",
    ]


def test_an_unknown_word_does_not_change_what_is_highlighted(make: Make) -> None:
    memory = make(*(f"the database number {n}" if n % 4 == 0 else f"the note {n}" for n in range(200)))
    for query in ("the database", "the database qqqqqqq"):
        assert highlighted(keyword(memory, query).hits[0]) == ["database"]


def test_function_words_are_not_highlighted_in_a_small_store(make: Make) -> None:
    memory = make("the database of records", "green tea", "black tea")
    assert highlighted(keyword(memory, "the database").hits[0]) == ["database"]


def test_related_asks_only_the_channels_that_weigh(make: Make) -> None:
    memory = make("zebra noon and many other words here", "zebra", embedding=True)
    known = memory.timeline(oldest_first=True).entries[0].id
    assert memory.related(known, recipe=Recipe(alpha=0)).notes == ()
    assert memory.related(known, recipe=Recipe(alpha=1, semantic_floor=0.9)).hits == ()


def test_related_does_not_rest_on_function_words(make: Make) -> None:
    memory = make("the kettle is new", "the garden is large", "kettle repair")
    known = memory.search('"kettle is"', mode="keyword").hits[0].id
    assert [hit.text for hit in memory.related(known, recipe=Recipe(alpha=0)).hits] == ["kettle repair"]


@pytest.mark.parametrize("at", range(70))
def test_a_word_of_sixty_letters_is_not_cut(at: int) -> None:
    text = "b" * at + " " + "a" * 60 + " " + "c " * 200
    found = snippet(text, HighlightTerms({}), None, 100)
    end = found.start + len(found.text)
    assert end == len(text) or text[end].isspace()


# ---------------------------------------------------------------- all words


@pytest.mark.parametrize("mode", MODES)
def test_all_words_restrict_every_channel(make: Make, mode: Mode) -> None:
    engine = make("deploy to staging", "deploy to production", "staging is slow", "nothing of that", embedding=True)
    assert len(engine.search("deploy the staging", mode=mode, recipe=Recipe(semantic_floor=-1)).hits) > 1
    found = engine.search("deploy the staging", mode=mode, recipe=Recipe(semantic_floor=-1), match="all")
    assert (ids(found), found.notes) == (["m0"], ())


@pytest.mark.parametrize(
    "query",
    [
        "Wo war die Besprechung?",
        "wann ist die Besprechung im Saal",
        "où est la réunion ?",
        "¿dónde está el horno?",
        "donde esta el horno",
        "die Besprechung AND der Saal",
    ],
)
def test_stop_words_of_other_languages_are_not_among_all_words(make: Make, query: str) -> None:
    engine = make("Besprechung am Dienstag, Saal 4", "Une réunion mardi", "Otro horno", "tea")
    found = engine.search(query, match="all", mode="keyword")
    assert (len(found.hits), found.notes) == (1, ())


def test_a_word_that_is_a_stop_word_elsewhere_is_asked_for_in_english(make: Make) -> None:
    engine = make("plants die in winter", "plants in winter")
    assert ids(engine.search("which plants die in the winter", match="all", mode="keyword")) == ["m0"]


def test_all_words_are_looked_for_in_their_nearest_spelling(make: Make) -> None:
    engine = make("deploy to staging", "deploy to production")
    found = engine.search("deploy stagign", match="all", mode="keyword")
    assert ids(found) == ["m0"]
    assert found.notes == ("nothing was found as typed; these are the results for: deploy staging",)


def test_a_note_says_what_no_memory_has_all_of(make: Make) -> None:
    engine = make("deploy to staging", "tea at four", "staging is slow")
    found = engine.search("deploy tea", match="all", mode="keyword")
    assert (ids(found), found.notes) == ([], ("no memory has all of: deploy, tea; 2 have one of them or more",))
    found = engine.search("deploy tea slowly ns:nowhere", match="all", mode="keyword")
    assert found.notes == ("no memory that meets the other conditions has any of: deploy, tea, slowly",)
    why = engine.why_not("deploy tea", "m0", match="all")
    assert why.stage == "condition"
    assert why.explanation == "it lacks tea, and every word is asked for"
    assert why.remedy == "ask for any of the words"
    why = engine.why_not("staging slow -is", "m2", match="all")
    assert (why.stage, "lacks" in why.explanation) == ("condition", False)


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("xyzzy", "no memory has the word xyzzy"),
        ("xyzzy plugh", "no memory has any of: xyzzy, plugh"),
        # A memory has "tea", but not together with the phrase, whose words are not among those that are counted.
        ('"deploy to" tea', "no memory that meets the other conditions has the word tea"),
        ('"deploy to" tea four', "no memory that meets the other conditions has any of: tea, four"),
        (
            '"tea at" four staging',
            "no memory that meets the other conditions has all of: four, staging; 1 has one of them or more",
        ),
        (
            "staging slow -is",
            "no memory that meets the other conditions has all of: staging, slow; 1 has one of them or more",
        ),
        ("sta* tea", "no memory has all of: sta*, tea; 3 have one of them or more"),
    ],
)
def test_the_note_on_all_words_counts_what_meets_the_other_conditions(make: Make, query: str, note: str) -> None:
    engine = make("deploy to staging", "tea at four", "staging is slow")
    found = engine.search(query, match="all", mode="keyword")
    assert (ids(found), found.notes) == ([], (note,))


def test_how_words_match_is_checked(make: Make) -> None:
    with pytest.raises(InvalidInput, match="match: 'some' is unknown; allowed: any, all"):
        make("tea").search("tea", match="some")  # type: ignore[arg-type]


# ---------------------------------------------------------------- the least cosine


@pytest.mark.parametrize("mode", MODES)
def test_no_hit_is_less_similar_than_asked_for(make: Make, mode: Mode) -> None:
    """What words or an echo found has its cosine compared, too."""
    turns = [
        NewMemory(text=text, session="s", position=at, kind="episode")
        for at, text in enumerate(["deploy the gateway now", "yes", "later, perhaps deploy", "something else entirely"])
    ]
    engine = make(*turns, "deploy", "deploy " + "with many words that say other things " * 3, embedding=True)
    recipe = Recipe(semantic_floor=0.9)
    found = engine.search("deploy the gateway", mode=mode, recipe=recipe, collapse=False)
    cosines = {
        hit.id: hit.cosine or 0 for hit in engine.search("deploy the gateway", recipe=Recipe(semantic_floor=-1)).hits
    }
    for least in (-1, 0.1, 0.3, 0.5, 0.9):
        options: SearchOptions = {"mode": mode, "recipe": recipe, "collapse": False, "min_similarity": least}
        kept = engine.search("deploy the gateway", **options)
        assert ids(kept) == [hit.id for hit in found.hits if cosines[hit.id] >= least]
        assert [hit.cosine for hit in kept.hits] == [cosines[hit.id] for hit in kept.hits]
        for hit in found.hits:
            if cosines[hit.id] < least:
                assert engine.why_not("deploy the gateway", hit.id, **options).stage == "dissimilar"
    emptied = bool(found.hits) and not kept.hits  # by the highest of them
    assert any("nothing is similar enough: the best cosine is" in note for note in kept.notes) == emptied


def test_the_next_best_takes_the_place_of_what_is_not_similar(make: Make) -> None:
    engine = make("deploy deploy deploy " + "and much else about other things " * 4, "deploy it", embedding=True)
    (first,) = engine.search("deploy", mode="keyword", limit=1, min_similarity=0.5).hits
    assert first.id == "m1"


def test_without_a_cosine_it_says_so(make: Make) -> None:
    found = make("deploy it").search("deploy", min_similarity=0.9)
    assert (ids(found), found.notes[-1]) == (["m0"], "min_similarity has no effect: no embedder is configured")
    engine = make(NewMemory(text="deploy it", tags=["a"]), embedding=True)
    found = engine.search("tag:a", min_similarity=0.9)
    note = "min_similarity has no effect: the query has nothing to compare by meaning"
    assert (ids(found), found.notes) == (["m0"], (note,))


@pytest.mark.parametrize("least", [-1.1, 1.1, "much", True])
def test_the_least_cosine_is_checked(make: Make, least: Any) -> None:
    with pytest.raises(InvalidInput, match=r"min_similarity: is .* a number from -1 to 1 is allowed"):
        make("tea").search("tea", min_similarity=least)
