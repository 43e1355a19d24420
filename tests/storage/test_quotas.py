"""Quotas: what a space may hold and a session may write, checked in the transaction that writes."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nacre
from command_line import Cli
from mcp_clients import engines_on
from nacre import InvalidInput, NewFact, NewMemory, QuotaExceeded, Quotas, StoreFull
from nacre.serialization import encode
from stores import Opening

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def opened(path: Path, **quotas: int) -> nacre.Nacre:
    return nacre.open(path, embedder="none", quotas=Quotas(**quotas))


@pytest.fixture
def open_with(open_one: Opening) -> Opening:
    return lambda **quotas: open_one(embedder="none", quotas=Quotas(**quotas))


def test_a_space_holds_as_many_memories_as_it_may(open_with: Opening) -> None:
    with open_with(memories_max=3) as memory:
        first, _, _ = (each.id for each in memory.remember_many(["one", "two", "three"]))
        with pytest.raises(QuotaExceeded) as refused:
            memory.remember("four")
        assert str(refused.value) == (
            "quota_memories: space 'default' may hold 3 memories and has 3; this write adds 1. Nothing was written. "
            "Purge memories (forgotten ones count until then), or raise quota_memories"
        )
        assert (refused.value.quota, refused.value.limit, refused.value.used) == ("quota_memories", 3, 3)
        assert isinstance(refused.value, StoreFull)
        assert encode.exit_code(refused.value) == 3
        assert memory.remember("one").duplicate  # nothing is written
        memory.remember("four", space="another")
        memory.forget(first)
        with pytest.raises(QuotaExceeded):
            memory.remember("four")
        memory.restore(first)
        memory.purge(first)
        memory.remember("four")


def test_a_batch_is_stored_as_a_whole_or_not_at_all(open_with: Opening) -> None:
    with open_with(memories_max=3) as memory:
        memory.remember("one")
        with pytest.raises(QuotaExceeded, match="has 1; this write adds 3"):
            memory.remember_many(["two", "three", "four"])
        with pytest.raises(QuotaExceeded):
            memory.remember_many([*"ab", *(NewMemory(text=each, space="other") for each in "cdef")])
        assert [each.text for each in memory.every()] == ["one"]
        assert memory.stats().spaces == {"default": 1}
        assert len(memory.remember_many(["two", "three", "two", "one"])) == 4


def test_bytes_are_those_of_what_is_written_and_of_what_it_replaced(open_with: Opening) -> None:
    with open_with(bytes_max=100) as memory:
        one = memory.remember("é" * 10, summary="s", source="so", tags=["t"], metadata={"k": "v"}).id
        assert memory.stats().stored_bytes == {"default": 20 + 1 + 2 + len('["t"]') + len('{"k":"v"}')}
        memory.update(one, summary="longer")
        before = len('{"summary":"s"}')
        assert memory.stats().stored_bytes == {"default": 37 + 5 + before}
        memory.add_facts(one, [NewFact(subject="a", predicate="b", object="c", quote="d")])
        assert memory.stats().stored_bytes == {"default": 61}
        for call in (
            lambda: memory.update(one, text="x" * 100),
            lambda: memory.add_facts(one, [NewFact(subject="a", predicate="b", object="c" * 50)]),
            lambda: memory.remember("x" * 40),
        ):
            with pytest.raises(QuotaExceeded, match="quota_bytes: space 'default' may hold 100 bytes and has 61"):
                call()
        assert memory.stats().stored_bytes == {"default": 61}
        assert len(memory.history(one)) == 3
        memory.purge(one)
        assert memory.stats().stored_bytes == {}


def test_a_quota_that_was_lowered_still_lets_go(open_with: Opening) -> None:
    with open_with() as memory:
        ids = [each.id for each in memory.remember_many(["one", "two", "three"])]
    with open_with(memories_max=1) as memory:
        assert memory.update(ids[0], importance=0.9).importance == 0.9  # holds no more memories than before
        memory.forget(ids[0])
        memory.restore(ids[0])
        with pytest.raises(QuotaExceeded, match="may hold 1 memories and has 3"):
            memory.remember("four")
        memory.purge(ids)
        memory.remember("four")


def test_a_session_writes_as_fast_as_it_may(open_one: Opening) -> None:
    now = START
    with open_one(embedder="none", quotas=Quotas(session_writes_max=2), clock=lambda: now) as memory:
        memory.remember_many([NewMemory(text=each, session="s") for each in ("one", "two")])
        now += timedelta(seconds=20)
        with pytest.raises(QuotaExceeded) as refused:
            memory.remember("three", session="s")
        assert str(refused.value) == (
            "quota_session_writes: session 's' may write 2 memories a minute and has written 2; this write adds 1. "
            "Nothing was written. Wait 40 s, or raise quota_session_writes"
        )
        memory.remember("three", session="t")
        memory.remember("four", origin="s2")
        memory.remember_many(["without", "any", "session"])
        with pytest.raises(QuotaExceeded, match="Write fewer at once"):
            memory.remember_many([NewMemory(text=each, session="u") for each in "abc"])
        now += timedelta(seconds=40)
        memory.remember("five", session="s")
        now -= timedelta(hours=1)  # a clock that was set back holds nobody up
        memory.remember("six", session="s")


def _fill(path: Path, name: str) -> tuple[int, int]:
    done = refused = 0
    with opened(path, memories_max=60) as memory:
        for number in range(20):
            try:
                memory.remember_many([f"{name} {number} a", f"{name} {number} b"])
                done += 2
            except QuotaExceeded:
                refused += 1
    return done, refused


@pytest.mark.slow
def test_several_processes_never_exceed_it_together(path: Path) -> None:
    with opened(path) as memory:
        memory.remember("the first")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        ends = pool.starmap(_fill, [(path, name) for name in "abc"])
    with opened(path, memories_max=60) as memory:
        stats = memory.stats()
        assert stats.memories == 1 + sum(done for done, _ in ends) == 59
        assert stats.stored_memories == {"default": 59}
        assert sum(refused for _, refused in ends) == 60 - 29


def test_quotas_are_settings_that_stats_show(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_QUOTA_MEMORIES", "2")
    assert cli("remember", "one").code == 0
    assert "quota       default 1 of 2 memories (50%), 3 bytes\n" in cli("stats").out
    cli("remember", "two")
    refused = cli("remember", "three")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.startswith("error: quota_memories: space 'default' may hold 2 memories and has 2")
    shown: dict[str, Any] = cli("stats", "--json").json
    assert (shown["stored_memories"], shown["quotas"]) == ({"default": 2}, {"quota_memories": 2})
    monkeypatch.setenv("NACRE_TEXT_CHARS_MAX", "10")
    assert "text: has 11 characters; at most 10 are allowed" in cli("remember", "x" * 11).err
    monkeypatch.setenv("NACRE_QUOTA_BYTES", "-1")
    assert "NACRE_QUOTA_BYTES: is '-1'" in cli("stats").err


def test_a_server_has_them_too(path: Path) -> None:
    engines = engines_on(path, quota_memories=1)
    try:
        memory = engines.memory("default")
        memory.remember("one")
        with pytest.raises(QuotaExceeded):
            memory.state_fact(NewFact(subject="a", predicate="b", object="c"))
    finally:
        engines.close()


@pytest.mark.parametrize("wrong", [Quotas(memories_max=-1), Quotas(bytes_max=1.5), "none"])  # type: ignore[arg-type]
def test_a_wrong_quota_is_refused_before_a_file_is_made(path: Path, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="quotas"):
        nacre.open(path, embedder="none", quotas=wrong)
    assert not path.exists()
