"""Answers that a server keeps, so that a request that is sent again is not carried out again."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.interfaces import Store
from nacre.storage.sqlite import SqliteStore
from nacre.types.kept_answers import CLAIM_LASTS, KEPT, Claim, KeptAnswer
from older_files import to_eleventh
from purged_bytes import RandomStore
from stores import Opening

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ANSWER = KeptAnswer(201, (("content-type", "application/json"), ("etag", '"1"')), b'{"id": "\xc3\xa4\x00"}')
PLAIN = KeptAnswer(204, quotes=False)


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


def claimed(store: Store, key: str = "key", now: datetime = NOW) -> str:
    state, ticket, answer = store.claim_answer(key, b"request", now)
    assert (state, answer) == ("claimed", None)
    assert ticket
    return ticket


def test_a_request_is_carried_out_once(store: Store) -> None:
    ticket = claimed(store)
    assert store.claim_answer("key", b"request", NOW + SECOND) == Claim("running")
    store.keep_answer(ticket, ANSWER, NOW + 2 * SECOND)
    assert store.claim_answer("key", b"request", NOW + 3 * SECOND) == Claim("answered", answer=ANSWER)
    assert store.claim_answer("key", b"request", NOW + 3 * SECOND) == Claim("answered", answer=ANSWER)
    store.keep_answer(ticket, PLAIN, NOW + 4 * SECOND)  # the first stays
    store.drop_claim(ticket)
    assert store.claim_answer("key", b"request", NOW + 5 * SECOND).answer == ANSWER
    assert claimed(store, "another key") != ticket


def test_an_answer_without_a_body_is_one(store: Store) -> None:
    store.keep_answer(claimed(store), PLAIN, NOW)
    assert store.claim_answer("key", b"request", NOW) == Claim("answered", answer=PLAIN)


def test_another_request_of_the_same_key_is_told(store: Store) -> None:
    ticket = claimed(store)
    assert store.claim_answer("key", b"other", NOW) == Claim("different")
    store.keep_answer(ticket, ANSWER, NOW)
    assert store.claim_answer("key", b"other", NOW) == Claim("different")
    assert store.claim_answer("key", b"other", NOW + KEPT - SECOND) == Claim("different")
    assert store.claim_answer("key", b"other", NOW + KEPT).state == "claimed"


def test_a_request_that_changed_nothing_may_be_sent_again(store: Store) -> None:
    store.drop_claim(claimed(store))
    store.keep_answer(claimed(store), ANSWER, NOW)
    assert store.claim_answer("key", b"request", NOW).answer == ANSWER


def test_the_claim_of_a_server_that_died_can_be_taken_over(store: Store) -> None:
    dead = claimed(store)
    assert store.claim_answer("key", b"request", NOW + CLAIM_LASTS - SECOND).state == "running"
    alive = claimed(store, now=NOW + CLAIM_LASTS)
    store.keep_answer(dead, PLAIN, NOW + CLAIM_LASTS)  # it was not dead, only slow
    store.drop_claim(dead)
    assert store.claim_answer("key", b"request", NOW + CLAIM_LASTS).state == "running"
    store.keep_answer(alive, ANSWER, NOW + CLAIM_LASTS)
    assert store.claim_answer("key", b"request", NOW + CLAIM_LASTS).answer == ANSWER


def test_answers_are_kept_for_a_day(store: Store) -> None:
    ticket = claimed(store)
    store.keep_answer(ticket, ANSWER, NOW + SECOND)
    assert store.claim_answer("key", b"request", NOW + KEPT).answer == ANSWER
    claimed(store, now=NOW + KEPT + SECOND)


def test_old_answers_of_other_keys_are_deleted(path: Path) -> None:
    store = SqliteStore(path)
    for number in range(5):
        store.keep_answer(claimed(store, f"key {number}"), ANSWER, NOW)
    claimed(store, "later", NOW + KEPT)
    with store._connections.reading() as db:
        assert db.execute("SELECT group_concat(key) FROM kept_answers").get == "later"
    store.close()


def test_they_are_no_change_of_the_store(store: Store) -> None:
    before = store.sequence(), store.changes(["default"], None, 1)
    store.keep_answer(claimed(store), ANSWER, NOW)
    assert (store.sequence(), store.changes(["default"], None, 1)) == before


# ---------------------------------------------------------------- purges


def test_a_purge_deletes_answers_that_quote(store: Store) -> None:
    memory = nacre.Nacre(store, Hashing())
    purged = memory.remember("the secret").id
    store.keep_answer(claimed(store, "quotes"), ANSWER, NOW)
    store.keep_answer(claimed(store, "plain"), PLAIN, NOW)
    quoting, plain = claimed(store, "quotes later"), claimed(store, "plain later")
    memory.purge(purged)
    store.keep_answer(quoting, ANSWER, NOW)  # it was made before the purge
    store.keep_answer(plain, PLAIN, NOW)
    found = {
        key: store.claim_answer(key, b"request", NOW) for key in ("quotes", "plain", "quotes later", "plain later")
    }
    assert {each.state for each in found.values()} == {"answered"}
    assert {key: each.answer for key, each in found.items()} == {
        "quotes": None,
        "plain": PLAIN,
        "quotes later": None,
        "plain later": PLAIN,
    }
    store.keep_answer(claimed(store, "after"), ANSWER, NOW)
    assert store.claim_answer("after", b"request", NOW).answer == ANSWER


def test_a_purge_that_comes_with_an_import_does_so_too(path: Path, open_one: Opening) -> None:
    with nacre.open(path.with_name("other.db"), embedder=Hashing()) as memory, open_one() as other:
        purged = memory.remember("the secret").id
        list(other.load(memory.export()))
        store = other._store
        store.keep_answer(store.claim_answer("key", b"request", NOW).ticket, ANSWER, NOW)
        memory.purge(purged)
        list(other.load(memory.export()))
        assert store.claim_answer("key", b"request", NOW) == Claim("answered")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_purge_leaves_no_byte_of_an_answer(path: Path, seed: int) -> None:
    """Short ones share pages with others, long ones have pages of their own, and some are older than a day."""
    with nacre.open(path, embedder=Hashing(), log=False) as engine:
        random, store = RandomStore(engine, seed), engine._store
        random.remember(10)
        for number, memory in enumerate([*engine.every()] * 3):
            body = (memory.text + (memory.summary or "")).encode() * (1 if number % 2 else 200)
            ticket = store.claim_answer(f"key {number}", b"request", NOW + number * timedelta(hours=3)).ticket
            if number % 7:
                store.keep_answer(ticket, KeptAnswer(200, (), body), NOW + number * timedelta(hours=3))
        left = random.purge(3)
        assert random.pending is None
        assert left.found_in(path) == []


# ---------------------------------------------------------------- processes


def _claim(path: Path, keys: int) -> list[bool]:
    store = SqliteStore(path)
    found = []
    for number in range(keys):
        state, ticket, _ = store.claim_answer(f"key {number}", b"request", NOW)
        if ticket:
            store.keep_answer(ticket, PLAIN, NOW)
        assert state in ("claimed", "running", "answered")
        found.append(state == "claimed")
    store.close()
    return found


@pytest.mark.slow
def test_of_two_processes_only_one_carries_a_request_out(path: Path) -> None:
    SqliteStore(path).close()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, other = pool.starmap(_claim, [(path, 100), (path, 100)])
    assert [a + b for a, b in zip(one, other, strict=True)] == [1] * 100


# ---------------------------------------------------------------- files


def test_an_older_file_gets_the_tables(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("tea")
        with memory._store._connections.writing() as db:  # type: ignore[attr-defined]
            to_eleventh(db)
    with nacre.open(path, embedder=Hashing()) as memory:
        assert [each.name for each in memory.changes(0).changes] == [memory.timeline().entries[0].id]
        assert memory.authenticate(memory.create_token().secret)
        store = memory._store
        store.keep_answer(store.claim_answer("key", b"request", NOW).ticket, ANSWER, NOW)


def test_answers_are_in_backups_and_in_no_export(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        memory.remember("tea")
        store = memory._store
        store.keep_answer(store.claim_answer("the key", b"request", NOW).ticket, ANSWER, NOW)
        made = memory.backup(path.with_name("backup.db")).backup
        assert "the key" not in repr(list(memory.export()))
    nacre.restore_backup(made.path, path.with_name("restored.db"))
    restored = SqliteStore(path.with_name("restored.db"))
    assert restored.claim_answer("the key", b"request", NOW).answer == ANSWER
    restored.close()
