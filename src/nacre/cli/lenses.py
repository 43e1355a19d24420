"""Commands on lenses, the named presets of a search: lens save, list, show, delete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from nacre.analysis import encodings
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import (
    MODES,
    common,
    filters,
    only_given,
    opened,
    recipe_fields,
    rerank_options,
    to_filter,
    to_recipe_fields,
    to_rerank,
)
from nacre.errors import InvalidInput
from nacre.query import lenses
from nacre.query.lenses import Lens
from nacre.serialization import encode
from nacre.types.search import Filter


@nacre.group()
@common
def lens() -> None:
    """Save, list, show and delete lenses. A lens is a named preset of a search."""


@lens.command("save")
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What the lens is for.")
@click.option(
    "--file", type=click.Path(path_type=Path), help="Read the lens from this JSON file, as `lens show` prints it."
)
@click.option("--mode", metavar="MODE", help=f"{MODES}.")
@click.option("--limit", type=int, help="Maximum number of hits.")
@click.option("--min-score", type=float, help="Minimum relevance of a hit, from 0 to 1.")
@click.option("--token-budget", type=int, help="Maximum size of all hits in tokens.")
@click.option("--boost-entity", "boost_entities", metavar="NAME", multiple=True, help="An entity to boost. Repeatable.")
@recipe_fields
@rerank_options
@click.option(
    "--question", "questions", metavar="WORDS", multiple=True, help="Select it for questions with these words."
)
@click.option("--folder", "folders", metavar="PATTERN", multiple=True, help="Select it for searches in such a folder.")
@filters
@common
@click.pass_context
def lens_save(context: click.Context, /, name: str, file: Path | None, recipe: tuple[str, ...], **given: Any) -> None:
    """Save a lens as NAME, replacing one of that name. --question and --folder make it select itself."""
    where = to_filter(given)
    given["rerank"] = to_rerank(given)
    if file is not None:
        if only_given(**given) or recipe or where != Filter():
            raise InvalidInput("file", "contains the whole lens; omit all other options")
        new = lenses.from_json({**_object(file), "name": name})
    else:
        new = Lens(name=name, where=where, recipe=to_recipe_fields(recipe), **only_given(**given))
    with opened(context, create=True) as memory:
        saved = memory.save_lens(new)
    answer(context, lenses.to_json(saved), render.lens_lines([saved]))


def _object(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(encodings.decoded(file.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput("file", f"{file} cannot be read as JSON ({error})") from None
    if not isinstance(data, dict):
        raise InvalidInput("file", f"{file} must contain a JSON object")
    return data


@lens.command("list")
@common
@click.pass_context
def lens_list(context: click.Context) -> None:
    """List all lenses, built-in ones first."""
    with opened(context) as memory:
        found = memory.lenses()
    answer(context, [lenses.to_json(each) for each in found], render.lens_lines(found))


@lens.command("show")
@click.argument("name")
@common
@click.pass_context
def lens_show(context: click.Context, name: str) -> None:
    """Show a lens and everything it sets, as JSON."""
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
