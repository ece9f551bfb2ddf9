"""Plans: how short, how surely, how soon; and what finer plans and finer accounting save.

Problems come from the families of `tests.allocator.families`, made from seeds. A figure over families is their median.
Solves run in two processes at a time, each on a core of its own where there are two; times are wall times of single solves.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from allocator.currency import Offer, PtkOffers, problem_at, usable_coordinates
from allocator.fig4 import solve_fig4
from allocator.resolve import changed, resolve
from allocator.shelf import solve_shelf
from allocator.single import solve as solve_single
from allocator.solve import solve
from allocator.verify import faults, faults_of_shelf
from benchmarks.bars import Bar, Report, Say, at_least, at_most
from ptklib.privacy.costs import ApproxCost, GaussianCost
from ptklib.privacy.filters import make_filter
from tests.allocator.families import FAMILIES, make
from tests.allocator.instances import taxi

__all__ = ["run"]

ALL = tuple(FAMILIES)
# Large problems take their time: these say enough.
SOME = ("heavy", "near-equal", "powers", "partition", "gaps")
FEW = ("heavy", "near-equal", "gaps")
_CORES = 2


@dataclass(frozen=True)
class Size:
    """How many PTKs, and what is promised for them."""

    ptks: int
    seconds: float
    gap: float
    families: tuple[str, ...]


SHELF = (
    Size(13, 2, 0.0, ALL),
    Size(25, 2, 0.0, ALL),
    Size(50, 5, 0.005, ALL),
    Size(200, 20, 0.01, SOME),
    Size(1000, 60, 0.02, FEW),
)
STRIP = (
    Size(13, 3, 0.005, ALL),
    Size(50, 3, 0.005, ALL),
    Size(200, 5, 0.005, ALL),
    Size(1000, 10, 0.005, ALL),
    Size(5000, 60, 0.01, FEW),
)


def run(say: Say) -> Report:
    """Every bar of the allocator."""
    report = Report()
    with ProcessPoolExecutor(_CORES, mp_context=get_context("spawn")) as pool:
        solved: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for method, sizes in (("strip", STRIP), ("shelf", SHELF)):
            rows: list[dict[str, Any]] = []
            for size in sizes:
                say(f"{method} plans of {size.ptks} PTKs")
                rows += (found := list(pool.map(partial(_solved, method, size.ptks), size.families)))
                solved[method, size.ptks] = found
                report.bars += _bars(method, size, found)
            report.figures[f"{method} plans"] = rows
        say("the paper's program")
        same = list(pool.map(_same_as_fig4, *zip(*_compared(), strict=True)))
        quick = list(pool.map(_against_cbc, ("heavy", "gaps")))
        say("savings, accounting, re-solving")
        resolved = list(pool.map(_resolved, FEW))
    report.bars += [*_tab3(), *_fig4_bars(same, quick)]
    report.figures["the paper's program, best over K"] = same
    report.figures["CBC on the paper's program, 50 PTKs"] = quick
    savings = _savings(solved)
    longest = max(row["strip"] / row["shelf"] for row in savings)
    report.bars.append(at_most("the longest strip plan / the shelf plan", longest, 1.0))
    report.figures["samples saved by strip plans"] = savings
    accounting = [_accounting(ptks) for ptks in (13, 50, 150)]
    report.figures["samples under each accounting, Gaussian PTKs"] = accounting
    worst = min(row["basic / renyi"] for row in accounting)
    report.bars.append(at_least("Gaussian PTKs: samples under basic / under Renyi accounting, at least", worst, 1.0))
    report.figures["one PTK more, 1000 PTKs"] = resolved
    report.bars += [
        at_most("one PTK more: seconds, the most", max(row["seconds"] for row in resolved), 1.0),
        at_most("one PTK more: share of the others changed, the most", max(row["changed"] for row in resolved), 0.05),
        at_most("one PTK more: samples / those of a fresh plan, the most", max(row["loss"] for row in resolved), 1.01),
        at_most("outputs that differ over two runs with 1 and 4 threads", _differing(), 0),
    ]
    return report


def _solved(method: str, ptks: int, family: str) -> dict[str, Any]:
    problem = make(family, ptks, 0)
    begin = time.perf_counter()
    plan = solve(problem, method=method)
    seconds = time.perf_counter() - begin
    assert (faults if method == "strip" else faults_of_shelf)(problem, plan) == ()
    assert plan.gap is not None
    return {
        "family": family,
        "ptks": ptks,
        "samples": plan.total_samples,
        "bound": plan.lower_bound,
        "gap": round(plan.gap, 6),
        "status": plan.status,
        "partitions": len(plan.partitions),
        "seconds": round(seconds, 2),
    }


def _bars(method: str, size: Size, rows: list[dict[str, Any]]) -> Iterable[Bar]:
    name = f"{method}, {size.ptks} PTKs, median over {len(rows)} families"
    yield at_most(f"{name}: certified gap", statistics.median(row["gap"] for row in rows), size.gap)
    yield at_most(f"{name}: seconds", statistics.median(row["seconds"] for row in rows), size.seconds)


def _tab3() -> Iterable[Bar]:
    plan = solve(taxi())
    assert faults(taxi(), plan) == ()
    total = plan.total_samples or 0
    yield at_most("the paper's 13 taxi PTKs: distance from its 357,009 samples", abs(total - 357_009), 0)
    yield at_most("the paper's 13 taxi PTKs: partitions", len(plan.partitions), 1)
    yield at_most("the paper's 13 taxi PTKs: sum of epsilons", sum(one.demand for one in plan.assignments) / 1e9, 1.0)


def _compared() -> list[tuple[str, int]]:
    """Where CBC can finish."""
    return [
        ("taxi", 13),
        ("powers", 13),
        ("heavy", 13),
        ("near-equal", 13),
        ("powers", 25),
        ("noisy", 25),
        ("taxi", 25),
    ]


def _same_as_fig4(family: str, ptks: int) -> dict[str, Any]:
    problem = make(family, ptks, 0)
    begin = time.perf_counter()
    reference = solve_fig4(problem, time_limit_seconds=25, clock=time.perf_counter)
    seconds = time.perf_counter() - begin
    ours = solve_shelf(problem)
    return {
        "family": family,
        "ptks": ptks,
        "fig4": reference.total_samples,
        "finished": reference.status == "OPTIMAL",
        "shelf": ours.total_samples,
        "shelf status": ours.status,
        "CBC seconds": round(seconds, 1),
    }


def _against_cbc(family: str) -> dict[str, Any]:
    """Our time to a gap of 1%, and CBC on the literal program, with the right number of partitions, for fifty times as long."""
    gap = 0.01
    problem = make(family, 50, 0)
    begin = time.perf_counter()
    plan = solve_shelf(problem, gap=gap)
    ours = time.perf_counter() - begin
    assert plan.lower_bound is not None
    assert plan.gap is not None
    limit = 50 * ours + 1
    begin = time.perf_counter()
    other = solve_fig4(problem, partitions=len(plan.partitions), time_limit_seconds=limit, clock=time.perf_counter)
    theirs = time.perf_counter() - begin
    total = other.total_samples or 0
    reached = total <= (1 + gap) * plan.lower_bound and theirs < limit
    return {
        "family": family,
        "our seconds": round(ours, 2),
        "our gap": round(plan.gap, 5),
        "CBC seconds": round(theirs, 1),
        "CBC above our bound": round(total / plan.lower_bound - 1, 4),
        "CBC there": reached,
        "times faster, at least": round((theirs if reached else max(theirs, limit)) / ours, 1),
    }


def _fig4_bars(same: list[dict[str, Any]], quick: list[dict[str, Any]]) -> Iterable[Bar]:
    for ptks in (13, 25):
        done = [row for row in same if row["ptks"] == ptks and row["finished"]]
        yield at_least(f"problems of {ptks} PTKs where CBC finishes the paper's program", len(done), 1)
        wrong = sum(row["fig4"] != row["shelf"] for row in done)
        yield at_most(f"of those, problems of {ptks} PTKs where the shelf plan differs", wrong, 0)
    least = min(row["times faster, at least"] for row in quick)
    yield at_least("50 PTKs: times faster than CBC on the paper's program to a gap of 1%", least, 50)


def _savings(solved: dict[tuple[str, int], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for ptks in (13, 50):
        for strip, shelf in zip(solved["strip", ptks], solved["shelf", ptks], strict=True):
            first = solve_single(make(strip["family"], ptks, 0), states=1).total_samples
            row = {"family": strip["family"], "ptks": ptks, "strip": strip["samples"], "shelf": shelf["samples"]}
            row["saved against shelf"] = f"{1 - strip['samples'] / shelf['samples']:.1%}"
            # One partition is the paper's first feasible K wherever it is feasible.
            row["first feasible K"] = first if first is not None else "K > 1"
            row["saved against that"] = "-" if first is None else f"{1 - strip['samples'] / first:.1%}"
            rows.append(row)
    return rows


def _accounting(ptks: int) -> dict[str, Any]:
    """Gaussian PTKs at (1, 1e-6): n = a + c * sigma; the noise is an option's, the demand the accounting's."""
    epsilon, delta = 1, "1e-6"
    generator = np.random.default_rng(ptks)
    slopes, bases = generator.lognormal(4, 1, ptks), generator.lognormal(6, 1, ptks)
    sigmas = [5.0, 8.0, 12.0, 20.0, 35.0, 60.0, 100.0, 200.0, 400.0]
    found: dict[str, Any] = {"ptks": ptks}
    for name in ("basic", "renyi", "gaussian"):
        privacy_filter = make_filter(name, epsilon, delta)
        demands = {sigma: privacy_filter.demand(_cost(name, sigma, float(delta) / ptks)) for sigma in sigmas}
        offers = [
            PtkOffers(f"p{i:03}", tuple(Offer(f"{s:g}", int(bases[i] + slopes[i] * s) + 1, demands[s]) for s in sigmas))
            for i in range(ptks)
        ]
        nothing = (0,) * privacy_filter.width
        totals = []
        for coordinate in usable_coordinates(privacy_filter, nothing):
            plan = solve(problem_at(privacy_filter, nothing, offers, coordinate), time_limit_seconds=1)
            if plan.total_samples is not None:
                totals.append(plan.total_samples)
        found[name] = min(totals)
    found["basic / renyi"] = round(found["basic"] / found["renyi"], 2)
    found["basic / gaussian"] = round(found["basic"] / found["gaussian"], 2)
    return found


def _cost(accounting: str, sigma: float, delta: float) -> ApproxCost | GaussianCost:
    cost = GaussianCost(sigma=sigma)
    return ApproxCost(epsilon=cost.epsilon(delta), delta=delta) if accounting == "basic" else cost


def _resolved(family: str) -> dict[str, Any]:
    whole = make(family, 1001, 1)
    before = replace(whole, ptks=whole.ptks[:-1])
    current = solve(before)
    begin = time.perf_counter()
    plan = resolve(whole, current)
    seconds = time.perf_counter() - begin
    fresh = solve(whole)
    assert faults(whole, plan) == ()
    assert plan.total_samples is not None
    assert fresh.total_samples is not None
    return {
        "family": family,
        "seconds": round(seconds, 3),
        "changed": len(changed(current, plan)) / 1000,
        "loss": round(plan.total_samples / fresh.total_samples, 5),
    }


_RUN = """
import json
from tests.allocator.families import make
from allocator.solve import solve
for family in ("noisy", "partition", "heavy"):
    for method in ("strip", "shelf"):
        for ptks in (20, 90):
            print(json.dumps(solve(make(family, ptks, 2), method=method, time_limit_seconds=1).as_json()))
"""


def _differing() -> int:
    outputs = []
    for threads in ("1", "4"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        settings = {**os.environ, **dict.fromkeys(names, threads), "PYTHONHASHSEED": threads}
        done = subprocess.run([sys.executable, "-c", _RUN], env=settings, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.splitlines())
    return sum(one != two for one, two in zip(*outputs, strict=True))
