"""The commands for lenses, the recall log, and why a memory was found or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import QueryCommand, common, filters, only_given, opened, search_options, to_filter, to_search
from nacre.engine.explain import Why
from nacre.errors import InvalidInput
from nacre.query import lenses
from nacre.query.lenses import Lens
from nacre.serialization import encode
from nacre.types.search import Filter

# ---------------------------------------------------------------- why


def _followed(command: Any) -> Any:
    """A memory and the search that it is followed through: ID first, then the query."""
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
@_followed
def why(context: click.Context, /, memory_id: str, query: tuple[str, ...], **given: Any) -> None:
    """Show the place of a memory in a search, and every reason with its numbers."""
    found = _explained(context, memory_id, query, given)
    answer(context, encode.why(found), render.why_lines(found))


@nacre.command("why-not", cls=QueryCommand)
@_followed
def why_not(context: click.Context, /, memory_id: str, query: tuple[str, ...], **given: Any) -> None:
    """Name the stage at which a search left a memory out, and what would bring it in."""
    found = _explained(context, memory_id, query, given).left_out
    answer(context, encode.why_not(found), render.why_not_lines(found))


# ---------------------------------------------------------------- the recall log


@nacre.command()
@click.option("--session", metavar="SESSION", help="Only what this session asked.")
@click.option("--limit", type=int, help="At most so many searches.")
@click.option("--before", metavar="RECEIPT", help="Go on after the last one of a page.")
@click.option("--in-space", "spaces", metavar="NAME", multiple=True, help="Of this space instead; may be repeated.")
@common
@click.pass_context
def log(context: click.Context, /, **given: Any) -> None:
    """List what searches delivered, the newest first, and what became of it."""
    with opened(context) as memory:
        found = memory.receipts(**only_given(**given))
    answer(context, [encode.receipt(each) for each in found], render.receipt_lines(found))


@nacre.command("why-recalled")
@click.argument("memory_id", metavar="ID")
@click.option("--limit", type=int, help="At most so many searches.")
@click.option("--in-space", "spaces", metavar="NAME", multiple=True, help="Asked in this space instead.")
@common
@click.pass_context
def why_recalled(context: click.Context, /, **given: Any) -> None:
    """List the searches that delivered a memory: who asked what, and where it stood."""
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
@click.option("--receipt", metavar="RECEIPT", help="The search that delivered them; the latest if not given.")
@common
@click.pass_context
def mark(context: click.Context, outcome: Any, ids: tuple[str, ...], receipt: str | None) -> None:
    """Say what became of memories that a search delivered: what was used is raised a little, what was wrong sinks."""
    with opened(context) as memory:
        marked = memory.mark(ids, outcome, receipt)
    said = " ".join(marked) or "nothing new"
    answer(context, {"outcome": outcome, "marked": list(marked)}, [[(f"{outcome}: ", ""), (said, "cyan")]])


# ---------------------------------------------------------------- lenses


@nacre.group()
@common
def lens() -> None:
    """Save, list, show and delete lenses: named presets of a search."""


@lens.command("save")
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What it is for.")
@click.option("--file", type=click.Path(path_type=Path), help="Take it from this JSON file, as `lens show` prints it.")
@click.option("--mode", metavar="MODE", help="keyword, semantic or hybrid.")
@click.option("--limit", type=int, help="At most so many hits.")
@click.option("--min-score", type=float, help="The least relevance of a hit.")
@click.option("--token-budget", type=int, help="Tokens that the hits may cost.")
@click.option("--boost-entity", "boost_entities", metavar="NAME", multiple=True, help="May be repeated.")
@click.option("--recipe", metavar="FIELD=VALUE", multiple=True, help="A field of the recipe; may be repeated.")
@click.option("--question", "questions", metavar="WORDS", multiple=True, help="Questions with these words select it.")
@click.option("--folder", "folders", metavar="PATTERN", multiple=True, help="Being asked in such a folder selects it.")
@filters
@common
@click.pass_context
def lens_save(context: click.Context, /, name: str, file: Path | None, recipe: tuple[str, ...], **given: Any) -> None:
    """Save a lens under NAME, in place of one that has it. It may select itself by questions or folders."""
    where = to_filter(given)
    if file is not None:
        if only_given(**given) or recipe or where != Filter():
            raise InvalidInput("file", "holds the whole lens; give no other options with it")
        new = lenses.from_json({**_object(file), "name": name})
    else:
        new = Lens(name=name, where=where, recipe=_recipe(recipe), **only_given(**given))
    with opened(context, create=True) as memory:
        saved = memory.save_lens(new)
    answer(context, lenses.to_json(saved), render.lens_lines([saved]))


def _object(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput("file", f"{file} cannot be read as JSON ({error})") from None
    if not isinstance(data, dict):
        raise InvalidInput("file", f"{file} must hold a JSON object")
    return data


def _recipe(pairs: tuple[str, ...]) -> dict[str, Any]:
    recipe: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            recipe[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            recipe[name.strip()] = value.strip() if value.strip().isalpha() else None
        if recipe[name.strip()] is None:
            raise InvalidInput("recipe", f"{pair!r} must be FIELD=VALUE, for example recency_weight=0.5 or fusion=rank")
    return recipe


@lens.command("list")
@common
@click.pass_context
def lens_list(context: click.Context) -> None:
    """List all lenses, the built-in ones first."""
    with opened(context) as memory:
        found = memory.lenses()
    answer(context, [lenses.to_json(each) for each in found], render.lens_lines(found))


@lens.command("show")
@click.argument("name")
@common
@click.pass_context
def lens_show(context: click.Context, name: str) -> None:
    """Show a lens with all that it sets."""
    with opened(context) as memory:
        found = memory.lens(name)
    encoded = lenses.to_json(found)
    answer(context, encoded, [[(encode.dumps(encoded), "")]])


@lens.command("delete")
@click.argument("name")
@common
@click.pass_context
def lens_delete(context: click.Context, name: str) -> None:
    """Delete a lens."""
    with opened(context) as memory:
        memory.drop_lens(name)
    answer(context, {"deleted": name}, [[("deleted ", ""), (name, "cyan")]])
