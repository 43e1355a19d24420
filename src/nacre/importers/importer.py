"""What an importer is: it recognises its format, and reads it record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nacre.types.memory import NewMemory

HEAD_BYTES = 65_536  # of a file, by which its format is recognised


class Refused(NamedTuple):
    """A record that cannot be read, and why. The others are read all the same."""

    where: str
    problem: str


class Importer(NamedTuple):
    """One format. Every memory that it reads has a key, so that reading the same again adds nothing.

    `recognises` gets the path and the first HEAD_BYTES of a file, b"" for a folder. `read` streams.
    """

    name: str
    about: str
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Iterator[NewMemory | Refused]]
