"""Keyword search."""

from __future__ import annotations

from typing import Any


def lexical(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
