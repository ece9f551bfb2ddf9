"""The cancer data: as published, and with a hundredth of the price.

*As published*: a net of 10, 20 and 10 hidden units, all records at each of 500 steps, uniform noise
25 beside noise that falls exponentially from 30 at the same price (rho 0.4). *A hundredth of it*:
logistic regression with 20 steps on all records, and 100 splits, for it takes no time.

How the logistic run is made follows from public numbers. Its three were settled on other patients:
nine columns of the 569 of scikit-learn's breast cancer data, 450 for training, at rho 0.003 and
0.03 (steps 10 to 40, clipping 0.1 to 1, reach 0.1 to 2); and that numbers fill 0 to 1, not -1 to 1,
on invented patients with nine marks from 1 to 10. A split of the records for each seed.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._models import problems
from benchmarks._models.intervals import least_gain, shown
from benchmarks.bars import Report, Say, at_least
from ptklib.columns.numbers import Bounded
from ptklib.models.logistic import LogisticRegression
from ptklib.models.mlp import MlpClassifier
from ptklib.models.model import Model
from ptklib.models.sgd.settings import NoisySteps
from ptklib.privacy import curves
from ptklib.privacy.schedules.decays import ExponentialDecay, Uniform
from ptklib.privacy.schedules.solving import affordable_epochs

__all__ = ["few_steps", "report"]

_DELTA = Fraction(1, 100_000)
_SEEDS, _FEW_SEEDS, _MANY_SEEDS = 20, 5, 100
_RHO, _LITTLE_RHOS = Fraction("0.4"), (Fraction("0.004"), Fraction("0.003"))
_LEAST = 0.96
# Settled elsewhere: see the module. ``_REACH`` is how far noise moves a weight in the end.
_STEPS, _REACH, _CLIP = 20, 1.0, 0.3
_HIDDEN = (10, 20, 10)


def few_steps(records: int, rho: Fraction) -> NoisySteps:
    """A run of few steps over all records: weights may move until noise has moved them `_REACH`."""
    far = _REACH * records * float(2 * rho) ** 0.5 / _STEPS
    return NoisySteps(
        rate=1.0,
        steps=_STEPS,
        clip=_CLIP,
        momentum=0.0,
        learning_rate=far,
        decay="constant",
        averaging=False,
    )


def report(say: Say, data: Path | None, sample: bool) -> Report:
    """Accuracies with intervals; nothing without the data."""
    made = Report()
    if data is None:
        made.figures["cancer"] = ["skipped: give --data"]
        return made
    many = [problems.cancer(data, seed=seed) for seed in range(_MANY_SEEDS)]
    splits = many[: _FEW_SEEDS if sample else _SEEDS]
    uniform = Uniform(sigma=Fraction(25))
    falling = ExponentialDecay(initial=Fraction(30), decay=Fraction("0.001"))
    lasting = affordable_epochs(falling, budget=2 * _RHO)
    found = {
        "net, uniform noise, rho 0.4": _scores(
            splits, _net(tuple(map(float, uniform.sigmas(500)))), _RHO
        ),
        "net, exponential noise, rho 0.4": _scores(
            splits, _net(tuple(map(float, falling.sigmas(lasting)))), _RHO
        ),
    }
    little = [_scores(many, _logistic(rho), rho) for rho in _LITTLE_RHOS]
    found |= {
        f"logistic, 20 steps, rho {float(rho)}": scores
        for rho, scores in zip(_LITTLE_RHOS, little, strict=True)
    }
    made.bars += [
        at_least(
            "cancer, logistic at rho 0.004: mean test accuracy", float(little[0].mean()), _LEAST
        ),
        at_least(
            "cancer, net, exponential: accuracy above uniform noise, least of 95%",
            least_gain(
                found["net, exponential noise, rho 0.4"], found["net, uniform noise, rho 0.4"]
            ),
            0.0,
        ),
    ]
    made.figures["cancer"] = [
        {"model": name, "test accuracy": shown(scores)} for name, scores in found.items()
    ]
    say(f"cancer: {made.figures['cancer']}")
    return made


def _logistic(rho: Fraction) -> LogisticRegression:
    return LogisticRegression(
        inputs=_inputs(),
        label="class",
        classes=(2, 4),
        records=560,
        scaling="unit",
        training=few_steps(560, rho),
    )


def _net(noise: tuple[float, ...]) -> MlpClassifier:
    return MlpClassifier(
        inputs=_inputs(),
        label="class",
        classes=(2, 4),
        records=560,
        hidden=_HIDDEN,
        training=NoisySteps(
            rate=1.0,
            steps=len(noise),
            noise=noise,
            clip=4.0,
            momentum=0.0,
            learning_rate=0.2,
            decay="constant",
            averaging=False,
        ),
    )


def _inputs() -> tuple[Bounded, ...]:
    return tuple(Bounded(column=column, lower=1, upper=10) for column in problems.CANCER)


def _scores(splits: list[problems.Problem], model: Model, rho: Fraction) -> NDArray[np.float64]:
    epsilon = Fraction(curves.epsilon_of_gaussian(2 * rho, _DELTA)).limit_denominator(10**6)
    scores = []
    for split in splits:
        arrays = model.train_dp(split.train.to_batches(), epsilon=epsilon, delta=_DELTA)
        chosen = model.chosen(arrays, split.test).to_numpy(zero_copy_only=False)
        scores.append(float(np.mean(chosen == split.test.column("class").to_numpy())))
    return np.array(scores)
