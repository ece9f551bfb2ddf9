"""Noise for sums of x x^T at pure epsilon: the difference of two Wishart matrices, exact after
rounding.

Let y be the sum of x x^T over the records, a D x D matrix, where |x|^2 <= ``trace`` for the records of one unit together.
Released is y + P - Q, rounded to multiples of a public grain, where P and Q are independent with density proportional to
exp(-tr(P) / s) on the positive semidefinite matrices and s = trace / epsilon: Wishart matrices of D + 1 degrees of
freedom, (s/2) G G^T with G of D x (D+1) standard normal numbers. For D = 1 that is Laplace noise of scale s.

**Proof note.** *Unit, neighbours:* one record, or a user's records together, added or removed.
*Sensitivity:* X, what it adds to y, is positive semidefinite with tr(X) <= trace. *Cost:*
epsilon-DP. Let g(P) = exp(-tr(P)/s) for P >= 0 and 0 elsewhere (not normalised, >= is the order of
semidefinite matrices) and f(N) the integral over P of g(P) g(P - N), the density of N = P - Q. If P
>= 0 then P + X >= 0, and g(P + X) = exp(-tr(X)/s) g(P) >= exp(-epsilon) g(P) there. So g(P - N + X)
>= exp(-epsilon) g(P - N) for all P and N, hence f(N - X) >= exp(-epsilon) f(N); and with P shifted
by X, f(N + X) is the integral of g(P + X) g(P - N), hence f(N + X) >= exp(-epsilon) f(N). These are
both directions, for every output. Rounding is post-processing. (Adding P alone, the Wishart
mechanism of the literature, is not epsilon-DP: outputs below y are impossible, so a record that is
removed can make an output possible that was not.)

Entries off the diagonal have the standard deviation s sqrt((D+1)/2). Laplace noise on the upper
triangle has about s (D+1)/sqrt(2), sqrt(D+1) times as much, because vectors that are long in L2 can
be very long in L1.

**Exact.** Each standard normal number is known as k = round(2**36 z), drawn exactly (`sampler.rounded_gaussian`), so |z -
k/2**36| <= 2**-37. Entries computed in float64 from k are off by at most `_error`; those that no boundary of rounding is
that near to are decided. If any is not (for 64 columns about once in two hundred releases), every z is refined: its next
64 bits are uniform in the cell, accepted with probability exp(-(z^2 - a^2)/2), a the least |z| of the cell, by exact
comparison, and further bits are uniform, because the comparison was certain whatever they are. Entries are then decided
in whole numbers. The law of the outcome is that of the rounded continuous release, to the last bit.

Reasons: those of `amounts` and `mechanisms.inputs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.privacy.costs import PureCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.inputs import LIMIT, sensitivity_integer
from ptklib.privacy.noise.exact import negative_exp
from ptklib.privacy.noise.sampler import rounded_gaussian
from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["WishartRelease"]

# Leading bits of the normal numbers.
_BITS = 36
_WORD = 64
# The grain is this fraction of the noise, or less.
_GRAINS = 512
# Beyond, the noise is no answer.
_MAX_SCALE = 2**52

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, init=False)
class WishartRelease:
    """A sum of x x^T with noise.

    The proof note is in the module; ``trace`` bounds |x|^2 summed over one unit's records.
    """

    epsilon: Fraction
    trace: int
    scale: Fraction
    grain: int
    cost: PureCost

    def __init__(self, *, epsilon: Number, trace: int) -> None:
        """Check the parameters and fix the cost; no data yet."""
        level, reach = epsilon_exact(epsilon), sensitivity_integer(trace)
        scale = reach / level
        if scale > _MAX_SCALE:
            raise InvalidInput(
                "SCALE_TOO_LARGE",
                f"scale must be at most 2**52, got {show(scale)}; use a larger epsilon or a "
                "smaller norm",
            )
        keep(
            self,
            epsilon=level,
            trace=reach,
            scale=scale,
            grain=1 << max(0, math.floor(scale / _GRAINS).bit_length() - 1),
            cost=PureCost(epsilon=level),
        )

    def release(self, matrix: NDArray[np.object_], *, source: BitSource | None = None) -> Integers:
        """The symmetric matrix of Python ints with fresh noise, within ±LIMIT.

        Every call costs ``cost``.
        """
        bits = require_secure(source)
        size = len(matrix)
        cells: Integers = rounded_gaussian((2, size, size + 1), 1 << _BITS, source=bits)
        normal = cells.astype(np.float64) / 2.0**_BITS
        factor = float(self.scale / (2 * self.grain))
        whole, rest = matrix // self.grain, matrix % self.grain
        values = (
            factor * (normal[0] @ normal[0].T - normal[1] @ normal[1].T)
            + rest.astype(np.float64) / self.grain
        )
        below = np.floor(values)
        # Rounding is decided where no half is near.
        close = np.abs(values - below - 0.5) <= _error(normal, factor)
        rounded = below + (values - below > 0.5)
        above = np.triu_indices(size)
        noisy = whole + rounded.astype(np.int64).astype(object)
        undecided = [(int(i), int(j)) for i, j in zip(*above, strict=True) if close[i, j]]
        if undecided:
            exact = _Refined(cells, bits)
            for i, j in undecided:
                noisy[i, j] = whole[i, j] + exact.rounded(
                    i, j, self.scale / 2, int(rest[i, j]), self.grain
                )
        held = np.array(
            [max(-LIMIT, min(LIMIT, int(cell) * self.grain)) for cell in noisy[above]],
            dtype=np.int64,
        )
        symmetric = np.zeros((size, size), dtype=np.int64)
        symmetric[above] = held
        symmetric.T[above] = held
        return symmetric


def _error(normal: Floats, factor: float) -> float:
    """At most this are the float64 entries off, in grains, whatever the later bits of the normal
    numbers are.

    With h = 2**-37 the distance to z, m the largest sum of |z| in a row and n = D+1 terms, one product is off by at most
    2 h m + n h^2 for the cells and (n + 1) 2**-53 max|z| m for its roundings; there are two. Differences, the factor and the
    rest are rounded once each. The whole is doubled, which covers the rounding of this sum.
    """
    h, terms = math.ldexp(1.0, -(_BITS + 1)), normal.shape[2]
    longest, largest = float(np.abs(normal).sum(axis=2).max()), float(np.abs(normal).max())
    product = 2 * h * longest + terms * h * h + (terms + 8) * 2.0**-53 * largest * longest
    return float(2 * (2 * factor * product + 2.0**-50 * (1 + 2 * factor * largest * longest)))


class _Refined:
    """The same normal numbers with as many bits as the answers need: z is in [p, p+1) / 2**bits."""

    def __init__(self, cells: Integers, source: BitSource) -> None:
        self._source = source
        refined = [[[self._refine(int(k)) for k in row] for row in side] for side in cells]
        self._bits = max(bits for side in refined for row in side for _, bits in row)
        self._numbers = [
            [[self._extended(p, self._bits - bits) for p, bits in row] for row in side]
            for side in refined
        ]

    def rounded(self, i: int, j: int, half: Fraction, rest: int, grain: int) -> int:
        """round((half (G G^T - H H^T)_ij + rest) / grain), half up."""
        while True:
            low, high = self._difference(i, j)
            ends = [math.floor((half * end + rest) / grain + Fraction(1, 2)) for end in (low, high)]
            if ends[0] == ends[1]:
                return ends[0]
            self._append()

    def _difference(self, i: int, j: int) -> tuple[Fraction, Fraction]:
        """Bounds of the entry: each product of two cells is within |p| + |q| + 1 units of p q."""
        middle = slack = 0
        for sign, side in zip((1, -1), self._numbers, strict=True):
            for p, q in zip(side[i], side[j], strict=True):
                middle += sign * p * q
                slack += abs(p) + abs(q) + 1
        unit = 1 << (2 * self._bits)
        return Fraction(middle - slack, unit), Fraction(middle + slack, unit)

    def _append(self) -> None:
        """64 more bits of every number, uniform."""
        self._numbers = [
            [[self._extended(p, _WORD) for p in row] for row in side] for side in self._numbers
        ]
        self._bits += _WORD

    def _extended(self, p: int, bits: int) -> int:
        for _ in range(0, bits, _WORD):
            p = (p << _WORD) | self._word()
        return p

    def _refine(self, k: int) -> tuple[int, int]:
        """(p, bits) of the z with round(2**_BITS z) = k: uniform in the cell, accepted with the
        density.
        """
        least = Fraction(max(0, 2 * abs(k) - 1), 1 << (_BITS + 1))
        while True:
            p, bits = ((2 * k - 1) << (_WORD - 1)) + self._word(), _BITS + _WORD
            v, known = self._word(), _WORD
            while (accepted := _accepts(p, bits, v, known, least)) is None:
                p, bits = self._extended(p, _WORD), bits + _WORD
                v, known = self._extended(v, _WORD), known + _WORD
            if accepted:
                return p, bits

    def _word(self) -> int:
        return int(self._source.words(1)[0])


def _accepts(p: int, bits: int, v: int, known: int, least: Fraction) -> bool | None:
    """Whether V < exp(-(z^2 - least^2)/2), for V in [v, v+1)/2**known and z in [p, p+1)/2**bits;
    None: not known yet.
    """
    ends = sorted(Fraction(abs(end), 1 << bits) ** 2 for end in (p, p + 1))
    least_loss, most_loss = (max(Fraction(0), end - least * least) / 2 for end in ends)
    # exp(-x) >= 1 - x: nearly always enough.
    if Fraction(v + 1, 1 << known) <= 1 - most_loss:
        return True
    if (v + 1) << _WORD <= negative_exp(most_loss, known + _WORD)[0]:
        return True
    return False if v << _WORD >= negative_exp(least_loss, known + _WORD)[1] else None
