"""Exact integer noise at the speed of floats: discrete Laplace, geometric and rounded Gaussian.

Every draw takes one 64-bit word: a sign bit and 63 bits u. They stand for a real U, uniform on [0,
1), in the cell [u, u+1)/2**63, whose later bits are drawn only if needed. The absolute value of the
draw is ``floor(Y)`` with

* discrete Laplace: Y = scale (c - ln U), c = ln(2/(1+q)), q = exp(-1/scale). Then P(|X| >= k) = 2 q**k/(1+q) for k >= 1, which
  is that of P(X = k) proportional to exp(-|k|/scale). Zero is reached with both signs; nothing is rejected;
* geometric: Y = -scale ln U, so that P(X >= k) = exp(-k/scale). The sign bit is not used;
* rounded Gaussian: Y = sigma z + 1/2, z = -Phi^-1(U/2): the continuous N(0, sigma²) rounded to the
  nearest integer. For integer statistics the rounding is post-processing, so the zCDP and
  Gaussian-DP costs of the continuous Gaussian hold with no slack.

**Unit, sensitivity, cost.** Draws are in the unit of the statistic (integers); a sampler sees no
data, so it has no sensitivity and no cost of its own: the mechanism that adds the draw states both.

**Why float64 may be used.** y is Y computed in float64 at the middle of the cell, (u + 1/2)/2**63.
For u >= 1 and every U of the cell

    |y - Y| <= scale 2**-46 + y 2**-46 + scale/u

(`_Law.tolerance`). If no integer lies within that distance of y then floor(y) = floor(Y) whatever
the later bits are. Otherwise (at scale 10**9 about 5 times in 10**5 draws, at scale 1000 hardly
ever) the draw is *undecided*, and `sampler_slow.settle` finishes it in exact arithmetic with more
bits. The law of the outcome is thus exact, and which draws take the slow path depends on the noise
bits alone. Proof of the bound, with e = 2**-53:

* the cell: |ln(u+x) - ln(u+1/2)| <= 1/(2u) for 0 <= x < 1. For the Gaussian |dz/dU| = 1/(2 phi(z)) and U/2 = P(Z > z) <=
  sqrt(pi/2) phi(z), so |dz/dU| <= sqrt(pi/2)/U and half a cell moves z by less than 0.63/u. Both are below 1/u;
* conversion: u to float64 and adding 1/2 are rounded once each, so U is off by a factor within 1 ±
  2.1e (for U near 1 too; u near 2**63 rounds up to at most 1). That moves ln U by at most 2.2e and
  z by at most sqrt(pi/2) 2.2e < 3e;
* the curve: numpy's log and our probit (`sampler_probit`) are taken to be right within 16e |value| + 8e; `_self_test`
  checks that at first use, with a margin of two;
* the rest: the rounded scale, the product, the offset (within 8e of itself) and the sum cost at
most 12e y.

Together at most scale 11e + y 28e; the bound grants 128e to each.

Reasons: SCALE_NOT_POSITIVE, SCALE_TOO_LARGE, SCALE_TOO_SMALL, SHAPE_INVALID,
SAMPLER_SELF_TEST_FAILED, and those of `amounts.exact` and `source.require_secure`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, log1p, prod

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.noise.exact import (
    Tail,
    gaussian_tail,
    geometric_tail,
    laplace_tail,
    negative_exp,
    settle,
    upper_half,
)
from ptklib.privacy.noise.probit import Probit, seams
from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["MAX_SCALE", "MIN_SCALE", "Shape", "discrete_laplace", "geometric", "rounded_gaussian"]

Shape = int | tuple[int, ...]

# Above, most draws would be undecided in float64; below, a draw other than zero is a
# once-in-a-universe event.
MAX_SCALE = 2**40
MIN_SCALE = Fraction(1, 1000)

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
# Maps an array of probabilities (which it may overwrite) to an array that it may reuse.
_Curve = Callable[[_Floats], _Floats]

_BITS = 63
_U_MASK = np.uint64(2**63 - 1)
# Large enough to hide the cost of a numpy call, small enough that the buffers stay near the
# processor.
_CHUNK = 1 << 15
_ABSOLUTE = 2.0**-46
_KEPT = threading.local()
_RELATIVE = 2.0**-46


def discrete_laplace(shape: Shape, scale: Number, *, source: BitSource | None = None) -> _Ints:
    """Draws with P(k) proportional to exp(-|k|/scale), exactly."""
    return _draw(shape, _laplace_law(_scale_exact(scale, "scale")), source)


def geometric(shape: Shape, scale: Number, *, source: BitSource | None = None) -> _Ints:
    """Draws with P(X >= k) = exp(-k/scale) for k >= 0, exactly."""
    return _draw(shape, _geometric_law(_scale_exact(scale, "scale")), source)


def rounded_gaussian(shape: Shape, sigma: Number, *, source: BitSource | None = None) -> _Ints:
    """Draws of the continuous N(0, sigma²) rounded to the nearest integer, exactly."""
    return _draw(shape, _gaussian_law(_scale_exact(sigma, "sigma")), source)


@dataclass(frozen=True, eq=False)
class _Law:
    """One law: how float64 computes y from the cell, and the exact tail that decides where float64
    cannot.

    y = offset - scale * curve(unit * (u + 1/2)); ``curve_for(n)`` gives the curve with buffers for
    n elements.
    """

    scale: float
    curve_for: Callable[[int], _Curve]
    unit: float
    offset: float
    far: float
    signed: bool
    tail: Tail

    def position(self, u: _Ints, y: _Floats, curve: _Curve) -> None:
        """Write y for every u."""
        np.copyto(y, u, casting="unsafe")
        np.add(y, 0.5, out=y)
        np.multiply(y, self.unit, out=y)
        np.multiply(curve(y), -self.scale, out=y)
        np.add(y, self.offset, out=y)

    def tolerance(self, y: _Floats, u: _Ints) -> _Floats:
        """The proven distance between y and Y for u >= 1.

        The factor covers the rounding of this sum itself.
        """
        return (self.scale * _ABSOLUTE + y * _RELATIVE + self.scale / np.maximum(u, 1)) * (
            1 + 2.0**-40
        )

    @property
    def coarse(self) -> float:
        """At least `tolerance` wherever y <= far: there U > 2**-20.1, so u > 2**42."""
        return self.scale * (_ABSOLUTE + 2.0**-42) * 1.01 + self.far * _RELATIVE * 1.01


def _log(size: int) -> _Curve:  # noqa: ARG001  (np.log needs no buffers)
    return lambda p: np.log(p, out=p)


@lru_cache(maxsize=256)
def _laplace_law(scale: Fraction) -> _Law:
    size = float(scale)
    # c = -ln((1+q)/2) without cancellation when q is near 1, so the offset keeps its relative
    # precision.
    offset = -size * log1p(expm1(-1 / size) / 2)
    return _Law(size, _log, 2.0**-63, offset, size * 13.86 + offset, True, laplace_tail(scale))


@lru_cache(maxsize=256)
def _geometric_law(scale: Fraction) -> _Law:
    size = float(scale)
    return _Law(size, _log, 2.0**-63, 0.0, size * 13.86, False, geometric_tail(scale))


@lru_cache(maxsize=256)
def _gaussian_law(sigma: Fraction) -> _Law:
    size = float(sigma)
    return _Law(size, Probit, 2.0**-64, 0.5, size * 4.9 + 0.5, True, gaussian_tail(sigma))


def _draw(shape: Shape, law: _Law, source: BitSource | None) -> _Ints:
    """Fill ``shape`` chunk by chunk, so that memory beyond the output is constant."""
    bits = require_secure(source)
    _self_test()
    out = np.empty(_count(shape), dtype=np.int64)
    scratch = _scratch_of(law) if len(out) >= _CHUNK else _Scratch(law, len(out))
    for start in range(0, len(out), _CHUNK):
        part = out[start : start + _CHUNK]
        _from_words(bits.words(len(part)), law, lambda: int(bits.words(1)[0]), part, scratch)
    return out.reshape(shape)


class _Scratch:
    """Buffers that the chunks of a call share."""

    def __init__(self, law: _Law, size: int) -> None:
        self.curve = law.curve_for(size)
        self.y = np.empty(size)
        self.near = np.empty(size)
        self.close = np.empty(size, dtype=np.bool_)


def _scratch_of(law: _Law) -> _Scratch:
    """The buffers of this thread for whole chunks: to get megabytes anew for each large draw takes
    as long as the draw.
    """
    kept: dict[object, _Scratch] = _KEPT.__dict__.setdefault("by_curve", {})
    if law.curve_for not in kept:
        kept[law.curve_for] = _Scratch(law, _CHUNK)
    return kept[law.curve_for]


def _from_words(
    words: NDArray[np.uint64],
    law: _Law,
    more: Callable[[], int],
    out: _Ints,
    scratch: _Scratch | None = None,
) -> int:
    """Turn words (overwritten) into draws in ``out``; return how many were undecided in float64.

    A pure function of the words and of what ``more`` gives.
    """
    scratch = scratch or _Scratch(law, len(out))
    y, near, close = scratch.y[: len(out)], scratch.near[: len(out)], scratch.close[: len(out)]
    if law.signed:
        # All ones where the draw is negative: (v ^ sign) - sign is then -v.
        sign = words.view(np.int64) >> 63
    np.bitwise_and(words, _U_MASK, out=words)
    u = words.view(np.int64)
    law.position(u, y, scratch.curve)
    np.rint(y, out=near)
    np.subtract(y, near, out=near)
    np.abs(near, out=near)
    np.less_equal(near, law.coarse, out=close)
    if y.size and y.max() > law.far:
        close |= y > law.far
    candidates = np.flatnonzero(close)
    np.floor(y, out=near)
    np.copyto(out, near, casting="unsafe")
    undecided = _finish(candidates, u, y, law, more, out) if len(candidates) else 0
    if law.signed:
        np.bitwise_xor(out, sign, out=out)
        np.subtract(out, sign, out=out)
    return undecided


def _finish(
    candidates: NDArray[np.intp],
    u: _Ints,
    y: _Floats,
    law: _Law,
    more: Callable[[], int],
    out: _Ints,
) -> int:
    """Apply the fine tolerance to the candidates and settle those that it leaves undecided."""
    u, y = u[candidates], y[candidates]
    tolerance = law.tolerance(y, u)
    lowest = np.floor(np.maximum(y - tolerance, 0.0)).astype(np.int64)
    highest = np.floor(y + tolerance).astype(np.int64)
    open_ended = u == 0
    undecided = np.flatnonzero((lowest != highest) | open_ended)
    for i in undecided:
        bounds = (0, None) if open_ended[i] else (int(lowest[i]), int(highest[i]))
        out[candidates[i]] = settle(law.tail, int(u[i]), _BITS, more, *bounds)
    return len(undecided)


@lru_cache(maxsize=1)
def _self_test() -> None:
    """Refuse a platform whose log or ndtri is worse than the proof allows, before the first draw.

    Vector units differ between processors by some last places. A value v of a curve at the float64
    p is right within d iff the exact tails at v-d and v+d enclose p; d is half of what the proof
    grants.
    """
    spread = np.array([i * 0x331_7A6B_94D2_0F1D % 2**63 for i in range(1, 40)], dtype=np.int64)
    cells = np.concatenate([_hard_cells(), spread])
    half = (cells.astype(np.float64) + 0.5) * 2.0**-64
    logs, probits = _log(len(half))(half * 2), Probit(len(half))(half.copy())
    right = all(_within(value, p, negative_exp) for value, p in zip(-logs, half * 2, strict=True))
    right = right and all(
        _within(value, p * 2, upper_half) for value, p in zip(-probits, half, strict=True)
    )
    if not right or seams() > 0.5:
        raise InsecureNoise(
            "SAMPLER_SELF_TEST_FAILED",
            "numpy's log or scipy's ndtri is less precise on this machine than the sampler's proof "
            "allows; install "
            "other versions of numpy and scipy",
        )


def _within(value: float, p: float, tail: Callable[[Fraction, int], tuple[int, int]]) -> bool:
    """True when the v >= 0 with tail(v) = p is within the self-test's margin of ``value``."""
    bits = 256
    center, asked = Fraction(float(value)), int(Fraction(float(p)) * 2**bits)
    margin = (8 * abs(center) + 4) / 2**53
    return tail(center + margin, bits)[0] <= asked and (
        center <= margin or asked <= tail(center - margin, bits)[1]
    )


def _hard_cells() -> _Ints:
    """Cells where a curve changes its method or its error is largest: both ends, powers of two,
    ndtri's branches.
    """
    tops = [
        2**63 - 1 - d for d in (0, 1, 511, 512, 513, 1 << 20, 1 << 40, 1 << 50, 1 << 56, 1 << 60)
    ]
    powers = [2**e + d for e in range(0, 63, 5) for d in (0, -1) if 2**e + d > 0]
    # ndtri changes its rational approximation at p = exp(-2) and at p = exp(-32).
    branches = [int(2**64 * exp(-p)) + d for p in (2, 32) for d in (-1024, -1, 0, 1, 1024)]
    return np.array(tops + powers + branches, dtype=np.int64)


def _scale_exact(value: Number, name: str) -> Fraction:
    scale = exact(value, name=name)
    if scale == 0:
        raise InvalidInput(
            "SCALE_NOT_POSITIVE",
            f"{name} must be positive, got 0: nothing is released without noise",
        )
    if scale > MAX_SCALE:
        raise InvalidInput(
            "SCALE_TOO_LARGE",
            f"{name} must be at most 2**40, got {show(scale)}; use a coarser resolution",
        )
    if scale < MIN_SCALE:
        raise InvalidInput(
            "SCALE_TOO_SMALL",
            f"{name} must be at least 0.001, got {show(scale)}; use a finer resolution",
        )
    return scale


def _count(shape: Shape) -> int:
    sides = shape if isinstance(shape, tuple) else (shape,)
    if any(
        isinstance(side, bool) or not isinstance(side, int | np.integer) or side < 0
        for side in sides
    ):
        raise InvalidInput(
            "SHAPE_INVALID",
            f"shape must be a whole number or a tuple of them, at least 0, got {shape!r}",
        )
    return prod(int(side) for side in sides)
