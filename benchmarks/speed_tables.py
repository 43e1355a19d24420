"""The figures of benchmarks.speed as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.engines import ENGINES
from benchmarks.engines.engine import KINDS, TAGS

Row: TypeAlias = Mapping[str, Any]

SHARES = {"all": "all pass", **{tag: f"{100 / every:g} % pass" for tag, every in TAGS.items()}}
MEGABYTE = 1_000_000


def page(figures: Mapping[str, Any]) -> str:
    rows: Sequence[Row] = figures["rows"]
    sizes = sorted({row["memories"] for row in rows})
    parts = [", ".join(str(figures[name]) for name in ("date", "machine", "commit"))]
    others = sorted({f"{row['commit']} ({row['date']})" for row in rows} - {f"{figures['commit']} ({figures['date']})"})
    if others:
        parts.append(f"Some rows were measured at other commits: {', '.join(others)}; speed.json says which.")
    parts += ["## Searching: p50 / p95 / p99 in ms, ten memories with their texts", latency(rows, sizes)]
    parts += ["## With filters: p50 / p95 in ms", filters(rows)]
    parts += ["## Recall@10 of the vectors, against exact search", recall(rows)]
    parts += ["## Filling, disk, memory, opening", filling(rows)]
    parts += ["## Ours alone", alone(rows, figures.get("importing"))]
    parts += ["## Configurations", configurations(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def lines(figures: Mapping[str, Any], kind: str) -> dict[str, list[tuple[float, float]]]:
    """Of each engine: (memories, p50), where it was measured."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ENGINES}
    for row in figures["rows"]:
        taken = _latency(row, kind, "all")
        if taken is not None:
            found[row["engine"]].append((row["memories"], taken["p50"]))
    return found


def latency(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    heads = ["kind", "engine", *(f"{size:,}" for size in sizes)]
    body = []
    for kind in KINDS:
        for engine in ENGINES:
            at = {row["memories"]: row for row in rows if row["engine"] == engine}
            cells = [_cell(at.get(size), kind, "all", ("p50", "p95", "p99")) for size in sizes]
            if any(cells):
                body.append([kind, _named(engine), *cells])
    return table(heads, body)


def filters(rows: Sequence[Row]) -> str:
    body = []
    for kind in reversed(KINDS):
        for row in rows:
            cells = [_cell(row, kind, share, ("p50", "p95")) for share in SHARES]
            if any(cells):
                body.append([kind, f"{row['memories']:,}", _named(row["engine"]), *cells])
    return table(["kind", "memories", "engine", *SHARES.values()], body)


def recall(rows: Sequence[Row]) -> str:
    body = [
        [f"{row['memories']:,}", _named(row["engine"]), *(f"{row['recall'][share]['at_10']:.3f}" for share in SHARES)]
        for row in rows
        if "recall" in row
    ]
    return table(["memories", "engine", *SHARES.values()], body)


def filling(rows: Sequence[Row]) -> str:
    heads = ["memories", "engine", "a second", "index, s", "a second, all in all", "disk, MB", "of raw"]
    heads += ["memory, MB", "of it anonymous", "open, ms", "first search, ms", "of a process, ms"]
    return table(heads, [_filling(row) for row in rows])


def _filling(row: Row) -> list[str]:
    built = row.get("built", {})
    cells = [f"{row['memories']:,}", _named(row["engine"])]
    stored, ingest_s = built.get("stored", 0), built.get("ingest_s")
    if "ended" in built:
        return [*cells, f"{built['ended']}, {stored:,} stored"]
    if not built:
        return [*cells, row["failed"]]
    raw = built["text_bytes"] + built["vector_bytes"]
    if ingest_s is None:  # filled by a run that was stopped
        cells += ["–"] * 3
    else:
        index_s = built["index_s"]
        cells += [f"{stored / ingest_s:,.0f}", f"{index_s:.1f}", f"{stored / (ingest_s + index_s):,.0f}"]
    cells += [f"{built['disk_bytes'] / MEGABYTE:,.1f}", f"{built['disk_bytes'] / raw:.2f} ×"]
    if "open_ms" not in row:
        return [*cells, row["failed"]]
    memory = (row.get("memory_mb") or {}).get("after")
    cells += [f"{memory['rss']:,.0f}", f"{memory['anon']:,.0f}"] if memory else ["", ""]
    names = ("open_ms", "first_search_ms", "first_search_of_process_ms")
    return [*cells, *(f"{row[name]:,.1f}" for name in names)]


def alone(rows: Sequence[Row], importing: Mapping[str, Any] | None) -> str:
    body: list[list[str]] = []
    for row in rows:
        if "ours" in row:
            body += [[f"{row['memories']:,}", *each] for each in _alone(row)]
    if importing:
        embedding = importing["embedding"]
        share = f"{embedding['remembered_a_second']:,.0f} a second, {embedding['share']:.0%} of the bare embedder"
        body.append(["1,000", "bare embedder", f"{embedding['bare_a_second']:,.0f} texts a second"])
        body.append(["1,000", "remembering, embedding included", share])
        body += [
            [f"{int(memories):,}", "peak memory of an import", f"{peak} MB"]
            for memories, peak in importing["peak_mb"].items()
        ]
    return table(["memories", "what", "measured"], body)


def _alone(row: Row) -> Iterable[tuple[str, str]]:
    ours, built = row["ours"], row["built"]
    if "without_embeddings_s" in built:
        yield "remembering without embeddings", f"{built['stored'] / built['without_embeddings_s']:,.0f} a second"
    raw = f"{built['text_bytes'] / MEGABYTE:,.1f} MB of text and {built['vector_bytes'] / MEGABYTE:,.1f} MB of vectors"
    yield "raw", raw
    embedded = ours["embed_question_ms"]
    yield "embedding a question", f"p50 {embedded['p50']:.1f} ms, p95 {embedded['p95']:.1f} ms"
    after = ours["after_a_write_ms"]
    yield (
        "first hybrid search after one new memory",
        f"{after['first']:.1f} ms, the same again {after['warm']:.1f} ms; {after['more']:+.1f} ms in the median",
    )
    beside = ours["beside_a_writer"]
    wrote = f"{beside['writes']} writes of {beside['memories_a_write']} memories in {beside['seconds']:.0f} s"
    times = f"p50 {beside['p50']:.1f} ms, p95 {beside['p95']:.1f} ms"
    yield "hybrid search while another process writes", f"{times}; {wrote}"
    threads = ", ".join(f"{rate:,.0f} by {number}" for number, rate in ours["searches_a_second"].items())
    yield "hybrid searches a second, by threads", threads


def configurations(rows: Sequence[Row]) -> str:
    found = {row["engine"]: row for row in rows}
    return table(
        ["engine", "version", "configuration"],
        [[_named(name), found[name]["version"], found[name]["configuration"]] for name in ENGINES if name in found],
    )


def table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    if not body:
        return ""
    filled = [[*cells, *[""] * (len(heads) - len(cells))] for cells in body]
    return "\n".join(
        ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *("| " + " | ".join(row) + " |" for row in filled)]
    )


def _latency(row: Row | None, kind: str, share: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = ((row or {}).get("latency_ms") or {}).get(kind, {}).get(share)
    return found


def _cell(row: Row | None, kind: str, share: str, names: Sequence[str]) -> str:
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
    return f"**{engine}**" if engine == next(iter(ENGINES)) else engine
