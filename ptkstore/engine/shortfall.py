"""What a window should have published and did not: the PTKs, why, and what would help. From the steps of its cycle alone.

A window is short when a PTK that was due has no new version: left out of the plan, refused by the ledger with the whole plan,
lost or failed in training; or when a PTK that waits for its profile got none because something was missing or broke
(`NOT_PROFILED`). A profile that says no is a result, and a window in which nobody is due publishes all that it should.

The cycle of a short window ends SHORT instead of DONE. The event ``window.short`` is written with its published versions,
before the keys of its blocks are destroyed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiler.measure import CANCELLED, NOT_REACHED, REACHED, RISK_ABOVE_TARGET
from ptkstore.views import TrainedLine

__all__ = ["DONE", "EVENT", "NOT_PROFILED", "PUBLISHED", "SHORT", "Shortfall", "lines_of", "shortfall_of"]

DONE = "DONE"
SHORT = "SHORT"
EVENT = "window.short"
PUBLISHED = "PUBLISHED"
NOT_PROFILED = "NOT_PROFILED"
# Something was found out, or nobody wants to know any more.
_ANSWERS = (REACHED, NOT_REACHED, RISK_ABOVE_TARGET, CANCELLED)
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
        listed = [{"ptk": one.ptk, "outcome": one.outcome, "reason": one.reason} for one in self.missing[:_LISTED]]
        return {
            "window": window,
            "missing": listed,
            "missing_count": len(self.missing),
            "published_count": self.asked - len(self.missing),
            "reason": self.text,
            "changes": list(self.changes),
        }


def lines_of(steps: Mapping[str, Any]) -> tuple[TrainedLine, ...]:
    """What became of every PTK, by name, from the bodies of a cycle's steps."""
    keys = ("ptk", "outcome", "version", "epsilon", "samples", "reason")
    lines = {name: TrainedLine(**{key: one[key] for key in keys}) for name, one in (steps.get("trained") or {}).items()}
    if "trained" in steps:
        for name, one in (steps.get("profiled") or {}).items():
            if name not in lines and one["status"] not in _ANSWERS:
                lines[name] = TrainedLine(name, NOT_PROFILED, reason=one["status"])
    return tuple(one for _, one in sorted(lines.items()))


def shortfall_of(steps: Mapping[str, Any]) -> Shortfall | None:
    """None while a window has not trained, and where it publishes all it should."""
    lines = lines_of(steps)
    missing = tuple(one for one in lines if one.outcome != PUBLISHED)
    if not missing:
        return None
    named = ", ".join(f"{one.ptk} ({one.reason or one.outcome})" for one in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    text = f"{len(missing)} of {len(lines)} PTKs got no new version: {named}{more}."
    view = (steps.get("planned") or {}).get("view") or {}
    changes = list(view.get("changes") or ())
    if view.get("explanation"):
        text += f" {view['explanation']}"
    if (steps.get("sealed") or {}).get("count_lost"):
        text += " Its DP count was charged and lost in a crash, and is never taken twice: it counts as 0."
    reserved = steps.get("reserved") or {}
    if not reserved.get("reserved", True):
        text += f" The ledger refused the plan: {reserved['reason']}."
        changes.append("See who else spent the budget of these blocks: `sage budget history`.")
    if any(one.outcome in ("TRAIN_LOST", "TRAIN_FAILED") for one in missing):
        changes.append("What a lost training took stays spent; it is tried again in the next window.")
    if any(one.outcome == NOT_PROFILED for one in missing):
        changes.append("A PTK without a profile is profiled in the next window again.")
    return Shortfall(missing, len(lines), text, tuple(changes))
