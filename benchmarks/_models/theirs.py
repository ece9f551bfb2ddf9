"""diffprivlib's linear and logistic regression on a problem, in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks._accuracy import environment
from benchmarks._models.problems import Problem
from benchmarks.bars import Say

__all__ = ["Job", "predictions"]

_SCRIPT = Path(__file__).parent / "diffprivlib_models.py"
# A guard against a fit that does not come back.
_SECONDS_AT_MOST = 3_600


@dataclass(frozen=True)
class Job:
    """One estimator on so many records, for each epsilon and seed. ``penalty`` is C of logistic
    regression.
    """

    kind: Literal["linear", "logistic"]
    records: int
    epsilons: tuple[float, ...]
    seeds: int
    penalty: float = 1.0


def predictions(problem: Problem, jobs: list[Job], say: Say) -> list[NDArray[np.float64]]:
    """For each job (epsilons, seeds, test rows).

    Raises `environment.NotReady` where the environment cannot be made.
    """
    interpreter = environment.python(say)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = problem.matrix(problem.train)
        np.savez(
            folder / "problem.npz",
            rows=rows,
            labels=problem.labels(problem.train),
            test_rows=problem.matrix(problem.test),
            lower=problem.lower,
            upper=problem.upper,
            # Of the longest row that is possible: known from the domains.
            norm=problem.rows.bound,
        )
        asked = [
            {
                "file": "problem",
                "kind": job.kind,
                "records": job.records,
                "epsilons": job.epsilons,
                "seeds": job.seeds,
                "penalty": job.penalty,
            }
            for job in jobs
        ]
        (folder / "jobs.json").write_text(json.dumps(asked))
        done = subprocess.run(
            [str(interpreter), str(_SCRIPT), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_SECONDS_AT_MOST,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise environment.NotReady(f"diffprivlib ended with {done.returncode}: {last}")
        made = []
        for place in range(len(jobs)):
            with np.load(folder / f"{place}-theirs.npz") as outputs:
                made.append(outputs["predicted"])
        return made
