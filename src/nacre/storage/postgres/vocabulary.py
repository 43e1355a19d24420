"""The vocabulary of each space."""

from __future__ import annotations

from typing import Any


def frequencies(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def spellings(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
