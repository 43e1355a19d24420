"""A store behind PgBouncer in transaction mode: each transaction may get another session of the server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.storage.postgres import PostgresStore
from nacre.types.facts import NewFact
from postgres_server import (
    Databases,
    free_port,
    fresh_databases,
    needs_postgres,
    server_user,
    shared_server,
    waited_for,
)

_PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin")
pytestmark = [
    pytest.mark.slow,
    needs_postgres,
    pytest.mark.skipif(_PGBOUNCER is None, reason="not installed: pgbouncer; run `apt-get install pgbouncer`"),
]
SESSIONS = 4  # of the server, that all clients share
_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
"""


@contextmanager
def pooled(folder: Path, addresses: Sequence[str]) -> Iterator[list[str]]:
    """The same addresses by way of a pooler."""
    import psycopg

    assert _PGBOUNCER is not None
    user, port, server = server_user(), free_port(), shared_server().port
    (folder / "users").write_text('"postgres" ""\n')
    settings = folder / "settings"
    settings.write_text(_SETTINGS.format(server=server, port=port, folder=folder, sessions=SESSIONS))
    by_pooler = [each.replace(f":{server}/", f":{port}/") for each in addresses]

    def answers() -> bool:
        try:
            psycopg.connect(by_pooler[0], connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    with subprocess.Popen([_PGBOUNCER, str(settings)], user=user, stderr=subprocess.DEVNULL) as process:
        try:
            assert waited_for(answers)
            yield by_pooler
        finally:
            process.terminate()


@pytest.fixture
def databases() -> Iterator[Databases]:
    with fresh_databases() as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """Which the user that the pooler runs as may read."""
    with tempfile.TemporaryDirectory(prefix="nacre-pooler-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def all_at_once(works: Sequence[Callable[[], object]]) -> None:
    errors: list[BaseException] = []

    def carried_out(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=carried_out, args=(each,)) for each in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors, errors[:3]


def use(memory: nacre.Nacre, number: int, *, moving: bool = False) -> None:
    """Often enough for statements to be prepared, where a session is one's own.

    While a space is `moving`, a receipt may be dropped, and what it delivered cannot be marked.
    """
    for place in range(8):
        written = memory.remember(f"writer {number} saw heron {place}", space=f"s{number % 2}", key=f"{number}-{place}")
        memory.update(written.id, text=f"writer {number} saw kestrel {place}", tags=["bird"])
        memory.add_facts(written.id, [NewFact(subject="Lin", predicate="saw", object=f"kestrel {place}")])
        found = memory.search("who saw a kestrel?", where=nacre.Filter(spaces=("s0", "s1")), session=str(number))
        assert found.hits
        if not moving:
            memory.mark(found.hits[0].id, "used")
        memory.forget(memory.remember(f"writer {number} says {place}", space=f"s{number % 2}").id)


def test_many_clients_write_search_and_embed_on_few_sessions(databases: Databases, folder: Path) -> None:
    (direct,) = databases.new(1)
    with pooled(folder, [direct]) as (address,), nacre.open(address, embedder=Hashing()) as memory:
        assert isinstance(memory._store, PostgresStore)
        with nacre.open(address, embedder=Hashing(), defer_embeddings=True) as deferring:
            deferring.remember_many([f"waiting {number}" for number in range(20)])
            works: list[Callable[[], object]] = [lambda number=number: use(memory, number) for number in range(5)]  # type: ignore[misc]
            works.append(lambda: list(memory.pending.run(once=True)))
            all_at_once(works)
        assert memory.stats().memories == 5 * 8 + 20
        assert memory.stats().pending == 0
        gone = memory.remember("the code is 1234").id
        assert memory.purge(gone).ids == (gone,)
        memory.rebuild()
        assert len(memory.search("kestrel", where=nacre.Filter(spaces=("s0", "s1")), limit=50).hits) == 40
        assert len(list(memory.export())) > 60
        name = direct.rpartition("/")[2]
        clients = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
        assert databases.execute(clients)[0][0] <= SESSIONS + 1
    with nacre.open(direct, embedder=Hashing()) as memory:
        databases.execute("DROP INDEX nacre.memories_by_time", name)
    with pooled(folder, [direct]) as (address,):
        assert not nacre.check_store(address, fix=True).problems
        assert databases.execute("SELECT count(*) FROM pg_indexes WHERE indexname = 'memories_by_time'", name) == [(1,)]


def test_nodes_and_moves_behind_a_pooler(databases: Databases, folder: Path) -> None:
    with pooled(folder, databases.new(2)) as addresses, nacre.open(addresses, embedder=Hashing()) as memory:
        moving = threading.Event()

        def move() -> None:
            moving.wait()
            for to in (0, 1):
                nacre.move_space(addresses, "s0", to)

        works: list[Callable[[], object]] = [partial(use, memory, number, moving=True) for number in range(3)]
        memory.remember("the first", space="s0")
        moving.set()
        all_at_once([*works, move])
        assert memory.stats().memories == 3 * 8 + 1
