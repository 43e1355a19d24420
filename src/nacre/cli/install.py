"""`nacre install`: tells MCP clients how to start Nacre's server."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from nacre.cli import render
from nacre.cli.group import nacre, print_json
from nacre.cli.options import PASSED_ON, common, settings_of, wants_json
from nacre.config import client_config, keys
from nacre.config import settings as settings_module
from nacre.config.client_config import Change, Client, Place, Plan, Scope
from nacre.errors import InvalidInput


@nacre.command()
@click.argument("client", type=click.Choice(get_args(Client)), metavar="CLIENT")
@click.option(
    "--scope",
    type=click.Choice(get_args(Scope)),
    default="user",
    help="user: for all your projects; project: for this one.",
)
@click.option("--name", default=client_config.NAME, metavar="NAME", help="The name of the server in the client.")
@click.option("--tools", metavar="NAMES", help="Groups of tools, as for `nacre mcp --tools`.")
@click.option("--compat", type=click.Choice(["knowledge-graph"]), help="As for `nacre mcp --compat`.")
@click.option("--write", is_flag=True, help="Write it to the client's file. A backup is made first.")
@click.option("--remove", is_flag=True, help="Remove it from the client's file.")
@common
@click.pass_context
def install(
    context: click.Context, /, client: Client, scope: Scope, name: str, write: bool, remove: bool, **given: str | None
) -> None:
    """Configure CLIENT to use Nacre.

    Prints the configuration that lets CLIENT start Nacre's MCP server; --write puts it into the client's file.
    CLIENT is claude-code, claude-desktop, cursor, codex or vscode. --store, --space, --embedder and --key-file are
    passed on to the server.
    """
    place = Place(platform=sys.platform, environment=os.environ, home=Path.home(), folder=_working_folder())
    command = client_config.server_command(
        Path(sys.executable), place.platform, _server_arguments(context, place, **given)
    )
    plan = client_config.plan(client, place, command, scope, name)
    if remove:
        _carry_out(context, client_config.removal(plan), "removed from", "was not in")
        return
    for note in _notes(context, plan):
        click.echo(f"note: {note}", err=True)
    if write:
        _carry_out(context, client_config.installation(plan), "written to", "was already in")
    else:
        _show(context, plan)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise InvalidInput("folder", "the working folder does not exist any more; change to another") from None


def _server_arguments(context: click.Context, place: Place, tools: str | None, compat: str | None) -> list[str]:
    """The options of this command, for a server that is started in another folder."""
    settings = settings_of(context)
    said: dict[str, Any] = {
        name: sourced.value
        for name in PASSED_ON
        if (sourced := getattr(settings, name)).source == f"flag {settings_module.option(name)}"
    }
    for name in ("store", "key_file"):
        if name in said and not str(said[name]).startswith(keys.KEYRING):
            said[name] = os.path.normpath(place.folder / said[name])
    if tools is not None and not tools.strip():
        raise InvalidInput("tools", "is blank; give names of groups, or all")
    if tools and compat:
        raise InvalidInput("tools", "cannot be combined with --compat; give one of the two")
    said |= {name: value for name, value in (("tools", tools), ("compat", compat)) if value is not None}
    return [part for name, value in said.items() for part in (settings_module.option(name), str(value))]


def _notes(context: click.Context, plan: Plan) -> Iterator[str]:
    """What may keep the configuration from working as expected."""
    if importlib.util.find_spec("mcp") is None:
        yield "the server needs a package that is not installed; install it with `pip install 'nacre-memory[mcp]'`"
    if plan.client in client_config.NO_FOLDER and "space" not in context.ensure_object(dict):
        yield f"{plan.client} starts servers in no project's folder: all chats share one space unless you give --space"
    if plan.scope == "project":
        yield "the file contains a path of this machine; do not commit it if others work on other machines"
    variables = [*map(settings_module.variable, settings_module.MEANINGS), keys.VARIABLE]
    forgotten = [each for each in variables if os.environ.get(each)]
    if forgotten:
        yield f"the client may start the server without {', '.join(forgotten)}; give options, or use the config file"


def _show(context: click.Context, plan: Plan) -> None:
    changed = _would_change(plan)
    if wants_json(context):
        print_json(_encoded(plan, plan.entry, written=False, backup=None, changed=changed))
        return
    click.echo(plan.snippet, nl=False)
    todo = "use --write to write it" if changed else "it is there already"
    click.echo(f"This belongs in {plan.path}; {todo}.", err=True)


def _would_change(plan: Plan) -> bool:
    try:
        return client_config.installation(plan).after is not None
    except InvalidInput:  # a file that cannot be edited; the entry can still be printed
        return True


def _carry_out(context: click.Context, change: Change, done: str, not_needed: str) -> None:
    changed = change.after is not None
    backup = client_config.write(change, datetime.now(UTC)) if changed else None
    if wants_json(context):
        print_json(_encoded(change.plan, change.entry, written=changed, backup=backup, changed=changed))
        return
    render.show([[(f"{change.plan.name} {done if changed else not_needed} ", ""), (str(change.plan.path), "cyan")]])
    if backup is not None:
        render.show([[("backup: ", "dim"), (str(backup), "")]])
    if changed:
        click.echo(f"Restart {change.plan.client} to apply the change.", err=True)


def _encoded(plan: Plan, entry: Any, *, written: bool, backup: Path | None, changed: bool) -> dict[str, Any]:
    return {
        "client": plan.client,
        "path": str(plan.path),
        "scope": plan.scope,
        "content": entry,
        "written": written,
        "backup": None if backup is None else str(backup),
        "changed": changed,
    }
