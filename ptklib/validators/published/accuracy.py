"""The published test of an accuracy: Clopper and Pearson's bound with noisy counts (appendix B.2).

**Proof notes.** *Unit:* one record. *Neighbours:* add or remove one. *Sensitivity:* 1 each, of the
number of records and of those that are right. *Cost:* two Laplace releases at epsilon/2.
*Validity:* with probability eta/3 each, the noisy number of right records less 2 ln(3/(2
eta))/epsilon is above the number, the noisy number of records with as much is below it, and so many
right of so many records or more have a chance of at most eta/3 where the accuracy is the target or
less. That chance falls with the right and rises with the records. (The text takes ln(3/eta), which
is more than is needed.)

Reasons: ACCURACY_INVALID, ETA_INVALID, those of `amounts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.accuracy import accuracy_exact
from ptklib.validators.verdict import ACCEPT, RETRY, eta_exact

__all__ = ["PublishedAccuracyTest"]


@dataclass(frozen=True, init=False)
class PublishedAccuracyTest:
    """A test of "the accuracy is at least ``target``", wrong with probability at most ``eta``."""

    target: Fraction
    epsilon: Fraction
    eta: Fraction
    release: LaplaceRelease = field(repr=False)

    def __init__(self, *, target: Number, epsilon: Number, eta: Number) -> None:
        """Check the parameters; fix the price."""
        half = epsilon_exact(epsilon) / 2
        keep(
            self,
            target=accuracy_exact(target),
            epsilon=2 * half,
            eta=eta_exact(eta),
            release=LaplaceRelease(epsilon=half, sensitivity=1),
        )

    @property
    def cost(self) -> Cost:
        """What one verdict costs, whatever the records are."""
        return self.release.cost + self.release.cost

    @property
    def correction(self) -> float:
        """What one of the two draws exceeds with probability eta/3."""
        return 2 * math.log(3 / (2 * float(self.eta))) / float(self.epsilon)

    def verdict(self, right: ArrayLike, *, source: BitSource | None = None) -> str:
        """ACCEPT or RETRY, by whether each record of the test slice was answered rightly."""
        known = np.asarray(right).astype(bool).reshape(-1)
        number = self.release.release([len(known)], source=source)
        total = self.release.release([int(np.count_nonzero(known))], source=source)
        accepted = self.bounded(int(total.values[0]), int(number.values[0]))
        return ACCEPT if accepted else RETRY

    def bounded(self, right: int, records: int) -> bool:
        """The accuracy is at least the target. Post-processing of both noisy numbers."""
        from scipy.special import betainc  # slow to import, and not needed by all

        sure = math.floor(right - self.correction)
        most = math.ceil(records + self.correction)
        if most <= 0 or sure <= 0:
            return False
        # P(Bin(most, target) >= sure); more right than records are taken for all of them.
        sure = min(sure, most)
        chance = betainc(sure, most - sure + 1, float(self.target))
        return bool(chance <= float(self.eta) / 3)
