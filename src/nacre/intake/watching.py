"""Keeps memories in step with a folder of notes, one way: the folder is right.

A step compares what is on disk with what is stored under the keys of the folder. Each of its writes is a transaction,
and it keeps nothing elsewhere, so it may be killed at any moment; the next step, of any process, goes on from what is
there. A note under another name stays the same memory: what is gone and what is new are matched by their texts.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TypeAlias

from nacre.analysis.private import PRIVATE_ONLY
from nacre.analysis.wording import count_memories
from nacre.engine.engine import Nacre
from nacre.errors import Conflict, InvalidInput, NacreError, NotFound
from nacre.importers import notes
from nacre.importers.importer import Refused, Source, part_of_key
from nacre.intake.importing import adjusted, place_of, problem_of
from nacre.types.memory import NewMemory
from nacre.types.search import Filter

GRACE_SECONDS = 3.0  # a file that an editor replaces may be gone for a moment
_WATCHED_BYTES_MAX = 64_000_000  # of a file, whose memories are held together
_FILES_AT_ONCE = 200
_CHARS_AT_ONCE = 2_000_000
_KEYS_AT_ONCE = 500
_TEMPORARY = "~"  # with which the names of temporary files begin

_Look: TypeAlias = tuple[int, int, int, int]  # of a file, by which it is told that it has changed


class Step(NamedTuple):
    """What a step did, in memories. `pending` files are gone, but not long enough for their memories to be forgotten.

    `note` says why nothing is forgotten.
    """

    new: int = 0
    changed: int = 0
    moved: int = 0
    forgotten: int = 0
    refused: tuple[Refused, ...] = ()
    pending: int = 0
    note: str | None = None


class _File(NamedTuple):
    within: str
    path: Path
    look: _Look


class _OnDisk(NamedTuple):
    """The files of the folder by the keys of their first memories, and what could not be looked at."""

    files: dict[str, _File]
    unreadable: tuple[str, ...]  # with which the keys of unreadable folders begin
    refused: list[Refused]


class FolderSync:
    """A folder and the memories of its notes. `name` stands in their keys; by default it is that of the folder."""

    def __init__(
        self,
        memory: Nacre,
        folder: Path,
        *,
        name: str | None = None,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        encoding: str | None = None,
        grace_seconds: float = GRACE_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        check_folder(folder, name)
        self._memory = memory
        self._folder = Path(os.path.realpath(folder))
        self._source = Source(self._folder, name=name, encoding=encoding)
        self._namespace = namespace
        self._tags = tags
        self._grace = grace_seconds
        self._clock = clock
        self._device = self._folder.stat().st_dev
        self._looks: dict[str, _Look] = {}
        self._known: dict[str, set[str]] | None = None  # by file: the keys of its memories
        self._gone_since: dict[str, float] = {}

    @property
    def prefix(self) -> str:
        """With which the keys of all its memories begin."""
        return notes.key_of(self._source, "/").removesuffix("/")

    def step(self) -> Step:
        """Bring the memories in step with what is on disk now."""
        if self._known is None:
            self._known = self._stored()
        known = self._known
        disk = self._look()
        if disk is None:
            return Step(note=f"{self._folder} is not there; nothing is forgotten")
        if not disk.files and known:
            held = sum(map(len, known.values()))
            kept = f"{count_memories(held)} {'is' if held == 1 else 'are'} kept"
            undo = f"`nacre forget --where key:{self.prefix}` forgets {'it' if held == 1 else 'them'}"
            note = f"{self._folder} has no notes any more, of which {kept}; {undo}"
            return Step(refused=tuple(disk.refused), note=note)
        work = _Work(self._memory, known, disk.refused)
        vanished = [key for key in known if key not in disk.files and not key.startswith(disk.unreadable)]
        for some in self._read(disk, work):
            work.write(some, vanished)
            self._looks |= {key: disk.files[key].look for key, _ in some}
        pending = self._forget(vanished, work)
        return Step(work.new, work.changed, work.moved, work.forgotten, tuple(work.refused), pending)

    # ---- what is there

    def _stored(self) -> dict[str, set[str]]:
        """The keys of the folder's memories. Raises InvalidInput if they are those of another folder."""
        found: dict[str, set[str]] = defaultdict(set)
        checked: set[str] = set()
        for each in self._memory.every(Filter(key_prefixes=(self.prefix,))):
            if each.key is None:
                continue
            file, _, _ = each.key.partition("#")
            found[file].add(each.key)
            place = "/" + file.removeprefix(self.prefix).replace("%23", "#").replace("%25", "%")
            source = Path(each.source or "").as_posix()
            root = source.removesuffix(place)
            if root != source and root not in checked:
                checked.add(root)
                if root != self._folder.as_posix() and Path(root).is_dir():
                    raise InvalidInput(
                        "name", f"{self._source.name!r} is that of {root} already; give this folder another with --name"
                    )
        return dict(found)

    def _look(self) -> _OnDisk | None:
        """What is in the folder; None if it is gone, or another disk is in its place."""
        try:
            if self._folder.stat().st_dev != self._device:
                return None
        except OSError:
            return None
        disk = _OnDisk({}, (), [])
        unreadable: list[str] = []
        for each in self._source.files(notes.TEXTS):
            if isinstance(each, Refused):
                if each.where == ".":
                    return None
                disk.refused.append(each)
                unreadable.append(self.prefix + part_of_key(each.where, len(each.where) * 3))
                continue
            within, path = each
            if path.name.startswith(_TEMPORARY):
                continue
            try:
                found = path.stat()
                look = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            except OSError:  # gone since, or not to be read, which is said when it is read
                look = (0, 0, 0, 0)
            disk.files[notes.key_of(self._source, within)] = _File(within, path, look)
        return disk._replace(unreadable=tuple(unreadable))

    def _read(self, disk: _OnDisk, work: _Work) -> Iterator[list[tuple[str, list[NewMemory]]]]:
        """The memories of files that have changed, some files at a time. One that cannot be read keeps its memories."""
        some: list[tuple[str, list[NewMemory]]] = []
        chars = 0
        for key, file in disk.files.items():
            if self._looks.get(key) == file.look:
                continue
            if file.look[2] > _WATCHED_BYTES_MAX:
                work.refused.append(Refused(file.within, "is too long to be watched; `nacre import` reads it"))
                self._looks[key] = file.look
                continue
            is_markdown = file.path.suffix.lower() in notes.MARKDOWN
            records = notes.read_file(self._source, file.within, file.path, is_markdown=is_markdown)
            found = list(adjusted(records, namespace=self._namespace, tags=self._tags, limit=None))
            problems = [each for each in found if isinstance(each, Refused)]
            work.refused += problems
            if any(each.problem != PRIVATE_ONLY for each in problems):
                self._looks[key] = file.look
                continue
            memories = [each for each in found if isinstance(each, NewMemory)]
            some.append((key, memories))
            chars += sum(len(each.text) for each in memories)
            if len(some) >= _FILES_AT_ONCE or chars >= _CHARS_AT_ONCE:
                yield some
                some, chars = [], 0
        if some:
            yield some

    def _forget(self, vanished: Sequence[str], work: _Work) -> int:
        """Forget the memories of files that are gone for good. Returns how many have just gone."""
        gone = {key for key in vanished if key in work.known}
        now = self._clock()
        self._gone_since = {key: self._gone_since.get(key, now) for key in gone}
        over = [key for key, since in self._gone_since.items() if now - since >= self._grace]
        work.forget(chain.from_iterable(work.known[key] for key in over))
        for key in over:
            del work.known[key], self._gone_since[key]
            self._looks.pop(key, None)
        return len(self._gone_since)


def check_folder(folder: Path, name: str | None) -> None:
    """Raise InvalidInput for what cannot be kept in step."""
    if not os.path.isdir(folder):  # noqa: PTH112  # a Path raises where a name is too long
        raise InvalidInput("folder", f"{folder} is no folder")
    Source(folder, name=name)


class _Work:
    """The writes of a step, and their counts. `known` is kept as it is in the store."""

    def __init__(self, memory: Nacre, known: dict[str, set[str]], refused: list[Refused]) -> None:
        self._memory = memory
        self.known = known
        self.new = self.changed = self.moved = self.forgotten = 0
        self.refused = refused
        self._vanished: dict[bytes, list[str]] | None = None  # by text: the keys of memories whose files are gone

    def write(self, files: Sequence[tuple[str, list[NewMemory]]], vanished: Sequence[str]) -> None:
        """Store what some files say now, and forget what they do not say any more."""
        stale: dict[str, None] = {}
        fresh: list[NewMemory] = []
        for file, memories in files:
            before = self.known.get(file, set())
            now = {each.key for each in memories}
            stale |= dict.fromkeys(key for key in sorted(before) if key not in now)
            fresh += [each for each in memories if each.key not in before]
        moved = self._move(fresh, stale, vanished)
        self._remember([each for _, memories in files for each in memories], moved)
        self.forget(stale)
        for file, memories in files:
            self.known[file] = {each.key for each in memories if each.key is not None}
            if not memories:
                del self.known[file]

    def _move(self, fresh: Sequence[NewMemory], stale: dict[str, None], vanished: Sequence[str]) -> set[str]:
        """Give memories whose texts stand elsewhere now their new keys, and take them out of what is stale."""
        if not fresh or not (stale or vanished):
            return set()
        here = self._by_text(stale)
        if self._vanished is None:
            self._vanished = self._by_text(chain.from_iterable(sorted(self.known.get(key, ())) for key in vanished))
        moved: set[str] = set()
        for each in fresh:
            digest = self._digest_as_stored(each.text)
            olds = here.get(digest) or self._vanished.get(digest)
            if not olds or each.key is None:
                continue
            old = olds.pop(0)
            if self._renamed(old, each.key):
                moved.add(each.key)
                stale.pop(old, None)
                self._drop(old)
        self.moved += len(moved)
        return moved

    def _renamed(self, old: str, new: str) -> bool:
        found = self._memory.get(keys=old, missing_ok=True).memories
        try:
            for each in found:
                self._memory.update(each.id, key=new)
        except (Conflict, NotFound):  # another process was faster
            return False
        return bool(found)

    def _drop(self, key: str) -> None:
        """A key is not one of its file any more, and a file without keys is not known any more."""
        file = key.partition("#")[0]
        keys = self.known.get(file, set())
        keys.discard(key)
        if not keys:
            self.known.pop(file, None)

    def _remember(self, items: Sequence[NewMemory], moved: set[str]) -> None:
        bad: set[int] = set()

        def refuse(number: int, error: NacreError) -> None:
            bad.add(number)
            self.refused.append(Refused(place_of(items[number - 1]), problem_of(error)))

        receipts = list(chain.from_iterable(self._memory.remember_batches(items, refused=refuse)))
        stored = [each for number, each in enumerate(items, 1) if number not in bad]
        for item, receipt in zip(stored, receipts, strict=True):
            if not receipt.duplicate:
                self.new += 1
            elif receipt.changed and item.key not in moved:
                self.changed += 1

    def forget(self, keys: Iterable[str]) -> None:
        for some in _slices(keys):
            self.forgotten += len(self._memory.forget(keys=some, missing_ok=True).ids)

    def _by_text(self, keys: Iterable[str]) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = defaultdict(list)
        for some in _slices(keys):
            for each in self._memory.get(keys=some, missing_ok=True):
                if each.key is not None:
                    found[_digest(each.text)].append(each.key)
        return found

    def _digest_as_stored(self, text: str) -> bytes:
        try:
            return _digest(self._memory.screen(text).text)
        except InvalidInput:  # has secrets, and will be refused
            return b""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _slices(keys: Iterable[str]) -> Iterator[list[str]]:
    rest = list(keys)
    return (rest[at : at + _KEYS_AT_ONCE] for at in range(0, len(rest), _KEYS_AT_ONCE))
