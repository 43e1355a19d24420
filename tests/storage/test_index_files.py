"""Cache files that are spoiled, of another store or history, missing, or cannot be written: the answers stay right."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nacre
from index_files import (
    QUESTIONS,
    age,
    all_answers,
    cache_files,
    cache_folder,
    check,
    damage_header,
    empty,
    flower_texts,
    lengthen,
    live_memories,
    not_an_object,
    randomise,
    reopened,
    settled,
    sizes,
    space_of,
    truncate,
)
from nacre.analysis import tokenizer
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite.index import segment
from nacre.storage.sqlite.index import space_index as sqlite_index

# Uncached, or else a search would not come to the caches meant here.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncached")]


# ---------------------------------------------------------------- files that do not fit


def wrong_format(file: Path) -> None:
    written = f'"format": {segment._FORMAT}'.encode()
    assert file.read_bytes().count(written) == 1
    file.write_bytes(file.read_bytes().replace(written, b'"format": 9', 1))


def with_header(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Another header, with the right checksum."""
    written = file.read_bytes()
    header = json.loads(written[: 4096 - segment._CHECKSUM_BYTES])
    change(header)
    file.write_bytes(segment._sealed(json.dumps(header).encode()) + written[4096:])


def without_an_array(file: Path) -> None:
    with_header(file, lambda header: header["arrays"].pop("docs"))


def past_the_end(file: Path) -> None:
    with_header(file, lambda header: header["arrays"]["rows"].__setitem__(2, file.stat().st_size - 8))


def future(file: Path) -> None:
    """Named after an event that never was, as after restoring an older backup."""
    age(file.rename(file.with_name(f"{file.name.partition('-')[0]}-0-999999.segment")))


SPOILED = [
    damage_header,
    truncate,
    lengthen,
    randomise,
    empty,
    wrong_format,
    not_an_object,
    without_an_array,
    past_the_end,
    future,
]


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_spoiled_file_is_dropped(
    path: Path, filled: nacre.Nacre, spoil: Callable[[Path], None], loads: list[int]
) -> None:
    filled.close()
    (file,) = cache_files(path, ".segment")
    right = file.read_bytes()
    spoil(file)
    with reopened(path) as engine:
        check(engine)
        settled(engine)
        assert set(loads) == {50}
        (fresh,) = cache_files(path)  # made anew
        assert fresh.name == file.name
        assert fresh.read_bytes() == right
    loads.clear()
    with reopened(path) as engine:
        check(engine)
        assert cache_files(path) == [fresh]
        assert loads == []


@pytest.mark.parametrize("name", ["0-999", "7-50", "50-999", "x-y", "0-50-9", "0"])
def test_a_file_that_fits_nowhere_does_no_harm(path: Path, filled: nacre.Nacre, name: str) -> None:
    """It may be of an event that this reader does not see yet."""
    filled.close()
    (file,) = cache_files(path)
    shutil.copyfile(file, file.with_name(f"{file.name.partition('-')[0]}-{name}.segment"))
    with reopened(path) as engine:
        check(engine, limit=100)
        engine.remember_many(flower_texts(30, first=50))
        check(engine, limit=100)
        settled(engine)
    with reopened(path) as engine:
        check(engine, limit=100)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("spoil", [truncate, randomise, Path.unlink])
def test_one_of_several_files_is_spoiled(
    path: Path, filled: nacre.Nacre, spoil: Callable[[Path], None], which: int
) -> None:
    """What comes before the missing one is still of use, what comes after it is not."""
    filled.remember_many(flower_texts(12, first=50))
    check(filled, QUESTIONS[:1])
    settled(filled)
    filled.close()
    files = cache_files(path, ".segment")
    assert len(files) == 2
    spoil(files[which])
    for _ in range(2):
        with reopened(path) as engine:
            check(engine, limit=100)
            settled(engine)
            check(engine, limit=100)
    reached = 0
    ranges = [tuple(map(int, file.stem.split("-")[1:])) for file in cache_files(path)]
    for after, to in sorted(ranges):  # nothing is left that follows nothing
        assert after == reached
        reached = to


def test_a_file_of_another_store_is_dropped(path: Path, filled: nacre.Nacre, tmp_path: Path, loads: list[int]) -> None:
    """The same space, number of events and texts, in another order."""
    filled.close()
    other = tmp_path / "other.db"
    with nacre.open(other, embedder=Hashing()) as engine:
        engine.remember_many(reversed(flower_texts(50)))
        check(engine)
    shutil.copytree(cache_folder(other), cache_folder(path), dirs_exist_ok=True)
    loads.clear()
    with reopened(path) as engine:
        check(engine)
        assert loads == [50]


def test_a_file_of_a_diverged_history_is_dropped(path: Path, filled: nacre.Nacre, tmp_path: Path) -> None:
    """A store restored from a backup has other events under the same numbers."""
    filled.close()
    backup = tmp_path / "backup"
    shutil.copyfile(path, backup)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=50))
        check(engine)  # writes a file as of event 80
        settled(engine)
    shutil.copyfile(backup, path)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=200))
        check(engine)
        check(engine, [f"rose number {number}" for number in range(200, 230)], limit=3)
    with reopened(path) as engine:
        check(engine)


def test_a_store_restored_to_before_its_file(path: Path, filled: nacre.Nacre, tmp_path: Path) -> None:
    filled.close()
    backup = tmp_path / "backup"
    shutil.copyfile(path, backup)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        settled(engine)
    shutil.copyfile(backup, path)
    with reopened(path) as engine:
        check(engine, limit=60)


def test_a_file_of_another_format_is_made_anew(
    path: Path, filled: nacre.Nacre, loads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = all_answers(filled)
    filled.close()
    for other_format in (segment._FORMAT + 1, segment._FORMAT):  # a newer version, and the older one again
        monkeypatch.setattr(segment, "_FORMAT", other_format)
        loads.clear()
        with reopened(path) as engine:
            assert all_answers(engine) == before
            assert loads == [50]


def test_words_that_another_version_made_are_made_anew(
    path: Path, filled: nacre.Nacre, loads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the rows change, and so do their hashes in the files."""
    filled.close()
    monkeypatch.setattr(tokenizer, "VERSION", tokenizer.VERSION + 1)
    with reopened(path) as engine:
        check(engine)
        settled(engine)
        assert loads == [50]
        (fresh,) = cache_files(path)
        header = json.loads(fresh.read_bytes()[: 4096 - segment._CHECKSUM_BYTES])
        assert header["stamp"]["words_version"] == tokenizer.VERSION


# ---------------------------------------------------------------- folders


@pytest.mark.parametrize("when", ["open", "closed"])
def test_deleting_the_cache_folder_changes_nothing(path: Path, filled: nacre.Nacre, when: str) -> None:
    before = all_answers(filled)
    if when == "closed":
        filled.close()
    shutil.rmtree(cache_folder(path))
    with reopened(path) as engine:
        assert all_answers(engine) == before
    if when == "open":
        shutil.rmtree(cache_folder(path))
        assert all_answers(filled) == before
        filled.remember_many(flower_texts(30, first=50))
        check(filled)
        settled(filled)
        check(filled)
        filled.close()
        with reopened(path) as engine:
            check(engine)


def test_a_cache_folder_that_cannot_be_made(path: Path, low: pytest.MonkeyPatch) -> None:
    """Without a place for files everything still works, and nobody tries again and again."""
    tries: list[segment.Stamp] = []
    write = segment.Files.write

    def counting(files: segment.Files, stamp: segment.Stamp, *others: Any) -> Any:
        tries.append(stamp)
        return write(files, stamp, *others)

    low.setattr(segment.Files, "write", counting)
    cache_folder(path).write_text("in the way")
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        settled(engine)  # it does not try for ever
        engine.rebuild()
        check(engine)
        engine.purge(live_memories(engine)[0].id)
        check(engine)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        settled(engine)
        check(engine)
        assert len(tries) == 1


def test_a_disk_that_is_full_for_a_while(path: Path, low: pytest.MonkeyPatch) -> None:
    """In the meantime nothing is kept; after it everything is, also by a process that goes on."""
    low.setattr(sqlite_index, "UNWRITABLE_S", 0.05)
    full = True
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "no space left")
        fsync(descriptor)

    low.setattr(os, "fsync", failing)
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        check(engine)
        settled(engine)
        assert cache_files(path) == []  # nothing by half
        full = False
        time.sleep(0.05)
        engine.remember_many(flower_texts(30, first=50))
        check(engine)
        settled(engine)
        check(engine)
        assert len(cache_files(path)) == 1
    with reopened(path) as engine:
        check(engine)


def test_a_disk_that_is_too_full_to_merge(
    path: Path, filled: nacre.Nacre, low: pytest.MonkeyPatch, loads: list[int]
) -> None:
    """Room is asked for before it is written to, and the files that were to be merged stay."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    low.setattr(segment, "_make_room", full)
    filled.remember_many(flower_texts(30, first=50))
    check(filled, limit=100)
    settled(filled)
    check(filled, limit=100)
    assert sizes(filled) == [80]
    assert len(cache_files(path)) == 2
    filled.close()
    loads.clear()
    with reopened(path) as engine:
        check(engine, limit=100)
        assert loads == []


def test_room_is_made_where_the_system_does_not_help(path: Path, filled: nacre.Nacre, low: pytest.MonkeyPatch) -> None:
    low.delattr(os, "posix_fallocate", raising=False)
    low.setattr(segment, "_ZEROS", 100)
    filled.remember_many(flower_texts(30, first=50))
    check(filled, limit=100)
    settled(filled)
    assert [part.saved for part in space_of(filled).parts] == [True]
    with reopened(path) as engine:
        check(engine, limit=100)
        assert sizes(engine) == [80]


def test_what_a_killed_process_left_is_cleared(path: Path, filled: nacre.Nacre) -> None:
    """A file in the making may be another process's: only an old one is dropped."""
    filled.close()
    (file,) = cache_files(path)
    old, new = (file.with_name(f"{file.name}.{name}.tmp") for name in ("00000000", "11111111"))
    for each in (old, new):
        each.write_bytes(b"half a file")
    age(old)
    with reopened(path) as engine:
        check(engine)
        settled(engine)
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("bite", [11, 1_000])
def test_rebuild_changes_no_answer(path: Path, filled: nacre.Nacre, low: pytest.MonkeyPatch, bite: int) -> None:
    low.setattr(sqlite_index, "BITE_EVENTS", bite)
    ids = [memory.id for memory in live_memories(filled)]
    filled.forget(ids[:3])
    filled.update(ids[4], text="lily lily lily")
    filled.purge(ids[5])
    before = all_answers(filled)
    for _ in range(3):
        filled.rebuild()
        assert all_answers(filled) == before
        assert sizes(filled) == [46]
        settled(filled)
        assert len(cache_files(path)) == 1  # and it is there


def test_stats_has_the_size_of_the_files(path: Path, filled: nacre.Nacre) -> None:
    assert filled.stats().index_bytes == sum(each.stat().st_size for each in cache_folder(path).iterdir()) > 0
    shutil.rmtree(cache_folder(path))
    assert filled.stats().index_bytes == 0
