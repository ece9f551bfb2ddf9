"""Does falling noise help? MNIST as published: a net of 60 principal components, one hidden layer
of 1,000 and a softmax, batches of 600 that are reshuffled each epoch, rho 0.78125 of zCDP, six ways
to spend it; and uniform noise over as few epochs beside each.

The price is honest: both layers are clipped, each at C, so a record moves their sum by sqrt(2) C,
and a multiplier of 8 means noise of 8 times that. Components come from a noisy second-moment matrix
(sigma 16), and cost what is not counted in rho, as published. Validation is on 5,000 images of the
training set that are taken for public.

Components are divided by `_SCALE`, so that rows are about as long as 1, and the clipping norm with
them; the learning rate is the published one, stated for clipped gradients. An earlier clipping and
learning rate were tried once, with uniform noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._models import problems
from benchmarks._models.intervals import least_gain, shown
from benchmarks.bars import Report, Say, at_least
from ptklib.models.inputs import STEPS
from ptklib.models.sgd.encoded import EncodedRecords, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.heads import Softmax
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.optimiser import Optimiser
from ptklib.models.sgd.plan import SgdPace, SgdPlan, SgdStage
from ptklib.models.sgd.run import Run
from ptklib.price_first import Budget
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.privacy.schedules.base import NoiseSchedule
from ptklib.privacy.schedules.decays import (
    ExponentialDecay,
    PolynomialDecay,
    StepDecay,
    TimeDecay,
    Uniform,
)
from ptklib.privacy.schedules.runs import ReshuffledRun
from ptklib.privacy.schedules.solving import affordable_epochs

__all__ = ["Digits", "Trial", "report"]

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

MU_SQUARED = Fraction(2) * Fraction("0.78125")
_COMPONENTS, _PCA_SIGMA, _SCALE = 60, 16, 8.0
_BOUND = 4.0
_BATCHES = 100
# As published, 4 and 0.05, for rows that are an eighth as long.
_CLIP = (4.0 / _SCALE, 4.0 / _SCALE)
_LEARNING_RATE = 0.05 * math.hypot(4.0, 4.0)
_WIDTH, _FEW_WIDTH = 1000, 200
_SEEDS, _FEW_SEEDS = 5, 2
_VALIDATION = 5_000
# Least gain in accuracy, every m epochs; else the noise is multiplied by k.
_LOOK_EVERY, _LEAST_GAIN, _FACTOR = 5, 0.01, Fraction("0.7")

_TEN = Fraction(10)
# As published, with test accuracy there.
SCHEDULES: dict[str, tuple[NoiseSchedule | None, float]] = {
    "uniform": (Uniform(sigma=Fraction(8)), 0.919),
    "time": (TimeDecay(initial=_TEN, decay=Fraction("0.05")), 0.931),
    "step": (StepDecay(initial=_TEN, decay=Fraction("0.6"), period=10), 0.929),
    "exponential": (ExponentialDecay(initial=_TEN, decay=Fraction("0.01")), 0.929),
    "polynomial": (
        PolynomialDecay(initial=_TEN, decay=Fraction(3), final=Fraction(2), period=100),
        0.932,
    ),
    "validation": (None, 0.930),
}


@dataclass(frozen=True, eq=False)
class Digits:
    """Rows for training, for validation and for testing."""

    train: EncodedRecords
    shorter: EncodedRecords  # without those for validation
    validation: tuple[Floats, NDArray[np.int64]]
    test: tuple[Floats, NDArray[np.int64]]

    @classmethod
    def of(
        cls, images: NDArray[np.uint8], labels: NDArray[np.int64], test: NDArray[np.bool_]
    ) -> Digits:
        """Noisy principal components of the images for training, for all."""
        components = _components(images[~test])
        rows = images.astype(np.float32) / 255 @ components / _SCALE
        wide = np.column_stack([rows, np.ones(len(rows))])
        wide /= np.maximum(1, np.linalg.norm(wide, axis=1, keepdims=True) / (0.999 * _BOUND))
        made: Floats = wide.astype(np.float32)
        train, wanted = made[~test], labels[~test]
        return cls(
            _encoded(train, wanted),
            _encoded(train[_VALIDATION:], wanted[_VALIDATION:]),
            (train[:_VALIDATION], wanted[:_VALIDATION]),
            (made[test], labels[test]),
        )


def _components(images: NDArray[np.uint8]) -> Floats:
    """Of images made as long as 1024 steps, whose squares move the matrix by 1024**2 at most."""
    rows = images.astype(np.float64)
    rows = np.trunc(1024 * 0.9999 * rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None])
    moments = (rows.T @ rows).astype(np.int64)
    upper = np.triu_indices(len(moments))
    release = GaussianRelease(sigma=_PCA_SIGMA * 1024**2, sensitivity=1024**2)
    noisy = np.zeros(moments.shape)
    noisy[upper] = release.release(moments[upper]).values
    vectors = np.linalg.eigh(noisy + np.triu(noisy, 1).T)[1]
    return np.asarray(vectors[:, ::-1][:, :_COMPONENTS], dtype=np.float32)


def _network(width: int) -> Network:
    return Network(_COMPONENTS + 1, (width,), "relu", Softmax(10), _BOUND)


def _encoded(rows: Floats, labels: NDArray[np.int64]) -> EncodedRecords:
    encoder = Encoder(rows.shape[1], Forward(_network(1)).bits[0])
    for start in range(0, len(rows), 4_096):
        some = slice(start, start + 4_096)
        encoder.add(
            np.trunc(rows[some].astype(np.float64) * STEPS), labels[some].astype(np.float64)
        )
    return encoder.done()


@dataclass(frozen=True)
class Trial:
    """Trainings of one width of the hidden layer."""

    width: int
    learning_rate: float = _LEARNING_RATE
    clip: tuple[float, ...] = _CLIP

    def accuracies(self, digits: list[Digits], schedule: NoiseSchedule, epochs: int) -> Doubles:
        """Of each seed."""
        return np.array(
            [self.accuracy(held, schedule, epochs, seed) for seed, held in enumerate(digits)]
        )

    def accuracy(self, digits: Digits, schedule: NoiseSchedule, epochs: int, seed: int) -> float:
        """Of a schedule that is known before."""
        stages = tuple(SgdStage(_BATCHES, float(sigma)) for sigma in schedule.sigmas(epochs))
        weights = self._trained(digits.train, stages, seed, None)
        return self._right(weights, *digits.test)

    def validated(self, digits: Digits, seed: int) -> tuple[float, int]:
        """Of noise that falls where validation gains too little; and the epochs that it took."""
        weights: Floats | None = None
        spent, sigma, epochs, last = Fraction(0), _TEN, 0, 0.0
        while spent + 1 / sigma**2 <= MU_SQUARED:
            weights = self._trained(
                digits.shorter, (SgdStage(_BATCHES, float(sigma)),), seed, weights
            )
            spent, epochs = spent + 1 / sigma**2, epochs + 1
            if epochs % _LOOK_EVERY == 0:
                now = self._right(weights, *digits.validation)
                sigma, last = sigma * (_FACTOR if now - last < _LEAST_GAIN else 1), now
        assert weights is not None
        return self._right(weights, *digits.test), epochs

    def _trained(
        self, data: EncodedRecords, stages: tuple[SgdStage, ...], seed: int, start: Floats | None
    ) -> Floats:
        pace = SgdPace("tags", Fraction(1, _BATCHES), stages)
        sigmas = tuple(Fraction(repr(stage.noise)) for stage in stages)
        cost = ReshuffledRun(sigmas=sigmas).cost
        plan = SgdPlan(pace, Budget(Fraction(6), Fraction(1, 10**5), 1), cost)
        step = Optimiser(learning_rate=self.learning_rate / math.hypot(*self.clip))
        run = Run(_network(self.width), plan, step, self.clip, len(data), seed)
        return run.train(data, start=start)

    def _right(self, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> float:
        first, second = _network(self.width).matrices(weights)
        hidden = np.maximum(rows @ first, 0)
        scores = hidden @ second[:-1] + second[-1]
        return float(np.mean(scores.argmax(axis=1) == labels))


def report(say: Say, data: Path | None, sample: bool) -> Report:
    """All six rows; nothing without the data."""
    made = Report()
    if data is None:
        made.figures["schedules"] = ["skipped: MNIST is in no synthetic form; give --data"]
        return made
    seeds = _FEW_SEEDS if sample else _SEEDS
    read = problems.digits(data)
    trial = Trial(_FEW_WIDTH if sample else _WIDTH)
    held = [Digits.of(*read) for _ in range(seeds)]
    say("noisy principal components of digits")
    found: dict[str, Doubles] = {}
    few: dict[str, Doubles] = {}
    lengths: dict[str, int] = {}
    for name, (schedule, _) in SCHEDULES.items():
        if schedule is None:
            pairs = [trial.validated(held[seed], seed) for seed in range(seeds)]
            found[name] = np.array([accuracy for accuracy, _ in pairs])
            lengths[name] = round(float(np.mean([epochs for _, epochs in pairs])))
        else:
            lengths[name] = affordable_epochs(schedule, budget=MU_SQUARED)
            found[name] = trial.accuracies(held, schedule, lengths[name])
        if name == "uniform":
            few[name] = found[name]
        else:
            sigma = Fraction(math.sqrt(lengths[name] / MU_SQUARED)).limit_denominator(10**6)
            few[name] = trial.accuracies(held, Uniform(sigma=sigma), lengths[name])
        say(f"{name}: {lengths[name]} epochs, {shown(found[name])}, uniform {shown(few[name])}")
    made.figures[f"schedules, {trial.width} hidden"] = [
        {
            "schedule": name,
            "epochs": lengths[name],
            "test accuracy": shown(found[name]),
            "uniform, as many epochs": shown(few[name]),
            "published": published,
        }
        for name, (_, published) in SCHEDULES.items()
    ]
    made.bars += [
        at_least(
            f"MNIST, rho 0.78125, {name}: accuracy above uniform noise, least of 95%",
            least_gain(found[name], found["uniform"]),
            0.0,
        )
        for name in SCHEDULES
        if name != "uniform"
    ]
    return made
