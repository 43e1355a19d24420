"""How fast does Nacre remember and search, up to a million memories, compared with other engines in the same run?

    python -m benchmarks.speed [--sizes 1000,10000,100000,1000000] [--engines nacre,qdrant-edge] [--keep DIR] [--merge]

Texts are real sentences. Up to 100,000 memories, vectors are those of the shipped model; beyond that, they are made
from these (benchmarks/common/population.py). One process fills an engine's store and another one searches it, so that
memory is the engine's alone and a crash loses one row. A search returns ten memories with their texts; embedding the
question is not included. Each figure is from the best of five passes by median, because other work on the machine
only slows a pass down. Slow engines are asked fewer questions, and the report says how many.

The other engines (benchmarks/rivals/) need their packages, in an environment of their own:

    python -m venv rivals && rivals/bin/pip install -e '.[bench]' && rivals/bin/python -m benchmarks.speed

An engine that is not installed is left out with a message. A rival that is not filled within --build-minutes is
stopped; Nacre has no such limit. Stores are deleted at the end unless --keep names a folder, where the next run finds
them (delete a store's folder to fill it again, or use --reindex to rebuild its indexes).

With --merge, new rows replace those of the same engine and size in benchmarks/results/speed.json, and the other rows of
the same machine stay. Each row has its own date and commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.common import charts, exact_search, report, speed_questions, speed_report
from benchmarks.common.paths import RESULTS, TRAIN
from benchmarks.common.population import QUESTIONS, REAL_MAX, Population, population
from benchmarks.common.speed_questions import Questions
from benchmarks.rivals import SPEED
from benchmarks.rivals.base import KINDS, Question

SIZES = "1000,10000,100000,1000000"
QUERIES = 200
SEARCHING_S_MAX = 3_600.0
STARTED = time.perf_counter()
STORE, MARKER = "store", "built.json"

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Installed:
    """What this process knows of an engine that it does not import."""

    name: str
    version: str
    configuration: str


@dataclass(frozen=True, slots=True)
class Run:
    data: Path
    real: int
    questions: int
    build_s_max: float
    keep: Path | None
    reindex: bool


def main() -> None:
    parser = report.parser(__doc__, "speed")
    parser.add_argument("--data", type=Path, default=TRAIN, help="folder of SQuAD and QMSum (default: %(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="numbers of memories (default: %(default)s)")
    parser.add_argument("--engines", default=",".join(SPEED), help="comma-separated (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=QUERIES, help="measured ones (default: %(default)s)")
    parser.add_argument("--build-minutes", type=float, default=10, help="limit for rivals (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="folder in which stores stay for the next run")
    parser.add_argument("--reindex", action="store_true", help="rebuild the indexes of kept stores")
    parser.add_argument("--merge", action="store_true", help="keep the rows of earlier runs")
    parser.add_argument("--no-imports", action="store_true", help="skip embedding and imports of Nacre")
    parser.add_argument("--real", type=int, default=REAL_MAX, help="sentences with real vectors (default: %(default)s)")
    options = parser.parse_args()
    engines = installed(options.engines.split(","))
    sizes = sorted(int(size) for size in options.sizes.split(","))
    if not 0 < options.questions < QUESTIONS:
        parser.error(
            f"--questions: allowed are 1 to {QUESTIONS - 1}; the rest of the {QUESTIONS} questions are for warming up"
        )
    run = Run(options.data, options.real, options.questions, 60 * options.build_minutes, options.keep, options.reindex)
    figures = earlier(options.name) if options.merge else {}
    about = report.circumstances()
    figures = {**about, "rows": figures.get("rows", []), "importing": figures.get("importing")}
    people = population(run.data, QUESTIONS, run.real)
    for size in sizes:
        with questions_at(run, people, size) as given:
            for engine in engines:
                row = {"engine": engine.name, "memories": size, **about, **measured(run, engine, size, given)}
                figures["rows"] = merged(figures["rows"], row)
                write(options.name, figures)
    if "nacre" in {engine.name for engine in engines} and not options.no_imports:
        say("nacre: embedding and imports")
        taken = output_of([sys.executable, "-m", "benchmarks.common.speed_nacre_extra", "--import", str(run.data)])
        figures["importing"] = {**about, **taken}
    print(write(options.name, figures))


def installed(names: list[str]) -> list[Installed]:
    found = []
    for name in names:
        if name not in SPEED:
            sys.exit(f"--engines: {name!r} is unknown; allowed: {', '.join(SPEED)}")
        about = output_of([sys.executable, "-m", "benchmarks.rivals", name])
        if "missing" in about:
            say(f"{name} is left out: {about['missing']}; --help says how to install it")
        else:
            found.append(Installed(name, about["version"], about["configuration"]))
    return found


# ---------------------------------------------------------------- one engine at one size


def measured(run: Run, engine: Installed, size: int, given: Path) -> Row:
    """All figures of one engine at one size, each part in its own process. A failure becomes part of the row."""
    row: Row = {"version": engine.version, "configuration": engine.configuration, "load_before": load()}
    with place_of(run, engine, size) as place:
        store = place / STORE
        try:
            row["built"] = filled(run, engine, size, place)
            if "ended" in row["built"]:
                return row
            say(f"{engine.name}, {size:,}: searching")
            process = [sys.executable, "-m", "benchmarks.common.speed_search"]
            row |= output_of([*process, engine.name, str(store), str(given)])
            if engine.name == "nacre":
                say(f"{engine.name}, {size:,}: during writes and in threads")
                row["nacre_only"] = nacre_only(store, given)
        except subprocess.SubprocessError as error:
            row["failed"] = reason(error)
            say(f"{engine.name}, {size:,}: {row['failed']}")
    return row


@contextmanager
def place_of(run: Run, engine: Installed, size: int) -> Iterator[Path]:
    if run.keep is not None:
        folder = run.keep / f"{engine.name}-{size}-{run.real}"
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Path(place)


def filled(run: Run, engine: Installed, size: int, place: Path) -> Row:
    """How the store was filled, now or by an earlier run."""
    store, marker = place / STORE, place / MARKER
    command = [sys.executable, "-m", "benchmarks.common.speed_fill", engine.name, str(store), "--data", str(run.data)]
    command += ["--size", str(size), "--real", str(run.real)]
    with suppress(OSError):
        known: Row = json.loads(marker.read_text("utf-8"))
        if known["version"] == engine.version:
            if run.reindex:
                say(f"{engine.name}, {size:,}: rebuilding the indexes")
                known |= {**output_of([*command, "--index-only"]), **size_of(store)}
                marker.write_text(json.dumps(known), "utf-8")
            return known
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()
    say(f"{engine.name}, {size:,}: filling")
    lines, ended = followed(command, None if engine.name == "nacre" else run.build_s_max)
    about = report.circumstances()
    built: Row = {"version": engine.version, "date": about["date"], "commit": about["commit"]}
    for line in lines:
        built |= line
    if ended is not None:
        return built | {"ended": ended}
    built |= size_of(store)
    marker.write_text(json.dumps(built), "utf-8")
    return built


def followed(command: list[str], seconds_max: float | None) -> tuple[list[Row], str | None]:
    """The lines of a filling process, and how it ended if not normally. Time counts from when it is ready."""
    lines: list[Row] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        clock = threading.Timer(seconds_max or 0, process.kill)
        start = time.perf_counter()
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # some engines print messages
            lines.append(json.loads(line))
            if seconds_max is not None and "ready" in lines[-1]:
                start = time.perf_counter()
                clock.start()
        code = process.wait()
        late = seconds_max is not None and time.perf_counter() - start >= seconds_max
        clock.cancel()
    if code == 0:
        return lines, None
    return lines, f"stopped after {(seconds_max or 0) / 60:g} minutes" if late else f"failed with exit status {code}"


def nacre_only(store: Path, given: Path) -> Row:
    """Measurements that write, in a copy of the store."""
    with tempfile.TemporaryDirectory(dir=store.parent, ignore_cleanup_errors=True) as place:
        copy = Path(place) / "copy"
        shutil.copytree(store, copy)
        return output_of([sys.executable, "-m", "benchmarks.common.speed_nacre_extra", str(copy), str(given)])


def output_of(command: list[str]) -> Row:
    """The last line that a process prints, which is JSON."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=SEARCHING_S_MAX)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def reason(error: subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"failed with exit status {error.returncode}"
    return f"stopped after {SEARCHING_S_MAX:.0f} s"


def load() -> float | None:
    """The load average: times are unreliable where it exceeds the number of cores. None where it is unknown."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def size_of(folder: Path) -> dict[str, int]:
    """Bytes on disk, and nominal file sizes: sparse files are longer than what they take."""
    every = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return {
        "disk_bytes": sum(512 * each.st_blocks if hasattr(each, "st_blocks") else each.st_size for each in every),
        "file_bytes": sum(each.st_size for each in every),
    }


# ---------------------------------------------------------------- questions and results


@contextmanager
def questions_at(run: Run, people: Population, size: int) -> Iterator[Path]:
    """A folder with the questions and their exact nearest neighbours."""
    say(f"{size:,}: exact search")
    every = [Question(text, vector) for text, vector in zip(people.questions, people.question_vectors, strict=True)]
    measured, warming = every[: run.questions], every[run.questions :]
    with tempfile.TemporaryDirectory() as folder:
        speed_questions.write(Path(folder), Questions(measured, warming, exact_search.nearest(people, size)))
        yield Path(folder)


def earlier(name: str) -> Row:
    """The results of earlier runs on this machine."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return {}
    figures: Row = json.loads(path.read_text("utf-8"))
    here = report.circumstances()["machine"]
    rows = [row for row in figures["rows"] if row.get("machine") == here]
    if len(rows) < len(figures["rows"]):
        say(f"{len(figures['rows']) - len(rows)} rows of {path} come from another machine and are dropped")
    return {**figures, "rows": rows}


def merged(rows: list[Row], new: Row) -> list[Row]:
    """Rows by size, then in the order of engines."""
    order = list(SPEED)
    kept = [row for row in rows if (row["engine"], row["memories"]) != (new["engine"], new["memories"])]
    return sorted([*kept, new], key=lambda row: (row["memories"], order.index(row["engine"])))


def write(name: str, figures: Row) -> str:
    """Write the JSON file, its page and the charts, and return the page."""
    for kind in KINDS:
        chart = charts.log_log(f"{kind} search, p50 in ms, by number of memories", speed_report.lines(figures, kind))
        (RESULTS / f"{name}-{kind}.svg").write_text(chart, "utf-8")
    return report.keep(name, figures, speed_report.tables)


def say(line: str) -> None:
    print(f"{time.perf_counter() - STARTED:6.0f} s  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
