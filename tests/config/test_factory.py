"""The factory: what it refuses before it creates a file, whose clock it uses, and what settings open."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre import Filter, InvalidInput, StoreUnavailable
from nacre.config import factory, settings
from nacre.config.settings import Settings, Sourced
from nacre.embedders.hashing import Hashing
from nacre.types.search import Mode


def _settings(path: Path, **flags: object) -> Settings:
    return settings.load({"store": path, "embedder": "hashing", **flags}, {"NACRE_CONFIG": str(path) + ".toml"})


# ---------------------------------------------------------------- clock


def test_a_memory_lives_at_the_time_of_its_clock(path: Path) -> None:
    now = datetime(2020, 2, 29, 12, tzinfo=timezone(timedelta(hours=2)))
    with nacre.open(path, embedder="none", clock=lambda: now) as memory:
        memory.remember("The kiln is hot")
        (entry,) = memory.timeline().entries
        assert entry.created == now
        assert entry.created.tzinfo is UTC
        now += timedelta(days=9)
        (hit,) = memory.search("kiln").hits
    (recency,) = [each for each in hit.reasons if each.signal == "recency"]
    assert recency.numbers["days"] == 9


@pytest.mark.parametrize(
    "clock",
    [lambda: datetime(2020, 2, 29), lambda: "2020-02-29", lambda: None, datetime(2020, 2, 29, tzinfo=UTC)],  # noqa: DTZ001
)
def test_a_clock_without_a_time_zone_is_refused(path: Path, clock: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^clock: .*a datetime with a time zone") as error:
        nacre.open(path, embedder="none", clock=clock)
    assert error.value.field == "clock"
    assert not path.exists()


def test_a_clock_that_goes_wrong_later_is_refused_then(path: Path) -> None:
    times = [datetime(2020, 2, 29, tzinfo=UTC), datetime(2020, 2, 29)]  # noqa: DTZ001
    with (
        nacre.open(path, embedder="none", log=False, clock=lambda: times.pop(0)) as memory,
        pytest.raises(InvalidInput, match=r"^clock: "),
    ):
        memory.remember("The kiln is hot")


# ---------------------------------------------------------------- settings


def test_settings_open_the_store_they_name(path: Path) -> None:
    with factory.open_from_settings(_settings(path, space="work")) as memory:
        written = memory.remember("The kiln is hot")
        assert memory.get(written.id)[0].space == "work"
    with nacre.open(path, space="work", embedder=Hashing(), create=False) as memory:
        assert memory.search("kiln").hits[0].id == written.id
    assert path.exists()


def test_a_space_replaces_that_of_the_settings_and_may_confine(path: Path) -> None:
    with factory.open_from_settings(_settings(path, space="work")) as memory:
        at_work = memory.remember("The kiln is hot").id
    with factory.open_from_settings(_settings(path, space="work"), space="home", confined=True) as memory:
        assert memory.get(memory.remember("The oven is cold").id)[0].space == "home"
        assert list(memory.get([at_work], missing_ok=True).memories) == []
        with pytest.raises(InvalidInput):
            memory.search("kiln", where=Filter(spaces=("work",)))


def test_engines_may_share_models(path: Path) -> None:
    models = factory.models_from_settings(_settings(path))
    with (
        factory.open_from_settings(_settings(path), models=models, space="one") as one,
        factory.open_from_settings(_settings(path), models=models, space="two") as two,
    ):
        one.remember("The kiln is hot")
        two.remember("The oven is cold")
        assert [hit.text for hit in one.search("kiln oven", mode="semantic").hits] == ["The kiln is hot"]
        assert [hit.text for hit in two.search("kiln oven", mode="semantic").hits] == ["The oven is cold"]


def test_the_log_is_kept_only_where_both_agree(path: Path) -> None:
    for number, (asked, flag) in enumerate([(True, "on"), (False, "on"), (True, "off")]):
        file = path.with_name(f"{number}.db")
        with factory.open_from_settings(_settings(file, log=flag), log=asked) as memory:
            memory.remember("The kiln is hot")
            memory.search("kiln")
            assert len(memory.receipts()) == (1 if asked and flag == "on" else 0)


def test_the_default_folder_is_created_with_the_store_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "data" / "nacre" / "nacre.db"
    from_flag = _settings(path)
    by_default = Settings(
        **{name: getattr(from_flag, name) for name in settings.MEANINGS} | {"store": Sourced(path, "default")}
    )
    with pytest.raises(StoreUnavailable):
        factory.open_from_settings(from_flag)
    with pytest.raises(StoreUnavailable):
        factory.open_from_settings(by_default, create=False)
    assert not path.parent.exists()
    factory.open_from_settings(by_default).close()
    assert path.exists()


def test_a_file_that_does_not_exist_is_empty_unless_it_is_created(path: Path) -> None:
    note = f"no memories yet: the store {path} does not exist"
    modes: list[Mode] = ["keyword", "semantic", "hybrid"]
    with nacre.open(path, embedder=Hashing(), create=False) as memory:
        for mode in modes:
            result = memory.search("anything", mode=mode, session="s")
            assert (result.hits, result.notes, result.receipt) == ((), (note,), None)
        assert memory.context("anything").notes == (note,)
        assert memory.context("anything").outcome == "nothing"
        assert memory.facets().notes == (note,)
        assert memory.facets("anything").total == 0
        assert memory.timeline().entries == ()
        assert (memory.facts(), memory.receipts(), memory.entities(), list(memory.every())) == ([], [], [], [])
        assert memory.get("x", missing_ok=True).missing == ("x",)
        stats = memory.stats()
        assert (stats.memories, stats.size_bytes, stats.schema_version, stats.model) == (0, 0, 0, None)
        writes: list[Callable[[], object]] = [
            lambda: memory.remember("a text"),
            lambda: memory.state_fact(nacre.NewFact(subject="a", predicate="b", object="c")),
            lambda: memory.add_entity("Ada"),
            lambda: memory.save_lens(nacre.Lens(name="mine")),
        ]
        for write in writes:
            with pytest.raises(StoreUnavailable, match="does not exist; open it with create=True"):
                write()
        with pytest.raises(nacre.NotFound):
            memory.forget("x")
    assert not path.exists()
    with nacre.open(path, embedder=Hashing()) as memory:
        assert memory.search("anything").notes == ()


def test_a_file_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"the folder .* does not exist"):
        nacre.open(tmp_path / "none" / "x.db", embedder=None, create=False)
    with pytest.raises(StoreUnavailable, match="is a folder"):
        nacre.open(tmp_path, embedder=None, create=False)


# ---------------------------------------------------------------- replicas


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"replica": "postgresql://nacre:geheim@host/agents"}, r"^replica: is for stores in PostgreSQL"),
        ({"replica": ["postgresql://nacre@one/agents", "two.db"]}, r"^replica: several stores must be addresses"),
        ({"replica": 5}, r"^replica: must be an address like"),
        ({"staleness_s": 2.0}, r"^staleness_s: is for stores in PostgreSQL"),
        ({"staleness_s": "soon"}, r"^staleness_s: is 'soon'; a number from 0 to 3600"),
        ({"staleness_s": True}, r"^staleness_s: is True; a number"),
    ],
)
def test_options_of_replicas_are_checked_before_a_file_is_made(path: Path, options: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as error:
        nacre.open(path, embedder="none", **options)
    assert "geheim" not in str(error.value)
    assert not path.exists()


def test_settings_of_replicas_may_be_there_for_another_store(path: Path) -> None:
    given = _settings(path, postgres_replica="postgresql://nacre@one/agents", postgres_staleness_s=1)
    with factory.open_from_settings(given) as memory:
        assert memory.remember("A heron").id
