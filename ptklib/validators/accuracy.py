"""The test of an accuracy: noisy numbers of right and wrong answers, and the law of what follows
from them, counted exactly.

Released are R = right + Z1 and K = wrong + Z2. With p = 1 - target the most errors that are
allowed, a share, the statistic is p R - (1 - p) K: what the errors are below those allowed. Its law
under a broken promise is that of a binomial number of errors with the noise on it, p Z1 - (1 - p)
Z2, and the threshold is the least that it reaches with probability at most eta: a convolution, no
inequality.

**How the number of records enters.** It is private, and the spread of the statistic grows with it.
R + K is a noisy number of records, for nothing; the true one is further from it than its noise
reaches, on either side, only with probability eta/`_COUNT_PART`. The threshold is the least that is
reached with probability at most eta (1 - 1/`_COUNT_PART`) *for every* number of records in that
range.

**Proof notes.** *Unit:* one record. (Records of one user are not independent, and a binomial law is
not theirs: streams whose users have several take `betting` with errors as losses.) *Neighbours:*
add or remove one. *Sensitivity:* a record is right or wrong and moves one number by 1: L1 and L2
norm 1. *Cost:* that of one release of the noise at sensitivity 1. *Validity:* let n records,
whatever n is, be answered rightly with probability at most the target each, independently, and t_n
be the least threshold that their statistic reaches with probability at most eta (1 -
1/_COUNT_PART). A wrong ACCEPT means that n is outside of its range, or that the statistic reaches a
threshold that is at least t_n, whatever the range was: eta together. The statistic falls with each
error, so an accuracy of the target exactly is the worst one. *For every number of a range:* a
statistic of n records is that of a <= n records and at most p (n - a) more, so P_n(statistic >= t)
<= P_a(statistic >= t - p (b - a)) for all n in [a, b]. Where that is small enough for the whole
stretch it is settled, else it is halved, down to single numbers. *The law of the noise:* each of p
Z1 and -(1 - p) Z2 is rounded up to a grid, so that sums on the grid are never below the true ones.
Gaussian noise is rounded to integers, and taken as half a unit worse in both. Floats are granted a
millionth of eta.

Reasons: ACCURACY_INVALID, ETA_INVALID, NOISE_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.enough import least_records
from ptklib.validators.noises import Noise, noise_from_json, noise_of
from ptklib.validators.noisy_law import NoisyLaw, chance_of_reaching
from ptklib.validators.verdict import ACCEPT, RETRY, eta_exact

__all__ = ["METHOD", "AccuracyTest", "AccuracyVerdict", "accuracy_exact"]

METHOD = "convolution"
# One part of so many, of eta, is for the noise on the number of records, half of it on either side.
_COUNT_PART = 32
_FLOATS = 1e-6
# Beyond this a number of records is a mistake.
_MOST = 10**9


@dataclass(frozen=True)
class AccuracyVerdict:
    """What was found, and what was released: noisy numbers of right and wrong answers. DP.

    ``threshold`` is how far the errors had to be below those allowed, in records.
    """

    outcome: str
    right: int
    wrong: int
    threshold: float

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "outcome": self.outcome,
            "right": self.right,
            "wrong": self.wrong,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, init=False)
class AccuracyTest:
    """A test of "the accuracy is at least ``target``", wrong in an ACCEPT with probability at most
    ``eta``. Public numbers only: what it costs is known before any record is.
    """

    target: Fraction
    noise: Noise
    eta: Fraction
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        target: Number,
        eta: Number,
        epsilon: Number | None = None,
        noise: Noise | None = None,
    ) -> None:
        """Check the parameters; fix the price."""
        added = noise_of(epsilon, noise)
        keep(
            self,
            target=accuracy_exact(target),
            noise=added,
            eta=eta_exact(eta),
            release=added.release(1),
        )

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.release.cost

    def verdict(self, right: ArrayLike, *, source: BitSource | None = None) -> AccuracyVerdict:
        """Count, add noise, and judge; one truth value for each record. Every call costs `cost`."""
        known = np.asarray(right).astype(bool).reshape(-1)
        good = int(np.count_nonzero(known))
        told = self.release.release([good, len(known) - good], source=source)
        return self.judged(int(told.values[0]), int(told.values[1]))

    def judged(self, right: int, wrong: int) -> AccuracyVerdict:
        """What follows from both noisy numbers. Post-processing."""
        threshold = self.threshold(*self.records_within(right + wrong))
        allowed = float(1 - self.target)
        reached = allowed * right - (1 - allowed) * wrong >= threshold
        return AccuracyVerdict(ACCEPT if reached else RETRY, right, wrong, threshold)

    def records_within(self, told: int) -> tuple[int, int]:
        """Where the number of records is, but for a small part of eta, by what was told of it."""
        off = self._off
        low, high = (min(_MOST, max(0, end)) for end in (told - off, told + off))
        return low, high

    def threshold(self, low: int, high: int) -> float:
        """How far the errors must be below those allowed, for any number of records in a range."""
        # Widened in steps that cost nothing, so that few of them are ever computed.
        grain = max(1, 2 ** (high.bit_length() - 9))
        return _threshold(
            self.noise, self.target, self.eta, low // grain * grain, -(-high // grain) * grain
        )

    @property
    def _off(self) -> int:
        law = _law(self.noise, 1.0, 1.0)
        return math.ceil(law.quantile(float(self.eta) / (2 * _COUNT_PART)))

    def needed(self, accuracy: Number, power: Number = Fraction(9, 10)) -> int | None:
        """Records with which a state of that accuracy is accepted so often; None where it is not
        above the target. No data.
        """
        state, chance = exact(accuracy, name="accuracy"), float(exact(power, name="power"))
        if state <= self.target:
            return None
        supposed = float(state)
        law = _law(self.noise, float(1 - self.target), float(self.target))

        def enough(records: int) -> bool:
            # As if the noise on the number were as large as it may be.
            asked = self.threshold(*self.records_within(records + self._off))
            return chance_of_reaching(law, asked, records, self.target, supposed) >= chance

        return least_records(enough, first=8, most=_MOST)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are compared exactly are texts."""
        return {
            "method": METHOD,
            "target": str(self.target),
            "noise": self.noise.as_json(),
            "eta": str(self.eta),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> AccuracyTest:
        """Read `as_json` back."""
        return cls(
            target=Fraction(body["target"]),
            noise=noise_from_json(body["noise"]),
            eta=Fraction(body["eta"]),
        )


def accuracy_exact(target: Number) -> Fraction:
    """An accuracy above 0 and below 1."""
    wanted = exact(target, name="target")
    if not 0 < wanted < 1:
        raise InvalidInput(
            "ACCURACY_INVALID", f"an accuracy must be above 0 and below 1, got {show(wanted)}"
        )
    return wanted


@lru_cache(maxsize=64)
def _law(noise: Noise, first: float, second: float) -> NoisyLaw:
    return NoisyLaw.of(noise, first, second)


@lru_cache(maxsize=65536)
def _threshold(noise: Noise, target: Fraction, eta: Fraction, low: int, high: int) -> float:
    allowed = float(1 - target)
    law = _law(noise, allowed, 1 - allowed)
    rate = float(eta) * (1 - 1 / _COUNT_PART) * (1 - _FLOATS)

    def failing(threshold: float, first: int, last: int) -> int | None:
        """A number of records from first to last that reaches it too often."""
        nearest = threshold - allowed * (last - first)
        if chance_of_reaching(law, nearest, first, target) <= rate:
            return None
        if first == last:
            return first
        middle = (first + last) // 2
        # Where it is likeliest to fail first.
        worse = failing(threshold, middle + 1, last)
        return failing(threshold, first, middle) if worse is None else worse

    def least(records: int) -> float:
        return _least(lambda value: chance_of_reaching(law, value, records, target) <= rate, step)

    step = max(law.step, 8e-3 * math.sqrt(high * allowed * (1 - allowed)))
    # A little more settles wide stretches at once.
    asked = least(high) + step
    worst = failing(asked, low, high)
    while worst is not None:
        asked = max(asked, least(worst)) + step
        worst = failing(asked, low, high)
    return asked


def _least(holds: Any, step: float) -> float:
    """The least multiple of ``step`` at which it holds, from 0 on."""
    high = 1
    while not holds(high * step):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle * step) else (middle, high)
    return high * step
