"""Is the relevance of a hit calibrated: of the hits with .7, do seven in ten answer the question?

    python -m benchmarks.relevance [--data ../shared/eval] [--sets locomo,scifact]
    python -m benchmarks.relevance --fit [--train ../shared/train]

Without --fit: the expected calibration error (ten bins of equal width) of each set and mode, over all hits and over the
first hit alone; the share of answers in each bin; and how well the best relevance separates questions that a store can
answer from foreign ones, which it cannot (area under the ROC curve).

--fit computes the weights of `nacre.ranking.relevance` from training sets, so that they have seen nothing of the sets
under --data. Memories are sentences, paragraphs and runs of paragraphs of SQuAD and passages of the meetings of QMSum;
questions search their own space, a few spaces, all spaces, or a foreign one. Filling the stores takes most of the
time: --stores keeps them.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

import nacre
from benchmarks.common import report
from benchmarks.common.embedding_cache import CachedEmbedder
from benchmarks.common.filled_store import Clock, new_memory
from benchmarks.common.labelled_sets import Document, Half, LabelledSet, Query, half, load
from benchmarks.common.paths import EVAL, TRAIN
from benchmarks.common.quality_report import SETS
from nacre.embedders.minilm import MiniLM
from nacre.evaluation.metrics import Grades
from nacre.interfaces import Embedder
from nacre.query.parser import parse
from nacre.ranking.relevance import Evidence, Meaning, Others, Weights, Words, evidence, others, relevance
from nacre.storage.sqlite import SqliteStore
from nacre.types.memory import DEFAULT_SPACE
from nacre.types.recipe import Recipe
from nacre.types.search import Filter, Found, Hit, Mode

if TYPE_CHECKING:
    from nacre.types.memory import FloatVector

LIMIT = 10
BINS = 10
QUERIES_MAX = 1_000  # of a set
FOREIGN_MAX = 500  # questions that a set cannot answer
SOME_SPACES = 5
RIDGE = 1e-5  # on the slopes, so that there is always a solution
NEWTON_STEPS = 30
SEED = 7
MODES: tuple[Mode, ...] = get_args(Mode)
CONSTANTS: Mapping[Mode, str] = {"keyword": "BY_WORDS", "semantic": "BY_MEANING", "hybrid": "BY_BOTH"}
# The sets whose questions are foreign to a set of one space. Another language would be too easy.
FOREIGN: Mapping[str, Sequence[str]] = {
    "scifact": ("hotpotqa-1k", "cosqa"),
    "nfcorpus": ("hotpotqa-1k", "cosqa"),
    "hotpotqa-1k": ("scifact", "nfcorpus"),
    "cosqa": ("scifact", "hotpotqa-1k"),
    "xquad-en": ("hotpotqa-1k", "scifact"),
}

Kind: TypeAlias = Literal["own", "some", "all", "foreign"]
Paragraph: TypeAlias = Mapping[str, Any]
Cut: TypeAlias = Callable[[Sequence[Paragraph]], Iterable[Sequence[Paragraph]]]  # into memories
Floats: TypeAlias = npt.NDArray[np.float64]


class Case(NamedTuple):
    """A question and the spaces that it searches: its own, some, all, or a foreign one."""

    query: Query
    spaces: Sequence[str]
    grades: Grades
    kind: Kind


class Seen(NamedTuple):
    """The hits of one question, best first."""

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
    """One space per article. A memory answers the questions whose answers it contains."""
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
    """Each sentence as its own paragraph, with the questions whose answers begin in it."""
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
    """A pseudo-random selection that is the same in every run."""
    return sorted(queries, key=lambda query: _hash(query.id))[:most]


def training_cases(labelled: LabelledSet) -> Iterator[Case]:
    """Questions search, in turn, their own space, some, all, and one that cannot answer."""
    spaces = sorted({document.scope or DEFAULT_SPACE for document in labelled.documents})
    for number, query in enumerate(picked(labelled.queries, QUERIES_MAX)):
        own = query.scope or DEFAULT_SPACE
        foreign = sorted((space for space in spaces if space != own), key=lambda space: _hash(f"{query.id} {space}"))
        ways: tuple[tuple[Kind, list[str]], ...] = (
            ("own", [own]),
            ("some", [own, *foreign[: SOME_SPACES - 1]]),
            ("all", spaces),
            ("foreign", foreign[:1]),
        )
        kind, among = ways[number % len(ways)]
        yield Case(query, among, {} if kind == "foreign" else labelled.qrels[query.id], kind)


def cases(labelled: LabelledSet, data: Path) -> Iterator[Case]:
    """Every question in its own space; and foreign questions, of other spaces or of other sets."""
    spaces = sorted({document.scope or DEFAULT_SPACE for document in labelled.documents})
    chosen = picked(labelled.queries, QUERIES_MAX)
    for query in chosen:
        yield Case(query, [query.scope or DEFAULT_SPACE], labelled.qrels[query.id], "own")
    if len(spaces) > 1:
        for query in chosen[:FOREIGN_MAX]:
            elsewhere = [space for space in spaces if space != query.scope]
            yield Case(query, [elsewhere[int(_hash(query.id), 16) % len(elsewhere)]], {}, "foreign")
    others = FOREIGN.get(labelled.name, ())
    for name in others:
        for query in picked(load(data, name).queries, FOREIGN_MAX // len(others)):
            yield Case(query, spaces, {}, "foreign")


# ---------------------------------------------------------------- evidence from searches


class EvidenceStore:
    """An open memory that holds a set, and the evidence for its hits."""

    def __init__(self, labelled: LabelledSet, path: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self._clock = Clock(labelled)
        self._memory = nacre.open(path, embedder=embedder, reranker=None, clock=self._clock, time_zone=UTC)
        self._store = SqliteStore(path)  # for the matches of each channel, which a search does not return
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
        self._store.close()
        self._memory.close()

    def seen(self, case: Case, mode: Mode, limit: int) -> Seen:
        self._clock.ask(case.query.scope)
        where = Filter(spaces=tuple(case.spaces))
        among = self._others(case.query.text, where, mode, limit)
        hits = self._memory.search(case.query.text, mode=mode, limit=limit, where=where).hits
        shown = [
            evidence(
                None if hit.bm25 is None or hit.bm25_rank is None else Found(hit.bm25, hit.bm25_rank),
                _by_meaning(hit),
                among,
            )
            for hit in hits
        ]
        relevant = [any(case.grades.get(each, 0) > 0 for each in self._documents[hit.id]) for hit in hits]
        return Seen(case.kind, half(case.query.id), shown, relevant)

    def _others(self, text: str, where: Filter, mode: Mode, limit: int) -> Others:
        """What a search knows of all matches, computed again from the store."""
        recipe = Recipe()
        pool = max(recipe.pool, 2 * limit)
        question = parse(text, self._clock(), UTC)
        lexical = semantic = None
        prefixes = [term.text for term in question.terms if term.prefix]
        frequencies = self._store.frequencies([term.text for term in question.terms], where.spaces, prefixes)
        if mode != "semantic":
            lexical = self._store.lexical(question, frequencies, where, recipe, pool)
        if mode != "keyword" and question.meaning.strip():
            if question.meaning not in self._vectors:  # shared by all modes
                self._vectors = {question.meaning: self._embedder.embed_query(question.meaning)}
            vector = self._vectors[question.meaning]
            fingerprint, weight = self._embedder.fingerprint, recipe.passages_weight
            found = self._store.semantic(vector, fingerprint, question, where, pool, weight)
            semantic = [match for match in found if match.cosine >= recipe.semantic_floor]
        return others(question.terms, frequencies.memories, frequencies.having, lexical, semantic, recipe, pool)


def _by_meaning(hit: Hit) -> Found | None:
    """Where the semantic channel placed a hit: by its cosine, less what the number of its passages gains by chance."""
    if hit.cosine is None or hit.cosine_rank is None:
        return None
    less = sum(reason.numbers.get("less", 0.0) for reason in hit.reasons if reason.signal == "semantic")
    return Found(hit.cosine - less, hit.cosine_rank)


def collect(
    labelled: LabelledSet, questions: Sequence[Case], stores: Path, embedder: Embedder, limit: int
) -> dict[Mode, list[Seen]]:
    seen: dict[Mode, list[Seen]] = {mode: [] for mode in MODES}
    with closing(EvidenceStore(labelled, stores / f"{labelled.name}.db", embedder)) as store:
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
    """The value that each weight is multiplied with."""
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
    """Every kind of question of every set has the same weight, however many hits it has."""
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
    """Slopes, none negative, and the intercept, by Newton's method. A slope that would be negative is fixed at 0."""
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


# ---------------------------------------------------------------- calibration


class Judged(NamedTuple):
    """Predicted relevance, and whether the hit was an answer."""

    predicted: Floats
    observed: Floats


def judged(seen: Iterable[Seen], weights: Weights | None = None, first: int | None = None) -> Judged:
    """All hits of answerable questions, or only the first ones; with the shipped weights or with others."""
    hits = [
        hit
        for each in seen
        if each.kind != "foreign"
        for hit in list(zip(each.evidence, each.relevant, strict=True))[:first]
    ]
    predicted = [relevance(shown) if weights is None else weighed(shown, weights) for shown, _ in hits]
    return Judged(np.array(predicted, float), np.array([relevant for _, relevant in hits], float))


def weighed(shown: Evidence, weights: Weights) -> float:
    given = features(shown)
    return float(1 / (1 + np.exp(-weights.start - sum(getattr(weights, name) * given[name] for name in given))))


def calibration_error(each: Judged) -> float:
    """The mean distance between the prediction of a bin and its share of answers, weighted by hits."""
    return sum(abs(said - held) * hits for _, said, held, hits in reliability(each)) / max(1, len(each.predicted))


def reliability(each: Judged) -> Iterator[tuple[int, float, float, int]]:
    """For each bin that has hits: its number, the mean prediction, the share of answers, the number of hits."""
    bins = np.minimum((each.predicted * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            said, held = each.predicted[inside].mean(), each.observed[inside].mean()
            yield number, float(said), float(held), int(inside.sum())


def auc(seen: Sequence[Seen]) -> float:
    """How often the best hit of an answerable question is above that of a foreign one: 1 always, .5 by chance."""
    best: dict[bool, list[float]] = {True: [], False: []}
    for each in seen:
        best[each.kind != "foreign"].append(max(map(relevance, each.evidence), default=0.0))
    if not best[False]:
        return float("nan")
    answerable, foreign = np.array(best[True]), np.array(best[False])
    above = (answerable[:, None] > foreign).mean() + (answerable[:, None] == foreign).mean() / 2
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
                    "first: predicted": f"{of_first.predicted.mean():.3f}",
                    "first: answers": f"{of_first.observed.mean():.3f}",
                    "first: ECE": f"{calibration_error(of_first):.3f}",
                    "AUC": f"{auc(kept):.3f}",
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
                "predicted": f"{said:.3f}",
                "answers": f"{held:.3f}",
                "hits": f"{hits:,}",
            }
            for number, said, held, hits in reliability(judged(kept))
        ]
    return rows


def left_out_rows(sets: Mapping[str, Mapping[Mode, Sequence[Seen]]]) -> list[dict[str, str]]:
    """Each training set with weights that were fitted on the others."""
    rows = []
    for mode in MODES:
        for name, by_mode in sets.items():
            weights = fitted([other[mode] for each, other in sets.items() if each != name], mode)
            errors = [calibration_error(judged(by_mode[mode], weights, first)) for first in (None, 1)]
            rows.append({"mode": mode, "left out": name, "ECE": f"{errors[0]:.3f}", "first: ECE": f"{errors[1]:.3f}"})
    return rows


# ---------------------------------------------------------------- command line


def main() -> None:
    parser = report.parser(__doc__, "relevance")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--train", type=Path, default=TRAIN, help="folder of training sets (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names (default: all)")
    parser.add_argument("--fit", action="store_true", help="fit weights on the training sets and print them")
    parser.add_argument("--limit", type=int, default=LIMIT, help="hits per question (default: %(default)s)")
    parser.add_argument("--stores", type=Path, help="keep the filled stores in this folder")
    options = parser.parse_args()
    embedder = CachedEmbedder(MiniLM())
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
    if not options.fit:
        tables = {"Calibration by set": report_rows(seen), "Share of answers by relevance": reliability_rows(seen)}
        report.write(options.name, tables, [f"At most {options.limit} hits of {QUERIES_MAX:,} questions per set."])
        return
    name = "relevance-fit" if options.name == "relevance" else options.name
    report.write(name, {"Each set with weights fitted on the others": left_out_rows(seen)})
    for mode in MODES:
        weights = asdict(fitted([by_mode[mode] for by_mode in seen.values()], mode))
        print(f"{CONSTANTS[mode]} = Weights(")
        print("".join(f"    {name}={value:.2f},\n" for name, value in weights.items() if value), end=")\n")


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
