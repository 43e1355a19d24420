"""Copies all of a store into another one, of whatever kind each of them is.

Every batch is one transaction, which also notes how far the copy has come. So one that was killed is continued by
repeating it: what is there already is recognised, and a finished copy takes over only what changed in the source since.
In the end, both stores are compared by counts and checksums of all that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from nacre.errors import Conflict, InvalidInput, StoreCorrupt
from nacre.interfaces import Store, StoreCopying
from nacre.types.copying import LOG_RECORDS, Checksums, Copied, CopyMark, CopyRecord
from nacre.types.memory import Progress
from nacre.types.transfer import ExportRequest, Header, LoadCounts, MemoryRecord, Record

_BATCH_RECORDS = 5_000  # a word that many of them have is counted once
_BATCH_BYTES = 8 << 20  # of texts and vectors
_VECTORS = {"passages", "token_vectors", "further_passages"}
_NO_MODEL = "none"


def copy(
    source: Store, target: Store, names: tuple[str, str], at: datetime, progress: Callable[[Progress], None]
) -> Copied:
    """Make the target equal to the source, as that is now. `names` are those of both stores, for errors and result."""
    out, into = source.copying(), target.copying()
    since = _since(into, target, _header(out, ExportRequest(at)), names)
    passed = _passed(out, target, ExportRequest(at, since=since, vectors=True), progress)
    found = into.checksums()
    whole = ExportRequest(at, vectors=True)
    if since and passed.expected.differing(found):  # token vectors that were added later, for one, leave no change
        again = _passed(out, target, whole, progress)
        passed, found = again._replace(counts=passed.counts + again.counts), into.checksums()
    if _VECTORS.issuperset(differing := passed.expected.differing(found)) and differing:
        target.switch_model(_NO_MODEL)  # vectors were dropped in the source, as by a change of its model and back
        for each in target.further_models():
            target.drop_model(each)
        again = _passed(out, target, whole, progress)
        passed, found = again._replace(counts=passed.counts + again.counts), into.checksums()
    _compare(passed.expected, found, names)
    header = passed.header
    into.take([], CopyMark(header.store, header.seq), header.model, header.token_model)
    return Copied(
        *names,
        added=passed.counts.added,
        updated=passed.counts.updated,
        seq=header.seq,
        verified=True,
        counts=dict(found.counts),
    )


class _Passed(NamedTuple):
    header: Header
    counts: LoadCounts
    expected: Checksums  # of all that the source has


def _passed(out: StoreCopying, target: Store, request: ExportRequest, progress: Callable[[Progress], None]) -> _Passed:
    """Take in all records that are asked for."""
    records = out.records(request)
    header = next(records)
    assert isinstance(header, Header)
    _adopt_models(target, header)
    into, mark = target.copying(), CopyMark(header.store, header.since)
    done, expected = LoadCounts(), None
    for batch in _batches(_counted(records, header.memories, progress)):
        if isinstance(batch[-1], Checksums):
            expected = batch.pop()
        done += into.take(batch, mark, header.model, header.token_model)
    assert isinstance(expected, Checksums)
    return _Passed(header, done, expected)


def merge(
    source: Store, target: Store, names: tuple[str, str], at: datetime, progress: Callable[[Progress], None]
) -> Copied:
    """Take all memories of the source into a target that has others, as an import does. Its own log stays."""
    records = source.dump(ExportRequest(at, vectors=True))
    header = next(records)
    assert isinstance(header, Header)
    for each in header.further_models:
        target.add_model(each)
    mark, done = target.load_mark(), LoadCounts()
    for batch in _batches(_counted(records, header.memories, progress)):
        exported: list[Record] = [each for each in batch if not isinstance(each, (*LOG_RECORDS, Checksums))]
        done += target.load(exported, mark, header.model, header.token_model)
    return Copied(*names, added=done.added, updated=done.updated, seq=header.seq, verified=False)


def _header(of: StoreCopying, request: ExportRequest) -> Header:
    header = next(of.records(request))
    assert isinstance(header, Header)
    return header


def _since(into: StoreCopying, target: Store, header: Header, names: tuple[str, str]) -> int:
    """Up to which number the target has the changes of the source. Raises Conflict if it has others beside them."""
    if _header(into, ExportRequest(header.at)).store == header.store:
        raise InvalidInput(
            "target", f"{names[1]} is {names[0]} itself, or a copy of its file; name a store that is new"
        )
    remedy = "name a store that is new, or give merge=True to take the memories in as an import does"
    mark = into.mark(header.store)
    if mark is None:
        if into.changed_since(0) or target.tokens() or target.last_receipt():
            raise Conflict(f"target: {names[1]} has memories or access tokens of its own; {remedy}")
        return 0
    if into.changed_since(mark.own):
        raise Conflict(f"target: others have written to {names[1]} since it was copied; {remedy}")
    if mark.seq > header.seq:
        raise Conflict(
            f"source: {names[0]} is older than what was copied of it before, as after a restore; name a new target"
        )
    return mark.seq


def _adopt_models(target: Store, header: Header) -> None:
    """The source may have been embedded with another model since it was copied last."""
    if header.model is not None:
        target.switch_model(header.model)
    if header.token_model is not None:
        target.switch_token_model(header.token_model)
    for each in set(target.further_models()).difference(header.further_models):
        target.drop_model(each)
    for each in header.further_models:
        target.add_model(each)


def _compare(expected: Checksums, found: Checksums, names: tuple[str, str]) -> None:
    differing = expected.differing(found)
    if differing:
        counted = ", ".join(f"{each} ({expected.counts[each]:,} and {found.counts[each]:,})" for each in differing)
        raise StoreCorrupt(
            f"target: {names[1]} does not have the same as {names[0]}: {counted} differ; if others wrote to it "
            "meanwhile, copy into a store that nobody uses yet; if not, run `nacre doctor` on both"
        )


def _counted(records: Iterable[CopyRecord], total: int, progress: Callable[[Progress], None]) -> Iterator[CopyRecord]:
    done = 0
    for each in records:
        yield each
        if isinstance(each, MemoryRecord):
            done += 1
            progress(Progress(done, total))


def _batches(records: Iterable[CopyRecord]) -> Iterator[list[CopyRecord]]:
    """Records that are taken in together: either of an export or of the log. Checksums end the last batch."""
    batch: list[CopyRecord] = []
    size, of_log = 0, False
    for each in records:
        begins_log = isinstance(each, LOG_RECORDS) and not of_log
        if batch and (len(batch) >= _BATCH_RECORDS or size >= _BATCH_BYTES or begins_log):
            yield batch
            batch, size = [], 0
        of_log = of_log or begins_log
        batch.append(each)
        size += _bytes(each)
    if batch:
        yield batch


def _bytes(record: CopyRecord) -> int:
    if not isinstance(record, MemoryRecord):
        return 0
    size = len(record.memory.text)
    if record.passages is not None:
        size += sum(map(len, record.passages.vectors)) + sum(map(len, record.passages.tokens or ()))
    size += sum(len(vector) for each in record.further.values() for vector in each.vectors)
    return size
