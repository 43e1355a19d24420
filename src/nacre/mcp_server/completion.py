"""Completes the arguments of prompts and the variables of resource templates, the most frequent values first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from nacre.analysis.names import fold
from nacre.engine.engine import Nacre
from nacre.errors import NotFound
from nacre.mcp_server import prompts, resources

VALUES_MAX = 100  # of one answer, by the protocol


class Completed(NamedTuple):
    values: list[str]
    total: int  # of all values that match, also beyond the maximum


_Values = Callable[[Nacre, str], Iterable[str]]  # of an engine, and of the space that it is confined to


def _none(_: Nacre, __: str) -> Iterable[str]:
    return ()


def _entities(memory: Nacre, _: str) -> Iterable[str]:
    return memory.entity_counts()


def _lenses(memory: Nacre, _: str) -> Iterable[str]:
    return (each.name for each in memory.lenses())


def _namespaces(memory: Nacre, _: str) -> Iterable[str]:
    return memory.facets().namespaces


def _spaces(_: Nacre, own: str) -> Iterable[str]:
    return (own,)


def _tags(memory: Nacre, _: str) -> Iterable[str]:
    return memory.facets().tags


# By the name of a template or a prompt, and of its variable or argument.
_VALUES: Mapping[str, Mapping[str, _Values]] = {
    "overview": {},
    "memory": {"id": _none},  # a bare id tells nobody which memory it is
    "tag": {"tag": _tags},
    "namespace": {"namespace": _namespaces},
    "entity": {"name": _entities},
    "lens": {"name": _lenses},
    "space": {"space": _spaces},
    "recall": {"topic": _entities, "namespace": _namespaces, "tag": _tags},
    "keep": {},
}


def of_template(memory: Nacre, space: str, name: str, argument: str, typed: str) -> Completed:
    """Values for a variable of the resource template with this URI. The engine is confined to `space`."""
    known = {each["uri_template"]: each["name"] for each in resources.TEMPLATES} | {resources.OVERVIEW: "overview"}
    if name not in known:
        raise NotFound((name,), f"allowed: {', '.join(known)}", what="resource template")
    return _matching(_values(known[name], argument)(memory, space), typed)


def of_prompt(memory: Nacre, space: str, name: str, argument: str, typed: str) -> Completed:
    """Values for an argument of a prompt."""
    known = [each["name"] for each in prompts.LISTED]
    if name not in known:
        raise NotFound((name,), f"allowed: {', '.join(known)}", what="prompt")
    return _matching(_values(name, argument)(memory, space), typed)


def _values(name: str, argument: str) -> _Values:
    if argument not in _VALUES[name]:
        allowed = ", ".join(_VALUES[name]) or "none"
        raise NotFound((argument,), f"allowed: {allowed}", what="argument")
    return _VALUES[name][argument]


def _matching(values: Iterable[str], typed: str) -> Completed:
    """Those that begin with what was typed, then those that contain it, both in the given order. Case is ignored."""
    wanted = fold(typed)
    begin: list[str] = []
    contain: list[str] = []
    for each in values:
        at = fold(each).find(wanted)
        if at >= 0:
            (contain if at else begin).append(each)
    found = begin + contain
    return Completed(found[:VALUES_MAX], len(found))
