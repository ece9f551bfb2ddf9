"""Exact amounts: what is read, what is refused, and how it rounds."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import (
    ATTO,
    MAX_EPSILON,
    NANO,
    ceil_units,
    delta_exact,
    epsilon_exact,
    exact,
    floor_units,
    show,
    show_units,
)

TENTH = Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, TENTH),
        ("0.1", TENTH),
        (" 0.10 ", TENTH),
        ("1/10", TENTH),
        ("1e-1", TENTH),
        (".1", TENTH),
        (Decimal("0.1"), TENTH),
        (TENTH, TENTH),
        (np.float64(0.1), TENTH),
        (np.int64(3), Fraction(3)),
        (0, Fraction(0)),
        ("1e-6", Fraction(1, 10**6)),
        ("0e999999999999", Fraction(0)),
        (5e-324 * 0, Fraction(0)),
    ],
)
def test_reads_what_a_human_meant(value: object, meant: Fraction) -> None:
    assert exact(value) == meant  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "AMOUNT_NOT_FINITE"),
        (float("inf"), "AMOUNT_NOT_FINITE"),
        (Decimal("NaN"), "AMOUNT_NOT_FINITE"),
        ("-inf", "AMOUNT_NOT_FINITE"),
        ("nan", "AMOUNT_NOT_FINITE"),
        (True, "AMOUNT_NOT_A_NUMBER"),
        (None, "AMOUNT_NOT_A_NUMBER"),
        ([1], "AMOUNT_NOT_A_NUMBER"),
        ("one", "AMOUNT_NOT_A_NUMBER"),
        ("", "AMOUNT_NOT_A_NUMBER"),
        ("1/0", "AMOUNT_NOT_A_NUMBER"),
        ("١", "AMOUNT_NOT_A_NUMBER"),
        (1j, "AMOUNT_NOT_A_NUMBER"),
        (-1, "AMOUNT_NEGATIVE"),
        ("-0.1", "AMOUNT_NEGATIVE"),
        ("1e400", "AMOUNT_TOO_LARGE"),
        (1e300, "AMOUNT_TOO_LARGE"),
        ("1e-400", "AMOUNT_TOO_SMALL"),
        ("9" * 400, "AMOUNT_TOO_LONG"),
        (10**400, "AMOUNT_TOO_LONG"),
        (Fraction(1, 3**200), "AMOUNT_TOO_LONG"),
    ],
)
def test_refuses_the_rest_with_a_stable_reason(value: object, reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        exact(value)  # type: ignore[arg-type]
    assert refusal.value.reason == reason


def test_epsilon_is_positive_and_bounded() -> None:
    assert epsilon_exact(MAX_EPSILON) == MAX_EPSILON
    for value, reason in ((0, "AMOUNT_ZERO"), (MAX_EPSILON + 1, "AMOUNT_TOO_LARGE")):
        with pytest.raises(InvalidInput) as refusal:
            epsilon_exact(value)
        assert refusal.value.reason == reason


def test_delta_is_zero_or_between_an_atto_and_one() -> None:
    assert delta_exact(0) == 0
    assert delta_exact("1e-18") == Fraction(1, ATTO)
    for value, reason in ((1, "AMOUNT_TOO_LARGE"), ("1e-19", "AMOUNT_TOO_SMALL")):
        with pytest.raises(InvalidInput) as refusal:
            delta_exact(value)
        assert refusal.value.reason == reason


FRACTIONS = st.fractions(min_value=0, max_value=1000, max_denominator=10**12)


@given(FRACTIONS)
def test_printing_and_reading_are_inverse(value: Fraction) -> None:
    assert exact(show(value)) == value


@given(st.floats(min_value=1e-20, max_value=1e20))
def test_a_float_means_its_shortest_decimal(value: float) -> None:
    assert float(exact(value)) == value
    assert exact(value) == Fraction(Decimal(repr(value)))


@given(FRACTIONS)
def test_charges_round_up_and_capacities_down(value: Fraction) -> None:
    up, down = ceil_units(value, NANO), floor_units(value, NANO)
    assert Fraction(down, NANO) <= value <= Fraction(up, NANO)
    assert up - down == (0 if (value * NANO).denominator == 1 else 1)


def test_ten_tenths_are_one() -> None:
    assert 10 * ceil_units(exact(0.1), NANO) == floor_units(exact(1), NANO)


@pytest.mark.parametrize(
    ("units", "text"), [(100_000_000, "0.1"), (0, "0"), (1, "1e-09"), (NANO, "1")]
)
def test_units_print_as_the_decimal_they_stand_for(units: int, text: str) -> None:
    assert show_units(units, NANO) == text


@pytest.mark.parametrize("precision", [1, 5, 28])
def test_no_decimal_context_of_the_caller_matters(precision: int) -> None:
    with decimal.localcontext() as context:
        context.prec = precision
        for text in (
            "0.149",
            "0.9999999999999999999999999999999999999",
            "0.1000000000000000000000000000000000001",
            "-0.0",
        ):
            value = exact(text)
            assert value == Fraction(text)
            assert exact(show(value)) == value
        assert exact(0.951) == Fraction(951, 1000)
        assert exact(Decimal("0.12345678901234567")) == Fraction("0.12345678901234567")
        assert show(Fraction(123456789, 1000)) == "123456.789"


def test_non_ascii_digits_are_no_numbers() -> None:
    for text in ("١/٢", "１", "1e１"):
        with pytest.raises(InvalidInput):
            exact(text)
