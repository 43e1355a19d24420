"""JSON that comes back from metadata exactly as it went in, whatever its depth, its numbers and its size.

Metadata is JSON of limited depth, numbers and size. A value that does not fit is kept as a text of JSON, if need be in
pieces, one in each of several memories. Private parts and secrets are taken out of its strings before, as they are of
all metadata.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.types.memory import Json
from nacre.validation import storable

_WHOLE_CHARS = 48_000  # of metadata, which holds 65,536 bytes
_PIECE_CHARS = 24_000  # quoting may double them
_DEPTH_MAX = 28
_INT64 = 2**63
_TOO_DEEP = "is nested too deep; some hundred levels are allowed"
_ENCODED = "base64:"  # begins no JSON


def packed(memory: Nacre, name: str, value: object) -> dict[str, Json]:
    """The fields of metadata that keep a value under a name: as it is where metadata can have it so."""
    plain, text = _plain(name, value)
    return {name: plain} if fits(plain) else {f"{name}_json": screened_text(memory, plain, text, name)}


def unpacked(name: str, metadata: Mapping[str, Json]) -> Any:
    """The value that `packed` kept. KeyError: there is none."""
    return metadata[name] if name in metadata else read(str(metadata[f"{name}_json"]))


def in_pieces(memory: Nacre, name: str, value: object) -> list[dict[str, Json]]:
    """Like `packed`, for the metadata of several memories if it is too large for one."""
    plain, text = _plain(name, value)
    if len(text) <= _WHOLE_CHARS and fits(plain):
        return [{name: plain}]
    pieces = cut(memory, screened_text(memory, plain, text, name), _PIECE_CHARS)
    return [{f"{name}_piece": piece, f"{name}_pieces": len(pieces)} for piece in pieces]


def joined(name: str, metadata: Sequence[Mapping[str, Json]]) -> Any:
    """The value that `in_pieces` kept in the metadata of these memories. KeyError: a piece is missing."""
    if name in metadata[0]:
        return metadata[0][name]
    if metadata[0][f"{name}_pieces"] != len(metadata):
        raise KeyError(name)
    return read("".join(str(each[f"{name}_piece"]) for each in metadata))


def check(field: str, value: object) -> None:
    """Refuse what JSON would change, such as a tuple, a time or a key that is no text."""
    try:
        _check(field, value)
    except RecursionError:
        raise InvalidInput(field, _TOO_DEEP) from None


def _check(field: str, value: object) -> None:
    match value:
        case dict():
            for key, each in value.items():
                if not isinstance(key, str):
                    raise InvalidInput(field, f"has the key {key!r}; keys of JSON are texts")
                _check(f"{field}.{key}", each)
        case list():
            for at, each in enumerate(value):
                _check(f"{field}[{at}]", each)
        case None | str() | bool() | int() | float():
            pass
        case _:
            raise InvalidInput(field, f"is a {type(value).__name__}; JSON has texts, numbers, lists and mappings")


def _plain(name: str, value: object) -> tuple[Any, str]:
    """The value as JSON has it, and as ASCII text."""
    try:
        text = json.dumps(value)
        return json.loads(text), text
    except RecursionError:
        raise InvalidInput(name, _TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(name, f"is not JSON: {error}") from None


def fits(value: Any, depth: int = 0) -> bool:
    """Whether metadata keeps a value as it is, whatever its size."""
    match value:
        case dict():
            return depth < _DEPTH_MAX and all(storable(key) and fits(each, depth + 1) for key, each in value.items())
        case list():
            return depth < _DEPTH_MAX and all(fits(each, depth + 1) for each in value)
        case str():
            return storable(value)
        case float():
            return math.isfinite(value)
        case int():
            return -_INT64 <= value < _INT64
    return True


def screened_text(memory: Nacre, plain: Any, text: str, name: str = "value") -> str:
    """The value as a text that screening leaves as it is, however it is cut.

    As an escape, `<` begins no tag, of which a piece may have one end. Where texts that are no secrets make one side by
    side, they are encoded.
    """
    try:
        screened = screened_json(memory, plain)
    except RecursionError:
        raise InvalidInput(name, _TOO_DEEP) from None
    text = (text if screened == plain else json.dumps(screened)).replace("<", "\\u003c")
    return text if _is_left(memory, text) else _encoded(text)


def cut(memory: Nacre, text: str, chars: int) -> list[str]:
    """A text of `screened_text` in pieces that screening leaves as they are, too. `read` takes them joined again."""
    pieces = [text[at : at + chars] for at in range(0, len(text), chars)]
    if text.startswith(_ENCODED) or all(_is_left(memory, each) for each in pieces):
        return pieces
    return cut(memory, _encoded(text), chars)


def read(text: str) -> Any:
    """The value that `screened_text` made a text of."""
    if text.startswith(_ENCODED):
        text = base64.b64decode(text.removeprefix(_ENCODED)).decode()
    return json.loads(text)


def _encoded(text: str) -> str:
    return _ENCODED + base64.b64encode(text.encode()).decode()


def _is_left(memory: Nacre, text: str) -> bool:
    try:
        return memory.screen(text).text == text
    except InvalidInput:  # secrets are refused
        return False


def screened_json(memory: Nacre, value: Any, name: str = "") -> Any:
    """A value as metadata would have it: without private parts, and with secrets as the policy says."""
    match value:
        case dict():
            return {memory.screen(key).text: screened_json(memory, each, key) for key, each in value.items()}
        case list():
            return [screened_json(memory, each, name) for each in value]
        case str():
            return memory.screen(value, name).text
        case int() if not isinstance(value, bool):
            text = memory.screen(str(value), name).text
            return value if text == str(value) else text
    return value
