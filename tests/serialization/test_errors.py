"""Errors survive JSON: a client raises what the library would."""

from __future__ import annotations

import inspect
import json

import pytest

from nacre import errors
from nacre.errors import AccessDenied, InvalidInput, NacreError, NotFound, QuotaExceeded, ServerError, StoreCorrupt
from nacre.serialization import encode
from nacre.serialization import errors as read

OWN: tuple[NacreError, ...] = (
    InvalidInput("limit", "is 0; a number from 1 to 1,000 is allowed"),
    InvalidInput("", "is no JSON"),
    InvalidInput("text", "is blank"),
    InvalidInput("a", "x; y; z", [{"line": 2, "field": None, "message": "is bad"}]),
    AccessDenied("space", "'b' is not allowed"),
    NotFound(("m1", "m2")),
    NotFound(("x" * 500,), "see `nacre entity list`", what="entity"),
    QuotaExceeded("quota_memories", 10, 9, "the space 'a' holds 10 memories; purge some"),
    StoreCorrupt("store: is damaged", ("m1",)),
    StoreCorrupt("store: is no database"),
)
PLAIN = [
    kind("what: is wrong; do this")
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, NacreError) and not issubclass(kind, InvalidInput | NotFound | QuotaExceeded)
]


@pytest.mark.parametrize("error", [*OWN, *PLAIN], ids=repr)
def test_an_error_comes_back(error: NacreError) -> None:
    found = read.error(json.loads(encode.dumps(encode.error(error))))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert encode.error(found) == encode.error(error)
    assert {**vars(found), "errors": None} == {**vars(error), "errors": None}


@pytest.mark.parametrize("kind", ["TooLarge", "InternalError", "", None])
def test_an_unknown_error_is_one_of_the_server(kind: str | None) -> None:
    found = read.error({"error": {"type": kind, "message": "the body is too large"}})
    assert type(found) is ServerError
    assert str(found) == "the body is too large"


@pytest.mark.parametrize("value", [None, 3, [], {}, {"error": "no"}, {"error": {}}, {"error": {"message": 3}}])
def test_what_tells_no_error_is_none(value: object) -> None:
    assert read.error(value) is None
