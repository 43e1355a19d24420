"""Records of an export as lines, and back: equal, whatever they hold; what is damaged is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.errors import InvalidInput
from nacre.serialization import transfer
from nacre.types.facts import Fact
from nacre.types.memory import Memory, Span
from nacre.types.transfer import (
    Dropped,
    EntityRecord,
    EventRecord,
    FactRecord,
    Header,
    LensRecord,
    MemoryRecord,
    Record,
    SimilarRecord,
    StoredPassages,
    UpdateRecord,
)
from strategies import metadata

MOMENT = datetime(2026, 3, 1, 12, 30, 0, 123456, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.replace(fold=0)
)
maybe_moments = st.none() | moments
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
maybe_texts = st.none() | texts
numbers = st.floats(0, 1)

events = st.builds(
    EventRecord,
    uid=texts,
    at=moments,
    action=texts,
    memory_id=texts,
    space=texts,
    before=st.dictionaries(texts, texts | st.integers() | st.lists(texts), max_size=2),
)
memories = st.builds(
    Memory,
    id=texts,
    key=maybe_texts,
    space=texts,
    kind=texts,
    namespace=texts,
    text=texts,
    summary=maybe_texts,
    tags=st.lists(texts, max_size=3).map(tuple),
    source=maybe_texts,
    session=maybe_texts,
    position=st.none() | st.integers(-(2**63), 2**63 - 1),
    metadata=metadata,
    importance=numbers,
    created=moments,
    updated=moments,
    deleted=maybe_moments,
    happened=maybe_moments,
    expires=maybe_moments,
    pinned=st.booleans(),
    origin=maybe_texts,
    facts=st.just(()),
    notes=st.just(()),
)
passages = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.binary(min_size=4, max_size=4)), min_size=1).map(
    lambda found: StoredPassages(
        tuple(Span(start, end) for start, end, _ in found), tuple(each for _, _, each in found), None
    )
)
facts = st.builds(
    Fact,
    id=texts,
    memory_id=texts,
    space=texts,
    subject=texts,
    predicate=texts,
    object=texts,
    type=st.sampled_from(["kv", "location"]),
    confidence=numbers,
    decay_rate=numbers,
    reinforced=moments,
    touched=moments,
    valid_from=moments,
    valid_to=maybe_moments,
    ends=maybe_moments,
    superseded_by=maybe_texts,
    quote=maybe_texts,
    relation=st.booleans(),
    single=st.booleans(),
    origin=st.sampled_from(["given", "extracted"]),
    notes=st.just(()),
)
entities = st.builds(
    EntityRecord,
    space=texts,
    name=texts,
    type=maybe_texts,
    kept=st.booleans(),
    aliases=st.lists(texts).map(tuple),
    memory_ids=st.lists(texts).map(tuple),
    changed=maybe_moments,
)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(MemoryRecord, memories, st.lists(events, max_size=2).map(tuple), st.none() | passages),
    st.builds(FactRecord, facts, maybe_texts),
    entities,
    st.builds(UpdateRecord, texts, texts, texts, maybe_moments),
    st.builds(SimilarRecord, texts, texts, st.tuples(texts, texts), st.booleans()),
    st.builds(LensRecord, texts, texts, st.dictionaries(texts, texts, max_size=2).map(json.dumps), moments),
    st.builds(Dropped, st.sampled_from(["fact", "entity", "update", "lens"]), texts, texts, moments),
    events,
)


@given(records)
def test_a_record_is_the_same_after_it_was_a_line(record: Record) -> None:
    (line,) = transfer.lines([record])
    assert line.endswith("\n")
    assert line.count("\n") == 1
    back = transfer.read_line(line)
    assert transfer.read_record(line.encode()) == back
    if isinstance(record, LensRecord):
        assert isinstance(back, LensRecord)
        assert json.loads(back.body) == json.loads(record.body)
    else:
        assert back == record
        assert repr(back) == repr(record)  # true is not 1, and 1 is not 1.0


def test_a_header_is_the_same() -> None:
    header = Header(
        store="ab", at=MOMENT, seq=7, since=3, where='{"tags_any":["x"]}', vectors=True, model="m", memories=5
    )
    (line,) = transfer.lines([header])
    assert transfer.read_line(line) == transfer.read_header(line) == header
    assert transfer.is_export(line.encode())
    assert transfer.is_export(b"\xef\xbb\xbf" + line.encode())
    for other in (b"", b"{}", b"[]", b"no", b'{"format": "else"}', b"[" * 9_999):
        assert not transfer.is_export(other)


def test_a_long_history_follows_in_lines_of_its_own() -> None:
    memory = Memory(
        id="m", space="s", kind="note", namespace="general", text="t", summary=None, tags=(), source=None, session=None,
        position=None, metadata={}, importance=0.5, created=MOMENT, updated=MOMENT,
    )  # fmt: skip
    several = tuple(
        EventRecord(
            uid=str(at), at=MOMENT + timedelta(at), action="updated", memory_id="m", space="s",
            before={"text": "x" * 300_000},
        )
        for at in range(5)
    )  # fmt: skip
    first, *others = map(transfer.read_line, transfer.lines([MemoryRecord(memory, several)]))
    assert isinstance(first, MemoryRecord)
    assert (*first.events, *others) == several
    assert 0 < len(first.events) < 5


LINE: dict[str, Any] = {
    "record": "fact", "id": "f", "memory_id": "m", "space": "s", "subject": "a", "predicate": "b", "object": "c",
    "type": "kv", "confidence": 1, "decay_rate": 0.1, "reinforced": "2026-03-01T12:00:00Z",
    "touched": "2026-03-01T12:00:00Z", "valid_from": "2026-03-01T12:00:00Z", "relation": False, "single": True,
    "origin": "given",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"record": "fax"}, "record: must be one of memory, fact"),
        ({"record": ["fact"]}, "record: must be one of"),
        ({"subject": None}, "fact.subject: must be a text"),
        ({"subject": 3}, "fact.subject: must be a text"),
        ({"subject": "half \ud800"}, "no valid Unicode"),
        ({"type": "no type"}, "fact.type: must be one of identity"),
        ({"confidence": "high"}, "fact.confidence: must be a number"),
        ({"confidence": True}, "fact.confidence: must be a number"),
        ({"relation": 1}, "fact.relation: must be true or false"),
        ({"touched": "2026-03-01T12:00:00"}, "fact.touched: must be a time with its time zone"),
        ({"touched": "soon"}, "fact.touched: must be a time"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], problem: str) -> None:
    assert isinstance(transfer.read_line(json.dumps(LINE)), FactRecord)
    with pytest.raises(InvalidInput) as error:
        transfer.read_line(json.dumps({**LINE, **change}))
    assert problem in str(error.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda part: st.lists(part) | st.dictionaries(texts, part)
)


@given(anything)
def test_anything_else_is_an_error_of_its_own(value: Any) -> None:
    for given_value in (value, {"record": "memory", "id": value}, {"record": "similar", "texts": value}):
        with pytest.raises(InvalidInput):
            transfer.read_line(json.dumps(given_value))
