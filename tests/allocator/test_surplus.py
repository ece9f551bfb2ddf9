"""Richer plans: every promise kept, every filter obeyed in all of its coordinates, more where more
helps, and the same plan in the next window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.admission.coordinates import Settled
from allocator.admission.settling import settle_many
from allocator.admission.single import Offer, PtkOffers
from allocator.plan import Plan
from allocator.surplus.curves import LossCurve, Rung
from allocator.surplus.enriching import Guard, Richer, enrich
from allocator.surplus.verify import faults_of_surplus
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import Cost, PureCost
from ptklib.privacy.filters import Demand, Filter, make_filter
from tests.allocator.test_currency import CASES, offers

FINE = ("0.05", "0.06", "0.08", "0.1", "0.13", "0.17", "0.23", "0.3", "0.4", "0.5", "0.6", "0.8")


def steep(level: str) -> int:
    """Samples where noise alone counts."""
    return int(Fraction(100) / Fraction(level))


def rungs(
    privacy_filter: Filter, cost: Callable[[str, int], Cost], number: int
) -> tuple[Rung, ...]:
    return tuple(Rung(level, privacy_filter.demand(cost(level, number))) for level in FINE)


@dataclass(frozen=True)
class Case:
    """A plan of fewest samples and all that a richer one is made from."""

    privacy_filter: Filter
    loss: Demand
    ptks: Sequence[PtkOffers]
    curves: Sequence[LossCurve]
    settled: Settled

    @property
    def fewest(self) -> int:
        assert self.settled.plan.total_samples is not None
        return self.settled.plan.total_samples

    def richer(self, samples: int, *more: Guard) -> Richer | None:
        assert self.settled.coordinate is not None
        guards = [Guard(self.privacy_filter, tuple(self.loss)), *more]
        return enrich(guards, self.curves, self.settled.plan, self.settled.coordinate, samples)

    def faults(self, richer: Richer, samples: int, *more: Guard) -> tuple[str, ...]:
        demands = {
            (curve.id, rung.level): rung.demand for curve in self.curves for rung in curve.rungs
        }
        guards = [
            (self.privacy_filter, self.loss),
            *((one.privacy_filter, one.loss) for one in more),
        ]
        return faults_of_surplus(
            guards, self.ptks, demands, self.settled.plan, richer.plan, samples
        )


@lru_cache(maxsize=64)
def case(
    composition: str,
    delta: object,
    cost: Callable[[str, int], Cost],
    *,
    seed: int = 1,
    count: int = 4,
) -> Case:
    privacy_filter = make_filter(composition, 1, delta)  # type: ignore[arg-type]
    loss = privacy_filter.demand(cost("0.05", seed))
    ptks = offers(privacy_filter, cost, seed, ptks=count)
    curves = [
        LossCurve(ptk.id, ptk.offers, rungs(privacy_filter, cost, number))
        for number, ptk in enumerate(ptks)
    ]
    return Case(
        privacy_filter, loss, ptks, curves, settle_many(privacy_filter, loss, ptks, seconds=0.02)
    )


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
@pytest.mark.parametrize("times", [Fraction(1), Fraction(5, 4), Fraction(4)])
def test_every_promise_is_kept_and_every_filter_obeyed(
    composition: str, delta: object, cost: Callable[[str, int], Cost], times: Fraction
) -> None:
    for seed in range(3):
        made = case(composition, delta, cost, seed=seed)
        samples = int(made.fewest * times)
        richer = made.richer(samples)
        if richer is None:
            assert times == 1
            continue
        assert made.faults(richer, samples) == ()
        assert sum(one.surplus for one in richer.expected) < sum(
            one.minimum for one in richer.expected
        )


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
def test_with_four_times_the_records_the_loss_falls_to_a_third_at_most(
    composition: str, delta: object, cost: Callable[[str, int], Cost]
) -> None:
    made = case(composition, delta, cost)
    richer = made.richer(4 * made.fewest)
    assert richer is not None
    before = sum(one.minimum for one in richer.expected)
    assert sum(one.surplus for one in richer.expected) <= before / 3


@pytest.mark.parametrize("composition", ["pure", "basic", "renyi"])
def test_a_quota_is_obeyed_beside_the_promise(composition: str) -> None:
    delta = 0 if composition == "pure" else "1e-6"
    made = case(composition, delta, lambda level, _: PureCost(epsilon=level), seed=2, count=2)
    quota = Guard(made.privacy_filter.scaled("0.4"), (0,) * made.privacy_filter.width)
    samples = 20 * made.fewest
    free, held = made.richer(samples), made.richer(samples, quota)
    assert free is not None
    assert held is not None
    assert made.faults(held, samples, quota) == ()
    assert made.faults(free, samples, quota) != ()


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
def test_the_next_window_has_the_same_epsilons(
    composition: str, delta: object, cost: Callable[[str, int], Cost]
) -> None:
    made = case(composition, delta, cost)
    levels = set()
    for per_mille in (970, 1000, 1013, 1030):
        richer = made.richer(6 * made.fewest * per_mille // 1000)
        assert richer is not None
        levels.add(tuple((one.id, one.level) for one in richer.plan.assignments))
    assert len(levels) == 1


def test_the_same_question_has_the_same_answer() -> None:
    one, other = (case.__wrapped__(*CASES[0], seed=3, count=12) for _ in range(2))
    assert one.richer(3 * one.fewest) == other.richer(3 * other.fewest)


def test_nothing_is_richer_than_the_plan_where_nothing_is_left() -> None:
    privacy_filter = make_filter("pure", "0.1")
    demand = privacy_filter.demand(PureCost(epsilon="0.1"))
    offered = (Offer("0.1", 1000, demand),)
    ptks = [PtkOffers("only", offered)]
    settled = settle_many(privacy_filter, (0, 0), ptks, seconds=0.02)
    assert settled.coordinate is not None
    curve = LossCurve("only", offered, (Rung("0.1", demand),))
    guards = [Guard(privacy_filter, (0, 0))]
    assert enrich(guards, [curve], settled.plan, settled.coordinate, 1000) is None
    assert enrich(guards, [curve], settled.plan, settled.coordinate, 999) is None
    more = enrich(guards, [curve], settled.plan, settled.coordinate, 4000)
    assert more is not None
    assert more.plan.assignments[0].samples == 4000


def test_nobody_gets_more_samples_than_its_memory_holds() -> None:
    made = case(*CASES[0], seed=1)
    most = {one.id: one.samples + 7 for one in made.settled.plan.assignments}
    capped = replace(made, curves=[replace(one, most=most[one.id]) for one in made.curves])
    samples = 5 * made.fewest
    richer = capped.richer(samples)
    assert richer is not None
    assert capped.faults(richer, samples) == ()
    assert all(one.samples <= most[one.id] for one in richer.plan.assignments)


def test_budget_is_not_spent_where_more_does_not_help() -> None:
    """A profile that is flat in epsilon is all sampling: one step more would be for nothing."""
    privacy_filter = make_filter("pure", 1)

    def demand(level: str) -> Demand:
        return privacy_filter.demand(PureCost(epsilon=level))

    flat = tuple(Offer(level, 500, demand(level)) for level in ("0.05", "0.1", "0.3"))
    curve = LossCurve("flat", flat, tuple(Rung(level, demand(level)) for level in FINE))
    settled = settle_many(privacy_filter, (0, 0), [PtkOffers("flat", flat)], seconds=0.02)
    assert settled.coordinate is not None
    richer = enrich(
        [Guard(privacy_filter, (0, 0))], [curve], settled.plan, settled.coordinate, 8000
    )
    assert richer is not None
    assert [(one.level, one.samples) for one in richer.plan.assignments] == [("0.05", 8000)]
    assert richer.expected[0].surplus == pytest.approx(1 / 4)


def test_a_composition_that_is_no_sum_is_refused() -> None:
    privacy_filter = make_filter("strong", 1, "1e-6")
    made = case(*CASES[0])
    guards = [Guard(privacy_filter, (0, 0, 0))]
    with pytest.raises(InvalidInput) as refused:
        enrich(guards, made.curves, made.settled.plan, 0, 10 * made.fewest)
    assert refused.value.reason == "PLAN_COMPOSITION"


POINTS = st.lists(
    st.tuples(st.sampled_from(FINE), st.integers(20, 10**6)),
    min_size=1,
    max_size=8,
    unique_by=lambda p: p[0],
)


@settings(max_examples=100, deadline=None)
@given(points=POINTS, samples=st.integers(20, 10**7))
def test_the_expected_loss_falls_with_samples_and_epsilon_and_is_the_target_on_the_profile(
    points: list[tuple[str, int]], samples: int
) -> None:
    levels = sorted((level for level, _ in points), key=Fraction)
    sizes = sorted((size for _, size in points), reverse=True)
    offered = tuple(Offer(level, size, (1,)) for level, size in zip(levels, sizes, strict=True))
    curve = LossCurve("any", offered, tuple(Rung(level, (1,)) for level in FINE))
    for offer in offered:
        rung = curve.rung_of(offer.level)
        assert rung is not None
        assert curve.loss(rung, offer.samples) == pytest.approx(1)
        assert curve.loss_at(offer.level, offer.samples) == pytest.approx(1)
    here = curve.losses(samples)
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(here))
    assert np.all(np.array(curve.losses(samples + 1)) <= np.array(here))
    for place, step in enumerate(curve.rungs):
        reached = any(
            Fraction(step.level) >= Fraction(offer.level) and samples >= offer.samples
            for offer in offered
        )
        assert curve.keeps(place, samples) == reached


def broken(richer: Richer, **changed: object) -> Richer:
    return replace(richer, plan=replace(richer.plan, **changed))  # type: ignore[arg-type]


def test_the_verifier_notices_what_is_wrong() -> None:
    made = case(*CASES[0])
    samples = 4 * made.fewest
    richer = made.richer(samples)
    assert richer is not None
    first, *others = richer.plan.assignments
    wrong = {
        "has no promise": broken(
            richer, assignments=(replace(first, level="0.05", samples=9), *others)
        ),
        "may not be given": broken(richer, assignments=(replace(first, level="0.9"), *others)),
        "beyond the promise": broken(
            richer, assignments=tuple(replace(one, level="0.8") for one in richer.plan.assignments)
        ),
        "other PTKs": broken(richer, assignments=tuple(others)),
        "there are": broken(richer, total_samples=samples + 1),
        "hold fewer": broken(richer, assignments=(replace(first, samples=samples + 1), *others)),
        "twice": broken(richer, assignments=(replace(first, partitions=(0, 0)), *others)),
        "does not have": broken(richer, assignments=(replace(first, partitions=(99,)), *others)),
    }
    for words, plan in wrong.items():
        assert any(words in fault for fault in made.faults(plan, samples)), words


def beside(made: Case, count: int, level: str, samples: int, cost: Cost | None = None) -> Case:
    """The same with so many of best effort at that level, on a floor of 64 samples each."""
    demand = made.privacy_filter.demand(cost or PureCost(epsilon=level))
    names = [f"effort{number}" for number in range(count)]
    ptks = [*made.ptks, *(PtkOffers(name, (Offer(level, 64, demand),)) for name in names)]
    reference = max(64, samples // len(ptks))
    curves = [
        *made.curves,
        *(
            LossCurve(name, (Offer(level, 64, demand),), (Rung(level, demand),), None, reference)
            for name in names
        ),
    ]
    settled = settle_many(made.privacy_filter, made.loss, ptks, seconds=0.02)
    return Case(made.privacy_filter, made.loss, ptks, curves, settled)


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
@pytest.mark.parametrize("count", [1, 3, 9])
def test_best_effort_gets_far_more_than_its_floor_and_takes_no_promise(
    composition: str, delta: object, cost: Callable[[str, int], Cost], count: int
) -> None:
    few = case(composition, delta, cost, seed=2, count=3)
    samples = 8 * few.fewest
    made = beside(few, count, "0.4", samples, cost("0.4", 0))
    richer = made.richer(samples)
    assert richer is not None
    assert made.faults(richer, samples) == ()
    held = {one.id: one for one in richer.plan.assignments}
    for number in range(count):
        effort = held[f"effort{number}"]
        assert effort.level == "0.4"
        # Two fit on a record: nobody is left with less than a third of its part.
        assert effort.samples >= samples / (3 * max(count, 2))


def test_the_loss_of_best_effort_is_that_of_its_equal_share() -> None:
    demand = (1, 1)
    curve = LossCurve("e", (Offer("0.3", 64, demand),), (Rung("0.3", demand),), None, 1000)
    assert [curve.loss(0, samples) for samples in (500, 1000, 4000)] == [2.0, 1.0, 0.25]
    assert curve.loss_at("0.3", 64) == pytest.approx(1000 / 64)
    assert (curve.keeps(0, 64), curve.keeps(0, 63)) == (True, False)


def test_many_of_best_effort_do_not_share_four_parts() -> None:
    """Each fits on records of its own alone: none stays on its floor."""
    privacy_filter = make_filter("pure", 1)
    nobody = Settled(Plan("OPTIMAL", 0, 0, 0, (), (), ""), None, None, (0, 0))
    made = beside(Case(privacy_filter, (0, 0), [], [], nobody), 20, "0.9", 40_000)
    richer = made.richer(40_000)
    assert richer is not None
    assert made.faults(richer, 40_000) == ()
    assert min(one.samples for one in richer.plan.assignments) > 1000
