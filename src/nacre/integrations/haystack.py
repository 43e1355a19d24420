"""A document store of Haystack whose documents are memories, and retrievers for it."""

# Haystack reads the types of `run` where the class is made, so annotations are no texts here.

import base64
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal

from nacre.engine.engine import Nacre
from nacre.errors import InvalidInput
from nacre.integrations import exact
from nacre.integrations.owner import Owner, in_thread
from nacre.integrations.parts import joined, names_of, needs
from nacre.types.memory import Json, Memory, NewMemory
from nacre.types.search import Filter, Mode
from nacre.validation import LIMITS, storable

with needs("haystack"):
    import numpy as np
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.dataclasses import ByteStream, SparseEmbedding
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError
    from haystack.utils.filters import document_matches_filter

Filters = dict[str, Any]  # as Haystack describes them
Similarity = Literal["cosine", "dot_product"]

_OWN = "haystack"  # the field of metadata for all that is no text and no meta
_NO_TEXT = "…"  # the text of a document that has none; no search for words finds it
_AT_ONCE = 10_000  # keys of one call
_FOUND_FIRST = 50


class NacreDocumentStore(Owner):
    """Documents as memories. Give it a path with options of `nacre.open`, or an engine that is open.

    A document comes back as it was written: content, meta of any JSON, embedding, sparse embedding, blob and score.
    Its content is the text of a memory, so every search of the store finds it. An index keeps its documents apart from
    those of others in the same space.
    """

    def __init__(
        self,
        memory: Nacre | str | PathLike[str],
        index: str = "documents",
        embedding_similarity_function: Similarity = "cosine",
        **options: Any,
    ) -> None:
        if embedding_similarity_function not in ("cosine", "dot_product"):
            raise InvalidInput("embedding_similarity_function", "must be cosine or dot_product")
        self._given, self._options = memory, options
        self.index = index
        self.embedding_similarity_function = embedding_similarity_function
        super().__init__(memory, **options)
        self._where = Filter(key_prefixes=(joined("haystack", index, ""),))
        self._writing = threading.Lock()

    def to_dict(self) -> dict[str, Any]:
        """The path and the options. A store on an open engine has none, and cannot be written down."""
        if isinstance(self._given, Nacre):
            raise InvalidInput("memory", "is an open engine, which cannot be serialized; give the path of the store")
        similarity = self.embedding_similarity_function
        given = {"memory": fspath(self._given), "index": self.index, "embedding_similarity_function": similarity}
        return dict(default_to_dict(self, **given, **self._options))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NacreDocumentStore":
        made: NacreDocumentStore = default_from_dict(cls, data)
        return made

    # ---- documents

    def count_documents(self) -> int:
        return self.memory.facets(where=self._where).total

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """All documents that match, in the order in which they were first written."""
        return list(self._matching(filters))

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents, and return how many. Without a policy, an id that is known is an error, and none is written.

        What is known is looked up before: if another process writes the same id in that moment, the later one stays.
        """
        if not isinstance(documents, list) or any(not isinstance(each, Document) for each in documents):
            raise ValueError("documents must be a list of Documents")
        new: dict[str, Document] = {}
        with self._writing:
            known = set() if policy == DuplicatePolicy.OVERWRITE else self._known(each.id for each in documents)
            for each in documents:
                if policy != DuplicatePolicy.OVERWRITE and (each.id in known or each.id in new):
                    if policy != DuplicatePolicy.SKIP:
                        raise DuplicateDocumentError(f"ID '{each.id}' already exists.")
                    continue
                new[each.id] = each
            self.memory.remember_many([self._to_memory(each) for each in new.values()])
        return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(new)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Forget documents. They can be restored until they are purged. Unknown ids are passed over."""
        keys = [self._key(each) for each in document_ids]
        for at in range(0, len(keys), _AT_ONCE):
            self.memory.forget(keys=keys[at : at + _AT_ONCE], missing_ok=True)

    def delete_all_documents(self) -> None:
        self.delete_documents([self._id(each) for each in self.memory.every(self._where)])

    def delete_by_filter(self, filters: Filters) -> int:
        """Forget all documents that match. Returns how many."""
        matching = [each.id for each in self._matching(filters)]
        self.delete_documents(matching)
        return len(matching)

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Set fields of meta of all documents that match. Returns how many."""
        matching = [replace(each, meta={**each.meta, **meta}) for each in self._matching(filters)]
        return self.write_documents(matching, DuplicatePolicy.OVERWRITE)

    # ---- metadata

    def count_documents_by_filter(self, filters: Filters) -> int:
        return sum(1 for _ in self._matching(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """How many different values each field has in the documents that match."""
        documents = self.filter_documents(filters)
        names = [each.removeprefix("meta.") for each in metadata_fields]
        return {name: len(_different(documents, name)) for name in names}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields of meta, each with the type of its latest value."""
        return {
            name: {"type": _type_name(value)}
            for each in self._matching(None)
            for name, value in each.meta.items()
            if value is not None
        }

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The least and the greatest value of a field; None where it has none, or some that cannot be compared."""
        name = metadata_field.removeprefix("meta.")
        values = [
            each.meta[name] for each in self._matching(None) if isinstance(each.meta.get(name), int | float | str)
        ]
        try:
            return {"min": min(values, default=None), "max": max(values, default=None)}
        except TypeError:
            return {"min": None, "max": None}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """A page of the different values of a field whose text has the search term, and how many there are in all."""
        different = _different(self._matching(filters), metadata_field.removeprefix("meta."))
        wanted = [each for each in different if (search_term or "").lower() in str(each).lower()]
        wanted.sort(key=lambda each: (str(each), type(each).__name__))
        return wanted[from_ : from_ + size], len(wanted)

    # ---- retrieval

    def search_documents(
        self, query: str, *, mode: Mode = "hybrid", filters: Filters | None = None, top_k: int = 10
    ) -> list[Document]:
        """The documents that answer a query, best first, with scores. Filters apply before anything is cut off."""
        if top_k <= 0:
            return []
        limit = min(top_k if not filters else max(4 * top_k, _FOUND_FIRST), LIMITS.results_max)
        while True:
            found, all_of_them = self._found(query, mode, limit, self._where)
            matching = [each for each in found if _matches(filters, each)]
            if len(matching) >= top_k or all_of_them or not filters:
                return matching[:top_k]
            if limit == LIMITS.results_max:
                return self._found_among(query, mode, filters, top_k)
            limit = min(4 * limit, LIMITS.results_max)

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        *,
        filters: Filters | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        """The documents whose own embedding is nearest, each compared. It needs no model of Nacre's."""
        if not query_embedding:
            raise ValueError("query_embedding should be a non-empty list of floats")
        documents = [each for each in self._matching(filters) if each.embedding is not None]
        if not documents or top_k <= 0:
            return []
        asked = np.asarray(query_embedding, np.float64)
        wrong = next((each for each in documents if len(each.embedding) != len(asked)), None)
        if wrong is not None:
            raise InvalidInput(
                "query_embedding",
                f"has {len(asked)} numbers, that of document {wrong.id} has {len(wrong.embedding)}; use one model",
            )
        vectors = np.asarray([each.embedding for each in documents], np.float64)
        scores = vectors @ asked
        if self.embedding_similarity_function == "cosine":
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
            scores = scores / np.where(lengths == 0, 1.0, lengths)
        best = [replace(documents[at], score=float(scores[at])) for at in np.argsort(-scores, kind="stable")[:top_k]]
        return best if return_embedding else [replace(each, embedding=None) for each in best]

    def _found(self, query: str, mode: Mode, limit: int, where: Filter) -> tuple[list[Document], bool]:
        """The best documents with their scores, and whether there are no more."""
        hits = self.memory.search(query, mode=mode, limit=limit, where=where, collapse=False, lens="none").hits
        return [replace(self._to_document(hit.memory), score=hit.score) for hit in hits], len(hits) < limit

    def _found_among(self, query: str, mode: Mode, filters: Filters | None, top_k: int) -> list[Document]:
        """Few match of very many that a search finds: only those are searched."""
        keys = [self._key(each.id) for each in self._matching(filters)]
        found: list[Document] = []
        for at in range(0, len(keys), LIMITS.filter_values_max):
            among = Filter(key_prefixes=keys[at : at + LIMITS.filter_values_max])
            found += self._found(query, mode, min(top_k, LIMITS.results_max), among)[0]
        return sorted(found, key=lambda each: -each.score)[:top_k]

    # ---- documents and memories

    def _matching(self, filters: Filters | None) -> Iterator[Document]:
        if filters and "operator" not in filters and "conditions" not in filters:
            raise FilterError(f"filters must have an operator, and a field and a value or conditions: {filters}")
        documents = (self._to_document(each) for each in self.memory.every(self._where))
        return (each for each in documents if _matches(filters, each))

    def _known(self, ids: Iterable[str]) -> set[str]:
        keys = [self._key(each) for each in ids]
        pages = (keys[at : at + _AT_ONCE] for at in range(0, len(keys), _AT_ONCE))
        return {self._id(each) for page in pages for each in self.memory.get(keys=page, missing_ok=True)}

    def _key(self, document_id: str) -> str:
        """The end makes sure that no key begins with another one, because filters take the beginnings of keys."""
        return joined("haystack", self.index, document_id, "")

    def _id(self, memory: Memory) -> str:
        return names_of(str(memory.key))[-2]

    def _to_memory(self, document: Document) -> NewMemory:
        content = document.content
        is_text = content is not None and bool(content.strip()) and storable(content)
        exact.check("meta", document.meta)
        own: dict[str, Json] = {} if is_text else exact.packed(self.memory, "content", content)
        if document.score is not None:
            own |= exact.packed(self.memory, "score", document.score)
        if document.embedding is not None:
            own |= exact.packed(self.memory, "embedding", _packed_vector(document.embedding))
        if document.sparse_embedding is not None:
            own |= exact.packed(self.memory, "sparse_embedding", document.sparse_embedding.to_dict())
        if (blob := document.blob) is not None:
            exact.check("blob.meta", blob.meta)
            own["blob"] = base64.b64encode(blob.data).decode()
            own |= exact.packed(self.memory, "blob_info", {"meta": blob.meta, "mime_type": blob.mime_type})
        meta = exact.packed(self.memory, "meta", document.meta)
        if "meta" in meta and _OWN not in document.meta:
            metadata = {**document.meta, _OWN: own} if own else dict(document.meta)
        else:
            metadata = {_OWN: own | meta}
        text = str(content) if is_text else _NO_TEXT
        return NewMemory(text=text, key=self._key(document.id), metadata=metadata)

    def _to_document(self, memory: Memory) -> Document:
        meta: dict[str, Any] = dict(memory.metadata)
        own: Any = meta.pop(_OWN, {})
        has = own.keys() | {each.removesuffix("_json") for each in own}
        sparse = exact.unpacked("sparse_embedding", own) if "sparse_embedding" in has else None
        blob = None
        if "blob" in has:
            blob = ByteStream(data=base64.b64decode(own["blob"]), **exact.unpacked("blob_info", own))
        return Document(
            id=self._id(memory),
            content=exact.unpacked("content", own) if "content" in has else memory.text,
            meta=exact.unpacked("meta", own) if "meta" in has else meta,
            score=exact.unpacked("score", own) if "score" in has else None,
            embedding=_vector(exact.unpacked("embedding", own)) if "embedding" in has else None,
            sparse_embedding=None if sparse is None else SparseEmbedding.from_dict(sparse),
            blob=blob,
        )

    # ---- the same for pipelines that are asynchronous

    async def count_documents_async(self) -> int:
        return await in_thread(self.count_documents)

    async def filter_documents_async(self, filters: Filters | None = None) -> list[Document]:
        return await in_thread(self.filter_documents, filters)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        return await in_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        await in_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self) -> None:
        await in_thread(self.delete_all_documents)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        return await in_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        return await in_thread(self.update_by_filter, filters, meta)

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        return await in_thread(self.count_documents_by_filter, filters)

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        return await in_thread(self.count_unique_metadata_by_filter, filters, metadata_fields)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        return await in_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        return await in_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        return await in_thread(self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters)

    async def search_documents_async(
        self, query: str, *, mode: Mode = "hybrid", filters: Filters | None = None, top_k: int = 10
    ) -> list[Document]:
        return await in_thread(self.search_documents, query, mode=mode, filters=filters, top_k=top_k)

    async def embedding_retrieval_async(
        self,
        query_embedding: list[float],
        *,
        filters: Filters | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        return await in_thread(
            self.embedding_retrieval,
            query_embedding,
            filters=filters,
            top_k=top_k,
            return_embedding=return_embedding,
        )


class _Retriever:
    """What both retrievers do with filters and with how many documents are asked for."""

    def __init__(
        self, document_store: NacreDocumentStore, filters: Filters | None, top_k: int, policy: FilterPolicy
    ) -> None:
        if not isinstance(document_store, NacreDocumentStore):
            raise TypeError("document_store must be a NacreDocumentStore")
        if top_k <= 0:
            raise ValueError(f"top_k must be greater than 0, not {top_k}")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = FilterPolicy.from_str(policy) if isinstance(policy, str) else policy

    def _asked(self, filters: Filters | None, top_k: int | None) -> dict[str, Any]:
        filters = apply_filter_policy(self.filter_policy, self.filters, filters)
        top_k = self.top_k if top_k is None else top_k
        if top_k < 0:
            raise ValueError(f"top_k must not be negative, but it is {top_k}")
        return {"filters": filters, "top_k": top_k}

    def _written(self, **own: Any) -> dict[str, Any]:
        policy = str(self.filter_policy)
        store = self.document_store
        return dict(
            default_to_dict(
                self, document_store=store, filters=self.filters, top_k=self.top_k, filter_policy=policy, **own
            )
        )


@component
class NacreRetriever(_Retriever):
    """Documents that answer a query: by words ("keyword"), by meaning ("semantic"), or both ("hybrid"), reranked."""

    def __init__(
        self,
        document_store: NacreDocumentStore,
        mode: str = "hybrid",
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        _Retriever.__init__(self, document_store, filters, top_k, filter_policy)
        self.mode: Any = mode

    def to_dict(self) -> dict[str, Any]:
        return self._written(mode=self.mode)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NacreRetriever":
        made: NacreRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        return {"documents": self.document_store.search_documents(query, mode=self.mode, **self._asked(filters, top_k))}

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        asked = self._asked(filters, top_k)
        return {"documents": await self.document_store.search_documents_async(query, mode=self.mode, **asked)}


@component
class NacreEmbeddingRetriever(_Retriever):
    """Documents whose own embedding is nearest to that of a query, by the model that embedded them."""

    def __init__(
        self,
        document_store: NacreDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        _Retriever.__init__(self, document_store, filters, top_k, filter_policy)
        self.return_embedding = return_embedding

    def to_dict(self) -> dict[str, Any]:
        return self._written(return_embedding=self.return_embedding)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "NacreEmbeddingRetriever":
        made: NacreEmbeddingRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        asked = self._asked(filters, top_k) | {"return_embedding": self.return_embedding}
        return {"documents": self.document_store.embedding_retrieval(query_embedding, **asked)}

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    async def run_async(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        asked = self._asked(filters, top_k) | {"return_embedding": self.return_embedding}
        return {"documents": await self.document_store.embedding_retrieval_async(query_embedding, **asked)}


# ---------------------------------------------------------------- values


def _matches(filters: Filters | None, document: Document) -> bool:
    return not filters or bool(document_matches_filter(filters=filters, document=document))


def _different(documents: Iterable[Document], name: str) -> list[Any]:
    """The values of a field, each once: 1, 1.0, "1" and true are four."""
    values: dict[str, Any] = {}
    for each in documents:
        if each.meta.get(name) is not None:
            values.setdefault(repr(_ordered(each.meta[name])), each.meta[name])
    return list(values.values())


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return {key: _ordered(value[key]) for key in sorted(value)}
        case list():
            return [_ordered(each) for each in value]
    return value


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "int", float: "float"}
    return names.get(type(value), "keyword")


def _packed_vector(vector: Sequence[float]) -> Json:
    """A vector in a third of the room that its digits take: in 32 bits a number where these are enough."""
    if not all(isinstance(each, float) for each in vector):
        return [*vector]
    exactly = np.asarray(vector, "<f8")
    with np.errstate(all="ignore"):
        short = exactly.astype("<f4")
        enough = short.astype("<f8").tobytes() == exactly.tobytes()
    return {"f4" if enough else "f8": base64.b64encode((short if enough else exactly).tobytes()).decode()}


def _vector(packed: list[float] | Mapping[str, str]) -> list[float]:
    if isinstance(packed, list):
        return packed
    ((kind, data),) = packed.items()
    return [float(each) for each in np.frombuffer(base64.b64decode(data), f"<{kind}")]
