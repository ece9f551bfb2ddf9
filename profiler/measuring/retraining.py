"""What a profile certifies: not one state, but *training* at (epsilon, n). How many states are tried
for it, and how many more samples are planned where they were few.

*The promise.* A state that is trained at a planned (epsilon, n) has a risk of at most the target;
of all published promises at most one in 20 fails, over the luck of the profile and of the training
that follows.

*What is measured.* At a sample size n, k states are trained on records of their own, and one noisy
number shows that the risk of the worst of them is at most the target (`bounds.risk_test`; with
several looks it errs in at most 5% of levels). Whatever the distribution of the risk is, training
misses the target with some probability q, all of k states pass with ``(1-q)^k``, and both "passed"
and "the next training misses" happen with ``q (1-q)^k <= 1/(e k)``: 2.3% for 16 states, but 15% for 2.

*What is planned.* Sizes are searched, which gives luck more than one chance; and few states are all
that a small slice can train at its largest sizes. So n is multiplied by the `lift` of k: the least
factor at which the search, whatever the size it begins with, leads to at most `VIOLATIONS`, where
the probability to miss falls with n as ``0.05^(n/n*)`` (as in `profiler.band`): 1 from 10 states on,
4.25 for two. That the probability falls at least so fast is an assumption; what is published is
looked at once more where the budget allows.

Pure arithmetic on public numbers: no data, no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ptklib.privacy.bisection import last_true

__all__ = ["LEAST_STATES", "MISSED", "MOST_STATES", "VIOLATIONS", "lift", "lifted", "states_for"]

# States that are trained at one size.
LEAST_STATES, MOST_STATES = 2, 16
# Of the trainings with n* samples.
MISSED = 0.05
# Of the published promises, over the luck of the profile and of the training.
VIOLATIONS = 0.05
_STEPS = 4
# Sizes double from far below n*, in so many phases.
_PHASES, _FAR, _DOUBLINGS = 8, 2.0**-8, 16


@lru_cache(maxsize=64)
def lift(states: int) -> float:
    """By how much more samples are planned than were tested with so many states."""
    step = _STEPS
    while _violations(states, step / _STEPS) > VIOLATIONS:
        step += 1
    return step / _STEPS


def lifted(size: int, states: int) -> int:
    """Samples to plan where so many states of that size have passed."""
    return -int(-size * lift(states) // 1)


def states_for(sizes: Sequence[int], room: int, most: int = MOST_STATES) -> tuple[int, ...] | None:
    """How many states to train at each of rising sizes on so many records in all: as many of the
    small sizes as is worth it, and at least two of the largest. None without the room.
    """
    least = min(LEAST_STATES, most)

    def shares(width: int) -> tuple[int, ...]:
        return tuple(max(least, min(most, width // size)) for size in sizes)

    def needed(width: int) -> int:
        return sum(size * states for size, states in zip(sizes, shares(width), strict=True))

    if needed(0) > room:
        return None
    widest = most * max(sizes, default=1)
    if needed(widest) <= room:
        return shares(widest)
    return shares(last_true(lambda width: needed(width) <= room, 0, widest))


def _violations(states: int, factor: float) -> float:
    """How often the size that passes first, times the factor, is too small for the next training, at
    the worst phase of the doublings.
    """
    return max(_search(states, factor, _FAR * 2 ** (k / _PHASES)) for k in range(_PHASES))


def _search(states: int, factor: float, first: float) -> float:
    going, wrong, size = 1.0, 0.0, first
    for _ in range(_DOUBLINGS):
        passes = (1 - MISSED**size) ** states
        wrong += going * passes * MISSED ** (size * factor)
        going, size = going * (1 - passes), size * 2
    return wrong
