"""Integer vectors with noise: Laplace, Gaussian, and the count.

Data is integer already (`fixed_point` makes it so), noise is exact integer noise, and their sum is
exact: nothing here depends on floating point. Noise goes to **every** entry, zeros and empty cells
included; which entries exist must be public. The sensitivity is the caller's claim from public
bounds, never from the data.

Reasons: those of `inputs` and `amounts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.amounts import Number, epsilon_exact, exact
from ptklib.privacy.costs import DiscreteLaplaceCost, GaussianCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.inputs import (
    IntegerData,
    integer,
    integer_array,
    noise_scale,
    saturated_sum,
    sensitivity_exact,
    sensitivity_integer,
)
from ptklib.privacy.noise.sampler import discrete_laplace, rounded_gaussian
from ptklib.privacy.noise.source import BitSource

__all__ = ["CountRelease", "GaussianRelease", "LaplaceRelease", "ReleasedCount", "ReleasedVector"]


@dataclass(frozen=True)
class ReleasedVector:
    """Noisy values (read-only int64, in the unit and shape of the data) and what they cost."""

    values: NDArray[np.int64]
    cost: DiscreteLaplaceCost | GaussianCost


@dataclass(frozen=True)
class ReleasedCount:
    """A noisy count, which may be negative: clamping it is free, but biases sums of counts."""

    value: int
    cost: DiscreteLaplaceCost


@dataclass(frozen=True, init=False)
class LaplaceRelease:
    """Discrete Laplace noise of scale ``sensitivity / epsilon`` on every entry.

    *Unit*: that of the data, integers. *Neighbours*: add or remove one unit of privacy (record or user).
    *Sensitivity*: ``sensitivity`` bounds the L1 distance of the vectors of any two neighbours.
    *Cost*: P(v + X = y) is proportional to exp(-|y - v|/scale) in each entry, independently, so neighbours' probabilities
    differ by a factor of at most exp(|v - v'|_1/scale) <= exp(epsilon). The scale is an exact fraction.
    """

    epsilon: Fraction
    sensitivity: int
    scale: Fraction
    cost: DiscreteLaplaceCost

    def __init__(self, *, epsilon: Number, sensitivity: int) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level, reach = epsilon_exact(epsilon), sensitivity_integer(sensitivity)
        scale = noise_scale(reach / level)
        keep(
            self,
            epsilon=level,
            sensitivity=reach,
            scale=scale,
            cost=DiscreteLaplaceCost(scale=scale, sensitivity=reach),
        )

    def release(self, values: IntegerData, *, source: BitSource | None = None) -> ReleasedVector:
        """The values with fresh noise. Every call costs ``cost``."""
        data = integer_array(values, name="values")
        noise = discrete_laplace(data.shape, self.scale, source=source)
        return ReleasedVector(saturated_sum(data, noise), self.cost)


@dataclass(frozen=True, init=False)
class GaussianRelease:
    """Gaussian noise of standard deviation ``sigma``, rounded to integers, on every entry.

    *Unit*: that of the data, integers. *Neighbours*: add or remove one unit of privacy (record or
    user). *Sensitivity*: ``sensitivity`` bounds the L2 distance of the vectors of any two
    neighbours; it need not be whole. *Cost*: for an integer v, v + round(N) = round(v + N), so this
    is post-processing of the continuous Gaussian mechanism and costs what that costs: Gaussian DP
    with mu = sensitivity/sigma.
    """

    sigma: Fraction
    sensitivity: Fraction
    cost: GaussianCost

    def __init__(self, *, sigma: Number, sensitivity: Number) -> None:
        """Check the parameters and fix the cost; no data yet."""
        spread = noise_scale(exact(sigma, name="sigma"), name="sigma")
        reach = sensitivity_exact(sensitivity)
        keep(
            self,
            sigma=spread,
            sensitivity=reach,
            cost=GaussianCost(sigma=spread, sensitivity=reach),
        )

    def release(self, values: IntegerData, *, source: BitSource | None = None) -> ReleasedVector:
        """The values with fresh noise. Every call costs ``cost``."""
        data = integer_array(values, name="values")
        noise = rounded_gaussian(data.shape, self.sigma, source=source)
        return ReleasedVector(saturated_sum(data, noise), self.cost)


@dataclass(frozen=True, init=False)
class CountRelease:
    """How many units there are: discrete Laplace noise of scale ``1 / epsilon``.

    *Unit*: what is counted, records at event level or users at user level. *Neighbours*: add or
    remove one of them. *Sensitivity*: 1, by the choice of the unit. (The number of *records* at
    user level has the sensitivity of the bound on records per user: that is a `LaplaceRelease`.)
    *Cost*: that of `LaplaceRelease` at sensitivity 1.
    """

    epsilon: Fraction
    scale: Fraction
    cost: DiscreteLaplaceCost

    def __init__(self, *, epsilon: Number) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level = epsilon_exact(epsilon)
        scale = noise_scale(1 / level)
        keep(self, epsilon=level, scale=scale, cost=DiscreteLaplaceCost(scale=scale, sensitivity=1))

    def release(self, count: int, *, source: BitSource | None = None) -> ReleasedCount:
        """The count with fresh noise. Every call costs ``cost``."""
        data = np.array([integer(count, name="count")], dtype=np.int64)
        noise = discrete_laplace(1, self.scale, source=source)
        return ReleasedCount(int(saturated_sum(data, noise)[0]), self.cost)
