"""The command that all others belong to, and how each gives its answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from nacre import __version__, wire
from nacre.cli import render
from nacre.cli.options import common, wants_json
from nacre.types import Json

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="nacre", message="%(prog)s %(version)s")
@common
def nacre() -> None:
    """Local, layered memory for AI agents: one file, found again by words, by meaning, and by both."""


def print_json(value: Json, indent: int | None = 2) -> None:
    sys.stdout.write(wire.dumps(value, indent) + "\n")


def answer(context: click.Context, encoded: Json, lines: Iterable[render.Line]) -> None:
    """The same answer for programs and for people."""
    if wants_json(context):
        print_json(encoded)
    else:
        render.show(lines)
