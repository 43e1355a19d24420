"""Backups and restores while other processes use the store, or are killed. The long version is `benchmarks.backups`."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.storage.sqlite.backup import files
from store_checks import check_derived_tables, check_integrity

pytestmark = pytest.mark.slow

backups: Any = import_module("benchmarks.backups")

# Opens a store, remembers what it reads from stdin, line by line, and says so.
WRITER = """
import sys, nacre
with nacre.open(sys.argv[1], embedder="hashing") as memory:
    print("ready", flush=True)
    for line in sys.stdin:
        memory.remember(line.strip())
        print("done", flush=True)
"""


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open. At the end it closes it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.communicate()
    assert process.returncode == 0


def remember(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def texts(path: Path) -> list[str]:
    with nacre.open(path, embedder="hashing") as memory:
        return [each.text for each in memory.every()]


def test_a_backup_under_writers_is_a_moment_in_time(tmp_path: Path) -> None:
    figures = backups.moments(tmp_path, 6, 2)
    assert (figures["backups"], figures["of them incremental"]) == (6, 4)
    check_integrity(tmp_path / "restored.db")
    check_derived_tables(tmp_path / "restored.db")


def test_the_check_of_a_moment_notices_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with nacre.open(path, space="writer0", embedder="hashing") as memory:
        ids = [memory.remember(backups.text_of(0, number)).id for number in (0, 1, 2)]
        memory.forget(ids[0])  # the fourth operation forgets number 1
        made = memory.backup(tmp_path).backup
    with pytest.raises(AssertionError, match="at none of its moments"):
        backups.check_moment(made, tmp_path / "restored.db", [0], [9])


def test_a_killed_backup_leaves_no_half_file_under_a_final_name(tmp_path: Path) -> None:
    assert backups.killed_backups(tmp_path, 2, random.Random(1))["kills"] == 2


def test_a_killed_restore_leaves_a_whole_store(tmp_path: Path) -> None:
    assert backups.killed_restores(tmp_path / "kills", 2, random.Random(1))["kills"] == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_backup_without_room_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    path, folder = tmp_path / "store.db", tmp_path / "backups"
    folder.mkdir()
    with nacre.open(path, embedder="hashing") as memory:
        memory.remember_many(f"Memory number {number} of many others" for number in range(300))
        before = memory.backup(folder).backup
    script = (
        "import resource, sys, nacre\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with nacre.open(sys.argv[1], embedder='hashing') as memory:\n"
        "    for since in (None, 'last'):\n"
        "        try:\n"
        "            memory.backup(sys.argv[2], since=since)\n"
        "        except nacre.StoreError as error:\n"
        "            print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, path, folder], capture_output=True, text=True, check=True)
    assert run.stdout.count(f"backup: {folder} cannot be used") == 2
    assert [each for each in folder.iterdir() if each.name != ".nacre-backup.lock"] == [before.path]


def test_two_backups_to_one_folder_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOCK_TIMEOUT_MS", 50)
    folder = tmp_path / "backups"
    folder.mkdir()
    with nacre.open(tmp_path / "store.db", embedder=None) as memory:
        with files.alone_in(folder):
            under_way = files.part_in(folder)
            files.create(under_way)
            with pytest.raises(nacre.StoreBusy, match="another process is writing a backup"):
                memory.backup(folder)
            assert under_way.exists()
        memory.backup(folder)
        assert not under_way.exists()


def test_a_store_is_restored_while_another_process_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with writer(path) as other:
        remember(other, "In the backup")
        with nacre.open(path, embedder="hashing") as memory:
            made = memory.backup(tmp_path / "backup.db").backup
        remember(other, "After the backup")
        nacre.restore_backup(made.path, path, force=True)
        with nacre.open(path, embedder="hashing") as memory:
            memory.remember("After the restore")
            remember(other, "By the process that had it open")
            other.communicate()
            memory.remember("After that process has closed")
    assert texts(path) == [
        "In the backup",
        "After the restore",
        "By the process that had it open",
        "After that process has closed",
    ]
    check_integrity(path)


def test_processes_that_write_go_on_with_the_restored_store(tmp_path: Path) -> None:
    figures = backups.replaced(tmp_path / "replaced", 2, 2)
    assert (figures["restores"], figures["missing"]) == (2, 0)
    check_integrity(tmp_path / "replaced" / "store.db")


def test_a_process_that_closes_a_replaced_store_leaves_the_new_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with writer(path) as other:
        remember(other, "In the backup")
        with nacre.open(path, embedder="hashing") as memory:
            made = memory.backup(tmp_path / "backup.db").backup
        nacre.restore_backup(made.path, path, force=True)
        with nacre.open(path, embedder="hashing") as memory:
            memory.remember("In the new log")
            other.communicate()
            memory.remember("After that process has closed")
    assert texts(path) == ["In the backup", "In the new log", "After that process has closed"]
    check_integrity(path)


def test_a_store_that_is_being_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.storage.sqlite.backup.restore.BUSY_TIMEOUT_MS", 200)
    path = tmp_path / "store.db"
    with nacre.open(path, embedder="hashing") as memory:
        made = memory.backup(tmp_path / "backup.db").backup
        memory.remember("Not lost")
        with memory._store._connections.writing(), pytest.raises(nacre.StoreBusy):  # type: ignore[attr-defined]
            nacre.restore_backup(made.path, path, force=True)
        memory.remember("Nor this")
    assert texts(path) == ["Not lost", "Nor this"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup.db", "store.db"]
