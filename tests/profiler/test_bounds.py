"""The tests of a profile keep their error for any number of records, and lower thresholds would
not.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from profiler.measuring import bounds
from profiler.measuring.bounds import UNIT, risk_test
from ptklib.errors import InvalidInput

TARGETS = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(3, 5)]
SCALE = Fraction(10 * UNIT)
PLANNED = 1000


@pytest.mark.parametrize("target", [0, 1, "1.5", -1, "nan"])
def test_a_target_lies_between_0_and_1(target: float | str) -> None:
    with pytest.raises(InvalidInput):
        bounds.target_exact(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("records", [0, 10, 300, 1_000, 10_000])
def test_the_upper_test_rarely_passes_what_it_must_not(target: Fraction, records: int) -> None:
    """Losses of 0 and 1 with the target as mean are the worst; any number of records, even none,
    whatever was planned.
    """
    rng = np.random.default_rng(records)
    runs = 200_000
    test = risk_test(target, SCALE, 1, PLANNED)
    losses = rng.binomial(records, float(target), runs)
    sums = test.centre * records - losses * UNIT + rng.laplace(0, float(SCALE), runs)
    passed = np.mean(sums >= test.threshold)
    assert passed <= bounds.UPPER_FAILURE
    # A third of the threshold would not do where there are few records.
    assert records > 10 or np.mean(sums >= test.threshold / 3) > bounds.UPPER_FAILURE


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("records", [0, 10, 300, 10_000])
def test_the_lower_test_rarely_accuses_a_reachable_target(target: Fraction, records: int) -> None:
    rng = np.random.default_rng(records)
    runs = 400_000
    losses = rng.binomial(records, float(target), runs)
    sums = (
        losses * UNIT - bounds.lower_centre(target) * records + rng.laplace(0, float(SCALE), runs)
    )
    assert np.mean(sums >= bounds.lower_threshold(target, SCALE, 1)) <= bounds.LOWER_FAILURE * 1.3


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 8)])
def test_the_validation_set_lets_a_good_state_pass(target: Fraction, share: Fraction) -> None:
    records = bounds.validation_records(target, SCALE, 10, share)
    test = risk_test(target, SCALE, 10, records)
    rng = np.random.default_rng(1)
    losses = rng.binomial(records, float(target * (1 - share)), 100_000)
    sums = test.centre * records - losses * UNIT + rng.laplace(0, float(SCALE), 100_000)
    assert np.mean(sums >= test.threshold) >= 1 - bounds.UPPER_FAILURE
    assert test.margin < target * share


def test_the_margin_shrinks_with_the_records_and_the_noise() -> None:
    margins = [risk_test(TARGETS[1], SCALE, 3, records).margin for records in (300, 1000, 10_000)]
    assert margins == sorted(margins, reverse=True)
    assert margins[-1] < 0.02
    assert risk_test(TARGETS[1], SCALE / 4, 3, 1000).margin < margins[1]


def test_more_looks_and_larger_units_ask_for_more() -> None:
    target = TARGETS[1]
    margins = [
        risk_test(target, SCALE, looks, PLANNED, units).margin
        for looks, units in ((1, 1), (10, 1), (10, 5))
    ]
    assert margins == sorted(set(margins))
    assert bounds.lower_threshold(target, SCALE, 1) < bounds.lower_threshold(target, SCALE, 10)


def test_a_user_with_many_records_passes_no_more_easily() -> None:
    """All records of a user have the same loss: as few users as records of one each."""
    rng = np.random.default_rng(3)
    units, users, runs = 5, 60, 200_000
    test = risk_test(TARGETS[2], SCALE * units, 1, PLANNED, units)
    losses = rng.binomial(users, float(TARGETS[2]), runs) * units
    noise = rng.laplace(0, float(SCALE) * units, runs)
    sums = test.centre * users * units - losses * UNIT + noise
    assert np.mean(sums >= test.threshold) <= bounds.UPPER_FAILURE


def test_nothing_is_above_a_target_that_no_loss_exceeds() -> None:
    assert bounds.lower_threshold(Fraction(9, 10), SCALE, 3) > UNIT**2
