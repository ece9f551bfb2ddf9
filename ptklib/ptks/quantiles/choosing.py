"""The bin of each quantile, chosen by the exponential mechanism: all of epsilon for a few ranks,
where a tree of counts spends it on all of them.

For a quantile q and a key with n records, of which b_i are below bin i, the score of the bin is how
far the rank q n is from those that the bin holds, b_i to b_(i+1), times -1. Bins are then drawn with
probabilities in proportion to exp(rate score), exactly (`mechanisms.gibbs`): finer bins hardly
change anything, for a draw falls as far from the rank as before. Shares of a count are fractions
with whole numerators and denominators, so scores are whole numbers: of 1/D records for q = N / D.

**Proof note.** *Unit:* one record, or a user with at most r records in the batches. *Neighbours:*
add or remove one. *Sensitivity:* a record of the key moves every b_i by 0 or 1 and q n by q, in the
same direction, hence each of b_i - q n, and with it each score, by at most max(q, 1-q) records,
N or D - N units. *Cost:* with K quantiles each draw has epsilon / K at the sensitivity of r records.
A user with r_k records of key k moves the scores of that key by r_k / r of the sensitivity, so the
privacy loss of each of its draws lies in an interval as wide as epsilon / K r_k / r. Draws are
independent given the records, so losses add up, and with them the intervals: over quantiles and
keys to at most epsilon. The range of the loss of all draws together is bounded by epsilon: that is
what `ExponentialCost` of epsilon means, and it implies epsilon-DP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import ExponentialCost
from ptklib.privacy.mechanisms.selection import ExponentialMechanism
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.ptks.tables.samples import CONFIDENCE, MAX_RECORDS

__all__ = ["BinDraws", "scores"]

Integers = NDArray[np.int64]
# So that scores of 10**9 records are far from the limit of scores.
_FINEST = 10**6


@dataclass(frozen=True, init=False)
class BinDraws:
    """The draws of one training, before any data."""

    shares: tuple[Fraction, ...]
    mechanisms: tuple[ExponentialMechanism, ...]
    cost: ExponentialCost

    def __init__(
        self, quantiles: tuple[float, ...], *, epsilon: Number, records_per_unit: int
    ) -> None:
        """Equal shares of epsilon for all quantiles."""
        whole, records = epsilon_exact(epsilon), count_of(records_per_unit)
        shares = tuple(Fraction(share).limit_denominator(_FINEST) for share in quantiles)
        object.__setattr__(self, "shares", shares)
        object.__setattr__(
            self,
            "mechanisms",
            tuple(
                ExponentialMechanism(
                    epsilon=whole / len(shares), sensitivity=records * _reach(share)
                )
                for share in shares
            ),
        )
        object.__setattr__(self, "cost", ExponentialCost(epsilon=whole))

    def release(self, counts: Integers, source: BitSource | None) -> Integers:
        """A bin for each key (row) and quantile. Costs ``cost``; see the proof note."""
        chosen = np.empty((len(counts), len(self.shares)), dtype=np.int64)
        for place, (share, mechanism) in enumerate(zip(self.shares, self.mechanisms, strict=True)):
            for key, line in enumerate(scores(counts, share)):
                chosen[key, place] = mechanism.release(line, source=source).index
        return chosen

    def smallest(self, target: float, bins: int) -> int | None:
        """The fewest records of a key that keep the rank within ``target`` of all of them for every
        quantile with probability `CONFIDENCE`; None beyond `MAX_RECORDS`.

        A bin that holds the rank has score 0, so a bin further off than the target has at most
        exp(-rate target n D) times its probability; added up over bins and quantiles.
        """
        missed = (1 - CONFIDENCE) / len(self.shares)
        most = 0
        for share, mechanism in zip(self.shares, self.mechanisms, strict=True):
            steep = float(mechanism.rate) * share.denominator * target
            needed = math.ceil(math.log(max((bins - 1) / missed, 1.0)) / steep) if steep else None
            if needed is None or needed > MAX_RECORDS:
                return None
            most = max(most, needed)
        return max(most, 1)


def scores(counts: Integers, share: Fraction) -> Integers:
    """Of all bins for every key: a line for each row of counts, in units of 1/D records."""
    above = share.denominator * np.cumsum(counts, axis=1)
    below = above - share.denominator * counts
    rank = share.numerator * counts.sum(axis=1, keepdims=True)
    return np.asarray(-np.maximum(np.maximum(below - rank, rank - above), 0))


def _reach(share: Fraction) -> int:
    """What one record moves a score by at most."""
    return max(share.numerator, share.denominator - share.numerator)
