"""What an engine is: a store that one process fills and another searches.

A file that imports an engine's package does so at its top, so that who imports it knows whether it is installed, and
so that no measured time has an import in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector

Kind: TypeAlias = Literal["keyword", "semantic", "hybrid"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DIMENSIONS = 384
LIMIT = 10
POOL = 2 * LIMIT  # candidates of each channel, where ranks are fused by hand

TAGS: Mapping[str, int] = {"b2": 2, "b100": 100, "b1000": 1000}  # every so many-th memory has the tag


class Rows(NamedTuple):
    """Memories in a row: the first one's number, texts and vectors."""

    first: int
    texts: Sequence[str]
    vectors: FloatMatrix


class ParsedQuery(NamedTuple):
    text: str
    vector: FloatVector


class Found(NamedTuple):
    """What a user gets to see: the id and the stored text."""

    id: str
    text: str


class Filling(ABC):
    """A store that is being filled. All that was added can be searched for sure after `index`."""

    @abstractmethod
    def add(self, rows: Rows) -> None: ...

    @abstractmethod
    def index(self) -> None:
        """What is left to do after the last row: building indexes, writing files."""

    def close(self) -> None:  # noqa: B027 - several have nothing to close
        """Leave the store as another process can open it."""


class Opened(ABC):
    """A store that is searched."""

    @abstractmethod
    def search(self, kind: Kind, question: ParsedQuery, tag: str | None) -> Sequence[Found]:
        """The best LIMIT, best first; of those that have the tag, if there is one."""

    def nearest(self, question: ParsedQuery, tag: str | None) -> Sequence[Found]:
        """By nothing but their vectors."""
        return self.search("semantic", question, tag)

    def close(self) -> None:  # noqa: B027 - several have nothing to close
        """Let go of the files."""


class Engine(ABC):
    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    configuration: ClassVar[str]  # in a few words, for the report
    kinds: ClassVar[tuple[Kind, ...]] = KINDS

    def version(self) -> str:
        return ", ".join(f"{package} {version(package)}" for package in self.packages)

    @abstractmethod
    def fill(self, folder: Path) -> Filling:
        """Start a store in an empty folder."""

    @abstractmethod
    def refill(self, folder: Path) -> Filling:
        """Go on with a store that was filled before."""

    @abstractmethod
    def open(self, folder: Path) -> Opened: ...


def tags_of(row: int) -> list[str]:
    return [tag for tag, every in TAGS.items() if row % every == 0]


def fused(rankings: Iterable[Sequence[int]], k: int = 60) -> list[int]:
    """Reciprocal rank fusion as in the textbook."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))[:LIMIT]
