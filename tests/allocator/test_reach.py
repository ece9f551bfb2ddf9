"""The bounds of all coordinates at once are those that are computed for one by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.admission.coordinates import (
    Offer,
    PtkOffers,
    problem_at,
    room_of,
    usable_coordinates,
)
from allocator.admission.reach import exact_sum, least_in_each
from allocator.problem import MAX_SAMPLES
from allocator.verify import least_possible
from ptklib.privacy.filters import make_filter

RENYI = make_filter("renyi", 1, "1e-6")
SIZES = st.one_of(st.integers(1, 50), st.integers(1, MAX_SAMPLES))


@st.composite
def offers(draw: st.DrawFn) -> list[PtkOffers]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        levels = draw(st.integers(0, 4))
        found.append(
            PtkOffers(
                f"p{number}",
                tuple(
                    Offer(
                        f"{level}",
                        draw(SIZES),
                        tuple(draw(st.integers(0, top)) for top in RENYI.ceiling),
                    )
                    for level in range(levels)
                ),
            )
        )
    return found


@given(offers(), st.integers(0, 100))
def test_each_bound_is_that_of_its_coordinate(ptks: list[PtkOffers], percent: int) -> None:
    loss = tuple(most * percent // 100 for most in RENYI.capacity)
    usable = usable_coordinates(RENYI, loss)
    found = least_in_each(RENYI, room_of(RENYI, loss), ptks, usable)
    assert found == {one: least_possible(problem_at(RENYI, loss, ptks, one)) for one in usable}


@given(
    st.lists(
        st.lists(st.integers(0, (1 << 63) - 1), min_size=3, max_size=3), min_size=1, max_size=40
    )
)
def test_sums_are_exact(rows: list[list[int]]) -> None:
    assert exact_sum(np.array(rows, dtype=np.int64)) == [
        sum(column) for column in zip(*rows, strict=True)
    ]
