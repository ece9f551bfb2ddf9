"""Plans become slices:

PTKs train across partitions, and the ledger shows exactly what the plan says.
"""

from __future__ import annotations

from pathlib import Path

from allocator.admission.single import settle
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import TAG_SPACE
from ptkstore import Store
from ptkstore.api.views import PlanView
from ptkstore.engine.plans.planning import fresh_loss, offers_of
from ptkstore.engine.plans.registrations import active
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

TARGETS = (0.05, 0.01, 0.08, 0.02, 0.06, 0.005, 0.1, 0.03)
ENOUGH = 9000


def registered(path: Path, targets: tuple[float, ...] = TARGETS) -> Store:
    store = open_store(path, policy=Policy(epsilon=1, delta=0), use="minimum")
    for place, target in enumerate(targets):
        statistic = "count" if place % 2 else "mean"
        answer = store.register(
            f"p{place}", stream="rides", kind="statistics", config=config(statistic), target=target
        )
        assert answer.status == "ACTIVE", answer
    return store


def run_day(store: Store, number: int, rows: int = ENOUGH) -> PlanView:
    store.push("rides", day(number, rows), producer="test", seq=number)
    store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    plan = store.plan("rides")
    assert plan is not None
    return plan


def choices(plan: PlanView) -> dict[str, tuple[str, int]]:
    return {line.ptk: (line.epsilon, line.samples) for line in plan.lines}


def test_ptks_train_across_partitions_and_the_ledger_shows_exactly_that(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        plan = run_day(store, 0)
        (cycle,) = store.cycles("rides")
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
        assert len(plan.partitions) > 1
        assert any(len(line.partitions) > 1 for line in plan.lines)
        assert plan.total_samples == sum(one.samples for one in plan.partitions)
        entries = {
            entry["key"].split("/")[1]: entry
            for entry in store._parts.ledger.history()
            if "key" in entry
        }
        count, ranges = entries.pop("count"), {}
        for line in plan.lines:
            entry = entries[line.ptk]
            ranges[line.ptk] = [(start, stop) for _, start, stop in entry["slices"]]
            tags = sum(stop - start for start, stop in ranges[line.ptk])
            assert abs(tags / TAG_SPACE * cycle.dp_records - line.samples) < 1e-6
            assert entry["demand"][0] == round(float(line.epsilon) * 1e9)
        # Point by point: the count and those who trained there, never more than the promise. Of a
        # block that has expired the ledger keeps the most that any point has lost.
        ends = {end for spans in ranges.values() for span in spans for end in span}
        at_points = [
            count["demand"][0]
            + sum(
                entries[name]["demand"][0]
                for name, spans in ranges.items()
                if any(start <= point < stop for start, stop in spans)
            )
            for point in sorted(ends | {0})
        ]
        assert max(at_points) <= 10**9
        for block in store.budget("rides").blocks:
            ((_, loss),) = store._parts.ledger.block("rides", block.name).losses
            assert loss[0] == max(at_points)


def test_a_strip_plan_holds_fewer_records_than_one_partition(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        spec, privacy_filter = store.stream("rides"), store._parts.privacy_filter("rides")
        with store._parts.metadata.read() as tx:
            offered = [offers_of(spec, privacy_filter, one) for one in active(tx, "rides")]
        single = settle(privacy_filter, fresh_loss(spec, privacy_filter), offered).plan
        plan = store.plan_now("rides")
        assert single.total_samples is not None
        assert plan.total_samples is not None
        assert plan.total_samples < 0.9 * single.total_samples
        assert plan.lower_bound is not None
        assert plan.lower_bound <= plan.total_samples <= 1.02 * plan.lower_bound


def test_what_does_not_fit_on_one_partition_is_accepted_in_strips(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=Policy(epsilon=1, delta=0), n_max=4800) as store:
        for place in range(3):
            # Each needs most of the budget: together they fit side by side alone.
            answer = store.register(
                f"p{place}",
                stream="rides",
                kind="statistics",
                config=config(),
                target=0.064 + 0.001 * place,
            )
            assert answer.status == "ACTIVE", answer
        spec, privacy_filter = store.stream("rides"), store._parts.privacy_filter("rides")
        with store._parts.metadata.read() as tx:
            offered = [offers_of(spec, privacy_filter, one) for one in active(tx, "rides")]
        assert (
            settle(
                privacy_filter, fresh_loss(spec, privacy_filter), offered, n_max=4800
            ).plan.total_samples
            is None
        )
        assert {line.outcome for line in _trained(store, 8000)} == {"PUBLISHED"}
        refused = store.register(
            "more", stream="rides", kind="statistics", config=config(), target=0.05
        )
        assert refused.status == "REJECTED"
        assert refused.nearest_target is not None
        assert refused.nearest_target > 0.05


def _trained(store: Store, rows: int) -> tuple:  # type: ignore[type-arg]
    run_day(store, 0, rows)
    return store.cycles("rides")[0].trained


def test_the_same_ptks_get_the_same_plan_and_a_newcomer_a_short_one(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        first, second = run_day(store, 0), run_day(store, 1)
        assert choices(first) == choices(second)
        assert first.partitions == second.partitions
        answer = store.register(
            "new", stream="rides", kind="statistics", config=config("count"), target=0.06
        )
        assert answer.status == "ACTIVE"
        third = run_day(store, 2)
        assert choices(third).keys() == {*choices(first), "new"}
        assert third.total_samples is not None
        assert third.lower_bound is not None
        assert third.total_samples <= 1.02 * third.lower_bound
    with Store(tmp_path, workers=0) as again:
        fourth = run_day(again, 3)
        assert choices(fourth) == choices(third)
        assert fourth.partitions == third.partitions


def test_a_short_window_does_not_change_the_plan_of_the_usual_ones(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        first = run_day(store, 0)
        second = run_day(store, 1, rows=2500)
        assert second.status == "SHORT"
        assert 0 < len(second.lines) < len(TARGETS)
        assert {line.ptk for line in second.lines} | {
            one.ptk for one in second.left_out
        } == choices(first).keys()
        assert choices(run_day(store, 2)) == choices(first)
