"""PtkTransformer: a scikit-learn transformer like any other, whose features are those of
featurize.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key
from ptklib.errors import InvalidInput
from ptklib.features import featurize
from ptklib.ptks.statistics import Statistics
from ptklib.sklearn import PtkTransformer
from ptklib.state import State


def state_of(key: Key, *, name: str) -> State:
    ptk = Statistics(
        keys=(key,), statistics=("mean", "count"), value="fare", lower=0, upper=10, prefix=name
    )
    totals = (np.arange(ptk.cells * 2).reshape(ptk.cells, 2) + 1) * 4096
    return State.make(
        ptk, {"totals": totals, "windows": np.ones(1, np.int64)}, name=name, epsilon=1
    )


ZONES = state_of(IntegerRange(column="zone", first=0, last=3), name="zone")
CITIES = state_of(Categories(column="city", values=("a", "b")), name="city")
SPEEDS = state_of(Bins(column="speed", edges=(-2, -1, 0, 1, 2)), name="speed")
STATES = [ZONES, CITIES]
NAMES = ["zone_mean", "zone_count", "city_mean", "city_count"]
FRAME = pd.DataFrame(
    {"zone": [3, 0, 9, 1], "city": ["a", "b", "c", None], "other": [1.5, 2.5, 3.5, 4.5]},
    index=[4, 4, 2, 0],
)
FARES = np.array([1.0, 2.0, 3.0, 4.0])


@parametrize_with_checks(  # type: ignore[untyped-decorator, unused-ignore]
    [
        PtkTransformer(),
        PtkTransformer(passthrough=True),
        PtkTransformer([SPEEDS], columns={"speed": 0}),
        PtkTransformer({"at": SPEEDS}, columns={"speed": 0}, passthrough=True),
    ]
)
def test_scikit_learns_own_checks_hold(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_the_features_are_those_of_featurize(frame: Any) -> None:
    whole = featurize(frame, STATES)
    alone = PtkTransformer(STATES).fit_transform(frame)
    assert type(alone) is np.ndarray
    assert alone.dtype == np.float64
    assert np.array_equal(alone, whole[NAMES].to_numpy())
    kept = PtkTransformer(STATES, passthrough=True).fit_transform(frame)
    assert type(kept) is type(frame)
    assert kept.equals(whole)


def test_an_array_gives_columns_by_place() -> None:
    array = FRAME[["zone", "other"]].to_numpy()
    assert array.dtype == np.float64
    step = PtkTransformer([ZONES], columns={"zone": 0}, passthrough=True).fit(array)
    made = step.transform(array)
    assert np.array_equal(made[:, :2], array)
    assert np.array_equal(made[:, 2:], featurize(FRAME, ZONES)[NAMES[:2]].to_numpy())
    assert list(step.get_feature_names_out()) == ["x0", "x1", *NAMES[:2]]
    texts = FRAME[["city"]].to_numpy()
    assert np.array_equal(
        PtkTransformer([CITIES], columns={"city": 0}).fit_transform(texts),
        featurize(FRAME, CITIES)[NAMES[2:]].to_numpy(),
    )


def test_a_frame_may_have_other_names() -> None:
    frame = FRAME.rename(columns={"zone": "district"})
    for where in ("district", 0):
        step = PtkTransformer(STATES, columns={"zone": where}).fit(frame)
        assert np.array_equal(step.transform(frame), PtkTransformer(STATES).fit_transform(FRAME))
    # Only features come out, so a column may have the name of one.
    clash = FRAME.rename(columns={"other": "zone_mean"})
    assert PtkTransformer(STATES).fit_transform(clash).shape == (4, 4)
    with pytest.raises(InvalidInput, match="COLUMN_EXISTS"):
        PtkTransformer(STATES, passthrough=True).fit(clash)


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(container: str, passthrough: bool) -> None:
    step = PtkTransformer({"a": ZONES, "b": ZONES}, passthrough=passthrough).set_output(
        transform=container
    )
    made: Any = step.fit_transform(FRAME)
    names = ["a_zone_mean", "a_zone_count", "b_zone_mean", "b_zone_count"]
    expected = [*(FRAME.columns if passthrough else []), *names]
    assert type(made) is (pd.DataFrame if container == "pandas" else pl.DataFrame)
    assert list(made.columns) == list(step.get_feature_names_out()) == expected
    assert list(made["b_zone_count"]) == list(featurize(FRAME, ZONES)["zone_count"])
    if isinstance(made, pd.DataFrame):
        assert list(made.index) == [4, 4, 2, 0]


def test_fit_learns_nothing_from_the_values() -> None:
    first = PtkTransformer(STATES).fit(FRAME, FARES)
    second = PtkTransformer(STATES).fit(FRAME.assign(zone=-1, city="x", other=0.0).iloc[:2])
    assert (
        vars(first).keys()
        == vars(second).keys()
        == {*first.get_params(), "n_features_in_", "feature_names_in_"}
    )
    assert pickle.dumps(first) == pickle.dumps(second)


def test_it_is_a_step_like_any_other() -> None:
    rides = pd.concat([FRAME] * 10, ignore_index=True)
    fares = np.tile(FARES, 10)
    pipeline = make_pipeline(PtkTransformer(STATES), StandardScaler(), Ridge())
    search = GridSearchCV(
        pipeline,
        {"ptktransformer__states": [[ZONES], STATES], "ridge__alpha": [0.1, 10.0]},
        cv=2,
    )
    search.fit(rides, fares)
    assert [one.manifest.name for one in search.best_params_["ptktransformer__states"]] == [
        "zone",
        "city",
    ]
    assert search.predict(rides).shape == (40,)
    mixed = ColumnTransformer(
        [("ptk", PtkTransformer(STATES), ["zone", "city"]), ("scale", StandardScaler(), ["other"])]
    ).set_output(transform="pandas")
    made = mixed.fit_transform(rides)
    assert list(made.columns) == [*(f"ptk__{name}" for name in NAMES), "scale__other"]
    union = FeatureUnion([("a", PtkTransformer([ZONES])), ("b", PtkTransformer([CITIES]))])
    assert np.array_equal(union.fit_transform(rides), PtkTransformer(STATES).fit_transform(rides))


def test_clones_and_pickles_give_the_same_features_also_in_another_process() -> None:
    step = PtkTransformer({"a": ZONES}, passthrough=True).fit(FRAME)
    expected = step.transform(FRAME)
    assert clone(step).fit(FRAME).transform(FRAME).equals(expected)
    again = pickle.loads(pickle.dumps(step))
    assert again.transform(FRAME).equals(expected)
    assert again.states["a"].to_bytes() == ZONES.to_bytes()
    assert not again.states["a"].arrays["totals"].flags.writeable
    code = (
        "import pickle, sys\n"
        "step, frame, expected = pickle.loads(sys.stdin.buffer.read())\n"
        "assert step.transform(frame).equals(expected)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((step, FRAME, expected)),
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("step", "data", "reason", "words"),
    [
        (PtkTransformer(["zones"]), FRAME, "STATES_INVALID", "must be State objects"),  # type: ignore[list-item]
        (
            PtkTransformer(STATES),
            FRAME[["zone"]],
            "COLUMN_MISSING",
            r"'city' must be in the input.*\['zone'\]",
        ),
        (
            PtkTransformer(STATES),
            FRAME.to_numpy(),
            "COLUMN_MISSING",
            "3 columns without names: say where",
        ),
        (PtkTransformer([ZONES], columns={"zone": 3}), FRAME, "COLUMN_MISSING", "got 3"),
        (PtkTransformer([ZONES], columns={"zone": -1}), FRAME, "COLUMN_MISSING", "got -1"),
        (
            PtkTransformer([ZONES], columns={"zone": True}),
            FRAME,
            "CONFIG_INVALID",
            "a mapping of names",
        ),
        (PtkTransformer([ZONES], columns=["zone"]), FRAME, "CONFIG_INVALID", "a mapping of names"),  # type: ignore[arg-type]
        (PtkTransformer([ZONES, ZONES]), FRAME, "COLUMN_EXISTS", "a feature of state 'zone'"),
        (PtkTransformer([ZONES]), FRAME.iloc[:0], "FRAME_UNSUPPORTED", "at least one row"),
    ],
)
def test_fit_refuses_what_transform_could_not_do(
    step: PtkTransformer, data: Any, reason: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        step.fit(data)
    assert caught.value.reason == reason


def test_transform_refuses_what_was_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        PtkTransformer(STATES).transform(FRAME)
    fitted = PtkTransformer(STATES).fit(FRAME)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(FRAME[["city", "zone", "other"]])
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        fitted.transform(FRAME.assign(zone="x"))
