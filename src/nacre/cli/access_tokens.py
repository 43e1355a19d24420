"""Commands on the access tokens of a server: token create, list, revoke."""

from __future__ import annotations

from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, only_given, opened, to_expiry, wants_json
from nacre.errors import InvalidInput
from nacre.serialization import encode


@nacre.group()
@common
def token() -> None:
    """Create, list and revoke access tokens, which say who may use `nacre serve`, and for what."""


@token.command("create")
@click.option("--role", metavar="read|write|admin", help="What it may do; default: read.")
@click.option("--in-space", "spaces", metavar="NAME", multiple=True, help="A space it may use. Repeatable.")
@click.option("--all-spaces", is_flag=True, help="It may use all spaces; default: the space that --space names.")
@click.option("--expires", metavar="TIME", help="From when on it is not valid: 90d, 2027-01-01.")
@click.option("--name", metavar="TEXT", help="What it is for.")
@common
@click.pass_context
def token_create(
    context: click.Context, /, spaces: tuple[str, ...], all_spaces: bool, expires: str | None, **given: Any
) -> None:
    """Create a token and print its secret, which is shown only once."""
    if spaces and all_spaces:
        raise InvalidInput("all-spaces", "does not go with --in-space; give one of them")
    options = only_given(expires=to_expiry(expires), **given)
    with opened(context, create=True) as memory:
        made = memory.create_token(spaces=None if all_spaces else spaces, **options)
    answer(context, encode.new_access_token(made), [[(made.secret, "")]])
    if not wants_json(context):
        render.remark([f"token {made.token.id}: this is its secret, which is not shown again; keep it safe"])


@token.command("list")
@common
@click.pass_context
def token_list(context: click.Context) -> None:
    """List the tokens that were not revoked, newest first."""
    with opened(context) as memory:
        found = memory.tokens()
    answer(context, [encode.access_token(each) for each in found], render.token_lines(found))


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@common
@click.pass_context
def token_revoke(context: click.Context, token_id: str) -> None:
    """Revoke a token: from now on it is not valid."""
    with opened(context) as memory:
        memory.revoke_token(token_id)
    answer(context, {"revoked": token_id}, [[("revoked ", ""), (token_id, "cyan")]])
