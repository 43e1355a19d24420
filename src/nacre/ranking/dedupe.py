"""Shows near-duplicates once: the best of them, with the others named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.types.search import Ranked


def collapse(ranked: Sequence[Ranked], similar: Mapping[str, Sequence[str]]) -> tuple[list[Ranked], dict[str, str]]:
    """The ranking without near-duplicates of a better memory, and by id which better one each belongs to."""
    if not similar:
        return list(ranked), {}
    kept: list[Ranked] = []
    shown: set[str] = set()
    under: dict[str, str] = {}
    for each in ranked:
        better = next((other for other in similar.get(each.id, ()) if other in shown), None)
        if better is None:
            kept.append(each)
            shown.add(each.id)
        else:
            under[each.id] = better
    return kept, under
