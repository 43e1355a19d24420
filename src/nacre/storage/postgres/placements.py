"""Which nodes make the store, and which spaces this one answers for.

A store that is alone has no rows here, and answers for every space. On a node, a space has a row once it was placed
there, for good: what has moved away leaves the name of the node that it moved to. `directory` is kept by node 0 alone.
It decides where a new space goes, so that two processes never place one on two nodes; the rows of `placements` decide
who answers for it. Whoever writes to a space reads its row under the lock of the space (`connection.hold`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nacre.errors import InvalidInput
from nacre.storage.postgres import failures
from nacre.storage.postgres.connection import fetch, hold_unchecked, run, run_many, value
from nacre.storage.postgres.schema import HELD_BY_SPACE, Db
from nacre.types.nodes import Member, Placed

# Rows of spaces that this node does not answer for: they are on their way here, or were moved away and not deleted yet.
NODES_MAX = 256
SEQUENCES = ("memory_rows", "fact_numbers", "entity_numbers")
HIDDEN = "{}.space IN (SELECT p.space FROM placements AS p WHERE p.state <> 'here')"
_KNOWN_SPACES = " UNION ".join(f"SELECT space FROM {table}" for table in HELD_BY_SPACE)


# ---------------------------------------------------------------- the nodes


def members(db: Db) -> tuple[Member, ...]:
    return tuple(Member(*each) for each in fetch(db, "SELECT number, store_id, address FROM nodes ORDER BY number"))


def join(db: Db, every: Sequence[Member], above: int) -> None:
    """Be one of these nodes. The caller is the only one that writes.

    What a store has when it joins is its own: all its spaces are placed here. Only node 0 may have any. From now on it
    gives rows, facts and entities numbers beyond `above` that no other node gives: they keep them when they move.
    """
    known = set(members(db))
    own_id = value(db, "SELECT value FROM meta WHERE key = 'store_id'")
    (own,) = (each for each in every if each.store_id == own_id)
    if not known and own.number == 0:
        run(db, f"INSERT INTO placements (space, state) SELECT space, 'here' FROM ({_KNOWN_SPACES}) AS s")
        run(db, "INSERT INTO directory (space, store_id) SELECT space, %s FROM placements", (own_id,))
    elif not known and not is_empty(db):
        raise InvalidInput("address", f"{own.address} has memories already; add an empty store, and import them")
    run_many(db, "INSERT INTO nodes VALUES (%s, %s, %s)", (each for each in every if each not in known))
    if not known:
        for sequence in SEQUENCES:
            first = (max(above, _last(db, sequence)) // NODES_MAX + 1) * NODES_MAX + own.number
            run(db, f"ALTER SEQUENCE {sequence} INCREMENT BY {NODES_MAX:d} RESTART WITH {first:d}")


def is_empty(db: Db) -> bool:
    return not value(db, f"SELECT EXISTS ({_KNOWN_SPACES})")


# ---------------------------------------------------------------- spaces of this node


def placements(db: Db, spaces: Sequence[str]) -> dict[str, Placed]:
    """What this node knows of these spaces. One that was never placed here is missing."""
    sql = "SELECT space, state, other FROM placements WHERE space = ANY(%s)"
    return {space: Placed(state, other) for space, state, other in fetch(db, sql, (list(spaces),))}


def in_state(db: Db, state: str) -> tuple[str, ...]:
    return tuple(space for (space,) in fetch(db, "SELECT space FROM placements WHERE state = %s ORDER BY 1", (state,)))


def any_hidden(db: Db) -> bool:
    return bool(value(db, "SELECT EXISTS (SELECT 1 FROM placements WHERE state <> 'here')"))


def check_here(db: Db, spaces: Sequence[str], location: str) -> None:
    """Raise SpaceMoved unless this node answers for all of them, as of the snapshot of the transaction."""
    sql = "SELECT space FROM placements WHERE space = ANY(%s) AND state = 'here'"
    missing = set(spaces).difference(space for (space,) in fetch(db, sql, (list(spaces),)))
    if missing:
        raise failures.moved(sorted(missing), location)


def settle(db: Db, spaces: Sequence[str]) -> None:
    """Answer for spaces that the directory has given to this node, unless they were here before."""
    run(
        db,
        "INSERT INTO placements (space, state) SELECT space, 'here' FROM unnest(%s::text[]) AS given (space) "
        "ON CONFLICT (space) DO NOTHING",
        (list(spaces),),
    )


def promote(db: Db, space: str, source: str) -> None:
    """Answer for a space that has arrived. Its source has given it away, for good."""
    hold_unchecked(db, [space])
    sql = "UPDATE placements SET state = 'here', other = '' WHERE space = %s AND state = 'arriving' AND other = %s"
    run(db, sql, (space, source))


# ---------------------------------------------------------------- the directory of node 0


def directory(db: Db, spaces: Sequence[str]) -> dict[str, str]:
    """By space, the id of the store that it was last known to be on."""
    return dict(fetch(db, "SELECT space, store_id FROM directory WHERE space = ANY(%s)", (list(spaces),)))


def assign(db: Db, chosen: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Place new spaces on nodes, unless they are placed already. Returns where they are."""
    run_many(db, "INSERT INTO directory VALUES (%s, %s) ON CONFLICT (space) DO NOTHING", sorted(chosen))
    return directory(db, [space for space, _ in chosen])


def reassign(db: Db, space: str, store_id: str) -> None:
    run(
        db,
        "INSERT INTO directory VALUES (%s, %s) ON CONFLICT (space) DO UPDATE SET store_id = excluded.store_id",
        (space, store_id),
    )


# ---------------------------------------------------------------- numbers that nodes have in common


def last_number(db: Db) -> int:
    """The greatest number of a row, fact or entity that may be taken."""
    return max(_last(db, each) for each in SEQUENCES)


def advance_sequence(db: Db, sequence: str, to: int) -> None:
    """Give later rows higher numbers. Others may take numbers at the same time."""
    last = int(value(db, "SELECT nextval(%s::regclass)", (sequence,)))
    step = int(value(db, "SELECT seqincrement FROM pg_sequence WHERE seqrelid = %s::regclass", (sequence,)))
    if last < to:
        value(
            db,
            "SELECT max(nextval(%s::regclass)) FROM generate_series(1, %s)",
            (sequence, (to - last + step - 1) // step),
        )


def _last(db: Db, sequence: str) -> int:
    return int(value(db, f"SELECT last_value FROM {sequence}"))


# ---------------------------------------------------------------- memories by id


def spaces_of(db: Db, ids: Sequence[str]) -> dict[str, str]:
    """By id, the spaces of memories, also where another node answers for them: a memory never leaves its space."""
    return dict(fetch(db, "SELECT id, space FROM memories WHERE id = ANY(%s)", (list(ids),)))


def spaces_of_facts(db: Db, ids: Sequence[str]) -> dict[str, str]:
    return dict(fetch(db, "SELECT id, space FROM facts WHERE id = ANY(%s)", (list(ids),)))
