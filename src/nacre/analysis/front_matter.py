"""The front matter of a Markdown file: its title, tags, date and other fields, apart from the text.

It stands between two lines `---` as YAML, or `+++` as TOML, at the start of a file. Of YAML, the flat subset is read
that notes use: scalars, lists in brackets and lists with dashes. What is not read stays in the text as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from nacre.types.memory import Json
from nacre.validation import storable

_TAGS = ("tags", "tag", "keywords")
_DATES = ("created", "date", "published")  # the first that is a time counts
_CHARS_MAX = 16_000  # a longer block is text: metadata has limits
_NOT_PLAIN = "&*!|>%@`{}[]\"'#,"  # a value that begins with one of these is more than a plain scalar
_DEPTH_MAX = 20
_INT64 = 2**63


class Document(NamedTuple):
    """A text, and what its front matter says of it."""

    text: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    created: datetime | None = None
    metadata: Mapping[str, Json] = {}


class _Unread(ValueError):
    """A value is beyond what is read here."""


def read(text: str) -> Document:
    """A file's text without its front matter. A file that has none, or no other text, is left as it is."""
    lines = text.removeprefix("\ufeff").split("\n")
    fence = lines[0].rstrip()
    ends = {"---": ("---", "..."), "+++": ("+++",)}.get(fence, ())
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() in ends), None) if ends else None
    if end is None:
        return Document(text)
    block = [line.rstrip("\r") for line in lines[1:end]]
    body = "\n".join(lines[end + 1 :]).lstrip("\r\n")
    if not body.strip() or sum(map(len, block)) > _CHARS_MAX:
        return Document(text)
    fields, unread = (_toml(block), []) if fence == "+++" else _yaml(block)
    if not fields:
        return Document(text)
    return _document("\n".join(["---", *unread, "---", body]) if unread else body, fields)


def _document(text: str, fields: Mapping[str, Json]) -> Document:
    title: str | None = None
    tags: list[str] = []
    metadata: dict[str, Json] = {}
    moments = {name: _moment(value) for name, value in fields.items() if name.casefold() in _DATES}
    dated = [name for key in _DATES for name in moments if name.casefold() == key and moments[name] is not None]
    for name, value in fields.items():
        found = _tags(value) if name.casefold() in _TAGS else None
        if found is not None:
            tags += found
        elif value is not None and name not in dated[:1]:
            metadata[name] = value
        if name.casefold() == "title" and isinstance(value, str) and value.strip():
            title = value.strip()  # in the metadata as well: extracted facts take it from there as their topic
    return Document(text, title, tuple(dict.fromkeys(tags)), moments[dated[0]] if dated else None, metadata)


def _tags(value: Json) -> list[str] | None:
    """Tags of a list, or of a text with commas. None if it is neither."""
    several: Json = [*value.split(",")] if isinstance(value, str) else value
    if not isinstance(several, list) or any(isinstance(each, dict | list) for each in several):
        return None
    named = (str(each).strip().removeprefix("#") for each in several if each is not None)
    return [each for each in named if each]


def _moment(value: Json) -> datetime | None:
    """A date or time in ISO 8601, where a space may stand before the time zone. Without one it is local."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip().replace(" +", "+").replace(" -", "-").replace(" Z", "Z"))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


# ---------------------------------------------------------------- TOML


def _toml(block: Sequence[str]) -> dict[str, Json]:
    """All fields, or none if one of them cannot be kept."""
    import tomllib

    try:
        return {name: _plain(value, 1) for name, value in tomllib.loads("\n".join(block)).items()}
    except (ValueError, RecursionError):
        return {}


def _plain(value: object, depth: int) -> Json:
    if depth > _DEPTH_MAX:
        raise _Unread
    if isinstance(value, dict):
        return {_text(name): _plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if _fits(value) else str(value)
    return value.isoformat() if isinstance(value, date) else _text(str(value))


def _text(value: str) -> str:
    if not storable(value):
        raise _Unread
    return value


def _fits(value: float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else -_INT64 <= value < _INT64


# ---------------------------------------------------------------- YAML


def _yaml(block: Sequence[str]) -> tuple[dict[str, Json], list[str]]:
    """The fields that can be read, and the lines of those that cannot. Of what is no YAML at all, nothing is read."""
    fields: dict[str, Json] = {}
    unread: list[str] = []
    at = 0
    while at < len(block):
        end = at + 1
        if _says_nothing(block[at]):
            at = end
            continue
        name = _key(block[at])
        if name is None:  # prose between two rulers
            return {}, []
        while end < len(block) and _continues(block[end]):
            end += 1
        try:
            if name in fields:
                raise _Unread
            fields[name] = _value(block[at].partition(":")[2].strip(), block[at + 1 : end])
        except _Unread:
            unread += block[at:end]
        at = end
    return fields, unread


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _key(line: str) -> str | None:
    """The name before the colon of a line that begins a field."""
    name, colon, rest = line.partition(":")
    plain = all(char.isalnum() or char in "_-./ " for char in name) and name == name.strip()
    return name if colon and plain and name[:1].isalnum() and (not rest or rest[0].isspace()) else None


def _continues(line: str) -> bool:
    return _says_nothing(line) or line[0].isspace() or line == "-" or line.startswith("- ")


def _value(text: str, below: Sequence[str]) -> Json:
    """The value of a field, from the rest of its line and the lines below it."""
    items = [line.strip() for line in below if not _says_nothing(line)]
    if text and not text.startswith("#"):
        if items:
            raise _Unread
        return _brackets(_uncommented(text)) if text.startswith("[") else _scalar(text)
    if any(item != "-" and not item.startswith("- ") for item in items):
        raise _Unread
    return [_item(item[1:].strip()) for item in items] or None


def _brackets(text: str) -> Json:
    if len(text) < 2 or not text.endswith("]"):
        raise _Unread
    inner = text[1:-1]
    parts: list[str] = []
    start, quote, blank = 0, "", True  # where the part begins, its open quote, whether nothing was said in it yet
    for at, char in enumerate(inner):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and blank:
            quote = char
        elif char == ",":
            parts.append(inner[start:at].strip())
            start, blank = at + 1, True
            continue
        blank = blank and char.isspace()
    last = inner[start:].strip()
    return [_item(part) for part in ([*parts, last] if last else parts)]


def _item(text: str) -> Json:
    if _key(text) is not None:  # an object in a list
        raise _Unread
    return _scalar(text)


def _scalar(text: str) -> Json:
    if text[:1] in ('"', "'"):
        return _quoted(_uncommented(text))
    text = _uncommented(text)
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text[0] in _NOT_PLAIN or text.startswith(("- ", "? ")):
        raise _Unread
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    return _number(_text(text))


def _number(text: str) -> int | float | str:
    """A number, or else the text. Digits after a leading zero are a code, not a number."""
    digits = text.removeprefix("-")
    code = digits[:1] == "0" and digits[1:2].isdigit()
    if code or not digits.isascii() or not digits[:1].isdigit() or "_" in digits:
        return text
    try:
        value = float(text) if "." in digits or "e" in digits.lower() else int(text)
    except ValueError:
        return text
    return value if _fits(value) else text


def _quoted(text: str) -> str:
    inner = text[1:-1]
    if len(text) < 2 or text[-1] != text[0]:
        raise _Unread
    if text[0] == "'":
        if "'" in inner.replace("''", ""):
            raise _Unread
        return _text(inner.replace("''", "'"))
    try:
        value = json.loads(text)
    except ValueError:
        raise _Unread from None
    if not isinstance(value, str):
        raise _Unread
    return _text(value)


def _uncommented(text: str) -> str:
    """The value without the comment after it."""
    end = text.find(" #", text.rfind(text[0]) if text[:1] in ('"', "'") else 0)
    return text if end < 0 else text[:end].rstrip()
