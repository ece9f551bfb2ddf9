"""One deadline for a whole answer: whatever it is, what comes back is verified, and what was not
settled is not called impossible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from allocator.admission import in_one
from allocator.admission.coordinates import Offer, PtkOffers, Settled, usable_coordinates
from allocator.admission.judging import judge_many
from allocator.admission.settling import Current, settle_many
from allocator.admission.short_window import carried_by
from allocator.effort import Effort
from allocator.verify import faults
from ptklib.privacy.costs import PureCost
from ptklib.privacy.filters import Filter, make_filter

LEVELS = ("0.02", "0.05", "0.1", "0.2", "0.4", "0.7")


def renyi() -> tuple[Filter, tuple[int, ...]]:
    privacy_filter = make_filter("renyi", 1, "1e-6")
    return privacy_filter, privacy_filter.demand(PureCost(epsilon="0.05"))


def jagged(privacy_filter: Filter, ptks: int, seed: int) -> list[PtkOffers]:
    """Samples that jump from level to level: orders differ, and plans are not easy."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(ptks):
        size = 10 ** rng.uniform(2.5, 4)
        row = [
            Offer(
                level,
                int(size / float(level) ** rng.uniform(0.5, 1.3) * rng.uniform(0.5, 1.5)) + 1,
                privacy_filter.demand(PureCost(epsilon=level)),
            )
            for level in LEVELS
        ]
        found.append(PtkOffers(f"p{k}", tuple(row)))
    return found


def sound(found: Settled, privacy_filter: Filter, ptks: list[PtkOffers], n_max: int | None) -> None:
    plan = found.plan
    if plan.total_samples is None:
        assert plan.explanation is not None
        return
    assert found.problem is not None
    assert faults(found.problem, plan) == ()
    assert {one.id for one in plan.assignments} == {one.id for one in ptks}
    assert n_max is None or plan.total_samples <= n_max
    assert (plan.lower_bound or 0) <= plan.total_samples
    assert all(most >= 0 for most in found.demand)


def test_a_share_has_its_part_of_the_steps_and_of_the_clock() -> None:
    now = 0.0
    whole = Effort.clocked(1000, lambda: now, 10.0)
    first = whole.share(0.5)
    first.spend(200)
    assert (first.left, whole.left) == (300, 800)
    now = 5.5
    assert (first.over, whole.over) == (True, False)
    second = whole.share(0.5)
    assert second.left == 400
    assert second.time_limit == pytest.approx({"time_limit": 2.25})
    now = 7.0
    assert not second.over
    now = 8.0
    assert (second.over, second.cut, whole.cut) == (True, True, False)
    inner = whole.share(0.9).part(5)
    now = 11.0
    assert inner.over
    assert whole.over
    assert whole.cut
    assert inner.cut
    assert Effort(math.inf).share(0.5).left == math.inf


@pytest.mark.parametrize("ptks", [5, 40])
@pytest.mark.parametrize("seconds", [1, 3, 10, 40, 200])
def test_the_clock_may_end_it_anywhere(ptks: int, seconds: int) -> None:
    """A clock that ticks whenever somebody looks at it."""
    privacy_filter, loss = renyi()
    offered = jagged(privacy_filter, ptks, 1)
    free = settle_many(privacy_filter, loss, offered, seconds=0.1).plan.total_samples
    assert free is not None
    for n_max in (None, free * 2, free, free // 2):
        ticks = count()
        effort = Effort.clocked(1e12, lambda: float(next(ticks)), float(seconds))  # noqa: B023 - used at once
        found = settle_many(privacy_filter, loss, offered, n_max=n_max, effort=effort)
        sound(found, privacy_filter, offered, n_max)
        if n_max is None or n_max >= free:
            assert found.plan.status != "INFEASIBLE", "there is a plan"


@pytest.mark.parametrize("steps", [0.0, 1e6, 1e8, 1e9])
def test_what_is_not_settled_is_not_impossible(steps: float) -> None:
    privacy_filter, loss = renyi()
    for seed in range(4):
        offered = jagged(privacy_filter, 12, seed)
        free = settle_many(privacy_filter, loss, offered, seconds=0.5).plan
        total, bound = free.total_samples, free.lower_bound
        assert total is not None
        assert bound is not None
        for n_max in (total, (total + bound) // 2, bound - 1):
            found = settle_many(privacy_filter, loss, offered, n_max=n_max, effort=Effort(steps))
            judged = judge_many(privacy_filter, loss, offered, n_max=n_max, effort=Effort(steps))
            for settled in (found, judged.settled):
                sound(settled, privacy_filter, offered, n_max)
                if n_max >= total:
                    assert settled.plan.status != "INFEASIBLE"
                if n_max < bound:
                    assert settled.plan.total_samples is None
            if judged.settled.plan.status == "REJECTED":
                assert not judged.proved


@pytest.mark.parametrize("ptks", [7, 60])
def test_everything_that_an_answer_takes_is_counted_in_one_place(ptks: int) -> None:
    privacy_filter, loss = renyi()
    offered = jagged(privacy_filter, ptks, 3)
    free = settle_many(privacy_filter, loss, offered, seconds=0.2).plan.lower_bound
    assert free is not None
    for n_max in (None, free - 1, free + free // 200):
        effort = Effort(2e9)
        settle_many(privacy_filter, loss, offered, n_max=n_max, effort=effort)
        assert 0 < effort.spent <= 1.15 * effort.limit


def test_more_work_is_never_a_longer_plan_in_any_order() -> None:
    privacy_filter, loss = renyi()
    for seed in range(3):
        offered = jagged(privacy_filter, 9, seed)
        totals = [
            settle_many(privacy_filter, loss, offered, effort=Effort(steps)).plan.total_samples or 0
            for steps in (0.0, 2e8, 2e9)
        ]
        assert totals == sorted(totals, reverse=True)


def test_other_orders_are_asked_for_shorter_plans_only() -> None:
    """The one that looks best by its bound is not the one with the shortest plan."""
    privacy_filter, loss = renyi()
    offered = jagged(privacy_filter, 6, 5)
    best = settle_many(privacy_filter, loss, offered, effort=Effort(2e10)).plan
    asked = in_one.Asked(privacy_filter, loss, offered, None)
    totals = {
        one: in_one.solved_in(asked, one, Effort(3e9)).plan.total_samples
        for one in usable_coordinates(privacy_filter, loss)
    }
    shortest = min(total for total in totals.values() if total is not None)
    assert best.total_samples is not None
    assert best.total_samples <= shortest
    for one in totals:
        worst = in_one.solved_in(asked, one, Effort(0))
        if worst.plan.total_samples is None:
            continue
        low = dict.fromkeys(totals, 0)
        found, proven = in_one.shortest_of_all(asked, worst, low, Effort(2e10))
        assert found.plan.total_samples == best.total_samples
        assert min(proven.values()) <= shortest


def test_a_plan_in_force_is_not_given_up_for_a_little_in_another_order() -> None:
    privacy_filter, loss = renyi()
    offered = jagged(privacy_filter, 6, 8)
    found = settle_many(privacy_filter, loss, offered, effort=Effort(4e9))
    best = found.plan.total_samples
    assert best is not None
    asked = in_one.Asked(privacy_filter, loss, offered, None)
    kept = given_up = 0
    for one in usable_coordinates(privacy_filter, loss):
        other = in_one.solved_in(asked, one, Effort(1e9)).plan
        total = other.total_samples
        if total is None or not (best * 1.005 < total < best * 1.009 or total > best * 1.05):
            continue
        current = Current(other, one)
        again = settle_many(privacy_filter, loss, offered, current=current, effort=Effort(4e9))
        if total < best * 1.009:
            kept += again.coordinate == one
        else:
            given_up += (again.plan.total_samples or 0) < total
        assert again.plan.lower_bound is not None
        assert again.plan.lower_bound <= best
    assert kept == 1
    assert given_up >= 5
    held = replace(asked, current=Current(found.plan, found.coordinate or 0))
    assert held.worth_changing(found) < best == asked.worth_changing(found)


def test_who_trains_is_found_by_the_deadline_as_well() -> None:
    privacy_filter, loss = renyi()
    offered = jagged(privacy_filter, 12, 2)
    free = settle_many(privacy_filter, loss, offered, seconds=0.2).plan.total_samples
    assert free is not None
    sizes = []
    for steps in (0.0, 3e8, 5e9):
        effort = Effort(steps)
        found = carried_by(privacy_filter, loss, offered, n_max=free * 2 // 3, effort=effort)
        assert {*found.members, *(one.id for one in found.left_out)} == {one.id for one in offered}
        sound(found.settled, privacy_filter, [o for o in offered if o.id in found.members], None)
        assert effort.spent <= 1.15 * steps + 3e8
        sizes.append(len(found.members))
    assert sizes[0] <= sizes[1] <= sizes[2]
    assert sizes[2] >= 6
