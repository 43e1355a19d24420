"""What is purged is gone: from the file of the store, from its log, and from every cache, in all processes.

Caches hold no text, but the hashes of its words and its vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import nacre
from further_models import Bilingual
from index_files import (
    QUESTIONS,
    Gate,
    by_words,
    cache_files,
    check,
    flower_texts,
    found,
    index_of,
    live_memories,
    low_thresholds,
    reopened,
    settled,
    sizes,
    space_of,
)
from nacre.embedders.hashing import Hashing
from nacre.storage.sqlite import page_checksums, scrub
from nacre.storage.sqlite.index import hnsw as sqlite_graph
from nacre.storage.sqlite.index import segment, segment_builder
from nacre.storage.sqlite.index import space_index as sqlite_index
from nacre.storage.sqlite.index.segment import MAIN, hashed
from nacre.storage.sqlite.index.segment_builder import having, quantised, with_metadata
from nacre.storage.vectors import pack, unpack
from purged_bytes import RandomStore
from store_checks import check_derived_tables, check_integrity

MARKER = "Zxqvjwk"  # stands nowhere else; its token is the same in lower case, and its own stem
SECRET = f"the secret {MARKER}"

pytestmark = pytest.mark.usefixtures("uncached")


@pytest.fixture(params=[False, True], ids=["", "with a graph"])
def low(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Files from ten memories on, and a graph of thirty."""
    graphs = {"GRAPH_PASSAGES_MIN": 30, "GRAPH_BEHIND_MAX": 10} if request.param else {}
    low_thresholds(monkeypatch, **graphs)
    return monkeypatch


def left_by(text: str) -> list[bytes]:
    """What a memory of this text leaves: its words as hashes, its vector in eight bits, its token vectors in four."""
    kept = [MARKER.lower(), having("kind", MARKER), having("tag", MARKER), with_metadata(MARKER, MARKER)]
    vector = unpack([pack(Hashing().embed_query(text))])
    _, (tokens,) = Hashing().embed_with_tokens([MARKER])
    return [*(hashed(term).to_bytes(8, "little") for term in kept), quantised(vector).tobytes(), tokens]


def traces(path: Path, text: str = SECRET) -> list[str]:
    """Files beside and with the store in which the purged text, or what is left of it, still stands."""
    files = [*path.parent.glob(f"{path.name}*"), *cache_files(path)]
    left = [MARKER.lower().encode(), *left_by(text)]
    found = []
    for file in filter(Path.is_file, files):
        with suppress(FileNotFoundError):  # replaced by the background meanwhile
            written = file.read_bytes()
            if any(each in written for each in left) or left[0] in written.lower():
                found.append(file.name)
    return found


def remembered_and_purged(engine: nacre.Nacre) -> None:
    engine.purge(engine.remember(SECRET).id)


def updated_and_purged(engine: nacre.Nacre) -> None:
    """The history of its updates held the text."""
    memory_id = engine.remember(SECRET).id
    engine.update(memory_id, text="nothing to see")
    engine.purge(memory_id)


def updated_twice_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember("nothing to see").id
    engine.update(memory_id, text=f"the secret {MARKER} number one", metadata={"key": f"about {MARKER}"})
    engine.update(memory_id, text=f"the secret {MARKER} number two", summary=f"a {MARKER}", tags=[MARKER])
    engine.purge(memory_id)


def forgotten_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(SECRET).id
    engine.forget(memory_id)
    engine.purge(memory_id)


def forgotten_restored_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(SECRET).id
    engine.forget(memory_id)
    engine.restore(memory_id)
    engine.purge(memory_id)


def every_field_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(
        SECRET,
        summary=f"about {MARKER}",
        tags=[MARKER, f"tag {MARKER}"],
        source=f"https://{MARKER}.example",
        session=f"session {MARKER}",
        position=1,
        metadata={MARKER: MARKER},
        kind=MARKER,
        namespace=MARKER,
    ).id
    engine.purge(memory_id)


def long_text_purged(engine: nacre.Nacre) -> None:
    """Pages of its own, and several passages."""
    engine.purge(engine.remember(" ".join(f"{MARKER}{number} text" for number in range(2_000))).id)


def many_purged(engine: nacre.Nacre) -> None:
    receipts = engine.remember_many(f"secret {MARKER} number {number}" for number in range(200))
    engine.update(receipts[0].id, text=f"changed {MARKER}")
    engine.purge([receipt.id for receipt in receipts])


def rebuilt_and_purged(engine: nacre.Nacre) -> None:
    memory_id = engine.remember(SECRET).id
    engine.rebuild()
    engine.purge(memory_id)


def rewritten_and_purged(engine: nacre.Nacre) -> None:
    """Full-text segments that held the word were merged into others since."""
    memory_id = engine.remember(SECRET).id
    for number in range(40):
        engine.remember(f"meanwhile number {number}")
    engine.update(memory_id, text="nothing to see")
    for number in range(40):
        engine.remember(f"later number {number}")
    engine.purge(memory_id)


def searched_and_purged(engine: nacre.Nacre) -> None:
    """What was asked quotes what was found."""
    memory_id = engine.remember(SECRET).id
    assert engine.search(f"secret {MARKER}", session=MARKER).hits[0].id == memory_id
    engine.get(memory_id)
    engine.purge(memory_id)


def quoted_and_purged(engine: nacre.Nacre) -> None:
    """By searches that found others, in this space and in another, before and after it was changed."""
    memory_id = engine.remember(f"the old {MARKER} hangs behind the boiler").id
    engine.update(memory_id, text="nothing to see", summary=f"a {MARKER} in the cellar")
    engine.forget(memory_id)
    elsewhere = nacre.Filter(spaces=["elsewhere"])
    for where in (nacre.Filter(), elsewhere):
        engine.search(f"does the OLD {MARKER} hang behind the rose?", where=where)
        engine.search(f"a rose, or a {MARKER} in the cellar", where=where, mode="keyword")
        engine.search(f"the old {MARKER.upper()} hangs", where=where, session="s")
    engine.context(f"old {MARKER} hangs behind the roses", session="s", repeat=True)
    engine.purge(memory_id)
    kept = [*engine.receipts(), *engine.receipts(spaces=["elsewhere"])]
    assert [each.query for each in kept if each.query] == ["rose"]  # the searches are kept, without their words
    assert len(kept) == 8


def facts_purged(engine: nacre.Nacre) -> None:
    """What it says, given and read from its text."""
    about = nacre.NewFact(
        subject=MARKER, predicate=f"has {MARKER}", object=f"two {MARKER}", relation=True, quote=MARKER
    )
    memory_id = engine.remember(f"{MARKER} lives in {MARKER}ville.", facts=[about]).id
    assert len(engine.facts()) == 2
    engine.add_facts(memory_id, [replace(about, object=f"three {MARKER}")])
    engine.update(memory_id, text=f"{MARKER} lives in {MARKER}stadt.")
    engine.purge(memory_id)


def entities_purged(engine: nacre.Nacre) -> None:
    known = [nacre.NewEntity(name=MARKER, aliases=[f"old {MARKER}"], type=f"a {MARKER}")]
    engine.purge(engine.remember("nothing to see", entities=known).id)


@pytest.mark.slow
@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(
    "history",
    [
        remembered_and_purged,
        updated_and_purged,
        updated_twice_and_purged,
        forgotten_and_purged,
        forgotten_restored_and_purged,
        every_field_purged,
        long_text_purged,
        many_purged,
        rebuilt_and_purged,
        rewritten_and_purged,
        searched_and_purged,
        quoted_and_purged,
        facts_purged,
        entities_purged,
    ],
)
def test_a_purged_text_is_nowhere_in_the_files(path: Path, history: Callable[[nacre.Nacre], None]) -> None:
    with reopened(path, log=True) as engine:
        engine.remember_many(flower_texts(50))
        found(engine, "rose")
        history(engine)
        settled(engine)  # or a graph that is about to be dropped might be seen
        assert traces(path) == []
        check(engine, QUESTIONS[:2])
    assert traces(path) == []
    with reopened(path) as engine:
        assert engine.search(MARKER, mode="keyword").hits == ()
    assert traces(path) == []


@pytest.mark.usefixtures("low")
def test_no_vector_of_a_further_model_is_left(path: Path) -> None:
    further = Bilingual()
    stored = pack(further.embed_query(SECRET))
    quantum = quantised(unpack([stored])).tobytes()
    with reopened(path, further=further) as engine:
        engine.remember_many(flower_texts(50))
        secret = engine.remember(SECRET).id
        assert engine.search(f"Wo liegt der {MARKER}?").hits[0].id == secret
        settled(engine)
        files = [*path.parent.glob(f"{path.name}*"), *cache_files(path)]
        assert any(quantum in file.read_bytes() for file in files if file.is_file())
        engine.purge(secret)
        settled(engine)
        for file in [*path.parent.glob(f"{path.name}*"), *cache_files(path)]:
            assert not file.is_file() or not {stored, quantum} & {
                each for each in (stored, quantum) if each in file.read_bytes()
            }
        assert secret not in [hit.id for hit in engine.search(f"Wo liegt der {MARKER}?").hits]


# ---------------------------------------------------------------- bytes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_byte_is_left_in_a_random_store(path: Path, seed: int) -> None:
    """Pages were split and merged while it was there, and its cells were moved."""
    with reopened(path, log=True, further=Bilingual()) as engine:
        store = RandomStore(engine, seed)
        store.remember(30)
        for _ in range(4):
            store.change()
        left = store.purge(3)
        assert left.found_in(path) == []
        store.remember(10)
        store.change()
        left = store.purge(2)
        assert left.found_in(path) == []
    check_integrity(path)
    check_derived_tables(path)


@pytest.mark.parametrize("how", ["in place", "with checksums", "rebuilt"])
def test_a_scrub_overwrites_copies_that_sqlite_left(path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Where pages cannot be changed in place, as encrypted ones, the file is written again."""
    rebuilt = how == "rebuilt"
    with nacre.open(path, embedder=Hashing(), log=False, page_checksums=how != "in place") as engine:
        store = RandomStore(engine, 1)
        store.remember(40)
        with suppress_scrubs(engine):
            gone = store.purge(10)
        assert gone.found_in(path) != []
        if rebuilt:
            monkeypatch.setattr(scrub, "page_bytes", lambda _: None)
        engine.remember("one more")
        assert gone.found_in(path) == []
        if not rebuilt:
            assert unclean_pages(path) < 5  # those that the last commit has written
    check_integrity(path)
    check_derived_tables(path)


def suppress_scrubs(engine: nacre.Nacre) -> AbstractContextManager[object]:
    return patch.object(engine._store, "_scrub", lambda _: "not now")


def unclean_pages(path: Path) -> int:
    with scrub.opened(str(path)) as file:
        size = scrub.page_bytes(file)
        assert size is not None
        return sum(scrub.unused(page, number) != [] for number, page in scrub.pages(file, size))


def test_checksums_of_pages_are_those_that_the_vfs_writes(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), log=False) as engine:
        engine.remember_many(f"memory {number} of roses" for number in range(40))
    with scrub.opened(str(path)) as file:
        every = list(scrub.pages(file, 4096))
    assert len(every) > 20
    assert all(page.endswith(page_checksums.checksum(page)) for _, page in every)
    damaged = every[3][1][:100] + b"!" + every[3][1][101:]
    assert scrub.cleaned(damaged, 3, checksums=True) == damaged


def test_the_unused_parts_of_a_page() -> None:
    """A leaf with a gap, one cell and a free block: worked by hand."""
    head = bytes([13]) + (40).to_bytes(2) + (1).to_bytes(2) + (30).to_bytes(2) + bytes([0]) + (30).to_bytes(2)
    gap, cell = b"gap".ljust(20, b"\0"), b"the cell.."
    block = (0).to_bytes(2) + (12).to_bytes(2) + b"deleted."
    page = head + gap + cell + block
    assert len(page) == 52
    assert scrub.unused(page, 1) == [(10, 30), (44, 52)]
    assert scrub.unused(head + bytes(20) + cell + block[:4] + bytes(8), 1) == []
    assert scrub.unused(bytes(52), 1) == []  # an overflow page, or a free one
    assert scrub.unused(page[:48], 1) is None  # the free block goes beyond the page
    assert scrub.unused(page[:1] + (60).to_bytes(2) + page[3:], 1) is None
    assert scrub.unused(page[:5] + (9).to_bytes(2) + page[7:], 1) is None  # cells that begin among the pointers


def test_a_store_behind_a_symbolic_link(path: Path) -> None:
    """The write-ahead log is beside the file that the link leads to."""
    real = path.with_name("elsewhere") / "real.db"
    real.parent.mkdir()
    path.symlink_to(real)
    with reopened(path) as engine:
        store = RandomStore(engine, 2)
        store.remember(40)
        left = store.purge(5)
        assert left.found_in(path) == []
    check_integrity(real)


def test_searches_that_another_process_logs_after_the_purge(path: Path) -> None:
    """One had found the text, one quotes it, and one was asked later."""
    with reopened(path, log=True) as engine, reopened(path, log=True) as other:
        memory_id = engine.remember(SECRET).id
        engine.remember("a rose")
        journal = other._log._writer
        assert journal is not None
        write, purged = journal._write, threading.Event()
        with patch.object(journal, "_write", lambda notes: purged.wait(60) and write(notes)):
            other.search(f"where is {MARKER}?")
            other.search(f"{MARKER} or rose", where=nacre.Filter(tags_any=["none"]))
            assert engine.purge(memory_id).scrubbed
            other.search("rose")
            purged.set()
            other._log.flush()
        assert traces(path) == []
        assert sorted(each.query for each in engine.receipts()) == ["", "", "rose"]


# ---------------------------------------------------------------- caches


def in_the_caches(path: Path) -> list[str]:
    """Only in the caches: while a process reads, the log of the database may still hold it."""
    return [name for name in traces(path) if not name.startswith(path.name)]


def check_purged(engine: nacre.Nacre, path: Path) -> None:
    """No cache holds the secret, also after a search and the background work that it starts."""
    assert in_the_caches(path) == []
    check(engine)
    settled(engine)
    assert in_the_caches(path) == []


@pytest.fixture
def secret(path: Path, low: pytest.MonkeyPatch) -> Iterator[tuple[nacre.Nacre, str]]:
    """A store whose caches hold the secret, and its id."""
    assert low is not None
    with reopened(path) as engine:
        engine.remember_many(flower_texts(50))
        memory_id = engine.remember(SECRET).id
        engine.rebuild()
        assert space_of(engine).parts[0].saved
        assert in_the_caches(path) != []
        yield engine, memory_id


def test_what_a_purge_leaves_is_what_was_there_before(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    """The files that held it are written again, without it."""
    engine, memory_id = secret
    engine.purge(memory_id)
    assert traces(path) == []
    check(engine)
    settled(engine)
    assert traces(path) == []
    assert len(cache_files(path, ".segment")) == 1
    with reopened(path) as other:
        check(other)
        assert sum(sizes(other)) == 50


@pytest.mark.parametrize("first", ["forget", "update"])
def test_what_was_dead_already_is_purged_from_the_files(
    path: Path, secret: tuple[nacre.Nacre, str], first: str
) -> None:
    """It was in no search any more, but still in a file."""
    engine, memory_id = secret
    if first == "forget":
        engine.forget(memory_id)
    else:
        engine.update(memory_id, text="nothing to see")
    check(engine, QUESTIONS[:1])
    settled(engine)
    assert in_the_caches(path) != []
    engine.purge(memory_id)
    assert traces(path) == []
    check(engine)


@pytest.mark.usefixtures("low")
def test_a_purge_leaves_the_files_of_other_spaces_alone(path: Path) -> None:
    with reopened(path) as engine:
        for space in ("a", "b"):
            engine.remember_many(nacre.NewMemory(text=each.text, space=space) for each in flower_texts(20))
            engine.search("rose", where=nacre.Filter(spaces=[space]))
        settled(engine)
        before = {(file.name, file.stat().st_ino) for file in cache_files(path)}
        assert len(before) == 2
        engine.purge(engine.timeline(where=nacre.Filter(spaces=["a"]), limit=1).entries[0].id)
        settled(engine)
        after = {(file.name, file.stat().st_ino) for file in cache_files(path)}
        assert len(after) == 2
        assert len(after & before) == 1
        for space, count in (("a", 19), ("b", 20)):
            where = nacre.Filter(spaces=[space])
            assert len(engine.search("number", mode="keyword", where=where, limit=50).hits) == count


def test_a_purge_by_a_process_that_never_searched(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    """It clears the files that others wrote."""
    engine, memory_id = secret
    engine.close()
    with reopened(path) as other:
        other.purge(memory_id)
        assert traces(path) == []
        assert memory_id not in found(other, "rose", 1000)
        check(other)


def test_a_purge_clears_what_another_process_has_merged(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    """The files that this process opened are gone, and what was made of them holds the secret, too."""
    engine, memory_id = secret
    with reopened(path) as other:
        other.remember_many(flower_texts(40, first=50))
        check(other, QUESTIONS[:1])
        settled(other)
        assert sizes(other) == [91]
    engine.purge(memory_id)
    check_purged(engine, path)
    with reopened(path) as again:
        check(again)


def test_a_purge_clears_what_a_killed_process_left(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    engine, memory_id = secret
    for file in cache_files(path):
        file.with_name(f"{file.name}.01234567.tmp").write_bytes(file.read_bytes())
    engine.purge(memory_id)
    assert traces(path) == []


def test_others_do_not_bring_back_what_was_purged(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    """Another process that had opened the files goes on, merges and grows."""
    engine, memory_id = secret
    with reopened(path) as other:
        check(other)
        engine.purge(memory_id)
        other.remember_many(flower_texts(40, first=50))
        assert memory_id not in [each for each, _ in by_words(other, "secret")]
        check(other)
        settled(other)
        check_purged(engine, path)


def purge_by(purger: str, engine: nacre.Nacre, path: Path, memory_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the engine, or by another that does nothing in the background."""
    if purger == "itself":
        engine.purge(memory_id)
        return
    with reopened(path) as other:
        monkeypatch.setattr(index_of(other)._worker, "wake", lambda: None)
        other.purge(memory_id)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("purger", ["itself", "another process"])
def test_a_merge_that_began_before_a_purge(path: Path, monkeypatch: pytest.MonkeyPatch, purger: str) -> None:
    """Its file is ready only after the purge, and nobody searches after that."""
    with Gate(segment_builder.merge) as gate, reopened(path) as engine:
        monkeypatch.setattr(sqlite_index, "merge", gate)
        engine.remember_many(flower_texts(50))
        memory_id = engine.remember(SECRET).id
        check(engine, QUESTIONS[:1])
        engine.remember_many(flower_texts(40, first=50))
        check(engine, QUESTIONS[:1])
        assert gate.begun.wait(60)
        purge_by(purger, engine, path, memory_id, monkeypatch)
        assert in_the_caches(path) == []
        gate.opened.set()
        settled(engine)
        assert in_the_caches(path) == []
    assert in_the_caches(path) == []
    with reopened(path) as again:
        check(again)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("purger", ["itself", "another process"])
def test_catching_up_that_began_before_a_purge(path: Path, monkeypatch: pytest.MonkeyPatch, purger: str) -> None:
    """The background has read the secret, and writes its file only after the purge."""
    of_rows = segment_builder.of_rows
    with Gate(lambda segment: segment) as gate, reopened(path, busy_timeout_ms=200) as engine:
        monkeypatch.setattr(sqlite_index, "of_rows", lambda *arguments: gate(of_rows(*arguments)))
        engine.remember_many(flower_texts(50))
        memory_id = engine.remember(SECRET).id
        index_of(engine).catch_up_in_background(["default"])
        assert gate.begun.wait(60)
        if purger == "itself":
            engine.purge(memory_id)
        else:
            with reopened(path, busy_timeout_ms=200) as other:
                other.purge(memory_id)
        gate.opened.set()
        settled(engine)
        check_purged(engine, path)
    with reopened(path) as again:
        check(again)


@pytest.mark.usefixtures("low")
def test_a_search_that_began_before_a_purge(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it sees is of the moment when it began; what it leaves in files is not."""
    of_rows = segment_builder.of_rows
    with reopened(path, busy_timeout_ms=200) as engine, reopened(path, busy_timeout_ms=200) as other:
        engine.remember_many(flower_texts(50))
        secrets = [engine.remember(SECRET).id]

        def purged_meanwhile(*arguments: Any) -> Any:
            segment = of_rows(*arguments)
            if secrets:
                other.purge(secrets.pop())
            return segment

        monkeypatch.setattr(sqlite_index, "of_rows", purged_meanwhile)
        assert engine.search(SECRET, mode="semantic").hits[0].text == SECRET
        assert not secrets
        assert in_the_caches(path) == []
    with reopened(path) as again:
        check(again)


@pytest.mark.parametrize("purger", ["itself", "another process"])
def test_a_graph_that_was_begun_before_a_purge(path: Path, monkeypatch: pytest.MonkeyPatch, purger: str) -> None:
    low_thresholds(monkeypatch, GRAPH_PASSAGES_MIN=30)
    additional = sqlite_graph._additional
    with Gate(lambda slices: slices) as gate, reopened(path) as engine:
        monkeypatch.setattr(sqlite_graph, "_additional", lambda *arguments: gate(list(additional(*arguments))))
        engine.remember_many(flower_texts(50))
        memory_id = engine.remember(SECRET).id
        check(engine, QUESTIONS[:1])
        assert gate.begun.wait(60)
        purge_by(purger, engine, path, memory_id, monkeypatch)
        gate.opened.set()
        settled(engine)
        assert in_the_caches(path) == []
        check(engine)
        settled(engine)
        graph = space_of(engine).graphs.get(MAIN)
        assert graph is not None
        assert len(graph) == 50
        check(engine)


def test_closing_during_a_purge(path: Path, secret: tuple[nacre.Nacre, str]) -> None:
    """What is being closed still clears its files: who closes waits for it."""
    engine, memory_id = secret
    index_of(engine)._closing.set()  # as close() does first
    engine.purge(memory_id)
    assert traces(path) == []
    assert memory_id not in [memory.id for memory in live_memories(engine)]
    check(engine)


def test_a_purge_that_cannot_write_leaves_nothing(
    path: Path, secret: tuple[nacre.Nacre, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the files that held it are gone all the same."""
    engine, memory_id = secret

    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(np, "memmap", full)
        patched.setattr(segment.Files, "write", lambda *_: None)
        engine.purge(memory_id)
        assert traces(path) == []
        check(engine)
    with reopened(path) as other:
        check(other)
