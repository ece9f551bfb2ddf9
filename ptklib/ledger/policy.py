"""What a stream promises, fixed when it is created: unit, epsilon, delta, composition.

Everything that ever leaves the service about the stream is jointly (epsilon, delta)-DP, for adding
or removing one record (``unit="event"``) or everything of one user (``unit="user"``). Reasons:
POLICY_INVALID, and those of the amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, show
from ptklib.privacy.filters import Filter, make_filter

__all__ = ["UNITS", "Policy"]

UNITS = ("event", "user")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The promise of one stream.

    ``composition`` defaults to renyi where delta is positive, else to pure.
    """

    unit: str = "event"
    epsilon: Number = 1
    delta: Number = "1e-6"
    composition: str = ""

    def __post_init__(self) -> None:
        """Make amounts exact, choose the default composition, and refuse what no filter can
        keep.
        """
        if self.unit not in UNITS:
            raise InvalidInput(
                "POLICY_INVALID",
                f"unit must be one of {', '.join(UNITS)}, got {self.unit!r:.60}",
                field="unit",
            )
        object.__setattr__(self, "epsilon", epsilon_exact(self.epsilon))
        object.__setattr__(self, "delta", delta_exact(self.delta))
        if not self.composition:
            object.__setattr__(self, "composition", "renyi" if self.delta else "pure")
        self.filter()

    def filter(self) -> Filter:
        """The privacy filter that keeps this promise at one point."""
        return make_filter(self.composition, Fraction(self.epsilon), Fraction(self.delta))

    def as_json(self) -> dict[str, object]:
        """The form that is journalled."""
        return {
            "unit": self.unit,
            "epsilon": show(Fraction(self.epsilon)),
            "delta": show(Fraction(self.delta)),
            "composition": self.composition,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, str]) -> Policy:
        """Read `as_json` back."""
        return cls(**body)
