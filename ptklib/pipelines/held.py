"""Records in memory under one promise: blocks with random tags, and a book of their own.

For scripts, notebooks and experiments with data that is at hand. The book is the ledger that a
store keeps (`ptklib.ledger`), with the same filters; it lives as long as this object does, so the
promise covers what was done with this object. A store keeps records encrypted and the book for
ever.

**Proof note.** *Unit, neighbours:* one record, added or removed. *Tags* are 64 random bits each
from the system's generator, whatever the record is. *Cost:* every block is charged
``count_epsilon`` for its count, and what attempts reserve; the filter of the policy admits each at
every point or refuses it. What raises is told as one word.

User-level promises are refused (UNIT_UNSUPPORTED): the records of a user would have to share a tag
and be bounded, which a store does.

Reasons: UNIT_UNSUPPORTED, BLOCK_COLUMNS, those of `ledger` and `amounts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.commands import AddBlocks, CreateStream, Reserve, ReserveAll, Spend
from ptklib.ledger.decide import apply
from ptklib.ledger.policy import Policy
from ptklib.ledger.queries import affordable
from ptklib.ledger.slices import TAG_SPACE, Slice, TagRange
from ptklib.ledger.state import LedgerState
from ptklib.pipelines.attempts import Offered, OfferedBlock, Trail
from ptklib.pipelines.bench import FAILURE, AttemptAnswer, Job
from ptklib.pipelines.pipeline import Pipeline
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import CountRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource, SystemSource
from ptklib.ptk import Batches
from ptklib.validators.betting import LossTest
from ptklib.validators.loss import measure_loss, validate_loss

__all__ = ["HeldStream"]

_STREAM, _DOOR = "held", "door:pipeline"
# Nothing here takes time: charges are reserved and spent in one breath.
_AT_MS, _EXPIRES_MS = 1, 2
# How finely what is left of a block is found.
_HALVINGS = 24


class HeldStream:
    """See the module. Not thread-safe."""

    stream = _STREAM
    records_per_unit = 1

    def __init__(
        self,
        policy: Policy,
        *,
        count_epsilon: Number = "0.01",
        noise: BitSource | None = None,
    ) -> None:
        """No records yet. ``count_epsilon`` is charged to each block for its published count."""
        if policy.unit != "event":
            raise InvalidInput(
                "UNIT_UNSUPPORTED",
                f"records in memory are promised event by event, got unit {policy.unit!r}: use a "
                "store for users",
                field="unit",
            )
        self.unit = policy.unit
        self._count = CountRelease(epsilon=count_epsilon)
        self._noise = noise
        self._book = LedgerState()
        self._tables: dict[str, pa.Table] = {}
        self._tags: dict[str, NDArray[np.uint64]] = {}
        self._counts: dict[str, int] = {}
        apply(self._book, CreateStream(_STREAM, policy))

    def add(self, table: pa.Table | pa.RecordBatch) -> str:
        """A new block of records, which never changes; its name. Its count is charged and taken."""
        whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        first = next(iter(self._tables.values()), None)
        if first is not None and not whole.schema.equals(first.schema):
            raise InvalidInput(
                "BLOCK_COLUMNS",
                f"a block must have the columns of the first one, {first.schema.names} with their "
                f"types, got {whole.schema.names}",
            )
        name = f"block-{len(self._tables) + 1}"
        apply(self._book, AddBlocks(_STREAM, (name,)))
        self._charge([(Slice((name,)), self._count.cost)], f"{name}/count", ("door:count",))
        self._tables[name] = whole
        # Tags are not noise: they are the system's even where noise is given.
        self._tags[name] = SystemSource().words(len(whole))
        told = self._count.release(len(whole), source=self._noise).value
        self._counts[name] = max(0, told)
        return name

    def count(self, block: str) -> int:
        """The published count of a block, never below 0. DP."""
        return self._counts[block]

    def offer(self, pipeline: Pipeline, trail: Trail) -> Offered:
        """See `PipelineBench`."""
        limit = Fraction(pipeline.epsilon)
        rests = {name: limit - trail.spent(name) for name in self._tables}
        offered = []
        for rest in sorted(set(rests.values())):
            names = [name for name, own in rests.items() if own == rest]
            left = self._left(pipeline, names, rest)
            offered += [OfferedBlock(name, self._counts[name], left[name]) for name in names]
        return Offered(tuple(sorted(offered, key=lambda block: block.name)))

    def attempt(self, job: Job) -> AttemptAnswer:
        """See `PipelineBench`."""
        blocks = job.blocks
        parts = [
            (Slice(blocks, job.pipeline.split.training), job.training_cost(1)),
            (Slice(blocks, job.judged_on), job.test.cost),
        ]
        try:
            self._charge(parts, job.key, (_DOOR, f"pipeline:{job.pipeline.name}"))
        except Refused as refusal:
            return AttemptAnswer(failure=refusal.reason, charged=False)
        try:
            arrays = job.pipeline.ptk.train_dp(
                self._within(blocks, job.pipeline.split.training),
                epsilon=job.epsilon,
                delta=Fraction(job.pipeline.delta),
                noise=self._noise,
            )
            judged = self._within(blocks, job.judged_on)
            ptk = job.pipeline.ptk
            if isinstance(job.test, LossTest):
                return AttemptAnswer(
                    arrays, validate_loss(job.test, ptk, arrays, judged, source=self._noise)
                )
            return AttemptAnswer(
                arrays, measure_loss(job.test, ptk, arrays, judged, source=self._noise)
            )
        except Exception:  # whatever a PTK raises may carry data
            return AttemptAnswer(failure=FAILURE)

    def _left(
        self, pipeline: Pipeline, names: Sequence[str], rest: Fraction
    ) -> dict[str, Fraction]:
        """The largest epsilon up to ``rest`` whose attempt each block still takes."""
        left = dict.fromkeys(names, Fraction(0))
        undecided = set(names)
        if rest <= 0:
            return left
        low, high = Fraction(0), rest
        fit = self._fitting(pipeline, rest) & undecided
        left |= dict.fromkeys(fit, rest)
        undecided -= fit
        # Blocks of one pipeline have mostly the same left: each pass settles all that are alike.
        while undecided:
            low, high = Fraction(0), rest
            name = min(undecided)
            for _ in range(_HALVINGS):
                middle = Fraction(int((low + high) / 2 * 10**9), 10**9)
                fits = middle > 0 and name in self._fitting(pipeline, middle)
                low, high = (middle, high) if fits else (low, middle)
            alike = (self._fitting(pipeline, low) & undecided) if low > 0 else set()
            alike |= {name}
            left |= dict.fromkeys(alike, low)
            undecided -= alike
        return left

    def _fitting(self, pipeline: Pipeline, epsilon: Fraction) -> set[str]:
        try:
            trained = pipeline.ptk.cost(epsilon, Fraction(pipeline.delta))
            judged = LaplaceRelease(epsilon=epsilon, sensitivity=1).cost
        except InvalidInput:
            # A scale of noise that the mechanism does not have.
            return set()
        split = pipeline.split
        return (
            set(affordable(self._book, _STREAM, trained, split.training))
            & set(affordable(self._book, _STREAM, judged, split.looking))
            & set(affordable(self._book, _STREAM, judged, split.testing))
        )

    def _charge(
        self, parts: Sequence[tuple[Slice, Cost]], key: str, contexts: tuple[str, ...]
    ) -> None:
        """All of them or none, and spent: from here on they stay."""
        entries = apply(
            self._book,
            ReserveAll(
                tuple(
                    Reserve(
                        stream=_STREAM,
                        slices=(slice_,),
                        cost=cost,
                        expires_at_ms=_EXPIRES_MS,
                        contexts=contexts,
                        key=f"{key}/{place}",
                    )
                    for place, (slice_, cost) in enumerate(parts)
                )
            ),
        )
        for entry in entries:
            apply(self._book, Spend(entry["charge"], _AT_MS))

    def _within(self, blocks: Sequence[str], tags: TagRange) -> Batches:
        def batches() -> Iterator[pa.RecordBatch]:
            for block in blocks:
                known = self._tags[block]
                inside = known >= np.uint64(tags.start)
                if tags.stop < TAG_SPACE:
                    inside &= known < np.uint64(tags.stop)
                yield from self._tables[block].filter(pa.array(inside)).to_batches()

        return batches()
