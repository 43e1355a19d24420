"""Which tokens the live memories of a space have, and how many have each."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from nacre.counting import Frequencies
from nacre.query import spelling
from nacre.stores.sqlite import rows
from nacre.stores.sqlite.filters import in_spaces, marks

_AMONG = "SELECT term, sum(memories) FROM vocabulary WHERE space IN ({spaces}) AND {terms} GROUP BY term"


def frequencies(db: apsw.Connection, tokens: Sequence[str], spaces: Sequence[str]) -> Frequencies:
    counted = f"SELECT coalesce(sum(memories), 0) FROM corpus WHERE space IN ({marks(spaces)})"
    listed = _AMONG.format(spaces=marks(spaces), terms="term IN (SELECT value FROM json_each(?))")
    memories = rows.fetch(db, counted, tuple(spaces))[0][0]
    having: dict[str, int] = {}
    if tokens:
        having.update(rows.fetch(db, listed, (*spaces, json.dumps(tokens))))
    return Frequencies(memories, having)


def spellings(db: apsw.Connection, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
    """Looked up one by one when one edit away; read through from a common beginning when two."""
    near = dict(frequencies(db, list(dict.fromkeys(spelling.one_edit(word))), spaces).having)
    if spelling.looks_far(word):
        begun = "term BETWEEN ? AND ? AND length(term) BETWEEN ? AND ?"
        beginning = word[: spelling.BEGINNING_CHARS]
        bounds = (beginning, beginning + "\U0010ffff", len(word) - 2, len(word) + 2)
        near.update(rows.fetch(db, _AMONG.format(spaces=marks(spaces), terms=begun), (*spaces, *bounds)))
    alike = [(each, memories) for each, memories in near.items() if spelling.alike(word, each) is not None]
    return [(each, memories) for each, memories in alike if _is_word(db, each, spaces)]


def _is_word(db: apsw.Connection, token: str, spaces: Sequence[str]) -> bool:
    """Whether a text has it: the vocabulary has stems and other forms, too."""
    query = f'{in_spaces(spaces)} AND words : "{token}"'  # letters only: nothing to quote
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM fts WHERE fts MATCH ?)", (query,)).get)
