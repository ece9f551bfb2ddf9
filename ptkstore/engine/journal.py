"""The one writer of what windows come to.

Whatever a window writes into the metadata, it writes here: the ledger's head is kept outside of the
ledger first (`HeadGuard`), the transaction is fenced (nothing is written by a server that does not
lead any more), and a step and all that belongs to it (counts of blocks, a plan, states, events) are
written in one transaction. Only this transaction can write results (`ResultsTransaction`), and it
cannot be opened without the head: so whoever sees a result can rely on its charges being known
outside of the ledger.

A step counts as it was written first. Writing it again changes nothing and gives that back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from ptkstore.engine.head_guard import HeadGuard
from ptkstore.engine.leader import Lead
from ptkstore.engine.steps.step import Step, row_name
from ptkstore.metadata import Metadata, ResultsTransaction, Transaction

__all__ = ["Also", "StepJournal"]

AnyStep = TypeVar("AnyStep", bound=Step)
# What belongs to a step and is written with it.
Also = Callable[[ResultsTransaction], None]


def _nothing(_tx: ResultsTransaction) -> None:
    """No more than the step itself."""


class StepJournal:
    """Writes the steps of cycles and reads them back. Thread-safe."""

    def __init__(
        self,
        metadata: Metadata,
        guard: HeadGuard,
        lead: Callable[[], Lead],
        public_ms: Callable[[], int],
    ) -> None:
        """``lead`` is asked each time: a server gets and loses it."""
        self._metadata = metadata
        self._guard = guard
        self._lead = lead
        self._public_ms = public_ms

    @contextmanager
    def writing(self) -> Iterator[ResultsTransaction]:
        """A transaction for results, the one way for them into the metadata."""
        known = self._guard.kept_text()
        with self._metadata.write_results(known) as tx:
            self._lead().fence(tx)
            yield tx

    def write(self, cycle: int, step: AnyStep, *, part: str = "", also: Also = _nothing) -> AnyStep:
        """The step, or a part of it, with what belongs to it; as it stands now. ``also`` is left
        out where the step was written before.
        """
        with self.writing() as tx:
            return self.write_in(tx, cycle, step, part=part, also=also)

    def write_in(
        self,
        tx: ResultsTransaction,
        cycle: int,
        step: AnyStep,
        *,
        part: str = "",
        also: Also = _nothing,
    ) -> AnyStep:
        """`write` in a transaction of `writing`."""
        name = row_name(type(step), part)
        if tx.cycles.step(cycle, name) is None:
            also(tx)
        row = tx.cycles.add_step(cycle, name, step.as_json(), at_ms=self._public_ms())
        return type(step).from_json(row.body)

    def write_parts(self, cycle: int, steps: Mapping[str, AnyStep]) -> dict[str, AnyStep]:
        """Several parts at once, by the names of the parts; as they stand now."""
        kinds = {part: type(step) for part, step in steps.items()}
        bodies = {row_name(kinds[part], part): step.as_json() for part, step in steps.items()}
        with self.writing() as tx:
            rows = tx.cycles.add_steps(cycle, bodies, at_ms=self._public_ms())
        return {
            part: kinds[part].from_json(row.body) for part, row in zip(steps, rows, strict=True)
        }

    def find(self, cycle: int, kind: type[AnyStep], part: str = "") -> AnyStep | None:
        """The step as it was written; None where it is not done."""
        with self._metadata.read() as tx:
            row = tx.cycles.step(cycle, row_name(kind, part))
        return None if row is None else kind.from_json(row.body)

    def parts(self, tx: Transaction, cycle: int, kind: type[AnyStep]) -> dict[str, AnyStep]:
        """The parts that are written of a step whose parts are all of one kind, by their names."""
        prefix = f"{kind.STEP}:"
        return {
            row.step.removeprefix(prefix): kind.from_json(row.body)
            for row in tx.cycles.steps(cycle)
            if row.step.startswith(prefix)
        }
