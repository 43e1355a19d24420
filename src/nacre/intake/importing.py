"""An import: what an importer reads becomes memories, batch by batch. Repeating it adds nothing.

Each batch is a transaction of its own, so an import that was stopped is continued by repeating it: what came in before
is found by its keys and not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from nacre import validation
from nacre.access import Access
from nacre.analysis.language import language_of
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput, NacreError
from nacre.importers.importer import Refused
from nacre.types.memory import Memory, NewMemory, Remembered
from nacre.types.search import Filter
from nacre.validation import LIMITS

_SCREENED = ("text", "summary", "source", "tags", "metadata")

Records: TypeAlias = Iterable[NewMemory | Refused]
Refuse: TypeAlias = Callable[[str, NacreError], None]  # where a record stands, and what is wrong with it

_PLACES_KEPT = 30_000  # more than two batches: a record is refused before the batch after its own is read
_SEEN_AT_ONCE = 500  # of a preview
_SHOWN = 5
# What a memory is compared by, where it was given. The time of creation stays, whatever is given later.
_COMPARED = (
    "text",
    "namespace",
    "summary",
    "tags",
    "source",
    "session",
    "position",
    "metadata",
    "importance",
    "pinned",
    "origin",
)


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What became of the records so far."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Preview:
    """What an import would bring in."""

    counts: ImportCounts = ImportCounts()
    first: tuple[NewMemory, ...] = ()
    earliest: datetime | None = None
    latest: datetime | None = None
    sessions: int = 0


def adjusted(records: Records, *, namespace: str | None, tags: Sequence[str], limit: int | None) -> Records:
    """The records, with what the caller wants of all of them; no more memories than the limit."""
    count = 0
    for each in records:
        if isinstance(each, Refused):
            yield each
            continue
        if limit is not None and count == limit:
            return
        count += 1
        if namespace is not None or tags:
            joined = tuple(dict.fromkeys((*each.tags, *tags)))
            each = replace(each, tags=joined, namespace=each.namespace if namespace is None else namespace)
        yield each


class Unforgotten:
    """The records without those whose memories were forgotten here. `forgotten` counts these.

    What somebody has forgotten is still in the source, and would come back with every import.
    """

    def __init__(self, memory: Nacre, records: Records) -> None:
        self._memory = memory
        self._records = records
        self.forgotten = 0

    def __iter__(self) -> Iterator[NewMemory | Refused]:
        rest = iter(self._records)
        while batch := list(islice(rest, _SEEN_AT_ONCE)):
            gone = self._gone({each.key for each in batch if isinstance(each, NewMemory) and each.key is not None})
            for each in batch:
                if isinstance(each, NewMemory) and each.key in gone:
                    self.forgotten += 1
                else:
                    yield each

    def _gone(self, keys: set[str]) -> set[str]:
        """Those of these keys that a forgotten memory has, and no live one."""
        fit = sorted(each for each in keys if 0 < len(each) <= LIMITS.key_chars_max and validation.storable(each))
        if not fit:
            return set()
        forgotten = self._memory.every(Filter(key_prefixes=fit), forgotten=True)
        gone = {each.key for each in forgotten if each.key is not None} & keys
        return gone - {each.key for each in self._memory.get(keys=sorted(gone), missing_ok=True)} if gone else gone


# ---------------------------------------------------------------- done


class Import:
    """Brings records into a memory. `notes` say where secrets were found.

    `at_once` is how many memories are stored between two counts; None is as many as is fastest without an embedder.
    """

    def __init__(self, memory: Nacre, records: Records, refuse: Refuse, *, at_once: int | None = None) -> None:
        self._memory = memory
        self._records = records
        self._refuse = refuse
        self._at_once = at_once
        self._places: dict[int, str] = {}
        self._refused = 0
        self.notes: list[str] = []

    def run(self) -> Iterator[ImportCounts]:
        """The counts so far, after each batch."""
        new = changed = unchanged = 0
        for receipts in self._batches():
            for each in receipts:
                if not each.duplicate:
                    new += 1
                elif each.changed:
                    changed += 1
                else:
                    unchanged += 1
                if len(self.notes) < LIMITS.results_max:
                    self.notes += [f"{each.id}: {note}" for note in each.notes]
            yield ImportCounts(new, changed, unchanged, self._refused)
        yield ImportCounts(new, changed, unchanged, self._refused)

    def _batches(self) -> Iterator[list[Remembered]]:
        items, before = self._items(), 0
        if self._at_once is None:
            yield from self._memory.remember_batches(items, refused=self._not_stored)
            return
        while some := list(islice(items, self._at_once)):
            refuse = partial(self._not_stored, before=before)
            yield from self._memory.remember_batches(some, refused=refuse)
            before += len(some)

    def _items(self) -> Iterator[NewMemory]:
        number = 0
        for each in self._records:
            if isinstance(each, Refused):
                self._refused += 1
                self._refuse(each.where, InvalidInput("", each.problem))
                continue
            number += 1
            self._places[number] = place_of(each)
            self._places.pop(number - _PLACES_KEPT, None)
            yield each

    def _not_stored(self, number: int, error: NacreError, before: int = 0) -> None:
        self._refused += 1
        self._refuse(self._places.get(before + number, f"memory {before + number}"), error)


def place_of(new: NewMemory) -> str:
    """Where a memory comes from, as people read it: its key says that best."""
    return new.key or new.text[:60]


def problem_of(error: NacreError) -> str:
    if not isinstance(error, InvalidInput):
        return str(error)
    return f"{error.field}: {error.problem}" if error.field else error.problem


# ---------------------------------------------------------------- only looked at


def preview(memory: Nacre, records: Records, refuse: Refuse) -> Iterator[Preview]:
    """What an import would do, so far, after each batch. Nothing is written."""
    counts = {"new": 0, "changed": 0, "unchanged": 0, "refused": 0}
    first: list[NewMemory] = []
    span: list[datetime] = []
    sessions: set[int] = set()
    seen: set[int] = set()  # hashes: a file may have millions of keys
    rest = iter(records)
    while True:
        batch = list(islice(rest, _SEEN_AT_ONCE))
        good = []
        for each in batch:
            checked = _checked(memory, each, refuse)
            if checked is None:
                counts["refused"] += 1
            else:
                good.append(checked)
        known = _known(memory, good)
        for new in good:
            mark = hash(new.key or new.text)
            stored = None if new.key is None else known.get(new.key)
            if mark in seen:
                what = "unchanged"
            else:
                what = "new" if stored is None else "changed" if differs(new, stored) else "unchanged"
            seen.add(mark)
            counts[what] += 1
            first += [new] if len(first) < _SHOWN and what != "unchanged" else []
            moment = new.happened or new.created
            span = [min([*span, moment]), max([*span, moment])] if moment is not None else span
            if new.session is not None:
                sessions.add(hash(new.session))
        earliest, latest = span or (None, None)
        yield Preview(ImportCounts(**counts), tuple(first), earliest, latest, len(sessions))
        if not batch:
            return


def _checked(memory: Nacre, each: NewMemory | Refused, refuse: Refuse) -> NewMemory | None:
    """The memory as it would be stored; None if it is refused."""
    if isinstance(each, Refused):
        refuse(each.where, InvalidInput("", each.problem))
        return None
    try:
        checked = validation.memory(each, Access(), datetime.now(UTC), LIMITS)
        return replace(checked, **{name: _screened(memory, getattr(checked, name), name) for name in _SCREENED})
    except NacreError as error:
        refuse(place_of(each), error)
        return None


def _known(memory: Nacre, several: Sequence[NewMemory]) -> dict[str, Memory]:
    keys = list(dict.fromkeys(each.key for each in several if each.key is not None))
    if not keys:
        return {}
    return {each.key: each for each in memory.get(keys=keys, missing_ok=True) if each.key is not None}


def differs(new: NewMemory, stored: Memory) -> bool:
    """Whether remembering it again would change what is stored. Facts that are recognised in texts are not compared."""
    if (new.language or language_of(new.text)) != stored.language:
        return True
    if any(getattr(new, name) not in (None, getattr(stored, name)) for name in ("kind", "happened")):
        return True
    return any(getattr(new, name) != getattr(stored, name) for name in _COMPARED)


def _screened(memory: Nacre, value: Any, name: str) -> Any:
    """A value as it would be stored."""
    if isinstance(value, str):
        return memory.screen(value, name).text
    if isinstance(value, Mapping):
        return {key: _screened(memory, each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_screened(memory, each, name) for each in value)
    return value
