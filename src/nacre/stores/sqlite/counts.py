"""Document frequencies and lengths by space, kept in the same transaction as the rows they count."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

import apsw

from nacre.text.words import vocabulary
from nacre.types import Tokens


def count(db: apsw.Connection, texts: Iterable[tuple[str, Tokens]], sign: Literal[1, -1]) -> None:
    """Add live texts, given as (space, tokens), to the counts of their spaces, or take them out."""
    terms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    corpora: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for space, tokens in texts:
        terms[space].update(vocabulary(tokens))
        corpora[space][0] += 1
        corpora[space][1] += tokens.length
    for space, counter in terms.items():
        db.execute(
            "INSERT INTO vocabulary SELECT ?, key, ? * value FROM json_each(?) WHERE true "
            "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
            (space, sign, json.dumps(counter, ensure_ascii=False)),
        )
    db.executemany(
        "INSERT INTO corpus VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, length = length + excluded.length",
        ((space, sign * memories, sign * length) for space, (memories, length) in corpora.items()),
    )
    if sign < 0:
        db.executemany(
            "DELETE FROM vocabulary WHERE space = ? AND term = ? AND memories <= 0",
            ((space, term) for space, counter in terms.items() for term in counter),
        )
        db.executemany("DELETE FROM corpus WHERE space = ? AND memories <= 0", ((space,) for space in corpora))
