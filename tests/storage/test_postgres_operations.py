"""What docs/postgres.md says about backups, points in time and monitoring: each command and each query is run."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from postgres_server import MISSING, PostgresServer, Schemas, fresh_schemas, needs_postgres, shared_server, waited_for
from strategies import WELL_KNOWN

if not MISSING:
    import psycopg

    from nacre.storage.postgres import PostgresStore

pytestmark = needs_postgres

PAGE = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text("utf-8")


def section(name: str, language: str) -> list[str]:
    """The blocks of code of a section."""
    text = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as found:
        yield found


def filled(dsn: str, schema: str = "nacre") -> None:
    with nacre.open(dsn, schema=schema, embedder=Hashing()) as memory:
        memory.remember_many(WELL_KNOWN)
        memory.purge(memory.remember("gone").id)
        memory.search("Alice")
        memory.create_token("a server")


# ---------------------------------------------------------------- dumps


def test_a_store_is_dumped_and_restored_elsewhere(schemas: Schemas) -> None:
    """By the commands of the page, in a schema of its own."""
    server, schema = shared_server(), schemas.new()
    filled(schemas.dsn, schema)
    other = f"restored_{schema}"
    commands = [shlex.split(line) for line in section("Backup and point-in-time recovery", "bash")[0].splitlines()]
    assert [command[0] for command in commands] == ["pg_dump", "createdb", "psql", "pg_restore", "nacre"]
    at = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    try:
        for program, *arguments in commands[:-1]:
            named = [each.replace("nacre.dump", str(server.folder / f"{schema}.dump")) for each in arguments]
            named = [re.sub(r"^(--schema=)nacre$", rf"\g<1>{schema}", each) for each in named]
            named = [re.sub(r"\bagents$", "postgres", each.replace("restored", other)) for each in named]
            server._run(program, *at, *named)
        dsn = schemas.dsn.removesuffix("postgres") + other
        assert nacre.check_store(dsn, schema=schema).sound
        one, two = PostgresStore(schemas.dsn, schema), PostgresStore(dsn, schema, create=False)
        assert one.copying().checksums() == two.copying().checksums()
        for each in (one, two):
            each.close()
        with nacre.open(dsn, schema=schema, embedder=Hashing()) as memory:
            added = memory.remember("written after the restore").id
            assert memory.search("restore").hits[0].id == added
        assert nacre.check_store(dsn, schema=schema).sound
    finally:
        schemas.execute(f'DROP DATABASE IF EXISTS "{other}" WITH (FORCE)')


def test_a_backup_by_nacre_says_what_to_use(schemas: Schemas, tmp_path: Path) -> None:
    schema = schemas.new()
    with nacre.open(schemas.dsn, schema=schema, embedder=None) as memory:
        memory.remember("tea")
        with pytest.raises(nacre.InvalidInput, match="pg_dump or pg_basebackup"):
            memory.backup(tmp_path / "backup.db")


# ---------------------------------------------------------------- a point in time


@pytest.mark.slow
def test_a_server_is_brought_back_to_a_point_in_time() -> None:
    """A base backup and the archived log give the store as it was before a mistake, and nothing of after it."""
    text = PAGE.split("\n## Backup and point-in-time recovery\n")[1].split("\n## ")[0]
    primary = PostgresServer(durable=True, options=["archive_mode=on"])
    second: PostgresServer | None = None
    try:
        archive = primary.folder / "archive"
        for name in ("archive_command", "restore_command", "recovery_target_time", "recovery.signal", "pg_basebackup"):
            assert name in text
        copying, fetching = f"test ! -f {archive}/%f && cp %p {archive}/%f", f"cp {archive}/%f %p"
        archive.mkdir()
        archive.chmod(0o777)
        with psycopg.connect(primary.dsn, autocommit=True) as db:
            db.execute(f"ALTER SYSTEM SET archive_command = '{copying}'")
            db.execute("SELECT pg_reload_conf()")
        with nacre.open(primary.dsn, embedder=Hashing()) as memory:
            before = memory.remember("written before the base backup").id
        base = primary.folder / "base"
        source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        primary._run("pg_basebackup", *source, "-D", str(base), "-c", "fast")  # else it spares the disk for long
        primary._run("pg_verifybackup", "-n", str(base))
        with nacre.open(primary.dsn, embedder=Hashing()) as memory:
            after = memory.remember("written after the base backup").id
            with psycopg.connect(primary.dsn, autocommit=True) as db:
                time.sleep(0.05)
                (point,) = db.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
                time.sleep(0.05)
            memory.purge([before, after])
            mistake = memory.remember("written after the mistake").id
        with psycopg.connect(primary.dsn, autocommit=True) as db:
            (last,) = db.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone() or ("",)
        assert waited_for((archive / last).exists)
        primary.kill()
        (base / "recovery.signal").touch()
        (base / "postgresql.auto.conf").write_text("")
        recovery = [f"restore_command={fetching}", f"recovery_target_time={point}", "recovery_target_action=promote"]
        second = PostgresServer(durable=True, data=base, options=recovery)
        with psycopg.connect(second.dsn, autocommit=True) as db:
            assert waited_for(lambda: db.execute("SELECT pg_is_in_recovery()").fetchone() == (False,))
        with nacre.open(second.dsn, embedder=Hashing()) as memory:
            assert {each.id for each in memory.get([before, after]).memories} == {before, after}
            assert [hit.id for hit in memory.search("mistake", mode="keyword").hits] == []
            assert memory.get([mistake], missing_ok=True).memories == ()
            memory.remember("written after the recovery")
            assert memory.check().sound
    finally:
        for each in (primary, second):
            if each is not None:
                each.remove()


# ---------------------------------------------------------------- monitoring


@pytest.mark.parametrize("number", range(len(section("Monitoring", "sql"))))
def test_a_query_for_monitoring_runs(schemas: Schemas, number: int) -> None:
    schema = schemas.new()
    filled(schemas.dsn, schema)
    query = section("Monitoring", "sql")[number]
    assert schemas.execute(query.replace("nacre.", f"{schema}.").replace("'nacre'", f"'{schema}'")) is not None


def test_what_waits_for_vectors_is_counted(schemas: Schemas) -> None:
    schema = schemas.new()
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing(), defer_embeddings=True) as memory:
        memory.remember_many(["tea", "coffee"])
    (query,) = [each for each in section("Monitoring", "sql") if "NOT embedded" in each]
    ((space, waiting, *_),) = schemas.execute(query.replace("nacre.", f"{schema}."))
    assert (space, waiting) == ("default", 2)
