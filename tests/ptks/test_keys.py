"""Key domains: every fast path gives what a plain loop gives, and what is not in a domain is
unknown.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(
    values=st.lists(st.one_of(st.none(), INT64, st.integers(-5, 15))),
    first=st.integers(-5, 5),
    offset=st.integers(0, 3),
)
@settings(max_examples=100, deadline=None)
def test_integer_ranges(values: list[int | None], first: int, offset: int) -> None:
    key = IntegerRange(column="k", first=first, last=first + 6)
    column = pa.array([None] * offset + values, pa.int64()).slice(offset)
    wanted = [one - first if one is not None and first <= one <= first + 6 else 7 for one in values]
    assert key.codes(column).tolist() == wanted


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int32(), pa.uint64(), pa.int64()]
)
def test_integer_ranges_of_every_width(kind: pa.DataType) -> None:
    key = IntegerRange(column="k", first=-1, last=3)
    column = pa.array([0, 3, 4, None, 100], kind)
    assert key.codes(column).tolist() == [1, 4, 5, 5, 5]
    assert key.codes(column.dictionary_encode()).tolist() == [1, 4, 5, 5, 5]


def test_a_large_unsigned_number_is_not_minus_one() -> None:
    column = pa.array([2**64 - 1, 3], pa.uint64())
    assert IntegerRange(column="k", first=-1, last=3).codes(column).tolist() == [5, 4]
    assert Categories(column="k", values=(-1, 3)).codes(column).tolist() == [2, 1]


def test_booleans_are_zero_and_one() -> None:
    assert IntegerRange(column="k", first=0, last=1).codes(
        pa.array([True, False, None])
    ).tolist() == [1, 0, 2]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_categories(kind: pa.DataType) -> None:
    key = Categories(column="k", values=("b", "a", ""))
    column = pa.array(["a", "b", None, "c", "", "A"], pa.string()).cast(kind)
    wanted = [1, 0, 3, 3, 2, 3]
    assert key.codes(column).tolist() == wanted
    if kind != pa.string_view():
        coded = column.dictionary_encode()
        assert key.codes(coded).tolist() == wanted
        assert key.codes(coded.slice(2)).tolist() == wanted[2:]


# Few edges, many even ones, many that are nearly even, many that are not, and even ones too near to
# divide by.
EDGES = [
    (-1.0, 0.0, 2.5, 10.0),
    tuple(np.linspace(-1, 10, 60).tolist()),
    tuple((np.linspace(-1, 10, 56) + np.r_[0, np.tile([0.06, -0.06], 27), 0]).tolist()),
    tuple((np.linspace(0, 1, 60) ** 2 * 11 - 1).tolist()),
    tuple(place * 5e-324 for place in range(60)),
]


@pytest.mark.parametrize("edges", EDGES)
@given(
    values=st.lists(
        st.one_of(st.none(), st.floats(), st.floats(-2, 11), st.sampled_from(sum(EDGES, ())))
    )
)
@settings(max_examples=80, deadline=None)
def test_bins(edges: tuple[float, ...], values: list[float | None]) -> None:
    key = Bins(column="k", edges=edges)

    def plain(one: float | None) -> int:
        if one is None or math.isnan(one) or not edges[0] <= one <= edges[-1]:
            return key.size
        return min(sum(edge <= one for edge in edges) - 1, key.size - 1)

    assert key.codes(pa.array(values, pa.float64())).tolist() == [plain(one) for one in values]


@given(
    values=st.lists(
        st.one_of(
            st.none(), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_time_parts(values: list[datetime.datetime | None]) -> None:
    # Whole seconds: a cast to seconds rounds towards 1970.
    values = [one and one.replace(microsecond=0) for one in values]
    hour, weekday = TimePart(column="t", part="hour"), TimePart(column="t", part="weekday")
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array(values, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        assert hour.codes(column).tolist() == [24 if one is None else one.hour for one in values]
        assert weekday.codes(column).tolist() == [
            7 if one is None else one.weekday() for one in values
        ]


def test_a_time_zone_does_not_move_the_hour_from_utc() -> None:
    column = pa.array([datetime.datetime(2026, 1, 1, 23)], pa.timestamp("s")).cast(
        pa.timestamp("s", "UTC")
    )
    there = column.cast(pa.timestamp("s", "+05:00"))
    assert TimePart(column="t", part="hour").codes(there).tolist() == [23]
    days = pa.array([datetime.date(2026, 11, 16), None])
    assert TimePart(column="t", part="weekday").codes(days).tolist() == [0, 7]


@pytest.mark.parametrize(
    ("key", "column"),
    [
        (IntegerRange(column="k", first=0, last=1), pa.array([0.5])),
        (Categories(column="k", values=("a",)), pa.array([1])),
        (Categories(column="k", values=(1,)), pa.array(["a"])),
        (Bins(column="k", edges=(0, 1)), pa.array(["a"])),
        (TimePart(column="k", part="hour"), pa.array([1])),
    ],
)
def test_a_column_of_another_type_is_refused(key: Any, column: pa.Array) -> None:
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        key.codes(column)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IntegerRange(column="k", first=1, last=0),
        lambda: IntegerRange(column="k", first=0, last=2**22),
        lambda: IntegerRange(column="k", first=True, last=2),
        lambda: Categories(column="k", values=()),
        lambda: Categories(column="k", values=("a", "a")),
        lambda: Categories(column="k", values=(2**63,)),
        lambda: Categories(column="k", values=("a", 1)),  # type: ignore[arg-type]
        lambda: Bins(column="k", edges=(1.0,)),
        lambda: Bins(column="k", edges=(1.0, 1.0)),
        lambda: Bins(column="k", edges=(1.0, math.inf)),
        lambda: TimePart(column="k", part="minute"),  # type: ignore[arg-type]
    ],
)
def test_a_domain_that_is_none_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInput, match="CONFIG_INVALID"):
        make()
