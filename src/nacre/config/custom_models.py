"""Checks a caller's own embedder or reranker when a store is opened, before anything is written with it.

An embedder is asked for a few vectors, too: wrong ones would be stored and compared with others before anyone notices.
One that fails then is not refused: a model or server may be away, and words are found without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nacre.errors import EmbedderError, InvalidInput
from nacre.types.tokens import TokenFormat

if TYPE_CHECKING:
    from nacre.interfaces import Embedder
    from nacre.types.memory import FloatMatrix

# By name: the type of a value, or the parameters of a method.
_EMBEDDER: Mapping[str, type | tuple[str, ...]] = {
    "fingerprint": str,
    "pieces_max": int,
    "weigh": ("text",),
    "vocabulary_coverage": ("text",),
    "embed_passages": ("texts",),
    "embed_query": ("text",),
}
_TOKENS: Mapping[str, type | tuple[str, ...]] = {  # of an embedder that has token vectors, too
    "token_fingerprint": str,
    "token_format": TokenFormat,
    "embed_with_tokens": ("texts",),
    "query_tokens": ("text",),
    "token_spans": ("text",),
}
_RERANKER: Mapping[str, type | tuple[str, ...]] = {
    "fingerprint": str,
    "vocabulary_coverage": ("question",),
    "scores": ("question", "texts"),
}
_ANYTIME = ("question", "texts", "goes_on")  # of `scores_while`, which a reranker may have
_KINDS = {
    str: "a text that is not empty",
    int: "a whole number from 1",
    frozenset: "a frozenset of the codes of languages, such as de",
    TokenFormat: "a TokenFormat with an even number of dimensions and 4 or 8 bits",
}


def check_embedder(value: object) -> None:
    """Raises InvalidInput with everything that `nacre.interfaces.Embedder` asks for and the object does not have.

    An object with a part of `TokenEmbedder` must have all of it.
    """
    has_tokens = any(inspect.getattr_static(value, name, None) is not None for name in _TOKENS)
    _check("embedder", value, {**_EMBEDDER, **_TOKENS} if has_tokens else _EMBEDDER)


_TEXTS = ("The kiln is hot.", "Rain fell on the river all night, and the ferry stayed at the pier.")
_LENGTH_OFF_MAX = 0.01  # of a normalised vector, in half precision or better
_NUMBER_OFF_MAX = 0.001  # of two vectors of one text


def check_vectors(embedder: Embedder) -> None:
    """Raises InvalidInput if it embeds, and its vectors are not what they must be.

    Embedders of Nacre's own, and what is derived from them, are not asked.
    """
    if any(base.__module__.partition(".")[0] == "nacre" for base in type(embedder).__mro__):
        return
    first, other = _TEXTS
    try:
        several, alone = embedder.embed_passages([first, other, first]), embedder.embed_passages([first])
        query = embedder.embed_query(first)
    except Exception:  # whatever it raises is said when it is needed
        return
    problem = _problem_of_vectors(several, alone, query)
    if problem is not None:
        raise InvalidInput("embedder", f'{type(embedder).__name__} {problem}; see "Your own embedder" in docs/api.md')


def _problem_of_vectors(several: FloatMatrix, alone: FloatMatrix, query: object) -> str | None:
    import numpy as np

    from nacre.storage.vectors import checked

    checks: tuple[tuple[str, object, int], ...] = (
        ("embed_passages", several, 3),
        ("embed_passages", alone, 1),
        ("embed_query", [query], 1),
    )
    found: list[FloatMatrix] = []
    for name, vectors, texts in checks:
        try:
            found.append(checked(vectors, texts))  # type: ignore[arg-type]
        except (EmbedderError, ValueError, TypeError) as error:
            return f"gives wrong vectors, by {name}: {str(error).removeprefix('embedder: ')}"
    passages, one, asked = found
    if passages.shape[1] != asked.shape[1]:
        return f"gives passages vectors of {passages.shape[1]} numbers, and questions vectors of {asked.shape[1]}"
    lengths = np.linalg.norm(np.concatenate([passages, asked]), axis=1)
    if np.abs(lengths - 1).max() > _LENGTH_OFF_MAX:
        length = lengths[np.abs(lengths - 1).argmax()]
        return f"gives a vector of length {length:.3g}; divide each by its length, so that it has length 1"
    if (
        np.abs(passages[2] - passages[0]).max() > _NUMBER_OFF_MAX
        or np.abs(one[0] - passages[0]).max() > _NUMBER_OFF_MAX
    ):
        how = "from call to call, or beside others"
        return f"gives one text different vectors {how}; a vector must depend on its text alone"
    return None


def check_further(value: object) -> None:
    """Raises InvalidInput with everything that `nacre.interfaces.FurtherEmbedder` asks for and the object lacks."""
    _check("multilingual", value, {**_EMBEDDER, "languages": frozenset})


def check_reranker(value: object) -> None:
    """Raises InvalidInput with everything that `nacre.interfaces.Reranker` asks for and the object does not have."""
    anytime = {"scores_while": _ANYTIME} if hasattr(value, "scores_while") else {}
    _check("reranker", value, {**_RERANKER, **anytime})


def _check(field: str, value: object, needed: Mapping[str, type | tuple[str, ...]]) -> None:
    kind = type(value).__name__
    if isinstance(value, type):
        raise InvalidInput(field, f"is the class {value.__name__}; give an object of it, such as {value.__name__}()")
    problems = [problem for name, what in needed.items() if (problem := _problem(value, name, what))]
    if problems:
        has = ", ".join(name if isinstance(what, type) else _call(name, what) for name, what in needed.items())
        see = f'see "Your own {field}" in docs/api.md'
        raise InvalidInput(field, f"{kind} is no {field}: {'; '.join(problems)}. It needs {has}; {see}")


def _problem(value: object, name: str, what: type | tuple[str, ...]) -> str | None:
    """What is wrong with an attribute; None if nothing is."""
    try:
        found = getattr(value, name)
    except AttributeError:
        return f"{name} is missing"
    except Exception as error:  # a property may raise anything
        return f"{name} fails ({error})"
    if isinstance(what, tuple):
        return _method_problem(name, found, what)
    if isinstance(found, TokenFormat) and what is TokenFormat:
        whole = found.dimensions > 0 and found.dimensions % 2 == 0 and found.bits in (4, 8)
        return None if whole else f"{name} is {found!r}, not {_KINDS[what]}"
    if isinstance(found, what) and not isinstance(found, bool) and found and not (isinstance(found, int) and found < 0):
        return None
    return f"{name} is {'a method' if callable(found) else repr(found)}, not {_KINDS[what]}"


def _method_problem(name: str, found: object, parameters: tuple[str, ...]) -> str | None:
    if not callable(found):
        return f"{name} is {found!r}, not a method"
    if inspect.iscoroutinefunction(found):
        return f"{name} is asynchronous"
    try:
        inspect.signature(found).bind(*parameters)
    except TypeError:
        return f"{name} does not take ({', '.join(parameters)})"
    except ValueError:  # built in C, without a signature
        return None
    return None


def _call(name: str, parameters: tuple[str, ...]) -> str:
    return f"{name}({', '.join(parameters)})"
