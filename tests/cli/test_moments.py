"""Moments and the texts that stand for them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from ptklib.errors import InvalidInput
from ptkstore.api.moments import DAY_MS, Precision, day_text, iso, millis, millis_of, utc_text

NOON_MS = 1_772_625_600_000  # 2026-03-04T12:00Z


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-04T12:00",
        "2026-03-04T12:00Z",
        "2026-03-04T14:00+02:00",
        datetime(2026, 3, 4, 12),
        datetime(2026, 3, 4, 12, tzinfo=UTC),
        datetime(2026, 3, 4, 14, tzinfo=timezone(timedelta(hours=2))),
        NOON_MS,
    ],
)
def test_a_moment_has_many_spellings(value: object) -> None:
    assert millis(value) == NOON_MS
    if isinstance(value, str):
        assert millis_of(value) == NOON_MS
    assert millis(date(2026, 3, 4)) == NOON_MS - DAY_MS // 2


@pytest.mark.parametrize("wrong", [True, 1.5, None, "noon", "1600-01-01", 10**16])
def test_what_is_no_moment_of_a_column_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"time|Invalid isoformat"):
        millis(wrong)


def test_what_somebody_typed_is_refused_with_examples() -> None:
    assert millis_of("2900-01-01") > millis("2261-12-31")
    with pytest.raises(InvalidInput, match=r"such as 2026-03-04 .*TIME_INVALID"):
        millis_of("noon")
    with pytest.raises(InvalidInput, match="or 'now', got 'noon'"):
        millis_of("noon", examples="or 'now'")


@pytest.mark.parametrize(
    ("ms", "precision", "text", "day"),
    [
        (0, "minute", "1970-01-01 00:00", "1970-01-01"),
        (NOON_MS, "minute", "2026-03-04 12:00", "2026-03-04 12:00"),
        (NOON_MS + 59_999, "second", "2026-03-04 12:00:59", "2026-03-04 12:00:59"),
        (DAY_MS - 1, "second", "1970-01-01 23:59:59", "1970-01-01 23:59:59"),
        (-DAY_MS, "second", "1969-12-31 00:00:00", "1969-12-31"),
    ],
)
def test_texts_for_people(ms: int, precision: Precision, text: str, day: str) -> None:
    assert (utc_text(ms, precision), day_text(ms, precision)) == (text, day)


@pytest.mark.parametrize("ms", [0, NOON_MS, NOON_MS + 1, NOON_MS + 1000, -1, -60_000])
def test_the_shortest_text_says_the_same_moment(ms: int) -> None:
    assert millis(iso(ms)) == ms
