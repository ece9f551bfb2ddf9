"""How accurate our PTKs are beside diffprivlib: same data, same public bounds, same epsilon.

Four methods (forests, k-means, PCA, histograms), three levels of epsilon, synthetic data sets and,
with ``--data``, Adult and taxi rides. diffprivlib runs in an environment of its own
(`benchmarks._accuracy.environment`) and hands over predictions, centres, components and counts;
both sides are scored by the same code. Where diffprivlib leaves a choice (trees, depth, centring),
every setting listed in `diffprivlib_runs` is run, and the one that is best on each data set and
epsilon counts; ours has one setting throughout.

Errors are lower for better (`benchmarks._accuracy.scores.WORDS`).

**As good everywhere.** On every data set and at every epsilon, (their mean error - our mean error)
/ standard error of that difference (two independent samples of seeds) is at least -3. The noise of
our mechanisms cannot be seeded outside tests, so this is a test on fresh noise each time: where
both sides have the same distribution, as histograms have, it fails by chance once in 700
comparisons; at -2 it would be once in 44.

**Better on average.** For each method, the mean over data sets and epsilons of 1 - ours / theirs is
above zero. Histograms are the exception: both sides release the same distribution there, so that
mean may be below zero by up to 3 standard errors.

The gap at epsilon 1 to the exact method without privacy is shown, not judged.

Embeddings, which diffprivlib has none of, are beside plain biases (`benchmarks._accuracy.embeddings`),
and target encoding with interactions beside tables of one key and of all keys
(`benchmarks._accuracy.encodings`).

Means by group, which are pulled together (`ptklib.ptks.tables.shrinkage`), are compared with the
same noisy means before that, with the mean of all records and with OpenDP's: on each table of
groups, at the worst of four levels of epsilon, the error of what is served must be at most 1.02
times that of the best of the three (`benchmarks._accuracy.pulling`); once with the promise that a
PTK makes by default, once with none. P(label | key) likewise beside the best of counts cut at zero,
of a fixed and of a fitted spread.

One quantile of a key with few records is compared with a textbook exponential mechanism
(`benchmarks._accuracy.ranks`): at most 1.02 times its error of the rank.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._accuracy import embeddings, encodings, environment, ours, pulling, ranks
from benchmarks._accuracy.groups import groups
from benchmarks._accuracy.scores import WORDS, Scale
from benchmarks._accuracy.tasks import METHODS, Task, tasks
from benchmarks.bars import Bar, Report, Say, at_least, broken

EPSILONS = (0.1, 0.5, 1.0)
STANDARD_ERRORS = 3.0
_SEEDS = {"forest": 20, "k-means": 20, "PCA": 20, "histogram": 200}
# A guard against a sampler that does not come back; the whole takes minutes.
_SECONDS_AT_MOST = 1_800
_SCRIPT = Path(__file__).parent / "_accuracy" / "diffprivlib_runs.py"

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Errors of all seeds on one data set at one epsilon."""

    task: Task
    epsilon: float
    ours: Floats
    theirs: Floats
    exact: float

    @property
    def lead(self) -> float:
        """By how many standard errors ours is better; 0 where both are the same to the last bit."""
        difference = float(self.theirs.mean() - self.ours.mean())
        spread = math.sqrt(
            self.ours.var(ddof=1) / len(self.ours) + self.theirs.var(ddof=1) / len(self.theirs)
        )
        return (
            difference / spread
            if spread
            else math.copysign(math.inf, difference)
            if difference
            else 0.0
        )

    @property
    def gain(self) -> float:
        """The part of their error that ours saves."""
        return 1 - float(self.ours.mean() / self.theirs.mean())

    @property
    def gain_error(self) -> float:
        """The standard error of the gain, to first order."""
        return float(self.ours.mean() / self.theirs.mean()) * math.hypot(
            *(
                one.std(ddof=1) / math.sqrt(len(one)) / one.mean()
                for one in (self.ours, self.theirs)
            )
        )


def run(say: Say, data: Path | None = None) -> Report:
    report = _beside_diffprivlib(say, data)
    pulled: list[pulling.Pulled] = []
    shares: list[pulling.Pulled] = []
    for table in groups(data):
        pulled += pulling.means(table)
        shares += pulling.shares(table)
        say(f"means by group, labels by key: {table.name}")
    served = [one for one in pulled if one.served == "served"]
    free = [one for one in pulled if one.served == "no promise"]
    summaries: list[dict[str, object]] = []
    for what, some in (
        ("means by group", served),
        ("means by group, no promise of single keys", free),
        ("P(label | key)", shares),
    ):
        report.bars += pulling.bars(some, what)
        report.figures[what] = pulling.figures(some)
        summaries += pulling.summary(some, what)
    report.figures["cases within the limit"] = summaries
    for more in (ranks.report(say), embeddings.report(say, data), encodings.report(say, data)):
        report.bars += more.bars
        report.figures |= more.figures
    return report


def _beside_diffprivlib(say: Say, data: Path | None) -> Report:
    try:
        interpreter = environment.python(say)
    except environment.NotReady as reason:
        return Report(bars=[broken(f"diffprivlib: {reason}", 0)])
    asked = tasks(data)
    report = Report()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(1) as beside:
        folder = Path(name)
        theirs = beside.submit(_theirs, folder, asked, interpreter, say)
        found: dict[str, list[Floats] | str] = {}
        scales = {task.name: Scale(task) for task in asked}
        for task in asked:
            found[task.name] = _ours(task, scales[task.name])
            say(f"ours: {task.name}")
        failed = theirs.result()
        compared = []
        for place, task in enumerate(asked):
            errors, handed = found[task.name], folder / f"{place}-theirs.npz"
            if isinstance(errors, str):
                report.bars.append(broken(f"{task.name}: {errors}", 0))
            elif not handed.exists():
                report.bars.append(broken(f"{task.name}: diffprivlib gave nothing: {failed}", 0))
            else:
                compared += _compared(task, scales[task.name], errors, handed)
    report.bars += _bars(compared)
    report.figures |= _figures(compared)
    return report


def _compared(task: Task, scale: Scale, errors: list[Floats], handed: Path) -> list[Compared]:
    exact = scale.exact()
    found = []
    with np.load(handed) as outputs:
        for epsilon, mine in zip(EPSILONS, errors, strict=True):
            settings = [
                np.array([scale.error(one) for one in seeds]) for seeds in outputs[str(epsilon)]
            ]
            best = min(settings, key=lambda one: float(one.mean()))
            found.append(Compared(task=task, epsilon=epsilon, ours=mine, theirs=best, exact=exact))
    return found


def _bars(compared: list[Compared]) -> list[Bar]:
    bars = []
    for one in compared:
        what = f"{one.task.name}, epsilon {one.epsilon}: lead over diffprivlib in standard errors"
        bars.append(at_least(what, one.lead, -STANDARD_ERRORS))
    for method in METHODS:
        gains = [one for one in compared if one.task.method == method]
        if not gains:
            continue
        mean = float(np.mean([one.gain for one in gains]))
        if method == "histogram":
            spread = math.sqrt(sum(one.gain_error**2 for one in gains)) / len(gains)
            bars.append(
                at_least(
                    "histogram: mean part of their error saved", mean, -STANDARD_ERRORS * spread
                )
            )
        else:
            bars.append(at_least(f"{method}: mean part of their error saved", mean, 0.0))
    return bars


def _figures(compared: list[Compared]) -> dict[str, object]:
    rows = [
        {
            "task": one.task.name,
            "epsilon": one.epsilon,
            "ours": f"{one.ours.mean():.4g}±{one.ours.std(ddof=1) / math.sqrt(len(one.ours)):.2g}",
            "diffprivlib": f"{one.theirs.mean():.4g}±{one.theirs.std(ddof=1) / math.sqrt(len(one.theirs)):.2g}",
            "exact": round(one.exact, 4),
            "saved": round(one.gain, 3),
        }
        for one in compared
    ]
    gaps = [
        {
            "task": one.task.name,
            "ours": round(float(one.ours.mean()) - one.exact, 4),
            "diffprivlib": round(float(one.theirs.mean()) - one.exact, 4),
        }
        for one in compared
        if one.epsilon == EPSILONS[-1]
    ]
    return {"errors": rows, "gap to the exact method at epsilon 1": gaps, "errors are": [WORDS]}


def _ours(task: Task, scale: Scale) -> list[Floats] | str:
    """Errors by epsilon and seed, or why there are none."""
    try:
        return [
            np.array([scale.error(one) for one in ours.outputs(task, epsilon, _SEEDS[task.method])])
            for epsilon in EPSILONS
        ]
    except Exception as error:  # One method that fails must not hide the others.
        return f"{type(error).__name__}: {error}"


def _theirs(folder: Path, asked: list[Task], interpreter: Path, say: Say) -> str:
    """Run diffprivlib on all tasks; the reason of a failure, or nothing."""
    jobs = []
    for place, task in enumerate(asked):
        arrays = {
            name: getattr(task, name)
            for name in ("values", "labels", "test_values", "lower", "upper")
        }
        np.savez(folder / f"{place}.npz", **arrays)
        jobs.append(
            {
                "file": str(place),
                "name": task.name,
                "method": task.method,
                "size": task.size,
                "epsilons": EPSILONS,
                "seeds": _SEEDS[task.method],
            }
        )
    (folder / "jobs.json").write_text(json.dumps(jobs))
    with subprocess.Popen(
        [str(interpreter), str(_SCRIPT), str(folder)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        assert process.stderr is not None
        limit = threading.Timer(_SECONDS_AT_MOST, process.kill)
        limit.start()
        last = ""
        for line in process.stderr:
            last = line.strip() or last
            say(last)
        limit.cancel()
    return "" if process.returncode == 0 else f"it ended with {process.returncode}: {last}"
