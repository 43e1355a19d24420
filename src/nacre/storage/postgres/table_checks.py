"""Does what a store has fit its memories?

Everything is read in portions, each in a short snapshot of its own, so that a check of a large store holds back neither
its writers nor VACUUM, and finds nothing where others only write meanwhile. What can be compared by one statement is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nacre.analysis import tokenizer
from nacre.analysis.names import fold, predicate_words, relation_words
from nacre.analysis.near_duplicates import sketch
from nacre.analysis.word_forms import tokens_of
from nacre.analysis.wording import counted
from nacre.errors import StoreCorrupt
from nacre.storage import changes
from nacre.storage.postgres import further_vectors, postings, rows, space_usage
from nacre.storage.postgres.connection import Connections, fetch, value
from nacre.storage.postgres.schema import OF_MEMORIES, Db
from nacre.types.health import Finding
from nacre.types.memory import Tokens

TIMEOUT_MS = 3_600_000  # of one statement: some read a whole table
NAMED_MAX = 5  # ids in a sentence
_MEMORIES = 2_000  # that are read at once
_FACTS = 2_000
_TERMS = 5_000
_POSTINGS = 2_000_000  # of the terms that are counted at once
_FIX = "`nacre doctor --fix` makes it anew from the memories"
_RESTORE = "restore the last backup"

Check = Callable[[Connections], Iterator[Finding]]


def fine(check: str, text: str) -> Finding:
    return Finding(check, "fine", text)


def note(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, "note", text, remedy)


def problem(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, "problem", text, remedy)


def named(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


# ---------------------------------------------------------------- texts, and words of each memory

_READ = (
    "SELECT m.id, m.space, m.row, m.doc, m.identity, m.metadata_pairs, "
    "ARRAY(SELECT s.hash FROM sketches AS s WHERE s.space = m.space AND s.row = m.row ORDER BY s.hash), "
    f"{rows.READ_COLUMNS}, {rows.WORD_COLUMNS} "
    "FROM memories AS m LEFT JOIN tokens AS t ON t.space = m.space AND t.row = m.row "
    "WHERE (m.space, m.doc) > (%s, %s) ORDER BY m.space, m.doc LIMIT %s"
)
_WORDS = rows.WORD_COLUMNS.count(",") + 1
# The postings of terms that can be about docs up to %(last)s: blocks are named after their last doc.
_ENTRIES = """
SELECT given.term, p.entries FROM unnest(%(terms)s::text[]) AS given (term) CROSS JOIN LATERAL (
  SELECT entries FROM postings AS p WHERE p.space = %(space)s AND p.term = given.term AND p.block >= %(first)s
  AND p.block <= coalesce((SELECT min(q.block) FROM postings AS q WHERE q.space = p.space AND q.term = p.term
    AND q.block >= %(last)s), p.block)
) AS p
UNION ALL SELECT term, tail FROM vocabulary WHERE space = %(space)s AND term = ANY(%(terms)s)
"""


class _Memories(NamedTuple):
    """What is wrong, in ids."""

    total: int
    damaged: list[str]
    words: list[str]
    postings: list[str]  # terms
    sketches: list[str]
    columns: list[str]  # identity, or the scalars of the metadata
    terms: dict[str, dict[int, int]]  # by space and doc of a live memory, how many terms it has


def texts_and_words(connections: Connections) -> Iterator[Finding]:
    """Texts match their checksums, and the words and postings of each memory are what its text gives."""
    with connections.snapshot(TIMEOUT_MS) as db:
        older = rows.meta(db, "words_version") != str(tokenizer.VERSION)
    if older:
        yield note("words", "the words are those of another version", "open the store once to renew them")
        return
    found = _examined(connections)
    if found.damaged:
        said = counted(len(found.damaged), "memory is", "memories are")
        yield problem("texts", f"{said} not what was written: {named(found.damaged)}", _RESTORE)
    else:
        yield fine("texts", f"{counted(found.total, 'text matches its', 'texts match their')} checksum")
    counting = _Counting(found.terms)
    miscounted = [f"{term} in {space}" for space, term in _miscounted_terms(connections, counting)]
    with connections.snapshot(TIMEOUT_MS) as db:
        stray = counting.stray(db)
    with connections.snapshot(TIMEOUT_MS) as db:
        corpus = int(value(db, _CORPUS))
    parts = [
        f"{said} ({named(names)})"
        for said, names in (
            (counted(len(found.words), "memory has", "memories have") + " wrong words", found.words),
            (counted(len(found.postings), "term lacks", "terms lack") + " postings", found.postings),
            (counted(len(found.sketches), "memory has", "memories have") + " wrong sketches", found.sketches),
            (counted(len(found.columns), "memory has", "memories have") + " wrong keys", found.columns),
            (counted(len(miscounted), "term is", "terms are") + " miscounted", miscounted),
            (counted(len(stray), "memory has", "memories have") + " postings of other terms", stray),
        )
        if names
    ]
    if corpus:
        parts.append(f"{counted(corpus, 'space is', 'spaces are')} miscounted")
    if parts:
        yield problem("words", f"the keyword index does not fit the memories: {', '.join(parts)}", _FIX)
    else:
        yield fine("words", "the keyword index fits the memories")


def _examined(connections: Connections) -> _Memories:
    found = _Memories(0, [], [], [], [], [], {})
    after: tuple[str, int] = ("", -1)
    while True:
        with connections.snapshot(TIMEOUT_MS) as db:
            batch = fetch(db, _READ, (*after, _MEMORIES))
            if not batch:
                return found
            live: dict[str, list[tuple[int, Tokens]]] = {}
            for memory_id, space, _, doc, identity, pairs, hashes, *columns in batch:
                after = space, doc
                try:
                    memory = rows.memory(columns[:-_WORDS])
                except StoreCorrupt:
                    found.damaged.append(memory_id)
                    continue
                tokens, stored = tokens_of(memory), columns[-_WORDS:]
                if stored[0] is None or rows.tokens(stored) != tokens:
                    found.words.append(memory_id)
                if sorted(set(sketch(tokens))) != hashes:
                    found.sketches.append(memory_id)
                wanted = rows.identity_hash(changes.identity(memory)), rows.pairs(memory.metadata)
                if (identity, pairs) != wanted:
                    found.columns.append(memory_id)
                if memory.deleted is None:
                    live.setdefault(space, []).append((doc, tokens))
                    found.terms.setdefault(space, {})[doc] = len(set(tokenizer.vocabulary(tokens)))
            for space, texts in live.items():
                found.postings.extend(_without_postings(db, space, texts))
            found = found._replace(total=found.total + len(batch))


def _without_postings(db: Db, space: str, texts: Sequence[tuple[int, Tokens]]) -> Iterator[str]:
    """The terms of live texts, given as (doc, tokens), whose postings are not what these give."""
    wanted = postings.invert(texts)
    if wanted is None:
        return
    docs = np.array([doc for doc, _ in texts], np.int64)
    given = {"space": space, "terms": wanted.terms, "first": int(docs.min()), "last": int(docs.max())}
    stored: dict[str, list[bytes]] = {}
    for term, entries in db.execute(_ENTRIES, given, binary=True):
        stored.setdefault(term, []).append(entries)
    for term, expected in zip(wanted.terms, wanted.entries, strict=True):
        entries = np.frombuffer(b"".join(stored.get(term, ())), postings.POSTING)
        ours = entries[np.isin(entries["doc"], docs)]
        if _in_order(ours) != _in_order(np.frombuffer(expected, postings.POSTING)):
            yield term


def _in_order(entries: postings.Array) -> bytes:
    return np.sort(entries, order="doc").tobytes()


# ---------------------------------------------------------------- counts of words

_CORPUS = """
SELECT count(*) FROM (
  SELECT m.space, count(*) AS memories, sum(t.length) AS length FROM memories AS m
  JOIN tokens AS t ON t.space = m.space AND t.row = m.row WHERE m.deleted_us IS NULL GROUP BY m.space
) AS found FULL JOIN corpus AS c ON c.space = found.space
WHERE (coalesce(found.memories, 0), coalesce(found.length, 0)) <> (coalesce(c.memories, 0), coalesce(c.length, 0))
"""


class _Counting:
    """How many terms each doc has postings of. What a doc stands for never changes while its memory is live."""

    def __init__(self, expected: Mapping[str, Mapping[int, int]]) -> None:
        self._docs = {space: np.array(sorted(terms), np.int64) for space, terms in expected.items()}
        self._missing = {
            space: np.array([expected[space][doc] for doc in docs.tolist()]) for space, docs in self._docs.items()
        }

    def add(self, space: str, docs: postings.Array) -> None:
        """Docs that have a term."""
        if space in self._docs:
            at, known = postings.located(self._docs[space], docs)
            self._missing[space][at[known]] -= 1

    def stray(self, db: Db) -> list[str]:
        """The ids of memories that are still live and have postings of other terms than theirs."""
        found = []
        for space, docs in self._docs.items():
            odd = docs[self._missing[space] != 0].tolist()
            sql = "SELECT id FROM memories WHERE space = %s AND doc = ANY(%s) AND deleted_us IS NULL"
            found += [memory_id for (memory_id,) in fetch(db, sql, (space, odd))]
        return found


def _miscounted_terms(connections: Connections, counting: _Counting) -> Iterator[tuple[str, str]]:
    """Space and term where not as many live memories have it as are counted, or whose bounds do not hold."""
    after = ("", "")
    terms = (
        "SELECT space, term, memories, most_text, most_labels, least_length, "
        "EXISTS (SELECT FROM postings AS p WHERE p.space = v.space AND p.term = v.term AND p.block > v.sealed) "
        "FROM vocabulary AS v "
        "WHERE (space, term) > (%s, %s) ORDER BY space, term LIMIT %s"
    )
    while True:
        with connections.snapshot(TIMEOUT_MS) as db:
            batch = _together(fetch(db, terms, (*after, _TERMS)))
            if not batch:
                return
            space = batch[0][0]
            after = batch[-1][0], batch[-1][1]
            sql = "SELECT doc FROM memories WHERE space = %s AND deleted_us IS NULL ORDER BY doc"
            live = np.array([doc for (doc,) in fetch(db, sql, (space,))], np.int64)
            lists = postings.lists(db, [space], [term for _, term, *_ in batch])
            for _, term, memories, most_text, most_labels, least_length, unsealed in batch:
                entries = lists.get(term, np.zeros(0, postings.POSTING))
                ours = entries[np.isin(entries["doc"], live)]
                in_text = ours["words"].astype(np.int64) + ours["forms"]
                in_labels = ours["summary"].astype(np.int64) + ours["tags"] + ours["source"]
                bounded = (in_text <= most_text) & (in_labels <= most_labels) & (ours["length"] >= least_length)
                docs = np.unique(ours["doc"])
                counting.add(space, docs)
                if len(docs) != memories or unsealed or not bounded.all():
                    yield space, term


def _together(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The first of these terms: of one space, and not too many postings."""
    batch: list[tuple[Any, ...]] = []
    total = 0
    for each in found:
        if batch and (each[0] != batch[0][0] or total + each[2] > _POSTINGS):
            break
        batch.append(each)
        total += each[2]
    return batch


# ---------------------------------------------------------------- vectors

ODD_VECTORS = """
SELECT m.space, m.row FROM memories AS m LEFT JOIN LATERAL (
  SELECT count(*) AS passages, min(p.siblings) AS least, max(p.siblings) AS most, min(p.place) AS first,
    max(p.place) AS last, min(vector_dims(p.vector)) AS shortest, max(vector_dims(p.vector)) AS longest
  FROM passages AS p WHERE p.space = m.space AND p.row = m.row
) AS p ON true LEFT JOIN LATERAL (
  SELECT count(*) AS tokens FROM token_vectors AS t WHERE t.space = m.space AND t.row = m.row
) AS t ON true
WHERE (m.space, m.row) > (%(space)s, %(row)s) AND (m.space, m.row) <= (%(last_space)s, %(last_row)s) AND CASE
  WHEN m.embedded THEN p.passages = 0 OR (p.least, p.most) <> (p.passages, p.passages)
    OR (p.first, p.last) <> (0, p.passages - 1) OR (p.shortest, p.longest) <> (%(dimensions)s, %(dimensions)s)
    OR coalesce(m.token_passages, 0) <> t.tokens
  ELSE p.passages > 0 OR t.tokens > 0 END
"""
_LAST_ROW = (
    "SELECT space, row FROM (SELECT space, row FROM memories WHERE (space, row) > (%s, %s) "
    "ORDER BY space, row LIMIT %s) AS next ORDER BY space DESC, row DESC LIMIT 1"
)
_DIMENSIONS = "SELECT vector_dims(vector) FROM passages GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"


def odd_vectors(connections: Connections) -> list[tuple[str, int]]:
    """Memories whose passages or token vectors are not complete, or not as long as those of the most.

    pgvector takes in no vector with an infinite number or one that is none.
    """
    with connections.snapshot(TIMEOUT_MS) as db:
        dimensions = value(db, _DIMENSIONS)
    found: list[tuple[str, int]] = []
    after: tuple[str, int] = ("", -1)
    while True:
        with connections.snapshot(TIMEOUT_MS) as db:
            last = fetch(db, _LAST_ROW, (*after, _MEMORIES * 4))
            if not last:
                return found
            given = {"space": after[0], "row": after[1], "last_space": last[0][0], "last_row": last[0][1]}
            odd = db.execute(ODD_VECTORS, {**given, "dimensions": dimensions}, binary=True)
            found += [(space, row) for space, row in odd]
            after = last[0]


def vectors(connections: Connections) -> Iterator[Finding]:
    odd: list[Any] = [*odd_vectors(connections)]
    with connections.snapshot(TIMEOUT_MS) as db:
        odd += further_vectors.odd(db)
    if odd:
        said = counted(len(odd), "memory has", "memories have")
        text = f"{said} vectors that are missing, too many, or of another size than the rest"
        yield problem("vectors", text, "`nacre doctor --fix` deletes these, and `nacre reembed` makes them anew")
        return
    with connections.snapshot(TIMEOUT_MS) as db:
        total = int(value(db, "SELECT (SELECT count(*) FROM passages) + (SELECT count(*) FROM further_passages)"))
    yield fine("vectors", f"{counted(total, 'vector is', 'vectors are')} complete")


# ---------------------------------------------------------------- rows that belong to no memory, and counts

# Table, and the columns with the space and the row of a memory.
REFERENCES = (
    *((table, "space", "row") for table in (*OF_MEMORIES, "facts")),
    ("near_duplicates", "space", "row"),
    ("near_duplicates", "space", "other"),
    ("updates", "space", "older"),
    ("updates", "space", "newer"),
    ("deliveries", "memory_space", "row"),
)
DANGLING = "NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.space = t.{} AND m.row = t.{})"
ONE_SIDED = (
    "NOT EXISTS (SELECT 1 FROM near_duplicates AS o WHERE o.space = t.space AND o.row = t.other AND o.other = t.row "
    "AND o.apart = t.apart)"
)
NAMELESS = "NOT EXISTS (SELECT 1 FROM entity_names AS n WHERE n.space = t.space AND n.entity = t.entity)"
# Numbers that are given out next, by what has them already.
NUMBERS = {
    "memory_rows": "SELECT greatest(max(row), max(doc)) FROM memories",
    "fact_numbers": "SELECT max(fact) FROM facts",
    "entity_numbers": "SELECT max(entity) FROM entities",
}
COUNTERS = {
    "events": "SELECT greatest((SELECT max(seq) FROM events), (SELECT max(seq) FROM changes))",
    "receipts": "SELECT max(receipt) FROM receipts",
}


def integrity(connections: Connections) -> Iterator[Finding]:
    """Rows belong to memories, and the next numbers are free."""
    dangling: list[str] = []
    behind: list[str] = []
    conditions = [(table, DANGLING.format(space, row)) for table, space, row in REFERENCES]
    for table, condition in (*conditions, ("near_duplicates", ONE_SIDED), ("entities", NAMELESS)):
        with connections.snapshot(TIMEOUT_MS) as db:
            number = int(value(db, f"SELECT count(*) FROM {table} AS t WHERE {condition}"))
        if number:
            dangling.append(f"{number} in {table}")
    for name, taken in NUMBERS.items():
        with connections.snapshot(TIMEOUT_MS) as db:
            highest = int(value(db, taken) or 0)
            if int(value(db, f"SELECT last_value FROM {name}")) < highest:
                behind.append(name)
    for name, taken in COUNTERS.items():
        with connections.snapshot(TIMEOUT_MS) as db:
            if int(value(db, "SELECT value FROM counters WHERE name = %s", (name,))) < int(value(db, taken) or 0):
                behind.append(name)
    if dangling:
        text = f"rows refer to something that is gone: {', '.join(dangling)}"
        yield problem("integrity", text, "`nacre doctor --fix` deletes them")
    if behind:
        text = f"numbers would be given out twice: {', '.join(behind)}"
        yield problem("integrity", text, "`nacre doctor --fix` goes on after the highest; was only a part restored?")
    if not dangling and not behind:
        yield fine("integrity", "all rows belong to memories")


_LOG_BYTES = (
    "SELECT (SELECT value FROM counters WHERE name = 'log_bytes') <> coalesce((SELECT sum(bytes) FROM receipts), 0)"
)


def counts(connections: Connections) -> Iterator[Finding]:
    """What spaces hold, and how large the recall log is."""
    with connections.snapshot(TIMEOUT_MS) as db:
        spaces = space_usage.miscounted(db)
    with connections.snapshot(TIMEOUT_MS) as db:
        sees_all = not db.checks_rows or value(db, "SELECT own_spaces()") is None
        log = sees_all and bool(value(db, _LOG_BYTES))
    wrong = [counted(spaces, "space", "spaces")] * bool(spaces) + ["the recall log"] * log
    if wrong:
        yield problem("counts", f"the size of {' and of '.join(wrong)} is counted wrong", _FIX)
    else:
        yield fine("counts", "sizes of spaces and of the recall log are right")


# ---------------------------------------------------------------- facts

_READ_FACTS = """
SELECT f.space, f.fact, f.subject, f.predicate, f.object, f.subject_key, f.predicate_key, f.object_key,
  f.relation AND m.deleted_us IS NULL,
  ARRAY(SELECT w.word FROM relation_words AS w WHERE w.space = f.space AND w.fact = f.fact ORDER BY w.word)
FROM facts AS f JOIN memories AS m ON m.space = f.space AND m.row = f.row
WHERE (f.space, f.fact) > (%s, %s) ORDER BY f.space, f.fact LIMIT %s
"""
_RELATIONS = """
SELECT count(*) FROM (SELECT space, count(*) AS relations FROM facts WHERE relation GROUP BY space) AS found
FULL JOIN relation_counts AS c ON c.space = found.space WHERE coalesce(found.relations, 0) <> coalesce(c.relations, 0)
"""


def facts(connections: Connections) -> Iterator[Finding]:
    """Names that facts are compared by, and the words of relations."""
    total = wrong = 0
    after: tuple[str, int] = ("", -1)
    while True:
        with connections.snapshot(TIMEOUT_MS) as db:
            batch = fetch(db, _READ_FACTS, (*after, _FACTS))
        if not batch:
            break
        for space, number, subject, predicate, object_, *keys, searchable, words in batch:
            after = space, number
            expected = sorted(set(relation_words(subject, predicate, object_))) if searchable else []
            wrong += keys != [fold(subject), predicate_words(predicate), fold(object_)] or words != expected
        total += len(batch)
    with connections.snapshot(TIMEOUT_MS) as db:
        miscounted = int(value(db, _RELATIONS))
    if wrong or miscounted:
        said = counted(wrong, "fact has", "facts have") + " wrong words"
        more = f", and relations of {counted(miscounted, 'space is', 'spaces are')} miscounted" if miscounted else ""
        yield problem("facts", f"{said}{more}", _FIX)
    else:
        yield fine("facts", f"{counted(total, 'fact is', 'facts are')} indexed as written")


# ---------------------------------------------------------------- work that is left


def pending(connections: Connections) -> Iterator[Finding]:
    with connections.snapshot(TIMEOUT_MS) as db:
        waiting = int(value(db, "SELECT count(*) FROM memories WHERE NOT embedded AND deleted_us IS NULL"))
        has_model = rows.meta(db, "model") is not None
        further = sum(further_vectors.pending_count(db, each) for each in further_vectors.models(db))
    if waiting and has_model:
        said = counted(waiting, "memory has", "memories have")
        yield note("pending", f"{said} no vectors yet and are found by words only", "run `nacre reembed`")
    elif further:
        said = counted(further, "memory waits", "memories wait")
        yield note("pending", f"{said} for vectors of a further model", "run `nacre reembed`")
    else:
        yield fine("pending", "nothing is left to be done")
