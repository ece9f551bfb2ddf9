"""What every schedule of the noise scale answers.

A schedule says how much noise each period of a training gets: a period is an epoch of disjoint
batches, or as many Poisson-sampled steps as the run says. It is a frozen value that knows no data,
so what it costs is known before anything is read.

``sigmas(periods)`` are noise multipliers: the standard deviation of the noise is sigma times the
L2 sensitivity of all that a step releases together (clipping layer by layer at C_l, that is
sqrt(sum C_l^2), not the largest C_l). They are exact decimals of `PLACES` places, rounded up, and
whoever draws the noise must use these and no others: price and noise then speak of one number.

The engine owes the schedule three things, without which its price is wrong: a record's batch does
not depend on the other records; sigma is that of the period in which the step is; and a run that is
called reshuffled is never priced as Poisson-sampled.

Reasons: SCHEDULE_INVALID (parameters that make no schedule), SCHEDULE_UNKNOWN (a JSON form that is
not one of ours), and those of `amounts`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show

__all__ = [
    "KINDS",
    "LEAST_SIGMA",
    "MAX_PERIODS",
    "MOST_SIGMA",
    "PLACES",
    "NoiseSchedule",
    "level",
    "period_count",
    "schedule_from_json",
    "sigma_of",
]

PLACES = 9
LEAST_SIGMA = Fraction(1, 1000)
MOST_SIGMA = Fraction(10**9)
MAX_PERIODS = 100_000

KINDS: dict[str, type[NoiseSchedule]] = {}


def sigma_of(value: float | Fraction) -> Fraction:
    """The noise multiplier on the grid of all schedules, rounded up; never below the least
    noise.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput("SCHEDULE_INVALID", f"a sigma must be finite, got {value}")
    scaled = Fraction(math.ceil(Fraction(value) * 10**PLACES), 10**PLACES)
    if scaled > MOST_SIGMA:
        raise InvalidInput(
            "SCHEDULE_INVALID", f"a sigma must be at most {MOST_SIGMA}, got {float(scaled):g}"
        )
    return max(scaled, LEAST_SIGMA)


def period_count(value: int, *, name: str = "periods") -> int:
    """A positive whole number of periods, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_PERIODS:
        raise InvalidInput(
            "SCHEDULE_INVALID",
            f"{name} must be a whole number from 1 to {MAX_PERIODS}, got {value!r}",
            field=name,
        )
    return value


@dataclass(frozen=True, kw_only=True)
class NoiseSchedule(ABC):
    """The noise scale over the periods of a training."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Make the kind known to `schedule_from_json`; a kind with a leading underscore has no
        JSON form.
        """
        if not cls.kind.startswith("_"):
            KINDS[cls.kind] = cls

    @abstractmethod
    def sigmas(self, periods: int) -> tuple[Fraction, ...]:
        """The noise multiplier of each of so many periods."""

    @abstractmethod
    def scaled(self, factor: Number) -> Self:
        """The same shape with this many times the noise."""

    def as_json(self) -> dict[str, Any]:
        """An exact JSON form that `schedule_from_json` reads back."""
        return {
            "kind": self.kind,
            **{field.name: _plain(getattr(self, field.name)) for field in fields(self)},
        }

    def _kept(self, **checked: object) -> None:
        """Set fields that were checked, in ``__post_init__`` and nowhere else."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _replaced(self, **levels: Fraction) -> Self:
        """With other noise levels, on the grid."""
        changed: dict[str, Any] = {name: sigma_of(level) for name, level in levels.items()}
        return replace(self, **changed)


def schedule_from_json(body: dict[str, Any]) -> NoiseSchedule:
    """Read the form of `NoiseSchedule.as_json`; refuse an unknown kind, an unknown or a missing
    field.
    """
    if not isinstance(body, dict) or body.get("kind") not in KINDS:
        given = body.get("kind") if isinstance(body, dict) else type(body).__name__
        raise InvalidInput(
            "SCHEDULE_UNKNOWN",
            f"a schedule must be an object of a kind in {sorted(KINDS)}, got {given!r}",
        )
    kind = KINDS[body["kind"]]
    values = {name: value for name, value in body.items() if name != "kind"}
    wanted = {field.name for field in fields(kind)}
    if set(values) != wanted:
        raise InvalidInput(
            "SCHEDULE_UNKNOWN",
            f"a schedule of kind {kind.kind} must have the fields {sorted(wanted)}, got "
            f"{sorted(values)}",
        )
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
    )


def level(value: Number, *, name: str) -> Fraction:
    """A noise multiplier that a schedule is made with: exact, in range."""
    result = exact(value, name=name)
    if not LEAST_SIGMA <= result <= MOST_SIGMA:
        raise InvalidInput(
            "SCHEDULE_INVALID",
            f"{name} must be from {show(LEAST_SIGMA)} to {MOST_SIGMA}, got {show(result)}",
            field=name,
        )
    return result


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return show(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
