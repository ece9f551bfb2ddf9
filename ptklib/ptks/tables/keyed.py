"""Kinds that are one release of totals by public keys: what statistics, quantiles and ratios share.

A kind says how a record adds to the totals and how far; `Keyed` releases them at once, adds those
of the last state, and sums weighted ones.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity:* r times `Keyed._reach`, which the kind proves.
*Cost:* that of one `LaplaceRelease` or `GaussianRelease` at that sensitivity (`noisy_totals`).
*Windows:* totals of the last state are added, which is post-processing; their records are others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.columns.keys import Key
from ptklib.price_first import Budget, Given
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Weighted
from ptklib.ptks.tables.cells import Cells
from ptklib.ptks.tables.noisy_totals import Mechanism, merged, release_of
from ptklib.ptks.tables.weighted import added

__all__ = ["Keyed"]


class Keyed(ABC):
    """Training, merging and the exact state of totals by public keys.

    Stands before `ptklib.price_first.PriceFirst` among the bases of a kind.
    """

    keys: tuple[Key, ...]
    mechanism: str

    @abstractmethod
    def _reach(self) -> tuple[int, int]:
        """By how much one record moves the totals, at most: in L1, and the square of L2."""

    @abstractmethod
    def _totals(self, batches: Batches) -> NDArray[np.int64]:
        """The exact totals, within LIMIT. Raw."""

    @abstractmethod
    def validate(self, arrays: Arrays) -> None:
        """See `Ptk.validate`."""

    def _whole(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """A state of totals and windows, with what the configuration adds to it."""
        return dict(arrays)

    @property
    def _cells(self) -> Cells:
        return Cells(self.keys)

    def feature_columns(self) -> tuple[str, ...]:
        """The key columns."""
        return self._cells.columns()

    def _mechanisms(self, budget: Budget) -> Any:
        """A `Release`, in kinds that know no other way."""
        l1, l2_squared = self._reach()
        mechanism: Mechanism = "gaussian" if self.mechanism == "gaussian" else "laplace"
        return release_of(mechanism, budget, l1=l1, l2_squared=l2_squared)

    def _train(self, given: Given[Any]) -> dict[str, NDArray[Any]]:
        """Noisy totals of all cells, added to the previous ones."""
        noisy = given.plan.release(self._totals(given.batches), source=given.noise).values
        return self._whole(merged(noisy, given.previous))

    def combined(
        self,
        parts: Iterable[Weighted],
        *,
        previous: Arrays | None = None,  # noqa: ARG002
        noise: BitSource | None = None,
    ) -> Arrays:
        """Totals times the weights of their states. See `tables.weighted`."""
        return self._whole(added(self.validate, parts, totals="totals", noise=noise))

    def exact(self, batches: Batches) -> Arrays:
        """The totals without noise: what is read from them minimises the mean loss.

        Raw: never published.
        """
        return self._whole(merged(self._totals(batches), None))
