"""Commands on facts: fact add, list, drop; relation add, list, search; reinforce, stale, conflicts."""

from __future__ import annotations

from typing import Any, get_args

import click

from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import (
    QueryCommand,
    common,
    in_order,
    in_space,
    only_given,
    opened,
    secret_policy,
    to_moment,
    wants_json,
)
from nacre.serialization import encode
from nacre.types.facts import DECAY_PER_DAY, FactQuery, FactType, NewFact, Reinforcement
from nacre.types.search import Filter

_TYPES = ", ".join(get_args(FactType))


# ---------------------------------------------------------------- facts


@nacre.group()
@common
def fact() -> None:
    """Add, list and drop facts."""


def _statement(command: Any) -> Any:
    """The arguments and options that state a fact or a relation."""
    valued = (
        ("--memory", str, "ID", "The memory it belongs to; default: a new one."),
        ("--type", str, "TYPE", f"{_TYPES}."),
        ("--confidence", float, "NUMBER", "Initial confidence, from 0 to 1."),
        (
            "--decay-rate",
            float,
            "NUMBER",
            f"Daily decay of its confidence; default: by type, {DECAY_PER_DAY['kv']:g} for kv.",
        ),
        ("--valid-from", str, "TIME", "Start of its validity; default: when the memory happened or was created."),
        ("--valid-to", str, "TIME", "End of its validity."),
        ("--quote", str, "TEXT", "The words of the memory that state it."),
    )
    return in_order(
        command,
        [
            *(click.argument(name) for name in ("subject", "predicate", "object")),
            *(click.option(name, type=kind, metavar=metavar, help=text) for name, kind, metavar, text in valued),
            click.option("--single/--several", default=None, help="Whether a newer value supersedes it."),
        ],
    )


@fact.command("add")
@_statement
@click.option("--relation", is_flag=True, help="The object is an entity.")
@secret_policy
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
    if not wants_json(context):
        render.remark(believed.fact.notes)


def _narrowing(command: Any) -> Any:
    """The options that select facts or relations."""
    valued = (
        ("--subject", "NAME", "Only with this subject, by any of its names."),
        ("--predicate", "NAME", "Only with this predicate."),
        ("--object", "NAME", "Only with this object."),
        ("--type", "TYPE", f"{_TYPES}."),
        ("--memory", "ID", "Only from this memory."),
        ("--as-of", "TIME", "Those that were current at this time."),
    )
    return in_order(
        command,
        [
            *(click.option(name, metavar=metavar, help=text) for name, metavar, text in valued),
            click.option("--history", is_flag=True, help="Include facts that are not current."),
            click.option(
                "--min-confidence", type=float, metavar="NUMBER", help="Minimum confidence after decay, from 0 to 1."
            ),
            in_space,
            click.option("--limit", type=int, help="Maximum number of facts."),
        ],
    )


@fact.command("list")
@_narrowing
@common
@click.pass_context
def fact_list(context: click.Context, /, **given: Any) -> None:
    """List current facts, newest first, with their confidence."""
    _list(context, given, relations=False)


def _list(context: click.Context, given: dict[str, Any], *, relations: bool) -> None:
    query = FactQuery(
        relations=relations,
        **only_given(
            spaces=given["spaces"],
            subject=given["subject"],
            predicate=given["predicate"],
            object=given["object"],
            type=given["type"],
            memory_id=given["memory"],
            as_of=to_moment("as_of", given["as_of"]),
            history=given["history"] or None,
            min_confidence=given["min_confidence"],
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
    """Delete facts. Facts they superseded become current again; the memories stay."""
    with opened(context) as memory:
        memory.drop_facts(ids)
    answer(context, {"dropped": list(ids)}, [[("dropped ", ""), (" ".join(ids), "cyan")]])


@nacre.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--how", metavar="KIND", default="explicit", help=f"{', '.join(get_args(Reinforcement))}.")
@common
@click.pass_context
def reinforce(context: click.Context, ids: tuple[str, ...], how: Any) -> None:
    """Confirm facts, by fact id or memory id. Their confidence decays from now on."""
    with opened(context) as memory:
        done = memory.reinforce(ids, how)
    answer(context, {"reinforced": done}, [[(f"reinforced {counted(done, 'fact')}", "")]])


@nacre.command()
@in_space
@common
@click.pass_context
def stale(context: click.Context, spaces: tuple[str, ...]) -> None:
    """List facts that need confirmation. Their confidence has been below 0.5 for thirty days."""
    with opened(context) as memory:
        found = memory.stale(spaces)
    answer(context, [encode.belief(each) for each in found], render.belief_lines(found))


@nacre.command()
@in_space
@common
@click.pass_context
def conflicts(context: click.Context, spaces: tuple[str, ...]) -> None:
    """List current facts that contradict each other, and memories that may."""
    with opened(context) as memory:
        found = memory.conflicts(spaces)
    answer(context, [encode.disagreement(each) for each in found], render.conflict_lines(found))


# ---------------------------------------------------------------- relations


@nacre.group()
@common
def relation() -> None:
    """Add, list and search relations. A relation is a fact whose object is an entity."""


@relation.command("add")
@_statement
@secret_policy
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
    """List current relations, newest first."""
    _list(context, given, relations=True)


@relation.command("search", cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@in_space
@common
@click.pass_context
def relation_search(context: click.Context, query: tuple[str, ...], spaces: tuple[str, ...]) -> None:
    """Find relations by their words, best first."""
    with opened(context, log=False) as memory:
        result = memory.search(" ".join(query), mode="keyword", lens="none", where=Filter(spaces=spaces))
    answer(context, [encode.relation_hit(each) for each in result.relations], render.relation_lines(result.relations))
