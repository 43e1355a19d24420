"""Commands that find memories: search and its alias recall, context, related, similar, facets."""

from __future__ import annotations

from copy import copy
from typing import Any

import click

from nacre.analysis.wording import count_memories
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import (
    QueryCommand,
    common,
    filters,
    folder,
    only_given,
    opened,
    recipe_fields,
    rerank_options,
    search_options,
    to_filter,
    to_moment,
    to_recipe,
    to_rerank,
    to_search,
    wants_json,
    with_reasons,
)
from nacre.serialization import encode
from nacre.types.search import RelatedRequest
from nacre.types.views import ContextRequest


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option("--brief", is_flag=True, help="Print one line per hit, as agents get it.")
@with_reasons
@search_options
@filters
@common
@click.pass_context
def search(context: click.Context, /, query: tuple[str, ...], brief: bool, why: bool, **given: Any) -> None:
    """Find memories that answer QUERY, best first.

    A memory matches if it shares any word with QUERY or is close in meaning. QUERY may contain AND, OR, NOT,
    "phrases", prefix*, -exclusions, NEAR(a b, 5) and filters such as tag:x, ns:decisions, kind:fact, source:docs/*,
    since:7d and on:yesterday.
    """
    request = to_search(" ".join(query), given)
    with opened(context, shows_notes=True) as memory:
        result = memory.search(request)
    if brief:
        answer(context, encode.brief(result), render.brief_lines(result, why=why))
    else:
        answer(context, encode.search_result(result), render.search_lines(result, why=why))


recall = copy(search)  # under both names, the same command with the same help
recall.name, recall.short_help = "recall", "An alias of `search`."
nacre.add_command(recall)


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option("--budget", "budget_tokens", type=int, metavar="TOKENS", help="Maximum size of the text in tokens.")
@click.option(
    "--asked-in", "asked_in", metavar="SESSION", help="The asking session; it gets no memory twice in an hour."
)
@click.option("--repeat", is_flag=True, help="Give all again: the session has lost what it was given.")
@click.option("--min-score", type=float, metavar="RELEVANCE", help="Quote all that are this relevant, from 0 to 1.")
@click.option("--as-of", metavar="TIME", help="Answer as of this time.")
@recipe_fields
@rerank_options
@filters
@common
@click.pass_context
def context(context: click.Context, /, query: tuple[str, ...], asked_in: str | None, **given: Any) -> None:
    """Build a context for an agent. It holds the memories that answer QUERY, within a token budget."""
    where = to_filter(given)
    given |= {
        "as_of": to_moment("as_of", given["as_of"]),
        "recipe": to_recipe(given["recipe"]),
        "rerank": to_rerank(given),
    }
    options = only_given(session=asked_in, repeat=given.pop("repeat") or None, **given)
    request = ContextRequest(query=" ".join(query), where=where, folder=folder(), **options)
    with opened(context, shows_notes=True) as memory:
        packed = memory.context(request)
    answer(context, encode.context(packed), render.context_lines(packed))
    if not wants_json(context):
        render.remark(render.context_notes(packed))


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--limit", type=int, help="Maximum number of hits.")
@click.option("--alpha", type=float, help="Weight of meaning against shared words, from 0 to 1.")
@recipe_fields
@with_reasons
@filters
@common
@click.pass_context
def related(
    context: click.Context,
    /,
    memory_id: str,
    limit: int | None,
    alpha: float | None,
    recipe: tuple[str, ...],
    why: bool,
    **given: Any,
) -> None:
    """Find memories related to one. They are close in meaning, share rare words, or are from the same session."""
    options = only_given(limit=limit, recipe=to_recipe(recipe, alpha))
    request = RelatedRequest(memory_id=memory_id, where=to_filter(given), **options)
    with opened(context) as memory:
        result = memory.related(request)
    answer(context, encode.search_result(result), render.search_lines(result, why=why))


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--separate", is_flag=True, help="Stop collapsing this memory with its near-duplicates.")
@common
@click.pass_context
def similar(context: click.Context, memory_id: str, separate: bool) -> None:
    """List the near-duplicates of a memory. Searches collapse them into one hit."""
    with opened(context) as memory:
        if separate:
            count = memory.separate(memory_id)
            lines: list[render.Line] = [[(f"separated from {count_memories(count)}", "")]]
            answer(context, {"separated": count}, lines)
            return
        found = memory.similar(memory_id)
    lines = [line for each in found for line in render.memory_lines(each)]
    answer(context, [encode.memory(each) for each in found], lines or [[("nothing found", "dim")]])


@nacre.command(cls=QueryCommand)
@click.argument("query", nargs=-1)
@filters
@common
@click.pass_context
def facets(context: click.Context, /, query: tuple[str, ...], **given: Any) -> None:
    """Count memories by kind, namespace, tag, source and month. With QUERY, only those that match."""
    where = to_filter(given)
    with opened(context, shows_notes=True) as memory:
        counted = memory.facets(" ".join(query), where)
    answer(context, encode.facets(counted), render.facets_lines(counted))
