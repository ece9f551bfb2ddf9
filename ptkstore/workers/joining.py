"""Batches of a few records each, joined: what is noted of a batch must not add up to more than its
records.

A producer may send records one by one, and a narrow slice takes few of each batch. Every Arrow
batch takes some kilobytes whatever it holds, so a PTK or a cache that keeps batches would hold far
more than the records are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ptkstore.streams.reading.opened import Tagged

__all__ = ["joined", "joined_tagged"]

Batch = TypeVar("Batch", pa.RecordBatch, Tagged)

# Batches of so many records are left as they are; at most so many smaller ones are joined.
_ENOUGH, _MOST = 1 << 12, 256


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same records in the same order, small batches together."""
    return (pa.concat_batches(group) if len(group) > 1 else group[0] for group in _groups(batches))


def joined_tagged(batches: Iterable[Tagged]) -> Iterator[Tagged]:
    """The same, with tags."""
    for group in _groups(batches):
        if len(group) == 1:
            yield group[0]
        else:
            yield Tagged(
                pa.concat_batches([tagged.batch for tagged in group]),
                np.concatenate([tagged.tags for tagged in group]),
            )


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    waiting: list[Batch] = []
    records = 0
    for batch in batches:
        count = len(batch.tags) if isinstance(batch, Tagged) else batch.num_rows
        if count >= _ENOUGH and not waiting:
            yield [batch]
            continue
        waiting.append(batch)
        records += count
        if records >= _ENOUGH or len(waiting) >= _MOST:
            yield waiting
            waiting, records = [], 0
    if waiting:
        yield waiting
