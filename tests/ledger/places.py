"""Where a ledger may live, as one text: a path, or a URL and the path of the key after ``#``."""

from __future__ import annotations

import time
from collections.abc import Callable

from ptklib.ledger.policy import Policy
from ptkstore.ledger import Ledger

__all__ = ["open_book", "open_ledger"]


def open_ledger(address: str, *, clock: Callable[[], float] = time.time) -> Ledger:
    place, _, key = address.partition("#")
    return Ledger.open(place, key_path=key or None, clock=clock)


def open_book(address: str, *blocks: str) -> Ledger:
    """A new ledger with a stream ``s`` of epsilon 1 and blocks in it."""
    ledger = open_ledger(address)
    ledger.create_stream("s", Policy(epsilon=1, delta=0))
    ledger.add_blocks("s", blocks or ("a",))
    return ledger
