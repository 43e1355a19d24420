"""One answer of the answers of several nodes, in the order in which one store would give it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TypeVar

from nacre.types.facts import Fact
from nacre.types.memory import Memory
from nacre.types.recall_log import Delivery, Receipt
from nacre.types.stats import FacetCounts, Frequencies, Stats
from nacre.types.transfer import LoadCounts

K = TypeVar("K")
V = TypeVar("V")


def joined(several: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Of answers by id: no two nodes answer for one."""
    return {key: value for each in several for key, value in each.items()}


def summed(several: Iterable[Mapping[K, int]]) -> dict[K, int]:
    total: Counter[K] = Counter()
    for each in several:
        total.update(each)
    return dict(total)


def frequencies(several: Sequence[Frequencies]) -> Frequencies:
    return Frequencies(
        sum(each.memories for each in several),
        summed(each.having for each in several),
        sum(each.length for each in several),
        summed(each.prefixes for each in several),
    )


def facets(several: Sequence[FacetCounts]) -> FacetCounts:
    return FacetCounts(
        total=sum(each.total for each in several),
        kinds=summed(each.kinds for each in several),
        namespaces=summed(each.namespaces for each in several),
        tags=summed(each.tags for each in several),
        sources=summed(each.sources for each in several),
        created=summed(each.created for each in several),
    )


def stats(several: Sequence[Stats], model: str | None, token_model: str | None) -> Stats:
    return Stats(
        memories=sum(each.memories for each in several),
        forgotten=sum(each.forgotten for each in several),
        passages=sum(each.passages for each in several),
        pending=sum(each.pending for each in several),
        pending_tokens=sum(each.pending_tokens for each in several),
        token_bytes=sum(each.token_bytes for each in several),
        events=sum(each.events for each in several),
        spaces=_by_name(summed(each.spaces for each in several)),
        kinds=_by_name(summed(each.kinds for each in several)),
        namespaces=_by_name(summed(each.namespaces for each in several)),
        model=model,
        token_model=token_model,
        further_models=summed(each.further_models for each in several),
        stored_memories=_by_name(summed(each.stored_memories for each in several)),
        stored_bytes=_by_name(summed(each.stored_bytes for each in several)),
        quotas=several[0].quotas,
        schema_version=several[0].schema_version,
        size_bytes=sum(each.size_bytes for each in several),
        index_bytes=sum(each.index_bytes for each in several),
    )


def by_time(several: Iterable[Sequence[Memory]], *, oldest_first: bool, limit: int) -> list[Memory]:
    every = chain.from_iterable(several)
    return sorted(every, key=lambda each: (each.created, each.id), reverse=not oldest_first)[:limit]


def newest_facts(several: Iterable[Sequence[Fact]], limit: int) -> list[Fact]:
    return sorted(chain.from_iterable(several), key=lambda each: (each.valid_from, each.id), reverse=True)[:limit]


def most_frequent(several: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(summed(several).items(), key=lambda each: (-each[1], each[0])))


def best_relations(several: Iterable[Sequence[tuple[Fact, float]]], limit: int) -> list[tuple[Fact, float]]:
    """Of equals on several nodes, the one with the newest id first: numbers of facts are those of one node."""
    answers = list(several)
    if len(answers) < 2:
        return list(*answers)
    every = list(chain.from_iterable(answers))
    return sorted(every, key=lambda each: (each[1], each[0].id), reverse=True)[:limit]


def counts(several: Iterable[LoadCounts]) -> LoadCounts:
    total = LoadCounts()
    for each in several:
        total += each
    return total


def receipts(several: Iterable[Sequence[Receipt]], is_whole: Callable[[Receipt, int], bool]) -> dict[str, Receipt]:
    """Receipts by id, each with what it delivered of all nodes.

    `is_whole` says of a receipt and the place of an answer whether that node has the receipt's own space.
    """
    found: dict[str, Receipt] = {}
    for place, answer in enumerate(several):
        for each in answer:
            known = found.get(each.id)
            if known is None:
                found[each.id] = each
                continue
            whole, part = (each, known) if is_whole(each, place) else (known, each)
            deliveries = {one.memory_id: one for one in (*part.deliveries, *whole.deliveries)}
            found[each.id] = with_deliveries(whole, deliveries.values())
    return found


def with_deliveries(receipt: Receipt, deliveries: Iterable[Delivery]) -> Receipt:
    return replace(receipt, deliveries=tuple(sorted(deliveries, key=lambda each: (each.rank, each.memory_id))))


def latest(several: Iterable[Mapping[K, Sequence[tuple[str, datetime]]]], limit: int) -> dict[K, list[str]]:
    """By session, what was delivered to it, the latest first."""
    times: dict[K, dict[str, datetime]] = {}
    for answer in several:
        for key, delivered in answer.items():
            known = times.setdefault(key, {})
            for memory_id, at in delivered:
                known[memory_id] = max(at, known.get(memory_id, at))
    return {key: sorted(sorted(known), key=known.__getitem__, reverse=True)[:limit] for key, known in times.items()}


def _by_name(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items()))
