"""The command `doctor`: what is wrong with a store, and what can be done about it."""

from __future__ import annotations

import os

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of
from nacre.config import keys
from nacre.config.factory import check_from_settings, salvage_store
from nacre.errors import InvalidInput
from nacre.serialization import encode


@nacre.command()
@click.option("--fix", is_flag=True, help="Repair what can be made from the memories.")
@click.option("--salvage", metavar="NEW", help="Copy all that can be read of a damaged store to a new one.")
@common
@click.pass_context
def doctor(context: click.Context, fix: bool, salvage: str | None) -> None:
    """Check the store: its file, texts, vectors, indexes, permissions and pending work, also if it cannot be opened.

    The exit code is 5 if something is wrong.
    """
    settings = settings_of(context)
    if salvage is not None:
        if fix:
            raise InvalidInput("fix", "changes the store, and --salvage leaves it as it is; give one of them")
        saved = salvage_store(str(settings.store.value), salvage, key=keys.of_settings(settings, os.environ))
        answer(context, encode.salvage(saved), render.salvage_lines(saved))
        return
    health = check_from_settings(settings, fix=fix)
    answer(context, encode.health(health), render.health_lines(health))
    if not health.sound:
        context.exit(encode.PROBLEMS_FOUND)
