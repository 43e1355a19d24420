"""A folder and its memories, in step: whatever is written, renamed or deleted, and whenever it was stopped."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import nacre
from nacre import Nacre
from nacre.errors import InvalidInput
from nacre.importers.importer import Refused, Source
from nacre.importers.notes import MARKDOWN_NOTES
from nacre.intake.watching import FolderSync, Step
from nacre.storage.reference import MemoryStore
from nacre.types.memory import Memory, NewMemory

LONG = "# Pots\n\nAll pots.\n\n" + "".join(f"## {name}\n\n{name} is {'round ' * 200}.\n\n" for name in ("Bowl", "Vase"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "tea.md").write_text("Tea at four #hot")
    (notes / "deep/ash.txt").write_text("Ash is grey")
    return notes


def sync(memory: Nacre, folder: Path, **options: object) -> FolderSync:
    return FolderSync(memory, folder, **{"grace_seconds": 0.0, **options})  # type: ignore[arg-type]


def stored(memory: Nacre) -> dict[str, str]:
    return {each.key or "": each.text for each in memory.every()}


def only(memory: Nacre, key: str) -> Memory:
    (found,) = memory.get(keys=key)
    return found


def counts(step: Step) -> tuple[int, int, int, int]:
    """New, changed, moved, forgotten."""
    assert (step.refused, step.note) == ((), None)
    return step.new, step.changed, step.moved, step.forgotten


# ---------------------------------------------------------------- in step


def test_what_is_written_changed_and_deleted(memory: Nacre, folder: Path) -> None:
    watched = sync(memory, folder)
    assert counts(watched.step()) == (2, 0, 0, 0)
    assert stored(memory) == {"file:notes/tea.md": "Tea at four #hot", "file:notes/deep/ash.txt": "Ash is grey"}
    assert counts(watched.step()) == (0, 0, 0, 0)
    tea = only(memory, "file:notes/tea.md")
    (folder / "tea.md").write_text("Tea at five #hot")
    (folder / "clay.md").write_text("Clay")
    assert counts(watched.step()) == (1, 1, 0, 0)
    assert (only(memory, "file:notes/tea.md").id, only(memory, "file:notes/tea.md").text) == (
        tea.id,
        "Tea at five #hot",
    )
    assert len(memory.history(tea.id)) == 2
    shutil.rmtree(folder / "deep")
    (folder / "clay.md").write_text(" ")
    assert counts(watched.step()) == (0, 0, 0, 2)
    assert stored(memory) == {"file:notes/tea.md": "Tea at five #hot"}


def test_it_is_what_an_import_brings_in(memory: Nacre, folder: Path) -> None:
    (folder / "pots.md").write_text(LONG)
    records = [each for each in MARKDOWN_NOTES.read(Source(folder)) if isinstance(each, NewMemory)]
    memory.remember_many(records)
    assert counts(sync(memory, folder).step()) == (0, 0, 0, 0)
    assert sync(memory, folder, name="mine").step().new == len(records)


def test_a_renamed_note_is_the_same_memory(memory: Nacre, folder: Path) -> None:
    (folder / "pots.md").write_text(LONG)
    watched = sync(memory, folder)
    watched.step()
    before = {each.text: each.id for each in memory.every()}
    (folder / "pots.md").rename(folder / "deep/vessels.md")
    (folder / "tea.md").rename(folder / "coffee.md")
    assert counts(watched.step()) == (0, 0, 4, 0)
    assert {each.text: each.id for each in memory.every()} == before
    assert sorted(stored(memory)) == [
        "file:notes/coffee.md", "file:notes/deep/ash.txt", "file:notes/deep/vessels.md",
        "file:notes/deep/vessels.md#Pots > Bowl", "file:notes/deep/vessels.md#Pots > Vase",
    ]  # fmt: skip
    moved = only(memory, "file:notes/deep/vessels.md")
    assert (moved.source, moved.metadata["title"]) == (str(folder / "deep/vessels.md"), "vessels")


def test_notes_that_read_the_same_are_told_apart(memory: Nacre, folder: Path) -> None:
    for name in ("a.md", "b.md"):
        (folder / name).write_text("The same")
    watched = sync(memory, folder)
    watched.step()
    ids = {only(memory, f"file:notes/{name}").id for name in ("a.md", "b.md")}
    (folder / "a.md").rename(folder / "c.md")
    (folder / "b.md").rename(folder / "d.md")
    assert counts(watched.step()) == (0, 0, 2, 0)
    assert {only(memory, f"file:notes/{name}").id for name in ("c.md", "d.md")} == ids
    (folder / "e.md").write_text("The same")  # a copy is another one
    assert counts(watched.step()) == (1, 0, 0, 0)


def test_sections_come_and_go_and_keep_their_memories(memory: Nacre, folder: Path) -> None:
    pots = folder / "pots.md"
    pots.write_text(LONG)
    watched = sync(memory, folder)
    watched.step()
    vase = only(memory, "file:notes/pots.md#Pots > Vase")
    pots.write_text(LONG.replace("# Pots", "# Vessels", 1))
    assert counts(watched.step()) == (0, 1, 2, 0)
    assert only(memory, "file:notes/pots.md#Vessels > Vase").id == vase.id
    first = only(memory, "file:notes/pots.md")
    pots.write_text("# Vessels\n\nNo more.")
    assert counts(watched.step()) == (0, 1, 0, 2)
    assert only(memory, "file:notes/pots.md").id == first.id


def test_what_is_renamed_while_it_is_stopped(memory: Nacre, folder: Path) -> None:
    sync(memory, folder).step()
    tea = only(memory, "file:notes/tea.md").id
    (folder / "tea.md").rename(folder / "green.md")
    (folder / "deep/ash.txt").unlink()
    (folder / "clay.md").write_text("Clay")
    assert counts(sync(memory, folder).step()) == (1, 0, 1, 1)
    assert only(memory, "file:notes/green.md").id == tea


def test_memories_of_others_are_left_alone(memory: Nacre, folder: Path) -> None:
    memory.remember("no key")
    memory.remember("another folder", key="file:notes2/x.md")
    memory.remember("a file", key="file:notes.md")
    with nacre.open(folder.parent / "memories.db", space="other", embedder="hashing") as other:
        other.remember("another space", key="file:notes/gone.md")
    sync(memory, folder).step()
    (folder / "tea.md").unlink()
    assert counts(sync(memory, folder).step()) == (0, 0, 0, 1)
    assert set(stored(memory).values()) == {"no key", "another folder", "a file", "Ash is grey"}


# ---------------------------------------------------------------- what is not forgotten


def test_a_file_that_is_gone_for_a_moment_is_not_forgotten(memory: Nacre, folder: Path) -> None:
    clock = Clock()
    watched = sync(memory, folder, grace_seconds=3.0, clock=clock)
    watched.step()
    tea = only(memory, "file:notes/tea.md").id
    (folder / "tea.md").unlink()
    assert (watched.step().pending, {*stored(memory)}) == (1, {"file:notes/tea.md", "file:notes/deep/ash.txt"})
    clock.now = 2.0
    (folder / "tea.md").write_text("Tea at six")
    assert counts(watched.step()) == (0, 1, 0, 0)
    assert only(memory, "file:notes/tea.md").id == tea
    (folder / "tea.md").unlink()
    assert watched.step().pending == 1
    clock.now = 6.0
    step = watched.step()
    assert (step.forgotten, step.pending) == (1, 0)


def test_a_folder_that_vanishes_forgets_nothing(memory: Nacre, folder: Path) -> None:
    watched = sync(memory, folder)
    watched.step()
    before = stored(memory)
    folder.rename(folder.with_name("elsewhere"))
    assert watched.step() == Step(note=f"{folder} is not there; nothing is forgotten")
    folder.mkdir()  # as where a disk was mounted
    step = watched.step()
    assert step.note == (
        f"{folder} has no notes any more, of which 2 memories are kept; "
        "`nacre forget --where key:file:notes/` forgets them"
    )
    assert stored(memory) == before
    folder.rmdir()
    folder.with_name("elsewhere").rename(folder)
    assert counts(watched.step()) == (0, 0, 0, 0)
    with pytest.raises(InvalidInput, match="is no folder"):
        sync(memory, folder / "tea.md")


def test_another_disk_in_its_place_forgets_nothing(memory: Nacre, folder: Path) -> None:
    watched = sync(memory, folder)
    watched.step()
    watched._device += 1
    shutil.rmtree(folder / "deep")
    assert watched.step().note == f"{folder} is not there; nothing is forgotten"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs permissions that hold")
def test_a_folder_that_cannot_be_read_forgets_nothing(memory: Nacre, folder: Path) -> None:
    watched = sync(memory, folder)
    watched.step()
    (folder / "deep").chmod(0)
    try:
        step = watched.step()
    finally:
        (folder / "deep").chmod(0o700)
    assert (step.forgotten, [each.where for each in step.refused]) == (0, ["deep/"])


def test_an_unreadable_folder_keeps_its_memories(memory: Nacre, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = sync(memory, folder)
    watched.step()
    scandir, closed = os.scandir, {"deep"}

    def refusing(path: Path) -> object:
        if Path(path).name in closed:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    (folder / "tea.md").unlink()
    (folder / "clay.md").write_text("Clay")
    step = watched.step()
    assert (step.new, step.forgotten, step.refused) == (1, 1, (Refused("deep/", "cannot be read (Permission denied)"),))
    assert "file:notes/deep/ash.txt" in stored(memory)
    closed.add("notes")
    assert watched.step().note is not None


def test_a_note_that_cannot_be_read_keeps_its_memories(memory: Nacre, folder: Path) -> None:
    watched = sync(memory, folder)
    watched.step()
    (folder / "tea.md").write_bytes(b"caf\xe9")
    step = watched.step()
    assert [each.where for each in step.refused] == ["tea.md"]
    assert (step.forgotten, only(memory, "file:notes/tea.md").text) == (0, "Tea at four #hot")
    assert counts(watched.step()) == (0, 0, 0, 0)  # it is said once
    (folder / "tea.md").write_text("<private>mine</private>")
    step = watched.step()
    assert (step.forgotten, "file:notes/tea.md" in stored(memory)) == (1, False)


def test_a_file_of_any_size_is_not_held(memory: Nacre, folder: Path) -> None:
    with (folder / "log.txt").open("wb") as sparse:
        sparse.truncate(64_000_001)
    watched = sync(memory, folder)
    assert watched.step().refused == (Refused("log.txt", "is too long to be watched; `nacre import` reads it"),)
    assert watched.step().refused == ()


def test_a_note_that_the_store_refuses_costs_no_other(folder: Path) -> None:
    token = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
    (folder / "tea.md").write_text(f"the token is {token}")
    with Nacre(MemoryStore(), None, log=False, secrets="refuse") as memory:
        step = sync(memory, folder).step()
        assert (step.new, [each.where for each in step.refused]) == (1, ["file:notes/tea.md"])
        assert token not in str(step.refused)


def test_hidden_and_temporary_files_and_links_are_no_notes(memory: Nacre, folder: Path, tmp_path: Path) -> None:
    for name in (".hidden.md", "~$tea.md", "tea.md~", ".tea.md.swp", "tea.md.tmp"):
        (folder / name).write_text("not this")
    (folder / ".git").mkdir()
    (folder / ".git/x.md").write_text("nor this")
    (tmp_path / "outside.md").write_text("nor that")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    assert sync(memory, folder).step().new == 2


def test_two_folders_of_one_name_are_told_apart(memory: Nacre, folder: Path, tmp_path: Path) -> None:
    sync(memory, folder).step()
    other = tmp_path / "other/notes"
    other.mkdir(parents=True)
    (other / "tea.md").write_text("Other tea")
    with pytest.raises(InvalidInput, match=r"'notes' is that of .*; give this folder another with --name"):
        sync(memory, other).step()
    assert stored(memory)["file:notes/tea.md"] == "Tea at four #hot"
    assert counts(sync(memory, other, name="other notes").step()) == (1, 0, 0, 0)
    shutil.rmtree(other)
    folder.rename(other)  # a folder that was moved stays the same
    assert counts(sync(memory, other).step()) == (0, 2, 0, 0)
    assert only(memory, "file:notes/tea.md").source == str(other / "tea.md")


# ---------------------------------------------------------------- killed at any moment


class Killed(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("after", range(12))
def test_it_goes_on_from_wherever_it_was_killed(folder: Path, after: int) -> None:
    """Killed before any of its calls of the store, the next step brings everything in step, and moves stay moves."""
    with Nacre(MemoryStore(), None, log=False) as memory:
        for number in range(3):
            (folder / f"n{number}.md").write_text(f"note {number}")
        (folder / "pots.md").write_text(LONG)
        sync(memory, folder).step()
        ids = {each.text: each.id for each in memory.every()}
        (folder / "pots.md").rename(folder / "vessels.md")
        (folder / "n0.md").rename(folder / "zero.md")
        (folder / "n1.md").unlink()
        (folder / "tea.md").write_text("Changed")
        (folder / "new.md").write_text("New")
        with pytest.MonkeyPatch.context() as patch:
            left = [after]
            for verb in ("get", "update", "remember_batches", "forget"):
                patch.setattr(memory, verb, dying(getattr(memory, verb), left))
            with contextlib.suppress(Killed):
                sync(memory, folder).step()
        step = sync(memory, folder).step()
        assert (step.refused, step.note) == ((), None)
        texts = {each.text: each.id for each in memory.every()}
        assert texts.keys() == ids.keys() - {"Tea at four #hot", "note 1"} | {"Changed", "New"}
        assert all(texts[each] == ids[each] for each in texts.keys() & ids.keys())
        assert counts(sync(memory, folder).step()) == (0, 0, 0, 0)


def dying(verb: Callable[..., object], left: list[int]) -> Callable[..., object]:
    def call(*given: object, **named: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return verb(*given, **named)

    return call


# ---------------------------------------------------------------- anything


NAMES = st.sampled_from(["a.md", "b.md", "c.txt", "d/a.md", "d/e/b.md"])
TEXTS = st.sampled_from(["Tea", "Ash", "Clay #x", LONG, LONG.replace("Bowl", "Cup"), " ", "[[a]]"])


class Folders(RuleBasedStateMachine):
    """What is stored is what an import of the folder would store, after each step; sometimes by a new process."""

    def __init__(self) -> None:
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name, "notes")
        self.folder.mkdir()
        (self.folder / "always.md").write_text("always here")
        self.memory = Nacre(MemoryStore(), None, log=False)
        self.sync = sync(self.memory, self.folder)
        self.written = 0

    @rule(name=NAMES, text=TEXTS)
    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.written += 1
        os.utime(file, ns=(self.written, self.written))  # clocks of file systems are coarse

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        if (self.folder / old).is_file():
            (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / old).replace(self.folder / new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    @rule()
    def restart(self) -> None:
        self.sync = sync(self.memory, self.folder)

    @rule()
    def step(self) -> None:
        ids = {each.text: each.id for each in self.memory.every()}
        once = len({*ids}) == len(list(self.memory.every()))
        step = self.sync.step()
        assert (step.refused, step.note) == ((), None)
        expected = {
            each.key: each.text for each in MARKDOWN_NOTES.read(Source(self.folder)) if isinstance(each, NewMemory)
        }
        assert stored(self.memory) == expected
        if once and step.new == 0 and step.changed == 0:  # nothing but moves: every memory is one that was there
            assert {each.id for each in self.memory.every()} <= set(ids.values())
        assert counts(self.sync.step()) == (0, 0, 0, 0)

    def teardown(self) -> None:
        self.memory.close()
        self.temporary.cleanup()


Folders.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestFolders = pytest.mark.slow(Folders.TestCase)
