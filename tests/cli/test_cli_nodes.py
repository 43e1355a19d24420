"""`nacre nodes add|move|status`, on databases of a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nacre
from command_line import Cli
from postgres_server import Databases, PostgresServer, free_port, fresh_databases, needs_postgres

pytestmark = [pytest.mark.slow, needs_postgres]


@pytest.fixture
def databases() -> Iterator[Databases]:
    with fresh_databases() as made:
        yield made


def stores(*addresses: str) -> list[str]:
    return [part for each in addresses for part in ("--store", each)]


@pytest.fixture
def two(cli: Cli, databases: Databases) -> list[str]:
    """Two nodes: the space `team-a` with a memory is on node 0."""
    first, second = databases.new(2)
    cli("remember", "The kettle is in the kitchen", "--space", "team-a", *stores(first))
    cli("nodes", "add", second, *stores(first))
    return [first, second]


def test_a_node_is_added_a_space_is_moved_and_both_are_shown(cli: Cli, databases: Databases) -> None:
    first, second = databases.new(2)
    cli("remember", "The kettle is in the kitchen", "--space", "team-a", *stores(first))
    added = cli("nodes", "add", second, *stores(first))
    assert (added.code, added.out) == (0, f"  0  {first}\n  1  {second}\n")
    assert "name the store by all of these addresses from now on" in added.err

    both = stores(first, second)
    shown = cli("nodes", "status", *both)
    assert shown == (0, f"  0  {first}  1 space, 1 memory\n  1  {second}  0 spaces, 0 memories\n", "")

    moved = cli("nodes", "move", "team-a", "1", *both)
    assert (moved.code, moved.err) == (0, "")  # no progress in a pipe
    assert moved.out.splitlines()[0] == f"moved  team-a  from {first} to {second}"
    assert "rows copied" in moved.out
    assert "1  " + second + "  1 space, 1 memory" in cli("nodes", "status", *both).out
    assert "[kettle]" in cli("search", "kettle", "--space", "team-a", *both).out


def test_the_same_as_json(cli: Cli, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = databases.new(3)
    cli("remember", "The kettle is in the kitchen", "--space", "team-a", *stores(first))
    added = cli("nodes", "add", second, *stores(first), "--json")
    assert (added.code, added.err) == (0, "")
    assert [(each["number"], each["address"]) for each in added.json] == [(0, first), (1, second)]
    monkeypatch.setenv("NACRE_STORE", f"{first} {second}")
    assert [each["number"] for each in cli("nodes", "add", third, "--json").json] == [0, 1, 2]
    monkeypatch.setenv("NACRE_STORE", f"{third} {first} {second}")  # in any order
    moved = cli("nodes", "move", "team-a", third, "--json")
    assert (moved.code, moved.err) == (0, "")
    assert (moved.json["space"], moved.json["source"], moved.json["target"]) == ("team-a", first, third)
    assert moved.json["copied"] > 0
    again = cli("nodes", "move", "team-a", "2", "--json")
    assert (again.code, again.json["copied"]) == (0, 0)
    shown = cli("nodes", "status", "--json")
    assert (shown.code, shown.err) == (0, "")
    assert [(each["number"], each["spaces"], each["memories"]) for each in shown.json] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 1, 1),
    ]
    assert all(each["arriving"] == [] and each["problem"] == "" for each in shown.json)


def test_a_node_that_cannot_be_added(cli: Cli, two: list[str], databases: Databases) -> None:
    filled, fourth = databases.new(2)
    cli("remember", "The lamp is in the hall", *stores(filled))
    both = stores(*two)
    for address, says in (
        (filled, "has memories already; add an empty store, and import them"),
        (two[1], "is a node of this store already; see `nacre nodes status`"),
        ("memories.db", "is no address of PostgreSQL; one is allowed"),
        (f"{filled} {fourth}", "is no address of PostgreSQL; one is allowed"),
    ):
        assert says in cli("nodes", "add", address, *both).error
    cli("nodes", "add", fourth, *stores(filled))
    assert "is a node of another store; name an empty database" in cli("nodes", "add", fourth, *both).error
    assert "name all of them" in cli("nodes", "add", fourth, *stores(two[0])).error
    assert cli("nodes", "add", f"postgresql://postgres@127.0.0.1:{free_port()}/nothing", *both).code == 3
    assert [each["number"] for each in cli("nodes", "status", *both, "--json").json] == [0, 1]


def test_what_cannot_be_moved(cli: Cli, two: list[str]) -> None:
    both = stores(*two)
    listed = f"is no node of this store; these are: 0 ({two[0]}), 1 ({two[1]})"
    assert listed in cli("nodes", "move", "team-a", "7", *both).error
    assert listed in cli("nodes", "move", "team-a", "postgresql://elsewhere/agents", *both).error
    assert "no space 'nobody'; see `nacre nodes status`" in cli("nodes", "move", "nobody", "1", *both).error
    assert "no space 'nobody'; see `nacre nodes status`" in cli("nodes", "move", "nobody", "1", *both, "--json").error


def test_a_store_that_has_no_nodes(cli: Cli, databases: Databases) -> None:
    """A file, and a database alone: the error says what to do."""
    for command in (["status"], ["move", "team-a", "1"], ["add", "postgresql://elsewhere/agents"]):
        assert "is a file; nodes are databases of PostgreSQL: name them with --store" in cli("nodes", *command).error
    (alone,) = databases.new(1)
    cli("remember", "The kettle is in the kitchen", *stores(alone))
    for command in (["status"], ["move", "team-a", "1"]):
        answer = cli("nodes", *command, *stores(alone))
        assert "is on one node; add another one with `nacre nodes add`" in answer.error


def test_one_node_alone_is_not_the_store(cli: Cli, two: list[str]) -> None:
    for command in (["status"], ["move", "team-a", "1"], ["add", "postgresql://elsewhere/agents"]):
        answer = cli("nodes", *command, *stores(two[0]))
        assert "name all of them" in answer.error or "names 1 of 2 nodes; name all of them" in answer.error
        assert two[1] in answer.err


def test_a_node_that_is_away_is_shown_and_the_exit_code_says_so(cli: Cli, databases: Databases) -> None:
    (first,) = databases.new(1)
    server = PostgresServer()
    try:
        cli("remember", "The kettle is in the kitchen", "--space", "team-a", *stores(first))
        cli("nodes", "add", server.dsn, *stores(first))
        both = stores(first, server.dsn)
        server.stop()
        shown = cli("nodes", "status", *both)
        assert shown.code == 5
        assert f"  0  {first}  1 space, 1 memory\n" in shown.out
        assert f"  1  {server.dsn}  store: " in shown.out
        assert shown.err == ""
        listed = cli("nodes", "status", *both, "--json")
        assert (listed.code, listed.err) == (5, "")
        assert [bool(each["problem"]) for each in listed.json] == [False, True]
        moved = cli("nodes", "move", "team-a", "1", *both)
        assert (moved.code, moved.out) == (3, "")
        assert str(server.port) in moved.err
    finally:
        server.remove()


def test_a_password_is_never_shown(cli: Cli, databases: Databases) -> None:
    first, second = databases.new(2)
    secret = [each.replace("postgres@", "postgres:wonderful@") for each in (first, second)]
    cli("remember", "The kettle is in the kitchen", "--space", "team-a", *stores(secret[0]))
    answers = [cli("nodes", "add", secret[1], *stores(secret[0])), cli("nodes", "status", *stores(*secret))]
    answers += [cli("nodes", "move", "team-a", secret[1], *stores(*secret))]
    answers += [
        cli("nodes", "status", *stores(*secret), "--json"),
        cli("nodes", "move", "team-a", "9", *stores(*secret)),
    ]
    assert [each.code for each in answers] == [0, 0, 0, 0, 2]
    assert not any("wonderful" in each.out + each.err for each in answers)
    assert "wonderful" not in repr(nacre.node_status(secret))
