"""Checks shared by the mechanisms: parameters are refused with reasons, data is never refused for
its values.

Parameters (sensitivities, scales) are public: a refusal may print them. Data is not: a refusal of
data speaks only of its type and shape, and **no value makes one more refusal than another**,
because a refusal is itself an output. So values beyond ±`LIMIT` are clamped, not refused. Clamping
to an interval moves no two values further apart, so every sensitivity stands.

Noise never overflows: scales are at most 2**40, so a draw of 2**60 would have a probability below
exp(-2**20). The sums of a clamped value and such a draw are saturated all the same.

Reasons: SENSITIVITY_NOT_INTEGER, SENSITIVITY_NOT_POSITIVE, SENSITIVITY_TOO_LARGE, SCALE_TOO_LARGE,
SCALE_TOO_SMALL, DATA_NOT_INTEGER, DATA_EMPTY, DATA_SHAPE_INVALID.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.noise.sampler import MAX_SCALE, MIN_SCALE

__all__ = [
    "LIMIT",
    "MAX_SENSITIVITY",
    "IntegerData",
    "integer",
    "integer_array",
    "noise_scale",
    "saturated_sum",
    "sensitivity_exact",
    "sensitivity_integer",
]

LIMIT = 2**60
MAX_SENSITIVITY = 2**50

Integers = NDArray[np.int64]
IntegerData = NDArray[np.integer] | Sequence[int]


def sensitivity_integer(value: int) -> int:
    """A positive whole sensitivity, in the unit of the data."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidInput(
            "SENSITIVITY_NOT_INTEGER",
            f"sensitivity must be a whole number (round it up), got {type(value).__name__}",
        )
    return int(_sensitivity_in_range(Fraction(int(value))))


def sensitivity_exact(value: Number) -> Fraction:
    """A positive sensitivity that need not be whole, such as an L2 norm rounded up to some
    decimal.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(sensitivity_integer(int(value)))
    return _sensitivity_in_range(exact(value, name="sensitivity"))


def _sensitivity_in_range(value: Fraction) -> Fraction:
    if value <= 0:
        raise InvalidInput(
            "SENSITIVITY_NOT_POSITIVE",
            f"sensitivity must be positive, got {value}: a statistic that no unit can change needs "
            "no mechanism",
        )
    if value > MAX_SENSITIVITY:
        raise InvalidInput(
            "SENSITIVITY_TOO_LARGE",
            "sensitivity must be at most 2**50, got more; use a coarser resolution",
        )
    return value


def noise_scale(value: Fraction, *, name: str = "scale") -> Fraction:
    """The scale itself, if the sampler will take it: better refused now than after the data was
    opened.
    """
    result = exact(value, name=name)
    if result > MAX_SCALE:
        raise InvalidInput(
            "SCALE_TOO_LARGE",
            f"{name} must be at most 2**40, got {show(result)}; use a larger epsilon or a coarser "
            "resolution",
        )
    if result < MIN_SCALE:
        raise InvalidInput(
            "SCALE_TOO_SMALL",
            f"{name} must be at least {MIN_SCALE}, got {show(result)}; use a smaller epsilon or a "
            "finer resolution",
        )
    return result


def integer(value: int, *, name: str, reason: str = "DATA_NOT_INTEGER") -> int:
    """One whole number, clamped."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidInput(reason, f"{name} must be a whole number, got {type(value).__name__}")
    return max(-LIMIT, min(LIMIT, int(value)))


def integer_array(values: IntegerData, *, name: str) -> Integers:
    """A fresh int64 array of the data, clamped.

    An array must have an integer dtype, a sequence only Python ints.
    """
    if isinstance(values, np.ndarray):
        # A subclass may add as it likes: a masked array would let masked cells through without
        # noise.
        if type(values) is not np.ndarray:
            raise InvalidInput(
                "DATA_NOT_INTEGER",
                f"{name} must be a plain numpy array, got {type(values).__name__}",
            )
        if values.dtype.kind not in "iu":
            raise InvalidInput(
                "DATA_NOT_INTEGER", f"{name} must have an integer dtype, got {values.dtype}"
            )
        if values.ndim == 0:
            raise InvalidInput(
                "DATA_SHAPE_INVALID", f"{name} must have at least one axis, got a single number"
            )
        # NumPy compares a Python bound exactly with any integer dtype; narrow dtypes cannot reach
        # the bound.
        if np.iinfo(values.dtype).max > LIMIT:
            values = np.minimum(values, values.dtype.type(LIMIT))
            values = (
                values
                if values.dtype.kind == "u"
                else np.maximum(values, values.dtype.type(-LIMIT))
            )
        result = values.astype(np.int64)
    else:
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise InvalidInput(
                "DATA_NOT_INTEGER",
                f"{name} must be an integer array or a sequence of ints, got "
                f"{type(values).__name__}",
            )
        result = np.array(
            [integer(value, name=f"every entry of {name}") for value in values], dtype=np.int64
        )
    if result.size == 0:
        raise InvalidInput("DATA_EMPTY", f"{name} must have at least one entry, got none")
    return result


def saturated_sum(values: Integers, noise: Integers) -> Integers:
    """``values + noise`` clamped to ±`LIMIT`, without overflow: post-processing of the sum.

    |values| <= LIMIT, so clamping the noise to ±2 LIMIT first changes no clamped sum.
    """
    result = np.clip(values + np.clip(noise, -2 * LIMIT, 2 * LIMIT), -LIMIT, LIMIT)
    result.flags.writeable = False
    return result
