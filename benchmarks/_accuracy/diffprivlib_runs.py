"""Run by the interpreter of ``.venv-diffprivlib``: ``python diffprivlib_runs.py FOLDER``. Imports
nothing of ours.

Reads ``jobs.json`` and one npz for each task from the folder, and writes ``<task>-theirs.npz``: for
each epsilon an array (settings, seeds, ...) of what diffprivlib gives: predicted classes, cluster
centres, components, histograms. Scores are computed by the caller, for both sides alike.

Where diffprivlib leaves a choice, all settings listed here are run, and the caller takes the one
that is best for it.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

models: Any = importlib.import_module("diffprivlib.models")
tools: Any = importlib.import_module("diffprivlib.tools")

# Trees and depth; the first is its default.
FORESTS = ((10, 5), (10, 8), (1, 5))


def forest(task: Any, size: int, epsilon: float, seed: int) -> list[Any]:
    """Classes predicted for the test rows."""
    bounds = (task["lower"], task["upper"])
    found = []
    for trees, depth in FORESTS:
        model = models.RandomForestClassifier(
            trees,
            max_depth=depth,
            epsilon=epsilon,
            bounds=bounds,
            classes=np.arange(size),
            random_state=seed,
        )
        model.fit(task["values"], task["labels"])
        found.append(model.predict(task["test_values"]).astype(np.uint8))
    return found


def k_means(task: Any, size: int, epsilon: float, seed: int) -> list[Any]:
    """Centres."""
    model = models.KMeans(
        size, epsilon=epsilon, bounds=(task["lower"], task["upper"]), random_state=seed
    )
    return [model.fit(task["values"]).cluster_centers_]


def pca(task: Any, size: int, epsilon: float, seed: int) -> list[Any]:
    """Components: with half the budget on the mean (its default), and with data centred at the
    middle of the bounds.
    """
    norm = float(np.linalg.norm((task["upper"] - task["lower"]) / 2))
    found = []
    for centred in (False, True):
        middle = (task["upper"] + task["lower"]) / 2
        model = models.PCA(
            size,
            epsilon=epsilon,
            data_norm=norm,
            centered=centred,
            bounds=(task["lower"] - middle, task["upper"] - middle),
            random_state=seed,
        )
        model.fit(task["values"] - middle)
        found.append(model.components_)
    return found


def histogram(task: Any, size: int, epsilon: float, seed: int) -> list[Any]:
    """Counts."""
    ends = (float(task["lower"][0]), float(task["upper"][0]))
    return [
        tools.histogram(
            task["values"][:, 0], epsilon=epsilon, bins=size, range=ends, random_state=seed
        )[0]
    ]


METHODS: dict[str, Callable[[Any, int, float, int], list[Any]]] = {
    "forest": forest,
    "k-means": k_means,
    "PCA": pca,
    "histogram": histogram,
}


def main(folder: Path) -> None:
    """All jobs; progress on stderr."""
    # Bounds and norms are given everywhere; a warning that says they are not would be a mistake of
    # ours.
    privacy_leak = importlib.import_module("diffprivlib.utils").PrivacyLeakWarning
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", privacy_leak)
    for job in json.loads((folder / "jobs.json").read_text()):
        with np.load(folder / f"{job['file']}.npz") as task:
            held = dict(task)
        run = METHODS[job["method"]]
        found: dict[str, Any] = {}
        for epsilon in job["epsilons"]:
            seeds = [run(held, job["size"], epsilon, seed) for seed in range(job["seeds"])]
            found[str(epsilon)] = np.stack(
                [np.stack(setting) for setting in zip(*seeds, strict=True)]
            )
        # Whole or not there at all.
        made = folder / "made.npz"
        np.savez(made, **found)
        made.rename(folder / f"{job['file']}-theirs.npz")
        print(f"diffprivlib: {job['name']}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
