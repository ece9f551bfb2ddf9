"""What a worker does: read opened blocks once, train each PTK on its range of tags, give back
arrays as bytes.

By the time a worker is called the grants of all its PTKs are spent, durably. A job brings what
opens its blocks and the ranges of tags it may see; a worker never talks to the ledger.

A failure is an answer. What goes wrong before the first record is read is told by its type and
place in the code; whatever goes wrong after it, running out of memory and the death of the process
included, is told as `PTK_FAILED`. Type and place of that go to the log, never a text: texts may
carry data.

Up to ``keep_bytes`` of opened records are kept in memory for the next PTK of the same call; beyond
that blocks are read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import safetensors.numpy
from numpy.typing import NDArray

from ptklib import registry
from ptklib.encoding.canonical import canonical
from ptklib.encoding.error_place import failure_of
from ptklib.ptk import Batches, Ptk
from ptkstore.streams.reading.opened import Tagged
from ptkstore.workers.joining import joined, joined_tagged
from ptkstore.workers.protocol import (
    KEEP_BYTES,
    PTK_FAILED,
    STOPPED,
    Opener,
    TrainJob,
    TrainOutcome,
    ValidateJob,
)

__all__ = ["JobRecords", "attempted", "train_each"]

Made = TypeVar("Made")

# Of a batch beyond its records.
_BATCH_BYTES = 1 << 14
# Counting the cuts passed is faster than a binary search up to about here.
_FEW_CUTS = 12


def train_each(jobs: Sequence[TrainJob], keep_bytes: int = KEEP_BYTES) -> Iterator[TrainOutcome]:
    """Train every job on what its opener opens, in their order; one that fails does not stop the
    others. Jobs that share an opener share its records.
    """
    for _, together in groupby(jobs, key=lambda job: id(job.opener)):
        group = list(together)
        records = JobRecords(group[0].opener, group, keep_bytes)
        for job in group:
            yield _train(records, job)


class JobRecords:
    """The records of the opened blocks that some job may see, grouped by tag; kept while they
    fit.

    The ends of all jobs' ranges cut the tags into stretches. Each batch is put into the order of
    its stretches once; then the records of any job lie side by side: giving them out copies
    nothing.
    """

    def __init__(
        self,
        opener: Opener | None,
        jobs: Sequence[TrainJob] | Sequence[ValidateJob],
        keep_bytes: int,
    ) -> None:
        """Nothing is read yet."""
        self.opener = opener
        self.touched = False
        self._keep_bytes = keep_bytes
        ends = sorted({end for job in jobs for stretch in job.ranges for end in stretch})
        # No tag reaches 2**64: what would begin there is empty.
        self._cuts = np.array([end for end in ends if end < 2**64], dtype=np.uint64)
        self._place = {end: place for place, end in enumerate(ends)}
        self._columns = sorted({column for job in jobs for column in _wanted(job)})
        self._kept: list[_Grouped] | None = None

    def within(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> Batches:
        """The columns of the records whose tag lies in one of the ranges ``[start, stop)`` of a
        job.
        """
        return joined(self._slices(columns, ranges))

    def _slices(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> Batches:
        places = [(self._place[start], self._place[stop]) for start, stop in ranges]
        self.touched = True
        for grouped in self:
            batch = grouped.batch.select(list(columns))
            for first, last in places:
                begin, end = int(grouped.begins[first]), int(grouped.begins[last])
                if begin < end:
                    yield batch.slice(begin, end - begin)

    def __iter__(self) -> Iterator[_Grouped]:
        """All batches, kept while they fit."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[_Grouped] | None = []
        size = 0
        for tagged in joined_tagged(self.opener.read()) if self.opener is not None else ():
            grouped = self._grouped(tagged)
            # Columns that are not asked for may lie in the same buffer, and live as long.
            size += tagged.batch.nbytes + grouped.batch.nbytes + tagged.tags.nbytes + _BATCH_BYTES
            if size > self._keep_bytes:
                kept = None
            if kept is not None:
                kept.append(grouped)
            yield grouped
        self._kept = kept

    def _grouped(self, tagged: Tagged) -> _Grouped:
        batch = tagged.batch.select(
            [name for name in self._columns if name in tagged.batch.schema.names]
        )
        # How many cuts a tag has passed: 0 lies before every range, the last after all of them, and
        # neither is anybody's.
        if len(self._cuts) <= _FEW_CUTS:
            passed = np.zeros(len(tagged.tags), dtype=np.uint8)
            for cut in self._cuts:
                passed += tagged.tags >= cut
        else:
            passed = np.searchsorted(self._cuts, tagged.tags, side="right").astype(np.uint16)
        sizes = np.bincount(passed, minlength=len(self._place) + 1)
        stretches = sizes[1 : len(self._place)]
        begins = np.concatenate([[0], np.cumsum(stretches)])
        if np.count_nonzero(stretches) > 1:
            order = np.argsort(passed, kind="stable")[sizes[0] : sizes[0] + begins[-1]]
            batch = batch.take(pa.array(order))
        elif begins[-1] < len(tagged.tags):
            batch = batch.filter(pa.array((passed > 0) & (passed < len(self._place))))
        return _Grouped(batch, begins)


class _Grouped(NamedTuple):
    """Records in the order of their stretches of tags, and how many lie before each end of a
    job.
    """

    batch: pa.RecordBatch
    begins: NDArray[np.intp]


def _train(records: JobRecords, job: TrainJob) -> TrainOutcome:
    def arrays_of(ptk: Ptk) -> bytes:
        arrays = ptk.train_dp(
            records.within(ptk.columns(), job.ranges),
            epsilon=job.epsilon,
            delta=job.delta,
            previous=safetensors.numpy.load(job.previous) if job.previous is not None else None,
            records_per_unit=job.records_per_unit,
        )
        ptk.validate(arrays)
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return safetensors.numpy.save(plain)

    return TrainOutcome(job.name, *attempted(records, job, arrays_of))


def attempted(
    records: JobRecords, job: TrainJob | ValidateJob, work: Callable[[Ptk], Made]
) -> tuple[Made | None, str, str]:
    """What ``work`` makes of a job's PTK, or what may be told of its failure, and what is for the
    log.

    A failure after the first record is one word for every cause.
    """
    records.touched = False
    try:
        ptk = _ptk(job.kind, canonical(job.config))
        if records.opener is not None:
            for start, stop in job.ranges:
                records.opener.require(start, stop)
        return work(ptk), "", ""
    except Exception as error:  # whatever a PTK raises may carry data
        detail = STOPPED if isinstance(error, MemoryError) else failure_of(error)
        return None, PTK_FAILED if records.touched else detail, detail


def _wanted(job: TrainJob | ValidateJob) -> tuple[str, ...]:
    """The columns of a job; none of one that cannot be made, which fails when its turn comes."""
    try:
        return _ptk(job.kind, canonical(job.config)).columns()
    except Exception:  # told by `attempted`, without its text
        return ()


@lru_cache(maxsize=1024)
def _ptk(kind: str, config: bytes) -> Ptk:
    """A configuration, as canonical JSON, as an object. The same come in every window, and checking
    one takes a while.
    """
    return registry.make(kind, json.loads(config))
