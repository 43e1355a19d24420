"""Passages of texts that are written: cut, and embedded if there is an embedder and it works."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nacre.analysis import chunking
from nacre.analysis.language import language_of
from nacre.engine.parts import Parts
from nacre.errors import EmbedderFailed, EmbedderMismatch
from nacre.interfaces import Embedder, FurtherEmbedder, TokenEmbedder
from nacre.types.memory import Memory, Passages, Span

KNOWN = 0.5  # the share of a text, at least, that a further model must have words for
_NOT_STORED = (
    "the texts were not stored: try again, or store them with `--defer-embeddings` and run `nacre reembed` later"
)
_log = logging.getLogger("nacre")


class Embedded(NamedTuple):
    """What the models made of a text. None, or a further model that is missing: it is embedded later."""

    passages: Passages | None = None
    further: Mapping[str, Passages] = {}


NOT_EMBEDDED = Embedded()


class PassageEmbedder:
    """`defer` leaves all vectors to `reembed`."""

    def __init__(self, parts: Parts, *, defer: bool) -> None:
        self._parts = parts
        self._defer = defer
        self._adds = parts.further is not None  # whether the store may not know the further model yet

    @property
    def at_once(self) -> bool:
        """Whether texts are embedded when they are written."""
        return self._parts.embedder is not None and not self._defer

    def of(self, memories: Iterable[Memory]) -> dict[str, Embedded]:
        """By id. If an embedder fails, the texts are stored anyway and embedded later.

        Where settings name a model or an endpoint of the user's own that fails, EmbedderFailed is raised instead.
        """
        embedder, further = self._parts.embedder, self._parts.further
        given = {each.id: each for each in memories}
        texts = {each: memory.text for each, memory in given.items()}
        if embedder is None or self._defer or not texts:
            return {}
        own: dict[str, Passages] = {}
        try:
            own = self._passages_for(embedder, texts)
        except EmbedderFailed as error:
            raise EmbedderFailed(f"{error}; {_NOT_STORED}") from error
        except EmbedderMismatch:
            raise
        except Exception as error:  # whatever the model's runtime raises, no memory is lost for it
            _log.warning("stored without vectors (%s); `nacre reembed` adds them", error)
        others: dict[str, Passages] = {}
        if further is not None:
            try:
                others = further_passages_of(further, texts, {each: memory.language for each, memory in given.items()})
            except Exception as error:
                _log.warning("stored without multilingual vectors (%s); `nacre reembed` adds them", error)
        return {
            each: Embedded(own.get(each), {further.fingerprint: others[each]} if further and each in others else {})
            for each in texts
        }

    def add_model(self) -> None:
        """Let the store keep vectors of the further model. Called before some are written."""
        further = self._parts.further
        if self._adds and self.at_once and further is not None:
            self._parts.store.add_model(further.fingerprint)
            self._adds = False

    def _passages_for(self, embedder: Embedder, texts: dict[str, str]) -> dict[str, Passages]:
        """With token vectors where the embedder has any and does not fail to make them."""
        tokens = self._parts.token_embedder
        if tokens is not None:
            try:
                return passages_of(embedder, tokens, texts)
            except (EmbedderFailed, EmbedderMismatch):
                raise
            except Exception as error:  # the vectors alone may still work
                _log.warning("stored without token vectors (%s); `nacre reembed` adds them", error)
        return passages_of(embedder, None, texts)

    @property
    def model(self) -> str | None:
        return None if self._parts.embedder is None else self._parts.embedder.fingerprint

    @property
    def token_model(self) -> str | None:
        return None if self._parts.token_embedder is None else self._parts.token_embedder.token_fingerprint


def knows(embedder: FurtherEmbedder, text: str, language: str | None = None) -> bool:
    """Whether a further model knows the language of a text. Where that is not clear, its vocabulary tells."""
    language = language or language_of(text)
    return (language is None or language in embedder.languages) and embedder.vocabulary_coverage(text) >= KNOWN


def further_passages_of(
    embedder: FurtherEmbedder, texts: Mapping[str, str], languages: Mapping[str, str | None] = MappingProxyType({})
) -> dict[str, Passages]:
    """Passages by a further model: none of texts whose language it does not know. Some `languages` may be given."""
    known = {each: text for each, text in texts.items() if knows(embedder, text, languages.get(each))}
    found = passages_of(embedder, None, known) if known else {}
    if len(known) < len(texts):
        import numpy as np  # imported only where there are vectors

        nothing = Passages((), np.empty((0, 0), np.float32))
        return {each: found.get(each, nothing) for each in texts}
    return found


def passages_of(embedder: Embedder, tokens: TokenEmbedder | None, texts: dict[str, str]) -> dict[str, Passages]:
    """Cut and embed texts, all of them in one call of the embedder."""
    spans: dict[str, tuple[Span, ...]] = {}
    for memory_id, text in texts.items():
        # A word piece has at least one character, so a short text is one passage for sure.
        short = len(text) <= embedder.pieces_max
        spans[memory_id] = (
            (Span(0, len(text)),) if short else chunking.split_passages(text, embedder.weigh(text), embedder.pieces_max)
        )
    slices = [texts[each][span.start : span.end] for each, several in spans.items() for span in several]
    from nacre.storage.vectors import checked, checked_tokens  # numpy is imported only where there are vectors

    packed: list[bytes] | None = None
    if tokens is None:
        vectors = checked(embedder.embed_passages(slices), len(slices))
    else:
        made, packed = tokens.embed_with_tokens(slices)
        vectors = checked(made, len(slices))
        packed = checked_tokens(packed, len(slices), tokens.token_format)
    embedded: dict[str, Passages] = {}
    at = 0
    for memory_id, several in spans.items():
        end = at + len(several)
        embedded[memory_id] = Passages(several, vectors[at:end], None if packed is None else tuple(packed[at:end]))
        at = end
    return embedded
