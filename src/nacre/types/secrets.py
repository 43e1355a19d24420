"""Secrets in what is stored: the policy for new ones, and where stored ones were found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

# What becomes of a secret before it is stored: a note in the result, its kind in its place, an error, or nothing.
SecretPolicy: TypeAlias = Literal["warn", "redact", "refuse", "off"]
DEFAULT_SECRET_POLICY: SecretPolicy = "warn"  # noqa: S105  # the name of a policy


class SecretPlace(NamedTuple):
    """Where a secret is: never the secret itself. `field` is like `text`, `metadata.login` or `facts[0].object`.

    `start` and `end` are its characters within the field. `masked` is the text around it, without any secret.
    """

    kind: str
    field: str
    start: int
    end: int
    masked: str = ""

    @property
    def characters(self) -> str:
        """In words, counted from 1."""
        return f"characters {self.start + 1} to {self.end}"


class Screened(NamedTuple):
    """A text as it would be stored, and what there is to say about it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryWithSecrets:
    """A stored memory that has secrets, by `audit`. Earlier values of its fields are in `history[SEQ].…`."""

    id: str
    space: str
    created: datetime
    forgotten: bool
    places: tuple[SecretPlace, ...]
