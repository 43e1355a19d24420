"""How fast Nacre remembers and searches, up to a million memories, beside other engines in the same run.

    python -m benchmarks.speed [--sizes 1000,10000,100000,1000000] [--engines nacre,qdrant-edge] [--keep DIR] [--merge]

Texts are sentences, vectors are the shipped model's up to 100,000 memories and made of these above; questions are
natural ones, full of common words (benchmarks/population.py). Every engine (benchmarks/engines/, one file each) is
filled by one process and searched by another that has done nothing else, so that memory is the engine's alone and a
crash loses one row. Searches give ten memories with their texts; the embedding of a question is not counted. Each
figure is of the best of five passes by median, because other work on the machine only ever slows a pass down. Where a
search takes long, fewer questions are asked, and the report says how many.

Engines need their packages: in an environment of its own,

    python -m venv rivals && rivals/bin/pip install -e '.[bench]' && rivals/bin/python -m benchmarks.speed

One that is not installed is left out, with a line that says so. One that is not filled within --build-minutes is
stopped; ours has no such limit. Stores are deleted in the end, or kept with --keep and used again by the next run
(delete a store's folder to have it filled anew, or say --reindex to build what is made from its rows).

With --merge, what is measured replaces the same engine and size in benchmarks/results/speed.json and the rest stays,
as far as it is of the same machine; each row has its own date and commit.
"""

from __future__ import annotations

import argparse
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

from benchmarks import plots, report, speed_tables, truth
from benchmarks.engines import ENGINES, asked
from benchmarks.engines.asked import Asked
from benchmarks.engines.engine import KINDS, ParsedQuery
from benchmarks.population import QUESTIONS, REAL_MAX, Population, population

SIZES = "1000,10000,100000,1000000"
QUERIES = 200
ASKING_S_MAX = 3_600.0
STARTED = time.perf_counter()
STORE, MARKER = "store", "built.json"

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Installed:
    """What is to be known of an engine without importing it: this process has no engine in its memory."""

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/train"))
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--engines", default=",".join(ENGINES), help="of: %(default)s")
    parser.add_argument("--questions", type=int, default=QUERIES)
    parser.add_argument("--build-minutes", type=float, default=10)
    parser.add_argument("--keep", type=Path, help="a folder in which stores stay for the next run")
    parser.add_argument("--reindex", action="store_true", help="of stores that were kept, build the indexes anew")
    parser.add_argument("--merge", action="store_true", help="into what was measured before")
    parser.add_argument("--no-imports", action="store_true", help="leave out what ours takes to embed and import")
    parser.add_argument("--real", type=int, default=REAL_MAX, help="sentences with real vectors; fewer for a try")
    parser.add_argument("--name", default="speed", help="of the results (default: %(default)s)")
    options = parser.parse_args()
    engines = installed(options.engines.split(","))
    sizes = sorted(int(size) for size in options.sizes.split(","))
    if not 0 < options.questions < QUESTIONS:
        parser.error(f"--questions: allowed are 1 to {QUESTIONS - 1}, the others of {QUESTIONS} are for warming up")
    run = Run(options.data, options.real, options.questions, 60 * options.build_minutes, options.keep, options.reindex)
    figures = before(options.name) if options.merge else {}
    about = report.circumstances()
    figures = {**about, "rows": figures.get("rows", []), "importing": figures.get("importing")}
    people = population(run.data, QUESTIONS, run.real)
    for size in sizes:
        with asked_at(run, people, size) as given:
            for engine in engines:
                row = {"engine": engine.name, "memories": size, **about, **measured(run, engine, size, given)}
                figures["rows"] = merged(figures["rows"], row)
                written(options.name, figures)
    if "nacre" in {engine.name for engine in engines} and not options.no_imports:
        say("nacre: embedding and imports")
        taken = delivered([sys.executable, "-m", "benchmarks.engines.ours", "--import", str(run.data)])
        figures["importing"] = {**about, **taken}
        written(options.name, figures)
    print(speed_tables.page(figures))


def installed(names: list[str]) -> list[Installed]:
    found = []
    for name in names:
        if name not in ENGINES:
            sys.exit(f"--engines: {name!r} is unknown; allowed: {', '.join(ENGINES)}")
        about = delivered([sys.executable, "-m", "benchmarks.engines", name])
        if "missing" in about:
            say(f"{name} is left out: {about['missing']}; --help says how to install it")
        else:
            found.append(Installed(name, about["version"], about["configuration"]))
    return found


# ---------------------------------------------------------------- one engine at one size


def measured(run: Run, engine: Installed, size: int, given: Path) -> Row:
    """Everything of one engine at one size, each part by a process of its own; what failed says how."""
    row: Row = {"version": engine.version, "configuration": engine.configuration, "load_before": load()}
    with place_of(run, engine, size) as place:
        store = place / STORE
        try:
            row["built"] = filled(run, engine, size, place)
            if "ended" in row["built"]:
                return row
            say(f"{engine.name}, {size:,}: searching")
            row |= delivered([sys.executable, "-m", "benchmarks.engines.ask", engine.name, str(store), str(given)])
            if engine.name == "nacre":
                say(f"{engine.name}, {size:,}: beside writes and in threads")
                row["ours"] = ours(store, given)
        except subprocess.SubprocessError as error:
            row["failed"] = said(error)
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
    """How the store was filled, now or by a run before."""
    store, marker = place / STORE, place / MARKER
    command = [sys.executable, "-m", "benchmarks.engines.build", engine.name, str(store), "--data", str(run.data)]
    command += ["--size", str(size), "--real", str(run.real)]
    with suppress(OSError):
        known: Row = json.loads(marker.read_text("utf-8"))
        if known["version"] == engine.version:
            if run.reindex:
                say(f"{engine.name}, {size:,}: building its indexes anew")
                known |= {**delivered([*command, "--index-only"]), **size_of(store)}
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
    """What a filling process told, and how it ended if not by itself. The clock starts when it is ready to begin."""
    lines: list[Row] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        clock = threading.Timer(seconds_max or 0, process.kill)
        start = time.perf_counter()
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # some engines print
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


def ours(store: Path, given: Path) -> Row:
    """In a copy, because it writes."""
    with tempfile.TemporaryDirectory(dir=store.parent, ignore_cleanup_errors=True) as place:
        copy = Path(place) / "copy"
        shutil.copytree(store, copy)
        return delivered([sys.executable, "-m", "benchmarks.engines.ours", str(copy), str(given)])


def delivered(command: list[str]) -> Row:
    """The last line of what a process says."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=ASKING_S_MAX)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def said(error: subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"failed with exit status {error.returncode}"
    return f"not done after {ASKING_S_MAX:.0f} s"


def load() -> float | None:
    """How busy the machine was: above the number of cores, times say little. None where it is not known."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def size_of(folder: Path) -> dict[str, int]:
    """What the files take on disk, and how long they say they are: some are made longer than what is in them."""
    every = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return {
        "disk_bytes": sum(512 * each.st_blocks if hasattr(each, "st_blocks") else each.st_size for each in every),
        "file_bytes": sum(each.st_size for each in every),
    }


# ---------------------------------------------------------------- what is asked, and what came of it


@contextmanager
def asked_at(run: Run, people: Population, size: int) -> Iterator[Path]:
    """The questions and what exact search finds for them, as files."""
    say(f"{size:,}: exact search")
    every = [ParsedQuery(text, vector) for text, vector in zip(people.questions, people.question_vectors, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        questions, others = every[: run.questions], every[run.questions :]
        asked.write(Path(folder), Asked(questions, others, truth.nearest(people, size)))
        yield Path(folder)


def before(name: str) -> Row:
    """What was measured on this machine before."""
    path = report.RESULTS / f"{name}.json"
    if not path.is_file():
        return {}
    figures: Row = json.loads(path.read_text("utf-8"))
    here = report.circumstances()["machine"]
    rows = [row for row in figures["rows"] if row.get("machine") == here]
    if len(rows) < len(figures["rows"]):
        say(f"{len(figures['rows']) - len(rows)} rows of {path} are of another machine and are dropped")
    return {**figures, "rows": rows}


def merged(rows: list[Row], new: Row) -> list[Row]:
    """By size, then in the order of engines."""
    order = list(ENGINES)
    kept = [row for row in rows if (row["engine"], row["memories"]) != (new["engine"], new["memories"])]
    return sorted([*kept, new], key=lambda row: (row["memories"], order.index(row["engine"])))


def written(name: str, figures: Row) -> None:
    report.keep(name, speed_tables.page(figures), figures)
    for kind in KINDS:
        plot = plots.log_log(f"{kind} search, p50 in ms, by number of memories", speed_tables.lines(figures, kind))
        (report.RESULTS / f"{name}-{kind}.svg").write_text(plot, "utf-8")


def say(line: str) -> None:
    print(f"{time.perf_counter() - STARTED:6.0f} s  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
