"""Why the gap of a plan is what it is: which bound holds it up, and which PTKs the room goes to.

Nothing is solved again. The bound is compared with that of the areas alone (where it is lower, it is
that of another order of the accounting, in which nobody has ruled out a shorter plan); what a plan
holds above
the areas is either taken by PTKs at options of more area than they could do with, or room that
nobody fills because the demands do not fit together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allocator.plan import Plan
from allocator.problem import Problem
from allocator.table import table_of
from allocator.verify import least_possible

__all__ = ["GapExplained", "gap_explained"]

_NAMED = 5


@dataclass(frozen=True)
class GapExplained:
    """``bound`` is "areas", "program" or "orders"; the rest is in samples of the whole capacity.

    ``by_areas`` is the least that the areas leave possible; ``unfilled`` is the room of the plan
    that nobody fills; ``dearer`` are the PTKs whose options fill more than they would have to, with
    how much, the most first.
    """

    bound: str
    by_areas: int
    unfilled: float
    dearer: tuple[tuple[str, float], ...]
    text: str

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "bound": self.bound,
            "by_areas": self.by_areas,
            "unfilled": round(self.unfilled, 3),
            "dearer": [{"id": name, "samples": round(more, 3)} for name, more in self.dearer],
            "text": self.text,
        }


def gap_explained(problem: Problem, plan: Plan) -> GapExplained | None:
    """The explanation; None where there is no plan."""
    table = table_of(problem)
    if plan.total_samples is None or plan.lower_bound is None or table is None:
        return None
    total, capacity = plan.total_samples, max(1, problem.capacity)
    filled = {
        assignment.id: assignment.samples * assignment.demand for assignment in plan.assignments
    }
    least = {
        name: min(option.samples * option.demand for option in row if option.samples <= total)
        for name, row in zip(table.ids, table.rows, strict=True)
    }
    dearer = sorted(
        ((name, (area - least[name]) / capacity) for name, area in filled.items()),
        key=lambda pair: (-pair[1], pair[0]),
    )
    dearer = [pair for pair in dearer if pair[1] > 0]
    by_areas = least_possible(problem) or 0
    bound = "areas" if plan.lower_bound == by_areas else "program"
    if plan.lower_bound < by_areas:
        bound = "orders"
    unfilled = total - sum(filled.values()) / capacity
    return GapExplained(
        bound,
        by_areas,
        unfilled,
        tuple(dearer[:_NAMED]),
        _text(plan, bound, by_areas, unfilled, dearer),
    )


def _text(
    plan: Plan, bound: str, by_areas: int, unfilled: float, dearer: list[tuple[str, float]]
) -> str:
    least = f"No plan holds fewer than {plan.lower_bound} samples"
    told = [
        {
            "areas": f"{least}: that much is needed for what the PTKs fill at their options of least area.",
            "program": f"{least}, by the linear program over the sets that a record can carry (areas alone say {by_areas}).",
            "orders": f"{least}, counted in whichever way is best for that: in the one that this plan counts in, the areas "
            f"that PTKs fill need {by_areas}.",
        }[bound]
    ]
    total = plan.total_samples or 0
    if total == plan.lower_bound:
        return f"{told[0]} The plan meets it."
    told.append(
        f"Of the plan's {total} samples, room for {unfilled:.0f} is filled by nobody, because demands do not "
        "fit together there."
    )
    if dearer:
        named = ", ".join(f"{name} ({more:.0f})" for name, more in dearer[:_NAMED])
        more = f" and {len(dearer) - _NAMED} more" if len(dearer) > _NAMED else ""
        told.append(
            f"PTKs at options that fill more than they would have to, in samples: {named}{more}."
        )
    told.append("More time may close the gap from either side.")
    return " ".join(told)
