"""Small PTKs with known minimal risk: threshold classifiers, means, histograms and least squares.
For benchmarks and tests.

Each reads a column or two of floats in [0, 1], releases at most a few numbers with one mechanism,
and minimises its loss exactly, so that both tests of the profiler apply. None has a closed form but
`ClosedMean`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.mechanisms.selection import ExponentialMechanism
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, batches_of, check_arrays

__all__ = ["ClosedMean", "Histogram", "LeastSquares", "Mean", "Threshold"]

STEPS = 1000
Floats = NDArray[np.float64]


def _column(batches: Batches, name: str) -> Floats:
    parts = [one.column(name).to_numpy(zero_copy_only=False) for one in batches_of(batches)]
    found: Floats = np.clip(np.concatenate([np.zeros(0), *parts]), 0.0, 1.0)
    return found


def _columns(batches: Batches) -> tuple[Floats, Floats]:
    held = list(batches_of(batches))
    return _column(held, "x"), _column(held, "y")


@dataclass(frozen=True, kw_only=True)
class _Small(Ptk):
    """What the small PTKs share: no features, one array of floats."""

    size: ClassVar[int] = 1
    tags: ClassVar[Tags] = Tags(exact_minimiser=True)

    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return ("x",)

    def feature_names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:  # noqa: ARG002
        """None."""
        return table.select([])

    def validate(self, arrays: Arrays) -> None:
        """One array of floats."""
        check_arrays(arrays, {"f": ("float64", (self._size(),))}, kind=self.kind)

    def _size(self) -> int:
        return self.size


@dataclass(frozen=True, kw_only=True)
class Mean(_Small):
    """The mean of x; loss: squared distance.

    Two corner sums with Laplace noise, as `statistics` has them.
    """

    kind: ClassVar[str] = "small_mean"

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:  # noqa: ARG002
        """Of one release: the weights STEPS-w and w of a record sum to STEPS."""
        return LaplaceRelease(epsilon=epsilon, sensitivity=STEPS * records_per_unit).cost

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,  # noqa: ARG002
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """A noisy mean."""
        steps = np.rint(_column(batches, "x") * STEPS).astype(np.int64)
        sums = [int((STEPS - steps).sum()), int(steps.sum())]
        release = LaplaceRelease(epsilon=epsilon, sensitivity=STEPS * records_per_unit)
        rest, held = (max(0, int(one)) for one in release.release(sums, source=noise).values)
        return {"f": np.array([held / (rest + held) if rest + held else 0.5])}

    def exact(self, batches: Batches) -> Arrays:
        """The mean."""
        x = _column(batches, "x")
        return {"f": np.array([x.mean() if len(x) else 0.5])}

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """The squared distance."""
        return np.asarray(np.square(_column(batches, "x") - arrays["f"][0]))


@dataclass(frozen=True, kw_only=True)
class ClosedMean(Mean):
    """A mean with a closed form, from the mean and variance it is told."""

    kind: ClassVar[str] = "small_closed_mean"
    mean: float = 0.5
    variance: float = 0.0

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,  # noqa: ARG002
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...]:
        """The least n at which 19 of 20 trainings have a risk within the target: variance and
        squared distance to the mean.
        """
        spare = target - self.variance
        if spare <= 0:
            return (None,) * len(levels)
        scales = [records_per_unit / float(level) for level in levels]
        return tuple(
            _least(partial(self._missed, reach=math.sqrt(spare), scale=scale)) for scale in scales
        )

    def _missed(self, n: int, reach: float, scale: float) -> float:
        """The chance that (S + b)/(n + a + b), with Laplace noise a and b, is further than
        ``reach`` from the mean.

        Above means (1 - mean - reach) b - (mean + reach) a > reach n, but for what sampling adds to
        S; below alike.
        """
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        rooms = reach * n + nodes * math.sqrt(self.variance * n)
        found = 0.0
        for middle in (self.mean, 1 - self.mean):
            # No state is above 1 or below 0.
            if middle + reach < 1:
                one, other = scale * abs(1 - middle - reach), scale * (middle + reach)
                found += float((weights * _beyond(rooms, one, other)).sum() / weights.sum())
        return found


def _beyond(rooms: Floats, one: float, other: float) -> Floats:
    """P[X + Y > room] for Laplace X and Y of two scales."""
    if abs(one - other) < 1e-6 * other:
        one *= 1 + 1e-5
    far = np.abs(rooms)
    shares = (
        (other**2 * np.exp(-far / other) - one**2 * np.exp(-far / max(one, 1e-12)))
        / (other**2 - one**2)
        / 2
    )
    return np.where(rooms >= 0, shares, 1 - shares)


def _least(missed: Callable[[int], float]) -> int:
    """The least n at which at most one training in 20 misses."""
    low, high = 0, 1
    while missed(high) > 0.05:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) <= 0.05 else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Histogram(_Small):
    """Shares of x in equal bins; loss: half the Brier score. One release of all counts."""

    kind: ClassVar[str] = "small_histogram"
    bins: int = 8

    def _size(self) -> int:
        return self.bins

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:  # noqa: ARG002
        """Of one release: a record is in one bin."""
        return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit).cost

    def _codes(self, batches: Batches) -> NDArray[np.intp]:
        return np.minimum((_column(batches, "x") * self.bins).astype(np.intp), self.bins - 1)

    def _shares(self, counts: NDArray[np.int64]) -> Arrays:
        positive = np.maximum(counts, 0).astype(np.float64)
        total = positive.sum()
        return {"f": positive / total if total > 0 else np.full(self.bins, 1 / self.bins)}

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,  # noqa: ARG002
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """Noisy shares."""
        counts = np.bincount(self._codes(batches), minlength=self.bins)
        release = LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit)
        return self._shares(release.release(counts, source=noise).values)

    def exact(self, batches: Batches) -> Arrays:
        """The shares."""
        return self._shares(np.bincount(self._codes(batches), minlength=self.bins))

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """Half the Brier score."""
        shares = arrays["f"]
        return np.asarray(((np.square(shares).sum() + 1 - 2 * shares) / 2)[self._codes(batches)])


@dataclass(frozen=True, kw_only=True)
class LeastSquares(_Small):
    """y ~ w x with w in [0, 1]; loss: squared error. Noisy sums of x y and x x."""

    kind: ClassVar[str] = "small_least_squares"

    def columns(self) -> tuple[str, ...]:
        """Both."""
        return ("x", "y")

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:  # noqa: ARG002
        """Of one release: both products are at most STEPS."""
        return LaplaceRelease(epsilon=epsilon, sensitivity=2 * STEPS * records_per_unit).cost

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,  # noqa: ARG002
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """A noisy slope."""
        x, y = _columns(batches)
        sums = [int(np.rint(x * y * STEPS).sum()), int(np.rint(x * x * STEPS).sum())]
        release = LaplaceRelease(epsilon=epsilon, sensitivity=2 * STEPS * records_per_unit)
        top, bottom = (float(one) for one in release.release(sums, source=noise).values)
        return {"f": np.array([min(1.0, max(0.0, top / bottom)) if bottom > 0 else 0.0])}

    def exact(self, batches: Batches) -> Arrays:
        """The slope, clipped: the loss is convex in it."""
        x, y = _columns(batches)
        bottom = float((x * x).sum())
        return {
            "f": np.array(
                [min(1.0, max(0.0, float((x * y).sum()) / bottom)) if bottom > 0 else 0.0]
            )
        }

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """The squared error."""
        x, y = _columns(batches)
        return np.asarray(np.square(y - arrays["f"][0] * x))


@dataclass(frozen=True, kw_only=True)
class Threshold(_Small):
    """y is 1 from some x on; loss: 1 where that is wrong.

    The exponential mechanism over a grid of thresholds.
    """

    kind: ClassVar[str] = "small_threshold"
    grid: int = 64

    def columns(self) -> tuple[str, ...]:
        """Both."""
        return ("x", "y")

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:  # noqa: ARG002
        """Of one choice."""
        return ExponentialMechanism(epsilon=epsilon, sensitivity=records_per_unit).cost

    def _errors(self, batches: Batches) -> NDArray[np.int64]:
        """The number of errors of each threshold k/grid, k = 0 .. grid."""
        x, y = _columns(batches)
        cells = np.minimum((x * self.grid).astype(np.intp), self.grid - 1)
        ones = np.bincount(cells[y >= 0.5], minlength=self.grid)
        zeros = np.bincount(cells[y < 0.5], minlength=self.grid)
        # Ones below the threshold are wrong, and zeros from it on.
        below, rest = (np.concatenate([[0], np.cumsum(one)]) for one in (ones, zeros))
        return np.asarray(below + zeros.sum() - rest, dtype=np.int64)

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,  # noqa: ARG002
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """A threshold with few errors."""
        choice = ExponentialMechanism(epsilon=epsilon, sensitivity=records_per_unit)
        return {
            "f": np.array([choice.release(-self._errors(batches), source=noise).index / self.grid])
        }

    def exact(self, batches: Batches) -> Arrays:
        """The threshold with the fewest errors."""
        return {"f": np.array([int(np.argmin(self._errors(batches))) / self.grid])}

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """1 where it is wrong."""
        x, y = _columns(batches)
        cells = np.minimum((x * self.grid).astype(np.intp), self.grid - 1)
        return np.asarray((cells >= arrays["f"][0] * self.grid) != (y >= 0.5), dtype=np.float64)
