"""Who works a plan out: whoever asks, or a process of its own (`planner`).

Trying a PTK out, answering a registration, planning a window and what-ifs are pure functions of
public facts, and some take seconds. The engine calls none of them itself: it hands function and
facts to an `Ask`. A store without a server has them worked out `here`. A server has
`planner.Planner.ask`, so that its interpreter belongs to those it serves. No transaction is open
meanwhile. Reason: PLAN_CONTENDED, of those who ask elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from ptkstore.engine.turns import PlanContended

__all__ = ["Ask", "anyway", "here"]

Facts = ParamSpec("Facts")
Found = TypeVar("Found")


class Ask(Protocol):
    """Calls a function of a module with facts, somewhere."""

    def __call__(
        self, work: Callable[Facts, Found], /, *facts: Facts.args, **named: Facts.kwargs
    ) -> Found:
        """What it gives, or raises."""


def here(work: Callable[Facts, Found], /, *facts: Facts.args, **named: Facts.kwargs) -> Found:
    """Whoever asks does it."""
    return work(*facts, **named)


def anyway(ask: Ask) -> Ask:
    """For what has to be worked out: here where it cannot be elsewhere.

    A window that is not planned keeps its data.
    """

    def asked(work: Callable[Facts, Found], /, *facts: Facts.args, **named: Facts.kwargs) -> Found:
        try:
            return ask(work, *facts, **named)
        except PlanContended:
            return work(*facts, **named)

    return asked
