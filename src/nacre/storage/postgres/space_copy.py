"""Makes the rows of a space on one server equal to those on another one, table by table.

Both sides count and hash their rows in buckets. Only rows of buckets that differ are looked at, and only those that
differ are deleted and copied, in the binary format of COPY. So nothing has to be remembered between two runs: another
run finds what is left to do, and a run that finds nothing has compared everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from nacre.storage.postgres.connection import fetch, run
from nacre.storage.postgres.schema import Db

Key: TypeAlias = tuple[Any, ...]

_BUCKET_NUMBERS = 65_536  # of tables that are numbered; nodes take every 256th of them
_BUCKETS = 256  # of the others
_BATCH_BUCKETS = 16  # that are written in one transaction, where rows are numbered

# Tables with rows of a space, and the number that orders them, where there is one. Rows that others refer to come
# first. `space_usage` is counted by triggers, and receipts are numbered by each node itself (moved_log.py).
TABLES: dict[str, str | None] = {
    "memories": "row",
    "passages": "row",
    "token_vectors": "row",
    "further_passages": "row",
    "further_pending": "row",
    "tokens": "row",
    "usage": "row",
    "displaced": "row",
    "near_duplicates": "row",
    "updates": "older",
    "sketches": None,
    "events": "seq",
    "changes": None,
    "facts": "fact",
    "relation_words": None,
    "relation_counts": None,
    "entities": "entity",
    "entity_names": None,
    "links": "entity",
    "lenses": None,
    "vocabulary": None,
    "postings": None,
    "corpus": None,
    "session_writes": None,
}


_OWN = (("passages", "beside_graph"), ("further_passages", "beside_graph"))  # tells what the graph of one server has


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    number: str | None  # the column that orders its rows
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]  # the columns of the primary key without the space

    @property
    def bucket(self) -> str:
        if self.number is not None:
            return f"t.{self.number} / {_BUCKET_NUMBERS}"
        return f"hashtextextended(t.{self.key[0]}::text, 0) & {_BUCKETS - 1}" if self.key else "0::bigint"

    @property
    def key_types(self) -> list[str]:
        return [self.types[self.columns.index(column)] for column in self.key]

    @property
    def keys(self) -> str:
        return ", ".join(f"t.{column}" for column in self.key)

    def selected(self, store_id: str) -> str:
        """Its columns as they are copied."""
        return ", ".join(self._value(column, store_id) for column in self.columns)

    def hashed(self, store_id: str) -> str:
        """A number that differs if any value of a row does."""
        values = (
            f"halfvec_send(t.{column})" if kind == "halfvec" else self._value(column, store_id)
            for column, kind in zip(self.columns, self.types, strict=True)
        )
        return f"hashtextextended(ROW({', '.join(values)})::text, 0)"

    def _value(self, column: str, store_id: str) -> str:
        """An event that a store numbered itself gets the name that it has in other stores (`merging.event_uid`)."""
        if (self.name, column) == ("events", "uid"):
            return f"coalesce(t.uid, '{store_id}-' || t.seq || '-' || round(t.at_us::numeric / 1000000, 6))"
        return f"t.{column}"


def table_of(db: Db, name: str) -> Table:
    columns = (
        "SELECT a.attname, t.typname FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid "
        "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
    key = (
        "SELECT a.attname FROM pg_index AS i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) "
        "JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum "
        "WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY k.place"
    )
    names, types = zip(*(each for each in fetch(db, columns, (name,)) if (name, each[0]) not in _OWN), strict=True)
    keyed = tuple(column for (column,) in fetch(db, key, (name,)) if column != "space")
    return Table(name, TABLES[name], names, types, keyed)


class Side(NamedTuple):
    """One of the two servers. `carry_out` gives a function a connection, and commits what it has written, if any."""

    store_id: str
    carry_out: Callable[[Callable[[Db], Any]], Any]


class Synced(NamedTuple):
    """What one pass over a table has found."""

    changed: int  # rows that were deleted or copied
    compared: int  # rows of the source, all of which the target has now


def sync(source: Side, target: Side, table: Table, space: str) -> Synced:
    """Give the target the rows of the source. Reads of the source see one moment, or nobody writes there."""
    wanted = source.carry_out(partial(_buckets, table, source.store_id, space))
    found = target.carry_out(partial(_buckets, table, target.store_id, space))
    rows = sum(count for count, _ in wanted.values())
    differing = sorted(bucket for bucket in {*wanted, *found} if wanted.get(bucket) != found.get(bucket))
    changed = 0
    whole: list[int] = []  # buckets of which the target has nothing
    single: dict[int, list[Key]] = {}  # by bucket, rows that it lacks
    for several in _batches(table, differing):  # before anything is inserted: what is unique may have another row now
        known = [bucket for bucket in several if bucket in found]
        ours = source.carry_out(partial(_rows, table, source.store_id, space, known)) if known else {}
        theirs = target.carry_out(partial(_rows, table, target.store_id, space, known)) if known else {}
        wrong = [key for key, (_, digest) in theirs.items() if ours.get(key, (0, None))[1] != digest]
        if wrong:
            changed += target.carry_out(partial(_delete, table, space, wrong))
        whole += [bucket for bucket in several if bucket not in found]
        for key, (bucket, digest) in ours.items():
            if theirs.get(key, (0, None))[1] != digest:
                single.setdefault(bucket, []).append(key)
    for several in _batches(table, sorted({*whole, *single})):
        chosen = [bucket for bucket in several if bucket not in found]
        keys = [key for bucket in several for key in single.get(bucket, ())]
        changed += source.carry_out(partial(_copy_over, target, table, source.store_id, space, chosen, keys))
    return Synced(changed, rows)


# ---------------------------------------------------------------- inside: what a connection does


def _buckets(table: Table, store_id: str, space: str, db: Db) -> dict[int, tuple[int, int]]:
    """By bucket, how many rows it has, and the sum of their hashes."""
    sql = (
        f"SELECT {table.bucket}, count(*), sum({table.hashed(store_id)}::numeric) FROM {table.name} AS t "
        "WHERE t.space = %s GROUP BY 1"
    )
    return {bucket: (count, int(total)) for bucket, count, total in fetch(db, sql, (space,))}


def _rows(table: Table, store_id: str, space: str, buckets: Sequence[int], db: Db) -> dict[Key, tuple[int, int]]:
    """By key of each row of these buckets, its bucket and its hash."""
    keys = f"{table.keys}, " if table.key else ""
    sql = (
        f"SELECT {keys}{table.bucket}, {table.hashed(store_id)} FROM {table.name} AS t "
        f"WHERE t.space = %s AND {_in_buckets(table, buckets)}"
    )
    return {tuple(key): (bucket, digest) for *key, bucket, digest in fetch(db, sql, (space,))}


def _in_buckets(table: Table, buckets: Sequence[int]) -> str:
    """A range first, where there is an index for it."""
    inside = f"{table.bucket} = ANY('{{{','.join(map(str, buckets))}}}'::bigint[])"
    if table.number is None:
        return inside
    low, high = min(buckets) * _BUCKET_NUMBERS, (max(buckets) + 1) * _BUCKET_NUMBERS
    return f"t.{table.number} >= {low} AND t.{table.number} < {high} AND {inside}"


def _is_one_of(table: Table) -> str:
    if not table.key:
        return "true"
    given = ", ".join(f"%s::{kind}[]" for kind in table.key_types)
    return f"({table.keys}) IN (SELECT * FROM unnest({given}))"


def _columns(table: Table, keys: Sequence[Key]) -> list[list[Any]]:
    return [[key[place] for key in keys] for place in range(len(table.key))]


def _delete(table: Table, space: str, keys: Sequence[Key], db: Db) -> int:
    sql = f"DELETE FROM {table.name} AS t WHERE t.space = %s AND {_is_one_of(table)}"
    return run(db, sql, (space, *_columns(table, keys)))


def _copy_over(
    target: Side, table: Table, store_id: str, space: str, whole: Sequence[int], single: Sequence[Key], source: Db
) -> int:
    copied: int = target.carry_out(partial(_copy, table, store_id, space, whole, single, source))
    return copied


def _copy(
    table: Table, store_id: str, space: str, whole: Sequence[int], single: Sequence[Key], source: Db, target: Db
) -> int:
    """Whole buckets and single rows, as the source has them."""
    copied = 0
    choices: list[tuple[str, tuple[Any, ...]]] = [(_in_buckets(table, whole), ())] if whole else []
    choices += [(_is_one_of(table), tuple(_columns(table, single)))] if single else []
    for condition, parameters in choices:
        reading = (
            f"COPY (SELECT {table.selected(store_id)} FROM {table.name} AS t WHERE t.space = %s AND {condition}) "
            "TO STDOUT (FORMAT BINARY)"
        )
        writing = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN (FORMAT BINARY)"
        with source.cursor() as reader, target.cursor() as writer:
            with reader.copy(reading, (space, *parameters)) as out, writer.copy(writing) as into:
                for block in out:
                    into.write(block)
            copied += writer.rowcount
    return copied


def _batches(table: Table, buckets: Sequence[int]) -> Iterator[list[int]]:
    rest = iter(buckets)
    while batch := list(islice(rest, _BATCH_BUCKETS if table.number is not None else _BUCKETS)):
        yield batch
