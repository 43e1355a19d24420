"""What changed in a store since a number: for those who follow it."""

from __future__ import annotations

from collections.abc import Sequence

from nacre import validation
from nacre.engine.parts import Parts
from nacre.errors import InvalidInput
from nacre.types.changes import ChangePage

_MOST = 2**63 - 1


class ChangeService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def since(self, since: int | None, spaces: Sequence[str], limit: int) -> ChangePage:
        parts = self._parts
        if since is not None:
            validation.whole("since", since, 0, _MOST)
        validation.whole("limit", limit, *parts.limits.ranges["listed"])
        within = validation.spaces(spaces, parts.access, parts.limits)
        page = parts.store.changes(within, since, limit)
        if since is not None and page.seq < since:
            raise InvalidInput(
                "since",
                f"is {since:,}, and the last change is {page.seq:,}: this is another store, or an older backup of it; "
                "read everything again, and then what changed since that",
            )
        return page
