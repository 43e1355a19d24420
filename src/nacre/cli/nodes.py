"""Commands on the nodes of a store: nodes add, move, status."""

from __future__ import annotations

import click

from nacre.cli import render
from nacre.cli.group import answer, nacre
from nacre.cli.options import common, settings_of, wants_json
from nacre.config import nodes as config_nodes
from nacre.serialization import encode


@nacre.group()
@common
def nodes() -> None:
    """Add nodes to a store in PostgreSQL, and move spaces between them.

    Name a store on several nodes by all their addresses: repeat --store, or put spaces between them.
    """


@nodes.command("add")
@click.argument("address", metavar="ADDRESS")
@common
@click.pass_context
def nodes_add(context: click.Context, address: str) -> None:
    """Make an empty database a node of the store. Nothing is moved to it; new spaces are, by its share."""
    store, schema = config_nodes.nodes_from_settings(settings_of(context))
    members = config_nodes.add_node(store, address, schema=schema)
    answer(context, [encode.member(each) for each in members], render.member_lines(members))
    if not wants_json(context):
        render.remark(["name the store by all of these addresses from now on"])


@nodes.command("move")
@click.argument("name", metavar="SPACE")
@click.argument("to", metavar="NODE")
@common
@click.pass_context
def nodes_move(context: click.Context, name: str, to: str) -> None:
    """Move a space to a node, by its number or address, while others go on. Run it again if it was broken off."""
    store, schema = config_nodes.nodes_from_settings(settings_of(context))
    moved = config_nodes.move_space(store, name, to, schema=schema)
    answer(context, encode.moved(moved), render.moved_lines(moved))


@nodes.command("status")
@common
@click.pass_context
def nodes_status(context: click.Context) -> None:
    """Show the nodes, how many spaces and memories they have, and which of them are away. The exit code is 5 then."""
    store, schema = config_nodes.nodes_from_settings(settings_of(context))
    found = config_nodes.node_status(store, schema=schema)
    answer(context, [encode.node_status(each) for each in found], render.node_lines(found))
    if any(each.problem for each in found):
        context.exit(encode.PROBLEMS_FOUND)
