"""What a rival is: for quality, a search over a set of documents; for speed, a store that is filled and searched."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:  # nothing of Nacre is loaded into a process that measures another engine
    from benchmarks.common.labelled_sets import Document
    from nacre.interfaces import Embedder
    from nacre.types.memory import FloatMatrix, FloatVector

_WORD = re.compile(r"\w+")


# ---------------------------------------------------------------- quality

PASSAGES_A_DOCUMENT = 3  # requested per document, because several passages of one document count once

Search: TypeAlias = Callable[[str, int], Sequence[str]]  # question and limit to document ids, best first
Index: TypeAlias = "Callable[[Sequence[Document], Embedder, Path], AbstractContextManager[Search]]"


@dataclass(frozen=True, slots=True)
class Rival:
    installed: Callable[[], str | None]  # name and version; None when it is not installed
    indexed: Index  # indexes documents in an empty folder and opens the index for questions


class Passage(NamedTuple):
    document_id: str
    text: str


def package(name: str) -> Callable[[], str | None]:
    def installed() -> str | None:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return None

    return installed


def words(text: str) -> list[str]:
    """Lower-case words in order, without duplicates."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def passages_of(documents: Iterable[Document], embedder: Embedder) -> Iterator[Passage]:
    """Split as Nacre splits."""
    from nacre.analysis import chunking
    from nacre.types.memory import Span

    for document in documents:
        text, most = document.text, embedder.pieces_max
        spans = [Span(0, len(text))] if len(text) <= most else chunking.split_passages(text, embedder.weigh(text), most)
        for span in spans:
            yield Passage(document.id, text[span.start : span.end])


def documents_of(passages: Iterable[str], limit: int) -> list[str]:
    """Document ids in the order of their best passage."""
    return list(dict.fromkeys(passages))[:limit]


# ---------------------------------------------------------------- speed

Kind: TypeAlias = Literal["keyword", "semantic", "hybrid"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DIMENSIONS = 384
LIMIT = 10
POOL = 2 * LIMIT  # candidates of each channel, where the benchmark fuses the ranks

TAGS: Mapping[str, int] = {"b2": 2, "b100": 100, "b1000": 1000}  # every second, hundredth, thousandth memory


class Rows(NamedTuple):
    """Consecutive memories: the number of the first, texts and vectors."""

    first: int
    texts: Sequence[str]
    vectors: FloatMatrix


class Question(NamedTuple):
    text: str
    vector: FloatVector


class Found(NamedTuple):
    """What every engine has to return: the id and the stored text."""

    id: str
    text: str


class Filling(ABC):
    """A store that is being filled. Everything added can be found after `index`."""

    @abstractmethod
    def add(self, rows: Rows) -> None: ...

    @abstractmethod
    def index(self) -> None:
        """Build indexes and write files after the last row."""

    def close(self) -> None:  # noqa: B027 - several have nothing to close
        """Release the store, so that another process can open it."""


class Opened(ABC):
    """A store that is searched."""

    @abstractmethod
    def search(self, kind: Kind, question: Question, tag: str | None) -> Sequence[Found]:
        """The LIMIT best memories, best first; with a tag, only those that have it."""

    def nearest(self, question: Question, tag: str | None) -> Sequence[Found]:
        """The same by vectors alone."""
        return self.search("semantic", question, tag)

    def close(self) -> None:  # noqa: B027 - several have nothing to close
        """Release the files."""


class Engine(ABC):
    """Making one imports its packages, so that no measured time includes an import."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    configuration: ClassVar[str]  # a few words for the report
    kinds: ClassVar[tuple[Kind, ...]] = KINDS

    def version(self) -> str:
        return ", ".join(f"{package} {version(package)}" for package in self.packages)

    @abstractmethod
    def fill(self, folder: Path) -> Filling:
        """Start a store in an empty folder."""

    @abstractmethod
    def refill(self, folder: Path) -> Filling:
        """Continue with a store that was filled before."""

    @abstractmethod
    def open(self, folder: Path) -> Opened: ...


def tags_of(row: int) -> list[str]:
    return [tag for tag, every in TAGS.items() if row % every == 0]


def fused(rankings: Iterable[Sequence[int]], k: int = 60) -> list[int]:
    """Reciprocal rank fusion as published: the sum of 1 / (k + rank)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))[:LIMIT]
