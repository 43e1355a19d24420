"""What stores of each kind do alike where all of one is copied: which records are sent, and what is taken as what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from nacre.storage import checksums
from nacre.types.copying import (
    LOG_RECORDS,
    Checksums,
    CopyMark,
    CopyRecord,
    LogBegins,
    ReceiptRecord,
    TokenRecord,
    UsageRecord,
)
from nacre.types.recall_log import Receipt
from nacre.types.transfer import ExportRequest, Record

_MARK = "copied_from_"


class Log(NamedTuple):
    """What is not exported, and copied. `begins`: what the target has of it goes before."""

    begins: bool
    receipts: list[Receipt]
    usage: list[UsageRecord]
    tokens: list[TokenRecord]


def sent(request: ExportRequest, records_of: Callable[[ExportRequest], Iterator[CopyRecord]]) -> Iterator[CopyRecord]:
    """The records that are asked for, and the checksums of all, whatever of them is asked for."""
    if not request.since:
        yield from checksums.after(records_of(request))
        return
    yield from records_of(request)
    yield checksums.of(records_of(replace(request, since=0)))


def parted(records: Sequence[CopyRecord]) -> tuple[list[Record], Log | None]:
    """What a store loads, and its log, if there is any of it."""
    exported = [each for each in records if not isinstance(each, (*LOG_RECORDS, Checksums))]
    log = Log(
        any(isinstance(each, LogBegins) for each in records),
        [each.receipt for each in records if isinstance(each, ReceiptRecord)],
        [each for each in records if isinstance(each, UsageRecord)],
        [each for each in records if isinstance(each, TokenRecord)],
    )
    return exported, log if any(log) else None


def mark_name(source: str) -> str:
    """The name of a mark among what a store knows of itself."""
    return _MARK + source


def mark_text(mark: CopyMark, own: int) -> str:
    return json.dumps([mark.seq, own])


def mark_of(source: str, text: str | None) -> CopyMark | None:
    return None if text is None else CopyMark(source, *json.loads(text))
