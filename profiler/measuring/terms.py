"""What is asked of a profile: the target, the prices of what it releases beside the trainings, and
the sample sizes that are tried. Public numbers.

*First size.* `FLOOR` records, and `PER_EPSILON` for one epsilon: a training on fewer is noise, and
what it passes is a target that means nothing.

Reasons: PRICES_INVALID, and those of `bounds` and `amounts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from profiler.measuring import bounds
from profiler.measuring.retraining import MOST_STATES
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.ptk import count_of

__all__ = ["FLOOR", "PER_EPSILON", "STATES", "Prices", "ProfileTerms"]

# The least samples of a training, whatever the level; and so many times 1/epsilon.
FLOOR, PER_EPSILON = 64, 8
# States of one reading, at most.
STATES = 96


@dataclass(frozen=True)
class Prices:
    """Epsilons of what a profile releases beside the trainings: of all looks at a level together,
    and of one lower test.
    """

    looks: Fraction
    lower: Fraction

    @classmethod
    def of(cls, epsilon: Number, *, looks: Number = "3/4", lower: Number = "1/8") -> Prices:
        """Shares of a stream's epsilon."""
        whole = epsilon_exact(epsilon)
        return cls(
            whole * epsilon_exact(looks, name="looks"), whole * epsilon_exact(lower, name="lower")
        )

    def __post_init__(self) -> None:
        """Both positive."""
        if not (self.looks > 0 and self.lower > 0):
            raise InvalidInput(
                "PRICES_INVALID", "the prices of looks and of the lower test must be positive"
            )


@dataclass(frozen=True, kw_only=True)
class ProfileTerms:
    """What is asked of a profile. ``target`` is what a state that is trained as planned stays within.

    ``repeats`` are the states that are tried at one size, at most; ``states`` those of a reading:
    with 0 nothing is read, and estimates come from the looks.
    """

    target: Fraction
    delta: Fraction = Fraction(0)
    records_per_unit: int = 1
    prices: Prices
    first: int | None = None
    repeats: int = MOST_STATES
    states: int = STATES
    n_max: int = 1 << 20

    @classmethod
    def of(
        cls,
        target: Number,
        epsilon: Number,
        *,
        delta: Number = 0,
        records_per_unit: int = 1,
        n_max: int = 1 << 20,
        first: int | None = None,
        repeats: int = MOST_STATES,
        states: int = STATES,
        prices: Prices | None = None,
    ) -> ProfileTerms:
        """Terms on a stream of that epsilon."""
        return cls(
            target=bounds.target_exact(target),
            delta=delta_exact(delta),
            records_per_unit=count_of(records_per_unit),
            prices=prices or Prices.of(epsilon),
            first=None if first is None else count_of(first, name="first"),
            repeats=count_of(repeats, name="repeats"),
            states=count_of(states, name="states") if states else 0,
            n_max=count_of(n_max, name="n_max"),
        )

    @property
    def promised(self) -> Fraction:
        """The risk that a state stays within: the target itself."""
        return self.target

    def sizes(self, level: Fraction) -> tuple[int, ...]:
        """The sample sizes at a level: doublings of the first up to ``n_max``."""
        least = max(Fraction(FLOOR), PER_EPSILON / level)
        size = self.first or 2 ** (math.ceil(least) - 1).bit_length()
        sizes = []
        while size <= self.n_max:
            sizes.append(size)
            size *= 2
        return tuple(sizes)
