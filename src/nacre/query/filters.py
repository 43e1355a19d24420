"""Filters in a query: `tag:rust`, `-kind:fact`, `since:7d`, `source:docs/*`, `has:tags`.

    ns:decisions  kind:fact  session:x  space:work  source:docs/*      equal; a source also by pattern with * and ?
    tag:a,b                                                            either; `tag:a tag:b` is both
    lang:de,fr                                                         in one of these languages
    key:docs/                                                          a key that begins so
    entity:"Ada Lovelace"                                              named in the memory, or linked to it
    since:7d  until:2026-03-01  on:yesterday                           created then, in the user's time zone
    has:tags                                                           facts, tags, source, session, summary, metadata
    fact-type:preference                                               has a fact of this type
    importance>=0.7  importance:0.7..1                                 from 0 to 1; also >, <, <= and a single number

Each filter becomes a condition, so filters can be negated, grouped and combined like words.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, tzinfo
from typing import Any, get_args

from nacre.query import dates
from nacre.query.ast import Condition, Only, either
from nacre.query.lexer import preview
from nacre.types.facts import FactType
from nacre.types.search import Filter, Part
from nacre.validation import LANGUAGE_CODE, WILDCARDS_MAX, too_many_wildcards

VALUES_MAX = 100
_LISTS = {"ns": "namespaces", "namespace": "namespaces", "tag": "tags_any", "kind": "kinds"} | {
    "space": "spaces", "source": "sources", "session": "sessions", "fact-type": "fact_types",
    "key": "key_prefixes", "lang": "languages",
}  # fmt: skip
_TIMES = ("since", "until", "on")
_CHOICES = {"has": get_args(Part), "fact-type": get_args(FactType)}
KEYS = frozenset({*_LISTS, *_TIMES, "entity", "has", "importance"})

_VALUE = re.compile(r'"([^"]*)"|([^,"]+)')
_IMPORTANCE = re.compile(r"(?P<sign>[<>]=?|)(?P<number>[0-9]*\.?[0-9]+)(?:\.\.(?P<most>[0-9]*\.?[0-9]+))?")
_TRAILING = "?!;.,"  # punctuation of the sentence around a filter, not part of its value


def quoted(value: str) -> str:
    """A value as it is written in a filter. The syntax has no escape for quotes, so spaces take their place."""
    return '"' + value.replace('"', " ") + '"'


def split_values(key: str, value: str) -> tuple[str, ...]:
    """The values of a filter. They are separated by commas; a value with a comma is quoted."""
    found = []
    for quoted, bare in _VALUE.findall(value):
        each = quoted or (bare if key in ("source", "key") else bare.rstrip(_TRAILING))
        if len(each) > 2 and each[0] == each[-1] == "'":
            each = each[1:-1]
        if each.strip():
            found.append(each.strip())
    return tuple(dict.fromkeys(found))


def to_condition(key: str, value: str, now: datetime, zone: tzinfo | None) -> Condition | str:
    """The condition of a filter, or a message about what is wrong with it."""
    if key == "importance":
        return _importance(value)
    if key in _TIMES:
        return _created(key, value, now, zone)
    listed = split_values(key, value)
    if not listed:
        return f"{key}: has no value"
    if len(listed) > VALUES_MAX:
        return f"{key}: has {len(listed)} values, at most {VALUES_MAX} are allowed"
    if key in _CHOICES:
        listed = tuple(map(str.lower, listed))
        unknown = [each for each in listed if each not in _CHOICES[key]]
        if unknown:
            return f"{key}:{preview(unknown[0])} is unknown; allowed: {', '.join(_CHOICES[key])}"
    if key == "lang":
        listed = tuple(map(str.lower, listed))
        unknown = [each for each in listed if not LANGUAGE_CODE.fullmatch(each)]
        if unknown:
            return f"lang:{preview(unknown[0])} is not a language; write its two letters of ISO 639-1, like de or zh"
    if key == "has":
        parts = tuple(Only(Filter(has=(part,))) for part in get_args(Part) if part in listed)
        return either(parts)
    if key == "source" and any(map(too_many_wildcards, listed)):
        return f"source: a pattern may have {WILDCARDS_MAX} wildcards at most"
    allowed: dict[str, Any] = {_LISTS[key]: listed}
    return Only(Filter(**allowed))


def _created(key: str, value: str, now: datetime, zone: tzinfo | None) -> Condition | str:
    text = value.replace('"', " ").strip()
    period = dates.parse_period(text, now, zone) or dates.parse_period(text.rstrip(_TRAILING), now, zone)
    if period is None or (period.start is None and key != "on"):
        return (
            f"{key}:{preview(text)} is not a time; write it like 7d, yesterday, last-week, 2026-03 or 2026-03-01T12:30"
        )
    match key:
        case "since":
            return Only(Filter(created_from=period.start))
        case "until":
            return Only(Filter(created_until=period.start))
    return Only(Filter(created_from=period.start, created_until=period.end))


def _importance(value: str) -> Condition | str:
    """`>=0.7`, `>0.5`, `<0.3`, `<=0.3`, `0.7..1` or one number. Bounds of filters are inclusive: the next number is."""
    text = value.replace('"', " ").strip().rstrip(_TRAILING)
    found = _IMPORTANCE.fullmatch(text)
    number = float(found["number"]) if found else -1.0
    most = float(found["most"]) if found and found["most"] else number
    if found is None or (found["sign"] and found["most"]) or not 0 <= number <= most <= 1:
        wanted = "a number from 0 to 1; write it like importance>=0.7, importance<0.3 or importance:0.7..1"
        return f"importance:{preview(text)} is not {wanted}"
    match found["sign"]:
        case ">=":
            return Only(Filter(importance_min=number))
        case "<=":
            return Only(Filter(importance_max=number))
        case ">":
            return Only(Filter(importance_min=math.nextafter(number, 2)))
        case "<":
            return Only(Filter(importance_max=math.nextafter(number, -1)))
    return Only(Filter(importance_min=number, importance_max=most))
