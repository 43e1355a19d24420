"""The counts of a whole store."""

from __future__ import annotations

from nacre.storage.postgres import further_vectors, listing, rows, schema, space_usage, vector_graph
from nacre.storage.postgres.connection import fetch
from nacre.storage.postgres.placements import HIDDEN, in_state
from nacre.storage.postgres.schema import Db
from nacre.storage.quotas import named_quotas
from nacre.types.quotas import Quotas
from nacre.types.stats import Stats

# One pass over the memories. GROUPING says which of the three columns a row is about: 3 the first, 5 the second, 6 the
# third, 7 none, that is all live memories.
_MEMORIES = (
    "SELECT GROUPING(space, kind, namespace), coalesce(space, kind, namespace), count(*), "
    "count(*) FILTER (WHERE NOT embedded), count(*) FILTER (WHERE embedded AND token_passages IS NULL) "
    f"FROM memories AS m WHERE deleted_us IS NULL AND NOT {HIDDEN.format('m')} "
    "GROUP BY GROUPING SETS ((), (space), (kind), (namespace)) ORDER BY 1, 2"
)
_OTHERS = (
    "SELECT (SELECT count(*) FROM memories AS m WHERE deleted_us IS NOT NULL AND NOT {}), "
    "(SELECT count(*) FROM passages AS m WHERE NOT {}), "
    "(SELECT coalesce(sum(octet_length(vectors)), 0)::bigint FROM token_vectors AS m WHERE NOT {}), "
    "(SELECT count(*) FROM events AS m WHERE NOT {})"
).replace("{}", HIDDEN.format("m"))
_SIZES = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint "
    "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'm')"
)


def store_stats(db: Db, quotas: Quotas) -> Stats:
    by: dict[int, dict[str, int]] = {3: {}, 5: {}, 6: {}}
    live = pending = pending_tokens = 0
    for which, name, memories, without_vectors, without_tokens in fetch(db, _MEMORIES):
        if which in by:
            by[which][name] = memories
        else:
            live, pending, pending_tokens = memories, without_vectors, without_tokens
    ((forgotten, passages, token_bytes, events),) = fetch(db, _OTHERS)
    ((size, indexes),) = fetch(db, _SIZES)
    elsewhere = {*in_state(db, "gone"), *in_state(db, "arriving")}
    held = {space: each for space, each in space_usage.of_spaces(db).items() if space not in elsewhere}
    return Stats(
        memories=live,
        forgotten=forgotten,
        passages=passages,
        pending=pending,
        pending_tokens=pending_tokens,
        token_bytes=token_bytes,
        events=events,
        spaces=by[3],
        kinds=by[5],
        namespaces=by[6],
        further_models={each: listing.pending_count(db, None, each) for each in further_vectors.models(db)},
        model=rows.meta(db, "model"),
        token_model=rows.meta(db, "token_model"),
        stored_memories={space: each.memories for space, each in held.items()},
        stored_bytes={space: each.bytes for space, each in held.items()},
        quotas=named_quotas(quotas),
        schema_version=schema.VERSION,
        size_bytes=size,
        index_bytes=indexes,
        vector_index=vector_graph.state(db),
    )
