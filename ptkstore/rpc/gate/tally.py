"""Decisions that repeat: the first is written down at once, the rest as one entry with their
number.

Within `MINUTE_SECONDS` of the first, the same decision (who, what, about what, outcome) again is
only counted; when the time is over, one entry says how often. So what a caller makes the log grow
by does not depend on how fast it calls. A caller with more than `MOST_EACH` decisions at a time has
the rest of them counted together, without what they were about.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ptkstore.metadata.access.audit import Decision

__all__ = ["MINUTE_SECONDS", "MOST_EACH", "LogTally"]

MINUTE_SECONDS = 60.0
MOST_EACH = 1_000
MANY = "(many)"
_Key = tuple[str, str, str, str]


class LogTally:
    """Counts for one log. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is counted."""
        self._clock = clock
        self._lock = threading.Lock()
        # Since when, how often after the first, and the newest of them; oldest first.
        self._counted: dict[_Key, tuple[float, int, Decision]] = {}
        self._each: Counter[str] = Counter()

    def first(self, decision: Decision) -> Decision | None:
        """What to write down now; None when it was counted."""
        with self._lock:
            key = _key(decision)
            if key not in self._counted and self._each[decision.who] >= MOST_EACH:
                decision = replace(decision, subject=MANY)
                key = _key(decision)
            entry = self._counted.get(key)
            if entry is None:
                self._counted[key] = (self._clock(), 0, decision)
                self._each[decision.who] += 1
                return decision
            self._counted[key] = (entry[0], entry[1] + 1, decision)
            return None

    def over(self, *, all_of_them: bool = False) -> list[Decision]:
        """What to write down of those whose time is over, oldest first; they begin anew."""
        now, entries = self._clock(), []
        with self._lock:
            for key, (since, times, newest) in list(self._counted.items()):
                if not all_of_them and now - since < MINUTE_SECONDS:
                    break
                del self._counted[key]
                self._each[newest.who] -= 1
                if times:
                    entries.append(replace(newest, times=times))
            self._each += Counter()  # forgets who has none
        return entries


def _key(decision: Decision) -> _Key:
    return decision.who, decision.what, decision.subject, decision.outcome
