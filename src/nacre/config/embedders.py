"""What the setting `embedder` names: a model by name, a folder, or an endpoint.

minilm                                            a model that ships with Nacre
onnx:DIR                                          a sentence-transformers style folder
http://127.0.0.1:11434/v1#MODEL                   an endpoint like OpenAI's
http://127.0.0.1:11434/v1#MODEL?query=Q&passage=P with what the model needs before its texts
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from urllib.parse import unquote, urlsplit

from nacre.config import custom_models
from nacre.config.settings import ENDPOINT, FOLDER
from nacre.errors import EmbedderMismatch, InvalidInput
from nacre.ranking import late_interaction
from nacre.types.tokens import QueryTokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nacre.embedders.endpoint import EndpointModel
    from nacre.interfaces import Embedder, FurtherEmbedder, Store, TokenEmbedder
    from nacre.types.memory import FloatMatrix, FloatVector, Span
    from nacre.types.tokens import TokenFormat

EmbedderName: TypeAlias = Literal["minilm", "minilm-cuda", "hashing", "none"]
Multilingual: TypeAlias = Literal["auto", "off"]

_EXAMPLE = "http://127.0.0.1:11434/v1#nomic-embed-text"
ALLOWED = f"{', '.join(get_args(EmbedderName))}, {FOLDER}DIR, or an endpoint like {_EXAMPLE}"
_OPTIONS = ("query", "passage", "dimensions", "timeout")
_DIMENSIONS_MAX, _TIMEOUT_MAX_S = 65_536, 3600.0
_NEWEST = 8  # memories that are looked at for a vector to compare with


def checked(field: str, value: object) -> str:
    """The name of an embedder, with the whole path of a folder. Raises InvalidInput if it can be none."""
    if isinstance(value, str) and value.startswith(FOLDER):
        return FOLDER + str(_folder(field, value))
    if isinstance(value, str) and value.startswith(ENDPOINT):
        endpoint(field, value)
        return value
    if value not in get_args(EmbedderName):
        raise InvalidInput(field, f"{value!r} is unknown; allowed: {ALLOWED}")
    return str(value)


def named(name: str, threads: int) -> Embedder | None:
    """The embedder of this name. Its model is loaded, and its endpoint asked, when that is first needed."""
    match checked("embedder", name):
        case "minilm" | "minilm-cuda":  # the same model and the same vectors, computed on processors or on a GPU
            from nacre.embedders.minilm import MiniLM

            return MiniLM(threads=threads or None, cuda=name == "minilm-cuda")
        case "hashing":
            from nacre.embedders.hashing import Hashing

            return Hashing()
        case "none":
            return None
    from nacre.embedders.minilm import MiniLM

    return BesideTokens(foreign(name, threads), MiniLM(threads=threads or None))


def foreign(name: str, threads: int = 0) -> Embedder:
    """The model in a folder or behind an endpoint alone."""
    if name.startswith(FOLDER):
        from nacre.embedders.onnx_folder.embedder import OnnxFolder

        return OnnxFolder(_folder("embedder", name), threads=threads or None)
    from nacre.embedders.endpoint import KEY_VARIABLE, Endpoint

    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InvalidInput(KEY_VARIABLE, "has characters that no key has; set it again")
    return Endpoint(endpoint("embedder", name), key or None)


def _is_minilm(embedder: Embedder | None) -> bool:
    from nacre.embedders.minilm import MiniLM

    return isinstance(embedder, MiniLM)


def _installed(threads: int) -> FurtherEmbedder | None:
    """The model of the extra `multilingual`, where it is installed."""
    from nacre.embedders import use_multilingual

    return use_multilingual.UseMultilingual(threads or None) if use_multilingual.installed() else None


def beside(
    embedder: Embedder | None, multilingual: Multilingual | FurtherEmbedder, threads: int
) -> FurtherEmbedder | None:
    """The model that stands beside the embedder."""
    if isinstance(multilingual, str):
        if multilingual not in get_args(Multilingual):
            allowed = ", ".join(get_args(Multilingual))
            raise InvalidInput(
                "multilingual", f"{multilingual!r} is unknown; allowed: {allowed}, or a model of your own"
            )
        return _installed(threads) if multilingual == "auto" and _is_minilm(embedder) else None
    if embedder is None:
        raise InvalidInput(
            "multilingual", "stands beside an embedder, and none is configured; give one, or leave it out"
        )
    custom_models.check_further(multilingual)
    custom_models.check_vectors(multilingual)
    if multilingual.fingerprint == embedder.fingerprint:
        raise InvalidInput("multilingual", "is the embedder itself; give another model, or leave it out")
    return multilingual


def endpoint(field: str, value: str) -> EndpointModel:
    """The address, the model and its options."""
    from nacre.embedders.endpoint import KEY_VARIABLE, EndpointModel

    address, _, fragment = value.partition("#")
    model, _, options = fragment.partition("?")
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in address):
        raise InvalidInput(field, f"{address!r} is no URL of an endpoint; write it like {_EXAMPLE}")
    if parts.username or parts.password:
        raise InvalidInput(field, f"has a name or password in its URL; put the key into {KEY_VARIABLE}")
    if parts.query:
        raise InvalidInput(field, f"has a query in its URL; options follow the model, as in {_EXAMPLE}?query=Q")
    if not model.strip():
        raise InvalidInput(field, f"{address} names no model; write it after a #, like {_EXAMPLE}")
    return EndpointModel(address.rstrip("/"), unquote(model), **_options(field, options))


def _options(field: str, written: str) -> Mapping[str, Any]:
    said: dict[str, str] = {}
    for part in filter(None, written.split("&")):
        name, equals, value = part.partition("=")
        if name not in _OPTIONS or not equals:
            raise InvalidInput(field, f"{part!r} is no option of an endpoint; allowed: {', '.join(_OPTIONS)}")
        said[name] = unquote(value)
    found: dict[str, Any] = {name: said[name] for name in ("query", "passage") if name in said}
    if "dimensions" in said:
        found["dimensions"] = int(_number(field, "dimensions", said["dimensions"], 1, _DIMENSIONS_MAX, whole=True))
    if "timeout" in said:
        found["timeout_s"] = _number(field, "timeout", said["timeout"], 0.1, _TIMEOUT_MAX_S)
    return found


def _number(field: str, name: str, said: str, least: float, most: float, *, whole: bool = False) -> float:
    try:
        number = int(said) if whole else float(said)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        kind = "a whole number" if whole else "a number of seconds"
        raise InvalidInput(field, f"{name} is {said!r}; {kind} from {least:g} to {most:g} is allowed")
    return number


def _folder(field: str, value: str) -> Path:
    said = value.removeprefix(FOLDER)
    if not said.strip():
        raise InvalidInput(field, f"names no folder; write it like {FOLDER}/models/gte-small")
    return Path(os.path.abspath(Path(os.path.expandvars(said)).expanduser()))  # noqa: PTH100  links stay as they are


class _Around:
    """An embedder that does what another one does, but for what a subclass does otherwise."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def pieces_max(self) -> int:
        return self._embedder.pieces_max

    def weigh(self, text: str) -> Sequence[tuple[Span, int]]:
        return self._embedder.weigh(text)

    def vocabulary_coverage(self, text: str) -> float:
        return self._embedder.vocabulary_coverage(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> FloatVector:
        return self._embedder.embed_query(text)


# ---------------------------------------------------------------- token vectors beside


class BesideTokens(_Around):
    """An embedder with the token vectors of another one, which embeds each text as well.

    Passages are as long as both can represent. A question in a language that only the embedder knows has no tokens.
    """

    def __init__(self, embedder: Embedder, tokens: TokenEmbedder) -> None:
        super().__init__(embedder)
        self._tokens = tokens

    def held_to(self, store: Store, space: str) -> BesideTokens:
        """The same; an endpoint, which is known by its name only, is held to the vectors of the store."""
        from nacre.embedders.endpoint import Endpoint

        if not isinstance(self._embedder, Endpoint):
            return self
        return BesideTokens(SameDimensions(self._embedder, store, space), self._tokens)

    @property
    def pieces_max(self) -> int:
        return min(self._embedder.pieces_max, self._tokens.pieces_max)

    @property
    def token_fingerprint(self) -> str:
        return self._tokens.token_fingerprint

    @property
    def token_format(self) -> TokenFormat:
        return self._tokens.token_format

    def embed_with_tokens(self, texts: Sequence[str]) -> tuple[FloatMatrix, list[bytes]]:
        return self._embedder.embed_passages(texts), self._tokens.embed_with_tokens(texts)[1]

    def query_tokens(self, text: str) -> QueryTokens:
        if late_interaction.can_judge(self._tokens.vocabulary_coverage(text)):
            return self._tokens.query_tokens(text)
        import numpy as np

        return QueryTokens((), np.empty((0, self.token_format.dimensions), np.float32), np.empty(0, np.float32))

    def token_spans(self, text: str) -> list[Span]:
        return self._tokens.token_spans(text)


# ---------------------------------------------------------------- the same model as before?


class SameDimensions(_Around):
    """An embedder that is known by its name only, held to the length of the vectors that the store has.

    Another model under the same name would otherwise be compared with nothing.
    """

    def __init__(self, embedder: Embedder, store: Store, space: str) -> None:
        super().__init__(embedder)
        self._store = store
        self._space = space
        self._agreed: int | None = None  # a length that was compared

    def embed_passages(self, texts: Sequence[str]) -> FloatMatrix:
        vectors = self._embedder.embed_passages(texts)
        self._compare(vectors.shape[1])
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        vector = self._embedder.embed_query(text)
        self._compare(len(vector))
        return vector

    def _compare(self, dimensions: int) -> None:
        if dimensions == self._agreed:
            return
        stored = self._stored()
        if stored is None:
            return
        if stored != dimensions:
            raise EmbedderMismatch(
                f"embedder: {self.fingerprint} gives vectors of {dimensions} numbers, and those of the store have "
                f"{stored}: it is another model under the same name; name it differently and run `nacre reembed`"
            )
        self._agreed = dimensions

    def _stored(self) -> int | None:
        from nacre.interfaces import TimePage
        from nacre.types.search import Filter

        if self._store.model() != self.fingerprint:
            return None
        newest = self._store.by_time(Filter(spaces=(self._space,)), TimePage(_NEWEST))
        found = (self._store.vectors(each.id) for each in newest)
        return next((each.shape[1] for each in found if each is not None), None)
