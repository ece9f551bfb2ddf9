"""Plans, and what they would be after some changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkstore.api.views.remedies import Remedy, known_remedies
from ptkstore.api.views.view import View

__all__ = [
    "LeftOutLine",
    "PartitionLine",
    "PlanLine",
    "PlanView",
    "SurplusLine",
    "WhatIfView",
]


@dataclass(frozen=True)
class PlanLine(View):
    """One PTK in a plan. ``partitions`` are places in `PlanView.partitions`; ``used`` is what it
    uses of the budget at each record that it trains on, as a share. One of best effort has no target.
    """

    ptk: str
    epsilon: str
    samples: int
    share: float
    target: float | None
    partitions: tuple[int, ...] = ()
    used: float = 0.0


@dataclass(frozen=True)
class PartitionLine(View):
    """A slice of the window: its samples, how many PTKs train on it, and what of the budget they
    use, as a share.
    """

    samples: int
    ptks: int
    used: float


@dataclass(frozen=True)
class LeftOutLine(View):
    """A PTK that was due and is not in a plan: the reason, and the reason in words."""

    ptk: str
    reason: str
    text: str


@dataclass(frozen=True)
class SurplusLine(View):
    """What one PTK is given where its stream uses the surplus: the epsilon and the samples that it
    trains with, beside those of the plan of fewest samples.

    ``expected_minimum`` and ``expected`` are the losses to expect, as shares of its target, without
    and with the surplus. They come from its profile and say where more helps; the promise is the
    target. Of best effort they are shares of what it would have on an equal share of the window.
    """

    ptk: str
    epsilon: str
    samples: int
    share: float
    expected_minimum: float
    expected: float


@dataclass(frozen=True)
class PlanView(View):
    """A plan: who trains with which epsilon on how many samples. ``status``: OPTIMAL, FEASIBLE,
    SHORT (for some of the PTKs that were due; ``left_out`` are the others), INFEASIBLE (for none),
    or KEPT in windows of earlier versions.

    No plan of the form asked for holds fewer samples than ``lower_bound``; ``gap`` is what a better
    one could save, as a share, and ``gap_reason`` says in words why it is what it is: which bound,
    and which PTKs. ``explanation`` and ``remedies`` say why there is none and what would
    make one feasible; ``changes`` are the words of the remedies.

    ``spent_before`` is the share of E that its records had lost before anybody trains on them, to
    their published counts; what lines and partitions have ``used`` are shares of the rest. None
    where it is not known.

    ``use`` is what the stream takes of a window: the minimum, which is what all of the above says,
    or the surplus as well. Then ``surplus`` says what each PTK is given, on ``surplus_samples`` of the
    window in all; it is empty where nothing is to be gained.
    """

    stream: str
    window: int
    status: str
    total_samples: int | None
    available_samples: int | None
    solver: str
    seconds: float
    lines: tuple[PlanLine, ...]
    explanation: str = ""
    changes: tuple[str, ...] = ()
    recommended_samples: int | None = None
    recommended_window_seconds: int | None = None
    lower_bound: int | None = None
    gap: float | None = None
    partitions: tuple[PartitionLine, ...] = ()
    spent_before: float | None = None
    left_out: tuple[LeftOutLine, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    use: str = "minimum"
    surplus: tuple[SurplusLine, ...] = ()
    surplus_samples: int | None = None
    gap_reason: str = ""

    @property
    def expected_gain(self) -> tuple[float, float] | None:
        """The mean loss to expect, as a share of the targets, without and with the surplus; None
        where there is none. Those of best effort have no target to share.
        """
        promised = {line.ptk for line in self.lines if line.target is not None}
        given = [line for line in self.surplus if line.ptk in promised]
        if not given:
            return None
        return (
            sum(line.expected_minimum for line in given) / len(given),
            sum(line.expected for line in given) / len(given),
        )

    def given(self, ptk: str) -> SurplusLine | None:
        """What a PTK is given of the surplus; None where it is nothing."""
        return next((line for line in self.surplus if line.ptk == ptk), None)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> PlanView:
        """Read `as_json` back."""
        lines = (
            PlanLine(**(line | {"partitions": tuple(line["partitions"])})) for line in body["lines"]
        )
        partitions = tuple(PartitionLine(**partition) for partition in body["partitions"])
        rest: dict[str, Any] = {
            "lines": tuple(lines),
            "partitions": partitions,
            "changes": tuple(body["changes"]),
        }
        # Plans of earlier versions have none.
        rest["surplus"] = tuple(SurplusLine(**line) for line in body.get("surplus", ()))
        rest["left_out"] = tuple(LeftOutLine(**line) for line in body.get("left_out", ()))
        rest["remedies"] = known_remedies(
            map(Remedy.from_json, body.get("remedies", ())), rest["changes"]
        )
        return cls(**(body | rest))


@dataclass(frozen=True)
class WhatIfView(View):
    """The plan of a fresh window as it is and as it would be; ``unprofiled`` PTKs cannot be planned
    yet.

    ``token`` approves the changes; it is empty where there is nothing to approve.
    """

    current: PlanView
    proposed: PlanView
    unprofiled: tuple[str, ...] = ()
    token: str = ""
