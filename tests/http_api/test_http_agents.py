"""Agents on the server's own port: which tools a token has, in which spaces, and whose a session is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from http_verbs import World, made
from mcp_clients import initialize, tool_call
from nacre.mcp_server.tools import chosen
from nacre.types.access_tokens import ROLES, Role
from servers import ThreadServer, error_of, serving

HIDDEN = "xyzzyhidden"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
READING = {each.name for each in chosen("") if each.effect == "reads"}
ALL = {each.name for each in chosen("")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    with serving(tmp_path_factory.mktemp("agents") / "memories.db", token_needed=True) as served:
        made(served.root, "foreign", HIDDEN)
        yield served


@pytest.fixture(scope="module")
def own(server: ThreadServer) -> World:
    return made(server.root, "own", "plain")


class Agent:
    """A client of the protocol, by hand: one session."""

    def __init__(self, server: ThreadServer, token: str | None, **headers: str) -> None:
        self.client = server.client(token, **ACCEPT, **headers)
        self.session: str | None = None
        answer = self.post(initialize())
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        assert self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').status_code == 202

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def post(self, body: bytes, session: str | None = None) -> httpx.Response:
        known = session or self.session
        return self.client.post("/mcp", content=body, headers={} if known is None else {"mcp-session-id": known})

    def ask(self, body: bytes) -> Any:
        answer = self.post(body)
        assert answer.status_code == 200, answer.text
        (data,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        return json.loads(data.removeprefix("data: "))

    def tools(self) -> set[str]:
        listed = self.ask(b'{"jsonrpc":"2.0","id":5,"method":"tools/list"}')
        return {each["name"] for each in listed["result"]["tools"]}

    def call(self, name: str, **given: Any) -> Any:
        return self.ask(tool_call(7, name, **given))


@pytest.mark.parametrize("role", ROLES)
def test_a_token_has_the_tools_of_its_role(server: ThreadServer, own: World, role: Role) -> None:
    agent = Agent(server, server.token(role, ("own",)))
    with agent:
        assert agent.tools() == (READING if role == "read" else ALL)
        before = server.root.changes().seq
        answer = agent.call("remember", text=f"written by {role}")
        if role == "read":
            assert "error" in answer or answer["result"]["isError"]
            assert server.root.changes().seq == before
            for name in ALL - READING:  # also those that are not listed
                answer = agent.call(name, id=own.memory, ids=[own.memory], text="x")
                assert "error" in answer or answer["result"]["isError"], name
            assert server.root.changes().seq == before
        else:
            assert not answer["result"].get("isError")
            with server.root.within("own") as memory:
                assert f"written by {role}" in [each.text for each in memory.every()]


def test_an_agent_works_in_the_space_of_its_token_alone(server: ThreadServer, own: World) -> None:
    agent = Agent(server, server.token("admin", ("own",)))
    with agent:
        found = json.dumps(agent.call("search_memories", query="door colour painted"))
        assert "plain" in found
        with server.root.within("foreign") as memory:
            before = [*memory.export()][1:]
            ids = [each.id for each in memory.every()]
        for name in sorted(ALL):
            for given in ({"query": HIDDEN}, {"query": f"space:foreign {HIDDEN}"}, {"id": ids[0]}, {"ids": ids}):
                told = agent.call(name, **given)
                assert "The xyzzyhidden" not in json.dumps(told), (name, given)
        with server.root.within("foreign") as memory:
            assert [*memory.export()][1:] == before
        assert own.memory in found


def test_a_header_chooses_among_the_spaces_of_a_token(server: ThreadServer) -> None:
    token = server.token("write", ("own", "second"))
    agent = Agent(server, token, **{"Nacre-Space": "second"})
    with agent:
        agent.call("remember", text="into the second")
        with server.root.within("second") as memory:
            assert [each.text for each in memory.every()] == ["into the second"]
    foreign = Agent(server, token, **{"Nacre-Space": "foreign"})
    with foreign:
        told = foreign.call("search_memories", query=HIDDEN)
        assert "error" in told or told["result"]["isError"]
        assert "door" not in json.dumps(told)


def test_a_session_is_of_the_token_that_has_begun_it(server: ThreadServer) -> None:
    first, second = Agent(server, server.token("admin")), Agent(server, server.token("read", ("own",)))
    with first, second:
        answer = second.post(tool_call(1, "search_memories", query=HIDDEN), first.session)
        assert "another token" in error_of(answer, 404)["message"]
        gone = second.client.delete("/mcp", headers={"mcp-session-id": first.session or ""})
        error_of(gone, 404)
        assert first.tools() == ALL
        error_of(second.client.get("/mcp", headers={"mcp-session-id": first.session or ""}), 404)


def test_a_revoked_token_ends_its_agent(server: ThreadServer) -> None:
    made_token = server.root.create_token(role="admin")
    agent = Agent(server, made_token.secret)
    with agent:
        assert agent.tools() == ALL
        server.root.revoke_token(made_token.token.id)
        error_of(agent.post(tool_call(1, "search_memories", query="x")), 401)
