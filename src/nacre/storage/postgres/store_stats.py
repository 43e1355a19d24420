"""The counts of a whole store."""

from __future__ import annotations

from nacre.storage.postgres.schema import Db
from nacre.types.quotas import Quotas
from nacre.types.stats import Stats


def store_stats(db: Db, quotas: Quotas) -> Stats:
    raise NotImplementedError
