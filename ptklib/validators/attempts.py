"""Attempts at one promise, and the confidence that they share.

Attempt number i may be wrong with probability eta/(i (i+1)) (`verdict`, "Attempts"). What was spent
stays spent: an attempt counts from when its price was fixed, whether or not it came to a verdict.

A value: `Attempts` is journalled with each attempt, and the next one is made from it. No data.

Reasons: ETA_INVALID, ATTEMPT_INVALID.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ptklib.privacy.amounts import Number
from ptklib.privacy.frozen import keep
from ptklib.validators.verdict import eta_exact, eta_of_attempt

__all__ = ["Attempts"]


@dataclass(frozen=True, init=False)
class Attempts:
    """How many attempts were made at a promise that may be broken with probability ``eta``."""

    eta: Fraction
    made: int

    def __init__(self, *, eta: Number, made: int = 0) -> None:
        """``made`` attempts were begun."""
        keep(self, eta=eta_exact(eta))
        object.__setattr__(self, "made", made)
        eta_of_attempt(self.eta, made + 1)

    @property
    def spent(self) -> Fraction:
        """What all attempts so far may be wrong with: eta made/(made + 1)."""
        return self.eta * self.made / (self.made + 1)

    @property
    def next_eta(self) -> Fraction:
        """What the next attempt may spend."""
        return eta_of_attempt(self.eta, self.made + 1)

    def begun(self) -> Attempts:
        """After one attempt more."""
        return Attempts(eta=self.eta, made=self.made + 1)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"eta": str(self.eta), "made": self.made}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Attempts:
        """Read `as_json` back."""
        return cls(eta=Fraction(body["eta"]), made=body["made"])
