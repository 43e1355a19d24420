"""What a command did not store of its input, while it stored the rest: bad lines, and files that cannot be read."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import click

from nacre.analysis.wording import counted
from nacre.cli import render
from nacre.cli.options import wants_json
from nacre.errors import InvalidInput, NacreError

What: TypeAlias = Literal["line", "file", "record"]

LISTED_MAX = 20  # on stderr
_KEPT_MAX = 1_000  # in JSON


class Refusal(NamedTuple):
    """A line or file that was not stored. `field` is None if it could not be read at all."""

    place: int | str  # the number of the line, or the path
    field: str | None
    problem: str


class Refusals:
    """Bad lines or files, in their order. Only the first are kept, all are counted."""

    def __init__(self, what: What) -> None:
        self.what: What = what
        self.count = 0
        self._kept: list[Refusal] = []

    def add(self, place: int | str, error: NacreError) -> None:
        self.count += 1
        if len(self._kept) < _KEPT_MAX:
            field, problem = (error.field, error.problem) if isinstance(error, InvalidInput) else (None, str(error))
            self._kept.append(Refusal(place, field or None, problem))

    def report(self, context: click.Context, stored: str) -> None:
        """List them on stderr, and raise the error that sets the exit code. Does nothing if there are none."""
        if not self.count:
            return
        if self.what == "line":  # some were refused when they were read, others later
            self._kept.sort(key=lambda each: each.place)
        if not wants_json(context):
            for each in self._kept[:LISTED_MAX]:
                place = f"line {each.place}" if self.what == "line" else each.place
                render.tell(f"{place}: {f'{each.field}: ' if each.field else ''}{each.problem}")
            if self.count > LISTED_MAX:
                render.tell(f"… and {self.count - LISTED_MAX:,} more")
        said = counted(self.count, f"{self.what} was", f"{self.what}s were")
        raise InvalidInput(
            "file",
            f"{said} not {stored}; all others were. Repair {'it' if self.count == 1 else 'them'} and run the command "
            "again: nothing is stored twice",
            [{self.what: each.place, "field": each.field, "message": each.problem} for each in self._kept],
        )
