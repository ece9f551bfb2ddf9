"""Attempts: what was tried and what came of it, what a strategy is told, and what it answers.

**Why a strategy is not told everything.** A test is right with its confidence if the state that it
judges does not depend on the test's records. A strategy hears of a test only that it did not
accept; so which state attempt i would judge is settled by what happened *outside* the test slice,
assuming all tests before it said RETRY, and over all attempts an ACCEPT is wrong with probability
at most the sum of their etas (`ptklib.validators.verdict`). Were it told how much evidence there
was, a strategy could train until the very records of the test are pleased. What *looks* tell comes
from tags that no test touches, and may be used in any way. `Situation` has no field for evidence.

Reason: TRAIL_UNREADABLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ptklib.errors import InvalidInput
from ptklib.validators.interval import LossRange

__all__ = [
    "ACCEPTED",
    "FAILED",
    "LOOK",
    "REFUSED",
    "RETRIED",
    "SEEN",
    "TEST",
    "Attempt",
    "NextAttempt",
    "Offered",
    "OfferedBlock",
    "Situation",
    "Trail",
    "Tried",
    "Wait",
]

# What an attempt is for: to see how good states of its price are, or to be released.
LOOK, TEST = "LOOK", "TEST"
# What came of it. FAILED: the training or its test raised, and what was charged stays spent;
# REFUSED: the ledger had no room after all, and nothing was charged.
SEEN, ACCEPTED, RETRIED, FAILED, REFUSED = "SEEN", "ACCEPTED", "RETRIED", "FAILED", "REFUSED"
_OUTCOMES = (SEEN, ACCEPTED, RETRIED, FAILED, REFUSED)


@dataclass(frozen=True)
class OfferedBlock:
    """A block that an attempt may use: its DP count, and the epsilon that it has left for this
    pipeline, to a training on the tags of training and a test on those of tests alike.
    """

    name: str
    records: int
    left: Fraction


@dataclass(frozen=True)
class Offered:
    """All blocks that are held now. Public and DP numbers."""

    blocks: tuple[OfferedBlock, ...]

    def at(self, epsilon: Fraction) -> tuple[OfferedBlock, ...]:
        """Those that have so much left."""
        return tuple(block for block in self.blocks if block.left >= epsilon)

    def records(self, epsilon: Fraction) -> int:
        """How many records they hold together, by their DP counts."""
        return sum(block.records for block in self.at(epsilon))

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """All that some block has left, the most first."""
        return tuple(sorted({block.left for block in self.blocks if block.left > 0}, reverse=True))


@dataclass(frozen=True)
class NextAttempt:
    """An answer of a strategy: one more attempt, at this epsilon, on all blocks that have it
    left."""

    epsilon: Fraction
    purpose: str = TEST


@dataclass(frozen=True)
class Wait:
    """An answer of a strategy: nothing is worth trying now; why, and how many records with a whole
    budget would change that, where it knows.
    """

    reason: str
    records: int | None = None


@dataclass(frozen=True)
class Tried:
    """What a strategy knows of an attempt. ``seen`` is what a look told of the loss."""

    purpose: str
    epsilon: Fraction
    records: int
    outcome: str
    seen: LossRange | None = None


@dataclass(frozen=True)
class Situation:
    """All that a strategy decides by: public and DP numbers, and of tests nothing but RETRY."""

    target: Fraction
    eta: Fraction  # of the next test
    limit: Fraction  # of epsilon that the pipeline may charge to a record
    tests: Fraction  # the share of records that tests have
    records_per_unit: int
    tried: tuple[Tried, ...]
    offer: Offered


@dataclass(frozen=True)
class Attempt:
    """One attempt, as it is kept: what it was charged, on what, and what came of it. ``evidence``
    is what its test or look released (DP), for the certificate.
    """

    number: int
    purpose: str
    epsilon: Fraction
    blocks: tuple[str, ...]
    records: int
    outcome: str
    reason: str = ""
    seen: LossRange | None = None
    evidence: Mapping[str, Any] | None = None

    def known(self) -> Tried:
        """What strategies are told."""
        return Tried(self.purpose, self.epsilon, self.records, self.outcome, self.seen)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; the epsilon as an exact text."""
        body: dict[str, Any] = {
            "number": self.number,
            "purpose": self.purpose,
            "epsilon": str(self.epsilon),
            "blocks": list(self.blocks),
            "records": self.records,
            "outcome": self.outcome,
            "reason": self.reason,
        }
        if self.seen is not None:
            body["seen"] = [self.seen.low, self.seen.high, self.seen.estimate]
        if self.evidence is not None:
            body["evidence"] = dict(self.evidence)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Attempt:
        """Read `as_json` back."""
        try:
            seen = body.get("seen")
            attempt = cls(
                number=body["number"],
                purpose=body["purpose"],
                epsilon=Fraction(body["epsilon"]),
                blocks=tuple(body["blocks"]),
                records=body["records"],
                outcome=body["outcome"],
                reason=body["reason"],
                seen=None if seen is None else LossRange(*seen),
                evidence=body.get("evidence"),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _unreadable() from None
        if attempt.purpose not in (LOOK, TEST) or attempt.outcome not in _OUTCOMES:
            raise _unreadable()
        return attempt


@dataclass(frozen=True)
class Trail:
    """All attempts of a pipeline, oldest first."""

    attempts: tuple[Attempt, ...] = ()

    def __len__(self) -> int:
        """How many there were."""
        return len(self.attempts)

    def with_(self, attempt: Attempt) -> Trail:
        """With one more."""
        return replace(self, attempts=(*self.attempts, attempt))

    @property
    def tests(self) -> int:
        """How many asked for an ACCEPT: each has spent its part of eta."""
        return sum(1 for attempt in self.attempts if attempt.purpose == TEST)

    def spent(self, block: str) -> Fraction:
        """The epsilon that attempts have charged to the records of a block, by a plain sum; what
        failed stays spent.
        """
        return sum(
            (
                attempt.epsilon
                for attempt in self.attempts
                if attempt.outcome != REFUSED and block in attempt.blocks
            ),
            Fraction(0),
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Plain JSON values."""
        return [attempt.as_json() for attempt in self.attempts]

    @classmethod
    def from_json(cls, body: Any) -> Trail:
        """Read `as_json` back."""
        if not isinstance(body, list):
            raise _unreadable()
        return cls(tuple(Attempt.from_json(attempt) for attempt in body))


def _unreadable() -> InvalidInput:
    return InvalidInput(
        "TRAIL_UNREADABLE",
        "a trail must be a list of attempts as `Trail.as_json` gives it: begin anew, with a limit "
        "that counts what was spent",
    )
