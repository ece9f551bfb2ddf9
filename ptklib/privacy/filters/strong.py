"""Strong composition for adaptive parameters (Rogers, Roth, Ullman & Vadhan 2016, Thm 5.1).

With e_i, d_i the charges, S2 = sum e_i^2 and L = log(1/delta), admit while sum d_i <= delta/2 and

    sum e_i (exp(e_i) - 1) / 2  +  root(S2)  <=  epsilon, root(S2) = sqrt(2 (S2 + epsilon^2/(28.04
    L)) (1 + 1/2 log(28.04 L S2/epsilon^2 + 1)) log(2/delta)),

which needs delta < 1/e. Loss: [the linear sum in nano, S2 in pico, delta in atto].

The square root and the logarithms are evaluated once, to 100 digits, when the filter is made:
``squares`` are `STEPS` equal steps up to the S2 at which nothing is left, and ``linears`` what the
linear sum may be up to each of them, rounded down. Judging is a look-up in these integers, so every
machine agrees; a point loses at most one step, 0.4 %.
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
from ptklib.privacy.amounts import ATTO, NANO, ceil_units, floor_units, show
from ptklib.privacy.bisection import last_true
from ptklib.privacy.costs import Cost
from ptklib.privacy.filters.base import LOSS_LIMIT, Bools, Demand, Filter, Ints, unsupported

__all__ = ["PICO", "STEPS", "StrongFilter"]

# S2 <= epsilon^2 / (2 log(2/delta)) < 3.1e5 for the largest promise: 3.1e17 pico, far inside 64
# bits.
PICO = 10**12
STEPS = 256
_CONSTANT = Fraction("28.04")
# exp of more than this would overflow and fits no promise.
_HUGE = 100


@dataclass(frozen=True, kw_only=True)
class StrongFilter(Filter):
    """``strong``."""

    compositions: ClassVar[tuple[str, ...]] = ("strong",)
    json_fields: ClassVar[frozenset[str]] = Filter.json_fields | {"squares", "linears"}
    squares: Demand
    linears: Demand

    def __post_init__(self) -> None:
        """The table falls as the squares rise."""
        super().__post_init__()
        whole = all(type(n) is int and n >= 0 for n in (*self.squares, *self.linears))
        if (
            not whole
            or not self.squares
            or len(self.squares) != len(self.linears)
            or list(self.squares) != sorted(self.squares)
            or list(self.linears) != sorted(self.linears, reverse=True)
            or self.width != 3
        ):
            raise InvalidInput(
                "FILTER_INVALID", "squares must rise and linears fall, equally many integers from 0"
            )

    @classmethod
    def of(cls, composition: str, epsilon: Fraction, delta: Fraction) -> StrongFilter:
        """The filter of a policy."""
        if not 0 < delta < Fraction(36787, 100_000):
            raise InvalidInput(
                "POLICY_INVALID_DELTA",
                f"strong composition must have 0 < delta < 1/e, got {show(delta)}: use basic or "
                "renyi",
                field="delta",
            )
        most = _largest_square(epsilon, delta)
        if most < STEPS:
            raise InvalidInput(
                "POLICY_INVALID_EPSILON",
                f"strong composition must have a larger epsilon, got {show(epsilon)}: use basic",
                field="epsilon",
            )
        squares = tuple(most * step // STEPS for step in range(1, STEPS + 1))
        linears = tuple(
            math.floor((curves.precise(epsilon) - _root(s, epsilon, delta)) * NANO) for s in squares
        )
        capacity = (linears[0], most, floor_units(delta / 2, ATTO))
        return cls._promised(
            composition, epsilon, delta, capacity, squares=squares, linears=linears
        )

    def fresh_demand(self, cost: Cost) -> Demand:
        """The terms of the sums, rounded up; the parts of a sum count one by one."""
        total = [0, 0, 0]
        for part in cost.parts_of_sum():
            known = part.basic()
            if known is None:
                raise unsupported(
                    part,
                    self.composition,
                    "choose a delta d and charge ApproxCost(epsilon=cost.epsilon(d), delta=d)",
                )
            total = [a + b for a, b in zip(total, self._terms(*known), strict=True)]
        return tuple(min(amount, top) for amount, top in zip(total, self.ceiling, strict=True))

    def _terms(self, epsilon: Fraction, delta: Fraction) -> Demand:
        linear = self.ceiling[0]
        if epsilon < _HUGE:
            linear = ceil_units(
                Fraction(curves.up(float(epsilon) * math.expm1(float(epsilon)) / 2)), NANO
            )
        return linear, ceil_units(epsilon * epsilon, PICO), ceil_units(delta, ATTO)

    def judge_one(self, loss: list[int], demand: list[int]) -> bool:
        """Its bound is no sum, so one point is judged like many."""
        row = np.array([loss], dtype=np.int64)
        asked = np.array(demand, dtype=np.int64)
        return (
            bool(self._judge(row, asked, row <= self._room - asked)[0]) and max(loss) <= LOSS_LIMIT
        )

    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:
        admitted = np.asarray(fits.all(axis=1))
        # Only rows that fit are added up, so no sum can overflow.
        total = losses[admitted, :2] + demand[:2]
        step = np.searchsorted(np.array(self.squares, dtype=np.int64), total[:, 1], side="left")
        admitted[admitted] = total[:, 0] <= np.array(self.linears, dtype=np.int64)[step]
        return admitted

    def _parts(self, share: Fraction) -> dict[str, Any]:
        return {
            **super()._parts(share),
            "squares": tuple(math.floor(square * share) for square in self.squares),
            "linears": tuple(math.floor(linear * share) for linear in self.linears),
        }

    def spent(self, loss: Sequence[int]) -> tuple[float, float]:
        """The bound itself; at half of delta and the deltas spent."""
        if not any(loss):
            return 0.0, 0.0
        bound = loss[0] / NANO + float(_root(loss[1], self.epsilon, self.delta))
        return bound, float(self.delta / 2) + loss[2] / ATTO

    def as_json(self) -> dict[str, Any]:
        """With the table."""
        return {**super().as_json(), "squares": list(self.squares), "linears": list(self.linears)}

    @classmethod
    def extra_from_json(cls, body: dict[str, Any]) -> dict[str, Any]:
        """The table."""
        if not isinstance(body["squares"], list) or not isinstance(body["linears"], list):
            raise InvalidInput("FILTER_INVALID", "squares and linears must be lists of integers")
        return {"squares": tuple(body["squares"]), "linears": tuple(body["linears"])}


def _root(square_pico: int, epsilon: Fraction, delta: Fraction) -> Any:
    square, promise = curves.precise(Fraction(square_pico, PICO)), curves.precise(epsilon)
    weight = curves.precise(_CONSTANT) * curves.log(1 / curves.precise(delta)) / promise**2
    inner = 2 * (square + 1 / weight) * (1 + curves.log(weight * square + 1) / 2)
    return (inner * curves.log(2 / curves.precise(delta))) ** 0.5


def _largest_square(epsilon: Fraction, delta: Fraction) -> int:
    """The largest S2, in pico, with root(S2) <= epsilon; 0 when there is none."""
    promise = curves.precise(epsilon)
    return last_true(
        lambda square: bool(_root(square, epsilon, delta) <= promise),
        0,
        math.ceil(epsilon * epsilon * PICO) + 1,
    )
