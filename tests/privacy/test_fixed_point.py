"""Fixed point: the encoded sum moves by no more than the stated sensitivity, whatever the floats
do.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.fixed_point import FixedPoint

_reals = st.floats(allow_nan=True, allow_infinity=True, width=64)


@st.composite
def _codes(draw: st.DrawFn) -> FixedPoint:
    lower = draw(st.fractions(-1000, 1000, max_denominator=1000))
    upper = lower + draw(st.fractions(Fraction(1, 1000), 1000, max_denominator=1000))
    most = max(abs(lower), abs(upper))
    return FixedPoint(lower, upper, most / draw(st.integers(1, 10**6)))


class TestEncode:
    @pytest.mark.parametrize(
        ("bounds", "value", "units"),
        [
            ((0, 1, "0.1"), 0.3, 3),
            ((0, 1, "0.1"), 0.26, 3),
            ((0, 1, "0.1"), -5.0, 0),
            ((0, 1, "0.1"), 7.0, 10),
            ((0, 1, "0.1"), np.inf, 10),
            ((0, 1, "0.1"), -np.inf, 0),
            ((0, 1, "0.1"), np.nan, 0),
            ((-1, 1, "0.1"), np.nan, 0),
            ((2, 5, "0.5"), np.nan, 4),
            ((-5, -2, "0.5"), np.nan, -4),
            ((-1.5, "2.5", 1), 2.5, 2),
            ((-1.5, "2.5", 1), -1.5, -2),
            (("-0.1", "0.1", "1e-6"), -0.1, -100_000),
            ((0, 255, 1), 1e300, 255),
            # As a float this bound is 1.5, which rounds to 2; exactly, it rounds to 1, and that is
            # the sensitivity.
            ((0, "1.49999999999999999999", 1), 9.0, 1),
            (("-1.49999999999999999999", 0, 1), -9.0, -1),
        ],
    )
    def test_table(self, bounds: tuple[object, object, object], value: float, units: int) -> None:
        assert FixedPoint(*bounds).encode([value]).tolist() == [units]  # type: ignore[arg-type]

    @given(code=_codes(), values=st.lists(_reals, min_size=1, max_size=20))
    def test_no_value_exceeds_the_sensitivity(self, code: FixedPoint, values: list[float]) -> None:
        encoded = code.encode(values)
        assert encoded.dtype == np.int64
        assert int(np.abs(encoded).max()) <= code.sensitivity
        assert encoded.min() >= code.lower_units
        assert encoded.max() <= code.upper_units

    @given(code=_codes(), values=st.lists(_reals, min_size=1, max_size=20), at=st.integers(0, 19))
    def test_removing_one_record_moves_the_sum_within_the_sensitivity(
        self, code: FixedPoint, values: list[float], at: int
    ) -> None:
        without = [v for i, v in enumerate(values) if i != at % len(values)]
        assert abs(code.total(values) - code.total(without)) <= code.sensitivity

    @given(code=_codes(), values=st.lists(_reals, min_size=1, max_size=40))
    def test_each_value_is_encoded_on_its_own(self, code: FixedPoint, values: list[float]) -> None:
        assert code.encode(values).tolist() == [int(code.encode([v])[0]) for v in values]

    @given(code=_codes(), value=st.floats(-2000, 2000))
    def test_the_error_is_half_a_resolution(self, code: FixedPoint, value: float) -> None:
        clipped = min(max(Fraction(value), code.lower), code.upper)
        error = abs(int(code.encode([value])[0]) * code.resolution - clipped)
        assert error <= code.resolution * Fraction(500_001, 1_000_000)

    def test_keeps_the_shape_and_the_input(self) -> None:
        values = np.array([[0.1, np.nan], [9.0, -9.0]])
        before = values.copy()
        assert FixedPoint(-1, 1, "0.01").encode(values).tolist() == [[10, 0], [100, -100]]
        assert np.array_equal(values, before, equal_nan=True)

    @pytest.mark.parametrize("values", [["a"], [1j], [object()], np.ma.array([1.0], mask=[True])])
    def test_refuses_what_is_not_real(self, values: list[object]) -> None:
        with pytest.raises(InvalidInput) as caught:
            FixedPoint(0, 1, 1).encode(values)  # type: ignore[arg-type]
        assert caught.value.reason == "VALUES_NOT_REAL"

    def test_magnitudes_and_gaps_never_decide_a_refusal(self) -> None:
        values = [2**70, -(2**70), None, 2.0**70, 1]
        assert FixedPoint(-5, 5, 1).encode(values).tolist() == [5, -5, 0, 5, 1]  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "values", [[], [True, False], [1, 2], np.array([1, 2], dtype=np.uint8)]
    )
    def test_takes_all_real_types(self, values: list[int]) -> None:
        assert FixedPoint(0, 5, 1).encode(values).tolist() == [int(v) for v in values]


class TestTotal:
    def test_is_exact_where_int64_and_floats_are_not(self) -> None:
        code = FixedPoint(0, 2**53, 1)
        values = np.full(3000, 2.0**53)
        values[0] = 1.0
        assert code.total(values) == 2999 * 2**53 + 1
        assert code.total(values) > 2**63

    def test_does_not_depend_on_the_order(self) -> None:
        values = np.random.default_rng(1).normal(size=200_000)
        code = FixedPoint(-3, 3, "1e-9")
        total = code.total(values)
        assert total == code.total(values[::-1]) == code.total(np.sort(values))
        assert total == sum(code.encode(values).tolist())

    def test_of_nothing_is_zero(self) -> None:
        assert FixedPoint(0, 1, 1).total([]) == 0

    def test_decode_rounds_once(self) -> None:
        code = FixedPoint(0, 1, "0.1")
        assert code.decode(3) == 0.3
        assert code.decode(-(10**20)) == -1e19
        assert code.decode(10**17 + 1) == float(Fraction(10**17 + 1, 10))


class TestSensitivity:
    def test_counts_the_rounding_of_the_bounds(self) -> None:
        assert FixedPoint(0, "2.6", 1).sensitivity == 3
        assert FixedPoint("-7.7", 2, 1).sensitivity == 8

    def test_columns(self) -> None:
        code = FixedPoint(-1, 1, "0.01")
        assert (code.l1(3), code.l2_squared(3)) == (300, 30_000)
        with pytest.raises(InvalidInput) as caught:
            code.l1(0)
        assert caught.value.reason == "COLUMNS_INVALID"

    def test_is_a_value(self) -> None:
        assert FixedPoint(0, 1, "0.1") == FixedPoint("0", 1.0, Fraction(1, 10))
        assert FixedPoint(np.float64(-1.5), Decimal(1), 0.1).lower == Fraction(-3, 2)
        assert hash(FixedPoint(0, 1, "0.1")) == hash(FixedPoint(0, 1, 0.1))
        with pytest.raises(AttributeError):
            FixedPoint(0, 1, 1).lower = Fraction(3)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("lower", "upper", "resolution", "reason"),
    [
        (1, 1, 1, "BOUNDS_INVALID"),
        (2, 1, 1, "BOUNDS_INVALID"),
        (0, 1, 0, "RESOLUTION_INVALID"),
        (0, 1, "-0.1", "RESOLUTION_INVALID"),
        (0, 1, 2, "RESOLUTION_INVALID"),
        (0, 1, "1e-17", "RESOLUTION_INVALID"),
        (0, float("inf"), 1, "AMOUNT_NOT_FINITE"),
        (float("-inf"), 0, 1, "AMOUNT_NOT_FINITE"),
        (float("nan"), 1, 1, "AMOUNT_NOT_FINITE"),
        ("x", 1, 1, "AMOUNT_NOT_A_NUMBER"),
        ("--1", 1, 1, "AMOUNT_NEGATIVE"),
        (0, True, 1, "AMOUNT_NOT_A_NUMBER"),
        (None, 1, 1, "AMOUNT_NOT_A_NUMBER"),
        (Decimal("sNaN"), 1, 1, "AMOUNT_NOT_FINITE"),
        (Decimal("-Infinity"), 1, 1, "AMOUNT_NOT_FINITE"),
    ],
)
def test_refusals(lower: object, upper: object, resolution: object, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FixedPoint(lower, upper, resolution)  # type: ignore[arg-type]
    assert caught.value.reason == reason
