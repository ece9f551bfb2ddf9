"""sage apply makes a store what the file says, on a real store."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.cli.project.declaration import Project
from ptkstore.cli.project.reconcile import Reconciled, reconcile, undeclared
from tests.cli.sage import call, sage
from tests.cli.test_declaration import GOOD

TIGHT = GOOD.replace("target: 0.05", "target: 0.0000001")
# Both PTKs of the template reach such targets alone, and not together.
CROWDED = files("ptkstore").joinpath("templates/taxi/sage.yaml").read_text()
CROWDED = CROWDED.replace("target: 0.05", "target: 0.0065").replace(
    "target: 0.02", "target: 0.0015"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as opened:
        yield opened


def apply(store: Store, tmp_path: Path, text: str) -> dict[str, Reconciled]:
    path = tmp_path / "sage.yaml"
    path.write_text(text)
    project = Project.read(path)
    return {one.name: one for one in reconcile(store, project)}


def statuses(outcomes: dict[str, Reconciled]) -> dict[str, str]:
    return {name: one.status for name, one in outcomes.items()}


def test_twice_is_once(store: Store, tmp_path: Path) -> None:
    assert statuses(apply(store, tmp_path, GOOD)) == {
        "rides": "CREATED",
        "hour-speed": "REGISTERED",
    }
    events = store.events()
    assert statuses(apply(store, tmp_path, GOOD)) == {
        "rides": "UNCHANGED",
        "hour-speed": "UNCHANGED",
    }
    assert store.events() == events


def test_a_target_and_a_configuration_follow_the_file(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    assert apply(store, tmp_path, GOOD.replace("0.05", "0.06"))["hour-speed"].status == "UPDATED"
    assert store.ptk("hour-speed").target == 0.06
    both = GOOD.replace("0.05", "0.07").replace("[mean]", "[mean, count]")
    assert apply(store, tmp_path, both)["hour-speed"].status == "UPDATED"
    view = store.ptk("hour-speed")
    assert (view.target, list(view.config["statistics"]), view.config_version) == (
        0.07,
        ["mean", "count"],
        2,
    )
    assert apply(store, tmp_path, both)["hour-speed"].status == "UNCHANGED"


def test_a_target_becomes_best_effort_and_a_target_again(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    effort = GOOD.replace("target: 0.05", "epsilon: 0.3")
    assert apply(store, tmp_path, effort)["hour-speed"].status == "UPDATED"
    assert (store.ptk("hour-speed").target, store.ptk("hour-speed").epsilon) == (None, "0.3")
    assert apply(store, tmp_path, effort)["hour-speed"].status == "UNCHANGED"
    less = apply(store, tmp_path, effort.replace("0.3", '"1/4"'))["hour-speed"]
    assert less.status == "UPDATED"
    assert store.ptk("hour-speed").epsilon == "0.25"
    over = apply(store, tmp_path, effort.replace("0.3", "3"))["hour-speed"]
    assert over.status == "REJECTED"
    assert [remedy.kind for remedy in over.remedies] == ["epsilon"]
    assert apply(store, tmp_path, GOOD)["hour-speed"].status == "UPDATED"
    assert (store.ptk("hour-speed").target, store.ptk("hour-speed").epsilon) == (0.05, None)


def test_best_effort_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "sage.yaml").write_text(GOOD.replace("target: 0.05", "epsilon: 0.3"))
    assert "REGISTERED" in call("apply", cwd=tmp_path).out
    assert "best effort, epsilon 0.3" in call("ptk", "list", cwd=tmp_path).out
    described = call("ptk", "describe", "hour-speed", cwd=tmp_path).out
    assert "epsilon 0.3, on 64 samples at least" in described
    assert "best effort" in call("plan", cwd=tmp_path).out
    told = call("ptk", "retarget", "hour-speed", "0.05", cwd=tmp_path).out
    assert "hour-speed ACTIVE: planned with epsilon" in told
    assert "best effort" not in call("ptk", "list", cwd=tmp_path).out
    told = call("ptk", "retarget", "hour-speed", "--epsilon", "0.2", cwd=tmp_path).out
    assert "planned with epsilon 0.2; best effort" in told
    config = '{"keys": [{"kind": "time_part", "column": "at", "part": "weekday"}], "statistics": ["count"]}'
    ask = ("ptk", "register", "days", "--stream", "rides", "--kind", "statistics")
    told = call(*ask, "--config", config, "--epsilon", "7", cwd=tmp_path, code=1).out
    assert "REJECTED" in told
    assert "or: State epsilon" in told
    neither = call(*ask, "--config", config, "--json", cwd=tmp_path, code=2)
    assert neither.error["reason"] == "TARGET_OR_EPSILON"


def test_a_newcomer_that_does_not_fit_is_rejected_and_may_ask_again(
    store: Store, tmp_path: Path
) -> None:
    events = store.events()
    first = apply(store, tmp_path, CROWDED)
    assert statuses(first) == {
        "rides": "SKIPPED",
        "hour-speed": "SKIPPED",
        "zone-fare": "REJECTED",
    }
    # All or nothing.
    assert (store.streams(), store.ptks(), store.events()) == ([], [], events)
    rejected = first["zone-fare"]
    assert rejected.reason
    assert rejected.nearest_target is not None
    assert [remedy.text for remedy in rejected.remedies] == list(rejected.changes)
    assert rejected.remedies
    nearest = CROWDED.replace("0.0015", str(rejected.nearest_target))
    assert statuses(apply(store, tmp_path, nearest)) == {
        "rides": "CREATED",
        "hour-speed": "REGISTERED",
        "zone-fare": "REGISTERED",
    }


def test_a_change_that_does_not_fit_leaves_what_was(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    told = apply(store, tmp_path, TIGHT)["hour-speed"]
    assert told.status == "REJECTED"
    assert told.nearest_target is not None
    assert store.ptk("hour-speed").target == 0.05
    assert store.ptk("hour-speed").status == "ACTIVE"


def test_a_configuration_that_needs_the_new_target_comes_with_it(
    store: Store, tmp_path: Path
) -> None:
    # A key with a quarter of the share has a quarter of the samples: too few for the old target,
    # enough for the new one.
    small = GOOD.replace("    columns:", "    n_max: 3000\n    columns:").replace(
        "      statistics", "      min_share: 0.04\n      statistics"
    )
    assert apply(store, tmp_path, small)["hour-speed"].status == "REGISTERED"
    finer = small.replace("min_share: 0.04", "min_share: 0.01")
    assert apply(store, tmp_path, finer)["hour-speed"].status == "REJECTED"
    looser = finer.replace("target: 0.05", "target: 0.3")
    assert apply(store, tmp_path, looser)["hour-speed"].status == "UPDATED"
    view = store.ptk("hour-speed")
    assert (view.target, view.config["min_share"]) == (0.3, 0.01)


def test_a_stream_never_changes_and_its_ptks_are_left_alone(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    changed = apply(
        store, tmp_path, GOOD.replace("upper: 80}", "upper: 90}").replace("0.05", "0.06")
    )
    assert statuses(changed) == {"rides": "REJECTED", "hour-speed": "SKIPPED"}
    assert "columns" in changed["rides"].reason
    assert store.ptk("hour-speed").target == 0.05


@pytest.mark.parametrize(("field", "value"), [("train_every", "2"), ("over", "{rolling: 2}")])
def test_what_a_ptk_cannot_change(store: Store, tmp_path: Path, field: str, value: str) -> None:
    apply(store, tmp_path, GOOD)
    new = f"target: 0.05\n    {field}: {value}"
    told = apply(store, tmp_path, GOOD.replace("target: 0.05", new))["hour-speed"]
    assert told.status == "REJECTED"
    assert field in told.reason


def test_a_ptk_is_registered_over_the_windows_that_it_says(store: Store, tmp_path: Path) -> None:
    text = GOOD.replace("target: 0.05", "target: 0.05\n    over: {decay: 0.9}")
    assert statuses(apply(store, tmp_path, text))["hour-speed"] == "REGISTERED"
    assert store.ptk("hour-speed").over == "decay:0.9"
    assert statuses(apply(store, tmp_path, text))["hour-speed"] == "UNCHANGED"


def test_a_retired_ptk_stays_retired(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    store.deregister("hour-speed")
    told = apply(store, tmp_path, GOOD)["hour-speed"]
    assert told.status == "REJECTED"
    assert "retired" in told.reason
    assert store.ptk("hour-speed").status == "RETIRED"


def test_what_is_not_declared_is_named_and_left(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, GOOD)
    path = tmp_path / "sage.yaml"
    path.write_text("ptks: []\n")
    project = Project.read(path)
    assert reconcile(store, project) == []
    assert undeclared(store, project) == ["hour-speed"]
    assert store.ptk("hour-speed").status == "ACTIVE"


def test_a_stream_that_nobody_has_is_noticed_before_anything_is_done(
    store: Store, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="STREAM_UNKNOWN") as caught:
        apply(store, tmp_path, GOOD.replace("stream: rides", "stream: walks"))
    assert caught.value.details["line"] == 10
    assert store.streams() == []


def test_what_only_the_store_can_know_is_told_at_the_line_of_its_ptk(
    store: Store, tmp_path: Path
) -> None:
    wrong = GOOD.replace("value: speed\n", "value: nowhere\n")
    assert wrong != GOOD
    with pytest.raises(InvalidInput, match="COLUMN_UNKNOWN") as caught:
        apply(store, tmp_path, wrong)
    # The line of its config.
    assert caught.value.details["line"] == 13
    assert caught.value.details["ptk"] == "hour-speed"
    assert store.streams() == []


def test_the_command_exits_with_1_when_anything_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "sage.yaml").write_text(CROWDED)
    run = sage("apply", cwd=tmp_path, code=1)
    assert "zone-fare REJECTED: " in run.out
    assert "nearest feasible target: " in run.out
    *_, outcome = sage("apply", "--json", cwd=tmp_path, code=1).json["outcomes"]
    assert outcome["status"] == "REJECTED"
    assert outcome["nearest_target"] > 0.0015


def test_the_project_is_here_or_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "sage.yaml").write_text(GOOD)
    call("apply", "--store", "store", cwd=tmp_path)
    (tmp_path / "sage.yaml").write_text(GOOD.replace("0.05", "0.06"))
    changed = call("apply", "--store", "store", "--json", cwd=tmp_path).json["outcomes"]
    assert [one["status"] for one in changed] == ["UNCHANGED", "UPDATED"]
    named = call("apply", "--store", "store", "-f", "store/sage.yaml", "--json", cwd=tmp_path).json[
        "outcomes"
    ]
    assert [one["status"] for one in named] == ["UNCHANGED", "UPDATED"]


def test_the_use_of_a_stream_follows_the_file_where_it_says_one(
    store: Store, tmp_path: Path
) -> None:
    apply(store, tmp_path, GOOD)
    assert store.stream("rides").use == "surplus"
    name = "- name: rides"
    assert GOOD.count(name) == 1
    less = GOOD.replace(name, f"{name}\n    use: minimum")
    assert statuses(apply(store, tmp_path, less))["rides"] == "UPDATED"
    assert store.stream("rides").use == "minimum"
    assert statuses(apply(store, tmp_path, less))["rides"] == "UNCHANGED"
    # Where the file says nothing of it, the stream goes on as it does.
    assert statuses(apply(store, tmp_path, GOOD))["rides"] == "UNCHANGED"
    assert store.stream("rides").use == "minimum"
