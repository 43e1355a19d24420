"""Nacre's own tools: the default ones, and more in groups that are offered on request.

Every tool that is offered costs tokens in each conversation, so the default ones are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_args

from nacre.analysis import quoting
from nacre.errors import InvalidInput, NacreError, NotFound
from nacre.mcp_server import chatgpt_tools, wording
from nacre.mcp_server.json_schema import Schema, array, boolean, closed, enum, integer, mapping, number, obj, of, string
from nacre.mcp_server.tool import Answer, Call, Effect, Tool
from nacre.query import lenses
from nacre.serialization import decode, encode
from nacre.types.facts import FactQuery, NewFact
from nacre.types.memory import Changes, Json, NewMemory, Progress
from nacre.types.recall_log import Outcome, Receipt
from nacre.types.search import Mode, RelatedRequest, SearchRequest
from nacre.types.views import ContextRequest, TimelineRequest

ALL = "all"  # the name of all groups together
CHATGPT = "chatgpt"  # the name of the two tools that ChatGPT asks for, which are offered alone

Asked = TypeVar("Asked", SearchRequest, ContextRequest)


def chosen(groups: str) -> Sequence[Tool]:
    """The default tools and those of the named groups, which are separated by commas; or ChatGPT's alone."""
    named = [each.strip() for each in groups.split(",") if each.strip()]
    if CHATGPT in named:
        if len(set(named)) > 1:
            raise InvalidInput("tools", f"{CHATGPT} has tools of its own and is not combined with other groups")
        return chatgpt_tools.TOOLS
    for each in named:
        if each != ALL and each not in GROUPS:
            raise InvalidInput("tools", f"{each!r} is unknown; allowed: {', '.join((*GROUPS, ALL, CHATGPT))}")
    return (*DEFAULT, *(tool for name, tools in GROUPS.items() if name in named or ALL in named for tool in tools))


# ---------------------------------------------------------------- memories, by default


def _remember(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        **dict.fromkeys(("text", "summary", "kind", "namespace", "source", "session"), decode.text),
        **dict.fromkeys(("importance", "pinned"), decode.as_given),
        "tags": decode.texts,
        "happened": decode.moment,
        "expires": decode.expiry,
        "supersedes": decode.texts,
    }
    given = decode.fields(call.arguments, readers, ("text",))
    new = NewMemory(origin=call.session, **given)
    return Answer(encode.brief_remembered(call.memory.remember(new)))


def _from_connection(request: Asked, call: Call) -> Asked:
    """The request with its connection. That is no session: the agents that share it have windows of their own."""
    return replace(request, origin=call.session)


def _search(call: Call) -> Answer:
    request = decode.search_request(call.arguments)
    found = call.memory.search(_from_connection(request, call))
    return Answer(encode.brief(found), meta={"receipt": found.receipt})


def _timeline(call: Call) -> Answer:
    page = call.memory.timeline(decode.timeline_request(call.arguments))
    return Answer(encode.brief_timeline(page, count=call.memory.count_tokens))


def _get(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        "ids": decode.texts,
        "neighbours": decode.as_given,
        "entities": decode.as_given,
        "session": decode.text,
    }
    given = {"session": call.session, **decode.fields(call.arguments, readers, ("ids",))}
    return Answer(encode.brief_fetched(call.memory.get(**given, missing_ok=True)))


def _context(call: Call) -> Answer:
    request = decode.context_request(call.arguments)
    packed = call.memory.context(_from_connection(request, call))
    text = packed.text or quoting.shortest_line(packed.outcome)  # an empty text would say nothing
    notes = [*packed.notes, *call.notes]
    encoded = encode.context(packed) | {"notes": [*notes]}
    for note in notes:  # a model reads the text alone
        noted = f"{text}\n{wording.for_agents(note, [each.name for each in DEFAULT])}"
        if call.memory.count_tokens(noted) <= request.budget_tokens:
            text = noted
    if text != packed.text:
        encoded["tokens"] = call.memory.count_tokens(text)
    return Answer({}, text, {name: value for name, value in encoded.items() if name != "text"})


def _forget(call: Call) -> Answer:
    ids = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))["ids"]
    done = call.memory.forget(ids, missing_ok=True)
    if done.missing and not done.ids:
        raise NotFound(done.missing)
    return Answer(encode.forgotten(done))


# ---------------------------------------------------------------- facts


def _facts(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        **dict.fromkeys(("subject", "predicate", "object", "type", "memory_id"), decode.text),
        **dict.fromkeys(("relations", "history", "min_confidence", "limit"), decode.as_given),
        "as_of": decode.moment,
    }
    given = decode.fields(call.arguments, readers)
    return Answer({"facts": [encode.belief(each) for each in call.memory.facts(**given)]})


def _state_fact(call: Call) -> Answer:
    given = dict(call.arguments)
    memory_id = given.pop("memory_id", None)
    memory_id = None if memory_id is None else decode.text("memory_id", memory_id)
    try:
        new = decode.new_fact("fact", given)
    except InvalidInput as error:  # the fields of the fact are arguments here
        raise InvalidInput(error.field.removeprefix("fact."), error.problem) from None
    return Answer({"facts": [encode.belief(call.memory.state_fact(new, memory_id, call.session))]})


def _reinforce(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))
    return Answer({"reinforced": call.memory.reinforce(given["ids"])})


def _drop_facts(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))
    call.memory.drop_facts(given["ids"])
    return Answer({"dropped": list(given["ids"])})


def _conflicts(call: Call) -> Answer:
    decode.fields(call.arguments, {})
    return Answer(
        {
            "conflicts": [encode.disagreement(each) for each in call.memory.conflicts()],
            "stale": [encode.belief(each) for each in call.memory.stale()],
        }
    )


# ---------------------------------------------------------------- entities


def _entities(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"names": decode.texts, "limit": decode.as_given})
    return Answer({"entities": [encode.entity(each) for each in call.memory.entities(**given)]})


def _related_entities(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {"name": decode.text, "depth": decode.as_given, "as_of": decode.moment}
    given = decode.fields(call.arguments, readers, ("name",))
    return Answer({"entities": [encode.related_entity(each) for each in call.memory.related_entities(**given)]})


def _add_entity(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        "name": decode.text,
        "kind": decode.text,
        "aliases": decode.texts,
        "memory_ids": decode.texts,
    }
    given = decode.fields(call.arguments, readers, ("name",))
    return Answer({"entity": encode.entity(call.memory.add_entity(**given))})


# ---------------------------------------------------------------- recall log, lenses, why


def _log(call: Call) -> Answer:
    names = ("memory_id", "session", "before")
    given = decode.fields(call.arguments, {**dict.fromkeys(names, decode.text), "limit": decode.as_given})
    found: list[Receipt] = call.memory.receipts(**given)
    return Answer({"receipts": [encode.receipt(each) for each in found]})


def _mark(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {"ids": decode.texts, "outcome": decode.text, "receipt": decode.text}
    given = decode.fields(call.arguments, readers, ("ids", "outcome"))
    return Answer({"marked": list(call.memory.mark(**given))})


def _lenses(call: Call) -> Answer:
    decode.fields(call.arguments, {})
    return Answer({"lenses": [lenses.to_json(each) for each in call.memory.lenses()]})


def _save_lens(call: Call) -> Answer:
    return Answer({"lens": lenses.to_json(call.memory.save_lens(lenses.from_json(dict(call.arguments))))})


def _why(call: Call) -> Answer:
    given = dict(call.arguments)
    memory_id = decode.fields({"id": given.pop("id", None)}, {"id": decode.text}, ("id",))["id"]
    return Answer(encode.why(call.memory.why(decode.search_request(given), memory_id)))


# ---------------------------------------------------------------- memories, by group


def _remember_many(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"memories": decode.as_given}, ("memories",))["memories"]
    if not isinstance(given, list):
        given = [given]
    items: dict[int, NewMemory] = {}  # by their place
    refused: dict[int, NacreError] = {}
    for at, each in enumerate(given):
        try:
            items[at] = _new(each, call)
        except InvalidInput as error:
            refused[at] = error
    places = list(items)
    remembered: list[Json] = []
    batches = call.memory.remember_batches(
        items.values(), refused=lambda number, error: refused.update({places[number - 1]: error})
    )
    for batch in batches:
        remembered += [encode.remembered(each) for each in batch]
        call.report(Progress(len(remembered), len(items)))
    problems: list[Json] = [f"memories[{at}]: {refused[at]}" for at in sorted(refused)]
    if problems and not remembered:
        raise InvalidInput("memories", "\n".join(["none was stored", *map(str, problems)]))
    done: dict[str, Json] = {"remembered": remembered}
    return Answer(done | {"refused": problems} if problems else done)


def _new(given: object, call: Call) -> NewMemory:
    """A memory as `remember` takes it, or its text alone. Times may be written as people say them."""
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, dict):
        return decode.new_memory(given)
    moments = {
        name: decode.moment(name, given[name]) for name in ("created", "happened") if given.get(name) is not None
    }
    return decode.new_memory(
        {"origin": call.session, **given, **{name: at.isoformat() for name, at in moments.items()}}
    )


def _update(call: Call) -> Answer:
    plain = dict.fromkeys((name for name in Changes.__annotations__), decode.as_given)
    readers = {**plain, "id": decode.text, "tags": decode.texts, "happened": decode.moment}
    given = decode.fields(call.arguments, readers, ("id",))
    return Answer({"memory": encode.memory(call.memory.update(given.pop("id"), **given))})


def _related(call: Call) -> Answer:
    readers = {"id": decode.text, "limit": decode.as_given, "recipe": decode.recipe}
    given = decode.fields(call.arguments, readers, ("id",))
    return Answer(encode.brief(call.memory.related(given.pop("id"), **given)))


def _facets(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"query": decode.text})
    return Answer(encode.facets(call.memory.facets(**given)))


def _restore(call: Call) -> Answer:
    ids = decode.fields(call.arguments, {"ids": decode.texts}, ("ids",))["ids"]
    call.memory.restore(ids)
    return Answer({"restored": list(ids)})


def _history(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"id": decode.text}, ("id",))
    return Answer({"events": [encode.event(each) for each in call.memory.history(given["id"])]})


# ---------------------------------------------------------------- default tools

_FILTERS: Mapping[str, Schema] = {
    "namespaces": array(),
    "kinds": array(),
    "tags": array(description="all of them"),
}
_MODE = of(SearchRequest, "mode") | {"enum": [*get_args(Mode)]}  # without the aliases, which are accepted, too
_LINES = mapping(array())
_FETCHED: Mapping[str, Schema] = {  # the fields that matter; others have the types that they have in `remember`
    **dict.fromkeys(("id", "text", "created", "kind", "namespace"), string()),
    "tags": array(),
    "facts": array(obj({"id": string(), "states": string(), "confidence": number()})),
}

DEFAULT: tuple[Tool, ...] = (
    Tool(
        name="remember",
        title="Remember",
        description="Store one self-contained fact, decision, preference or event worth knowing later.",
        effect="adds",
        answer=_remember,
        request=NewMemory,
        input=closed(
            {
                "text": string(),
                "summary": string("one line"),
                "namespace": of(NewMemory, "namespace", "or decisions, learnings, patterns, config, ..."),
                "kind": string("note, fact, preference, instruction, ..."),
                "tags": array(),
                "source": string(),
                "happened": string(),
                "expires": string("30d or a date"),
                "importance": of(NewMemory, "importance"),
                "supersedes": array(description="ids it replaces"),
                "pinned": of(NewMemory, "pinned", "keep it in every context"),
                "session": string("its conversation"),
            },
            ("text",),
        ),
    ),
    Tool(
        name="search_memories",
        title="Search memories",
        description=(
            "Find memories by words and meaning. Returns snippets, best first; get_memories has full texts. Query "
            'syntax: "phrase", -word, tag:x, ns:x, kind:x, entity:x, lang:de, since:7d, until:2026-03.'
        ),
        effect="reads",
        repeatable=False,
        answer=_search,
        text_only=True,
        request=SearchRequest,
        input=closed(
            {
                "query": string(),
                "limit": of(SearchRequest, "limit"),
                "mode": _MODE,
                "min_score": of(SearchRequest, "min_score", "least relevance"),
                "omit_delivered": of(SearchRequest, "omit_delivered", "without what was given before"),
                "as_of": string(),
                "lens": string(),
                "session": string(),
                **_FILTERS,
            },
            ("query",),
        ),
    ),
    Tool(
        name="timeline",
        title="Timeline",
        description=(
            "List memories by time, newest first: by month or year, each with day, id and summary. Use it for recent "
            "work, before searching."
        ),
        effect="reads",
        answer=_timeline,
        request=TimelineRequest,
        input=closed(
            {
                "start": string("7d, yesterday, 2026-03-01, ..."),
                "end": string(),
                "around": string("id to list neighbours of"),
                "span": of(TimelineRequest, "span", "on each side"),
                "sessions": array(),
                "limit": of(TimelineRequest, "limit"),
                "oldest_first": of(TimelineRequest, "oldest_first"),
                "cursor": string("`next` of the previous page"),
                "histogram": of(TimelineRequest, "histogram"),
                **_FILTERS,
            }
        ),
        output=obj(
            {"entries": _LINES, "next": string(), "anchor": string(), "histogram": mapping(integer())}, ("entries",)
        ),
    ),
    Tool(
        name="get_memories",
        title="Get memories",
        description="Get full texts by id, with their facts.",
        effect="reads",
        repeatable=False,
        answer=_get,
        input=closed(
            {
                "ids": array(),
                "neighbours": integer("lines around it in its session", "neighbours"),
                "entities": boolean(),
                "session": string(),
            },
            ("ids",),
        ),
        output=obj({"memories": array(obj(_FETCHED)), "missing": array()}, ("memories",)),
    ),
    Tool(
        name="context",
        title="Context",
        description=(
            "Get what is known about a question or task, within a token budget, without what the named session was "
            "given before. Call it first when you begin a task."
        ),
        effect="reads",
        repeatable=False,
        answer=_context,
        text_only=True,
        request=ContextRequest,
        input=closed(
            {
                "query": string(),
                "budget_tokens": of(ContextRequest, "budget_tokens"),
                "repeat": of(ContextRequest, "repeat", "you lost what was given before"),
                "min_score": of(ContextRequest, "min_score"),
                "as_of": string(),
                "session": string("name your conversation to get each memory once"),
                **_FILTERS,
            },
            ("query",),
        ),
    ),
    Tool(
        name="forget",
        title="Forget",
        description="Hide memories that are wrong or obsolete. People can restore them.",
        effect="changes",
        converses=True,
        answer=_forget,
        input=closed({"ids": array()}, ("ids",)),
    ),
)


# ---------------------------------------------------------------- groups of tools


def _tool(
    name: str,
    description: str,
    effect: Effect,
    answer: Any,
    given: Mapping[str, Schema],
    needed: tuple[str, ...] = (),
    *,
    repeatable: bool = True,
    converses: bool = False,
    request: type | None = None,
) -> Tool:
    return Tool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        description=description,
        effect=effect,
        answer=answer,
        input=closed(given, needed),
        repeatable=repeatable,
        converses=converses,
        request=request,
    )


_FACT: Mapping[str, Schema] = {
    "subject": string(),
    "predicate": string(),
    "object": string(),
    "type": of(FactQuery, "type"),
}
_IDS: Mapping[str, Schema] = {"ids": array()}

GROUPS: Mapping[str, tuple[Tool, ...]] = {
    "facts": (
        _tool(
            "facts",
            "List current facts: subject, predicate, object and confidence.",
            "reads",
            _facts,
            {
                **_FACT,
                "memory_id": string(),
                "relations": of(FactQuery, "relations", "only relations between entities"),
                "history": of(FactQuery, "history", "include superseded facts"),
                "min_confidence": of(FactQuery, "min_confidence", "after decay"),
                "as_of": string(),
                "limit": of(FactQuery, "limit", bounds="listed"),
            },
        ),
        _tool(
            "state_fact",
            "State a fact. A newer value of the same subject and predicate supersedes the older one.",
            "adds",
            _state_fact,
            {
                **_FACT,
                "confidence": of(NewFact, "confidence"),
                "relation": of(NewFact, "relation", "the object is an entity"),
                "valid_from": string("ISO 8601"),
                "valid_to": string(),
                "memory_id": string("its memory; default: a new one"),
            },
            ("subject", "predicate", "object"),
            repeatable=False,
            request=NewFact,
        ),
        _tool(
            "reinforce",
            "Confirm that facts still apply, by ids of facts or of memories.",
            "adds",
            _reinforce,
            _IDS,
            ("ids",),
            repeatable=False,
        ),
        _tool("drop_facts", "Delete facts by id. Their memories stay.", "changes", _drop_facts, _IDS, ("ids",)),
        _tool(
            "conflicts",
            "List facts and memories that contradict each other, and facts that were not confirmed for long.",
            "reads",
            _conflicts,
            {},
        ),
    ),
    "entities": (
        _tool(
            "entities",
            "List the entities that memories are about, with aliases.",
            "reads",
            _entities,
            {"names": array(), "limit": integer(bounds="listed")},
        ),
        _tool(
            "related_entities",
            "List entities that are connected to one by relations.",
            "reads",
            _related_entities,
            {"name": string(), "depth": integer(bounds="depth"), "as_of": string()},
            ("name",),
        ),
        _tool(
            "add_entity",
            "Add an entity or aliases of it, and link memories.",
            "adds",
            _add_entity,
            {"name": string(), "kind": string(), "aliases": array(), "memory_ids": array()},
            ("name",),
        ),
    ),
    "log": (
        _tool(
            "recall_log",
            "List what searches delivered, newest first, and how it was marked.",
            "reads",
            _log,
            {
                "memory_id": string(),
                "session": string(),
                "limit": integer(bounds="listed"),
                "before": string("receipt id"),
            },
        ),
        _tool(
            "mark",
            "Mark memories that were found as used, wrong or opened: used ones rank higher, wrong ones lower.",
            "adds",
            _mark,
            {**_IDS, "outcome": enum(*get_args(Outcome)), "receipt": string()},
            ("ids", "outcome"),
        ),
    ),
    "lenses": (
        _tool("lenses", "List the named search presets.", "reads", _lenses, {}),
        _tool(
            "save_lens",
            "Save a search preset under a name.",
            "changes",
            _save_lens,
            {"name": string(), "description": string(), "where": obj(), "recipe": obj(), "questions": array()},
            ("name",),
            request=lenses.Lens,
        ),
    ),
    "why": (
        _tool(
            "why",
            "Explain why a search found a memory, with every number, or why not and what would change that.",
            "reads",
            _why,
            {
                "id": string(),
                "query": string(),
                "mode": _MODE,
                "limit": of(SearchRequest, "limit"),
            },
            ("id", "query"),
            request=SearchRequest,
        ),
    ),
    "more": (
        _tool(
            "remember_many",
            "Store many memories at once.",
            "adds",
            _remember_many,
            {"memories": array(obj({"text": string()}, ("text",)), "each as for `remember`")},
            ("memories",),
            request=NewMemory,
            converses=True,
        ),
        _tool(
            "update_memory",
            "Change fields of a memory. The old values stay in its history.",
            "changes",
            _update,
            {
                "id": string(),
                "text": string(),
                "summary": string(),
                "kind": string(),
                "namespace": string(),
                "tags": array(),
                "source": string(),
                "importance": number(),
                "pinned": boolean(),
                "happened": string(),
                "language": string(),
            },
            ("id",),
            request=NewMemory,
        ),
        _tool(
            "related",
            "Find memories similar to one.",
            "reads",
            _related,
            {"id": string(), "limit": of(RelatedRequest, "limit")},
            ("id",),
            request=RelatedRequest,
        ),
        _tool(
            "facets",
            "Count all memories, or the matches of a query, by kind, namespace, tag and more.",
            "reads",
            _facets,
            {"query": string()},
        ),
        _tool("restore", "Restore forgotten memories.", "adds", _restore, _IDS, ("ids",)),
        _tool("history", "List the changes to a memory.", "reads", _history, {"id": string()}, ("id",)),
    ),
}
