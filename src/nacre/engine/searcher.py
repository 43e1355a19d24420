"""A search from what a caller asked for to its result: through which lens, and whether it was asked a moment ago."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from nacre import validation
from nacre.engine.pipeline import Recall, Trail
from nacre.errors import NotFound
from nacre.interfaces import Store
from nacre.query import intent, lenses
from nacre.query.ast import Condition, Only
from nacre.query.lenses import Lens
from nacre.types.recipe import USUAL_RECIPE
from nacre.types.search import Filter, SearchRequest, SearchResult
from nacre.validation import Limits

_FRESH = timedelta(minutes=1)  # a day may end for a memory meanwhile, and its recency with it
# Who asks, and through which lens, is no part of a request once it is seen through that lens.
_APART = {"session", "folder", "lens", "where", "recipe"}
_KEYS = tuple(each.name for each in fields(SearchRequest) if each.name not in _APART)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A checked request through its lens."""

    request: SearchRequest
    named: Sequence[str]  # the spaces its caller named
    also: Condition | None
    lens: str | None
    possible: bool
    delivered: frozenset[str] = frozenset()  # what is left out because the session that asks knows it


class Searcher:
    """Holds recent results: by request, as long as nothing was written."""

    def __init__(
        self, store: Store, recall: Recall, *, space: str, limits: Limits, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._recall = recall
        self._space = space
        self._limits = limits
        self._clock = clock
        self._recent: OrderedDict[Hashable, tuple[datetime, SearchResult]] = OrderedDict()
        self._lenses: tuple[tuple[int, int] | None, dict[str, Lens]] = (None, {})
        self._lock = threading.Lock()

    def search(self, asked: SearchRequest, delivered: Set[str] = frozenset()) -> tuple[SearchRequest, SearchResult]:
        """The request as it was carried out, and what it found. `told` is what the session that asks knows."""
        with self._store.view():
            return self._searched(asked, delivered)

    def _searched(self, asked: SearchRequest, delivered: Set[str]) -> tuple[SearchRequest, SearchResult]:
        written = self._store.sequence()
        seen = self._without(self._through_lens(asked, written), delivered)
        if not self._limits.results_cached:
            return seen.request, self._result(self._carried_out(seen), seen)
        key = (_key(seen), written)
        now = self._clock()
        with self._lock:
            at, recent = self._recent.get(key, (None, None))
            if at is not None and recent is not None and timedelta(0) <= now - at < _FRESH:
                self._recent.move_to_end(key)
                return seen.request, recent
        trail = self._carried_out(seen)
        result = self._result(trail, seen)
        if trail.repeatable:
            with self._lock:
                self._recent[key] = now, result
                self._recent.move_to_end(key)
                while len(self._recent) > self._limits.results_cached:
                    self._recent.popitem(last=False)
        return seen.request, result

    def _result(self, trail: Trail, seen: _Seen) -> SearchResult:
        result = self._recall.result(trail)
        return result if seen.lens is None else replace(result, lens=seen.lens)

    def trail(self, asked: SearchRequest, delivered: Set[str] = frozenset()) -> Trail:
        """How a search comes to its result."""
        with self._store.view():
            return self._carried_out(self._without(self._through_lens(asked, self._store.sequence()), delivered))

    def admitted(self, asked: SearchRequest, memory_ids: Sequence[str]) -> set[str]:
        """Those of these memories that the filters and conditions of a search let through."""
        seen = self._through_lens(asked, self._store.sequence())
        return self._recall.admitted(seen.request, seen.named, seen.also, memory_ids) if memory_ids else set()

    def _without(self, seen: _Seen, delivered: Set[str]) -> _Seen:
        """With room for others in place of what is left out: nothing may be left out after the cut."""
        if not (seen.request.omit_delivered and delivered):
            return seen
        recipe = seen.request.recipe
        wide = replace(recipe, pool=min(recipe.pool + len(delivered), self._limits.pool_max))
        return replace(seen, request=replace(seen.request, recipe=wide), delivered=frozenset(delivered))

    def _carried_out(self, seen: _Seen) -> Trail:
        trail = self._recall.trail(seen.request, seen.named, seen.also, seen.delivered)
        if seen.possible:
            return trail
        said = f"the filters exclude those of the lens {seen.lens}: nothing can match"
        return replace(trail, kept=(), notes=(*trail.notes, said))

    def _through_lens(self, asked: SearchRequest, written: tuple[int, int]) -> _Seen:
        request = validation.search(asked, self._space, self._limits)
        named = validation.named_spaces(asked.where, self._limits)
        lens = self._lens(request, written)
        if lens is None:
            return _Seen(request, named, None, None, possible=True)
        applied = lenses.applied(lens, request)
        also = None if applied.also == Filter() else Only(applied.also)
        return _Seen(applied.request, named, also, lens.name, applied.possible)

    def _lens(self, request: SearchRequest, written: tuple[int, int]) -> Lens | None:
        """The lens that is named, or that selects itself."""
        if request.lens == lenses.NONE:
            return None
        if request.lens is not None and request.lens in lenses.BUILT_IN:
            return lenses.BUILT_IN[request.lens]
        own = self._own_lenses(written)
        if request.lens is None:
            if not own:
                return None
            return lenses.choose(list(own.values()), request.query, intent.detect(request.query).name, request.folder)
        if request.lens not in own:
            raise NotFound((request.lens,), f"see `nacre lens list`, or say {lenses.NONE}", what="lens")
        return own[request.lens]

    def _own_lenses(self, written: tuple[int, int]) -> dict[str, Lens]:
        """Those of the space. They are read again only after something was written."""
        as_of, own = self._lenses
        if as_of != written:
            bodies = self._store.lenses(self._space)
            own = {name: lenses.from_json(json.loads(body)) for name, body in bodies.items()}
            self._lenses = written, own
        return own


def _key(seen: _Seen) -> Hashable:
    """What a result depends on, besides what is stored. Filters and recipes have no hash."""
    request = seen.request
    recipe = "" if request.recipe == USUAL_RECIPE else repr(request.recipe)
    asked = tuple(getattr(request, name) for name in _KEYS)
    return (
        asked,
        repr(request.where),
        recipe,
        tuple(seen.named),
        repr(seen.also),
        seen.lens,
        seen.possible,
        seen.delivered,
    )
