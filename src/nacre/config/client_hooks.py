"""The hooks of agents' clients: where they are configured, and Nacre's own among them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nacre.config import json_text
from nacre.config.client_config import Change, Client, File, Place, Scope, by_hand, folder_of, read
from nacre.errors import InvalidInput

TIMEOUT_S = 10
# For each client, what runs at which of its events.
EVENTS: Mapping[Client, Mapping[str, str]] = {
    "claude-code": {
        "SessionStart": "context",
        "UserPromptSubmit": "context",
        "Stop": "remember",
        "SessionEnd": "remember",
    },
    "codex": {"SessionStart": "context", "UserPromptSubmit": "context", "Stop": "remember"},
    "cursor": {
        "sessionStart": "context",
        "beforeSubmitPrompt": "remember",
        "afterAgentResponse": "remember",
    },
}
_OURS = re.compile(  # a command that is nothing else
    r"""(?:"[^"]*nacre(?:\.exe)?"|'[^']*nacre(?:\.exe)?'|\S*nacre(?:\.exe)?|.*\s-m\s+nacre)\s+hook\s+(?:context|remember)\b[^|;&<>]*"""
)
_Where: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlan:
    """Hooks for a file, beside those of others. `commands` has the command of each event."""

    client: Client
    path: Path
    commands: Mapping[str, str]

    @property
    def content(self) -> dict[str, Any]:
        """A file that has these hooks only."""
        hooks = {event: [_group(self.client, command)] for event, command in self.commands.items()}
        return ({"version": 1} if self.client == "cursor" else {}) | {"hooks": hooks}

    @property
    def file(self) -> File:
        return File(self.path, json_text.rendered(self.content, "  ") + "\n")


def plan(
    client: Client, place: Place, program: Sequence[str], arguments: Sequence[str], scope: Scope = "user"
) -> HookPlan:
    """`program` starts Nacre, `arguments` follow the name of the hook."""
    if client not in EVENTS:
        raise InvalidInput("hooks", f"are not known of {client}; its agent has the tools. Known: {', '.join(EVENTS)}")
    commands = {
        event: _shell(client, [*program, "hook", verb, *arguments], place.platform)
        for event, verb in EVENTS[client].items()
    }
    return HookPlan(client=client, path=_path(client, scope, place), commands=commands)


def _shell(client: Client, command: Sequence[str], platform: str) -> str:
    """Claude Code runs hooks in bash on Windows, too."""
    posix = platform != "win32" or client == "claude-code"
    return shlex.join(command) if posix else subprocess.list2cmdline(command)


def _path(client: Client, scope: Scope, place: Place) -> Path:
    root = place.folder if scope == "project" else place.home
    if client == "cursor":
        return root / ".cursor" / "hooks.json"
    if client == "codex":
        usual = root / ".codex"
        return (usual if scope == "project" else folder_of(place, "CODEX_HOME", usual)) / "hooks.json"
    if scope == "project":
        return root / ".claude" / "settings.local.json"  # the one that is not shared, as it has paths of this machine
    return folder_of(place, "CLAUDE_CONFIG_DIR", root / ".claude") / "settings.json"


def _group(client: Client, command: str) -> dict[str, Any]:
    if client == "cursor":
        return {"command": command}
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}


# ---------------------------------------------------------------- changes


def installation(plan: HookPlan) -> Change:
    """The file with the hooks. One of ours that is there already gets the command; what was added to it stays."""
    text, before = read(plan.file)
    document = _parsed(text, plan)
    new = text
    if plan.client == "cursor" and "version" not in document:
        new = json_text.put(new, ("version",), 1)
    for event, command in plan.commands.items():
        new = _with(new, event, command, plan)
    if new == text:
        return Change(plan.file, before, None, plan.content)
    return Change(plan.file, before, _checked(new, plan), plan.content)


def _with(text: str, event: str, command: str, plan: HookPlan) -> str:
    """One hook of ours at the event, where it was. Others of ours, such as from an earlier path, would run as well."""
    ours = [where for where, _ in _hooks(json_text.read(text)) if where[1] == event]
    for where in reversed(ours[1:]):
        text = _removed(text, where)
    if not ours:
        return json_text.append(text, ("hooks", event), _group(plan.client, command))
    there = dict(_hooks(json_text.read(text)))
    return text if there[ours[0]] == command else json_text.put(text, (*ours[0], "command"), command)


def removal(plan: HookPlan) -> Change:
    """The file without any hook of ours, whatever its options."""
    text, before = read(plan.file)
    new = text
    ours = [where for where, _ in _hooks(_parsed(text, plan))]
    for where in reversed(ours):
        new = _removed(new, where)
    if not ours:
        return Change(plan.file, before, None, None)
    return Change(plan.file, before, _checked(new, plan), plan.content)


def _removed(text: str, where: _Where) -> str:
    """The text without a hook, and without a group, an event and hooks that are empty then."""
    text = json_text.remove(text, where)
    if len(where) > 3 and not _at(text, where[:4]):
        text = json_text.remove(text, where[:3])
    if not _at(text, where[:2]):
        text = json_text.remove(text, where[:2])
    return text if _at(text, where[:1]) else json_text.remove(text, where[:1])


def _at(text: str, path: _Where) -> Any:
    found = json_text.read(text)
    for name in path:
        found = found.get(name) if isinstance(found, dict) else found[name]
    return found


def _hooks(document: dict[str, Any]) -> Iterator[tuple[_Where, str]]:
    """Where hooks of ours are, and their commands."""
    for event, groups in document.get("hooks", {}).items():
        for number, group in enumerate(groups):
            handlers = group.get("hooks")
            place: _Where = ("hooks", event, number)
            found: list[tuple[_Where, Any]] = [(place, group)]
            if isinstance(handlers, list):
                found = [((*place, "hooks", each), handler) for each, handler in enumerate(handlers)]
            for where, handler in found:
                command = handler.get("command") if isinstance(handler, dict) else None
                if isinstance(command, str) and _OURS.fullmatch(command):
                    yield where, command


def _parsed(text: str, plan: HookPlan) -> dict[str, Any]:
    try:
        document = json_text.read(text)
    except (ValueError, RecursionError) as error:
        by_hand(plan.file, f"is not valid JSON ({error})")
    hooks = document.get("hooks", {}) if isinstance(document, dict) else None
    lists = list(hooks.values()) if isinstance(hooks, dict) else [None]
    if any(not isinstance(each, list) or any(not isinstance(group, dict) for group in each) for each in lists):
        by_hand(plan.file, "must be an object, and 'hooks' in it one of lists of objects")
    assert isinstance(document, dict)
    return document


def _checked(text: str, plan: HookPlan) -> bytes:
    """The text, after it was read again: all hooks of others must be there."""
    try:
        after = _without_ours(_parsed(text, plan))
        before = _without_ours(_parsed(read(plan.file)[0], plan))
        same = after | {"version": 1} == before | {"version": 1} if plan.client == "cursor" else after == before
    except (ValueError, RecursionError):
        same = False
    if not same:
        by_hand(plan.file, "cannot be edited without losing something")
    return text.encode("utf-8")


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    """The document without hooks of ours, and without what is empty for that reason."""
    ours = {where for where, _ in _hooks(document)}
    kept: dict[str, list[Any]] = {}
    for event, groups in document.get("hooks", {}).items():
        for number, group in enumerate(groups):
            if ("hooks", event, number) in ours:
                continue
            if not isinstance(group.get("hooks"), list):
                kept.setdefault(event, []).append(group)
                continue
            handlers = [
                each
                for place, each in enumerate(group["hooks"])
                if ("hooks", event, number, "hooks", place) not in ours
            ]
            if handlers:
                kept.setdefault(event, []).append(group | {"hooks": handlers})
    left = {name: each for name, each in document.items() if name != "hooks"}
    return left | ({"hooks": kept} if kept else {})
