"""The file itself: what a store looks like, and what becomes of files that are not, or no longer, one."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

import nacre
from nacre.analysis import tokenizer
from nacre.embedders.hashing import Hashing
from nacre.errors import NacreError, StoreCorrupt, StoreError, StoreFull, StoreTooNew, StoreUnavailable
from nacre.ids import content_hash
from nacre.storage.sqlite import SqliteStore, lifecycle, retokenising, rows, schema
from nacre.storage.sqlite import facts as facts_module
from nacre.storage.sqlite import store as store_module
from nacre.types.facts import NewEntity, NewFact
from older_files import to_eleventh
from store_checks import check_derived_tables, check_integrity


def opened(path: Path) -> nacre.Nacre:
    return nacre.open(path, embedder=Hashing())


@contextmanager
def raw(path: Path) -> Iterator[apsw.Connection]:
    """The file as any program sees it."""
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()


def sqlite_store(engine: nacre.Nacre) -> SqliteStore:
    assert isinstance(engine._store, SqliteStore)
    return engine._store


def writer(engine: nacre.Nacre) -> apsw.Connection:
    file = sqlite_store(engine)._connections._file
    assert file is not None
    return file.writer


def contents(path: Path) -> list[Any]:
    """Every row of every table that holds the truth or is made from it."""
    with raw(path) as db:
        strict = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict ORDER BY name"
        tables = [*(name for (name,) in db.execute(strict).fetchall()), "sqlite_sequence"]
        found: list[Any] = [sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables]
        return [tables, *found, db.execute("SELECT rowid FROM fts").fetchall()]


# ---------------------------------------------------------------- a fresh file


def test_a_fresh_file(path: Path) -> None:
    with opened(path):
        pass
    with raw(path) as db:
        assert db.execute("PRAGMA journal_mode").get == "wal"
        assert db.execute("PRAGMA application_id").get == schema.APPLICATION_ID
        strict = dict(db.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"))
        ours = {name: flag for name, flag in strict.items() if not name.startswith(("sqlite_", "fts_"))}
        assert ours.keys() == {
            *(
                "meta",
                "memories",
                "passages",
                "tags",
                "tokens",
                "vocabulary",
                "corpus",
                "events",
                "changes",
                "displaced",
            ),
            *("facts", "relation_words", "entities", "entity_names", "links", "sketches", "similar", "updates"),
            *("receipts", "deliveries", "usage", "lenses", "token_vectors", "space_usage", "session_writes"),
            *("access_tokens", "kept_answers", "further_models", "further_passages", "further_pending"),
        }
        assert set(ours.values()) == {1}
        meta = dict(db.execute("SELECT key, value FROM meta"))
        assert meta["schema_version"] == str(schema.VERSION)
        assert meta["words_version"] == str(tokenizer.VERSION)
        assert len(meta["store_id"]) == 16


def test_every_connection_keeps_foreign_keys_and_flushes(memory: nacre.Nacre) -> None:
    memory.remember("tea")
    connections = sqlite_store(memory)._connections
    with connections.reading() as reader:
        for db in (reader, writer(memory)):
            assert db.execute("PRAGMA foreign_keys").get == 1
            assert db.execute("PRAGMA synchronous").get == 2  # FULL: an acknowledged write outlives a power cut


def test_an_id_must_have_its_memory(memory: nacre.Nacre) -> None:
    memory.remember("tea")
    with pytest.raises(apsw.ConstraintError):
        writer(memory).execute("INSERT INTO passages (row, start_char, end_char, vector) VALUES (99, 0, 1, x'00')")


def test_two_stores_have_different_ids(tmp_path: Path) -> None:
    ids = []
    for name in ("a.db", "b.db"):
        with opened(tmp_path / name) as engine:
            ids.append(sqlite_store(engine)._connections.store_id)
    assert ids[0] != ids[1]


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "ünï 日本.db", "100%?#&.db", "no-suffix", "it's.db"])
def test_names_of_files(tmp_path: Path, name: str) -> None:
    """What SQLite could take for a URI or a pattern is only a name."""
    with opened(tmp_path / name) as engine:
        receipt = engine.remember("tea")
    with opened(tmp_path / name) as engine:
        assert engine.get(receipt.id)[0].text == "tea"
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", ""])
def test_names_that_mean_something_to_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Either they work and last like any other file, or they are refused in our words."""
    monkeypatch.chdir(tmp_path)
    try:
        with nacre.open(name, embedder=Hashing()) as engine:
            receipt = engine.remember("tea")
        with nacre.open(name, embedder=Hashing()) as engine:
            assert engine.get(receipt.id)[0].text == "tea"
    except NacreError as error:
        assert isinstance(error, StoreUnavailable | nacre.InvalidInput)  # noqa: PT017 - either outcome is right


def test_a_closed_store_says_so(path: Path) -> None:
    engine = opened(path)
    receipt = engine.remember("tea")
    engine.close()
    engine.close()
    for call in (
        lambda: engine.remember("coffee"),
        lambda: engine.search("tea"),
        lambda: engine.get(receipt.id),
        lambda: engine.purge(receipt.id),
        lambda: engine.rebuild(),
    ):
        with pytest.raises(StoreUnavailable, match="is closed; open it again"):
            call()


def test_nothing_is_left_beside_a_closed_store(path: Path) -> None:
    """A store can be copied as one file."""
    with opened(path) as engine:
        engine.remember("tea")
        engine.search("tea")
    assert [each.name for each in path.parent.iterdir()] == [path.name]


# ---------------------------------------------------------------- files of older versions

FIRST_MEMORIES: tuple[tuple[str, str, str, str | None, list[str], str | None, int | None], ...] = (
    # id, space, text, summary, tags, source, deleted
    ("old-1", "default", "green tea in the garden", "a warm drink", ["hot", "two words"], "docs/tea.md", None),
    ("old-2", "default", "running late", None, [], None, None),
    ("old-3", "work", "deploy to staging", None, ["hot"], None, None),
    ("old-4", "default", "green parrots", None, ["hot"], None, 7),
)


def make_first_version(path: Path) -> None:
    """A store as the first schema had it, filled by hand: words and forms only, and no spaces in the index."""
    with raw(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        db.execute(schema.MIGRATIONS[0])
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        db.execute("INSERT INTO meta VALUES ('store_id', '00112233aabbccdd'), ('schema_version', '1')")
        db.execute("INSERT INTO meta VALUES ('words_version', '1')")
        for row, (memory_id, space, text, summary, tags, source, deleted) in enumerate(FIRST_MEMORIES, 1):
            db.execute(
                "INSERT INTO memories "
                "VALUES (?, ?, ?, 'note', 'general', ?, ?, ?, ?, NULL, NULL, '{}', .5, ?, ?, ?, ?, 0)",
                (row, memory_id, space, text, summary, json.dumps(tags), source, row, row, deleted, content_hash(text)),
            )
            tokens = tokenizer.tokenise(text)
            listed = (row, " ".join(tokens.words), " ".join(tokens.forms), tokens.length)
            db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", listed)
            db.execute(
                "INSERT INTO events (at_us, action, space, row, memory_id) VALUES (?, 'remembered', ?, ?, ?)",
                (row, space, row, memory_id),
            )
        live = [each for each in FIRST_MEMORIES if each[-1] is None]
        counted = Counter(
            (each[1], token) for each in live for token in tokenizer.vocabulary(tokenizer.tokenise(each[2]))
        )
        db.executemany("INSERT INTO vocabulary VALUES (?, ?, ?)", ((*key, n) for key, n in counted.items()))
        for space in ("default", "work"):
            lengths = [tokenizer.tokenise(each[2]).length for each in live if each[1] == space]
            db.execute("INSERT INTO corpus VALUES (?, ?, ?)", (space, len(lengths), sum(lengths)))
        db.execute("COMMIT")


def keyword_ids(engine: nacre.Nacre, query: str, *spaces: str) -> list[str]:
    where = nacre.Filter(spaces=spaces)
    return sorted(hit.id for hit in engine.search(query, mode="keyword", where=where).hits)


def check_first_memories(engine: nacre.Nacre) -> None:
    for query, found in (
        ("green", ["old-1"]),  # a word; old-4 is forgotten
        ("run", ["old-2"]),  # a stem
        ("drinks", ["old-1"]),  # the summary
        ("words", ["old-1"]),  # a tag
        ("tea.md", ["old-1"]),  # the source
        ('"warm drink"', ["old-1"]),
        ("tag:hot", ["old-1"]),
        ("deploy", []),  # another space
        ("gren", ["old-1"]),  # a known word is suggested
    ):
        assert keyword_ids(engine, query) == found, query
    assert keyword_ids(engine, "deploy", "work") == ["old-3"]
    assert keyword_ids(engine, "hot", "work", "default") == ["old-1", "old-3"]
    assert engine.facets("tag:hot", nacre.Filter(spaces=["work", "default"])).total == 2
    assert [event.action for event in engine.history("old-1")] == ["remembered"]


def test_a_file_of_the_first_version_is_brought_up_to_date(path: Path) -> None:
    make_first_version(path)
    with opened(path) as engine:
        check_first_memories(engine)
        stats = engine.stats()
        assert (stats.memories, stats.forgotten, stats.pending, stats.schema_version) == (3, 1, 3, schema.VERSION)
        assert sqlite_store(engine)._connections.store_id == "00112233aabbccdd"
        engine.restore("old-4")
        assert keyword_ids(engine, "green") == ["old-1", "old-4"]
        engine.update("old-2", tags=["late"], summary="hurry")
        assert keyword_ids(engine, "hurry") == keyword_ids(engine, "tag:late") == ["old-2"]
        engine.purge("old-1")
        assert keyword_ids(engine, "green") == ["old-4"]
        assert len(list(engine.reembed())) > 1
        assert [hit.id for hit in engine.search("parrots", mode="semantic").hits] == ["old-4"]
    check_derived_tables(path)
    check_integrity(path)
    with opened(path) as engine:
        assert keyword_ids(engine, "hurry") == ["old-2"]


def test_what_an_older_file_becomes_is_what_a_new_one_is(tmp_path: Path) -> None:
    """The same tables, indexes and triggers, whichever way a file came to them."""
    listed = []
    for name in ("old.db", "new.db"):
        if name == "old.db":
            make_first_version(tmp_path / name)
        with opened(tmp_path / name):
            pass
        with raw(tmp_path / name) as db:
            listed.append(db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall())
    assert listed[0] == listed[1]


def test_what_texts_are_looked_up_by_outlives_its_own_migration(path: Path) -> None:
    """A file of the fourth version: its hashes are copied, not computed anew."""
    with raw(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for script in schema.MIGRATIONS[:4]:
            db.execute(script)
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        db.execute("INSERT INTO meta VALUES ('store_id', '00112233aabbccdd'), ('schema_version', '4')")
        db.execute("INSERT INTO meta VALUES ('words_version', ?)", (str(tokenizer.VERSION),))
        db.execute(
            "INSERT INTO memories (row, id, space, kind, namespace, text, tags, metadata, importance, created_us, "
            "updated_us, content_hash, embedded) "
            "VALUES (7, 'm', 's', 'note', 'general', 't', '[]', '{}', .5, 1, 1, x'00', 0)"
        )
        db.execute("INSERT INTO sketches VALUES (123, 7), (9, 7)")
    with opened(path):
        pass
    with raw(path) as db:
        assert db.execute("SELECT hash, row FROM sketches").fetchall() == [(9, 7), (123, 7)]
        assert db.execute("SELECT v FROM fts_config WHERE k = 'hashsize'").get == 8 << 20


def undo_the_tenth_version(db: apsw.Connection) -> None:
    to_eleventh(db)
    db.execute("ALTER TABLE receipts DROP COLUMN bytes; DELETE FROM meta WHERE key = 'log_bytes'")
    db.execute("UPDATE meta SET value = '9' WHERE key = 'schema_version'")


def test_the_size_of_an_older_log_is_counted(path: Path) -> None:
    def sizes() -> list[tuple[object, ...]]:
        with raw(path) as db:
            return db.execute("SELECT bytes, value FROM receipts, meta WHERE key = 'log_bytes'").fetchall()

    with opened(path) as engine:
        engine.remember_many(["green tea", "black coffee"])
        engine.search("grüner tea")
        engine.search("coffee or tea")
    counted = sizes()
    with raw(path) as db:
        undo_the_tenth_version(db)
    with opened(path) as engine:
        assert len(engine.receipts()) == 2
    assert sizes() == counted


def undo_the_ninth_version(db: apsw.Connection) -> None:
    undo_the_tenth_version(db)
    counted = ("memories_counted", "memories_recounted", "memories_uncounted", "facts_counted", "facts_uncounted")
    for trigger in (*counted, "events_counted", "events_uncounted"):
        db.execute(f"DROP TRIGGER {trigger}")
    db.execute("DROP TABLE space_usage; DROP TABLE session_writes")
    db.execute("UPDATE meta SET value = '8' WHERE key = 'schema_version'")


def test_what_a_store_of_the_eighth_version_holds_is_counted(path: Path) -> None:
    fact = nacre.NewFact(subject="Ada", predicate="likes", object="tea")
    with opened(path) as engine:
        one = engine.remember("grüner Tee", tags=["ä"], metadata={"a": 1}, facts=[fact]).id
        engine.remember("port: 5432\nhost: here", space="other")
        engine.forget(engine.remember("forgotten").id)
        engine.update(one, summary="Tee")
        before = engine.stats()
    with raw(path) as db:
        undo_the_ninth_version(db)
    with opened(path) as engine:
        after = engine.stats()
        assert (after.stored_memories, after.stored_bytes) == (before.stored_memories, before.stored_bytes)
    check_derived_tables(path)


def undo_the_eighth_version(db: apsw.Connection) -> None:
    undo_the_ninth_version(db)
    db.execute("DROP INDEX memories_pending_tokens; DROP TRIGGER memories_without_tokens; DROP TABLE token_vectors")
    db.execute("ALTER TABLE memories DROP COLUMN token_passages; DELETE FROM meta WHERE key = 'token_model'")
    db.execute("UPDATE meta SET value = '7' WHERE key = 'schema_version'")


def test_memories_of_the_seventh_version_have_no_token_vectors_until_reembed(path: Path) -> None:
    with opened(path) as engine:
        green, _ = (receipt.id for receipt in engine.remember_many(["green tea", "black coffee"]))
        before = engine.search("tea", mode="semantic")
    with raw(path) as db:
        undo_the_eighth_version(db)
    with opened(path) as engine:
        store = sqlite_store(engine)
        query = Hashing().embed_query("tea")
        assert [hit.id for hit in engine.search("tea", mode="semantic").hits] == [hit.id for hit in before.hits]
        stats = engine.stats()
        assert (stats.pending, stats.pending_tokens, stats.token_bytes, stats.token_model) == (0, 2, 0, None)
        newer = engine.remember("white tea").id
        assert store.token_vectors([green, newer], Hashing().token_fingerprint, query, 4).keys() == {newer}
        assert list(engine.reembed())[-1] == nacre.Progress(2, 2)
        assert store.token_vectors([green, newer], Hashing().token_fingerprint, query, 4).keys() == {green, newer}
        assert engine.stats().pending_tokens == 0
    check_derived_tables(path)
    check_integrity(path)


def test_the_log_of_the_sixth_version_still_tells_what_was_given(path: Path) -> None:
    """Then the session of a search was the connection, where none was named."""
    with opened(path) as engine:
        tea = engine.remember("green tea").id
        engine.search("tea", session="wire")
    with raw(path) as db:
        undo_the_eighth_version(db)
        db.execute("DROP INDEX receipts_by_origin; DROP INDEX receipts_repeated")
        db.execute("ALTER TABLE receipts DROP COLUMN origin; ALTER TABLE receipts DROP COLUMN repeat")
        db.execute("UPDATE meta SET value = '6' WHERE key = 'schema_version'")
    with opened(path) as engine:
        assert engine.stats().schema_version == schema.VERSION
        (receipt,) = engine.receipts()
        assert (receipt.session, receipt.origin, receipt.repeat, receipt.query) == ("wire", None, False, "tea")
        assert engine.remember("GREEN TEA", origin="wire").recalled == (tea,)
        assert engine.search("tea", session="wire").hits[0].delivered


def test_an_interrupted_migration_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails at its very end, after everything old was dropped: nothing of that may stay."""
    make_first_version(path)
    before = contents(path)
    with monkeypatch.context() as failing:
        broken = (*schema.MIGRATIONS[:-1], schema.MIGRATIONS[-1] + "SELECT no_such_function();")
        failing.setattr(schema, "MIGRATIONS", broken)
        with pytest.raises(StoreError, match="no_such_function"):
            opened(path)
    assert contents(path) == before
    with raw(path) as db:
        assert schema.version(db) == 1
        assert db.execute("SELECT rowid FROM fts WHERE fts MATCH 'words : green'").fetchall() == [(1,)]
    check_integrity(path)
    with opened(path) as engine:
        check_first_memories(engine)
    check_derived_tables(path)


def test_an_interrupted_tokenising_after_a_migration_is_done_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_first_version(path)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for module, step in ((retokenising, "write_tokens"), (retokenising, "update_counts"), (rows, "set_meta")):
        with monkeypatch.context() as failing:
            failing.setattr(module, step, interrupt)
            with pytest.raises(KeyboardInterrupt):
                opened(path)
        with raw(path) as db:
            assert db.execute("SELECT count(*) FROM tokens").get == 0
            assert db.execute("SELECT count(*) FROM memories").get == len(FIRST_MEMORIES)
    with opened(path) as engine:
        check_first_memories(engine)
    check_derived_tables(path)


# ---------------------------------------------------------------- files that are not stores


def test_a_file_of_a_newer_version(path: Path) -> None:
    with opened(path) as engine:
        engine.remember("tea")
    with raw(path) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(schema.VERSION + 1),))
    before = contents(path)
    with pytest.raises(StoreTooNew, match="upgrade Nacre"):
        opened(path)
    assert contents(path) == before


@pytest.mark.parametrize(
    "content",
    [b"just a text file\n" * 100, bytes(range(256)) * 64, b"SQLite format 3\x00" + b"\xff" * 4080, b"x\n"],
    ids=["text", "bytes", "only the beginning of a database", "two bytes"],
)
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"store: .* is not a database|store: .* damaged"):
        opened(path)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with opened(path) as engine:
        engine.remember("tea")
    with opened(path) as engine:
        assert len(engine.search("tea").hits) == 1


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_unchanged(path: Path, mode: str) -> None:
    with raw(path) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE meta (key TEXT, value TEXT); INSERT INTO meta VALUES ('schema_version', '1')")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "spoil",
    [
        "DELETE FROM meta WHERE key = 'schema_version'",
        "UPDATE meta SET value = 'one' WHERE key = 'schema_version'",
        "DROP TABLE meta",
        "DROP TABLE events",
        "DROP TABLE memories",
        "DELETE FROM meta",
    ],
)
def test_a_store_whose_tables_were_tampered_with(path: Path, spoil: str) -> None:
    """It may work or be refused, but the caller meets only our errors."""
    with opened(path) as engine:
        engine.remember("tea")
    with raw(path) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(spoil)
    use_whatever_it_is(path)


def use_whatever_it_is(path: Path) -> bool:
    """Call every verb; whether all of them worked. Only our own errors may come out."""
    whole = True
    try:
        engine = nacre.open(path, embedder=Hashing(), busy_timeout_ms=100)
    except StoreError:
        return False
    with engine:
        for call in (
            lambda: engine.search("tea number"),
            lambda: engine.search("tea number", mode="semantic"),
            lambda: engine.search('"tea number" -coffee', where=nacre.Filter(tags_any=["t"], metadata={"n": 1})),
            lambda: [engine.get(entry.id) for entry in engine.timeline(limit=1000).entries],
            lambda: [engine.history(entry.id) for entry in engine.timeline(limit=1000).entries],
            lambda: engine.stats(),
            lambda: engine.remember("another tea"),
            lambda: [engine.update(entry.id, text=f"changed {entry.id}") for entry in engine.timeline(limit=2).entries],
            lambda: engine.forget([entry.id for entry in engine.timeline(limit=2).entries]),
            lambda: engine.purge([entry.id for entry in engine.timeline(limit=2).entries]),
            lambda: engine.rebuild(),
        ):
            try:
                call()
            except NacreError:
                whole = False
    return whole


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "memories.db"
    with opened(path) as engine:
        receipts = engine.remember_many(
            nacre.NewMemory(text=f"tea number {number}", tags=["t"], metadata={"n": number % 3}, summary="brewed")
            for number in range(200)
        )
        engine.update(receipts[0].id, text="tea of old")
        engine.forget(receipts[1].id)
    return path


@pytest.mark.slow
def test_flipped_bytes_are_given_in_our_words(path: Path, sound_file: Path) -> None:
    """Damage anywhere in the file is either detected or harmless; no other error leaks."""
    sound = sound_file.read_bytes()
    outcomes = set()
    for place in range(100, len(sound) - 64, max(1, len(sound) // 30)):
        damaged = bytearray(sound)
        damaged[place : place + 48] = bytes(each ^ 0xA5 for each in damaged[place : place + 48])
        path.write_bytes(bytes(damaged))
        outcomes.add(use_whatever_it_is(path))
        for rest in path.parent.glob(f"{path.name}-*"):
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
    assert False in outcomes


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.95])
def test_a_truncated_file(path: Path, sound_file: Path, keep: float) -> None:
    sound = sound_file.read_bytes()
    path.write_bytes(sound[: int(len(sound) * keep)])
    assert not use_whatever_it_is(path)


def test_a_page_of_zeros_is_corruption(path: Path, sound_file: Path) -> None:
    shutil.copyfile(sound_file, path)
    with raw(path) as db:
        page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories'").get
        size = db.execute("PRAGMA page_size").get
    damaged = bytearray(path.read_bytes())
    damaged[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(bytes(damaged))
    with (
        opened(path) as engine,
        pytest.raises(
            StoreCorrupt, match=r"is damaged .*; restore the last backup with `nacre restore BACKUP --force`"
        ),
    ):
        engine.timeline()


# ---------------------------------------------------------------- places where no file can be


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder; give the path of a file in it"):
        opened(tmp_path)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"the folder .* does not exist; create it or give another path"):
        opened(tmp_path / "missing" / "memories.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("a file")
    with pytest.raises(StoreUnavailable):
        opened(tmp_path / "file.txt" / "memories.db")


@contextmanager
def powerless() -> Iterator[None]:
    """Without the rights of the superuser, whom no permission stops."""
    if sys.platform == "win32" or os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)  # nobody
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that everybody may enter (pytest's own are for their owner only)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


def test_a_file_that_may_only_be_read(public_folder: Path) -> None:
    """Writing is refused in our words, and nothing changes."""
    path = public_folder / "memories.db"
    with opened(path) as engine:
        engine.remember("tea")
    path.chmod(0o444)
    before = path.read_bytes()
    with powerless():
        try:
            engine = opened(path)
        except StoreUnavailable:
            pass
        else:
            with engine, pytest.raises(StoreUnavailable, match="check its permissions"):
                engine.remember("coffee")
    assert path.read_bytes() == before
    path.chmod(0o644)


@pytest.mark.skipif(sys.platform == "win32", reason="folders on Windows have no such permission")
def test_a_folder_that_may_only_be_read(public_folder: Path) -> None:
    public_folder.chmod(0o555)
    with powerless(), pytest.raises(StoreUnavailable, match="check its permissions"):
        opened(public_folder / "memories.db")
    assert list(public_folder.iterdir()) == []


# ---------------------------------------------------------------- writes that fail


def fill_to_the_brim(engine: nacre.Nacre) -> Callable[[], None]:
    """SQLite itself refuses to grow the file any further, as on a full disk; gives how to lift that."""
    db = writer(engine)
    usual = db.execute("PRAGMA max_page_count").get
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').get}")

    def make_room() -> None:
        db.execute(f"PRAGMA max_page_count = {usual}")

    return make_room


@pytest.mark.slow
def test_a_full_disk_undoes_the_write(path: Path, unlogged: nacre.Nacre) -> None:
    memory = unlogged
    known = memory.remember("tea with milk").id
    long_text = "word " * 40_000
    make_room = fill_to_the_brim(memory)
    before = contents(path)
    for call in (
        lambda: memory.remember(long_text),
        lambda: memory.remember_many([f"{number} {long_text[:5000]}" for number in range(50)]),
        lambda: memory.update(known, text=long_text),
        lambda: memory.update(known, summary="s" * 9_999, metadata={"m": "x" * 60_000}),
    ):
        with pytest.raises(StoreFull, match="nothing was written"):
            call()
        assert contents(path) == before
        assert [hit.id for hit in memory.search("milk").hits] == [known]
    make_room()
    assert not memory.remember(long_text).duplicate
    assert len(memory.search("word", mode="semantic").hits) > 0
    check_derived_tables(path)
    check_integrity(path)


def test_what_needs_little_room_works_on_a_full_disk(path: Path, memory: nacre.Nacre) -> None:
    ids = [
        receipt.id for receipt in memory.remember_many(f"tea number {number} y " + "x " * 500 for number in range(30))
    ]
    fill_to_the_brim(memory)
    with pytest.raises(StoreFull):
        memory.remember("word " * 40_000)
    memory.purge(ids[:20])  # this is how room is made
    assert not memory.remember("a little note").duplicate
    check_derived_tables(path)


FAILING = ("log_events", "write_tokens", "write_passages", "update_counts", "write_entries", "rewrite_entry")
LIVES_IN = NewFact(subject="Alice", predicate="lives in", object="Berlin", relation=True)
SUGAR = nacre.NewMemory(text="sugar", facts=[LIVES_IN], entities=[NewEntity(name="Alice", aliases=["Al"])])


@pytest.mark.parametrize("step", FAILING)
def test_a_write_that_fails_half_way_leaves_nothing(
    path: Path, unlogged: nacre.Nacre, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whatever goes wrong after the first row was written, the transaction is undone."""
    memory = unlogged
    known = memory.remember("tea", tags=["hot"], facts=[replace(LIVES_IN, object="Paris")]).id
    forgotten = memory.remember("coffee").id
    memory.forget(forgotten)
    before = contents(path)
    places = [module for module in (store_module, lifecycle) if hasattr(module, step)]
    work = getattr(places[0], step)

    def fail(*arguments: Any, **named: Any) -> Any:
        work(*arguments, **named)
        raise RuntimeError("in the middle")

    calls: list[Callable[[], object]] = [
        lambda: memory.remember_many(["milk", SUGAR]),
        lambda: memory.update(known, text="green tea", tags=["cold"]),
    ]
    if step in ("write_entries", "rewrite_entry"):
        calls = calls[:1] if step == "write_entries" else calls[1:]
    if step in ("log_events", "update_counts"):
        calls += [lambda: memory.forget(known), lambda: memory.restore(forgotten), lambda: memory.purge(known)]
    for call in calls:
        with monkeypatch.context() as failing:
            for module in places:
                failing.setattr(module, step, fail)
            with pytest.raises(RuntimeError, match="in the middle"):
                call()
        assert contents(path) == before
        assert [hit.id for hit in memory.search("tea").hits] == [known]
    for call in calls:
        call()
    check_derived_tables(path)
    check_integrity(path)


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("log_events", lambda memory, ids: memory.add_facts(ids[0], [replace(LIVES_IN, object="Rome")])),
        ("log_events", lambda memory, _: memory.drop_facts(memory.facts()[0].fact.id)),
        ("bump_revision", lambda memory, ids: memory.reinforce(ids[0])),
        ("bump_revision", lambda memory, ids: memory.add_entity("Alicia", aliases=["Alice", "Bob"], memory_ids=ids)),
        ("bump_revision", lambda memory, _: memory.drop_entity("Alice")),
        ("bump_revision", lambda memory, ids: memory.separate(ids[1])),
    ],
)
def test_knowledge_that_is_written_by_half_is_not_written(
    path: Path, unlogged: nacre.Nacre, monkeypatch: pytest.MonkeyPatch, step: str, call: Callable[..., object]
) -> None:
    memory = unlogged
    old = nacre.NewMemory(text="tea", created=datetime(2020, 1, 1, tzinfo=UTC), facts=[LIVES_IN])
    others = ["we met Bob on Monday in the old town", "we met Bob on Monday in the old town!"]
    ids = [receipt.id for receipt in memory.remember_many([old, *others])]
    memory.add_entity("Bob", memory_ids=ids[1:])
    before = contents(path)

    def fail(*_: Any) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as failing:
        failing.setattr(facts_module if step == "log_events" else store_module, step, fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            call(memory, ids)
    assert contents(path) == before
    call(memory, ids)
    assert contents(path) != before
    check_integrity(path)


def test_an_interrupted_rebuild_leaves_the_old_index(
    path: Path, unlogged: nacre.Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = unlogged
    known = memory.remember("tea").id
    before = contents(path)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as failing:
        failing.setattr(retokenising, "update_counts", interrupt)
        with pytest.raises(KeyboardInterrupt):
            memory.rebuild()
    assert contents(path) == before
    assert [hit.id for hit in memory.search("tea", mode="keyword").hits] == [known]
    check_derived_tables(path)


# ---------------------------------------------------------------- the log, and the tokeniser's version


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 1",
        "UPDATE events SET action = 'never'",
        "UPDATE events SET at_us = 0",
        "UPDATE events SET memory_id = 'another'",
        "UPDATE events SET before = '{}'",
        "UPDATE events SET seq = seq + 100",
        "UPDATE events SET row = 7",
        "UPDATE events SET space = 'another'",
        "INSERT OR REPLACE INTO events SELECT seq, at_us, 'never', space, row, memory_id, NULL, NULL FROM events",
        "REPLACE INTO events (seq, at_us, action, space, row, memory_id) VALUES (1, 0, 'never', '', 0, '')",
        "UPDATE OR REPLACE events SET seq = 2 WHERE seq = 1",
    ],
)
def test_the_log_is_append_only(path: Path, memory: nacre.Nacre, change: str) -> None:
    memory.update(memory.remember("tea").id, text="green tea")
    with raw(path) as db:
        before = db.execute("SELECT * FROM events").fetchall()
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            db.execute(change)
        assert db.execute("SELECT * FROM events").fetchall() == before


def test_a_store_tokenised_by_another_version_is_made_anew(path: Path) -> None:
    with nacre.open(path, embedder=Hashing(), log=False) as engine:  # what was found once does not move the scores
        receipts = engine.remember_many(["green tea", "black coffee", "forgotten milk"])
        engine.forget(receipts[2].id)
        before = engine.search("tea coffee milk")
    with raw(path) as db:
        db.execute("UPDATE meta SET value = 'older' WHERE key = 'words_version'")
        db.execute("UPDATE tokens SET words = 'nonsense', forms = 'nonsense', length = 99")
        db.execute("DELETE FROM vocabulary; DELETE FROM tags; UPDATE corpus SET length = 1000")
    with opened(path) as engine:
        assert engine.search("tea coffee milk") == before
        assert engine.search("nonsense", mode="keyword").hits == ()
        engine.restore(receipts[2].id)
        assert len(engine.search("milk", mode="keyword").hits) == 1
    check_derived_tables(path)
    with raw(path) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'words_version'").get == str(tokenizer.VERSION)


def test_rebuild_mends_what_was_made_from_the_rows(path: Path, unlogged: nacre.Nacre) -> None:
    memory = unlogged
    receipts = memory.remember_many(nacre.NewMemory(text=f"tea {number}", tags=["hot"]) for number in range(20))
    memory.forget(receipts[0].id)
    before = memory.search("tea 7", where=nacre.Filter(tags_all=["hot"]))
    with raw(path) as db:
        db.execute("INSERT INTO fts (fts) VALUES ('delete-all')")
        db.execute("DELETE FROM tags; DELETE FROM vocabulary; DELETE FROM corpus; DELETE FROM tokens WHERE row % 2")
    memory.rebuild()
    assert memory.search("tea 7", where=nacre.Filter(tags_all=["hot"])) == before
    check_derived_tables(path)
    check_integrity(path)


def test_rebuild_is_not_hidden_by_what_was_found_a_moment_ago(path: Path, memory: nacre.Nacre) -> None:
    """Whoever rebuilds an index because a search found nothing asks again at once."""
    known = memory.remember("tea").id
    with raw(path) as db:
        db.execute("INSERT INTO fts (fts) VALUES ('delete-all')")
    assert memory.search("tea", mode="keyword").hits == ()
    memory.rebuild()
    assert [hit.id for hit in memory.search("tea", mode="keyword").hits] == [known]
