"""Adaptive pipelines: train, validate, and try again with twice the records until a test ACCEPTs.

A pipeline's first states are *traps*: their true loss is just above the target, so each ACCEPT of
one is a violation. How many there are is drawn for each pipeline; what comes after them is half as
bad as the target and will be accepted. Whether there is a next attempt, with how much data and
which part of eta, follows from what the test said: that is what makes it adaptive.

A *rule* judges many pipelines at once, each with the attempt's own eta: the validators as they are,
and the negative controls, which leave out what the guarantee rests on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_law

from benchmarks._validators.bulk import (
    accuracy_told,
    by_accuracy,
    by_bet,
    by_listing,
    by_pilot,
    by_published,
)
from benchmarks._validators.populations import Population
from ptklib.validators.accuracy import AccuracyTest
from ptklib.validators.attempts import Attempts
from ptklib.validators.betting import UNIT
from ptklib.validators.piloted import PilotedTest
from ptklib.validators.power import planned_test
from ptklib.validators.published.accuracy import PublishedAccuracyTest
from ptklib.validators.published.loss import UNIT as LISTING_UNIT
from ptklib.validators.published.loss import PublishedLossTest

__all__ = ["Outcome", "Setting", "bounds", "rules", "simulated"]

Verdicts = NDArray[np.bool_]
Rule = Callable[["Setting", Population, np.random.Generator, int, Fraction, int], Verdicts]

_ATTEMPTS, _TRAPS = 24, 8
_ABOVE, _GOOD = 1.0005, 0.4


@dataclass(frozen=True)
class Setting:
    """What all pipelines of a simulation share."""

    states: Population
    target: float
    epsilon: str
    eta: str
    first_records: int

    @property
    def told_target(self) -> str:
        """As a decimal that is exact."""
        return f"{self.target:.8g}"


@dataclass(frozen=True)
class Outcome:
    """Of so many pipelines: how many were ACCEPTed in the end, and how many of these are
    violations.
    """

    accepted: int
    violations: int

    @property
    def rate(self) -> float:
        """Violations among the ACCEPTed."""
        return self.violations / max(1, self.accepted)


def bounds(outcome: Outcome) -> tuple[float, float]:
    """The least and the most that the rate may be, each with confidence 95% (Clopper, Pearson)."""
    bad, rest = outcome.violations, outcome.accepted - outcome.violations
    low = float(beta_law.ppf(0.05, bad, rest + 1)) if bad else 0.0
    high = float(beta_law.ppf(0.95, bad + 1, rest)) if rest else 1.0
    return low, high


def simulated(setting: Setting, rule: Rule, pipelines: int, *, seed: int, shared: bool) -> Outcome:
    """All pipelines to their end; ``shared`` is whether attempts share eta, as they must."""
    rng = np.random.default_rng(seed)
    traps = rng.integers(1, _TRAPS + 1, pipelines)
    open_, accepted, violations = np.ones(pipelines, dtype=bool), 0, 0
    attempts = Attempts(eta=setting.eta)
    for attempt in range(_ATTEMPTS):
        eta = attempts.next_eta if shared else attempts.eta
        attempts = attempts.begun()
        records = setting.first_records * 2**attempt
        for trapped in (True, False):
            here = np.flatnonzero(open_ & ((traps > attempt) == trapped))
            if not len(here):
                continue
            mean = setting.target * (_ABOVE if trapped else _GOOD)
            states = setting.states.at(mean)
            verdicts = rule(setting, states, rng, records, eta, len(here))
            accepted += int(verdicts.sum())
            violations += int(verdicts.sum()) if trapped else 0
            open_[here[verdicts]] = False
    return Outcome(accepted, violations)


def _pilot(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    test = PilotedTest(
        target=setting.told_target, epsilon=setting.epsilon, eta=eta, records=records
    )
    return by_pilot(test, states, rng, records, runs)


def _bet(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    test = planned_test(
        target=setting.told_target, epsilon=setting.epsilon, eta=eta, records=records
    )
    return by_bet(test, states, rng, records, runs)


def _bet_without_noise(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    """The threshold that evidence without noise would need: ln(1/eta)."""
    test = planned_test(
        target=setting.told_target, epsilon=setting.epsilon, eta=eta, records=records
    )
    counts = states.draw(rng, records, runs)
    told = test.release.release(counts @ test.scores(states.points)).values
    return np.asarray(told >= math.log(1 / eta) * UNIT)


def _listing(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    test = PublishedLossTest(target=setting.told_target, epsilon=setting.epsilon, eta=eta)
    return by_listing(test, states, rng, records, runs)


def _listing_uncorrected(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    """Bernstein's bound of noisy numbers, as if they had no noise."""
    test = PublishedLossTest(target=setting.told_target, epsilon=setting.epsilon, eta=eta)
    counts = states.draw(rng, records, runs)
    totals = test.total.release(counts @ test.units(states.points)).values / LISTING_UNIT
    numbers = test.number.release(np.full(runs, records, dtype=np.int64)).values
    least = np.maximum(numbers, 1)
    means, log = np.maximum(totals, 0.0) / least, math.log(1 / eta)
    upper = means + np.sqrt(2 * means * log / least) + 4 * log / least
    return np.asarray((numbers > 0) & (upper <= setting.target))


def _accuracy(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    test = AccuracyTest(target=1 - Fraction(setting.told_target), epsilon=setting.epsilon, eta=eta)
    return by_accuracy(test, states.mean, rng, records, runs)


def _accuracy_without_noise(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    """A binomial test of noisy numbers, as if they had no noise."""
    from scipy.special import betainc

    test = AccuracyTest(target=1 - Fraction(setting.told_target), epsilon=setting.epsilon, eta=eta)
    told = np.maximum(accuracy_told(test.release, states.mean, rng, records, runs), 0)
    right, wrong = told[:, 0], told[:, 1]
    chance = np.where(right > 0, betainc(np.maximum(right, 1), wrong + 1, 1 - setting.target), 1.0)
    return np.asarray(chance <= float(eta))


def _published_accuracy(
    setting: Setting,
    states: Population,
    rng: np.random.Generator,
    records: int,
    eta: Fraction,
    runs: int,
) -> Verdicts:
    test = PublishedAccuracyTest(
        target=1 - Fraction(setting.told_target), epsilon=setting.epsilon, eta=eta
    )
    return by_published(test, states.mean, rng, records, runs)


rules: dict[str, Rule] = {
    "piloted bet": _pilot,
    "planned bet": _bet,
    "listing 2": _listing,
    "convolution": _accuracy,
    "appendix B.2": _published_accuracy,
    "bet, noise left out of the threshold": _bet_without_noise,
    "listing 2, uncorrected": _listing_uncorrected,
    "convolution, noise left out": _accuracy_without_noise,
}
