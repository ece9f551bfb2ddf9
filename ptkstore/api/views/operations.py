"""What a store does: cycles, the operations that run them, and what the doctor found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptkstore.api.views.view import View

__all__ = ["CycleView", "Finding", "OperationPage", "OperationView", "TrainedLine"]


@dataclass(frozen=True)
class TrainedLine(View):
    """What became of one PTK in a cycle.

    ``outcome``: PUBLISHED, SKIPPED, NOT_PROFILED, TRAIN_LOST or TRAIN_FAILED. ``validation``, of
    one that is published: VALIDATED, NOT_SHOWN, ESTIMATED or NOT_TESTED with the reason; empty where
    what it says follows from public numbers. ``error`` is what one of best effort tells, in words.
    """

    ptk: str
    outcome: str
    version: int | None = None
    epsilon: str | None = None
    samples: int | None = None
    reason: str = ""
    validation: str = ""
    error: str = ""


@dataclass(frozen=True)
class CycleView(View):
    """One window's cycle: its steps in order, the plan's status, what was trained, the window's DP
    size.

    ``status``: RUNNING, DONE, or SHORT where it published less than it should: then ``shortfall``
    says what and why, and ``changes`` what would help. ``outcomes`` counts all PTKs by their
    outcome where ``trained`` was asked to have some of them alone.
    """

    stream: str
    window: int
    status: str
    steps: tuple[str, ...]
    plan_status: str
    dp_records: int
    trained: tuple[TrainedLine, ...]
    outcomes: dict[str, int] = field(default_factory=dict)
    shortfall: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperationView(View):
    """Long work that somebody asked a server for.

    ``status``: RUNNING, DONE or FAILED; ``progress`` is for people.
    """

    id: str
    kind: str
    stream: str
    status: str
    progress: str
    cycles: tuple[CycleView, ...]
    reason: str
    message: str
    created_ms: int | None
    ended_ms: int | None


@dataclass(frozen=True)
class OperationPage(View):
    """Some operations, newest first; ``next_page_token`` is empty after the last page."""

    operations: tuple[OperationView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class Finding(View):
    """What the doctor looked at. ``level``: OK, WARNING or ERROR."""

    level: str
    what: str
    detail: str
