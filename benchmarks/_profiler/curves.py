"""A curve through a few levels against the full grid, and closed forms against what is measured.

A profile measures every level by itself, so a profile of four levels is a profile of all ten whose
other six never ran. That is what is compared, run by run: the curve through four of the measured
levels with the curve through all of them, with that of another run, which shares nothing with it,
and with the single levels as they were measured. The last two differ by chance even between two
full grids ("again"). Averaged over runs the curve gives the n of the full grid, and in single runs
it is no further from that average than the full grid's own levels are. Its band must hold the
truth: the n at which 19 of 20 trainings keep the promise.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.problem import Option, Problem, PtkOptions
from allocator.solving.solve import solve
from benchmarks._profiler.problems import KINDS, mean_of, needed, problem
from benchmarks._profiler.ptks import ClosedMean
from benchmarks._profiler.runs import EPSILON, whole
from benchmarks.bars import Bar, at_least, at_most
from profiler.analytic import profile
from profiler.curve import Curve, fit, points_of
from profiler.grid import chosen
from profiler.measuring.terms import ProfileTerms

__all__ = ["closed", "curves"]

GRID = ("0.1", "0.13", "0.17", "0.22", "0.28", "0.36", "0.46", "0.6", "0.77", "1")
CURVE_RUNS = 10
# Of the levels of the grid.
FEW = 4
CLOSED_RUNS = 12
# Where the truth is looked up.
_PLACES = ("0.1", "0.28", "1")
# Half of the budget is what three PTKs share: none can have the highest level.
_CAPACITY = 500
_VARIANCES = (0.01, 0.02, 0.04)

Row = dict[str, Any]
Part = tuple[list[Bar], dict[str, object]]


def curves(pool: Executor) -> Part:
    """Four levels and a curve against ten levels."""
    cases = list(product(KINDS, ("0.05", "0.1")))
    rows: list[Row] = list(pool.map(_curve, cases))
    cells = [ratio for row in rows for ratio in row.pop("cells")]
    trainings = sum(row["trainings"] for row in rows) / sum(row["full_grid"] for row in rows)
    error, own = (
        math.sqrt(float(np.mean([row[name] ** 2 for row in rows])))
        for name in ("error", "full_grid_error")
    )
    single, other, levels = (
        float(np.mean([row[f"within_25%{of}"] for row in rows]))
        for of in ("", "_of_another_run", "_of_single_levels")
    )
    return [
        at_most("DP trainings of the curve over those of the full grid", trainings, 0.5),
        at_least(
            "n of the curve within 25% of the full grid's (share of levels, single runs)",
            single,
            0.9,
        ),
        at_least(
            "n of the curve within 25% of the full grid's of another run (the same)", other, 0.9
        ),
        at_least("n of the curve within 25% of single levels as measured (the same)", levels, 0.85),
        at_least(
            "levels where the curve's n, averaged over runs, is within 25% of the full grid's",
            float(np.mean([0.8 <= one <= 1.25 for one in cells])),
            0.9,
        ),
        at_most(
            "error of the curve's n in one run over that of the full grid's n", error / own, 1.0
        ),
        at_least(
            "levels where the band holds the true n (share, single runs)",
            float(np.mean([row["band_holds_truth"] for row in rows])),
            0.9,
        ),
    ], {"curves": rows}


def _curve(case: tuple[str, str]) -> Row:
    kind, target = case
    least = float(target) / 2
    promised = 2 * float(target)
    terms = ProfileTerms.of(repr(promised), EPSILON, n_max=4096, first=4)
    one = problem(kind, least)
    rng = np.random.default_rng([KINDS.index(kind), 3])
    truth = {
        level: needed(kind, least, promised - least, float(level), share=0.95) for level in _PLACES
    }
    curve, grid, raw = [], [], []
    trainings, held, widths = [0, 0], [], []
    for _ in range(CURVE_RUNS):
        full = whole(one, terms, GRID, len(GRID), rng)
        levels = full.profile.levels
        few = [result for result in full.results if result.level in chosen(levels, FEW)]
        through = fit(points_of(few))
        assert through is not None
        assert full.curve is not None
        trainings[0] += full.trainings
        trainings[1] += sum(result.trainings for result in few)
        grid.append([math.log(full.curve.at(level) or math.nan) for level in levels])
        curve.append([math.log(through.at(level) or math.nan) for level in levels])
        raw.append([math.log(result.estimate or math.nan) for result in full.results])
        for level, true in truth.items():
            low, high = _band(through, Fraction(level))
            held.append(low <= true <= high)
            widths.append(high / max(low, 1))
    logs = np.array(curve) - np.array(grid)
    middle = np.nanmean(raw, axis=0)
    return {
        "problem": kind,
        "target": target,
        "full_grid": trainings[0],
        "trainings": trainings[1],
        "within_25%": _within(logs),
        # As they were measured, without a curve.
        "within_25%_of_single_levels": _within(np.array(curve) - np.array(raw)),
        "single_levels_again_within_25%": _within(np.array(raw) - np.roll(raw, 1, axis=0)),
        "within_25%_of_another_run": _within(np.array(curve) - np.roll(grid, 1, axis=0)),
        "full_grid_again_within_25%": _within(np.array(grid) - np.roll(grid, 1, axis=0)),
        "error": round(float(np.sqrt(np.nanmean((np.array(curve) - middle) ** 2))), 3),
        "full_grid_error": round(float(np.sqrt(np.nanmean((np.array(raw) - middle) ** 2))), 3),
        "band_holds_truth": round(float(np.mean(held)), 2),
        "band_factor": round(float(np.median(widths)), 1),
        "cells": list(np.exp(logs.mean(axis=0))),
    }


def _within(logs: NDArray[np.float64]) -> float:
    return round(float(np.mean(np.abs(logs) <= math.log(1.25))), 2)


def _band(through: Curve, level: Fraction) -> tuple[float, float]:
    band = through.band(level)
    assert band is not None
    return band


def closed(_pool: Executor) -> Part:
    """Closed forms of three means against measured profiles: level by level, and what the allocator
    makes of them.
    """
    rng = np.random.default_rng(5)
    terms = ProfileTerms.of("0.1", EPSILON, n_max=1024, first=4)
    told = {}
    for variance in _VARIANCES:
        closed = ClosedMean(mean=mean_of(variance), variance=variance)
        found = profile(closed, terms.promised, GRID, terms.delta)
        told[f"mean {variance:g}"] = [int(one or 0) for one in found.samples]
    analytic = _plan(told)
    inside, plans, ratios = [], [], []
    for _ in range(CLOSED_RUNS):
        ends: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for variance, (name, samples) in zip(_VARIANCES, told.items(), strict=True):
            measured = whole(problem("mean", variance), terms, GRID, FEW, rng)
            assert measured.curve is not None
            bands = [_band(measured.curve, level) for level in measured.profile.levels]
            inside += [low <= one <= high for (low, high), one in zip(bands, samples, strict=True)]
            ends[0][name] = [max(1, math.floor(low)) for low, _ in bands]
            ends[1][name] = [math.ceil(high) for _, high in bands]
        low, high = _plan(ends[0]), _plan(ends[1])
        plans.append(low <= analytic <= high)
        ratios.append(high / low)
    return [
        at_least(
            "closed form inside the measured band (share of levels)", float(np.mean(inside)), 0.9
        ),
        at_least(
            "allocated samples with closed forms between those of the measured bands (share of "
            "runs)",
            float(np.mean(plans)),
            0.9,
        ),
    ], {
        "allocated_samples_with_closed_forms": analytic,
        "factor_between_plans_of_the_band": round(float(np.median(ratios)), 1),
    }


def _plan(samples: dict[str, list[int]]) -> int:
    """Samples of the best plan for PTKs that need so many at each level of the grid."""
    ptks = tuple(
        PtkOptions(
            name,
            tuple(
                Option(level, round(1000 * float(level)), n)
                for level, n in zip(GRID, needs, strict=True)
            ),
        )
        for name, needs in samples.items()
    )
    found = solve(Problem(_CAPACITY, None, ptks)).total_samples
    assert found is not None
    return found
