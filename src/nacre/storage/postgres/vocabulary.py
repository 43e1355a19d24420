"""The vocabulary of each space: how many live memories have each token, and how long they are together.

The counts are written in the same transaction as the memories that they count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from nacre.analysis.tokenizer import vocabulary
from nacre.query import spelling
from nacre.storage.postgres import postings
from nacre.storage.postgres.connection import fetch, run, value
from nacre.storage.postgres.posting_lists import CountedTerm
from nacre.storage.postgres.schema import Db
from nacre.types.memory import Tokens
from nacre.types.stats import Frequencies

_LAST = "\U0010ffff"  # after every token that begins like it without
_NEWEST = 256  # memories that are looked at first, where one is enough
# Memories and length of some spaces, with what tells one start of a server and its tables from another; then terms.
_COUNTED = (
    "SELECT coalesce(sum(memories), 0)::bigint, coalesce(sum(length), 0)::bigint, "
    "concat(pg_postmaster_start_time(), ' ', pg_relation_filenode('postings')), NULL, 0, 0, 0, 0, 0, NULL "
    "FROM corpus WHERE space = ANY(%s) UNION ALL SELECT 0, 0, "
    "space, term, memories, most_text, most_labels, least_length, sealed, tail FROM vocabulary "
    "WHERE space = ANY(%s) AND term = ANY(%s)"
)


@dataclass(slots=True)
class Counted:
    """What some spaces have of some terms."""

    memories: int = 0
    length: int = 0
    started: str = ""  # of the server and its tables: another text after they were replaced
    terms: dict[str, list[CountedTerm]] = field(default_factory=dict)  # also those that no memory has


# ---------------------------------------------------------------- writing


def add(db: Db, texts: Iterable[tuple[str, int, Tokens]]) -> None:
    """Add live texts, given as (space, doc, tokens) with docs that are new, to the counts and postings."""
    by_space: defaultdict[str, list[tuple[int, Tokens]]] = defaultdict(list)
    for space, doc, tokens in texts:
        by_space[space].append((doc, tokens))
    for space, several in by_space.items():
        postings.append(db, space, several)
        length = sum(tokens.length for _, tokens in several)
        run(
            db,
            "INSERT INTO corpus AS c VALUES (%s, %s, %s) ON CONFLICT (space) DO UPDATE "
            "SET memories = c.memories + excluded.memories, length = c.length + excluded.length",
            (space, len(several), length),
        )


def subtract(db: Db, texts: Iterable[tuple[str, Tokens]]) -> None:
    """Take texts that are not live any more, or not with these tokens, out of the counts."""
    by_space: defaultdict[str, list[Tokens]] = defaultdict(list)
    for space, tokens in texts:
        by_space[space].append(tokens)
    for space, several in by_space.items():
        counted = Counter(chain.from_iterable(map(vocabulary, several)))
        gone = fetch(
            db,
            "UPDATE vocabulary AS v SET memories = v.memories - less.memories "
            "FROM unnest(%s::text[], %s::int[]) AS less (term, memories) WHERE v.space = %s AND v.term = less.term "
            "RETURNING v.term, v.memories",
            (list(counted), list(counted.values()), space),
        )
        unused = [term for term, memories in gone if memories <= 0]
        if unused:
            run(db, "DELETE FROM vocabulary WHERE space = %s AND term = ANY(%s)", (space, unused))
            run(db, "DELETE FROM postings WHERE space = %s AND term = ANY(%s)", (space, unused))
        length = sum(tokens.length for tokens in several)
        run(
            db,
            "UPDATE corpus SET memories = memories - %s, length = length - %s WHERE space = %s",
            (len(several), length, space),
        )
        run(db, "DELETE FROM corpus WHERE space = %s AND memories <= 0", (space,))


def absent_terms(db: Db, terms: Iterable[str]) -> set[str]:
    """Those of these terms that no live memory of any space has."""
    asked = set(terms)
    sql = "SELECT DISTINCT term FROM corpus AS c JOIN vocabulary AS v USING (space) WHERE v.term = ANY(%s)"
    return asked - {term for (term,) in fetch(db, sql, (list(asked),))}


# ---------------------------------------------------------------- reading


def frequencies(db: Db, tokens: Sequence[str], spaces: Sequence[str], prefixes: Sequence[str]) -> Frequencies:
    """How many live memories these spaces have, how many of them have each token, and their length together."""
    found = counted(db, tokens, spaces)
    having = {each: sum(row.memories for row in found.terms[each]) for each in tokens if found.terms[each]}
    beginning = {each: _prefix_frequency(db, each, spaces) for each in prefixes}
    return Frequencies(found.memories, having, found.length, beginning)


def counted(db: Db, tokens: Sequence[str], spaces: Sequence[str]) -> Counted:
    """The counts of these spaces and of at least these tokens."""
    kept = {} if db.seen is None else db.seen
    known: Counted = kept.setdefault(tuple(spaces), Counted())
    unknown = [each for each in dict.fromkeys(tokens) if each not in known.terms]
    if unknown or not known.started:
        (known.memories, known.length, known.started, *_), *rows = fetch(
            db, _COUNTED, (list(spaces), list(spaces), unknown)
        )
        known.terms.update({each: [] for each in unknown})
        for _, _, *row in rows:
            term = CountedTerm(*row)
            known.terms[term.term].append(term)
    return known


def _prefix_frequency(db: Db, prefix: str, spaces: Sequence[str]) -> int:
    """The sum of the frequencies of all tokens of these spaces that begin with a prefix."""
    sql = (
        "SELECT coalesce(sum(memories), 0)::bigint FROM vocabulary WHERE space = ANY(%s) AND term >= %s AND term <= %s"
    )
    return int(value(db, sql, (list(spaces), prefix, prefix + _LAST)))


def beginning_with(db: Db, prefix: str, spaces: Sequence[str]) -> list[str]:
    """The tokens of these spaces that begin with a prefix."""
    sql = "SELECT DISTINCT term FROM vocabulary WHERE space = ANY(%s) AND term >= %s AND term <= %s"
    return [term for (term,) in fetch(db, sql, (list(spaces), prefix, prefix + _LAST))]


def spellings(db: Db, word: str, spaces: Sequence[str]) -> list[tuple[str, int]]:
    """Words of these spaces that are spelled like `word`, with their frequencies.

    Words with the same beginning are read from the vocabulary. For other beginnings, words are generated and looked up.
    """
    near = _memories_having(db, list(spelling.single_edits(word, spelling.PREFIX_CHARS)), spaces)
    same_beginning = (
        "SELECT term, sum(memories)::bigint FROM vocabulary WHERE space = ANY(%s) AND term >= %s AND term <= %s "
        "AND length(term) BETWEEN %s AND %s GROUP BY term"
    )
    beginning, edits = word[: spelling.PREFIX_CHARS], 1 + spelling.allows_two_edits(word)
    bounds = (list(spaces), beginning, beginning + _LAST, len(word) - edits, len(word) + edits)
    near.update(dict(fetch(db, same_beginning, bounds)))
    alike = {each: memories for each, memories in near.items() if spelling.edits_between(word, each) is not None}
    words = _words(db, list(alike), spaces) if alike else set()
    return [(each, memories) for each, memories in alike.items() if each in words]


def _words(db: Db, tokens: Sequence[str], spaces: Sequence[str]) -> set[str]:
    """Those of these tokens that a live text has as a word. The vocabulary also has stems and other forms."""
    docs = {
        token: entries["doc"][entries["words"] > 0] for token, entries in postings.lists(db, spaces, tokens).items()
    }
    newest = {token: of_token[-_NEWEST:] for token, of_token in docs.items()}
    found = _with_live(db, newest, spaces)
    return found | _with_live(db, {token: docs[token] for token in docs.keys() - found}, spaces)


def _with_live(db: Db, docs: dict[str, Any], spaces: Sequence[str]) -> set[str]:
    """The tokens one of whose docs is that of a live memory."""
    if not docs:
        return set()
    asked = np.unique(np.concatenate(list(docs.values()))).tolist()
    sql = "SELECT doc FROM memories WHERE space = ANY(%s) AND doc = ANY(%s::bigint[]) AND deleted_us IS NULL"
    live = [doc for (doc,) in fetch(db, sql, (list(spaces), asked))] if asked else []
    return {token for token, of_token in docs.items() if np.isin(of_token, live).any()}


def _memories_having(db: Db, tokens: Sequence[str], spaces: Sequence[str]) -> dict[str, int]:
    if not tokens:
        return {}
    sql = "SELECT term, sum(memories)::bigint FROM vocabulary WHERE space = ANY(%s) AND term = ANY(%s) GROUP BY term"
    return dict(fetch(db, sql, (list(spaces), list(dict.fromkeys(tokens)))))
