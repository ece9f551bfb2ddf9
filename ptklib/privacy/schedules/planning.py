"""`plan_run`: the run that public quantities call for, so that nobody tunes on private data.

Public are: about how many records there are (a noisy count or a fact known before, never the length
of the data), how many numbers are learned, the promise, the kind of loss, a bound of every row's
length. From these follow, before any data is read, how often a record is used, how many steps there
are, their noise, the clipping norm, the step size and whether weights are averaged.

**Why this rule.** Take all records in each of T steps, clip at C, and step by h along the mean.
Noise for mu of Gaussian DP is sigma = sqrt(T)/mu, whose sum over the run moves n times the weights
by h C sigma sqrt(T d) = h C T sqrt(d)/mu, while gradients can move them by h C T n at most. (With
momentum m, h stands for h / (1 - m) in both.) With the *reach* A = h C T, and the *signal-to-noise
ratio* s = n mu / sqrt(d):

    weights move by at most A, and noise moves them by about A / s.

T, h and C are not in the ratio: with exact accounting many steps cost no more than few. So

1. *how far*: the reach is what noise allows, A = ``noise`` s / row_bound, at which noise has the
   length of weights that still mean little; and no more than a model of this kind ever needs;
2. *how many steps*: as many as keep h below ``step`` / row_bound^2, beyond which the loss's
   curvature lets steps overshoot; some at least. Momentum of 0.9 goes ten times as far in as many
   steps and stays below that;
3. *how large a batch*: all records. Sampling never beats that at the same T, because sigma/q
   falls as the rate q rises; where all records are too much work, the least rate at which sigma/q
   is within a tenth of its limit;
4. *clipping*: below the largest gradient where noise is large, so that rows shorter than their
   bound cost little and large errors do not decide; at the largest gradient where noise is small,
   so that nothing is bent;
5. *the schedule*: uniform. The best of a fall by a factor of 3 and of none differ by less than
   chance once the reach is right; most of what a falling schedule gives is fewer epochs.

The numbers were chosen on invented data (`docs/internals/accounting-of-training.md` says how): for
logistic regression over wide ranges, for softmax and squared loss at small sizes, where those that
follow from their curvature and the size of their scores did best. For networks the rule is a start
and was not tried.

Cost: that of ``run``. Unit, neighbours: as in `runs`. No data.

Reasons: RUN_PLAN_INVALID, and those of `calibration`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, exact, show
from ptklib.privacy.costs import SampledRunCost
from ptklib.privacy.costs.base import count
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.privacy.schedules.base import NoiseSchedule, schedule_from_json
from ptklib.privacy.schedules.calibration import Accounting, calibrated, noise_multiplier
from ptklib.privacy.schedules.decays import Uniform
from ptklib.privacy.schedules.runs import SampledRun

__all__ = ["LossKind", "RunPlan", "plan_run"]


class LossKind(Enum):
    """What is minimised; rows are at most ``row_bound`` long, the constant column included."""

    LOGISTIC = "logistic"
    SOFTMAX = "softmax"
    # Labels are between -1 and 1.
    SQUARED = "squared"
    NETWORK = "network"


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The numbers of the rule for one kind of loss, for rows of length at most 1."""

    # The largest gradient of one record at the start.
    gradient: float
    # The largest step.
    step: float
    # The length of the noise in the weights at the end.
    noise: float
    # The farthest that weights ever have to go.
    reach: float


_SHAPES = {
    LossKind.LOGISTIC: _Shape(gradient=1.0, step=8.0, noise=6.0, reach=8000.0),
    LossKind.SOFTMAX: _Shape(gradient=math.sqrt(2), step=4.0, noise=6.0, reach=8000.0),
    LossKind.SQUARED: _Shape(gradient=1.0, step=1.0, noise=1.5, reach=2000.0),
    LossKind.NETWORK: _Shape(gradient=1.0, step=0.2, noise=6.0, reach=400.0),
}
_MOMENTUM = 0.9
_LEAST_STEPS, _MOST_STEPS = 60, 200

# The clipping norm as a part of the largest gradient: the least, and at which ratio and with which
# power it grows. Where noise is small, what clipping bends matters more.
_LEAST_CLIP, _CLIP_FROM, _CLIP_POWER = 0.3, 10.0, 0.35
# Products of a number and a row's number over a whole run that are worth the best batches.
_WORK = 3e10
# sigma/q may be this much above its limit.
_LOSS_OF_SAMPLING = 1.1
_LEAST_BATCH = 256


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A training that is decided and priced before any data is read.

    The step: weights -= learning_rate * velocity, with velocity = momentum * velocity + (sum of
    gradients clipped at ``clip`` + noise of standard deviation sigma * clip) / (rate * records);
    the answer is the last weights. Neither an average of the weights nor noise that falls was
    better than this where the rule was tried.
    """

    records: int
    numbers: int
    epsilon: Fraction
    delta: Fraction
    loss: LossKind
    rate: Fraction
    steps: int
    periods: int
    schedule: NoiseSchedule
    clip: Fraction
    learning_rate: float
    momentum: float
    signal_to_noise: float

    @property
    def run(self) -> SampledRun:
        """The run: ``steps`` steps in each of ``periods`` periods."""
        return SampledRun(
            rate=self.rate, steps=self.steps, sigmas=self.schedule.sigmas(self.periods)
        )

    @property
    def cost(self) -> SampledRunCost:
        """Its price: at most (epsilon, delta)."""
        return self.run.cost

    @property
    def epochs(self) -> float:
        """How often a record is used, on average."""
        return float(self.rate) * self.steps * self.periods

    def as_json(self) -> dict[str, Any]:
        """A JSON form that `RunPlan.from_json` reads back."""
        return {
            **vars(self),
            "epsilon": show(self.epsilon),
            "delta": show(self.delta),
            "loss": self.loss.value,
            "rate": show(self.rate),
            "clip": show(self.clip),
            "schedule": self.schedule.as_json(),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> RunPlan:
        """Read the form of `as_json`; the price is computed anew, never read."""
        try:
            return cls(
                **{
                    **body,
                    "epsilon": epsilon_exact(body["epsilon"]),
                    "delta": delta_exact(body["delta"]),
                    "loss": LossKind(body["loss"]),
                    "rate": exact(body["rate"], name="rate"),
                    "clip": exact(body["clip"], name="clip"),
                    "schedule": schedule_from_json(body["schedule"]),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                "RUN_PLAN_INVALID", "a plan must have the fields of `RunPlan.as_json` and no others"
            ) from error


def plan_run(
    *,
    records: int,
    numbers: int,
    epsilon: Number,
    delta: Number,
    loss: LossKind,
    row_bound: Number = 1,
    accounting: Accounting = Accounting.BEST,
) -> RunPlan:
    """The run for about ``records`` records and ``numbers`` learned numbers; see the module."""
    bound = exact(row_bound, name="row_bound")
    if bound == 0:
        raise InvalidInput("RUN_PLAN_INVALID", "row_bound must be positive, got 0")
    return _planned(
        count(records, name="records"),
        count(numbers, name="numbers"),
        epsilon_exact(epsilon),
        delta_exact(delta),
        loss,
        bound,
        accounting,
    )


@lru_cache(maxsize=256)
def _planned(
    records: int,
    numbers: int,
    epsilon: Fraction,
    delta: Fraction,
    loss: LossKind,
    bound: Fraction,
    accounting: Accounting,
) -> RunPlan:
    shape = _SHAPES[loss]
    mu = 1 / gaussian_sigma(epsilon=epsilon, delta=delta)
    ratio = records * mu / math.sqrt(numbers)
    # In units of a row of length 1: weights by its inverse, gradients by the length.
    reach = min(shape.reach, shape.noise * ratio)
    clip = shape.gradient * _clip(ratio)
    # What one gradient moves in the end, with all that momentum carries on.
    whole = clip / (1 - _MOMENTUM)
    steps = math.ceil(reach / (shape.step * whole))
    steps = min(max(steps, _LEAST_STEPS), _MOST_STEPS)
    learning_rate = min(shape.step, reach / (steps * whole))
    rate = _rate(records * numbers, records, steps, epsilon, delta)
    schedule = calibrated(
        Uniform(sigma=Fraction(1)),
        lambda sigmas: SampledRun(rate=rate, steps=steps, sigmas=sigmas),
        periods=1,
        epsilon=epsilon,
        delta=delta,
        accounting=accounting,
    )
    return RunPlan(
        records=records,
        numbers=numbers,
        epsilon=epsilon,
        delta=delta,
        loss=loss,
        rate=rate,
        steps=steps,
        periods=1,
        schedule=schedule,
        clip=_short(clip * float(bound)),
        learning_rate=learning_rate / float(bound) ** 2,
        momentum=_MOMENTUM,
        signal_to_noise=ratio,
    )


def _clip(ratio: float) -> float:
    return min(1.0, _LEAST_CLIP * math.exp(_CLIP_POWER * math.log(max(1.0, ratio / _CLIP_FROM))))


def _rate(size: int, records: int, steps: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """All records, or the least rate that is nearly as good where that is too much work: each a
    half more than the one before, from what the work allows. Compared by Renyi curves, which are
    quick; the price of what is chosen is that of its run.
    """
    if float(size) * steps <= _WORK:
        return Fraction(1)

    def relative(rate: Fraction) -> Fraction:
        sigma = noise_multiplier(
            rate=rate, steps=steps, epsilon=epsilon, delta=delta, accounting=Accounting.RENYI
        )
        return sigma / rate

    limit = relative(Fraction(1)) * Fraction(_LOSS_OF_SAMPLING)
    rate = max(_LEAST_BATCH / records, _WORK / (float(size) * steps))
    while rate < 0.5:
        if relative(tried := _short(rate)) <= limit:
            return tried
        rate *= 1.5
    # A rate that is nearly all is all: no sampler draws it better.
    return Fraction(1)


def _short(value: float) -> Fraction:
    """Two digits, rounded up."""
    places = 1 - math.floor(math.log10(value))
    scale = Fraction(10) ** places
    return Fraction(math.ceil(Fraction(value) * scale * (1 - Fraction(curves.MARGIN)))) / scale
