"""What the validators of sums tell: a verdict, estimates and how far off they may be, DP all of
them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact
from ptklib.validators.verdict import ACCEPT, RETRY

__all__ = ["SumVerdict", "divergence_bounds", "tolerance_exact"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SumVerdict:
    """Estimates, and the largest absolute error that any of them has with the stated confidence;
    infinite where so few records were told of that nothing is known.
    """

    outcome: str
    estimates: tuple[float, ...]
    error: float

    @classmethod
    def of(cls, estimates: tuple[float, ...], error: float, tolerance: Fraction) -> SumVerdict:
        """ACCEPT where the error is within the tolerance, else RETRY. Post-processing."""
        return cls(ACCEPT if error <= tolerance else RETRY, estimates, error)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "outcome": self.outcome,
            "estimates": list(self.estimates),
            "error": self.error if math.isfinite(self.error) else None,
        }


def tolerance_exact(tolerance: Number) -> Fraction:
    """An absolute error that is allowed: above 0."""
    allowed = exact(tolerance, name="tolerance")
    if allowed == 0:
        raise InvalidInput("TOLERANCE_INVALID", "a tolerance must be above 0, got 0")
    return allowed


def divergence_bounds(shares: Floats, budget: float) -> tuple[Floats, Floats]:
    """The least and the largest p with kl(share, p) <= ``budget``, rounded outwards.

    The mean of n independent numbers in [0, 1] has a kl from its expectation above b/n with a
    chance of at most 2 exp(-b) (Chernoff; Hoeffding 1963 for all laws).
    """
    return 1 - _above(1 - shares, budget), _above(shares, budget)


def _above(shares: Floats, budget: float) -> Floats:
    from scipy.special import rel_entr  # slow to import, and not needed by those who only read

    low, high = shares.copy(), np.ones(shares.shape)
    for _ in range(60):
        middle = (low + high) / 2
        inside = rel_entr(shares, middle) + rel_entr(1 - shares, 1 - middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high
