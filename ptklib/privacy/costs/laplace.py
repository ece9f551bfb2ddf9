"""Laplace noise: continuous, and the discrete one that is actually sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import MAX_EPSILON, Number, delta_exact, exact
from ptklib.privacy.costs.base import Cost, count, positive
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = ["DiscreteLaplaceCost", "LaplaceCost"]


@dataclass(frozen=True, init=False, repr=False)
class LaplaceCost(Cost):
    """Laplace noise on the real line; ``sensitivity`` is the L1 change of the whole vector.

    Proof for vectors. Spread the change t1 + ... + td = T over independent coordinates and pass
    through the hybrids one coordinate at a time: by the group-privacy lemma of trade-off functions
    (Dong, Roth & Su 2022) the pair is at least as hard to tell apart as f_td o (1 - ...) o (1 -
    f_t1). Laplace noise is log-concave, so one threshold test is optimal for every shift, f_t(x) =
    F(F^-1(1-x) - t), and that chain is f_T: the whole change on one coordinate is the worst case,
    in every currency.
    """

    kind: ClassVar[str] = "laplace"
    scale: Fraction
    sensitivity: Fraction

    def __init__(self, *, scale: Number, sensitivity: Number = 1) -> None:
        """Scale and sensitivity are in the same unit; their ratio, epsilon, is at most
        `amounts.MAX_EPSILON`.
        """
        keep(
            self,
            scale=positive(scale, name="scale"),
            sensitivity=positive(sensitivity, name="sensitivity"),
        )
        _check(self.sensitivity / self.scale)

    def basic(self) -> tuple[Fraction, Fraction]:
        """(sensitivity / scale, 0)."""
        return self.sensitivity / self.scale, Fraction(0)

    def renyi(self, orders: Floats) -> Floats:
        """Closed form (Mironov 2017)."""
        return curves.laplace_renyi(orders, self.basic()[0])

    def mu_squared(self) -> float:
        """That of pure epsilon."""
        return curves.mu_squared_of_pure(self.basic()[0])

    def epsilon(self, delta: Number) -> float:
        """Exact: T + 2 log(1 - delta)."""
        loss = float(self.basic()[0])
        return max(
            0.0, curves.up(loss + 2 * math.log1p(-float(delta_exact(delta))) + curves.MARGIN * loss)
        )

    def delta(self, epsilon: Number) -> float:
        """Exact: 1 - exp((epsilon - T) / 2)."""
        gap = self.basic()[0] - exact(epsilon, name="epsilon")
        return curves.up(-math.expm1(-float(gap) / 2)) if gap > 0 else 0.0


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplaceCost(Cost):
    """Noise k on the integers with P(k) proportional to exp(-|k| / scale); ``sensitivity`` is an L1 change in units.

    The discrete noise is *worse* than the continuous one of the same scale: at a sensitivity of one
    unit it is exactly randomized response at 1/scale, so the continuous curve would under-charge.

    Proof for vectors. With t = 1/scale the moment at order a is S(D) = A exp((a-1)tD) + B exp(-atD)
    for a change of D units in one coordinate, with A, B > 0, A + B = 1 independent of D
    (`curves.laplace_renyi`). log S is a log-sum-exp of functions affine in D, hence convex, and log
    S(0) = 0. So R = log S / (a-1) is convex with R(0) = 0, hence superadditive: R(d1) + ... + R(dn)
    <= R(d1 + ... + dn), and one coordinate carrying the whole L1 change is the worst case. For the
    profile the argument of `LaplaceCost` applies word for word: the noise is log-concave.
    """

    kind: ClassVar[str] = "discrete_laplace"
    scale: Fraction
    sensitivity: int

    def __init__(self, *, scale: Number, sensitivity: int) -> None:
        """Both in units of the integer grid; their ratio, epsilon, is at most
        `amounts.MAX_EPSILON`.
        """
        units = count(sensitivity, name="sensitivity", at_most=10**24)
        keep(self, scale=positive(scale, name="scale"), sensitivity=units)
        _check(self.sensitivity / self.scale)

    def basic(self) -> tuple[Fraction, Fraction]:
        """(sensitivity / scale, 0)."""
        return self.sensitivity / self.scale, Fraction(0)

    def renyi(self, orders: Floats) -> Floats:
        """Closed form."""
        return curves.laplace_renyi(orders, self.basic()[0], 1 / self.scale)

    def mu_squared(self) -> float:
        """That of pure epsilon."""
        return curves.mu_squared_of_pure(self.basic()[0])

    def epsilon(self, delta: Number) -> float:
        """The profile, inverted."""
        chance = delta_exact(delta)
        if chance == 0:
            return curves.up(float(self.basic()[0]))
        epsilon = curves.epsilon_of_delta(
            lambda level: self._profile(Fraction(level)), curves.precise(chance)
        )
        return min(curves.up(epsilon), curves.up(float(self.basic()[0])))

    def delta(self, epsilon: Number) -> float:
        """P(k <= m) - exp(epsilon) P(k <= m - sensitivity) at the m where the log ratio falls below
        epsilon.
        """
        return max(0.0, curves.up(float(self._profile(exact(epsilon, name="epsilon")))))

    def _profile(self, epsilon: Fraction) -> Any:
        if epsilon >= self.basic()[0]:
            return curves.precise(0)
        # The last k with (sensitivity - 2k) / scale > epsilon; exact, because a wrong k would
        # under-state delta.
        last = math.ceil((self.sensitivity - epsilon * self.scale) / 2) - 1
        step = curves.precise(1 / self.scale)
        above = curves.exp(-step * (last + 1)) + curves.exp(
            curves.precise(epsilon) - step * (self.sensitivity - last)
        )
        return 1 - above / (1 + curves.exp(-step))


def _check(epsilon: Fraction) -> None:
    if epsilon > MAX_EPSILON:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE",
            f"sensitivity / scale must be at most {MAX_EPSILON}, got {float(epsilon):g}",
        )
