"""Files beside the database that hold vectors ready to be searched. They are caches: drop them freely.

A vectors file is memory-mapped, so that processes share it. It is written aside and renamed, never
changed, and named after the event it reflects; one that does not fit the store is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nacre.vectors import STORED

Whole: TypeAlias = npt.NDArray[np.int64]
Half: TypeAlias = npt.NDArray[np.float16]

_FORMAT = 1
_HEADER_BYTES = 4096  # keeps the arrays aligned to pages


@dataclass(frozen=True, slots=True)
class Block:
    """Passages with their vectors: `keys` name passages, `rows` the memories they belong to."""

    keys: Whole
    rows: Whole
    matrix: Half

    def __len__(self) -> int:
        return len(self.keys)


def empty_block(dimensions: int = 0) -> Block:
    return Block(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, dimensions), STORED))


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a snapshot reflects. Another store, model or history never has the same stamp."""

    store_id: str
    model: str
    space: str
    seq: int
    event: str  # when and what event `seq` was: tells a store restored from a backup


class Snapshots:
    """The snapshot files of one store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest_seq(self, space: str) -> int | None:
        """The event that the newest vectors file of a space reflects."""
        seqs = [_seq(path) for path in self._files(space, ".vectors")]
        return max((seq for seq in seqs if seq is not None), default=None)

    def read(self, stamp: Stamp) -> Block | None:
        """The block with this stamp, or None, and then its file is dropped."""
        path = self._path(stamp, ".vectors")
        try:
            with path.open("rb") as file:
                header = json.loads(file.read(_HEADER_BYTES))
            count, dimensions = header["count"], header["dimensions"]
            expected = _HEADER_BYTES + count * (16 + STORED.itemsize * dimensions)
            if header["stamp"] == asdict(stamp) and header["format"] == _FORMAT and path.stat().st_size == expected:
                data = np.memmap(path, np.uint8, "r")
                keys_end = _HEADER_BYTES + 8 * count
                rows_end = keys_end + 8 * count
                return Block(
                    np.asarray(data[_HEADER_BYTES:keys_end]).view(np.int64),
                    np.asarray(data[keys_end:rows_end]).view(np.int64),
                    np.asarray(data[rows_end:]).view(STORED).reshape(count, dimensions),
                )
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self.drop(stamp.space)
        return None

    def write(self, stamp: Stamp, block: Block) -> None:
        """Best effort: without the file the next process reads the rows instead."""
        header = {
            "format": _FORMAT,
            "stamp": asdict(stamp),
            "count": len(block),
            "dimensions": block.matrix.shape[1],
        }
        encoded = json.dumps(header).encode()
        if len(encoded) > _HEADER_BYTES:
            return
        path = self._path(stamp, ".vectors")
        aside = self._aside(path)
        try:
            self._folder.mkdir(exist_ok=True)
            with aside.open("wb") as file:
                file.write(encoded.ljust(_HEADER_BYTES))
                for array in (block.keys, block.rows, block.matrix):
                    np.ascontiguousarray(array).tofile(file)
                file.flush()
                os.fsync(file.fileno())  # a renamed file must not be empty after a power cut
            aside.replace(path)
        except OSError:
            _remove(aside)
            return
        self._drop_but(stamp)

    def graph_path(self, stamp: Stamp) -> Path:
        """Where the HNSW graph over the vectors file with this stamp lives."""
        return self._path(stamp, ".hnsw")

    def write_graph(self, stamp: Stamp, save: Callable[[Path], object]) -> None:
        path = self.graph_path(stamp)
        aside = self._aside(path)
        try:
            save(aside)
            aside.replace(path)
        except BaseException:
            _remove(aside)
            raise

    def drop(self, space: str) -> None:
        for path in self._files(space, ""):
            _remove(path)

    def _drop_but(self, stamp: Stamp) -> None:
        for path in self._files(stamp.space, ""):
            seq = _seq(path)
            if seq is not None and seq < stamp.seq:
                _remove(path)

    def _files(self, space: str, suffix: str) -> list[Path]:
        return list(self._folder.glob(f"{_digest(space)}-*{suffix}")) if self._folder.is_dir() else []

    def _path(self, stamp: Stamp, suffix: str) -> Path:
        return self._folder / f"{_digest(stamp.space)}-{stamp.seq}{suffix}"

    @staticmethod
    def _aside(path: Path) -> Path:
        return path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")


def _digest(space: str) -> str:
    """A file name for any space."""
    return hashlib.sha256(space.encode()).hexdigest()[:16]


def _seq(path: Path) -> int | None:
    number = path.name.partition("-")[2].partition(".")[0]
    return int(number) if number.isdigit() else None


def _remove(path: Path) -> None:
    with suppress(OSError):  # gone already, or mapped by another process (Windows)
        path.unlink()
