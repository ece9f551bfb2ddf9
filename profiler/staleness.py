"""When to profile again: age, another configuration or target, or drift that DP numbers tell.

Looks at no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Made", "stale"]

# Windows that hold so many times more or fewer records than when the profile was made are another
# stream.
_FACTOR = 2


@dataclass(frozen=True)
class Made:
    """Under what a profile was made: times in milliseconds, the DP number of records of its
    window.
    """

    at_ms: int
    config_version: int
    target: float
    dp_records: int


def stale(
    made: Made,
    *,
    now_ms: int,
    max_age_ms: int,
    config_version: int,
    target: float,
    dp_records: Sequence[int] = (),
    promised: Fraction | None = None,
    dp_losses: Sequence[float] = (),
) -> str:
    """Why the profile must be made again, in one word; empty while it holds.

    ``dp_records`` are the DP counts of the last windows and ``dp_losses`` DP estimates of the loss
    of the last states, newest last. One window proves nothing: the last three must agree.
    """
    if config_version != made.config_version:
        return "CONFIG_CHANGED"
    if target != made.target:
        return "TARGET_CHANGED"
    if now_ms - made.at_ms > max_age_ms:
        return "TOO_OLD"
    last = dp_records[-3:]
    grown = len(last) == 3 and min(last) > _FACTOR * made.dp_records
    shrunk = len(last) == 3 and max(last) * _FACTOR < made.dp_records
    if made.dp_records > 0 and (grown or shrunk):
        return "RECORDS_DRIFTED"
    losses = dp_losses[-3:]
    if promised is not None and len(losses) == 3 and min(losses) > promised:
        return "LOSS_DRIFTED"
    return ""
