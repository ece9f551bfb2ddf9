"""The best of a random number of runs, of which only the best is seen.

K is drawn from a law that does not know the data, the same mechanism is run K times with fresh
noise, and the best output, by an order on outputs that the output itself shows, is released. Liu &
Talwar 2019; Papernot & Steinke 2022, whose Theorems 2 and 6 these are. Under renyi composition it
costs a few times one run, *however large K is on average*. Choosing the best of a *fixed* number of
runs has no such bound: it costs all of them (`Composed`).

**Proof note.** *Unit, neighbours*: those of the base cost, for which the base is private in both
directions. Let f(x) = E[x^K] and let the outputs be ordered; ties do not matter, as runs are
exchangeable. With Q the law of one run, the law of the best is A(y) = f(Q(<= y)) - f(Q(< y)), that
is Q(y) times the mean of f'(x) over x from Q(< y) to Q(<= y), and each such x is the chance of one
event under post-processing of a run: draw y', and where it is y a coin. Write a = 1 - x for the
chance of its opposite, and a' for that under the neighbour. (P, R) -> P^t R^(1-t) is jointly
convex, so

    sum_y A(y)^t A'(y)^(1-t)  <=  sum_y Q(y)^t Q'(y)^(1-t)  *  max over (a, a') of f'^t f''^(1-t).

*Negative binomial* of shape s, stopping chance g: f'(x) = E[K] (g / (g + (1-g) a))^(1+s) <= E[K],
so the maximum is at most E[K] times ((g + (1-g) a') / (g + (1-g) a))^((1+s)(t-1)). The bracket is
the ratio of an event of chance at least g (again post-processing of one run), and for a base with
Renyi divergence e' at order t' an event of chance p has p' <= (p exp(e'))^(1-1/t'), so the ratio is
at most exp((1-1/t') e') g^(-1/t'). Together, for every t':

    R(t) = e(t) + (1+s) ((1 - 1/t') e' + log(1/g) / t') + log E[K] / (t-1).

*Poisson* of mean m: f'^t f''^(1-t) = m exp(m ((t-1) a' - t a)). If the base is (e, d)-DP with
exp(e) <= t/(t-1), then a' <= exp(e) a + d makes the exponent at most m (t-1) d. K = 0 releases
nothing, with chance exp(-m) on both sides:

    R(t) = log(exp(-m) + m exp((t-1) (e(t) + m d))) / (t-1).

Reasons: COST_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.costs.base import Cost, positive
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = [
    "BestOfNegativeBinomialCost",
    "BestOfPoissonCost",
    "mean_of_negative_binomial",
]

MAX_MEAN = 10_000
# Each order of a Poisson law needs a delta of the base; few orders do.
_POISSON_ORDERS: Floats = np.unique(
    np.concatenate([1 + np.geomspace(0.2, 1, 4), np.round(np.geomspace(3, 512, 20)), [np.inf]])
)


def mean_of_negative_binomial(shape: Fraction, stop: Fraction) -> float:
    """E[K] of the negative binomial law without its zero; logarithmic at shape 0, geometric at
    1.
    """
    s, g = float(shape), float(stop)
    if s < 1e-6:
        # Increasing in the shape, so a shape a little above 0 is bounded by that at 1e-6.
        if s == 0:
            return (1 / g - 1) / -math.log(g)
        s = 1e-6
    return s * (1 - g) / (g * -math.expm1(s * math.log(g)))


@dataclass(frozen=True, init=False, repr=False)
class BestOfNegativeBinomialCost(Cost):
    """The best of K runs, K >= 1 negative binomial with its zero left out: P(K = k) is proportional
    to (1-stop)^k times (shape choose ...), which is (1-stop)^k / k at shape 0 and (1-stop)^k at 1.

    For a base that is epsilon-DP: (2 + shape) epsilon, exactly.
    """

    kind: ClassVar[str] = "best_of_negative_binomial"
    base: Cost
    shape: Fraction
    stop: Fraction

    def __init__(self, *, base: Cost, shape: Number, stop: Number) -> None:
        """Shape from 0 to 1, stopping chance in (0, 1)."""
        bend, chance = exact(shape, name="shape"), positive(stop, name="stop")
        if bend > 1 or chance >= 1 or 1 / chance > MAX_MEAN:
            raise InvalidInput(
                "COST_INVALID",
                f"shape must be from 0 to 1 and stop from 1/{MAX_MEAN} to below 1, got "
                f"{show(bend)} and {show(chance)}",
            )
        keep(self, base=_without_slack(base), shape=bend, stop=chance)

    def basic(self) -> tuple[Fraction, Fraction] | None:
        """(2 + shape) epsilon for a pure base."""
        known = self.base.basic()
        return None if known is None else ((2 + self.shape) * known[0], Fraction(0))

    def renyi(self, orders: Floats) -> Floats:
        """The bound of the proof note, at the best second order."""
        return _falling_no_more(self._bound, orders, self.grid())

    def _bound(self, orders: Floats) -> Floats:
        grid = self.base.grid()
        with np.errstate(invalid="ignore"):
            inverse = 1 / grid
            second = (1 - inverse) * self.base.renyi(grid) - inverse * math.log(self.stop)
        extra = (1 + float(self.shape)) * float(np.min(second[np.isfinite(second)], initial=np.inf))
        runs = mean_of_negative_binomial(self.shape, self.stop)
        total = self.base.renyi(orders) + extra + max(0.0, math.log(runs)) / (orders - 1)
        return np.asarray(total * (1 + curves.SUM_MARGIN), dtype=np.float64)

    def grid(self) -> Floats:
        """That of the base."""
        return self.base.grid()


@dataclass(frozen=True, init=False, repr=False)
class BestOfPoissonCost(Cost):
    """The best of K runs, K Poisson; nothing where K is 0."""

    kind: ClassVar[str] = "best_of_poisson"
    base: Cost
    mean: Fraction

    def __init__(self, *, base: Cost, mean: Number) -> None:
        """A mean of at most `MAX_MEAN`."""
        keep(
            self,
            base=_without_slack(base),
            mean=positive(mean, name="mean", at_most=MAX_MEAN),
        )

    def renyi(self, orders: Floats) -> Floats:
        """The bound of the proof note; none at the order inf."""
        return _falling_no_more(self._bound, orders, self.grid())

    def _bound(self, orders: Floats) -> Floats:
        return np.array([self._at(float(order)) for order in orders], dtype=np.float64)

    def _at(self, order: float) -> float:
        if math.isinf(order):
            return math.inf
        # A little below log(order / (order - 1)): a smaller epsilon has a larger delta, and is valid.
        level = Fraction(-math.log1p(-1 / order) * (1 - curves.MARGIN)).limit_denominator(10**9)
        level = max(Fraction(0), level - Fraction(1, 10**9))
        mean = float(self.mean)
        known = float(self.base.renyi(np.array([order]))[0])
        power = (order - 1) * (known + mean * self.base.delta(level)) + math.log(mean)
        return curves.up(float(np.logaddexp(-mean, power)) / (order - 1))

    def grid(self) -> Floats:
        """Few orders; each asks the base for a delta."""
        return _POISSON_ORDERS


def _falling_no_more(bound: Callable[[Floats], Floats], orders: Floats, grid: Floats) -> Floats:
    """A bound that rises near order 1, mended: the divergence does not fall with the order, so at
    each order the least bound of it and of all orders above holds.
    """
    points = np.union1d(orders, grid)
    least = np.minimum.accumulate(bound(points)[::-1])[::-1]
    return np.asarray(least[np.searchsorted(points, orders)], dtype=np.float64)


def _without_slack(base: Cost) -> Cost:
    """A base whose Renyi curve says everything, or a refusal."""
    if base.slack() > 0:
        raise InvalidInput(
            "COST_INVALID",
            "the best of several runs needs a base without a delta of its own, got one with "
            f"{show(base.slack())}: choose by a mechanism with a Renyi curve",
        )
    return base
