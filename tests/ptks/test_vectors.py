"""Vectors of whole numbers: inside their bounds whatever the values are, and each from its own
record alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.ptks.vectors import STEPS, Bounded, space_of
from ptklib.ptks.vectors import space as vectors

A, B, C = (
    Bounded(column="a", lower=-1, upper=1),
    Bounded(column="b", lower=0, upper=10),
    Bounded(column="c", lower=-5, upper=3),
)


def batch(rows: list[list[Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([row[place] for row in rows], pa.float64()) for place in range(len(rows[0]))],
        names=list("abc")[: len(rows[0])],
    )


def matrix(space: vectors.Space, batches: Any) -> np.ndarray[Any, Any]:
    return np.hstack(
        [np.zeros((space.size, 0)), *(piece.vectors.copy() for piece in space.pieces(batches))]
    )


def test_values_are_steps_from_the_middle_of_their_bounds() -> None:
    found = matrix(space_of((A, B, C)), [batch([[0.5, 5, -1], [-1, 0, 3], [1, 10, -5]])])
    assert found.T.tolist() == [[512, 0, 0], [-STEPS, -STEPS, STEPS], [STEPS, STEPS, -STEPS]]


def test_a_common_scale_keeps_the_proportions() -> None:
    space = space_of((A, B, C), "common")
    found = matrix(space, [batch([[1, 10, 3]])])
    assert space.reach.tolist() == [205, STEPS, 819]
    assert found.T.tolist() == [[205, STEPS, 819]]
    scaled = space.scaled(pa.table({"a": [1.0], "b": [10.0], "c": [3.0]}), np.zeros(3))
    assert scaled[:, 0].tolist() == pytest.approx([0.2, 1, 819 / STEPS])


def test_missing_values_leave_out_the_record_and_outliers_are_clipped() -> None:
    rows: list[list[Any]] = [
        [None, 1, 1],
        [0, math.nan, 1],
        [math.inf, -math.inf, 1e308],
        [0.5, 5, -1],
    ]
    (piece,) = space_of((A, B, C)).pieces([batch(rows)])
    assert piece.missing is not None
    assert piece.missing.tolist() == [True, True, False, False]
    assert piece.vectors.T.tolist() == [[0, 0, 0], [0, 0, 0], [STEPS, -STEPS, STEPS], [512, 0, 0]]
    assert (piece.rows, piece.present) == (4, 2)
    assert piece.sums.tolist() == [STEPS + 512, -STEPS, STEPS]


def test_features_take_what_they_are_told_for_missing_values() -> None:
    table = pa.table({"a": [None, 0.5, math.inf], "b": [5.0, math.nan, None]})
    found = space_of((A, B)).scaled(table, np.array([0.25, -0.75]))
    assert found.tolist() == [[0.25, 0.5, 1], [0, -0.75, -0.75]]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.bool_()])
def test_all_kinds_of_numbers_are_read(kind: pa.DataType) -> None:
    column = pa.array([1, 0, None], pa.int8()).cast(kind)
    found = matrix(space_of((A,)), [pa.RecordBatch.from_arrays([column], names=["a"])])
    assert found.tolist() == [[STEPS, 0, 0]]


numbers = st.floats(allow_nan=False, allow_infinity=True) | st.sampled_from(
    [-1.0, 1.0, 0.0, 10.0, -5.0]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=6), st.floats(1 / STEPS, 2)
)
def test_no_vector_is_longer_than_its_norm_by_any_rounding(
    rows: list[tuple[float, ...]], norm: float
) -> None:
    space = space_of((A, B, C), "range", norm)
    assert space.limit <= (norm * STEPS) ** 2 * (1 + 1e-12)
    for vector in matrix(space, [batch([list(row) for row in rows])]).T:
        whole = [int(one) for one in vector]
        assert whole == vector.tolist()
        assert sum(one * one for one in whole) <= space.limit
        assert all(abs(one) <= STEPS for one in whole)


def test_a_long_vector_keeps_its_direction() -> None:
    (piece,) = space_of((A, B), "range", 0.5).pieces([batch([[1, 10], [-1, 0], [0.1, 5]])])
    root = 0.5 / math.sqrt(2) * STEPS
    assert piece.vectors[:, 0].tolist() == [math.floor(root)] * 2
    assert piece.vectors[:, 1].tolist() == [-math.floor(root)] * 2
    assert piece.vectors[:, 2].tolist() == [round(0.1 * STEPS), 0]
    assert piece.sums.tolist() == [round(0.1 * STEPS), 0]


def test_a_vector_is_the_same_wherever_its_record_stands() -> None:
    generator = np.random.default_rng(1)
    table = pa.table({name: generator.normal(0, 4, 40_001) for name in "abc"})
    space = space_of((A, B, C), "range", 0.8)
    whole = matrix(space, table.to_batches())
    order = generator.permutation(table.num_rows)
    assert np.array_equal(
        matrix(space, table.take(order).to_batches(max_chunksize=777)), whole[:, order]
    )
    assert whole.sum(axis=1).tolist() == sum(piece.sums for piece in space.pieces(table)).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "norm", "words"),
    [
        ((), None, "values must be 1 to 1024 columns, none twice, got 0"),
        ((A, A), None, "none twice"),
        ((A,), 0.0, "norm must be from 1/1024"),
        ((A,), 2000.0, "norm must be from 1/1024"),
    ],
)
def test_spaces_that_are_none_are_refused(
    values: tuple[Bounded, ...], norm: float | None, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        space_of(values, "range", norm)
    assert caught.value.reason == "CONFIG_INVALID"


@pytest.mark.parametrize(
    ("lower", "upper"), [(1, 1), (2, 1), (-1e308, 1e308), (1e9, 1e9 + 1e-7), (0, 1e-310)]
)
def test_bounds_that_are_none_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidInput, match="CONFIG_INVALID"):
        Bounded(column="a", lower=lower, upper=upper)


def test_text_is_refused_by_type_alone() -> None:
    secret = pa.RecordBatch.from_pydict({"a": ["secret"]})
    with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
        list(space_of((A,)).pieces([secret]))
    assert "secret" not in str(caught.value)
