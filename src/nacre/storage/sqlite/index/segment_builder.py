"""Builds segments from rows, and merges segments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apsw
import numpy as np

from nacre.storage.sqlite.index.segment import (
    MAIN,
    Allocate,
    Array,
    Hashes,
    IntArray,
    Mask,
    Segment,
    column_name,
    in_memory,
)
from nacre.storage.sqlite.rows import fetch
from nacre.storage.vectors import STORED
from nacre.types.memory import Json

_MERGED_POSTINGS = 4_000_000  # at a time: bounds the memory that merging needs
_MERGED_PASSAGES = 65_536
_NOWHERE = np.iinfo(np.uint32).max

# ---------------------------------------------------------------- filter terms: no word contains a zero character


def having(field: str, value: str) -> str:
    """The term of memories that have this value in a field."""
    return f"\0{field}\0{value}"


def with_part(part: str) -> str:
    """The term of memories that have this part."""
    return f"\0has\0{part}"


def with_metadata(key: str, value: Json) -> str:
    """The term of memories with this metadata. JSON equality: true does not equal 1, but 1 equals 1.0.

    No filter has lists or objects as values.
    """
    match value:
        case None | bool() | str():
            encoded = json.dumps(value)
        case float() if not value.is_integer():
            encoded = repr(value)
        case int() | float():
            encoded = str(int(value))
        case _:
            encoded = ""
    return f"\0metadata\0{key}\0{encoded}"


def _filter_terms(columns: Sequence[Any]) -> Iterator[str]:
    """All filter terms of a memory."""
    kind, namespace, source, session, tags, metadata, summarised = columns
    yield having("kind", kind)
    yield having("namespace", namespace)
    if source is not None:
        yield having("source", source)
        yield with_part("source")
    if session is not None:
        yield having("session", session)
        yield with_part("session")
    if tags != "[]":
        yield with_part("tags")
        for tag in json.loads(tags):
            yield having("tag", tag)
    if metadata != "{}":
        yield with_part("metadata")
        for key, value in json.loads(metadata).items():
            yield with_metadata(key, value)
    if summarised:
        yield with_part("summary")


# ---------------------------------------------------------------- segments of rows

_ROWS = """
SELECT m.row, t.length, m.created_us, m.importance, t.words || ' ' || t.forms, t.summary, t.tags, t.source,
       m.kind, m.namespace, m.source, m.session, m.tags, m.metadata, m.summary IS NOT NULL
FROM json_each(?) AS j JOIN memories AS m ON m.row = j.value JOIN tokens AS t ON t.row = j.value
WHERE m.deleted_us IS NULL AND m.space = ? ORDER BY m.row
"""
_PASSAGES = """
SELECT p.passage, p.row, p.vector FROM json_each(?) AS j JOIN memories AS m ON m.row = j.value
JOIN passages AS p ON p.row = j.value WHERE m.deleted_us IS NULL AND m.space = ? ORDER BY p.passage
"""
_FURTHER_PASSAGES = """
SELECT p.passage, p.row, p.vector FROM json_each(?) AS j JOIN memories AS m ON m.row = j.value
JOIN further_passages AS p ON p.row = j.value WHERE m.deleted_us IS NULL AND m.space = ? AND p.model = ?
ORDER BY p.passage
"""


def of_rows(db: apsw.Connection, space: str, changed: Sequence[int], hashes: Hashes) -> Segment:
    """A segment of those of these rows that are live memories of the space."""
    listed = (json.dumps(changed), space)
    rows: list[int] = []
    lengths: list[int] = []
    created: list[int] = []
    importance: list[float] = []
    tokens: list[int] = []  # hashes, memory by memory
    tokens_each: list[int] = []
    filters: list[int] = []
    filters_each: list[int] = []
    labels: list[tuple[int, int, int]] = []  # hash, place of the memory, field
    look_up = hashes.__getitem__
    for row, length, created_us, important, text, *rest in db.execute(_ROWS, listed):
        words = text.split()
        tokens.extend(map(look_up, words))
        tokens_each.append(len(words))
        before = len(filters)
        filters.extend(map(look_up, _filter_terms(rest[3:])))
        filters_each.append(len(filters) - before)
        for field, label in enumerate(rest[:3]):
            if label:
                labels.extend((look_up(token), len(rows), field) for token in label.split())
        rows.append(row)
        lengths.append(length)
        created.append(created_us)
        importance.append(important)
    row_array = np.array(rows, np.int64)
    further: dict[str, Array] = {}
    for (number,) in fetch(db, "SELECT model FROM further_models ORDER BY model"):
        further |= _columns(number, *_passages(db, _FURTHER_PASSAGES, (*listed, number), row_array))
    return Segment(
        rows=row_array,
        lengths=np.array(lengths, np.int32),
        created=np.array(created, np.int64),
        importance=np.array(importance, np.float64),
        superseded=np.array(sorted(changed), np.int64),
        **_postings(tokens, tokens_each, filters, filters_each, labels),
        **_columns(MAIN, *_passages(db, _PASSAGES, listed, row_array)),
        further=further,
    )


def _columns(model: int, keys: Array, owners: Array, matrix: Array) -> dict[str, Array]:
    named = {"keys": keys, "owners": owners, "matrix": matrix, "norms": _norms(matrix)}
    return {column_name(name, model): array for name, array in named.items()}


def _postings(
    tokens: list[int],
    tokens_each: list[int],
    filters: list[int],
    filters_each: list[int],
    labels: list[tuple[int, int, int]],
) -> dict[str, Array]:
    many = np.arange(len(tokens_each), dtype=np.uint32)
    label_terms = np.array([term for term, _, _ in labels], np.uint64)
    label_docs = np.array([doc for _, doc, _ in labels], np.uint32)
    label_fields = np.array([field for _, _, field in labels], np.uint8)
    terms = np.concatenate([np.array(tokens, np.uint64), np.array(filters, np.uint64), label_terms])
    docs = np.concatenate([np.repeat(many, tokens_each), np.repeat(many, filters_each), label_docs])
    once = np.ones(len(terms), np.uint32)
    once[len(terms) - len(labels) :] = 0  # a label makes a posting, but it is no occurrence in the text
    order = np.lexsort((docs, terms)) if labels else np.argsort(terms, kind="stable")
    terms, docs, once = terms[order], docs[order], once[order]
    first = first_of_each(terms, docs)
    counts = np.add.reduceat(once, first) if len(first) else once
    terms, docs = terms[first], docs[first]
    begin = first_of_each(terms)
    own = terms[begin]
    ends = np.append(begin[1:], len(terms)).astype(np.int64) if len(begin) else begin
    order = np.lexsort((label_fields, label_docs, label_terms))
    label_terms, label_docs, label_fields = label_terms[order], label_docs[order], label_fields[order]
    begun = first_of_each(label_terms, label_docs, label_fields)
    label_counts = np.diff(np.append(begun, len(label_terms))).astype(np.uint32)
    label_ends = np.searchsorted(label_terms[begun], own, side="right").astype(np.int64)
    most = np.maximum.reduceat(counts, begin) if len(begin) else counts
    most[np.diff(label_ends, prepend=0) > 0] = 0
    return {
        "terms": own,
        "ends": ends,
        "most": most.astype(np.uint32),
        "docs": docs,
        "counts": counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
        "label_ends": label_ends,
        "label_docs": label_docs[begun],
        "label_fields": label_fields[begun],
        "label_counts": label_counts,
    }


def first_of_each(*columns: Array) -> IntArray:
    """Places in sorted columns where the values differ from the previous ones."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def _passages(
    db: apsw.Connection, sql: str, parameters: tuple[str | int, ...], rows: IntArray
) -> tuple[Array, Array, Array]:
    found = fetch(db, sql, parameters)
    keys = np.array([key for key, _, _ in found], np.int64)
    owners = np.searchsorted(rows, np.array([row for _, row, _ in found], np.int64)).astype(np.uint32)
    if not found:
        return keys, owners, np.empty((0, 0), np.int8)
    stored = np.frombuffer(b"".join([vector for _, _, vector in found]), STORED)
    return keys, owners, quantised(stored.reshape(len(found), -1).astype(np.float32))


def quantised(vectors: Array) -> Array:
    """Vectors of 8-bit integers with the same directions."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    rounded: Array = np.rint(vectors * (127 / np.maximum(largest, 1e-12))).astype(np.int8)
    return rounded


def _norms(matrix: Array) -> Array:
    lengths = np.sqrt(np.square(matrix.astype(np.float32)).sum(axis=1))
    norms: Array = np.maximum(lengths, np.float32(1e-12))
    return norms


# ---------------------------------------------------------------- segments of segments


def merge(
    parts: Sequence[tuple[Segment, Mask | None]],
    base: bool,
    allocate: Allocate = in_memory,
    pulse: Callable[[], None] = lambda: None,
) -> Mapping[str, Array]:
    """The arrays of one segment merged from several, oldest first, each with the mask of its live memories (None: all).

    `base`: it is the first segment, so it supersedes no other. `pulse` is called now and then and may raise.
    """
    rows, placed = _new_places(parts)
    superseded = np.unique(np.concatenate([part.superseded for part, _ in parts]))
    return {
        "rows": rows,
        "lengths": _moved([part.lengths for part, _ in parts], placed, len(rows)),
        "created": _moved([part.created for part, _ in parts], placed, len(rows)),
        "importance": _moved([part.importance for part, _ in parts], placed, len(rows)),
        "superseded": superseded[:0] if base else superseded,
        **_merged_passages([part for part, _ in parts], placed, MAIN, allocate, pulse),
        **_merged_postings([part for part, _ in parts], placed, allocate, pulse),
        **_merged_further([part for part, _ in parts], placed, allocate, pulse),
    }


def _new_places(parts: Sequence[tuple[Segment, Mask | None]]) -> tuple[IntArray, list[Array]]:
    """All live rows, and by part the new place of each of its memories."""
    kept = [np.arange(len(part)) if alive is None else np.flatnonzero(alive) for part, alive in parts]
    rows = np.concatenate([part.rows[each] for (part, _), each in zip(parts, kept, strict=True)])
    order = np.argsort(rows, kind="stable")
    new = np.empty(len(rows), np.uint32)
    new[order] = np.arange(len(rows), dtype=np.uint32)
    placed = []
    begun = 0
    for (part, _), each in zip(parts, kept, strict=True):
        places = np.full(len(part), _NOWHERE, np.uint32)
        places[each] = new[begun : begun + len(each)]
        begun += len(each)
        placed.append(places)
    return rows[order], placed


def _moved(columns: Sequence[Array], placed: Sequence[Array], many: int) -> Array:
    moved = np.empty(many, columns[0].dtype)
    for column, places in zip(columns, placed, strict=True):
        kept = places != _NOWHERE
        moved[places[kept]] = column[kept]
    return moved


def _merged_further(
    parts: Sequence[Segment], placed: Sequence[Array], allocate: Allocate, pulse: Callable[[], None]
) -> dict[str, Array]:
    merged: dict[str, Array] = {}
    for model in sorted({model for part in parts for model in part.models} - {MAIN}):
        merged |= _merged_passages(parts, placed, model, allocate, pulse)
    return merged


def _merged_passages(
    segments: Sequence[Segment],
    placed: Sequence[Array],
    model: int,
    allocate: Allocate,
    pulse: Callable[[], None],
) -> dict[str, Array]:
    parts = [each.vectors(model) for each in segments]
    owners = [places[part.owners] for part, places in zip(parts, placed, strict=True)]
    kept = [np.flatnonzero(each != _NOWHERE) for each in owners]
    keys = np.concatenate([part.keys[each] for part, each in zip(parts, kept, strict=True)])
    from_part = np.repeat(np.arange(len(parts)), [len(each) for each in kept])
    at = np.concatenate(kept)
    order = np.argsort(keys, kind="stable")
    dimensions = max(part.matrix.shape[1] for part in parts)
    matrix = allocate(column_name("matrix", model), np.int8, (len(keys), dimensions))
    norms = np.empty(len(keys), np.float32)
    for start in range(0, len(keys), _MERGED_PASSAGES):
        pulse()
        here = order[start : start + _MERGED_PASSAGES]
        for number, part in enumerate(parts):
            own = np.flatnonzero(from_part[here] == number)
            if len(own):
                matrix[start + own] = part.matrix[at[here[own]]]
                norms[start + own] = part.norms[at[here[own]]]
    owned = np.concatenate([own[each] for own, each in zip(owners, kept, strict=True)])[order]
    named = {"keys": keys[order], "owners": owned, "matrix": matrix, "norms": norms}
    return {column_name(name, model): array for name, array in named.items()}


def _merged_postings(
    parts: Sequence[Segment], placed: Sequence[Array], allocate: Allocate, pulse: Callable[[], None]
) -> dict[str, Array]:
    terms = np.unique(np.concatenate([part.terms for part in parts]))
    sizes = np.zeros(len(terms), np.int64)
    for part in parts:
        sizes[np.searchsorted(terms, part.terms)] += np.diff(part.ends, prepend=0)
    total = int(sizes.sum())
    docs = allocate("docs", np.uint32, (total,))
    counts = allocate("counts", np.result_type(*(part.counts.dtype for part in parts)), (total,))
    left = np.zeros(len(terms), np.int64)
    most = np.zeros(len(terms), np.uint32)
    labels: list[tuple[Array, ...]] = []
    written = 0
    for begin, end in _ranges(sizes):
        pulse()
        found = [_slice(part, places, terms, begin, end) for part, places in zip(parts, placed, strict=True)]
        place, doc, count = (np.concatenate(column) for column in zip(*(each[:3] for each in found), strict=True))
        order = np.argsort(place.astype(np.uint64) << np.uint64(32) | doc, kind="stable")
        docs[written : written + len(order)] = doc[order]
        counts[written : written + len(order)] = count[order]
        left[begin:end] = np.bincount(place, minlength=end - begin)
        first = first_of_each(place[order])
        if len(first):
            most[begin + place[order][first]] = np.maximum.reduceat(count[order], first)
        written += len(order)
        labelled = tuple(np.concatenate(column) for column in zip(*(each[3:] for each in found), strict=True))
        order = np.lexsort((labelled[2], labelled[1], labelled[0]))
        labels.append(tuple(column[order] for column in (labelled[0] + begin, *labelled[1:])))
    label_place, label_docs, label_fields, label_counts = _joined(labels)
    with_label = np.bincount(label_place, minlength=len(terms)) if len(terms) else left
    most[with_label > 0] = 0
    known = left > 0
    return {
        "terms": terms[known],
        "ends": np.cumsum(left[known]),
        "most": most[known],
        "docs": docs[:written],
        "counts": counts[:written],
        "label_ends": np.cumsum(with_label[known]),
        "label_docs": label_docs,
        "label_fields": label_fields,
        "label_counts": label_counts,
    }


def _ranges(sizes: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of terms with a bounded number of postings each. A range has at least one term."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _MERGED_POSTINGS, side="right")), begin + 1)
        yield begin, end
        begin = end


def _slice(part: Segment, places: Array, terms: Array, begin: int, end: int) -> tuple[Array, ...]:
    """The postings and labels of live memories for a range of terms: place of the term in the range, new place of the
    memory, count."""
    first = int(np.searchsorted(part.terms, terms[begin]))
    last = int(np.searchsorted(part.terms, terms[end])) if end < len(terms) else len(part.terms)
    here = np.searchsorted(terms[begin:end], part.terms[first:last])
    before, until = (int(part.ends[at - 1]) if at else 0 for at in (first, last))
    place = np.repeat(here, np.diff(part.ends[first:last], prepend=before))
    doc = places[part.docs[before:until]]
    kept = doc != _NOWHERE
    before_label, until_label = (int(part.label_ends[at - 1]) if at else 0 for at in (first, last))
    labelled = slice(before_label, until_label)
    label_place = np.repeat(here, np.diff(part.label_ends[first:last], prepend=before_label))
    label_doc = places[part.label_docs[labelled]]
    kept_label = label_doc != _NOWHERE
    return (
        place[kept],
        doc[kept],
        part.counts[before:until][kept],
        label_place[kept_label],
        label_doc[kept_label],
        part.label_fields[labelled][kept_label],
        part.label_counts[labelled][kept_label],
    )


def _joined(labels: Sequence[tuple[Array, ...]]) -> list[Array]:
    if labels:
        return [np.concatenate(column) for column in zip(*labels, strict=True)]
    return [np.empty(0, dtype) for dtype in (np.int64, np.uint32, np.uint8, np.uint32)]
