"""The DP profiler on problems whose answers are known: does it find the n that is needed, and does
it keep its word?

* planned n against the truth; "R* > target" never when it is not so, and found when R* is above
  twice the target; the true risk of witnesses and of states trained as planned (`_profiler.accuracy`);
* the curve through a few levels against the full grid; closed forms against measured ones
  (`_profiler.curves`);
* the shapes of Fig. 6, and how long a profile of each kind of PTK takes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks._profiler import kinds
from benchmarks._profiler.accuracy import accuracy, reachable, unreachable
from benchmarks._profiler.curves import closed, curves
from benchmarks.bars import Bar, Report, Say, at_least, at_most
from examples.profiles import SHAPES
from examples.ptks.profile import CASES
from profiler.research import research_profile

Row = dict[str, Any]


def run(say: Say) -> Report:
    report = Report()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for part in (accuracy, reachable, unreachable, curves, closed, _shapes, _times):
            say(part.__name__.strip("_"))
            bars, figures = part(pool)
            report.bars += bars
            report.figures |= figures
    return report


def _shapes(_pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    """At epsilon 1 embeddings still gain at the end, clusters and statistics have settled; few
    samples give any clusters.
    """
    rows = {}
    for kind in SHAPES:
        case = CASES[kind]()
        table = case.rows(SHAPES[kind][-1] * 3 // 2 + 3, np.random.default_rng(1))
        delta = "1e-6" if case.ptk.tags.needs_delta else 0
        rows[kind] = research_profile(
            case.ptk, table, samples=SHAPES[kind], levels=("0.1", "1"), delta=delta, repeats=5
        )
    # What a doubling changes at the end.
    last = {
        kind: (found[-1].loss / found[-2].loss)
        ** (1 / math.log2(found[-1].samples / found[-2].samples))
        for kind, found in rows.items()
    }
    spread = rows["clusters"][0].spread / rows["clusters"][0].loss
    seen = [
        last["embeddings"] < 0.96,
        last["clusters"] > 0.96 and spread > 0.2,
        last["statistics"] > 0.97,
    ]
    figures = {f"{kind}_last_doubling": round(one, 3) for kind, one in last.items()} | {
        "clusters_spread": round(spread, 2)
    }
    return [at_least("shapes of Fig. 6 that come out, of 3", sum(seen), 3)], {"shapes": [figures]}


def _times(_pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    rows = list(_timed(kinds.ROWS, kinds.cases()))
    return [at_most(f"minutes to profile {row['kind']}", row["minutes"], 5) for row in rows], {
        "kinds": rows
    }


def _timed(rows: int, cases: Iterable[tuple[str, Callable[[int], Any]]]) -> Iterable[Row]:
    for kind, profile in cases:
        begin = time.process_time()
        found = profile(rows)
        yield {
            "kind": kind,
            "records": rows,
            "status": found.status,
            "trainings": found.trainings,
            "samples": [one for one in found.profile.samples if one is not None],
            "minutes": round((time.process_time() - begin) / 60, 3),
        }
