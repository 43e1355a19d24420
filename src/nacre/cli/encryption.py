"""Encryption at rest: keys, and changing the key of a store."""

from __future__ import annotations

import os

import click

from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of
from nacre.config import keys
from nacre.errors import InvalidInput


@nacre.group()
@common
def key() -> None:
    """Make keys for encrypted stores."""


@key.command("create")
@click.argument("file")
@common
@click.pass_context
def key_create(context: click.Context, file: str) -> None:
    """Write a new random key of 256 bits to FILE, which only you can read.

    `keyring:NAME` in place of FILE keeps it in the platform's keyring.
    """
    keys.create(file)
    answer(context, {"key_file": file}, [[(f"created {file}; keep a copy of it: without it, nothing can be read", "")]])


@nacre.command()
@click.option("--new-key-file", metavar="FILE", help="The key to encrypt with from now on; keyring:NAME is allowed.")
@click.option("--decrypt", is_flag=True, help="Store everything in plain form again.")
@common
@click.pass_context
def rekey(context: click.Context, new_key_file: str | None, decrypt: bool) -> None:
    """Encrypt the store, or change its key. No other process may have it open.

    --key-file names the present key of an encrypted store.
    """
    from nacre.config.factory import rekey_store

    if (new_key_file is None) is not decrypt:
        raise InvalidInput("new-key-file", "give either --new-key-file FILE or --decrypt")
    settings = settings_of(context)
    rekey_store(
        str(settings.store.value),
        key=keys.of_settings(settings, os.environ),
        new_key=None if new_key_file is None else keys.read(new_key_file),
        busy_timeout_ms=settings.busy_timeout_ms.value,
    )
    done = "decrypted" if decrypt else "encrypted"
    hint = "open it without a key" if decrypt else f"open it with --key-file {new_key_file}"
    answer(
        context,
        {"store": str(settings.store.value), "encrypted": not decrypt},
        [[(f"{done} {settings.store.value}; {hint} from now on", "")]],
    )
