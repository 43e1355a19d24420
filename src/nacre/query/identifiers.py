"""Exact things that a question names: identifiers, versions, paths, codes, addresses, quoted phrases and full names.

Words are compared by their stems and by meaning. These are not: `OPS-1482` is not `OPS-1428`, and an answer about the
other one is wrong. Case and accents do not matter, nor which of a hyphen, an underscore or a space joins the parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from nacre.analysis import stopwords
from nacre.types.memory import Span

Exactness: TypeAlias = Literal["code", "quote", "name"]
IDENTIFIERS_MAX = 8  # of one question
_CHARS_MAX = 200
READ_CHARS_MAX = 10 * _CHARS_MAX  # of a question

_MAY_HAVE = re.compile(r"[0-9_/\\@\"“”«»„`]|--|::|\w\.\w|[a-z][A-Z]|[A-Z]{2}|\w[ ]+(?=[^\W\d_a-z])")
_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|`([^`\n]+)`|(?<!\w)'([^'\n]{2,})'(?!\w)"
)
# The longest alternatives first.
_CODE = re.compile(
    r"""
    [a-z][a-z0-9+.-]*://[^\s<>"'`]+                                  # URL
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                                   # e-mail address
    | (?:[A-Za-z]:)?(?:~|\.{1,2})?[/\\]?(?:[\w.@-]{1,99}[/\\])+[\w.@*-]*  # path
    | (?<!\w)(?:~|\.{1,2})[/\\][\w.@*-]+                             # ~/notes
    | \b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b                    # MAC address
    | (?<![\w-])--[a-z][\w-]*                                        # flag
    | [A-Z]{2,}[ ][0-9]{2,}(?:[.-][0-9]+)*(?![:\w])                  # OPS 1482
    | \#?\w+(?:(?:::|[.:_-])\w+)*                                    # anything else in one piece
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"#?\d{3,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{4}-\d\d?(?:-\d\d?)?|\d{1,2}([-./])\d{1,2}\1\d{2,4}|\d\d?:\d\d(?::\d\d)?")
_AMOUNT = re.compile(r"\d+(?:st|nd|rd|th|[smhdwy]|am|pm|min|mins|hrs?|ms|x|%)|[1-4]?[qQ][1-4]")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+){1,4}(?:[-.]?[a-z]+\d*)?|[vV]\d+")
_FILE = re.compile(r"[\w-]+\.[A-Za-z]\w{0,5}|[\w-]+(?:\.[\w-]+)+\.[A-Za-z]\w{1,9}")
_PRODUCT = re.compile(r"[a-z]{2,}[0-9]")  # python3, cv2, mp3: words with a number, not numbers of something
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")
_NAME = re.compile(r"[^\W\d_][\w'’-]*(?:\.(?=[ ]))?")
_TITLES = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "sir", "herr", "frau", "herrn", "monsieur", "madame", "señor", "señora", "don")
)
_LABEL = re.compile(r"^[A-Z]{2,} (?=[0-9-]{6,}$)")  # "ISBN 978-0-14-303934-3": the number alone tells
_POSSESSIVE = re.compile(r"['’]s?$")
_LONG_NUMBER = re.compile(r"[0-9][0-9 -]{6,}")  # people group its digits as they like
_JOINERS = re.compile(r"[\s_-]+")
_SEPARATOR = r"[\s_:#-]{0,2}"


class Identifier(NamedTuple):
    """Something that a question names exactly. `code` and `quote` tell memories apart; a `name` supports one."""

    text: str
    exactness: Exactness
    span: Span

    def stands_in(self, folded: str) -> bool:
        """Whether a folded text has it, not as a part of something longer."""
        return _pattern(self.text, self.exactness).search(folded) is not None


def find(question: str) -> tuple[Identifier, ...]:
    """What a question names exactly, in order, each once."""
    if not _MAY_HAVE.search(question):
        return ()
    question = question[:READ_CHARS_MAX]
    found = [
        Identifier(text, "quote", Span(each.start(), each.end()))
        for each in _QUOTED.finditer(question)
        if (text := next(filter(None, each.groups()), "").strip(" .,;:!?")) and 2 < len(text) <= _CHARS_MAX
    ]
    taken = [each.span for each in found]
    found += [each for each in codes(question) if not _overlaps(each.span, taken)]
    taken = [each.span for each in found]
    found += [each for each in _names(question) if not _overlaps(each.span, taken)]
    unique = {fold(each.text): each for each in sorted(found, key=lambda each: each.span, reverse=True)}
    return tuple(sorted(unique.values(), key=lambda each: each.span))[:IDENTIFIERS_MAX]


def codes(text: str) -> Iterator[Identifier]:
    """Identifiers of a text, without quotes and names."""
    for each in _CODE.finditer(text):
        found = each.group()
        if found.isalpha() and found[1:].islower():  # most words
            continue
        found = found.rstrip(".,;:!?-")
        if _is_code(found):
            span = Span(each.start(), each.start() + len(found))
            yield Identifier(_LABEL.sub("", found.lstrip("#")), "code", span)


def fold(text: str) -> str:
    """Case and accents do not matter."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


def _is_code(text: str) -> bool:
    if len(text) < 2 or len(text) > _CHARS_MAX:
        return False
    if text.isalpha():
        return _is_mixed_case(text)
    if _NUMBER.fullmatch(text):
        return not _YEAR.fullmatch(text)
    if _DATE.fullmatch(text):
        return False
    if _VERSION.fullmatch(text):
        return True
    if _AMOUNT.fullmatch(text) or _ABBREVIATION.fullmatch(text) or text.isdigit():
        return False
    if "/" in text or "\\" in text:
        return _is_path(text)
    if _PRODUCT.fullmatch(text):
        return False
    if any(each.isdigit() for each in text) or "_" in text.strip("_") or "@" in text or "://" in text:
        return True
    if text.startswith("--") or ":" in text:
        return text.startswith("--") or "::" in text
    return bool(_FILE.fullmatch(text)) or _is_mixed_case(text)


def _is_mixed_case(text: str) -> bool:
    """`getUser` and `OAuth`, but not `McDonald`."""
    return bool(re.search(r"[a-z][A-Z]", text)) and not re.fullmatch(r"(?:Mc|Mac|O'|De|Di|Le|La|Van)[A-Z][a-z]+", text)


def _is_path(text: str) -> bool:
    """`and/or`, `he/she` and `24/7` are none."""
    parts = [each for each in re.split(r"[/\\]", text) if each]
    if all(each.isdigit() for each in parts):  # a parcel or a file, but no fraction
        return any(len(each) > 2 for each in parts)
    rooted = text[0] in "/\\~." or text[1:3] in (":\\", ":/")
    return rooted or len(parts) > 2 or any(mark in text for mark in "._") or any(each.isdigit() for each in text)


def _names(question: str) -> Iterable[Identifier]:
    """Two or more capitalised words in a row. A word that begins a sentence counts if it is no function word."""
    run: list[re.Match[str]] = []
    for each in [*_NAME.finditer(question), None]:
        adjacent = run and each is not None and question[run[-1].end() : each.start()] == " "
        if each is not None and _is_capitalised(each.group()) and (adjacent or not run):
            run.append(each)
            continue
        if len(run) > 1:
            start = run[0].start()
            text = _POSSESSIVE.sub("", question[start : run[-1].end()])
            yield Identifier(text, "name", Span(start, start + len(text)))
        run = [each] if each is not None and _is_capitalised(each.group()) else []


def _is_capitalised(word: str) -> bool:
    if not word[0].isupper():
        return False
    plain = _POSSESSIVE.sub("", word)
    folded = plain.lower().rstrip(".")
    return not plain.isupper() and folded not in stopwords.WORDS and folded not in _TITLES


def _overlaps(span: Span, taken: Sequence[Span]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in taken)


@lru_cache(maxsize=256)
def _pattern(text: str, exactness: Exactness) -> re.Pattern[str]:
    """Not inside a longer one: `v2` is not in `v2.1`, `get_user` not in `get_users`, `3.11.4` not in `13.11.4`."""
    folded = fold(text)
    if exactness == "code" and _LONG_NUMBER.fullmatch(folded):
        body = r"[\s-]?".join(each for each in folded if each.isdigit())
    elif exactness == "code" and not re.search(r"[/\\@:]|^--", folded):
        body = _SEPARATOR.join(re.escape(part) for part in _JOINERS.split(folded) if part)
    else:
        body = r"\s+".join(re.escape(part) for part in folded.split())
    before = r"(?<!\w)" if folded[0].isalnum() else ""
    after = r"(?!\w)" if folded[-1].isalnum() else ""
    if exactness == "code":
        if folded[0].isdigit():
            before += r"(?<!\d[.,-])"
        if folded[-1].isalnum():
            after += r"(?![.,]?\d)(?![.-]\d)"
        if "-" in folded and not folded[-1].isdigit():
            after += r"(?!-\w)"
    return re.compile(f"{before}{body}{after}")
