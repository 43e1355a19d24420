"""`nacre watch`: in step once, and as a process that is killed and started again."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre
from command_line import Cli
from mcp_clients import environment

PATIENCE_SECONDS = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("Tea at four #hot")
    return notes


def texts(path: Path) -> dict[str, tuple[str, str]]:
    """Id and text by key."""
    with nacre.open(path, embedder="hashing") as memory:
        return {each.key or "": (each.id, each.text) for each in memory.every()}


# ---------------------------------------------------------------- once


def test_once_brings_in_step_and_ends(cli: Cli, folder: Path, path: Path) -> None:
    assert cli("watch", str(folder), "--once", "--tag", "notes").out == "added 1 memory\n"
    assert cli("watch", str(folder), "--once", "--tag", "notes").out == "in step\n"
    (folder / "tea.md").rename(folder / "green.md")
    (folder / "ash.md").write_bytes(b"\xff\xfe\xff")
    done = cli("watch", str(folder), "--once", "--tag", "notes")
    assert done.out == "moved 1 memory\n"
    assert done.err.startswith("ash.md: cannot be read as UTF-8")
    (folder / "ash.md").unlink()
    assert cli("watch", str(folder), "--once", "--json").json == {
        "new": 0, "changed": 1, "moved": 0, "forgotten": 0, "refused": [], "note": None,
    }  # fmt: skip
    (folder / "green.md").unlink()
    said = cli("watch", str(folder), "--once")
    assert said.out == ""
    assert said.err == (
        f"note: {folder} has no notes any more, of which 1 memory is kept; "
        "`nacre forget --where key:file:notes/` forgets it\n"
    )
    (folder / "clay.md").write_text("Clay")
    assert cli("watch", str(folder), "--once").out == "added 1 memory, forgot 1 memory\n"
    assert list(texts(path)) == ["file:notes/clay.md"]


def test_what_cannot_be_watched(cli: Cli, folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is no folder" in cli("watch", str(folder / "tea.md"), "--once").error
    assert "is no folder" in cli("watch", str(folder / "none"), "--once").error
    assert "encoding: 'x' is unknown" in cli("watch", str(folder), "--once", "--encoding", "x").error
    assert "name: " in cli("watch", str(folder), "--once", "--name", "n" * 300).error
    assert not path.exists()
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert "pip install 'nacre-memory[watch]'" in cli("watch", str(folder)).error
    assert cli("watch", str(folder), "--once").code == 0


# ---------------------------------------------------------------- a process


class Watching:
    """A process, and what it says, line by line."""

    def __init__(self, path: Path, folder: Path) -> None:
        # As from a terminal: what a shell starts in the background without job control is born deaf to SIGINT.
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heard}; from nacre.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "watch", str(folder), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(path),
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def said(self) -> dict[str, Any]:
        try:
            step: dict[str, Any] = json.loads(self._lines.get(timeout=PATIENCE_SECONDS))
        except queue.Empty:
            self.process.kill()
            raise AssertionError(self.process.communicate()) from None
        return step

    def end(self, sent: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(sent)
        code = self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with self.process.stdout, self.process.stderr as errors:
            return code, errors.read()


@pytest.fixture
def started() -> Iterator[list[Watching]]:
    several: list[Watching] = []
    yield several
    for each in several:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)


def some(step: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in step.items() if value}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_process_that_is_killed_and_started_again(path: Path, folder: Path, started: list[Watching]) -> None:
    started.append(first := Watching(path, folder))
    assert some(first.said()) == {"new": 1}
    (folder / "ash.md").write_text("Ash")
    assert some(first.said()) == {"new": 1}
    (folder / "sub").mkdir()
    (folder / "tea.md").rename(folder / "sub/green.md")
    assert some(first.said()) == {"moved": 1}
    (folder / "ash.md").unlink()
    assert some(first.said()) == {"forgotten": 1}
    before = texts(path)
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL

    (folder / "sub/green.md").rename(folder / "black.md")
    (folder / "clay.md").write_text("Clay")
    started.append(second := Watching(path, folder))
    assert some(second.said()) == {"new": 1, "moved": 1}
    assert texts(path)["file:notes/black.md"] == before["file:notes/sub/green.md"]
    away = folder.rename(folder.with_name("away"))
    assert some(second.said()) == {"note": f"{folder} is not there; nothing is forgotten"}
    (away / "clay.md").write_text("Grey clay")
    away.rename(folder)
    assert some(second.said()) == {"changed": 1}
    (folder / "black.md").write_text("Black tea")  # it is watched again
    assert some(second.said()) == {"changed": 1}
    assert second.end(signal.SIGINT) == (0, "")
    assert {text for _, text in texts(path).values()} == {"Grey clay", "Black tea"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_first_look_that_is_killed_is_continued(path: Path, folder: Path, started: list[Watching]) -> None:
    for number in range(400):
        (folder / f"n{number}.md").write_text(f"Note number {number}")
    started.append(first := Watching(path, folder))
    while not path.exists():
        os.sched_yield()
    first.end(signal.SIGKILL)
    started.append(second := Watching(path, folder))
    step = second.said()
    assert step["refused"] == []
    assert second.end(signal.SIGTERM)[0] == -signal.SIGTERM
    kept = texts(path)
    assert len(kept) == 401
    assert {text for _, text in kept.values()} == {"Tea at four #hot", *(f"Note number {each}" for each in range(400))}
