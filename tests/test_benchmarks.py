"""The parts of the benchmarks that a figure's meaning hangs on. Nothing is timed here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _benchmarks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])


def test_percentiles_are_those_of_the_ordered_times_and_the_last_needs_a_hundred() -> None:
    timing = import_module("benchmarks.timing")
    hundred = [each / 1000 for each in range(100, 0, -1)]  # 100 ms down to 1
    assert timing.spread(hundred) == {"p50": 50.5, "p95": 96.0, "p99": 100.0, "asked": 100}
    assert timing.spread([0.004]) == {"p50": 4.0, "p95": 4.0, "p99": None, "asked": 1}


def test_ranks_are_fused_as_in_the_textbook() -> None:
    engine = import_module("benchmarks.engines.engine")
    # 1/61 + 1/62 for 7, 1/61 for 5, 1/62 for 3, 1/63 for 9
    assert engine.fused([[7, 3, 9], [5, 7]]) == [7, 5, 3, 9]


def test_a_tag_is_had_by_the_share_that_the_report_names() -> None:
    engine = import_module("benchmarks.engines.engine")
    tags = [tag for row in range(2_000) for tag in engine.tags_of(row)]
    assert {tag: tags.count(tag) for tag in engine.TAGS} == {"b2": 1_000, "b100": 20, "b1000": 2}


class Few:
    """A population of random vectors, in slices that tags do not begin with."""

    sentences = tuple(f"memory {row}" for row in range(230))
    questions = ("one", "other")

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.vectors = rng.standard_normal((230, 8)).astype(np.float32)
        self.question_vectors = rng.standard_normal((2, 8)).astype(np.float32)

    def memories(self, count: int) -> Any:
        for start in range(0, count, 37):
            end = min(start + 37, count)
            yield list(self.sentences[start:end]), self.vectors[start:end]


@pytest.mark.parametrize(("tag", "every"), [("", 1), ("b2", 2), ("b100", 100), ("b1000", 1000)])
def test_exact_search_finds_the_nearest_of_all_that_have_the_tag(
    tag: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = import_module("benchmarks.truth")
    monkeypatch.setattr(truth, "CACHE", tmp_path)
    few = Few()
    passing = range(0, 230, every)
    for question, found in zip(few.question_vectors, truth.nearest(few, 230)[tag], strict=True):
        best = sorted(passing, key=lambda row: -float(few.vectors[row] @ question))[:10]
        assert found == [few.sentences[row] for row in best]


def test_what_is_measured_anew_replaces_its_own_row_only() -> None:
    speed = import_module("benchmarks.speed")
    old = [{"engine": "nacre", "memories": 1, "x": 1}, {"engine": "lancedb", "memories": 1}]
    rows = speed.merged(old, {"engine": "nacre", "memories": 10})
    rows = speed.merged(rows, {"engine": "nacre", "memories": 1, "x": 2})
    assert rows == [
        {"engine": "nacre", "memories": 1, "x": 2},
        {"engine": "lancedb", "memories": 1},
        {"engine": "nacre", "memories": 10},
    ]


def test_a_picture_has_equal_steps_for_equal_factors_and_labels_that_do_not_touch() -> None:
    plots = import_module("benchmarks.plots")
    lines = {"ours": [(1_000, 1.0), (10_000, 10.0), (100_000, 100.0)], "<b>": [(100_000, 99.0)], "none": []}
    drawn = ElementTree.fromstring(plots.log_log("a & b", lines))
    svg = "{http://www.w3.org/2000/svg}"
    ours = next(each for each in drawn.iter(f"{svg}polyline") if each.get("stroke-width") == "3.5")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, pair.split(",")) for pair in (ours.get("points") or "").split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert x1 > x0
    assert y1 < y0  # slower is higher up
    labels = {each.text: float(each.get("y") or 0) for each in drawn.iter(f"{svg}text")}
    assert abs(labels["ours 100 ms"] - labels["<b> 99.0 ms"]) >= plots.LABEL_PX
    assert not any((text or "").startswith("none") for text in labels)
