"""LangChain's own standard suites, with its own package: for vector stores and for retrievers, all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

import nacre
from nacre.integrations.langchain import NacreRetriever, NacreVectorStore

pytestmark = pytest.mark.anyio  # runs what is asynchronous


class TestVectorStoreWithLangChainsEmbeddings(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with NacreVectorStore(tmp_path / "documents.db", self.get_embeddings()) as store:
            yield store


class TestVectorStoreWithAnEmbedderOfNacre(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with NacreVectorStore(tmp_path / "documents.db", embedder="hashing", mode="semantic") as store:
            yield store


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def memories(self, tmp_path: Path) -> Iterator[None]:
        with nacre.open(tmp_path / "memories.db", embedder="hashing") as memory:
            memory.remember_many([f"Rule {number} of the harbour: moor in order of arrival" for number in range(5)])
            self._memory = memory
            yield

    @property
    def retriever_constructor(self) -> type[NacreRetriever]:
        return NacreRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self._memory}

    @property
    def retriever_query_example(self) -> str:
        return "rules of the harbour"

    @property
    def num_results_arg_name(self) -> str:
        return "limit"
