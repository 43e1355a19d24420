"""The tools that every agent is offered: three layers, a context, remembering and forgetting."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from nacre.mcp_server.schema import listed, number, one_of, record, switch, text, whole
from nacre.mcp_server.tool import Answer, Call, Tool
from nacre.serialization import decode, encode
from nacre.types.memory import NewMemory
from nacre.types.search import SearchRequest
from nacre.types.views import ContextRequest

Asked = TypeVar("Asked", SearchRequest, ContextRequest)

_FILTERS = {"namespaces": listed(), "kinds": listed(), "tags": listed(said="all of them")}
_SESSION = text("yours, if not this connection")
_HIT = record(
    {"id": text(), "date": text(), "relevance": number(), "score": number(), "snippet": text(), "why": text()}
)


def _remember(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        **dict.fromkeys(("text", "summary", "kind", "namespace", "source", "session"), decode.text),
        "importance": decode.as_given,
        "tags": decode.texts,
        "happened": decode.moment,
    }
    given = decode.fields(call.arguments, readers, ("text",))
    new = NewMemory(**{"session": call.session, **given})
    return Answer(encode.remembered(call.memory.remember(new)))


def _in_session(request: Asked, call: Call) -> Asked:
    return replace(request, session=call.session) if request.session is None else request


def _search(call: Call) -> Answer:
    request = decode.search_request(call.arguments)
    found = call.memory.search(_in_session(request, call))
    return Answer(encode.brief(found))


def _timeline(call: Call) -> Answer:
    return Answer(encode.timeline(call.memory.timeline(decode.timeline_request(call.arguments))))


def _get(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        "ids": decode.texts,
        "neighbours": decode.as_given,
        "entities": decode.as_given,
    }
    given = decode.fields(call.arguments, readers, ("ids",))
    return Answer(encode.fetched(call.memory.get(**given, missing_ok=True, session=call.session)))


def _context(call: Call) -> Answer:
    request = decode.context_request(call.arguments)
    packed = call.memory.context(_in_session(request, call))
    return Answer(
        encode.context(packed), packed.text or "Nothing is remembered about it that you were not given already."
    )


def _forget(call: Call) -> Answer:
    ids = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))["ids"]
    call.memory.forget(ids)
    return Answer({"forgotten": list(ids)})


DEFAULT: tuple[Tool, ...] = (
    Tool(
        name="remember",
        description="Store one self-contained fact, decision, preference or event worth knowing in later sessions.",
        effect="adds",
        answer=_remember,
        input=record(
            {
                "text": text(),
                "summary": text("one line"),
                "namespace": text("decisions, learnings, patterns, config, people, ..."),
                "kind": text("note, fact, episode, ..."),
                "tags": listed(),
                "source": text(),
                "happened": text("when, if not now"),
                "importance": number("0-1"),
                "session": _SESSION,
            },
            ("text",),
        ),
        output=record({"id": text(), "duplicate": switch(), "recalled": listed()}, ("id",)),
    ),
    Tool(
        name="search_memories",
        description=(
            "Find memories by words and meaning: snippets, best first; read them whole with get_memories. The query "
            'may hold "phrases", -word, tag:x, ns:x, kind:x, entity:x, since:7d, until:2026-03.'
        ),
        effect="reads",
        answer=_search,
        input=record(
            {
                "query": text(),
                "limit": whole(),
                "mode": one_of("hybrid", "keyword", "semantic"),
                "min_score": number("least relevance, 0-1"),
                "omit_delivered": switch("only what this session was not told yet"),
                "as_of": text("answer as of then"),
                "lens": text(),
                "session": _SESSION,
                **_FILTERS,
            },
            ("query",),
        ),
        output=record({"hits": listed(_HIT), "notes": listed()}, ("hits",)),
    ),
    Tool(
        name="timeline",
        description="What was remembered when: a line each, newest first. Look here before searching for recent work.",
        effect="reads",
        answer=_timeline,
        input=record(
            {
                "start": text("7d, yesterday, 2026-03-01, ..."),
                "end": text(),
                "around": text("id: what came before and after it"),
                "span": whole("how many on each side of it"),
                "sessions": listed(),
                "limit": whole(),
                "oldest_first": switch(),
                "cursor": text("`next` of the page before"),
                "histogram": one_of("day", "week", "month"),
                **_FILTERS,
            }
        ),
        output=record({"entries": listed(record())}, ("entries",)),
    ),
    Tool(
        name="get_memories",
        description="Full texts by id, with their facts.",
        effect="reads",
        answer=_get,
        input=record(
            {
                "ids": listed(),
                "neighbours": whole("also the lines before and after in its session, so many"),
                "entities": switch(),
            },
            ("ids",),
        ),
        output=record({"memories": listed(record()), "missing": listed()}, ("memories",)),
    ),
    Tool(
        name="context",
        description=(
            "What is known about a question or task, packed into a token budget, without what this session was given "
            "already. Call it first when you begin a task."
        ),
        effect="reads",
        answer=_context,
        input=record(
            {
                "query": text(),
                "budget_tokens": whole(),
                "repeat": switch("also what was given before"),
                "min_score": number(),
                "as_of": text(),
                "session": _SESSION,
                **_FILTERS,
            },
            ("query",),
        ),
        output=record({"text": text(), "tokens": whole(), "left_out": listed(record())}, ("text",)),
    ),
    Tool(
        name="forget",
        description="Hide memories that are wrong or obsolete. People can restore them.",
        effect="changes",
        answer=_forget,
        input=record({"ids": listed()}, ("ids",)),
        output=record({"forgotten": listed()}, ("forgotten",)),
    ),
)
