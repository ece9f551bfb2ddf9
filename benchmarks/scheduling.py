"""Who gets which block: policies against certified bounds, and the optimum against the clock.

*Online, single blocks*: 50 blocks, 2,000 queries, every family under the default and, beside it,
the rules of the literature; value over certified bound, mean over seeds. *Never below the theorem*:
small instances with small costs, adversarial orders among them. *Offline*: gaps of the optimum
within seconds. *Windows*: the default against the optimum of a workload of mice and elephants and
against the bound of one with Renyi curves. *Decisions*: the median at 10,000 live blocks.
"""

from __future__ import annotations

import math
import time
from statistics import mean, median
from typing import Any

import numpy as np

from allocator.scheduling.forecasting.guard import guaranteed
from allocator.scheduling.online.replay import replay
from allocator.scheduling.policies.names import DEFAULT, POLICIES
from allocator.scheduling.policies.phi import competitive_ratio
from allocator.scheduling.problem.singles import Singles
from allocator.scheduling.solve import read, solve
from benchmarks._scheduling.families import drawn
from benchmarks._scheduling.traces import curves, mice_and_elephants
from benchmarks.bars import Report, Say, at_least, at_most

__all__ = ["run"]

_ONLINE = {
    "uniform": 0.95,
    "low rank": 0.95,
    "mixed": 0.95,
    "heavy": 0.92,
    "drift": 0.90,
    "rising": 0.90,
    "falling": 0.90,
    "recency": 0.90,
    "increasing": 0.34,
    "steps": 0.34,
}
_BESIDE = ("random", "streaming", "threshold", "phi", "learned", DEFAULT)


def run(say: Say, *, sample: bool = False) -> Report:
    """All parts; ``sample``: one seed, fewer small instances."""
    report = Report()
    seeds = range(1, 2 if sample else 6)
    _online(report, say, seeds)
    _theorems(report, say, 200 if sample else 10_000)
    _offline(report, say, sample=sample)
    _windows(report, say, seeds, 4_000 if sample else 60_000)
    _decisions(report, say)
    return report


def _online(report: Report, say: Say, seeds: range) -> None:
    rows: list[dict[str, Any]] = []
    for family, least in _ONLINE.items():
        say(f"online: {family}")
        shares: dict[str, list[float]] = {name: [] for name in _BESIDE}
        for seed in seeds:
            problem = Singles.from_json(drawn(family, seed, load=1.5))
            bound = 0
            for name in reversed(_BESIDE):
                if not bound:
                    answer = solve(
                        problem, policy=name, clock=time.monotonic, time_limit_seconds=10
                    )
                    bound, value = answer.upper_bound, answer.value
                else:
                    done = replay(problem, POLICIES[name](problem.outlook, seed))
                    value = sum(int(problem.significance[i, j]) for i, j in done.pairs)
                shares[name].append(value / bound)
        rows.append(
            {"family": family, **{name: round(mean(all_), 3) for name, all_ in shares.items()}}
        )
        report.bars.append(
            at_least(f"{family}: value / certified bound, {DEFAULT}", mean(shares[DEFAULT]), least)
        )
    report.figures["online"] = rows


def _small(seed: int) -> Singles:
    rng = np.random.default_rng([seed, 99])
    m, n = int(rng.integers(1, 4)), int(rng.integers(5, 60))
    cost = rng.integers(1, 6, n)
    ratio = 100 ** rng.random(n)
    ratio = np.sort(ratio) if seed % 2 else ratio
    worth = np.maximum(1, np.rint(ratio * cost * rng.uniform(0.5, 1, (m, n)) * 10))
    return Singles(
        tuple(range(m)),
        tuple(range(n)),
        rng.integers(100, 121, m),
        np.zeros(m, dtype=np.int64),
        cost,
        rng.integers(1, 3, n),
        worth.astype(np.int64),
    )


def _theorems(report: Report, say: Say, count: int) -> None:
    say(f"theorems: {count} small instances")
    broken = {DEFAULT: 0, "phi": 0}
    beyond = 0
    for seed in range(count):
        problem = _small(seed)
        outlook = problem.outlook
        if not outlook.most_ratio or not outlook.least_ratio:
            continue
        spread = math.log(outlook.most_ratio / outlook.least_ratio)
        most = solve(problem, policy="fcfs", clock=time.monotonic).upper_bound
        for name in broken:
            done = replay(problem, POLICIES[name](outlook, 0))
            value = sum(int(problem.significance[i, j]) for i, j in done.pairs)
            factor = competitive_ratio(spread) if name == "phi" else guaranteed(spread)
            broken[name] += value * factor < most
            beyond += name == DEFAULT and value * competitive_ratio(spread) < most
    for name, times in broken.items():
        report.bars.append(at_most(f"{name}: small instances below its theorem", times, 0))
    report.bars.append(at_most(f"{DEFAULT}: small instances below the theorem of phi", beyond, 0))


def _large(blocks: int, queries: int, seed: int) -> Singles:
    rng = np.random.default_rng([seed, 98])
    cost = rng.integers(100, 601, queries)
    limit = np.maximum(1, rng.poisson(2000 * blocks / (queries * cost.mean()), queries))
    return Singles(
        tuple(range(blocks)),
        tuple(range(queries)),
        np.full(blocks, 1000),
        np.zeros(blocks, dtype=np.int64),
        cost,
        limit,
        rng.integers(1, 1000, (blocks, queries)),
    )


def _cheap(blocks: int, queries: int) -> Singles:
    return Singles.from_json(drawn("uniform", 1, blocks=blocks, queries=queries, load=2))


def _offline(report: Report, say: Say, *, sample: bool) -> None:
    cases = [
        ("8 x 12, large costs", _large(8, 12, 1), 10, 0.0),
        ("100 x 200, large costs", _large(100, 200, 1), 10, 0.001),
        ("200 x 10,000, small costs", _cheap(200, 10_000), 10, 0.001),
    ]
    if not sample:
        cases += [
            ("1,000 x 2,000, large costs", _large(1000, 2000, 1), 60, 0.01),
            ("1,000 x 2,000, small costs", _cheap(1000, 2000), 60, 0.01),
        ]
    rows = []
    for name, problem, limit, most in cases:
        say(f"offline: {name}")
        answer = solve(problem, policy="optimal", clock=time.monotonic, time_limit_seconds=limit)
        report.bars.append(at_most(f"{name}: gap within {limit} s", answer.gap, most))
        report.bars.append(at_most(f"{name}: seconds", answer.seconds, 0.1 if most == 0 else limit))
        rows.append({"case": name, "gap": answer.gap, "seconds": round(answer.seconds, 3)})
    report.figures["offline"] = rows


def _windows(report: Report, say: Say, seeds: range, tasks: int) -> None:
    rows: list[dict[str, Any]] = []
    shares = []
    for seed in seeds:
        say(f"windows: mice and elephants, seed {seed}")
        problem = read(mice_and_elephants(seed))
        best = solve(problem, policy="optimal", clock=time.monotonic, time_limit_seconds=30)
        row: dict[str, Any] = {"workload": "mice and elephants", "optimal": best.value}
        for name in ("fcfs", "dpf", "dpack", "rolling"):
            row[name] = solve(problem, policy=name, clock=time.monotonic).value
        shares.append(row["rolling"] / best.value)
        rows.append(row)
    report.bars.append(at_least("mice and elephants: rolling / optimum", mean(shares), 0.99))
    say("windows: curves")
    answer = solve(read(curves(1, tasks=tasks)), clock=time.monotonic, time_limit_seconds=60)
    rows.append({"workload": "curves", "bound": answer.upper_bound, "rolling": answer.value})
    report.bars.append(
        at_least("curves: rolling / certified bound", answer.value / answer.upper_bound, 0.99)
    )
    report.figures["windows"] = rows


def _decisions(report: Report, say: Say) -> None:
    say("decisions at 10,000 live blocks")
    problem = Singles.from_json(drawn("uniform", 1, blocks=10_000, queries=300, load=2))
    rows = []
    for name in ("fcfs", "threshold", "phi", DEFAULT):
        done = replay(problem, POLICIES[name](problem.outlook, 0), clock=time.perf_counter)
        each = 1000 * median(done.seconds)
        rows.append({"policy": name, "median_ms": round(each, 3)})
        report.bars.append(at_most(f"{name}: median ms per decision, 10,000 blocks", each, 1.0))
    report.figures["decisions"] = rows
