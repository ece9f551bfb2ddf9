"""Records as small whole numbers: bins of inputs, and what is learned.

Every feature has a public domain and a public number of bins, and one more bin for *unknown*: a
null, a NaN or a value that no domain lists. A record's codes depend on that record alone.

Reasons: CONFIG_INVALID, COLUMN_TYPE, COLUMN_MISSING.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib import config
from ptklib.columns.keys import Bins, Categories, Codes, IntegerRange, TimePart
from ptklib.columns.numbers import number_column, numbers_in, steps_between
from ptklib.ptk import column_of

__all__ = ["MAX_BINS", "STEPS", "Feature", "Number", "class_codes", "feature_codes", "target_steps"]

MAX_BINS = 4096
# Of a regression target: even, and the mean of a leaf is off by at most 1/2048 of the range.
STEPS = 1024
_FEW = 256


@dataclass(frozen=True, kw_only=True)
class Number:
    """Numbers between public bounds in ``bins`` bins of one width.

    Beyond the bounds, infinities too, they are clipped.
    """

    kind: ClassVar[str] = "number"
    column: str
    lower: float
    upper: float
    bins: int = 16

    def __post_init__(self) -> None:
        """Bounds that are bounds, two bins or more."""
        config.checked(self)
        config.demand(
            self.lower < self.upper and math.isfinite(self.upper - self.lower),
            f"lower of {self.column!r} must be below upper",
            field="lower",
        )
        config.demand(
            2 <= self.bins <= MAX_BINS,
            f"bins of {self.column!r} must be 2 to {MAX_BINS}, got {self.bins}",
            field="bins",
        )

    @property
    def size(self) -> int:
        """How many bins."""
        return self.bins

    def codes(self, column: pa.Array) -> NDArray[Any]:
        """The bin of each number; null and NaN are unknown."""
        numbers = numbers_in(column, self.column)
        places, bad = steps_between(numbers, self.lower, self.upper, self.bins, rounding=np.floor)
        np.minimum(places, self.bins - 1, out=places)
        if bad is not None:
            places[bad] = self.bins
        return places.astype(np.uint8 if self.bins < _FEW else np.uint16)

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented numbers, uniform, an eighth of them on a bound."""
        values = generator.uniform(self.lower, self.upper, rows)
        edge = generator.uniform(0, 1, rows) < 1 / 8
        values[edge] = generator.choice([self.lower, self.upper], rows)[edge]
        return pa.array(values)


Feature = Number | Bins | Categories | IntegerRange | TimePart


def feature_codes(features: tuple[Feature, ...], frame: pa.RecordBatch | pa.Table) -> NDArray[Any]:
    """The bins of all features: one row for each feature, one column for each record."""
    widest = max(feature.size for feature in features)
    made = np.empty((len(features), frame.num_rows), dtype=np.uint8 if widest < _FEW else np.uint16)
    for place, feature in enumerate(features):
        made[place] = feature.codes(column_of(frame, feature.column))
    return made


def class_codes(
    label: str, classes: tuple[str, ...] | tuple[int, ...], frame: pa.RecordBatch | pa.Table
) -> Codes:
    """The place of each record's class; the number of classes where it is null or not listed."""
    return _class_key(label, classes).codes(column_of(frame, label))


@lru_cache(maxsize=64)
def _class_key(label: str, classes: tuple[str, ...] | tuple[int, ...]) -> Categories | IntegerRange:
    """Remembered: making a key checks all its classes."""
    first = classes[0]
    if isinstance(first, int) and classes == tuple(range(first, first + len(classes))):
        return IntegerRange(column=label, first=first, last=first + len(classes) - 1)
    return Categories(column=label, values=classes)


def target_steps(
    label: str, lower: float, upper: float, frame: pa.RecordBatch | pa.Table
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """The target of each record in whole steps from 0 to `STEPS`, clipped; and which have none."""
    return steps_between(number_column(frame, label), lower, upper, STEPS)
