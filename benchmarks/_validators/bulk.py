"""Many verdicts at once, by the code and the noise of production.

A sample is a row of counts, one for each point of a population. Tests see their raw sums through
the same functions as ever, applied to the points; the noise is that of their own release, one draw
for each run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._validators.populations import Population
from ptklib.validators.accuracy import AccuracyTest
from ptklib.validators.betting import LossTest
from ptklib.validators.pilot import LossPilot
from ptklib.validators.piloted import PilotedTest
from ptklib.validators.published.accuracy import PublishedAccuracyTest
from ptklib.validators.published.loss import PublishedLossTest, ToldSums

__all__ = ["accuracy_told", "by_accuracy", "by_bet", "by_listing", "by_pilot", "by_published"]

Ints = NDArray[np.int64]
Verdicts = NDArray[np.bool_]


def by_listing(
    test: PublishedLossTest, states: Population, rng: np.random.Generator, records: int, runs: int
) -> Verdicts:
    """Listing 2."""
    counts = states.draw(rng, records, runs)
    totals = test.total.release(counts @ test.units(states.points)).values
    numbers = test.number.release(np.full(runs, records, dtype=np.int64)).values
    return np.array(
        [
            test.bounded(ToldSums(int(number), int(total)))
            for number, total in zip(numbers, totals, strict=True)
        ]
    )


def by_bet(
    test: LossTest, states: Population, rng: np.random.Generator, records: int, runs: int
) -> Verdicts:
    """A bet with a stake that is fixed."""
    counts = states.draw(rng, records, runs)
    told = test.release.release(counts @ test.scores(states.points)).values
    return np.asarray(told >= test.threshold)


def by_pilot(
    test: PilotedTest, states: Population, rng: np.random.Generator, records: int, runs: int
) -> Verdicts:
    """The bet whose stake is found by a pilot; the records of both parts are counted."""
    first = max(1, round(records * float(test.share)))
    looks = pilot_told(test.pilot, states, rng, first, runs)
    counts = states.draw(rng, max(1, records - first), runs)
    accepted = []
    for look, count in zip(looks, counts, strict=True):
        planned = test.planned(tuple(int(value) for value in look))
        told = planned.release.release([int(count @ planned.scores(states.points))])
        accepted.append(int(told.values[0]) >= planned.threshold)
    return np.array(accepted)


def pilot_told(
    pilot: LossPilot, states: Population, rng: np.random.Generator, records: int, runs: int
) -> Ints:
    """What pilots of so many runs told."""
    each = np.array([pilot.sums([point]) for point in states.points])
    return np.asarray(pilot.release.release(states.draw(rng, records, runs) @ each).values)


def accuracy_told(
    release: Any, rate: float, rng: np.random.Generator, records: int, runs: int
) -> Ints:
    """Noisy numbers of right and wrong answers, where so many are wrong."""
    wrong = rng.binomial(records, rate, runs)
    return np.asarray(release.release(np.stack([records - wrong, wrong], axis=1)).values)


def by_accuracy(
    test: AccuracyTest, rate: float, rng: np.random.Generator, records: int, runs: int
) -> Verdicts:
    """The convolution."""
    told = accuracy_told(test.release, rate, rng, records, runs)
    return np.array(
        [test.judged(int(right), int(wrong)).outcome == "ACCEPT" for right, wrong in told]
    )


def by_published(
    test: PublishedAccuracyTest, rate: float, rng: np.random.Generator, records: int, runs: int
) -> Verdicts:
    """Appendix B.2."""
    right = records - rng.binomial(records, rate, runs)
    totals = test.release.release(right).values
    numbers = test.release.release(np.full(runs, records, dtype=np.int64)).values
    return np.array(
        [
            test.bounded(int(total), int(number))
            for total, number in zip(totals, numbers, strict=True)
        ]
    )
