"""The goal of a PTK's row: read, changed and written. Reasons: VALUE_INVALID, those of the metadata."""

from __future__ import annotations

from dataclasses import replace

from ptkstore.api.goal import Goal
from ptkstore.metadata import rows
from ptkstore.metadata.checks import check_real
from ptkstore.metadata.database.store import Transaction

__all__ = ["aimed", "aiming", "goal_of", "require_goal"]


def require_goal(goal: Goal) -> None:
    """Refuse a target that is no number."""
    if goal.target is not None:
        check_real(goal.target, "target")


def goal_of(row: rows.PtkRow) -> Goal:
    """What a PTK is asked for."""
    return Goal(row.target, row.epsilon)


def aiming(row: rows.PtkRow, goal: Goal) -> rows.PtkRow:
    """A PTK with another goal, not written."""
    target = None if goal.target is None else float(goal.target)
    return replace(row, target=target, epsilon=goal.epsilon)


def aimed(
    tx: Transaction, row: rows.PtkRow, goal: Goal, now_ms: int, *, etag: int | None = None
) -> rows.PtkRow:
    """Give a PTK another goal, under the etag of the row unless another is given."""
    seen = row.etag if etag is None else etag
    return tx.ptks.update_target(row.id, goal.target, etag=seen, at_ms=now_ms, epsilon=goal.epsilon)
