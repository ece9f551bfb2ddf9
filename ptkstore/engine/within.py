"""What somebody wants to write together with a change: durable with it, or not at all.

A verb that changes something takes ``within`` and calls it in the transaction of the change, with
the answer: a server keeps the answer under the id of the request there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ptkstore.metadata.database.store import Transaction

__all__ = ["Within", "nothing"]

Answer = TypeVar("Answer")
Within = Callable[[Transaction, Answer], object]


def nothing(_tx: Transaction, _answer: object) -> None:
    """Nothing to write with a change."""
