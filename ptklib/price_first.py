"""The price comes first: a PTK whose mechanisms follow from its configuration and a budget alone.

`PriceFirst` writes `Ptk.cost` and `Ptk.train_dp` once for every kind that comes with Sage. A kind
says by which mechanisms it trains (its *plan*, which takes no data and knows its price), and how.

* ``cost`` is the price of the plan, and training is handed the plan of the same arguments: one
  cannot say what the other does not spend.
* A budget that cannot be spent is refused, then a previous state that is none (`Ptk.validate`);
  only then may a record be read.

**Proof note.** *Unit, neighbours, sensitivity:* the kind's. *Cost:* that of the plan.

Reasons: DELTA_NEEDED, those of `amounts`, of the kind's mechanisms and of its `validate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, count_of

__all__ = ["Budget", "Given", "HasCost", "PriceFirst", "windows_after"]


@dataclass(frozen=True)
class Budget:
    """What may be spent on a training, exactly, and how many records a unit of privacy has."""

    epsilon: Fraction
    delta: Fraction
    records: int

    @classmethod
    def of(cls, epsilon: Number, delta: Number, records_per_unit: int) -> Budget:
        """From what a caller gives."""
        return cls(epsilon_exact(epsilon), delta_exact(delta), count_of(records_per_unit))

    def gaussian_sigma(self, sensitivity: Number = 1, *, instead: str = "") -> float:
        """That of Gaussian noise, which needs a delta; ``instead`` is the mechanism to take."""
        if self.delta == 0:
            advice = f"; or use mechanism {instead!r}" if instead else ""
            raise InvalidInput("DELTA_NEEDED", f"Gaussian noise needs a delta above 0{advice}")
        return gaussian_sigma(epsilon=self.epsilon, delta=self.delta, sensitivity=sensitivity)


class HasCost(Protocol):
    """A mechanism, or several, whose price is known."""

    @property
    def cost(self) -> Cost:
        """What running it once costs, whatever the data."""


Plan = TypeVar("Plan", bound=HasCost)


@dataclass(frozen=True)
class Given(Generic[Plan]):
    """What a training is given: its plan, the records, the last state (checked) and the source of
    its noise.
    """

    plan: Plan
    batches: Batches
    previous: Arrays | None
    noise: BitSource | None


class PriceFirst(ABC, Generic[Plan]):
    """`Ptk.cost` and `Ptk.train_dp` by a plan. Stands before `Ptk` among the bases of a kind."""

    @abstractmethod
    def _mechanisms(self, budget: Budget) -> Plan:
        """Those of a training and their price, before any data; refuses what cannot be spent."""

    @abstractmethod
    def _train(self, given: Given[Plan]) -> Arrays:
        """A state by the mechanisms of the plan, each run as often as the plan has priced."""

    @abstractmethod
    def validate(self, arrays: Arrays) -> None:
        """See `Ptk.validate`."""

    def _plan(self, epsilon: Number, delta: Number, records_per_unit: int) -> Plan:
        return self._mechanisms(Budget.of(epsilon, delta, records_per_unit))

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        """That of the plan."""
        return self._plan(epsilon, delta, records_per_unit).cost

    def train_dp(
        self,
        batches: Batches,
        *,
        epsilon: Number,
        delta: Number = 0,
        previous: Arrays | None = None,
        noise: BitSource | None = None,
        records_per_unit: int = 1,
    ) -> Arrays:
        """A state by the plan; what cannot be is refused before a record is read."""
        plan = self._plan(epsilon, delta, records_per_unit)
        if previous is not None:
            self.validate(previous)
        return self._train(Given(plan, batches, previous, noise))


def windows_after(previous: Arrays | None) -> NDArray[np.int64]:
    """Of how many windows a state is, with this one."""
    return np.ones(1, dtype=np.int64) + (0 if previous is None else previous["windows"])
