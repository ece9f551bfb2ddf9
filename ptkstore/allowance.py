"""How much of something each caller may have: an allowance that refills with time. Reason:
RATE_LIMITED.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ptklib.errors import LimitExceeded

__all__ = ["Allowance"]

# Callers that are remembered; with more of them all begin anew.
_MAX_KNOWN = 10_000


class Allowance:
    """A number of calls that refills with time, for each caller. Thread-safe."""

    def __init__(
        self,
        per_second: float,
        *,
        burst_seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        """0 per second is no limit."""
        self._rate = per_second
        self._burst = max(1.0, per_second * burst_seconds)
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str, amount: float = 1.0, *, least: float = 0.0) -> None:
        """Take some, or RATE_LIMITED where there is not so much, or not ``least``. More than a
        burst at once waits for a full allowance and leaves a debt.
        """
        if self._rate <= 0:
            return
        now = self._clock()
        with self._lock:
            if len(self._left) > _MAX_KNOWN:
                self._left.clear()
            left, then = self._left.get(who, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            needed = min(max(amount, least), self._burst)
            if left < needed:
                self._left[who] = (left, now)
                wait = (needed - left) / self._rate
                raise LimitExceeded(
                    "RATE_LIMITED",
                    f"too much at once: wait {wait:.2g} s",
                    retry_seconds=round(wait, 3),
                )
            self._left[who] = (left - amount, now)
