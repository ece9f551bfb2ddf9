"""Numbers, times and shares as people read them. Filters of the templates."""

from __future__ import annotations

from ptkstore.api.moments import day_text

__all__ = ["FILTERS", "amount", "duration", "moment", "percent", "plain", "whole", "window_begins"]

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def whole(number: float | None) -> str:
    """A whole number with thousands apart."""
    return "–" if number is None else f"{number:,.0f}"


def plain(number: float | None) -> str:
    """A number with as many digits as it needs, at most six."""
    return "–" if number is None else f"{number:.6g}"


def amount(number: str | float | None) -> str:
    """An epsilon or a delta to four digits: 0.5, 0.03125, 1e-06."""
    return "–" if number is None or number == "" else f"{float(number):.4g}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share in percent. What is not nothing does not look like nothing."""
    if share is None:
        return "–"
    least = 10.0**-digits / 100
    if 0 < share < least:
        return f"<\u00a0{100 * least:.{digits}f}\u00a0%"
    return f"{100 * share:.{digits}f}\u00a0%"


def duration(seconds: float | None) -> str:
    """A span of time in its two largest units: 1 d 12 h, 90 ms. Numbers stay with their units."""
    if seconds is None:
        return "–"
    if 0 < seconds < 1:
        return f"{max(1, round(1000 * seconds))}\u00a0ms"
    rest, parts = round(seconds), []
    for size, name in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}\u00a0{name}")
    return " ".join(parts[:2]) or "0\u00a0s"


def moment(ms: int | None) -> str:
    """A time in UTC: a day at midnight, else to the minute."""
    return "–" if ms is None else day_text(ms, "minute")


def window_begins(window: int, window_seconds: int) -> str:
    """When a window begins: its number counts windows since 1970."""
    return moment(window * window_seconds * 1000)


FILTERS = {
    "amount": amount,
    "duration": duration,
    "moment": moment,
    "percent": percent,
    "plain": plain,
    "whole": whole,
}
