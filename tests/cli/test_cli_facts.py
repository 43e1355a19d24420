"""The commands for facts, entities, relations, lenses, the recall log and why: for people, as JSON, and in processes.

`SESSION` has every one of them. It is run for people, and again as JSON beside the library on a store of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click
import pytest

import nacre
from command_line import PAGE, Answer, Cli, every_command
from nacre.cli import entities, explain, facts, recall_log
from nacre.cli import lenses as lens_commands
from nacre.config import factory
from nacre.engine.explain import Stage
from nacre.engine.recall_log import LOG_DAYS
from nacre.facts import confidence
from nacre.query import lenses
from nacre.serialization import decode, encode
from nacre.types.facts import DECAY_PER_DAY, FactType, Reinforcement
from nacre.types.memory import Json

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
AS_JSON = "the same as with --json"

pytestmark = pytest.mark.usefixtures("own_settings")


class World:
    """A clock that goes on by a minute a step, and ids that tell the step they were made in."""

    def __init__(self) -> None:
        self.step, self.steps, self.made = "", 0, 0

    def enter(self, step: str) -> None:
        self.step, self.steps, self.made = step, self.steps + 1, 0

    def now(self) -> datetime:
        return NOW + timedelta(minutes=self.steps)

    def ids(self, _: datetime, count: int) -> list[str]:
        self.made += count
        return [f"{self.step}{number}" for number in range(self.made - count, self.made)]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()

    def opened(*parts: Any, **options: Any) -> nacre.Nacre:
        return nacre.Nacre(*parts, **options | {"clock": made.now, "make_ids": made.ids})

    monkeypatch.setattr(factory, "Nacre", opened)
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):
        time.tzset()
    yield made
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


# ---------------------------------------------------------------- one session, for people and as JSON


class Step(NamedTuple):
    """A command, what it shows people, and what the library gives for the same."""

    name: str
    arguments: Sequence[str]
    shows: str
    verb: Callable[[nacre.Nacre], Json]


def _at(text: str) -> datetime:
    return decode.parse_iso_time("at", text)


def _stated(memory: nacre.Nacre, fact: nacre.NewFact, memory_id: str | None = None) -> Json:
    if memory_id is None:
        text = f"{fact.subject} {fact.predicate} {fact.object}"
        memory_id = memory.remember(text, kind="fact", extract=False).id
    (stated,) = memory.add_facts(memory_id, [fact])
    found = memory.facts(memory_id=memory_id, history=True)
    return next(encode.belief(each) for each in found if each.fact.id == stated.id)


def _beliefs(found: Sequence[nacre.Belief]) -> Json:
    return [encode.belief(each) for each in found]


def _receipts(found: Sequence[nacre.Receipt]) -> Json:
    return [encode.receipt(each) for each in found]


def _page(memory: nacre.Nacre, name: str) -> Json:
    (known,) = memory.entities([name])
    hits = memory.search(f'entity:"{known.name}"', mode="keyword", limit=1, lens="none").hits
    return encode.entity(known) | {
        "facts": _beliefs(memory.facts(subject=name)),
        "memories": [encode.hit(each) for each in hits],
    }


def _done(answer: Json, verb: Callable[[], None]) -> Json:
    """An answer that says no more than that the verb was called."""
    verb()
    return answer


SESSION: tuple[Step, ...] = (
    Step(
        "home",
        ["remember", "Ada lives in Rome. Ada works at Acme.", "--entity", "Ada", "--happened", "2026-06-01T08:00Z"],
        "remembered home0",
        lambda memory: encode.remembered(
            memory.remember(
                "Ada lives in Rome. Ada works at Acme.", entities=["Ada"], happened=_at("2026-06-01T08:00Z")
            )
        ),
    ),
    Step(
        "tea",
        ["remember", "Ada likes tea", "--extract", "off"],
        "remembered tea0",
        lambda memory: encode.remembered(memory.remember("Ada likes tea", extract=False)),
    ),
    Step(
        "moved",
        ["fact", "add", "Ada", "lives in", "Porto", "--type", "location", "--confidence", "0.9", "--single"],
        "moved1  Ada · lives in · Porto  location  confidence 0.90  since 2026-06-15 12:03  memory moved0",
        lambda memory: _stated(
            memory,
            nacre.NewFact(
                subject="Ada", predicate="lives in", object="Porto", type="location", confidence=0.9, single=True
            ),
        ),
    ),
    Step(
        "quoted",
        shlex.split(
            "fact add Ada likes tea --memory tea0 --quote 'likes tea' --several --decay-rate 0"
            " --valid-from 2020-01-01T00:00Z --valid-to 2030-01-01T00:00Z"
        ),
        "quoted0  Ada · likes · tea  kv  confidence 1.00  since 2020-01-01 00:00 until 2030-01-01 00:00  memory tea0",
        lambda memory: _stated(
            memory,
            nacre.NewFact(
                subject="Ada",
                predicate="likes",
                object="tea",
                quote="likes tea",
                single=False,
                decay_rate=0,
                valid_from=_at("2020-01-01T00:00Z"),
                valid_to=_at("2030-01-01T00:00Z"),
            ),
            "tea0",
        ),
    ),
    Step(
        "owned",
        ["fact", "add", "Acme", "is owned by", "Globex", "--relation"],
        "owned1  Acme · is owned by · Globex  kv  confidence 1.00  since 2026-06-15 12:05  memory owned0",
        lambda memory: _stated(
            memory, nacre.NewFact(subject="Acme", predicate="is owned by", object="Globex", relation=True)
        ),
    ),
    Step(
        "knows",
        ["relation", "add", "Ada", "knows", "Grace"],
        "knows1  Ada · knows · Grace  relationship  confidence 1.00  since 2026-06-15 12:06  memory knows0",
        lambda memory: _stated(
            memory,
            nacre.NewFact(subject="Ada", predicate="knows", object="Grace", type="relationship", relation=True),
        ),
    ),
    Step(
        "facts",
        ["fact", "list"],
        (
            "knows1  Ada · knows · Grace  relationship  confidence 1.00  since 2026-06-15 12:06  memory knows0\n"
            "owned1  Acme · is owned by · Globex  kv  confidence 1.00  since 2026-06-15 12:05  memory owned0\n"
            "moved1  Ada · lives in · Porto  location  confidence 0.90  since 2026-06-15 12:03  memory moved0\n"
            "home2  Ada · works at · Acme  relationship  confidence 0.68  since 2026-06-01 08:00  memory home0\n"
            "quoted0  Ada · likes · tea  kv  confidence 1.00  since 2020-01-01 00:00 until 2030-01-01 00:00  "
            "memory tea0"
        ),
        lambda memory: _beliefs(memory.facts()),
    ),
    Step(
        "history",
        ["fact", "list", "--subject", "ADA", "--predicate", "lives in", "--history"],
        (
            "moved1  Ada · lives in · Porto  location  confidence 0.90  since 2026-06-15 12:03  memory moved0\n"
            "home1  Ada · lives in · Rome  location  confidence 0.10  since 2026-06-01 08:00 until 2026-06-15 "
            "12:03, superseded by moved1  memory home0"
        ),
        lambda memory: _beliefs(memory.facts(subject="ADA", predicate="lives in", history=True)),
    ),
    Step(
        "past",
        ["fact", "list", "--type", "location", "--as-of", "2026-06-10T00:00Z", "--limit", "5"],
        (
            "home1  Ada · lives in · Rome  location  confidence 0.71  since 2026-06-01 08:00 until 2026-06-15 "
            "12:03, superseded by moved1  memory home0"
        ),
        lambda memory: _beliefs(memory.facts(type="location", as_of=_at("2026-06-10T00:00Z"), limit=5)),
    ),
    Step(
        "objects",
        ["fact", "list", "--object", "tea", "--memory", "tea0", "--in-space", "default", "--min-confidence", "0.5"],
        "quoted0  Ada · likes · tea  kv  confidence 1.00  since 2020-01-01 00:00 until 2030-01-01 00:00  memory tea0",
        lambda memory: _beliefs(memory.facts(object="tea", memory_id="tea0", spaces=["default"], min_confidence=0.5)),
    ),
    Step(
        "related",
        ["relation", "list"],
        (
            "knows1  Ada · knows · Grace  relationship  confidence 1.00  since 2026-06-15 12:06  memory knows0\n"
            "owned1  Acme · is owned by · Globex  kv  confidence 1.00  since 2026-06-15 12:05  memory owned0\n"
            "home2  Ada · works at · Acme  relationship  confidence 0.68  since 2026-06-01 08:00  memory home0"
        ),
        lambda memory: _beliefs(memory.facts(relations=True)),
    ),
    Step(
        "people",
        ["relation", "list", "--object", "grace"],
        "knows1  Ada · knows · Grace  relationship  confidence 1.00  since 2026-06-15 12:06  memory knows0",
        lambda memory: _beliefs(memory.facts(relations=True, object="grace")),
    ),
    Step(
        "countess",
        ["entity", "add", "Ada", "--type", "person", "--alias", "Countess", "--alias", "Ada L.", "--memory", "tea0"],
        "Ada  person  also Ada L., Countess",
        lambda memory: encode.entity(
            memory.add_entity("Ada", kind="person", aliases=["Countess", "Ada L."], memory_ids=["tea0"])
        ),
    ),
    Step(
        "entities",
        ["entity", "list", "--limit", "3", "--in-space", "default"],
        "Acme\nAda  person  also Ada L., Countess\nGlobex",
        lambda memory: [encode.entity(each) for each in memory.entities(limit=3, spaces=["default"])],
    ),
    Step(
        "named",
        ["entity", "list", "countess", "globex"],
        "Ada  person  also Ada L., Countess\nGlobex",
        lambda memory: [encode.entity(each) for each in memory.entities(["countess", "globex"])],
    ),
    Step(
        "page",
        ["entity", "show", "countess", "--limit", "1"],
        (
            "Ada  person  also Ada L., Countess\n"
            "knows1  Ada · knows · Grace  relationship  confidence 1.00  since 2026-06-15 12:06  memory knows0\n"
            "moved1  Ada · lives in · Porto  location  confidence 0.90  since 2026-06-15 12:03  memory moved0\n"
            "home2  Ada · works at · Acme  relationship  confidence 0.68  since 2026-06-01 08:00  memory home0\n"
            "quoted0  Ada · likes · tea  kv  confidence 1.00  since 2020-01-01 00:00 until 2030-01-01 00:00  "
            "memory tea0\n"
            "1. knows0  2026-06-15 12:06\n"
            "   Ada knows Grace"
        ),
        lambda memory: _page(memory, "countess"),
    ),
    Step(
        "near",
        ["entity", "related", "countess", "--depth", "2"],
        (
            "Acme  1 away: Ada · works at · Acme\n"
            "Grace  1 away: Ada · knows · Grace\n"
            "Globex  2 away: Ada · works at · Acme; Acme · is owned by · Globex"
        ),
        lambda memory: [encode.related_entity(each) for each in memory.related_entities("countess", 2)],
    ),
    Step(
        "nearer",
        ["entity", "related", "Acme", "--as-of", "2026-06-10T00:00Z", "--in-space", "default"],
        "Ada  1 away: Ada · works at · Acme",
        lambda memory: [
            encode.related_entity(each)
            for each in memory.related_entities("Acme", as_of=_at("2026-06-10T00:00Z"), spaces=["default"])
        ],
    ),
    Step(
        "found",
        ["relation", "search", "who", "knows", "Grace?", "-globex", "--in-space", "default"],
        "   Ada · knows · Grace  2.41  memory knows0",
        lambda memory: [
            encode.relation_hit(each)
            for each in memory.search("who knows Grace? -globex", mode="keyword", lens="none").relations
        ],
    ),
    Step(
        "dropped",
        ["entity", "drop", "globex"],
        "dropped globex",
        lambda memory: _done({"dropped": "globex"}, lambda: memory.drop_entity("globex")),
    ),
    Step(
        "offline",
        ["remember", "The CI runner is offline", "--created", "2026-02-01T00:00Z"],
        "remembered offline0",
        lambda memory: encode.remembered(memory.remember("The CI runner is offline", created=_at("2026-02-01T00:00Z"))),
    ),
    Step(
        "stale",
        ["stale"],
        "offline1  CI runner · is · offline  state  confidence 0.10  since 2026-02-01 00:00  memory offline0",
        lambda memory: _beliefs(memory.stale()),
    ),
    Step(
        "confirmed",
        ["reinforce", "offline1", "--how", "import"],
        "reinforced 1 fact",
        lambda memory: {"reinforced": memory.reinforce(["offline1"], "import")},
    ),
    Step(
        "again", ["stale", "--in-space", "default"], "nothing found", lambda memory: _beliefs(memory.stale(["default"]))
    ),
    Step(
        "port",
        ["fact", "add", "gateway", "port", "8080", "--type", "config", "--valid-from", "2026-03-01T00:00Z"],
        "port1  gateway · port · 8080  config  confidence 1.00  since 2026-03-01 00:00  memory port0",
        lambda memory: _stated(
            memory,
            nacre.NewFact(
                subject="gateway",
                predicate="port",
                object="8080",
                type="config",
                valid_from=_at("2026-03-01T00:00Z"),
            ),
        ),
    ),
    Step(
        "other",
        ["fact", "add", "gateway", "port", "9090", "--type", "config", "--confidence", "0.4"],
        "other1  gateway · port · 9090  config  confidence 0.40  since 2026-06-15 12:26  memory other0",
        lambda memory: _stated(
            memory,
            nacre.NewFact(subject="gateway", predicate="port", object="9090", type="config", confidence=0.4),
        ),
    ),
    Step(
        "conflicts",
        ["conflicts"],
        (
            "gateway · port\n"
            "   port1  gateway · port · 8080  config  confidence 1.00  since 2026-03-01 00:00  memory port0\n"
            "   other1  gateway · port · 9090  config  confidence 0.40  since 2026-06-15 12:26  memory other0\n"
            "   2026-06-15 12:25  memory port0  gateway port 8080\n"
            "   2026-06-15 12:26  memory other0  gateway port 9090"
        ),
        lambda memory: [encode.disagreement(each) for each in memory.conflicts()],
    ),
    Step(
        "settled",
        ["fact", "drop", "other1"],
        "dropped other1",
        lambda memory: _done({"dropped": ["other1"]}, lambda: memory.drop_facts(["other1"])),
    ),
    Step(
        "peace",
        ["conflicts", "--in-space", "default"],
        "no conflicts",
        lambda memory: [encode.disagreement(each) for each in memory.conflicts(["default"])],
    ),
    Step(
        "disk",
        ["remember", "The deploy to staging failed: disk full", "--tag", "ops", "--extract", "off"],
        "remembered disk0",
        lambda memory: encode.remembered(
            memory.remember("The deploy to staging failed: disk full", tags=["ops"], extract=False)
        ),
    ),
    Step(
        "twin",
        ["remember", "Note: the deploy to staging failed: disk full", "--extract", "off"],
        "remembered twin0",
        lambda memory: encode.remembered(
            memory.remember("Note: the deploy to staging failed: disk full", extract=False)
        ),
    ),
    Step(
        "same",
        ["similar", "disk0"],
        (
            "twin0  2026-06-15 12:31  note general\nspace: default  language: en\n"
            "Note: the deploy to staging failed: disk full"
        ),
        lambda memory: [encode.memory(each) for each in memory.similar("disk0")],
    ),
    Step(
        "doubled",
        ["why-not", "disk0", "disk", "full"],
        "found: it is number 1",
        lambda memory: encode.why_not(memory.why_not("disk full", "disk0")),
    ),
    Step(
        "placed",
        ["why-not", "disk0", "disk", "full", "--tag", "ops", "--no-tag", "x", "--limit", "3"],
        "found: it is number 1",
        lambda memory: encode.why_not(
            memory.why_not("disk full", "disk0", limit=3, where=nacre.Filter(tags_all=["ops"], tags_none=["x"]))
        ),
    ),
    Step(
        "apart",
        ["similar", "disk0", "--separate"],
        "separated from 1 memory",
        lambda memory: {"separated": memory.separate("disk0")},
    ),
    Step(
        "saved",
        shlex.split(
            "lens save ops --description Operations --tag ops --since 2026-01-01T00:00Z --mode keyword --limit 9"
            " --min-score 0.01 --token-budget 900 --boost-entity Ada --recipe recency_weight=0.5 --recipe fusion=rank"
            " --recipe namespace_weights=decisions:1.5,config:0.8"
            " --question 'on call' --question intent:troubleshoot --folder '*/no/such/*'"
        ),
        "ops  Operations",
        lambda memory: lenses.to_json(
            memory.save_lens(
                nacre.Lens(
                    name="ops",
                    description="Operations",
                    where=nacre.Filter(tags_all=("ops",), created_from=_at("2026-01-01T00:00Z")),
                    mode="keyword",
                    limit=9,
                    min_score=0.01,
                    token_budget=900,
                    boost_entities=("Ada",),
                    recipe={
                        "recency_weight": 0.5,
                        "fusion": "rank",
                        "namespace_weights": {"decisions": 1.5, "config": 0.8},
                    },
                    questions=("on call", "intent:troubleshoot"),
                    folders=("*/no/such/*",),
                )
            )
        ),
    ),
    Step(
        "lenses",
        ["lens", "list"],
        (
            "debugging  built in  Blockers, learnings, tests and recent memories first; keywords such "
            "as error codes count more\n"
            "decisions  built in  Only memories in the namespace decisions\n"
            "recent  built in  Recent memories count up to twice as much\n"
            "exact  built in  Only memories with words of the query\n"
            "broad  built in  More results, including weaker matches\n"
            "brief  built in  The best few results within 500 tokens\n"
            "classic  built in  Plain rank fusion with k = 60, without other signals\n"
            "facts  built in  Only memories with facts\n"
            "ops  Operations"
        ),
        lambda memory: [lenses.to_json(each) for each in memory.lenses()],
    ),
    Step("shown", ["lens", "show", "ops"], AS_JSON, lambda memory: lenses.to_json(memory.lens("ops"))),
    Step("built", ["lens", "show", "exact"], AS_JSON, lambda memory: lenses.to_json(memory.lens("exact"))),
    Step(
        "first",
        ["search", "full", "--mode", "keyword", "--limit", "1"],
        ("1. 25%  The deploy to staging failed: disk [full]\n        disk0  2026-06-15 12:30  general #ops"),
        lambda memory: encode.search_result(memory.search("full", mode="keyword", limit=1)),
    ),
    Step(
        "asked",
        ["search", "disk", "--lens", "ops", "--asked-in", "agent-7", "--why"],
        (
            "1. >99%  The deploy to staging failed: [disk] full\n"
            "         disk0  2026-06-15 12:30  general #ops\n"
            "         words: BM25 1.42, rank 1 → 1 / (60 + 1) = 0.01639\n"
            "         recency: 0 days old → × 1.5000\n"
            "         score 0.02459, bm25\n"
            "lens: ops"
        ),
        lambda memory: encode.search_result(memory.search("disk", lens="ops", session="agent-7")),
    ),
    Step(
        "opened",
        ["get", "disk0"],
        (
            "disk0  2026-06-15 12:30  note general\nspace: default  tags: ops  language: en\n"
            "The deploy to staging failed: disk full"
        ),
        lambda memory: encode.fetched(memory.get(["disk0"])),
    ),
    Step(
        "used",
        ["mark", "used", "disk0"],
        "used: disk0",
        lambda memory: {"outcome": "used", "marked": [*memory.mark(["disk0"], "used")]},
    ),
    Step(
        "wrong",
        ["mark", "wrong", "disk0", "--receipt", "asked0"],
        "wrong: disk0",
        lambda memory: {"outcome": "wrong", "marked": [*memory.mark(["disk0"], "wrong", "asked0")]},
    ),
    Step(
        "twice",
        ["mark", "used", "disk0"],
        "used: nothing new",
        lambda memory: {"outcome": "used", "marked": [*memory.mark(["disk0"], "used")]},
    ),
    Step(
        "log",
        ["log", "--session", "agent-7"],
        (
            "asked0  2026-06-15 12:41  disk  keyword  session agent-7  lens ops\n"
            "   1. disk0  0.02459  opened, used, wrong"
        ),
        lambda memory: _receipts(memory.receipts(session="agent-7")),
    ),
    Step(
        "before",
        ["log", "--before", "asked0", "--limit", "1", "--in-space", "default"],
        ("first0  2026-06-15 12:40  full  keyword\n   1. disk0  1.10108"),
        lambda memory: _receipts(memory.receipts(before="asked0", limit=1, spaces=["default"])),
    ),
    Step(
        "recalled",
        ["why-recalled", "disk0", "--limit", "5", "--in-space", "default"],
        (
            "asked0  2026-06-15 12:41  disk  keyword  session agent-7  lens ops\n"
            "   1. disk0  0.02459  opened, used, wrong\n"
            "first0  2026-06-15 12:40  full  keyword\n"
            "   1. disk0  1.10108"
        ),
        lambda memory: _receipts(memory.receipts(memory_id="disk0", limit=5, spaces=["default"])),
    ),
    Step(
        "why",
        ["why", "disk0", "deploy", "disk", "-tuesday", "--mode", "keyword"],
        (
            "1. disk0\n"
            "   words: BM25 2.85, rank 1 → 1 × 1.00² × 1.00 = 1.00098\n"
            "   recency: 0 days old → × 1.1000\n"
            "   usage: wrong before → × 0.9867\n"
            "   score 1.086422, relevance 0.25"
        ),
        lambda memory: encode.why(memory.why("deploy disk -tuesday", "disk0", mode="keyword")),
    ),
    Step(
        "hidden",
        ["why", "disk0", "deploy", "-staging"],
        (
            "condition: it does not match a condition of the query or the lens (a phrase, AND, NOT or a "
            "filter such as tag:)\n"
            "to include it: leave the conditions out, or quote less"
        ),
        lambda memory: encode.why(memory.why("deploy -staging", "disk0")),
    ),
    Step(
        "whynot",
        ["why-not", "-staging", "disk0", "deploy"],
        (
            "condition: it does not match a condition of the query or the lens (a phrase, AND, NOT or a "
            "filter such as tag:)\n"
            "to include it: leave the conditions out, or quote less"
        ),
        lambda memory: encode.why_not(memory.why_not("deploy -staging", "disk0")),
    ),
    Step(
        "deleted",
        ["lens", "delete", "ops"],
        "deleted ops",
        lambda memory: _done({"deleted": "ops"}, lambda: memory.drop_lens("ops")),
    ),
    Step(
        "cleared",
        ["log", "clear", "--session", "agent-7", "--before", "2026-06-16T00:00Z", "--in-space", "default", "--yes"],
        "cleared 1 search",
        lambda memory: {
            "cleared": memory.clear_log(session="agent-7", before=_at("2026-06-16T00:00:00+00:00"), spaces=["default"])
        },
    ),
)


@pytest.fixture
def unknown_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a folder that selects no lens."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("unknown_folder")
def test_what_people_see(cli: Cli, world: World) -> None:
    for step in SESSION:
        world.enter(step.name)
        answer = cli(*step.arguments)
        assert (answer.code, answer.err) == (0, ""), step.name
        shown = "\n".join(line.rstrip() for line in answer.out.rstrip("\n").split("\n"))
        if step.shows == AS_JSON:
            assert answer.out == cli(*step.arguments, "--json").out, step.name
        else:
            assert shown == step.shows, step.name


@pytest.mark.slow
@pytest.mark.usefixtures("unknown_folder")
def test_the_same_session_through_library_and_command_line_gives_the_same_json(
    cli: Cli, world: World, tmp_path: Path
) -> None:
    for step in SESSION:
        world.enter(step.name)
        answer = cli(*step.arguments, "--json")
        assert (answer.code, answer.err) == (0, ""), step.name
        world.made = 0
        with nacre.open(tmp_path / "library.db", embedder="hashing") as memory:
            expected = step.verb(memory)
        assert answer.json == json.loads(encode.dumps(expected)), step.name


def test_every_command_is_in_the_session() -> None:
    """With each of its options; those of `why` are the options of `search`, and those of relations are of facts."""
    typed = [" ".join(step.arguments) for step in SESSION]
    modules = {each.__name__ for each in (entities, explain, facts, lens_commands, recall_log)}
    for name, command in every_command():
        tested_here = name == "similar" or getattr(command.callback, "__module__", None) in modules
        if isinstance(command, click.Group) or not tested_here:
            continue
        asked = [each for each in typed if re.match(rf"{name}( |$)", each)]
        assert asked, name
        if name in ("why", "why-not", "relation add", "relation list", "lens save"):
            continue
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.expose_value:
                options = (*parameter.opts, *parameter.secondary_opts)
                assert any(option in each for each in asked for option in options), f"{name} {options}"


# ---------------------------------------------------------------- bad input


@pytest.fixture
def some(cli: Cli) -> str:
    """A store with one memory that has facts."""
    answer = cli("remember", "Ada lives in Rome. Ada works at Acme.", "--json")
    return str(answer.json["id"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fact", "add", "Ada", "is"], "OBJECT"),
        (["fact", "add", "Ada", "is", "well", "--memory", "nobody"], "no memory 'nobody'"),
        (["fact", "add", " ", "is", "well"], "subject: is blank"),
        (["fact", "add", "Ada", "is", "well", "--confidence", "2"], "confidence: is 2.0"),
        (["fact", "add", "Ada", "is", "well", "--confidence", "much"], "--confidence"),
        (["fact", "add", "Ada", "is", "well", "--decay-rate", "11"], "decay_rate: is 11.0"),
        (["fact", "add", "Ada", "is", "well", "--type", "colour"], "type: 'colour' is unknown; allowed: iden"),
        (["fact", "add", "Ada", "is", "well", "--valid-from", "soon"], "valid_from: 'soon' is not a time"),
        (["fact", "add", "Ada", "is", "well", "--valid-to", "2020-01-01"], "valid_to: is before the memory's time"),
        (["fact", "list", "--limit", "0"], "limit: is 0; a whole number from 1 to 10,000 is allowed"),
        (["fact", "list", "--type", "colour"], "type: 'colour' is unknown"),
        (["fact", "list", "--as-of", "soon"], "as_of: 'soon' is not a time"),
        (["fact", "list", "--subject", " "], "subject: is blank"),
        (["fact", "drop"], "FACT"),
        (["fact", "drop", "nobody"], "no fact 'nobody'; see `nacre fact list`"),
        (["fact", "frobnicate"], "frobnicate"),
        (["reinforce", "nobody"], "no memory or fact 'nobody'"),
        (["reinforce", "nobody", "--how", "gossip"], "how: 'gossip' is unknown; allowed: explicit, import, reference"),
        (["entity", "add", " "], "name: is blank"),
        (["entity", "add", "Ada", "--alias", " "], "aliases"),
        (["entity", "add", "Ada", "--memory", "nobody"], "no memory 'nobody'"),
        (["entity", "list", "--limit", "0"], "limit: is 0"),
        (["entity", "show", "Nobody"], "no entity is called 'Nobody'; see `nacre entity list`"),
        (["entity", "show", "Ada", "--limit", "0"], "limit: is 0"),
        (["entity", "drop", "Nobody"], "no entity 'Nobody'; see `nacre entity list`"),
        (["entity", "related", "Nobody"], "no entity 'Nobody'; see `nacre entity list`"),
        (["entity", "related", "Ada", "--depth", "0"], "depth: is 0; a whole number from 1 to 3 is allowed"),
        (["entity", "related", "Ada", "--depth", "4"], "depth: is 4; a whole number from 1 to 3 is allowed"),
        (["entity", "related", "Ada", "--depth", "deep"], "--depth"),
        (["entity", "related", "Ada", "--as-of", "soon"], "as_of: 'soon' is not a time"),
        (["relation", "add", "Ada", "knows", ""], "object: is blank"),
        (["relation", "list", "--limit", "0"], "limit: is 0"),
        (["relation", "search"], "QUERY"),
        (["similar", "nobody"], "no memory 'nobody'"),
        (["similar", "nobody", "--separate"], "no memory 'nobody'"),
        (["lens", "show", "nope"], "lens: 'nope' is unknown; allowed: debugging, "),
        (["lens", "delete", "nope"], "lens: 'nope' is unknown; allowed: debugging, "),
        (["lens", "delete", "exact"], "exact is built in and cannot be dropped"),
        (["lens", "save", "exact"], "'exact' is taken"),
        (["lens", "save", "none"], "'none' is taken"),
        (["lens", "save", "two words"], "'two words' is not a name"),
        (["lens", "save", "x", "--mode", "psychic"], "mode: 'psychic' is unknown"),
        (["lens", "save", "x", "--limit", "0"], "limit: is 0"),
        (["lens", "save", "x", "--min-score", "2"], "min_score: is 2.0"),
        (["lens", "save", "x", "--recipe", "alpha"], "recipe: 'alpha' must be FIELD=VALUE"),
        (
            ["lens", "save", "x", "--recipe", "alpha=0,5"],
            "must be FIELD=VALUE, for example recency_weight=0.5, fusion=rank",
        ),
        (
            ["lens", "save", "x", "--recipe", "namespace_weights=decisions"],
            "recipe.namespace_weights: is 'decisions'; write it like decisions:1.5,config:0.8",
        ),
        (
            ["lens", "save", "x", "--recipe", "namespace_weights=decisions:9"],
            "recipe.namespace_weights['decisions']: is 9.0; a number from 0.5 to 2 is allowed",
        ),
        (["lens", "save", "x", "--recipe", "alpha=much"], "recipe.alpha: is 'much'; a number from 0 to 1 is allowed"),
        (
            ["lens", "save", "x", "--recipe", "fusion=ranks"],
            "recipe.fusion: 'ranks' is unknown; allowed: height, rank, boost",
        ),
        (["lens", "save", "x", "--recipe", "alpha=2"], "recipe.alpha: is 2; a number from 0 to 1 is allowed"),
        (["lens", "save", "x", "--recipe", "colour=1"], "recipe.colour: is unknown; allowed: fusion, k, alpha"),
        (["lens", "save", "x", "--question", " "], "questions"),
        (["lens", "save", "x", "--folder", "*" * 9], "folders: a pattern may have 8 wildcards at most"),
        (["lens", "save", "x", "--in-space", "other"], "where.spaces: must be empty"),
        (["lens", "save", "x", "--file", "missing.json"], "missing.json cannot be read as JSON"),
        (["log", "--limit", "0"], "limit: is 0"),
        (["log", "--session", " "], "session: is blank"),
        (["log", "--before", "nobody"], "before: no receipt 'nobody' is kept"),
        (["mark", "liked", "nobody"], "outcome: 'liked' is unknown; allowed: opened, used, wrong"),
        (["mark", "used"], "ID"),
        (["mark", "used", "nobody"], "no memory 'nobody'"),
        (["why", "nobody"], "QUERY"),
        (["why", "nobody", "Rome"], "no memory 'nobody'"),
        (["why-not", "nobody", "Rome"], "no memory 'nobody'"),
        (["why-not", "nobody", "Rome", "--lens", "nope"], "lens: 'nope' is unknown"),
        (["why-recalled", "x", "--limit", "0"], "limit: is 0"),
    ],
)
@pytest.mark.usefixtures("some")
def test_bad_input_is_named_with_exit_code_2(cli: Cli, arguments: list[str], said: str) -> None:
    answer = cli(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.usefixtures("some")
def test_quotes_and_commas_in_the_name_of_an_entity_are_part_of_it(cli: Cli) -> None:
    cli("remember", "The kiln is cold", "--entity", "Kiln, north", "--entity", 'The "Bo" kiln')
    cli("remember", "Bo was here")
    assert "The kiln is cold" in cli("entity", "show", "Kiln, north").out
    assert "Bo was here" not in cli("entity", "show", 'The "Bo" kiln').out


def test_errors_are_json_where_that_is_asked_for(cli: Cli) -> None:
    for arguments, kind, field in (
        (["search", "x", "--lens", "nope"], "InvalidInput", "lens"),
        (["fact", "drop", "nobody"], "NotFound", None),
        (["mark", "liked", "x"], "InvalidInput", "outcome"),
        (["entity", "related", "Ada", "--depth", "9"], "InvalidInput", "depth"),
        (["fact", "add", "a", "b", "c", "--confidence", "2"], "InvalidInput", "confidence"),
    ):
        answer = cli(*arguments, "--json")
        assert (answer.code, answer.out) == (2, "")
        error = json.loads(answer.err)["error"]
        assert (error["type"], error.get("field")) == (kind, field)


def test_a_mark_needs_a_search_that_delivered_it(cli: Cli, some: str) -> None:
    answer = cli("mark", "used", some)
    assert (answer.code, answer.out) == (2, "")
    other = cli("remember", "another one", "--json").json["id"]
    receipt = cli("search", "Rome", "--mode", "keyword", "--json").json["receipt"]
    assert cli("mark", "used", some, "--receipt", receipt).out == f"used: {some}\n"
    for arguments in (["mark", "used", other, "--receipt", receipt], ["mark", "used", some, "--receipt", "nobody"]):
        answer = cli(*arguments)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("error: ")


def test_a_fact_that_is_refused_leaves_nothing(cli: Cli) -> None:
    cli("remember", "something else")
    for options in (["--confidence", "2"], ["--type", "colour"], ["--valid-to", "2020-01-01"], ["--decay-rate", "-1"]):
        assert cli("fact", "add", "Ada", "is", "well", *options).code == 2
        assert cli("relation", "add", "Ada", "knows", "Grace", *options).code == 2
    assert cli("stats", "--json").json["memories"] == 1


# ---------------------------------------------------------------- facts and entities


def test_what_is_read_from_a_text_is_switched_on_and_off(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def facts_of(text: str, *options: str) -> int:
        memory_id = cli("remember", text, *options, "--json").json["id"]
        return len(cli("fact", "list", "--memory", memory_id, "--json").json)

    assert facts_of("Ada lives in Rome") == 1
    assert facts_of("Ada lives in Oslo", "--extract", "off") == 0
    monkeypatch.setenv("NACRE_EXTRACT", "off")
    assert facts_of("Ada lives in Bern") == 0
    assert facts_of("Ada lives in Kyiv", "--extract", "on") == 1


def test_facts_fade_as_they_are_given_to(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_DECAY_RATES", "state=0,location=2.5")
    for text in ("The runner is offline", "Ada lives in Rome"):
        cli("remember", text, "--created", "2026-01-01")
    rates = {each["type"]: each["decay_rate"] for each in cli("fact", "list", "--json").json}
    assert rates == {"state": 0, "location": 2.5}


def test_a_fact_is_added_in_the_space_that_is_named(cli: Cli) -> None:
    stated = cli("fact", "add", "Ada", "lives in", "Rome", "--space", "work", "--json").json
    assert stated["space"] == "work"
    assert cli("fact", "list", "--json").json == []
    assert [each["id"] for each in cli("fact", "list", "--in-space", "work", "--json").json] == [stated["id"]]
    assert cli("entity", "list", "--json").json == []
    assert cli("entity", "list", "--in-space", "work", "--json").json[0]["name"] == "Ada"
    more = cli("fact", "add", "Ada", "likes", "tea", "--memory", stated["memory_id"], "--json").json
    assert more["space"] == "work"


def test_json_lines_bring_facts_and_entities(cli: Cli) -> None:
    given = {
        "text": "Atlas runs in Frankfurt",
        "happened": "2026-03-01T10:00:00Z",
        "extract": False,
        "entities": ["Atlas", {"name": "Frankfurt", "type": "region", "aliases": ["eu-central-1"]}],
        "facts": [
            {
                "subject": "Atlas",
                "predicate": "runs in",
                "object": "eu-central-1",
                "type": "location",
                "confidence": 0.8,
                "decay_rate": 0,
                "valid_from": "2026-03-02T00:00:00+01:00",
                "valid_to": "2036-03-02T00:00:00Z",
                "quote": "runs in",
                "relation": True,
                "single": True,
            },
            {"subject": "Atlas", "predicate": "owner", "object": "Ada"},
        ],
    }
    answer = cli("remember", "--jsonl", "--json", stdin=json.dumps(given) + "\n")
    assert (answer.code, answer.err) == (0, "")
    memory_id = answer.json["id"]
    (stored,) = cli("get", memory_id, "--json").json["memories"]
    assert stored["happened"] == "2026-03-01T10:00:00Z"
    kept = [{key: fact[key] for key in given} for fact, given in zip(stored["facts"], _facts(given), strict=True)]
    assert kept == _facts(given)
    assert {fact["origin"] for fact in stored["facts"]} == {"given"}
    assert [each["name"] for each in cli("entity", "list", "--json").json] == ["Atlas", "Frankfurt"]
    assert cli("entity", "related", "Atlas", "--json").json[0]["name"] == "Frankfurt"
    assert cli("search", 'entity:"eu-central-1"', "--json").json["hits"][0]["id"] == memory_id
    shown = cli("get", memory_id).out
    assert "happened: 2026-03-01" in shown
    assert "Atlas · runs in · eu-central-1" in shown


def _facts(given: dict[str, Any]) -> list[dict[str, Any]]:
    """As they are kept: times in UTC."""
    first, *others = given["facts"]
    return [{**first, "valid_from": "2026-03-01T23:00:00Z"}, *others]


def test_the_json_line_on_the_page_is_one(cli: Cli) -> None:
    found = re.search(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    answer = cli("remember", "--jsonl", stdin=" ".join(found[1].split("\n")) + "\n")
    assert answer == Answer(0, "remembered 1 (0 already stored)\n", "")
    assert cli("entity", "related", "Atlas", "--json").json[0]["name"] == "Frankfurt"


def test_the_numbers_and_names_on_the_page_are_those_of_the_code() -> None:
    page = " ".join(PAGE.read_text("utf-8").split())
    assert ", ".join(f"{name} {rate:g}" for name, rate in DECAY_PER_DAY.items()) in page
    assert f"never less than {confidence.FLOOR:g}" in page
    assert f"`NACRE_LOG_DAYS` | `{LOG_DAYS}`" in page
    for name in (*get_args(FactType), *get_args(Reinforcement), *get_args(Stage)):
        assert f"`{name}`" in page, name
    for lens in lenses.BUILT_IN.values():
        assert f"{lens.name} built in {lens.description}" in page


def test_nothing_is_said_in_words(cli: Cli, some: str) -> None:
    """Who looks for something that is not there is told so, on stdout, with exit code 0."""
    for arguments, said in (
        (["fact", "list", "--subject", "Nobody"], "nothing found"),
        (["relation", "list", "--subject", "Nobody"], "nothing found"),
        (["relation", "search", "Nobody"], "nothing found"),
        (["entity", "list", "Nobody"], "nothing found"),
        (["entity", "list", "--in-space", "other"], "nothing found"),
        (["entity", "related", "Acme", "--as-of", "2020-01-01"], "no related entities"),
        (["stale"], "nothing found"),
        (["conflicts"], "no conflicts"),
        (["log", "--session", "nobody"], "nothing found"),
        (["why-recalled", some, "--in-space", "other"], "nothing found"),
        (["similar", some], "nothing found"),
    ):
        assert cli(*arguments) == Answer(0, f"{said}\n", ""), arguments
        assert cli(*arguments, "--json") == Answer(0, "[]\n", ""), arguments


# ---------------------------------------------------------------- why


def test_why_and_why_not_read_the_query_as_search_does(cli: Cli) -> None:
    staging = cli("remember", "we deploy to staging on Monday", "--json").json["id"]
    production = cli("remember", "we deploy to production on Friday", "--tag", "live", "--json").json["id"]
    hits = cli("search", "deploy", "-staging", "--json").json["hits"]
    assert [hit["id"] for hit in hits] == [production]
    for typed in (
        [production, "deploy", "-staging"],
        [production, "-staging", "deploy"],
        ["-staging", production, "deploy"],
        [production, "deploy -staging"],
        ["--", production, "deploy", "-staging"],
    ):
        why = cli("--json", "why", *typed).json
        assert (why["memory_id"], why["rank"], why["left_out"]["stage"]) == (production, 1, "found")
        assert why["hit"]["score"] == hits[0]["score"]
        assert cli("--json", "why-not", *typed).json["stage"] == "found"
    lost = cli("why-not", staging, "deploy", "-staging", "--json").json
    assert lost == cli("why", staging, "deploy", "-staging", "--json").json["left_out"]
    assert lost["stage"] == "condition"
    for options, stage in (
        (["--tag", "live"], "filter"),
        (["--in-space", "other"], "space"),
        (["--mode", "keyword", "--min-score", "1"], "irrelevant"),
        (["--limit", "1", "--mode", "keyword"], "limit"),
        (["--as-of", "2020-01-01"], "filter"),
        (["--lens", "decisions"], "filter"),
    ):
        delivered = cli("why-not", staging, "deploy Friday", *options)
        assert delivered.out.startswith(f"{stage}: "), options
        assert "to include it: " in delivered.out
    cli("forget", staging)
    assert cli("why-not", staging, "deploy", "--json").json["stage"] == "deleted"


def test_asking_why_is_not_logged(cli: Cli, some: str) -> None:
    cli("why", some, "Rome")
    cli("why-not", some, "Rome")
    assert cli("log", "--json").json == []


def test_a_relation_that_was_found_delivers_no_memory(cli: Cli, some: str) -> None:
    assert cli("relation", "search", "Acme", "--json").json[0]["fact"]["memory_id"] == some
    assert cli("why-recalled", some, "--json").json == []


# ---------------------------------------------------------------- lenses


def test_the_folder_selects_a_lens(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = cli("remember", "the deploy failed", "--tag", "ops", "--json").json["id"]
    other = cli("remember", "the deploy is on Friday", "--json").json["id"]
    assert cli("lens", "save", "ops", "--tag", "ops", "--folder", "*/infra/*").out.strip() == "ops"
    (tmp_path / "infra" / "deep").mkdir(parents=True)

    def found(*options: str) -> tuple[str | None, set[str]]:
        result = cli("search", "deploy", *options, "--json").json
        return result["lens"], {hit["id"] for hit in result["hits"]}

    monkeypatch.chdir(tmp_path)
    assert found() == (None, {ops, other})
    for folder in ("infra", "infra/deep"):
        monkeypatch.chdir(tmp_path / folder)
        assert found() == ("ops", {ops})
        assert cli("search", "deploy").out.endswith("\nlens: ops\n")
        assert cli("why-not", other, "deploy", "--json").json["stage"] == "filter"
        assert found("--lens", "none") == (None, {ops, other})
        assert "lens: " not in cli("search", "deploy", "--lens", "none").out
        assert found("--lens", "exact") == ("exact", {ops, other})
    cli("lens", "delete", "ops")
    assert found() == (None, {ops, other})


def test_a_lens_of_a_question_or_a_space(cli: Cli) -> None:
    cli("remember", "who is on call", "--space", "work")
    cli("lens", "save", "rota", "--question", "on call", "--limit", "1", "--space", "work")
    assert cli("search", "who is on call?", "--space", "work", "--json").json["lens"] == "rota"
    assert cli("search", "who calls?", "--space", "work", "--json").json["lens"] is None
    assert cli("search", "who is on call?", "--json").json["lens"] is None
    assert cli("lens", "show", "rota").code == 2


def test_a_lens_is_saved_as_it_was_shown(cli: Cli, tmp_path: Path) -> None:
    first = cli("lens", "save", "one", "--tag", "ops", "--until", "2026-03-01", "--recipe", "k=30", "--json").json
    file = tmp_path / "lens.json"
    file.write_text(cli("lens", "show", "one").out, "utf-8")
    again = cli("lens", "save", "two", "--file", str(file), "--json").json
    assert again == {**first, "name": "two"}
    assert cli("lens", "show", "two", "--json").json == again
    file.write_text(cli("lens", "show", "debugging").out, "utf-8")
    assert "built_in" not in cli("lens", "save", "two", "--file", str(file), "--json").json
    for content, said in (
        ("{", "cannot be read as JSON"),
        ("[]", "must contain a JSON object"),
        ('{"colour": 1}', "colour: is unknown"),
        ('{"where": {"colour": 1}}', "where.colour: is unknown"),
        ('{"where": {"created_from": "soon"}}', "where.created_from: 'soon' is not a time"),
        ('{"limit": "many"}', "limit: is 'many'"),
    ):
        file.write_text(content, "utf-8")
        answer = cli("lens", "save", "two", "--file", str(file))
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err


def test_a_lens_from_a_file_takes_no_options_besides(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "lens.json"
    file.write_text('{"limit": 3}', "utf-8")
    for options in (["--limit", "7"], ["--tag", "ops"], ["--recipe", "k=30"], ["--folder", "*"]):
        answer = cli("lens", "save", "one", "--file", str(file), *options)
        assert (answer.code, answer.out) == (2, ""), options
        assert "file" in answer.err


# ---------------------------------------------------------------- real processes


_NARROW = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
_UNLOGGED = {"NACRE_LOG": "off"}
_COLOURED = {"TERM": "xterm-256color", "NO_COLOR": ""}
_PLAIN = {"TERM": "xterm-256color", "NO_COLOR": "1"}


def _process(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "nacre", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
    )


def _json(*arguments: str, env: Mapping[str, str] | None = None) -> Any:
    done = _process(*arguments, "--json", env=env)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.slow
def test_receipts_outlive_the_process() -> None:
    first = _json("remember", "The deploy failed: disk full")["id"]
    found = _json("search", "disk", "--asked-in", "agent-7", "--mode", "keyword")
    (receipt,) = _json("log")
    assert (receipt["id"], receipt["query"], receipt["session"]) == (found["receipt"], "disk", "agent-7")
    (delivery,) = receipt["deliveries"]
    assert delivery == {
        "memory_id": first,
        "rank": 1,
        "score": found["hits"][0]["score"],
        "opened": None,
        "used": None,
        "wrong": None,
    }
    assert _process("get", first).returncode == 0
    (delivery,) = _json("log")[0]["deliveries"]
    assert delivery["opened"] is not None
    assert delivery["used"] is None
    assert _json("mark", "used", first) == {"outcome": "used", "marked": [first]}
    (delivery,) = _json("why-recalled", first)[0]["deliveries"]
    assert delivery["used"] is not None


@pytest.mark.slow
def test_nothing_is_logged_when_the_log_is_off(path: Path) -> None:
    first = _json("remember", "The deploy failed: disk full", env=_UNLOGGED)["id"]
    found = _json("search", "disk", env=_UNLOGGED)
    assert [hit["id"] for hit in found["hits"]] == [first]
    assert found["receipt"] is None
    assert _process("get", first, env=_UNLOGGED).returncode == 0
    assert _json("log", env=_UNLOGGED) == []
    assert _json("log") == []
    with nacre.open(path, embedder="hashing") as memory:
        assert memory.receipts() == []
        assert memory.search("disk").receipt is not None
    assert len(_json("log", env=_UNLOGGED)) == 1  # what was logged before can still be read


@pytest.mark.slow
def test_only_the_answer_is_on_stdout_and_all_is_utf8() -> None:
    """Whatever the locale says."""
    added = _process("relation", "add", "Zoë", "wohnt in", "東京", env=_NARROW)
    assert (added.returncode, added.stderr) == (0, b"")
    assert "Zoë · wohnt in · 東京" in added.stdout.decode("utf-8")
    assert _process("entity", "add", "Zoë", "--alias", "Зоя", env=_NARROW).stdout.decode("utf-8") == "Zoë  also Зоя\n"
    assert "Zoë · wohnt in · 東京" in _process("entity", "related", "зоя", env=_NARROW).stdout.decode("utf-8")
    raw = _process("entity", "list", "--json", env=_NARROW).stdout.decode("utf-8")
    assert "Зоя" in raw
    refused = _process("lens", "show", "größer", env=_NARROW)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.decode("utf-8").startswith("error: lens: 'größer' is unknown; allowed: debugging, ")
    for arguments in (["fact", "list"], ["log"], ["lens", "list"], ["conflicts"]):
        done = _process(*arguments, env={"FORCE_COLOR": "1"})
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_colours_are_for_terminals_and_not_with_no_color() -> None:
    _process("fact", "add", "Ada", "lives in", "Rome")
    _process("search", "Rome")
    for arguments in (["fact", "list"], ["log"], ["entity", "show", "Ada"], ["lens", "list"]):
        coloured = _on_terminal(_COLOURED, *arguments)
        plain = _on_terminal(_PLAIN, *arguments)
        assert b"\x1b[" in coloured, arguments
        assert b"\x1b" not in plain, arguments
    _process("remember", "red \x1b[41m, \x9b31m, bell \x07, back \x08, \u202eturned", "--tag", "\x1b]0;title\x07")
    for environment in (_COLOURED, _PLAIN, {**_COLOURED, "TERM": "dumb"}):
        for arguments in (["search", "bell"], ["timeline"], ["search", "bell", "--json"], ["context", "bell"]):
            shown = _on_terminal(environment, *arguments).decode()
            assert "turned" in shown
            assert not re.search("\x1b\\[41m|\x9b|\x07|\x08|\u202e|\x1b]", shown), (environment, arguments)
    refused = _on_terminal(_PLAIN, "lens", "show", "nope")
    assert refused.startswith(b"error: lens: 'nope' is unknown; allowed: debugging, ")


def _on_terminal(env: Mapping[str, str], *arguments: str) -> bytes:
    """Everything that a command writes to a terminal."""
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "nacre", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **env},
    ) as running:
        os.close(theirs)
        written = b"".join(_read(ours))
        running.wait()
    os.close(ours)
    return written


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the other side is closed
            return
        if not piece:
            return
        yield piece


@pytest.mark.slow
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="folders have names there, and stay while in use")
def test_a_search_works_in_any_folder(tmp_path: Path) -> None:
    _process("remember", "something to find")
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    done = _process("search", "find", cwd=odd)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"something to [find]" in done.stdout
    command = f'mkdir gone && cd gone && rmdir ../gone && "{sys.executable}" -m nacre search find'
    gone = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=False)
    assert (gone.returncode, gone.stderr) == (0, b"")
    assert b"something to [find]" in gone.stdout
