"""The OpenAPI document."""

from __future__ import annotations

from nacre import __version__
from nacre.types.memory import Json


def document() -> dict[str, Json]:
    return {"openapi": "3.1.0", "info": {"title": "Nacre", "version": __version__}, "paths": {}}
