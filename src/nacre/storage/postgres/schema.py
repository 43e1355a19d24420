"""The tables of a store in PostgreSQL, and the migrations from older versions.

The source of truth are `memories`, `passages`, `token_vectors`, `further_models` with `further_passages` and
`further_pending`, `events`, `facts`, `entities` with `entity_names` and `links`, `updates`, `near_duplicates`,
`receipts`, `deliveries`, `usage`, `lenses`, `changes`, `displaced`, `session_writes`, `access_tokens`, `kept_answers`,
`nodes`, `placements`, `directory`, `counters` and `meta`. `tokens`, `vocabulary`, `postings`, `corpus`, `sketches`,
`relation_words`, `relation_counts` and `space_usage` are derived from these.

What belongs to a space has the space as the first column of its primary key, and no foreign key leads to another space,
so that a table can be partitioned or distributed by space. Memories have no foreign keys that point at them: their
checks would cost more than the rows of a bulk write. A purge deletes from every table of OF_MEMORIES.

Times are microseconds since 1970 in UTC. Text is ordered by code point, as Python orders it, whatever the collation of
the database. A released migration is never changed; a new one is appended.
"""

from __future__ import annotations

import os
import re
from typing import Any

import psycopg
from psycopg import errors, sql

from nacre.analysis import tokenizer
from nacre.errors import StoreCorrupt, StoreTooNew, StoreUnavailable
from nacre.storage.postgres import row_security


class Db(psycopg.Connection[tuple[Any, ...]]):
    """A connection to a store."""

    checks_rows: bool = False  # row-level security binds its user
    warnings: set[str | None]  # codes of what the server has said beside its answers
    seen: dict[Any, Any] | None = None  # what a transaction that only reads has read, so that it is read once


STORE_KEY = "hashtextextended(current_schema()::text, 1)"  # of the lock that all who write to a store share
VECTOR_VERSION = (0, 8)  # of pgvector, at least: from here on a graph searches on where few of its nearest match
_EXTENSION_KEY = 0x4E61637265  # of the lock that guards what all schemas of a database share

# Tables with rows of one memory, by (space, row). Pairs are in `near_duplicates` and `updates`; `deliveries` name the
# space of the memory beside their own.
OF_MEMORIES = (
    *("passages", "token_vectors", "further_passages", "further_pending", "tokens", "sketches", "links"),
    *("usage", "displaced"),
)
# Tables that have a row of every space that has anything.
HELD_BY_SPACE = ("memories", "events", "changes", "entities", "lenses", "receipts", "session_writes", "space_usage")

_FIRST = """
CREATE TABLE meta (
  key   text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

-- Numbers that are given out in the order of commits: who takes one holds the row until the transaction ends. So a
-- reader that has seen a number has seen all before it. `events` counts events and changes, `receipts` the recall log.
CREATE TABLE counters (
  name  text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO counters VALUES ('events', 0), ('skipped', 0), ('revision', 0), ('receipts', 0), ('log_bytes', 0);

CREATE SEQUENCE memory_rows;
CREATE SEQUENCE fact_numbers;
CREATE SEQUENCE entity_numbers;

CREATE TABLE memories (
  space          text COLLATE "C" NOT NULL,
  row            bigint NOT NULL,         -- ascending in the order of writing within a space
  doc            bigint NOT NULL,         -- of these tokens in the postings; a change of the tokens takes another
  id             text COLLATE "C" NOT NULL,
  kind           text COLLATE "C" NOT NULL,
  namespace      text COLLATE "C" NOT NULL,
  text           text COLLATE "C" NOT NULL,
  summary        text COLLATE "C",
  tags           text[] COLLATE "C" NOT NULL,
  source         text COLLATE "C",
  session        text COLLATE "C",
  position       bigint,
  metadata       text COLLATE "C" NOT NULL,  -- JSON object
  metadata_pairs text[] COLLATE "C" NOT NULL, -- its scalars, so that equal values are equal texts
  importance     double precision NOT NULL,
  created_us     bigint NOT NULL,
  updated_us     bigint NOT NULL,
  deleted_us     bigint,                  -- NULL: live
  happened_us    bigint,
  pinned         boolean NOT NULL,
  origin         text COLLATE "C",
  key            text COLLATE "C",
  expires_us     bigint,
  content_hash   bytea NOT NULL,
  identity       bytea NOT NULL,          -- what makes it the same as another: a hash of its key or of its text
  embedded       boolean NOT NULL,        -- its passages have vectors of the store's model
  token_passages smallint,                -- how many passages have token vectors; NULL: none of the token model
  PRIMARY KEY (space, row)
);
CREATE UNIQUE INDEX memories_by_id ON memories (id, space);
CREATE UNIQUE INDEX memories_identity ON memories (space, identity) WHERE deleted_us IS NULL;
CREATE INDEX memories_by_doc ON memories (space, doc);
CREATE INDEX memories_by_time ON memories (space, created_us, id);
CREATE INDEX memories_in_session ON memories (space, session, position, created_us, id) WHERE session IS NOT NULL;
CREATE INDEX memories_by_event ON memories (space, happened_us) WHERE happened_us IS NOT NULL;
CREATE INDEX memories_pinned ON memories (space, row) WHERE pinned AND deleted_us IS NULL;
CREATE INDEX memories_keyed_texts ON memories (space, content_hash) WHERE deleted_us IS NULL AND key IS NOT NULL;
CREATE INDEX memories_by_key ON memories (space, key) WHERE key IS NOT NULL;
CREATE INDEX memories_expiring ON memories (expires_us) WHERE deleted_us IS NULL AND expires_us IS NOT NULL;
CREATE INDEX memories_pending ON memories (space, row) WHERE NOT embedded AND deleted_us IS NULL;
CREATE INDEX memories_pending_tokens ON memories (space, row)
WHERE token_passages IS NULL AND embedded AND deleted_us IS NULL;
CREATE INDEX memories_by_tag ON memories USING gin (tags) WHERE tags <> '{}';
CREATE INDEX memories_by_metadata ON memories USING gin (metadata_pairs) WHERE metadata_pairs <> '{}';

CREATE TABLE passages (
  space      text COLLATE "C" NOT NULL,
  row        bigint NOT NULL,
  place      integer NOT NULL,            -- in the order of the text, from 0
  start_char integer NOT NULL,
  end_char   integer NOT NULL,
  siblings   integer NOT NULL,            -- how many passages the memory has
  vector     halfvec NOT NULL,            -- the same 16-bit numbers that other stores keep
  beside_graph boolean NOT NULL DEFAULT false, -- written since the graph was built, see vector_graph.py
  PRIMARY KEY (space, row, place)
);
CREATE INDEX passages_beside_graph ON passages (space) WHERE beside_graph;

CREATE TABLE token_vectors (
  space   text COLLATE "C" NOT NULL,
  row     bigint NOT NULL,
  place   smallint NOT NULL,
  vectors bytea NOT NULL,
  PRIMARY KEY (space, row, place)
);
ALTER TABLE token_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL; -- they cannot be compressed

CREATE TABLE tokens (
  space   text COLLATE "C" NOT NULL,
  row     bigint NOT NULL,
  words   text COLLATE "C" NOT NULL,      -- in order, each with a space before and after it
  forms   text COLLATE "C" NOT NULL,
  summary text COLLATE "C" NOT NULL,
  tags    text COLLATE "C" NOT NULL,
  source  text COLLATE "C" NOT NULL,
  length  integer NOT NULL,
  PRIMARY KEY (space, row)
);

-- How many live memories of a space have each token, and the latest postings of it. See postings.py for their bytes.
CREATE TABLE vocabulary (
  space        text COLLATE "C" NOT NULL,
  term         text COLLATE "C" NOT NULL,
  memories     integer NOT NULL,
  most_text    integer NOT NULL,          -- no memory has it more often in its text,
  most_labels  integer NOT NULL,          -- nor in its labels,
  least_length integer NOT NULL,          -- and none that has it is shorter
  sealed       bigint NOT NULL,           -- its last block in `postings`; 0: it has none
  tail         bytea NOT NULL,
  PRIMARY KEY (space, term)
) WITH (fillfactor = 80);
ALTER TABLE vocabulary ALTER COLUMN tail SET STORAGE MAIN;
-- Postings that are not in the tail any more, in blocks. All docs of later blocks and of the tail are greater than the
-- number of a block, and those of the block are not. Docs that no memory has now are skipped.
CREATE TABLE postings (
  space   text COLLATE "C" NOT NULL,
  term    text COLLATE "C" NOT NULL,
  block   bigint NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (space, term, block)
);
CREATE TABLE corpus (
  space    text COLLATE "C" PRIMARY KEY,
  memories bigint NOT NULL,
  length   bigint NOT NULL
);

CREATE TABLE sketches (
  space text COLLATE "C" NOT NULL,
  hash  bigint NOT NULL,
  row   bigint NOT NULL,
  PRIMARY KEY (space, hash, row)
);
CREATE INDEX sketches_by_row ON sketches (space, row);
CREATE TABLE near_duplicates (            -- each link in both directions
  space text COLLATE "C" NOT NULL,
  row   bigint NOT NULL,
  other bigint NOT NULL,
  apart boolean NOT NULL DEFAULT false,   -- somebody said that they are not the same
  PRIMARY KEY (space, row, other)
);
CREATE TABLE updates (
  space text COLLATE "C" NOT NULL,
  older bigint NOT NULL,
  newer bigint NOT NULL,
  cue   text COLLATE "C" NOT NULL,        -- the words that show it; empty: given
  PRIMARY KEY (space, older, newer)
);
CREATE INDEX updates_by_newer ON updates (space, newer);

CREATE TABLE events (
  space     text COLLATE "C" NOT NULL,
  seq       bigint NOT NULL,              -- from `counters`
  at_us     bigint NOT NULL,
  action    text COLLATE "C" NOT NULL,
  row       bigint NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  before    text COLLATE "C",             -- JSON object: what an update replaced
  uid       text COLLATE "C",             -- of an event of another store
  PRIMARY KEY (space, seq)
);
CREATE INDEX events_by_memory ON events (memory_id, seq);
CREATE UNIQUE INDEX events_by_uid ON events (space, uid) WHERE uid IS NOT NULL;
-- The one change that is allowed: a purge clears what an update replaced.
CREATE FUNCTION events_are_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND new.before IS NULL AND (new.space, new.seq, new.at_us, new.action, new.row, new.memory_id)
    = (old.space, old.seq, old.at_us, old.action, old.row, old.memory_id) THEN
    RETURN new;
  END IF;
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM placements AS p WHERE p.space = old.space AND p.state <> 'here') THEN
    RETURN old; -- another node has the log of this space
  END IF;
  RAISE EXCEPTION 'the event log is append-only';
END $$;
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION events_are_kept();

CREATE TABLE changes (
  space text COLLATE "C" NOT NULL,
  kind  text COLLATE "C" NOT NULL,        -- fact, entity, update, apart or lens
  name  text COLLATE "C" NOT NULL,
  at_us bigint NOT NULL,
  gone  boolean NOT NULL,                 -- it was dropped
  seq   bigint NOT NULL,                  -- from `counters`, as those of events
  PRIMARY KEY (space, kind, name)
);
CREATE INDEX changes_by_seq ON changes (space, seq);
CREATE TABLE displaced (                  -- forgotten only because a newer memory has the same key or text
  space text COLLATE "C" NOT NULL,
  row   bigint NOT NULL,
  PRIMARY KEY (space, row)
);

CREATE TABLE facts (
  space         text COLLATE "C" NOT NULL,
  fact          bigint NOT NULL,          -- ascending in the order of writing within a space
  id            text COLLATE "C" NOT NULL,
  row           bigint NOT NULL,
  subject       text COLLATE "C" NOT NULL,
  predicate     text COLLATE "C" NOT NULL,
  object        text COLLATE "C" NOT NULL,
  type          text COLLATE "C" NOT NULL,
  confidence    double precision NOT NULL,
  decay_rate    double precision NOT NULL,
  reinforced_us bigint NOT NULL,
  touched_us    bigint NOT NULL,
  valid_from_us bigint NOT NULL,
  valid_to_us   bigint,                   -- computed: the given end, or when another took its place
  superseded_by text COLLATE "C",         -- computed
  quote         text COLLATE "C",
  relation      boolean NOT NULL,
  single        boolean NOT NULL,
  origin        text COLLATE "C" NOT NULL,
  ends_us       bigint,                   -- the given end
  subject_key   text COLLATE "C" NOT NULL, -- folded names, by which they are compared
  predicate_key text COLLATE "C" NOT NULL,
  object_key    text COLLATE "C" NOT NULL,
  PRIMARY KEY (space, fact)
);
CREATE UNIQUE INDEX facts_by_id ON facts (id, space);
CREATE INDEX facts_by_row ON facts (space, row);
CREATE INDEX facts_by_subject ON facts (space, subject_key, predicate_key);
CREATE INDEX facts_by_object ON facts USING hash (object_key) WHERE relation; -- it may be too long for a B-tree
-- The words of relations whose memory is live.
CREATE TABLE relation_words (
  space text COLLATE "C" NOT NULL,
  word  text COLLATE "C" NOT NULL,
  fact  bigint NOT NULL,
  PRIMARY KEY (space, word, fact),
  FOREIGN KEY (space, fact) REFERENCES facts ON DELETE CASCADE
);
CREATE INDEX relation_words_by_fact ON relation_words (space, fact);

-- How many relations a space has, those of forgotten memories included.
CREATE TABLE relation_counts (
  space     text COLLATE "C" PRIMARY KEY,
  relations bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE entities (
  space  text COLLATE "C" NOT NULL,
  entity bigint NOT NULL,
  name   text COLLATE "C" NOT NULL,
  type   text COLLATE "C",
  kept   boolean NOT NULL,                -- false: it goes with the last memory that is about it
  PRIMARY KEY (space, entity)
);
CREATE TABLE entity_names (
  space  text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,       -- the folded name
  name   text COLLATE "C" NOT NULL,
  entity bigint NOT NULL,
  PRIMARY KEY (space, key),
  FOREIGN KEY (space, entity) REFERENCES entities ON DELETE CASCADE
);
CREATE INDEX entity_names_by_entity ON entity_names (space, entity);
CREATE TABLE links (
  space  text COLLATE "C" NOT NULL,
  entity bigint NOT NULL,
  row    bigint NOT NULL,
  PRIMARY KEY (space, entity, row),
  FOREIGN KEY (space, entity) REFERENCES entities ON DELETE CASCADE
);
CREATE INDEX links_by_row ON links (space, row);

CREATE TABLE receipts (
  space   text COLLATE "C" NOT NULL,
  receipt bigint NOT NULL,                -- from `counters`
  id      text COLLATE "C" NOT NULL,
  at_us   bigint NOT NULL,
  session text COLLATE "C",
  query   text COLLATE "C" NOT NULL,
  mode    text COLLATE "C" NOT NULL,
  lens    text COLLATE "C",
  origin  text COLLATE "C",
  repeat  boolean NOT NULL,
  bytes   integer NOT NULL,
  PRIMARY KEY (space, receipt)
);
CREATE UNIQUE INDEX receipts_by_id ON receipts (id, space);
CREATE INDEX receipts_in_order ON receipts (receipt);  -- of all spaces, as the oldest are deleted
CREATE INDEX receipts_by_day ON receipts (at_us);
CREATE INDEX receipts_by_time ON receipts (space, at_us, id);
CREATE INDEX receipts_by_session ON receipts (space, session, at_us, id) WHERE session IS NOT NULL;
CREATE INDEX receipts_by_origin ON receipts (space, origin) WHERE origin IS NOT NULL;
CREATE INDEX receipts_repeated ON receipts (space, session, at_us) WHERE repeat;
CREATE TABLE deliveries (
  space        text COLLATE "C" NOT NULL, -- of the receipt
  receipt      bigint NOT NULL,
  memory_space text COLLATE "C" NOT NULL,
  row          bigint NOT NULL,
  at_us        bigint NOT NULL,           -- the receipt's: a memory's latest delivery is found at once
  rank         integer NOT NULL,
  score        double precision NOT NULL,
  opened_us    bigint,                    -- NULL: not marked so
  used_us      bigint,
  wrong_us     bigint,
  PRIMARY KEY (space, receipt, memory_space, row),
  FOREIGN KEY (space, receipt) REFERENCES receipts ON DELETE CASCADE
);
CREATE INDEX deliveries_by_row ON deliveries (memory_space, row, at_us);
CREATE TABLE usage (
  space     text COLLATE "C" NOT NULL,
  row       bigint NOT NULL,
  good      double precision NOT NULL,
  bad       double precision NOT NULL,
  seen      double precision NOT NULL,
  at_us     bigint NOT NULL,
  opened_us bigint,                       -- when the outcome last earned its credit
  used_us   bigint,
  wrong_us  bigint,
  PRIMARY KEY (space, row)
);
CREATE TABLE lenses (
  space text COLLATE "C" NOT NULL,
  name  text COLLATE "C" NOT NULL,
  body  text COLLATE "C" NOT NULL,        -- JSON object
  PRIMARY KEY (space, name)
);

CREATE TABLE access_tokens (
  id          text COLLATE "C" PRIMARY KEY,
  secret_hash bytea NOT NULL,
  role        text COLLATE "C" NOT NULL,
  spaces      text[] COLLATE "C",         -- NULL: all
  name        text COLLATE "C" NOT NULL,
  created_us  bigint NOT NULL,
  expires_us  bigint                      -- NULL: never
);
CREATE TABLE kept_answers (
  key      text COLLATE "C" NOT NULL,
  made_by  name NOT NULL DEFAULT session_user, -- nobody is given the answers of another user of the database
  request  bytea NOT NULL,                -- a hash of it
  ticket   text COLLATE "C" NOT NULL UNIQUE, -- of who carries it out
  at_us    bigint NOT NULL,               -- when it was claimed or answered
  answered boolean NOT NULL,
  purged   boolean NOT NULL,              -- memories were purged since, so no answer that quotes any is kept
  quotes   boolean,
  status   integer,
  headers  text COLLATE "C",              -- JSON array of pairs
  body     bytea,
  PRIMARY KEY (key, made_by)
);
CREATE INDEX kept_answers_by_time ON kept_answers (at_us);

-- See placements.py.
CREATE TABLE nodes (                      -- empty: this store is alone
  number   integer PRIMARY KEY,
  store_id text COLLATE "C" NOT NULL UNIQUE,
  address  text NOT NULL                  -- without its password
);
CREATE TABLE placements (
  space text COLLATE "C" PRIMARY KEY,
  state text COLLATE "C" NOT NULL,        -- here, arriving or gone
  other text COLLATE "C" NOT NULL DEFAULT '' -- the store that it comes from or has gone to
);
CREATE INDEX placements_hidden ON placements (state) WHERE state <> 'here';
CREATE TABLE directory (                  -- of node 0
  space    text COLLATE "C" PRIMARY KEY,
  store_id text COLLATE "C" NOT NULL
);
-- Be the only writer of spaces until the transaction ends. Which spaces are here is read after the lock was taken.
CREATE FUNCTION hold_spaces(spaces text[], checked boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  missing text[];
BEGIN
  PERFORM pg_advisory_xact_lock(key) FROM (
    SELECT DISTINCT hashtextextended(current_schema()::text || chr(31) || space, 0) AS key
    FROM unnest(spaces) AS space ORDER BY key
  ) AS keys;
  IF checked AND EXISTS (SELECT 1 FROM nodes) THEN
    missing := ARRAY(SELECT given.space FROM unnest(spaces) AS given (space) WHERE NOT EXISTS (
      SELECT 1 FROM placements AS p WHERE p.space = given.space AND p.state = 'here') ORDER BY 1);
    IF missing <> '{}' THEN
      RAISE EXCEPTION 'not on this node' USING ERRCODE = 'NC001', DETAIL = array_to_json(missing)::text;
    END IF;
  END IF;
END $$;

CREATE TABLE space_usage (
  space    text COLLATE "C" PRIMARY KEY,
  memories bigint NOT NULL,               -- forgotten ones, too
  bytes    bigint NOT NULL                -- of what people wrote, and of its earlier values
) WITH (fillfactor = 50);
CREATE TABLE session_writes (             -- only kept where their number is limited
  space    text COLLATE "C" NOT NULL,
  session  text COLLATE "C" NOT NULL,
  since_us bigint NOT NULL,
  memories bigint NOT NULL,
  PRIMARY KEY (space, session)
);
"""

# What quotas count of a row of `memories`, of `facts`, and of `events`: bytes in UTF-8, as storage/quotas.py has it.
MEMORY_BYTES = (
    "(octet_length(text) + coalesce(octet_length(summary), 0) + coalesce(octet_length(source), 0) "
    "+ CASE tags WHEN '{}' THEN 0 ELSE octet_length(array_to_json(tags)::text) END "
    "+ CASE metadata WHEN '{}' THEN 0 ELSE octet_length(metadata) END)"
)
FACT_BYTES = (
    "(octet_length(subject) + octet_length(predicate) + octet_length(object) + coalesce(octet_length(quote), 0))"
)
_ADDED = "ON CONFLICT (space) DO UPDATE SET memories = u.memories + excluded.memories, bytes = u.bytes + excluded.bytes"
# Each statement that writes is counted once, whatever the number of its rows.
_COUNTING = f"""
CREATE FUNCTION memories_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO space_usage AS u SELECT space, count(*), sum({MEMORY_BYTES}) FROM new_rows GROUP BY space {_ADDED};
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO space_usage AS u SELECT space, -count(*), -sum({MEMORY_BYTES}) FROM old_rows GROUP BY space {_ADDED};
  ELSE
    INSERT INTO space_usage AS u SELECT space, 0, sum(bytes) FROM (
      SELECT space, {MEMORY_BYTES} AS bytes FROM new_rows UNION ALL SELECT space, -{MEMORY_BYTES} FROM old_rows
    ) AS changed GROUP BY space HAVING sum(bytes) <> 0 {_ADDED};
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER memories_added AFTER INSERT ON memories REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION memories_are_counted();
CREATE TRIGGER memories_changed AFTER UPDATE ON memories REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION memories_are_counted();
CREATE TRIGGER memories_deleted AFTER DELETE ON memories REFERENCING OLD TABLE AS old_rows
FOR EACH STATEMENT EXECUTE FUNCTION memories_are_counted();

CREATE FUNCTION facts_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO space_usage AS u SELECT space, 0, sum({FACT_BYTES}) FROM new_rows WHERE origin = 'given'
    GROUP BY space {_ADDED};
  ELSE
    INSERT INTO space_usage AS u SELECT space, 0, -sum({FACT_BYTES}) FROM old_rows WHERE origin = 'given'
    GROUP BY space {_ADDED};
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER facts_added AFTER INSERT ON facts REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION facts_are_counted();
CREATE TRIGGER facts_deleted AFTER DELETE ON facts REFERENCING OLD TABLE AS old_rows
FOR EACH STATEMENT EXECUTE FUNCTION facts_are_counted();

CREATE FUNCTION events_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO space_usage AS u SELECT space, 0, sum(octet_length(before)) FROM new_rows WHERE before IS NOT NULL
    GROUP BY space {_ADDED};
  ELSE
    INSERT INTO space_usage AS u SELECT space, 0, -sum(octet_length(before)) FROM old_rows WHERE before IS NOT NULL
    GROUP BY space {_ADDED};
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER events_added AFTER INSERT ON events REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION events_are_counted();
CREATE TRIGGER events_cleared AFTER UPDATE ON events REFERENCING OLD TABLE AS old_rows
FOR EACH STATEMENT EXECUTE FUNCTION events_are_counted();
"""

# See further_vectors.py.
_FURTHER = """
CREATE TABLE further_models (
  model       integer PRIMARY KEY,
  fingerprint text COLLATE "C" NOT NULL UNIQUE,
  added       bigint NOT NULL
);
CREATE TABLE further_passages (
  space      text COLLATE "C" NOT NULL,
  row        bigint NOT NULL,
  model      integer NOT NULL,
  place      integer NOT NULL,
  start_char integer NOT NULL,
  end_char   integer NOT NULL,
  siblings   integer NOT NULL,
  vector     halfvec NOT NULL,
  beside_graph boolean NOT NULL DEFAULT false,
  PRIMARY KEY (space, row, model, place)
);
CREATE INDEX further_passages_beside_graph ON further_passages (space) WHERE beside_graph;
CREATE TABLE further_pending (
  space text COLLATE "C" NOT NULL,
  row   bigint NOT NULL,
  model integer NOT NULL,
  PRIMARY KEY (space, row, model)
);
CREATE FUNCTION memories_wait_for_models() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO further_pending SELECT m.space, m.row, f.model FROM new_rows AS m CROSS JOIN further_models AS f
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER memories_pending_further AFTER INSERT ON memories REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION memories_wait_for_models();
CREATE FUNCTION text_waits_for_models() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM further_passages WHERE space = new.space AND row = new.row;
  INSERT INTO further_pending SELECT new.space, new.row, model FROM further_models ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER texts_pending_further AFTER UPDATE OF text ON memories
FOR EACH ROW WHEN (old.text <> new.text) EXECUTE FUNCTION text_waits_for_models();
"""

# Memories have a language. That of older ones is recognised when they are tokenised again.
_LANGUAGE = 'ALTER TABLE memories ADD COLUMN language text COLLATE "C";'

# By which it is known at once that a space has nothing in another language than English.
_BY_LANGUAGE = """
CREATE INDEX memories_by_language ON memories (space, language) WHERE language <> 'en' AND deleted_us IS NULL;
"""

MIGRATIONS = (_FIRST + _COUNTING + _FURTHER + row_security.SCRIPT, _LANGUAGE, _BY_LANGUAGE)
VERSION = len(MIGRATIONS)
# The indexes of all tables but primary keys, by name, each with the statement that makes it.
INDEXES = {
    found[1]: found[0] for found in re.finditer(r"^CREATE (?:UNIQUE )?INDEX (\w+) ON [^;]+", "".join(MIGRATIONS), re.M)
}


class NoStore(StoreUnavailable):
    """The schema has no tables, and none are to be made."""


def prepare(db: Db, schema: str, create: bool, location: str) -> str:
    """Bring the tables of a schema to this version. Returns the schema that has the types of pgvector.

    `db` is in autocommit mode. Processes that open a store at once wait for each other.
    """
    if db.execute("SHOW server_encoding").fetchone() != ("UTF8",):
        raise StoreUnavailable(f"store: the database of {location} is not encoded in UTF8; create one that is")
    found = _version(db, schema, location)
    if found is None and not create:
        raise NoStore(f"store: {location} has no store; check its name, or open it for writing, which creates it")
    if found != VERSION:
        try:
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_EXTENSION_KEY,))
                _create_extension(db, location)
                _migrate(db, schema, location)
        except errors.InsufficientPrivilege as error:
            lacks = "has no store" if found is None else f"has tables of version {found}, not {VERSION}"
            raise StoreUnavailable(
                f"store: {location} {lacks}, and this user may not make them ({error.diag.message_primary}); "
                "open it once as the owner"
            ) from None
    return _vector_schema(db, location)


def _migrate(db: Db, schema: str, location: str) -> None:
    found = _version(db, schema, location)  # another process may have been first
    if found is None:
        db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    path = sql.SQL("SET LOCAL search_path = {}, {}")
    db.execute(path.format(sql.Identifier(schema), sql.Identifier(_vector_schema(db, location))))
    db.execute(f"SELECT pg_advisory_xact_lock({STORE_KEY})")  # processes of the old version end what they write
    for number, script in enumerate(MIGRATIONS[found or 0 :], (found or 0) + 1):
        db.execute(script)
        if number == 1:
            given = (os.urandom(8).hex(), str(tokenizer.VERSION))
            db.execute("INSERT INTO meta VALUES ('store_id', %s), ('words_version', %s)", given)
        sets_version = "INSERT INTO meta VALUES ('schema_version', %s) ON CONFLICT (key) DO UPDATE SET value = %s"
        db.execute(sets_version, (str(number), str(number)))


def _version(db: Db, schema: str, location: str) -> int | None:
    """The version of the tables in a schema; None: there are none. Raises StoreTooNew, StoreCorrupt."""
    tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    if not tables:
        return None
    select = sql.SQL("SELECT value FROM {}.meta WHERE key = 'schema_version'").format(sql.Identifier(schema))
    try:
        found = db.execute(select).fetchone()
    except (errors.UndefinedTable, errors.UndefinedColumn):
        found = None
    if found is None:
        raise StoreCorrupt(f"store: {location} has tables of another program; name another schema")
    if int(found[0]) > VERSION:
        raise StoreTooNew(
            f"store: {location} has schema version {found[0]}, this Nacre knows up to {VERSION}; upgrade Nacre"
        )
    return int(found[0])


def _create_extension(db: Db, location: str) -> None:
    try:
        with db.transaction():
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        raise _no_vectors(location) from None
    except errors.InsufficientPrivilege:
        raise StoreUnavailable(
            f"store: {location} has no pgvector, and this user may not create it; let the owner of the database run "
            "`CREATE EXTENSION vector`"
        ) from None


def _vector_schema(db: Db, location: str) -> str:
    select = (
        "SELECT n.nspname, e.extversion FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace "
        "JOIN pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'halfvec' WHERE e.extname = 'vector'"
    )
    found = db.execute(select).fetchone()
    if found is None or tuple(map(int, found[1].split(".")[:2])) < VECTOR_VERSION:
        raise _no_vectors(location)
    return str(found[0])


def _no_vectors(location: str) -> StoreUnavailable:
    least = ".".join(map(str, VECTOR_VERSION))
    return StoreUnavailable(
        f"store: {location} needs pgvector {least} or newer; install it on the server (Debian: postgresql-18-pgvector) "
        "and run `CREATE EXTENSION vector`, or `ALTER EXTENSION vector UPDATE` where it is older"
    )
