"""What is learned: public classes, or a number between public bounds, as whole weights that
can be counted.

A record of a class weighs 1 in that class. A target of w steps, 0 to D = `STEPS`, weighs D-w in the
first channel and w in the second. All weights of a record are whole, not negative, and sum to D (1
for classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.ptks.binned.codes import STEPS, class_codes, target_steps

__all__ = ["Classes", "Labels", "Steps", "Target", "Wide"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Wide = NDArray[np.int64]


@dataclass(frozen=True)
class Classes:
    """One of the classes."""

    label: str
    classes: tuple[str, ...] | tuple[int, ...]
    weight: int = 1

    @property
    def channels(self) -> int:
        """Numbers that a cell holds."""
        return len(self.classes)

    def read(self, frame: pa.RecordBatch) -> tuple[Labels, NDArray[np.bool_]]:
        """The class of each record, and which have none."""
        codes = class_codes(self.label, self.classes, frame)
        bad = codes == self.channels
        return np.where(bad, 0, codes).astype(np.int32), bad

    def count(self, cell: NDArray[np.intp], cells: int, label: Labels) -> Wide:
        """The exact counts by class of each cell. Raw."""
        counts = np.bincount(cell * self.channels + label, minlength=cells * self.channels)
        return counts.reshape(cells, self.channels)

    def corners(self, counts: Wide) -> Wide:
        """The weights of the channels, which are the counts."""
        return counts

    def losses(self, shares: Floats, label: Labels) -> Floats:
        """Half the Brier score."""
        mine = shares[np.arange(len(label)), label]
        return np.asarray((np.square(shares).sum(axis=1) + 1 - 2 * mine) / 2, dtype=np.float64)


@dataclass(frozen=True)
class Steps:
    """A number between bounds, clipped, in steps."""

    label: str
    lower: float
    upper: float
    channels: int = 2
    weight: int = STEPS

    def read(self, frame: pa.RecordBatch) -> tuple[Labels, NDArray[np.bool_]]:
        """The steps of each record, and which have none."""
        steps, bad = target_steps(self.label, self.lower, self.upper, frame)
        return steps.astype(np.int32), np.zeros(len(steps), dtype=np.bool_) if bad is None else bad

    def count(self, cell: NDArray[np.intp], cells: int, label: Labels) -> Wide:
        """The exact number of records and sum of steps of each cell. Raw."""
        # Whole floats below 2**53 add up exactly.
        weight = np.bincount(cell, weights=label, minlength=cells).astype(np.int64)
        return np.stack([np.bincount(cell, minlength=cells), weight], axis=1)

    def corners(self, counts: Wide) -> Wide:
        """The weights of the channels."""
        return np.stack([STEPS * counts[..., 0] - counts[..., 1], counts[..., 1]], axis=-1)

    def losses(self, shares: Floats, label: Labels) -> Floats:
        """The squared error over the squared range."""
        return np.asarray(np.square(label / STEPS - shares[:, 1]), dtype=np.float64)

    def value(self, shares: Floats) -> Floats:
        """The predicted target."""
        values: Any = self.lower + (self.upper - self.lower) * shares[:, 1]
        return np.asarray(values, dtype=np.float64)


Target = Classes | Steps
