"""What a check of a store has found, and what could be saved of a damaged one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["fine", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str  # its name, such as "integrity"
    level: Level
    text: str  # what was found, in a sentence
    remedy: str = ""  # what to do about it
    fixed: bool = False  # it was a problem, and has been put right


@dataclass(frozen=True, slots=True)
class Health:
    """All that a check of a store has found."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Those that are not fixed."""
        return tuple(each for each in self.findings if each.level == "problem" and not each.fixed)

    @property
    def sound(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was copied from a damaged store into a new one. By table, the number of rows."""

    path: Path
    copied: Mapping[str, int]
    lost: Mapping[str, int]  # that are known to have been there and could not be read
    lost_memories: tuple[str, ...]  # ids, as far as they are known
    notes: tuple[str, ...] = ()
