"""Checks of what a caller gave: each names the field, what is wrong and what is allowed."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from nacre.access import Access
from nacre.errors import InvalidInput
from nacre.types.backups import Keep
from nacre.types.facts import DECAY_PER_DAY, FactQuery, FactType, NewEntity, NewFact
from nacre.types.hnsw import Hnsw
from nacre.types.intents import IntentName
from nacre.types.location import is_address
from nacre.types.memory import Json, JsonScalar, NewMemory
from nacre.types.quotas import Quotas
from nacre.types.recall_log import ReceiptFilter
from nacre.types.recipe import USUAL_RECIPE, Fusion, Recipe, Tuning, weights_of
from nacre.types.search import MODE_ALIASES, Filter, MatchWords, Mode, Part, RelatedRequest, RerankMode, SearchRequest
from nacre.types.secrets import SecretPolicy
from nacre.types.views import Bucket, ContextRequest, TimelineRequest

T = TypeVar("T")

_INT64 = 2**63


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Everything has a limit."""

    text_chars_max: int = 1_000_000
    summary_chars_max: int = 10_000
    name_chars_max: int = 200  # space, kind, namespace, session, a tag
    source_chars_max: int = 2_000
    key_chars_max: int = 512
    tags_max: int = 100
    metadata_bytes_max: int = 65_536
    query_chars_max: int = 10_000  # a longer query is cut, with a note
    results_max: int = 1_000
    pool_max: int = 10_000
    maxsim_pool_max: int = 1_000
    rerank_pool_max: int = 100
    filter_values_max: int = 1_000
    facts_max: int = 1_000  # given with one memory
    object_chars_max: int = 2_000  # of a fact, and of its quote
    entities_max: int = 100  # given with one memory, and aliases of one
    ids_max: int = 10_000
    neighbours_max: int = 50  # before a memory in its session, and as many after it
    results_cached: int = 128  # results kept until something is written; 0: none

    @cached_property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """The least and the greatest value of the numbers that callers give, by name."""
        return {
            "limit": (1, self.results_max),
            "listed": (1, self.ids_max),  # facts, entities and receipts
            "span": (0, self.results_max),
            "neighbours": (0, self.neighbours_max),
            "depth": (1, 3),  # of related entities
            "budget_tokens": (0, _INT64),
            **dict.fromkeys(("min_score", "importance", "confidence", "min_confidence"), (0, 1)),
        }


LIMITS = Limits()
TEXT_CHARS_MOST = 100_000_000  # that a setting may allow
_METADATA_DEPTH_MAX = 32
_SHOWN_CHARS_MAX = 200
WILDCARDS_MAX = 8  # of one pattern: matching many is slow
LOG_DAYS_MAX = 36_500
LOG_MEGABYTES_MAX = 1_000_000
DELIVERED_MINUTES_MAX = 60 * 24 * 365
RERANK_MS_MAX = 60_000
DECAY_MAX = 10.0  # a day; nothing is left after one
HNSW_BOUNDS: Mapping[str, tuple[int, int]] = {
    "connectivity": (4, 128),
    "expansion_add": (8, 4_096),
    "expansion_search": (8, 4_096),
}
NAMESPACE_FACTORS = (0.5, 2.0)  # the least and the most
_ANYTHING = Filter()
LANGUAGE_CODE = re.compile("[A-Za-z]{2}")
_SINGLE_FIELDS = ("created_from", "created_until", "metadata", "has", "importance_min", "importance_max")
_FRACTIONS = (
    "recency_weight", "temporal_weight", "session_weight", "confidence_weight", "min_confidence", "entity_weight",
    "intent_weight", "importance_weight", "usage_weight", "relation_weight", "echo_next", "echo_far", "echo_back",
    "rerank_weight", "clear_share", "compared_share", "alpha", "bm25_b", "exact_weight", "standing_weight",
    "fresh_weight", "hop_weight",
    "passages_weight",
)  # fmt: skip


def text(value: object, limits: Limits) -> str:
    """The text of a memory."""
    return _text("text", value, limits.text_chars_max)


def memory(new: NewMemory, access: Access, now: datetime, limits: Limits) -> NewMemory:
    """The memory to write: every field checked, sequences as tuples, times in UTC."""
    checked_text = text(new.text, limits)
    if new.position is not None:
        whole("position", new.position, -_INT64, _INT64 - 1)
        if new.session is None:
            raise InvalidInput("position", "needs a session; give both or neither")
    number("importance", new.importance, *limits.ranges["importance"])
    return NewMemory(  # not `replace`, which takes longer than all checks
        text=checked_text,
        space=space(new.space, access, limits),
        kind=None if new.kind is None else _name("kind", new.kind, limits),
        namespace=_name("namespace", new.namespace, limits),
        summary=None if new.summary is None else _text("summary", new.summary, limits.summary_chars_max),
        tags=tuple(dict.fromkeys(_names("tags", new.tags, limits, limits.tags_max))) if new.tags != () else (),
        source=None if new.source is None else _text("source", new.source, limits.source_chars_max),
        session=None if new.session is None else _name("session", new.session, limits),
        position=new.position,
        metadata=_metadata(new.metadata, limits),
        importance=float(new.importance),
        created=now if new.created is None else moment("created", new.created),
        happened=None if new.happened is None else moment("happened", new.happened),
        pinned=yes_or_no("pinned", new.pinned),
        origin=None if new.origin is None else _name("origin", new.origin, limits),
        key=None if new.key is None else _text("key", new.key, limits.key_chars_max),
        expires=None if new.expires is None else expiry(new.expires, now),
        language=None if new.language is None else language("language", new.language),
        supersedes=_superseded(new.supersedes, limits),
        facts=facts(new.facts, limits) if new.facts != () else (),
        entities=entities(new.entities, limits) if new.entities != () else (),
        extract=new.extract if new.extract is None else yes_or_no("extract", new.extract),
    )


def language(field: str, value: object) -> str:
    """A language by its ISO 639-1 code."""
    if not isinstance(value, str) or not LANGUAGE_CODE.fullmatch(value):
        raise InvalidInput(field, "must be a code of ISO 639-1, two letters like en, de or zh")
    return value.lower()


def expiry(value: datetime | timedelta, now: datetime) -> datetime:
    """When something expires, from a time or a duration from now."""
    if not isinstance(value, timedelta):
        over = moment("expires", value)
    else:
        try:
            over = now + value
        except OverflowError:
            raise InvalidInput("expires", "is out of range; years 1 to 9999 are allowed") from None
    if over <= now:
        raise InvalidInput("expires", f"is {over.isoformat(timespec='seconds')}, which is over; give a time to come")
    return over


def facts(value: object, limits: Limits) -> tuple[NewFact, ...]:
    listed = _listed("facts", value, limits.facts_max)
    return tuple(_fact(f"facts[{at}].", each, limits) for at, each in enumerate(listed))


def fact(value: object, limits: Limits) -> NewFact:
    """A fact that is given alone."""
    return _fact("", value, limits)


def _superseded(value: str | Sequence[str], limits: Limits) -> tuple[str, ...]:
    named = (value,) if isinstance(value, str) else value
    return tuple(dict.fromkeys(_names("supersedes", named, limits)))


def _fact(within: str, value: object, limits: Limits) -> NewFact:
    if not isinstance(value, NewFact):
        raise InvalidInput(within.rstrip(".") or "fact", f"must be a NewFact, not {_kind(value)}")
    choice(f"{within}type", value.type, get_args(FactType))
    number(f"{within}confidence", value.confidence, *limits.ranges["confidence"])
    if value.decay_rate is not None:
        number(f"{within}decay_rate", value.decay_rate, 0, DECAY_MAX)
    starts, ends = (
        None if each is None else moment(f"{within}{name}", each)
        for name, each in (("valid_from", value.valid_from), ("valid_to", value.valid_to))
    )
    if starts is not None and ends is not None and ends <= starts:
        raise InvalidInput(f"{within}valid_to", "must be after valid_from")
    return replace(
        value,
        subject=_name(f"{within}subject", value.subject, limits),
        predicate=_name(f"{within}predicate", value.predicate, limits),
        object=_text(f"{within}object", value.object, limits.object_chars_max),
        confidence=float(value.confidence),
        decay_rate=None if value.decay_rate is None else float(value.decay_rate),
        valid_from=starts,
        valid_to=ends,
        quote=None if value.quote is None else _text(f"{within}quote", value.quote, limits.object_chars_max),
        relation=yes_or_no(f"{within}relation", value.relation),
        single=value.single if value.single is None else yes_or_no(f"{within}single", value.single),
    )


def entities(value: object, limits: Limits) -> tuple[NewEntity, ...]:
    return tuple(entity(each, limits) for each in _listed("entities", value, limits.entities_max))


def entity(value: object, limits: Limits, within: str = "entities.") -> NewEntity:
    """An entity, or its name alone. `within` comes before the names of its fields."""
    if isinstance(value, str):
        value = NewEntity(name=value)
    if not isinstance(value, NewEntity):
        raise InvalidInput("entities", f"must be names or NewEntity values, not {_kind(value)}")
    return replace(
        value,
        name=_name(f"{within}name", value.name, limits).strip(),
        type=None if value.type is None else _name(f"{within}type", value.type, limits),
        aliases=tuple(
            dict.fromkeys(
                name.strip() for name in _names(f"{within}aliases", value.aliases, limits, limits.entities_max)
            )
        ),
    )


def fact_query(query: FactQuery, access: Access, now: datetime, limits: Limits) -> FactQuery:
    for name in ("subject", "predicate", "object"):
        if getattr(query, name) is not None:
            _text(name, getattr(query, name), limits.object_chars_max)
    if query.type is not None:
        choice("type", query.type, get_args(FactType))
    if query.memory_id is not None:
        _text("memory_id", query.memory_id, limits.name_chars_max)
    for name in ("relations", "history"):
        yes_or_no(name, getattr(query, name))
    number("min_confidence", query.min_confidence, *limits.ranges["min_confidence"])
    whole("limit", query.limit, *limits.ranges["listed"])
    return replace(
        query,
        spaces=spaces(query.spaces, access, limits),
        as_of=now if query.as_of is None else moment("as_of", query.as_of),
    )


def access(space: object, confined: object, limits: Limits) -> Access:
    """What an engine may see, which works in `space` and is confined to it (True), to several or not at all (False)."""
    own = _name("space", space, limits)
    if isinstance(confined, bool):
        return Access(own, (own,) if confined else None)
    if isinstance(confined, str) or not isinstance(confined, Sequence):
        raise InvalidInput("confined", f"must be true, false or a list of spaces, not {_kind(confined)}")
    several = tuple(dict.fromkeys(_names("confined", confined, limits)))
    if own not in several:
        raise InvalidInput("confined", f"leaves out {shown(own)}, which the engine works in; add it")
    return Access(own, several)


def spaces(value: Sequence[str], access: Access, limits: Limits) -> tuple[str, ...]:
    """The spaces named, or the engine's own."""
    return access.allowed("spaces", tuple(dict.fromkeys(_names("spaces", value, limits))) or (access.space,))


def space(value: str | None, access: Access, limits: Limits) -> str:
    """The space named, or the engine's own."""
    return access.space if value is None else access.allowed("space", (space_name(value, limits),))[0]


def entity_names(value: Sequence[str] | None, limit: int, limits: Limits) -> list[str] | None:
    """The names that are looked up; None for all."""
    whole("limit", limit, *limits.ranges["listed"])
    return None if value is None else _names("names", value, limits)


def depth(value: int, limits: Limits) -> None:
    whole("depth", value, *limits.ranges["depth"])


def receipts(asked: ReceiptFilter, limits: Limits) -> ReceiptFilter:
    whole("limit", asked.limit, *limits.ranges["listed"])
    if asked.session is not None:
        session_name(asked.session, limits)
    return replace(
        asked,
        memory_id=None if asked.memory_id is None else looked_up("memory_id", asked.memory_id),
        before=None if asked.before is None else looked_up("before", asked.before),
    )


def clear_log(before: datetime | None, session: str | None, limits: Limits) -> datetime | None:
    """The time, in UTC."""
    if session is not None:
        session_name(session, limits)
    return None if before is None else moment("before", before)


def decay_rates(value: Mapping[Any, float]) -> dict[FactType, float]:
    """The rates of all types, some of them changed."""
    if not isinstance(value, Mapping):
        raise InvalidInput("decay_rates", f"must be a mapping of types of facts to rates, not {_kind(value)}")
    for name, rate in value.items():
        choice("decay_rates", name, get_args(FactType))
        number(f"decay_rates.{name}", rate, 0, DECAY_MAX)
    return {**DECAY_PER_DAY, **value}


def search(request: SearchRequest, access: Access, limits: Limits) -> SearchRequest:
    any_text("query", request.query)
    choice("match", request.match, get_args(MatchWords))
    whole("limit", request.limit, *limits.ranges["limit"])
    recipe(request.recipe, limits)
    number("min_score", request.min_score, *limits.ranges["min_score"])
    if request.min_similarity is not None:
        number("min_similarity", request.min_similarity, -1, 1)
    if request.token_budget is not None:
        whole("token_budget", request.token_budget, 1, _INT64)
    for name in ("lens", "session", "origin", "folder"):
        if getattr(request, name) is not None:
            _text(name, getattr(request, name), 10_000 if name == "folder" else limits.name_chars_max)
    for name in ("merge_relations", "collapse", "omit_delivered", "include_facts"):
        yes_or_no(name, getattr(request, name))
    return replace(
        request,
        mode=mode(request.mode),
        where=where(request.where, access, limits),
        boost_entities=tuple(dict.fromkeys(_names("boost_entities", request.boost_entities, limits))),
        as_of=None if request.as_of is None else moment("as_of", request.as_of),
        rerank=rerank(request.rerank),
    )


def secret_policy(field: str, value: object) -> SecretPolicy:
    choice(field, value, get_args(SecretPolicy))
    return cast(SecretPolicy, value)


def rerank(value: object) -> RerankMode | Literal[False]:
    """How to rerank; False: not at all. True gives the default."""
    if value is True:
        return "fast"
    if value is False:
        return False
    if isinstance(value, str) and value in get_args(RerankMode):
        return cast(RerankMode, value)
    allowed = ", ".join(get_args(RerankMode))
    raise InvalidInput("rerank", f"{shown(value)} is unknown; allowed: {allowed}, or false to skip reranking")


def mode(value: object) -> Mode:
    """The mode of this name. An alias gives the mode that it stands for."""
    for known in get_args(Mode):
        if value == known:
            return cast(Mode, known)
    if isinstance(value, str) and value in MODE_ALIASES:
        return MODE_ALIASES[value]
    aliases = " and ".join(f"{alias} for {known}" for alias, known in MODE_ALIASES.items())
    raise InvalidInput("mode", f"{shown(value)} is unknown; allowed: {', '.join(get_args(Mode))}, also {aliases}")


def context(request: ContextRequest, access: Access, limits: Limits) -> ContextRequest:
    """What a context has besides its search, which is checked as such."""
    whole("budget_tokens", request.budget_tokens, *limits.ranges["budget_tokens"])
    yes_or_no("repeat", request.repeat)
    if request.count is not None and not callable(request.count):
        raise InvalidInput("count", f"must be a function of a text, not {_kind(request.count)}")
    return replace(request, where=where(request.where, access, limits))


def related(request: RelatedRequest, access: Access, limits: Limits) -> RelatedRequest:
    whole("limit", request.limit, *limits.ranges["limit"])
    recipe(request.recipe, limits)
    return replace(request, where=where(request.where, access, limits))


def recipe(value: Recipe, limits: Limits) -> Recipe:
    instance("recipe", value, Recipe)
    if value is USUAL_RECIPE and (
        value.pool <= limits.pool_max
        and value.maxsim_pool <= limits.maxsim_pool_max
        and _reranked_max(value) <= limits.rerank_pool_max
    ):
        return value
    instance("recipe.tuning", value.tuning, Tuning)
    choice("recipe.fusion", value.fusion, get_args(Fusion))
    weights = weights_of(value)
    whole("recipe.k", value.k, 0, 1_000_000)
    whole("recipe.crowd", weights["crowd"], 1, limits.pool_max)
    whole("recipe.pool", value.pool, 1, limits.pool_max)
    whole("recipe.maxsim_pool", value.maxsim_pool, 2, limits.maxsim_pool_max)
    whole("recipe.rerank_pool", value.rerank_pool, 2, limits.rerank_pool_max)
    whole("recipe.rerank_few", value.rerank_few, 2, limits.rerank_pool_max)
    whole("recipe.rerank_ms", value.rerank_ms, 0, RERANK_MS_MAX)
    number("recipe.semantic_floor", value.semantic_floor, -1, 1)
    for name in _FRACTIONS:
        _fraction(f"recipe.{name}", weights[name])
    namespace_weights("recipe.namespace_weights", value.namespace_weights, limits)
    _intents(value.tuning.intents, limits)
    number("recipe.bm25_k1", weights["bm25_k1"], 0, 100)
    number("recipe.bm25_padding", weights["bm25_padding"], 0, 1_000_000)
    number("recipe.boost_weight", value.boost_weight, 0, 10)
    number("recipe.maxsim_weight", value.maxsim_weight, 0, 10)
    number("recipe.maxsim_turns", weights["maxsim_turns"], 0, 10)
    whole("recipe.settled_places", weights["settled_places"], 0, limits.rerank_pool_max)
    for name in ("summary_weight", "tags_weight", "source_weight"):
        number(f"recipe.{name}", weights[name], 0, 100)
    return value


def _reranked_max(value: Recipe) -> int:
    return max(value.rerank_pool, value.rerank_few)


def namespace_weights(field: str, value: object, limits: Limits) -> Mapping[str, float]:
    if not isinstance(value, Mapping) or len(value) > limits.filter_values_max:
        most = f"of at most {limits.filter_values_max:,} namespaces"
        raise InvalidInput(field, f"must be a mapping {most} to factors, not {_kind(value)}")
    for namespace, weight in value.items():
        _name(field, namespace, limits)
        number(f"{field}[{namespace!r}]", weight, *NAMESPACE_FACTORS)
    return value


def _intents(value: object, limits: Limits) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInput("recipe.intents", f"must be a mapping of intents to namespaces, not {_kind(value)}")
    for intent, namespaces in value.items():
        if intent not in get_args(IntentName) or not isinstance(namespaces, Mapping):
            allowed = ", ".join(get_args(IntentName))
            raise InvalidInput("recipe.intents", f"{shown(intent)} must be one of {allowed}, with weights by namespace")
        for namespace, weight in namespaces.items():
            _name("recipe.intents", namespace, limits)
            number(f"recipe.intents[{intent!r}][{namespace!r}]", weight, *NAMESPACE_FACTORS)


def timeline(request: TimelineRequest, access: Access, limits: Limits) -> TimelineRequest:
    whole("limit", request.limit, *limits.ranges["limit"])
    if request.cursor is not None and not (isinstance(request.cursor, str) and storable(request.cursor)):
        raise InvalidInput("cursor", f"{shown(request.cursor)} is not one; give the `next` of the page before")
    for name in ("oldest_first", "forgotten"):
        yes_or_no(name, getattr(request, name))
    if request.around is not None:
        _text("around", request.around, limits.name_chars_max)
        if request.cursor is not None:
            raise InvalidInput("cursor", "does not go with around; give one of them, or a wider span")
    whole("span", request.span, *limits.ranges["span"])
    if request.histogram is not None:
        choice("histogram", request.histogram, get_args(Bucket))
    if request.histogram is not None and request.forgotten:
        raise InvalidInput("histogram", "counts live memories only; leave out either this or forgotten")
    start, end = (
        None if each is None else moment(name, each) for name, each in (("start", request.start), ("end", request.end))
    )
    if start is not None and end is not None and end <= start:
        raise InvalidInput("end", "must be after start")
    within = where(request.where, access, limits)
    since = [each for each in (start, within.created_from) if each is not None]
    until = [each for each in (end, within.created_until) if each is not None]
    narrowed = replace(within, created_from=max(since, default=None), created_until=min(until, default=None))
    return replace(request, start=start, end=end, where=narrowed)


def get(entities: bool, neighbours: int, missing_ok: bool, session: str | None, limits: Limits) -> None:
    yes_or_no("entities", entities)
    yes_or_no("missing_ok", missing_ok)
    whole("neighbours", neighbours, *limits.ranges["neighbours"])
    if session is not None:
        session_name(session, limits)


def where(value: Filter, access: Access, limits: Limits) -> Filter:
    """The filter with its space filled in. Spaces are never empty: no query sees all by accident."""
    instance("where", value, Filter)
    if value == _ANYTHING:
        return replace(value, spaces=(access.space,))
    listed = {
        each.name: tuple(dict.fromkeys(_names(f"where.{each.name}", getattr(value, each.name), limits)))
        for each in fields(Filter)
        if each.name not in _SINGLE_FIELDS
    }
    listed["languages"] = tuple(language(f"where.languages[{at}]", each) for at, each in enumerate(listed["languages"]))
    for name, allowed in (("has", get_args(Part)), ("fact_types", get_args(FactType))):
        unknown = [each for each in _names(f"where.{name}", getattr(value, name), limits) if each not in allowed]
        if unknown:
            raise InvalidInput(f"where.{name}", f"{unknown[0]!r} is unknown; allowed: {', '.join(allowed)}")
    if any(map(too_many_wildcards, listed["sources"])):
        raise InvalidInput("where.sources", f"a pattern may have {WILDCARDS_MAX} wildcards at most")
    moments = {
        name: None if each is None else moment(f"where.{name}", each)
        for name, each in (("created_from", value.created_from), ("created_until", value.created_until))
    }
    if not isinstance(value.metadata, Mapping) or len(value.metadata) > limits.filter_values_max:
        raise InvalidInput("where.metadata", "must be a mapping of keys to single values")
    metadata = {
        _key("where.metadata", key): _scalar(f"where.metadata[{key!r}]", each) for key, each in value.metadata.items()
    }
    _importance_bounds(value)
    changes: dict[str, Any] = {**listed, **moments, "metadata": metadata, "has": tuple(value.has)}
    changes["spaces"] = access.allowed("where.spaces", changes["spaces"] or (access.space,))
    return replace(value, **changes)


def _importance_bounds(where: Filter) -> None:
    for name in ("importance_min", "importance_max"):
        if getattr(where, name) is not None:
            _fraction(f"where.{name}", getattr(where, name))
    least, most = where.importance_min, where.importance_max
    if least is not None and most is not None and least > most:
        raise InvalidInput("where.importance_max", f"is {most:g}, below importance_min, {least:g}; swap the two")


def too_many_wildcards(pattern: str) -> bool:
    return pattern.count("*") + pattern.count("?") > WILDCARDS_MAX


def ids(value: Sequence[str], limits: Limits, field: str = "ids", what: str = "id") -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput(field, f"must be a list of {what}s, not {_kind(value)}")
    if len(value) > limits.ids_max:
        raise InvalidInput(field, f"{len(value)} are too many; at most {limits.ids_max} in one call")
    for each in value:
        if not isinstance(each, str):
            raise InvalidInput(field, f"must be texts, and one is {shown(each)}, a {_kind(each)}")
    return tuple(dict.fromkeys(map(findable, value)))


def keys(value: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """Keys that are looked up."""
    return ids(value, limits, "keys", "key")


def looked_up(field: str, value: object) -> str:
    """One id, or one name, that is looked up: any text, which may name nothing."""
    return findable(any_text(field, value))


def findable(given: str) -> str:
    """Half a character or a NUL would be an error in a store. Nothing is stored with one, so nothing is found by it."""
    return given.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def busy_timeout(milliseconds: int) -> None:
    whole("busy_timeout_ms", milliseconds, 0, 86_400_000)


def opening(
    space: str,
    threads: int,
    busy_timeout_ms: int,
    limits: Limits,
    log_days: int,
    log_megabytes: int,
    delivered_minutes: int,
) -> None:
    """What a store is opened with."""
    instance("limits", limits, Limits)
    _name("space", space, limits)
    whole("threads", threads, 0, 1_000)
    busy_timeout(busy_timeout_ms)
    whole("log_days", log_days, 1, LOG_DAYS_MAX)
    whole("log_megabytes", log_megabytes, 1, LOG_MEGABYTES_MAX)
    whole("delivered_minutes", delivered_minutes, 0, DELIVERED_MINUTES_MAX)


def file_path(field: str, value: str | os.PathLike[str]) -> Path:
    try:
        path = Path(value)
    except TypeError:
        raise InvalidInput(field, f"must be a path, not {_kind(value)}") from None
    if isinstance(value, str) and is_address(value):
        raise InvalidInput(field, "is the address of a database; give the path of a file")
    if not os.fspath(value) or not storable(str(path)):
        raise InvalidInput(field, f"{shown(os.fspath(value))} is not a path; give one of valid Unicode text")
    return path


def since(value: str | None) -> bool:
    """Whether a backup holds only what changed since the last one."""
    if value not in (None, "last"):
        raise InvalidInput("since", f"{shown(value)} is unknown; allowed: last")
    return value is not None


def keep(value: str | None) -> Keep | None:
    """How many backups are kept, from a text like 7d4w12m."""
    if value is None:
        return None
    pattern = r"(?=.)(?:(\d{1,4})d)?(?:(\d{1,4})w)?(?:(\d{1,4})m)?"
    found = re.fullmatch(pattern, value, re.ASCII) if isinstance(value, str) else None
    if found is None:
        raise InvalidInput(
            "keep", f"{shown(value)} must be numbers of days, weeks and months, in this order, for example 7d4w12m"
        )
    return Keep(*(int(number or 0) for number in found.groups()))


def quotas(value: Quotas) -> Quotas:
    if not isinstance(value, Quotas):
        raise InvalidInput("quotas", f"must be a nacre.Quotas, not {_kind(value)}")
    for each in fields(Quotas):
        whole(f"quotas.{each.name}", getattr(value, each.name), 0, _INT64)
    return value


def hnsw(value: Hnsw) -> Hnsw:
    """Parameters of graphs, within what usearch can build."""
    if not isinstance(value, Hnsw):
        raise InvalidInput("hnsw", f"must be a nacre.Hnsw, not {_kind(value)}")
    for name, (least, most) in HNSW_BOUNDS.items():
        whole(f"hnsw.{name}", getattr(value, name), least, most)
    return value


def kind_name(value: str, limits: Limits) -> str:
    return _name("kind", value, limits)


def session_name(value: str, limits: Limits) -> str:
    return _name("session", value, limits)


def token_name(value: str, limits: Limits) -> str:
    """What an access token is for, which need not be said."""
    return value if value == "" else _name("name", value, limits)


def space_name(value: str, limits: Limits) -> str:
    return _name("space", value, limits)


def choice(field: str, value: object, allowed: Sequence[str]) -> None:
    """One of a few words."""
    if value not in allowed:
        raise InvalidInput(field, f"{shown(value)} is unknown; allowed: {', '.join(allowed)}")


def instance(field: str, value: object, kind: type[T]) -> T:
    """A value of one of Nacre's own classes."""
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be a {kind.__name__}, not {_kind(value)}")
    return value


def time_zone(field: str, value: object) -> None:
    if not isinstance(value, tzinfo):
        raise InvalidInput(field, f"must be a time zone, such as zoneinfo.ZoneInfo, not {_kind(value)}")


def function(field: str, value: object) -> None:
    if not callable(value):
        raise InvalidInput(field, f"must be a function, not {_kind(value)}")


def iterable(field: str, value: object) -> None:
    if not isinstance(value, Iterable):
        raise InvalidInput(field, f"must be a list, not {_kind(value)}")


def any_text(field: str, value: object) -> str:
    """A text that is only read, so that it may be empty or of any length."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, not {_kind(value)}")
    return value


def yes_or_no(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"must be true or false, not {_kind(value)}")
    return value


def storable(text: str) -> bool:
    """Whether a text survives UTF-8 and SQLite: no NUL, no lone surrogates."""
    if "\x00" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


# ---------------------------------------------------------------- single values


def _text(field: str, value: object, chars_max: int) -> str:
    value = any_text(field, value)
    if not value or value.isspace():
        raise InvalidInput(field, f"is blank; give 1 to {chars_max:,} characters")
    if len(value) > chars_max:
        raise InvalidInput(field, f"has {len(value):,} characters; at most {chars_max:,} are allowed: split it")
    if not storable(value):
        raise InvalidInput(field, "contains a NUL or a lone surrogate; only valid Unicode text is allowed")
    return value


def _name(field: str, value: object, limits: Limits) -> str:
    return _text(field, value, limits.name_chars_max)


def _names(field: str, value: object, limits: Limits, most: int | None = None) -> list[str]:
    most = limits.filter_values_max if most is None else most
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise InvalidInput(field, f"must be a list of texts, not {_kind(value)}")
    if len(value) > most:
        raise InvalidInput(field, f"has {len(value)} values; at most {most} are allowed")
    chars_max = {"where.sources": limits.source_chars_max, "where.key_prefixes": limits.key_chars_max}.get(
        field, limits.name_chars_max
    )
    return [_text(field, each, chars_max) for each in value]


def moment(field: str, value: object) -> datetime:
    """A time, in UTC."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a datetime, not {_kind(value)}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(field, "has no time zone; give one, for example datetime.now(UTC)")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, "is out of range; years 1 to 9999 are allowed") from None


def whole(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        allowed = f"of {least:,} or more" if most >= _INT64 else f"from {least:,} to {most:,}"
        raise InvalidInput(field, f"is {shown(value)}; a whole number {allowed} is allowed")


def number(field: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidInput(field, f"is {shown(value)}; a number from {least:g} to {most:g} is allowed")


def _fraction(field: str, value: object) -> None:
    number(field, value, 0, 1)


def _listed(field: str, value: object, most: int) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInput(field, f"must be a list, not {_kind(value)}")
    if len(value) > most:
        raise InvalidInput(field, f"has {len(value)} values; at most {most} are allowed")
    return value


def _metadata(value: object, limits: Limits) -> dict[str, Json]:
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", f"must be a mapping, not {_kind(value)}")
    if not value:
        return {}
    plain = {_key("metadata", key): _plain_json(each, 1) for key, each in value.items()}
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > limits.metadata_bytes_max:
        raise InvalidInput("metadata", f"takes {size:,} bytes; at most {limits.metadata_bytes_max:,} are allowed")
    return plain


def _plain_json(value: object, depth: int) -> Json:
    """A copy that nobody else can change, of JSON that every store can keep."""
    if depth > _METADATA_DEPTH_MAX:
        raise InvalidInput("metadata", f"is nested too deep; at most {_METADATA_DEPTH_MAX} levels are allowed")
    if isinstance(value, Mapping):
        return {_key("metadata", key): _plain_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_json(each, depth + 1) for each in value]
    return _scalar("metadata", value)


def _key(field: str, value: object) -> str:
    if not isinstance(value, str) or not storable(value):
        raise InvalidInput(field, f"key {shown(value)} must be valid Unicode text")
    return value


def _scalar(field: str, value: object) -> JsonScalar:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InvalidInput(field, f"must be plain JSON: text, number, true, false or null, not {_kind(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field, f"must be plain JSON, and {value} is not; give a finite number")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidInput(field, "holds a number that is too large; whole numbers of 64 bits are allowed")
    if isinstance(value, str) and not storable(value):
        raise InvalidInput(field, "contains a NUL or a lone surrogate; only valid Unicode text is allowed")
    return value


def shown(value: object) -> str:
    """A value as a message quotes it: short, and also where `repr` fails, as for a list that is nested too deep."""
    try:
        said = repr(value)
    except Exception:  # a caller's object may raise anything
        return f"a {_kind(value)}"
    return said if len(said) <= _SHOWN_CHARS_MAX else said[:_SHOWN_CHARS_MAX] + "…"


def _kind(value: object) -> str:
    return type(value).__name__
