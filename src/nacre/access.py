"""Which spaces may an engine read and change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.errors import InvalidInput
from nacre.types.facts import Fact
from nacre.types.memory import DEFAULT_SPACE, Memory


@dataclass(frozen=True, slots=True)
class Access:
    """The space an engine works in. A confined engine can neither read nor change another space."""

    space: str = DEFAULT_SPACE  # used where a caller names none
    confined: bool = False

    def allowed(self, field: str, spaces: tuple[str, ...]) -> tuple[str, ...]:
        """The named spaces. Raises InvalidInput where a confined engine is asked for another one."""
        if self.confined and any(each != self.space for each in spaces):
            raise InvalidInput(field, f"only {self.space!r} is allowed: this memory is confined to it")
        return spaces

    def check_unconfined(self, verb: str, reach: str) -> None:
        """Raise InvalidInput where a confined engine is asked for what is about all spaces."""
        if self.confined:
            raise InvalidInput(verb, f"{reach} all spaces, and this memory is confined to one; open it unconfined")

    def sees(self, found: Memory | Fact) -> bool:
        return not self.confined or found.space == self.space

    def choices(self, named: Sequence[str]) -> tuple[str, ...]:
        """The spaces that a query may choose from with `space:`; none means all."""
        return (self.space,) if self.confined else tuple(named)
