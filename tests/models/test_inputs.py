"""Records as rows: scales, bounds, what is missing, norms, labels, and products that are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.inputs import STEPS, Input, NumberedColumns, Scaling, Vector
from ptklib.models.labels import LOG_LOSS_BOUND, ClassLabel, NumberLabel
from ptklib.models.products import exact_product, on_grid
from ptklib.models.rows import InputRows

FAR = Bounded(column="far", lower=0, upper=10)
TASTE = Vector(column="taste", size=3, lower=0, upper=1)
PIXELS = NumberedColumns(prefix="pixel_", first=3, last=4, lower=0, upper=255)
ZONE = Categories(column="zone", values=("north", "south"))
NAN, INF = float("nan"), float("inf")


def rows(*inputs: Input, norm: float | None = None, scaling: Scaling = "centred") -> InputRows:
    return InputRows(inputs, scaling, norm, True)


def matrix_of(source: Input, values: Any, scaling: Scaling = "centred") -> Any:
    column = values if isinstance(values, pa.Array) else pa.array(values)
    made = rows(source, scaling=scaling).matrix(pa.table({source.column: column}))  # type: ignore[union-attr]
    return made[:, :-1]


@pytest.mark.parametrize(
    ("scaling", "wanted"),
    [("centred", [-1, 0, 1, 1, -1, 0, 0, 1]), ("unit", [0, 0.5, 1, 1, 0, 0.5, 0.5, 1])],
)
def test_numbers_fill_their_bounds_and_the_missing_are_in_the_middle(
    scaling: Scaling, wanted: list[float]
) -> None:
    values = [0.0, 5.0, 10.0, INF, -INF, NAN, None, 1e308]
    assert matrix_of(FAR, values, scaling)[:, 0].tolist() == wanted


def test_numbers_of_every_type_are_read() -> None:
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.int32()):
        assert matrix_of(FAR, pa.array([0, 10], kind)).tolist() == [[-1], [1]]
    flag = Bounded(column="flag", lower=0, upper=1)
    assert matrix_of(flag, [True, False, None]).tolist() == [[1], [-1], [0]]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float64(), 3)],
    ids=str,
)
def test_lists_are_read_and_those_of_another_length_are_in_the_middle(kind: pa.DataType) -> None:
    values: list[Any] = [[0, 0.5, 1], None, [NAN, None, INF], [0, 0, 0]]
    wanted = [[-1, 0, 1], [0, 0, 0], [0, 0, 1], [-1, -1, -1]]
    if not pa.types.is_fixed_size_list(kind):
        values += [[1], [1, 1, 1, 1], []]
        wanted += [[0, 0, 0]] * 3
    whole = pa.array(values, kind)
    assert matrix_of(TASTE, whole).tolist() == wanted
    # A slice does not begin where its buffers do.
    assert matrix_of(TASTE, whole[2:4]).tolist() == wanted[2:4]


def test_lists_of_another_width_by_their_type_are_refused() -> None:
    for wrong in (pa.list_(pa.float64(), 2), pa.float64()):
        with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
            matrix_of(TASTE, pa.array([None], wrong))


def test_listed_values_have_an_entry_each_and_others_none() -> None:
    assert matrix_of(ZONE, ["south", None, "west"]).tolist() == [[0, 1], [0, 0], [0, 0]]
    hour = TimePart(column="when", part="hour")
    assert matrix_of(hour, pa.array([3600 * 5], pa.timestamp("s"))).argmax() == 5
    whole = IntegerRange(column="n", first=2, last=3)
    assert matrix_of(whole, [3, 4]).tolist() == [[0, 1], [0, 0]]
    assert matrix_of(Bins(column="b", edges=(0, 1, 2)), [1.5, NAN]).tolist() == [[0, 1], [0, 0]]


def test_every_entry_has_a_name() -> None:
    made = rows(FAR, TASTE, PIXELS, ZONE)
    assert made.columns() == ("far", "taste", "pixel_3", "pixel_4", "zone")
    assert made.names == (
        "far",
        "taste_0",
        "taste_1",
        "taste_2",
        "pixel_3",
        "pixel_4",
        "zone=north",
        "zone=south",
        "(intercept)",
    )
    assert made.width == len(made.names) == 9
    # Six numbers, a listed input and the intercept.
    assert made.limit == 8 * STEPS**2
    assert made.bound == pytest.approx(8**0.5)


values = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(values, values, st.sampled_from(["north", "south", "x"])), min_size=1),
    st.floats(1 / 64, 3),
    st.sampled_from(["centred", "unit"]),
)
def test_no_row_is_longer_than_its_norm_by_any_rounding(
    records: list[tuple[float, float, str]], norm: float, scaling: Scaling
) -> None:
    first, second, zone = (list(column) for column in zip(*records, strict=True))
    inputs = (FAR, Bounded(column="wide", lower=-3, upper=1), ZONE)
    made = rows(*inputs, norm=norm, scaling=scaling)
    steps = made.steps(pa.table({"far": first, "wide": second, "zone": zone}))
    assert np.array_equal(steps, np.trunc(steps))
    assert np.square(steps).sum(axis=1).max() <= made.limit
    assert np.square(steps[:, :-1]).sum(axis=1).max() <= (norm * STEPS) ** 2
    alone = made.steps(pa.table({"far": first[-1:], "wide": second[-1:], "zone": zone[-1:]}))
    assert np.array_equal(alone, steps[-1:])


def test_a_norm_is_reached() -> None:
    made = rows(FAR, Bounded(column="wide", lower=-3, upper=1), norm=1.0)
    (row,) = made.matrix(pa.table({"far": [10.0], "wide": [1.0]}))
    assert np.linalg.norm(row[:-1]) == pytest.approx(1, abs=1e-3)
    assert row[0] == row[1]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Vector(column="x", size=0, lower=0, upper=1),
        lambda: Vector(column="x", size=3, lower=1, upper=1),
        lambda: NumberedColumns(prefix="x", first=2, last=1, lower=0, upper=1),
        lambda: rows(FAR, FAR).check("y"),
        lambda: rows(ZONE).check("zone"),
        lambda: rows(FAR, norm=0.001).check("y"),
        lambda: NumberLabel("y", 1, 1).check(),
        lambda: ClassLabel("y", ("p",)).check(),
        lambda: ClassLabel("y", ("p", "p")).check(),
    ],
)
def test_what_makes_no_rows_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="CONFIG_INVALID"):
        wrong()


def test_labels_of_numbers_are_clipped_and_the_missing_lose_nothing() -> None:
    label = NumberLabel("y", 0, 10)
    table = pa.table({"y": [0.0, 12.0, None, NAN, 5.0]})
    steps, bad = label.steps(table)
    assert steps.tolist() == [-STEPS, STEPS, 0, 0, 0]
    assert bad is not None
    assert bad.tolist() == [False, False, True, True, False]
    predicted = np.array([10.0, 9.0, 0.0, 0.0, 2.0])
    assert label.losses("squared_error", predicted, table).tolist() == [100, 1, 0, 0, 9]
    assert label.losses("absolute_error", predicted, table).tolist() == [10, 1, 0, 0, 3]


def test_labels_of_classes_have_bounded_losses() -> None:
    label = ClassLabel("y", ("no", "yes"))
    table = pa.table({"y": ["no", "yes", None, "perhaps", "yes"]})
    predicted = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.25, 0.75]])
    losses = label.losses("log_loss", predicted, table)
    assert losses == pytest.approx([0, LOG_LOSS_BOUND, 0, 0, -np.log(0.75)])
    assert label.losses("error", predicted, table).tolist() == [0, 1, 0, 0, 0]
    assert label.losses("brier", predicted, table).tolist() == [0, 1, 0, 0, 0.0625]
    assert label.chosen(predicted).to_pylist() == ["no", "no", "no", "no", "yes"]
    assert ClassLabel("y", (3, 4)).codes(pa.table({"y": [4, 5]}))[0].tolist() == [1, 0]


@pytest.mark.parametrize("spread", [1e-9, 1.0, 1e12])
def test_a_product_is_the_same_wherever_a_row_stands(spread: float) -> None:
    generator = np.random.default_rng(0)
    whole = np.rint(generator.uniform(-1, 1, (300, 37)) * STEPS) / STEPS
    weights = generator.normal(0, spread, (37, 5)) * np.logspace(-6, 6, 37)[:, None]
    made = exact_product(whole, weights)
    for start, count in ((0, 1), (7, 2), (100, 33), (299, 1)):
        part = exact_product(whole[start : start + count], weights)
        assert np.array_equal(part, made[start : start + count])
    order = generator.permutation(37)
    assert np.array_equal(exact_product(whole[:, order], weights[order]), made)
    reach = np.abs(weights).sum(axis=0)
    assert np.all(np.abs(made - whole @ weights) <= reach * 2.0**-35)
    assert exact_product(whole, np.zeros(37)).tolist() == [0] * 300


def test_what_leaves_a_layer_is_a_row_of_the_next() -> None:
    generator = np.random.default_rng(1)
    values, unit = on_grid(generator.normal(0, 3, (50, 20)), most=8.0)
    assert np.array_equal(values / unit, np.rint(values / unit))
    assert np.abs(values).max() <= 8
    weights = generator.normal(size=(20, 4))
    made = exact_product(values, weights, unit=unit, most=8.0)
    assert np.array_equal(made[:3], exact_product(values[:3], weights, unit=unit, most=8.0))
    assert made == pytest.approx(values @ weights, abs=1e-6)
