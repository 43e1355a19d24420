"""The tables of a store file, and the migrations from older versions.

The source of truth are `memories`, `passages`, `token_vectors`, `further_models`, `further_passages`,
`further_pending`, `events`, `facts`, `entities`, `updates`, `receipts` with the tables that belong to them, `lenses`,
`changes`, `displaced`, `session_writes`, `access_tokens`, `kept_answers` and `meta`. `tokens`, `tags`, `fts`,
`vocabulary`, `corpus`, `sketches` and `space_usage` are derived from these (see `rebuild` in store.py). Times are
microseconds since 1970 in UTC. A released migration is never changed; a new one is appended.
"""

from __future__ import annotations

import os

import apsw

from nacre.errors import StoreCorrupt, StoreTooNew
from nacre.storage.sqlite import (
    access_tokens,
    change_log,
    entities,
    facts,
    further_vectors,
    kept_answers,
    near_duplicates,
    page_checksums,
    recall_log,
    space_usage,
    token_vectors,
    updates,
)
from nacre.storage.sqlite.rows import RESTORE, TOKENIZE, meta

APPLICATION_ID = 0x4E616372  # "Nacr": distinguishes our files from databases of other programs
BACKUP_ID = 0x4E616362  # "Nacb": a backup is not opened as a store, which would change it

_FTS_HASH_BYTES = 8 << 20
_FTS_COLUMNS = "space, words, forms, summary, tags, source"
_NEW_COLUMNS = ", ".join(f"new.{column}" for column in _FTS_COLUMNS.split(", "))

# The same in the first and the second version of `fts`.
_FTS_DELETIONS = """
CREATE TRIGGER tokens_removed AFTER DELETE ON tokens BEGIN
  DELETE FROM fts WHERE rowid = old.row;
END;
CREATE TRIGGER memories_forgotten AFTER UPDATE OF deleted_us ON memories
WHEN old.deleted_us IS NULL AND new.deleted_us IS NOT NULL BEGIN
  DELETE FROM fts WHERE rowid = old.row;
END;
"""

_FIRST = f"""
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
  row          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT NOT NULL UNIQUE,
  space        TEXT NOT NULL,
  kind         TEXT NOT NULL,
  namespace    TEXT NOT NULL,
  text         TEXT NOT NULL,
  summary      TEXT,
  tags         TEXT NOT NULL,             -- JSON array
  source       TEXT,
  session      TEXT,
  position     INTEGER,
  metadata     TEXT NOT NULL,             -- JSON object
  importance   REAL NOT NULL,
  created_us   INTEGER NOT NULL,
  updated_us   INTEGER NOT NULL,
  deleted_us   INTEGER,                   -- NULL: live
  content_hash BLOB NOT NULL,
  embedded     INTEGER NOT NULL           -- 1: its passages have vectors of the store's model
) STRICT;
CREATE UNIQUE INDEX memories_live_text ON memories (space, content_hash) WHERE deleted_us IS NULL;
CREATE INDEX memories_by_time ON memories (space, created_us, id);
CREATE INDEX memories_by_session ON memories (space, session, position) WHERE session IS NOT NULL;
CREATE INDEX memories_pending ON memories (row) WHERE embedded = 0 AND deleted_us IS NULL;

CREATE TABLE passages (
  passage    INTEGER PRIMARY KEY AUTOINCREMENT,
  row        INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  start_char INTEGER NOT NULL,
  end_char   INTEGER NOT NULL,
  vector     BLOB NOT NULL                -- float16, little-endian
) STRICT;
CREATE INDEX passages_by_row ON passages (row);

CREATE TABLE tags (
  tag TEXT NOT NULL,
  row INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  PRIMARY KEY (tag, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_row ON tags (row);
CREATE TRIGGER memories_tagged AFTER INSERT ON memories WHEN new.tags <> '[]' BEGIN
  INSERT INTO tags SELECT value, new.row FROM json_each(new.tags);
END;
CREATE TRIGGER memories_retagged AFTER UPDATE OF tags ON memories WHEN new.tags <> old.tags BEGIN
  DELETE FROM tags WHERE row = old.row;
  INSERT INTO tags SELECT value, new.row FROM json_each(new.tags);
END;

CREATE TABLE tokens (
  row    INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  words  TEXT NOT NULL,                   -- in order, separated by spaces
  forms  TEXT NOT NULL,
  length INTEGER NOT NULL                 -- number of words
) STRICT;
-- contentless_delete: deleting a row that is not in the index does no harm, unlike external content.
CREATE VIRTUAL TABLE fts USING fts5 (
  words, forms, content = '', contentless_delete = 1, tokenize = "{TOKENIZE}"
);
CREATE TRIGGER tokens_added AFTER INSERT ON tokens
WHEN (SELECT deleted_us FROM memories WHERE row = new.row) IS NULL BEGIN
  INSERT INTO fts (rowid, words, forms) VALUES (new.row, new.words, new.forms);
END;
CREATE TRIGGER tokens_changed AFTER UPDATE OF words, forms ON tokens BEGIN
  DELETE FROM fts WHERE rowid = old.row;
  INSERT INTO fts (rowid, words, forms) SELECT new.row, new.words, new.forms FROM memories
  WHERE row = new.row AND deleted_us IS NULL;
END;
{_FTS_DELETIONS}CREATE TRIGGER memories_restored AFTER UPDATE OF deleted_us ON memories
WHEN old.deleted_us IS NOT NULL AND new.deleted_us IS NULL BEGIN
  INSERT INTO fts (rowid, words, forms) SELECT row, words, forms FROM tokens WHERE row = new.row;
END;

-- Document frequencies and lengths of live memories by space: other spaces do not influence the scores of one.
CREATE TABLE vocabulary (
  space    TEXT NOT NULL,
  term     TEXT NOT NULL,
  memories INTEGER NOT NULL,
  PRIMARY KEY (space, term)
) STRICT, WITHOUT ROWID;
CREATE TABLE corpus (
  space    TEXT PRIMARY KEY,
  memories INTEGER NOT NULL,
  length   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  at_us     INTEGER NOT NULL,
  action    TEXT NOT NULL,
  space     TEXT NOT NULL,
  row       INTEGER NOT NULL,
  memory_id TEXT NOT NULL,
  before    TEXT                          -- JSON object: what an update replaced
) STRICT;
CREATE INDEX events_by_memory ON events (memory_id);
CREATE TRIGGER events_once BEFORE INSERT ON events WHEN EXISTS (SELECT 1 FROM events WHERE seq = new.seq) BEGIN
  SELECT RAISE (ABORT, 'the event log is append-only');
END;
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN
  SELECT RAISE (ABORT, 'the event log is append-only');
END;
-- The one change that is allowed: a purge clears what an update replaced.
CREATE TRIGGER events_unchanged BEFORE UPDATE ON events
WHEN new.before IS NOT NULL OR new.seq <> old.seq OR new.at_us <> old.at_us OR new.action <> old.action
  OR new.space <> old.space OR new.row <> old.row OR new.memory_id <> old.memory_id BEGIN
  SELECT RAISE (ABORT, 'the event log is append-only');
END;
"""

# Labels (summary, tags, source) are searched, too, and `fts` has the space of each memory, so a search in one space
# does not read the others. Everything dropped here is derived from the memories again when the store is opened.
_SECOND = f"""
DROP TRIGGER memories_forgotten;
DROP TRIGGER memories_restored;
DROP TABLE fts;
DROP TABLE tokens;
DELETE FROM vocabulary;
DELETE FROM corpus;
DELETE FROM meta WHERE key = 'words_version';

CREATE TABLE tokens (
  row     INTEGER PRIMARY KEY REFERENCES memories (row) ON DELETE CASCADE,
  space   TEXT NOT NULL,                  -- as one token that no query has
  words   TEXT NOT NULL,                  -- in order, separated by spaces
  forms   TEXT NOT NULL,
  summary TEXT NOT NULL,
  tags    TEXT NOT NULL,
  source  TEXT NOT NULL,
  length  INTEGER NOT NULL                -- number of words
) STRICT;
CREATE VIRTUAL TABLE fts USING fts5 (
  {_FTS_COLUMNS}, content = '', contentless_delete = 1, tokenize = "{TOKENIZE}"
);
CREATE TRIGGER tokens_added AFTER INSERT ON tokens
WHEN (SELECT deleted_us FROM memories WHERE row = new.row) IS NULL BEGIN
  INSERT INTO fts (rowid, {_FTS_COLUMNS}) VALUES (new.row, {_NEW_COLUMNS});
END;
CREATE TRIGGER tokens_changed AFTER UPDATE ON tokens BEGIN
  DELETE FROM fts WHERE rowid = old.row;
  INSERT INTO fts (rowid, {_FTS_COLUMNS}) SELECT new.row, {_NEW_COLUMNS} FROM memories
  WHERE row = new.row AND deleted_us IS NULL;
END;
{_FTS_DELETIONS}CREATE TRIGGER memories_restored AFTER UPDATE OF deleted_us ON memories
WHEN old.deleted_us IS NOT NULL AND new.deleted_us IS NULL BEGIN
  INSERT INTO fts (rowid, {_FTS_COLUMNS}) SELECT row, {_FTS_COLUMNS} FROM tokens WHERE row = new.row;
END;
"""

# Facts, entities, near-duplicates, lenses and the recall log.
_THIRD = f"""
ALTER TABLE memories ADD COLUMN happened_us INTEGER;
{facts.TABLES}
{entities.TABLES}
{near_duplicates.TABLES}
{recall_log.TABLES}
CREATE TABLE lenses (
  space TEXT NOT NULL,
  name  TEXT NOT NULL,
  body  TEXT NOT NULL,                    -- JSON object
  PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;
"""

# The neighbours of a memory in its session are read from this index alone.
_FOURTH = """
DROP INDEX memories_by_session;
CREATE INDEX memories_in_session ON memories (space, session, position, created_us, id, deleted_us)
WHERE session IS NOT NULL;
"""

# Faster bulk writes. The hashes of a text are computed again when they are deleted, so `sketches` needs no index by row
# and no foreign key. FTS5 keeps the tokens of a batch in memory until they are one segment.
_FIFTH = f"""
CREATE TABLE hashes (
  hash INTEGER NOT NULL,
  row  INTEGER NOT NULL,
  PRIMARY KEY (hash, row)
) STRICT, WITHOUT ROWID;
INSERT INTO hashes SELECT hash, row FROM sketches;
DROP TABLE sketches;
ALTER TABLE hashes RENAME TO sketches;
INSERT INTO fts (fts, rank) VALUES ('hashsize', {_FTS_HASH_BYTES});
"""

# Who wrote a memory, what updates it, and which memories happened in a period. Few have a time of their own.
_SIXTH = f"""
ALTER TABLE memories ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN origin TEXT;
DROP INDEX memories_in_session;
CREATE INDEX memories_in_session ON memories (space, session, position, created_us, id, deleted_us, kind)
WHERE session IS NOT NULL;
CREATE INDEX memories_by_event ON memories (space, happened_us) WHERE happened_us IS NOT NULL;
CREATE INDEX memories_pinned ON memories (space) WHERE pinned = 1 AND deleted_us IS NULL;
{updates.TABLES}
"""

_SEVENTH = recall_log.MORE_COLUMNS

_EIGHTH = token_vectors.TABLES

_NINTH = space_usage.TABLES

_TENTH = recall_log.SIZES

# A file may have page checksums from here on. Versions that do not know them would leave wrong ones behind.
_ELEVENTH = "INSERT OR IGNORE INTO meta VALUES ('page_checksums', 'off');"

# A memory is the same as another by its key or, without one, by its text. Few have a key or expire.
_TWELFTH = """
ALTER TABLE memories ADD COLUMN key TEXT;
ALTER TABLE memories ADD COLUMN expires_us INTEGER;
DROP INDEX memories_live_text;
CREATE UNIQUE INDEX memories_identity ON memories (space, ifnull(key, content_hash)) WHERE deleted_us IS NULL;
CREATE INDEX memories_keyed_texts ON memories (space, content_hash) WHERE deleted_us IS NULL AND key IS NOT NULL;
CREATE INDEX memories_by_key ON memories (space, key) WHERE key IS NOT NULL;
CREATE INDEX memories_expiring ON memories (expires_us) WHERE deleted_us IS NULL AND expires_us IS NOT NULL;
"""

_THIRTEENTH = change_log.TABLES

# What a server keeps.
_FOURTEENTH = f"{access_tokens.TABLES}{kept_answers.TABLES}"

_FIFTEENTH = further_vectors.TABLES

# Memories have a language. That of older ones is recognised when they are tokenised again.
_SIXTEENTH = "ALTER TABLE memories ADD COLUMN language TEXT;"

_SEVENTEENTH = further_vectors.LANGUAGES

MIGRATIONS = (
    _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH, _ELEVENTH, _TWELFTH,
    _THIRTEENTH, _FOURTEENTH, _FIFTEENTH, _SIXTEENTH, _SEVENTEENTH,
)  # fmt: skip
VERSION = len(MIGRATIONS)


def version(db: apsw.Connection) -> int:
    """The schema version of an open file; 0 for an empty one. Raises StoreCorrupt for a file of another program."""
    if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get:
        return 0
    found = db.execute("PRAGMA application_id").get
    if found == BACKUP_ID:
        raise StoreCorrupt(
            f"store: {db.filename} is a backup; make a store of it with `nacre restore {db.filename} --store PATH`"
        )
    if found != APPLICATION_ID:
        raise StoreCorrupt(
            f"store: {db.filename} is a database of another program; give the path of a Nacre store or a new file"
        )
    try:
        return int(db.execute("SELECT value FROM meta WHERE key = 'schema_version'").get)
    except (apsw.SQLError, TypeError, ValueError):
        raise StoreCorrupt(f"store: {db.filename} is damaged: no schema version; {RESTORE}") from None


def check_known(db: apsw.Connection, found: int) -> None:
    """Raise StoreTooNew for a schema version of a newer Nacre."""
    if found > VERSION:
        raise StoreTooNew(
            f"store: {db.filename} has schema version {found}, this Nacre knows up to {VERSION}; upgrade Nacre"
        )


def migrate(db: apsw.Connection) -> None:
    """Bring an open file to this version, one migration at a time. The caller holds a write transaction."""
    found = version(db)
    check_known(db, found)
    if found == VERSION:  # another process was first, and this connection may not know of its checksums
        return
    for number, script in enumerate(MIGRATIONS[found:], found + 1):
        db.execute(script)
        if number == 1:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("INSERT INTO meta VALUES ('store_id', ?)", (os.urandom(8).hex(),))
        db.execute("INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", (str(number),))
    page_checksums.note(db)


def has_page_checksums(db: apsw.Connection) -> bool:
    """Whether the file was written with page checksums, by the table that says so."""
    return meta(db, "page_checksums") == "on"
