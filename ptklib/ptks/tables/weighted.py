"""One state of several by adding: totals times the weight of their state.

**Proof note.** A state is DP already, and nothing else is read: post-processing, at no cost,
whatever the weights, as long as they are public.

Totals are whole numbers. A weight that is none makes fractions, and each is rounded up with the
chance of its fraction: the sum has no bias, and a total that fades for many windows does not get
stuck where rounding to the nearest would leave it (27 x 0.99 is nearest to 27). Rounding adds a
variance of at most 1/4 to a total; the noise of one at epsilon 1 is 2 or more.

Reasons: COMBINE_INVALID, and those of the PTK's `validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptk import Arrays, Weighted

__all__ = ["ROUNDING", "added"]

# What rounding adds to the variance of a total, at most.
ROUNDING = 0.25
# Numbers that are looked at together.
_PIECE = 1 << 20
# The largest variance that is kept.
_MOST = 1e300


def added(
    validate: Callable[[Arrays], None],
    parts: Iterable[Weighted],
    *,
    totals: str,
    variances: str | None = None,
    limit: int = LIMIT,
    unit: float = 1.0,
    noise: BitSource | None = None,
) -> dict[str, NDArray[Any]]:
    """The totals of all states, the variances of their noise (in squares of ``unit``, totals of one
    record) and the windows that they are of. The parts are read one at a time.

    Where a state does not tell its variances, neither does the sum.
    """
    made: dict[str, NDArray[Any]] = {}
    told = True
    for weight, arrays in parts:
        validate(arrays)
        factor = _weight(weight)
        scaled = _scaled(arrays[totals], factor, noise)
        if not made:
            made = {totals: scaled, "windows": np.array(arrays["windows"])}
        else:
            _add(made[totals], scaled, limit)
            made["windows"] = np.minimum(made["windows"] + arrays["windows"], LIMIT)
        told = told and variances in arrays
        if variances is not None and told:
            rounding = 0.0 if factor == 1 else ROUNDING / unit**2
            fresh = arrays[variances] * float(factor) ** 2 + rounding
            made[variances] = np.minimum(made.get(variances, 0.0) + fresh, _MOST)
    if not made:
        raise InvalidInput("COMBINE_INVALID", "at least one state must be given, got none")
    if variances is not None and not told:
        made.pop(variances, None)
    return made


def _weight(weight: Fraction) -> Fraction:
    factor = Fraction(weight)
    if not 0 < factor <= 1:
        raise InvalidInput(
            "COMBINE_INVALID", f"a weight must be above 0 and at most 1, got {factor}"
        )
    return factor


def _scaled(totals: NDArray[Any], factor: Fraction, noise: BitSource | None) -> NDArray[Any]:
    """Whole numbers whose means are the totals times the factor. The caller owns them."""
    made = np.array(totals)
    if factor == 1:
        return made
    source, flat = require_secure(noise), made.reshape(-1)
    for at in range(0, len(flat), _PIECE):
        exact = flat[at : at + _PIECE] * float(factor)
        whole = np.floor(exact)
        # 53 bits of a word: a number in [0, 1).
        chance = (source.words(len(exact)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        flat[at : at + _PIECE] = (whole + (chance < exact - whole)).astype(made.dtype)
    return made


def _add(totals: NDArray[Any], others: NDArray[Any], limit: int) -> None:
    """``totals += others``, held within the limit, without a copy of the whole."""
    left, right = totals.reshape(-1), others.reshape(-1)
    for at in range(0, len(left), _PIECE):
        part = left[at : at + _PIECE]
        # Each is at most LIMIT = 2**60, so the sum fits.
        first, second = (
            np.clip(side.astype(np.int64), -LIMIT, LIMIT)
            for side in (part, right[at : at + _PIECE])
        )
        part[:] = np.clip(first + second, -limit, limit)
