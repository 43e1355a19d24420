"""Many processes write to one PostgreSQL store at once: nothing is lost, and nobody waits in a circle."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
import pytest

import nacre
from benchmarks.postgres_faults import CONTEXT
from nacre.embedders.hashing import Hashing
from nacre.errors import Conflict, QuotaExceeded, StoreTooNew
from nacre.storage.postgres import schema
from nacre.types.changes import Change
from nacre.types.memory import NewMemory
from nacre.types.quotas import Quotas
from postgres_checks import check_derived_tables
from postgres_server import Schemas, fresh_schemas, needs_postgres, waited_for

pytestmark = [pytest.mark.slow, needs_postgres]

WRITERS = 8
TOGETHER_S = 0.3  # until all processes begin
ANSWER_S = 60.0


@pytest.fixture(scope="module")
def writers() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(WRITERS, mp_context=CONTEXT) as pool:
        for each in [pool.submit(time.sleep, 0.2) for _ in range(WRITERS)]:
            each.result(ANSWER_S)
        yield pool


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as given:
        yield given


@pytest.fixture
def name(schemas: Schemas) -> str:
    """A schema with an empty store."""
    given = schemas.new()
    opened(schemas.dsn, given).close()
    return given


def opened(dsn: str, name: str, **options: Any) -> nacre.Nacre:
    return nacre.open(dsn, schema=name, embedder=Hashing(), log=False, **options)


def begun(pool: ProcessPoolExecutor, task: Callable[..., Any], *arguments: Any) -> list[Future[Any]]:
    """The same in every process at once. Each gets its number and when to begin."""
    start = time.time() + TOGETHER_S
    return [pool.submit(task, number, start, *arguments) for number in range(WRITERS)]


def together(pool: ProcessPoolExecutor, task: Callable[..., Any], *arguments: Any) -> list[Any]:
    return [each.result(ANSWER_S) for each in begun(pool, task, *arguments)]


def wait_until(moment: float) -> None:
    time.sleep(max(0, moment - time.time()))


def check(schemas: Schemas, name: str) -> None:
    with psycopg.connect(schemas.dsn) as db:
        db.execute("SELECT set_config('search_path', %s || ', public', false)", (name,))
        check_derived_tables(lambda sql: db.execute(sql).fetchall())


# ---------------------------------------------------------------- what processes do


def write_everywhere(number: int, start: float, dsn: str, name: str, turns: int) -> list[str]:
    """To a space of its own and to one of all: own texts, texts and keys that all have, and keys of its own."""
    own, written = f"space{number}", []
    with opened(dsn, name) as memory:
        wait_until(start)
        for turn in range(turns):
            receipts = memory.remember_many(
                [
                    NewMemory(text=f"writer{number} turn{turn} of its own", space=own),
                    NewMemory(text=f"writer{number} turn{turn} for all", space="shared"),
                    NewMemory(text=f"turn{turn} is the same of all", space="shared"),
                    NewMemory(text=f"writer{number} turn{turn} under its key", space="shared", key=f"key {number}"),
                ]
            )
            last = NewMemory(text=f"writer{number} turn{turn} last", space="shared", key=f"of all {turn % 2}")
            until_no_conflict(lambda: memory.remember(last))  # noqa: B023
            memory.forget(receipts[0].id)
            written += [receipts[1].id, receipts[2].id]
    return written


def until_no_conflict(write: Callable[[], object]) -> None:
    """Others changed the same memory five times in a row, and nothing was written."""
    while True:
        with suppress(Conflict):
            write()
            return


def update_one(number: int, start: float, dsn: str, name: str, memory_id: str, times: int) -> None:
    with opened(dsn, name) as memory:
        wait_until(start)
        for turn in range(times):
            until_no_conflict(lambda: memory.update(memory_id, text=f"writer{number} turn{turn}"))  # noqa: B023


def fill(number: int, start: float, dsn: str, name: str, quotas: Quotas) -> int:
    """Until the quota is used up. Returns how many it could write."""
    written = 0
    with opened(dsn, name, quotas=quotas) as memory:
        wait_until(start)
        while True:
            try:
                memory.remember(f"writer{number} memory{written}")
            except QuotaExceeded:
                return written
            written += 1


def search_when_expired(_number: int, start: float, dsn: str, name: str, now: datetime) -> int:
    with opened(dsn, name, clock=lambda: now) as memory:
        wait_until(start)
        return len(memory.search("heron", limit=50).hits)


def open_new(number: int, start: float, dsn: str, name: str) -> str:
    wait_until(start)
    with opened(dsn, name) as memory:
        return memory.remember(f"opened by {number}").id


def open_upgraded(_number: int, start: float, dsn: str, name: str) -> int:
    """As the next version of Nacre would, whose migration takes a while."""
    migrations, version = schema.MIGRATIONS, schema.VERSION
    upgrade = "CREATE TABLE upgraded (at timestamptz DEFAULT clock_timestamp()); SELECT pg_sleep(0.3)"
    schema.MIGRATIONS, schema.VERSION = (*migrations, upgrade), version + 1  # type: ignore[assignment]
    try:
        wait_until(start)
        with opened(dsn, name) as memory:
            return memory.stats().memories
    finally:
        schema.MIGRATIONS, schema.VERSION = migrations, version


# ---------------------------------------------------------------- nothing lost, nothing twice


def test_eight_writers_and_one_who_follows_the_changes(
    writers: ProcessPoolExecutor, schemas: Schemas, name: str
) -> None:
    """No write is refused. Who follows sees each change once, whatever was committed between two looks."""
    turns, spaces = 3, ["shared", *(f"space{number}" for number in range(WRITERS))]
    writing = begun(writers, write_everywhere, schemas.dsn, name, turns)
    seen: list[Change] = []
    with opened(schemas.dsn, name) as memory:
        since, last = 0, False
        while True:
            page = memory.changes(since, spaces=spaces, limit=7)
            seen += page.changes
            since = page.seq
            if last and not page.more:
                break
            last = all(each.done() for each in writing)
        written = [each.result(ANSWER_S) for each in writing]
        assert [each.seq for each in seen] == sorted({each.seq for each in seen})
        every = schemas.execute("SELECT seq FROM events UNION SELECT seq FROM changes ORDER BY seq", name)
        assert [each.seq for each in seen] == [seq for (seq,) in every]
        live = Counter(each.text for each in memory.every(nacre.Filter(spaces=["shared"])))
        assert set(live.values()) == {1}
        assert len({ids[1 + 2 * turn] for ids in written for turn in range(turns)}) == turns
        assert len({ids[2 * turn] for ids in written for turn in range(turns)}) == turns * WRITERS
        keyed = {each.key: each.text for each in memory.every(nacre.Filter(spaces=["shared"])) if each.key}
        own = {f"key {number}": f"writer{number} turn{turns - 1} under its key" for number in range(WRITERS)}
        assert {key: text for key, text in keyed.items() if key in own} == own
        assert keyed.keys() - own.keys() == {"of all 0", "of all 1"}
        updated = schemas.execute("SELECT count(*) FROM events WHERE action = 'updated'", name)
        assert updated == [(WRITERS * (turns - 1) + WRITERS * turns - 2,)]
    check(schemas, name)


def test_updates_of_one_memory_by_all_leave_a_complete_history(
    writers: ProcessPoolExecutor, schemas: Schemas, name: str
) -> None:
    """Each update replaced exactly what the one before had written."""
    times = 4
    with opened(schemas.dsn, name) as memory:
        memory_id = memory.remember("at first").id
        together(writers, update_one, schemas.dsn, name, memory_id, times)
        texts = [str(event.before["text"]) for event in memory.history(memory_id)[1:]]
        texts.append(memory.get(memory_id)[0].text)
        assert texts[0] == "at first"
        expected = {f"writer{number} turn{turn}" for number in range(WRITERS) for turn in range(times)}
        assert len(texts) == len(expected) + 1
        assert set(texts[1:]) == expected
    check(schemas, name)


@pytest.mark.parametrize("quotas", [Quotas(memories_max=30), Quotas(bytes_max=500)])
def test_a_quota_is_not_exceeded_by_all_together(
    writers: ProcessPoolExecutor, schemas: Schemas, name: str, quotas: Quotas
) -> None:
    written = together(writers, fill, schemas.dsn, name, quotas)
    ((memories, size),) = schemas.execute("SELECT count(*), sum(octet_length(text)) FROM memories", name)
    assert sum(written) == memories
    if quotas.memories_max:
        assert memories == quotas.memories_max
    else:
        assert isinstance(size, int)
        assert quotas.bytes_max - len("writer0 memory00") < size <= quotas.bytes_max
    check(schemas, name)


def test_what_expires_is_forgotten_once_by_whoever_is_first(
    writers: ProcessPoolExecutor, schemas: Schemas, name: str
) -> None:
    with opened(schemas.dsn, name) as memory:
        until = datetime.now(UTC) + timedelta(minutes=1)
        memory.remember_many([NewMemory(text=f"heron {number}", expires=until) for number in range(20)])
    assert together(writers, search_when_expired, schemas.dsn, name, until + timedelta(minutes=1)) == [0] * WRITERS
    found = schemas.execute("SELECT action, count(*), count(DISTINCT memory_id) FROM events GROUP BY action", name)
    assert sorted(found) == [("expired", 20, 20), ("remembered", 20, 20)]
    check(schemas, name)


# ---------------------------------------------------------------- opened and upgraded at once


def test_a_store_that_all_create_at_once(writers: ProcessPoolExecutor, schemas: Schemas) -> None:
    for _ in range(2):
        name = schemas.new()
        ids = together(writers, open_new, schemas.dsn, name)
        with opened(schemas.dsn, name) as memory:
            assert [each.text for each in memory.get(ids)] == [f"opened by {number}" for number in range(WRITERS)]
        check(schemas, name)


def test_an_upgrade_is_made_once_while_others_wait(writers: ProcessPoolExecutor, schemas: Schemas, name: str) -> None:
    """Processes of the old version write until it begins, and are told so afterwards."""
    with opened(schemas.dsn, name) as old:
        opening = begun(writers, open_upgraded, schemas.dsn, name)
        written = _written_until_upgraded(old)
        assert {each.result(ANSWER_S) for each in opening} == {written}
    ((version,),) = schemas.execute("SELECT value FROM meta WHERE key = 'schema_version'", name)
    assert version == str(schema.VERSION + 1)
    check(schemas, name)


def _written_until_upgraded(memory: nacre.Nacre) -> int:
    for number in count():
        try:
            memory.remember(f"memory {number}")
        except StoreTooNew as error:
            if "meanwhile" in str(error):
                return number
            raise
    raise AssertionError("unreachable")


# ---------------------------------------------------------------- conflicts that the server ends


def test_a_deadlock_with_another_program_is_tried_again(schemas: Schemas, name: str) -> None:
    """The server ends one of both. Nacre's write is carried out once, after the other."""
    with opened(schemas.dsn, name) as memory, psycopg.connect(schemas.dsn) as other:
        other.execute("SET deadlock_timeout = '1min'")  # so that the write of Nacre is the one that is ended
        other.execute(f'SET search_path = "{name}", public')
        other.execute("UPDATE counters SET value = value WHERE name = 'events'")
        writing = threading.Thread(target=lambda: memory.remember("a heron"))
        writing.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'nacre' AND wait_event_type = 'Lock'"
        assert waited_for(lambda: bool(schemas.execute(waiting)))
        other.execute("LOCK TABLE memories IN SHARE MODE")  # which a write that has begun does not let it have
        other.commit()
        writing.join(ANSWER_S)
        assert "deadlock detected" in schemas.server.log()
        assert [each.text for each in memory.every()] == ["a heron"]
    assert schemas.execute("SELECT count(*) FROM events", name) == [(1,)]
    check(schemas, name)


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_write_that_the_server_undoes_is_carried_out_again(schemas: Schemas, name: str, code: str) -> None:
    """Three times at most, after all of it was done but the end."""
    schemas.execute(
        "CREATE SEQUENCE attempts; CREATE FUNCTION undone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF nextval('attempts') <= 3 THEN RAISE EXCEPTION 'undone' USING ERRCODE = '{code}'; END IF; RETURN NULL; "
        "END $$; CREATE CONSTRAINT TRIGGER undoes AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION undone()",
        name,
    )
    with opened(schemas.dsn, name) as memory:
        assert not memory.remember("a heron").duplicate
        assert memory.stats().memories == 1
    assert schemas.execute("SELECT last_value, (SELECT count(*) FROM events) FROM attempts", name) == [(4, 1)]
    check(schemas, name)
