"""Recognises texts that only repeat memories which were delivered to the session before.

An agent that stores what it was just given fills its memory with copies, and is given those as well. But a text with
one more word is new, and so is a text with a gap in the middle. So every part must be a delivered text, word for
word, or an excerpt of one, marked by `…` where it was cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.analysis.quoting import parse_fences

_CUT = "…"
_BREAK = "\x00"  # between words; no text has it
_QUESTION_MARKS = frozenset("?？؟")  # a question states nothing, even with the words of a statement
_OPENING = "\"'“”„«»([{"
_CLOSING = "\"'“”«»)]}.,;:!?…。，、；：！？؟،"
_PLAIN = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})


class DeliveredTexts:
    """The texts that were delivered to a session, by memory id."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {memory_id: _normalised(text) for memory_id, text in texts.items()}
        self._ids: dict[str, str] = {}
        for memory_id, text in self._texts.items():
            self._ids.setdefault(text, memory_id)

    def repeated(self, text: str) -> tuple[str, ...]:
        """The delivered memories that a text consists of, in order; empty if it contains anything else."""
        pieces = parse_fences(text)
        if not any(memory_id is not None for memory_id, _ in pieces):
            pieces = [(None, text)]
        found = [self._source(memory_id, piece) for memory_id, piece in pieces]
        known = [each for each in found if each is not None]
        return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()

    def _source(self, memory_id: str | None, piece: str) -> str | None:
        """The delivered memory that a piece equals or is an excerpt of."""
        bare = piece.strip()
        cut_before, cut_after = bare.startswith(_CUT), bare.endswith(_CUT)
        words = _normalised(bare.strip(f"{_CUT} \t\n"))
        if words == _BREAK:
            return None
        if not (cut_before or cut_after):
            if memory_id is None:
                return self._ids.get(words)
            return memory_id if self._texts.get(memory_id) == words else None
        candidates = self._texts if memory_id is None else {memory_id: self._texts.get(memory_id, "")}
        for each, whole in candidates.items():
            if words in whole and (cut_before or whole.startswith(words)) and (cut_after or whole.endswith(words)):
                return each
        return None


def _normalised(text: str) -> str:
    """The words without case and surrounding punctuation, separated by breaks. A question mark counts as a word."""
    words = []
    for chunk in text.translate(_PLAIN).split():
        words.append((chunk.lstrip(_OPENING).rstrip(_CLOSING) or chunk).casefold())
        if not _QUESTION_MARKS.isdisjoint(chunk):
            words.append("?")
    return _BREAK + "".join(f"{word}{_BREAK}" for word in words)
