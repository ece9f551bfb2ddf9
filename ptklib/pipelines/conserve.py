"""Conserve: begin with little, and double the budget, or the records, after each RETRY.

All that failed has cost less than what is accepted, which is at most twice what would have been
enough: together at most four times that (`strategy`, "Resources").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptklib.pipelines.attempts import REFUSED, TEST, NextAttempt, Situation, Wait
from ptklib.pipelines.strategy import Strategy, doubled, largest

__all__ = ["Conserve"]


@dataclass(frozen=True, kw_only=True)
class Conserve(Strategy):
    """See the module."""

    kind: ClassVar[str] = "conserve"

    def next(self, situation: Situation) -> NextAttempt | Wait:
        """See `Strategy`."""
        tests = [
            tried for tried in situation.tried if tried.purpose == TEST and tried.outcome != REFUSED
        ]
        if tests:
            return doubled(situation, tests[-1])
        least = self.least(situation)
        if situation.offer.records(least):
            return NextAttempt(least)
        return largest(situation)
