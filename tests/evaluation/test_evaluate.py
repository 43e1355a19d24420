"""Questions with known answers: their sources, the evaluation, and tuning."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre import Filter, InvalidInput, Lens, Nacre, NewMemory, NotFound, Recipe
from nacre.embedders.hashing import Hashing
from nacre.evaluation import evaluate, questions, tune
from nacre.evaluation.metrics import METRICS, Estimate
from nacre.evaluation.questions import JudgedQuestion, Questions
from nacre.evaluation.tune import TuneResult
from nacre.query.parser import parse
from nacre.types.memory import Memory, Progress
from nacre.types.recipe import weights_of

pytestmark = pytest.mark.slow

COLOURS = ("red", "blue", "green", "white", "black", "amber")
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=300)


def quiet(_: Progress) -> None:
    """Nobody looks at the progress."""


def line(**fields: object) -> str:
    return json.dumps(fields)


def remember(memory: Nacre, *texts: str, space: str | None = None) -> list[str]:
    return [each.id for each in memory.remember_many(NewMemory(text=text, space=space) for text in texts)]


def from_file(memory: Nacre, *lines: str | bytes) -> Questions:
    return questions.from_file(memory, "default", lines)


# ---------------------------------------------------------------- from a file


def test_a_file_names_ids_or_texts(unlogged: Nacre) -> None:
    tea, coffee, milk = remember(unlogged, "Ada drinks green\n tea", "Grace drinks coffee", "Green tea wants no milk")
    asked = from_file(
        unlogged,
        line(query="what does Ada drink?", ids=[tea]),
        "",
        f"what does Grace drink?\t{coffee}\r\n",
        line(query="which tea?", answer="GREEN  tea"),
        line(query="what is drunk?", ids=[tea, coffee]),
    )
    assert asked.unanswered == ()
    assert asked.judged == (
        JudgedQuestion("what does Ada drink?", "default", ((tea,),)),
        JudgedQuestion("what does Grace drink?", "default", ((coffee,),)),
        JudgedQuestion("which tea?", "default", ((tea, milk),)),  # either will do
        JudgedQuestion("what is drunk?", "default", ((tea,), (coffee,))),  # both are wanted
    )


def test_lines_of_one_question_are_one_question(unlogged: Nacre) -> None:
    tea, coffee, milk = remember(unlogged, "Ada drinks tea", "Ada drinks coffee", "Grace drinks milk")
    asked = from_file(
        unlogged,
        f"What does Ada drink?\t{tea}",
        f"what  does Ada drink?\t{coffee}",
        line(query="What does Ada drink?", answer="drinks coffee"),  # the same answer again
        line(query="What does Ada drink?", answer="drinks", space="other"),
        line(query="who drinks?", ids=[milk, tea, milk]),
    )
    assert [(each.query, each.answers) for each in asked.judged] == [
        ("What does Ada drink?", ((tea,), (coffee,))),
        ("who drinks?", ((milk,), (tea,))),
    ]
    assert asked.unanswered == ("What does Ada drink?",)  # that of the other space


def test_what_is_not_there_is_no_answer(unlogged: Nacre) -> None:
    kept, gone = remember(unlogged, "Ada drinks tea", "Ada drinks coffee")
    (other,) = remember(unlogged, "Ada drinks milk", space="other")
    unlogged.forget(gone)
    asked = from_file(
        unlogged,
        f"forgotten\t{gone}",
        "unknown\tnobody",
        f"of another space\t{other}",
        line(query="forgotten text", answer="coffee"),
        line(query="text of another space", answer="milk"),
        line(query="some", ids=[gone, kept, other]),
        line(query="there", ids=[other], space="other"),
        line(query="there by its text", answer="milk", space="other"),
    )
    assert asked.unanswered == (
        "forgotten", "unknown", "of another space", "forgotten text", "text of another space",
    )  # fmt: skip
    assert asked.judged == (
        JudgedQuestion("some", "default", ((kept,),)),
        JudgedQuestion("there", "other", ((other,),)),
        JudgedQuestion("there by its text", "other", ((other,),)),
    )


def test_near_duplicates_are_one_answer(unlogged: Nacre) -> None:
    first, second = remember(
        unlogged,
        "The staging cluster in Frankfurt runs Kubernetes 1.29",
        "Note: the staging cluster in Frankfurt runs Kubernetes 1.29.",
    )
    assert [each.id for each in unlogged.similar(first)] == [second]
    (judged,) = from_file(unlogged, line(query="kubernetes", ids=[second, first])).judged
    assert judged.answers == ((second, first),)
    (measured,) = evaluate.evaluate(unlogged, Questions("file", (judged,)), ["hybrid"], 10, 1, quiet)
    assert measured.metrics["recall@5"] == Estimate(1, 1, 1)  # one is shown, and that is all of it
    (hit,) = unlogged.search("kubernetes").hits
    (hidden,) = hit.similar
    under_it = Questions("file", (JudgedQuestion("kubernetes", "default", ((hidden,),)),))
    (measured,) = evaluate.evaluate(unlogged, under_it, ["hybrid"], 10, 1, quiet)
    assert measured.metrics["recall@5"] == Estimate(1, 1, 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "no tab here",
            "line 2: query: must be followed by a tab and an id, or be in a JSON object with ids or answer",
        ),
        ("a query\t ", "line 2: query: must be followed by a tab"),
        ("a query\tid\tmore", "line 2: query: must be followed by a tab"),
        (" \tid", "line 2: query: is blank"),
        ("{not json", "line 2: cannot be read (Expecting property name"),
        (b"\xff\xfe", "line 2: cannot be read ('utf-8' codec"),
        ('{"a":' + "[" * 100_000, "line 2: cannot be read (maximum recursion depth"),
        (line(query="q"), "line 2: ids: or answer must be given, but not both"),
        (line(query="q", ids=["a"], answer="b"), "line 2: ids: or answer must be given, but not both"),
        (line(query="q", ids=[]), "line 2: ids: must be a list of ids, at least one"),
        (line(query="q", ids="a"), "line 2: ids: must be a list of ids, at least one"),
        (line(query="q", ids=[1]), "line 2: ids: must be a list of ids, at least one"),
        (line(ids=["a"]), "line 2: query: is blank; give the question"),
        (line(query=" ", ids=["a"]), "line 2: query: must be a text that is not blank"),
        (line(query=7, ids=["a"]), "line 2: query: must be a text that is not blank"),
        (line(query="q", answer=""), "line 2: answer: must be a text that is not blank"),
        (line(query="q", answer="a", space="x" * 201), "line 2: where.spaces: "),
        (line(query="q", id="a"), "line 2: id: is unknown; allowed: query, ids, answer, space"),
    ],
)
def test_a_bad_line_is_named(unlogged: Nacre, bad: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_file(unlogged, "good\tid", bad, "never read")
    assert str(raised.value).startswith(message)


def test_a_byte_order_mark_is_no_part_of_a_question(unlogged: Nacre) -> None:
    (tea,) = remember(unlogged, "tea")
    for first in (f"\ufefftea\t{tea}\n".encode(), f"\ufefftea\t{tea}\n"):
        assert [each.query for each in from_file(unlogged, first).judged] == ["tea"]


# ---------------------------------------------------------------- from the log


@pytest.fixture
def logged(path: Path) -> Iterator[Nacre]:
    """An open store that keeps a log."""
    with nacre.open(path, embedder=Hashing()) as opened:
        yield opened


def test_what_was_opened_or_used_is_an_answer_and_what_was_wrong_is_none(logged: Nacre) -> None:
    tea, coffee, milk, water = remember(logged, "drink tea", "drink coffee", "drink milk", "drink water")
    first = logged.search("what to drink?")
    logged.mark(tea, "opened", first.receipt)
    logged.mark([coffee, milk], "used", first.receipt)
    logged.mark([milk, water], "wrong", first.receipt)
    logged.search("nothing became of this drink")
    only_wrong = logged.search("wrong drink")
    logged.mark(milk, "wrong", only_wrong.receipt)
    asked = questions.from_log(logged, "default")
    (judged,) = asked.judged
    assert asked.unanswered == ("wrong drink",)
    assert (judged.query, judged.space) == ("what to drink?", "default")
    assert {each for (each,) in judged.answers} == {tea, coffee}
    assert set(judged.wrong) == {milk, water}
    (measured,) = evaluate.evaluate(logged, asked, ["keyword"], 10, 1, quiet)
    assert measured.wrong == 2
    (measured,) = evaluate.evaluate(logged, asked, ["keyword"], 1, 1, quiet)
    assert measured.wrong <= 1


def test_a_question_that_was_asked_twice_is_asked_once_as_of_the_last_time(logged: Nacre) -> None:
    tea, coffee, milk = remember(logged, "drink tea", "drink coffee", "drink milk")
    first = logged.search("What drink?")
    logged.mark([tea, milk], "used", first.receipt)
    second = logged.search("what  drink?")
    logged.mark(coffee, "used", second.receipt)
    logged.mark(milk, "wrong", second.receipt)
    remember(logged, "drink drink")  # later
    (judged,) = questions.from_log(logged, "default").judged
    newest, _ = logged.receipts()
    assert (judged.query, judged.as_of) == ("what  drink?", newest.at)
    assert ({each for (each,) in judged.answers}, judged.wrong) == ({tea, coffee}, (milk,))
    (measured,) = evaluate.evaluate(logged, Questions("log", (judged,)), ["keyword"], 3, 1, quiet)
    assert measured.metrics["recall@5"].mean == 1  # what came later is not in the way


def test_the_log_of_another_space_is_not_read(logged: Nacre) -> None:
    (own,) = remember(logged, "drink tea")
    (other,) = remember(logged, "drink coffee", space="other")
    logged.mark(own, "used", logged.search("own drink").receipt)
    both = logged.search("both drink", where=Filter(spaces=("default", "other")))
    logged.mark([own, other], "used", both.receipt)
    logged.mark(other, "used", logged.search("other drink", where=Filter(spaces=("other",))).receipt)
    assert {each.query: each.answers for each in questions.from_log(logged, "default").judged} == {
        "own drink": ((own,),),
        "both drink": ((own,),),
    }
    assert {each.query: each.answers for each in questions.from_log(logged, "other").judged} == {
        "other drink": ((other,),)
    }


def test_marks_do_not_teach_the_answers_to_the_test(logged: Nacre) -> None:
    """A memory that was used is raised; asked as of then, the question finds it where it was."""
    remember(logged, *(f"tea number {each}" for each in range(3)))
    found = logged.search("tea", recipe=Recipe(usage_weight=1.0))
    last = found.hits[-1].id
    logged.mark(last, "used", found.receipt)
    assert logged.search("tea", recipe=Recipe(usage_weight=1.0)).hits[0].id == last
    asked = questions.from_log(logged, "default")
    logged.save_lens(Lens(name="learned", recipe={"usage_weight": 1.0}, questions=("*",)))
    (measured,) = evaluate.evaluate(logged, asked, ["hybrid"], 10, 1, quiet)
    assert measured.metrics["MRR@10"].mean == pytest.approx(1 / 3)


def test_a_long_log_is_read_to_its_end(logged: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_PAGE", 2)
    (tea,) = remember(logged, "tea")
    for number in range(5):
        logged.mark(tea, "used", logged.search(f"tea {number}").receipt)
    assert len(questions.from_log(logged, "default").judged) == 5


# ---------------------------------------------------------------- probes


def made(**fields: object) -> Memory:
    usual: dict[str, object] = {
        "id": "1", "space": "default", "kind": "note", "namespace": "general", "text": "", "summary": None, "tags": (),
        "source": None, "session": None, "position": None, "metadata": {}, "importance": 0.5, "created": NOW,
        "updated": NOW,
    }  # fmt: skip
    return Memory(**usual | fields)  # type: ignore[arg-type]


def probes(memory: Memory, rarity: dict[str, int]) -> set[str]:
    return {questions._probe(memory, rarity, random.Random(seed)) for seed in range(40)}


def test_a_probe_has_the_rarest_words() -> None:
    short = made(text="Ada, the gateway: Zurich port")
    rarity = {"ada": 9, "gateway": 2, "zurich": 1, "port": 5}
    assert probes(short, rarity) == {"ada gateway zurich port"}
    longer = made(text="Ada: gateway Zurich port staging")
    assert probes(longer, rarity | {"staging": 4}) == {"gateway zurich port staging"}  # but ada, which most have


def test_a_probe_is_the_summary_or_most_of_a_sentence() -> None:
    text = "Yes. The deploy to staging failed on Monday because Ada filled its disk! Why?"
    found = probes(made(text=text, summary="Disk full"), dict.fromkeys(questions._significant_words(text), 1))
    assert "disk full" in found
    said = ["the", "deploy", "to", "staging", "failed", "on", "monday", "because", "ada", "filled", "its", "disk"]
    sentences = {each for each in found if len(each.split()) == 8}  # two thirds of twelve
    assert len(sentences) > 5  # other words are left out each time
    for each in sentences:
        rest = iter(said)
        assert all(word in rest for word in each.split())  # in their order
    assert {len(each.split()) for each in found} == {2, 4, 8}


def test_nothing_can_be_asked_of_a_memory_without_words() -> None:
    assert probes(made(text="🎉"), {}) == {""}
    assert probes(made(text="to be or not to be and all that"), {}) == {""}
    assert probes(made(text="🎉", summary="party"), {}) == {"party"}


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('abc XYZ "():-*,.!\n用語Яй١é_NOTAND:tag space:x'), max_size=80), st.integers(0, 9))
def test_a_probe_is_never_read_as_more_than_words(text: str, seed: int) -> None:
    memory = made(text=text, summary=text[::-1])
    rarity = dict.fromkeys(questions._significant_words(text), 1)
    query = questions._probe(memory, rarity, random.Random(seed))
    question = parse(query, NOW)
    assert question.must is None
    assert not question.quoted


def test_probes_are_those_of_the_seed_and_of_the_space(unlogged: Nacre) -> None:
    own = remember(unlogged, *(f"note {each} about topic{each} and matter{each % 7}" for each in range(50)))
    remember(unlogged, *(f"foreign {each} about topic{each}" for each in range(50)), space="other")
    asked = questions.from_probes(unlogged, "default", 20, 5)
    assert asked == questions.from_probes(unlogged, "default", 20, 5)
    assert asked != questions.from_probes(unlogged, "default", 20, 6)
    found = [each for judged in asked.judged for answer in judged.answers for each in answer]
    assert len(set(found)) == len(found) == 20
    assert set(found) < set(own)
    assert {each.space for each in asked.judged} == {"default"}
    assert set(found) != set(own[:20])
    (measured,) = evaluate.evaluate(unlogged, asked, ["keyword"], 10, 1, quiet)
    assert measured.metrics["recall@10"].mean == 1


def test_every_memory_has_the_same_chance_and_only_those_of_the_space(unlogged: Nacre) -> None:
    remember(unlogged, "own tea", "own coffee")
    ids = remember(unlogged, *(f"foreign {each}" for each in COLOURS), space="other")
    drawn = Counter[str]()
    for seed in range(200):
        asked = questions.from_probes(unlogged, "other", 2, seed)
        drawn.update(answer[0] for judged in asked.judged for answer in judged.answers)
    assert drawn.keys() == set(ids)
    assert all(40 < times < 95 for times in drawn.values())  # 66.7 expected, with a deviation of 6.7


def test_rarity_is_that_of_the_space(unlogged: Nacre) -> None:
    remember(unlogged, "red apple", "red pear", "apple")
    remember(unlogged, "apple pie", "apple tree", space="other")
    assert questions._document_frequencies(unlogged, "default", {"red", "apple", "pear", "tree"}) == {
        "red": 2, "apple": 2, "pear": 1,
    }  # fmt: skip


# ---------------------------------------------------------------- which source


def test_the_source_is_the_file_or_a_log_that_is_long_enough_or_probes(path: Path, logged: Nacre) -> None:
    (tea,) = remember(logged, "tea")
    for number in range(questions.JUDGED_MIN):
        assert questions.load_questions(logged, "default").source == "probes"
        logged.mark(tea, "used", logged.search(f"tea {number}").receipt)
    assert questions.load_questions(logged, "default").source == "log"
    assert questions.load_questions(logged, "default", lines=[f"tea\t{tea}"]).source == "file"
    assert questions.load_questions(logged, "default", "probes").source == "probes"
    assert path.exists()


def test_a_sample_is_drawn_by_its_seed(unlogged: Nacre) -> None:
    (tea,) = remember(unlogged, "tea")
    lines = [f"question {each}\t{tea}" for each in range(30)]
    queries = [
        [each.query for each in questions.load_questions(unlogged, "default", lines=lines, sample=5, seed=seed).judged]
        for seed in (1, 1, 2)
    ]
    assert queries[0] == queries[1] != queries[2]
    assert len(set(queries[0])) == 5
    assert len(questions.load_questions(unlogged, "default", lines=lines).judged) == 30
    assert len(questions.load_questions(unlogged, "default", lines=lines, sample=40).judged) == 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "file"}, "file: is missing; name a file with questions"),
        ({"source": "log", "lines": []}, "from: is log, but a file was given; give one of the two"),
        ({"sample": 0}, "sample: is 0; a whole number from 1 to 10,000 is allowed"),
        ({"sample": 10_001}, "sample: is 10001;"),
    ],
)
def test_sources_that_make_no_sense(unlogged: Nacre, given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        questions.load_questions(unlogged, "default", **given)  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("file", "questions: none has an answer among the live memories of its space"),
        ("log", "questions: none is judged; open memories that a search returned"),
        ("probes", "questions: there are no memories with words in this space"),
    ],
)
def test_nothing_to_ask_is_said(unlogged: Nacre, source: questions.Source, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        evaluate.evaluate(unlogged, Questions(source, ()), ["keyword"], 10, 1, quiet)
    assert str(raised.value).startswith(message)


# ---------------------------------------------------------------- asking


def test_answers_are_measured_where_they_stand(unlogged: Nacre) -> None:
    """By words alone: a memory with more of the words stands higher, of equals the older one."""
    both, red, blue, far = remember(unlogged, "red blue", "red", "blue", "green fish")
    asked = Questions(
        "file",
        (
            JudgedQuestion("red blue", "default", ((red,),)),  # number 2: 1 / log2 3
            JudgedQuestion("red blue", "default", ((both,), (blue,))),  # numbers 1 and 3
            JudgedQuestion("red blue", "default", ((far,),)),  # not there
        ),
    )
    states: list[Progress] = []
    (measured,) = evaluate.evaluate(unlogged, asked, ["keyword"], 10, 1, states.append)
    assert [hit.id for hit in unlogged.search("red blue", mode="keyword").hits] == [both, red, blue]
    means = {name: each.mean for name, each in measured.metrics.items()}
    assert means == {
        "recall@5": pytest.approx(2 / 3),
        "recall@10": pytest.approx(2 / 3),
        "nDCG@10": pytest.approx((0.630930 + 1.5 / 1.630930 + 0) / 3, abs=1e-6),
        "MRR@10": pytest.approx((1 / 2 + 1 + 0) / 3),
    }
    assert (measured.missed, measured.stages) == (1, {"no match": 1})
    (lost,) = measured.examples
    assert (lost.query, lost.memory_id, lost.left_out) == (
        "red blue", far, unlogged.why_not("red blue", far, mode="keyword"),
    )  # fmt: skip
    assert states == [Progress(1, 3), Progress(2, 3), Progress(3, 3)]


def test_what_was_lost_is_counted_by_stage(unlogged: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = remember(unlogged, *(f"red number {each}" for each in range(12)), "green")
    judged = [JudgedQuestion("red", "default", ((each,),)) for each in ids]
    (measured,) = evaluate.evaluate(unlogged, Questions("file", tuple(judged)), ["keyword"], 5, 1, quiet)
    assert (measured.missed, measured.stages) == (8, {"limit": 7, "no match": 1})
    assert [each.left_out.stage for each in measured.examples] == ["limit"] * 3 + ["no match"]
    assert measured.examples[0].left_out.remedy == "set the limit to 6"
    monkeypatch.setattr(evaluate, "_EXPLAINED_MAX", 2)
    (measured,) = evaluate.evaluate(unlogged, Questions("file", tuple(judged)), ["keyword"], 5, 1, quiet)
    assert (measured.missed, measured.stages) == (8, {"limit": 2})


def test_modes_stand_side_by_side_and_tell_what_all_questions_were_given(path: Path) -> None:
    with nacre.open(path, embedder="none", log=False) as memory:
        ids = remember(memory, "red fish", "blue fish")
        judged = (JudgedQuestion("red", "default", ((ids[0],),)), JudgedQuestion('"blue', "default", ((ids[1],),)))
        found = evaluate.evaluate(memory, Questions("file", judged), ["keyword", "semantic", "hybrid"], 10, 1, quiet)
    assert [each.mode for each in found] == ["keyword", "semantic", "hybrid"]
    assert [each.metrics["recall@5"].mean for each in found] == [1, 0, 1]
    assert [each.notes for each in found] == [
        (),
        ("no embedder is configured: no results by meaning",),
        ("no embedder is configured: keyword results only",),
    ]


def test_an_answer_counts_once(unlogged: Nacre) -> None:
    """Two memories that both say it: the second is no further answer, and takes nothing away."""
    first, second = remember(unlogged, "red fish", "red bird")
    (judged,) = from_file(unlogged, line(query="red", answer="red")).judged
    assert judged.answers == ((first, second),)
    (measured,) = evaluate.evaluate(unlogged, Questions("file", (judged,)), ["keyword"], 10, 1, quiet)
    assert {each.mean for each in measured.metrics.values()} == {1.0}


def test_a_question_is_asked_of_its_own_space(unlogged: Nacre) -> None:
    (own,) = remember(unlogged, "red fish")
    (other,) = remember(unlogged, "red fish", space="other")
    asked = from_file(unlogged, f"red\t{own}", line(query="red", ids=[other], space="other"))
    (measured,) = evaluate.evaluate(unlogged, asked, ["hybrid"], 1, 1, quiet)
    assert measured.metrics["MRR@10"] == Estimate(1, 1, 1)
    across = Questions("file", (JudgedQuestion("red", "default", ((other,),)),))
    (measured,) = evaluate.evaluate(unlogged, across, ["hybrid"], 10, 1, quiet)
    assert (measured.metrics["recall@10"].mean, measured.stages) == (0, {"space": 1})


def test_bad_options_are_refused(unlogged: Nacre) -> None:
    (tea,) = remember(unlogged, "tea")
    asked = from_file(unlogged, f"tea\t{tea}")
    with pytest.raises(InvalidInput, match="mode: 'fuzzy' is unknown"):
        evaluate.evaluate(unlogged, asked, ["fuzzy"], 10, 1, quiet)
    with pytest.raises(InvalidInput, match="limit: is 0"):
        evaluate.evaluate(unlogged, asked, ["keyword"], 0, 1, quiet)


def everything(memory: Nacre) -> tuple[object, ...]:
    return memory._store.sequence(), memory.receipts(limit=1_000), memory.lenses(), memory.stats().events


def test_asking_and_tuning_write_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "_VALUES", {"alpha": (0.3,)})
    with nacre.open(path, embedder=Hashing()) as memory:
        lines = [f"red {each}\t{id_}" for each, id_ in enumerate(remember(memory, *(f"red {n}" for n in range(24))))]
        for each in lines:
            memory.get(memory.search(each.partition("\t")[0]).hits[0].id)
    before = path.read_bytes()
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        known = everything(memory)
        for asked in (from_file(memory, *lines), questions.from_log(memory, "default")):
            assert len(asked.judged) == 24
            evaluate.evaluate(memory, asked, ["keyword", "hybrid"], 10, 1, quiet)
            tune.tune(memory, asked, 1, quiet)
        questions.from_probes(memory, "default", 10)
        assert everything(memory) == known
    assert path.read_bytes() == before


# ---------------------------------------------------------------- tuning

# Three memories a project, made of the same words: the first was written long ago, two are new. They are episodes: of
# two notes that are much alike the newer goes first, whatever its recency weighs.
PROJECTS = [f"{first}{second}ow" for first in ("bru", "cla", "dri", "fle", "gno", "sku") for second in "kmpt"]


@pytest.fixture
def projects(unlogged: Nacre, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    monkeypatch.setattr(tune, "_VALUES", {"alpha": (0.3, 0.75), "recency_weight": (0.0, 0.1, 0.5)})
    orders = (
        "{} budget of the year was approved",
        "approved was the {} budget of year",
        "of year the approved budget was {}",
    )
    created = (OLD, NOW, NOW)
    texts = [
        NewMemory(text=order.format(name), kind="episode", created=moment)
        for order, moment in zip(orders, created, strict=True)
        for name in PROJECTS
    ]
    ids = [each.id for each in unlogged.remember_many(texts)]
    assert not any(unlogged.similar(each) for each in ids)
    return [ids[at :: len(PROJECTS)] for at in range(len(PROJECTS))]


def asked_of(projects: list[list[str]], which: Callable[[int], int]) -> Questions:
    judged = [
        JudgedQuestion(f"the budget of {name}", "default", ((ids[which(at)],),))
        for at, (name, ids) in enumerate(zip(PROJECTS, projects, strict=True))
    ]
    return Questions("file", tuple(judged))


def test_tuning_finds_what_is_better(unlogged: Nacre, projects: list[list[str]]) -> None:
    """Who asks wants the old memory, and the new ones stand before it, because they are new."""
    asked = asked_of(projects, lambda _: 0)
    states: list[Progress] = []
    tuning = tune.tune(unlogged, asked, 1, states.append)
    assert tuning.better
    assert (tuning.changes, tuning.recipe) == ({"recency_weight": (0.1, 0.0)}, {"recency_weight": 0.0})
    assert (tuning.chosen_on, tuning.held_out) == (12, 12)
    assert tuning.start == pytest.approx(0.5)  # number 3: 1 / log2 4
    assert tuning.attempts[0] == tune.Attempt("recency_weight", 0.0, 1.0)
    assert tuning.before["nDCG@10"].mean == pytest.approx(0.5)
    assert tuning.after["nDCG@10"] == Estimate(1, 1, 1)
    assert tuning.difference["nDCG@10"].low == pytest.approx(0.5)
    assert tuning == tune.tune(unlogged, asked, 1, quiet)
    assert [each.done for each in states] == list(range(1, len(states) + 1))
    assert states[-1].done <= states[-1].total


def test_tuning_changes_nothing_where_nothing_is_better(unlogged: Nacre, projects: list[list[str]]) -> None:
    """Who asks wants a new memory, and has it."""
    tuning = tune.tune(unlogged, asked_of(projects, lambda _: 1), 1, quiet)
    assert not tuning.better
    assert (tuning.changes, tuning.recipe, tuning.after, tuning.difference) == ({}, {}, {}, {})
    assert tuning.before["nDCG@10"].mean == 1.0
    with pytest.raises(InvalidInput, match="tuning: is not better; there is nothing to apply"):
        tune.apply(unlogged, tuning)


def test_chance_is_not_taken_for_better(unlogged: Nacre, projects: list[list[str]]) -> None:
    """Any of three is the answer, without rhyme or reason: what helps one half does not help the other."""
    chosen = random.Random(13)
    asked = asked_of(projects, lambda _: chosen.randrange(3))
    tunings = [tune.tune(unlogged, asked, seed, quiet) for seed in (1, 2)]
    assert all(each.changes for each in tunings)  # one half was taken in
    assert not any(each.better for each in tunings)


def test_better_is_what_lies_above_0_for_sure() -> None:
    tuning = TuneResult(10, 10, 0.5, (), {"alpha": (0.5, 0.7)}, {"alpha": 0.7}, {}, {}, {})
    for low, better in ((0.01, True), (0.0, False), (-0.01, False)):
        difference = {name: Estimate(0.1, 0.05, 0.2) for name in METRICS} | {"nDCG@10": Estimate(0.1, low, 0.2)}
        assert replace(tuning, difference=difference).better is better


def test_what_was_tuned_is_used_and_taken_back(unlogged: Nacre, projects: list[list[str]]) -> None:
    asked = asked_of(projects, lambda _: 0)
    query, old = asked.judged[0].query, projects[0][0]
    with pytest.raises(NotFound, match="nothing was tuned in this space"):
        tune.undo(unlogged)
    tune.apply(unlogged, tune.tune(unlogged, asked, 1, quiet))
    result = unlogged.search(query)
    assert (result.lens, result.hits[0].id) == ("tuned", old)
    assert unlogged.search(query, lens="none").hits[0].id != old
    (measured,) = evaluate.evaluate(unlogged, asked, ["hybrid"], 10, 1, quiet)  # asked as any search is
    assert measured.metrics["MRR@10"].mean == 1.0
    again = tune.tune(unlogged, asked, 1, quiet)  # begins with what is in use
    assert (again.start, again.changes, again.better) == (1.0, {}, False)
    assert again.recipe == {"recency_weight": 0.0}
    tune.undo(unlogged)
    assert unlogged.search(query).lens is None
    assert [each for each in unlogged.lenses() if not each.built_in] == []


def test_the_usual_recipe_may_turn_out_better(unlogged: Nacre, projects: list[list[str]]) -> None:
    tune.apply(unlogged, tune.tune(unlogged, asked_of(projects, lambda _: 0), 1, quiet))
    back = tune.tune(unlogged, asked_of(projects, lambda _: 1), 1, quiet)
    assert (back.better, back.recipe) == (True, {})
    tune.apply(unlogged, back)
    assert [each for each in unlogged.lenses() if not each.built_in] == []


def test_a_lens_of_ones_own_is_not_overwritten(unlogged: Nacre, projects: list[list[str]]) -> None:
    own = unlogged.save_lens(Lens(name="tuned", where=Filter(tags_any=("music",)), questions=("guitar",)))
    asked = asked_of(projects, lambda _: 0)
    for attempt in (lambda: tune.tune(unlogged, asked, 1, quiet), lambda: tune.undo(unlogged)):
        with pytest.raises(InvalidInput, match="lens: tuned is a lens of your own; save it under another name"):
            attempt()
    assert unlogged.lens("tuned") == own


def test_other_lenses_do_not_act_while_tuning(unlogged: Nacre, projects: list[list[str]]) -> None:
    unlogged.save_lens(Lens(name="nothing", where=Filter(tags_any=("absent",)), questions=("budget",)))
    assert tune.tune(unlogged, asked_of(projects, lambda _: 1), 1, quiet).start == 1.0


def test_every_field_that_is_tuned_may_have_every_value(unlogged: Nacre) -> None:
    remember(unlogged, "tea")
    for name, values in tune._VALUES.items():
        assert weights_of(Recipe())[name] in values  # what is usual can be gone back to
        for value in values:
            unlogged.search("tea", recipe=tune._with(Recipe(), name, value))


# ---- on what


def test_tuning_wants_judged_questions_of_its_space(unlogged: Nacre) -> None:
    ids = remember(unlogged, *(f"tea {each}" for each in range(20)))
    (other,) = remember(unlogged, "tea", space="other")
    lines = [f"tea {each}\t{id_}" for each, id_ in enumerate(ids)]
    foreign = line(query="tea", ids=[other], space="other")
    asked = tune.tuning_questions(unlogged, "default", None, [foreign, *lines])
    assert (asked.source, len(asked.judged), asked.elsewhere) == ("file", 20, 1)
    assert {each.space for each in asked.judged} == {"default"}
    with pytest.raises(InvalidInput) as raised:
        tune.tuning_questions(unlogged, "default", None, [foreign, *lines[1:]])
    assert str(raised.value).startswith(
        "questions: 19 have a known answer in space default, and 20 are needed; give a file with questions and answers"
    )
    with pytest.raises(InvalidInput, match="questions: 0 have a known answer in space default"):
        tune.tuning_questions(unlogged, "default", None, None)  # of the log
    with pytest.raises(InvalidInput, match="from: is probes, which are made of a memory's own words"):
        tune.tuning_questions(unlogged, "default", "probes", None)


def test_so_many_questions_are_enough(unlogged: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "_TUNED_MAX", 21)
    monkeypatch.setattr(tune, "_VALUES", {"alpha": (0.5,)})
    ids = remember(unlogged, *(f"tea {each}" for each in range(30)))
    asked = from_file(unlogged, *(f"tea {each}\t{id_}" for each, id_ in enumerate(ids)))
    tuning = tune.tune(unlogged, asked, 1, quiet)
    assert (tuning.chosen_on, tuning.held_out) == (10, 11)
