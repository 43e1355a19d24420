"""The command `copy`: all of a store into another one."""

from __future__ import annotations

import os

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of
from nacre.config import keys
from nacre.config.factory import copy_store
from nacre.serialization import encode
from nacre.types.location import SCHEMA, is_address


@nacre.command()
@click.argument("source")
@click.argument("target")
@click.option("--schema", metavar="NAME", help="The schema of SOURCE in PostgreSQL.  [default: of the settings]")
@click.option("--target-schema", metavar="NAME", help="The schema of TARGET.  [default: of the settings]")
@click.option("--target-key-file", metavar="FILE", help="The key to encrypt TARGET with; keyring:NAME is allowed.")
@click.option("--merge", is_flag=True, help="TARGET has memories of its own: take in those of SOURCE as `import` does.")
@common
@click.pass_context
def copy(
    context: click.Context,
    source: str,
    target: str,
    schema: str | None,
    target_schema: str | None,
    target_key_file: str | None,
    merge: bool,
) -> None:
    """Copy all of the store SOURCE to the store TARGET, each a file or an address of PostgreSQL.

    It goes on where it was interrupted, and takes over what changed if it is repeated. --key-file is for SOURCE.
    """
    settings = settings_of(context)
    usual = settings.postgres_schema.value
    with render.progress("copying") as bar:
        done = copy_store(
            source,
            target,
            merge=merge,
            key=keys.of_settings(settings, os.environ),
            target_key=None if target_key_file is None else keys.read(target_key_file),
            schema=_schema(source, schema, usual),
            target_schema=_schema(target, target_schema, usual),
            busy_timeout_ms=settings.busy_timeout_ms.value,
            progress=bar,
        )
    answer(context, encode.copied(done), render.copied_lines(done))


def _schema(store: str, given: str | None, usual: str) -> str:
    """The schema of the settings is for databases."""
    return given or (usual if is_address(store) else SCHEMA)
