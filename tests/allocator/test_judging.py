"""Yes with a plan, no with a proof, or not settled: never wrong, and more work only settles
more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from allocator.admission.coordinates import Offer, PtkOffers
from allocator.admission.judging import judge_many, nearest
from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Option, Problem, PtkOptions
from allocator.solving import solve as solving
from allocator.strip.building import unsettled
from allocator.strip.feasible import AnyPlan, any_plan
from allocator.strip.prices.dual_feasible import least_within
from allocator.table import table_of
from allocator.verify import faults
from ptklib.privacy.costs import PureCost
from ptklib.privacy.filters import make_filter
from tests.allocator.families import make
from tests.allocator.small import best_strip, small_problems

ENOUGH = 2e9


def test_on_small_problems_the_answer_is_the_truth() -> None:
    settled, total = 0, 0
    for problem in small_problems(5, 300):
        best = best_strip(replace(problem, n_max=None))
        for n_max in (1, *(() if best is None else (best - 1, best, best + 1))):
            if n_max < 1:
                continue
            asked = replace(problem, n_max=n_max)
            plan = any_plan(asked, effort=Effort(ENOUGH))
            assert not faults(asked, plan)
            truth = best is not None and best <= n_max
            assert not truth or plan.status != "INFEASIBLE"
            assert truth or plan.total_samples is None
            settled, total = settled + (plan.status != "REJECTED"), total + 1
    assert total > 500
    assert settled > 0.95 * total


def test_bounds_by_heights_never_exceed_the_best_plan_and_beat_areas() -> None:
    better = 0
    for problem in small_problems(6, 300):
        best, table = (
            best_strip(replace(problem, n_max=None)),
            table_of(replace(problem, n_max=None)),
        )
        if best is None or table is None or not len(table):
            continue
        least = least_within(table.samples, table.demands, table.capacity, best)
        assert least is not None
        assert least.bound <= best
        areas = (table.samples * (table.demands / max(1, table.capacity))).min(axis=1).sum()
        better += least.bound > areas + 0.5
    assert better > 20


def test_tall_ptks_that_cannot_share_a_record_are_counted_apart() -> None:
    samples, demands = np.full((5, 1), 100), np.full((5, 1), 51)
    least = least_within(samples, demands, 100, 1000)
    assert least is not None
    assert round(least.bound) == 500
    assert least_within(samples, demands, 50, 1000) is None
    assert least_within(samples, demands, 100, 99) is None


@pytest.mark.parametrize("family", ["heavy", "partition", "noisy"])
def test_work_in_pieces_comes_to_the_same(family: str) -> None:
    free = make(family, 8, 3)
    total = solving.solve(free, time_limit_seconds=1).total_samples
    assert total is not None
    problem = replace(free, n_max=total)
    work, spent = AnyPlan(problem), 0
    while (plan := work.look(Effort(2e7))).status == "REJECTED" and spent < 400:
        spent += 1
    assert plan.total_samples is not None
    assert plan.total_samples <= total
    assert not faults(problem, plan)
    assert work.look(Effort(1e7)) == plan


def test_a_plan_is_admitted_and_nearest_is_what_a_scan_finds() -> None:
    privacy_filter = make_filter("renyi", 1, "1e-6")
    loss = privacy_filter.demand(PureCost(epsilon="0.01"))
    levels = ("0.13", "0.22", "0.36", "0.6")

    def offered(name: str, needed: float) -> PtkOffers:
        found = (
            Offer(one, round(needed / float(one)), privacy_filter.demand(PureCost(epsilon=one)))
            for one in levels
        )
        return PtkOffers(name, tuple(found))

    beside = [offered(f"p{k}", 300 + 170 * k) for k in range(4)]
    steps = range(1, 60)

    def newcomer(step: int) -> PtkOffers:
        return offered("new", 20_000 / step)

    def fits(step: int) -> bool:
        return judge_many(
            privacy_filter, loss, [*beside, newcomer(step)], n_max=4000, effort=Effort(ENOUGH)
        ).fits

    found = nearest(privacy_filter, loss, beside, newcomer, steps, n_max=4000, effort=Effort(4e9))
    first = next(step for step in steps if fits(step))
    assert 1 < first < 59
    assert found.step == first
    hardly = nearest(privacy_filter, loss, beside, newcomer, steps, n_max=4000, effort=Effort(1.0))
    assert hardly.step is None or hardly.step >= first
    assert not hardly.proved
    assert (
        nearest(
            privacy_filter, loss, beside, newcomer, range(1, 3), n_max=4000, effort=Effort(4e9)
        ).step
        is None
    )


def test_one_partition_is_a_plan_of_any_form(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(10, 100, tuple(PtkOptions(f"p{k}", (Option("1", 5, 100),)) for k in range(2)))

    def lost(asked: Problem, **_: object) -> Plan:
        return unsettled(asked, 101, 100, "strip")

    monkeypatch.setattr(solving, "solve_strip", lost)
    plan = solving.solve(problem)
    assert (plan.total_samples, plan.lower_bound) == (100, 100)
    assert not faults(problem, plan)
