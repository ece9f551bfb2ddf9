"""What a worker does: read opened blocks once, train each PTK on its range of tags, give back arrays as bytes.

By the time a worker is called the grants of all its PTKs are spent, durably. It is told what is open and, for each
PTK, the range of tags it may see; it never talks to the ledger.

A failure is an answer. What goes wrong before the first record is read is told by its type and place in the code; whatever goes
wrong after it, running out of memory and the death of the process included, is told as `PTK_FAILED`. Type and place of that
go to the log, never a text: texts may carry data.

Up to ``keep_bytes`` of opened records are kept in memory for the next PTK of the same call; beyond that blocks are read again.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import safetensors.numpy
from numpy.typing import NDArray

from ptklib import registry
from ptklib.errors import SageError
from ptklib.ledger.canonical import canonical
from ptklib.ptk import Batches, Ptk
from ptkstore.streams.opened import Opened, Tagged, read_opened, require_open
from ptkstore.workers.joining import joined, joined_tagged

__all__ = ["KEEP_BYTES", "PTK_FAILED", "STOPPED", "Lesson", "Trained", "train_each"]

KEEP_BYTES = 512 * 1024 * 1024
# Of every failure after the first record was read.
PTK_FAILED = "PTK_FAILED"
# How the log calls the end of a process and the end of its memory alike.
STOPPED = "the worker stopped"
# Of a batch beyond its records.
_BATCH_BYTES = 1 << 14
# Counting the cuts passed is faster than a binary search up to about here.
_FEW_CUTS = 12


@dataclass(frozen=True)
class Lesson:
    """One PTK to train on disjoint ranges of tags. ``previous`` are the arrays of its last state, as safetensors."""

    name: str
    kind: str
    config: dict[str, Any]
    epsilon: str
    delta: str
    ranges: tuple[tuple[int, int], ...]
    records_per_unit: int
    previous: bytes | None


@dataclass(frozen=True)
class Trained:
    """The arrays of one PTK as safetensors, or what may be told of a failure, and what is for the log."""

    name: str
    arrays: bytes | None
    failure: str = ""
    logged: str = ""


def train_each(opened: Opened | None, lessons: Sequence[Lesson], keep_bytes: int = KEEP_BYTES) -> Iterator[Trained]:
    """Train every lesson on what is open, in their order; one that fails does not stop the others."""
    records = _Records(opened, lessons, keep_bytes)
    return (_train(records, lesson) for lesson in lessons)


class _Records:
    """The records of the opened blocks that some lesson may see, grouped by tag; kept while they fit.

    The ends of all lessons' ranges cut the tags into stretches. Each batch is put into the order of its stretches once; then
    the records of any lesson lie side by side: giving them out copies nothing.
    """

    def __init__(self, opened: Opened | None, lessons: Sequence[Lesson], keep_bytes: int) -> None:
        self.opened = opened
        self.touched = False
        self._keep_bytes = keep_bytes
        ends = sorted({end for one in lessons for stretch in one.ranges for end in stretch})
        # No tag reaches 2**64: what would begin there is empty.
        self._cuts = np.array([end for end in ends if end < 2**64], dtype=np.uint64)
        self._place = {end: place for place, end in enumerate(ends)}
        self._columns = sorted({column for one in lessons for column in _wanted(one)})
        self._kept: list[_Grouped] | None = None

    def within(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> Batches:
        """The columns of the records whose tag lies in one of the ranges ``[start, stop)`` of a lesson."""
        return joined(self._slices(columns, ranges))

    def _slices(self, columns: Sequence[str], ranges: Sequence[tuple[int, int]]) -> Batches:
        places = [(self._place[start], self._place[stop]) for start, stop in ranges]
        self.touched = True
        for one in self:
            batch = one.batch.select(list(columns))
            for first, last in places:
                begin, end = int(one.begins[first]), int(one.begins[last])
                if begin < end:
                    yield batch.slice(begin, end - begin)

    def __iter__(self) -> Iterator[_Grouped]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[_Grouped] | None = []
        size = 0
        for tagged in joined_tagged(read_opened(self.opened)) if self.opened else ():
            one = self._grouped(tagged)
            # Columns that are not asked for may lie in the same buffer, and live as long.
            size += tagged.batch.nbytes + one.batch.nbytes + tagged.tags.nbytes + _BATCH_BYTES
            if size > self._keep_bytes:
                kept = None
            if kept is not None:
                kept.append(one)
            yield one
        self._kept = kept

    def _grouped(self, tagged: Tagged) -> _Grouped:
        batch = tagged.batch.select([name for name in self._columns if name in tagged.batch.schema.names])
        # How many cuts a tag has passed: 0 lies before every range, and so does nobody's.
        if len(self._cuts) <= _FEW_CUTS:
            passed = np.zeros(len(tagged.tags), dtype=np.uint8)
            for cut in self._cuts:
                passed += tagged.tags >= cut
        else:
            passed = np.searchsorted(self._cuts, tagged.tags, side="right").astype(np.uint16)
        sizes = np.bincount(passed, minlength=len(self._place) + 1)
        begins = np.cumsum(sizes[: len(self._place)])
        if np.count_nonzero(sizes) > 1:
            batch = batch.take(pa.array(np.argsort(passed, kind="stable")))
        return _Grouped(batch, begins)


class _Grouped(NamedTuple):
    """Records in the order of their stretches of tags, and how many lie before each end of a lesson."""

    batch: pa.RecordBatch
    begins: NDArray[np.intp]


def _train(records: _Records, lesson: Lesson) -> Trained:
    records.touched = False
    try:
        ptk = _ptk(lesson.kind, canonical(lesson.config))
        if records.opened is not None:
            for start, stop in lesson.ranges:
                require_open(records.opened, start, stop)
        arrays = ptk.train_dp(
            records.within(ptk.columns(), lesson.ranges),
            epsilon=lesson.epsilon,
            delta=lesson.delta,
            previous=safetensors.numpy.load(lesson.previous) if lesson.previous is not None else None,
            records_per_unit=lesson.records_per_unit,
        )
        ptk.validate(arrays)
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return Trained(lesson.name, safetensors.numpy.save(plain))
    except Exception as error:  # whatever a PTK raises may carry data
        detail = STOPPED if isinstance(error, MemoryError) else _place(error)
        return Trained(lesson.name, None, PTK_FAILED if records.touched else detail, detail)


def _wanted(lesson: Lesson) -> tuple[str, ...]:
    """The columns of a lesson; none of one that cannot be made, which fails when its turn comes."""
    try:
        return _ptk(lesson.kind, canonical(lesson.config)).columns()
    except Exception:  # told by `_train`, without its text
        return ()


@lru_cache(maxsize=1024)
def _ptk(kind: str, config: bytes) -> Ptk:
    """The same PTKs come in every window, and checking a configuration takes a while."""
    return registry.make(kind, json.loads(config))


def _place(error: Exception) -> str:
    reason = f" {error.reason}" if isinstance(error, SageError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{reason}{where}"
