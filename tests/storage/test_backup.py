"""Backups: a copy of the store at one moment, what changed since, what is kept, and a store made of it again."""

from __future__ import annotations

import errno
import re
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.query.lenses import Lens
from nacre.storage.reference import MemoryStore
from nacre.storage.sqlite import schema
from nacre.storage.sqlite.backup import chain, files
from nacre.types.backups import Backup, Keep
from older_files import to_eleventh
from store_checks import check_derived_tables, check_integrity, check_words_of_relations

SECRET = "xylophone-4711"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "backups"
    made.mkdir()
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "restored.db"


def contents(path: Path) -> dict[str, Any]:
    """All rows of all tables. A restored store counts its revisions from another number on."""
    with closing(
        apsw.Connection(str(path))
    ) as db:  # a second SQLite in one process would release the locks of the first
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {name: sorted(map(repr, db.execute(f"SELECT * FROM {name}"))) for name in tables if name != "fts"}
    found["meta"] = [row for row in found["meta"] if "'revision'" not in row]
    return found


def restored(backup: Path, target: Path) -> dict[str, Any]:
    nacre.restore_backup(backup, target, force=True)
    return contents(target)


def opened(path: Path, **options: Any) -> nacre.Nacre:
    return nacre.open(path, embedder=Hashing(), **options)


def backups_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


# ---------------------------------------------------------------- one backup


def test_a_backup_has_everything_up_to_its_moment(
    memory: nacre.Nacre, path: Path, tmp_path: Path, target: Path
) -> None:
    memory.remember("Ada lives in Paris", facts=[nacre.NewFact(subject="Ada", predicate="lives in", object="Paris")])
    memory.search("Ada")
    memory.forget(memory.remember("This was wrong").id)
    made = memory.backup(tmp_path / "one.db").backup
    expected = contents(path)
    memory.remember("This came later")
    assert restored(made.path, target) == expected
    check_integrity(target)
    check_derived_tables(target)
    assert (made.kind, made.memories, made.forgotten, made.base) == ("full", 1, 1, None)
    with opened(target) as copy:
        assert [hit.text for hit in copy.search("Ada").hits] == ["Ada lives in Paris"]
        assert copy.stats().memories == 1
        copy.remember("It can be written")


def test_every_sqlite_can_read_a_full_backup(memory: nacre.Nacre, tmp_path: Path) -> None:
    memory.remember("Open formats outlive programs")
    made = memory.backup(tmp_path / "one.db").backup
    assert made.path.read_bytes()[18:20] == b"\x01\x01"  # no write-ahead log, which a read-only folder has no room for
    with closing(sqlite3.connect(f"{made.path.as_uri()}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT text FROM memories").fetchall() == [("Open formats outlive programs",)]
    assert files.verified(made.path) == made  # reading has changed nothing


def test_a_backup_says_what_it_is(memory: nacre.Nacre, folder: Path) -> None:
    memory.remember("One")
    made = memory.backup(folder).backup
    assert re.fullmatch(rf"nacre-{made.created:%Y%m%dT%H%M%SZ}-{made.id}-full\.db", made.path.name)
    assert made.seq == 1
    assert made.schema_version == schema.VERSION
    assert made.size_bytes == made.path.stat().st_size
    assert files.read(made.path) == made
    assert backups_in(folder) == [made.path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_the_owner_can_read_a_backup_and_what_is_restored(memory: nacre.Nacre, folder: Path, target: Path) -> None:
    full, increment = memory.backup(folder).backup, memory.backup(folder, since="last").backup
    nacre.restore_backup(increment.path, target)
    for path in (full.path, increment.path, target):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_backup_is_not_opened_as_a_store(memory: nacre.Nacre, tmp_path: Path) -> None:
    made = memory.backup(tmp_path / "one.db").backup
    with pytest.raises(nacre.StoreCorrupt, match=r"is a backup; .*nacre restore .*one\.db --store PATH"):
        opened(made.path)
    assert files.verified(made.path) == made


def test_progress_ends_with_all_pages(memory: nacre.Nacre, tmp_path: Path, target: Path) -> None:
    seen: list[nacre.Progress] = []
    made = memory.backup(tmp_path / "one.db", progress=seen.append).backup
    assert seen[-1] == nacre.Progress(made.pages, made.pages)
    seen.clear()
    nacre.restore_backup(made.path, target, progress=seen.append)
    assert seen[-1] == nacre.Progress(made.pages, made.pages)


# ---------------------------------------------------------------- what changed since


def _changes(memory: nacre.Nacre) -> Iterator[Callable[[], object]]:
    """Every verb that changes a store, each as a step."""
    fact = nacre.NewFact(subject="Ada", predicate="lives in", object="Paris")
    ids: dict[str, str] = {}

    def remember(name: str, text: str, **fields: Any) -> Callable[[], object]:
        return lambda: ids.__setitem__(name, memory.remember(text, **fields).id)

    yield lambda: None
    yield remember("ada", "Ada lives in Paris", facts=[fact], tags=["people"])
    yield remember("tea", "Tea is made with boiling water", session="kitchen")
    yield lambda: memory.update(ids["tea"], text="Tea is made with water of 90 degrees", tags=["kitchen"])
    yield lambda: memory.forget(ids["tea"])
    yield lambda: memory.restore(ids["tea"])
    yield lambda: memory.add_facts(ids["ada"], [replace(fact, object="London")])
    yield lambda: memory.reinforce(ids["ada"])
    yield lambda: memory.drop_facts(memory.facts(history=True)[0].fact.id)
    yield lambda: memory.add_entity("Kettle", aliases=["pot"], memory_ids=[ids["tea"]])
    yield lambda: memory.drop_entity("Kettle")
    yield lambda: memory.save_lens(Lens(name="kitchen", where=nacre.Filter(tags_all=("kitchen",))))
    yield lambda: memory.drop_lens("kitchen")
    yield remember("new", "Ada lives in Rome now", supersedes=[])
    yield lambda: memory.unlink(ids["new"], ids["ada"])
    yield lambda: (memory.search("tea", session="s"), memory.receipts())  # which waits for the log
    yield lambda: memory.clear_log()
    yield remember("secret", f"The password of the garden is {SECRET}")
    yield lambda: memory.purge(ids["secret"])
    yield lambda: memory.rebuild()
    yield lambda: memory.remember_many(f"Memory number {number} about many things" for number in range(300))
    yield lambda: memory.purge([each.id for each in memory.every() if "number" in each.text])


@pytest.mark.slow
def test_every_kind_of_change_is_in_an_incremental_backup(
    memory: nacre.Nacre, path: Path, folder: Path, target: Path
) -> None:
    taken: list[tuple[Backup, dict[str, Any]]] = []
    for step in _changes(memory):
        step()
        taken.append((memory.backup(folder, since="last").backup, contents(path)))
    assert [made.kind for made, _ in taken] == ["full"] + ["incremental"] * (len(taken) - 1)
    for made, expected in taken:
        assert restored(made.path, target) == expected
    check_integrity(target)
    check_derived_tables(target)
    check_words_of_relations(target)


def test_an_incremental_backup_is_small(memory: nacre.Nacre, folder: Path) -> None:
    memory.remember_many(f"Memory number {number} about something else" for number in range(500))
    full = memory.backup(folder).backup
    memory.remember("One more")
    increment = memory.backup(folder, since="last").backup
    assert increment.base == full.checksum
    assert increment.size_bytes < full.size_bytes / 10


@pytest.mark.slow
def test_a_store_that_shrinks_and_grows_again(memory: nacre.Nacre, path: Path, folder: Path, target: Path) -> None:
    many = [each.id for each in memory.remember_many(f"Memory number {number} of many" for number in range(300))]
    sizes = [memory.backup(folder).backup.pages]
    memory.purge(many)
    with closing(apsw.Connection(str(path))) as db:
        db.execute("VACUUM")
    sizes.append(memory.backup(folder, since="last").backup.pages)
    memory.remember_many(f"Another one, number {number}, of many" for number in range(300))
    last = memory.backup(folder, since="last").backup
    sizes.append(last.pages)
    assert sizes[0] > sizes[1] < sizes[2]
    assert restored(last.path, target) == contents(path)


def test_the_first_of_a_folder_is_full_and_stores_do_not_mix(memory: nacre.Nacre, folder: Path, tmp_path: Path) -> None:
    first = memory.backup(folder, since="last")
    with opened(tmp_path / "other.db") as other:
        second = other.backup(folder, since="last")
    assert [each.backup.kind for each in (first, second)] == ["full", "full"]
    assert first.notes == ("this is the first backup of this store in the folder, and a full one",)
    assert memory.backup(folder, since="last").backup.base == first.backup.checksum


def test_a_damaged_last_backup_is_not_continued(memory: nacre.Nacre, folder: Path) -> None:
    last = memory.backup(folder).backup.path
    flip(last, 5_000)
    made = memory.backup(folder, since="last")
    assert made.backup.kind == "full"
    assert "its checksum differs" in made.notes[0]


def test_a_restored_store_is_continued_by_a_full_backup(path: Path, folder: Path) -> None:
    with opened(path) as memory:
        memory.remember("One")
        first = memory.backup(folder).backup
        memory.remember("Two")
        memory.backup(folder, since="last")
    nacre.restore_backup(first.path, path, force=True)
    with opened(path) as memory:
        made = memory.backup(folder, since="last")
    assert (made.backup.kind, made.backup.memories) == ("full", 1)
    assert "the store was replaced since" in made.notes[0]


# ---------------------------------------------------------------- purged text


def test_a_backup_after_a_purge_names_those_that_have_the_text_still(
    memory: nacre.Nacre, folder: Path, target: Path
) -> None:
    memory.backup(folder)  # before there was anything to purge
    secret = memory.remember(f"The password of the garden is {SECRET}").id
    old = memory.backup(folder).backup.path
    memory.purge(secret)
    increment = memory.backup(folder, since="last")
    note = f"1 backup still has text that was purged later: {old.name}; "
    assert increment.notes == (f"{note}make a full backup, then delete it to be rid of it",)
    assert SECRET.encode() in old.read_bytes()
    nacre.restore_backup(increment.backup.path, target)
    for path in (increment.backup.path, target):
        assert SECRET.encode() not in path.read_bytes()
    full = memory.backup(folder)
    assert full.notes == (f"{note}delete it to be rid of it",)
    increment.backup.path.unlink()
    old.unlink()
    assert memory.backup(folder).notes == ()


# ---------------------------------------------------------------- restoring


def test_a_store_that_is_there_is_replaced_only_with_force(memory: nacre.Nacre, folder: Path, target: Path) -> None:
    memory.remember("From the backup")
    made = memory.backup(folder).backup
    with opened(target) as other:
        other.remember("There before")
    before = contents(target)
    with pytest.raises(nacre.InvalidInput, match="exists; replace it with --force"):
        nacre.restore_backup(made.path, target)
    assert contents(target) == before
    nacre.restore_backup(made.path, target, force=True)
    with opened(target) as other:
        assert [each.text for each in other.every()] == ["From the backup"]


def test_nothing_of_the_old_store_is_left_beside_the_new_one(
    memory: nacre.Nacre, folder: Path, target: Path, low: pytest.MonkeyPatch
) -> None:
    assert low is not None
    made = memory.backup(folder).backup
    with opened(target) as other:
        other.remember_many(f"The old store had number {number}" for number in range(60))
        other.search("number", mode="hybrid")
        assert target.with_name("restored.db-cache").is_dir()
        nacre.restore_backup(made.path, target, force=True)
    names = {each.name for each in target.parent.iterdir() if "restored" in each.name}
    assert names - {"restored.db-cache"} == {"restored.db"}


def test_the_log_of_a_store_that_is_gone_is_not_applied(memory: nacre.Nacre, folder: Path, target: Path) -> None:
    memory.remember("From the backup")
    made = memory.backup(folder).backup
    with opened(target) as other:
        other.remember("In the write-ahead log")
        log = target.with_name("restored.db-wal")
        left = log.read_bytes()
    target.unlink()
    log.write_bytes(left)
    nacre.restore_backup(made.path, target)
    assert not log.exists()
    with opened(target) as other:
        assert [each.text for each in other.every()] == ["From the backup"]


@pytest.mark.parametrize("garbage", [b"not a database at all" * 500, b"", b"SQLite format 3\0" + bytes(5_000)])
def test_a_damaged_store_is_replaced(memory: nacre.Nacre, folder: Path, target: Path, garbage: bytes) -> None:
    memory.remember("From the backup")
    made = memory.backup(folder).backup
    target.write_bytes(garbage)
    target.with_name("restored.db-wal").write_bytes(b"x" * 5_000)
    nacre.restore_backup(made.path, target, force=True)
    with opened(target) as other:
        assert [each.text for each in other.every()] == ["From the backup"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need permissions there")
def test_a_link_to_a_store_stays_one(memory: nacre.Nacre, folder: Path, tmp_path: Path, target: Path) -> None:
    memory.remember("From the backup")
    made = memory.backup(folder).backup
    opened(target).close()
    link = tmp_path / "link.db"
    link.symlink_to(target)
    nacre.restore_backup(made.path, link, force=True)
    assert link.is_symlink()
    with opened(target) as other:
        assert other.stats().memories == 1


def test_a_cached_result_does_not_outlive_a_restore(path: Path, folder: Path) -> None:
    with opened(path) as memory:
        memory.remember("The lamp is green")
        made = memory.backup(folder).backup
        seen = memory._store.sequence()
    nacre.restore_backup(made.path, path, force=True)
    with opened(path) as memory:
        assert memory._store.sequence() > seen


def test_an_older_schema_migrates_when_the_store_is_opened(
    path: Path, tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path):
        pass
    with closing(apsw.Connection(str(path))) as db:
        to_eleventh(db)
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:11])
        older.setattr(schema, "VERSION", 11)
        with nacre.open(path, embedder=None, log=False) as memory:
            made = memory.backup(tmp_path / "old.db").backup
    assert made.schema_version == 11
    nacre.restore_backup(made.path, target)
    with opened(target) as memory:
        assert memory.stats().schema_version == schema.VERSION
        memory.remember("It works")


# ---------------------------------------------------------------- what is refused


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


def refused(source: Path, target: Path, problem: str, kind: type[nacre.NacreError] = nacre.StoreCorrupt) -> None:
    """Nothing is restored, and nothing is left."""
    before = sorted(target.parent.iterdir())
    with pytest.raises(kind, match=problem):
        nacre.restore_backup(source, target)
    assert sorted(target.parent.iterdir()) == before


@pytest.mark.slow
def test_one_bit_anywhere_in_a_backup_is_noticed(memory: nacre.Nacre, folder: Path, target: Path) -> None:
    memory.remember("Bits rot")
    full = memory.backup(folder).backup
    memory.remember("So do others")
    increment = memory.backup(folder, since="last").backup
    for made in (full, increment):
        whole = made.path.read_bytes()
        for place in {*range(0, len(whole), len(whole) // 40), *range(len(whole) - 700, len(whole), 11)}:
            flip(made.path, place)
            refused(
                increment.path,
                target,
                r"backup: .*(damaged|not a backup|not in its folder|schema version)",
                nacre.StoreError,
            )
            made.path.write_bytes(whole)
    nacre.restore_backup(increment.path, target)


def test_what_is_no_backup_is_refused(memory: nacre.Nacre, path: Path, tmp_path: Path, target: Path) -> None:
    made = memory.backup(tmp_path / "one.db").backup.path
    refused(path, target, "is not a backup of Nacre")
    refused(tmp_path / "none.db", target, "cannot be read", nacre.StoreUnavailable)
    refused(tmp_path, target, "cannot be read", nacre.StoreUnavailable)
    made.write_bytes(made.read_bytes()[:-1])
    refused(made, target, "its end is missing")
    made.write_bytes(b"")
    refused(made, target, "not a backup")


def test_a_chain_with_a_gap_is_refused(memory: nacre.Nacre, folder: Path, tmp_path: Path, target: Path) -> None:
    made = [memory.backup(folder).backup]
    for number in range(3):
        memory.remember(f"Number {number}")
        made.append(memory.backup(folder, since="last").backup)
    aside = tmp_path / made[1].path.name
    made[1].path.rename(aside)
    refused(made[3].path, target, rf"{made[2].path.name} continues a backup that is not in its folder")
    aside.rename(made[1].path)
    alone = tmp_path / "alone"
    alone.mkdir()
    refused(made[1].path.rename(alone / made[1].path.name), target, "continues a backup that is not in its folder")


def test_a_delta_of_another_base_is_refused(memory: nacre.Nacre, folder: Path, target: Path) -> None:
    """Its manifest claims a base that it was not made from."""
    memory.remember("One")
    memory.backup(folder)
    memory.remember("Two")
    increment = memory.backup(folder, since="last").backup
    memory.remember_many(f"Number {number}" for number in range(50))
    other = memory.backup(folder).backup
    body = increment.path.read_bytes()[: -increment.path.read_bytes()[::-1].index(b"{") - 1]
    increment.path.write_bytes(body)
    files.finish(increment.path, replace(increment, base=other.checksum, seq=other.seq))
    refused(increment.path, target, "does not fit the backup before it|not those of the store")


def test_a_newer_schema_is_refused(memory: nacre.Nacre, tmp_path: Path, target: Path, monkeypatch: Any) -> None:
    made = memory.backup(tmp_path / "one.db").backup
    monkeypatch.setattr(schema, "VERSION", schema.VERSION - 1)
    refused(made.path, target, "schema version .* upgrade Nacre", nacre.StoreTooNew)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), apsw.FullError("full")])
def test_a_full_disk_is_said_to_be_one(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(nacre.StoreFull, match=r"backup: no room left for .*; free some space"), files.errors(tmp_path):
        raise error


def test_a_path_that_is_too_long_is_an_error(memory: nacre.Nacre, tmp_path: Path) -> None:
    made = memory.backup(tmp_path / "one.db").backup
    for call in (
        lambda: memory.backup(tmp_path / ("x" * 500)),
        lambda: nacre.restore_backup(tmp_path / ("x" * 500), tmp_path / "new.db"),
        lambda: nacre.restore_backup(made.path, tmp_path / ("x" * 500)),
        lambda: nacre.restore_backup(made.path, tmp_path / "none" / "new.db"),
    ):
        with pytest.raises(nacre.StoreUnavailable):
            call()


def test_a_backup_is_not_replaced_by_itself(memory: nacre.Nacre, tmp_path: Path) -> None:
    made = memory.backup(tmp_path / "one.db").backup
    with pytest.raises(nacre.InvalidInput, match="is the backup itself"):
        nacre.restore_backup(made.path, made.path, force=True)
    assert files.verified(made.path) == made


def test_a_damaged_store_is_not_backed_up(memory: nacre.Nacre, path: Path, folder: Path, tmp_path: Path) -> None:
    memory.remember_many(f"Number {number} of a store that breaks" for number in range(200))
    with memory._store._connections.exclusive() as db:  # type: ignore[attr-defined]
        db.execute("PRAGMA wal_checkpoint (TRUNCATE)")
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories_by_time'").get
    data = bytearray(path.read_bytes())
    data[(root - 1) * 4096 + 200 : root * 4096] = bytes(4096 - 200)
    path.write_bytes(data)
    for to in (folder, tmp_path / "one.db"):
        with pytest.raises(
            nacre.StoreCorrupt, match="no backup was written; restore the last backup with `nacre restore"
        ):
            memory.backup(to)
    assert backups_in(folder) == []
    assert not (tmp_path / "one.db").exists()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"to": "store.db"}, "to"),
        ({"to": "new.db", "since": "last"}, "to"),
        ({"to": "new.db", "keep": "7d"}, "to"),
        ({"to": 7}, "to"),
        ({"to": "a\0b"}, "to"),
        ({"to": ""}, "to"),
        ({"to": ".", "since": "yesterday"}, "since"),
        ({"to": ".", "keep": ""}, "keep"),
        ({"to": ".", "keep": "12m7d"}, "keep"),
        ({"to": ".", "keep": "7"}, "keep"),
        ({"to": ".", "keep": 7}, "keep"),
    ],
)
def test_bad_arguments_name_the_field(
    arguments: dict[str, Any], field: str, memory: nacre.Nacre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store.db").touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(nacre.InvalidInput) as error:
        memory.backup(**arguments)
    assert error.value.field == field
    assert sorted(tmp_path.iterdir()) == before


def test_a_store_without_a_file_has_no_backup(tmp_path: Path, folder: Path) -> None:
    with Nacre(MemoryStore(), None) as memory, pytest.raises(nacre.StoreUnavailable, match="no file"):
        memory.backup(folder)
    missing = nacre.open(tmp_path / "none.db", create=False, embedder=None)
    with missing as memory, pytest.raises(nacre.StoreUnavailable, match="does not exist, so there is nothing to"):
        memory.backup(folder)
    with opened(tmp_path / "one.db", confined=True) as memory, pytest.raises(nacre.InvalidInput, match="all spaces"):
        memory.backup(folder)


# ---------------------------------------------------------------- what is kept

DAY = timedelta(days=1)
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)  # a Monday


def made_at(*days: float, base_of: Sequence[int | None] = ()) -> list[Backup]:
    """Backups of so many days before noon, the oldest first; some continue another."""
    bases = base_of or [None] * len(days)
    return [
        Backup(
            path=Path(f"{place}"),
            id=f"{place}",
            kind="full" if base is None else "incremental",
            created=NOON - ago * DAY,
            store_id="s",
            schema_version=1,
            seq=place,
            memories=0,
            forgotten=0,
            pages=1,
            page_bytes=4096,
            pages_checksum="",
            base=None if base is None else f"{base}",
            checksum=f"{place}",
            size_bytes=1,
        )
        for place, (ago, base) in enumerate(zip(days, bases, strict=True))
    ]


@pytest.mark.parametrize(
    ("days", "keep", "kept"),
    [
        ([3, 2, 1, 0], Keep(days=2), [1, 0]),
        ([3, 2, 1, 0], Keep(), [0]),  # the newest stays
        ([2.3, 2.2, 2.1, 0.2, 0.1, 0], Keep(days=2), [2.1, 0]),  # the last of each day
        ([9, 8, 7, 1, 0], Keep(weeks=2), [1, 0]),  # Sunday the 14th ends the week before
        ([80, 50, 40, 16, 3, 0], Keep(months=3), [50, 16, 0]),  # of April, May and June
        ([80, 50, 9, 8, 1, 0], Keep(days=2, weeks=2, months=3), [80, 50, 1, 0]),
        ([1, 0], Keep(days=7, weeks=4, months=12), [1, 0]),
    ],
)
def test_one_of_each_day_week_and_month_is_kept(days: list[float], keep: Keep, kept: list[float]) -> None:
    backups = made_at(*days)
    gone = chain.superfluous(backups, keep, UTC)
    assert [(NOON - each.created) / DAY for each in backups if each not in gone] == pytest.approx(kept)


def test_what_a_kept_backup_continues_is_kept() -> None:
    backups = made_at(9, 8, 7, 6, 1, 0, base_of=[None, 0, 1, None, 3, 4])
    assert [each.id for each in chain.superfluous(backups, Keep(days=1), UTC)] == ["0", "1", "2"]
    assert [each.id for each in chain.superfluous(backups[:3], Keep(days=1), UTC)] == []


def test_what_it_continues_is_kept_though_the_clock_went_back() -> None:
    backups = made_at(9, 8, 7, 0, base_of=[None, 2, 0, 1])
    assert chain.superfluous(backups, Keep(), UTC) == []


def test_a_year_of_daily_backups_stays_bounded_and_whole() -> None:
    """A full backup on Sundays, increments on other days, as docs/operations.md advises."""
    left: list[Backup] = []
    for day, each in enumerate(made_at(*range(365, 0, -1), base_of=[d - 1 if d % 7 else None for d in range(365)])):
        left.append(each)
        gone = chain.superfluous(left, Keep(7, 4, 12), UTC)
        left = [each for each in left if each not in gone]
        assert chain.needed_by(left[-1], left)[-1].id == f"{day}"
    for each in left:
        chain.needed_by(each, left)
    assert len({each.created.month for each in left}) == 12
    assert len(left) < 80


def test_a_day_is_one_of_the_user() -> None:
    backups = made_at(0.6, 0.4)  # 21:36 and 2:24 in UTC
    assert len(chain.superfluous(backups, Keep(days=2), UTC)) == 0
    zone = datetime.fromisoformat("2026-01-01T00:00+05:00").tzinfo
    assert len(chain.superfluous(backups, Keep(days=2), zone)) == 1


def test_only_own_backups_of_this_store_are_removed(path: Path, folder: Path, tmp_path: Path) -> None:
    now = NOON

    def clock() -> datetime:
        return now

    with opened(tmp_path / "other.db") as other:
        others = {other.backup(folder).backup.path, other.backup(folder / "named-by-hand.db").backup.path}
    for name in ("notes.txt", "nacre-20200101T000000Z-00000000-full.db", "nacre.db"):
        (folder / name).write_text("not a backup", "utf-8")
        others.add(folder / name)
    with opened(path, clock=clock) as memory:
        by_hand = memory.backup(folder / "by-hand.db").backup.path
        old = []
        for days in range(5, 0, -1):
            now = NOON - days * DAY
            old.append(memory.backup(folder).backup.path)
        now = NOON
        made = memory.backup(folder, keep="2d")
    assert made.removed == tuple(old[:-1])
    assert {folder / name for name in backups_in(folder)} == others | {by_hand, old[-1], made.backup.path}
