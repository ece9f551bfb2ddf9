"""The audit catches mechanisms that are wrong and never accuses one that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.testing.audit import AuditResult, audit_epsilon, one_at_a_time

COUNT = 40_000


def noisy(scale: float, seed: int = 1) -> Callable[[int, int], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)

    def run(value: int, count: int) -> NDArray[np.int64]:
        if scale == 0:
            return np.full(count, value)
        noise = np.floor(rng.exponential(scale, count)) - np.floor(rng.exponential(scale, count))
        return value + noise.astype(np.int64)

    return run


def randomised_response(truth: float, seed: int = 1) -> Callable[[str, int], list[str]]:
    """Says the truth with probability ``truth``: epsilon is ln(truth / (1 - truth))."""
    rng = np.random.default_rng(seed)

    def run(answer: str, count: int) -> list[str]:
        other = "no" if answer == "yes" else "yes"
        return [answer if honest else other for honest in rng.random(count) < truth]

    return run


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0])
def test_a_right_mechanism_is_not_accused_and_the_bound_is_near(epsilon: float) -> None:
    result = audit_epsilon(noisy(1 / epsilon), 0, 1, count=COUNT, confidence=0.999999)
    assert not result.contradicts(epsilon)
    assert result.lower_bound > 0.5 * epsilon


@pytest.mark.parametrize(
    ("fault", "scale"),
    [("half the noise", 0.5 / 0.5), ("no noise", 0.0), ("epsilon for 1/epsilon", 0.5)],
)
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_wrong_noise_is_caught_in_both_directions(
    fault: str, scale: float, pair: tuple[int, int]
) -> None:
    assert audit_epsilon(noisy(scale), *pair, count=COUNT, confidence=0.999999).contradicts(0.5), (
        fault
    )


def test_discrete_outcomes() -> None:
    truth = np.e / (1 + np.e)
    result = audit_epsilon(
        randomised_response(truth), "yes", "no", count=COUNT, confidence=0.999999
    )
    assert 0.9 < result.lower_bound < 1.0
    assert "yes" in result.event or "no" in result.event
    assert audit_epsilon(randomised_response(0.9), "yes", "no", count=COUNT).contradicts(1.0)


def test_one_at_a_time_gives_the_same_kind_of_answer() -> None:
    rng = np.random.default_rng(3)

    def run(value: int) -> int:
        return value ^ int(rng.random() < 0.25)

    result = audit_epsilon(one_at_a_time(run), 0, 1, count=20_000)
    assert 0.9 * np.log(3) < result.lower_bound < np.log(3)


def test_a_set_of_outcomes_shows_more_than_any_single_one() -> None:
    """One thousand outcomes, each rare: only a likelihood set has enough runs."""
    rng = np.random.default_rng(4)

    def run(side: int, count: int) -> list[int]:
        own = rng.random(count) < 0.75
        group = np.where(own, side, 1 - side)
        return [int(outcome) for outcome in rng.integers(0, 500, count) + 500 * group]

    assert audit_epsilon(run, 0, 1, count=COUNT).lower_bound > 0.9 * np.log(3)


def test_delta_is_subtracted() -> None:
    """A mechanism that shows everything with probability 0.01 is (0, 0.01)-DP, and not (3,
    0.001)-DP.
    """
    rng = np.random.default_rng(5)

    def run(value: int, count: int) -> NDArray[np.int64]:
        return np.where(rng.random(count) < 0.01, value, 7)

    assert audit_epsilon(run, 0, 1, count=COUNT, delta=0.01, confidence=0.999999).lower_bound == 0
    assert audit_epsilon(run, 0, 1, count=COUNT, delta=0.001).lower_bound > 3


def test_continuous_outputs_use_thresholds() -> None:
    rng = np.random.default_rng(6)

    def run(value: float, count: int) -> NDArray[np.float64]:
        return value + rng.laplace(0, 1, count)

    result = audit_epsilon(run, 0.0, 1.0, count=COUNT, confidence=0.999999)
    assert 0.85 < result.lower_bound < 1.0
    assert "<=" in result.event or ">=" in result.event


def test_equal_inputs_give_nothing() -> None:
    for seed in range(20):
        assert (
            audit_epsilon(noisy(2.0, seed), 0, 0, count=2_000, confidence=0.9999).lower_bound < 0.02
        )


def test_the_bound_has_its_confidence() -> None:
    """At confidence 0.9 at most one bound in ten may exceed the truth; 30 of 100 would have
    probability 1e-8.
    """
    wrong = sum(
        audit_epsilon(noisy(1.0, seed), 0, 1, count=2_000, confidence=0.9).contradicts(1.0)
        for seed in range(100)
    )
    assert wrong < 30


def flat(value: object, count: int) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize(
    ("reason", "mechanism", "options"),
    [
        ("COUNT_TOO_SMALL", flat, {"count": 10}),
        ("CONFIDENCE_INVALID", flat, {"count": 1_000, "confidence": 1.0}),
        ("CONFIDENCE_INVALID", flat, {"count": 1_000, "confidence": 0.1}),
        ("DELTA_INVALID", flat, {"count": 1_000, "delta": 1.0}),
        ("DELTA_INVALID", flat, {"count": 1_000, "delta": -0.1}),
        ("OUTPUTS_INVALID", lambda value, count: np.zeros(count - 1), {"count": 1_000}),
        ("OUTPUTS_INVALID", lambda value, count: np.zeros((count, 2)), {"count": 1_000}),
        ("OUTPUTS_INVALID", lambda value, count: np.full(count, np.nan), {"count": 1_000}),
    ],
)
def test_refusals(
    reason: str, mechanism: Callable[[Any, int], Any], options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        audit_epsilon(mechanism, 0, 1, **options)
    assert caught.value.reason == reason


def test_a_result_reads_as_a_claim() -> None:
    result = AuditResult(
        lower_bound=1.2, event="output <= 3 on data", confidence=0.95, delta=0.0, count=1_000
    )
    assert result.contradicts(1.0)
    assert not result.contradicts(1.2)


def even_noise(scale: float, seed: int = 1) -> Callable[[int, int], NDArray[np.int64]]:
    """Twice the noise, on all but the lowest bit, which is as it is."""
    plain = noisy(scale, seed)
    return lambda value, count: value + 2 * plain(0, count)


@pytest.mark.parametrize("unit", [1, 0.25, 2.0**-40, 3.0])
def test_an_unnoised_lowest_bit_is_told_by_its_remainder(unit: float) -> None:
    """Also of floats that stand for whole numbers of some unit."""
    run = even_noise(50.0)

    def outputs(value: int, count: int) -> NDArray[Any]:
        found = run(value, count)
        return found if unit == 1 else found * unit

    result = audit_epsilon(outputs, 100, 101, count=4_000, confidence=0.999999)
    assert result.contradicts(1.0), result
    assert "mod" in result.event


@pytest.mark.parametrize("modulus", [3, 5, 8, 10, 16])
def test_a_remainder_modulo_a_small_number_is_told(modulus: int) -> None:
    plain = noisy(20.0)
    result = audit_epsilon(
        lambda value, count: value + modulus * plain(0, count),
        100,
        101,
        count=4_000,
        confidence=0.999999,
    )
    assert result.contradicts(1.0), result


def test_a_grid_that_is_no_power_of_two_must_be_named() -> None:
    run = even_noise(50.0)
    found = audit_epsilon(
        lambda v, n: run(v, n) * 0.1, 100, 101, count=4_000, confidence=0.999999, grid=0.1
    )
    assert found.contradicts(1.0), found


def test_a_rare_raw_value_among_many_is_found() -> None:
    """Once in fifty runs a number far outside tells the input; thresholds at quantiles of a
    thousandth would blur it.
    """
    rng = np.random.default_rng(3)

    def run(value: int, count: int) -> NDArray[np.float64]:
        outputs = rng.normal(0, 1000, count)
        leaked = rng.random(count) < 0.02
        return np.where(leaked, 1e6 + value, outputs)

    assert audit_epsilon(run, 0, 1, count=COUNT, confidence=0.999999).contradicts(2.0)


def test_noise_that_does_its_work_leaves_remainders_blind() -> None:
    result = audit_epsilon(noisy(50.0), 100, 101, count=COUNT, confidence=0.999999)
    assert not result.contradicts(1 / 50)


@pytest.mark.parametrize("choosing", [0.0, 1.0])
def test_some_runs_choose_and_some_judge(choosing: float) -> None:
    with pytest.raises(InvalidInput, match="CHOOSING_INVALID"):
        audit_epsilon(noisy(1.0), 0, 1, count=COUNT, choosing=choosing)
