"""The `nacre` command group, and the output of its commands as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

import click

from nacre import __version__
from nacre.cli.options import common, wants_json

if TYPE_CHECKING:
    from nacre.cli import render
    from nacre.types.memory import Json

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """Import command modules one by one until one defines the wanted command, so that a command starts fast.

    The modules of commands that somebody waits for come first.
    """

    modules = (
        "search", "memories", "agents", "hooks", "explain", "lenses", "recall_log", "facts", "entities", "maintenance",
        "backups", "copying", "export", "changes", "access_tokens", "serve", "worker", "doctor", "nodes",
        "encryption", "import_", "watch", "install", "evaluation", "demo",
    )  # fmt: skip

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        for module in self.modules:
            if name in self.commands:
                break
            import_module(f"nacre.cli.{module}")
        return super().get_command(context, name)

    def list_commands(self, context: click.Context) -> list[str]:
        self.loaded()
        return super().list_commands(context)

    def loaded(self) -> Commands:
        """Import all commands."""
        for module in self.modules:
            import_module(f"nacre.cli.{module}")
        return self


@click.group(cls=Commands, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="nacre", message="%(prog)s %(version)s")
@common
def nacre() -> None:
    """Local memory for AI agents: one SQLite file, searched by words, by meaning, or by both."""


def print_json(value: Json, indent: int | None = 2) -> None:
    from nacre.cli import render
    from nacre.serialization import encode

    render.show_json(encode.dumps(value, indent), sys.stdout)


def answer(context: click.Context, encoded: Json, lines: Iterable[render.Line]) -> None:
    """Print the answer: JSON for programs, lines for people."""
    from nacre.cli import render

    if wants_json(context):
        print_json(encoded)
    else:
        render.show(lines)
