"""Which tags of a stream a pipeline trains on, looks at and tests on.

The line of tags is cut once, by shares that the configuration fixes: first the tags of training,
then those of looks, then those of tests. A record is on one side for good, however many blocks join
later, and whatever other records there are: its tag is its own.

**Proof note.** *Unit:* that of the stream; all records of a user have the user's tag. Charges on
different parts compose in parallel: no unit is in two of them.

Reason: PIPELINE_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.ledger.slices import TagRange
from ptklib.privacy.amounts import Number, exact, show

__all__ = ["TagSplit"]


@dataclass(frozen=True)
class TagSplit:
    """The shares of looks and of tests; training has the rest."""

    looks: Fraction = Fraction(1, 10)
    tests: Fraction = Fraction(1, 5)

    @classmethod
    def of(cls, looks: Number, tests: Number) -> TagSplit:
        """From what a configuration states."""
        shares = [exact(share, name=name) for share, name in ((looks, "looks"), (tests, "tests"))]
        if min(shares) <= 0 or sum(shares) > Fraction(9, 10):
            raise InvalidInput(
                "PIPELINE_INVALID",
                "looks and tests must each take a share above 0 and leave a tenth to training, got "
                f"{show(shares[0])} and {show(shares[1])}",
                field="tests",
            )
        return cls(*shares)

    @property
    def training(self) -> TagRange:
        """The tags that are trained on."""
        return TagRange.of_shares(0, 1 - self.looks - self.tests)

    @property
    def looking(self) -> TagRange:
        """The tags that are looked at: what is told of them may choose later attempts."""
        return TagRange.of_shares(1 - self.looks - self.tests, 1 - self.tests)

    @property
    def testing(self) -> TagRange:
        """The tags that decide; nothing of them but RETRY is known to a strategy."""
        return TagRange.of_shares(1 - self.tests, 1)
