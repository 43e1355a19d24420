"""Every error of PostgreSQL that a store may meet becomes an error of Nacre that says what to do, and no password."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NoReturn

import psycopg
import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import (
    InvalidInput,
    NacreError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)
from nacre.storage.postgres import PostgresStore, connection, failures, schema
from nacre.types.location import Address, address
from postgres_server import PostgresServer, Schemas, free_port, fresh_schemas, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as given:
        yield given


@pytest.fixture
def name(schemas: Schemas) -> str:
    """A schema with a store that has one memory."""
    given = schemas.new()
    with opened(schemas, given) as memory:
        memory.remember("a heron stood by the boat")
    return given


def opened(schemas: Schemas, name: str, **options: object) -> nacre.Nacre:
    return nacre.open(schemas.dsn, schema=name, embedder=Hashing(), **options)  # type: ignore[arg-type]


def refuse(schemas: Schemas, name: str, body: str) -> None:
    """Let the server do this whenever a memory is written."""
    schemas.execute(
        f"CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN new; END $$; "
        "CREATE TRIGGER refuses BEFORE INSERT ON memories FOR EACH STATEMENT EXECUTE FUNCTION refused()",
        name,
    )


# ---------------------------------------------------------------- errors of statements

CODES = [
    ("53100", StoreFull, "no more room on its disk"),
    ("53200", StoreUnavailable, "too little memory"),
    ("53400", StoreUnavailable, "another limit"),
    ("53300", StoreBusy, "raise max_connections"),
    ("55P03", StoreBusy, "raise busy_timeout_ms"),
    ("57014", StoreBusy, "nothing was written"),
    ("40001", StoreBusy, "nothing was written; try again"),
    ("40P01", StoreBusy, "nothing was written; try again"),
    ("40000", StoreBusy, "nothing was written; try again"),
    ("25006", StoreUnavailable, "target_session_attrs=read-write"),
    ("42501", StoreUnavailable, "name a user with the rights"),
    ("42P01", StoreUnavailable, "open the store again"),
    ("42704", StoreUnavailable, "extension vector"),
    ("58030", StoreUnavailable, "see the log of the server"),
    ("58P01", StoreUnavailable, "see the log of the server"),
    ("XX001", StoreCorrupt, "restore the last backup"),
    ("XX002", StoreCorrupt, "restore the last backup"),
    ("22021", InvalidInput, "change or shorten it"),
    ("22P05", InvalidInput, "change or shorten it"),
    ("22003", InvalidInput, "change or shorten it"),
    ("54000", InvalidInput, "change or shorten it"),
    ("XX000", StoreError, "InternalError"),
    ("P0001", StoreError, "RaiseException"),
]


@pytest.mark.parametrize(("code", "kind", "remedy"), CODES)
def test_an_error_of_a_statement_says_what_to_do(
    schemas: Schemas, name: str, code: str, kind: type[NacreError], remedy: str
) -> None:
    """The server raises it in the middle of a write, of which nothing is left."""
    refuse(schemas, name, f"RAISE EXCEPTION 'as it says itself' USING ERRCODE = '{code}'")
    with opened(schemas, name, busy_timeout_ms=200) as memory:
        with pytest.raises(kind, match=remedy) as caught:
            memory.remember("a second heron")
        assert type(caught.value) is kind
        assert "as it says itself" in str(caught.value) or code == "55P03"
        schemas.execute("DROP TRIGGER refuses ON memories", name)
        assert not memory.remember("a second heron").duplicate  # the connection is of use again
        assert memory.stats().memories == 2


def test_a_statement_that_takes_too_long_is_ended(schemas: Schemas, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(schemas, name, "PERFORM pg_sleep(60)")
    monkeypatch.setattr(connection, "WRITE_TIMEOUT_MS", 100)
    with opened(schemas, name) as memory, pytest.raises(StoreBusy, match=r"statement timeout.*; try again when fewer"):
        memory.remember("a second heron")


@pytest.mark.parametrize(
    ("end", "says"),
    [("pg_cancel_backend", "user request"), ("pg_terminate_backend", None)],
)
def test_who_ends_a_write_from_outside(schemas: Schemas, name: str, end: str, says: str | None) -> None:
    """A cancelled write is reported. One whose connection was ended is carried out on another one."""
    schemas.execute("CREATE SEQUENCE attempts", name)
    refuse(schemas, name, "IF nextval('attempts') = 1 THEN PERFORM pg_sleep(60); END IF")
    sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'nacre'"

    def ended() -> None:
        assert waited_for(lambda: bool(schemas.execute(sleeping)))
        schemas.execute(f"SELECT {end}(pid) FROM ({sleeping}) AS s")

    with opened(schemas, name) as memory:
        ender = threading.Thread(target=ended)
        ender.start()
        if says is None:
            assert not memory.remember("a second heron").duplicate
        else:
            with pytest.raises(StoreBusy, match=says):
                memory.remember("a second heron")
        ender.join()
        assert memory.stats().memories == (2 if says is None else 1)


def test_a_write_that_waits_too_long_names_who_holds_it(schemas: Schemas, name: str) -> None:
    with (
        opened(schemas, name, busy_timeout_ms=200) as memory,
        psycopg.connect(schemas.dsn, application_name="another program") as other,
    ):
        pid = other.info.backend_pid
        other.execute(f'LOCK TABLE "{name}".counters IN EXCLUSIVE MODE')
        with pytest.raises(StoreBusy, match=rf"process {pid} of user postgres, another program at 127\.0\.0\.1.* s\)"):
            memory.remember("a second heron")
        assert memory.stats().memories == 1


def test_a_store_that_was_upgraded_meanwhile_is_not_written_to(schemas: Schemas, name: str) -> None:
    with opened(schemas, name) as memory:
        newer = schema.VERSION + 1
        schemas.execute(f"UPDATE meta SET value = '{newer}' WHERE key = 'schema_version'", name)
        with pytest.raises(StoreTooNew, match=f"schema version {newer} meanwhile.*upgrade Nacre"):
            memory.remember("a second heron")
        assert memory.stats().memories == 1


def test_a_write_that_the_server_undoes_at_its_end_is_no_success(schemas: Schemas, name: str) -> None:
    """COMMIT of a failed transaction is a ROLLBACK, and no error of PostgreSQL."""
    with closing(PostgresStore(schemas.dsn, name)) as store:

        def fails_unnoticed(db: schema.Db) -> None:
            with pytest.raises(psycopg.Error):
                db.execute("SELECT 1 / 0")

        with pytest.raises(StoreError, match="has undone this write"):
            store._connections.write(fails_unnoticed)


def test_a_server_that_is_away_after_a_part_is_stored(
    schemas: Schemas, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text takes the place of another in one transaction, and its facts are looked at in the next one."""

    def away(*_: object) -> NoReturn:
        raise StoreUnavailable("store: cannot reach it")

    with opened(schemas, name) as memory:
        memory.remember("the boat is red", key="the boat")
        with monkeypatch.context() as patch:
            replace = memory._store.replace

            def replace_once(*arguments: Any) -> None:
                replace(*arguments)
                patch.setattr(memory._store, "facts_of", away)

            patch.setattr(memory._store, "replace", replace_once)
            with pytest.raises(StoreUnavailable, match=r"cannot reach it; a part of what was given is stored: give"):
                memory.remember("the boat is blue", key="the boat")
        assert [each.text for each in memory.get(keys=["the boat"])] == ["the boat is blue"]
        assert memory.remember("the boat is blue", key="the boat").changed == ()


def test_texts_that_postgresql_cannot_store(schemas: Schemas, name: str) -> None:
    """The engine refuses them before; a store says it, too."""
    with opened(schemas, name) as memory:
        for text in ("a\0b", "a\ud800b"):
            with pytest.raises(InvalidInput, match="NUL or a lone surrogate"):
                memory.remember(text)
    with closing(PostgresStore(schemas.dsn, name)) as store:
        with pytest.raises(InvalidInput, match="NUL"):
            store.put_lens("default", "a\0b", "{}")
        with pytest.raises(InvalidInput, match="change or shorten it"):
            store.put_lens("default", "a" * 5_000_000 + "".join(map(chr, range(0x4E00, 0x9000))) * 9, "{}")


# ---------------------------------------------------------------- errors of connections

PASSWORD = "geheim-7f3a"


@pytest.fixture(scope="module")
def guarded() -> Iterator[PostgresServer]:
    """A server that asks some users for a password, and has few connections."""
    server = PostgresServer(options=("max_connections=12", "superuser_reserved_connections=2"))
    try:
        with psycopg.connect(server.dsn, autocommit=True) as db:
            for user in ("guarded", "nobody", "limited"):
                db.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
            db.execute("ALTER ROLE limited CONNECTION LIMIT 1")
            db.execute("CREATE ROLE absent NOLOGIN")
            db.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
            db.execute("CREATE DATABASE closed")
            db.execute("REVOKE CONNECT ON DATABASE closed FROM public")
            hba = server.data / "pg_hba.conf"
            rules = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all nobody 127.0.0.1/32 reject\n"
            hba.write_text(rules + hba.read_text("utf-8"), "utf-8")
            db.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.remove()


REFUSED = [
    ("postgresql://guarded:wrong-{password}@127.0.0.1:{port}/postgres", "refuses the user .*password authentication"),
    ("postgresql://guarded@127.0.0.1:{port}/postgres", "refuses the user .*no password supplied"),
    ("postgresql://nobody:{password}@127.0.0.1:{port}/postgres", "refuses the user|do not agree about encryption"),
    ("postgresql://absent@127.0.0.1:{port}/postgres", "refuses the user .*not permitted to log in"),
    ("postgresql://unknown@127.0.0.1:{port}/postgres", 'refuses the user .*role "unknown" does not exist'),
    ("postgresql://postgres@127.0.0.1:{port}/elsewhere", "is no database of this server .*createdb"),
    ("postgresql://guarded:{password}@127.0.0.1:{port}/closed", "refuses the user .*permission denied"),
    ("postgresql://postgres@127.0.0.1:{port}/latin", "not encoded in UTF8; create one that is"),
    ("postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=require", "do not agree about encryption .*sslmode"),
    ("postgresql://guarded:{password}@nowhere.invalid:{port}/postgres", "address cannot be found .*check its name"),
    ("postgresql://guarded:{password}@127.0.0.1:{free}/postgres", "cannot reach .*is the server running"),
    (
        "postgresql://guarded:{password}@127.0.0.1:{free},127.0.0.1:{port}/elsewhere?target_session_attrs=read-write",
        "is no database of this server",
    ),
]


@pytest.mark.parametrize(("address", "says"), REFUSED)
def test_a_server_that_is_not_reached_is_said(guarded: PostgresServer, address: str, says: str) -> None:
    dsn = address.format(port=guarded.port, free=free_port(), password=PASSWORD)
    with pytest.raises(StoreUnavailable, match=rf"^store: .*{says}") as caught:
        nacre.open(dsn, embedder=Hashing())
    assert PASSWORD not in str(caught.value)


def test_too_many_connections_are_waited_for(guarded: PostgresServer) -> None:
    """A call waits until another lets one go, for as long as it waits for other writers."""
    with _taken(guarded, 10):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"allows no more connections .*raise max_connections"):
            nacre.open(f"postgresql://limited@127.0.0.1:{guarded.port}/postgres", embedder=None, busy_timeout_ms=300)
        assert time.monotonic() - began >= 0.3


@contextmanager
def _taken(server: PostgresServer, count: int) -> Iterator[None]:
    held = [psycopg.connect(server.dsn) for _ in range(count)]
    try:
        yield
    finally:
        for each in held:
            each.close()


def test_a_password_is_in_no_message_and_in_no_representation(guarded: PostgresServer) -> None:
    with psycopg.connect(guarded.dsn, autocommit=True) as db:
        db.execute("GRANT CREATE ON DATABASE postgres TO guarded")
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    dsn = f"postgresql://guarded:{PASSWORD}@127.0.0.1:{guarded.port}/postgres"
    with closing(PostgresStore(dsn, "secret")) as store:
        assert PASSWORD not in repr(store) + repr(store._connections) + store.location
        guarded.stop()
        try:
            with pytest.raises(StoreUnavailable, match="cannot reach") as caught:
                PostgresStore(dsn, "secret")
            error: BaseException | None = caught.value
            while error is not None:
                assert PASSWORD not in str(error)
                error = error.__cause__ or error.__context__
        finally:
            guarded.start()


@pytest.mark.parametrize(
    ("dsn", "location"),
    [
        ("postgresql://u:geheim@one:5433,two:5434/db?target_session_attrs=read-write", "u@one:5433,two:5434/db"),
        ("postgresql://u:geheim@one,two/db", "u@one,two/db"),
        ("postgresql://one:5433,[::1]:5434/db?password=geheim&connect_timeout=2", "one:5433,[::1]:5434/db"),
        ("postgresql://u@/db?host=one,two&port=5433", "u@one:5433,two:5433/db"),
    ],
)
def test_an_address_may_name_several_hosts(dsn: str, location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As libpq reads it: one database, on whichever of them takes part now. Passwords are not shown."""
    found = address("store", dsn)
    assert found == Address(dsn)
    assert "geheim" not in str(found) + repr(found)
    monkeypatch.setattr(psycopg.Connection, "connect", _refusing)
    with pytest.raises(
        StoreUnavailable, match=rf"cannot reach postgresql://{re.escape(location)} \(.*nobody"
    ) as caught:
        nacre.open(dsn, embedder=None)
    assert "geheim" not in str(caught.value)


def _refusing(*_: object, **__: object) -> NoReturn:
    raise psycopg.OperationalError("connection failed: nobody is there")


def test_errors_that_only_other_servers_give() -> None:
    """By their texts, since a failed connection has no code."""
    texts = [
        ("connection failed: FATAL: the database system is starting up", StoreUnavailable, "in a moment", True),
        ("connection failed: FATAL: sorry, too many clients already", StoreBusy, "max_connections", True),
        ("connection failed: session is read-only", StoreUnavailable, "is a replica being promoted", True),
        ("connection failed: certificate verify failed", StoreUnavailable, "sslrootcert", False),
        ("connection failed: FATAL: no pg_hba.conf entry for host", StoreUnavailable, "refuses the user", False),
        ("consuming input failed: SSL SYSCALL error: EOF detected", StoreUnavailable, "cannot reach", True),
        ("connection failed: Connection refused", StoreUnavailable, "is the server running", True),
    ]
    for text, kind, remedy, passes in texts:
        error = psycopg.OperationalError(text)
        found = failures.translated(error, "postgresql://host/db", ["geheim"])
        assert type(found) is kind
        assert remedy in str(found)
        assert failures.may_pass(error) is passes
    mixed = psycopg.errors.DuplicatePreparedStatement('prepared statement "_pg3_1" already exists')
    assert "let it pool by session" in str(failures.translated(mixed, "postgresql://host/db"))
