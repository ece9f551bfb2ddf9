from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analytic import Profile, profile
from profiler.levels import privacy_levels
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number


@dataclass(frozen=True)
class Mean:
    """A closed form: records_per_unit / (target * epsilon), out of reach below a tenth."""

    kind: str = "mean"

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...] | None:
        assert isinstance(target, float)
        return tuple(
            math.ceil(records_per_unit / (target * float(one)))
            if Fraction(one) >= Fraction(1, 10)
            else None
            for one in levels
        )


@dataclass(frozen=True)
class Told:
    """Answers what it is told to."""

    answer: tuple[int | None, ...] | None
    kind: str = "told"

    def analytic_profile(
        self,
        target: float,
        levels: Sequence[Number],
        delta: Number = 0,
        *,
        records_per_unit: int = 1,
    ) -> tuple[int | None, ...] | None:
        return self.answer


def test_a_profile_says_what_it_promises() -> None:
    found = profile(Mean(), "0.05", ["0.05", "0.1", 1], "1e-6", 2, ptk_id="speed")
    assert found.levels == (Fraction(1, 20), Fraction(1, 10), Fraction(1))
    assert found.samples == (None, 400, 40)
    assert (found.source, found.promised, found.confidence) == (
        "analytic",
        Fraction(1, 20),
        Fraction(19, 20),
    )
    assert Profile.from_json(json.loads(json.dumps(found.as_json()))) == found


@given(st.lists(st.none() | st.integers(1, 50), min_size=1, max_size=8))
def test_any_answer_becomes_monotone(answer: list[int | None]) -> None:
    levels = [Fraction(i + 1, 10) for i in range(len(answer))]
    found = profile(Told(tuple(answer)), "0.1", levels).samples
    for i, kept in enumerate(found):
        seen = [one for one in answer[: i + 1] if one is not None]
        assert kept == (min(seen) if seen else None)


def test_a_kind_without_a_closed_form_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        InvalidInput, match=r"kind told has no closed form.*profile it on data"
    ) as caught:
        profile(Told(None), "0.1", privacy_levels(), ptk_id="x")
    assert caught.value.reason == "PROFILE_UNAVAILABLE"
    assert caught.value.details == {"ptk_id": "x"}


@pytest.mark.parametrize(
    ("answer", "levels", "reason"),
    [
        ((1,), ["0.1", "0.2"], "PROFILE_INVALID"),
        ((1, 1), ["0.2", "0.1"], "PROFILE_INVALID"),
        ((1, 1), ["0.1", "0.1"], "PROFILE_INVALID"),
        ((), [], "PROFILE_INVALID"),
        ((0,), ["0.1"], "PROFILE_INVALID"),
        ((1.5,), ["0.1"], "PROFILE_INVALID"),
        ((1,), [0], "AMOUNT_ZERO"),
    ],
)
def test_what_makes_no_profile_is_refused(answer: Any, levels: list[Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        profile(Told(answer), "0.1", levels)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "change",
    [
        {"samples": [5, None]},
        {"samples": [5, 6]},
        {"samples": 5},
        {"samples": [5]},
        {"more": 1},
        {"confidence": "1"},
        {"confidence": "0"},
    ],
)
def test_what_is_no_json_form_is_refused(change: dict[str, Any]) -> None:
    body = profile(Told((5, 4)), "0.1", ["0.1", "0.2"]).as_json()
    with pytest.raises(InvalidInput) as caught:
        Profile.from_json({**body, **change})
    assert caught.value.reason == "PROFILE_INVALID"
