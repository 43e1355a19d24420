"""The protocol: tools, resources and prompts on one store, as handlers for the SDK's server.

Import it after `sdk.load()`. The engine's verbs are synchronous, so each call runs in a thread of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from nacre.engine.engine import Nacre
from nacre.errors import NacreError, NotFound
from nacre.mcp_server import arguments, completion, confirmation, prompts, resources, server_info, tool_json, wording
from nacre.mcp_server.client_log import ClientLog
from nacre.mcp_server.server_info import Profile
from nacre.mcp_server.spaces import ROOTS_WAIT_S, ClientSpaces, space_of_roots
from nacre.mcp_server.tool import Tool
from nacre.serialization import encode
from nacre.types.memory import Json, Progress

CONSENT_WAIT_S = 120.0  # a person who has not answered by then has not agreed
RESOURCE_NOT_FOUND = -32002  # until the protocol of 2026, which uses INVALID_PARAMS
CALLS_AT_ONCE = 16
CLIENTS_MAX = 10_000  # whose spaces are kept

_Context = ServerRequestContext[Any, Any]
_log = logging.getLogger("nacre")


class RequestHandlers:
    """Answers the requests of all clients of one server."""

    def __init__(
        self,
        engines: ClientSpaces,
        tools: Sequence[Tool],
        folder: Path | None,
        session: str | None,
        space: str | None = None,
    ) -> None:
        """`session` and `space` are those of the one client over stdio, where they are known."""
        self._engines = engines
        self._tools = {each.name: each for each in tools}
        self._folder = folder
        self._session = session  # None over HTTP, where each client has its own
        # By the id of the client's HTTP session; None over stdio.
        self._spaces: dict[str | None, str] = {} if space is None else {None: space}
        self._limiter: anyio.CapacityLimiter | None = None
        self.log = ClientLog(CLIENTS_MAX)

    # ---- tools

    def _tools_of(self, context: _Context) -> Mapping[str, Tool]:
        """The tools of this client."""
        del context
        return self._tools

    async def list_tools(self, context: _Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        offered = self._tools_of(context).values()
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool_json.listed(each)) for each in offered])

    async def call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tools = self._tools_of(context)
        tool = tools.get(params.name)
        if tool is None:
            known = ", ".join(tools)
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}; allowed: {known}")
        try:
            memory = await self._memory(context)
        except NacreError as error:
            return _result(tool_json.failed(str(error), tools))
        given = params.arguments or {}
        call = arguments.call_of(tool, memory, given, self._session_of(context), _reporter(context))
        if _can_be_asked(context):
            question = await self._in_thread(confirmation.question, tool.name, call)
            consent = "accept" if question is None else await _consent(context, params, question)
            if isinstance(consent, types.InputRequiredResult):
                return consent
            if consent != "accept":
                return _result(tool_json.failed(_REFUSALS[consent], tools))
        return _result(await self._in_thread(tool_json.answered, tool, call, tools))

    # ---- resources

    async def list_resources(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(**each) for each in resources.LISTED])

    async def list_templates(
        self, _: _Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[types.ResourceTemplate(**each) for each in resources.TEMPLATES]
        )

    async def read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            space = await self._space(context)
            memory = await self._opened(space)
            found = await self._in_thread(resources.read, memory, space, str(params.uri))
        except NotFound as error:
            modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
            raise MCPError(code, self._said(error), {"uri": str(params.uri)}) from None
        except NacreError as error:
            raise MCPError(types.INTERNAL_ERROR, self._said(error)) from None
        text = types.TextResourceContents(uri=params.uri, mime_type=resources.JSON, text=encode.dumps(found))
        return types.ReadResourceResult(contents=[text])

    # ---- prompts

    async def list_prompts(self, _: _Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt.model_validate(each) for each in prompts.LISTED])

    async def get_prompt(self, context: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            memory = await self._memory(context)
            said = await self._in_thread(
                prompts.render, memory, params.name, params.arguments or {}, self._session_of(context)
            )
        except NacreError as error:
            raise MCPError(types.INVALID_PARAMS, self._said(error)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(text=said))
        return types.GetPromptResult(messages=[message])

    # ---- completion and log level

    async def complete(self, context: _Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref, argument = params.ref, params.argument
        try:
            space = await self._space(context)
            memory = await self._opened(space)
            if isinstance(ref, types.PromptReference):
                ask, name = completion.of_prompt, ref.name
            else:
                ask, name = completion.of_template, ref.uri
            found = await self._in_thread(ask, memory, space, name, argument.name, argument.value)
        except NacreError as error:
            raise MCPError(types.INVALID_PARAMS, self._said(error)) from None
        more = found.total > len(found.values)
        return types.CompleteResult(completion=types.Completion(values=found.values, total=found.total, has_more=more))

    async def set_log_level(self, context: _Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.log.set_level(_connection(context), params.level)
        return types.EmptyResult()

    def _said(self, error: NacreError) -> str:
        return wording.for_agents(str(error), self._tools)

    # ---- the client's memory

    async def roots_changed(self, context: _Context, _: types.NotificationParams) -> None:
        self._spaces.pop(_connection(context), None)

    async def _memory(self, context: _Context) -> Nacre:
        return await self._opened(await self._space(context))

    async def _opened(self, space: str) -> Nacre:
        opened: Nacre = await self._in_thread(self._engines.memory, space)
        return opened

    async def _space(self, context: _Context) -> str:
        key = _connection(context)
        space = self._spaces.get(key)
        if space is None:
            space = self._engines.fixed or await space_of_client(context)
            space = space or self._engines.fallback(self._folder)
            if self._session is not None or key is not None:  # a client without a session is asked each time
                self._spaces[key] = space
                if len(self._spaces) > CLIENTS_MAX:
                    del self._spaces[next(iter(self._spaces))]  # if it is still connected, it is asked again
        return space

    def _session_of(self, context: _Context) -> str | None:
        return self._session or _connection(context)

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(CALLS_AT_ONCE)
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)


def build_server(handlers: RequestHandlers, *, profile: Profile = server_info.MEMORY) -> Server[Any]:
    """The SDK's server with these handlers; the profile decides what it has besides tools."""
    more: dict[str, Any] = {
        "on_list_resources": handlers.list_resources,
        "on_list_resource_templates": handlers.list_templates,
        "on_read_resource": handlers.read_resource,
        "on_list_prompts": handlers.list_prompts,
        "on_get_prompt": handlers.get_prompt,
        "on_completion": handlers.complete,
    }
    server: Server[Any] = Server(
        server_info.NAME,
        title=server_info.TITLE,
        version=server_info.VERSION,
        instructions=profile.instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        **{} if profile.tools_only else more,
    )
    # The SDK warns of arguments for what the protocol of 2026 has dropped, but clients of older versions use it.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_log_level)
    server.add_notification_handler(
        "notifications/roots/list_changed", types.NotificationParams, handlers.roots_changed
    )
    server.middleware.append(_internal_errors)
    server.middleware.append(handlers.log.send)
    return server


async def _internal_errors(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """A bug is an internal error to the client, without its message: that may quote what somebody remembered."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # the SDK answers these with codes of their own
        raise
    except Exception as error:
        _log.exception("the request %s failed", ctx.method)
        said = f"{ctx.method} failed inside the server ({type(error).__name__}); its log on stderr says why"
        raise MCPError(types.INTERNAL_ERROR, said) from None


def _connection(context: _Context) -> str | None:
    """The id of an HTTP client's session; None over stdio, or where the protocol has no sessions."""
    return None if context.request is None else context.request.headers.get("mcp-session-id")


async def space_of_client(context: _Context) -> str | None:
    """The space of the client's first root; None if it lists none."""
    able = context.session.client_capabilities
    if able is None or able.roots is None or not context.session.can_send_request:
        return None
    with anyio.move_on_after(ROOTS_WAIT_S):
        try:
            listed = await context.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except (MCPError, ValueError) as error:  # it refuses, or its roots are not folders
            _log.warning("the client did not list its roots: %s", error)
            return None
        return space_of_roots(str(root.uri) for root in listed.roots)
    _log.warning("the client did not list its roots within %g s", ROOTS_WAIT_S)
    return None


_REFUSALS = {
    "decline": "Nothing was forgotten: the user declined. Ask again only if they want it.",
    "cancel": "Nothing was forgotten: the user closed the question without an answer.",
    "timeout": f"Nothing was forgotten: the user did not answer within {CONSENT_WAIT_S:g} s.",
    "error": "Nothing was forgotten: the client could not ask the user.",
}


def _can_be_asked(context: _Context) -> bool:
    """Whether the client can show a person a question. Without modes, it means that it can show forms."""
    able = context.session.client_capabilities
    asks = None if able is None else able.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


async def _consent(
    context: _Context, params: types.CallToolRequestParams, question: str
) -> str | types.InputRequiredResult:
    """What a person says to a question: "accept", or a key of `_REFUSALS`.

    Since the protocol of 2026 a question is an answer, and the client calls again with what the person said.
    """
    form: dict[str, Any] = {"type": "object", "properties": {}}
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        given = (params.input_responses or {}).get("consent")
        if isinstance(given, types.ElicitResult):
            return given.action
        asked = types.ElicitRequestFormParams(message=question, requested_schema=form)
        return types.InputRequiredResult(input_requests={"consent": types.ElicitRequest(params=asked)})
    with anyio.move_on_after(CONSENT_WAIT_S):
        try:
            return (await context.session.elicit_form(question, form, context.request_id)).action
        except (MCPError, ValueError) as error:
            _log.warning("the client did not ask the user: %s", error)
            return "error"
    return "timeout"


def _reporter(context: _Context) -> Any:
    """Sends progress from the thread that a call runs in, and ends that call once the client has cancelled it."""

    def report(state: Progress) -> None:
        anyio.from_thread.check_cancelled()
        anyio.from_thread.run(context.session.report_progress, float(state.done), float(state.total) or None)

    return report


def _result(encoded: dict[str, Json]) -> types.CallToolResult:
    return types.CallToolResult.model_validate(encoded)
