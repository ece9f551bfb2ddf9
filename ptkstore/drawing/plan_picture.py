"""What the picture of a plan shows, whoever made the plan: partitions with their samples, and PTKs
as bars over them, as tall as what they take of the budget there.

`of_view` reads a plan of a store, `of_plan` one of the allocator.
"""

from __future__ import annotations

from dataclasses import dataclass

from allocator.plan import Plan
from allocator.problem import Problem
from ptkstore.api.views import PlanView

__all__ = ["PictureBar", "PlanPicture", "of_plan", "of_view"]


@dataclass(frozen=True)
class PictureBar:
    """One PTK: ``used`` is its share of what was left of the budget, ``told`` what a pointer over
    it reads.
    """

    name: str
    told: str
    used: float
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class PlanPicture:
    """``samples`` and ``used`` by partition; ``spent_before`` is the share of the budget that was
    spent before the plan. ``title`` describes it to who cannot see it, ``headline`` and
    ``footline`` are the words around a picture that stands alone. No samples: nothing to draw.
    """

    title: str
    headline: str
    ceiling: str
    samples: tuple[int, ...]
    used: tuple[float, ...]
    bars: tuple[PictureBar, ...]
    spent_before: float = 0.0

    @property
    def total(self) -> int:
        """All samples."""
        return sum(self.samples)

    @property
    def idle(self) -> float | None:
        """What of the budget nobody uses, over all samples."""
        if not self.total:
            return None
        taken = sum(used * size for used, size in zip(self.used, self.samples, strict=True))
        return max(0.0, 1 - taken / self.total)

    @property
    def footline(self) -> str:
        """What is idle and what is not the plan's, in words."""
        idle = 100 * (self.idle or 0.0)
        if not self.spent_before:
            return f"idle (hatched): {idle:.1f}%"
        spent = f"{100 * self.spent_before:.2g}%"
        return (
            f"idle (hatched): {idle:.1f}% of what was left; "
            f"spent before on published counts (grey): {spent}"
        )

    def order(self) -> list[int]:
        """Bars from the ground up: those that span most come first, so that they read as one."""
        return sorted(
            range(len(self.bars)),
            key=lambda place: (-len(self.bars[place].partitions), self.bars[place].name),
        )


def of_view(plan: PlanView, epsilon: str) -> PlanPicture:
    """A plan of a stream whose E is ``epsilon``."""
    known = plan.spent_before is not None
    return PlanPicture(
        title=(
            f"Plan of {plan.stream}: {len(plan.lines):,} PTKs in {len(plan.partitions):,} "
            f"partitions, {sum(partition.samples for partition in plan.partitions):,} samples"
        ),
        headline=_headline(plan, len(plan.lines), plan.explanation),
        ceiling=f"E = {float(epsilon):.4g}" if known else "rest of E",
        samples=tuple(partition.samples for partition in plan.partitions),
        used=tuple(partition.used for partition in plan.partitions),
        bars=tuple(
            PictureBar(
                line.ptk,
                f"{line.ptk}: epsilon {float(line.epsilon):.4g} on {line.samples:,} samples",
                line.used,
                tuple(line.partitions),
            )
            for line in plan.lines
        ),
        spent_before=plan.spent_before or 0.0,
    )


def of_plan(problem: Problem, plan: Plan) -> PlanPicture:
    """A plan for a problem of the allocator, whose budget is the capacity."""
    whole = problem.capacity or 1
    words = plan.explanation.text if plan.explanation else ""
    return PlanPicture(
        title=f"Plan: {len(plan.assignments):,} PTKs in {len(plan.partitions):,} partitions",
        headline=_headline(plan, len(plan.assignments), words),
        ceiling="capacity",
        samples=tuple(partition.samples for partition in plan.partitions),
        used=tuple(partition.demand / whole for partition in plan.partitions),
        bars=tuple(
            PictureBar(
                assignment.id,
                f"{assignment.id}: level {assignment.level} on {assignment.samples:,} samples",
                assignment.demand / whole,
                assignment.partitions,
            )
            for assignment in plan.assignments
        ),
    )


def _headline(plan: Plan | PlanView, ptks: int, explanation: str) -> str:
    if plan.total_samples is None:
        return f"{plan.status}: {explanation}" if explanation else plan.status
    parts = [f"{plan.status}: {plan.total_samples:,} samples"]
    if plan.lower_bound is not None:
        parts.append(f"bound {plan.lower_bound:,}, gap {100 * (plan.gap or 0):.2f}%")
    parts.append(f"{ptks:,} PTKs in {len(plan.partitions):,} partitions")
    return ", ".join(parts)
