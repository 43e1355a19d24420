"""The structure of a Markdown text: its sections by headings, its tags and links, and which of it is code.

Code is never split, and nothing is read from it. What is read is the Markdown of notes: `#tag` and `#tag/in/tag`,
`[[note]]`, `[[note#heading|shown]]` and `[shown](note.md)`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")  # below a line that it makes a heading
_NO_HEADING = re.compile(r"\s*(?:[-*+>|#]|\d+[.)]|$)")  # a list, a quotation or a table is none
_TICKS = re.compile("`+")
# After white space or an opening bracket. Letters, digits, - _ / and what is no punctuation, such as an emoji.
_TAG = re.compile(r"(?:^|(?<=[\s(\[{]))#([^\s!-,.:-@\[-^`{-~\u00a0-\u00bf\u2000-\u206f\u2e00-\u303f\uff00-\uff0f]+)")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|\n]{1,1000})(?:\|[^\[\]\n]{0,1000})?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>\n]{1,1000}?)>?(?: \"[^\"\n]{0,500}\")?\)")
_ATTACHED = re.compile(
    r"\.(?:3gp|avif|base|bmp|canvas|csv|docx|flac|gif|html|jpe?g|m4a|mkv|mov|mp[34]|og[gv]|pdf|png|pptx|svg|txt|wav"
    r"|web[mp]|xlsx|zip)$",
    re.IGNORECASE,
)
_MARKDOWN_FILE = re.compile(r"\.(?:md|markdown)$", re.IGNORECASE)


class Section(NamedTuple):
    """A part of a text, with the headings that it stands under, its own last."""

    headings: tuple[str, ...]
    text: str


class Line(NamedTuple):
    """A line with its end, whether it is code, and the level and title of the heading that it is, if it is one."""

    text: str
    code: bool
    level: int = 0
    title: str = ""


def lines(text: str) -> Iterator[Line]:
    """Every line of a text. A heading may be two: the second, which underlines it, has its level then."""
    fence = ""
    before: str | None = None  # a line that may turn out to be a heading
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        mark = _FENCE.match(bare)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not bare[mark.end() :].strip()
            fence = "" if closes else fence
            yield Line(line, code=True)
            continue
        underline = None if before is None else _UNDERLINE.match(bare)
        if before is not None and underline is not None:
            yield Line(before, code=False, level=1 if "=" in underline[1] else 2, title=before.strip())
            yield Line(line, code=False)
            before = None
            continue
        if before is not None:
            yield Line(before, code=False)
            before = None
        if mark is not None and ("`" not in mark[1] or "`" not in bare[mark.end() :]):
            fence = mark[1]
            yield Line(line, code=True)
        elif (heading := _HEADING.match(bare)) is not None:
            yield Line(line, code=False, level=len(heading[1]), title=_title(bare[heading.end() :]))
        elif _NO_HEADING.match(bare):
            yield Line(line, code=False)
        else:
            before = line
    if before is not None:
        yield Line(before, code=False)


def _title(said: str) -> str:
    """What a heading says, without the marks that may close it."""
    title = said.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


# ---------------------------------------------------------------- sections


class _Part(NamedTuple):
    """A heading with the lines below it, up to the next heading."""

    level: int
    title: str
    lines: list[str]


def sections(text: str, chars_max: int) -> list[Section]:
    """A text as it is, if it is short; or else its sections, each of them again split if it is long.

    What stands under a heading stays together where it fits. A section that has no headings stays whole.
    """
    if len(text) <= chars_max:
        return [Section((), text)]
    parts = [_Part(0, "", [])]
    for line in lines(text):
        if line.level:
            parts.append(_Part(line.level, line.title, [line.text]))
        else:
            parts[-1].lines.append(line.text)
    return list(_split(parts, (), chars_max))


def _split(parts: list[_Part], above: tuple[str, ...], chars_max: int) -> Iterator[Section]:
    """The first part is what stands before the headings of the others."""
    pending = [(parts, above)]
    while pending:  # not by recursion: levels are six at most, but each may stand under itself
        several, headings = pending.pop()
        first, rest = several[0], several[1:]
        own = (*headings, first.title) if first.level else headings
        whole = "".join(line for part in several for line in part.lines)
        if not rest or len(whole) <= chars_max:
            if whole.strip():
                yield Section(own, whole)
            continue
        if any(line.strip() for line in first.lines[1 if first.level else 0 :]):
            yield Section(own, "".join(first.lines))
        top = min(part.level for part in rest)
        starts = [at for at, part in enumerate(rest) if part.level == top or at == 0]
        groups = [rest[start:end] for start, end in zip(starts, [*starts[1:], len(rest)], strict=True)]
        pending += [(group, own) for group in reversed(groups)]


# ---------------------------------------------------------------- tags, links


def without_code(text: str) -> str:
    """The text without its code, line by line, for what looks into it."""
    return "".join("\n" if line.code else _without_spans(line.text) for line in lines(text))


def _without_spans(line: str) -> str:
    """A line without the code between its backticks: as many as it opens with close it."""
    if "`" not in line:
        return line
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(line)]
    places = defaultdict(list)
    for at, (start, end) in reversed([*enumerate(runs)]):
        places[end - start].append(at)
    kept: list[str] = []
    at = done = 0
    while at < len(runs):
        start, end = runs[at]
        closing = places[end - start]
        while closing and closing[-1] <= at:
            closing.pop()
        if not closing:
            at += 1
            continue
        kept.append(line[done:start])
        at = closing[-1]
        done = runs[at][1]
        at += 1
    return " ".join([*kept, line[done:]])


def tags(plain: str) -> list[str]:
    """The tags of a text without code, each with those that it is in: `a/b` and `a`."""
    found: dict[str, None] = {}
    for each in _TAG.findall(plain):
        found |= dict.fromkeys(nested(each))
    return list(found)


def nested(tag: str) -> list[str]:
    """A tag and those that it is in; none if it is a number."""
    parts = [each for each in tag.split("/") if each]
    if not parts or all(each.isdigit() for each in parts):
        return []
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def links(plain: str) -> list[str]:
    """The titles of the notes that a text without code links to, in its order. Web pages and pictures are none."""
    found = [(link.start(), link[1]) for link in _WIKI_LINK.finditer(plain)]
    for link in _LINK.finditer(plain):
        target = unquote(link[1].strip()).partition("#")[0]
        if _MARKDOWN_FILE.search(target) and "://" not in target:
            found.append((link.start(), target))
    return list(dict.fromkeys(title for _, target in sorted(found) if (title := linked_title(target))))


def linked_title(target: str) -> str:
    """The title of the note that a link names, by its path or title, maybe with a heading; "" if it is no note."""
    name = target.partition("#")[0].partition("|")[0].strip().replace("\\", "").rpartition("/")[2].strip()
    if _MARKDOWN_FILE.search(name):
        return name.rpartition(".")[0]
    return "" if _ATTACHED.search(name) else name
