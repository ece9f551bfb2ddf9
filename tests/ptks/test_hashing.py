"""Hashed keys: the same value has the same cell whatever holds it, cells are even, rows and salts
are independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from ptklib.errors import InvalidInput
from ptklib.ptks.tables.hashing import Hashed, hash_values

TEXTS = [
    "",
    "a",
    "abcdefg",
    "abcdefgh",
    "abcdefghi",
    "straße",
    "x" * 8,
    "x" * 16,
    "x" * 17,
    "long text " * 30,
]
GOLDEN_TEXTS = ["0x0", "0x551199a6fe732342", "0x9a0edb7f1fc8a4bf"]
GOLDEN_NUMBERS = ["0x35a98f4d286a90b9", "0xee71a19360e3270d", "0xa880e0fb35366244"]
GOLDEN_CELLS = [[278262, 1048576], [877519, 1048576]]


def cells(column: pa.Array, **options: Any) -> list[list[int]]:
    key = Hashed(**{"column": "a", "width": 1 << 20, **options})
    return [row.tolist() for row in key.row_codes(column)]


def test_the_hash_never_changes() -> None:
    """States outlive releases: these numbers are for ever."""
    assert [hex(one) for one in hash_values(pa.array(["", "a", "abcdefghi"]))] == GOLDEN_TEXTS
    assert [hex(one) for one in hash_values(pa.array([0, 1, -1]))] == GOLDEN_NUMBERS
    assert cells(pa.array(["a", None]), rows=2, salt=7) == GOLDEN_CELLS


def test_a_text_has_the_same_cell_in_every_form() -> None:
    plain = pa.array(TEXTS)
    wanted = cells(plain, rows=2)
    assert len(set(wanted[0])) == len(TEXTS)
    forms = [
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        pa.array(["zz", *TEXTS, "z"]).slice(1, len(TEXTS)),
        pa.DictionaryArray.from_arrays(
            list(range(len(TEXTS))), pa.array([*TEXTS, *"bcdefghijklm"])
        ),
    ]
    for form in forms:
        assert cells(form, rows=2) == wanted
    for place, text in enumerate(TEXTS):
        assert cells(pa.array([text]), rows=2) == [[row[place]] for row in wanted]


def test_a_whole_number_has_the_same_cell_in_every_width() -> None:
    wanted = cells(pa.array([-3, 0, 1, 100], pa.int64()))
    for kind in (pa.int8(), pa.int16(), pa.int32()):
        assert cells(pa.array([-3, 0, 1, 100], kind)) == wanted
    assert cells(pa.array([0, 1, 100], pa.uint16())) == [wanted[0][1:]]
    assert cells(pa.array([False, True])) == [wanted[0][1:3]]
    assert cells(pa.array(["-3", "0", "1", "100"])) != wanted


@pytest.mark.parametrize(
    "column", [pa.array(["a", None, "b"]), pa.array([1, None, 2]), pa.array([True, None, False])]
)
def test_a_null_has_the_last_cell(column: pa.Array) -> None:
    for form in (column, column.dictionary_encode(), column.slice(1)):
        place = 0 if len(form) == 2 else 1
        for row in cells(form, width=64, rows=3):
            assert row[place] == 64
            assert all(0 <= one < 64 for one in row[:place] + row[place + 1 :])


@pytest.mark.parametrize("width", [16, 1000])
@pytest.mark.parametrize("kind", ["numbers", "spaced", "texts"])
def test_cells_are_even_and_rows_and_salts_are_independent(width: int, kind: str) -> None:
    """Consecutive, spaced and printed numbers are hard for weak hashes; the right law passes and a
    lopsided one does not.
    """
    count = 200_000
    values: Any = np.arange(count) * (2**32 if kind == "spaced" else 1)
    column = (
        pa.array([f"user-{one}" for one in values.tolist()])
        if kind == "texts"
        else pa.array(values)
    )
    first, second = Hashed(column="a", width=width, rows=2).row_codes(column)
    (salted,) = Hashed(column="a", width=width, salt=1).row_codes(column)
    for codes in (first, second, salted):
        assert stats.chisquare(np.bincount(codes, minlength=width)).pvalue > 1e-6
    few = width if width < 100 else 20
    for other in (second, salted):
        pairs = np.bincount(first % few * few + other % few, minlength=few * few)
        assert stats.chisquare(pairs).pvalue > 1e-6
    lopsided = np.where(np.arange(count) % 50 == 0, 0, first)
    assert stats.chisquare(np.bincount(lopsided, minlength=width)).pvalue < 1e-6


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"width": 1}, "width of 'a' must be 2 to"),
        ({"width": 2**23}, "width of 'a' must be 2 to"),
        ({"rows": 0}, "rows of 'a' must be 1 to 8"),
        ({"rows": 9}, "rows of 'a' must be 1 to 8"),
        ({"salt": -1}, "salt of 'a' must be"),
        ({"salt": 2**63}, "salt of 'a' must be"),
    ],
)
def test_a_wrong_configuration_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Hashed(**{"column": "a", "width": 16, **wrong})


def test_other_types_are_refused_by_type_alone() -> None:
    for column in (pa.array([1.5]), pa.array([b"secret"]), pa.array([["a"]])):
        with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
            cells(column)
        assert "secret" not in str(caught.value)


def test_no_values_have_no_cells() -> None:
    for column in (
        pa.array([], pa.string()),
        pa.array([], pa.int32()),
        pa.array([], pa.string()).dictionary_encode(),
    ):
        assert cells(column, rows=2) == [[], []]
