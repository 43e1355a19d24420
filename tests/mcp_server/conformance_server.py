"""The server over HTTP with what the MCP conformance suite looks for: its fixtures beside our own tools and resources.

    python conformance_server.py STORE

What the suite asks for goes through our handlers wherever they can express it. Images, sounds and questions to the
client's model are nothing that Nacre has, so these are answered here.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from nacre.config import settings
from nacre.errors import NacreError
from nacre.mcp_server import http, sdk, server_info
from nacre.mcp_server.tool import Answer, Call, Tool
from nacre.mcp_server.tools import DEFAULT
from nacre.types.memory import Progress

sdk.load()

import mcp_types as types  # noqa: E402

from nacre.mcp_server import server  # noqa: E402

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


# ---------------------------------------------------------------- tools that our handlers can answer


def _simple(_: Call) -> Answer:
    return Answer({}, "This is a simple text response for testing.")


def _fails(_: Call) -> Answer:
    raise NacreError("This tool intentionally returns an error for testing")


def _logs(_: Call) -> Answer:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        logging.getLogger("nacre").warning(line)
        time.sleep(0.05)
    return Answer({}, "logged")


def _progresses(call: Call) -> Answer:
    for done in (0, 50, 100):
        call.report(Progress(done, 100))
        time.sleep(0.05)
    return Answer({}, "progressed")


def _tool(name: str, answer: Any, given: dict[str, Any] | None = None) -> Tool:
    return Tool(
        name=name,
        title=name,
        description="A fixture of the conformance suite.",
        effect="reads",
        answer=answer,
        input=given or NO_ARGUMENTS,
        output={"type": "object"},
    )


def _text_argument(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
TOOLS = (
    _tool("test_simple_text", _simple),
    _tool("test_error_handling", _fails),
    _tool("test_tool_with_logging", _logs),
    _tool("test_tool_with_progress", _progresses),
    _tool("json_schema_2020_12_tool", _simple, SCHEMA_2020),
)


# ---------------------------------------------------------------- what is nothing of ours


def _image() -> types.ImageContent:
    return types.ImageContent(data=PNG, mime_type="image/png")


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


CONTENTS: dict[str, list[types.ContentBlock]] = {
    "test_image_content": [_image()],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        types.TextContent(text="Multiple content types test:"),
        _image(),
        _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}
_OPTIONS = [{"const": f"value{at}", "title": title} for at, title in enumerate(("First", "Second", "Third"), 1)]
FORMS: dict[str, dict[str, Any]] = {
    "test_elicitation": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "test_elicitation_sep1034_defaults": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _OPTIONS},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _OPTIONS}},
    },
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}
TEMPLATE = "test://template/{id}/data"


def _said(name: str, given: dict[str, str]) -> list[types.ContentBlock]:
    if name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        return [types.TextContent(text=text)]
    if name == "test_prompt_with_embedded_resource":
        embedded = _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [embedded, types.TextContent(text="Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [_image(), types.TextContent(text="Please analyze the image above.")]
    return [types.TextContent(text="This is a simple prompt for testing.")]


class Handlers(server.RequestHandlers):
    """Ours, and for the names of fixtures these."""

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        ours = (await super().list_tools(context, params)).tools
        plain = [types.Tool(name=name, description="A fixture.", input_schema=NO_ARGUMENTS) for name in CONTENTS]
        asking = [
            types.Tool(name=name, description="A fixture.", input_schema=_text_argument("message")) for name in FORMS
        ]
        sampling = types.Tool(name="test_sampling", description="A fixture.", input_schema=_text_argument("prompt"))
        return types.ListToolsResult(tools=[*ours, *plain, *asking, sampling])

    async def call_tool(self, context: Any, params: Any) -> Any:
        given = params.arguments or {}
        if params.name in CONTENTS:
            return types.CallToolResult(content=CONTENTS[params.name])
        if params.name in FORMS:
            form = {"type": "object", "properties": FORMS[params.name], "required": []}
            answer = await context.session.elicit_form(given.get("message", "Please answer"), form, context.request_id)
            text = f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"
            return types.CallToolResult(content=[types.TextContent(text=text)])
        if params.name == "test_sampling":
            asked = types.SamplingMessage(role="user", content=types.TextContent(text=given["prompt"]))
            answer = await context.session.create_message(
                [asked], max_tokens=100, related_request_id=context.request_id
            )
            return types.CallToolResult(content=[types.TextContent(text=f"LLM response: {answer.content.text}")])
        return await super().call_tool(context, params)

    async def list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        ours = (await super().list_resources(context, params)).resources
        fixtures = [
            types.Resource(uri=f"test://static-{kind}", name=kind, description="A fixture.")
            for kind in ("text", "binary")
        ]
        return types.ListResourcesResult(resources=[*ours, *fixtures])

    async def list_templates(self, context: Any, params: Any) -> types.ListResourceTemplatesResult:
        ours = (await super().list_templates(context, params)).resource_templates
        fixture = types.ResourceTemplate(uri_template=TEMPLATE, name="template", description="A fixture.")
        return types.ListResourceTemplatesResult(resource_templates=[*ours, fixture])

    async def read_resource(self, context: Any, params: Any) -> types.ReadResourceResult:
        uri = str(params.uri)
        content: types.TextResourceContents | types.BlobResourceContents
        if uri == "test://static-text":
            text = "This is the content of the static text resource."
            content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        elif uri == "test://static-binary":
            content = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        elif uri.startswith("test://template/"):
            one = uri.split("/")[3]
            text = json.dumps({"id": one, "templateTest": True, "data": f"Data for ID: {one}"})
            content = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        else:
            return await super().read_resource(context, params)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, context: Any, params: Any) -> types.ListPromptsResult:
        ours = (await super().list_prompts(context, params)).prompts
        fixtures = [
            types.Prompt(
                name=name,
                description="A fixture.",
                arguments=[types.PromptArgument(name=each, required=True) for each in needed],
            )
            for name, needed in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=[*ours, *fixtures])

    async def get_prompt(self, context: Any, params: Any) -> types.GetPromptResult:
        if params.name not in PROMPTS:
            return await super().get_prompt(context, params)
        said = [types.PromptMessage(role="user", content=each) for each in _said(params.name, params.arguments or {})]
        return types.GetPromptResult(messages=said)

    async def complete(self, context: Any, params: Any) -> types.CompleteResult:
        """The suite completes an argument of its own prompt: answered as for the topic of ours."""
        if getattr(params.ref, "name", "") in PROMPTS:
            ours = types.PromptReference(name="recall")
            topic = types.CompletionArgument(name="topic", value=params.argument.value)
            params = types.CompleteRequestParams(ref=ours, argument=topic)
        return await super().complete(context, params)


def main() -> None:
    server.RequestHandlers = Handlers  # type: ignore[misc]
    given = settings.load({"store": sys.argv[1], "embedder": "hashing"}, {"NACRE_CONFIG": f"{sys.argv[1]}.toml"})
    http.serve(given, (*DEFAULT, *TOOLS), profile=server_info.MEMORY, host="127.0.0.1", port=0, token=None)


if __name__ == "__main__":
    main()
