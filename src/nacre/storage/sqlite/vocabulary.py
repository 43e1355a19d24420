"""The vocabulary of each space: how many live memories have each token, and how long they are together.

The counts are written in the same transaction as the memories that they count.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal

import apsw

from nacre.analysis.tokenizer import vocabulary
from nacre.query import spelling
from nacre.storage.sqlite.filters import fts_spaces, placeholders
from nacre.storage.sqlite.rows import TOKENIZE, fetch, to_json
from nacre.types.memory import BREAK, Tokens
from nacre.types.stats import Frequencies

BATCH_MIN = 256  # texts of one space; from here on, SQLite counts them faster than Python does

# A temporary FTS5 index of one batch, which counts how many texts have each token. Each connection creates its own.
_BATCH = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS temp.batch USING fts5 (
  words, forms, summary, tags, source, content = '', detail = none, columnsize = 0, tokenize = "{TOKENIZE}"
);
CREATE VIRTUAL TABLE IF NOT EXISTS temp.batch_terms USING fts5vocab (temp, batch, row);
"""
_UPSERT = "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories"


# ---------------------------------------------------------------- writing


def update_counts(db: apsw.Connection, texts: Iterable[tuple[int, str, Tokens]], sign: Literal[1, -1]) -> None:
    """Add live texts, given as (row, space, tokens), to the counts of their spaces, or subtract them.

    The tokens of texts that are added must be written already.
    """
    by_space: defaultdict[str, list[tuple[int, Tokens]]] = defaultdict(list)
    for row, space, tokens in texts:
        by_space[space].append((row, tokens))
    for space, several in by_space.items():
        if sign > 0 and len(several) >= BATCH_MIN:
            _add_batch(db, space, [row for row, _ in several])
        else:
            _count(db, space, [tokens for _, tokens in several], sign)
    db.executemany(
        "INSERT INTO corpus VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, length = length + excluded.length",
        (
            (space, sign * len(several), sign * sum(tokens.length for _, tokens in several))
            for space, several in by_space.items()
        ),
    )
    if sign < 0:
        db.executemany("DELETE FROM corpus WHERE space = ? AND memories <= 0", ((space,) for space in by_space))


def _count(db: apsw.Connection, space: str, texts: Sequence[Tokens], sign: Literal[1, -1]) -> None:
    counted = Counter(chain.from_iterable(map(vocabulary, texts)))
    db.execute(
        f"INSERT INTO vocabulary SELECT ?, key, ? * value FROM json_each(?) WHERE true {_UPSERT}",
        (space, sign, json.dumps(counted, ensure_ascii=False)),
    )
    if sign < 0:
        db.executemany(
            "DELETE FROM vocabulary WHERE space = ? AND term = ? AND memories <= 0",
            ((space, term) for term in counted),
        )


def absent_terms(db: apsw.Connection, terms: Iterable[str]) -> set[str]:
    """Those of these terms that no live memory of any space has."""
    asked = set(terms)
    sql = (
        "SELECT DISTINCT v.term FROM corpus AS c, json_each(?) AS asked "
        "CROSS JOIN vocabulary AS v WHERE v.space = c.space AND v.term = asked.value"
    )
    return asked - {term for (term,) in fetch(db, sql, (to_json(list(asked)),))}


def _add_batch(db: apsw.Connection, space: str, rows: Sequence[int]) -> None:
    """Count the stored tokens in C, so that Python can prepare the next batch meanwhile."""
    db.execute(_BATCH)
    db.execute(
        "INSERT INTO temp.batch (rowid, words, forms, summary, tags, source) "
        "SELECT t.row, t.words, t.forms, t.summary, t.tags, t.source "
        "FROM json_each(?) AS j CROSS JOIN tokens AS t ON t.row = j.value",  # CROSS JOIN: or SQLite scans all tokens
        (to_json(rows),),
    )
    db.execute(
        f"INSERT INTO vocabulary SELECT ?, term, doc FROM temp.batch_terms WHERE term <> ? {_UPSERT}", (space, BREAK)
    )
    db.execute("INSERT INTO temp.batch (batch) VALUES ('delete-all')")


# ---------------------------------------------------------------- reading


def frequencies(
    db: apsw.Connection, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str]
) -> Frequencies:
    """How many live memories these spaces have, how many of them have each token, and their length together."""
    in_spaces = f"WHERE space IN ({placeholders(spaces)})"
    sql = f"SELECT coalesce(sum(memories), 0), coalesce(sum(length), 0) FROM corpus {in_spaces}"
    memories, length = db.execute(sql, tuple(spaces)).get
    beginning = {each: _prefix_frequency(db, each, spaces) for each in prefixes}
    return Frequencies(memories, _memories_having(db, tokens, spaces), length, beginning)


def _prefix_frequency(db: apsw.Connection, prefix: str, spaces: Sequence[str]) -> int:
    """The sum of the frequencies of all tokens of these spaces that begin with a prefix."""
    sql = f"SELECT total(memories) FROM vocabulary WHERE space IN ({placeholders(spaces)}) AND term BETWEEN ? AND ?"
    return int(db.execute(sql, (*spaces, *_range(prefix))).get)


def has_other_spaces(db: apsw.Connection, spaces: Sequence[str]) -> bool:
    """Whether other spaces have live memories. If not, an FTS5 query need not name these."""
    sql = f"SELECT EXISTS (SELECT 1 FROM corpus WHERE space NOT IN ({placeholders(spaces)}))"
    return bool(db.execute(sql, tuple(spaces)).get)


def spellings(db: apsw.Connection, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
    """Words of these spaces that are spelled like `word`, with their frequencies.

    Words with the same beginning are read from the vocabulary. For other beginnings, words are generated and looked up.
    """
    near = _memories_having(db, list(spelling.single_edits(word, spelling.PREFIX_CHARS)), spaces)
    same_beginning = (
        f"SELECT term, sum(memories) FROM vocabulary WHERE space IN ({placeholders(spaces)}) "
        "AND term BETWEEN ? AND ? AND length(term) BETWEEN ? AND ? GROUP BY term"
    )
    beginning, edits = word[: spelling.PREFIX_CHARS], 1 + spelling.allows_two_edits(word)
    near.update(fetch(db, same_beginning, (*spaces, *_range(beginning), len(word) - edits, len(word) + edits)))
    alike = [(each, memories) for each, memories in near.items() if spelling.edits_between(word, each) is not None]
    if not alike:
        return []
    within = f"{fts_spaces(spaces)} AND " if has_other_spaces(db, spaces) else ""
    return [(each, memories) for each, memories in alike if _is_word(db, each, within)]


def _memories_having(db: apsw.Connection, tokens: Sequence[str], spaces: Sequence[str]) -> dict[str, int]:
    if not tokens:
        return {}
    sql = (  # CROSS JOIN: SQLite looks up the tokens in the given order, and need not sort them
        "SELECT v.term, sum(v.memories) FROM json_each(?) AS j CROSS JOIN vocabulary AS v "
        f"ON v.space IN ({placeholders(spaces)}) AND v.term = j.value GROUP BY v.term"
    )
    return dict(fetch(db, sql, (json.dumps(list(dict.fromkeys(tokens))), *spaces)))


def _range(prefix: str) -> tuple[str, str]:
    """Bounds of the tokens that begin with a prefix."""
    return prefix, prefix + "\U0010ffff"


def _is_word(db: apsw.Connection, token: str, within: str) -> bool:
    """Whether a text has the token as a word. The vocabulary also has stems and other forms."""
    query = f'{within}words : "{token}"'  # letters only: nothing to quote
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM fts WHERE fts MATCH ?)", (query,)).get)
