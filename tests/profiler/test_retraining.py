"""What is planned after so many states have passed: few states ask for more samples."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.measuring.retraining import (
    LEAST_STATES,
    MISSED,
    MOST_STATES,
    VIOLATIONS,
    lift,
    lifted,
    states_for,
)


def test_few_states_are_planned_with_more_samples_and_many_with_as_many() -> None:
    lifts = [lift(states) for states in range(LEAST_STATES, MOST_STATES + 1)]
    assert lifts == sorted(lifts, reverse=True)
    assert lifts[0] == 4.5
    assert lifts[-1] == 1.0
    assert lifted(100, MOST_STATES) == 100
    assert lifted(65, LEAST_STATES) == 293, "rounded up"


@pytest.mark.parametrize("states", [2, 4, 8, 16])
@pytest.mark.parametrize("upwards", [True, False])
def test_the_next_training_misses_as_rarely_as_is_said(states: int, upwards: bool) -> None:
    """Simulated searches, from below one size after the other and by halving, and one that plans with
    what passed.
    """
    rng = np.random.default_rng([states, upwards])
    runs, factor = 20_000, lift(states)
    wrong = {factor: 0, factor / 3: 0}
    for _ in range(runs):
        sizes = 2.0 ** (np.arange(-6, 6) + rng.random())
        chances = MISSED**sizes
        passed = rng.random(len(sizes)) < (1 - chances) ** states
        found = sizes[np.argmax(passed)] if upwards else _halved(sizes, passed)
        for one in wrong:
            wrong[one] += rng.random() < MISSED ** (found * one)
    assert wrong[factor] <= VIOLATIONS * runs
    assert wrong[factor / 3] > VIOLATIONS * runs, "the test can fail"


def _halved(sizes: np.ndarray, passed: np.ndarray) -> float:
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passed[middle] else (middle + 1, high)
    return float(sizes[min(high, len(sizes) - 1)])


@pytest.mark.parametrize("room", [1919, 1920, 2_250, 10_000, 10**6])
def test_states_fill_the_room_and_no_more(room: int) -> None:
    sizes = (64, 128, 256, 512)
    states = states_for(sizes, room)
    if room < 2 * sum(sizes):
        assert states is None
        return
    assert states is not None
    assert sum(size * one for size, one in zip(sizes, states, strict=True)) <= room
    assert all(LEAST_STATES <= one <= MOST_STATES for one in states)
    assert list(states) == sorted(states, reverse=True), "small sizes are cheap"
    assert room < 10**6 or states == (MOST_STATES,) * 4
