"""The bench of the profiler on the ledger, the vault and the workers: reserve all, spend, open, let workers run, release.

Charges are spent durably, those of one round in one step, before their pieces are opened. Blocks are decrypted in this process,
once for all rounds of a profile; a worker gets the records of the piece of its task and nothing else. Whatever the number of
workers, the same tasks run on the same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiler.pieces import Charge, Piece
from profiler.tasks import Answer, Task, charges_of, place_of
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice, TagRange
from ptkstore.engine.home import Home
from ptkstore.engine.patience import patiently
from ptkstore.engine.planning import Candidate
from ptkstore.engine.training import GRANT_SECONDS
from ptkstore.streams import StreamSpec
from ptkstore.streams.opened import Opened, read_opened, require_open, spend_and_open
from ptkstore.workers.profile import Chore

__all__ = ["LedgerBench", "Place"]


@dataclass(frozen=True)
class Place:
    """One PTK's part of the profile slice of a window: the part number ``place`` of ``parts``."""

    home: Home
    spec: StreamSpec
    cycle: int
    blocks: tuple[str, ...]
    one: Candidate
    place: int
    parts: int

    def key(self, charge: Charge) -> str:
        """Of a charge in the ledger: asking again is asking once."""
        return f"cycle-{self.cycle}/profile-{self.one.row.id}/{charge.name}"

    def request(self, charge: Charge) -> Reserve:
        """The reservation of one charge."""
        return self.home.ledger.request(
            self.spec.name,
            [Slice(self.blocks, self.tags(charge.piece))],
            charge.cost,
            contexts=("door:profile", f"ptk:{self.one.row.name}"),
            key=self.key(charge),
            ttl_seconds=GRANT_SECONDS,
        )

    def tags(self, piece: Piece | None = None) -> TagRange:
        """A piece as tags: this PTK's part of the profile slice, then the piece's part of that; without a piece all of it."""
        width = Fraction(self.spec.profile_share) / self.parts
        ends = (Fraction(0), Fraction(1)) if piece is None else (piece.start, piece.stop)
        # Rounded alike for neighbours, so that they never overlap.
        return TagRange.of_shares(*((width * (self.place + end)).limit_denominator(10**15) for end in ends))


class LedgerBench:
    """See `profiler.bench.Bench` for the treaty."""

    def __init__(self, place: Place) -> None:
        """Nothing is reserved or read yet."""
        self._place = place
        self._grants: dict[str, Grant] = {}
        self._spent: set[str] = set()
        self._kept: list[tuple[pa.RecordBatch, NDArray[np.uint64]]] | None = None

    def reserve(self, charges: Sequence[Charge]) -> None:
        """All or none, durably."""
        if charges:
            grants = self._place.home.ledger.reserve_all([self._place.request(one) for one in charges])
            self._grants |= {one.name: grant for one, grant in zip(charges, grants, strict=True)}
        self._place.home.on_step("profile", "reserved")

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        """Spend all charges in one durable step, then read here and run in the workers."""
        if not tasks:
            return []
        home = self._place.home
        charges = charges_of(tasks)
        grants = [self._grants[one.name] for one in charges]
        try:
            opened = spend_and_open(home.path, self._place.spec, grants, home.ledger)
        except GrantRefused as refusal:
            return [Answer(failure=refusal.reason, charged=False) for _ in tasks]
        self._spent |= {one.name for one in charges}
        home.on_step("profile", "spent")
        try:
            chores = [Chore(task.name, task, self._records(opened, task)) for task in tasks]
        except Exception as error:  # what cannot be read may be told in the text: only type and place leave
            return [Answer(failure=place_of(error)) for _ in tasks]
        found = {done.name: done.answer for done in home.workers.profile(chores)}
        return [found[task.name] for task in tasks]

    def release(self, charges: Sequence[Charge]) -> None:
        """Give back what was not spent."""
        for one in charges:
            grant = self._grants.pop(one.name, None)
            if grant is not None and one.name not in self._spent:
                patiently(partial(self._release, grant))

    def is_spent(self, charge: Charge) -> bool:
        """True when the ledger has it as spent, by this process or one before."""
        ledger = self._place.home.ledger
        number = ledger.find(self._place.spec.name, self._place.key(charge))
        return number is not None and ledger.fate(number) == "SPENT"

    def give_back(self, charges: Sequence[Charge]) -> None:
        """Release reservations that a process before this one left."""
        ledger = self._place.home.ledger
        for one in charges:
            number = ledger.find(self._place.spec.name, self._place.key(one))
            if number is None or ledger.fate(number) != "RESERVED":
                continue
            try:
                ledger.release(ledger.reserve_all([self._place.request(one)])[0])
            except Refused:
                continue  # It lapses by itself.

    def _release(self, grant: Grant) -> None:
        try:
            self._place.home.ledger.release(grant)
        except GrantRefused as refusal:
            # By the try before this one, whose answer was lost.
            if refusal.reason != "GRANT_RELEASED":
                raise

    def _records(self, opened: Opened, task: Task) -> tuple[pa.RecordBatch, ...]:
        tags = self._place.tags(task.piece)
        require_open(opened, tags.start, tags.stop)
        found = []
        for batch, marks in self._read(opened):
            inside = (marks >= np.uint64(tags.start)) & (marks <= np.uint64(tags.stop - 1))
            if inside.any():
                found.append(batch.filter(pa.array(inside)))
        return tuple(found)

    def _read(self, opened: Opened) -> list[tuple[pa.RecordBatch, NDArray[np.uint64]]]:
        """The records of this PTK's part, read once: blocks are decrypted as a whole, and a task sees its piece only."""
        if self._kept is None:
            whole = self._place.tags()
            kept = []
            columns = list(self._place.one.ptk.columns())
            for batch, marks in read_opened(opened):
                inside = (marks >= np.uint64(whole.start)) & (marks <= np.uint64(whole.stop - 1))
                kept.append((batch.select(columns).filter(pa.array(inside)), marks[inside]))
            self._kept = kept
        return self._kept
