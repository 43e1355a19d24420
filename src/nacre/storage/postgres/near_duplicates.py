"""Near-duplicates: found when a memory is written, and linked, never merged.

Each text has a sketch, a few hashes of its shingles. Texts that share enough hashes are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from nacre.analysis import near_duplicates
from nacre.storage.postgres import change_log, counters
from nacre.storage.postgres.connection import copy, fetch, hold_memories, run, run_many
from nacre.storage.postgres.halfvec import received
from nacre.storage.postgres.rows import WORD_COLUMNS, Key, tokens
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.writes import live_keys
from nacre.storage.vectors import cosines, unpack
from nacre.types.memory import Entry

# Texts made from one template share hashes with thousands of others. Only the newest few are compared.
_SHARING_MAX = 8
_COMPARED_MAX = 4

# Live memories that share a hash with one that is written: earlier ones, up to a row, and later ones if asked for.
_SHARING = (
    "SELECT given.space, given.row, near.row FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) "
    "AS given (space, row, hash) CROSS JOIN LATERAL ("
    "SELECT s.row FROM sketches AS s WHERE s.space = given.space AND s.hash = given.hash "
    "AND (s.row < least(given.row, %s::bigint) OR (%s AND s.row > given.row)) "
    "AND EXISTS (SELECT 1 FROM memories AS m WHERE m.space = s.space AND m.row = s.row AND m.deleted_us IS NULL) "
    "ORDER BY s.row DESC LIMIT %s) AS near"
)
_AFTER_ALL = 2**63 - 1


def sketch(db: Db, sketched: Iterable[tuple[str, int, tuple[int, ...]]]) -> None:
    """Write the hashes of texts that have none yet, given as (space, row, hashes)."""
    listed = ((space, key, row) for space, row, hashes in sketched for key in hashes)
    copy(db, "sketches (space, hash, row)", ("text", "int8", "int8"), listed)


def link(db: Db, texts: Sequence[tuple[int, Entry]], *, later: bool = False, below: int | None = None) -> None:
    """Link texts, given with their rows, with near-duplicates in their space.

    Earlier rows are compared, at most up to the row `below`; with `later`, later ones as well. The rows themselves are
    written already.
    """
    sketch(db, ((entry.memory.space, row, entry.sketch) for row, entry in texts))
    asked = [(entry.memory.space, row, key) for row, entry in texts for key in entry.sketch]
    if not asked or below == 0:
        return
    given = tuple(map(list, zip(*asked, strict=True)))
    until = _AFTER_ALL if below is None else below + 1
    sharing: defaultdict[Key, Counter[int]] = defaultdict(Counter)
    for space, row, other in fetch(db, _SHARING, (*given, until, later, _SHARING_MAX)):
        sharing[space, row][other] += 1
    alike = [(row, entry, _alike(entry, sharing[entry.memory.space, row])) for row, entry in texts]
    compared = {(entry.memory.space, other) for _, entry, others in alike for other in others}
    if not compared:
        return
    stored = _texts(db, compared)
    pairs = [
        (entry.memory.space, one, another)
        for row, entry, others in alike
        for other in others
        if (text := stored.get((entry.memory.space, other))) is not None and _same(db, row, entry, other, text)
        for one, another in ((row, other), (other, row))
    ]
    run_many(db, "INSERT INTO near_duplicates VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", pairs)


def rewrite(db: Db, row: int, entry: Entry, *, below: int | None = None) -> None:
    """Find the near-duplicates of a memory whose text changed."""
    key = entry.memory.space, row
    unlink(db, key)
    run(db, "DELETE FROM sketches WHERE space = %s AND row = %s", key)
    link(db, [(row, entry)], later=True, below=below)


def unlink(db: Db, key: Key) -> None:
    """Remove the links of a memory."""
    space, row = key
    sql = (
        "DELETE FROM near_duplicates WHERE space = %s AND (row = %s OR (other = %s AND row IN "
        "(SELECT other FROM near_duplicates WHERE space = %s AND row = %s)))"
    )
    run(db, sql, (space, row, row, space, row))


def _alike(entry: Entry, sharing: Counter[int]) -> list[int]:
    """The few rows that share most hashes with a text; of equals the newest."""
    enough = min(near_duplicates.SHARED_MIN, len(entry.sketch))
    most = sorted((-shared, -row) for row, shared in sharing.items() if shared >= enough)
    return [-row for _, row in most[:_COMPARED_MAX]]


def _texts(db: Db, keys: Iterable[Key]) -> dict[Key, str]:
    """Texts of live memories."""
    sql = (
        "SELECT m.space, m.row, m.text FROM unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "JOIN memories AS m ON m.space = given.space AND m.row = given.row WHERE m.deleted_us IS NULL"
    )
    given = tuple(map(list, zip(*keys, strict=True)))
    return {(space, row): text for space, row, text in fetch(db, sql, given)}


def _same(db: Db, row: int, entry: Entry, other: int, other_text: str) -> bool:
    """Compares the texts first: that decides most pairs, and tokens and vectors need not be read."""
    verdict = near_duplicates.compare_words(entry.memory.text, other_text)
    if verdict is not None:
        return verdict
    space = entry.memory.space
    sql = f"SELECT {WORD_COLUMNS} FROM tokens AS t WHERE t.space = %s AND t.row = %s"
    (columns,) = fetch(db, sql, (space, other))
    return near_duplicates.similar_enough(entry.tokens, tokens(columns), _cosine(db, (space, row), (space, other)))


def _cosine(db: Db, one: Key, other: Key) -> float | None:
    """The cosine of two texts of one passage each; None if either has another number of passages."""
    sql = "SELECT vector FROM passages WHERE space = %s AND row = %s LIMIT 2"
    sent = [[received(each) for (each,) in fetch(db, sql, key)] for key in (one, other)]
    if any(len(each) != 1 for each in sent):
        return None
    return float(cosines(unpack(sent[0]), unpack(sent[1])[0])[0])


def separate(db: Db, memory_id: str) -> int:
    """Stop treating a live memory as a near-duplicate of others. Returns how many there were. Bumps the revision."""
    hold_memories(db, [memory_id])
    space, row = live_keys(db, [memory_id])[memory_id]
    sql = (
        "UPDATE near_duplicates SET apart = true WHERE space = %s AND NOT apart AND (row = %s OR (other = %s "
        "AND row IN (SELECT other FROM near_duplicates WHERE space = %s AND row = %s))) RETURNING row = %s"
    )
    separated = sum(int(own) for (own,) in fetch(db, sql, (space, row, row, space, row, row)))
    if separated:
        change_log.note(db, "apart", space, [memory_id])
    counters.bump_revision(db)
    return separated


def by_memory(db: Db, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By id of a memory, the live memories that are linked with it, sorted."""
    sql = (
        "SELECT m.id, o.id FROM memories AS m JOIN near_duplicates AS s ON s.space = m.space AND s.row = m.row "
        "AND NOT s.apart JOIN memories AS o ON o.space = s.space AND o.row = s.other AND o.deleted_us IS NULL "
        "WHERE m.id = ANY(%s) ORDER BY o.id"
    )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for memory_id, other in fetch(db, sql, (list(ids),)):
        found[memory_id].append(other)
    return {memory_id: tuple(others) for memory_id, others in found.items()}
