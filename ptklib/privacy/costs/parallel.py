"""Several mechanisms, each on a part of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs.base import Cost
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep

__all__ = ["ParallelCost"]


@dataclass(frozen=True, init=False, repr=False)
class ParallelCost(Cost):
    """The largest of several costs, in every currency: each is paid by a part of its own, and a
    unit is in exactly one part.

    Which part a unit is in must not depend on the other units: drawn independently, or from its
    tag. Neighbours then differ in one part; all that the other parts give, even if it is computed
    from what this one gave, is post-processing of its mechanism and of data they have in common.
    Where a stream keeps books on each part by itself, charge each part what ran on it instead:
    that is less.
    """

    kind: ClassVar[str] = "parallel"
    parts: tuple[Cost, ...]

    def __init__(self, *, parts: Iterable[Cost]) -> None:
        """Equal parts count once."""
        different = sorted(set(parts), key=lambda part: json.dumps(part.as_json(), sort_keys=True))
        if not different:
            raise InvalidInput(
                "COST_INVALID", "a parallel cost must have at least one part, got none"
            )
        keep(self, parts=tuple(different))

    def basic(self) -> tuple[Fraction, Fraction] | None:
        """The largest epsilon and the largest delta."""
        known = [part.basic() for part in self.parts]
        pairs = [pair for pair in known if pair is not None]
        if len(pairs) < len(known):
            return None
        return max(epsilon for epsilon, _ in pairs), max(delta for _, delta in pairs)

    def renyi(self, orders: Floats) -> Floats:
        """The largest, order by order."""
        return np.asarray(
            np.max([part.renyi(orders) for part in self.parts], axis=0), dtype=np.float64
        )

    def slack(self) -> Fraction:
        """The largest."""
        return max(part.slack() for part in self.parts)

    def mu_squared(self) -> Fraction | float | None:
        """The largest."""
        known = [part.mu_squared() for part in self.parts]
        values = [value for value in known if value is not None]
        if len(values) < len(known):
            return None
        largest = max(values)
        return largest if isinstance(largest, Fraction) else curves.up(largest)

    def epsilon(self, delta: Number) -> float:
        """The largest."""
        return max(part.epsilon(delta) for part in self.parts)

    def delta(self, epsilon: Number) -> float:
        """The largest."""
        return max(part.delta(epsilon) for part in self.parts)

    def grid(self) -> Floats:
        """All orders any part looks at."""
        return np.unique(np.concatenate([part.grid() for part in self.parts]))
