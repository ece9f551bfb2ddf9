"""States over time: what each choice of windows puts into a state, and that none costs more."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptklib.errors import InvalidInput, SageError
from ptklib.ledger.policy import Policy
from ptklib.ptks.statistics import Statistics
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.over import Over
from ptkstore.engine.steps.assigned import Assigned
from tests.engine.small import DAY_MS, FIRST_MS, ROWS, config, day, open_store

DAYS = 4
OVERS = {"every": "all", "alone": "last", "two": "rolling:2", "fading": "decay:0.5"}
# Of statistics "count": one record adds so much to its total.
FOREST: dict[str, Any] = {
    "inputs": [{"kind": "number", "column": "speed", "lower": 0.0, "upper": 60.0}],
    "label": "hour",
    "lower": 0.0,
    "upper": 23.0,
    "trees": 2,
    "depth": 2,
}


def register(store: Store, name: str, over: str, **more: Any) -> None:
    asked: dict[str, Any] = {
        "kind": "statistics",
        "config": config("count"),
        "target": 0.1,
        "over": over,
    }
    assert store.register(name, stream="rides", **(asked | more)).status == "ACTIVE"


def run_days(store: Store, *numbers: int) -> None:
    for number in numbers:
        store.push("rides", day(number), producer="test", seq=number)
        store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)


def parts_of(store: Store, name: str, version: int) -> list[Any]:
    """The states of one window that a version says it was made of."""
    manifest = store.get_state(f"{name}@v{version}").manifest
    return [store._parts.lake.get(digest) for _, digest in manifest.parts or ()]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A store with a PTK of every choice, after some windows."""
    path, policy = tmp_path_factory.mktemp("over"), Policy(epsilon=1, delta=0)
    with open_store(path, policy=policy) as store:
        for name, over in OVERS.items():
            register(store, name, over)
        run_days(store, *range(DAYS))
        yield store


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("every", (1, 1, 1, 1)),
        ("alone", (0, 0, 0, 1)),
        ("two", (0, 0, 1, 1)),
        ("fading", (0.125, 0.25, 0.5, 1)),
    ],
)
def test_a_state_holds_the_windows_of_its_choice(
    lived: Store, name: str, weights: tuple[float, ...]
) -> None:
    versions = [lived.get_state(f"{name}@v{number + 1}") for number in range(DAYS)]
    wanted = sum(
        weight * (version.manifest.samples or 0)
        for weight, version in zip(weights, versions, strict=True)
    )
    held = lived.get_state(name).arrays["totals"].sum()
    noise = np.sqrt(24 * 2 * DAYS) / min(float(one.manifest.epsilon) for one in versions)
    # What is sampled is random as well: a binomial of all records of a window.
    slack = 6 * float(np.hypot(noise, np.sqrt(ROWS * DAYS) / 2))
    assert slack < (versions[-1].manifest.samples or 0) / 3, "or nothing could be told apart"
    assert abs(held - wanted) < slack
    first = int((versions[0].manifest.windows or ("0",))[0])
    oldest = next(first + place for place, weight in enumerate(weights) if weight)
    assert versions[-1].manifest.windows == (str(oldest), str(first + DAYS - 1))
    assert lived.ptk(name).over == OVERS[name]
    assert versions[-1].manifest.over == (None if name == "every" else OVERS[name])


def test_a_rolling_state_is_exactly_the_sum_of_its_parts(lived: Store) -> None:
    import safetensors.numpy

    for version in range(1, DAYS + 1):
        parts = [safetensors.numpy.load(arrays) for arrays, _ in parts_of(lived, "two", version)]
        assert len(parts) == min(2, version)
        state = lived.get_state(f"two@v{version}").arrays
        assert np.array_equal(state["totals"], np.sum([one["totals"] for one in parts], axis=0))
        assert state["windows"].tolist() == [len(parts)]
    assert not parts_of(lived, "every", DAYS)


def test_no_choice_is_charged_more_than_another(lived: Store) -> None:
    """One charge for each PTK and window, that of its one training, whatever is put together."""
    history = [one for one in lived._parts.ledger.history() if one["kind"] == "reserve"]
    names = [entry["key"].split("/")[1] for entry in history]
    assert {name: names.count(name) for name in OVERS} == dict.fromkeys(OVERS, DAYS)
    assert set(names) == {*OVERS, "count"}
    for name in OVERS:
        versions = lived.states(name)
        spent = [one["demand"][0] for one in history if one["key"].endswith(f"/{name}")]
        assert sorted(spent) == sorted(round(float(one.epsilon) * 1e9) for one in versions)


def test_parts_are_kept_as_states_are(lived: Store) -> None:
    with lived._parts.metadata.read() as tx:
        known = tx.states.digests()
    manifest = lived.get_state("two").manifest
    assert len(manifest.parts or ()) == 2
    assert {digest for _, digest in manifest.parts or ()} <= known
    assert not [one for one in lived.doctor() if one.level == "ERROR"]


def test_windows_without_a_training_count(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        register(store, "two", "rolling:3", train_every=2)
        register(store, "fading", "decay:0.5", train_every=2)
        run_days(store, *range(5))
        for name in ("two", "fading"):
            versions = [store.get_state(f"{name}@v{one.version}") for one in store.states(name)]
            assert len(versions) in (2, 3)
            totals = [one.arrays["totals"].sum() for one in versions]
            samples = [one.manifest.samples or 0 for one in versions]
            # A window in which it did not train lies between.
            wanted = samples[1] + samples[0] * (1 if name == "two" else 0.25)
            # Noise of 24 cells, and what is sampled: 0.2 is six times their deviations and more.
            assert abs(totals[1] - wanted) < 0.2 * samples[0]
        assert len(store.get_state("two").manifest.parts or ()) == 2


def test_another_configuration_begins_anew(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        register(store, "two", "rolling:2")
        run_days(store, 0)
        assert store.update_config("two", config("mean")).status == "ACTIVE"
        run_days(store, 1)
        manifest = store.get_state("two").manifest
        assert (manifest.previous, len(manifest.parts or ())) == (None, 1)


@pytest.mark.parametrize("over", ["rolling:2", "decay:0.5"])
def test_states_that_do_not_go_together_fail_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    def broken(*_given: Any, **_more: Any) -> Any:
        raise ArithmeticError("with a text that may hold anything")

    with open_store(tmp_path) as store:
        register(store, "two", over)
        run_days(store, 0, 1)
        monkeypatch.setattr(Statistics, "combined", broken)
        run_days(store, 2)
        (line,) = store.cycles("rides")[-1].trained
        assert line.outcome == "TRAIN_FAILED"
        assert line.reason.startswith("ArithmeticError at test_over.py")
        monkeypatch.undo()
        run_days(store, 3)
        assert store.cycles("rides")[-1].status == "DONE"


@pytest.mark.parametrize(
    ("over", "kind", "body", "reason"),
    [
        ("rolling:0", "statistics", config(), "OVER_INVALID"),
        ("decay:1", "statistics", config(), "OVER_INVALID"),
        ("sometimes", "statistics", config(), "OVER_INVALID"),
        ("rolling:3", "forest", FOREST, "OVER_UNSUPPORTED"),
        ("decay:0.9", "forest", FOREST, "OVER_UNSUPPORTED"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, over: str, kind: str, body: dict[str, Any], reason: str
) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(InvalidInput) as caught:
            store.register("p", stream="rides", kind=kind, config=body, target=0.1, over=over)
        assert (caught.value.reason, caught.value.details["field"]) == (reason, "over")
        new = AddedPtk(name="p", stream="rides", kind=kind, config=body, target=0.1, over=over)
        with pytest.raises(SageError) as refused:
            store.apply(Changes(add=(new,)))
        assert refused.value.reason == reason
        assert not store.ptks()


def test_a_configuration_that_does_not_add_up_is_refused_later_too(tmp_path: Path) -> None:
    grown = FOREST | {"splits": "random"}
    with open_store(tmp_path) as store:
        answer = store.register(
            "p", stream="rides", kind="forest", config=grown, target=0.5, over="rolling:3"
        )
        assert answer.status == "WAITING"
        with pytest.raises(InvalidInput) as caught:
            store.update_config("p", FOREST)
        assert caught.value.reason == "OVER_UNSUPPORTED"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("all", "all"),
        ("last", "last"),
        ("rolling:007", "rolling:7"),
        ({"rolling": 7}, "rolling:7"),
        ({"decay": 0.9}, "decay:0.9"),
        ("decay:.250", "decay:0.25"),
    ],
)
def test_a_choice_has_one_spelling(value: object, text: str) -> None:
    assert Over.of(value).text == text
    assert Over.of(text) == Over.of(value)


@pytest.mark.parametrize(
    "value",
    ["", "rolling", "all:1", "decay:-1", "decay:0.1234567", {"rolling": True}, {"all": 1}, 7, None],
)
def test_any_other_is_none(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Over.of(value)
    assert caught.value.reason == "OVER_INVALID"


def test_how_much_a_window_counts() -> None:
    weights = {text: [Over.of(text).weight(ago) for ago in range(3)] for text in OVERS.values()}
    half = Fraction(1, 2)
    assert weights == {
        "all": [1, 1, 1],
        "last": [1, 0, 0],
        "rolling:2": [1, 1, 0],
        "decay:0.5": [1, half, half**2],
    }


def test_cycles_from_before_there_was_a_choice_are_over_all_windows() -> None:
    body: dict[str, Any] = {
        **dict.fromkeys(("ptk", "samples", "version"), 1),
        **dict.fromkeys(("name", "kind", "epsilon", "delta"), "1"),
        **dict.fromkeys(("previous", "previous_oldest"), None),
        "config": {},
        "target": 0.1,
        "ranges": [["0", "8"]],
        "memory_bytes": None,
    }
    assigned = Assigned.from_json(body)
    assert assigned.over == "all"
    assert assigned.as_json() == body
    rolling = body | {"over": "rolling:2", "previous_newest": "4", "parts": [["4", "aa"]]}
    assert Assigned.from_json(rolling).as_json() == rolling
