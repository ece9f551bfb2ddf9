"""What a training has learned: coefficients of rows, on the scale where the label spans -1 to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fitted"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """Coefficients of extended rows, the covariance of their errors, how many records there were
    and the deviation of residuals: all of them noisy.
    """

    coefficients: Floats
    covariance: Floats
    records: float
    deviation: float
