"""What if: two plans side by side, and nothing touched."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptklib.errors import SageError
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from tests.engine.small import config
from tests.engine.test_plans import registered, run_day


def files(path: Path) -> dict[str, str]:
    found = [
        one for one in path.rglob("*") if one.is_file() and not one.name.endswith(("-wal", "-shm"))
    ]
    return {str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in found}


def total(store: Store, changes: Changes | None = None) -> int:
    found = store.what_if("rides", changes).proposed.total_samples
    assert found is not None
    return found


def test_nothing_to_change_is_the_plan_as_it_is_and_nothing_is_touched(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        run_day(store, 0)
    with Store(tmp_path, workers=0) as store:
        before, events = files(tmp_path), len(store.events(limit=1000))
        found = store.what_if("rides")
        assert found.current == found.proposed == store.plan_now("rides")
        changes = Changes(remove=("p0",), retarget={"p2": 0.2}, epsilon=2, n_max=50_000)
        assert total(store, changes) < total(store)
        assert len(store.events(limit=1000)) == events
        assert files(tmp_path) == before


def test_changes_move_the_plan_the_way_they_should(tmp_path: Path) -> None:
    with registered(tmp_path) as store:
        now = total(store)
        assert total(store, Changes(remove=("p0",))) < now
        assert total(store, Changes(retarget={"p0": 0.02})) > now
        assert total(store, Changes(epsilon=2)) < now
        new = AddedPtk(name="new", kind="statistics", config=config(), target=0.05)
        found = store.what_if("rides", Changes(add=(new,)))
        assert {line.ptk for line in found.proposed.lines} - {
            line.ptk for line in found.current.lines
        } == {"new"}
        few = store.what_if("rides", Changes(n_max=100)).proposed
        assert (few.status, few.total_samples) == ("INFEASIBLE", None)
        assert few.explanation
        assert store.ptks()[0].target == 0.05


def test_what_has_no_profile_is_named_and_left_out(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05,)) as store:
        clusters = {
            "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
            "clusters": 3,
        }
        new = AddedPtk(name="groups", kind="clusters", config=clusters, target=0.05)
        found = store.what_if("rides", Changes(add=(new,)))
        assert found.unprofiled == ("groups",)
        assert [line.ptk for line in found.proposed.lines] == ["p0"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (Changes(remove=("nobody",)), "PTK_UNKNOWN"),
        (Changes(retarget={"nobody": 0.1}), "PTK_UNKNOWN"),
        (
            Changes(add=(AddedPtk(name="p0", kind="statistics", config=config(), target=0.1),)),
            "PTK_EXISTS",
        ),
        (
            Changes(add=(AddedPtk(name="q", kind="statistics", config={}, target=0.1),)),
            "CONFIG_FIELDS",
        ),
        (Changes(epsilon=-1), "AMOUNT_NEGATIVE"),
        (Changes(composition="none"), "POLICY_INVALID_COMPOSITION"),
    ],
)
def test_bad_changes_have_reasons(tmp_path: Path, changes: Changes, reason: str) -> None:
    with registered(tmp_path, (0.05,)) as store, pytest.raises(SageError) as error:
        store.what_if("rides", changes)
    assert error.value.reason == reason


def test_one_that_was_rejected_can_be_asked_for_with_another_target(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05,)) as store:
        assert (
            store.register(
                "sharp", stream="rides", kind="statistics", config=config(), target=1e-6
            ).status
            == "REJECTED"
        )
        found = store.what_if("rides", Changes(retarget={"sharp": 0.1}))
        assert [line.ptk for line in found.current.lines] == ["p0"]
        assert [line.ptk for line in found.proposed.lines] == ["p0", "sharp"]
        # Asked for again under its name, as registering allows.
        new = AddedPtk(name="sharp", kind="statistics", config=config(), target=0.1)
        assert store.what_if("rides", Changes(add=(new,))).proposed.lines == found.proposed.lines
        assert [one.status for one in store.ptks()] == ["ACTIVE", "REJECTED"]


def test_many_at_once_with_one_request_are_one_approval(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05,)) as store:
        token = store.what_if("rides", Changes(retarget={"p0": 0.1})).token
        with ThreadPoolExecutor(8) as pool:
            plans = [pool.submit(store.approve, "rides", token, request_id="r") for _ in range(8)]
        assert len({one.result().total_samples for one in plans}) == 1
        assert store.ptk("p0").target == 0.1
        assert [one.kind for one in store.events(limit=1000)].count("ptk.accepted") == 2
        with pytest.raises(SageError, match="REQUEST_ID_REUSED"):
            store.approve(
                "rides", store.what_if("rides", Changes(retarget={"p0": 0.2})).token, request_id="r"
            )
