"""Resources that a client reads by URI: an overview, one memory, and lists of memories by tag, entity and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from nacre.analysis import highlight
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NotFound
from nacre.query import lenses
from nacre.query.filters import quoted
from nacre.serialization import encode
from nacre.types.memory import Json
from nacre.types.search import Filter

JSON = "application/json"
OVERVIEW = "nacre://overview"
_RECENT = 10
LINES_MAX = 50  # of a list of memories

LISTED: list[dict[str, Any]] = [
    {
        "uri": OVERVIEW,
        "name": "overview",
        "description": "Counts of memories by kind, namespace, tag and month, and the newest ones.",
        "mime_type": JSON,
    }
]


def _template(name: str, variable: str, description: str) -> dict[str, Any]:
    uri = f"nacre://{name}/{{{variable}}}"
    return {"uri_template": uri, "name": name, "description": description, "mime_type": JSON}


_LINES = f"one line each, newest first, at most {LINES_MAX}"
TEMPLATES: list[dict[str, Any]] = [
    _template("memory", "id", "One memory in full."),
    _template("tag", "tag", f"Memories with a tag, {_LINES}."),
    _template("namespace", "namespace", f"Memories of a namespace, {_LINES}."),
    _template("entity", "name", f"An entity, and memories about it, {_LINES}."),
    _template("lens", "name", f"A lens, and the memories that its filter leaves, {_LINES}."),
    _template("space", "space", "The overview of the one space that this connection can see, by its name."),
]


def read(memory: Nacre, space: str, uri: str) -> Json:
    """What a URI names. `space` is the one that the engine is confined to."""
    if uri == OVERVIEW:
        return _overview(memory)
    name, _, value = uri.removeprefix("nacre://").partition("/")
    if not uri.startswith("nacre://") or name not in _READERS:
        allowed = [OVERVIEW, *(each["uri_template"] for each in TEMPLATES)]
        raise NotFound((uri,), f"allowed: {', '.join(allowed)}", what="resource")
    try:
        found = _READERS[name](memory, space, unquote(value))
    except InvalidInput:  # no name that anything could have
        found = None
    if found is None:
        raise NotFound((uri,), _HINTS[name], what="resource")
    return found


def _overview(memory: Nacre) -> dict[str, Json]:
    return encode.facets(memory.facets()) | {"newest": encode.timeline(memory.timeline(limit=_RECENT))["entries"]}


def _memory(memory: Nacre, _: str, memory_id: str) -> Json:
    return next((encode.memory(each) for each in memory.get([memory_id], missing_ok=True)), None)


def _tag(memory: Nacre, _: str, tag: str) -> Json:
    lines = _lines(memory, Filter(tags_all=[tag]))
    return {"tag": tag, "memories": lines} if lines else None


def _namespace(memory: Nacre, _: str, namespace: str) -> Json:
    lines = _lines(memory, Filter(namespaces=[namespace]))
    return {"namespace": namespace, "memories": lines} if lines else None


def _entity(memory: Nacre, _: str, name: str) -> Json:
    known = memory.entities([name], limit=1)
    if not known:
        return None
    found = memory.search(f"entity:{quoted(known[0].name)}", mode="keyword", limit=LINES_MAX, rerank=False)
    lines: list[Json] = [
        {
            "id": each.memory.id,
            "created": encode.moment(each.memory.created),
            "summary": each.memory.summary or highlight.summary(each.memory.text),
        }
        for each in found.hits
    ]
    return {"entity": encode.entity(known[0]), "memories": lines}


def _lens(memory: Nacre, _: str, name: str) -> Json:
    found = next((each for each in memory.lenses() if each.name == name), None)
    return None if found is None else {"lens": lenses.to_json(found), "memories": _lines(memory, found.where)}


def _space(memory: Nacre, own: str, space: str) -> Json:
    """A space that exists and another that does not are told apart by nobody who may see neither."""
    return {"space": own, **_overview(memory)} if space == own else None


def _lines(memory: Nacre, where: Filter) -> list[Json]:
    return [
        {"id": each.id, "created": encode.moment(each.created), "summary": each.summary}
        for each in memory.timeline(where=where, limit=LINES_MAX).entries
    ]


_READERS: Mapping[str, Callable[[Nacre, str, str], Json]] = {
    "memory": _memory,
    "tag": _tag,
    "namespace": _namespace,
    "entity": _entity,
    "lens": _lens,
    "space": _space,
}
_HINTS = {
    "memory": "`search_memories` and `timeline` list ids",
    **dict.fromkeys(("tag", "namespace"), f"{OVERVIEW} lists those in use"),
    **dict.fromkeys(("entity", "lens"), "completion lists those that exist"),
    "space": "completion names the space of this connection",
}
