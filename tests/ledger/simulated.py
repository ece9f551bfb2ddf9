"""The real ledger on a simulated disk, for the crash simulations of tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from ptkstore.ledger import Ledger
from ptkstore.ledger.journals.sqlite import Journal

__all__ = ["open_simulated"]

_KEY = bytes(range(32))


def open_simulated(connection: Any, clock: Callable[[], float]) -> Ledger:
    """Open the ledger on ``connection``; the key would lie in a file of its own, written and synced
    before.
    """
    return Ledger(Journal(connection, _KEY, apsw.Error), _KEY, clock=clock, snapshot_every=25)
