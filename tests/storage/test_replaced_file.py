"""The file under an open store: deleted, replaced, moved, its log removed.

No write is acknowledged that the file at the path does not have, and what is answered comes from that file.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import apsw
import pytest

import nacre
from mcp_clients import Process
from nacre.embedders.hashing import Hashing
from nacre.errors import StoreUnavailable
from nacre.storage.sqlite import connection
from store_checks import check_derived_tables, check_integrity

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let an open file be deleted")

LOGS = ("-wal", "-shm")
MODES: tuple[Literal["keyword", "semantic", "hybrid"], ...] = ("keyword", "semantic", "hybrid")


def opened(path: Path) -> nacre.Nacre:
    return nacre.open(path, embedder=Hashing(), log=False, busy_timeout_ms=2_000)


def texts(path: Path) -> list[str]:
    """What another process finds in the file at the path."""
    asked = (
        "import sys, nacre\n"
        "with nacre.open(sys.argv[1], embedder=None, create=False) as memory:\n"
        "    print(*(each.text for each in memory.every()), sep='\\n')"
    )
    answer = subprocess.run([sys.executable, "-c", asked, str(path)], capture_output=True, text=True, check=True)
    return answer.stdout.split("\n")[:-1]


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def copied(path: Path, to: Path) -> Path:
    """A backup, made while the store is open."""
    with (
        closing(apsw.Connection(str(path))) as source,
        closing(apsw.Connection(str(to))) as target,
        target.backup("main", source, "main") as copying,
    ):
        copying.step()
    return to


# ---------------------------------------------------------------- the file itself


def test_nothing_is_acknowledged_into_a_deleted_file(path: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea")
        path.unlink()
        for call in (lambda: memory.remember("coffee"), lambda: memory.search("tea"), memory.stats):
            with pytest.raises(StoreUnavailable, match=r"deleted or moved while it was open; put it back"):
                call()
    assert not path.exists()


def test_a_file_that_was_moved_away_and_back_is_used_again(path: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea")
        away = path.rename(path.with_name("away.db"))
        with pytest.raises(StoreUnavailable, match="deleted or moved"):
            memory.remember("lost")
        away.rename(path)
        memory.remember("coffee")
        assert texts(path) == ["tea", "coffee"]


def test_a_new_store_can_be_made_where_one_was_deleted_that_is_still_open(path: Path) -> None:
    """The log of the deleted file, and the shared memory that its process still uses, are not taken over."""
    with opened(path) as memory:
        memory.remember_many(f"tea {number}" for number in range(50))
        path.unlink()
        with opened(path) as other:
            other.remember("coffee")
            with pytest.raises(StoreUnavailable, match="replaced by another store"):
                memory.search("tea")
            assert [hit.text for hit in other.search("coffee").hits] == ["coffee"]
        assert texts(path) == ["coffee"]
    check_integrity(path)


@pytest.mark.parametrize("logs", ["left", "removed"])
def test_a_restored_backup_is_opened_and_nothing_older_is_answered(path: Path, tmp_path: Path, logs: str) -> None:
    """Also what is kept of results and indexes: the same numbers of events mean other memories now."""
    with opened(path) as memory:
        memory.remember("tea with milk")
        backup = copied(path, tmp_path / "backup.db")
        memory.remember("tea with lemon")
        for mode in MODES:
            assert len(memory.search("tea", mode=mode).hits) == 2
        if logs == "removed":
            for each in LOGS:
                beside(path, each).unlink()
        backup.replace(path)
        assert [hit.text for hit in memory.search("tea").hits] == ["tea with milk"]
        memory.remember("tea with honey")
        for mode in MODES:
            found = {hit.text for hit in memory.search("tea", mode=mode).hits}
            assert found == {"tea with milk", "tea with honey"}, mode
        assert texts(path) == ["tea with milk", "tea with honey"]
    check_integrity(path)
    check_derived_tables(path)


def test_another_store_in_its_place_is_refused_and_unharmed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with opened(other) as memory:
        memory.remember("coffee")
    with opened(path) as memory:
        memory.remember_many(f"tea {number}" for number in range(50))
        other.replace(path)
        for call in (lambda: memory.remember("tea"), lambda: memory.search("tea")):
            with pytest.raises(StoreUnavailable, match=r"replaced by another store .* open it again"):
                call()
    assert texts(path) == ["coffee"]
    check_integrity(path)


def test_a_file_that_is_no_store_in_its_place_is_unharmed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("just notes\n" * 100)
    with opened(path) as memory:
        memory.remember("tea")
        other.replace(path)
        with pytest.raises(nacre.StoreCorrupt, match="is not a database"):
            memory.remember("coffee")
    assert path.read_text() == "just notes\n" * 100


def test_a_link_that_points_elsewhere_now(path: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    path.symlink_to(first)
    with opened(path) as memory:
        memory.remember("tea")
        copied(path, second)
        memory.remember("in the first")
        path.unlink()
        path.symlink_to(second)
        memory.remember("in the second")
    assert texts(second) == ["tea", "in the second"]
    assert texts(first) == ["tea", "in the first"]


def test_a_program_may_change_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("m.db")) as memory:
        memory.remember("tea")
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        memory.remember("coffee")
    assert texts(tmp_path / "m.db") == ["tea", "coffee"]


# ---------------------------------------------------------------- in the middle of a write


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_file_replaced_in_the_middle_of_a_write(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The write is not acknowledged: either nothing was stored, or the caller is told to look."""
    committing = connection.committing

    @contextmanager
    def disturbed(db: apsw.Connection) -> Iterator[None]:
        with committing(db):
            yield
            if moment == "before the commit":
                backup.replace(path)
        if moment == "after the commit":
            backup.replace(path)

    with opened(path) as memory:
        memory.remember("tea")
        backup = copied(path, tmp_path / "backup.db")
        monkeypatch.setattr(connection, "committing", disturbed)
        told = "nothing was stored|it may not be stored; search for it before you repeat it"
        with pytest.raises(StoreUnavailable, match=told):
            memory.remember("coffee")
        monkeypatch.undo()
        memory.remember("milk")
    assert texts(path) == ["tea", "milk"]


def test_a_store_replaced_again_and_again_beside_a_writer(path: Path, tmp_path: Path) -> None:
    """Only our own errors come out, and no log of one file gets into another."""
    with opened(path) as memory:
        memory.remember("tea")
        copies = [copied(path, tmp_path / f"copy{number}.db") for number in range(40)]
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                number += 1
                try:
                    memory.remember(f"coffee {number}")
                except StoreUnavailable:
                    continue

        writing = threading.Thread(target=write)
        writing.start()
        for copy in copies:
            copy.replace(path)
        done.set()
        writing.join()
        memory.remember("last")
        assert texts(path)[-1] == "last"
    check_integrity(path)


# ---------------------------------------------------------------- its log


@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), LOGS], ids="+".join)
def test_a_log_that_was_removed_loses_nothing(path: Path, gone: tuple[str, ...]) -> None:
    """What was acknowledged before is saved from the removed log, and what follows goes into a new one."""
    with opened(path) as memory:
        written = [memory.remember(f"tea {number}").id for number in range(20)]
        for each in gone:
            beside(path, each).unlink()
        written.append(memory.remember("coffee").id)
        assert texts(path) == [*(f"tea {number}" for number in range(20)), "coffee"]
        assert [memory.text for memory in memory.get(written)] == texts(path)
        assert memory.search("coffee").hits[0].text == "coffee"
    check_integrity(path)
    check_derived_tables(path)


def test_a_log_that_was_removed_is_saved_at_close(path: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea")
        beside(path, "-wal").unlink()
    assert texts(path) == ["tea"]


def test_a_log_removed_under_two_engines_of_one_process(path: Path) -> None:
    """They share what SQLite knows of a log."""
    with opened(path) as first, opened(path) as second:
        first.remember("tea")
        second.remember("milk")
        for each in LOGS:
            beside(path, each).unlink()
        first.remember("coffee")
        second.remember("sugar")
        first.remember("bread")
        assert texts(path) == ["tea", "milk", "coffee", "sugar", "bread"]
        assert second.search("bread").hits[0].text == "bread"
    check_integrity(path)


def test_a_backup_copied_into_the_file_is_not_overwritten_by_a_removed_log(path: Path, tmp_path: Path) -> None:
    """Copying keeps the inode. Whoever removes the log and the shared memory as well means the copy."""
    with opened(path) as memory:
        memory.remember("tea")
        backup = copied(path, tmp_path / "backup.db")
        memory.remember_many(f"coffee {number}" for number in range(200))
        shutil.copyfile(backup, path)
        for each in LOGS:
            beside(path, each).unlink()
        assert [hit.text for hit in memory.search("tea coffee").hits] == ["tea"]
        memory.remember("milk")
        assert texts(path) == ["tea", "milk"]
    check_integrity(path)


def test_a_reader_in_a_snapshot_is_told_to_try_again(path: Path) -> None:
    with opened(path) as memory:
        memory.remember("tea")
        connections = memory._store._connections  # type: ignore[attr-defined]
        with connections.view():
            beside(path, "-wal").unlink()
            with pytest.raises(
                StoreUnavailable, match=r"write-ahead log .* was removed while it was in use; try again"
            ):
                memory._store._connections.reading(latest=True).__enter__()  # type: ignore[attr-defined]
        assert [hit.text for hit in memory.search("tea").hits] == ["tea"]


# ---------------------------------------------------------------- through the doors


@pytest.mark.slow
def test_a_server_whose_store_is_restored_and_then_deleted(path: Path, tmp_path: Path) -> None:
    """An agent's server runs for days, and its owner restores a backup meanwhile."""
    with Process(path) as server:
        server.begin()
        server.call("remember", text="Tea at four")
        backup = copied(path, tmp_path / "backup.db")
        server.call("remember", text="Coffee at five")
        backup.replace(path)
        found = server.call("search_memories", query="tea coffee")["content"][0]["text"]
        assert "Tea at four" in found
        assert "Coffee" not in found
        assert not server.call("remember", text="Milk at six")["isError"]
        assert texts(path) == ["Tea at four", "Milk at six"]
        path.unlink()
        refused = server.call("remember", text="Lost")
        assert refused["isError"]
        assert "was deleted or moved while it was open; put it back" in refused["content"][0]["text"]
        assert server.close() == 0
