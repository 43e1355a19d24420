"""`nacre changes`: what changed in a space since a number."""

from __future__ import annotations

from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, only_given, opened
from nacre.serialization import encode


@nacre.command()
@click.option("--since", type=int, metavar="N", help="Only changes after this number; without it, no changes.")
@click.option("--limit", type=int, help="Maximum number of changes.")
@click.option("--in-space", "spaces", metavar="NAME", multiple=True, help="Changes of this space instead. Repeatable.")
@common
@click.pass_context
def changes(context: click.Context, /, **given: Any) -> None:
    """List what changed after a number, oldest first, and the number to go on from."""
    with opened(context) as memory:
        page = memory.changes(**only_given(**given))
    answer(context, encode.change_page(page), render.change_lines(page))
