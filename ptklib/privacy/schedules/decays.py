"""Schedules that are known before the training: constant, listed, and five that fall.

Each follows a decay function of the period's number t (from ``first`` on, 0 unless told). They read
no data, so choosing one costs nothing, and the run they make is priced before it starts.

===================  =========================================================  ==================
`Uniform`            sigma                                                      uniform
`TimeDecay`          initial / (1 + rate t)                                     time
`ExponentialDecay`   initial exp(-rate t)                                       exponential
`StepDecay`          initial factor^floor(t / period)                           step
`PolynomialDecay`    (initial - final) (1 - t/period)^power + final             polynomial
`ListedSigmas`       as listed                                                  listed
===================  =========================================================  ==================

``decay`` is the parameter that a solver moves (`solving`), and `FallingSchedule.gentler_first` says
in which order: no decay at all first.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.schedules.base import MAX_PERIODS, NoiseSchedule, level, period_count, sigma_of

__all__ = [
    "ExponentialDecay",
    "FallingSchedule",
    "ListedSigmas",
    "PolynomialDecay",
    "StepDecay",
    "TimeDecay",
    "Uniform",
]


@dataclass(frozen=True, kw_only=True)
class Uniform(NoiseSchedule):
    """The same noise in every period."""

    kind: ClassVar[str] = "uniform"
    sigma: Fraction

    def __post_init__(self) -> None:
        """A sigma in range."""
        self._kept(sigma=level(self.sigma, name="sigma"))

    def sigmas(self, periods: int) -> tuple[Fraction, ...]:
        """The same number again and again."""
        return (sigma_of(self.sigma),) * period_count(periods)

    def scaled(self, factor: Number) -> Self:
        """More or less of it."""
        return self._replaced(sigma=self.sigma * exact(factor, name="factor"))


@dataclass(frozen=True, kw_only=True)
class ListedSigmas(NoiseSchedule):
    """A sigma for each period; there are no more periods than sigmas."""

    kind: ClassVar[str] = "listed"
    listed: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """At least one, each in range."""
        levels = tuple(level(sigma, name="sigma") for sigma in self.listed)
        if not 0 < len(levels) <= MAX_PERIODS:
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"a list must have 1 to {MAX_PERIODS} sigmas, got {len(levels)}",
            )
        self._kept(listed=levels)

    def sigmas(self, periods: int) -> tuple[Fraction, ...]:
        """The first so many."""
        if period_count(periods) > len(self.listed):
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"this list has sigmas for {len(self.listed)} periods, asked for {periods}",
            )
        return tuple(sigma_of(sigma) for sigma in self.listed[:periods])

    def scaled(self, factor: Number) -> Self:
        """Each of them."""
        times = exact(factor, name="factor")
        return type(self)(listed=tuple(sigma_of(sigma * times) for sigma in self.listed))


@dataclass(frozen=True, kw_only=True)
class FallingSchedule(NoiseSchedule):
    """Noise that starts at ``initial`` and falls by a decay function of the period's number."""

    kind: ClassVar[str] = "_falling"
    # From no decay to as much as a solver looks at, in the order of falling noise.
    gentler_first: ClassVar[tuple[float, float]]
    initial: Fraction
    decay: Fraction
    first: int = 0

    def __post_init__(self) -> None:
        """Levels in range; the first period has a number from 0 on."""
        if isinstance(self.first, bool) or self.first not in range(MAX_PERIODS):
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"first must be a whole number from 0 to {MAX_PERIODS - 1}, got {self.first!r}",
            )
        decay = exact(self.decay, name="decay")
        low, high = sorted(self.gentler_first)
        if not low <= decay <= high or (low > 0 and decay == 0):
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"the decay of a {self.kind} schedule must be from {low:g} to {high:g}, got "
                f"{show(decay)}",
                field="decay",
            )
        self._kept(initial=level(self.initial, name="initial"), decay=decay)

    @abstractmethod
    def at(self, number: int) -> float:
        """The noise in the period of this number, before it is rounded up."""

    def sigmas(self, periods: int) -> tuple[Fraction, ...]:
        """The decay function from ``first`` on."""
        numbers = range(self.first, self.first + period_count(periods))
        return tuple(sigma_of(self.at(number)) for number in numbers)

    def scaled(self, factor: Number) -> Self:
        """From a higher or lower start."""
        return self._replaced(initial=self.initial * exact(factor, name="factor"))


@dataclass(frozen=True, kw_only=True)
class TimeDecay(FallingSchedule):
    """``initial / (1 + decay t)``: about linear until t = 1/decay, then like 1/t."""

    kind: ClassVar[str] = "time"
    gentler_first: ClassVar[tuple[float, float]] = (0.0, 1000.0)

    def at(self, number: int) -> float:
        """The decay function."""
        return float(self.initial / (1 + self.decay * number))


@dataclass(frozen=True, kw_only=True)
class ExponentialDecay(FallingSchedule):
    """``initial exp(-decay t)``."""

    kind: ClassVar[str] = "exponential"
    gentler_first: ClassVar[tuple[float, float]] = (0.0, 100.0)

    def at(self, number: int) -> float:
        """The decay function."""
        return float(self.initial) * math.exp(-float(self.decay) * number)


@dataclass(frozen=True, kw_only=True)
class StepDecay(FallingSchedule):
    """``initial decay^floor(t / period)``: the same noise for ``period`` periods, then less."""

    kind: ClassVar[str] = "step"
    gentler_first: ClassVar[tuple[float, float]] = (1.0, 1e-6)
    period: int

    def __post_init__(self) -> None:
        """The period too."""
        super().__post_init__()
        period_count(self.period, name="period")

    def at(self, number: int) -> float:
        """The decay function."""
        return float(self.initial) * float(self.decay) ** (number // self.period)


@dataclass(frozen=True, kw_only=True)
class PolynomialDecay(FallingSchedule):
    """``(initial - final) (1 - t/period)^decay + final``, and ``final`` after ``period`` periods;
    linear at decay 1.
    """

    kind: ClassVar[str] = "polynomial"
    gentler_first: ClassVar[tuple[float, float]] = (0.0, 1000.0)
    final: Fraction
    period: int

    def __post_init__(self) -> None:
        """An end below the start."""
        super().__post_init__()
        period_count(self.period, name="period")
        self._kept(final=level(self.final, name="final"))
        if self.final >= self.initial:
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"final must be below initial, got {show(self.final)} and {show(self.initial)}",
            )

    def at(self, number: int) -> float:
        """The decay function."""
        left = max(0.0, 1 - number / self.period)
        # Nothing is left at the end, even where a power of 0 would keep it.
        share = left ** float(self.decay) if left > 0 else 0.0
        return float(self.initial - self.final) * share + float(self.final)

    def scaled(self, factor: Number) -> Self:
        """Both ends."""
        times = exact(factor, name="factor")
        return self._replaced(initial=self.initial * times, final=self.final * times)
