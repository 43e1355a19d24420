"""Commands on the store as a whole: stats, audit, reembed, rebuild, config."""

from __future__ import annotations

from typing import Any

import click

from nacre.analysis.wording import count_memories, counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, filters, opened, settings_of, to_filter, wants_json, without_tokens
from nacre.serialization import encode
from nacre.types.location import Location
from nacre.types.memory import Json, Progress


@nacre.command()
@common
@click.pass_context
def stats(context: click.Context) -> None:
    """Show the number of memories, the size and the model."""
    with opened(context) as memory:
        counts = memory.stats()
    answer(context, encode.stats(counts), render.stats_lines(counts))
    if counts.pending_tokens and settings_of(context).token_vectors.value and not wants_json(context):
        lacking = counted(counts.pending_tokens, "memory has", "memories have")
        render.remark([f"{lacking} no token vectors; run `nacre reembed`"])


@nacre.command()
@filters
@common
@click.pass_context
def audit(context: click.Context, /, **given: Any) -> None:
    """List memories that have keys, tokens, passwords, card or account numbers, and where, but not these themselves.

    Forgotten memories, facts and earlier values are looked at, too. The exit code is 4 if there are any.
    """
    where = to_filter(given)
    with opened(context) as memory:
        found = list(memory.audit(where))
    lines = [*render.audit_lines(found), [(f"{count_memories(len(found))} with secrets", "")]]
    answer(context, [encode.memory_with_secrets(each) for each in found], lines)
    if found:
        context.exit(encode.SECRETS_FOUND)


@nacre.command()
@without_tokens
@common
@click.pass_context
def reembed(context: click.Context) -> None:
    """Embed all memories with the configured model. After an interruption, it continues where it stopped."""
    state = Progress(0, 0)
    with opened(context, switch_model=True) as memory, render.progress("embedding") as bar:
        for state in memory.reembed():
            bar(state)
    answer(context, {"embedded": state.done}, [[(f"embedded {count_memories(state.done)}", "")]])


@nacre.command()
@common
@click.pass_context
def rebuild(context: click.Context) -> None:
    """Rebuild all indexes and caches from the memories."""
    with opened(context) as memory:
        memory.rebuild()
    answer(context, {"rebuilt": True}, [[("rebuilt", "")]])


@nacre.command()
@common
@click.pass_context
def config(context: click.Context) -> None:
    """Show every setting and where its value comes from."""
    settings = settings_of(context)
    sourced = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
    encoded: dict[str, Json] = {
        name: {"value": _encoded(each.value), "source": each.source} for name, each in sourced.items()
    }
    answer(context, encoded, render.settings_lines(settings))


def _encoded(value: Any) -> Json:
    """The value of a setting. What names a place is shown without its password."""
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return str(value) if isinstance(value, Location) else value
