"""Which models a command line needs. Loading starts before the command itself is imported, to save time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_RERANKS = {"search", "recall", "context", "why", "why-not", "mcp"}
_EMBEDS = _RERANKS | {"remember", "update"}
_WORDS_ONLY = {"keyword", "text"}  # modes


def models(arguments: Sequence[str], environment: Mapping[str, str]) -> list[Path]:
    """The model files that a command with these arguments will most likely use."""
    command = next((each for each in arguments if each in _EMBEDS), None)
    if command is None or _needs_none(arguments):
        return []
    embedder, tokens = _set(arguments, environment)
    named_elsewhere = _names_another(embedder)
    if embedder != "minilm" and not named_elsewhere:
        return []
    from nacre.runtime.onnx_models import EMBEDDER, MODEL, RERANKER, TOKENS

    reranks = command in _RERANKS and "--no-rerank" not in arguments
    # Another model has the token vectors of this one, which a question does not need.
    embeds = [EMBEDDER] if not named_elsewhere or (tokens and command not in _RERANKS) else []
    return [folder / MODEL for folder in (*embeds, *([TOKENS] if tokens and reranks else []), *([RERANKER] * reranks))]


def _names_another(embedder: object) -> bool:
    """Whether it is a folder or an endpoint."""
    from nacre.config.settings import ENDPOINT, FOLDER

    return isinstance(embedder, str) and embedder.startswith((FOLDER, *ENDPOINT))


def _needs_none(arguments: Sequence[str]) -> bool:
    # A query may contain such a word, too. Then the models are loaded on first use, which only costs time.
    return not _WORDS_ONLY.isdisjoint(_values("--mode", arguments)) or not {"--help", "-h"}.isdisjoint(arguments)


def _values(option: str, arguments: Sequence[str]) -> list[str]:
    return [
        each.removeprefix(f"{option}=")
        for before, each in pairwise(["", *arguments])
        if before == option or each.startswith(f"{option}=")
    ]


def _set(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[object, bool]:
    """The embedder, and whether there are token vectors."""
    from nacre.config import settings
    from nacre.errors import InvalidInput

    named = _values("--embedder", arguments)
    try:
        return settings.models({"embedder": named[-1]} if named else {}, environment)
    except InvalidInput:  # the command itself reports it
        return None, False
