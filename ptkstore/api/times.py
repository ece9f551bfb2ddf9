"""Times that people may see are on a coarse grid.

How long it takes to seal, count, profile, train and expire depends on how many records there are,
and that number is private. So no time that the store writes down about its work, or tells of it, is
finer than `GRAIN_MS`: all of them, for one exact time between two coarse ones would tell when the
work beside it ended. Rounding keeps the order of what happened, and rounding **up** keeps the past
as it was: what is asked for "as of" a time never changes once that time is over.

This protects what is recorded: operations, steps of windows, events, states, plans, profiles,
entries of the ledger, spans. A window whose work takes a second less or more is told alike, unless
the end of a minute lies between. It does not protect from somebody who watches: a state, a step or
an event is there when it is there. docs/threat-model.md says what is left, and what to do about it.
Times that the store reckons with, such as the end of a grant, are exact, and stay inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["GRAIN_MS", "public_entry", "public_ms"]

GRAIN_MS = 60_000


def public_ms(exact_ms: int) -> int:
    """The first moment of the grid that is not before that one."""
    return -(-exact_ms // GRAIN_MS) * GRAIN_MS


def public_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the ledger as people see it: what begins or ends with a charge is as private as
    the work between them.
    """
    return {
        name: public_ms(value) if name.endswith("_ms") else value for name, value in entry.items()
    }
