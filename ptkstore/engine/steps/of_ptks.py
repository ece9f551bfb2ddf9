"""Steps of single PTKs in a window, written one by one so that a restart loses none of them.

::

    profiled:list       `ProfileList`     who is profiled, and why
    profiled:ID:LEVEL   `ProfiledLevel`   what one level gave
    profiled:ID         `ProfiledPtk`     what became of the PTK
    trained:NAME        `TrainedPtk`      what became of its training
    validated:list      `ValidationList`  which states are tested, how and where
    validated:ID        `ValidatedPtk`    what became of the test of its state
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from profiler.measuring.results import LevelResult
from ptkstore.api.views import TrainedLine

__all__ = [
    "LISTED",
    "ProfileList",
    "ProfiledLevel",
    "ProfiledPtk",
    "TrainedPtk",
    "ValidatedPtk",
    "ValidationList",
]

# The part that `ProfileList` and `ValidationList` are written as.
LISTED = "list"
_LINE = ("ptk", "outcome", "version", "epsilon", "samples", "reason")


@dataclass(frozen=True)
class ProfileList:
    """The ids of the PTKs that a window profiles, in the order of their parts of the slice, and why
    each; into how many parts the slice is cut: one more where tests need one.
    """

    STEP: ClassVar[str] = "profiled"

    ptks: tuple[int, ...]
    why: tuple[str, ...]
    places: int

    def as_json(self) -> dict[str, Any]:
        """The body."""
        body: dict[str, Any] = {"ptks": list(self.ptks), "why": list(self.why)}
        return body if self.places == len(self.ptks) else body | {"places": self.places}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ProfileList:
        """Read `as_json` back; the slice is cut for profiles alone unless it says more."""
        ptks = tuple(body["ptks"])
        return cls(ptks, tuple(body.get("why", ())), body.get("places", len(ptks)))


@dataclass(frozen=True)
class ProfiledLevel:
    """What one level gave, and the digest of its witness in the lake where it has one."""

    STEP: ClassVar[str] = "profiled"

    result: LevelResult
    witness: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The body, without the state."""
        body = self.result.as_json()
        return body if self.witness is None else body | {"witness": self.witness}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> ProfiledLevel:
        """Read `as_json` back."""
        return cls(LevelResult.from_json(body), body.get("witness"))


@dataclass(frozen=True)
class ProfiledPtk:
    """What the profile of a PTK came to."""

    STEP: ClassVar[str] = "profiled"

    ptk: str
    status: str
    trainings: int = 0

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {"ptk": self.ptk, "status": self.status, "trainings": self.trainings}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ProfiledPtk:
        """Read `as_json` back."""
        return cls(body["ptk"], body["status"], body.get("trainings", 0))


@dataclass(frozen=True)
class TrainedPtk:
    """What became of the training of a PTK; the digest of its state where there is one."""

    STEP: ClassVar[str] = "trained"

    line: TrainedLine
    digest: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The body."""
        body = {key: value for key, value in self.line.as_json().items() if key in _LINE}
        return body if self.digest is None else body | {"digest": self.digest}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> TrainedPtk:
        """Read `as_json` back."""
        line = TrainedLine(**{key: body[key] for key in _LINE if key in body})
        return cls(line, body.get("digest"))


@dataclass(frozen=True)
class ValidationList:
    """The tests of the states of a window, by PTK, as JSON; or why there is none."""

    STEP: ClassVar[str] = "validated"

    trials: Mapping[str, Mapping[str, Any]]
    untested: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {
            "trials": {name: dict(trial) for name, trial in self.trials.items()},
            "untested": dict(self.untested),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ValidationList:
        """Read `as_json` back."""
        return cls(body["trials"], body["untested"])


@dataclass(frozen=True)
class ValidatedPtk:
    """VALIDATED, NOT_SHOWN or NOT_TESTED with the reason; the digest of the state with what was
    found in its certificate.
    """

    STEP: ClassVar[str] = "validated"

    ptk: str
    verdict: str
    digest: str
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {
            "ptk": self.ptk,
            "verdict": self.verdict,
            "digest": self.digest,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ValidatedPtk:
        """Read `as_json` back."""
        return cls(body["ptk"], body["verdict"], body["digest"], body.get("reason", ""))
