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
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from nacre.errors import InvalidInput
from nacre.validation import storable

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

Client: TypeAlias = Literal["claude-code", "claude-desktop", "cursor", "codex", "vscode"]
Scope: TypeAlias = Literal["user", "project"]
Entry: TypeAlias = dict[str, Any]

NAME = "nacre"
USER_ONLY: tuple[Client, ...] = ("claude-desktop", "codex")
NO_FOLDER: tuple[Client, ...] = ("claude-desktop",)  # starts servers in no project's folder and names none
_SERVERS: Mapping[Client, str] = {
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "cursor": "mcpServers",
    "codex": "mcp_servers",
    "vscode": "servers",
}
_NAMES = re.compile(r"[A-Za-z0-9_-]{1,64}")  # clients build names of tools from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What decides which file a client reads."""

    platform: str  # as in sys.platform
    environment: Mapping[str, str]
    home: Path
    folder: Path  # the project


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
    def snippet(self) -> str:
        """A file that holds the entry and nothing else."""
        if self.client == "codex":
            return _toml_table(self)
        return _json({self.servers: {self.name: self.entry}})


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a file: `before` is None if there is no file, `after` is None if nothing changes."""

    plan: Plan
    before: bytes | None
    after: bytes | None
    entry: Entry | None  # that is written or, on removal, removed


# ---------------------------------------------------------------- files and entries


def plan(client: Client, place: Place, command: Sequence[str], scope: Scope = "user", name: str = NAME) -> Plan:
    """`command` is the server with all its arguments."""
    if scope == "project" and client in USER_ONLY:
        raise InvalidInput("scope", f"is project; for {client} only user is allowed")
    if not _NAMES.fullmatch(name):
        raise InvalidInput("name", f"is {name!r}; 1 to 64 letters, digits, _ and - are allowed")
    for each in command:
        if not storable(each):
            raise InvalidInput(
                "command", f"{each!r} cannot be written to a file as text; install Nacre under another path"
            )
    entry: Entry = {"command": command[0], "args": list(command[1:])}
    return Plan(
        client=client,
        scope=scope,
        path=_config_path(client, scope, place),
        servers=_SERVERS[client],
        name=name,
        entry={"type": "stdio"} | entry if client == "vscode" else entry,
    )


def server_command(python: Path, platform: str, arguments: Sequence[str]) -> list[str]:
    """A command for the server that works in any folder: the `nacre` of this Python's environment, or its module."""
    program = python.with_name("nacre.exe" if platform == "win32" else "nacre")
    start = [str(program)] if program.is_file() else [str(python), "-m", "nacre"]
    return [*start, "mcp", *arguments]


def _config_path(client: Client, scope: Scope, place: Place) -> Path:
    root = place.folder if scope == "project" else place.home
    match client:
        case "claude-code" if scope == "project":
            return root / ".mcp.json"
        case "claude-code":
            return _folder(place, "CLAUDE_CONFIG_DIR", root) / ".claude.json"
        case "claude-desktop":
            return _claude_desktop(place)
        case "cursor":
            return root / ".cursor" / "mcp.json"
        case "codex":
            return _folder(place, "CODEX_HOME", root / ".codex") / "config.toml"
        case "vscode":
            return (root / ".vscode" if scope == "project" else _applications(place) / "Code" / "User") / "mcp.json"


def _claude_desktop(place: Place) -> Path:
    """On Windows the app may be installed as a package, which has a folder of its own instead of the usual one."""
    below = Path("Claude") / "claude_desktop_config.json"
    usual = _applications(place) / below
    if place.platform != "win32":
        return usual
    packages = _folder(place, "LOCALAPPDATA", place.home / "AppData" / "Local") / "Packages"
    packaged = [each / "LocalCache" / "Roaming" / below for each in sorted(packages.glob("Claude_*"))]
    candidates = [*packaged, usual]
    return next((each for each in candidates if each.is_file()), candidates[0])


def _applications(place: Place) -> Path:
    """The platform's folder for the users' application data."""
    if place.platform == "win32":
        return _folder(place, "APPDATA", place.home / "AppData" / "Roaming")
    if place.platform == "darwin":
        return place.home / "Library" / "Application Support"
    return _folder(place, "XDG_CONFIG_HOME", place.home / ".config")


def _folder(place: Place, variable: str, default: Path) -> Path:
    given = place.environment.get(variable)
    return Path(given) if given else default


# ---------------------------------------------------------------- changes


def installation(plan: Plan) -> Change:
    """The file with the entry. What the user added to the entry, such as environment variables, stays."""
    text, before = _read(plan)
    document, servers = _parsed(text, plan)
    old = servers.get(plan.name)
    kept = old if isinstance(old, dict) and "url" not in old else {}  # an entry with a URL is another server
    entry = kept | plan.entry
    if entry == old:
        return Change(plan, before, None, entry)
    expected = document | {plan.servers: servers | {plan.name: entry}}
    return Change(plan, before, _edited(text, plan, expected, entry), entry)


def removal(plan: Plan) -> Change:
    """The file without the entry."""
    text, before = _read(plan)
    document, servers = _parsed(text, plan)
    if plan.name not in servers:
        return Change(plan, before, None, None)
    expected = document | {plan.servers: {name: each for name, each in servers.items() if name != plan.name}}
    return Change(plan, before, _edited(text, plan, expected, None), servers[plan.name])


def _read(plan: Plan) -> tuple[str, bytes | None]:
    try:
        before = plan.path.read_bytes()
        return before.decode("utf-8"), before
    except FileNotFoundError:
        return "", None
    except (OSError, UnicodeDecodeError) as error:
        _by_hand(plan, f"cannot be read ({error})")


def _parsed(text: str, plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document, and the servers in it."""
    try:
        document = _parse(text, plan)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if plan.client == "codex" else "JSON without comments"
        _by_hand(plan, f"is not valid {kind} ({error})")
    servers = document.get(plan.servers, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        _by_hand(plan, f"must be an object, and {plan.servers!r} in it must be one, too")
    return document, servers


def _parse(text: str, plan: Plan) -> Any:
    plain = text.removeprefix("\ufeff")
    if plan.client == "codex":
        return tomllib.loads(plain)
    return json.loads(plain, object_pairs_hook=_object, parse_constant=_no_number) if plain.strip() else {}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. One that has a key twice cannot be written back unchanged."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} is there twice")
        found[name] = value
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _edited(text: str, plan: Plan, expected: dict[str, Any], entry: Entry | None) -> bytes:
    """The text with the entry, or without. It is parsed and compared with the expected document first."""
    try:
        edited = _toml_edited(text, plan, entry) if plan.client == "codex" else _json_edited(text, expected)
        same = _canonical(_parse(edited, plan), plan) == _canonical(expected, plan)
    except (ValueError, RecursionError):
        same = False
    if not same:
        _by_hand(plan, "cannot be edited without losing something")
    return edited.encode("utf-8")


def _canonical(document: dict[str, Any], plan: Plan) -> str:
    """The same for equal documents. An empty table of servers equals a missing one."""
    compared = {name: each for name, each in document.items() if name != plan.servers or each}
    return json.dumps(compared, sort_keys=True, default=repr)


def _by_hand(plan: Plan, problem: str) -> NoReturn:
    raise InvalidInput(
        str(plan.path), f"{problem}; nothing was changed. Add this entry by hand:\n{plan.snippet.rstrip()}"
    )


# ---------------------------------------------------------------- JSON


def _json_edited(text: str, document: dict[str, Any]) -> str:
    """The document as JSON, with the indentation and the line ends of the file."""
    indent = re.search(r'\n([ \t]+)"', text)
    written = _json(document, indent[1] if indent else "  ")
    if text.strip() and not text.endswith("\n"):
        written = written.rstrip("\n")
    if "\r\n" in text:
        written = written.replace("\n", "\r\n")
    return "\ufeff" + written if text.startswith("\ufeff") else written


def _json(value: Any, indent: str = "  ") -> str:
    written = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False) + "\n"
    return re.sub(
        "[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written
    )  # lone surrogates, which UTF-8 cannot encode


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
    path = change.plan.path
    real = Path(os.path.realpath(path))  # a symbolic link stays one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        real.parent.mkdir(parents=True, exist_ok=True)
        copy = None if change.before is None else _backup(path, change.before, now)
        _replace(real, change)
    except OSError as error:
        _by_hand(change.plan, f"cannot be written ({error})")
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
            raise InvalidInput(str(change.plan.path), "was changed by another program meanwhile; run the command again")
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
