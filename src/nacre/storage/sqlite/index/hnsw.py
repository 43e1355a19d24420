"""The HNSW graph of a large space finds the passages near a vector without comparing all of them.

A graph knows passages by their keys, which are never used again, so it outlives the segments that its vectors came
from. Passages that were added later are compared one by one; deleted ones are not found among the rows any more. A
graph grows by new passages and is saved as it grows, so an interrupted build continues from there.

A graph file ends with a checksum of its name and content. It is verified before the file is mapped: native code follows
the links of a graph unchecked, so a damaged one can crash the process.
"""

from __future__ import annotations

import logging
import os
import secrets
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nacre.runtime import native_packages, private_files
from nacre.storage.sqlite.index.segment import MAIN, Array, DamagedCache, IntArray, Mask, Vectors, is_old, remove
from nacre.types.hnsw import Hnsw

SAVED_GROWTH = 2  # a graph that is being built is saved each time it has grown by this factor
FORMAT = 1  # of the vectors

_CHECKSUM = b"nacre-crc32:%08x"  # at the end of a file; usearch ignores what follows its own data
_CHECKSUM_BYTES = len(_CHECKSUM % 0)
_CHECKED_BYTES = 1 << 18  # that are read at a time; they stay in the processor's cache
_SLICE = 500  # vectors that are added at a time; in between, the store may be closed
_log = logging.getLogger("nacre")


@dataclass(frozen=True, slots=True)
class Graph:
    """Immutable: a larger graph replaces it."""

    index: Any
    newest: int  # the largest key in it; passages with larger keys are compared one by one
    path: Path | None

    def __len__(self) -> int:
        return len(self.index)

    def nearest(self, vector: Array, count: int) -> IntArray:
        """Keys of about `count` passages, nearest first. Some may be deleted by now."""
        keys: IntArray = self.index.search(vector, min(count, len(self.index))).keys.astype(np.int64)
        return keys


class Name(NamedTuple):
    """What the name of a graph file begins and ends with."""

    begin: str
    suffix: str

    def of(self, newest: int) -> str:
        return f"{self.begin}-{newest}{self.suffix}"


def suffix(model: int) -> str:
    """Of the graph files of a model, by its number."""
    return ".hnsw" if model == MAIN else f".hnsw{model}"


def opened(
    files: Sequence[Path], named: Callable[[int], str | None], dimensions: int, parameters: Hnsw
) -> Graph | None:
    """The largest of these graph files whose name fits this store.

    `named` returns the name that the file of an event must have, or None for an event that this reader cannot see yet.
    Other files are removed, except recent ones of such events.
    """
    found = []
    for path in files:
        name, _, newest = path.stem.rpartition("-")
        seq = name.rpartition("-")[2]
        right = named(int(seq)) if seq.isdigit() and newest.isdigit() else ""
        if name == right:
            found.append((int(newest), path))
        elif right is not None or is_old(path):
            remove(path)
    best = None
    for key, path in sorted(found, reverse=True):
        if best is not None:
            remove(path)
            continue
        index = _new(dimensions, parameters)
        try:
            _verify(path)
            index.view(str(path))
        except Exception as error:  # usearch raises whatever its C++ core throws
            _log.warning("the vector graph %s cannot be read (%s); it is built again", path.name, error)
            remove(path)
            continue
        if len(index) and index.ndim == dimensions:
            best = Graph(index, key, path)
        else:
            remove(path)
    return best


def grown(
    graph: Graph | None,
    parts: Sequence[tuple[Vectors, Mask | None]],
    folder: Path | None,
    name: Name,
    go_on: Callable[[], None],
    fits: Callable[[], bool],
    threads: int,
    parameters: Hnsw,
) -> Graph:
    """A graph of all passages of live memories, saved and memory-mapped. Without a folder it stays in memory.

    `go_on` is called now and then and may raise. `fits` says whether the graph may still be saved.
    """
    dimensions = max(part.dimensions for part, _ in parts)
    index, newest, path = _new(dimensions, parameters), -1, None
    if graph is not None and graph.path is not None and is_sound(graph.path):
        if _read(index.load, graph.path):
            newest, path = graph.newest, graph.path
        else:
            index = _new(dimensions, parameters)
    saved = max(len(index), 1)
    for keys, vectors in _additional(parts, newest):
        go_on()
        index.add(keys.astype(np.uint64), vectors, threads=threads)
        newest = int(keys[-1])
        if len(index) >= SAVED_GROWTH * saved:
            path, saved = _saved(index, folder, name.of(newest), path, fits), len(index)
    newest = max(newest, *(int(part.keys[-1]) for part, _ in parts if len(part.keys)))  # deleted keys count as known
    path = _saved(index, folder, name.of(newest), path, fits)
    mapped = _new(dimensions, parameters)  # its pages can be shared and dropped
    if path is not None and _read(mapped.view, path):
        return Graph(mapped, newest, path)
    return Graph(index, newest, None)


def _read(read: Callable[[str], object], path: Path) -> bool:
    """Whether a file could be read. Another process may have put its own graph in the place of this one."""
    try:
        read(str(path))
    except Exception:  # usearch raises whatever its C++ core throws
        return False
    return True


def _additional(parts: Sequence[tuple[Vectors, Mask | None]], newest: int) -> Any:
    """Slices of keys and vectors that are not in the graph yet, in ascending order of keys over all parts."""
    places = []
    for number, (part, alive) in enumerate(parts):
        own = np.flatnonzero(part.keys > newest)
        if alive is not None:
            own = own[alive[part.owners[own]]]
        places.append(np.stack([part.keys[own], np.full(len(own), number), own], axis=1))
    listed = np.concatenate(places)
    listed = listed[np.argsort(listed[:, 0], kind="stable")]
    for start in range(0, len(listed), _SLICE):
        here = listed[start : start + _SLICE]
        vectors = np.empty((len(here), max(part.dimensions for part, _ in parts)), np.int8)
        for number in np.unique(here[:, 1]):
            own = here[:, 1] == number
            vectors[own] = parts[number][0].matrix[here[own, 2]]
        yield here[:, 0], vectors


def _saved(index: Any, folder: Path | None, name: str, before: Path | None, fits: Callable[[], bool]) -> Path | None:
    """Best effort: a graph that cannot be saved still serves this process."""
    if folder is None:
        return None
    path = folder / name
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        private_files.create_folder(path.parent)
        index.save(str(aside))
        private_files.set_mode(aside, private_files.mode_of(path.parent))
        seal(aside, path.name)
        aside.replace(path)
    except FileNotFoundError:  # another process dropped the files of the space meanwhile
        return None
    except Exception as error:
        _log.warning("the vector graph could not be written (%s)", error)
        remove(aside)
        return None
    if not fits():
        remove(path)
        return None
    if before is not None and before != path:
        remove(before)
    return path


def seal(path: Path, name: str) -> None:
    """Append the checksum to a graph that was saved, and wait for the disk. `name`: the one that it will have."""
    with path.open("r+b") as file:
        checksum = _checksum(file, path.stat().st_size, name)
        file.seek(0, os.SEEK_END)
        file.write(checksum)
        file.flush()
        os.fsync(file.fileno())


def _verify(path: Path) -> None:
    """Raises DamagedCache if the file is not as it was written, or has the content of another."""
    with path.open("rb") as file:
        size = path.stat().st_size - _CHECKSUM_BYTES
        if size <= 0 or _checksum(file, size, path.name) != file.read():
            raise DamagedCache(path)


def is_sound(path: Path) -> bool:
    try:
        _verify(path)
    except (OSError, DamagedCache):
        return False
    return True


def _checksum(file: BufferedIOBase, size: int, name: str) -> bytes:
    """Of a name and the first `size` bytes. The file is left at their end."""
    checksum = zlib.crc32(name.encode())
    block = memoryview(bytearray(_CHECKED_BYTES))
    while size > 0 and (read := file.readinto(block[:size])):
        checksum = zlib.crc32(block[:read], checksum)
        size -= read
    return _CHECKSUM % checksum


def _new(dimensions: int, parameters: Hnsw) -> Any:
    graph_index = native_packages.usearch_index()  # the import takes 20 ms or more, and small stores do not need it
    return graph_index(
        ndim=dimensions,
        metric="cos",
        dtype="i8",
        connectivity=parameters.connectivity,
        expansion_add=parameters.expansion_add,
        expansion_search=parameters.expansion_search,
    )
