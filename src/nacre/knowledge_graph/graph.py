"""The knowledge graph of the MCP reference memory server, stored as memories.

Each entity, observation and relation is one memory. So agents that write at the same time do not overwrite each other,
and every search covers the graph. The metadata has the exact strings and is authoritative; the texts are for people
and for search. Items are unique: an entity by its name, an observation by entity and content, a relation by its three
strings. Deleting an item forgets its memory.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from nacre.analysis.private import PRIVATE_ONLY
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.knowledge_graph.model import (
    Edge,
    EntityItem,
    Graph,
    Item,
    Node,
    ObservationItem,
    Observations,
    edge_json,
    identity,
    identity_digest,
    item_of,
    items_by_id,
    items_in,
    new_memory,
    validate,
)
from nacre.runtime import forks
from nacre.types.memory import Memory
from nacre.types.search import Filter, Hit
from nacre.validation import LIMITS, storable

Element = TypeVar("Element", Node, Edge, Observations)

_PAGE = LIMITS.results_max
_FEW = 12  # lookups; for more it is faster to read the whole graph
_BATCH = 512
_KINDS = ("entity", "observation", "relation")
_HITS = 20  # of a search for entities
# The least relevance of what is found beyond the reference server's matches, with a word of the query and without.
# A client of that server expects nothing where nothing matches, so these are stricter than `answerable`.
_WORDED_FROM = 0.1
_UNWORDED_FROM = 0.35


class EntityNotFound(NotFound):
    """Observations were given for an unknown entity. The message is that of the reference server."""

    def __init__(self, name: str) -> None:
        super().__init__((name,), what="entity")

    def __str__(self) -> str:
        return f"Entity with name {self.ids[0]} not found"


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """How many items were added, and how many existed already."""

    entities: int = 0
    observations: int = 0
    relations: int = 0
    already: int = 0


class _Times:
    """Strictly increasing times, so that items are read in the order in which they were added, within a call and
    between calls in the same tick of the clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = datetime.min.replace(tzinfo=UTC)
        forks.renew_in_child(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def next(self, count: int) -> list[datetime]:
        with self._lock:
            first = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
            moments = [first + timedelta(microseconds=at) for at in range(count)]
            self._last = moments[-1] if moments else self._last
        return moments


_TIMES = _Times()


# ---------------------------------------------------------------- operations


class KnowledgeGraph:
    """The operations of the reference server on the memories of one space.

    Strings are screened before they are compared with what is stored, because that was screened, too. `notes` say what
    was found in them.
    """

    def __init__(self, memory: Nacre) -> None:
        self._memory = memory
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def create_entities(self, given: Sequence[Node]) -> list[Node]:
        """Add entities with their observations. Returns those whose names were not taken."""
        nodes = list(map(self.screened, given))
        found = self._found(("entity",), [{"entity": node.name} for node in nodes])
        taken = {item.name for item in found.values() if isinstance(item, EntityItem)}
        new: dict[str, Node] = {}
        for node in nodes:
            if node.name not in taken:
                validate(node)
                new.setdefault(node.name, Node(node.name, node.type, tuple(dict.fromkeys(node.observations))))
        self._store([item for node in new.values() for item in items_in(node)])
        return list(new.values())

    def create_relations(self, given: Sequence[Edge]) -> list[Edge]:
        """Add relations. Returns the new ones."""
        edges = list(map(self.screened, given))
        known = set(self._found(("relation",), [edge_json(edge) for edge in edges]).values())
        new = [edge for edge in dict.fromkeys(edges) if edge not in known]
        for edge in new:
            validate(edge)
        self._store(new)
        return new

    def add_observations(self, given: Sequence[Observations]) -> list[Observations]:
        """Add observations to entities. Returns the new ones. If an entity is unknown, nothing is added."""
        additions = list(map(self.screened, given))
        known = set(self._found(("entity", "observation"), [{"entity": each.name} for each in additions]).values())
        names = {item.name for item in known if isinstance(item, EntityItem)}
        added = []
        for each in additions:
            if each.name not in names:
                raise EntityNotFound(each.name)
            validate(each)
            new = [
                content for content in dict.fromkeys(each.contents) if ObservationItem(each.name, content) not in known
            ]
            known.update(ObservationItem(each.name, content) for content in new)
            added.append(Observations(each.name, tuple(new)))
        self._store([ObservationItem(each.name, content) for each in added for content in each.contents])
        return added

    def delete_entities(self, names: Sequence[str]) -> None:
        """Delete entities with their observations, and all relations from or to these names."""
        unwanted = set(names)
        found = {
            each: item for each, item in self._found(_KINDS, _metadata_naming(names)).items() if _names(item) & unwanted
        }
        # Entities go last, so that an interruption leaves no observation without its entity.
        self._forget(sorted(found, key=lambda each: isinstance(found[each], EntityItem)))

    def delete_observations(self, deletions: Sequence[Observations]) -> None:
        """Delete observations. Unknown ones are ignored."""
        stored = map(self._as_stored, deletions)
        unwanted = {ObservationItem(each.name, content) for each in stored for content in each.contents}
        found = self._found(("observation",), [{"entity": each.name} for each in deletions])
        self._forget([memory_id for memory_id, item in found.items() if item in unwanted])

    def delete_relations(self, edges: Sequence[Edge]) -> None:
        """Delete relations. Unknown ones are ignored."""
        unwanted = set(map(self._as_stored, edges))
        found = self._found(("relation",), [edge_json(edge) for edge in unwanted])
        self._forget([memory_id for memory_id, item in found.items() if item in unwanted])

    def read(self) -> Graph:
        """The whole graph: entities, observations and relations in the order in which they were added."""
        return _graph(self._all().values())

    def search(self, query: str) -> Graph:
        """Entities that match a query, and their relations.

        First those with the query in their name, type or an observation, ignoring case: what the reference server
        finds, in its order. Then those that a search of their memories finds relevant, the best first.
        """
        wanted = query.lower()
        graph = self.read()
        exact = _subgraph(graph, [node for node in graph.nodes if any(wanted in each.lower() for each in _texts(node))])
        known = {node.name for node in exact.nodes}
        by_name = {node.name: node for node in graph.nodes if node.name not in known}
        more = _subgraph(graph, [by_name[name] for name in self._relevant(query, graph) if name in by_name])
        return Graph((*exact.nodes, *more.nodes), tuple(dict.fromkeys((*exact.edges, *more.edges))))

    def open(self, names: Sequence[str]) -> Graph:
        """Entities with these names, and their relations."""
        wanted = set(names)
        graph = _graph(self._found(_KINDS, _metadata_naming(names)).values())
        return _subgraph(graph, [node for node in graph.nodes if node.name in wanted])

    def merge(self, several: Iterable[Node | Edge], *, dry_run: bool = False) -> Iterator[MergeCounts]:
        """Add the items that do not exist yet. Yields the counts so far after each batch.

        Observations of an existing entity are added to it. A dry run only counts. The items must be valid and screened.
        """
        stored = map(item_of, self._memory.every(Filter(kinds=_KINDS)))
        known = {identity_digest(item) for item in stored if item is not None}
        counts: Counter[str] = Counter()
        items = (item for each in several for item in items_in(each))
        while batch := list(islice(items, _BATCH)):
            new = []
            for item in batch:
                if (digest := identity_digest(item)) not in known:
                    known.add(digest)
                    new.append(item)
            fresh = [True] * len(new) if dry_run else self._store(new)
            counts.update(identity(item)[0] for item, is_new in zip(new, fresh, strict=True) if is_new)
            counts["already"] += len(batch) - sum(fresh)
            yield MergeCounts(counts["entity"], counts["observation"], counts["relation"], counts["already"])

    def screened(self, given: Element) -> Element:
        """An entity, a relation or observations as they may be stored. Private observations are left out."""
        match given:
            case Node(name, type_, observations):
                kept = self._name("name", name)
                return replace(
                    given,
                    name=kept,
                    type=self._screen("entityType", type_),
                    observations=self._contents(kept, observations),
                )
            case Observations(name, contents):
                kept = self._name("entityName", name)
                return replace(given, name=kept, contents=self._contents(kept, contents))
            case _:
                source, target = self._name("from", given.source), given.target
                type_ = self._name("relationType", given.type)
                return replace(given, source=source, type=type_, target=self._name("to", target, f"{source} {type_}"))

    # ---- inside

    def _as_stored(self, given: Element) -> Element:
        """What an item that was given before is stored as. One that is refused was never stored."""
        try:
            return self.screened(given)
        except InvalidInput:
            return given

    def _name(self, field: str, text: str, value_of: str = "") -> str:
        kept = self._screen(field, text, value_of)
        if text and not kept:
            raise InvalidInput(field, PRIVATE_ONLY)
        return kept

    def _contents(self, name: str, contents: Sequence[str]) -> tuple[str, ...]:
        kept = ((content, self._screen("observation", content, name)) for content in contents)
        return tuple(each for content, each in kept if each or not content)

    def _screen(self, field: str, text: str, value_of: str = "") -> str:
        kept, notes = self._memory.screen(text, value_of)
        self._notes |= dict.fromkeys(f"{field}{note.removeprefix('text')}" for note in notes)
        return kept

    def _relevant(self, query: str, graph: Graph) -> list[str]:
        """The names in items of a graph that are likely to answer a query, the best first."""
        if not query.strip():
            return []
        try:
            found = self._memory.search(query, where=Filter(kinds=_KINDS), lens="none", limit=_HITS, collapse=False)
        except InvalidInput:  # too long for a search, or with characters that no text has
            return []
        # A memory may be a second entity of one name, or an observation of none.
        stated: set[Item] = {*graph.edges, *(item for node in graph.nodes for item in items_in(node))}
        names: dict[str, None] = {}
        for hit in found.hits if found.answerable else ():
            item = item_of(hit.memory)
            if item in stated and (hit.relevance or 0.0) >= _least_relevance(item, hit):
                names |= dict.fromkeys((item.source, item.target) if isinstance(item, Edge) else (item.name,))
        return list(names)

    def _store(self, items: Sequence[Item]) -> list[bool]:
        """Store items as memories. Returns for each whether it is new."""
        times = _TIMES.next(len(items))
        memories = [replace(new_memory(item), created=time) for item, time in zip(items, times, strict=True)]
        return [not receipt.duplicate for receipt in self._memory.remember_many(memories)]

    def _found(self, kinds: Sequence[str], wanted: Sequence[Mapping[str, str]]) -> dict[str, Item]:
        """Items by the ids of their memories, the oldest first: those with this metadata, and possibly others."""
        possible = [each for each in wanted if all(map(storable, each.values()))]
        if len(possible) > _FEW:
            return self._all(kinds)
        filters = [Filter(kinds=kinds, metadata=each) for each in possible]
        memories = {found.id: found for where in filters for found in self._memory.every(where)}
        return items_by_id(sorted(memories.values(), key=lambda memory: (memory.created, memory.id)))

    def _all(self, kinds: Sequence[str] = _KINDS) -> dict[str, Item]:
        return items_by_id(self._memory.every(Filter(kinds=kinds)))

    def _full(self, ids: Sequence[str]) -> list[Memory]:
        """The memories with these ids, without those that were purged in the meantime."""
        return [memory for some in _slices(ids) for memory in self._memory.get(some, missing_ok=True)]

    def _forget(self, ids: Sequence[str]) -> None:
        for some in _slices(ids):
            self._memory.forget(some, missing_ok=True)  # another process may purge some in the meantime


def _slices(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[at : at + _PAGE] for at in range(0, len(ids), _PAGE))


def _least_relevance(item: Item, hit: Hit) -> float:
    """From which relevance on an item answers. A name and a type without a word of the query say nothing."""
    if any(reason.signal == "lexical" for reason in hit.reasons):
        return _WORDED_FROM
    return math.inf if isinstance(item, EntityItem) else _UNWORDED_FROM


# ---------------------------------------------------------------- parts of a graph


def _graph(items: Iterable[Item]) -> Graph:
    """The graph of these items. Of several entities with one name, the first counts; orphaned observations do not."""
    types: dict[str, str] = {}
    observed: dict[str, dict[str, None]] = {}
    edges: dict[Edge, None] = {}
    for item in items:
        match item:
            case EntityItem(name, type_):
                types.setdefault(name, type_)
            case ObservationItem(name, content):
                observed.setdefault(name, {})[content] = None
            case Edge():
                edges[item] = None
    nodes = (Node(name, type_, tuple(observed.get(name, ()))) for name, type_ in types.items())
    return Graph(tuple(nodes), tuple(edges))


def _subgraph(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """These entities, and every relation from or to one of them."""
    names = {node.name for node in nodes}
    return Graph(tuple(nodes), tuple(edge for edge in graph.edges if edge.source in names or edge.target in names))


def _texts(node: Node) -> tuple[str, ...]:
    return node.name, node.type, *node.observations


def _names(item: Item) -> set[str]:
    return {item.source, item.target} if isinstance(item, Edge) else {item.name}


def _metadata_naming(names: Sequence[str]) -> list[dict[str, str]]:
    """The metadata of every item that has one of these names."""
    return [{key: name} for name in names for key in ("entity", "from", "to")]
