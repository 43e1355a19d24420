"""The vectors of the reference store: those of its own model, and of further ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from nacre.errors import EmbedderMismatch
from nacre.query.ast import Condition, ParsedQuery
from nacre.ranking.passage_count import semantic_match
from nacre.ranking.scoring import best_first
from nacre.storage.reference.stored_memory import FurtherPassages, StoredMemory, blobs_of, token_blobs_of
from nacre.types.memory import Passages, Span
from nacre.types.search import Filter, Match

if TYPE_CHECKING:
    from nacre.types.memory import FloatMatrix, FloatVector


class VectorTables:
    """Implements what `nacre.interfaces.Store` says of vectors, for the store that has these memories."""

    _lock: AbstractContextManager[bool]
    _memories: dict[str, StoredMemory]
    _revision: int
    _live: Callable[[], list[StoredMemory]]
    _matches: Callable[[StoredMemory, Filter, Condition | None], bool]
    _having: Callable[[Callable[[StoredMemory], bool], Filter | None, int], list[tuple[str, str]]]
    _log: Callable[[str, str], None]

    def __init__(self) -> None:
        super().__init__()
        self._model: str | None = None
        self._token_model: str | None = None
        self._further_models: tuple[str, ...] = ()

    def model(self) -> str | None:
        return self._model

    def token_model(self) -> str | None:
        return self._token_model

    def further_models(self) -> tuple[str, ...]:
        return self._further_models

    def embed(
        self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str, token_model: str | None = None
    ) -> int:
        with self._lock:
            if model in self._further_models:
                return self._embed_further(passages, texts, model)
            self._adopt_model(model)
            keeps = self._keeps_tokens(token_model, passages.values())
            done = 0
            for memory_id, each in passages.items():
                stored = self._memories.get(memory_id)
                if stored is None or stored.memory.text != texts[memory_id]:
                    continue
                tokens = token_blobs_of(each) if keeps else None
                if stored.lacks_vectors or (tokens is not None and stored.lacks_tokens and stored.spans != each.spans):
                    self._memories[memory_id] = replace(
                        stored, spans=each.spans, blobs=blobs_of(each), token_blobs=tokens
                    )
                    self._log("embedded", memory_id)
                elif tokens is not None and stored.lacks_tokens:
                    self._memories[memory_id] = replace(stored, token_blobs=tokens)
                    self._revision += 1
                else:
                    continue
                done += 1
            return done

    def _embed_further(self, passages: Mapping[str, Passages], texts: Mapping[str, str], model: str) -> int:
        done = 0
        for memory_id, each in passages.items():
            stored = self._memories.get(memory_id)
            if stored is None or stored.memory.text != texts[memory_id] or not stored.lacks_vectors_of(model):
                continue
            found = FurtherPassages(each.spans, blobs_of(each))
            self._memories[memory_id] = replace(stored, further={**stored.further, model: found})
            if each.spans:
                self._log("embedded", memory_id)
            else:
                self._revision += 1
            done += 1
        return done

    def add_model(self, model: str) -> None:
        with self._lock:
            if model not in self._further_models:
                self._further_models += (model,)
                self._revision += 1

    def drop_model(self, model: str) -> None:
        with self._lock:
            if model in self._further_models:
                self._further_models = tuple(each for each in self._further_models if each != model)
                for memory_id, stored in self._memories.items():
                    further = {each: found for each, found in stored.further.items() if each != model}
                    self._memories[memory_id] = replace(stored, further=further)
                self._revision += 1

    def switch_model(self, model: str) -> None:
        with self._lock:
            if model != self._model:
                self._model, self._token_model = model, None
                self._memories = {
                    each: replace(stored, spans=None, blobs=(), token_blobs=None)
                    for each, stored in self._memories.items()
                }
                self._log("model switched", "")

    def switch_token_model(self, model: str) -> None:
        with self._lock:
            if model != self._token_model:
                self._token_model = model
                self._memories = {each: replace(stored, token_blobs=None) for each, stored in self._memories.items()}
                self._revision += 1

    def semantic(
        self,
        vector: FloatVector,
        model: str,
        question: ParsedQuery,
        where: Filter,
        limit: int,
        passages_weight: float = 0.0,
    ) -> list[Match]:
        from nacre.storage.vectors import cosines, unpack

        if model not in self._further_models:
            self._check_model(model)
        matches = []
        for stored in self._live():
            spans, blobs = self._passages_of(stored, model)
            if spans and self._matches(stored, where, question.must):
                scores = cosines(unpack(list(blobs)), vector)
                best = int(scores.argmax())
                cosine, span = float(scores[best]), spans[best]
                matches.append(semantic_match(stored.memory.id, cosine, span, len(scores), passages_weight))
        return best_first(matches)[:limit]

    def vectors(self, memory_id: str, model: str | None = None) -> FloatMatrix | None:
        from nacre.storage.vectors import unpack

        stored = self._memories.get(memory_id)
        blobs = () if stored is None else self._passages_of(stored, model)[1]
        return unpack(list(blobs)) if blobs else None

    def without_vectors(self, ids: Sequence[str], model: str | None = None) -> set[str]:
        return {each for each in ids if each in self._memories and self._memories[each].lacks_vectors_of(model)}

    def pending(self, where: Filter | None, limit: int, model: str | None = None) -> list[tuple[str, str]]:
        return self._having(lambda stored: stored.lacks_vectors_of(model), where, limit)

    def pending_count(self, where: Filter | None, model: str | None = None) -> int:
        return len(self.pending(where, len(self._memories), model))

    def _passages_of(self, stored: StoredMemory, model: str | None) -> tuple[Sequence[Span], Sequence[bytes]]:
        if model is None or model not in self._further_models:
            return stored.spans or (), stored.blobs
        return stored.further.get(model, FurtherPassages((), ()))

    def _known_further(self, given: Mapping[str, Passages]) -> dict[str, FurtherPassages]:
        """Without those of models that were not added."""
        return {
            model: FurtherPassages(each.spans, blobs_of(each))
            for model, each in given.items()
            if model in self._further_models
        }

    def _adopt_model(self, model: str | None) -> None:
        self._check_model(model)
        self._model = model

    def _check_model(self, model: str | None) -> None:
        if self._model not in (None, model):
            raise EmbedderMismatch(
                f"embedder: the vectors come from {self._model}, not from {model}; run `nacre reembed`"
            )

    def _keeps_tokens(self, model: str | None, given: Iterable[Passages | None]) -> bool:
        """Whether token vectors of this model can be stored. A store without any adopts the model."""
        if model is None or not any(each is not None and each.tokens is not None for each in given):
            return False
        if self._token_model is None:
            self._token_model = model
        return self._token_model == model
