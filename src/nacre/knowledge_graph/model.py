"""The items of a knowledge graph: as values, as memories, and as the JSON of the MCP reference memory server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from nacre.analysis.names import predicate_words
from nacre.errors import InvalidInput
from nacre.types.facts import NewEntity, NewFact
from nacre.types.memory import Json, Memory, NewMemory
from nacre.validation import LIMITS, storable

NAME_CHARS_MAX = 5_000  # of names and types: three of them fit into metadata
OBSERVATION_CHARS_MAX = LIMITS.text_chars_max - 2 * NAME_CHARS_MAX  # the text also has the entity's name
_CONTENT_BYTES_MAX = 32_768  # of an observation in metadata; a longer one is stored only in the text


# ---------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Node:
    """An entity with its observations, in the order in which they were added."""

    name: str
    type: str
    observations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two names. Entities with these names need not exist."""

    source: str
    type: str
    target: str


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of one entity: to add, added, or to delete."""

    name: str
    contents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity without its observations."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ObservationItem:
    """One observation of an entity."""

    name: str
    content: str


Item: TypeAlias = EntityItem | ObservationItem | Edge  # the content of one memory


def items_in(each: Node | Edge) -> list[Item]:
    if isinstance(each, Edge):
        return [each]
    return [EntityItem(each.name, each.type), *(ObservationItem(each.name, content) for content in each.observations)]


def identity(item: Item) -> tuple[str, ...]:
    """The kind of its memory and the strings that identify it. The type of an entity is not among them."""
    match item:
        case EntityItem(name):
            return "entity", name
        case ObservationItem(name, content):
            return "observation", name, content
        case Edge(source, type_, target):
            return "relation", source, type_, target


def identity_digest(item: Item) -> bytes:
    """A short digest of the identity, for large sets."""
    return hashlib.blake2b(repr(identity(item)).encode(), digest_size=16).digest()


# ---------------------------------------------------------------- as memories


def validate(each: Node | Edge | Observations) -> None:
    """Raise InvalidInput for what cannot be stored. Blank texts are allowed."""
    match each:
        case Node(name, type_, observations):
            names, contents = {"name": name, "entityType": type_}, observations
        case Edge():
            names, contents = edge_json(each), ()
        case Observations(name, contents):
            names = {"entityName": name}
    for field, text in names.items():
        _check_text(field, text, NAME_CHARS_MAX)
    for text in contents:
        _check_text("observation", text, OBSERVATION_CHARS_MAX)


def _check_text(field: str, text: str, chars_max: int) -> None:
    if len(text) > chars_max:
        raise InvalidInput(field, f"{text[:40]!r}… has {len(text):,} characters; at most {chars_max:,} are allowed")
    if not storable(text):
        raise InvalidInput(field, f"{text[:40]!r} contains a NUL or a lone surrogate; only valid Unicode is allowed")


def new_memory(item: Item) -> NewMemory:
    """The memory of an item. Names that are no valid entity names are stored, but not linked."""
    match item:
        case EntityItem(name, type_):
            text = f"{name} ({type_})"
            metadata: dict[str, Json] = {"entity": name, "entityType": type_}
            entities = [NewEntity(name=name, type=type_ if _linkable(type_) else None)] if _linkable(name) else []
        case ObservationItem(name, content):
            text = f"{name}: {content}"
            metadata = {"entity": name, **_content_metadata(content)}
            entities = [NewEntity(name=name)] if _linkable(name) else []
        case Edge(source, type_, target):
            text = f"{source} {predicate_words(type_)} {target}"
            metadata = {**edge_json(item)}
            entities = [NewEntity(name=name) for name in (source, target) if _linkable(name)]
    kind = identity(item)[0]
    return NewMemory(
        text=f"{kind}: {text}" if text.isspace() else text,
        key=f"graph:{identity_digest(item).hex()}",  # other memories may have the same text
        kind=kind,
        metadata=metadata,
        entities=entities,
        facts=_facts(item),
        extract=False,
    )


def _facts(item: Item) -> list[NewFact]:
    """The fact of a relation, if its strings are valid in a fact. It does not supersede others."""
    if not isinstance(item, Edge) or not all(map(_linkable, (item.source, item.type, item.target))):
        return []
    fact = NewFact(subject=item.source, predicate=item.type, object=item.target, type="relationship", relation=True)
    return [replace(fact, single=False)]


def _linkable(name: str) -> bool:
    return 0 < len(name) <= LIMITS.name_chars_max and not name.isspace()


def _content_metadata(content: str) -> dict[str, Json]:
    fits = len(json.dumps(content, ensure_ascii=False).encode()) <= _CONTENT_BYTES_MAX
    return {"observation": content} if fits else {"observation_chars": len(content)}


def items_by_id(memories: Iterable[Memory]) -> dict[str, Item]:
    """The items of memories by their ids. Memories of the same kinds without the metadata of an item are skipped."""
    return {memory.id: item for memory in memories if (item := item_of(memory)) is not None}


def item_of(memory: Memory) -> Item | None:
    match memory.kind, memory.metadata:
        case "entity", {"entity": str(name), "entityType": str(type_)}:
            return EntityItem(name, type_)
        case "observation", {"entity": str(name), "observation": str(content)}:
            return ObservationItem(name, content)
        case "observation", {"entity": str(name), "observation_chars": int(length)}:
            return ObservationItem(name, memory.text[-length:])
        case "relation", {"from": str(source), "to": str(target), "relationType": str(type_)}:
            return Edge(source, type_, target)
    return None


def node_json(node: Node) -> dict[str, Json]:
    return {"name": node.name, "entityType": node.type, "observations": list(node.observations)}


def edge_json(edge: Edge) -> dict[str, str]:
    return {"from": edge.source, "to": edge.target, "relationType": edge.type}


def graph_json(graph: Graph) -> dict[str, Json]:
    return {
        "entities": [node_json(each) for each in graph.nodes],
        "relations": [{**edge_json(each)} for each in graph.edges],
    }


def to_node(field: str, value: object) -> Node:
    """An entity from JSON. Unknown keys are ignored, as by the reference server."""
    given = to_object(field, value)
    return Node(
        to_text(f"{field}name", given.get("name")),
        to_text(f"{field}entityType", given.get("entityType")),
        to_texts(f"{field}observations", given.get("observations")),
    )


def to_edge(field: str, value: object) -> Edge:
    given = to_object(field, value)
    source, type_, target = (to_text(f"{field}{key}", given.get(key)) for key in ("from", "relationType", "to"))
    return Edge(source, type_, target)


def to_texts(field: str, value: object) -> tuple[str, ...]:
    return tuple(to_text(f"{field}[{at}]", each) for at, each in enumerate(to_list(field, value)))


def to_text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, not {_json_kind(value)}")
    return value


def to_list(field: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise InvalidInput(field, f"must be a list, not {_json_kind(value)}")
    return value


def to_object(field: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidInput(field.rstrip("."), f"must be an object, not {_json_kind(value)}")
    return value


def _json_kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
