"""Token vectors: packed, one row for each of the first passages of a memory. The caller holds a transaction.

`memories.token_passages` says how many passages have them; NULL: the memory has none of the store's token model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nacre.storage.postgres import rows
from nacre.storage.postgres.connection import copy, fetch, run
from nacre.storage.postgres.halfvec import all_received
from nacre.storage.postgres.rows import Key
from nacre.storage.postgres.schema import Db
from nacre.storage.vectors import cosines, unpack
from nacre.types.memory import Entry, Passages
from nacre.types.tokens import TOKEN_PASSAGES_MAX

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector


def adopt_model(db: Db, model: str | None, given: Iterable[Passages | None]) -> bool:
    """Whether token vectors of this model can be stored. A store without any adopts the model."""
    if model is None or not any(each is not None and each.tokens is not None for each in given):
        return False
    current = rows.meta(db, "token_model")
    if current is None:  # two writers may be first
        run(db, "INSERT INTO meta VALUES ('token_model', %s) ON CONFLICT (key) DO NOTHING", (model,))
        current = rows.meta(db, "token_model")
    return current == model


def left_out(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without token vectors."""
    return [
        entry
        if entry.passages is None or entry.passages.tokens is None
        else replace(entry, passages=replace(entry.passages, tokens=None))
        for entry in entries
    ]


def write(db: Db, written: Iterable[tuple[Key, Passages | None]]) -> None:
    """Insert the token vectors of memories that have none. `token_passages` is written with the memory."""
    add_packed(
        db,
        (
            (key, passages.tokens[:TOKEN_PASSAGES_MAX])
            for key, passages in written
            if passages is not None and passages.tokens is not None
        ),
    )


def rewrite(db: Db, written: Sequence[tuple[Key, Passages | None]]) -> None:
    """Replace the token vectors of memories."""
    if not written:
        return
    keys = rows.columns_of(key for key, _ in written)
    run(
        db,
        "DELETE FROM token_vectors AS t USING unnest(%s::text[], %s::bigint[]) AS given (space, row) "
        "WHERE t.space = given.space AND t.row = given.row",
        keys,
    )
    write(db, written)
    run(
        db,
        "UPDATE memories AS m SET token_passages = given.passages "
        "FROM unnest(%s::text[], %s::bigint[], %s::smallint[]) AS given (space, row, passages) "
        "WHERE m.space = given.space AND m.row = given.row",
        (*keys, [rows.token_passages(passages) for _, passages in written]),
    )


def add_packed(db: Db, written: Iterable[tuple[Key, Sequence[bytes]]]) -> None:
    """Insert token vectors as they are stored."""
    listed = [(*key, place, each) for key, packed in written for place, each in enumerate(packed)]
    if listed:
        copy(db, "token_vectors (space, row, place, vectors)", ("text", "int8", "int2", "bytea"), listed)


def drop_all(db: Db, model: str | None) -> None:
    """Drop all token vectors. Those to come are of this model; None: of the first that is written."""
    run(db, "DELETE FROM token_vectors")
    run(db, "UPDATE memories SET token_passages = NULL WHERE token_passages IS NOT NULL")
    if model is None:
        run(db, "DELETE FROM meta WHERE key = 'token_model'")
    else:
        rows.set_meta(db, "token_model", model)


def nearest(
    db: Db, ids: Sequence[str], model: str, vector: FloatVector, passages_max: int
) -> dict[str, tuple[tuple[int, bytes], ...]]:
    """By live memory, the token vectors of its passages nearest to a vector.

    A short text needs no comparison: all of its passages are among the nearest.
    """
    if rows.meta(db, "token_model") != model:
        return {}
    short = (
        "SELECT m.id, t.place, t.vectors FROM memories AS m JOIN token_vectors AS t ON t.space = m.space "
        "AND t.row = m.row WHERE m.id = ANY(%s) AND m.deleted_us IS NULL AND m.token_passages <= %s"
    )
    asked = list(dict.fromkeys(ids))
    found: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for memory_id, place, tokens in fetch(db, short, (asked, passages_max)):
        found[memory_id].append((place, tokens))
    places = _nearest_places(db, asked, vector, passages_max)
    if places:
        sql = (
            "SELECT m.id, t.place, t.vectors FROM unnest(%s::text[], %s::int[]) AS given (id, place) "
            "JOIN memories AS m ON m.id = given.id AND m.deleted_us IS NULL "
            "JOIN token_vectors AS t ON t.space = m.space AND t.row = m.row AND t.place = given.place"
        )
        for memory_id, place, tokens in fetch(db, sql, tuple(map(list, zip(*places, strict=True)))):
            found[memory_id].append((place, tokens))
    return {memory_id: tuple(sorted(several)) for memory_id, several in found.items()}


def _nearest_places(db: Db, ids: Sequence[str], vector: FloatVector, passages_max: int) -> list[tuple[str, int]]:
    """Ids of the long texts among these, each with the places of its passages nearest to a vector."""
    long = (
        "SELECT m.id, p.vector FROM memories AS m JOIN passages AS p ON p.space = m.space AND p.row = m.row "
        "AND p.place < m.token_passages WHERE m.id = ANY(%s) AND m.deleted_us IS NULL AND m.token_passages > %s "
        "ORDER BY p.place"
    )
    vectors: defaultdict[str, list[bytes]] = defaultdict(list)
    for memory_id, sent in fetch(db, long, (list(ids), passages_max)):
        vectors[memory_id].append(sent)
    nearest = []
    for memory_id, several in vectors.items():
        scores = cosines(unpack(all_received(several)), vector).tolist()
        nearest += [(memory_id, at) for at in sorted(range(len(scores)), key=lambda at: -scores[at])[:passages_max]]
    return nearest
