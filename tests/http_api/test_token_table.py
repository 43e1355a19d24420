"""Every verb with every role, in the token's own space and in a foreign one: what is allowed, and what is told."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest

import nacre
from http_calls import Called, send
from http_verbs import OF_THE_STORE, World, call, made, methods
from nacre.http_api.verbs import verbs
from nacre.serialization.routes import ROUTES
from nacre.types.access_tokens import ROLES
from servers import ThreadServer, error_of, serving

HIDDEN: Final = "xyzzyhidden"  # in every text, name, tag, key, source and session of the foreign space
ALLOWED: Final = (200, 204)

pytestmark = pytest.mark.slow


class Table:
    def __init__(self, server: ThreadServer) -> None:
        self.server = server
        self.root = server.root
        self.foreign = made(self.root, "foreign", HIDDEN)
        self.clients = {
            (role, spaces): server.client(
                server.token(role, spaces), **({"Nacre-Space": "own"} if spaces is None else {})
            )
            for role in ROLES
            for spaces in (("own",), ("own", "own too"), None)
        }
        self._numbers = itertools.count()
        self.unchanged = made(self.root, "own", "plain")

    def own(self, verb: str) -> World:
        """Something for a verb in the space of the tokens, which no call has changed."""
        return self.unchanged if ROUTES[verb].safe else made(self.root, "own", f"plain{next(self._numbers)}")

    def stored(self) -> Any:
        """All of the foreign space but the moment of asking."""
        with self.root.within("foreign") as memory:
            _, *records = memory.export(vectors=True)
            return records, memory.receipts(), memory.lenses()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    folder = tmp_path_factory.mktemp("table")
    with serving(folder / "memories.db", token_needed=True, backups=folder / "backups") as server:
        table = Table(server)
        with contextlib.ExitStack() as stack:
            for each in table.clients.values():
                stack.enter_context(each)
            yield table


def check_told(answer: httpx.Response) -> None:
    """Nothing of the foreign space is told."""
    assert HIDDEN not in answer.text
    assert HIDDEN not in repr(answer.headers)


@pytest.mark.parametrize("verb", ROUTES)
def test_a_verb_is_for_those_whose_token_allows_it(table: Table, verb: str) -> None:
    needed, before = ROLES.index(ROUTES[verb].role), table.stored()
    for spaces in (("own",), None):
        for role in ROLES:
            client = table.clients[role, spaces]
            called = call(verb, table.own(verb) if ROLES.index(role) >= needed else table.unchanged)
            for method in methods(ROUTES[verb]):
                answer = send(client, called, method)
                if ROLES.index(role) < needed:
                    assert "needs a token of the role" in error_of(answer, 403)["message"], (role, method)
                elif spaces is not None and verb in OF_THE_STORE - {"rebuild", "reembed"}:
                    assert "all spaces" in error_of(answer, 403)["message"], (role, method)
                else:
                    assert answer.status_code in ALLOWED, (role, method, answer.text)
                if spaces is not None:
                    check_told(answer)
    assert table.stored() == before


@pytest.mark.parametrize("verb", ROUTES)
def test_a_foreign_space_cannot_be_named(table: Table, verb: str) -> None:
    """In the header, in the arguments, in a filter and in a query."""
    before = table.stored()
    for role in ROLES:
        check_not_named(table, table.clients[role, ("own",)], verb)
    assert table.stored() == before


def check_not_named(table: Table, client: httpx.Client, verb: str) -> None:
    given = call(verb, table.own(verb)).given
    known = verbs()[verb].known
    answers = [send_with(client, Called(verb, given), {"Nacre-Space": "foreign"})]
    if "space" in known:
        answers.append(send(client, Called(verb, {**given, "space": "foreign"})))
    if "spaces" in known and verb != "create_token":
        answers.append(send(client, Called(verb, {**given, "spaces": ["foreign"]})))
        answers.append(send(client, Called(verb, {**given, "spaces": ["own", "foreign"]})))
    if "where" in known:
        answers.append(send(client, Called(verb, {**given, "where": {"spaces": ["foreign"]}})))
    for answer in answers:
        error_of(answer, 403)
        check_told(answer)
    if "query" in known:
        answer = send(client, Called(verb, {**given, "query": f"space:foreign {HIDDEN}"}))
        check_nothing_found(answer)


def send_with(client: httpx.Client, called: Called, headers: dict[str, str]) -> httpx.Response:
    with httpx.Client(
        base_url=client.base_url, headers={**client.headers, **headers}, timeout=client.timeout, trust_env=False
    ) as other:
        return send(other, called)


def check_nothing_found(answer: httpx.Response) -> None:
    """The word of the query may be repeated in what is told of it, and nothing else."""
    body = answer.json()
    assert answer.status_code in (200, 403, 404), answer.text
    for name in ("hits", "quoted"):
        assert body.get(name, []) == []
    assert "painted" not in answer.text
    assert "blue" not in answer.text


UNKNOWN: Final = "1m00000000000000"  # an id that nothing has
BY_ID: Final[dict[str, Callable[[World, str], dict[str, Any]]]] = {
    "get": lambda _, each: {"ids": [each]},
    "forget": lambda _, each: {"ids": [each]},
    "restore": lambda _, each: {"ids": [each]},
    "purge": lambda _, each: {"ids": [each]},
    "update": lambda _, each: {"memory_id": each, "text": "changed"},
    "history": lambda _, each: {"memory_id": each},
    "similar": lambda _, each: {"memory_id": each},
    "separate": lambda _, each: {"memory_id": each},
    "related": lambda _, each: {"memory_id": each},
    "add_facts": lambda _, each: {
        "memory_id": each,
        "facts": [{"subject": "a", "predicate": "b", "object": "c"}],
    },
    "why": lambda _, each: {"query": "door", "memory_id": each},
    "why_not": lambda _, each: {"query": "door", "memory_id": each},
    "timeline": lambda _, each: {"around": each},
    "facts": lambda _, each: {"memory_id": each},
    "state_fact": lambda _, each: {
        "fact": {"subject": "a", "predicate": "b", "object": "c"},
        "memory_id": each,
    },
    "drop_facts": lambda _, each: {"ids": [each]},
    "reinforce": lambda _, each: {"ids": [each]},
    "unlink": lambda own, each: {"newer": own.newer, "older": each},
    "remember": lambda _, each: {"text": "it replaces something", "supersedes": [each]},
    "add_entity": lambda _, each: {"name": "Somebody", "memory_ids": [each]},
    "receipts": lambda _, each: {"memory_id": each},
    "mark": lambda _, each: {"ids": [each], "outcome": "used"},
}


@pytest.mark.parametrize("verb", BY_ID)
def test_a_foreign_id_is_as_unknown_as_one_that_nothing_has(table: Table, verb: str) -> None:
    """By what is told, a caller cannot find out whether it is there."""
    before, own = table.stored(), table.own("update")
    client = table.clients["admin", ("own", "own too")]
    foreign = table.foreign
    ids = [foreign.fact] if verb in ("drop_facts", "reinforce") else [foreign.memory, foreign.newer, foreign.forgotten]
    for each in ids:
        told = []
        for one in (each, UNKNOWN):
            answer = send(client, Called(verb, BY_ID[verb](own, one)))
            check_told(answer)
            told.append((answer.status_code, answer.text.replace(one, "ID")))
        assert told[0] == told[1]
    assert table.stored() == before


def test_no_parameter_of_ids_is_left_out() -> None:
    found = {
        name
        for name, verb in verbs().items()
        if verb.known.keys() & {"ids", "memory_id", "memory_ids", "newer", "around", "supersedes"}
    }
    assert found == set(BY_ID)


@pytest.mark.parametrize("verb", ["get", "forget", "purge"])
def test_a_foreign_key_is_as_unknown_as_one_that_nothing_has(table: Table, verb: str) -> None:
    client, before = table.clients["admin", ("own",)], table.stored()
    told = []
    for key in (f"{HIDDEN}-key", "no-such-key"):
        answer = send(client, Called(verb, {"keys": [key]}))
        told.append((answer.status_code, answer.text.replace(key, "KEY")))
    assert told[0] == told[1]
    assert told[0][0] == 404
    assert table.stored() == before


def test_one_memory_by_its_path_is_no_way_around(table: Table) -> None:
    for role in ROLES:
        client = table.clients[role, ("own",)]
        told = []
        for each in (table.foreign.memory, UNKNOWN):
            answer = client.get(f"/v1/memories/{each}")
            check_told(answer)
            told.append((answer.status_code, answer.text.replace(each, "ID")))
        assert told[0] == told[1]
        assert told[0][0] == 404
        assert client.get(f"/v1/memories/{table.own('update').memory}").status_code == 200


def test_the_session_says_what_a_token_may(table: Table) -> None:
    for (role, spaces), client in table.clients.items():
        said = client.get("/v1/session").json()
        assert (said["role"], said["spaces"]) == (role, None if spaces is None else list(spaces))
        assert said["space"] == "own"
    too = table.clients["read", ("own", "own too")].get("/v1/session", headers={"Nacre-Space": "own too"})
    assert too.json()["space"] == "own too"
    error_of(table.clients["read", ("own",)].get("/v1/session", headers={"Nacre-Space": "foreign"}), 403)


def test_a_request_can_narrow_its_spaces_and_never_widen_them(table: Table) -> None:
    client = table.clients["admin", ("own", "own too")]
    narrow = {"Nacre-Spaces": '["own too"]'}
    assert client.get("/v1/session", headers=narrow).json()["spaces"] == ["own too"]
    assert client.get(f"/v1/memories/{table.own('update').memory}", headers=narrow).status_code == 404
    for wide in ('["foreign"]', '["own", "foreign"]'):
        error_of(client.get("/v1/session", headers={"Nacre-Spaces": wide}), 403)
    for wrong in ("[]", "own", "{}", "[5]", '[""'):
        error_of(client.get("/v1/session", headers={"Nacre-Spaces": wrong}), 400)
    everything = table.clients["admin", None]
    assert everything.get("/v1/stats").status_code == 200
    error_of(everything.get("/v1/stats", headers={"Nacre-Spaces": '["own"]'}), 403)
    error_of(everything.get("/metrics", headers={"Nacre-Spaces": '["own"]'}), 403)


def test_an_export_cannot_be_loaded_into_a_foreign_space(table: Table) -> None:
    """Nor can a memory of it be replaced by a record with its id."""
    before, client = table.stored(), table.clients["admin", ("own",)]
    records = list(table.root.export(where=nacre.Filter(spaces=("foreign",))))
    table.root.update(table.foreign.newer, summary="later")
    changed = table.stored()
    answer = send(client, Called("load", {"records": records}))
    assert answer.status_code == 200
    assert table.stored() == changed != before


def test_the_numbers_are_for_an_admin_of_all_spaces(table: Table) -> None:
    for (role, spaces), client in table.clients.items():
        answer = client.get("/metrics")
        assert answer.status_code == (200 if role == "admin" and spaces is None else 403)
