"""Checks a caller's own embedder or reranker when a store is opened, before anything is written with it.

Only what the object has is looked at. No method is called: it might load a model or ask a server. Vectors are checked
when they are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from nacre.errors import InvalidInput
from nacre.types.tokens import TokenFormat

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
    TokenFormat: "a TokenFormat with an even number of dimensions and 4 or 8 bits",
}


def check_embedder(value: object) -> None:
    """Raises InvalidInput with everything that `nacre.interfaces.Embedder` asks for and the object does not have.

    An object with a part of `TokenEmbedder` must have all of it.
    """
    has_tokens = any(inspect.getattr_static(value, name, None) is not None for name in _TOKENS)
    _check("embedder", value, {**_EMBEDDER, **_TOKENS} if has_tokens else _EMBEDDER)


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
