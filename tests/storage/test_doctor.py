"""`nacre doctor`: what is wrong is said, what can be made from the memories is repaired, the rest can be salvaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import apsw
import pytest

import nacre
from command_line import Cli
from index_files import cache_files, cache_folder
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite.checkup import CHECKS
from nacre.storage.sqlite.doctor import REPAIRS
from nacre.storage.sqlite.index import space_index
from nacre.types.search import Mode
from store_checks import check_derived_tables, check_integrity

MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
TEXTS = [f"memory{number} of herons and boats, {'again ' * (number % 40)}and so on" for number in range(60)]


def fill(path: Path) -> list[str]:
    with nacre.open(path, embedder=Hashing()) as memory:
        ids = [receipt.id for receipt in memory.remember_many(TEXTS)]
        memory.update(ids[5], text="changed to kingfishers")
        memory.forget(ids[7])
        memory.state_fact(nacre.NewFact(subject="heron", predicate="nests at", object="the weir"), ids[9])
        memory.search("herons", mode="semantic")
        return ids


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """A store with index files, to copy."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(space_index, "SAVED_MEMORIES_MIN", 8)
        yield folder / "memory.db", fill(folder / "memory.db")


@pytest.fixture
def store(filled: tuple[Path, list[str]], tmp_path: Path) -> Path:
    shutil.copytree(filled[0].parent, tmp_path / "copy")
    for each in (tmp_path / "copy").rglob("*"):
        each.chmod(0o700 if each.is_dir() else 0o600)
    assert cache_files(tmp_path / "copy" / filled[0].name)
    return tmp_path / "copy" / filled[0].name


def problems(health: nacre.Health) -> set[str]:
    return {each.check for each in health.problems}


def execute(path: Path, sql: str, *parameters: object) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute(sql, parameters)


# ---------------------------------------------------------------- checks


def test_a_store_in_order(store: Path) -> None:
    health = nacre.check_store(store)
    assert health.sound
    assert [each.check for each in health.findings if each.level == "fine"] == list(CHECKS)
    with nacre.open(store, embedder=Hashing()) as memory:
        assert memory.check().sound


def flip_cache(path: Path) -> None:
    cached = cache_files(path)[0]
    content = bytearray(cached.read_bytes())
    content[len(content) // 2] ^= 4
    cached.write_bytes(content)


DAMAGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a count of words": (
        "words",
        lambda path: execute(path, "UPDATE vocabulary SET memories = 99 WHERE term = 'heron'"),
    ),
    "a count of memories": ("words", lambda path: execute(path, "UPDATE corpus SET memories = 1")),
    "missing in the full-text index": ("words", lambda path: execute(path, "DELETE FROM fts WHERE rowid = 3")),
    "other words": (
        "words",
        lambda path: execute(path, "UPDATE tokens SET words = 'osprey', length = 1 WHERE row = 4"),
    ),
    "no words": ("words", lambda path: execute(path, "DELETE FROM tokens WHERE row = 4")),
    "an index file": ("caches", flip_cache),
    "a text": ("texts", lambda path: execute(path, "UPDATE memories SET text = 'osprey' WHERE row = 2")),
    "a short vector": ("vectors", lambda path: execute(path, "UPDATE passages SET vector = x'00' WHERE passage = 2")),
    "no vector": ("vectors", lambda path: execute(path, "DELETE FROM passages WHERE row = 2")),
    "no numbers": (
        "vectors",
        lambda path: execute(path, "UPDATE passages SET vector = unhex(replace(hex(vector), '0', 'F')) WHERE row = 2"),
    ),
    "a fact of no memory": (
        "integrity",
        lambda path: execute(path, "UPDATE facts SET row = 99999"),
    ),
}
if os.name == "posix":
    DAMAGE["others may read"] = ("permissions", lambda path: path.chmod(0o644))


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_wrong_is_found_and_fixed_if_it_can_be(store: Path, kind: str) -> None:
    check, damage = DAMAGE[kind]
    damage(store)
    found = nacre.check_store(store)
    assert check in problems(found), found
    assert all(each.remedy for each in found.problems)
    after = nacre.check_store(store, fix=True)
    assert (check not in problems(after)) is (check in REPAIRS and check != "integrity"), after
    assert {each.check for each in after.findings if each.fixed} == problems(found) - problems(after)
    if check not in problems(after) and problems(found) <= REPAIRS.keys():
        assert nacre.check_store(store).sound
        check_derived_tables(store)


def test_a_copy_by_a_program_without_checksums_is_accepted_on_request(store: Path, tmp_path: Path) -> None:
    """The standard library copies pages as they are in the log, where they have no checksums yet."""
    copy = tmp_path / "copied.db"
    with nacre.open(store, embedder=Hashing()) as memory:
        memory.remember("one more, which is still in the log")
        code = "import sqlite3, sys; a, b = map(sqlite3.connect, sys.argv[1:]); a.backup(b); b.close(); a.close()"
        subprocess.run([sys.executable, "-c", code, store, copy], check=True)  # its locks are its own
        copy.chmod(0o600)
        found = nacre.check_store(copy)
        assert "integrity" in problems(found)
        assert "another program may have copied the file" in found.problems[0].text
        assert nacre.check_store(copy, fix=True).sound
        with nacre.open(copy, embedder=Hashing()) as accepted:
            assert list(accepted.every()) == list(memory.every())
    check_derived_tables(copy)


def test_time_and_pending_work_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    later = datetime.now(UTC) + timedelta(days=400)
    with nacre.open(path, embedder=Hashing(), clock=lambda: later) as memory:
        memory.remember("from the future")
    with nacre.open(path, embedder=Hashing(), defer_embeddings=True) as memory:
        memory.remember("to be embedded")
    execute(path, "INSERT INTO events (at_us, action, space, row, memory_id) VALUES (?, 'x', 'y', 1, 'z')", 2**52)
    health = nacre.check_store(path)
    assert health.sound
    assert {each.check: each.remedy for each in health.findings if each.level == "note"} == {
        "clock": "check the clock of this machine, and of others that write to the store",
        "pending": "run `nacre reembed`",
    }


def test_a_file_that_cannot_be_opened_is_checked_all_the_same(store: Path, tmp_path: Path) -> None:
    content = bytearray(store.read_bytes())
    content[0:16] = bytes(16)
    store.write_bytes(content)
    health = nacre.check_store(store)
    assert "schema" in problems(health)
    with pytest.raises(nacre.StoreUnavailable, match="does not exist"):
        nacre.check_store(tmp_path / "nowhere.db")
    with pytest.raises(nacre.WrongKey):  # or so it seems
        nacre.salvage_store(store, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_confined_memory_does_not_look_at_all_spaces(store: Path) -> None:
    with (
        nacre.open(store, embedder=Hashing(), confined=True) as memory,
        pytest.raises(nacre.InvalidInput, match="all spaces"),
    ):
        memory.check()


# ---------------------------------------------------------------- salvage


def test_all_of_a_sound_store_is_copied(store: Path, filled: tuple[Path, list[str]], tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    saved = nacre.salvage_store(store, new)
    assert (saved.lost, saved.lost_memories, saved.notes) == ({}, (), ())
    assert saved.copied["memories"] == len(TEXTS)
    unlogged = partial(nacre.open, embedder=Hashing(), log=False)  # what was shown before may move a rank
    with unlogged(store) as old, unlogged(new) as copy:
        assert list(copy.every()) == list(old.every())
        assert copy.facts() == old.facts()
        for each in filled[1]:
            assert copy.history(each) == old.history(each)
            assert copy.get(each) == old.get(each)
        for mode in MODES:
            found = [hit.id for hit in copy.search("memory9 herons", mode=mode).hits]
            assert found == [hit.id for hit in old.search("memory9 herons", mode=mode).hits]
    assert nacre.check_store(new).sound
    check_derived_tables(new)
    check_integrity(new)
    with pytest.raises(nacre.InvalidInput, match="exists already"):
        nacre.salvage_store(store, new)


def pages_but_of_the_schema(path: Path) -> list[int]:
    with closing(apsw.Connection(str(path))) as db:
        return [page for (page,) in db.execute("SELECT pageno FROM dbstat WHERE name <> 'sqlite_schema'")]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_what_can_be_read_is_saved_and_what_is_lost_is_named(
    store: Path, filled: tuple[Path, list[str]], tmp_path: Path, seed: int
) -> None:
    """Whole pages are overwritten, but none of the schema, without which SQLite reads nothing."""
    chance, ids = Random(seed), filled[1]
    with nacre.open(filled[0], embedder=Hashing()) as memory:
        right = {each.id: each for each in memory.get(ids)}
    content = bytearray(store.read_bytes())
    for page in chance.sample(pages_but_of_the_schema(store), 6):
        content[(page - 1) * 4096 + 20 : (page - 1) * 4096 + 2000] = chance.randbytes(1980)
    store.write_bytes(content)
    new = tmp_path / "new.db"
    saved = nacre.salvage_store(store, new)
    with nacre.open(new, embedder=Hashing()) as memory:
        kept = memory.get(ids, missing_ok=True)
        assert {each.id for each in kept} | set(saved.lost_memories) >= set(ids)
        assert {each.id: each.text for each in kept} == {each.id: right[each.id].text for each in kept}
        assert saved.copied.get("memories", 0) == len(kept) == len(ids) - saved.lost.get("memories", 0)
        list(memory.reembed())
    assert nacre.check_store(new).sound
    check_integrity(new)


def test_a_damaged_page_loses_only_the_text_that_was_hit(
    store: Path, filled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """The page does not match its checksum any more, but every other text on it matches its own."""
    content = bytearray(store.read_bytes())
    content[content.index(TEXTS[30].encode()) + 3] ^= 1
    store.write_bytes(content)
    assert problems(nacre.check_store(store)) >= {"integrity", "texts"}
    saved = nacre.salvage_store(store, tmp_path / "new.db")
    assert saved.lost_memories == (filled[1][30],)
    assert saved.lost["memories"] == 1
    assert any("from damaged pages" in note for note in saved.notes)


# ---------------------------------------------------------------- the command


def test_the_command(cli: Cli, store: Path, tmp_path: Path) -> None:
    assert cli("doctor", "--store", str(store)).code == 0
    execute(store, "UPDATE corpus SET memories = 1")
    said = cli("doctor", "--store", str(store))
    assert said.code == 5
    assert "problem  words" in said.out
    assert "`nacre doctor --fix` rebuilds it from the memories" in said.out
    assert said.out.splitlines()[-1] == "1 problem"
    as_json = json.loads(cli("doctor", "--store", str(store), "--json").out)
    assert not as_json["sound"]
    assert [each["check"] for each in as_json["findings"] if each["level"] == "problem"] == ["words"]
    fixed = cli("doctor", "--store", str(store), "--fix")
    assert fixed.code == 0
    assert fixed.out.startswith("fixed    words")
    new = tmp_path / "new.db"
    assert json.loads(cli("doctor", "--store", str(store), "--salvage", str(new), "--json").out)["lost"] == {}
    both = cli("doctor", "--fix", "--salvage", str(tmp_path / "other.db"), "--store", str(store))
    assert both.code == 2
    assert cache_folder(store).is_dir()
