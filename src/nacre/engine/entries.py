"""A text on its way in: validated input becomes a draft, a draft an entry for the store; and in which batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from nacre import validation
from nacre.analysis.language import language_of
from nacre.analysis.sketches import sketches
from nacre.analysis.standing import standing_kind
from nacre.analysis.word_forms import tokens_of
from nacre.engine.embedding import Embedded
from nacre.errors import InvalidInput
from nacre.ids import content_hash
from nacre.types.facts import Fact, NewEntity, NewFact
from nacre.types.memory import DEFAULT_KIND, Entry, Identity, Memory, NewMemory, Update


class Draft(NamedTuple):
    """A validated memory, not yet tokenized or embedded."""

    memory: Memory
    content_hash: bytes
    facts: Sequence[NewFact]  # given with it
    entities: Sequence[NewEntity]
    extract: bool | None
    supersedes: Sequence[str]  # ids of older memories
    notes: tuple[str, ...] = ()  # on private parts and secrets

    @property
    def identity(self) -> Identity:
        return self.memory.space, self.memory.key or self.content_hash


def draft(checked: NewMemory, memory_id: str, updated: datetime, extracts: bool, text: str | None = None) -> Draft:
    """A draft of a validated memory. `text`, if given, replaces its text and is validated, too.

    `extracts` is the engine's setting: whether to recognise the kind of a text that was given without one.
    """
    assert checked.space is not None
    assert checked.created is not None
    assert not isinstance(checked.expires, timedelta)
    text = checked.text if text is None else text
    kind = checked.kind
    if kind is None and (extracts if checked.extract is None else checked.extract):
        kind = standing_kind(text)
    memory = Memory(
        id=memory_id,
        space=checked.space,
        kind=kind or DEFAULT_KIND,
        namespace=checked.namespace,
        text=text,
        summary=checked.summary,
        tags=tuple(checked.tags),
        source=checked.source,
        session=checked.session,
        position=checked.position,
        metadata=checked.metadata,
        importance=checked.importance,
        created=checked.created,
        updated=updated,
        happened=checked.happened,
        pinned=checked.pinned,
        origin=checked.origin,
        key=checked.key,
        expires=checked.expires,
        language=checked.language or language_of(text),
    )
    # Names alone became entities when they were checked.
    entities = [each for each in checked.entities if isinstance(each, NewEntity)] if checked.entities else ()
    return Draft(memory, content_hash(memory.text), checked.facts, entities, checked.extract, checked.supersedes)


def as_new(memory: Memory) -> NewMemory:
    """A stored memory as input, to be changed and validated again. A language that was recognised, will be again."""
    return NewMemory(
        text=memory.text,
        space=memory.space,
        kind=memory.kind,
        namespace=memory.namespace,
        summary=memory.summary,
        tags=memory.tags,
        source=memory.source,
        session=memory.session,
        position=memory.position,
        metadata=memory.metadata,
        importance=memory.importance,
        created=memory.created,
        happened=memory.happened,
        pinned=memory.pinned,
        origin=memory.origin,
        key=memory.key,
        expires=memory.expires,
        language=None if memory.language == language_of(memory.text) else memory.language,
    )


def entries(ready: Iterable[tuple[Draft, Embedded, Sequence[Fact]]]) -> list[Entry]:
    """Entries for the store: drafts with their tokens, passages and facts."""
    listed = [(each, embedded, facts, tokens_of(each.memory)) for each, embedded, facts in ready]
    return [
        Entry(
            each.memory,
            each.content_hash,
            tokens,
            embedded.passages,
            tuple(facts),
            tuple(each.entities),
            sketch,
            tuple(Update(each.memory.id, older) for older in each.supersedes),
            embedded.further,
        )
        for (each, embedded, facts, tokens), sketch in zip(listed, sketches([each[3] for each in listed]), strict=True)
    ]


def check_several(items: object) -> None:
    """Raise InvalidInput for what is no list, or one text, whose characters would be taken for texts."""
    if isinstance(items, str | NewMemory):
        raise InvalidInput("items", "must be a list of texts; `remember` takes a single one")
    validation.iterable("items", items)


class Batch(NamedTuple):
    items: list[str | NewMemory]
    full: bool  # others may follow


def batches(items: Iterable[str | NewMemory], memories_max: int, chars_max: int) -> Iterator[Batch]:
    """Batches bounded in number and, but for one long text, in characters."""
    batch: list[str | NewMemory] = []
    chars = 0
    for item in items:
        batch.append(item)
        chars += _chars(item)
        if len(batch) >= memories_max or chars >= chars_max:
            yield Batch(batch, full=True)
            batch, chars = [], 0
    if batch:
        yield Batch(batch, full=False)


def _chars(item: str | NewMemory) -> int:
    text = item.text if isinstance(item, NewMemory) else item
    return len(text) if isinstance(text, str) else 0
