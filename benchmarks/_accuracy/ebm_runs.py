"""Run by the interpreter of ``.venv-interpret``: ``python ebm_runs.py FOLDER``. Imports nothing of
ours.

Reads ``jobs.json`` and one npz for each task from the folder, and writes ``<task>-theirs.npz``: for
each epsilon an array (seeds, test rows) of probabilities of interpret's
`DPExplainableBoostingClassifier`, with its default settings and the public bounds of numbers.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path) -> None:
    """All jobs; progress on stderr."""
    privacy: Any = importlib.import_module("interpret.privacy")
    warnings.simplefilter("ignore")
    for job in json.loads((folder / "jobs.json").read_text()):
        with np.load(folder / f"{job['file']}.npz") as held:
            task = dict(held)
        given = {"feature_types": job["types"], "delta": job["delta"]}
        given["privacy_bounds"] = {int(place): tuple(one) for place, one in job["bounds"].items()}
        made: dict[str, Any] = {}
        for epsilon in job["epsilons"]:
            seeds = []
            for _ in range(job["seeds"]):
                # Without a random_state its noise is that of the system, as with privacy.
                model = privacy.DPExplainableBoostingClassifier(epsilon=epsilon, n_jobs=1, **given)
                model.fit(task["values"], task["labels"])
                seeds.append(model.predict_proba(task["test_values"])[:, 1])
            made[str(epsilon)] = np.stack(seeds)
        # Whole or not there at all.
        whole = folder / "made.npz"
        np.savez(whole, **made)
        whole.rename(folder / f"{job['file']}-theirs.npz")
        print(f"interpret: {job['name']}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
