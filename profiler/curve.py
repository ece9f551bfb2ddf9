"""A monotone curve n(epsilon) through a few measured levels. Post-processing of DP results: free.

The noise of a mechanism falls as 1/(epsilon n) and the sampling error does not depend on epsilon,
so n(epsilon) = a + c/epsilon, with a and c not negative, is tried first (the mean of all such
lines, weighted by how well they fit; errors are relative). Where that misses a measured level by
more than `TOLERANCE`, the curve is the isotonic regression of the measured points, joined by
straight lines on logarithmic scales. Nothing is claimed below the lowest measured level that was
reached; above the highest the curve only falls.

The band holds the n at which 19 of 20 trainings keep the promise, with confidence 95% (`band`).
``safe`` is the curve lifted to all that was witnessed: what a level that was not measured is taken
to need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from profiler.band import Try, Unrefuted, unrefuted_heights, unrefuted_lines
from profiler.measuring.results import REACHED, LevelResult
from profiler.measuring.schedule import GROUP

__all__ = ["FORMS", "TOLERANCE", "Curve", "Point", "fit", "points_of"]

# What a single measured n is good for: a line that misses none by more is not refuted.
TOLERANCE = 4.0
FORMS = ("a + c/epsilon", "isotonic")
# The usual error of the logarithm of a measured n, at least.
_LEAST = 0.1
_RATIOS = 400


@dataclass(frozen=True)
class Point:
    """A level that was reached: the estimate, the samples to plan with, its looks as (size, states),
    and the least size that passed.
    """

    level: Fraction
    estimate: int
    samples: int
    looks: tuple[tuple[int, int], ...] = ()
    size: int | None = None

    @property
    def tries(self) -> list[Try]:
        """The looks, with what came out."""
        place = 1 / float(self.level)
        least = self.samples if self.size is None else self.size
        looks = self.looks or ((least, GROUP),)
        return [Try(place, size, states, passed=size >= least) for size, states in looks]


@dataclass(frozen=True)
class Curve:
    """n at any level.

    ``above`` is the factor from the curve to what was witnessed, ``ends`` those of the band.
    """

    form: str
    points: tuple[Point, ...]
    heights: tuple[float, ...]
    a: float
    c: float
    above: float
    ends: tuple[float, float]
    allowed: Unrefuted | None = field(default=None, repr=False, compare=False)

    def at(self, level: Fraction) -> float | None:
        """The estimate at a level; None below the lowest measured one."""
        first = self.points[0].level
        if level < first:
            return None
        if self.form == FORMS[0]:
            return self.a + self.c / float(level)
        return _interpolated(
            [float(point.level) for point in self.points], self.heights, float(level)
        )

    def safe(self, level: Fraction) -> float | None:
        """The curve, lifted to all that was witnessed."""
        middle = self.at(level)
        return None if middle is None else middle * self.above

    def band(self, level: Fraction) -> tuple[float, float] | None:
        """Where the n lies at which 19 of 20 trainings keep the promise, with confidence 95%; the
        curve is always inside.
        """
        middle = self.at(level)
        if middle is None:
            return None
        low, high = middle * self.ends[0], middle * self.ends[1]
        if self.allowed is not None:
            low, high = self.allowed.ends(1 / float(level))
        return min(low, middle), max(high, middle)

    def as_json(self) -> dict[str, Any]:
        """The shape in numbers."""
        return {
            "form": self.form,
            "a": self.a,
            "c": self.c,
            "above": self.above,
            "ends": list(self.ends),
        }


def points_of(results: Sequence[LevelResult]) -> tuple[Point, ...]:
    """The levels that were reached, rising."""
    points = []
    for result in sorted(results, key=lambda result: result.level):
        if result.status == REACHED and result.samples is not None:
            looks = tuple((look.samples, look.states) for look in result.looks)
            points.append(
                Point(
                    result.level,
                    result.estimate or result.samples,
                    result.samples,
                    looks,
                    result.size,
                )
            )
    return tuple(points)


def fit(points: Sequence[Point]) -> Curve | None:
    """The curve through the points; None without any."""
    if not points:
        return None
    places = [1 / float(point.level) for point in points]
    wanted = [float(point.estimate) for point in points]
    a, c = _line(places, wanted)
    form, heights = FORMS[0], [a + c * place for place in places]
    if (
        max(max(height / want, want / height) for height, want in zip(heights, wanted, strict=True))
        > TOLERANCE
    ):
        form, heights, a, c = FORMS[1], _falling(wanted), 0.0, 0.0
    above = max(
        1.0, max(point.samples / height for point, height in zip(points, heights, strict=True))
    )
    tries = [tried for point in points for tried in point.tries]
    if form == FORMS[0]:
        return Curve(
            form, tuple(points), tuple(heights), a, c, above, (1.0, 1.0), unrefuted_lines(tries)
        )
    at = [height for point, height in zip(points, heights, strict=True) for _ in point.tries]
    return Curve(form, tuple(points), tuple(heights), a, c, above, unrefuted_heights(tries, at))


def _line(places: Sequence[float], wanted: Sequence[float]) -> tuple[float, float]:
    """a and c, both not negative: the mean of all lines, each weighted by how well it fits.

    For a ratio a/c the best c is a mean of logarithms. Training is random, so few points allow many
    ratios, and the best one alone would follow their chance. The size of the errors is not known
    either, only that it is hardly below `_LEAST`: the weight of a line is its likelihood averaged
    over that size (Student's). Ratios are tried evenly on a logarithmic scale, from c/epsilon alone
    to nearly a alone.
    """
    low, high = min(places) / 100, max(places) * 100
    lines = []
    for step in range(_RATIOS + 1):
        ratio = low * (high / low) ** (step / _RATIOS) if step else 0.0
        shape = [math.log(ratio + place) for place in places]
        scale = _mean([math.log(want) - height for want, height in zip(wanted, shape, strict=True)])
        error = sum(
            (math.log(want) - height - scale) ** 2
            for want, height in zip(wanted, shape, strict=True)
        )
        lines.append((error, ratio * math.exp(scale), math.exp(scale)))
    weights = [(_LEAST**2 + error) ** (-len(places) / 2) for error, _, _ in lines]
    a, c = (math.fsum(w * line[k] for w, line in zip(weights, lines, strict=True)) for k in (1, 2))
    return a / math.fsum(weights), c / math.fsum(weights)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _falling(values: Sequence[float]) -> list[float]:
    """The closest falling sequence (pool adjacent violators), in logarithms."""
    groups: list[tuple[float, int]] = []
    for value in values:
        groups.append((math.log(value), 1))
        while len(groups) > 1 and groups[-2][0] < groups[-1][0]:
            (mean, size), (other, more) = groups[-2], groups[-1]
            groups[-2:] = [((mean * size + other * more) / (size + more), size + more)]
    return [math.exp(value) for value, size in groups for _ in range(size)]


def _interpolated(levels: Sequence[float], heights: Sequence[float], level: float) -> float:
    for (below, low), (above, high) in pairwise(zip(levels, heights, strict=True)):
        if below <= level <= above:
            along = (math.log(level) - math.log(below)) / (math.log(above) - math.log(below))
            return math.exp(math.log(low) * (1 - along) + math.log(high) * along)
    return heights[-1]
