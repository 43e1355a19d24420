"""Answers that a server gave and keeps for a while, so that a request that is sent again is not carried out again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

KEPT: Final = timedelta(hours=24)
CLAIM_LASTS: Final = timedelta(minutes=5)  # beyond, whoever carried the request out has died

ClaimState: TypeAlias = Literal["claimed", "running", "answered", "different"]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """`quotes`: its body may quote memories, so that a purge deletes it."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    quotes: bool = True


class Claim(NamedTuple):
    """What a store says of a request that is about to be carried out.

    claimed: nobody has carried it out, so the caller does, and tells the store the outcome by `ticket`;
    running: it is being carried out; answered: `answer` is the answer, or None if a purge deleted it;
    different: another request had the same key.
    """

    state: ClaimState
    ticket: str = ""
    answer: KeptAnswer | None = None
