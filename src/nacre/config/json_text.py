"""Edits JSON as text: a value is put in, appended or removed, and every other character of the file stays.

Comments and a comma after the last member are understood and kept, because clients write them into such files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Path: TypeAlias = Sequence[str | int]

_SPACE = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])|(?:true|false|null)(?!\w)")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*+\*/[ \t]*)?(?=\r?\n|\Z)")
_BOM = "\ufeff"


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    value: Any
    members: list[_Member] = field(default_factory=list)


@dataclass(slots=True)
class _Member:
    name: str | int
    start: int  # of the name in an object, of the value in a list
    node: _Node
    comma: int | None = None  # where the one after it is


def read(text: str) -> Any:
    """The value. A blank text is an empty object. An object that has a key twice cannot be edited."""
    return {} if not text.removeprefix(_BOM).strip() else _parsed(text).value


def put(text: str, path: Path, value: Any) -> str:
    """The text with this value in place of what is there, or as the last member. Missing objects are made."""
    if not text.removeprefix(_BOM).strip():
        return text[: len(text) - len(text.lstrip(_BOM))] + rendered(_nested(path, value), "  ") + "\n"
    parent = node = _parsed(text)
    for depth, name in enumerate(path):
        parent, found = node, _member(node, name)
        if found is None:
            return _appended(text, parent, name, _nested(path[depth + 1 :], value))
        node = found.node
    inline = bool(node.members) and "\n" not in text[node.start : node.end]
    new = _rendered(text, value, _indentation(text, node.start), inline=inline)
    return text[: node.start] + new + text[node.end :]


def append(text: str, path: Path, value: Any) -> str:
    """The text with this value at the end of the list, which is made if it is missing."""
    if not isinstance(_at(read(text), path), list):
        return put(text, path, [value])
    node = _parsed(text)
    for name in path:
        found = _member(node, name)
        assert found is not None
        node = found.node
    return _appended(text, node, len(node.members), value)


def remove(text: str, path: Path) -> str:
    """The text without this member."""
    node = _parsed(text)
    for name in path[:-1]:
        found = _member(node, name)
        assert found is not None
        node = found.node
    number = next(each for each, member in enumerate(node.members) if member.name == path[-1])
    return _without(text, node, number)


def rendered(value: Any, indent: str | None) -> str:
    """JSON, where None is one line. Halves of characters, which UTF-8 cannot encode, are escaped."""
    written = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", written)


def _at(value: Any, path: Path) -> Any:
    for name in path:
        if isinstance(name, int) or not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def _nested(path: Path, value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _member(node: _Node, name: str | int) -> _Member | None:
    return next((each for each in node.members if each.name == name), None)


# ---------------------------------------------------------------- reading


def _parsed(text: str) -> _Node:
    start = _space(text, len(text) - len(text.removeprefix(_BOM)))
    node = _value(text, start)
    end = _space(text, node.end)
    if end != len(text):
        raise _error(text, end, "something follows the end")
    return node


def _value(text: str, at: int) -> _Node:
    if text[at : at + 1] in ("{", "["):
        return _container(text, at)
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise _error(text, at, "a value is expected")
    return _Node(at, found.end(), json.loads(found[0]))


def _container(text: str, start: int) -> _Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    members: list[_Member] = []
    names: set[str | int] = set()
    at = _space(text, start + 1)
    while text[at : at + 1] != close:
        if members and members[-1].comma is None:
            raise _error(text, at, f"a comma or {close} is expected")
        begin, name = at, len(members)
        key: str | int = name
        if is_object:
            key, at = _name(text, at)
            if key in names:
                raise _error(text, begin, f"the key {key!r} is there twice")
            names.add(key)
        node = _value(text, at)
        at = _space(text, node.end)
        members.append(_Member(key, begin, node))
        if text[at : at + 1] == ",":
            members[-1].comma = at
            at = _space(text, at + 1)
    value = {each.name: each.node.value for each in members} if is_object else [each.node.value for each in members]
    return _Node(start, at + 1, value, members)


def _name(text: str, at: int) -> tuple[str, int]:
    """The name of a member, and where its value begins."""
    found = _STRING.match(text, at)
    if found is None:
        raise _error(text, at, "a name in double quotes is expected")
    colon = _space(text, found.end())
    if text[colon : colon + 1] != ":":
        raise _error(text, colon, "a colon is expected")
    name: str = json.loads(found[0])
    return name, _space(text, colon + 1)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _error(text: str, at: int, problem: str) -> ValueError:
    line = text.count("\n", 0, at) + 1
    return ValueError(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {problem}")


# ---------------------------------------------------------------- writing


def _appended(text: str, parent: _Node, name: str | int, value: Any) -> str:
    """The text with a member at the end of an object or of a list."""
    last = parent.members[-1] if parent.members else None
    label = "" if isinstance(name, int) else rendered(name, None) + ": "
    newline = "\r\n" if "\r\n" in text else "\n"
    if last is None:
        return _first(text, parent, label, value, newline)
    if not _begins_line(text, last.start):
        new = f"{label}{rendered(value, None)}"
        if last.comma is None:
            return f"{text[: last.node.end]}, {new}{text[last.node.end :]}"
        return f"{text[: last.comma + 1]} {new},{text[last.comma + 1 :]}"
    indent = _indentation(text, last.start)
    item = f"{newline}{indent}{label}{_rendered(text, value, indent)}"
    at = last.node.end if last.comma is None else last.comma + 1
    rest = _REST_OF_LINE.match(text, at)
    end = rest.end() if rest else at
    if last.comma is None:
        return f"{text[:at]},{text[at:end]}{item}{text[end:]}"
    return f"{text[:end]}{item},{text[end:]}"


def _first(text: str, parent: _Node, label: str, value: Any, newline: str) -> str:
    inside = text[parent.start + 1 : parent.end - 1].rstrip()
    outer = _indentation(text, parent.start)
    if "\n" not in text.strip() and _space(text, text.startswith(_BOM)) != parent.start:
        return f"{text[: parent.start + 1]}{inside}{label}{rendered(value, None)}{text[parent.end - 1 :]}"
    indent = outer + _unit(text)
    item = f"{newline}{indent}{label}{_rendered(text, value, indent)}{newline}{outer}"
    return f"{text[: parent.start + 1]}{inside}{item}{text[parent.end - 1 :]}"


def _without(text: str, parent: _Node, number: int) -> str:
    """The text without a member, its comma, and its line, if it has one for itself."""
    member = parent.members[number]
    previous = parent.members[number - 1] if number else None
    start, end = member.start, member.node.end if member.comma is None else member.comma + 1
    rest = _REST_OF_LINE.match(text, end)
    dropped: int | None = None  # the comma before it, which would be one too many
    if member.comma is None and previous is not None:
        dropped = previous.comma
    if _begins_line(text, start):
        start = text.rfind("\n", 0, start) + 1
        if rest:
            end = rest.end()
        before_it = text[parent.start + 1 if previous is None else previous.node.end : start]
        if rest or (text[end : end + 1] in ("}", "]") and "//" not in before_it):  # with the line's end before it
            start = max(parent.start + 1, start - (2 if text[:start].endswith("\r\n") else 1))
    elif dropped is not None and not text[dropped + 1 : start].strip():
        start, dropped = dropped, None
    elif member.comma is not None:
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    before = text[:start] if dropped is None else text[:dropped] + text[dropped + 1 : start]
    removed = len(text) - (len(before) + len(text[end:]))
    left = before + text[end:]
    inside = left[parent.start + 1 : parent.end - 1 - removed]
    return left if inside.strip() else left[: parent.start + 1] + left[parent.end - 1 - removed :]


def _rendered(text: str, value: Any, indent: str, *, inline: bool = False) -> str:
    if inline:
        return rendered(value, None)
    newline = "\r\n" if "\r\n" in text else "\n"
    return rendered(value, _unit(text)).replace("\n", newline + indent)


def _unit(text: str) -> str:
    """What one level is indented by in this text."""
    found = re.search(r'\n([ \t]+)"', text)
    return found[1] if found else "  "


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, at: int) -> bool:
    return text[:at].rstrip(" \t").endswith("\n")
