"""What must be true of the tables of any PostgreSQL store, whatever was done to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from nacre.analysis import near_duplicates, tokenizer
from nacre.analysis.names import relation_words
from nacre.analysis.word_forms import tokens_of
from nacre.storage.postgres import rows
from nacre.storage.postgres.postings import FIELDS, POSTING
from nacre.storage.postgres.schema import FACT_BYTES, MEMORY_BYTES, OF_MEMORIES
from nacre.types.memory import Memory, Tokens

Select: TypeAlias = Callable[[str], list[tuple[Any, ...]]]  # runs a statement in the schema of a store

# Pairs of tables and how the rows of the first are found in the second.
_REFERENCES = (
    *((table, "memories", "o.space = t.space AND o.row = t.row") for table in OF_MEMORIES),
    ("near_duplicates", "near_duplicates", "o.space = t.space AND o.row = t.other AND o.other = t.row"),
    ("near_duplicates", "memories", "o.space = t.space AND o.row = t.row"),
    ("updates", "memories", "o.space = t.space AND o.row = t.older"),
    ("updates", "memories", "o.space = t.space AND o.row = t.newer"),
    ("facts", "memories", "o.space = t.space AND o.row = t.row"),
    ("deliveries", "memories", "o.space = t.memory_space AND o.row = t.row"),
    ("deliveries", "receipts", "o.space = t.space AND o.receipt = t.receipt"),
    ("entity_names", "entities", "o.space = t.space AND o.entity = t.entity"),
    ("entities", "entity_names", "o.space = t.space AND o.entity = t.entity"),
    ("memories", "tokens", "o.space = t.space AND o.row = t.row"),
)


class _Stored:
    """A memory with what its row says."""

    def __init__(self, row: int, doc: int, memory: Memory) -> None:
        self.row = row
        self.doc = doc
        self.memory = memory
        self.tokens = tokens_of(memory)


def check_derived_tables(select: Select) -> None:
    """Postings, vocabulary, corpus, tokens, sketches, words of relations and counts: nothing missing, no ghosts."""
    found = select(f"SELECT m.row, m.doc, {rows.READ_COLUMNS} FROM memories AS m")
    every = [_Stored(row, doc, rows.memory(columns)) for row, doc, *columns in found]
    live = [each for each in every if each.memory.deleted is None]
    _check_tokens(select, every)
    _check_vocabulary(select, live)
    _check_postings(select, live)
    sketched = {
        (each.memory.space, key, each.row)
        for each in every
        for key in near_duplicates.sketch(tokenizer.tokenise(each.memory.text))
    }
    assert set(select("SELECT space, hash, row FROM sketches")) == sketched
    _check_relations(select)
    check_passages(select)
    _check_usage(select)
    for table, other, joined in _REFERENCES:
        alone = select(f"SELECT t.* FROM {table} AS t WHERE NOT EXISTS (SELECT 1 FROM {other} AS o WHERE {joined})")
        assert alone == [], (table, other)


def _check_tokens(select: Select, every: list[_Stored]) -> None:
    stored = {
        (space, row): rows.tokens(columns)
        for space, row, *columns in select(f"SELECT t.space, t.row, {rows.WORD_COLUMNS} FROM tokens AS t")
    }
    assert stored == {(each.memory.space, each.row): each.tokens for each in every}


def _check_vocabulary(select: Select, live: list[_Stored]) -> None:
    frequencies = Counter((each.memory.space, term) for each in live for term in tokenizer.vocabulary(each.tokens))
    stored = {
        (space, term): (memories, most)
        for space, term, memories, *most in select(
            "SELECT space, term, memories, most_text, most_labels, least_length FROM vocabulary"
        )
    }
    assert {key: memories for key, (memories, _) in stored.items()} == frequencies
    for each in live:  # the bounds hold, whether or not they are tight
        for term in tokenizer.vocabulary(each.tokens):
            most_text, most_labels, least_length = stored[each.memory.space, term][1]
            counts = _counts(each.tokens, term)
            assert counts["words"] + counts["forms"] <= most_text
            assert counts["summary"] + counts["tags"] + counts["source"] <= most_labels
            assert least_length <= each.tokens.length
    lengths = Counter[str]()
    for each in live:
        lengths[each.memory.space] += each.tokens.length
    counted = Counter(each.memory.space for each in live)
    assert sorted(select("SELECT space, memories, length FROM corpus")) == sorted(
        (space, memories, lengths[space]) for space, memories in counted.items()
    )


def _check_postings(select: Select, live: list[_Stored]) -> None:
    """The lists are in the order of their docs, and say of each live memory once what it has, and how often."""
    lists: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
    for space, term, entries in select("SELECT space, term, entries FROM postings ORDER BY space, term, block"):
        assert entries
        lists[space, term].append(entries)
    for space, term, tail in select("SELECT space, term, tail FROM vocabulary"):
        lists[space, term].append(tail)
    by_doc = {each.doc: each for each in live}
    assert len(by_doc) == len(live)
    said = set()
    for (space, term), several in lists.items():
        entries = np.frombuffer(b"".join(several), POSTING)
        assert (np.diff(entries["doc"]) > 0).all(), (space, term)
        for entry in entries:
            stored = by_doc.get(int(entry["doc"]))
            if stored is None or stored.memory.space != space:
                continue
            said.add((stored.doc, term))
            assert {field: int(entry[field]) for field in FIELDS} == _counts(stored.tokens, term)
            assert int(entry["length"]) == stored.tokens.length
    assert said == {(each.doc, term) for each in live for term in tokenizer.vocabulary(each.tokens)}


def _counts(tokens: Tokens, term: str) -> dict[str, int]:
    return {field: getattr(tokens, field).count(term) for field in FIELDS}


def _check_relations(select: Select) -> None:
    """Live relations are found by their words, and nothing else is. Those of forgotten memories are counted."""
    related = select(
        "SELECT f.space, f.fact, f.subject, f.predicate, f.object, m.deleted_us IS NULL FROM facts AS f "
        "JOIN memories AS m ON m.space = f.space AND m.row = f.row WHERE f.relation"
    )
    words = {
        (space, word, fact)
        for space, fact, subject, predicate, object_, is_live in related
        if is_live
        for word in relation_words(subject, predicate, object_)
    }
    assert set(select("SELECT space, word, fact FROM relation_words")) == words
    counted = Counter(space for space, *_ in related)
    assert dict(select("SELECT space, relations FROM relation_counts WHERE relations <> 0")) == counted


def check_passages(select: Select) -> None:
    """Each memory has as many passages and token vectors as its row says, and only if it has vectors."""
    wrong = (
        "SELECT m.id FROM memories AS m LEFT JOIN passages AS p ON p.space = m.space AND p.row = m.row "
        "GROUP BY m.space, m.row HAVING m.embedded <> (count(p.place) > 0) OR count(p.place) <> "
        "coalesce(max(p.siblings), 0) OR coalesce(max(p.place), -1) <> count(p.place) - 1 "
        "OR coalesce(min(p.siblings), 0) <> coalesce(max(p.siblings), 0)"
    )
    assert select(wrong) == []
    kept = (
        "SELECT m.id FROM memories AS m LEFT JOIN token_vectors AS v ON v.space = m.space AND v.row = m.row "
        "GROUP BY m.space, m.row HAVING coalesce(m.token_passages, 0) <> count(v.place) "
        "OR coalesce(max(v.place), -1) <> count(v.place) - 1 OR m.token_passages IS NOT NULL AND NOT m.embedded"
    )
    assert select(kept) == []


def _check_usage(select: Select) -> None:
    counted = (
        f"SELECT space, sum(memories)::bigint, sum(bytes)::bigint FROM ("
        f"SELECT space, count(*) AS memories, sum({MEMORY_BYTES}) AS bytes FROM memories GROUP BY space "
        f"UNION ALL SELECT space, 0, sum({FACT_BYTES}) FROM facts WHERE origin = 'given' GROUP BY space "
        "UNION ALL SELECT space, 0, sum(octet_length(before)) FROM events WHERE before IS NOT NULL GROUP BY space"
        ") AS held GROUP BY space"
    )
    held = "SELECT space, memories, bytes FROM space_usage WHERE memories <> 0 OR bytes <> 0"
    assert sorted(select(held)) == sorted(each for each in select(counted) if any(each[1:]))
