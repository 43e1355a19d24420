"""Nacre in LangChain: a vector store, a retriever over any memories, and Nacre's own embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any, Self, Unpack
from uuid import uuid4

from nacre.config.factory import load_models
from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.integrations.embeddings import LangChainEmbedder
from nacre.integrations.owner import Owner
from nacre.integrations.parts import joined, names_of, needs
from nacre.interfaces import Embedder
from nacre.types.memory import JsonScalar, Memory, NewMemory
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Hit, Mode, SearchOptions, SearchRequest

with needs("langchain"):
    import numpy as np
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import ConfigDict, Field, SkipValidation

COLLECTION = "langchain"
RECIPE = Recipe(semantic_floor=-1.0, min_confidence=0.0)  # a query orders all documents, and leaves out none
_MANY = 1_000  # keys in one call


class NacreEmbeddings(Embeddings):
    """Nacre's own embeddings, which run on this machine, for use anywhere in LangChain."""

    @cached_property
    def _embedder(self) -> Embedder:
        embedder = load_models("minilm", None, 0).embedder
        assert embedder is not None
        return embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts. What is longer than 256 word pieces counts with its beginning."""
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist() if texts else []
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector


class NacreVectorStore(Owner, VectorStore):
    """A vector store of LangChain in a file of Nacre. It may be used from several threads and event loops.

    A document is a memory: its id is the end of the memory's key, its metadata are the memory's.

    Args:
        memory: The path of a file, which `close` closes again, or an open engine, which stays open.
        embedding: The embeddings to use in place of Nacre's own, for a path only.
        collection: The documents of one file that belong together.
        mode: How a question is answered: "hybrid", "semantic" or "keyword".
        options: Those of `nacre.open`, for a path only.
    """

    def __init__(
        self,
        memory: Nacre | str | PathLike[str],
        embedding: Embeddings | None = None,
        *,
        collection: str = COLLECTION,
        mode: Mode = "hybrid",
        **options: Any,
    ) -> None:
        if embedding is not None:
            options["embedder"] = LangChainEmbedder(embedding)
        super().__init__(memory, **options)
        self._embeddings = NacreEmbeddings() if embedding is None else embedding
        self._collection = collection
        self._mode: Mode = mode

    @property
    def embeddings(self) -> Embeddings:
        """The embeddings that were given, or Nacre's own."""
        return self._embeddings

    # ---- writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts. One whose id is known replaces the document of that id. Returns the ids."""
        _no_others(kwargs)
        several = list(texts)
        given = list(ids) if ids is not None else [None] * len(several)
        metadata = list(metadatas) if metadatas is not None else [{} for _ in several]
        for name, values in (("ids", given), ("metadatas", metadata)):
            if len(values) != len(several):
                raise InvalidInput(name, f"has {len(values)} values for {len(several)} texts; give one for each")
        named = [each or str(uuid4()) for each in given]
        self.memory.remember_many(
            NewMemory(text=text, key=self._key(one), metadata=data)
            for text, one, data in zip(several, named, metadata, strict=True)
        )
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Forget documents by id, or all of the collection. Ids that no document has are passed over."""
        _no_others(kwargs)
        keys = [memory.key for memory in self.memory.every(self._where(None)) if memory.key] if ids is None else None
        several = [self._key(each) for each in ids or ()] if keys is None else keys
        for start in range(0, len(several), _MANY):
            self.memory.forget(keys=several[start : start + _MANY], missing_ok=True)
        return True

    # ---- reading

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that have these ids, in this order."""
        keys = list(dict.fromkeys(map(self._key, ids)))
        found = []
        for start in range(0, len(keys), _MANY):
            found += [*self.memory.get(keys=keys[start : start + _MANY], missing_ok=True)]
        return [self._document(memory) for memory in found]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: Filter | Mapping[str, JsonScalar] | None = None,  # noqa: A002 - LangChain's name
        **kwargs: Any,
    ) -> list[Document]:
        """The documents that answer a question best.

        `filter` has values that the metadata must have, or is a filter of Nacre.
        """
        _no_others(kwargs)
        return [self._document(hit.memory) for hit in self._hits(query, k, filter)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filter | Mapping[str, JsonScalar] | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """The documents that answer a question best, with how likely each does, from 0 to 1."""
        _no_others(kwargs)
        return [(self._document(hit.memory), hit.relevance or 0.0) for hit in self._hits(query, k, filter)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return self.similarity_search_with_score(query, k, **kwargs)

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | Mapping[str, JsonScalar] | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Of the `fetch_k` documents that answer a question best, `k` that are unlike each other.

        The nearer `lambda_mult` is to 0, the more that counts. They are compared by `embeddings`.
        """
        _no_others(kwargs)
        found = [hit.memory for hit in self._hits(query, max(k, fetch_k), filter)]
        if not found:
            return []
        vectors = self._embeddings.embed_documents([memory.text for memory in found])
        question = np.array(self._embeddings.embed_query(query), np.float32)
        chosen = maximal_marginal_relevance(question, vectors, lambda_mult, k)
        return [self._document(found[place]) for place in chosen]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Nacre | str | PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A store at `memory` with these texts added. Further arguments are those of the class."""
        if memory is None:
            raise InvalidInput("memory", "is missing; give the path of a file or an open engine")
        store = cls(memory, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # ---- documents as memories

    def _key(self, document_id: str) -> str:
        return joined(self._collection, document_id)

    def _document(self, memory: Memory) -> Document:
        assert memory.key is not None
        return Document(memory.text, id=names_of(memory.key)[-1], metadata=dict(memory.metadata))

    def _where(self, given: Filter | Mapping[str, JsonScalar] | None) -> Filter:
        within = given if isinstance(given, Filter) else Filter(metadata=given or {})
        prefixes = tuple(joined(self._collection, each) for each in within.key_prefixes or ("",))
        return replace(within, key_prefixes=prefixes)

    def _hits(self, query: str, limit: int, given: Filter | Mapping[str, JsonScalar] | None) -> tuple[Hit, ...]:
        return self.memory.search(
            query,
            mode=self._mode,
            limit=limit,
            where=self._where(given),
            recipe=RECIPE,
            lens="none",
            collapse=False,
        ).hits


class NacreRetriever(BaseRetriever):
    """Finds memories of an open engine, whoever wrote them. `invoke` takes the options of `search`, too.

    The metadata of a document are those of the memory. Under "nacre" they have what else is known of it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: SkipValidation[Nacre]
    mode: Mode = "hybrid"
    limit: int = 4
    min_score: float = 0.0
    where: SkipValidation[Filter] = Field(default_factory=Filter)
    session: str | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's interface
        **options: Unpack[SearchOptions],
    ) -> list[Document]:
        asked = SearchRequest(
            query=query,
            mode=self.mode,
            limit=self.limit,
            min_score=self.min_score,
            where=self.where,
            session=self.session,
        )
        return [_found(hit) for hit in self.memory.search(asked, **options).hits]


def _found(hit: Hit) -> Document:
    memory = hit.memory
    known = {
        "id": memory.id,
        "key": memory.key,
        "space": memory.space,
        "kind": memory.kind,
        "namespace": memory.namespace,
        "tags": list(memory.tags),
        "source": memory.source,
        "session": memory.session,
        "created": memory.created.isoformat(),
        "score": hit.score,
        "relevance": hit.relevance,
    }
    return Document(memory.text, id=memory.id, metadata={**memory.metadata, "nacre": known})


def _no_others(arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise TypeError(f"unknown arguments: {', '.join(arguments)}")
