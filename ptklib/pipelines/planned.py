"""Planned: cheap looks, a learning curve through them, and one test of the price that should do.

A look trains with little and tells the loss of that state with an interval, on tags that no test
touches; the state itself is thrown away. Losses are taken to fall like ``a + b/(epsilon n)``: the
curve through the last two looks says what a larger budget would give, and the power analysis of the
test (`ptklib.validators.power`) which of these states it would accept with the records there are.
The least budget that passes both is tried. Where the curve was wrong and the test says RETRY,
budget or records are doubled from there, as `conserve` does.

A look that tells hardly anything (an interval far wider than the target) is followed by another of
four times the budget, and so is a curve that says no while the best that its intervals allow says
yes. Where that says no as well it waits, says how many records would do, and looks again when there
are twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ptklib.pipelines.attempts import LOOK, REFUSED, SEEN, TEST, NextAttempt, Situation, Tried, Wait
from ptklib.pipelines.strategy import Strategy, doubled, largest
from ptklib.validators.power import samples_needed

__all__ = ["PlanAhead"]

_NEXT_LOOK = 4
_LOOKS = 2
# From one budget that is weighed to the next.
_STEP = Fraction(9, 8)
# What a curve through two points may be wrong by: a part of what it says above its limit.
_MARGIN = 1.15
_MOST_TIMES = 1024
# An interval that is wider than so many times the target, or the loss, tells nothing.
_WIDEST = 1.5


@dataclass(frozen=True, kw_only=True)
class PlanAhead(Strategy):
    """See the module."""

    kind: ClassVar[str] = "planned"

    def next(self, situation: Situation) -> NextAttempt | Wait:
        """See `Strategy`."""
        done = [tried for tried in situation.tried if tried.outcome != REFUSED]
        tests = [tried for tried in done if tried.purpose == TEST]
        if tests:
            return doubled(situation, tests[-1])
        looks = [tried for tried in done if tried.purpose == LOOK]
        told = [look for look in looks if _tells(look, situation.target)]
        if len(told) < _LOOKS:
            return self._look(situation, looks) or largest(situation)
        likely, best = _curve(told, "likely"), _curve(told, "best")
        for epsilon in _weighed(situation):
            if likely.passes(situation, epsilon, situation.offer.records(epsilon)):
                return NextAttempt(epsilon)
        most = largest(situation)
        if isinstance(most, Wait):
            return most
        records = situation.offer.records(most.epsilon)
        if best.passes(situation, most.epsilon, records):
            return self._look(situation, looks) or most
        again = None
        if records >= 2 * max(look.records for look in looks):
            again = self._look(situation, looks, times=1)
        return again or _waiting(situation, likely, records)

    def _look(
        self, situation: Situation, looks: list[Tried], *, times: int = _NEXT_LOOK
    ) -> NextAttempt | None:
        """The next look; None where it would leave less than itself for the test."""
        epsilon = times * looks[-1].epsilon if looks else self.least(situation)
        return NextAttempt(epsilon, LOOK) if situation.offer.records(2 * epsilon) else None


@dataclass(frozen=True)
class _Curve:
    """``limit + slope/(epsilon n)``; neither is below 0."""

    limit: float
    slope: float

    def passes(self, situation: Situation, epsilon: Fraction, records: int) -> bool:
        """Whether a test on so many records is likely to accept a state of that price."""
        if not records:
            return False
        loss = self.limit + _MARGIN * self.slope / (float(epsilon) * records)
        if loss >= situation.target:
            return False
        needed = samples_needed(
            target=situation.target,
            epsilon=epsilon,
            eta=situation.eta,
            loss=Fraction(loss).limit_denominator(10**9),
            records_per_unit=situation.records_per_unit,
        )
        return needed is not None and needed <= situation.tests * records


def _tells(look: Tried, target: Fraction) -> bool:
    seen = look.seen
    return (
        look.outcome == SEEN
        and seen is not None
        and seen.estimate is not None
        and seen.high - seen.low <= _WIDEST * max(float(target), seen.estimate)
    )


def _curve(told: list[Tried], which: Literal["likely", "best"]) -> _Curve:
    """Through the last two looks that told something: through their estimates, or as steep and as
    low as their intervals allow.
    """
    points = []
    for look, end in zip(told[-_LOOKS:], ("high", "low"), strict=True):
        assert look.seen is not None
        assert look.seen.estimate is not None
        height = look.seen.estimate if which == "likely" else getattr(look.seen, end)
        points.append((1 / (float(look.epsilon) * look.records), height))
    (x1, y1), (x2, y2) = points
    slope = max(0.0, (y1 - y2) / (x1 - x2)) if x1 > x2 else 0.0
    return _Curve(max(0.0, y2 - slope * x2), slope)


def _weighed(situation: Situation) -> list[Fraction]:
    """Budgets from the first one on, and all that is left."""
    levels = situation.offer.levels
    if not levels:
        return []
    weighed, epsilon = [], min(levels[0], min(tried.epsilon for tried in situation.tried))
    while epsilon < levels[0]:
        weighed.append(Fraction(int(epsilon * 10**9), 10**9))
        epsilon *= _STEP
    return [*weighed, levels[0]]


def _waiting(situation: Situation, likely: _Curve, records: int) -> Wait:
    times = 2
    while times <= _MOST_TIMES:
        if likely.passes(situation, situation.limit, times * records):
            return Wait("looks say that what is left is not enough", records=times * records)
        times *= 2
    return Wait(
        f"looks say that {_MOST_TIMES} times the records would not do either: such states lose "
        f"about {likely.limit:.4g} at best, and {float(situation.target):.4g} is asked for"
    )
