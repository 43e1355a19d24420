"""sqlite-vec and FTS5 in one file, with ranks fused in SQL as the author of sqlite-vec shows it.

A vec0 table of 32-bit floats by cosine, which it scans; an FTS5 table with porter stems, queried for any word of the
question and ordered by its bm25. Tags are metadata columns of vec0, and indexed columns of the table of texts for
FTS5. It runs on apsw, because Python's sqlite3 often cannot load extensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import sqlite_vec

from benchmarks.rivals.base import (
    DIMENSIONS,
    LIMIT,
    POOL,
    TAGS,
    Engine,
    Filling,
    Found,
    Kind,
    Opened,
    Question,
    Rows,
)

SCHEMA = f"""
    PRAGMA journal_mode = wal;
    CREATE TABLE memories (id INTEGER PRIMARY KEY, text TEXT NOT NULL, {", ".join(f"{tag} INTEGER" for tag in TAGS)});
    CREATE VIRTUAL TABLE words USING fts5
        (text, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61');
    CREATE VIRTUAL TABLE vectors USING vec0
        (id INTEGER PRIMARY KEY, embedding float[{DIMENSIONS}] distance_metric=cosine,
         {", ".join(f"{tag} boolean" for tag in TAGS)});
    {" ".join(f"CREATE INDEX memories_{tag} ON memories ({tag}) WHERE {tag};" for tag in TAGS)}
"""
BY_WORDS = """
    SELECT words.rowid AS id, row_number() OVER (ORDER BY rank) AS place
    FROM words {joined} WHERE words MATCH :words {passing} ORDER BY rank LIMIT {limit}
"""
BY_VECTOR = """
    SELECT id, row_number() OVER (ORDER BY distance) AS place
    FROM vectors WHERE embedding MATCH :vector AND k = {limit} {passing}
"""
SHOWN = "SELECT memories.id, memories.text FROM ({found}) AS found JOIN memories USING (id) ORDER BY found.place"
FUSED = """
    WITH by_words AS ({by_words}), by_vector AS ({by_vector}),
    joined AS (
        SELECT coalesce(by_words.id, by_vector.id) AS id,
            coalesce(1.0 / (60 + by_words.place), 0.0) + coalesce(1.0 / (60 + by_vector.place), 0.0) AS score
        FROM by_words FULL OUTER JOIN by_vector ON by_vector.id = by_words.id
        ORDER BY score DESC LIMIT {limit}
    )
    SELECT memories.id, memories.text FROM joined JOIN memories USING (id) ORDER BY joined.score DESC
"""
_WORD = re.compile(r"\w+")


def _connected(folder: Path) -> apsw.Connection:
    db = apsw.Connection(str(folder / "memories.db"))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    return db


class SqliteVecFilling(Filling):
    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def add(self, rows: Rows) -> None:
        places = ", ".join("?" * (2 + len(TAGS)))
        with self._db:
            self._db.executemany(f"INSERT INTO memories VALUES ({places})", _texts(rows))
            self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", (row[:2] for row in _texts(rows)))
            self._db.executemany(f"INSERT INTO vectors VALUES ({places})", _vectors(rows))

    def index(self) -> None:
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")

    def close(self) -> None:
        self._db.close()


def _texts(rows: Rows) -> Iterator[tuple[int | str, ...]]:
    for row, text in enumerate(rows.texts, rows.first):
        yield (row, text, *(int(row % every == 0) for every in TAGS.values()))


def _vectors(rows: Rows) -> Iterator[tuple[int | bytes, ...]]:
    for row, vector in enumerate(rows.vectors, rows.first):
        yield (row, vector.tobytes(), *(int(row % every == 0) for every in TAGS.values()))


class SqliteVecOpened(Opened):
    def __init__(self, folder: Path) -> None:
        self._db = _connected(folder)

    def search(self, kind: Kind, question: Question, tag: str | None) -> list[Found]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(question.text))
        given = {"words": words, "vector": question.vector.tobytes()}
        return [Found(str(key), text) for key, text in self._db.execute(_sql(kind, tag), given)]

    def close(self) -> None:
        self._db.close()


def _sql(kind: Kind, tag: str | None) -> str:
    limit = POOL if kind == "hybrid" else LIMIT
    joined = "" if tag is None else "JOIN memories AS m ON m.id = words.rowid"
    by_words = BY_WORDS.format(joined=joined, passing="" if tag is None else f"AND m.{tag}", limit=limit)
    by_vector = BY_VECTOR.format(passing="" if tag is None else f"AND {tag} = 1", limit=limit)
    match kind:
        case "keyword":
            return SHOWN.format(found=by_words)
        case "semantic":
            return SHOWN.format(found=by_vector)
        case "hybrid":
            return FUSED.format(by_words=by_words, by_vector=by_vector, limit=LIMIT)


class SqliteVec(Engine):
    name = "sqlite-vec"
    packages = ("sqlite-vec",)
    configuration = "exact scan of float32 vectors in vec0, FTS5 with porter stems, RRF in SQL, metadata columns"

    def version(self) -> str:
        return f"{super().version()}, SQLite {apsw.sqlite_lib_version()}"

    def fill(self, folder: Path) -> Filling:
        db = _connected(folder)
        db.execute(SCHEMA).fetchall()  # all of its statements
        return SqliteVecFilling(db)

    def refill(self, folder: Path) -> Filling:
        return SqliteVecFilling(_connected(folder))

    def open(self, folder: Path) -> Opened:
        return SqliteVecOpened(folder)


ENGINE = SqliteVec
