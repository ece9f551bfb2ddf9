"""The bench of the profiler on the ledger, the vault and the workers: reserve all, spend, open, let
workers run, release.

Charges are spent durably, those of one round in one step, before their pieces are opened. Blocks
are decrypted in this process, once for all rounds of a profile; a worker gets the records of the
piece of its task and nothing else. Whatever the number of workers, the same tasks run on the same
records.

Before anything is reserved, memory is set aside from planned numbers (`memory`): a profile that may
need more than a worker, or this process, has is refused (MEMORY_TOO_SMALL).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import Answer, Task, charges_of
from ptklib.encoding.error_place import failure_of
from ptklib.errors import GrantRefused, Refused
from ptklib.ledger.commands import Reserve
from ptklib.ledger.grants import Grant
from ptklib.ledger.slices import Slice, TagRange
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.planning import Candidate, records_per_unit
from ptkstore.engine.retry import patiently
from ptkstore.engine.room.memory import (
    most_in_slice,
    most_in_window,
    profiling_bytes,
    require_room,
)
from ptkstore.streams.reading.opened import (
    GRANT_SECONDS,
    Tagged,
    spend_and_open,
)
from ptkstore.workers.joining import joined, joined_tagged
from ptkstore.workers.protocol import Opener, ProfileJob

__all__ = ["LedgerBench", "ProfilePlace"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProfilePlace:
    """One PTK's part of the profile slice of a window: the part number ``place`` of ``places``."""

    parts: Parts
    spec: StreamSpec
    cycle: int
    blocks: tuple[str, ...]
    candidate: Candidate
    place: int
    places: int

    def key(self, charge: PieceCost) -> str:
        """Of a charge in the ledger: asking again is asking once."""
        return f"cycle-{self.cycle}/profile-{self.candidate.row.id}/{charge.name}"

    def request(self, charge: PieceCost) -> Reserve:
        """The reservation of one charge."""
        return self.parts.ledger.request(
            self.spec.name,
            [Slice(self.blocks, self.tags(charge.piece))],
            charge.cost,
            contexts=("door:profile", f"ptk:{self.candidate.row.name}"),
            key=self.key(charge),
            ttl_seconds=GRANT_SECONDS,
        )

    def tags(self, piece: Piece | None = None) -> TagRange:
        """A piece as tags: this PTK's part of the profile slice, then the piece's part of that;
        without a piece all of it.
        """
        width = Fraction(self.spec.profile_share) / self.places
        ends = (Fraction(0), Fraction(1)) if piece is None else (piece.start, piece.stop)
        # Rounded alike for neighbours, so that they never overlap.
        return TagRange.of_shares(
            *((width * (self.place + end)).limit_denominator(10**15) for end in ends)
        )


class LedgerBench:
    """See `profiler.measuring.bench.Bench` for the treaty."""

    def __init__(self, place: ProfilePlace, dp_records: int) -> None:
        """Nothing is reserved or read yet."""
        self._place = place
        self._dp_records = dp_records
        self._grants: dict[str, Grant] = {}
        self._spent: set[str] = set()
        self._kept: list[Tagged] | None = None

    def reserve(self, charges: Sequence[PieceCost]) -> None:
        """All or none, durably; none where memory is too small for what they pay for."""
        if charges:
            self._require_room()
            grants = self._place.parts.ledger.reserve_all(
                [self._place.request(charge) for charge in charges]
            )
            self._grants |= {
                charge.name: grant for charge, grant in zip(charges, grants, strict=True)
            }
        self._place.parts.observers.tell("profile", "reserved")

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        """Spend all charges in one durable step, then read here and run in the workers."""
        if not tasks:
            return []
        parts = self._place.parts
        charges = charges_of(tasks)
        grants = [self._grants[charge.name] for charge in charges]
        try:
            opener = spend_and_open(parts.path, self._place.spec, grants, parts.ledger)
        except GrantRefused as refusal:
            return [Answer(failure=refusal.reason, charged=False) for _ in tasks]
        self._spent |= {charge.name for charge in charges}
        parts.observers.tell("profile", "spent")
        try:
            for task in tasks:
                self._require_open(opener, task)
            self._read(opener)
        except (
            Exception
        ) as error:  # what cannot be read may be told in the text: only type and place leave
            return [Answer(failure=failure_of(error)) for _ in tasks]
        # One after the other, as workers ask for them: each holds a copy of its records.
        jobs = (ProfileJob(task.name, task, self._records(opener, task)) for task in tasks)
        answers = {}
        for done in parts.workers.profile(jobs):
            answers[done.name] = done.answer
            if done.logged:
                _LOG.warning(
                    "PTK %s failed in its profile: %s", self._place.candidate.row.name, done.logged
                )
        return [answers[task.name] for task in tasks]

    def release(self, charges: Sequence[PieceCost]) -> None:
        """Give back what was not spent."""
        for charge in charges:
            grant = self._grants.pop(charge.name, None)
            if grant is not None and charge.name not in self._spent:
                patiently(partial(self._release, grant))

    def is_spent(self, charge: PieceCost) -> bool:
        """True when the ledger has it as spent, by this process or one before."""
        ledger = self._place.parts.ledger
        number = ledger.find(self._place.spec.name, self._place.key(charge))
        return number is not None and ledger.fate(number) == "SPENT"

    def give_back(self, charges: Sequence[PieceCost]) -> None:
        """Release reservations that a process before this one left."""
        ledger = self._place.parts.ledger
        for charge in charges:
            number = ledger.find(self._place.spec.name, self._place.key(charge))
            if number is None or ledger.fate(number) != "RESERVED":
                continue
            try:
                ledger.release(ledger.reserve_all([self._place.request(charge)])[0])
            except Refused:
                continue  # It lapses by itself.

    def _release(self, grant: Grant) -> None:
        try:
            self._place.parts.ledger.release(grant)
        except GrantRefused as refusal:
            # By the try before this one, whose answer was lost.
            if refusal.reason != "GRANT_RELEASED":
                raise

    def _require_open(self, opener: Opener, task: Task) -> None:
        tags = self._place.tags(task.piece)
        opener.require(tags.start, tags.stop)

    def _require_room(self) -> None:
        """Refuse a profile for which there is too little memory.

        By public numbers: see `memory`.
        """
        place = self._place
        window = most_in_window(self._dp_records, len(place.blocks), place.spec)
        share = Fraction(place.spec.profile_share) / place.places
        most = most_in_slice(window, share, records_per_unit(place.spec))
        needed = profiling_bytes(place.spec, place.candidate.ptk, window=window, most=most)
        require_room(needed, place.parts.workers.memory_bytes, "a profile")

    def _records(self, opener: Opener, task: Task) -> tuple[pa.RecordBatch, ...]:
        tags = self._place.tags(task.piece)
        batches = []
        for batch, marks in self._read(opener):
            inside = (marks >= np.uint64(tags.start)) & (marks <= np.uint64(tags.stop - 1))
            if inside.any():
                batches.append(batch.filter(pa.array(inside)))
        return tuple(joined(batches))

    def _read(self, opener: Opener) -> list[Tagged]:
        """The records of this PTK's part, read once: blocks are decrypted as a whole, and a task
        sees its piece only.
        """
        if self._kept is None:
            self._kept = list(joined_tagged(self._part(opener)))
        return self._kept

    def _part(self, opener: Opener) -> Iterator[Tagged]:
        """The columns of this PTK, of the records of its part."""
        whole, columns = self._place.tags(), list(self._place.candidate.ptk.columns())
        for batch, marks in joined_tagged(opener.read()):
            inside = (marks >= np.uint64(whole.start)) & (marks <= np.uint64(whole.stop - 1))
            yield Tagged(batch.select(columns).filter(pa.array(inside)), marks[inside])
