"""What the tests of the command line share: a command's answer, and all commands with their page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from nacre.cli.group import nacre as commands

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """What a command says that was called wrongly, and has printed nothing else."""
        assert (self.code, self.out) == (2, "")
        return self.err


Cli = Callable[..., Answer]  # the fixture `cli`: arguments, and `stdin` as text


def clear_settings(monkeypatch: pytest.MonkeyPatch, config: Path, *others: str) -> None:
    """Neither variables nor the configuration file of this machine are read. `others`: more prefixes to clear."""
    for name in list(os.environ):
        if name.startswith(("NACRE_", *others)):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NACRE_CONFIG", str(config))


def every_command(group: click.Group | None = None, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands as they are typed, groups and their commands."""
    for name, command in (group or commands.loaded()).commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{before}{name} ")
