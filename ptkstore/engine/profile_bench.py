"""The bench of the profiler on the ledger, the vault and the workers: reserve all, spend, open, let workers run, release.

Charges are spent durably, those of one round in one step, before their pieces are opened. Blocks are decrypted in this process,
once for all rounds of a profile; a worker gets the records of the piece of its task and nothing else. Whatever the number of
workers, the same tasks run on the same records.

Before anything is reserved, memory is set aside from planned numbers (`memory`): a profile that may need more than a worker, or
this process, has is refused (MEMORY_TOO_SMALL).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from profiler.pieces import Charge, Piece
from profiler.tasks import Answer, Task, charges_of, place_of
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice, TagRange
from ptkstore.engine.home import Home
from ptkstore.engine.memory import most_in_slice, most_in_window, profiling_bytes, require_room
from ptkstore.engine.patience import patiently
from ptkstore.engine.planning import Candidate, records_per_unit
from ptkstore.engine.training import GRANT_SECONDS
from ptkstore.streams import StreamSpec
from ptkstore.streams.opened import Opened, Tagged, read_opened, require_open, spend_and_open
from ptkstore.workers.joining import joined, joined_tagged
from ptkstore.workers.profile import Chore

__all__ = ["LedgerBench", "Place"]

_LOG = logging.getLogger(__name__)


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

    def __init__(self, place: Place, dp_records: int) -> None:
        """Nothing is reserved or read yet."""
        self._place = place
        self._dp_records = dp_records
        self._grants: dict[str, Grant] = {}
        self._spent: set[str] = set()
        self._kept: list[Tagged] | None = None

    def reserve(self, charges: Sequence[Charge]) -> None:
        """All or none, durably; none where memory is too small for what they pay for."""
        if charges:
            self._require_room()
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
            for task in tasks:
                self._require_open(opened, task)
            self._read(opened)
        except Exception as error:  # what cannot be read may be told in the text: only type and place leave
            return [Answer(failure=place_of(error)) for _ in tasks]
        # One after the other, as workers ask for them: each holds a copy of its records.
        chores = (Chore(task.name, task, self._records(opened, task)) for task in tasks)
        found = {}
        for done in home.workers.profile(chores):
            found[done.name] = done.answer
            if done.logged:
                _LOG.warning("PTK %s failed in its profile: %s", self._place.one.row.name, done.logged)
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

    def _require_open(self, opened: Opened, task: Task) -> None:
        tags = self._place.tags(task.piece)
        require_open(opened, tags.start, tags.stop)

    def _require_room(self) -> None:
        """Refuse a profile for which there is too little memory. By public numbers: see `memory`."""
        place = self._place
        window = most_in_window(self._dp_records, len(place.blocks), place.spec)
        share = Fraction(place.spec.profile_share) / place.parts
        most = most_in_slice(window, share, records_per_unit(place.spec))
        needed = profiling_bytes(place.spec, place.one.ptk, window=window, most=most)
        require_room(needed, place.home.workers.memory_bytes, "a profile")

    def _records(self, opened: Opened, task: Task) -> tuple[pa.RecordBatch, ...]:
        tags = self._place.tags(task.piece)
        found = []
        for batch, marks in self._read(opened):
            inside = (marks >= np.uint64(tags.start)) & (marks <= np.uint64(tags.stop - 1))
            if inside.any():
                found.append(batch.filter(pa.array(inside)))
        return tuple(joined(found))

    def _read(self, opened: Opened) -> list[Tagged]:
        """The records of this PTK's part, read once: blocks are decrypted as a whole, and a task sees its piece only."""
        if self._kept is None:
            self._kept = list(joined_tagged(self._part(opened)))
        return self._kept

    def _part(self, opened: Opened) -> Iterator[Tagged]:
        """The columns of this PTK, of the records of its part."""
        whole, columns = self._place.tags(), list(self._place.one.ptk.columns())
        for batch, marks in joined_tagged(read_opened(opened)):
            inside = (marks >= np.uint64(whole.start)) & (marks <= np.uint64(whole.stop - 1))
            yield Tagged(batch.select(columns).filter(pa.array(inside)), marks[inside])
