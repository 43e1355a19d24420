"""How well searches find what others have labelled as the answer: recall, nDCG@10, MRR@10 and latency.

    python -m benchmarks.quality [--mode keyword] [--sets locomo,scifact] [--half report] [--set bm25_b=0.4]
    python -m benchmarks.quality --half choose --sweep bm25_k1=0.9,1.2 --sweep bm25_b=0.3,0.4,0.75

Each set goes into a store of its own, one space a scope, and each question is asked in its own space with the
defaults of a search, but for what the options say. Means are over sets, each set counting the same. Latency
includes the embedding of the question, and is of as many processes at once as --jobs says.

From Python, one store answers any number of recipes:

    with filled(load(folder, "scifact"), "keyword") as store:
        scores = [store.evaluate(Recipe(bm25_b=b)) for b in (0.3, 0.4, 0.75)]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import nacre
from benchmarks import report
from benchmarks.labelled import Document, Grades, Half, LabelledSet, half, load, ndcg, recall, reciprocal_rank
from nacre.embedders.minilm import MiniLM
from nacre.stores.sqlite import SqliteStore
from nacre.types import DEFAULT_SPACE, Mode

GROUPS: Mapping[str, Sequence[str]] = {
    "conversation": ("locomo", "locomo-session"),
    "documents": ("scifact", "nfcorpus", "hotpotqa-1k"),
    "code": ("cosqa",),
    "languages": (
        *("jsquad-ja", "cmrc2018-zh", "autorag-ko"),
        *(f"xquad-{language}" for language in ("en", "zh", "es", "ar", "th", "hi", "ru", "de")),
    ),
}
SETS = tuple(name for names in GROUPS.values() for name in names)
DATA = Path("../shared/eval")
LIMIT = 10
QUERIES_A_LINE = 1_000  # of progress

Part: TypeAlias = Half | Literal["all"]
Row: TypeAlias = Mapping[str, str]


class Answer(NamedTuple):
    query_id: str
    documents: Sequence[str]  # best first
    seconds: float


@dataclass(frozen=True, slots=True)
class Scores:
    queries: int
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Filled:
    """A store that holds a set."""

    labelled: LabelledSet
    memory: nacre.Nacre
    mode: Mode
    documents: Mapping[str, Sequence[str]]  # by memory id: equal texts are one memory, which stands for all of them
    clock: Clock

    def evaluate(self, recipe: nacre.Recipe | None = None, part: Part = "all", limit: int = LIMIT) -> Scores:
        return self.evaluate_all([recipe or nacre.Recipe()], part, limit)[0]

    def evaluate_all(self, recipes: Sequence[nacre.Recipe], part: Part = "all", limit: int = LIMIT) -> list[Scores]:
        return [score(answers, self.labelled.qrels) for answers in self.answers(recipes, part, limit)]

    def answers(
        self, recipes: Sequence[nacre.Recipe], part: Part = "all", limit: int = LIMIT
    ) -> Sequence[Sequence[Answer]]:
        """For each recipe, the answers to all queries. A query is embedded once for all recipes."""
        answers: list[list[Answer]] = [[] for _ in recipes]
        asked = [query for query in self.labelled.queries if part in ("all", half(query.id))]
        for number, query in enumerate(asked, 1):
            where = nacre.Filter(spaces=[query.scope or DEFAULT_SPACE])
            self.clock.ask(query.scope)
            for recipe, given in zip(recipes, answers, strict=True):
                start = time.perf_counter()
                hits = self.memory.search(query.text, mode=self.mode, limit=limit, where=where, recipe=recipe).hits
                seconds = time.perf_counter() - start
                given.append(Answer(query.id, [each for hit in hits for each in self.documents[hit.id]], seconds))
            if number % QUERIES_A_LINE == 0:
                progress(f"{self.labelled.name}: asked {number:,} of {len(asked):,}")
        return answers


class Clock:
    """A question is asked the day after the last document of its scope, whenever the benchmark runs."""

    def __init__(self, labelled: LabelledSet) -> None:
        self._last: dict[str | None, datetime] = {}
        for document in labelled.documents:
            if document.created is not None:
                last = self._last.get(document.scope, document.created)
                self._last[document.scope] = max(last, document.created)
        self._now = datetime.now(UTC)

    def ask(self, scope: str | None) -> None:
        if scope in self._last:
            self._now = self._last[scope] + timedelta(days=1)

    def __call__(self) -> datetime:
        return self._now


@contextmanager
def filled(
    labelled: LabelledSet,
    mode: Mode,
    *,
    title_as_summary: bool = False,
    threads: int = 0,
    namespaces: Sequence[str] = (),
) -> Iterator[Filled]:
    """A store in a temporary folder, gone afterwards. Namespaces are dealt out in turn."""
    clock = Clock(labelled)
    embedder = None if mode == "keyword" else MiniLM(threads=threads or None)
    with (
        tempfile.TemporaryDirectory() as folder,
        nacre.Nacre(SqliteStore(Path(folder) / "quality.db"), embedder, clock=clock, zone=UTC, log=False) as memory,
    ):
        new = (
            replace(
                new_memory(document, title_as_summary=title_as_summary),
                namespace=namespaces[number % len(namespaces)] if namespaces else "general",
            )
            for number, document in enumerate(labelled.documents)
        )
        ids: list[str] = []
        for receipts in memory.remember_batches(new):
            ids += [receipt.id for receipt in receipts]
            progress(f"{labelled.name}: remembered {len(ids):,} of {len(labelled.documents):,}")
        documents: dict[str, list[str]] = defaultdict(list)
        for memory_id, document in zip(ids, labelled.documents, strict=True):
            documents[memory_id].append(document.id)
        yield Filled(labelled, memory, mode, documents, clock)


def evaluate(
    labelled: LabelledSet, mode: Mode, recipe: nacre.Recipe | None = None, part: Part = "all", limit: int = LIMIT
) -> Scores:
    with filled(labelled, mode) as store:
        return store.evaluate(recipe, part, limit)


def new_memory(document: Document, *, title_as_summary: bool) -> nacre.NewMemory:
    return nacre.NewMemory(
        text=document.body if title_as_summary else document.text,
        summary=document.title if title_as_summary else None,
        space=document.scope or DEFAULT_SPACE,
        session=document.session,
        position=document.position,
        created=document.created,
    )


def score(answers: Sequence[Answer], qrels: Mapping[str, Grades]) -> Scores:
    judged = [(answer.documents, qrels[answer.query_id]) for answer in answers]
    taken = sorted(1000 * answer.seconds for answer in answers)
    return Scores(
        queries=len(answers),
        recall_5=statistics.fmean(recall(*each, 5) for each in judged),
        recall_10=statistics.fmean(recall(*each, 10) for each in judged),
        ndcg_10=statistics.fmean(ndcg(*each, 10) for each in judged),
        mrr_10=statistics.fmean(reciprocal_rank(*each, 10) for each in judged),
        p50_ms=statistics.median(taken),
        p95_ms=taken[int(len(taken) * 0.95)],
    )


def progress(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


# ---------------------------------------------------------------- many sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is done with each set."""

    data: Path
    mode: Mode
    recipes: Sequence[nacre.Recipe]
    part: Part
    limit: int
    title_as_summary: bool
    audited: bool
    threads: int


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    documents: int
    scores: Sequence[Scores]  # one for each recipe


def measured(run: Run, name: str) -> Measured:
    labelled = load(run.data, name, audited=run.audited)
    with filled(labelled, run.mode, title_as_summary=run.title_as_summary, threads=run.threads) as store:
        return Measured(name, len(labelled.documents), store.evaluate_all(run.recipes, run.part, run.limit))


def groups_of(sets: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The groups that were measured, and all sets together. What belongs to no group counts among all only."""
    found = {name: [each for each in sets if each.name in members] for name, members in GROUPS.items()}
    return {name: each for name, each in found.items() if each} | {"all sets": list(sets)}


def mean(sets: Sequence[Measured], at: int, metric: str) -> float:
    return statistics.fmean(getattr(each.scores[at], metric) for each in sets)


METRICS = {"R@5": "recall_5", "R@10": "recall_10", "nDCG@10": "ndcg_10", "MRR@10": "mrr_10"}


def score_rows(sets: Sequence[Measured]) -> list[Row]:
    rows: list[Row] = []
    for each in sets:
        (scores,) = each.scores
        rows.append(
            {"set": each.name, "documents": f"{each.documents:,}", "queries": f"{scores.queries:,}"}
            | {title: f"{getattr(scores, metric):.4f}" for title, metric in METRICS.items()}
            | {"p50 ms": f"{scores.p50_ms:.2f}", "p95 ms": f"{scores.p95_ms:.2f}"}
        )
    for name, members in groups_of(sets).items():
        means = {title: f"{mean(members, 0, metric):.4f}" for title, metric in METRICS.items()}
        rows.append({"set": f"mean, {name}"} | means)
    return rows


def sweep_rows(sets: Sequence[Measured], combinations: Sequence[str]) -> list[Row]:
    """nDCG@10 of each set and group for each combination; for conversations recall@5, too."""
    columns = {each.name: [each] for each in sets}
    columns |= {f"mean, {name}": members for name, members in groups_of(sets).items()}
    spoken = {*GROUPS["conversation"], "mean, conversation"}
    rows: list[Row] = []
    for at, combination in enumerate(combinations):
        row = {"recipe": combination}
        for name, members in columns.items():
            row[name] = f"{mean(members, at, 'ndcg_10'):.4f}"
            if name in spoken:
                row[f"{name} R@5"] = f"{mean(members, at, 'recall_5'):.4f}"
        rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


# ---------------------------------------------------------------- command line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="names with commas between them (default: all)")
    parser.add_argument("--mode", choices=get_args(Mode), default="keyword", help="(default: %(default)s)")
    parser.add_argument("--half", choices=("choose", "report", "all"), default="all", help="of the queries")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a field of the recipe")
    parser.add_argument("--sweep", action="append", default=[], metavar="NAME=A,B,…", help="every value, as a grid")
    parser.add_argument("--limit", type=int, default=LIMIT, help="hits asked for (default: %(default)s)")
    parser.add_argument("--fields", choices=("title=summary",), help="give titles as summaries, not in the text")
    parser.add_argument("--audited", action="store_true", help="corrected labels, where a set has them")
    parser.add_argument("--jobs", type=int, default=2, help="sets at a time (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    names = options.sets.split(",")
    if missing := [name for name in names if not (options.data / name / "corpus.jsonl.gz").is_file()]:
        parser.error(f"--sets: {', '.join(missing)} not found under {options.data}")
    try:
        fixed = {name: value(text) for name, text in map(setting, options.set)}
        swept = {name: list(map(value, text.split(","))) for name, text in map(setting, options.sweep)}
        grid = [dict(zip(swept, values, strict=True)) for values in product(*swept.values())]
        recipes = [nacre.Recipe(**(fixed | combination)) for combination in grid]
        try_out(recipes, options.limit)
    except (ValueError, nacre.InvalidInput) as error:
        parser.error(str(error))

    run = Run(
        data=options.data,
        mode=options.mode,
        recipes=recipes,
        part=options.half,
        limit=options.limit,
        title_as_summary=options.fields is not None,
        audited=options.audited,
        threads=max(1, (os.cpu_count() or 1) // options.jobs),
    )
    with ProcessPoolExecutor(options.jobs) as processes:
        sets = list(processes.map(partial(measured, run), names))

    about = report.circumstances()
    asked = f"{options.mode}, {options.half} queries, limit {options.limit}"
    given = [*options.set, *([options.fields] if options.fields else []), *(["audited"] if options.audited else [])]
    print(", ".join(about.values()))
    print(", ".join([asked, *given]), end="\n\n")
    if swept:
        combinations = [" ".join(f"{name}={each}" for name, each in combination.items()) for combination in grid]
        print(table(sweep_rows(sets, combinations)))
    else:
        print(table(score_rows(sets)))
    if options.json:
        options.json.write_text(json.dumps(about | figures(run, fixed, grid, sets), indent=1) + "\n", "utf-8")


def figures(
    run: Run, fixed: Mapping[str, object], grid: Sequence[Mapping[str, object]], sets: Sequence[Measured]
) -> dict[str, object]:
    """Everything measured, as JSON: one result for each combination of a sweep."""
    results: list[dict[str, object]] = []
    for at, combination in enumerate(grid):
        rows = [
            {"set": each.name, "documents": each.documents}
            | {k: round(v, 6) for k, v in asdict(each.scores[at]).items()}
            for each in sets
        ]
        means = {
            name: {metric: round(mean(members, at, metric), 6) for metric in METRICS.values()}
            for name, members in groups_of(sets).items()
        }
        results.append({"recipe": {**fixed, **combination}, "sets": rows, "means": means})
    asked = {"mode": run.mode, "half": run.part, "limit": run.limit}
    return asked | {"title_as_summary": run.title_as_summary, "audited": run.audited, "results": results}


def setting(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, where NAME is a field of the recipe."""
    name, _, given = text.partition("=")
    allowed = [each.name for each in fields(nacre.Recipe)]
    if name not in allowed or not given:
        raise ValueError(f"{text!r} is not NAME=VALUE with a field of the recipe: {', '.join(allowed)}")
    return name, given


def value(text: str) -> Any:
    """A number where it reads as one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def try_out(recipes: Sequence[nacre.Recipe], limit: int) -> None:
    """Complain about values that are not allowed now, not after an hour of embedding."""
    with tempfile.TemporaryDirectory() as folder, nacre.open(Path(folder) / "empty.db", embedder="none") as memory:
        for recipe in recipes:
            memory.search("anything", mode="keyword", limit=limit, recipe=recipe)


if __name__ == "__main__":
    main()
