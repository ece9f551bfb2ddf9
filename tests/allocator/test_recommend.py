from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.plan import Explanation, Plan
from allocator.recommend import recommend
from allocator.single.solve import solve
from ptklib.errors import InvalidInput
from tests.allocator.instances import taxi

PLAN = solve(taxi())


@pytest.mark.parametrize(
    ("asked", "samples", "window_seconds"),
    [
        ({"records_per_second": 1, "margin": 0}, 357_009, 357_009),
        ({"records_per_second": "5.1", "margin": 0}, 357_009, 70_002),
        ({"records_per_second": "5.1"}, 392_710, 77_002),
        ({"records_per_second": "5.1", "profile_share": "0.1"}, 436_345, 85_558),
        (
            {"records_per_second": "5.1", "profile_share": "0.1", "block_seconds": 3600},
            436_345,
            86_400,
        ),
        ({"records_per_second": 10**9}, 392_710, 1),
    ],
)
def test_samples_and_window(asked: dict[str, Any], samples: int, window_seconds: int) -> None:
    found = recommend(PLAN, **asked)
    assert (found.samples, found.window_seconds, found.within_n_max) == (
        samples,
        window_seconds,
        True,
    )
    assert found.as_json()["text"].startswith(
        f"Hold {samples} samples in a window of {window_seconds} seconds"
    )


@given(
    st.fractions(Fraction(1, 1000), 10**6, max_denominator=1000),
    st.fractions(0, Fraction(9, 10), max_denominator=100),
    st.fractions(0, 3, max_denominator=100),
    st.integers(1, 10**6),
)
def test_the_window_holds_the_plan_and_one_block_less_would_not(
    rate: Fraction, share: Fraction, margin: Fraction, block: int
) -> None:
    found = recommend(
        PLAN, records_per_second=rate, profile_share=share, margin=margin, block_seconds=block
    )
    assert PLAN.total_samples is not None
    assert found.samples * (1 - share) >= PLAN.total_samples * (1 + margin)
    assert (found.samples - 1) * (1 - share) < PLAN.total_samples * (1 + margin)
    assert found.window_seconds % block == 0
    assert found.window_seconds * rate >= found.samples
    assert (found.window_seconds - block) * rate < found.samples


def test_more_than_the_policy_allows_is_said() -> None:
    found = recommend(PLAN, records_per_second=5, n_max=357_009)
    assert not found.within_n_max
    assert "more than the 357009" in found.text


NO_PLAN = Plan("INFEASIBLE", None, None, None, (), (), "exact", 0.0, Explanation("why"))


@pytest.mark.parametrize(
    ("plan", "asked", "reason"),
    [
        (NO_PLAN, {"records_per_second": 1}, "RECOMMENDATION_IMPOSSIBLE"),
        (PLAN, {"records_per_second": 0}, "RECOMMENDATION_IMPOSSIBLE"),
        (PLAN, {"records_per_second": 1, "profile_share": 1}, "RECOMMENDATION_IMPOSSIBLE"),
        (PLAN, {"records_per_second": 1, "block_seconds": 0}, "RECOMMENDATION_IMPOSSIBLE"),
        (PLAN, {"records_per_second": -1}, "AMOUNT_NEGATIVE"),
        (PLAN, {"records_per_second": 1, "margin": float("nan")}, "AMOUNT_NOT_FINITE"),
    ],
)
def test_what_has_no_answer_is_refused(plan: Plan, asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        recommend(plan, **asked)
    assert caught.value.reason == reason
