"""Which spaces may an engine read and change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nacre.errors import AccessDenied
from nacre.types.facts import Fact
from nacre.types.memory import DEFAULT_SPACE, Memory

_SHOWN = 10  # spaces that a message names


@dataclass(frozen=True, slots=True)
class Access:
    """The space an engine works in, and those it may see. A confined engine can neither read nor change another."""

    space: str = DEFAULT_SPACE  # used where a caller names none; one of `spaces`
    spaces: tuple[str, ...] | None = None  # that it is confined to; None: it may read and change all

    @property
    def confined(self) -> bool:
        return self.spaces is not None

    def includes(self, space: str) -> bool:
        """Whether this space may be read and changed."""
        return self.spaces is None or space in self.spaces

    def allowed(self, field: str, spaces: tuple[str, ...]) -> tuple[str, ...]:
        """The named spaces. Raises AccessDenied where a confined engine is asked for another one."""
        if self.spaces is not None and not all(map(self.includes, spaces)):
            several = len(self.spaces) > 1
            named = ", ".join(map(repr, self.spaces[:_SHOWN])) + (", …" if len(self.spaces) > _SHOWN else "")
            raise AccessDenied(
                field,
                f"only {named} {'are' if several else 'is'} allowed: "
                f"this memory is confined to {'them' if several else 'it'}",
            )
        return spaces

    def check_unconfined(self, verb: str, reach: str, remedy: str = "open it unconfined") -> None:
        """Raise AccessDenied where a confined engine is asked for what is about all spaces."""
        if self.spaces is not None:
            to = "one" if len(self.spaces) == 1 else f"{len(self.spaces)} of them"
            raise AccessDenied(verb, f"{reach} all spaces, and this memory is confined to {to}; {remedy}")

    def sees(self, found: Memory | Fact) -> bool:
        return self.includes(found.space)

    def choices(self, named: Sequence[str]) -> tuple[str, ...]:
        """The spaces that a query may choose from with `space:`; none means all."""
        return tuple(named) or self.spaces or ()
