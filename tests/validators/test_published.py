"""The published tests, corrected: priced for both of their draws, scaled with the bound in every
term, and never sure of records that may not be there.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptklib.privacy.costs import DiscreteLaplaceCost
from ptklib.validators.attempts import Attempts
from ptklib.validators.published.accuracy import PublishedAccuracyTest
from ptklib.validators.published.loss import UNIT, PublishedLossTest, ToldSums
from ptklib.validators.published.sums import PublishedMeanTest

ETA = 0.2
RUNS = 4_000


def loss(**options: Any) -> PublishedLossTest:
    return PublishedLossTest(**{"target": "0.1", "epsilon": "0.1", "eta": str(ETA)} | options)


def too_often(accepted: int, eta: float) -> bool:
    return accepted > RUNS * eta + 5 * math.sqrt(RUNS * eta * (1 - eta))


def test_both_draws_are_paid_for() -> None:
    parts = loss(epsilon=1).cost.parts_of_sum()
    assert set(parts) == {
        DiscreteLaplaceCost(scale=2, sensitivity=1),
        DiscreteLaplaceCost(scale=2 * UNIT, sensitivity=UNIT),
    }
    assert loss(epsilon=1).cost.basic() == (Fraction(1), Fraction(0))
    assert PublishedAccuracyTest(target="0.7", epsilon=1, eta="0.1").cost.basic() == (
        Fraction(1),
        Fraction(0),
    )
    mean = PublishedMeanTest(tolerance="0.1", epsilon=1, eta="0.1", lower=0, upper=1)
    assert mean.cost.basic() == (Fraction(1), Fraction(0))


def test_every_term_scales_with_the_bound() -> None:
    told = ToldSums(5000, 200 * UNIT)
    edges = [
        next(
            target
            for target in np.linspace(0.05, 0.07, 401)
            if loss(target=f"{target * bound:.7f}", bound=bound).bounded(told)
        )
        for bound in (1, 7, 100)
    ]
    assert max(edges) - min(edges) < 2e-4


def test_a_sum_that_may_be_larger_is_taken_for_larger() -> None:
    """Nothing but zeros was told, of 400 records: the noise may have hidden forty losses of 1."""
    assert not loss().bounded(ToldSums(400, 0))
    assert loss().bounded(ToldSums(4000, 0))


def test_losses_are_clipped_one_by_one() -> None:
    test = loss(bound=2)
    assert test.units([9.0, -1.0, np.nan, 1.0]).tolist() == [UNIT, 0, UNIT, UNIT // 2]


@pytest.mark.parametrize("records", [-500, 0, 12, 40])
def test_records_that_may_not_be_there_are_no_divisor(records: int) -> None:
    assert not loss().bounded(ToldSums(records, -(10**9)))
    assert not PublishedAccuracyTest(target="0.7", epsilon="0.1", eta="0.1").bounded(10, records)
    assert (
        PublishedMeanTest(tolerance="0.1", epsilon="0.1", eta="0.1", lower=0, upper=1).error(
            records
        )
        > 0.1
    )


def test_a_broken_promise_is_hardly_ever_accepted_and_without_corrections_it_is() -> None:
    test, rng = loss(epsilon="0.03", eta="0.05"), np.random.default_rng(1)
    sums = rng.binomial(60, 0.1, RUNS)
    totals = test.total.release(sums * UNIT).values
    numbers = test.number.release(np.full(RUNS, 60)).values
    told = [ToldSums(int(n), int(t)) for n, t in zip(numbers, totals, strict=True)]
    assert not too_often(sum(test.bounded(each) for each in told), 0.05)
    log = math.log(20)
    least = np.maximum(numbers, 1)
    means = np.maximum(totals / UNIT, 0) / least
    upper = means + np.sqrt(2 * means * log / least) + 4 * log / least
    assert too_often(int(((numbers > 0) & (upper <= 0.1)).sum()), 0.05)


def test_attempts_spend_all_of_eta_and_no_more() -> None:
    attempts = Attempts(eta="0.05")
    spent = 0.0
    for number in range(1, 40):
        eta = attempts.next_eta
        spent += float(eta)
        attempts = attempts.begun()
        assert attempts.made == number
        assert float(attempts.spent) == pytest.approx(spent)
        assert attempts.spent < attempts.eta
    assert Attempts.from_json(attempts.as_json()) == attempts
    with pytest.raises(Exception, match="attempt must be"):
        Attempts(eta="0.05", made=-1)
