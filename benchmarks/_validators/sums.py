"""Means that are told until their error is small enough, and classes that are rejected though one
of their states keeps the promise.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks._validators.pipelines import Outcome
from benchmarks._validators.populations import Population
from ptklib.validators.attempts import Attempts
from ptklib.validators.betting import UNIT
from ptklib.validators.enough import least_records
from ptklib.validators.published.sums import PublishedMeanTest
from ptklib.validators.rejecting import RejectTest
from ptklib.validators.sums.means import UNIT as MOMENT_UNIT
from ptklib.validators.sums.means import MeanTest, ToldMoments

__all__ = ["adaptive_means", "hasty_means", "mean_ratio", "wrong_rejects"]

_ATTEMPTS = 20


def adaptive_means(
    values: Population, epsilon: str, eta: str, tolerance: str, pipelines: int, seed: int
) -> Outcome:
    """Told again with twice the records until ACCEPTed; a violation is off by more than the
    tolerance.
    """
    rng, attempts = np.random.default_rng(seed), Attempts(eta=eta)
    left, accepted, wrong, records = pipelines, 0, 0, 64
    for _ in range(_ATTEMPTS):
        test = _test(values, epsilon, attempts.next_eta, tolerance)
        attempts = attempts.begun()
        for told in _told(test, values, rng, records, left):
            verdict = test.judged(told)
            if verdict.outcome == "ACCEPT":
                accepted += 1
                wrong += abs(verdict.estimates[0] - values.mean) > test.tolerance
        left, records = pipelines - accepted, 2 * records
        if not left:
            break
    return Outcome(accepted, wrong)


def hasty_means(
    values: Population, epsilon: str, eta: str, tolerance: str, pipelines: int, seed: int
) -> Outcome:
    """The control: ACCEPTed by the sample's error alone, as if what is told had no noise."""
    rng, left, accepted, wrong, records = np.random.default_rng(seed), pipelines, 0, 0, 64
    quantile = float(-ndtri(float(eta) / 2))
    for _ in range(_ATTEMPTS):
        test = _test(values, epsilon, Fraction(eta), tolerance)
        for told in _told(test, values, rng, records, left):
            number = max(1.0, told.records)
            squares, _ = told.around(told.mean)
            error = quantile * math.sqrt(max(0.0, squares)) / number
            if error <= test.tolerance:
                accepted += 1
                wrong += abs(told.mean - values.mean) > test.tolerance
        left, records = pipelines - accepted, 2 * records
        if not left:
            break
    return Outcome(accepted, wrong)


def mean_ratio(spread: float, epsilon: str, eta: str, tolerance: str) -> float:
    """Records that a mean in the middle of its bounds needs, over those of appendix B.3."""
    points = np.array([0.5 - spread, 0.5 + spread])
    values = Population("two values", points, np.array([0.5, 0.5]))
    ours = _test(values, epsilon, Fraction(eta), tolerance).needed(repr(spread))
    theirs = PublishedMeanTest(tolerance=tolerance, epsilon=epsilon, eta=eta, lower=0, upper=1)
    needed = least_records(lambda records: theirs.error(records) <= theirs.tolerance)
    assert ours is not None
    assert needed is not None
    return ours / needed


def wrong_rejects(
    losses: Population, epsilon: str, eta: str, records: int, runs: int, *, counted: bool
) -> Outcome:
    """A class whose best state has the target for its loss; ``counted`` is whether the threshold
    counts the noise, as it must.
    """
    test = RejectTest(target=f"{losses.mean:.8g}", epsilon=epsilon, eta=eta, records=records)
    rng = np.random.default_rng(records)
    sums = losses.draw(rng, records, runs) @ losses.points
    given = np.floor(np.maximum(0, sums - 2**-10) * float(test.theta) * UNIT).astype(np.int64)
    told = test.release.release(given - test.each_units * records).values
    needed = test.threshold if counted else math.log(1 / float(eta)) * UNIT
    return Outcome(runs, int((told >= needed).sum()))


def _test(values: Population, epsilon: str, eta: Fraction, tolerance: str) -> MeanTest:
    return MeanTest(
        tolerance=tolerance, epsilon=epsilon, eta=eta, lower=0, upper=repr(values.bound)
    )


def _told(
    test: MeanTest, values: Population, rng: np.random.Generator, records: int, runs: int
) -> list[ToldMoments]:
    each = np.array([test.sums([point]) for point in values.points])
    told: NDArray[np.int64] = test.release.release(values.draw(rng, records, runs) @ each).values
    return [ToldMoments(*(int(value) / MOMENT_UNIT for value in row)) for row in told]
