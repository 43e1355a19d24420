"""Late interaction in a search: what it compares, when it is left out, and which words it says have met."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import Cli
from engines import NOW, make_engines, opened, said, scores
from nacre import CLASSIC, EmbedderUnavailable, Filter, NewFact, Recipe, SearchRequest
from nacre.cli.render import why_lines
from nacre.embedders.hashing import Hashing
from nacre.engine import late_interaction_stage
from nacre.engine.engine import Nacre
from nacre.ranking import scoring
from nacre.ranking.late_interaction import NEIGHBOUR
from nacre.serialization import encode
from nacre.storage.reference import MemoryStore
from nacre.types.memory import NewMemory, Span
from nacre.types.recipe import adjusted
from nacre.types.search import Match, MatchedWord, SearchResult, Signals
from nacre.types.tokens import QueryTokens
from nacre.types.views import Neighbours
from stores import LOCAL_STORES, REAL_KINDS, Stores
from strategies import SESSION_FILTERS, SESSION_QUERIES, session_memories

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

# Words, clear meaning and late interaction, and nothing else.
PLAIN = adjusted(
    Recipe(), recency_weight=0, fresh_weight=0, hop_weight=0, exact_weight=0, echo_next=0, echo_far=0, echo_back=0
)
QUESTION = "Which nuts make Ada sneeze?"
ASKED = ("nuts", "make", "Ada", "sneeze")
NOTES = (
    "Ada cannot eat walnuts",
    "nuts make Ada sneeze, and so do cats",
    "Ada lives in Berlin",
    "the kettle leaks",
)


class Encoding(Hashing):
    """Keeps which queries it encoded, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []
        self.fails: Exception | None = None
        self.coverage = 1.0
        self.tokens = super().token_fingerprint

    @property
    def token_fingerprint(self) -> str:
        return self.tokens

    def vocabulary_coverage(self, text: str) -> float:
        return self.coverage if text else 0.0

    def query_tokens(self, text: str) -> QueryTokens:
        self.encoded.append(text)
        if self.fails is not None:
            raise self.fails
        return super().query_tokens(text)


@pytest.fixture(params=LOCAL_STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path, uncached: None) -> Iterator[Callable[..., Nacre]]:
    assert uncached is None
    with make_engines(request.param, tmp_path) as made:
        yield made


def maxsims(result: SearchResult) -> dict[str, float]:
    """The MaxSim of each hit that was compared."""
    return {
        hit.id: reason.numbers["maxsim"]
        for hit in result.hits
        for reason in hit.reasons
        if reason.signal == "maxsim" and "rank" in reason.numbers
    }


# ---------------------------------------------------------------- in a search


def test_a_text_with_the_words_of_the_question_is_raised(make: Callable[..., Nacre]) -> None:
    """Four tokens, "nuts", "make", "Ada" and "sneeze"; m1 has all of them, so its MaxSim is 1."""
    memory = make(*NOTES)
    result = memory.search(QUESTION, recipe=PLAIN)
    found = maxsims(result)
    assert result.hits[0].id == "m1"
    assert found["m1"] == pytest.approx(1)
    assert found["m1"] > found["m0"]
    (reason,) = (each for each in result.hits[0].reasons if each.signal == "maxsim")
    assert reason.numbers["rank"] == 1
    assert reason.numbers["compared"] == len(result.hits)
    assert reason.numbers["lead"] == pytest.approx(1 - min(found.values()))
    assert all(hit.score == scoring.score(hit.reasons) for hit in result.hits)
    off = memory.search(QUESTION, recipe=replace(PLAIN, maxsim_weight=0))
    share = PLAIN.maxsim_weight * reason.numbers["spread"] * reason.numbers["lead"]  # all of the query is known
    assert result.hits[0].score == pytest.approx(scores(off)["m1"] + share)


def test_the_turn_before_or_after_may_have_the_word(make: Callable[..., Nacre]) -> None:
    memory = make(*said("is it the nuts?", "they make Ada cough", "no, the cats"), "they make Ada cough again")
    found = maxsims(memory.search("nuts Ada cough", recipe=PLAIN, collapse=False))
    assert found["m1"] == pytest.approx((2 + NEIGHBOUR) / 3)
    assert found["m1"] > found["m3"]


def test_a_neighbour_that_the_search_may_not_see_has_no_say(make: Callable[..., Nacre]) -> None:
    turns = said("is it the nuts?", "they make Ada cough")
    memory = make(replace(turns[0], tags=["secret"]), turns[1])
    seen = maxsims(memory.search("nuts Ada cough", recipe=PLAIN))
    for query, where in (("nuts Ada cough -tag:secret", Filter()), ("nuts Ada cough", Filter(tags_none=["secret"]))):
        unseen = maxsims(memory.search(query, recipe=PLAIN, where=where))
        assert unseen.keys() == {"m1"}
        assert unseen["m1"] < seen["m1"]


def test_notes_of_a_session_are_no_neighbours(make: Callable[..., Nacre]) -> None:
    memory = make(*(NewMemory(text=text, session="s") for text in ("is it the nuts?", "they make Ada cough")))
    assert maxsims(memory.search("nuts Ada cough", recipe=PLAIN))["m1"] < (2 + NEIGHBOUR) / 3 - 0.05


def test_only_the_best_are_compared(make: Callable[..., Nacre]) -> None:
    memory = make(*(f"apricots {'pie ' * each}number {each}" for each in range(8)))
    recipe = replace(PLAIN, maxsim_pool=3)
    before = memory.search("apricots pie", recipe=replace(recipe, maxsim_weight=0), collapse=False).hits
    after = memory.search("apricots pie", recipe=recipe, collapse=False).hits
    assert maxsims(SearchResult(after)).keys() == {hit.id for hit in before[:3]}
    assert after[3:] == before[3:]


def test_of_a_long_text_the_nearest_passages_are_compared(make: Callable[..., Nacre]) -> None:
    """Nine passages; the word stands in the last one."""
    memory = make("tea and more tea. " * 500 + "The gasket leaks.", "a note on tea")
    result = memory.search("gasket", recipe=PLAIN)
    assert maxsims(result)["m0"] == pytest.approx(1)
    why = memory.why("gasket", "m0", recipe=PLAIN)
    assert why.matched == (MatchedWord("gasket", "gasket", 1.0, "m0"),)


def test_what_was_found_by_its_relation_is_compared_with_it(make: Callable[..., Nacre]) -> None:
    fact = NewFact(subject="Gateway", predicate="maintained by", object="Ada", relation=True)
    memory = make(NewMemory(text="notes of a long meeting", facts=[fact]), "the gateway was down", "Ada was here")
    result = memory.search("Gateway maintained Ada", recipe=PLAIN, merge_relations=True)
    assert result.hits[0].relation is not None
    assert maxsims(result)["m0"] == pytest.approx(1)
    why = memory.why("Gateway maintained Ada", "m0", recipe=PLAIN, merge_relations=True)
    assert [(each.asked, each.found) for each in why.matched] == [
        (each, each) for each in ("Gateway", "maintained", "Ada")
    ]


# ---------------------------------------------------------------- missing vectors


def test_a_memory_without_token_vectors_is_not_put_behind_all_others() -> None:
    store = MemoryStore()
    ids = [f"m{at}" for at in range(7)]
    texts = [f"apricots {'pie ' * at}number {at}" for at in range(7)]
    numbers = iter(ids)
    options = {"make_ids": lambda _, wanted: [next(numbers) for _ in range(wanted)]}
    opened(store, texts[0], token_vectors=False, **options)
    memory = opened(store, *texts[1:], **options)
    plain = replace(PLAIN, maxsim_weight=0)
    before = [hit.id for hit in memory.search("apricots", recipe=plain, collapse=False).hits]
    result = memory.search("apricots", recipe=PLAIN, collapse=False)
    assert before[0] == result.hits[0].id == "m0"  # all have the word, so their scores differ by nothing
    assert maxsims(result).keys() == set(ids) - {"m0"}
    (reason,) = (each for each in result.hits[0].reasons if each.signal == "maxsim")
    assert reason.numbers.keys() == {"compared", "weight", "coverage", "spread", "lead"}
    assert memory.why("apricots", "m0", recipe=PLAIN, collapse=False).matched == ()


def test_a_store_without_token_vectors_answers_as_before(make: Callable[..., Nacre]) -> None:
    without, having = make(*NOTES, token_vectors=False), make(*NOTES)
    off = having.search(QUESTION, recipe=replace(PLAIN, maxsim_weight=0))
    assert scores(without.search(QUESTION, recipe=PLAIN)) == scores(off)


def test_a_note_says_how_many_have_no_token_vectors() -> None:
    store = MemoryStore()
    numbers = iter(range(9))
    options = {"make_ids": lambda _, wanted: [f"m{next(numbers)}" for _ in range(wanted)]}
    without = opened(
        store, NOTES[0], NewMemory(text="nuts of another space", space="b"), token_vectors=False, **options
    )
    assert without.search(QUESTION).notes == ()  # as it was wished
    memory = opened(store, *NOTES[1:], **options)
    lacking = ("1 memory has no token vectors yet: run `nacre reembed`",)
    assert memory.search(QUESTION).notes == lacking
    assert memory.search(QUESTION, rerank=False).notes == ()
    assert memory.search(QUESTION, mode="keyword").notes == ()
    both = Filter(spaces=["default", "b"])
    assert memory.search(QUESTION, where=both).notes == ("2 memories have no token vectors yet: run `nacre reembed`",)
    list(memory.reembed())
    assert memory.search(QUESTION, where=both).notes == ()


def test_a_note_says_that_token_vectors_are_of_another_model(make: Callable[..., Nacre]) -> None:
    embedder = Encoding()
    memory = make(*NOTES, embedder=embedder)
    embedder.tokens = "another"
    result = memory.search(QUESTION, recipe=PLAIN)
    assert result.notes == ("the token vectors are of another model and are not used: run `nacre reembed`",)
    assert maxsims(result) == {}
    list(memory.reembed())
    assert memory.search(QUESTION, recipe=PLAIN).notes == ()


# ---------------------------------------------------------------- left out


@pytest.mark.parametrize("error", [EmbedderUnavailable("model: query.onnx is missing"), RuntimeError("damaged")])
def test_an_encoder_that_fails_is_noted_and_the_order_is_that_without_it(
    make: Callable[..., Nacre], error: Exception
) -> None:
    embedder = Encoding()
    memory = make(*NOTES, embedder=embedder)
    expected = memory.search(QUESTION, recipe=replace(PLAIN, maxsim_weight=0))
    embedder.fails = error
    result = memory.search(QUESTION, recipe=PLAIN)
    assert result.hits == expected.hits
    assert result.notes == (f"late interaction failed: ranked without it ({error})",)
    embedder.fails = None
    again = memory.search(QUESTION, recipe=PLAIN)  # the failure is not remembered
    assert maxsims(again)
    assert again.notes == ()


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (QUESTION, {"rerank": False}),
        (QUESTION, {"mode": "keyword"}),
        (QUESTION, {"mode": "semantic"}),
        (QUESTION, {"recipe": replace(PLAIN, maxsim_weight=0)}),
        (QUESTION, {"recipe": replace(PLAIN, fusion="boost")}),
        (QUESTION, {"recipe": CLASSIC}),
        ("tag:hot", {}),
        ("kind:note -tag:hot", {}),
    ],
)
def test_where_it_is_not_asked_for_nothing_is_encoded(
    make: Callable[..., Nacre], query: str, options: dict[str, Any]
) -> None:
    embedder = Encoding()
    memory = make(*NOTES, NewMemory(text="a hot kettle", tags=["hot"]), embedder=embedder)
    result = memory.search(query, **{"recipe": PLAIN, **options})
    assert result.hits
    assert maxsims(result) == {}
    assert embedder.encoded == []


@pytest.mark.parametrize("change", [{"coverage": 0.49}, {"tokens": "another model"}])
def test_what_the_encoder_cannot_compare_is_not_encoded(make: Callable[..., Nacre], change: dict[str, Any]) -> None:
    embedder = Encoding()
    memory = make(*NOTES, embedder=embedder)
    for name, value in change.items():
        setattr(embedder, name, value)
    assert maxsims(memory.search(QUESTION, recipe=PLAIN)) == {}
    assert embedder.encoded == []


def test_what_is_partly_known_counts_for_less(make: Callable[..., Nacre]) -> None:
    embedder = Encoding()
    memory = make(*NOTES, embedder=embedder)
    embedder.coverage = 0.5
    (reason,) = (each for each in memory.search(QUESTION, recipe=PLAIN).hits[0].reasons if each.signal == "maxsim")
    assert reason.value == pytest.approx(
        PLAIN.maxsim_weight * 0.5**2 * reason.numbers["spread"] * reason.numbers["lead"]
    )


def test_a_query_of_function_words_changes_nothing(make: Callable[..., Nacre]) -> None:
    memory = make(*NOTES)
    assert maxsims(memory.search("who and what", recipe=PLAIN)) == {}


# ---------------------------------------------------------------- what it asks


def test_a_query_is_encoded_once(make: Callable[..., Nacre]) -> None:
    embedder = Encoding()
    memory = make(*NOTES, embedder=embedder)
    first = memory.search(QUESTION, recipe=PLAIN)
    assert memory.search(QUESTION, recipe=PLAIN, limit=20).hits == first.hits
    assert embedder.encoded == [QUESTION]


def test_a_query_is_embedded_while_words_are_looked_up_and_encoded_after_that() -> None:
    """The store waits for the models, which could not happen if one ran after the other."""
    embedding, encoding = threading.Event(), threading.Event()
    order: list[str] = []

    class Announcing(Encoding):
        def embed_query(self, text: str) -> FloatVector:
            embedding.set()
            order.append("embedded")
            return super().embed_query(text)

        def query_tokens(self, text: str) -> QueryTokens:
            encoding.set()
            order.append("encoded")
            return super().query_tokens(text)

    class Waiting(MemoryStore):
        def lexical(self, *args: Any) -> list[Match]:
            assert embedding.wait(60)
            return super().lexical(*args)

        def signals(self, ids: Sequence[str]) -> dict[str, Signals]:
            assert not ids or encoding.wait(60)
            return super().signals(ids)

    with opened(Waiting(), *NOTES, embedder=Announcing()) as memory:
        assert maxsims(memory.search(QUESTION, recipe=PLAIN))
    assert order == ["embedded", "encoded"]


class Asked(MemoryStore):
    """Keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Sequence[str]] = []
        self.near: list[Sequence[str]] = []

    def token_vectors(
        self, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
    ) -> dict[str, tuple[tuple[int, bytes], ...]]:
        self.asked.append(list(ids))
        assert passages_max == late_interaction_stage.PASSAGES_COMPARED
        return super().token_vectors(ids, model, vector, passages_max)

    def neighbours(
        self, memory_ids: Sequence[str], before: int, after: int, *, turns: bool = False
    ) -> dict[str, Neighbours]:
        self.near.append(memory_ids)
        return super().neighbours(memory_ids, before, after, turns=turns)


def test_the_store_is_asked_once_for_all() -> None:
    store = Asked()
    memory = opened(store, *said(*NOTES), "nuts")
    assert maxsims(memory.search("nuts Ada", recipe=Recipe()))
    (ids,) = store.asked
    assert len(set(ids)) == len(ids)
    asked = [each for several in store.near for each in several]
    assert len(set(asked)) == len(asked)


@pytest.mark.slow
@given(
    REAL_KINDS,
    session_memories(NOW),
    st.sampled_from(SESSION_QUERIES),
    st.sampled_from(SESSION_FILTERS),
    st.integers(2, 6),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stores_compare_the_same(
    tmp_path_factory: pytest.TempPathFactory, kind: str, memories: list[NewMemory], query: str, where: Filter, pool: int
) -> None:
    turns = [replace(each, text=f"{each.text} x{number}") for number, each in enumerate(memories)]
    found = []
    with Stores(kind, tmp_path_factory.mktemp("tokens")) as stores:
        for store in (stores.open(), MemoryStore()):
            with opened(store, *turns) as memory:
                recipe = Recipe(recency_weight=0, fresh_weight=0, maxsim_pool=pool)
                found.append(memory.search(query, where=where, limit=50, recipe=recipe, collapse=False))
    real, reference = found
    assert [hit.id for hit in real.hits] == [hit.id for hit in reference.hits]
    assert maxsims(real) == maxsims(reference)
    assert scores(real) == pytest.approx(scores(reference), rel=1e-6)


# ---------------------------------------------------------------- which words met


def test_why_shows_which_words_met(make: Callable[..., Nacre]) -> None:
    memory = make(*NOTES)
    why = memory.why(QUESTION, "m1", recipe=PLAIN)
    assert [(each.asked, each.found) for each in why.matched] == [(each, each) for each in ASKED]
    assert [each.similarity for each in why.matched] == pytest.approx([1] * 4)
    lines = ["".join(text for text, _ in line) for line in why_lines(why)]
    at = next(number for number, line in enumerate(lines) if line.startswith("   maxsim: 1.000, rank 1 of "))
    assert lines[at + 1 : at + 5] == [f"      {each} → {each} 1.00" for each in ASKED]
    assert encode.why(why)["matched"] == [
        {"asked": each, "found": each, "similarity": pytest.approx(1), "memory_id": "m1"} for each in ASKED
    ]
    assert memory.why(QUESTION, "m1", recipe=replace(PLAIN, maxsim_weight=0)).matched == ()


def test_the_words_make_the_score(make: Callable[..., Nacre]) -> None:
    memory = make(*said(*NOTES))
    for hit in memory.search(QUESTION, recipe=PLAIN).hits:
        why = memory.why(QUESTION, hit.id, recipe=PLAIN)
        assert why.hit == hit
        total = sum(each.similarity for each in why.matched) / len(ASKED)
        assert total == pytest.approx(maxsims(SearchResult((hit,)))[hit.id])


def test_a_word_of_a_neighbour_names_its_memory(make: Callable[..., Nacre]) -> None:
    memory = make(*said("is it the nuts?", "they make Ada cough"))
    why = memory.why("nuts Ada cough", "m1", recipe=PLAIN)
    assert why.matched[0] == MatchedWord("nuts", "nuts", NEIGHBOUR, "m0")
    assert {each.memory_id for each in why.matched[1:]} == {"m1"}
    assert "      nuts → nuts 0.90 in m0" in ["".join(text for text, _ in line) for line in why_lines(why)]


class Pieces(Encoding):
    """Cuts words into pieces of four letters."""

    def token_spans(self, text: str) -> list[Span]:
        return [
            Span(start, min(start + 4, word.end))
            for word in super().token_spans(text)
            for start in range(word.start, word.end, 4)
        ]


def test_words_of_several_pieces_are_shown_whole(make: Callable[..., Nacre]) -> None:
    memory = make("her wonderful umbrella", "a kettle", embedder=Pieces())
    why = memory.why("wonderfully umbrella?", "m0", recipe=PLAIN)
    assert [(each.asked, each.found) for each in why.matched] == [
        ("wonderfully", "wonderful"),
        ("umbrella", "umbrella"),
    ]
    assert why.matched[0].similarity == pytest.approx(1)  # of its best piece


def test_why_not_tells_the_place_word_by_word(make: Callable[..., Nacre]) -> None:
    memory = make(*NOTES)
    found = memory.why_not(QUESTION, "m0", recipe=PLAIN, limit=1)
    assert found.stage == "limit"
    assert re.search(r"and only 1 are shown; word by word it is number [2-4] of \d$", found.explanation)
    off = memory.why_not(QUESTION, "m0", recipe=replace(PLAIN, maxsim_weight=0), limit=1)
    assert off.explanation.endswith("and only 1 are shown")


def test_the_command_line_shows_which_words_met(cli: Cli) -> None:
    tea = cli("remember", "nuts make Ada sneeze", "--json").json["id"]
    cli("remember", "the kettle leaks")
    explained = cli("why", tea, "which nuts?", "--json").json
    assert [each["asked"] for each in explained["matched"]] == ["nuts"]
    assert "      nuts → nuts 1.00" in cli("why", tea, "which nuts?").out.splitlines()
    assert "maxsim: " in cli("search", "which nuts?", "--why").out
    assert cli("why", tea, "which nuts?", "--recipe", "maxsim_weight=0", "--json").json["matched"] == []


def test_without_its_neighbour_a_memory_has_its_own_words(make: Callable[..., Nacre]) -> None:
    """A turn may be purged between the search and the explanation."""
    memory = make(*said("is it the nuts?", "they make Ada cough"))
    trace = memory._searcher.trace(SearchRequest(query="nuts Ada cough", recipe=PLAIN))
    words = memory._searcher.late_interaction.matched_words(trace.plan, memory._store.get(["m1"]), {})
    assert {each.memory_id for each in words} == {"m1"}


def test_json_of_a_reason_has_its_numbers(make: Callable[..., Nacre]) -> None:
    memory = make(*NOTES)
    result = json.loads(json.dumps(encode.search_result(memory.search(QUESTION, recipe=PLAIN))))
    (reason,) = (each for each in result["hits"][0]["reasons"] if each["signal"] == "maxsim")
    assert reason["numbers"].keys() >= {"maxsim", "rank", "compared", "lead"}
