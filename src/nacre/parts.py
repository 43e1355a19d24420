"""What the parts of the engine have in common."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from nacre.checks import Limits
from nacre.ports import Store


class Part:
    """Some verbs of `Nacre`, which sets these."""

    _store: Store
    _clock: Callable[[], datetime]
    _make_ids: Callable[[datetime, int], list[str]]
    _limits: Limits
    _space: str
