"""Lists of postings that a process keeps, so that each block is sent to it once.

A block stays right for as long as it is kept: a doc is never given to another text, and one that no live memory has is
skipped. So a list that is kept lacks nothing but later blocks, and `vocabulary.sealed` says if there are any. Only a
server that was restored may give docs again, or another one in its place, so lists are of one start of a server.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.postings import POSTING, Array
from nacre.storage.postgres.schema import Db

KEPT_BYTES_MAX = 128 << 20  # of the lists that a process keeps of a server
_LATER_BLOCKS = (
    "SELECT p.space, p.term, p.entries FROM unnest(%s::text[], %s::text[], %s::bigint[]) "
    "AS given (space, term, block) JOIN postings AS p ON p.space = given.space AND p.term = given.term "
    "AND p.block > given.block ORDER BY p.space, p.term, p.block"
)


Key: TypeAlias = tuple[str, str]  # space and term


class CountedTerm(NamedTuple):
    """A row of `vocabulary`."""

    space: str
    term: str
    memories: int
    most_text: int
    most_labels: int
    least_length: int
    sealed: int  # the last block; 0: none
    tail: bytes

    @property
    def key(self) -> Key:
        return self.space, self.term


@dataclass(frozen=True, slots=True)
class PostingList:
    """Postings of a term in a space, by doc, as columns."""

    docs: Array
    counts: Array  # occurrences in the text, as words or other forms
    lengths: Array
    labels: Array | None  # the same postings, if any is about a label
    sealed: int = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(each.nbytes for each in (self.docs, self.counts, self.lengths, self.labels) if each is not None)

    def after(self, doc: int) -> PostingList:
        """The postings of later docs."""
        start = int(np.searchsorted(self.docs, doc, side="right"))
        labels = None if self.labels is None else self.labels[start:]
        return PostingList(self.docs[start:], self.counts[start:], self.lengths[start:], labels)

    def and_blocks(self, entries: Array, sealed: int) -> PostingList:
        """With later blocks."""
        more = of_entries(entries)
        labels = None
        if self.labels is not None or more.labels is not None:
            labels = np.concatenate(
                [np.zeros(len(each.docs), POSTING) if each.labels is None else each.labels for each in (self, more)]
            )
        return PostingList(
            np.concatenate([self.docs, more.docs]),
            np.concatenate([self.counts, more.counts]),
            np.concatenate([self.lengths, more.lengths]),
            labels,
            sealed,
        )


def of_entries(entries: Array) -> PostingList:
    in_labels = entries["summary"].any() or entries["tags"].any() or entries["source"].any()
    return PostingList(
        entries["doc"].astype(np.int64),
        entries["words"].astype(np.float64) + entries["forms"],
        entries["length"].astype(np.float64),
        entries.copy() if in_labels else None,
    )


_NONE = of_entries(np.empty(0, POSTING))


def _with_later_blocks(db: Db, kept: Mapping[Key, PostingList], terms: Sequence[CountedTerm]) -> dict[Key, PostingList]:
    """The lists of these terms with the blocks that they lack."""
    blocks: defaultdict[Key, list[bytes]] = defaultdict(list)
    spaces, texts = [each.space for each in terms], [each.term for each in terms]
    for space, term, entries in fetch(db, _LATER_BLOCKS, (spaces, texts, [kept[each.key].sealed for each in terms])):
        blocks[space, term].append(entries)
    return {
        each.key: kept[each.key].and_blocks(np.frombuffer(b"".join(blocks[each.key]), POSTING), each.sealed)
        for each in terms
    }


class KeptLists:
    """Safe to use from several threads. What was not used for longest is dropped first."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[str, str, str], PostingList] = OrderedDict()
        self._bytes = 0

    def lists(self, db: Db, started: str, terms: Sequence[CountedTerm]) -> dict[Key, list[PostingList]]:
        """By space and term, the postings up to the last block, and those after it.

        `started` tells the server of this connection from others, and its tables from those before a restoration.
        """
        kept = self._known(started, terms)
        lacking = [each for each in terms if kept[each.key].sealed < each.sealed]
        if lacking:
            read = _with_later_blocks(db, kept, lacking)
            self._keep(started, read)
            kept |= read
        found = {}
        for each in terms:
            blocks = kept[each.key]
            # What is kept may be newer than what this transaction sees, and then has some of its tail.
            tail = of_entries(np.frombuffer(each.tail, POSTING)).after(blocks.sealed)
            found[each.key] = [part for part in (blocks, tail) if len(part.docs)]
        return found

    def _known(self, started: str, terms: Sequence[CountedTerm]) -> dict[Key, PostingList]:
        found = {}
        with self._lock:
            for each in terms:
                found[each.key] = self._lists.get((started, *each.key), _NONE)
                if found[each.key] is not _NONE:
                    self._lists.move_to_end((started, *each.key))
        return found

    def _keep(self, started: str, lists: Mapping[Key, PostingList]) -> None:
        with self._lock:
            for key, read in lists.items():
                known = self._lists.pop((started, *key), _NONE)
                later = max(known, read, key=lambda each: each.sealed)  # another thread may have read more
                self._lists[started, *key] = later
                self._bytes += later.size - known.size
            while self._bytes > self._bytes_max:
                _, dropped = self._lists.popitem(last=False)
                self._bytes -= dropped.size
