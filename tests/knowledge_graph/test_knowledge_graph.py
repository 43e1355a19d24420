"""The tools of the reference memory server: the recorded answers of the real one, random calls against a plain model
of it, and what it cannot do: several agents at once, and all of Nacre's searches.

The real one is compared anew, rather than as it was recorded, where NACRE_REFERENCE_SERVER names its dist/index.js.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre import Filter, InvalidInput, Nacre, NacreError
from nacre.embedders.hashing import Hashing
from nacre.knowledge_graph import graph
from nacre.knowledge_graph.graph import EntityNotFound, KnowledgeGraph
from nacre.knowledge_graph.model import NAME_CHARS_MAX, OBSERVATION_CHARS_MAX, Edge, Graph, Node, Observations
from nacre.mcp_server.graph_tools import TOOLS
from nacre.mcp_server.tool import Answer, Call
from nacre.storage.reference import MemoryStore

RECORDED = Path(__file__).parents[1] / "data" / "reference_graph.json"
RECORDER = Path(__file__).parents[2] / "tools" / "record_reference_graph.py"
BY_NAME = {tool.name: tool for tool in TOOLS}

# Differences that stay:
# - The reference keeps a thing twice if one call names it twice, and then adds to and deletes from the first only.
#   Here it is there once, as the reference itself has it if two calls name it.
# - Arguments that its schema refuses are refused in other words.
# - `execution` of a tool is about tasks, which are the server's business and no tool's.
# - `search_nodes` may find more, after what the reference finds.
REFUSED = "MCP error -32602: Input validation error"
NAMED_TWICE = ("Twin", "Echo")


def call(memory: Nacre, tool: str, **arguments: object) -> Answer:
    return BY_NAME[tool].answer(Call(memory, arguments, None, lambda _: None))


def outcome(memory: Nacre, tool: str, arguments: dict[str, Any]) -> Answer | NacreError:
    try:
        return call(memory, tool, **arguments)
    except NacreError as error:
        return error


def read(memory: Nacre) -> dict[str, Any]:
    return call(memory, "read_graph").content


def entity(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, kind: str, target: str) -> dict[str, Any]:
    return {"from": source, "to": target, "relationType": kind}


# ---------------------------------------------------------------- as the reference server


def once(structured: dict[str, Any]) -> dict[str, Any]:
    """An answer of the reference in which everything is there once."""
    kept: dict[str, Any] = dict(structured)
    if "entities" in kept:
        first: dict[str, Any] = {}
        for each in kept["entities"]:
            first.setdefault(each["name"], {**each, "observations": list(dict.fromkeys(each["observations"]))})
        kept["entities"] = list(first.values())
    if "relations" in kept:
        kept["relations"] = [each for at, each in enumerate(kept["relations"]) if each not in kept["relations"][:at]]
    if "results" in kept:
        kept["results"] = [
            {**each, "addedObservations": list(dict.fromkeys(each["addedObservations"]))} for each in kept["results"]
        ]
    return kept


def as_json(structured: dict[str, Any]) -> str:
    """The text of an answer: what it holds, or the only thing in it."""
    (only, *more) = structured.values()
    return json.dumps(structured if more else only, ensure_ascii=False, indent=2)


def first_of(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """As much of a graph, from its beginning, as the other one has."""
    return {name: found[name][: len(values)] for name, values in expected.items()}


def compare(recorded: dict[str, Any], memory: Nacre) -> None:
    """Make all calls again, here."""
    for number, asked in enumerate(recorded["calls"]):
        where = f"call {number}: {asked['tool']} {asked['arguments']}"
        answered = outcome(memory, asked["tool"], asked["arguments"])
        if "error" not in asked:
            assert isinstance(answered, Answer), where
            expected = once(asked["structured"])
            if asked["tool"] == "search_nodes":
                assert first_of(answered.content, expected) == expected, where
                expected = answered.content
            assert answered.content == expected, where
            assert answered.text == (asked.get("text") or as_json(expected)), where
        elif asked["error"].startswith(REFUSED):
            assert isinstance(answered, InvalidInput), where
        else:
            assert str(answered) == asked["error"], where


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return content


def test_every_answer_is_that_of_the_reference_server(recorded: dict[str, Any], memory: Nacre) -> None:
    memory.remember("Ada: likes tea")  # an agent may have noted the same in its own way
    memory.remember("Acme (company)", kind="entity")
    assert len(recorded["calls"]) > 100
    compare(recorded, memory)


def test_only_what_one_call_names_twice_differs(recorded: dict[str, Any]) -> None:
    """The rule of comparison hides nothing else."""
    different = [each for each in recorded["calls"] if each.get("structured", {}) != once(each.get("structured", {}))]
    assert len(different) == 7
    for each in different:
        doubled = json.dumps(each["structured"])
        assert any(name in doubled for name in NAMED_TWICE)


def test_arguments_are_refused_by_name(recorded: dict[str, Any], memory: Nacre) -> None:
    refused = [each for each in recorded["calls"] if each.get("error", "").startswith(REFUSED)]
    assert len(refused) == 14
    for each in refused:
        theirs = [line.rpartition(" at ")[2] for line in each["error"].splitlines()]
        with pytest.raises(InvalidInput) as caught:
            call(memory, each["tool"], **each["arguments"])
        assert caught.value.field == theirs[0]
    assert read(memory) == {"entities": [], "relations": []}


def test_every_tool_is_described_as_the_reference_server_does(recorded: dict[str, Any]) -> None:
    theirs = [{name: each for name, each in tool.items() if name != "execution"} for tool in recorded["tools"]]
    ours = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input,
            "outputSchema": tool.output,
            "annotations": {
                "readOnlyHint": tool.effect == "reads",
                "destructiveHint": tool.effect == "changes",
                "idempotentHint": tool.repeatable,
                "openWorldHint": False,
            },
        }
        for tool in TOOLS
    ]
    assert ours == theirs


@pytest.mark.skipif("NACRE_REFERENCE_SERVER" not in os.environ, reason="NACRE_REFERENCE_SERVER names no server")
def test_the_real_server_answers_as_it_was_recorded(recorded: dict[str, Any], memory: Nacre, tmp_path: Path) -> None:
    anew = tmp_path / "anew.json"
    command = [sys.executable, str(RECORDER), os.environ["NACRE_REFERENCE_SERVER"], "--out", str(anew)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    live = json.loads(anew.read_text("utf-8"))
    compare(live, memory)
    assert live["tools"] == recorded["tools"]
    assert live["calls"] == recorded["calls"]


# ---------------------------------------------------------------- as a plain model of it


class Model:
    """The reference server's graph as plain lists, in which everything is there once."""

    def __init__(self) -> None:
        self.entities: dict[str, tuple[str, list[str]]] = {}
        self.relations: list[tuple[str, str, str]] = []

    def answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | str:
        made: dict[str, Any] | str = getattr(self, tool)(**arguments)
        return made

    def create_entities(self, entities: list[dict[str, Any]]) -> dict[str, Any]:
        created = []
        for each in entities:
            if each["name"] not in self.entities:
                self.entities[each["name"]] = each["entityType"], list(dict.fromkeys(each["observations"]))
                created.append(each["name"])
        return {"entities": [self._entity(name) for name in created]}

    def create_relations(self, relations: list[dict[str, Any]]) -> dict[str, Any]:
        created = []
        for each in relations:
            if (made := (each["from"], each["to"], each["relationType"])) not in self.relations:
                self.relations.append(made)
                created.append(made)
        return {"relations": [_relation(made) for made in created]}

    def add_observations(self, observations: list[dict[str, Any]]) -> dict[str, Any] | str:
        for each in observations:
            if each["entityName"] not in self.entities:
                return f"Entity with name {each['entityName']} not found"
        results = []
        for each in observations:
            known = self.entities[each["entityName"]][1]
            added = [text for text in dict.fromkeys(each["contents"]) if text not in known]
            known += added
            results.append({"entityName": each["entityName"], "addedObservations": added})
        return {"results": results}

    def delete_entities(self, entityNames: list[str]) -> dict[str, Any]:  # noqa: N803
        for name in entityNames:
            self.entities.pop(name, None)
        self.relations = [each for each in self.relations if not set(each[:2]) & set(entityNames)]
        return {"success": True, "message": "Entities deleted successfully"}

    def delete_observations(self, deletions: list[dict[str, Any]]) -> dict[str, Any]:
        for each in deletions:
            if each["entityName"] in self.entities:
                known = self.entities[each["entityName"]][1]
                known[:] = [text for text in known if text not in each["observations"]]
        return {"success": True, "message": "Observations deleted successfully"}

    def delete_relations(self, relations: list[dict[str, Any]]) -> dict[str, Any]:
        unwanted = [(each["from"], each["to"], each["relationType"]) for each in relations]
        self.relations = [each for each in self.relations if each not in unwanted]
        return {"success": True, "message": "Relations deleted successfully"}

    def read_graph(self) -> dict[str, Any]:
        return self.open_nodes(list(self.entities)) | {"relations": [_relation(each) for each in self.relations]}

    def search_nodes(self, query: str) -> dict[str, Any]:
        wanted = query.lower()
        found = [
            name
            for name, (kind, observations) in self.entities.items()
            if any(wanted in text.lower() for text in (name, kind, *observations))
        ]
        return self.open_nodes(found)

    def open_nodes(self, names: list[str]) -> dict[str, Any]:
        found = [name for name in self.entities if name in names]
        relations = [_relation(each) for each in self.relations if set(each[:2]) & set(found)]
        return {"entities": [self._entity(name) for name in found], "relations": relations}

    def _entity(self, name: str) -> dict[str, Any]:
        kind, observations = self.entities[name]
        return entity(name, kind, *observations)


def _relation(made: tuple[str, str, str]) -> dict[str, Any]:
    return relation(made[0], made[2], made[1])


# Names and texts that meet in the texts of memories: "a: b" with "c" and "a" with "b: c", "b c" and "b_c".
NAMES = st.sampled_from(["a", "A", "a: b", "a b", "", " ", "a (t)"])
TYPES = st.sampled_from(["t", "b c", "b_c", "c", "", "t) (t"])
CONTENTS = st.sampled_from(["c", "b: c", "X", "", "observation: c"])
ENTITIES = st.builds(entity, NAMES, TYPES) | st.builds(entity, st.just("a"), TYPES, CONTENTS, CONTENTS, CONTENTS)
RELATIONS = st.builds(relation, NAMES, TYPES, NAMES)
TEXTS = st.lists(CONTENTS, max_size=4)


def _calls(tool: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(tool), st.fixed_dictionaries(arguments))


CALLS = st.one_of(
    _calls("create_entities", entities=st.lists(ENTITIES, max_size=4)),
    _calls("create_relations", relations=st.lists(RELATIONS, max_size=4)),
    _calls(
        "add_observations",
        observations=st.lists(st.fixed_dictionaries({"entityName": NAMES, "contents": TEXTS}), max_size=2),
    ),
    _calls("delete_entities", entityNames=st.lists(NAMES, max_size=2)),
    _calls(
        "delete_observations",
        deletions=st.lists(st.fixed_dictionaries({"entityName": NAMES, "observations": TEXTS}), max_size=2),
    ),
    _calls("delete_relations", relations=st.lists(RELATIONS, max_size=2)),
    _calls("search_nodes", query=NAMES | CONTENTS),
    _calls("open_nodes", names=st.lists(NAMES, max_size=3)),
    _calls("read_graph"),
)
NOTES = st.sets(st.sampled_from(["a (t)", "a: c", "a: b: c", "a b c a b", "observation: a: c", "a: X"]))


@pytest.mark.slow
@given(NOTES, st.lists(CALLS, max_size=12), st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_any_calls_are_answered_as_by_the_model(
    notes: set[str], calls: list[tuple[str, dict[str, Any]]], page: int, few: int
) -> None:
    """However many things are on a page or looked up one by one, and whatever notes have the same texts."""
    with (
        mock.patch.multiple(graph, _PAGE=page, _FEW=few),
        Nacre(MemoryStore(), None, log=False) as memory,
    ):
        memory.remember_many(notes)
        model = Model()
        for tool, arguments in [*calls, ("read_graph", {})]:
            expected = model.answer(tool, arguments)
            answered = outcome(memory, tool, arguments)
            if tool == "search_nodes":
                assert isinstance(answered, Answer)
                assert isinstance(expected, dict)
                assert first_of(answered.content, expected) == expected
                continue
            assert (answered.content if isinstance(answered, Answer) else str(answered)) == expected
        assert {each.summary for each in memory.timeline(where=Filter(kinds=["note"])).entries} == notes


# ---------------------------------------------------------------- kept as memories


def test_everything_is_found_by_other_means(memory: Nacre) -> None:
    call(memory, "create_entities", entities=[entity("Ada", "person", "likes tea"), entity("Acme", "company")])
    call(memory, "create_relations", relations=[relation("Ada", "works_at", "Acme")])
    texts = [each.text for each in memory.get([entry.id for entry in memory.timeline(oldest_first=True).entries])]
    assert texts == ["Ada (person)", "Ada: likes tea", "Acme (company)", "Ada works at Acme"]
    (hit,) = memory.search("tea", mode="keyword").hits
    assert (hit.memory.kind, dict(hit.memory.metadata)) == (
        "observation",
        {"entity": "Ada", "observation": "likes tea"},
    )
    assert {each.text for each in memory.search("entity:ada", mode="keyword").hits} == set(texts) - {"Acme (company)"}
    assert {each.text for each in memory.search("entity:acme kind:entity").hits} == {"Acme (company)"}
    assert [(each.name, each.type) for each in memory.entities()] == [("Acme", "company"), ("Ada", "person")]
    assert [each.name for each in memory.related_entities("Ada")] == ["Acme"]
    (belief,) = memory.facts(subject="Ada")
    assert (belief.fact.predicate, belief.fact.object, belief.fact.type) == ("works_at", "Acme", "relationship")


def test_a_relation_takes_no_other_s_place(memory: Nacre) -> None:
    """In Nacre one works at one place at a time; in the reference server one may work at two."""
    call(memory, "create_relations", relations=[relation("Ada", "works at", "Acme")])
    call(memory, "create_relations", relations=[relation("Ada", "works at", "Globex")])
    assert {each.fact.object for each in memory.facts(subject="Ada")} == {"Acme", "Globex"}


def test_no_facts_are_read_from_observations(memory: Nacre) -> None:
    call(memory, "create_entities", entities=[entity("gateway", "service", "port: 5432", "Ada lives in London")])
    assert memory.facts() == []


def test_what_is_deleted_is_not_found_but_kept(memory: Nacre) -> None:
    call(memory, "create_entities", entities=[entity("Ada", "person", "likes tea", "rides")])
    call(memory, "delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea"]}])
    assert memory.search("tea", mode="keyword").hits == ()
    (gone,) = memory.timeline(forgotten=True).entries
    memory.restore(gone.id)
    assert read(memory)["entities"] == [entity("Ada", "person", "likes tea", "rides")]
    call(memory, "delete_entities", entityNames=["Ada"])
    assert memory.stats().memories == 0
    call(memory, "create_entities", entities=[entity("Ada", "countess")])
    assert read(memory)["entities"] == [entity("Ada", "countess")]


def test_other_memories_of_these_kinds_are_no_part_of_it(memory: Nacre) -> None:
    memory.remember("It rained", kind="observation", metadata={"entity": 7, "observation": "It rained"})
    memory.remember("Something", kind="entity", metadata={"entity": "Something"})
    memory.remember("a b c", kind="note", metadata={"from": "a", "to": "c", "relationType": "b"})
    assert read(memory) == {"entities": [], "relations": []}
    call(memory, "delete_entities", entityNames=["Something", "a", "c"])
    assert memory.stats().memories == 3


def test_a_text_that_another_memory_has_is_stored_again(memory: Nacre) -> None:
    note = memory.remember("Ada: likes tea").id
    call(
        memory,
        "create_entities",
        entities=[entity("Ada", "person", "likes tea"), entity("a: b", "c", "c"), entity("a")],
    )
    call(memory, "add_observations", observations=[{"entityName": "a", "contents": ["b: c"]}])
    call(memory, "delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea"]}])
    call(memory, "add_observations", observations=[{"entityName": "Ada", "contents": ["likes tea"]}])
    entries = memory.timeline(where=Filter(kinds=["observation"]), oldest_first=True).entries
    texts = [each.text for each in memory.get([entry.id for entry in entries])]
    assert texts == ["a: b: c", "a: b: c", "Ada: likes tea"]
    (found,) = memory.get(note)
    assert (found.kind, found.text, found.deleted) == ("note", "Ada: likes tea", None)


def test_only_the_caller_s_space_is_touched(path: Path) -> None:
    with (
        nacre.open(path, space="one", confined=True, embedder=Hashing()) as one,
        nacre.open(path, space="two", confined=True, embedder=Hashing()) as two,
    ):
        for memory, kind in ((one, "person"), (two, "ship")):
            call(memory, "create_entities", entities=[entity("Ada", kind, "likes tea")])
        call(two, "delete_entities", entityNames=["Ada"])
        assert read(two)["entities"] == []
        assert read(one)["entities"] == [entity("Ada", "person", "likes tea")]
        with pytest.raises(EntityNotFound, match=r"^Entity with name Ada not found$"):
            call(two, "add_observations", observations=[{"entityName": "Ada", "contents": ["x"]}])


@pytest.mark.slow
def test_all_of_a_large_graph_is_read(path: Path) -> None:
    """More than any limit or page."""
    nodes = [Node(f"n{at}", "thing", (f"is number {at}",)) for at in range(1_030)]
    edges = [Edge(f"n{at}", "precedes", f"n{at + 1}") for at in range(1_030)]
    with nacre.open(path, embedder=None) as memory:
        knowledge = KnowledgeGraph(memory)
        assert knowledge.create_entities(nodes) == nodes
        assert knowledge.create_relations(edges) == edges
        assert knowledge.read() == Graph(tuple(nodes), tuple(edges))
        assert knowledge.create_entities(nodes) == []
        knowledge.delete_entities([node.name for node in nodes[:-1]])
        assert knowledge.read() == Graph((nodes[-1],), (edges[-1],))


# ---------------------------------------------------------------- limits


@pytest.mark.slow
def test_a_long_observation_is_kept_whole(memory: Nacre) -> None:
    long = "äöü " * 60_000  # 420,000 bytes, far more than metadata may have
    call(memory, "create_entities", entities=[entity("Ada", "person", long, "short")])
    assert read(memory)["entities"] == [entity("Ada", "person", long, "short")]
    again = [{"entityName": "Ada", "contents": [long, "x"]}]
    assert call(memory, "add_observations", observations=again).content["results"] == [
        {"entityName": "Ada", "addedObservations": ["x"]}
    ]
    call(memory, "delete_observations", deletions=[{"entityName": "Ada", "observations": [long]}])
    assert read(memory)["entities"] == [entity("Ada", "person", "short", "x")]


def test_a_long_observation_whose_text_is_taken_is_kept_whole(memory: Nacre) -> None:
    long = "tea " * 20_000
    memory.remember(f"Ada: {long}")
    call(memory, "create_entities", entities=[entity("Ada", "person", long)])
    assert read(memory)["entities"] == [entity("Ada", "person", long)]


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("create_entities", [entity("x" * 5_001)], f"name: {'x' * 40!r}… has 5,001 characters; at most 5,000"),
        ("create_entities", [entity("x", "y" * 5_001)], "entityType: 'yyyy"),
        ("create_entities", [entity("good"), entity("x", "y", "\0")], "observation: '\\x00' contains a NUL or a lone"),
        ("create_entities", [entity("x", "y", "z" * 990_001)], "observation: 'zzz"),
        ("create_relations", [relation("a", "b", "c"), relation("\ud800", "b", "c")], "from: '\\ud800' contains a NUL"),
        ("add_observations", [{"entityName": "Ada", "contents": ["x", "\0"]}], "observation: '\\x00' contains a NUL"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused_and_nothing_is_written(
    memory: Nacre, tool: str, given: list[dict[str, Any]], message: str
) -> None:
    call(memory, "create_entities", entities=[entity("Ada")])
    with pytest.raises(InvalidInput) as caught:
        call(memory, tool, **{tool.partition("_")[2]: given})
    assert str(caught.value).startswith(message)
    assert read(memory) == {"entities": [entity("Ada")], "relations": []}


def test_the_longest_that_is_allowed_is_kept(path: Path) -> None:
    name, content = "n" * NAME_CHARS_MAX, "c" * OBSERVATION_CHARS_MAX
    wide = "\U0001f9aa" * NAME_CHARS_MAX  # four bytes each
    with nacre.open(path, embedder=None) as memory:
        memory.remember(f"{name}: {content}")
        call(memory, "create_entities", entities=[entity(name, name, content)])
        call(memory, "create_relations", relations=[relation(wide, wide, wide)])
        assert read(memory) == {"entities": [entity(name, name, content)], "relations": [relation(wide, wide, wide)]}


def test_what_cannot_be_stored_is_not_found(memory: Nacre) -> None:
    call(memory, "create_entities", entities=[entity("Ada")])
    for odd in ("\x00", "\ud800", "x" * 100_000):
        assert call(memory, "open_nodes", names=[odd]).content["entities"] == []
        assert call(memory, "search_nodes", query=odd).content["entities"] == []
        call(memory, "delete_entities", entityNames=[odd])
        call(memory, "delete_observations", deletions=[{"entityName": odd, "observations": [odd]}])
        call(memory, "delete_relations", relations=[relation(odd, odd, odd)])
        with pytest.raises(EntityNotFound):
            call(memory, "add_observations", observations=[{"entityName": odd, "contents": []}])
    assert read(memory)["entities"] == [entity("Ada")]


# ---------------------------------------------------------------- several at once


def at_once(work: Sequence[Callable[[], object]]) -> None:
    """Run all in threads that begin together; the first error of any is raised."""
    together = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def run(one: Callable[[], object]) -> None:
        together.wait()
        try:
            one()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def agents(path: Path) -> Iterator[list[Nacre]]:
    """Four with connections of their own to one store, as processes have them."""
    opened = [nacre.open(path, embedder=None) for _ in range(4)]
    yield opened
    for each in opened:
        each.close()


def test_agents_that_add_at_once_lose_nothing(agents: list[Nacre]) -> None:
    call(agents[0], "create_entities", entities=[entity("Ada", "person")])

    def adds(number: int) -> Callable[[], None]:
        def work() -> None:
            for at in range(12):
                contents = [f"{number} says {at}", f"everybody says {at}"]
                call(agents[number], "add_observations", observations=[{"entityName": "Ada", "contents": contents}])

        return work

    at_once([adds(number) for number in range(4)])
    (found,) = read(agents[0])["entities"]
    expected = {f"{who} says {at}" for at in range(12) for who in (0, 1, 2, 3, "everybody")}
    assert sorted(found["observations"]) == sorted(expected)


def test_agents_that_create_the_same_at_once_create_it_once(agents: list[Nacre]) -> None:
    kinds = ["person", "robot"]
    at_once(
        [
            lambda number=number, memory=memory: call(  # type: ignore[misc]
                memory, "create_entities", entities=[entity("Ada", kinds[number % 2], f"seen by {number}")]
            )
            for number, memory in enumerate(agents)
        ]
    )
    (found,) = read(agents[0])["entities"]
    assert found["entityType"] in kinds
    assert set(found["observations"]) <= {f"seen by {number}" for number in range(4)}
    call(agents[1], "delete_entities", entityNames=["Ada"])
    assert read(agents[2]) == {"entities": [], "relations": []}


def test_an_entity_that_two_created_is_the_first_one(memory: Nacre) -> None:
    """As a race leaves it: both had looked before either wrote."""
    for kind in ("person", "robot"):
        memory.remember(f"Ada ({kind})", kind="entity", metadata={"entity": "Ada", "entityType": kind})
    call(memory, "add_observations", observations=[{"entityName": "Ada", "contents": ["x"]}])
    assert read(memory)["entities"] == [entity("Ada", "person", "x")]
    assert call(memory, "search_nodes", query="robot").content["entities"] == []
    call(memory, "delete_entities", entityNames=["Ada"])
    assert memory.stats().memories == 0


def test_what_is_purged_meanwhile_is_no_error(memory: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    call(memory, "create_entities", entities=[entity("Ada", "person", "x", "y")])
    (doomed,) = memory.search("x kind:observation", mode="keyword").hits
    forget = memory.forget

    def purging(ids: Sequence[str], *, missing_ok: bool) -> None:
        monkeypatch.setattr(memory, "forget", forget)
        memory.purge(doomed.id)
        forget(ids, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(memory, "forget", purging)
        call(memory, "delete_observations", deletions=[{"entityName": "Ada", "observations": ["x", "y"]}])
    assert read(memory)["entities"] == [entity("Ada", "person")]


# ---------------------------------------------------------------- as a library


def test_the_verbs_of_the_library(memory: Nacre) -> None:
    knowledge = KnowledgeGraph(memory)
    ada, acme = Node("Ada", "person", ("likes tea",)), Node("Acme", "company")
    assert knowledge.create_entities([ada, acme, ada]) == [ada, acme]
    works, knows = Edge("Ada", "works_at", "Acme"), Edge("Nemo", "knows", "Ada")
    assert knowledge.create_relations([works, knows, works]) == [works, knows]
    assert knowledge.add_observations([Observations("Ada", ("rides", "likes tea", "rides"))]) == [
        Observations("Ada", ("rides",))
    ]
    assert knowledge.search("TEA") == Graph((Node("Ada", "person", ("likes tea", "rides")),), (works, knows))
    assert knowledge.open(["Acme", "Nemo"]) == Graph((acme,), (works,))
    knowledge.delete_relations([works])
    knowledge.delete_observations([Observations("Ada", ("rides",))])
    assert knowledge.read() == Graph((ada, acme), (knows,))
