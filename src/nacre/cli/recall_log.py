"""Commands on the recall log: log, log clear, why-recalled, mark."""

from __future__ import annotations

from typing import Any

import click

from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, only_given, opened, to_moment
from nacre.errors import InvalidInput
from nacre.serialization import encode

_LIMIT = click.option("--limit", type=int, help="Maximum number of searches.")
_SESSION = click.option("--session", metavar="SESSION", help="Only searches of this session.")
_IN_SPACE = click.option(
    "--in-space", "spaces", metavar="NAME", multiple=True, help="Searches of this space instead. Repeatable."
)


@nacre.group(invoke_without_command=True)
@_SESSION
@_LIMIT
@click.option("--before", metavar="RECEIPT", help="Only searches before this one: the next page.")
@_IN_SPACE
@common
@click.pass_context
def log(context: click.Context, /, **given: Any) -> None:
    """List past searches, newest first. Shows the memories they delivered and how those were marked."""
    if context.invoked_subcommand is not None:
        if only_given(**given):
            raise InvalidInput("arguments", f"give options after {context.invoked_subcommand}, not before it")
        return
    with opened(context) as memory:
        found = memory.receipts(**only_given(**given))
    answer(context, [encode.receipt(each) for each in found], render.receipt_lines(found))


@log.command("clear")
@click.option("--before", metavar="TIME", help="Only searches before this time: 7d, yesterday, 2026-03-01.")
@_SESSION
@_IN_SPACE
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common
@click.pass_context
def log_clear(context: click.Context, /, before: str | None, yes: bool, **given: Any) -> None:
    """Delete past searches from the log, for good. What was learned from them stays."""
    options = only_given(before=to_moment("before", before), **given)
    with opened(context) as memory:
        if not yes:
            which = "These past searches" if options else "All past searches of this space"
            click.confirm(f"{which} are deleted permanently. Continue?", abort=True, err=True)
        cleared = memory.clear_log(**options)
    searches = counted(cleared, "search", "searches")
    answer(context, {"cleared": cleared}, [[(f"cleared {searches}", "")]])


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
