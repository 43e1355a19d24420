"""Commands on entities, what memories are about: entity add, list, show, drop, related."""

from __future__ import annotations

from typing import Any

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, in_space, only_given, opened, to_moment
from nacre.errors import InvalidInput
from nacre.query.filters import quoted
from nacre.serialization import encode
from nacre.types.recipe import Recipe


@nacre.group()
@common
def entity() -> None:
    """Add, list, show and drop entities. Entities are the people and things that memories are about."""


@entity.command("add")
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="person, project, service or any other word.")
@click.option("--alias", "aliases", metavar="NAME", multiple=True, help="Another name. Repeatable.")
@click.option("--memory", "memory_ids", metavar="ID", multiple=True, help="A memory about it. Repeatable.")
@common
@click.pass_context
def entity_add(context: click.Context, /, name: str, **given: Any) -> None:
    """Add the entity NAME, or more names for it. Entities that share a name are merged."""
    with opened(context, create=True) as memory:
        added = memory.add_entity(name, **given)
    answer(context, encode.entity(added), render.entity_lines([added]))


@entity.command("list")
@click.argument("names", nargs=-1)
@click.option("--limit", type=int, help="Maximum number of entities.")
@in_space
@common
@click.pass_context
def entity_list(context: click.Context, names: tuple[str, ...], limit: int | None, spaces: tuple[str, ...]) -> None:
    """List all entities, or those with one of NAMES."""
    with opened(context) as memory:
        found = memory.entities(names or None, spaces=spaces, **only_given(limit=limit))
    answer(context, [encode.entity(each) for each in found], render.entity_lines(found))


@entity.command("show")
@click.argument("name")
@click.option("--limit", type=int, default=10, show_default=True, help="Maximum number of memories.")
@common
@click.pass_context
def entity_show(context: click.Context, name: str, limit: int) -> None:
    """Show an entity, its current facts, and the newest memories about it."""
    with opened(context, log=False) as memory:
        known = memory.entities([name])
        if not known:
            raise InvalidInput("name", f"no entity is called {name!r}; see `nacre entity list`")
        facts = memory.facts(subject=name)
        recipe = Recipe(confidence_weight=0, min_confidence=0, usage_weight=0)
        query = f"entity:{quoted(known[0].name)}"
        hits = memory.search(query, mode="keyword", limit=limit, lens="none", recipe=recipe).hits
    encoded = encode.entity(known[0]) | {
        "facts": [encode.belief(each) for each in facts],
        "memories": [encode.hit(each) for each in hits],
    }
    answer(context, encoded, render.entity_page(known[0], facts, hits))


@entity.command("drop")
@click.argument("name")
@common
@click.pass_context
def entity_drop(context: click.Context, name: str) -> None:
    """Delete an entity with its names and links. Memories and facts stay."""
    with opened(context) as memory:
        memory.drop_entity(name)
    answer(context, {"dropped": name}, [[("dropped ", ""), (name, "cyan")]])


@entity.command("related")
@click.argument("name")
@click.option("--depth", type=int, default=1, show_default=True, help="Maximum number of relations to follow, 1 to 3.")
@click.option("--as-of", metavar="TIME", help="Use the relations that were current at this time.")
@in_space
@common
@click.pass_context
def entity_related(context: click.Context, name: str, depth: int, as_of: str | None, spaces: tuple[str, ...]) -> None:
    """List the entities that relations lead to, nearest first, with the path to each."""
    with opened(context) as memory:
        found = memory.related_entities(name, depth, spaces=spaces, as_of=to_moment("as_of", as_of))
    answer(context, [encode.related_entity(each) for each in found], render.related_lines(found))
