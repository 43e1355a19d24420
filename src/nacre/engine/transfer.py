"""Export of a store as records, and import of the records of another store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from nacre import validation
from nacre.access import Access
from nacre.analysis.names import fold
from nacre.engine import entries
from nacre.engine.parts import Parts
from nacre.errors import Conflict, InvalidInput, NacreError, NotFound
from nacre.query import lenses
from nacre.types.facts import NewEntity, NewFact
from nacre.types.memory import Changes, Json, NewMemory
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
    StoredPassages,
    UpdateRecord,
)

T = TypeVar("T")
Refuse = Callable[[int, NacreError], None]

_BATCH_RECORDS = 500
_BATCH_CHARS = 1_000_000
_SCREENED = ("text", "summary", "tags", "source", "metadata")  # what may be changed by the policy on secrets
_NOT_VALID = (InvalidInput, NotFound, Conflict)


class _Read(NamedTuple):
    number: int  # of the record, from 1
    record: Record
    screened: bool  # it has private parts or secrets


class _Named(NamedTuple):
    """What a record says something of."""

    spaces: Sequence[str]
    ids: Sequence[str]


class TransferService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    # ---- export

    def export(self, where: Filter | None, since: int | datetime | None, vectors: bool) -> Iterator[Record]:
        parts = self._parts
        validation.yes_or_no("vectors", vectors)
        if where is not None:
            where = validation.where(where, parts.access, parts.limits)
        elif parts.access.spaces is not None:
            where = Filter(spaces=parts.access.spaces)
        number: int | datetime = 0
        if isinstance(since, datetime):
            number = validation.moment("since", since)
        elif since is not None:
            validation.whole("since", since, 0, 2**63 - 1)
            number = since
        return parts.store.dump(ExportRequest(parts.clock(), where, number, vectors))

    # ---- import

    def load(self, records: Iterable[Record], refused: Refuse | None) -> Iterator[LoadCounts]:
        validation.iterable("records", records)
        if refused is not None:
            validation.function("refused", refused)
        return self._load(iter(records), refused)

    def _load(self, records: Iterator[Record], refused: Refuse | None) -> Iterator[LoadCounts]:
        header = next(records, None)
        if not isinstance(header, Header):
            raise InvalidInput("records", "do not begin with a Header; give all records of an export")
        store = self._parts.store
        model, token_model = self._models(header)
        for each in self._further_models(header):
            store.add_model(each)
        mark, done = store.load_mark(), LoadCounts()
        yield done
        for batch in _batches(self._readable(records, refused)):
            seen = self._visible(batch)
            done += LoadCounts(left_out=len(batch) - len(seen), screened=sum(each.screened for each in seen))
            if seen:
                done += store.load([each.record for each in seen], mark, model, token_model)
            yield done

    def _models(self, header: Header) -> tuple[str | None, str | None]:
        """The models of the records' vectors, unless this engine makes others."""
        if not header.vectors:
            return None, None
        embedder, tokens = self._parts.embedder, self._parts.token_embedder
        if embedder is not None and embedder.fingerprint != header.model:
            return None, None
        if tokens is not None and tokens.token_fingerprint != header.token_model:
            return header.model, None
        return header.model, header.token_model

    def _further_models(self, header: Header) -> Sequence[str]:
        """Those of the records' vectors, unless this engine makes others."""
        own = self._parts.further
        return (
            header.further_models
            if own is None
            else [each for each in header.further_models if each == own.fingerprint]
        )

    def _readable(self, records: Iterator[Record], refused: Refuse | None) -> Iterator[_Read]:
        """The records that may be stored, as they may be stored."""
        for number, record in enumerate(records, 2):
            try:
                if isinstance(record, MemoryRecord):
                    checked, screened = self._memory(record)
                    yield _Read(number, checked, screened)
                else:
                    yield _Read(number, self._checked(record), screened=False)
            except _NOT_VALID as error:
                if refused is None:
                    if isinstance(error, InvalidInput):
                        raise InvalidInput(error.field, f"{error.problem} (record {number} of the export)") from None
                    raise
                refused(number, error)

    def _visible(self, batch: list[_Read]) -> list[_Read]:
        """Those that change nothing but the spaces that this engine may write to.

        A record is of another space if it names one, or names a memory or a fact that is there.
        """
        access, store = self._parts.access, self._parts.store
        if not access.confined:
            return batch
        named = [_named(each.record) for each in batch]
        ids = list(dict.fromkeys(each for one in named for each in one.ids))
        foreign = {each for each, memory in store.get(ids).items() if not access.sees(memory)}
        foreign |= {each.id for each in store.facts_by_id(ids) if not access.sees(each)}
        return [
            each
            for each, names in zip(batch, named, strict=True)
            if all(map(access.includes, names.spaces)) and foreign.isdisjoint(names.ids)
        ]

    def _checked(self, record: Record) -> Record:
        match record:
            case FactRecord():
                return self._fact(record)
            case EntityRecord():
                return self._entity(record)
            case LensRecord():
                return self._lens(record)
            case EventRecord():
                return self._event(record)
            case UpdateRecord():
                named: tuple[str, ...] = (record.newer, record.older, record.cue)
            case SimilarRecord():
                named = record.one, record.other, *record.texts
            case Dropped():
                named = record.space, record.name, record.kind
            case Header() | MemoryRecord():
                raise InvalidInput("record", "is a second header; import one file after the other")
        for each in named:
            validation.any_text("record", each)
        return record

    def _lens(self, record: LensRecord) -> LensRecord:
        lens = lenses.validate(lenses.from_json(json.loads(record.body)), self._parts.limits)
        if lens.name != record.name:
            raise InvalidInput("lens.name", "is not the name in its body")
        self._parts.screening.label("lens", record.body)
        validation.space_name(record.space, self._parts.limits)
        return record

    def _memory(self, record: MemoryRecord) -> tuple[MemoryRecord, bool]:
        """The memory as it may be stored, and whether it has private parts or secrets."""
        parts, memory = self._parts, record.memory
        validation.looked_up("memory.id", memory.id)
        for name in ("updated", "deleted", "expires"):
            if getattr(memory, name) is not None:
                validation.moment(f"memory.{name}", getattr(memory, name))
        new = replace(entries.as_new(memory), expires=None)
        checked = validation.memory(new, _everywhere(parts), parts.clock(), parts.limits)
        screened, notes = parts.screening.memory(checked)
        if screened != checked:
            checked = validation.memory(screened, _everywhere(parts), parts.clock(), parts.limits)
        changed: dict[str, Any] = {
            name: getattr(checked, name) for name in _SCREENED if getattr(checked, name) != getattr(memory, name)
        }
        passages = _checked_passages(record.passages, memory.text) if "text" not in changed else None
        further = {model: _checked_further(each, memory.text) for model, each in record.further.items()}
        events = tuple(map(self._event, record.events))
        kept = {} if "text" in changed else {model: each for model, each in further.items() if each is not None}
        return MemoryRecord(replace(memory, **changed), events, passages, kept), bool(notes)

    def _event(self, event: EventRecord) -> EventRecord:
        for name in ("uid", "action", "memory_id", "space"):
            validation.any_text(f"event.{name}", getattr(event, name))
        validation.moment("event.at", event.at)
        unknown = event.before.keys() - Changes.__annotations__.keys()
        if unknown:
            raise InvalidInput("event.before", f"has unknown fields: {', '.join(sorted(map(str, unknown)))}")
        before: dict[str, Any] = {name: event.before[name] for name in _SCREENED if name in event.before}
        if not before:
            return event
        try:
            former = NewMemory(**{"text": "text", **before, "tags": tuple(before.get("tags", ()))})
            screened, _ = self._parts.screening.memory(former)
        except (TypeError, AttributeError):
            raise InvalidInput("event.before", "has fields of the wrong type; export it again") from None
        if screened == former:
            return event
        plain: dict[str, Json] = {name: _plain(getattr(screened, name)) for name in before}
        return replace(event, before={**event.before, **plain})

    def _fact(self, record: FactRecord) -> FactRecord:
        parts, fact = self._parts, record.fact
        validation.looked_up("fact.id", fact.id)
        validation.space_name(fact.space, parts.limits)
        for name in ("reinforced", "touched", "valid_from"):
            validation.moment(f"fact.{name}", getattr(fact, name))
        new = NewFact(
            subject=fact.subject,
            predicate=fact.predicate,
            object=fact.object,
            type=fact.type,
            confidence=fact.confidence,
            decay_rate=fact.decay_rate,
            valid_from=fact.valid_from,
            valid_to=fact.ends,
            quote=fact.quote,
            relation=fact.relation,
            single=fact.single,
        )
        (screened,), _ = parts.screening.facts([validation.fact(new, parts.limits)])
        checked = validation.fact(screened, parts.limits)
        changed: dict[str, Any] = {
            name: getattr(checked, name)
            for name in ("subject", "predicate", "object", "quote")
            if getattr(checked, name) != getattr(fact, name)
        }
        return FactRecord(replace(fact, **changed), record.text) if changed else record

    def _entity(self, record: EntityRecord) -> EntityRecord:
        parts = self._parts
        validation.space_name(record.space, parts.limits)
        kind = None if record.type is None else validation.kind_name(record.type, parts.limits)
        new = NewEntity(name=record.name, type=kind, aliases=record.aliases)
        checked = validation.entity(new, parts.limits, within="entity.")
        for name in (checked.name, *checked.aliases):
            parts.screening.label("entity.name", name)
        if not fold(checked.name):
            raise InvalidInput("entity.name", "is blank")
        for each in record.memory_ids:
            validation.any_text("entity.memory_ids", each)
        return record


def _everywhere(parts: Parts) -> Access:
    """Access for checks: spaces are compared later, so that what is not for this engine is counted, not refused."""
    return replace(parts.access, spaces=None)


def _named(record: Record) -> _Named:
    """The spaces, and the ids of memories and facts, that a record names."""
    match record:
        case MemoryRecord():
            memory, events = record.memory, record.events
            return _Named([memory.space, *(each.space for each in events)], [memory.id, *(e.memory_id for e in events)])
        case EventRecord():
            return _Named([record.space], [record.memory_id])
        case FactRecord():
            return _Named([record.fact.space], [record.fact.id, record.fact.memory_id])
        case UpdateRecord():
            return _Named([], [record.newer, record.older])
        case SimilarRecord():
            return _Named([], [record.one, record.other])
        case EntityRecord():
            return _Named([record.space], record.memory_ids)
        case Dropped():  # the name of an update has two ids
            return _Named([record.space], record.name.split(" "))
        case LensRecord():
            return _Named([record.space], [])
        case Header():
            return _Named([], [])


def _checked_passages(given: StoredPassages | None, text: str) -> StoredPassages | None:
    """Vectors whose spans lie in the text, and whose numbers are numbers; otherwise none, and they are made anew."""
    if given is None:
        return None
    in_text = all(0 <= span.start <= span.end <= len(text) for span in given.spans)
    if not in_text or len({len(each) for each in given.vectors}) != 1:
        return None
    from nacre.storage.vectors import are_finite

    return given if are_finite(given.vectors) else None


def _checked_further(given: StoredPassages, text: str) -> StoredPassages | None:
    """The same of a further model, which may know nothing of the text."""
    return _checked_passages(given, text) if given.spans else given


def _plain(value: Any) -> Json:
    if isinstance(value, tuple):
        return list(value)
    plain: Json = dict(value) if isinstance(value, Mapping) else value
    return plain


def _batches(read: Iterable[_Read]) -> Iterator[list[_Read]]:
    batch: list[_Read] = []
    chars = 0
    for each in read:
        batch.append(each)
        chars += _chars(each.record)
        if len(batch) >= _BATCH_RECORDS or chars >= _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _chars(record: Record) -> int:
    return len(record.memory.text) if isinstance(record, MemoryRecord) else 0
