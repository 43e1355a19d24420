"""Folders of notes: Markdown as Obsidian and others keep it, and plain texts.

A note is one memory, a long one a memory for each section. Front matter gives tags, date and metadata, `#tags` join the
tags, and links become relations from the note to the notes that it links to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from nacre.analysis import encodings, front_matter, markdown
from nacre.analysis.front_matter import Document
from nacre.analysis.private import PRIVATE_ONLY, has_private, without_private
from nacre.errors import InvalidInput
from nacre.importers.importer import FILE_BYTES_MAX, Importer, Refused, Source, part_of_key, storable, walk
from nacre.types.facts import NewEntity, NewFact
from nacre.types.memory import Json, NewMemory
from nacre.validation import LIMITS

MARKDOWN = frozenset((".md", ".markdown", ".mdown", ".mkd", ".mdx"))
TEXTS = MARKDOWN | {".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org"}
_PIECE_CHARS = 20_000  # of a plain text
_READ_CHARS = 1 << 18
LINKS = "links to"  # the predicate of a link's fact
_SECTION_CHARS = 2_000  # of a note that is one memory; a longer one has one for each section
_PATH_CHARS, _HEADINGS_CHARS = 300, 150  # in keys
_ALIASES = ("aliases", "alias")


@dataclass(frozen=True)
class Note:
    """A Markdown file, read."""

    title: str
    key: str  # of its first memory; the others have more after a `#`
    source: str
    document: Document
    created: datetime


# ---------------------------------------------------------------- reading


def read(source: Source) -> Iterator[NewMemory | Refused]:
    """The notes and texts of a folder, or one Markdown file."""
    if not source.is_folder:
        yield from read_file(source, "", source.path, is_markdown=True)
        return
    for found in source.files(TEXTS):
        if isinstance(found, Refused):
            yield found
        else:
            yield from read_file(source, *found, is_markdown=found[1].suffix.lower() in MARKDOWN)


def read_texts(source: Source) -> Iterator[NewMemory | Refused]:
    """The texts of a folder, or one."""
    if source.is_folder:
        yield from read(source)
    else:
        yield from read_file(source, "", source.path, is_markdown=False)


def read_file(source: Source, within: str, path: Path, *, is_markdown: bool) -> Iterator[NewMemory | Refused]:
    """One file of a folder, where it is at `within`, or the file that the source is."""
    key = key_of(source, within)
    try:
        if is_markdown:
            yield from memories_of(note(source, path, key))
        else:
            yield from _pieces(source, path, key)
    except InvalidInput as error:
        yield Refused(within or source.name, error.problem)
    except OSError as error:
        yield Refused(within or source.name, f"cannot be read ({error.strerror or error})")


def key_of(source: Source, within: str, kind: str = "file") -> str:
    """The key of a file's first memory. `within` is its path in the folder, "" where the source is a file."""
    return f"{kind}:{part_of_key(f'{source.name}/{within}' if within else source.name, _PATH_CHARS)}"


def note(source: Source, path: Path, key: str) -> Note:
    """A Markdown file. Raises InvalidInput for what is no text, too long or private as a whole."""
    document = front_matter.read(_text(source, path))
    return Note(title_of(path), key, place_of(path), document, document.created or changed(path))


def title_of(path: Path) -> str:
    return storable(path.stem).strip()[: LIMITS.name_chars_max].strip() or "untitled"


def place_of(path: Path) -> str:
    """Where a file is, as the source of its memories."""
    return storable(os.path.realpath(path))[-LIMITS.source_chars_max :]


def changed(path: Path) -> datetime:
    """When a file was changed last."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):  # a time that no calendar has
        return datetime.now(UTC)


def _text(source: Source, path: Path) -> str:
    """The public text of a file; "" if it is blank."""
    text = encodings.text_of(source.content(path), source.encoding)
    if text is None:
        known = source.encoding or "UTF-8"
        raise InvalidInput("", f"cannot be read as {known} text; name its encoding with --encoding, such as cp1252")
    text = storable(text)
    public = without_private(text)
    if text.strip() and not public:
        raise InvalidInput("", PRIVATE_ONLY)
    return public if public.strip() else ""


# ---------------------------------------------------------------- plain texts


def _pieces(source: Source, path: Path, key: str) -> Iterator[NewMemory]:
    """A text of any length, a long one in pieces that end with a paragraph where they can."""
    title, place, created = title_of(path), place_of(path), changed(path)
    for number, piece in enumerate(_cut(source, path), 1):
        yield NewMemory(
            text=piece,
            key=key if number == 1 else f"{key}#{number}",
            summary=title,
            source=place,
            metadata={"title": title} if number == 1 else {"title": title, "part": number},
            created=created,
        )


def _cut(source: Source, path: Path) -> Iterator[str]:
    if path.stat().st_size <= FILE_BYTES_MAX:
        yield from _cut_text(_text(source, path))
        return
    rest = ""
    with source.text(path) as file:
        while more := file.read(_READ_CHARS):
            if "\x00" in more:
                raise InvalidInput("", "is no text: it has NUL bytes")
            rest = storable(rest + more)
            if has_private(rest):
                raise InvalidInput("", "has private parts and is too long to tell where these end; split it")
            *whole, rest = _cut_text(rest) or [""]
            yield from whole
    if rest.strip():
        yield rest


def _cut_text(text: str) -> list[str]:
    """Pieces of at most _PIECE_CHARS, cut after a blank line, or else a line, a word or any character."""
    pieces: list[str] = []
    at = 0
    while len(text) - at > _PIECE_CHARS:
        end = at + _PIECE_CHARS
        cuts = (text.rfind(mark, at + _PIECE_CHARS // 2, end) + len(mark) for mark in ("\n\n", "\n", " "))
        cut = next((each for each in cuts if each > at + _PIECE_CHARS // 2), end)
        pieces.append(text[at:cut])
        at = cut
    pieces.append(text[at:])
    return [each for each in pieces if each.strip()]


# ---------------------------------------------------------------- notes as memories


def memories_of(read_note: Note, relations: bool = True) -> Iterator[NewMemory]:
    """A memory for the note, or one for each of its sections. `relations=False` leaves out what links say.

    The first one has the key of the note itself, so that it stays the same memory when a note becomes long.
    """
    title, document = read_note.title, read_note.document
    aliases = _aliases(document.metadata)
    metadata: dict[str, Json] = {"title": title, **document.metadata}
    given = [tag for each in document.tags for tag in markdown.nested(each) or [each]]
    used: dict[str, int] = {}
    for number, part in enumerate(markdown.sections(document.text, _SECTION_CHARS) if document.text.strip() else ()):
        plain = markdown.without_code(part.text)
        linked = [each for each in markdown.links(plain) if each != title and _is_name(each)] if relations else []
        about = [NewEntity(name=title, aliases=aliases)] if linked or aliases else []
        yield NewMemory(
            text=part.text,
            key=_section_key(read_note.key, part.headings, used) if number else read_note.key,
            summary=_summary(document.title or title, part.headings),
            tags=_named([*given, *markdown.tags(plain)], LIMITS.tags_max),
            source=read_note.source,
            metadata={**metadata, "headings": [*part.headings]} if part.headings else metadata,
            created=read_note.created,
            facts=[link(title, LINKS, each) for each in linked[: LIMITS.facts_max]],
            entities=[*about, *(NewEntity(name=each) for each in linked)][: LIMITS.entities_max],
        )


def link(subject: str, predicate: str, target: str) -> NewFact:
    """A relation between notes. It supersedes no other."""
    return NewFact(
        subject=subject[: LIMITS.name_chars_max],
        predicate=predicate[: LIMITS.name_chars_max],
        object=target,
        type="relationship",
        relation=True,
        single=False,
    )


def _section_key(key: str, headings: Sequence[str], used: dict[str, int]) -> str:
    """Under equal headings, the second and later sections are numbered."""
    place = part_of_key(" > ".join(headings), _HEADINGS_CHARS)
    used[place] = used.get(place, 0) + 1
    return f"{key}#{place}" if used[place] == 1 else f"{key}#{place}#{used[place]}"


def _summary(title: str, headings: Sequence[str]) -> str:
    """The title and the headings, without one that only repeats the title."""
    path = [title, *(each for each in headings if each and each != title)]
    return " > ".join(path)[: LIMITS.summary_chars_max]


def _aliases(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """The other names of a note, from its front matter: a list, or a text with commas."""
    found: list[str] = []
    for name, value in metadata.items():
        if name.casefold() in _ALIASES:
            several: Sequence[Json] = (
                value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
            )
            found += [each.strip() for each in several if isinstance(each, str)]
    return _named(found, LIMITS.entities_max)


def _named(names: Sequence[str], most: int) -> tuple[str, ...]:
    """Those that may be names, each once, and no more than allowed."""
    return tuple(dict.fromkeys(each for each in names if _is_name(each)))[:most]


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LIMITS.name_chars_max and not name.isspace()


# ---------------------------------------------------------------- recognised


def _is_markdown(path: Path, head: bytes) -> bool:
    del head
    return any_file(path, MARKDOWN) if path.is_dir() else path.suffix.lower() in MARKDOWN


def _is_text(path: Path, head: bytes) -> bool:
    if path.is_dir():
        return any_file(path, TEXTS)
    return path.suffix.lower() in TEXTS and (b"\x00" not in head or head.startswith(encodings.UTF_16))


def any_file(folder: Path, suffixes: frozenset[str]) -> bool:
    """Whether a folder has such a file."""
    return next(first_files(folder, suffixes, 1), None) is not None


def first_files(folder: Path, suffixes: frozenset[str], most: int) -> Iterator[Path]:
    """Such files of a folder, the first that are found."""
    return islice((each[1] for each in walk(folder, suffixes) if not isinstance(each, Refused)), most)


MARKDOWN_NOTES = Importer(
    "markdown",
    "Markdown notes, also those of Obsidian: a file, or a folder with the plain texts in it",
    _is_markdown,
    read,
)
PLAIN_TEXT = Importer("text", "plain texts: a file or a folder", _is_text, read_texts)
