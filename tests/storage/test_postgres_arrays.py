"""Arrays that are sent to PostgreSQL have the bytes that psycopg gives them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgres_server import MISSING, NEEDED

if MISSING:
    pytest.skip(NEEDED, allow_module_level=True)

from psycopg.adapt import PyFormat, Transformer
from psycopg.types.array import ListBinaryDumper

from nacre.storage.postgres.arrays import ListDumper

LISTS = st.one_of(
    st.lists(st.text()),
    st.lists(st.binary()),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.integers(-40_000, 40_000)),
    st.lists(st.integers()),
    st.lists(st.booleans()),
    st.lists(st.floats(allow_nan=False)),
    st.lists(st.none() | st.text()),
    st.lists(st.none() | st.integers(0, 9)),
    st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2)),
)


@given(LISTS)
def test_an_array_has_the_same_type_and_bytes(values: list[Any]) -> None:
    sent = []
    for kind in (ListDumper, ListBinaryDumper):
        dumper = kind(list, Transformer()).upgrade(values, PyFormat.BINARY)
        sent.append((dumper.oid, dumper.dump(values)))
    assert sent[0] == sent[1]
