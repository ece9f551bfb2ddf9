"""How a net is trained, as a configuration; what is left open follows from public numbers.

`NoisySteps` is a part of the configuration of a model. Every field that is None (or "auto") is
chosen by `settled` from the number of records that the user expects, the size of the net and the
budget: no rule looks at data, so choosing costs nothing. The rule (`_Rule`):

* *Batches* are Poisson: what is amplified is not paid for. Their rate is such that a run passes the
  records `_PASSES` times, but a batch is expected to have `_LEAST_BATCH` records: noise hardly
  depends on the rate as long as the budget buys a multiplier above 1, time does.
* *Steps*: with a budget of mu (of a Gaussian of the same epsilon and delta) and n records, the
  noise of a whole run is sqrt(size) / (n mu) of what clipped gradients can move weights by; more
  steps buy finer moves, not less noise. Convex models take a few dozen, nets some hundred.
* *Clipping*: at length 1. Where nearly all gradients are clipped the direction is what counts, so
  learning rates are stated for clipped gradients: weights move by ``learning_rate`` times the
  gradient over C.
* *The learning rate* falls with the root of the signal, n mu / sqrt(size): what moves weights far
  moves them far by noise.

Its numbers were found on public data (Adult, n = 39,073, epsilon from 0.01 to 5) and are the same
for everybody.

Reasons: CONFIG_INVALID.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ptklib import config
from ptklib.models.sgd.members import MAX_RATE
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.optimiser import Decay, Optimiser
from ptklib.models.sgd.plan import SgdPace, SgdStage
from ptklib.price_first import Budget

__all__ = ["MAX_RECORDS", "MAX_STEPS", "NoisySteps", "SettledRun", "settled"]

MAX_RECORDS = 10**9
MAX_STEPS = 10**6
_MAX_SEED = 2**63 - 1
_RATES = 10**6


@dataclass(frozen=True, kw_only=True)
class NoisySteps:
    """A run of noisy gradient steps. None: by the rule of the module."""

    kind: ClassVar[str] = "noisy_steps"
    batching: Literal["poisson", "tags"] = "poisson"
    rate: float | None = None  # the chance of a record at each step; one over batches with tags
    steps: int | None = None  # with tags, rounded up to whole epochs
    clip: float | tuple[float, ...] | None = None  # of the whole gradient, or one of each layer
    learning_rate: float | None = None  # of gradients over the clipping norm
    momentum: float | None = None
    nesterov: bool = False
    decay: Decay | None = None
    averaging: bool | None = None
    noise: tuple[float, ...] = ()  # relative noise of parts of equal length
    seed: int = 0  # of first weights: public

    def __post_init__(self) -> None:
        """Check the values."""
        config.checked(self)
        _demand(self.rate is None or 0 < self.rate <= 1, "rate must be above 0, at most 1", "rate")
        _demand(
            self.batching == "tags"
            or self.rate is None
            or self.rate in (1.0,)
            or self.rate <= MAX_RATE,
            f"rate of Poisson batches must be 1 or at most {float(MAX_RATE)}",
            "rate",
        )
        _demand(
            self.steps is None or 1 <= self.steps <= MAX_STEPS,
            f"steps must be 1 to {MAX_STEPS}",
            "steps",
        )
        norms = self.clip if isinstance(self.clip, tuple) else (self.clip,)
        _demand(
            len(norms) >= 1 and all(norm is None or 1e-6 <= norm <= 1e6 for norm in norms),
            "clip must be from 1e-6 to 1e6",
            "clip",
        )
        rate = self.learning_rate
        _demand(rate is None or 0 < rate <= 1e6, "learning_rate must be above 0", "learning_rate")
        _demand(
            self.momentum is None or 0 <= self.momentum < 1,
            "momentum must be at least 0, below 1",
            "momentum",
        )
        _demand(
            len(self.noise) <= 1000 and all(1e-3 <= part <= 1e3 for part in self.noise),
            "noise must be at most 1000 numbers from 0.001 to 1000",
            "noise",
        )
        _demand(0 <= self.seed <= _MAX_SEED, "seed must be from 0 to 2**63 - 1", "seed")


@dataclass(frozen=True)
class SettledRun:
    """What a run needs besides its network and its price."""

    pace: SgdPace
    optimiser: Optimiser
    clip: tuple[float, ...]


@dataclass(frozen=True)
class _Rule:
    """What the rule leaves to be tried: for convex models, and for nets."""

    steps: int
    passes: float
    learning_rate: float
    momentum: float
    clip: float
    signal: float


_CONVEX = _Rule(steps=100, passes=20.0, learning_rate=4.0, momentum=0.9, clip=1.0, signal=1000.0)
_NETS = _Rule(steps=300, passes=30.0, learning_rate=1.0, momentum=0.9, clip=1.0, signal=200.0)
_LEAST_BATCH = 256
_LEAST_BOLD = 0.02


def settled(
    given: NoisySteps, network: Network, records: int, budget: Budget, *, penalty: float = 0.0
) -> SettledRun:
    """The whole of a run, from public numbers."""
    rule = _CONVEX if network.layers == 1 else _NETS
    steps = given.steps if given.steps is not None else rule.steps
    rate = _rate(given, rule, steps, records)
    clip = _clip(given, network, rule)
    learning_rate = given.learning_rate
    if learning_rate is None:
        learning_rate = rule.learning_rate * _boldness(rule, network, records, budget)
    momentum = rule.momentum if given.momentum is None else given.momentum
    averaging = network.layers == 1 if given.averaging is None else given.averaging
    decay: Decay = given.decay or ("constant" if averaging else "linear")
    norm = math.hypot(*clip)
    optimiser = Optimiser(
        learning_rate=learning_rate / norm,
        momentum=momentum,
        nesterov=given.nesterov,
        decay=decay,
        penalty=penalty,
        averaging=averaging,
    )
    return SettledRun(_pace(given, rate, steps), optimiser, clip)


def _rate(given: NoisySteps, rule: _Rule, steps: int, records: int) -> Fraction:
    least = max(rule.passes / steps, _LEAST_BATCH / records)
    rate = least if given.rate is None else given.rate
    if rate >= MAX_RATE:
        return Fraction(1)
    if given.batching == "tags":
        return Fraction(1, max(1, round(1 / rate)))
    return Fraction(math.ceil(rate * _RATES), _RATES)


def _pace(given: NoisySteps, rate: Fraction, steps: int) -> SgdPace:
    """Stages of nearly equal length, whole epochs with tags."""
    epoch = round(1 / rate) if given.batching == "tags" else 1
    noise = given.noise or (1.0,)
    turns = max(-(-steps // epoch), len(noise))
    ends = [turns * place // len(noise) for place in range(len(noise) + 1)]
    return SgdPace(
        given.batching,
        rate,
        tuple(
            SgdStage((stop - start) * epoch, level)
            for start, stop, level in zip(ends, ends[1:], noise, strict=False)
        ),
    )


def _clip(given: NoisySteps, network: Network, rule: _Rule) -> tuple[float, ...]:
    if isinstance(given.clip, tuple):
        _demand(
            len(given.clip) in (1, network.layers),
            f"clip must be one norm or one for each of {network.layers} layers, got "
            f"{len(given.clip)}",
            "clip",
        )
        return given.clip
    return (rule.clip if given.clip is None else given.clip,)


def _boldness(rule: _Rule, network: Network, records: int, budget: Budget) -> float:
    """At most 1: how far clipped gradients can move weights before noise does."""
    signal = records / (budget.gaussian_sigma() * math.sqrt(network.size))
    return min(1.0, max(_LEAST_BOLD, math.sqrt(signal / rule.signal)))


def _demand(holds: bool, words: str, field: str) -> None:
    config.demand(holds, words, field=field)
