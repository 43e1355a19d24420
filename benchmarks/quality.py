"""How well do searches find the documents that a labelled set names as the answer, and do other products do better?

    python -m benchmarks.quality [--modes hybrid] [--sets locomo,scifact] [--set bm25_b=0.4] [--rivals all]
    python -m benchmarks.quality --half choose --sweep bm25_k1=0.9,1.2 --sweep bm25_b=0.3,0.4,0.75
    python -m benchmarks.quality --modes hybrid --ablate
    python -m benchmarks.quality --modes hybrid --multilingual --sets xquad-de:xquad-en,xquad-de

Each set gets its own store, and each scope of it its own space. A question searches its own space with the defaults,
except for what the options say. Means are over sets, and every set has the same weight. Rivals search the same
documents for the same questions, with the same vectors where they take any.

Vectors are computed once and cached under benchmarks/.cache/. Latency does not include the embedding of the question,
which takes equally long for everyone (the report says how long), and is measured with --jobs processes at once.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import nacre
from benchmarks.common import quality_report, report
from benchmarks.common.filled_store import LIMIT, Part, Way, embedder_for, filled, queries_of
from benchmarks.common.labelled_sets import ON, Document, LabelledSet, load
from benchmarks.common.paths import EVAL
from benchmarks.common.quality_report import SETS, Results
from benchmarks.common.scoring import Answer, Judged, judged
from benchmarks.rivals import QUALITY, quality_rival
from nacre.config import embedders
from nacre.config.settings import EMBEDDER
from nacre.types.recipe import CLASSIC, WEIGHTS, adjusted, weights_of
from nacre.types.search import Mode

QUERIES_TIMED = 50  # for the time to embed a question
INSTALL = "`pip install -e '.[bench]'`"
MORE_SIGNALS = ("echo", "rerank")  # signals whose fields do not end in _weight
# Weights of what no labelled set contains, or of what no search of it uses.
IDLE = ("summary", "tags", "source", "session", "relation", "usage")


# ---------------------------------------------------------------- contenders


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to do with each set."""

    data: Path
    ways: Mapping[
        str, tuple[Mode, Mapping[str, Any]]
    ]  # by name: mode, and the fields that differ from the default recipe
    part: Part
    limit: int
    title_as_summary: bool
    audited: bool
    threads: int
    multilingual: bool
    embedder: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The answers of some contenders to the questions of a set."""

    name: str
    documents: int
    found: Mapping[str, Judged]  # by contender


def engine_on(run: Run, name: str) -> Measured:
    labelled = load(run.data, name, audited=run.audited)
    ways = [Way(mode, adjusted(nacre.Recipe(), **special)) for mode, special in run.ways.values()]
    most: Mode = "keyword" if {way.mode for way in ways} == {"keyword"} else "hybrid"
    with filled(
        labelled,
        most,
        title_as_summary=run.title_as_summary,
        threads=run.threads,
        embedder_name=run.embedder,
        multilingual=run.multilingual,
    ) as store:
        answers = store.answers(ways, run.part, run.limit)
    found = (judged(each, labelled.qrels, labelled.queries) for each in answers)
    return Measured(name, len(labelled.documents), dict(zip(run.ways, found, strict=True)))


def rival_on(run: Run, rival: str, name: str) -> Measured:
    labelled = load(run.data, name, audited=run.audited)
    embedder = embedder_for(labelled, run.threads, run.embedder)
    scopes: dict[str | None, list[Document]] = defaultdict(list)
    for document in labelled.documents:
        scopes[document.scope].append(document)
    index = quality_rival(rival).indexed
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as opened:
        searches = {}
        for number, (scope, documents) in enumerate(scopes.items()):
            place = Path(folder, str(number))
            place.mkdir()
            searches[scope] = opened.enter_context(index(documents, embedder, place))
        for query in queries_of(labelled, run.part):
            start = time.perf_counter()
            documents_found = searches[query.scope](query.text, run.limit)
            answers.append(Answer(query.id, documents_found, time.perf_counter() - start))
    return Measured(name, len(labelled.documents), {rival: judged(answers, labelled.qrels, labelled.queries)})


def measured(run: Run, names: Sequence[str], rivals: Sequence[str], jobs: int) -> tuple[list[Measured], list[str]]:
    """All contenders on all sets, and a line for each failure. The largest sets come first, so that no core idles."""
    sizes = {name: sum(file.stat().st_size for file in (run.data / name.split(ON)[-1]).iterdir()) for name in names}
    names = sorted(names, key=lambda name: -sizes[name])
    done: list[Measured] = []
    failed: list[str] = []
    # Spawned, not forked: the packages of the rivals start threads.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        tasks: dict[Future[Measured], str] = {}
        for name in names:
            tasks[processes.submit(engine_on, run, name)] = f"{name}: nacre"
            tasks |= {processes.submit(rival_on, run, rival, name): f"{name}: {rival}" for rival in rivals}
        for number, task in enumerate(as_completed(tasks), 1):
            print(f"{number}/{len(tasks)} {tasks[task]}", file=sys.stderr, flush=True)
            if error := task.exception():
                traceback.print_exception(error)
                failed.append(f"{tasks[task]} FAILED ({type(error).__name__}: {error})")
            else:
                done.append(task.result())
    return done, failed


def in_order(done: Sequence[Measured], names: Sequence[str], contenders: Sequence[str]) -> Results:
    """By set, then by contender, in the order of the options."""
    found = {(each.name, contender): value for each in done for contender, value in each.found.items()}
    results = {
        name: {contender: found[name, contender] for contender in contenders if (name, contender) in found}
        for name in names
    }
    return {name: by_contender for name, by_contender in results.items() if by_contender}


# ---------------------------------------------------------------- recipes


def signals() -> dict[str, list[str]]:
    """For each signal, the weights that switch it off when they are 0."""
    strengths = [name for name, value in weights_of(nacre.Recipe()).items() if isinstance(value, float) and value > 0]
    named = [name.removesuffix("_weight") for name in strengths if name.endswith("_weight")]
    wanted = [name for name in (*MORE_SIGNALS, *named) if name not in IDLE]
    found = {signal: [name for name in strengths if signal in name.split("_")] for signal in wanted}
    return {signal: names for signal, names in found.items() if names}


def ablations(recipe: nacre.Recipe) -> dict[str, nacre.Recipe]:
    """Each signal off, each signal alone, and all off."""
    off: dict[str, dict[str, Any]] = {signal: dict.fromkeys(names, 0.0) for signal, names in signals().items()}
    none: dict[str, Any] = {name: 0.0 for names in off.values() for name in names}
    alone = {
        signal: {name: value for name, value in none.items() if name not in names} for signal, names in off.items()
    }
    return (
        {"": recipe}
        | {f"without {signal}": adjusted(recipe, **names) for signal, names in off.items()}
        | {f"{signal} alone": adjusted(recipe, **names) for signal, names in alone.items()}
        | {"without any": adjusted(recipe, **none)}
    )


def setting(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, where NAME is a field of the recipe."""
    name, _, given = text.partition("=")
    allowed = list(WEIGHTS)
    if name not in allowed or not given:
        raise ValueError(f"{text!r} is not NAME=VALUE with a field of the recipe: {', '.join(allowed)}")
    return name, given


def value(text: str) -> Any:
    """A Python literal where the text is one, otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def recipes_of(options: argparse.Namespace) -> dict[str, nacre.Recipe]:
    """Recipes by the text that distinguishes them. Raises ValueError."""
    fixed = {name: value(text) for name, text in map(setting, options.set)}
    named = {
        "default": adjusted(nacre.Recipe(), **fixed),
        "no-rerank": adjusted(nacre.Recipe(), **(fixed | {"maxsim_weight": 0, "rerank_weight": 0})),
        "maxsim": adjusted(nacre.Recipe(), **(fixed | {"rerank_weight": 0})),
        "classic": adjusted(CLASSIC, **fixed),
    }
    check_names("--recipes", options.recipes.split(","), list(named))
    base = {name if name != "default" else "": named[name] for name in options.recipes.split(",")}
    if options.ablate:
        return {f"{name} {one}": each for name, recipe in base.items() for one, each in ablations(recipe).items()}
    swept = {name: list(map(value, text.split(","))) for name, text in map(setting, options.sweep)}
    grid = [dict(zip(swept, values, strict=True)) for values in product(*swept.values())]
    return {
        " ".join([name, *(f"{field}={each}" for field, each in one.items())]): adjusted(recipe, **one)
        for name, recipe in base.items()
        for one in grid
    }


def special(recipe: nacre.Recipe) -> dict[str, Any]:
    """The weights that differ from the default recipe."""
    default = weights_of(nacre.Recipe())
    return {name: one for name, one in weights_of(recipe).items() if one != default[name]}


def try_out(recipes: Sequence[nacre.Recipe], limit: int) -> None:
    """Reject values that are not allowed now, not after an hour of embedding."""
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "empty.db", embedder="none") as memory:
        for recipe in recipes:
            memory.search("anything", mode="keyword", limit=limit, recipe=recipe)


# ---------------------------------------------------------------- command line


def main() -> None:
    parser = arguments()
    options = parser.parse_args()
    rivals = list(QUALITY) if options.rivals == "all" else [each for each in options.rivals.split(",") if each]
    try:
        run = run_of(options)
        there = sets_in(options.data)
        names = options.sets.split(",") if options.sets else there
        check_names("--sets", [part for name in names for part in name.split(ON)], there)
        check_names("--rivals", rivals, list(QUALITY))
    except (ValueError, nacre.InvalidInput) as error:
        parser.error(str(error))
    versions = {name: quality_rival(name).installed() for name in rivals}
    installed = [name for name, version in versions.items() if version is not None]
    absent = [name for name in rivals if name not in installed]
    notes = [f"Not installed and left out: {', '.join(absent)}. {INSTALL} installs them."] if absent else []
    if any(mode != "keyword" for mode, _ in run.ways.values()):
        took_ms = milliseconds_to_embed(load(run.data, names[0]), run.embedder)
        notes.append(f"Embedding a question takes {took_ms:.1f} ms, which the times of searches do not include.")
        if run.embedder != EMBEDDER:
            other = embedders.foreign(run.embedder)
            notes.append(f"Vectors by {other.fingerprint}, token vectors by {EMBEDDER}.")
    done, failed = measured(run, names, installed, options.jobs)
    results = in_order(done, names, [*run.ways, *installed])
    asked = "all questions" if run.part == "all" else f"the {run.part} half of the questions"
    products = ", ".join(dict.fromkeys(version for version in versions.values() if version)) or "no rivals"
    given = [
        *options.set,
        *(["the multilingual model"] if run.multilingual else []),
        *([options.fields] if options.fields else []),
        *(["audited"] if options.audited else []),
    ]
    notes = [f"{asked[0].upper()}{asked[1:]}, limit {run.limit}, {products}.", *notes]
    notes += [*([f"With {', '.join(given)}."] if given else []), *failed]
    documents = {each.name: each.documents for each in done}
    ways = {name: {"mode": mode, "recipe": special} for name, (mode, special) in run.ways.items()}
    figures = report.circumstances() | {"notes": notes, "ways": ways}
    figures |= quality_report.figures(results, documents, "nacre hybrid", installed)
    if options.ablate:
        figures |= quality_report.changes(results, next(iter(run.ways)))
    if options.name:
        print(report.keep(options.name, figures, quality_report.tables))
    else:
        print(report.page(figures, quality_report.tables))
    sys.exit(1 if failed else 0)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EVAL, help="the folder of labelled sets (default: %(default)s)")
    parser.add_argument(
        "--sets", help=f"comma-separated names (default: all); A{ON}B asks the questions of A on the documents of B"
    )
    parser.add_argument("--modes", default=",".join(get_args(Mode)), help="(default: %(default)s)")
    parser.add_argument(
        "--half",
        choices=("choose", "report", "all"),
        default="report",
        help="which questions to ask (default: %(default)s)",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set a field of the recipe")
    parser.add_argument(
        "--recipes",
        default="default",
        help="comma-separated: default, maxsim, no-rerank, classic (default: %(default)s)",
    )
    several = parser.add_mutually_exclusive_group()
    several.add_argument(
        "--sweep", action="append", default=[], metavar="NAME=A,B,…", help="try every value; several form a grid"
    )
    several.add_argument("--ablate", action="store_true", help="switch each signal off, and all others off")
    parser.add_argument("--rivals", default="", metavar="NAMES", help=f"all, or comma-separated: {', '.join(QUALITY)}")
    parser.add_argument("--limit", type=int, default=LIMIT, help="hits per question (default: %(default)s)")
    parser.add_argument("--fields", choices=("title=summary",), help="store titles as summaries instead of in the text")
    parser.add_argument("--audited", action="store_true", help="use corrected labels where a set has them")
    parser.add_argument(
        "--embedder",
        default=EMBEDDER,
        help="as in the settings, with the token vectors of minilm (default: %(default)s)",
    )
    parser.add_argument("--multilingual", action="store_true", help="use the multilingual model beside the embedder")
    parser.add_argument("--jobs", type=int, default=2, help="parallel processes (default: %(default)s)")
    parser.add_argument("--name", help="write the results to benchmarks/results/NAME.json and .md")
    return parser


def run_of(options: argparse.Namespace) -> Run:
    """Raises ValueError or InvalidInput."""
    modes = options.modes.split(",")
    check_names("--modes", modes, get_args(Mode))
    recipes = recipes_of(options)
    try_out(list(recipes.values()), options.limit)
    return Run(
        data=options.data,
        ways={
            " ".join(["nacre", mode, *name.split()]): (mode, special(recipe))
            for mode in modes
            for name, recipe in recipes.items()
            if mode == "hybrid" or name not in ("maxsim", "no-rerank", "classic")  # these differ in hybrid mode only
        },
        part=options.half,
        limit=options.limit,
        title_as_summary=options.fields is not None,
        audited=options.audited,
        threads=max(1, (os.cpu_count() or 1) // options.jobs),
        embedder=embedders.checked("--embedder", options.embedder),
        multilingual=options.multilingual,
    )


def check_names(option: str, names: Sequence[str], allowed: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(f"{option}: {', '.join(unknown)} is unknown; allowed: {', '.join(allowed)}")


def sets_in(folder: Path) -> list[str]:
    """The sets of a folder in the order of the report, then by name."""
    there = sorted(each.parent.name for each in folder.glob("*/corpus.jsonl.gz"))
    if not there:
        raise ValueError(f"--data: {folder} has no labelled sets; expected are folders with corpus.jsonl.gz")
    return sorted(there, key=lambda name: SETS.index(name) if name in SETS else len(SETS))


def milliseconds_to_embed(labelled: LabelledSet, embedder: str) -> float:
    model = embedders.named(embedder, 1)
    assert model is not None
    model.embed_query("warm")
    taken = []
    for query in labelled.queries[:QUERIES_TIMED]:
        start = time.perf_counter()
        model.embed_query(query.text)
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


if __name__ == "__main__":
    main()
