"""Thresholds count the noise exactly: by brute force over its law, and not one unit more than is
needed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from ptklib.validators.threshold import (
    chance_of_error,
    least_gaussian_threshold,
    least_threshold,
    likely_threshold,
)

ETA = Fraction(1, 20)
CASES = [
    # scale, unit, eta; the second has q e^a = 1, the others lie on both sides of it.
    (Fraction(3), Fraction(1, 4), ETA),
    (Fraction(4), Fraction(1, 4), ETA),
    (Fraction(1, 2), Fraction(1), Fraction(1, 100)),
    (Fraction(100), Fraction(1, 16), Fraction(1, 3)),
    (Fraction(200), Fraction(1, 1000), Fraction(1, 10**6)),
]


def brute_force(threshold: int, scale: Fraction, unit: Fraction) -> float:
    """E[min(1, exp((Z - t) unit))] as a sum over the noise."""
    noise = np.arange(-20_000, 20_001)
    law = np.exp(-np.abs(noise) / float(scale))
    return float(law @ np.exp(np.minimum(0, (noise - threshold) * float(unit))) / law.sum())


@pytest.mark.parametrize(("scale", "unit", "eta"), CASES)
def test_it_is_the_least_that_keeps_the_confidence(
    scale: Fraction, unit: Fraction, eta: Fraction
) -> None:
    found = least_threshold(scale, unit, eta)
    assert brute_force(found, scale, unit) <= float(eta) * (1 + 1e-9)
    assert found == 1 or brute_force(found - 1, scale, unit) > float(eta)
    assert chance_of_error(found, scale, unit) == pytest.approx(
        brute_force(found, scale, unit), rel=1e-9
    )


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(99, 100), Fraction(1), Fraction(30)])
def test_planning_by_floats_is_near(scale: Fraction) -> None:
    unit = Fraction(1, 2**16)
    exact = least_threshold(scale / unit, unit, ETA) * float(unit)
    assert likely_threshold(float(scale), float(ETA)) == pytest.approx(exact, rel=1e-3)


def test_noise_asks_for_more() -> None:
    unit = Fraction(1, 2**16)
    asked = [least_threshold(one / unit, unit, ETA) for one in map(Fraction, ("0.1", "1", "10"))]
    assert asked == sorted(asked)
    assert asked[0] * unit >= Fraction("2.9957")  # ln 20, which no noise at all would need


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(40), Fraction(3000)])
def test_gaussian_noise_keeps_the_confidence(sigma: Fraction) -> None:
    """By brute force over the law of the rounded noise, and within two units of the least."""
    unit = Fraction(1, 16)
    found = least_gaussian_threshold(sigma, unit, ETA)
    noise = np.arange(-40_000, 40_001)
    law = np.diff(norm.cdf(np.append(noise - 0.5, noise[-1] + 0.5) / float(sigma)))

    def chance(threshold: int) -> float:
        return float(law @ np.exp(np.minimum(0, (noise - threshold) * float(unit))))

    assert chance(found) <= float(ETA)
    assert chance(found - 2) > float(ETA)
