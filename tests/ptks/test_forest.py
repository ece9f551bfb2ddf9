"""The Forest PTK: routing, rules for odd values, what it learns in each way of splitting, windows,
configurations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.errors import InvalidInput
from ptklib.ptks.binned.codes import MAX_BINS, STEPS, Number, feature_codes
from ptklib.ptks.forest import Forest
from ptklib.ptks.forest.estimate import from_ancestors, from_expected
from ptklib.ptks.forest.guided import Tables, expected_leaves, simplex
from ptklib.ptks.forest.trees import leaves_of, random_splits
from ptklib.testing.noise import SeededSource, planted_noise

AGE = Number(column="age", lower=0, upper=80, bins=8)
CITY = Categories(column="city", values=("a", "b", "c", "d"))
FLOOR = IntegerRange(column="floor", first=0, last=5)
WAYS: list[tuple[dict[str, Any], str]] = [
    ({"splits": "guided"}, "0"),
    ({"splits": "random"}, "0"),
    ({"splits": "exponential"}, "0"),
    ({"splits": "margin"}, "1e-6"),
    ({"splits": "guided", "mechanism": "gaussian"}, "1e-6"),
    ({"splits": "random", "mechanism": "gaussian"}, "1e-6"),
]


def make(**options: Any) -> Forest:
    given: dict[str, Any] = {
        "inputs": (AGE, CITY, FLOOR),
        "label": "y",
        "classes": ("no", "yes"),
        "depth": 4,
        **options,
    }
    if "lower" in given:
        given["classes"] = None
    return Forest(**given)


def people(rows: int, *, seed: int = 1) -> pa.Table:
    """In cities b and d the old say yes, others no; nine of ten keep to it.

    Pay rises with age in b and d.
    """
    generator = np.random.default_rng(seed)
    age, city = (
        generator.uniform(0, 80, rows),
        generator.choice(["a", "b", "c", "d"], rows, p=[0.2, 0.4, 0.1, 0.3]),
    )
    yes = (age > 30) & np.isin(city, ["b", "d"])
    kept = generator.uniform(0, 1, rows) < 0.9
    pay = np.where(np.isin(city, ["b", "d"]), 20 + age / 2, 15.0) + generator.normal(0, 1, rows)
    body = {"age": age, "city": city, "floor": generator.integers(0, 6, rows), "pay": pay}
    return pa.table({**body, "y": np.where(yes == kept, "yes", "no")})


def train(
    ptk: Forest,
    table: pa.Table,
    epsilon: Any = 1,
    delta: Any = "0",
    *,
    seed: int = 5,
    **options: Any,
) -> dict[str, Any]:
    with planted_noise():
        return dict(
            ptk.train_dp(
                table.to_batches(),
                epsilon=epsilon,
                delta=delta,
                noise=SeededSource(seed),
                **options,
            )
        )


def test_records_reach_the_leaf_that_the_splits_say() -> None:
    generator = np.random.default_rng(2)
    splits = random_splits(3, 4, 5, (9, 5, 7))
    codes = generator.integers(0, 5, (3, 40_000)).astype(np.uint8)
    tree = generator.integers(0, 4, 40_000)
    found = leaves_of(splits, codes, tree)
    for record in range(0, 40_000, 97):
        node = 0
        for _ in range(5):
            feature, threshold = splits[tree[record], node]
            node = 2 * node + 1 + int(codes[feature, record] > threshold)
        assert found[record] == node - 31
    assert np.array_equal(found[tree == 2], leaves_of(splits, codes[:, tree == 2], 2))


def test_random_splits_follow_from_the_seed_and_waste_no_node() -> None:
    one = random_splits(7, 3, 4, (17, 5, 7))
    assert one[0, :3].tolist() == [[1, 3], [0, 7], [2, 4]]
    assert not np.array_equal(one, random_splits(8, 3, 4, (17, 5, 7)))
    # Few bins, so that boxes run out: still every record has a leaf, and sides are empty only where
    # nothing is left.
    small = random_splits(1, 2, 6, (3, 3))
    assert (
        np.unique(
            leaves_of(small, np.array([[0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3], np.uint8), 0)
        ).size
        == 9
    )


def test_odd_values_have_the_bins_that_the_rules_say() -> None:
    values = [None, math.nan, math.inf, -math.inf, 1e308, -1.0, 0.0, 9.99, 10.0, 80.0]
    codes = AGE.codes(pa.array(values, pa.float64()))
    assert codes.tolist() == [8, 8, 7, 0, 7, 0, 0, 0, 1, 7]
    assert AGE.codes(pa.array([True, None])).tolist() == [0, 8]
    wide = IntegerRange(column="floor", first=0, last=999)
    frame = pa.table({"age": [5.0, None], "floor": [999, 1000]})
    assert feature_codes((AGE, wide), frame).tolist() == [[0, 8], [999, 1000]]


def test_records_without_a_label_change_nothing_and_have_no_loss() -> None:
    table = people(300)
    odd = table.slice(0, 60).set_column(4, "y", pa.array(["perhaps", None] * 30))
    ptk = make()
    arrays = train(ptk, table)
    # The trees of the others are drawn alike, because the odd records come last.
    again = train(ptk, pa.concat_tables([table, odd]).combine_chunks())
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert ptk.loss(arrays, odd.to_batches()).tolist() == [0.0] * 60
    pay = make(label="pay", lower=0, upper=100)
    missing = table.set_column(3, "pay", pa.array([None, math.nan, math.inf] * 100))
    assert pay.loss(train(pay, table), missing.to_batches())[:3].tolist()[:2] == [0.0, 0.0]


@pytest.mark.parametrize(("way", "delta"), WAYS)
def test_every_way_of_splitting_learns_classes(way: dict[str, Any], delta: str) -> None:
    ptk = make(trees=3, **way)
    arrays = train(ptk, people(20_000), 2, delta)
    ptk.validate(arrays)
    fresh = people(2000, seed=9)
    share = np.array([one.to_numpy() for one in ptk.features(arrays, fresh).columns])
    assert np.allclose(share.sum(axis=0), 1)
    right = np.mean((share[1] > 0.5) == (np.array(fresh["y"].to_pylist()) == "yes"))
    assert right > (0.6 if way["splits"] == "random" else 0.8)


@pytest.mark.parametrize(("way", "delta"), WAYS)
def test_every_way_of_splitting_learns_a_target(way: dict[str, Any], delta: str) -> None:
    ptk = make(label="pay", lower=0, upper=80, trees=3, prefix="pay_hat", **way)
    table = people(20_000)
    arrays = train(ptk, table, 2, delta)
    fresh = people(2000, seed=9)
    found = ptk.features(arrays, fresh)["pay_hat"].to_numpy()
    truth = fresh["pay"].to_numpy()
    assert np.var(truth - found) < {"random": 0.6, "margin": 0.5}.get(way["splits"], 0.3) * np.var(
        truth
    )
    assert ptk.eval(arrays, fresh.to_batches()) == pytest.approx(
        np.mean(np.square((truth - found) / 80)), rel=0.01
    )


def test_guided_splits_find_the_inputs_that_matter_and_order_categories() -> None:
    noise = tuple(Number(column=f"noise{place}", lower=0, upper=1, bins=4) for place in range(6))
    table = people(20_000)
    generator = np.random.default_rng(0)
    for one in noise:
        table = table.append_column(one.column, pa.array(generator.uniform(0, 1, len(table))))
    # Pay depends on the city and, within it, on age: both show in the tables.
    ptk = make(
        inputs=(AGE, CITY, *noise),
        label="pay",
        lower=0,
        upper=80,
        splits="guided",
        features_per_split=8,
    )
    arrays = train(ptk, table)
    assert set(arrays["splits"][:, 0, 0].tolist()) <= {0, 1}
    assert np.isin(arrays["splits"][:, :3, 0], [0, 1]).mean() > 0.9
    rank = arrays["order"][9:14]
    assert max(rank[0], rank[2]) < min(rank[1], rank[3])


def test_tables_expect_what_independence_says() -> None:
    counts = np.array([[30.0, 10.0], [10.0, 10.0], [0.0, 0.0], [20.0, 5.0], [20.0, 15.0]])
    tables = Tables.of(counts, (3, 2), np.array([0, 1, 2, 0, 1], dtype=np.int32))
    assert tables.classes.tolist() == [40, 20]
    splits = np.array([[[0, 0], [1, 0], [1, 0]]], dtype=np.int32)
    expected = expected_leaves(tables, splits, np.array([3, 2]))
    assert np.allclose(expected[0], [[15, 2.5], [15, 7.5], [5, 2.5], [5, 7.5]])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6), st.floats(0.1, 100))
def test_the_nearest_counts_that_can_be(row: list[float], total: float) -> None:
    found = simplex(np.array([row]), np.array([total]))[0]
    assert found.sum() == pytest.approx(total)
    assert np.all(found >= 0)
    # What was kept moved by one number; what was cut would have had to move further.
    shift = np.array(row) - found
    assert np.ptp(shift[found > 1e-9]) < 1e-6
    assert np.all(np.array(row)[found <= 1e-9] <= shift.max() + 1e-6)


def test_smoothing_decides_in_small_leaves_and_vanishes_in_large_ones() -> None:
    counts = np.array([[[900.0, 100.0], [3.0, 5.0]]])
    expected = np.array([[[5.0, 5.0], [9.0, 1.0]]])
    for found in (from_expected(counts, 1e-9, expected), from_ancestors(counts, 1e-9)):
        assert np.allclose(found[0, :, 0], [0.9, 3 / 8])
    assert np.allclose(from_expected(counts, 1e9, expected)[0, :, 0], [0.5, 0.9], atol=1e-4)
    assert np.allclose(from_ancestors(counts, 1e9)[0, :, 0], 903 / 1008, atol=1e-4)
    middle = from_ancestors(counts, 40.0)[0, :, 0]
    assert abs(middle[0] - 0.9) < 0.01
    assert middle[1] > 0.5


def test_leaves_and_one_hot_say_the_same() -> None:
    table = people(500)
    leaves, hot = make(output="leaves", trees=3), make(output="one_hot", trees=3)
    arrays = train(leaves, table)
    named = leaves.features(arrays, table)
    assert named.column_names == ["y_forest_tree0", "y_forest_tree1", "y_forest_tree2"]
    assert named.schema.types == [pa.int32()] * 3
    made = hot.features(arrays, table)
    assert made.column_names[17] == "y_forest_tree1_leaf1"
    for tree in range(3):
        mine = np.array([made[f"y_forest_tree{tree}_leaf{leaf}"].to_numpy() for leaf in range(16)])
        assert np.array_equal(mine.argmax(axis=0), named[f"y_forest_tree{tree}"].to_numpy())
        assert np.all(mine.sum(axis=0) == 1)


def test_hundreds_of_classes() -> None:
    classes = tuple(range(100, 500))
    generator = np.random.default_rng(4)
    age = generator.uniform(0, 80, 200_000)
    stop = 100 + age.astype(np.int64) // 10 * 50 + generator.integers(0, 4, 200_000)
    table = pa.table({"age": age, "floor": generator.integers(0, 6, 200_000), "y": stop})
    ptk = make(inputs=(AGE, FLOOR), classes=classes, trees=3, depth=5)
    arrays = train(ptk, table)
    assert len(ptk.feature_names()) == 400
    # Four of four hundred are equally likely: a quarter is the best there is.
    share = np.array([one.to_numpy() for one in ptk.features(arrays, table.slice(0, 1000)).columns])
    assert np.mean(share[stop[:1000] - 100, np.arange(1000)]) > 0.2


@pytest.mark.parametrize("splits", ["random", "guided", "exponential"])
def test_windows_add_up(splits: Any) -> None:
    ptk, fresh = make(splits=splits, trees=4), people(3000, seed=99).to_batches()
    arrays = train(ptk, people(1500), "0.1")
    first = ptk.eval(arrays, fresh)
    for window in range(2, 9):
        before, arrays = (
            arrays,
            train(ptk, people(1500, seed=window), "0.1", seed=window, previous=arrays),
        )
    assert arrays["windows"].tolist() == [8]
    assert arrays["variance"][0] == pytest.approx(8 / 7 * before["variance"][0])
    assert ptk.eval(arrays, fresh) < first - 0.01
    if splits != "random":
        assert np.array_equal(arrays["splits"], before["splits"])
    assert ptk.tags.mergeable == (splits == "random")


def test_auto_is_decided_by_public_numbers() -> None:
    assert make(trees=1).method == "exponential"
    assert make(trees=2).method == "guided"
    assert make(trees=1, mechanism="gaussian").method == "guided"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inputs": ()}, "inputs must be 1 to"),
        ({"inputs": (IntegerRange(column="floor", first=0, last=MAX_BINS),)}, "at most 4096 bins"),
        ({"label": "age"}, "must not be an input too"),
        ({"classes": None}, "classes, or lower and upper"),
        ({"classes": None, "lower": 0}, "classes, or lower and upper"),
        ({"classes": ("one",)}, "two or more"),
        ({"classes": ("one", "one")}, "none twice"),
        ({"lower": 5, "upper": 5}, "BOUNDS_INVALID"),
        ({"upper": 5}, "must be left out"),
        ({"trees": 0}, "trees must be 1 to 1000"),
        ({"depth": 17}, "depth must be 1 to 16"),
        ({"trees": 1000, "depth": 16}, "cells"),
        ({"split_share": 1}, "split_share must be above 0"),
        ({"features_per_split": 4}, "features_per_split must be 1 to 3"),
        ({"seed": -1}, "seed must be"),
        ({"splits": "exponential", "mechanism": "gaussian"}, "mechanism must be laplace"),
        (
            {
                "splits": "margin",
                "trees": 1000,
                "depth": 11,
                "inputs": (Number(column="age", lower=0, upper=1, bins=99),),
            },
            "weigh",
        ),
        ({"output": "one_hot", "depth": 10}, "columns"),
        ({"splits": "best"}, "must be one of 'auto'"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_field(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lower": 80}, "below upper"),
        ({"bins": 1}, "bins"),
        ({"lower": -1e308, "upper": 1e308}, "below upper"),
    ],
)
def test_a_wrong_input_is_refused(wrong: dict[str, Any], words: str) -> None:
    body: dict[str, Any] = {"column": "age", "lower": 0, "upper": 80, **wrong}
    with pytest.raises(InvalidInput, match=words):
        Number(**body)


def test_a_state_that_cannot_be_is_refused() -> None:
    ptk = make(trees=2)
    arrays = train(ptk, people(100))
    for name, value in (
        ("leaves", arrays["leaves"] + 2**61),
        ("splits", arrays["splits"] + 3),
        ("splits", arrays["splits"] - 1),
        ("order", np.zeros_like(arrays["order"])),
        ("windows", np.zeros(1, np.int64)),
        ("variance", np.zeros(1)),
    ):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            ptk.validate({**arrays, name: value})
    with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
        make(trees=2, splits="random").validate(arrays)


def test_a_text_target_is_refused_by_type_alone() -> None:
    table = people(10)
    table = table.set_column(3, "pay", pa.array(["secret"] * 10))
    with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
        make(label="pay", lower=0, upper=1).train_dp(table.to_batches(), epsilon=1)
    assert "secret" not in str(caught.value)


def test_config_round_trips_and_steps_are_even() -> None:
    ptk = make(trees=4, output="leaves")
    assert Forest.from_json(ptk.as_json()) == ptk
    assert Forest.json_schema()["required"] == ["inputs", "label"]
    assert STEPS % 2 == 0
