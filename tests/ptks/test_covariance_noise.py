"""Wishart noise: the law, the exact path, the price, and an audit that half of the noise fails."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import PureCost
from ptklib.ptks.covariance import noise as covariance_noise
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_scale
from ptklib.testing.noise import SeededSource, planted_noise

ZERO = np.zeros((1, 1), dtype=object)


def zeros(size: int) -> Any:
    return np.array([[0] * size] * size, dtype=object)


def test_the_price_is_epsilon_and_the_scale_is_exact() -> None:
    release = WishartRelease(epsilon="0.3", trace=1000)
    assert release.cost == PureCost(epsilon=Fraction(3, 10))
    assert release.scale == Fraction(10000, 3)
    assert release.grain == 4


@pytest.mark.parametrize(
    ("trace", "grain"), [(1, 1), (511, 1), (512, 1), (1024, 2), (2**40, 2**31)]
)
def test_the_grain_is_small_beside_the_noise(trace: int, grain: int) -> None:
    release = WishartRelease(epsilon=1, trace=trace)
    assert release.grain == grain
    assert grain == 1 or release.scale / grain >= 512


def test_beyond_all_use_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SCALE_TOO_LARGE"):
        WishartRelease(epsilon="1e-6", trace=2**40)


def test_one_column_has_laplace_noise() -> None:
    """In one dimension the difference of two Wishart numbers is a Laplace number, here rounded to
    whole ones.
    """
    with planted_noise():
        source = SeededSource(1)
        release = WishartRelease(epsilon=1, trace=300)
        check_scale(
            lambda count: np.array(
                [release.release(ZERO, source=source)[0, 0] for _ in range(count)]
            ),
            lambda k, scale: stats.laplace.cdf((np.asarray(k) + 0.5) / scale),
            300,
            count=8000,
        )


@pytest.mark.parametrize("bits", [36, 5])
def test_variances_are_those_of_the_law_on_the_fast_and_on_the_exact_path(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With five bits every entry is undecided at first, so all are settled by refinement."""
    monkeypatch.setattr(covariance_noise, "_BITS", bits)
    size, scale = 3, 2.0**12
    with planted_noise():
        source = SeededSource(bits)
        release = WishartRelease(epsilon=1, trace=2**12)
        runs = 4000 if bits == 36 else 600
        drawn = np.array([release.release(zeros(size), source=source) for _ in range(runs)]) / scale
    assert np.array_equal(drawn, drawn.transpose(0, 2, 1))
    off, on = drawn[:, 0, 1], drawn[:, 2, 2]
    # Off the diagonal (D+1)/2, on it D+1; means are zero. Tolerances of four standard errors or
    # more.
    assert off.var() == pytest.approx((size + 1) / 2, rel=12 / runs**0.5)
    assert on.var() == pytest.approx(size + 1, rel=14 / runs**0.5)
    assert abs(off.mean()) < 4 * (2 / runs) ** 0.5
    assert abs(on.mean()) < 4 * (4 / runs) ** 0.5


def test_two_columns_have_their_joint_law() -> None:
    """Where P - Q >= 0 its density is proportional to exp(-tr/s), and that is the case with
    probability 2^-(D(D+1)/2).

    Both follow from the density in the module: the integral over P >= N of exp(-(2 tr(P) -
    tr(N))/s). Given that, the trace is a Gamma number of shape D(D+1)/2. Other degrees of freedom
    than D + 1 have neither.
    """

    def fits(drawn: Any) -> bool:
        above = drawn[(np.linalg.eigvalsh(drawn) > 0).all(axis=1)]
        share = len(above) / len(drawn)
        near = abs(share - 1 / 8) < 4 * (7 / 64 / len(drawn)) ** 0.5
        return bool(
            near
            and stats.kstest(np.trace(above, axis1=1, axis2=2), stats.gamma(3).cdf).pvalue > 1e-3
        )

    runs, trace = 6000, 2**20
    release = WishartRelease(epsilon=1, trace=trace)
    with planted_noise():
        source = SeededSource(7)
        assert fits(
            np.array([release.release(zeros(2), source=source) for _ in range(runs)]) / trace
        )
    normal = np.random.default_rng(7).normal(size=(2, runs, 2, 4))
    for degrees, right in ((2, False), (3, True), (4, False)):
        one, other = (
            part[..., :degrees] @ part[..., :degrees].transpose(0, 2, 1) / 2 for part in normal
        )
        assert fits(one - other) == right


def test_the_exact_path_agrees_with_the_law_of_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covariance_noise, "_BITS", 3)
    with planted_noise():
        source = SeededSource(3)
        release = WishartRelease(epsilon=1, trace=2**12)
        drawn = [release.release(ZERO, source=source)[0, 0] / 2**12 for _ in range(1500)]
    assert stats.kstest(drawn, "laplace").pvalue > 1e-3
    assert stats.kstest(np.array(drawn) * 1.3, "laplace").pvalue < 1e-3


@pytest.mark.parametrize("k", [0, 1, -2])
def test_refined_numbers_are_normal_within_their_cell(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no leading bits a cell is as wide as 1, where the density falls by much: what is
    accepted must follow it.
    """
    monkeypatch.setattr(covariance_noise, "_BITS", 0)
    with planted_noise():
        exact = covariance_noise._Refined(np.full((2, 30, 50), k), SeededSource(k + 10))
    drawn = np.array([p / 2**exact._bits for side in exact._numbers for row in side for p in row])
    assert k - 0.5 <= drawn.min() <= drawn.max() <= k + 0.5
    assert stats.kstest(drawn, stats.truncnorm(k - 0.5, k + 0.5).cdf).pvalue > 1e-3
    if k:
        assert stats.kstest(drawn, stats.uniform(k - 0.5, 1).cdf).pvalue < 1e-9


def test_bits_that_are_asked_for_late_leave_the_decided_entries_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exact path and the fast path round the same numbers: with the bound made large, results
    stay the same.
    """
    release = WishartRelease(epsilon=1, trace=2**20)
    with planted_noise():
        fast = [release.release(zeros(4), source=SeededSource(seed)) for seed in range(20)]
        monkeypatch.setattr(covariance_noise, "_error", lambda *_: 1.0)
        exact = [release.release(zeros(4), source=SeededSource(seed)) for seed in range(20)]
    assert all(np.array_equal(one, other) for one, other in zip(fast, exact, strict=True))


def test_data_is_added_exactly_whatever_the_grain() -> None:
    release = WishartRelease(epsilon=1, trace=2**30)
    data = zeros(2)
    data[:] = [[10**17 + 1, -5], [-5, release.grain * 7]]
    with planted_noise():
        empty, full = (release.release(one, source=SeededSource(4)) for one in (zeros(2), data))
    assert np.abs((full - empty).astype(object) - data).max() <= release.grain
    assert (full - empty)[1, 1] == data[1, 1]


def test_an_added_record_stays_within_the_claim_and_half_the_noise_does_not() -> None:
    """The worst record: all of the trace in one direction.

    Told by the trace, the best single number against it.
    """
    epsilon, trace = 2, 2**16
    record = zeros(2)
    record[:] = [[trace // 2] * 2] * 2

    def audited(release: WishartRelease) -> float:
        source = SeededSource(5)

        def runs(data: Any, count: int) -> Any:
            drawn = [release.release(data, source=source) for _ in range(count)]
            return np.array([int(one.sum()) for one in drawn])

        with planted_noise():
            return audit_epsilon(runs, zeros(2), record, count=4000).lower_bound

    assert audited(WishartRelease(epsilon=epsilon, trace=trace)) <= epsilon
    assert audited(WishartRelease(epsilon=2 * epsilon, trace=trace)) > epsilon
