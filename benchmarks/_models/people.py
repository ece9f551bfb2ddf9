"""Logistic regression on Adult (without a data folder: on invented people of the same columns):
ours beside scikit-learn without privacy and beside diffprivlib, 20 seeds.

Everybody gets the same 91 yes-or-no features with public domains. Ours is `LogisticRegression` as
it comes: nothing is set but the number of records. diffprivlib is pure epsilon-DP, and ours spends
a delta of 1e-6; three penalties of diffprivlib are run, and the one that is best for it counts.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import (  # type: ignore[import-untyped,unused-ignore]
    LogisticRegression as PlainRegression,
)

from benchmarks._accuracy.environment import NotReady
from benchmarks._models import problems, theirs
from benchmarks._models.intervals import least_gain, shown
from benchmarks.bars import Report, Say, at_least, at_most, broken
from ptklib.models.logistic import LogisticRegression

__all__ = ["report"]

_EPSILONS = (Fraction(1), Fraction(1, 4), Fraction(1, 20))
_DELTA = Fraction(1, 1_000_000)
_SEEDS, _FEW_SEEDS = 20, 5
_MOST_LOST = 0.01
_PENALTIES = (1.0, 0.01, 0.0001)


def report(say: Say, data: Path | None, sample: bool) -> Report:
    """Accuracies with intervals."""
    problem = problems.adult(data)
    seeds = _FEW_SEEDS if sample else _SEEDS
    plain = _plain(problem)
    ours = {epsilon: _ours(problem, epsilon, seeds) for epsilon in _EPSILONS}
    for epsilon, scores in ours.items():
        say(f"{problem.name}: logistic at epsilon {float(epsilon)}: {shown(scores)}")
    made = Report()
    lost = plain - float(ours[Fraction(1)].mean())
    made.bars.append(
        at_most(f"logistic, {problem.name}, epsilon 1: accuracy lost to privacy", lost, _MOST_LOST)
    )
    try:
        diffprivlib = _diffprivlib(problem, seeds, say)
    except NotReady as reason:
        made.bars.append(broken(f"logistic beside diffprivlib: {reason}", 0))
        diffprivlib = {}
    for epsilon, scores in diffprivlib.items():
        what = f"logistic, {problem.name}, epsilon {float(epsilon):g}: accuracy above diffprivlib's"
        made.bars.append(at_least(f"{what}, least of 95%", least_gain(ours[epsilon], scores), 0.0))
    made.figures[f"logistic, {problem.name}"] = [
        {
            "epsilon": float(epsilon),
            "ours": shown(scores),
            "diffprivlib": shown(diffprivlib[epsilon]) if epsilon in diffprivlib else "-",
            "not private": round(plain, 4),
        }
        for epsilon, scores in ours.items()
    ]
    return made


def _plain(problem: problems.Problem) -> float:
    model = PlainRegression(C=1.0, max_iter=1000)
    model.fit(problem.matrix(problem.train), problem.labels(problem.train))
    return float(model.score(problem.matrix(problem.test), problem.labels(problem.test)))


def _ours(problem: problems.Problem, epsilon: Fraction, seeds: int) -> NDArray[np.float64]:
    model = LogisticRegression(
        inputs=problem.inputs,
        label=problem.label,
        classes=problem.classes,
        records=problem.train.num_rows,
    )
    labels, scores = problem.test.column(problem.label).to_numpy(), []
    for _ in range(seeds):
        arrays = model.train_dp(problem.train.to_batches(), epsilon=epsilon, delta=_DELTA)
        chosen = model.chosen(arrays, problem.test).to_numpy(zero_copy_only=False)
        scores.append(float(np.mean(chosen == labels)))
    return np.array(scores)


def _diffprivlib(
    problem: problems.Problem, seeds: int, say: Say
) -> dict[Fraction, NDArray[np.float64]]:
    levels = tuple(float(epsilon) for epsilon in _EPSILONS)
    records = problem.train.num_rows
    jobs = [theirs.Job("logistic", records, levels, seeds, penalty) for penalty in _PENALTIES]
    predicted = np.stack(theirs.predictions(problem, jobs, say))
    right = (predicted == problem.labels(problem.test)).mean(axis=3)
    best = right.mean(axis=2).argmax(axis=0)
    return {epsilon: right[best[place], place] for place, epsilon in enumerate(_EPSILONS)}
