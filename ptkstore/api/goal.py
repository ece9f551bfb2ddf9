"""What a PTK is asked for: a target, or an epsilon.

With a *target* it keeps a loss, at whatever epsilon its plan finds. With an *epsilon* it is **best
effort**: it trains with exactly that, on what is left of each window, and its states tell their error
afterwards. One of the two, never both.

Reasons: TARGET_OR_EPSILON, and those of amounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptklib.errors import InvalidInput

if TYPE_CHECKING:
    from ptklib.privacy.amounts import Number

__all__ = ["Goal"]


@dataclass(frozen=True)
class Goal:
    """A target or an epsilon (exact, as text); the other one is None."""

    target: float | None = None
    epsilon: str | None = None

    @classmethod
    def of(cls, target: float | None, epsilon: Number | None) -> Goal:
        """Exactly one of them, the epsilon in its shortest form. Whether a target can be kept is
        for the PTK to say.
        """
        from ptklib.privacy.amounts import epsilon_exact, show

        if (target is None) == (epsilon is None):
            given = "neither" if target is None else "both"
            raise InvalidInput(
                "TARGET_OR_EPSILON",
                "a PTK must have a target (the loss to keep) or an epsilon (best effort: that much "
                f"privacy, whatever error results), got {given}",
                field="target",
            )
        if epsilon is None:
            return cls(target=target)
        return cls(epsilon=show(epsilon_exact(epsilon)))

    @property
    def best_effort(self) -> bool:
        """True without a target."""
        return self.target is None
