"""A document store of Haystack: its own suites, documents that come back exactly, and filters before any cut."""

from __future__ import annotations

import asyncio
import json
import math
import struct
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.embedders.hashing import Hashing

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document, Pipeline  # where it is installed
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites

from nacre.integrations.haystack import (
    NacreDocumentStore,
    NacreEmbeddingRetriever,
    NacreRetriever,
)

OVERWRITE, SKIP, FAIL, NONE = (
    DuplicatePolicy.OVERWRITE,
    DuplicatePolicy.SKIP,
    DuplicatePolicy.FAIL,
    DuplicatePolicy.NONE,
)


@pytest.fixture
def document_store(memory: nacre.Nacre) -> NacreDocumentStore:
    return NacreDocumentStore(memory)


# ---------------------------------------------------------------- the framework's own suites


class TestHaystacksSuites(
    suites.DocumentStoreBaseExtendedTests,  # type: ignore[misc]
    suites.CountDocumentsByFilterTest,  # type: ignore[misc]
    suites.CountUniqueMetadataByFilterTest,  # type: ignore[misc]
    suites.GetMetadataFieldsInfoTest,  # type: ignore[misc]
    suites.GetMetadataFieldMinMaxTest,  # type: ignore[misc]
    suites.GetMetadataFieldUniqueValuesTest,  # type: ignore[misc]
):
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[NacreDocumentStore]:
        with NacreDocumentStore(tmp_path / "documents.db", embedder=None) as store:
            yield store

    def test_write_documents(self, document_store: NacreDocumentStore) -> None:
        """The suite leaves it to each store what happens without a policy. Here, a known id is an error."""
        document = Document(content="a document")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        assert document_store.filter_documents() == [document]


@pytest.mark.anyio
class TestHaystacksAsynchronousSuites(
    async_suites.CountDocumentsAsyncTest,  # type: ignore[misc]
    async_suites.WriteDocumentsAsyncTest,  # type: ignore[misc]
    async_suites.DeleteDocumentsAsyncTest,  # type: ignore[misc]
    async_suites.FilterDocumentsAsyncTest,  # type: ignore[misc]
    async_suites.DeleteAllAsyncTest,  # type: ignore[misc]
    async_suites.DeleteByFilterAsyncTest,  # type: ignore[misc]
    async_suites.UpdateByFilterAsyncTest,  # type: ignore[misc]
    async_suites.CountDocumentsByFilterAsyncTest,  # type: ignore[misc]
    async_suites.CountUniqueMetadataByFilterAsyncTest,  # type: ignore[misc]
    async_suites.GetMetadataFieldsInfoAsyncTest,  # type: ignore[misc]
    async_suites.GetMetadataFieldMinMaxAsyncTest,  # type: ignore[misc]
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,  # type: ignore[misc]
):
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[NacreDocumentStore]:
        with NacreDocumentStore(tmp_path / "documents.db", embedder=None) as store:
            yield store

    async def test_write_documents_async(self, document_store: NacreDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(id="1", content="a document")]) == 1


def test_no_suite_is_left_out() -> None:
    """A new suite of Haystack that fits is to be run, too."""
    for module, ours in ((suites, TestHaystacksSuites), (async_suites, TestHaystacksAsynchronousSuites)):
        theirs = [each for name, each in vars(module).items() if name.endswith("Test") and isinstance(each, type)]
        assert len(theirs) > 8
        assert [each.__name__ for each in theirs if not issubclass(ours, each)] == []


# ---------------------------------------------------------------- exactness

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
META = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**66), 2**66) | st.floats(allow_nan=False) | TEXT,
    lambda several: st.lists(several, max_size=3) | st.dictionaries(TEXT, several, max_size=3),
    max_leaves=6,
)
NUMBERS = st.floats(width=32) | st.floats() | st.just(-0.0)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    values = draw(st.lists(st.floats(allow_nan=False), max_size=3))
    sparse = SparseEmbedding(indices=list(range(len(values))), values=values)
    blob = ByteStream(
        draw(st.binary(max_size=20)),
        meta=draw(st.dictionaries(TEXT, META, max_size=2)),
        mime_type=draw(st.none() | st.just("image/png")),
    )
    return Document(
        id=draw(st.text(st.characters(exclude_categories=()), max_size=40)),
        content=draw(st.none() | TEXT),
        meta=draw(st.dictionaries(st.sampled_from(["name", "haystack", "meta", "", "id"]) | TEXT, META, max_size=4)),
        score=draw(st.none() | st.floats(allow_nan=False)),
        embedding=draw(st.none() | st.lists(NUMBERS, max_size=5) | st.lists(NUMBERS | st.integers(0, 9), max_size=3)),
        sparse_embedding=draw(st.none() | st.just(sparse)),
        blob=draw(st.none() | st.just(blob)),
    )


def bits(numbers: list[float] | None) -> list[str] | None:
    """NaN is equal to itself, 0.0 is not -0.0, and 1 is not 1.0."""
    return None if numbers is None else [*map(repr, numbers)]


def parts(document: Document) -> tuple[str, list[str] | None]:
    rest = {name: each for name, each in document.to_dict(flatten=False).items() if name != "embedding"}
    return json.dumps(rest, sort_keys=True), bits(document.embedding)


@pytest.mark.slow
@settings(max_examples=100)
@given(given=st.lists(documents(), max_size=4, unique_by=lambda each: each.id))
def test_documents_come_back_as_they_were_written(given: list[Document]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        NacreDocumentStore(Path(folder) / "documents.db", embedder=None) as store,
    ):
        assert store.write_documents(given) == len(given)
        assert [*map(parts, store.filter_documents())] == [*map(parts, given)]
        assert store.count_documents() == len(given)
        assert store.write_documents(given, SKIP) == 0
        assert store.write_documents(given, OVERWRITE) == len(given)
        store.delete_documents([each.id for each in given[1:]])
        assert [*map(parts, store.filter_documents())] == [*map(parts, given[:1])]


def test_an_embedding_takes_little_room(document_store: NacreDocumentStore) -> None:
    numbers = [math.sin(at) for at in range(3072)]
    given = [
        Document(id="32 bits", embedding=[struct.unpack("<f", struct.pack("<f", each))[0] for each in numbers]),
        Document(id="64 bits", embedding=numbers),
    ]
    document_store.write_documents(given)
    assert document_store.filter_documents() == given
    sizes = [len(json.dumps(dict(each.metadata))) for each in document_store.memory.every()]
    assert sizes[0] < 17_000
    assert sizes[1] < 33_000


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Document(id="1", meta={"pair": (1, 2)}), r"meta\.pair: is a tuple"),
        (Document(id="1", meta={"at": struct}), r"meta\.at: is a module"),
        (Document(id="1", blob=ByteStream(b"x" * 100_000)), "metadata: takes"),
        (Document(id="x" * 600), "key"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(
    document_store: NacreDocumentStore, given: Document, problem: str
) -> None:
    with pytest.raises(nacre.InvalidInput, match=problem):
        document_store.write_documents([given])
    assert document_store.count_documents() == 0


def test_a_larger_blob_needs_larger_limits(path: Path) -> None:
    given = Document(id="1", content="a picture", blob=ByteStream(bytes(range(256)) * 2_000, mime_type="image/png"))
    limits = nacre.Limits(metadata_bytes_max=10_000_000)
    with NacreDocumentStore(path, embedder=None, limits=limits) as store:
        store.write_documents([given])
        assert store.filter_documents() == [given]


# ---------------------------------------------------------------- ids, policies, indexes


def test_policies_within_one_call(document_store: NacreDocumentStore) -> None:
    one, other = Document(id="1", content="one"), Document(id="1", content="other")
    for policy in (FAIL, NONE):
        with pytest.raises(DuplicateDocumentError, match="'1'"):
            document_store.write_documents([Document(id="0", content="zero"), one, other], policy)
        assert document_store.count_documents() == 0  # nothing is written
    assert document_store.write_documents([one, other], SKIP) == 1
    assert document_store.filter_documents() == [one]
    assert document_store.write_documents([other, one, other], OVERWRITE) == 3
    assert document_store.filter_documents() == [other]


def test_overwriting_leaves_nothing_of_before(document_store: NacreDocumentStore) -> None:
    document_store.write_documents([Document(id="1", content="one", meta={"a": 1, "b": 2}, embedding=[1.0])])
    document_store.write_documents([Document(id="1", content="one", meta={"a": 1})], OVERWRITE)
    assert document_store.filter_documents() == [Document(id="1", content="one", meta={"a": 1})]


def test_equal_contents_are_two_documents(document_store: NacreDocumentStore) -> None:
    given = [Document(id=each, content="the same words") for each in "ab"]
    document_store.write_documents(given)
    assert document_store.filter_documents() == given
    assert {each.id for each in document_store.search_documents("same words")} == {"a", "b"}


def test_indexes_spaces_and_other_memories_are_apart(path: Path) -> None:
    with nacre.open(path, embedder=None) as memory, nacre.open(path, embedder=None, space="other") as elsewhere:
        note = memory.remember("a note on harbours").id
        stores = [NacreDocumentStore(memory, name) for name in ("a", "a/b", "a%2Fb")]
        stores.append(NacreDocumentStore(elsewhere, "a"))
        for number, store in enumerate(stores):
            store.write_documents([Document(id="b/1", content=f"harbour {number}", meta={"n": number})])
        for number, store in enumerate(stores):
            assert [each.meta["n"] for each in store.filter_documents()] == [number]
            assert [each.meta["n"] for each in store.search_documents("harbour")] == [number]
            assert store.count_documents() == 1
        stores[0].delete_all_documents()
        assert [each.count_documents() for each in stores] == [0, 1, 1, 1]
        assert memory.get(note).memories[0].deleted is None
        assert note in [each.id for each in memory.search("harbours").hits]  # and the store finds both


def test_one_id_may_begin_another(document_store: NacreDocumentStore) -> None:
    given = [Document(id=each, content=f"number {each}") for each in ("1", "10", "1/", "1%2F")]
    document_store.write_documents(given)
    document_store.delete_documents(["1"])
    assert document_store.filter_documents() == given[1:]


def test_a_deleted_document_can_be_written_again(document_store: NacreDocumentStore) -> None:
    given = Document(id="1", content="one")
    for _ in range(3):
        assert document_store.write_documents([given], FAIL) == 1
        document_store.delete_documents(["1", "unknown"])
        assert document_store.filter_documents() == []


def test_two_engines_see_each_others_documents(path: Path) -> None:
    with NacreDocumentStore(path, embedder=None) as one, NacreDocumentStore(path, embedder=None) as other:
        for at in range(6):
            writer, reader = (one, other) if at % 2 else (other, one)
            writer.write_documents([Document(id=str(at), content=f"number {at}")])
            with pytest.raises(DuplicateDocumentError):
                reader.write_documents([Document(id=str(at), content="again")])
            assert [each.id for each in reader.filter_documents()] == [str(each) for each in range(at + 1)]
            assert reader.search_documents(f"number {at}", mode="keyword", top_k=1)[0].id == str(at)


@pytest.mark.slow
def test_several_threads_write(path: Path) -> None:
    with NacreDocumentStore(path, embedder=None) as store, ThreadPoolExecutor(6) as threads:

        def write(number: int) -> int:
            several = [Document(id=f"{at}", content=f"{number} wrote {at}") for at in range(20)]
            return int(store.write_documents(several, SKIP))

        assert sum(threads.map(write, range(12))) == 20
        assert store.count_documents() == 20


# ---------------------------------------------------------------- filters

OPERATORS = ["==", "!=", ">", ">=", "<", "<=", "in", "not in"]
VALUES: st.SearchStrategy[Any] = st.none() | st.integers(-2, 3) | st.sampled_from(["a", "2026-05-01", 0.5, True])
COMPARISONS = st.fixed_dictionaries(
    {
        "field": st.sampled_from(["meta.n", "meta.deep.er", "meta.date", "content", "id", "n"]),
        "operator": st.sampled_from(OPERATORS),
        "value": VALUES | st.lists(VALUES, max_size=3),
    }
)
FILTERS: st.SearchStrategy[Any] = st.recursive(
    COMPARISONS,
    lambda several: st.fixed_dictionaries(
        {"operator": st.sampled_from(["AND", "OR", "NOT"]), "conditions": st.lists(several, max_size=3)}
    ),
    max_leaves=6,
)
FILTERED = [
    Document(
        id=str(at),
        content=f"harbour {at} {'tide ' * (at % 4)}",
        meta={"n": at % 5 - 2, "deep": {"er": at % 3}} | ({"date": f"2026-0{at % 3 + 4}-01"} if at % 2 else {}),
    )
    for at in range(40)
]


@pytest.fixture(scope="module")
def filtered() -> Iterator[tuple[NacreDocumentStore, InMemoryDocumentStore]]:
    reference = InMemoryDocumentStore(shared=False)
    reference.write_documents(FILTERED)
    with (
        tempfile.TemporaryDirectory() as folder,
        NacreDocumentStore(Path(folder) / "documents.db", embedder=None, log=False) as store,
    ):
        store.write_documents(FILTERED)
        yield store, reference
    reference.shutdown()


@pytest.mark.slow
@settings(max_examples=200)
@given(filters=FILTERS)
def test_filters_mean_what_they_mean_in_haystack(
    filtered: tuple[NacreDocumentStore, InMemoryDocumentStore], filters: dict[str, Any]
) -> None:
    store, reference = filtered
    try:
        expected = reference.filter_documents(filters)
    except Exception as error:  # of whatever kind
        with pytest.raises(type(error)):
            store.filter_documents(filters)
        return
    assert store.filter_documents(filters) == expected
    assert store.count_documents_by_filter(filters) == len(expected)
    found = store.search_documents("harbour", mode="keyword", filters=filters, top_k=len(FILTERED))
    assert {each.id for each in found} == {each.id for each in expected}
    assert len(store.search_documents("harbour", filters=filters, top_k=3)) == min(3, len(expected))


@pytest.mark.parametrize("filters", [{"field": "meta.n", "value": 1}, {"operator": "XOR", "conditions": []}])
def test_a_filter_that_is_none_is_an_error(document_store: NacreDocumentStore, filters: dict[str, Any]) -> None:
    document_store.write_documents(FILTERED[:2])
    with pytest.raises(FilterError):
        document_store.filter_documents(filters)
    with pytest.raises(FilterError):
        document_store.search_documents("harbour", filters=filters)


@pytest.mark.slow
def test_filters_act_before_a_search_is_cut_off(path: Path) -> None:
    """The only matches are the last of thousands that a query finds."""
    with NacreDocumentStore(path, embedder=None, log=False) as store:
        many = [Document(id=f"many {at}", content="tide tide tide", meta={"rare": False}) for at in range(3_000)]
        few = [
            Document(id=f"few {at}", content=f"tide and much else {'more ' * at}", meta={"rare": at < 5})
            for at in range(1_200)
        ]
        store.write_documents([*many, *few])
        rare = {"field": "meta.rare", "operator": "==", "value": True}
        found = store.search_documents("tide", filters=rare, top_k=4)
        assert [each.id for each in found] == [each.id for each in few[:4]]
        assert len(store.search_documents("tide", filters=rare, top_k=1_000)) == 5
        others = {
            "field": "id",
            "operator": "in",
            "value": [each.id for each in few],
        }  # more than are looked up at once
        assert [each.id for each in store.search_documents("tide", filters=others, top_k=7)] == [
            each.id for each in few[:7]
        ]


# ---------------------------------------------------------------- retrievers

PLACES = [
    Document(id="1", content="The harbour of Porto is open at night", meta={"city": "Porto"}, embedding=[1.0, 0.0]),
    Document(id="2", content="Trams climb the hills of Lisbon", meta={"city": "Lisbon"}, embedding=[0.0, 2.0]),
    Document(id="3", content="The harbour of Lisbon has a ferry", meta={"city": "Lisbon"}, embedding=[0.6, 0.9]),
    Document(id="4", meta={"city": "Faro"}, blob=ByteStream(b"picture")),
]
IN_LISBON = {"field": "meta.city", "operator": "==", "value": "Lisbon"}


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_retriever_finds_documents(document_store: NacreDocumentStore, mode: str) -> None:
    document_store.write_documents(PLACES)
    retriever = NacreRetriever(document_store, mode=mode, top_k=2)
    found = retriever.run("harbour in Lisbon")["documents"]
    assert found[0].id == "3"
    assert len(found) <= 2
    scores = [each.score for each in found]
    assert None not in scores
    assert scores == sorted(scores, reverse=True)
    assert found[0] == Document.from_dict({**PLACES[2].to_dict(), "score": scores[0]})  # but for the score, as written
    assert [each.id for each in retriever.run("harbour", filters=IN_LISBON, top_k=1)["documents"]] == ["3"]
    assert retriever.run("harbour", top_k=0)["documents"] == []
    assert asyncio.run(retriever.run_async("harbour in Lisbon"))["documents"] == found


def test_filters_of_a_retriever(document_store: NacreDocumentStore) -> None:
    document_store.write_documents(PLACES)
    harbour = {"field": "content", "operator": "==", "value": PLACES[2].content}
    fixed = NacreRetriever(document_store, filters=IN_LISBON)
    assert {each.id for each in fixed.run("harbour trams")["documents"]} == {"2", "3"}
    in_porto = {"field": "meta.city", "operator": "==", "value": "Porto"}
    assert {each.id for each in fixed.run("harbour trams", filters=in_porto)["documents"]} == {"1"}
    merged = NacreRetriever(document_store, filters=IN_LISBON, filter_policy=FilterPolicy.MERGE)
    assert {each.id for each in merged.run("harbour trams", filters=harbour)["documents"]} == {"3"}


@pytest.mark.parametrize("similarity", ["cosine", "dot_product"])
def test_an_embedding_retriever_compares_the_documents_own(memory: nacre.Nacre, similarity: Any) -> None:
    store = NacreDocumentStore(memory, embedding_similarity_function=similarity)
    reference = InMemoryDocumentStore(embedding_similarity_function=similarity, shared=False)
    for each in (store, reference):
        each.write_documents(PLACES)
    retriever = NacreEmbeddingRetriever(store, top_k=3, return_embedding=True)
    for question in ([1.0, 0.1], [0.0, 1.0], [-1.0, -1.0]):
        found = retriever.run(question)["documents"]
        expected = reference.embedding_retrieval(question, top_k=3, return_embedding=True)
        assert [each.id for each in found] == [each.id for each in expected]
        assert [each.score for each in found] == pytest.approx([each.score for each in expected])
        assert asyncio.run(retriever.run_async(question))["documents"] == found
    reference.shutdown()
    (best,) = NacreEmbeddingRetriever(store).run([1.0, 0.0], filters=IN_LISBON, top_k=1)["documents"]
    assert (best.id, best.embedding) == ("3", None)
    assert retriever.run([0.0, 0.0])["documents"][0].score == 0.0
    with pytest.raises(nacre.InvalidInput, match="has 3 numbers"):
        retriever.run([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="non-empty"):
        retriever.run([])


@pytest.mark.parametrize("made", [NacreRetriever, NacreEmbeddingRetriever])
def test_what_a_retriever_cannot_do(document_store: NacreDocumentStore, made: Any) -> None:
    with pytest.raises(TypeError, match="NacreDocumentStore"):
        made(InMemoryDocumentStore(shared=False))
    with pytest.raises(ValueError, match="greater than 0"):
        made(document_store, top_k=0)
    with pytest.raises(ValueError, match="negative"):
        made(document_store).run([1.0] if made is NacreEmbeddingRetriever else "x", top_k=-1)


def test_a_pipeline_is_written_down_and_read_back(path: Path) -> None:
    with NacreDocumentStore(path, "papers", "dot_product", embedder="hashing", space="library") as store:
        pipeline = Pipeline()
        pipeline.add_component("write", DocumentWriter(store, policy=SKIP))
        pipeline.add_component(
            "search", NacreRetriever(store, "keyword", IN_LISBON, 3, filter_policy=FilterPolicy.MERGE)
        )
        pipeline.add_component("nearest", NacreEmbeddingRetriever(store, None, 2, return_embedding=True))
        written = pipeline.dumps()
        asked = {
            "write": {"documents": PLACES},
            "search": {"query": "harbour"},
            "nearest": {"query_embedding": [1.0, 0.0]},
        }
        pipeline.run({"write": asked["write"]} | {"search": asked["search"], "nearest": asked["nearest"]})
    again = Pipeline.loads(written, allowed_modules=["nacre.integrations.haystack"])
    assert again.dumps() == written
    answer = again.run(asked)
    assert [each.id for each in answer["search"]["documents"]] == ["3"]
    assert [each.id for each in answer["nearest"]["documents"]] == ["1", "3"]
    for name in ("search", "nearest"):
        again.get_component(name).document_store.close()
    again.get_component("write").document_store.close()


def test_a_store_on_an_open_engine_is_not_written_down(document_store: NacreDocumentStore) -> None:
    with pytest.raises(nacre.InvalidInput, match="give the path"):
        document_store.to_dict()


def test_documents_are_memories(path: Path) -> None:
    with nacre.open(path, embedder=Hashing()) as memory:
        NacreDocumentStore(memory).write_documents(PLACES)
        hit = memory.search("ferry of Lisbon", where=nacre.Filter(metadata={"city": "Lisbon"})).hits[0]
        assert hit.text == PLACES[2].content
        assert hit.memory.key == "haystack/documents/3/"
