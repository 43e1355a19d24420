"""LangChain's vector store and retriever, beyond LangChain's own suites; and embeddings in both directions."""

from __future__ import annotations

import asyncio
import importlib
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

import nacre
from nacre import Filter
from nacre.errors import InvalidInput
from nacre.integrations import langchain
from nacre.integrations.embeddings import LangChainEmbedder
from nacre.integrations.langchain import NacreEmbeddings, NacreRetriever, NacreVectorStore


class Letters(Embeddings):
    """Texts with the same letters are alike."""

    def __init__(self, model: str = "small") -> None:
        self.model = model
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[NacreVectorStore]:
    with NacreVectorStore(tmp_path / "documents.db", Letters()) as store:
        yield store


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


# ---------------------------------------------------------------- the vector store


def test_documents_come_back_as_they_were_added(store: NacreVectorStore) -> None:
    metadata = {"page": 3, "tags": ["a", {"b": None}], "share": 0.5, "final": True}
    added = Document(" two\nlines ", id="a/b %", metadata=metadata)
    assert store.add_documents([added, Document("another")])[0] == "a/b %"
    (read,) = store.get_by_ids(["a/b %", "a/b %", "missing"])
    assert read == added
    assert store.similarity_search("two lines", k=1) == [added]


def test_equal_texts_are_different_documents_and_an_id_names_one(store: NacreVectorStore) -> None:
    ids = store.add_texts(["same", "same"], [{"n": 1}, {"n": 2}])
    assert len(set(ids)) == 2
    store.add_texts(["changed"], ids=[ids[0]])
    assert store.get_by_ids(ids) == [
        Document("changed", id=ids[0]),
        Document("same", id=ids[1], metadata={"n": 2}),
    ]
    assert len(store.similarity_search("same", k=10)) == 2


def test_collections_of_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    with nacre.open(tmp_path / "a.db", embedder="hashing") as memory:
        one, other = (NacreVectorStore(memory, collection=name) for name in ("a", "a/b"))
        memory.remember("a boat of nobody")
        one.add_texts(["a boat"], ids=["x"])
        other.add_texts(["a boat, too"], ids=["x"])
        assert texts(one.similarity_search("boat")) == ["a boat"]
        assert texts(other.similarity_search("boat")) == ["a boat, too"]
        one.delete()
        assert one.get_by_ids(["x"]) == []
        assert texts(other.get_by_ids(["x"])) == ["a boat, too"]
        assert memory.stats().memories == 2


def test_filters_restrict_before_the_cut(store: NacreVectorStore) -> None:
    store.add_texts(
        [f"a red boat {number}" for number in range(30)],
        [{"n": number, "even": number % 2 == 0} for number in range(30)],
        ids=[f"{number:02}" for number in range(30)],
    )
    assert [each.metadata["n"] for each in store.similarity_search("red boat", filter={"n": 29})] == [29]
    assert len(store.similarity_search("red boat", k=20, filter={"even": True})) == 15
    within = Filter(key_prefixes=("1",), metadata={"even": True})
    found = store.similarity_search("red boat", k=20, filter=within)
    assert sorted(each.metadata["n"] for each in found) == [10, 12, 14, 16, 18]
    assert store.similarity_search("red boat", filter={"n": 99}) == []


def test_scores_are_likelihoods_and_a_threshold_cuts(store: NacreVectorStore) -> None:
    store.add_texts(["silent night", "jazz quiz buzz"])
    (first, high), (second, low) = store.similarity_search_with_score("listen, silent night")
    assert (first.page_content, second.page_content) == ("silent night", "jazz quiz buzz")
    assert 0 <= low < high <= 1
    found = store.similarity_search_with_relevance_scores("listen, silent night", score_threshold=(low + high) / 2)
    assert [document.page_content for document, _ in found] == ["silent night"]
    retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {}})
    assert texts(retriever.invoke("listen, silent night")) == ["silent night"]


def test_mmr_prefers_what_differs(store: NacreVectorStore) -> None:
    store.add_texts(["silent night", "night, silent", "silent nights", "inlets and tents"])
    nearest = store.similarity_search("silent night", k=2)
    assert set(texts(nearest)) <= {"silent night", "night, silent", "silent nights"}
    apart = store.max_marginal_relevance_search("silent night", k=2, lambda_mult=0.1)
    assert "inlets and tents" in texts(apart)
    assert store.max_marginal_relevance_search("silent night", k=1, lambda_mult=1.0) == nearest[:1]
    assert store.max_marginal_relevance_search("silent night", k=2, filter={"no": 1}) == []


def test_from_documents_needs_a_place(tmp_path: Path) -> None:
    documents = [Document("silent night", id="1")]
    with NacreVectorStore.from_documents(documents, Letters(), memory=tmp_path / "a.db", collection="songs") as store:
        assert store.get_by_ids(["1"]) == documents
    with NacreVectorStore(tmp_path / "a.db", Letters(), collection="songs") as again:
        assert texts(again.similarity_search("listen")) == ["silent night"]
    with pytest.raises(InvalidInput, match="memory: is missing"):
        NacreVectorStore.from_documents(documents, Letters())


def test_wrong_arguments_are_refused(store: NacreVectorStore) -> None:
    with pytest.raises(InvalidInput, match="ids: has 1 values for 2 texts"):
        store.add_texts(["a", "b"], ids=["1"])
    with pytest.raises(InvalidInput, match="metadatas: has 3 values for 2 texts"):
        store.add_texts(["a", "b"], [{}, {}, {}])
    with pytest.raises(InvalidInput, match="metadata: must be plain JSON"):
        store.add_texts(["a"], [{"at": {1}}])
    with pytest.raises(TypeError, match="fetch"):
        store.similarity_search("a", fetch=3)
    with pytest.raises(TypeError, match="embedder"):
        NacreVectorStore(store.memory, Letters())


def test_several_loops_and_threads_use_one_store(store: NacreVectorStore) -> None:
    async def use(name: str) -> None:
        await asyncio.gather(*(store.aadd_texts([f"{name} {number}"], ids=[f"{name}{number}"]) for number in range(10)))
        assert len(await store.aget_by_ids([f"{name}{number}" for number in range(10)])) == 10
        assert len(await store.asimilarity_search(name, k=5)) == 5
        await store.adelete([f"{name}0"])

    threads = [threading.Thread(target=asyncio.run, args=(use(name),)) for name in ("night", "day")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.similarity_search("night day", k=50)) == 18


# ---------------------------------------------------------------- the retriever


def test_the_retriever_finds_memories_of_any_door(tmp_path: Path) -> None:
    with nacre.open(tmp_path / "a.db", embedder="hashing") as memory:
        receipt = memory.remember("Ada moors at pier 7", tags=["boats"], metadata={"page": 4}, key="k")
        memory.remember("Ada likes tea", namespace="tastes")
        retriever = NacreRetriever(memory=memory, limit=1)
        (document,) = retriever.invoke("where does Ada moor?")
        assert (document.id, document.page_content) == (receipt.id, "Ada moors at pier 7")
        assert document.metadata["page"] == 4
        told = document.metadata["nacre"]
        assert (told["key"], told["tags"], told["space"]) == ("k", ["boats"], "default")
        assert 0 <= told["relevance"] <= 1
        assert len(retriever.invoke("Ada", limit=2)) == 2
        tastes = Filter(namespaces=("tastes",))
        assert texts(retriever.invoke("Ada", where=tastes)) == ["Ada likes tea"]
        assert texts(NacreRetriever(memory=memory, where=tastes, mode="keyword").invoke("Ada")) == ["Ada likes tea"]
        assert NacreRetriever(memory=memory, min_score=1.0).invoke("Ada") == []
        assert texts(asyncio.run(retriever.ainvoke("who likes tea?"))) == ["Ada likes tea"]


# ---------------------------------------------------------------- embeddings


def test_the_vectors_of_an_embedder_have_length_one_and_one_row_for_each_text() -> None:
    letters = Letters()
    embedder = LangChainEmbedder(letters)
    vectors = embedder.embed_passages([f"text {chr(97 + number % 26)}" for number in range(600)])
    assert vectors.shape == (600, 26)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert letters.calls == 3
    assert math.isclose(float(np.linalg.norm(embedder.embed_query("text"))), 1, abs_tol=1e-6)
    assert embedder.embed_query("123").tolist() == [0.0] * 26


def test_an_embedder_is_known_by_its_model(tmp_path: Path) -> None:
    small, large = LangChainEmbedder(Letters()), LangChainEmbedder(Letters("large"))
    assert small.fingerprint.endswith("Letters/small")
    assert small.fingerprint != large.fingerprint
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=6)).fingerprint.endswith("DeterministicFakeEmbedding/6")
    assert LangChainEmbedder(Letters("large"), name="mine").fingerprint == "langchain/mine"
    with NacreVectorStore(tmp_path / "a.db", Letters()) as store:
        store.add_texts(["silent night"])
    with pytest.raises(nacre.EmbedderMismatch):
        NacreVectorStore(tmp_path / "a.db", Letters("large"))


def test_long_texts_are_cut_into_passages(tmp_path: Path) -> None:
    embedder = LangChainEmbedder(Letters())
    assert sum(count for _, count in embedder.weigh("x" * 100 + " y")) == 6
    with nacre.open(tmp_path / "a.db", embedder=embedder) as memory:
        memory.remember("word " * 1_000 + "zebra " * 200)
        assert memory.stats().passages > 3


def test_nacres_embeddings_serve_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    def models(*_: Any) -> Any:
        from nacre.config.factory import Models
        from nacre.embedders.hashing import Hashing

        return Models(Hashing(), None)

    monkeypatch.setattr(langchain, "load_models", models)
    embeddings = NacreEmbeddings()
    assert embeddings.embed_documents([]) == []
    (vector,) = embeddings.embed_documents(["a boat"])
    assert vector == embeddings.embed_query("a boat")
    assert isinstance(vector[0], float)


def test_the_module_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.documents", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'nacre-memory\[langchain\]'"):
        importlib.reload(langchain)
