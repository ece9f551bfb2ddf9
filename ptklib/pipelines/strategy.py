"""What every strategy answers, and what several of them share.

A strategy is a frozen value that holds no state: the same situation gives the same answer, so a
pipeline that was interrupted goes on as if it had not been. It may decide by anything in a
`Situation` and by nothing else.

**Resources.** An attempt at epsilon on n records uses ``epsilon n``. Whoever at least doubles what
is used from each attempt to the next has spent, on all that failed, less than on the one that is
accepted.

Reason: STRATEGY_INVALID.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from ptklib import config
from ptklib.errors import InvalidInput
from ptklib.pipelines.attempts import NextAttempt, Situation, Tried, Wait

__all__ = ["Strategy", "doubled", "largest"]


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """See the module. ``first`` is the part of the limit with which attempts begin."""

    kind: ClassVar[str]
    first: float = 1 / 64

    def __post_init__(self) -> None:
        """A part of the limit."""
        config.checked(self)
        if not 0 < self.first <= 1:
            raise InvalidInput(
                "STRATEGY_INVALID",
                f"first must be a part of the limit, above 0 and at most 1, got {self.first}",
                field="first",
            )

    @abstractmethod
    def next(self, situation: Situation) -> NextAttempt | Wait:
        """One more attempt, or what it waits for."""

    def least(self, situation: Situation) -> Fraction:
        """The epsilon of the first attempt, on a grid of billionths."""
        return _billionths(situation.limit * Fraction(self.first))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, with the kind."""
        return {"kind": self.kind, **config.to_json(self)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read the form of `as_json`; fields with defaults may be left out."""
        made: Self = config.from_json(
            cls, {name: value for name, value in body.items() if name != "kind"}
        )
        return made


def doubled(situation: Situation, last: Tried) -> NextAttempt | Wait:
    """Twice the budget where as many records have it left, else as much on twice the records."""
    offer = situation.offer
    if last.records and offer.records(2 * last.epsilon) >= last.records:
        return NextAttempt(2 * last.epsilon)
    needed = 2 * last.records
    for epsilon in (last.epsilon, *(level for level in offer.levels if level < last.epsilon)):
        # Less budget on so many more records that twice as much is used all the same.
        if epsilon * offer.records(epsilon) >= 2 * last.epsilon * last.records > 0:
            return NextAttempt(epsilon)
    if not last.records:
        return largest(situation)
    return Wait(
        f"the attempt at epsilon {float(last.epsilon):.3g} on {last.records} records was not enough, "
        "and nothing that is left is twice as much",
        records=needed,
    )


def largest(situation: Situation) -> NextAttempt | Wait:
    """As much as can be used at once: the epsilon at which budget times records is most."""
    offer = situation.offer
    best = max(offer.levels, key=lambda level: (level * offer.records(level), level), default=None)
    if best is None or not offer.records(best):
        return Wait("no block has any records and budget left")
    return NextAttempt(best)


def _billionths(epsilon: Fraction) -> Fraction:
    return max(Fraction(1, 10**9), Fraction(int(epsilon * 10**9), 10**9))
