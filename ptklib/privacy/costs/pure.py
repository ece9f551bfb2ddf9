"""Costs that are stated as an epsilon: pure, (epsilon, delta), and the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, exact
from ptklib.privacy.costs.base import Cost
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = ["ApproxCost", "ExponentialCost", "PureCost"]


@dataclass(frozen=True, init=False, repr=False)
class _StatedCost(Cost):
    """A cost whose epsilon is all that is kept."""

    kind: ClassVar[str] = "_stated"
    stated_epsilon: Fraction

    def __init__(self, *, epsilon: Number) -> None:
        """Epsilon is positive and at most `amounts.MAX_EPSILON`."""
        keep(self, stated_epsilon=epsilon_exact(epsilon))

    def basic(self) -> tuple[Fraction, Fraction]:
        """(epsilon, 0)."""
        return self.stated_epsilon, Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class PureCost(_StatedCost):
    """epsilon-DP, and nothing more is known: randomized response is the worst case in every
    currency.

    Two of them stay two in a sum: one of the summed epsilon would be looser in every currency but
    the basic one.
    """

    kind: ClassVar[str] = "pure"

    def renyi(self, orders: Floats) -> Floats:
        """The curve of randomized response."""
        return curves.pure_renyi(orders, self.stated_epsilon)

    def mu_squared(self) -> float:
        """See `curves.mu_squared_of_pure`."""
        return curves.mu_squared_of_pure(self.stated_epsilon)

    def epsilon(self, delta: Number) -> float:
        """Of randomized response: log(exp(e) - delta (1 + exp(e)))."""
        return leaky_epsilon(self.stated_epsilon, Fraction(0), delta_exact(delta))

    def delta(self, epsilon: Number) -> float:
        """Of randomized response: (exp(e) - exp(epsilon)) / (1 + exp(e))."""
        return leaky_delta(self.stated_epsilon, Fraction(0), exact(epsilon, name="epsilon"))


@dataclass(frozen=True, init=False, repr=False)
class ApproxCost(Cost):
    """(epsilon, delta)-DP.

    The worst case (Kairouz, Oh & Viswanath 2015): with probability delta everything is revealed,
    otherwise the answer is randomized response at epsilon; every (epsilon, delta)-DP pair is
    post-processing of it. The first part is the ``slack``, the second has the Renyi curve of
    `PureCost`.
    """

    kind: ClassVar[str] = "approx"
    stated_epsilon: Fraction
    stated_delta: Fraction

    def __init__(self, *, epsilon: Number, delta: Number) -> None:
        """Delta is positive; a cost with delta = 0 is a `PureCost`."""
        chance = delta_exact(delta)
        if chance == 0:
            raise InvalidInput(
                "AMOUNT_ZERO", "delta must be positive, got 0: use PureCost(epsilon=...)"
            )
        keep(self, stated_epsilon=epsilon_exact(epsilon), stated_delta=chance)

    def basic(self) -> tuple[Fraction, Fraction]:
        """As stated."""
        return self.stated_epsilon, self.stated_delta

    def renyi(self, orders: Floats) -> Floats:
        """Of the part that does not fail."""
        return curves.pure_renyi(orders, self.stated_epsilon)

    def slack(self) -> Fraction:
        """The probability of failure."""
        return self.stated_delta

    def epsilon(self, delta: Number) -> float:
        """Of the leaky randomized response; inf below the stated delta."""
        return leaky_epsilon(self.stated_epsilon, self.stated_delta, delta_exact(delta))

    def delta(self, epsilon: Number) -> float:
        """Of the leaky randomized response; never below the stated delta."""
        return leaky_delta(self.stated_epsilon, self.stated_delta, exact(epsilon, name="epsilon"))


@dataclass(frozen=True, init=False, repr=False)
class ExponentialCost(_StatedCost):
    """The exponential mechanism with weights exp(epsilon u / (2 sensitivity)), and report-noisy-max
    with Gumbel noise.

    It is epsilon-DP and also epsilon-bounded-range: the log ratio of two answers' odds varies by at
    most epsilon, hence epsilon^2/8-zCDP (Cesar & Rogers 2021), four times better than what pure
    epsilon implies for small epsilon.
    """

    kind: ClassVar[str] = "exponential"

    def renyi(self, orders: Floats) -> Floats:
        """The lesser of the pure curve and the line of the bounded range."""
        line = orders * (float(self.stated_epsilon) ** 2 / 8 * (1 + curves.MARGIN))
        return np.asarray(
            np.minimum(curves.pure_renyi(orders, self.stated_epsilon), line), dtype=np.float64
        )

    def mu_squared(self) -> float:
        """That of pure epsilon; zCDP alone has none."""
        return curves.mu_squared_of_pure(self.stated_epsilon)

    def epsilon(self, delta: Number) -> float:
        """The better of the pure profile and the general one."""
        return min(
            super().epsilon(delta),
            leaky_epsilon(self.stated_epsilon, Fraction(0), delta_exact(delta)),
        )

    def delta(self, epsilon: Number) -> float:
        """The better of the pure profile and the general one."""
        level = exact(epsilon, name="epsilon")
        return min(super().delta(epsilon), leaky_delta(self.stated_epsilon, Fraction(0), level))


def leaky_delta(stated: Fraction, leak: Fraction, epsilon: Fraction) -> float:
    """delta(epsilon) of leaky randomized response: leak + (1 - leak)(exp(e) - exp(epsilon)) / (1 +
    exp(e)).
    """
    if epsilon >= stated:
        return curves.up(float(leak))
    gap = -math.expm1(float(epsilon - stated)) / (1 + math.exp(-float(stated)))
    return min(1.0, curves.up(float(leak) + float(1 - leak) * gap))


def leaky_epsilon(stated: Fraction, leak: Fraction, delta: Fraction) -> float:
    """The inverse of `leaky_delta`; inf below the leak."""
    if delta < leak:
        return math.inf
    spare = float((delta - leak) / (1 - leak)) * (1 - curves.MARGIN)
    kept = 1 - spare * (1 + math.exp(-float(stated)))
    if kept <= 0:
        return 0.0
    epsilon = float(stated) + math.log(kept)
    # Adding the margin of the larger term covers the cancellation in the sum.
    return max(0.0, curves.up(epsilon + curves.MARGIN * float(stated)))
