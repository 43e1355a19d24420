"""Postings: which memories have a token, and how often, as bytes that numpy reads.

A row of `vocabulary` has the latest postings of its term in `tail`. A tail that is full becomes a block, a row of
`postings`. So a write of one memory changes one row for each of its terms, and a search reads a list of a hundred
thousand postings as a few large values.

A posting is about a doc: one version of the tokens of a memory. Docs are never taken out of a list, except by a purge:
a doc that no live memory has is skipped. So postings are candidates; `memories` says which of them are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nacre.storage.postgres.connection import fetch, run, run_many
from nacre.storage.postgres.schema import Db
from nacre.types.memory import BREAK, Tokens

Array: TypeAlias = npt.NDArray[Any]

POSTING = np.dtype(
    [
        ("doc", "<i8"),
        ("length", "<u4"),  # of the text
        ("words", "<u4"),  # occurrences in each field
        ("forms", "<u4"),
        ("summary", "<u2"),
        ("tags", "<u2"),
        ("source", "<u2"),
    ]
)
FIELDS = ("words", "forms", "summary", "tags", "source")
TAIL_BYTES_MAX = 64 * POSTING.itemsize
_SPARSE = 16  # docs between two of a list, up to which a table over all of them is faster than a search in the list
_SPAN_MIN = 10_000

# Postings that are a block by themselves, after what the tail of their term has.
_SEAL = (
    "INSERT INTO postings (space, term, block, entries) "
    "SELECT %s, new.term, %s, coalesce(v.tail, '') || new.entries "
    "FROM unnest(%s::text[], %s::bytea[]) AS new (term, entries) "
    "LEFT JOIN vocabulary AS v ON v.space = %s AND v.term = new.term"
)
# Returns terms whose tails have become too long. Without new entries, those of the tail are in a block already.
_APPEND = (
    "WITH written AS ("
    "INSERT INTO vocabulary AS v (space, term, memories, most_text, most_labels, least_length, tail, sealed) "
    "SELECT %s, new.*, CASE new.tail WHEN '' THEN %s ELSE 0 END "
    "FROM unnest(%s::text[], %s::int[], %s::int[], %s::int[], %s::int[], %s::bytea[]) "
    "AS new (term, memories, most_text, most_labels, least_length, tail) "
    "ON CONFLICT (space, term) DO UPDATE SET memories = v.memories + excluded.memories, "
    "most_text = greatest(v.most_text, excluded.most_text), "
    "most_labels = greatest(v.most_labels, excluded.most_labels), "
    "least_length = least(v.least_length, excluded.least_length), "
    "sealed = greatest(v.sealed, excluded.sealed), "
    "tail = CASE excluded.tail WHEN '' THEN '' ELSE v.tail || excluded.tail END "
    "RETURNING v.term, octet_length(v.tail) AS bytes) SELECT term FROM written WHERE bytes > %s"
)
_MOVE = (
    "INSERT INTO postings (space, term, block, entries) SELECT space, term, %s, tail FROM vocabulary "
    "WHERE space = %s AND term = ANY(%s)"
)
_LISTS = (
    "SELECT term, entries FROM ("
    "SELECT space, term, block, entries FROM postings WHERE space = ANY(%s) AND term = ANY(%s) UNION ALL "
    "SELECT space, term, 9223372036854775807, tail FROM vocabulary WHERE space = ANY(%s) AND term = ANY(%s)"
    ") AS parts ORDER BY space, term, block"
)


class Inverted(NamedTuple):
    """The postings of several texts, by term."""

    terms: list[str]
    memories: list[int]  # that have each term
    most_text: list[int]
    most_labels: list[int]
    least_length: list[int]
    entries: list[bytes]


def invert(texts: Sequence[tuple[int, Tokens]]) -> Inverted | None:
    """The postings of texts, given as (doc, tokens). None: they have no tokens."""
    numbers: dict[str, int] = {}
    places = [
        [
            [numbers.setdefault(token, len(numbers)) for token in getattr(tokens, field) if token != BREAK]
            for _, tokens in texts
        ]
        for field in FIELDS
    ]
    if not numbers:
        return None
    # Each occurrence as one number, by which equal ones are counted: term, text.
    occurrences = np.array(list(chain.from_iterable(chain.from_iterable(places))), np.int64) * len(texts)
    sizes = [len(of_text) for of_field in places for of_text in of_field]
    occurrences += np.repeat(np.tile(np.arange(len(texts)), len(FIELDS)), sizes)
    fields = np.repeat(np.repeat(np.arange(len(FIELDS)), len(texts)), sizes)
    pairs, place = np.unique(occurrences, return_inverse=True)
    counts = np.bincount(place * len(FIELDS) + fields, minlength=len(pairs) * len(FIELDS)).reshape(-1, len(FIELDS))
    of_text = pairs % len(texts)
    entries = np.zeros(len(pairs), POSTING)
    entries["doc"] = np.array([doc for doc, _ in texts], np.int64)[of_text]
    entries["length"] = np.array([tokens.length for _, tokens in texts], np.int64)[of_text]
    for field, column in zip(FIELDS, counts.T, strict=True):
        entries[field] = column
    of_term = pairs // len(texts)
    starts = np.flatnonzero(np.diff(of_term, prepend=-1))
    bounds = [*(starts * POSTING.itemsize).tolist(), len(pairs) * POSTING.itemsize]
    written = entries.tobytes()
    return Inverted(
        list(numbers),
        np.diff(starts, append=len(pairs)).tolist(),
        np.maximum.reduceat(counts[:, 0] + counts[:, 1], starts).tolist(),
        np.maximum.reduceat(counts[:, 2:].sum(axis=1), starts).tolist(),
        np.minimum.reduceat(entries["length"], starts).tolist(),
        [written[start:end] for start, end in pairwise(bounds)],
    )


def append(db: Db, space: str, texts: Sequence[tuple[int, Tokens]]) -> None:
    """Add live texts, given as (doc, tokens) with new docs, to the postings and counts of their space."""
    new = invert(texts)
    if new is None:
        return
    block = max(doc for doc, _ in texts)  # greater than all before it
    large = [(term, each) for term, each in zip(new.terms, new.entries, strict=True) if len(each) > TAIL_BYTES_MAX]
    if large:
        run(db, _SEAL, (space, block, *map(list, zip(*large, strict=True)), space))
        new = new._replace(entries=[b"" if len(each) > TAIL_BYTES_MAX else each for each in new.entries])
    full = [term for (term,) in fetch(db, _APPEND, (space, block, *new, TAIL_BYTES_MAX))]
    if full:
        run(db, _MOVE, (block, space, full))
        sealed = "UPDATE vocabulary SET tail = '', sealed = %s WHERE space = %s AND term = ANY(%s)"
        run(db, sealed, (block, space, full))


def lists(db: Db, spaces: Sequence[str], terms: Sequence[str]) -> dict[str, Array]:
    """By term, its postings in these spaces. Terms without any are missing."""
    parts: dict[str, list[bytes]] = {}
    for term, entries in fetch(db, _LISTS, (list(spaces), list(terms)) * 2):
        parts.setdefault(term, []).append(entries)
    return {term: np.frombuffer(b"".join(several), POSTING) for term, several in parts.items()}


def drop_docs(db: Db, space: str, terms: Sequence[str], docs: Iterable[int]) -> None:
    """Remove postings for good, as a purge does."""
    gone = np.array(list(docs), np.int64)
    for table, column in (("vocabulary", "tail"), ("postings", "entries")):
        key = "term" if table == "vocabulary" else "term, block"
        sql = f"SELECT {column}, {key} FROM {table} WHERE space = %s AND term = ANY(%s)"
        changed = []
        for found, *keys in fetch(db, sql, (space, list(terms))):
            entries = np.frombuffer(found, POSTING)
            kept = ~np.isin(entries["doc"], gone)
            if not kept.all():
                changed.append((entries[kept].tobytes(), space, *keys))
        where = " AND ".join(f"{name} = %s" for name in ("space", *key.split(", ")))
        run_many(db, f"UPDATE {table} SET {column} = %s WHERE {where}", changed)
    run(db, "DELETE FROM postings WHERE space = %s AND term = ANY(%s) AND entries = ''", (space, list(terms)))


def sorted_unique(docs: Array) -> Array:
    """Docs in ascending order, each once."""
    if not len(docs):
        return docs
    first = docs.min()
    span = int(docs.max() - first) + 1
    if _is_dense(span, len(docs)):
        there = np.zeros(span, bool)
        there[docs - first] = True
        found: Array = np.flatnonzero(there) + first
        return found
    ordered = np.sort(docs, kind="stable")  # they are mostly sorted runs, which this merges
    return ordered[np.diff(ordered, prepend=-1) > 0]


def located(docs: Array, wanted: Array) -> tuple[Array, Array]:
    """The places of wanted docs in sorted ones, and which of them are there."""
    if not len(docs):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    return at, docs[at] == wanted


class Places:
    """Finds sorted docs in other sorted ones: by a table where these lie close together, which is ten times faster."""

    def __init__(self, docs: Array) -> None:
        self._docs = docs
        self._table: Array | None = None
        if len(docs) and _is_dense(span := int(docs[-1] - docs[0]) + 1, len(docs)):
            self._table = np.full(span, -1, np.int32)
            self._table[docs - docs[0]] = np.arange(len(docs), dtype=np.int32)

    def of(self, wanted: Array) -> tuple[Array, Array]:
        """The places of those of the wanted docs that are there, and which these are, as an index."""
        if len(wanted) > _SPARSE * len(self._docs):  # the few are looked up among the many
            here, there = located(wanted, self._docs)
            return np.flatnonzero(there), here[there]
        if self._table is None:
            place, there = located(self._docs, wanted)
            return place[there], np.flatnonzero(there)
        start, end = np.searchsorted(wanted, (self._docs[0], self._docs[-1] + 1)).tolist()
        place = self._table[wanted[start:end] - self._docs[0]]
        here = np.flatnonzero(place >= 0)
        return place[here], here + start


def _is_dense(span: int, docs: int) -> bool:
    """Whether a table over this span of docs costs little beside reading so many of them."""
    return span <= _SPAN_MIN + _SPARSE * docs
