"""No command ends in a traceback: whatever bytes an argument has, and whatever is missing, an error says what is wrong.

Commands and their options are found by inspection.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import nacre
from command_line import Answer, Cli, every_command
from mcp_clients import environment
from nacre.http_api import serving
from nacre.mcp_server import http, stdio
from store_checks import check_integrity

pytestmark = pytest.mark.slow

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="arguments are bytes elsewhere only")
LONG = "x" * 5_000  # longer than a name of a file may be
BYTES = "caf\udce9\x1b[31m"  # as an argument arrives that is not UTF-8
DIGITS = "9" * 5_000


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every command with a wrong value in each of its parameters."""
    for name, command in every_command():
        if isinstance(command, click.Group):
            continue
        words = [*name.split(), *(["--yes"] if any("--yes" in each.opts for each in command.params) else [])]
        needed = ["x" for each in command.params if isinstance(each, click.Argument) and each.required]
        for each in command.params:
            if isinstance(each, click.Option) and each.is_flag:
                continue
            values = (LONG, BYTES) if isinstance(each.type, click.Path) or each.name == "store" else (BYTES + LONG,)
            for value in (*values, DIGITS) if isinstance(each.type, click.types.IntParamType) else values:
                if isinstance(each, click.Argument):
                    yield name, [*words, "--", *needed[: -1 if each.required else None], value]
                else:
                    yield name, [*words, f"{each.opts[0]}={value}", *needed]


def test_wrong_arguments_are_errors(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(each, str(tmp_path / "home"))
    for door in (stdio, http, serving):
        monkeypatch.setattr(door, "serve", lambda *_, **__: None)
    assert cli("remember", "Tea is served at four").code == 0
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(errors="replace")  # as `main` does
    seen: set[str] = set()
    for name, arguments in calls():
        answer = cli(*arguments)
        seen.add(name)
        assert answer.code in (0, 2, 3), (arguments, answer)
        if answer.code:
            errors = [line for line in answer.err.splitlines() if not line.startswith("note: ")]
            assert len(errors) == 1 or "Usage:" in answer.err, (arguments, answer)
            assert errors[-1].lower().startswith("error: "), (arguments, answer)
    assert len(seen) > 40


# ---------------------------------------------------------------- in processes of their own


def nacre_process(
    path: Path, *arguments: str | bytes, stdin: bytes | None = b"", limit_bytes: int | None = None
) -> Answer:
    """`stdin=None` closes it. `limit_bytes`: how much memory the process may have."""
    code = "import sys\n"
    if limit_bytes is not None:
        code += f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit_bytes}, {limit_bytes}))\n"
    if stdin is None:
        code += "sys.stdin = None\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "from nacre.cli import main; main()", *arguments],
        input=stdin or b"",
        capture_output=True,
        env=environment(path),
        cwd=path.parent,
        timeout=60,
        check=False,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


@POSIX
def test_arguments_may_be_any_bytes(path: Path) -> None:
    refused = nacre_process(path, "remember", b"caf\xe9 au lait")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "error: text: contains a NUL or a lone surrogate; only valid Unicode text is allowed\n"
    assert nacre_process(path, "get", b"\xff", "--json").code == 2
    assert nacre_process(path, "stats", "--store", b"caf\xe9.db").err.startswith("error: path: ")
    folder = path.parent / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "note.md").write_text("Tea at four", "utf-8")
    stored = nacre_process(path, "remember", "--file", os.fsencode(folder), "--json")
    assert (stored.code, stored.err) == (0, "")
    assert json.loads(stored.out)["remembered"][0]["source"].endswith("caf?/note.md")


def test_input_that_is_no_text_is_refused(path: Path) -> None:
    for arguments in (("remember",), ("remember", "--file", "-")):
        refused = nacre_process(path, *arguments, stdin=b"caf\xe9 au lait")
        assert (refused.code, refused.out) == (2, "")
        assert "UTF-8" in refused.err
    assert not path.exists()


def test_closed_input_is_empty_input(path: Path) -> None:
    for arguments in (("remember",), ("hook", "context")):
        answer = nacre_process(path, *arguments, stdin=None)
        assert answer.code in (0, 2)
        assert "Traceback" not in answer.err


@POSIX
def test_too_little_memory_is_an_error_and_stores_no_half_batch(path: Path) -> None:
    """A line that does not fit, after some that do: what was not acknowledged is not there."""
    file = path.with_suffix(".jsonl")
    lines = [json.dumps({"text": f"number {each}"}) for each in range(20)]
    file.write_text("\n".join(lines) + "\n")
    with file.open("r+b") as sparse:
        sparse.truncate(200_000_000)  # one line of zeros, which takes no room on disk
    answer = nacre_process(path, "remember", "--jsonl", "--file", str(file), limit_bytes=80_000_000)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    with nacre.open(path, embedder="hashing") as memory:
        assert memory.facets().total == 0
        memory.remember("there is room now")
    check_integrity(path)


def test_a_line_without_end_is_refused_alone(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.serialization.decode.LINE_BYTES_MAX", 1_000)
    file = tmp_path / "lines.jsonl"
    texts = ["before", "x" * 5_000, "between", "x" * 980, "after"]
    file.write_text("".join(json.dumps({"text": each}) + "\n" for each in texts))
    answer = cli("remember", "--jsonl", "--file", str(file))
    assert answer.code == 2
    assert answer.out.startswith("remembered 4 ")
    assert answer.err.startswith("line 2: has more than 1,000 bytes; split it\n")
