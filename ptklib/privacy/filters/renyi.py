"""A Renyi filter over a fixed set of orders, each with its own share of delta.

Loss: the Renyi divergence at each order in nano, and last the slack of (epsilon, delta) costs in
atto. A charge is admitted if the slack fits and **at least one order still fits**. Capacity at
order a with share w of delta:

    epsilon + log(a/(a-1)) + (log(w delta) + log a) / (a-1),      and epsilon at order inf, with w = 0.

Why every order has its own share. A single-order Renyi filter is sound for adaptive analysts
(Feldman & Zrnic 2021). "Some order fits, each with the whole delta" is not proven: on different
outcomes different orders may be the ones that survive, and their failure probabilities add up. So
let them add up to delta:

Proof. Fix neighbours D, D'. By Kairouz, Oh & Viswanath an (epsilon, delta) cost reveals everything
with probability delta_i and is epsilon-DP otherwise; the slack of what runs never exceeds its
capacity, so with all but the slack's share of probability nothing is revealed. Call M the
transcript on that event. After the last charge some order was within capacity, so at the end the
charges that ran are within capacity at some order; let E_a be the transcripts for which a is the
first such order. These sets cover all transcripts. Let M_a be the same interaction in which, in
addition, work that would take order a beyond its capacity does not start. The loss of what ran only
grows, so on E_a that never happens, and M and M_a give every S inside E_a the same probability.
(Reservations that are released make no difference: they never ran.) M_a has divergence at most
capacity_a at order a (Feldman & Zrnic), hence is (epsilon, w_a delta)-DP by `curves.capacity_at`,
and at order inf (epsilon, 0)-DP. Summing over a: P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta
sum_a w_a, and the shares with the slack's add up to one.

Most of delta goes to the order that is best for Gaussians at this promise, which also serves
Laplace and zCDP; the rest keep a little, for costs whose curve bends elsewhere. See ADR 0002 for
what this costs (about 1 % of the queries).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import ATTO, NANO, ceil_units, exact, floor_units, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.filters.base import (
    LOSS_LIMIT,
    Bools,
    Demand,
    Filter,
    Ints,
    check_delta,
    unsupported,
)

__all__ = ["BEST_SHARE", "ORDERS", "SLACK_SHARE", "RenyiFilter", "shares"]

ORDERS = 16
# Shares of delta; with all orders present they add up to one.
BEST_SHARE = Fraction(93, 100)
LOWER_SHARE = Fraction(2, 100)
UPPER_SHARES = Fraction(1, 100)
SLACK_SHARE = Fraction(2, 100)
# Orders below the best, as parts of its distance from 1: sampled Gaussians of little noise need
# them.
_LOWER = (0.75, 0.9)
# The highest finite order, likewise: pure and Laplace costs that are large beside the promise need
# it.
_REACH = 64
_UPPER = ORDERS - 2 - len(_LOWER)
# Below this the useful orders are in the millions, and basic composition does as well.
_LEAST_EPSILON = Fraction(1, 1000)


@dataclass(frozen=True, kw_only=True)
class RenyiFilter(Filter):
    """``renyi``. ``orders`` are exact; None stands for the order inf, always the last one."""

    compositions: ClassVar[tuple[str, ...]] = ("renyi",)
    json_fields: ClassVar[frozenset[str]] = Filter.json_fields | {"orders"}
    orders: tuple[Fraction | None, ...]

    def __post_init__(self) -> None:
        """One coordinate per order and one for the slack."""
        super().__post_init__()
        if len(self.orders) + 1 != self.width or any(
            order is not None and order <= 1 for order in self.orders
        ):
            raise InvalidInput(
                "FILTER_INVALID",
                "a Renyi filter must have orders above 1 and one capacity more than orders",
            )

    @classmethod
    def of(cls, composition: str, epsilon: Fraction, delta: Fraction) -> RenyiFilter:
        """The filter of a policy, with orders chosen for it."""
        check_delta(composition, delta)
        if epsilon < _LEAST_EPSILON:
            raise InvalidInput(
                "POLICY_INVALID_EPSILON",
                f"renyi composition must have epsilon >= {show(_LEAST_EPSILON)}, got "
                f"{show(epsilon)}: use basic",
                field="epsilon",
            )
        orders: list[Fraction | None] = []
        capacity: list[int] = []
        for order, share in sorted(shares(epsilon, delta).items()):
            room = math.floor(curves.capacity_at(order, epsilon, delta * share) * NANO)
            if room > 0:
                orders.append(order)
                capacity.append(room)
        capacity += [floor_units(epsilon, NANO), floor_units(delta * SLACK_SHARE, ATTO)]
        return cls._promised(composition, epsilon, delta, tuple(capacity), orders=(*orders, None))

    def fresh_demand(self, cost: Cost) -> Demand:
        """The cost's curve at the orders and its slack, rounded up; an order without a bound
        saturates.
        """
        finite = np.array([float(order) for order in self.orders if order is not None])
        basic = cost.basic()
        # Order inf is the exact epsilon, so that pure costs add up here as exactly as under basic
        # composition.
        pure = [Fraction(basic[0]) if basic is not None else None]
        curve = [
            Fraction(value) if math.isfinite(value) else None
            for value in cost.renyi(finite).tolist()
        ] + pure
        if all(value is None for value in curve):
            raise unsupported(
                cost,
                self.composition,
                f"give its curve at one of the orders {', '.join(map(_text, self.orders))}",
            )
        units = [
            top if value is None else ceil_units(value, NANO)
            for value, top in zip(curve, self.ceiling, strict=False)
        ]
        units.append(ceil_units(cost.slack(), ATTO))
        return tuple(min(value, top) for value, top in zip(units, self.ceiling, strict=True))

    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:  # noqa: ARG002
        # Reducing along the long axis is four times faster than along the short one.
        return np.asarray(np.ascontiguousarray(fits.T[:-1]).any(axis=0) & fits[:, -1])

    def judge_one(self, loss: list[int], demand: list[int]) -> bool:
        """One point: the slack, and the first order that fits."""
        capacity = self.capacity
        if loss[-1] + demand[-1] > capacity[-1] or max(loss) > LOSS_LIMIT:
            return False
        return any(loss[at] + demand[at] <= capacity[at] for at in range(len(capacity) - 1))

    def spent(self, loss: Sequence[int]) -> tuple[float, float]:
        """The least epsilon, over the orders, whose capacity this loss would just fill; at the
        whole delta.
        """
        if not any(loss):
            return 0.0, 0.0
        whole = [math.floor(c / self.share) for c in self.capacity[:-1]]
        least = min(used - most for used, most in zip(loss, whole, strict=False))
        pure = loss[len(self.orders) - 1] / NANO
        return max(0.0, min(float(self.epsilon) + least / NANO, pure)), float(self.delta)

    def as_json(self) -> dict[str, Any]:
        """With the orders."""
        return {**super().as_json(), "orders": [_text(order) for order in self.orders]}

    @classmethod
    def extra_from_json(cls, body: dict[str, Any]) -> dict[str, Any]:
        """The orders."""
        if not isinstance(body["orders"], list):
            raise InvalidInput("FILTER_INVALID", "orders must be a list")
        return {
            "orders": tuple(
                None if text == "inf" else exact(text, name="order") for text in body["orders"]
            )
        }


def _text(order: Fraction | None) -> str:
    return "inf" if order is None else show(order)


def shares(epsilon: Fraction, delta: Fraction) -> dict[Fraction, Fraction]:
    """The finite orders for a promise, each with its share of delta."""
    best = _best_excess(epsilon, delta)
    upper = np.geomspace(best, _REACH * best, _UPPER + 1)[1:].tolist()
    by_order = {_tidy(order): UPPER_SHARES / _UPPER for order in upper}
    by_order |= {_tidy(part * best): LOWER_SHARE for part in _LOWER}
    return by_order | {_tidy(best): BEST_SHARE}


def _best_excess(epsilon: Fraction, delta: Fraction) -> float:
    """Where capacity per unit of rho is largest: the order (minus one) that admits most
    Gaussians.
    """
    excess = np.geomspace(1e-3, 1e7, 20_001)
    order = 1 + excess
    room = (
        float(epsilon)
        - np.log(excess / order)
        + (math.log(delta * BEST_SHARE) + np.log(order)) / excess
    )
    return float(excess[np.argmax(room / order)])


def _tidy(excess: float) -> Fraction:
    """An order that prints short: whole from 10 on, three digits after the one below."""
    return Fraction(round(1 + excess)) if excess >= 9 else 1 + Fraction(f"{excess:.2e}")
