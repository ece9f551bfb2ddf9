"""A given Renyi curve, and sums of costs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.costs.base import Cost, positive
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = ["Composed", "RenyiCost"]

MAX_POINTS = 1000


@dataclass(frozen=True, init=False, repr=False)
class RenyiCost(Cost):
    """A Renyi curve known at some orders.

    Between two given orders: (a-1)R(a) is convex, so its chord is an upper bound. Below the
    smallest: R does not fall with the order, so the smallest order's value. Above the largest: no
    bound.
    """

    kind: ClassVar[str] = "renyi"
    orders: tuple[Fraction, ...]
    values: tuple[Fraction, ...]

    def __init__(self, *, orders: Iterable[Number], values: Iterable[Number]) -> None:
        """Orders above 1, rising; one non-negative value each."""
        points = tuple(positive(order, name="order", at_most=10**9) for order in orders)
        bounds = tuple(exact(value, name="Renyi divergence") for value in values)
        if not 0 < len(points) <= MAX_POINTS or len(points) != len(bounds):
            raise InvalidInput(
                "COST_INVALID",
                f"a Renyi curve must have one value per order and 1 to {MAX_POINTS} orders, got "
                f"{len(points)} orders "
                f"and {len(bounds)} values",
            )
        if points[0] <= 1 or any(a >= b for a, b in pairwise(points)):
            raise InvalidInput(
                "COST_INVALID", "the orders of a Renyi curve must be above 1 and rising"
            )
        keep(self, orders=points, values=bounds)

    def renyi(self, orders: Floats) -> Floats:
        """The given curve, filled in from above."""
        known = np.array([float(order) for order in self.orders])
        value = np.array([float(bound) for bound in self.values])
        inner = np.clip(orders, known[0], known[-1])
        filled = np.interp(inner, known, (known - 1) * value) / (inner - 1)
        filled = np.where(orders <= known[0], value[0], filled)
        return np.asarray(
            np.where(orders <= known[-1], filled * (1 + curves.MARGIN), np.inf), dtype=np.float64
        )

    def grid(self) -> Floats:
        """The usual ones and its own."""
        return np.union1d(curves.ORDERS, np.array([float(order) for order in self.orders]))

    def merged(self, other: Cost) -> Cost | None:
        """Curves at the same orders add up point by point."""
        if not isinstance(other, RenyiCost) or other.orders != self.orders:
            return None
        return RenyiCost(
            orders=self.orders,
            values=[a + b for a, b in zip(self.values, other.values, strict=True)],
        )


@dataclass(frozen=True, init=False, repr=False)
class Composed(Cost):
    """The cost of several mechanisms on the same data: every currency adds up, and is unknown where
    a part's is.

    Parts are kept in a canonical order, so that equal sums are equal values. `epsilon` and `delta`
    are those of mechanisms fixed in advance; an adaptive choice of costs is judged by a filter,
    never by these.
    """

    kind: ClassVar[str] = "composed"
    parts: tuple[Cost, ...]

    def __init__(self, *, parts: Iterable[Cost]) -> None:
        """Sums inside are flattened."""
        flat = [term for part in parts for term in part.parts_of_sum()]
        if not flat:
            raise InvalidInput(
                "COST_INVALID", "a composed cost must have at least one part, got none"
            )
        keep(
            self,
            parts=tuple(sorted(flat, key=lambda part: json.dumps(part.as_json(), sort_keys=True))),
        )

    def basic(self) -> tuple[Fraction, Fraction] | None:
        """The sums."""
        known = [part.basic() for part in self.parts]
        pairs = [pair for pair in known if pair is not None]
        if len(pairs) < len(known):
            return None
        return sum((e for e, _ in pairs), Fraction(0)), sum((d for _, d in pairs), Fraction(0))

    def renyi(self, orders: Floats) -> Floats:
        """The sum, order by order."""
        total = np.zeros(orders.shape)
        for part, times in Counter(self.parts).items():
            total += times * part.renyi(orders)
        return total * (1 + curves.MARGIN)

    def slack(self) -> Fraction:
        """The sum."""
        return sum((part.slack() for part in self.parts), Fraction(0))

    def mu_squared(self) -> Fraction | float | None:
        """The sum; exact when all parts are."""
        total = Fraction(0)
        is_exact = True
        for part, times in Counter(self.parts).items():
            mu_squared = part.mu_squared()
            if mu_squared is None:
                return None
            is_exact = is_exact and isinstance(mu_squared, Fraction)
            total += times * Fraction(mu_squared)
        return total if is_exact else curves.up(float(total))

    def grid(self) -> Floats:
        """All orders any part looks at."""
        return np.unique(np.concatenate([part.grid() for part in set(self.parts)]))

    def parts_of_sum(self) -> tuple[Cost, ...]:
        """Its terms."""
        return self.parts
