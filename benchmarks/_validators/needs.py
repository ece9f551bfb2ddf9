"""How many records a test needs to ACCEPT in nine of ten cases, by trying.

Everything that chooses a test or its parameters is counted: the pilot's records, and the count that
the accuracy test takes from its own release.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks._validators.bulk import by_accuracy, by_listing, by_pilot, by_published
from benchmarks._validators.populations import Population
from ptklib.validators.accuracy import AccuracyTest
from ptklib.validators.piloted import PilotedTest
from ptklib.validators.published.accuracy import PublishedAccuracyTest
from ptklib.validators.published.loss import PublishedLossTest

__all__ = [
    "LIKELY",
    "accepted_by_pilot",
    "accuracy_needs",
    "listing_needs",
    "pilot_needs",
    "published_accuracy_needs",
]

LIKELY = 0.9
_MOST = 10**9
# Of a number of records: how near the search comes.
_NEAR = 1.02
_LOOK = 24


def listing_needs(
    states: Population, target: float, epsilon: str, eta: str, runs: int
) -> int | None:
    """Of listing 2."""
    test = PublishedLossTest(
        target=f"{target:.8g}", epsilon=epsilon, eta=eta, bound=repr(states.bound)
    )

    def accepts(records: int, tries: int) -> float:
        rng = np.random.default_rng(records)
        return float(by_listing(test, states, rng, records, tries).mean())

    return _least(accepts, runs)


def accepted_by_pilot(
    states: Population, target: float, epsilon: str, eta: str, records: int, runs: int
) -> float:
    """How often the piloted bet accepts with so many records."""
    test = PilotedTest(
        target=f"{target:.8g}",
        epsilon=epsilon,
        eta=eta,
        records=records,
        bound=repr(states.bound),
    )
    rng = np.random.default_rng([records, 1])
    return float(by_pilot(test, states, rng, records, runs).mean())


def pilot_needs(states: Population, target: float, epsilon: str, eta: str, runs: int) -> int | None:
    """Of the piloted bet, both parts together."""
    return _least(
        lambda records, tries: accepted_by_pilot(states, target, epsilon, eta, records, tries), runs
    )


def accuracy_needs(rate: float, target: str, epsilon: str, eta: str, runs: int) -> int | None:
    """Of the convolution."""
    test = AccuracyTest(target=target, epsilon=epsilon, eta=eta)
    return _least(
        lambda records, tries: float(
            by_accuracy(test, rate, np.random.default_rng(records), records, tries).mean()
        ),
        runs,
    )


def published_accuracy_needs(
    rate: float, target: str, epsilon: str, eta: str, runs: int
) -> int | None:
    """Of appendix B.2."""
    test = PublishedAccuracyTest(target=target, epsilon=epsilon, eta=eta)
    return _least(
        lambda records, tries: float(
            by_published(test, rate, np.random.default_rng(records), records, tries).mean()
        ),
        runs,
    )


def _least(accepts: Callable[[int, int], float], runs: int) -> int | None:
    def enough(records: int) -> bool:
        # A few tell what is far from enough.
        return accepts(records, _LOOK) > LIKELY / 2 and accepts(records, runs) >= LIKELY

    high = 8
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2
    while high > low * _NEAR and high - low > 1:
        middle = min(max(round((low * high) ** 0.5), low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
