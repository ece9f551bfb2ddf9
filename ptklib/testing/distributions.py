"""Does a sampler draw from the distribution it claims? Goodness of fit with tiny p-values and a
check of its own power.

The contract ------------
* `fit_cdf` and `fit_pmf` give the p-value of integer (or any hashable) samples under a claimed
  distribution. Two tests are made and joined by Bonferroni: a chi-square over cells that each
  expect at least `MIN_EXPECTED` samples, the tails included, and an exact binomial test of every
  cumulative event (cdf) or single outcome (pmf). The cells depend on the claimed distribution and
  the number of samples only, never on the samples. A value that the claim calls impossible has
  p-value 0.
* `check_scale` and `check_pmf` are for tests. They accept the right distribution **and must reject
  wrong ones on the same samples**: a scale that is 1.3 times too large or too small, or the
  alternatives given. If they cannot, the test proves nothing and `TooLittlePower` is raised. So no
  test that uses them can be vacuous.

A right sampler is accused with probability about ``p_value`` (default 1e-9): a failure is a bug,
not bad luck.

Example::

    check_scale(lambda count: my_sampler(count, scale=5), discrete_laplace_cdf, 5, count=20_000)

Reasons of `InvalidInput`: SAMPLES_NOT_INTEGER, SAMPLES_EMPTY, SAMPLE_TOO_SMALL,
DISTRIBUTION_INVALID, P_VALUE_INVALID, SCALE_NOT_POSITIVE, NO_ALTERNATIVE.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from ptklib.errors import InvalidInput

__all__ = [
    "MIN_EXPECTED",
    "POWER_RATIO",
    "Fit",
    "Mismatch",
    "TooLittlePower",
    "check_pmf",
    "check_scale",
    "discrete_laplace_cdf",
    "fit_cdf",
    "fit_pmf",
    "geometric_cdf",
    "rounded_gaussian_cdf",
]

# Below this the chi-square law of the statistic is not trusted at p-values near 1e-9.
MIN_EXPECTED = 50.0
# A scale that is wrong by this ratio, either way, must be rejected.
POWER_RATIO = 1.3
_CENTRAL_CELLS = 32
# Half of the int64 range, so that the bisection does not overflow.
_FAR = 2**61

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cdf = Callable[[Integers], Floats]


class Mismatch(AssertionError):
    """The samples do not come from the claimed distribution."""


class TooLittlePower(AssertionError):
    """The test could not have told a wrong distribution from the right one: it must be made
    larger.
    """


@dataclass(frozen=True)
class Fit:
    """The p-value of samples under a claim, and the event that fits worst, in words."""

    p_value: float
    statistic: float
    cells: int
    worst: str


def discrete_laplace_cdf(k: ArrayLike, scale: float) -> Floats:
    """P(X <= k) where P(X = k) is proportional to exp(-|k|/scale), on all integers."""
    k = np.asarray(k, dtype=np.float64)
    ratio = math.exp(-1 / scale)
    below = np.exp(np.minimum(k, 0.0) / scale) / (1 + ratio)
    above = 1 - np.exp(-(np.maximum(k, 0.0) + 1) / scale) / (1 + ratio)
    upto: Floats = np.where(k < 0, below, above)
    return upto


def geometric_cdf(k: ArrayLike, scale: float) -> Floats:
    """P(X <= k) where P(X >= k) = exp(-k/scale) for k = 0, 1, 2, ..."""
    k = np.asarray(k, dtype=np.float64)
    upto: Floats = np.where(k < 0, 0.0, -np.expm1(-(np.maximum(k, 0.0) + 1) / scale))
    return upto


def rounded_gaussian_cdf(k: ArrayLike, sigma: float) -> Floats:
    """P(round(X) <= k) for a continuous Gaussian X of mean 0 and standard deviation ``sigma``."""
    return np.asarray(
        special.ndtr((np.asarray(k, dtype=np.float64) + 0.5) / sigma), dtype=np.float64
    )


def fit_cdf(samples: ArrayLike, cdf: Cdf) -> Fit:
    """The fit of integer ``samples`` to ``cdf``, which takes an int64 array and gives P(X <= k) for
    each k.
    """
    values = _integers(samples)
    cuts = _cuts(cdf, values.size)
    upto = _probabilities(cdf(cuts), "the cdf")
    if np.any(np.diff(upto) < 0):
        raise InvalidInput("DISTRIBUTION_INVALID", "the cdf must not decrease")
    low, high = int(values.min()), int(values.max())
    ends = cdf(np.array([low, high - 1], dtype=np.int64))
    if ends[0] <= 0 or ends[1] >= 1:
        bad = low if ends[0] <= 0 else high
        return Fit(0.0, math.inf, cuts.size + 1, f"the value {bad} was drawn and is impossible")
    below = np.searchsorted(np.sort(values), cuts, side="right")
    observed = np.diff(below, prepend=0, append=values.size)
    shares = np.diff(upto, prepend=0.0, append=1.0)
    names = [f"X <= {cut}" for cut in cuts]
    return _join(observed, shares, below, upto, names)


def fit_pmf(samples: Iterable[Hashable], pmf: Mapping[Any, float]) -> Fit:
    """The fit of ``samples`` to ``pmf``, which maps every possible outcome to its probability."""
    if isinstance(samples, np.ndarray):
        samples = samples.tolist()
    counts = Counter(samples)
    if not counts:
        raise InvalidInput("SAMPLES_EMPTY", "at least one sample is needed, got none")
    shares = _probabilities(np.array(list(pmf.values()), dtype=np.float64), "the pmf")
    if abs(float(shares.sum()) - 1) > 1e-9:
        raise InvalidInput(
            "DISTRIBUTION_INVALID", f"the pmf must sum to 1, got {float(shares.sum())!r}"
        )
    for outcome in counts:
        if pmf.get(outcome, 0.0) == 0:
            return Fit(
                0.0, math.inf, len(pmf), f"the outcome {outcome!r} was drawn and is impossible"
            )
    observed = np.array([counts[outcome] for outcome in pmf], dtype=np.int64)
    return _join(observed, shares, observed, shares, [f"X = {outcome!r}" for outcome in pmf])


def check_scale(
    draw: Callable[[int], ArrayLike],
    cdf: Callable[[Integers, float], Floats],
    scale: float,
    *,
    count: int,
    p_value: float = 1e-9,
) -> Fit:
    """Draw ``count`` samples; accept ``scale`` and insist that 1.3 times and 1/1.3 of it are
    rejected.

    ``draw(count)`` gives integers that claim to follow ``cdf(k, scale)``. Raises `Mismatch` if they
    do not, and `TooLittlePower` if they fit a wrong scale as well, in which case ``count`` must
    grow (or the test is of no use).
    """
    _check_p_value(p_value)
    if not (scale > 0 and math.isfinite(scale)):
        raise InvalidInput("SCALE_NOT_POSITIVE", f"scale must be positive and finite, got {scale}")
    samples = _integers(draw(count))
    if samples.size != count:
        raise InvalidInput(
            "SAMPLE_TOO_SMALL", f"draw({count}) must give {count} samples, got {samples.size}"
        )

    def at(claim: float) -> Fit:
        return fit_cdf(samples, lambda k: cdf(k, claim))

    right = _accepted(at(scale), f"scale {scale:g}", count, p_value)
    for wrong in (scale * POWER_RATIO, scale / POWER_RATIO):
        _rejected(at(wrong), f"scale {wrong:g}", count, p_value)
    return right


def check_pmf(
    samples: Iterable[Hashable],
    pmf: Mapping[Any, float],
    *,
    against: Sequence[Mapping[Any, float]],
    p_value: float = 1e-9,
) -> Fit:
    """Accept ``pmf`` for the samples and insist that every wrong pmf in ``against`` is rejected."""
    _check_p_value(p_value)
    if not against:
        raise InvalidInput(
            "NO_ALTERNATIVE",
            "against must hold at least one wrong pmf, or the test could be vacuous",
        )
    drawn = samples.tolist() if isinstance(samples, np.ndarray) else list(samples)
    right = _accepted(fit_pmf(drawn, pmf), "the pmf", len(drawn), p_value)
    for place, wrong in enumerate(against):
        _rejected(fit_pmf(drawn, wrong), f"the wrong pmf number {place}", len(drawn), p_value)
    return right


def _accepted(fit: Fit, claim: str, count: int, p_value: float) -> Fit:
    if fit.p_value < p_value:
        raise Mismatch(
            f"{count} samples do not fit {claim}: p = {fit.p_value:.3g} is below {p_value:g} "
            f"(chi-square {fit.statistic:.4g} over {fit.cells} cells; worst: {fit.worst})"
        )
    return fit


def _rejected(fit: Fit, claim: str, count: int, p_value: float) -> None:
    if fit.p_value >= p_value:
        raise TooLittlePower(
            f"{count} samples fit {claim} as well (p = {fit.p_value:.3g}, which is not below "
            f"{p_value:g}): "
            "this test cannot fail. Draw more samples, or choose parameters that tell the two apart"
        )


def _check_p_value(p_value: float) -> None:
    if not 0 < p_value <= 0.05:
        raise InvalidInput("P_VALUE_INVALID", f"p_value must be in (0, 0.05], got {p_value}")


def _integers(samples: ArrayLike) -> Integers:
    values = np.asarray(samples).ravel()
    if values.size == 0:
        raise InvalidInput("SAMPLES_EMPTY", "at least one sample is needed, got none")
    if values.dtype.kind not in "iu":
        raise InvalidInput(
            "SAMPLES_NOT_INTEGER", f"samples must be integers, got dtype {values.dtype}"
        )
    return values.astype(np.int64)


def _probabilities(values: Floats, name: str) -> Floats:
    if not np.all((values >= 0) & (values <= 1)):
        raise InvalidInput("DISTRIBUTION_INVALID", f"{name} must give probabilities in [0, 1]")
    return values


def _cuts(cdf: Cdf, size: int) -> Integers:
    """Ends of cells: even quantiles in the middle, halving quantiles in both tails, by bisection of
    the cdf.
    """
    if size < 2 * MIN_EXPECTED:
        raise InvalidInput(
            "SAMPLE_TOO_SMALL", f"at least {2 * MIN_EXPECTED:g} samples are needed, got {size}"
        )
    tail = 0.5 ** np.arange(1, max(2, int(math.log2(size / MIN_EXPECTED)) + 1))
    middle = np.arange(1, _CENTRAL_CELLS) / _CENTRAL_CELLS
    targets = np.unique(np.concatenate([tail, middle, 1 - tail]))
    low, high = np.full(targets.size, -_FAR), np.full(targets.size, _FAR)
    while np.any(high - low > 1):
        centre = low + (high - low) // 2
        reached = cdf(centre) >= targets
        high, low = np.where(reached, centre, high), np.where(reached, low, centre)
    return np.unique(high).astype(np.int64)


def _join(
    observed: Integers, shares: Floats, hits: Integers, chances: Floats, names: list[str]
) -> Fit:
    """Chi-square over cells, and an exact two-sided binomial test of each named event; Bonferroni
    over all.
    """
    size = int(observed.sum())
    statistic, cells = _chi_square(observed, shares * size)
    by_cells = float(stats.chi2.sf(statistic, cells - 1)) if cells > 1 else 1.0
    exact = 2 * np.minimum(
        stats.binom.cdf(hits, size, chances), stats.binom.sf(hits - 1, size, chances)
    )
    worst = int(np.argmin(exact))
    by_events = float(exact[worst]) * len(names)
    share, chance = hits[worst] / size, chances[worst]
    return Fit(
        p_value=min(1.0, 2 * min(by_cells, by_events)),
        statistic=statistic,
        cells=cells,
        worst=f"{names[worst]} has share {share:.5g}, expected {chance:.5g}",
    )


def _chi_square(observed: Integers, expected: Floats) -> tuple[float, int]:
    """The statistic and the number of cells, after joining neighbours until each expects enough."""
    joined: list[tuple[float, float]] = []
    seen = hoped = 0.0
    for count, hope in zip(observed.tolist(), expected.tolist(), strict=True):
        seen, hoped = seen + count, hoped + hope
        if hoped >= MIN_EXPECTED:
            joined.append((seen, hoped))
            seen = hoped = 0.0
    if joined and (seen or hoped):
        joined[-1] = (joined[-1][0] + seen, joined[-1][1] + hoped)
    return sum((count - hope) ** 2 / hope for count, hope in joined), len(joined)
