"""The goodness-of-fit tools accept what is right, reject what is wrong, and refuse to be
vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.testing import distributions
from ptklib.testing.distributions import (
    Mismatch,
    TooLittlePower,
    check_pmf,
    check_scale,
    discrete_laplace_cdf,
    fit_cdf,
    fit_pmf,
    geometric_cdf,
    rounded_gaussian_cdf,
)

Integers = NDArray[np.int64]
Draw = Callable[..., Integers]


def geometric(count: int, scale: float, seed: int) -> Integers:
    return np.floor(np.random.default_rng(seed).exponential(scale, count)).astype(np.int64)


def laplace(count: int, scale: float, seed: int) -> Integers:
    return geometric(count, scale, seed) - geometric(count, scale, seed + 1_000)


def gaussian(count: int, scale: float, seed: int) -> Integers:
    return np.rint(np.random.default_rng(seed).normal(0, scale, count)).astype(np.int64)


FAMILIES = [
    (laplace, discrete_laplace_cdf),
    (geometric, geometric_cdf),
    (gaussian, rounded_gaussian_cdf),
]


@pytest.mark.parametrize(("draw", "cdf"), FAMILIES, ids=lambda value: value.__name__)
@pytest.mark.parametrize("scale", [0.7, 3.0, 1e3, 1e9])
def test_accepts_the_right_scale_and_rejects_30_percent(
    draw: Draw, cdf: Callable[..., NDArray[np.float64]], scale: float
) -> None:
    assert check_scale(lambda count: draw(count, scale, 7), cdf, scale, count=20_000).p_value > 1e-6
    for wrong in (scale * 1.3, scale / 1.3):
        with pytest.raises(Mismatch, match="do not fit"):
            check_scale(partial(draw, scale=wrong, seed=7), cdf, scale, count=20_000)


@pytest.mark.parametrize(("draw", "cdf"), FAMILIES, ids=lambda value: value.__name__)
def test_too_few_samples_are_not_a_pass(
    draw: Draw, cdf: Callable[..., NDArray[np.float64]]
) -> None:
    with pytest.raises(TooLittlePower, match="cannot fail"):
        check_scale(lambda count: draw(count, 5.0, 3), cdf, 5.0, count=120)


def test_a_scale_that_cannot_be_told_apart_is_not_a_pass() -> None:
    """At scale 1/40 every sample is zero, whatever the noise does."""
    with pytest.raises(TooLittlePower):
        check_scale(
            lambda count: laplace(count, 0.025, 3), discrete_laplace_cdf, 0.025, count=20_000
        )


@pytest.mark.parametrize("cdf", [cdf for _, cdf in FAMILIES], ids=lambda value: value.__name__)
def test_the_cdfs_sum_their_pmf(cdf: Callable[..., NDArray[np.float64]]) -> None:
    k = np.arange(-400, 401)
    mass = np.diff(cdf(k, 6.0))
    assert np.all(mass >= 0)
    assert cdf(-400, 6.0) < 1e-25
    assert cdf(400, 6.0) == pytest.approx(1, abs=1e-12)
    weights = {
        "discrete_laplace_cdf": np.exp(-np.abs(k[1:]) / 6.0),
        "geometric_cdf": np.where(k[1:] >= 0, np.exp(-np.maximum(k[1:], 0) / 6.0), 0.0),
        "rounded_gaussian_cdf": mass,
    }[cdf.__name__]
    assert mass == pytest.approx(weights / weights.sum(), abs=1e-14)


def test_the_rounded_gaussian_cdf_against_the_error_function() -> None:
    for k in (-7, -1, 0, 3):
        assert float(rounded_gaussian_cdf(k, 2.5)) == pytest.approx(
            0.5 * math.erfc(-(k + 0.5) / 2.5 / math.sqrt(2))
        )


def test_p_values_of_a_right_sampler_are_not_too_small() -> None:
    """Of 400 right samples, about four or fewer may have p < 0.01; fifteen would have probability
    1e-5.
    """
    p_values = [
        fit_cdf(laplace(2_000, 4.0, seed), lambda k: discrete_laplace_cdf(k, 4.0)).p_value
        for seed in range(400)
    ]
    assert sum(p < 0.01 for p in p_values) < 15
    assert min(p_values) > 1e-6


def test_a_bias_of_one_half_is_seen() -> None:
    """A floor where a rounding belongs moves a Gaussian by one half."""
    floored = np.floor(np.random.default_rng(1).normal(0, 3.0, 20_000)).astype(np.int64)
    assert fit_cdf(floored, lambda k: rounded_gaussian_cdf(k, 3.0)).p_value < 1e-9


def test_an_impossible_value_has_p_value_zero() -> None:
    samples = geometric(10_000, 3.0, 1)
    samples[17] = -1
    assert fit_cdf(samples, lambda k: geometric_cdf(k, 3.0)).p_value == 0
    samples[17] = 10**6
    assert fit_cdf(samples, lambda k: geometric_cdf(k, 3.0)).p_value == 0
    assert fit_pmf([0, 1, 2], {0: 0.5, 1: 0.5}).p_value == 0
    assert fit_pmf([0, 1, 2], {0: 0.5, 1: 0.5, 2: 0.0}).p_value == 0


def test_an_excess_of_a_rare_outcome_is_seen_exactly() -> None:
    """Ten hits where one in a hundred thousand is expected: chi-square pools them away, the
    binomial test does not.
    """
    samples = [0] * 5_000 + [1] * 4_990 + [2] * 10
    assert fit_pmf(samples, {0: 0.5, 1: 0.499999, 2: 0.000001}).p_value < 1e-15


def test_pmf_needs_alternatives_it_can_reject() -> None:
    rng = np.random.default_rng(5)
    samples = rng.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=20_000).tolist()
    right, wrong = {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.45, "b": 0.35, "c": 0.2}
    assert check_pmf(samples, right, against=[wrong]).p_value > 1e-6
    with pytest.raises(Mismatch, match="worst: X = "):
        check_pmf(samples, wrong, against=[right])
    with pytest.raises(TooLittlePower, match="wrong pmf number 0"):
        check_pmf(samples, right, against=[{"a": 0.501, "b": 0.299, "c": 0.2}])
    with pytest.raises(InvalidInput) as caught:
        check_pmf(samples, right, against=[])
    assert caught.value.reason == "NO_ALTERNATIVE"


def laplace_5(k: Integers) -> NDArray[np.float64]:
    return discrete_laplace_cdf(k, 5.0)


@pytest.mark.parametrize(
    ("reason", "call"),
    [
        ("SAMPLES_NOT_INTEGER", lambda: fit_cdf([0.5] * 500, laplace_5)),
        ("SAMPLES_EMPTY", lambda: fit_cdf([], laplace_5)),
        ("SAMPLES_EMPTY", lambda: fit_pmf([], {0: 1.0})),
        ("SAMPLE_TOO_SMALL", lambda: fit_cdf([1, 2, 3], laplace_5)),
        (
            "SAMPLE_TOO_SMALL",
            lambda: check_scale(
                lambda count: [1] * (count - 1), discrete_laplace_cdf, 5, count=500
            ),
        ),
        ("DISTRIBUTION_INVALID", lambda: fit_pmf([0, 1], {0: 0.5, 1: 0.4})),
        ("DISTRIBUTION_INVALID", lambda: fit_pmf([0, 1], {0: 1.5, 1: -0.5})),
        (
            "SCALE_NOT_POSITIVE",
            lambda: check_scale(lambda count: [1] * count, discrete_laplace_cdf, 0, count=500),
        ),
        (
            "SCALE_NOT_POSITIVE",
            lambda: check_scale(
                lambda count: [1] * count, discrete_laplace_cdf, math.nan, count=500
            ),
        ),
        (
            "P_VALUE_INVALID",
            lambda: check_scale(
                lambda count: [1] * count, discrete_laplace_cdf, 5, count=500, p_value=0
            ),
        ),
    ],
)
def test_refusals(reason: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.reason == reason


def test_public_names_are_sorted() -> None:
    assert (
        sorted(distributions.__all__, key=lambda name: (not name.isupper(), name))
        == distributions.__all__
    )
