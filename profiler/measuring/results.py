"""What a level of a profile gave: its status, what was looked at, and the samples to plan with.

Results: REACHED, RISK_ABOVE_TARGET, NOT_REACHED, FAILED (type and place, or LOSS_INVALID),
TOO_LITTLE_DATA, CANCELLED, REFUSED, SKIPPED (another level's result says it all).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from profiler.measuring.bounds import UPPER_FAILURE
from profiler.measuring.schedule import GROUP
from ptklib.privacy.amounts import exact, show
from ptklib.ptk import Arrays

__all__ = [
    "CANCELLED",
    "CONFIDENCE",
    "FAILED",
    "NOT_REACHED",
    "REACHED",
    "REFUSED",
    "RISK_ABOVE_TARGET",
    "SKIPPED",
    "TOO_LITTLE_DATA",
    "TRIED",
    "LevelResult",
    "Look",
]

REACHED = "REACHED"
RISK_ABOVE_TARGET = "RISK_ABOVE_TARGET"
NOT_REACHED = "NOT_REACHED"
FAILED = "FAILED"
TOO_LITTLE_DATA = "TOO_LITTLE_DATA"
# Of a profile, not of a level: not certified, so each state is tested before it is published.
TRIED = "TRIED"
CANCELLED = "CANCELLED"
REFUSED = "REFUSED"
SKIPPED = "SKIPPED"

CONFIDENCE = 1 - Fraction(UPPER_FAILURE).limit_denominator(1000)


@dataclass(frozen=True)
class Look:
    """The risk of the worst of some states of one sample size, from the noisy sum and the planned
    number of records; ``margin`` is what it must be below the target to pass.

    Of a reading: the mean of the worst of all groups of three.
    """

    samples: int
    risk: float
    states: int = GROUP
    margin: float = 0.0


@dataclass(frozen=True)
class LevelResult:
    """What one level gave. ``size`` is the least that passed, and has a witness; ``samples`` are to
    be planned for a training to keep the promise (`retraining`). ``estimate`` is where the risk
    crossed what passes, between two sizes of the ``readings``, or of the looks where there are none.
    It is above ``size`` where the witness was lucky.

    ``state`` is DP and may be published: its risk is at most ``promised`` with probability
    ``confidence``. ``charged`` names what was spent, in order; ``trainings`` ran on it.
    """

    level: Fraction
    status: str
    samples: int | None = None
    size: int | None = None
    estimate: int | None = None
    promised: Fraction | None = None
    confidence: Fraction | None = None
    looks: tuple[Look, ...] = ()
    readings: tuple[Look, ...] = ()
    charged: tuple[str, ...] = ()
    trainings: int = 0
    reason: str = ""
    state: Arrays | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, without the state."""
        return {
            "level": show(self.level),
            "status": self.status,
            "samples": self.samples,
            "size": self.size,
            "estimate": self.estimate,
            "promised": None if self.promised is None else show(self.promised),
            "confidence": None if self.confidence is None else show(self.confidence),
            "looks": [[look.samples, look.risk, look.states, look.margin] for look in self.looks],
            "readings": [
                [reading.samples, reading.risk, reading.states] for reading in self.readings
            ],
            "charged": list(self.charged),
            "trainings": self.trainings,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> LevelResult:
        """Read `as_json` back; without the state."""
        return cls(
            level=exact(body["level"], name="level"),
            status=body["status"],
            samples=body["samples"],
            size=body.get("size", body["samples"]),
            estimate=body["estimate"],
            looks=tuple(Look(*look) for look in body["looks"]),
            readings=tuple(Look(*reading) for reading in body.get("readings", ())),
            charged=tuple(body["charged"]),
            trainings=body.get("trainings", 0),
            reason=body["reason"],
            promised=None if body["promised"] is None else exact(body["promised"], name="promised"),
            confidence=None
            if body["confidence"] is None
            else exact(body["confidence"], name="confidence"),
        )
