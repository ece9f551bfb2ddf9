"""A quota that training has of a stream's promise is what plans are made within: whoever is
accepted trains, and nobody's window is refused as a whole.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptklib.privacy.amounts import exact
from ptkstore import Store
from tests.engine.small import config, open_store
from tests.engine.test_surplus import COMPOSITIONS, ENOUGH, run_day


def fill(store: Store, mechanism: str) -> list[str]:
    """Register PTKs until one is refused; the names of those that were accepted."""
    body = config("mean") | {"mechanism": mechanism}
    names: list[str] = []
    for number in range(64):
        answer = store.register(
            f"mean-{number}", stream="rides", kind="statistics", config=body, target=0.3
        )
        if answer.status != "ACTIVE":
            return names
        names.append(answer.name)
    raise AssertionError("no end of PTKs within a quota")


@pytest.mark.parametrize(
    ("composition", "use"), [*((name, "surplus") for name in COMPOSITIONS), ("renyi", "minimum")]
)
def test_everybody_accepted_within_the_quota_of_the_door_trains(
    tmp_path: Path, composition: str, use: str
) -> None:
    policy, mechanism = COMPOSITIONS[composition]
    changes = {"use": use, "count_epsilon": "0.02", "n_max": ENOUGH // 4}
    with open_store(tmp_path, policy=policy, quotas={"door:ptk": "0.4"}, **changes) as store:
        accepted = fill(store, mechanism)
        run_day(store, 0, ENOUGH)
        (cycle,) = store.cycles("rides")
    assert {line.ptk for line in cycle.trained} == set(accepted) != set()
    assert {(line.outcome, line.reason) for line in cycle.trained} == {("PUBLISHED", "")}


def test_no_level_beyond_a_quota_of_its_own_is_planned(tmp_path: Path) -> None:
    with open_store(tmp_path, quotas={"ptk:mean": "0.1"}, use="minimum") as store:
        promise = exact(store.stream("rides").policy.epsilon)
        answer = store.register(
            "mean", stream="rides", kind="statistics", config=config("mean"), target=0.2
        )
        assert answer.status == "ACTIVE"
        plan = run_day(store, 0, ENOUGH)
        assert [line.outcome for line in store.cycles("rides")[0].trained] == ["PUBLISHED"]
        assert 0 < exact(plan.lines[0].epsilon) <= promise / 10
