"""Runs of the profiler on synthetic problems, one at a time: what came out, and what was true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks._profiler.problems import Problem
from profiler.grid import chosen
from profiler.measuring.bench import MemoryBench
from profiler.measuring.results import LevelResult
from profiler.measuring.schedule import schedule
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import MeasuredProfile, measured_profile
from ptklib.privacy.amounts import epsilon_exact

__all__ = ["Outcome", "one_level", "whole"]

EPSILON = 1
# What passes and what is charged for it do not depend on how many states are read: few where the
# estimate is not looked at.
_FEW_STATES = 6


@dataclass(frozen=True)
class Outcome:
    """One level of one run, and the true risk of its witness."""

    result: LevelResult
    risk: float | None


def one_level(
    problem: Problem, target: str, level: str, rng: np.random.Generator, *, n_max: int = 4096
) -> Outcome:
    """Profile one level on as many records as its schedule asks for, more or less: the real number
    is random.
    """
    terms = ProfileTerms.of(target, EPSILON, n_max=n_max, states=_FEW_STATES, first=1)
    needed = schedule(problem.ptk, terms, [level], 1 << 40).levels[0].needed_records
    found = measured_profile(problem.ptk, terms, [level], _bench(problem, needed, rng), needed)
    result = found.results[0]
    return Outcome(result, None if result.state is None else problem.risk(result.state))


def whole(
    problem: Problem,
    terms: ProfileTerms,
    levels: Sequence[str],
    count: int,
    rng: np.random.Generator,
) -> MeasuredProfile:
    """A profile over a grid of levels, ``count`` of them measured."""
    grid = tuple(epsilon_exact(one) for one in levels)
    plan = schedule(problem.ptk, terms, chosen(grid, count), 1 << 40)
    # The highest has half of the slice, the others share the rest.
    needed = 2 * len(plan.levels) * max(one.needed_records for one in plan.levels)
    return measured_profile(
        problem.ptk, terms, levels, _bench(problem, needed, rng), needed, count=count
    )


def _bench(problem: Problem, expected: int, rng: np.random.Generator) -> MemoryBench:
    records = int(rng.poisson(expected))
    return MemoryBench(problem.draw(rng, records), rng.random(records))
