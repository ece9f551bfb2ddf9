"""How much loss a PTK has left with an epsilon on a number of samples, as a share of its target: the
public yardstick that the surplus is handed out by.

A profile says where the loss is the target: at each level e_j on n_j samples. Between and beyond
these points two things make up the error of what is trained on n samples::

    loss(e, n) / target  =  a(e) / n  +  b / sqrt(n)          and it is 1 at every (e_j, n_j)

*Noise* moves sums by amounts that do not depend on n, so its part of an average falls as 1 / n; a(e)
falls as epsilon rises. *Sampling* falls as 1 / sqrt(n) whatever epsilon is. b follows from the two
largest levels: there noise should fall as 1 / e does, and what of n_j does not fall with e is
sampling. So b is 0 where the profile is steep (n_j e_j stays the same) and all there is where it is
flat. Between levels a(e) is a line in logarithms. As 0 <= b <= sqrt(n_j), the model falls in n and
does not rise in e.

A PTK without a target (best effort) has no such points. Its loss counts as a share of what it would
be on ``reference`` samples, at the one epsilon that it may be given::

    loss(n) / loss(reference)  =  reference / n

as for noise alone, which is all that a closed form speaks of, and what a measured kind has most of
where it has few samples. With the equal share of a window for reference it comes before nearly
everybody while it has less than that, and is one of many beyond.

**Proof note.** *Privacy:* profiles are closed forms of public numbers, or were charged when they
were measured: this is post-processing, and no data is looked at. *What it is not:* a promise. It
only says where more helps most; measured kinds have a floor that no profile knows.

*The promise.* `LossCurve.keeps` says which (e, n) keep the target: those beyond a profiled point in both,
e >= e_j and n >= n_j. More budget does no harm because adding the noise of e_j would reach the target
as well (`profiler.analytic`); more samples because n_j is the least number for which the profile's
bound holds, and bounds fall in n. Only profiled points count here, never the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from allocator.admission.coordinates import Offer
from ptklib.privacy.amounts import exact
from ptklib.privacy.filters import Demand

__all__ = ["LossCurve", "Rung"]


@dataclass(frozen=True)
class Rung:
    """An epsilon that a PTK may be given, as text, and what it demands of every record."""

    level: str
    demand: Demand

    @cached_property
    def epsilon(self) -> Fraction:
        """The level as a number."""
        return exact(self.level, name="level")

    @cached_property
    def log_epsilon(self) -> float:
        """Its logarithm."""
        return math.log(self.epsilon)


@dataclass(frozen=True)
class LossCurve:
    """One PTK: what its profile promises (``offers``), which epsilons it may be given (``rungs``, by
    rising epsilon), and the most samples it may train on. With a ``reference`` it is best effort: its
    offers say what it trains on at least.
    """

    id: str
    offers: tuple[Offer, ...]
    rungs: tuple[Rung, ...]
    most: int | None = None
    reference: int | None = None

    @cached_property
    def points(self) -> tuple[tuple[Fraction, int], ...]:
        """The profiled (epsilon, samples), by rising epsilon."""
        return tuple(
            sorted((exact(offer.level, name="level"), offer.samples) for offer in self.offers)
        )

    @cached_property
    def sampling(self) -> float:
        """b: see the module."""
        if len(self.points) < 2 or self.reference is not None:
            return 0.0
        (low, more), (high, fewer) = self.points[-2:]
        ratio = float(high / low)
        flat = ratio * fewer - more
        if flat <= 0:
            return 0.0
        return min(math.sqrt(fewer), flat / (ratio * math.sqrt(fewer) - math.sqrt(more)))

    @cached_property
    def _known(self) -> tuple[tuple[float, float], ...]:
        """log e and a(e) where the profile says them."""
        if self.reference is not None:
            return ((math.log(self.points[-1][0]), float(self.reference)),)
        return tuple(
            (math.log(level), max(0.0, samples - self.sampling * math.sqrt(samples)))
            for level, samples in self.points
        )

    @cached_property
    def noise(self) -> tuple[float, ...]:
        """a(e) at every rung; beyond the profile it goes by the law of its end."""
        return tuple(_between(self._known, rung.log_epsilon) for rung in self.rungs)

    def loss_at(self, level: str, samples: int) -> float:
        """`loss` at any epsilon, whether it may be given or not."""
        at = math.log(exact(level, name="level"))
        return _between(self._known, at) / samples + self.sampling / math.sqrt(samples)

    def loss(self, rung: int, samples: int) -> float:
        """The loss to expect, as a share of the target."""
        return self.noise[rung] / samples + self.sampling / math.sqrt(samples)

    @cached_property
    def least(self) -> tuple[int | None, ...]:
        """The fewest samples at which the profile itself promises the target, by rung; None where it
        promises nothing.
        """
        fewest: list[int | None] = []
        ahead = list(self.points)
        best: int | None = None
        for rung in self.rungs:
            while ahead and ahead[0][0] <= rung.epsilon:
                samples = ahead.pop(0)[1]
                best = samples if best is None else min(best, samples)
            fewest.append(best)
        return tuple(fewest)

    def losses(self, samples: int) -> list[float]:
        """`loss` at every rung."""
        sampling = self.sampling / math.sqrt(samples)
        return [noise / samples + sampling for noise in self.noise]

    def keeps(self, rung: int, samples: int) -> bool:
        """True where the profile itself promises the target."""
        least = self.least[rung]
        return least is not None and samples >= least

    def rung_of(self, level: str) -> int | None:
        """The place of a level among the rungs; None where it may not be given."""
        known = (place for place, rung in enumerate(self.rungs) if rung.level == level)
        return next(known, None)

    def capped(self, samples: int) -> int:
        """So many samples, or the most there may be."""
        return samples if self.most is None else min(samples, self.most)


def _between(known: Sequence[tuple[float, float]], at: float) -> float:
    """A line in logarithms through the points around; beyond the ends noise falls as 1 / epsilon."""
    if at <= known[0][0]:
        return known[0][1] * math.exp(known[0][0] - at)
    for (left, first), (right, second) in pairwise(known):
        if at <= right:
            if second <= 0.0 or first <= 0.0:
                return second if at == right else first
            part = (at - left) / (right - left)
            return math.exp((1 - part) * math.log(first) + part * math.log(second))
    return known[-1][1] * math.exp(known[-1][0] - at)
