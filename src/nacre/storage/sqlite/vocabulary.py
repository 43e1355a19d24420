"""Which tokens the live memories of a space have, and how many have each."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from nacre.query import spelling
from nacre.storage.sqlite import rows
from nacre.storage.sqlite.filters import in_spaces, marks
from nacre.types.stats import Frequencies


def frequencies(db: apsw.Connection, tokens: Sequence[str], spaces: Sequence[str]) -> Frequencies:
    counted = f"SELECT coalesce(sum(memories), 0) FROM corpus WHERE space IN ({marks(spaces)})"
    return Frequencies(db.execute(counted, tuple(spaces)).get, _having(db, tokens, spaces))


def _having(db: apsw.Connection, tokens: Sequence[str], spaces: Sequence[str]) -> dict[str, int]:
    if not tokens:
        return {}
    sql = (  # CROSS JOIN: each token is looked up as it comes, none is sorted
        "SELECT v.term, sum(v.memories) FROM json_each(?) AS j CROSS JOIN vocabulary AS v "
        f"ON v.space IN ({marks(spaces)}) AND v.term = j.value GROUP BY v.term"
    )
    return dict(rows.fetch(db, sql, (json.dumps(list(dict.fromkeys(tokens))), *spaces)))


def has_others(db: apsw.Connection, spaces: Sequence[str]) -> bool:
    """Whether live memories stand outside these spaces: if not, FTS5 need not be told of them."""
    sql = f"SELECT EXISTS (SELECT 1 FROM corpus WHERE space NOT IN ({marks(spaces)}))"
    return bool(db.execute(sql, tuple(spaces)).get)


def spellings(db: apsw.Connection, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
    """Read through where they begin alike; where the beginning is misspelled, looked up one by one."""
    near = _having(db, list(spelling.one_edit(word, spelling.BEGINNING_CHARS)), spaces)
    begun = (
        f"SELECT term, sum(memories) FROM vocabulary WHERE space IN ({marks(spaces)}) "
        "AND term BETWEEN ? AND ? AND length(term) BETWEEN ? AND ? GROUP BY term"
    )
    beginning, edits = word[: spelling.BEGINNING_CHARS], 1 + spelling.looks_far(word)
    bounds = (beginning, beginning + "\U0010ffff", len(word) - edits, len(word) + edits)
    near.update(rows.fetch(db, begun, (*spaces, *bounds)))
    alike = [(each, memories) for each, memories in near.items() if spelling.alike(word, each) is not None]
    if not alike:
        return []
    within = f"{in_spaces(spaces)} AND " if has_others(db, spaces) else ""
    return [(each, memories) for each, memories in alike if _is_word(db, each, within)]


def _is_word(db: apsw.Connection, token: str, within: str) -> bool:
    """Whether a text has it: the vocabulary has stems and other forms, too."""
    query = f'{within}words : "{token}"'  # letters only: nothing to quote
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM fts WHERE fts MATCH ?)", (query,)).get)
