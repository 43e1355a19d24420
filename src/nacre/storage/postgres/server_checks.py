"""Is the server set up and looked after as a store needs it?

What only administrators may see is left out for other users: then there is nothing to be said about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg

from nacre.analysis.wording import counted
from nacre.storage.postgres import row_security, schema, vector_graph
from nacre.storage.postgres.connection import Connections, fetch, value
from nacre.storage.postgres.schema import Db
from nacre.storage.postgres.table_checks import TIMEOUT_MS, fine, named, note, problem
from nacre.types.health import Finding
from nacre.types.location import CONNECTIONS_MAX

OLDEST_TESTED, NEWEST_TESTED = 17, 18
_OLD_TRANSACTION = timedelta(hours=1)
_CLOCKS_APART = timedelta(minutes=1)
_CLOCK_AHEAD = timedelta(days=1)
_OLD_XIDS, _TOO_OLD_XIDS = 500_000_000, 1_500_000_000  # of two thousand millions
_KEPT_WAL_BYTES = 1 << 30
_DEAD_MIN, _DEAD_SHARE = 100_000, 0.4  # rows of a table

# Settings with which a server may lose what it has acknowledged, or damage it, when it crashes.
_UNSAFE = {
    "fsync": "a crash of the machine may destroy the database",
    "full_page_writes": "a crash of the machine may damage pages",
    "synchronous_commit": "a crash may undo the last acknowledged writes",
}


def server(connections: Connections) -> Iterator[Finding]:
    """Settings that decide whether writes are durable and tables are cleaned."""
    with connections.snapshot(TIMEOUT_MS) as db:
        found = dict(
            fetch(
                db,
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)",
                ([*_UNSAFE, "data_checksums", "autovacuum"],),
            )
        )
        untended = [
            name
            for (name,) in fetch(
                db,
                "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
                "AND 'autovacuum_enabled=false' = ANY(reloptions) ORDER BY relname",
            )
        ]
    notes = [
        note("server", f"{name} is off: {said}", f"turn {name} on, unless all of this can be made again")
        for name, said in _UNSAFE.items()
        if found[name] == "off"
    ]
    if found["data_checksums"] == "off":
        notes.append(
            note("server", "pages have no checksums: damage to a disk may go unnoticed", "stop it, `pg_checksums -e`")
        )
    if found["autovacuum"] == "off":
        notes.append(note("server", "autovacuum is off: tables grow, and searches get slower", "turn autovacuum on"))
    if untended:
        text = f"autovacuum is off for {named(untended)}: they grow, and searches get slower"
        notes.append(note("server", text, "ALTER TABLE … RESET (autovacuum_enabled)"))
    yield from notes or [fine("server", f"{connections.location}; writes are durable, pages have checksums")]


def versions(connections: Connections) -> Iterator[Finding]:
    with connections.snapshot(TIMEOUT_MS) as db:
        ((number, said),) = fetch(db, "SELECT current_setting('server_version_num')::int, version()")
        ((installed, available),) = fetch(
            db,
            "SELECT e.extversion, a.default_version FROM pg_extension AS e "
            "LEFT JOIN pg_available_extensions AS a ON a.name = e.extname WHERE e.extname = 'vector'",
        )
    major = number // 10_000
    text = f"schema {schema.VERSION}, {said.split(' on ')[0]}, pgvector {installed}, psycopg {psycopg.__version__}"
    if not OLDEST_TESTED <= major <= NEWEST_TESTED:
        yield note("versions", text, f"PostgreSQL {OLDEST_TESTED} and {NEWEST_TESTED} are tested")
    elif available is not None and available != installed:
        text = f"{text}; the server has pgvector {available}"
        yield note("versions", text, "run `ALTER EXTENSION vector UPDATE` as its owner")
    else:
        yield fine("versions", text)


def clock(connections: Connections, now: datetime) -> Iterator[Finding]:
    """The clocks of this process and of the server agree, and no change is of a time to come."""
    with connections.snapshot(TIMEOUT_MS) as db:
        ((there, newest),) = fetch(
            db,
            "SELECT clock_timestamp(), (SELECT max(at_us) FROM (SELECT at_us FROM events ORDER BY seq DESC LIMIT 100))",
        )
    here = datetime.now(UTC)
    last = None if newest is None else datetime.fromtimestamp(newest / 1e6, UTC)
    if abs(there - here) > _CLOCKS_APART:
        apart = f"the server has {there:%Y-%m-%d %H:%M:%S} UTC, and this machine {here:%H:%M:%S}"
        yield note("clock", apart, "let both follow a time server: of two changes the later wins")
    elif last is not None and last > now + _CLOCK_AHEAD:
        text = f"the last change is of {last:%Y-%m-%d %H:%M} UTC, which is later than now"
        yield note("clock", text, "check the clocks of the machines that write to the store")
    else:
        yield fine("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def rows_seen(connections: Connections) -> Iterator[Finding]:
    """Whether all spaces are seen by the user that checks."""
    with connections.snapshot(TIMEOUT_MS) as db:
        checked = db.checks_rows
        bound = value(db, "SELECT own_spaces()") if checked else None
        asked = value(db, f"SELECT nullif(current_setting('{row_security.SETTING}', true), '')")
    if bound is not None:
        text = f"row security shows this user {named(sorted(bound)) or 'nothing'}; other spaces are not checked"
        yield note("rows", text, "check as the owner" if asked is None else "check without naming spaces")
    else:
        yield fine("rows", "all spaces are seen")


# ---------------------------------------------------------------- who holds what back

_OLD = (
    "SELECT pid, coalesce(usename, ''), state, now() - xact_start FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
    "AND xact_start < now() - %s ORDER BY xact_start LIMIT 5"
)
_PREPARED = (
    "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND prepared < now() - %s ORDER BY prepared"
)
_SLOTS = (
    "SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) FROM pg_replication_slots "
    "WHERE NOT active AND restart_lsn IS NOT NULL AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > %s"
)


def transactions(connections: Connections) -> Iterator[Finding]:
    """What keeps VACUUM from freeing rows, and the age of the oldest transaction number."""
    found: list[Finding] = []
    with connections.snapshot(TIMEOUT_MS) as db:
        for pid, user, state, age in fetch(db, _OLD, (_OLD_TRANSACTION,)):
            text = f"process {pid} of {user or 'another user'} has been in a transaction for {age} ({state})"
            remedy = f"end it with `SELECT pg_terminate_backend({pid})`; see idle_in_transaction_session_timeout"
            found.append(note("transactions", f"{text}: nothing deleted since is freed", remedy))
        for (name,) in fetch(db, _PREPARED, (_OLD_TRANSACTION,)):
            text = f"the transaction {name!r} was prepared and not ended: nothing deleted since is freed"
            found.append(note("transactions", text, "COMMIT PREPARED or ROLLBACK PREPARED"))
        if not value(db, "SELECT pg_is_in_recovery()"):
            for name, behind in fetch(db, _SLOTS, (_KEPT_WAL_BYTES,)):
                text = f"replication slot {name} is not used and keeps {float(behind) / 1e9:,.1f} GB of the log"
                found.append(note("transactions", text, "start its replica, or `SELECT pg_drop_replication_slot(…)`"))
        age = int(value(db, "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()"))
    if age > _OLD_XIDS:
        text = f"the oldest transaction number is {age:,} behind; at 2,100,000,000 the server stops writing"
        remedy = "find what holds VACUUM back, then run `VACUUM FREEZE`"
        found.append((problem if age > _TOO_OLD_XIDS else note)("transactions", text, remedy))
    yield from found or [fine("transactions", "nothing holds VACUUM back")]


def connections_allowed(connections: Connections) -> Iterator[Finding]:
    """Whether one process of Nacre can open as many connections as it may."""
    sql = (
        "SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int "
        "- coalesce(current_setting('reserved_connections', true), '0')::int, "
        "(SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()), "
        "(SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user))"
    )
    with connections.snapshot(TIMEOUT_MS) as db:
        allowed = int(value(db, sql))
    if allowed < CONNECTIONS_MAX:
        text = f"the server allows this user {counted(allowed, 'connection')}, and a process may open {CONNECTIONS_MAX}"
        yield note("connections", text, "raise the limit, or set postgres_connections lower")
    else:
        yield fine("connections", f"{allowed:,} are allowed")


_DEAD = (
    "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() "
    "AND n_dead_tup > %s AND n_dead_tup > %s * (n_live_tup + n_dead_tup) ORDER BY n_dead_tup DESC"
)


def tables(connections: Connections) -> Iterator[Finding]:
    """How large the store is, and which tables have mostly dead rows."""
    with connections.snapshot(TIMEOUT_MS) as db:
        size = int(
            value(
                db,
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
                "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')",
            )
        )
        dead = [name for (name,) in fetch(db, _DEAD, (_DEAD_MIN, _DEAD_SHARE))]
    text = f"{size / 1e6:,.1f} MB"
    if dead:
        yield note("tables", f"{text}; dead rows fill {named(dead)}", "VACUUM them; is autovacuum held back?")
    else:
        yield fine("tables", text)


# ---------------------------------------------------------------- indexes


def missing_indexes(db: Db) -> dict[str, str]:
    """Indexes that a store has and this one lacks, by name, each with the statement that makes it."""
    present = {name for (name,) in fetch(db, "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")}
    return {name: statement for name, statement in schema.INDEXES.items() if name not in present}


def invalid_indexes(db: Db) -> list[str]:
    """Indexes that were not finished, as of a CREATE INDEX CONCURRENTLY that was interrupted. They serve nothing."""
    sql = (
        "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
        "WHERE c.relnamespace = current_schema()::regnamespace AND NOT (i.indisvalid AND i.indisready) "
        "AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS p WHERE p.index_relid = c.oid) ORDER BY 1"
    )
    return [name for (name,) in fetch(db, sql)]


def indexes(connections: Connections) -> Iterator[Finding]:
    with connections.snapshot(TIMEOUT_MS) as db:
        missing, invalid = list(missing_indexes(db)), invalid_indexes(db)
        lacks_graph = vector_graph.state(db) == "missing"
    if lacks_graph:
        remedy = "the owner's `nacre rebuild` builds it, and so does its next search"
        yield note("indexes", "no graph of the vectors: searches by meaning compare all of them", remedy)
    if missing:
        yield problem("indexes", f"indexes are missing: {named(missing)}", "`nacre doctor --fix` makes them")
    if invalid:
        text = f"indexes were not finished: {named(invalid)}"
        yield problem("indexes", text, "`nacre doctor --fix` makes them anew")
    if not missing and not invalid and not lacks_graph:
        yield fine("indexes", "all indexes are there and valid")
