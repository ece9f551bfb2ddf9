"""Cube noise: the law, exactly; the price; and an audit that half of the noise fails."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import PureCost
from ptklib.ptks.clusters.noise import CubeRelease, _below
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_pmf, check_scale
from ptklib.testing.noise import SeededSource, planted_noise


def release_of(scale: int | Fraction, width: int) -> CubeRelease:
    return CubeRelease(epsilon=Fraction(8, 1) / Fraction(scale), sensitivity=8, width=width)


def test_the_price_is_epsilon_and_the_scale_is_exact() -> None:
    release = CubeRelease(epsilon="0.3", sensitivity=1024, width=3)
    assert release.cost == PureCost(epsilon=Fraction(3, 10))
    assert (release.scale, release.factor) == (Fraction(10240, 3), 1)


@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("coarse", [4, 1])
def test_the_largest_absolute_value_has_its_law(width: int, coarse: int) -> None:
    """P(|N|_max <= m) is proportional to the sum over r <= m of ((2r+1)^D - (2r-1)^D) q^r.

    At a scale of (D+1), where the release itself would refine, many more radii are refused than at
    four times that.
    """

    def cdf(k: Any, scale: float) -> Any:
        r = np.arange(0, int(60 * (width + 2) * 6))
        weights = ((2.0 * r + 1) ** width - np.where(r > 0, 2.0 * r - 1, 0) ** width) * np.exp(
            -r / scale
        )
        upto = np.cumsum(weights) / weights.sum()
        return np.where(
            np.asarray(k) < 0, 0.0, upto[np.clip(np.asarray(k, dtype=np.int64), 0, len(r) - 1)]
        )

    scale = coarse * (width + 1)
    release = release_of(scale, width)
    assert release.factor == (1 if coarse == 4 else 4)
    object.__setattr__(release, "factor", 1)
    with planted_noise():
        source = SeededSource(width)
        check_scale(
            lambda count: np.abs(
                release.release(np.zeros((count, width), np.int64), source=source)
            ).max(axis=1),
            cdf,
            scale,
            count=40_000,
        )


def pairs(scale: float, factor: int) -> dict[Any, float]:
    """Probabilities of pairs of whole numbers when noise on a grid finer by ``factor`` is rounded,
    half up.
    """
    r = np.arange(-400, 401)
    weight = np.exp(-np.maximum(np.abs(r)[:, None], np.abs(r)[None, :]) / (scale * factor))
    cell = np.floor((r + factor // 2) / factor).astype(int)
    pmf: dict[Any, float] = {
        (x, y): float(weight[np.ix_(cell == x, cell == y)].sum() / weight.sum())
        for x, y in product(range(-3, 4), repeat=2)
    }
    return {**pmf, "other": 1 - sum(pmf.values())}


def test_two_numbers_have_their_joint_law() -> None:
    """In a scale so small that the noise is laid on a finer grid and rounded."""
    release = release_of(Fraction(3, 2), 2)
    assert release.factor == 8
    with planted_noise():
        drawn = release.release(np.zeros((40_000, 2), np.int64), source=SeededSource(2))
    seen = [(int(x), int(y)) if max(abs(x), abs(y)) <= 3 else "other" for x, y in drawn]
    check_pmf(
        seen, pairs(1.5, 8), against=[pairs(1.5 * 1.3, 8), pairs(1.5 / 1.3, 8), pairs(1.5, 1)]
    )


def test_the_spread_is_the_stated_one_and_rows_are_independent() -> None:
    release = release_of(1000, 4)
    with planted_noise():
        drawn = release.release(np.zeros((20_000, 4), np.int64), source=SeededSource(3))
    assert drawn.std(axis=0) == pytest.approx(np.full(4, release.spread), rel=0.04)
    assert abs(np.corrcoef(np.abs(drawn[:-1, 0]), np.abs(drawn[1:, 0]))[0, 1]) < 0.04
    # Within a row the sizes go together, the signs do not.
    assert np.corrcoef(np.abs(drawn[:, 0]), np.abs(drawn[:, 1]))[0, 1] > 0.03
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.04


def test_data_is_added_exactly() -> None:
    for scale in (Fraction(1, 4), 10_000):
        release = release_of(scale, 3)
        data = np.array([[5, -7, 10**9], [0, 1, 2]])
        with planted_noise():
            empty, full = (
                release.release(one, source=SeededSource(4)) for one in (np.zeros_like(data), data)
            )
        assert np.array_equal(full - empty, data)


def test_values_beyond_all_records_are_clamped_not_wrapped() -> None:
    found = release_of(Fraction(1, 4), 1).release(np.array([[2**62], [-(2**62)]]))
    assert found[0, 0] > 2**45
    assert found[1, 0] < -(2**45)


def test_no_factor_is_so_large_that_values_wrap() -> None:
    release = CubeRelease(epsilon=1000, sensitivity=1, width=1025)
    assert release.factor == 2**22
    data = np.zeros((2, 1025), np.int64)
    data[:, 0] = 2**50, -(2**50)
    found = release.release(data)
    assert found[0, 0] > 2**38
    assert found[1, 0] < -(2**38)


def test_beyond_all_use_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        CubeRelease(epsilon="1e-6", sensitivity=2**30, width=3)


@pytest.mark.parametrize("width", [1, 2, 3, 40])
def test_whatever_is_priced_can_be_released(width: int) -> None:
    """The sampler of radii has a limit of its own, on the scale alone: refused with the price, not
    after it was paid.
    """
    most = min(Fraction(2**40), Fraction(2**42, width + 1))
    assert release_of(most, width).release(np.zeros((2, width), np.int64)).shape == (2, width)
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        release_of(most + 1, width)


@pytest.mark.parametrize("shape", [(3, 4), (3, 1), (1, 3, 2), (2,), (1,)])
def test_rows_of_another_width_are_refused(shape: tuple[int, ...]) -> None:
    """Their radius would have another law: four numbers with a radius for two have a loss of 2 at
    scale 16, not 1/16.
    """
    with pytest.raises(InvalidInput, match="DATA_SHAPE_INVALID"):
        release_of(16, 2).release(np.zeros(shape, np.int64))


def test_uniform_numbers_are_below_their_bounds_and_reach_all_values() -> None:
    bounds = np.repeat(np.array([1, 2, 3, 7, 8]), 6000)
    with planted_noise():
        drawn = _below(bounds, SeededSource(5)).reshape(5, -1)
    for bound, row in zip((1, 2, 3, 7, 8), drawn, strict=True):
        counts = np.bincount(row)
        assert len(counts) == bound
        assert np.abs(counts - 6000 / bound).max() < 5 * np.sqrt(6000 / bound)


def test_an_added_record_stays_within_the_claim_and_half_the_noise_does_not() -> None:
    """A record in the corner of the cube: every number of the row moves by all of the
    sensitivity.
    """
    epsilon, reach = 2, 1024
    data = [np.zeros((1, 3), np.int64), np.full((1, 3), reach)]

    def audited(release: CubeRelease) -> float:
        source = SeededSource(6)

        def runs(row: Any, count: int) -> Any:
            found = release.release(np.repeat(row, count, axis=0), source=source)
            # The log-likelihood ratio of the two rows.
            return np.abs(found).max(axis=1) - np.abs(found - reach).max(axis=1)

        with planted_noise():
            return audit_epsilon(runs, data[0], data[1], count=40_000).lower_bound

    assert 1.5 < audited(CubeRelease(epsilon=epsilon, sensitivity=reach, width=3)) <= epsilon
    assert audited(CubeRelease(epsilon=2 * epsilon, sensitivity=reach, width=3)) > epsilon
