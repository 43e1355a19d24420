"""A segment: some memories of a space, ready to be searched by words, filters and vectors; and its file.

A segment holds the live memories that were changed by a range of events, as arrays. A file of them is memory-mapped, so
that processes share it and only what is needed is read. A segment is immutable: memories that change later are in a
later segment. Files are caches: they are written under a temporary name and renamed, named after their events, and
removed if they do not fit the store. The header and each array have a checksum. That of an array is verified when the
array is first used, so a search does not read what it does not need.

Words, and the values that filters test, are 64-bit hashes. No vocabulary has to be read to look one up, and segments
are merged without strings. Of a million words, the chance that any two share a hash is below one in ten million.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nacre.runtime import private_files
from nacre.storage.sqlite import encryption

Array: TypeAlias = npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Allocate: TypeAlias = Callable[[str, Any, tuple[int, ...]], Array]  # name, dtype, shape
Placed: TypeAlias = tuple[str, tuple[int, ...], int, int]  # of an array in a file: dtype, shape, offset, checksum

MAIN = 0  # the number of the store's own model; further ones have theirs in the database

_FORMAT = 3
_HEADER_BYTES = 4096
_CHECKSUM_BYTES = 8  # in hex, at the end of the header
_ALIGNED = 64
_ZEROS = 1 << 20  # bytes that are written at a time
_OLD_S = 3_600  # a temporary file of this age was left behind
_log = logging.getLogger("nacre")


class DamagedCache(Exception):
    """A cache file does not have the checksums that it was written with."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path.name} is damaged")
        self.path = path


@dataclass(frozen=True, eq=False)
class Segment:
    """Memories are referred to by their place in `rows`, passages by their place in `keys`. Both arrays ascend."""

    rows: Array  # int64
    lengths: Array  # int32: words
    created: Array  # int64: microseconds
    importance: Array  # float64, as stored: a bound compares exactly
    superseded: (
        Array  # int64, ascending: rows that this segment's events changed; earlier segments have old versions of them
    )
    terms: Array  # uint64, ascending
    ends: Array  # int64: where the postings of each term end; they begin where those of the previous term end
    most: Array  # uint32: the largest count of each term; 0 if labels have it, too
    docs: Array  # uint32: postings: places of memories, ascending within each term
    counts: Array  # unsigned: occurrences in the text
    label_ends: Array  # int64: like `ends`, for labels
    label_docs: Array
    label_fields: Array  # uint8: 0 summary, 1 tags, 2 source
    label_counts: Array  # uint32
    keys: Array  # int64: passages
    owners: Array  # uint32: the places of their memories
    matrix: Array  # int8: their vectors, each scaled by itself
    norms: Array  # float32: the norms of these vectors
    further: Mapping[str, Array] = field(default_factory=dict)  # these four of further models, by `column_name`
    spread: dict[int, Array] = field(
        default_factory=dict, init=False, repr=False
    )  # a cache of postings.py, not in the file
    of_models: dict[int, Vectors] = field(default_factory=dict, init=False, repr=False)  # see `vectors`

    def __len__(self) -> int:
        return len(self.rows)

    def vectors(self, model: int) -> Vectors:
        """The passages with their vectors by a model, which may be none."""
        if model not in self.of_models:
            self.of_models[model] = Vectors(self, model)
        return self.of_models[model]

    @property
    def further_names(self) -> Collection[str]:
        """The names of the columns of further models."""
        return self.further.keys()

    @property
    def models(self) -> list[int]:
        """The numbers of the models that it has columns of."""
        numbers = (each.rpartition("_")[2] for each in self.further_names if each.startswith("keys_"))
        return [MAIN, *sorted(map(int, numbers))]

    def column(self, name: str) -> Array:
        """An array of a further model."""
        return self.further[name]

    def arrays(self) -> dict[str, Array]:
        """All arrays by name, as they are saved."""
        return {name: getattr(self, name) for name in NAMES} | {each: self.column(each) for each in self.further_names}

    def places(self, hashes: Array) -> IntArray:
        """Places of these hashes in `terms`; -1 for those that no memory here has."""
        at, here = located(self.terms, hashes)
        return np.where(here, at, -1)

    def postings(self, places: IntArray) -> list[slice]:
        """Slices of `docs` and `counts` with the postings of these terms."""
        return _between(self.ends, places)

    def labelled(self, places: IntArray) -> list[slice]:
        """Slices of the label arrays with the labels of these terms."""
        return _between(self.label_ends, places)

    def docs_of(self, rows: Array) -> IntArray:
        """Places of those of these rows that the segment has."""
        at, here = located(self.rows, rows)
        return at[here]


class Vectors:
    """The passages of a segment with their vectors by one model. An array is read when it is first used."""

    def __init__(self, segment: Segment, model: int) -> None:
        self._segment = segment
        self._model = model
        self._known = model == MAIN or column_name("keys", model) in segment.further_names

    @cached_property
    def keys(self) -> Array:
        return self._column("keys", np.empty(0, np.int64))

    @cached_property
    def owners(self) -> Array:
        return self._column("owners", np.empty(0, np.uint32))

    @cached_property
    def matrix(self) -> Array:
        return self._column("matrix", np.empty((0, 0), np.int8))

    @cached_property
    def norms(self) -> Array:
        return self._column("norms", np.empty(0, np.float32))

    @property
    def dimensions(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def _numbers(self) -> tuple[Array, int]:
        numbers = np.bincount(self.owners, minlength=len(self._segment))
        return numbers, int(numbers.max(initial=0))

    def passage_numbers(self) -> tuple[Array, int]:
        """By memory, how many passages it has, and the largest of these numbers. Counted once."""
        return self._numbers

    def _column(self, name: str, none: Array) -> Array:
        if self._model == MAIN:
            column: Array = getattr(self._segment, name)
            return column
        return self._segment.column(column_name(name, self._model)) if self._known else none


def column_name(name: str, model: int) -> str:
    """The name of `keys`, `owners`, `matrix` or `norms` of a model."""
    return name if model == MAIN else f"{name}_{model}"


def located(ascending: Array, wanted: Array) -> tuple[IntArray, Mask]:
    """Places of values in an ascending array, and a mask of the values that it has. Other places mean nothing."""
    at = ascending.searchsorted(wanted)
    if not len(ascending):
        return at, np.zeros(len(wanted), np.bool_)
    np.minimum(at, len(ascending) - 1, out=at)
    return at, ascending[at] == wanted


def _between(ends: Array, places: IntArray) -> list[slice]:
    begins = np.where(places, ends[places - 1], 0)
    return list(map(slice, begins.tolist(), ends[places].tolist()))


NAMES = tuple(each.name for each in fields(Segment) if each.init and each.name != "further")


class _MappedSegment(Segment):
    """A segment whose arrays are in a mapped file. Raises DamagedCache where an array is not as it was written."""

    def __init__(self, path: Path, whole: npt.NDArray[np.uint8], placed: Mapping[str, Placed]) -> None:
        for name, value in (("_path", path), ("_whole", whole), ("_placed", placed), ("spread", {}), ("of_models", {})):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Array:
        """Called for an array that was not used before."""
        placed = self.__dict__["_placed"].get(name)
        if placed is None:
            raise AttributeError(name)
        dtype, shape, offset, checksum = placed
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        stored = self.__dict__["_whole"][offset : offset + size]
        if len(stored) != size or zlib.crc32(stored.data) != checksum:
            raise DamagedCache(self.__dict__["_path"])
        array: Array = stored.view(dtype).reshape(shape)
        object.__setattr__(self, name, array)
        return array

    @property
    def further_names(self) -> Collection[str]:
        placed: Mapping[str, Placed] = self.__dict__["_placed"]
        return placed.keys() - NAMES

    def column(self, name: str) -> Array:
        column: Array = getattr(self, name)
        return column


def hashed(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Hashes(dict[str, int]):
    """A cache of hashes of terms: the same words occur in many texts."""

    MANY = 1 << 19

    def __missing__(self, term: str) -> int:
        if len(self) >= self.MANY:
            self.clear()
        self[term] = value = hashed(term)
        return value


def in_memory(_: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    return np.empty(shape, dtype)


def of_arrays(arrays: Mapping[str, Array]) -> Segment:
    """A segment in memory, of its arrays by name."""
    further = {name: array for name, array in arrays.items() if name not in NAMES}
    return Segment(**{name: arrays[name] for name in NAMES}, further=further)


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies the content of a segment. No other store, model, tokeniser or history has the same stamp."""

    store_id: str
    model: str
    words_version: int
    space: str
    after: int
    seq: int
    event: str  # time and memory of event `seq`: they differ after a store was restored from a backup


class Files:
    """The segment files of one store, beside its database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.folder = encryption.cache_folder(database)

    def chain(self, space: str, stamp: Callable[[int, int], Stamp], newest: int) -> list[tuple[Stamp, Segment]]:
        """Segments that follow each other without a gap, from the first event up to `newest` at most.

        Other files are removed, except those of later events: another process may have seen more.
        """
        chosen: list[tuple[Stamp, Segment]] = []
        ranges = [each for each in self.ranges(space) if each[1] <= newest]
        reached = 0
        while following := [to for after, to in ranges if after == reached]:
            wanted = stamp(reached, max(following))
            segment = self.read(wanted)
            if segment is None:
                ranges.remove((reached, wanted.seq))
                continue
            chosen.append((wanted, segment))
            reached = wanted.seq
        self._remove_others(space, {(each.after, each.seq) for each, _ in chosen}, reached)
        return chosen

    def _remove_others(self, space: str, kept: Set[tuple[int, int]], reached: int) -> None:
        """Remove files whose events others cover, and old files that were left behind."""
        for after, to in self.ranges(space):
            path = self._path(space, after, to)
            if (after, to) not in kept and (to <= reached or is_old(path)):
                remove(path)
        for path in self.files(space, ".tmp"):
            if is_old(path):
                remove(path)

    def ranges(self, space: str) -> list[tuple[int, int]]:
        found = []
        for path in self.files(space, ".segment"):
            numbers = path.name.removesuffix(".segment").split("-")[1:]
            if len(numbers) == 2 and all(number.isdigit() for number in numbers):
                found.append((int(numbers[0]), int(numbers[1])))
        return found

    def read(self, stamp: Stamp) -> Segment | None:
        """The segment with this stamp. If its file does not fit, the file is removed, and None returned."""
        path = self._path(stamp.space, stamp.after, stamp.seq)
        try:
            header = _header(path)
            if header["format"] == _FORMAT and header["stamp"] == asdict(stamp):
                return _mapped(path, header)
        except OSError:
            pass
        except DamagedCache:
            _log.warning("the index file %s is damaged, or of an older version; it is built again", path.name)
        remove(path)
        return None

    def write(
        self, stamp: Stamp, fill: Callable[[Allocate], Mapping[str, Array]], fits: Callable[[], bool]
    ) -> Segment | None:
        """Write a file of the arrays that `fill` returns. `fill` may allocate some of them in the file.

        Returns None if another process removed the file meanwhile, or if it does not fit the store any more. Raises
        OSError if no file can be written.
        """
        path = self._path(stamp.space, stamp.after, stamp.seq)
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            mode = private_files.mode_of(self._database)  # whoever may read the database may read its caches
            private_files.create_folder(self.folder, mode)
            private_files.create_file(aside, mode)
            draft = _Draft(aside)
            arrays = fill(draft.allocate)
            draft.finish(stamp, arrays)
            del arrays, draft
            aside.replace(path)
        except FileNotFoundError:
            return None
        except BaseException:
            remove(aside)
            raise
        if not fits():
            remove(path)
            return None
        return self.read(stamp)

    def drop(self, space: str) -> None:
        for path in self.files(space, ""):
            remove(path)

    def drop_but(self, space: str, kept: Iterable[Stamp]) -> None:
        """Remove all files of a space, finished or not, except those with these stamps."""
        names = {self._path(space, stamp.after, stamp.seq) for stamp in kept}
        for path in self.files(space, ""):
            if path not in names:
                remove(path)

    def remove(self, stamp: Stamp) -> None:
        remove(self._path(stamp.space, stamp.after, stamp.seq))

    def files(self, space: str, suffix: str) -> list[Path]:
        return list(self.folder.glob(f"{digest(space)}-*{suffix}")) if self.folder.is_dir() else []

    def _path(self, space: str, after: int, seq: int) -> Path:
        return self.folder / f"{digest(space)}-{after}-{seq}.segment"


class _Draft:
    """An empty file that is being written. Arrays are allocated with their largest possible size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = _HEADER_BYTES
        self._offsets: dict[str, int] = {}

    def allocate(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self._offsets[name] = offset = self._end
        self._end += -(-size // _ALIGNED) * _ALIGNED
        if not size:
            return np.empty(shape, dtype)
        _make_room(self._path, offset, self._end)
        return np.memmap(self._path, dtype, "r+", offset, shape)

    def finish(self, stamp: Stamp, arrays: Mapping[str, Array]) -> None:
        placed: dict[str, Placed] = {}
        with self._path.open("r+b") as file:
            for name, array in arrays.items():
                if name not in self._offsets:
                    file.seek(self._end)
                    file.write(np.ascontiguousarray(array).tobytes())
                    self._offsets[name] = self._end
                    self._end += -(-array.nbytes // _ALIGNED) * _ALIGNED
                elif isinstance(array, np.memmap):
                    array.flush()
                checksum = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                placed[name] = (array.dtype.str, array.shape, self._offsets[name], checksum)
            header = {"format": _FORMAT, "stamp": asdict(stamp), "bytes": self._end, "arrays": placed}
            encoded = json.dumps(header).encode()
            if len(encoded) > _HEADER_BYTES - _CHECKSUM_BYTES:
                raise OSError("the name of the space is too long for a header")
            file.truncate(self._end)
            file.seek(0)
            file.write(_sealed(encoded))
            file.flush()
            os.fsync(file.fileno())  # so that a renamed file is not empty after a power cut


def _make_room(path: Path, begin: int, end: int) -> None:
    """Raises OSError if the disk is full. Writing to a hole of a mapped file would kill the process instead."""
    with path.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), begin, end - begin)
            return
        file.seek(begin)
        for start in range(begin, end, _ZEROS):
            file.write(bytes(min(_ZEROS, end - start)))


def _header(path: Path) -> Mapping[str, Any]:
    with path.open("rb") as file:
        encoded = file.read(_HEADER_BYTES)
    if encoded != _sealed(encoded[:-_CHECKSUM_BYTES]):
        raise DamagedCache(path)
    header: Mapping[str, Any] = json.loads(encoded[:-_CHECKSUM_BYTES])
    return header


def _mapped(path: Path, header: Mapping[str, Any]) -> Segment:
    if path.stat().st_size != header["bytes"]:
        raise DamagedCache(path)
    return _MappedSegment(path, np.asarray(np.memmap(path, np.uint8, "r")), header["arrays"])


def is_sound(path: Path) -> bool:
    """Whether a segment file, all of it, is as it was written."""
    try:
        found = _mapped(path, _header(path))
        return all(getattr(found, name) is not None for name in (*NAMES, *found.further_names))
    except (OSError, DamagedCache):
        return False


def _sealed(encoded: bytes) -> bytes:
    """A header at its full length, with its checksum at the end."""
    padded = encoded.ljust(_HEADER_BYTES - _CHECKSUM_BYTES)
    return padded + b"%0*x" % (_CHECKSUM_BYTES, zlib.crc32(padded))


def digest(space: str) -> str:
    """A file name for any space."""
    return hashlib.sha256(space.encode()).hexdigest()[:16]


def is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _OLD_S
    except OSError:
        return False


def remove(path: Path) -> None:
    with suppress(OSError):  # gone already, or mapped by another process (Windows)
        path.unlink()
