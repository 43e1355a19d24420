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
    (r"run `nacre reembed`(?: to compute them again)?", "ask the user to re-embed the store"),
    (r"reinstall it with `pip [^`]*`", "ask the user to reinstall Nacre"),
    (r"install them with `pip [^`]*`", "ask the user to install them"),
    (r"replace the CPU package with `pip [^`]*` and `pip [^`]*`", "ask the user to replace the CPU package"),
)
_COMMAND = re.compile(r"((?:see|check it with) )?`nacre ([a-z ]+)`")


def for_agents(text: str, offered: Container[str]) -> str:
    """The text with tools in place of commands. `offered` are the names of the tools that the caller has."""
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
