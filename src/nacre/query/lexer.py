"""Splits a query into lexemes: words, phrases, operators and filters. Notes report what was read differently."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nacre.analysis import tokenizer

LEXEMES_MAX = 512  # words and operators of a query that are read; bounds the work of the stores
DEPTH_MAX = 50  # of nested parentheses
NEAR_DEFAULT = 10  # words between the operands, if NEAR has no distance
NEAR_MAX = 1_000
NEAR_OPERANDS_MAX = 8  # of one NEAR: FTS5's time grows with their square
NEARS_MAX = 16
_PREVIEW_CHARS_MAX = 60
_PREVIEW_READ_CHARS = 1_000

_LEXEME = re.compile(
    r"(?P<near>-?NEAR)\((?P<body>[^()]*)\)"
    r'|(?P<field>-?(?:(?i:fact-type)|[A-Za-z]+)):(?P<value>(?:"[^"]*"|[^\s()"])+)'
    r"|(?P<compared>-?(?i:importance))\s*(?P<bound>[<>]=?\s*[0-9.]+)"
    r'|(?P<minus>-)?"(?P<phrase>[^"]*)"'
    r"|(?P<paren>[()])"
    r'|(?P<word>[^\s()"]+)'
)
_NEAR_DISTANCE = re.compile(r",\s*([0-9]+)\s*$")
_OPERAND = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s",]+)')
_TYPOGRAPHIC = str.maketrans(
    "“”„‟＂：（）＊", '""""":()*', "\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_HEBREW_GERSHAYIM = re.compile('(?<=[\u05d0-\u05ea])"(?=[\u05d0-\u05ea])')
_EXCLUDED_GROUP = re.compile(r"(?:^|[\s(])-\(")
_OPERATOR = re.compile(r"\b(?:AND|OR|NOT|NEAR)\b")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_SYMBOLS_ALONE = re.compile(r"[*^:]+")
_INNER_STAR = re.compile(r"\w\*+\w")


class Lexeme(NamedTuple):
    """A word, phrase, operator, filter or parenthesis of a query.

    `role` is word, prefix, phrase, field, near, "(", ")", AND, OR, NOT, or loose, which is an operator read as a word.
    """

    role: str
    text: str  # for a field its value
    at: int  # its start in the query
    minus: bool = False
    key: str = ""  # of a field
    operands: tuple[Lexeme, ...] = ()  # of NEAR
    distance: int = 0

    @property
    def end(self) -> int:
        """Its end in the query, without the star of a prefix."""
        quotes = 2 if self.role == "phrase" else 0
        dash = self.minus and self.role != "near"
        return self.at + dash + len(self.key) + bool(self.key) + quotes + len(self.text)


def normalise(text: str) -> str:
    """A query without invisible characters, and with ASCII quotation marks, colons, parentheses and stars."""
    return _HEBREW_GERSHAYIM.sub("\u05f4", text.translate(_TYPOGRAPHIC))


def preview(text: str) -> str:
    """A text as quoted in a message: on one line, without control characters, truncated if long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:_PREVIEW_READ_CHARS]).split())
    return line if len(line) <= _PREVIEW_CHARS_MAX else line[:_PREVIEW_CHARS_MAX] + "…"


def lex(text: str, keys: frozenset[str]) -> tuple[list[Lexeme], list[str]]:
    """The lexemes of a normalised query, and notes. Operators have operands, and parentheses are balanced.

    `keys` are the names of the filters.
    """
    notes: list[str] = []
    found = list(_LEXEME.finditer(text))
    if text.count('"') % 2:
        notes.append('an unbalanced " was ignored')
    operators = any(each["word"] in _OPERATORS for each in found) and not _is_all_capitals(text)
    structured = operators or bool(_EXCLUDED_GROUP.search(text))
    lexemes: list[Lexeme] = []
    nears = 0
    for each in found:
        match each.lastgroup:
            case "body":
                nears += 1
                lexemes += _near(text, each, notes) if nears <= NEARS_MAX else []
            case "value":
                lexemes += _field(text, each, keys, notes)
            case "bound":
                key, minus = each["compared"].lstrip("-").lower(), each["compared"].startswith("-")
                minus = _excludes(text, each.start(), minus)
                lexemes.append(Lexeme("field", "".join(each["bound"].split()), each.start(), minus, key=key))
            case "phrase":
                minus = _excludes(text, each.start(), each["minus"])
                lexemes.append(Lexeme("phrase", each["phrase"], each.start(), minus))
            case "paren":
                if structured:  # without operators, parentheses are punctuation
                    lexemes.append(Lexeme(each["paren"], each["paren"], each.start()))
            case _:
                lexemes.append(_word_or_operator(text, each, structured, operators, notes))
    if nears > NEARS_MAX:
        notes.append(f"only the first {NEARS_MAX} of {nears} NEAR groups were read")
    return _demote_dangling_operators(_limit(lexemes, notes), notes), list(dict.fromkeys(notes))


def _is_all_capitals(text: str) -> bool:
    """Whether a text is all in capitals. Then NOT is an ordinary word."""
    letters = [char for char in _OPERATOR.sub("", text) if char.isalpha()]
    return bool(letters) and all(map(str.isupper, letters))


def _word_or_operator(text: str, found: re.Match[str], structured: bool, operators: bool, notes: list[str]) -> Lexeme:
    word, start = found.group(), found.start()
    if structured and word == "-" and text[found.end() : found.end() + 1] == "(":
        return Lexeme("NOT", "-", start)
    if operators and word in _OPERATORS:
        return Lexeme(word, word, start)
    return _word(text, word, start, notes)


def _field(text: str, found: re.Match[str], keys: frozenset[str], notes: list[str]) -> list[Lexeme]:
    """A filter `key:value`, or its words if the key is unknown."""
    key, value, start = found["field"], found["value"], found.start()
    minus = key.startswith("-")
    if (minus and not _excludes(text, start, "-")) or value.startswith(("/", ":", "\\")):  # a-b:c, https://, std::
        return _words_of(text, found.group(), start, notes)
    name = key.lstrip("-").lower()
    if name in keys:
        return [Lexeme("field", value, start, minus, key=name)]
    if len(name) > 1 and not value[0].isdigit():  # 10:30, localhost:8080 and C:x need no note
        notes.append(f"{preview(name)}: is not a filter and was read as a word; filters are {', '.join(sorted(keys))}")
    return _words_of(text, found.group(), start, notes)


def _words_of(text: str, part: str, start: int, notes: list[str]) -> list[Lexeme]:
    """The words and quoted phrases of a part that only looks like a filter."""
    return [
        Lexeme("phrase", each["phrase"], start + each.start())
        if each["phrase"] is not None
        else _word(text, each["word"], start + each.start(), notes)
        for each in re.finditer(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)', part)
    ]


def _near(text: str, found: re.Match[str], notes: list[str]) -> list[Lexeme]:
    body, start = found["body"], found.start("body")
    given = _NEAR_DISTANCE.search(body)
    distance = int(given[1][:9]) if given else NEAR_DEFAULT
    if distance > NEAR_MAX:
        notes.append(f"the NEAR distance was reduced to {NEAR_MAX:,} words")
    operands = tuple(
        Lexeme("phrase", each["phrase"], start + each.start())
        if each["phrase"] is not None
        else _prefix(each["word"], start + each.start()) or Lexeme("word", each["word"], start + each.start())
        for each in _OPERAND.finditer(body[: given.start()] if given else body)
    )
    named = {tokenizer.tokenise(each.text).words: each for each in operands}
    operands = tuple(each for row, each in named.items() if row)
    if len(operands) > NEAR_OPERANDS_MAX:
        notes.append(f"NEAR takes {NEAR_OPERANDS_MAX} words or phrases at most; further ones were left out")
        operands = operands[:NEAR_OPERANDS_MAX]
    minus = _excludes(text, found.start(), found["near"][0] == "-")
    if len(operands) > 1:
        near = Lexeme("near", found.group(), found.start(), minus, operands=operands, distance=min(distance, NEAR_MAX))
        return [near]
    notes.append("NEAR needs two words or more, like NEAR(a b, 5); it was read as a word")
    if minus:
        return [each._replace(minus=True) for each in operands]
    return [Lexeme("loose", "near", found.start()), *operands]


def _word(text: str, word: str, start: int, notes: list[str]) -> Lexeme:
    if word.isalnum():  # most words, which have no operators
        return Lexeme("word", word, start)
    minus = len(word) > 1 and word[1] != "-" and _excludes(text, start, word[0] == "-")
    if minus:
        word = word[1:]
    prefix = _prefix(word, start, minus)
    if prefix is not None:
        return prefix
    if _SYMBOLS_ALONE.fullmatch(word):
        notes.append(f"{preview(word)} has nothing to act on and was read as a word")
    elif _INNER_STAR.search(word) or (word.endswith("*") and tokenizer.tokenise(word).words):
        notes.append(f"* finds word beginnings only at the end of a single word; {preview(word)} was read as words")
    return Lexeme("word", word, start, minus)


def _prefix(word: str, start: int, minus: bool = False) -> Lexeme | None:
    stem = word.rstrip("*")
    if stem != word and len(tokenizer.tokenise(stem).words) == 1:
        return Lexeme("prefix", stem, start, minus)
    return None


def _excludes(text: str, start: int, dashed: object) -> bool:
    """Whether a dash is an operator: only at the beginning of a word, unlike in `foo-bar` and `a - b`."""
    return bool(dashed) and (start == 0 or text[start - 1].isspace() or text[start - 1] == "(")


def _demote_dangling_operators(lexemes: list[Lexeme], notes: list[str]) -> list[Lexeme]:
    """The lexemes with operators that have no operands turned into words."""
    checked: list[Lexeme] = []
    for at, each in enumerate(lexemes):
        if each.role in _OPERATORS and not _joins(each, checked, lexemes[at + 1 :]):
            notes.append(f"{each.text} has nothing to join and was read as a word")
            each = Lexeme("loose", each.text.lower(), each.at)
        checked.append(each)
    return checked


def _joins(operator: Lexeme, before: Sequence[Lexeme], after: Sequence[Lexeme]) -> bool:
    following = next((each.role for each in after if each.role != "NOT"), ")")
    if operator.role != "NOT" and (not before or before[-1].role in ("(", *_OPERATORS)):
        return False
    return following not in (")", "AND", "OR")


def _limit(lexemes: list[Lexeme], notes: list[str]) -> list[Lexeme]:
    balanced = _balanced(lexemes)
    if len(balanced) < len(lexemes):
        notes.append("unbalanced or too deeply nested parentheses were ignored")
    if len(balanced) > LEXEMES_MAX:
        notes.append(f"only the first {LEXEMES_MAX} of {len(balanced)} words and operators were read")
        balanced = _balanced(balanced[:LEXEMES_MAX])
        while balanced and balanced[-1].role in _OPERATORS:  # its operand was cut off
            balanced.pop()
    return balanced


def _balanced(lexemes: Sequence[Lexeme]) -> list[Lexeme]:
    """The lexemes without unmatched and too deeply nested parentheses."""
    opened: list[int] = []
    dropped: set[int] = set()
    for i, lexeme in enumerate(lexemes):
        if lexeme.role == "(":
            opened.append(i)
        elif lexeme.role == ")":
            partner = opened.pop() if opened else None
            if partner is None:
                dropped.add(i)
            elif len(opened) >= DEPTH_MAX:
                dropped.update((partner, i))
    dropped.update(opened)
    return [lexeme for i, lexeme in enumerate(lexemes) if i not in dropped]
