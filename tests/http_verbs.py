"""One call of each verb over HTTP, on a store that has something for each. A new verb fails until it is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import nacre
from http_calls import Called
from nacre import Filter, Lens, NewEntity, NewFact, NewMemory
from nacre.serialization.routes import ROUTES, Route
from nacre.types.transfer import Record

OF_THE_STORE = frozenset({"stats", "check", "rebuild", "reembed", "backup", "tokens", "create_token", "revoke_token"})


@dataclass(frozen=True)
class World:
    """What stands in a space. Every text and name of it has `word`."""

    space: str
    word: str
    memory: str
    newer: str  # it updates the memory
    forgotten: str
    fact: str
    token: str
    receipt: str
    root: nacre.Nacre  # that sees all spaces

    def records(self) -> list[Record]:
        """An export of the space."""
        return list(self.root.export(where=Filter(spaces=(self.space,))))


def made(root: nacre.Nacre, space: str, word: str) -> World:
    """A space with something for every verb."""
    with root.within(space, confined=False) as memory:
        about = NewFact(subject=f"{word} door", predicate="colour", object=f"{word} red")
        first = memory.remember(
            NewMemory(
                text=f"The {word} door was painted red by Anna",
                facts=[about],
                entities=[NewEntity(name=f"{word} Anna", aliases=[f"{word} A."])],
                tags=[f"{word}-tag"],
                source=f"{word}.md",
                session=f"{word}-session",
                position=1,
                key=f"{word}-key",
            )
        )
        newer = memory.remember(f"The {word} door is blue now", supersedes=first.id)
        forgotten = memory.remember(f"The {word} window was closed")
        memory.forget(forgotten.id)
        memory.save_lens(Lens(name=f"{word}-lens", questions=(f"{word} door",)))
        receipt = memory.search(f"{word} door", session=f"{word}-session").receipt
        assert receipt is not None
        fact = memory.facts(memory_id=first.id)[0].fact.id
        token = root.create_token(f"{word} token", role="read", spaces=[space]).token.id
        return World(space, word, first.id, newer.id, forgotten.id, fact, token, receipt, root)


def calls(of: World) -> dict[str, dict[str, Any]]:
    """The arguments of a call of each verb, as JSON. Each does something, if it is carried out first."""
    word, memory = of.word, of.memory
    fact = {"subject": f"{word} roof", "predicate": "made of", "object": f"{word} tin"}
    return {
        "remember": {"text": f"a new {word} memory"},
        "remember_many": {"items": [f"a new {word} memory", {"text": f"another {word} memory"}]},
        "remember_batches": {"items": [f"a new {word} memory", {"text": f"another {word} memory"}]},
        "get": {"ids": [memory]},
        "every": {"where": {"tags_all": [f"{word}-tag"]}},
        "forget": {"ids": [memory]},
        "restore": {"ids": [of.forgotten]},
        "purge": {"ids": [of.forgotten]},
        "update": {"memory_id": memory, "summary": f"a {word} summary"},
        "history": {"memory_id": memory},
        "similar": {"memory_id": memory},
        "separate": {"memory_id": memory},
        "related": {"memory_id": memory},
        "add_facts": {"memory_id": memory, "facts": [fact]},
        "search": {"query": f"{word} door"},
        "why": {"query": f"{word} door", "memory_id": memory},
        "why_not": {"query": f"{word} door", "memory_id": memory},
        "facets": {"query": f"{word} door"},
        "context": {"query": f"{word} door"},
        "timeline": {"limit": 10},
        "count_tokens": {"text": f"{word} door"},
        "screen": {"text": f"{word} door"},
        "audit": {},
        "facts": {"memory_id": memory},
        "state_fact": {"fact": fact, "memory_id": memory},
        "drop_facts": {"ids": [of.fact]},
        "reinforce": {"ids": [of.fact]},
        "stale": {},
        "conflicts": {},
        "unlink": {"newer": of.newer, "older": memory},
        "entities": {"names": [f"{word} Anna"]},
        "add_entity": {"name": f"{word} Bo", "memory_ids": [memory]},
        "entity_counts": {},
        "drop_entity": {"name": f"{word} Anna"},
        "related_entities": {"name": f"{word} Anna"},
        "receipts": {"memory_id": memory},
        "clear_log": {"session": f"{word}-session"},
        "mark": {"ids": [memory], "outcome": "used", "receipt": of.receipt},
        "lenses": {},
        "save_lens": {"lens": {"name": f"{word}-new-lens", "questions": [f"{word} door"]}},
        "lens": {"name": f"{word}-lens"},
        "drop_lens": {"name": f"{word}-lens"},
        "changes": {"since": 0},
        "export": {},
        "load": {"records": of.records},
        "stats": {},
        "check": {},
        "rebuild": {},
        "reembed": {},
        "backup": {"to": f"{word}.db"},
        "tokens": {},
        "create_token": {"name": f"new {word} token", "spaces": [of.space]},
        "revoke_token": {"token_id": of.token},
    }


def call(verb: str, of: World) -> Called:
    """One call of a verb."""
    given = calls(of)
    assert given.keys() == ROUTES.keys(), "add a call of the new verb"
    return Called(verb, {name: each() if callable(each) else each for name, each in given[verb].items()})


def methods(route: Route) -> tuple[str, ...]:
    """Every way that a verb can be asked."""
    return (route.method, "POST") if route.posts else (route.method,)
