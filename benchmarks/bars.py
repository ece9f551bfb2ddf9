"""What a benchmark returns: figures, and bars that say which of them must hold.

A benchmark is a module of this package with ``run(say) -> Report``; ``say(text)`` reports progress
to stderr. One that can use real data has ``run(say, data) -> Report``, where ``data`` is a folder
or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Bar", "Report", "Say", "at_least", "at_most", "broken"]

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One figure with its limit."""

    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def holds(self) -> bool:
        """True when the value is within its limit."""
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )

    def as_json(self) -> dict[str, object]:
        """The form that ``--json`` prints."""
        limit = {"at_least": self.least} if self.least is not None else {"at_most": self.most}
        value = self.value if math.isfinite(self.value) else None
        return {"what": self.what, "value": value, **limit, "holds": self.holds}


def at_least(what: str, value: float, limit: float) -> Bar:
    """A bar that holds from ``limit`` upwards."""
    return Bar(what=what, value=float(value), least=limit)


def at_most(what: str, value: float, limit: float) -> Bar:
    """A bar that holds up to ``limit``."""
    return Bar(what=what, value=float(value), most=limit)


def broken(what: str, limit: float) -> Bar:
    """A bar whose figure could not be measured: it never holds, and its value is null in JSON."""
    return Bar(what=what, value=math.nan, most=limit)


@dataclass(kw_only=True)
class Report:
    """The outcome of one benchmark: bars to hold and figures to read (tables as lists of flat
    dicts).
    """

    bars: list[Bar] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
