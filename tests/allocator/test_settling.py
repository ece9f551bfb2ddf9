"""Plans with many partitions: the filter admits every partition, and one partition is never
better.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from allocator.admission import settling
from allocator.admission.coordinates import problem_at, usable_coordinates
from allocator.admission.settling import Current, settle_many
from allocator.admission.single import Offer, PtkOffers, settle
from allocator.solving.solve import solve
from allocator.verify import faults, least_possible
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import ApproxCost, Cost, PureCost
from ptklib.privacy.filters import Filter, make_filter
from tests.allocator.test_currency import CASES, offers, pure

SECONDS = 0.5


def promise(composition: str, delta: object) -> Filter:
    return make_filter(composition, 1, delta)  # type: ignore[arg-type]


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_every_partition_is_admitted_and_one_partition_is_never_better(
    composition: str, delta: object, cost: Callable[[str, int], Cost], seed: int
) -> None:
    privacy_filter = promise(composition, delta)
    loss = privacy_filter.demand(cost("0.1", seed))
    ptks = offers(privacy_filter, cost, seed, ptks=7)
    found = settle_many(privacy_filter, loss, ptks, seconds=SECONDS)
    plan, problem = found.plan, found.problem
    assert plan.total_samples is not None
    assert problem is not None
    assert not faults(problem, plan)
    demands = {(ptk.id, one.level): np.array(one.demand) for ptk in ptks for one in ptk.offers}
    level = {one.id: one.level for one in plan.assignments}
    row = np.array([loss], dtype=np.int64)
    for partition in plan.partitions:
        total = np.sum([demands[name, level[name]] for name in partition.members], axis=0)
        total = np.minimum(total, np.array(privacy_filter.ceiling))
        assert privacy_filter.admits(row, total)[0]
        assert all(total <= np.array(found.demand))
    bound = least_possible(problem)
    assert bound is not None
    assert bound <= plan.total_samples
    single = settle(privacy_filter, loss, ptks).plan.total_samples
    assert single is None or plan.total_samples <= single


def test_what_is_used_up_and_what_is_unreachable_have_words() -> None:
    privacy_filter = promise("pure", 0)
    ptks = offers(privacy_filter, pure, 1)
    gone = settle_many(privacy_filter, (10**9, 0), ptks)
    assert (gone.plan.status, gone.coordinate) == ("INFEASIBLE", None)
    assert gone.plan.explanation is not None
    assert "budget" in gone.plan.explanation.text
    few = settle_many(privacy_filter, (0, 0), ptks, n_max=10, seconds=SECONDS)
    assert few.plan.status == "INFEASIBLE"
    assert few.plan.explanation is not None
    assert few.plan.explanation.changes
    assert settle_many(privacy_filter, (0, 0), []).plan.total_samples == 0


def test_a_delta_that_does_not_fit_everywhere_is_spread_or_refused() -> None:
    privacy_filter = promise("basic", "1e-6")

    def offer(delta: str, samples: int) -> Offer:
        return Offer(
            f"0.1, {delta}", samples, privacy_filter.demand(ApproxCost(epsilon="0.1", delta=delta))
        )

    lean = [PtkOffers(f"p{k}", (offer("6e-7", 1000), offer("1e-7", 1100))) for k in range(6)]
    found = settle_many(privacy_filter, (0, 0), lean, seconds=SECONDS)
    assert found.plan.total_samples == 1100
    greedy = [PtkOffers(f"p{k}", (offer("6e-7", 1000),)) for k in range(2)]
    refused = settle_many(privacy_filter, (0, 0), greedy, seconds=SECONDS)
    assert refused.plan.status == "INFEASIBLE"
    assert refused.plan.explanation is not None
    assert "delta" in refused.plan.explanation.text


def test_the_same_question_keeps_the_plan_and_a_newcomer_most_of_it() -> None:
    privacy_filter = promise("pure", 0)
    ptks = offers(privacy_filter, pure, 5, ptks=60)
    first = settle_many(privacy_filter, (0, 0), ptks[:59], seconds=SECONDS)
    assert first.coordinate is not None
    current = Current(first.plan, first.coordinate)
    again = settle_many(privacy_filter, (0, 0), ptks[:59], current=current, seconds=SECONDS)
    assert again.plan.assignments == first.plan.assignments
    more = settle_many(privacy_filter, (0, 0), ptks, current=current, seconds=SECONDS).plan
    before = {one.id: (one.level, one.samples) for one in first.plan.assignments}
    after = {one.id: (one.level, one.samples) for one in more.assignments}
    assert sum(after[name] != had for name, had in before.items()) <= 3
    assert more.total_samples is not None
    assert more.lower_bound is not None
    assert more.total_samples <= 1.011 * more.lower_bound


def test_strong_composition_is_refused() -> None:
    privacy_filter = promise("strong", "1e-6")
    with pytest.raises(InvalidInput) as error:
        settle_many(privacy_filter, (0,) * privacy_filter.width, [])
    assert error.value.reason == "PLAN_COMPOSITION"


@pytest.mark.parametrize("seed", range(6))
def test_no_coordinate_has_a_better_plan_than_the_certificate_says(seed: int) -> None:
    """Few PTKs at high levels: orders differ much in what they have room for, and their quick
    bounds hardly.
    """
    privacy_filter = promise("renyi", "1e-6")
    loss = privacy_filter.demand(PureCost(epsilon="0.01"))
    rng = np.random.default_rng(seed)
    levels = ("0.13", "0.22", "0.36", "0.6", "1")

    def offered(name: str, needed: int) -> PtkOffers:
        found = (
            Offer(one, round(needed / float(one)), privacy_filter.demand(PureCost(epsilon=one)))
            for one in levels
        )
        return PtkOffers(name, tuple(found))

    ptks = [offered(f"p{k}", int(rng.integers(500, 2000))) for k in range(2)]
    found = settle_many(privacy_filter, loss, ptks, seconds=SECONDS).plan
    assert found.total_samples is not None
    assert found.lower_bound is not None
    totals = [
        plan.total_samples
        for one in usable_coordinates(privacy_filter, loss)
        if (plan := solve(problem_at(privacy_filter, loss, ptks, one))).total_samples is not None
    ]
    assert found.lower_bound <= min(totals)
    assert found.total_samples == min(totals)
    assert found.status == "OPTIMAL" or found.gap


def test_with_many_ptks_the_certificate_counts_coordinates_that_were_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    privacy_filter = promise("renyi", "1e-6")
    loss = privacy_filter.demand(PureCost(epsilon="0.01"))
    ptks = [
        PtkOffers(
            f"p{k}", (Offer("0.36", 1000 + 7 * k, privacy_filter.demand(PureCost(epsilon="0.36"))),)
        )
        for k in range(5)
    ]
    monkeypatch.setattr(settling, "FEW", 0)
    monkeypatch.setattr(settling, "TRIED", 1)
    found = settle_many(privacy_filter, loss, ptks, seconds=SECONDS).plan
    bounds = [
        least_possible(problem_at(privacy_filter, loss, ptks, one))
        for one in usable_coordinates(privacy_filter, loss)
    ]
    assert found.lower_bound is not None
    assert found.total_samples is not None
    assert found.lower_bound <= sorted(one for one in bounds if one is not None)[1], (
        "all but one are bounded quickly"
    )
    assert found.lower_bound < found.total_samples
    assert found.status == "FEASIBLE"
