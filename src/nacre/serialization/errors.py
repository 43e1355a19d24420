"""Errors from JSON: the inverse of `encode.error`. A client raises what the library would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nacre import errors
from nacre.errors import InvalidInput, NacreError, NotFound, QuotaExceeded, ServerError, StoreCorrupt

_KINDS: Mapping[str, type[NacreError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, NacreError)
}


def error(value: object) -> NacreError | None:
    """The error that a JSON object tells, or None if it tells none. One of an unknown type is a ServerError."""
    told = value.get("error") if isinstance(value, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        return None
    kind = _KINDS.get(str(told.get("type")), ServerError)
    made = _made(kind, told["message"], told)
    made.args = (told["message"],)  # word for word: some classes write their message themselves
    return made


def _made(kind: type[NacreError], message: str, told: Mapping[str, Any]) -> NacreError:
    if issubclass(kind, InvalidInput):
        field = str(told.get("field", ""))
        return kind(field, message.removeprefix(f"{field}: "), tuple(told.get("errors", ())))
    if issubclass(kind, QuotaExceeded):
        return kind(str(told.get("quota", "")), told.get("limit", 0), told.get("used", 0), "")
    if issubclass(kind, StoreCorrupt):
        return kind(message, tuple(told.get("ids", ())))
    return kind(tuple(told.get("ids", ()))) if issubclass(kind, NotFound) else kind(message)
