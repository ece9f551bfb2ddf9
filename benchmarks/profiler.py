"""The DP profiler on problems whose answers are known: does it find the n that is needed, and does it keep its word?

* n within a factor of 4 of the truth (the least n at which 9 of 10 DP trainings have a risk of at most R* + target);
* "R* > target" never when it is not so, and found when R* is above twice the target;
* the true risk of witnesses; the curve through a few levels against the full grid; closed forms against measured ones;
* the shapes of Fig. 6, and how long a profile of each kind of PTK takes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np

from benchmarks._profiler import kinds
from benchmarks._profiler.problems import KINDS, needed, problem
from benchmarks._profiler.ptks import ClosedMean, Mean
from benchmarks._profiler.runs import EPSILON, one_level, whole
from benchmarks.bars import Bar, Report, Say, at_least, at_most
from examples.profiles import SHAPES
from examples.ptks.profile import CASES
from profiler.measure import REACHED, RISK_ABOVE_TARGET
from profiler.research import research_profile
from profiler.schedule import Terms

TARGETS = ("0.05", "0.1", "0.2")
LEVELS = ("0.1", "0.3", "1")
GRID = ("0.1", "0.13", "0.17", "0.22", "0.28", "0.36", "0.46", "0.6", "0.77", "1")
# Minimal risks as parts of the target.
PARTS = (0.5, 1.0)
RUNS = 20
REACHABLE_RUNS = 2000
UNREACHABLE_RUNS = 400
CURVE_RUNS = 12
_BATCH = 10
# The lower test of a target of 0.05 needs this many samples, with noise of an eighth of the budget.
_ENOUGH = 16_384

Row = dict[str, Any]


def run(say: Say) -> Report:
    report = Report()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for part in (_accuracy, _reachable, _unreachable, _curves, _closed, _shapes, _times):
            say(part.__name__.strip("_"))
            bars, figures = part(pool)
            report.bars += bars
            report.figures |= figures
    return report


def _accuracy(pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    cases = list(product(KINDS, TARGETS, LEVELS, PARTS))
    rows: list[Row] = list(pool.map(_case, cases))
    found = [ratio for row in rows for ratio in row.pop("ratios")]
    risks = [risk for row in rows for risk in row.pop("risks")]
    within = [0.25 <= one <= 4 for one in found]
    runs = len(cases) * RUNS
    return [
        at_least("returned n within a factor of 4 of the true n (share of runs)", sum(within) / runs, 0.9),
        at_least("witness with true risk at most 2 target (share of runs)", float(np.mean(np.array(risks) <= 1)), 0.95),
    ], {"accuracy": rows, "largest_risk_of_a_witness_over_2_target": round(max(risks), 3)}


def _case(case: tuple[str, str, str, float]) -> Row:
    kind, target, level, part = case
    least = part * float(target)
    true = needed(kind, least, float(target), float(level))
    one = problem(kind, least)
    rng = np.random.default_rng(
        [KINDS.index(kind), round(float(target) * 100), round(float(level) * 100), round(part * 10)]
    )
    outcomes = [one_level(one, target, level, rng) for _ in range(RUNS)]
    ratios = [found.result.samples / true for found in outcomes if found.result.samples is not None]
    return {
        "problem": kind,
        "target": target,
        "epsilon": level,
        "least_risk": least,
        "true_n": true,
        "median_n": float(np.median([found.result.samples or math.nan for found in outcomes])),
        "within_4": round(float(np.mean([0.25 <= one <= 4 for one in ratios])), 2) if ratios else 0.0,
        "reached": sum(found.result.status == REACHED for found in outcomes),
        "ratios": ratios,
        "risks": [found.risk / (2 * float(target)) for found in outcomes if found.risk is not None],
    }


def _statuses(case: tuple[str, float, str, str, int]) -> list[str]:
    kind, part, target, level, seed = case
    one = problem(kind, part * float(target))
    rng = np.random.default_rng([seed, 7])
    n_max = _ENOUGH if part > 1 else 4096
    return [one_level(one, target, level, rng, n_max=n_max).result.status for _ in range(_BATCH)]


def _reachable(pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    """R* is the target exactly: the hardest case, for any less is further from a false finding."""
    found = _spread(pool, 1.0, TARGETS, REACHABLE_RUNS)
    wrong = sum(one == RISK_ABOVE_TARGET for one in found)
    return [at_most(f"'R* > target' although R* <= target (of {len(found)} runs)", wrong, 0)], {
        "reached_when_least_risk_is_target": round(sum(one == REACHED for one in found) / len(found), 4)
    }


def _unreachable(pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    """Not at 0.2: a least risk of 0.42 is above what half of these problems can have."""
    found = _spread(pool, 2.1, ("0.05", "0.1"), UNREACHABLE_RUNS)
    right = sum(one == RISK_ABOVE_TARGET for one in found) / len(found)
    return [at_least("'R* > target' found when R* = 2.1 target (share of runs)", right, 0.95)], {}


def _spread(pool: Executor, part: float, targets: Sequence[str], runs: int) -> list[str]:
    cases = list(product(KINDS, targets, LEVELS))
    rounds = math.ceil(runs / len(cases) / _BATCH)
    wanted = [(kind, part, target, level, seed) for kind, target, level in cases for seed in range(rounds)]
    return [one for batch in pool.map(_statuses, wanted) for one in batch]


def _curves(pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    cases = list(product(KINDS, ("0.05", "0.1")))
    rows: list[Row] = list(pool.map(_curve, cases))
    cells = [ratio for row in rows for ratio in row.pop("cells")]
    trainings = sum(row["trainings"] for row in rows) / sum(row["full_grid"] for row in rows)
    return [
        at_most("DP trainings of the curve over those of the full grid", trainings, 0.5),
        at_least(
            "levels where the curve's n, averaged over runs, is within 25% of the full grid's",
            float(np.mean([0.8 <= one <= 1.25 for one in cells])),
            0.9,
        ),
    ], {"curves": rows}


def _curve(case: tuple[str, str]) -> Row:
    kind, target = case
    terms = Terms.of(target, EPSILON, n_max=4096)
    one = problem(kind, float(target) / 2)
    rng = np.random.default_rng([KINDS.index(kind), 3])
    logs_of: tuple[list[list[float]], list[list[float]]] = ([], [])
    trainings = [0, 0]
    for _ in range(CURVE_RUNS):
        pair = [whole(one, terms, GRID, count, rng) for count in (len(GRID), 4)]
        for place, found in enumerate(pair):
            trainings[place] += found.trainings
            assert found.curve is not None
            logs_of[place].append([math.log(found.curve.at(level) or math.nan) for level in found.profile.levels])
    logs = np.array(logs_of[1]) - np.array(logs_of[0])
    return {
        "problem": kind,
        "target": target,
        "full_grid": trainings[0],
        "trainings": trainings[1],
        "single_runs_within_25%": round(float(np.mean(np.abs(logs) <= math.log(1.25))), 2),
        "cells": list(np.exp(logs.mean(axis=0))),
    }


def _closed(_pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    """The closed form of a mean against what is measured: inside the band at every level."""
    least = 0.02
    one = problem("mean", least)
    ptk = ClosedMean(variance=least)
    assert isinstance(one.ptk, Mean)
    # The closed form promises 0.1; the measured profile does with a target of half that.
    told = ptk.analytic_profile(0.1, GRID)
    rng = np.random.default_rng(5)
    inside, total = 0, 0
    for _ in range(10):
        found = whole(one, Terms.of("0.1", EPSILON, promise="tau", n_max=4096), GRID, 4, rng)
        assert found.curve is not None
        for level, samples in zip(found.profile.levels, told, strict=True):
            band = found.curve.band(level)
            assert band is not None
            assert samples is not None
            inside += band[0] / 2 <= samples <= band[1] * 2
            total += 1
    return [
        at_least("closed form within a factor of 2 of the measured band (share of levels)", inside / total, 0.9)
    ], {}


def _shapes(_pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    """At epsilon 1 embeddings still gain at the end, clusters and statistics have settled; few samples give any clusters."""
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
        kind: (found[-1].loss / found[-2].loss) ** (1 / math.log2(found[-1].samples / found[-2].samples))
        for kind, found in rows.items()
    }
    spread = rows["clusters"][0].spread / rows["clusters"][0].loss
    seen = [last["embeddings"] < 0.96, last["clusters"] > 0.96 and spread > 0.2, last["statistics"] > 0.97]
    figures = {f"{kind}_last_doubling": round(one, 3) for kind, one in last.items()} | {
        "clusters_spread": round(spread, 2)
    }
    return [at_least("shapes of Fig. 6 that come out, of 3", sum(seen), 3)], {"shapes": [figures]}


def _times(_pool: Executor) -> tuple[list[Bar], dict[str, object]]:
    rows = list(_timed(kinds.ROWS, kinds.cases()))
    return [at_most(f"minutes to profile {row['kind']}", row["minutes"], 5) for row in rows], {"kinds": rows}


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
