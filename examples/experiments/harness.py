"""One form for all experiments: error of a downstream model against the share of the target's data,
one line for each arm.

**Arms.** *No PTK*: the target's own columns. *Non-private PTK*: the same and the features of PTKs
trained without noise. *PTK*: the same and the features of PTKs trained with epsilon in total (an
experiment with several PTKs splits it among them).

**Seeds.** Each seed draws its own order of the target's rows, and trains every PTK anew with fresh
noise. A fraction is a prefix of that order: more data is more of the same. All arms of a seed see
the same rows and the same test rows, so they are compared pair by pair. Error bars are 95%
intervals (Student) of the mean over seeds; where all seeds share the test rows, they do not cover
the choice of those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from examples.plots import Axis, Point, Series, line_chart

__all__ = [
    "EPSILONS",
    "NO_PTK",
    "NP_PTK",
    "Arm",
    "Experiment",
    "Outcome",
    "Scene",
    "arm_of",
    "compare",
]

NO_PTK, NP_PTK = "No PTK", "Non-private PTK"
EPSILONS = (0.1, 0.5, 1.0)

Floats = NDArray[np.float64]
# Features of the target's training rows and of the test rows.
Arm = tuple[NDArray[Any], NDArray[Any]]
# Fit on these rows and answers, predict for these rows.
Learn = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]
Loss = Callable[[NDArray[Any], NDArray[Any]], float]
Say = Callable[[str], None]


def arm_of(epsilon: float) -> str:
    """The name of the arm with this budget."""
    return f"PTK, epsilon {epsilon:g}"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What one seed sees: arms by name, and the answers of the training and the test rows."""

    arms: Mapping[str, Arm]
    train_answers: NDArray[Any]
    test_answers: NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The words of an experiment, how it learns and what it counts as an error."""

    name: str
    title: str
    error: str
    learn: Learn
    loss: Loss
    fractions: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Errors by arm and fraction, one for each seed."""

    experiment: Experiment
    rows: int
    errors: Mapping[tuple[str, float], tuple[float, ...]]

    @property
    def arms(self) -> tuple[str, ...]:
        """In the order they were given."""
        return tuple(dict.fromkeys(arm for arm, _ in self.errors))

    @property
    def fractions(self) -> tuple[float, ...]:
        """Rising."""
        return tuple(sorted({fraction for _, fraction in self.errors}))

    def mean(self, arm: str, fraction: float) -> tuple[float, float]:
        """The mean error and half its 95% interval."""
        return _mean(np.array(self.errors[arm, fraction]))

    def gain(self, arm: str, fraction: float) -> tuple[float, float]:
        """The part of the error without PTKs that the arm saves, pair by pair, and half its 95%
        interval.
        """
        return _mean(
            1 - np.array(self.errors[arm, fraction]) / np.array(self.errors[NO_PTK, fraction])
        )

    def table(self) -> str:
        """Markdown: errors, and gains of the last arm."""
        last = self.arms[-1]
        heads = [
            "target's data",
            "rows",
            *self.arms,
            f"saved by {last}",
        ]
        lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for fraction in self.fractions:
            cells = [f"{100 * fraction:g}%", f"{_rows(self.rows, fraction):,}"]
            cells += ["{:.4f} ± {:.4f}".format(*self.mean(arm, fraction)) for arm in self.arms]
            cells.append("{:+.1%} ± {:.1%}".format(*self.gain(last, fraction)))
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def picture(self) -> str:
        """The chart, as SVG."""
        series = [
            Series(
                arm,
                tuple(Point(100 * one, *self.mean(arm, one)) for one in self.fractions),
            )
            for arm in self.arms
        ]
        described = "; ".join(
            f"at {100 * one:g}% of the target's data, {self.arms[-1]} saves "
            f"{self.gain(self.arms[-1], one)[0]:.1%} of the error"
            for one in self.fractions
        )
        x = Axis(
            words="share of the target's data, %",
            log=True,
            ticks=tuple(100 * one for one in self.fractions),
        )
        y = Axis(words=f"{self.experiment.error} (lower is better)", form="{:.4g}".format)
        return line_chart(self.experiment.title, described, x, y, series)

    def write(self, folder: Path) -> None:
        """``<name>.svg``, ``<name>.md`` and ``<name>.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        name = self.experiment.name
        (folder / f"{name}.svg").write_text(self.picture())
        (folder / f"{name}.md").write_text(self.table() + "\n")
        body = [
            {"arm": arm, "fraction": fraction, "errors": errors}
            for (arm, fraction), errors in self.errors.items()
        ]
        (folder / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")


def compare(
    experiment: Experiment,
    scene: Callable[[int], Scene],
    *,
    seeds: int,
    say: Say,
    fast: bool = False,
) -> Outcome:
    """All seeds, fractions and arms; only the two largest fractions in a rehearsal."""
    errors: dict[tuple[str, float], list[float]] = {}
    rows = 0
    for seed in range(seeds):
        seen = scene(seed)
        rows = len(seen.train_answers)
        order = np.random.default_rng(1_000 + seed).permutation(rows)
        # Models are small: more threads would only wait for each other.
        with threadpool_limits(1):
            for fraction in experiment.fractions[-2:] if fast else experiment.fractions:
                chosen = order[: _rows(rows, fraction)]
                for arm, (train, test) in seen.arms.items():
                    predicted = experiment.learn(train[chosen], seen.train_answers[chosen], test)
                    errors.setdefault((arm, fraction), []).append(
                        experiment.loss(predicted, seen.test_answers)
                    )
        say(f"{experiment.name}: seed {seed + 1} of {seeds}")
    return Outcome(
        experiment=experiment, rows=rows, errors={key: tuple(each) for key, each in errors.items()}
    )


def _rows(rows: int, fraction: float) -> int:
    return max(2, round(fraction * rows))


def _mean(values: Floats) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), 0.0
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(half)
