"""The tables of `benchmarks.postgres`, made from its figures: the store in PostgreSQL beside the one in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.common.report import Figures, Row, Tables
from benchmarks.common.speed_report import SHARES
from benchmarks.rivals.base import KINDS

FILE, SERVER = ENGINES = ("nacre-loaded", "nacre-postgres")
STORES = {FILE: "file", SERVER: "PostgreSQL"}


def tables(figures: Figures) -> Tables:
    rows: Sequence[Figures] = figures["rows"]
    return {
        "Search: p50 / p95 in ms, ten memories with their texts": list(latency(rows)),
        "Recall@10 of the vectors against exact search": list(recall(rows)),
        "Searches a second by several processes": list(several(rows, "searches_a_second", "processes")),
        "Memories remembered a second, with vectors at hand": list(several(rows, "written_a_second", "way")),
        "The same: processor time in \u00b5s a memory, of the processes that write and of the server": list(
            costs(rows)
        ),
        "Filling and disk": list(filling(rows)),
        "Circumstances": [*circumstances(rows), {"memories": "server", "store": figures.get("server", "")}],
    }


def latency(rows: Sequence[Figures]) -> Iterator[Row]:
    for memories, file, server in _pairs(rows):
        for kind in reversed(KINDS):
            for share, title in SHARES.items():
                taken = [_at(row, "latency_ms", kind, share) for row in (file, server)]
                if not any(taken):
                    continue
                plain = _at(server, "latency_ms", kind, "all")
                cells = {
                    STORES[name]: f"{each['p50']:.1f} / {each['p95']:.1f}" if each else ""
                    for name, each in zip(ENGINES, taken, strict=True)
                }
                ratio = f"{taken[1]['p50'] / taken[0]['p50']:.1f} ×" if all(taken) else ""
                slower = f"{taken[1]['p50'] / plain['p50']:.2f} ×" if taken[1] and plain and share != "all" else ""
                yield {
                    "memories": f"{memories:,}", "kind": kind, "filter": title, **cells,
                    "PostgreSQL / file": ratio, "of no filter": slower,
                }  # fmt: skip


def recall(rows: Sequence[Figures]) -> Iterator[Row]:
    for row in rows:
        if "recall" in row:
            cells = {title: f"{row['recall'][share]['at_10']:.3f}" for share, title in SHARES.items()}
            yield {"memories": f"{row['memories']:,}", "store": STORES[row["engine"]], **cells}


def costs(rows: Sequence[Figures]) -> Iterator[Row]:
    for row in rows:
        for way, client_us in row.get("written_client_us", {}).items():
            server_us = row.get("written_server_us", {}).get(way)
            yield {
                "memories": f"{row['memories']:,}", "store": STORES[row["engine"]], "way": way,
                "clients": f"{client_us:,}", "server": f"{server_us:,}" if server_us is not None else "",
            }  # fmt: skip


def several(rows: Sequence[Figures], field: str, title: str) -> Iterator[Row]:
    for memories, file, server in _pairs(rows):
        for way in {**file.get(field, {}), **server.get(field, {})}:
            found = [row.get(field, {}).get(way) for row in (file, server)]
            cells = {STORES[name]: f"{each:,.0f}" if each else "" for name, each in zip(ENGINES, found, strict=True)}
            ratio = f"{found[1] / found[0]:.2f} ×" if all(found) else ""
            one = server.get(field, {}).get("1")
            more = {"of one process": f"{found[1] / one:.2f} ×"} if one and found[1] else {}
            yield {"memories": f"{memories:,}", title: way, **cells, "PostgreSQL / file": ratio, **more}


def filling(rows: Sequence[Figures]) -> Iterator[Row]:
    told: dict[str, Callable[[Figures], float]] = {
        "memories a second": lambda row: row["built"]["stored"] / row["built"]["ingest_s"],
        "then indexes, s": lambda row: float(row["built"]["index_s"]),
        "bytes a memory": lambda row: row["disk"] / row["memories"],
    }
    for memories, file, server in _pairs(rows):
        for title, figure in told.items():
            cells = {
                STORES[name]: f"{figure(row):,.1f}" if title == "then indexes, s" else f"{figure(row):,.0f}"
                for name, row in zip(ENGINES, (file, server), strict=True)
                if "built" in row
            }
            ratio = ""
            if "built" in file and "built" in server and figure(file):
                ratio = f"{figure(server) / figure(file):.2f} ×"
            yield {"memories": f"{memories:,}", "what": title, **cells, "PostgreSQL / file": ratio}


def circumstances(rows: Sequence[Figures]) -> Iterator[Row]:
    for row in rows:
        built = row["built"]
        yield {
            "memories": f"{row['memories']:,}",
            "store": STORES[row["engine"]],
            "asked": f"{row['date']}, {row['commit']}",
            "filled": f"{built['date']}, {built['commit']}",
            "load before": row["load_before"],
        }


def _pairs(rows: Sequence[Figures]) -> Iterator[tuple[int, Figures, Figures]]:
    """By size: the figures of both stores, empty where one was not measured."""
    for memories in sorted({row["memories"] for row in rows}):
        of = {row["engine"]: row for row in rows if row["memories"] == memories}
        yield memories, of.get(FILE, {}), of.get(SERVER, {})


def _at(row: Figures, field: str, kind: str, share: str) -> Figures:
    found: Figures = row.get(field, {}).get(kind, {}).get(share, {})
    return found
