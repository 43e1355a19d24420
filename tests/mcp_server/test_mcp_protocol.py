"""What else of the protocol the server speaks: templates, completion, consent, cancellation and log lines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.lowlevel.server import Server
from mcp_types import PromptReference as Prompt
from mcp_types import ResourceTemplateReference as Template

import nacre
from mcp_clients import (
    INITIALIZED,
    MODES,
    HttpProcess,
    asynchronous,
    engines_on,
    environment,
    given,
    initialize,
    message,
    said,
    served,
    spoken_to,
    tool_call,
)
from nacre.engine import writer
from nacre.errors import EmbedderError, NotFound
from nacre.mcp_server import completion, confirmation, graph_tools, prompts, resources, server_info, wording
from nacre.mcp_server import server as server_module
from nacre.mcp_server.server import RequestHandlers, build_server
from nacre.mcp_server.spaces import SpaceEngines
from nacre.mcp_server.tools import chosen

ALL = chosen("all")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engines(path: Path) -> Iterator[SpaceEngines]:
    made = engines_on(path)
    yield made
    made.close()


@pytest.fixture
def door(engines: SpaceEngines, tmp_path: Path) -> Server[Any]:
    return served(engines, ALL, tmp_path)


@pytest.fixture
def memory(engines: SpaceEngines) -> nacre.Nacre:
    """Some memories, and one in another space, whose names nobody here may learn."""
    elsewhere = engines.memory("elsewhere")
    elsewhere.remember("Zita keeps bees", tags=["bees"], namespace="hives", entities=["Zita"])
    elsewhere.save_lens(nacre.Lens(name="beekeeping"))
    made = engines.memory("default")
    made.remember("Tea is served at four", tags=["tea", "daily"], namespace="habits", entities=["Anna"])
    made.remember("Anna prefers green tea", tags=["tea"], namespace="habits", entities=["Anna", 'Ann, B. "Bo"'])
    made.remember(
        "The kettle is descaled", tags=["kettle", "a/b c"], namespace="house", entities=["Kettle & Co", "Lee, Bo"]
    )
    made.remember("Coffee is for guests", tags=["Teatime"], namespace="habits")
    made.save_lens(nacre.Lens(name="tea-talk", where=nacre.Filter(tags_all=["tea"])))
    return made


# ---------------------------------------------------------------- resource templates


async def read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


def lines(found: Any) -> list[str]:
    for each in found["memories"]:
        assert each.keys() == {"id", "created", "summary"}
    return [each["summary"] for each in found["memories"]]


@pytest.mark.usefixtures("memory")
@asynchronous
async def test_templates_list_memories(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            "nacre://memory/{id}",
            "nacre://tag/{tag}",
            "nacre://namespace/{namespace}",
            "nacre://entity/{name}",
            "nacre://lens/{name}",
            "nacre://space/{space}",
        ]
        assert lines(await read(client, "nacre://tag/tea")) == ["Anna prefers green tea", "Tea is served at four"]
        assert lines(await read(client, "nacre://tag/a%2Fb%20c")) == ["The kettle is descaled"]
        assert lines(await read(client, "nacre://tag/a/b c")) == ["The kettle is descaled"]
        assert len(lines(await read(client, "nacre://namespace/habits"))) == 3
        anna = await read(client, "nacre://entity/anna")
        assert anna["entity"]["name"] == "Anna"
        assert set(lines(anna)) == {"Anna prefers green tea", "Tea is served at four"}
        assert lines(await read(client, "nacre://entity/Kettle%20%26%20Co")) == ["The kettle is descaled"]
        assert lines(await read(client, "nacre://entity/Lee%2C%20Bo")) == ["The kettle is descaled"]
        lens = await read(client, "nacre://lens/tea-talk")
        assert lens["lens"]["name"] == "tea-talk"
        assert lines(lens) == ["Anna prefers green tea", "Tea is served at four"]
        assert len(lines(await read(client, "nacre://lens/debugging"))) <= 4
        assert (await read(client, "nacre://space/default"))["total"] == 4


@pytest.mark.usefixtures("memory")
@asynchronous
async def test_what_is_not_there_is_an_error_with_its_uri(door: Server[Any], mode: str) -> None:
    """What exists in another space is not there, and the same words say so."""
    async with Client(door, mode=mode) as client:
        for name, other in (
            ("memory", "nobody"),
            ("tag", "bees"),
            ("namespace", "hives"),
            ("entity", "Zita"),
            ("lens", "beekeeping"),
            ("space", "elsewhere"),
        ):
            for value in (other, "never-was", "", "%00", "x" * 5_000, "%FF"):
                uri = f"nacre://{name}/{value}"
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                assert caught.value.code == {"legacy": -32002, "auto": types.INVALID_PARAMS}[mode]
                assert caught.value.data == {"uri": uri}
                whole = str(NotFound((uri,), resources._HINTS[name], what="resource"))
                assert caught.value.error.message == wording.for_agents(whole, ())  # a long one is cut


@asynchronous
async def test_a_list_has_an_end(door: Server[Any], engines: SpaceEngines, mode: str) -> None:
    engines.memory("default").remember_many(nacre.NewMemory(text=f"number {each}", tags=["n"]) for each in range(60))
    async with Client(door, mode=mode) as client:
        found = lines(await read(client, "nacre://tag/n"))
        assert found == [f"number {each}" for each in range(59, 59 - resources.LINES_MAX, -1)]


# ---------------------------------------------------------------- completion

COMPLETED: list[tuple[Prompt | Template, str, str, list[str]]] = [
    (Template(uri="nacre://tag/{tag}"), "tag", "", ["tea", "Teatime", "a/b c", "daily", "kettle"]),
    (Template(uri="nacre://tag/{tag}"), "tag", "T", ["tea", "Teatime", "kettle"]),
    (Template(uri="nacre://tag/{tag}"), "tag", "a", ["a/b c", "tea", "Teatime", "daily"]),
    (Template(uri="nacre://tag/{tag}"), "tag", "bee", []),
    (Template(uri="nacre://namespace/{namespace}"), "namespace", "h", ["habits", "house"]),
    (Template(uri="nacre://entity/{name}"), "name", "AN", ["Anna", 'Ann, B. "Bo"']),
    (Template(uri="nacre://entity/{name}"), "name", "z", []),
    (Template(uri="nacre://lens/{name}"), "name", "te", ["tea-talk"]),
    (Template(uri="nacre://lens/{name}"), "name", "bee", []),
    (Template(uri="nacre://space/{space}"), "space", "", ["default"]),
    (Template(uri="nacre://space/{space}"), "space", "else", []),
    (Template(uri="nacre://memory/{id}"), "id", "", []),
    (Prompt(name="recall"), "topic", "ann", ["Anna", 'Ann, B. "Bo"']),
    (Prompt(name="recall"), "namespace", "ho", ["house"]),
    (Prompt(name="recall"), "tag", "da", ["daily"]),
]  # fmt: skip


@pytest.mark.usefixtures("memory")
@asynchronous
async def test_values_are_completed_the_most_frequent_first(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        for ref, name, typed, expected in COMPLETED:
            found = (await client.complete(ref, {"name": name, "value": typed})).completion
            assert found.values == expected, (ref, typed)
            assert (found.total, found.has_more) == (len(expected), False)


@asynchronous
async def test_a_hundred_values_are_enough(door: Server[Any], engines: SpaceEngines, mode: str) -> None:
    made = engines.memory("default")
    made.remember_many(nacre.NewMemory(text=f"number {each}", tags=[f"tag{each}"]) for each in range(250))
    made.remember("once more", tags=["tag7"])
    async with Client(door, mode=mode) as client:
        for typed, total in (("", 250), ("TAG1", 111), ("tag24", 11)):
            argument = {"name": "tag", "value": typed}
            found = (await client.complete(Template(uri="nacre://tag/{tag}"), argument)).completion
            assert (len(found.values), found.total) == (min(total, completion.VALUES_MAX), total)
            assert found.has_more == (total > completion.VALUES_MAX)
            assert found.values[0] == ("tag7" if not typed else min(found.values))


@asynchronous
async def test_what_cannot_be_completed_is_an_error(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:
        for ref, name, problem in (
            (Prompt(name="nothing"), "topic", "id: no prompt 'nothing'; allowed: recall, keep"),
            (Prompt(name="keep"), "topic", "id: no argument 'topic'; allowed: none"),
            (Prompt(name="recall"), "lens", "id: no argument 'lens'; allowed: topic, namespace, tag"),
            (Template(uri="nacre://tag/{tag}"), "name", "id: no argument 'name'; allowed: tag"),
            (Template(uri="nacre://overview"), "x", "id: no argument 'x'; allowed: none"),
            (Template(uri="file:///{path}"), "path", "id: no resource template 'file:///{path}'; allowed: nacre://"),
        ):
            with pytest.raises(MCPError) as caught:
                await client.complete(ref, {"name": name, "value": ""})
            assert caught.value.code == types.INVALID_PARAMS
            assert caught.value.error.message.startswith(problem)


def test_every_template_and_argument_can_be_completed() -> None:
    listed = {each["name"]: {each["uri_template"].split("{")[1][:-1]} for each in resources.TEMPLATES}
    listed |= {each["name"]: {one["name"] for one in each["arguments"]} for each in prompts.LISTED}
    assert {name: set(values) for name, values in completion._VALUES.items() if name != "overview"} == listed


@pytest.mark.usefixtures("memory")
@asynchronous
async def test_recall_keeps_to_a_namespace_and_a_tag(door: Server[Any], mode: str) -> None:
    async with Client(door, mode=mode) as client:

        async def written(**arguments: str) -> str:
            (only,) = (await client.get_prompt("recall", {"topic": "tea kettle", **arguments})).messages
            assert isinstance(only.content, types.TextContent)
            return only.content.text

        assert "Anna prefers" in await written(tag="tea")
        assert "kettle is descaled" not in await written(tag="tea")
        assert "kettle is descaled" in await written(namespace="house")
        assert "Anna prefers" not in await written(namespace="house", tag="")


# ---------------------------------------------------------------- consent before many are forgotten


def many(engines: SpaceEngines, count: int) -> list[str]:
    texts = [f"Obsolete number {each}" for each in range(count)]
    return [each.id for each in engines.memory("default").remember_many(texts)]


class Person:
    """Answers questions, and keeps what was asked."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def __call__(self, context: object, params: types.ElicitRequestParams) -> Any:  # noqa: ARG002
        assert isinstance(params, types.ElicitRequestFormParams)
        assert params.requested_schema == {"type": "object", "properties": {}}
        self.asked.append(params.message)
        if isinstance(self._answer, str):
            return types.ElicitResult(action=self._answer)  # type: ignore[arg-type]
        return await self._answer() if callable(self._answer) else self._answer


@asynchronous
async def test_who_agrees_forgets_many(door: Server[Any], engines: SpaceEngines, mode: str) -> None:
    ids = many(engines, 12)
    person = Person("accept")
    async with Client(door, mode=mode, elicitation_callback=person) as client:
        assert given(await client.call_tool("forget", {"ids": ids}))["forgotten"] == ids
    assert person.asked == [
        "Forget 12 memories?\n" + "".join(f"- Obsolete number {each}\n" for each in range(5)) + "- and 7 more"
    ]
    assert engines.memory("default").facets().total == 0


@pytest.mark.parametrize("action", ["decline", "cancel"])
@asynchronous
async def test_who_does_not_agree_forgets_nothing(
    door: Server[Any], engines: SpaceEngines, mode: str, action: str
) -> None:
    ids = many(engines, 6)
    person = Person(action)
    async with Client(door, mode=mode, elicitation_callback=person) as client:
        result = await client.call_tool("forget", {"ids": ids})
        assert result.is_error
        assert said(result) == server_module._REFUSALS[action]
    assert len(person.asked) == 1
    assert engines.memory("default").facets().total == 6


@asynchronous
async def test_few_are_forgotten_without_a_question(door: Server[Any], engines: SpaceEngines, mode: str) -> None:
    """Few that exist: neither unknown ids nor those that are forgotten already count."""
    ids = many(engines, 2 * confirmation.FORGOTTEN_UNASKED)
    first, second = ids[: confirmation.FORGOTTEN_UNASKED], ids[confirmation.FORGOTTEN_UNASKED :]
    person = Person("decline")
    async with Client(door, mode=mode, elicitation_callback=person) as client:
        assert given(await client.call_tool("forget", {"ids": first}))["forgotten"] == first
        assert not (await client.call_tool("forget", {"ids": [*first, *second]})).is_error
    assert person.asked == []
    assert engines.memory("default").facets().total == 0


@asynchronous
async def test_a_client_that_cannot_ask_forgets_at_once(door: Server[Any], engines: SpaceEngines, mode: str) -> None:
    ids = many(engines, 12)
    async with Client(door, mode=mode) as client:
        assert given(await client.call_tool("forget", {"ids": ids}))["forgotten"] == ids


@asynchronous
async def test_a_client_that_only_opens_pages_is_not_asked(door: Server[Any], engines: SpaceEngines) -> None:
    """A form can be shown by a client that names no mode, or that one."""
    forms: list[tuple[dict[str, Any], bool]] = [({}, True), ({"form": {}}, True), ({"url": {}}, False)]
    for elicitation, asked in [*forms, ({"form": {}, "url": {}}, True)]:
        ids = many(engines, 6)
        async with spoken_to(door) as line:
            await line.send(initialize(version="2025-11-25", capabilities={"elicitation": elicitation}), INITIALIZED)
            await line.receive()
            await line.send(tool_call("many", "forget", ids=ids))
            answer = await line.receive()
            assert (answer.get("method") == "elicitation/create") == asked, (elicitation, answer)
            if asked:
                await line.send(message(id=answer["id"], result={"action": "accept", "content": {}}))
                answer = await line.receive()
            assert (answer["id"], answer["result"]["isError"]) == ("many", False)
        engines.memory("default").purge(ids)


@asynchronous
async def test_bad_arguments_are_no_question(door: Server[Any], mode: str) -> None:
    person = Person("accept")
    async with Client(door, mode=mode, elicitation_callback=person) as client:
        for arguments in ({}, {"ids": 5}, {"ids": ["x"] * 10_001}, {"ids": [f"x{each}" for each in range(9)]}):
            await client.call_tool("forget", arguments)
    assert person.asked == []


@asynchronous
async def test_nobody_waits_for_ever(door: Server[Any], engines: SpaceEngines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONSENT_WAIT_S", 0.05)
    ids = many(engines, 6)
    async with Client(door, mode="legacy", elicitation_callback=Person(anyio.sleep_forever)) as client:
        result = await client.call_tool("forget", {"ids": ids})
        assert said(result) == server_module._REFUSALS["timeout"]
    refuses = Person(types.ErrorData(code=types.INTERNAL_ERROR, message="no screen"))
    async with Client(door, mode="legacy", elicitation_callback=refuses) as client:
        result = await client.call_tool("forget", {"ids": ids})
        assert said(result) == server_module._REFUSALS["error"]
    assert engines.memory("default").facets().total == 6


# ---------------------------------------------------------------- cancellation


@asynchronous
async def test_a_cancelled_call_stops_between_batches(
    door: Server[Any], engines: SpaceEngines, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was reported is stored, and the rest of a long call is not done."""
    monkeypatch.setattr(writer, "BATCH_EMBEDDED", 4)
    reported: list[float] = []
    texts = [{"text": f"number {each}"} for each in range(4_000)]
    async with Client(door, mode=mode) as client:
        with anyio.CancelScope() as scope:

            async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                assert total == 4_000
                reported.append(progress)
                if len(reported) == 3:
                    scope.cancel()

            await client.call_tool("remember_many", {"memories": texts}, progress_callback=note)
        assert scope.cancelled_caught
        assert given(await client.call_tool("facets", {}))["total"] >= reported[-1]  # the connection goes on
        await anyio.sleep(0.3)
        stored = engines.memory("default").facets().total
        await anyio.sleep(0.3)
        assert engines.memory("default").facets().total == stored < 4_000


# ---------------------------------------------------------------- log lines


@pytest.fixture
def failing(engines: SpaceEngines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that logs a warning for a context, and an error for a timeline."""
    usual = engines.memory("default").context

    def context(*arguments: Any, **named: Any) -> Any:
        logging.getLogger("nacre").info("more than anybody wants to know")
        logging.getLogger("nacre").warning("the embedder failed (%s): %s", EmbedderError("secret"), "by words only")
        return usual(*arguments, **named)

    def timeline(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(engines.memory("default"), "context", context)
    monkeypatch.setattr(engines.memory("default"), "timeline", timeline)


WARNING = ("warning", "the embedder failed (EmbedderError): by words only")
ERROR = ("error", "the tool timeline failed")


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("level", "expected"),
    [(None, []), ("debug", [WARNING, ERROR]), ("warning", [WARNING, ERROR]), ("error", [ERROR]), ("emergency", [])],
)
@asynchronous
async def test_lines_of_a_level_are_sent_to_who_asked(
    door: Server[Any], level: types.LoggingLevel | None, expected: list[tuple[str, str]], caplog: Any
) -> None:
    got: list[tuple[str, str]] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        assert params.logger == "nacre"
        got.append((params.level, params.data))

    async with Client(door, mode="legacy", logging_callback=log) as client:
        assert client.server_capabilities.logging is not None
        if level is not None:
            await client.session.send_request(
                types.SetLevelRequest(params=types.SetLevelRequestParams(level=level)), types.EmptyResult
            )
        await client.call_tool("context", {"query": "tea"})
        await client.call_tool("timeline", {})
        await client.call_tool("context", {"query": "tea"})
    again = [each for each in expected if each == WARNING]
    assert got == expected + again
    assert [each.levelname for each in caplog.records if each.name == "nacre"] == ["WARNING", "ERROR", "WARNING"]


def level_of(level: str) -> types.RequestParamsMeta:
    return cast("types.RequestParamsMeta", {types.LOG_LEVEL_META_KEY: level})


@pytest.mark.usefixtures("failing")
@asynchronous
async def test_since_2026_each_request_says_its_level(door: Server[Any]) -> None:
    got: list[tuple[str, str]] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        got.append((params.level, params.data))

    async with Client(door, mode="auto", logging_callback=log) as client:
        await client.call_tool("context", {"query": "tea"})
        assert got == []
        await client.call_tool("context", {"query": "tea"}, meta=level_of("warning"))
        await client.call_tool("timeline", {}, meta=level_of("critical"))
        assert got == [WARNING]


# ---------------------------------------------------------------- what is declared


@asynchronous
async def test_what_is_declared_is_what_is_there(engines: SpaceEngines, tmp_path: Path) -> None:
    """Lists never change while a server runs, and nothing can be subscribed to."""
    full = build_server(RequestHandlers(engines, ALL, tmp_path, "one"))
    graph = build_server(RequestHandlers(engines, graph_tools.TOOLS, tmp_path, "one"), profile=server_info.GRAPH)
    declared: Callable[[Server[Any]], Any] = lambda each: each.get_capabilities().model_dump(  # noqa: E731
        by_alias=True, exclude_none=True
    )
    fixed = {"listChanged": False}
    assert declared(full) == {
        "completions": {},
        "logging": {},
        "prompts": fixed,
        "resources": {"subscribe": False, **fixed},
        "tools": fixed,
    }
    assert declared(graph) == {"logging": {}, "tools": fixed}


# ---------------------------------------------------------------- in other processes


@contextmanager
def reached(transport: str, path: Path) -> Iterator[Any]:
    """What the SDK's client takes to speak to a server in a process of its own."""
    if transport == "stdio":
        yield StdioServerParameters(
            command=sys.executable,
            args=["-m", "nacre", "mcp", "--tools", "all"],
            env=environment(path),
            cwd=path.parent,
        )
        return
    with HttpProcess(path, "--tools", "all") as process:
        yield process.url
        assert "Traceback" not in process.log()


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
@asynchronous
async def test_all_of_it_over_pipes_and_http(path: Path, mode: str, transport: str) -> None:
    person = Person("decline")
    reported: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message is None
        reported.append((progress, total))

    with reached(transport, path) as place:
        async with Client(place, mode=mode, elicitation_callback=person) as client:
            texts = [{"text": f"number {each} of many", "tags": ["many"]} for each in range(1_100)]
            answer = await client.call_tool("remember_many", {"memories": texts}, progress_callback=note)
            ids = [each["id"] for each in given(answer)["remembered"]]
            assert reported == [(512, 1_100), (1_024, 1_100), (1_100, 1_100)]
            completed = await client.complete(Template(uri="nacre://tag/{tag}"), {"name": "tag", "value": "m"})
            assert completed.completion.values == ["many"]
            assert len(lines(await read(client, "nacre://tag/many"))) == resources.LINES_MAX
            with pytest.raises(MCPError) as caught:
                await client.read_resource("nacre://tag/nobody")
            assert caught.value.data == {"uri": "nacre://tag/nobody"}
            assert (await client.call_tool("forget", {"ids": ids})).is_error
            assert len(person.asked) == 1
            assert (await read(client, "nacre://overview"))["total"] == 1_100
            if mode == "legacy":
                level = types.SetLevelRequest(params=types.SetLevelRequestParams(level="debug"))
                assert await client.session.send_request(level, types.EmptyResult) is not None


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
@asynchronous
async def test_a_cancelled_call_stops_in_another_process(path: Path, mode: str, transport: str) -> None:
    texts = [{"text": f"number {each} of many"} for each in range(20_000)]
    reported: list[float] = []
    with reached(transport, path) as place:
        async with Client(place, mode=mode) as client:
            with anyio.CancelScope() as scope:

                async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                    reported.append(progress)
                    scope.cancel()

                await client.call_tool("remember_many", {"memories": texts}, progress_callback=note)
            assert scope.cancelled_caught
            stored = [(await read(client, "nacre://overview"))["total"]]
            while len(stored) < 2 or stored[-1] != stored[-2]:
                await anyio.sleep(0.5)
                stored.append((await read(client, "nacre://overview"))["total"])
    assert reported[0] <= stored[-1] < len(texts)


@pytest.mark.slow
@asynchronous
async def test_a_client_over_http_gets_lines_of_its_own_requests_only(path: Path) -> None:
    """A tool of this server logs three warnings."""
    got: dict[str, list[str]] = {"one": [], "other": []}

    def log_of(name: str) -> Any:
        async def log(params: types.LoggingMessageNotificationParams) -> None:
            got[name].append(params.level)

        return log

    level = types.SetLevelRequest(params=types.SetLevelRequestParams(level="warning"))
    with HttpProcess(path, str(path), script=Path(__file__).with_name("conformance_server.py")) as process:
        async with (
            Client(process.url, mode="legacy", logging_callback=log_of("one")) as one,
            Client(process.url, mode="legacy", logging_callback=log_of("other")) as other,
        ):
            await one.session.send_request(level, types.EmptyResult)
            await other.call_tool("test_tool_with_logging", {})
            assert got == {"one": [], "other": []}
            await one.call_tool("test_tool_with_logging", {})
            assert got == {"one": ["warning"] * 3, "other": []}
