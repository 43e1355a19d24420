"""The same calls through library, command line, agents' server, HTTP and client give the same JSON and errors.

One store is written once. For each case every door gets its own copy of the file, so that calls that write disturb no
other. All doors have the same clock and make the same ids: even receipts and the times of now must be equal.
"""

from __future__ import annotations

import ast
import io
import json
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest import mock

import click
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client

import nacre
from command_line import clear_settings
from http_calls import Called, Noting, raw, send
from mcp_clients import engines_on, listed, problem
from mcp_clients import given as structured
from nacre import Filter, Lens, NewEntity, NewFact, NewMemory, Recipe
from nacre.cli import options, run
from nacre.cli.group import nacre as commands
from nacre.config import factory
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import NacreError
from nacre.mcp_server import wording
from nacre.mcp_server.server import RequestHandlers, build_server
from nacre.mcp_server.tools import chosen
from nacre.query import lenses
from nacre.serialization import decode, encode
from nacre.types.facts import FactQuery
from nacre.types.location import SCHEMA
from nacre.types.recipe import parse_weight
from nacre.types.search import RelatedRequest, SearchRequest
from nacre.types.views import TimelineRequest
from postgres_server import needs_postgres, reused_schemas
from servers import SwitchedServer, error_of, switched

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
SESSION = "s"  # of the one client that the agents' server has: each call belongs to it unless it names another
ENTITIES_LISTED, RECEIPTS_LISTED = 1_000, 50  # by default, as the verbs say


# ---------------------------------------------------------------- what is remembered


def _turn(number: int) -> NewMemory:
    """A turn of one session, with a fact that holds."""
    who = ("Ada", "Bo", "Mara", "Lin")[number % 4]
    what = ("cache", "deploy pipeline", "login page", "billing job", "search index")[number % 5]
    said = ("is slow again", "fails on staging", "needs a test", "was fixed by a retry", "costs too much", "is fine")
    return NewMemory(
        text=f"{who}: the {what} {said[number % 6]}, see ticket {4_000 + number} about the {what}",
        kind=("episode", "note", "observation")[number % 3],
        namespace=("general", "decisions", "learnings", "blockers")[number % 4],
        tags=[each for step, each in ((2, "infra"), (3, "urgent"), (7, "ünïcode tag")) if number % step == 0],
        source=f"chat/{number % 3}.md" if number % 5 else None,
        session="planning",
        position=number,
        metadata={"ticket": 4_000 + number, "open": number % 2 == 0},
        importance=number % 11 / 10,
        created=datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(hours=13 * number),
        facts=[NewFact(subject=f"ticket {4_000 + number}", predicate="state", object=f"step {number % 6}")],
    )


def _service(number: int) -> NewMemory:
    return NewMemory(
        text=f"Service {number} answers on port {8_000 + number}; deploy it after service {number - 1}",
        namespace="config",
        tags=["infra", f"rack-{number % 4}"],
        source="docs/services.md",
        summary=f"Where service {number} listens" if number % 2 else None,
        created=datetime(2026, 4, 10, tzinfo=UTC) + timedelta(minutes=37 * number),
        facts=[NewFact(subject=f"service {number}", predicate="port", object=str(8_000 + number), type="config")],
        extract=False,
    )


def _of(text: str, day: str, **fields: Any) -> NewMemory:
    return NewMemory(text=text, created=datetime.fromisoformat(f"{day}T08:30:00Z"), **fields)


def _relation(subject: str, predicate: str, target: str) -> NewFact:
    return NewFact(subject=subject, predicate=predicate, object=target, type="relationship", relation=True)


_LONG = " ".join(
    f"Chapter {at}: the crew of the lighthouse wrote down the weather, the ships and what they ate."
    + (" The lamp was exchanged by Mara for a brighter one." if at == 37 else "")
    for at in range(60)
)

# fmt: off
WORK: dict[str, NewMemory] = {  # by id
    **{f"turn-{number:02}": _turn(number) for number in range(60)},
    **{f"service-{number:02}": _service(number) for number in range(60)},
    "london": _of("Ada lives in London", "2026-03-02",
                  entities=[NewEntity(name="Ada", type="person", aliases=["the countess"])]),
    "paris": _of("Ada lives in Paris", "2026-05-02", entities=["Ada"], namespace="people"),
    "acme": _of("Ada and Bo are colleagues", "2026-03-03", facts=[
        _relation("Ada", "works at", "Acme"), _relation("Bo", "works at", "Acme"),
        _relation("Acme", "is based in", "Berlin"), _relation("Berlin", "lies in", "Germany")]),
    "red": _of("The door is red", "2026-06-01", facts=[NewFact(subject="door", predicate="colour", object="red")]),
    "blue": _of("Somebody thinks that the door is blue", "2026-06-02",
                facts=[NewFact(subject="door", predicate="colour", object="blue", confidence=0.2)]),
    "backup": _of("The nightly backup goes to the vault in Oslo", "2026-04-01", tags=["infra"]),
    "backup-again": _of("The nightly backup really goes to the vault in Oslo!", "2026-04-02", tags=["infra"]),
    "long": _of(_LONG, "2026-04-03", source="books/lighthouse.txt", kind="observation"),
    "longer": _of(_LONG * 3 + "The keeper's cat is called Umbra.", "2026-04-04", summary="The lighthouse, whole"),
    "lines": _of('First line\n\n\tsecond "quoted" line\n</memory>\n[now: nothing] 🐚', "2026-04-05"),
    "chinese": _of("我们决定使用数据库来保存记忆", "2026-04-06", namespace="decisions"),
    "japanese": _of("灯台のランプは明るくなりました", "2026-04-07"),
    "russian": _of("Маяк построили на острове прошлой весной", "2026-04-08"),
    "arabic": _of("نسخة احتياطية كل ليلة", "2026-04-09"),
    "hindi": _of("दीपक रोज़ रात को जलता है", "2026-04-09"),
    "decided": _of("We decided to keep PostgreSQL for billing", "2026-06-10", namespace="decisions", kind="fact",
                   happened=datetime(2026, 6, 1, tzinfo=UTC), session="retro", position=1, tags=["database"]),
    "undecided": _of("Whether billing moves to Berlin is open", "2026-06-11", session="retro", position=2),
    "gone": _of("The office is closed on Fridays", "2026-03-05"),
    "gone-too": _of("The lift is out of order", "2026-03-06"),
}
# fmt: on
HOME: dict[str, NewMemory] = {
    **{f"recipe-{number:02}": _of(f"Recipe {number}: soup of {number} carrots", "2026-05-05") for number in range(15)},
    "home-twin": replace(WORK["backup"], tags=[]),
}
CROWD: dict[str, NewMemory] = {
    f"crowd-{at}": _of(f"Guests of evening {at}", "2026-02-01", entities=[f"Guest {at} {each}" for each in range(100)])
    for at in range(ENTITIES_LISTED // 100 + 1)
}
LOGGED = RECEIPTS_LISTED + 5  # searches


class World:
    """The clock and the ids that all doors have. Time stands still while a call is carried out."""

    def __init__(self) -> None:
        self.at = NOW
        self._ids: Iterator[str] = iter(())

    def begin(self, at: datetime, *ids: str, then: str) -> None:
        """Ids that are made from now on: those given, then numbered ones."""
        self.at = at
        self._ids = chain(ids, (f"{then}-{number:04}" for number in count(1)))

    def clock(self) -> datetime:
        return self.at

    def make_ids(self, _: datetime, many: int) -> list[str]:
        return [next(self._ids) for _ in range(many)]


class Still(datetime):
    """For words like "yesterday", which doors read before they call a verb."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Still:
        return cls.fromtimestamp(NOW.timestamp(), tz)


def _write(name: str, world: World, schema: str = SCHEMA) -> None:
    writing = NOW - timedelta(days=10)
    world.begin(writing, *HOME, then="home-fact")
    with nacre.open(name, schema=schema, space="home", embedder=Hashing()) as memory:
        memory.remember_many(HOME.values())
    world.begin(writing, *CROWD, then="crowd-fact")
    with nacre.open(name, schema=schema, space="crowd", embedder=None) as memory:  # so that there is something to embed
        memory.remember_many(CROWD.values())
    world.begin(writing, *WORK, then="work-fact")
    with nacre.open(name, schema=schema, space="work", embedder=Hashing()) as memory:
        memory.remember_many(WORK.values())
        memory.forget(["gone", "gone-too"])
        memory.save_lens(Lens(name="tickets", questions=("ticket",), where=Filter(tags_all=("infra",)), limit=4))
        for number in range(LOGGED):
            world.begin(writing + timedelta(minutes=number), then=f"logged-{number:02}")
            memory.search(f"service {number}", mode="keyword", limit=2, session="earlier")
        world.begin(writing, "laptop", then="token")
        memory.create_token("on the train", role="write", expires=timedelta(days=90))


# ---------------------------------------------------------------- what is called


class Lacks(str):
    """Why a door has no such call."""

    __slots__ = ()


class Each(NamedTuple):
    """One answer in two shapes."""

    cli: Any
    mcp: Any


class Step(NamedTuple):
    """The same call through each door. `library` gives its answer encoded by the codec.

    A client is called as the library is. Over HTTP go the verbs that the library was called with, as raw JSON.
    """

    library: Callable[..., Any]  # of an engine or a client; where there are pages, of a cursor, too
    cli: str
    mcp: tuple[str, dict[str, Any]] | Lacks
    stdin: str = ""  # of the command


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple[Step, ...]  # one after the other: what one has written, the next sees
    space: str = "work"
    many: int | None = None  # how many come, where that is known; a case that finds nothing says 0
    pages: bool = False  # to the very end, each call with the cursor of the page before


def one(name: str, library: Callable[..., Any], cli: str, mcp: Any, **fields: Any) -> Case:
    return Case(name, (Step(library, cli, mcp),), **fields)


def story(name: str, *steps: tuple[Any, ...]) -> Case:
    return Case(name, tuple(Step(*each) for each in steps))


def brief(
    name: str, query: str, mcp: Mapping[str, Any], cli: str = "", many: int | None = None, **request: Any
) -> Case:
    """A search as agents get it."""
    return one(
        f"search, {name}",
        lambda m: encode.brief(m.search(query, session=SESSION, **request)),
        f"search --brief --asked-in {SESSION} {cli} -- {shlex.quote(query)}",
        ("search_memories", {"query": query, **mcp}),
        many=many,
    )


def packed(
    name: str, query: str, mcp: Mapping[str, Any], cli: str = "", many: int | None = None, **request: Any
) -> Case:
    return one(
        f"context, {name}",
        lambda m: encode.context(m.context(query, session=SESSION, **request)),
        f"context --asked-in {SESSION} {cli} -- {shlex.quote(query)}",
        ("context", {"query": query, **mcp}),
        many=many,
    )


def under(name: str, value: Any) -> Each:
    """Structured content of the protocol is an object, so other values have a name there."""
    return Each(value, {name: value})


def beliefs(found: Sequence[Any]) -> Each:
    return under("facts", [encode.belief(each) for each in found])


def entities(found: Sequence[Any]) -> Each:
    return under("entities", [encode.entity(each) for each in found])


def ways(found: Sequence[Any]) -> Each:
    return under("entities", [encode.related_entity(each) for each in found])


def receipts(found: Sequence[Any]) -> Each:
    """What an agent has asked just now has its connection as the origin. Other doors have no connections."""
    told = [encode.receipt(each) for each in found]
    asked = [each | ({"origin": SESSION} if str(each["id"]).startswith("new-") else {}) for each in told]
    return Each(told, {"receipts": asked})


def all_lenses(m: Nacre) -> Each:
    return under("lenses", [lenses.to_json(each) for each in m.lenses()])


def related(found: nacre.SearchResult) -> Each:
    return Each(encode.search_result(found), encode.brief(found))


def doubts(m: Nacre, which: int) -> Each:
    """Two commands, one tool."""
    found = [encode.disagreement(each) for each in m.conflicts()], [encode.belief(each) for each in m.stale()]
    return Each(found[which], {"conflicts": found[0], "stale": found[1]})


def page(found: nacre.Timeline) -> Each:
    return Each(encode.timeline(found), encode.brief_timeline(found))


def opened(found: nacre.Fetched) -> Each:
    return Each(encode.fetched(found), encode.brief_fetched(found))


def kept(done: nacre.Remembered) -> Each:
    return Each(encode.remembered(done), encode.brief_remembered(done))


def marked(outcome: str, ids: list[str]) -> Each:
    return Each({"outcome": outcome, "marked": ids}, {"marked": ids})


def stated(m: Nacre, new: NewFact, memory_id: str | None = None) -> Each:
    """A fact of a memory, or of one that is made to say it, and how far it is believed."""
    found = encode.belief(m.state_fact(new, memory_id, SESSION))
    return Each(found, {"facts": [found]})


def at(text: str) -> datetime:
    """A time as a person writes it, read as doors read it."""
    return decode.parse_time("time", text, NOW)


FEWER = Lacks("agents are offered fewer options, and brief hits: each costs room in every conversation")
CONFINED = Lacks("an agent sees one space, and this is about others, too")
PEOPLE = Lacks("only people may: it cannot be undone, or is about how others see the store")
ELSEWHERE = Lacks("other tools tell it")

TELL = "ticket about the deploy pipeline"
TELLING = 'search --brief --asked-in s --limit 3 "deploy pipeline"'
TELLING_MCP = {"query": "deploy pipeline", "limit": 3, "session": SESSION}


def tell(m: Nacre, session: str = SESSION, **request: Any) -> Any:
    return encode.brief(m.search("deploy pipeline", limit=3, session=session, **request))


TOLD = (tell, TELLING, ("search_memories", TELLING_MCP))

# fmt: off
SEARCHES = (
    brief("hybrid", "why does the deploy pipeline fail?", {}, many=SearchRequest(query="").limit),
    brief("keyword", TELL, {"mode": "keyword"}, "--mode keyword", mode="keyword"),
    brief("semantic", TELL, {"mode": "semantic"}, "--mode semantic", mode="semantic"),
    brief("text, an alias", TELL, {"mode": "text"}, "--mode text", mode="text"),
    brief("vector, an alias", TELL, {"mode": "vector"}, "--mode vector", mode="vector"),
    brief("a recipe", "service port", {"recipe": {"alpha": 0.2, "namespace_weights": {"config": 1.5}, "k": "9"}},
          "--recipe alpha=0.2 --recipe namespace_weights=config:1.5 --recipe k=9",
          recipe=Recipe(alpha=0.2, namespace_weights={"config": 1.5}, k=9)),
    brief("a limit", "service port", {"limit": 33}, "--limit 33", limit=33, many=33),
    brief("as many as there are", "service port", {"limit": 1_000}, "--limit 1000", limit=1_000),
    brief("filters in the query", 'tag:infra -kind:episode ns:config port "deploy it" since:2026-04-11', {}),
    brief("only filters", "tag:urgent until:2026-03-20", {}),
    brief("filters as arguments", "ticket",
          {"namespaces": ["general", "blockers"], "kinds": ["episode"], "tags": ["urgent", "infra"], "lens": "none"},
          "--namespace general --namespace blockers --kind episode --tag urgent --tag infra --lens none", lens="none",
          where=Filter(namespaces=("general", "blockers"), kinds=("episode",), tags_all=("urgent", "infra"))),
    brief("facts", "Ada lives where?", {"include_facts": True}, "--include-facts", include_facts=True),
    brief("facts, as of then", "Ada lives where?", {"include_facts": True, "as_of": "2026-05-10"},
          "--include-facts --as-of 2026-05-10", include_facts=True, as_of=at("2026-05-10")),
    one("search, full hits with facts", lambda m: encode.search_result(m.search("the door", include_facts=True)),
        "search the door --include-facts", FEWER),
    brief("fact types", "where Ada lives", {"fact_types": ["location", "identity"]},
          "--fact-type location --fact-type identity", where=Filter(fact_types=("location", "identity")), many=2),
    brief("fact types in the query", "fact-type:config service", {}),
    brief("importance", "ticket", {"importance_min": 0.9}, "--min-importance 0.9", where=Filter(importance_min=0.9)),
    brief("importance in the query", "ticket importance<0.2", {"importance_max": 0.5}, "--max-importance 0.5",
          where=Filter(importance_max=0.5)),
    brief("all words", "nightly backup", {"match": "all"}, "--all-words", match="all"),
    brief("no memory has all words", "nightly backup of the pipeline in Lisbon", {"match": "all"}, "--all-words",
          match="all", many=0),
    brief("merged relations", "who works at Acme", {"merge_relations": True}, "--merge-relations",
          merge_relations=True),
    brief("similarity", "where Ada lives", {"min_similarity": 0.2}, "--min-similarity 0.2", min_similarity=0.2),
    brief("nothing is similar", "where Ada lives", {"min_similarity": 1}, "--min-similarity 1", min_similarity=1,
          many=0),
    brief("min_score", "where Ada lives", {"min_score": 0.3}, "--min-score 0.3", min_score=0.3, many=2),
    brief("nothing is relevant", "where Ada lives", {"min_score": 1}, "--min-score 1", min_score=1, many=0),
    brief("as_of", "Ada lives", {"as_of": "2026-04-01T00:00:00Z"}, "--as-of 2026-04-01T00:00:00Z",
          as_of=at("2026-04-01T00:00:00Z")),
    brief("as_of in words", "Ada lives", {"as_of": "last month"}, "--as-of 'last month'", as_of=at("last month")),
    brief("a lens", "billing", {"lens": "decisions"}, "--lens decisions", lens="decisions"),
    brief("a lens that selects itself", "which ticket is about the cache?", {}, many=4),
    brief("no lens", "which ticket is about the cache?", {"lens": "none"}, "--lens none", lens="none", many=10),
    brief("a misspelled word", "nightly bakcup vault", {}),
    brief("a phrase that no memory has", '"vault the backup"', {}),
    brief("relations", "who works at Acme", {}, many=4),
    brief("an alias", 'entity:"the countess"', {}),
    brief("another script", "数据库", {}),
    brief("emoji", "🐚", {"mode": "keyword"}, "--mode keyword", mode="keyword", many=0),
    brief("nothing asked", "", {}, many=0),
    brief("its space in the query", "space:work deploy", {}),
    one("search, full hits", lambda m: encode.search_result(m.search(TELL)), f'search "{TELL}"', FEWER, many=4),
    one("search, more options",
        lambda m: encode.search_result(m.search(
            "backup of Ada, who works at Acme", recipe=Recipe(alpha=0.2), boost_entities=("Ada",), merge_relations=True,
            collapse=False, token_budget=60, where=Filter(tags_any=("infra", "database"), tags_none=("urgent",)))),
        "search backup of Ada, who works at Acme --alpha 0.2 --boost-entity Ada --merge-relations --no-collapse"
        " --token-budget 60 --any-tag infra --any-tag database --no-tag urgent", FEWER),
    one("search, another space", lambda m: encode.brief(m.search("carrots", session=SESSION)),
        "search --brief --asked-in s carrots", ("search_memories", {"query": "carrots"}), space="home", many=10),
    one("search, several spaces", lambda m: encode.brief(m.search("carrots", where=Filter(spaces=("home", "work")))),
        "search --brief carrots --in-space home --in-space work", CONFINED),
    story("search, told before, and left out when told",
          TOLD, TOLD,
          (lambda m: tell(m, omit_delivered=True), f"{TELLING} --omit-delivered",
           ("search_memories", {**TELLING_MCP, "omit_delivered": True})),
          (lambda m: tell(m, "another", omit_delivered=True), f"{TELLING} --omit-delivered --asked-in another",
           ("search_memories", {**TELLING_MCP, "omit_delivered": True, "session": "another"}))),
)

WALL: dict[str, Any] = {
    "text": "The wall is red\nand high", "summary": "A wall", "namespace": "places", "kind": "observation",
    "tags": ["wall", "red"], "source": "eyes", "importance": 0.25, "session": "walk", "pinned": True,
}
MANY: list[dict[str, Any]] = [
    {**WALL, "happened": "2026-06-01T10:00:00Z", "entities": ["Ada"], "origin": "a walk"},
    {"text": "Ada lives in Rome", "origin": SESSION},
    {"text": "Ada lives in Rome", "origin": SESSION},
    {"text": WORK["backup"].text, "origin": SESSION},
]
CHANGES: dict[str, Any] = {"text": "Ada lives in Lisbon", "tags": ["moved"], "importance": 1.0, "source": "mail",
                           "summary": "Where Ada lives", "kind": "fact", "namespace": "people", "pinned": True}
ADA = (lambda m: beliefs(m.facts(subject="Ada")), "fact list --subject Ada", ("facts", {"subject": "Ada"}))
WRITES = (
    story("remember",
          (lambda m: kept(m.remember(NewMemory(**WALL, origin=SESSION, happened=at("2026-06-01")))),
           ("remember 'The wall is red\nand high' --summary 'A wall' --namespace places --kind observation --tag wall"
            " --tag red --source eyes --importance 0.25 --session walk --pinned"
            " --happened 2026-06-01 --origin s"),
           ("remember", {**WALL, "happened": "2026-06-01"})),
          (lambda m: opened(m.get("new-0001")), "get new-0001", ("get_memories", {"ids": ["new-0001"]}))),
    story("remember, what takes the place of something",
          (lambda m: kept(m.remember("Ada lives in Rome", origin=SESSION)),
           f"remember Ada lives in Rome --origin {SESSION}", ("remember", {"text": "Ada lives in Rome"})),
          (lambda m: opened(m.get(["new-0001", "paris"])), "get new-0001 paris",
           ("get_memories", {"ids": ["new-0001", "paris"]}))),
    story("remember, a preference and a note that is none",
          (lambda m: kept(m.remember("Call me Max.", kind="note", origin=SESSION)),
           f"remember Call me Max. --kind note --origin {SESSION}",
           ("remember", {"text": "Call me Max.", "kind": "note"})),
          (lambda m: kept(m.remember("I'm allergic to peanuts", origin=SESSION)),
           f'remember "I\'m allergic to peanuts" --origin {SESSION}',
           ("remember", {"text": "I'm allergic to peanuts"})),
          (lambda m: under("memory", encode.memory(
              m.update("new-0001", kind="instruction", pinned=False, language="de"))),
           "update new-0001 --kind instruction --no-pinned --lang de",
           ("update_memory", {"id": "new-0001", "kind": "instruction", "pinned": False, "language": "de"})),
          (lambda m: page(m.timeline(limit=2)), "timeline --limit 2", ("timeline", {"limit": 2}))),
    story("remember, what supersedes",
          (lambda m: kept(m.remember("The door was painted", origin=SESSION, supersedes=["red", "blue"])),
           f"remember The door was painted --origin {SESSION} --supersedes red --supersedes blue",
           ("remember", {"text": "The door was painted", "supersedes": ["red", "blue"]})),
          (lambda m: opened(m.get(["new-0001", "red"])), "get new-0001 red",
           ("get_memories", {"ids": ["new-0001", "red"]})),
          (lambda m: encode.brief(m.search("the red door", session=SESSION)),
           f"search --brief --asked-in {SESSION} the red door", ("search_memories", {"query": "the red door"})),
          (lambda m: encode.why(m.why("the red door", "red")), "why red the red door",
           ("why", {"id": "red", "query": "the red door"})),
          (lambda m: encode.context(m.context("the red door", session=SESSION)),
           f"context --asked-in {SESSION} the red door", ("context", {"query": "the red door"}))),
    story("remember, what supersedes, undone",
          (lambda m: kept(m.remember("The door was painted", supersedes="red")),
           "remember The door was painted --supersedes red", ELSEWHERE),
          (lambda m: {"unlinked": m.unlink("new-0001", "red")}, "unlink new-0001 red", PEOPLE),
          (lambda m: {"unlinked": m.unlink("new-0001", "red")}, "unlink new-0001 red", PEOPLE)),
    story("remember, more fields",
          (lambda m: kept(m.remember("Bo lives in Bonn", session="walk", position=3, extract=False,
                                                metadata={"pr": 7}, created=at("2d"), entities=["Bo"])),
           "remember Bo lives in Bonn --session walk --position 3 --extract off --meta pr=7 --created 2d --entity Bo",
           FEWER),
          (lambda m: opened(m.get("new-0001", entities=True)), "get new-0001 --entities", ELSEWHERE)),
    one("remember, what is known", lambda m: kept(m.remember(WORK["chinese"].text)),
        f"remember {WORK['chinese'].text}", ("remember", {"text": WORK["chinese"].text})),
    story("remember, what the session was told",
          (lambda m: encode.brief(m.search("nightly backup", session=SESSION)),
           f"search --brief --asked-in {SESSION} nightly backup", ("search_memories", {"query": "nightly backup"})),
          (lambda m: kept(m.remember(WORK["backup"].text.upper(), origin=SESSION)),
           f"remember --origin {SESSION} {WORK['backup'].text.upper()}",
           ("remember", {"text": WORK["backup"].text.upper()}))),
    story("remember many",
          (lambda m: under("remembered", [
              encode.remembered(each) for batch in m.remember_batches(map(decode.new_memory, MANY)) for each in batch]),
           "remember --jsonl", ("remember_many", {"memories": MANY}), "\n".join(map(json.dumps, MANY))),
          (lambda m: opened(m.get(["new-0001", "new-0002"], entities=True)), "get new-0001 new-0002 --entities",
           ("get_memories", {"ids": ["new-0001", "new-0002"], "entities": True}))),
    one("remember many, with times as `remember` takes them",
        lambda m: under("remembered", [encode.remembered(m.remember("x", happened=at("2026-06-01")))]),
        Lacks("JSON Lines are written by programs"),
        ("remember_many", {"memories": [{"text": "x", "happened": "2026-06-01"}]})),
    story("update and history",
          (lambda m: under("memory", encode.memory(m.update("london", **CHANGES, happened=at("yesterday")))),
           ("update london --text 'Ada lives in Lisbon' --tag moved --importance 1 --summary 'Where Ada lives'"
            " --kind fact --namespace people --source mail --happened yesterday --pinned"),
           ("update_memory", {"id": "london", **CHANGES, "happened": "yesterday"})),
          (lambda m: under("events", [encode.event(each) for each in m.history("london")]), "history london",
           ("history", {"id": "london"})),
          (lambda m: opened(m.get("london")), "get london", ("get_memories", {"ids": "london"}))),
    story("forget and restore",
          (lambda m: encode.forgotten(m.forget(["paris", "turn-11"])), "forget paris turn-11",
           ("forget", {"ids": ["paris", "turn-11"]})),
          TOLD, ADA,
          (lambda m: m.restore(["paris", "gone"]) or {"restored": ["paris", "gone"]}, "restore paris gone",
           ("restore", {"ids": ["paris", "gone"]})),
          ADA, (lambda m: page(m.timeline(limit=99)), "timeline --limit 99", ("timeline", {"limit": 99}))),
    story("forget, some missing",
          (lambda m: encode.forgotten(m.forget(["paris", "nobody", "gone", "nothing"], missing_ok=True)),
           "forget paris nobody gone nothing", ("forget", {"ids": ["paris", "nobody", "gone", "nothing"]})),
          ADA),
    one("purge", lambda m: encode.purged(m.purge("red")), "purge red --yes", PEOPLE),
    story("forget by a query, then purge what is forgotten",
          (lambda m: encode.forgotten(m.forget([each.id for each in m.every("tag:infra -has:session")])),
           "forget --where 'tag:infra -has:session' --yes", PEOPLE),
          (lambda m: encode.purged(m.purge([each.id for each in m.every("tag:infra", forgotten=True)])),
           "purge --where tag:infra --forgotten --yes", PEOPLE)),
    story("by key",
          (lambda m: encode.remembered(m.remember("Tea at five", key="notes/tea", expires=timedelta(days=3))),
           "remember 'Tea at five' --key notes/tea --expires 3d", PEOPLE),
          (lambda m: kept(m.remember("Coffee at ten", expires=timedelta(hours=12))),
           "remember 'Coffee at ten' --expires 12h", ("remember", {"text": "Coffee at ten", "expires": "12h"})),
          (lambda m: encode.remembered(m.remember("Tea at six", key="notes/tea")),
           "remember 'Tea at six' --key notes/tea", PEOPLE),
          (lambda m: opened(m.get(keys="notes/tea")), "get --key notes/tea", PEOPLE),
          (lambda m: encode.forgotten(m.forget(keys=["notes/tea"])), "forget --key notes/tea", PEOPLE)),
)

PLANNED = Filter(sessions=("planning", "retro"))
VIEWS = (
    one("timeline", lambda m: page(m.timeline()), "timeline", ("timeline", {}),
        many=TimelineRequest().limit),
    one("timeline, to the end", lambda m, **more: page(m.timeline(**more)), "timeline", ("timeline", {}),
        pages=True),
    one("timeline, of sessions to the end",
        lambda m, **more: page(m.timeline(limit=7, oldest_first=True, where=PLANNED, **more)),
        "timeline --limit 7 --oldest-first --session planning --session retro",
        ("timeline", {"limit": 7, "oldest_first": True, "sessions": ["planning", "retro"]}), pages=True),
    one("timeline, between times",
        lambda m: page(m.timeline(
            at("2026-03-10T00:00:00Z"), at("2026-04-11"), histogram="week",
            where=Filter(tags_all=("infra",), kinds=("note",), namespaces=("general", "config")))),
        "timeline --since 2026-03-10T00:00:00Z --until 2026-04-11 --histogram week --tag infra --kind note"
        " --namespace general --namespace config",
        ("timeline", {"start": "2026-03-10T00:00:00Z", "end": "2026-04-11", "histogram": "week", "tags": ["infra"],
                      "kinds": ["note"], "namespaces": ["general", "config"]})),
    one("timeline, times in words",
        lambda m: page(m.timeline(at("60d"), at("3 weeks ago"), histogram="day")),
        "timeline --since 60d --until '3 weeks ago' --histogram day",
        ("timeline", {"start": "60d", "end": "3 weeks ago", "histogram": "day"})),
    one("timeline, around", lambda m: page(m.timeline(around="turn-30")), "timeline --around turn-30",
        ("timeline", {"around": "turn-30"}), many=2 * TimelineRequest().span + 1),
    one("timeline, a span", lambda m: page(m.timeline(around="decided", span=2, histogram="month")),
        "timeline --around decided --span 2 --histogram month",
        ("timeline", {"around": "decided", "span": 2, "histogram": "month"}), many=4),
    one("timeline, nothing", lambda m: page(m.timeline(at("tomorrow"))), "timeline --since tomorrow",
        ("timeline", {"start": "tomorrow"}), many=0),
    one("timeline, forgotten ones", lambda m: page(m.timeline(forgotten=True)), "timeline --forgotten",
        PEOPLE, many=2),
    one("get", lambda m: opened(m.get(["paris", "gone", "longer", "lines", "turn-07", "paris"])),
        "get paris gone longer lines turn-07 paris",
        ("get_memories", {"ids": ["paris", "gone", "longer", "lines", "turn-07", "paris"]}), many=5),
    one("get, some missing", lambda m: opened(m.get(["nobody", "paris", "nothing"], missing_ok=True)),
        "get nobody paris nothing", ("get_memories", {"ids": ["nobody", "paris", "nothing"]})),
    one("get, with entities and neighbours",
        lambda m: opened(m.get(["london", "turn-00", "turn-30", "decided"], entities=True, neighbours=3)),
        "get london turn-00 turn-30 decided --entities --neighbours 3",
        ("get_memories", {"ids": ["london", "turn-00", "turn-30", "decided"], "entities": True, "neighbours": 3})),
    one("related", lambda m: related(m.related("turn-21")), "related turn-21", ("related", {"id": "turn-21"}),
        many=RelatedRequest(memory_id="").limit),
    one("related, a few", lambda m: related(m.related("backup", limit=2)), "related backup --limit 2",
        ("related", {"id": "backup", "limit": 2}), many=2),
    one("related, with a recipe",
        lambda m: related(m.related("turn-21", limit=2, recipe=Recipe(alpha=1, fusion="rank"))),
        "related turn-21 --limit 2 --recipe alpha=1 --recipe fusion=rank",
        ("related", {"id": "turn-21", "limit": 2, "recipe": {"alpha": 1, "fusion": "rank"}}), many=2),
    one("facets", lambda m: encode.facets(m.facets()), "facets", ("facets", {})),
    one("facets, of a query", lambda m: encode.facets(m.facets("deploy* tag:infra")), "facets 'deploy* tag:infra'",
        ("facets", {"query": "deploy* tag:infra"})),
    one("similar", lambda m: [encode.memory(each) for each in m.similar("backup")], "similar backup", ELSEWHERE,
        many=1),
    one("separate", lambda m: {"separated": m.separate("backup")}, "similar backup --separate", PEOPLE),
    one("stats", lambda m: encode.stats(m.stats()), "stats", CONFINED),
    one("audit", lambda m: [encode.memory_with_secrets(each) for each in m.audit()], "audit", PEOPLE),
    one("reembed", lambda m: {"embedded": list(m.reembed())[-1].done}, "reembed", CONFINED),
    one("rebuild", lambda m: {"rebuilt": m.rebuild() is None}, "rebuild", CONFINED),
)

PACKING = "context --asked-in s --budget 300 'deploy pipeline'"
PACKING_MCP = {"query": "deploy pipeline", "budget_tokens": 300, "session": SESSION}


def pack(m: Nacre, session: str = SESSION, **request: Any) -> Any:
    return encode.context(m.context("deploy pipeline", 300, session=session, **request))


def pack_noted(m: Nacre) -> Any:
    """With a line on an argument that was read otherwise than given, where it fits."""
    found = pack(m)
    note = 'budget_tokens: "300" was read as 300'
    noted = f"{found['text']}\n{note}"
    return found | {"text": noted if m.count_tokens(noted) <= 300 else found["text"], "notes": [note]}


def pack_nothing(m: Nacre) -> Each:
    """A model reads the text alone, so that has the note."""
    found = encode.context(m.context("", session=SESSION))
    noted = f"{found['text']}\nthe query asks for nothing: give some words"
    return Each(found, found | {"text": noted, "tokens": m.count_tokens(noted)})


PACKED = (pack, PACKING, ("context", PACKING_MCP))
CONTEXTS = (
    packed("as usual", "what about the deploy pipeline and the ports of services?", {}),
    packed("no room", "deploy pipeline", {"budget_tokens": 0}, "--budget 0", budget_tokens=0, many=0),
    packed("little room", "the lamp of the lighthouse", {"budget_tokens": 90}, "--budget 90", budget_tokens=90),
    packed("much room", "service port", {"budget_tokens": 20_000, "min_score": 0}, "--budget 20000 --min-score 0",
           budget_tokens=20_000, min_score=0),
    packed("what holds now", "where does Ada live?", {"min_score": 0}, "--min-score 0", min_score=0),
    packed("as of then", "where does Ada live?", {"min_score": 0, "as_of": "2026-04-01"},
           "--min-score 0 --as-of 2026-04-01", min_score=0, as_of=at("2026-04-01")),
    packed("filters", "billing", {"namespaces": ["decisions"], "kinds": ["fact"], "tags": ["database"]},
           "--namespace decisions --kind fact --tag database",
           where=Filter(namespaces=("decisions",), kinds=("fact",), tags_all=("database",))),
    packed("another script", "маяк", {}),
    packed("a recipe", "where does Ada live?", {"min_score": 0, "recipe": {"alpha": 0, "recency_weight": 0}},
           "--min-score 0 --recipe alpha=0 --recipe recency_weight=0", min_score=0,
           recipe=Recipe(alpha=0, recency_weight=0)),
    one("context, nothing asked", pack_nothing, "context --asked-in s -- ''", ("context", {"query": ""}), many=0),
    one("context, a number as a text", pack_noted, Lacks("options of a command are texts"),
        ("context", {"query": "deploy pipeline", "budget_tokens": "300"})),
    story("context, without what the session was given, and with it",
          PACKED, PACKED,
          (lambda m: pack(m, repeat=True), f"{PACKING} --repeat", ("context", {**PACKING_MCP, "repeat": True})),
          (lambda m: pack(m, "another"), f"{PACKING} --asked-in another",
           ("context", {**PACKING_MCP, "session": "another"}))),
)

ROME: dict[str, Any] = {"subject": "Ada", "predicate": "lives in", "object": "Rome", "type": "location"}
OSLO: dict[str, Any] = {"subject": "Ada", "predicate": "lives in", "object": "Oslo"}
KNOWN = (
    one("facts", lambda m: beliefs(m.facts()), "fact list", ("facts", {}), many=FactQuery().limit),
    one("facts, a limit", lambda m: beliefs(m.facts(limit=120)), "fact list --limit 120", ("facts", {"limit": 120}),
        many=120),
    one("facts, by alias", lambda m: beliefs(m.facts(subject="THE COUNTESS")), "fact list --subject 'THE COUNTESS'",
        ("facts", {"subject": "THE COUNTESS"}), many=2),
    one("facts, as of then", lambda m: beliefs(m.facts(subject="Ada", predicate="lives in", as_of=at("2026-04-01"))),
        "fact list --subject Ada --predicate 'lives in' --as-of 2026-04-01",
        ("facts", {"subject": "Ada", "predicate": "lives in", "as_of": "2026-04-01"}), many=1),
    one("facts, history", lambda m: beliefs(m.facts(subject="Ada", history=True)), "fact list --subject Ada --history",
        ("facts", {"subject": "Ada", "history": True}), many=3),
    one("facts, narrowed", lambda m: beliefs(m.facts(type="config", object="8007", memory_id="service-07")),
        "fact list --type config --object 8007 --memory service-07",
        ("facts", {"type": "config", "object": "8007", "memory_id": "service-07"}), many=1),
    one("facts, not faded", lambda m: beliefs(m.facts(min_confidence=0.05, limit=3)),
        "fact list --min-confidence 0.05 --limit 3", ("facts", {"min_confidence": 0.05, "limit": 3}), many=3),
    one("facts, none is so sure", lambda m: beliefs(m.facts(min_confidence=1)),
        "fact list --min-confidence 1", ("facts", {"min_confidence": 1}), many=0),
    one("relations", lambda m: beliefs(m.facts(relations=True)), "relation list", ("facts", {"relations": True}),
        many=5),
    one("relations, found",
        lambda m: [encode.relation_hit(each)
                   for each in m.search("Acme Berlin", mode="keyword", lens="none").relations],
        "relation search Acme Berlin", ELSEWHERE, many=4),
    story("state a fact, and drop it",
          (lambda m: stated(m, NewFact(**ROME, confidence=0.9)),
           "fact add Ada 'lives in' Rome --type location --confidence 0.9",
           ("state_fact", {**ROME, "confidence": 0.9})),
          ADA, (lambda m: m.drop_facts(["new-0002"]) or {"dropped": ["new-0002"]}, "fact drop new-0002",
                ("drop_facts", {"ids": ["new-0002"]})), ADA),
    one("state a fact, of a memory", lambda m: stated(m, NewFact(**OSLO, relation=True), "paris"),
        "fact add Ada 'lives in' Oslo --memory paris --relation",
        ("state_fact", {**OSLO, "memory_id": "paris", "relation": True})),
    one("state a fact, that held before",
        lambda m: stated(
            m, NewFact(**OSLO, valid_from=at("2026-01-01T00:00:00Z"), valid_to=at("2026-02-01T00:00:00Z"))),
        "fact add Ada 'lives in' Oslo --valid-from 2026-01-01T00:00:00Z --valid-to 2026-02-01T00:00:00Z",
        ("state_fact", {**OSLO, "valid_from": "2026-01-01T00:00:00Z", "valid_to": "2026-02-01T00:00:00Z"})),
    story("state a fact, again",
          (lambda m: stated(m, NewFact(**OSLO)), "fact add Ada 'lives in' Oslo", ("state_fact", OSLO)),
          (lambda m: stated(m, NewFact(**OSLO, confidence=0.5)), "fact add Ada 'lives in' Oslo --confidence 0.5",
           ("state_fact", {**OSLO, "confidence": 0.5}))),
    one("state a relation", lambda m: stated(m, _relation("Bo", "knows", "Lin")), "relation add Bo knows Lin",
        ("state_fact",
         {"subject": "Bo", "predicate": "knows", "object": "Lin", "type": "relationship", "relation": True})),
    story("reinforce",
          (lambda m: {"reinforced": m.reinforce(["red", "work-fact-0001"])}, "reinforce red work-fact-0001",
           ("reinforce", {"ids": ["red", "work-fact-0001"]})),
          (lambda m: beliefs(m.facts(memory_id="red")), "fact list --memory red", ("facts", {"memory_id": "red"}))),
    one("conflicts", lambda m: doubts(m, 0), "conflicts", ("conflicts", {}), many=1),
    one("stale", lambda m: doubts(m, 1), "stale", ("conflicts", {})),
    one("entities", lambda m: entities(m.entities()), "entity list", ("entities", {})),
    one("entities, as many as usual", lambda m: entities(m.entities()), "entity list", ("entities", {}), space="crowd",
        many=ENTITIES_LISTED),
    one("entities, by name", lambda m: entities(m.entities(["the countess", "acme"])),
        "entity list 'the countess' acme", ("entities", {"names": ["the countess", "acme"]}), many=2),
    one("entities, a few", lambda m: entities(m.entities(limit=2)), "entity list --limit 2", ("entities", {"limit": 2}),
        many=2),
    one("related entities", lambda m: ways(m.related_entities("Ada")), "entity related Ada",
        ("related_entities", {"name": "Ada"}), many=2),
    one("related entities, further away", lambda m: ways(m.related_entities("the countess", 3, as_of=at("2026-05-01"))),
        "entity related 'the countess' --depth 3 --as-of 2026-05-01",
        ("related_entities", {"name": "the countess", "depth": 3, "as_of": "2026-05-01"}), many=5),
    story("add an entity",
          (lambda m: under("entity", encode.entity(m.add_entity("Umbra", kind="cat", aliases=["the cat"],
                                                              memory_ids=["longer"]))),
           "entity add Umbra --type cat --alias 'the cat' --memory longer",
           ("add_entity", {"name": "Umbra", "kind": "cat", "aliases": ["the cat"], "memory_ids": ["longer"]})),
          (lambda m: opened(m.get("longer", entities=True)), "get longer --entities",
           ("get_memories", {"ids": ["longer"], "entities": True}))),
    one("drop an entity", lambda m: m.drop_entity("Ada") or {"dropped": "Ada"}, "entity drop Ada", PEOPLE),
    one("an entity and what is known of it",
        lambda m: encode.entity(m.entities(["Ada"])[0]) | {
            "facts": [encode.belief(each) for each in m.facts(subject="Ada")],
            "memories": [encode.hit(each) for each in m.search(
                'entity:"Ada"', mode="keyword", lens="none",
                recipe=Recipe(confidence_weight=0, min_confidence=0, usage_weight=0)).hits]},
        "entity show Ada", ELSEWHERE),
)

WALLS: dict[str, Any] = {"name": "walls", "description": "Only walls", "questions": ["wall"], "recipe": {"alpha": 0.3},
                         "where": {"tags_all": ["wall"], "kinds": ["note"]}}
PAGE_END = f"logged-{LOGGED - RECEIPTS_LISTED:02}-0001"
LEARNED = (
    one("recall log", lambda m: receipts(m.receipts()), "log", ("recall_log", {}), many=RECEIPTS_LISTED),
    one("recall log, the next page", lambda m: receipts(m.receipts(before=PAGE_END)), f"log --before {PAGE_END}",
        ("recall_log", {"before": PAGE_END}), many=LOGGED - RECEIPTS_LISTED),
    one("recall log, of a session", lambda m: receipts(m.receipts(session="earlier", limit=3)),
        "log --session earlier --limit 3", ("recall_log", {"session": "earlier", "limit": 3}), many=3),
    one("recall log, cleared", lambda m: {"cleared": m.clear_log(session="earlier")},
        "log clear --session earlier --yes", PEOPLE),
    one("recall log, cleared before", lambda m: {"cleared": m.clear_log(before=at("2026-06-20"))},
        "log clear --before 2026-06-20 --yes", PEOPLE),
    one("recall log, of a memory", lambda m: receipts(m.receipts(memory_id="service-07")), "why-recalled service-07",
        ("recall_log", {"memory_id": "service-07"})),
    story("recall log, cleared",
          (lambda m: {"cleared": m.clear_log(session="earlier", before=at("2026-06-21T12:10:00Z"))},
           "log clear --session earlier --before 2026-06-21T12:10:00Z --yes", PEOPLE),
          (lambda m: {"cleared": m.clear_log()}, "log clear --yes", PEOPLE),
          (lambda m: receipts(m.receipts()), "log", ELSEWHERE)),
    story("recall log, of what was just given",
          TOLD, PACKED,
          (lambda m: opened(m.get(["turn-11"], session=SESSION)), "get turn-11",
           ("get_memories", {"ids": ["turn-11"]})),
          (lambda m: receipts(m.receipts(session=SESSION)), "log --session s", ("recall_log", {"session": "s"}))),
    story("recall log, opened by who was told first",
          TOLD,
          (lambda m: tell(m, "another"), f"{TELLING} --asked-in another",
           ("search_memories", {**TELLING_MCP, "session": "another"})),
          (lambda m: opened(m.get(["turn-11"], session=SESSION)), "get turn-11 --asked-in s",
           ("get_memories", {"ids": ["turn-11"], "session": "s"})),
          (lambda m: receipts(m.receipts(limit=2)), "log --limit 2", ("recall_log", {"limit": 2}))),
    story("mark",
          TOLD,
          (lambda m: marked("used", m.mark(["turn-11", "turn-41"], "used", "new-0001")),
           "mark used turn-11 turn-41 --receipt new-0001",
           ("mark", {"ids": ["turn-11", "turn-41"], "outcome": "used", "receipt": "new-0001"})),
          (lambda m: marked("wrong", m.mark("turn-11", "wrong")), "mark wrong turn-11",
           ("mark", {"ids": "turn-11", "outcome": "wrong"})),
          (lambda m: receipts(m.receipts(limit=1)), "log --limit 1", ("recall_log", {"limit": 1})),
          TOLD,
          (lambda m: encode.why(m.why("deploy pipeline", "turn-11")), "why turn-11 deploy pipeline",
           ("why", {"id": "turn-11", "query": "deploy pipeline"}))),
    one("lenses", all_lenses, "lens list", ("lenses", {}), many=len(lenses.BUILT_IN) + 1),
    one("a lens", lambda m: lenses.to_json(m.lens("tickets")), "lens show tickets", ELSEWHERE),
    story("save a lens",
          (lambda m: under("lens", lenses.to_json(m.save_lens(lenses.from_json(WALLS)))),
           "lens save walls --description 'Only walls' --tag wall --kind note --recipe alpha=0.3 --question wall",
           ("save_lens", WALLS)),
          (all_lenses, "lens list", ("lenses", {}))),
    one("delete a lens", lambda m: m.drop_lens("tickets") or {"deleted": "tickets"}, "lens delete tickets", PEOPLE),
    one("changes", lambda m: encode.change_page(m.changes(0, spaces=["home", "work"], limit=7)),
        "changes --since 0 --limit 7 --in-space home --in-space work", PEOPLE, many=7),
    one("no changes", lambda m: encode.change_page(m.changes()), "changes", PEOPLE, many=0),
    one("tokens", lambda m: [encode.access_token(each) for each in m.tokens()], "token list", CONFINED, many=1),
    story("revoke a token",
          (lambda m: m.revoke_token("laptop") or {"revoked": "laptop"}, "token revoke laptop", CONFINED),
          (lambda m: [encode.access_token(each) for each in m.tokens()], "token list", CONFINED)),
    one("why", lambda m: encode.why(m.why(TELL, "turn-06")), f"why turn-06 '{TELL}'",
        ("why", {"id": "turn-06", "query": TELL})),
    one("why, beyond the limit", lambda m: encode.why(m.why("service port", "service-03", mode="keyword", limit=2)),
        "why service-03 --mode keyword --limit 2 service port",
        ("why", {"id": "service-03", "query": "service port", "mode": "keyword", "limit": 2})),
    one("why, left out", lambda m: encode.why(m.why("Ada -Paris", "paris")), "why paris Ada -Paris",
        ("why", {"id": "paris", "query": "Ada -Paris"})),
    one("why not", lambda m: encode.why_not(m.why_not("Ada -Paris", "paris")), "why-not paris Ada -Paris", ELSEWHERE),
)

REFUSED = (
    one("blank text", lambda m: m.remember(" \n"), "remember ' \n'", ("remember", {"text": " \n"})),
    one("pinned", lambda m: m.remember("x", pinned=cast("bool", "perhaps")), Lacks("it is a flag"),
        ("remember", {"text": "x", "pinned": "perhaps"})),
    one("importance", lambda m: m.remember("x", importance=2.5), "remember x --importance 2.5",
        ("remember", {"text": "x", "importance": 2.5})),
    one("time, remember", lambda _: decode.parse_time("happened", "purple", NOW), "remember x --happened purple",
        ("remember", {"text": "x", "happened": "purple"})),
    one("time, search", lambda _: decode.parse_time("as_of", "2026-02-30", NOW), "search x --as-of 2026-02-30",
        ("search_memories", {"query": "x", "as_of": "2026-02-30"})),
    one("time, context", lambda _: decode.parse_time("as_of", "some day", NOW), "context x --as-of 'some day'",
        ("context", {"query": "x", "as_of": "some day"})),
    one("time, facts", lambda _: decode.parse_time("as_of", "soonish", NOW), "fact list --as-of soonish",
        ("facts", {"as_of": "soonish"})),
    one("limit, search", lambda m: m.search("x", limit=0), "search x --limit 0",
        ("search_memories", {"query": "x", "limit": 0})),
    one("limit, too large", lambda m: m.search("x", limit=1_001), "search x --limit 1001",
        ("search_memories", {"query": "x", "limit": 1_001})),
    one("limit, timeline", lambda m: m.timeline(limit=0), "timeline --limit 0", ("timeline", {"limit": 0})),
    one("limit, related", lambda m: m.related("red", limit=0), "related red --limit 0",
        ("related", {"id": "red", "limit": 0})),
    one("limit, facts", lambda m: m.facts(limit=0), "fact list --limit 0", ("facts", {"limit": 0})),
    one("limit, entities", lambda m: m.entities(limit=0), "entity list --limit 0", ("entities", {"limit": 0})),
    one("limit, log", lambda m: m.receipts(limit=0), "log --limit 0", ("recall_log", {"limit": 0})),
    one("limit, why", lambda m: m.why("x", "red", limit=0), "why red x --limit 0",
        ("why", {"id": "red", "query": "x", "limit": 0})),
    one("span", lambda m: m.timeline(around="red", span=-1), "timeline --around red --span -1",
        ("timeline", {"around": "red", "span": -1})),
    one("neighbours", lambda m: m.get("red", neighbours=51), "get red --neighbours 51",
        ("get_memories", {"ids": ["red"], "neighbours": 51})),
    one("depth", lambda m: m.related_entities("Ada", 4), "entity related Ada --depth 4",
        ("related_entities", {"name": "Ada", "depth": 4})),
    one("budget", lambda m: m.context("x", -1), "context x --budget -1",
        ("context", {"query": "x", "budget_tokens": -1})),
    one("min_score, search", lambda m: m.search("x", min_score=1.5), "search x --min-score 1.5",
        ("search_memories", {"query": "x", "min_score": 1.5})),
    one("min_score, context", lambda m: m.context("x", min_score=-1.5), "context x --min-score -1.5",
        ("context", {"query": "x", "min_score": -1.5})),
    one("include_facts", lambda m: m.search("x", include_facts=cast("bool", "perhaps")), Lacks("it is a flag"),
        ("search_memories", {"query": "x", "include_facts": "perhaps"})),
    one("mode", lambda m: m.search("x", mode="fast"), "search x --mode fast",
        ("search_memories", {"query": "x", "mode": "fast"})),
    one("recipe, search", lambda m: m.search("x", recipe=Recipe(alpha=2)), "search x --recipe alpha=2",
        ("search_memories", {"query": "x", "recipe": {"alpha": 2}})),
    one("recipe, context", lambda m: m.context("x", recipe=Recipe(k=-1)), "context x --recipe k=-1",
        ("context", {"query": "x", "recipe": {"k": -1}})),
    one("recipe, unknown", lambda _: parse_weight("rerank_weigth", "1"), "search x --recipe rerank_weigth=1",
        ("search_memories", {"query": "x", "recipe": {"rerank_weigth": 1}})),
    one("histogram", lambda m: m.timeline(histogram="year"), "timeline --histogram year",
        ("timeline", {"histogram": "year"})),
    one("end before start", lambda m: m.timeline(at("2026-03-02"), at("2026-03-01")),
        Lacks("--since and --until are filters: nothing is between them, and that is no error"),
        ("timeline", {"start": "2026-03-02", "end": "2026-03-01"})),
    one("cursor", lambda m: m.timeline(cursor="next"), "timeline --cursor next", ("timeline", {"cursor": "next"})),
    one("cursor and around", lambda m: m.timeline(cursor="next", around="red"), "timeline --cursor next --around red",
        ("timeline", {"cursor": "next", "around": "red"})),
    one("lens, search", lambda m: m.search("x", lens="pink"), "search x --lens pink",
        ("search_memories", {"query": "x", "lens": "pink"})),
    one("lens, why", lambda m: m.why("x", "red", lens="pink"), "why red x --lens pink",
        ("why", {"id": "red", "query": "x", "lens": "pink"})),
    one("lens, its name", lambda m: m.save_lens(Lens(name="recent")), "lens save recent",
        ("save_lens", {"name": "recent"})),
    one("lens, its recipe", lambda m: m.save_lens(Lens(name="x", recipe={"alpha": 2})), "lens save x --recipe alpha=2",
        ("save_lens", {"name": "x", "recipe": {"alpha": 2}})),
    one("outcome", lambda m: m.mark("red", "liked"), "mark liked red", ("mark", {"ids": ["red"], "outcome": "liked"})),
    one("receipt, unknown", lambda m: m.mark("red", "used", "none"), "mark used red --receipt none",
        ("mark", {"ids": ["red"], "outcome": "used", "receipt": "none"})),
    one("receipt, of others", lambda m: m.mark("red", "used", PAGE_END), f"mark used red --receipt {PAGE_END}",
        ("mark", {"ids": ["red"], "outcome": "used", "receipt": PAGE_END})),
    one("receipt, none lately", lambda m: m.mark("red", "used"), "mark used red",
        ("mark", {"ids": ["red"], "outcome": "used"})),
    one("id, around", lambda m: m.timeline(around="nobody"), "timeline --around nobody",
        ("timeline", {"around": "nobody"})),
    one("id, restore", lambda m: m.restore(["gone", "nobody"]), "restore gone nobody",
        ("restore", {"ids": ["gone", "nobody"]})),
    one("id, update", lambda m: m.update("nobody", text="x"), "update nobody --text x",
        ("update_memory", {"id": "nobody", "text": "x"})),
    one("id, related", lambda m: m.related("nobody"), "related nobody", ("related", {"id": "nobody"})),
    one("id, history", lambda m: m.history("nobody"), "history nobody", ("history", {"id": "nobody"})),
    one("id, why", lambda m: m.why("x", "nobody"), "why nobody x", ("why", {"id": "nobody", "query": "x"})),
    one("id, mark", lambda m: m.mark(["red", "nobody"], "used"), "mark used red nobody",
        ("mark", {"ids": ["red", "nobody"], "outcome": "used"})),
    one("id, state a fact", lambda m: m.add_facts("nobody", [NewFact(**OSLO)]),
        "fact add Ada 'lives in' Oslo --memory nobody", ("state_fact", {**OSLO, "memory_id": "nobody"})),
    one("id, add an entity", lambda m: m.add_entity("Umbra", memory_ids=["nobody"]),
        "entity add Umbra --memory nobody", ("add_entity", {"name": "Umbra", "memory_ids": ["nobody"]})),
    one("id, reinforce", lambda m: m.reinforce(["red", "nobody"]), "reinforce red nobody",
        ("reinforce", {"ids": ["red", "nobody"]})),
    one("id, drop facts", lambda m: m.drop_facts(["work-fact-0001", "nobody"]), "fact drop work-fact-0001 nobody",
        ("drop_facts", {"ids": ["work-fact-0001", "nobody"]})),
    one("entity", lambda m: m.related_entities("nobody"), "entity related nobody",
        ("related_entities", {"name": "nobody"})),
    one("forgotten, around", lambda m: m.timeline(around="gone"), "timeline --around gone",
        ("timeline", {"around": "gone"})),
    one("forgotten, update", lambda m: m.update("gone", text="x"), "update gone --text x",
        ("update_memory", {"id": "gone", "text": "x"})),
    one("forgotten, related", lambda m: m.related("gone"), "related gone", ("related", {"id": "gone"})),
    one("a twin", lambda m: m.update("red", text=WORK["paris"].text), "update red --text 'Ada lives in Paris'",
        ("update_memory", {"id": "red", "text": "Ada lives in Paris"})),
    one("no change", lambda m: m.update("red"), "update red", ("update_memory", {"id": "red"})),
    one("min_confidence", lambda m: m.facts(min_confidence=2.5), "fact list --min-confidence 2.5",
        ("facts", {"min_confidence": 2.5})),
    one("fact types", lambda m: m.search("x", where=Filter(fact_types=cast("Any", ("taste",)))),
        "search x --fact-type taste", ("search_memories", {"query": "x", "fact_types": ["taste"]})),
    one("type of fact", lambda m: m.facts(type="guess"), "fact list --type guess", ("facts", {"type": "guess"})),
    one("confidence", lambda m: stated(m, NewFact(**OSLO, confidence=2.5)),
        "fact add Ada 'lives in' Oslo --confidence 2.5", ("state_fact", {**OSLO, "confidence": 2.5})),
)
# fmt: on

CASES = (*SEARCHES, *WRITES, *VIEWS, *CONTEXTS, *KNOWN, *LEARNED)
ON_POSTGRES = {
    *("search, hybrid", "search, filters in the query", "search, a misspelled word", "search, full hits"),
    *("search, told before, and left out when told", "remember many", "update and history", "purge", "by key"),
    *("timeline, around", "get, with entities and neighbours", "facets", "stats", "reembed", "rebuild", "changes"),
    *("state a fact, and drop it", "mark", "save a lens", "why", "context, as usual", "revoke a token"),
}


# ---------------------------------------------------------------- the doors

Ask = Callable[[Step, Mapping[str, str]], Any]
Name = tuple[str, str]  # of a store, and its schema


@dataclass(frozen=True)
class Doors:
    """What opens the doors. Each copy of the store is one that nobody has open."""

    copy: Callable[[], AbstractContextManager[Name]]
    world: World
    portal: BlockingPortal
    server: SwitchedServer
    called: list[list[Called]] = field(default_factory=list)  # by the library, for each step

    @contextmanager
    def library(self, space: str) -> Iterator[Ask]:
        with self.copy() as (name, schema), nacre.open(name, schema=schema, space=space, embedder=Hashing()) as m:

            def ask(step: Step, more: Mapping[str, str]) -> Any:
                noting = Noting(m)
                try:
                    return step.library(noting, **more)
                finally:
                    self.called.append(noting.called)
                    m._log.flush()  # as a command does at its end

            self.called.clear()
            yield ask

    @contextmanager
    def cli(self, space: str) -> Iterator[Ask]:
        def ask(step: Step, more: Mapping[str, str]) -> Any:
            out, err = io.StringIO(), io.StringIO()
            arguments = [*flags, *shlex.split(step.cli), *(f"--{name}={value}" for name, value in more.items())]
            stdin = io.TextIOWrapper(io.BytesIO(step.stdin.encode("utf-8", "surrogatepass")), "utf-8", "surrogatepass")
            with redirect_stdout(out), redirect_stderr(err), mock.patch("sys.stdin", stdin):
                code = run(arguments)
            if not out.getvalue():
                return json.loads(err.getvalue()) | {"code": code}
            if step.stdin:
                return [json.loads(line) for line in out.getvalue().splitlines()]
            answer = json.loads(out.getvalue())
            assert code == (2 if isinstance(answer, dict) and answer.get("missing") else 0), err.getvalue()
            return answer

        with self.copy() as (name, schema), mock.patch.dict("os.environ", {"NACRE_POSTGRES_SCHEMA": schema}):
            flags = ["--json", "--store", name, "--space", space, "--embedder", "hashing"]
            yield ask

    @contextmanager
    def mcp(self, space: str) -> Iterator[Ask]:
        def ask(step: Step, more: Mapping[str, str]) -> Any:
            assert not isinstance(step.mcp, Lacks)
            name, arguments = step.mcp
            result = self.portal.call(partial(client.call_tool, name, {**arguments, **more}))
            engines.memory(space)._log.flush()  # as above
            if result.is_error:
                return {"error": problem(result)}
            answer = structured(result)
            if arguments.get("budget_tokens") == 0:  # no room even for why, which a model is told all the same
                assert answer["text"] == "Budget too small."
                answer |= {"text": "", "tokens": 0}
            return answer

        with self.copy() as (path, schema):
            engines = engines_on(path, postgres_schema=schema, space=space)
            server = build_server(RequestHandlers(engines, chosen("all"), None, SESSION))
            try:
                with self.portal.wrap_async_context_manager(Client(server, mode="legacy")) as client:
                    yield ask
            finally:
                engines.close()

    @contextmanager
    def client(self, space: str) -> Iterator[Ask]:
        def ask(step: Step, more: Mapping[str, str]) -> Any:
            answer = step.library(remote, **more)
            self.flush(space)
            return answer

        with self.copy() as name, self.server.serving(*name), nacre.connect(self.server.url, space=space) as remote:
            yield ask

    @contextmanager
    def http(self, space: str) -> Iterator[Ask]:
        """Sends what the library was called with in the step of the same number. The answers are one for each verb."""

        def ask(_: Step, __: Mapping[str, str]) -> Any:
            answers = [raw(sender, each) for each in next(steps)]
            self.flush(space)
            return answers[0] if len(answers) == 1 else answers

        steps = iter(self.called)
        with (
            self.copy() as name,
            self.server.serving(*name),
            self.server.client(**{"Nacre-Space": space}) as sender,
        ):
            yield ask

    def flush(self, space: str) -> None:
        with self.server.application._engines.of(space, None) as engine:
            engine._log.flush()

    def answers(self, case: Case, ask: Ask) -> list[Any]:
        """Those of all steps, some seconds after one another: so soon that an engine that stays open knows them yet."""
        self.world.begin(NOW, then="new")
        found: list[Any] = []
        for step in case.steps:
            more: dict[str, str] = {}
            while True:
                self.world.at += timedelta(seconds=10)
                found.append(ask(step, more))
                last = found[-1].cli if isinstance(found[-1], Each) else found[-1]
                if not case.pages or last.get("next") is None:
                    break
                more = {"cursor": last["next"]}
        return found


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """All of them open engines with the clock and the ids of one world, and nothing of the machine's own settings."""
    path = tmp_path_factory.mktemp("doors") / "memories.db"

    @contextmanager
    def copy() -> Iterator[Name]:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            yield str(shutil.copy(path, folder)), SCHEMA

    world = World()
    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as portal, switched(portal) as server:
        clear_settings(patch, path.with_suffix(".toml"))

        def opening(*parts: Any, **options: Any) -> Nacre:
            return Nacre(*parts, **options | {"clock": world.clock, "make_ids": world.make_ids})

        patch.setattr(factory, "Nacre", opening)
        patch.setattr(options, "datetime", Still)
        patch.setattr(decode, "datetime", Still)
        _write(str(path), world)
        yield Doors(copy, world, portal, server)


@pytest.fixture(scope="module")
def postgres_doors(doors: Doors) -> Iterator[Doors]:
    """The same on a store in PostgreSQL, of which copies are made by the server."""
    with reused_schemas() as schemas:
        written = schemas.new()
        _write(schemas.dsn, doors.world, written)

        @contextmanager
        def copy() -> Iterator[Name]:
            with reused_schemas() as copies:
                yield copies.dsn, copies.copy(written)

        yield replace(doors, copy=copy, called=[])


@pytest.fixture(scope="module")
def refusing(doors: Doors) -> Iterator[Mapping[str, Ask]]:
    """All doors open at once: what is refused writes nothing."""
    with (
        doors.library("work") as library,
        doors.cli("work") as cli,
        doors.mcp("work") as mcp,
        doors.client("work") as client,
    ):
        yield {"library": library, "cli": cli, "mcp": mcp, "client": client}


# ---------------------------------------------------------------- the same through each


def _plain(answer: Any) -> Any:
    """As it goes over the wire, and without what differs by nature, which is taken out here and nowhere else.

    The size of a file depends on when it was closed; events of memories are timed by the store, not by the engine.
    """
    if isinstance(answer, dict):
        unlike = {"size_bytes", "index_bytes"} | ({"at"} if "seq" in answer else set())
        return {key: _plain(value) for key, value in answer.items() if key not in unlike}
    return [_plain(each) for each in answer] if isinstance(answer, list) else answer


def _elsewhere(answer: Any) -> Any:
    """The same of another kind of store: what a purge leaves, and the version of tables, differ, too."""
    plain = _plain(answer)
    return {**plain, "scrubbed": 0, "pending": 0, "schema_version": 0} if isinstance(plain, dict) else plain


def _listed(answer: Any) -> list[Any]:
    """The list that is the answer, or its first list."""
    if isinstance(answer, dict) and isinstance(answer.get("entries"), dict):
        return listed(answer)
    found = answer if isinstance(answer, list) else next(each for each in answer.values() if isinstance(each, list))
    assert isinstance(found, list)
    return found


def _found(answer: Any) -> bool:
    """Whether there is something in what was looked for."""
    looked_for = [each for each in ("hits", "entries", "memories", "quoted") if each in answer]
    return all(bool(answer[each]) for each in looked_for)


def _has(case: Case, door: str) -> bool:
    return not any(isinstance(getattr(step, door, None), Lacks) for step in case.steps)


def _shaped(answer: Any, shape: str) -> Any:
    return getattr(answer, shape) if isinstance(answer, Each) else answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_call_gives_the_same_json(doors: Doors, case: Case) -> None:
    with doors.library(case.space) as ask:
        said = doors.answers(case, ask)
    check_all_doors(doors, case, said)


def check_all_doors(doors: Doors, case: Case, said: list[Any]) -> None:
    """What the library has said is said by all others."""
    over_http = [[each.answer for each in step] for step in doors.called]
    with doors.http(case.space) as ask:
        raw_answers = doors.answers(case, ask)
    assert _plain(raw_answers) == _plain([each[0] if len(each) == 1 else each for each in over_http])
    for name, door in (("cli", doors.cli), ("mcp", doors.mcp), ("client", doors.client)):
        if _has(case, name):
            with door(case.space) as ask:
                answers = [_shaped(each, "cli") if name == "client" else each for each in doors.answers(case, ask)]
            expected: Any = [_shaped(each, "mcp" if name == "mcp" else "cli") for each in said]
            assert _plain(answers) == _plain(json.loads(encode.dumps(expected))), name
            assert all(map(_found, answers)) or case.many == 0, name
            if case.many is not None:
                assert len(_listed(answers[0])) == case.many, name


@pytest.mark.slow
@needs_postgres
@pytest.mark.parametrize("case", [each for each in CASES if each.name in ON_POSTGRES], ids=lambda case: case.name)
def test_a_store_in_postgres_gives_the_same_json(doors: Doors, postgres_doors: Doors, case: Case) -> None:
    with doors.library(case.space) as ask:
        expected = doors.answers(case, ask)
    with postgres_doors.library(case.space) as ask:
        said = postgres_doors.answers(case, ask)
    for one, other in zip(said, expected, strict=True):
        assert _elsewhere(_shaped(one, "cli")) == _elsewhere(_shaped(other, "cli"))
    check_all_doors(postgres_doors, case, said)


def test_pages_to_the_end_are_the_whole(doors: Doors) -> None:
    """No page is missing and none is given twice, in what the doors agree on."""
    expected = {
        "timeline, to the end": {each for each in WORK if not each.startswith("gone")},
        "timeline, of sessions to the end": {each for each, new in WORK.items() if new.session is not None},
    }
    for case in CASES:
        if case.pages:
            with doors.library(case.space) as ask:
                pages = doors.answers(case, ask)
            ids = [entry["id"] for page in pages for entry in page.cli["entries"]]
            assert len(pages) > 2
            assert len(ids) == len(set(ids))
            assert set(ids) == expected.pop(case.name)
    assert expected == {}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_the_same_error_is_said_the_same_way(doors: Doors, refusing: Mapping[str, Ask], case: Case) -> None:
    doors.called.clear()
    with pytest.raises(NacreError) as raised:
        doors.answers(case, refusing["library"])
    error = raised.value
    for_agents = wording.for_agents(str(error), {each.name for each in chosen("all")})
    expected = {"cli": encode.error(error) | {"code": encode.exit_code(error)}, "mcp": {"error": for_agents}}
    for name, answer in expected.items():
        if _has(case, name):
            assert doors.answers(case, refusing[name]) == [answer], name
    with pytest.raises(type(error)) as raised:
        doors.answers(case, refusing["client"])
    assert encode.error(raised.value) == encode.error(error)
    for called in chain.from_iterable(doors.called):  # none where a time was read before the verb is called
        with doors.server.client(**{"Nacre-Space": "work"}) as sender:
            assert error_of(send(sender, called), encode.http_status(error)) == encode.error(error)["error"]


# ---------------------------------------------------------------- nothing is left out

STEPS = [step for case in CASES for step in case.steps]
NO_VERBS = {
    "config": "shows settings",
    "backup": "writes a file with a time and an id of its own",
    "copy": "is about two stores",
    "demo": "has memories of its own",
    "doctor": "speaks of files and versions",
    "hook context": "reads events of clients",
    "hook remember": "reads events of clients",
    "recall": "is search under another name",
    "eval": "measures with several verbs",
    "tune": "measures with several verbs",
    "import": "reads what other programs keep",
    "export": "writes files with a time and an id of the store",
    "watch": "looks at a folder",
    "nodes add": "needs several servers",
    "nodes move": "needs several servers",
    "nodes status": "needs several servers",
    "worker": "computes vectors until it is ended",
    "install": "writes settings of agents",
    "token create": "makes a random secret",
    "key create": "writes a file with a random key",
    "rekey": "needs a store that nobody has open",
    "mcp": "is the agents' server",
    "serve": "is the server over HTTP",
    "ui": "is the server over HTTP",
}


def _commands(group: click.Group, *above: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, *above, name)
        else:
            yield " ".join((*above, name))


def _called(file: Path, engine: str) -> set[str]:
    """The methods that are called on what has this name, alone or as an attribute."""
    calls = [each.func for each in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(each, ast.Call)]
    methods = [each for each in calls if isinstance(each, ast.Attribute)]
    return {each.attr for each in methods if engine in (getattr(each.value, name, "") for name in ("id", "attr"))}


def test_every_tool_is_called_with_each_of_its_fields() -> None:
    calls = [step.mcp for step in STEPS if not isinstance(step.mcp, Lacks)]
    tools = {each.name: cast("dict[str, Any]", each.input["properties"]) for each in chosen("all")}
    assert {name for name, _ in calls} == tools.keys()
    fields = {(name, field) for name, given in tools.items() for field in given}
    assert fields - {(name, field) for name, given in calls for field in given} == {("timeline", "cursor")}  # of pages


def test_every_command_is_called() -> None:
    called = [f"{step.cli} " for step in STEPS if not isinstance(step.cli, Lacks)]
    uncalled = {
        each for each in _commands(commands.loaded()) if not any(call.startswith(f"{each} ") for call in called)
    }
    assert uncalled == NO_VERBS.keys()


def test_every_verb_that_a_door_calls_is_called() -> None:
    """Told by the sources: the engine is called `memory` in doors, and `m` here."""
    folders = [Path(nacre.__file__).parent / name for name in ("cli", "mcp_server")]
    verbs = {each for folder in folders for file in folder.glob("*.py") for each in _called(file, "memory")}
    assert {"remember", "search", "timeline", "get", "context"} < verbs  # they are seen
    # The first only completes what a person types, the second ends a memory, the others are those of NO_VERBS.
    uncalled = {"entity_counts", "close", "backup", "export", "load", "create_token"}
    assert verbs - _called(Path(__file__), "m") == uncalled
