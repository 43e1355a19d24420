"""`nacre doctor` on a store in PostgreSQL: each damage is found under its name, and repaired where that can be done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import nacre
from further_models import Bilingual
from nacre.embedders.hashing import Hashing
from postgres_server import MISSING, Schemas, fresh_schemas, needs_postgres
from strategies import WELL_KNOWN

if not MISSING:
    import psycopg

    from nacre.storage.postgres import checkup, postings, server_checks, table_checks, vector_graph

pytestmark = needs_postgres

TEXTS = [f"memory{number} of herons and boats, {'again ' * (number % 40)}and so on" for number in range(80)]


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as found:
        yield found


@pytest.fixture
def schema(schemas: Schemas) -> str:
    return filled(schemas)


@pytest.fixture(scope="module")
def repaired() -> Iterator[tuple[Schemas, str]]:
    """A store for tests that leave it as it was."""
    with fresh_schemas() as found:
        yield found, filled(found)


def filled(schemas: Schemas) -> str:
    """The schema of a store that has something of everything."""
    name = schemas.new()
    with nacre.open(schemas.dsn, schema=name, embedder=Hashing()) as memory:
        ids = [each.id for each in memory.remember_many([*TEXTS, *WELL_KNOWN])]
        memory.remember("in another space", space="other", key="k", metadata={"n": 1})
        memory.update(ids[5], text="changed to kingfishers")
        memory.update(ids[6], tags=["changed"])
        memory.forget(ids[7:12])
        memory.restore(ids[8])
        memory.purge(ids[13])
        memory.state_fact(
            nacre.NewFact(subject="heron", predicate="nests at", object="the weir", relation=True), ids[9 + 5]
        )
        memory.search("herons", session="s")
        memory.mark(memory.search("boats").hits[0].id, "used")
        memory.create_token("a server")
    return name


def checked(schemas: Schemas, schema: str, *, fix: bool = False) -> nacre.Health:
    return nacre.check_store(schemas.dsn, schema=schema, fix=fix)


def problems(health: nacre.Health) -> set[str]:
    return {each.check for each in health.problems}


def notes(health: nacre.Health) -> dict[str, str]:
    return {each.check: each.text for each in health.findings if each.level == "note"}


# ---------------------------------------------------------------- in order


def test_a_store_in_order(schemas: Schemas, schema: str) -> None:
    health = checked(schemas, schema)
    assert health.sound, health.problems
    # The server of the tests is set up to be quick, not to keep anything.
    assert set(notes(health)) <= {"server"}, notes(health)
    assert {each.check for each in health.findings} >= set(checkup.REPAIRS)
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing()) as memory:
        assert memory.check().findings[1:] == health.findings[1:]


def test_an_empty_store_is_in_order(schemas: Schemas) -> None:
    name = schemas.new()
    nacre.open(schemas.dsn, schema=name, embedder=None).close()
    assert checked(schemas, name).sound


def test_others_that_write_meanwhile_are_no_damage(
    schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_checks, "_MEMORIES", 7)
    monkeypatch.setattr(table_checks, "_FACTS", 1)
    monkeypatch.setattr(table_checks, "_TERMS", 5)
    done = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            with nacre.open(schemas.dsn, schema=schema, embedder=Hashing()) as memory:
                number = 0
                while not done.is_set():
                    new = memory.remember(f"Alice uses tool {number} at the weir", tags=["busy"]).id
                    memory.update(new, text=f"Bob uses tool {number} at the weir")
                    memory.forget(new)
                    if number % 2:
                        memory.restore(new)
                    if number % 5 == 0:
                        memory.purge(new)
                    memory.search("tool")
                    number += 1
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        healths = [checked(schemas, schema) for _ in range(3)]
    finally:
        done.set()
        thread.join()
    assert not failed
    assert [each.problems for each in healths] == [()] * 3


def test_a_store_on_the_scale_of_blocks_is_in_order(
    schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms whose postings are in several blocks, and checks whose portions end inside them."""
    monkeypatch.setattr(table_checks, "_MEMORIES", 23)
    monkeypatch.setattr(table_checks, "_POSTINGS", 50)
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing()) as memory:
        for start in range(0, 300, 30):
            memory.remember_many([f"another heron {number}" for number in range(start, start + 30)])
    assert schemas.execute("SELECT max(n) FROM (SELECT count(*) AS n FROM postings GROUP BY space, term) AS b", schema)[
        0
    ] >= (3,)
    assert checked(schemas, schema).sound
    block = "(SELECT space, term, block FROM postings WHERE term = 'heron' ORDER BY block OFFSET 1 LIMIT 1)"
    size = postings.POSTING.itemsize
    cut = f"UPDATE postings SET entries = substr(entries, {size + 1}) WHERE (space, term, block) = {block}"
    forgotten = "UPDATE vocabulary SET sealed = sealed - 1 WHERE term = 'another'"  # a search would not ask for it
    for damage in (cut, forgotten):
        schemas.execute(damage, schema)
        assert problems(checked(schemas, schema)) == {"words"}
        checked(schemas, schema, fix=True)
        assert checked(schemas, schema).sound


# ---------------------------------------------------------------- damage

_ONE = "(SELECT space, row FROM memories WHERE deleted_us IS NULL ORDER BY row DESC LIMIT 1)"
_ANY = "SELECT space, row FROM memories WHERE deleted_us IS NULL ORDER BY row LIMIT 1"
DAMAGES = {
    "tokens of a memory": ("words", f"UPDATE tokens SET words = ' x ' WHERE (space, row) = {_ONE}"),
    "no tokens of a memory": ("words", f"DELETE FROM tokens WHERE (space, row) = {_ONE}"),
    "a term is missing": ("words", "DELETE FROM vocabulary WHERE term = 'kingfishers'"),
    "a term has no tail": ("words", "UPDATE vocabulary SET tail = '' WHERE term = 'memory3'"),
    "a count of a term": ("words", "UPDATE vocabulary SET memories = memories + 1 WHERE term = 'herons'"),
    "a term of no memory": (
        "words",
        "INSERT INTO vocabulary SELECT space, 'ghost', 1, 1, 1, 1, 0, tail FROM vocabulary WHERE term = 'memory3'",
    ),
    "a bound of the text": ("words", "UPDATE vocabulary SET most_text = 0 WHERE term = 'again'"),
    "a bound of the labels": ("words", "UPDATE vocabulary SET most_labels = 0 WHERE term = 'changed'"),
    "a bound of the length": ("words", "UPDATE vocabulary SET least_length = 9999 WHERE term = 'again'"),
    "the size of a space": ("words", "UPDATE corpus SET length = length + 1 WHERE space = 'default'"),
    "memories of a space": ("words", "DELETE FROM corpus WHERE space = 'other'"),
    "a sketch": ("words", f"DELETE FROM sketches WHERE (space, row) = ({_ANY})"),
    "scalars of the metadata": ("words", "UPDATE memories SET metadata_pairs = '{}' WHERE key = 'k'"),
    "an identity": ("words", "UPDATE memories SET identity = 'x' WHERE key = 'k'"),
    "another number of a doc": ("words", f"UPDATE memories SET doc = doc - 100000 WHERE (space, row) = {_ONE}"),
    "passages are missing": ("vectors", f"DELETE FROM passages WHERE (space, row) = {_ONE}"),
    "the number of passages": ("vectors", f"UPDATE passages SET siblings = 2 WHERE (space, row) = {_ONE}"),
    "a vector of another size": ("vectors", f"UPDATE passages SET vector = '[1, 2]' WHERE (space, row) = {_ONE}"),
    "token vectors are missing": ("vectors", f"DELETE FROM token_vectors WHERE (space, row) = {_ONE}"),
    "vectors of a memory that has none": (
        "vectors",
        f"UPDATE memories SET embedded = false WHERE (space, row) = {_ONE}",
    ),
    "words of a relation": ("facts", "DELETE FROM relation_words WHERE word = 'weir'"),
    "words of a forgotten relation": (
        "facts",
        "INSERT INTO relation_words SELECT space, 'ghost', fact FROM facts LIMIT 1",
    ),
    "the number of relations": ("facts", "UPDATE relation_counts SET relations = relations + 1"),
    "the name that a fact is compared by": ("facts", "UPDATE facts SET subject_key = 'x' WHERE subject = 'heron'"),
    "what a space holds": ("counts", "UPDATE space_usage SET bytes = bytes + 1 WHERE space = 'other'"),
    "the size of the log": ("counts", "UPDATE counters SET value = value + 1 WHERE name = 'log_bytes'"),
    "the next change": ("integrity", "UPDATE counters SET value = 1 WHERE name = 'events'"),
    "the next receipt": ("integrity", "UPDATE counters SET value = 0 WHERE name = 'receipts'"),
    "the next memory": ("integrity", "SELECT setval('memory_rows', 1)"),
    "the next fact": ("integrity", "SELECT setval('fact_numbers', 1)"),
    "the next entity": ("integrity", "SELECT setval('entity_numbers', 1)"),
    "one side of a near-duplicate": (
        "integrity",
        "DELETE FROM near_duplicates AS n USING (SELECT ctid FROM near_duplicates LIMIT 1) AS x WHERE n.ctid = x.ctid",
    ),
    "an entity without a name": ("integrity", "INSERT INTO entities VALUES ('default', 999999, 'ghost', NULL, true)"),
    "a missing index": ("indexes", "DROP INDEX memories_by_time"),
    "an index of facts": ("indexes", "DROP INDEX facts_by_id"),
}
# A row of each table that belongs to no memory.
STRAY = {
    "passages": "('default', 999999, 0, 0, 1, 1, '[1]')",
    "token_vectors": "('default', 999999, 0, '')",
    "tokens": "('default', 999999, '', '', '', '', '', 0)",
    "sketches": "('default', 1, 999999)",
    "links": "((SELECT space FROM entities LIMIT 1), (SELECT entity FROM entities LIMIT 1), 999999)",
    "usage": "('default', 999999, 0, 0, 0, 0, NULL, NULL, NULL)",
    "displaced": "('default', 999999)",
    "updates": "('default', 999999, 999998, '')",
}


def found_and_fixed(schemas: Schemas, schema: str, check: str, damage: str) -> None:
    schemas.execute(damage, schema)
    assert problems(checked(schemas, schema)) == {check}
    fixed = checked(schemas, schema, fix=True)
    assert fixed.sound, fixed.problems
    assert check in {each.check for each in fixed.findings if each.fixed}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_fixed(repaired: tuple[Schemas, str], name: str) -> None:
    found_and_fixed(*repaired, *DAMAGES[name])
    with nacre.open(repaired[0].dsn, schema=repaired[1], embedder=Hashing()) as memory:
        assert list(memory.reembed())[-1].done == (DAMAGES[name][0] == "vectors")


@pytest.mark.parametrize("table", STRAY)
def test_rows_of_no_memory_are_found_and_deleted(repaired: tuple[Schemas, str], table: str) -> None:
    schemas, schema = repaired
    found_and_fixed(schemas, schema, "integrity", f"INSERT INTO {table} VALUES {STRAY[table]}")
    assert schemas.execute(
        f"SELECT count(*) FROM {table} WHERE {'older' if table == 'updates' else 'row'} = 999999", schema
    ) == [(0,)]


def test_rows_of_a_memory_that_is_gone_are_found_and_deleted(schemas: Schemas, schema: str) -> None:
    """Facts, near-duplicates and deliveries are left behind, and everything else that the memory had."""
    schemas.execute(
        "DELETE FROM memories WHERE (space, row) IN (SELECT space, row FROM facts UNION SELECT memory_space, row "
        "FROM deliveries UNION SELECT space, row FROM near_duplicates)",
        schema,
    )
    (finding,) = [each for each in checked(schemas, schema).problems if each.check == "integrity"]
    for table in ("facts", "deliveries", "near_duplicates", "tokens", "sketches", "passages"):
        assert f" in {table}" in finding.text, finding.text
    assert checked(schemas, schema, fix=True).problems == ()


def test_searches_are_right_after_a_repair(schemas: Schemas, schema: str) -> None:
    now = datetime.now(UTC)

    def answers() -> list[tuple[str, float]]:
        with nacre.open(schemas.dsn, schema=schema, embedder=Hashing(), log=False, clock=lambda: now) as memory:
            return [(hit.id, hit.score) for hit in memory.search("boats", mode="keyword", limit=99).hits]

    before = answers()
    schemas.execute("UPDATE vocabulary SET memories = 3 WHERE term LIKE 'boat%'; DELETE FROM sketches", schema)
    assert answers() != before
    assert checked(schemas, schema, fix=True).sound
    assert answers() == before


def test_a_text_that_was_changed_from_outside_is_not_made_the_truth(schemas: Schemas, schema: str) -> None:
    schemas.execute("UPDATE memories SET text = text || '!' WHERE key = 'k'", schema)
    health = checked(schemas, schema, fix=True)
    assert "texts" in problems(health)
    assert not any(each.fixed for each in health.findings if each.check in ("texts", "words"))


def test_vectors_that_were_dropped_are_pending(schemas: Schemas, schema: str) -> None:
    schemas.execute(DAMAGES["a vector of another size"][1], schema)
    health = checked(schemas, schema, fix=True)
    assert "1 memory has no vectors yet" in notes(health)["pending"]
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing()) as memory:
        assert memory.stats().pending == 1
        list(memory.reembed())
    assert "pending" not in notes(checked(schemas, schema))


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM further_passages WHERE place = 0 AND siblings > 1",
        "UPDATE further_passages SET vector = '[1, 2]' WHERE row = (SELECT min(row) FROM further_passages)",
        "INSERT INTO further_pending SELECT space, row, model FROM further_passages LIMIT 1",
    ],
)
def test_vectors_of_a_further_model_that_are_wrong_are_made_anew(schemas: Schemas, schema: str, damage: str) -> None:
    long = " ".join(f"word{number}" for number in range(600))  # of several passages
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing(), multilingual=Bilingual()) as memory:
        list(memory.reembed())
        memory.remember(long)
    before = checked(schemas, schema)
    assert "vectors" not in problems(before)
    schemas.execute(damage, schema)
    assert problems(checked(schemas, schema)) == {"vectors"}
    fixed = checked(schemas, schema, fix=True)
    assert fixed.sound
    assert "1 memory waits for vectors of a further model" in notes(fixed)["pending"]
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing(), multilingual=Bilingual()) as memory:
        assert list(memory.reembed())[-1].done == 1
    assert "pending" not in notes(checked(schemas, schema))


def test_an_index_that_was_not_finished(schemas: Schemas, schema: str) -> None:
    schemas.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'memories_by_time'::regclass", schema)
    dimensions = len(Hashing().embed_query("x"))
    graph = (
        f"CREATE INDEX passages_by_vector_{dimensions} ON passages USING hnsw "
        f"((vector::halfvec({dimensions})) halfvec_cosine_ops) WHERE vector_dims(vector) = {dimensions}"
    )
    schemas.execute(graph, schema)
    invalid = f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'passages_by_vector_{dimensions}'::regclass"
    schemas.execute(invalid, schema)
    health = checked(schemas, schema)
    (finding,) = health.problems
    assert f"memories_by_time, passages_by_vector_{dimensions}" in finding.text
    assert checked(schemas, schema, fix=True).sound


# ---------------------------------------------------------------- the server


def test_settings_that_may_lose_writes_are_told(schemas: Schemas, schema: str) -> None:
    told = [each.text for each in checked(schemas, schema).findings if each.check == "server"]
    assert [each.split(" ")[0] for each in told] == ["fsync", "full_page_writes", "synchronous_commit"]


def test_tables_that_nobody_cleans_are_told(schemas: Schemas, schema: str) -> None:
    schemas.execute("ALTER TABLE postings SET (autovacuum_enabled = false)", schema)
    told = [each.text for each in checked(schemas, schema).findings if each.check == "server"]
    assert any("autovacuum is off for postings" in each for each in told)


def test_who_holds_vacuum_back_is_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "_OLD_TRANSACTION", timedelta(milliseconds=1))
    with psycopg.connect(schemas.dsn) as idle:
        idle.execute("SELECT 1")
        said = notes(checked(schemas, schema))["transactions"]
        assert f"process {idle.info.backend_pid} of postgres" in said
        assert "idle in transaction" in said


def test_old_transaction_numbers_are_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "_OLD_XIDS", -1)
    assert "the oldest transaction number is" in notes(checked(schemas, schema))["transactions"]
    monkeypatch.setattr(server_checks, "_TOO_OLD_XIDS", -1)
    assert problems(checked(schemas, schema)) == {"transactions"}


def test_a_slot_that_keeps_the_log_is_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "_KEPT_WAL_BYTES", -1)
    slot = f"slot_{schema}"
    schemas.execute(f"SELECT pg_create_physical_replication_slot('{slot}', true)")
    try:
        assert f"replication slot {slot} is not used" in notes(checked(schemas, schema))["transactions"]
    finally:
        schemas.execute(f"SELECT pg_drop_replication_slot('{slot}')")


def test_dead_rows_are_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "_DEAD_MIN", -1)
    monkeypatch.setattr(server_checks, "_DEAD_SHARE", -1.0)
    assert "dead rows fill" in notes(checked(schemas, schema))["tables"]


def test_a_graph_that_is_missing_is_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_graph, "SCANNED_MAX", 50)
    (finding,) = [each for each in checked(schemas, schema).findings if each.check == "indexes"]
    assert finding.level == "note"
    assert "no graph of the vectors" in finding.text


def test_another_version_of_the_server_is_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "NEWEST_TESTED", 17)
    assert "PostgreSQL 18" in notes(checked(schemas, schema))["versions"]


def test_a_clock_that_is_wrong_is_told(schemas: Schemas, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_checks, "_CLOCK_AHEAD", timedelta(days=-1))
    assert "later than now" in notes(checked(schemas, schema))["clock"]

    monkeypatch.setattr(server_checks, "_CLOCKS_APART", timedelta(seconds=-1))
    assert "the server has" in notes(checked(schemas, schema))["clock"]


def test_a_user_who_sees_some_spaces_is_told_so(schemas: Schemas, schema: str) -> None:
    role = f"{schema}_reader"
    schemas.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 8")
    try:
        schemas.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {role}')
        schemas.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {role}')
        schemas.execute(f'GRANT SELECT ON ALL SEQUENCES IN SCHEMA "{schema}" TO {role}')
        schemas.execute(f"INSERT INTO space_grants VALUES ('{role}', ARRAY['other'])", schema)
        health = nacre.check_store(schemas.dsn.replace("postgres@", f"{role}@"), schema=schema)
        assert "shows this user other" in notes(health)["rows"]
        assert "allows this user 8 connections" in notes(health)["connections"]
        assert problems(health) == set(), health.problems
    finally:
        schemas.execute(f"DROP OWNED BY {role}")
        schemas.execute(f"DROP ROLE {role}")


def test_what_cannot_be_read_hides_nothing_else(schemas: Schemas, schema: str) -> None:
    schemas.execute("DROP TABLE usage; UPDATE space_usage SET bytes = bytes + 1", schema)
    health = checked(schemas, schema)
    assert problems(health) == {"integrity", "counts"}
    assert any("could not be checked" in each.text for each in health.problems)
