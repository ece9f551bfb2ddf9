"""The engine killed 200 times: at every journalled step of both windows, and at random moments."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from benchmarks.bars import Report, Say, at_least, at_most
from tests.engine.test_faults import POINTS, finish, spawn

RUNS = 200


def run(say: Say) -> Report:
    lives: list[tuple[tuple[str, str] | None, int, float | None]] = [
        (p, o, None) for p in POINTS for o in (1, 2)
    ]
    rng = random.Random(1)
    lives += [(None, 1, rng.uniform(0.02, 1.5)) for _ in range(RUNS - len(lives))]
    failures = []
    for number, (point, occurrence, kill_after) in enumerate(lives):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store"
            try:
                finish(path, spawn(path, point, occurrence, kill_after))
            except Exception as error:
                failures.append(
                    f"{point} {occurrence} {kill_after}: {type(error).__name__}: {error}"[:300]
                )
        if number % 20 == 19:
            say(f"{number + 1} runs, {len(failures)} failures")
    return Report(
        bars=[
            at_least("runs in which the engine was killed", len(lives), RUNS),
            at_most(
                "runs that lost a record, doubled a charge, showed half a state or kept raw data",
                len(failures),
                0,
            ),
        ],
        figures={
            "journalled points": [f"{step}:{moment}" for step, moment in POINTS],
            "failures": failures[:10],
        },
    )
