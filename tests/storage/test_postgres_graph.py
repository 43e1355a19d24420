"""The graph of a store in PostgreSQL: it is there when a store is large, whoever asks, and what it finds is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.embedders.hashing import Hashing
from nacre.errors import StoreUnavailable
from nacre.storage.postgres import PostgresStore, vector_graph
from nacre.types.search import Filter
from postgres_server import Schemas, fresh_schemas, needs_postgres, waited_for

pytestmark = needs_postgres

TEXTS = [f"{colour} {thing} number {number}" for number, (colour, thing) in enumerate(
    (colour, thing) for colour in ("red", "green", "blue", "white", "black", "grey") for thing in (
        "boat", "house", "lamp", "table", "river", "stone", "bridge", "garden", "window", "letter"
    )
)]  # fmt: skip
GRAPH = vector_graph.name(Hashing().embed_query("any").shape[0])


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with fresh_schemas() as fresh:
        yield fresh


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of fifty memories counts as large."""
    monkeypatch.setattr(vector_graph, "SCANNED_MAX", 50)
    monkeypatch.setattr(vector_graph, "LOOKED_AFTER", 50)


def opened(schemas: Schemas, schema: str) -> nacre.Nacre:
    return nacre.open(
        schemas.dsn, schema=schema, embedder=Hashing(), reranker=None, limits=nacre.Limits(results_cached=0)
    )


def store_of(memory: nacre.Nacre) -> PostgresStore:
    store = memory._store
    assert isinstance(store, PostgresStore)
    return store


def graphs(schemas: Schemas, schema: str) -> list[tuple[object, ...]]:
    """Names, and whether they are finished."""
    return schemas.execute(
        "SELECT c.relname::text, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = 'passages'::regclass AND c.relname LIKE 'passages_by_vector%' ORDER BY 1",
        schema,
    )


def test_a_store_that_grows_gets_a_graph_without_being_asked(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS[:40])
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == []
        assert memory.stats().vector_index is None
        memory.remember_many(TEXTS[40:])
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == [(GRAPH, True)]
        assert memory.stats().vector_index == "ready"


def test_a_search_that_would_use_a_graph_has_it_built(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schemas.new()
    monkeypatch.setattr(vector_graph, "LOOKED_AFTER", 1_000)
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS)
        assert memory.stats().vector_index == "missing"
        before = [hit.id for hit in memory.search("a blue lamp", mode="semantic").hits]
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == [(GRAPH, True)]
        assert [hit.id for hit in memory.search("a blue lamp", mode="semantic").hits] == before


def test_the_graph_finds_what_a_file_finds(schemas: Schemas, path: Path) -> None:
    """With the passages that its search looks at, a graph of so few finds all that is near."""
    with opened(schemas, schemas.new()) as memory, nacre.open(path, embedder=Hashing(), reranker=None) as other:
        for each in (memory, other):
            each.remember_many([nacre.NewMemory(text=text, tags=text.split()[:2]) for text in TEXTS])
        store_of(memory).build_vector_index()
        for query in ("green river", "the white letter", "number 7", "stone bridge garden"):
            for where in (Filter(), Filter(tags_any=("blue",)), Filter(tags_none=("boat",))):
                found, expected = (
                    [(hit.text, hit.score) for hit in each.search(query, mode="semantic", where=where).hits]
                    for each in (memory, other)
                )
                assert found == expected


def test_the_server_answers_by_the_graph(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    by_graph = vector_search_query().by_graph

    def counted(query: Any, **how: bool) -> Any:
        asked.append("graph")
        return by_graph(query, **how)

    with opened(schemas, schemas.new()) as memory:
        memory.remember_many(TEXTS)
        store_of(memory).build_vector_index()
        monkeypatch.setattr(vector_search_query(), "by_graph", counted)
        memory.search("a blue lamp", mode="semantic")
        assert asked == ["graph"]


def beside(schemas: Schemas, schema: str) -> int:
    """How many passages the graph does not have."""
    ((number,),) = schemas.execute("SELECT count(*) FROM passages WHERE beside_graph", schema)
    assert isinstance(number, int)
    return number


def test_what_is_written_beside_the_graph_is_found_as_in_a_file(schemas: Schemas, path: Path) -> None:
    schema = schemas.new()
    memories = [nacre.NewMemory(text=text, tags=text.split()[:2]) for text in TEXTS]
    with opened(schemas, schema) as memory, nacre.open(path, embedder=Hashing(), reranker=None) as other:
        for each in (memory, other):
            each.remember_many(memories[1::2] + memories[:50:2])
        store_of(memory).build_vector_index()
        for each in (memory, other):
            each.remember_many(memories[50::2])
            each.update(each.remember("a grey lamp, number 7").id, text="a violet stone, number 7")
            each.forget(each.remember("a green river, no more").id)
        assert beside(schemas, schema) == 7
        for query in ("green river", "the white letter", "number 7", "violet stone", "stone bridge garden"):
            for where in (Filter(), Filter(tags_any=("grey", "blue")), Filter(tags_none=("boat",))):
                found, expected = (
                    [(hit.text, hit.score) for hit in each.search(query, mode="semantic", where=where).hits]
                    for each in (memory, other)
                )
                assert found == expected


def test_the_graph_takes_in_what_was_written_to_large_spaces(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schemas.new()
    monkeypatch.setattr(vector_graph, "BESIDE_MAX", 5)
    monkeypatch.setattr(vector_graph, "_TAKEN_AT_ONCE", 3)
    monkeypatch.setattr(vector_graph, "LOOKED_AFTER", 1_000)
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS[:52])
        store_of(memory).build_vector_index()
        memory.remember_many(TEXTS[52:])
        memory.remember_many([nacre.NewMemory(text=text, space="small") for text in TEXTS[:20]])
        assert beside(schemas, schema) == 28
        store_of(memory)._graph.needed()
        store_of(memory)._graph.wait()
        assert beside(schemas, schema) == 20  # no search asks the graph for those of a small space
        assert memory.search(TEXTS[55], mode="semantic").hits[0].text == TEXTS[55]
        memory.rebuild()
        assert beside(schemas, schema) == 0


def test_what_others_are_changing_stays_beside_the_graph(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds passages may wait for others, so the graph waits for nobody."""
    import psycopg

    schema = schemas.new()
    monkeypatch.setattr(vector_graph, "BESIDE_MAX", 0)
    with opened(schemas, schema) as memory, psycopg.connect(schemas.dsn) as other:
        memory.remember_many(TEXTS)
        store_of(memory).build_vector_index()
        memory.remember_many(["a purple cow", "a purple sheep"])
        held = "SELECT FROM {0}.passages WHERE row = (SELECT max(row) FROM {0}.passages) FOR UPDATE"
        other.execute(held.format(schema))
        store_of(memory)._graph.needed()
        store_of(memory)._graph.wait()
        assert beside(schemas, schema) == 1
        assert {hit.text for hit in memory.search("purple", mode="semantic", limit=2).hits} == {
            "a purple cow",
            "a purple sheep",
        }


def test_no_graph_is_built_while_much_is_written(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schemas.new()
    monkeypatch.setattr(vector_graph, "BULK", 10)
    monkeypatch.setattr(vector_graph, "CALM_S", 1.0)
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS)
        assert graphs(schemas, schema) == []
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == [(GRAPH, True)]


def test_what_was_left_unfinished_is_built_again(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS[:40])
        # As a build leaves it that was interrupted: a unique index of what is not unique fails half-way.
        with pytest.raises(Exception, match="unique"):
            schemas.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {GRAPH} ON passages (space)", schema)
        assert graphs(schemas, schema) == [(GRAPH, False)]
        memory.remember_many(TEXTS[40:])
        store_of(memory).build_vector_index()
        assert graphs(schemas, schema) == [(GRAPH, True)]
        ((method,),) = schemas.execute(
            "SELECT a.amname::text FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam "
            f"WHERE c.oid = '{GRAPH}'::regclass",
            schema,
        )
        assert method == "hnsw"


def test_another_model_gets_a_graph_of_its_own(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS)
        store_of(memory).build_vector_index()
    with nacre.open(schemas.dsn, schema=schema, embedder=Hashing(512), reranker=None, switch_model=True) as memory:
        for _ in memory.reembed():
            pass
        store_of(memory).build_vector_index()
        assert graphs(schemas, schema) == [(vector_graph.name(512), True)]
        assert memory.search("a blue lamp", mode="semantic").hits[0].text.startswith("blue lamp")


def test_rebuild_makes_the_graph_anew(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS)
        store_of(memory)._graph.wait()
        file_of = f"SELECT pg_relation_filenode('{GRAPH}'::regclass)::bigint"
        before = schemas.execute(file_of, schema)
        memory.rebuild()
        assert schemas.execute(file_of, schema) != before
        assert graphs(schemas, schema) == [(GRAPH, True)]


def test_one_process_builds_at_a_time(schemas: Schemas) -> None:
    import psycopg

    schema = schemas.new()
    with opened(schemas, schema) as memory, psycopg.connect(schemas.dsn) as other:
        memory.remember_many(TEXTS[:40])
        other.execute("SELECT set_config('search_path', %s, false)", (schema,))
        other.commit()
        other.execute(f"SELECT pg_advisory_xact_lock({vector_graph._KEY})")
        memory.remember_many(TEXTS[40:])
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == []
        other.rollback()
        store_of(memory).build_vector_index()
        assert graphs(schemas, schema) == [(GRAPH, True)]


def test_writes_go_on_while_a_graph_waits_for_others(schemas: Schemas) -> None:
    """A build waits for transactions that began before it; nobody waits for the build."""
    import psycopg

    schema = schemas.new()
    with opened(schemas, schema) as memory, psycopg.connect(schemas.dsn) as other:
        memory.remember_many(TEXTS[:40])
        other.execute(f"LOCK TABLE {schema}.passages IN ROW EXCLUSIVE MODE")
        memory.remember_many(TEXTS[40:])
        assert waited_for(lambda: graphs(schemas, schema) == [(GRAPH, False)])
        assert memory.stats().vector_index == "building"
        memory.remember("a purple cow")
        assert memory.search("purple cow", mode="semantic").hits[0].text == "a purple cow"
        other.rollback()
        store_of(memory)._graph.wait()
        assert graphs(schemas, schema) == [(GRAPH, True)]
        assert memory.search("purple cow", mode="semantic").hits[0].text == "a purple cow"


def test_who_may_not_build_is_told_who_may(schemas: Schemas) -> None:
    schema = schemas.new()
    with opened(schemas, schema) as memory:
        memory.remember_many(TEXTS[:40])
    role = f"{schema}_writer"
    schemas.execute(f"CREATE ROLE {role} LOGIN BYPASSRLS")
    try:
        schemas.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        schemas.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
        schemas.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
        theirs = PostgresStore(schemas.dsn.replace("postgres@", f"{role}@"), schema)
        with nacre.Nacre(theirs, Hashing()) as memory:
            memory.remember_many(TEXTS[40:])
            theirs._graph.wait()
            assert memory.stats().vector_index == "missing"
            with pytest.raises(StoreUnavailable, match="run `nacre rebuild` as the owner"):
                theirs.build_vector_index()
    finally:
        schemas.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def vector_search_query() -> Any:
    from nacre.storage.postgres import vector_search

    return vector_search._Query
