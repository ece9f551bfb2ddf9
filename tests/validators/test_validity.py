"""A state that does not keep its promise is accepted with probability at most eta, and each way to
get that wrong is noticed.

Verdicts are simulated in bulk with the noise of production. A bound of 3e-7 of one-sided luck is
allowed for, and the negative controls break the same bound by far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.validators.betting import UNIT, LossTest, largest_stake

ETA = 0.2
RUNS = 20_000


@dataclass(frozen=True)
class Null:
    """Losses whose mean is the target exactly: 0 or 1, ``records`` of them in every run."""

    target: float
    records: int
    epsilon: str
    share: Fraction

    @property
    def test(self) -> LossTest:
        stake = largest_stake(Fraction(str(self.target)), Fraction(1)) * self.share
        return LossTest(target=str(self.target), epsilon=self.epsilon, eta=str(ETA), stake=stake)

    def evidence(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Of many runs, without noise."""
        bad = rng.binomial(self.records, self.target, RUNS)
        good, worst = (int(one) for one in self.test.scores([0.0, 1.0]))
        return np.asarray(good * (self.records - bad) + worst * bad)

    def noise(self) -> NDArray[np.int64]:
        return discrete_laplace(RUNS, self.test.reach / self.test.epsilon)


# An empty slice, a tiny one and small epsilons lie where the noise decides; the last where the data
# does.
NULLS = [
    Null(0.1, 0, "0.05", Fraction(1)),
    Null(0.1, 3, "0.05", Fraction(1)),
    Null(0.3, 20, "0.2", Fraction(1, 2)),
    Null(0.2, 2000, "1", Fraction(1, 40)),
    Null(0.5, 400, "4", Fraction(1, 20)),
]


def too_often(accepted: NDArray[np.bool_]) -> bool:
    """More often than eta, beyond luck."""
    allowed = RUNS * ETA + 5 * math.sqrt(RUNS * ETA * (1 - ETA))
    return int(np.count_nonzero(accepted)) > allowed


@pytest.mark.parametrize("null", NULLS, ids=str)
def test_a_broken_promise_is_accepted_no_more_often_than_stated(null: Null) -> None:
    told = null.evidence(np.random.default_rng(1)) + null.noise()
    assert not too_often(told >= null.test.threshold)


@pytest.mark.parametrize("null", NULLS[:3], ids=str)
def test_a_threshold_without_the_noise_is_noticed(null: Null) -> None:
    """The control: ln(1/eta) is enough for evidence that has no noise on it."""
    told = null.evidence(np.random.default_rng(2)) + null.noise()
    assert too_often(told >= math.log(1 / ETA) * UNIT)


@pytest.mark.parametrize("null", NULLS[:2], ids=str)
def test_a_threshold_for_three_quarters_of_the_noise_is_noticed(null: Null) -> None:
    less = LossTest(
        target=null.test.target,
        epsilon=null.test.epsilon * Fraction(4, 3),
        eta=null.test.eta,
        stake=null.test.stake,
    )
    told = null.evidence(np.random.default_rng(3)) + null.noise()
    assert too_often(told >= less.threshold)


def test_records_of_one_user_count_as_one() -> None:
    """Users whose records all agree: dividing by their number keeps the promise; not to divide
    would break it.
    """
    each, target = 8, 0.3
    rng = np.random.default_rng(4)
    stake = largest_stake(Fraction("0.3"), Fraction(1)) / 4
    tests = [
        LossTest(target="0.3", epsilon=8, eta=str(ETA), stake=stake, records_per_unit=many)
        for many in (each, 1)
    ]
    bad = rng.binomial(6, target, RUNS)
    found = []
    for test in tests:
        good, worst = (int(one) for one in test.scores([0.0, 1.0]))
        noise = discrete_laplace(RUNS, test.reach / test.epsilon)
        found.append(each * (good * (6 - bad) + worst * bad) + noise >= test.threshold)
    assert not too_often(found[0])
    assert too_often(found[1])


def test_a_single_verdict_is_the_same_as_many() -> None:
    """What is simulated above in bulk is what `LossTest.verdict` does."""
    null = NULLS[0]
    runs = 2000
    alone = sum(null.test.verdict([]).outcome == "ACCEPT" for _ in range(runs)) / runs
    many = np.mean(null.noise() >= null.test.threshold)
    assert alone == pytest.approx(many, abs=0.06)
    assert alone > ETA / 4  # an empty slice at a small epsilon is where the bound is near
