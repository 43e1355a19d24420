"""Counts and checksums of all records of a store, by which a copy is compared with its source.

Records are hashed as values, whatever the order they come in, so that stores of any kind can be compared. Left out is
what is computed (the end and the successor of a fact), what only decides future merges (the times of changes to
entities, updates and lenses), and the notes that merging and expiry leave in the history, which each store does itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from nacre.storage import merging
from nacre.types.copying import LOG_RECORDS, Checksums, CopyRecord, LogRecord, ReceiptRecord, TokenRecord, UsageRecord
from nacre.types.facts import Fact
from nacre.types.memory import Memory
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    FactRecord,
    LensRecord,
    MemoryRecord,
    Record,
    SimilarRecord,
    UpdateRecord,
)

SORTS = (
    *(
        "memories",
        "passages",
        "token_vectors",
        "further_passages",
        "events",
        "facts",
        "entities",
        "updates",
        "near_duplicates",
        "lenses",
    ),
    *("dropped", "receipts", "deliveries", "usage", "access_tokens"),
)
_HASH_BYTES = 16
_MODULUS = 1 << 8 * _HASH_BYTES
_OWN_EVENTS = (merging.DISPLACED, merging.REINSTATED, merging.IMPORTED, merging.MERGED, "expired")
_MEMORY = [each.name for each in fields(Memory) if each.compare and each.name not in ("metadata", "importance")]
_REAL = ("confidence", "decay_rate")
_FACT = [each.name for each in fields(Fact) if each.compare and each.name not in ("valid_to", "superseded_by", *_REAL)]


def of(records: Iterable[CopyRecord]) -> Checksums:
    """The checksums of these records."""
    summed = _Summed()
    for each in records:
        summed.add(each)
    return summed.result()


def after(records: Iterable[CopyRecord]) -> Iterator[CopyRecord]:
    """These records, and then their checksums."""
    summed = _Summed()
    for each in records:
        summed.add(each)
        yield each
    yield summed.result()


class _Summed:
    def __init__(self) -> None:
        self._counts = dict.fromkeys(SORTS, 0)
        self._sums = dict.fromkeys(SORTS, 0)

    def add(self, record: CopyRecord) -> None:
        found = _of_log(record) if isinstance(record, LOG_RECORDS) else _of_export(record)
        for sort, value in found:
            digest = hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
            self._counts[sort] += 1
            self._sums[sort] = (self._sums[sort] + int.from_bytes(digest, "little")) % _MODULUS

    def result(self) -> Checksums:
        return Checksums(self._counts, self._sums)


def _of_export(record: Record | Checksums) -> Iterator[tuple[str, Any]]:
    match record:
        case MemoryRecord():
            yield from _of_memory(record)
        case FactRecord(fact, text):
            values = [getattr(fact, each) for each in _FACT]
            yield "facts", (values, float(fact.confidence), float(fact.decay_rate), text)
        case EntityRecord():
            yield (
                "entities",
                (
                    record.space,
                    record.name,
                    record.type,
                    record.kept,
                    sorted(record.aliases),
                    sorted(record.memory_ids),
                ),
            )
        case UpdateRecord():
            yield "updates", (record.newer, record.older, record.cue)
        case SimilarRecord():
            pair = sorted(zip((record.one, record.other), record.texts, strict=True))
            yield "near_duplicates", (pair, record.apart)
        case LensRecord():
            yield "lenses", (record.space, record.name, record.body)
        case Dropped():
            yield "dropped", (record.kind, record.space, record.name)
        case EventRecord():
            yield from _of_event(record)


def _of_memory(record: MemoryRecord) -> Iterator[tuple[str, Any]]:
    memory = record.memory
    values = [getattr(memory, each) for each in _MEMORY]
    yield "memories", (values, float(memory.importance), _json(memory.metadata))
    for event in record.events:
        yield from _of_event(event)
    if record.passages is not None:
        spans = [tuple(each) for each in record.passages.spans]
        yield "passages", (memory.id, spans, record.passages.vectors)
        if record.passages.tokens is not None:
            yield "token_vectors", (memory.id, record.passages.tokens)
    for model, each in record.further.items():
        yield "further_passages", (memory.id, model, [tuple(span) for span in each.spans], each.vectors)


def _of_event(event: EventRecord) -> Iterator[tuple[str, Any]]:
    if event.action not in _OWN_EVENTS:
        yield "events", (event.uid, event.at, event.action, event.memory_id, event.space, _json(event.before))


def _of_log(record: LogRecord) -> Iterator[tuple[str, Any]]:
    match record:
        case ReceiptRecord(receipt):
            said = (receipt.id, receipt.at, receipt.space, receipt.session, receipt.query, receipt.mode, receipt.lens)
            yield "receipts", (said, receipt.origin, receipt.repeat)
            for each in receipt.deliveries:
                marks = (each.opened, each.used, each.wrong)
                yield "deliveries", (receipt.id, each.memory_id, each.rank, float(each.score), marks)
        case UsageRecord(memory_id, usage, opened, used, wrong):
            sums = [float(each) for each in usage[:3]]
            yield "usage", (memory_id, sums, usage.at, opened, used, wrong)
        case TokenRecord(token, secret_hash):
            values = [getattr(token, each.name) for each in fields(token)]
            yield "access_tokens", (values, secret_hash)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
