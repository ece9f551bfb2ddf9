"""Aggressive: all the budget that there is for this pipeline, on all records, as soon as there are
some. For streams with few pipelines: it leaves nothing to anybody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ptklib.pipelines.attempts import NextAttempt, Situation, Wait
from ptklib.pipelines.strategy import Strategy, largest

__all__ = ["Aggressive"]


@dataclass(frozen=True, kw_only=True)
class Aggressive(Strategy):
    """See the module. ``first`` says nothing here."""

    kind: ClassVar[str] = "aggressive"

    def next(self, situation: Situation) -> NextAttempt | Wait:
        """See `Strategy`."""
        return largest(situation)
