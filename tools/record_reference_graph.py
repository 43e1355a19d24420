"""Records the answers of the reference memory server, which tests/knowledge_graph compares with Nacre's.

    npm install @modelcontextprotocol/server-memory
    python tools/record_reference_graph.py node_modules/@modelcontextprotocol/server-memory/dist/index.js

The real server starts on an empty file and gets every call below, in order. Its tools and all answers are written to
tests/data/reference_graph.json: `structured` is the structured content, `text` is the text where it is not the same
content as JSON, `error` is the text of an error. Needs node and the package `mcp`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

from mcp import Client, StdioServerParameters

Call: TypeAlias = tuple[str, dict[str, Any]]

PACKAGE = "@modelcontextprotocol/server-memory"
RECORDED = Path(__file__).parent.parent / "tests" / "data" / "reference_graph.json"
READ: Call = ("read_graph", {})


def entity(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, kind: str, target: str) -> dict[str, Any]:
    return {"from": source, "to": target, "relationType": kind}


def create(*entities: dict[str, Any]) -> Call:
    return "create_entities", {"entities": list(entities)}


def relate(*relations: dict[str, Any]) -> Call:
    return "create_relations", {"relations": list(relations)}


def add(*several: tuple[str, list[str]]) -> Call:
    return "add_observations", {"observations": [{"entityName": name, "contents": texts} for name, texts in several]}


def drop(*several: tuple[str, list[str]]) -> Call:
    listed = [{"entityName": name, "observations": texts} for name, texts in several]
    return "delete_observations", {"deletions": listed}


def drop_entities(*names: str) -> Call:
    return "delete_entities", {"entityNames": list(names)}


def drop_relations(*relations: dict[str, Any]) -> Call:
    return "delete_relations", {"relations": list(relations)}


def search(query: str) -> Call:
    return "search_nodes", {"query": query}


def open_nodes(*names: str) -> Call:
    return "open_nodes", {"names": list(names)}


CALLS: list[Call] = [
    # nothing there yet
    READ, search("x"), search(""), open_nodes("Ada"), open_nodes(), drop_entities("Ada"), drop(("Ada", ["x"])),
    drop_relations(relation("a", "b", "c")), create(), relate(), add(), drop(), drop_entities(), drop_relations(), READ,
    # typical use
    create(entity("Ada", "person", "likes tea", "was born in London"), entity("Acme", "company")),
    create(entity("Charles", "person", "builds engines")),
    relate(relation("Ada", "works_at", "Acme"), relation("Ada", "knows", "Charles")),
    add(("Ada", ["writes programs", "plays the harp"]), ("Acme", ["makes anvils"])),
    READ, search("tea"), search("PERSON"), search("acme"), search("nobody"), search("likes tea"), search("tea likes"),
    open_nodes("Ada"), open_nodes("Acme", "Charles"), open_nodes("Charles", "Acme", "nobody"),
    # duplicates are ignored
    create(entity("Ada", "robot", "is new"), entity("Boole", "person")),
    relate(relation("Ada", "works_at", "Acme"), relation("Acme", "employs", "Ada")),
    add(("Ada", ["likes tea", "rides"]), ("Ada", ["rides", "swims"])),
    READ,
    # twice in one call
    create(entity("Twin", "person", "first"), entity("Twin", "robot", "second")),
    READ, add(("Twin", ["third"])), drop(("Twin", ["first", "second"])), READ, drop_entities("Twin"),
    create(entity("Echo", "nymph", "again", "again")),
    add(("Echo", ["once", "once"])),
    relate(relation("Echo", "calls", "Echo"), relation("Echo", "calls", "Echo")),
    READ, drop(("Echo", ["again", "once"])), drop_relations(relation("Echo", "calls", "Echo")), READ,
    # names are compared as they are written
    create(entity("ada", "person", "is written small"), entity(" Ada ", "person"), entity("ADA", "person")),
    add(("ada", ["likes tea"])),
    add(("aDA", ["nobody"])),
    open_nodes("ada"), open_nodes("ADA", " Ada "), relate(relation("ADA", "knows", "ada")),
    relate(relation("ADA", "Knows", "ada"), relation("ADA", "knows ", "ada")),
    READ, drop_entities("ADA", " Ada "), READ,
    # relations need no entities
    relate(relation("Nemo", "is", "nobody"), relation("Ada", "dreams_of", "Nemo")),
    READ, open_nodes("Nemo"), search("Nemo"), drop_entities("Nemo"), READ,
    # an unknown entity: nothing of the call is done
    add(("Ada", ["is never written"]), ("nobody", ["x"])), add(("nobody", [])), add(("", ["x"])), READ,
    # deleting
    drop(("Ada", ["likes tea", "is unknown"]), ("nobody", ["x"]), ("Acme", [])),
    drop(("ada", ["LIKES TEA"])), drop_relations(relation("Ada", "knows", "Acme"), relation("Ada", "knows", "Charles")),
    READ, drop_entities("Ada", "nobody"), READ, open_nodes("Ada", "Acme"),
    # create again after deleting
    create(entity("Ada", "countess", "is back")), add(("Ada", ["likes tea"])),
    relate(relation("Ada", "works_at", "Acme")), READ, search("is back"), search("likes tea"),
    # characters in texts
    create(
        entity("Zoë 🦪", "人", "mag \"Tee\" und 'Kaffee'", "zwei\nZeilen\tund\r\nmehr", "\\", "\u2028 \u007f \u0001"),
        entity("ΟΔΟΣ", "Straße", "İstanbul", "ﬁne", "  spaces  "),
    ),
    search("zoë"), search("🦪"), search("οδος"), search("οδοσ"), search("STRASSE"), search("STRAßE"),
    search("i̇stanbul"), search("istanbul"), search("FINE"), search("\n"), search("\\"), search("\""), search("  "),
    search("%"), search("*"), search("tea OR nothing"), search("likes_tea"), search("人"),
    relate(relation("Zoë 🦪", "kennt → mag", "ΟΔΟΣ")), open_nodes("Zoë 🦪"),
    drop(("Zoë 🦪", ["zwei\nZeilen\tund\r\nmehr", "\u2028 \u007f \u0001"])), READ,
    # unusual names
    create(entity("", ""), entity(" ", " ", "", " "), entity("a: b", "c"), entity("a", "b: c"), entity("a (b)", "c")),
    add(("", ["", "x"]), ("a: b", ["c"]), ("a", ["b: c"])),
    relate(relation("", "", ""), relation("a", "b c", "d"), relation("a b", "c", "d"), relation("a", "b", "c d")),
    relate(relation("a", "b_c", "d"), relation("a", "bC", "d"), relation("a", "b-c", "d")),
    open_nodes(""), open_nodes("a", "a: b"), READ, drop(("a: b", ["c"])), drop_relations(relation("", "", "")), READ,
    drop_entities("", " ", "a", "a: b", "a (b)"), READ,
    create(entity("x" * 300, "y" * 300, "z" * 300)), relate(relation("x" * 300, "y" * 300, "x" * 300)),
    open_nodes("x" * 300), drop_entities("x" * 300), READ,
    # keys follow the order of the schema, and unknown keys are dropped
    create({"observations": ["c"], "entityType": "b", "name": "order"}), drop_entities("order"),
    relate({"relationType": "b", "to": "c", "from": "a"}), drop_relations(relation("a", "b", "c")),
    create({**entity("Plus", "thing"), "more": 1}), relate({**relation("Plus", "is", "Plus"), "more": [1]}),
    ("read_graph", {"more": 1}), ("search_nodes", {"query": "plus", "more": 1}), drop_entities("Plus"),
    # rejected by the schema
    ("create_entities", {}), ("create_entities", {"entities": "Ada"}), create({"name": "x"}),
    create({"name": "x", "entityType": 7, "observations": []}), create({**entity("x"), "observations": [1]}),
    create({**entity("x"), "observations": "y"}), create(entity("good"), {**entity("x"), "name": None}),
    ("create_entities", {"entities": ["x"]}), ("create_relations", {"relations": [{"from": "a", "to": "b"}]}),
    ("add_observations", {"observations": [{"entityName": "Ada"}]}), ("search_nodes", {}),
    ("search_nodes", {"query": 1}), ("open_nodes", {"names": "Ada"}), ("delete_entities", {"entityNames": [None]}),
    READ,
]  # fmt: skip


async def record(index_js: Path) -> dict[str, Any]:
    package = json.loads((index_js.parent.parent / "package.json").read_text("utf-8"))
    assert package["name"] == PACKAGE, f"{index_js} is not the reference server"
    with tempfile.TemporaryDirectory(prefix="reference-graph-") as folder:
        server = StdioServerParameters(
            command="node", args=[str(index_js)], env={"MEMORY_FILE_PATH": str(Path(folder) / "memory.jsonl")}
        )
        async with Client(server, mode="legacy") as client:
            tools = (await client.list_tools()).tools
            answers = [await ask(client, name, arguments) for name, arguments in CALLS]
        file = (Path(folder) / "memory.jsonl").read_text("utf-8")
    return {
        "server": f"{package['name']} {package['version']}",
        "tools": [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in tools],
        "calls": answers,
        "file": file.split("\n"),
    }


async def ask(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert content.type == "text"
    asked = {"tool": name, "arguments": arguments}
    if result.is_error:
        return {**asked, "error": content.text}
    structured = result.structured_content or {}
    answered = {**asked, "structured": structured}
    return answered if content.text == as_json(structured) else {**answered, "text": content.text}


def as_json(structured: dict[str, Any]) -> str:
    """The content, or its only value, as JavaScript formats it with two spaces."""
    (only, *more) = structured.values()
    return json.dumps(structured if more else only, ensure_ascii=False, indent=2)


def readable(recorded: dict[str, Any]) -> str:
    """JSON with one line for each tool and call."""
    lines = {
        name: "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n]"
        if isinstance(value, list)
        else json.dumps(value)
        for name, value in recorded.items()
    }
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {value}" for name, value in lines.items()) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the answers of the reference memory server.")
    parser.add_argument("index_js", type=Path, help="dist/index.js of the installed package")
    parser.add_argument("--out", type=Path, default=RECORDED)
    given = parser.parse_args()
    recorded = asyncio.run(record(given.index_js.resolve()))
    given.out.write_text(readable(recorded), "utf-8")
    print(f"{len(recorded['calls'])} answers of {recorded['server']} in {given.out}")


if __name__ == "__main__":
    main()
