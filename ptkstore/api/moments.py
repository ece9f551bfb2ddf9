"""Moments are milliseconds since 1970, and these are the texts that stand for them, in UTC.

==============  ====================================================================
`millis`        from an ISO text, a date or a datetime of a specification
`millis_of`     from what somebody typed; Reason: TIME_INVALID
`iso`           ``2026-01-01T00:00Z``, the shortest that says it: names of blocks
`utc_text`      ``2026-01-01 09:30:00``, for people
`day_text`      the same, but ``2026-01-01`` alone where a day begins
==============  ====================================================================
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Literal

from ptklib.errors import InvalidInput

__all__ = ["DAY_MS", "EXAMPLES", "Precision", "day_text", "iso", "millis", "millis_of", "utc_text"]

DAY_MS = 86_400_000
EXAMPLES = "such as 2026-03-04 or 2026-03-04T12:00"
Precision = Literal["minute", "second"]

# The years that `datetime` and all four Arrow units can hold (nanoseconds end in 2262).
_FIRST_MS, _LAST_MS = -8_520_336_000_000, 9_214_646_400_000
_FORMATS: dict[Precision, str] = {"minute": "%Y-%m-%d %H:%M", "second": "%Y-%m-%d %H:%M:%S"}


def millis(value: object) -> int:
    """Milliseconds since 1970 of an ISO text, a date, a datetime (UTC where it names no zone) or an
    integer; ValueError for anything else, and for what a column of timestamps cannot hold.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        moment_ms = value
    else:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime):
            raise ValueError("not a time")
        moment_ms = _millis(value)
    if not _FIRST_MS <= moment_ms <= _LAST_MS:
        raise ValueError("out of the range of timestamps")
    return moment_ms


def millis_of(text: str, *, examples: str = EXAMPLES) -> int:
    """Milliseconds since 1970 of an ISO 8601 time that somebody typed, UTC where it names no
    zone.
    """
    try:
        return _millis(datetime.fromisoformat(text))
    except ValueError:
        raise InvalidInput(
            "TIME_INVALID", f"a time must be ISO 8601, {examples}, got {text!r:.40}"
        ) from None


def iso(ms: int) -> str:
    """The shortest ISO text that says ``ms`` to the minute, second or millisecond."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    precision = "milliseconds" if ms % 1000 else "seconds" if moment.second else "minutes"
    text = moment.replace(microsecond=ms % 1000 * 1000).isoformat(timespec=precision)
    return text.removesuffix("+00:00") + "Z"


def utc_text(ms: int, precision: Precision) -> str:
    """A day and a time."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(_FORMATS[precision])


def day_text(ms: int, precision: Precision) -> str:
    """A day where it begins, a day and a time elsewhere."""
    return utc_text(ms, precision)[:10] if ms % DAY_MS == 0 else utc_text(ms, precision)


def _millis(moment: datetime) -> int:
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
