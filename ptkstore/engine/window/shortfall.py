"""What a window should have published and did not: the PTKs, why, and what would help. From the
steps of its cycle alone.

A window is short when a PTK that was due has no new version: left out of the plan, refused by the
ledger with the whole plan, lost or failed in training; or when a PTK that waits for its profile got
none because something was missing or broke (`NOT_PROFILED`). A profile that says no is a result,
and a window in which nobody is due publishes all that it should.

The cycle of a short window ends SHORT instead of DONE. The event ``window.short`` is written with
its published versions, before the keys of its blocks are destroyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profiler.measuring.results import (
    CANCELLED,
    NOT_REACHED,
    REACHED,
    RISK_ABOVE_TARGET,
    TRIED,
)
from ptkstore.api.views import TrainedLine
from ptkstore.engine.steps.of_window import Done

__all__ = [
    "DONE",
    "EVENT",
    "NOT_PROFILED",
    "PUBLISHED",
    "SHORT",
    "Shortfall",
    "lines_of",
    "shortfall_of",
]

DONE = "DONE"
SHORT = "SHORT"
EVENT = "window.short"
PUBLISHED = "PUBLISHED"
NOT_PROFILED = "NOT_PROFILED"
# Something was found out, or nobody wants to know any more.
_ANSWERS = (REACHED, TRIED, NOT_REACHED, RISK_ABOVE_TARGET, CANCELLED)
_NAMED = 5
# In an event.
_LISTED = 100


@dataclass(frozen=True)
class Shortfall:
    """The PTKs without a new version, of how many; why, in words, and what would help."""

    missing: tuple[TrainedLine, ...]
    asked: int
    text: str
    changes: tuple[str, ...]

    def event(self, window: int) -> dict[str, Any]:
        """The body of the event."""
        listed = [
            {"ptk": trained.ptk, "outcome": trained.outcome, "reason": trained.reason}
            for trained in self.missing[:_LISTED]
        ]
        return {
            "window": window,
            "missing": listed,
            "missing_count": len(self.missing),
            "published_count": self.asked - len(self.missing),
            "reason": self.text,
            "changes": list(self.changes),
        }


def lines_of(done: Done) -> tuple[TrainedLine, ...]:
    """What became of every PTK, by name, from the steps of a cycle."""
    lines = {line.ptk: line for line in done.lines()}
    if done.trained is not None and done.profiled is not None:
        for name, profiled in done.profiled.ptks.items():
            if name not in lines and profiled.status not in _ANSWERS:
                lines[name] = TrainedLine(name, NOT_PROFILED, reason=profiled.status)
    return tuple(line for _, line in sorted(lines.items()))


def shortfall_of(done: Done) -> Shortfall | None:
    """None while a window has not trained, and where it publishes all it should."""
    lines = lines_of(done)
    missing = tuple(line for line in lines if line.outcome != PUBLISHED)
    if not missing:
        return None
    named = ", ".join(f"{line.ptk} ({line.reason or line.outcome})" for line in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    text = f"{len(missing)} of {len(lines)} PTKs got no new version: {named}{more}."
    changes = list(done.view.get("changes") or ())
    if done.view.get("explanation"):
        text += f" {done.view['explanation']}"
    if done.sealed is not None and done.sealed.count_lost:
        text += " Its DP count was charged and lost in a crash, and is never taken twice: it counts as 0."
    if done.reserved is not None and not done.reserved.reserved:
        text += f" The ledger refused the plan: {done.reserved.reason}."
        changes.append("See who else spent the budget of these blocks: `sage budget history`.")
    if any(line.outcome in ("TRAIN_LOST", "TRAIN_FAILED") for line in missing):
        changes.append(
            "What a lost training took stays spent; it is tried again in the next window."
        )
    if any(line.outcome == NOT_PROFILED for line in missing):
        changes.append("A PTK without a profile is profiled in the next window again.")
    return Shortfall(missing, len(lines), text, tuple(changes))
