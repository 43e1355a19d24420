"""What may be stored: nothing that is marked private, and secrets as the policy says. Every write passes here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from nacre.analysis.private import PRIVATE_ONLY, has_private, without_private
from nacre.analysis.secrets import (
    VALUE_CHARS_MIN,
    Secret,
    find_secrets,
    find_value_secrets,
    placeholder,
    replace_secrets,
)
from nacre.errors import InvalidInput
from nacre.types.facts import Fact, NewEntity, NewFact
from nacre.types.memory import Json, Memory, NewMemory
from nacre.types.secrets import Screened, SecretPlace, SecretPolicy

MASKED_CHARS = 40  # of the text before and after a secret, where its place is shown
_PASSES_MAX = 10
_NAMES = ("space", "kind", "namespace", "session", "origin", "key")

# A string on its way in: its field, itself, and the name of what it is the value of, such as a key of metadata.
_Change: TypeAlias = Callable[[str, str, str], str]


class Screening:
    """Takes private parts out of what is to be stored, and handles secrets as the policy says."""

    def __init__(self, secrets: SecretPolicy) -> None:
        self._policy = secrets

    def memory(self, new: NewMemory) -> tuple[NewMemory, tuple[str, ...]]:
        """A validated memory as it may be stored, and notes on what was found or changed."""
        for name in _NAMES:
            value = getattr(new, name)
            if value is not None and has_private(value):
                raise InvalidInput(name, "has a private part, which is never stored; leave it out")
        if new.key is not None:
            self.label("key", new.key)
        open_, notes = _without_private(new)
        found = self._found(strings_of(open_))
        if found and self._policy == "redact":
            open_ = _changed(open_, _redacting(found))
        return open_, (*notes, *self._notes(found))

    def passes(self, text: str) -> bool:
        """Whether a text may be stored as it is, with nothing to say."""
        return not has_private(text) and (self._policy == "off" or not find_secrets(text))

    def changes(self, checked: NewMemory, names: Iterable[str]) -> tuple[NewMemory, tuple[str, ...]]:
        """A memory with some changed fields. The others were screened when they were written."""
        given: dict[str, Any] = {name: getattr(checked, name) for name in names}
        new, notes = self.memory(NewMemory(**{"text": "text", **given}))
        return replace(checked, **{name: getattr(new, name) for name in given}), notes

    def facts(self, facts: Sequence[NewFact]) -> tuple[tuple[NewFact, ...], tuple[str, ...]]:
        """Facts that are added to a memory. One that is private in part is refused, because no fact would be left."""
        new, notes = self.memory(NewMemory(text="text", facts=facts))
        if len(new.facts) < len(facts):
            raise InvalidInput("facts", PRIVATE_ONLY)
        return tuple(new.facts), notes

    def text(self, text: str, name: str) -> Screened:
        """A text alone. `name` is that of what it is the value of."""
        open_ = without_private(text)
        notes = ("text: the private part was not stored",) if open_ != text else ()
        found = self._found([("text", open_, name)])
        if found and self._policy == "redact":
            open_ = _redacting(found)("text", open_, name)
        return Screened(open_, (*notes, *self._notes(found)))

    def label(self, field: str, text: str) -> None:
        """Refuse a name or preset that is not fit to be stored: it cannot be redacted and still mean the same."""
        if has_private(text):
            raise InvalidInput(field, "has a private part, which is never stored; leave it out")
        if self._policy in ("redact", "refuse"):
            for secret in find_secrets(text)[:1]:
                raise InvalidInput(field, f"has a secret ({secret.kind}), which is not stored here; leave it out")

    def query(self, text: str) -> str:
        """A query as the recall log keeps it."""
        open_ = without_private(text)
        if self._policy in ("warn", "off"):
            return open_
        return replace_secrets(open_, find_secrets(open_))

    def _found(self, strings: Iterable[tuple[str, str, str]]) -> list[tuple[SecretPlace, str]]:
        """Places of secrets with their values. Raises InvalidInput for the first one if secrets are refused."""
        if self._policy == "off":
            return []
        found = [
            (SecretPlace(each.kind, field, each.start, each.end), text[each.start : each.end])
            for field, text, name in strings
            for each in _secrets(text, name)
        ]
        if found and self._policy == "refuse":
            first = found[0][0]
            raise InvalidInput(
                first.field,
                f"has a secret ({first.kind}, {first.characters}), and secrets are refused; "
                "leave it out, or write <private>…</private> around it",
            )
        return found

    def _notes(self, found: Sequence[tuple[SecretPlace, str]]) -> tuple[str, ...]:
        done = "redacted" if self._policy == "redact" else "stored as given"
        return tuple(f"{place.field}: secret {done} ({place.kind}, {place.characters})" for place, _ in found)


# ---------------------------------------------------------------- audit


def secrets_of(memory: Memory, facts: Sequence[Fact], replaced: Mapping[int, Mapping[str, Json]]) -> list[SecretPlace]:
    """Where a stored memory has secrets: in its fields and facts, and in what updates replaced, by event."""
    strings = list(strings_of(replace(memory, facts=tuple(facts))))
    for seq, before in replaced.items():
        strings += _json_strings(f"history[{seq}]", dict(before), "")
    found = []
    for field, text, name in strings:
        several = _secrets(text, name)
        found += [SecretPlace(each.kind, field, each.start, each.end, _masked(text, several, each)) for each in several]
    return found


def _masked(text: str, secrets: Sequence[Secret], which: Secret) -> str:
    """The text around a secret, with the kinds of all secrets in their places."""
    at = secrets.index(which)
    before = replace_secrets(text[: which.start], secrets[:at])[-MASKED_CHARS:]
    shifted = [Secret(each.kind, each.start - which.end, each.end - which.end) for each in secrets[at + 1 :]]
    after = replace_secrets(text[which.end :], shifted)[:MASKED_CHARS]
    return " ".join(f"{before}[{which.kind}]{after}".split())


# ---------------------------------------------------------------- the strings of a memory


def strings_of(memory: NewMemory | Memory) -> Iterator[tuple[str, str, str]]:
    """(field, text, name of what it is the value of) of all strings that people write into a memory."""
    yield "text", memory.text, ""
    for name in ("summary", "source"):
        if getattr(memory, name):
            yield name, getattr(memory, name), ""
    for at, tag in enumerate(memory.tags):
        yield f"tags[{at}]", tag, ""
    if memory.metadata:
        yield from _json_strings("metadata", dict(memory.metadata), "")
    facts: Sequence[NewFact | Fact] = memory.facts
    for at, fact in enumerate(facts):
        yield from _fact_strings(f"facts[{at}]", fact)
    if isinstance(memory, NewMemory):
        for at, entity in enumerate(memory.entities):
            names = [entity] if isinstance(entity, str) else [entity.name, *entity.aliases]
            yield from ((f"entities[{at}]", name, "") for name in names)


def _fact_strings(field: str, fact: NewFact | Fact) -> Iterator[tuple[str, str, str]]:
    yield f"{field}.subject", fact.subject, ""
    yield f"{field}.predicate", fact.predicate, ""
    yield f"{field}.object", fact.object, f"{fact.subject} {fact.predicate}"
    if fact.quote:
        yield f"{field}.quote", fact.quote, ""


def _json_strings(field: str, value: Json, name: str) -> Iterator[tuple[str, str, str]]:
    match value:
        case dict():
            for key, each in value.items():
                yield f"{field} (key)", key, ""
                yield from _json_strings(f"{field}.{_shown(key)}", each, key)
        case list():
            for at, each in enumerate(value):
                yield from _json_strings(f"{field}[{at}]", each, name)
        case str():
            yield field, value, name
        case int() if not isinstance(value, bool):
            yield field, str(value), name


def _shown(key: str) -> str:
    """A key as part of the name of a field: without secrets of its own."""
    return replace_secrets(key, find_secrets(key))


def _changed(new: NewMemory, change: _Change) -> NewMemory:
    """The memory with all its strings changed. What becomes blank is left out; a blank text is refused."""
    text = change("text", new.text, "")
    if not text.strip():
        raise InvalidInput("text", PRIVATE_ONLY)
    tags = (change("tags", each, "") for each in new.tags)
    facts = (_changed_fact(each, change) for each in new.facts)
    entities = (_changed_entity(each, change) for each in new.entities if isinstance(each, NewEntity))
    return replace(
        new,
        text=text,
        summary=None if new.summary is None else change("summary", new.summary, "").strip() or None,
        source=None if new.source is None else change("source", new.source, "").strip() or None,
        tags=tuple(dict.fromkeys(each for each in tags if each.strip())),
        metadata=cast("dict[str, Json]", _changed_json("metadata", dict(new.metadata), "", change)),
        facts=tuple(
            each for each in facts if all(part.strip() for part in (each.subject, each.predicate, each.object))
        ),
        entities=tuple(each for each in entities if each.name.strip()),
    )


def _changed_fact(fact: NewFact, change: _Change) -> NewFact:
    return replace(
        fact,
        subject=change("facts.subject", fact.subject, ""),
        predicate=change("facts.predicate", fact.predicate, ""),
        object=change("facts.object", fact.object, f"{fact.subject} {fact.predicate}"),
        quote=None if fact.quote is None else change("facts.quote", fact.quote, "").strip() or None,
    )


def _changed_entity(entity: NewEntity, change: _Change) -> NewEntity:
    aliases = (change("entities.aliases", each, "") for each in entity.aliases)
    return replace(
        entity,
        name=change("entities.name", entity.name, ""),
        aliases=tuple(each for each in aliases if each.strip()),
    )


def _changed_json(field: str, value: Json, name: str, change: _Change) -> Json:
    match value:
        case dict():
            return {
                changed: _changed_json(field, each, key, change)
                for key, each in value.items()
                if (changed := change(field, key, "")) or not key
            }
        case list():
            return [_changed_json(field, each, name, change) for each in value]
        case str():
            return change(field, value, name)
        case int() if not isinstance(value, bool):
            text = str(value)
            changed = change(field, text, name)
            return value if changed == text else changed
    return value


# ---------------------------------------------------------------- private parts and secrets


def _without_private(new: NewMemory) -> tuple[NewMemory, tuple[str, ...]]:
    marked = dict.fromkeys(field for field, text, _ in strings_of(new) if has_private(text))
    if not marked:
        return new, ()
    notes = tuple(f"{field}: the private part was not stored" for field in marked)
    return _changed(new, lambda _, text, __: without_private(text)), notes


def _secrets(text: str, name: str) -> list[Secret]:
    return (find_value_secrets(name, text) if name else None) or find_secrets(text)


def _redacting(found: Sequence[tuple[SecretPlace, str]]) -> _Change:
    """Redacts a string, and other occurrences of values that were found in any string of the memory."""
    known = {value: place.kind for place, value in found if len(value) >= VALUE_CHARS_MIN}
    longest_first = sorted(known.items(), key=lambda each: -len(each[0]))

    def change(_field: str, text: str, name: str) -> str:
        for _ in range(_PASSES_MAX):  # what is left of a text may be a secret anew
            several = _secrets(text, name)
            text = replace_secrets(text, several)
            if not several:
                break
        for value, kind in longest_first:
            text = text.replace(value, placeholder(kind))
        return text

    return change
