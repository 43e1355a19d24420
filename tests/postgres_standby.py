"""A primary and a standby that confirms every commit, so that what is acknowledged is on both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from postgres_server import PostgresServer, waited_for


@contextmanager
def primary_and_standby(options: Sequence[str] = ()) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Servers that may be killed at any moment. A standby that is promoted waits for no other."""
    import psycopg

    with ExitStack() as stack:
        primary = PostgresServer(durable=True, options=options)
        stack.callback(primary.remove)
        standby = PostgresServer(durable=True, options=options, primary=primary)
        stack.callback(standby.remove)
        with psycopg.connect(primary.dsn, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
            confirms = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
            assert waited_for(lambda: db.execute(confirms).fetchone() is not None)
        yield primary, standby


def both(primary: PostgresServer, standby: PostgresServer) -> str:
    """The address by which clients find the one that takes writes."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
