"""The test of a mean loss by betting: what it plays, the noise that it adds, and what it costs.

For each record the test stakes a share of its capital on the loss being below the target tau: the
capital is multiplied by ``1 + stake (tau - loss)``. Its logarithm is a sum over the records, the
*evidence*; noise is added once, discrete Laplace or rounded Gaussian (`noises`), and an ACCEPT
needs a threshold that counts that noise exactly (`threshold`). No noisy number of records, no union
bound over parts.

Losses are clipped to [0, ``bound``], each by itself; one that is no number counts as ``bound``. The
score of a record, ln(1 + stake (tau - loss))/r, is rounded *down* to units of 1/``grain`` nat
(`UNIT` of them if nothing else is said), which errs against an ACCEPT. r bounds the records of one
unit of privacy.

**Proof notes.** *Unit:* one record, or one user with at most r of them. *Neighbours:* add or remove
one. *Sensitivity:* a score is a function of its own record that lies in [low_units, high_units],
integers that follow from public numbers; a unit moves the exact sum by at most r max(-low_units,
high_units). *Cost:* that of one release of the noise with that sensitivity. The number of records
is never released. *Validity:* if the mean of the clipped losses is above tau, then E[1 + stake (tau
- loss)] < 1. With r = 1 and independent records the capital M is a product of independent factors,
non-negative as stake (bound - tau) < 1, so E[M] <= 1 whatever the number of records, and
`threshold` has the rest. With r > 1 users are independent and their records need not be: for the k
<= r records of one, by the inequality of the means (with r - k ones), the geometric mean of the
factors is at most ``1 + (stake/r) sum (tau - loss)``, whose expectation is at most 1 when the mean
over all records is above tau. Dividing scores by r takes that geometric mean: no record needs to
know whose it is. *Any* stake from public numbers is valid; it decides only how often a good state
is accepted (`power`).

Reasons: TARGET_INVALID, BOUND_INVALID, STAKE_INVALID, NOISE_INVALID, those of `verdict`, `amounts`
and `ptk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.validators.noises import Laplace, Noise, noise_from_json, noise_of
from ptklib.validators.verdict import LossVerdict, eta_exact

__all__ = [
    "LEAST_FACTOR",
    "METHOD",
    "UNIT",
    "LossTest",
    "clipped",
    "largest_stake",
    "target_within",
]

METHOD = "betting"
# Units of evidence in a nat: so fine that rounding a score down costs nothing that can be seen.
UNIT = 2**24
# The worst record leaves at least this part of the capital, and the best multiplies it by at most
# the inverse: what bounds the noise.
LEAST_FACTOR = Fraction(1, 20)
# Of a unit: more than float64 may be wrong by in a score, and far less than one that counts.
_SLACK = 2.0**-10


@dataclass(frozen=True, init=False)
class LossTest:
    """A test of "the mean loss is at most ``target``", wrong in an ACCEPT with probability at most
    ``eta``. Public numbers only: what it costs is known before any record is.
    """

    target: Fraction
    noise: Noise
    eta: Fraction
    stake: Fraction
    bound: Fraction
    records_per_unit: int
    grain: int
    low_units: int = field(repr=False)
    high_units: int = field(repr=False)
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        target: Number,
        eta: Number,
        stake: Number,
        epsilon: Number | None = None,
        noise: Noise | None = None,
        bound: Number = 1,
        records_per_unit: int = 1,
        grain: int = UNIT,
    ) -> None:
        """Check the parameters; fix sensitivity and price. An epsilon stands for Laplace noise."""
        added = noise_of(epsilon, noise)
        wanted, most = target_within(target, bound)
        bet, highest = exact(stake, name="stake"), largest_stake(wanted, most)
        if not 0 < bet <= highest:
            raise InvalidInput(
                "STAKE_INVALID",
                f"stake must be above 0 and at most {show(highest)} at target {show(wanted)}, "
                f"got {show(bet)}",
            )
        units = count_of(records_per_unit, name="records_per_unit")
        parts = int(exact(grain, name="grain"))
        ends = [wanted - most, wanted]
        low, high = (
            _units(math.log1p(float(bet) * float(end)) / units * parts)
            for end in map(Fraction, ends)
        )
        reach = units * max(-int(low), int(high))
        keep(
            self,
            target=wanted,
            noise=added,
            eta=eta_exact(eta),
            stake=bet,
            bound=most,
            records_per_unit=units,
            grain=parts,
            low_units=int(low),
            high_units=int(high),
            release=added.release(reach),
        )

    @property
    def epsilon(self) -> Fraction:
        """That of Laplace noise; Gaussian noise has none."""
        if isinstance(self.noise, Laplace):
            return self.noise.epsilon
        raise InvalidInput("NOISE_INVALID", "a test with Gaussian noise has a mu and no epsilon")

    @property
    def reach(self) -> int:
        """What a unit of privacy can move the evidence, in units: the sensitivity."""
        return int(self.release.sensitivity)

    @property
    def threshold(self) -> int:
        """How much noisy evidence an ACCEPT needs, in units."""
        return self.noise.threshold(self.reach, Fraction(1, self.grain), self.eta)

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.release.cost

    def scores(self, losses: ArrayLike) -> NDArray[np.int64]:
        """The evidence of each loss, in units, rounded down. Raw: not to be published."""
        known = clipped(losses, float(self.bound))
        bets = np.log1p(float(self.stake) * (float(self.target) - known))
        units = _units(bets / self.records_per_unit * self.grain)
        return np.clip(units, self.low_units, self.high_units)

    def verdict(self, losses: ArrayLike, *, source: BitSource | None = None) -> LossVerdict:
        """Noise the evidence of these losses, and judge it. Every call costs `cost`."""
        told = self.release.release([int(self.scores(losses).sum())], source=source)
        return LossVerdict.of(int(told.values[0]), self.threshold)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are compared exactly are texts."""
        priced = (
            {"epsilon": show(self.noise.epsilon)}
            if isinstance(self.noise, Laplace)
            else {"noise": self.noise.as_json()}
        )
        return {
            "method": METHOD,
            "target": _text(self.target),
            **priced,
            "eta": _text(self.eta),
            "stake": _text(self.stake),
            "bound": _text(self.bound),
            "records_per_unit": self.records_per_unit,
            **({} if self.grain == UNIT else {"grain": self.grain}),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LossTest:
        """Read `as_json` back."""
        texts = ("target", "eta", "stake", "bound")
        return cls(
            **{name: Fraction(body[name]) for name in texts},
            epsilon=body.get("epsilon"),
            noise=noise_from_json(body["noise"]) if "noise" in body else None,
            records_per_unit=body["records_per_unit"],
            grain=body.get("grain", UNIT),
        )


def clipped(losses: ArrayLike, bound: float) -> NDArray[np.float64]:
    """A fresh row of losses in [0, bound], each by itself; what is no loss counts as the worst."""
    known = np.array(losses, dtype=np.float64).reshape(-1)
    np.copyto(known, bound, where=np.isnan(known))
    np.clip(known, 0.0, bound, out=known)
    return known


def largest_stake(target: Fraction, bound: Fraction) -> Fraction:
    """So much that no record takes or gives more than `LEAST_FACTOR` allows."""
    return min((1 - LEAST_FACTOR) / (bound - target), (1 / LEAST_FACTOR - 1) / target)


def target_within(target: Number, bound: Number) -> tuple[Fraction, Fraction]:
    """Both exact: a target above 0 and below the bound of losses."""
    wanted, most = exact(target, name="target"), exact(bound, name="bound")
    if not 0 < most <= 10**6:
        raise InvalidInput(
            "BOUND_INVALID", f"bound must be above 0 and at most 10**6, got {show(most)}"
        )
    if not 0 < wanted < most:
        raise InvalidInput(
            "TARGET_INVALID",
            f"target must be above 0 and below the bound {show(most)}, got {show(wanted)}",
        )
    return wanted, most


def _units(values: Any) -> NDArray[np.int64]:
    """Rounded down by more than the logarithm may be wrong."""
    floored: NDArray[np.int64] = np.floor(np.asarray(values) - _SLACK).astype(np.int64)
    return floored


def _text(value: Fraction) -> str:
    return str(value)
