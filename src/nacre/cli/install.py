"""`nacre install`: tells clients of agents how to start Nacre's server, and when to recall and remember."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from nacre.cli import render
from nacre.cli.group import nacre, print_json
from nacre.cli.options import PASSED_ON, common, settings_of, wants_json
from nacre.config import client_config, client_hooks, keys
from nacre.config import settings as settings_module
from nacre.config.client_config import Address, Change, Client, Place, Plan, Scope
from nacre.config.client_hooks import HookPlan
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
@click.option("--hooks", is_flag=True, help="Also recall at each prompt, and remember what is said.")
@click.option("--url", metavar="URL", help="Use a server that runs already, such as `nacre mcp --http`.")
@click.option("--token-variable", metavar="NAME", help="The variable of the client that holds the token for --url.")
@click.option("--tools", metavar="NAMES", help="Groups of tools, as for `nacre mcp --tools`.")
@click.option("--compat", type=click.Choice(["knowledge-graph"]), help="As for `nacre mcp --compat`.")
@click.option("--write", is_flag=True, help="Write it to the client's files. Backups are made first.")
@click.option("--remove", is_flag=True, help="Remove it from the client's files.")
@common
@click.pass_context
def install(
    context: click.Context,
    /,
    client: Client,
    scope: Scope,
    name: str,
    hooks: bool,
    url: str | None,
    token_variable: str | None,
    write: bool,
    remove: bool,
    **given: str | None,
) -> None:
    """Configure CLIENT to use Nacre.

    Prints the configuration that lets CLIENT start Nacre's MCP server; --write puts it into the client's file.
    CLIENT is claude-code, claude-desktop, cursor, codex, vscode, gemini-cli, opencode, windsurf, zed, cline, goose or
    copilot-cli. --store, --space, --embedder and --key-file are passed on to the server and the hooks.
    """
    place = Place(platform=sys.platform, environment=os.environ, home=Path.home(), folder=_working_folder())
    arguments = _arguments(context, place)
    program = client_config.program(Path(sys.executable), place.platform)
    if url is None:
        options = _server_options(token_variable, **given)
        server: Sequence[str] | Address = [*program, "mcp", *arguments, *options]
    else:
        _check_remote(arguments, hooks, **given)
        server = Address(url, token_variable)
    plan = client_config.plan(client, place, server, scope, name)
    hooked = client_hooks.plan(client, place, program, arguments, scope) if hooks else None
    if remove:
        changes = [client_config.removal(plan), *([client_hooks.removal(hooked)] if hooked else [])]
        _carry_out(context, plan, changes, "removed from", "was not in")
        return
    for note in _notes(context, plan, hooked):
        click.echo(f"note: {note}", err=True)
    if write:
        changes = [client_config.installation(plan), *([client_hooks.installation(hooked)] if hooked else [])]
        _carry_out(context, plan, changes, "written to", "was already in")
    else:
        _show(context, plan, hooked)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise InvalidInput("folder", "the working folder does not exist any more; change to another") from None


def _arguments(context: click.Context, place: Place) -> list[str]:
    """The settings that were given to this command, for a process that is started in another folder."""
    settings = settings_of(context)
    said: dict[str, Any] = {
        name: sourced.value
        for name in PASSED_ON
        if (sourced := getattr(settings, name)).source == f"flag {settings_module.option(name)}"
    }
    for name in ("store", "key_file"):
        if name in said and not str(said[name]).startswith(keys.KEYRING):
            said[name] = os.path.normpath(place.folder / said[name])
    return [part for name, value in said.items() for part in (settings_module.option(name), str(value))]


def _server_options(token_variable: str | None, tools: str | None, compat: str | None) -> list[str]:
    if token_variable is not None:
        raise InvalidInput("token-variable", "is for a server with --url; give that, too")
    if tools is not None and not tools.strip():
        raise InvalidInput("tools", "is blank; give names of groups, or all")
    if tools and compat:
        raise InvalidInput("tools", "cannot be combined with --compat; give one of the two")
    said = {"tools": tools, "compat": compat}
    return [part for name, value in said.items() if value is not None for part in (f"--{name}", value)]


def _check_remote(arguments: list[str], hooks: bool, **given: str | None) -> None:
    """A server that runs already has its own settings. Hooks open the store themselves."""
    meant = [f"--{name}" for name, value in given.items() if value is not None] + ([] if hooks else arguments[:1])
    if meant:
        raise InvalidInput("url", f"cannot be combined with {meant[0]}; give that to the server at this URL")


def _notes(context: click.Context, plan: Plan, hooked: HookPlan | None) -> Iterator[str]:
    """What may keep the configuration from working as expected."""
    starts = "url" not in context.params or context.params["url"] is None
    if starts and importlib.util.find_spec("mcp") is None:
        yield "the server needs a package that is not installed; install it with `pip install 'nacre-memory[mcp]'`"
    if plan.client in client_config.NO_FOLDER and "space" not in context.ensure_object(dict):
        yield f"{plan.client} starts servers in no project's folder: all chats share one space unless you give --space"
    if starts and plan.scope == "project":
        yield "the file contains a path of this machine; do not commit it if others work on other machines"
    if not starts and context.params["token_variable"] is None and plan.client not in client_config.TAKES_VARIABLES:
        yield f"if the server asks for a token, add the header Authorization to the entry in {plan.path} by hand"
    if hooked is not None and plan.client == "codex":
        yield "Codex runs new hooks after you have trusted them, with /hooks"
    variables = [*map(settings_module.variable, settings_module.MEANINGS), keys.VARIABLE]
    forgotten = [each for each in variables if os.environ.get(each)]
    if forgotten and (starts or hooked is not None):
        yield f"the client may start the server without {', '.join(forgotten)}; give options, or use the config file"


def _show(context: click.Context, plan: Plan, hooked: HookPlan | None) -> None:
    changed = _would_change(lambda: client_config.installation(plan))
    if wants_json(context):
        answer = _encoded(plan, plan.entry, written=False, backup=None, changed=changed)
        if hooked is not None:
            hooks_changed = _would_change(lambda: client_hooks.installation(hooked))
            answer["hooks"] = _file(hooked.path, hooked.content, written=False, backup=None, changed=hooks_changed)
        print_json(answer)
        return
    click.echo(plan.snippet, nl=False)
    _say_where(plan.path, changed)
    if hooked is not None:
        click.echo(f"\n{hooked.file.snippet}", nl=False)
        _say_where(hooked.path, _would_change(lambda: client_hooks.installation(hooked)))


def _say_where(path: Path, changed: bool) -> None:
    todo = "use --write to write it" if changed else "it is there already"
    click.echo(f"This belongs in {path}; {todo}.", err=True)


def _would_change(installation: Callable[[], Change]) -> bool:
    try:
        return installation().after is not None
    except InvalidInput:  # a file that cannot be edited; the entry can still be printed
        return True


def _carry_out(context: click.Context, plan: Plan, changes: list[Change], done: str, not_needed: str) -> None:
    """All changes are known to be possible before the first file is written."""
    now = datetime.now(UTC)
    backups = [None if each.after is None else client_config.write(each, now) for each in changes]
    if wants_json(context):
        answers = [
            _file(change.file.path, change.entry, written=changed, backup=backup, changed=changed)
            for change, backup in zip(changes, backups, strict=True)
            for changed in [change.after is not None]
        ]
        answer = {"client": plan.client, "scope": plan.scope} | answers[0]
        print_json(answer if len(answers) == 1 else answer | {"hooks": answers[1]})
        return
    for what, change, backup in zip((plan.name, "hooks"), changes, backups, strict=False):
        said = done if change.after is not None else not_needed
        verb = said.replace("was", "were") if what == "hooks" else said
        render.show([[(f"{what} {verb} ", ""), (str(change.file.path), "cyan")]])
        if backup is not None:
            render.show([[("backup: ", "dim"), (str(backup), "")]])
    if any(each.after is not None for each in changes):
        click.echo(f"Restart {plan.client} to apply the change.", err=True)


def _encoded(plan: Plan, entry: Any, *, written: bool, backup: Path | None, changed: bool) -> dict[str, Any]:
    answer = _file(plan.path, entry, written=written, backup=backup, changed=changed)
    return {"client": plan.client, "scope": plan.scope} | answer


def _file(path: Path, content: Any, *, written: bool, backup: Path | None, changed: bool) -> dict[str, Any]:
    return {
        "path": str(path),
        "content": content,
        "written": written,
        "backup": None if backup is None else str(backup),
        "changed": changed,
    }
