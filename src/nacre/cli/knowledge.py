"""The commands for what memories say: facts, entities, relations, and memories that say nearly the same."""

from __future__ import annotations

from typing import Any, get_args

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import QueryCommand, common, only_given, opened, to_moment
from nacre.errors import InvalidInput
from nacre.serialization import encode
from nacre.types.facts import DECAY_PER_DAY, FactQuery, FactType, NewFact, Reinforcement
from nacre.types.recipe import Recipe
from nacre.types.search import Filter

_TYPES = ", ".join(get_args(FactType))


# ---------------------------------------------------------------- facts


@nacre.group()
@common
def fact() -> None:
    """State, list and drop facts."""


def _statement(command: Any) -> Any:
    """What states a fact or a relation."""
    for name, kind, metavar, help_text in (
        ("--memory", str, "ID", "The memory it belongs to; a new one is made if not given."),
        ("--type", str, "TYPE", f"{_TYPES}."),
        ("--confidence", float, "NUMBER", "From 0 to 1."),
        ("--decay-rate", float, "NUMBER", f"How much it fades a day; {DECAY_PER_DAY['kv']:g} for kv, and so on."),
        ("--valid-from", str, "TIME", "Since when it holds; when the memory happened or was created if not given."),
        ("--valid-to", str, "TIME", "Until when it holds."),
        ("--quote", str, "TEXT", "The words that say it."),
    ):
        command = click.option(name, type=kind, metavar=metavar, help=help_text)(command)
    command = click.option("--single/--several", default=None, help="Whether a newer value takes its place.")(command)
    for name in ("object", "predicate", "subject"):
        command = click.argument(name)(command)
    return command


@fact.command("add")
@_statement
@click.option("--relation", is_flag=True, help="The object is an entity.")
@common
@click.pass_context
def fact_add(context: click.Context, /, **given: Any) -> None:
    """State that SUBJECT PREDICATE OBJECT, for example: nacre fact add Ada "lives in" London --type location"""
    _add(context, given)


def _add(context: click.Context, given: dict[str, Any]) -> None:
    for name in ("valid_from", "valid_to"):
        given[name] = to_moment(name, given[name])
    memory_id = given.pop("memory")
    new = NewFact(**only_given(**given))
    with opened(context, create=True) as memory:
        believed = memory.state_fact(new, memory_id)
    answer(context, encode.belief(believed), render.belief_lines([believed]))


def _narrowing(command: Any) -> Any:
    """What facts or relations are listed."""
    for name, metavar, help_text in (
        ("--subject", "NAME", "Only of this subject, by any of its names."),
        ("--predicate", "NAME", "Only with this predicate."),
        ("--object", "NAME", "Only with this object."),
        ("--type", "TYPE", f"{_TYPES}."),
        ("--memory", "ID", "Only of this memory."),
        ("--as-of", "TIME", "Those that held then."),
    ):
        command = click.option(name, metavar=metavar, help=help_text)(command)
    command = click.option("--history", is_flag=True, help="Those that hold no longer, too.")(command)
    command = click.option("--in-space", metavar="NAME", multiple=True, help="Of this space instead; may be repeated.")(
        command
    )
    return click.option("--limit", type=int, help="At most so many.")(command)


@fact.command("list")
@_narrowing
@common
@click.pass_context
def fact_list(context: click.Context, /, **given: Any) -> None:
    """List facts that hold, the newest first, with how far each is believed."""
    _list(context, given, relations=False)


def _list(context: click.Context, given: dict[str, Any], *, relations: bool) -> None:
    query = FactQuery(
        relations=relations,
        **only_given(
            spaces=given["in_space"],
            subject=given["subject"],
            predicate=given["predicate"],
            object=given["object"],
            type=given["type"],
            memory_id=given["memory"],
            as_of=to_moment("as_of", given["as_of"]),
            history=given["history"] or None,
            limit=given["limit"],
        ),
    )
    with opened(context) as memory:
        found = memory.facts(query)
    answer(context, [encode.belief(each) for each in found], render.belief_lines(found))


@fact.command("drop")
@click.argument("ids", nargs=-1, required=True, metavar="FACT…")
@common
@click.pass_context
def fact_drop(context: click.Context, ids: tuple[str, ...]) -> None:
    """Delete facts. What they had taken the place of holds again; the memories stay."""
    with opened(context) as memory:
        memory.drop_facts(ids)
    answer(context, {"dropped": list(ids)}, [[("dropped ", ""), (" ".join(ids), "cyan")]])


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--how", metavar="KIND", default="explicit", help=f"{', '.join(get_args(Reinforcement))}.")
@common
@click.pass_context
def reinforce(context: click.Context, ids: tuple[str, ...], how: Any) -> None:
    """Say that facts still hold, by their ids or those of their memories: they fade from now on."""
    with opened(context) as memory:
        done = memory.reinforce(ids, how)
    answer(context, {"reinforced": done}, [[(f"reinforced {done:,} fact{'' if done == 1 else 's'}", "")]])


_IN_SPACE = click.option("--in-space", "spaces", metavar="NAME", multiple=True, help="Of this space instead.")


@nacre.command()
@_IN_SPACE
@common
@click.pass_context
def stale(context: click.Context, spaces: tuple[str, ...]) -> None:
    """List facts that nobody has confirmed for long: believed less than a half for thirty days."""
    with opened(context) as memory:
        found = memory.stale(spaces)
    answer(context, [encode.belief(each) for each in found], render.belief_lines(found))


@nacre.command()
@_IN_SPACE
@common
@click.pass_context
def conflicts(context: click.Context, spaces: tuple[str, ...]) -> None:
    """List facts that hold at once though only one of them can be true."""
    with opened(context) as memory:
        found = memory.conflicts(spaces)
    answer(context, [encode.disagreement(each) for each in found], render.conflict_lines(found))


# ---------------------------------------------------------------- entities


@nacre.group()
@common
def entity() -> None:
    """Name, list and relate what memories are about."""


@entity.command("add")
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="person, project, service, … an open word.")
@click.option("--alias", "aliases", metavar="NAME", multiple=True, help="Another name; may be repeated.")
@click.option("--memory", "memory_ids", metavar="ID", multiple=True, help="A memory about it; may be repeated.")
@common
@click.pass_context
def entity_add(context: click.Context, /, name: str, **given: Any) -> None:
    """Make NAME known, or more of its names. Entities that share a name become one."""
    with opened(context, create=True) as memory:
        added = memory.add_entity(name, **given)
    answer(context, encode.entity(added), render.entity_lines([added]))


@entity.command("list")
@click.argument("names", nargs=-1)
@click.option("--limit", type=int, help="At most so many.")
@_IN_SPACE
@common
@click.pass_context
def entity_list(context: click.Context, names: tuple[str, ...], limit: int | None, spaces: tuple[str, ...]) -> None:
    """List entities by name, all or those called NAMES."""
    with opened(context) as memory:
        found = memory.entities(names or None, spaces=spaces, **only_given(limit=limit))
    answer(context, [encode.entity(each) for each in found], render.entity_lines(found))


@entity.command("show")
@click.argument("name")
@click.option("--limit", type=int, default=10, show_default=True, help="At most so many memories.")
@common
@click.pass_context
def entity_show(context: click.Context, name: str, limit: int) -> None:
    """Show an entity, its facts, and the newest memories about it."""
    with opened(context, log=False) as memory:
        known = memory.entities([name])
        if not known:
            raise InvalidInput("name", f"no entity is called {name!r}; see `nacre entity list`")
        facts = memory.facts(subject=name)
        recipe = Recipe(confidence_weight=0, min_confidence=0, usage_weight=0)
        asked = f'entity:"{known[0].name}"'
        hits = memory.search(asked, mode="keyword", limit=limit, lens="none", recipe=recipe).hits
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
    """Forget an entity with its names and links. Memories and facts stay."""
    with opened(context) as memory:
        memory.drop_entity(name)
    answer(context, {"dropped": name}, [[("dropped ", ""), (name, "cyan")]])


@entity.command("related")
@click.argument("name")
@click.option("--depth", type=int, default=1, show_default=True, help="Relations to follow, 1 to 3.")
@click.option("--as-of", metavar="TIME", help="By relations that held then.")
@_IN_SPACE
@common
@click.pass_context
def entity_related(context: click.Context, name: str, depth: int, as_of: str | None, spaces: tuple[str, ...]) -> None:
    """List the entities that relations lead to, the nearest first, with the way to each."""
    with opened(context) as memory:
        found = memory.related_entities(name, depth, spaces=spaces, as_of=to_moment("as_of", as_of))
    answer(context, [encode.related_entity(each) for each in found], render.related_lines(found))


# ---------------------------------------------------------------- relations


@nacre.group()
@common
def relation() -> None:
    """State, list and search relations: facts whose object is an entity."""


@relation.command("add")
@_statement
@common
@click.pass_context
def relation_add(context: click.Context, /, **given: Any) -> None:
    """State a relation between two entities, for example: nacre relation add Ada "works at" Acme"""
    if given["type"] is None:
        given["type"] = "relationship"
    _add(context, given | {"relation": True})


@relation.command("list")
@_narrowing
@common
@click.pass_context
def relation_list(context: click.Context, /, **given: Any) -> None:
    """List relations that hold, the newest first."""
    _list(context, given, relations=True)


@relation.command("search", cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option("--in-space", metavar="NAME", multiple=True, help="Search this space instead; may be repeated.")
@common
@click.pass_context
def relation_search(context: click.Context, query: tuple[str, ...], in_space: tuple[str, ...]) -> None:
    """Find relations by their words, best first."""
    with opened(context, log=False) as memory:
        result = memory.search(" ".join(query), mode="keyword", lens="none", where=Filter(spaces=in_space))
    answer(context, [encode.relation_hit(each) for each in result.relations], render.relation_lines(result.relations))


# ---------------------------------------------------------------- near-duplicates


@nacre.command()
@click.argument("memory_id", metavar="ID")
@click.option("--separate", is_flag=True, help="Show it on its own from now on.")
@common
@click.pass_context
def similar(context: click.Context, memory_id: str, separate: bool) -> None:
    """List memories that say nearly the same as this one, and are shown with it as one hit."""
    with opened(context) as memory:
        if separate:
            apart = memory.separate(memory_id)
            answer(context, {"separated": apart}, [[(f"separated from {apart:,}", "")]])
            return
        found = memory.similar(memory_id)
    lines = [line for each in found for line in render.memory_lines(each)]
    answer(context, [encode.memory(each) for each in found], lines or [[("nothing there", "dim")]])
