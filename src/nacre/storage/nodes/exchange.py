"""Changes, exports and imports of several nodes.

Each node counts its own changes. Before a number is given to anybody, every node is brought to count beyond it. So what
follows has a higher number on any node, and one number says how far somebody has read on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain, groupby

from nacre.storage.merging import filter_text
from nacre.storage.nodes import merging
from nacre.storage.nodes.node import Node
from nacre.storage.nodes.recall_log import forget_quoting
from nacre.storage.nodes.router import Router
from nacre.types.changes import Change, ChangePage
from nacre.types.search import Filter
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    ExportRequest,
    FactRecord,
    Header,
    LensRecord,
    LoadCounts,
    MemoryRecord,
    Record,
    SimilarRecord,
    UpdateRecord,
)

_ORDER = (MemoryRecord, FactRecord, EntityRecord, UpdateRecord, SimilarRecord, LensRecord, Dropped, EventRecord)


def changes(router: Router, spaces: Sequence[str], since: int | None, limit: int) -> ChangePage:
    last = last_change(router)
    if since is None:
        return ChangePage((), last)
    pages = router.of_spaces(spaces, lambda node, own: node.changes(own, since, limit))
    found = list(merge(*(page.changes for page in pages), key=lambda each: each.seq))
    # Beyond the last number of a page that was cut off, its node has more; beyond `last`, any node may get more.
    end = min([last, *(page.seq for page in pages if page.more)])
    upto = [each for each in found if each.seq <= end]
    shown = _first(upto, limit)
    if len(shown) < len(upto):
        return ChangePage(tuple(shown), shown[-1].seq, True)
    return ChangePage(tuple(shown), end, end < last)


def last_change(router: Router) -> int:
    """A number up to which all nodes that answer have counted. What is not committed yet gets a higher one."""
    nodes = router.placement.reachable()
    counted = [(each, each.asked(lambda node: node.last_change())) for each in nodes]
    last = max(number for _, number in counted)
    behind = [each for each, number in counted if number < last]
    if any(each.asked(lambda node: node.read_only) for each in behind):  # who may not write sees some changes late
        return min(number for _, number in counted)
    for each in behind:
        each.asked(lambda node: node.advance_changes(last))
    return last


def dump(router: Router, request: ExportRequest) -> Iterator[Record]:
    """One export of all nodes: each is read as of one moment of its own."""
    last = last_change(router)
    headers, dumps = router.again(lambda: _opened(router, request))
    return _merged(router, request, last, headers, dumps)


def load(
    router: Router,
    records: Sequence[Record],
    mark: int,
    model: str | None,
    token_model: str | None,
) -> LoadCounts:
    """Each node takes in what is of its spaces, in one transaction of its own."""
    space_of = _spaces_of(router, records)
    purged = [each for each in records if isinstance(each, EventRecord) and each.action == "purged"]
    gone = list(router.spaces_of([each.memory_id for each in purged]))
    if gone:
        forget_quoting(router, gone, max(each.at for each in purged))
        router.placement.forget_memories(gone)
    elsewhere = {
        each.memory.id
        for each in records
        if isinstance(each, MemoryRecord) and space_of.get(each.memory.id, each.memory.space) != each.memory.space
    }
    new = {each.memory.id: each.memory.space for each in records if isinstance(each, MemoryRecord)}
    space_of = {**new, **space_of}
    by_space = [
        (space, each)
        for each in records
        if (space := _space(each, space_of)) is not None
        and not (isinstance(each, MemoryRecord) and each.memory.id in elsewhere)
    ]

    def take(node: Node, spaces: list[str]) -> LoadCounts:
        own = [each for space, each in by_space if space in spaces]
        return node.load(own, mark, model, token_model)

    loaded = router.write(dict.fromkeys(space for space, _ in by_space), take, place=True)
    left_out = sum(isinstance(each, MemoryRecord) and each.memory.id in elsewhere for each in records)
    return merging.counts([*loaded, LoadCounts(left_out=left_out)])


def load_mark(router: Router) -> int:
    """The row of the last memory of all nodes; what any node writes later gets a higher one."""
    every = router.placement.every()
    mark = max(each.asked(lambda node: node.load_mark()) for each in every)
    for each in every:
        each.asked(lambda node: node.advance_rows(mark))
    return mark


# ---------------------------------------------------------------- inside


def _first(found: Sequence[Change], limit: int) -> list[Change]:
    """The first changes. Those of one number, which several nodes may have, are never torn apart."""
    shown: list[Change] = []
    for _, several in groupby(found, key=lambda each: each.seq):
        group = list(several)
        if shown and len(shown) + len(group) > limit:
            break
        shown += group
    return shown


def _opened(router: Router, request: ExportRequest) -> tuple[list[Header], list[Iterator[Record]]]:
    """The exports of the nodes, each read as far as its header. Raises SpaceMoved if a space moved meanwhile."""
    where = Filter() if request.where is None else request.where
    every = router.placement.every()
    if request.where is None:
        owned = {each: list(each.asked(lambda node: node.in_state("here"))) for each in every}
    else:
        owned = router.placement.of(where.spaces)
    chosen = {each: spaces for each, spaces in owned.items() if spaces} or {every[0]: list(where.spaces)}
    dumps: list[Iterator[Record]] = []
    headers: list[Header] = []
    for each, spaces in chosen.items():
        asked = replace(request, where=replace(where, spaces=tuple(spaces)))
        dumps.append(each.asked(lambda node, asked=asked: node.dump(asked)))  # type: ignore[misc]
        header = next(dumps[-1])
        assert isinstance(header, Header)
        headers.append(header)
    for each, spaces in owned.items():  # what is here after the snapshots were opened is in them
        each.asked(lambda node, spaces=spaces: node.check_here(spaces))  # type: ignore[misc]
    return headers, dumps


def _merged(
    router: Router, request: ExportRequest, last: int, headers: Sequence[Header], dumps: Sequence[Iterator[Record]]
) -> Iterator[Record]:
    yield replace(
        headers[0],
        store=router.placement.members[0].store_id,
        seq=last,
        where=filter_text(request.where),
        model=next((each.model for each in headers if each.model is not None), None),
        token_model=next((each.token_model for each in headers if each.token_model is not None), None),
        further_models=tuple(dict.fromkeys(model for each in headers for model in each.further_models)),
        memories=sum(each.memories for each in headers),
    )
    rests = [_Rest(each) for each in dumps]
    for kind in _ORDER:
        yield from chain.from_iterable(each.of(kind) for each in rests)


class _Rest:
    """What is left of the records of a node, which come in the order of their kinds."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self._next = next(records, None)

    def of(self, kind: type[Record]) -> Iterator[Record]:
        while isinstance(self._next, kind):
            yield self._next
            self._next = next(self._records, None)


def _spaces_of(router: Router, records: Sequence[Record]) -> dict[str, str]:
    ids: list[str] = []
    for each in records:
        match each:
            case MemoryRecord(memory):
                ids.append(memory.id)
            case UpdateRecord(newer, older):
                ids += (newer, older)
            case SimilarRecord(one, other):
                ids += (one, other)
    return router.spaces_of(ids)


def _space(record: Record, space_of: Mapping[str, str]) -> str | None:
    """The space that a record is about; None: it is about memories that no node has, or of two spaces."""
    match record:
        case MemoryRecord(memory):
            return memory.space
        case FactRecord(fact):
            return fact.space
        case EntityRecord() | LensRecord() | Dropped() | EventRecord():
            return record.space
        case UpdateRecord(one, other) | SimilarRecord(one, other):
            return space_of.get(one) if space_of.get(one) == space_of.get(other) else None
    return None
