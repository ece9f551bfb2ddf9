"""Linear regression of taxi durations (without a data folder: of invented rides) on 61 yes-or-no
features: ours beside AdaSSP as published and beside diffprivlib.

Error is the mean squared one on test rides that nobody trained on, less that of least squares
without privacy on the same rides (the *excess*). For each seed all sides get the same rides. Ours
is `LinearRegression` as it comes. diffprivlib is pure epsilon-DP; the others spend a delta of 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._accuracy.environment import NotReady
from benchmarks._models import problems, theirs
from benchmarks._models.intervals import least_gain, shown
from benchmarks.bars import Report, Say, at_least, at_most, broken
from ptklib.models.linear import LinearRegression

__all__ = ["report"]

Floats = NDArray[np.float64]

_RECORDS = (10_000, 100_000, 280_000)
_TEST_RECORDS = 50_000
_EPSILONS = (Fraction(1), Fraction(1, 4), Fraction(1, 20))
_DELTA = Fraction(1, 1_000_000)
_SEEDS, _FEW_SEEDS = 20, 3
# Of AdaSSP's excess, at most.
_MOST_OF_ADASSP = {Fraction(1): 1 / 3, Fraction(1, 4): 1 / 2}


def report(
    say: Say, data: Path | None, sample: bool, records: tuple[int, ...] = _RECORDS
) -> Report:
    """Excess errors, times 1000 of the squared range."""
    problem = problems.taxi(data, train=max(_RECORDS), test=_TEST_RECORDS)
    seeds, made = _FEW_SEEDS if sample else _SEEDS, Report()
    jobs = [theirs.Job("linear", count, tuple(map(float, _EPSILONS)), seeds) for count in records]
    try:
        predicted = theirs.predictions(problem, jobs, say)
    except NotReady as reason:
        made.bars.append(broken(f"linear regression beside diffprivlib: {reason}", 0))
        predicted = []
    rows: list[dict[str, object]] = []
    for place, count in enumerate(records):
        plain, ours, adassp = _errors(problem, count, seeds)
        for level, epsilon in enumerate(_EPSILONS):
            excess, published = ours[level] - plain, adassp[level] - plain
            row: dict[str, object] = {
                "rides": count,
                "epsilon": float(epsilon),
                "not private": round(1000 * float(plain.mean()), 3),
                "ours, excess": shown(1000 * excess),
                "AdaSSP, excess": shown(1000 * published),
            }
            named = f"{problem.name}, {count:,} records, epsilon {float(epsilon):g}"
            if epsilon in _MOST_OF_ADASSP:
                part = float(excess.mean() / published.mean())
                made.bars.append(
                    at_most(f"{named}: excess over AdaSSP's", part, _MOST_OF_ADASSP[epsilon])
                )
            if predicted:
                others = _squared(predicted[place][level], problem)
                row["diffprivlib, excess"] = shown(1000 * (others - plain))
                what = f"{named}: diffprivlib's squared error less ours, times 1000, least of 95%"
                made.bars.append(at_least(what, 1000 * least_gain(others, ours[level]), 0.0))
            rows.append(row)
            say(f"linear regression: {row}")
    made.figures[f"linear regression, {problem.name}, squared errors times 1000"] = rows
    return made


def _errors(
    problem: problems.Problem, records: int, seeds: int
) -> tuple[Floats, list[Floats], list[Floats]]:
    """Squared errors by seed: without privacy, and for each epsilon ours and AdaSSP's."""
    model = LinearRegression(
        inputs=problem.inputs, label=problem.label, lower=problem.lower, upper=problem.upper
    )
    published = replace(model, mechanism="adassp")
    plain = np.zeros(seeds)
    ours, adassp = ([np.zeros(seeds) for _ in _EPSILONS] for _ in range(2))
    for seed in range(seeds):
        drawn = problem.sampled(records, seed)
        plain[seed] = _least_squares(drawn)
        for level, epsilon in enumerate(_EPSILONS):
            for errors, kind in ((ours, model), (adassp, published)):
                arrays = kind.train_dp(drawn.train.to_batches(), epsilon=epsilon, delta=_DELTA)
                errors[level][seed] = _squared(kind.predict(arrays, drawn.test), drawn)
    return plain, ours, adassp


def _least_squares(problem: problems.Problem) -> float:
    rows, test = (
        np.column_stack([problem.matrix(table), np.ones(table.num_rows)])
        for table in (problem.train, problem.test)
    )
    weights = np.linalg.lstsq(rows.T @ rows, rows.T @ problem.labels(problem.train), rcond=1e-10)[0]
    return float(_squared(test @ weights, problem))


def _squared(predicted: Floats, problem: problems.Problem) -> Floats:
    """Mean squared errors of predictions (test rows last), which are clipped to the bounds."""
    wanted = problem.labels(problem.test)
    clipped = np.clip(predicted, problem.lower, problem.upper)
    return np.asarray(
        np.square(clipped - wanted).mean(axis=-1) / (problem.upper - problem.lower) ** 2
    )
