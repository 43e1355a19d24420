"""What a command will need and takes long to load is begun before the command itself is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_READS_AGAIN = {"search", "context", "why", "why-not"}
_EMBEDS = _READS_AGAIN | {"remember", "update"}
# A query may have such a word, too: then nothing is begun, and nothing is lost but time.
_BY_WORDS = {"keyword", "--mode=keyword", "--help", "-h"}


def models(arguments: Sequence[str], environment: Mapping[str, str]) -> list[Path]:
    """The models that these arguments will hardly do without."""
    command = next((each for each in arguments if each in _EMBEDS), None)
    if command is None or not _BY_WORDS.isdisjoint(arguments) or _embedder(arguments, environment) != "minilm":
        return []
    from nacre.runtime.onnx_models import EMBEDDER, MODEL, RERANKER

    reads_again = command in _READS_AGAIN and "--no-rerank" not in arguments
    return [EMBEDDER / MODEL, *([RERANKER / MODEL] if reads_again else [])]


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
    except InvalidInput:  # the command tells
        return None
