"""What a solve answers: the JSON form of the command.

``value`` and ``upper_bound`` are exact integers, ``value <= optimum <= upper_bound``; ``gap`` is
what may be missing, as a share of the bound. ``assignment`` has ids: [block, query] for single
blocks, a task for windows. ``seconds`` is all the work together, ``seconds_per_decision`` the
median over the decisions of a policy (for `optimal`, all work over the number of requests).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allocator.scheduling.problem.reading import Identity

__all__ = ["ScheduleAnswer"]


@dataclass(frozen=True, kw_only=True)
class ScheduleAnswer:
    """An assignment with its value and a bound on every other."""

    policy: str
    value: int
    upper_bound: int
    assignment: tuple[tuple[Identity, Identity] | Identity, ...]
    seconds: float
    seconds_per_decision: float

    def __post_init__(self) -> None:
        """A bound below the value would be a bug: better no answer than a false one."""
        if self.upper_bound < self.value:
            raise AssertionError("the bound is below the value")

    @property
    def gap(self) -> float:
        """What may be missing, as a share of the bound; 0 where it is proved that nothing is."""
        return (self.upper_bound - self.value) / self.upper_bound if self.upper_bound else 0.0

    def as_json(self) -> dict[str, Any]:
        """The form that is printed."""
        return {
            "policy": self.policy,
            "value": self.value,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "assignment": [
                list(item) if isinstance(item, tuple) else item for item in self.assignment
            ],
            "seconds": round(self.seconds, 6),
            "seconds_per_decision": round(self.seconds_per_decision, 9),
        }
