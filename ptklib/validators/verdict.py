"""What a validator says, and the confidence of several attempts at one promise.

*Attempts.* Whoever trains again until a validator accepts has tested several hypotheses, and one of
them may pass by luck. Attempt number i may be wrong with probability ``eta / (i (i + 1))``: over
all attempts there will ever be that adds up to ``eta``, so the state that is accepted in the end
breaks its promise with probability at most ``eta``, however long it took and whatever was decided
on the way. (A state that is the same one each time, on fresh records, would not need it.)

Reasons: ETA_INVALID, ATTEMPT_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show

__all__ = ["ACCEPT", "REJECT", "RETRY", "VERDICTS", "LossVerdict", "eta_exact", "eta_of_attempt"]

ACCEPT, RETRY, REJECT = "ACCEPT", "RETRY", "REJECT"
VERDICTS = (ACCEPT, RETRY, REJECT)


@dataclass(frozen=True)
class LossVerdict:
    """What was found, and the two numbers that it follows from: the evidence as released, and how
    much was asked for. Both are DP or public, in units of 1/`betting.UNIT` of a nat.

    The loss test never says REJECT: that takes the loss of the exact empirical minimiser, and a
    kind that has one is told what it cannot reach by its profile.
    """

    outcome: str
    evidence: int
    threshold: int

    @classmethod
    def of(cls, evidence: int, threshold: int) -> LossVerdict:
        """ACCEPT where the evidence reaches the threshold, else RETRY. Post-processing."""
        return cls(ACCEPT if evidence >= threshold else RETRY, evidence, threshold)


def eta_exact(eta: Number) -> Fraction:
    """How often an ACCEPT may be wrong, as an exact number above 0 and below 1."""
    exact_eta = exact(eta, name="eta")
    if not 0 < exact_eta < 1:
        raise InvalidInput("ETA_INVALID", f"eta must be above 0 and below 1, got {show(exact_eta)}")
    return exact_eta


def eta_of_attempt(eta: Number, attempt: int) -> Fraction:
    """What attempt number ``attempt``, counted from 1, may spend of ``eta``."""
    if type(attempt) is not int or not 1 <= attempt <= 10**6:
        raise InvalidInput(
            "ATTEMPT_INVALID",
            f"attempt must be a whole number from 1 to 10**6, got {attempt!r:.40}",
        )
    return eta_exact(eta) / (attempt * (attempt + 1))
