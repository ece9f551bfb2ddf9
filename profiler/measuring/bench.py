"""The bench: where pieces are opened. The profiler says what to run; a bench charges, opens, runs
and gives back.

The treaty ----------
* ``reserve`` takes all charges of a schedule or none (a `Refused` says why); nothing is read yet.
* ``run`` spends the charge of each task, durably, before its piece is opened, and answers in the
  order of the tasks. A task whose charge is refused then answers with that reason. It may run tasks
  in any order, anywhere: tasks carry their noise. Tasks on disjoint parts of one piece may share
  its charge, which is spent once (`tasks.charges_of`).
* ``release`` gives back those of some charges that were never spent.

`MemoryBench` holds records and tags in memory: for tests, benchmarks and research on public data.
It keeps a book of its own and no promise; the engine's bench keeps the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import Answer, Task, charges_of, run
from ptklib.errors import Refused
from ptklib.ptk import Batches

__all__ = ["Bench", "MemoryBench"]

Runner = Callable[[Task, "_Held"], Answer]


class Bench(Protocol):
    """What a profile needs of the world. The treaty is in the module."""

    def reserve(self, charges: Sequence[PieceCost]) -> None:
        """All charges, or none."""

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        """Spend, open, run."""

    def release(self, charges: Sequence[PieceCost]) -> None:
        """Give back those that were never spent."""


class MemoryBench:
    """Records in memory, with tags as shares in [0, 1) of the profile slice.

    Keeps lists of what was reserved and spent.
    """

    def __init__(
        self,
        table: pa.Table | pa.RecordBatch,
        tags: NDArray[np.float64],
        *,
        executor: Executor | None = None,
        runner: Runner | None = None,
    ) -> None:
        """``executor`` runs tasks side by side; ``runner`` stands in for `run` (tests admit their
        noise there).
        """
        order = np.argsort(tags, kind="stable")
        whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        self._table = whole.take(pa.array(order))
        self._tags = np.asarray(tags, dtype=np.float64)[order]
        self._executor = executor
        self._runner: Runner = runner or run_held
        self.reserved: list[PieceCost] = []
        self.spent: list[PieceCost] = []

    def reserve(self, charges: Sequence[PieceCost]) -> None:
        """Note them."""
        self.reserved += charges

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        """Spend all, then run all."""
        reserved = {piece_cost.name for piece_cost in self.reserved}
        charges = charges_of(tasks)
        for charge in charges:
            if charge.name not in reserved:
                raise Refused("GRANT_USED", f"the charge {charge.name!r} is not reserved")
        self.release(charges)
        self.spent += charges
        held = [self._held(task.piece) for task in tasks]
        if self._executor is None:
            return [self._runner(task, batches) for task, batches in zip(tasks, held, strict=True)]
        return list(self._executor.map(self._runner, tasks, held))

    def release(self, charges: Sequence[PieceCost]) -> None:
        """Forget those that are reserved."""
        names = {charge.name for charge in charges}
        self.reserved = [piece_cost for piece_cost in self.reserved if piece_cost.name not in names]

    def _held(self, piece: Piece) -> _Held:
        first, last = np.searchsorted(self._tags, [float(piece.start), float(piece.stop)])
        # A slice would take the whole table along to another process.
        part = self._table.slice(first, last - first)
        return tuple(part.combine_chunks().to_batches())


_Held = tuple[pa.RecordBatch, ...]


def run_held(task: Task, held: _Held) -> Answer:
    """`run` on records in memory."""
    return run(task, partial(_again, held))


def _again(held: _Held) -> Batches:
    return iter(held)
