"""Planted noise by name, benches that watch, and records for the small PTKs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._profiler.problems import Problem, problem
from profiler.measuring.bench import MemoryBench, run_held
from profiler.measuring.pieces import PieceCost
from profiler.measuring.tasks import Answer, Task
from profiler.measuring.terms import ProfileTerms
from profiler.profiles import MeasuredProfile, measured_profile
from ptklib.errors import BudgetExceeded
from ptklib.testing.audit import AuditResult
from ptklib.testing.noise import SeededSource, planted_noise

__all__ = [
    "Planted",
    "RefusingBench",
    "WatchingBench",
    "bench",
    "planted_run",
    "profiled",
    "require_caught",
]


@dataclass(frozen=True)
class Planted:
    """Another stream of words for every name, the same in every process."""

    seed: int = 0

    def source(self, name: str) -> SeededSource:
        return SeededSource(
            int.from_bytes(hashlib.sha256(f"{self.seed} {name}".encode()).digest()[:8], "big")
        )


def planted_run(task: Task, held: Any) -> Answer:
    """Runs in workers too: they inherit the name of the test."""
    with planted_noise():
        return run_held(task, held)


class WatchingBench(MemoryBench):
    """Keeps what was asked and released, by the name of the task."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.answers: dict[str, Answer] = {}
        self.asked: dict[str, tuple[Task, Answer]] = {}

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        found = super().run(tasks)
        self.asked |= {task.name: (task, answer) for task, answer in zip(tasks, found, strict=True)}
        self.answers |= {task.name: answer for task, answer in zip(tasks, found, strict=True)}
        return found


class RefusingBench(MemoryBench):
    """A budget that is used up."""

    def reserve(self, charges: Sequence[PieceCost]) -> None:
        raise BudgetExceeded("BUDGET_EXCEEDED", f"{len(charges)} charges are too many")


def bench(
    one: Problem,
    records: int,
    *,
    seed: int = 0,
    kind: type[MemoryBench] = WatchingBench,
    **options: Any,
) -> Any:
    rng = np.random.default_rng(seed)
    return kind(one.draw(rng, records), rng.random(records), **options)


def profiled(
    kind: str = "mean",
    least: float = 0.05,
    target: str = "0.1",
    levels: Sequence[str] = ("0.1", "0.3", "1"),
    *,
    records: int = 150_000,
    seed: int = 0,
    n_max: int = 1024,
    **options: Any,
) -> MeasuredProfile:
    one = problem(kind, least)
    found = options.pop("bench", None) or bench(one, records, seed=seed, runner=planted_run)
    terms = options.pop("terms", None) or ProfileTerms.of(target, 1, n_max=n_max)
    ptk = options.pop("ptk", one.ptk)
    return measured_profile(ptk, terms, levels, found, records, noise=Planted(seed), **options)


def require_caught(audit: Callable[[int], tuple[AuditResult, float]], runs: int) -> None:
    """A planted fault is found by an audit of fresh noise: its bound and what was claimed.

    An event is chosen from few runs, and may be a poor one once: then there are twice as many. A
    right mechanism is accused by none of them but with the small chance that their confidence
    leaves.
    """
    bounds = []
    for factor in (1, 1, 2, 4, 8):
        result, claim = audit(factor * runs)
        if result.contradicts(claim):
            return
        bounds.append((result.lower_bound, claim))
    raise AssertionError(f"no bound is above its claim: {bounds}")
