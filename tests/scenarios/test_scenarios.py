"""All worlds with the real models: what an agent was told rightly once, it must go on being told.

Floors lie .05 below what was measured. Raise them when a class gets better.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest

from benchmarks.common.report import table
from benchmarks.scenarios.asking import ask_all
from benchmarks.scenarios.report import by_class, tables
from benchmarks.scenarios.worlds import load

# By class, the least of a figure. What each figure means is said in `judge.Scores`.
FLOORS: Mapping[str, Mapping[str, float]] = {}


@pytest.mark.slow
@pytest.mark.timeout(900)  # a thousand questions, on a machine that runs other tests beside it
def test_no_class_falls_below_its_floors(tmp_path: Path) -> None:
    found = by_class(list(chain.from_iterable(ask_all(load(), cache=tmp_path))))
    short = [
        f"{name}, {figure}: {found[name][figure]} is below {floor}"
        for name, floors in FLOORS.items()
        for figure, floor in floors.items()
        if found[name][figure] < floor
    ]
    (rows,) = tables({"halves": {"all": found}}).values()
    assert not short, "\n".join([*short, "", table(rows)])
