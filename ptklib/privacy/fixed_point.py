"""Real statistics as integers, so that their sensitivity is what the formula says and noise can be
exact.

Floating-point sums round differently with and without a record, so their true sensitivity exceeds
the textbook one. Here every value becomes a whole number of ``resolution`` before anything is
summed, and sums are exact integers.

**Proof note.** *Unit:* one value of one record. *Sensitivity:* ``encode`` maps each value on its own, whatever the others
are, into [lower_units, upper_units] (integers clipped last, so float rounding cannot step outside). Adding or removing
one record thus moves an exact sum by at most ``sensitivity = max(|lower_units|, |upper_units|)``. *Cost:* none here; the
mechanism that noises the sum charges for it, and ``decode`` afterwards is post-processing and free.

Bounds and resolution are public: they come from the configuration, never from the data.

NaN becomes the value of [lower, upper] nearest to zero (zero itself when it is inside). Infinities
are clipped like any other value. Rounding is to the nearest multiple, computed in float64: it may
go either way when a value is within float error of the middle between two multiples, which affects
accuracy by one resolution and privacy not at all.

Reasons: BOUNDS_INVALID, RESOLUTION_INVALID, COLUMNS_INVALID, VALUES_NOT_REAL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.frozen import keep

__all__ = ["FixedPoint"]

# Every encoded value is an exact float64 on its way to int64, and 2**10 of them sum inside int64.
_MAX_UNITS = 2**53
_CHUNK = 1 << 16
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, init=False)
class FixedPoint:
    """Encodes reals of [lower, upper] as whole numbers of ``resolution``.

    See the module for the proof note.
    """

    lower: Fraction
    upper: Fraction
    resolution: Fraction
    lower_units: int = field(repr=False)
    upper_units: int = field(repr=False)

    def __init__(self, lower: Number, upper: Number, resolution: Number) -> None:
        """Bounds may be negative; ``resolution`` is positive and at most the larger absolute
        bound.
        """
        low, high = _signed(lower, "lower"), _signed(upper, "upper")
        if low >= high:
            raise InvalidInput(
                "BOUNDS_INVALID",
                f"lower must be less than upper, got lower {_show(low)} and upper {_show(high)}",
            )
        step = _signed(resolution, "resolution")
        most = max(abs(low), abs(high))
        if not most / _MAX_UNITS <= step <= most:
            raise InvalidInput(
                "RESOLUTION_INVALID",
                "resolution must be between max(|lower|, |upper|)/2**53 and max(|lower|, |upper|), "
                f"got {_show(step)} for bounds {_show(low)} and {_show(high)}",
            )
        keep(
            self,
            lower=low,
            upper=high,
            resolution=step,
            lower_units=round(low / step),
            upper_units=round(high / step),
        )

    @property
    def sensitivity(self) -> int:
        """Add/remove of one record moves an encoded sum by at most this many units, rounding
        included.
        """
        return max(abs(self.lower_units), abs(self.upper_units))

    def l1(self, columns: int) -> int:
        """The L1 sensitivity, in units, of the sums of ``columns`` columns encoded alike."""
        return _columns(columns) * self.sensitivity

    def l2_squared(self, columns: int) -> int:
        """The square of the L2 sensitivity: exact, where the root need not be an integer."""
        return _columns(columns) * self.sensitivity**2

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Clip, round and clip again; the shape is kept.

        Each element depends on that element alone.
        """
        reals = _reals(values)
        lower, upper = float(self.lower), float(self.upper)
        # Before the clip, which then moves it to the bound nearest to zero.
        np.copyto(reals, 0.0, where=np.isnan(reals))
        np.clip(reals, lower, upper, out=reals)
        np.divide(reals, float(self.resolution), out=reals)
        np.rint(reals, out=reals)
        return np.clip(reals.astype(np.int64), self.lower_units, self.upper_units)

    def total(self, values: ArrayLike) -> int:
        """The exact sum, in units, of the encoded values of all elements.

        An int: it cannot overflow.
        """
        flat = _reals(values).reshape(-1)
        # So many units at most that each partial sum stays inside int64.
        chunk = min(_CHUNK, _INT64_MAX // self.sensitivity)
        return sum(
            int(self.encode(flat[at : at + chunk]).sum()) for at in range(0, len(flat), chunk)
        )

    def decode(self, units: int) -> float:
        """The real number that ``units`` (a noised sum, say) stands for, rounded once."""
        return float(int(units) * self.resolution)


def _signed(value: Number, name: str) -> Fraction:
    """`amounts.exact` with a sign."""
    if isinstance(value, str):
        text = value.strip()
        return -exact(text[1:], name=name) if text.startswith("-") else exact(text, name=name)
    if isinstance(value, np.generic):
        value = value.item()
    # A Decimal that is not a number must not be compared; `exact` refuses it.
    if isinstance(value, Decimal) and not value.is_finite():
        return exact(value, name=name)
    if isinstance(value, int | float | Decimal | Fraction) and value < 0:
        # Negating a Decimal by its sign alone: "-value" would round it to the caller's context.
        return -exact(value.copy_negate() if isinstance(value, Decimal) else -value, name=name)
    return exact(value, name=name)


def _show(value: Fraction) -> str:
    return show(value) if value >= 0 else f"-{show(-value)}"


def _reals(values: ArrayLike) -> NDArray[np.float64]:
    """A fresh float64 array.

    Whether it is refused depends on the container and the kinds of elements, never on magnitudes.
    """
    if isinstance(values, np.ndarray) and type(values) is not np.ndarray:
        raise InvalidInput(
            "VALUES_NOT_REAL", f"values must be a plain numpy array, got {type(values).__name__}"
        )
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind == "O":
        array = np.array([_real(value) for value in array.reshape(-1)], dtype=np.float64).reshape(
            array.shape
        )
    if array.dtype.kind not in "iufb":
        raise InvalidInput("VALUES_NOT_REAL", "values must be real numbers")
    return array.astype(np.float64)


def _real(value: object) -> float:
    """A missing value is NaN; an integer beyond float64 is infinite, and clipped like one."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInput("VALUES_NOT_REAL", "values must be real numbers")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _columns(columns: int) -> int:
    if type(columns) is not int or columns < 1:
        raise InvalidInput(
            "COLUMNS_INVALID", f"columns must be a whole number from 1, got {columns!r:.40}"
        )
    return columns
