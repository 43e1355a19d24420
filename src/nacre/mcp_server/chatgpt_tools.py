"""The two tools that ChatGPT asks of a server: `search` finds memories, `fetch` returns one, both with a URL to cite.

ChatGPT's connectors and its deep research require these names, one text as input, and the same JSON as structured
content and as one text.
"""

from __future__ import annotations

from nacre.analysis import highlight
from nacre.mcp_server.json_schema import array, closed, mapping, obj, string
from nacre.mcp_server.tool import Answer, Call, Tool
from nacre.serialization import decode, encode
from nacre.types.memory import Json, Memory

URI = "nacre://memory/"  # the resource that has the memory


def _search(call: Call) -> Answer:
    query = decode.fields(call.arguments, {"query": decode.text}, ("query",))["query"]
    found = call.memory.search(query, origin=call.session)
    return Answer({"results": [_listed(hit.memory) for hit in found.hits]}, meta={"receipt": found.receipt})


def _fetch(call: Call) -> Answer:
    memory_id = decode.fields(call.arguments, {"id": decode.text}, ("id",))["id"]
    (found,) = call.memory.get(memory_id.removeprefix(URI), session=call.session)
    metadata: dict[str, Json] = {
        "created": encode.moment(found.created),
        "happened": None if found.happened is None else encode.moment(found.happened),
        "kind": found.kind,
        "namespace": found.namespace,
        "tags": ", ".join(found.tags),
        "source": found.source,
    }
    known: dict[str, Json] = {name: value for name, value in metadata.items() if value}
    return Answer({**_listed(found), "text": found.text, "metadata": known})


def _listed(memory: Memory) -> dict[str, Json]:
    title = memory.summary or highlight.summary(memory.text)
    return {"id": memory.id, "title": title, "url": f"{URI}{memory.id}"}


_LISTED = {"id": string(), "title": string(), "url": string()}

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="search",
        title="Search memories",
        description=(
            "Search the user's long-term memory: facts, decisions, preferences and events from earlier conversations. "
            "Finds by words and by meaning, best first. Give a question or keywords; fetch returns the full text."
        ),
        effect="reads",
        repeatable=False,
        answer=_search,
        input=closed({"query": string("a question or keywords")}, ("query",)),
        output=obj({"results": array(obj(_LISTED, tuple(_LISTED)))}, ("results",)),
    ),
    Tool(
        name="fetch",
        title="Fetch a memory",
        description="Get one memory in full by the id that search returned.",
        effect="reads",
        repeatable=False,
        answer=_fetch,
        input=closed({"id": string("an id that search returned")}, ("id",)),
        output=obj({**_LISTED, "text": string(), "metadata": mapping(string())}, (*_LISTED, "text")),
    ),
)
