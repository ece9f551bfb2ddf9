"""Routing: which block every record of a batch goes to.

Event level: the span of its event time; where that is sealed, the oldest open block or quarantine
by the stream's rule. What a restore gave up always goes to quarantine: it may have been charged in
a book that was lost, and a block is a fresh budget. User level: the cohort of its user (`cohorts`).
Nothing here depends on other records, except that records of one user stay together. Nothing is
refused here and nothing becomes durable: a batch that gets here has been accepted.

Where records go depends at user level on who was seen before, and so does the number of files that
are written. What may be watched from outside must not: files are made by event time (``begins``),
wherever the records go, and ``users`` is the number of files that the batch could touch at most,
which is how many are synced.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ptkstore.api.stream_spec import MAX_HORIZON_BLOCKS, StreamSpec
from ptkstore.streams.cohorts.cohorts import NOBODY, Cohorts
from ptkstore.streams.spans import Spans
from ptkstore.streams.tag_map import Numbers
from ptkstore.streams.tags import Tags

__all__ = ["Checked", "Router", "Split"]

_QUARANTINE = NOBODY + 1


class Checked(NamedTuple):
    """A batch that passed all checks: its stored form, its tags, and the span of each record (one
    number where all agree).
    """

    stored: pa.RecordBatch
    tags: Tags
    spans: Numbers | int


class Split(NamedTuple):
    """The parts of a batch with the names of their blocks, at least one; the blocks that must have
    files; how many users.
    """

    parts: list[tuple[str, pa.RecordBatch]]
    begins: list[str]
    users: int = 0


class Router:
    """Splits batches by block. ``cohorts`` is None at event level."""

    def __init__(self, spec: StreamSpec, spans: Spans, cohorts: Cohorts | None) -> None:
        """Keep the rule for late records."""
        self._spans = spans
        self._cohorts = cohorts
        self._quarantines = spec.late == "quarantine"
        # Set by a restore.
        self.given_up_before: int | None = None
        self._ticks = spec.column(spec.time_column).ticks_per_second * spec.span_ms // 1000
        self._time_place = 1 + [column.name for column in spec.columns].index(spec.time_column)

    def spans_of(self, stored: pa.RecordBatch) -> Numbers | int:
        """The span number of every record; one number when they all share it."""
        times = stored.column(self._time_place).view(pa.int64()).to_numpy()
        if not len(times):
            return int(self._spans.first)
        first = int(times.min()) // self._ticks
        return first if int(times.max()) // self._ticks == first else times // self._ticks

    def split(self, checked: Checked, oldest_open: int) -> Split:
        """Cut a batch by block. New users are staged to join their cohorts."""
        if self._cohorts is None or not len(checked.tags):
            parts = self._by_time(checked, oldest_open)
            return Split(parts, [name for name, _ in parts])
        users, goes = self._by_user(self._cohorts, checked, oldest_open)
        parts = [
            (self._name(number, oldest_open), rows)
            for number, rows in _grouped(checked.stored, goes)
        ]
        by_time = np.unique(np.maximum(checked.spans, oldest_open)).tolist()
        begins = [
            self._spans.quarantine(oldest_open),
            *(self._name(number, oldest_open) for number in by_time),
        ]
        return Split(parts, [*begins, *(name for name, _ in parts)], users)

    def _by_time(self, checked: Checked, oldest_open: int) -> list[tuple[str, pa.RecordBatch]]:
        late_goes = _QUARANTINE if self._quarantines else oldest_open
        spans, given_up = checked.spans, self.given_up_before
        if isinstance(spans, int):
            late_goes = _QUARANTINE if given_up is not None and spans < given_up else late_goes
            return [
                (
                    self._name(spans if spans >= oldest_open else late_goes, oldest_open),
                    checked.stored,
                )
            ]
        goes = np.where(spans >= oldest_open, spans, late_goes)
        if given_up is not None:
            goes[spans < given_up] = _QUARANTINE
        return [
            (self._name(number, oldest_open), rows)
            for number, rows in _grouped(checked.stored, goes)
        ]

    def _by_user(self, cohorts: Cohorts, checked: Checked, oldest_open: int) -> tuple[int, Numbers]:
        """How many users there are, and where each record goes."""
        late_goes = _QUARANTINE if self._quarantines else oldest_open
        users, first, inverse = np.unique(checked.tags, return_index=True, return_inverse=True)
        goes = cohorts.find(users)
        new = goes == NOBODY
        # Cohorts beyond every horizon come from versions that knew none: there is no end to how
        # many those are.
        goes[~new & ((goes < oldest_open) | (goes >= oldest_open + MAX_HORIZON_BLOCKS))] = (
            _QUARANTINE
        )
        spans = np.broadcast_to(np.asarray(checked.spans, dtype=np.int64), len(checked.tags))[
            first[new]
        ]
        goes[new] = np.where(spans >= oldest_open, spans, late_goes)
        joins = new & (goes != _QUARANTINE)
        cohorts.stage(users[joins], goes[joins])
        return len(users), goes[inverse]

    def _name(self, number: int, oldest_open: int) -> str:
        return (
            self._spans.quarantine(oldest_open)
            if number == _QUARANTINE
            else self._spans.name(number)
        )


def _grouped(stored: pa.RecordBatch, goes: Numbers) -> list[tuple[int, pa.RecordBatch]]:
    """Records by number, in arrival order within each; without copying where they come in order
    already.
    """
    if (goes[1:] < goes[:-1]).any():
        order = np.argsort(goes, kind="stable")
        goes, stored = goes[order], stored.take(pa.array(order))
    cuts = [0, *(np.flatnonzero(goes[1:] != goes[:-1]) + 1).tolist(), len(goes)]
    return [(int(goes[a]), stored.slice(a, b - a)) for a, b in pairwise(cuts)]
