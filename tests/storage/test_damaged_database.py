"""Damage in the database file: an answer is the right one, or an error that says damage. It is never silently wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

import damaged_database
import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import StoreCorrupt, StoreUnavailable
from nacre.storage.sqlite import SqliteStore, page_checksums, schema
from nacre.storage.sqlite.damage import damaged_memories
from nacre.storage.sqlite.opened_file import open_file
from store_checks import check_integrity

CASES = 30
RESERVED_BYTES_AT = 20  # in the header of a SQLite file

with_checksums = pytest.mark.skipif(not page_checksums.load(), reason="this build of apsw has no checksum VFS")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "memories.db"
    damaged_database.fill(path)
    return path


@pytest.fixture
def path(tmp_path: Path, filled: Path) -> Path:
    return Path(shutil.copyfile(filled, tmp_path / "memories.db"))


def header(path: Path) -> bytes:
    return path.read_bytes()[:100]


def with_byte(path: Path, at: int, value: int) -> None:
    written = bytearray(path.read_bytes())
    written[at] = value
    path.write_bytes(written)


def change_text(path: Path) -> str:
    """Another text in a row, as a program that keeps page checksums right would leave it. Returns the id."""
    db = apsw.Connection(str(path))
    memory_id = db.execute("SELECT id FROM memories WHERE text LIKE '%tea number 7 %'").get
    db.execute("UPDATE memories SET text = replace(text, 'tea', 'tee') WHERE id = ?", (memory_id,))
    db.close()
    return str(memory_id)


@with_checksums
@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 12])
def test_flipped_bits_are_never_silently_wrong(path: Path, bits: int) -> None:
    cases = CASES if bits == 1 else CASES // 3
    run = subprocess.run(
        [sys.executable, damaged_database.__file__, str(path), "0", str(cases), str(bits)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == cases
    assert [case for case in found if "WRONG" in case.values()] == []
    assert any("damaged" in case.values() for case in found)


@with_checksums
def test_a_new_store_has_page_checksums(path: Path) -> None:
    assert header(path)[RESERVED_BYTES_AT] == 8
    with damaged_database.opened(path) as engine:
        assert engine.search("tea").hits


@with_checksums
def test_a_store_made_by_another_while_its_empty_file_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection to an empty file does not know of checksums yet, and is replaced by one that does."""
    path = tmp_path / "new.db"
    reserve, made = page_checksums.reserve, []

    def made_meanwhile(db: apsw.Connection) -> None:
        monkeypatch.setattr(page_checksums, "reserve", reserve)
        reserve(db)
        made.append(nacre.open(path, embedder=Hashing()))

    monkeypatch.setattr(page_checksums, "reserve", made_meanwhile)
    with nacre.open(path, embedder=Hashing()) as engine, made[0] as other:
        known = other.remember("made by another").id
        assert engine.get(known)[0].text == "made by another"
        engine.remember("and one of ours")
    check_integrity(path)
    db = open_file(path)
    assert schema.has_page_checksums(db)
    db.close()


def test_a_new_store_without_page_checksums(tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    for _ in range(2):
        with nacre.open(path, embedder=Hashing(), page_checksums=False) as engine:
            engine.remember("tea")
            assert engine.search("tea").hits
    assert header(path)[RESERVED_BYTES_AT] == 0


@with_checksums
@pytest.mark.slow
def test_rebuild_gives_an_older_store_page_checksums(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "plain.db"
    with nacre.open(path, embedder=Hashing(), page_checksums=False) as engine:
        engine.remember_many(f"tea number {number}" + f" of cup {number}" * 200 for number in range(150))
        before = list(engine.every())
        engine.rebuild()
    assert header(path)[RESERVED_BYTES_AT] == 0
    with damaged_database.opened(path) as other:
        assert other.search("tea").hits
        with nacre.open(path, embedder=Hashing(), busy_timeout_ms=50) as engine:
            engine.rebuild()
    assert "is open elsewhere" in caplog.text
    assert header(path)[RESERVED_BYTES_AT] == 0
    with nacre.open(path, embedder=Hashing()) as engine:
        assert isinstance(engine._store, SqliteStore)
        file = engine._store._connections._file
        assert file is not None
        file.writer.execute("PRAGMA cache_size = 20")  # most pages are written before the first
        engine.rebuild()
        assert list(engine.every()) == before
    assert header(path)[RESERVED_BYTES_AT] == 8
    with damaged_database.opened(path) as engine:
        assert list(engine.every()) == before
    db = apsw.Connection(str(path))
    assert page_checksums.verified(db)
    assert db.execute("PRAGMA integrity_check").get == "ok"
    db.close()


@with_checksums
@pytest.mark.parametrize("reserved", [0, 9, 12, 136])
def test_a_header_that_switches_the_checksums_off(path: Path, reserved: int) -> None:
    with_byte(path, RESERVED_BYTES_AT, reserved)
    with pytest.raises(StoreCorrupt, match="damaged"), damaged_database.opened(path) as engine:
        list(engine.every())


@with_checksums
def test_a_damaged_page_says_what_to_do(path: Path) -> None:
    written = path.read_bytes()
    at = written.index(b"Ada Lovelace keeps tea number 11 ")
    with_byte(path, at, written[at] ^ 1)
    with damaged_database.opened(path) as engine:
        with pytest.raises(StoreCorrupt, match=r"a page does not match its checksum; restore the last backup"):
            list(engine.every())
        assert engine.remember("a new one").id


def test_a_text_that_does_not_match_its_hash(path: Path) -> None:
    """Whatever changed it, and whether or not the file has page checksums."""
    memory_id = change_text(path)
    with damaged_database.opened(path) as engine:
        for read in (
            lambda: engine.get(memory_id),
            lambda: engine.search("drawer tee 7", mode="keyword", limit=300),
            lambda: engine.timeline(limit=500),
            lambda: list(engine.every()),
        ):
            with pytest.raises(StoreCorrupt, match=f"memory {memory_id} is damaged") as raised:
                read()
            assert raised.value.ids == (memory_id,)
        others = [each.id for each in engine.timeline(limit=3).entries]
        assert [memory.id for memory in engine.get(others)] == others


@with_checksums
def test_a_build_without_the_vfs_does_not_touch_a_store_with_checksums(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write pages whose checksums are wrong."""
    before = path.read_bytes()
    monkeypatch.setattr(page_checksums, "load", lambda: False)
    monkeypatch.setattr(page_checksums, "verified", lambda _: False)
    with pytest.raises(StoreUnavailable, match="pip install --upgrade apsw"):
        damaged_database.opened(path)
    assert path.read_bytes() == before


def test_a_build_without_the_vfs_makes_stores_without_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_checksums, "load", lambda: False)
    with nacre.open(tmp_path / "plain.db", embedder=Hashing()) as engine:
        engine.remember("tea")
        assert engine.search("tea").hits
    assert header(tmp_path / "plain.db")[RESERVED_BYTES_AT] == 0


@with_checksums
def test_a_backup_has_page_checksums_too(path: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy.db", tmp_path / "restored.db"
    with damaged_database.opened(path) as engine:
        engine.remember_many(f"in the write-ahead log {number}" for number in range(300))
        engine.backup(copy)
    nacre.restore_backup(copy, restored)
    with damaged_database.opened(restored) as engine:
        assert len(list(engine.every())) == 239 + 300
    db = apsw.Connection(str(restored))
    assert page_checksums.verified(db)
    assert db.execute("PRAGMA integrity_check").get == "ok"
    assert schema.has_page_checksums(db)
    db.close()


def test_which_memories_are_damaged(path: Path) -> None:
    changed = change_text(path)
    with damaged_database.opened(path) as engine:
        every = {memory.id: memory.text for memory in read_one_by_one(engine)}
    written = path.read_bytes()
    at = written.index(b"Ada Lovelace keeps tea number 11 ")
    with_byte(path, at, written[at] ^ 1)
    db = open_file(path)
    found = list(damaged_memories(db))
    db.close()
    assert changed in found
    assert any(every[each].startswith("Ada Lovelace keeps tea number 11 ") for each in found if each != changed)
    assert len(found) < 20  # others on the same page cannot be read either
    with damaged_database.opened(path) as engine:
        for memory_id in every.keys() - set(found):
            assert engine.get(memory_id)[0].text == every[memory_id]


def read_one_by_one(engine: nacre.Nacre) -> list[nacre.Memory]:
    store = engine._store
    assert isinstance(store, SqliteStore)
    found: list[nacre.Memory] = []
    with store._connections.reading() as db:
        ids = [each for (each,) in db.execute("SELECT id FROM memories").fetchall()]
    for each in ids:
        with suppress(StoreCorrupt):
            found += store.get([str(each)]).values()
    return found
