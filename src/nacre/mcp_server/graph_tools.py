"""The nine tools of the MCP reference memory server, with its names, descriptions and schemas: a drop-in replacement.

One difference: an entity, an observation and a relation are stored once, also where one call names them twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from nacre.knowledge_graph import model
from nacre.knowledge_graph.graph import KnowledgeGraph
from nacre.knowledge_graph.model import Graph, Observations
from nacre.mcp_server.tool import Answer, Call, Tool
from nacre.serialization import encode
from nacre.types.memory import Json

T = TypeVar("T")


# ---------------------------------------------------------------- schemas


def _texts(description: str) -> dict[str, Json]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _text(description: str) -> dict[str, Json]:
    return {"type": "string", "description": description}


def _input(**properties: Json) -> dict[str, Json]:
    """All properties are required; others are ignored."""
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    return {**schema, "required": list(properties)} if properties else schema


def _output(**properties: Json) -> dict[str, Json]:
    return {**_input(**properties), "additionalProperties": False}


def _schema(described: dict[str, Json]) -> dict[str, Json]:
    return {"$schema": "http://json-schema.org/draft-07/schema#", **described}


def _list(of: dict[str, Json], **more: Json) -> dict[str, Json]:
    return {"type": "array", "items": of, **more}


_ENTITY: dict[str, Json] = {
    "name": _text("The name of the entity"),
    "entityType": _text("The type of the entity"),
    "observations": _texts("An array of observation contents associated with the entity"),
}
_RELATION: dict[str, Json] = {
    "from": _text("The name of the entity where the relation starts"),
    "to": _text("The name of the entity where the relation ends"),
    "relationType": _text("The type of the relation"),
}
_DONE = _schema(_output(success={"type": "boolean"}, message={"type": "string"}))
_GRAPH = _schema(_output(entities=_list(_output(**_ENTITY)), relations=_list(_output(**_RELATION))))


# ---------------------------------------------------------------- answers


def _create_entities(call: Call) -> Answer:
    given = _each(call, "entities", model.to_node)
    graph = KnowledgeGraph(call.memory)
    created: list[Json] = [model.node_json(each) for each in graph.create_entities(given)]
    return Answer({"entities": created}, encode.dumps(created), _notes(graph))


def _create_relations(call: Call) -> Answer:
    given = _each(call, "relations", model.to_edge)
    graph = KnowledgeGraph(call.memory)
    created: list[Json] = [{**model.edge_json(each)} for each in graph.create_relations(given)]
    return Answer({"relations": created}, encode.dumps(created), _notes(graph))


def _add_observations(call: Call) -> Answer:
    additions = _each(call, "observations", _observations("contents"))
    graph = KnowledgeGraph(call.memory)
    added: list[Json] = [
        {"entityName": each.name, "addedObservations": list(each.contents)}
        for each in graph.add_observations(additions)
    ]
    return Answer({"results": added}, encode.dumps(added), _notes(graph))


def _notes(graph: KnowledgeGraph) -> dict[str, Json]:
    """On private parts and secrets. The answer itself is as the reference server's, which has no place for them."""
    return {"notes": list(graph.notes)} if graph.notes else {}


def _delete_entities(call: Call) -> Answer:
    KnowledgeGraph(call.memory).delete_entities(model.to_texts("entityNames", call.arguments.get("entityNames")))
    return _done("Entities deleted successfully")


def _delete_observations(call: Call) -> Answer:
    KnowledgeGraph(call.memory).delete_observations(_each(call, "deletions", _observations("observations")))
    return _done("Observations deleted successfully")


def _delete_relations(call: Call) -> Answer:
    KnowledgeGraph(call.memory).delete_relations(_each(call, "relations", model.to_edge))
    return _done("Relations deleted successfully")


def _read_graph(call: Call) -> Answer:
    return _shown(KnowledgeGraph(call.memory).read())


def _search_nodes(call: Call) -> Answer:
    return _shown(KnowledgeGraph(call.memory).search(model.to_text("query", call.arguments.get("query"))))


def _open_nodes(call: Call) -> Answer:
    return _shown(KnowledgeGraph(call.memory).open(model.to_texts("names", call.arguments.get("names"))))


def _each(call: Call, field: str, read: Callable[[str, object], T]) -> list[T]:
    listed = model.to_list(field, call.arguments.get(field))
    return [read(f"{field}[{at}].", each) for at, each in enumerate(listed)]


def _observations(contents: str) -> Callable[[str, object], Observations]:
    """Reads the observations of one entity, which are under this key."""

    def read(field: str, value: object) -> Observations:
        given = model.to_object(field, value)
        name = model.to_text(f"{field}entityName", given.get("entityName"))
        return Observations(name, model.to_texts(f"{field}{contents}", given.get(contents)))

    return read


def _done(message: str) -> Answer:
    return Answer({"success": True, "message": message}, message)


def _shown(found: Graph) -> Answer:
    content = model.graph_json(found)
    return Answer(content, encode.dumps(content))


# ---------------------------------------------------------------- the tools

_Tool = partial(Tool, strict=True)  # arguments as the reference server takes them

TOOLS: tuple[Tool, ...] = (
    _Tool(
        name="create_entities",
        title="Create Entities",
        description="Create multiple new entities in the knowledge graph",
        effect="adds",
        repeatable=False,
        answer=_create_entities,
        input=_schema(_input(entities=_list(_input(**_ENTITY)))),
        output=_schema(_output(entities=_list(_output(**_ENTITY)))),
    ),
    _Tool(
        name="create_relations",
        title="Create Relations",
        description=(
            "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice"
        ),
        effect="adds",
        repeatable=False,
        answer=_create_relations,
        input=_schema(_input(relations=_list(_input(**_RELATION)))),
        output=_schema(_output(relations=_list(_output(**_RELATION)))),
    ),
    _Tool(
        name="add_observations",
        title="Add Observations",
        description="Add new observations to existing entities in the knowledge graph",
        effect="adds",
        repeatable=False,
        answer=_add_observations,
        input=_schema(
            _input(
                observations=_list(
                    _input(
                        entityName=_text("The name of the entity to add the observations to"),
                        contents=_texts("An array of observation contents to add"),
                    )
                )
            )
        ),
        output=_schema(
            _output(
                results=_list(
                    _output(
                        entityName={"type": "string"},
                        addedObservations={"type": "array", "items": {"type": "string"}},
                    )
                )
            )
        ),
    ),
    _Tool(
        name="delete_entities",
        title="Delete Entities",
        description="Delete multiple entities and their associated relations from the knowledge graph",
        effect="changes",
        answer=_delete_entities,
        input=_schema(_input(entityNames=_texts("An array of entity names to delete"))),
        output=_DONE,
    ),
    _Tool(
        name="delete_observations",
        title="Delete Observations",
        description="Delete specific observations from entities in the knowledge graph",
        effect="changes",
        answer=_delete_observations,
        input=_schema(
            _input(
                deletions=_list(
                    _input(
                        entityName=_text("The name of the entity containing the observations"),
                        observations=_texts("An array of observations to delete"),
                    )
                )
            )
        ),
        output=_DONE,
    ),
    _Tool(
        name="delete_relations",
        title="Delete Relations",
        description="Delete multiple relations from the knowledge graph",
        effect="changes",
        answer=_delete_relations,
        input=_schema(_input(relations=_list(_input(**_RELATION), description="An array of relations to delete"))),
        output=_DONE,
    ),
    _Tool(
        name="read_graph",
        title="Read Graph",
        description="Read the entire knowledge graph",
        effect="reads",
        answer=_read_graph,
        input=_schema(_input()),
        output=_GRAPH,
    ),
    _Tool(
        name="search_nodes",
        title="Search Nodes",
        description="Search for nodes in the knowledge graph based on a query",
        effect="reads",
        answer=_search_nodes,
        input=_schema(
            _input(query=_text("The search query to match against entity names, types, and observation content"))
        ),
        output=_GRAPH,
    ),
    _Tool(
        name="open_nodes",
        title="Open Nodes",
        description="Open specific nodes in the knowledge graph by their names",
        effect="reads",
        answer=_open_nodes,
        input=_schema(_input(names=_texts("An array of entity names to retrieve"))),
        output=_GRAPH,
    ),
)
