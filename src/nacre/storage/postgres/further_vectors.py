"""Vectors of further models, beside those of the store's own. The caller holds the spaces that it writes to.

A memory is either in `further_pending` of a model, or the model has seen it: then its passages are in
`further_passages`, and there are none if the model does not know its language. Triggers keep this true, whatever writes
a memory and in which version of its text. A model has the same number in every store, so that nodes can exchange rows.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from nacre.storage.postgres import rows, vector_graph
from nacre.storage.postgres.connection import copy, fetch, run, run_many, value
from nacre.storage.postgres.counters import bump_revision
from nacre.storage.postgres.filters import Clause
from nacre.storage.postgres.halfvec import HalfVector, received
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.vectors import STORED, pack
from nacre.types.memory import Passages, Span
from nacre.types.transfer import StoredPassages

_GIVEN = "unnest(%s::text[], %s::bigint[]) AS given (space, row)"


def number_of(model: str) -> int:
    return int.from_bytes(hashlib.blake2b(model.encode(), digest_size=4).digest(), "big") >> 1


def models(db: Db) -> tuple[str, ...]:
    """The fingerprints of all further models."""
    return tuple(name for (name,) in fetch(db, "SELECT fingerprint FROM further_models ORDER BY added, fingerprint"))


def is_known(db: Db, model: str) -> bool:
    return bool(value(db, "SELECT EXISTS (SELECT FROM further_models WHERE model = %s)", (number_of(model),)))


def add(db: Db, model: str) -> None:
    """Let all memories be pending for a further model, if it is new. The caller is the only one that writes."""
    sql = (
        "INSERT INTO further_models (model, fingerprint, added) "
        "SELECT %s, %s, count(*) FROM further_models ON CONFLICT DO NOTHING"
    )
    if not run(db, sql, (number_of(model), model)):
        return
    run(
        db,
        "INSERT INTO further_pending SELECT space, row, %s FROM memories ON CONFLICT DO NOTHING",
        (number_of(model),),
    )
    bump_revision(db)


def drop(db: Db, model: str) -> None:
    """Delete a further model with all its vectors. The caller is the only one that writes."""
    if run(db, "DELETE FROM further_models WHERE model = %s", (number_of(model),)):
        for table in ("further_passages", "further_pending"):
            run(db, f"DELETE FROM {table} WHERE model = %s", (number_of(model),))
        bump_revision(db)


def write(db: Db, written: Iterable[tuple[Key, Mapping[str, Passages]]]) -> None:
    """Set the passages of these memories by the models that are given, without those of models that were not added."""
    given = [(key, several) for key, several in written if several]
    if not given:
        return
    known = models(db)
    _set(
        db, [(key, model, packed(each)) for key, several in given for model, each in several.items() if model in known]
    )


def packed(passages: Passages) -> StoredPassages:
    return StoredPassages(passages.spans, tuple(map(pack, passages.vectors)))


def pending_texts(db: Db, model: str, texts: Mapping[str, str]) -> dict[str, Key]:
    """Those of these live memories that still have these texts and that a model has yet to embed."""
    sql = (
        "SELECT m.id, m.space, m.row FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS given (id, text, place) "
        "JOIN memories AS m ON m.id = given.id AND m.text = given.text "
        "JOIN further_pending AS f ON f.space = m.space AND f.row = m.row AND f.model = %s "
        "WHERE m.deleted_us IS NULL ORDER BY given.place"
    )
    found = fetch(db, sql, (list(texts), list(texts.values()), number_of(model)))
    return {memory_id: (space, row) for memory_id, space, row in found}


def add_packed(db: Db, given: Iterable[tuple[Key, Mapping[str, StoredPassages]]]) -> None:
    """Set the passages of memories by models that are known and have yet to embed them."""
    listed = [(key, model, each) for key, several in given for model, each in several.items()]
    if not listed:
        return
    known = models(db)
    keys = [(*key, number_of(model)) for key, model, _ in listed]
    sql = (
        "SELECT f.space, f.row, f.model FROM unnest(%s::text[], %s::bigint[], %s::integer[]) "
        "AS given (space, row, model) JOIN further_pending AS f USING (space, row, model)"
    )
    pending = set(fetch(db, sql, [list(column) for column in zip(*keys, strict=True)]))
    sizes = {model: _size(db, model) for model in {model for _, model, _ in listed}}
    taken = []
    for key, model, each in listed:
        size = sizes[model] or (len(each.vectors[0]) if each.vectors else 0)
        fits = all(len(vector) == size for vector in each.vectors)
        if model in known and (*key, number_of(model)) in pending and fits:
            sizes[model] = size
            taken.append((key, model, each))
    _set(db, taken)


def _size(db: Db, model: str) -> int:
    """How many bytes its vectors have; 0: there are none."""
    dimensions = value(
        db,
        "SELECT max(vector_dims(vector)) FROM (SELECT vector FROM further_passages WHERE model = %s LIMIT 1) AS one",
        (number_of(model),),
    )
    return STORED.itemsize * int(dimensions or 0)


def _set(db: Db, written: Sequence[tuple[Key, str, StoredPassages]]) -> None:
    if not written:
        return
    keys = [list(column) for column in zip(*((*key, number_of(model)) for key, model, _ in written), strict=True)]
    for table in ("further_passages", "further_pending"):
        run(
            db,
            f"DELETE FROM {table} AS t USING unnest(%s::text[], %s::bigint[], %s::integer[]) "
            "AS given (space, row, model) WHERE t.space = given.space AND t.row = given.row AND t.model = given.model",
            keys,
        )
    dimensions = {len(vector) // STORED.itemsize for _, _, each in written for vector in each.vectors}
    beside = any(vector_graph.is_there(db, each, vector_graph.FURTHER) for each in dimensions)
    copy(
        db,
        "further_passages (space, row, model, place, start_char, end_char, siblings, vector, beside_graph)",
        ("text", "int8", "int4", "int4", "int4", "int4", "int4", "halfvec", "bool"),
        (
            (*key, number_of(model), place, span.start, span.end, len(each.spans), HalfVector(vector), beside)
            for key, model, each in written
            for place, (span, vector) in enumerate(zip(each.spans, each.vectors, strict=True))
        ),
    )


def of_memories(db: Db, keys: Sequence[Key]) -> dict[Key, dict[str, StoredPassages]]:
    """By memory and model, the passages of memories that the model has seen."""
    columns = rows.columns_of(keys)
    seen = fetch(
        db,
        f"SELECT given.space, given.row, f.fingerprint, f.model FROM {_GIVEN} CROSS JOIN further_models AS f "
        "WHERE NOT EXISTS (SELECT FROM further_pending AS p WHERE p.space = given.space AND p.row = given.row "
        "AND p.model = f.model) ORDER BY f.fingerprint",
        columns,
    )
    if not seen:
        return {}
    spans: defaultdict[tuple[Key, int], list[Span]] = defaultdict(list)
    vectors: defaultdict[tuple[Key, int], list[bytes]] = defaultdict(list)
    sql = (
        f"SELECT p.space, p.row, p.model, p.start_char, p.end_char, p.vector FROM {_GIVEN} "
        "JOIN further_passages AS p ON p.space = given.space AND p.row = given.row ORDER BY p.place"
    )
    for space, row, model, start, end, sent in fetch(db, sql, columns):
        spans[(space, row), model].append(Span(start, end))
        vectors[(space, row), model].append(received(sent))
    found: defaultdict[Key, dict[str, StoredPassages]] = defaultdict(dict)
    for space, row, fingerprint, model in seen:
        place = (space, row), model
        found[space, row][fingerprint] = StoredPassages(tuple(spans[place]), tuple(vectors[place]))
    return found


def pending_count(db: Db, model: str) -> int:
    clause = pending_clause(db, model)
    return int(value(db, f"SELECT count(*) FROM memories AS m WHERE {clause.sql}", clause.parameters))


# Passages of a memory that are not complete, not as long as most of the model, or of a model that has yet to make them.
_ODD = """
WITH sizes AS (
  SELECT model, mode() WITHIN GROUP (ORDER BY vector_dims(vector)) AS dimensions FROM further_passages GROUP BY model
)
SELECT p.space, p.row, p.model FROM further_passages AS p JOIN sizes AS s ON s.model = p.model
LEFT JOIN further_pending AS w ON w.space = p.space AND w.row = p.row AND w.model = p.model
GROUP BY p.space, p.row, p.model, s.dimensions
HAVING (count(*), min(p.place)) <> (max(p.place) + 1, 0) OR (min(p.siblings), max(p.siblings)) <> (count(*), count(*))
  OR (min(vector_dims(p.vector)), max(vector_dims(p.vector))) <> (s.dimensions, s.dimensions) OR count(w.model) > 0
  OR NOT EXISTS (SELECT FROM further_models AS f WHERE f.model = p.model)
"""


def odd(db: Db) -> list[tuple[str, int, int]]:
    """Space, row and model of passages that are wrong."""
    return [(space, row, model) for space, row, model in fetch(db, _ODD)]


def drop_odd(db: Db) -> None:
    """Let the models embed these memories again."""
    wrong = odd(db)
    if wrong:
        keys = "space = %s AND row = %s AND model = %s"
        run_many(db, f"DELETE FROM further_passages WHERE {keys}", wrong)
        sql = (
            "INSERT INTO further_pending SELECT m.space, m.row, f.model FROM memories AS m "
            "JOIN further_models AS f ON m.space = %s AND m.row = %s AND f.model = %s ON CONFLICT DO NOTHING"
        )
        run_many(db, sql, wrong)


def has_language(db: Db, spaces: Sequence[str], languages: Sequence[str]) -> bool:
    sql = (
        "SELECT EXISTS (SELECT FROM memories AS m WHERE m.space = ANY(%s) AND m.language = ANY(%s) "
        "AND m.language <> 'en' AND m.deleted_us IS NULL)"
    )
    return bool(value(db, sql, (list(spaces), list(languages))))


def pending_clause(db: Db, model: str) -> Clause:
    """Live memories `m` that a further model has yet to embed: all, if it is unknown."""
    if not is_known(db, model):
        return Clause("m.deleted_us IS NULL", ())
    return Clause(
        "m.deleted_us IS NULL AND EXISTS (SELECT FROM further_pending AS f "
        "WHERE f.space = m.space AND f.row = m.row AND f.model = %s)",
        (number_of(model),),
    )
