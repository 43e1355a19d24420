"""docs/ranking.md says what is so: its tables are the code's, and its example is run and reckoned again.

A table that is not understood fails, and so does a number in the prose of the example that is not part of a sum,
so nothing there can go unchecked.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

from nacre.analysis import tokenizer
from nacre.cli.render import why_lines
from nacre.engine import late_interaction_stage, rerank_stage
from nacre.engine.engine import Nacre
from nacre.engine.explain import Stage, Why
from nacre.engine.search_trace import SearchTrace
from nacre.errors import InvalidInput
from nacre.facts.confidence import FLOOR, SHARES, memory_confidence
from nacre.facts.supersession import is_single_valued
from nacre.query import intent, lenses
from nacre.query.ast import Term, term_counts
from nacre.ranking import fusion, late_interaction, rerank, scoring, token_budget
from nacre.ranking.bm25 import COMMON_SHARE, bm25, idf
from nacre.ranking.fusion import by_meaning, places
from nacre.ranking.neighbours import echoed
from nacre.ranking.passage_count import expected_best, gain_by_chance
from nacre.ranking.relevance import (
    BY_BOTH,
    BY_MEANING,
    BY_READING,
    BY_WORDS,
    RERANK_LEAD,
    Meaning,
    Words,
    evidence,
    others,
    relevance,
    with_lead,
    words_once,
)
from nacre.ranking.scoring import score
from nacre.ranking.usage import CREDITS, INVITING_PLACES
from nacre.types.facts import DECAY_PER_DAY
from nacre.types.intents import NAMESPACE_WEIGHTS
from nacre.types.memory import NewMemory, Span, Tokens
from nacre.types.recipe import CLASSIC, TUNED, WEIGHTS, Fusion, Recipe, adjusted, weights_of
from nacre.types.search import Match, Ranked, Reason, SearchRequest, SearchResult
from nacre.types.tokens import QueryTokens, TokenFormat
from nacre.types.views import Neighbours
from nacre.validation import LIMITS
from nacre.validation import recipe as checked_recipe

PAGE = Path(__file__).parents[2] / "docs" / "ranking.md"
RECIPE = Recipe()
FACTORS = ("recency", "confidence", "entity", "intent", "usage")
REQUESTED = ("namespace", "importance", "boost")  # factors that the default recipe does not have
MOVES = ("exact", "hop", "standing", "temporal", "order", "fresher", "successor", "superseded")
SHARED = {"words": "lexical", "meaning": "semantic", "relation": "relation", "echo": "echo"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# ---------------------------------------------------------------- reading the page

Row = Mapping[str, str]  # cells by the heads of their columns


class Table(NamedTuple):
    heads: tuple[str, ...]
    rows: tuple[Row, ...]


class Page(NamedTuple):
    tables: tuple[Table, ...]
    code: Mapping[str, Sequence[str]]  # fenced blocks by language
    prose: str  # in one line, without tables and blocks

    def table(self, *heads: str) -> tuple[Row, ...]:
        (found,) = (each for each in self.tables if each.heads == heads)
        return found.rows


def read_page(text: str) -> Page:
    tables: list[Table] = []
    code: dict[str, list[str]] = {}
    prose: list[str] = []
    open_table: list[list[str]] = []
    block: list[str] | None = None
    for line in [*text.splitlines(), ""]:
        if line.startswith("|") and block is None:
            open_table.append([cell.strip() for cell in line[1:-1].split("|")])
            continue
        if open_table:
            tables.append(_table(open_table))
            open_table = []
        if line.startswith("```"):
            if block is None:
                block = []
                code.setdefault(line[3:], []).append("")
                language = line[3:]
            else:
                code[language][-1] = "\n".join(block)
                block = None
        elif block is not None:
            block.append(line)
        else:
            prose.append(line)
    return Page(tuple(tables), code, " ".join(" ".join(prose).split()))


def _table(lines: Sequence[Sequence[str]]) -> Table:
    heads, rule, *rows = lines
    if any(set(cell) != {"-"} for cell in rule):
        raise ValueError(f"no rule under {heads}")
    return Table(tuple(heads), tuple(dict(zip(heads, row, strict=True)) for row in rows))


TEXT = PAGE.read_text("utf-8")
BEFORE, REST = TEXT.split("\n## The worked example\n")
EXAMPLE, AFTER = REST.split("\n## Measured\n")
RULES, WORKED = read_page(BEFORE), read_page(EXAMPLE)


def _code(cell: str) -> str:
    assert cell[0] == cell[-1] == "`", cell
    return cell[1:-1]


def shows(cell: str, value: float) -> bool:
    """Whether a number on the page is this one, to the digits shown."""
    if not NUMBER.fullmatch(cell):
        raise ValueError(f"{cell!r} is no number")
    digits = len(cell.partition(".")[2])
    return abs(float(cell) - value) <= 0.5 * 10.0**-digits + 1e-9


# ---------------------------------------------------------------- the rules are the code's


def test_every_table_is_checked() -> None:
    checked = {
        ("factor", "least", "most", "switched off by"),
        ("part", "what it is", "what it does"),  # words only
        ("lens", "what it does"),
        ("passages", "expected best", "taken off"),
        ("first match", "weight", "coverage", "best", "crowd", "gap", "share"),
        ("nDCG@10", "better channel", "rank fusion", "not reranked", "default"),
        ("boosted", "BM25", "cosine", "sum"),
        ("neighbour", "share", "default"),
        ("token", "weight", "match in a", "match in b", "match in b, next to a"),
        ("type", "rate a day", "half is left after", "one value at a time"),
        ("reinforcement", "share"),
        ("intent", "namespaces"),
        ("what happened", "credit", "counts as"),
        ("evidence", "by words", "by meaning", "by both"),
        ("evidence", "weight", "of what"),
        ("stage", "it was lost because", "what brings it in"),
        ("field", "default", "allowed", "stage"),
        ("constant", "default", "allowed", "stage"),
        ("field", "default", "meaning"),
        ("number", "value", "in the code"),
    }
    assert {table.heads for table in RULES.tables} == checked
    assert not read_page(AFTER).tables


def test_every_field_of_a_recipe_has_its_default_and_its_bounds() -> None:
    rows = RULES.table("field", "default", "allowed", "stage")
    tuned = RULES.table("constant", "default", "allowed", "stage")
    assert [_code(row["field"]) for row in rows] == [name for name in WEIGHTS if name not in TUNED]
    assert [_code(row["constant"]) for row in tuned] == list(TUNED)
    rows = (*rows, *({"field": row["constant"], **row} for row in tuned))
    for row in rows:
        name = _code(row["field"])
        if name == "fusion":
            assert row["default"] == repr(RECIPE.fusion)
            assert row["allowed"] == ", ".join(f"`{each}`" for each in get_args(Fusion))
            continue
        least, most = map(float, NUMBER.findall(row["allowed"]))
        if name == "intents":
            assert row["default"] == "the table above"
        else:
            assert row["default"] == repr(weights_of(RECIPE)[name])
        for allowed in (least, most):
            checked_recipe(_with(name, allowed), LIMITS)
        for refused in (least - 1, most + 1):
            with pytest.raises(InvalidInput):
                checked_recipe(_with(name, refused), LIMITS)


def _with(name: str, value: float) -> Recipe:
    if name == "namespace_weights":
        return adjusted(RECIPE, namespace_weights={"notes": value})
    if name == "intents":
        return adjusted(RECIPE, intents={"general": {"notes": value}})
    return adjusted(RECIPE, **{name: type(weights_of(RECIPE)[name])(value)})


def test_every_field_of_a_request_has_its_default() -> None:
    rows = RULES.table("field", "default", "meaning")
    assert [_code(row["field"]) for row in rows] == [each.name for each in fields(SearchRequest)]
    request = SearchRequest(query="")
    for each, row in zip(fields(SearchRequest), rows, strict=True):
        if each.default is MISSING and each.default_factory is MISSING:
            assert row["default"] == "required"
        elif each.default is MISSING:
            assert _code(row["default"]) == f"{type(getattr(request, each.name)).__name__}()"
        else:
            assert _code(row["default"]) == repr(each.default)
    assert f"1 to {LIMITS.results_max}" in next(row["meaning"] for row in rows if row["field"] == "`limit`")


def test_what_is_taken_off_for_passages_is_computed() -> None:
    for row in RULES.table("passages", "expected best", "taken off"):
        passages = int(row["passages"])
        assert shows(row["expected best"], expected_best(passages))
        assert shows(row["taken off"], gain_by_chance(passages, RECIPE.passages_weight))


def test_defaults_in_the_prose_are_those_of_the_recipe() -> None:
    delivered = dict(re.findall(r"`(\w+)` \((-?[\d.]+)\)", RULES.prose))
    assert delivered.keys() == set(WEIGHTS) - {"intents", "namespace_weights", "fusion"}
    assert f"`fusion` (`{RECIPE.fusion}`)" in RULES.prose
    assert {name: repr(weights_of(RECIPE)[name]) for name in delivered} == delivered


def test_the_first_of_a_channel_is_worth_this() -> None:
    rows = RULES.table("first match", "weight", "coverage", "best", "crowd", "gap", "share")
    weights = {"words": 1 - RECIPE.alpha, "meaning": RECIPE.alpha}
    for row in rows:
        weight, coverage, best, crowd = (float(row[head]) for head in ("weight", "coverage", "best", "crowd"))
        assert weight == weights[row["first match"].split()[1].strip(",")]
        scores = [best, *[crowd] * (RECIPE.tuning.crowd - 1)]
        matches = [Match(str(place), each) for place, each in enumerate(scores)]
        of = by_meaning(matches, weight, RECIPE, coverage)
        first = of.share(places(matches)["0"], RECIPE.k)
        assert shows(row["gap"], of.gap)
        assert shows(row["share"], first.value)


def test_shares_have_this_bound() -> None:
    most = 1 + fusion._TAIL
    assert f"less than {most:g} times the weight, the sum less than {most:g}." in RULES.prose
    tail = fusion._TAIL * RECIPE.k / (RECIPE.k + 1)
    both = fusion.fuse([Match("a", 9.0)], [Match("a", 0.9)], adjusted(RECIPE, crowd=1))  # itself is the crowd
    assert both[0].score == pytest.approx(tail)
    alone = fusion.fuse([Match("a", 9.0)], [], replace(RECIPE, alpha=0))
    assert alone[0].score == pytest.approx(1 + tail)
    (row,) = (row for row in RULES.table("field", "default", "allowed", "stage") if row["field"] == "`k`")
    largest = int(NUMBER.findall(row["allowed"])[1])
    assert fusion.fuse([Match("a", 9.0)], [], replace(RECIPE, alpha=0, k=largest))[0].score < most


def test_few_words_are_trusted_by_the_share_of_the_ideal() -> None:
    assert f"`gap = best / ({fusion.CONVINCING} · ideal)`, at most 1" in RULES.prose
    for best, gap in ((3.0, 0.5), (6.0, 1.0), (9.0, 1.0)):
        assert fusion.by_words([Match("a", best), Match("b", 1.0)], 1, RECIPE, ideal=12.0).gap == gap


def test_the_measured_table_says_what_is_said_of_it() -> None:
    rows = RULES.table("nDCG@10", "better channel", "rank fusion", "not reranked", "default")
    (delivered,) = re.findall(
        r"On (\d+) labelled sets .+? loses up to ([\d.]+) points .+? the default, .+?, loses ([\d.]+) at the most,"
        r" and ([\d.]+) without reranking",
        RULES.prose,
    )
    lost = [
        round(max(100 * (float(row["better channel"]) - float(row[head])) for row in rows), 1)
        for head in ("rank fusion", "default", "not reranked")
    ]
    assert [len(rows), *lost] == [float(number) for number in delivered]


def test_meaning_boosts_so() -> None:
    rows = RULES.table("boosted", "BM25", "cosine", "sum")
    by_words = [Match(row["boosted"], float(row["BM25"])) for row in rows if row["BM25"] != "none"]
    by_cosine = sorted((Match(row["boosted"], float(row["cosine"])) for row in rows), key=lambda each: -each.score)
    boost = replace(RECIPE, fusion="boost")
    near = [match for match in by_cosine if match.score >= RECIPE.semantic_floor]
    cosines = {match.id: match.score for match in by_cosine if match not in near}
    found = fusion.fuse(sorted(by_words, key=lambda each: -each.score), near, boost, cosines=cosines)
    assert len(found) == len(rows)
    for each in found:
        (row,) = (row for row in rows if row["boosted"] == each.id)
        assert shows(row["sum"], each.score)
        assert score(each.reasons) == each.score


def test_neighbours_hear_so_much() -> None:
    rows = RULES.table("neighbour", "share", "default")
    assert [_code(row["share"]) for row in rows] == ["echo_next", "echo_far", "echo_back"]
    for row in rows:
        assert row["default"] == repr(weights_of(RECIPE)[_code(row["share"])])
    before, behind = Ranked("before", 0.8, (), None, None), Ranked("behind", 0.3, (), None, None)
    beside = {"before": Neighbours((), ("here", "behind")), "behind": Neighbours(("here",), ())}
    heard = echoed([before, behind], beside, {"here"}, RECIPE)
    ((sum_, total),) = SUM.findall(RULES.prose)
    (here,) = (each for each in heard if each.id == "here")
    assert shows(total, here.score)
    assert reckoned(sum_) == pytest.approx(here.score)


def _summed(memory_id: str, sum_: float) -> Ranked:
    return Ranked(memory_id, sum_, (Reason("lexical", "add", sum_, {}),), None, None)


def test_tokens_match_so() -> None:
    *tokens, total = RULES.table("token", "weight", "match in a", "match in b", "match in b, next to a")
    weights = np.array([float(row["weight"]) for row in tokens], np.float32)
    assert float(total["weight"]) == weights.sum()
    axes = np.eye(len(tokens) + 1, dtype=np.float32)
    asked = QueryTokens(tuple(Span(at, at + 1) for at in range(len(tokens))), axes[:-1], weights)
    form = TokenFormat(len(axes), 8)
    # A token for each match; the rest of it points to where no token of the question does.
    texts = {}
    for name in "ab":
        matches = [float(row[f"match in {name}"]) for row in tokens]
        rows = [match * axes[at] + math.sqrt(1 - match**2) * axes[-1] for at, match in enumerate(matches)]
        texts[name] = [late_interaction.pack(np.array(rows, np.float32), form)]
    for head, beside in (("a", ()), ("b", ()), ("b, next to a", ("a",))):
        (score,) = late_interaction.maxsim(asked, texts, {head[0]: beside}, form).values()
        assert shows(total[f"match in {head}"], score)
        met = late_interaction.matched_tokens(asked, [texts[each] for each in (head[0], *beside)], form)
        for row, match in zip(tokens, met, strict=True):
            assert shows(row[f"match in {head}"], match.similarity if match else 0.0)


def test_late_interaction_is_worth_this() -> None:
    for said in (
        f"where {late_interaction.NEIGHBOUR} of it counts",
        f"If it is below {late_interaction._CONVERSANT}, nothing is compared",
    ):
        assert said in RULES.prose or any(said in block for block in RULES.code[""])
    number = {3: "three", 4: "four"}
    assert f"the {number[late_interaction_stage.PASSAGES_COMPARED]} nearest by their vectors" in RULES.prose
    around = number[scoring.AROUND]
    assert f"the median lead of the {around} before it and the {around} behind it" in RULES.prose
    assert f"With `maxsim_weight` ({RECIPE.maxsim_weight}), a lead of {1 / RECIPE.maxsim_weight} lifts" in RULES.prose
    far = [_summed("a", 0.8), _summed("b", 0.5), _summed("c", 0.3)]
    first, *rest = late_interaction.blended(far, {"a": 0.4, "b": 0.5, "c": 0.6}, 3, RECIPE.maxsim_weight, 0.5)
    assert (first.id, first.score) == ("a", 0.8)
    assert [each.score for each in rest] == pytest.approx([0.5 + 4 * 0.25 * 0.5 * 0.1, 0.3 + 4 * 0.25 * 0.5 * 0.2])
    near = [_summed("a", 0.8), _summed("b", 0.79)]
    first, second = late_interaction.blended(near, {"a": 0.50, "b": 0.55}, 2, RECIPE.maxsim_weight, 1)
    assert (first.id, second.id) == ("b", "a")
    assert first.score == pytest.approx(0.79 + 4 * 0.08 * 0.05)


def test_reranking_is_worth_this() -> None:
    for said in (
        f"with more than {rerank_stage.WHOLE_CHARS} characters a window of {rerank_stage.WINDOW_CHARS} is used",
        f"in total {rerank_stage.RERANKED_CHARS:,} characters at the most",
        f"If it is below {rerank._COVERED}, nothing is reranked",
        f"the second has less than `clear_share` ({RECIPE.tuning.clear_share}) of its sum",
        f"the first {rerank_stage.READ_MIN} are read in any case",
        f"{rerank_stage.SCORES_CACHED:,} scores of the reranker",
    ):
        assert said in RULES.prose
    (formula,) = (block for block in RULES.code[""] if block.startswith("share  = rerank_weight"))
    assert "rerank_weight · coverage² · spread · (reranked - least)" in formula
    far = [_summed("a", 0.8), _summed("b", 0.5), _summed("c", 0.3)]
    given = rerank.reranked(far, {"a": -2.0, "b": 1.0, "c": -1.0}, weight=0.2, coverage=0.5)
    assert [each.score for each in given] == pytest.approx([0.8, 0.5 + 0.2 * 0.25 * 0.5 * 3, 0.3 + 0.2 * 0.25 * 0.5])
    assert "at least a tenth of the best" in formula
    near = [_summed("a", 0.8), _summed("b", 0.79)]
    given = rerank.reranked(near, {"a": 0.0, "b": 1.0}, weight=0.2, coverage=1)
    assert [each.score for each in given] == pytest.approx([0.8, 0.79 + 0.2 * 0.08])
    given = rerank.reranked(far, {"a": -2.0, "b": 1.0}, weight=0.2, coverage=1, unread=["c"])
    assert [each.score for each in given] == pytest.approx([0.8, 0.5 + 0.2 * 0.5 * 3, 0.3])


def test_so_much_better_lifts_the_last_to_the_first() -> None:
    assert "`1 / rerank_weight` more on that scale lifts the last of them to the first" in RULES.prose
    weight = RECIPE.rerank_weight
    far = [_summed("a", 0.8), _summed("b", 0.3)]
    first, last = rerank.reranked(far, {"a": 0.0, "b": 1 / weight}, weight, coverage=1)
    assert first.score == pytest.approx(last.score) == 0.8


def test_a_lead_among_those_that_were_read_is_worth_this() -> None:
    assert f"gets `{RERANK_LEAD} · lead` more log-odds" in RULES.prose
    assert with_lead(0.5, 2.0) == pytest.approx(1 / (1 + math.exp(-1)))
    assert with_lead(0.5, -2.0) == 0.5


def test_classic_is_the_textbook(ran: Ran) -> None:
    plain = replace(ran.question, lens="none", merge_relations=False)
    for asked in (replace(plain, recipe=CLASSIC), replace(plain, lens="classic")):
        ranked = ran.memory._searcher.trace(asked).ranking.ranked
        assert len(ranked) == 5
        for each in ranked:
            assert {reason.signal for reason in each.reasons} <= {"lexical", "semantic"}
            assert each.score == sum(0.5 / (60 + found.rank) for found in (each.lexical, each.semantic) if found)


def test_every_factor_is_bounded_so() -> None:
    surest = intent.detect("why did we choose this?").confidence
    weights = [weight for namespaces in NAMESPACE_WEIGHTS.values() for weight in namespaces.values()]
    expected = {
        "recency": (1, 1 + RECIPE.recency_weight),
        "confidence": (1 - RECIPE.confidence_weight + RECIPE.confidence_weight * FLOOR, 1),
        "entity": (1, 1 + RECIPE.entity_weight),
        "intent": (1, 1 + RECIPE.intent_weight * surest * (max(weights) - 1)),
        "usage": (1 - RECIPE.usage_weight, 1 + RECIPE.usage_weight),
    }
    assert min(weights) > 1
    assert RECIPE.min_confidence <= FLOOR
    rows = RULES.table("factor", "least", "most", "switched off by")
    assert [row["factor"] for row in rows] == list(expected) == list(FACTORS)
    for row in rows:
        least, most = expected[row["factor"]]
        assert shows(row["least"], least)
        assert shows(row["most"], most)
        name, _, value = _code(row["switched off by"].split(", or")[0]).partition("=")
        assert (name, value) == (f"{row['factor']}_weight", "0")


def test_lenses_are_those_that_are_built_in() -> None:
    rows = RULES.table("lens", "what it does")
    built_in = {name: lens.description for name, lens in lenses.BUILT_IN.items()}
    assert {_code(row["lens"]): row["what it does"] for row in rows} == built_in
    assert lenses.BUILT_IN["brief"].min_score == 0.15


def test_facts_fade_so() -> None:
    rows = RULES.table("type", "rate a day", "half is left after", "one value at a time")
    assert {row["type"]: float(row["rate a day"]) for row in rows} == DECAY_PER_DAY
    for row in rows:
        assert shows(row["half is left after"].removesuffix(" days"), math.log(2) / float(row["rate a day"]))
    single = {each: "yes" if is_single_valued("some predicate", each) else "no" for each in DECAY_PER_DAY}
    assert {row["type"]: row["one value at a time"] for row in rows} == single
    assert is_single_valued("lives in", "identity")
    assert is_single_valued("status", "identity")
    assert not is_single_valued("uses", "kv")


def test_reinforcements_take_back_so_much() -> None:
    rows = RULES.table("reinforcement", "share")
    assert {row["reinforcement"]: float(row["share"]) for row in rows} == SHARES


def test_intents_prefer_these_namespaces() -> None:
    rows = RULES.table("intent", "namespaces")
    delivered = {
        row["intent"]: {name: float(weight) for name, weight in re.findall(r"`(\w+)` ([\d.]+)", row["namespaces"])}
        for row in rows
    }
    assert delivered == NAMESPACE_WEIGHTS == RECIPE.tuning.intents
    assert [row["namespaces"] for row in rows if not delivered[row["intent"]]] == ["none"]


def test_intent_decides_between_equals() -> None:
    (delivered,) = re.findall(
        r"a factor of at most ([\d.]+) makes up for a score that is ([\d.]+) % lower", RULES.prose
    )
    most, lower = map(float, delivered)
    assert shows(delivered[1], 100 * (1 - 1 / most))
    ((second, first),) = [map(float, each) for each in re.findall(r"(\d+)/(\d+) of the share", RULES.prose)]
    assert (second, first) == (RECIPE.k + 1, RECIPE.k + 2)
    (row,) = (row for row in RULES.table("factor", "least", "most", "switched off by") if row["factor"] == "intent")
    assert delivered[0] == row["most"]
    assert most * second / first < 1
    assert lower < 100 * (1 - second / first)


def test_outcomes_earn_these_credits() -> None:
    rows = RULES.table("what happened", "credit", "counts as")
    assert {row["what happened"]: float(row["credit"]) for row in rows} == CREDITS
    assert INVITING_PLACES == 10
    assert f"from rank {INVITING_PLACES} on" in next(
        row["counts as"] for row in rows if row["what happened"] == "opened"
    )


def test_relevance_has_these_weights() -> None:
    rows = RULES.table("evidence", "by words", "by meaning", "by both")
    assert [row["evidence"] for row in rows] == [each.name for each in fields(BY_BOTH)]
    for head, weights in (("by words", BY_WORDS), ("by meaning", BY_MEANING), ("by both", BY_BOTH)):
        assert [float(row[head]) for row in rows] == [getattr(weights, each.name) for each in fields(weights)]


def test_relevance_by_reading_has_these_weights() -> None:
    rows = RULES.table("evidence", "weight", "of what")
    assert {row["evidence"]: float(row["weight"]) for row in rows} == asdict(BY_READING)


def test_every_stage_of_why_not_is_described() -> None:
    rows = RULES.table("stage", "it was lost because", "what brings it in")
    assert sorted(_code(row["stage"]) for row in rows) == sorted(get_args(Stage))
    assert all(row["it was lost because"] and row["what brings it in"] for row in rows)


@pytest.mark.parametrize("row", RULES.table("number", "value", "in the code"), ids=lambda row: row["in the code"])
def test_a_number_is_that_of_the_code(row: Row) -> None:
    number, _, unit = row["value"].partition(" ")
    value = _looked_up(_code(row["in the code"]))
    if isinstance(value, timedelta):
        assert timedelta(**{f"{unit.removesuffix('s')}s": float(number)}) == value
    else:
        assert float(number) == value


def _looked_up(path: str) -> Any:
    module, *names = path.split(".")
    found: Any = import_module(module)
    for name in names:
        found = getattr(found, name) if hasattr(found, name) else import_module(f"{found.__name__}.{name}")
    return found


def test_every_reason_is_named() -> None:
    reasons = {"lexical", "semantic", "filter", "relation", "echo", "maxsim", "rerank", "session"}
    reasons |= {*FACTORS, *REQUESTED, *MOVES}
    assert set(re.findall(r"Reason: `(\w+)`", " ".join(BEFORE.split()))) == reasons


def test_the_measured_numbers_are_elsewhere() -> None:
    assert "(quality.md)" in AFTER
    assert not NUMBER.search(AFTER)


# ---------------------------------------------------------------- running the example


@dataclass(frozen=True)
class Ran:
    """What the code of the example made."""

    memory: Nacre
    ids: Mapping[str, str]
    tokens: Mapping[str, Tokens]
    question: SearchRequest
    result: SearchResult
    trace: SearchTrace
    why: Mapping[str, Why]

    def name(self, memory_id: str) -> str:
        return next(name for name, each in self.ids.items() if each == memory_id)

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.trace.plan.query.terms

    @property
    def mean_length(self) -> float:
        return sum(each.length for each in self.tokens.values()) / len(self.tokens)

    def counted(self, term: Term) -> float:
        memories, having, *_ = self.trace.ranking.frequencies
        return max(having.get(term.text, 0), COMMON_SHARE * memories if term.common else 0)

    def idf(self, term: Term) -> float:
        memories, having, *_ = self.trace.ranking.frequencies
        return idf(memories, having.get(term.text, 0), common=term.common)

    def damping(self, name: str) -> float:
        k1, b, padding = RECIPE.tuning.bm25_k1, RECIPE.tuning.bm25_b, RECIPE.tuning.bm25_padding
        return k1 * (1 - b + b * (self.tokens[name].length + padding) / (self.mean_length + padding))

    def ranked(self, name: str) -> Ranked:
        return next(each for each in self.trace.ranking.ranked if each.id == self.ids[name])

    def reason(self, name: str, signal: str, without: float) -> float:
        return next((each.value for each in self.ranked(name).reasons if each.signal == signal), without)

    def fused(self, name: str) -> float:
        """Without the share of time, which comes after the factors."""
        return score([each for each in self.ranked(name).reasons if each.effect == "add" and each.signal != "temporal"])

    def before_time(self, name: str) -> float:
        return score([each for each in self.ranked(name).reasons if each.signal != "temporal"])

    def evidence(self, name: str) -> tuple[Words, Meaning]:
        by_words, by_meaning = self.standing
        taken_out = len(self.trace.ranking.semantic or ()) - len(by_meaning)
        pool = max(RECIPE.pool, 2 * self.limit) - taken_out
        among = others(self.terms, *self.trace.ranking.frequencies[:2], by_words, by_meaning, RECIPE, pool)
        memory_id = self.ids[name]
        shown = evidence(places(by_words).get(memory_id), places(by_meaning).get(memory_id), among)
        assert relevance(shown) == self.relevance(name)
        assert shown.words is not None
        assert shown.meaning is not None
        return shown.words, shown.meaning

    @property
    def hidden(self) -> set[str]:
        """By the last table of the page: what is collapsed, and what is believed too little."""
        stages = {self.ids[row["memory"]]: _code(row["stage"]) for row in WORKED.table("memory", "stage")}
        return {memory_id for memory_id, stage in stages.items() if stage in ("duplicate", "confidence")}

    @property
    def standing(self) -> tuple[list[Match], list[Match]]:
        """By words and by meaning, the matches that a hit is measured by."""
        ranking, hidden = self.trace.ranking, self.hidden
        by_words = [match for match in ranking.lexical or () if match.id not in hidden]
        by_meaning = [match for match in ranking.semantic or () if match.id not in hidden]
        return by_words, by_meaning

    @property
    def limit(self) -> int:
        return self.question.limit

    def relevance(self, name: str) -> float:
        return _relevance(self.why[name])

    def log_odds(self, name: str) -> float:
        likely = self.relevance(name)
        return math.log(likely / (1 - likely))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    made: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        for block in WORKED.code["python"]:
            exec(compile(block, str(PAGE), "exec"), made)
        memory: Nacre = made["memory"]
        new: dict[str, NewMemory] = made["memories"]
        question: SearchRequest = made["question"]
        with memory:
            yield Ran(
                memory=memory,
                ids=made["ids"],
                tokens={
                    name: tokenizer.tokenise(each.text, each.summary or "", each.tags, each.source or "")
                    for name, each in new.items()
                },
                question=question,
                result=made["result"],
                trace=memory._searcher.trace(question),
                why={name: memory.why(question, memory_id) for name, memory_id in made["ids"].items()},
            )


def test_the_question_is_understood_so(ran: Ran) -> None:
    rows = WORKED.table("term", "common", "in", "counts as in", "idf")
    memories, having, *_ = ran.trace.ranking.frequencies
    assert memories == len(ran.ids) == len(ran.tokens)
    assert [_code(row["term"]) for row in rows] == [term.text for term in ran.terms]
    for row, term in zip(rows, ran.terms, strict=True):
        assert row["common"] == ("yes" if term.common else "no")
        assert int(row["in"]) == having.get(term.text, 0)
        assert shows(row["counts as in"], ran.counted(term))
        assert shows(row["idf"], ran.idf(term))
    assert ran.result.intent == intent.detect(ran.question.query)
    assert (ran.result.intent.name, ran.result.lens) == ("explanation", "money")
    (period,) = ran.trace.plan.query.periods
    assert (period.start and period.start.weekday(), period.end and period.end.weekday()) == (0, 0)
    assert not ran.result.notes


def test_words_find_so(ran: Ran) -> None:
    found = ("we", "pick", "postgr", "for", "bill")
    rows = WORKED.table("memory", "length", "damping", *found, "BM25", "rank")
    lexical = ran.trace.ranking.lexical or ()
    assert [row["memory"] for row in rows] == [ran.name(match.id) for match in lexical]
    assert {term.text for term in ran.terms if ran.trace.ranking.frequencies.having.get(term.text)} == set(found)
    terms = [term for term in ran.terms if term.text in found]
    for rank, (row, match) in enumerate(zip(rows, lexical, strict=True), 1):
        tokens = ran.tokens[row["memory"]]
        counts = term_counts(terms, tokens, RECIPE)
        assert int(row["length"]) == tokens.length
        assert shows(row["damping"], ran.damping(row["memory"]))
        assert [float(row[term.text]) for term in terms] == counts
        assert bm25(counts, [ran.idf(term) for term in terms], tokens.length, ran.mean_length, RECIPE) == match.score
        assert shows(row["BM25"], match.score)
        assert int(row["rank"]) == rank


def test_meaning_finds_so(ran: Ran) -> None:
    rows = WORKED.table("memory", "cosine", "rank")
    semantic = ran.trace.ranking.semantic or ()
    assert [row["memory"] for row in rows] == [ran.name(match.id) for match in semantic]
    for rank, (row, match) in enumerate(zip(rows, semantic, strict=True), 1):
        assert shows(row["cosine"], match.score)
        assert int(row["rank"]) == rank


def test_shares_add_up_so(ran: Ran) -> None:
    rows = WORKED.table("memory", *SHARED, "sum")
    assert {row["memory"] for row in rows} == {ran.name(each.id) for each in ran.trace.ranking.ranked}
    totals = [ran.fused(row["memory"]) for row in rows]
    assert totals == sorted(totals, reverse=True)
    for row, total in zip(rows, totals, strict=True):
        assert shows(row["sum"], total)
        for head, signal in SHARED.items():
            assert shows(row[head], ran.reason(row["memory"], signal, 0))


def test_factors_multiply_so(ran: Ran) -> None:
    rows = WORKED.table("memory", "sum", *FACTORS, "time", "score")
    assert [row["memory"] for row in rows] == [ran.name(each.id) for each in ran.trace.ranking.ranked]
    for row in rows:
        assert shows(row["sum"], ran.fused(row["memory"]))
        for signal in FACTORS:
            assert shows(row[signal], ran.reason(row["memory"], signal, 1))
        raised = ran.ranked(row["memory"]).score - ran.before_time(row["memory"])
        assert shows(row["time"], raised)
        best = max(ran.before_time(other["memory"]) for other in rows)
        close = next(
            (each.numbers["closeness"] for each in ran.ranked(row["memory"]).reasons if each.signal == "temporal"), 0
        )
        assert raised == pytest.approx(RECIPE.temporal_weight * best * close)
        assert shows(row["score"], ran.ranked(row["memory"]).score)
    for signal in FACTORS:  # each has its part in the example
        assert any(ran.reason(row["memory"], signal, 1) != 1 for row in rows)


def test_relevance_is_so(ran: Ran) -> None:
    rows = WORKED.table(
        *("memory", "coverage", "lead by words", "cosine", "lead by meaning", "above the crowd"),
        *("log-odds", "relevance"),
    )
    assert {row["memory"] for row in rows} == {ran.name(each) for each in ran.trace.ranking.relevance}
    for row in rows:
        by_words, by_meaning = ran.evidence(row["memory"])
        expected = {
            "coverage": by_words.coverage,
            "lead by words": by_words.lead,
            "cosine": by_meaning.cosine,
            "lead by meaning": by_meaning.lead,
            "above the crowd": by_meaning.above_crowd,
            "log-odds": ran.log_odds(row["memory"]),
            "relevance": ran.relevance(row["memory"]),
        }
        for head, value in expected.items():
            assert shows(row[head], value), (row["memory"], head, value)
    (delivered,) = re.findall(r"\*(\w+)\*, which is collapsed, and \*(\w+)\*, which is left out", WORKED.prose)
    assert (
        {ran.ids[name] for name in delivered}
        == ran.hidden
        == {*ran.trace.ranking.duplicates, *ran.trace.ranking.doubted}
    )
    (rivals,) = re.findall(r"of \*picked\* is \*(\w+)\* by words and \*(\w+)\* by meaning", WORKED.prose)
    assert [[ran.name(match.id) for match in found[:2]] for found in ran.standing] == [
        ["picked", each] for each in rivals
    ]


def test_why_counts_a_hidden_memory_among_the_matches(ran: Ran) -> None:
    apart = replace(ran.question, collapse=False)
    assert ran.relevance("again") == _relevance(ran.memory.why(apart, ran.ids["again"]))
    assert ran.relevance("picked") > _relevance(ran.memory.why(apart, ran.ids["picked"]))


def _relevance(why: Why) -> float:
    assert why.hit is not None
    assert why.hit.relevance is not None
    return why.hit.relevance


def test_as_of_is_so(ran: Ran) -> None:
    """Two weeks later, last week is another, and what was learnt from use does not act."""
    (usual,) = ran.trace.plan.query.periods
    assert usual.end is not None
    same, later = usual.end + timedelta(days=2), usual.end + timedelta(days=16)
    for as_of, signals in ((same, {"temporal"}), (later, set())):
        trace = ran.memory._searcher.trace(replace(ran.question, as_of=as_of))
        (period,) = trace.plan.query.periods
        assert period.end == as_of - timedelta(days=2)
        (backup,) = (each for each in trace.ranking.ranked if each.id == ran.ids["backup"])
        acted = {reason.signal for reason in backup.reasons}
        assert acted == {"lexical", "semantic", "recency"} | signals
    assert ran.reason("backup", "usage", 1) > 1  # as of now, it does


def test_faded_and_ended_facts_never_leave_a_memory_out(ran: Ran) -> None:
    (faded,) = ran.trace.ranking.signals[ran.ids["picked"]].facts
    (ended,) = ran.trace.ranking.signals[ran.ids["mysql"]].facts
    long_after = faded.reinforced + timedelta(days=10_000)
    for many in range(1, 50):
        believed = memory_confidence([faded, ended] * many, long_after), memory_confidence([ended] * many, long_after)
        assert believed == (FLOOR, FLOOR)


def test_it_ends_in_this_order(ran: Ran) -> None:
    rows = WORKED.table("memory", "stage")
    assert {row["memory"]: _code(row["stage"]) for row in rows} == {
        name: each.left_out.stage for name, each in ran.why.items()
    }
    (answer,) = re.findall(r"this is the answer: \*(\w+)\*, then \*(\w+)\*\.", WORKED.prose)
    assert [ran.name(hit.id) for hit in ran.result.hits] == list(answer)
    first = ran.result.hits[0]
    assert [ran.name(each) for each in first.similar] == ["again"]
    assert [hit.score for hit in ran.result.hits] == [ran.ranked(name).score for name in answer]
    assert len(ran.result.relations) == 1


def test_why_says_so(ran: Ran) -> None:
    (delivered,) = WORKED.code["text"]
    said = ["".join(text for text, _ in line) for line in why_lines(ran.why["picked"])]
    assert delivered == "\n".join(said).replace(ran.ids["picked"], "picked")


# ---------------------------------------------------------------- the sums in its prose

_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[str, Callable[[float], float]] = {"ln": math.log, "exp": math.exp}


def reckoned(sum_: str) -> float:
    """What a sum with + - · / ^ ln exp comes to."""
    return _reckoned(ast.parse(sum_.replace("·", "*").replace("^", "**"), mode="eval").body)


def _reckoned(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_reckoned(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_reckoned(left), _reckoned(right))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_reckoned(argument))
    raise ValueError(f"{ast.unparse(node)} is no sum")


SUM = re.compile(r"`([^`=]*\d[^`=]*) = (-?[\d.]+)`")
SUMS = SUM.findall(WORKED.prose)


@pytest.mark.parametrize(("sum_", "result"), SUMS)
def test_a_sum_comes_to_this(sum_: str, result: str, ran: Ran) -> None:
    """By the rounded numbers it is made of, and as a number that the code gives."""
    digits = len(result.partition(".")[2])
    assert abs(reckoned(sum_) - float(result)) <= 10.0**-digits
    assert any(shows(result, value) for value in _given(ran))


def _given(ran: Ran) -> Iterator[float]:
    """The numbers that the example may come to."""
    yield from map(ran.idf, ran.terms)
    yield ran.mean_length
    yield from map(ran.damping, ran.ids)
    yield from (match.score for match in ran.trace.ranking.lexical or ())
    yield from (each.score for each in ran.result.relations)
    for relation in ran.result.relations:
        yield words_once(tokenizer.tokenise(relation.fact.statement), ran.terms, ran.trace.ranking.frequencies)
    for each in ran.trace.ranking.ranked:
        for reason in each.reasons:
            yield reason.value
            yield from reason.numbers.values()
        yield score(
            [reason for reason in each.reasons if reason.effect == "add" and reason.signal not in ("echo", "temporal")]
        )
        yield ran.before_time(ran.name(each.id))
        yield each.score - ran.before_time(ran.name(each.id))
    usage = ran.trace.ranking.signals[ran.ids["backup"]].usage
    assert usage is not None
    yield (usage.good + usage.seen) * 0.5 ** (1 / 30)
    yield (RECIPE.tuning.bm25_k1 + 1) * sum(ran.idf(term) for term in ran.terms if not term.common)
    for memory_id in ran.trace.ranking.relevance:
        name = ran.name(memory_id)
        yield from (ran.evidence(name)[0].coverage, ran.log_odds(name), ran.relevance(name))
    yield RECIPE.tuning.echo_back * ran.relevance("picked")
    texts = [hit.snippet.text for hit in ran.result.hits]
    spent = next(tokens for tokens in range(1, 1_000) if token_budget.fitting(texts, tokens) == len(texts))
    yield spent


def test_there_is_no_other_number_in_its_prose() -> None:
    rest = SUM.sub("", WORKED.prose).replace("BM25", "")
    assert len(SUMS) > 20
    assert not re.search(r"\d", rest), rest


def test_every_table_of_the_example_is_checked() -> None:
    assert len(WORKED.tables) == 7
    assert sorted(WORKED.code) == ["python", "text"]


@pytest.mark.parametrize("cell", ["", "about 3", "1.2.3", "`1`"])
def test_what_is_no_number_fails(cell: str) -> None:
    with pytest.raises(ValueError, match="no number"):
        shows(cell, 3)


@pytest.mark.parametrize(("cell", "value"), [("0.96", 0.966), ("1", 1.6), ("0.33", 0.3), ("-1", 1)])
def test_another_number_is_seen(cell: str, value: float) -> None:
    assert not shows(cell, value)
    assert not shows(cell, -value - 5)


@pytest.mark.parametrize("sum_", ["a + 1", "open('x')", "1 // 2", "ln(1, 2)"])
def test_what_is_no_sum_fails(sum_: str) -> None:
    with pytest.raises(ValueError, match="no sum"):
        reckoned(sum_)
