"""Gaussian-DP composition: mu^2 adds up under full adaptivity (Smith & Thakurta 2022; Koskela et
al. 2023).

Loss: [mu^2 in nano]. Capacity: the largest mu^2 whose exact profile is at most delta at epsilon,
rounded down. For Gaussians nothing is lost, however the analyst adapts; costs without a Gaussian-DP
bound are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import NANO, ceil_units
from ptklib.privacy.bisection import last_true
from ptklib.privacy.costs import Cost
from ptklib.privacy.filters.base import Bools, Demand, Filter, Ints, check_delta, unsupported

__all__ = ["GaussianFilter"]


@dataclass(frozen=True, kw_only=True)
class GaussianFilter(Filter):
    """``gaussian``."""

    compositions: ClassVar[tuple[str, ...]] = ("gaussian",)

    @classmethod
    def of(cls, composition: str, epsilon: Fraction, delta: Fraction) -> GaussianFilter:
        """The filter of a policy."""
        check_delta(composition, delta)
        most = _largest_mu_squared_nano(epsilon, delta)
        if most == 0:
            raise InvalidInput(
                "POLICY_INVALID_EPSILON",
                "this epsilon and delta leave less than one nano of mu^2: allow more of either",
                field="epsilon",
            )
        return cls._promised(composition, epsilon, delta, (most,))

    def fresh_demand(self, cost: Cost) -> Demand:
        """mu^2, rounded up."""
        mu_squared = cost.mu_squared()
        if mu_squared is None:
            raise unsupported(
                cost,
                self.composition,
                "use Gaussian, Laplace or pure mechanisms, or a stream with renyi composition",
            )
        return (min(ceil_units(Fraction(mu_squared), NANO), self.ceiling[0]),)

    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:  # noqa: ARG002
        return np.asarray(fits[:, 0])

    def spent(self, loss: Sequence[int]) -> tuple[float, float]:
        """Epsilon at the whole delta."""
        if loss[0] == 0:
            return 0.0, 0.0
        return curves.epsilon_of_gaussian(Fraction(loss[0], NANO), self.delta), float(self.delta)


def _largest_mu_squared_nano(epsilon: Fraction, delta: Fraction) -> int:
    level, target = curves.precise(epsilon), curves.precise(delta)

    def fits(units: int) -> bool:
        return bool(curves.delta_of_gaussian(curves.root(Fraction(units, NANO)), level) <= target)

    low, high = 0, NANO
    while fits(high):
        low, high = high, 2 * high
    return last_true(fits, low, high)
