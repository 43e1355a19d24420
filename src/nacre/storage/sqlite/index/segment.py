"""A segment: a part of a space's memories, ready to be searched by words, filters and vectors; and its file.

A segment holds the live memories that were touched by the events after one number and up to another, as arrays that a
file can be mapped to, so that processes share them and nothing is read before it is needed. It is never changed: what
is touched later stands in a later segment. Files are caches: written aside and renamed, named after their events, and
dropped when they do not fit the store.

Words, and what filters ask for, are 64-bit hashes: nobody has to read a vocabulary to look one up, and segments
are merged without a single string. Two words of a million share one with a chance of one to ten millions.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Allocate: TypeAlias = Callable[[str, Any, tuple[int, ...]], Array]  # name, dtype, shape

_FORMAT = 1
_HEADER_BYTES = 4096
_ALIGNED = 64
_ZEROS = 1 << 20  # bytes written at a time
_OLD_S = 3_600  # nobody is still at a file of this age


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Memories are known by their place in `rows`, passages by theirs in `keys`; both ascend."""

    rows: Array  # int64
    lengths: Array  # int32: words
    created: Array  # int64: microseconds
    superseded: Array  # int64, ascending: rows of earlier segments that were touched by this one's events
    terms: Array  # uint64, ascending
    ends: Array  # int64: where the postings of each term end; they begin where those of the term before end
    most: Array  # uint32: the largest count of each term; 0 where labels have it, too
    docs: Array  # uint32: postings: places of memories, ascending in each term
    counts: Array  # unsigned: how often the text has the term
    label_ends: Array  # int64: the same for labels
    label_docs: Array
    label_fields: Array  # uint8: 0 summary, 1 tags, 2 source
    label_counts: Array  # uint32
    keys: Array  # int64: passages
    owners: Array  # uint32: the places of their memories
    matrix: Array  # int8: their vectors, each to a scale of its own
    norms: Array  # float32: the lengths of these
    spread: dict[int, Array] = field(default_factory=dict, init=False, repr=False)  # see `postings`; in no file

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, hashes: Array) -> IntArray:
        """Where these terms stand among `terms`; -1 for those that no memory here has."""
        at, here = located(self.terms, hashes)
        return np.where(here, at, -1)

    def postings(self, places: IntArray) -> list[slice]:
        """Where the postings of these terms stand."""
        return _between(self.ends, places)

    def labelled(self, places: IntArray) -> list[slice]:
        """Where the labels of these terms stand."""
        return _between(self.label_ends, places)

    def docs_of(self, rows: Array) -> IntArray:
        """The places of those of these rows that are here."""
        at, here = located(self.rows, rows)
        return at[here]


def located(ascending: Array, wanted: Array) -> tuple[IntArray, Mask]:
    """Where these values stand in an ascending array, and whether they do: if not, the place says nothing."""
    at = ascending.searchsorted(wanted)
    if not len(ascending):
        return at, np.zeros(len(wanted), np.bool_)
    np.minimum(at, len(ascending) - 1, out=at)
    return at, ascending[at] == wanted


def _between(ends: Array, places: IntArray) -> list[slice]:
    begins = np.where(places, ends[places - 1], 0)
    return list(map(slice, begins.tolist(), ends[places].tolist()))


NAMES = tuple(each.name for each in fields(Segment) if each.init)


def hashed(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Hashes(dict[str, int]):
    """Hashes of terms, worked out once: texts say the same words again and again."""

    MANY = 1 << 19

    def __missing__(self, term: str) -> int:
        if len(self) >= self.MANY:
            self.clear()
        self[term] = value = hashed(term)
        return value


def in_memory(_: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    return np.empty(shape, dtype)


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a segment reflects. Another store, model, tokeniser or history never has the same stamp."""

    store_id: str
    model: str
    words_version: int
    space: str
    after: int
    seq: int
    event: str  # when and what event `seq` was: tells a store restored from a backup


class Files:
    """The segment files of one store, beside its database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def chain(self, space: str, stamp: Callable[[int, int], Stamp], newest: int) -> list[tuple[Stamp, Segment]]:
        """Segments that follow each other from the first event on, up to the newest at most.

        Files that fit nowhere are dropped; of those after the newest event, another process may have seen more.
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
        self._drop_others(space, {(each.after, each.seq) for each, _ in chosen}, reached)
        return chosen

    def _drop_others(self, space: str, kept: Set[tuple[int, int]], reached: int) -> None:
        """What is covered by others, what nothing leads up to, and what was left behind long ago."""
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
        """The segment with this stamp, or None, and then its file is dropped."""
        path = self._path(stamp.space, stamp.after, stamp.seq)
        try:
            with path.open("rb") as file:
                header = json.loads(file.read(_HEADER_BYTES))
            if header["format"] == _FORMAT and header["stamp"] == asdict(stamp):
                whole = np.asarray(np.memmap(path, np.uint8, "r"))
                if len(whole) == header["bytes"]:
                    return Segment(**{name: _mapped(whole, header["arrays"][name]) for name in NAMES})
        except (OSError, ValueError, KeyError, TypeError):
            pass
        remove(path)
        return None

    def write(
        self, stamp: Stamp, fill: Callable[[Allocate], Mapping[str, Array]], fits: Callable[[], bool]
    ) -> Segment | None:
        """Make a file of the arrays that `fill` gives, of which it may have had some allocated in the file.

        None where somebody dropped it on the way, or it does not fit the store any more once it is there. Raises
        OSError where no file can be written.
        """
        path = self._path(stamp.space, stamp.after, stamp.seq)
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            self.folder.mkdir(exist_ok=True)
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
        """All files of a space, finished or not, but those with these stamps."""
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
    """A file in the making. Room is made for as much as an array may hold; what it does not need stays empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = _HEADER_BYTES
        self._offsets: dict[str, int] = {}
        path.write_bytes(b"")

    def allocate(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self._offsets[name] = offset = self._end
        self._end += -(-size // _ALIGNED) * _ALIGNED
        if not size:
            return np.empty(shape, dtype)
        _make_room(self._path, offset, self._end)
        return np.memmap(self._path, dtype, "r+", offset, shape)

    def finish(self, stamp: Stamp, arrays: Mapping[str, Array]) -> None:
        placed: dict[str, tuple[str, tuple[int, ...], int]] = {}
        with self._path.open("r+b") as file:
            for name in NAMES:
                array = arrays[name]
                if name not in self._offsets:
                    file.seek(self._end)
                    file.write(np.ascontiguousarray(array).tobytes())
                    self._offsets[name] = self._end
                    self._end += -(-array.nbytes // _ALIGNED) * _ALIGNED
                elif isinstance(array, np.memmap):
                    array.flush()
                placed[name] = (array.dtype.str, array.shape, self._offsets[name])
            header = {"format": _FORMAT, "stamp": asdict(stamp), "bytes": self._end, "arrays": placed}
            encoded = json.dumps(header).encode()
            if len(encoded) > _HEADER_BYTES:
                raise OSError("the name of the space is too long for a header")
            file.truncate(self._end)
            file.seek(0)
            file.write(encoded.ljust(_HEADER_BYTES))
            file.flush()
            os.fsync(file.fileno())  # a renamed file must not be empty after a power cut


def _make_room(path: Path, begin: int, end: int) -> None:
    """Raises OSError on a full disk. Writing to a mapped hole would end the process."""
    with path.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), begin, end - begin)
            return
        file.seek(begin)
        for start in range(begin, end, _ZEROS):
            file.write(bytes(min(_ZEROS, end - start)))


def _mapped(whole: npt.NDArray[np.uint8], placed: tuple[str, list[int], int]) -> Array:
    dtype, shape, offset = placed
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if offset + size > len(whole):
        raise ValueError("the file is too short")
    return whole[offset : offset + size].view(dtype).reshape(shape)


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
