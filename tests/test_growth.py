"""What tells linear from quadratic time tells it: with a made clock, whatever else happens, and with a real one."""

from __future__ import annotations

import re

import pytest

from growth import Repeated, assert_linear, assert_takes_less


class Steps:
    """A clock that goes on by the steps that a reading takes."""

    def __init__(self, power: float, disturbed: int = 0) -> None:
        self.now = 0.0
        self.scale = 1e-3  # seconds a step
        self._power = power
        self._disturbed = disturbed  # so many readings take a hundred times longer

    def __call__(self) -> float:
        return self.now

    def read(self, text: str) -> None:
        self.now += len(text) ** self._power * self.scale * (100 if self._disturbed > 0 else 1)
        self._disturbed -= 1


@pytest.mark.parametrize("power", [0, 0.5, 1, 1.3])
def test_what_takes_linear_time_passes(power: float) -> None:
    clock = Steps(power)
    assert_linear(clock.read, Repeated("a"), 20_000, clock)


@pytest.mark.parametrize("power", [1.5, 2, 3])
def test_what_takes_longer_is_found(power: float) -> None:
    clock = Steps(power)
    with pytest.raises(AssertionError, match="times as long as the shorter one"):
        assert_linear(clock.read, Repeated("a"), 20_000, clock)


@pytest.mark.parametrize("size", [8, 400, 20_000, 1_000_000])
def test_size_does_not_matter(size: int) -> None:
    clock = Steps(1)
    assert_linear(clock.read, Repeated("a"), size, clock)
    clock = Steps(2)
    with pytest.raises(AssertionError):
        assert_linear(clock.read, Repeated("a"), size, clock)


@pytest.mark.parametrize("disturbed", [1, 2, 5, 8])
def test_a_busy_machine_makes_nothing_slow(disturbed: int) -> None:
    clock = Steps(1, disturbed)
    assert_linear(clock.read, Repeated("a"), 20_000, clock)


def test_texts_of_any_kind_are_compared() -> None:
    clock = Steps(1)
    assert_takes_less(2, clock.read, "a" * 400, "a" * 700, clock)
    with pytest.raises(AssertionError):
        assert_takes_less(2, clock.read, "a" * 400, "a" * 900, clock)


def test_a_pattern_that_looks_back_is_found() -> None:
    """By the processor's clock, which all other tests use."""
    with pytest.raises(AssertionError, match="times as long as the shorter one"):
        assert_linear(re.compile("a*b").search, Repeated("a"), 4_000)
    assert_linear(re.compile("a+").search, Repeated("a"), 4_000)


def test_texts_have_the_length_that_is_asked_for() -> None:
    assert Repeated("ab")(5) == "ababa"
    assert Repeated("ab", start="<", end=">")(5) == "<aba>"


def test_what_takes_next_to_no_time_is_not_said_to_grow() -> None:
    """It may be had from the system, and not from what is growing."""
    clock = Steps(2)
    clock.scale = 1e-6
    assert_linear(clock.read, Repeated("a"), 40, clock)
    with pytest.raises(AssertionError, match="times as long as the shorter one"):
        assert_linear(clock.read, Repeated("a"), 80, clock)
