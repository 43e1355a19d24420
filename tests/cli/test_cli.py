"""The command line: the same answers as the library, errors with their exit codes, nothing else on stdout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import click
import pytest

import nacre
from command_line import PAGE, Cli, every_command
from nacre.cli import render
from nacre.cli.demo import SAMPLES
from nacre.config import settings
from nacre.serialization import decode, encode
from nacre.storage.sqlite import scrub
from nacre.types.recipe import Recipe
from nacre.types.search import SearchRequest

pytestmark = pytest.mark.usefixtures("own_settings")


@pytest.fixture
def library(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], nacre.Nacre]:
    """The same store through the other door. Nothing is logged: what was opened before would rank otherwise."""
    monkeypatch.setenv("NACRE_LOG", "off")
    return lambda: nacre.open(path, embedder="hashing", log=False)


# ---------------------------------------------------------------- the verbs


def test_remember_search_get_forget_restore_purge(cli: Cli) -> None:
    first = cli("remember", "The cache lives in Redis", "--tag", "infra", "--tag", "cache", "--json").json
    assert first["duplicate"] is False
    again = cli("remember", "The cache lives in Redis", "--json").json
    assert again == {"id": first["id"], "duplicate": True, "recalled": [], "notes": [], "changed": []}
    found = cli("search", "redis cache", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [first["id"]]
    assert cli("get", first["id"], "--json").json["memories"][0]["tags"] == ["infra", "cache"]
    assert cli("forget", first["id"]).code == 0
    assert cli("search", "redis", "--json").json["hits"] == []
    assert first["id"] in cli("timeline", "--forgotten").out
    assert cli("restore", first["id"]).code == 0
    assert len(cli("search", "redis", "--json").json["hits"]) == 1
    assert cli("update", first["id"], "--text", "The cache lives in Valkey", "--json").json["text"].endswith("Valkey")
    assert "Redis" in cli("history", first["id"]).out
    purged = cli("purge", first["id"], "--yes", "--json").json
    assert purged == {"purged": [first["id"]], "scrubbed": True, "pending": None}
    assert cli("get", first["id"]).code == 2


def test_remember_reads_stdin_and_files(cli: Cli, tmp_path: Path) -> None:
    assert cli("remember", stdin="from a pipe\n").code == 0
    assert cli("remember", "-", stdin="from a dash\n").code == 0
    note = tmp_path / "note.md"
    note.write_text("from a file: naïve 用 GPT4\n", "utf-8")
    assert cli("remember", "--file", str(note)).code == 0
    assert "naïve 用 GPT4" in cli("search", "naive").out.replace("[", "").replace("]", "")
    assert cli("stats", "--json").json["memories"] == 3


def test_remember_json_lines_keeps_every_field(cli: Cli) -> None:
    given = {
        "text": "a turn of a conversation",
        "kind": "episode",
        "namespace": "context",
        "tags": ["talk"],
        "session": "s1",
        "position": 3,
        "metadata": {"pr": 482, "ok": True},
        "importance": 0.9,
        "created": "2026-03-01T12:00:00+02:00",
    }
    answer = cli("remember", "--jsonl", "--json", stdin=json.dumps(given) + "\n\n" + json.dumps(given) + "\n")
    receipts = [json.loads(line) for line in answer.out.splitlines()]
    assert [receipt["duplicate"] for receipt in receipts] == [False, True]
    stored = cli("get", receipts[0]["id"], "--json").json["memories"][0]
    assert stored["created"] == "2026-03-01T10:00:00Z"
    assert {key: stored[key] for key in given if key != "created"} == {
        key: value for key, value in given.items() if key != "created"
    }


@pytest.mark.slow
def test_the_same_calls_through_library_and_command_line_give_the_same_json(
    cli: Cli, library: Callable[[], nacre.Nacre]
) -> None:
    """The sample memories outnumber every default limit."""
    assert cli("remember", "--jsonl", "--file", str(SAMPLES)).code == 0
    query = "why did the payment fail for Henrik?"
    with library() as memory:
        hits = memory.search(query).hits
        assert len(hits) == SearchRequest(query=query).limit
        expected: list[tuple[list[str], Any]] = [
            (["search", query], encode.search_result(memory.search(query))),
            (["search", query, "--mode", "keyword"], encode.search_result(memory.search(query, mode="keyword"))),
            (["search", query, "--mode", "semantic"], encode.search_result(memory.search(query, mode="semantic"))),
            (["search", query, "--limit", "3"], encode.search_result(memory.search(query, limit=3))),
            (
                ["search", query, "--alpha", "0.2"],
                encode.search_result(memory.search(query, recipe=Recipe(alpha=0.2))),
            ),
            (
                ["search", query, "--namespace", "decisions", "--no-tag", "rota", "--since", "2026-02-01T00:00:00Z"],
                encode.search_result(
                    memory.search(
                        query,
                        where=nacre.Filter(
                            namespaces=["decisions"],
                            tags_none=["rota"],
                            created_from=decode.parse_iso_time("since", "2026-02-01T00:00:00Z"),
                        ),
                    )
                ),
            ),
            (["search", query, "--lens", "brief"], encode.search_result(memory.search(query, lens="brief"))),
            (
                ["search", query, "--as-of", "2026-05-01T00:00:00Z"],
                encode.search_result(
                    memory.search(query, as_of=decode.parse_iso_time("as_of", "2026-05-01T00:00:00Z"))
                ),
            ),
            (["search", query, "--min-score", "0.05"], encode.search_result(memory.search(query, min_score=0.05))),
            (["search", query, "--token-budget", "90"], encode.search_result(memory.search(query, token_budget=90))),
            (["search", query, "--asked-in", "s1"], encode.search_result(memory.search(query, session="s1"))),
            (
                ["search", query, "--boost-entity", "Mara", "--boost-entity", "Lin"],
                encode.search_result(memory.search(query, boost_entities=["Mara", "Lin"])),
            ),
            (["search", query, "--merge-relations"], encode.search_result(memory.search(query, merge_relations=True))),
            (["search", query, "--no-collapse"], encode.search_result(memory.search(query, collapse=False))),
            (["related", hits[0].id], encode.search_result(memory.related(hits[0].id))),
            (["facets", query], encode.facets(memory.facets(query))),
            (["timeline"], encode.timeline(memory.timeline())),
            (
                ["timeline", "--oldest-first", "--limit", "7"],
                encode.timeline(memory.timeline(oldest_first=True, limit=7)),
            ),
            (
                ["timeline", "--around", hits[0].id, "--span", "2", "--histogram", "week"],
                encode.timeline(memory.timeline(around=hits[0].id, span=2, histogram="week")),
            ),
            (["get", hits[0].id, hits[1].id], encode.fetched(memory.get([hits[0].id, hits[1].id]))),
            (
                ["get", hits[0].id, "--entities", "--neighbours", "2"],
                encode.fetched(memory.get(hits[0].id, entities=True, neighbours=2)),
            ),
            (["history", hits[0].id], [encode.event(each) for each in memory.history(hits[0].id)]),
            (["stats"], encode.stats(memory.stats())),
        ]
    for arguments, answer in expected:
        printed = cli(*arguments, "--json").json
        if arguments == ["stats"]:
            answer = {**answer, "size_bytes": printed["size_bytes"]}  # the WAL is folded in when the library closes
        assert printed == json.loads(encode.dumps(answer)), arguments


def test_a_hit_is_shown_with_rank_relevance_text_place_and_time(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_EMBEDDER", "none")
    monkeypatch.setenv("NACRE_LOG", "off")
    options = ["--namespace", "decisions", "--tag", "cache", "--source", "docs/cache.md", "--session", "s1"]
    first = cli("remember", "The cache lives in Redis", *options, "--created", "2026-03-01T12:30", "--json").json["id"]
    second = cli("remember", "Redis is fast", "--happened", "2026-02-01", "--json").json["id"]
    searched = ["search", "redis cache", "--mode", "keyword"]
    assert cli(*searched).out.splitlines() == [
        "1. >99%  The [cache] lives in [Redis]",
        f"         {first}  2026-03-01 12:30  decisions #cache  docs/cache.md  session s1",
        "2.  <1%  [Redis] is fast",
        f"         {second}  2026-02-01 00:00  general",
    ]
    explained = cli(*searched, "--why").out
    assert cli(*searched, "--verbose").out == cli(*searched, "-v").out == explained
    assert explained.splitlines()[2].startswith("         words: BM25 ")
    score = cli(*searched, "--json").json["hits"][0]["score"]
    assert f"         score {score:.5f}, bm25" in explained.splitlines()
    assert cli(*searched, "--why", "--json").json == cli(*searched, "--json").json


def test_recall_is_search(cli: Cli) -> None:
    cli("remember", "Berlin is large")
    assert cli("recall", "berlin", "--mode", "text").out == cli("search", "berlin", "--mode", "keyword").out
    helped, aliased = cli("search", "--help").out, cli("recall", "--help").out
    assert aliased == helped.replace("nacre search", "nacre recall")
    listed = [line for line in cli("--help").out.splitlines() if line.startswith(("  search", "  recall"))]
    assert [line.split(maxsplit=1)[1] for line in listed] == [
        "An alias of `search`.",
        "Find memories that answer QUERY, best first.",
    ]


def test_a_recipe_is_set_on_every_command_that_ranks(cli: Cli) -> None:
    first = cli("remember", "Berlin is large", "--namespace", "config", "--json").json["id"]
    cli("remember", "Berlin is a city, and Potsdam is another one")
    for command in (["search", "berlin"], ["recall", "berlin"], ["context", "berlin"], ["why", first, "berlin"],
                    ["why-not", first, "berlin"], ["related", first], ["eval"]):  # fmt: skip
        usual, changed = cli(*command), cli(*command, "--recipe", "alpha=0", "--recipe", "namespace_weights=config:2")
        assert (usual.code, changed.code) == (0, 0), changed.err
        wrong = cli(*command, "--recipe", "alfa=0").error
        assert wrong.startswith("error: recipe.alfa: is unknown; did you mean `alpha`? allowed: fusion, k, alpha, ")
        assert "must be FIELD=VALUE" in cli(*command, "--recipe", "alpha").error
    weighed = cli("search", "berlin", "--why", "--recipe", "namespace_weights=config:2", "--recipe", "fusion=rank")
    assert "namespace: weighted by the recipe → × 2.0000" in weighed.out
    assert " / (60 + 1) = " in weighed.out
    both = cli("search", "berlin", "--json", "--alpha", "1", "--recipe", "alpha=0").json
    assert both["hits"] == cli("search", "berlin", "--json", "--alpha", "1").json["hits"]


@pytest.mark.parametrize("option", ["--recipe", "--lens", "--limit"])
def test_an_option_without_its_value_is_named(cli: Cli, option: str) -> None:
    refused = cli("search", "berlin", option)
    assert (refused.code, refused.out) == (2, "")
    assert f"Option '{option}' requires an argument" in refused.err


def test_related_memories_have_no_relevance(cli: Cli) -> None:
    first, second = (cli("remember", text, "--json").json["id"] for text in ("the red cache", "the red cache is warm"))
    lines = cli("related", first).out.splitlines()
    assert lines[0].startswith("1. the [red]")
    assert lines[1].startswith(f"   {second}  20")
    assert "score" not in "".join(lines)
    assert "   score " in cli("related", first, "--why").out


def test_spaces_and_near_duplicates_are_named_where_there_are_several(cli: Cli) -> None:
    for text in ("The staging cluster runs Kubernetes 1.29", "Note: the staging cluster runs Kubernetes 1.29."):
        cli("remember", text, "--space", "a")
    alone = cli("search", "Kubernetes", "--space", "a").out
    assert "+1 similar" in alone
    assert "space a" not in alone
    cli("remember", "Kubernetes is large", "--space", "b")
    both = cli("search", "Kubernetes", "--in-space", "a", "--in-space", "b").out
    assert "  general  space a  +1 similar\n" in both
    assert "  general  space b\n" in both


@pytest.mark.parametrize(
    ("relevance", "shown"), [(0.0, "<1%"), (0.0099, "<1%"), (0.01, "1%"), (0.648, "65%"), (0.99, "99%"), (1.0, ">99%")]
)
def test_relevance_is_a_percentage(relevance: float, shown: str) -> None:
    assert render._percent(relevance) == shown


def test_lines_wrap_beside_their_margin_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render, "_styled", lambda _: True)
    monkeypatch.setenv("COLUMNS", "40")
    render.show([[("1. 65%  ", "margin"), ("word " * 12, "")], [render.INDENT, ("short", "")], [], [("end", "bold")]])
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert shown.splitlines() == [
        "1. 65%  word word word word word word",
        "        word word word word word word",
        "   short",
        "",
        "end",
    ]


def test_spaces_do_not_leak(cli: Cli) -> None:
    cli("remember", "the secret plan", "--space", "alice")
    assert cli("search", "secret", "--json").json["hits"] == []
    assert cli("timeline", "--json").json["entries"] == []
    assert len(cli("search", "secret", "--space", "alice", "--json").json["hits"]) == 1
    assert len(cli("search", "secret", "--in-space", "alice", "--in-space", "bob", "--json").json["hits"]) == 1


def test_reembed_after_another_embedder(cli: Cli) -> None:
    cli("remember", "written without vectors", "--embedder", "none")
    assert "reembed" in cli("search", "vectors").out
    assert cli("reembed", "--json").json == {"embedded": 1}
    assert "reembed" not in cli("search", "vectors").out
    refused = cli("search", "vectors", "--embedder", "minilm")
    assert refused.code == 3
    assert "nacre reembed" in refused.err
    assert cli("rebuild", "--json").json == {"rebuilt": True}


# ---------------------------------------------------------------- settings


def test_config_tells_where_each_value_came_from(
    cli: Cli, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('space = "work"\nthreads = 1\nstore = "elsewhere.db"\n', "utf-8")
    shown = cli("config", "--embedder", "none", "--json").json
    assert shown["space"] == {"value": "work", "source": f"file {tmp_path / 'config.toml'}"}
    assert shown["store"] == {"value": str(path), "source": "environment NACRE_STORE"}
    assert shown["embedder"] == {"value": "none", "source": "flag --embedder"}
    assert shown["busy_timeout_ms"] == {"value": 10_000, "source": "default"}
    assert shown["extract"] == {"value": True, "source": "default"}
    assert shown["decay_rates"] == {"value": {}, "source": "default"}
    assert shown["log"] == {"value": True, "source": "default"}
    assert shown["log_days"] == {"value": 90, "source": "default"}
    assert "environment NACRE_STORE" in cli("config").out
    monkeypatch.delenv("NACRE_STORE")
    assert cli("config", "--json").json["store"]["value"] == "elsewhere.db"


def test_what_is_read_and_logged_is_set_in_the_environment_or_the_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "extract = false\nlog = false\nlog_days = 7\n[decay_rates]\nstate = 0.2\nkv = 0\n"
    (tmp_path / "config.toml").write_text(content, "utf-8")
    shown = cli("config", "--json").json
    expected = {"extract": False, "log": False, "log_days": 7, "decay_rates": {"state": 0.2, "kv": 0.0}}
    assert {name: shown[name]["value"] for name in expected} == expected
    monkeypatch.setenv("NACRE_EXTRACT", "on")
    monkeypatch.setenv("NACRE_DECAY_RATES", "state=0.5, identity=0")
    monkeypatch.setenv("NACRE_LOG", "on")
    monkeypatch.setenv("NACRE_LOG_DAYS", "14")
    shown = cli("config", "--json").json
    expected = {"extract": True, "log": True, "log_days": 14, "decay_rates": {"state": 0.5, "identity": 0.0}}
    assert {name: shown[name]["value"] for name in expected} == expected
    assert shown["decay_rates"]["source"] == "environment NACRE_DECAY_RATES"
    assert "NACRE_LOG_DAYS" in cli("config").out


def test_flags_count_before_and_after_the_command(cli: Cli) -> None:
    assert cli("--space", "a", "config", "--json").json["space"]["value"] == "a"
    assert cli("config", "--space", "a", "--json").json["space"]["value"] == "a"
    cli("remember", "Ada lives in Rome", "--space", "a")
    assert len(cli("--json", "--space", "a", "fact", "list").json) == 1
    assert len(cli("fact", "--json", "--space", "a", "list").json) == 1
    assert len(cli("fact", "list", "--json", "--space", "a").json) == 1


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("colour = 1\n", "colour"),
        ('embedder = "gpt"\n', "embedder"),
        ("threads = -1\n", "threads"),
        ("space = 3\n", "space"),
        ('extract = "maybe"\n', "extract: is 'maybe'; on or off is allowed"),
        ("log = 3\n", "log: is 3; on or off is allowed"),
        ("log_days = -1\n", "log_days"),
        ('log_days = "long"\n', "log_days"),
        ("decay_rates = 5\n", "write it like state=0.2,kv=0.01"),
        ('decay_rates = "kv"\n', "write it like state=0.2,kv=0.01"),
        ('decay_rates = {kv = "fast"}\n', "write it like state=0.2,kv=0.01"),
        ("decay_rates = {colour = 1}\n", "'colour' is unknown; allowed: identity"),
        ("decay_rates = {kv = 11}\n", "kv: is 11.0; a number from 0 to 10 is allowed"),
        ("= nonsense", "cannot be read"),
    ],
)
def test_a_bad_config_file_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, named: str
) -> None:
    monkeypatch.delenv("NACRE_EMBEDDER")
    (tmp_path / "config.toml").write_text(content, "utf-8")
    answer = cli("config")
    assert answer.code == 2
    assert named in answer.err
    assert "config.toml" in answer.err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NACRE_EXTRACT", "maybe", "on or off is allowed"),
        ("NACRE_LOG", "sometimes", "on or off is allowed"),
        ("NACRE_LOG_DAYS", "-1", "a whole number"),
        ("NACRE_LOG_DAYS", "0", "a whole number"),
        ("NACRE_LOG_DAYS", "1000000", "a whole number"),
        ("NACRE_DECAY_RATES", "kv", "write it like state=0.2,kv=0.01"),
        ("NACRE_DECAY_RATES", "kv=fast", "write it like state=0.2,kv=0.01"),
        ("NACRE_DECAY_RATES", "colour=1", "'colour' is unknown; allowed: identity"),
        ("NACRE_DECAY_RATES", "kv=-1", "a number from 0 to 10 is allowed"),
        ("NACRE_DECAY_RATES", "kv=nan", "a number from 0 to 10 is allowed"),
    ],
)
def test_a_bad_environment_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, path: Path, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    answer = cli("remember", "something")
    assert (answer.code, answer.out) == (2, "")
    assert name in answer.err
    assert said in answer.err
    assert not path.exists()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["remember", "   "], 2, "text: is blank"),
        (["remember", "x", "--importance", "2"], 2, "importance"),
        (["remember", "x", "--created", "some day"], 2, "created"),
        (["remember", "x", "--meta", "nothing"], 2, "KEY=VALUE"),
        (["remember", "--file", "missing.txt"], 2, "missing.txt"),
        (["remember", "x", "--position", "1"], 2, "needs a session"),
        (["remember", "x", "--happened", "some day"], 2, "happened"),
        (["remember", "x", "--entity", " "], 2, "entities.name: is blank"),
        (["remember", "x", "--extract", "maybe"], 2, "'maybe' is not one of 'on', 'off'"),
        (["remember", "--jsonl", "--extract", "on"], 2, "takes all fields from the input"),
        (["remember", "--jsonl", "--entity", "Ada"], 2, "takes all fields from the input"),
        (["search", "x", "--mode", "psychic"], 2, "keyword, semantic, hybrid"),
        (["search", "x", "--alpha", "1.5"], 2, "from 0 to 1"),
        (["search", "x", "--limit", "0"], 2, "from 1 to 1,000"),
        (["search", "x", "--limit", "many"], 2, "--limit"),
        (["search", "x", "--limit", "-10"], 2, "from 1 to 1,000"),
        (["search", "x", "--alpha", "-0.5"], 2, "from 0 to 1"),
        (["search", "x", "--since", "soon"], 2, "since"),
        (["search", "x", "--as-of", "soon"], 2, "as_of: 'soon' is not a time"),
        (["search", "x", "--min-score", "2"], 2, "min_score: is 2.0; a number from 0 to 1 is allowed"),
        (["search", "x", "--token-budget", "0"], 2, "token_budget: is 0"),
        (["search", "x", "--asked-in", " "], 2, "session: is blank"),
        (["search", "x", "--boost-entity", ""], 2, "boost_entities"),
        (["search", "x", "--lens", "nope"], 2, "lens: 'nope' is unknown; allowed: none, debugging, "),
        (["search"], 2, "QUERY"),
        (["get", "nobody"], 2, "no memory 'nobody'"),
        (["forget", "nobody"], 2, "no memory"),
        (["restore", "nobody"], 2, "no memory"),
        (["update", "nobody", "--text", "x"], 2, "no memory"),
        (["timeline", "--cursor", "nowhere"], 2, "cursor"),
        (["timeline", "--around", "nobody"], 2, "no memory 'nobody'"),
        (["timeline", "--histogram", "year"], 2, "histogram: 'year' is unknown; allowed: day, week, month"),
        (["timeline", "--histogram", "day", "--forgotten"], 2, "histogram: counts live memories only"),
        (["timeline", "--span", "-1"], 2, "span: is -1; a whole number from 0 to 1,000 is allowed"),
        (["get", "nobody", "--neighbours", "51"], 2, "neighbours: is 51; a whole number from 0 to 50 is allowed"),
        (["frobnicate"], 2, "frobnicate"),
        (["stats", "--store", "no/such/folder/x.db"], 3, "does not exist"),
        (["stats", "--store", "."], 3, "is a folder"),
        (["stats", "--embedder", "psychic"], 2, "minilm, minilm-cuda, hashing, none"),
    ],
)
def test_errors_say_what_is_wrong_and_set_the_exit_code(cli: Cli, arguments: list[str], code: int, said: str) -> None:
    cli("remember", "something")
    answer = cli(*arguments)
    assert answer.code == code
    assert said in answer.err
    assert answer.out == ""


def test_a_store_that_does_not_exist_is_empty_and_is_not_created(cli: Cli, path: Path) -> None:
    note = f"note: no memories yet: the store {path} does not exist; `nacre remember` creates it\n"
    for arguments, said in (
        (["search", "x"], "nothing found\n"),
        (["recall", "x", "--brief"], "nothing found\n"),
        (["context", "x"], "Nothing is known about this: no memory answers it. A search shows the nearest ones.\n"),
        (["facets"], "0 memories match\n"),
        (["timeline"], "nothing found\n"),
        (["log"], "nothing found\n"),
        (["log", "clear", "--yes"], "cleared 0 searches\n"),
        (["why-recalled", "x"], "nothing found\n"),
        (["stats"], "memories    0  (0 forgotten)\n"),
        (["fact", "list"], "nothing found\n"),
        (["stale"], "nothing found\n"),
        (["conflicts"], "no conflicts\n"),
        (["entity", "list"], "nothing found\n"),
        (["relation", "list"], "nothing found\n"),
        (["relation", "search", "x"], "nothing found\n"),
        (["lens", "list"], "debugging  built in"),
        (["lens", "show", "exact"], "{"),
        (["reembed"], "embedded 0 memories\n"),
        (["rebuild"], "rebuilt\n"),
    ):
        answer = cli(*arguments)
        assert (answer.code, answer.out.startswith(said)) == (0, True), answer
        assert (answer.out + answer.err).count(note) == 1, arguments
        quiet = cli(*arguments, "--json")
        assert (quiet.code, quiet.err) == (0, ""), arguments
        json.loads(quiet.out)
    assert not path.exists()
    assert cli("search", "x", "--json").json["notes"] == [note.removeprefix("note: ").strip()]
    assert cli("fact", "list", "--json").json == []
    assert cli("timeline", "--json").json == {"entries": [], "next": None}


def test_in_a_store_that_does_not_exist_no_id_is_found(cli: Cli, path: Path) -> None:
    for arguments in (
        ["get", "x"],
        ["forget", "x"],
        ["restore", "x"],
        ["purge", "x", "--yes"],
        ["update", "x", "--text", "y"],
        ["history", "x"],
        ["unlink", "x", "y"],
        ["fact", "drop", "x"],
        ["reinforce", "x"],
        ["similar", "x"],
        ["related", "x"],
        ["timeline", "--around", "x"],
        ["entity", "show", "x"],
        ["entity", "drop", "x"],
        ["entity", "related", "x"],
        ["lens", "delete", "x"],
        ["search", "x", "--lens", "x"],
        ["why", "x", "y"],
        ["why-not", "x", "y"],
        ["mark", "used", "x"],
    ):
        answer = cli(*arguments)
        assert (answer.code, answer.out) == (2, ""), arguments
        assert "error: " in answer.err
        assert "'x'" in answer.err, arguments
    assert not path.exists()


def test_a_store_in_the_default_folder_need_not_exist(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NACRE_STORE")
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    answer = cli("search", "x")
    assert (answer.code, answer.err) == (0, "")
    assert f"the store {tmp_path / 'home' / 'nacre' / 'nacre.db'} does not exist" in answer.out
    assert not (tmp_path / "home").exists()


def test_errors_as_json(cli: Cli) -> None:
    cli("remember", "something")
    answer = cli("search", "x", "--limit", "0", "--json")
    assert (answer.code, answer.out) == (2, "")
    assert json.loads(answer.err)["error"]["field"] == "limit"
    for arguments in (["search", "x", "--limit", "many"], ["remember", "x", "--extract", "maybe"], ["search"]):
        answer = cli(*arguments, "--json")
        assert (answer.code, answer.out) == (2, "")
        assert json.loads(answer.err)["error"]["message"], arguments
    assert json.loads(cli("stats", "--json", "--store", ".").err)["error"]["type"] == "StoreUnavailable"


def test_a_bad_line_is_named_and_costs_no_other(cli: Cli) -> None:
    for number, (bad, said) in enumerate(
        (
            ("{", "line 2"),
            ("[]", "line 2"),
            ('{"txt": "x"}', "txt"),
            ('{"text": " "}', "text"),
            ('{"text": "x", "happened": "soon"}', "line 2: happened: 'soon' is not a time"),
            ('{"text": "x", "extract": "maybe"}', "extract: must be true or false"),
            ('{"text": "x", "facts": 3}', "facts: must be a list"),
            ('{"text": "x", "facts": [3]}', "line 2: facts[0]: must be a JSON object, not int"),
            ('{"text": "x", "facts": [{"subject": "a", "object": "c"}]}', "line 2: facts[0].predicate: is missing"),
            (_with_fact(colour=1), "line 2: facts[0].colour: is unknown; allowed: subject, predicate, object, type"),
            (_with_fact(confidence=9), "facts[0].confidence: is 9; a number from 0 to 1 is allowed"),
            (_with_fact(confidence=True), "facts[0].confidence: is True"),
            (_with_fact(decay_rate=-1), "facts[0].decay_rate: is -1; a number from 0 to 10 is allowed"),
            (_with_fact(type="colour"), "facts[0].type: 'colour' is unknown; allowed: identity"),
            (_with_fact(subject=" "), "facts[0].subject: is blank"),
            (_with_fact(relation="yes"), "facts[0].relation: must be true or false"),
            (_with_fact(valid_from="soon"), "line 2: facts[0].valid_from: 'soon' is not a time"),
            (_with_fact(valid_to="2026-03-01"), "facts[0].valid_to: has no time zone"),
            ('{"text": "x", "entities": "Ada"}', "entities: must be a list"),
            ('{"text": "x", "entities": [3]}', "entities: must be names"),
            ('{"text": "x", "entities": [{"type": "person"}]}', "line 2: entities[0].name: is missing"),
            ('{"text": "x", "entities": [{"name": "Ada", "alias": "A"}]}', "line 2: entities[0].alias: is unknown"),
            ('{"text": "x", "entities": [{"name": " "}]}', "entities.name: is blank"),
            ('{"text": "x", "entities": [{"name": "Ada", "aliases": "A"}]}', "entities.aliases"),
        )
    ):
        answer = cli("remember", "--jsonl", stdin=f'{{"text": "fine {number}"}}\n{bad}\n{{"text": "good {number}"}}')
        assert answer.code == 2
        named, error = answer.err.splitlines()
        assert said in named
        assert named.startswith("line 2: ")
        assert error.startswith("error: file: 1 line was not stored; all others were. Repair it and run the command")
        assert answer.out == "remembered 2 (0 already stored)\n"
    assert cli("stats", "--json").json["memories"] == 2 * (number + 1)


def test_bad_lines_are_counted_and_listed_by_their_numbers(cli: Cli) -> None:
    """Blank lines, lines that are no memories and memories that the engine refuses count alike."""
    lines = ['{"text": "one"}', "", "{", '{"text": " "}', '{"text": "two"}', "\t", '{"text": "three", "kind": 3}', "[]",
             '{"text": "four"}', '{"text": "five", "supersedes": "nobody"}', '{"text": "six"}']  # fmt: skip
    answer = cli("remember", "--jsonl", "--json", stdin="\n".join(lines))
    assert answer.code == 2
    stored = [json.loads(line)["id"] for line in answer.out.splitlines()]
    assert [each["text"] for each in cli("get", *stored, "--json").json["memories"]] == ["one", "two", "four", "six"]
    error = json.loads(answer.err)["error"]
    assert (error["type"], error["field"]) == ("InvalidInput", "file")
    assert error["message"].startswith("file: 5 lines were not stored; all others were. Repair them and run")
    assert [(each["line"], each["field"]) for each in error["errors"]] == [
        (3, None), (4, "text"), (7, "kind"), (8, "memory"), (10, None)
    ]  # fmt: skip
    assert error["errors"][0]["message"].startswith("is not JSON (Expecting property name")
    assert error["errors"][1]["message"] == "is blank; give 1 to 1,000,000 characters"
    assert "no memory 'nobody'" in error["errors"][4]["message"]


def test_of_many_bad_lines_the_first_are_listed(cli: Cli) -> None:
    answer = cli("remember", "--jsonl", stdin='{"text": "fine"}\n' + "{\n" * 25)
    assert (answer.code, answer.out) == (2, "remembered 1 (0 already stored)\n")
    listed = answer.err.splitlines()
    assert [line.split(":")[0] for line in listed[:-2]] == [f"line {number}" for number in range(2, 22)]
    assert listed[-2] == "… and 5 more"
    assert listed[-1].startswith("error: file: 25 lines were not stored")


def test_a_line_that_is_no_text_costs_no_other(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"text": "first"}\r\n{"text": "\xff"}\r\n{"text": "last"}')
    answer = cli("remember", "--jsonl", "--file", str(file))
    assert (answer.code, answer.out) == (2, "remembered 2 (0 already stored)\n")
    assert answer.err.startswith("line 2: is not JSON ('utf-8' codec can't decode byte 0xff")
    piped = subprocess.run(
        [sys.executable, "-m", "nacre", "remember", "--jsonl", "--store", str(tmp_path / "x.db"), "--embedder", "none"],
        input=file.read_bytes(),
        capture_output=True,
        check=False,
    )
    assert (piped.returncode, piped.stdout.split()) == (2, answer.out.encode().split())
    assert piped.stderr.startswith(b"line 2: is not JSON")
    missing = cli("remember", "--jsonl", "--file", str(tmp_path / "none"))
    assert (missing.code, missing.out) == (2, "")


def _with_fact(**fields: Any) -> str:
    """A line whose only fact has these fields."""
    fact = {"subject": "Ada", "predicate": "is", "object": "well", **fields}
    return json.dumps({"text": "x", "facts": [fact]})


def test_purge_asks_first(cli: Cli) -> None:
    memory_id = cli("remember", "keep me", "--json").json["id"]
    assert cli("purge", memory_id, stdin="n\n").code != 0
    assert cli("get", memory_id).code == 0


def test_purge_says_what_is_left(cli: Cli, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads all the time. The next write does what this one could not."""
    monkeypatch.setattr(scrub, "WAIT_S", 0.0)
    one, other = (cli("remember", f"keep {name}", "--json").json["id"] for name in ("one", "other"))
    with closing(apsw.Connection(str(path))) as db:
        db.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
        said = cli("purge", one, "--yes")
        assert said.out.splitlines() == [
            f"purged {one}",
            "bytes of it may be left in the files (others were reading or writing); the next write removes them",
        ]
    assert cli("purge", other, "--yes").out == f"purged {other}\n"


def test_the_log_is_cleared_by_time_session_and_space(cli: Cli) -> None:
    cli("remember", "Berlin is large")
    for session, space in (("a", "default"), ("a", "default"), ("b", "default"), ("a", "other"), ("c", "default")):
        cli("search", "berlin", "--asked-in", session, "--space", space)

    def sessions(*more: str) -> list[str]:
        return [each["session"] for each in cli("log", "--json", *more).json]

    assert sessions() == ["c", "b", "a", "a"]
    assert cli("log", "clear", "--before", "7d", "--yes").out == "cleared 0 searches\n"
    assert cli("log", "clear", "--session", "b", "--yes").out == "cleared 1 search\n"
    assert sessions() == ["c", "a", "a"]
    assert cli("log", "clear", "--session", "a", "--in-space", "other", "--yes", "--json").json == {"cleared": 1}
    assert sessions() == ["c", "a", "a"]
    assert cli("log", "clear", "--before", "tomorrow", "--yes").out == "cleared 3 searches\n"
    assert sessions() == []


def test_clearing_the_log_asks_first(cli: Cli) -> None:
    cli("remember", "Berlin is large")
    cli("search", "berlin")
    refused = cli("log", "clear", stdin="n\n")
    assert refused.code != 0
    assert "All past searches of this space are deleted permanently. Continue?" in refused.err
    assert len(cli("log", "--json").json) == 1
    assert cli("log", "clear", stdin="y\n").out == "cleared 1 search\n"
    assert "before: 'soonish' is not a time" in cli("log", "clear", "--before", "soonish", "--yes").error
    assert "give options after clear, not before it" in cli("log", "--session", "a", "clear", "--yes").error


# ---------------------------------------------------------------- real processes


def _process(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "nacre", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--why",)])
def test_demo_shows_modes_a_correction_and_a_gap_and_leaves_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The real model, in a real process, in a pipe: no colours, no progress. The hybrid search has reasons anyway."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = _process("demo", *options, NACRE_EMBEDDER="minilm", TMPDIR=str(scratch))
    shown = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    by_words, by_meaning, by_both, corrected, unknown = shown.split("\n\n")[1:6]
    assert ("words: BM25" in by_words) == bool(options)
    assert "cosine" not in by_words
    assert ("meaning: cosine" in by_meaning) == bool(options)
    answer = "[Lowered] `[BOOKING_TIMEOUT_MS]` from 30000 to 12000"
    firsts = [
        bool(re.match(rf"1\. \d\d%  {re.escape(answer)}", part.splitlines()[1]))
        for part in (by_words, by_meaning, by_both)
    ]
    assert firsts == [False, True, True]  # by meaning it is the first with this identifier, which comes before meaning
    assert answer in by_words
    assert answer in by_meaning
    assert "→ 0.25 × " in by_both
    assert "→ 0.75 × " in by_both
    assert "\x1b" not in shown
    hits = [line.strip() for line in corrected.splitlines()]
    newer = next(line.split()[0] for line in hits if "review/PR-439" in line)
    assert "is now 420" in hits[1]
    assert f"superseded by {newer} since 2026-04-16" in hits
    assert unknown.splitlines()[1:] == [
        "Nothing is known about this: no memory answers it. A search shows the nearest ones."
    ]
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_exit_codes_of_the_real_command() -> None:
    assert _process("--version").stdout.startswith(b"nacre ")
    assert _process("remember", " ").returncode == 2
    assert _process("stats", "--store", "no/such/folder/x.db").returncode == 3


@pytest.mark.slow
def test_any_bytes_in_and_out_are_utf8_whatever_the_locale() -> None:
    stored = _process("remember", "--json", stdin="Grüße, 東京 🚲".encode(), LC_ALL="C", PYTHONIOENCODING="ascii")
    assert stored.returncode == 0, stored.stderr
    found = _process("search", "東京", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert "Grüße, [東京] 🚲" in found.stdout.decode("utf-8")


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(cli: Cli) -> None:
    assert cli("remember", "--jsonl", "--file", str(SAMPLES)).code == 0
    command = f'"{sys.executable}" -m nacre timeline --limit 200 | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, env=dict(os.environ), check=False)
    assert done.stderr == b""


# ---------------------------------------------------------------- promises


def test_a_stored_text_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render, "_styled", lambda _: True)
    render.show([[("red \x1b[31m bell \x07 tab\t end", "")]])
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown
    assert "red \ufffd[31m bell \ufffd tab" in shown


def test_a_pipe_gets_texts_as_they_are_unless_asked_otherwise(cli: Cli) -> None:
    text = "red \x1b[31m, \x9b31m, bell \x07, \u202eturned, a\u00a0b, \U0001f469\u200d\U0001f680, two\nlines\tend"
    memory_id = cli("remember", text, "--json").json["id"]
    assert text in cli("get", memory_id).out
    printable = cli("get", memory_id, "--printable").out
    kept = "a\u00a0b, \U0001f469\u200d\U0001f680, two\nlines\tend"
    assert f"red \ufffd[31m, \ufffd31m, bell \ufffd, \ufffdturned, {kept}" in printable
    escaped = cli("--printable", "get", memory_id, "--json")
    assert not re.search("[\x1b\x9b\x07\u202e]", escaped.out)
    assert escaped.json["memories"][0]["text"] == text  # JSON says the same
    assert cli("search", "x", "--lens", "a\x1b[31m", "--printable").error.count("\x1b") == 0
    assert cli("search", "x", "--since", "\x9b31m", "--json", "--printable").error.count("\x9b") == 0


def test_every_command_has_help_and_json() -> None:
    for name, command in every_command():
        assert command.help, name
        assert "--json" in [option for parameter in command.params for option in parameter.opts], name
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, f"{name} {parameter.name}"


def test_every_command_and_setting_is_documented() -> None:
    documented = PAGE.read_text("utf-8")
    for name, command in every_command():
        if not isinstance(command, click.Group):
            assert re.search(rf"`nacre {name}[` ]", documented), name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert re.search(rf"`{option}[` ]", documented), f"{name} {option}"
    for setting in settings.MEANINGS:
        assert f"`{setting}`" in documented
        assert settings.variable(setting) in documented
    assert settings.MEANINGS.keys() == settings.Settings.__dataclass_fields__.keys()


def test_every_error_has_an_exit_code_of_its_own_or_its_parents() -> None:
    def below(kind: type[nacre.NacreError]) -> Iterator[type[nacre.NacreError]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    for kind in below(nacre.NacreError):
        assert any(issubclass(kind, listed) for listed, _ in encode.EXIT_CODES), kind
