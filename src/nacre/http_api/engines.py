"""Which engine answers a request? One for each space and the spaces that its caller may see, all on one store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nacre.engine.engine import Nacre
from nacre.http_api.limits import ENGINES_KEPT


@dataclass(slots=True)
class _Kept:
    engine: Nacre
    users: int = 0


class Engines:
    """Engines that are made when they are first needed. Those that were idle longest are closed."""

    def __init__(self, root: Nacre, observe: Callable[[str, float], None] | None = None) -> None:
        self.root = root  # may see all spaces
        self._observe = observe
        self._kept: OrderedDict[tuple[str, tuple[str, ...] | None, bool], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, space: str, spaces: tuple[str, ...] | None, *, log: bool = True) -> Iterator[Nacre]:
        """The engine that works in `space` and may see `spaces` (None: all), until the block ends.

        With `log=False` nothing enters the recall log.
        """
        place = (space, spaces, log)
        with self._lock:
            kept = self._kept.get(place)
            if kept is None:
                confined = False if spaces is None else spaces
                engine = self.root.within(space, confined=confined, log=log, observe=self._observe)
                kept = self._kept[place] = _Kept(engine)
            self._kept.move_to_end(place)
            kept.users += 1
        try:
            yield kept.engine
        finally:
            with self._lock:
                kept.users -= 1
                over = self._idle_beyond_limit()
            for each in over:
                each.close()

    def _idle_beyond_limit(self) -> list[Nacre]:
        idle = [place for place, each in self._kept.items() if not each.users]
        return [self._kept.pop(place).engine for place in idle[: max(0, len(self._kept) - ENGINES_KEPT)]]

    def close(self) -> None:
        with self._lock:
            every = [each.engine for each in self._kept.values()]
            self._kept.clear()
        for each in (*every, self.root):
            each.close()
