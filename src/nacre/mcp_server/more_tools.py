"""The tools that are offered to who asks for them, by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nacre.mcp_server.schema import listed, number, one_of, record, switch, text, whole
from nacre.mcp_server.tool import Answer, Call, Effect, Tool
from nacre.query import lenses
from nacre.serialization import decode, encode
from nacre.types.memory import Changes, Json, NewMemory, Progress
from nacre.types.recall_log import Receipt

# ---------------------------------------------------------------- facts


def _facts(call: Call) -> Answer:
    readers: dict[str, decode.Reader] = {
        **dict.fromkeys(("subject", "predicate", "object", "type", "memory_id"), decode.text),
        **dict.fromkeys(("relations", "history", "limit"), decode.as_given),
        "as_of": decode.moment,
    }
    given = decode.fields(call.arguments, readers)
    return Answer({"facts": [encode.belief(each) for each in call.memory.facts(**given)]})


def _state_fact(call: Call) -> Answer:
    given = dict(call.arguments)
    memory_id = given.pop("memory_id", None)
    memory_id = None if memory_id is None else decode.text("memory_id", memory_id)
    new = decode.new_fact("fact", given)
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


# ---------------------------------------------------------------- the log, lenses, why


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


# ---------------------------------------------------------------- more of memories


def _remember_many(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"memories": decode.as_given}, ("memories",))["memories"]
    if not isinstance(given, list):
        given = [given]
    items = [_new(each, call) for each in given]
    remembered: list[Json] = []
    for batch in call.memory.remember_batches(items):
        remembered += [encode.remembered(each) for each in batch]
        call.report(Progress(len(remembered), len(items)))
    return Answer({"remembered": remembered})


def _new(given: object, call: Call) -> NewMemory:
    """A memory as `remember` takes it, times as people say them included."""
    if not isinstance(given, dict):
        return decode.new_memory(given)
    moments = {
        name: decode.moment(name, given[name]) for name in ("created", "happened") if given.get(name) is not None
    }
    return decode.new_memory(
        {"session": call.session, **given, **{name: at.isoformat() for name, at in moments.items()}}
    )


def _update(call: Call) -> Answer:
    plain = dict.fromkeys((name for name in Changes.__annotations__), decode.as_given)
    readers = {**plain, "id": decode.text, "tags": decode.texts, "happened": decode.moment}
    given = decode.fields(call.arguments, readers, ("id",))
    return Answer({"memory": encode.memory(call.memory.update(given.pop("id"), **given))})


def _related(call: Call) -> Answer:
    given = decode.fields(call.arguments, {"id": decode.text, "limit": decode.as_given}, ("id",))
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


def _tool(
    name: str, description: str, effect: Effect, answer: Any, given: Mapping[str, Any], needed: tuple[str, ...] = ()
) -> Tool:
    """What these give is told by the engine's own words, so any object may come."""
    return Tool(
        name=name,
        description=description,
        effect=effect,
        answer=answer,
        input=record(given, needed),
        output=record(),
    )


_FACT = {
    "subject": text(),
    "predicate": text(),
    "object": text(),
    "type": one_of(
        "identity", "preference", "relationship", "location", "config", "decision", "kv", "state", "temporal"
    ),
}
_IDS = {"ids": listed()}

GROUPS: Mapping[str, tuple[Tool, ...]] = {
    "facts": (
        _tool(
            "facts",
            "Facts that hold: subject, predicate, object, with how far each is believed.",
            "reads",
            _facts,
            {
                **_FACT,
                "memory_id": text(),
                "relations": switch("only between entities"),
                "history": switch("also what holds no longer"),
                "as_of": text(),
                "limit": whole(),
            },
        ),
        _tool(
            "state_fact",
            "State a fact. A newer value of the same subject and predicate ends the older one.",
            "adds",
            _state_fact,
            {
                **_FACT,
                "confidence": number("0-1"),
                "relation": switch("the object is an entity"),
                "valid_from": text("ISO 8601"),
                "valid_to": text(),
                "memory_id": text("that says it; a new one if not given"),
            },
            ("subject", "predicate", "object"),
        ),
        _tool(
            "reinforce",
            "Say that facts still hold, by their ids or their memories'.",
            "adds",
            _reinforce,
            _IDS,
            ("ids",),
        ),
        _tool("drop_facts", "Delete facts by id. Their memories stay.", "changes", _drop_facts, _IDS, ("ids",)),
        _tool(
            "conflicts", "Facts that disagree, and facts that nobody has confirmed for long.", "reads", _conflicts, {}
        ),
    ),
    "entities": (
        _tool(
            "entities",
            "Who and what memories are about, with aliases.",
            "reads",
            _entities,
            {"names": listed(), "limit": whole()},
        ),
        _tool(
            "related_entities",
            "Entities that relations lead to from one.",
            "reads",
            _related_entities,
            {"name": text(), "depth": whole("1-3"), "as_of": text()},
            ("name",),
        ),
        _tool(
            "add_entity",
            "Make an entity known, or more names of it, and link memories.",
            "adds",
            _add_entity,
            {"name": text(), "kind": text(), "aliases": listed(), "memory_ids": listed()},
            ("name",),
        ),
    ),
    "log": (
        _tool(
            "recall_log",
            "What searches delivered, newest first, and what became of it.",
            "reads",
            _log,
            {"memory_id": text(), "session": text(), "limit": whole(), "before": text("receipt id")},
        ),
        _tool(
            "mark",
            "Say what became of memories that were found: useful ones rise a little, wrong ones sink.",
            "adds",
            _mark,
            {**_IDS, "outcome": one_of("used", "wrong", "opened"), "receipt": text()},
            ("ids", "outcome"),
        ),
    ),
    "lenses": (
        _tool("lenses", "Named presets of a search.", "reads", _lenses, {}),
        _tool(
            "save_lens",
            "Save a preset of a search under a name.",
            "changes",
            _save_lens,
            {"name": text(), "description": text(), "where": record(), "recipe": record(), "questions": listed()},
            ("name",),
        ),
    ),
    "why": (
        _tool(
            "why",
            "Why a memory was found by a search, with every number, or what left it out and what would bring it in.",
            "reads",
            _why,
            {"id": text(), "query": text(), "mode": one_of("hybrid", "keyword", "semantic"), "limit": whole()},
            ("id", "query"),
        ),
    ),
    "more": (
        _tool(
            "remember_many",
            "Store many memories at once.",
            "adds",
            _remember_many,
            {"memories": listed(record({"text": text()}, ("text",)), "objects as `remember` takes them")},
            ("memories",),
        ),
        _tool(
            "update_memory",
            "Change fields of a memory; what they were is kept.",
            "changes",
            _update,
            {
                "id": text(),
                "text": text(),
                "summary": text(),
                "kind": text(),
                "namespace": text(),
                "tags": listed(),
                "source": text(),
                "importance": number(),
                "happened": text(),
            },
            ("id",),
        ),
        _tool("related", "Memories like one.", "reads", _related, {"id": text(), "limit": whole()}, ("id",)),
        _tool("facets", "Counts of all memories, or of a query's matches.", "reads", _facets, {"query": text()}),
        _tool("restore", "Bring forgotten memories back.", "adds", _restore, _IDS, ("ids",)),
        _tool("history", "What happened to a memory.", "reads", _history, {"id": text()}, ("id",)),
    ),
}
