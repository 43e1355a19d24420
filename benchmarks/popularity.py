"""Does learning from use let a few memories crowd out the rest? A simulation with known relevance.

    python -m benchmarks.popularity [--searches 10000] [--days 60]

Memories have topics; a few match every question a little (hubs). Questions prefer popular topics, and half way the
popularity of topics is reversed. Two noisy channels are fused and multiplied by the usage factor of Nacre. The user
looks at rank r with probability 1/r, opens relevant memories more often than others, and marks some as used and a
few as wrong. All rows have the same questions, noise and user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import report
from nacre.ranking import usage
from nacre.types.recall_log import Outcome, Usage

START = datetime(2026, 1, 1, tzinfo=UTC)
TOPICS, ASPECTS, TWINS = 40, 5, 4  # 40 topics × 5 aspects × 4 memories = 800 memories
MEMORIES = TOPICS * ASPECTS * TWINS
HUBS = 40
POOL, PLACES = 50, 10
FAVOURITES = 10

# By relevance: 0 another topic, 1 the same topic, 2 the same aspect of it.
OPENS = (0.3, 0.5, 0.9)  # when looked at
USES = (0.05, 0.2, 0.6)  # when opened
WRONG = (0.1, 0.02, 0.0)  # when opened

Floats = NDArray[np.float64]


@dataclass(kw_only=True)
class Learner:
    """Usage counts as the stores keep them. Each switch turns one safeguard off."""

    name: str
    weight: float = 0.1
    bounded: bool = True
    fading: bool = True
    daily: bool = True
    by_rank: bool = True
    standings: dict[int, Usage] = field(default_factory=dict)
    earned: dict[tuple[int, Outcome], datetime] = field(default_factory=dict)

    def factor(self, memory: int, now: datetime) -> float:
        standing = self.standings.get(memory)
        if standing is None or not self.weight:
            return 1.0
        if self.bounded:
            return usage.factor(standing, self._time(now), self.weight)
        current = usage.faded(standing, self._time(now))
        return max(0.1, 1 + self.weight * (current.good + current.seen - current.bad))

    def delivered(self, memories: Sequence[int], now: datetime) -> None:
        for memory in memories:
            self.standings[memory] = usage.add(self.standings.get(memory), "delivered", self._time(now))

    def marked(self, memory: int, outcome: Outcome, now: datetime, rank: int) -> None:
        if self.daily and not usage.earns(self.earned.get((memory, outcome)), now):
            return
        self.earned[memory, outcome] = now
        place = rank if self.by_rank else usage.INVITING_PLACES
        self.standings[memory] = usage.add(self.standings.get(memory), outcome, self._time(now), place)

    def _time(self, now: datetime) -> datetime:
        return now if self.fading else START


@dataclass(frozen=True)
class Search:
    """A question with all of its random numbers, so that every learner sees the same."""

    at: datetime
    relevance: NDArray[np.int64]  # of every memory
    pool: NDArray[np.int64]  # candidates, best first
    scores: Floats  # of the candidates
    looks: NDArray[np.bool_]  # at each place
    chances: Floats  # for each place: to open, to mark as used, to mark as wrong
    late: bool  # after the popularity of topics was reversed


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The results of one learner. A delivery is a place among the first ten."""

    name: str
    top_ten_share: float  # of all places, taken by the ten most delivered memories
    distinct: int  # memories ever delivered
    gini: float  # of deliveries: 0 when all memories have equally many, 1 when one has all
    ndcg: float
    ndcg_late: float  # after the popularity of topics was reversed
    largest: float  # factor at the end
    former: tuple[float, float]  # mean factor of the ten favourites at the reversal: then, and at the end


def searches(number: int, days: float, seed: int = 1) -> Iterator[Search]:
    random = np.random.default_rng(seed)
    topic_of = np.repeat(np.arange(TOPICS), ASPECTS * TWINS)
    aspect_of = np.tile(np.repeat(np.arange(ASPECTS), TWINS), TOPICS)
    lure = random.normal(0, 0.3, MEMORIES)  # matches every question more, or less, than it should
    lure[random.choice(MEMORIES, HUBS, replace=False)] += 1.2
    popularity = 1 / np.arange(1, TOPICS + 1)
    popularity /= popularity.sum()
    asked = 1 / np.arange(1, ASPECTS + 1)
    asked /= asked.sum()
    for each in range(number):
        late = each >= number / 2
        topic = random.choice(TOPICS, p=popularity[::-1] if late else popularity)
        aspect = random.choice(ASPECTS, p=asked)
        relevance = (topic_of == topic).astype(np.int64) * (1 + (aspect_of == aspect))
        fused = np.zeros(MEMORIES)
        for _ in range(2):
            ranks = (-(relevance + lure + random.normal(0, 0.8, MEMORIES))).argsort().argsort() + 1
            fused += np.where(ranks <= POOL, 0.5 / (60 + ranks), 0)
        pool = np.flatnonzero(fused)[(-fused[fused > 0]).argsort(kind="stable")]
        yield Search(
            at=START + timedelta(days=days * each / number),
            relevance=relevance,
            pool=pool,
            scores=fused[pool],
            looks=random.random(PLACES) < 1 / np.arange(1, PLACES + 1),
            chances=random.random((PLACES, 3)),
            late=bool(late),
        )


def simulate(learner: Learner, asked: Sequence[Search]) -> Outcomes:
    deliveries = np.zeros((2, MEMORIES), dtype=np.int64)
    turn = next(search.at for search in asked if search.late)
    gains: list[list[float]] = [[], []]
    favourites: list[int] = []
    for search in asked:
        if search.late and not favourites:
            favourites = sorted(range(MEMORIES), key=lambda each: -learner.factor(each, turn))[:FAVOURITES]
            then = mean_factor(learner, favourites, turn)
        factors = np.array([learner.factor(int(memory), search.at) for memory in search.pool])
        shown = search.pool[(-search.scores * factors).argsort(kind="stable")][:PLACES]
        deliveries[int(search.late), shown] += 1
        gains[int(search.late)].append(ndcg(search.relevance[shown], search.relevance))
        learner.delivered(shown.tolist(), search.at)
        for place in np.flatnonzero(search.looks):
            memory, rank = int(shown[place]), int(place) + 1
            relevance = int(search.relevance[memory])
            opens, uses, wrong = search.chances[place]
            if opens < OPENS[relevance]:
                learner.marked(memory, "opened", search.at, rank)
                if uses < USES[relevance]:
                    learner.marked(memory, "used", search.at, rank)
                if wrong < WRONG[relevance]:
                    learner.marked(memory, "wrong", search.at, rank)
    every, end = deliveries.sum(axis=0), asked[-1].at
    return Outcomes(
        name=learner.name,
        top_ten_share=float(np.sort(every)[-FAVOURITES:].sum() / every.sum()),
        distinct=int((every > 0).sum()),
        gini=gini(every),
        ndcg=float(np.mean(gains[0] + gains[1])),
        ndcg_late=float(np.mean(gains[1])),
        largest=max(learner.factor(memory, end) for memory in range(MEMORIES)),
        former=(then, mean_factor(learner, favourites, end)),
    )


def mean_factor(learner: Learner, memories: Sequence[int], now: datetime) -> float:
    return float(np.mean([learner.factor(memory, now) for memory in memories]))


def ndcg(shown: NDArray[np.int64], relevance: NDArray[np.int64]) -> float:
    discounts = 1 / np.log2(np.arange(2, PLACES + 2))
    ideal = np.sort(relevance)[::-1][:PLACES]
    return float(((2.0**shown - 1) @ discounts) / ((2.0**ideal - 1) @ discounts))


def gini(counts: NDArray[np.int64]) -> float:
    ordered = np.sort(counts)
    places = np.arange(1, len(ordered) + 1)
    return float((2 * places - len(ordered) - 1) @ ordered / (len(ordered) * ordered.sum()))


def learners() -> list[Learner]:
    return [
        Learner(name="off", weight=0),
        Learner(name="shipped: bounded, decaying, once a day, by rank"),
        Learner(name="shipped, but not by rank", by_rank=False),
        Learner(name="shipped, but not once a day", daily=False),
        Learner(name="shipped, but not decaying", fading=False),
        Learner(name="bounded only", fading=False, daily=False, by_rank=False),
        Learner(name="unbounded: 1 + weight · (g - b)", bounded=False),
        Learner(name="no safeguard", bounded=False, fading=False, daily=False, by_rank=False),
    ]


def row(outcomes: Outcomes) -> dict[str, Any]:
    return {
        "learning": outcomes.name,
        "share of the ten most delivered": f"{outcomes.top_ten_share:.1%}",
        f"ever delivered, of {MEMORIES}": outcomes.distinct,
        "Gini": f"{outcomes.gini:.3f}",
        "nDCG@10": f"{outcomes.ndcg:.4f}",
        "nDCG@10 after the reversal": f"{outcomes.ndcg_late:.4f}",
        "largest factor": f"{outcomes.largest:.3f}",
        "factor of former favourites, at the reversal and at the end": "{:.3f}, {:.3f}".format(*outcomes.former),
    }


def main() -> None:
    parser = report.parser(__doc__, "popularity")
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asked = list(searches(arguments.searches, arguments.days, arguments.seed))
    rows = [row(simulate(learner, asked)) for learner in learners()]
    report.write(arguments.name, {"What learning from use does": rows})


if __name__ == "__main__":
    main()
