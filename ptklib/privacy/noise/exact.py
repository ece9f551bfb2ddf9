"""The exact path of the samplers: tail probabilities in integer arithmetic, and draws decided by
them.

A draw is decided by a real U, uniform on [0, 1), of which only leading bits are known: U lies in the cell [u, u+1)/2**n.
With the tail ``T(k) = P(|X| >= k)``, decreasing in k, the draw is the largest k with ``U <= T(k)`` (the inverse of the
distribution function). `settle` asks ``U <= T(k)?`` with T(k) enclosed between two integers over 2**(n+64), and where the
cell and the enclosure overlap it appends 64 fresh bits to u and asks again. The answer is therefore that of a real U:
the law is exact. T(k) is irrational, so the loop ends with probability one (each round fails with probability < 2**-60).

No floats and no shared state: everything here is integer arithmetic with floors, whose errors are
counted below. A *fixed-point number at p bits* is an integer v that stands for v/2**p; a *unit* is
2**-p.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt

__all__ = [
    "Enclosure",
    "Tail",
    "gaussian_tail",
    "geometric_tail",
    "laplace_tail",
    "negative_exp",
    "settle",
    "upper_half",
]

# Two integers (low, high) with low <= value * 2**bits <= high.
Enclosure = tuple[int, int]
# (k, bits) -> enclosure of P(|X| >= k)
Tail = Callable[[int, int], Enclosure]

_STEP_BITS = 64


def settle(
    tail: Tail, u: int, bits: int, more: Callable[[], int], lowest: int, highest: int | None
) -> int:
    """The largest k in [lowest, highest] with U <= T(k), where U is in [u, u+1)/2**bits and
    continues with ``more()``.

    The caller knows that U <= T(lowest) and, unless ``highest`` is None, that U > T(highest + 1).
    T(0) = 1, so ``lowest=0, highest=None`` is always right. Unit and sensitivity: none, this is
    noise; cost: that of its mechanism.
    """

    def reaches(k: int) -> bool:
        nonlocal u, bits
        while True:
            low, high = tail(k, bits + _STEP_BITS)
            if (u + 1) << _STEP_BITS <= low:
                return True
            if u << _STEP_BITS >= high:
                return False
            u = (u << _STEP_BITS) | more()
            bits += _STEP_BITS

    step = 1
    while highest is None:
        if reaches(lowest + step):
            lowest += step
            step *= 2
        else:
            highest = lowest + step - 1
    while lowest < highest:
        middle = (lowest + highest + 1) // 2
        if reaches(middle):
            lowest = middle
        else:
            highest = middle - 1
    return lowest


def geometric_tail(scale: Fraction) -> Tail:
    """T(k) = exp(-k/scale)."""

    def tail(k: int, bits: int) -> Enclosure:
        return negative_exp(k / scale, bits)

    return tail


def laplace_tail(scale: Fraction) -> Tail:
    """T(k) = 2 exp(-k/scale) / (1 + exp(-1/scale)) for k >= 1, and T(0) = 1.

    From P(X = j) = exp(-|j|/scale) (1-q)/(1+q) with q = exp(-1/scale): both signs of every j >= k are summed.
    """

    @lru_cache(maxsize=4)
    def denominator(bits: int) -> Enclosure:
        low, high = negative_exp(1 / scale, bits)
        return low + (1 << bits), high + (1 << bits)

    def tail(k: int, bits: int) -> Enclosure:
        if k <= 0:
            return 1 << bits, 1 << bits
        low, high = negative_exp(k / scale, bits)
        least, most = denominator(bits)
        return (low << (bits + 1)) // most, (high << (bits + 1)) // least + 1

    return tail


def gaussian_tail(sigma: Fraction) -> Tail:
    """T(k) = P(|N(0, sigma**2)| >= k - 1/2) for k >= 1, and T(0) = 1: the tail of the rounded
    Gaussian.
    """

    def tail(k: int, bits: int) -> Enclosure:
        if k <= 0:
            return 1 << bits, 1 << bits
        return upper_half(Fraction(2 * k - 1, 2) / sigma, bits)

    return tail


def negative_exp(x: Fraction, bits: int) -> Enclosure:
    """Enclose exp(-x), x >= 0, within two units either side.

    With r = x/2**j < 2**-7 in fixed point at w = bits + j + 20 bits, exp(-r) is summed by its
    series, N < 2**16 terms. The floors of r (two) and of each term (two) are local errors of at
    most two units, and a local error is carried on to all later terms by factors that sum to at
    most exp(r) < 1.01; once a floored term is zero the later ones are zero without any new error.
    So the sum is off by less than 2.1 N + 3 < 2**18 units. Each of the j squarings turns an error e
    into at most 2e + 2 (values are at most 1), so the result is off by less than 2**j (2**18 + 2) <
    2**(j+20) units of 2**-w, which is one unit of 2**-bits; the final floor adds one.
    """
    if x >= bits:  # exp(-x) < 2**-bits, because e > 2
        return 0, 1
    halvings = (x.numerator // x.denominator).bit_length() + 7
    width = bits + halvings + 20
    r = ((x.numerator << width) // x.denominator) >> halvings
    term = total = 1 << width
    n = 0
    while term:
        n += 1
        term = (term * r >> width) // n
        total += -term if n & 1 else term
    for _ in range(halvings):
        total = total * total >> width
    value = total >> (halvings + 20)
    return max(0, value - 2), min(value + 2, 1 << bits)


def upper_half(t: Fraction, bits: int) -> Enclosure:
    """Enclose P(|Z| >= t) for a standard normal Z and t >= 0, within two units either side.

    P(|Z| < t) = sqrt(2/pi) exp(-t²/2) t S with S = sum of a_n, a_0 = 1, a_n = a_(n-1) t²/(2n+1); no term is negative, so
    nothing cancels. S <= exp(t²/2) <= 2**h because (2n+1)!! >= 2**n n!. In fixed point at w = bits + h + 40 bits:

    * term n is floored twice and t² once: local errors of 2 and of a_(n-1)/(2n+1) units. A local
      error is carried on by the factors of the later terms, which sum to at most S; once a floored
      term is zero there are no new ones. So S is low by at most (2N + S) S units, N < 2**20 terms;
    * exp(-t²/2) is low by at most 4 units and sqrt(2/pi) by 2, and each of the three products by
      one.

    Multiplied out, with sqrt(2/pi) < 1, exp(-t²/2) S <= 1 and t < 2**15, the total is below t
    (2**21 + 5 * 2**h + 6) units, less than 2**(h+40) of them: one unit of 2**-bits. The final floor
    adds one.
    """
    square = t * t
    if square >= 2 * bits:  # P(|Z| >= t) <= exp(-t²/2) < 2**-bits
        return 0, 1
    # 1 / (2 ln 2) < 0.7214
    width = bits + int(square * 7214 // 10000) + 1 + 40
    width += -width % 64  # few distinct widths, so that sqrt(2/pi) is computed once
    q = (square.numerator << width) // square.denominator
    term = total = 1 << width
    n = 1
    while term:
        n += 2
        term = (term * q >> width) // n
        total += term
    middle = negative_exp(square / 2, width)[0] * total >> width
    middle = middle * _root_two_over_pi(width) >> width
    middle = middle * t.numerator // t.denominator
    value = (1 << bits) - (middle >> (width - bits))
    return max(0, value - 2), min(value + 2, 1 << bits)


@lru_cache(maxsize=64)
def _root_two_over_pi(bits: int) -> int:
    """sqrt(2/pi) in fixed point, low by at most two units: pi by Machin's formula with 32 guard
    bits.
    """
    width = bits + 32

    def arctan_inverse(m: int) -> int:
        power = total = (1 << width) // m
        n = 1
        while power:
            power //= m * m
            n += 2
            total += power // n if n % 4 == 1 else -(power // n)
        return total

    pi = 16 * arctan_inverse(5) - 4 * arctan_inverse(239)
    return isqrt((2 << (3 * width)) // pi) >> 32
