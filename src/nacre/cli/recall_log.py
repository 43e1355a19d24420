"""Commands on the recall log: log, why-recalled, mark."""

from __future__ import annotations

from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, only_given, opened
from nacre.serialization import encode

_LIMIT = click.option("--limit", type=int, help="Maximum number of searches.")
_IN_SPACE = click.option(
    "--in-space", "spaces", metavar="NAME", multiple=True, help="Searches of this space instead. Repeatable."
)


@nacre.command()
@click.option("--session", metavar="SESSION", help="Only searches of this session.")
@_LIMIT
@click.option("--before", metavar="RECEIPT", help="Only searches before this one: the next page.")
@_IN_SPACE
@common
@click.pass_context
def log(context: click.Context, /, **given: Any) -> None:
    """List past searches, newest first. Shows the memories they delivered and how those were marked."""
    with opened(context) as memory:
        found = memory.receipts(**only_given(**given))
    answer(context, [encode.receipt(each) for each in found], render.receipt_lines(found))


@nacre.command("why-recalled")
@click.argument("memory_id", metavar="ID")
@_LIMIT
@_IN_SPACE
@common
@click.pass_context
def why_recalled(context: click.Context, /, **given: Any) -> None:
    """List the searches that delivered a memory."""
    with opened(context) as memory:
        found = memory.receipts(**only_given(**given))
    answer(
        context,
        [encode.receipt(each) for each in found],
        render.receipt_lines(found, given["memory_id"]),
    )


@nacre.command()
@click.argument("outcome", metavar="opened|used|wrong")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--receipt", metavar="RECEIPT", help="The search that delivered them; default: the latest.")
@common
@click.pass_context
def mark(context: click.Context, outcome: Any, ids: tuple[str, ...], receipt: str | None) -> None:
    """Mark delivered memories. Later, used ones rank a little higher and wrong ones lower."""
    with opened(context) as memory:
        marked = memory.mark(ids, outcome, receipt)
    listed = " ".join(marked) or "nothing new"
    answer(context, {"outcome": outcome, "marked": list(marked)}, [[(f"{outcome}: ", ""), (listed, "cyan")]])
