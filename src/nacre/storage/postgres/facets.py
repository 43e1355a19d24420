"""Facets."""

from __future__ import annotations

from typing import Any


def facet_counts(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
