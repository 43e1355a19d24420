"""Commands that explain a ranking: why, why-not."""

from __future__ import annotations

from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import QueryCommand, common, filters, opened, search_options, to_search
from nacre.engine.explain import Why
from nacre.serialization import encode


def _memory_and_search(command: Any) -> Any:
    """ID, then QUERY with all options of a search."""
    for decorate in (
        click.pass_context,
        common,
        filters,
        search_options,
        click.argument("query", nargs=-1, required=True),
        click.argument("memory_id", metavar="ID"),
    ):
        command = decorate(command)
    return command


def _explained(context: click.Context, memory_id: str, query: tuple[str, ...], given: dict[str, Any]) -> Why:
    request = to_search(" ".join(query), given)
    with opened(context) as memory:
        return memory.why(request, memory_id)


@nacre.command(cls=QueryCommand)
@_memory_and_search
def why(context: click.Context, /, memory_id: str, query: tuple[str, ...], **given: Any) -> None:
    """Show the rank of a memory in a search, and every reason."""
    found = _explained(context, memory_id, query, given)
    answer(context, encode.why(found), render.why_lines(found))


@nacre.command("why-not", cls=QueryCommand)
@_memory_and_search
def why_not(context: click.Context, /, memory_id: str, query: tuple[str, ...], **given: Any) -> None:
    """Show why a search did not return a memory. Names the stage that dropped it, and what would include it."""
    found = _explained(context, memory_id, query, given).left_out
    answer(context, encode.why_not(found), render.why_not_lines(found))
