"""Run by the interpreter of ``.venv-diffprivlib``: ``python diffprivlib_models.py FOLDER``. Imports
nothing of ours.

Reads ``jobs.json`` and one npz for each job from the folder, and writes ``<job>-theirs.npz`` with
``predicted`` (epsilons, seeds, test rows) of diffprivlib's LinearRegression or LogisticRegression.
Bounds and norms are given everywhere. Scores are computed by the caller, for both sides alike.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

models: Any = importlib.import_module("diffprivlib.models")


def fitted(job: Any, held: Any, epsilon: float, seed: int) -> Any:
    """Predictions for the test rows."""
    # A data set of its own for each seed: the same rows of the whole as the other side takes.
    rows = np.random.default_rng(seed).permutation(len(held["rows"]))[: job["records"]]
    chosen = np.sort(rows)
    width = held["rows"].shape[1]
    if job["kind"] == "linear":
        model = models.LinearRegression(
            epsilon=epsilon,
            bounds_X=(np.zeros(width), np.ones(width)),
            bounds_y=(float(held["lower"]), float(held["upper"])),
            random_state=seed,
        )
    else:
        model = models.LogisticRegression(
            epsilon=epsilon,
            data_norm=float(held["norm"]),
            C=job["penalty"],
            max_iter=1000,
            random_state=seed,
        )
    model.fit(held["rows"][chosen], held["labels"][chosen])
    return model.predict(held["test_rows"])


def main(folder: Path) -> None:
    """All jobs; progress on stderr."""
    # Bounds and norms are given everywhere; a warning that says they are not would be a mistake of
    # ours.
    privacy_leak = importlib.import_module("diffprivlib.utils").PrivacyLeakWarning
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", privacy_leak)
    for place, job in enumerate(json.loads((folder / "jobs.json").read_text())):
        with np.load(folder / f"{job['file']}.npz") as task:
            held = dict(task)
        predicted = [
            [fitted(job, held, epsilon, seed) for seed in range(job["seeds"])]
            for epsilon in job["epsilons"]
        ]
        # Whole or not there at all.
        made = folder / "made.npz"
        np.savez(made, predicted=np.array(predicted))
        made.rename(folder / f"{place}-theirs.npz")
        print(f"diffprivlib: {job['kind']}, {job['records']} records", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
