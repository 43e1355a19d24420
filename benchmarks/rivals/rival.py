"""What a rival is, and what several of them need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks.labelled import Document
from nacre.analysis import chunking
from nacre.interfaces import Embedder
from nacre.types.memory import Span

PASSAGES_A_DOCUMENT = 3  # asked for, so that after folding there are mostly as many documents as wanted

Search: TypeAlias = Callable[[str, int], Sequence[str]]  # question and limit to documents' ids, best first
Index: TypeAlias = Callable[[Sequence[Document], Embedder, Path], AbstractContextManager[Search]]

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Rival:
    name: str
    installed: Callable[[], str | None]  # what, with its version; None: it is not
    indexed: Index  # fills a folder and opens it for questions


def package(name: str) -> Callable[[], str | None]:
    def installed() -> str | None:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return None

    return installed


class Passage(NamedTuple):
    document_id: str
    text: str


def words(text: str) -> list[str]:
    """Without case, each once, in order."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def passages_of(documents: Iterable[Document], embedder: Embedder) -> Iterator[Passage]:
    """Cut where Nacre cuts."""
    for document in documents:
        text, most = document.text, embedder.pieces_max
        spans = [Span(0, len(text))] if len(text) <= most else chunking.cut(text, embedder.weigh(text), most)
        for span in spans:
            yield Passage(document.id, text[span.start : span.end])


def folded(document_ids: Iterable[str], limit: int) -> list[str]:
    """Each document where its best passage stands."""
    return list(dict.fromkeys(document_ids))[:limit]
