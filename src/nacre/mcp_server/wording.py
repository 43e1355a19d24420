"""Errors and notes as an agent gets them: they name tools, where the engine's own words name commands."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

# By the command that the engine names: the tool, and what to do where that tool is not offered.
TOOLS: Mapping[str, tuple[str, str]] = {
    "timeline": ("timeline", "search for it"),
    "fact list": ("facts", "search for it"),
    "entity list": ("entities", "search without it"),
    "log": ("recall_log", "search first"),
}
# What only a person can do.
PEOPLE: tuple[tuple[str, str], ...] = (
    (
        r"or store them with `--defer-embeddings` and run `nacre reembed` later",
        "or ask the user to look after the embedder",
    ),
    (r"run `nacre reembed`(?: to compute them again)?", "ask the user to re-embed the store"),
    (r"(?:restore the last backup|make a store of it) with `nacre restore [^`]*`", "ask the user to restore a backup"),
    (r"see `nacre doctor`", "to check the store"),
    (
        r"(?:open it alone and add the others|add it) with `nacre nodes add`",
        "ask the user to name the nodes of the store",
    ),
    (r"reinstall it with `pip [^`]*`", "ask the user to reinstall Nacre"),
    (r"install them with `pip [^`]*`", "ask the user to install them"),
    (r"install it with `pip [^`]*`", "ask the user to install it"),
    (r"`nacre key create [^`]*` makes (?:one|a new key)", "ask the user for the file of the key"),
    (r"(?:encrypt it with )?`nacre rekey [^`]*`", "ask the user to encrypt it"),
    (r"replace the CPU package with `pip [^`]*` and `pip [^`]*`", "ask the user to replace the CPU package"),
)
_KINDS: Mapping[str, str] = {  # Python's names of what JSON has
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "NoneType": "null",
}
_CHARS_MAX, _END_CHARS = 2_000, 1_000  # of a message, whatever it quotes; its end says what is allowed
_KIND = re.compile(rf", not ({'|'.join(_KINDS)})(?![\w'])")
_COMMAND = re.compile(r"((?:see|check it with) )?`nacre ([a-z ]+)`")


def for_agents(text: str, offered: Container[str]) -> str:
    """The text with tools in place of commands and JSON's types in place of Python's, and not too long.

    `offered` are the names of the tools that the caller has.
    """
    if len(text) > _CHARS_MAX:
        text = f"{text[: _CHARS_MAX - _END_CHARS]} … {text[-_END_CHARS:]}"
    text = _KIND.sub(lambda found: f", not {_KINDS[found[1]]}", text)
    if "`" not in text:
        return text
    for pattern, words in PEOPLE:
        text = re.sub(pattern, words, text)

    def tool(found: re.Match[str]) -> str:
        lead, command = found[1] or "", found[2]
        if command not in TOOLS:
            return found[0]
        name, otherwise = TOOLS[command]
        return f"{lead}`{name}`" if name in offered else otherwise

    return _COMMAND.sub(tool, text)
