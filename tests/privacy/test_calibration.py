"""Calibration always meets its target, and barely so."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    DiscreteLaplaceCost,
    GaussianCost,
    LaplaceCost,
    PureCost,
    SampledGaussianCost,
    ZcdpCost,
    calibration,
)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(1, "1e-6", 4.224679), (1, "1e-5", 3.730632), (5, "1e-9", 1.211712)],
)
def test_gaussian_sigma_is_that_of_balle_and_wang(epsilon: int, delta: str, sigma: float) -> None:
    found = calibration.gaussian_sigma(epsilon=epsilon, delta=delta)
    oracle = dp_accounting.get_sigma_gaussian(float(epsilon), float(delta))
    assert found == pytest.approx(oracle, rel=1e-6)
    assert found == pytest.approx(sigma, rel=1e-5)


@given(st.floats(0.001, 100), st.floats(1e-15, 0.5), st.floats(0.001, 1000))
@settings(max_examples=40, deadline=None)
def test_gaussian_sigma_meets_the_target_and_barely(
    epsilon: float, delta: float, sensitivity: float
) -> None:
    sigma = calibration.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert calibration.gaussian_epsilon(
        sigma=sigma, delta=delta, sensitivity=sensitivity
    ) <= epsilon * (1 + 1e-9)
    assert calibration.gaussian_delta(
        sigma=sigma, epsilon=epsilon, sensitivity=sensitivity
    ) <= delta * (1 + 1e-10)
    less = sigma * (1 - 1e-6)
    assert calibration.gaussian_delta(sigma=less, epsilon=epsilon, sensitivity=sensitivity) > delta


def test_the_classical_formula_would_be_wrong_above_one() -> None:
    classical = math.sqrt(2 * math.log(1.25 / 1e-2)) / 10
    assert GaussianCost(sigma=classical).delta(10) > 1e-2
    assert GaussianCost(sigma=calibration.gaussian_sigma(epsilon=10, delta="0.01")).delta(
        10
    ) <= 0.01 * (1 + 1e-10)


def test_sampled_gaussian_sigma_meets_the_target_and_barely() -> None:
    sigma = calibration.sampled_gaussian_sigma(rate="0.01", steps=500, epsilon=2, delta="1e-6")
    assert SampledGaussianCost(rate="0.01", sigma=sigma, steps=500).epsilon("1e-6") <= 2
    assert SampledGaussianCost(rate="0.01", sigma=sigma * 0.999, steps=500).epsilon("1e-6") > 2


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.1", "1e-6"), (1, "1e-6"), (10, "1e-12"), (1, "0.01")]
)
def test_zcdp_rho_meets_the_target_and_barely(epsilon: object, delta: str) -> None:
    rho = calibration.zcdp_rho(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    assert ZcdpCost(rho=rho).epsilon(delta) <= float(epsilon)  # type: ignore[arg-type]
    assert ZcdpCost(rho=rho * 1.0001).epsilon(delta) > float(epsilon)  # type: ignore[arg-type]


def test_laplace_scale_is_exact() -> None:
    scale = calibration.laplace_scale(epsilon="0.1", sensitivity=3)
    assert scale == 30
    assert LaplaceCost(scale=scale, sensitivity=3).basic() == (Fraction(1, 10), Fraction(0))
    assert DiscreteLaplaceCost(scale=scale, sensitivity=3).basic() == (Fraction(1, 10), Fraction(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda noise: GaussianCost(sigma=noise),
        lambda noise: LaplaceCost(scale=noise),
        lambda noise: DiscreteLaplaceCost(scale=noise, sensitivity=4),
        lambda noise: GaussianCost(sigma=noise) + LaplaceCost(scale=noise),
    ],
)
def test_any_cost_can_be_calibrated(make: object) -> None:
    noise = calibration.calibrate(make, epsilon="0.7", delta="1e-7")  # type: ignore[arg-type]
    assert make(noise).epsilon("1e-7") <= 0.7  # type: ignore[operator]
    assert make(noise * 0.9999).epsilon("1e-7") > 0.7  # type: ignore[operator]


def unhelpful(noise: float) -> Cost:
    return ApproxCost(epsilon=1 / noise, delta="1e-3")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: calibration.gaussian_sigma(epsilon=1, delta=0),
        lambda: calibration.zcdp_rho(epsilon=1, delta=0),
        lambda: calibration.sampled_gaussian_sigma(rate="0.1", steps=10, epsilon=1, delta=0),
        lambda: calibration.calibrate(unhelpful, epsilon=1, delta="1e-6"),
        lambda: calibration.calibrate(lambda _: PureCost(epsilon=2), epsilon=1, delta=0),
        lambda: calibration.calibrate(lambda noise: GaussianCost(sigma=noise), epsilon=1, delta=0),
    ],
)
def test_what_no_noise_can_reach_is_said_so(ask: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ask()  # type: ignore[operator]
    assert refusal.value.reason == "TARGET_UNREACHABLE"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, 0, "9" * 400])
def test_bad_targets_are_refused(bad: object) -> None:
    for ask in (
        lambda: calibration.gaussian_sigma(epsilon=bad, delta="1e-6"),  # type: ignore[arg-type]
        lambda: calibration.laplace_scale(epsilon=bad),  # type: ignore[arg-type]
        lambda: calibration.laplace_scale(epsilon=1, sensitivity=bad),  # type: ignore[arg-type]
        lambda: calibration.calibrate(lambda noise: LaplaceCost(scale=noise), epsilon=bad, delta=0),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput) as refusal:
            ask()
        assert refusal.value.reason.startswith("AMOUNT_")
