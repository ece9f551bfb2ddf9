"""Corners against every split of the budget between a sum and a count: the analysis of `corners`,
and a measurement.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.ptks.statistics import STEPS
from ptklib.ptks.tables.corners import moments, weights
from ptklib.testing.noise import SeededSource, planted_noise

SPLITS = np.linspace(0.05, 0.95, 19)
MEANS = np.linspace(0, 1, 21)
RUNS = 4000


def corner_variance(mean: float) -> float:
    """In units of 2/(epsilon n)^2, as everything here."""
    return mean**2 + (1 - mean) ** 2


def centred_variance(mean: float, share: float) -> float:
    return float(1 / (4 * share**2) + (mean - 1 / 2) ** 2 / (1 - share) ** 2)


def plain_variance(mean: float, share: float) -> float:
    return float(1 / share**2 + mean**2 / (1 - share) ** 2)


def test_corners_have_half_the_worst_variance_of_the_best_split() -> None:
    worst = max(map(corner_variance, MEANS))
    assert worst == 1
    assert min(
        max(centred_variance(mean, share) for mean in MEANS) for share in SPLITS
    ) == pytest.approx(2)
    assert min(max(plain_variance(mean, share) for mean in MEANS) for share in SPLITS) > 7.9


def test_a_split_that_knows_the_mean_wins_near_the_middle_alone() -> None:
    shares = np.linspace(0.01, 0.999, 500)
    for distance in (0.071, 0.1, 0.2, 0.5):
        assert min(centred_variance(0.5 + distance, share) for share in shares) > corner_variance(
            0.5 + distance
        )
    for distance in (0, 0.03, 0.068):
        known = min(centred_variance(0.5 + distance, share) for share in shares)
        assert 0.499 * corner_variance(0.5 + distance) < known < corner_variance(0.5 + distance)


def noisy(mean: float, count: int, epsilon: float, source: SeededSource) -> NDArray[np.float64]:
    """Means read back from corners with noise, of records that all have the value ``mean``, a whole
    number of steps.
    """
    step = round(mean * STEPS)
    exact = weights(np.array([[count], [count * step]]), STEPS)
    with planted_noise():
        noise = discrete_laplace((RUNS, 2), STEPS / epsilon, source=source)
    return moments(exact + noise, STEPS)["mean"][:-1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("count", [100, 10_000])
def test_measured_errors_agree_with_the_analysis(epsilon: float, count: int) -> None:
    source, generator = SeededSource(3), np.random.default_rng(3)
    worst = {"corners": 0.0, "centred": 0.0}
    for mean in (0.0, 0.25, 0.5, 0.875, 1.0):
        error = float(np.sqrt(np.mean(np.square(noisy(mean, count, epsilon, source) - mean))))
        scale = 2 / (epsilon * count)
        total = count * (mean - 0.5) + generator.laplace(0, scale * count / 2, RUNS)
        counts = np.maximum(count + generator.laplace(0, scale * count, RUNS), 1)
        centred = np.clip(0.5 + total / counts, 0, 1)
        worst["corners"] = max(worst["corners"], error)
        worst["centred"] = max(worst["centred"], float(np.sqrt(np.mean(np.square(centred - mean)))))
        if epsilon * count >= 1000 and 0 < mean < 1:
            assert error == pytest.approx(
                np.sqrt(2 * corner_variance(mean)) / (epsilon * count), rel=0.06
            )
    assert worst["corners"] < (0.75 if epsilon * count >= 100 else 0.9) * worst["centred"]


def test_three_corners_cost_a_mean_a_quarter_more_variance_at_most() -> None:
    for mean in MEANS:
        three = mean**2 + (1 / 2 - mean) ** 2 + (1 - mean) ** 2
        assert three <= 1.25
        assert three <= 1.25 * corner_variance(mean) + 1e-12
