"""Changes are applied all at once or not at all, planned once, and again where something changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput, PlanContended, Refused, SageError
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.views.remedies import remedies_of
from ptkstore.engine.plans import answering, applying
from ptkstore.engine.plans.deciding import TRIES
from tests.engine.small import config, open_store, spec

CLUSTERS = {
    "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
    "clusters": 3,
}


def added(name: str, target: float = 0.1, **more: Any) -> AddedPtk:
    fields: dict[str, Any] = {"kind": "statistics", "config": config(), "stream": "rides"}
    return AddedPtk(name=name, target=target, **(fields | more))


def small(path: Path) -> Store:
    return open_store(path, policy=Policy(epsilon=1, delta=0), n_max=6000)


def state(store: Store) -> Any:
    return store.streams(), store.ptks(), store.events(limit=1000)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many PTKs each plan was asked for."""
    asked: list[int] = []
    preview = answering.preview

    def counted(spec: Any, judge: Any, candidates: Any, effort: Any) -> Any:
        asked.append(len(candidates))
        return preview(spec, judge, candidates, effort)

    monkeypatch.setattr(answering, "preview", counted)
    return asked


def test_everything_at_once_is_planned_once(tmp_path: Path, plans: list[int]) -> None:
    with small(tmp_path) as store:
        for name in ("old", "kept", "gone"):
            store.register(name, stream="rides", kind="statistics", config=config(), target=0.2)
        plans.clear()
        other = spec(name="other", policy=Policy(epsilon=1, delta=0))
        changes = Changes(
            streams=(other,),
            add=(added("a"), added("b", 0.2), added("c", stream="other", train_every=2)),
            retarget={"old": 0.15},
            reconfigure={"kept": config("count")},
            remove=("gone",),
        )
        applied = store.apply(changes)
        # One plan for each stream: old, kept, a and b; and c.
        assert sorted(plans) == [1, 4]
        assert applied.streams == ("other",)
        assert applied.retired == ("gone",)
        assert {one.name: one.status for one in applied.registrations} == dict.fromkeys(
            ("old", "kept", "a", "b", "c"), "ACTIVE"
        )
        assert all(one.planned_samples for one in applied.registrations)
        now = {one.name: (one.status, one.target, one.train_every) for one in store.ptks()}
        assert now == {
            "old": ("ACTIVE", 0.15, 1),
            "kept": ("ACTIVE", 0.2, 1),
            "gone": ("RETIRED", 0.2, 1),
            "a": ("ACTIVE", 0.1, 1),
            "b": ("ACTIVE", 0.2, 1),
            "c": ("ACTIVE", 0.1, 2),
        }
        assert store.ptk("kept").config_version == 2
        assert store.stream("other") == other
    with Store(tmp_path, workers=0) as store:
        assert [one.name for one in store.streams()] == ["other", "rides"]


def test_one_that_has_no_place_is_the_refusal_of_all(tmp_path: Path) -> None:
    with small(tmp_path) as store:
        store.register("old", stream="rides", kind="statistics", config=config(), target=0.05)
        before = state(store)
        changes = Changes(
            streams=(spec(name="other"),),
            add=(added("fits", 0.2), added("tight", 0.0001)),
            remove=("old",),
        )
        with pytest.raises(Refused) as caught:
            store.apply(changes)
        error = caught.value
        assert error.reason == "PLAN_INFEASIBLE"
        assert (error.details["ptk"], error.details["stream"]) == ("tight", "rides")
        assert isinstance(error.details["nearest_target"], float)
        assert [one.ptk for one in remedies_of(error) if one.kind == "remove"] == ["tight"]
        assert state(store) == before
        assert "other" not in store.parts.ledger.streams()


def test_one_that_waits_for_its_profile_is_no_refusal(tmp_path: Path) -> None:
    with small(tmp_path) as store:
        groups = added("groups", 0.5, kind="clusters", config=CLUSTERS)
        applied = store.apply(Changes(add=(groups, added("a"))))
        assert [(one.name, one.status) for one in applied.registrations] == [
            ("groups", "WAITING"),
            ("a", "ACTIVE"),
        ]
        assert store.ptk("groups").status == "WAITING"


def test_what_changes_meanwhile_is_planned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plans: list[int]
) -> None:
    with small(tmp_path) as store:
        meddled: list[str] = []
        planned = applying._planned

        def meddling(home: Any, snapshot: Any) -> Any:
            answers = planned(home, snapshot)
            if not meddled:
                meddled.append("other")
                with home.metadata.write() as tx:
                    row = tx.ptks.create("other", "rides", "statistics", config(), 0.2, 1, at_ms=0)
                    tx.ptks.set_status(row.id, "ACTIVE", at_ms=0)
            return answers

        monkeypatch.setattr(applying, "_planned", meddling)
        store.apply(Changes(add=(added("a"),)))
        assert plans == [1, 2]
        assert {one.name: one.status for one in store.ptks()} == {"other": "ACTIVE", "a": "ACTIVE"}


def test_what_changes_again_and_again_is_contended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small(tmp_path) as store:
        planned = applying._planned
        numbers = iter(range(100))

        def meddling(home: Any, snapshot: Any) -> Any:
            with home.metadata.write() as tx:
                name = f"other-{next(numbers)}"
                row = tx.ptks.create(name, "rides", "statistics", config(), 0.5, 1, at_ms=0)
                tx.ptks.set_status(row.id, "ACTIVE", at_ms=0)
            return planned(home, snapshot)

        monkeypatch.setattr(applying, "_planned", meddling)
        with pytest.raises(PlanContended):
            store.apply(Changes(add=(added("a", 0.5),)))
        assert next(numbers) == TRIES
        assert "a" not in {one.name for one in store.ptks()}


def test_the_same_request_gives_the_first_answer(tmp_path: Path, plans: list[int]) -> None:
    with small(tmp_path) as store:
        changes = Changes(add=(added("a"),))
        first = store.apply(changes, request_id="once")
        before = state(store)
        assert store.apply(changes, request_id="once") == first
        assert plans == [1]
        assert state(store) == before
        with pytest.raises(SageError, match="REQUEST_ID_REUSED"):
            store.apply(Changes(add=(added("b"),)), request_id="once")
        with pytest.raises(Refused, match="PTK_EXISTS"):
            store.apply(changes)


@pytest.mark.parametrize(
    ("changes", "reason", "details"),
    [
        (Changes(remove=("nobody",)), "PTK_UNKNOWN", {}),
        (Changes(epsilon=2), "CHANGE_INVALID", {}),
        (Changes(add=(added("a"), added("a"))), "CHANGE_INVALID", {}),
        (Changes(add=(added("a", stream="nowhere"),)), "STREAM_UNKNOWN", {"field": "stream"}),
        (Changes(add=(added("a", kind="nothing"),)), "PTK_KIND_UNKNOWN", {"field": "kind"}),
        (
            Changes(add=(added("b"), added("a", config={**config(), "keys": 3}))),
            "CONFIG_INVALID",
            {"ptk": "a", "field": "config.keys"},
        ),
        (Changes(streams=(spec(),)), "STREAM_EXISTS", {"stream": "rides"}),
        (Changes(add=(added("a", train_every=0),)), "VALUE_INVALID", {"field": "train_every"}),
    ],
)
def test_bad_changes_change_nothing(
    tmp_path: Path, changes: Changes, reason: str, details: dict[str, str]
) -> None:
    with small(tmp_path) as store:
        before = state(store)
        with pytest.raises(SageError) as caught:
            store.apply(changes)
        assert caught.value.reason == reason
        assert details.items() <= caught.value.details.items()
        assert state(store) == before


def test_changes_have_one_form() -> None:
    changes = Changes(
        streams=(spec(),),
        add=(added("a", train_every=3),),
        remove=("b",),
        retarget={"c": 0.5},
        reconfigure={"d": config()},
        epsilon="0.5",
        delta="1e-6",
        composition="renyi",
        n_max=5,
    )
    assert Changes.from_json(json.loads(json.dumps(changes.as_json()))) == changes
    assert Changes.from_json(Changes().as_json()) == Changes()
    assert Changes().as_json() == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], None),
        ({"more": 1}, None),
        ({"add": {}}, "add"),
        ({"add": [{"name": "a", "kind": "k", "config": {}, "target": "x"}]}, "add.0.target"),
        ({"add": [{"name": "a"}]}, "add.0"),
        ({"remove": [1]}, "remove"),
        ({"retarget": {"a": "x"}}, "retarget"),
        ({"reconfigure": {"a": 1}}, "reconfigure"),
        ({"streams": [{**spec().as_json(), "n_max": 0}]}, "streams.0.n_max"),
    ],
)
def test_a_form_that_is_none_is_refused(body: Any, field: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        Changes.from_json(body)
    assert caught.value.details.get("field") == field
