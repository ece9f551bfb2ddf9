"""No time that anybody can read is finer than the public grid, so that none tells how long work on
records took.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as some

from ptklib.errors import Refused
from ptkstore import Store
from ptkstore.api.times import GRAIN_MS, public_entry, public_ms
from ptkstore.metadata import tables
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

# Ten seconds into a minute, long after the records.
START_SECONDS = (FIRST_MS + 30 * DAY_MS) / 1000 + 10
QUIET = ("sealed", "profiled", "trained", "validated", "expired")
# When callers called, and when their tokens end: times of theirs, in tables that readers do not
# see.
THEIRS = ("audit", "deliveries", "leases", "requests", "tokens")


@given(some.integers(0, 2**45), some.integers(0, 2**20))
def test_the_grid_is_never_early_less_than_a_grain_late_and_keeps_the_order(
    exact: int, later: int
) -> None:
    assert 0 <= public_ms(exact) - exact < GRAIN_MS
    assert public_ms(exact) % GRAIN_MS == 0
    assert public_ms(public_ms(exact)) == public_ms(exact)
    assert public_ms(exact) <= public_ms(exact + later)


def test_an_entry_keeps_everything_but_its_times() -> None:
    entry = {
        "kind": "spend",
        "charge": 61_001,
        "at_ms": 61_001,
        "key": "k",
        "slices": [[[[0, 1]], 0, 5]],
    }
    assert public_entry(entry) == entry | {"at_ms": 120_000}
    assert entry["at_ms"] == 61_001


class Clock:
    """Stands still but for the steps that open records, each of which takes so long."""

    def __init__(self, work_seconds: float) -> None:
        self.now, self.work_seconds = START_SECONDS, work_seconds

    def __call__(self) -> float:
        return self.now

    def step(self, name: str, moment: str) -> None:
        if moment == "begins" and name in QUIET:
            self.now += self.work_seconds


def run(path: Path, work_seconds: float) -> tuple[list[Any], list[int]]:
    """All times that are told of one window and of what was done before and after it, by what they
    are of; and all that are stored in tables that are not the callers'.
    """
    clock = Clock(work_seconds)
    with Store(path, workers=0, clock=clock) as store:
        store.parts.observers.add(clock.step)
        store.create_stream(spec())
        for name, statistic in (("speed", "mean"), ("busy", "count")):
            store.register(
                name, stream="rides", kind="statistics", config=config(statistic), target=0.6
            )
        store.push("rides", day(0), seq=0)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert {one.outcome for one in cycle.trained} == {"PUBLISHED"}
        store.deregister("busy")
        found = list(told(store))
    return found, list(stored(path))


def told(store: Store) -> Iterator[tuple[object, ...]]:
    for event in store.events():
        yield "event", event.kind, event.at_ms
    for name in ("speed", "busy"):
        for state in store.states(name):
            yield "state", name, state.created_ms
    for charge in store.charges("rides", limit=1000).charges:
        for key, value in charge.entry.items():
            if key.endswith("_ms"):
                yield "charge", charge.kind, key, value
    with store.parts.metadata.read() as tx:
        plan = tx.plans.latest("rides")
    assert plan is not None
    yield "plan", plan.created_ms


def stored(path: Path) -> Iterator[int]:
    engine = sa.create_engine(f"sqlite:///{path / 'meta.db'}")
    with engine.connect() as connection:
        for table in tables.METADATA.sorted_tables:
            if table.name not in THEIRS:
                for row in connection.execute(table.select()).mappings():
                    yield from _times(dict(row))
    engine.dispose()


def _times(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, one in value.items():
            if str(key).endswith("_ms") and isinstance(one, int):
                yield one
            else:
                yield from _times(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _times(one)


def test_work_that_takes_longer_is_told_alike(tmp_path: Path) -> None:
    fast, _ = run(tmp_path / "fast", 0.125)
    slow, _ = run(tmp_path / "slow", 5.5)
    assert slow == fast
    assert {one[0] for one in fast} == {"charge", "event", "plan", "state"}


def test_every_time_that_is_told_or_stored_is_on_the_grid(tmp_path: Path) -> None:
    found, kept = run(tmp_path, 61.234)
    times = [one[-1] for one in found]
    assert len(set(times)) > 2, "the clock went on between them"
    assert [one for one in [*times, *kept] if one % GRAIN_MS] == []
    assert len(kept) > 30


def test_what_is_asked_for_as_of_a_time_never_changes_once_it_is_over(tmp_path: Path) -> None:
    clock = Clock(1.0)
    with Store(tmp_path, workers=0, clock=clock) as store:
        store.create_stream(spec())
        store.register("speed", stream="rides", kind="statistics", config=config(), target=0.6)
        store.push("rides", day(0), seq=0)
        before = store.parts.now_ms()
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (state,) = store.states("speed")
        assert before < state.created_ms <= before + GRAIN_MS
        assert store.get_state("speed", as_of_ms=state.created_ms).manifest.version == 1
        with pytest.raises(Refused, match="STATE_UNKNOWN"):
            store.get_state("speed", as_of_ms=before)
