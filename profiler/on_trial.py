"""PTKs on trial: planned by an estimate, and published only where the test of their own state accepts.

What a profile certifies is bounded by its slice: training at (epsilon, n) takes several states of n
records each, so 15,000 records certify hardly more than a thousand. The train slice holds far more,
and one state that is trained on it can be tested on *all* of the profile slice of a later window. So
a PTK that a profile has not certified within what a window can train is planned on trial:

* ``samples`` come from the looks that the profile has released already: twice where the curve
  ``c + b / sqrt(n)`` through them meets what a test would accept, and at most `SHARE` of what a
  window trains (the rest is for smaller windows). Where there is no such place, or nothing was
  looked at, all of that share is tried.
* **The promise does not rest on any of this.** Each state is validated before it is published, on
  records that nothing before it has touched, by a test that errs in at most 5% of what it lets
  through (`ptklib.validators`); a state that was not tested is not published either. A bad estimate
  costs a try, and no promise.
* A try that fails is followed by one on twice as many samples; after `TRIES` failures on all there is
  the PTK is rejected with the target that its best state would have kept.

Not tried are targets out of reach: where the curve, less three times what it may be off by, is more
than a fifth above the target with all there is; and windows so small that no test could accept.

*Cost:* none. Everything here is post-processing of released numbers, and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from profiler.analytic import Profile
from profiler.measuring.results import NOT_REACHED, REACHED, TOO_LITTLE_DATA, Look
from profiler.measuring.terms import FLOOR, ProfileTerms
from profiler.profiles import ON_TRIAL, MeasuredProfile
from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.validators.betting import UNIT, LossTest
from ptklib.validators.power import samples_needed
from ptklib.validators.verdict import LossVerdict

__all__ = [
    "ETA",
    "SHARE",
    "TRIES",
    "TriedState",
    "kept_target",
    "largest_try",
    "least_test",
    "likely_loss",
    "next_try",
    "on_trial",
    "try_level",
]

# How often a state that the test accepts may break its promise, over all attempts since one passed.
ETA = Fraction(1, 20)
# Of the records that a window trains on, at most: windows differ in size.
SHARE = Fraction(3, 4)
# Failures on all there is, before a PTK is rejected.
TRIES = 2
# A state this good must have a chance to be accepted, or there is no use in trying.
_LIKELY = Fraction(1, 5)
# The curve is read from few noisy looks.
_SAFETY = 2
_OFF = 3
# Curves may fall faster than they begin to.
_FAR = 1.2
_HALVINGS = 12
# So much of the evidence that an ACCEPT takes, for the noise on it.
_ENOUGH = 1.6


def on_trial(
    measured: MeasuredProfile,
    terms: ProfileTerms,
    *,
    trainable: int,
    test_records: int,
    test_epsilon: Number,
) -> MeasuredProfile | None:
    """The profile on trial, where what was certified does not fit a window that trains on so many
    records; None where it does, or where a trial makes no sense. ``test_records`` are those that a
    test will have in a later window, at ``test_epsilon``.
    """
    most = largest_try(trainable)
    known = measured.profile.samples[-1]
    if most < FLOOR or (known is not None and known <= most):
        return None
    top = measured.results[-1]
    if top.status not in (REACHED, NOT_REACHED, TOO_LITTLE_DATA):
        return None
    aim = likely_loss(terms, records=test_records, epsilon=test_epsilon)
    if aim is None or _hopeless(top.looks, float(terms.target), most):
        return None
    first = top.size if top.status == REACHED and top.size is not None else 1
    samples = min(most, max(first, _hoped(top.looks, aim, most)))
    grid = measured.profile.levels
    profile = Profile(
        grid,
        _at_levels(grid, top.level, samples, most),
        measured.profile.promised,
        measured.profile.confidence,
        source=measured.profile.source,
    )
    return replace(measured, profile=profile, certifies=ON_TRIAL)


def largest_try(trainable: int) -> int:
    """The most samples of a try in windows that train on so many records."""
    return math.floor(trainable * SHARE)


@dataclass(frozen=True)
class TriedState:
    """What the test of one state said: the epsilon and samples it was trained with, its loss as the
    released evidence has it, and how much evidence there was of what an ACCEPT takes.
    """

    epsilon: Fraction
    samples: int
    loss: float
    evidence: float

    @classmethod
    def of(
        cls,
        test: LossTest,
        verdict: LossVerdict,
        *,
        epsilon: Number,
        samples: int,
        records: int,
    ) -> TriedState:
        """Read from a verdict on about so many records: the loss that all of them would have if all
        were alike, which is no less than their mean but for the noise. Post-processing: free.
        """
        each = verdict.evidence * test.records_per_unit / (UNIT * max(1, records))
        gain = math.expm1(min(each, 1.0))
        loss = float(test.target) - gain / float(test.stake)
        clipped = min(float(test.bound), max(0.0, loss))
        evidence = verdict.evidence / max(1, verdict.threshold)
        return cls(
            epsilon_exact(epsilon), samples, round(clipped, 6), math.floor(evidence * 1000) / 1000
        )

    @property
    def accepted(self) -> bool:
        """Whether the state was shown to keep its target."""
        return self.evidence >= 1

    def enough(self, target: float) -> float:
        """The loss at which there would still be enough evidence most of the time: it grows about as
        the loss falls below the target.
        """
        return target - (target - self.loss) * _ENOUGH / self.evidence

    def as_json(self) -> list[Any]:
        """Plain JSON values."""
        return [show(self.epsilon), self.samples, self.loss, self.evidence]

    @classmethod
    def from_json(cls, body: Sequence[Any]) -> TriedState:
        """Read `as_json` back."""
        epsilon, samples, loss, evidence = body
        return cls(epsilon_exact(epsilon), samples, loss, evidence)

    def at(self, level: Fraction) -> int:
        """How many samples at that level are as good: a level above it needs no fewer."""
        return max(1, math.floor(self.samples * min(Fraction(1), self.epsilon / level)))


def next_try(
    profile: Profile,
    looks: Sequence[Look],
    tests: Sequence[TriedState],
    *,
    aim: float,
    trainable: int,
) -> Profile | None:
    """The profile for the window after a test: the curve goes through what tests said too. After a
    failure at least twice the samples of that try; after a success fewer, where that is half or
    less. None where there is no more to try.
    """
    most, last = largest_try(trainable), tests[-1]
    level = try_level(profile)
    known = profile.samples[profile.levels.index(level)] or most
    failed = max((test.at(level) for test in tests if not test.accepted), default=0)
    if not last.accepted and failed >= most:
        return None
    if last.accepted:
        # What a test accepts of *these* losses, instead of the worst there could be.
        aim = max(aim, last.enough(float(profile.promised)))
    points = [*looks, *(Look(test.at(level), test.loss, 1) for test in tests)]
    wanted = min(most, max(2 * failed, _hoped(points, aim, most, tested=True)))
    if last.accepted and 2 * wanted > known:
        return profile
    return replace(profile, samples=_at_levels(profile.levels, level, wanted, most))


def try_level(profile: Profile) -> Fraction:
    """The level that the samples of a profile on trial are counted at: all above need as many."""
    least = min(samples for samples in profile.samples if samples is not None)
    return profile.levels[profile.samples.index(least)]


def kept_target(
    terms: ProfileTerms, failed: Sequence[TriedState], *, records: int, epsilon: Number
) -> float | None:
    """The target, in thousandths, that a test on so many records would accept in nine of ten cases of
    states with the loss that these failures had; None where only 1 would do.
    """
    loss = sum(tested.loss for tested in failed) / len(failed)
    low, high = math.floor(loss * 1000), 1000
    while high - low > 1:
        middle = (low + high) // 2
        wanted = replace(terms, target=Fraction(middle, 1000))
        enough = middle > 0 and _accepts(wanted, loss, records, epsilon)
        low, high = (low, middle) if enough else (middle, high)
    return high / 1000 if high < 1000 else None


def likely_loss(terms: ProfileTerms, *, records: int, epsilon: Number) -> float | None:
    """The largest mean loss that a test on so many records accepts in nine of ten cases, whatever
    losses look like; None where not even one of `_LIKELY` of the target would be.
    """
    target = float(terms.target)
    low, high = target * float(_LIKELY), target
    if not _accepts(terms, low, records, epsilon):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _accepts(terms, middle, records, epsilon) else (low, middle)
    return low


def least_test(terms: ProfileTerms, epsilon: Number) -> int | None:
    """The least records of a profile slice with which a trial makes sense; None at no number."""
    return _needed(terms, float(terms.target * _LIKELY), epsilon)


def _accepts(terms: ProfileTerms, loss: float, records: int, epsilon: Number) -> bool:
    needed = _needed(terms, loss, epsilon)
    return needed is not None and needed <= records


def _needed(terms: ProfileTerms, loss: float, epsilon: Number) -> int | None:
    return samples_needed(
        target=terms.target,
        epsilon=epsilon_exact(epsilon),
        eta=ETA / 2,
        loss=repr(loss),
        records_per_unit=terms.records_per_unit,
    )


def _at_levels(
    grid: Sequence[Fraction], level: Fraction, samples: int, most: int
) -> tuple[int | None, ...]:
    """So many at that level and above, below it as many times more as the level is lower."""
    scaled = [math.ceil(samples * max(Fraction(1), level / other)) for other in grid]
    return tuple(count if count <= most else None for count in scaled)


def _hopeless(looks: Sequence[Look], target: float, most: int) -> bool:
    """Whether all that a window trains on would most likely miss the target by far: the line through
    the looks at that place, less `_OFF` times what it may be off by.
    """
    sizes = {look.samples for look in looks}
    if len(sizes) < 2:
        return False
    places, risks = [look.samples**-0.5 for look in looks], [look.risk for look in looks]
    c, b = _curve(places, risks)
    mean = sum(places) / len(places)
    spread = sum((place - mean) ** 2 for place in places)
    # A margin is what a look is hardly ever off by.
    off = max(look.margin for look in looks) / 2.5
    off *= math.sqrt(1 / len(places) + (most**-0.5 - mean) ** 2 / spread)
    return bool(c + b * most**-0.5 - _OFF * off > _FAR * target)


def _hoped(looks: Sequence[Look], aim: float, most: int, *, tested: bool = False) -> int:
    """Where the curve through the looks meets the aim, and as much again; all where it does not. A
    single look is believed only where it is the test of a state.
    """
    if len({look.samples for look in looks}) < 2 and not tested:
        return most
    c, b = _curve([look.samples**-0.5 for look in looks], [look.risk for look in looks])
    if c >= aim:
        return most
    return min(most, max(FLOOR, math.ceil(_SAFETY * (b / (aim - c)) ** 2)))


def _curve(places: Sequence[float], risks: Sequence[float]) -> tuple[float, float]:
    """Level and slope of the line of least squares, both not negative."""
    count = len(places)
    mean, risk = sum(places) / count, sum(risks) / count
    spread = sum((place - mean) ** 2 for place in places)
    if spread == 0:
        return 0.0, risk / mean
    slope = sum((p - mean) * (r - risk) for p, r in zip(places, risks, strict=True)) / spread
    slope = max(0.0, slope)
    level = risk - slope * mean
    if level >= 0:
        return level, slope
    through = sum(p * r for p, r in zip(places, risks, strict=True))
    return 0.0, through / sum(place * place for place in places)
