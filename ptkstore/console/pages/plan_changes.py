"""What changed from one plan to the next."""

from __future__ import annotations

from dataclasses import dataclass

from ptkstore.api.views import PlanLine, PlanView

__all__ = ["PlanChanges", "changes"]


@dataclass(frozen=True)
class PlanChanges:
    """``moved`` are PTKs with another epsilon or other samples, as they were and as they are; those
    that need the most more come first.
    """

    before: PlanView
    joined: tuple[PlanLine, ...]
    left: tuple[PlanLine, ...]
    moved: tuple[tuple[PlanLine, PlanLine], ...]
    same: int

    @property
    def nothing(self) -> bool:
        """True when every PTK trains as before."""
        return not (self.joined or self.left or self.moved)


def changes(before: PlanView, now: PlanView) -> PlanChanges:
    """The difference of two plans of a stream."""
    old, new = ({line.ptk: line for line in plan.lines} for plan in (before, now))
    both = [(old[name], new[name]) for name in new if name in old]
    moved = [
        pair
        for pair in both
        if (pair[0].epsilon, pair[0].samples) != (pair[1].epsilon, pair[1].samples)
    ]
    return PlanChanges(
        before=before,
        joined=tuple(line for name, line in new.items() if name not in old),
        left=tuple(line for name, line in old.items() if name not in new),
        moved=tuple(
            sorted(moved, key=lambda pair: (pair[0].samples - pair[1].samples, pair[0].ptk))
        ),
        same=len(both) - len(moved),
    )
