"""The tests of a profile keep their error for any number of records, and lower thresholds would
not.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from profiler.measuring import bounds
from profiler.measuring.bounds import UNIT
from ptklib.errors import InvalidInput

TARGETS = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)]
SCALE = Fraction(10 * UNIT)


@pytest.mark.parametrize("target", [0, 1, "1.5", -1, "nan"])
def test_a_target_lies_between_0_and_1(target: float | str) -> None:
    with pytest.raises(InvalidInput):
        bounds.target_exact(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("records", [0, 10, 300, 10_000])
def test_the_upper_test_rarely_passes_what_it_must_not(target: Fraction, records: int) -> None:
    """Losses of 0 and 1 with mean 2 target are the worst; any number of records, even none."""
    rng = np.random.default_rng(records)
    runs = 200_000
    losses = rng.binomial(records, float(2 * target), runs)
    sums = (
        bounds.upper_centre(target) * records - losses * UNIT + rng.laplace(0, float(SCALE), runs)
    )
    passed = np.mean(sums >= bounds.upper_threshold(target, SCALE, 1))
    assert passed <= bounds.UPPER_FAILURE
    # A third of the threshold would not do where there are few records.
    assert (
        records > 10
        or np.mean(sums >= bounds.upper_threshold(target, SCALE, 1) / 3) > bounds.UPPER_FAILURE
    )


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
def test_the_validation_set_lets_a_good_state_pass(target: Fraction) -> None:
    records = bounds.validation_records(target, SCALE, 10, Fraction(1, 10))
    assert records >= bounds.figure_records(target, Fraction(1, 10), 10)
    rng = np.random.default_rng(1)
    losses = rng.binomial(records, float(target) * 1.5, 100_000)
    sums = (
        bounds.upper_centre(target) * records
        - losses * UNIT
        + rng.laplace(0, float(SCALE), 100_000)
    )
    assert np.mean(sums >= bounds.upper_threshold(target, SCALE, 10)) >= 1 - bounds.UPPER_FAILURE


def test_more_looks_and_larger_units_ask_for_more() -> None:
    target = TARGETS[1]
    once = bounds.upper_threshold(target, SCALE, 1)
    assert (
        once
        < bounds.upper_threshold(target, SCALE, 10)
        < bounds.upper_threshold(target, SCALE, 10, 5)
    )
    assert bounds.lower_threshold(target, SCALE, 1) < bounds.lower_threshold(target, SCALE, 10)


def test_the_records_of_the_figure() -> None:
    assert (
        bounds.figure_records(Fraction(1, 10), Fraction(1, 10), 10) == 2764
    )  # 2 (100 + 100) ln 1000, rounded up


def test_a_promise_of_one_needs_no_proof() -> None:
    assert bounds.upper_threshold(Fraction(1, 2), SCALE, 3) == 0
    assert bounds.lower_threshold(Fraction(9, 10), SCALE, 3) > UNIT**2
