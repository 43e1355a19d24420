"""Moments as days, weeks and months of the user."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, tzinfo

from nacre.types.views import Bucket


def local_date(moment: datetime, zone: tzinfo | None) -> date:
    try:
        return moment.astimezone(zone).date()
    except OverflowError:  # the first and the last day there are
        return moment.date()


def histogram(moments: Mapping[datetime, int], zone: tzinfo | None, bucket: Bucket) -> dict[str, int]:
    """Counts by day, week or month, named so that names sort by time."""
    counted: dict[str, int] = {}
    for moment, number in moments.items():
        name = _bucket(local_date(moment, zone), bucket)
        counted[name] = counted.get(name, 0) + number
    return dict(sorted(counted.items()))


def _bucket(day: date, bucket: Bucket) -> str:
    match bucket:
        case "day":
            return day.isoformat()
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return day.isoformat()[:7]
