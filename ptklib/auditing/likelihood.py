"""What releases tell apart: for inputs x and x' and an answer, how much likelier the answer is on
x.

`ratio` is the log-likelihood ratio ln P(answer | x) - ln P(answer | x') by the law that the mechanism claims. It is exact for
Laplace, Gaussian, cube and exponential releases. For the others it is a number that rises with it: by an integral for noisy
max, by the exponential rates of its last step for large margin, by the projection on what the record adds for Wishart. Any
function of the answers makes a valid audit; these make a strong one.

`matches` counts remainders: of the numbers whose inputs differ modulo m, how many answers agree
with x, minus how many agree with x'. Noise that does its work makes it as good as blind; noise that
leaves low bits alone makes it tell everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.auditing.tape import TapeEntry
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.release import CountRelease, GaussianRelease, LaplaceRelease
from ptklib.privacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.covariance.noise import WishartRelease
from ptklib.testing.audit import MODULI

__all__ = ["distance", "matches", "ratio", "ratio_of_rows"]

Floats = NDArray[np.float64]

_STEPS = 256
_MODULI = np.array(MODULI)[:, None]


def ratio(entry: TapeEntry, other: NDArray[Any]) -> float:
    """Of one release; ``entry.given`` is x and ``other`` is x'."""
    mechanism, told = entry.mechanism, entry.told
    if isinstance(mechanism, LaplaceRelease | CountRelease | GaussianRelease):
        return float(
            ratio_of_rows(mechanism, np.ravel(told)[None], np.ravel(entry.given), np.ravel(other))[
                0
            ]
        )
    if isinstance(mechanism, CubeRelease):
        far = [np.abs(told - side).max(axis=1) for side in (entry.given, other)]
        return float((far[1] - far[0]).sum() / float(mechanism.scale))
    if isinstance(mechanism, WishartRelease):
        return _projected(entry, other)
    chances = [
        _chance(mechanism, np.asarray(side, dtype=np.float64), int(told[0]))
        for side in (entry.given, other)
    ]
    return float(np.log(chances[0]) - np.log(chances[1]))


def ratio_of_rows(
    mechanism: Any, told: NDArray[Any], given: NDArray[Any], other: NDArray[Any]
) -> Floats:
    """Of many answers at once, one in each row, of a Laplace, count, cube or Gaussian release of
    one row.
    """
    # Whole numbers first: a shift of one must not be lost in a large total.
    first, second = (told - given).astype(np.float64), (told - other).astype(np.float64)
    if isinstance(mechanism, GaussianRelease):
        ratios: Floats = ((second - first) * (second + first)).sum(axis=1) / (
            2 * float(mechanism.sigma) ** 2
        )
    elif isinstance(mechanism, CubeRelease):
        ratios = (np.abs(second).max(axis=1) - np.abs(first).max(axis=1)) / float(mechanism.scale)
    else:
        ratios = (np.abs(second) - np.abs(first)).sum(axis=1) / float(mechanism.scale)
    return ratios


def distance(entry: TapeEntry, other: NDArray[Any]) -> float:
    """How far apart the inputs are, in units of the noise: what pairs are chosen by."""
    mechanism = entry.mechanism
    apart = np.asarray(entry.given - other, dtype=np.float64)
    if isinstance(mechanism, LaplaceRelease | CountRelease):
        return float(np.abs(apart).sum() / float(mechanism.scale))
    if isinstance(mechanism, GaussianRelease):
        return float(np.square(apart).sum() ** 0.5 / float(mechanism.sigma))
    if isinstance(mechanism, CubeRelease):
        # A corner of the cube is as far as the middle of its side, and is told more often.
        return float(np.abs(apart).mean(axis=1).sum() / float(mechanism.scale))
    if isinstance(mechanism, WishartRelease):
        return float(np.abs(np.trace(apart)) / float(mechanism.scale))
    rate = 1 / (mechanism.scale) if isinstance(mechanism, NoisyMax) else mechanism.rate
    return float(np.ptp(apart) * float(rate))


def matches(entry: TapeEntry, other: NDArray[Any]) -> NDArray[np.int64]:
    """By modulus of `MODULI`: answers that agree with x, minus those that agree with x', where the
    two differ.
    """
    if isinstance(entry.mechanism, NoisyMax | LargeMargin | ExponentialMechanism):
        return np.zeros(len(MODULI), dtype=np.int64)
    given, told = np.asarray(entry.given), entry.told
    if isinstance(entry.mechanism, WishartRelease):
        grain = entry.mechanism.grain
        given, other, told = (
            (2 * values + grain) // (2 * grain) for values in (given, other, told)
        )
    first, second = (
        np.count_nonzero(np.ravel(told - side) % _MODULI == 0, axis=1) for side in (given, other)
    )
    return np.asarray(first - second, dtype=np.int64)


def _projected(entry: TapeEntry, other: NDArray[Any]) -> float:
    """The answer along what the record adds, in units of the noise."""
    apart = np.asarray(entry.given - other, dtype=np.float64)
    values, axes = np.linalg.eigh(apart)
    place = int(np.abs(values).argmax())
    axis, sign = axes[:, place], np.sign(values[place])
    middle = np.asarray(2 * entry.told.astype(object) - entry.given - other, dtype=np.float64) / 2
    return float(sign * (axis @ middle @ axis) / float(entry.mechanism.scale))


def _chance(mechanism: Any, scores: Floats, index: int) -> float:
    """That a selection chooses this index, nearly."""
    if isinstance(mechanism, NoisyMax):
        # With exponential noise t on the chosen one, every other stays below: an integral over t.
        points = np.linspace(0.0, 30.0, _STEPS)
        gaps = (scores[index] - scores) / float(mechanism.scale)
        below = 1 - np.exp(-np.maximum(points[:, None] + gaps[None], 0.0))
        below[:, index] = 1.0
        return float(np.trapezoid(np.exp(-points) * below.prod(axis=1), points)) + 1e-12
    weights = np.exp((scores - scores.max()) * float(mechanism.rate))
    return float(weights[index] / weights.sum()) + 1e-300
