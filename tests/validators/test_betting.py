"""A loss test: its scores err against an ACCEPT, its price is that of one release, and it says what
it is.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost
from ptklib.ptks.statistics import Statistics
from ptklib.validators.betting import LEAST_FACTOR, UNIT, LossTest, largest_stake
from ptklib.validators.loss import validate_loss
from ptklib.validators.verdict import (
    ACCEPT,
    RETRY,
    VERDICTS,
    LossVerdict,
    eta_of_attempt,
)

TARGETS = ["0.001", "0.1", "0.5", "0.97"]
SHARES = [Fraction(1), Fraction(1, 3), Fraction(1, 500)]


def made(target: str = "0.1", share: Fraction = Fraction(1, 4), **options: Any) -> LossTest:
    bound = Fraction(options.get("bound", 1))
    stake = largest_stake(Fraction(target), bound) * share
    plain: dict[str, Any] = {"target": target, "epsilon": 1, "eta": "0.05", "stake": stake}
    return LossTest(**plain | options)


@pytest.mark.parametrize("records_per_unit", [1, 3])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("target", TARGETS)
def test_scores_are_rounded_down_and_stay_within_their_bounds(
    target: str, share: Fraction, records_per_unit: int
) -> None:
    test = made(target, share, records_per_unit=records_per_unit)
    losses = np.concatenate([np.linspace(0, 1, 1001), [-5.0, 7.0, np.inf, -np.inf, np.nan]])
    kept = np.clip(np.nan_to_num(losses, nan=1.0), 0, 1)
    true = np.log1p(float(test.stake) * (float(test.target) - kept)) / records_per_unit * UNIT
    scores = test.scores(losses)
    assert (scores < true).all()
    assert (scores > true - 1.01).all()
    assert (scores >= test.low_units).all()
    assert (scores <= test.high_units).all()
    # The ends are reached, so the bounds are not larger than they must be either.
    assert scores[0] == test.high_units
    assert scores[1000] == test.low_units == scores[-1]


@pytest.mark.parametrize("records_per_unit", [1, 4])
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("target", TARGETS)
def test_the_price_covers_whatever_a_unit_adds(
    target: str, share: Fraction, records_per_unit: int
) -> None:
    """Accounting: the noise is that of one release of the largest change that a unit can make."""
    test = made(target, share, epsilon="0.25", records_per_unit=records_per_unit)
    unit = np.full(records_per_unit, 1.0), np.zeros(records_per_unit)
    changes = [abs(int(test.scores(losses).sum())) for losses in unit]
    assert max(changes) == test.release.sensitivity
    assert test.cost == DiscreteLaplaceCost(
        scale=test.release.sensitivity * 4, sensitivity=max(changes)
    )
    assert test.cost.basic() == (Fraction(1, 4), Fraction(0))


def test_losses_are_clipped_one_by_one() -> None:
    test = made("3", bound=10, share=Fraction(1))
    assert test.scores([1e9]).sum() == test.scores([10.0]).sum() == test.low_units
    assert test.scores([-1e9, 5.0]).tolist() == test.scores([0.0, 5.0]).tolist()


def test_what_is_no_loss_counts_as_the_worst() -> None:
    test = made()
    assert test.scores([np.nan]).tolist() == [test.low_units]


@pytest.mark.parametrize("target", TARGETS)
def test_no_record_takes_or_gives_more_than_it_may(target: str) -> None:
    stake, wanted = largest_stake(Fraction(target), Fraction(1)), Fraction(target)
    factors = 1 + stake * (wanted - 1), 1 + stake * wanted
    assert min(factors) >= LEAST_FACTOR
    assert max(factors) <= 1 / LEAST_FACTOR


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "0"}, "TARGET_INVALID"),
        ({"target": "1"}, "TARGET_INVALID"),
        ({"target": "2", "bound": 1}, "TARGET_INVALID"),
        ({"bound": "0"}, "BOUND_INVALID"),
        ({"stake": 0}, "STAKE_INVALID"),
        ({"stake": 100}, "STAKE_INVALID"),
        ({"eta": 0}, "ETA_INVALID"),
        ({"eta": 1}, "ETA_INVALID"),
        ({"epsilon": 0}, "AMOUNT_ZERO"),
        ({"records_per_unit": 0}, "CONFIG_INVALID"),
    ],
)
def test_what_makes_no_test_is_refused(options: dict[str, Any], reason: str) -> None:
    plain: dict[str, Any] = {"target": "0.1", "epsilon": 1, "eta": "0.05", "stake": "0.5"}
    with pytest.raises(InvalidInput) as caught:
        LossTest(**plain | options)
    assert caught.value.reason == reason


def test_it_is_written_and_read() -> None:
    test = made("0.3", Fraction(1, 7), epsilon="0.125", records_per_unit=2)
    assert LossTest.from_json(test.as_json()) == test


def test_verdicts_follow_from_what_is_told() -> None:
    assert LossVerdict.of(10, 10).outcome == ACCEPT
    assert LossVerdict.of(9, 10).outcome == RETRY
    assert set(VERDICTS) > {ACCEPT, RETRY}


def test_attempts_share_the_confidence() -> None:
    spent = [eta_of_attempt("0.05", attempt) for attempt in range(1, 200)]
    assert spent[0] == Fraction(1, 40)
    assert Fraction("0.0497") < sum(spent) < Fraction("0.05")
    with pytest.raises(InvalidInput, match="attempt must be"):
        eta_of_attempt("0.05", 0)


MEAN = Statistics(
    keys=(IntegerRange(column="zone", first=0, last=0),),
    statistics=("mean",),
    value="x",
    lower=0.0,
    upper=1.0,
)


def batch(values: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"zone": [0] * len(values), "x": values})


def test_a_state_is_judged_by_the_losses_of_its_ptk() -> None:
    state = MEAN.exact([batch([0.0] * 10)])
    test = made(epsilon=4)
    good = validate_loss(test, MEAN, state, [batch([0.0] * 2000), batch([0.0] * 2000)])
    bad = validate_loss(test, MEAN, state, [batch([1.0] * 4000)])
    assert (good.outcome, bad.outcome) == (ACCEPT, RETRY)
    assert good.threshold == bad.threshold == test.threshold


def test_a_ptk_that_does_not_give_a_loss_for_each_record_is_refused() -> None:
    class Short(Statistics):
        kind = "short"

        def loss(self, arrays: Any, batches: Any) -> Any:
            return super().loss(arrays, batches)[:-1]

    ptk = Short.from_json(MEAN.as_json())
    state = ptk.exact([batch([0.0] * 10)])
    with pytest.raises(InvalidInput) as caught:
        validate_loss(made(), ptk, state, [batch([0.0] * 10)])
    assert caught.value.reason == "LOSS_INVALID"
