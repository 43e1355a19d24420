"""Puts right what checks of a store have found, as far as it can be made from the memories."""

from __future__ import annotations

from psycopg import sql as quoting

from nacre.analysis.names import fold, predicate_words
from nacre.storage.postgres import facts, further_vectors, rebuilding, schema, server_checks, space_usage, table_checks
from nacre.storage.postgres.connection import Connections, fetch, run, run_many
from nacre.storage.postgres.counters import bump_revision
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.table_checks import COUNTERS, DANGLING, NAMELESS, NUMBERS, ONE_SIDED, REFERENCES, TIMEOUT_MS
from nacre.storage.postgres.vector_graph import GraphBuilder

_FACTS = 1_000  # that are indexed at once


def rebuild_words(connections: Connections) -> None:
    rebuilding.rebuild(connections)


def recount(connections: Connections) -> None:
    connections.write_alone(_recount)


def _recount(db: Db) -> None:
    space_usage.recount(db)
    run(
        db,
        "UPDATE counters SET value = (SELECT coalesce(sum(bytes), 0) FROM receipts) WHERE name = 'log_bytes'",
    )


# ---------------------------------------------------------------- rows and numbers


def clear_dangling(connections: Connections) -> None:
    connections.write_alone(_clear_dangling)


def _clear_dangling(db: Db) -> None:
    run(
        db,
        "INSERT INTO near_duplicates (space, row, other, apart) SELECT space, other, row, apart FROM near_duplicates "
        "ON CONFLICT (space, row, other) DO UPDATE SET apart = true WHERE excluded.apart",
    )
    for table, space, row in REFERENCES:
        run(db, f"DELETE FROM {table} AS t WHERE {DANGLING.format(space, row)}")
    run(db, f"DELETE FROM near_duplicates AS t WHERE {ONE_SIDED}")
    run(db, f"DELETE FROM entities AS t WHERE {NAMELESS}")
    for name, taken in NUMBERS.items():
        run(db, f"SELECT setval(%s::regclass, greatest(last_value, ({taken}), 1)) FROM {name}", (name,))
    for name, taken in COUNTERS.items():
        run(db, f"UPDATE counters SET value = greatest(value, ({taken})) WHERE name = %s", (name,))
    bump_revision(db)


def drop_odd_vectors(connections: Connections) -> None:
    odd = table_checks.odd_vectors(connections)
    connections.write_alone(_drop_vectors, odd)


def _drop_vectors(db: Db, keys: list[tuple[str, int]]) -> None:
    run_many(db, "DELETE FROM passages WHERE space = %s AND row = %s", keys)
    run_many(db, "DELETE FROM token_vectors WHERE space = %s AND row = %s", keys)
    sql = "UPDATE memories SET embedded = false, token_passages = NULL WHERE space = %s AND row = %s"
    run_many(db, sql, keys)
    further_vectors.drop_odd(db)
    bump_revision(db)


# ---------------------------------------------------------------- facts


def index_facts(connections: Connections) -> None:
    connections.write_alone(_index_facts)


def _index_facts(db: Db) -> None:
    run(db, "DELETE FROM relation_words")
    after: tuple[str, int] = ("", -1)
    sql = (
        "SELECT space, fact, subject, predicate, object FROM facts WHERE (space, fact) > (%s, %s) "
        "ORDER BY space, fact LIMIT %s"
    )
    update = (
        "UPDATE facts SET subject_key = %s, predicate_key = %s, object_key = %s WHERE space = %s AND fact = %s "
        "AND (subject_key, predicate_key, object_key) <> (%s, %s, %s)"
    )
    while batch := fetch(db, sql, (*after, _FACTS)):
        several = []
        for space, number, subject, predicate, object_ in batch:
            keys = (fold(subject), predicate_words(predicate), fold(object_))
            several.append((*keys, space, number, *keys))
        run_many(db, update, several)
        after = batch[-1][0], batch[-1][1]
    live = fetch(
        db,
        "SELECT DISTINCT f.space, f.row FROM facts AS f JOIN memories AS m "
        "ON m.space = f.space AND m.row = f.row AND m.deleted_us IS NULL",
    )
    for start in range(0, len(live), _FACTS):
        facts.restored(db, live[start : start + _FACTS])
    run(db, "DELETE FROM relation_counts")
    run(db, "INSERT INTO relation_counts SELECT space, count(*) FROM facts WHERE relation GROUP BY space")
    bump_revision(db)


# ---------------------------------------------------------------- indexes


def make_indexes(connections: Connections) -> None:
    """Make what is missing, and what was left unfinished anew, while others write."""
    with connections.snapshot() as db:
        invalid, missing = server_checks.invalid_indexes(db), server_checks.missing_indexes(db)
    made = list(missing.values())
    with connections.outside(TIMEOUT_MS) as db:  # which may have no settings: a pooler gives each command a session
        for name in invalid:
            db.execute(quoting.SQL("DROP INDEX CONCURRENTLY {}").format(connections.qualified(name)))
            made += [schema.INDEXES[name]] if name in schema.INDEXES else []
        within = quoting.Identifier(connections.schema).as_string(None)
        for each in made:
            begin, _, table = each.partition(" ON ")
            db.execute(f"{begin.replace('INDEX', 'INDEX CONCURRENTLY', 1)} ON {within}.{table}")
    GraphBuilder(connections).build()
