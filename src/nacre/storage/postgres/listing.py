"""Memories by id, by time and by what they lack."""

from __future__ import annotations

from typing import Any

PENDING = "NOT m.embedded AND m.deleted_us IS NULL"
PENDING_TOKENS = "m.token_passages IS NULL AND m.embedded AND m.deleted_us IS NULL"


def get(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def matching(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def by_time(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def vectors(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def without_vectors(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def having(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def count_having(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def history(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def last_row(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
