"""Moments of several columns: count, means and covariances from one release, and principal
components of them.

What is released ---------------- A record is a vector u of whole numbers (`vectors`), at most R
long. With y = (c, u), c whole and near 0.3 R, the sum of y y^T over the records holds the count,
the sums and the second moments at once. It gets noise, and everything else is post-processing:

* pure epsilon (``mechanism="wishart"``): the difference of two Wishart matrices, see
  `covariance_noise`;
* Gaussian (needs a delta): Analyze Gauss (Dwork, Talwar, Thakurta & Zhang 2014), Gaussian noise on
  the upper triangle, where entries off the diagonal, which stand for two, are weighted 7/5 <
  sqrt(2).

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records. *Neighbours:* add or remove
one. *Sensitivity:* y y^T is positive semidefinite with trace |y|^2 <= T = c^2 + limit, exactly (whole numbers; `vectors`
has the proof for the norm); r of them together have trace at most r T. That is what `WishartRelease` asks for. For the
Gaussian, the weighted upper triangle has the square 25 sum y_i^4 + 49 sum_(i<j) y_i^2 y_j^2 <= 25 (sum y_i^2)^2, so its
L2 norm is at most 5 T, and 5 r T for r records. Sums are exact: whole floats below 2**53, then Python ints. *Cost:* that
of the one release. *Windows:* totals of the last state are added, which is post-processing; their records are others.

Why these: at pure epsilon, Wishart noise beats Laplace noise on the triangle at every size
(`covariance_noise`); c = 0.3 R was best or near it for data whose mean is near the middle of the
bounds and for data whose mean is not (larger: more noise on the moments; smaller: more on the
mean).

What is read back ----------------- The noisy matrix is projected on the positive semidefinite ones;
then count = its first entry / c^2, mean and second moments are divided by the count, and the
covariance is the second moments minus the mean times itself, positive semidefinite again.
Components are its first eigenvectors, the largest entry of each positive. With a last state they
keep the order and signs of its components as well as they can, so that a feature means the same
from window to window.

Rules -----
* A record with a null or NaN in any column contributes nothing and has loss 0. Values outside the
  bounds are clipped, and vectors longer than ``norm`` shortened.
* Features are the coordinates of (value - mean) along the components in scaled units, or divided by
  their noisy standard deviation (``output="whitened"``). A missing value is taken as the mean.
* Loss: the squared distance to the plane of mean and components, over (2 R)^2. Exact totals
  minimise its mean.

Reasons: those of `ptk`, `vectors`, `covariance_noise` and `mechanisms.release`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.working import LOSS_BYTES, PIECE_BYTES
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, Given, PriceFirst
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk, Tags, Weighted
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.ptks.tables.noisy_totals import check_totals, merged
from ptklib.ptks.tables.weighted import added
from ptklib.ptks.vectors import STEPS, Bounded, Scaling, Space, example_of, space_of
from ptklib.ptks.vectors.space import Floats

__all__ = ["Covariance", "Moments"]

# c in tenths of R.
_CONSTANT_TENTHS = 3
# Weights of the diagonal and of the rest of the triangle under Gaussian noise: 7/5 is just below
# sqrt(2).
_ON, _OFF = 5, 7
# Whole floats are exact up to here.
_EXACT = 2**53
_SQUARE = 1e-6
# Of one pair of columns: exact sums, and all bits of the noise in the rare case that they are
# needed.
_PAIR_BYTES = 2048

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """What a state knows: how many records, their mean and covariance (in the units of the
    columns), all noisy.
    """

    count: float
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, kw_only=True)
class Covariance(PriceFirst[WishartRelease | GaussianRelease], Ptk):
    """Means, covariances and principal components of numbers.

    See the module for what is released and the proof note.
    """

    kind: ClassVar[str] = "covariance"
    tags: ClassVar[Tags] = Tags(mergeable=True, combines=True, exact_minimiser=True)

    values: tuple[Bounded, ...]
    components: int
    norm: float | None = (
        None  # of a record, in scaled units; that of the corners of the bounds when None
    )
    scaling: Scaling = "range"
    mechanism: Literal["wishart", "gaussian"] = "wishart"
    output: Literal["projected", "whitened"] = "projected"
    prefix: str | None = None  # of feature names; "component" when None

    def check(self) -> None:
        """Columns that make a space, and no more components than columns."""
        size = self._space.size
        demand(
            1 <= self.components <= size,
            f"components must be from 1 to {size}, got {self.components}",
            field="components",
        )
        self._state_tags(needs_delta=self.mechanism == "gaussian")

    @cached_property
    def _space(self) -> Space:
        return space_of(self.values, self.scaling, self.norm)

    @cached_property
    def _constant(self) -> int:
        """c: what stands for one record."""
        return max(1, math.isqrt(self._space.limit) * _CONSTANT_TENTHS // 10)

    @cached_property
    def _trace(self) -> int:
        """T: the largest |y|^2."""
        return self._constant**2 + self._space.limit

    def columns(self) -> tuple[str, ...]:
        """In the order of the configuration."""
        return tuple(value.column for value in self.values)

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
    ) -> Arrays:
        """Moments times the weights of their states, and the components of the sum."""
        made = added(self.validate, parts, totals="totals", noise=noise)
        above = np.triu_indices(self._space.size + 1)
        # Rounded by chance: the upper triangle decides.
        made["totals"].T[above] = made["totals"][above]
        return self._state(made, previous)

    def exact(self, batches: Batches) -> Arrays:
        """The state without noise: its plane minimises the mean loss. Raw: never published."""
        sums = np.array(
            [[max(-LIMIT, min(LIMIT, total)) for total in row] for row in self._sums(batches)],
            dtype=np.int64,
        )
        return self._state(merged(sums, None), None)

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """See the rules in the module."""
        self.validate(arrays)
        _, mean, _ = self._read(arrays["totals"])
        losses = [np.zeros(0)]
        for piece in self._space.pieces(batches):
            centred = piece.vectors / STEPS - mean[:, None]
            apart = np.zeros(piece.rows)
            for row in centred:
                apart += np.square(row)
            for component in arrays["components"]:
                apart -= np.square(_along(component, centred))
            losses.append(apart if piece.missing is None else np.where(piece.missing, 0.0, apart))
        return np.clip(np.concatenate(losses) * STEPS**2 / (4 * self._space.limit), 0.0, 1.0)

    def working_bytes(self, records: int) -> int:
        """Moments of all pairs of columns, as Python's whole numbers; of a record its loss
        alone.
        """
        return 2 * PIECE_BYTES + _PAIR_BYTES * (self._space.size + 1) ** 2 + LOSS_BYTES * records

    def moments(self, arrays: Arrays) -> Moments:
        """Count, mean and covariance in the units of the columns."""
        self.validate(arrays)
        count, mean, covariance = self._read(arrays["totals"])
        halves = self._space.halves
        return Moments(
            count, self._space.middles + halves * mean, covariance * np.outer(halves, halves)
        )

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_<number>``, from 1."""
        prefix = "component" if self.prefix is None else self.prefix
        return tuple(
            f"{prefix}_{number}" if prefix else str(number)
            for number in range(1, self.components + 1)
        )

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """Coordinates along the components, as float64.

        Rules for missing values: see the module.
        """
        self.validate(arrays)
        _, mean, covariance = self._read(arrays["totals"])
        centred = self._space.scaled(table, mean) - mean[:, None]
        columns = []
        for component in arrays["components"]:
            along = _along(component, centred)
            if self.output == "whitened":
                # The variance of the rounding to steps is the least that there is.
                along /= math.sqrt(
                    max(float(component @ covariance @ component), 1 / (12 * STEPS**2))
                )
            columns.append(pa.array(along))
        return pa.Table.from_arrays(columns, names=list(self.feature_names()))

    def validate(self, arrays: Arrays) -> None:
        """Names, dtypes and shapes follow from the configuration; totals are symmetric, components
        of length 1 and square.
        """
        size = self._space.size
        also = {"components": ("float64", (self.components, size))}
        check_totals(arrays, (size + 1, size + 1), kind=self.kind, also=also)
        totals, components = arrays["totals"], arrays["components"]
        if not np.array_equal(totals, totals.T):
            raise InvalidInput("PTK_MISMATCH", "totals must be symmetric")
        if np.abs(components @ components.T - np.eye(len(components))).max() > _SQUARE:
            raise InvalidInput(
                "PTK_MISMATCH", "components must have length 1 and be at right angles"
            )

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Values that follow a few directions, a quarter of them on a bound."""
        generator = np.random.default_rng(seed)
        size = self._space.size
        hidden = (
            generator.normal(size=(rows, 2)) @ generator.normal(size=(2, size))
            + generator.normal(size=(rows, size)) / 4
        )
        return example_of(self.values, np.clip(hidden / 3, -1, 1), generator)

    def _mechanisms(self, budget: Budget) -> WishartRelease | GaussianRelease:
        """The one mechanism of a training. Sensitivity: see the proof note."""
        trace = budget.records * self._trace
        if self.mechanism == "wishart":
            return WishartRelease(epsilon=budget.epsilon, trace=trace)
        sigma = budget.gaussian_sigma(_ON * trace, instead="wishart")
        return GaussianRelease(sigma=sigma, sensitivity=_ON * trace)

    def _train(self, given: Given[WishartRelease | GaussianRelease]) -> Arrays:
        """Noisy moments, added to the previous ones, and their components.

        Cost and proof: see the module.
        """
        totals = self._noisy(given.plan, self._sums(given.batches), given.noise)
        return self._state(merged(totals, given.previous), given.previous)

    def _noisy(
        self,
        release: WishartRelease | GaussianRelease,
        sums: NDArray[np.object_],
        noise: BitSource | None,
    ) -> Integers:
        """The sums with noise, symmetric."""
        if isinstance(release, WishartRelease):
            return release.release(sums, source=noise)
        weights = np.full(sums.shape, _OFF)
        np.fill_diagonal(weights, _ON)
        above = np.triu_indices(len(sums))
        weighted = np.array(
            [max(-LIMIT, min(LIMIT, int(sum_))) for sum_ in (sums * weights)[above]], dtype=np.int64
        )
        noisy = release.release(weighted, source=noise).values
        made = np.zeros(sums.shape, dtype=np.int64)
        made[above] = noisy // weights[above]
        made.T[above] = made[above]
        return made

    def _sums(self, batches: Batches) -> NDArray[np.object_]:
        """The exact sum of y y^T as Python ints. Raw."""
        size, present = self._space.size, 0
        exact: Any = np.zeros((size + 1, size + 1), dtype=object)
        squares, sums, rows = np.zeros((size, size)), np.zeros(size), 0
        most = _EXACT // max(self._space.limit, 1)

        def take() -> None:
            exact[1:, 1:] += squares.astype(np.int64).astype(object)
            exact[0, 1:] += sums.astype(np.int64).astype(object)

        for piece in self._space.pieces(batches):
            if rows + piece.rows > most:
                take()
                squares[:], sums[:], rows = 0, 0, 0
            squares += piece.vectors @ piece.vectors.T
            sums += piece.sums
            rows += piece.rows
            present += piece.present
        take()
        constant = self._constant
        exact[0, 1:] *= constant
        exact[1:, 0] = exact[0, 1:]
        exact[0, 0] = constant * constant * present
        return np.asarray(exact, dtype=object)

    def _state(self, made: Arrays, previous: Arrays | None) -> Arrays:
        """Totals and windows with the components of the totals: post-processing."""
        _, _, covariance = self._read(made["totals"])
        vectors = np.linalg.eigh(covariance)[1][:, ::-1][:, : self.components].T
        components = (
            _signed(vectors) if previous is None else _aligned(vectors, previous["components"])
        )
        return {"components": np.ascontiguousarray(components), **made}

    def _read(self, totals: Integers) -> tuple[float, Floats, Floats]:
        """Count, mean and covariance in scaled units. See the module."""
        scale = np.full(len(totals), float(STEPS))
        scale[0] = self._constant
        roots, axes = np.linalg.eigh(totals / np.outer(scale, scale))
        moments = (axes * np.maximum(roots, 0.0)) @ axes.T
        count = float(moments[0, 0])
        # Below half a record nothing is known; the directions are those of the noise.
        divisor = max(count, 0.5)
        mean = moments[0, 1:] / divisor
        tops = self._space.reach / STEPS
        covariance = moments[1:, 1:] / divisor - np.outer(mean, mean)
        mean = np.clip(mean, -tops, tops)
        length, longest = float(np.linalg.norm(mean)), math.sqrt(self._space.limit) / STEPS
        return (
            count,
            mean if length <= longest else mean * (longest / length),
            (covariance + covariance.T) / 2,
        )


def _along(component: Floats, centred: Floats) -> Floats:
    """The coordinate of each record along a component.

    One column at a time: a product of matrices may round a record by where it stands and by how
    many there are.
    """
    along = np.zeros(centred.shape[1])
    for weight, row in zip(component, centred, strict=True):
        along += weight * row
    return along


def _signed(vectors: Floats) -> Floats:
    """The largest entry of each vector is positive."""
    largest = np.abs(vectors).argmax(axis=1)
    return vectors * np.where(vectors[np.arange(len(vectors)), largest] < 0, -1.0, 1.0)[:, None]


def _aligned(vectors: Floats, previous: Floats) -> Floats:
    """The vectors in the order and with the signs of the previous ones that they are nearest to,
    the nearest pair first.
    """
    aligned = np.empty_like(vectors)
    overlap = vectors @ previous.T
    left = np.abs(overlap)
    for _ in range(len(vectors)):
        mine, theirs = np.unravel_index(int(left.argmax()), left.shape)
        aligned[theirs] = vectors[mine] * (-1.0 if overlap[mine, theirs] < 0 else 1.0)
        left[mine, :] = left[:, theirs] = -1.0
    return aligned
