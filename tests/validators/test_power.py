"""With as many records as are asked for, a state as good as expected is accepted as often as is
said, whatever its losses look like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.validators.betting import LossTest
from ptklib.validators.power import POWER, planned_test, samples_needed, stakes

RUNS = 300
Law = Callable[[np.random.Generator, float, int], NDArray[np.float64]]


def ends(rng: np.random.Generator, mean: float, count: int) -> NDArray[np.float64]:
    return (rng.random(count) < mean).astype(np.float64)


def between(rng: np.random.Generator, mean: float, count: int) -> NDArray[np.float64]:
    return rng.beta(4 * mean, 4 * (1 - mean), count)


def same(_: np.random.Generator, mean: float, count: int) -> NDArray[np.float64]:
    return np.full(count, mean)


@pytest.mark.parametrize("law", [ends, between, same])
@pytest.mark.parametrize(
    ("target", "loss", "epsilon"), [("0.1", 0.05, "0.25"), ("0.25", 0.2, "1"), ("0.1", 0.07, "0.1")]
)
def test_so_many_records_are_enough(law: Law, target: str, loss: float, epsilon: str) -> None:
    terms: dict[str, Any] = {"target": target, "epsilon": epsilon, "eta": "0.05"}
    needed = samples_needed(**terms, loss=loss)
    assert needed is not None
    test, rng = planned_test(**terms, records=needed), np.random.default_rng(5)
    accepted = [test.verdict(law(rng, loss, needed)).outcome == "ACCEPT" for _ in range(RUNS)]
    # Five standard deviations below what is said.
    assert np.mean(accepted) > float(POWER) - 5 * (0.09 / RUNS) ** 0.5


def test_a_third_of_them_is_not() -> None:
    """Else the one above could not fail, and too many would be asked for."""
    terms: dict[str, Any] = {"target": "0.1", "epsilon": "0.25", "eta": "0.05"}
    needed = samples_needed(**terms, loss=0.05)
    assert needed is not None
    test, rng = planned_test(**terms, records=needed), np.random.default_rng(6)
    few = [test.verdict(ends(rng, 0.05, needed // 3)).outcome == "ACCEPT" for _ in range(RUNS)]
    assert np.mean(few) < 0.6


def test_more_is_needed_for_less() -> None:
    """In target, epsilon, eta and power, and with more records of one user."""
    plain: dict[str, Any] = {"target": "0.1", "epsilon": "0.5", "eta": "0.05", "loss": "0.07"}
    base = samples_needed(**plain)
    assert base is not None
    harder: list[dict[str, Any]] = [
        {"loss": "0.09"},
        {"epsilon": "0.05"},
        {"eta": "0.001"},
        {"power": "0.999"},
        {"records_per_unit": 3},
    ]
    for change in harder:
        more = samples_needed(**plain | change)
        assert more is not None
        assert more > base, change


def test_more_records_make_the_stake_smaller() -> None:
    """And with it the noise: a test with many records tells smaller differences."""
    tests = [
        planned_test(target="0.1", epsilon="0.5", eta="0.05", records=records)
        for records in (10, 500, 5_000, 50_000)
    ]
    stakes = [test.stake for test in tests]
    assert stakes == sorted(stakes, reverse=True)
    assert stakes[1] > stakes[-1]


@pytest.mark.parametrize(("target", "bound"), [("0.001", 1), ("0.97", 1), ("3", "1000.5")])
def test_every_stake_makes_a_test(target: str, bound: str) -> None:
    found = stakes(target, bound)
    assert list(found) == sorted(set(found), reverse=True)
    for stake in found:
        test = LossTest(target=target, epsilon=1, eta="0.05", stake=stake, bound=bound)
        assert LossTest.from_json(test.as_json()) == test


def test_a_loss_that_is_not_below_its_target_needs_no_number() -> None:
    assert samples_needed(target="0.1", epsilon=1, eta="0.05", loss="0.1") is None


@pytest.mark.parametrize("power", [0, 1, "1.5"])
def test_a_power_that_is_none_is_refused(power: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        samples_needed(target="0.1", epsilon=1, eta="0.05", loss="0.05", power=power)  # type: ignore[arg-type]
    assert caught.value.reason == "POWER_INVALID"
