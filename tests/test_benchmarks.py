"""The parts of the benchmarks that figures depend on, their command lines and their results. Nothing is timed here."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ENTRIES = sorted([*(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "__init__"), "scenarios"])
RESULTS = sorted(path.stem for path in (BENCHMARKS / "results").glob("*.json"))
TABLES_OF = {
    "quality": "benchmarks.common.quality_report",
    "speed": "benchmarks.common.speed_report",
    "postgres": "benchmarks.common.postgres_report",
    "scenarios": "benchmarks.scenarios.report",
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_has_help_and_is_in_the_readme(
    entry: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [entry, "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{entry}").main()
    assert ended.value.code == 0
    assert "--help" in capsys.readouterr().out
    assert f"benchmarks.{entry}" in (BENCHMARKS / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", RESULTS)
def test_every_page_of_results_is_generated_from_its_json(name: str) -> None:
    report = import_module("benchmarks.common.report")
    module = TABLES_OF.get(name.partition("-")[0])
    tables_of = None if module is None else import_module(module).tables
    figures = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text("utf-8"))
    assert (BENCHMARKS / "results" / f"{name}.md").read_text("utf-8") == report.page(figures, tables_of)


def test_every_rival_is_known_to_its_module() -> None:
    rivals = import_module("benchmarks.rivals")
    for name in rivals.QUALITY:
        assert callable(rivals.quality_rival(name).installed)  # which loads no package of the rival
    assert rivals.speed_engine("nacre").name == "nacre"


def test_percentiles_are_those_of_the_ordered_times_and_the_last_needs_a_hundred() -> None:
    timing = import_module("benchmarks.common.timing")
    hundred = [each / 1000 for each in range(100, 0, -1)]  # 100 ms down to 1
    assert timing.spread(hundred) == {"p50": 50.5, "p95": 96.0, "p99": 100.0, "asked": 100}
    assert timing.spread([0.004]) == {"p50": 4.0, "p95": 4.0, "p99": None, "asked": 1}


def test_ranks_are_fused_as_in_the_textbook() -> None:
    engine = import_module("benchmarks.rivals.base")
    # 1/61 + 1/62 for 7, 1/61 for 5, 1/62 for 3, 1/63 for 9
    assert engine.fused([[7, 3, 9], [5, 7]]) == [7, 5, 3, 9]


def test_a_tag_is_had_by_the_share_that_the_report_names() -> None:
    engine = import_module("benchmarks.rivals.base")
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
    exact_search = import_module("benchmarks.common.exact_search")
    monkeypatch.setattr(exact_search, "CACHE", tmp_path)
    few = Few()
    passing = range(0, 230, every)
    for question, found in zip(few.question_vectors, exact_search.nearest(few, 230)[tag], strict=True):
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
    charts = import_module("benchmarks.common.charts")
    lines = {"ours": [(1_000, 1.0), (10_000, 10.0), (100_000, 100.0)], "<b>": [(100_000, 99.0)], "none": []}
    drawn = ElementTree.fromstring(charts.log_log("a & b", lines))
    svg = "{http://www.w3.org/2000/svg}"
    ours = next(each for each in drawn.iter(f"{svg}polyline") if each.get("stroke-width") == "3.5")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, pair.split(",")) for pair in (ours.get("points") or "").split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert x1 > x0
    assert y1 < y0  # slower is higher up
    labels = {each.text: float(each.get("y") or 0) for each in drawn.iter(f"{svg}text")}
    assert abs(labels["ours 100 ms"] - labels["<b> 99.0 ms"]) >= charts.LABEL_PX
    assert not any((text or "").startswith("none") for text in labels)
