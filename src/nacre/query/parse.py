"""Reads what a person typed. Nothing is an error: what is not a valid operator is read as a word.

    deployment process          any of the words, ranked
    deploy AND staging          both                       (AND, OR, NOT in capitals)
    blue OR green               either
    deploy NOT staging          without; also  deploy -staging  and  deploy AND code -(staging OR test)
    "exact phrase"              these words side by side
    deploy*                     words that begin so
    (a OR b) AND c              grouping, where there is an operator

Side by side, plain words are alternatives that rank; phrases and exclusions are conditions. AND and
NOT bind tighter than OR: `a b AND c` is "a or b, and also c". In a text all in capitals, AND, OR and
NOT are words, and so are operators with nothing to join.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from nacre.query.tree import AllOf, AnyOf, Condition, Phrase, Question, Term, Without
from nacre.text import words

TERMS_MAX = 256  # terms of one question that are looked up; further ones are left out, with a note
LEXEMES_MAX = 512  # words and operators of one question that are read; bounds what a store has to compile
_DEPTH_MAX = 50  # nested parentheses that are honoured

_LEXEME = re.compile(r'(?P<minus>-)?"(?P<phrase>[^"]*)"|(?P<paren>[()])|(?P<word>[^\s()"]+)')
_OPERATORS = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True, slots=True)
class _Lexeme:
    """`role`: word, prefix, phrase, "(", ")", AND, OR or NOT."""

    role: str
    text: str
    at: int  # where it begins in the query
    minus: bool = False


def parse(text: str) -> Question:
    """The question a text asks."""
    lexemes, notes = _lex(text)
    reader = _Reader(lexemes)
    group = reader.alternatives()
    notes += reader.notes
    terms = list(dict.fromkeys(group.terms))
    if len(terms) > TERMS_MAX:
        notes.append(f"only the first {TERMS_MAX} of {len(terms)} words were looked up")
    plain = all(each.role == "word" and not each.minus for each in lexemes)
    meaning = text.strip() if plain else " ".join(text for _, text in sorted(group.meaning))
    return Question(tuple(terms[:TERMS_MAX]), group.must, meaning, tuple(notes))


def _lex(text: str) -> tuple[list[_Lexeme], list[str]]:
    notes: list[str] = []
    found = list(_LEXEME.finditer(text))
    if text.count('"') % 2:
        notes.append('an unbalanced " was ignored')
    shouted = text.isupper()  # in a text all in capitals NOT is just a word
    spoken = not shouted and any(each["word"] in _OPERATORS for each in found)
    lexemes: list[_Lexeme] = []
    for each in found:
        if each["phrase"] is not None:
            lexemes.append(
                _Lexeme("phrase", each["phrase"], each.start(), _excludes(text, each.start(), each["minus"]))
            )
        elif each["paren"]:
            if spoken:  # without operators, parentheses are punctuation
                lexemes.append(_Lexeme(each["paren"], each["paren"], each.start()))
        elif spoken and each["word"] == "-" and text[each.end() : each.end() + 1] == "(":
            lexemes.append(_Lexeme("NOT", "-", each.start()))
        elif each["word"] in _OPERATORS and not shouted:
            lexemes.append(_Lexeme(each["word"], each["word"], each.start()))
        else:
            lexemes.append(_word(text, each))
    balanced = _balanced(lexemes)
    if len(balanced) < len(lexemes):
        notes.append("unbalanced or too deeply nested parentheses were ignored")
    if len(balanced) > LEXEMES_MAX:
        notes.append(f"only the first {LEXEMES_MAX} of {len(balanced)} words and operators were read")
        balanced = _balanced(balanced[:LEXEMES_MAX])
        while balanced and balanced[-1].role in _OPERATORS:  # what it joined was cut off
            balanced.pop()
    return balanced, notes


def _word(text: str, found: re.Match[str]) -> _Lexeme:
    word = found["word"]
    minus = len(word) > 1 and word[1] != "-" and _excludes(text, found.start(), word[0] == "-")
    if minus:
        word = word[1:]
    stem = word.rstrip("*")
    if stem != word and len(words.tokenise(stem).words) == 1:
        return _Lexeme("prefix", stem, found.start(), minus)
    return _Lexeme("word", word, found.start(), minus)


def _excludes(text: str, start: int, dashed: object) -> bool:
    """A dash excludes only at the beginning of a word: `foo-bar` and `a - b` have ordinary dashes."""
    return bool(dashed) and (start == 0 or text[start - 1].isspace() or text[start - 1] == "(")


def _balanced(lexemes: list[_Lexeme]) -> list[_Lexeme]:
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
            elif len(opened) >= _DEPTH_MAX:
                dropped.update((partner, i))
    dropped.update(opened)
    return [lexeme for i, lexeme in enumerate(lexemes) if i not in dropped]


@dataclass(frozen=True, slots=True)
class _Group:
    """A parsed part of the query: what scores, when it holds, what it demands, what to embed.

    Plain words hold where any of them stands, yet demand nothing: they only rank.
    """

    terms: tuple[Term, ...] = ()
    condition: Condition | None = None
    must: Condition | None = None
    meaning: tuple[tuple[int, str], ...] = ()  # with their places in the query


class _Reader:
    """Recursive descent over lexemes with balanced parentheses."""

    def __init__(self, lexemes: Sequence[_Lexeme]) -> None:
        self._lexemes = lexemes
        self._at = 0
        self.notes: list[str] = []

    def alternatives(self) -> _Group:
        """group OR group OR …"""
        groups = [self._conjunction()]
        while self._next_is("OR"):
            operator = self._take()
            if groups[-1] == _Group() or not self._operand_follows():
                groups.append(self._as_word(operator))
            groups.append(self._conjunction())
        if len(groups) == 1:
            return groups[0]
        joined = _any_of(groups)
        must = joined.condition if any(each.must is not None for each in groups) else None
        return _Group(joined.terms, joined.condition, must, joined.meaning)

    def _conjunction(self) -> _Group:
        """side-by-side AND side-by-side NOT side-by-side …"""
        wanted = [self._side_by_side()]
        unwanted: list[_Group] = []
        while self._next_is("AND", "NOT"):
            operator = self._take()
            if not self._operand_follows() or (operator.role == "AND" and wanted == [_Group()]):
                wanted[-1] = _any_of([wanted[-1], self._as_word(operator), self._side_by_side()])
            elif operator.role == "NOT":
                unwanted.append(self._side_by_side())
            elif not self._next_is("NOT"):  # `AND NOT` is NOT
                wanted.append(self._side_by_side())
        return _excluding(_all_of(wanted), unwanted)

    def _side_by_side(self) -> _Group:
        """Words that rank, and phrases, groups and exclusions that restrict."""
        optional: list[_Group] = []
        required: list[_Group] = []
        excluded: list[_Group] = []
        while self._next_is("word", "prefix", "phrase", "("):
            lexeme = self._take()
            if lexeme.role == "(":
                group = self.alternatives()
                self._take()  # its partner
                required.append(group)
            elif lexeme.minus:
                excluded.append(_operand(lexeme))
            else:
                (required if lexeme.role == "phrase" else optional).append(_operand(lexeme))
        group = _any_of(optional)
        if any(each.condition is not None for each in required):
            demanded = _all_of(required)
            condition = demanded.condition
            must = condition if optional or len(required) > 1 else demanded.must
            group = _Group(group.terms + demanded.terms, condition, must, group.meaning + demanded.meaning)
        return _excluding(group, excluded)

    def _as_word(self, operator: _Lexeme) -> _Group:
        self.notes.append(f"{operator.text} has nothing to join and was read as a word")
        return _operand(_Lexeme("word", operator.text.lower(), operator.at))

    def _operand_follows(self) -> bool:
        at = self._at + (self._next_is("NOT") and self._at + 1 < len(self._lexemes))
        return at < len(self._lexemes) and self._lexemes[at].role in ("word", "prefix", "phrase", "(")

    def _next_is(self, *roles: str) -> bool:
        return self._at < len(self._lexemes) and self._lexemes[self._at].role in roles

    def _take(self) -> _Lexeme:
        self._at += 1
        return self._lexemes[self._at - 1]


def _operand(lexeme: _Lexeme) -> _Group:
    meaning = ((lexeme.at, lexeme.text),)
    if lexeme.role == "prefix":
        (prefix,) = words.tokenise(lexeme.text).words
        term = Term(prefix, prefix=not words.is_lone(prefix))
        return _Group((term,), term, None, meaning)
    terms = tuple(Term(token) for token in words.asked(lexeme.text))
    if not terms:  # punctuation: no words, but perhaps a meaning (an emoji)
        return _Group((), None, None, meaning)
    if lexeme.role == "phrase":
        phrase = _in_a_row(words.tokenise(lexeme.text).words)
        return _Group(terms, phrase, phrase, meaning)
    return _Group(terms, _stands(lexeme.text, terms), None, meaning)


def _stands(word: str, terms: tuple[Term, ...]) -> Condition:
    """Where a word stands: all parts of an identifier side by side, but `C++` and not every `C`."""
    parts = words.tokenise(word).words
    if len(parts) > 1:
        return _in_a_row(parts)
    return next((term for term in terms if not term.text.isalnum()), terms[0])


def _in_a_row(tokens: Sequence[str]) -> Condition:
    """These words side by side. A lone character has no place in the order, so it only has to be there."""
    conditions: list[Condition] = []
    for lone, run in groupby(tokens, words.is_lone):
        together = tuple(run)
        conditions += map(Term, together) if lone else [Phrase(together)]
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def _any_of(groups: Sequence[_Group]) -> _Group:
    conditions = _conditions(groups)
    condition = conditions[0] if len(conditions) == 1 else AnyOf(conditions) if conditions else None
    must = next((each.must for each in groups if each.must is not None), None) if len(conditions) == 1 else None
    return _Group(_terms(groups), condition, must, _meaning(groups))


def _all_of(groups: Sequence[_Group]) -> _Group:
    conditions = _conditions(groups)
    if len(conditions) < 2:
        return _any_of(groups)
    return _Group(_terms(groups), AllOf(conditions), AllOf(conditions), _meaning(groups))


def _excluding(group: _Group, unwanted: Sequence[_Group]) -> _Group:
    refused = _any_of(unwanted).condition
    if refused is None:
        return group
    return _Group(group.terms, Without(group.condition, refused), Without(group.must, refused), group.meaning)


def _conditions(groups: Sequence[_Group]) -> tuple[Condition, ...]:
    return tuple(each.condition for each in groups if each.condition is not None)


def _terms(groups: Sequence[_Group]) -> tuple[Term, ...]:
    return tuple(term for each in groups for term in each.terms)


def _meaning(groups: Sequence[_Group]) -> tuple[tuple[int, str], ...]:
    return tuple(part for each in groups for part in each.meaning)
