"""The tables of `benchmarks.speed`, made from its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.common.report import Figures, Row, Tables
from benchmarks.rivals import SPEED
from benchmarks.rivals.base import KINDS, TAGS

SHARES = {"all": "all pass", **{tag: f"{100 / every:g} % pass" for tag, every in TAGS.items()}}
MEGABYTE = 1_000_000


def tables(figures: Figures) -> Tables:
    rows: Sequence[Figures] = figures["rows"]
    return {
        "Search: p50 / p95 / p99 in ms, ten memories with their texts": list(latency(rows)),
        "Search with filters: p50 / p95 in ms": list(filters(rows)),
        "Recall@10 of the vectors against exact search": list(recall(rows)),
        "Filling, disk, memory, opening": [filling(row) for row in rows],
        "Nacre alone": [*nacre_alone(rows), *imports(figures.get("importing"))],
        "Configurations": list(configurations(rows)),
    }


def lines(figures: Mapping[str, Any], kind: str) -> dict[str, list[tuple[float, float]]]:
    """For each engine, its points (memories, p50) of a chart."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in SPEED}
    for row in figures["rows"]:
        taken = _latency(row, kind, "all")
        if taken is not None:
            found[row["engine"]].append((row["memories"], taken["p50"]))
    return found


def latency(rows: Sequence[Figures]) -> Iterator[Row]:
    sizes = sorted({row["memories"] for row in rows})
    for kind in KINDS:
        for engine in SPEED:
            at = {row["memories"]: row for row in rows if row["engine"] == engine}
            cells = {f"{size:,}": _cell(at.get(size), kind, "all", ("p50", "p95", "p99")) for size in sizes}
            if any(cells.values()):
                yield {"kind": kind, "engine": _named(engine), **cells}


def filters(rows: Sequence[Figures]) -> Iterator[Row]:
    for kind in reversed(KINDS):
        for row in rows:
            cells = {title: _cell(row, kind, share, ("p50", "p95")) for share, title in SHARES.items()}
            if any(cells.values()):
                yield {"kind": kind, **_of(row), **cells}


def recall(rows: Sequence[Figures]) -> Iterator[Row]:
    for row in rows:
        if "recall" in row:
            yield _of(row) | {title: f"{row['recall'][share]['at_10']:.3f}" for share, title in SHARES.items()}


def filling(row: Figures) -> Row:
    built = row.get("built", {})
    stored, ingest_s = built.get("stored", 0), built.get("ingest_s")
    if "ended" in built:
        return _of(row) | {"per second": f"{built['ended']}, {stored:,} stored"}
    if not built:
        return _of(row) | {"per second": row["failed"]}
    raw = built["text_bytes"] + built["vector_bytes"]
    cells = dict.fromkeys(("per second", "index, s", "per second with index"), "–")  # filled by a run that was stopped
    if ingest_s is not None:
        index_s = built["index_s"]
        cells["per second"] = f"{stored / ingest_s:,.0f}"
        cells["index, s"] = f"{index_s:.1f}"
        cells["per second with index"] = f"{stored / (ingest_s + index_s):,.0f}"
    cells["disk, MB"] = f"{built['disk_bytes'] / MEGABYTE:,.1f}"
    cells["disk / raw data"] = f"{built['disk_bytes'] / raw:.2f} ×"
    if "open_ms" not in row:
        return _of(row) | cells | {"memory, MB": row["failed"]}
    memory = (row.get("memory_mb") or {}).get("after")
    cells["memory, MB"] = f"{memory['rss']:,.0f}" if memory else ""
    cells["anonymous, MB"] = f"{memory['anon']:,.0f}" if memory else ""
    cells["open, ms"] = f"{row['open_ms']:,.1f}"
    cells["first search, ms"] = f"{row['first_search_ms']:,.1f}"
    cells["first search of a process, ms"] = f"{row['first_search_of_process_ms']:,.1f}"
    return _of(row) | cells


def nacre_alone(rows: Sequence[Figures]) -> Iterator[Row]:
    for row in rows:
        if "nacre_only" in row:
            for what, measured in _nacre_alone(row["nacre_only"], row["built"]):
                yield {"memories": f"{row['memories']:,}", "what": what, "measured": measured}


def _nacre_alone(found: Figures, built: Figures) -> Iterator[tuple[str, str]]:
    if "without_embeddings_s" in built:
        yield "remember without embeddings", f"{built['stored'] / built['without_embeddings_s']:,.0f} per second"
    raw = f"{built['text_bytes'] / MEGABYTE:,.1f} MB of text and {built['vector_bytes'] / MEGABYTE:,.1f} MB of vectors"
    yield "raw data", raw
    embedded = found["embed_question_ms"]
    yield "embed a question", f"p50 {embedded['p50']:.1f} ms, p95 {embedded['p95']:.1f} ms"
    after = found["after_a_write_ms"]
    yield (
        "first hybrid search after one new memory",
        f"{after['first']:.1f} ms, again {after['warm']:.1f} ms; median difference {after['more']:+.1f} ms",
    )
    beside = found["beside_a_writer"]
    wrote = f"{beside['writes']} writes of {beside['memories_a_write']} memories in {beside['seconds']:.0f} s"
    times = f"p50 {beside['p50']:.1f} ms, p95 {beside['p95']:.1f} ms"
    yield "hybrid search while another process writes", f"{times}; {wrote}"
    threads = ", ".join(f"{rate:,.0f} with {number}" for number, rate in found["searches_a_second"].items())
    yield "hybrid searches per second, by threads", threads


def imports(importing: Mapping[str, Any] | None) -> Iterator[Row]:
    if not importing:
        return
    embedding = importing["embedding"]
    share = f"{embedding['remembered_a_second']:,.0f} per second, {embedding['share']:.0%} of the embedder alone"
    alone = f"{embedding['bare_a_second']:,.0f} texts per second"
    yield {"memories": "1,000", "what": "embedder alone", "measured": alone}
    yield {"memories": "1,000", "what": "remember with embeddings", "measured": share}
    for memories, peak in importing["peak_mb"].items():
        yield {"memories": f"{int(memories):,}", "what": "peak memory of an import", "measured": f"{peak} MB"}


def configurations(rows: Sequence[Figures]) -> Iterator[Row]:
    """The versions, and the commits at which rows were measured."""
    for name in SPEED:
        found = [row for row in rows if row["engine"] == name]
        if found:
            yield {
                "engine": _named(name),
                "version": found[-1]["version"],
                "configuration": found[-1]["configuration"],
                "measured": ", ".join(sorted({f"{row['commit']} ({row['date']})" for row in found})),
            }


def _of(row: Figures) -> dict[str, str]:
    return {"memories": f"{row['memories']:,}", "engine": _named(row["engine"])}


def _latency(row: Figures | None, kind: str, share: str) -> Figures | None:
    found: Figures | None = ((row or {}).get("latency_ms") or {}).get(kind, {}).get(share)
    return found


def _cell(row: Figures | None, kind: str, share: str, names: Sequence[str]) -> str:
    taken = _latency(row, kind, share)
    if row is None or taken is None:
        return ""
    times = " / ".join(_ms(taken[name]) for name in names)
    most = max(each["asked"] for shares in row["latency_ms"].values() for each in shares.values())
    return times if taken["asked"] == most else f"{times} ({taken['asked']} asked)"


def _ms(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _named(engine: str) -> str:
    return f"**{engine}**" if engine == next(iter(SPEED)) else engine
