from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.levels import privacy_levels
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import show


def test_the_default_grid() -> None:
    texts = ["0.01", "0.017", "0.028", "0.046", "0.077", "0.13", "0.22", "0.36", "0.6", "1"]
    assert [show(one) for one in privacy_levels()] == texts


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({"count": 5}, ["0.01", "0.032", "0.1", "0.32", "1"]),
        ({"epsilon": 3, "count": 5}, ["0.03", "0.096", "0.3", "0.96", "3"]),
        ({"count": 2}, ["0.01", "1"]),
        ({"count": 1}, ["1"]),
        ({"count": 3, "lowest": "0.1", "highest": "0.5"}, ["0.1", "0.22", "0.5"]),
        ({"epsilon": "1/3", "count": 2}, ["1/300", "1/3"]),
    ],
)
def test_other_grids(asked: dict[str, Any], texts: list[str]) -> None:
    assert [show(one) for one in privacy_levels(**asked)] == texts


@given(st.integers(2, 20), st.sampled_from(["0.1", "1", "2.5", "8"]))
def test_levels_rise_evenly_within_their_ends(count: int, epsilon: str) -> None:
    levels = privacy_levels(epsilon, count=count)
    assert len(levels) == count
    assert list(levels) == sorted(set(levels))
    for step, level in enumerate(levels):
        assert float(level) == pytest.approx(
            float(epsilon) * 10 ** (-2 + 2 * step / (count - 1)), rel=0.05
        )


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"count": 0}, "LEVELS_INVALID"),
        ({"count": True}, "LEVELS_INVALID"),
        ({"count": 101}, "LEVELS_INVALID"),
        ({"lowest": 0}, "LEVELS_INVALID"),
        ({"lowest": "0.5", "highest": "0.1"}, "LEVELS_INVALID"),
        ({"highest": 2}, "LEVELS_INVALID"),
        ({"lowest": "0.5", "highest": "0.51"}, "LEVELS_INVALID"),
        ({"lowest": 1, "count": 2}, "LEVELS_INVALID"),
        ({"epsilon": 0}, "AMOUNT_ZERO"),
    ],
)
def test_bad_grids_are_refused(asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        privacy_levels(**asked)
    assert caught.value.reason == reason
