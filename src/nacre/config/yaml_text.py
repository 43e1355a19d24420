"""Edits one entry of a section in a YAML file as text; every other character of the file stays.

Only what settings files are made of is understood: a mapping of sections, in block style, with the entries below their
names. Whatever else could hide where a section ends is refused, so no parser of YAML is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_KEY = re.compile(r"""(?P<indent>[ ]*)(?P<key>"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_][^:#"'\[\]{}]*?)[ ]*:(?=[ ]|$)""")
_PLAIN = re.compile(r"[A-Za-z/~][A-Za-z0-9_./~-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}
_OPEN_QUOTE = re.compile(r"""(?:^|[:\-\[{,])[ ]+(?:"(?:[^"\\]|\\.)*\\?|'(?:[^']|'')*)$""")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


class _Block(NamedTuple):
    """The lines of a key and of what it holds, without blank lines and comments after them."""

    key: str
    start: int
    end: int


def entry(text: str, section: str, name: str) -> dict[str, Any] | None:
    """The entry; a value of a form that is not understood is None. ValueError if the file cannot be edited."""
    lines = _lines(text)
    block = _found(_entries(lines, _section(lines, section)), name)
    return None if block is None else {each.key: _value(lines, each) for each in _children(lines, block)}


def entries(text: str, section: str) -> list[str]:
    lines = _lines(text)
    return [each.key for each in _entries(lines, _section(lines, section))]


def put(text: str, section: str, name: str, values: Mapping[str, Any]) -> str:
    """The text with these values in the entry. Other values of the entry stay."""
    lines = _lines(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    where = _section(lines, section)
    known = _entries(lines, where)
    block = _found(known, name)
    if block is not None:
        return _rewritten(lines, block, values, newline)
    indent = _indent(lines[known[0].start]) if known else "  "
    new = _dumped({name: values}, indent, newline)
    if where is None:
        ended = not text or text.endswith("\n")
        return "".join(lines) + ("" if ended else newline) + f"{section}:{newline}" + new
    at = known[-1].end if known else where.start + 1
    head = lines[where.start] if known else f"{section}:{newline}"
    body = lines[where.start + 1 : at]
    if body and not body[-1].endswith("\n"):
        body[-1] += newline
    return "".join([*lines[: where.start], head, *body, new, *lines[at:]])


def remove(text: str, section: str, name: str) -> str:
    """The text without the entry, and without the section if it was the only one in it."""
    lines = _lines(text)
    where = _section(lines, section)
    known = _entries(lines, where)
    block = _found(known, name)
    assert where is not None
    assert block is not None
    head = [] if len(known) == 1 else [lines[where.start]]
    return "".join([*lines[: where.start], *head, *lines[where.start + 1 : block.start], *lines[block.end :]])


def dumped(values: Mapping[str, Any]) -> str:
    return _dumped(values, "", "\n")


# ---------------------------------------------------------------- reading


def _lines(text: str) -> list[str]:
    """The lines with their ends, if all of them are of a kind that is understood."""
    lines = text.splitlines(keepends=True)
    if any(not each.endswith("\n") for each in lines[:-1]):
        raise ValueError("it has other ends of lines than YAML")
    started = False
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise ValueError(f"line {number}: it is indented by a tab")
        if _OPEN_QUOTE.search(line.rstrip("\r\n")):
            raise ValueError(f"line {number}: a text goes over several lines")
        if line[0] not in " -" or line.startswith("---"):
            if line.startswith("---") and not started and bare == "---":
                continue
            if not _KEY.match(line.rstrip("\r\n")):
                raise ValueError(f"line {number}: {bare[:40]!r} is no key of a mapping in block style")
            started = True
        elif not started:
            raise ValueError(f"line {number}: the file is no mapping")
    return lines


def _section(lines: Sequence[str], name: str) -> _Block | None:
    sections = _blocks(lines, 0, len(lines), "")
    found = [each for each in sections if each.key == name]
    if len(found) > 1:
        raise ValueError(f"the key {name!r} is there twice")
    return found[0] if found else None


def _entries(lines: Sequence[str], section: _Block | None) -> list[_Block]:
    """What is in the section. An empty one may say so in place."""
    if section is None:
        return []
    said = _said(lines, section)
    if said in ("{}", "null", "~") and section.end == section.start + 1:
        return []
    if said:
        raise ValueError(f"line {section.start + 1}: {section.key!r} is not in block style")
    return _children(lines, section)


def _children(lines: Sequence[str], block: _Block) -> list[_Block]:
    inside = [each for each in lines[block.start + 1 : block.end] if _is_content(each)]
    if not inside or _said(lines, block):
        return []
    indent = _indent(inside[0])
    if len(indent) <= len(_indent(lines[block.start])) or any(len(_indent(each)) < len(indent) for each in inside):
        raise ValueError(f"line {block.start + 1}: {block.key!r} is not a mapping in block style")
    return _blocks(lines, block.start + 1, block.end, indent)


def _blocks(lines: Sequence[str], start: int, end: int, indent: str) -> list[_Block]:
    """The keys with this indentation between two lines."""
    blocks: list[_Block] = []
    for number in range(start, end):
        line = lines[number].rstrip("\r\n")
        if not _is_content(line) or line == "---":
            continue
        if _indent(line) == indent and not line.startswith(indent + "- ") and line.strip() != "-":
            found = _KEY.match(line)
            if found is None:
                raise ValueError(f"line {number + 1}: {line.strip()[:40]!r} is no key of a mapping in block style")
            key = str(_scalar(found["key"])) if found["key"][0] in "\"'" else found["key"]
            blocks.append(_Block(key, number, number + 1))
        elif not blocks:
            raise ValueError(f"line {number + 1}: {line.strip()[:40]!r} is no key of a mapping in block style")
        else:
            blocks[-1] = blocks[-1]._replace(end=number + 1)
    return blocks


def _found(blocks: Sequence[_Block], name: str) -> _Block | None:
    found = [each for each in blocks if each.key == name]
    if len(found) > 1:
        raise ValueError(f"the key {name!r} is there twice")
    return found[0] if found else None


def _value(lines: Sequence[str], block: _Block) -> Any:
    """A scalar, a list of scalars, or a mapping of them; None for anything else."""
    said = _said(lines, block)
    inside = [each.strip() for each in lines[block.start + 1 : block.end] if _is_content(each)]
    if said:
        return _scalar(said) if not inside else None
    if all(each.startswith("- ") for each in inside):
        return [_scalar(each[2:].strip()) for each in inside]
    try:
        return {each.key: _scalar(_said(lines, each)) for each in _children(lines, block)}
    except ValueError:
        return None


def _said(lines: Sequence[str], block: _Block) -> str:
    """What stands on the line of a key after the colon, without a comment."""
    line = lines[block.start].rstrip("\r\n")
    found = _KEY.match(line)
    assert found is not None
    rest = line[found.end() :].strip()
    if rest[:1] in ("'", '"', "[", "{"):
        return re.sub(r"[ ]+#[^\"']*$", "", rest)
    return "" if rest.startswith("#") else re.sub(r"[ ]+#.*$", "", rest)


def _scalar(said: str) -> Any:
    if said.startswith("'") and said.endswith("'") and len(said) > 1:
        return said[1:-1].replace("''", "'")
    if re.fullmatch(r"true|false|-?(?:0|[1-9][0-9]*)", said) or said[:1] in ('"', "[", "{"):
        try:
            return json.loads(said)
        except ValueError:
            return None
    return None if said in ("null", "~", "") or said[:1] in "&*!|>%@`" else said


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


# ---------------------------------------------------------------- writing


def _rewritten(lines: list[str], block: _Block, values: Mapping[str, Any], newline: str) -> str:
    """Values that are there keep their places; the others follow the last one."""
    children = _children(lines, block)
    if not children:
        raise ValueError(f"line {block.start + 1}: {block.key!r} is not a mapping in block style")
    indent = _indent(lines[children[0].start])
    replaced = {each.start: each for each in children if each.key in values}
    missing = {name: value for name, value in values.items() if name not in {each.key for each in children}}
    new: list[str] = []
    number = 0
    while number < len(lines):
        child = replaced.get(number)
        if child is None:
            new.append(lines[number])
            number += 1
        else:
            same = _value(lines, child) == values[child.key]
            text = "".join(lines[number : child.end])
            new.append(text if same else _dumped({child.key: values[child.key]}, indent, newline))
            number = child.end
        if number == block.end and missing:
            if not new[-1].endswith("\n"):
                new[-1] += newline
            new.append(_dumped(missing, indent, newline))
    return "".join(new)


def _dumped(values: Mapping[str, Any], indent: str, newline: str) -> str:
    text = ""
    for name, value in values.items():
        text += f"{indent}{_written(name)}:"
        if isinstance(value, Mapping) and value:
            text += newline + _dumped(value, indent + "  ", newline)
        elif isinstance(value, list) and value:
            text += newline + "".join(f"{indent}  - {_written(each)}{newline}" for each in value)
        else:
            text += f" {_written(value)}{newline}"
    return text


def _written(value: Any) -> str:
    """A scalar. JSON in one line is valid YAML, except for characters that YAML does not print."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    written = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda each: f"\\u{ord(each[0]):04x}", written)
