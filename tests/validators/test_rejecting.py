"""A class is rejected only where none of its states keeps the promise, and the least sum of losses
moves by no more than it is priced for.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptklib.validators.betting import UNIT
from ptklib.validators.noises import Gaussian
from ptklib.validators.published.loss import PublishedRejectTest
from ptklib.validators.rejecting import RejectTest
from tests.validators.test_betting import MEAN, batch

ETA = 0.2
RUNS = 20_000


def made(**options: Any) -> RejectTest:
    plain: dict[str, Any] = {"target": "0.1", "eta": str(ETA), "records": 2000}
    plain |= {} if "noise" in options else {"epsilon": 1}
    return RejectTest(**plain | options)


def too_often(rejected: int) -> bool:
    """More often than eta, beyond luck."""
    return rejected > RUNS * ETA + 5 * math.sqrt(RUNS * ETA * (1 - ETA))


@pytest.mark.parametrize("records_per_unit", [1, 3])
@pytest.mark.parametrize("records", [5, 500, 50_000])
def test_the_price_covers_whatever_a_unit_adds(records: int, records_per_unit: int) -> None:
    """Accounting: the least sum grows by 0 to the bound for each record of the unit."""
    test = made(records=records, records_per_unit=records_per_unit)
    rng = np.random.default_rng(1)
    before = rng.random(200)
    for added in (0.0, 0.3, 1.0):
        # The old losses may shrink no further than the sum stays where it was.
        after = np.append(before, np.full(records_per_unit, added))
        assert abs(test.evidence(after) - test.evidence(before)) <= test.release.sensitivity
    worst = [
        abs(
            test.evidence(np.append(before, np.full(records_per_unit, end))) - test.evidence(before)
        )
        for end in (0.0, 1.0)
    ]
    assert max(worst) > 0.99 * test.release.sensitivity - 2**16


def test_the_least_sum_of_a_closed_form_moves_as_is_said() -> None:
    """With the exact minimiser of a kind that has one: a mean."""
    rng = np.random.default_rng(2)
    test = made()
    for _ in range(20):
        values = rng.random(30).tolist()
        extra = float(rng.choice([0.0, 1.0, rng.random()]))
        told = []
        for kept in (values, [*values, extra]):
            state = MEAN.exact([batch(kept)])
            assert state is not None
            told.append(test.evidence(MEAN.loss(state, [batch(kept)])))
        assert abs(told[1] - told[0]) <= test.release.sensitivity


@pytest.mark.parametrize(
    ("records", "options"),
    [
        (0, {"epsilon": "0.05"}),
        (20, {"epsilon": "0.05", "records": 20}),
        (2000, {"epsilon": 1}),
        (20, {"noise": Gaussian(mu="0.05"), "records": 20}),
    ],
)
def test_a_class_that_keeps_the_promise_is_hardly_ever_rejected(
    records: int, options: dict[str, Any]
) -> None:
    test = made(**options)
    sums = np.random.default_rng(3).binomial(records, 0.1, RUNS)
    unit, nothing = (test.evidence([loss]) for loss in (1.0, 0.0))
    told = test.release.release(nothing * (records - sums) + unit * sums).values
    assert not too_often(int((told >= test.threshold).sum()))
    # The control, where the noise decides: a threshold without it.
    noisy = records <= 20
    assert too_often(int((told >= math.log(1 / ETA) * UNIT).sum())) or not noisy


def test_a_hopeless_class_is_rejected() -> None:
    rng = np.random.default_rng(4)
    test, published = made(), PublishedRejectTest(target="0.1", epsilon=1, eta=str(ETA))
    hopeless = [(rng.random(2000) < 0.16) * 1.0 for _ in range(50)]
    assert sum(test.verdict(losses).outcome == "REJECT" for losses in hopeless) > 45
    clear = [(rng.random(4000) < 0.25) * 1.0 for _ in range(20)]
    assert {published.verdict(losses) for losses in clear} == {"REJECT"}
    assert published.verdict([]) == "RETRY"
    assert published.verdict(np.full(4000, 0.05)) == "RETRY"
    assert published.cost.basic() == (Fraction(1), Fraction(0))
