"""MNIST by a linear model on public features, at three levels of privacy.

Scattering features of an image (3,969 of them, length 1), softmax regression on top, Poisson
batches, one run for each seed. How the run is made follows from the number of records and from the
budget by `settings`. Its four numbers were settled on another set of images: 70,000 distorted
copies of the 1,797 digits that come with scikit-learn, test copies of other originals than training
copies. MNIST was not looked at: neither its test images nor its training images.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._models import problems
from benchmarks._models.intervals import shown
from benchmarks.bars import Report, Say, at_least
from ptklib.models.images import Pixels, Scattering
from ptklib.models.inputs import STEPS
from ptklib.models.sgd import heads
from ptklib.models.sgd.encoded import Encoded, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.plan import plan_of
from ptklib.models.sgd.run import Run
from ptklib.models.sgd.settings import NoisySteps, settled
from ptklib.price_first import Budget

__all__ = ["report", "settings"]

Floats = NDArray[np.float32]
Level = tuple[Fraction, float]

DELTA = Fraction(1, 100_000)
_RECORDS = 60_000
# Epsilon, and the least accuracy.
_LEVELS = ((Fraction("5.68"), 0.975), (Fraction(2), 0.96), (Fraction(1), 0.94))
_SEEDS, _FEW_SEEDS = 5, 1

# Settled elsewhere: see the module.
_RATE, _CLIP, _MOMENTUM = 0.1, 0.1, 0.9
_STEPS_PER_MU, _LEAST_STEPS, _MOST_STEPS = 400, 50, 400
_REACH = 2.8


def settings(records: int, epsilon: Fraction, delta: Fraction) -> NoisySteps:
    """A run for rows of length 1.

    Noise moves the score of a row by about sigma C sqrt(T) h / (q n) = h C T / (n mu) in all, if h
    is how far weights go for a gradient in the end. That is set to `_REACH`.
    """
    mu = 1 / Budget(epsilon, delta, 1).gaussian_sigma()
    steps = min(_MOST_STEPS, max(_LEAST_STEPS, round(_STEPS_PER_MU * mu)))
    far = _REACH * records * mu / steps
    return NoisySteps(
        rate=_RATE,
        steps=steps,
        clip=_CLIP,
        momentum=_MOMENTUM,
        learning_rate=(1 - _MOMENTUM) * far,
        decay="constant",
        averaging=False,
    )


def report(
    say: Say, data: Path | None, sample: bool, levels: tuple[Level, ...] = _LEVELS
) -> Report:
    """Test accuracy with intervals; nothing without the data."""
    made = Report()
    if data is None:
        made.figures["digits"] = ["skipped: MNIST is in no synthetic form; give --data"]
        return made
    images, labels, test = problems.digits(data)
    features = Scattering(pixels=Pixels(height=28, width=28)).transform(images)
    say("scattering features of 70,000 digits")
    train = _encoded(features[~test], labels[~test])
    rows = []
    for epsilon, least in levels:
        scores = np.array(
            [
                _accuracy(epsilon, train, features[test], labels[test], seed)
                for seed in range(_FEW_SEEDS if sample else _SEEDS)
            ]
        )
        say(f"digits at epsilon {float(epsilon)}: {shown(scores)}")
        rows.append({"epsilon": float(epsilon), "delta": 1e-5, "test accuracy": shown(scores)})
        what = f"MNIST, scattering and softmax, ({float(epsilon):g}, 1e-5): mean test accuracy"
        made.bars.append(at_least(what, float(scores.mean()), least))
    made.figures["digits"] = rows
    return made


def _encoded(features: Floats, labels: NDArray[np.int64]) -> Encoded:
    """Rows as `Softmax` makes them of a column of features, once for all runs."""
    encoder = Encoder(features.shape[1], Forward(_network(features.shape[1])).bits[0])
    for start in range(0, len(features), 1_000):
        part = features[start : start + 1_000].astype(np.float64)
        encoder.add(np.trunc(part * STEPS), labels[start : start + 1_000].astype(np.float64))
    return encoder.done()


def _network(width: int) -> Network:
    return Network(width, (), "relu", heads.Softmax(10), 1.0)


def _accuracy(
    epsilon: Fraction, train: Encoded, test: Floats, labels: NDArray[np.int64], seed: int
) -> float:
    """One run, as `Softmax` makes it of these settings."""
    budget, network = Budget(epsilon, DELTA, 1), _network(test.shape[1])
    chosen = settled(settings(_RECORDS, epsilon, DELTA), network, _RECORDS, budget)
    plan = plan_of(chosen.pace, budget)
    run = Run(network, plan, chosen.optimiser, chosen.clip, _RECORDS, seed)
    (weights,) = network.matrices(run.train(train))
    return float(np.mean((test @ weights).argmax(axis=1) == labels))
