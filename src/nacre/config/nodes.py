"""Opens the nodes of a store, adds one, and moves spaces between them: the part of `factory` for several nodes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, cast

from nacre import validation
from nacre.errors import InvalidInput, NotFound, StoreUnavailable
from nacre.types.location import CONNECTIONS_MAX, SCHEMA, STALENESS_S, Address, Nodes, StoreName, address, schema_name
from nacre.types.nodes import Member, Moved, NodeStatus
from nacre.types.quotas import NO_QUOTAS, Quotas
from nacre.validation import LIMITS

if TYPE_CHECKING:
    from nacre.config.settings import Settings
    from nacre.storage.nodes import NodesStore
    from nacre.storage.nodes.connected import Connected
    from nacre.storage.postgres import PostgresNode
    from nacre.storage.postgres.connection import Connections

_BUSY_TIMEOUT_MS = 10_000


def open_node(
    where: Address,
    schema: str,
    *,
    create: bool = True,
    busy_timeout_ms: int = _BUSY_TIMEOUT_MS,
    connections: int = CONNECTIONS_MAX,
    quotas: Quotas = NO_QUOTAS,
    replicas: tuple[Address, ...] = (),
    staleness_s: float = STALENESS_S,
) -> PostgresNode:
    """A store in PostgreSQL, which may be one of several nodes."""
    try:
        from nacre.storage.postgres import PostgresNode
    except ImportError as error:  # psycopg, or its library of PostgreSQL
        raise StoreUnavailable(
            f"store: {where} needs packages that are missing ({error}); "
            "install them with `pip install 'nacre-memory[postgres]'`"
        ) from None
    return PostgresNode(
        where.dsn,
        schema,
        create=create,
        busy_timeout_ms=busy_timeout_ms,
        connections_max=connections,
        quotas=quotas,
        replicas=[each.dsn for each in replicas],
        staleness_s=staleness_s,
    )


def open_nodes(
    where: Nodes, opened: Callable[[Address], PostgresNode], *, create: bool, busy_timeout_ms: int = _BUSY_TIMEOUT_MS
) -> NodesStore:
    from nacre.storage.nodes import NodesStore

    nodes = [(str(each), partial(opened, each)) for each in where.addresses]
    return NodesStore(nodes, create=create, busy_timeout_ms=busy_timeout_ms)


def alone(store: PostgresNode, where: Address) -> PostgresNode:
    """The store, unless it is a node of one. Raises InvalidInput then, and closes it."""
    members = store.members()
    if not members:
        return store
    store.close()
    named = " ".join(each.address for each in members)
    raise InvalidInput("store", f"{where} is one of several nodes; name all of them: {named}")


def is_missing(error: StoreUnavailable) -> bool:
    """Whether a schema has no store, and none was to be made."""
    try:
        from nacre.storage.postgres import NoStore
    except ImportError:
        return False
    return isinstance(error, NoStore)


# ---------------------------------------------------------------- verbs


def add_node(path: StoreName, node: str, *, schema: str = SCHEMA) -> tuple[Member, ...]:
    """Add a node to a store, which may be on one server so far. Returns all nodes; name the store by all of them then.

    `path` and `schema` are as in `open_store`; `node` is the address of a database that has no memories yet. Nothing is
    moved there: new spaces go to it by their share, others with `move_space`. Processes that have the store open go on.
    """
    schema = schema_name("schema", schema)
    where, new = _location(path), address("node", node)
    if not isinstance(new, Address):
        raise InvalidInput("node", f"{validation.shown(node)} is no address of PostgreSQL; one is allowed")
    from nacre.storage.postgres.placements import NODES_MAX

    with ExitStack() as stack:
        known: tuple[Member, ...]
        if isinstance(where, Nodes):
            store = stack.enter_context(closing(open_nodes(where, partial(open_node, schema=schema), create=True)))
            nodes = [cast("PostgresNode", each.node()) for each in store.placement.every()]
            known = tuple(store.placement.members)
        else:
            home = alone(open_node(where, schema), where)
            nodes = [stack.enter_context(closing(home))]
            known = (Member(0, home.store_id(), str(where)),)
        added = stack.enter_context(closing(open_node(new, schema)))
        if added.store_id() in {each.store_id for each in known}:
            raise InvalidInput("node", f"{new} is a node of this store already; see `nacre nodes status`")
        if added.members():
            raise InvalidInput("node", f"{new} is a node of another store; name an empty database")
        if not added.is_empty():
            raise InvalidInput("node", f"{new} has memories already; add an empty store, and import them")
        every = (*known, Member(len(known), added.store_id(), str(new)))
        if len(every) > NODES_MAX:
            raise InvalidInput("node", f"a store may have {NODES_MAX} nodes, and has them")
        above = max(each.last_number() for each in nodes)
        for each in (*nodes, added):  # node 0 first: from then on the others are told by whoever opens the store
            each.join(every, above)
        return every


def move_space(path: StoreName, space: str, to: int | str, *, schema: str = SCHEMA) -> Moved:
    """Move a space to another node, while others read and write it. Needs the owner of the tables on both.

    `to` is the number of a node or its address. A move that was broken off goes on when it is called again; `to` may be
    the node that has the space: then only what other nodes still have of it is deleted.
    """
    with closing(_open(path, schema)) as store:
        validation.space_name(space, LIMITS)
        return _moved(store, space, _node_named(store, to))


def node_status(path: StoreName, *, schema: str = SCHEMA) -> tuple[NodeStatus, ...]:
    """The nodes of a store, also those that are away."""
    with closing(_open(path, schema)) as store:
        return tuple(_status(store, each) for each in store.placement.members)


def nodes_from_settings(settings: Settings) -> tuple[StoreName, str]:
    """The store that the settings name, and its schema."""
    where = settings.store.value
    if not isinstance(where, Address | Nodes):
        raise InvalidInput("store", f"{where} is a file; nodes are databases of PostgreSQL: name them with --store")
    named: StoreName = where.dsn if isinstance(where, Address) else [each.dsn for each in where.addresses]
    return named, settings.postgres_schema.value


# ---------------------------------------------------------------- inside


def _location(path: StoreName) -> Address | Nodes:
    where = address("path", path)
    if where is None:
        raise InvalidInput("path", f"{validation.shown(path)} is no address of PostgreSQL; only there are nodes")
    return where


def _open(path: StoreName, schema: str) -> NodesStore:
    where = _location(path)
    if isinstance(where, Address):
        where = Nodes((where,))
        with closing(open_node(where.addresses[0], schema, create=False)) as single:
            if not single.members():
                raise InvalidInput("store", f"{where} is on one node; add another one with `nacre nodes add`")
    opened = partial(open_node, schema=schema_name("schema", schema), create=False)
    return open_nodes(where, opened, create=False)


def _node_named(store: NodesStore, to: int | str) -> Member:
    members = store.placement.members
    wanted = address("to", to) if isinstance(to, str) and not to.isdigit() else None
    for each in members:
        if str(each.number) == str(to) or each.address == str(wanted) or each.store_id == to:
            return each
    listed = ", ".join(f"{each.number} ({each.address})" for each in members)
    raise InvalidInput("to", f"{validation.shown(to)} is no node of this store; these are: {listed}")


def _moved(store: NodesStore, space: str, target: Member) -> Moved:
    from nacre.storage.postgres import moving

    placement = store.placement
    owners = placement.of([space])
    if not owners:
        raise NotFound((space,), "see `nacre nodes status`", what="space")
    placement.forget([space])  # what is known may be old, and a move may have been broken off
    ((owner, _),) = placement.of([space]).items()
    copied = compared = 0
    source = next(each for each in placement.members if each.store_id == owner.store_id)
    if source != target:
        there = placement.connected(target.store_id)
        copied, compared = moving.copy_over(_connections(owner), _connections(there), space)
        there.asked(lambda node: node.promote(space, source.store_id))
    placement.home.asked(lambda node: node.reassign(space, target.store_id))
    for each in placement.members:
        if each != target:
            moving.clear(_connections(placement.connected(each.store_id)), space, target.store_id)
    return Moved(space, source.address, target.address, copied, compared)


def _connections(of: Connected) -> Connections:
    return cast("PostgresNode", of.node()).connections


def _status(store: NodesStore, member: Member) -> NodeStatus:
    try:
        connected = store.placement.connected(member.store_id)
        counted = connected.asked(lambda node: node.stats())
        arriving = connected.asked(lambda node: node.in_state("arriving"))
        spaces = connected.asked(lambda node: node.in_state("here"))
    except StoreUnavailable as error:
        return NodeStatus(member.number, member.address, problem=str(error))
    return NodeStatus(member.number, member.address, len(spaces), counted.memories, arriving)
