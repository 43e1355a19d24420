"""Which memory updates which, as rows. A link counts as long as both memories are live."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from nacre.storage.postgres import change_log, counters
from nacre.storage.postgres.connection import fetch, hold_memories
from nacre.storage.postgres.rows import Key, columns_of, moment
from nacre.storage.postgres.schema import Db
from nacre.types.memory import Update
from nacre.types.search import Successor
from nacre.types.transfer import update_name

_GIVEN = "unnest(%s::text[], %s::text[], %s::text[]) AS given (newer, older, cue)"
_PAIR = (
    "JOIN memories AS n ON n.id = given.newer "
    "JOIN memories AS o ON o.id = given.older AND o.space = n.space AND o.row <> n.row"
)
_LINK = f"""
WITH pairs AS MATERIALIZED (
  SELECT n.space, o.row AS older, n.row AS newer, given.cue, n.id AS newer_id, o.id AS older_id
  FROM {_GIVEN} {_PAIR}
), linked AS (
  INSERT INTO updates (space, older, newer, cue) SELECT space, older, newer, cue FROM pairs
  ON CONFLICT (space, older, newer) DO NOTHING RETURNING space, older, newer
)
SELECT space, newer_id, older_id FROM linked JOIN pairs USING (space, older, newer)
"""
_UNLINK = f"""
WITH pairs AS MATERIALIZED (
  SELECT n.space, o.row AS older, n.row AS newer, n.id AS newer_id, o.id AS older_id FROM {_GIVEN} {_PAIR}
), unlinked AS (
  DELETE FROM updates AS u USING pairs AS p
  WHERE u.space = p.space AND u.older = p.older AND u.newer = p.newer RETURNING u.space, u.older, u.newer
)
SELECT space, newer_id, older_id FROM unlinked JOIN pairs USING (space, older, newer)
"""
_OF_MEMORIES = """
WITH asked AS MATERIALIZED (SELECT space, row FROM memories WHERE id = ANY(%s)), found AS (
  SELECT u.* FROM asked AS a JOIN updates AS u ON u.space = a.space AND u.newer = a.row
  UNION SELECT u.* FROM asked AS a JOIN updates AS u ON u.space = a.space AND u.older = a.row
)
SELECT n.id, o.id, u.cue FROM found AS u
JOIN memories AS n ON n.space = u.space AND n.row = u.newer AND n.deleted_us IS NULL
JOIN memories AS o ON o.space = u.space AND o.row = u.older AND o.deleted_us IS NULL
ORDER BY n.id, o.id
"""
_SUCCESSORS = """
SELECT u.space, u.older, n.id, coalesce(n.happened_us, n.created_us) AS since_us
FROM unnest(%s::text[], %s::bigint[]) AS given (space, row)
JOIN updates AS u ON u.space = given.space AND u.older = given.row
JOIN memories AS n ON n.space = u.space AND n.row = u.newer AND n.deleted_us IS NULL
ORDER BY since_us DESC, n.id
"""


def link(db: Db, new: Iterable[Update]) -> list[tuple[str, Update]]:
    """Add links between memories of one space. Returns those that are new, with their spaces, in the given order.

    Links to memories that do not exist are skipped.
    """
    return _change(db, _LINK, new)


def link_later(db: Db, new: Sequence[Update]) -> None:
    """Add links between memories that were written before. Bumps the revision."""
    hold_memories(db, _named(new))
    _note(db, link(db, new), gone=False)
    counters.bump_revision(db)


def unlink(db: Db, pairs: Sequence[Update]) -> int:
    """Delete links. Returns how many there were. Bumps the revision."""
    hold_memories(db, _named(pairs))
    unlinked = _change(db, _UNLINK, pairs)
    _note(db, unlinked, gone=True)
    counters.bump_revision(db)
    return len(unlinked)


def of_memories(db: Db, memory_ids: Sequence[str]) -> list[Update]:
    """All links from or to these memories, between live ones."""
    return [Update(*found) for found in fetch(db, _OF_MEMORIES, (list(memory_ids),))]


def successors(db: Db, keys: Sequence[Key]) -> Mapping[Key, tuple[Successor, ...]]:
    """By (space, row), the live memories that update it, the latest first."""
    found: defaultdict[Key, list[Successor]] = defaultdict(list)
    for space, row, newer, since_us in fetch(db, _SUCCESSORS, columns_of(keys)):
        found[space, row].append(Successor(newer, moment(since_us)))
    return {key: tuple(several) for key, several in found.items()}


def _change(db: Db, sql: str, pairs: Iterable[Update]) -> list[tuple[str, Update]]:
    """Link or unlink each pair once. Returns those that were changed, with their spaces, in the given order."""
    given: dict[tuple[str, str], Update] = {}
    for each in pairs:
        given.setdefault((each.newer, each.older), each)
    if not given:
        return []
    newer, older, cues = map(list, zip(*given.values(), strict=True))
    space_of = {(newer_id, older_id): space for space, newer_id, older_id in fetch(db, sql, (newer, older, cues))}
    return [(space_of[pair], each) for pair, each in given.items() if pair in space_of]


def _named(pairs: Sequence[Update]) -> list[str]:
    return [memory_id for each in pairs for memory_id in (each.newer, each.older)]


def _note(db: Db, changed: Sequence[tuple[str, Update]], *, gone: bool) -> None:
    for space, several in groupby(changed, key=lambda each: each[0]):
        change_log.note(db, "update", space, [update_name(each.newer, each.older) for _, each in several], gone=gone)
