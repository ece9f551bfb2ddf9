"""The privacy-loss distribution of a whole run of Poisson-sampled Gaussian steps.

A *step* draws every record independently with probability ``rate`` and adds Gaussian noise of
standard deviation ``sigma`` to a sum of sensitivity 1. With p the density of N(0, sigma^2) and r
that of N(1, sigma^2), its worst pairs under add/remove are (P, Q) = ((1-q) p + q r, p) when a
record is removed and (p, (1-q) p + q r) when one is added (Zhu, Dong & Wang 2022); pairs of a
sequence of steps multiply, however each step depends on what the earlier ones gave. A run is
`SampledSteps`s: so many steps at this sigma. **All of it is fixed before the run starts**: a
profile of a composition says nothing about an analyst who chooses the next sigma, or whether to go
on, by looking at it. Filters are for those (`ptklib.privacy.filters`).

``epsilon`` and ``delta`` are upper bounds, near the optimum:

1. *Onto a grid, upwards.* The losses log(P/Q) in one cell of the grid are moved to its two ends so
   that the cell keeps its mass under P *and* under Q. That spreads the likelihood ratio without
   moving its mean, so every convex function of it, and with it the delta at every epsilon, can only
   grow (Jensen); the pair on the grid dominates the true one ("connect the dots", Doroshenko et al.
   2022). What lies above the grid becomes an infinite loss, what lies below it the lowest point.
2. *Tilted.* Masses are multiplied by exp(t loss) and normalised before they are composed, where t
   puts the mean of the sum at the epsilon in question. Roundoff of the transform is then relative
   to the delta that is wanted, and not to 1, so a delta of 1e-15 is as good as one of 0.1.
3. *Composed* by one discrete Fourier transform of each distinct step. Masses that fall off the
   lower end of the window come back at the upper end, where they count for more; those off the
   upper end are bounded by Chernoff and added, and so is a bound of the transform's roundoff.

Unit and sensitivity: those of the steps. Cost: this computes it. No data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.curves import Floats, up

__all__ = ["SampledSteps", "delta_of_run", "epsilon_of_run"]

# Cells in one standard deviation of a step's loss: the spread of a cell adds one part in
# 6 * FINENESS^2 to the variance.
_FINENESS = 24
_MOST_CELLS = 1 << 18
_MOST_POINTS = 1 << 21
# What becomes an infinite loss is at most this part of the delta in question, or of the least one.
_CUT = 1e-9
_LEAST_DELTA = 1e-18
# About so many points, and as many in the middle, are enough to look for a tilt.
_COARSE = 1024
# Frequencies of the product below this are taken as gone.
_FAINT = 1e-26
# Half of the window in standard deviations of the tilted sum.
_WIDTH = 9.0
_ROUNDOFF = 2.0**-52
# Roundoff of a transform and of a power, in units of the machine's, per doubling and per step.
_CARE = 16.0


@dataclass(frozen=True)
class SampledSteps:
    """So many steps at this noise multiplier."""

    sigma: float
    steps: int


Run = tuple[SampledSteps, ...]


@lru_cache(maxsize=512)
def epsilon_of_run(rate: float, run: Run, delta: float) -> float:
    """The least epsilon known at this delta, rounded up; inf at delta = 0."""
    if delta <= 0:
        return math.inf
    return max(_epsilon(losses, delta) for losses in _directions(rate, run, delta))


@lru_cache(maxsize=512)
def delta_of_run(rate: float, run: Run, epsilon: float) -> float:
    """The least delta known at this epsilon, rounded up; at most 1."""
    return max(_delta(losses, epsilon) for losses in _directions(rate, run, _LEAST_DELTA))


@dataclass(frozen=True)
class _Losses:
    """One step on the grid: ``mass[i]`` at loss ``(first + i) * gap``, the rest of it at
    infinity.
    """

    first: int
    mass: Floats
    infinite: float
    steps: int

    def losses(self, gap: float) -> Floats:
        """The points of the grid."""
        return np.asarray((self.first + np.arange(self.mass.size)) * gap, dtype=np.float64)

    @cached_property
    def logarithms(self) -> Floats:
        """Of the masses."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass), dtype=np.float64)


@dataclass(frozen=True)
class _Steps:
    """All steps of a run in one direction, on one grid."""

    gap: float
    kinds: tuple[_Losses, ...]

    @property
    def infinite(self) -> float:
        """A bound of the chance that any step's loss is infinite."""
        return math.fsum(kind.steps * kind.infinite for kind in self.kinds)

    @cached_property
    def fine(self) -> _Points:
        """Every loss of every kind, with the logarithm of its mass."""
        return tuple((kind.losses(self.gap), kind.logarithms, kind.steps) for kind in self.kinds)

    @cached_property
    def coarse(self) -> _Points:
        """The same with fewer points, for tilts: any tilt is valid."""
        points = []
        for kind in self.kinds:
            size, peak = kind.mass.size, int(np.argmax(kind.mass))
            # One by one where most of the mass is, and many together in the tails.
            near = np.arange(max(0, peak - _COARSE // 2), min(size, peak + _COARSE // 2))
            starts = np.union1d(np.arange(0, size, -(-size // _COARSE)), near)
            mass = np.add.reduceat(kind.mass, starts)
            means = np.add.reduceat(kind.mass * kind.losses(self.gap), starts)
            some = mass > 0
            points.append((means[some] / mass[some], np.log(mass[some]), kind.steps))
        return tuple(points)

    def cumulant(self, tilt: float) -> tuple[float, float, float]:
        """log E exp(tilt * loss) of the sum, its slope and its curvature."""
        return _cumulant(self.fine, tilt)


_Points = tuple[tuple[Floats, Floats, int], ...]


def _cumulant(points: _Points, tilt: float) -> tuple[float, float, float]:
    value = slope = curvature = 0.0
    for at, logarithms, steps in points:
        power = tilt * at + logarithms
        peak = float(np.max(power))
        weights = np.exp(power - peak)
        total = float(weights.sum())
        mean = float(weights @ at) / total
        value += steps * (math.log(total) + peak)
        slope += steps * mean
        curvature += steps * float(weights @ (at - mean) ** 2) / total
    return value, slope, curvature


def _directions(rate: float, run: Run, delta: float) -> Iterator[_Steps]:
    """A record removed, and a record added."""
    steps = sum(part.steps for part in run)
    # A standard normal is above z with a chance of at most exp(-z^2/2).
    reach = math.sqrt(2 * math.log(steps / (_CUT * delta)))
    gap = _gap(rate, run, reach)
    for removed in (True, False):
        yield _Steps(gap, tuple(_discrete(rate, part, gap, reach, removed) for part in run))


def _gap(rate: float, run: Run, reach: float) -> float:
    """The width of a cell: a part of the loss's standard deviation, of which the Renyi divergence
    at order 2 is the square for small losses.
    """
    steps = sum(part.steps for part in run)
    spread = math.fsum(
        part.steps * math.log1p(rate * rate * math.expm1(min(700.0, part.sigma**-2)))
        for part in run
    )
    gap = math.sqrt(spread / steps) / _FINENESS
    widest = max(_loss(1 + reach * part.sigma, rate, part.sigma) for part in run)
    points = 2 * _WIDTH * math.sqrt(spread) / gap
    return gap * max(1.0, (widest - math.log1p(-rate)) / gap / _MOST_CELLS, points / _MOST_POINTS)


def _loss(x: float, rate: float, sigma: float) -> float:
    """log((1-q) + q r(x)/p(x)), which rises with x."""
    ratio = (2 * x - 1) / (2 * sigma * sigma)
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + ratio))


def _discrete(rate: float, part: SampledSteps, gap: float, reach: float, removed: bool) -> _Losses:
    """One step on the grid; see the module."""
    from scipy import special

    sigma = part.sigma
    lowest = math.floor(math.log1p(-rate) / gap)
    highest = math.ceil(_loss(1 + reach * sigma, rate, sigma) / gap)
    ends = np.arange(lowest, highest + 1) * gap
    # Where the loss is at each end of a cell; -inf at and below log(1-q).
    excess = np.expm1(ends) + rate
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(excess > 0, 0.5 + sigma * sigma * np.log(excess / rate), -np.inf)
    x[0] = -np.inf
    without, above = _masses(x / sigma, special.ndtr)
    within, over = _masses((x - 1) / sigma, special.ndtr)
    mixed = (1 - rate) * without + rate * within
    if removed:
        base = np.exp(ends[:-1])
        upper = (mixed - without * base) / -math.expm1(-gap)
        upper = np.clip(_raised(upper, mixed, gap), 0, mixed)
        mass = np.zeros(ends.size)
        mass[1:] += upper
        mass[:-1] += mixed - upper
        return _Losses(lowest, mass, up((1 - rate) * above + rate * over), part.steps)
    # The same cells with the signs of their losses turned: the upper end of a cell is the lower x.
    base = np.exp(-ends[1:])
    upper = (without - mixed * base) / -math.expm1(-gap)
    upper = np.clip(_raised(upper, without, gap), 0, without)
    mass = np.zeros(ends.size)
    mass[:-1] += upper
    mass[1:] += without - upper
    mass[-1] += above
    return _Losses(-highest, mass[::-1].copy(), 0.0, part.steps)


def _raised(upper: Floats, whole: Floats, gap: float) -> Floats:
    """The upper end's part with what roundoff may have taken from it: a few units of the difference
    that was divided by the gap.
    """
    return np.asarray(upper + 8 * _ROUNDOFF * (whole + _ROUNDOFF) / gap, dtype=np.float64)


def _masses(z: Floats, cdf: np.ufunc) -> tuple[Floats, float]:
    """The standard normal's mass between neighbours, and above the last; from the nearer tail, so
    that small ones keep their digits.
    """
    lower, upper = cdf(z), cdf(-z)
    mass = np.where(z[:-1] > 0, upper[:-1] - upper[1:], lower[1:] - lower[:-1])
    return np.maximum(mass, 0.0), float(upper[-1])


@dataclass(frozen=True)
class _Sum:
    """The composed run near its tilted mean: the mass at ``centre + at`` is ``exp(scale - tilt *
    at) * mass``; ``roundoff`` is the L2 norm of the error of ``mass``, ``beyond`` what is above.
    """

    centre: float
    at: Floats
    mass: Floats
    tilt: float
    scale: float
    roundoff: float
    beyond: float

    def delta(self, epsilon: float) -> float:
        """The delta at an epsilon, with all that was lost."""
        first = int(np.searchsorted(self.at, epsilon - self.centre, side="right"))
        at, mass = self.at[first:], self.mass[first:]
        if at.size == 0:
            return min(1.0, self.beyond)
        # Relative to the largest weight, so that nothing overflows.
        weight = np.exp(-self.tilt * (at - at[0])) * -np.expm1(epsilon - self.centre - at)
        part = float(weight @ mass) + self.roundoff * float(np.sqrt(weight @ weight))
        logarithm = self.scale - self.tilt * float(at[0]) + math.log(max(part, 1e-300))
        return min(1.0, math.exp(min(logarithm, 0.0)) + self.beyond)


def _composed(steps: _Steps, tilt: float) -> _Sum:
    """The sum of all steps under this tilt."""
    value, mean, curvature = steps.cumulant(tilt)
    width = _WIDTH * math.sqrt(curvature) + 4 * steps.gap
    beyond, little = 1.0, 1e-10 * math.exp(min(0.0, value - tilt * mean))
    for _ in range(8):
        # The window's last point may be two cells short of its width.
        beyond = min(beyond, _chernoff(steps, mean + width - 2 * steps.gap))
        if beyond <= little or width > _MOST_POINTS * steps.gap / 4:
            break
        width *= 1.4
    points = 1 << max(6, math.ceil(math.log2(2 * width / steps.gap)))
    live = np.arange(points // 2 + 1)
    power = np.zeros(live.size, dtype=np.complex128)
    error = np.ones(live.size)
    shift = 0
    # The most frequent first: where the product is gone already, later factors are not looked at.
    for kind in sorted(steps.kinds, key=lambda kind: -kind.steps):
        spectrum = np.fft.rfft(_folded(kind, tilt, steps.gap, points))[live]
        size = np.maximum(np.abs(spectrum), 1e-300)
        power += kind.steps * (np.log(size) + 1j * np.angle(spectrum))
        error += kind.steps / size
        shift += kind.steps * kind.first
        kept = power.real > math.log(_FAINT)
        live, power, error = live[kept], power[kept], error[kept]
    product = np.zeros(points // 2 + 1, dtype=np.complex128)
    product[live] = np.exp(power)
    mass = np.maximum(np.fft.irfft(product, n=points), 0.0)
    # A frequency and its mirror image; at most twice the sum.
    norm = math.sqrt(2 * float(np.sum((error * np.exp(power.real)) ** 2)) / points)
    lowest = round(mean / steps.gap) - points // 2
    mass = np.roll(mass, -((lowest - shift) % points))
    centre = round(mean / steps.gap) * steps.gap
    return _Sum(
        centre=centre,
        at=np.asarray((np.arange(points) - points // 2) * steps.gap, dtype=np.float64),
        mass=mass,
        tilt=tilt,
        scale=value - tilt * centre,
        roundoff=_CARE * _ROUNDOFF * math.log2(points) * norm + _FAINT,
        beyond=steps.infinite + beyond,
    )


def _folded(kind: _Losses, tilt: float, gap: float, points: int) -> NDArray[np.float64]:
    """One step's tilted masses, around a circle of so many points."""
    power = tilt * kind.losses(gap) + kind.logarithms
    weights = np.exp(power - float(np.max(power)))
    weights /= weights.sum()
    if weights.size <= points:
        return np.pad(weights, (0, points - weights.size))
    padded = np.pad(weights, (0, -weights.size % points))
    return np.asarray(padded.reshape(-1, points).sum(axis=0), dtype=np.float64)


def _chernoff(steps: _Steps, level: float) -> float:
    """A bound of the mass above a level: any tilt gives one, that with its mean there the best."""
    tilt = _tilt(steps, lambda _value, slope, _at: slope >= level)
    return math.exp(min(steps.cumulant(tilt)[0] - tilt * level, 0.0))


def _delta(steps: _Steps, epsilon: float) -> float:
    """The delta of one direction: tilted so that the mean is at epsilon."""
    tilt = _tilt(steps, lambda _value, slope, _at: slope >= epsilon)
    return min(1.0, up(_composed(steps, tilt).delta(epsilon)))


def _epsilon(steps: _Steps, delta: float) -> float:
    """The epsilon of one direction, tilted so that the Chernoff bound at the mean is delta."""
    from scipy import optimize

    wanted = math.log(delta)
    tilt = _tilt(steps, lambda value, slope, at: value - at * slope <= wanted)
    total = _composed(steps, tilt)
    high = max(0.0, total.centre + float(total.at[-1]))
    if up(total.delta(0.0)) <= delta:
        return 0.0
    if up(total.delta(high)) > delta:
        return math.inf

    def excess(epsilon: float) -> float:
        return math.log(max(up(total.delta(epsilon)), 1e-300)) - wanted

    # The mean of the tilted sum is near the answer, so one end of the bracket is too.
    low = 0.0
    if 0 < total.centre < high:
        low, high = (low, total.centre) if excess(total.centre) <= 0 else (total.centre, high)
    root = float(optimize.brentq(excess, low, high, xtol=1e-12, rtol=1e-10))
    while excess(root) > 0:
        root *= 1 + 1e-9
    return up(root)


def _tilt(steps: _Steps, reached: Callable[[float, float, float], bool]) -> float:
    """The least tilt, roughly, at which ``reached(cumulant, slope, tilt)``; any is valid."""
    few, high = steps.coarse, 1.0
    while high < 1e7:
        value, slope, _ = _cumulant(few, high)
        if reached(value, slope, high):
            break
        high *= 2
    low = 0.0
    for _ in range(12):
        middle = (low + high) / 2
        value, slope, _ = _cumulant(few, middle)
        low, high = (low, middle) if reached(value, slope, middle) else (middle, high)
    return high
