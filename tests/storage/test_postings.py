"""Segments by themselves: made, merged, filtered and scored as plain Python does it with plain values.

What the index does with them is tested in test_index.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from unittest.mock import patch

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index_files import check_equal_segments
from nacre.query.ast import Term, occurs, term_counts
from nacre.ranking.bm25 import bm25, idf
from nacre.storage.sqlite.index import postings, segment_builder
from nacre.storage.sqlite.index.postings import TermWeights, best_of_segment, best_of_spaces
from nacre.storage.sqlite.index.segment import Mask, Segment, Stamp, hashed, of_arrays
from nacre.storage.sqlite.index.segment_builder import merge
from nacre.storage.sqlite.index.space_index import Part, Space
from nacre.types.memory import Tokens
from nacre.types.recipe import Recipe, adjusted
from nacre.types.search import Filter

pytestmark = pytest.mark.slow

WORDS = tuple(f"w{number}" for number in range(12))
DIMENSIONS = 3
PATCHED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# ---------------------------------------------------------------- plain values


@dataclass(frozen=True)
class Plain:
    """A memory as it is told to a segment."""

    row: int
    tokens: Tokens
    marks: tuple[str, ...]
    created: int
    passages: tuple[tuple[int, tuple[int, ...]], ...]  # keys and vectors

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        return self.tokens.summary, self.tokens.tags, self.tokens.source

    @cached_property
    def terms(self) -> Counter[str]:
        """How often the text has each term; 0 for those that only the labels have."""
        counted = Counter([*self.tokens.words, *self.tokens.forms, *self.marks])
        for label in self.labels:
            for token in label:
                counted.setdefault(token, 0)
        return counted


def segment_of(memories: Sequence[Plain], superseded: Sequence[int] = ()) -> Segment:
    """As segments are described, posting by posting."""
    memories = sorted(memories, key=lambda each: each.row)
    having: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    labels: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for doc, each in enumerate(memories):
        for term, count in each.terms.items():
            having[term].append((doc, count))
        for field, label in enumerate(each.labels):
            for term, count in Counter(label).items():
                labels[term].append((doc, field, count))
    terms = {hashed(term): term for term in having}
    docs, counts, ends, most = [], [], [], []
    label_docs, label_fields, label_counts, label_ends = [], [], [], []
    for _, name in sorted(terms.items()):
        held, labelled = having[name], labels[name]
        docs += [doc for doc, _ in held]
        counts += [count for _, count in held]
        ends.append(len(docs))
        most.append(0 if labelled else max(count for _, count in held))
        label_docs += [doc for doc, _, _ in labelled]
        label_fields += [field for _, field, _ in labelled]
        label_counts += [count for _, _, count in labelled]
        label_ends.append(len(label_docs))
    passages = sorted((key, doc, vector) for doc, each in enumerate(memories) for key, vector in each.passages)
    matrix = np.array([vector for _, _, vector in passages], np.int8).reshape(len(passages), DIMENSIONS)
    norms = np.sqrt(np.square(matrix.astype(np.float32)).sum(axis=1))
    return Segment(
        rows=np.array([each.row for each in memories], np.int64),
        lengths=np.array([each.tokens.length for each in memories], np.int32),
        created=np.array([each.created for each in memories], np.int64),
        importance=np.full(len(memories), 0.5),
        superseded=np.array(sorted(superseded), np.int64),
        terms=np.array(sorted(terms), np.uint64),
        ends=np.array(ends, np.int64),
        most=np.array(most, np.uint32),
        docs=np.array(docs, np.uint32),
        counts=np.array(counts, np.min_scalar_type(max(counts, default=0))),
        label_ends=np.array(label_ends, np.int64),
        label_docs=np.array(label_docs, np.uint32),
        label_fields=np.array(label_fields, np.uint8),
        label_counts=np.array(label_counts, np.uint32),
        keys=np.array([key for key, _, _ in passages], np.int64),
        owners=np.array([doc for _, doc, _ in passages], np.uint32),
        matrix=matrix,
        norms=np.maximum(norms, np.float32(1e-12)),
    )


def some_memories(random: Random, rows: Sequence[int], *, labelled: bool = True) -> list[Plain]:
    """Short texts of few words, some of them frequent and some rare, so that scores tie."""

    def several(at_most: int) -> tuple[str, ...]:
        return tuple(WORDS[int(random.random() ** 2 * len(WORDS))] for _ in range(random.randint(0, at_most)))

    keys = iter(random.sample(range(10_000), 4 * len(rows)))
    return [
        Plain(
            row,
            Tokens(
                words=(words := several(6)),
                forms=several(2) if words else (),
                length=len(words) + random.randint(0, len(words)),
                summary=several(3) if labelled and random.random() < 0.3 else (),
                tags=several(2) if labelled and random.random() < 0.3 else (),
                source=several(1) if labelled and random.random() < 0.3 else (),
            ),
            ("\0kind\0note", f"\0tag\0{random.randint(0, 3)}"),
            random.randint(-5, 5),
            tuple(
                (next(keys), tuple(random.choices(range(-127, 128), k=DIMENSIONS)))
                for _ in range(random.choice([0, 1, 1, 3]))
            ),
        )
        for row in rows
    ]


# ---------------------------------------------------------------- scoring


def plain_best(memories: Sequence[Plain], alive: Sequence[bool], weights: TermWeights) -> list[tuple[int, float]]:
    """Every memory that has a significant term, scored in full; best first."""
    significant = [term for term, tells in zip(weights.terms, weights.significant, strict=True) if tells]
    scored = []
    for each, living in zip(memories, alive, strict=True):
        if living and any(occurs(term, each.tokens) for term in significant):
            counts = term_counts(weights.terms, each.tokens, weights.recipe)
            score = bm25(counts, weights.idfs, each.tokens.length, weights.mean_length, weights.recipe)
            scored.append((each.row, score))
    return sorted(scored, key=lambda each: (-each[1], each[0]))


@st.composite
def weightings(draw: st.DrawFn) -> TermWeights:
    terms = draw(st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6, unique=True))
    significant = draw(st.lists(st.booleans(), min_size=len(terms), max_size=len(terms)))
    weight = st.sampled_from([0, 0.001, 1, 2.5, 100])
    return TermWeights(
        [Term(term) for term in terms],
        draw(st.lists(st.sampled_from([0.01, 0.5, 0.5, 2.0, 7.3]), min_size=len(terms), max_size=len(terms))),
        draw(st.sampled_from([0, 1, 3.7, 40])),
        adjusted(
            Recipe(),
            bm25_k1=draw(st.sampled_from([0, 0.9, 3])),
            bm25_b=draw(st.sampled_from([0, 0.4, 1])),
            bm25_padding=draw(st.sampled_from([0, 20])),
            summary_weight=draw(weight),
            tags_weight=draw(weight),
            source_weight=draw(weight),
        ),
        significant if any(significant) else [True] * len(terms),
    )


branches = st.fixed_dictionaries(
    {
        "_FEW": st.sampled_from([0, 5, 10_000]),  # all is read through below it, and pruned above
        "_CHOSEN_SHARE": st.sampled_from([1, 16, 10**9]),  # 1: what passes is nearly always looked up
        "_FEW_LEFT": st.sampled_from([0, 5, 256]),  # 0: narrowed down to the last
        "_LEADING": st.sampled_from([1, 2]),
        "_SCANNED_SHARE": st.sampled_from([1, 10**9]),  # the latter: all sums are looked through
        "_MANY": st.sampled_from([0, 1_024]),  # 0, with what follows: terms are spread out
        "_LOOKED_UP_SHARE": st.sampled_from([4, 10**9]),
        "_SPREAD_SHARE": st.sampled_from([2, 10**9]),
        "_SPREAD_MAX": st.sampled_from([0, 1, 64]),
    }
)


def patched(branch: dict[str, int]) -> AbstractContextManager[object]:
    return patch.multiple("nacre.storage.sqlite.index.postings", **branch)  # type: ignore[call-overload, no-any-return]


livings = st.sampled_from([None, 1.0, 0.5, 0.1, 0.0])  # the share of memories that are alive


def alive_of(random: Random, count: int, living: float | None) -> Mask | None:
    return None if living is None else np.array([random.random() < living for _ in range(count)], np.bool_)


@settings(PATCHED, max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 60),
    weights=weightings(),
    limit=st.integers(1, 50),
    living=livings,
    branch=branches,
    labelled=st.booleans(),
    known=st.integers(-1, 60),
)
def test_the_best_of_a_segment_are_those_of_a_full_search(
    seed: int,
    count: int,
    weights: TermWeights,
    limit: int,
    living: float | None,
    branch: dict[str, int],
    labelled: bool,
    known: int,
) -> None:
    """To the last bit, with all that tie, whatever way is taken; where better ones are known, only those above."""
    random = Random(seed)
    memories = some_memories(random, sorted(random.sample(range(1, 1000), count)), labelled=labelled)
    alive = alive_of(random, count, living)
    right = plain_best(memories, [True] * count if alive is None else alive.tolist(), weights)
    least = right[known][1] if 0 <= known < len(right) else 0.0
    with patched(branch):
        found = best_of_segment(segment_of(memories), alive, weights, weights.hashes, limit, least)
    cut = right[limit - 1][1] if len(right) >= limit else 0.0
    if least == 0:
        assert sorted(found) == sorted(each for each in right if each[1] >= cut)
    assert set(found) <= set(right)
    assert {each for each in found if each[1] >= least} >= {each for each in right if each[1] >= max(cut, least)}


@settings(PATCHED, max_examples=100)
@given(
    seed=st.integers(0, 2**32),
    counts=st.lists(st.integers(0, 25), min_size=1, max_size=4),
    weights=weightings(),
    limit=st.integers(1, 50),
    living=livings,
    branch=branches,
)
def test_the_best_of_several_segments_and_spaces(
    seed: int, counts: list[int], weights: TermWeights, limit: int, living: float | None, branch: dict[str, int]
) -> None:
    """Best first, ties by id; ids are in another order than rows."""
    random = Random(seed)
    numbers = random.sample(range(1, 1000), sum(counts))
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE memories (row INTEGER PRIMARY KEY, id TEXT)")
    right: list[tuple[str, float]] = []
    parts: list[list[Part]] = [[], []]
    for number, count in enumerate(counts):
        rows, numbers = sorted(numbers[:count]), numbers[count:]
        ids = {row: f"{random.randrange(10**6)}-{row}" for row in rows}
        db.executemany("INSERT INTO memories VALUES (?, ?)", ids.items())
        memories = some_memories(random, rows)
        alive = alive_of(random, count, living)
        stamp = Stamp("store", "model", 1, f"space {number % 2}", number, number + 1, "")
        parts[number % 2].append(Part(stamp, segment_of(memories), alive, saved=False))
        scored = plain_best(memories, [True] * count if alive is None else alive.tolist(), weights)
        right += [(ids[row], score) for row, score in scored]
    spaces = [Space(f"space {number}", "model", 9, tuple(each)) for number, each in enumerate(parts)]
    with patched(branch):
        found = best_of_spaces(db, spaces, weights, Filter(spaces=("space 0", "space 1")), None, limit)
    db.close()
    right.sort(key=lambda each: (-each[1], each[0]))
    assert [(match.id, match.score) for match in found] == right[:limit]


# ---------------------------------------------------------------- what is spared


@dataclass(frozen=True)
class Lake:
    """Twenty thousand memories speak of water, every second of boats, and five of a heron."""

    segment: Segment
    right: list[tuple[int, float]]
    weights: TermWeights


@pytest.fixture(scope="module")
def lake() -> Lake:
    said = [
        ["water", *["boat"] * (row % 2), *["heron"] * (row % 4_000 == 7), *["filler"] * (row % 3)]
        for row in range(20_000)
    ]
    memories = [Plain(row, Tokens(tuple(words), (), len(words)), (), 0, ()) for row, words in enumerate(said)]
    terms = [Term("water"), Term("heron"), Term("boat")]
    having = [sum(term.text in words for words in said) for term in terms]
    weights = TermWeights(
        terms, [idf(len(said), each) for each in having], 3.0, adjusted(Recipe(), bm25_padding=0), [True, True, True]
    )
    return Lake(segment_of(memories), plain_best(memories, [True] * len(said), weights), weights)


@pytest.fixture
def read_through(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words whose postings were read from beginning to end."""
    words: list[str] = []
    usual = postings._Scorer._contributions

    def noting(self: postings._Scorer, each: postings._TermPostings) -> object:
        words.append(self._weights.terms[each.at].text)
        return usual(self, each)

    monkeypatch.setattr(postings._Scorer, "_contributions", noting)
    monkeypatch.setattr(postings, "_FEW", 2_000)
    return words


def ranked(found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    return sorted(found, key=lambda each: (-each[1], each[0]))


def test_a_frequent_word_is_looked_up_where_rare_ones_decide(lake: Lake, read_through: list[str]) -> None:
    """Five have the heron: no other can be among the best three, so nobody reads who has water or boats."""
    found = best_of_segment(lake.segment, None, lake.weights, lake.weights.hashes, 3, 0.0)
    assert ranked(found)[:3] == lake.right[:3]
    assert read_through == ["heron"]


def test_a_frequent_word_is_read_where_rare_ones_are_too_few(lake: Lake, read_through: list[str]) -> None:
    """The sixth has no heron: boats tell more than water, and who has both is among the ten best."""
    found = best_of_segment(lake.segment, None, lake.weights, lake.weights.hashes, 10, 0.0)
    assert ranked(found)[:10] == lake.right[:10]
    assert read_through == ["heron", "boat"]


def test_what_is_known_from_elsewhere_spares_reading(lake: Lake, read_through: list[str]) -> None:
    """Another segment has ten that are better than anything without a heron."""
    least = lake.right[4][1]
    found = best_of_segment(lake.segment, None, lake.weights, lake.weights.hashes, 10, least)
    assert ranked(found)[:5] == lake.right[:5]
    assert read_through == ["heron"]


def test_words_that_tell_nothing_are_never_read(lake: Lake, read_through: list[str]) -> None:
    """They score those that others have found, and nothing else."""
    weights = replace(lake.weights, significant=[False, True, False])
    found = best_of_segment(lake.segment, None, weights, weights.hashes, 10, 0.0)
    assert ranked(found) == lake.right[:5]
    assert read_through == ["heron"]


def test_the_few_that_pass_a_filter_are_looked_up(lake: Lake, read_through: list[str]) -> None:
    alive = np.zeros(20_000, np.bool_)
    alive[[7, 8, 9, 4_007, 19_999]] = True
    found = best_of_segment(lake.segment, alive, lake.weights, lake.weights.hashes, 2, 0.0)
    passing = [each for each in lake.right if alive[each[0]]]
    assert ranked(found)[:2] == passing[:2]
    assert {row for row, _ in found[:2]} <= {7, 4_007}
    assert read_through == []


def test_long_questions_are_exact_too() -> None:
    """Hundreds of words add up to scores whose single precision is coarse: what is close is not dropped."""
    random = Random(5)
    words = [f"word{number}" for number in range(300)]
    memories = []
    for row in range(600):
        said = [word for word in words for _ in range(random.choice([1, 1, 1, 1, 2]))]
        memories.append(Plain(row, Tokens(tuple(said), (), len(said)), (), 0, ()))
    idfs = [14 + number / 300 for number in range(300)]
    weights = TermWeights([Term(word) for word in words], idfs, 350.0, Recipe(), [True] * 300)
    right = plain_best(memories, [True] * 600, weights)
    segment = segment_of(memories)
    for limit in (85, 92, 99, 120):
        found = best_of_segment(segment, None, weights, weights.hashes, limit, 0.0)
        assert ranked(found)[:limit] == right[:limit]


# ---------------------------------------------------------------- merging


@settings(PATCHED, max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    living=livings,
    base=st.booleans(),
    postings_at_once=st.sampled_from([1, 7, 10**6]),
    passages_at_once=st.sampled_from([1, 5, 10**6]),
)
def test_merged_segments_are_one_segment_of_what_is_alive(
    seed: int, counts: list[int], living: float | None, base: bool, postings_at_once: int, passages_at_once: int
) -> None:
    """Rows come in any order over the parts, as memories that were changed do."""
    random = Random(seed)
    numbers = random.sample(range(1, 1000), sum(counts))
    keys = iter(random.sample(range(1, 100_000), 4 * sum(counts)))
    parts: list[tuple[Segment, Mask | None]] = []
    left: list[Plain] = []
    touched: set[int] = set()
    for count in counts:
        rows, numbers = sorted(numbers[:count]), numbers[count:]
        memories = [
            replace(each, passages=tuple((next(keys), vector) for _, vector in each.passages))
            for each in some_memories(random, rows)
        ]
        superseded = [*rows, *random.sample(range(1000, 1100), 3)]
        touched.update(superseded)
        alive = alive_of(random, count, living)
        parts.append((segment_of(memories, superseded), alive))
        left += [each for at, each in enumerate(memories) if alive is None or alive[at]]
    pulses: list[None] = []
    with patch.multiple(segment_builder, _MERGED_POSTINGS=postings_at_once, _MERGED_PASSAGES=passages_at_once):
        merged = of_arrays(merge(parts, base, pulse=lambda: pulses.append(None)))
    check_equal_segments(merged, segment_of(left, [] if base else sorted(touched)))
    assert pulses or not len(merged)


def test_merging_can_be_broken_off() -> None:
    class Enough(Exception):
        pass

    def pulse() -> None:
        raise Enough

    memories = some_memories(Random(1), range(10))
    with pytest.raises(Enough):
        merge([(segment_of(memories), None)], True, pulse=pulse)


def test_a_memory_that_says_a_word_often() -> None:
    """Counts are kept in as few bytes as they need, also where parts need different ones."""
    few, many = (
        segment_of([Plain(row, Tokens(("a",) * count, (), count), (), 0, ())]) for row, count in ((1, 200), (2, 70_000))
    )
    assert few.counts.itemsize < many.counts.itemsize
    for parts in ([few, many], [many, few]):
        merged = of_arrays(merge([(part, None) for part in parts], True))
        assert merged.counts.tolist() == [200, 70_000]
        assert merged.most.tolist() == [70_000]
