"""Neighbours."""

from __future__ import annotations

from typing import Any


def neighbours(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
