"""An interval holds the mean loss as often as it says, costs what one release costs, and each way to get
either wrong is noticed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost
from ptklib.ptks.statistics import Statistics
from ptklib.validators.interval import STEP, UNIT, LossInterval, LossRange, ToldLosses
from ptklib.validators.loss import measure_loss
from tests.validators.test_betting import MEAN, batch

ETA = Fraction(1, 5)
RUNS = 400


def made(**options: Any) -> LossInterval:
    plain: dict[str, Any] = {"epsilon": "0.25", "eta": ETA, "records": 1000}
    return LossInterval(**plain | options)


@pytest.mark.parametrize("records_per_unit", [1, 4])
def test_the_price_covers_whatever_a_unit_adds(records_per_unit: int) -> None:
    """Accounting: the noise is that of one release of the largest change that a unit can make."""
    interval = made(records_per_unit=records_per_unit)
    losses = [0.0, 1.0, 0.3, np.nan, 7.0, -1.0, np.inf, 1 / 3]
    for loss in losses:
        change = interval.sums([0.5, loss]) - interval.sums([0.5])
        assert change.min() >= 0
        assert change.sum() == UNIT
    most = records_per_unit * UNIT
    assert interval.release.sensitivity == most
    assert interval.cost == DiscreteLaplaceCost(scale=most * 4, sensitivity=most)
    assert interval.cost.basic() == (Fraction(1, 4), Fraction(0))


def test_losses_are_clipped_one_by_one_and_what_is_none_counts_as_the_worst() -> None:
    interval = made()
    assert interval.sums([9.0, -9.0, 0.25]).tolist() == interval.sums([1.0, 0.0, 0.25]).tolist()
    assert interval.sums([np.nan]).tolist() == [UNIT, 0]
    assert interval.sums([]).tolist() == [0, 0]


def ranges(
    interval: LossInterval, losses: NDArray[np.float64], reader: LossInterval | None = None
) -> list[LossRange]:
    """What is read from many tellings, one for each row."""
    return [(reader or interval).read(interval.tell(row)) for row in losses]


def misses(found: list[LossRange], mean: float) -> int:
    """How many do not hold the mean."""
    return sum(not one.low <= mean <= one.high for one in found)


def beyond(count: int, eta: float = float(ETA)) -> bool:
    """More often than eta, beyond luck."""
    return count > RUNS * eta + 5 * math.sqrt(RUNS * eta * (1 - eta))


LAWS = [(0.17, 300, "0.25"), (0.5, 40, "0.05"), (0.02, 3000, "1"), (0.9, 12, "0.5")]


@pytest.mark.parametrize(("mean", "records", "epsilon"), LAWS)
def test_it_holds_the_mean_as_often_as_it_says(mean: float, records: int, epsilon: str) -> None:
    interval = made(epsilon=epsilon, records=records)
    rng = np.random.default_rng(1)
    losses = (rng.random((RUNS, records)) < mean).astype(np.float64)
    assert not beyond(misses(ranges(interval, losses), mean))


def test_noise_that_is_not_counted_is_noticed() -> None:
    """The control: read as if the noise were a tenth of what it is."""
    rng = np.random.default_rng(2)
    losses = (rng.random((RUNS, 40)) < 0.5).astype(np.float64)
    few = made(epsilon="0.05", records=40)
    assert beyond(misses(ranges(few, losses, made(epsilon="0.5", records=40)), 0.5))


def test_records_that_were_not_there_do_not_matter() -> None:
    """Validity does not rest on the planned number: with a tenth of the records it is only wider."""
    rng = np.random.default_rng(3)
    losses = (rng.random((RUNS, 100)) < 0.3).astype(np.float64)
    found = ranges(made(records=1000), losses)
    assert not beyond(misses(found, 0.3))
    planned = ranges(made(records=100), losses)
    assert np.mean([one.high for one in found]) > np.mean([one.high for one in planned])


def test_records_of_one_user_count_as_one() -> None:
    """Users whose records all agree: to divide by their number keeps the confidence, not to divide
    would not.
    """
    each, users = 25, 40
    rng = np.random.default_rng(4)
    one = (rng.random((RUNS, users)) < 0.3).astype(np.float64)
    losses = np.repeat(one, each, axis=1)
    # Planned for many more, so that what is asked of each mean leaves little room for mistakes.
    terms: dict[str, Any] = {"epsilon": 8, "records": 5 * each * users}
    right = made(records_per_unit=each, **terms)
    assert not beyond(misses(ranges(right, losses), 0.3))
    assert beyond(misses(ranges(right, losses, made(**terms)), 0.3))


def test_it_is_as_narrow_as_it_should_be() -> None:
    """Else one that says nothing would pass: within twice of what a normal law would say, without
    noise.
    """
    interval = made(epsilon="0.25", eta="0.05", records=5000)
    rng = np.random.default_rng(5)
    (found,) = ranges(interval, (rng.random((1, 5000)) < 0.17).astype(np.float64))
    assert found.estimate is not None
    assert found.estimate == pytest.approx(0.17, abs=0.02)
    assert found.high - found.low < 2 * 2 * 1.96 * math.sqrt(0.17 * 0.83 / 5000)
    assert found.high - found.low < interval.width + float(STEP)


def test_width_falls_with_records_and_with_epsilon() -> None:
    widths = [made(records=count).width for count in (10, 100, 1000, 10_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 1.0
    assert widths[-1] < 0.03
    assert made(epsilon="0.05").width > made(epsilon=1).width


def test_nothing_told_is_nothing_known() -> None:
    nothing = made().read(ToldLosses(0, 0))
    assert (nothing.low, nothing.high, nothing.estimate) == (0.0, 1.0, None)
    # Noise may go below nothing: estimates stay inside.
    odd = made().read(ToldLosses(-5 * UNIT, 300 * UNIT))
    assert odd.estimate is not None
    assert 0.0 <= odd.low <= odd.estimate <= odd.high <= 1.0


def test_it_is_written_and_read() -> None:
    interval = made(epsilon="0.125", records_per_unit=3)
    assert LossInterval.from_json(interval.as_json()) == interval


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"eta": 0}, "ETA_INVALID"),
        ({"epsilon": 0}, "AMOUNT_ZERO"),
        ({"records": 0}, "CONFIG_INVALID"),
        ({"records_per_unit": 0}, "CONFIG_INVALID"),
    ],
)
def test_what_makes_no_interval_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(**options)
    assert caught.value.reason == reason


def test_the_losses_are_those_of_the_ptk() -> None:
    state = MEAN.exact([batch([0.0] * 10)])
    assert state is not None
    interval = made(epsilon=4, eta="0.05")
    good = interval.read(measure_loss(interval, MEAN, state, [batch([0.0] * 1000)]))
    bad = interval.read(measure_loss(interval, MEAN, state, [batch([1.0] * 1000)]))
    assert good.high < 0.02
    assert bad.low > 0.98

    class Short(Statistics):
        kind = "short"

        def loss(self, arrays: Any, batches: Any) -> Any:
            return super().loss(arrays, batches)[:-1]

    with pytest.raises(InvalidInput) as caught:
        measure_loss(interval, Short.from_json(MEAN.as_json()), state, [batch([0.0] * 10)])
    assert caught.value.reason == "LOSS_INVALID"
