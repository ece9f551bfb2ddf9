"""What linear regression takes from records: sums of products, all in whole numbers.

**Proof note.** *Unit:* one record. The row and the label of a record depend on that record alone
(`rows`, `labels`); a record whose label is missing adds nothing. Sums are exact: whole floats below
2**53, then 64 bits, where 2**38 records fit. *Cost:* none here: nothing is released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.labels import NumberLabel
from ptklib.models.linear.structure import GRAIN, Structure
from ptklib.ptk import Batches

__all__ = ["MOST_STEPS", "RESIDUAL", "LabelledRows", "grains_of", "labelled"]

# What 1 is where residuals are summed.
RESIDUAL = 1 << 9
# And the most that a label can be from a prediction between the same bounds.
MOST_STEPS = 2 * RESIDUAL

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LabelledRows:
    """Extended rows and labels of some records, in steps of 1/`STEPS`."""

    rows: Floats
    label: Floats

    def residuals(self, predicted: Floats, most: int) -> Floats:
        """What predictions miss, in whole steps of 1/`RESIDUAL`, clipped."""
        apart = np.rint((self.label / STEPS - predicted) * RESIDUAL)
        return np.asarray(np.clip(apart, -most, most))


def labelled(structure: Structure, target: NumberLabel, batches: Batches) -> Iterator[LabelledRows]:
    """The records that have a label, some at a time."""
    for piece in structure.rows.pieces(batches):
        label, bad = target.steps(piece)
        rows = structure.rows.steps(piece)
        yield LabelledRows(rows, label) if bad is None else LabelledRows(rows[~bad], label[~bad])


def grains_of(label: Floats) -> Floats:
    """Labels in steps of 1/`GRAIN`."""
    return np.asarray(np.rint(label * (GRAIN / STEPS)))
