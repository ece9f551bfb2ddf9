"""What every cost answers.

A cost is a value: what one mechanism may reveal about one unit (a record or a user, as the stream
declares), under add/remove neighbours. Each kind answers for itself in every currency a filter may
use, and **says None or inf where it has no valid bound**; a filter refuses such a cost and never
approximates it.

``basic``       exact (epsilon, delta) that needs no choice of a delta
``renyi``       an upper bound of the Renyi divergence at each order, of the part that is left after ``slack``
``slack``       the delta that no Renyi divergence can express: 0 except for (epsilon, delta) costs
``mu_squared``  a valid mu^2 of Gaussian DP
``epsilon``, ``delta``  the best point of the privacy profile that the kind knows; for people and for conversion

Numbers go in as `amounts.Number` and are kept exactly; floats appear only in answers, as upper
bounds (see `curves`).

Reasons: those of `amounts`, and COST_INVALID (parts that do not fit together), COST_UNKNOWN (a JSON
form that is not one of ours).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, exact, show
from ptklib.privacy.curves import Floats

__all__ = [
    "KINDS",
    "MAX_COUNT",
    "Cost",
    "cost_from_json",
    "count",
    "infinite",
    "positive",
    "sum_of",
]

KINDS: dict[str, type[Cost]] = {}
# Beyond this a count of steps or units is a mistake, and int64 sums would not be safe.
MAX_COUNT = 10**12


def positive(value: Number, *, name: str, at_most: int = 10**24) -> Fraction:
    """A positive number (a scale, a sensitivity), or a refusal."""
    result = exact(value, name=name)
    if result == 0:
        raise InvalidInput("AMOUNT_ZERO", f"{name} must be positive, got 0")
    if result > at_most:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE", f"{name} must be at most {at_most}, got {show(result)}"
        )
    return result


def count(value: int, *, name: str, at_most: int = MAX_COUNT) -> int:
    """A positive whole number, or a refusal."""
    result = positive(value, name=name, at_most=at_most)
    if result.denominator != 1:
        raise InvalidInput(
            "AMOUNT_NOT_A_NUMBER", f"{name} must be a whole number, got {show(result)}"
        )
    return int(result)


@dataclass(frozen=True, repr=False)
class Cost(ABC):
    """The cost of one mechanism. ``a + b`` is the cost of both."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Make the kind known to `cost_from_json`; a kind with a leading underscore has no JSON
        form.
        """
        if not cls.kind.startswith("_"):
            KINDS[cls.kind] = cls

    @abstractmethod
    def renyi(self, orders: Floats) -> Floats:
        """An upper bound of the Renyi divergence at each order (above 1, ``inf`` allowed); inf
        where there is none.
        """

    def basic(self) -> tuple[Fraction, Fraction] | None:
        """Exact (epsilon, delta), or None when a delta would have to be chosen first."""
        return None

    def slack(self) -> Fraction:
        """The delta that comes on top of ``renyi``."""
        return Fraction(0)

    def mu_squared(self) -> Fraction | float | None:
        """A valid mu^2 of Gaussian DP, or None."""
        return None

    def grid(self) -> Floats:
        """The orders at which conversions look at this cost."""
        return curves.ORDERS

    def epsilon(self, delta: Number) -> float:
        """The least epsilon known at this delta, rounded up; inf when there is none."""
        rest = delta_exact(delta) - self.slack()
        if rest < 0:
            return math.inf
        bounds = [curves.epsilon_of_renyi(self.grid(), self.renyi(self.grid()), rest)]
        if (mu_squared := self.mu_squared()) is not None:
            bounds.append(curves.epsilon_of_gaussian(mu_squared, rest))
        return min(bounds)

    def delta(self, epsilon: Number) -> float:
        """The least delta known at this epsilon, rounded up; at most 1."""
        level = exact(epsilon, name="epsilon")
        bounds = [curves.delta_of_renyi(self.grid(), self.renyi(self.grid()), float(level))]
        if (mu_squared := self.mu_squared()) is not None:
            mu = curves.root(mu_squared)
            bounds.append(curves.up(float(curves.delta_of_gaussian(mu, curves.precise(level)))))
        return min(1.0, curves.up(float(self.slack()) + min(bounds)))

    def merged(self, other: Cost) -> Cost | None:  # noqa: ARG002
        """One cost equal to both in every currency, or None."""
        return None

    def parts_of_sum(self) -> tuple[Cost, ...]:
        """The terms of a sum; a plain cost is one term."""
        return (self,)

    def __add__(self, other: Cost) -> Cost:
        """The cost of both mechanisms, in any order, adaptively or not; a filter judges whether it
        may be adaptive.
        """
        return sum_of((*self.parts_of_sum(), *other.parts_of_sum()))

    def as_json(self) -> dict[str, Any]:
        """An exact JSON form that `cost_from_json` reads back."""
        return {
            "kind": self.kind,
            **{_argument(f.name): _plain(getattr(self, f.name)) for f in fields(self)},
        }

    def __repr__(self) -> str:
        """The call that makes it."""
        body = self.as_json()
        del body["kind"]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in body.items())})"


def _argument(field: str) -> str:
    """A field that would hide the method of the same name is kept as ``stated_<name>``."""
    return field.removeprefix("stated_")


def sum_of(parts: tuple[Cost, ...]) -> Cost:
    """Merge what merges exactly; what is left is a `Composed`."""
    merged: list[Cost] = []
    for part in parts:
        for place, known in enumerate(merged):
            if (both := _fitting(known, part)) is not None:
                merged[place] = both
                break
        else:
            merged.append(part)
    if len(merged) == 1:
        return merged[0]
    composed = KINDS["composed"]
    return composed(parts=tuple(merged))  # type: ignore[call-arg]


def _fitting(cost: Cost, other: Cost) -> Cost | None:
    """The merged cost, unless its numbers would grow too long or too large to be kept as one."""
    try:
        return cost.merged(other)
    except InvalidInput:
        return None


def cost_from_json(body: dict[str, Any]) -> Cost:
    """Read the form of `Cost.as_json`; refuse an unknown kind, an unknown or a missing field."""
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("kind"), str)
        or body["kind"] not in KINDS
    ):
        given = body.get("kind") if isinstance(body, dict) else type(body).__name__
        raise InvalidInput(
            "COST_UNKNOWN", f"cost must be an object of a kind in {sorted(KINDS)}, got {given!r}"
        )
    kind = KINDS[body["kind"]]
    values = {name: value for name, value in body.items() if name != "kind"}
    wanted = {_argument(f.name) for f in fields(kind)}
    if set(values) != wanted:
        raise InvalidInput(
            "COST_UNKNOWN",
            f"a cost of kind {kind.kind} must have the fields {sorted(wanted)}, got "
            f"{sorted(values)}",
        )
    return kind(**{name: _parsed(value) for name, value in values.items()})


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return show(value)
    if isinstance(value, Cost):
        return value.as_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _parsed(value: object) -> object:
    if isinstance(value, dict):
        return cost_from_json(value)
    if isinstance(value, list):
        return tuple(_parsed(item) for item in value)
    return value


def infinite(orders: Floats) -> Floats:
    """No bound at any order."""
    return np.full(orders.shape, np.inf)
