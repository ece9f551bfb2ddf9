"""Sums by cell are exact, whatever the order of the records and however many cells there are."""

from __future__ import annotations

import numpy as np
import pytest

from ptklib.ptks.tables.adding import Adder


@pytest.mark.parametrize("cells", [1, 7, 266, 2048, 2049, 5000])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_sums_are_exact(cells: int, order: str) -> None:
    rng = np.random.default_rng(cells)
    codes = rng.integers(0, cells, 10_001)
    codes = np.sort(codes) if order == "sorted" else codes
    values = rng.integers(0, 4097, len(codes)).astype(np.float64)
    adder = Adder(cells, 4096)
    places = adder.places(codes)
    wanted = (
        np.bincount(codes, minlength=cells),
        np.bincount(codes, weights=values, minlength=cells).astype(np.int64),
    )
    counts, sums = adder.counts_and_sums(places, values)
    assert counts.tolist() == adder.counts(places).tolist() == wanted[0].tolist()
    assert sums.tolist() == adder.sums(places, values).tolist() == wanted[1].tolist()


@pytest.mark.parametrize("most", [1, 4096, 2**22, 2**23, 2**37])
def test_the_largest_values_in_one_cell_do_not_run_into_the_counts(most: int) -> None:
    rows = 1 << 15
    adder = Adder(3, most)
    counts, sums = adder.counts_and_sums(adder.places(np.full(rows, 1)), np.full(rows, float(most)))
    assert counts.tolist() == [0, rows, 0]
    assert sums.tolist() == [0, rows * most, 0]


def test_pieces_may_differ_in_length() -> None:
    adder = Adder(5)
    for rows in (3, 1000, 0, 17):
        codes = np.arange(rows) % 5
        assert (
            adder.counts(adder.places(codes)).tolist() == np.bincount(codes, minlength=5).tolist()
        )
