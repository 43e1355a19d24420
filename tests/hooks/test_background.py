"""What an agent's client waits for after an answer: the start of a process, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import nacre
from nacre.hooks import background

SESSION = "0d7a8d0e-5b1c-4a53-9f0e-6f5f4c7a2b11"


@pytest.mark.parametrize(
    ("arguments", "event", "starts"),
    [
        ([], b'{"session_id": "s"}', True),
        (["--space", "s", "--store", "a.db"], b"{}", True),
        (["--space"], b"{}", False),
        (["--bogus", "x"], b"{}", False),
        (["--json", "--space", "s"], b"{}", False),
        ([], b'{"hook_event_name": "beforeSubmitPrompt"}', False),  # its client waits for an answer
        ([], b" \n", False),
    ],
)
def test_what_needs_no_answer_is_left_to_another_process(
    monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], event: bytes, starts: bool
) -> None:
    seen: list[tuple[Sequence[str], bytes]] = []
    monkeypatch.setattr(background, "start", lambda flags, each: seen.append((flags, each)))
    assert background.started(arguments, event) == starts
    assert seen == ([(arguments, event)] if starts else [])


def environment(root: Path) -> dict[str, str]:
    return {
        "HOME": str(root),
        "NACRE_CONFIG": str(root / "config.toml"),
        "NACRE_STORE": str(root / "memories.db"),
        "NACRE_EMBEDDER": "none",
        "NACRE_SPACE": "s",
    } | {name: each for name, each in os.environ.items() if name == "PYTHONPATH"}


@pytest.mark.slow
def test_an_answer_is_stored_without_loading_anything(tmp_path: Path) -> None:
    message = {"role": "user", "content": "Which port?"}
    entry = {"type": "user", "uuid": "u", "sessionId": SESSION, "message": message}
    (tmp_path / "t.jsonl").write_text(json.dumps(entry) + "\n")
    event = {"session_id": SESSION, "transcript_path": str(tmp_path / "t.jsonl"), "hook_event_name": "Stop"}
    code = (
        "import sys\nsys.argv = ['nacre', 'hook', 'remember']\nfrom nacre.cli import main\nmain()\n"
        "print([each for each in ('click', 'tomllib', 'nacre.config.settings', 'nacre.engine.engine') "
        "if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"[]\n", b"")
    until = time.monotonic() + 60
    while not (tmp_path / "memories.db").exists() or not _texts(tmp_path):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert _texts(tmp_path) == ["Which port?"]


def _texts(root: Path) -> list[str]:
    with nacre.open(root / "memories.db", embedder="none", space="s") as memory:
        return [each.text for each in memory.every()]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--bogus"], ["--space"], ["{", "--bogus"], ["[]"]])
def test_a_wrong_option_is_said_and_fails_nothing(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nacre", "hook", "remember", *arguments],
        input=b"{}",
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr
