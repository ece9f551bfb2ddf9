"""How large is a mean loss? An estimate and an interval, from two noisy numbers about the records of
a test slice.

Released are the sum of the losses and the sum of what they lack of 1, with discrete Laplace noise each. A
record adds exactly 1 to both together, whatever its loss is: that is their joint sensitivity, and
their sum is a noisy number of records, for nothing. Everything after that is post-processing.

Losses are clipped to [0, 1], each by itself; one that is no number counts as 1. In units of 1/`UNIT`
they are rounded up.

**Proof notes.** *Unit:* one record, or one user with at most r of them. *Neighbours:* add or remove
one. *Sensitivity:* a record adds (a, UNIT - a), integers of which both are non-negative, so its L1
norm is UNIT; a unit moves the vector by at most r UNIT. *Cost:* that of one `LaplaceRelease` at epsilon
with that sensitivity. *Validity of the upper end:* let the mean loss be at least m. For a theta
above 0 let k = -ln(1 - m + m exp(-theta)). As exp(-theta l) is convex in l, a record of loss l has
E[exp(k - theta l)] <= 1. With r = 1 and independent records ln M = sum (k - theta l) has E[M] <= 1
whatever the number of records is, and with r > 1 so has 1/r of that sum (`betting`, "Validity", has the argument).
What is released gives ln M + W, where W = ((k - theta) Z1 + k Z2) / (r UNIT) is noise of known law that
knows nothing of the data. For 0 < lambda <= 1, E[M^lambda] <= 1, and with x = lambda (theta - k)/epsilon and
y = lambda k/epsilon, both below 1, E[exp(lambda W)] <= 1/((1 - x^2)(1 - y^2)), as discrete Laplace noise has
no larger moments than that of the line. So by Markov

    P( ln M + W >= t )  <=  eta    for    t = (ln(1/eta) - ln(1 - x^2) - ln(1 - y^2)) / lambda

and "the mean is at least m" is refuted where ln M + W reaches t. theta and lambda follow from m,
epsilon, eta, r and the *planned* number of records: public numbers, so the bound holds for each m. The
upper end is the least m on a grid such that it and all above it are refuted. If the true mean is beyond the
upper end, then the largest m of the grid that is not above the mean was refuted though it is true: a
chance of eta. The lower end is the same for the losses' complements, at m + 1/UNIT for the rounding.
Each end may be wrong with probability eta/2, so the interval as a whole with eta.

Floats decide only where the evidence is within a billionth of its threshold; such evidence is not
counted.

Reasons: those of `verdict`, `amounts` and `ptk`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.validators.verdict import eta_exact

__all__ = ["METHOD", "STEP", "UNIT", "LossInterval", "LossRange", "ToldLosses"]

METHOD = "interval"
# Units of a loss in 1; even, so that an odd part leaves an odd rest.
UNIT = 2**20
# The ends are multiples of this.
STEP = Fraction(1, 1000)
_THETAS = tuple(np.geomspace(0.002, 30.0, 64))
_LAMBDAS = tuple(np.geomspace(0.01, 1.0, 33))
# Evidence that exceeds its threshold by less may be rounding.
_SLACK = 1e-9


@dataclass(frozen=True)
class ToldLosses:
    """What was released, in units of 1/`UNIT`: the losses, and what they lack of 1. DP."""

    losses: int
    rest: int


@dataclass(frozen=True)
class LossRange:
    """Where a mean loss is, and an estimate of it inside; None where nothing was told of it."""

    low: float
    high: float
    estimate: float | None


@dataclass(frozen=True, init=False)
class LossInterval:
    """An interval for a mean loss, wrong with probability at most ``eta``. Public numbers only: what
    it costs is known before any record is. ``records`` are as planned; the real number moves how wide the
    interval is, never its validity.
    """

    epsilon: Fraction
    eta: Fraction
    records: int
    records_per_unit: int
    release: LaplaceRelease = field(repr=False)

    def __init__(
        self, *, epsilon: Number, eta: Number, records: int, records_per_unit: int = 1
    ) -> None:
        """Check the parameters; fix sensitivity and price."""
        units = count_of(records_per_unit, name="records_per_unit")
        release = LaplaceRelease(epsilon=epsilon_exact(epsilon), sensitivity=units * UNIT)
        for name, value in (
            ("epsilon", release.epsilon),
            ("eta", eta_exact(eta)),
            ("records", count_of(records, name="records")),
            ("records_per_unit", units),
            ("release", release),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """What one `tell` costs, whatever the records are."""
        return self.release.cost

    def sums(self, losses: ArrayLike) -> NDArray[np.int64]:
        """The losses and what they lack of 1, in units. Raw: not to be published."""
        known = np.array(losses, dtype=np.float64).reshape(-1)
        # What is no loss counts as the worst one.
        np.copyto(known, 1.0, where=np.isnan(known))
        np.clip(known, 0.0, 1.0, out=known)
        units = np.ceil(known * UNIT).astype(np.int64)
        total = int(units.sum())
        return np.array([total, UNIT * len(units) - total], dtype=np.int64)

    def tell(self, losses: ArrayLike, *, source: BitSource | None = None) -> ToldLosses:
        """Both sums with noise. Every call costs `cost`."""
        told = self.release.release(self.sums(losses), source=source).values
        return ToldLosses(int(told[0]), int(told[1]))

    def read(self, told: ToldLosses) -> LossRange:
        """What follows from them. Post-processing."""
        # Unlucky noise may leave nothing between the ends: then they change places.
        low, high = sorted(
            (
                1 - self._upper(told.rest, told.losses, -1 / UNIT) * STEP,
                self._upper(told.losses, told.rest, 0.0) * STEP,
            )
        )
        count = told.losses + told.rest
        estimate = None if count <= 0 else min(high, max(low, Fraction(told.losses, count)))
        return LossRange(
            float(low), float(high), None if estimate is None else round(float(estimate), 6)
        )

    @property
    def width(self) -> float:
        """How wide the interval is for a mean loss of 1/2 and the planned records: it is hardly
        ever wider.
        """
        half = self.records * UNIT // 2
        middle = self.read(ToldLosses(half, half))
        return middle.high - middle.low

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are compared exactly are texts."""
        return {
            "method": METHOD,
            "epsilon": show(self.epsilon),
            "eta": str(self.eta),
            "records": self.records,
            "records_per_unit": self.records_per_unit,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LossInterval:
        """Read `as_json` back."""
        return cls(
            epsilon=body["epsilon"],
            eta=Fraction(body["eta"]),
            records=body["records"],
            records_per_unit=body["records_per_unit"],
        )

    def _upper(self, losses: int, rest: int, shift: float) -> int:
        """The least mean of the grid, in steps, that is refuted with all above it; 1 where none is."""
        thetas, kappas, needed = _tests(
            float(self.epsilon), float(self.eta) / 2, self.records / self.records_per_unit, shift
        )
        each = self.records_per_unit * UNIT
        evidence = ((kappas - thetas) * losses + kappas * rest) / each
        refuted = evidence >= needed + _SLACK * (1 + np.abs(needed))
        # From the largest mean down, as long as they are refuted.
        kept = np.flatnonzero(~refuted)
        return 1 + (int(kept[-1]) + 1 if len(kept) else 0)


@lru_cache(maxsize=256)
def _tests(
    epsilon: float, eta: float, records: float, shift: float
) -> tuple[NDArray[np.float64], ...]:
    """For every mean of the grid between 0 and 1, rising: theta, k and t, by the theta and lambda
    that refute it for the largest losses, with so many records.
    """
    steps = int(1 / STEP)
    means = np.arange(1, steps) / steps
    thetas, lambdas = np.array(_THETAS)[None, :, None], np.array(_LAMBDAS)[None, None, :]
    kappas = -np.log1p((means + shift)[:, None, None] * np.expm1(-thetas))
    first, second = lambdas * (thetas - kappas) / epsilon, lambdas * kappas / epsilon
    allowed = (first < 1) & (second < 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        asked = (
            math.log(1 / eta)
            - np.log1p(-(np.where(allowed, first, 0.0) ** 2))
            - np.log1p(-(np.where(allowed, second, 0.0) ** 2))
        ) / lambdas
        reach = np.where(allowed, (kappas - asked / records) / thetas, -np.inf)
    flat = reach.reshape(len(means), -1)
    best = flat.argmax(axis=1)
    place, law = np.divmod(best, len(_LAMBDAS))
    rows = np.arange(len(means))
    chosen = np.array(_THETAS)[place], kappas[rows, place, 0], asked[rows, place, law]
    # Where no theta is allowed nothing is ever refuted.
    chosen[2][~np.isfinite(flat[rows, best])] = np.inf
    for values in chosen:
        values.flags.writeable = False
    return chosen
