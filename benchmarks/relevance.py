"""How far a hit's relevance can be believed: of hits that say .7, do seven in ten answer the question?

    python -m benchmarks.relevance [--data ../shared/eval] [--sets locomo,scifact] [--json FILE]
    python -m benchmarks.relevance --fit [--train ../shared/train]

Without --fit: the calibration error of each set, mode and half of the queries, over all hits delivered and over the
first hit alone (ten bins of equal width); how often hits of each bin are answers; and how well the best relevance
tells questions that a store can answer from questions of strangers, which it cannot (area under the ROC curve).

--fit prints the weights of `nacre.ranking.relevance`. They come from sets that are made for training, so that every set
under --data is one they have never seen; nothing under --data is fitted on. Of SQuAD there are sentences, paragraphs
and runs of paragraphs as memories, of QMSum passages of meetings, each in a space of its own, among a few and among
all. Filling stores takes most of the time: --stores keeps them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

import nacre
from benchmarks import report
from benchmarks.filling import Clock, new_memory
from benchmarks.judging import SETS, table
from benchmarks.labelled import DATA, Document, Grades, Half, LabelledSet, Query, half, load
from benchmarks.vectors import Cached
from nacre.embedders.minilm import MiniLM
from nacre.interfaces import Embedder
from nacre.query.parser import parse
from nacre.ranking.relevance import Evidence, Meaning, Others, Weights, Words, evidence, others, relevance
from nacre.storage.sqlite import SqliteStore
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Found, Mode

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

TRAIN = Path("../shared/train")
LIMIT = 10
BINS = 10
QUERIES_MAX = 1_000  # of a set
STRANGERS_MAX = 500  # questions that a set cannot answer
SOME_SPACES = 5
RIDGE = 1e-5  # on the slopes, so that there is always a solution
NEWTON_STEPS = 30
SEED = 7
MODES: tuple[Mode, ...] = get_args(Mode)
CONSTANTS: Mapping[Mode, str] = {"keyword": "BY_WORDS", "semantic": "BY_MEANING", "hybrid": "BY_BOTH"}
# Whose questions a set of one space is asked as a stranger's. Another language would be too easy.
STRANGERS: Mapping[str, Sequence[str]] = {
    "scifact": ("hotpotqa-1k", "cosqa"),
    "nfcorpus": ("hotpotqa-1k", "cosqa"),
    "hotpotqa-1k": ("scifact", "nfcorpus"),
    "cosqa": ("scifact", "hotpotqa-1k"),
    "xquad-en": ("hotpotqa-1k", "scifact"),
}

Kind: TypeAlias = Literal["own", "some", "all", "stranger"]
Paragraph: TypeAlias = Mapping[str, Any]
Cut: TypeAlias = Callable[[Sequence[Paragraph]], Iterable[Sequence[Paragraph]]]  # into memories
Floats: TypeAlias = npt.NDArray[np.float64]


class Case(NamedTuple):
    """A question put to some spaces. Whose it is: asked of its own space, among some, among all, or of others."""

    query: Query
    spaces: Sequence[str]
    grades: Grades
    kind: Kind


class Seen(NamedTuple):
    """The hits that one question was given, best first."""

    kind: Kind
    half: Half
    evidence: Sequence[Evidence]
    relevant: Sequence[bool]


# ---------------------------------------------------------------- sets to fit on


def training_sets(folder: Path) -> Iterator[LabelledSet]:
    with gzip.open(folder / "squad-train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    random.Random(SEED).shuffle(articles)
    yield squad("squad-sentences", articles[:40], sentences)
    yield squad("squad-paragraphs", articles[:60], lambda paragraphs: runs(paragraphs, 1))
    yield squad("squad-sections", articles[:40], lambda paragraphs: runs(paragraphs, 8))
    meetings = load(folder, "qmsum")
    scopes = sorted({document.scope or DEFAULT_SPACE for document in meetings.documents})
    random.Random(SEED).shuffle(scopes)
    kept = set(scopes[:25])
    queries = tuple(query for query in meetings.queries if query.scope in kept)
    documents = tuple(document for document in meetings.documents if document.scope in kept)
    yield LabelledSet("qmsum", documents, queries, {query.id: meetings.qrels[query.id] for query in queries})


def squad(name: str, articles: Iterable[Mapping[str, Any]], cut: Cut) -> LabelledSet:
    """One space an article. A memory is evidence for the questions whose answers stand in it."""
    documents: list[Document] = []
    queries: list[Query] = []
    qrels: dict[str, Grades] = {}
    for place, article in enumerate(articles):
        scope = f"a{place}"
        for number, part in enumerate(cut(article["paragraphs"])):
            memory_id = f"{scope}/{number}"
            text = "\n".join(paragraph["context"] for paragraph in part)
            documents.append(
                Document(id=memory_id, title=None, body=text, scope=scope, session=None, position=None, created=None)
            )
            for question in (each for paragraph in part for each in paragraph["qas"]):
                queries.append(Query(question["id"], question["question"].strip(), scope))
                qrels[question["id"]] = {memory_id: 1}
    return LabelledSet(name, tuple(documents), tuple(queries), qrels)


def sentences(paragraphs: Sequence[Paragraph]) -> Iterator[Sequence[Paragraph]]:
    """Each sentence as a paragraph of its own, with the questions whose answers begin in it."""
    for paragraph in paragraphs:
        text = paragraph["context"]
        starts = [0, *(found.end() for found in re.finditer(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])", text))]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            asked = [each for each in paragraph["qas"] if start <= each["answers"][0]["answer_start"] < end]
            if text[start:end].strip():
                yield [{"context": text[start:end].strip(), "qas": asked}]


def runs(paragraphs: Sequence[Paragraph], length: int) -> Iterator[Sequence[Paragraph]]:
    return (paragraphs[start : start + length] for start in range(0, len(paragraphs), length))


# ---------------------------------------------------------------- questions


def picked(queries: Iterable[Query], most: int) -> list[Query]:
    """The same ones in every run, and no more of one space than of another by their order."""
    return sorted(queries, key=lambda query: _hash(query.id))[:most]


def training_cases(labelled: LabelledSet) -> Iterator[Case]:
    """Questions in turn among the memories of their own space, of some, of all, and of one that cannot answer."""
    spaces = sorted({document.scope or DEFAULT_SPACE for document in labelled.documents})
    for number, query in enumerate(picked(labelled.queries, QUERIES_MAX)):
        own = query.scope or DEFAULT_SPACE
        foreign = sorted((space for space in spaces if space != own), key=lambda space: _hash(f"{query.id} {space}"))
        ways: tuple[tuple[Kind, list[str]], ...] = (
            ("own", [own]),
            ("some", [own, *foreign[: SOME_SPACES - 1]]),
            ("all", spaces),
            ("stranger", foreign[:1]),
        )
        kind, among = ways[number % len(ways)]
        yield Case(query, among, {} if kind == "stranger" else labelled.qrels[query.id], kind)


def cases(labelled: LabelledSet, data: Path) -> Iterator[Case]:
    """Every question to its own space; and questions of other spaces, or else of other sets."""
    spaces = sorted({document.scope or DEFAULT_SPACE for document in labelled.documents})
    chosen = picked(labelled.queries, QUERIES_MAX)
    for query in chosen:
        yield Case(query, [query.scope or DEFAULT_SPACE], labelled.qrels[query.id], "own")
    if len(spaces) > 1:
        for query in chosen[:STRANGERS_MAX]:
            foreign = [space for space in spaces if space != query.scope]
            yield Case(query, [foreign[int(_hash(query.id), 16) % len(foreign)]], {}, "stranger")
    strange = STRANGERS.get(labelled.name, ())
    for name in strange:
        for query in picked(load(data, name).queries, STRANGERS_MAX // len(strange)):
            yield Case(query, spaces, {}, "stranger")


# ---------------------------------------------------------------- evidence from searches


class Asked:
    """An open store that holds a set, and says what its hits show."""

    def __init__(self, labelled: LabelledSet, path: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self._store = SqliteStore(path)
        self._clock = Clock(labelled)
        self._memory = nacre.Nacre(self._store, embedder, clock=self._clock, zone=UTC)
        self._vectors: dict[str, FloatVector] = {}
        self._documents: dict[str, list[str]] = defaultdict(list)
        receipts = (
            receipt
            for batch in self._memory.remember_batches(
                new_memory(document, title_as_summary=False) for document in labelled.documents
            )
            for receipt in batch
        )
        for number, (document, receipt) in enumerate(zip(labelled.documents, receipts, strict=True), 1):
            self._documents[receipt.id].append(document.id)
            if number % 500 == 0:
                progress(f"{labelled.name}: remembered {number:,} of {len(labelled.documents):,}")

    def close(self) -> None:
        self._memory.close()

    def seen(self, case: Case, mode: Mode, limit: int) -> Seen:
        self._clock.ask(case.query.scope)
        where = Filter(spaces=tuple(case.spaces))
        among = self._others(case.query.text, where, mode, limit)
        hits = self._memory.search(case.query.text, mode=mode, limit=limit, where=where).hits
        shown = [
            evidence(
                None if hit.bm25 is None or hit.bm25_rank is None else Found(hit.bm25, hit.bm25_rank),
                None if hit.cosine is None or hit.cosine_rank is None else Found(hit.cosine, hit.cosine_rank),
                among,
            )
            for hit in hits
        ]
        relevant = [any(case.grades.get(each, 0) > 0 for each in self._documents[hit.id]) for hit in hits]
        return Seen(case.kind, half(case.query.id), shown, relevant)

    def _others(self, text: str, where: Filter, mode: Mode, limit: int) -> Others:
        """What a search knows of its matches, found out once more from outside."""
        recipe = Recipe()
        pool = max(recipe.pool, 2 * limit)
        question = parse(text, self._clock(), UTC)
        lexical = semantic = None
        frequencies = self._store.frequencies([term.text for term in question.terms], where.spaces)
        if mode != "semantic":
            lexical = self._store.lexical(question, frequencies, where, recipe, pool)
        if mode != "keyword" and question.meaning.strip():
            if question.meaning not in self._vectors:  # the same for all modes
                self._vectors = {question.meaning: self._embedder.embed_query(question.meaning)}
            vector = self._vectors[question.meaning]
            found = self._store.semantic(vector, self._embedder.fingerprint, question, where, pool)
            semantic = [match for match in found if match.score >= recipe.semantic_floor]
        return others(question.terms, frequencies.memories, frequencies.having, lexical, semantic, recipe, pool)


@contextmanager
def asked(labelled: LabelledSet, stores: Path, embedder: Embedder) -> Iterator[Asked]:
    store = Asked(labelled, stores / f"{labelled.name}.db", embedder)
    try:
        yield store
    finally:
        store.close()


def collect(
    labelled: LabelledSet, questions: Sequence[Case], stores: Path, embedder: Embedder, limit: int
) -> dict[Mode, list[Seen]]:
    seen: dict[Mode, list[Seen]] = {mode: [] for mode in MODES}
    with asked(labelled, stores, embedder) as store:
        for number, case in enumerate(questions, 1):
            for mode in MODES:
                seen[mode].append(store.seen(case, mode, limit))
            if number % 500 == 0:
                progress(f"{labelled.name}: asked {number:,} of {len(questions):,}")
    return seen


# ---------------------------------------------------------------- fitting

FITTED: Mapping[Mode, Sequence[str]] = {
    "keyword": ("coverage", "words_behind", "words_ahead"),
    "semantic": ("cosine", "meaning_behind", "meaning_ahead", "above_crowd"),
    "hybrid": (
        *("coverage", "words_behind", "words_ahead"),
        *("cosine", "meaning_behind", "meaning_ahead", "above_crowd"),
    ),
}


def features(shown: Evidence) -> dict[str, float]:
    """What each weight is multiplied with."""
    words = shown.words or Words(0, 0)
    meaning = shown.meaning or Meaning(0, 0, 0)
    return {
        "coverage": words.coverage,
        "words_behind": min(words.lead, 0),
        "words_ahead": max(words.lead, 0),
        "cosine": meaning.cosine,
        "meaning_behind": min(meaning.lead, 0),
        "meaning_ahead": max(meaning.lead, 0),
        "above_crowd": meaning.above_crowd,
    }


def fitted(sets: Iterable[Sequence[Seen]], mode: Mode) -> Weights:
    """Every kind of question of every set counts the same, however many hits it had."""
    rows: list[list[float]] = []
    labels: list[bool] = []
    counts: list[float] = []
    for seen in sets:
        for kind in get_args(Kind):
            hits = [hit for each in seen if each.kind == kind for hit in zip(each.evidence, each.relevant, strict=True)]
            rows += [[features(shown)[name] for name in FITTED[mode]] for shown, _ in hits]
            labels += [relevant for _, relevant in hits]
            counts += [1 / len(hits)] * len(hits)
    *slopes, start = logistic_regression(np.array(rows), np.array(labels, float), np.array(counts))
    return Weights(start=start, **dict(zip(FITTED[mode], slopes, strict=True)))


def logistic_regression(rows: Floats, labels: Floats, counts: Floats) -> list[float]:
    """Slopes, none below 0, and the start. Newton's steps; a slope that would fall below 0 is held there."""
    rows = np.column_stack([rows, np.ones(len(rows))])
    counts = counts / counts.sum()
    ridge = np.full(rows.shape[1], RIDGE)
    ridge[-1] = 0
    free = np.full(rows.shape[1], True)
    while True:
        found = np.zeros(rows.shape[1])
        for _ in range(NEWTON_STEPS):
            likely = 1 / (1 + np.exp(-rows @ found))
            slope = rows.T @ (counts * (likely - labels)) + ridge * found
            bend = (rows * (counts * likely * (1 - likely))[:, None]).T @ rows + np.diag(ridge)
            found[free] -= np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        below = free & (found < 0)
        below[-1] = False
        if not below.any():
            return [float(each) for each in found]
        free &= ~below


# ---------------------------------------------------------------- judging


class Judged(NamedTuple):
    """Predictions and what came true."""

    predicted: Floats
    observed: Floats


def judged(seen: Iterable[Seen], weights: Weights | None = None, first: int | None = None) -> Judged:
    """All hits of answerable questions, or the first ones only; by the product's weights or by others."""
    hits = [
        hit
        for each in seen
        if each.kind != "stranger"
        for hit in list(zip(each.evidence, each.relevant, strict=True))[:first]
    ]
    predicted = [relevance(shown) if weights is None else weighed(shown, weights) for shown, _ in hits]
    return Judged(np.array(predicted, float), np.array([relevant for _, relevant in hits], float))


def weighed(shown: Evidence, weights: Weights) -> float:
    given = features(shown)
    return float(1 / (1 + np.exp(-weights.start - sum(getattr(weights, name) * given[name] for name in given))))


def calibration_error(each: Judged) -> float:
    """The mean distance between what the hits of a bin promise and what they hold."""
    return sum(abs(said - held) * hits for _, said, held, hits in reliability(each)) / max(1, len(each.predicted))


def reliability(each: Judged) -> Iterator[tuple[int, float, float, int]]:
    """For each bin that has hits: its number, the mean prediction, the share of answers, the number of hits."""
    bins = np.minimum((each.predicted * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            said, held = each.predicted[inside].mean(), each.observed[inside].mean()
            yield number, float(said), float(held), int(inside.sum())


def told_apart(seen: Sequence[Seen]) -> float:
    """How often an answerable question has a better best hit than a stranger's: 1 always, .5 by chance."""
    best: dict[bool, list[float]] = {True: [], False: []}
    for each in seen:
        best[each.kind != "stranger"].append(max(map(relevance, each.evidence), default=0.0))
    if not best[False]:
        return float("nan")
    answerable, strange = np.array(best[True]), np.array(best[False])
    above = (answerable[:, None] > strange).mean() + (answerable[:, None] == strange).mean() / 2
    return float(above)


def report_rows(sets: Mapping[str, Mapping[Mode, Sequence[Seen]]]) -> list[dict[str, str]]:
    rows = []
    for mode in MODES:
        for name, by_mode in sets.items():
            chosen = [each for each in by_mode[mode] if each.half == "choose"]
            kept = [each for each in by_mode[mode] if each.half == "report"]
            of_all, of_first = judged(kept), judged(kept, first=1)
            rows.append(
                {
                    "mode": mode,
                    "set": name,
                    "hits": f"{len(of_all.observed):,}",
                    "answers": f"{of_all.observed.mean():.3f}",
                    "ECE": f"{calibration_error(of_all):.3f}",
                    "ECE, choose half": f"{calibration_error(judged(chosen)):.3f}",
                    "first: said": f"{of_first.predicted.mean():.3f}",
                    "first: answers": f"{of_first.observed.mean():.3f}",
                    "first: ECE": f"{calibration_error(of_first):.3f}",
                    "AUC": f"{told_apart(kept):.3f}",
                }
            )
    return rows


def reliability_rows(sets: Mapping[str, Mapping[Mode, Sequence[Seen]]]) -> list[dict[str, str]]:
    rows = []
    for mode in MODES:
        kept = [each for by_mode in sets.values() for each in by_mode[mode] if each.half == "report"]
        rows += [
            {
                "mode": mode,
                "bin": f"{number / BINS:.1f}–{(number + 1) / BINS:.1f}",
                "said": f"{said:.3f}",
                "answers": f"{held:.3f}",
                "hits": f"{hits:,}",
            }
            for number, said, held, hits in reliability(judged(kept))
        ]
    return rows


def left_out_rows(sets: Mapping[str, Mapping[Mode, Sequence[Seen]]]) -> list[dict[str, str]]:
    """Each training set judged by weights that were fitted on the others."""
    rows = []
    for mode in MODES:
        for name, by_mode in sets.items():
            weights = fitted([other[mode] for each, other in sets.items() if each != name], mode)
            errors = [calibration_error(judged(by_mode[mode], weights, first)) for first in (None, 1)]
            rows.append(
                {"mode": mode, "left out": name, "ECE": f"{errors[0]:.3f}", "ECE of the first": f"{errors[1]:.3f}"}
            )
    return rows


# ---------------------------------------------------------------- command line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of labelled sets (default: %(default)s)")
    parser.add_argument("--train", type=Path, default=TRAIN, help="the folder of sets to fit on (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="names with commas between them (default: all)")
    parser.add_argument("--fit", action="store_true", help="fit new weights and print them")
    parser.add_argument("--limit", type=int, default=LIMIT, help="hits asked for (default: %(default)s)")
    parser.add_argument("--stores", type=Path, help="keep the filled stores in this folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    embedder = Cached(MiniLM())
    seen: dict[str, dict[Mode, list[Seen]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        stores = options.stores or Path(temporary)
        stores.mkdir(exist_ok=True)
        if options.fit:
            for labelled in training_sets(options.train):
                questions = list(training_cases(labelled))
                seen[labelled.name] = collect(labelled, questions, stores, embedder, options.limit)
        else:
            for name in options.sets.split(","):
                labelled = load(options.data, name)
                seen[name] = collect(labelled, list(cases(labelled, options.data)), stores, embedder, options.limit)
    tables = (
        {"fitted on all others": left_out_rows(seen)}
        if options.fit
        else {"by set": report_rows(seen), "by relevance": reliability_rows(seen)}
    )
    for rows in tables.values():
        print(table(rows), end="\n\n")
    weights = (
        {mode: fitted([by_mode[mode] for by_mode in seen.values()], mode) for mode in MODES} if options.fit else {}
    )
    for mode, found in weights.items():
        print(f"{CONSTANTS[mode]} = Weights(")
        print("".join(f"    {name}={value:.2f},\n" for name, value in asdict(found).items() if value), end=")\n")
    if options.json:
        figures = {"limit": options.limit, "weights": {mode: asdict(each) for mode, each in weights.items()}, **tables}
        options.json.write_text(json.dumps(report.circumstances() | figures, indent=1) + "\n", "utf-8")


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
