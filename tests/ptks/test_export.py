"""export: files that need NumPy alone and give the features of featurize, bit for bit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key, TimePart
from ptklib.errors import InvalidInput
from ptklib.export import export
from ptklib.features import feature_table
from ptklib.ptk import Arrays
from ptklib.ptks.statistics import Statistics
from ptklib.serving.plan import ServingPlan
from ptklib.state import State

ALL: tuple[Any, ...] = ("variance", "count", "mean", "sum")
CITY = Categories(column="city", values=("b", "a", "å", "日本", "", "a b"))
LISTED = Categories(column="zone", values=(7, -3, 2**62, 0))
ZONE = IntegerRange(column="zone", first=-5, last=20)
SPEED = Bins(column="speed", edges=(-1.5, 0, 0.1, 3, 100))
FINE = Bins(column="speed", edges=tuple(np.linspace(0, 1, 101)))
HOUR, WEEKDAY = TimePart(column="time", part="hour"), TimePart(column="time", part="weekday")
CASES: dict[str, tuple[Key, ...]] = {
    "texts": (CITY,),
    "listed": (LISTED,),
    "integers": (ZONE,),
    "bins": (SPEED,),
    "many bins": (FINE,),
    "hours": (HOUR,),
    "weekdays": (WEEKDAY,),
    "one column twice": (HOUR, WEEKDAY),
    "product": (CITY, SPEED, ZONE),
}
# Runs the exported module where neither ptklib nor anything of Arrow can be imported.
RUNNER = """
import sys
for name in ("ptklib", "ptkstore", "pyarrow", "pandas", "polars", "safetensors", "scipy", "sklearn"):
    sys.modules[name] = None
sys.path.insert(0, ".")
import numpy as np
import importlib
frame = np.load("frame.npy", allow_pickle=True)
module = importlib.import_module(sys.argv[1])
made = module.featurize(frame)
assert list(made) == list(module.FEATURES)
np.savez("made.npz", **{f"f{number}": one for number, one in enumerate(made.values())})
"""


def state_of(*keys: Key, name: str = "zone speed/1") -> State:
    ptk = Statistics(keys=keys, statistics=ALL, value="fare", lower=-1.7, upper=10.3, prefix="fare")
    rng = np.random.default_rng(7)
    arrays = {
        "totals": rng.integers(-(10**8), 10**9, (ptk.cells, 3)),
        "windows": np.ones(1, np.int64),
    }
    return State.make(ptk, arrays, name=name, epsilon="0.5", version=3)


def frame_of(rows: int = 4000) -> np.ndarray[Any, Any]:
    """Values inside and outside the domains, on the edges, and missing ones where a type has
    them.
    """
    rng = np.random.default_rng(3)
    frame = np.empty(
        rows,
        dtype=[("city", "O"), ("zone", "i8"), ("speed", "f8"), ("time", "M8[us]"), ("other", "f4")],
    )
    frame["city"] = rng.choice(np.array([*CITY.values, "zzz", "B", None], dtype=object), rows)
    frame["zone"] = rng.choice(np.array([*range(-8, 24), 2**62, 2**63 - 1, -(2**63)]), rows)
    frame["speed"] = rng.choice(
        np.concatenate(
            [SPEED.edges, FINE.edges, rng.uniform(-3, 110, 500), [np.nan, np.inf, -np.inf, -0.0]]
        ),
        rows,
    )
    frame["time"] = rng.integers(-(10**15), 2 * 10**15, rows).astype("M8[us]")
    frame["time"][::7] = np.datetime64("NaT")
    return frame


def run_exported(
    state: State, frame: np.ndarray[Any, Any], folder: Path
) -> list[np.ndarray[Any, Any]]:
    files = export(state, folder)
    np.save(folder / "frame.npy", frame, allow_pickle=True)
    run = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER, files.module.stem],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    with np.load(folder / "made.npz") as made:
        return [made[name] for name in made.files]


def assert_same(found: list[np.ndarray[Any, Any]], frame: Any, state: State) -> None:
    wanted = feature_table(frame, state)
    assert len(found) == wanted.num_columns > 0
    for one, column in zip(found, wanted.columns, strict=True):
        assert one.dtype == np.float64
        assert one.tobytes() == column.to_numpy().tobytes()


@pytest.mark.parametrize("case", CASES)
def test_the_files_alone_give_the_features_bit_for_bit(case: str, tmp_path: Path) -> None:
    state, frame = state_of(*CASES[case]), frame_of()
    found = run_exported(state, frame, tmp_path)
    assert_same(found, frame, state)


def test_means_that_are_pulled_together_are_exported_as_they_are_served(tmp_path: Path) -> None:
    state, frame = state_of(CITY, SPEED), frame_of()
    told = {**state.arrays, "variance": np.array([4.0])}
    pulled = State.make(state.ptk, told, name="pulled", epsilon="0.5")
    found = run_exported(pulled, frame, tmp_path)
    assert_same(found, frame, pulled)
    assert not np.array_equal(found[2], feature_table(frame, state).column(2).to_numpy())
    assert len(np.unique(found[0])) > 3


def test_the_files_say_what_they_are(tmp_path: Path) -> None:
    state = state_of(ZONE)
    files = export(state, tmp_path / "new" / "folder")
    assert [path.name for path in (files.module, files.data, files.certificate)] == [
        "serve_zone_speed_1.py",
        "zone_speed_1.npz",
        "zone_speed_1.certificate.json",
    ]
    assert files.certificate.read_bytes() == state.manifest.to_bytes()
    text = files.module.read_text()
    assert f"DIGEST = '{state.digest}'" in text
    assert "EPSILON, DELTA, UNIT = '0.5', '0', 'event'" in text
    assert "VERSION = 3" in text
    # The same state gives the same bytes.
    again = export(state, tmp_path / "again")
    assert (again.data.read_bytes(), again.module.read_bytes()) == (
        files.data.read_bytes(),
        files.module.read_bytes(),
    )


def test_it_runs_as_a_command(tmp_path: Path) -> None:
    state = state_of(CITY, ZONE)
    files = export(state, tmp_path)
    rows = {"city": ["a", None, "日本"], "zone": [3, 4, None]}
    run = subprocess.run(
        [sys.executable, "-I", files.module],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = feature_table(
        np.array([("a", 3), (None, 4), ("日本", 99)], dtype=[("city", "O"), ("zone", "i4")]), state
    )
    assert json.loads(run.stdout) == wanted.to_pydict()


def test_a_name_cannot_put_code_into_the_module(tmp_path: Path) -> None:
    state = state_of(
        Categories(column='"""\nraise SystemExit', values=('x\n"""', "y")),
        name='"""\nraise SystemExit("!")#{}',
    )
    files = export(state, tmp_path)
    rows = {'"""\nraise SystemExit': ['x\n"""', "y"]}
    run = subprocess.run(
        [sys.executable, "-I", files.module],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert len(json.loads(run.stdout)["fare_mean"]) == 2


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    files = export(state_of(ZONE), tmp_path)
    other = export(state_of(CITY, name="other"), tmp_path)
    shutil.copy(other.data, files.data)
    run = subprocess.run(
        [sys.executable, "-I", files.module],
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "is not the file that this code was exported with" in run.stderr


@dataclass(frozen=True, kw_only=True)
class Planless(Statistics):
    kind: ClassVar[str] = "planless"


@dataclass(frozen=True, kw_only=True)
class Wrong(Statistics):
    """Brings a plan of its own that looks up the wrong table."""

    kind: ClassVar[str] = "wrong"

    def serving(self, arrays: Arrays) -> ServingPlan:
        from ptklib.ptks.tables.serving import tabulated

        right = tabulated(self, arrays, self.keys)
        tables = {name: table + (name == "table_0") for name, table in right.arrays.items()}
        return ServingPlan(
            inputs=right.inputs, steps=right.steps, outputs=right.outputs, arrays=tables
        )


@dataclass(frozen=True, kw_only=True)
class Own(Statistics):
    kind: ClassVar[str] = "own"

    def serving(self, arrays: Arrays) -> ServingPlan:
        from ptklib.ptks.tables.serving import tabulated

        return tabulated(self, arrays, self.keys)


def made_of(kind: type[Statistics], *keys: Key) -> State:
    ptk = kind(keys=keys, statistics=("count",))
    arrays = {"totals": np.arange(ptk.cells)[:, None], "windows": np.ones(1, np.int64)}
    return State.make(ptk, arrays, name="made", epsilon=1)


def test_a_kind_without_a_plan_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match="kind 'planless' have no serving plan: use featurize"
    ) as caught:
        export(made_of(Planless, ZONE), tmp_path)
    assert caught.value.reason == "EXPORT_UNSUPPORTED"
    assert not list(tmp_path.iterdir())


def test_a_plan_that_is_wrong_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not give the features") as caught:
        export(made_of(Wrong, ZONE), tmp_path)
    assert caught.value.reason == "EXPORT_UNSUPPORTED"
    assert not list(tmp_path.iterdir())


def test_a_kind_may_bring_its_own_plan(tmp_path: Path) -> None:
    state = made_of(Own, ZONE, HOUR)
    frame = frame_of(500)
    assert_same(run_exported(state, frame, tmp_path), frame, state)


def test_too_many_cells_are_refused(tmp_path: Path) -> None:
    # Each key is small, and the places for unknown values make the product too large.
    keys = tuple(Categories(column=f"k{number}", values=("a", "b")) for number in range(15))
    keys += (Categories(column="one", values=("a",)),)
    with pytest.raises(InvalidInput, match="EXPORT_UNSUPPORTED"):
        export(made_of(Statistics, *keys), tmp_path)
