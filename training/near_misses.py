"""Training data of the reranker's second output: does a text answer a question, or does it only look like it?

A case is a question, a text, and whether the text answers. Half of the weight is on near misses: other sentences of the
same paragraph; the right text cut off before the answer; the right text for a question about another name, number or
identifier; a question for a place where the text has a date. Cases come in groups about one text, so that the same
words stand on both sides, and names are replaced everywhere in some groups, so that no name tells the label.

Sources: SQuAD, FriendsQA, and notes written by hand (`notes_*.jsonl`: a text, questions that it answers, and questions
that it only seems to answer).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from training_data import _COMMON, _NAME, _NAMES, HELD_OUT_ARTICLES, Corpus, Mined

T = TypeVar("T")

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:/-]\d+)*(?!\w)")
_IDENTIFIER = re.compile(r"\b(?=\w*[a-z])\w+(?:[-_./]\w+)+\b|\b(?=\w*[a-zA-Z])(?=\w*\d)\w+\b", re.ASCII)
_LETTERS_DIGITS = re.compile(r"\b([A-Z]{1,4})[- ]?(\d{2,})\b")
_WORD = re.compile(r"\w+")
_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_ASKS_PAST = re.compile(r"^(?:When (?:did|was|were)|(?:In )?(?:what|which) year (?:did|was|were))\b", re.IGNORECASE)
_DATE_PHRASE = re.compile(
    r",? \b(?:in|on|since|during|until|by)(?: early| late| mid)?"
    rf"(?: (?:{'|'.join(_MONTHS)}))?(?: \d{{1,2}},?)? \d{{4}}\b,?"
)
_PLACED = re.compile(r"\b(?:in|at|near|from|to|on|outside|inside|across|between|throughout) (?:the )?[A-Z]|\bwhere\b")
_BECAUSE = re.compile(r"\b(?:because|due|since|for|to|so|as|after|reason|in order|result\w*|caus\w+)\b", re.IGNORECASE)
_FIRST_WORD = re.compile(r"^(When|Where)\b")
_ASKING = frozenset("what which who whom whose when where why how".split())  # without them, it is another question
_SPEAKER = re.compile(r"^[A-Z][\w.' -]{0,24}:")
_CUT_CHARS = 24  # the least that is left of a text that was cut


class Shown(NamedTuple):
    """A text as the reranker gets it, between its neighbours."""

    text: str
    before: str = ""
    after: str = ""

    def __contains__(self, words: object) -> bool:
        return isinstance(words, str) and any(words.casefold() in each.casefold() for each in self)


class Case(NamedTuple):
    question: str
    shown: Shown
    answers: bool
    weight: float = 1.0


@dataclass(frozen=True)
class Note:
    """A text written by hand, what it answers, and what it only seems to answer."""

    text: str
    asks: tuple[str, ...]
    misses: tuple[str, ...]

    @property
    def held_out(self) -> bool:
        return is_held_out(self.text)


@dataclass(frozen=True)
class Turn:
    speaker: str
    text: str


@dataclass(frozen=True)
class Scene:
    """A dialogue with questions, each with its answers and the numbers of the turns that have them."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[tuple[str, tuple[str, ...], frozenset[int]], ...]

    @property
    def held_out(self) -> bool:
        return is_held_out(self.name)


def is_held_out(key: str) -> bool:
    """One in ten, by a hash."""
    return hashlib.sha256(key.encode()).digest()[0] < 26


def read_notes(paths: Sequence[Path]) -> list[Note]:
    lines = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [Note(each["text"], tuple(each["asks"]), tuple(each["misses"])) for each in lines]


def read_scenes(folder: Path) -> list[Scene]:
    """FriendsQA: `corpus.jsonl.gz`, `queries.jsonl.gz` and `qrels.tsv.gz`."""

    def lines(name: str) -> Iterator[Any]:
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    turns: dict[str, list[Turn]] = {}
    place: dict[str, int] = {}
    for each in lines("corpus.jsonl.gz"):
        scene = turns.setdefault(each["metadata"]["scope"], [])
        place[each["_id"]] = len(scene)
        scene.append(Turn(each["metadata"]["speaker"].split()[0].strip("#"), each["text"]))
    relevant: dict[str, set[int]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            query, turn, score = line.split("\t")
            if int(score) > 0:
                relevant.setdefault(query, set()).add(place[turn])
    questions: dict[str, list[tuple[str, tuple[str, ...], frozenset[int]]]] = {}
    for each in lines("queries.jsonl.gz"):
        if each["_id"] in relevant:
            answers = tuple(answer.casefold() for answer in each["metadata"]["answers"])
            found = (each["text"], answers, frozenset(relevant[each["_id"]]))
            questions.setdefault(each["metadata"]["scope"], []).append(found)
    return [Scene(name, tuple(turns[name]), tuple(asked)) for name, asked in questions.items()]


# ---------------------------------------------------------------- other names, numbers and identifiers


@dataclass
class Others:
    """What to put in place of a name, a number or an identifier: another of the same kind."""

    names: dict[tuple[str, int], list[str]] = field(default_factory=dict)  # by the word before and the number of words
    identifiers: list[str] = field(default_factory=list)

    def learn(self, text: str, *, identifiers: bool) -> None:
        for name, before in named(text):
            for kind in {(before.casefold(), name.count(" ")), ("", name.count(" "))}:
                self.names.setdefault(kind, []).append(name)
        if identifiers:
            self.identifiers += _IDENTIFIER.findall(text)

    def name(self, name: str, before: str, avoid: str, chance: random.Random) -> str | None:
        for listed in (_MONTHS, _DAYS):
            if name in listed:
                return chance.choice([each for each in listed if each != name])
        words = name.count(" ")
        pool = self.names.get((before.casefold(), words), [])
        if len(pool) < 40 or chance.random() < 0.3:
            pool = self.names.get(("", words), []) or list(_NAMES)
        taken = {word.casefold() for word in _WORD.findall(avoid)}
        for _ in range(8):
            other = chance.choice(pool)
            if not taken & {word.casefold() for word in _WORD.findall(other) if len(word) > 2}:
                return other
        return None

    def identifier(self, identifier: str, chance: random.Random) -> str | None:
        if any(each.isdigit() for each in identifier) and chance.random() < 0.7:
            return other_digits(identifier, chance)
        if not self.identifiers:
            return None
        other = chance.choice(self.identifiers)
        mine, theirs = re.split(r"([-_./])", identifier), re.split(r"([-_./])", other)
        if len(mine) > 2 and chance.random() < 0.6:  # one part of it
            at = chance.randrange(0, len(mine), 2)
            mine[at] = theirs[chance.randrange(0, len(theirs), 2)]
            other = "".join(mine)
        return other if other.casefold() != identifier.casefold() else None


def other_digits(number: str, chance: random.Random) -> str | None:
    """A number that looks alike: two digits exchanged, or one or all of them changed."""
    places = [at for at, each in enumerate(number) if each.isdigit()]
    digits = list(number)
    way = chance.random()
    pairs = [(a, b) for a, b in pairwise(places) if digits[a] != digits[b] and b == a + 1]
    if way < 0.35 and pairs:
        a, b = chance.choice(pairs)
        digits[a], digits[b] = digits[b], digits[a]
    elif way < 0.75:
        at = chance.choice(places)
        digits[at] = chance.choice("123456789")
    else:
        for at in places:
            digits[at] = chance.choice("123456789")
    changed = "".join(digits)
    return changed if changed != number else None


def replaced(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, text, flags=re.IGNORECASE)


def mapped(case: Case, names: Mapping[str, str]) -> Case:
    """The case with names replaced wherever they stand."""
    question, shown = case.question, case.shown
    for old, new in names.items():
        question = replaced(question, old, new)
        shown = Shown(*(replaced(each, old, new) for each in shown))
    return case._replace(question=question, shown=shown)


def named(text: str) -> list[tuple[str, str]]:
    """The names in a text, each with the word before it. What begins a sentence may be any word."""
    found = [(each.group(), (text[: each.start()].split() or [""])[-1]) for each in _NAME.finditer(text, 1)]
    return [(name, before) for name, before in found if not before.endswith((".", "!", "?", ":"))]


# ---------------------------------------------------------------- groups of cases


class Groups:
    """Makes groups of cases, each about one text."""

    def __init__(
        self,
        corpus: Corpus,
        mined: Mined,
        notes: Sequence[Note],
        scenes: Sequence[Scene],
        *,
        held_out: bool = False,
    ) -> None:
        self.chance = random.Random()
        self._corpus, self._mined = corpus, mined
        self._notes = [each for each in notes if each.held_out == held_out]
        self._scenes = [each for each in scenes if each.held_out == held_out]
        self.numbers = [
            at for at, each in enumerate(corpus.questions) if (each.article < HELD_OUT_ARTICLES) == held_out
        ]
        self._in_paragraph: dict[int, list[int]] = {}
        self._in_article: dict[int, list[int]] = {}
        for at, unit in enumerate(corpus.sentences):
            self._in_paragraph.setdefault(unit.paragraph, []).append(at)
            self._in_article.setdefault(unit.article, []).append(at)
        self._others = Others()
        for number in self.numbers:
            self._others.learn(corpus.questions[number].text, identifiers=False)
        self._note_others = Others()
        for note in self._notes:
            for text in (note.text, *note.asks, *note.misses):
                self._note_others.learn(text, identifiers=True)
        self._alike = _alike(self._notes)

    def of(self, source: str) -> list[Case]:
        sources: dict[str, Callable[[], list[Case]]] = {
            "squad": self._squad,
            "notes": self._note,
            "scenes": self._scene,
        }
        return sources[source]()

    # ---- SQuAD

    def _squad(self) -> list[Case]:
        number = self.chance.choice(self.numbers)
        asked = self._corpus.questions[number]
        form = self.chance.choices(("alone", "beside", "stretch"), (0.35, 0.25, 0.4))[0]
        speakers = self.chance.sample(_NAMES, 2) if form != "stretch" and self.chance.random() < 0.25 else []

        def case(at: int, answers: bool) -> Case:
            return Case(asked.text, self._sentence(at, form, speakers, asked.sentence), answers)

        def wrong(case: Case) -> bool:
            return not _any_in(asked.answers, case.shown.text)

        right = case(asked.sentence, True)
        names = [each for each, _ in named(asked.text)]
        if names and form != "stretch" and not any(each in right.shown for each in names):
            right = right._replace(weight=0.3)  # it may speak of anybody
        near = [at for at in self._in_paragraph[asked.paragraph] if at != asked.sentence]
        mined = [int(at) for at in self._mined.sentences[number][:24] if at != asked.sentence]
        chosen = [*self._some(near, 3), *self._some(mined, 2), *self._some(self._in_article[asked.article], 1)]
        cases = [right, *(each for each in (case(at, False) for at in dict.fromkeys(chosen)) if wrong(each))]
        cases += self._cut(right, asked.answers) + self._undated(right)
        cases = self._renamed(cases, names, self._others)
        cases += self._swapped(cases[0], self._others) + self._asked_otherwise(cases[0])
        return [self._typed(each) for each in cases]

    def _sentence(self, at: int, form: str, speakers: Sequence[str], answer: int) -> Shown:
        units = self._corpus.sentences
        unit = units[at]
        if form == "stretch":
            inside = self._in_paragraph[unit.paragraph]
            first = max(inside[0], at - self.chance.randrange(3))
            last = min(inside[-1], at + self.chance.randrange(4))
            if at != answer and first <= answer <= last:  # not the sentence that answers
                first, last = (first, answer - 1) if at < answer else (answer + 1, last)
            return Shown(" ".join(units[each].text for each in range(first, last + 1)))
        here, there = (f"{each}: " for each in speakers) if speakers else ("", "")
        if form == "alone":
            return Shown(here + unit.text)
        before = "" if unit.before is None else there + units[unit.before].text
        after = "" if unit.after is None else there + units[unit.after].text
        return Shown(here + unit.text, before, after)

    def _cut(self, right: Case, answers: Sequence[str]) -> list[Case]:
        """The text up to the answer, without it and with it."""
        text = right.shown.text
        places = [(text.casefold().find(each), each) for each in answers]
        place, answer = max(places, key=lambda found: len(found[1]))
        if place < _CUT_CHARS or self.chance.random() < 0.4:
            return []
        without, cut = text[:place].rstrip(), text[: place + len(answer)]
        if _any_in(answers, without):
            return []
        cases = [right._replace(shown=Shown(without, right.shown.before), answers=False, weight=1.0)]
        return [*cases, right._replace(shown=Shown(cut, right.shown.before), weight=0.5 * right.weight)]

    def _undated(self, right: Case) -> list[Case]:
        """A text without its date still tells when: the memory has one."""
        undated = _DATE_PHRASE.sub("", right.shown.text)
        if not _ASKS_PAST.match(right.question) or undated == right.shown.text or len(undated) < _CUT_CHARS:
            return []
        return [right._replace(shown=right.shown._replace(text=undated), weight=0.7 * right.weight)]

    def _asked_otherwise(self, right: Case) -> list[Case]:
        """Where instead of when, or why instead of both, if the text says nothing of that.

        Not when instead of where: every memory has a date, which tells when something happened.
        """
        found = _FIRST_WORD.match(right.question)
        if found is None or not right.answers:
            return []
        text = right.shown.text
        for name, _ in named(right.question):
            text = replaced(text, name, "it")
        unknown = [
            word
            for word, known in (("Where", _PLACED), ("Why", _BECAUSE))
            if word != found.group() and not known.search(text)
        ]
        if not unknown:
            return []
        return [right._replace(question=self.chance.choice(unknown) + right.question[found.end() :], answers=False)]

    # ---- what all sources share

    def _renamed(self, cases: list[Case], names: Sequence[str], others: Others, share: float = 0.35) -> list[Case]:
        """Another name everywhere in the group, in some groups."""
        if not names or self.chance.random() > share:
            return cases
        avoid = " ".join((cases[0].question, *cases[0].shown))
        new = {name: others.name(name, "", avoid, self.chance) for name in sorted(set(names), key=len, reverse=True)}
        return [mapped(each, {name: other for name, other in new.items() if other}) for each in cases]

    def _swapped(self, right: Case, others: Others, most: int = 2) -> list[Case]:
        """The question about another name, number or identifier, or the text about another name."""
        text, question = right.shown.text, right.question
        swaps: list[tuple[str, str | None]] = []
        everything = " ".join((question, *right.shown))
        for name, before in named(question):
            if _has(text, name):
                swaps.append((name, others.name(name, before, everything, self.chance)))
        spans = [each.group() for each in _IDENTIFIER.finditer(question)]
        swaps += [(each, others.identifier(each, self.chance)) for each in spans if _has(text, each)]
        numbers = [each.group() for each in _NUMBER.finditer(question)]
        swaps += [(each, other_digits(each, self.chance)) for each in numbers if _has(text, each)]
        cases = []
        for old, new in self._some(swaps, most):
            if new is None or new in right.shown:
                continue
            if self.chance.random() < 0.7:
                cases.append(right._replace(question=replaced(question, old, new), answers=False, weight=1.0))
                continue
            shown = Shown(*(replaced(each, old, new) for each in right.shown))
            if not any(len(word) > 3 and _has(shown.text, word) for word in _WORD.findall(old)):
                cases.append(right._replace(shown=shown, answers=False, weight=1.0))
        return cases

    def _typed(self, case: Case) -> Case:
        """The question, or as people type it: without words that say little, with identifiers in another spelling."""
        if self.chance.random() < 0.3:
            between = self.chance.choice(("", " ", "-"))
            case = case._replace(question=_LETTERS_DIGITS.sub(rf"\1{between}\2", case.question))
        if self.chance.random() > 0.18:
            return case
        kept = [word for word in case.question.rstrip("?").split() if word.casefold() not in _COMMON - _ASKING]
        return case._replace(question=" ".join(kept)) if len(kept) > 1 else case

    def _some(self, of: Sequence[T], many: int) -> list[T]:
        return self.chance.sample(list(of), min(many, len(of)))

    # ---- notes

    def _note(self) -> list[Case]:
        at = self.chance.randrange(len(self._notes))
        note = self._notes[at]
        form = self.chance.choices(("alone", "said", "beside", "merged"), (0.62, 0.1, 0.18, 0.1))[0]
        shown = self._placed(note.text, form)
        cases = [Case(each, shown, True) for each in note.asks] + [Case(each, shown, False) for each in note.misses]
        others = [self._notes[each] for each in self._some(self._alike[at], 2)] + self._some(self._notes, 1)
        cases += [
            Case(self.chance.choice(note.asks), Shown(each.text), False, 0.7) for each in others if each is not note
        ]
        names = [name for name, _ in named(note.text)]
        cases = self._renamed(cases, self._some(names, 2), self._note_others, 0.3)
        for each in cases[: len(note.asks)]:
            cases += self._swapped(each, self._note_others, 1)
        return [self._typed(each) for each in cases]

    def _placed(self, text: str, form: str) -> Shown:
        """A note as it is, as a turn, between other notes, or together with one."""
        one, two = (self.chance.choice(self._notes).text for _ in range(2))
        if form == "said" and not _SPEAKER.match(text):
            return Shown(f"{self.chance.choice(_NAMES)}: {text}")
        if form == "beside":
            return Shown(text, one, two)
        if form == "merged":
            return Shown(" ".join((text, one) if self.chance.random() < 0.5 else (one, text)))
        return Shown(text)

    # ---- dialogues

    def _scene(self) -> list[Case]:
        scene = self.chance.choice(self._scenes)
        question, answers, relevant = self.chance.choice(scene.questions)
        beside = self.chance.random() < 0.75

        def case(at: int, right: bool) -> Case:
            lines = [f"{each.speaker}: {each.text}" for each in scene.turns]
            before = lines[at - 1] if at and beside else ""
            after = lines[at + 1] if at + 1 < len(lines) and beside else ""
            return Case(question, Shown(lines[at], before, after), right)

        right = case(self.chance.choice(sorted(relevant)), True)
        wrong = [at for at in range(len(scene.turns)) if at not in relevant and len(scene.turns[at].text) > 15]
        wrong = [at for at in self._some(wrong, 4) if not _any_in(answers, scene.turns[at].text)]
        cases = [right, *(case(at, False) for at in wrong)]
        speakers = sorted({each.speaker for each in scene.turns})
        new = dict(zip(speakers, self.chance.sample(_NAMES, len(speakers)), strict=True)) if len(speakers) < 20 else {}
        if self.chance.random() < 0.8:
            cases = [mapped(each, new) for each in cases]
            speakers = list(new.values())
        present = [each for each in speakers if _has(cases[0].question, each) and _has(cases[0].shown.text, each)]
        if present:
            other = self.chance.choice([each for each in _NAMES if each not in cases[0].shown])
            swapped = replaced(cases[0].question, self.chance.choice(present), other)
            cases.append(cases[0]._replace(question=swapped, answers=False))
        return [self._typed(each) for each in cases]


def _any_in(answers: Sequence[str], text: str) -> bool:
    return any(each in text.casefold() for each in answers)


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def _alike(notes: Sequence[Note], many: int = 8) -> list[list[int]]:
    """For each note, the notes whose texts share most rare words with its questions."""
    words = [set(_WORD.findall(note.text.casefold())) for note in notes]
    having: dict[str, int] = {}
    for each in words:
        for word in each:
            having[word] = having.get(word, 0) + 1
    found = []
    for at, note in enumerate(notes):
        asked = {word for ask in note.asks for word in _WORD.findall(ask.casefold())} - _COMMON
        shared = [(sum(1 / having[word] for word in asked & each), other) for other, each in enumerate(words)]
        best = sorted(shared, reverse=True)[: many + 1]
        found.append([other for score, other in best if other != at and score > 0][:many])
    return found
