"""The pieces of a query: words, phrases, operators and filters, with notes on what was read differently."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nacre.text import words

LEXEMES_MAX = 512  # words and operators of one question that are read; bounds what a store has to compile
DEPTH_MAX = 50  # nested parentheses that are honoured
NEAR_DEFAULT = 10  # words between, when NEAR does not say
NEAR_MAX = 1_000

_LEXEME = re.compile(
    r"(?P<near>NEAR)\((?P<body>[^()]*)\)"
    r'|(?P<field>-?[A-Za-z]+):(?P<value>(?:"[^"]*"|[^\s()"])+)'
    r'|(?P<minus>-)?"(?P<phrase>[^"]*)"'
    r"|(?P<paren>[()])"
    r'|(?P<word>[^\s()"]+)'
)
_NEAR_DISTANCE = re.compile(r",\s*(\d{1,9})\s*$")
_OPERAND = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s",]+)')
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_SYMBOLS_ALONE = re.compile(r"[*^:]+")
_INNER_STAR = re.compile(r"\w\*+\w")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """`role`: word, prefix, phrase, field, near, "(", ")", AND, OR or NOT."""

    role: str
    text: str  # for a field its value
    at: int  # where it begins in the query
    minus: bool = False
    key: str = ""  # of a field
    operands: tuple[Lexeme, ...] = ()  # of NEAR
    distance: int = 0


def read(text: str, keys: frozenset[str]) -> tuple[list[Lexeme], list[str]]:
    """The lexemes of a text, parentheses balanced; `keys` are the names of filters."""
    notes: list[str] = []
    found = list(_LEXEME.finditer(text))
    if text.count('"') % 2:
        notes.append('an unbalanced " was ignored')
    shouted = text.isupper()  # in a text all in capitals NOT is just a word
    spoken = not shouted and any(each["word"] in _OPERATORS for each in found)
    lexemes: list[Lexeme] = []
    for each in found:
        if each["near"]:
            lexemes += _near(each, notes)
        elif each["field"]:
            lexemes += _field(text, each, keys, notes)
        elif each["phrase"] is not None:
            lexemes.append(Lexeme("phrase", each["phrase"], each.start(), _excludes(text, each.start(), each["minus"])))
        elif each["paren"]:
            if spoken:  # without operators, parentheses are punctuation
                lexemes.append(Lexeme(each["paren"], each["paren"], each.start()))
        elif spoken and each["word"] == "-" and text[each.end() : each.end() + 1] == "(":
            lexemes.append(Lexeme("NOT", "-", each.start()))
        elif each["word"] in _OPERATORS and not shouted:
            lexemes.append(Lexeme(each["word"], each["word"], each.start()))
        else:
            lexemes.append(_word(text, each["word"], each.start(), notes))
    return _bounded(lexemes, notes), list(dict.fromkeys(notes))


def _field(text: str, found: re.Match[str], keys: frozenset[str], notes: list[str]) -> list[Lexeme]:
    """`key:value`, or the words it is made of when the key is none of ours."""
    key, value, start = found["field"], found["value"], found.start()
    minus = key.startswith("-")
    if (minus and not _excludes(text, start, "-")) or value.startswith(("/", ":", "\\")):  # a-b:c, https://, std::
        return _words_of(text, found.group(), start, notes)
    name = key.lstrip("-").lower()
    if name in keys:
        return [Lexeme("field", value, start, minus, key=name)]
    if len(name) > 1 and not value[0].isdigit():  # 10:30, localhost:8080 and C:x are nothing special
        notes.append(f"{name}: is not a filter and was read as a word; filters are {', '.join(sorted(keys))}")
    return _words_of(text, found.group(), start, notes)


def _words_of(text: str, part: str, start: int, notes: list[str]) -> list[Lexeme]:
    """A part that looked like a filter, as words; quotes inside it are those of a phrase."""
    return [
        Lexeme("phrase", each["phrase"], start + each.start())
        if each["phrase"] is not None
        else _word(text, each["word"], start + each.start(), notes)
        for each in re.finditer(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)', part)
    ]


def _near(found: re.Match[str], notes: list[str]) -> list[Lexeme]:
    body, start = found["body"], found.start("body")
    said = _NEAR_DISTANCE.search(body)
    distance = min(int(said[1]), NEAR_MAX) if said else NEAR_DEFAULT
    operands = tuple(
        Lexeme("phrase", each["phrase"], start + each.start())
        if each["phrase"] is not None
        else _word(body, each["word"], start + each.start(), notes)
        for each in _OPERAND.finditer(body[: said.start()] if said else body)
    )
    operands = tuple(each for each in operands if words.tokenise(each.text).words)
    if len(operands) > 1:
        return [Lexeme("near", found.group(), found.start(), operands=operands, distance=distance)]
    notes.append("NEAR needs two words or more, like NEAR(a b, 5); it was read as a word")
    return [Lexeme("word", "near", found.start()), *operands]


def _word(text: str, word: str, start: int, notes: list[str]) -> Lexeme:
    minus = len(word) > 1 and word[1] != "-" and _excludes(text, start, word[0] == "-")
    if minus:
        word = word[1:]
    stem = word.rstrip("*")
    if stem != word and len(words.tokenise(stem).words) == 1:
        return Lexeme("prefix", stem, start, minus)
    if _SYMBOLS_ALONE.fullmatch(word):
        notes.append(f"{word} has nothing to act on and was read as a word")
    elif _INNER_STAR.search(word) or (stem != word and words.tokenise(stem).words):
        notes.append(f"* finds word beginnings only at the end of a single word; {word} was read as words")
    return Lexeme("word", word, start, minus)


def _excludes(text: str, start: int, dashed: object) -> bool:
    """A dash excludes only at the beginning of a word: `foo-bar` and `a - b` have ordinary dashes."""
    return bool(dashed) and (start == 0 or text[start - 1].isspace() or text[start - 1] == "(")


def _bounded(lexemes: list[Lexeme], notes: list[str]) -> list[Lexeme]:
    balanced = _balanced(lexemes)
    if len(balanced) < len(lexemes):
        notes.append("unbalanced or too deeply nested parentheses were ignored")
    if len(balanced) > LEXEMES_MAX:
        notes.append(f"only the first {LEXEMES_MAX} of {len(balanced)} words and operators were read")
        balanced = _balanced(balanced[:LEXEMES_MAX])
        while balanced and balanced[-1].role in _OPERATORS:  # what it joined was cut off
            balanced.pop()
    return balanced


def _balanced(lexemes: Sequence[Lexeme]) -> list[Lexeme]:
    """Without the parentheses that have no partner, or are nested too deep to mean anything."""
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
