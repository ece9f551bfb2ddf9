"""How good additive models are: against a constant, a forest of ours, and interpret's
`DPExplainableBoostingClassifier`, on data with two classes.

Area under the curve and log loss on test rows, at four levels of epsilon, with Gaussian noise at
delta 1e-5 (the default of interpret) for all, and with Laplace noise for ours. interpret runs in an
environment of its own (`benchmarks._accuracy.environment`), with default settings and the public
bounds of numbers; all are scored by the same code. Synthetic data, and with ``--data`` census, taxi
and bicycle records; defaults of ours were tuned on the synthetic data and the census, and on
nothing else.

**Better than a constant.** On every data set and at every epsilon the mean log loss of additive
models is below that of the best constant, which is told without noise.

**Better with epsilon.** From each epsilon to the next the mean log loss rises by at most 3 standard
errors of the difference.

**As good as interpret.** In both measures, on every data set and at every epsilon, with Gaussian
noise, the lead over it is at least -3 standard errors of the difference. Noise is fresh each time.
It does not hold for the area of *likes* at small epsilons: where many columns say the same, hundreds
of small rounds share it out among them better than our few.

Forests are shown, not judged.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (  # type: ignore[import-untyped,unused-ignore]
    log_loss,
    roc_auc_score,
)

from benchmarks._accuracy import environment
from benchmarks._accuracy.binary import BinaryTask, binary_tasks
from benchmarks.bars import Bar, Report, Say, at_least, broken
from ptklib.ptk import Ptk
from ptklib.ptks.additive import Additive
from ptklib.ptks.forest import Forest

EPSILONS = ("0.1", "0.3", "1", "3")
DELTA = "1e-5"
STANDARD_ERRORS = 3.0
_SEEDS, _FEW_SEEDS = 6, 3
_LEAST = 1e-6
_SECONDS_AT_MOST = 3_600
_SCRIPT = Path(__file__).parent / "_accuracy" / "ebm_runs.py"
_JUDGED = ("additive, gaussian", "additive, laplace")

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Of all seeds of one method on one data set at one epsilon."""

    task: BinaryTask
    method: str
    epsilon: str
    areas: Floats
    losses: Floats

    def row(self) -> dict[str, object]:
        """For people."""
        return {
            "data": self.task.name,
            "tuned": self.task.tuned,
            "epsilon": self.epsilon,
            "method": self.method,
            "area": f"{self.areas.mean():.4f}±{_error(self.areas):.1g}",
            "log loss": f"{self.losses.mean():.4f}±{_error(self.losses):.1g}",
            "constant": round(self.task.constant, 4),
        }


def run(say: Say, data: Path | None = None, sample: bool = False) -> Report:
    tasks, seeds = binary_tasks(data), _FEW_SEEDS if sample else _SEEDS
    report = Report()
    scores = []
    for task in tasks:
        scores += list(_ours(task, seeds))
        say(f"ours: {task.name}")
    try:
        scores += _theirs(tasks, seeds, environment.python(say, environment.INTERPRET), say)
    except environment.NotReady as reason:
        report.bars.append(broken(f"interpret: {reason}", 0))
    report.bars += judged(scores)
    report.figures["scores"] = [one.row() for one in sorted(scores, key=_place)]
    return report


def judged(scores: list[Scores]) -> list[Bar]:
    """The bars that the module describes."""
    known = {(one.task.name, one.method, one.epsilon): one for one in scores}
    bars = []
    for (name, method, epsilon), one in known.items():
        what = f"{name}, {method}, epsilon {epsilon}"
        if method in _JUDGED:
            ahead = lead(one.losses, np.full(2, one.task.constant))
            words = f"{what}: lead over the constant in log loss, standard errors"
            bars.append(at_least(words, ahead, 0))
        theirs = known.get((name, "interpret", epsilon))
        if method == _JUDGED[0] and theirs is not None:
            areas, losses = lead(theirs.areas, one.areas), lead(one.losses, theirs.losses)
            for measure, found in (("area", areas), ("log loss", losses)):
                words = f"{what}: lead over interpret in {measure}, standard errors"
                bars.append(at_least(words, found, -STANDARD_ERRORS))
    for name, method in sorted({(one.task.name, one.method) for one in scores}):
        if method in _JUDGED:
            levels = [known[name, method, epsilon] for epsilon in EPSILONS]
            leads = [lead(after.losses, before.losses) for before, after in pairwise(levels)]
            words = f"{name}, {method}: least lead of an epsilon over the one before, in log loss"
            bars.append(at_least(words, min(leads), -STANDARD_ERRORS))
    return bars


def lead(smaller: Floats, larger: Floats) -> float:
    """By how many standard errors the mean of the second is above that of the first."""
    difference = float(larger.mean() - smaller.mean())
    spread = math.hypot(_error(smaller), _error(larger))
    return difference / spread if spread else math.copysign(math.inf, difference)


def _place(one: Scores) -> tuple[str, int, str]:
    return one.task.name, EPSILONS.index(one.epsilon), one.method


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _scored(task: BinaryTask, method: str, epsilon: str, seeds: list[Floats]) -> Scores:
    clipped = [np.clip(one, _LEAST, 1 - _LEAST) for one in seeds]
    return Scores(
        task=task,
        method=method,
        epsilon=epsilon,
        areas=np.array([roc_auc_score(task.truth, one) for one in clipped]),
        losses=np.array([log_loss(task.truth, one) for one in clipped]),
    )


def _kinds(task: BinaryTask) -> dict[str, tuple[Ptk, int]]:
    """Ours, and which feature is the probability."""
    given: dict[str, Any] = {"inputs": task.inputs, "label": "y", "classes": (0, 1)}
    made: dict[str, tuple[Ptk, int]] = {}
    for mechanism in ("gaussian", "laplace"):
        additive: Callable[..., Ptk] = Additive
        made[f"additive, {mechanism}"] = additive(mechanism=mechanism, **given), 0
        made[f"forest, {mechanism}"] = Forest(mechanism=mechanism, **given), 1
    return made


def _ours(task: BinaryTask, seeds: int) -> Iterator[Scores]:
    train = task.train.to_batches(max_chunksize=1 << 16)
    for method, (ptk, place) in _kinds(task).items():
        delta = Fraction(DELTA) if ptk.tags.needs_delta else Fraction(0)
        for epsilon in EPSILONS:
            states = [ptk.train_dp(train, epsilon=epsilon, delta=delta) for _ in range(seeds)]
            found = [ptk.features(state, task.test).column(place).to_numpy() for state in states]
            yield _scored(task, method, epsilon, found)


def _theirs(tasks: list[BinaryTask], seeds: int, interpreter: Path, say: Say) -> list[Scores]:
    """Run interpret on all tasks; what it did not give is not there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = []
        for place, task in enumerate(tasks):
            arrays, told = task.plain()
            np.savez(folder / f"{place}.npz", **arrays)
            given = {"file": str(place), "name": task.name, "seeds": seeds, "delta": float(DELTA)}
            jobs.append({**given, "epsilons": [float(one) for one in EPSILONS], **told})
        (folder / "jobs.json").write_text(json.dumps(jobs))
        done = subprocess.run(
            [str(interpreter), str(_SCRIPT), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_SECONDS_AT_MOST,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise environment.NotReady(f"it ended with {done.returncode}: {last}")
        say(done.stderr.strip())
        scores = []
        for place, task in enumerate(tasks):
            with np.load(folder / f"{place}-theirs.npz") as made:
                scores += [
                    _scored(task, "interpret", epsilon, list(made[str(float(epsilon))]))
                    for epsilon in EPSILONS
                ]
    return scores
