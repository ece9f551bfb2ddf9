"""What a plan says: who trains at which level, on how many samples, in which partitions; and how
good that is.

``status`` is about ``total_samples``, the samples held in all (exposure):

==========  ========================================================================================
OPTIMAL     ``lower_bound == total_samples``: no plan of the asked form holds fewer
FEASIBLE    the plan is verified; ``gap`` bounds what a better one could save
INFEASIBLE  no plan exists; ``explanation`` says why and what would help
REJECTED    the PTKs at hand have a plan, the newcomer does not fit; ``explanation`` says what would help
==========  ========================================================================================

The last two carry no partitions and no assignments, and None for the numbers. ``gap`` is (total -
bound) / bound. ``seconds`` is what the solver reports, 0 for the method that needs none; plans are
compared without it.

Reason: PLAN_INVALID (a JSON form that is no plan).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from allocator.problem import Option
from ptklib.errors import InvalidInput

__all__ = ["STATUSES", "Assignment", "Change", "Explanation", "Partition", "Plan"]

STATUSES = ("OPTIMAL", "FEASIBLE", "INFEASIBLE", "REJECTED")


@dataclass(frozen=True)
class Assignment:
    """One PTK's share: its option, and the positions of its partitions in the plan."""

    id: str
    level: str
    demand: int
    samples: int
    partitions: tuple[int, ...]

    @classmethod
    def of(cls, ptk: str, option: Option, partitions: tuple[int, ...]) -> Assignment:
        """The share of a PTK that trains by this option."""
        return cls(ptk, option.level, option.demand, option.samples, partitions)

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "id": self.id,
            "level": self.level,
            "demand": self.demand,
            "samples": self.samples,
            "partitions": list(self.partitions),
        }


@dataclass(frozen=True)
class Partition:
    """A slice of the window: its size, what its members demand together, and who they are (by id,
    sorted).
    """

    samples: int
    demand: int
    members: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"samples": self.samples, "demand": self.demand, "members": list(self.members)}


@dataclass(frozen=True)
class Change:
    """A single change after which a plan exists.

    ==========  ======================================================  ============================
    kind        ``value``: the least that is enough                     ``ptk``
    ==========  ======================================================  ============================
    capacity    the capacity, in units                                  None
    n_max       the samples to hold at most                             None
    option      the demand that a new option of this PTK may have       whose target to loosen
                (with ``samples`` within n_max)
    target      the nearest feasible target, as text                    the newcomer
    remove      None                                                    whom to remove
    ==========  ======================================================  ============================
    """

    kind: str
    ptk: str | None
    value: int | str | None
    text: str

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@dataclass(frozen=True)
class Explanation:
    """Why there is no plan, in one sentence, and the single changes that would give one, cheapest
    kind first.
    """

    text: str
    changes: tuple[Change, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"text": self.text, "changes": [change.as_json() for change in self.changes]}


@dataclass(frozen=True)
class Plan:
    """A plan; see the module for what the fields mean together.

    `allocator.verify` checks it against its problem.
    """

    status: str
    total_samples: int | None
    lower_bound: int | None
    gap: float | None
    partitions: tuple[Partition, ...]
    assignments: tuple[Assignment, ...]
    solver: str
    seconds: float = field(default=0.0, compare=False)
    explanation: Explanation | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "status": self.status,
            "total_samples": self.total_samples,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "partitions": [partition.as_json() for partition in self.partitions],
            "assignments": [assignment.as_json() for assignment in self.assignments],
            "solver": self.solver,
            "seconds": self.seconds,
            "explanation": None if self.explanation is None else self.explanation.as_json(),
        }

    @classmethod
    def from_json(cls, body: Any) -> Plan:
        """Read the form of ``as_json``.

        Shape only: whether the plan holds is the verifier's question.
        """
        try:
            told = body["explanation"]
            plan = cls(
                status=body["status"],
                total_samples=body["total_samples"],
                lower_bound=body["lower_bound"],
                gap=body["gap"],
                partitions=tuple(
                    Partition(**{**partition, "members": _texts(partition["members"])})
                    for partition in body["partitions"]
                ),
                assignments=tuple(
                    Assignment(**{**assignment, "partitions": tuple(assignment["partitions"])})
                    for assignment in body["assignments"]
                ),
                solver=body["solver"],
                seconds=body["seconds"],
                explanation=None
                if told is None
                else Explanation(
                    text=told["text"], changes=tuple(Change(**change) for change in told["changes"])
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                "PLAN_INVALID", f"a plan must have the form of Plan.as_json: {error!r:.200}"
            ) from error
        if plan.status not in STATUSES or set(body) != set(plan.as_json()):
            raise InvalidInput(
                "PLAN_INVALID",
                f"a plan must have one of the statuses {', '.join(STATUSES)} and no unknown fields",
            )
        return plan


def _texts(value: Iterable[Any]) -> tuple[str, ...]:
    texts = tuple(value)
    if isinstance(value, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"members must be a list of ids, got {value!r:.60}")
    return texts
