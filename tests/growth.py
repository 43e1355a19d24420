"""Whether the time that a text takes grows with its length, or faster: no clock of a busy machine decides a test.

Two texts are compared on the same machine at the same time, in processor time of this thread, the least of several
tries. What keeps the processor busy makes a try longer and never shorter, so a text is found to be slow only if it
was slow each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Read = TypeVar("Read")

TIMES_LONGER = 8
LINEAR = 20.0  # for a text 8 times longer: linear reading takes 8 times longer, quadratic reading 64 times
_TRIES = 12
_MEASURABLE_S = 0.0005
# What takes less is not said to grow: the memory of a longer text may be had from the system each time, and that of a
# shorter one not. Whatever is quadratic in thousands of characters takes far longer.
_NEGLIGIBLE_S = 0.002


@dataclass(frozen=True)
class Repeated:
    """Texts of any length: a piece again and again, between a beginning and an end."""

    piece: str
    start: str = ""
    end: str = ""

    def __call__(self, chars: int) -> str:
        room = chars - len(self.start) - len(self.end)
        return self.start + (self.piece * (room // len(self.piece) + 1))[:room] + self.end


def assert_linear(
    read: Callable[[Read], object],
    make: Callable[[int], Read],
    size: int,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """What is read of `make(size)` takes no more than linearly longer than what is 8 times shorter.

    `size` is at most what is read of a text; the end of a longer one, which nobody reads, would hide how time grows.
    """
    assert_takes_less(LINEAR, read, make(size // TIMES_LONGER), make(size), clock)


def assert_takes_less(
    factor: float,
    read: Callable[[Read], object],
    short: Read,
    long: Read,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """`long` takes less than `factor` times as long as `short`."""
    read(short)  # patterns are compiled, and caches filled
    least_short = least_long = float("inf")
    for _ in range(_TRIES):
        least_short = min(least_short, *(_seconds(read, short, clock) for _ in range(3)))
        least_long = min(least_long, _seconds(read, long, clock))
        if least_long < max(factor * least_short, _NEGLIGIBLE_S):
            return
    raise AssertionError(
        f"the longer one takes {least_long / least_short:.1f} times as long as the shorter one, not less than "
        f"{factor:g} times: {least_long:.4g} s and {least_short:.4g} s: {long!r:.60}"
    )


def _seconds(read: Callable[[Read], object], text: Read, clock: Callable[[], float]) -> float:
    """Of one reading. Repeated until the clock can tell."""
    times = 1
    while True:
        began = clock()
        for _ in range(times):
            read(text)
        taken = clock() - began
        if taken >= _MEASURABLE_S:
            return taken / times
        times *= 4
