"""May the clock say how far data has arrived? A watermark that it says closes windows, and their
data is destroyed for good.

A clock that jumps ahead by days would close as many windows at once, and everything that arrives
later would join blocks that are held for days too long. So a watermark that the clock says, because
nobody else did, is taken only if another clock bears it out. Clocks alone are asked, never event
times: those are data.

* Where the metadata lives in PostgreSQL, its clock decides: ours may be ahead of it by
  `TOLERANCE_MS`, no more.
* Otherwise the clock is held against the time since the machine was started, which nobody sets (it
  goes on while the machine sleeps). Both are compared when a store is first opened after a start of
  the machine, and the difference is kept in the store: since then the clock may have gained
  `TOLERANCE_MS` and a thousandth of the time.

Beyond that it is refused, CLOCK_IMPLAUSIBLE, and nothing is sealed. A clock that is put right is
believed again at once. Where the clock is right and the machine was not (a virtual machine that
stood still), an operator confirms the time by saying it: a watermark that somebody declares is
taken as it is, and one that reaches the clock's makes the clock the measure again. A machine that
was off for ten days starts with a new comparison and catches up: what it cannot know it takes from
its clock.

A clock that stays behind seals too little, which harms nobody; watermarks never go back. A clock
that a caller brought is held against the same time for as long as the store is open. Reason:
CLOCK_IMPLAUSIBLE.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from ptklib.encoding.canonical import canonical
from ptklib.errors import Refused
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["TOLERANCE_MS", "ClockGuard"]

TOLERANCE_MS = 5 * 60_000
# Of the time since the start: more than any clock drifts.
_DRIFT = 1000
_FILE = "clock.json"
try:
    # Goes on while the machine sleeps.
    _STEADY = time.CLOCK_BOOTTIME
except AttributeError:  # not every system has it
    _STEADY = time.CLOCK_MONOTONIC
_BOOT_FILE = Path("/proc/sys/kernel/random/boot_id")


class ClockGuard:
    """Compares clocks.

    ``steady`` are seconds since the start that ``boot`` names; ``other_ms`` is the database's
    clock.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float],
        *,
        other_ms: Callable[[], int | None] = lambda: None,
        steady: Callable[[], float] | None = None,
        boot: str | None = None,
    ) -> None:
        """Compare for the first time, or find what was compared since the start of the machine."""
        self._path = path / _FILE
        self._clock = clock
        self._other_ms = other_ms
        self._steady = steady or _since_start
        self._boot = boot or _start()
        # The clock of the machine goes on when the store is closed; whose other clock this is
        # nobody knows then.
        self._kept = clock is time.time or boot is not None
        offset_ms = self._read() if self._kept else None
        self._offset_ms = self._compare() if offset_ms is None else offset_ms

    def now_ms(self) -> int:
        """The clock's time, if it is borne out. Refused: CLOCK_IMPLAUSIBLE."""
        now_ms, other_ms = self._now_ms(), self._other_ms()
        if other_ms is None:
            steady_ms = self._steady_ms()
            ahead_ms, allowed_ms = (
                now_ms - self._offset_ms - steady_ms,
                TOLERANCE_MS + steady_ms // _DRIFT,
            )
        else:
            ahead_ms, allowed_ms = now_ms - other_ms, TOLERANCE_MS
        if ahead_ms > allowed_ms:
            raise Refused(
                "CLOCK_IMPLAUSIBLE",
                "the clock must agree with "
                f"{'the time since the start' if other_ms is None else 'the database'} to "
                f"{allowed_ms // 60_000} minutes to say how far data has arrived, and is "
                f"{ahead_ms // 60_000} minutes ahead: "
                "put it right, or say the time yourself (`sage run --until`)",
                ahead_minutes=ahead_ms // 60_000,
            )
        return now_ms

    def declared(self, until_ms: int, lateness_ms: int) -> None:
        """Somebody said that all data up to there has arrived.

        If the clock says no more, they bear it out.
        """
        if until_ms >= self._now_ms() - lateness_ms - TOLERANCE_MS:
            self._offset_ms = self._compare()

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _steady_ms(self) -> int:
        return int(self._steady() * 1000)

    def _compare(self) -> int:
        offset_ms = self._now_ms() - self._steady_ms()
        if self._kept:
            replace_durably(self._path, canonical({"boot": self._boot, "offset_ms": offset_ms}))
        return offset_ms

    def _read(self) -> int | None:
        """What was compared since this start; None where that is not known."""
        try:
            body = json.loads(self._path.read_bytes())
            return int(body["offset_ms"]) if body["boot"] == self._boot else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _since_start() -> float:
    return time.clock_gettime(_STEADY)


def _start() -> str:
    """What names this start of the machine; of the process where nothing does."""
    try:
        return _BOOT_FILE.read_text().strip()
    except OSError:
        return f"process {os.getpid()} {time.monotonic_ns()}"
