"""Who may do what with a store in PostgreSQL: owner, writer, reader, and users that are bound to spaces."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from http_verbs import World, calls, made
from nacre.embedders.hashing import Hashing
from nacre.engine.engine import Nacre
from nacre.errors import NotFound, StoreUnavailable
from nacre.serialization import arguments
from nacre.serialization.routes import ROUTES
from nacre.storage.postgres import PostgresStore, schema
from nacre.types.search import Filter
from postgres_roles import Roles, fresh_roles
from postgres_server import needs_postgres

pytestmark = [pytest.mark.slow, needs_postgres]
NOW = datetime.now(UTC)
HERE, THERE = "team-a", "team-b"
OF_ALL_SPACES = {"rebuild"}
DELETING = {"forget", "purge", "drop_facts", "drop_entity", "drop_lens", "clear_log", "revoke_token"}


@pytest.fixture(scope="module")
def roles() -> Iterator[Roles]:
    with fresh_roles() as made_roles:
        yield made_roles


@pytest.fixture
def engines() -> Iterator[list[Nacre]]:
    opened: list[Nacre] = []
    yield opened
    for each in opened:
        each.close()


def engine(roles: Roles, user: str, space: str = HERE, **options: Any) -> Nacre:
    store = PostgresStore(roles.dsn(user), **options)
    return Nacre(store, Hashing(), space=space, log=not store.read_only, clock=lambda: NOW)


def asked(memory: Nacre, verb: str, of: World) -> Any:
    known = {each.name: each for each in arguments.parameters_of(getattr(Nacre, verb))}
    given = calls(of)[verb]
    read = {"records": of.records()} if verb == "load" else arguments.read(given, known)
    result = getattr(memory, verb)(**read)
    return list(result) if isinstance(result, Iterator) else result


def prepared(roles: Roles, engines: list[Nacre], word: str, space: str = HERE) -> World:
    """A space with something for every verb, made by a writer that sees all spaces."""
    if not engines:
        engines.append(engine(roles, "server"))
    return made(engines[0], space, word)


# ---------------------------------------------------------------- owner, writer, reader


READING = [verb for verb, route in ROUTES.items() if route.method == "GET" or route.safe]
WRITING = [
    verb for verb in ROUTES if verb not in READING and verb not in ("backup", "check")
]  # what PostgreSQL's own tools do


@pytest.mark.parametrize("user", ["server", "team_a"])
def test_a_writer_can_do_every_verb(roles: Roles, engines: list[Nacre], user: str) -> None:
    of = prepared(roles, engines, f"{user[:4]}bird")
    memory = engine(roles, user)
    engines.append(memory)
    for verb in READING:
        asked(memory, verb, of)
    for verb in sorted(WRITING, key=lambda verb: verb in DELETING):
        if user != "team_a" or verb not in OF_ALL_SPACES:
            asked(memory, verb, of)


def test_a_reader_can_do_every_verb_that_reads_and_no_other(roles: Roles, engines: list[Nacre]) -> None:
    of = prepared(roles, engines, "gannet")
    memory = engine(roles, "report")
    engines.append(memory)
    for verb in READING:
        asked(memory, verb, of)
    before = engines[0].stats()
    for verb in set(WRITING) - {"reembed", "reinforce"}:  # nothing waits for vectors, and the fact is sure already
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            asked(memory, verb, of)
    assert engines[0].stats() == before


def test_a_reader_knows_that_it_cannot_write(roles: Roles) -> None:
    for user, read_only in (("report", True), ("server", False), ("team_a", False), ("owner", False)):
        store = PostgresStore(roles.dsn(user))
        assert store.read_only is read_only
        store.close()


@pytest.mark.parametrize("user", ["server", "report"])
def test_only_the_owner_creates_and_upgrades(roles: Roles, user: str) -> None:
    with pytest.raises(StoreUnavailable, match="owner"):
        PostgresStore(roles.dsn(user), "another")
    roles.execute("UPDATE nacre.meta SET value = '0' WHERE key = 'schema_version'", "owner")
    try:
        with pytest.raises(StoreUnavailable, match="owner"):
            PostgresStore(roles.dsn(user))
    finally:
        roles.execute(f"UPDATE nacre.meta SET value = '{schema.VERSION}' WHERE key = 'schema_version'", "owner")


# ---------------------------------------------------------------- bound to spaces


def tables(roles: Roles) -> list[str]:
    """Those with a space column."""
    sql = (
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'space' "
        "WHERE c.relnamespace = 'nacre'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1"
    )
    return [name for (name,) in roles.execute(sql, "owner")]


def test_every_table_with_texts_is_behind_the_wall(roles: Roles) -> None:
    sql = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'nacre'::regnamespace AND relkind IN ('r', 'p') "
        "AND NOT relrowsecurity ORDER BY 1"
    )
    assert roles.execute(sql, "owner") == [("counters",), ("further_models",), ("meta",), ("nodes",)]


def test_a_bound_user_reaches_no_row_of_another_space_by_sql(roles: Roles, engines: list[Nacre]) -> None:
    prepared(roles, engines, "heron", HERE)
    prepared(roles, engines, "stork", THERE)
    engines[-1].close()
    filled = set()
    for table in tables(roles):
        rows = dict(roles.execute(f"SELECT space, count(*) FROM nacre.{table} GROUP BY 1", "owner"))
        if {HERE, THERE} <= rows.keys():
            filled.add(table)
        seen = dict(roles.execute(f"SELECT space, count(*) FROM nacre.{table} GROUP BY 1", "team_a"))
        assert seen == {space: count for space, count in rows.items() if space == HERE}, table
        there = f"FROM nacre.{table} WHERE space = '{THERE}'"
        assert roles.execute(f"WITH gone AS (DELETE {there} RETURNING 1) SELECT count(*) FROM gone", "team_a") == [
            (0,)
        ], table
        changed = f"WITH changed AS (UPDATE nacre.{table} SET space = '{HERE}' WHERE space = '{THERE}' RETURNING 1)"
        if table != "events":
            assert roles.execute(f"{changed} SELECT count(*) FROM changed", "team_a") == [(0,)], table
        assert dict(roles.execute(f"SELECT space, count(*) FROM nacre.{table} GROUP BY 1", "owner")) == rows, table
    assert {"memories", "passages", "tokens", "postings", "facts", "receipts", "deliveries", "events"} - {
        "postings"
    } <= filled


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO nacre.lenses VALUES ('{THERE}', 'mine', '{{}}')",
        f"UPDATE nacre.memories SET space = '{THERE}' WHERE space = '{HERE}'",
        "INSERT INTO nacre.space_grants VALUES (session_user, NULL) ON CONFLICT (role) DO UPDATE SET spaces = NULL",
        "ALTER TABLE nacre.memories DISABLE ROW LEVEL SECURITY",
        "CREATE OR REPLACE FUNCTION nacre.own_spaces() RETURNS text[] LANGUAGE sql AS 'SELECT NULL::text[]'",
        "TRUNCATE nacre.lenses",
        "DROP TABLE nacre.lenses",
    ],
)
def test_a_bound_user_cannot_write_beyond_its_spaces(roles: Roles, engines: list[Nacre], sql: str) -> None:
    import psycopg

    prepared(roles, engines, "avocet")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        roles.execute(sql, "team_a")


@pytest.mark.parametrize(
    "before",
    ["SELECT 1", "SET ROLE {prefix}writer", "SET nacre.spaces = '{{team-b}}'", "SET row_security = on", "RESET ALL"],
)
def test_no_setting_leads_out(roles: Roles, engines: list[Nacre], before: str) -> None:
    import psycopg

    prepared(roles, engines, "plover", THERE)
    with psycopg.connect(roles.dsn("team_a"), autocommit=True) as db:
        db.execute(before.format(prefix=roles.prefix))
        for table in ("memories", "facts", "receipts"):
            assert db.execute(f"SELECT count(*) FROM nacre.{table} WHERE space = '{THERE}'").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM nacre.space_grants").fetchone() == (0,)


def test_a_user_without_a_grant_sees_nothing(roles: Roles, engines: list[Nacre]) -> None:
    of = prepared(roles, engines, "curlew")
    roles.execute(f'CREATE ROLE "{roles.prefix}new" LOGIN IN ROLE "{roles.prefix}writer"', "postgres")
    memory = engine(roles, "new")
    engines.append(memory)
    assert memory.search("curlew door").hits == ()
    assert memory.stats().memories == 0
    with pytest.raises(StoreUnavailable, match="row-level security"):
        memory.remember("a text")
    with pytest.raises(NotFound):
        memory.update(of.memory, summary="mine")


def test_a_bound_user_meets_the_wall_through_an_engine_without_confinement(roles: Roles, engines: list[Nacre]) -> None:
    of = prepared(roles, engines, "dunlin", THERE)
    memory = engine(roles, "team_a", THERE)
    engines.append(memory)
    assert memory.search("dunlin door").hits == ()
    assert list(memory.every(Filter(spaces=(THERE,)))) == []
    assert memory.get(of.memory, missing_ok=True).missing == (of.memory,)
    assert THERE not in memory.stats().spaces
    assert all(each.spaces is not None and THERE not in each.spaces for each in memory.tokens())
    with pytest.raises(NotFound):
        memory.forget(of.memory)
    with pytest.raises(StoreUnavailable, match="row-level security"):
        memory.remember("mine")
    with pytest.raises(StoreUnavailable, match="bound to spaces"):
        memory.rebuild()
    assert engines[0].get([of.memory]).memories[0].deleted is None


def test_a_purge_by_a_bound_user_forgets_what_was_delivered_elsewhere(roles: Roles, engines: list[Nacre]) -> None:
    of = prepared(roles, engines, "siskin", HERE)
    with engines[-1].within(THERE, confined=False) as elsewhere:
        elsewhere.search("siskin door", where=Filter(spaces=(THERE, HERE)))
    engines.pop().close()
    (row,) = roles.execute("SELECT row FROM nacre.memories WHERE id = %s", "owner", of.memory)[0]
    delivered = f"SELECT count(*) FROM nacre.deliveries WHERE memory_space = '{HERE}' AND row = {row}"
    assert roles.execute(f"{delivered} AND space = '{THERE}'", "owner") == [(1,)]
    memory = engine(roles, "team_a")
    engines.append(memory)
    memory.purge(of.memory)
    assert roles.execute(delivered, "owner") == [(0,)]


def test_answers_of_other_users_are_not_given(roles: Roles) -> None:
    from nacre.types.kept_answers import KeptAnswer
    from strategies import START

    servers = [PostgresStore(roles.dsn(user)) for user in ("server", "team_a", "owner")]
    for store, body in zip(servers, (b"1", b"2", b"3"), strict=True):
        claim = store.claim_answer("key", b"request", START)
        assert claim.ticket is not None
        store.keep_answer(claim.ticket, KeptAnswer(200, (), body, quotes=True), START)
    for store, body in zip(servers, (b"1", b"2", b"3"), strict=True):
        answer = store.claim_answer("key", b"request", START).answer
        assert answer is not None
        assert answer.body == body
        store.close()
    assert roles.execute("SELECT count(*) FROM nacre.kept_answers", "team_a") == [(1,)]


# ---------------------------------------------------------------- a store that is opened for some spaces

ODD = ('a"b\\c', "x,y", "{}", "it's", "NULL", "ÄÖ\t.")


def test_a_store_opened_for_some_spaces_shows_no_other(roles: Roles, engines: list[Nacre]) -> None:
    of = prepared(roles, engines, "godwit", THERE)
    prepared(roles, engines, "ruff", HERE)
    memory = engine(roles, "server", HERE, spaces=(HERE,))
    engines.append(memory)
    assert {each.space for each in memory.every()} == {HERE}
    assert memory.get(of.memory, missing_ok=True).missing == (of.memory,)
    with pytest.raises(StoreUnavailable, match="row-level security"):
        memory.within(THERE, confined=False).remember("mine")


def test_spaces_with_any_name_are_named_as_they_are(roles: Roles, engines: list[Nacre]) -> None:
    everything = engine(roles, "server")
    engines.append(everything)
    for space in ODD:
        everything.within(space, confined=False).remember("a knot")
    for space in ODD:
        memory = engine(roles, "server", space, spaces=(space,))
        engines.append(memory)
        assert [each.space for each in memory.every()] == [space]


def test_a_list_of_no_spaces_shows_nothing(roles: Roles, engines: list[Nacre]) -> None:
    prepared(roles, engines, "whimbrel")
    memory = engine(roles, "server", HERE, spaces=())
    engines.append(memory)
    assert list(memory.every()) == []


def test_the_wall_changes_no_answer(roles: Roles, engines: list[Nacre]) -> None:
    prepared(roles, engines, "turnstone")
    owner, bound = engine(roles, "owner"), engine(roles, "team_a", spaces=(HERE, "shared"))
    engines += [owner, bound]
    for query in ("turnstone door", "red painted tag:turnstone-tag", "anna", "blue NOT window"):
        for mode in ("keyword", "semantic", "hybrid"):
            first, second = (each.search(query, mode=mode, session="x", limit=20).hits for each in (owner, bound))
            assert [(hit.id, round(hit.score, 9)) for hit in first] == [(hit.id, round(hit.score, 9)) for hit in second]
