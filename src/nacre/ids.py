"""Ids of 16 characters that sort by time, so that the older memory wins where ties are broken by id; text hashes."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # base 32 without i, l, o, u, which are easily confused
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RANDOM_BITS = 35


def new_ids(now: datetime, count: int) -> list[str]:
    """New ids in ascending order: 45 bits of milliseconds, then 35 random bits that are incremented within a call."""
    milliseconds = int((now - _EPOCH).total_seconds() * 1000)
    first = (milliseconds << _RANDOM_BITS) + int.from_bytes(os.urandom(5)) % (1 << (_RANDOM_BITS - 1))
    return [_encoded(first + number) for number in range(count)]


def content_hash(text: str) -> bytes:
    """128 bits are enough to tell texts apart, and the index over them is half the size."""
    return hashlib.sha256(text.encode()).digest()[:16]


def _encoded(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(75, -1, -5))
