"""A window that is smaller than usual trains what fits, by the stated rule, and says aloud what it
did not publish and why.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from allocator.admission.short_window import carried_by
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.views import CycleView, Finding
from ptkstore.engine.plans.planning import fresh_loss, offers_of
from ptkstore.engine.plans.registrations import active
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

USUAL = 9000
TARGETS = (0.05, 0.01, 0.08, 0.02, 0.06, 0.005)
MEANS = (0.05, 0.06, 0.08)
PURE = Policy(epsilon=1, delta=0)


def registered(path: Path, targets: tuple[float, ...] = TARGETS, **changes: Any) -> Store:
    store = open_store(path, policy=PURE, **changes)
    for place, target in enumerate(targets):
        statistic = "mean" if target in MEANS else "count"
        answer = store.register(
            f"p{place}", stream="rides", kind="statistics", config=config(statistic), target=target
        )
        assert answer.status == "ACTIVE", answer
    return store


def run_day(store: Store, number: int, rows: int) -> CycleView:
    store.push("rides", day(number, rows), producer="test", seq=number)
    (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    return cycle


def outcomes(cycle: CycleView) -> dict[str, tuple[str, str]]:
    return {line.ptk: (line.outcome, line.reason) for line in cycle.trained}


def published(cycle: CycleView) -> set[str]:
    return {line.ptk for line in cycle.trained if line.outcome == "PUBLISHED"}


def told(store: Store, kind: str) -> list[dict[str, Any]]:
    return [event.body for event in store.events(limit=10_000) if event.kind == kind]


def about_windows(store: Store) -> Finding:
    return next(one for one in store.doctor() if one.what == "windows of rides")


def test_what_fits_a_first_window_that_is_small_is_trained_and_the_rest_is_said_aloud(
    tmp_path: Path,
) -> None:
    with registered(tmp_path, (0.05, 0.02)) as store:
        cycle = run_day(store, 0, 1500)
        assert outcomes(cycle) == {"p0": ("SKIPPED", "WINDOW_TOO_SMALL"), "p1": ("PUBLISHED", "")}
        assert (cycle.status, cycle.plan_status) == ("SHORT", "SHORT")
        assert "1 of 2 PTKs" in cycle.shortfall
        assert "p0" in cycle.shortfall
        assert cycle.changes
        (event,) = told(store, "window.short")
        assert event["missing"] == [
            {"ptk": "p0", "outcome": "SKIPPED", "reason": "WINDOW_TOO_SMALL"}
        ]
        assert event["reason"] == cycle.shortfall
        assert event["changes"] == list(cycle.changes)
        plan = store.plan("rides")
        assert plan is not None
        assert [(one.ptk, one.reason) for one in plan.left_out] == [("p0", "WINDOW_TOO_SMALL")]
        assert [line.ptk for line in plan.lines] == ["p1"]
        found = about_windows(store)
        assert found.level == "ERROR"
        assert "p0" in found.detail
        # A window of the usual size makes good for it.
        cycle = run_day(store, 1, USUAL)
        assert (cycle.status, cycle.shortfall, cycle.changes) == ("DONE", "", ())
        assert published(cycle) == {"p0", "p1"}
        assert about_windows(store).level == "OK"
        assert len(told(store, "window.short")) == 1
        assert store._parts.ledger.verify()


def carried(
    store: Store, cycle: CycleView, since: dict[str, int], last: dict[str, int]
) -> set[str]:
    """The set of the rule for a window of that DP size, from public numbers alone."""
    spec, privacy_filter = store.stream("rides"), store._parts.privacy_filter("rides")
    with store._parts.metadata.read() as tx:
        ptks = active(tx, "rides")
    line = sorted(
        ptks,
        key=lambda one: (since.get(one.row.name, 10**9), last.get(one.row.name, -1), one.row.id),
    )
    offered = [offers_of(spec, privacy_filter, one) for one in line]
    room = int(cycle.dp_records * (1 - Fraction(spec.profile_share))) - 1
    found = carried_by(
        privacy_filter,
        fresh_loss(spec, privacy_filter),
        offered,
        n_max=min(spec.n_max, room),
        overdue=set(since),
    )
    return set(found.members)


@pytest.mark.parametrize("percent", [1, 8, 20, 40, 60, 80, 100])
def test_windows_of_every_size_publish_the_largest_set_and_every_ptk_that_fits_alone(
    tmp_path: Path, percent: int
) -> None:
    rows = USUAL * percent // 100
    with registered(tmp_path) as store:
        steps: list[str] = []

        def heard(step: str, moment: str) -> None:
            if (step, moment) == ("expired", "begins"):
                steps.append(str(len(told(store, "window.short"))))

        store._parts.observers.add(heard)
        since: dict[str, int] = {}
        last: dict[str, int] = {}
        trained: set[str] = set()
        alone: set[str] = {f"p{place}" for place in range(len(TARGETS))}
        short = 0
        for number in range(len(TARGETS) + 1):
            cycle = run_day(store, number, rows)
            window = cycle.window
            expected = carried(store, cycle, since, last)
            assert published(cycle) == expected
            alone &= {
                name
                for name, (_, reason) in outcomes(cycle).items()
                if reason in ("", "OTHERS_FIRST")
            }
            short += len(expected) < len(TARGETS)
            assert cycle.status == ("SHORT" if len(expected) < len(TARGETS) else "DONE")
            # It was told before the keys were destroyed.
            assert steps[-1] == str(short)
            since = {
                name: since.get(name, window) for name in outcomes(cycle) if name not in expected
            }
            last |= dict.fromkeys(expected, window)
            trained |= expected
        assert trained >= alone
        assert len(told(store, "window.short")) == short
        assert percent != 100 or trained == alone == {f"p{place}" for place in range(len(TARGETS))}
        assert percent != 1 or not trained


def test_a_large_ptk_and_two_small_ones_take_turns(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05, 0.005, 0.005)) as store:
        rows, turns = 2740, []
        for number in range(6):
            cycle = run_day(store, number, rows)
            turns.append(published(cycle))
            assert {reason for _, reason in outcomes(cycle).values()} <= {"", "OTHERS_FIRST"}
        assert turns == [{"p1", "p2"}, {"p0"}] * 3


def test_a_window_without_a_record_is_loud(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05, 0.02)) as store:
        run_day(store, 0, USUAL)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert {reason for _, reason in outcomes(cycle).values()} == {"WINDOW_TOO_SMALL"}
        assert (cycle.status, cycle.plan_status) == ("SHORT", "INFEASIBLE")
        assert len(told(store, "window.short")) == 1


def test_windows_in_which_nobody_is_due_are_quiet(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=PURE) as store:
        assert run_day(store, 0, 50).status == "DONE"
        first = FIRST_MS // DAY_MS
        answer = store.register(
            "rare",
            stream="rides",
            kind="statistics",
            config=config("count"),
            target=0.05,
            train_every=2,
        )
        assert answer.status == "ACTIVE"
        for number in (1, 2):
            cycle = run_day(store, number, 50)
            due = (first + number) % 2 == 0
            assert cycle.status == ("SHORT" if due else "DONE")
            assert bool(cycle.shortfall) == due
        assert len(told(store, "window.short")) == 1


def test_a_short_window_that_was_killed_before_its_end_tells_once_and_ends_short(
    tmp_path: Path,
) -> None:
    class Killed(Exception):
        pass

    with registered(tmp_path, (0.05, 0.02)) as store:

        def kill(step: str, moment: str) -> None:
            if (step, moment) == ("expired", "begins"):
                raise Killed

        store._parts.observers.add(kill)
        with pytest.raises(Killed):
            run_day(store, 0, 1500)
        assert len(told(store, "window.short")) == 1
    with Store(tmp_path, workers=0) as again:
        (cycle,) = again.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert cycle.status == "SHORT"
        assert len(told(again, "window.short")) == 1
