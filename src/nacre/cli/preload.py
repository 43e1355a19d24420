"""Which models a command line needs. Loading starts before the command itself is imported, to save time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_RERANKS = {"search", "context", "why", "why-not"}
_EMBEDS = _RERANKS | {"remember", "update"}
# A query may contain such a word, too. Then the models are loaded on first use, which only costs time.
_NEEDS_NO_MODEL = {"keyword", "--mode=keyword", "--help", "-h"}


def models(arguments: Sequence[str], environment: Mapping[str, str]) -> list[Path]:
    """The model files that a command with these arguments will most likely use."""
    command = next((each for each in arguments if each in _EMBEDS), None)
    if command is None or not _NEEDS_NO_MODEL.isdisjoint(arguments) or _embedder(arguments, environment) != "minilm":
        return []
    from nacre.runtime.onnx_models import EMBEDDER, MODEL, RERANKER

    reranks = command in _RERANKS and "--no-rerank" not in arguments
    return [EMBEDDER / MODEL, *([RERANKER / MODEL] if reranks else [])]


def _embedder(arguments: Sequence[str], environment: Mapping[str, str]) -> object:
    from nacre.config import settings
    from nacre.errors import InvalidInput

    named = [
        each.removeprefix("--embedder=")
        for before, each in pairwise(["", *arguments])
        if before == "--embedder" or each.startswith("--embedder=")
    ]
    try:
        return settings.embedder({"embedder": named[-1]} if named else {}, environment)
    except InvalidInput:  # the command itself reports it
        return None
