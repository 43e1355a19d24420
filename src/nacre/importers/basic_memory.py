"""The Markdown folder of a basic-memory project.

In a note, an observation is a list item `- [category] text #tag (context)`, and a relation is one such as
`- relation_type [[Target]] (context)`. Each becomes a memory of its own; the rest of the note is kept as any Markdown.
Known from basic-memory's public documents and code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast, get_args

from nacre.analysis import front_matter, markdown
from nacre.analysis.names import predicate_words
from nacre.errors import InvalidInput
from nacre.importers import notes
from nacre.importers.importer import HEAD_BYTES, Importer, Refused, Source
from nacre.importers.notes import Note
from nacre.types.facts import FactType, NewEntity, NewFact
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

_NOTES_SEEN = 50  # by which a folder is recognised
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(.*)")
_CATEGORY = re.compile(r"\[([^\[\]()]{1,200})\]\s+(.+)")
_CLOCK = re.compile(r"\d{1,3}:\d{2}[\d:., -]*")  # of a transcript: no category
_RELATION = re.compile(r"(?:\"([^\"]+)\"|'([^']+)'|([^\s\[\]]+))?\s*\[\[([^\[\]\n]+)\]\]\s*(?:\(([^()]*)\))?")
_CONTEXT = re.compile(r"(.*\S)\s*\(([^()]*)\)")
_TAG = re.compile(r"(?:^|(?<=\s))#([^\s#]+)")
_LISTS = ("observations", "relations")  # headings that have nothing but items
_TYPED = get_args(FactType)


class Observation(NamedTuple):
    category: str | None
    text: str
    tags: tuple[str, ...]
    context: str | None


class Relation(NamedTuple):
    type: str
    target: str
    context: str | None


def read(source: Source) -> Iterator[NewMemory | Refused]:
    """The notes of a project, with their observations and relations."""
    for found in source.files(notes.MARKDOWN):
        if isinstance(found, Refused):
            yield found
            continue
        within, path = found
        try:
            yield from _memories(source, within, path)
        except InvalidInput as error:
            yield Refused(within, error.problem)


def _memories(source: Source, within: str, path: Path) -> Iterator[NewMemory]:
    read_note = notes.note(source, path, "")
    document = read_note.document
    permalink = _text_of(document.metadata.get("permalink"))
    note = replace(
        read_note,
        title=(document.title or read_note.title)[: LIMITS.name_chars_max],
        key=notes.key_of(source, permalink or within, "basic-memory"),
    )
    body, items = split(document.text)
    about = NewEntity(
        name=note.title,
        type=_text_of(document.metadata.get("type"))[: LIMITS.name_chars_max] or None,
        aliases=(permalink,) if 0 < len(permalink) <= LIMITS.name_chars_max else (),
    )
    if body.strip():
        for each in notes.memories_of(replace(note, document=document._replace(text=body))):
            others = [other for other in each.entities if not isinstance(other, NewEntity) or other.name != about.name]
            yield replace(each, entities=[about, *others][: LIMITS.entities_max])
    for item in items:
        yield _observed(note, item, about) if isinstance(item, Observation) else _related(note, item, about)


def _observed(note: Note, seen: Observation, about: NewEntity) -> NewMemory:
    facts = []
    if seen.category and len(seen.text) <= LIMITS.object_chars_max:
        kind = cast(FactType, seen.category if seen.category in _TYPED else "kv")
        facts = [NewFact(subject=note.title, predicate=seen.category, object=seen.text, type=kind, single=False)]
    return _item_memory(
        note,
        f"{note.title}: {seen.text}" + (f" ({seen.context})" if seen.context else ""),
        ("observation", seen.category or "", seen.text),
        {"category": seen.category, "context": seen.context},
        seen.tags,
        facts,
        [about],
    )


def _related(note: Note, stated: Relation, about: NewEntity) -> NewMemory:
    words = predicate_words(stated.type) or stated.type
    return _item_memory(
        note,
        f"{note.title} {words} {stated.target}" + (f" ({stated.context})" if stated.context else ""),
        ("relation", stated.type, stated.target),
        {"relation": stated.type, "context": stated.context},
        (),
        [notes.link(note.title, stated.type, stated.target)],
        [about, NewEntity(name=stated.target)],
    )


def _item_memory(
    note: Note,
    text: str,
    said: tuple[str, str, str],
    metadata: dict[str, Json],
    tags: tuple[str, ...],
    facts: list[NewFact],
    entities: list[NewEntity],
) -> NewMemory:
    """The key has what the item says, because items have no names; its context may change."""
    kept = {name: value for name, value in metadata.items() if value is not None}
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:16]
    return NewMemory(
        text=text,
        key=f"{note.key}#{said[0]}:{digest}",
        kind=said[0],
        tags=tuple(dict.fromkeys((*note.document.tags, *tags)))[: LIMITS.tags_max],
        source=note.source,
        metadata={"title": note.title, **kept},
        created=note.created,
        facts=facts,
        entities=entities,
        extract=False,
    )


# ---------------------------------------------------------------- items of a note


def split(text: str) -> tuple[str, list[Observation | Relation]]:
    """A note's text without its observations and relations, and these. What is code or quoted is text."""
    kept: list[str] = []
    items: list[Observation | Relation] = []
    heading = ""
    for line in markdown.lines(text):
        if line.level:
            heading = line.title.casefold()
        found = None if line.code or line.level else _item(line.text, heading)
        if found is not None:
            items.append(found)
        elif not (line.level and heading in _LISTS):
            kept.append(line.text)
    body = "".join(kept)
    says_more = any(not each.level and each.text.strip() for each in markdown.lines(body))
    return (body if says_more or not items else ""), items


def _item(line: str, heading: str) -> Observation | Relation | None:
    found = _ITEM.match(line)
    content = found[1].strip() if found is not None else ""
    if not content:
        return None
    related = _RELATION.fullmatch(content)
    if related is not None:
        kind = related[1] or related[2] or related[3] or ("links_to" if heading == "relations" else "")
        target = related[4].partition("|")[0].partition("#")[0].strip()
        if kind.strip() and 0 < len(target) <= LIMITS.name_chars_max:
            return Relation(kind.strip()[: LIMITS.name_chars_max], target, (related[5] or "").strip() or None)
    category = _CATEGORY.fullmatch(content)
    if category is not None and _is_category(category[1].strip()):
        return _observation(category[1].strip(), category[2].strip())
    is_task = category is not None or content.startswith(("[ ]", "[["))
    return _observation(None, content) if heading == "observations" and not is_task else None


def _is_category(said: str) -> bool:
    """No check mark such as [x] or [/], and no time such as [00:12]."""
    if len(said) <= 1:
        return said.isalnum() and said not in "xX"
    return _CLOCK.fullmatch(said) is None


def _observation(category: str | None, content: str) -> Observation:
    ended = _CONTEXT.fullmatch(content) if content.endswith(")") else None
    text, context = (ended[1], ended[2].strip() or None) if ended is not None else (content, None)
    tags = [tag for each in _TAG.findall(text) for tag in markdown.nested(each.rstrip(".,;:!?)"))]
    named = (each for each in tags if len(each) <= LIMITS.name_chars_max)
    return Observation(category, text, tuple(dict.fromkeys(named)), context)


def _text_of(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""


# ---------------------------------------------------------------- recognised


def _recognises(path: Path, head: bytes) -> bool:
    """A folder with a note whose front matter has what basic-memory writes into every one."""
    del head
    if not path.is_dir():
        return False
    for file in notes.first_files(path, notes.MARKDOWN, _NOTES_SEEN):
        try:
            with file.open("rb") as opened:
                start = opened.read(HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        fields = front_matter.read(start).metadata
        if {"title", "type", "permalink"} <= fields.keys():
            return True
    return False


BASIC_MEMORY = Importer(
    "basic-memory",
    "the Markdown folder of a basic-memory project, with its observations and relations",
    _recognises,
    read,
)
