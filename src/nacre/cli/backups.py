"""The command `backup`, and `restore` of a whole store."""

from __future__ import annotations

import os
from pathlib import Path

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, only_given, opened, settings_of
from nacre.config import keys
from nacre.config.factory import restore_backup
from nacre.runtime import private_files
from nacre.serialization import encode


@nacre.command()
@click.option("--to", metavar="PATH", required=True, help="A folder, or a new file.")
@click.option("--since", metavar="last", help="Write only what changed since the last backup in the folder.")
@click.option(
    "--keep", metavar="DAYS", help="Then keep only the last backup of so many days, weeks and months: 7d4w12m."
)
@common
@click.pass_context
def backup(context: click.Context, to: str, since: str | None, keep: str | None) -> None:
    """Copy the store to a file while others use it. `restore` makes a store of it again."""
    with opened(context, switch_model=True, log=False) as memory, render.progress("copying") as bar:
        made = memory.backup(to, progress=bar, **only_given(since=since, keep=keep))
    answer(context, encode.backup_result(made), render.backup_lines(made))


def restore_store(context: click.Context, source: Path, *, force: bool) -> None:
    """Make the store that the settings name out of a backup."""
    settings = settings_of(context)
    store = settings.store
    if store.source == "default" and isinstance(store.value, Path):
        private_files.create_folder(store.value.parent, parents=True)
    with render.progress("restoring") as bar:
        restored = restore_backup(
            source, str(store.value), force=force, progress=bar, key=keys.of_settings(settings, os.environ)
        )
    answer(
        context,
        {"restored": str(store.value), "backup": encode.backup(restored)},
        render.restored_lines(restored, str(store.value)),
    )
