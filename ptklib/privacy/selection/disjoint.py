"""Each candidate trained on a part of its own, and one chosen by its mistakes on another part.

The parts are k + 1: as many as there are candidates, and one to choose on. A record's part follows
from its tag alone. Every record pays once: for the training of the part it is in, or for the
choice.

Reasons: SELECTION_INVALID, and those of the costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import epsilon_exact
from ptklib.privacy.costs import Cost, ExponentialCost, ParallelCost
from ptklib.privacy.mechanisms.gibbs import draw_indices
from ptklib.privacy.mechanisms.inputs import IntegerData
from ptklib.privacy.mechanisms.selection import Selection, score_list
from ptklib.privacy.noise.source import BitSource

__all__ = ["DisjointSelection"]

_TAGS = 1 << 64


@dataclass(frozen=True, kw_only=True)
class DisjointSelection:
    """Candidate i with probability proportional to exp(-epsilon mistakes_i), exactly.

    *Unit*: records, at most ``records_per_unit`` of them for a user, all in one part (tag by user).
    *Neighbours*: add or remove one unit. *Sensitivity*: another unit of the choosing part adds from
    0 to ``records_per_unit`` to the mistakes of each candidate and takes from none. *Cost of the
    choice*: ln(p_i/p'_i) is -rate times the change of i's mistakes plus a term that is the same for
    all, and the changes lie in an interval of width ``records_per_unit``; so at rate = epsilon /
    records_per_unit the loss has range epsilon: `ExponentialCost`. (The exponential mechanism for
    scores that move in any direction would need half the rate: mistakes only ever grow with a
    record, and that is half of the price.) *Cost of all*: a record is in one part, so it pays for
    one training or for the choice: `ParallelCost`. Charge each part its own where the ledger keeps
    parts by tag (``part_costs``).
    """

    epsilon: Fraction
    trainings: tuple[Cost, ...]
    records_per_unit: int = 1

    def __post_init__(self) -> None:
        """At least two candidates."""
        if len(self.trainings) < 2:
            raise InvalidInput(
                "SELECTION_INVALID",
                f"a choice must have at least two candidates, got {len(self.trainings)}",
            )
        if isinstance(self.records_per_unit, bool) or self.records_per_unit < 1:
            raise InvalidInput(
                "SELECTION_INVALID",
                f"records_per_unit must be at least 1, got {self.records_per_unit!r}",
            )
        object.__setattr__(self, "epsilon", epsilon_exact(self.epsilon))

    @property
    def part_costs(self) -> tuple[Cost, ...]:
        """What each part pays: the trainings in their order, and last the choice."""
        return (*self.trainings, ExponentialCost(epsilon=self.epsilon))

    @property
    def cost(self) -> ParallelCost:
        """What a unit pays, whichever part it is in."""
        return ParallelCost(parts=self.part_costs)

    def part_of(self, tag: int) -> int:
        """The part of a record with this tag, a keyed hash of 64 bits; the last one is for the
        choice.
        """
        return tag * (len(self.trainings) + 1) // _TAGS

    def release(self, mistakes: IntegerData, *, source: BitSource | None = None) -> Selection:
        """The chosen candidate, from how many mistakes each made on the choosing part."""
        scores = -score_list(mistakes)
        if scores.size != len(self.trainings):
            raise InvalidInput(
                "DATA_SHAPE_INVALID",
                f"there must be one count of mistakes for each of {len(self.trainings)} "
                f"candidates, got {scores.size}",
            )
        rate = self.epsilon / self.records_per_unit
        return Selection(
            int(draw_indices(scores, rate, 1, source=source)[0]),
            ExponentialCost(epsilon=self.epsilon),
        )
