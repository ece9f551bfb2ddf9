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
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._models import problems
from benchmarks._models.intervals import shown
from benchmarks.bars import Report, Say, at_least
from ptklib.models.images import Pixels, Scattering
from ptklib.models.inputs import STEPS, Vector
from ptklib.models.sgd.settings import NoisySteps
from ptklib.models.softmax import Softmax
from ptklib.price_first import Budget

__all__ = ["report", "settings"]

DELTA = Fraction(1, 100_000)
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


def report(say: Say, data: Path | None, sample: bool) -> Report:
    """Test accuracy with intervals; nothing without the data."""
    made = Report()
    if data is None:
        made.figures["digits"] = ["skipped: MNIST is in no synthetic form; give --data"]
        return made
    images, labels, test = problems.digits(data)
    features = Scattering(pixels=Pixels(height=28, width=28)).transform(images)
    say("scattering features of 70,000 digits")
    train = _table(features[~test], labels[~test])
    rows = []
    for epsilon, least in _LEVELS:
        scores = np.array(
            [
                _accuracy(epsilon, train, features[test], labels[test])
                for _ in range(_FEW_SEEDS if sample else _SEEDS)
            ]
        )
        say(f"digits at epsilon {float(epsilon)}: {shown(scores)}")
        rows.append({"epsilon": float(epsilon), "delta": 1e-5, "test accuracy": shown(scores)})
        what = f"MNIST, scattering and softmax, ({float(epsilon):g}, 1e-5): mean test accuracy"
        made.bars.append(at_least(what, float(scores.mean()), least))
    made.figures["digits"] = rows
    return made


def _table(features: NDArray[np.float32], labels: NDArray[np.int64]) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(features.reshape(-1)), features.shape[1])
    return pa.table({"features": lists, "digit": labels})


def _accuracy(
    epsilon: Fraction,
    train: pa.Table,
    test: NDArray[np.float32],
    labels: NDArray[np.int64],
) -> float:
    records = train.num_rows
    model = Softmax(
        inputs=(Vector(column="features", size=test.shape[1], lower=-1, upper=1),),
        label="digit",
        norm=1.0,
        intercept=False,
        classes=tuple(range(10)),
        records=records,
        training=settings(records, epsilon, DELTA),
    )
    arrays = model.train_dp(train.to_batches(2_000), epsilon=epsilon, delta=DELTA)
    # As `Softmax.chosen` does, without the way through Arrow.
    scores = (np.trunc(test * STEPS) / STEPS) @ arrays["layer_0"].astype(np.float32)
    return float(np.mean(scores.argmax(axis=1) == labels))
