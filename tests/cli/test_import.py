"""`nacre import`: what the reference memory server kept, taken over whole, once, and in spite of broken lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from command_line import Cli
from nacre import Nacre
from nacre.cli import render
from nacre.knowledge_graph import graph
from nacre.knowledge_graph.graph import KnowledgeGraph, MergeCounts
from nacre.knowledge_graph.model import Edge, Graph, Node, ObservationItem, graph_json, items_in
from nacre.storage.reference import MemoryStore
from nacre.types.memory import Progress

RECORDED = Path(__file__).parents[1] / "data" / "reference_graph.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def entity(name: str, kind: str = "thing", *observations: str, **more: object) -> str:
    return json.dumps({"type": "entity", "name": name, "entityType": kind, "observations": observations, **more})


def relation(source: str, kind: str, target: str) -> str:
    return json.dumps({"type": "relation", "from": source, "to": target, "relationType": kind})


def write(file: Path, *lines: str) -> str:
    """As the reference server does: no newline at the end."""
    file.write_text("\n".join(lines), "utf-8")
    return str(file)


def graph_in(path: Path) -> Graph:
    with nacre.open(path, embedder="hashing", create=False) as memory:
        return KnowledgeGraph(memory).read()


def counts(entities: int = 0, observations: int = 0, relations: int = 0, already: int = 0) -> dict[str, int]:
    return {"entities": entities, "observations": observations, "relations": relations, "already": already}


# ---------------------------------------------------------------- taken over


def test_a_file_that_the_real_server_wrote(cli: Cli, file: Path, path: Path) -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    assert cli("import", write(file, *recorded["file"]), "--json").json == counts(8, 11, 3)
    assert graph_json(graph_in(path)) == recorded["calls"][-1]["structured"]


def test_it_is_recognised_by_its_beginning(cli: Cli, file: Path, path: Path) -> None:
    """Also where the first line is longer than what is looked at."""
    write(file, entity("Ada", "person", *(f"likes tea number {number} {'very ' * 20}" for number in range(1_000))))
    assert file.stat().st_size > 100_000
    assert cli("import", str(file), "--json").json == counts(1, 1_000)
    assert len(graph_in(path).nodes) == 1


def test_it_can_be_repeated(cli: Cli, file: Path, path: Path) -> None:
    write(file, entity("Ada", "person", "likes tea", "rides"), entity("Acme"), relation("Ada", "works_at", "Acme"))
    first = cli("import", str(file))
    assert (first.code, first.out, first.err) == (0, "imported 2 entities, 2 observations, 1 relation\n", "")
    before = graph_in(path)
    again = cli("import", str(file))
    assert again.out == "imported 0 entities, 0 observations, 0 relations (5 already stored)\n"
    assert cli("import", str(file), "--json").json == counts(already=5)
    assert graph_in(path) == before
    assert cli("stats", "--json").json["memories"] == 5


def test_it_adds_to_what_is_there(cli: Cli, file: Path, path: Path, memory: Nacre) -> None:
    """What is there stays as it is, and is told apart from notes that read the same."""
    KnowledgeGraph(memory).create_entities([Node("Ada", "countess", ("rides",))])
    memory.remember("Ada: likes tea")
    write(file, entity("Ada", "person", "likes tea", "rides"), entity("Boole", "person", "likes tea"))
    assert cli("import", str(file), "--json").json == counts(1, 2, 0, already=2)
    expected = (Node("Ada", "countess", ("rides", "likes tea")), Node("Boole", "person", ("likes tea",)))
    assert graph_in(path).nodes == expected
    assert len([each for each in memory.search("tea", collapse=False).hits if each.memory.kind == "note"]) == 1


def test_what_stands_there_twice_is_one(cli: Cli, file: Path, path: Path) -> None:
    """The reference server keeps things twice that one call named twice; observations of both are kept."""
    write(
        file,
        entity("Ada", "person", "first", "first"),
        relation("Ada", "knows", "Ada"),
        entity("Ada", "robot", "second", "first"),
        relation("Ada", "knows", "Ada"),
    )
    assert cli("import", str(file), "--json").json == counts(1, 2, 1, already=4)
    assert graph_in(path) == Graph((Node("Ada", "person", ("first", "second")),), (Edge("Ada", "knows", "Ada"),))


def test_relations_need_no_entities(cli: Cli, file: Path, path: Path) -> None:
    assert cli("import", write(file, relation("Nemo", "is", "nobody")), "--json").json == counts(relations=1)
    assert graph_in(path) == Graph((), (Edge("Nemo", "is", "nobody"),))


def test_it_is_taken_into_the_space_that_is_named(cli: Cli, file: Path, path: Path) -> None:
    assert cli("import", write(file, entity("Ada")), "--space", "agent").code == 0
    assert graph_in(path) == Graph((), ())
    with nacre.open(path, space="agent", embedder="hashing") as memory:
        assert KnowledgeGraph(memory).read().nodes == (Node("Ada", "thing"),)


def test_a_file_of_nothing_is_an_empty_graph(cli: Cli, file: Path) -> None:
    assert cli("import", write(file, ""), "--json").json == counts()
    assert cli("import", write(file, "", " ", "\r", ""), "--json").json == counts()


def test_lines_may_end_and_begin_as_elsewhere(cli: Cli, file: Path, path: Path) -> None:
    file.write_bytes(("\ufeff" + entity("Zoë", "人") + "\r\n\r\n" + relation("Zoë", "is", "Zoë") + "\r\n").encode())
    assert cli("import", str(file), "--json").json == counts(1, 0, 1)
    assert graph_in(path).nodes == (Node("Zoë", "人"),)


def test_keys_of_other_versions_are_left_out(cli: Cli, file: Path, path: Path) -> None:
    assert cli("import", write(file, entity("Ada", "person", createdAt="2025-03-01", version=2))).code == 0
    assert graph_in(path).nodes == (Node("Ada", "person"),)


def test_it_reads_stdin(cli: Cli, path: Path) -> None:
    assert cli("import", "-", "--json", stdin=entity("Ada", "person", "likes tea") + "\n").json == counts(1, 1)
    assert graph_in(path).nodes == (Node("Ada", "person", ("likes tea",)),)


# ---------------------------------------------------------------- counted only


def test_a_dry_run_counts_the_same_and_writes_nothing(cli: Cli, file: Path, path: Path) -> None:
    write(file, entity("Ada", "person", "likes tea", "likes tea"), entity("Ada", "robot", "rides"))
    dry = cli("import", str(file), "--dry-run")
    assert dry.out == "would import 1 entity, 2 observations, 0 relations (2 already stored)\n"
    assert not path.exists()
    assert cli("import", str(file), "--json").json == counts(1, 2, 0, already=2)
    write(file, entity("Ada", "person", "likes tea", "swims"))
    assert cli("import", str(file), "--dry-run", "--json").json == counts(observations=1, already=2)
    assert graph_in(path).nodes == (Node("Ada", "person", ("likes tea", "rides")),)


# ---------------------------------------------------------------- broken files


def test_a_line_that_was_cut_off_costs_no_other(cli: Cli, file: Path, path: Path) -> None:
    lines = [entity("Ada", "person", "likes tea"), entity("Boole"), relation("Ada", "knows", "Boole")[:30]]
    answer = cli("import", write(file, *lines), "--json")
    assert answer.code == 2
    assert answer.json == counts(2, 1)
    problem = json.loads(answer.err)["error"]
    assert problem["field"] == "file"
    assert problem["message"].startswith("file: 1 line was not imported; all others were. Repair it and run")
    assert [(each["line"], each["field"]) for each in problem["errors"]] == [(3, None)]
    assert problem["errors"][0]["message"].startswith("is not JSON (Unterminated string")
    assert graph_in(path).nodes == (Node("Ada", "person", ("likes tea",)), Node("Boole", "thing"))
    lines[2] = relation("Ada", "knows", "Boole")
    assert cli("import", write(file, *lines), "--json").json == counts(relations=1, already=3)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "line 2: is not JSON"),
        (b"[" * 100_000, "line 2: is not JSON"),
        (b'{"type": "entity", "name": "\xff"}', "line 2: is not JSON"),
        (b"7", "line 2: is neither an entity nor a relation"),
        (b'{"type": "observation"}', "line 2: is neither an entity nor a relation"),
        (b'{"type": "entity", "name": "x", "observations": []}', "line 2: entityType: must be a text, not nothing"),
        (b'{"type": "entity", "name": "x", "entityType": "y"}', "line 2: observations: must be a list, not nothing"),
        (b'{"type": "entity", "name": "x", "entityType": "", "observations": ["", 7]}', "line 2: observations[1]: mus"),
        (b'{"type": "relation", "from": "x", "to": null, "relationType": "y"}', "line 2: to: must be a text, not noth"),
        (b'{"type": "relation", "from": "\\u0000", "to": "", "relationType": ""}', "line 2: from: '\\x00' contains a"),
        (b'{"type": "relation", "from": "\\ud800", "to": "", "relationType": ""}', "line 2: from: '\\ud800' contains"),
        (b'{"type": "relation", "from": "%s", "to": "", "relationType": ""}' % (b"a" * 5_001), "line 2: from: 'aaaa"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_by_its_number(cli: Cli, file: Path, path: Path, line: bytes, problem: str) -> None:
    file.write_bytes(b"\n".join([entity("before").encode(), line, entity("after").encode()]))
    answer = cli("import", str(file))
    assert answer.code == 2
    assert answer.out == "imported 2 entities, 0 observations, 0 relations\n"
    assert answer.err.startswith(problem)
    assert [node.name for node in graph_in(path).nodes] == ["before", "after"]


def test_of_many_bad_lines_some_are_named(cli: Cli, file: Path) -> None:
    answer = cli("import", write(file, entity("Ada"), *["{"] * 25))
    assert "line 2: is not JSON" in answer.err
    assert "line 21: is not JSON" in answer.err
    assert "line 22:" not in answer.err
    assert "… and 5 more\nerror: file: 25 lines were not imported; all others were" in answer.err


@pytest.mark.parametrize("content", ["# A page\n\nof text", '["entity"]', '{"type": "entity"', "\x00"])
def test_another_format_is_refused_and_makes_no_store(cli: Cli, file: Path, path: Path, content: str) -> None:
    answer = cli("import", write(file, content))
    assert answer.code == 2
    assert f"{file} is in no known format; name it with --format: knowledge-graph, " in answer.err
    assert not path.exists()


def test_a_format_that_is_named_needs_not_be_recognised(cli: Cli, file: Path, path: Path) -> None:
    lines = ["{"] * 20 + [entity("Ada")]
    assert "no known format" in cli("import", write(file, *lines)).err
    named = cli("import", str(file), "--format", "knowledge-graph")
    assert (named.code, named.out) == (2, "imported 1 entity, 0 observations, 0 relations\n")
    assert graph_in(path).nodes == (Node("Ada", "thing"),)
    assert "'yaml' is unknown; known: knowledge-graph, " in cli("import", str(file), "--format", "yaml").err


def test_a_file_that_cannot_be_read_is_named(cli: Cli, file: Path, path: Path, tmp_path: Path) -> None:
    for missing, problem in ((file, "cannot be read (No such file"), (tmp_path, "is in no known format")):
        answer = cli("import", str(missing))
        assert answer.code == 2
        assert answer.err.startswith(f"error: path: {missing} {problem}")
    assert "cannot be read" in cli("import", str(file), "--format", "csv").err
    assert not path.exists()


# ---------------------------------------------------------------- of any size


def test_a_large_file_is_taken_over_in_batches(
    cli: Cli, file: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Progress] = []

    class Bar:
        def __enter__(self) -> Callable[[Progress], None]:
            return shown.append

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(render, "progress", lambda _: Bar())
    monkeypatch.setenv("NACRE_EMBEDDER", "none")
    nodes = [Node(f"n{at}", "thing", (f"is number {at}", f"follows {at - 1}")) for at in range(600)]
    write(file, *(entity(node.name, node.type, *node.observations) for node in nodes))
    assert cli("import", str(file), "--json").json == counts(600, 1_200)
    assert len(shown) == 4  # 512 things at a time
    assert [each.total for each in shown] == [file.stat().st_size] * 4
    assert sorted(each.done for each in shown) == [each.done for each in shown]
    assert shown[-1].done == file.stat().st_size
    assert graph_in(path).nodes == tuple(nodes)


NAMES = st.sampled_from(["a", "b", "a: b", ""])
TEXTS = st.sampled_from(["c", "b: c", "x"])
THINGS = st.builds(Node, NAMES, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)) | st.builds(Edge, NAMES, TEXTS, NAMES)


@pytest.mark.slow
@given(st.lists(THINGS, max_size=12), st.lists(THINGS, max_size=12), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_merging_adds_what_is_not_there(first: list[Node | Edge], second: list[Node | Edge], batch: int) -> None:
    """In batches of any size, dry or not, the counts are those of what is new, and nothing is lost."""
    said = {item for each in (*first, *second) for item in items_in(each)}
    types = {
        each.name: each.type for each in reversed((*first, *second)) if isinstance(each, Node)
    }  # the first's stays
    with pytest.MonkeyPatch.context() as patched, Nacre(MemoryStore(), None, log=False) as memory:
        patched.setattr(graph, "_BATCH", batch)
        knowledge = KnowledgeGraph(memory)
        counted = []
        for part in (first, second):
            (*_, would) = MergeCounts(), *knowledge.merge(part, dry_run=True)
            (*_, merged) = MergeCounts(), *knowledge.merge(part)
            assert would == merged
            counted.append(merged)
        found = knowledge.read()
        assert {node.name: node.type for node in found.nodes} == types
        assert {item for node in found.nodes for item in items_in(node) if isinstance(item, ObservationItem)} == {
            item for item in said if isinstance(item, ObservationItem)
        }
        assert set(found.edges) == {item for item in said if isinstance(item, Edge)}
        assert sum(each.entities for each in counted) == len(found.nodes)
        assert sum(each.observations for each in counted) == sum(len(node.observations) for node in found.nodes)
        assert sum(each.relations for each in counted) == len(found.edges)
        given_in_all = sum(len(items_in(each)) for each in (*first, *second))
        assert sum(each.already for each in counted) == given_in_all - memory.stats().memories
