"""How a text on its way in takes shape: checked input, memory, entry; and in what batches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from nacre.chronicle import is_single
from nacre.errors import InvalidInput
from nacre.knowledge import Fact, FactType, NewEntity, NewFact, Origin
from nacre.text import words
from nacre.text.names import fold, is_pronoun, predicate_words
from nacre.text.sketches import sketches
from nacre.types import Changes, Entry, Json, Memory, NewMemory, Passages, Tokens

Key: TypeAlias = tuple[str, bytes]  # space and content hash: what makes two memories the same


class Draft(NamedTuple):
    """A checked memory, not yet tokenised or embedded."""

    memory: Memory
    content_hash: bytes
    facts: Sequence[NewFact]  # given with it
    entities: Sequence[NewEntity]
    extract: bool | None

    @property
    def key(self) -> Key:
        return self.memory.space, self.content_hash


def draft(checked: NewMemory, memory_id: str, updated: datetime, text: str | None = None) -> Draft:
    """A draft of what `checks.memory` has passed; or of another text that `checks.text` has, with all else the same."""
    assert checked.space is not None
    assert checked.created is not None
    memory = Memory(
        id=memory_id,
        space=checked.space,
        kind=checked.kind,
        namespace=checked.namespace,
        text=checked.text if text is None else text,
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
    )
    # 128 bits: no two texts share them, and the index over them stays half the size.
    content_hash = hashlib.sha256(memory.text.encode()).digest()[:16]
    # Names alone became entities when they were checked.
    entities = [each for each in checked.entities if isinstance(each, NewEntity)] if checked.entities else ()
    return Draft(memory, content_hash, checked.facts, entities, checked.extract)


def as_new(memory: Memory) -> NewMemory:
    """A stored memory as input, to be changed and checked again."""
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
    )


def replaced(old: Memory, new: Memory) -> dict[str, Json]:
    """The fields an update changed, with what they were. Compared as JSON, where true is not 1."""
    before: dict[str, Json] = {}
    for name in Changes.__annotations__:
        was, becomes = getattr(old, name), getattr(new, name)
        was, becomes = _plain(was), _plain(becomes)
        if json.dumps(was) != json.dumps(becomes):
            before[name] = was
    return before


def _plain(value: Any) -> Json:
    """A field of a memory as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return list(value)
    plain: Json = value
    return plain


def entries(ready: Iterable[tuple[Draft, Passages | None, Sequence[Fact]]]) -> list[Entry]:
    """Drafts tokenised, given with their passages and facts."""
    listed = [(each, embedded, facts, tokens_of(each.memory)) for each, embedded, facts in ready]
    return [
        Entry(each.memory, each.content_hash, tokens, embedded, tuple(facts), tuple(each.entities), sketch)
        for (each, embedded, facts, tokens), sketch in zip(listed, sketches([each[3] for each in listed]), strict=True)
    ]


def fact(new: NewFact, memory: Memory, fact_id: str, rates: Mapping[FactType, float], origin: Origin) -> Fact:
    """A fact of a memory. It holds, and fades, from when the memory happened, unless it says otherwise."""
    moment = memory.happened or memory.created
    if new.valid_to is not None and new.valid_to <= (new.valid_from or moment):
        raise InvalidInput("facts.valid_to", "is before the memory's time; give valid_from, too")
    return Fact(
        id=fact_id,
        memory_id=memory.id,
        space=memory.space,
        subject=new.subject,
        predicate=new.predicate,
        object=new.object,
        type=new.type,
        confidence=new.confidence,
        decay_rate=rates[new.type] if new.decay_rate is None else new.decay_rate,
        reinforced=moment,
        touched=moment,
        valid_from=new.valid_from or moment,
        valid_to=new.valid_to,
        superseded_by=None,
        quote=new.quote,
        relation=new.relation,
        single=is_single(new.predicate, new.type) if new.single is None else new.single,
        origin=origin,
        ends=new.valid_to,
    )


def not_given(read: Sequence[Fact], given: Sequence[Fact]) -> list[Fact]:
    """The facts read from a text without those that its giver states, too."""
    if not read or not given:
        return list(read)
    stated = {said(each) for each in given}
    return [each for each in read if said(each) not in stated]


def said(stated: Fact) -> tuple[str, str, str]:
    """What a fact says, as it is compared: subject, predicate and object."""
    return fold(stated.subject), predicate_words(stated.predicate), fold(stated.object)


def entities_named(stated: Fact) -> list[str]:
    """The entities that a fact makes known. A key of a list that was read from a text is none."""
    named = [stated.object] if stated.relation else []
    if stated.origin == "given" or stated.relation or stated.type not in ("kv", "config", "temporal", "state"):
        named.insert(0, stated.subject)
    return [name for name in named if not is_pronoun(name)]


def tokens_of(memory: Memory) -> Tokens:
    """Everything of a memory that words can find."""
    return words.tokenise(memory.text, memory.summary or "", memory.tags, memory.source or "")


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
