"""Recognises texts that only repeat memories which were delivered to the session before.

An agent that stores what it was just given fills its memory with copies, and is given those as well. But a text with
one more word is new, and so is a text with a gap in the middle. So every part must be a delivered text, word for
word, or an excerpt of one, marked by `…` where it was cut. Around it may stand what adds nothing (see `lead_ins`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from nacre.analysis.lead_ins import Undecorated, is_lead_in, labels_removed, undecorate, unemphasised, without_numbers
from nacre.analysis.quoting import parse_fences

_CUT = "…"
_BREAK = "\x00"  # between words; no text has it
_QUESTION_MARKS = frozenset("?？؟")  # a question states nothing, even with the words of a statement
_OPENING = "\"'“”„«»([{"
_CLOSING = "\"'“”«»)]}.,;:!?…。，、；：！？؟،"
_ANSWERS = frozenset(("no", "non", "não", "nein", "nej"))  # "No, es lunes" answers, "no es lunes" denies
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")  # of a name in code, where case counts: apiKey
_MEASURE = re.compile(r"[0-9]['\"]\Z")  # feet or inches
_PLAIN = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})
_LINES_MAX = 40  # of a text that is recognised among others
_LIST_LINES_MAX = 2_000  # a session is not given more


class _Said(NamedTuple):
    """A memory that says something, and the labels that its text has before it."""

    memory_id: str
    kind: str | None = None
    speaker: str | None = None
    lines: int = 1


class DeliveredTexts:
    """The texts that were delivered to a session, by memory id. `dates` are those that they were shown with.

    Of memories that say the same, the one that was added last is recognised, and of `texts` the first.
    """

    def __init__(self, texts: Mapping[str, str] | None = None, dates: Mapping[str, str] | None = None) -> None:
        self._dates: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}
        self._said: dict[str, list[_Said]] = {}  # by words, with labels and without
        self._words_of: dict[str, list[str]] = {}  # by id, where it stands in these
        self._heights = Counter([1])  # how many lines they have
        for memory_id, text in reversed(list((texts or {}).items())):
            self.add(memory_id, text, (dates or {}).get(memory_id))

    def add(self, memory_id: str, text: str, date: str | None = None) -> None:
        """Add a text, or put another one in its place."""
        self.discard(memory_id)
        words = _normalised(unemphasised(text))
        self._texts[memory_id], self._dates[memory_id] = words, date
        self._say(words, _Said(memory_id, lines=len(_lines(text))))
        bare = labels_removed(text)
        if bare is not None:
            self._say(_normalised(bare.text), _Said(memory_id, bare.kind, bare.speaker))

    def _say(self, words: str, said: _Said) -> None:
        self._said.setdefault(words, []).insert(0, said)
        self._words_of.setdefault(said.memory_id, []).append(words)
        self._heights[said.lines] += 1

    def discard(self, memory_id: str) -> None:
        if memory_id not in self._texts:
            return
        del self._texts[memory_id], self._dates[memory_id]
        for words in dict.fromkeys(self._words_of.pop(memory_id)):
            for said in [each for each in self._said[words] if each.memory_id == memory_id]:
                self._said[words].remove(said)
                self._heights[said.lines] -= 1
            if not self._said[words]:
                del self._said[words]

    def keep_latest(self, count: int) -> list[str]:
        """Discard all but those that were added last. Returns the ids of the others."""
        first = list(islice(self._texts, max(0, len(self._texts) - count)))
        for memory_id in first:
            self.discard(memory_id)
        return first

    def repeated(self, text: str) -> tuple[str, ...]:
        """The delivered memories that a text consists of, in order; empty if it contains anything else."""
        pieces = parse_fences(text)
        if not any(memory_id is not None for memory_id, _ in pieces):
            pieces = [(None, text)]
        found: list[str] = []
        for memory_id, piece in pieces:
            ids = self._sources(piece) if memory_id is None else self._quoted(memory_id, piece)
            if ids is None:
                return ()
            found += ids
        return tuple(dict.fromkeys(found))

    def _quoted(self, memory_id: str, piece: str) -> list[str] | None:
        """The memory that a quotation names, if it says this."""
        whole = self._texts.get(memory_id)
        words, cut_before, cut_after = _cut(unemphasised(piece))
        if whole is None or words == _BREAK:
            return None
        return [memory_id] if whole == words or _is_part(words, whole, cut_before, cut_after) else None

    def _sources(self, piece: str) -> list[str] | None:
        """The memories that a text without tags consists of; None if it contains anything else.

        It is one memory, or each of its lines is one, or announces the others. A memory may have several lines.
        """
        one = self._source(piece)
        if one is not None:
            return [one]
        lines = without_numbers(_lines(piece))
        if len(lines) > _LIST_LINES_MAX or (len(lines) == 1 and not is_lead_in(lines[0])):
            return None
        found: list[str] = []
        at = 0
        while at < len(lines):
            if is_lead_in(lines[at]):
                at += 1
                continue
            for end in (at + height for height in sorted(+self._heights, reverse=True) if height <= _LINES_MAX):
                source = self._source("\n".join(lines[at:end])) if end <= len(lines) else None
                if source is not None:
                    break
            else:
                return None
            found.append(source)
            at = end
        return found

    def _source(self, piece: str) -> str | None:
        """The delivered memory that a text equals or is an excerpt of, without what stands around it."""
        for state in undecorate(piece):
            words, cut_before, cut_after = _cut(state.text)
            if words == _BREAK:
                return None
            for said in self._said.get(words, ()):
                if self._agrees(state, said):
                    return said.memory_id
            if cut_before or cut_after:
                for memory_id, whole in reversed(self._texts.items()):
                    part = _is_part(words, whole, cut_before, cut_after)
                    if part and state.kind is state.speaker is None and self._agrees(state, _Said(memory_id)):
                        return memory_id
        return None

    def _agrees(self, state: Undecorated, said: _Said) -> bool:
        """Whether what was removed says nothing else than the memory does."""
        return (
            (state.kind is None or said.kind in (None, state.kind))
            and (state.speaker is None or said.speaker in (None, state.speaker))
            and state.ids <= {said.memory_id}
            and state.dates <= {self._dates.get(said.memory_id)}
        )


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _cut(text: str) -> tuple[str, bool, bool]:
    """The words, and whether something was cut before and after them."""
    bare = text.strip()
    return _normalised(bare.strip(f"{_CUT} \t\n")), bare.startswith(_CUT), bare.endswith(_CUT)


def _is_part(words: str, whole: str, cut_before: bool, cut_after: bool) -> bool:
    if not (cut_before or cut_after):
        return False
    return words in whole and (cut_before or whole.startswith(words)) and (cut_after or whole.endswith(words))


def _normalised(text: str) -> str:
    """The words without case and surrounding punctuation, separated by breaks. A question mark counts as a word."""
    words = []
    for chunk in text.translate(_PLAIN).split():
        word = chunk.lstrip(_OPENING)
        word = (word if _MEASURE.search(chunk) and word == chunk else word.rstrip(_CLOSING)) or chunk
        words.append(word if _INNER_CAPITAL.search(word) else word.casefold())
        if chunk[-1] in ".,;:!" and words[-1] in _ANSWERS:
            words.append(",")
        if not _QUESTION_MARKS.isdisjoint(chunk):
            words.append("?")
    return _BREAK + "".join(f"{word}{_BREAK}" for word in words)
