"""A short campaign of faults, and what it would notice. `python -m benchmarks.faults` runs the long one."""

from __future__ import annotations

import pytest

from benchmarks import faults
from benchmarks.common.fault_workers import Expected, Operation, Verdict

TRIALS = {
    "kills": 4,
    "flips": 12,
    "flipped caches": 8,
    "truncations": 4,
    "full disk": 1,
    "file size limit": 2,
    "slow disk": 2,
    "clock jumps": 1,
    "forks": 1,
    "little memory": 1,
    "processes": 1,
}


def test_every_fault_is_in_the_short_campaign() -> None:
    assert TRIALS.keys() == faults.FAULTS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
def test_nothing_is_lost_half_written_or_silently_wrong(name: str) -> None:
    if not faults.is_possible(name):
        pytest.skip("not on this platform")
    (verdict,) = faults.campaign({name: TRIALS[name]}, seed=20, processes=3, seconds=1).values()
    assert verdict.trials == TRIALS[name]
    if name == "little memory":  # libraries may end the process or let it wait for ever: nothing may be lost by that
        verdict = verdict._replace(hangs=0, crashes=0)
    assert verdict.bad == 0, verdict


# ---------------------------------------------------------------- what a campaign would notice


def after(*operations: Operation) -> Expected:
    expected = Expected()
    for each in operations:
        expected.apply(each)
    return expected


WRITTEN = after(
    ("remember", ("a", "b", "c")), ("update", ("a", "A")), ("forget", ("b",)), ("remember", ("d",)), ("purge", ("d",))
)


@pytest.mark.parametrize(
    ("found", "under_way", "expected"),
    [
        ({"A", "c"}, None, Verdict()),
        ({"A"}, None, Verdict(lost=1)),
        ({"a", "c"}, None, Verdict(lost=1, wrong=1)),  # the update is lost
        ({"A", "b", "c"}, None, Verdict(wrong=1)),  # what was forgotten
        ({"A", "c", "d"}, None, Verdict(wrong=1)),  # what was purged
        ({"A", "c"}, ("remember", ("x", "y")), Verdict()),
        ({"A", "c", "x", "y"}, ("remember", ("x", "y")), Verdict()),
        ({"A", "c", "x"}, ("remember", ("x", "y")), Verdict(half=1)),
        ({"A", "C"}, ("update", ("c", "C")), Verdict()),
        ({"A", "c", "C"}, ("update", ("c", "C")), Verdict(half=1)),
        ({"A"}, ("update", ("c", "C")), Verdict(half=1)),
        ({"A"}, ("purge", ("c",)), Verdict()),
        ({"c"}, ("purge", ("c",)), Verdict(lost=1)),
    ],
)
def test_what_is_missing_or_too_much(found: set[str], under_way: Operation | None, expected: Verdict) -> None:
    assert WRITTEN.judge(found, under_way) == expected._replace(acknowledged=5)


def test_verdicts_add_up() -> None:
    assert Verdict(trials=1, lost=2) + Verdict(trials=1, crashes=1) == Verdict(trials=2, lost=2, crashes=1)
    assert Verdict(said=3).bad == 0
    assert Verdict(lost=1, half=1, wrong=1, hangs=1, crashes=1).bad == 5
