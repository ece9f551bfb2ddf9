"""Do windows publish what they should? For the doctor and for metrics. Versions, their times and
who was left out are public.

A stream's newest finished window speaks for it: an ERROR names what it did not publish and why. A
PTK that was left out of an earlier window and was not due since is a WARNING.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ptkstore.api.views import Finding
from ptkstore.engine.parts import Parts
from ptkstore.engine.window.shortfall import DONE, SHORT
from ptkstore.engine.window.views import cycle_view
from ptkstore.metadata import Metadata
from ptkstore.metadata.catalogue.cycles import RUNNING
from ptkstore.metadata.database.store import Transaction

__all__ = ["WindowCounts", "examine_windows", "published"]

_MINUTE_MS = 60_000
# One window runs at a time, and those behind it wait.
_LOOKED_AT = 8


@dataclass(frozen=True)
class WindowCounts:
    """Of one stream: windows that ended, those of them that published less than they should,
    versions published, and those of them that were not shown to keep their target.
    """

    finished: int
    short: int
    published: int
    not_shown: int


def _counts(tx: Transaction, stream: str) -> WindowCounts:
    """Over all time."""
    by_status = tx.cycles.count(stream)
    finished = sum(count for status, count in by_status.items() if status != RUNNING)
    known = tx.states.count(stream), tx.states.not_shown(stream)
    return WindowCounts(finished, by_status.get(SHORT, 0), *known)


def _newest_ages(tx: Transaction, stream: str, now_ms: int) -> dict[str, int | None]:
    """Whole minutes since the newest version of each PTK that trains, by name; None where there is
    none yet.
    """
    ptks = [row for row in tx.ptks.list(stream) if row.status in ("ACTIVE", "FAILED")]
    newest = tx.states.newest_times(stream)
    return {
        row.name: max(0, now_ms - newest[row.id]) // _MINUTE_MS if row.id in newest else None
        for row in ptks
    }


def published(
    metadata: Metadata, streams: Iterable[str], now_ms: int
) -> dict[str, tuple[WindowCounts, dict[str, int | None]]]:
    """The counts of each stream and the ages of its newest versions, all of one moment."""
    with metadata.read() as tx:
        return {name: (_counts(tx, name), _newest_ages(tx, name, now_ms)) for name in streams}


def examine_windows(parts: Parts) -> Iterator[Finding]:
    """One finding for each stream that had a window."""
    for name in sorted(parts.specs):
        with parts.metadata.read() as tx:
            ended = [
                cycle for cycle in tx.cycles.newest(name, _LOOKED_AT) if cycle.status != RUNNING
            ]
            if not ended:
                continue
            last = cycle_view(tx, ended[-1].id)
            plan = tx.plans.latest(name)
            living = {row.name for row in tx.ptks.list(name) if row.status in ("ACTIVE", "FAILED")}
            counts = _counts(tx, name)
        what = f"windows of {name}"
        waiting = (
            sorted(living & set(plan.body.get("left_out_since", {}))) if plan is not None else []
        )
        if last.status == SHORT:
            yield Finding(
                "ERROR", what, " ".join((f"window {last.window}: {last.shortfall}", *last.changes))
            )
        elif last.status != DONE:
            yield Finding(
                "WARNING", what, f"window {last.window} ended {last.status}: it published nothing"
            )
        elif waiting:
            yield Finding(
                "WARNING",
                what,
                f"left out of earlier windows, and not due since: {', '.join(waiting[:5])}",
            )
        else:
            text = f"window {last.window} published all that it should; {counts.short} of {counts.finished} did not"
            yield Finding("OK", what, text)
