"""Means, variances and histograms are as near to the truth as is said, cost what one release costs,
and each way to get either wrong is noticed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost, GaussianCost
from ptklib.validators.noises import Gaussian, Laplace
from ptklib.validators.published.sums import PublishedMeanTest
from ptklib.validators.sums.cells import HistogramTest
from ptklib.validators.sums.means import UNIT, MeanTest, ToldMoments
from ptklib.validators.sums.told import divergence_bounds
from ptklib.validators.sums.variances import VarianceTest

ETA = 0.2
RUNS = 400
TERMS: dict[str, Any] = {"eta": str(ETA), "epsilon": "0.5", "tolerance": "0.02"}
BOUNDS: dict[str, Any] = {"lower": 10, "upper": 30}


def too_often(misses: int) -> bool:
    """More often than eta, beyond luck."""
    return misses > RUNS * ETA + 5 * math.sqrt(RUNS * ETA * (1 - ETA))


@pytest.mark.parametrize("noise", [Laplace(epsilon="0.5"), Gaussian(mu="0.5")], ids=str)
def test_the_price_covers_whatever_a_record_adds(noise: Any) -> None:
    """Accounting: three whole numbers that make one unit, whatever the value is."""
    test = MeanTest(tolerance="0.1", eta="0.1", noise=noise, **BOUNDS)
    before = test.sums([12.0])
    for value in [10.0, 30.0, 20.0, 17.3, -5.0, 1e9, math.nan, math.inf, -math.inf, 29.999]:
        change = test.sums([12.0, value]) - before
        assert change.min() >= 0
        assert change.sum() == UNIT
    wanted = (
        DiscreteLaplaceCost(scale=2 * UNIT, sensitivity=UNIT)
        if isinstance(noise, Laplace)
        else GaussianCost(sigma=2 * UNIT, sensitivity=UNIT)
    )
    assert test.cost == wanted
    assert VarianceTest(tolerance="0.1", eta="0.1", noise=noise, **BOUNDS).cost == wanted
    cells = HistogramTest(tolerance="0.1", eta="0.1", noise=noise, cells=9)
    for cell in (-1, 0, 8, 9, 10**6):
        change = cells.sums([3, cell]) - cells.sums([3])
        assert change.sum() == 1
        assert change.min() == 0
    assert cells.release.sensitivity == 1


LAWS = {
    "two ends": lambda rng, count: rng.choice([10.0, 30.0], count),
    "near the middle": lambda rng, count: rng.normal(20, 1, count),
    "skewed": lambda rng, count: 10 + np.minimum(20, rng.exponential(1.5, count)),
}


@pytest.mark.parametrize("records", [60, 3000])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [Laplace(epsilon="0.5"), Gaussian(mu="0.4")], ids=str)
def test_errors_are_as_small_as_is_said(noise: Any, law: str, records: int) -> None:
    rng = np.random.default_rng(1)
    world = LAWS[law](rng, 400_000)
    mean_test = MeanTest(tolerance="0.02", eta=str(ETA), noise=noise, **BOUNDS)
    spread_test = VarianceTest(tolerance="0.02", eta=str(ETA), noise=noise, **BOUNDS)
    misses = [0, 0]
    for _ in range(RUNS):
        told = mean_test.tell(LAWS[law](rng, records))
        verdicts = mean_test.judged(told), spread_test.judged(told)
        for place, true in enumerate((world.mean(), world.var())):
            misses[place] += abs(verdicts[place].estimates[0] - true) > verdicts[place].error
    assert not too_often(misses[0])
    assert not too_often(misses[1])


def test_noise_that_is_not_counted_is_noticed() -> None:
    """The control: an error that is said as if there were a twentieth of the noise."""
    rng = np.random.default_rng(2)
    noisy = MeanTest(tolerance="0.02", eta=str(ETA), epsilon="0.02", **BOUNDS)
    hasty = MeanTest(tolerance="0.02", eta=str(ETA), epsilon="0.4", **BOUNDS)
    misses = [0, 0]
    for _ in range(RUNS):
        told = noisy.tell(rng.normal(20, 0.5, 2000))
        for place, test in enumerate((noisy, hasty)):
            verdict = test.judged(told)
            misses[place] += abs(verdict.estimates[0] - 20) > verdict.error
    assert not too_often(misses[0])
    assert too_often(misses[1])


def test_the_noise_is_part_of_the_error() -> None:
    """Of values that are all alike there is no other: at epsilon 0.02, some 200 records' worth."""
    test = MeanTest(tolerance="0.02", eta=str(ETA), epsilon="0.02", **BOUNDS)
    low, middle, high = (float(part) / UNIT for part in test.sums(np.full(20_000, 20.0)))
    assert test.error(ToldMoments(low, middle, high)) * 20_000 > 150


def test_shares_of_cells_are_as_near_as_is_said() -> None:
    rng = np.random.default_rng(3)
    shares = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    hasty = HistogramTest(tolerance="0.02", eta=str(ETA), epsilon=20, cells=6)
    for records, epsilon, controlled in ((1000, "0.02", True), (4000, "0.5", False)):
        test = HistogramTest(tolerance="0.02", eta=str(ETA), epsilon=epsilon, cells=6)
        misses = [0, 0]
        for _ in range(RUNS):
            told = test.release.release(rng.multinomial(records, shares)).values
            for place, judge in enumerate((test, hasty)):
                verdict = judge.judged(tuple(int(count) for count in told))
                off = np.abs(np.array(verdict.estimates) - shares).max()
                misses[place] += off > verdict.error
        assert not too_often(misses[0])
        # The control, where the noise decides.
        assert too_often(misses[1]) or not controlled


@pytest.mark.parametrize("spread", [0.2, 2.0, 10.0])
def test_so_many_records_are_enough_and_a_third_is_not(spread: float) -> None:
    rng = np.random.default_rng(4)
    test = MeanTest(tolerance="0.4", eta="0.05", epsilon="0.5", **BOUNDS)
    needed = test.needed(repr(spread))
    assert needed is not None

    def drawn(count: int) -> NDArray[np.float64]:
        return 20 + spread * rng.choice([-1.0, 1.0], count)

    shares = [
        np.mean([test.verdict(drawn(count)).outcome == "ACCEPT" for _ in range(100)])
        for count in (needed, needed // 3)
    ]
    assert shares[0] > 0.7
    assert shares[1] < 0.5


def test_variances_and_histograms_say_what_they_need() -> None:
    rng = np.random.default_rng(5)
    spread = VarianceTest(tolerance="0.5", eta="0.05", epsilon=1, **BOUNDS)
    needed = spread.needed(1)
    assert needed is not None
    accepted = [spread.verdict(rng.normal(20, 1, needed)).outcome == "ACCEPT" for _ in range(60)]
    assert np.mean(accepted) > 0.7
    cells = HistogramTest(tolerance="0.02", eta="0.05", epsilon=1, cells=24)
    needed = cells.needed("0.05")
    assert needed is not None
    accepted = [cells.verdict(rng.integers(0, 24, needed)).outcome == "ACCEPT" for _ in range(60)]
    assert np.mean(accepted) > 0.7


@pytest.mark.parametrize("epsilon", ["0.05", "1", "8"])
def test_they_need_fewer_than_the_published_test(epsilon: str) -> None:
    for spread, factor in ((0.5, 1.0), (0.05, 2.0)):
        terms: dict[str, Any] = {"tolerance": "0.01", "eta": "0.05", "epsilon": epsilon}
        needed = MeanTest(lower=0, upper=1, **terms).needed(repr(spread))
        assert needed is not None
        published = PublishedMeanTest(lower=0, upper=1, **terms)
        assert published.error(round(factor * needed)) > 0.01


def test_nothing_told_is_nothing_known() -> None:
    test = MeanTest(**TERMS, **BOUNDS)
    verdict = test.verdict([])
    assert verdict.outcome == "RETRY"
    assert verdict.as_json()["error"] is None
    assert 10 <= verdict.estimates[0] <= 30
    assert HistogramTest(**TERMS, cells=3).judged((-5, 0, 1)).outcome == "RETRY"
    assert VarianceTest(**TERMS, **BOUNDS).verdict([]).outcome == "RETRY"


def test_divergences_are_inverted() -> None:
    low, high = divergence_bounds(np.array([0.0, 0.2, 1.0]), 0.01)
    assert low[0] == pytest.approx(0, abs=1e-12)
    assert high[0] == pytest.approx(1 - math.exp(-0.01), abs=1e-9)
    assert low[2] == pytest.approx(math.exp(-0.01), abs=1e-9)
    for p in (low[1], high[1]):
        kl = 0.2 * math.log(0.2 / p) + 0.8 * math.log(0.8 / (1 - p))
        assert kl == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: MeanTest(**TERMS | {"tolerance": 0}, **BOUNDS), "TOLERANCE_INVALID"),
        (lambda: MeanTest(**TERMS, lower=3, upper=3), "BOUNDS_INVALID"),
        (lambda: MeanTest(**TERMS | {"eta": 0}, **BOUNDS), "ETA_INVALID"),
        (lambda: HistogramTest(**TERMS, cells=1), "CELLS_INVALID"),
    ],
)
def test_what_makes_no_test_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.reason == reason
