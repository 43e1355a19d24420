"""Taking in an export."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.storage.postgres.schema import Db
from nacre.types.quotas import Quotas
from nacre.types.transfer import LoadCounts, Record


def load(
    db: Db, records: Sequence[Record], mark: int, model: str | None, token_model: str | None, quotas: Quotas
) -> LoadCounts:
    raise NotImplementedError
