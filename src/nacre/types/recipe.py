"""Every weight of the ranking, with its default: `Recipe` for users, `Tuning` for measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from nacre.errors import InvalidInput
from nacre.types.intents import NAMESPACE_WEIGHTS, IntentName

_NAME_SHOWN = 60  # characters of an unknown name in an error

Fusion: TypeAlias = Literal["height", "rank", "boost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Constants of the formulas, chosen by measurement. `nacre tune` and the benchmarks vary them; users need not."""

    crowd: int = 20  # the rank of the match that a channel's best has to stand out from
    echo_next: float = 0.5  # share of a score that the next memory in the session gets
    echo_far: float = 0.2  # the one after that
    echo_back: float = 0.2  # the one before it
    session_weight: float = 0.1  # `related`: × (1 + weight) for memories of the same session
    bm25_k1: float = 0.9
    bm25_b: float = 1.0
    bm25_padding: float = 20.0  # words added to every length: short texts differ less in length than it seems
    summary_weight: float = 2.0  # of a word in the summary, where a word in the text has 1
    tags_weight: float = 1.0
    source_weight: float = 0.5
    intents: Mapping[IntentName, Mapping[str, float]] = field(default_factory=lambda: NAMESPACE_WEIGHTS)
    clear_share: float = 0.3  # of the best score: where the second has less, the order is clear and not reranked
    maxsim_turns: float = 3.0  # × maxsim_weight where all that are compared are turns of conversations
    compared_share: float = 0.7  # of the best score: what was compared and has less is not read by a fast reranking
    settled_places: int = 1  # once no unread text can come among so many first ones, a fast reranking ends; 0: never
    relation_weight: float = 0.8  # of a relation's share, where relations are merged into the hits


USUAL_TUNING = Tuning()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How candidates become a ranking. A weight of 0 switches its signal off."""

    fusion: Fusion = (
        "height"  # share = weight · gap² · height; rank: weight / (k + rank); boost: BM25 · (1 + w · cosine)
    )
    k: int = 60  # of rank fusion
    alpha: float = 0.75  # weight of meaning; 1 - alpha is the weight of words
    boost_weight: float = 1.0  # w of boost fusion
    pool: int = 50  # candidates of each channel, at least 2 × limit
    semantic_floor: float = 0.1  # cosine below which a memory is not a semantic match
    passages_weight: float = 0.02  # × what the best of a memory's passages gains by chance: is taken off its cosine
    maxsim_weight: float = 4.0  # of the spread of those compared token by token, × the lead over the lowest
    maxsim_pool: int = 100  # candidates that are compared token by token
    rerank_weight: float = 0.2  # of the spread between the first and the last reranked candidate
    rerank_pool: int = 30  # candidates that a full reranking scores, or fewer where their texts are long
    rerank_few: int = 8  # candidates that a fast one scores at most
    rerank_ms: int = 10  # milliseconds after which a fast one scores no further text; 0: no limit
    recency_weight: float = 0.1  # × (1 + weight / (1 + days))
    temporal_weight: float = 0.7  # of the best score, for what lies inside the time that a query names
    confidence_weight: float = 0.2  # × (1 - weight + weight · effective confidence); 1 is the full product
    min_confidence: float = 0.1  # memories with less confidence in their facts are left out
    entity_weight: float = 0.2  # × (1 + weight) for memories about a boosted entity
    intent_weight: float = 1.0  # how much of the namespace weights of the query's intent acts
    namespace_weights: Mapping[str, float] = field(default_factory=dict)  # factors by namespace, whatever the intent
    exact_weight: float = 1.0  # of the best score, for each identifier of the query that a memory has exactly
    standing_weight: float = 0.8  # of the best score, for preferences and instructions that bear on a request
    fresh_weight: float = 1.0  # 0: a newer note that is much like a better match does not go before it
    hop_weight: float = 0.2  # of a first hit's score, for memories with a rare name that the query does not have
    importance_weight: float = 0.0  # × (1 + weight · (importance - 0.5)); 0: importance decides between equals only
    usage_weight: float = 0.1  # × (1 ± weight at most) for what was opened, used or wrong before
    tuning: Tuning = field(default_factory=lambda: USUAL_TUNING)


USUAL_RECIPE = Recipe()  # shared by all requests that name none

TUNED = tuple(each.name for each in fields(Tuning))
WEIGHTS = (*(each.name for each in fields(Recipe) if each.name != "tuning"), *TUNED)


def weights_of(recipe: Recipe) -> dict[str, Any]:
    """All weights by name, those of the tuning among them."""
    return {name: getattr(recipe.tuning if name in TUNED else recipe, name) for name in WEIGHTS}


def adjusted(recipe: Recipe, **weights: Any) -> Recipe:
    """The recipe with some weights changed, by name, those of its tuning among them."""
    tuned = {name: weights.pop(name) for name in TUNED if name in weights}
    return replace(recipe, **weights, tuning=replace(recipe.tuning, **tuned) if tuned else recipe.tuning)


def recipe_of(given: object) -> Recipe:
    """The default recipe with these fields, by name. Texts are read by `parse_weight`. Bounds are not checked here."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            "recipe", f'must map fields to values, like {{"recency_weight": 0.5}}, not {type(given).__name__}'
        )
    check_known(given)
    read = {name: parse_weight(name, value) if isinstance(value, str) else value for name, value in given.items()}
    return adjusted(USUAL_RECIPE, **read)


def check_known(names: Iterable[object]) -> None:
    """Raise InvalidInput for a name that no field has, with the nearest one."""
    for name in names:
        if name not in WEIGHTS:
            import difflib  # only where something is wrong

            near = difflib.get_close_matches(str(name).casefold().replace("-", "_"), WEIGHTS, 1)
            meant = f"; did you mean `{near[0]}`?" if near else ";"
            raise InvalidInput(f"recipe.{str(name)[:_NAME_SHOWN]}", f"is unknown{meant} allowed: {', '.join(WEIGHTS)}")


def parse_weight(name: str, text: str) -> Any:
    """A field as people write it: JSON, a word like `rank`, or factors by namespace like `decisions:1.5,config:0.8`.

    Raises InvalidInput for a field that no recipe has, and for a text that is no value. Bounds are not checked here.
    """
    check_known([name])
    text = text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if name == "namespace_weights":
            return _by_namespace(text)
        if text.isalpha():
            return text
    example = "recency_weight=0.5, fusion=rank or namespace_weights=decisions:1.5,config:0.8"
    raise InvalidInput("recipe", f"{f'{name}={text}'!r} must be FIELD=VALUE, for example {example}")


def _by_namespace(text: str) -> dict[str, float]:
    factors: dict[str, float] = {}
    try:
        for pair in filter(str.strip, text.split(",")):
            namespace, _, factor = pair.rpartition(":")  # a namespace may have a colon
            factors[namespace.strip()] = float(factor)
    except ValueError:
        raise InvalidInput("recipe.namespace_weights", f"is {text!r}; write it like decisions:1.5,config:0.8") from None
    return factors


# Reciprocal rank fusion as in the textbook: no other signal acts.
CLASSIC = adjusted(
    USUAL_RECIPE,
    fusion="rank",
    k=60,
    alpha=0.5,
    semantic_floor=0.3,
    passages_weight=0,
    maxsim_weight=0,
    rerank_weight=0,
    recency_weight=0,
    temporal_weight=0,
    confidence_weight=0,
    entity_weight=0,
    intent_weight=0,
    exact_weight=0,
    hop_weight=0,
    fresh_weight=0,
    standing_weight=0,
    usage_weight=0,
    echo_next=0,
    echo_far=0,
    echo_back=0,
)
