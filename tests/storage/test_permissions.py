"""Who may read and write what: new files are for their owner alone, and a store that may only be read is searched.

The superuser ignores permissions, so what they forbid is tried in processes without that privilege.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre
from index_files import cache_files, cache_folder, check, flower_texts, reopened, settled
from mcp_clients import environment
from nacre.embedders.hashing import Hashing
from nacre.hooks.listener import Listener
from nacre.runtime import private_files
from nacre.storage.sqlite.index import space_index

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions are other there")

# The rights of the owner hold for a superuser without capabilities.
POWERLESS = """
import ctypes, os, sys
if os.getuid() == 0:
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
"""
needs_permissions = pytest.mark.skipif(
    sys.platform not in ("win32", "linux") and os.getuid() == 0, reason="permissions do not hold for the superuser"
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


# ---------------------------------------------------------------- new files


@pytest.mark.usefixtures("any_umask")
def test_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    folder.chmod(0o755)
    path = folder / "memories.db"
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("tea")
        assert {each.name: oct(mode(each)) for each in folder.iterdir()} == {
            "memories.db": "0o600",
            "memories.db-wal": "0o600",
            "memories.db-shm": "0o600",
        }
    assert mode(folder) == 0o755  # the user made it


@pytest.mark.usefixtures("any_umask")
def test_caches_are_for_whom_the_store_is(path: Path, low: pytest.MonkeyPatch) -> None:
    low.setattr(space_index, "GRAPH_PASSAGES_MIN", 20)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        settled(engine)
    assert mode(cache_folder(path)) == 0o700
    assert cache_files(path, ".segment")
    assert cache_files(path, ".hnsw")
    assert {mode(each) for each in cache_folder(path).iterdir()} == {0o600}
    shutil.rmtree(cache_folder(path))
    path.chmod(0o660)  # shared with a group
    with reopened(path) as engine:
        check(engine)
        settled(engine)
    assert mode(cache_folder(path)) == 0o770
    assert {mode(each) for each in cache_folder(path).iterdir()} == {0o660}


def test_what_exists_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    path.touch()
    path.chmod(0o640)
    with nacre.open(path, embedder=None) as memory:
        memory.remember("tea")
    assert mode(path) == 0o640
    private_files.create_folder(tmp_path)
    private_files.create_file(path)
    assert mode(path) == 0o640


@pytest.mark.slow
@pytest.mark.usefixtures("any_umask")
def test_the_default_data_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    own = environment(tmp_path / "unused") | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    del own["NACRE_STORE"]
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data").chmod(0o755)
    subprocess.run([sys.executable, "-m", "nacre", "remember", "tea"], env=own, check=True, capture_output=True)
    (store,) = tmp_path.rglob("nacre.db")
    assert (mode(store), mode(store.parent)) == (0o600, 0o700)
    assert mode(tmp_path / "data") == 0o755


@pytest.mark.usefixtures("any_umask")
def test_the_socket_for_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from nacre.config.settings import load

    with tempfile.TemporaryDirectory() as short:  # the name of a socket must not be long
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        listener = Listener(load({}, os.environ), lambda _: pytest.fail("nobody asks"))
        listener.start()
        try:
            (socket,) = Path(short, "nacre").iterdir()
            assert (mode(socket), mode(socket.parent)) == (0o600, 0o700)
        finally:
            listener.close()


# ---------------------------------------------------------------- stores that may only be read


@pytest.fixture
def readable() -> Iterator[Path]:
    """A store with its log written out, which other users may read."""
    folder = Path(tempfile.mkdtemp())  # pytest's own are for their owner only
    path = folder / "memories.db"
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("tea with milk", session="s")
        memory.remember("coffee")
        folder.joinpath("secret").write_text(memory.create_token().secret)
    path.chmod(0o644)
    folder.chmod(0o755)
    yield path
    folder.chmod(0o755)
    shutil.rmtree(folder)


def powerless(path: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program for which permissions hold."""
    command = [sys.executable, "-c", POWERLESS + program, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(path), timeout=60)


# Every verb that reads, and that the store is as it was.
READING = """
import json, nacre
from nacre.embedders.hashing import Hashing
with nacre.open(sys.argv[1], embedder=Hashing()) as memory:
    found = memory.search("tea", session="s")
    first = found.hits[0].id
    for mode in ("keyword", "semantic", "hybrid"):
        assert memory.search("tea", mode=mode, limit=1).hits[0].id == first
    for read in (
        lambda: memory.get(first, neighbours=1, entities=True), lambda: list(memory.every()), lambda: memory.timeline(),
        lambda: memory.history(first), lambda: memory.stats(), lambda: memory.context("tea"), lambda: memory.facets(),
        lambda: memory.related(first), lambda: memory.similar(first), lambda: memory.facts(), lambda: memory.entities(),
        lambda: memory.entity_counts(), lambda: memory.receipts(), lambda: memory.lenses(), lambda: memory.stale(),
        lambda: memory.conflicts(), lambda: memory.why("tea", first), lambda: memory.tokens(),
    ):
        read()
    secret = open(sys.argv[1].replace("memories.db", "secret")).read()
    assert memory.authenticate(secret) == memory.tokens()[0]
    assert {each.name for each in memory.changes(0).changes} == {each.id for each in memory.every()}
    refused = {}
    for name, write in {
        "remember": lambda: memory.remember("milk"), "update": lambda: memory.update(first, text="milk"),
        "forget": lambda: memory.forget(first), "purge": lambda: memory.purge(first),
        "rebuild": lambda: memory.rebuild(), "add_entity": lambda: memory.add_entity("Ada"),
        "mark": lambda: memory.mark(first, "used"), "create_token": lambda: memory.create_token(),
    }.items():
        try:
            write()
        except nacre.StoreUnavailable as error:
            refused[name] = str(error)
    print(json.dumps({"notes": found.notes, "refused": refused, "all": [each.text for each in memory.every()]}))
"""


def read_everything(path: Path) -> Any:
    before = {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()}
    answer = powerless(path, READING)
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stderr
    assert {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()} == before
    return json.loads(answer.stdout)


@pytest.mark.slow
@needs_permissions
@pytest.mark.parametrize("only", ["folder", "file", "both"])
def test_a_store_that_may_only_be_read_is_searched_and_not_changed(readable: Path, only: str) -> None:
    """Nor is shared memory created beside it, which its owner could not write to."""
    readable.parent.chmod(0o755 if only == "file" else 0o555)
    readable.chmod(0o644 if only == "folder" else 0o444)
    found = read_everything(readable)
    assert found["notes"] == ["the store is read-only: nothing is logged"]
    assert found["all"] == ["tea with milk", "coffee"]
    refused = {"remember", "update", "forget", "purge", "rebuild", "add_entity", "mark", "create_token"}
    assert set(found["refused"]) == refused
    for told in found["refused"].values():
        assert f"store: {readable} is read-only: nothing was written; check its permissions" in told


@pytest.mark.slow
@needs_permissions
def test_what_is_in_a_log_is_read_too(readable: Path, tmp_path: Path) -> None:
    """A snapshot of the files of a running process, on a medium that cannot be written."""
    with nacre.open(tmp_path / "busy.db", embedder=Hashing()) as memory:
        memory.remember("tea with milk", session="s")
        readable.with_name("secret").write_text(memory.create_token().secret)
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"busy.db{suffix}", f"{readable}{suffix}")
            Path(f"{readable}{suffix}").chmod(0o444)
    readable.parent.chmod(0o555)
    assert read_everything(readable)["all"] == ["tea with milk"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="writing there takes the superuser")
def test_a_reader_beside_the_owner_sees_each_write(readable: Path) -> None:
    """First without the shared memory of a writer, then with it, then without it again."""
    program = """
import nacre
with nacre.open(sys.argv[1], embedder=None) as memory:
    for _ in sys.stdin:
        print(*sorted(hit.text for hit in memory.search("tea").hits), sep=",", flush=True)
"""
    readable.parent.chmod(0o555)
    reader = subprocess.Popen(
        [sys.executable, "-c", POWERLESS + program, str(readable)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(readable),
    )
    assert reader.stdin is not None
    assert reader.stdout is not None

    def ask() -> str:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write("\n")
        reader.stdin.flush()
        return reader.stdout.readline().strip()

    with reader:
        assert ask() == "tea with milk"
        with nacre.open(readable, embedder=Hashing()) as owner:
            owner.remember("tea with lemon")
            assert ask() == "tea with lemon,tea with milk"
            owner.remember("tea with honey")
            assert ask() == "tea with honey,tea with lemon,tea with milk"
        with nacre.open(readable, embedder=Hashing()) as owner:
            owner.remember("tea with rum")
        assert ask() == "tea with honey,tea with lemon,tea with milk,tea with rum"
        reader.stdin.close()


@pytest.mark.slow
@needs_permissions
def test_the_command_line_reads_a_store_in_a_read_only_folder(readable: Path) -> None:
    readable.parent.chmod(0o555)
    program = "from nacre.cli import run\nsys.exit(run(sys.argv[2:]))\n"

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return powerless(readable, program, *arguments)

    found = call("search", "tea", "--json")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert "milk" in json.dumps(answer["hits"][0])
    assert answer["notes"] == ["the store is read-only: nothing is logged"]
    for arguments in (("timeline",), ("stats",), ("context", "tea"), ("log",), ("facets",)):
        answered = call(*arguments)
        assert answered.returncode == 0, (arguments, answered.stderr)
        assert "Traceback" not in answered.stderr
    refused = call("remember", "milk")
    assert refused.returncode != 0
    assert "is read-only: nothing was written; check its permissions" in refused.stderr
