"""Are updates recognised when they are written, and how often is a link wrong?

    python -m benchmarks.updates [--data ../shared/eval] [--examples 40]

Each store is written in the order of time, and the links and superseded facts are read back. The worlds of
`benchmarks.scenarios` say which memories are stale: a true pair is an answer and what it makes stale. Other links of a
world may be right, too. Labelled sets say nothing, so no link of theirs is known to be right. `looked at` are the pairs
of a text with a cue and one of the older ones near it. Thresholds were chosen on one half of the worlds. `--examples`
lists links that are not known to be right, to be read by hand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import nacre
from benchmarks.common import report
from benchmarks.common.embedding_cache import CachedEmbedder
from benchmarks.common.labelled_sets import half, load
from benchmarks.common.paths import EVAL
from benchmarks.scenarios import worlds
from nacre.analysis.update_cues import find_cue
from nacre.embedders.minilm import MiniLM
from nacre.facts.updates import CANDIDATES
from nacre.interfaces import Embedder
from nacre.types.memory import NewMemory

SETS = ("locomo", "hotpotqa-1k", "xquad-en", "xquad-de")
SHOWN_CHARS = 160
START = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Written:
    """A store to write: its memories in the order of time, and which pairs of their places are known to be updates."""

    name: str
    memories: Sequence[NewMemory]
    true: frozenset[tuple[int, int]] = frozenset()
    among_stale: frozenset[tuple[int, int]] = frozenset()  # one may update the other; not counted


@dataclass
class Counts:
    stores: int = 0
    memories: int = 0
    cues: int = 0
    strong: int = 0
    looked_at: int = 0
    links: int = 0
    true: int = 0
    true_linked: int = 0
    true_by_fact: int = 0
    true_found: int = 0
    wrong: int = 0
    examples: list[tuple[str, str, str]] = field(default_factory=list)

    def row(self, name: str) -> dict[str, object]:
        return {
            "texts": name,
            "memories": self.memories,
            "with cue": self.cues,
            "strong": self.strong,
            "looked at": self.looked_at,
            "links": self.links,
            "per 1,000 memories": f"{1000 * self.links / max(1, self.memories):.1f}",
            "not known to be right": self.wrong,
            "share of looked at": f"{self.wrong / max(1, self.looked_at):.4f}",
        }

    def recall_row(self, name: str) -> dict[str, object]:
        return {
            "half": name,
            "worlds": self.stores,
            "true pairs": self.true,
            "by link": self.true_linked,
            "by fact": self.true_by_fact,
            "found": self.true_found,
            "recall": f"{self.true_found / max(1, self.true):.2f}",
            "other links": self.wrong,
        }


def main() -> None:
    parser = report.parser(__doc__, "updates")
    parser.add_argument("--data", type=Path, default=EVAL, help="folder of labelled sets (default: %(default)s)")
    parser.add_argument("--examples", type=int, default=20, help="links of each set to list (default: %(default)s)")
    arguments = parser.parse_args()
    rows, recalls, examples = [], [], []
    with closing(CachedEmbedder(MiniLM())) as embedder:
        for name in SETS:
            counts = count(of_set(arguments.data, name), embedder)
            rows.append(counts.row(name))
            examples += _examples(name, counts, arguments.examples)
        every = list(of_worlds())
        for chosen in ("choose", "report"):
            counts = count((each for each in every if half(each.name) == chosen), embedder)
            rows.append(counts.row(f"worlds, {chosen}"))
            recalls.append(counts.recall_row(chosen))
            examples += _examples(f"worlds, {chosen}", counts, arguments.examples)
    tables: report.Tables = {"Links": rows, "True pairs of worlds": recalls, "Links not known to be right": examples}
    report.write(arguments.name, tables, [f"{CANDIDATES} nearest memories are compared with a text that has a cue."])


def of_set(data: Path, name: str) -> Iterator[Written]:
    """The documents of each scope, as they stand in the set; without times, a minute apart."""
    documents = sorted(load(data, name).documents, key=lambda each: each.scope or "")
    for scope, several in groupby(documents, key=lambda each: each.scope or ""):
        memories = [
            NewMemory(
                text=each.text,
                created=(each.created or START) + timedelta(minutes=at),
                session=each.session,
                position=each.position if each.session else None,
            )
            for at, each in enumerate(several)
        ]
        yield Written(f"{name} {scope}", memories)


def of_worlds() -> Iterator[Written]:
    for world in worlds.load():
        place = {each.label: at for at, each in enumerate(world.memories)}
        stale = [
            ([place[each] for each in asked.answers], [place[each] for each in asked.stale])
            for asked in world.questions
        ]
        yield Written(
            world.name,
            [
                NewMemory(
                    text=each.text,
                    created=each.created,
                    session=each.session,
                    position=each.position,
                    kind=each.kind,
                    source=each.source,
                )
                for each in world.memories
            ],
            frozenset((newer, older) for answers, olds in stale for newer in answers for older in olds),
            frozenset((newer, older) for _, olds in stale for newer in olds for older in olds),
        )


def count(stores: Iterable[Written], embedder: Embedder) -> Counts:
    counts = Counts()
    seen: set[tuple[str, str]] = set()  # several worlds have the same base
    for each in stores:
        _count_one(each, embedder, counts, seen)
    return counts


def _count_one(written: Written, embedder: Embedder, counts: Counts, seen: set[tuple[str, str]]) -> None:
    links, by_fact = links_of(written, embedder)
    texts = [each.text for each in written.memories]
    counts.stores += 1
    for at, text in enumerate(texts):
        cue = find_cue(text)
        if (text, "") not in seen:
            seen.add((text, ""))
            counts.memories += 1
            counts.cues += cue is not None
            counts.strong += cue is not None and cue.strong
            counts.looked_at += min(at, CANDIDATES) if cue is not None else 0
    counts.true += len(written.true)
    counts.true_linked += len(written.true & links.keys())
    counts.true_by_fact += len(written.true & by_fact)
    counts.true_found += len(written.true & (links.keys() | by_fact))
    for (newer, older), cue_words in links.items():
        pair = texts[newer], texts[older]
        if pair not in seen:
            seen.add(pair)
            counts.links += 1
            if (newer, older) not in written.true | written.among_stale:
                counts.wrong += 1
                counts.examples.append((cue_words, *pair))


def links_of(written: Written, embedder: Embedder) -> tuple[dict[tuple[int, int], str], set[tuple[int, int]]]:
    """By places of newer and older: the cue of each link, and the pairs where a fact supersedes another."""
    now = [START]  # each memory is written when it was created, so the nearest are all older
    with (
        tempfile.TemporaryDirectory() as folder,
        nacre.open(Path(folder) / "x.db", embedder=embedder, reranker=None, log=False, clock=lambda: now[0]) as memory,
    ):
        ids = []
        for each in written.memories:
            now[0] = each.created or START
            ids.append(memory.remember(each).id)
        place = {each: at for at, each in reversed(list(enumerate(ids)))}
        links: dict[tuple[int, int], str] = {}
        facts = []
        for start in range(0, len(ids), 100):
            found = memory.get(list(dict.fromkeys(ids[start : start + 100])))
            links |= {(place[each.newer], place[each.older]): each.cue for each in found.updates}
            facts += [fact for each in found for fact in each.facts]
        memory_of = {fact.id: fact.memory_id for fact in facts}
        by_fact = {
            (place[memory_of[fact.superseded_by]], place[fact.memory_id])
            for fact in facts
            if fact.superseded_by is not None
        }
    return links, by_fact


def _examples(name: str, counts: Counts, many: int) -> list[dict[str, object]]:
    step = max(1, len(counts.examples) // max(1, many))
    return [
        {"texts": name, "cue": cue, "newer": newer[:SHOWN_CHARS], "older": older[:SHOWN_CHARS]}
        for cue, newer, older in counts.examples[::step][:many]
    ]


if __name__ == "__main__":
    main()
