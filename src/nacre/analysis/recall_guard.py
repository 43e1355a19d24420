"""Does a text only give back what was told before?

An agent that remembers what it was just told fills its memory with copies, which it then is told again. But a text
that says a word more is news, and so is one that leaves something out in the middle. So every part of it has to be
a told text, word by word, or a piece of one that is marked by `…` where it was cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.analysis.quoting import parse_fences

_CUT = "…"
_BREAK = "\x00"  # between words; no text has it
_ASKING = frozenset("?？؟")  # a question states nothing, though its words may be those of a statement
_OPENING = "\"'“”„«»([{"
_CLOSING = "\"'“”«»)]}.,;:!?…。，、；：！？؟،"
_PLAIN = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})


class DeliveredTexts:
    """The texts that a session was told, ready to be recognised."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._said = {memory_id: _normalised(text) for memory_id, text in texts.items()}
        self._whole: dict[str, str] = {}
        for memory_id, said in self._said.items():
            self._whole.setdefault(said, memory_id)

    def repeated(self, text: str) -> tuple[str, ...]:
        """The told memories that a text is made of, in its order; none if it holds anything else."""
        pieces = parse_fences(text)
        if not any(memory_id is not None for memory_id, _ in pieces):
            pieces = [(None, text)]
        found = [self._source(memory_id, piece) for memory_id, piece in pieces]
        known = [each for each in found if each is not None]
        return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()

    def _source(self, memory_id: str | None, piece: str) -> str | None:
        """The told memory that a piece is, or is cut from."""
        bare = piece.strip()
        begins, ends = bare.startswith(_CUT), bare.endswith(_CUT)
        said = _normalised(bare.strip(f"{_CUT} \t\n"))
        if said == _BREAK:
            return None
        if not (begins or ends):
            source = self._whole.get(said)
            if memory_id is not None and self._said.get(memory_id) == said:
                return memory_id
            return source if memory_id is None else None
        among = self._said if memory_id is None else {memory_id: self._said.get(memory_id, "")}
        for each, whole in among.items():
            if said in whole and (begins or whole.startswith(said)) and (ends or whole.endswith(said)):
                return each
        return None


def _normalised(text: str) -> str:
    """The words without case and the quotes and stops around them, each between breaks; a question mark is a word."""
    words = []
    for chunk in text.translate(_PLAIN).split():
        words.append((chunk.lstrip(_OPENING).rstrip(_CLOSING) or chunk).casefold())
        if not _ASKING.isdisjoint(chunk):
            words.append("?")
    return _BREAK + "".join(f"{word}{_BREAK}" for word in words)
