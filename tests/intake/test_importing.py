"""An import, whatever the records: counts, batches, and a preview that says what a real one does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre import Nacre, NewMemory
from nacre.engine import writer
from nacre.errors import InvalidInput, NacreError
from nacre.importers.importer import Refused
from nacre.intake import importing
from nacre.intake.importing import Import, ImportCounts, Preview, adjusted, preview
from nacre.storage.reference import MemoryStore

Record = NewMemory | Refused


def new(key: str | None, text: str = "Tea", **fields: Any) -> NewMemory:
    return NewMemory(text=text, key=key, **fields)


def said(error: NacreError) -> str:
    return error.problem if isinstance(error, InvalidInput) else str(error)


def brought_in(memory: Nacre, records: list[Record]) -> tuple[ImportCounts, list[str]]:
    refused: list[str] = []
    (*_, counts) = Import(memory, records, lambda where, error: refused.append(f"{where}: {said(error)}")).run()
    return counts, refused


def looked_at(memory: Nacre, records: list[Record]) -> tuple[Preview, list[str]]:
    refused: list[str] = []
    (*_, found) = preview(memory, records, lambda where, error: refused.append(f"{where}: {said(error)}"))
    return found, refused


def test_records_are_new_changed_unchanged_or_refused(memory: Nacre) -> None:
    first: list[Record] = [new("a", tags=["x"]), new("b", "Ash"), Refused("line 3", "is damaged"), new("c", " ")]
    looked, _ = looked_at(memory, first)
    counts, refused = brought_in(memory, first)
    assert looked.counts == counts == ImportCounts(new=2, refused=2)
    assert refused == ["line 3: is damaged", "c: is blank; give 1 to 1,000,000 characters"]
    second: list[Record] = [new("a", tags=["x"]), new("b", "Clay"), new("d"), new("d")]
    looked, _ = looked_at(memory, second)
    assert looked.counts == ImportCounts(new=1, changed=1, unchanged=2)
    assert brought_in(memory, second) == (looked.counts, [])
    (b,) = memory.get(keys="b")
    assert (b.text, len(memory.history(b.id))) == ("Clay", 2)


def test_a_preview_shows_what_would_come_in(memory: Nacre) -> None:
    moments = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 9)]
    records: list[Record] = [
        new(str(at), f"Tea {at}", created=moment, session=f"s{at // 3}", position=at)
        for at, moment in enumerate(moments)
    ]
    looked, _ = looked_at(memory, records)
    assert (looked.earliest, looked.latest, looked.sessions) == (moments[0], moments[-1], 3)
    assert [each.text for each in looked.first] == [f"Tea {at}" for at in range(5)]
    assert memory.stats().memories == 0
    assert looked_at(memory, []) == (Preview(), [])


def test_secrets_are_seen_as_they_are_stored() -> None:
    token = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
    records: list[Record] = [
        new("a", f"my token is {token}"), new("b", "x <private>y</private>"), new("c", metadata={"a": [{"b": token}]}),
    ]  # fmt: skip
    with Nacre(MemoryStore(), None, log=False, secrets="redact") as memory:
        assert brought_in(memory, records)[0] == ImportCounts(new=3)
        assert looked_at(memory, records)[0].counts == ImportCounts(unchanged=3)
    with Nacre(MemoryStore(), None, log=False, secrets="refuse") as memory:
        looked, seen = looked_at(memory, records)
        counts, refused = brought_in(memory, records)
        assert looked.counts == counts == ImportCounts(new=1, refused=2)
        assert seen == refused
        assert token not in refused[0]


def test_all_memories_may_be_given_tags_and_a_namespace() -> None:
    records: list[Record] = [new("a", tags=["x", "y"]), Refused("line 2", "bad"), new("b"), new("c")]
    found = list(adjusted(records, namespace="drinks", tags=["y", "z"], limit=2))
    assert found == [
        new("a", tags=("x", "y", "z"), namespace="drinks"), Refused("line 2", "bad"),
        new("b", tags=("y", "z"), namespace="drinks"),
    ]  # fmt: skip
    assert list(adjusted(records, namespace=None, tags=[], limit=None)) == records


def test_an_import_that_was_stopped_is_continued(memory: Nacre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCH_EMBEDDED", 10)

    def broken() -> Any:
        yield from (new(str(at), f"Tea {at}") for at in range(35))
        raise KeyboardInterrupt

    def ignore(where: str, error: NacreError) -> None:
        raise AssertionError((where, error))

    with pytest.raises(KeyboardInterrupt):
        list(Import(memory, broken(), ignore).run())
    assert memory.stats().memories == 30
    whole: list[Record] = [new(str(at), f"Tea {at}") for at in range(35)]
    assert brought_in(memory, whole)[0] == ImportCounts(new=5, unchanged=30)


@pytest.mark.parametrize("at_once", [None, 1, 2, 10])
def test_what_is_refused_is_named_whatever_is_stored_at_once(memory: Nacre, at_once: int | None) -> None:
    records: list[Record] = [new(str(at), " " if at % 3 == 1 else f"Tea {at}") for at in range(8)]
    refused: list[str] = []
    done = list(Import(memory, records, lambda where, _: refused.append(where), at_once=at_once).run())
    assert refused == ["1", "4", "7"]
    assert done[-1] == ImportCounts(new=5, refused=3)
    assert len(done) == {None: 2, 1: 9, 2: 5, 10: 2}[at_once]


RECORDS = st.lists(
    st.builds(
        new,
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from(["Tea", "Ash", "  ", "x" * 20, "I like <private>a</private>"]),
        tags=st.lists(st.sampled_from(["t", "u", ""]), max_size=2),
        importance=st.sampled_from([0.5, 1.0]),
        session=st.sampled_from([None, "s"]),
        metadata=st.sampled_from([{}, {"n": 1}]),
    )
    | st.just(Refused("x", "bad")),
    max_size=7,
)


@pytest.mark.slow
@given(RECORDS, RECORDS, st.integers(1, 4))
@settings(max_examples=80)
def test_a_preview_says_what_an_import_does(first: list[Record], second: list[Record], batch: int) -> None:
    """Except for a key that one import has twice with different things: the second is seen as known."""
    with pytest.MonkeyPatch.context() as patch, Nacre(MemoryStore(), None, log=False) as memory:
        patch.setattr(importing, "_SEEN_AT_ONCE", batch)
        patch.setattr(writer, "BATCH_MEMORIES", batch)
        for records in (first, second, second):
            once = list(
                {each.key if isinstance(each, NewMemory) else at: each for at, each in enumerate(records)}.values()
            )
            looked, would_refuse = looked_at(memory, once)
            counts, refused = brought_in(memory, once)
            assert looked.counts == counts
            assert sorted(would_refuse) == sorted(refused)
