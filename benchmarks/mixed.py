"""Does a store of turns, sessions and documents still find what the store of each set alone finds?

    python -m benchmarks.mixed [--half choose] [--sets locomo,scifact] [--kinds keyword] [--sweep bm25_b=0.4,1]

Every set is asked twice, with the same questions: in a store of its own, and in one store that holds all sets. In the
second, a question about a conversation sees

- of `locomo`: the turns of its conversation, all documents, and the sessions of the other conversations,
- of `locomo-session`: the sessions of its conversation, all documents, and the turns of the other conversations,

because the session with the turn that answers is not a wrong answer. All other questions see everything. In the column
"halves" every second session of a conversation is one memory, and the others are turns: an answer is the turn, or the
session that has it.

Recency is off in both stores, because the conversations end on different days. Vectors are computed once and cached.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

import nacre
from benchmarks import quality
from benchmarks.common import report
from benchmarks.common.filled_store import LIMIT, Filled, Part, Way, filled, queries_of
from benchmarks.common.labelled_sets import Document, LabelledSet, Query, load
from benchmarks.common.paths import EVAL
from benchmarks.common.scoring import Answer, judged
from nacre.types.recipe import adjusted
from nacre.types.search import Mode

TURNS, SESSIONS = "locomo", "locomo-session"
SETS = (TURNS, SESSIONS, "scifact", "nfcorpus", "cosqa", "hotpotqa-1k", "xquad-en")
HALVES = "halves"
METRIC = "nDCG@10"
# Kinds of searches. The last two have both channels; "not-reranked" has neither late interaction nor the cross-encoder.
KINDS = ("semantic", "keyword", "not-reranked", "hybrid")
BEFORE = datetime(2000, 1, 1, tzinfo=UTC)  # documents have no date: they are older than every conversation


def main() -> None:
    parser = report.parser(__doc__, "mixed")
    parser.add_argument("--data", type=Path, default=EVAL, help="the folder of labelled sets (default: %(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated (default: %(default)s)")
    parser.add_argument(
        "--half", choices=("choose", "report", "all"), default="report", help="which questions (default: %(default)s)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set a field of the recipe")
    parser.add_argument("--sweep", action="append", default=[], metavar="NAME=A,B,…", help="try every value")
    parser.add_argument("--kinds", default=",".join(KINDS[:3]), help=f"of {', '.join(KINDS)} (default: %(default)s)")
    parser.set_defaults(recipes="default", ablate=False)
    options = parser.parse_args()
    names = options.sets.split(",")
    try:
        recipes = quality.recipes_of(options)
        quality.check_names("--sets", names, SETS)
        quality.check_names("--kinds", options.kinds.split(","), KINDS)
        quality.try_out(list(recipes.values()), LIMIT)
    except (ValueError, nacre.InvalidInput) as error:
        parser.error(str(error))
    ways = ways_of(recipes, options.kinds.split(","))
    sets = {name: load(options.data, name) for name in names}
    own = {name: own_store(labelled, list(ways.values()), options.half) for name, labelled in sets.items()}
    mixed = mixed_store(sets, list(ways.values()), options.half)
    tables = {kind: list(rows(kind, ways, own, mixed)) for kind in dict.fromkeys(kind for kind, _ in ways)}
    asked = "All questions" if options.half == "all" else f"The {options.half} half of the questions"
    documents = ", ".join(f"{name} {len(labelled.documents):,}" for name, labelled in sets.items())
    given = [f"With {', '.join(options.set)}."] if options.set else []
    report.write(options.name, tables, [f"{asked}, {METRIC}. Memories: {documents}.", *given])


def ways_of(recipes: Mapping[str, nacre.Recipe], kinds: Sequence[str]) -> dict[tuple[str, str], Way]:
    """By kind of search and name of the recipe."""
    found: dict[tuple[str, str], Way] = {}
    for name, recipe in recipes.items():
        plain = adjusted(recipe, recency_weight=0.0)
        every: dict[str, Way] = {
            "semantic": Way("semantic", plain),
            "keyword": Way("keyword", plain),
            "not-reranked": Way("hybrid", adjusted(plain, maxsim_weight=0.0, rerank_weight=0.0)),
            "hybrid": Way("hybrid", plain),
        }
        found |= {(kind, name): every[kind] for kind in kinds}
    return found


def _most(ways: Sequence[Way]) -> Mode:
    """What a store must be able to do: vectors only where some search compares them."""
    return "keyword" if all(way.mode == "keyword" for way in ways) else "hybrid"


# ---------------------------------------------------------------- stores


def own_store(labelled: LabelledSet, ways: Sequence[Way], part: Part) -> list[float]:
    """For each way, the mean over the questions."""
    print(f"{labelled.name} alone", file=sys.stderr, flush=True)
    with filled(labelled, _most(ways)) as store:
        answers = store.answers(ways, part)
    return [_mean(each, labelled) for each in answers]


def mixed_store(sets: Mapping[str, LabelledSet], ways: Sequence[Way], part: Part) -> dict[str, list[float]]:
    """By set, the same in one store of all sets. Also of the halves, where there are turns and sessions."""
    asked = dict(sets)
    documents = [
        replace(each, scope=_space(name, each)) for name, labelled in sets.items() for each in _named(labelled)
    ]
    if TURNS in sets and SESSIONS in sets:
        asked[HALVES], halves = _halves(sets[TURNS], sets[SESSIONS])
        documents += halves
    spaces = list(dict.fromkeys(str(each.scope) for each in documents))
    everything = LabelledSet("mixed", tuple(documents), (), {})
    found: dict[str, list[float]] = {}
    with filled(everything, _most(ways)) as store:
        for name, labelled in asked.items():
            print(f"{name} among all", file=sys.stderr, flush=True)
            answers = [_answers(store, name, labelled, spaces, way, part) for way in ways]
            found[name] = [_mean(each, labelled) for each in answers]
    return found


def _answers(
    store: Filled, name: str, labelled: LabelledSet, spaces: Sequence[str], way: Way, part: Part
) -> list[Answer]:
    """Only documents of the set count: an id has the name of its set in front."""
    answers = []
    for query in queries_of(labelled, part):
        store.clock.ask(f"{name} {query.scope}" if query.scope else None)
        seen = nacre.Filter(spaces=_seen(name, query, spaces))
        start = time.perf_counter()
        hits = store.memory.search(query.text, mode=way.mode, limit=LIMIT, where=seen, recipe=way.recipe).hits
        took = time.perf_counter() - start
        ids = [each for hit in hits for each in store.documents[hit.id]]
        answers.append(Answer(query.id, [_within(name, each) for each in ids], took))
    return answers


def _mean(answers: Sequence[Answer], labelled: LabelledSet) -> float:
    return float(judged(answers, labelled.qrels).values[METRIC].mean())


def _named(labelled: LabelledSet) -> Iterator[Document]:
    """The documents, with ids that are theirs alone among all sets."""
    for each in labelled.documents:
        yield replace(each, id=f"{labelled.name} {each.id}", created=each.created or BEFORE)


def _within(name: str, document_id: str) -> str:
    """The id that the set's labels know; of another set's document, one that they do not know."""
    return document_id.removeprefix(f"{name} ") if document_id.startswith(f"{name} ") else f"other {document_id}"


def _space(name: str, document: Document) -> str:
    return f"{name} {document.scope}" if document.scope else "documents"


def _seen(name: str, query: Query, spaces: Sequence[str]) -> list[str]:
    """The spaces that a question sees; see above."""
    own = f"{name} {query.scope}"
    if name == HALVES:
        return [own]
    other = {TURNS: SESSIONS, SESSIONS: TURNS}.get(name)
    if other is None:
        return [each for each in spaces if not each.startswith(f"{HALVES} ")]
    others = [each for each in spaces if each.startswith(f"{other} ") and each != f"{other} {query.scope}"]
    return [own, *(each for each in spaces if each == "documents"), *others]


def _halves(turns: LabelledSet, sessions: LabelledSet) -> tuple[LabelledSet, list[Document]]:
    """Every second session as one memory, the others as turns, with the labels of the turns; and its documents."""
    whole = {(each.scope, each.session): each for each in sessions.documents if _is_long(each)}
    home = {each.id: whole.get((each.scope, each.session), each).id for each in turns.documents}
    kept = [*(each for each in turns.documents if home[each.id] == each.id), *whole.values()]
    qrels = {
        query: {home[document]: grade for document, grade in grades.items()} for query, grades in turns.qrels.items()
    }
    documents = [replace(each, id=f"{HALVES} {each.id}", scope=f"{HALVES} {each.scope}") for each in kept]
    return LabelledSet(HALVES, tuple(kept), turns.queries, qrels), documents


def _is_long(session: Document) -> bool:
    return hashlib.sha256(f"{session.scope} {session.session}".encode()).digest()[0] % 2 == 1


# ---------------------------------------------------------------- report


def rows(
    kind: str,
    ways: Mapping[tuple[str, str], Way],
    own: Mapping[str, Sequence[float]],
    mixed: Mapping[str, Sequence[float]],
) -> Iterator[dict[str, Any]]:
    """Of one kind of search: each recipe in the own stores, in the mixed one, and the difference."""
    for at, (each, recipe) in enumerate(ways):
        if each != kind:
            continue
        named = f" {recipe.strip()}" if recipe.strip() else ""
        alone, among = ({name: found[at] for name, found in of.items()} for of in (own, mixed))
        change = {name: among[name] - alone[name] for name in alone}
        for label, values, form in (("own", alone, ".4f"), ("mixed", among, ".4f"), ("difference", change, "+.4f")):
            yield (
                {METRIC: label + named}
                | {name: f"{value:{form}}" for name, value in values.items()}
                | {"mean of the sets": f"{mean(values[name] for name in alone):{form}}"}
            )


if __name__ == "__main__":
    main()
