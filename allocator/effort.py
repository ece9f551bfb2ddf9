"""How much work a solver may do: counted in steps, so that the same problem gives the same plan on
any machine.

A step is about a nanosecond of an idle core; every loop that could be long counts its own. A time
limit becomes a number of steps that takes about half of it, and a clock (given by the caller: this
part of the project has none) is a second limit that only a slow or busy machine meets. `cut` says
that the clock ended the work: the plan is sound, but another machine may find another one.

*One deadline.* An answer that needs several solves has one `Effort` for all of them, and each gets
a `share` of what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["STEPS_PER_SECOND", "Clock", "Effort"]

Clock = Callable[[], float]

STEPS_PER_SECOND = 1e9


class Effort:
    """Steps to spend. Parts share the clock, and what they spend counts for the whole."""

    def __init__(
        self, steps: float, *, clock: Clock | None = None, seconds: float | None = None
    ) -> None:
        """At most so many ``steps``; with ``seconds`` at most half of them in steps, and all of
        them by the clock.
        """
        self.limit = steps if seconds is None else min(steps, seconds * STEPS_PER_SECOND / 2)
        self.spent = 0.0
        self._late = False
        self._whole: Effort | None = None
        self._clock = clock
        self._deadline = math.inf if clock is None or seconds is None else clock() + seconds

    @classmethod
    def clocked(cls, steps: float, clock: Clock, seconds: float) -> Effort:
        """So many ``steps``, and so many ``seconds`` by the clock: whichever ends first."""
        effort = cls(steps, clock=clock, seconds=seconds)
        effort.limit = steps
        return effort

    def part(self, steps: float) -> Effort:
        """At most so many steps of what is left."""
        part = Effort(min(steps, self.left))
        part._whole = self
        return part

    def share(self, share: float) -> Effort:
        """A share of what is left, of the steps and of the seconds: what comes after it has the
        rest of both, also on a slow machine.
        """
        part = self.part(share * self.left)
        clock, deadline = self._limit_of_clock
        if clock is not None:
            now = clock()
            part._clock, part._deadline = clock, now + share * max(0.0, deadline - now)
        return part

    def spend(self, steps: float) -> None:
        """Count."""
        self.spent += steps
        if self._whole is not None:
            self._whole.spend(steps)

    @property
    def left(self) -> float:
        """The steps that are left."""
        return max(0.0, self.limit - self.spent)

    @property
    def cut(self) -> bool:
        """True when the clock ended this, or the whole that it is a part of."""
        return self._late or (self._whole is not None and self._whole.cut)

    @property
    def time_limit(self) -> dict[str, float]:
        """For a solver that knows no steps: the seconds that are left, where a clock counts
        them.
        """
        clock, deadline = self._limit_of_clock
        return {} if clock is None else {"time_limit": max(0.05, deadline - clock())}

    @property
    def whole_over(self) -> bool:
        """True when there is nothing left to spend for the whole that this is a part of."""
        return self.over if self._whole is None else self._whole.whole_over

    @property
    def over(self) -> bool:
        """True when there is nothing left to spend."""
        if self.spent >= self.limit:
            return True
        if self._clock is not None and self._clock() > self._deadline:
            self._late = True
        return self._late or (self._whole is not None and self._whole.over)

    @property
    def _limit_of_clock(self) -> tuple[Clock | None, float]:
        """The nearest clock and its deadline: that of a part is never later than that of its
        whole.
        """
        if self._clock is not None and not math.isinf(self._deadline):
            return self._clock, self._deadline
        return (None, math.inf) if self._whole is None else self._whole._limit_of_clock
