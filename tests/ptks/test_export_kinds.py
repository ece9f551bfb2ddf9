"""Exports of every kind that has a serving plan: the file alone gives the features of featurize,
bit for bit.
"""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib import registry
from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.export import export
from ptklib.features import feature_table
from ptklib.models.registry import model_kinds
from ptklib.ptk import Ptk
from ptklib.ptks.additive import Additive
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.counts import Counts
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.forest import Forest
from ptklib.ptks.interactions import Interactions
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.ratios import Ratios
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.hashing import Hashed
from ptklib.ptks.tables.ranking import Ranking
from ptklib.ptks.vectors import Bounded
from ptklib.state import State
from ptklib.testing.noise import SeededSource, planted_noise
from tests.ptks.test_export import run_exported

LABEL = Categories(column="label", values=("no", "yes", "maybe"))
CITY = Categories(column="city", values=("a", "b", "å"))
ZONE = IntegerRange(column="zone", first=-3, last=30)
SPEED = Bins(column="speed", edges=(0, 1, 2.5))
WORD = Hashed(column="word", width=64, salt=5)
USERS = IntegerRange(column="user", first=0, last=40)
ITEMS = Categories(column="item", values=tuple("abcdefgh"))
VALUES = (
    Bounded(column="fare", lower=-3, upper=70),
    Bounded(column="speed", lower=-1, upper=1),
    Bounded(column="tip", lower=0, upper=1000),
)
INPUTS = (
    Number(column="speed", lower=-1, upper=1, bins=7),
    CITY,
    ZONE,
    TimePart(column="time", part="weekday"),
)

PTKS: dict[str, Ptk] = {
    "additive": Additive(inputs=INPUTS, label="label", classes=("no", "yes")),
    "additive, a number": Additive(inputs=INPUTS, label="fare", lower=-3, upper=70),
    "additive, terms": Additive(
        inputs=INPUTS, label="label", classes=(0, 1), output="terms", prefix="p"
    ),
    "additive, prediction": Additive(
        inputs=INPUTS, label="label", classes=(0, 1), output="prediction", mechanism="gaussian"
    ),
    "counts": Counts(keys=(CITY, ZONE, TimePart(column="time", part="hour")), label=LABEL),
    "counts, hashed": Counts(
        keys=(WORD, SPEED), label=LABEL, statistics=("probability",), prefix="p"
    ),
    "counts, hashed whole numbers": Counts(
        keys=(Hashed(column="zone", width=1000),), label=SPEED, cell_bits=32
    ),
    "counts, hashed twice": Counts(
        keys=(Hashed(column="word", width=9, rows=2), SPEED), label=LABEL
    ),
    "counts, hashed often": Counts(
        keys=(Hashed(column="word", width=9, rows=5), CITY), label=LABEL
    ),
    "forest": Forest(
        inputs=INPUTS, label="label", classes=("no", "yes", "maybe"), trees=7, depth=4
    ),
    "forest, one tree": Forest(inputs=INPUTS, label="fare", lower=-3, upper=70, trees=1, depth=3),
    "forest, leaves": Forest(
        inputs=INPUTS,
        label="fare",
        lower=0,
        upper=1,
        trees=3,
        depth=3,
        splits="random",
        output="leaves",
    ),
    "forest, one-hot": Forest(
        inputs=INPUTS, label="label", classes=(0, 1), trees=2, depth=2, output="one_hot"
    ),
    "interactions": Interactions(
        keys=(CITY, ZONE, TimePart(column="time", part="hour")),
        label="fare",
        lower=-3,
        upper=70,
        interactions=3,
        statistics=("count", "estimate"),
    ),
    "interactions, classes": Interactions(
        keys=(SPEED, CITY), label="label", classes=("no", "yes", "maybe"), prefix="p"
    ),
    "quantiles": Quantiles(
        keys=(ZONE, CITY), value="fare", quantiles=(0.1, 0.5, 0.9), lower=-2, upper=9, bins=32
    ),
    "ratios": Ratios(
        keys=(CITY, ZONE),
        numerator="tip",
        denominator="fare",
        denominator_upper=50,
        ratio_upper=0.4,
        statistics=("ratio", "numerator", "denominator"),
    ),
    "statistics, ranked": Statistics(
        keys=(CITY, ZONE), statistics=("in_top", "rank", "share", "count"), ranking=Ranking(top=5)
    ),
    "covariance": Covariance(values=VALUES, components=2),
    "covariance, whitened": Covariance(
        values=VALUES, components=3, output="whitened", scaling="common"
    ),
    "clusters": Clusters(values=VALUES[:2], clusters=4),
    "clusters, many": Clusters(values=VALUES, clusters=9, method="lloyd"),
    "embeddings": Embeddings(users=USERS, items=ITEMS, value="v", lower=0, upper=5),
    "embeddings, everything": Embeddings(
        users=USERS,
        items=ITEMS,
        value="v",
        lower=1,
        upper=5,
        give=("rate", "product", "item", "user"),
        factors=3,
    ),
    "embeddings, items": Embeddings(
        users=USERS, items=ITEMS, value="v", lower=0, upper=5, publish="items"
    ),
}

# `export` refuses these, as docs/guides/export.md says.
WITHOUT_A_PLAN = set(model_kinds())


def state_of(ptk: Ptk) -> State:
    delta = "1e-6" if ptk.tags.needs_delta else 0
    example = ptk.example(1500, seed=3)
    assert example is not None
    with planted_noise():
        arrays = ptk.train_dp([example], epsilon=2, delta=delta, noise=SeededSource(4))
    return State.make(ptk, arrays, name="some state", epsilon=2, delta=delta)


def frame_of(ptk: Ptk) -> np.ndarray[Any, Any]:
    """Invented rows; some values are missing, some are in no domain."""
    example = ptk.example(700, seed=5)
    assert example is not None
    fields: dict[str, np.ndarray[Any, Any]] = {}
    for name in ptk.feature_columns():
        column = example.column(name)
        if pa.types.is_timestamp(column.type):
            values = column.to_numpy(zero_copy_only=False).copy()
            values[::5] = np.datetime64("NaT")
        elif pa.types.is_floating(column.type):
            values = column.to_numpy(zero_copy_only=False).copy()
            values[::5], values[1::7], values[2::11], values[3::13] = np.nan, 1e9, np.inf, -1e9
        else:
            values = np.array(column.to_pylist(), dtype=object)
            values[::5], values[1::7] = None, "zzz" if pa.types.is_string(column.type) else 10**9
        fields[name] = values
    frame = np.empty(700, dtype=[(name, values.dtype) for name, values in fields.items()])
    for name, values in fields.items():
        frame[name] = values
    return frame


def assert_same(found: list[np.ndarray[Any, Any]], frame: Any, state: State) -> None:
    wanted = feature_table(frame, state)
    assert len(found) == wanted.num_columns > 0
    for one, column in zip(found, wanted.columns, strict=True):
        assert one.dtype == column.to_numpy().dtype
        assert one.tobytes() == column.to_numpy().tobytes()
    # Whole rows: the columns of one-hot leaves have two values each.
    assert len({tuple(row) for row in zip(*(one.tolist() for one in found), strict=True)}) > 3


@pytest.mark.parametrize("name", PTKS)
def test_the_module_gives_the_features_bit_for_bit(name: str, tmp_path: Path) -> None:
    state = state_of(PTKS[name])
    frame = frame_of(state.ptk)
    module = runpy.run_path(str(export(state, tmp_path).module))
    made = module["featurize"](frame)
    assert tuple(made) == module["FEATURES"] == state.ptk.feature_names()
    assert_same(list(made.values()), frame, state)
    # A row at a time gives the same as all at once.
    for row in (0, 1, 8):
        one = module["featurize"](frame[row : row + 1])
        assert [value[0] for value in one.values()] == [value[row] for value in made.values()]


@pytest.mark.parametrize("kind", sorted({ptk.kind for ptk in PTKS.values()}))
def test_it_runs_where_there_is_nothing_but_numpy(kind: str, tmp_path: Path) -> None:
    state = state_of(next(ptk for ptk in PTKS.values() if ptk.kind == kind))
    frame = frame_of(state.ptk)
    assert_same(run_exported(state, frame, tmp_path), frame, state)


def told_apart(ptk: Ptk) -> State:
    """A state in which every cell has a count of its own."""
    arrays = dict(state_of(ptk).arrays)
    arrays["cells"] = (
        np.random.default_rng(1).permutation(len(arrays["cells"])).astype(arrays["cells"].dtype)
    )
    return State.make(ptk, arrays, name="counts", epsilon=1)


@pytest.mark.parametrize(
    "texts",
    [["", "a", "1234567", "12345678", "123456789", "日本語のテキスト", "x" * 1000, "a\0", None]],
)
def test_hashes_of_texts_of_every_length(texts: list[str | None], tmp_path: Path) -> None:
    state = told_apart(
        Counts(keys=(Hashed(column="word", width=2**16, salt=2**63 - 1),), label=LABEL)
    )
    frame = np.array([(one,) for one in texts], dtype=[("word", "O")])
    made = runpy.run_path(str(export(state, tmp_path).module))["featurize"](frame)
    assert_same(list(made.values()), frame, state)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u1", "u8", "?"])
def test_hashes_of_numbers_of_every_type(dtype: str, tmp_path: Path) -> None:
    state = told_apart(PTKS["counts, hashed whole numbers"])
    frame = np.array([(one,) for one in np.arange(-100, 100)], dtype=[("zone", "i8")]).astype(
        [("zone", dtype)]
    )
    made = runpy.run_path(str(export(state, tmp_path).module))["featurize"](frame)
    wanted = feature_table(frame, state)
    assert [one.tolist() for one in made.values()] == [one.to_pylist() for one in wanted.columns]


def test_every_installed_kind_is_exported_here_or_is_known_to_have_no_plan() -> None:
    assert set(registry.kinds()) - {ptk.kind for ptk in PTKS.values()} <= WITHOUT_A_PLAN
    for kind in WITHOUT_A_PLAN:
        made = registry.kinds()[kind]
        beside = f"{made.__module__.rpartition('.')[0]}.serving"
        assert importlib.util.find_spec(beside) is None
        assert not hasattr(made, "serving")
