"""The configuration files of MCP clients: where they are, the entry for Nacre's server, and how it is written."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias
from urllib.parse import urlsplit

from nacre.config import json_text, yaml_text
from nacre.errors import InvalidInput
from nacre.validation import storable

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

Client: TypeAlias = Literal[
    "claude-code",
    "claude-desktop",
    "cursor",
    "codex",
    "vscode",
    "gemini-cli",
    "opencode",
    "windsurf",
    "zed",
    "cline",
    "goose",
    "copilot-cli",
]
Scope: TypeAlias = Literal["user", "project"]
Language: TypeAlias = Literal["JSON", "TOML", "YAML"]
Entry: TypeAlias = dict[str, Any]

NAME = "nacre"
USER_ONLY: tuple[Client, ...] = ("claude-desktop", "windsurf", "cline", "goose")
NO_FOLDER: tuple[Client, ...] = ("claude-desktop",)  # starts servers in no project's folder and names none
GOOSE_TIMEOUT_S = 300  # what goose itself writes
_ABOUT = "Memories of earlier conversations"  # goose asks for a description
_NAMES = re.compile(r"[A-Za-z0-9_-]{1,64}")  # clients build names of tools from it
_VARIABLES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESSES = ("url", "serverUrl", "httpUrl", "uri")
_NESTED = "transport"  # where Cline itself writes the settings of a server, which it reads from the entry as well


class _Format(NamedTuple):
    """How a client's file is written: its language, where the servers are, and how it names a variable in a header."""

    language: Language
    servers: str
    variable: str | None = None


_FORMATS: Mapping[Client, _Format] = {
    "claude-code": _Format("JSON", "mcpServers", "${NAME}"),
    "claude-desktop": _Format("JSON", "mcpServers"),
    "cursor": _Format("JSON", "mcpServers", "${env:NAME}"),
    "codex": _Format("TOML", "mcp_servers", "NAME"),
    "vscode": _Format("JSON", "servers", "${env:NAME}"),
    "gemini-cli": _Format("JSON", "mcpServers", "${NAME}"),
    "opencode": _Format("JSON", "mcp", "{env:NAME}"),
    "windsurf": _Format("JSON", "mcpServers", "${env:NAME}"),
    "zed": _Format("JSON", "context_servers"),
    "cline": _Format("JSON", "mcpServers"),
    "goose": _Format("YAML", "extensions", "${NAME}"),
    "copilot-cli": _Format("JSON", "mcpServers", "${NAME}"),
}
_IN_PROJECT: Mapping[Client, str] = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "vscode": ".vscode/mcp.json",
    "gemini-cli": ".gemini/settings.json",
    "zed": ".zed/settings.json",
    "copilot-cli": ".github/mcp.json",
}
TAKES_VARIABLES: tuple[Client, ...] = tuple(client for client, each in _FORMATS.items() if each.variable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What decides which file a client reads."""

    platform: str  # as in sys.platform
    environment: Mapping[str, str]
    home: Path
    folder: Path  # the project


class Address(NamedTuple):
    """A server that runs already, and the variable of the client's environment that holds its token."""

    url: str
    token_variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An entry for a file: `entry` under `name`, beside the client's other servers under `servers`."""

    client: Client
    scope: Scope
    path: Path
    servers: str
    name: str
    entry: Entry

    @property
    def language(self) -> Language:
        return language(self.client)

    @property
    def snippet(self) -> str:
        """A file that holds the entry and nothing else."""
        match self.language:
            case "TOML":
                return _toml_table(self)
            case "YAML":
                return yaml_text.dumped({self.servers: {self.name: self.entry}})
            case "JSON":
                return json_text.rendered({self.servers: {self.name: self.entry}}, "  ") + "\n"


class File(NamedTuple):
    """A file to change, and what to paste into it where that cannot be done."""

    path: Path
    snippet: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a file: `before` is None if there is no file, `after` is None if nothing changes."""

    file: File
    before: bytes | None
    after: bytes | None
    entry: Entry | None  # that is written or, on removal, removed


# ---------------------------------------------------------------- files and entries


def language(client: Client) -> Language:
    return _FORMATS[client].language


def plan(
    client: Client, place: Place, server: Sequence[str] | Address, scope: Scope = "user", name: str = NAME
) -> Plan:
    """`server` is the command that starts it, with all its arguments, or where it runs already."""
    if scope == "project" and client in USER_ONLY:
        raise InvalidInput("scope", f"is project; for {client} only user is allowed")
    if not _NAMES.fullmatch(name):
        raise InvalidInput("name", f"is {name!r}; 1 to 64 letters, digits, _ and - are allowed")
    if isinstance(server, Address):
        _check_address(client, server)
        entry = _entry_for_address(client, server, name)
    else:
        for each in server:
            if not storable(each):
                raise InvalidInput(
                    "command", f"{each!r} cannot be written to a file as text; install Nacre under another path"
                )
        entry = _entry_for_command(client, server, name)
    return Plan(
        client=client,
        scope=scope,
        path=_config_path(client, scope, place),
        servers=_FORMATS[client].servers,
        name=name,
        entry=entry,
    )


def _check_address(client: Client, server: Address) -> None:
    try:
        parts = urlsplit(server.url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not storable(server.url) or re.search(r"[\s{}$]", server.url):
        raise InvalidInput("url", f"is {server.url!r}; give one such as http://127.0.0.1:8642/mcp")
    if parts.password is not None:
        raise InvalidInput("url", "has a password, which would be written into the file; use --token-variable")
    if client == "claude-desktop":
        raise InvalidInput(
            "url", "is not possible for claude-desktop, whose file only starts servers; add it there as a connector"
        )
    if server.token_variable is None:
        return
    if not _VARIABLES.fullmatch(server.token_variable):
        raise InvalidInput("token-variable", f"is {server.token_variable!r}; give the name of a variable, not a token")
    if client not in TAKES_VARIABLES:
        raise InvalidInput(
            "token-variable",
            f"{client} is not known to read variables in headers; add the header Authorization to its file by hand",
        )


def _entry_for_command(client: Client, command: Sequence[str], name: str) -> Entry:
    entry: Entry = {"command": command[0], "args": list(command[1:])}
    match client:
        case "vscode":
            return {"type": "stdio"} | entry
        case "copilot-cli":
            return {"type": "local"} | entry | {"tools": ["*"]}
        case "opencode":
            return {"type": "local", "command": list(command)}
        case "goose":
            started = {"cmd": command[0], "args": list(command[1:])}
            return _goose(name, "stdio") | started | {"timeout": GOOSE_TIMEOUT_S}
        case _:
            return entry


def _entry_for_address(client: Client, server: Address, name: str) -> Entry:
    headers: Entry = {}
    variable, spelling = server.token_variable, _FORMATS[client].variable
    if variable and spelling:
        headers = {"headers": {"Authorization": f"Bearer {spelling.replace('NAME', variable)}"}}
    match client:
        case "codex":
            return {"url": server.url} | ({"bearer_token_env_var": variable} if variable else {})
        case "claude-code" | "vscode" | "gemini-cli":
            return {"type": "http", "url": server.url} | headers
        case "copilot-cli":
            return {"type": "http", "url": server.url} | headers | {"tools": ["*"]}
        case "cline":
            return {"type": "streamableHttp", "url": server.url}
        case "opencode":
            return {"type": "remote", "url": server.url} | headers
        case "windsurf":
            return {"serverUrl": server.url} | headers
        case "goose":
            keys: Entry = {"env_keys": [variable]} if variable else {}
            return _goose(name, "streamable_http") | {"uri": server.url} | headers | keys | {"timeout": GOOSE_TIMEOUT_S}
        case _:
            return {"url": server.url} | headers


def _goose(name: str, kind: str) -> Entry:
    return {"enabled": True, "type": kind, "name": name, "description": _ABOUT}


def program(python: Path, platform: str) -> list[str]:
    """What starts Nacre in any folder: the `nacre` of this Python's environment, or its module."""
    found = python.with_name("nacre.exe" if platform == "win32" else "nacre")
    return [str(found)] if found.is_file() else [str(python), "-m", "nacre"]


def _config_path(client: Client, scope: Scope, place: Place) -> Path:
    return _project_path(client, place) if scope == "project" else _user_path(client, place)


def _project_path(client: Client, place: Place) -> Path:
    return _opencode(place.folder) if client == "opencode" else place.folder / _IN_PROJECT[client]


def _user_path(client: Client, place: Place) -> Path:
    home = place.home
    match client:
        case "claude-code":
            return folder_of(place, "CLAUDE_CONFIG_DIR", home) / ".claude.json"
        case "claude-desktop":
            return _claude_desktop(place)
        case "codex":
            return folder_of(place, "CODEX_HOME", home / ".codex") / "config.toml"
        case "vscode":
            return _applications(place) / "Code" / "User" / "mcp.json"
        case "opencode":
            return _opencode(_configuration(place) / "opencode")
        case "zed":
            return _zed(place) / "settings.json"
        case "cline":
            usual = home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
            return folder_of(place, "CLINE_MCP_SETTINGS_PATH", usual)
        case "goose":
            return _goose_folder(place) / "config.yaml"
        case "copilot-cli":
            return folder_of(place, "COPILOT_HOME", home / ".copilot") / "mcp-config.json"
        case "windsurf":
            return home / ".codeium" / "windsurf" / "mcp_config.json"
        case _:  # in the same place as in a project
            return home / _IN_PROJECT[client]


def _claude_desktop(place: Place) -> Path:
    """On Windows the app may be installed as a package, which has a folder of its own instead of the usual one."""
    below = Path("Claude") / "claude_desktop_config.json"
    usual = _applications(place) / below
    if place.platform != "win32":
        return usual
    packages = folder_of(place, "LOCALAPPDATA", place.home / "AppData" / "Local") / "Packages"
    packaged = [each / "LocalCache" / "Roaming" / below for each in sorted(packages.glob("Claude_*"))]
    candidates = [*packaged, usual]
    return next((each for each in candidates if each.is_file()), candidates[0])


def _opencode(folder: Path) -> Path:
    """Either of two names is read."""
    candidates = [folder / "opencode.jsonc", folder / "opencode.json"]
    return next((each for each in candidates if each.is_file()), candidates[1])


def _zed(place: Place) -> Path:
    return _applications(place) / "Zed" if place.platform == "win32" else _configuration(place) / "zed"


def _goose_folder(place: Place) -> Path:
    if place.platform == "win32":
        return _applications(place) / "Block" / "goose" / "config"
    return _configuration(place) / "goose"


def _configuration(place: Place) -> Path:
    return folder_of(place, "XDG_CONFIG_HOME", place.home / ".config")


def _applications(place: Place) -> Path:
    """The platform's folder for the users' application data."""
    if place.platform == "win32":
        return folder_of(place, "APPDATA", place.home / "AppData" / "Roaming")
    if place.platform == "darwin":
        return place.home / "Library" / "Application Support"
    return _configuration(place)


def folder_of(place: Place, variable: str, default: Path) -> Path:
    given = place.environment.get(variable)
    return Path(given) if given else default


# ---------------------------------------------------------------- changes


def installation(plan: Plan) -> Change:
    """The file with the entry. What the user added to the entry, such as environment variables, stays."""
    file = File(plan.path, plan.snippet)
    text, before = read(file)
    document, servers = _parsed(text, plan)
    old = servers.get(plan.name)
    other = isinstance(old, dict) and bool(old) and (_has_address(old) != _has_address(plan.entry) or _NESTED in old)
    kept = old if isinstance(old, dict) and not other else {}
    entry = kept | plan.entry
    if entry == old:
        return Change(file, before, None, entry)
    expected = document | {plan.servers: servers | {plan.name: entry}}
    if other:  # its settings have other names, and none of them is of this server
        text = _removed(text, plan)
    return Change(file, before, _edited(text, plan, expected, kept), entry)


def removal(plan: Plan) -> Change:
    """The file without the entry."""
    file = File(plan.path, plan.snippet)
    text, before = read(file)
    document, servers = _parsed(text, plan)
    if plan.name not in servers:
        return Change(file, before, None, None)
    left = {name: each for name, each in servers.items() if name != plan.name}
    expected = document | {plan.servers: left}
    return Change(file, before, _edited(text, plan, expected, None), servers[plan.name])


def _has_address(entry: Entry) -> bool:
    """Whether the entry is of a server that runs already, which is another one than one to start."""
    return any(each in entry for each in _ADDRESSES)


def read(file: File) -> tuple[str, bytes | None]:
    try:
        before = file.path.read_bytes()
        return before.decode("utf-8"), before
    except FileNotFoundError:
        return "", None
    except (OSError, UnicodeDecodeError) as error:
        by_hand(file, f"cannot be read ({error})")


def _parsed(text: str, plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document, and the servers in it."""
    file = File(plan.path, plan.snippet)
    try:
        document = _parse(text, plan)
    except (ValueError, RecursionError) as error:
        problem = "cannot be edited safely" if plan.language == "YAML" else f"is not valid {plan.language}"
        by_hand(file, f"{problem} ({error})")
    servers = document.get(plan.servers, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        by_hand(file, f"must be an object, and {plan.servers!r} in it must be one, too")
    return document, servers


def _parse(text: str, plan: Plan) -> Any:
    """The document; of YAML only the names of the servers, and the entry."""
    match plan.language:
        case "JSON":
            return json_text.read(text)
        case "TOML":
            return tomllib.loads(text.removeprefix("\ufeff"))
        case "YAML":
            names = dict.fromkeys(yaml_text.entries(text, plan.servers))
            found = yaml_text.entry(text, plan.servers, plan.name)
            return {plan.servers: names | ({} if found is None else {plan.name: found})}


def _edited(text: str, plan: Plan, expected: dict[str, Any], kept: Entry | None) -> bytes:
    """The text with the entry, beside what is kept of it, or without it. It is parsed and compared first."""
    try:
        edited = _removed(text, plan) if kept is None else _written(text, plan, kept)
        same = _canonical(_parse(edited, plan), plan) == _canonical(expected, plan)
    except (ValueError, RecursionError):
        same = False
    if not same:
        by_hand(File(plan.path, plan.snippet), "cannot be edited without losing something")
    return edited.encode("utf-8")


def _written(text: str, plan: Plan, kept: Entry) -> str:
    match plan.language:
        case "JSON":
            return _json_edited(text, plan, kept)
        case "TOML":
            return _toml_edited(text, plan, plan.entry)
        case "YAML":
            return yaml_text.put(text, plan.servers, plan.name, plan.entry)


def _removed(text: str, plan: Plan) -> str:
    match plan.language:
        case "JSON":
            text = json_text.remove(text, (plan.servers, plan.name))
            return text if json_text.read(text)[plan.servers] else json_text.remove(text, (plan.servers,))
        case "TOML":
            return _toml_edited(text, plan, None)
        case "YAML":
            return yaml_text.remove(text, plan.servers, plan.name)


def _canonical(document: dict[str, Any], plan: Plan) -> str:
    """The same for equal documents. An empty table of servers equals a missing one."""
    compared = {name: each for name, each in document.items() if name != plan.servers or each}
    return json.dumps(compared, sort_keys=True, default=repr)


def by_hand(file: File, problem: str) -> NoReturn:
    raise InvalidInput(
        str(file.path), f"{problem}; nothing was changed. Add this entry by hand:\n{file.snippet.rstrip()}"
    )


def _json_edited(text: str, plan: Plan, kept: Entry) -> str:
    """The values of an entry that is kept are written one by one, so that comments in it stay."""
    if not kept:
        return json_text.put(text, (plan.servers, plan.name), plan.entry)
    for name, value in plan.entry.items():
        if name not in kept or kept[name] != value:
            text = json_text.put(text, (plan.servers, plan.name, name), value)
    return text


# ---------------------------------------------------------------- TOML


def _toml_edited(text: str, plan: Plan, entry: Entry | None) -> str:
    """The text with or without the entry. Comments, order and spelling of all else stay.

    Sections are edited one by one: tomlkit moves tables of a whole file next to others with the same parent.
    """
    import tomlkit
    from tomlkit.items import Table

    newline = "\r\n" if "\r\n" in text else "\n"
    edited, done = "", entry is None
    for section in _sections(text):
        document = tomlkit.parse(section.removeprefix("\ufeff"))
        servers = document.get(plan.servers)
        if not section.lstrip().startswith("[") or not isinstance(servers, Table) or plan.name not in servers:
            edited += section
        elif entry is None and servers.is_super_table():  # the section is the entry's; so is an empty line before it
            edited = re.sub(r"(\n|\A)[ \t]*\r?\n\Z", r"\1", edited) + _after_settings(document)
        elif entry is None:
            servers.remove(plan.name)
            edited += document.as_string()
        elif isinstance(table := servers[plan.name], Table) and not table.is_super_table():
            _rewrite(table, plan, newline)
            edited += document.as_string()
            done = True
        else:
            edited += section
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return edited if done else edited + gap + plan.snippet.replace("\n", newline)


def _sections(text: str) -> list[str]:
    """The text, cut before each header. A line in a string or an array is none: what is before it is not valid TOML."""
    begin = len(text) - len(text.removeprefix("\ufeff"))
    starts = [each.start() for each in re.finditer(r"^[ \t]*\[", text[begin:], re.MULTILINE)]
    cuts = [0, *(begin + each for each in starts if _is_toml(text[begin : begin + each])), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _rewrite(table: Table, plan: Plan, newline: str) -> None:
    """Settings that are there keep their places and comments; the others follow the header."""
    import tomlkit

    missing = ""
    for name, value in plan.entry.items():
        if name in table:
            table[name] = tomlkit.value(_toml_value(value))
        else:
            missing += f"{name} = {_toml_value(value)}{newline}"
    table.trivia.trail = table.trivia.trail or newline
    table.value.body.insert(0, (None, tomlkit.ws(missing)))


def _after_settings(table: TOMLDocument | Table) -> str:
    """What follows the last setting, such as a comment on the next table."""
    from tomlkit.items import Table

    text = ""
    for key, item in reversed(table.value.body if isinstance(table, Table) else table.body):
        if key is not None:
            return (_after_settings(item) if isinstance(item, Table) else "") + text
        text = item.as_string() + text
    return text


def _toml_table(plan: Plan) -> str:
    settings = "".join(f"{name} = {_toml_value(value)}\n" for name, value in plan.entry.items())
    return f"[{plan.servers}.{plan.name}]\n{settings}"


def _toml_value(value: str | list[str]) -> str:
    """A JSON string, or a list of them, is valid TOML, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---------------------------------------------------------------- writing


def write(change: Change, now: datetime) -> Path | None:
    """Carry out a change, as a whole or not at all. Returns the backup, if there was a file before."""
    assert change.after is not None
    path = change.file.path
    real = Path(os.path.realpath(path))  # a symbolic link stays one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real.parent.mkdir(parents=True, exist_ok=True)
        copy = None if change.before is None else _backup(path, change.before, now)
        _replace(real, change)
    except OSError as error:
        by_hand(change.file, f"cannot be written ({error})")
    return copy


def _backup(path: Path, data: bytes, now: datetime) -> Path:
    stamp = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    number = 1
    while True:
        copy = path.with_name(f"{path.name}.backup-{stamp}{'' if number == 1 else f'-{number}'}")
        try:
            _create(copy, data, path.stat())
        except FileExistsError:
            number += 1
        else:
            return copy


def _replace(real: Path, change: Change) -> None:
    """Write a new file and rename it, so that the file is always complete. The client may have changed it since."""
    aside = real.with_name(f".{real.name}.{os.getpid()}.tmp")
    assert change.after is not None
    try:
        _create(aside, change.after, real.stat() if change.before is not None else None)
        if (real.read_bytes() if real.exists() else None) != change.before:
            raise InvalidInput(str(change.file.path), "was changed by another program meanwhile; run the command again")
        aside.replace(real)
    finally:
        aside.unlink(missing_ok=True)


def _create(path: Path, data: bytes, like: os.stat_result | None) -> None:
    """A new file, with the owner and the permissions of the file it replaces."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o666 if like is None else 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if like is not None:
        if hasattr(os, "chown"):
            with suppress(OSError):  # only root may change the owner
                os.chown(path, like.st_uid, like.st_gid)
        path.chmod(like.st_mode & 0o7777)
