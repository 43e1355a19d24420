"""Lines as values, where a bad line stops no other and is reported by its number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from nacre.errors import InvalidInput, NacreError

T = TypeVar("T")


class LineReader(Generic[T]):
    """The values of lines. `report` is told the number of each bad line, from 1, and what is wrong with it.

    Blank lines are skipped, but counted.
    """

    def __init__(
        self,
        lines: Iterable[str | bytes],
        decoded: Callable[[str | bytes], T],
        report: Callable[[int, NacreError], None],
    ) -> None:
        self.done = 0  # bytes, or characters of a text
        self._lines = lines
        self._decoded = decoded
        self._report = report
        # By how much the number of a line exceeds the number of its value, and from which value on.
        self._from = [1]
        self._skipped = [0]

    def __iter__(self) -> Iterator[T]:
        values = 0
        for number, line in enumerate(self._lines, 1):
            self.done += len(line)
            if not line.strip():
                continue
            try:
                value = self._decoded(line)
            except InvalidInput as error:
                self._report(number, error)
                continue
            values += 1
            if number - values != self._skipped[-1]:
                self._from.append(values)
                self._skipped.append(number - values)
            yield value

    def refuse(self, value_number: int, error: NacreError) -> None:
        """Report a value that was read but not stored, by its number from 1."""
        skipped = self._skipped[bisect_right(self._from, value_number) - 1]
        self._report(value_number + skipped, error)
