"""Is the planned run better than settings that are always the same?

Logistic regression on four families of invented data, over numbers of records, of weights and
promises. Each run is made with the noise it is priced with, and seen by its *share lost*: the
excess of its loss on fresh records over that of the true weights, as a share of what a coin leaves
to gain (log 2), at most 1.5. The planned run has its settings from public quantities alone; every
other row uses one setting for all cases. Noise is numpy's, which invented data can bear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Report, Say, at_most
from ptklib.privacy.schedules.calibration import noise_multiplier
from ptklib.privacy.schedules.planning import LossKind, plan_run

__all__ = ["run"]

Floats = NDArray[np.float32]

SIZES = (
    (1_000, 10),
    (1_000, 100),
    (1_000, 1_000),
    (10_000, 10),
    (10_000, 100),
    (100_000, 10),
)
EPSILONS = (0.1, 1, 8)
FAMILIES = ("even", "skewed", "one-hot", "short")
_FRESH = 10_000
_BATCH = 256
_MOST = 1.5


@dataclass(frozen=True)
class Setting:
    """A run: rate 0 stands for batches of `_BATCH`, ``steps`` then for epochs."""

    name: str
    rate: float
    steps: int
    step: float
    clip: float
    momentum: float = 0.0


FIXED = (
    Setting("batches of 256, 10 epochs, step 0.1, clip 1", 0, 10, 0.1, 1.0),
    Setting("batches of 256, 10 epochs, step 1, clip 1", 0, 10, 1.0, 1.0),
    Setting("100 full batches, step 4, clip 0.3", 1, 100, 4.0, 0.3),
    Setting("30 full batches, step 4, clip 1", 1, 30, 4.0, 1.0),
    Setting("20 full batches, step 16, clip 0.5", 1, 20, 16.0, 0.5),
)


def run(say: Say) -> Report:
    """Every case with every setting."""
    names = [*(setting.name for setting in FIXED), "planned"]
    lost: dict[str, list[float]] = {name: [] for name in names}
    table: list[dict[str, object]] = []
    for records, numbers in SIZES:
        say(f"{records:,} records, {numbers:,} weights")
        for family in FAMILIES:
            for epsilon, shares in _case(family, records, numbers):
                for name, share in shares.items():
                    lost[name].append(share)
                table.append(
                    {"family": family, "records": records, "weights": numbers, "epsilon": epsilon}
                    | {name: round(share, 3) for name, share in shares.items()}
                )
    means = {name: float(np.mean(shares)) for name, shares in lost.items()}
    best = min(means[setting.name] for setting in FIXED)
    cases = np.array([[row[name] for name in lost] for row in table], dtype=float)
    beyond = float(np.mean(cases[:, -1] - cases.min(axis=1)))
    return Report(
        bars=[
            at_most(
                "planned: mean share lost, of the best fixed setting's",
                means["planned"] / best,
                0.8,
            ),
            at_most("planned: mean share lost beyond the best of all in each case", beyond, 0.05),
        ],
        figures={"mean_share_lost": [means], "cases": table},
    )


def _case(family: str, records: int, numbers: int) -> Iterator[tuple[float, dict[str, float]]]:
    """One set of data with every promise and setting."""
    random = np.random.default_rng([records, numbers, FAMILIES.index(family)])
    truth, fresh, fresh_labels, rows, labels = _data(family, records, numbers, random)
    least = _losses(fresh, fresh_labels, truth[:, None])[0]
    delta = Fraction(1, 10 * records)
    for epsilon in EPSILONS:
        plan = plan_run(
            records=records,
            numbers=numbers,
            epsilon=epsilon,
            delta=delta,
            loss=LossKind.LOGISTIC,
        )
        planned = Setting(
            "planned",
            float(plan.rate),
            plan.steps,
            plan.learning_rate,
            float(plan.clip),
            plan.momentum,
        )
        shares = {}
        for setting in (*FIXED, planned):
            weights = _trained(rows, labels, setting, epsilon, delta, random)
            share = (_losses(fresh, fresh_labels, weights[:, None])[0] - least) / (
                math.log(2) - least
            )
            shares[setting.name] = float(min(share, _MOST))
        yield epsilon, shares


def _trained(
    rows: Floats,
    labels: Floats,
    setting: Setting,
    epsilon: float,
    delta: Fraction,
    random: np.random.Generator,
) -> Floats:
    """Noisy gradient descent from zero, as it is priced."""
    records, numbers = rows.shape
    rate = setting.rate or min(0.5, _BATCH / records)
    steps = setting.steps if setting.rate else math.ceil(setting.steps / rate)
    sigma = float(
        noise_multiplier(
            rate=Fraction(rate).limit_denominator(10**6), steps=steps, epsilon=epsilon, delta=delta
        )
    )
    lengths = np.linalg.norm(rows, axis=1)
    weights, velocity = np.zeros((2, numbers), dtype=np.float32)
    for _ in range(steps):
        chosen = slice(None) if rate == 1 else np.flatnonzero(random.random(records) < rate)
        batch = rows[chosen]
        error = np.asarray(_chances(batch @ weights) - labels[chosen], dtype=np.float32)
        size = np.maximum(np.abs(error) * lengths[chosen], 1e-9)
        error *= np.minimum(1, setting.clip / size)
        noise = random.standard_normal((numbers,), dtype=np.float32)
        noise *= np.float32(sigma * setting.clip)
        velocity *= np.float32(setting.momentum)
        velocity += (batch.T @ error + noise) / np.float32(rate * records)
        weights -= np.float32(setting.step) * velocity
    return weights


def _data(
    family: str, records: int, numbers: int, random: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """True weights, fresh rows and labels, rows and labels; rows are at most 1 long."""
    fresh = _rows(family, _FRESH, numbers, random)
    direction = random.standard_normal(numbers, dtype=np.float32)
    # Scores of the same spread everywhere: the best accuracy is about 0.8.
    truth = np.asarray(direction * (2.0 / np.std(fresh @ direction)), dtype=np.float32)
    rows = _rows(family, records, numbers, random)
    labels, fresh_labels = (
        (random.random(len(some)) < _chances(some @ truth)).astype(np.float32)
        for some in (rows, fresh)
    )
    return truth, fresh, fresh_labels, rows, labels


def _rows(family: str, count: int, numbers: int, random: np.random.Generator) -> Floats:
    if family == "one-hot":
        blocks = min(12, max(2, numbers // 4))
        width = numbers // blocks
        rows = np.zeros((count, numbers), dtype=np.float32)
        chances = np.arange(1, width + 1) ** -1.2
        for block in range(blocks):
            places = random.choice(width, size=count, p=chances / chances.sum())
            rows[np.arange(count), block * width + places] = 1 / math.sqrt(blocks)
        return rows
    rows = random.standard_normal((count, numbers), dtype=np.float32)
    if family == "skewed":
        rows *= (np.arange(1, numbers + 1) ** -0.75).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if family == "short":
        return np.asarray(rows / lengths / 4, dtype=np.float32)
    if family == "skewed":
        return np.asarray(rows / np.maximum(1, lengths), dtype=np.float32)
    return np.asarray(rows / lengths, dtype=np.float32)


def _chances(scores: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -30, 30))), dtype=np.float32)


def _losses(rows: Floats, labels: Floats, weights: Floats) -> NDArray[np.float64]:
    scores = (rows @ weights).astype(np.float64)
    return np.asarray(np.mean(np.logaddexp(0, scores) - labels[:, None] * scores, axis=0))
