"""Signals."""

from __future__ import annotations

from typing import Any


def signals(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
