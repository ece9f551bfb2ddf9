"""Strip plans at their worst: the families of `tests.allocator.hard`, each judged by itself.

Every problem is solved with the limit, with a fifth of it, and as a shelf plan with the limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from allocator.solving.solve import solve
from allocator.verify import faults
from benchmarks.bars import Bar, Say, at_least, at_most
from tests.allocator.hard import HARD, make_hard

__all__ = ["measured", "worst_bars"]

_LIMIT_SECONDS = 10.0
_SHORT_SECONDS = 2.0
_PROVEN_PTKS = 13
# Shelf plans of more PTKs take minutes and are far longer.
_SHELVES = 200


@dataclass(frozen=True)
class _Size:
    ptks: int
    gap: float


_SIZES = (_Size(13, 0.01), _Size(50, 0.01), _Size(200, 0.015), _Size(1000, 0.02))


def measured(pool: Executor, say: Say, *, seeds: int) -> list[dict[str, Any]]:
    """A row for every size, family and seed."""
    rows: list[dict[str, Any]] = []
    for size in _SIZES:
        say(f"hard families of {size.ptks} PTKs")
        asked = [(family, seed) for family in HARD for seed in range(seeds)]
        rows += pool.map(partial(_solved, size.ptks), *zip(*asked, strict=True))
    return rows


def worst_bars(rows: list[dict[str, Any]]) -> Iterable[Bar]:
    """The promises about the worst of them."""
    for size in _SIZES:
        for family in HARD:
            gaps = [
                row["gap"] for row in rows if (row["ptks"], row["family"]) == (size.ptks, family)
            ]
            yield at_most(
                f"strip, {family}, {size.ptks} PTKs: certified gap, the worst", max(gaps), size.gap
            )
    few = [row["status"] == "OPTIMAL" for row in rows if row["ptks"] == _PROVEN_PTKS]
    yield at_least(
        f"strip, hard families, {_PROVEN_PTKS} PTKs: share proven optimal",
        sum(few) / len(few),
        0.95,
    )
    longer = sum(row["shelf"] is not None and row["samples"] > row["shelf"] for row in rows)
    yield at_most("strip plans of hard families that are longer than the shelf plan", longer, 0)
    later = sum(row["samples"] > row["samples sooner"] for row in rows)
    yield at_most(
        f"strip plans of hard families that are longer than with {_SHORT_SECONDS:g} s", later, 0
    )


def _solved(ptks: int, family: str, seed: int) -> dict[str, Any]:
    problem = make_hard(family, ptks, seed)
    begin, spent = time.perf_counter(), time.process_time()
    plan = solve(problem, time_limit_seconds=_LIMIT_SECONDS, clock=time.perf_counter)
    seconds, processor = time.perf_counter() - begin, time.process_time() - spent
    assert faults(problem, plan) == ()
    sooner = solve(problem, time_limit_seconds=_SHORT_SECONDS)
    shelf = (
        solve(
            problem,
            method="shelf",
            time_limit_seconds=_LIMIT_SECONDS,
            clock=time.perf_counter,
        ).total_samples
        if ptks <= _SHELVES
        else None
    )
    assert plan.gap is not None
    return {
        "family": family,
        "ptks": ptks,
        "seed": seed,
        "samples": plan.total_samples,
        "bound": plan.lower_bound,
        "gap": round(plan.gap, 6),
        "status": plan.status,
        "samples sooner": sooner.total_samples,
        "shelf": shelf,
        "seconds": round(seconds, 2),
        "processor": round(processor, 2),
        "cut": plan.solver.endswith("clock"),
    }
