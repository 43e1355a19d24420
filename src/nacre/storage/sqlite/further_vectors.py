"""Vectors of further models, beside those of the store's own. The caller holds a transaction.

A memory is either in `further_pending` of a model, or the model has seen it: then its passages are in
`further_passages`, and there are none if the model does not know its language. Triggers keep this true, whatever writes
a memory and in which version of its text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import apsw

from nacre.storage.sqlite import rows
from nacre.storage.sqlite.filters import EVERYTHING, Clause
from nacre.types.memory import Passages, Span
from nacre.types.transfer import StoredPassages

# Numbers of models and keys of passages are never used again: index files know them by these.
TABLES = """
CREATE TABLE further_models (
  model       INTEGER PRIMARY KEY AUTOINCREMENT,
  fingerprint TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE further_passages (
  passage    INTEGER PRIMARY KEY AUTOINCREMENT,
  row        INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  model      INTEGER NOT NULL,
  start_char INTEGER NOT NULL,
  end_char   INTEGER NOT NULL,
  vector     BLOB NOT NULL
) STRICT;
CREATE INDEX further_passages_by_row ON further_passages (row, model);
CREATE TABLE further_pending (
  row   INTEGER NOT NULL REFERENCES memories (row) ON DELETE CASCADE,
  model INTEGER NOT NULL,
  PRIMARY KEY (row, model)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER memories_pending_further AFTER INSERT ON memories BEGIN
  INSERT OR IGNORE INTO further_pending SELECT new.row, model FROM further_models;
END;
CREATE TRIGGER texts_pending_further AFTER UPDATE OF text ON memories WHEN old.text <> new.text BEGIN
  DELETE FROM further_passages WHERE row = old.row;
  INSERT OR IGNORE INTO further_pending SELECT new.row, model FROM further_models;
END;
"""
# By which it is known at once that a space has nothing in another language than English.
LANGUAGES = """
CREATE INDEX memories_by_language ON memories (space, language) WHERE language <> 'en' AND deleted_us IS NULL;
"""
IN_LANGUAGES = (
    "SELECT EXISTS (SELECT 1 FROM json_each(?) AS s CROSS JOIN json_each(?) AS l "
    "CROSS JOIN memories AS m INDEXED BY memories_by_language ON m.space = s.value AND m.language = l.value "
    "WHERE m.language <> 'en' AND m.deleted_us IS NULL)"
)
_COLUMNS = "row, model, start_char, end_char, vector"


def models(db: apsw.Connection) -> tuple[str, ...]:
    """The fingerprints of all further models."""
    return tuple(name for (name,) in rows.fetch(db, "SELECT fingerprint FROM further_models ORDER BY model"))


def number_of(db: apsw.Connection, model: str | None) -> int | None:
    """The number of a further model; None: it is none."""
    number: int | None = db.execute("SELECT model FROM further_models WHERE fingerprint = ?", (model,)).get
    return number


def add(db: apsw.Connection, model: str) -> bool:
    """Let all memories be pending for a further model. Returns False if it is known."""
    if number_of(db, model) is not None:
        return False
    db.execute("INSERT INTO further_models (fingerprint) VALUES (?)", (model,))
    db.execute("INSERT INTO further_pending SELECT row, ? FROM memories", (db.last_insert_rowid(),))
    return True


def drop(db: apsw.Connection, model: str) -> bool:
    """Delete a further model with all its vectors. Returns False if there is none."""
    number = number_of(db, model)
    if number is None:
        return False
    for table in ("further_models", "further_passages", "further_pending"):
        db.execute(f"DELETE FROM {table} WHERE model = ?", (number,))
    return True


def write(db: apsw.Connection, written: Iterable[tuple[int, Mapping[str, Passages]]]) -> None:
    """Set the passages of these rows by the models that are given, without those of models that were not added."""
    given = [(row, model, passages) for row, several in written for model, passages in several.items()]
    if not given:
        return
    known = {
        model: number for model in {model for _, model, _ in given} if (number := number_of(db, model)) is not None
    }
    _set(db, [(row, known[model], _packed(each)) for row, model, each in given if model in known])


def embed(db: apsw.Connection, number: int, passages: Mapping[str, Passages], texts: Mapping[str, str]) -> list[str]:
    """Set the passages of memories that are pending and still have these texts. Returns their ids."""
    sql = (
        "SELECT m.row FROM memories AS m JOIN further_pending AS f ON f.row = m.row AND f.model = ? "
        "WHERE m.id = ? AND m.text = ? AND m.deleted_us IS NULL"
    )
    found = {
        memory_id: row for memory_id, text in texts.items() for (row,) in rows.fetch(db, sql, (number, memory_id, text))
    }
    _set(db, [(row, number, _packed(passages[memory_id])) for memory_id, row in found.items()])
    return list(found)


def _packed(passages: Passages) -> list[tuple[int, int, bytes]]:
    from nacre.storage.vectors import pack

    return [(*span, pack(vector)) for span, vector in zip(passages.spans, passages.vectors, strict=True)]


def add_packed(db: apsw.Connection, row: int, model: str, given: StoredPassages) -> bool:
    """Set the passages of a row by a model that has yet to embed it. Returns whether it had."""
    number = number_of(db, model)
    pending = db.execute("SELECT EXISTS (SELECT 1 FROM further_pending WHERE row = ? AND model = ?)", (row, number)).get
    size = db.execute("SELECT octet_length(vector) FROM further_passages WHERE model = ? LIMIT 1", (number,)).get
    if number is None or not pending or not all(len(each) == (size or len(given.vectors[0])) for each in given.vectors):
        return False
    vectors = [(*span, vector) for span, vector in zip(given.spans, given.vectors, strict=True)]
    _set(db, [(row, number, vectors)])
    return True


def _set(db: apsw.Connection, written: Sequence[tuple[int, int, Sequence[tuple[int, int, bytes]]]]) -> None:
    for table in ("further_passages", "further_pending"):
        db.executemany(f"DELETE FROM {table} WHERE row = ? AND model = ?", ((row, model) for row, model, _ in written))
    db.executemany(
        f"INSERT INTO further_passages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)",
        ((row, model, *each) for row, model, several in written for each in several),
    )


def rekey(db: apsw.Connection, listed: Sequence[int]) -> None:
    """Give the passages of restored memories new keys, as `rekey_passages` does."""
    newest = db.execute("SELECT coalesce(max(passage), 0) FROM further_passages").get
    if not newest:
        return
    selected = "FROM further_passages WHERE row IN (SELECT value FROM json_each(?))"
    given = rows.to_json(list(listed))
    db.execute(f"INSERT INTO further_passages ({_COLUMNS}) SELECT {_COLUMNS} {selected} ORDER BY passage", (given,))
    db.execute(f"DELETE {selected} AND passage <= ?", (given, newest))


def packed(db: apsw.Connection, listed: Sequence[int]) -> dict[int, dict[str, StoredPassages]]:
    """By row and model, the passages of memories that the model has seen."""
    seen = rows.fetch(
        db,
        "SELECT j.value, f.fingerprint FROM json_each(?) AS j CROSS JOIN further_models AS f "
        "WHERE NOT EXISTS (SELECT 1 FROM further_pending AS p WHERE p.row = j.value AND p.model = f.model) "
        "ORDER BY 2",
        (rows.to_json(list(listed)),),
    )
    if not seen:
        return {}
    spans: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
    vectors: defaultdict[tuple[int, str], list[bytes]] = defaultdict(list)
    sql = (
        "SELECT p.row, f.fingerprint, p.start_char, p.end_char, p.vector FROM json_each(?) AS j "
        "CROSS JOIN further_passages AS p ON p.row = j.value JOIN further_models AS f ON f.model = p.model "
        "ORDER BY p.passage"
    )
    for row, model, start, end, vector in db.execute(sql, (rows.to_json(list(listed)),)):
        spans[row, model].append(Span(start, end))
        vectors[row, model].append(vector)
    found: defaultdict[int, dict[str, StoredPassages]] = defaultdict(dict)
    for row, model in seen:
        found[row][model] = StoredPassages(tuple(spans[row, model]), tuple(vectors[row, model]))
    return found


# ---------------------------------------------------------------- what is pending


def let_pend(db: apsw.Connection) -> None:
    """Let memories be pending for every model whose passages of them are not the whole text.

    Keys of the passages of one memory follow each other, so a gap tells that some are lost.
    """
    db.execute(
        "DELETE FROM further_passages WHERE model NOT IN (SELECT model FROM further_models) OR (row, model) NOT IN ("
        "SELECT p.row, p.model FROM further_passages AS p GROUP BY p.row, p.model "
        "HAVING count(*) = max(p.passage) - min(p.passage) + 1 AND min(p.start_char) = 0 "
        "AND max(p.end_char) >= (SELECT length(rtrim(m.text)) FROM memories AS m WHERE m.row = p.row))"
    )
    db.execute(
        "INSERT OR IGNORE INTO further_pending SELECT m.row, f.model FROM memories AS m CROSS JOIN further_models AS f "
        "WHERE NOT EXISTS (SELECT 1 FROM further_passages AS p WHERE p.row = m.row AND p.model = f.model)"
    )


def pending_clause(db: apsw.Connection, model: str) -> Clause:
    """Memories `m` that a further model has yet to embed: all, if it is unknown."""
    number = number_of(db, model)
    if number is None:
        return EVERYTHING
    return Clause("EXISTS (SELECT 1 FROM further_pending AS f WHERE f.row = m.row AND f.model = ?)", (number,))


def pending_count(db: apsw.Connection, model: str, where: Clause = EVERYTHING) -> int:
    """How many live memories that match a further model has yet to embed: usually none, which a look tells."""
    number = number_of(db, model)
    if number is None:
        sql = f"SELECT count(*) FROM memories AS m WHERE m.deleted_us IS NULL AND {where.sql}"
        return int(db.execute(sql, where.parameters).get)
    sql = (
        "SELECT count(*) FROM further_pending AS f CROSS JOIN memories AS m ON m.row = f.row "
        f"WHERE f.model = ? AND m.deleted_us IS NULL AND {where.sql}"
    )
    return int(db.execute(sql, (number, *where.parameters)).get)
