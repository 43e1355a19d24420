"""`nacre eval` and `nacre tune`: what a person sees of questions with known answers, and what is written for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import nacre
from command_line import Cli
from nacre import Lens, NewMemory
from nacre.cli import render
from nacre.embedders.hashing import Hashing
from nacre.evaluation import metrics, questions, tune
from nacre.types.memory import Progress

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
COLOURS = ("red", "blue", "green", "white", "black", "amber", "pink", "grey", "teal", "olive", "coral", "mauve")
LOST = (
    "it shares no significant term with the query; to include it: ask with words that it has, or search by meaning, too"
)
PROBES = (
    "probes, each built from the words of one memory. They measure whether memories can be found by their own words, "
)


@pytest.fixture(autouse=True)
def _small_grid(own_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_settings is None
    monkeypatch.setattr(tune, "_VALUES", {"recency_weight": (0.0, 0.1)})  # the whole grid takes its time


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "questions.tsv"


@pytest.fixture
def cars(path: Path, file: Path) -> list[str]:
    """An old and a new memory of the same words for each of 24 cars. Whoever asks wants the old one.

    They are episodes: of two notes that are much alike the newer goes first, whatever its recency weighs.
    """
    names = [f"{size} {colour} car" for size in ("tiny", "huge") for colour in COLOURS]
    ago = NOW - timedelta(days=300)
    old = [NewMemory(text=f"The {each} was sold to Ada", kind="episode", created=ago) for each in names]
    new = [NewMemory(text=f"sold to Ada was The {each}", kind="episode", created=NOW) for each in names]
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        ids = [each.id for each in memory.remember_many([*old, *new])]
    file.write_text("".join(f"{name}\t{id_}\n" for name, id_ in zip(names, ids, strict=False)), "utf-8")
    return ids


# ---------------------------------------------------------------- eval


def test_eval_shows_modes_side_by_side_and_what_was_lost(cli: Cli, file: Path) -> None:
    first = cli("remember", "Ada drinks tea", "--json").json["id"]
    second = cli("remember", "Grace plays chess", "--json").json["id"]
    lines = [
        {"query": "tea", "ids": [first]},
        {"query": "zzz", "ids": [second]},
        {"query": "gone", "answer": "nowhere"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    shown = cli("eval", str(file), "--mode", "keyword")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines() == [
        "2 questions from the file",
        "skipped, no live memory of the space answers them: gone",
        "",
        "             keyword",
        "recall@5     0.500 (0.000–1.000)",
        "recall@10    0.500 (0.000–1.000)",
        "nDCG@10      0.500 (0.000–1.000)",
        "MRR@10       0.500 (0.000–1.000)",
        "missed       1",
        "  no match   1",
        "",
        f"no match  zzz  {second}",
        f"   {LOST}",
    ]
    header = cli("eval", str(file)).out.splitlines()[3]
    assert header.split() == ["keyword", "semantic", "hybrid"]


@pytest.mark.slow
def test_eval_json_has_all_of_it(cli: Cli, cars: list[str], file: Path) -> None:
    found = cli("eval", str(file), "--limit", "1", "--mode", "hybrid", "--mode", "keyword", "--json").json
    assert (found["source"], found["questions"], found["unanswered"]) == ("file", 24, [])
    assert list(found["modes"]) == ["hybrid", "keyword"]
    measured = found["modes"]["keyword"]
    assert measured["metrics"]["recall@5"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert (measured["missed"], measured["stages"], measured["wrong"]) == (24, {"limit": 24}, 0)
    assert len(measured["examples"]) == 3
    assert measured["examples"][0] == {
        "query": "tiny red car",
        "id": cars[0],
        "stage": "limit",
        "explanation": "it is number 2, and only 1 are shown",
        "remedy": "set the limit to 2",
    }


@pytest.mark.usefixtures("cars")
def test_eval_shows_the_mode_that_an_alias_stands_for(cli: Cli, file: Path) -> None:
    modes = ("--mode", "text", "--mode", "keyword", "--mode", "hybrid")
    assert list(cli("eval", str(file), "--json", *modes).json["modes"]) == ["keyword", "hybrid"]


def test_eval_reads_stdin(cli: Cli) -> None:
    tea = cli("remember", "Ada drinks tea", "--json").json["id"]
    assert cli("eval", "-", "--mode", "keyword", "--json", stdin=f"tea\t{tea}\n").json["questions"] == 1


@pytest.mark.slow
def test_eval_without_a_file_probes_and_says_what_that_means(cli: Cli) -> None:
    for each in COLOURS:
        cli("remember", f"the {each} car")
    shown = cli("eval", "--sample", "5", "--seed", "3", "--mode", "keyword")
    assert shown.out.startswith(f"5 {PROBES}")
    assert shown == cli("eval", "--sample", "5", "--seed", "3", "--mode", "keyword")
    assert cli("eval", "--from", "probes", "--json", "--mode", "keyword").json["questions"] == 12


@pytest.mark.slow
def test_eval_asks_from_the_log_and_leaves_it_as_it_is(cli: Cli) -> None:
    ids = {each: cli("remember", f"the {each} car", "--json").json["id"] for each in COLOURS}
    for each in COLOURS:
        assert cli("search", f"{each} car").code == 0
        cli("get", ids[each])
    receipts = cli("log", "--json", "--limit", "100").json
    assert cli("eval", "--mode", "keyword").out.startswith("12 probes")  # twelve are too few
    shown = cli("eval", "--from", "log", "--mode", "keyword")
    assert shown.out.startswith(
        "12 questions from the recall log, answered by the memories that were opened or used. Only delivered memories"
    )
    for each in COLOURS:
        wrong = [hit["id"] for hit in cli("search", f"my {each} car", "--json").json["hits"]][1]
        cli("get", ids[each])
        cli("mark", "wrong", wrong)
    more = cli("log", "--json", "--limit", "100").json
    by_itself = cli("eval", "--mode", "keyword", "--limit", "12")
    assert by_itself.out.startswith("24 questions from the recall log")
    assert "marked wrong 12" in by_itself.out
    assert len(more) == 2 * len(receipts)
    assert cli("log", "--json", "--limit", "100").json == more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "file"], "error: file: is missing; name a file with questions"),
        (["nowhere.jsonl"], "error: file: nowhere.jsonl cannot be read ("),
        (["-", "--from", "log"], "error: from: is log, but a file was given"),
        (["-"], "error: line 2: query: must be followed by a tab and an id"),
        (["--from", "log"], "error: questions: none is judged; open memories that a search returned (`nacre get`)"),
        (["--sample", "0"], "error: sample: is 0"),
        (["--limit", "0"], "error: limit: is 0"),
        (["--mode", "fuzzy"], "error: mode: 'fuzzy' is unknown"),
    ],
)
def test_eval_names_what_is_wrong(cli: Cli, arguments: list[str], message: str) -> None:
    cli("remember", "tea")
    assert cli("eval", *arguments, stdin="tea\tid\nno tab\n").error.startswith(message)


def test_eval_makes_no_store(cli: Cli, path: Path) -> None:
    answer = cli("eval")
    assert answer.code == 2
    assert "there are no memories with words in this space; store some first" in answer.err
    assert not path.exists()


@pytest.mark.slow
def test_progress_is_shown(cli: Cli, cars: list[str], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[Progress] = []

    class Bar:
        def __enter__(self) -> Callable[[Progress], None]:
            return states.append

        def __exit__(self, *_: object) -> None:
            """Gone."""

    assert cars
    monkeypatch.setattr(render, "progress", lambda _: Bar())
    cli("eval", str(file), "--mode", "keyword", "--mode", "hybrid")
    assert states == [Progress(done, 48) for done in range(1, 49)]
    states.clear()
    cli("tune", str(file))
    assert 0 < len(states) <= states[-1].total


# ---------------------------------------------------------------- tune


def lenses(cli: Cli, *options: str) -> list[str]:
    return [each["name"] for each in cli("lens", "list", "--json", *options).json if not each.get("built_in")]


@pytest.mark.slow
def test_tune_proposes_applies_and_takes_back(cli: Cli, cars: list[str], file: Path, path: Path) -> None:
    before = path.read_bytes()
    shown = cli("tune", str(file))
    assert shown.out.splitlines() == [
        "24 questions from the file",
        "selection half: nDCG@10 0.631 with the recipe in use; 1 of 1 changes improves it",
        "   1.000  +0.369  recency_weight 0",
        "combined: recency_weight 0.1 → 0",
        "verification half:",
        "             before               after                difference",
        "recall@5     1.000 (1.000–1.000)  1.000 (1.000–1.000)  +0.000 (+0.000 to +0.000)",
        "recall@10    1.000 (1.000–1.000)  1.000 (1.000–1.000)  +0.000 (+0.000 to +0.000)",
        "nDCG@10      0.631 (0.631–0.631)  1.000 (1.000–1.000)  +0.369 (+0.369 to +0.369)",
        "MRR@10       0.500 (0.500–0.500)  1.000 (1.000–1.000)  +0.500 (+0.500 to +0.500)",
        "confirmed; --apply makes searches of this space use it",
    ]
    assert path.read_bytes() == before
    assert lenses(cli) == []
    applied = cli("tune", str(file), "--apply")
    assert applied.out.splitlines()[-1].startswith("applied: searches of this space use the lens tuned; `nacre ")
    assert (lenses(cli), lenses(cli, "--space", "other")) == (["tuned"], [])
    found = cli("search", "tiny red car", "--json").json
    assert (found["lens"], found["hits"][0]["id"]) == ("tuned", cars[0])
    again = cli("tune", str(file))
    assert again.out.splitlines()[-1] == "no change improves on the recipe in use"
    assert cli("tune", "--undo").out == "searches of this space use the default recipe again\n"
    assert lenses(cli) == []
    assert cli("search", "tiny red car", "--json").json["hits"][0]["id"] != cars[0]
    assert "nothing was tuned in this space" in cli("tune", "--undo").error


@pytest.mark.slow
def test_tune_json_says_what_it_found(cli: Cli, cars: list[str], file: Path) -> None:
    assert cars
    found = cli("tune", str(file), "--json").json
    assert (found["source"], found["chosen_on"], found["held_out"], found["elsewhere"]) == ("file", 12, 12, 0)
    assert found["attempts"] == [{"field": "recency_weight", "value": 0.0, "ndcg": 1.0}]
    assert found["changes"] == {"recency_weight": {"from": 0.1, "to": 0.0}}
    assert (found["recipe"], found["better"], found["applied"]) == ({"recency_weight": 0.0}, True, False)
    assert found["after"]["nDCG@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert found["difference"]["MRR@10"]["mean"] == pytest.approx(0.5)
    assert cli("tune", str(file), "--apply", "--json").json["applied"] is True
    assert cli("tune", "--undo", "--json").json == {"undone": True}


def test_tune_applies_nothing_that_may_be_chance(cli: Cli, cars: list[str], file: Path) -> None:
    """Of the half that chooses, seven questions want the old memory, of the other half two; the rest the new one."""
    lines = file.read_text("utf-8").splitlines()
    order = metrics.seeded_random(1).sample(range(24), 24)
    wanted = {at: cars[at] if place < 7 or place > 21 else cars[at + 24] for place, at in enumerate(order)}
    file.write_text("\n".join(f"{each.partition(chr(9))[0]}\t{wanted[at]}" for at, each in enumerate(lines)), "utf-8")
    shown = cli("tune", str(file), "--apply")
    assert "combined: recency_weight 0.1 → 0" in shown.out
    assert (
        shown.out.splitlines()[-1]
        == "not confirmed: nDCG@10 is worse on the verification half. The recipe in use stays"
    )
    assert lenses(cli) == []


def test_tune_goes_back_to_the_usual_recipe(cli: Cli, cars: list[str], file: Path, path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), log=False) as memory:
        memory.save_lens(Lens(name="tuned", recipe={"recency_weight": 0.0}, questions=("*",)))
    old = file.read_text("utf-8")
    for at in range(24):
        old = old.replace(cars[at], cars[at + 24])
    file.write_text(old, "utf-8")
    applied = cli("tune", str(file), "--apply")
    assert applied.out.splitlines()[-1] == "applied: searches of this space use the default recipe again"
    assert lenses(cli) == []


def test_tune_leaves_other_spaces_alone(cli: Cli, cars: list[str], file: Path) -> None:
    assert cars
    foreign = cli("remember", "tea", "--space", "other", "--json").json["id"]
    with file.open("a") as lines:
        lines.write(json.dumps({"query": "tea", "ids": [foreign], "space": "other"}))
    assert "skipped, they are about other spaces: 1" in cli("tune", str(file)).out
    refused = cli("tune", str(file), "--space", "other").error
    assert refused.startswith("error: questions: 1 has a known answer in space other, and 20 are needed; give a file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: questions: 0 have a known answer in space default, and 20 are needed; give a file with questions"),
        (["--from", "probes"], "error: from: is probes, which are made of a memory's own words"),
        (["--undo", "--apply"], "error: undo: removes what was applied; omit FILE, --from and --apply"),
        (["-", "--undo"], "error: undo: removes what was applied"),
        (["-"], "error: line 1: query: must be followed by a tab and an id"),
    ],
)
def test_tune_names_what_is_wrong(cli: Cli, arguments: list[str], message: str) -> None:
    cli("remember", "tea")
    assert cli("tune", *arguments, stdin="no tab\n").error.startswith(message)
    assert questions.JUDGED_MIN == 20
